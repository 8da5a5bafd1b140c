//! Failed runs with settings that may do harm or be refused: whether the settings are to blame.

use super::super::points::ended_after_s;
use super::ExperimentRunner;
use super::conditions::are_others;
use crate::deployment::storage::is_of_storage;
use crate::error::{Error, Kind};
use crate::run::host_settings::are_not_made;
use crate::undo::parameters::RefusedParameter;
use dyno_analyze::experiment::tune::Failure;
use dyno_load::connect::ControlError;
use dyno_plan::knobs::RUNTIME_PARAMETERS;
use dyno_record::experiment::Point;
use dyno_record::reader::Run;
use dyno_results::run::stolen_ratio;

/// Failure of an attempted point; `None` if it was not attempted or was measured.
pub(super) fn failure_of(point: &Point) -> Option<Failure> {
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
    /// Records the harm that a point's settings did, or the server's refusal.
    ///
    /// # Errors
    /// The run's own failure, if its settings are not the cause.
    pub(super) fn judge_failure(
        &mut self,
        number: usize,
        failure: Error,
    ) -> Result<Failure, Error> {
        // The server is unaffected by a broken limit or a refused value.
        let is_usable =
            matches!(failure.kind, Kind::CheckFailed | Kind::BadInput) || is_of_server(&failure);
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
        match &refused {
            Some(_) => self.context.note(&reason),
            None => self.context.warning(&reason),
        }
        let was_ended = failure.kind == Kind::CheckFailed;
        let run = was_ended.then(|| Run::open(&self.directory_of(number)).ok()).flatten();
        let server_ended = !is_usable && self.has_lost_servers();
        let point = &mut self.document.points[number];
        point.problem = Some(reason);
        point.refused = refused.map(|refused| format!("{RUNTIME_PARAMETERS}{}", refused.name));
        point.stolen_ratio = run.as_ref().and_then(stolen_ratio);
        point.ended_after_s = run.and_then(|run| ended_after_s(&run.document));
        point.server_ended = server_ended;
        let harm = failure_of(point);
        if !is_usable {
            // The server is known to have ended.
            drop(self.close());
        }
        self.save()?;
        harm.ok_or(failure)
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
