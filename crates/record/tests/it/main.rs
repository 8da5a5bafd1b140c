//! What is written and read back: files, formats, schemas.

mod accumulate;
mod common;
mod golden;
mod index_build;
mod io_trace;
mod recorded;
mod responses;
mod run_directory;
mod schema;
mod trace_data;
