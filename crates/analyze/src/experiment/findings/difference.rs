//! Which demand explains that one plan is faster than another.

use crate::experiment::demands::DemandRatio;
use crate::experiment::figures::resource_name;
use crate::experiment::relative::Explanation;
use crate::experiment::words::{list, number, percent, time, times};
use dyno_record::model::ResourceKind;
use dyno_record::quantity::Quantity;

/// A ratio from which on it is told as such and not in percent.
const MANY_TIMES: f64 = 2.0;

/// A ratio as a change with its sign.
pub(super) fn signed(ratio: f64) -> String {
    Quantity::ratio(ratio - 1.0).brief().signed().to_string()
}

/// `5.2 % higher`.
pub(super) fn change(ratio: f64) -> String {
    let word = if ratio >= 1.0 { "higher" } else { "lower" };
    format!("{} {word}", percent((ratio - 1.0).abs()))
}

/// `it needs 8.0 % more server CPU per operation (48.0 µs instead of 44.4 µs)`.
pub(super) fn needs(subject: &str, demand: &DemandRatio) -> String {
    let ratio = demand.ratio.value;
    let how_much = match ratio {
        ratio if ratio >= MANY_TIMES => format!("{} times the", times(ratio)),
        ratio if ratio >= 1.0 => format!("{} more", percent(ratio - 1.0)),
        ratio => format!("{} less", percent(1.0 - ratio)),
    };
    format!(
        "{subject} needs {how_much} {} per operation ({} instead of {})",
        amount(&demand.name),
        time(demand.candidate_s),
        time(demand.baseline_s)
    )
}

/// What explains a difference that is certain, as the end of a sentence about it.
pub(super) fn explained(
    subject: &str,
    explanation: &Explanation,
    demands: &[DemandRatio],
) -> String {
    match explanation {
        Explanation::Demand { name } => {
            let demand = demands.iter().find(|demand| demand.name == *name);
            demand.map_or(String::new(), |demand| needs(subject, demand))
        }
        Explanation::NoDemand => {
            "no service demand explains it, so look at what operations wait for besides CPU and disk"
                .to_owned()
        }
        Explanation::NotWatched => {
            "the server was not watched, so that no service demand can explain it".to_owned()
        }
    }
}

/// Demands that differ for certain although what decides does not.
pub(super) fn only_in_demands(subject: &str, demands: &[DemandRatio]) -> Option<String> {
    let certain = demands.iter().filter(|demand| demand.is_certain());
    let parts: Vec<String> = certain.map(|demand| needs(subject, demand)).collect();
    (!parts.is_empty()).then(|| list(&parts))
}

/// The demands as evidence, a sentence each.
pub(super) fn evidence(demands: &[DemandRatio]) -> Vec<String> {
    let sentence = |demand: &DemandRatio| {
        let interval = match demand.ratio.low.zip(demand.ratio.high) {
            Some((low, high)) => format!("95 % interval {} to {}", number(low), number(high)),
            None => "no interval: too little was measured".to_owned(),
        };
        format!(
            "{} per operation: {} instead of {}, {} times as much ({interval})",
            amount(&demand.name),
            time(demand.candidate_s),
            time(demand.baseline_s),
            number(demand.ratio.value)
        )
    };
    demands.iter().map(sentence).collect()
}

/// What an operation takes of a resource.
fn amount(name: &str) -> &str {
    match name == resource_name(ResourceKind::Disk) {
        true => "disk time",
        false => name,
    }
}
