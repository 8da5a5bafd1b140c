//! What the doctor and a run need around the checks of the machine: finding out what the server is, what can be traced, and
//! keeping what was changed until it is taken back.

pub(crate) mod changes;
pub mod journal;
pub mod parameters;
pub mod step;
pub mod subject;
pub mod tracing;
