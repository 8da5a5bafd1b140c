//! Whether the measurements obey the laws of every queueing system.

use super::view::{View, subject};
use crate::laws::tolerance_ratio;
use crate::values::{number, percent, time};
use dyno_record::document::variant_name;
use dyno_record::experiment::{CLIENTS, Finding, Law, LawCheck, LawVerdict, Level, RATE};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// All laws, in reporting order.
pub(super) const LAWS: [Law; 6] = [
    Law::Little,
    Law::ResponseTime,
    Law::Utilization,
    Law::ForcedFlow,
    Law::RateBound,
    Law::ResponseBound,
];

/// A law.
pub(super) fn name(law: Law) -> Statement {
    Statement::new(format!("law.{}", variant_name(&law)))
}

/// Consequence of a broken law for the measurement.
pub(super) fn meaning(law: Law) -> Statement {
    Statement::new(format!("law-broken.{}", variant_name(&law)))
}

/// Whether the law is a bound, which can be violated on one side only.
pub(super) fn is_bound(law: Law) -> bool {
    matches!(law, Law::RateBound | Law::ResponseBound)
}

/// Checks of a law with their levels.
fn checks<'a>(view: &View<'a>, law: Law) -> Vec<(&'a Level, &'a LawCheck)> {
    view.levels()
        .iter()
        .flat_map(|level| level.laws.iter().map(move |check| (level, check)))
        .filter(|(_, check)| check.law == law)
        .collect()
}

/// One warning for each broken law, with its consequence for the measurement.
pub(super) fn broken(view: &View<'_>) -> Vec<Finding> {
    LAWS.iter()
        // A demand that depends on the load is not a measurement error.
        .filter(|law| **law != Law::Utilization)
        .filter_map(|law| {
            let mut broken = checks(view, *law);
            broken.retain(|(_, check)| check.verdict == LawVerdict::Broken);
            let mut levels: Vec<&Level> = broken.iter().map(|(level, _)| *level).collect();
            levels.dedup_by(|a, b| std::ptr::eq(*a, *b));
            let said = statement!(
                "law-broken-at-levels",
                law = name(*law),
                at = view.at_all(&levels),
                meaning = meaning(*law)
            );
            let evidence: Vec<Statement> =
                broken.iter().map(|(level, check)| evidence(view, level, check)).collect();
            (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
        })
        .collect()
}

/// A demand that differs between levels.
pub(super) fn demand_varies(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let mut broken = checks(view, Law::Utilization);
    broken.retain(|(_, check)| check.verdict == LawVerdict::Broken);
    let demand = |level: &Level, name: &str| {
        level.demands.iter().find(|demand| demand.name == name).map(|demand| demand.demand_s)
    };
    let evidence: Vec<Statement> = broken
        .iter()
        .filter_map(|(level, check)| {
            let name = check.subject.as_ref()?;
            Some(statement!(
                "demand-at-level",
                at = view.at(level),
                demand = time(demand(level, name)?),
                resource = subject(name),
                best_demand = time(demand(best, name)?),
                best = view.at(best),
                difference = percent(check.difference_ratio)
            ))
        })
        .collect();
    let said = statement!("demand-varies", what = what_varies(view));
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}

/// The varied setting, as the cause of a changed demand.
fn what_varies(view: &View<'_>) -> &'static str {
    let swept = view.experiment.axes_of(view.answer.block).filter(|axis| axis.values.len() > 1);
    let (loads, settings): (Vec<_>, Vec<_>) =
        swept.partition(|axis| [CLIENTS, RATE].contains(&axis.key.as_str()));
    match (loads.is_empty(), settings.is_empty()) {
        (true, false) => "setting",
        (false, false) => "load_or_setting",
        (_, true) => "load",
    }
}

fn evidence(view: &View<'_>, level: &Level, check: &LawCheck) -> Statement {
    statement!(
        "differs-from-law",
        at = view.at(level),
        subject = check.subject.as_ref(),
        difference = percent(check.difference_ratio),
        uncertainty = percent(check.uncertainty_ratio.max(tolerance_ratio(check.law)))
    )
}

/// The laws that hold, with the largest difference of each.
pub(super) fn hold(view: &View<'_>) -> Option<Finding> {
    let mut names = Vec::new();
    let mut evidence = Vec::new();
    for law in LAWS {
        let all = checks(view, law);
        let count_of = |verdict| all.iter().filter(|(_, c)| c.verdict == verdict).count();
        let uncertain = count_of(LawVerdict::TooUncertain);
        if all.is_empty() || count_of(LawVerdict::Broken) > 0 {
            continue;
        }
        evidence.extend(worst(view, law, &all));
        evidence.extend(by_construction(view, law));
        if uncertain > 0 {
            evidence.push(statement!(
                "checks-too-uncertain",
                uncertain = uncertain,
                checks = all.len(),
                law = name(law)
            ));
        }
        if uncertain < all.len() {
            names.push(name(law));
        }
    }
    (!names.is_empty()).then(|| {
        let laws = names.len();
        Finding::found(statement!("laws-hold", laws = names, number = laws), evidence)
    })
}

/// Limitation of a bound's check.
fn by_construction(view: &View<'_>, law: Law) -> Option<Statement> {
    let clients = number(view.answer.saturation_clients?.value);
    (law == Law::RateBound).then(|| statement!("bound-is-the-demand", clients = clients))
}

/// The check with the largest difference among the meaningful ones.
fn worst(view: &View<'_>, law: Law, all: &[(&Level, &LawCheck)]) -> Option<Statement> {
    let certain = all.iter().filter(|(_, c)| c.verdict == LawVerdict::Holds);
    let number = certain.clone().count();
    // For a bound only the forbidden side counts.
    let size = |check: &LawCheck| match law {
        Law::RateBound => check.difference_ratio,
        Law::ResponseBound => -check.difference_ratio,
        _ => check.difference_ratio.abs(),
    };
    let (level, check) = certain.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)))?;
    Some(statement!(
        "worst-of-checks",
        law = name(law),
        is_bound = is_bound(law),
        difference = percent(check.difference_ratio),
        at = view.at(level),
        checks = number
    ))
}
