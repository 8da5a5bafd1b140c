//! An experiment as its folder holds it: the caveats of its runs, and what follows from its answer.

use crate::ResultsError;
use dyno_analyze::experiment::caveats::of_runs;
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
    let runs: Vec<(String, Vec<Caveat>)> = done
        .map(|point| (point.directory.clone(), caveats(point, folder)))
        .collect();
    document.caveats = of_runs(&runs);
    document.findings = findings(document);
}

/// The caveats of a run; that they cannot be read is one, too.
fn caveats(point: &Point, folder: &Path) -> Vec<Caveat> {
    let path = folder.join(&point.directory).join(RUN);
    let text = plain_file::read_text(&path).map_err(|error| error.to_string());
    let document = text.and_then(|text| {
        serde_json::from_str::<RunDocument>(&text).map_err(|error| error.to_string())
    });
    match document {
        // A search ended it as soon as it had said enough, and no answer rests on its figures.
        Ok(document) if document.status == RunStatus::Partial => Vec::new(),
        Ok(document) => document.caveats,
        Err(error) => {
            let run = &point.directory;
            let statement = statement!("caveats-not-read", run = run, reason = error);
            vec![Caveat::of_run(CaveatKind::ProbeUnavailable, statement)]
        }
    }
}
