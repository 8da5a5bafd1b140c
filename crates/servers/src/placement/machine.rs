//! The hardware of a machine and its usable part: nodes, caches, cores, hardware threads, memory.
//! `read` reads it from a running system.

use std::cmp::Reverse;

use dyno_plan::placement::{CpuSet, NodeSet};

/// Distance of a node to itself in the firmware's tables.
pub(super) const OWN_DISTANCE: u32 = 10;
/// Distance to another node if the system has no table.
pub(super) const OTHER_DISTANCE: u32 = 20;

/// The processors and the memory of a machine, and the part of them that this process may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Cores with at least one online CPU, ordered by node, L3 group and first CPU. Neighbours in
    /// this list are neighbours in the machine, regardless of their numbers.
    pub cores: Vec<Core>,
    /// Online nodes, ascending. At least one: a system without nodes counts as node 0.
    pub nodes: Vec<Node>,
    /// CPUs that are running.
    pub online: CpuSet,
    /// Online CPUs that this process may use, after its affinity mask and its control groups.
    pub allowed_cpus: CpuSet,
    /// Nodes with memory that this process may use.
    pub allowed_memory_nodes: NodeSet,
    /// Whether the kernel supports nodes. Without nodes it has no memory policies either.
    pub has_nodes: bool,
    pub limits: Limits,
}

/// One core: the CPUs (hardware threads) that share its execution units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its online CPUs, or a subset of them.
    pub cpus: CpuSet,
    pub node: u32,
    /// Package (socket); 0 if the system does not report it.
    pub package: u32,
    /// Number of the L3 cache that it shares with others, counted over the machine and separately
    /// for each node; `None` if the system does not report it.
    pub cache_group: Option<u32>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub number: u32,
    /// Its online CPUs; empty for a memory-only node.
    pub cpus: CpuSet,
    /// Its memory in bytes; 0 for a CPU-only node.
    pub memory_bytes: u64,
    /// Pairs of a node and the distance to it; 10 is the node itself.
    pub distances: Vec<(u32, u32)>,
}

/// Limits of the control groups of this process, the smallest of each kind on the way to the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// CPU time divided by elapsed time, in CPUs (2.5 is two and a half); `None` if unlimited.
    pub quota_cpus: Option<f64>,
    /// Memory in bytes; `None` if unlimited.
    pub memory_bytes: Option<u64>,
    /// CPUs of the cpuset; `None` without a cpuset.
    pub cpus: Option<CpuSet>,
    /// Memory nodes of the cpuset; `None` without a cpuset.
    pub memory_nodes: Option<NodeSet>,
}

impl Machine {
    /// The node with this number.
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.number == number)
    }

    /// Cores with at least one allowed CPU, each reduced to its allowed CPUs, in the order of
    /// [`cores`](Machine::cores).
    pub fn allowed_cores(&self) -> Vec<Core> {
        self.cores_within(&self.allowed_cpus)
    }

    /// Cores reduced to the CPUs of a set, without cores outside the set.
    pub fn cores_within(&self, cpus: &CpuSet) -> Vec<Core> {
        let reduced = self
            .cores
            .iter()
            .map(|core| Core { cpus: core.cpus.intersection(cpus), ..core.clone() });
        reduced.filter(|core| !core.cpus.is_empty()).collect()
    }

    /// Nodes of these CPUs.
    pub fn nodes_of(&self, cpus: &CpuSet) -> NodeSet {
        self.nodes
            .iter()
            .filter(|node| !node.cpus.is_disjoint(cpus))
            .map(|node| node.number)
            .collect()
    }

    /// Distance between two nodes; 10 is the same node, a larger number is farther.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let known = self
            .node(from)
            .and_then(|node| node.distances.iter().find(|(number, _)| *number == to));
        match known {
            Some((_, distance)) => *distance,
            None if from == to => OWN_DISTANCE,
            None => OTHER_DISTANCE,
        }
    }

    /// The nearest node with usable memory, which is the node itself if it has any. Among equals,
    /// the node with the most memory and then the lowest number. `None` if no memory node is
    /// allowed.
    pub fn nearest_memory_node(&self, node: u32) -> Option<u32> {
        self.allowed_memory_nodes.iter().min_by_key(|&candidate| {
            (self.distance(node, candidate), Reverse(self.memory_of(candidate)), candidate)
        })
    }

    /// Memory of a node in bytes; 0 if the node does not exist.
    pub(super) fn memory_of(&self, node: u32) -> u64 {
        self.node(node).map_or(0, |node| node.memory_bytes)
    }
}
