//! What can be typed. The doc comments are the help text; what they mean is done in `commands`.

use crate::metrics::{Secret, listen};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use dyno_plan::units::{Bytes, Rate, Span};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A dynamometer for MongoDB: puts a server on the bench, loads it, and says what it saw and how far to trust it
///
/// Exit status: 0 done; 1 done, but more operations failed than are tolerated; 2 bad arguments or
/// plan; 3 something around is not as needed (server, disk, permission); 4 internal error; 130
/// interrupted, what was measured until then is saved.
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CommonArguments {
    /// Say only errors and warnings on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say more on standard error: details of connections and of the server's start
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Folder for what is kept between runs: the result of `selfcheck`, deployments of `server start`
    ///
    /// Default: `$XDG_STATE_HOME/mongodyno`, or `~/.local/state/mongodyno`.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "DYNO_STATE_DIR",
        hide_env_values = true
    )]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workload: load what is missing, warm up, measure, report
    Run(Box<RunArguments>),
    /// Run the load phase of a workload alone
    Load(Box<LoadArguments>),
    /// Do what `bin/ycsb` does, with the same options, properties and output
    ///
    /// `dyno ycsb --help` lists the options. They are those of YCSB, with a single dash.
    #[command(disable_help_flag = true)]
    Ycsb(YcsbArguments),
    /// Keep a load on for hours: bounded memory and disk, notices when something changes
    ///
    /// Exit status: 0 done; 1 more operations failed than are tolerated; 3 the server was away for longer than
    /// `--give-up`, or the disk was nearly full; what was recorded is kept.
    Soak(Box<SoakArguments>),
    /// Show the runs that go on
    ///
    /// Exit status: 0 at least one goes on; 1 none does.
    Status(StatusArguments),
    /// End a run that goes on, in order: what it recorded is kept
    ///
    /// Exit status: 0 it has ended; 3 there is none, or it did not end in time.
    Stop(StopArguments),
    /// Measure at several loads or settings: bounds, scalability, laws
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of the plan.
    Sweep(Box<SweepArguments>),
    /// Find the highest rate that the server sustains
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of the plan.
    Xmax(Box<XmaxArguments>),
    /// Find the highest offered rate that keeps an objective, such as `--p99 5ms`
    Slo(Box<SloArguments>),
    /// Compare two plans, or one with itself under other settings, in interleaved pairs of runs
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of its plan.
    Ab(Box<AbArguments>),
    /// Compare two runs that exist already
    ///
    /// Exit status: 0 done; 1 with `--fail-if-slower`: B is slower, or the runs cannot be compared.
    Compare(CompareArguments),
    /// Look for changes over a series of runs of the same plan
    ///
    /// Exit status: 0 no regression; 1 the present level is worse than the best one before it, by more than `--margin`.
    History(HistoryArguments),
    /// Go on with an experiment that was interrupted
    Resume(ResumeArguments),
    /// Trace what processes read and write in files, by eBPF: offset, size and latency of each call
    ///
    /// Exit status: 0 done; 1 the program that was traced ended with a status other than 0; 2 bad arguments; 3
    /// this machine does not allow it, and why; 130 interrupted, what was traced until then is kept.
    Trace(Box<TraceArguments>),
    /// Build an index on documents that exist already, under trace: how their files are read, and what a remedy does
    ///
    /// Exit status: 0 done; 1 a remedy changed the documents; 2 bad arguments or plan; 3 something around is not as needed; 130
    /// interrupted, what was measured until then is kept.
    IndexBuild(Box<IndexBuildArguments>),
    /// Send messages through a capped collection by one driver after the other, and explain how long each took
    ///
    /// Exit status: 0 done; 1 messages were lost or came twice, or a driver failed; 2 bad arguments or plan; 3 something around
    /// is not as needed; 130 interrupted, what was measured until then is kept.
    Tail(Box<TailArguments>),
    /// Render a recorded run, an experiment or a trace again
    Report(ReportArguments),
    /// Write a recorded run in a form that other programs read
    Export(ExportArguments),
    /// Start servers that stay, look at them, stop them; show placements
    Server(ServerArguments),
    /// Measure the load generator itself and keep the result
    Selfcheck(SelfcheckArguments),
    /// Check this machine and a server before a run, and say what to change
    ///
    /// Exit status: 0 nothing fails; 1 a check fails, or a change could not be taken back; 2 bad
    /// arguments; 3 the server cannot be reached or a change cannot be made.
    Doctor(DoctorArguments),
    /// Run a workload, or an experiment, on many hosts at once
    ///
    /// The table `[fleet]` of the plan says which. Exit status: that of the verb; 3 a host, Redis or Ansible is not as needed.
    Fleet(FleetArguments),
    /// Do what the controller of a fleet says: load its servers, or start one
    ///
    /// Exit status: 0 the controller has ended the run; 3 the controller or Redis has gone, or this host is not as needed.
    Agent(AgentArguments),
    /// Print the completions of a shell
    Completions(CompletionArguments),
    /// Print the manual page, or write one page per command into a folder
    Man(ManArguments),
    /// Serve as a responder with known behaviour until standard input ends
    #[command(hide = true)]
    Responder(ResponderArguments),
}

#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What can be done on many hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// As `dyno run`
    Run(Box<OnHosts<RunArguments>>),
    /// As `dyno soak`
    Soak(Box<OnHosts<SoakArguments>>),
    /// As `dyno sweep`
    Sweep(Box<OnHosts<SweepArguments>>),
    /// As `dyno xmax`
    Xmax(Box<OnHosts<XmaxArguments>>),
    /// As `dyno slo`
    Slo(Box<OnHosts<SloArguments>>),
    /// As `dyno ab`
    Ab(Box<OnHosts<AbArguments>>),
    /// As `dyno resume`, of an experiment that began on a fleet
    Resume(Box<OnHosts<ResumeArguments>>),
    /// Write what another system needs to run the fleet of a plan
    Render(RenderArguments),
}

