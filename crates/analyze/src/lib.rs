//! Pure functions that interpret recorded runs: caveats and statistical methods, one per file. No I/O and no
//! clock; resampling methods take their seed as an argument, so that the same input always gives the same
//! answer.

pub mod access_pattern;
pub mod caveats;
pub mod change_point;
pub mod closed_network;
pub mod comparison;
pub mod costs;
pub mod estimate;
pub mod experiment;
pub mod grouping;
pub mod knee;
pub mod laws;
mod least_squares;
pub mod level_shifts;
pub mod little;
pub mod messages;
pub mod online_shift;
pub mod open_queue;
pub mod periodicity;
pub mod resampling;
mod robust;
pub mod search;
pub mod stationary_part;
mod student;
pub mod timeline;
pub mod tracing_cost;
pub mod uncertainty;
pub mod usl;
mod values;
pub mod verdict;
pub mod windows;

pub use robust::mean;
