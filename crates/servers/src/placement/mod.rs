//! Puts servers and their clients on CPUs and memory of the machine on purpose.
//!
//! [`Machine::read`] says what there is and what of it may be used, [`plan()`] turns a policy into
//! CPUs and memory nodes for each process, [`plan_clients_alone()`] those for clients on a machine
//! without servers, [`draw()`] shows that before anything starts, [`PreparedPlacement`] sets it, and
//! [`verify()`] looks at what became of it. What each policy does is in `docs/placement.md`.

mod apply;
mod cache;
mod cgroup;
mod clients;
mod deviation;
mod division;
mod draw;
mod error;
mod machine;
mod node_cores;
mod outcome;
mod planner;
mod read;
mod verify;

pub use apply::PreparedPlacement;
pub(crate) use apply::refusal_hint;
pub use clients::{check_clients_alone, plan_clients_alone};
pub use deviation::Deviation;
pub use draw::draw;
pub use dyno_plan::placement::{
    ClientPolicy, CpuSet, IdSet, IdSetError, InstancePlacement, MemoryPolicy, NodePlace, NodeSet,
    PlacementRequest, Policy, PolicyError,
};
pub use error::PlacementError;
pub use machine::{Core, Limits, Machine, Node};
pub use outcome::{Note, Placement};
pub use planner::{check_anywhere, plan};
pub use verify::{
    AchievedMemory, AchievedPlacement, AchievedThreads, PolicyUse, ThreadGroup, verify,
    verify_threads,
};