/// A verb, and the hosts that it is done on.
#[derive(Debug, Args)]
pub(crate) struct OnHosts<T: Args> {
    #[command(flatten)]
    pub(crate) hosts: HostArguments,
    #[command(flatten)]
    pub(crate) verb: T,
}

/// The hosts of a fleet, and where they meet.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Inventory of Ansible with the hosts of the plan
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub(crate) inventory: PathBuf,
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    /// Name of the run in Redis and on the hosts, up to 56 letters, digits, `.`, `_` and `-`; default: one of its own
    #[arg(long = "fleet-run", value_name = "NAME", help_heading = "Fleet")]
    pub(crate) run: Option<String>,
    /// Keep the logs of all hosts here; default: nothing is kept
    #[arg(long = "host-logs", value_name = "DIR", help_heading = "Fleet")]
    pub(crate) logs: Option<PathBuf>,
    /// Folder on each host that a folder for the run is made in, and taken away from
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        help_heading = "Fleet"
    )]
    pub(crate) host_folder: String,
}

/// The meeting point.
#[derive(Debug, Args)]
pub(crate) struct RedisArguments {
    /// Redis that all meet at, `redis://HOST[:PORT]`, or `rediss://` with TLS
    ///
    /// One with a password is taken from the variable `DYNO_REDIS`, or from the file that `DYNO_REDIS_FILE` names.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub(crate) redis: Option<String>,
    /// Certificates (PEM) that Redis is trusted by with `rediss://`; default: those of the system
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub(crate) redis_ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    /// Name of the run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: String,
    /// Number of this agent in the run, from 0
    #[arg(long, value_name = "N")]
    pub(crate) index: u32,
    /// Start servers in place of loading them
    #[arg(long)]
    pub(crate) serve: bool,
    /// Folder for data and logs of servers
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Remove that folder when the controller or Redis has gone, and nobody else would
    #[arg(long, requires = "folder")]
    pub(crate) remove_folder: bool,
    /// Longest wait for Redis and the controller
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "1m")]
    pub(crate) join_within: Span,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// The system
    #[arg(value_name = "SYSTEM")]
    pub(crate) system: RenderSystem,
    /// A plan with `[fleet.kubernetes]`
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: String,
    /// Folder for the manifests, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Name of the run in Redis
    #[arg(long = "fleet-run", value_name = "NAME", default_value = "fleet")]
    pub(crate) run: String,
}

/// Systems that manifests are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderSystem {
    /// Manifests for `kubectl apply -k`
    Kubernetes,
}

#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// End when no connection could be had for this time; default: 5m
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Load")]
    pub(crate) give_up: Option<Span>,
    /// End when less than this is free on the disk of the run directory or of the data
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB", help_heading = "Output")]
    pub(crate) least_free: Bytes,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Run directory; default: all runs of this person on this machine
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Print JSON in place of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it anew each second until nothing goes on
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// Run directory; needed if more than one run goes on
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Longest wait for its end
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "60s")]
    pub(crate) wait: Span,
}

/// What is watched while the load runs.
#[derive(Debug, Default, Args)]
pub(crate) struct ObserveArguments {
    /// Time from one look at machine and servers to the next, 100ms to 1m; default: 1s
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Watching")]
    pub(crate) observe_interval: Option<Span>,
    /// Watch neither this machine nor the servers; exporters that are named are read all the same
    #[arg(long, help_heading = "Watching", conflicts_with = "observe_interval")]
    pub(crate) no_observe: bool,
    /// Read this Prometheus exporter as well; can be given several times
    ///
    /// Such as `http://db1:9100/metrics` of a `node_exporter` on the server's host. NAME is that of its metrics; default:
    /// `exporter-1` and so on. One that wants a token or a password needs an entry in a plan, see `docs/plans.md`.
    #[arg(long = "exporter", value_name = "[NAME=]URL", help_heading = "Watching",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) exporters: Vec<String>,
}

/// Who is told while the load runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Serve metrics for Prometheus at this address while it runs, such as `127.0.0.1:9464`
    ///
    /// Port 0 takes a free one; standard error says which. Other addresses than those of this machine alone
    /// need `--metrics-token`. See `docs/prometheus.md`.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::address, help_heading = "Watching")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Tell metrics only to those who send this token, as `Authorization: Bearer TOKEN`
    ///
    /// At least 16 characters. Also the variable `DYNO_METRICS_TOKEN`, which keeps it out of the list of processes.
    #[arg(
        long,
        value_name = "TOKEN",
        help_heading = "Watching",
        requires = "metrics"
    )]
    pub(crate) metrics_token: Option<Secret>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// End the measure phase after this many operations
    ///
    /// Without `--duration` there is then no limit of time. Several servers share the sum of theirs.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) operations: Option<u64>,
    /// End the measure phase after this time, such as `90s` or `5m`; default of the built-in plans: 30s
    ///
    /// Without `--operations` there is then no limit of operations.
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Time under load before measuring starts; default of the built-in plans: 5s
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Load")]
    pub(crate) warmup: Option<Span>,
    /// Offered rate in operations per second, such as `20000` or `20k`
    ///
    /// Without `--schedule` it means a constant schedule.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// When operations start
    #[arg(long, value_name = "SCHEDULE", help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleName>,
    /// Largest share of failed operations, 0 to 1, with which the exit status is still 0; default: 0
    #[arg(long, value_name = "RATIO", help_heading = "Load")]
    pub(crate) tolerate_errors: Option<f64>,
    /// Run this shell command in the trace windows of the plan, or, if it has none, while measuring
    ///
    /// Such as `perf record -a -g`. Its output is kept in `traces/` of the run directory, in a folder that it
    /// runs in. At the end of the window it gets SIGINT.
    #[arg(long, value_name = "COMMAND", help_heading = "Load",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) trace: Option<String>,
    #[command(flatten)]
    pub(crate) observe: ObserveArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
    /// Spread the packets that this network card receives over CPUs while the run lasts, as root
    ///
    /// Such as `eth0` for all CPUs online, or `eth0=0-3`. What was set before comes back at the end; after
    /// SIGKILL, `dyno doctor` can bring it back.
    #[arg(long, value_name = "INTERFACE[=CPULIST]", help_heading = "Server",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) rps: Option<String>,
    /// Load nothing; the collection must hold the documents already
    #[arg(long, help_heading = "Data", conflicts_with = "fresh")]
    pub(crate) no_load: bool,
}

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
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Time under load before measuring starts, in each run; default of the built-in plans: 5s
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Load")]
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
        help_heading = "Output"
    )]
    pub(crate) format: ExperimentFormat,
    /// Print the runs that would be made and do nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
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
    /// When operations start at an offered rate; default: that of the plan, or `constant`
    #[arg(
        long,
        value_name = "SCHEDULE",
        help_heading = "Load",
        requires = "rates"
    )]
    pub(crate) schedule: Option<ScheduleName>,
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

