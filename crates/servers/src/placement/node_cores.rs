//! Assigns processes to NUMA nodes, and divides the cores of a node among the processes assigned to it.

use std::cmp::Reverse;

use super::division::{cpus_of, divide};
use super::error::PlacementError;
use super::machine::{Core, Machine};
use super::outcome::counted;

/// Cores of each process.
pub(super) type Shares = Vec<Vec<Core>>;

/// The free cores of one NUMA node, and the processes assigned to them.
pub(super) struct NodeCores {
    pub(super) node: u32,
    pub(super) cores: Vec<Core>,
    pub(super) processes: Vec<Process>,
}

/// A process by its index among processes of its kind.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Process {
    Instance(usize),
    Client(usize),
}

/// Groups cores by node, in the order of the cores.
pub(super) fn by_node(cores: Vec<Core>) -> Vec<NodeCores> {
    let mut nodes: Vec<NodeCores> = Vec::new();
    for core in cores {
        match nodes.iter_mut().find(|node| node.node == core.node) {
            Some(node) => node.cores.push(core),
            None => {
                nodes.push(NodeCores { node: core.node, cores: vec![core], processes: Vec::new() })
            }
        }
    }
    nodes
}

/// Assigns a process to the node with the most cores per process; among equals to the node nearest
/// to `near`, then to the package with the fewest processes. Returns the number of the node, or
/// `None` if no node fits.
pub(super) fn assign(
    machine: &Machine,
    nodes: &mut [NodeCores],
    process: Process,
    near: Option<u32>,
    fits: impl Fn(u32) -> bool,
) -> Option<u32> {
    let package_load = |package: u32| -> usize {
        let same = nodes.iter().filter(|node| node.package() == package);
        same.map(|node| node.processes.len()).sum()
    };
    let best = (0..nodes.len()).filter(|&index| fits(nodes[index].node)).min_by_key(|&index| {
        let node = &nodes[index];
        // Scaled, so that thirds and halves of small nodes compare as different.
        let cores_each = node.cores.len() * 1024 / (node.processes.len() + 1);
        let distance = near.map_or(0, |near| machine.distance(near, node.node));
        (Reverse(cores_each), distance, package_load(node.package()), node.node)
    })?;
    nodes[best].processes.push(process);
    Some(nodes[best].node)
}

impl NodeCores {
    fn package(&self) -> u32 {
        self.cores.first().map_or(0, |core| core.package)
    }

    fn too_few_cores(&self) -> PlacementError {
        let instances =
            self.processes.iter().filter(|process| matches!(process, Process::Instance(_))).count();
        PlacementError::TooFewCores {
            location: format!("node {}", self.node),
            available: self.cores.len(),
            needed: self.processes.len(),
            who: match self.processes.len() - instances {
                0 => counted(instances as u64, "instance"),
                clients => format!(
                    "{} and {}",
                    counted(instances as u64, "instance"),
                    counted(clients as u64, "client")
                ),
            },
        }
    }
}

/// Takes cores from instances on large nodes until no instance has more than the largest instance
/// on the smallest node: instances of different size cannot be compared. `nodes` has the node of
/// each instance.
pub(super) fn even_out(instances: &mut [Vec<Core>], nodes: &[u32]) {
    let size = |share: &[Core]| cpus_of(share).len();
    let smallest = (0..instances.len()).min_by_key(|&index| size(&instances[index]));
    let Some(smallest) = smallest else { return };
    let neighbours = (0..instances.len()).filter(|&index| nodes[index] == nodes[smallest]);
    let Some(limit) = neighbours.map(|index| size(&instances[index])).max() else {
        return;
    };
    for share in instances {
        while size(share) > limit && share.len() > 1 {
            share.pop();
        }
    }
}

/// Divides the cores of every node among its processes. Returns the shares of the `count`
/// instances and of their clients.
pub(super) fn divide_cores(
    nodes: &[NodeCores],
    count: usize,
) -> Result<(Shares, Shares), PlacementError> {
    let mut instances = vec![Vec::new(); count];
    let mut clients = vec![Vec::new(); count];
    for node in nodes {
        if node.cores.len() < node.processes.len() {
            return Err(node.too_few_cores());
        }
        let shares = divide(&node.cores, node.processes.len());
        for (process, share) in node.processes.iter().zip(shares) {
            match *process {
                Process::Instance(index) => instances[index] = share,
                Process::Client(index) => clients[index] = share,
            }
        }
    }
    Ok((instances, clients))
}
