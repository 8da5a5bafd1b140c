//! The version of this program.

/// Version of this program for records.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
