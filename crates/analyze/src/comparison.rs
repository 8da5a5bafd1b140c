//! Whether the candidate is faster than the baseline: pairs of runs, compared by the ratio of a rate, a mean or
//! a percentile.
//!
//! The two runs of a pair are consecutive, in the orders AB, BA, BA, AB, …, so that a drift of the machine
//! raises both sides equally often. The logarithms of the pairs' ratios are independent, whatever the memory
//! within the runs, and their mean gets Student's interval: D. R. Cox, *Planning of Experiments* (1958),
//! chapters 3 and 13. From [`MIN_PAIRS_FOR_ORDER`] pairs on, the effect of the order is estimated as well and
//! removed. As few pairs may agree by chance, the interval is never narrower than the uncertainty from the
//! variation within the runs ([`crate::uncertainty`]); for a single pair it equals that uncertainty, which does
//! not support certain conclusions.
//!
//! Existing runs do not form pairs: repetitions of each side vary independently, and the logarithms of the two
//! means get Welch's interval ([`compare_sides`]).
//!
//! The verdict follows from the interval alone, so its errors are the interval's: at 95 %, a difference is
//! claimed without one in at most 5 % of comparisons. The margin defines irrelevant differences: an interval
//! within it is a finding of equivalence (D. J. Schuirmann, "A Comparison of the Two One-Sided Tests Procedure
//! and the Power Approach", *Journal of Pharmacokinetics and Biopharmaceutics* 15 (1987)), and an interval that
//! is too wide for either means that there is not enough data.
//!
//! Adding pairs until the *verdict* pleases would raise the errors; [`is_precise`] stops by the width of the
//! interval, which does not favour a side.

use crate::estimate::{CONFIDENCE_RATIO, Spread};
use crate::least_squares::solve;
use crate::resampling::Resampling;
use crate::student::two_sided;
use crate::uncertainty::runs::Runs;
use crate::uncertainty::series::{MIN_BEYOND_PERCENTILE, Series};
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Basis, Comparison, ComparisonVerdict, Statistic};

/// Fewest pairs, in both orders, from which the effect of the order is removed. With fewer pairs, the lost
/// degree of freedom usually costs more than the effect.
pub const MIN_PAIRS_FOR_ORDER: usize = 6;

/// Largest predicted number of pairs.
pub const MOST_PAIRS_NEEDED: usize = 10_000;

/// Target half-width of the interval as a share of the margin. With a third, two equal sides are almost always
/// found to be equal, instead of in half of the comparisons.
pub(crate) const WISHED_SHARE_OF_MARGIN: f64 = 1.0 / 3.0;

/// A run of each side, consecutive in time.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The run of A.
    pub baseline: Series,
    /// The run of B.
    pub candidate: Series,
    /// Whether A ran before B.
    pub baseline_first: bool,
}

/// Whether the interval is narrow enough for the margin: the rule for when to stop adding pairs.
pub fn is_precise(comparison: &Comparison) -> bool {
    comparison.basis == Basis::BetweenRuns
        && half_width(&comparison.ratio) <= wished_half_width(comparison)
}

/// Expected number of pairs until [`is_precise`] is true, at least the present number if it already is; `None`
/// beyond [`MOST_PAIRS_NEEDED`].
pub fn pairs_expected(comparison: &Comparison) -> Option<usize> {
    if is_precise(comparison) {
        return Some(comparison.pairs);
    }
    pairs_needed(comparison.pair_deviation_ratio, wished_half_width(comparison))
}

fn wished_half_width(comparison: &Comparison) -> f64 {
    comparison.margin_ratio.ln_1p() * WISHED_SHARE_OF_MARGIN
}

/// The smallest number of pairs for an interval of the mean with this half-width, given the deviation of single
/// pairs (both as shares); `None` beyond [`MOST_PAIRS_NEEDED`].
pub fn pairs_needed(deviation_ratio: f64, half_width_ratio: f64) -> Option<usize> {
    let wide = |pairs: usize| {
        let n = pairs as f64;
        two_sided(CONFIDENCE_RATIO, n - 1.0) * deviation_ratio / n.sqrt() > half_width_ratio
    };
    // The half-width falls with the number of pairs.
    let (mut too_few, mut enough) = (1, MOST_PAIRS_NEEDED);
    if deviation_ratio.is_nan() || wide(enough) {
        return None;
    }
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if wide(middle) { too_few = middle } else { enough = middle }
    }
    Some(enough)
}

