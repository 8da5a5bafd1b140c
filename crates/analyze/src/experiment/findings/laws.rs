//! Whether the measurements obey the laws that every queueing system must obey.

use super::view::{View, subject};
use super::{finding, warning};
use crate::experiment::Finding;
use crate::experiment::sweep::{CLIENTS, Level, RATE};
use crate::experiment::words::{count, list, number, percent, time};
use crate::laws::{Law, LawCheck, LawVerdict};
use dyno_record::quantity::Quantity;

/// All laws, in the order in which they are told.
pub(super) const LAWS: [Law; 6] = [
    Law::Little,
    Law::ResponseTime,
    Law::Utilization,
    Law::ForcedFlow,
    Law::RateBound,
    Law::ResponseBound,
];

/// The law as a sentence needs it.
pub(super) fn name(law: Law) -> &'static str {
    match law {
        Law::Utilization => "the utilization law (U = X·D)",
        Law::Little => "Little's law (N = X·R)",
        Law::ResponseTime => "the response time law (R = N/X − Z)",
        Law::ForcedFlow => "the forced flow law",
        Law::RateBound => "the bound of the rate",
        Law::ResponseBound => "the bound of the response time",
    }
}

/// Whether the law is a bound, of which only one side can be wrong.
pub(super) fn is_bound(law: Law) -> bool {
    matches!(law, Law::RateBound | Law::ResponseBound)
}

/// Checks of a law with the levels that they are from.
fn checks<'a>(view: &View<'a>, law: Law) -> Vec<(&'a Level, &'a LawCheck)> {
    let levels = view.levels().iter();
    levels
        .flat_map(|level| level.laws.iter().map(move |check| (level, check)))
        .filter(|(_, check)| check.law == law)
        .collect()
}

/// One warning for each law that is broken, with what that says about the measurement.
pub(super) fn broken(view: &View<'_>) -> Vec<Finding> {
    LAWS.iter()
        // A demand that depends on the load is no error of measurement.
        .filter(|law| **law != Law::Utilization)
        .filter_map(|law| {
            let mut broken = checks(view, *law);
            broken.retain(|(_, check)| check.verdict == LawVerdict::Broken);
            let mut levels: Vec<&Level> = broken.iter().map(|(level, _)| *level).collect();
            levels.dedup_by(|a, b| std::ptr::eq(*a, *b));
            let text = format!(
                "{} is broken {}: {}",
                name(*law),
                view.at_all(&levels),
                law.meaning_when_broken()
            );
            let evidence: Vec<String> = broken
                .iter()
                .map(|(level, check)| evidence(view, level, check))
                .collect();
            (!evidence.is_empty()).then(|| warning(text, evidence))
        })
        .collect()
}

/// A demand that is not the same at all levels.
pub(super) fn demand_varies(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let mut broken = checks(view, Law::Utilization);
    broken.retain(|(_, check)| check.verdict == LawVerdict::Broken);
    let demand = |level: &Level, name: &str| {
        let mut demands = level.demands.iter();
        demands
            .find(|demand| demand.name == name)
            .map(|demand| demand.demand_s)
    };
    let evidence: Vec<String> = broken
        .iter()
        .filter_map(|(level, check)| {
            let name = check.subject.as_ref()?;
            Some(format!(
                "{} an operation needs {} of {}, {} {}: {}",
                view.at(level),
                time(demand(level, name)?),
                subject(name),
                time(demand(best, name)?),
                view.at(best),
                signed(check.difference_ratio)
            ))
        })
        .collect();
    let text = format!(
        "what an operation needs depends on {} (the utilization law U = X·D with the demands of the highest rate)",
        what_varies(view)
    );
    (!evidence.is_empty()).then(|| finding(text, evidence))
}

/// What the levels differ in, as the cause of another demand.
fn what_varies(view: &View<'_>) -> &'static str {
    let swept = view
        .experiment
        .axes_of(view.answer.block)
        .filter(|axis| axis.values.len() > 1);
    let (loads, settings): (Vec<_>, Vec<_>) =
        swept.partition(|axis| [CLIENTS, RATE].contains(&axis.key.as_str()));
    match (loads.is_empty(), settings.is_empty()) {
        (true, false) => "the setting",
        (false, false) => "the load or the setting",
        (_, true) => "the load, so that bounds from one level are approximate at others",
    }
}

fn evidence(view: &View<'_>, level: &Level, check: &LawCheck) -> String {
    let subject = check.subject.as_ref();
    let subject = subject.map_or(String::new(), |subject| format!(" of `{subject}`"));
    format!(
        "{}{subject} the measured value differs by {} from that of the law, beyond the uncertainty of ± {}",
        view.at(level),
        signed(check.difference_ratio),
        percent(check.uncertainty_ratio.max(check.law.tolerance_ratio()))
    )
}

/// The laws that hold, with the worst difference of each.
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
            evidence.push(format!(
                "{} of {} of {} are too uncertain to mean anything: the intervals are wider than a third",
                uncertain,
                count(all.len(), "check", "checks"),
                name(law)
            ));
        }
        if uncertain < all.len() {
            names.push(name(law).to_owned());
        }
    }
    let verb = match names.as_slice() {
        [] => return None,
        [_] => "holds",
        _ => "hold",
    };
    let text = format!("{} {verb} wherever it could be checked", list(&names));
    let text = match names.len() {
        1 => text,
        _ => text.replace("it could", "they could"),
    };
    Some(finding(text, evidence))
}

/// What a bound cannot tell.
fn by_construction(view: &View<'_>, law: Law) -> Option<String> {
    let clients = view.answer.saturation_clients?.value;
    (law == Law::RateBound).then(|| {
        format!(
            "from {} clients on the bound is the demand at the highest rate, which no lower rate can break: what is tested is \
             the side of the lone client",
            number(clients)
        )
    })
}

/// The check with the largest difference among those that say something.
fn worst(view: &View<'_>, law: Law, all: &[(&Level, &LawCheck)]) -> Option<String> {
    let certain = all.iter().filter(|(_, c)| c.verdict == LawVerdict::Holds);
    let number = certain.clone().count();
    // The most dangerous side of a bound is the one that it may not cross.
    let size = |check: &LawCheck| match law {
        Law::RateBound => check.difference_ratio,
        Law::ResponseBound => -check.difference_ratio,
        _ => check.difference_ratio.abs(),
    };
    let (level, check) = certain.max_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)))?;
    let what = match is_bound(law) {
        true => "nearest to it",
        false => "worst difference",
    };
    Some(format!(
        "{}: {what} {} {}, in {}",
        name(law),
        signed(check.difference_ratio),
        view.at(level),
        count(number, "check", "checks")
    ))
}

/// A difference with its sign.
pub(super) fn signed(ratio: f64) -> String {
    match ratio {
        ratio if ratio.abs() < 0.000_5 => "0.0 %".to_owned(),
        ratio => Quantity::ratio(ratio).brief().signed().to_string(),
    }
}
