//! What a task has to say.

use crate::context::Context;
use dyno_plan::task::Task;

/// Tells a person what a task has to say.
pub(crate) fn announce(task: &Task, context: Context<'_>) {
    for warning in &task.warnings {
        context.warning(warning);
    }
    for note in &task.notes {
        context.note(note);
    }
}
