//! Messages through the database: runs producers and consumers of `drivers/` as child processes, and adds up their stamps.

mod cells;
pub mod downsample;
pub mod driver;
pub mod error;
pub mod experiment;
pub mod host;
mod lines;
pub mod messages;
pub mod process;
pub mod resources;
pub mod run;
pub mod schedule;
pub mod split;
pub mod stamps;
pub mod sums;
mod tables;
pub mod timeline;

pub use error::TailError;
