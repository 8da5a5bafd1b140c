//! What the mapping is given.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters by their names, and how they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Values by names; other names are left alone.
    pub given: BTreeMap<String, String>,
    /// Clients and servers are on hosts of an inventory, in its groups `clients` and `servers`.
    pub on_hosts: bool,
    /// The hosts are pods of Kubernetes.
    pub on_pods: bool,
    /// What is not given has that workload's default also where it makes the run long, or the data less safe: records, operations,
    /// time, journal.
    pub all_defaults: bool,
}