#[derive(Debug, Args)]
pub(crate) struct SloArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Concurrent connections; default: those of the plan
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    /// When operations start; default: that of the plan, or `constant`
    #[arg(long, value_name = "SCHEDULE", help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleName>,
    /// Largest mean response time
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) mean: Option<Span>,
    /// Largest median response time
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) p50: Option<Span>,
    /// Largest 90th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) p90: Option<Span>,
    /// Largest 95th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) p95: Option<Span>,
    /// Largest 99th percentile of the response time
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) p99: Option<Span>,
    /// Largest 99.9th percentile of the response time
    #[arg(long = "p99.9", value_name = "TIME", value_parser = span, help_heading = "Objective")]
    pub(crate) p999: Option<Span>,
    /// Largest value of any percentile of the response time, such as `75=5ms`; may be repeated
    #[arg(long, value_name = "PERCENT=TIME", value_parser = percentile, help_heading = "Objective")]
    pub(crate) percentile: Vec<(f64, Span)>,
    /// Largest share of operations that may fail, 0 to 1; 0 if it is not given
    #[arg(long, value_name = "RATIO", help_heading = "Objective")]
    pub(crate) errors: Option<f64>,
    /// Distance of neighbouring rates, such as `4%` or `0.04`: runs are made until the interval of the answer
    /// reaches 1.25 times as far to either side
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "4%", help_heading = "Search")]
    pub(crate) resolution: f64,
    /// Most runs
    #[arg(long, value_name = "N", default_value_t = 60, help_heading = "Search",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) max_runs: u32,
    /// Make a run again in which the hypervisor took more than this share of the CPU time; `100%` counts every run
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%", help_heading = "Search")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
pub(crate) struct AbArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// The plan of B; default: that of A
    #[arg(value_name = "PLAN_B", value_parser = NonEmptyStringValueParser::new())]
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
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Comparison")]
    pub(crate) time_limit: Option<Span>,
    /// Run another pair in place of one in which the hypervisor took more than this share of the CPU time; `100%` counts
    /// every pair
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%", help_heading = "Comparison")]
    pub(crate) max_steal: f64,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Run directory of A, the baseline
    #[arg(value_name = "RUN_A")]
    pub(crate) run_a: PathBuf,
    /// Run directory of B
    #[arg(value_name = "RUN_B")]
    pub(crate) run_b: PathBuf,
    /// Compare the response times of this operation only, such as `read`
    #[arg(long, value_name = "OPERATION")]
    pub(crate) operation: Option<String>,
    /// Difference that is of no interest, such as `5%` or `0.05`
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "5%")]
    pub(crate) margin: f64,
    /// End with status 1 if B is certainly slower, and by more than this, such as `5%`; it is the margin, too
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "margin")]
    pub(crate) fail_if_slower: Option<f64>,
    /// Compare in spite of this difference, by the name that the comparison gives it; may be repeated
    ///
    /// Such as `server product`, where two products are what is compared.
    #[arg(long, value_name = "DIFFERENCE")]
    pub(crate) allow: Vec<String>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ExperimentFormat,
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
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ExperimentFormat,
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
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ExperimentFormat,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(subcommand)]
    pub(crate) command: ServerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Show where servers and clients would be put on this machine, and the caches; starts nothing
    ///
    /// Takes what `dyno server start` takes.
    Plan(Box<ServerPlanArguments>),
    /// Start servers that stay, for other tools or for several runs
    ///
    /// They end with `dyno server stop`, or with their supervisor, a process of `dyno` that holds them. Their data goes
    /// away then, unless `--data-dir` keeps it.
    Start(Box<ServerStartArguments>),
    /// Stop the servers of one deployment and remove what was made for them
    Stop(ServerStopArguments),
    /// Show one deployment and ask its servers whether they answer
    ///
    /// Exit status: 0 all answer; 1 one does not; 2 there is no such deployment.
    Status(ServerStatusArguments),
    /// Show all deployments that were started and not stopped
    List(ServerListArguments),
    /// Hold the servers of one deployment
    #[command(hide = true)]
    Supervise(ServerSuperviseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServerStartArguments {
    /// A plan whose `[server]` table says what is started, as for `dyno run`; default: one embedded server
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    /// Name of the deployment
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) format: ServerFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ServerStopArguments {
    /// Name of the deployment
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ServerStatusArguments {
    /// Name of the deployment
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
    /// Print the connection strings and nothing else, with the password if there is one
    ///
    /// Such as `DYNO_URI="$(dyno server status --uri)" dyno run a`, which keeps the password out of the list of processes. Of several pairs there is one on each line.
    #[arg(long)]
    pub(crate) uri: bool,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        conflicts_with = "uri"
    )]
    pub(crate) format: ServerFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ServerListArguments {
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ServerFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ServerSuperviseArguments {
    /// Folder of the deployment
    pub(crate) folder: PathBuf,
    /// Path of the embedded server
    #[arg(long, value_name = "PATH")]
    pub(crate) embedded_server: Option<PathBuf>,
}

/// Name of a deployment that has no other.
const DEFAULT_NAME: &str = "default";

#[derive(Debug, Args)]
pub(crate) struct ServerPlanArguments {
    /// A plan whose `[server]` table says what would be started, as for `dyno server start`; default: one embedded server
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) start: StartArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
}

/// What is run, and against which server.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArguments {
    /// A built-in plan, a plan file (TOML), or a YCSB property file
    ///
    /// Built-in: `a` to `f` (the mixes of YCSB), `90read10update`, `50read50update`, `30write70read`,
    /// `read`, `write`, `gated`, `pkm`, `storage-compare`. May be left out with `--wsf`.
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "wsf")]
    pub(crate) workload: Option<String>,
    /// Take the parameters of the Workload Services Framework's `Mongo-ycsb` from the environment
    ///
    /// `CLIENT_SERVER_PAIR`, `THREADS`, `NUMACTL_OPTION` and so on, by their names there; `TESTCASE` or
    /// `WORKLOAD_FILE` names the workload. Options count more. `docs/wsf.md` has all of them.
    #[arg(long, help_heading = "Load")]
    pub(crate) wsf: bool,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Aim at a server that runs already
    ///
    /// A connection string (`mongodb://…` or `mongodb+srv://…`). Its database, if it names one
    /// other than `admin`, is used in place of the plan's. Credentials in it go to the server only.
    /// The variable keeps them out of the list of processes.
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server",
        conflicts_with_all = ["pairs", "topology", "placement", "mongod", "mongos", "cache", "tls", "auth", "data_dir"]
    )]
    pub(crate) uri: Option<String>,
    /// YCSB property `NAME=VALUE`, laid over the plan; may be repeated, the last one wins
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = property, help_heading = "Load")]
    pub(crate) properties: Vec<(String, String)>,
    /// Accept unknown YCSB property names, with a warning
    #[arg(long, help_heading = "Load")]
    pub(crate) lenient: bool,
}

