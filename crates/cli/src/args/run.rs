//! Arguments of a run, and the groups of options that others share with it.

use super::names::{one_of, some_of};
use super::standing::{GrafanaArguments, MetricsArguments, ObserveArguments, PriceArguments};
use super::values::{count, property, quantity, setting, share_or_none, span_above_0};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use dyno_plan::model::{Backend, ServerKind};
use dyno_plan::request::ScheduleKind;
use dyno_plan::units::{CacheSize, Rate, Span};
use dyno_report::Format;
use std::path::PathBuf;

/// Options of servers that are started, which say nothing of one that is already running.
pub(super) const OF_STARTED: [&str; 9] = [
    "pairs",
    "topology",
    "placement",
    "mongod",
    "mongos",
    "cache",
    "tls",
    "auth",
    "data_dir",
];

/// `dyno run`: a run, or a suite of several.
#[derive(Debug, Args)]
pub(crate) struct SuiteArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// Further workloads: a suite, with one table over all of them
    // Without this the heading of the groups before it would hold it, too.
    #[arg(value_name = "WORKLOADS", help_heading = None::<&str>, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workloads: Vec<String>,
    /// Runs of each workload of a suite, with each setting; default: 1, or that of the suite
    #[arg(long, value_name = "N", help_heading = "Suite",
          value_parser = clap::value_parser!(u32).range(1..=1000), hide_short_help = true)]
    pub(crate) repeat: Option<u32>,
    /// Tell for each kind of operation of a suite which share took less than this, such as `1ms`
    #[arg(long, value_name = "TIME", value_parser = span_above_0, help_heading = "Suite",
          hide_short_help = true)]
    pub(crate) below: Option<Span>,
}

#[derive(Clone, Debug, Args)]
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
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Load")]
    pub(crate) operations: Option<u64>,
    /// End the measure phase after this time, such as `90s` or `5m`; default of the built-in plans: 30s
    ///
    /// Without `--operations` there is then no limit of operations.
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) duration: Option<Span>,
    /// Time under load before measuring starts; default of the built-in plans: 5s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) warmup: Option<Span>,
    /// Offered rate in operations per second, such as `20000` or `20k`
    ///
    /// Without `--schedule` it means a constant schedule.
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>, help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// When operations start
    #[arg(long, value_name = "SCHEDULE", value_parser = one_of(ScheduleKind::NAMES), help_heading = "Load")]
    pub(crate) schedule: Option<ScheduleKind>,
    /// Largest share of failed operations with which the exit status is still 0, such as `1%` or `0.01`; default: 0
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = share_or_none,
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(crate) tolerate_errors: Option<f64>,
    /// Run this shell command in the trace windows of the plan, or, if it has none, while measuring
    ///
    /// Such as `perf record -a -g`. Its output is kept in `traces/` of the run directory, in a folder that it
    /// runs in. At the end of the window it gets SIGINT.
    #[arg(long, value_name = "COMMAND", help_heading = "Load",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) trace: Option<String>,
    #[command(flatten)]
    pub(crate) observe: ObserveArguments,
    #[command(flatten)]
    pub(crate) metrics: MetricsArguments,
    #[command(flatten)]
    pub(crate) grafana: GrafanaArguments,
    #[command(flatten)]
    pub(crate) price: PriceArguments,
    /// Spread the packets that this network card receives over CPUs while the run lasts, as root
    ///
    /// Such as `eth0` for all CPUs online, or `eth0=0-3`. What was set before comes back at the end; after
    /// SIGKILL, `dyno doctor` can bring it back.
    #[arg(long, value_name = "INTERFACE[=CPULIST]", help_heading = "Server",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) rps: Option<String>,
    /// Load nothing; the collection must hold the documents already
    #[arg(long, help_heading = "Data", conflicts_with = "fresh")]
    pub(crate) no_load: bool,
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
    pub(crate) price: PriceArguments,
}

/// What is run, and against which server.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArguments {
    /// A built-in plan, a plan file (TOML), or a YCSB property file
    ///
    /// Built-in: `a` to `f` (the mixes of YCSB), `90read10update`, `50read50update`, `30write70read`,
    /// `read`, `write`, `gated`, `pkm`, `storage-compare`, `insert-benchmark`. May be left out with `--wsf`. `dyno run` also
    /// takes suites of several: `replica-set-compare`, `storage-engine-compare`, `version-compare`, or a file.
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "wsf")]
    pub(crate) workload: Option<String>,
    /// Take the parameters of the Workload Services Framework's `Mongo-ycsb` from the environment
    ///
    /// `CLIENT_SERVER_PAIR`, `THREADS`, `NUMACTL_OPTION` and so on, by their names there; `TESTCASE` or
    /// `WORKLOAD_FILE` names the workload. Options count more. With `--wsf=defaults` what is not given has that workload's default
    /// also where it makes the run long or the data less safe: 4,000,000 records and operations, 180 s, no journal.
    /// `docs/wsf.md` has all of them.
    #[arg(
        long,
        value_name = "DEFAULTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "given",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(crate) wsf: Option<WsfDefaults>,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Aim at a server that is already running
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
        conflicts_with_all = OF_STARTED
    )]
    pub(crate) uri: Option<String>,
    /// YCSB property `NAME=VALUE`, laid over the plan; may be repeated, the last one wins
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = property, help_heading = "Load")]
    pub(crate) properties: Vec<(String, String)>,
    /// Accept unknown YCSB property names, with a warning
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub(crate) lenient: bool,
}

