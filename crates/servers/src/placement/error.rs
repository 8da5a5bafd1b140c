//! Why a machine cannot be read or a placement cannot be made, and what the user can do about it.

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
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file or a field that should be a list of numbers is something else.
    #[error("`{}` has an unknown form", path.display())]
    Malformed {
        /// The file, or the field of `/proc/PID/status`.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: IdSetError,
    },
    /// A table of memory has no line with the total.
    #[error("`{}` has no `MemTotal` in kB", path.display())]
    NoMemoryTotal {
        /// The file.
        path: PathBuf,
    },
    /// The affinity mask and the control groups leave no CPU.
    #[error("this process may not use any of the online CPUs `{online}`")]
    NothingAllowed {
        /// CPUs that run.
        online: CpuSet,
    },
    /// A text is no policy, no place of the clients, or no list of places.
    #[error(transparent)]
    Syntax(#[from] PolicyError),
    /// There is nothing to place.
    #[error("a placement needs at least one instance")]
    NoInstances,
    /// The number of places that were written out differs from the number of instances.
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
        /// Instances of the request.
        wanted: usize,
    },
    /// A node does not exist, or has not what is asked of it.
    #[error("node {node} has no usable {what}; nodes that do are `{known}`")]
    UnusableNode {
        /// The number as given.
        node: u32,
        /// `CPU` or `memory`.
        what: &'static str,
        /// Nodes that could be named.
        known: NodeSet,
    },
    /// No node is left when those of a list are excluded.
    #[error("no node but `{excluded}` has a usable CPU; nodes that do are `{known}`")]
    NoNodeLeft {
        /// The nodes as given.
        excluded: NodeSet,
        /// Nodes that have CPUs.
        known: NodeSet,
    },
    /// Clients on the machine of their servers have places by nodes, which are those of hosts of their own.
    #[error(
        "`client={client}` names nodes of client hosts, and these clients are beside their servers"
    )]
    NodesOfClientHosts {
        /// Place of the clients.
        client: String,
    },
    /// Clients on machines without servers have places relative to these, or places one by one.
    #[error("`client={client}` {reason}")]
    NotOneForAll {
        /// Place of the clients.
        client: String,
        /// What it does that cannot be done there, as a predicate.
        reason: &'static str,
    },
    /// The kernel does not set a memory policy.
    #[error("the kernel refuses the memory policy `{memory}`")]
    Refused {
        /// The policy.
        memory: MemoryPolicy,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// CPUs of a list do not exist, are offline, or are forbidden.
    #[error("CPUs `{refused}` cannot be used; usable CPUs are `{allowed}`")]
    UnusableCpus {
        /// CPUs of the list that cannot be used.
        refused: CpuSet,
        /// CPUs that could be named.
        allowed: CpuSet,
    },
    /// There are fewer whole cores than processes, or than the policy asks for.
    #[error("too few cores: {location} has {available} free, {needed} needed for {who}")]
    TooFewCores {
        /// Where they are looked for.
        location: String,
        /// Cores that are free there.
        available: usize,
        /// Cores that are needed there.
        needed: usize,
        /// Whom they are for.
        who: String,
    },
    /// A client needs another node than its instance, and there is none.
    #[error("no other node has CPUs for the client of instance {instance}")]
    NoOtherNode {
        /// The instance.
        instance: usize,
    },
    /// A client is placed relative to an instance that has no place of its own.
    #[error("`client={client}` needs instances with their own CPUs, but `{policy}` assigns none")]
    Unpinned {
        /// Place of the clients.
        client: String,
        /// Policy of the instances.
        policy: String,
    },
    /// Two processes would share CPUs that each should have alone.
    #[error("{first} and {second} would share the CPUs `{cpus}`")]
    Overlap {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// CPUs of both.
        cpus: CpuSet,
    },
}

impl PlacementError {
    /// What the user can do, as one sentence without a final period; `None` when the error says all.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PlacementError::Refused { source, .. } => refusal_hint(source),
            PlacementError::NotOneForAll { .. } => Some(
                "`client=LIST` names CPUs of each client host, `client=nodes=NODES` its nodes, both with a memory policy after `@`; `client=none` leaves them to the system",
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
                "use fewer instances, fewer cores for each, or `client=none`, which leaves the clients to the scheduler",
            ),
            PlacementError::TooFewCores { .. } => {
                Some("use fewer instances, or fewer cores for each")
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
