//! Opens a directory of any kind and gives it analysed. This is the one place that knows what a run means: the command
//! line, a live page and a fleet all ask here.
//!
//! Nothing is measured here, and nothing is put into words or pictures: that is left to `report`.

mod error;
pub mod experiment;
pub mod index_build;
pub mod messages;
pub mod run;
pub mod suite;
pub mod trace;

pub use error::ResultsError;
pub use index_build::AnalysedIndexBuild;
pub use messages::AnalysedMessages;
pub use run::AnalysedRun;
pub use trace::{AnalysedTrace, TraceOptions};
