//! What follows from an answer, in sentences with the measurements behind each. One rule per function; a rule
//! that has nothing to say gives nothing, and none speaks without a measurement.

mod ab;
mod laws;
mod limits;
mod opportunities;
mod runs;
mod saturation;
mod scaling;
pub(super) mod single_run;
mod slo;
mod trust;
mod view;
mod xmax;

use super::words::count;
use super::{Answer, Experiment, Finding, FindingKind};
use dyno_record::model::RunStatus;
use view::View;

/// The findings of an experiment in the order in which they are read: what makes the answer worthless, what was
/// found, what limits its reach, and what could be changed.
pub fn findings(experiment: &Experiment) -> Vec<Finding> {
    let mut found: Vec<Finding> = unfinished(experiment).into_iter().collect();
    match &experiment.answer {
        Some(Answer::Sweep(answer)) => found.extend(of_sweep(&View { experiment, answer })),
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

fn of_sweep(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(trust::generator_bound(view));
    found.extend(trust::failed_operations(view));
    found.extend(laws::broken(view));
    found.extend(limits::highest_rate(view));
    found.extend(limits::bottleneck(view));
    found.extend(limits::server_not_watched(view));
    found.extend(laws::demand_varies(view));
    found.extend(limits::rates_not_achieved(view));
    found.extend(limits::response_over_rates(view));
    found.extend(scaling::queue(view));
    found.extend(scaling::waiting(view));
    found.extend(scaling::unexplained(view));
    found.extend(scaling::knee(view));
    found.extend(scaling::decline(view));
    found.extend(scaling::scalability_law(view));
    found.extend(laws::hold(view));
    found.extend(trust::dropped_arrivals(view));
    found.extend(trust::other_processes(view));
    found.extend(trust::unsteady(view));
    found.extend(trust::wide_intervals(view));
    found.extend(opportunities::all(view));
    found
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
    of(FindingKind::Finding, text, evidence)
}

fn warning(text: String, evidence: Vec<String>) -> Finding {
    of(FindingKind::Warning, text, evidence)
}

fn opportunity(text: String, evidence: Vec<String>) -> Finding {
    of(FindingKind::Opportunity, text, evidence)
}

fn of(kind: FindingKind, text: String, evidence: Vec<String>) -> Finding {
    debug_assert!(!evidence.is_empty(), "nothing supports `{text}`");
    Finding {
        kind,
        text,
        evidence,
    }
}

#[cfg(test)]
mod tests;
