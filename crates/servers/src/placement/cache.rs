//! The memory that each instance can use, and its share of it.

use super::machine::Machine;
use super::outcome::Placement;
use crate::cache::MemoryShare;
use dyno_plan::placement::NodeSet;
use dyno_plan::placement::{InstancePlacement, MemoryPolicy};

impl Placement {
    /// Memory of each instance.
    ///
    /// It can use the memory of its nodes, or the control group's limit if it is lower. Its share
    /// is each node's memory divided evenly among the instances that may use the node, limited to
    /// the control group's limit divided by all instances.
    pub fn memory_shares(&self, machine: &Machine) -> Vec<MemoryShare> {
        let reaches: Vec<_> = self.instances.iter().map(|place| reach(machine, place)).collect();
        let limit = machine.limits.memory_bytes.unwrap_or(u64::MAX);
        let instances = reaches.len().max(1) as u64;
        let shares = reaches.iter().map(|nodes| {
            let all: u64 = nodes.iter().map(|node| machine.memory_of(node)).sum();
            let share: u64 =
                nodes.iter().map(|node| machine.memory_of(node) / users(&reaches, node)).sum();
            MemoryShare { reach_bytes: all.min(limit), share_bytes: share.min(limit / instances) }
        });
        shares.collect()
    }
}

/// Instances that may use memory of a node.
fn users(reaches: &[NodeSet], node: u32) -> u64 {
    let users = reaches.iter().filter(|nodes| nodes.contains(node));
    users.count().max(1) as u64
}

/// Nodes that provide the memory of an instance. Local memory uses other nodes only if its own
/// nodes are full, which the cache size must prevent.
fn reach(machine: &Machine, place: &InstancePlacement) -> NodeSet {
    let named = place.memory.nodes();
    match (&place.memory, &place.cpus) {
        _ if !named.is_empty() => named,
        (MemoryPolicy::Local, Some(cpus)) => machine.memory_nodes_near(cpus),
        _ => machine.allowed_memory_nodes.clone(),
    }
}
