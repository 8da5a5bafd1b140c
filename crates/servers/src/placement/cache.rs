//! The memory that each instance can reach, and its part of it.

use super::machine::Machine;
use super::outcome::Placement;
use crate::cache::MemoryShare;
use dyno_plan::placement::NodeSet;
use dyno_plan::placement::{InstancePlacement, MemoryPolicy};

impl Placement {
    /// Memory of each instance.
    ///
    /// It reaches the memory of its nodes, or the limit of the control group when that is less. Its
    /// share is each node's memory divided evenly among the instances that may use the node, and
    /// no more than the limit of the control group divided by all instances.
    pub fn memory_shares(&self, machine: &Machine) -> Vec<MemoryShare> {
        let places = self.instances.iter();
        let reaches: Vec<_> = places.map(|place| reach(machine, place)).collect();
        let limit = machine.limits.memory_bytes.unwrap_or(u64::MAX);
        let instances = reaches.len().max(1) as u64;
        let shares = reaches.iter().map(|nodes| {
            let all: u64 = nodes.iter().map(|node| machine.memory_of(node)).sum();
            let share: u64 = nodes
                .iter()
                .map(|node| machine.memory_of(node) / users(&reaches, node))
                .sum();
            MemoryShare {
                reach_bytes: all.min(limit),
                share_bytes: share.min(limit / instances),
            }
        });
        shares.collect()
    }
}

/// Instances that may use memory of a node.
fn users(reaches: &[NodeSet], node: u32) -> u64 {
    let users = reaches.iter().filter(|nodes| nodes.contains(node));
    users.count().max(1) as u64
}

/// Nodes that the memory of an instance comes from. Local memory comes from elsewhere only when
/// the own nodes are full, which the size of the cache is to prevent.
fn reach(machine: &Machine, place: &InstancePlacement) -> NodeSet {
    let named = place.memory.nodes();
    match (&place.memory, &place.cpus) {
        _ if !named.is_empty() => named,
        (MemoryPolicy::Local, Some(cpus)) => machine.memory_nodes_near(cpus),
        _ => machine.allowed_memory_nodes.clone(),
    }
}
