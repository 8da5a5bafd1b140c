//! What a suite says of its workloads: what the settings change, which one is the fastest and which the slowest, and which
//! operations took longest.

use super::difference::explained;
use super::relative::basis;
use crate::experiment::ab::name;
use crate::experiment::relative::decision;
use crate::experiment::sweep::version;
use crate::values::{rate_of, times, us};
use dyno_record::experiment::{
    AgainstBase, Comparison, ComparisonVerdict, Experiment, Figure, Finding, Level, PROGRAM,
    Relative, SuiteAnswer, SuiteOperation,
};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Most shares that are told beside the smallest one; the others stand in the table.
const MOST_SHARES: usize = 6;

/// All rules.
pub(super) fn all(experiment: &Experiment, answer: &SuiteAnswer) -> Vec<Finding> {
    let relative = answer.relative.iter();
    let changes = relative.flat_map(|relative| changes(experiment, answer, relative));
    let others = [
        fastest_and_slowest(experiment, answer),
        smallest_share(experiment, answer),
    ];
    changes.chain(others.into_iter().flatten()).collect()
}

/// What each value does that is not the base: the workload that it changes most.
fn changes(experiment: &Experiment, answer: &SuiteAnswer, relative: &Relative) -> Vec<Finding> {
    let base = &relative.base;
    let mut axes = experiment.axes.iter();
    let values = axes.find(|axis| axis.key == base.key);
    let values = values.map_or(&[][..], |axis| &axis.values);
    let others = values.iter().filter(|value| **value != base.value);
    let of_value = |value: &String| {
        let level = |row: &&AgainstBase| &answer.rows[row.level as usize].level;
        let has_value = |row: &&AgainstBase| level(row).settings.get(&base.key) == Some(value);
        let rows: Vec<&AgainstBase> = relative.levels.iter().filter(has_value).collect();
        let told = rows.iter().filter_map(|row| {
            let decision = decision(row, level(row).offered_rate_per_s.is_some())?;
            Some((level(row), *row, decision))
        });
        let told: Vec<Told<'_>> = told.collect();
        let [at, than] = [value, &base.value].map(|value| {
            let rows = answer.rows.iter().map(|row| &row.level);
            let mut levels = rows.filter(|level| level.settings.get(&base.key) == Some(value));
            let words = levels
                .next()
                .map(|level| setting(answer, level, &base.key, value));
            statement!(
                "with-settings",
                settings = words.into_iter().collect::<Vec<_>>()
            )
        });
        let rates = || {
            let of_both = rows.iter().flat_map(|row| [row.level, row.base]);
            let levels = of_both.map(|place| &answer.rows[place as usize].level);
            let rates = levels.map(|level| {
                let rate = rate_of(&level.rate_per_s);
                statement!("rate-at", at = row_of(experiment, answer, level), rate = rate)
            });
            rates.collect()
        };
        (!rows.is_empty()).then(|| change(at, than, &told, rates))
    };
    others.filter_map(of_value).collect()
}

/// A level with what it is relative to its base.
type Told<'a> = (&'a Level, &'a AgainstBase, &'a Comparison);

