//! Answers of searches: for the highest rate of a closed loop, and for the highest offered rate that keeps an objective.

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
    /// More clients do not raise the rate: two doublings in a row brought too little.
    Plateau,
    /// The largest number of clients came before two such doublings: the maximum may be higher.
    LimitReached,
    /// The rate still grew at the largest number of clients: the maximum is higher.
    StillGrowing,
    /// The number of measurements was spent first.
    OutOfMeasurements,
}

/// A number of clients and the rates that were measured with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedClients {
    /// Number of clients.
    pub clients: u32,
    /// Operations per second of each measurement, in their order.
    pub rates_per_s: Vec<f64>,
}

/// The maximum.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientsResult {
    /// Number of clients with the highest rate.
    pub clients: u32,
    /// Its rate, operations per second: mean of the measurements after its election.
    pub rate_per_s: f64,
    /// Number of these measurements, the last ones with that number of clients.
    #[serde(default)]
    pub counted_runs: u32,
    /// The rate with its confidence interval; absent if there are less than two such measurements.
    pub estimate_per_s: Option<Estimate>,
    /// Fewest clients whose rate is within `gain_ratio` of the highest: more of them only wait.
    pub enough_clients: u32,
    /// Why the search ended.
    pub end: ClientsEnd,
    /// All numbers tried, from the lowest.
    pub tried: Vec<TriedClients>,
}

/// An open-loop run just below the maximum.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// Offered rate as a share of the closed-loop maximum.
    pub ratio: f64,
    /// Offered rate.
    pub offered_rate_per_s: f64,
    /// Achieved rate.
    pub rate_per_s: Figure,
    /// 99th percentile of the response time.
    pub p99_us: Option<Figure>,
    /// Whether the server kept up: 99 % of the rate, nothing dropped, nothing failed.
    pub kept: bool,
    /// The client was too busy, so that a rate that was not kept says nothing about the server.
    #[serde(default)]
    pub generator_bound: bool,
}

/// The answer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct XmaxAnswer {
    /// X_max: mean rate of the repeated closed-loop runs with the best number of clients; absent if the client
    /// was the limit, as it is then not a property of the server.
    pub x_max_per_s: Option<Figure>,
    /// The same where the client was the limit: what the client can do.
    pub client_maximum_per_s: Option<Figure>,
    /// The closed-loop search.
    pub search: ClientsResult,
    /// Why the client was the limit; empty if the server was.
    pub generator_bound: Vec<Statement>,
    /// Open-loop runs below the maximum, in their order.
    pub confirmations: Vec<Confirmation>,
    /// The highest offered rate that was kept; absent if none was. It was set and is not estimated, and one run at each
    /// rate has judged it: it has no interval. The achieved rates in `confirmations` have theirs.
    pub sustained_rate_per_s: Option<f64>,
    /// What an operation needed of each resource at the maximum, over the runs that its rate is from.
    pub demands: Vec<Demand>,
    /// What the devices with the data allow; absent where no disk was watched.
    pub disk: Option<DiskLimits>,
    /// The resource that saturates first, of those whose limit is known.
    pub bottleneck: Option<Demand>,
    /// The rate at which that resource has no time left. Without an interval the runs do not tell the error of the demand.
    pub bound_per_s: Option<Figure>,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveEnd {
    /// The interval of the boundary is as narrow as was asked for.
    Resolved,
    /// The objective is kept at the highest rate that may be tried.
    AlwaysKept,
    /// The objective is missed at the lowest rate that may be tried.
    NeverKept,
    /// The number of measurements was spent first; the interval of the boundary, if there is one, says what is known.
    OutOfMeasurements,
}

/// How often a rate was tried, and with what success.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRate {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Measurements that kept the objective.
    pub kept_count: u32,
    /// Measurements that missed it.
    pub missed_count: u32,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// The rate that half of the measurements keep, operations per second; where no boundary was found, the highest one
    /// that was kept; absent if none was.
    pub rate_per_s: Option<f64>,
    /// The boundary with its intervals; absent if the objective was never kept or never missed, and in documents of
    /// versions that did not estimate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<Boundary>,
    /// The highest rate that was tried below all rates at which a measurement missed the objective; absent if the
    /// lowest of all has a miss. This and `always_missed_from_per_s` say what the measurements made say, and have no
    /// stated confidence: one more could contradict them.
    pub always_kept_up_to_per_s: Option<f64>,
    /// The lowest rate that was tried above all rates at which a measurement kept it; absent if the highest of all was
    /// kept once.
    pub always_missed_from_per_s: Option<f64>,
    /// Why the search ended.
    pub end: ObjectiveEnd,
    /// All rates tried, from the lowest.
    pub tried: Vec<TriedRate>,
}

