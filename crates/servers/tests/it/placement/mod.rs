//! The placement planner on machines of many shapes, and the placements that the kernel achieves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clients;
mod fixtures;
mod picture;
mod planning;
mod properties;
mod reading;
mod verifying;
