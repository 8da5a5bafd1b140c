//! From a resolved task to a finished directory: runs, experiments, detached deployments, the
//! self-check, recordings of file I/O, and the list of changes to the machine with their undo.
//!
//! The engine neither prints nor reads environment variables, and uses no signals and no exit
//! codes: an [`Observer`] receives the events, a [`Cancel`] ends the work early, and an [`Error`]
//! gives the reason of a failure. `cargo run --package dyno-engine --example one_run` performs this
//! whole run:
//!
//! ```no_run
#![doc = include_str!("../examples/one_run.rs")]
//! ```

mod cancel;
mod connector;
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
pub mod removal;
pub mod run;
pub mod selfcheck;
pub mod standalone;
pub mod task;
pub mod undo;
mod version;

pub use cancel::Cancel;
pub use error::{Error, Kind, OrFault, refuse};
pub use observer::Observer;
pub use run::options::{Finished, RunOptions};
pub use run::run;
pub use version::VERSION;
