//! The demand that explains why one plan is faster than another.

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

/// The explanation of a certain difference. Without a subject it refers to the subject of the sentence.
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

/// Waits that certainly became shorter although no CPU or disk is less busy. A server also syncs its journal at
/// fixed intervals, so a higher rate means fewer syncs per operation: the time per second must fall as well. A
/// wait that fell to 0 in all of several runs needs no interval.
pub(super) fn shorter_waits(answer: &AbAnswer) -> Vec<Statement> {
    let mut rate = answer.comparisons.iter();
    let rate = rate.find(|one| one.statistic == Statistic::Rate);
    let more_operations = rate.map_or(1.0, |rate| rate.ratio.value);
    let said = |one: &CostRatio| {
        let (less, none, unit, more) = match one.kind {
            CostKind::CacheMisses => ("fewer-cache-misses", "no-cache-misses", Unit::Plain, 1.0),
            CostKind::JournalSyncs => {
                ("shorter-journal-syncs", "no-journal-syncs", Unit::Microseconds, more_operations)
            }
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

/// Demands that certainly differ although the deciding figure does not.
pub(super) fn only_in_demands(subject: &str, demands: &[DemandRatio]) -> Option<Vec<Statement>> {
    let certain = demands.iter().filter(|demand| demand.is_certain());
    let parts: Vec<Statement> = certain.map(|demand| needs(subject, demand)).collect();
    (!parts.is_empty()).then_some(parts)
}

/// The demands as evidence, one by one.
pub(super) fn evidence(demands: &[DemandRatio]) -> Vec<Statement> {
    demands.iter().map(|one| compared("demand-compared", one)).collect()
}