fn change(
    at: Statement,
    than: Statement,
    told: &[Told<'_>],
    rates: impl FnOnce() -> Vec<Statement>,
) -> Finding {
    if told.is_empty() {
        let said = statement!("level-not-compared", at = at, than = than);
        return Finding::warning(said, rates());
    }
    let is = |verdict| move |(_, _, found): &&Told<'_>| found.verdict == verdict;
    let slower = told.iter().filter(is(ComparisonVerdict::Slower));
    let faster = told.iter().filter(is(ComparisonVerdict::Faster));
    let certain = slower.clone().chain(faster.clone());
    let size = |(_, _, found): &&Told<'_>| found.ratio.value.ln().abs();
    let most = certain.max_by(|one, other| size(one).total_cmp(&size(other)));
    let most = most.map(|(level, _, found)| {
        statement!(
            "workload-changed-most",
            workload = level.workload.as_ref(),
            statistic = name(found.statistic),
            ratio = Number::estimate(&found.ratio, Unit::Plain)
        )
    });
    let is_certain = most.is_some();
    let said = statement!(
        "suite-changed",
        at = at,
        than = than,
        most = most,
        slower = slower.count(),
        faster = faster.count(),
        all = told.len()
    );
    let evidence = told.iter().map(evidence).collect();
    if is_certain {
        Finding::found(said, evidence)
    } else {
        Finding::warning(said, evidence)
    }
}

fn evidence((level, row, found): &Told<'_>) -> Statement {
    let explanation = row.explanation.as_ref();
    statement!(
        "workload-times-that-of-base",
        workload = level.workload.as_ref(),
        statistic = name(found.statistic),
        ratio = Number::estimate(&found.ratio, Unit::Plain),
        basis = basis(found),
        explanation = explanation.and_then(|one| explained("", one, &row.demands))
    )
}

/// The workloads with the highest and the lowest rate, with the first setting; nothing where rates were offered, or where
/// either may be the faster one.
fn fastest_and_slowest(experiment: &Experiment, answer: &SuiteAnswer) -> Option<Finding> {
    let first = &answer.rows.first()?.level;
    let rows = answer.rows.iter().map(|row| &row.level);
    let rows = rows.filter(|level| level.settings == first.settings);
    let rate = |level: &&Level| level.rate_per_s.value;
    let fastest = rows
        .clone()
        .max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let slowest = rows.min_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let overlaps = fastest.rate_per_s.low.zip(slowest.rate_per_s.high);
    let is_told = overlaps.is_none_or(|(low, high)| low > high);
    if std::ptr::eq(fastest, slowest) || !is_told || first.offered_rate_per_s.is_some() {
        return None;
    }
    let factor = fastest.rate_per_s.value / slowest.rate_per_s.value;
    let said = statement!(
        "fastest-and-slowest-workload",
        fastest = row_of(experiment, answer, fastest),
        most = rate_of(&fastest.rate_per_s),
        slowest = row_of(experiment, answer, slowest),
        least = rate_of(&slowest.rate_per_s),
        factor = times(factor)
    );
    let evidence = [fastest, slowest].map(|level| {
        let operations: u64 = level.succeeded;
        statement!(
            "operations-in-runs",
            row = row_of(experiment, answer, level),
            operations = operations,
            runs = level.runs.len()
        )
    });
    Some(Finding::found(said, evidence.into()))
}

/// The kind of operation of which the smallest share took less than the time that was named.
fn smallest_share(experiment: &Experiment, answer: &SuiteAnswer) -> Option<Finding> {
    let limit_us = answer.below_us?;
    let mut shares: Vec<(&Level, &String, &SuiteOperation, Figure)> = answer
        .rows
        .iter()
        .flat_map(|row| {
            let operations = row.operations.iter();
            operations
                .filter_map(move |(name, one)| Some((&row.level, name, one, one.below_ratio?)))
        })
        .collect();
    shares.sort_by(|one, other| one.3.value.total_cmp(&other.3.value));
    let (level, operation, one, share) = *shares.first()?;
    let said = statement!(
        "smallest-share-below",
        share = share.number(Unit::Ratio),
        operation = operation,
        row = row_of(experiment, answer, level),
        limit = us(limit_us),
        is_one_of_several = shares.len() > 1
    );
    let counted = statement!("operations-counted", operations = one.count);
    let others = shares[1..].iter().take(MOST_SHARES);
    let others = others.map(|(level, operation, _, share)| {
        statement!(
            "share-below",
            row = row_of(experiment, answer, level),
            operation = *operation,
            share = share.number(Unit::Ratio)
        )
    });
    let evidence = std::iter::once(counted).chain(others).collect();
    Some(Finding::found(said, evidence))
}

/// A workload, with the settings that tell its rows apart.
fn row_of(experiment: &Experiment, answer: &SuiteAnswer, level: &Level) -> Statement {
    let varied = experiment.axes.iter().filter(|axis| axis.values.len() > 1);
    let settings = varied.filter_map(|axis| {
        let value = level.settings.get(&axis.key)?;
        Some(setting(answer, level, &axis.key, value))
    });
    let settings: Vec<String> = settings.collect();
    statement!(
        "workload-row",
        workload = level.workload.as_ref(),
        settings = (!settings.is_empty()).then_some(settings)
    )
}

/// A setting of a level; a server's own name and version stand for its program, if they tell all programs apart.
fn setting(answer: &SuiteAnswer, level: &Level, key: &str, value: &str) -> String {
    let levels = answer.rows.iter().map(|row| &row.level);
    match (key, version(levels, level)) {
        (PROGRAM, Some(version)) => version.to_owned(),
        _ => format!("`{key}={value}`"),
    }
}
