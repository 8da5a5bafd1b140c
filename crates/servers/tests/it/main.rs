//! Starting, placing, securing and stopping servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

// First, for its macro.
#[macro_use]
mod one_server;

mod deployment;
mod placement;
mod reached;
mod real;
mod restart;
mod scripted;
mod secured;
mod storage;
