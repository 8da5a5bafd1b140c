//! Opens experiments: adds the caveats of their runs and the findings from their answers.

use crate::ResultsError;
use dyno_analyze::experiment::caveats::of_runs;
use dyno_analyze::experiment::conditions::{self, Conditions};
use dyno_analyze::experiment::findings::findings;
use dyno_analyze::experiment::limits;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Point};
use dyno_record::model::{Caveat, CaveatKind, RunDocument, RunStatus};
use dyno_record::plain_file;
use dyno_record::statement;
use dyno_record::sums;
use std::path::Path;

/// Run document, inside the run directory.
const RUN: &str = "run.json";

/// Opens an experiment folder. Adds a caveat if the experiment or its runs were changed after it
/// finished.
///
/// # Errors
/// [`ResultsError::Record`] if it cannot be read or holds no experiment.
pub fn open(folder: &Path) -> Result<Experiment, ResultsError> {
    let mut document = Experiment::read(folder)?;
    let changed = sums::check(folder)?.statement();
    let changed = changed.map(|said| Caveat::of_run(CaveatKind::RecordChanged, said));
    document.caveats.extend(changed);
    Ok(document)
}

/// Collects the caveats of all runs, and derives findings and the outcomes of limits from the answer.
pub fn conclude(document: &mut Experiment, folder: &Path) {
    let (mut of_each, mut conditions) = (Vec::new(), Vec::new());
    for (point, run) in runs(document, folder) {
        let name = || point.directory.clone();
        let caveats = match run {
            Ok(run) => {
                conditions.push((name(), Conditions::of_run(&run, point.side)));
                // A search ended the run early and does not use its figures.
                let is_partial = run.status == RunStatus::Partial;
                if is_partial { Vec::new() } else { run.caveats }
            }
            Err(error) => {
                let statement = statement!("caveats-not-read", run = name(), reason = error);
                vec![Caveat::of_run(CaveatKind::ProbeUnavailable, statement)]
            }
        };
        of_each.push((name(), caveats));
    }
    document.caveats = conditions::caveats(&conditions);
    document.caveats.extend(of_runs(&of_each));
    document.limits = limits::of_experiment(document);
    document.findings = findings(document);
}

/// Conditions of the completed runs of an experiment.
#[derive(Clone, Debug, Default)]
pub struct RunConditions {
    /// Run names with their conditions.
    pub known: Vec<(String, Conditions)>,
    /// Names of runs that cannot be read, each with the reason.
    pub unread: Vec<(String, String)>,
}

/// Reads the conditions of the completed runs.
pub fn conditions(document: &Experiment, folder: &Path) -> RunConditions {
    let mut found = RunConditions::default();
    for (point, run) in runs(document, folder) {
        let name = point.directory.clone();
        match run {
            Ok(run) => found.known.push((name, Conditions::of_run(&run, point.side))),
            Err(reason) => found.unread.push((name, reason)),
        }
    }
    found
}

/// The completed runs, each with the reason if it cannot be read.
fn runs<'a>(
    document: &'a Experiment,
    folder: &Path,
) -> impl Iterator<Item = (&'a Point, Result<RunDocument, String>)> {
    let done = document.points.iter().filter(|point| point.figures.is_some());
    done.map(|point| {
        let text = plain_file::read_text(&folder.join(&point.directory).join(RUN));
        let text = text.map_err(|error| error.to_string());
        let run = text.and_then(|text| {
            RunDocument::from_json(text.as_bytes()).map_err(|error| error.to_string())
        });
        (point, run)
    })
}
