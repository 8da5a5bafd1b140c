//! Tests of the fleet protocol over a real Redis, its faults, hosts and manifests.

#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

mod common;
mod fleet_faults;
mod fleet_hosts;
mod fleet_manifests;
mod fleet_permits;
mod fleet_protocol;
