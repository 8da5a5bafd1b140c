//! Answers of suites. They need the records of the runs, which alone hold the statistics by
//! operation and the load phases.

use crate::ResultsError;
use dyno_analyze::experiment::suite::{SuiteRun, analyze};
use dyno_analyze::resampling::Resampling;
use dyno_record::Document;
use dyno_record::experiment::{Answer, Experiment};
use dyno_record::model::{PhaseKind, RunDocument};
use dyno_record::responses::{MOST_WINDOWS, by_operation};
use std::collections::BTreeMap;
use std::path::Path;

/// Computes the answer from the completed runs; `None` without any.
///
/// # Errors
/// [`ResultsError::Record`] if the record of a run cannot be read.
pub fn answer(document: &Experiment, folder: &Path) -> Result<Option<Answer>, ResultsError> {
    let done = document.points.iter().enumerate();
    let done = done.filter(|(_, point)| point.figures.is_some());
    let mut runs = BTreeMap::new();
    for (place, point) in done {
        let directory = folder.join(&point.directory);
        let run = RunDocument::read(&directory)?;
        let of = |phase| by_operation(&directory, phase, MOST_WINDOWS);
        let (measure, load) = (of(PhaseKind::Measure)?, of(PhaseKind::Load)?);
        runs.insert(place, SuiteRun::new(&run, &measure, &load));
    }
    let seed = document.recorded_plan().seed().unwrap_or(0);
    let found = analyze(document, &runs, Resampling::seeded(seed));
    Ok(found.map(|found| Answer::Suite(Box::new(found))))
}
