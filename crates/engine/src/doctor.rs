//! Context of the machine checks: server facts, tracing support, and the journal of changes that
//! are to be undone.

pub(crate) mod changes;
pub mod journal;
pub mod parameters;
pub mod step;
pub mod subject;
pub mod tracing;
