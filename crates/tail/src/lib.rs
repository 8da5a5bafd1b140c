//! Messages through the database: runs producers and consumers of `drivers/` as child processes, and
//! adds up what they stamped. What latency does over a run is judged by `dyno-analyze`.

mod cells;
pub mod course;
pub mod document;
pub mod driver;
pub mod error;
pub mod experiment;
pub mod host;
pub mod messages;
pub mod process;
pub mod resources;
pub mod run;
pub mod schedule;
pub mod split;
pub mod stamps;
pub mod sums;
mod tables;
pub mod thin;

pub use error::TailError;
