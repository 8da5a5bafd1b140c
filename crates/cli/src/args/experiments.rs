//! Arguments of experiments and comparisons.

use super::names::{one_of, some_of};
use super::run::{DataArguments, ExtentArguments, OrderName, TargetArguments, WorkerArguments};
use super::standing::{GrafanaArguments, MetricsArguments, ObserveArguments, PriceArguments};
use super::values::{
    one_number, percentile, quantity, setting, share, share_or_all, share_or_none,
};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use dyno_plan::model::ScheduleKind;
use dyno_plan::units::Span;
use dyno_report::{Format, PageFormat};
use std::path::PathBuf;

/// Options of all experiments.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Length of the measure phase of each run, such as `30s` or `2m` (built-in plans: 30s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Time under load before measuring starts, in each run (built-in plans: 5s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) warmup: Option<Span>,
    /// Skip loading; the collection must already hold the documents
    #[arg(long, help_heading = "Data", conflicts_with = "fresh")]
    pub(crate) no_load: bool,
    /// Folder of the experiment (default: `experiments/TIME-VERB-NAME`)
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Format of the report on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        value_parser = one_of(PageFormat::NAMES),
        help_heading = "Output"
    )]
    pub(crate) format: PageFormat,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    /// Print the planned runs without running them
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) observe: ObserveArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
    #[command(flatten)]
    pub(crate) grafana: GrafanaArguments,
    #[command(flatten)]
    pub(crate) price: PriceArguments,
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
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) mean: Option<Span>,
    /// Highest allowed median response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p50: Option<Span>,
    /// Highest allowed 90th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p90: Option<Span>,
    /// Highest allowed 95th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p95: Option<Span>,
    /// Highest allowed 99th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p99: Option<Span>,
    /// Highest allowed 99.9th percentile of the response time
    #[arg(long = "p99.9", value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
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
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// Schedule of the operations (default: the plan's, or `constant`)
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    #[command(flatten)]
    pub(crate) objectives: ObjectiveArguments,
    /// Relative distance between neighbouring rates, such as `4%` or `0.04`
    ///
    /// The search continues until the interval of the answer extends at most 1.25 times this distance to either side.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "4%", help_heading = "Search")]
    pub(crate) resolution: f64,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_runs: u32,
    /// Repeat a run in which the hypervisor took more than this share of the CPU time; `100%` accepts every run
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
pub(crate) struct AbArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The plan of B (default: the plan of A)
    // Otherwise it would appear under the previous group's heading.
    #[arg(value_name = "PLAN_B", help_heading = None::<&str>, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload_b: Option<String>,
    /// Set a key of the plan for A only; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_a: Vec<(String, String)>,
    /// Set a key of the plan for both sides (`--set` applies to B only); may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_both: Vec<(String, String)>,
    /// Concurrent connections of both sides (default: the plans')
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Client")]
    pub(crate) clients: Option<u32>,
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
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Run directory of A, the baseline, or a folder with its repetitions
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: PathBuf,
    /// Run directory of B, the candidate, or a folder with its repetitions
    #[arg(value_name = "RUN_B")]
    pub(crate) run_b: PathBuf,
    /// Compare the response times of this operation only, such as `read`
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,
    /// Largest difference that does not matter, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    /// Exit with status 1 if B is slower by more than this, such as `5%`, beyond chance; also sets the margin
    ///
    /// Needs several runs of A or B. With one run of each the status is also 1, because the variation between runs is
    /// unknown.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "margin")]
    pub(crate) fail_if_slower: Option<f64>,
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
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Include only runs of this workload
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
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
    /// Folder of the experiment
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: PathBuf,
    /// Connection string of a server that is already running; the experiment does not store passwords
    #[arg(long, value_name = "URI", env = "DYNO_URI", hide_env_values = true)]
    pub(crate) uri: Option<String>,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human",
          value_parser = some_of(Format::NAMES, |format| !matches!(format, Format::Ycsb | Format::Kpi)))]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
}
