//! What is particular to `dyno ycsb`: YCSB's command line, its status line, and its histogram logs.
//! Properties are read by the plan crate, the final output is made by the report crate.

pub(crate) mod arguments;
pub(crate) mod hdr_files;
mod java_format;
pub(crate) mod measured;
pub(crate) mod output;
pub(crate) mod status;
pub(crate) mod words;
