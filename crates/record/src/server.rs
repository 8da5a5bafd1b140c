//! The server of an experiment that is no run, and what servers tell of their machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentServer {
    /// Name of the program or product, such as `secantusd-rs`.
    pub product: String,
    /// Version; absent if it does not tell.
    pub version: Option<String>,
    /// Address.
    pub address: String,
    /// Whether it was started for the experiment.
    pub started: bool,
    /// Its settings by name, as far as they are known.
    pub settings: BTreeMap<String, String>,
}

/// What a server tells of its machine (`hostInfo`). What it does not tell is absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerMachine {
    /// Host name.
    pub hostname: Option<String>,
    /// Distribution with its version.
    pub os: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Kind of CPUs, such as `x86_64`.
    pub architecture: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs.
    pub cpus: Option<u64>,
    /// Those that the process of the server may use.
    pub usable_cpus: Option<u64>,
    /// NUMA nodes.
    pub numa_nodes: Option<u64>,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Memory that the process of the server may use.
    pub memory_limit_bytes: Option<u64>,
    /// Why nothing of it is known, where the server did not tell.
    pub reason: Option<String>,
}
