//! Runs with settings that may do harm or be refused.

use super::super::points::{WhichPlan, ended_after_s};
use super::ExperimentRunner;
use super::conditions::are_others;
use crate::deployment::storage::is_of_storage;
use crate::error::{Error, Kind};
use crate::run::host_settings::are_not_made;
use crate::run::limits::WindowLimits;
use crate::undo::parameters::RefusedParameter;
use dyno_analyze::experiment::tune::Failure;
use dyno_load::connect::ControlError;
use dyno_plan::knobs::RUNTIME_PARAMETERS;
use dyno_record::experiment::{Figures, Point};
use dyno_record::reader::Run;
use dyno_results::run::stolen_ratio;

/// Failure of an attempted point; `None` if it was not attempted or was measured.
fn failure_of(point: &Point) -> Option<Failure> {
    Some(Failure {
        reason: point.problem.clone()?,
        refused: point.refused.clone(),
        stolen_ratio: point.stolen_ratio,
        server_ended: point.server_ended,
    })
}

/// Whether a server answered with an error: it runs, but refuses commands with the attempted
/// settings.
fn is_of_server(failure: &Error) -> bool {
    let mut causes = failure.cause.chain();
    causes.any(|cause| {
        let answer = cause.downcast_ref::<ControlError>();
        matches!(answer, Some(ControlError::Server { .. }))
    })
}

/// Whether storage or machine settings could not be made, or the machine or the server differs from
/// earlier runs, so that no server had the attempted settings. Values that the machine does not
/// offer are the fault of the settings.
fn is_of_machine(failure: &Error) -> bool {
    are_others(failure)
        || is_of_storage(failure)
        || failure.kind != Kind::BadInput && are_not_made(failure)
}

impl ExperimentRunner<'_> {
    /// Like [`ExperimentRunner::measure`], for settings that may do harm or be refused; the inner
    /// error says so. The run ends as soon as it breaks one of the limits.
    pub(crate) fn attempt(
        &mut self,
        settings: &[(&str, String)],
        which: &WhichPlan,
        number: usize,
        limits: WindowLimits,
    ) -> Result<Result<Figures, Failure>, Error> {
        self.ask(settings, which, number);
        let point = &self.document.points[number];
        if let Some(figures) = &point.figures {
            return Ok(Ok(figures.clone()));
        }
        if let Some(failure) = failure_of(point) {
            return Ok(Err(failure));
        }
        match self.run_within(number, Some(limits)) {
            Ok(figures) => Ok(Ok(figures)),
            Err(failure) => {
                // The server is unaffected by a broken limit or a refused value.
                let is_usable = matches!(failure.kind, Kind::CheckFailed | Kind::BadInput)
                    || is_of_server(&failure);
                let says_nothing = failure.kind == Kind::Interrupted || is_of_machine(&failure);
                if says_nothing || !is_usable && !self.has_harmed(number) {
                    return Err(failure);
                }
                let refused = RefusedParameter::among(&failure);
                let reason = match &refused {
                    Some(refused) => refused.in_words(),
                    None if is_usable => failure.cause.root_cause().to_string(),
                    None => failure.reason(),
                };
                let refused =
                    refused.map(|refused| format!("{RUNTIME_PARAMETERS}{}", refused.name));
                match &refused {
                    Some(_) => self.context.note(&reason),
                    None => self.context.warning(&reason),
                }
                let was_ended = failure.kind == Kind::CheckFailed;
                let run = was_ended.then(|| self.record_of(number)).flatten();
                let server_ended = !is_usable && self.has_lost_servers();
                let point = &mut self.document.points[number];
                point.problem = Some(reason);
                point.refused = refused;
                point.stolen_ratio = run.as_ref().and_then(stolen_ratio);
                point.ended_after_s = run.and_then(|run| ended_after_s(&run.document));
                point.server_ended = server_ended;
                let failed = failure_of(point);
                if !is_usable {
                    // The server is known to have ended.
                    drop(self.close());
                }
                self.save()?;
                failed.map_or(Err(failure), |failed| Ok(Err(failed)))
            }
        }
    }

    /// Record of a run that was ended, if there is one.
    fn record_of(&self, number: usize) -> Option<Run> {
        let directory = &self.document.points[number].directory;
        Run::open(&self.folder.path().join(directory)).ok()
    }

    /// Whether a run failed because of its settings: nothing succeeded, or a server started for it
    /// ended or did not start. Other failures, such as a full disk, say nothing about the settings.
    fn has_harmed(&mut self, number: usize) -> bool {
        self.document.points[number].problem.is_some() || self.has_lost_servers()
    }

    /// Whether a server started for a run has ended or did not start.
    fn has_lost_servers(&mut self) -> bool {
        let is_started = !self.is_remote() && self.context.source.is_none();
        let has_ended = match &mut self.deployment {
            Some(open) => open.deployment.ended().is_some(),
            None => true,
        };
        is_started && has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_servers::storage::StorageError;

    #[test]
    fn storage_failure_blames_the_machine_but_server_end_does_not() {
        let full = StorageError::NoSpace {
            folder: "/data".into(),
            needed: dyno_plan::units::Bytes(2),
            free: dyno_plan::units::Bytes(1),
        };
        for error in [StorageError::NotRoot, full] {
            let failure = Error::from(error).context("the run failed");
            assert!(is_of_machine(&failure), "{failure:?}");
        }
        let ended = Error::new(Kind::Environment, "`mongod` ended");
        assert!(!is_of_machine(&ended));
    }
}
