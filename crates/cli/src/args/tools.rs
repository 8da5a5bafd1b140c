//! Arguments of `report`, `export`, `selfcheck`, `doctor`, `responder`, `completions` and `man`.

use super::names::one_of;
use super::run::ExtentArguments;
use super::trace::TracePart;
use super::values::{latency, quantity, server_version, span_above_0};
use crate::messages::DataFormat;
use clap::{Args, ValueEnum};
use dyno_plan::names::Names;
use dyno_plan::units::{Bytes, Span};
use dyno_record::model::PhaseKind;
use dyno_report::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder of a run, experiment, index build, message test or trace, or a part of its name (default: `latest`)
    ///
    /// `dyno runs` lists the names. The words `b-1603` are enough for `runs/2026-11-28T16-03-11-b`, and so is a tag that only this
    /// record has.
    #[arg(value_name = "RUN", default_value = "latest", hide_default_value = true)]
    pub(crate) run: PathBuf,
    /// Format of the report
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(Format::NAMES))]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    #[command(flatten)]
    pub(crate) file: OutputFile,
    /// Also write every chart of the page to this empty or new folder, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Report the share of each operation that took less than this (default: as in the suite's run)
    #[arg(long, value_name = "TIME", value_parser = latency, help_heading = "Of a suite")]
    pub(crate) below: Option<Span>,
    /// Largest gap between the end of one call and the start of the next in the same stream (default: as recorded)
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Of a trace")]
    pub(crate) gap: Option<Bytes>,
    #[command(flatten)]
    pub(crate) part: TracePart,
}

/// Destination of a text.
#[derive(Debug, Args)]
pub(crate) struct OutputFile {
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Folder of a run, experiment, index build, message test or trace, a part of its name, or `latest`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Format of the export
    #[arg(long, value_name = "FORM")]
    pub(crate) to: ExportForm,
    #[command(flatten)]
    pub(crate) file: OutputFile,
    /// Export only this phase; with `--to hlog`
    #[arg(long, value_name = "PHASE", value_parser = one_of(PHASES))]
    pub(crate) phase: Option<PhaseKind>,
}

/// The phases of a run.
const PHASES: Names<PhaseKind> = &[
    (PhaseKind::Load, "load", "Inserting the data set"),
    (PhaseKind::Warmup, "warmup", "Load before measuring starts"),
    (PhaseKind::Measure, "measure", "Measuring the result"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One long table: all values of a run over time, the figures of an experiment's runs, or all messages or traced calls
    Csv,
    /// The same table for data frames; needs `--output`
    Parquet,
    /// Latencies as an HdrHistogram interval log, verified
    Hlog,
    /// Metrics with timestamps, for `promtool tsdb create-blocks-from openmetrics`
    Openmetrics,
    /// Phases, changes, traces, outages and caveats as a JSON list of Grafana annotations
    Annotations,
    /// YCSB's output in one folder per server, for `kpi.sh` of the Workload Services Framework; `--output` names the parent
    /// folder
    WsfLogs,
}

#[derive(Debug, Args)]
pub(crate) struct SelfcheckArguments {
    /// Length of each measurement
    #[arg(long, value_name = "TIME", value_parser = span_above_0, default_value = "3s")]
    pub(crate) duration: Span,
    /// Connections for measuring the highest rate
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: u32,
    /// Format of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: DataFormat,
    /// Do not store the result
    #[arg(long)]
    pub(crate) no_save: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Connection string of the server to check
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server"
    )]
    pub(crate) uri: Option<String>,
    /// Process ID of the server to check, on this machine, without connecting to it
    #[arg(long, value_name = "PID", help_heading = "Server", conflicts_with = "uri")]
    pub(crate) server_pid: Option<u32>,
    /// Version of the server, such as `8.0`, if it cannot be read from the server
    #[arg(long, value_name = "VERSION", value_parser = server_version, help_heading = "Server")]
    pub(crate) server_version: Option<String>,
    /// Data folder of the server (default: as reported by the server)
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Cache size of one server, such as `4GiB` (default: as reported by the server)
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Server")]
    pub(crate) cache: Option<Bytes>,
    /// Number of such servers on the machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Server")]
    pub(crate) instances: u64,
    /// Expected size of the data
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Load")]
    pub(crate) data_size: Option<Bytes>,
    /// Expected number of connections
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) connections: Option<u64>,
    /// Format of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: DataFormat,
    /// Make the changes that these checks recommend, or `all`
    ///
    /// The previous values are kept in the state folder until `--revert`.
    #[arg(long, value_name = "CHECK", value_delimiter = ',', num_args = 1)]
    pub(crate) apply: Vec<String>,
    /// Revert the changes that `--apply` made since the machine started, the last change first
    #[arg(long, conflicts_with = "apply")]
    pub(crate) revert: bool,
    /// Read and change the files below this folder instead of `/`
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for the pages; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ResponderArguments {
    /// TCP port on 127.0.0.1; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Size of the values of the document that reads return, in bytes
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) document_bytes: u32,
    /// Initial number of documents that `count` reports
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) documents: u64,
    /// Reported server version, such as `8.2.0`
    #[arg(long, value_name = "VERSION", default_value = "7.0.0")]
    pub(crate) server_version: String,
    /// Time from the start of one stall to the start of the next
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, requires = "stall_length")]
    pub(crate) stall_every: Option<Span>,
    /// Length of a stall, in which nothing is answered
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, requires = "stall_every")]
    pub(crate) stall_length: Option<Span>,
    /// Service time of a single queue in microseconds
    #[arg(long, value_name = "N")]
    pub(crate) service_us: Option<u64>,
    /// Distribute the service time exponentially, with mean `--service-us`
    #[arg(long, requires = "service_us")]
    pub(crate) exponential: bool,
    /// Inject this fault into every Nth data command; may be repeated
    ///
    /// KIND is `error=CODE`, `write-error=CODE`, `drop`, `hang`, `garbage`, `truncate`, `wrong-response` or `not-found`.
    /// `error=462` answers like an overloaded server that sheds load, including the labels.
    #[arg(long, value_name = "KIND:N", value_parser = crate::commands::responder::fault_rule)]
    pub(crate) fault: Vec<dyno_load::responder::FaultRule>,
    /// Define a server parameter and its value; may be repeated
    ///
    /// In full: `NAME=VALUE[,best=V,weight=W[,with=NAME,product=W]][,limit=V]`.
    ///
    /// `getParameter` reads it, `setParameter` sets it. Parameters with `best` multiply the service time by 1 + Σ weight ·
    /// (log2(value / best))²; `with` and `product` make the effect of one depend on another. While a value exceeds its
    /// `limit`, data commands fail with error code 1.
    #[arg(long, value_name = "NAME=VALUE[,KEY=V]…", value_parser = crate::commands::responder::parameter)]
    pub(crate) parameter: Vec<dyno_load::responder::Parameter>,
}
