//! Level changes in a series of results, such as the rates of nightly runs.
//!
//! E-divisive means with an exponent of 1: D. S. Matteson and N. A. James, "A Nonparametric Approach for
//! Multiple Change Point Analysis of Multivariate Data", *Journal of the American Statistical Association* 109
//! (2014). It makes no assumption about the distribution of the results. The series is split where the two
//! sides differ most in energy distance, and the split is kept if it is larger than in shuffled results: the
//! results of each segment are permuted, the largest split of any segment is noted, and the p value is the share
//! of permutations that reach the true one. So the first split that is not significant ends the search, and a
//! series without a change raises a false alarm with the probability of the significance, however many possible
//! splits there are. Used on benchmarks: D. Daly, W. Brown, H. Ingo, J. O'Leary and D. Bradford, "The Use of
//! Change Point Detection to Identify Software Performance Regressions in a Continuous Integration System",
//! *ICPE* (2020).
//!
//! Assumption: results are independent except for their level. Runs that share a machine state with their
//! neighbours raise more alarms.

use crate::resampling::Resampling;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 4;

/// Settings of the search for changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePointSettings {
    /// Probability of a false alarm in a series without a change.
    pub significance_ratio: f64,
    /// Fewest results between two changes, at least 2. With small numbers a change is found sooner.
    pub min_segment: usize,
    /// Permutations per split. The smallest possible p value is one over this plus one.
    pub permutations: usize,
    /// Seed of the permutations.
    pub seed: u64,
}

impl ChangePointSettings {
    /// Settings with 1 % of false alarms, segments of three and 499 permutations.
    pub fn seeded(seed: u64) -> ChangePointSettings {
        ChangePointSettings { significance_ratio: 0.01, min_segment: 3, permutations: 499, seed }
    }

    /// Fewest results in which a change can be found. The clearest possible change splits them in the middle,
    /// and two of all orders that distinguish the halves look the same: it and its mirror image. In shorter
    /// series that exceeds the significance, so that every change could be chance.
    pub fn fewest_results(&self) -> usize {
        let halvings = |n: usize| {
            let half = n / 2;
            (0..half)
                .fold(1.0, |product, place| product * (n - place) as f64 / (half - place) as f64)
        };
        let least = 2 * self.min_segment.max(2);
        (least..MOST_RESULTS_NEEDED)
            .find(|n| 2.0 / halvings(*n) <= self.significance_ratio)
            .unwrap_or(MOST_RESULTS_NEEDED)
    }
}

/// Number of results that is sufficient for any significance that permutations can show.
const MOST_RESULTS_NEEDED: usize = 64;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Position of the first result after the change, from 0.
    pub position: usize,
    /// Share of shuffled series with an equally large split.
    pub p_value_ratio: f64,
    /// Mean of the results since the previous change, in their unit.
    pub before_mean: f64,
    /// Mean of the results up to the next change, in their unit.
    pub after_mean: f64,
    /// `after_mean / before_mean − 1`; meaningless for results around 0.
    pub change_ratio: f64,
}

/// Finds the changes in a series, from the first to the last. The caller must remove results that are not
/// finite; a series with one has no changes.
pub fn change_points(series: &[f64], settings: ChangePointSettings) -> Vec<ChangePoint> {
    if !series.iter().all(|value| value.is_finite()) {
        return Vec::new();
    }
    let mut found: Vec<(usize, f64)> = Vec::new();
    loop {
        let segments = segments(series.len(), &found);
        let Some(split) = largest_split(series, &segments, settings.min_segment) else {
            break;
        };
        let round = found.len() as u64;
        let Some(p_value) = significant_p_value(series, &segments, split.size, settings, round)
        else {
            break;
        };
        found.push((split.position, p_value));
        found.sort_by_key(|(position, _)| *position);
    }
    described(series, &found)
}

