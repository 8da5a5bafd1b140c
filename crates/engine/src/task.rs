//! Notes of a task.

use crate::observer::SharedObserver;
use dyno_plan::task::Task;

/// Shows the notes of a task to the user.
pub fn announce(task: &Task, observer: &dyn SharedObserver) {
    for warning in &task.warnings {
        observer.warning(warning);
    }
    for note in &task.notes {
        observer.note(note);
    }
}