/// Which servers are started, where, and with which settings.
#[derive(Clone, Debug, Args)]
pub(crate) struct StartArguments {
    /// Start this many independent servers and load each with a client of its own, all at once
    ///
    /// Clients, threads, records and rate are those of one of them. Of `--operations` all do N times
    /// that many together, a fast server more than a slow one. The result shows all together, with
    /// merged latencies, and each alone.
    #[arg(long, value_name = "N", help_heading = "Server",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) pairs: Option<u32>,
    /// Servers that are started and joined: `standalone`, `pairs=N`, `replica-set=N[+ARBITERS]`, `sharded=SHARDSxMEMBERS`
    ///
    /// With parts, such as `replica-set=3,priorities=2/1/0` or `sharded=2x3,key=_id:hashed,chunks=64,balancer=on`.
    /// Replica sets and clusters need `--server mongod`.
    #[arg(long, value_name = "TOPOLOGY", help_heading = "Server", conflicts_with = "pairs",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) topology: Option<String>,
    /// Put servers and clients on CPUs and memory of this machine
    ///
    /// `none`, `interleave`, `spread`, `node=K`, `cores=LIST`, `cores-per-instance=N[,smt]` or `custom=…`, and for
    /// the clients `client=same|other|LIST`, such as `'spread client=other'`. `dyno server plan` shows it.
    #[arg(long, value_name = "POLICY", help_heading = "Server",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) placement: Option<String>,
    /// Start this kind of server for the run; default: `embedded`, unless `--uri` is given
    #[arg(long, value_name = "KIND", help_heading = "Server")]
    pub(crate) server: Option<ServerName>,
    /// Path of the `mongod` to start; default: `mongod` on `PATH`. Implies `--server mongod`
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    pub(crate) mongod: Option<String>,
    /// Path of the `mongos` of a sharded cluster; default: beside `mongod`, or on `PATH`
    #[arg(long, value_name = "PATH", help_heading = "Server")]
    pub(crate) mongos: Option<String>,
    /// Cache of each server that is started, such as `2GiB`
    ///
    /// Default: the server's own; of several servers each a share of half the memory.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Server")]
    pub(crate) cache: Option<Bytes>,
    /// Encrypt connections to the servers that are started, by certificates made for the run
    #[arg(long, help_heading = "Server")]
    pub(crate) tls: bool,
    /// Authenticate at the servers that are started, as a user made for the run
    #[arg(long, help_heading = "Server")]
    pub(crate) auth: bool,
    /// Data folder of the server that is started; it is kept
    ///
    /// Default: a temporary folder inside the run directory, removed at the end.
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) data_dir: Option<String>,
    /// Path of the embedded server `secantusd-rs`
    ///
    /// Default: where `make setup` puts it, beside `dyno`, or on `PATH`.
    #[arg(
        long,
        value_name = "PATH",
        env = "DYNO_EMBEDDED_SERVER",
        help_heading = "Server"
    )]
    pub(crate) embedded_server: Option<PathBuf>,
    /// Set any key of the plan, such as `server.block_compressor=zlib`; may be repeated, the last one wins
    ///
    /// Keys and values as in a plan file (docs/plans.md); a text needs no quotes.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    pub(crate) settings: Vec<(String, String)>,
}

/// How the client works.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClientArguments {
    /// Concurrent connections, each with at most one operation in flight (YCSB's threads); default: 16
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) clients: Option<u32>,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
}

/// How a client works, whatever the number of clients.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArguments {
    /// Worker threads that share the connections, at most one per connection
    ///
    /// Default: half of the cores if the server is on this machine, else all of them.
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) threads: Option<u32>,
    /// Who speaks the protocol: `wire` is our own and cheapest path, `driver` the official driver
    #[arg(long, value_name = "BACKEND", help_heading = "Client")]
    pub(crate) backend: Option<BackendName>,
    /// Start of all random sequences; the same seed repeats the same operations; default: 42
    #[arg(long, value_name = "N", help_heading = "Client")]
    pub(crate) seed: Option<u64>,
    /// An operation without an answer after this time has failed; default: 10s
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Client")]
    pub(crate) timeout: Option<Span>,
}

/// Which documents there are.
#[derive(Clone, Debug, Args)]
pub(crate) struct DataArguments {
    /// Documents of the data set; default of the built-in plans: 100000
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) records: Option<u64>,
    /// Documents per insert command of the load phase; default: 100
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) batch: Option<u32>,
    /// Drop the collection first
    #[arg(long, help_heading = "Data")]
    pub(crate) fresh: bool,
}

