//! Which demand explains that one plan is faster than another.

use crate::values::{percent, time};
use dyno_record::experiment::{AbAnswer, CostKind, CostRatio, DemandRatio, Explanation, Statistic};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// `it needs 8.0 % more server CPU per operation (48.0 µs instead of 44.4 µs)`.
fn needs(subject: &str, demand: &DemandRatio) -> Statement {
    let statement = compared("needs", demand);
    statement.with("subject", Some(subject).filter(|one| !one.is_empty()))
}

fn compared(code: &str, demand: &DemandRatio) -> Statement {
    statement!(
        code,
        resource = &demand.name,
        ratio = demand.ratio.number(Unit::Plain),
        candidate = time(demand.candidate_s),
        baseline = time(demand.baseline_s)
    )
}

/// What explains a difference that is certain. Without a subject it is the one that the sentence is about.
pub(super) fn explained(
    subject: &str,
    explanation: &Explanation,
    demands: &[DemandRatio],
) -> Option<Statement> {
    match explanation {
        Explanation::Demand { name } => {
            let demand = demands.iter().find(|demand| demand.name == *name);
            demand.map(|demand| needs(subject, demand))
        }
        Explanation::NoDemand => Some(statement!("no-demand-explains")),
        Explanation::NotWatched => Some(statement!("demands-not-watched")),
    }
}

/// What operations certainly wait for less although no CPU and no disk need be less busy. A server syncs its journal at fixed
/// intervals as well, so that each operation has less of it where there are more: the time per second has to fall, too. What none of
/// several runs has any more needs no interval.
pub(super) fn shorter_waits(answer: &AbAnswer) -> Vec<Statement> {
    let mut rate = answer.comparisons.iter();
    let rate = rate.find(|one| one.statistic == Statistic::Rate);
    let more_operations = rate.map_or(1.0, |rate| rate.ratio.value);
    let said = |one: &CostRatio| {
        let (less, none, unit, more) = match one.kind {
            CostKind::CacheMisses => ("fewer-cache-misses", "no-cache-misses", Unit::Plain, 1.0),
            CostKind::JournalSyncs => (
                "shorter-journal-syncs",
                "no-journal-syncs",
                Unit::Microseconds,
                more_operations,
            ),
            _ => return None,
        };
        let baseline = Number::new(one.baseline, unit);
        if one.candidate == 0.0 {
            return Some(statement!(none, baseline = baseline));
        }
        (one.ratio.high? * more < 1.0).then(|| {
            statement!(
                less,
                share = percent(1.0 - one.ratio.value),
                candidate = Number::new(one.candidate, unit),
                baseline = baseline
            )
        })
    };
    answer.costs.iter().filter_map(said).collect()
}

/// Demands that differ for certain although what decides does not.
pub(super) fn only_in_demands(subject: &str, demands: &[DemandRatio]) -> Option<Vec<Statement>> {
    let certain = demands.iter().filter(|demand| demand.is_certain());
    let parts: Vec<Statement> = certain.map(|demand| needs(subject, demand)).collect();
    (!parts.is_empty()).then_some(parts)
}

/// The demands as evidence, one by one.
pub(super) fn evidence(demands: &[DemandRatio]) -> Vec<Statement> {
    let demands = demands.iter();
    demands
        .map(|one| compared("demand-compared", one))
        .collect()
}
