//! Doubts of single runs, for experiments whose runs are not levels of a sweep.

use crate::values::percent;
use dyno_record::experiment::{Experiment, Figures, Finding, Point};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// All rules. Whether the client was the limit is judged by the searches themselves.
pub(super) fn all(experiment: &Experiment, with_generator: bool) -> Vec<Finding> {
    let generator = with_generator
        .then(|| {
            let is_bound = |figures: &Figures| figures.is_generator_bound().then_some(None);
            told(experiment, is_bound, "runs-generator-bound")
        })
        .flatten();
    let failed = told(
        experiment,
        |figures| (figures.failed_ratio > 0.0).then_some(Some(figures.failed_ratio)),
        "runs-with-failures",
    );
    let unsteady = told(
        experiment,
        |figures| (figures.steady == Some(false)).then_some(None),
        "runs-unsteady",
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
    code: &str,
) -> Option<Finding> {
    let measured = |point: &&Point| point.figures.is_some();
    let all = experiment.points.iter().filter(measured).count();
    let points = experiment.points.iter();
    let those = points.filter_map(|point| {
        let share = holds(point.figures.as_ref()?)?.map(percent);
        Some(statement!("run", run = &point.directory, share = share))
    });
    let those: Vec<Statement> = those.collect();
    (!those.is_empty()).then(|| {
        Finding::warning(
            statement!(code, runs = those.len(), all = all),
            vec![statement!("happened-in-runs", runs = those)],
        )
    })
}
