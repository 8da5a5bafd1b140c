//! Errors of reading a machine or planning a placement, with advice for the user.

use std::io;
use std::path::PathBuf;

use super::apply::refusal_hint;
use super::outcome::counted;
use dyno_plan::placement::{CpuSet, IdSetError, MemoryPolicy, NodeSet, PolicyError};

/// A machine could not be read, or a request does not fit it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A file that describes the machine or a process cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file or a field does not contain the expected list of numbers.
    #[error("`{}` has an unknown format", path.display())]
    Malformed {
        /// The file, or the field of `/proc/PID/status`.
        path: PathBuf,
        #[source]
        source: IdSetError,
    },
    /// A memory table has no line with the total.
    #[error("`{}` has no `MemTotal` in kB", path.display())]
    NoMemoryTotal { path: PathBuf },
    /// The affinity mask and the control groups leave no CPU.
    #[error("this process may not use any of the online CPUs `{online}`")]
    NothingAllowed { online: CpuSet },
    /// Invalid policy, client placement or list of places.
    #[error(transparent)]
    Syntax(#[from] PolicyError),
    /// The request contains no instances.
    #[error("a placement needs at least one instance")]
    NoInstances,
    /// The number of explicit places differs from the number of processes.
    #[error(
        "{} given for {}",
        counted(*given as u64, "placement"),
        counted(*wanted as u64, who.trim_end_matches('s'))
    )]
    PlacementCount {
        /// `instances` or `clients`.
        who: &'static str,
        /// Places in the request.
        given: usize,
        /// Required number of places.
        wanted: usize,
    },
    /// A node does not exist, or lacks CPUs or memory.
    #[error("node {node} has no usable {what}; nodes with usable {what} are `{known}`")]
    UnusableNode {
        node: u32,
        /// `CPUs` or `memory`.
        what: &'static str,
        /// Usable nodes.
        known: NodeSet,
    },
    /// Excluding the nodes of a list leaves no node.
    #[error("excluding the nodes `{excluded}` leaves none; nodes with usable CPUs are `{known}`")]
    NoNodeLeft {
        /// The nodes of the list.
        excluded: NodeSet,
        /// Nodes with CPUs.
        known: NodeSet,
    },
    /// Clients are on the machine of their servers, but their placement names nodes of client
    /// hosts.
    #[error(
        "`client={client}` names nodes of client hosts, but these clients run next to their servers"
    )]
    NodesOfClientHosts {
        /// Placement of the clients.
        client: String,
    },
    /// Clients are on machines without servers, but have places relative to servers or separate
    /// places.
    #[error("`client={client}` {reason}")]
    NotOneForAll {
        /// Placement of the clients.
        client: String,
        /// The impossible part of the placement, as a predicate.
        reason: &'static str,
    },
    /// The kernel refuses a memory policy.
    #[error("the kernel refused the memory policy `{memory}`")]
    Refused {
        memory: MemoryPolicy,
        #[source]
        source: io::Error,
    },
    /// CPUs of a list do not exist, are offline, or are forbidden.
    #[error("CPUs `{refused}` cannot be used; usable CPUs are `{allowed}`")]
    UnusableCpus {
        refused: CpuSet,
        /// Usable CPUs.
        allowed: CpuSet,
    },
    /// There are fewer whole cores than processes, or than the policy requires.
    #[error("too few cores: {location} has {available} free, {needed} needed for {who}")]
    TooFewCores {
        /// Where the cores are needed.
        location: String,
        /// Free cores there.
        available: usize,
        /// Cores needed there.
        needed: usize,
        /// The processes that need them.
        who: String,
    },
    /// A client needs another node than its instance, and none has CPUs.
    #[error("no other node has CPUs for the client of instance {instance}")]
    NoOtherNode { instance: usize },
    /// A client's place is relative to an instance without its own place.
    #[error("`client={client}` needs instances with their own CPUs, but `{policy}` assigns none")]
    Unpinned {
        /// Placement of the clients.
        client: String,
        policy: String,
    },
    /// Two processes would share CPUs that each needs exclusively.
    #[error("{first} and {second} would share the CPUs `{cpus}`")]
    Overlap { first: String, second: String, cpus: CpuSet },
}

impl PlacementError {
    /// Advice for the user as one sentence without a final period; `None` if the error is
    /// sufficient.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PlacementError::Refused { source, .. } => refusal_hint(source),
            PlacementError::NotOneForAll { .. } => Some(
                "use `client=LIST` for CPUs or `client=nodes=NODES` for nodes of each client host, \
                    both with a memory policy after `@`, or `client=none` to leave them to the \
                    system",
            ),
            PlacementError::NothingAllowed { .. } => {
                Some("check `taskset -p $$` and the cpuset of the container")
            }
            PlacementError::PlacementCount { .. } => {
                Some("write one placement for each, separated by `/`")
            }
            PlacementError::UnusableNode { .. }
            | PlacementError::NoNodeLeft { .. }
            | PlacementError::UnusableCpus { .. } => {
                Some("`dyno server plan` shows the CPUs and nodes of the machine")
            }
            PlacementError::TooFewCores { who, .. } if who.contains("client") => Some(
                "use fewer instances, fewer cores per instance, or `client=none`, which leaves the clients to the scheduler",
            ),
            PlacementError::TooFewCores { .. } => {
                Some("use fewer instances, or fewer cores per instance")
            }
            PlacementError::NoOtherNode { .. } | PlacementError::NodesOfClientHosts { .. } => {
                Some("use `client=same`, or name the CPUs of the clients with `client=LIST`")
            }
            PlacementError::Unpinned { .. } => {
                Some("use `client=none`, or name the CPUs of the clients with `client=LIST`")
            }
            PlacementError::Overlap { .. } => {
                Some("give each its own CPUs, or leave one of them to the scheduler")
            }
            PlacementError::Read { .. }
            | PlacementError::Malformed { .. }
            | PlacementError::NoMemoryTotal { .. }
            | PlacementError::Syntax(_)
            | PlacementError::NoInstances => None,
        }
    }
}
