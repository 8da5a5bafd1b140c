//! Records of file I/O traces: every call on a file, every block layer request, the files, and totals by file. Other
//! crates trace and analyse.
//!
//! All times are nanoseconds of `CLOCK_MONOTONIC` relative to the zero of the trace, which is the start of the run if
//! there is one; [`document::TraceDocument::zero_monotonic_ns`] has its value.
//!
//! A trace folder, `io-trace/` in a run directory, contains:
//!
//! | File | Content |
//! |---|---|
//! | `trace.json` | [`document::TraceDocument`], written at the start and again at the end |
//! | `calls-NNN.parquet` | one row per call, [`event::Call`] |
//! | `block-NNN.parquet` | one row per request of the block layer, [`event::BlockRequest`] |
//! | `files.parquet` | one row per file, [`document::FileEntry`] |
//!
//! Reading and writing tables needs the feature `parquet`, which measuring does not need.

pub mod document;
pub mod event;
pub mod log_histogram;
#[cfg(feature = "parquet")]
pub mod reader;
#[cfg(feature = "parquet")]
pub(crate) mod tables;
pub mod totals;
#[cfg(feature = "parquet")]
pub mod writer;

#[cfg(feature = "parquet")]
pub use tables::put;

/// Name of the trace folder in a run directory.
pub const FOLDER: &str = "io-trace";
/// Name of the document in a trace folder.
pub const DOCUMENT: &str = "trace.json";
/// Name of the table of files in a trace folder.
pub const FILES: &str = "files.parquet";
/// Name prefix of the tables of calls.
pub const CALLS: &str = "calls";
/// Name prefix of the tables of block layer requests.
pub const BLOCK: &str = "block";
