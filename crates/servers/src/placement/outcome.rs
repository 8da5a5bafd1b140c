//! The planned placement, with notes for its interpretation.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::machine::Machine;
use dyno_plan::placement::{CpuSet, NodeSet};
use dyno_plan::placement::{InstancePlacement, PlacementRequest};

/// The places of all instances and clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The request that was planned.
    pub request: PlacementRequest,
    /// One place per server.
    pub instances: Vec<InstancePlacement>,
    /// One place per client, in the order of the servers.
    pub clients: Vec<InstancePlacement>,
    /// Reasons why the placement is less separate than it looks.
    pub notes: Vec<Note>,
}

/// A property of a placement that affects measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// CPUs of one core belong to several processes, because the request names CPUs individually.
    SharedCore { cpus: CpuSet, owners: Vec<String> },
    /// A process has CPUs on several nodes.
    SpansNodes { process: String, nodes: NodeSet },
    /// A process runs on a node without usable memory.
    RemoteMemory {
        process: String,
        node: u32,
        /// Nearest node with memory.
        memory_node: u32,
    },
    /// Processes without a fixed place may run on the CPUs of other processes.
    Unpinned {
        /// Number of servers without a fixed place.
        instance_count: u32,
        /// Number of clients without a fixed place.
        client_count: u32,
    },
    /// The control group allows less CPU time than the CPUs of the placement could use: processes
    /// are stopped for the rest of each period, which affects the high percentiles.
    Quota {
        /// CPU time allowed by the control group, in CPUs.
        quota_cpus: f64,
        /// CPUs of all instances and clients together.
        planned_cpus: u32,
    },
    /// Servers have different numbers of CPUs, so their figures differ for that reason alone.
    UnequalServers {
        /// Number of CPUs of each server, in their order.
        cpus: Vec<u32>,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::SharedCore { cpus, owners } => {
                write!(formatter, "CPUs {cpus} are one core and belong to {}", owners.join(" and "))
            }
            Note::SpansNodes { process, nodes } => {
                write!(formatter, "{process} has CPUs on the nodes {nodes}")
            }
            Note::RemoteMemory { process, node, memory_node } => write!(
                formatter,
                "{process} runs on node {node}, which has no memory for it; the nearest is on node {memory_node}"
            ),
            Note::Unpinned { instance_count, client_count } => {
                let all = [(*instance_count, "instance"), (*client_count, "client")];
                let all = all.into_iter().filter(|(count, _)| *count > 0);
                let all: Vec<_> = all.map(|(count, name)| counted(count, name)).collect();
                write!(
                    formatter,
                    "{} left to the system, which may run them on CPUs of the others",
                    all.join(" and ")
                )
            }
            Note::Quota { quota_cpus, planned_cpus } => write!(
                formatter,
                "the control group allows the time of {quota_cpus} CPUs; the placement has {planned_cpus}"
            ),
            Note::UnequalServers { cpus } => {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                write!(
                    formatter,
                    "the servers have different numbers of CPUs ({}): their figures cannot be compared with each other",
                    cpus.join(", ")
                )
            }
        }
    }
}

/// `1 instance`, `2 instances`.
pub(super) fn counted(count: impl Into<u64>, name: &str) -> String {
    let count = count.into();
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// `instance 0`, or for an index past the instances `the client of instance 0`.
pub(super) fn process_name(index: usize, instances: usize) -> String {
    match index.checked_sub(instances) {
        None => format!("instance {index}"),
        Some(client) => format!("the client of instance {client}"),
    }
}

/// Finds the notes for a finished placement.
pub(super) fn notes(
    machine: &Machine,
    instances: &[InstancePlacement],
    clients: &[InstancePlacement],
) -> Vec<Note> {
    let processes: Vec<(String, &InstancePlacement)> = instances
        .iter()
        .chain(clients)
        .enumerate()
        .map(|(index, place)| (process_name(index, instances.len()), place))
        .collect();
    let mut notes = shared_cores(machine, &processes);
    for (process, place) in &processes {
        notes.extend(distant(machine, process, place));
    }
    notes.extend(unpinned(instances, clients));
    notes.extend(quota(machine, &processes));
    notes.extend(unequal(instances));
    notes
}

fn unequal(instances: &[InstancePlacement]) -> Option<Note> {
    let sizes = instances.iter().filter_map(|place| place.cpus.as_ref());
    let cpus: Vec<u32> = sizes.map(|cpus| cpus.len() as u32).collect();
    let differ = cpus.windows(2).any(|pair| pair[0] != pair[1]);
    differ.then_some(Note::UnequalServers { cpus })
}

fn shared_cores(machine: &Machine, processes: &[(String, &InstancePlacement)]) -> Vec<Note> {
    let shared = machine.cores.iter().filter_map(|core| {
        let uses = |place: &InstancePlacement| {
            let cpus = place.cpus.as_ref();
            cpus.is_some_and(|cpus| !cpus.is_disjoint(&core.cpus))
        };
        let owners = processes.iter().filter(|(_, place)| uses(place));
        let owners: Vec<_> = owners.map(|(process, _)| process.clone()).collect();
        (owners.len() > 1).then(|| Note::SharedCore { cpus: core.cpus.clone(), owners })
    });
    shared.collect()
}

fn distant(machine: &Machine, process: &str, place: &InstancePlacement) -> Vec<Note> {
    let Some(cpus) = &place.cpus else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let nodes = machine.nodes_of(cpus);
    for node in nodes.iter() {
        if let Some(memory_node) = machine.nearest_memory_node(node)
            && memory_node != node
        {
            notes.push(Note::RemoteMemory { process: process.to_owned(), node, memory_node });
        }
    }
    if nodes.len() > 1 {
        notes.push(Note::SpansNodes { process: process.to_owned(), nodes });
    }
    notes
}

fn unpinned(instances: &[InstancePlacement], clients: &[InstancePlacement]) -> Option<Note> {
    let count = |places: &[InstancePlacement]| {
        let unpinned = places.iter().filter(|place| place.cpus.is_none());
        u32::try_from(unpinned.count()).unwrap_or(u32::MAX)
    };
    let (instance_count, client_count) = (count(instances), count(clients));
    let all = instances.len() + clients.len();
    let some = instance_count + client_count;
    (some > 0 && (some as usize) < all).then_some(Note::Unpinned { instance_count, client_count })
}

fn quota(machine: &Machine, processes: &[(String, &InstancePlacement)]) -> Option<Note> {
    let quota_cpus = machine.limits.quota_cpus?;
    let mut cpus = CpuSet::default();
    for (_, place) in processes {
        cpus.extend(place.cpus.as_ref().unwrap_or(&machine.allowed_cpus));
    }
    let planned_cpus = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    (quota_cpus < f64::from(planned_cpus)).then_some(Note::Quota { quota_cpus, planned_cpus })
}

impl Machine {
    /// Whether memory policies make a difference on this machine.
    pub(super) fn has_memory_choice(&self) -> bool {
        self.has_nodes && self.allowed_memory_nodes.len() > 1
    }

    /// The nearest node with memory for each node of these CPUs.
    pub(super) fn memory_nodes_near(&self, cpus: &CpuSet) -> NodeSet {
        let nodes = self.nodes_of(cpus);
        nodes.iter().filter_map(|node| self.nearest_memory_node(node)).collect()
    }
}
