//! Differences between a planned placement and the achieved one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::PlacementError;
use super::verify::PolicyUse;
use dyno_plan::placement::MemoryPolicy;
use dyno_plan::placement::{CpuSet, NodeSet};

/// A difference between the plan and the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Deviation {
    /// Threads may run on CPUs outside of the placement.
    ForeignCpus { thread_count: u32, cpus: CpuSet },
    /// No thread may run on these CPUs of the placement.
    MissingCpus { cpus: CpuSet },
    /// A cpuset forbids memory nodes of the placement.
    ForbiddenNodes { nodes: NodeSet },
    /// No mapping has the planned memory policy.
    MemoryPolicy {
        planned: MemoryPolicy,
        /// The policies in force.
        found: Vec<PolicyUse>,
    },
    /// Memory is on nodes that it should not come from.
    ForeignMemory {
        nodes: NodeSet,
        /// Part of the process's own memory that is there, 0-1.
        memory_ratio: f64,
    },
    /// An interleaved process has too little of its memory on a node.
    UnevenMemory {
        node: u32,
        /// Part of the process's own memory that is there, 0-1.
        memory_ratio: f64,
    },
    /// Something could not be checked.
    NotVerified {
        /// The object and the reason.
        reason: String,
    },
}

impl Deviation {
    /// Deviation if the files with the placement of a process could not be read.
    pub fn not_verified(error: &PlacementError) -> Deviation {
        Deviation::NotVerified {
            reason: match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deviation::ForeignCpus { thread_count, cpus } => write!(
                formatter,
                "{thread_count} threads may run on CPUs {cpus}, which are not assigned to them"
            ),
            Deviation::MissingCpus { cpus } => {
                write!(formatter, "no thread may run on the planned CPUs {cpus}")
            }
            Deviation::ForbiddenNodes { nodes } => {
                write!(formatter, "memory of the planned nodes {nodes} is forbidden")
            }
            Deviation::MemoryPolicy { planned, found } => {
                let found: Vec<_> = found.iter().map(|found| found.policy.as_str()).collect();
                let found = found.join(", ");
                write!(formatter, "no memory has the policy {planned}; found {found}")
            }
            Deviation::ForeignMemory { nodes, memory_ratio } => write!(
                formatter,
                "{:.0} % of the memory is on nodes {nodes}, where it should not be",
                memory_ratio * 100.0
            ),
            Deviation::UnevenMemory { node, memory_ratio } => write!(
                formatter,
                "only {:.0} % of the interleaved memory is on node {node}",
                memory_ratio * 100.0
            ),
            Deviation::NotVerified { reason } => {
                write!(formatter, "the placement could not be verified: {reason}")
            }
        }
    }
}
