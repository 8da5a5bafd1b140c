//! What follows from an answer, in sentences with the measurements behind each. One rule per function; a rule
//! that has nothing to say gives nothing, and none speaks without a measurement.

mod ab;
mod blocks;
mod difference;
mod laws;
mod limits;
mod opportunities;
mod relative;
mod runs;
mod saturation;
mod scaling;
pub(super) mod single_run;
mod slo;
mod trust;
mod view;
mod xmax;

use super::words::count;
use dyno_record::experiment::{Answer, Experiment, Finding, FindingKind};
use dyno_record::model::RunStatus;
use view::View;

/// The findings of an experiment in the order in which they are read: what makes the answer worthless, what was
/// found, what limits its reach, and what could be changed.
pub fn findings(experiment: &Experiment) -> Vec<Finding> {
    let mut found: Vec<Finding> = unfinished(experiment).into_iter().collect();
    match &experiment.answer {
        Some(Answer::Sweep(answer)) => {
            let view = View { experiment, answer };
            found.extend(STAGES.iter().flat_map(|stage| stage(&view)));
        }
        Some(Answer::Blocks(answer)) => found.extend(blocks::all(experiment, answer)),
        Some(Answer::Xmax(answer)) => {
            found.extend(xmax::all(answer));
            found.extend(runs::all(experiment, false));
        }
        Some(Answer::Slo(answer)) => {
            found.extend(slo::all(answer));
            found.extend(runs::all(experiment, false));
        }
        Some(Answer::Ab(answer)) => {
            found.extend(ab::all(experiment, answer));
            found.extend(runs::all(experiment, true));
        }
        None => return found,
    }
    found.extend(opportunities::of_doubts(&experiment.caveats));
    found
}

/// The rules of a sweep in the order in which they are told.
const STAGES: [fn(&View<'_>) -> Vec<Finding>; 4] = [alarms, facts, doubts, opportunities::all];

/// What makes a sweep worthless.
fn alarms(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(trust::generator_bound(view));
    found.extend(trust::failed_operations(view));
    found.extend(laws::broken(view));
    found
}

/// What a sweep has found.
fn facts(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        limits::highest_rate(view),
        limits::bottleneck(view),
        limits::server_not_watched(view),
        laws::demand_varies(view),
        limits::rates_not_achieved(view),
        limits::response_over_rates(view),
        scaling::queue(view),
        scaling::waiting(view),
        scaling::unexplained(view),
        scaling::knee(view),
        scaling::decline(view),
        scaling::scalability_law(view),
        laws::hold(view),
    ];
    // What the levels are relative to each other is what was asked, where there is a base.
    let relative = relative::all(view).into_iter();
    relative.chain(rules.into_iter().flatten()).collect()
}

/// What limits its reach.
fn doubts(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        trust::dropped_arrivals(view),
        trust::other_processes(view),
        trust::unsteady(view),
        trust::wide_intervals(view),
    ];
    rules.into_iter().flatten().collect()
}

/// Not all points were measured.
fn unfinished(experiment: &Experiment) -> Option<Finding> {
    let points = &experiment.points;
    let done = points
        .iter()
        .filter(|point| point.figures.is_some())
        .count();
    // A search that has ended has what it needs: a run in which nothing succeeded is a load that was too much.
    if done == points.len() || matches!(experiment.status, RunStatus::Running | RunStatus::Complete)
    {
        return None;
    }
    let reason = experiment
        .status_reason
        .as_deref()
        .unwrap_or("it did not end as planned");
    Some(warning(
        format!(
            "the experiment is not complete: {} of {} were made",
            done,
            count(points.len(), "run", "runs")
        ),
        vec![format!("it ended early: {reason}")],
    ))
}

fn finding(text: String, evidence: Vec<String>) -> Finding {
    Finding::new(FindingKind::Finding, text, evidence)
}

fn warning(text: String, evidence: Vec<String>) -> Finding {
    Finding::new(FindingKind::Warning, text, evidence)
}

fn opportunity(text: String, evidence: Vec<String>) -> Finding {
    Finding::new(FindingKind::Opportunity, text, evidence)
}

#[cfg(test)]
mod tests;
