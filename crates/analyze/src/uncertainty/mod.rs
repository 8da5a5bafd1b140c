//! How sure a number is: confidence intervals from the recording intervals of one run, which
//! resemble their neighbours, and from repetitions, which do not.
//!
//! Within a run the interval tells how well its mean or percentile is known *for this run*. What
//! differs from run to run (placement, data layout, neighbours) only repetitions can show.

pub mod autocorrelation;
pub mod blocks;
pub mod histogram;
pub mod mean;
pub mod runs;
pub mod series;
