//! Tests of messages through the database: their handling, and whole experiments.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

mod experiment;
mod handling;
