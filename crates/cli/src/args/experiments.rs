//! Arguments of experiments, and of what compares runs.

use super::names::{one_of, some_of};
use super::run::{DataArguments, ExtentArguments, OrderName, TargetArguments, WorkerArguments};
use super::standing::{GrafanaArguments, MetricsArguments, ObserveArguments, PriceArguments};
use super::values::{percentile, quantity, setting, share, share_or_all, share_or_none};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use dyno_plan::request::ScheduleKind;
use dyno_plan::units::Span;
use dyno_report::{Format, PageFormat};
use std::path::PathBuf;

/// What all experiments have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Measuring time of each run, such as `30s` or `2m`; default of the built-in plans: 30s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Time under load before measuring starts, in each run; default of the built-in plans: 5s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) warmup: Option<Span>,
    /// Load nothing; the collection must hold the documents already
    #[arg(long, help_heading = "Data", conflicts_with = "fresh")]
    pub(crate) no_load: bool,
    /// Folder of the experiment; default: `experiments/TIME-VERB-NAME`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What is printed on standard output
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
    /// Print the runs that would be made and do nothing
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
    /// Numbers of clients: `1,2,4,8`, or `1..100 by 2x`, or `10..50 by 10`
    #[arg(long, value_name = "N,…", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) clients: Option<String>,
    /// Offered rates in operations per second: `100,200,500`, or `1k..8k by 500`
    #[arg(long, value_name = "RATE,…", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) rates: Option<String>,
    /// Offer every rate with every number of clients, in place of a closed loop over the clients and an open loop over
    /// the rates
    #[arg(long, help_heading = "Sweep")]
    pub(crate) cross: bool,
    /// Value that the others are compared with, such as `1GiB` or `server.cache=1GiB`; default: the first one, where one key
    /// is swept besides clients and rates
    #[arg(long, value_name = "VALUE", help_heading = "Sweep", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) base: Option<String>,
    /// When operations start at an offered rate; default: that of the plan, or `constant`
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
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "random",
        help_heading = "Sweep"
    )]
    pub(crate) order: OrderName,
}

#[derive(Debug, Args)]
pub(crate) struct XmaxArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Most clients that are tried
    #[arg(long, value_name = "N", default_value_t = 1024, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_clients: u32,
    /// Runs with the best number of clients, after it was found
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) repeat: u32,
}

/// What must hold in a run.
#[derive(Debug, Args)]
pub(crate) struct ObjectiveArguments {
    /// Largest mean response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) mean: Option<Span>,
    /// Largest median response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p50: Option<Span>,
    /// Largest 90th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p90: Option<Span>,
    /// Largest 95th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p95: Option<Span>,
    /// Largest 99th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p99: Option<Span>,
    /// Largest 99.9th percentile of the response time
    #[arg(long = "p99.9", value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Limits")]
    pub(crate) p999: Option<Span>,
    /// Largest value of any percentile of the response time, such as `75=5ms`; may be repeated
    #[arg(long, value_name = "PERCENT=TIME", value_parser = percentile, help_heading = "Limits")]
    pub(crate) percentile: Vec<(f64, Span)>,
    /// Largest share of operations that may fail, such as `1%` or `0.01`; default: 0 in `dyno slo`, and in `dyno tune` what the
    /// plan tolerates, 0.1% at least
    #[arg(long, value_name = "SHARE", value_parser = share_or_none, help_heading = "Limits")]
    pub(crate) errors: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct SloArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Concurrent connections; default: those of the plan
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// When operations start; default: that of the plan, or `constant`
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    #[command(flatten)]
    pub(crate) objectives: ObjectiveArguments,
    /// Distance of neighbouring rates, such as `4%` or `0.04`: runs are made until the interval of the answer
    /// reaches 1.25 times as far to either side
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "4%", help_heading = "Search")]
    pub(crate) resolution: f64,
    /// Most runs
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_runs: u32,
    /// Make a run again in which the hypervisor took more than this share of the CPU time; `100%` counts every run
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
pub(crate) struct AbArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The plan of B; default: that of A
    // Without this the heading of the groups before it would hold it, too.
    #[arg(value_name = "PLAN_B", help_heading = None::<&str>, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload_b: Option<String>,
    /// Set a key of the plan for A only; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_a: Vec<(String, String)>,
    /// Set a key of the plan for both; `--set` is for B only. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) set_both: Vec<(String, String)>,
    /// Concurrent connections of both; default: those of the plans
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// Difference that is of no interest, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%", help_heading = "Comparison")]
    pub(crate) margin: f64,
    /// Fewest pairs of runs; default: 3, or `--max-pairs` if that is less
    #[arg(long, value_name = "N", help_heading = "Comparison",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) min_pairs: Option<u32>,
    /// Most pairs of runs; default: 20, or `--min-pairs` if that is more
    #[arg(long, value_name = "N", help_heading = "Comparison",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_pairs: Option<u32>,
    /// Begin no further pair after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Comparison")]
    pub(crate) time_limit: Option<Span>,
    /// Run another pair in place of one in which the hypervisor took more than this share of the CPU time; `100%` counts
    /// every pair
    #[arg(long, value_name = "SHARE", value_parser = share_or_all, default_value = "1%", help_heading = "Comparison")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Run directory of A, the baseline, or a folder with repetitions of it
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: PathBuf,
    /// Run directory of B, or a folder with repetitions of it
    #[arg(value_name = "RUN_B")]
    pub(crate) run_b: PathBuf,
    /// Compare the response times of this operation only, such as `read`
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,
    /// Difference that is of no interest, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    /// End with status 1 if B is slower by more than this, such as `5%`, and not by chance; also sets the margin
    ///
    /// It needs several runs of A or B. With one run of each the status is 1 as well, since runs vary by an unknown amount.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "margin")]
    pub(crate) fail_if_slower: Option<f64>,
    /// Compare in spite of this difference, by the name that the comparison gives it; may be repeated
    ///
    /// Such as `server product`, where two products are what is compared.
    #[arg(long, value_name = "DIFFERENCE")]
    pub(crate) allow: Vec<String>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(PageFormat::NAMES))]
    pub(crate) format: PageFormat,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    /// Folder that holds run directories, also in folders below
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Only runs of this workload
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: Option<String>,
    /// Change that is of no interest, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    /// Probability of a false alarm in a series without a change, for each figure
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%")]
    pub(crate) significance: f64,
    /// Judge the present level by those since this run or time only; older ones are shown
    ///
    /// A run is named as in the table, a time is such as `2026-08-22` or `2026-08-22T10:15:00Z`.
    #[arg(long, value_name = "RUN|TIME")]
    pub(crate) since: Option<String>,
    /// Draw the series into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// Replace that file if it exists
    #[arg(long, requires = "picture")]
    pub(crate) force: bool,
    /// Write each series to this folder, as SVG and as PNG; it must be empty or absent
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(PageFormat::NAMES))]
    pub(crate) format: PageFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// Folder of the experiment
    #[arg(value_name = "EXPERIMENT")]
    pub(crate) experiment: PathBuf,
    /// Connection string of the server, if it runs already; passwords are not kept
    #[arg(long, value_name = "URI", env = "DYNO_URI", hide_env_values = true)]
    pub(crate) uri: Option<String>,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human",
          value_parser = some_of(Format::NAMES, |format| !matches!(format, Format::Ycsb | Format::Kpi)))]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
}
