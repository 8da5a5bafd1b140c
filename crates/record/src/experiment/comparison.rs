//! Comparisons of a candidate with a baseline, and the answer of an A/B experiment.

use super::costs::CostRatio;
use super::figures::Figure;
use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figure that is computed from recording intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Operations per second.
    Rate,
    /// Mean time, in the unit of the values.
    MeanTime,
    /// Time that a percentage of the operations does not exceed, in the unit of the values.
    Percentile {
        /// Above 0, up to 100.
        percent: f64,
    },
}

impl Statistic {
    /// Whether a larger value is better.
    pub fn larger_is_better(self) -> bool {
        self == Statistic::Rate
    }
}

/// Variation that an interval is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Variation within one run; differences between runs are not covered.
    WithinRun,
    /// Variation between repetitions, but at least the variation within them.
    BetweenRuns,
}

/// Conclusion from the interval of the ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The candidate is better: the interval excludes 1 and exceeds the margin.
    Faster,
    /// The candidate is worse: the interval excludes 1 and exceeds the margin.
    Slower,
    /// The whole interval is within the margin, even if it excludes 1.
    NoDifferenceLargerThan { margin_ratio: f64 },
    /// The interval contains 1 and exceeds the margin.
    NotEnoughData,
    /// Baseline and candidate did different work.
    NotComparable,
}

/// Baseline and candidate compared by one statistic.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    pub statistic: Statistic,
    /// Candidate divided by baseline: geometric mean over the pairs, with its interval.
    pub ratio: Estimate,
    pub verdict: ComparisonVerdict,
    /// Differences up to this share are irrelevant.
    pub margin_ratio: f64,
    /// Variation that the interval is based on. An interval and verdict from a single pair ignore differences between
    /// runs.
    pub basis: Basis,
    pub pairs: usize,
    /// Standard deviation of the ratio of a single pair, as a share.
    pub pair_deviation_ratio: f64,
    /// Degrees of freedom of the interval; absent in records of earlier versions.
    pub degrees_of_freedom: Option<f64>,
    /// Ratio of a pair's second run to its first, if the order effect was removed.
    pub order_effect_ratio: Option<f64>,
}

impl Comparison {
    /// Whether the interval is based on too few pairs to draw a conclusion.
    pub fn is_vague(&self) -> bool {
        self.verdict == ComparisonVerdict::NotEnoughData
            && self.ratio.is_vague(self.pairs as f64 - 1.0)
    }
}

/// Answer of an A/B experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbAnswer {
    /// Comparisons of B with A, of the figures with an interval.
    pub comparisons: Vec<Comparison>,
    /// Statistic that decides, even if it has no comparison because of too few data.
    pub deciding: Statistic,
    /// Pairs needed for the requested precision; absent if unreasonably many.
    pub pairs_needed: Option<u32>,
    pub end: AbEnd,
    /// Pairs that do not count, because the hypervisor took CPU time during one of their runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<DisturbedPair>,
    /// Service demands of B relative to A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<DemandRatio>,
    /// Costs of an operation of B relative to A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostRatio>,
    /// Explanation of the difference; absent if the difference is not certain.
    pub explanation: Option<Explanation>,
}

impl AbAnswer {
    /// The deciding comparison; `None` if there are not enough data for it.
    pub fn decision(&self) -> Option<&Comparison> {
        self.comparisons.iter().find(|one| one.statistic == self.deciding)
    }
}

/// A pair that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbedPair {
    /// Number, from 0; its runs are 2 × pair and 2 × pair + 1.
    pub pair: u32,
    /// Largest share of stolen CPU time during one of its runs.
    pub stolen_ratio: f64,
}

/// Why no more pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbEnd {
    /// The interval is as narrow as the margin requires.
    Precise,
    /// The maximum number of pairs or the time was reached first.
    Spent,
}

/// Explanation of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Explanation {
    /// The demand for this resource changed in the same direction and by enough.
    Demand { name: String },
    /// The demands are known, but none of them explains the difference.
    NoDemand,
    /// The server was not observed, so its demands are unknown.
    NotWatched,
}

/// Service demand of a resource under two plans that were run in pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemandRatio {
    pub name: String,
    /// Number of parallel servers, such as CPUs.
    pub servers: u32,
    /// Demand of the baseline in seconds: the geometric mean over the pairs.
    pub baseline_s: f64,
    /// Demand of the candidate in seconds: the geometric mean over the pairs.
    pub candidate_s: f64,
    /// Candidate divided by baseline, with the interval over the pairs; no interval if the error is unknown.
    pub ratio: Figure,
}

impl DemandRatio {
    /// Whether the interval excludes 1.
    pub fn is_certain(&self) -> bool {
        let ends = self.ratio.low.zip(self.ratio.high);
        ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    /// Change of the time between two operations if the resource is always busy.
    pub fn change_per_server_s(&self) -> f64 {
        (self.candidate_s - self.baseline_s).abs() / f64::from(self.servers.max(1))
    }
}
