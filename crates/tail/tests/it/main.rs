//! Messages through the database: their handling, a whole experiment.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

mod experiment;
mod handling;
