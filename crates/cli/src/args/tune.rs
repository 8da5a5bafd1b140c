//! Arguments of `dyno tune`.

use super::experiments::{ExperimentArguments, ObjectiveArguments};
use super::names::one_of;
use super::values::{quantity, share, share_or_all, span_above_0};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use dyno_plan::names::Names;
use dyno_plan::request::ScheduleKind;
use dyno_plan::units::{Rate, Span};
use dyno_record::experiment::TuneGoal;

/// What can become better.
const GOALS: Names<TuneGoal> = &[
    (
        TuneGoal::Rate,
        "rate",
        "More operations per second in a closed loop",
    ),
    (
        TuneGoal::P99,
        "p99",
        "A shorter p99 of the response time at `--rate`",
    ),
    (
        TuneGoal::Cpu,
        "cpu",
        "Less CPU time of the servers per operation at `--rate`",
    ),
];

/// What must be allowed before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllowName {
    /// Settings that need another start of the server
    Restart,
    /// Settings of the kernel and of devices of this machine; they need root, and readahead and huge pages also `restart`
    Host,
    /// Settings with which acknowledged writes may be lost
    Durability,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Also search for these workloads, such as `c,e`; then measure the settings found for each on all others, and find settings
    /// that are good for all
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new(),
          conflicts_with = "wsf", help_heading = "Search")]
    pub(crate) across: Vec<String>,
    /// What is to become better
    #[arg(long, value_name = "GOAL", default_value = "rate", value_parser = one_of(GOALS), help_heading = "Goal")]
    pub(crate) goal: TuneGoal,
    /// Offered rate in operations per second; needed by the goals `p99` and `cpu`
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>, help_heading = "Goal")]
    pub(crate) rate: Option<Rate>,
    #[command(flatten)]
    pub(crate) objectives: ObjectiveArguments,
    /// Concurrent connections; default: those of the plan
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// When operations start; default: that of the plan with the goal `rate`, else `constant`
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Time for all runs together: three fifths for the search, the rest for what confirms its answer, which may take longer if
    /// many settings changed
    #[arg(long, value_name = "TIME", value_parser = span_above_0, default_value = "1h", help_heading = "Search")]
    pub(crate) budget: Span,
    /// What may be changed: a group of knobs, a file of them, or a parameter of running servers or a setting of this machine
    /// with its values, such as `syncdelay=20,60,120`; may be repeated. Default: all groups but `client`,
    /// as far as `--allow` permits
    #[arg(long, value_name = "KNOBS", help_heading = "Search")]
    pub(crate) knobs: Vec<String>,
    /// Also change these; without it only parameters of running servers are changed, and the number of clients if that is named
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Search"
    )]
    pub(crate) allow: Vec<AllowName>,
    /// Smallest gain that matters, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%", help_heading = "Search")]
    pub(crate) margin: f64,
    /// Run another pair in place of one in which the hypervisor took more than this share of the CPU time, and likewise for the
    /// runs before any change; `100%` counts every run
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
    /// Seed of the search: the same one and the same measurements give the same search; default: that of the plan
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) search_seed: Option<u64>,
}
