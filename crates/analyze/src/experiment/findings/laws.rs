//! Whether the measurements obey the laws of every queueing system.

use super::view::{View, subject};
use crate::laws::tolerance_ratio;
use crate::values::{percent, time};
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
