//! Caveats of single runs, for experiments whose runs are not levels of a sweep.

use super::view::statements_of;
use super::watched::{self, Asked};
use crate::values::percent;
use dyno_record::experiment::{Answer, Experiment, Figures, Finding, Point};
use dyno_record::model::{CaveatKind, ResourceKind};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// All rules. The searches themselves judge whether the client was the limit.
pub(super) fn all(experiment: &Experiment, answer: &Answer) -> Vec<Finding> {
    let is_compared = matches!(answer, Answer::Ab(_) | Answer::Suite(_));
    let generator = |run: &Figures| (is_compared && run.is_generator_bound()).then_some(None);
    let failed = |run: &Figures| (run.failed_ratio > 0.0).then_some(Some(run.failed_ratio));
    let unsteady = |run: &Figures| (run.steady == Some(false)).then_some(None);
    let (bound, steady) = (CaveatKind::GeneratorBottleneck, CaveatKind::NotSteady);
    let rules = [
        reported(experiment, "runs-generator-bound", bound, generator),
        reported(experiment, "runs-with-failures", CaveatKind::Errors, failed),
        reported(experiment, "runs-unsteady", steady, unsteady),
        not_watched(experiment, answer),
    ];
    rules.into_iter().flatten().collect()
}

/// A warning about the runs that satisfy a condition, with a share if there is one, and with their caveats of
/// this kind.
fn reported(
    experiment: &Experiment,
    code: &str,
    kind: CaveatKind,
    holds: impl Fn(&Figures) -> Option<Option<f64>>,
) -> Option<Finding> {
    let measured = |point: &&Point| point.figures.is_some();
    let all = experiment.points.iter().filter(measured).count();
    let those = experiment.points.iter().filter_map(|point| {
        let share = holds(point.figures.as_ref()?)?.map(percent);
        Some(statement!("run", run = &point.directory, share = share))
    });
    let those: Vec<Statement> = those.collect();
    (!those.is_empty()).then(|| {
        let said = statement!(code, runs = those.len(), all = all);
        let mut evidence = vec![statement!("happened-in-runs", runs = those)];
        evidence.extend(statements_of(&experiment.caveats, kind));
        Finding::warning(said, evidence)
    })
}

/// Figures that the rules of an answer need and its runs do not have.
fn not_watched(experiment: &Experiment, answer: &Answer) -> Option<Finding> {
    let mut asked = vec![Asked::SteadyState];
    if !matches!(answer, Answer::Slo(_)) {
        asked.extend([ResourceKind::ServerCpu, ResourceKind::Disk].map(Asked::Use));
    }
    let of_tune = experiment.options.tune.as_ref();
    let max_steal_ratio = of_tune.and_then(|options| options.max_steal_ratio);
    if experiment.options.max_steal.or(max_steal_ratio).is_some() {
        asked.push(Asked::StolenTime);
    }
    let is_limit_asked = match answer {
        Answer::Xmax(answer) => answer.bottleneck.is_none() && answer.generator_bound.is_empty(),
        _ => false,
    };
    watched::not_watched(&watched::runs(experiment), &asked, is_limit_asked)
}
