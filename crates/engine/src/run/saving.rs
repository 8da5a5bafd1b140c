//! Saves the record of a session: while it runs, and at its end with caveats and reports.

use super::Session;
use crate::error::Error;
use crate::observer::Observer;
use crate::run::instance::InstanceRun;
use crate::run::options::{Extent, Finished};
use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::reader::Run;
use dyno_results::AnalysedRun;
use dyno_results::run::find_caveats;

impl Session<'_> {
    pub(super) fn save_progress(&mut self) -> Result<(), Error> {
        for (instance, server) in self.instances.iter_mut().zip(&self.servers) {
            instance.save(server)?;
        }
        self.document.instances = self.instances.iter().map(InstanceRun::to_record).collect();
        if let Some(board) = &self.board {
            let latest = board.look().into_iter();
            self.document.sources = latest.map(|latest| latest.record).collect();
        }
        self.recorder.save(&mut self.document)?;
        Ok(())
    }

    /// Completes the document, finds the caveats, and writes reports.
    pub(super) fn save(mut self, fault: Option<Error>) -> Result<Finished, Error> {
        let interrupted = self.context.cancel.requested();
        let fault = fault.filter(|_| !interrupted);
        (self.document.status, self.document.status_reason) = match (&fault, interrupted) {
            (_, true) => (RunStatus::Partial, Some("interrupted by a signal".into())),
            (Some(fault), false) => (RunStatus::Failed, Some(fault.reason())),
            (None, false) => match self.ended_early.take() {
                Some(reason) => (RunStatus::Partial, Some(reason)),
                None => (RunStatus::Complete, None),
            },
        };
        let mut observer = self.context.observer;
        observer.run_ended(self.document.status);
        let kind = match self.options.extent {
            Extent::Whole | Extent::BlindMix => PhaseKind::Measure,
            Extent::Load | Extent::BlindLoad => PhaseKind::Load,
        };
        let totals = self.recorder.totals(kind);
        let saved = self.write();
        let failure = match (saved, fault) {
            (Ok(results), fault) => {
                for instance in self.instances {
                    instance.finish()?;
                }
                self.recorder.finish(&results.run.document)?;
                return Ok(Finished { results, totals, interrupted, fault });
            }
            // The fault that ended the run is usually also why it cannot be saved.
            (Err(_), Some(fault)) => fault,
            (Err(failure), None) => failure,
        };
        let place = self.directory.display();
        self.context
            .note(format!("the record so far is in `{place}`; show it with `dyno report {place}`"));
        Err(failure)
    }

    fn write(&mut self) -> Result<AnalysedRun, Error> {
        for instance in &mut self.instances {
            instance.document.status = self.document.status;
            instance.document.status_reason.clone_from(&self.document.status_reason);
        }
        self.save_progress()?;
        if let (Some(source), Some(record)) = (self.context.source, &self.document.fleet) {
            self.caveats.extend(source.caveats(record));
        }
        let mut observer = self.context.observer;
        for instance in &mut self.instances {
            if let Some(fleet) = &self.document.fleet {
                instance.is_of_fleet(fleet);
            }
            if let Some(saved) = instance.analyse()? {
                observer.run_saved(&saved)?;
            }
        }
        let mut run = Run::open(&self.directory)?;
        find_caveats(&mut run, std::mem::take(&mut self.caveats));
        self.document.caveats.clone_from(&run.document.caveats);
        self.recorder.save(&mut self.document)?;
        let saved = AnalysedRun::with_trace(run, self.trace.take());
        observer.run_saved(&saved)?;
        Ok(saved)
    }
}