/// Where runs begin to miss an objective. The share of runs that keep it is a logistic curve over the logarithm of the
/// rate: `P(kept) = l + (1 − 2 l) / (1 + (rate / half)^(1 / spread))`, with 0.01 for `l`. All intervals hold
/// 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Boundary {
    /// The rate that half of the runs keep, operations per second.
    pub half_per_s: Estimate,
    /// The rate that 95 % of the runs keep, operations per second.
    pub most_per_s: Estimate,
    /// The rate that 5 % of the runs keep, operations per second.
    pub few_per_s: Estimate,
    /// Scale of the curve, as a share of the rate: how much chance there is in a run near the boundary. Where few runs
    /// contradict each other, its upper end is what they leave open.
    pub spread_ratio: Estimate,
    /// The lowest and the highest rate that was tried. The rates above are cut there: one that is as high as the highest
    /// is that or higher, and one that is as low as the lowest is that or lower. Absent in older records, where
    /// they are not cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_per_s: Option<[f64; 2]>,
}

/// Where a rate lies that was cut to those that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// At the lowest rate that was tried, or below.
    Below,
    /// At the highest rate that was tried, or above.
    Above,
}

impl Boundary {
    /// The same without rates below the lowest and above the highest that was tried.
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

    /// Whether a rate of the boundary, or an end of its interval, was cut.
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

/// What must hold in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// Name of a percentile of the response time, such as `p99` or `p99_9`, or `mean`.
    pub statistic: String,
    /// Largest value.
    pub limit_us: f64,
}

impl Objective {
    /// A limit of the percentile at which `percent` of the operations are as fast; above 0 and below 100.
    pub fn of_percentile(percent: f64, limit_us: f64) -> Objective {
        Objective {
            statistic: format!("p{percent}").replace('.', "_"),
            limit_us,
        }
    }

    /// Its name as it is written for people: `p99.9`, `mean`.
    pub fn name(&self) -> String {
        self.statistic.replace('_', ".")
    }

    /// The percentage that its name says; `None` of the mean.
    pub fn percent(&self) -> Option<f64> {
        self.name().strip_prefix('p')?.parse().ok()
    }

    /// Share of the operations that may take longer, by its percentage; `None` of the mean.
    pub fn longer_ratio(&self) -> Option<f64> {
        Some((100.0 - self.percent()?) / 100.0)
    }

    /// The value that the objective is about; `None` if the run has none.
    pub fn value_us(&self, figures: &Figures) -> Option<f64> {
        match self.statistic.as_str() {
            "mean" => Some(figures.response_mean_us.value),
            name => figures.percentile(name).map(|figure| figure.value),
        }
    }
}

/// All that must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objectives {
    /// Limits of response times; empty where only failures count.
    pub responses: Vec<Objective>,
    /// Largest share of operations that may fail.
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
    /// Share of the operations that failed.
    pub failed_ratio: f64,
    /// Share of the arrivals that were never sent.
    #[serde(default)]
    pub dropped_ratio: f64,
    /// Rate at which operations ended, if that is less than the offered rate: a queue grew.
    pub ended_rate_per_s: Option<f64>,
    /// Whether all objectives were kept, and the offered rate with them.
    pub kept: bool,
    /// The client was too busy, so that its response times are not the server's alone.
    pub generator_bound: bool,
    /// Share of the CPU time that the hypervisor took; absent where no machine told.
    pub stolen_ratio: Option<f64>,
}

impl Attempt {
    /// A run in which no operation succeeded: it has no response times and misses every objective.
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

    /// Whether a response time was beyond its limit.
    pub fn is_too_slow(&self, objectives: &Objectives) -> bool {
        let limits = objectives.responses.iter().map(|one| one.limit_us);
        let mut both = self.values_us.iter().zip(limits);
        both.any(|(value, limit)| *value > limit)
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloAnswer {
    /// What had to be kept.
    pub objectives: Objectives,
    /// Rate of a closed loop with the same clients, which the search began from, with the interval of that run.
    pub closed_rate_per_s: Figure,
    /// The boundary, and how often each rate was tried.
    pub search: ObjectiveResult,
    /// The measurements that count, in their order.
    pub attempts: Vec<Attempt>,
    /// Measurements that do not count: the hypervisor took so much of the CPU time that they were
    /// made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<Attempt>,
}
