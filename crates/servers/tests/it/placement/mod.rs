//! The placement planner on machines of many shapes, and what the kernel makes of its result.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clients;
mod fixtures;
mod picture;
mod planning;
mod properties;
mod reading;
mod verifying;
