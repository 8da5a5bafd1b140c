//! The protocol of a fleet over a real Redis, its faults, its hosts and its manifests.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

mod common;
mod fleet_faults;
mod fleet_hosts;
mod fleet_manifests;
mod fleet_permits;
mod fleet_protocol;
