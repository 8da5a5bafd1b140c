//! The load against responders and servers whose behaviour is known.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

// First, for its macro.
#[macro_use]
mod both;

mod backends;
mod connect;
mod options;
mod pairs;
mod prepare;
mod retries;
mod think_time;
mod truth;