/// Compares pairs by a statistic; differences below `margin_ratio` are irrelevant. `None` without pairs, if a
/// run has no operations, if a single pair is too short, or if fewer than [`MIN_BEYOND_PERCENTILE`] operations
/// of a side lie beyond a percentile.
pub fn compare(
    pairs: &[Pair],
    statistic: Statistic,
    margin_ratio: f64,
    resampling: Resampling,
) -> Option<Comparison> {
    let beyond = |side: fn(&Pair) -> &Series| -> f64 {
        pairs.iter().map(|pair| side(pair).beyond(statistic)).sum()
    };
    let fewest = beyond(|pair| &pair.baseline).min(beyond(|pair| &pair.candidate));
    if fewest < MIN_BEYOND_PERCENTILE {
        return None;
    }
    let differences = differences(pairs, statistic)?;
    let within = within(pairs, statistic, resampling);
    let (mean, spread, basis) = if pairs.len() == 1 {
        let within = within?;
        let mean =
            MeanOfPairs { value: differences[0], order_effect: None, squares: 0.0, spread: within };
        (mean, within, Basis::WithinRun)
    } else {
        let first: Vec<bool> = pairs.iter().map(|pair| pair.baseline_first).collect();
        let mean = mean_of_pairs(&differences, &first)?;
        let spread = mean.spread.or_wider(within);
        (mean, spread, Basis::BetweenRuns)
    };
    let order_effect_ratio = mean.order_effect.map(f64::exp);
    let found = compared(statistic, mean.value.exp(), spread, pairs.len(), margin_ratio)?;
    Some(Comparison { basis, order_effect_ratio, ..found })
}

/// Compares the runs of A with the runs of B without pairs. A side with one run is assumed to vary like the
/// earlier runs of its plan, if there are any, else like the other side; if nothing is known about either, the
/// interval is based on their windows alone. `None` as for [`compare`].
pub fn compare_sides(
    sides: [&Runs; 2],
    earlier: [&Runs; 2],
    statistic: Statistic,
    margin_ratio: f64,
    resampling: Resampling,
) -> Option<Comparison> {
    if sides.iter().any(|side| side.beyond(statistic) < MIN_BEYOND_PERCENTILE) {
        return None;
    }
    let [a, b] = sides.map(|side| side.value(statistic));
    let within = sides.map(|side| side.within(statistic, resampling));
    let own = [0, 1].map(|side: usize| {
        let of = |runs: &Runs| runs.run_to_run(statistic, resampling);
        of(sides[side]).or_else(|| of(earlier[side]))
    });
    let counts = sides.map(Runs::len);
    let wider = |place: usize, between: Spread| {
        // A run with few independent windows bounds nothing; the variation between runs includes its own.
        let within = within[place].filter(|within| within.half_width().is_finite());
        between.of_mean(counts[place]).or_wider(within)
    };
    let (spread, basis) = match Spread::of_sides(own, wider) {
        Some(spread) => (spread, Basis::BetweenRuns),
        None => (Spread::of_sum(&[within[0]?, within[1]?], 1)?, Basis::WithinRun),
    };
    let fewest = counts[0].min(counts[1]);
    let found = compared(statistic, b? / a?, spread, fewest, margin_ratio)?;
    Some(Comparison { basis, ..found })
}

/// A comparison between runs with this ratio; `None` if its interval is infinite.
fn compared(
    statistic: Statistic,
    ratio: f64,
    spread: Spread,
    pairs: usize,
    margin_ratio: f64,
) -> Option<Comparison> {
    let ratio = spread.interval(ratio)?;
    Some(Comparison {
        statistic,
        ratio,
        verdict: verdict(statistic, &ratio, margin_ratio),
        margin_ratio,
        basis: Basis::BetweenRuns,
        pairs,
        pair_deviation_ratio: spread.deviation * (pairs as f64).sqrt(),
        degrees_of_freedom: Some(spread.degrees_of_freedom),
        order_effect_ratio: None,
    })
}

