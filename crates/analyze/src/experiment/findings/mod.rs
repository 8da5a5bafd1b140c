//! Findings from an answer, each with its measurements. One rule per function; a rule without its measurement
//! is silent, and `watched` reports missing measurements.

mod ab;
mod advice;
mod blocks;
pub(super) mod conclusion;
mod difference;
mod disks;
mod laws;
mod limits;
mod opportunities;
mod relative;
mod runs;
mod saturation;
mod scaling;
pub(super) mod single_run;
mod slo;
mod stages;
mod suite;
mod trust;
mod tune;
mod tune_across;
mod view;
mod watched;
mod xmax;

use dyno_record::experiment::{Answer, Experiment, Finding};
use dyno_record::model::RunStatus;
use dyno_record::statement;
use stages::STAGES;
use view::View;

/// The findings of an experiment in reading order: invalidating problems, results, limits of their validity,
/// and possible changes.
pub fn findings(experiment: &Experiment) -> Vec<Finding> {
    let mut found: Vec<Finding> = unfinished(experiment).into_iter().collect();
    let Some(answer) = &experiment.answer else {
        return found;
    };
    match answer {
        Answer::Sweep(answer) => {
            let view = View { experiment, answer };
            found.extend(STAGES.iter().flat_map(|stage| stage(&view)));
        }
        Answer::Blocks(answer) => found.extend(blocks::all(experiment, answer)),
        Answer::Xmax(answer) => found.extend(xmax::all(answer)),
        Answer::Slo(answer) => found.extend(slo::all(answer)),
        Answer::Ab(answer) => found.extend(ab::all(experiment, answer)),
        Answer::Suite(answer) => found.extend(suite::all(experiment, answer)),
        Answer::Tune(answer) => found.extend(tune::all(experiment, answer)),
        Answer::TuneAcross(answer) => found.extend(tune_across::all(answer)),
    }
    if !matches!(answer, Answer::Sweep(_) | Answer::Blocks(_)) {
        found.extend(runs::all(experiment, answer));
    }
    found
}

/// Codes of the findings that answer the question of an experiment; the first one found counts.
const ANSWERS: [&str; 18] = [
    "recommended-clients",
    "indistinct-clients",
    "achieved-offered-rates",
    "no-offered-rate-achieved",
    "x-max-of-blocks",
    "highest-rate",
    "client-maximum",
    "x-max",
    "objective-kept-up-to",
    "objective-bracket",
    "no-rate-keeps-objective",
    "tune-better",
    "tune-nothing-to-gain",
    "tune-none-compared",
    "tune-not-proven",
    "tune-good-for-all",
    "tune-good-for-none",
    "tune-across-same",
];

/// The finding that answers the question of an experiment.
pub fn answer(found: &[Finding]) -> Option<&Finding> {
    let with = |code: &&str| found.iter().find(|one| one.statement.code == **code);
    ANSWERS.iter().find_map(with)
}

/// Not all points were measured.
fn unfinished(experiment: &Experiment) -> Option<Finding> {
    let points = &experiment.points;
    let done = points.iter().filter(|point| point.figures.is_some()).count();
    // A finished search has what it needs: a run without success is a load that was too high.
    if done == points.len() || matches!(experiment.status, RunStatus::Running | RunStatus::Complete)
    {
        return None;
    }
    Some(Finding::warning(
        statement!("experiment-not-complete", done = done, all = points.len()),
        vec![statement!("experiment-ended-early", reason = experiment.status_reason.as_ref())],
    ))
}

#[cfg(test)]
mod tests;
