//! Arguments of a run, and option groups shared with other commands.

use super::names::{one_of, some_of};
use super::standing::{MetricsArguments, ObserveArguments, ShownArguments};
use super::values::{count, latency, one_number, property, quantity, setting, share_or_none};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use dyno_plan::model::{Backend, ScheduleKind, ServerKind};
use dyno_plan::units::{CacheSize, Rate, Span};
use dyno_report::Format;
use serde::Serialize;
use std::path::PathBuf;

/// Options of started servers; they conflict with `--uri`.
const OF_STARTED: [&str; 9] =
    ["pairs", "topology", "placement", "mongod", "mongos", "cache", "tls", "auth", "data_dir"];

/// `dyno run`: a run or a suite.
#[derive(Debug, Args)]
pub(crate) struct SuiteArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// More workloads: run a suite, with one table of all results
    // Otherwise it would appear under the previous group's heading.
    #[arg(value_name = "WORKLOADS", help_heading = None::<&str>, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workloads: Vec<String>,
    /// Runs of each workload of a suite with each setting (default: the suite's, or 1)
    #[arg(long, value_name = "N", help_heading = "Suite",
          value_parser = clap::value_parser!(u32).range(1..=1000), hide_short_help = true)]
    pub(crate) repeat: Option<u32>,
    /// Report the share of each operation of a suite that took less than this, such as `1ms`
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Suite",
          hide_short_help = true)]
    pub(crate) below: Option<Span>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) base: BaseArguments,
    #[command(flatten)]
    pub(crate) client: ClientArguments,
    /// End the measure phase after this many operations
    ///
    /// Without `--duration` the phase then has no time limit. Several servers share the total of their operations.
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub(crate) operations: Option<u64>,
    /// Length of the measure phase (built-in plans: 30s)
    ///
    /// Such as `90s` or `5m`. Without `--operations` the number of operations is then unlimited.
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Offered operations per second, such as `20k`
    ///
    /// The schedule is `constant` unless `--schedule` is given.
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>, help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// Schedule of the operations
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Highest share of failed operations that still exits with status 0, such as `1%` or `0.01` (default: 0)
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = share_or_none,
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(crate) tolerate_errors: Option<f64>,
    /// Run this shell command while measuring, such as `perf record -g -p $DYNO_SERVER_PIDS`
    ///
    /// With trace windows in the plan, it runs in these. `DYNO_SERVER_PIDS` has the process ids of the servers that dyno
    /// starts, separated by commas; it cannot be used with `--uri`. The command runs in a folder below `traces/` of the run directory, which keeps its output. It
    /// receives SIGINT at the end of the window.
    #[arg(long, value_name = "COMMAND", help_heading = "Load",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) trace: Option<String>,
    /// Spread the packets that this network card receives over CPUs during the run; needs root
    ///
    /// Use `eth0` for all online CPUs, or `eth0=0-3`. The previous setting is restored at the end; after SIGKILL,
    /// `dyno doctor` can restore it.
    #[arg(long, value_name = "INTERFACE[=CPULIST]", help_heading = "Server",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) receive_packet_steering: Option<String>,
}

/// Options that runs and experiments share.
#[derive(Clone, Debug, Args)]
pub(crate) struct BaseArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Load before measuring starts (built-in plans: 5s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) warmup: Option<Span>,
    /// Do not load; the collection must hold the documents
    #[arg(long, help_heading = "Data", conflicts_with = "fresh")]
    pub(crate) no_load: bool,
    #[command(flatten)]
    pub(crate) observe: ObserveArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
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
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
}

