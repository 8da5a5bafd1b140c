//! The operational laws: relations between counts and times that hold in every system that is
//! watched long enough, whatever its distributions. Each check compares what was measured with what
//! the law makes of other measurements; a difference beyond the uncertainty of both is an error of
//! measurement, not a property of the server.
//!
//! P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing Network Models", *ACM
//! Computing Surveys* 10 (1978); E. D. Lazowska, J. Zahorjan, G. S. Graham and K. C. Sevcik,
//! *Quantitative System Performance* (1984), chapter 3.

pub mod bounds;
pub mod demand;

use crate::estimate::{Quantity, combined};
use crate::little::LITTLE_TOLERANCE_RATIO;
use demand::{Demand, Resource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From this relative uncertainty on a check is not worth its name: a law "confirmed" to a third
/// of the value would hide most errors that it is there to find.
pub const MOST_UNCERTAINTY_RATIO: f64 = 1.0 / 3.0;

/// A law, or a bound that follows from the laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// U = X · D: busy servers are the rate times the service demand. In busy servers.
    Utilization,
    /// N = X · R: operations in flight are the rate times the time each takes. In operations.
    Little,
    /// R = N / X − Z, in a closed loop of N clients that think for Z. In seconds.
    ResponseTime,
    /// Xₖ = Vₖ · X: a part of the system works at the rate of the whole times its visits. Per second.
    ForcedFlow,
    /// X(N) ≤ min(N / (D + Z), 1 / D_max). Per second.
    RateBound,
    /// R(N) ≥ max(D, N · D_max − Z). In seconds.
    ResponseBound,
}

impl Law {
    /// Difference that is never called broken, however small the statistical uncertainty: what the
    /// edges of a phase and the counters of the system can do to an honest measurement.
    pub fn tolerance_ratio(self) -> f64 {
        match self {
            // CPU time is counted in ticks of up to 10 ms, and other processes share the counters.
            Law::Utilization => 0.05,
            _ => LITTLE_TOLERANCE_RATIO,
        }
    }

    /// What a broken law says about the measurement.
    pub fn meaning_when_broken(self) -> &'static str {
        match self {
            Law::Utilization => {
                "the demand is not the same as where it was measured, or the resource also worked for others"
            }
            Law::Little => {
                "rate, times and concurrency were not measured on the same operations in the same window"
            }
            Law::ResponseTime => {
                "clients lost time outside of the operations and their thinking, or some were idle"
            }
            Law::ForcedFlow => {
                "the part counted operations of others, or operations made retries or lost visits"
            }
            Law::RateBound => {
                "a service demand is overstated, servers of a resource were not counted, or the bench changed in between"
            }
            Law::ResponseBound => {
                "a service demand is overstated, clients were not all active, or the bench changed in between"
            }
        }
    }

    /// Bounds are broken from one side only.
    fn is_broken_by(self, difference: f64) -> bool {
        match self {
            Law::RateBound => difference > 0.0,
            Law::ResponseBound => difference < 0.0,
            _ => true,
        }
    }
}

/// How measurement and law agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LawVerdict {
    /// The difference is within the uncertainty or the tolerance of the law.
    Holds,
    /// The difference is beyond both: [`Law::meaning_when_broken`].
    Broken,
    /// The uncertainty is above [`MOST_UNCERTAINTY_RATIO`], so that agreement would mean nothing.
    TooUncertain,
}

/// A measured value beside the one that a law predicts, in the unit that [`Law`] says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LawCheck {
    /// The law.
    pub law: Law,
    /// Resource or part of the system that it was applied to; absent for the system as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was measured.
    pub measured: f64,
    /// What the law makes of the other measurements.
    pub predicted: f64,
    /// `measured / predicted − 1`.
    pub difference_ratio: f64,
    /// Half-width of the confidence interval of `difference_ratio`, from the errors of both sides.
    pub uncertainty_ratio: f64,
    /// Whether the two agree.
    pub verdict: LawVerdict,
}

