//! Findings of a comparison of two plans.

use super::difference::{self, explained, only_in_demands};
use super::disks;
use super::relative::basis;
use crate::experiment::ab::{MOST_REASONABLE_PAIRS, figures_of_pairs, labels, name, undecided};
use crate::experiment::demands::of_runs;
use crate::experiment::limits;
use crate::experiment::stations::knows_server;
use crate::experiment::sweep::disk_limits_of;
use crate::values::percent;
use dyno_record::experiment::{
    AbAnswer, Basis, ComparedFigure, Comparison, ComparisonVerdict, Experiment, Figures, Finding,
};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// All rules.
pub(super) fn all(experiment: &Experiment, answer: &AbAnswer) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(set_aside(answer));
    found.extend(verdict(experiment, answer));
    found.extend(demands(experiment, answer));
    found.extend(others(answer));
    found.extend(disks_without_bound(experiment, answer));
    found.extend(single_pair(answer));
    found.extend(more_pairs(experiment, answer));
    found
}

fn ratio(row: &Comparison) -> Number {
    Number::estimate(&row.ratio, Unit::Plain)
}

fn evidence(row: &Comparison) -> Statement {
    statement!(
        "times-that-of-a",
        statistic = name(row.statistic),
        ratio = ratio(row),
        basis = basis(row)
    )
}

/// The machine itself was disturbed.
fn set_aside(answer: &AbAnswer) -> Option<Finding> {
    let pairs = &answer.set_aside;
    let largest = pairs.iter().map(|one| one.stolen_ratio).reduce(f64::max)?;
    Some(Finding::warning(
        statement!("pairs-set-aside", pairs = pairs.len()),
        vec![statement!("stolen-in-a-run", most = percent(largest))],
    ))
}

/// The deciding figure.
fn verdict(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let Some(first) = answer.decision() else {
        let others = answer.comparisons.len();
        return Some(Finding::warning(
            statement!("not-enough-data", why = undecided(answer)?),
            vec![statement!("other-figures-compared", intervals = others)],
        ));
    };
    let (code, margin_ratio) = match first.verdict {
        ComparisonVerdict::Faster => ("faster", None),
        ComparisonVerdict::Slower => ("slower", None),
        ComparisonVerdict::NoDifferenceLargerThan { margin_ratio } => {
            ("no-difference-larger-than", Some(margin_ratio))
        }
        ComparisonVerdict::NotEnoughData | ComparisonVerdict::NotComparable => {
            ("not-enough-data-for-difference", Some(first.margin_ratio))
        }
    };
    let [a, b] = labels(experiment);
    let said = statement!(
        code,
        a = a,
        b = b,
        statistic = name(first.statistic),
        ratio = ratio(first),
        margin = margin_ratio.map(percent)
    );
    Some(match first.verdict {
        ComparisonVerdict::NotEnoughData => Finding::warning(said, vec![evidence(first)]),
        _ => Finding::found(said, vec![evidence(first)]),
    })
}

/// The demand that explains the difference, or one that differs although the deciding figure does not show it.
fn demands(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let first = answer.decision()?;
    let [_, b] = labels(experiment);
    let rows = &answer.demands;
    let said = match &answer.explanation {
        Some(explanation) => {
            statement!("explanation", explanation = explained(&b, explanation, rows)?)
        }
        None => statement!(
            "only-demands-differ",
            demands = only_in_demands(&b, rows)?,
            statistic = name(first.statistic)
        ),
    };
    let mut support = difference::evidence(rows);
    if support.is_empty() {
        support.push(evidence(first));
    }
    Some(Finding::found(said, support))
}

/// The other rates and times that certainly differ.
fn others(answer: &AbAnswer) -> Option<Finding> {
    let changed = limits::others(answer);
    let is_certain = |row: &&Comparison| {
        let figure = ComparedFigure::Statistic(row.statistic);
        changed.iter().any(|one| one.figure == figure)
    };
    let certain = || answer.comparisons.iter().filter(is_certain);
    let changes = certain()
        .map(|row| statement!("changed", statistic = name(row.statistic), ratio = ratio(row)));
    let changes: Vec<Statement> = changes.collect();
    let evidence: Vec<Statement> = certain().map(evidence).collect();
    (!evidence.is_empty())
        .then(|| Finding::found(statement!("others-with-b", changes = changes), evidence))
}

/// A disk that may limit a side and whose capacity is unknown: both sides have one load, which shows no limit.
/// A disk of both sides is reported once.
fn disks_without_bound(experiment: &Experiment, answer: &AbAnswer) -> Vec<Finding> {
    let pairs = figures_of_pairs(experiment, &answer.set_aside);
    let mut found: Vec<Finding> = Vec::new();
    for (side, label) in labels(experiment).into_iter().enumerate() {
        let runs: Vec<&Figures> = pairs.iter().map(|pair| pair[side]).collect();
        let limits = disk_limits_of(&runs).filter(|_| knows_server(&of_runs(&runs)));
        let at = statement!("in-runs-of-side", side = label);
        let Some(reported) = disks::without_bound(limits.as_ref(), &at) else {
            continue;
        };
        match found.last_mut() {
            Some(before) if before.statement == reported.statement => {
                before.evidence.extend(reported.evidence);
            }
            _ => found.push(reported),
        }
    }
    found
}

/// A single pair does not show the variation from run to run.
fn single_pair(answer: &AbAnswer) -> Option<Finding> {
    let first = answer.comparisons.first()?;
    (first.basis == Basis::WithinRun).then(|| {
        Finding::warning(
            statement!("single-pair"),
            vec![statement!("intervals-of-pairs-alone", pairs = first.pairs)],
        )
    })
}

/// Number of pairs that would be enough for the deciding figure.
fn more_pairs(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let first = answer.decision()?;
    // With limits, the number of pairs is what the limits need.
    let options = experiment.options.ab.as_ref();
    let has_limits = options.is_some_and(|own| !own.limits.is_empty());
    if first.verdict != ComparisonVerdict::NotEnoughData || has_limits {
        return None;
    }
    let deviation = statement!(
        "pairs-differ-by",
        deviation = percent(first.pair_deviation_ratio),
        pairs = first.pairs
    );
    let limit = experiment.options.ab.as_ref();
    let limit = limit.map(|own| statement!("pairs-allowed", most = own.max_pairs));
    let mut figures = experiment.points.iter().flat_map(|point| &point.figures);
    // We do not place a server that already runs.
    let is_started = !experiment.recorded_plan().uses_running_server();
    let apart = (is_started && figures.any(|figures| figures.shares_cpus))
        .then(|| statement!("place-apart"));
    let margin = percent(first.margin_ratio);
    let said = match answer.pairs_needed.filter(|pairs| *pairs <= MOST_REASONABLE_PAIRS) {
        Some(pairs) => statement!("pairs-needed", pairs = pairs, margin = margin),
        None => statement!("no-number-of-pairs-would-tell", margin = margin),
    };
    let evidence = [Some(deviation), limit, apart];
    Some(Finding::opportunity(said, evidence.into_iter().flatten().collect()))
}

#[cfg(test)]
pub(super) mod tests;
