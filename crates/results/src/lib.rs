//! Opens and analyses directories of any kind. The command line, a live page and a fleet all use it
//! to interpret runs.
//!
//! It measures nothing; `report` writes the text and draws the charts.

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