/// What is written where.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArguments {
    /// Run directory; default: `runs/TIME-NAME`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) format: RunFormat,
    /// Print the resolved plan and do nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct YcsbArguments {
    /// `load` or `run`, the binding `mongodb`, and YCSB's options
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Trace this process, its threads and what it starts; can be given several times
    #[arg(long = "pid", value_name = "PID", help_heading = "What is traced",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: Vec<u32>,
    /// Trace the server on this machine that a connection string leads to; its files are told by what they hold
    #[arg(long, value_name = "URI", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Only files that this pattern fits, such as `*.wt`; one with `/` is a pattern of whole paths. Can be given several times
    #[arg(long = "file", value_name = "PATTERN", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) files: Vec<String>,
    /// Trace reads, and accesses to mapped files; without this, `--writes` and `--fsync` all three
    #[arg(long, help_heading = "What is traced")]
    pub(crate) reads: bool,
    /// Trace writes
    #[arg(long, help_heading = "What is traced")]
    pub(crate) writes: bool,
    /// Trace flushes: `fsync`, `fdatasync` and the like
    #[arg(long, help_heading = "What is traced")]
    pub(crate) fsync: bool,
    /// Leave out calls for fewer bytes
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "What is traced")]
    pub(crate) smallest: Option<Bytes>,
    /// End after this time; a COMMAND is asked to end then. Default: until COMMAND or the processes end, or Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = span, help_heading = "How")]
    pub(crate) length: Option<Span>,
    /// Keep counts and histograms of each file, and no single calls: costs less, stays small for days
    #[arg(long, help_heading = "How")]
    pub(crate) aggregated: bool,
    /// Leave the block layer out: what was read from the page cache is not told from what was read from the device
    #[arg(long, help_heading = "How")]
    pub(crate) no_block: bool,
    /// Have the kernel count how long the probes run, which makes each of them a little slower
    #[arg(long, help_heading = "How")]
    pub(crate) cost: bool,
    /// Memory for events on their way from the kernel, a power of two; more of it loses fewer under bursts
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB", help_heading = "How")]
    pub(crate) buffer: Bytes,
    /// A call that begins at most this far behind the end of an earlier one of its stream still continues it
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "128KiB", help_heading = "Output")]
    pub(crate) gap: Bytes,
    #[command(flatten)]
    pub(crate) part: TracePart,
    /// Folder of the trace; default: `runs/TIME-trace`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What to print
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) format: TraceFormat,
    /// Program to start and trace, with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct IndexBuildArguments {
    /// How the documents come into the collection: a built-in layout, or a plan file with an `[index_build]` table
    ///
    /// Built-in: `ordered`, `shuffled`, `concurrent`, `churned`. See `docs/index-build.md`.
    #[arg(value_name = "LAYOUT", default_value = "churned", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) layout: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Build the index on a server on this machine that runs already: on one of its collections, or on documents that are loaded
    /// into it and stay
    ///
    /// A connection string. The variable keeps credentials out of the list of processes.
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server",
        conflicts_with_all = ["pairs", "topology", "placement", "mongod", "mongos", "cache", "tls", "auth", "data_dir"]
    )]
    pub(crate) uri: Option<String>,
    /// Take this collection as it is, and load nothing; of `--uri` or `--data-dir`
    #[arg(long, value_name = "DATABASE.COLLECTION", value_parser = namespace, help_heading = "Data", conflicts_with = "layout")]
    pub(crate) collection: Option<(String, String)>,
    /// Documents that are loaded; default of the built-in layouts: 40000, of 3 KB each
    #[arg(
        long,
        value_name = "N",
        help_heading = "Data",
        conflicts_with = "collection"
    )]
    pub(crate) records: Option<u64>,
    /// Start of all random sequences; the same seed makes the same documents; default: 42
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) seed: Option<u64>,
    /// Fields of the index, such as `date:-1,number:1`; default: `date`
    #[arg(long, value_name = "FIELD[:-1],…", help_heading = "Index", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) keys: Option<String>,
    /// Leave caches as they are, in place of restarting the server and dropping the page cache, which needs root
    #[arg(long, help_heading = "Index")]
    pub(crate) warm: bool,
    /// Give the documents another order on the disk, verify them, and build the index again
    ///
    /// `rewrite` copies them in the order of `_id`, `natural-copy` in the order of the server, `dump` goes by a file,
    /// `compact` leaves it to the server. Nothing is dropped before its copy is verified.
    #[arg(long, value_name = "REMEDY", help_heading = "Index")]
    pub(crate) remedy: Option<RemedyName>,
    /// Put the data on a disk of its own, in a file, that takes at most this many reads and writes per second while an index is built
    ///
    /// So a fast machine shows what a disk with seeks does. Needs root.
    #[arg(long, value_name = "N", help_heading = "Index", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iops: Option<u32>,
    /// Folder of the experiment; default: `experiments/TIME-index-build-NAME`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What to print
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) format: TraceFormat,
    /// Print the plan and do nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// What is measured: `tail`, `tail-riddle`, `tail-pool`, or a plan file with a `[tail]` table; see `docs/tail.md`
    #[arg(value_name = "PLAN", default_value = "tail", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Send the messages through a server that runs already
    ///
    /// A connection string. The variable keeps credentials out of the list of processes. The collection must not be there; it is
    /// created and dropped again.
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server",
        conflicts_with_all = ["pairs", "topology", "placement", "mongod", "mongos", "cache", "tls", "auth", "data_dir"]
    )]
    pub(crate) uri: Option<String>,
    /// Drivers whose producers are measured, one after the other: folders of `drivers/`; default: all that can run here
    #[arg(
        long = "producer",
        value_name = "DRIVER,…",
        value_delimiter = ',',
        help_heading = "Messages"
    )]
    pub(crate) producer: Vec<String>,
    /// Drivers whose consumers get the messages; default: `wire`
    #[arg(
        long = "consumer",
        value_name = "DRIVER,…",
        value_delimiter = ',',
        help_heading = "Messages"
    )]
    pub(crate) consumer: Vec<String>,
    /// Messages of each producer; default: 100000
    #[arg(long, value_name = "N", help_heading = "Messages")]
    pub(crate) messages: Option<u64>,
    /// Messages per second that are due, whatever the server does; default: each as soon as it may be sent
    #[arg(long, value_name = "R", help_heading = "Messages")]
    pub(crate) rate: Option<f64>,
    /// Most inserts without an answer, or `unbounded`; several are measured one after the other; default: 1
    #[arg(
        long,
        value_name = "W,…",
        value_delimiter = ',',
        help_heading = "Messages"
    )]
    pub(crate) in_flight: Vec<String>,
    /// Connections of a driver's pool; several are measured one after the other; default: 100
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        help_heading = "Messages"
    )]
    pub(crate) pool: Vec<u32>,
    /// Producers at once; default: 1
    #[arg(long, value_name = "P", help_heading = "Messages")]
    pub(crate) producers: Option<u32>,
    /// Consumers at once, each of which gets all messages; default: 1
    #[arg(long, value_name = "C", help_heading = "Messages")]
    pub(crate) consumers: Option<u32>,
    /// Bytes added to each message; default: 100
    #[arg(long, value_name = "BYTES", value_parser = size, help_heading = "Messages")]
    pub(crate) size: Option<Bytes>,
    /// Size of the capped collection; default: room for all messages
    #[arg(long, value_name = "BYTES", value_parser = size, help_heading = "Messages")]
    pub(crate) capped_size: Option<Bytes>,
    /// Write concern of the inserts: `0`, `1`, another number, or `majority`; default: 1
    #[arg(long, value_name = "W", help_heading = "Messages")]
    pub(crate) write_concern: Option<String>,
    /// How consumers get messages; default: `tailable`
    #[arg(long, value_name = "MODE", help_heading = "Messages")]
    pub(crate) mode: Option<TailModeName>,
    /// Time that a consumer spends on each message: a slow consumer
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Messages")]
    pub(crate) work: Option<Span>,
    /// Start of all random sequences; default: 42
    #[arg(long, value_name = "N", help_heading = "Messages")]
    pub(crate) seed: Option<u64>,
    /// Folder of the drivers; default: `drivers` here or in the project that this program was built from
    #[arg(
        long,
        value_name = "DIR",
        env = "DYNO_DRIVERS",
        help_heading = "Messages"
    )]
    pub(crate) drivers: Option<PathBuf>,
    /// Folder of the experiment; default: `experiments/TIME-tail-NAME`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What to print
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output"
    )]
    pub(crate) format: TraceFormat,
    /// Print the plan and do nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TailModeName {
    /// A tailable cursor that awaits data
    Tailable,
    /// A change stream, which needs a replica set
    ChangeStream,
    /// A query again and again
    Poll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RemedyName {
    /// A copy in the order of `_id` takes the place of the collection
    Rewrite,
    /// A copy in the order in which the server gives the documents takes its place
    NaturalCopy,
    /// Dump to a file and restore
    Dump,
    /// The server's `compact`
    Compact,
}

