//! Format of `trace.json`: how the trace was made, its contents, and its caveats.

pub use dyno_plan::io_trace::TraceMode;

use super::DOCUMENT;
use super::event::Operation;
use super::totals::FileTotals;
use crate::document::document;
use crate::model::Environment;
use crate::statement::Statement;
use dyno_plan::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Format version that is written.
pub const SCHEMA_VERSION: u32 = 1;

/// A trace of file I/O.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDocument {
    /// Format version.
    pub schema_version: u32,
    pub dyno_version: String,
    /// Time zero of the trace, RFC 3339 in UTC.
    pub started_at: String,
    /// Time zero of the trace on the machine's monotonic clock.
    pub zero_monotonic_ns: u64,
    /// Start of tracing, relative to time zero.
    pub start_s: f64,
    pub duration_s: f64,
    /// Whether tracing ended regularly; false if it was killed.
    pub complete: bool,
    pub mode: TraceMode,
    /// Traced processes.
    pub target: TraceTarget,
    /// Events that were kept.
    pub filter: TraceFilter,
    /// Gap that still counts as sequential, if the user set it; absent for the default of the analysis.
    pub gap_bytes: Option<u64>,
    /// Kernel hooks.
    pub probes: Vec<ProbeUse>,
    /// Recorded calls, as events or in totals.
    pub calls: u64,
    /// Calls that were lost because the buffer was full.
    pub lost_calls: u64,
    /// Recorded requests of the block layer.
    pub block_requests: u64,
    /// Requests of the block layer that were lost because the buffer was full.
    pub lost_block_requests: u64,
    /// Whether requests of the block layer were traced.
    pub block_traced: bool,
    /// Machine; absent if another document describes it, such as the run's.
    pub environment: Option<Environment>,
    /// Files; events refer to them by index.
    pub files: Vec<FileEntry>,
    /// Totals by file and operation.
    pub totals: Vec<FileTotals>,
    /// Block devices; events refer to them by index.
    pub devices: Vec<BlockDevice>,
    /// Cost of the probes; absent if the kernel did not report it.
    pub cost: Option<TraceCost>,
    /// Reasons to doubt the trace.
    pub caveats: Vec<TraceCaveat>,
}

document!(TraceDocument, DOCUMENT, SCHEMA_VERSION, "a trace folder");

impl TraceDocument {
    /// Document of an empty trace.
    pub fn new(dyno_version: &str, started_at: &str, mode: TraceMode) -> TraceDocument {
        TraceDocument {
            schema_version: SCHEMA_VERSION,
            dyno_version: dyno_version.to_owned(),
            started_at: started_at.to_owned(),
            mode,
            ..TraceDocument::default()
        }
    }
}

/// Processes whose I/O is traced.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceTarget {
    /// Process IDs; their children and threads are included.
    pub processes: Vec<u32>,
    /// Program and arguments, without secrets, if the program was started for the trace.
    pub command: Option<Vec<String>>,
    /// Description, such as the name of a server.
    pub name: Option<String>,
}

/// Filters for events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFilter {
    /// Patterns of file names; empty for all files.
    pub files: Vec<String>,
    /// Operations; empty for all.
    pub operations: Vec<Operation>,
    /// Smaller requests are left out.
    pub smallest_bytes: u64,
}

/// A kernel hook and the reason for choosing it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeUse {
    /// Observed calls, such as `read` or `block requests`.
    pub what: String,
    pub kind: HookKind,
    /// Name of the function or tracepoint.
    pub hook: String,
    /// Why no better kind was used; absent for the best kind.
    pub why_not_better: Option<String>,
}

/// Kinds of hooks, best first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Entry and exit of a kernel function, by trampoline.
    Fentry,
    /// Entry and exit of a kernel function, by breakpoint.
    Kprobe,
    /// Static tracepoint of the kernel.
    Tracepoint,
}

/// A file, identified by device and inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Major device number of its file system.
    pub device_major: u32,
    /// Minor device number of its file system.
    pub device_minor: u32,
    pub inode: u64,
    /// Inode generation: distinguishes files that reused an inode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Last known path, or the known part of it.
    pub name: String,
    /// All paths in order, if the file had more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whether the file was deleted during the trace.
    pub deleted: bool,
    /// Size at the end.
    pub bytes: Option<u64>,
    /// Content of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<FileRole>,
}

impl FileEntry {
    /// File name without folders.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// Content of a file of a database server.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRole {
    pub kind: FileKind,
    /// Collection, as `database.collection`.
    pub namespace: Option<String>,
    /// Index name.
    pub index: Option<String>,
    /// Description, if the kind is not specific enough.
    pub words: Option<String>,
}

named! {
    /// Kinds of content of a file.
    FileKind {
        Collection = "collection",
        Index = "index",
        /// Write-ahead log.
        Journal = "journal",
        Other = "other",
    }
}

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    pub major: u32,
    pub minor: u32,
    /// Name, such as `vda`; empty if unknown.
    pub name: String,
}

/// CPU cost of the probes in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCost {
    /// Cost of each program.
    pub programs: Vec<ProgramCost>,
}

/// Cost of one BPF program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCost {
    pub name: String,
    /// Number of executions, including those for processes outside the target.
    pub runs: u64,
    /// Total run time.
    pub run_time_ns: u64,
}

/// A reason to doubt a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCaveat {
    pub kind: TraceCaveatKind,
    #[serde(flatten)]
    pub statement: Statement,
}

/// Kinds of reasons to doubt a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceCaveatKind {
    /// Events were lost because the buffer was full.
    LostEvents,
    /// Some kinds of I/O were not observed, such as `io_uring` or mapped files.
    NotObserved,
    /// The block layer was not observed, so page cache hits and device reads cannot be distinguished.
    NoBlockRequests,
    /// The offset of some calls is unknown.
    UnknownOffsets,
    /// The name or size of some files is unknown.
    UnknownFiles,
    /// The trace is truncated, or a part of it could not be read.
    Partial,
    /// The kernel did not report the cost of the probes.
    UnknownCost,
    /// Files of the trace were modified after it was finished.
    RecordChanged,
    /// A check of the machine failed, for example because other processes use its CPUs.
    Machine,
    Other,
}
