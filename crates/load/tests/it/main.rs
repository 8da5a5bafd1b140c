//! Load tests with responders and servers of known behaviour.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

// First, because of its macro.
#[macro_use]
mod both;

mod backends;
mod connect;
mod java_server;
mod options;
mod pairs;
mod prepare;
mod retries;
mod think_time;
mod transactions;
mod truth;
