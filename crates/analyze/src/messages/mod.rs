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

#[cfg(test)]
mod tests;
