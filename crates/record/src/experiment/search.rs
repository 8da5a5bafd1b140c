//! Answers of searches: for the highest rate of a closed loop, and for the highest offered rate that keeps an
//! objective.

use super::disk::DiskLimits;
use super::figures::{Demand, Figure, Figures};
use crate::estimate::Estimate;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientsEnd {
    /// Two doublings in a row gained too little: more clients do not raise the rate.
    Plateau,
    /// The maximum number of clients was reached before two such doublings: the maximum rate may be higher.
    LimitReached,
    /// The rate still grew at the maximum number of clients: the maximum rate is higher.
    StillGrowing,
    /// The maximum number of measurements was reached.
    OutOfMeasurements,
}

/// A number of clients and its measured rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedClients {
    pub clients: u32,
    /// Operations per second of each measurement, in order.
    pub rates_per_s: Vec<f64>,
}

/// Result of a search over clients.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientsResult {
    /// Number of clients with the highest rate.
    pub clients: u32,
    /// Operations per second: the mean of the measurements after this number of clients was chosen.
    pub rate_per_s: f64,
    /// Number of these measurements, which are the last ones with this number of clients.
    #[serde(default)]
    pub counted_runs: u32,
    /// The rate with its confidence interval; absent for fewer than two measurements.
    pub estimate_per_s: Option<Estimate>,
    /// Smallest number of clients with a rate within `gain_ratio` of the highest: additional clients only wait.
    pub enough_clients: u32,
    pub end: ClientsEnd,
    /// All numbers of clients tried, ascending.
    pub tried: Vec<TriedClients>,
}

/// An open-loop run just below the maximum.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// Offered rate as a share of the closed-loop maximum.
    pub ratio: f64,
    pub offered_rate_per_s: f64,
    /// Achieved rate.
    pub rate_per_s: Figure,
    /// 99th percentile of the response time.
    pub p99_us: Option<Figure>,
    /// Whether the server kept up: 99 % of the rate, nothing dropped, nothing failed.
    pub kept: bool,
    /// Whether the client was too busy: a missed rate then says nothing about the server.
    #[serde(default)]
    pub generator_bound: bool,
}

/// Answer of a search for the maximum rate.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XmaxAnswer {
    /// X_max: mean rate of the repeated closed-loop runs with the best number of clients; absent if the client was the
    /// limit, because the rate is then not a property of the server.
    pub x_max_per_s: Option<Figure>,
    /// Maximum rate of the client, if the client was the limit.
    pub client_maximum_per_s: Option<Figure>,
    /// The closed-loop search.
    pub search: ClientsResult,
    /// Why the client was the limit; empty if the server was.
    pub generator_bound: Vec<Statement>,
    /// Open-loop runs below the maximum, in order.
    pub confirmations: Vec<Confirmation>,
    /// The highest offered rate that was kept; absent if none was. It has no interval because it was set, not
    /// estimated, and one run at each rate decided. The achieved rates in `confirmations` have intervals.
    pub sustained_rate_per_s: Option<f64>,
    /// Service demands at the maximum, over the runs that determined its rate.
    pub demands: Vec<Demand>,
    /// Limits by the data devices; absent if no disk was observed.
    pub disk: Option<DiskLimits>,
    /// The resource that saturates first, among those with known limits.
    pub bottleneck: Option<Demand>,
    /// Rate at which the bottleneck is always busy. Without an interval, the error of its demand is unknown.
    pub bound_per_s: Option<Figure>,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveEnd {
    /// The interval of the boundary is as narrow as requested.
    Resolved,
    /// The objective is kept at the highest allowed rate.
    AlwaysKept,
    /// The objective is missed at the lowest allowed rate.
    NeverKept,
    /// The maximum number of measurements or the time limit was reached; the interval of the boundary, if any, is still
    /// valid.
    OutOfMeasurements,
    /// The experiment was interrupted or failed; rates that were kept or missed before are still valid.
    Interrupted,
}

/// Number of measurements at a rate that kept or missed the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRate {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Measurements that kept the objective.
    pub kept_count: u32,
    /// Measurements that missed the objective.
    pub missed_count: u32,
}

/// Result of a search for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// Rate that half of the measurements keep, operations per second; without a boundary, the highest kept rate;
    /// absent if none was kept.
    pub rate_per_s: Option<f64>,
    /// The boundary with its intervals; absent if the objective was never kept or never missed, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    /// Highest tried rate below all rates with a miss; absent if the lowest rate has a miss. This and
    /// `always_missed_from_per_s` summarize the measurements without a confidence level: another measurement could
    /// contradict them.
    pub always_kept_up_to_per_s: Option<f64>,
    /// Lowest tried rate above all rates at which the objective was kept; absent if it was kept once at the highest
    /// rate.
    pub always_missed_from_per_s: Option<f64>,
    pub end: ObjectiveEnd,
    /// All rates tried, ascending.
    pub tried: Vec<TriedRate>,
}

/// Where runs begin to miss an objective. The share of runs that keep it is a logistic curve over the logarithm of the
/// rate: `P(kept) = l + (1 − 2 l) / (1 + (rate / half)^(1 / spread))`, with `l` = 0.01. All intervals are 95 %
/// intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// Rate that half of the runs keep, operations per second.
    pub half_per_s: Estimate,
    /// Rate that 95 % of the runs keep, operations per second.
    pub most_per_s: Estimate,
    /// Rate that 5 % of the runs keep, operations per second.
    pub few_per_s: Estimate,
    /// Scale of the curve, as a share of the rate: how random the outcome is near the boundary. If few runs contradict
    /// each other, its upper end is the largest value that they do not rule out.
    pub spread_ratio: Estimate,
    /// Lowest and highest rate tried, the highest at most what the closed loop or a run that kept the objective
    /// reached. The rates of the boundary are clipped to this range: a rate at its upper end means that rate or
    /// higher, and a rate at its lower end means that rate or lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_per_s: Option<[f64; 2]>,
}

