//! Time that an experiment has taken, including the time before an interruption.

use super::runner::ExperimentRunner;
use crate::error::Error;
use std::time::Instant;

/// See the module.
pub(super) struct Clock {
    before_s: f64,
    begin: Instant,
}

impl Clock {
    pub(super) fn of(runner: &ExperimentRunner<'_>) -> Clock {
        let before_s = runner.document.options.time_spent_s;
        Clock { before_s: before_s.unwrap_or(0.0), begin: Instant::now() }
    }

    pub(super) fn spent_s(&self) -> f64 {
        self.before_s + self.begin.elapsed().as_secs_f64()
    }

    /// Whether the limit, if any, has been reached.
    pub(super) fn has_reached(&self, limit_s: Option<f64>) -> bool {
        limit_s.is_some_and(|limit_s| self.spent_s() >= limit_s)
    }

    /// Writes the time into the document.
    pub(super) fn keep(&self, runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
        runner.document.options.time_spent_s = Some(self.spent_s());
        runner.save()
    }
}
