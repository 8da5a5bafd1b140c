//! Comparisons of a candidate with a baseline, and the answer of one between two plans.

use super::costs::CostRatio;
use super::figures::Figure;
use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is computed from recording intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Operations per second.
    Rate,
    /// Mean of the times, in their unit.
    MeanTime,
    /// The time that a percentage of the operations does not exceed, in its unit.
    Percentile {
        /// The percentage, above 0 and up to 100.
        percent: f64,
    },
}

impl Statistic {
    /// Whether a larger value is the better one.
    pub fn larger_is_better(self) -> bool {
        self == Statistic::Rate
    }
}

/// What an interval rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Variation inside of a single run: says nothing about what differs from run to run.
    WithinRun,
    /// Variation between repetitions, with that inside of them as the least.
    BetweenRuns,
}

/// What the interval of the ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The candidate is better: the interval does not hold 1 and reaches beyond the margin.
    Faster,
    /// The candidate is worse, likewise.
    Slower,
    /// The whole interval is within the margin, on whichever side of 1.
    NoDifferenceLargerThan {
        /// The margin.
        margin_ratio: f64,
    },
    /// The interval holds 1 and reaches beyond the margin.
    NotEnoughData,
    /// The sides did other work, so that nothing follows.
    NotComparable,
}

/// Baseline and candidate compared by one statistic.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// What was compared.
    pub statistic: Statistic,
    /// Candidate divided by baseline: geometric mean over the pairs, with its interval.
    pub ratio: Estimate,
    /// What follows from it.
    pub verdict: ComparisonVerdict,
    /// Difference that is of no interest, as a share.
    pub margin_ratio: f64,
    /// What the interval rests on. From a single pair it knows nothing of what differs from run to
    /// run, and so does the verdict.
    pub basis: Basis,
    /// Number of pairs.
    pub pairs: usize,
    /// Deviation of the ratio of a single pair, as a share.
    pub pair_deviation_ratio: f64,
    /// Ratio of the second run of a pair to the first, where it was taken out.
    pub order_effect_ratio: Option<f64>,
}

impl Comparison {
    /// Whether so few pairs stand behind an interval that it says nothing, and nothing follows from it.
    pub fn is_vague(&self) -> bool {
        self.verdict == ComparisonVerdict::NotEnoughData
            && self.ratio.is_vague(self.pairs as f64 - 1.0)
    }
}

/// The answer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbAnswer {
    /// Comparisons of B with A, of the figures that have an interval.
    pub comparisons: Vec<Comparison>,
    /// The figure whose comparison decides, also if it has none: there are not enough data then.
    pub deciding: Statistic,
    /// Pairs that would be needed for the wished precision; absent beyond all reason.
    pub pairs_needed: Option<u32>,
    /// Why the pairs ended.
    pub end: AbEnd,
    /// Pairs that do not count, because the hypervisor took CPU time from the machine during one of their runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<DisturbedPair>,
    /// What an operation of B needed of each resource, relative to A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<DemandRatio>,
    /// What an operation of B cost, relative to A.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostRatio>,
    /// What explains the difference; absent where there is none for certain.
    pub explanation: Option<Explanation>,
}

impl AbAnswer {
    /// The comparison that decides; `None` if there are not enough data for it.
    pub fn decision(&self) -> Option<&Comparison> {
        let mut comparisons = self.comparisons.iter();
        comparisons.find(|one| one.statistic == self.deciding)
    }
}

/// A pair that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DisturbedPair {
    /// Its number, from 0: it has the runs twice that number and the next.
    pub pair: u32,
    /// Largest share of the CPU time that was taken during one of its runs.
    pub stolen_ratio: f64,
}

/// Why no more pairs were run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbEnd {
    /// The interval is as narrow as the margin calls for.
    Precise,
    /// The number of pairs, or the time, was spent first.
    Spent,
}

/// What explains a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Explanation {
    /// What an operation needs of this resource has changed, to the same side and by enough.
    Demand {
        /// Its name.
        name: String,
    },
    /// The demands are known and none of them has changed so.
    NoDemand,
    /// The server was not watched, so that its demands are not known.
    NotWatched,
}

/// What an operation needed of a resource, in two plans that were run in pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DemandRatio {
    /// Name of the resource.
    pub name: String,
    /// Its servers, such as CPUs.
    pub servers: u32,
    /// Demand of the baseline in seconds: the geometric mean over the pairs.
    pub baseline_s: f64,
    /// The same of the candidate.
    pub candidate_s: f64,
    /// Candidate divided by baseline, with the interval over the pairs; without one the error is not known.
    pub ratio: Figure,
}

impl DemandRatio {
    /// Whether the interval does not hold 1.
    pub fn is_certain(&self) -> bool {
        let ends = self.ratio.low.zip(self.ratio.high);
        ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    /// By how much the time between two operations changes when the resource is always busy.
    pub fn change_per_server_s(&self) -> f64 {
        (self.candidate_s - self.baseline_s).abs() / f64::from(self.servers.max(1))
    }
}
