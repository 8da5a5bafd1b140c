//! Recorded measurements: latency histograms, recording windows, the run directory with them, and number formatting.
//! Other crates measure and draw conclusions.
//!
//! A run directory contains:
//!
//! | File | Content |
//! |---|---|
//! | `plan.toml` | the resolved plan, without secrets; can be run again |
//! | `run.json` | [`model::RunDocument`] |
//! | `latency.hlog` | HdrHistogram V2 interval log; tags are `phase.operation.clock` |
//! | `series/intervals.csv` | one row per recording window, written last: a window without it does not count |
//! | `series/operations.csv` | counts, exact sums and percentiles per window and operation |
//! | `series/errors.csv` | failures per window, operation and kind |
//! | `series/sub_second.csv` | operations that ended in each 10 ms of the first minute |
//! | `metrics/SOURCE.csv` | metrics reported by host, server and exporters: [`metrics`] |
//! | `io-trace/` | calls on files and requests of the block layer, if they were traced: [`io_trace`] |
//! | `SHA256SUMS` | checksums of all files, once the run is finished: [`sums`] |

pub mod accumulate;
mod append;
pub mod consumption;
pub mod cpus;
pub mod disk;
pub mod document;
mod downsample;
pub mod error;
pub mod error_example;
pub mod estimate;
mod event;
pub mod experiment;
pub mod fleet;
pub mod histogram;
mod hlog;
pub mod index_build;
pub mod interval;
pub mod io_trace;
mod lines;
#[cfg(feature = "parquet")]
pub mod messages;
pub mod metrics;
pub mod model;
pub mod mounts;
pub mod names;
pub mod plain_file;
pub mod plan;
pub mod quantity;
pub mod reader;
pub mod recorded;
pub mod responses;
pub mod schema;
mod series;
pub mod server;
mod sparse;
pub mod statement;
pub mod storage;
pub mod sub_second;
pub mod summary;
pub mod sums;
pub mod tail;
pub mod verdict;
pub mod visible;
mod windows;
pub mod writer;

pub use document::Document;
pub use error::RecordError;
