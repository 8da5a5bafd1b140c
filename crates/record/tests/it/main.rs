//! Files, formats and schemas that are written and read back.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

mod accumulate;
mod common;
mod experiment;
mod golden;
mod index_build;
mod io_trace;
mod names;
mod recorded;
mod responses;
mod run_directory;
mod schema;
mod tail;
mod trace_data;
