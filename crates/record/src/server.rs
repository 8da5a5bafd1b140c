//! The server of an experiment without runs, and the machines that servers report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A server of an experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentServer {
    /// Name of the program or product, such as `secantusd-rs`.
    pub product: String,
    /// Absent if not reported.
    pub version: Option<String>,
    pub address: String,
    /// Whether it was started for the experiment.
    pub started: bool,
    /// Known settings by name.
    pub settings: BTreeMap<String, String>,
}

/// A machine as its server reports it (`hostInfo`). Values that are not reported are absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerMachine {
    pub hostname: Option<String>,
    /// Distribution with its version.
    pub os: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Architecture, such as `x86_64`.
    pub architecture: Option<String>,
    pub cpu_model: Option<String>,
    /// Logical CPUs.
    pub cpus: Option<u64>,
    /// CPUs that the server process may use.
    pub usable_cpus: Option<u64>,
    pub numa_nodes: Option<u64>,
    pub memory_bytes: Option<u64>,
    /// Memory that the server process may use.
    pub memory_limit_bytes: Option<u64>,
    /// Why nothing is known, if the server did not report it.
    pub reason: Option<String>,
}
