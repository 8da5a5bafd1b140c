//! Messages through a database: whether their latency is stationary over a run, and if it grows,
//! where the time goes.

pub mod across;
mod doubts;
mod judge;
mod trend;
mod words;

pub use judge::judge;
pub use trend::{LEAST_POINTS, trend};

#[cfg(test)]
mod tests;
