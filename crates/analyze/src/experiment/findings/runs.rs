//! Doubts of single runs, for experiments whose runs are not levels of a sweep.

use super::warning;
use crate::experiment::words::{count, list, percent};
use dyno_record::experiment::{Experiment, Figures, Finding, Point};

/// All rules. Whether the client was the limit is judged by the searches themselves.
pub(super) fn all(experiment: &Experiment, with_generator: bool) -> Vec<Finding> {
    let generator = with_generator
        .then(|| {
            told(
                experiment,
                |figures| figures.is_generator_bound().then_some(None),
                "the load generator was the limit and not the server",
            )
        })
        .flatten();
    let failed = told(
        experiment,
        |figures| (figures.failed_ratio > 0.0).then_some(Some(figures.failed_ratio)),
        "operations failed; rates and response times are those of the others",
    );
    let unsteady = told(
        experiment,
        |figures| (figures.steady == Some(false)).then_some(None),
        "there was no steady state",
    );
    [generator, failed, unsteady]
        .into_iter()
        .flatten()
        .collect()
}

/// A warning about the runs of which something holds, with a share where there is one.
fn told(
    experiment: &Experiment,
    holds: impl Fn(&Figures) -> Option<Option<f64>>,
    what: &str,
) -> Option<Finding> {
    let measured = |point: &&Point| point.figures.is_some();
    let all = experiment.points.iter().filter(measured).count();
    let names: Vec<String> = experiment
        .points
        .iter()
        .filter_map(|point| {
            let share = holds(point.figures.as_ref()?)?;
            let share = share.map_or(String::new(), |share| format!(" ({})", percent(share)));
            Some(format!("`{}`{share}", point.directory))
        })
        .collect();
    (!names.is_empty()).then(|| {
        warning(
            format!("in {} of {} {what}", names.len(), count(all, "run", "runs")),
            vec![format!("it happened in {}", list(&names))],
        )
    })
}
