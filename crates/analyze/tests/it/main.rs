//! Tests of the analysis with known answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

mod access_pattern;
mod findings_of_traces;
mod json;
mod recorded_faults;