/// Which servers are started, where, and with which settings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct StartArguments {
    /// Start this many independent servers and load each with a client of its own, all at once
    ///
    /// Clients, threads, records and rate are those of one of them. Of `--operations` all do N times
    /// that many together, a fast server more than a slow one. The result shows all together, with
    /// merged latencies, and each alone.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=64), hide_short_help = true)]
    pub(crate) pairs: Option<u32>,
    /// Servers that are started and joined: `standalone`, `pairs=N`, `replica-set=N[+ARBITERS]`, `sharded=SHARDSxMEMBERS`
    ///
    /// With parts, such as `replica-set=3,priorities=2/1/0` or `sharded=2x3,key=_id:hashed,chunks=64,balancer=on`.
    /// Replica sets and clusters need `--server mongod`.
    #[arg(long, value_name = "TOPOLOGY", conflicts_with = "pairs",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) topology: Option<String>,
    /// Put servers and clients on CPUs and memory of this machine
    ///
    /// `none`, `interleave`, `spread`, `node=K`, `cores=LIST`, `cores-per-instance=N[,smt]` or `custom=…`, and for
    /// the clients `client=same|other|LIST`, such as `'spread client=other'`. `dyno server plan` shows it.
    #[arg(long, value_name = "POLICY",
          value_parser = NonEmptyStringValueParser::new(), hide_short_help = true)]
    pub(crate) placement: Option<String>,
    /// Start this kind of server for the run; default: `auto`, unless `--uri` is given
    #[arg(long, value_name = "KIND",
          value_parser = some_of(ServerKind::NAMES, |kind| *kind != ServerKind::Uri), hide_short_help = true)]
    pub(crate) server: Option<ServerKind>,
    /// The `mongod` to start: a path, or the version of one that `dyno server install` has put here. Implies `--server mongod`
    ///
    /// Default: that of the variable `DYNO_MONGOD`, else `mongod` on `PATH`, else an installed one.
    #[arg(long, value_name = "PATH|VERSION")]
    pub(crate) mongod: Option<String>,
    /// Path of the `mongos` of a sharded cluster; default: beside `mongod`, or on `PATH`
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub(crate) mongos: Option<String>,
    /// Cache of each server that is started, such as `2GiB`, or `smallest`
    ///
    /// Default: the server's own; of several servers each a share of half the memory.
    #[arg(long, value_name = "SIZE", value_parser = quantity::<CacheSize>)]
    pub(crate) cache: Option<CacheSize>,
    /// Encrypt connections to the servers that are started, by certificates made for the run
    #[arg(long, hide_short_help = true)]
    pub(crate) tls: bool,
    /// Authenticate at the servers that are started, as a user made for the run
    #[arg(long, hide_short_help = true)]
    pub(crate) auth: bool,
    /// Data folder of the server that is started; it is kept
    ///
    /// Default: a temporary folder inside the run directory, removed at the end.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) data_dir: Option<String>,
    /// Path of the embedded server `secantusd-rs`; it is started unless a `mongod` or `--server` is named
    ///
    /// Default: where `scripts/setup.sh embedded` puts it, beside `dyno`, or on `PATH`.
    #[arg(
        long,
        value_name = "PATH",
        env = "DYNO_EMBEDDED_SERVER",
        hide_short_help = true
    )]
    pub(crate) embedded_server: Option<PathBuf>,
    /// Set any key of the plan, such as `server.block_compressor=zlib`; may be repeated, the last one wins
    ///
    /// Keys and values as in a plan file (docs/plans.md); a text needs no quotes. For `dyno run` and `dyno sweep` several
    /// values of a key, as `V1,V2`, are several runs.
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
#[command(next_help_heading = "Client")]
pub(crate) struct WorkerArguments {
    /// Worker threads that share the connections, at most one per connection
    ///
    /// Default: half of the cores if the server is on this machine, else all of them.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) threads: Option<u32>,
    /// Who speaks the protocol: `wire` is our own and cheapest path, `driver` the official driver
    #[arg(long, value_name = "BACKEND", value_parser = one_of(Backend::NAMES), hide_short_help = true)]
    pub(crate) backend: Option<Backend>,
    /// Start of all random sequences; the same seed repeats the same operations; default: 42
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// An operation without an answer after this time has failed; default: 10s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, hide_short_help = true)]
    pub(crate) timeout: Option<Span>,
}

/// Which documents there are.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArguments {
    /// Documents of the data set, such as `10k`; default of the built-in plans: 100000
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) records: Option<u64>,
    /// Documents per insert command of the load phase; default: 100
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) batch: Option<u32>,
    /// Drop the collection first
    #[arg(long)]
    pub(crate) fresh: bool,
    /// When the collection is dropped: even if it holds documents that are not of a benchmark
    #[arg(long, hide_short_help = true)]
    pub(crate) drop_foreign: bool,
}

/// What is written where.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Run directory; default: `runs/TIME-NAME`
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        value_parser = one_of(Format::NAMES)
    )]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    /// Print the resolved plan and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How much of a report is printed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExtentArguments {
    /// Print the whole human report, not only what fits on a screen
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
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

/// What `--wsf` takes for what is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WsfDefaults {
    /// What shapes the load is as in that workload, and what makes it long as in the plan
    Given,
    /// All is as in that workload
    Defaults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    /// At random, by the seed, so that a drift of the machine does not look like an effect
    Random,
    /// As given
    Given,
}