/// The workload and the server.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArguments {
    /// A built-in plan, a plan file (TOML), or a YCSB property file
    ///
    /// Built-in plans: `a` to `f` (the YCSB mixes), `90read10update`, `50read50update`, `30write70read`,
    /// `read`, `write`, `gated`, `pkm`, `storage-compare`, `insert-benchmark`, `shop`, `crud-mix`. Optional with `--wsf`.
    /// `dyno run` also accepts suites: `replica-set-compare`, `storage-engine-compare`, `version-compare`, or a file.
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "wsf")]
    pub(crate) workload: Option<String>,
    /// Read the parameters of the Workload Services Framework's `Mongo-ycsb` from the environment
    ///
    /// The variables have the framework's names, such as `CLIENT_SERVER_PAIR`, `THREADS` or `NUMACTL_OPTION`. `TESTCASE` or
    /// `WORKLOAD_FILE` names the workload. Options override variables. With `--wsf=defaults` missing parameters have the
    /// framework's defaults, even if they make the run long or the data less safe: 4,000,000 records and operations, 180 s,
    /// no journal. `docs/wsf.md` lists all parameters.
    #[arg(
        long,
        value_name = "DEFAULTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "given",
        help_heading = "From other programs",
        hide_short_help = true
    )]
    pub(crate) wsf: Option<WsfDefaults>,
    #[command(flatten)]
    pub(crate) server: ChosenServer,
    /// Set a YCSB property, overriding the plan; may be repeated, the last one wins
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = property,
          help_heading = "From other programs", hide_short_help = true)]
    pub(crate) properties: Vec<(String, String)>,
    /// Accept unknown YCSB property names with a warning
    #[arg(long, help_heading = "From other programs", hide_short_help = true)]
    pub(crate) lenient: bool,
}

/// The servers: started for the work, or already running.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChosenServer {
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Use a running server, by its connection string
    ///
    /// The string starts with `mongodb://` or `mongodb+srv://`. A database in it, other than `admin`, replaces the plan's.
    /// Its credentials are sent only to the server. The variable keeps them out of the process list.
    ///
    /// `dyno index-build` needs a server on this machine, and keeps the documents that it loads. `dyno tail` creates its
    /// collection, which must not exist, and drops it again.
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server",
        conflicts_with_all = OF_STARTED
    )]
    pub(crate) uri: Option<String>,
}

/// Started servers: their kind, place and settings. The fields are keys of the plan's table `server`, except skipped ones.
#[derive(Clone, Debug, Args, Serialize)]
#[command(next_help_heading = "Server")]
pub(crate) struct StartArguments {
    /// Start N independent servers, and load each with its own client at the same time
    ///
    /// Clients, threads, records and rate apply to each server. `--operations` is multiplied by N and shared, so that a
    /// fast server executes more operations than a slow one. The result shows all servers together, with merged
    /// latencies, and each server alone.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=64), hide_short_help = true)]
    #[serde(skip)]
    pub(crate) pairs: Option<u32>,
    /// Topology of the servers to start: `standalone`, `pairs=N`, `replica-set=N[+ARBITERS]`, `sharded=SHARDSxMEMBERS`
    ///
    /// Append parameters after commas: `replica-set=3,priorities=2/1/0`,
    /// `sharded=2x3,key=_id:hashed,chunks=64,balancer=on`. Replica sets and clusters need `--server mongod`.
    #[arg(long, value_name = "TOPOLOGY", conflicts_with = "pairs",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) topology: Option<String>,
    /// Put servers and clients on CPUs and memory of this machine
    ///
    /// Servers: `none`, `interleave`, `spread`, `node=K`, `cores=LIST`, `cores-per-instance=N[,smt]` or `custom=…`. Clients:
    /// `client=same|other|LIST`, as in `'spread client=other'`. `dyno server plan` shows the result.
    #[arg(long, value_name = "POLICY",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) placement: Option<String>,
    /// Kind of server to start (default: `auto`)
    #[arg(long, value_name = "KIND",
          value_parser = some_of(ServerKind::NAMES, |kind| *kind != ServerKind::Uri))]
    #[serde(skip)]
    pub(crate) server: Option<ServerKind>,
    /// The `mongod` to start: a path, or an installed version
    ///
    /// `dyno server install` installs one. Implies `--server mongod`.
    ///
    /// Default: the variable `DYNO_MONGOD`, else `mongod` on `PATH`, else an installed version.
    #[arg(long, value_name = "PATH|VERSION")]
    #[serde(skip)]
    pub(crate) mongod: Option<String>,
    /// Path of the `mongos` of a sharded cluster (default: next to `mongod`, or on `PATH`)
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) mongos: Option<String>,
    /// Cache of each started server, such as `2GiB`
    ///
    /// `smallest` is the least that the server accepts.
    ///
    /// Default: the server's own. Several servers share half the memory equally.
    #[arg(long, value_name = "SIZE", value_parser = quantity::<CacheSize>)]
    pub(crate) cache: Option<CacheSize>,
    /// Encrypt connections to the started servers, with certificates made for the run
    #[arg(long, hide_short_help = true)]
    #[serde(skip)]
    pub(crate) tls: bool,
    /// Authenticate to the started servers, as a user made for the run
    #[arg(long, hide_short_help = true)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) auth: bool,
    /// Data folder of the started server; it is kept
    ///
    /// Default: a temporary folder inside the run directory, removed at the end.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    #[serde(skip)]
    pub(crate) data_dir: Option<String>,
    /// Path of the embedded server `secantusd-rs` to start, unless `--mongod` or `--server` is given
    ///
    /// Default: where `scripts/setup.sh embedded` installs it, next to `dyno`, or on `PATH`.
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER", hide_short_help = true)]
    #[serde(skip)]
    pub(crate) embedded_server: Option<PathBuf>,
    /// Set any key of the plan, such as `server.cache=1GiB`
    ///
    /// May be repeated; the last one wins.
    /// Keys and values are as in a plan file (`docs/plans.md`); strings need no quotes. With `dyno run` and `dyno sweep`,
    /// several values of a key (`V1,V2`) make several runs.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help_heading = "Plan")]
    #[serde(skip)]
    pub(crate) settings: Vec<(String, String)>,
}