/// The verdict for an interval of the ratio.
fn verdict(statistic: Statistic, ratio: &Estimate, margin_ratio: f64) -> ComparisonVerdict {
    let margin = 1.0 + margin_ratio;
    if ratio.low >= 1.0 / margin && ratio.high <= margin {
        ComparisonVerdict::NoDifferenceLargerThan { margin_ratio }
    } else if ratio.contains(1.0) {
        ComparisonVerdict::NotEnoughData
    } else if (ratio.low > 1.0) == statistic.larger_is_better() {
        ComparisonVerdict::Faster
    } else {
        ComparisonVerdict::Slower
    }
}

/// Half-width of the interval on the scale of logarithms.
fn half_width(ratio: &Estimate) -> f64 {
    (ratio.high / ratio.low).ln() / 2.0
}

/// Logarithm of the ratio of each pair.
fn differences(pairs: &[Pair], statistic: Statistic) -> Option<Vec<f64>> {
    let difference = |pair: &Pair| {
        let ratio = pair.candidate.value(statistic)? / pair.baseline.value(statistic)?;
        Some(ratio.ln())
    };
    pairs.iter().map(difference).collect()
}

/// Spread of the mean logarithm from the variation within the runs alone; `None` if a run is too short.
fn within(pairs: &[Pair], statistic: Statistic, resampling: Resampling) -> Option<Spread> {
    let sides = pairs.iter().flat_map(|pair| [&pair.baseline, &pair.candidate]);
    let spreads: Option<Vec<_>> =
        sides.map(|side| side.log_spread(statistic, resampling)).collect();
    Spread::of_sum(&spreads?, pairs.len())
}

/// Mean of the logarithms of the pairs' ratios.
pub(crate) struct MeanOfPairs {
    pub(crate) value: f64,
    order_effect: Option<f64>,
    /// Squared deviations from the mean, without the effect of the order if it is removed.
    pub(crate) squares: f64,
    /// Spread of the mean, from the deviations.
    pub(crate) spread: Spread,
}

/// Degrees of freedom of the mean of this many pairs in both orders.
pub(crate) fn degrees_of_freedom(pairs: usize) -> f64 {
    let takes_order_out = pairs >= MIN_PAIRS_FOR_ORDER;
    pairs as f64 - if takes_order_out { 2.0 } else { 1.0 }
}

/// The mean of these logarithms, from pairs with A before B or after it.
pub(crate) fn mean_of_pairs(differences: &[f64], baseline_first: &[bool]) -> Option<MeanOfPairs> {
    let n = differences.len() as f64;
    let order = |first: &bool| if *first { 1.0 } else { -1.0 };
    let orders: Vec<f64> = baseline_first.iter().map(order).collect();
    let balance: f64 = orders.iter().sum();
    let both_orders = balance.abs() < n;
    let takes_order_out = differences.len() >= MIN_PAIRS_FOR_ORDER && both_orders;
    let sum: f64 = differences.iter().sum();
    // Least squares of `value + order · effect`; the inverse of the matrix has the errors.
    let (value, effect, inverse) = if takes_order_out {
        let weighted = orders.iter().zip(differences).map(|(o, d)| o * d).sum();
        let matrix = [[n, balance], [balance, n]];
        let [value, effect] = solve(matrix, [sum, weighted])?;
        (value, effect, solve(matrix, [1.0, 0.0])?[0])
    } else {
        (sum / n, 0.0, 1.0 / n)
    };
    let residuals = orders.iter().zip(differences).map(|(o, d)| d - value - o * effect);
    let degrees_of_freedom = n - if takes_order_out { 2.0 } else { 1.0 };
    let squares = residuals.map(|r| r * r).sum::<f64>();
    let variance = squares / degrees_of_freedom;
    Some(MeanOfPairs {
        value,
        order_effect: takes_order_out.then_some(effect),
        squares,
        spread: Spread { deviation: (variance * inverse).sqrt(), degrees_of_freedom },
    })
}

#[cfg(test)]
mod tests;
