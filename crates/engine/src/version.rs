//! Which version of this program it is.

/// Version of this program, as records name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
