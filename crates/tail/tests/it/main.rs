//! Messages through the database: their document, their handling, a whole experiment.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

mod document;
mod experiment;
mod handling;
