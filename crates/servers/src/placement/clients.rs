//! Places clients on a machine without servers: all of them share one place there.

use super::apply::PreparedPlacement;
use super::error::PlacementError;
use super::machine::Machine;
use super::planner::check_place;
use dyno_plan::placement::{
    ClientPolicy, CpuSet, InstancePlacement, MemoryPolicy, NodePlace, NodeSet,
};

/// Plans the place of all clients on `machine`.
///
/// # Errors
/// The errors of [`check_clients_alone`], and CPUs and nodes that the machine does not have.
pub fn plan_clients_alone(
    machine: &Machine,
    policy: &ClientPolicy,
) -> Result<InstancePlacement, PlacementError> {
    check_clients_alone(policy)?;
    let place = match policy {
        ClientPolicy::Cores(list) => {
            InstancePlacement { cpus: Some(list.clone()), memory: MemoryPolicy::Default }
        }
        ClientPolicy::Nodes(place) => {
            InstancePlacement { cpus: Some(cpus_of(machine, place)?), memory: place.memory.clone() }
        }
        ClientPolicy::Custom(places) => places.first().cloned().unwrap_or_default(),
        ClientPolicy::Unpinned | ClientPolicy::Same | ClientPolicy::Other => {
            InstancePlacement::default()
        }
    };
    check_place(machine, &place)?;
    Ok(InstancePlacement { memory: place.memory.among(&machine.allowed_memory_nodes), ..place })
}

/// Refuses places that are impossible for clients on any machine without servers.
///
/// # Errors
/// Places relative to the servers, and separate places for each client.
pub fn check_clients_alone(policy: &ClientPolicy) -> Result<(), PlacementError> {
    let reason = match policy {
        ClientPolicy::Same | ClientPolicy::Other => {
            "places clients next to their servers, but clients of a fleet are on other hosts"
        }
        ClientPolicy::Custom(places) if places.len() != 1 => {
            "gives each client its own place, but all clients of a fleet host share one"
        }
        _ => return Ok(()),
    };
    Err(PlacementError::NotOneForAll { client: policy.to_string(), reason })
}

fn cpus_of(machine: &Machine, place: &NodePlace) -> Result<CpuSet, PlacementError> {
    let cores = machine.allowed_cores();
    let known: NodeSet = cores.iter().map(|core| core.node).collect();
    if place.is_negated && known.is_subset(&place.nodes) {
        return Err(PlacementError::NoNodeLeft { excluded: place.nodes.clone(), known });
    }
    if let Some(node) = place.nodes.difference(&known).first()
        && !place.is_negated
    {
        return Err(PlacementError::UnusableNode { node, what: "CPUs", known });
    }
    let own = cores.iter().filter(|core| place.nodes.contains(core.node) != place.is_negated);
    Ok(own.flat_map(|core| core.cpus.iter()).collect())
}

impl PreparedPlacement {
    /// The memory policy of a client whose threads are pinned elsewhere; `None` if the system
    /// decides. Local memory is set explicitly, because the program's own policy would be inherited
    /// otherwise.
    ///
    /// # Errors
    /// [`PlacementError::Refused`]: the kernel refused the policy on a thread started to test it.
    pub fn memory_of_client(
        place: &InstancePlacement,
    ) -> Result<Option<PreparedPlacement>, PlacementError> {
        if place.memory == MemoryPolicy::Default {
            return Ok(None);
        }
        let prepared =
            PreparedPlacement::new(&InstancePlacement { cpus: None, memory: place.memory.clone() });
        let tried = std::thread::scope(|scope| {
            let thread = scope.spawn(|| prepared.apply_to_current_thread());
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked")))
        });
        match tried {
            Ok(()) => Ok(Some(prepared)),
            Err(source) => Err(PlacementError::Refused { memory: place.memory.clone(), source }),
        }
    }
}
