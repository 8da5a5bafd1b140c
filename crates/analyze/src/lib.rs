//! Pure functions from a recorded run to what it means: reasons to doubt it, and the statistical
//! methods behind them, one per file. No I/O, no clock, no randomness.

pub mod caveats;
pub mod little;
pub mod steady_state;
mod student;
