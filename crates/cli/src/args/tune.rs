//! Arguments of `dyno tune`.

use super::experiments::{ExperimentArguments, ObjectiveArguments};
use super::names::one_of;
use super::values::{one_number, quantity, share, share_or_all, span_above_0};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use dyno_plan::model::ScheduleKind;
use dyno_plan::names::Names;
use dyno_plan::units::{Rate, Span};
use dyno_record::experiment::TuneGoal;

/// Goals of the search.
const GOALS: Names<TuneGoal> = &[
    (TuneGoal::Rate, "rate", "Maximize operations per second in a closed loop"),
    (TuneGoal::P99, "p99", "Minimize the p99 of the response time at `--rate`"),
    (TuneGoal::Cpu, "cpu", "Minimize server CPU time per operation at `--rate`"),
];

/// Kinds of changes that need permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllowName {
    /// Settings that need a server restart
    Restart,
    /// Kernel and device settings of this machine; needs root, and also `restart` for readahead and huge pages
    Host,
    /// Settings that may lose acknowledged writes
    Durability,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Also tune these workloads, such as `c,e`; then measure each result on all other workloads, and find settings that suit all
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new(),
          conflicts_with = "wsf", help_heading = "Search")]
    pub(crate) across: Vec<String>,
    /// Figure to improve
    #[arg(long, value_name = "GOAL", default_value = "rate", value_parser = one_of(GOALS), help_heading = "Goal")]
    pub(crate) goal: TuneGoal,
    /// Offered rate in operations per second; required by the goals `p99` and `cpu`
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>, help_heading = "Goal")]
    pub(crate) rate: Option<Rate>,
    #[command(flatten)]
    pub(crate) objectives: ObjectiveArguments,
    /// Concurrent connections (default: the plan's)
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// Schedule of the operations (default: the plan's with the goal `rate`, else `constant`)
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Total time of all runs: three fifths for the search, the rest for its confirmation
    ///
    /// The confirmation may take longer if many settings changed.
    #[arg(long, value_name = "TIME", value_parser = span_above_0, default_value = "1h", help_heading = "Search")]
    pub(crate) budget: Span,
    /// Knobs to search: a group, a file, or a parameter with its values, such as `syncdelay=20,60,120`; may be repeated
    ///
    /// The parameter is one of running servers or a setting of this machine. Default: all groups except `client` that `--allow`
    /// permits.
    #[arg(long, value_name = "KNOBS", help_heading = "Search")]
    pub(crate) knobs: Vec<String>,
    /// Also change these settings (default: only parameters of running servers, and the number of clients if named)
    #[arg(long, value_name = "WHAT", value_delimiter = ',', help_heading = "Search")]
    pub(crate) allow: Vec<AllowName>,
    /// Smallest gain that matters, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%", help_heading = "Search")]
    pub(crate) margin: f64,
    /// Replace a pair, or a run before any change, in which the hypervisor took more than this share of the CPU time; `100%`
    /// accepts every run
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
    /// Seed of the search; the same seed and measurements repeat the search (default: the plan's seed)
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) search_seed: Option<u64>,
}
