//! Messages through a database: whether their latency is stationary over a run, and if it grows,
//! where the time goes.

pub mod across;
mod doubts;
mod judge;
pub mod record;
mod trend;
mod words;

pub use judge::{
    Cause, Course, InFlight, Judgement, Part, PartTrend, Point, QueuePlace, Rates, judge,
};
pub use trend::{Direction, LEAST_POINTS, Trend, trend};

#[cfg(test)]
mod tests;
