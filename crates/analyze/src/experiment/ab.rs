//! What a comparison of two plans says.

use super::comparable::{Difference, differences};
use super::{Experiment, Side};
use crate::comparison::{Comparison, ComparisonVerdict, Pair, compare};
use crate::resampling::Resampling;
use crate::uncertainty::series::{IntervalSample, Series, Statistic};
use dyno_record::model::RunDocument;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is compared, the one that decides first: with a closed loop the rate, with an open loop, where the rate
/// is given, the 99th percentile.
fn statistics(is_open: bool) -> [Statistic; 5] {
    let percentile = |percent| Statistic::Percentile { percent };
    match is_open {
        false => [
            Statistic::Rate,
            Statistic::MeanTime,
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
        ],
        true => [
            percentile(99.0),
            Statistic::MeanTime,
            percentile(50.0),
            percentile(95.0),
            Statistic::Rate,
        ],
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbAnswer {
    /// Comparisons of B with A; the verdict of the first one is that of the whole.
    pub comparisons: Vec<Comparison>,
    /// Pairs that would be needed for the wished precision; absent beyond all reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_needed: Option<u32>,
    /// Why the pairs ended.
    pub end: AbEnd,
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

/// The pairs of an experiment whose two runs are done. Runs 2k and 2k + 1 are pair k.
pub fn pairs(experiment: &Experiment, windows: &BTreeMap<usize, Vec<IntervalSample>>) -> Vec<Pair> {
    let series = |place: usize| {
        let side = experiment.points.get(place)?.side?;
        Some((side, Series::new(windows.get(&place)?)))
    };
    (0..experiment.points.len() / 2)
        .filter_map(|pair| {
            let (first, one) = series(2 * pair)?;
            let (second, other) = series(2 * pair + 1)?;
            let (baseline, candidate) = match (first, second) {
                (Side::A, Side::B) => (one, other),
                (Side::B, Side::A) => (other, one),
                _ => return None,
            };
            Some(Pair {
                baseline,
                candidate,
                baseline_first: first == Side::A,
            })
        })
        .collect()
}

/// Two runs that exist already, with what differs between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// Run directory of A, the baseline.
    pub a: String,
    /// Run directory of B.
    pub b: String,
    /// What differs besides the result.
    pub differences: Vec<Difference>,
    /// Whether nothing forbids the comparison.
    pub comparable: bool,
    /// The comparison of their windows; absent where they are too short.
    pub answer: Option<AbAnswer>,
}

impl RunComparison {
    /// Compares two runs by the windows of their measure phases.
    pub fn new(
        names: [String; 2],
        documents: [&RunDocument; 2],
        windows: [&[IntervalSample]; 2],
        margin_ratio: f64,
        resampling: Resampling,
    ) -> RunComparison {
        let differences = differences(documents[0], documents[1]);
        let pair = Pair {
            baseline: Series::new(windows[0]),
            candidate: Series::new(windows[1]),
            baseline_first: documents[0].started_at <= documents[1].started_at,
        };
        let is_open = documents.iter().any(|document| {
            let kind = document.plan.pointer("/schedule/kind");
            kind.and_then(|kind| kind.as_str()) != Some("closed")
        });
        let [a, b] = names;
        RunComparison {
            a,
            b,
            comparable: differences.iter().all(|difference| !difference.forbids),
            differences,
            answer: analyze(&[pair], is_open, margin_ratio, resampling),
        }
    }

    /// Whether B is slower in the statistic that decides, by more than this share: its interval does not hold 1,
    /// and the ratio itself is beyond the share.
    pub fn is_slower_by(&self, share: f64) -> bool {
        let first = self
            .answer
            .as_ref()
            .and_then(|answer| answer.comparisons.first());
        first.is_some_and(|first| {
            let ratio = match first.statistic.larger_is_better() {
                true => 1.0 / first.ratio.value,
                false => first.ratio.value,
            };
            first.verdict == ComparisonVerdict::Slower && ratio > 1.0 + share
        })
    }
}

/// Compares the pairs; `None` if there is nothing to compare. `margin_ratio` is the difference that is of no
/// interest.
pub fn analyze(
    pairs: &[Pair],
    is_open: bool,
    margin_ratio: f64,
    resampling: Resampling,
) -> Option<AbAnswer> {
    let comparisons: Vec<Comparison> = statistics(is_open)
        .into_iter()
        .filter_map(|statistic| compare(pairs, statistic, margin_ratio, resampling))
        .collect();
    let first = comparisons.first()?;
    Some(AbAnswer {
        pairs_needed: first
            .pairs_needed()
            .and_then(|pairs| u32::try_from(pairs).ok()),
        end: match first.is_precise() {
            true => AbEnd::Precise,
            false => AbEnd::Spent,
        },
        comparisons,
    })
}

/// Side of run `number`: AB, BA, BA, AB and so on, so that drifts of first and second order meet both alike.
pub fn side(number: usize) -> Side {
    let pair_is_swapped = matches!((number / 2) % 4, 1 | 2);
    match number.is_multiple_of(2) ^ pair_is_swapped {
        true => Side::A,
        false => Side::B,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_come_first_equally_often() {
        let order: Vec<Side> = (0..8).map(side).collect();
        use Side::{A, B};
        assert_eq!(order, [A, B, B, A, B, A, A, B]);
    }
}
