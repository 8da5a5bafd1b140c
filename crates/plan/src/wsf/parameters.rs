//! Input of the mapping.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters by name, and options for interpreting them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Values by name; other names are ignored.
    pub given: BTreeMap<String, String>,
    /// Whether clients and servers are on hosts of an inventory, in its groups `clients` and
    /// `servers`.
    pub on_hosts: bool,
    /// Whether the hosts are pods of Kubernetes.
    pub on_pods: bool,
    /// Whether missing parameters get the workload's defaults even if these make the run long or
    /// the data less safe: records, operations, time, journal.
    pub all_defaults: bool,
}
