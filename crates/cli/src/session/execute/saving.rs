//! What a session leaves: the record while it goes on, and at its end with caveats and reports.

use super::{Extent, Finished, Session};
use crate::exit::Failure;
use crate::fleet;
use crate::session::instance::InstanceRun;
use crate::session::output;
use crate::session::recorder::Totals;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::reader::Run;

/// A run as it is in its folder, with its analysis.
type Saved = (Run, Option<RunAnalysis>);

impl Session<'_> {
    pub(super) fn save_progress(&mut self) -> Result<(), Failure> {
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
    pub(super) fn save(mut self, fault: Option<Failure>) -> Result<Finished, Failure> {
        let interrupted = self.hands.interrupt.requested();
        let fault = fault.filter(|_| !interrupted);
        (self.document.status, self.document.status_reason) = match (&fault, interrupted) {
            (_, true) => (RunStatus::Partial, Some("interrupted by a signal".into())),
            (Some(fault), false) => (RunStatus::Failed, Some(reason(fault))),
            (None, false) => (RunStatus::Complete, None),
        };
        if let Some(feed) = &self.feed {
            feed.end(self.document.status);
        }
        let kind = match self.conduct.extent {
            Extent::Whole | Extent::BlindMix => PhaseKind::Measure,
            Extent::Load | Extent::BlindLoad => PhaseKind::Load,
        };
        let totals = self.recorder.totals(kind);
        let saved = self.write();
        let failure = match (saved, fault) {
            (Ok(saved), fault) => return self.finished(saved, totals, interrupted, fault),
            // The fault that ended the run is usually also why it cannot be saved.
            (Err(_), Some(fault)) => fault,
            (Err(failure), None) => failure,
        };
        let place = self.directory.display();
        self.hands.messages.note(&format!(
            "what was recorded is in `{place}`, `dyno report {place}` shows it"
        ));
        Err(failure)
    }

    fn finished(
        self,
        (run, analysis): Saved,
        totals: Totals,
        interrupted: bool,
        fault: Option<Failure>,
    ) -> Result<Finished, Failure> {
        let document = run.document.clone();
        let directory = self.directory;
        for instance in self.instances {
            instance.finish()?;
        }
        self.recorder.finish(&document)?;
        Ok(Finished {
            run,
            analysis,
            directory,
            totals,
            interrupted,
            fault,
        })
    }

    fn write(&mut self) -> Result<Saved, Failure> {
        for instance in &mut self.instances {
            instance.document.status = self.document.status;
            instance
                .document
                .status_reason
                .clone_from(&self.document.status_reason);
        }
        self.save_progress()?;
        if let Some(record) = &self.document.fleet {
            self.caveats.extend(fleet::caveats(record));
        }
        for instance in &mut self.instances {
            instance.write_reports()?;
        }
        let mut run = Run::open(&self.directory)?;
        output::find_caveats(&mut run, std::mem::take(&mut self.caveats));
        self.document.caveats.clone_from(&run.document.caveats);
        self.recorder.save(&mut self.document)?;
        let analysis = output::write_reports(&run)?;
        Ok((run, analysis))
    }
}

/// Error and causes in one line, for the document.
fn reason(failure: &Failure) -> String {
    let chain: Vec<String> = failure.error.chain().map(ToString::to_string).collect();
    dyno_plan::uri::redact(&chain.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn the_reason_in_the_document_has_no_credentials() {
        let failure = Failure::new(Exit::Environment, "mongodb://me:secret@h is gone")
            .context("the run failed");
        assert_eq!(reason(&failure), "the run failed: mongodb://***@h is gone");
    }
}
