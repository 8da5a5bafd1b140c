//! What a trace of file I/O recorded: every call on a file, every request of the block layer, the
//! files, and totals by file. How it was observed and what follows from it is left to others.
//!
//! All times are nanoseconds of `CLOCK_MONOTONIC` from the zero of the trace, which is the start of
//! the run where there is one; [`document::TraceDocument::zero_monotonic_ns`] says where that is.
//!
//! A folder of a trace, `io-trace/` in a run directory, holds:
//!
//! | File | Content |
//! |---|---|
//! | `trace.json` | [`document::TraceDocument`], written at the start and again at the end |
//! | `calls-NNN.parquet` | one row per call, [`event::Call`] |
//! | `block-NNN.parquet` | one row per request of the block layer, [`event::BlockRequest`] |
//! | `files.parquet` | one row per file, [`document::FileEntry`] |

//!
//! Tables are written and read with the feature `parquet` only; what measures needs none of it.

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

/// Name of the folder of a trace in a run directory.
pub const FOLDER: &str = "io-trace";
/// Name of the document of a trace in its folder.
pub const DOCUMENT: &str = "trace.json";
/// Name of the table of the files in its folder.
pub const FILES: &str = "files.parquet";
/// What the names of the tables of calls begin with.
pub const CALLS: &str = "calls";
/// What the names of the tables of requests of the block layer begin with.
pub const BLOCK: &str = "block";
