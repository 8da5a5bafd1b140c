//! Messages through a database: whether their latency is stationary over a run, and where the time goes if it
//! grows.

pub mod across;
mod caveats;
mod describe;
mod judge;
pub mod lines;
pub mod repeated;
mod trend;

pub use judge::judge;
pub use trend::{LEAST_POINTS, trend};

/// Latencies of all messages of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellLatencies {
    pub cell: String,
    /// Time from the intended send of each message to its receipt by the first consumer, in nanoseconds, by
    /// producer and message number; `None` if it is unknown.
    pub latencies_ns: Vec<Vec<Option<i64>>>,
}

#[cfg(test)]
mod tests;
