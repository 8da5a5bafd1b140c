//! An experiment as its folder holds it: the caveats of its runs, and what follows from its answer.

use crate::ResultsError;
use dyno_analyze::experiment::caveats::of_runs;
use dyno_analyze::experiment::conditions::{self, Conditions};
use dyno_analyze::experiment::findings::findings;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Point};
use dyno_record::model::{Caveat, CaveatKind, RunDocument, RunStatus};
use dyno_record::plain_file;
use dyno_record::statement;
use dyno_record::sums;
use std::path::Path;

/// Document of a run, inside its directory.
const RUN: &str = "run.json";

/// Opens the folder of an experiment. One that was changed since it was finished, or whose runs were, has a caveat.
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

/// Gathers the caveats of all runs and finds what follows from the answer.
pub fn conclude(document: &mut Experiment, folder: &Path) {
    let done = document
        .points
        .iter()
        .filter(|point| point.figures.is_some());
    let (mut of_each, mut conditions) = (Vec::new(), Vec::new());
    for point in done {
        let name = || point.directory.clone();
        let caveats = match run(point, folder) {
            Ok(run) => {
                conditions.push((name(), Conditions::of_run(&run, point.side)));
                // A search ended it as soon as it had said enough, and no answer rests on its figures.
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
    document.findings = findings(document);
}

/// The conditions of the runs of an experiment that are done.
#[derive(Clone, Debug, Default)]
pub struct RunConditions {
    /// By the names of the runs.
    pub known: Vec<(String, Conditions)>,
    /// Names of runs that cannot be read, each with the reason.
    pub unread: Vec<(String, String)>,
}

/// Reads the conditions of the runs that are done.
pub fn conditions(document: &Experiment, folder: &Path) -> RunConditions {
    let mut found = RunConditions::default();
    let done = document
        .points
        .iter()
        .filter(|point| point.figures.is_some());
    for point in done {
        let name = point.directory.clone();
        match run(point, folder) {
            Ok(run) => {
                let own = Conditions::of_run(&run, point.side);
                found.known.push((name, own));
            }
            Err(reason) => found.unread.push((name, reason)),
        }
    }
    found
}

fn run(point: &Point, folder: &Path) -> Result<RunDocument, String> {
    let path = folder.join(&point.directory).join(RUN);
    let text = plain_file::read_text(&path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}
