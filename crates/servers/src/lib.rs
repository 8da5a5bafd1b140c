//! Starts one server as a child process, waits until it can be used, and stops it again.
//!
//! A server that is started here dies with us, also after `SIGKILL`, and leaves neither a port nor
//! a temporary folder behind. What is sent to it and what it does meanwhile is left to `load` and
//! `observe`; replica sets and sharded clusters have no place here yet.

mod command_line;
mod diagnose;
mod error;
mod keeper;
mod locate;
mod log;
mod options;
pub mod placement;
mod server;
mod version;
mod watchdog;

pub use error::ServerError;
pub use locate::{EmbeddedPlaces, locate_embedded, locate_mongod};
pub use options::{DataDir, ServerOptions, ServerProgram};
pub use server::{RunningServer, Stopped, start};
pub use version::EMBEDDED_VERSION;
