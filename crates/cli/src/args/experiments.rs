//! Arguments of experiments and comparisons.

use super::names::{one_of, some_of};
use super::run::{BaseArguments, ExtentArguments, OrderName, WorkerArguments};
use super::standing::MetricsArguments;
use super::values::{
    latency, limit, one_number, percentile, quantity, setting, share, share_or_all, share_or_none,
    span_above_0,
};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, Args, Subcommand, ValueEnum};
use dyno_plan::model::ScheduleKind;
use dyno_plan::names::Names;
use dyno_plan::units::{Rate, Span};
use dyno_record::experiment::{Limit, TuneGoal};
use dyno_report::{Format, PageFormat};
use std::path::PathBuf;

/// The commands that make several runs, on the hosts that the options `H` choose.
#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand<H: Args> {
    /// Measure at several loads or settings: how does it scale?
    ///
    /// Exit status: 0 done; 1 a run exceeded the plan's `client.tolerated_error_ratio`.
    Sweep(Box<OnHosts<H, SweepArguments>>),
    /// Find the highest rate that the server sustains
    ///
    /// Exit status: 0 done; 1 a run exceeded the plan's `client.tolerated_error_ratio`.
    Xmax(Box<OnHosts<H, XmaxArguments>>),
    /// Find the highest rate that keeps a limit, such as `--p99 5ms`
    Slo(Box<OnHosts<H, SloArguments>>),
    /// Compare two plans or settings in interleaved pairs of runs
    ///
    /// Exit status: 0 done, and no `--fail-if-worse` is exceeded; 1 one is certainly exceeded, or a run exceeded its plan's
    /// `client.tolerated_error_ratio`; 5 it is uncertain whether one is exceeded.
    Ab(Box<OnHosts<H, AbArguments>>),
    /// Search for better settings, and show which ones matter
    ///
    /// Changed server settings are restored after each run. Settings that make writes less durable are changed only with
    /// `--allow durability`. Exit status: 0 done, even if there is nothing to gain.
    Tune(Box<OnHosts<H, TuneArguments>>),
    /// Continue an interrupted experiment
    Resume(Box<OnHosts<H, ResumeArguments>>),
}

/// A command and the hosts that run it.
#[derive(Debug, Args)]
pub(crate) struct OnHosts<H: Args, T: Args> {
    #[command(flatten)]
    pub(crate) hosts: H,
    #[command(flatten)]
    pub(crate) verb: T,
}

/// No options: the command runs on this host.
#[derive(Debug, Args)]
pub(crate) struct ThisHost {}

/// Options of all experiments.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentArguments {
    #[command(flatten)]
    pub(crate) base: BaseArguments,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
    /// Length of each run, such as `2m` (built-in plans: 30s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Numbers of clients: `1,2,4,8`, `1..100 by 2x` or `10..50 by 10`
    #[arg(long, value_name = "N,…", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) clients: Option<String>,
    /// Offered rates in operations per second: `100,200,500` or `1k..8k by 500`
    #[arg(long, value_name = "RATE,…", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) rates: Option<String>,
    /// Offer every rate with every number of clients, instead of sweeping clients in a closed loop and rates in an open loop
    #[arg(long, help_heading = "Sweep")]
    pub(crate) cross: bool,
    /// Value to compare the others with, such as `1GiB` or `server.cache=1GiB` (default: the first value, if a single key is
    /// swept in addition to clients and rates)
    #[arg(long, value_name = "VALUE", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) base: Option<String>,
    /// Schedule of operations at an offered rate (default: the plan's, or `constant`)
    #[arg(
        long,
        value_name = "SCHEDULE",
        value_parser = one_of(ScheduleKind::NAMES),
        help_heading = "Load",
        requires = "rates"
    )]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Runs of each point
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Sweep",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Order of the points
    #[arg(long, value_name = "ORDER", default_value = "random", help_heading = "Sweep")]
    pub(crate) order: OrderName,
}

#[derive(Debug, Args)]
pub(crate) struct XmaxArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Largest number of clients to try
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_clients: u32,
    /// Runs with the best number of clients, once it is found
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
}

