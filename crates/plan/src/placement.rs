//! Where the servers of a run and their clients are put: the policy of the instances and the place of their clients, as
//! values and as the text of a plan or an option. What they come to on a machine is left to `servers`.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

mod id_set;
mod text;

pub(crate) use id_set::is_list;
pub use id_set::{CpuSet, IdSet, IdSetError, NodeSet};
pub use text::{PolicyError, names_clients};

/// Where a process may run and where its memory comes from: one server, or one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlacement {
    /// Its CPUs; any that the system gives it when absent.
    pub cpus: Option<CpuSet>,
    /// Its memory.
    pub memory: MemoryPolicy,
}

/// Memory policy of a process. The text has the words of the kernel, as `/proc/PID/numa_maps`
/// shows them: `default`, `local`, `bind:0`, `interleave:0-1`, `prefer:1`; besides `interleave:all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum MemoryPolicy {
    /// Nothing is set: the policy of the process that starts it, usually that of the system.
    #[default]
    Default,
    /// From the node on which the thread runs, from others when that is full.
    Local,
    /// Only from these nodes, the nearest first. When they are full the process is killed.
    Bind(NodeSet),
    /// Page by page from these nodes in turn.
    Interleave(NodeSet),
    /// The same from all nodes with memory that the process may use, whichever these are on its machine.
    InterleaveAll,
    /// From this node, from others when it is full.
    Preferred(u32),
}

/// How instances are placed. The text is what a plan or an option says.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Policy {
    /// `none`: everything is left to the system.
    #[default]
    None,
    /// `interleave`: CPUs are left to the system, memory comes from all nodes in turn.
    Interleave,
    /// `spread`: each instance is assigned to one node and has CPUs of its own there. Nodes get
    /// instances by the number of their cores, so that equal nodes get equally many. Memory is
    /// bound to the node.
    Spread,
    /// `node=K`: as `spread`, with all instances on one node.
    Node(u32),
    /// `cores=LIST`: the CPUs of the list are divided among the instances, core by core. Memory
    /// is bound to the nodes of the CPUs.
    Cores(CpuSet),
    /// `cores-per-instance=N` and `cores-per-instance=N,smt`: each instance has `N` whole cores,
    /// in one L3 group where that is possible, else in one node. Memory is local.
    CoresPerInstance {
        /// Cores of each instance.
        cores: NonZeroU32,
        /// Use all CPUs of a core. Without, one CPU of each is used and its siblings stay idle.
        siblings: bool,
    },
    /// `custom=PLACE/PLACE/…`: one place for each instance, taken as it is. A place is a list of
    /// CPUs or `any`, and a memory policy after `@`, such as `0-3@bind:0` or `any@interleave:0-1`.
    Custom(Vec<InstancePlacement>),
}

/// CPUs by the nodes of a machine that is not known yet, and a memory policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    /// Numbers of nodes.
    pub nodes: NodeSet,
    /// All nodes with CPUs but these.
    pub is_negated: bool,
    /// Memory.
    pub memory: MemoryPolicy,
}

/// Where the clients run. There is one for each instance.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum ClientPolicy {
    /// `none`: wherever the system puts them.
    Unpinned,
    /// `same`: on a node of the own instance, on cores that no instance has.
    Same,
    /// `other`: on one node that is not of the own instance, on cores that no instance has.
    Other,
    /// A list of CPUs, divided among the clients core by core.
    Cores(CpuSet),
    /// `nodes=LIST` or `nodes=!LIST`, and a memory policy after `@`: the CPUs of these nodes, or of all others, of a machine
    /// that has clients alone. They are for all clients there.
    Nodes(NodePlace),
    /// One place for each client as for [`Policy::Custom`], with at least one `@` or `/`.
    Custom(Vec<InstancePlacement>),
}

/// Everything that the planner of placements needs to know beside the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementRequest {
    /// Number of servers, and of clients.
    pub instances: u32,
    /// Placement of the servers.
    pub policy: Policy,
    /// Placement of the clients.
    pub client: ClientPolicy,
}

impl Policy {
    /// Where clients run when nothing is said: left to the system like the instances with `none`,
    /// `interleave` and `custom`; with all others off the cores of the instances, on their nodes.
    pub fn default_client(&self) -> ClientPolicy {
        match self {
            Policy::None | Policy::Interleave | Policy::Custom(_) => ClientPolicy::Unpinned,
            Policy::Spread
            | Policy::Node(_)
            | Policy::Cores(_)
            | Policy::CoresPerInstance { .. } => ClientPolicy::Same,
        }
    }
}

impl MemoryPolicy {
    /// Nodes that the policy names; empty for those that name none.
    pub fn nodes(&self) -> NodeSet {
        match self {
            MemoryPolicy::Default | MemoryPolicy::Local | MemoryPolicy::InterleaveAll => {
                NodeSet::default()
            }
            MemoryPolicy::Bind(nodes) | MemoryPolicy::Interleave(nodes) => nodes.clone(),
            MemoryPolicy::Preferred(node) => [*node].into_iter().collect(),
        }
    }

    /// The policy on a machine where memory may come from these nodes.
    #[must_use]
    pub fn among(&self, nodes: &NodeSet) -> MemoryPolicy {
        match self {
            MemoryPolicy::InterleaveAll => MemoryPolicy::Interleave(nodes.clone()),
            named => named.clone(),
        }
    }
}