impl LawCheck {
    fn of(law: Law, subject: Option<&str>, sides: [Quantity; 2]) -> Option<LawCheck> {
        let [measured, predicted] = sides;
        let usable = |q: &Quantity| q.value.is_finite() && q.value > 0.0;
        if !sides.iter().all(usable) {
            return None;
        }
        let difference_ratio = measured.value / predicted.value - 1.0;
        let uncertainty_ratio =
            combined(&[measured.uncertainty_ratio, predicted.uncertainty_ratio]);
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
}

fn verdict(law: Law, difference_ratio: f64, uncertainty_ratio: f64) -> LawVerdict {
    let limit = uncertainty_ratio.max(law.tolerance_ratio());
    if law.is_broken_by(difference_ratio) && difference_ratio.abs() > limit {
        LawVerdict::Broken
    } else if uncertainty_ratio.is_nan() || uncertainty_ratio > MOST_UNCERTAINTY_RATIO {
        LawVerdict::TooUncertain
    } else {
        LawVerdict::Holds
    }
}

/// Little's law: mean operations in flight against the rate (per second) times the time of each
/// (seconds). In flight from intended start to end goes with response time, from send to end with
/// service time. `None` if one of them is not a positive number.
pub fn little(in_flight: Quantity, rate_per_s: Quantity, time_s: Quantity) -> Option<LawCheck> {
    LawCheck::of(Law::Little, None, [in_flight, product(rate_per_s, time_s)])
}

/// The utilization law: busy servers of a resource against the rate times a demand that was
/// measured elsewhere, such as at a low load or by another counter. `None` if one of them is not
/// a positive number.
pub fn utilization(resource: &Resource, rate_per_s: Quantity, demand: &Demand) -> Option<LawCheck> {
    let predicted = product(rate_per_s, demand.quantity());
    let subject = Some(resource.name.as_str());
    LawCheck::of(
        Law::Utilization,
        subject,
        [resource.busy_servers(), predicted],
    )
}

/// The response time law of a closed loop: measured response time against `N / X − Z`. `None` if
/// one of them is not a positive number.
pub fn response_time(
    clients: u32,
    rate_per_s: Quantity,
    think_time_s: f64,
    response_s: Quantity,
) -> Option<LawCheck> {
    let cycle_s = f64::from(clients) / rate_per_s.value;
    let predicted_s = cycle_s - think_time_s;
    let predicted = Quantity {
        value: predicted_s,
        // The subtraction keeps the absolute error of the cycle.
        uncertainty_ratio: rate_per_s.uncertainty_ratio * cycle_s / predicted_s,
    };
    LawCheck::of(Law::ResponseTime, None, [response_s, predicted])
}

/// The forced flow law: measured rate of a part (per second) against its visits per operation times
/// the rate of the whole, such as commands of the server against operations of the client. `None`
/// if one of them is not a positive number.
pub fn forced_flow(
    part: &str,
    flow_per_s: Quantity,
    visits_per_operation: Quantity,
    rate_per_s: Quantity,
) -> Option<LawCheck> {
    let predicted = product(visits_per_operation, rate_per_s);
    LawCheck::of(Law::ForcedFlow, Some(part), [flow_per_s, predicted])
}

/// A measured rate against an upper bound of it, both per second.
pub fn rate_within_bound(rate_per_s: Quantity, bound_per_s: Quantity) -> Option<LawCheck> {
    LawCheck::of(Law::RateBound, None, [rate_per_s, bound_per_s])
}

/// A measured response time against a lower bound of it, both in seconds.
pub fn response_within_bound(response_s: Quantity, bound_s: Quantity) -> Option<LawCheck> {
    LawCheck::of(Law::ResponseBound, None, [response_s, bound_s])
}

fn product(a: Quantity, b: Quantity) -> Quantity {
    Quantity {
        value: a.value * b.value,
        uncertainty_ratio: combined(&[a.uncertainty_ratio, b.uncertainty_ratio]),
    }
}

#[cfg(test)]
mod tests;
