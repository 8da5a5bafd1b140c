//! Size of the storage engine cache of each instance, so that all of them together fit the memory.

use super::error::PlacementError;
use super::id_set::NodeSet;
use super::machine::Machine;
use super::outcome::Placement;
use super::policy::{InstancePlacement, MemoryPolicy};

const MIB: u64 = 1 << 20;
/// `mongod` takes no smaller cache, and no smaller default.
const SMALLEST_BYTES: u64 = 256 * MIB;
/// What MongoDB leaves to the system before it takes half of the rest.
const RESERVE_BYTES: u64 = 1 << 30;

impl Placement {
    /// Cache of each instance in bytes, a whole number of MiB.
    ///
    /// MongoDB's default for one server on a machine is half of the memory above 1 GiB, at least
    /// 256 MiB. Several servers that each take it ask for more than there is. Here the rule holds
    /// for the memory that an instance can reach (its nodes, or the limit of the control group
    /// when that is less), and the result is divided among the instances that reach the same
    /// memory:
    ///
    /// `cache = max(256 MiB, (reach - 1 GiB) / 2 * share / reach)`
    ///
    /// where `reach` is the memory of its nodes and `share` its part of it: each node's memory
    /// divided evenly among the instances that may use the node, and no more than the limit of the
    /// control group divided by all instances.
    ///
    /// # Errors
    /// [`PlacementError::TooLittleMemory`] when the share of an instance does not hold 256 MiB.
    pub fn cache_bytes(&self, machine: &Machine) -> Result<Vec<u64>, PlacementError> {
        let places = self.instances.iter();
        let reaches: Vec<_> = places.map(|place| reach(machine, place)).collect();
        let limit = machine.limits.memory_bytes.unwrap_or(u64::MAX);
        let instances = reaches.len().max(1) as u64;
        let caches = reaches.iter().enumerate().map(|(instance, nodes)| {
            let all: u64 = nodes.iter().map(|node| machine.memory_of(node)).sum();
            let share: u64 = nodes
                .iter()
                .map(|node| machine.memory_of(node) / users(&reaches, node))
                .sum();
            let share_bytes = share.min(limit / instances);
            if share_bytes <= SMALLEST_BYTES {
                return Err(PlacementError::TooLittleMemory {
                    instance,
                    share_bytes,
                    smallest_bytes: SMALLEST_BYTES,
                });
            }
            Ok(cache(all.min(limit), share_bytes))
        });
        caches.collect()
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

fn cache(reach_bytes: u64, share_bytes: u64) -> u64 {
    let half = reach_bytes.saturating_sub(RESERVE_BYTES) / 2;
    let part = u128::from(half) * u128::from(share_bytes) / u128::from(reach_bytes.max(1));
    let part = u64::try_from(part).expect("a part of a u64 is one");
    (part / MIB * MIB).max(SMALLEST_BYTES)
}
