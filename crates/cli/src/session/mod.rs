//! What was typed, as a task.

pub(crate) mod task;
