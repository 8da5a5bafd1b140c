//! Arguments of reports, checks and helpers.

use super::names::{is_human_or_json, one_of, some_of};
use super::run::ExtentArguments;
use super::trace::TracePart;
use super::values::{quantity, server_version, span_above_0};
use clap::{Args, ValueEnum};
use dyno_plan::names::Names;
use dyno_plan::units::{Bytes, Span};
use dyno_record::model::PhaseKind;
use dyno_report::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Run directory, folder of an experiment, or folder of a trace
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// What to render
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = one_of(Format::NAMES))]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
    #[command(flatten)]
    pub(crate) file: OutputFile,
    /// Also write every chart of the page to this folder, as SVG and as PNG; it must be empty or absent
    #[arg(long, value_name = "DIR")]
    pub(crate) pictures: Option<PathBuf>,
    /// Of a suite: tell for each kind of operation which share took less than this; default: as when it was run
    #[arg(long, value_name = "TIME", value_parser = span_above_0, help_heading = "Of a suite")]
    pub(crate) below: Option<Span>,
    /// Of a trace: a call that begins at most this far behind the end of an earlier one of its stream still continues
    /// it; default: as when it was recorded
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Of a trace")]
    pub(crate) gap: Option<Bytes>,
    #[command(flatten)]
    pub(crate) part: TracePart,
}

/// Where a text goes.
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
    /// Folder of a run, an experiment, an index build, messages, or a trace
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The form
    #[arg(long, value_name = "FORM")]
    pub(crate) to: ExportForm,
    #[command(flatten)]
    pub(crate) file: OutputFile,
    /// Only this phase; with `--to hlog`
    #[arg(long, value_name = "PHASE", value_parser = one_of(PHASES))]
    pub(crate) phase: Option<PhaseKind>,
}

/// The phases of a run.
const PHASES: Names<PhaseKind> = &[
    (PhaseKind::Load, "load", "Inserting the data set"),
    (PhaseKind::Warmup, "warmup", "Load before measuring"),
    (PhaseKind::Measure, "measure", "The result"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One long table: of a run all values over time, of an experiment the figures of its runs, of messages and of a trace
    /// all of them
    Csv,
    /// The same table for data frames; needs `--output`
    Parquet,
    /// The latencies as an HdrHistogram interval log, checked
    Hlog,
    /// Metrics with their times, for `promtool tsdb create-blocks-from openmetrics`
    Openmetrics,
    /// Phases, changes, traces, outages and caveats as a JSON list of Grafana's annotations
    Annotations,
    /// A folder for each server with what YCSB would have printed, for `kpi.sh` of the Workload Services Framework;
    /// `--output` names the folder that they are in
    WsfLogs,
}

#[derive(Debug, Args)]
pub(crate) struct SelfcheckArguments {
    /// Length of each of the measurements
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, default_value = "3s")]
    pub(crate) duration: Span,
    /// Connections of the measurement of the highest rate
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: u32,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = some_of(Format::NAMES, is_human_or_json))]
    pub(crate) format: Format,
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
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Server")]
    pub(crate) cache: Option<Bytes>,
    /// Servers of this kind on the machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000), help_heading = "Server")]
    pub(crate) instances: u64,
    /// Size of the data that is going to be loaded
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "Load")]
    pub(crate) data_size: Option<Bytes>,
    /// Connections that the load is going to have
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) connections: Option<u64>,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = some_of(Format::NAMES, is_human_or_json))]
    pub(crate) format: Format,
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
    /// Version that it gives, such as `8.2.0`
    #[arg(long, value_name = "VERSION", default_value = "7.0.0")]
    pub(crate) server_version: String,
    /// Distance from the beginning of one stall to the next
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, requires = "stall_length")]
    pub(crate) stall_every: Option<Span>,
    /// Length of a stall: nothing is answered
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, requires = "stall_every")]
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
    /// `error=462` is the answer of an overloaded server that sheds load, with its labels.
    #[arg(long, value_name = "KIND:N", value_parser = crate::commands::responder::fault_rule)]
    pub(crate) fault: Vec<dyno_load::responder::FaultRule>,
    /// A server parameter with its value; may be repeated
    ///
    /// `getParameter` reads it, `setParameter` sets it. With `best` the service time is longer by the factor 1 + Σ weight ·
    /// (log2(value / best))² over all such parameters; `with` and `product` make the effect of one depend on another. While a
    /// value is above its `limit`, data commands get error code 1.
    #[arg(long, value_name = "NAME=VALUE[,best=V,weight=W[,with=NAME,product=W]][,limit=V]", value_parser = crate::commands::responder::parameter)]
    pub(crate) parameter: Vec<dyno_load::responder::Parameter>,
}