/// `database.collection`, of which the latter may have more dots.
fn namespace(text: &str) -> Result<(String, String), String> {
    match text.split_once('.') {
        Some((database, collection)) if !database.is_empty() && !collection.is_empty() => {
            Ok((database.to_owned(), collection.to_owned()))
        }
        _ => Err("give the database and the collection, such as `shop.orders`".to_owned()),
    }
}

/// Which part of a trace is looked at.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TracePart {
    /// Only calls that began in this part of the trace, such as `10s..40s`, counted from its start; either end can be absent
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window, help_heading = "Output")]
    pub(crate) window: Option<TraceWindow>,
    /// Show the figures of each piece of this length too
    #[arg(long, value_name = "TIME", value_parser = span, help_heading = "Output")]
    pub(crate) slices: Option<Span>,
}

impl TracePart {
    /// Whether it is the whole trace in one piece.
    pub(crate) fn is_all(&self) -> bool {
        self.window.is_none() && self.slices.is_none()
    }
}

/// A part of a trace, from its start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceWindow {
    /// Its start; zero where none was given.
    pub(crate) from: Duration,
    /// Its end; `None` for that of the trace.
    pub(crate) to: Option<Duration>,
}

/// Reads `FROM..TO`.
fn parse_window(text: &str) -> Result<TraceWindow, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("expected two times with `..` between them, such as `10s..40s`")?;
    let time = |text: &str| match text {
        "" => Ok(None),
        text => span(text).map(|span| Some(span.0)),
    };
    let window = TraceWindow {
        from: time(from)?.unwrap_or_default(),
        to: time(to)?,
    };
    match window.to {
        Some(to) if to <= window.from => Err("it ends before it begins".to_owned()),
        _ => Ok(window),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Text for a terminal
    Human,
    /// Text for a document
    Markdown,
    /// For programs
    Json,
}

