//! From a resolved task to a finished directory: runs, experiments, deployments that stay, the self-check, recordings of
//! file I/O, and the list of changes to the machine with their undo.
//!
//! The engine neither prints nor reads environment variables, and knows no signals and no exit codes: an [`Observer`] is
//! told what happens, a [`Cancel`] ends it early, and an [`Error`] says why it failed. A whole run, which
//! `cargo run --package dyno-engine --example one_run` does:
//!
//! ```no_run
#![doc = include_str!("../examples/one_run.rs")]
//! ```

mod cancel;
pub mod context;
pub mod deployment;
pub mod detached;
pub mod doctor;
pub mod environment;
mod error;
pub mod experiment;
pub mod files;
mod folder;
pub mod load_source;
pub mod observer;
mod owner;
pub mod recording;
pub mod run;
pub mod selfcheck;
pub mod standalone;
pub mod task;
mod version;

pub use cancel::Cancel;
pub use error::{Error, Kind, OrFault};
pub use observer::Observer;
pub use run::options::{Finished, RunOptions};
pub use run::run;
pub use version::VERSION;