/// Options of the client.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClientArguments {
    /// Connections, each with one operation in flight, like YCSB's threads (default: 16)
    #[arg(long, value_name = "N", value_parser = one_number, help_heading = "Load")]
    pub(crate) clients: Option<u32>,
    #[command(flatten)]
    pub(crate) worker: WorkerArguments,
}

/// Options of the client except the number of clients. The fields are keys of the plan's table `client`.
#[derive(Clone, Debug, Args, Serialize)]
#[command(next_help_heading = "Client")]
pub(crate) struct WorkerArguments {
    /// Worker threads that share the connections, at most one per connection
    ///
    /// Default: half of the cores if the server is on this machine, else all cores.
    #[arg(long, value_name = "N", hide_short_help = true)]
    #[serde(skip)]
    pub(crate) threads: Option<u32>,
    /// Protocol implementation: `wire` is built in and has the lowest overhead, `driver` is the official driver
    #[arg(long, value_name = "BACKEND", value_parser = one_of(Backend::NAMES), hide_short_help = true)]
    pub(crate) backend: Option<Backend>,
    /// Seed of all random sequences; the same seed repeats the same operations (default: 42)
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// Time without an answer after which an operation fails (default: 10s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, hide_short_help = true)]
    pub(crate) timeout: Option<Span>,
}

/// Options of the data set.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArguments {
    /// Number of documents, such as `10k` (built-in: 100000)
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) records: Option<u64>,
    /// Documents per insert command of the load phase (default: 100)
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) batch: Option<u32>,
    /// Drop the collection first
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Allow dropping a collection that holds documents not created by a benchmark
    #[arg(long, hide_short_help = true)]
    pub(crate) drop_foreign: bool,
}

/// Options of the output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Folder of the results
    ///
    /// Default: a new one below `runs` or `experiments`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Format on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        value_parser = one_of(Format::NAMES)
    )]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    /// Print what would run and how long, without running it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also print the first N documents and commands of a plan with own collections
    #[arg(
        long,
        value_name = "N",
        requires = "dry_run",
        hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub(crate) show: Option<u32>,
}

/// Length of the printed report.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExtentArguments {
    /// Print the whole `human` report instead of one screen
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
}

#[derive(Debug, Args)]
pub(crate) struct YcsbArguments {
    /// `load` or `run`, the binding `mongodb`, and YCSB's options
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

/// Values of `--wsf` for missing parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WsfDefaults {
    /// The framework's defaults for the shape of the load, the plan's for its length
    Given,
    /// The framework's defaults for all parameters
    Defaults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// Random order, by the seed, so that drift of the machine does not look like an effect
    Random,
    /// The given order
    Given,
}