impl From<TraceFormat> for dyno_report::experiment::ExperimentFormat {
    fn from(format: TraceFormat) -> Self {
        match format {
            TraceFormat::Human => Self::Human,
            TraceFormat::Markdown => Self::Markdown,
            TraceFormat::Json => Self::Json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Run directory, folder of an experiment, or folder of a trace
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// What to render
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReportFormat,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Of a trace: a call that begins at most this far behind the end of an earlier one of its stream still continues
    /// it; default: as when it was recorded
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Of a trace")]
    pub(crate) gap: Option<Bytes>,
    #[command(flatten)]
    pub(crate) part: TracePart,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Run directory
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The form
    #[arg(long, value_name = "FORM")]
    pub(crate) to: ExportForm,
    /// Write to this file; without it text goes to standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Only this phase; with `--to hlog`
    #[arg(long, value_name = "PHASE")]
    pub(crate) phase: Option<PhaseName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One long table: time, phase, source, metric, instance, value, unit
    Csv,
    /// The same table for data frames; needs `--output`
    Parquet,
    /// The latencies as an HdrHistogram interval log, checked
    Hlog,
    /// Metrics with their times, for `promtool tsdb create-blocks-from openmetrics`
    Openmetrics,
    /// Phases, changes, traces, outages and caveats as a JSON list of Grafana's annotations
    Annotations,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PhaseName {
    /// Inserting the data set
    Load,
    /// Load before measuring
    Warmup,
    /// The result
    Measure,
}

#[derive(Debug, Args)]
pub(crate) struct SelfcheckArguments {
    /// Length of each of the measurements
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "3s")]
    pub(crate) duration: Span,
    /// Connections of the measurement of the highest rate
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: u32,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: SelfcheckFormat,
    /// Do not keep the result
    #[arg(long)]
    pub(crate) no_save: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The server to check
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server"
    )]
    pub(crate) uri: Option<String>,
    /// The server to check, by its process on this machine; it is not connected to
    #[arg(
        long,
        value_name = "PID",
        help_heading = "Server",
        conflicts_with = "uri"
    )]
    pub(crate) server_pid: Option<u32>,
    /// Version of the MongoDB server, where it cannot be asked, such as `8.0`
    #[arg(long, value_name = "VERSION", value_parser = server_version, help_heading = "Server")]
    pub(crate) server_version: Option<String>,
    /// Folder of the server's data; default: what the server says
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Cache of one server, such as `4GiB`; default: what the server says
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Server")]
    pub(crate) cache: Option<Bytes>,
    /// Servers of this kind on the machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Server")]
    pub(crate) instances: u64,
    /// Size of the data that is going to be loaded
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Load")]
    pub(crate) data_size: Option<Bytes>,
    /// Connections that the load is going to have
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) connections: Option<u64>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: DoctorFormat,
    /// Change what these checks advise, or `all`; nothing else is changed
    ///
    /// What was there before is kept in the state folder until `--revert`.
    #[arg(long, value_name = "CHECK", value_delimiter = ',', num_args = 1)]
    pub(crate) apply: Vec<String>,
    /// Take back what `--apply` has changed since the machine started, the last change first
    #[arg(long, conflicts_with = "apply")]
    pub(crate) revert: bool,
    /// Read and change the files below this folder in place of `/`
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for the pages; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ResponderArguments {
    /// TCP port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Bytes of all values of the document that reads return
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) document_bytes: u32,
    /// Documents that `count` reports at first
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) documents: u64,
    /// Distance from the beginning of one stall to the next
    #[arg(long, value_name = "TIME", value_parser = span, requires = "stall_length")]
    pub(crate) stall_every: Option<Span>,
    /// Length of a stall: nothing is answered
    #[arg(long, value_name = "TIME", value_parser = span, requires = "stall_every")]
    pub(crate) stall_length: Option<Span>,
    /// Service time of a single queue in microseconds
    #[arg(long, value_name = "N")]
    pub(crate) service_us: Option<u64>,
    /// The service time is exponentially distributed, with `--service-us` as its mean
    #[arg(long, requires = "service_us")]
    pub(crate) exponential: bool,
    /// Every Nth data command meets this fault; may be repeated
    ///
    /// KIND is `error=CODE`, `write-error=CODE`, `drop`, `hang`, `garbage`, `truncate`, `wrong-response` or `not-found`.
    #[arg(long, value_name = "KIND:N", value_parser = crate::commands::responder::fault_rule)]
    pub(crate) fault: Vec<dyno_load::responder::FaultRule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerName {
    /// The embedded server `secantusd-rs`
    Embedded,
    /// MongoDB's own server
    Mongod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleName {
    /// Each client starts its next operation when its last one has ended
    Closed,
    /// Operations start at equal distances, whatever the server does
    Constant,
    /// Operations start at random, exponentially distributed distances, whatever the server does
    Poisson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// At random, by the seed, so that a drift of the machine does not look like an effect
    Random,
    /// As given
    Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExperimentFormat {
    /// Tables and sentences for people
    Human,
    /// Markdown
    Markdown,
    /// One self-contained page with charts
    Html,
    /// One JSON document
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// Our own protocol path
    Wire,
    /// The official Rust driver
    Driver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Tables for people
    Human,
    /// One JSON document, as in `run.json`
    Json,
    /// The text that YCSB prints
    Ycsb,
    /// The key figures of the multi-instance benchmark, by its labels
    Kpi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerFormat {
    /// A table for people
    Human,
    /// One JSON document
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// A table for people
    Human,
    /// One JSON document
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Tables for people
    Human,
    /// Markdown
    Markdown,
    /// One self-contained page with charts
    Html,
    /// One JSON document, as in `run.json`
    Json,
    /// The text that YCSB prints
    Ycsb,
    /// The key figures of the multi-instance benchmark, by its labels
    Kpi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SelfcheckFormat {
    /// A table for people
    Human,
    /// One JSON document, as it is kept
    Json,
}

pub(crate) fn span(text: &str) -> Result<Span, String> {
    text.parse()
        .map_err(|error: dyno_plan::units::UnitError| error.to_string())
}

/// A percentile above 0 and below 100 with a time: `75=5ms`.
fn percentile(text: &str) -> Result<(f64, Span), String> {
    let (percent, time) = text
        .split_once('=')
        .ok_or("it must be `PERCENT=TIME`, such as `75=5ms`")?;
    match percent.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok((percent, span(time.trim())?)),
        _ => Err("the percentile must be above 0 and below 100, such as in `75=5ms`".into()),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("it must be `KEY=VALUE`, such as `server.cache=1GiB`".into()),
    }
}

/// A share above 0 and below 1: `5%` or `0.05`.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value * unit < 1.0 => Ok(value * unit),
        _ => Err("it must be above 0 and below 1, such as `5%` or `0.05`".into()),
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    text.parse()
        .map_err(|error: dyno_plan::units::UnitError| error.to_string())
}

fn server_version(text: &str) -> Result<String, String> {
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let release = text.split('-').next().unwrap_or_default();
    if release.split('.').all(numbers) {
        Ok(text.to_owned())
    } else {
        Err("a version is numbers with dots between, such as `8.0.3`".into())
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
        .map_err(|error: dyno_plan::units::UnitError| error.to_string())
}

pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_part_of_a_trace_is_two_times_of_which_either_can_be_absent() {
        let window = |from, to: Option<u64>| TraceWindow {
            from: Duration::from_secs(from),
            to: to.map(Duration::from_secs),
        };
        assert_eq!(parse_window("10s..40s"), Ok(window(10, Some(40))));
        assert_eq!(parse_window("..40s"), Ok(window(0, Some(40))));
        assert_eq!(parse_window("1m.."), Ok(window(60, None)));
        for wrong in ["10s", "40s..10s", "5s..5s", "a..b", "1s..2s..3s"] {
            assert!(parse_window(wrong).is_err(), "{wrong}");
        }
    }

    fn run(arguments: &[&str]) -> Result<Box<RunArguments>, clap::Error> {
        let all = ["dyno", "run", "a"].iter().chain(arguments);
        Arguments::try_parse_from(all).map(|arguments| match arguments.command {
            Command::Run(run) => run,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_left_out_change_nothing() {
        let run = run(&[]).expect("a workload is enough");
        assert_eq!(run.target.workload.as_deref(), Some("a"));
        assert!(!run.target.wsf && run.rps.is_none());
        assert_eq!(
            (run.operations, run.duration, run.warmup, run.rate),
            (None, None, None, None)
        );
        assert_eq!(
            (
                run.client.clients,
                run.client.worker.threads,
                run.client.worker.seed
            ),
            (None, None, None)
        );
        assert_eq!(
            (run.data.records, run.data.batch, run.data.fresh),
            (None, None, false)
        );
        assert_eq!(run.output.format, RunFormat::Human);
        assert!(!run.no_load && !run.output.dry_run && run.output.out.is_none());
    }

    #[test]
    fn every_option_of_run_is_read() {
        let run = run(&[
            "--server",
            "mongod",
            "--mongod",
            "/m",
            "--data-dir",
            "/d",
            "--records",
            "7",
            "--operations",
            "8",
            "--duration",
            "9s",
            "--warmup",
            "1s",
            "--clients",
            "3",
            "--threads",
            "2",
            "--rate",
            "20k",
            "--schedule",
            "poisson",
            "--backend",
            "driver",
            "--seed",
            "5",
            "-p",
            "fieldcount=3",
            "-p",
            "x=a=b",
            "--timeout",
            "250ms",
            "--tolerate-errors",
            "0.01",
            "--out",
            "/o",
            "--format",
            "json",
            "--dry-run",
            "--no-load",
            "--batch",
            "6",
            "--lenient",
        ])
        .expect("all of them are valid");
        assert_eq!(run.target.start.server, Some(ServerName::Mongod));
        assert_eq!(run.target.start.mongod.as_deref(), Some("/m"));
        assert_eq!(run.target.start.data_dir.as_deref(), Some("/d"));
        assert_eq!(
            (run.data.records, run.operations, run.data.batch),
            (Some(7), Some(8), Some(6))
        );
        assert_eq!(
            (run.duration, run.warmup),
            (Some(Span::from_secs(9)), Some(Span::from_secs(1)))
        );
        assert_eq!(
            (
                run.client.clients,
                run.client.worker.threads,
                run.client.worker.seed
            ),
            (Some(3), Some(2), Some(5))
        );
        assert_eq!(run.rate, Some(Rate(20_000.0)));
        assert_eq!(run.schedule, Some(ScheduleName::Poisson));
        assert_eq!(run.client.worker.backend, Some(BackendName::Driver));
        let properties =
            [("fieldcount", "3"), ("x", "a=b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(run.target.properties, properties);
        assert_eq!(
            run.client.worker.timeout,
            Some(Span(std::time::Duration::from_millis(250)))
        );
        assert_eq!(run.tolerate_errors, Some(0.01));
        assert_eq!(run.output.out, Some("/o".into()));
        assert_eq!(run.output.format, RunFormat::Json);
        assert!(run.output.dry_run && run.no_load && run.target.lenient);
    }

    #[test]
    fn bad_values_and_conflicts_are_refused() {
        for arguments in [
            &["--duration", "soon"][..],
            &["--rate", "0"],
            &["--rate", "fast"],
            &["--schedule", "open"],
            &["--backend", "java"],
            &["--format", "xml"],
            &["--clients", "-1"],
            &["-p", "novalue"],
            &["-p", "=x"],
            &["--no-load", "--fresh"],
            &["--uri", "mongodb://h", "--mongod", "/m"],
            &["--uri", "mongodb://h", "--data-dir", "/d"],
            &["--quiet", "--verbose"],
            &["--rps", ""],
            &["--unknown"],
        ] {
            assert!(run(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn only_the_framework_can_name_the_workload_elsewhere() {
        assert!(Arguments::try_parse_from(["dyno", "run"]).is_err());
        for command in ["run", "load"] {
            assert!(Arguments::try_parse_from(["dyno", command, "--wsf"]).is_ok());
            assert!(Arguments::try_parse_from(["dyno", command, "a", "--wsf"]).is_ok());
        }
    }

    #[test]
    fn arguments_of_ycsb_are_passed_on_untouched() {
        let all = [
            "dyno", "ycsb", "run", "mongodb", "-s", "-P", "w", "-p", "a=b", "-threads", "4",
            "--help",
        ];
        let arguments = Arguments::try_parse_from(all).expect("they are read later");
        let Command::Ycsb(ycsb) = arguments.command else {
            panic!("not ycsb")
        };
        assert_eq!(ycsb.arguments, all[2..]);
    }

    #[test]
    fn a_stall_of_the_responder_needs_both_times() {
        assert!(Arguments::try_parse_from(["dyno", "responder", "--stall-every", "1s"]).is_err());
        let both = [
            "dyno",
            "responder",
            "--stall-every",
            "1s",
            "--stall-length",
            "10ms",
        ];
        assert!(Arguments::try_parse_from(both).is_ok());
    }
}