/// Position of a clipped rate outside the measured range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// At or below the lowest rate tried.
    Below,
    /// At or above the highest rate tried.
    Above,
}

impl ObjectiveResult {
    /// Clips the boundary to rates that were reached: by the closed loop, or in a run that kept the objective.
    pub fn within_reach(mut self, closed_rate_per_s: f64) -> ObjectiveResult {
        let kept = self.tried.iter().filter(|one| one.kept_count > 0);
        let reached = kept.map(|one| one.rate_per_s).fold(closed_rate_per_s, f64::max);
        if let Some(boundary) = self.boundary {
            let [lowest, highest] = boundary.measured_per_s.unwrap_or([0.0, f64::INFINITY]);
            let found = boundary.within_measured([lowest, highest.min(reached).max(lowest)]);
            self.rate_per_s = Some(found.half_per_s.value);
            self.boundary = Some(found);
        }
        self
    }
}

impl Boundary {
    /// Clips the rates to the range from the lowest to the highest rate tried.
    pub fn within_measured(self, [lowest, highest]: [f64; 2]) -> Boundary {
        let cut = |rate: Estimate| Estimate {
            value: rate.value.clamp(lowest, highest),
            low: rate.low.clamp(lowest, highest),
            high: rate.high.clamp(lowest, highest),
            ..rate
        };
        Boundary {
            half_per_s: cut(self.half_per_s),
            most_per_s: cut(self.most_per_s),
            few_per_s: cut(self.few_per_s),
            measured_per_s: Some([lowest, highest]),
            ..self
        }
    }

    /// Whether a rate of the boundary, or an end of its interval, was clipped.
    pub fn not_measured(&self, rate_per_s: f64) -> Option<NotMeasured> {
        let [lowest, highest] = self.measured_per_s?;
        if rate_per_s >= highest {
            Some(NotMeasured::Above)
        } else if rate_per_s <= lowest {
            Some(NotMeasured::Below)
        } else {
            None
        }
    }
}

/// A limit on a response time statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// Name of a percentile of the response time, such as `p99` or `p99_9`, or `mean`.
    pub statistic: String,
    /// Largest allowed value.
    pub limit_us: f64,
}

impl Objective {
    /// Limits a percentile; `percent` is above 0 and below 100.
    pub fn of_percentile(percent: f64, limit_us: f64) -> Objective {
        Objective { statistic: format!("p{percent}").replace('.', "_"), limit_us }
    }

    /// Display name: `p99.9`, `mean`.
    pub fn name(&self) -> String {
        self.statistic.replace('_', ".")
    }

    /// Percentage of a percentile; `None` for the mean.
    pub fn percent(&self) -> Option<f64> {
        self.name().strip_prefix('p')?.parse().ok()
    }

    /// Share of operations that may exceed the limit; `None` for the mean.
    pub fn longer_ratio(&self) -> Option<f64> {
        Some((100.0 - self.percent()?) / 100.0)
    }

    /// Value of the statistic in a run; `None` if the run does not have it.
    pub fn value_us(&self, figures: &Figures) -> Option<f64> {
        match self.statistic.as_str() {
            "mean" => Some(figures.response_mean_us.value),
            name => figures.percentile(name).map(|figure| figure.value),
        }
    }
}

/// All conditions that a run must keep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objectives {
    /// Response time limits; empty if only failures count.
    pub responses: Vec<Objective>,
    /// Largest allowed share of failed operations.
    pub failed_ratio: f64,
}

/// One measurement of the search.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Offered rate.
    pub rate_per_s: f64,
    /// Values of the objectives, in their order; empty if no operation succeeded.
    pub values_us: Vec<f64>,
    /// Share of operations that failed.
    pub failed_ratio: f64,
    /// Share of arrivals that were never sent.
    #[serde(default)]
    pub dropped_ratio: f64,
    /// Rate of finished operations, if it is below the offered rate: a queue grew.
    pub ended_rate_per_s: Option<f64>,
    /// Whether all objectives and the offered rate were kept.
    pub kept: bool,
    /// Whether the client was too busy, so that response times include its delays.
    pub generator_bound: bool,
    /// Share of CPU time that the hypervisor took; absent if no machine reported it.
    pub stolen_ratio: Option<f64>,
}

impl Attempt {
    /// A run without a successful operation: it does not have response times, and misses every objective.
    pub fn without_success(rate_per_s: f64) -> Attempt {
        Attempt {
            rate_per_s,
            values_us: Vec::new(),
            failed_ratio: 1.0,
            dropped_ratio: 0.0,
            ended_rate_per_s: None,
            kept: false,
            generator_bound: false,
            stolen_ratio: None,
        }
    }
}

/// Answer of a search for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloAnswer {
    pub objectives: Objectives,
    /// Rate of a closed loop with the same clients, where the search began, with its interval.
    pub closed_rate_per_s: Figure,
    /// The boundary, and the measurements at each rate.
    pub search: ObjectiveResult,
    /// Measurements that count, in order.
    pub attempts: Vec<Attempt>,
    /// Measurements that do not count and were repeated, because the hypervisor took too much CPU time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<Attempt>,
}
