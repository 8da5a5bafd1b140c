//! Placement of a run's servers and clients: the policy of the instances and the place of their
//! clients, as values and as text of a plan or an option. `servers` applies them to a machine.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

mod id_set;
mod text;

pub(crate) use id_set::is_list;
pub use id_set::{CpuSet, IdSet, IdSetError, NodeSet};
pub use text::{PolicyError, names_clients};

/// CPUs and memory of one process: one server, or one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlacement {
    /// Absent if the system assigns any CPUs.
    pub cpus: Option<CpuSet>,
    pub memory: MemoryPolicy,
}

/// Memory policy of a process. The text uses the kernel's notation in `/proc/PID/numa_maps`:
/// `default`, `local`, `bind:0`, `interleave:0-1`, `prefer:1`; and additionally `interleave:all`.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum MemoryPolicy {
    /// Nothing is set: the policy of the parent process, usually the system's.
    #[default]
    Default,
    /// From the thread's own node, or from others when that is full.
    Local,
    /// Only from these nodes, the nearest first. When they are full the process is killed.
    Bind(NodeSet),
    /// Page by page from these nodes in turn.
    Interleave(NodeSet),
    /// Page by page from all nodes in turn that the process may use, whichever these are on its
    /// machine.
    InterleaveAll,
    /// From this node, or from others when it is full.
    Preferred(u32),
}

/// Placement policy of the instances. The text is the form in a plan or an option.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Policy {
    /// `none`: the system decides everything.
    #[default]
    None,
    /// `interleave`: the system assigns CPUs, memory comes from all nodes in turn.
    Interleave,
    /// `spread`: each instance is assigned to one node and has its own CPUs there. Nodes get
    /// instances in proportion to their cores, so equal nodes get equally many. Memory is bound to
    /// the node.
    Spread,
    /// `node=K`: like `spread`, with all instances on one node.
    Node(u32),
    /// `cores=LIST`: the CPUs of the list are divided among the instances, core by core. Memory is
    /// bound to the nodes of the CPUs.
    Cores(CpuSet),
    /// `cores-per-instance=N` and `cores-per-instance=N,smt`: each instance has `N` whole cores, in
    /// one L3 group if possible, else in one node. Memory is local.
    CoresPerInstance {
        cores: NonZeroU32,
        /// Whether to use all CPUs of a core. Otherwise one CPU per core is used and its siblings
        /// stay idle.
        siblings: bool,
    },
    /// `custom=PLACE/PLACE/…`: one place for each instance, used unchanged. A place is a list of
    /// CPUs or `any`, and a memory policy after `@`, such as `0-3@bind:0` or `any@interleave:0-1`.
    Custom(Vec<InstancePlacement>),
}

/// CPUs given by nodes, for a machine that is not known yet, and a memory policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlace {
    pub nodes: NodeSet,
    /// Whether all nodes with CPUs except these are meant.
    pub is_negated: bool,
    pub memory: MemoryPolicy,
}

/// Placement of the clients, one for each instance.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum ClientPolicy {
    /// `none`: the system decides.
    Unpinned,
    /// `same`: on a node of the client's instance, on cores without an instance.
    Same,
    /// `other`: on a node other than the instance's, on cores without an instance.
    Other,
    /// A list of CPUs, divided among the clients core by core.
    Cores(CpuSet),
    /// `nodes=LIST` or `nodes=!LIST`, and a memory policy after `@`: the CPUs of these nodes, or of
    /// all others, on a machine with only clients. All clients there share them.
    Nodes(NodePlace),
    /// One place for each client as in [`Policy::Custom`], with at least one `@` or `/`.
    Custom(Vec<InstancePlacement>),
}

/// Input of the placement planner, in addition to the machine.
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
    /// Default placement of the clients. With `none`, `interleave` and `custom` the system decides,
    /// as for the instances; otherwise clients are on the nodes of the instances but on other
    /// cores.
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
    /// Nodes that the policy names; empty if it names none.
    pub fn nodes(&self) -> NodeSet {
        match self {
            MemoryPolicy::Default | MemoryPolicy::Local | MemoryPolicy::InterleaveAll => {
                NodeSet::default()
            }
            MemoryPolicy::Bind(nodes) | MemoryPolicy::Interleave(nodes) => nodes.clone(),
            MemoryPolicy::Preferred(node) => [*node].into_iter().collect(),
        }
    }

    /// The policy on a machine whose memory may come from these nodes.
    #[must_use]
    pub fn among(&self, nodes: &NodeSet) -> MemoryPolicy {
        match self {
            MemoryPolicy::InterleaveAll => MemoryPolicy::Interleave(nodes.clone()),
            named => named.clone(),
        }
    }
}
