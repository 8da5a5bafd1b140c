//! `dyno ycsb`: YCSB's command line, status line and histogram logs. The plan crate reads the
//! properties, and the report crate writes the final output.

pub(crate) mod arguments;
pub(crate) mod hdr_files;
mod java_format;
pub(crate) mod measured;
pub(crate) mod status;
