//! Reports of known runs in every format.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

mod analyses;
mod brief;
mod consistency;
mod costs;
mod existing_runs;
mod experiments;
mod findings;
mod index_builds;
mod machines;
mod messages;
mod pages;
mod samples;
mod storage;
mod support;
mod texts;
mod traces;
mod watched;
