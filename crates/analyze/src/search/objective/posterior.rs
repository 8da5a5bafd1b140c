//! Posterior of an objective's boundary: weights of all pairs of a boundary and a spread on a grid, by Bayes'
//! rule, and the most informative place for the next run.
//!
//! Boundaries lie in columns of equal width in the logarithm of the rate. The prior has two kinds of benches:
//! steady ones, for which a few consistent runs are believed, and noisy ones, for which a few contradictions
//! are not taken as typical ([`BENCHES`]). With a single kind in between, a search on a noisy bench ends too
//! early when the first runs agree by luck, or a search on a steady bench takes too long. The boundary is
//! expected where bracketing left it, with tails (Cauchy) that let runs move it anywhere.
//!
//! The next run is where the expected entropy of the boundary is smallest, averaged over the spread: the method
//! of Kontsevich and Tyler (Vision Research 39, 1999) with the spread averaged out (Prins, Journal of Vision
//! 13(7), 2013).

use super::boundary::{kept_ratio, most_spreads};
use crate::estimate::CONFIDENCE_RATIO;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::Boundary;
use std::f64::consts::LN_2;
use std::ops::Range;

/// Number of spreads on the grid.
const SPREADS: usize = 24;

/// The smallest and the largest spread.
const SPREAD_ENDS: (f64, f64) = (0.005, 0.4);

/// Kinds of benches: their expected share, the median of their spreads, and the standard deviation of the
/// spreads' logarithm. Chosen by simulation: a search on a bench without noise must stay short, and with
/// spreads of up to 15 % the interval must have its stated coverage.
const BENCHES: [(f64, f64, f64); 2] = [(0.38, 0.008, 0.4), (0.62, 0.14, 0.6)];

/// Columns end this far beyond the limits of the search, as a logarithm: a boundary may lie beyond the limits.
const BEYOND: f64 = LN_2;

/// Columns below this share of the heaviest column's weight are ignored in the choice of the next run.
const NEGLIGIBLE_RATIO: f64 = 1e-4;

/// Weights of the spreads at one boundary, or success shares for each of them.
type OfSpreads = [f64; SPREADS];

/// The posterior. Positions are logarithms of the rate, relative to the start rate.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    /// Width of a column.
    width: f64,
    /// Position of the middle of the first column.
    first: f64,
    /// For each column the weights of the spreads; in total 1.
    columns: Vec<OfSpreads>,
    /// The total weight of each column.
    totals: Vec<f64>,
    /// Success shares by the distance from the boundary in columns; distance 0 is in the middle.
    shares: Vec<OfSpreads>,
}

/// Expected position of the boundary before any run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The most likely position.
    pub(super) middle: f64,
    /// Half of the weight is within this distance of the middle.
    pub(super) distance: f64,
}

impl Posterior {
    /// The prior. `ends` are the positions of the lowest and the highest allowed rate.
    pub(super) fn new(ends: (f64, f64), width: f64, expected: Expected) -> Posterior {
        let first = ends.0 - BEYOND;
        let count = ((ends.1 + BEYOND - first) / width).ceil() as usize + 1;
        let spreads = spreads();
        let of_spreads = prior(&spreads);
        let column = |index: usize| {
            let distance = (first + index as f64 * width - expected.middle) / expected.distance;
            of_spreads.map(|weight| weight / (1.0 + distance * distance))
        };
        let share = |index: usize| {
            let distance = (index as f64 - count as f64) * width;
            spreads.map(|spread| kept_ratio(distance / spread))
        };
        let mut posterior = Posterior {
            width,
            first,
            columns: (0..count).map(column).collect(),
            totals: vec![0.0; count],
            shares: (0..=2 * count).map(share).collect(),
        };
        posterior.normalise();
        posterior
    }

    /// Adds the outcome of a run at a position between the ends.
    pub(super) fn observe(&mut self, place: f64, kept: bool) {
        let at = self.column(place);
        let count = self.columns.len();
        for (index, weights) in self.columns.iter_mut().enumerate() {
            let shares = &self.shares[at + count - index];
            for (weight, share) in weights.iter_mut().zip(shares) {
                *weight *= if kept { *share } else { 1.0 - share };
            }
        }
        self.normalise();
    }

    /// Weight of the boundaries above a position.
    pub(super) fn share_above(&self, place: f64) -> f64 {
        let above = self.totals.iter().enumerate();
        let above = above.filter(|(index, _)| self.place(*index) > place);
        above.map(|(_, weight)| weight).sum()
    }

