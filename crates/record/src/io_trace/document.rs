//! The document of a trace, `trace.json`: how it was made, what it holds, and what to doubt.

use super::DOCUMENT;
use super::event::Operation;
use super::totals::FileTotals;
use crate::document::Document;
use crate::model::Environment;
use crate::named::named;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the form that is written now.
pub const SCHEMA_VERSION: u32 = 2;

/// A trace of file I/O.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceDocument {
    /// Version of the form.
    pub schema_version: u32,
    /// Version of the program.
    pub dyno_version: String,
    /// When the zero of the trace was, RFC 3339 in UTC.
    pub started_at: String,
    /// The zero of the trace on the monotonic clock of the machine since its start.
    pub zero_monotonic_ns: u64,
    /// When tracing began, from the zero.
    pub start_s: f64,
    /// How long it lasted.
    pub duration_s: f64,
    /// Whether it came to its end; of a trace that was killed the document is that of its start.
    pub complete: bool,
    /// Whether single events were kept.
    pub mode: TraceMode,
    /// Whose I/O it is.
    pub target: TraceTarget,
    /// What was let through.
    pub filter: TraceFilter,
    /// The gap that counts as sequential, as it was asked for; absent where that of the analysis was left.
    pub gap_bytes: Option<u64>,
    /// The hooks in the kernel.
    pub probes: Vec<ProbeUse>,
    /// Calls that are recorded, one by one or in the totals.
    pub calls: u64,
    /// Calls that were seen and could not be handed over, because the buffer was full.
    pub lost_calls: u64,
    /// Requests of the block layer that are recorded.
    pub block_requests: u64,
    /// Requests of the block layer that were seen and could not be handed over.
    pub lost_block_requests: u64,
    /// Whether requests of the block layer were looked at.
    pub block_traced: bool,
    /// The machine; absent where another document has it, such as that of the run, and in records of earlier versions.
    pub environment: Option<Environment>,
    /// The files, by number.
    pub files: Vec<FileEntry>,
    /// Totals by file and operation.
    pub totals: Vec<FileTotals>,
    /// Block devices, by number.
    pub devices: Vec<BlockDevice>,
    /// What the probes cost; absent where the kernel did not tell.
    pub cost: Option<TraceCost>,
    /// Reasons to doubt it.
    pub caveats: Vec<TraceCaveat>,
}

impl Document for TraceDocument {
    const FILE: &'static str = DOCUMENT;
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FOLDER: &'static str = "the folder of a trace";

    fn schema_version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }
}

impl TraceDocument {
    /// A document of an empty trace, to be filled in.
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

/// Whether single events were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceMode {
    /// Every call is a row.
    #[default]
    Events,
    /// The kernel counted, and only totals are known.
    Aggregated,
}

/// Whose I/O was traced.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceTarget {
    /// Processes; their children and threads belong to them.
    pub processes: Vec<u32>,
    /// Program and arguments, if it was started for the trace; without secrets.
    pub command: Option<Vec<String>>,
    /// What it is in words, such as the name of a server.
    pub name: Option<String>,
}

/// What of the target was let through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceFilter {
    /// Patterns of file names; all files if there are none.
    pub files: Vec<String>,
    /// Operations; all if there are none.
    pub operations: Vec<Operation>,
    /// Calls that ask for less are left out.
    pub smallest_bytes: u64,
}

/// A hook in the kernel, and why it is this one.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeUse {
    /// What it observes, such as `read` or `block requests`.
    pub what: String,
    /// Kind of hook.
    pub kind: HookKind,
    /// Name of the function or tracepoint.
    pub hook: String,
    /// Why no better kind was used; absent of the best.
    pub why_not_better: Option<String>,
}

/// Kinds of hooks, best first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Entry and exit of a function of the kernel, by trampoline.
    Fentry,
    /// Entry and exit of a function of the kernel, by breakpoint.
    Kprobe,
    /// A place that the kernel offers for tracing.
    Tracepoint,
}

/// A file, by device and inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Major number of the device of its file system.
    pub device_major: u32,
    /// Minor number of the device of its file system.
    pub device_minor: u32,
    /// Number of its inode.
    pub inode: u64,
    /// Tells files apart that had the same inode one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Path as last known; what is known of it, if only that is.
    pub name: String,
    /// All paths that it had, in order, where there was more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Whether it was deleted while traced.
    pub deleted: bool,
    /// Its size at the end.
    pub bytes: Option<u64>,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<FileRole>,
}

impl FileEntry {
    /// Its name without folders.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// What a file holds for a database server.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRole {
    /// Kind of content.
    pub kind: FileKind,
    /// The collection, as `database.collection`.
    pub namespace: Option<String>,
    /// Name of the index.
    pub index: Option<String>,
    /// In words, where the kind says too little.
    pub words: Option<String>,
}

named! {
    /// Kinds of content of a file.
    FileKind {
        /// Documents of a collection.
        Collection = "collection",
        /// Entries of an index.
        Index = "index",
        /// Changes that are written ahead.
        Journal = "journal",
        /// Something else.
        Other = "other",
    }
}

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Name, such as `vda`; empty if it is not known.
    pub name: String,
}

/// What the probes cost the kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCost {
    /// Each program.
    pub programs: Vec<ProgramCost>,
}

/// What a program in the kernel cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCost {
    /// Its name.
    pub name: String,
    /// How often it ran, for other processes than the target too.
    pub runs: u64,
    /// How long it ran altogether.
    pub run_time_ns: u64,
}

/// A reason to doubt a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCaveat {
    /// Kind.
    pub kind: TraceCaveatKind,
    /// What is the matter.
    #[serde(flatten)]
    pub statement: Statement,
}

/// Kinds of reasons to doubt a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceCaveatKind {
    /// Events were lost because the buffer was full.
    LostEvents,
    /// Some ways of I/O were not observed, such as `io_uring` or mapped files.
    NotObserved,
    /// The block layer was not observed, so page cache and device cannot be told apart.
    NoBlockRequests,
    /// Calls whose offset is not known.
    UnknownOffsets,
    /// Files whose name or size is not known.
    UnknownFiles,
    /// The trace was cut off, or a part of it could not be read.
    Partial,
    /// The kernel did not tell what the probes cost.
    UnknownCost,
    /// Files of the trace are not what they were when it was finished.
    RecordChanged,
    /// A check of the machine failed, such as that others use its CPUs.
    Machine,
    /// Something else.
    Other,
}
