//! Changes to the kernel and to servers that are undone: the journal that outlives a killed program,
//! the changes of `dyno doctor`, and the changes of a run.

pub(crate) mod changes;
pub mod journal;
pub mod parameters;
pub mod step;
