//! Runs all points that an experiment has planned.

use super::ExperimentRunner;
use super::conditions::are_others;
use crate::error::{Error, Kind};

impl ExperimentRunner<'_> {
    /// Runs all unfinished points, and fails at the end if any of them failed. Points that an
    /// earlier process failed to measure come last.
    pub(crate) fn run_all(&mut self) -> Result<(), Error> {
        let missing =
            self.document.points.iter().enumerate().filter(|(_, point)| point.figures.is_none());
        let (failed, new): (Vec<_>, Vec<_>) = missing
            .map(|(index, point)| (index, point.problem.is_some()))
            .partition(|(_, has_failed)| *has_failed);
        let mut first = None;
        for (index, _) in new.into_iter().chain(failed) {
            match self.run(index, None) {
                Ok(_) => {}
                Err(failure) if failure.kind == Kind::Interrupted || are_others(&failure) => {
                    return Err(failure);
                }
                Err(failure) => {
                    self.set_aside(index, &failure)?;
                    first.get_or_insert(failure);
                    // Without the lost hosts, other points would run on another fleet.
                    let source = self.context.source;
                    if source.is_some_and(|source| source.has_lost_hosts()) {
                        break;
                    }
                }
            }
        }
        let is_empty = self.document.points.iter().all(|point| point.figures.is_none());
        match (first, self.check_problems()) {
            // If no run works, the first failure is the most useful one.
            (Some(failure), _) if is_empty => Err(failure),
            (Some(failure), Err(all)) => {
                Err(Error { hint: failure.hint, log_tail: failure.log_tail, ..all })
            }
            (_, result) => result,
        }
    }

    /// Records why a point failed. The next one starts with a new server.
    fn set_aside(&mut self, index: usize, failure: &Error) -> Result<(), Error> {
        let point = &mut self.document.points[index];
        if point.problem.is_none() {
            let reason = failure.reason();
            self.context.warning(&reason);
            point.problem = Some(reason);
            // The server is known to have ended.
            drop(self.close());
        }
        self.save()
    }

    /// Fails if there are failed points.
    fn check_problems(&self) -> Result<(), Error> {
        let points = &self.document.points;
        let failed: Vec<String> = points
            .iter()
            .filter_map(|point| Some(format!("`{}`: {}", point.directory, point.problem.as_ref()?)))
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        let (count, all) = (failed.len(), points.len());
        let text = format!("{count} of {all} runs failed: {}", failed.join("; "));
        Err(Error::new(Kind::Environment, text))
    }
}