/// The parts between the changes.
fn segments(length: usize, found: &[(usize, f64)]) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(found.iter().map(|(position, _)| *position));
    let ends = found.iter().map(|(position, _)| *position).chain(std::iter::once(length));
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

fn described(series: &[f64], found: &[(usize, f64)]) -> Vec<ChangePoint> {
    let mean = |segment: Range<usize>| {
        let length = segment.len() as f64;
        series[segment].iter().sum::<f64>() / length
    };
    let segments = segments(series.len(), found);
    let means: Vec<f64> = segments.into_iter().map(mean).collect();
    let point = |((position, p_value_ratio), means): (&(usize, f64), &[f64])| ChangePoint {
        position: *position,
        p_value_ratio: *p_value_ratio,
        before_mean: means[0],
        after_mean: means[1],
        change_ratio: means[1] / means[0] - 1.0,
    };
    found.iter().zip(means.windows(2)).map(point).collect()
}

/// A position of a split.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    position: usize,
    /// Scaled energy distance of the two sides.
    size: f64,
}

fn largest_split(series: &[f64], segments: &[Range<usize>], min_segment: usize) -> Option<Split> {
    let splits = segments.iter().filter_map(|segment| {
        let split = split(&series[segment.clone()], min_segment.max(2))?;
        Some(Split { position: split.position + segment.start, ..split })
    });
    splits.max_by(|a, b| a.size.total_cmp(&b.size))
}

/// The largest split of one segment: `n m / (n + m)` times the energy distance of its two sides,
/// `2 E|X − Y| − E|X − X′| − E|Y − Y′|`. `None` if the segment is too short.
fn split(segment: &[f64], min_segment: usize) -> Option<Split> {
    let n = segment.len();
    // Sums of distances within the left side, between the sides, and within the right side, updated while
    // values move from right to left.
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (1..n).map(|i| distance_to(segment[i], &segment[..i])).sum();
    let mut best: Option<Split> = None;
    for position in 1..n {
        let moved = segment[position - 1];
        let to_left = distance_to(moved, &segment[..position - 1]);
        let to_right = distance_to(moved, &segment[position..]);
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if position < min_segment || n - position < min_segment {
            continue;
        }
        let (a, b) = (position as f64, (n - position) as f64);
        let energy =
            2.0 * between / (a * b) - 2.0 * left / (a * (a - 1.0)) - 2.0 * right / (b * (b - 1.0));
        let size = energy * a * b / (a + b);
        if best.is_none_or(|best| size > best.size) {
            best = Some(Split { position, size });
        }
    }
    best
}

fn distance_to(value: f64, others: &[f64]) -> f64 {
    others.iter().map(|other| (value - other).abs()).sum()
}

/// Share of permutations within the segments with an equally large split, including the series itself; `None`
/// if it exceeds the significance, which often shows after a few.
fn significant_p_value(
    series: &[f64],
    segments: &[Range<usize>],
    size: f64,
    settings: ChangePointSettings,
    round: u64,
) -> Option<f64> {
    let mut rng = Resampling::seeded(settings.seed).rng(STREAM.wrapping_add(round << 8));
    let mut shuffled = series.to_vec();
    // Sums in another order may differ in their last digits.
    let limit = size * (1.0 - 1e-9);
    let mut reached = 1;
    for _ in 0..settings.permutations {
        for segment in segments {
            shuffled[segment.clone()].shuffle(&mut rng);
        }
        let largest = largest_split(&shuffled, segments, settings.min_segment);
        reached += usize::from(largest.is_some_and(|split| split.size >= limit));
        if p_value(reached, settings) > settings.significance_ratio {
            return None;
        }
    }
    let p_value = p_value(reached, settings);
    (p_value <= settings.significance_ratio).then_some(p_value)
}

fn p_value(reached: usize, settings: ChangePointSettings) -> f64 {
    reached as f64 / (settings.permutations + 1) as f64
}

#[cfg(test)]
mod tests;
