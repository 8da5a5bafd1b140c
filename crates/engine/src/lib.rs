//! From a resolved task to a finished directory: runs, experiments, deployments that stay, the self-check, recordings of
//! file I/O, and the list of changes to the machine with their undo.
//!
//! The engine neither prints nor reads the environment, and knows no signals and no exit codes: an
//! [`observer::Observer`] is told what happens, a [`Cancel`] ends it early, and an [`Error`] says why it failed.

mod cancel;
pub mod context;
pub mod deployment;
pub mod detached;
pub mod doctor;
pub mod environment;
mod error;
pub mod experiment;
pub mod files;
pub mod load_source;
pub mod observer;
pub mod recording;
pub mod run;
pub mod selfcheck;
pub mod task;

pub use cancel::Cancel;
pub use error::{Error, Kind};
pub use observer::Observer;
pub use run::{Finished, RunOptions, run};

/// Version of this program, as records name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
