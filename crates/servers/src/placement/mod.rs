//! Puts servers and their clients on CPUs and memory of the machine on purpose.
//!
//! [`Machine::read`] says what there is and what of it may be used, [`plan()`] turns a policy into
//! CPUs and memory nodes for each process, [`draw()`] shows that before anything starts,
//! [`PreparedPlacement`] sets it, and [`verify()`] looks at what became of it. What each policy does
//! is in `docs/placement.md`.

mod apply;
mod cache;
mod cgroup;
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
pub use deviation::Deviation;
pub use draw::draw;
pub use dyno_plan::placement::{
    ClientPolicy, CpuSet, IdSet, IdSetError, InstancePlacement, MemoryPolicy, NodeSet,
    PlacementRequest, Policy, PolicyError,
};
pub use error::PlacementError;
pub use machine::{Core, Limits, Machine, Node};
pub use outcome::{Note, Placement};
pub use planner::{check_anywhere, plan};
pub use verify::{
    AchievedMemory, AchievedPlacement, PolicyUse, ThreadGroup, verify, verify_threads,
};
