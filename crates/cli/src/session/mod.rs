//! What was typed, as a task.

pub(crate) mod framework;
pub(crate) mod task;
