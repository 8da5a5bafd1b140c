//! Confidence intervals from the recording intervals of one run, which resemble their neighbours, and from
//! repetitions, which do not.
//!
//! Within a run the interval covers its mean or percentile *for this run*. Only repetitions show the variation
//! from run to run (placement, data layout, neighbours).

pub mod autocorrelation;
pub mod blocks;
pub mod histogram;
pub mod mean;
pub mod runs;
pub mod series;