    /// The position below which the boundaries have this weight.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let weights = self.totals.iter().copied();
        self.first + self.width * quantile(weights, share)
    }

    /// Half the width of the interval of the boundary, as a logarithm.
    pub(super) fn half_width(&self) -> f64 {
        let (low, high) = tails();
        (self.quantile(high) - self.quantile(low)) / 2.0
    }

    /// Index of the most informative position; the first one if equal.
    pub(super) fn most_telling(&self, places: impl Iterator<Item = f64>) -> Option<usize> {
        let active = self.active();
        let entropies = places.map(|place| self.expected_entropy(place, &active));
        let mut best: Option<(usize, f64)> = None;
        for (index, entropy) in entropies.enumerate() {
            // Ignore rounding differences, which vary between machines.
            if best.is_none_or(|(_, least)| entropy < least - 1e-9) {
                best = Some((index, entropy));
            }
        }
        best.map(|(index, _)| index)
    }

    /// The boundary with its intervals.
    pub(super) fn boundary(&self, start_rate_per_s: f64) -> Boundary {
        let rate = |place: f64| start_rate_per_s * place.exp();
        let distance = most_spreads();
        Boundary {
            half_per_s: estimate(|share| rate(self.quantile(share))),
            most_per_s: self.shifted(-distance, rate),
            few_per_s: self.shifted(distance, rate),
            measured_per_s: None,
            spread_ratio: estimate(|share| self.spread_quantile(share)),
        }
    }

    /// The position this many spreads above the boundary.
    fn shifted(&self, count: f64, rate: impl Fn(f64) -> f64) -> Estimate {
        let spreads = spreads();
        let active = self.active();
        let columns = active.zip(&self.columns[self.active()]);
        let mut places: Vec<(f64, f64)> = columns
            .flat_map(|(index, weights)| {
                let place = self.place(index);
                spreads
                    .iter()
                    .zip(weights)
                    .map(move |(spread, weight)| (place + count * spread, *weight))
            })
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let sum: f64 = places.iter().map(|(_, weight)| weight).sum();
        estimate(|share| {
            let mut below = 0.0;
            let reached = places.iter().find(|(_, weight)| {
                below += weight;
                below >= share * sum
            });
            reached.map_or(f64::NAN, |(place, _)| rate(*place))
        })
    }

    /// The spread below which the spreads have this weight.
    fn spread_quantile(&self, share: f64) -> f64 {
        let mut weights = [0.0; SPREADS];
        for column in &self.columns {
            for (sum, weight) in weights.iter_mut().zip(column) {
                *sum += weight;
            }
        }
        spread(quantile(weights.into_iter(), share).clamp(0.0, (SPREADS - 1) as f64))
    }

    /// The expected entropy of the boundary after a run at a position, up to a constant.
    fn expected_entropy(&self, place: f64, active: &Range<usize>) -> f64 {
        let at = self.column(place);
        let count = self.columns.len();
        let (mut kept, mut missed) = (Sum::default(), Sum::default());
        for index in active.clone() {
            let both = self.columns[index].iter().zip(&self.shares[at + count - index]);
            let keep: f64 = both.map(|(weight, share)| weight * share).sum();
            kept.add(keep);
            missed.add(self.totals[index] - keep);
        }
        kept.entropy() + missed.entropy()
    }

    /// The columns with a relevant weight.
    fn active(&self) -> Range<usize> {
        let weights = self.totals.iter();
        let least = weights.clone().copied().fold(0.0, f64::max) * NEGLIGIBLE_RATIO;
        let first = weights.clone().position(|weight| *weight > least);
        let last = weights.clone().rposition(|weight| *weight > least);
        first.unwrap_or(0)..last.map_or(0, |last| last + 1)
    }

    fn place(&self, index: usize) -> f64 {
        self.first + index as f64 * self.width
    }

    fn column(&self, place: f64) -> usize {
        let index = ((place - self.first) / self.width).round().max(0.0) as usize;
        index.min(self.columns.len() - 1)
    }

    fn normalise(&mut self) {
        let sum: f64 = self.columns.iter().flatten().sum();
        for (weights, total) in self.columns.iter_mut().zip(&mut self.totals) {
            weights.iter_mut().for_each(|weight| *weight /= sum);
            *total = weights.iter().sum();
        }
    }
}

/// Weights of an outcome at the boundaries.
#[derive(Default)]
struct Sum {
    weight: f64,
    weight_log: f64,
}

impl Sum {
    fn add(&mut self, weight: f64) {
        if weight > 0.0 {
            self.weight += weight;
            self.weight_log += weight * weight.ln();
        }
    }