/// Objectives that a run must meet.
#[derive(Debug, Args)]
pub(crate) struct ObjectiveArguments {
    /// Highest allowed mean response time
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) mean: Option<Span>,
    /// Highest allowed median response time
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) p50: Option<Span>,
    /// Highest allowed 90th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) p90: Option<Span>,
    /// Highest allowed 95th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) p95: Option<Span>,
    /// Highest allowed 99th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) p99: Option<Span>,
    /// Highest allowed 99.9th percentile of the response time
    #[arg(long = "p99.9", value_name = "TIME", value_parser = latency, help_heading = "Limits")]
    pub(crate) p999: Option<Span>,
    /// Highest allowed value of any other percentile, such as `75=5ms`; may be repeated
    #[arg(long, value_name = "PERCENT=TIME", value_parser = percentile, help_heading = "Limits")]
    pub(crate) percentile: Vec<(f64, Span)>,
    /// Highest allowed share of failed operations, such as `1%` or `0.01`
    ///
    /// Default: 0 for `dyno slo`; for `dyno tune` the larger of 0.1% and `client.tolerated_error_ratio`.
    #[arg(long, value_name = "SHARE", value_parser = share_or_none, help_heading = "Limits")]
    pub(crate) errors: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct SloArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Concurrent connections (default: the plan's)
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Load")]
    pub(crate) clients: Option<u32>,
    /// Schedule of the operations (default: the plan's, or `constant`)
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    #[command(flatten)]
    pub(crate) objectives: ObjectiveArguments,
    /// Wanted precision, such as `4%` or `0.04`
    ///
    /// The search tries rates in steps of this size, and stops when the interval of the answer reaches at most 1.25 steps to
    /// either side: with `4%` at ±5 %.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "4%", help_heading = "Search")]
    pub(crate) resolution: f64,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_runs: u32,
    /// Start no further run after this time, and answer from the runs so far
    ///
    /// The closed loop and one run at an offered rate are always made.
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Search")]
    pub(crate) time_limit: Option<Span>,
    /// Repeat a run in which the hypervisor took more than this share of the CPU time; `100%` accepts every run
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
#[command(mut_arg("settings", of_b))]
pub(crate) struct AbArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The plan of B (default: the plan of A)
    // Otherwise it would appear under the previous group's heading.
    #[arg(value_name = "PLAN_B", help_heading = None::<&str>, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload_b: Option<String>,
    /// Set a key of the plan for A; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_a: Vec<(String, String)>,
    /// Set a key of the plan for both; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_both: Vec<(String, String)>,
    /// Concurrent connections of both sides (default: the plans')
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Load")]
    pub(crate) clients: Option<u32>,
    /// Operations per second offered to both sides, such as `20k`
    ///
    /// The schedule is `constant` unless `--schedule` is given.
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>, help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// Schedule of the operations of both sides (default: the plans')
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Largest difference that does not matter, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%", help_heading = "Comparison")]
    pub(crate) margin: f64,
    /// Minimum number of run pairs (default: 3, or `--max-pairs` if smaller)
    #[arg(long, value_name = "N", help_heading = "Comparison",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) min_pairs: Option<u32>,
    /// Maximum number of run pairs (default: 20, or `--min-pairs` if larger)
    #[arg(long, value_name = "N", help_heading = "Comparison",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_pairs: Option<u32>,
    /// Start no further pair after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Comparison")]
    pub(crate) time_limit: Option<Span>,
    /// Replace a pair in which the hypervisor took more than this share of the CPU time; `100%` accepts every pair
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Comparison")]
    pub(crate) max_steal: f64,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// How much worse B may be.
#[derive(Debug, Args)]
pub(crate) struct LimitArguments {
    /// Exit with status 1 if B is certainly worse by more than this, such as `p99=10%`, and with 5 if that is uncertain; may be
    /// repeated
    ///
    /// Figures: `rate`, `mean`, `p50`, `p95`, `p99`, `p99.9`, and costs such as `server-cpu` or `space-amplification`.
    #[arg(long, value_name = "FIGURE=SHARE", value_parser = limit, help_heading = "Comparison")]
    pub(crate) fail_if_worse: Vec<Limit>,
    /// Write the outcome of each `--fail-if-worse` to this file, as JUnit XML
    #[arg(long, value_name = "FILE", requires = "fail_if_worse", help_heading = "Comparison")]
    pub(crate) junit: Option<PathBuf>,
}

/// Makes `--set` of other commands an option for B.
fn of_b(settings: Arg) -> Arg {
    settings
        .long("set-b")
        .help("Set a key of the plan for B, such as `server.cache=1GiB`")
        .long_help(
            "Set a key of the plan for B, such as `server.cache=1GiB`\n\nA keeps the plan's value. May be repeated; the \
             last one wins. Keys and values are as in a plan file (`docs/plans.md`); strings need no quotes.",
        )
}

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
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Load")]
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

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Run directory of A, the baseline, or a folder with its repetitions; or a part of its name, or its tag, see `dyno runs`
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: PathBuf,
    /// Run directory of B, the candidate, or a folder with its repetitions; or a part of its name, its tag, or `latest`
    #[arg(value_name = "RUN_B")]
    pub(crate) run_b: PathBuf,
    /// Compare the response times of this operation only, such as `read`
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,
    /// Largest difference that does not matter, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    /// The name of `--fail-if-worse` in earlier versions.
    #[arg(long, hide = true, value_name = "SHARE")]
    pub(crate) fail_if_slower: Option<String>,
    /// Compare despite this difference, by its name in the comparison; may be repeated
    ///
    /// For example `server product`, to compare two products.
    #[arg(long, value_name = "DIFFERENCE")]
    pub(crate) allow: Vec<String>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(PageFormat::NAMES))]
    pub(crate) format: PageFormat,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Folder with run directories, searched recursively
    #[arg(value_name = "DIR", default_value = "runs")]
    pub(crate) directory: PathBuf,
    /// Include only runs of this workload
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Include only runs with the plan and the data of this run (default: of the newest run)
    ///
    /// Give the name of a run in the folder, or a part of it. The runs that are left out are named with the keys that differ.
    #[arg(long, value_name = "RUN")]
    pub(crate) like: Option<String>,
    /// Largest change that does not matter, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    /// Probability of a false alarm per figure in a series without changes
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%")]
    pub(crate) significance: f64,
    /// Judge the current level only against runs since this run or time; older runs are shown
    ///
    /// Give a run by its name in the table, or a time such as `2026-08-22` or `2026-08-22T10:15:00Z`.
    #[arg(long, value_name = "RUN|TIME")]
    pub(crate) since: Option<String>,
    /// Draw the series to this SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Replace that file if it exists
    #[arg(long, requires = "picture")]
    pub(crate) force: bool,
    /// Write each series to this empty or new folder, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(PageFormat::NAMES))]
    pub(crate) format: PageFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// Folder of the experiment, a part of its name, or `latest`
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: PathBuf,
    /// Connection string of a server that is already running; the experiment does not store passwords
    #[arg(long, value_name = "URI", env = "DYNO_URI", hide_env_values = true)]
    pub(crate) uri: Option<String>,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
    /// Write the outcome of each `--fail-if-worse` to this file, as JUnit XML (default: the experiment's `--junit`, if any)
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human",
          value_parser = some_of(Format::NAMES, |format| !matches!(format, Format::Ycsb | Format::Kpi)))]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
}
