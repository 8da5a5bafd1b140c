//! What a task has to say.

use crate::observer::SharedObserver;
use dyno_plan::task::Task;

/// Tells a person what a task has to say.
pub fn announce(task: &Task, observer: &dyn SharedObserver) {
    for warning in &task.warnings {
        observer.warning(warning);
    }
    for note in &task.notes {
        observer.note(note);
    }
}
