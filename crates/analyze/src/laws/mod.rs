//! The operational laws: relations between counts and times that hold in every system over a long enough time,
//! whatever its distributions. Each check compares a measurement with the law's prediction from other
//! measurements; a difference beyond the uncertainty of both is a measurement error, not a property of the
//! server.
//!
//! P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", *ACM
//! Computing Surveys* 10 (1978); E. D. Lazowska, J. Zahorjan, G. S. Graham and K. C. Sevcik,
//! *Quantitative System Performance* (1984), chapter 3.

pub mod bounds;
pub mod demand;

use crate::estimate::combined;
use crate::little::LITTLE_TOLERANCE_RATIO;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Demand, Law, LawCheck, LawVerdict, Resource};

/// Relative uncertainty from which a check is meaningless: a law "confirmed" to a third of the value would hide
/// most errors that it should find.
pub const MOST_UNCERTAINTY_RATIO: f64 = 1.0 / 3.0;

/// Difference that is never called broken, however small the statistical uncertainty: the possible effect of
/// phase edges and system counters on a correct measurement.
pub fn tolerance_ratio(law: Law) -> f64 {
    match law {
        // CPU time is counted in ticks of up to 10 ms, and other processes share the counters.
        Law::Utilization => 0.05,
        _ => LITTLE_TOLERANCE_RATIO,
    }
}

/// Bounds are broken from one side only.
fn is_broken_by(law: Law, difference: f64) -> bool {
    match law {
        Law::RateBound => difference > 0.0,
        Law::ResponseBound => difference < 0.0,
        _ => true,
    }
}

fn check(law: Law, subject: Option<&str>, sides: [Quantity; 2]) -> Option<LawCheck> {
    let [measured, predicted] = sides;
    let usable = |q: &Quantity| q.value.is_finite() && q.value > 0.0;
    if !sides.iter().all(usable) {
        return None;
    }
    let difference_ratio = measured.value / predicted.value - 1.0;
    let uncertainty_ratio = combined(&[measured.uncertainty_ratio, predicted.uncertainty_ratio]);
    Some(LawCheck {
        law,
        subject: subject.map(str::to_owned),
        measured: measured.value,
        predicted: predicted.value,
        difference_ratio,
        uncertainty_ratio,
        verdict: verdict(law, difference_ratio, uncertainty_ratio),
    })
}

fn verdict(law: Law, difference_ratio: f64, uncertainty_ratio: f64) -> LawVerdict {
    let limit = uncertainty_ratio.max(tolerance_ratio(law));
    if is_broken_by(law, difference_ratio) && difference_ratio.abs() > limit {
        LawVerdict::Broken
    } else if uncertainty_ratio.is_nan() || uncertainty_ratio > MOST_UNCERTAINTY_RATIO {
        LawVerdict::TooUncertain
    } else {
        LawVerdict::Holds
    }
}

/// Little's law: mean operations in flight against the rate (per second) times the time of each (seconds). In
/// flight from intended start to end belongs to response time, from send to end to service time. `None` if one
/// of them is not a positive number.
pub fn little(in_flight: Quantity, rate_per_s: Quantity, time_s: Quantity) -> Option<LawCheck> {
    check(Law::Little, None, [in_flight, product(rate_per_s, time_s)])
}

/// The utilization law: busy servers of a resource against the rate times a demand from another measurement,
/// such as a low load or another counter. `None` if one of them is not a positive number.
pub fn utilization(resource: &Resource, rate_per_s: Quantity, demand: &Demand) -> Option<LawCheck> {
    let predicted = product(rate_per_s, demand.quantity());
    let subject = Some(resource.name.as_str());
    check(Law::Utilization, subject, [resource.busy_servers(), predicted])
}

/// The response time law of a closed loop: measured response time against `N / X − Z`. `None` if
/// one of them is not a positive number.
pub fn response_time(
    clients: u32,
    rate_per_s: Quantity,
    think_time_s: f64,
    response_s: Quantity,
) -> Option<LawCheck> {
    let predicted = less_think_time(clients, rate_per_s, think_time_s);
    check(Law::ResponseTime, None, [response_s, predicted])
}

/// `N / X − Z` in seconds. The subtraction keeps the absolute error of the first term.
pub fn less_think_time(clients: u32, rate_per_s: Quantity, think_time_s: f64) -> Quantity {
    let cycle_s = f64::from(clients) / rate_per_s.value;
    let value = cycle_s - think_time_s;
    Quantity { value, uncertainty_ratio: rate_per_s.uncertainty_ratio * cycle_s / value }
}

/// The forced flow law: measured rate of a part (per second) against its visits per operation times the rate of
/// the whole, such as server commands against client operations. `None` if one of them is not a positive
/// number.
pub fn forced_flow(
    part: &str,
    flow_per_s: Quantity,
    visits_per_operation: Quantity,
    rate_per_s: Quantity,
) -> Option<LawCheck> {
    let predicted = product(visits_per_operation, rate_per_s);
    check(Law::ForcedFlow, Some(part), [flow_per_s, predicted])
}

/// A measured rate against its upper bound, both per second.
pub fn rate_within_bound(rate_per_s: Quantity, bound_per_s: Quantity) -> Option<LawCheck> {
    check(Law::RateBound, None, [rate_per_s, bound_per_s])
}

/// A measured response time against its lower bound, both in seconds.
pub fn response_within_bound(response_s: Quantity, bound_s: Quantity) -> Option<LawCheck> {
    check(Law::ResponseBound, None, [response_s, bound_s])
}

fn product(a: Quantity, b: Quantity) -> Quantity {
    Quantity {
        value: a.value * b.value,
        uncertainty_ratio: combined(&[a.uncertainty_ratio, b.uncertainty_ratio]),
    }
}

#[cfg(test)]
mod tests;
