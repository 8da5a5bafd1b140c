//! Places servers and their clients on the CPUs and memory of the machine.
//!
//! [`Machine::read`] reads the hardware and its usable part, [`plan()`] turns a policy into CPUs
//! and memory nodes for each process, [`plan_clients_alone()`] does this for clients on a machine
//! without servers, [`draw()`] shows the result before anything starts, [`PreparedPlacement`]
//! applies it, and [`AchievedPlacement`] checks it. `docs/placement.md` describes the policies.

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
    AchievedMemory, AchievedPlacement, AchievedThreads, PolicyUse, ThreadGroup, verify_threads,
};