    /// Entropy of the boundary after the outcome, times the outcome's probability.
    fn entropy(&self) -> f64 {
        if self.weight > 0.0 { self.weight * self.weight.ln() - self.weight_log } else { 0.0 }
    }
}

/// The spread at a grid position, which may be fractional.
fn spread(position: f64) -> f64 {
    let (low, high) = SPREAD_ENDS;
    low * ((high / low).ln() * position / (SPREADS - 1) as f64).exp()
}

fn spreads() -> OfSpreads {
    std::array::from_fn(|index| spread(index as f64))
}

/// Prior weights of the spreads.
fn prior(spreads: &OfSpreads) -> OfSpreads {
    spreads.map(|spread| {
        let density = BENCHES.iter().map(|(share, median, deviation)| {
            let deviations = (spread / median).ln() / deviation;
            share / deviation * (-0.5 * deviations * deviations).exp()
        });
        density.sum()
    })
}

/// The weights below the ends of an interval.
fn tails() -> (f64, f64) {
    let low = (1.0 - CONFIDENCE_RATIO) / 2.0;
    (low, 1.0 - low)
}

fn estimate(quantile: impl Fn(f64) -> f64) -> Estimate {
    let (low, high) = tails();
    crate::estimate::estimate(quantile(0.5), quantile(low), quantile(high))
}

/// The position below which the weights have this share, each spread evenly over the bin around its index.
fn quantile(weights: impl Iterator<Item = f64> + Clone, share: f64) -> f64 {
    let wanted = share * weights.clone().sum::<f64>();
    let (mut below, mut last) = (0.0, 0);
    for (index, weight) in weights.enumerate() {
        if weight > 0.0 && below + weight >= wanted {
            return index as f64 - 0.5 + (wanted - below) / weight;
        }
        below += weight;
        last = index;
    }
    last as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before_any_run() -> Posterior {
        let expected = Expected { middle: 0.0, distance: 0.3 };
        Posterior::new((-2.0, 2.0), 0.01, expected)
    }

    fn after(runs: &[(f64, bool)]) -> Posterior {
        let mut posterior = before_any_run();
        for (place, kept) in runs {
            posterior.observe(*place, *kept);
        }
        posterior
    }

    #[test]
    fn half_of_the_prior_is_within_the_expected_distance() {
        let posterior = before_any_run();
        assert!(posterior.quantile(0.5).abs() < 0.005);
        let within = posterior.share_above(-0.3) - posterior.share_above(0.3);
        // Slightly more, because the tails are cut off.
        assert!((0.5..0.57).contains(&within), "{within}");
    }

    #[test]
    fn runs_give_the_same_posterior_in_any_order() {
        let runs = [(0.1, false), (-0.2, true), (0.0, true), (-0.1, false)];
        let mut turned = runs;
        turned.reverse();
        let (one, other) = (after(&runs), after(&turned));
        for share in [0.025, 0.5, 0.975] {
            assert!((one.quantile(share) - other.quantile(share)).abs() < 1e-9);
        }
    }

    #[test]
    fn runs_on_both_sides_leave_the_boundary_between_them() {
        let sharp = after(&[(-0.1, true), (0.1, false)].repeat(5));
        assert!(sharp.quantile(0.5).abs() < 0.01);
        assert!((0.05..0.13).contains(&sharp.half_width()));
        // The same number of contradictory runs says less.
        let blurred = after(&[(-0.1, true), (0.1, false), (-0.1, false), (0.1, true)].repeat(3));
        assert!(blurred.half_width() > 2.0 * sharp.half_width());
        let spread = |known: &Posterior| known.boundary(1.0).spread_ratio.value;
        assert!(spread(&blurred) > 0.1 && spread(&sharp) < 0.05);
    }

    #[test]
    fn next_run_is_between_the_known_runs() {
        let known = after(&[(-0.3, true), (0.1, false)].repeat(4));
        let places = [-1.0, -0.3, -0.1, 0.1, 1.0];
        assert_eq!(known.most_telling(places.into_iter()), Some(2));
        assert_eq!(known.most_telling(std::iter::empty()), None);
    }

    #[test]
    fn rates_kept_by_most_and_by_few_runs_enclose_the_boundary() {
        let boundary = after(&[(-0.1, true), (0.1, false)].repeat(5)).boundary(1000.0);
        for (one, next) in
            [(boundary.most_per_s, boundary.half_per_s), (boundary.half_per_s, boundary.few_per_s)]
        {
            assert!(one.low < one.value && one.value < one.high, "{one:?}");
            assert!(one.value < next.value && one.low < next.low && one.high < next.high);
        }
    }
}
