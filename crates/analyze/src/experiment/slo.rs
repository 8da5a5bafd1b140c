//! What a search for an objective says: the highest offered rate that keeps it, with its interval.

use super::figures::Figures;
use crate::search::objective::ObjectiveResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What must hold in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// Name of a percentile of the response time, such as `p99`, or `mean`.
    pub statistic: String,
    /// Largest value.
    pub limit_us: f64,
}

impl Objective {
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
    /// Limits of response times; at least one.
    pub responses: Vec<Objective>,
    /// Largest share of operations that may fail.
    pub failed_ratio: f64,
}

impl Objectives {
    /// Whether a run keeps all of them. Arrivals that were never sent waited longer than any limit.
    pub fn are_kept(&self, figures: &Figures) -> bool {
        let response = |one: &Objective| {
            one.value_us(figures)
                .is_some_and(|value| value <= one.limit_us)
        };
        self.responses.iter().all(response)
            && figures.failed_ratio <= self.failed_ratio
            && figures.dropped_ratio == 0.0
    }
}

/// One measurement of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Offered rate.
    pub rate_per_s: f64,
    /// Values of the objectives, in their order.
    pub values_us: Vec<f64>,
    /// Share of the operations that failed.
    pub failed_ratio: f64,
    /// Share of the arrivals that were never sent.
    #[serde(default)]
    pub dropped_ratio: f64,
    /// Whether all objectives were kept.
    pub kept: bool,
    /// The client was too busy, so that its response times are not the server's alone.
    pub generator_bound: bool,
}

impl Attempt {
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
    /// Rate of a closed loop with the same clients, which the search began from.
    pub closed_rate_per_s: f64,
    /// The boundary.
    pub search: ObjectiveResult,
    /// All measurements in their order.
    pub attempts: Vec<Attempt>,
}

/// Judges one measurement.
pub fn attempt(rate_per_s: f64, objectives: &Objectives, figures: &Figures) -> Attempt {
    Attempt {
        rate_per_s,
        values_us: objectives
            .responses
            .iter()
            .filter_map(|one| one.value_us(figures))
            .collect(),
        failed_ratio: figures.failed_ratio,
        dropped_ratio: figures.dropped_ratio,
        kept: objectives.are_kept(figures),
        generator_bound: figures.is_generator_bound(),
    }
}
