//! Whether a series grows or falls steadily: the Mann-Kendall test with the slope of Theil and Sen.
//!
//! H. B. Mann, "Nonparametric Tests Against Trend", *Econometrica* 13 (1945); M. G. Kendall, *Rank
//! Correlation Methods* (1975). The variance is corrected for autocorrelation after K. H. Hamed and
//! A. R. Rao, "A modified Mann-Kendall trend test for autocorrelated data", *Journal of Hydrology* 204
//! (1998), because neighbouring medians of latency share their queues. The slope is the median of the
//! slopes of all pairs: P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau",
//! *JASA* 63 (1968).
//!
//! With enough points, a test finds any trend, however small. So a trend is reported only if it is also large:
//! the effect is Kendall's tau and the change over the run relative to the level.

use crate::robust::{median, normal_quantile, normal_tail, ordered_pairs, ranks};
use dyno_record::tail::{Direction, Trend};

/// Fewest points of a judged series. With fewer the normal approximation of the test is poor.
pub const LEAST_POINTS: usize = 10;
/// Largest two-sided probability by chance of a reported trend.
const LARGEST_P: f64 = 0.01;
/// Smallest Kendall's tau of a reported trend: three of four pairs go one way. Wandering series reach a third
/// by chance in one of twenty runs.
const LEAST_TAU: f64 = 0.5;
/// Smallest change over the series, as a share of its median, of a reported trend.
const LEAST_CHANGE_RATIO: f64 = 0.25;

/// Judges a series of `(x, y)` with growing x. `least_change` is the smallest change over the series
/// that matters to the caller, in units of y and not negative.
pub fn trend(points: &[(f64, f64)], least_change: f64) -> Trend {
    let level = median(points.iter().map(|point| point.1)).unwrap_or(0.0);
    let n = points.len();
    if n < LEAST_POINTS {
        return Trend {
            direction: Direction::TooFew,
            tau_ratio: 0.0,
            p_ratio: 1.0,
            slope: 0.0,
            change: 0.0,
            median: level,
        };
    }
    let slope = theil_sen(points);
    let change = slope * (points[n - 1].0 - points[0].0);
    let s = ordered_pairs(&points.iter().map(|point| point.1).collect::<Vec<_>>());
    let tau = s / (n * (n - 1) / 2) as f64;
    let variance = variance(points) * correction(points, slope).max(1.0);
    // One towards zero: S takes whole values, the normal distribution does not.
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
    let p = if variance > 0.0 { (2.0 * normal_tail(z)).min(1.0) } else { 1.0 };
    let large = change.abs() >= least_change.max(LEAST_CHANGE_RATIO * level.abs());
    let is_trend = p <= LARGEST_P && tau.abs() >= LEAST_TAU && large;
    let direction = if is_trend && change > 0.0 {
        Direction::Growing
    } else if is_trend && change < 0.0 {
        Direction::Falling
    } else {
        Direction::Flat
    };
    Trend { direction, tau_ratio: tau, p_ratio: p, slope, change, median: level }
}

fn pairs<'a>(points: &'a [(f64, f64)]) -> impl Iterator<Item = ((f64, f64), (f64, f64))> + 'a {
    points.iter().enumerate().flat_map(move |(place, &earlier)| {
        points[place + 1..].iter().map(move |&later| (earlier, later))
    })
}

fn theil_sen(points: &[(f64, f64)]) -> f64 {
    let slopes = pairs(points)
        .filter(|(earlier, later)| later.0 > earlier.0)
        .map(|(earlier, later)| (later.1 - earlier.1) / (later.0 - earlier.0));
    median(slopes).unwrap_or(0.0)
}

/// Variance of the score for independent values, corrected for ties.
fn variance(points: &[(f64, f64)]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut values: Vec<f64> = points.iter().map(|point| point.1).collect();
    values.sort_unstable_by(f64::total_cmp);
    let ties: f64 =
        values.chunk_by(|left, right| left == right).map(|tied| term(tied.len() as f64)).sum();
    (term(points.len() as f64) - ties) / 18.0
}

/// Factor of autocorrelation on the variance: from the ranks of the residuals, with significant lags only.
fn correction(points: &[(f64, f64)], slope: f64) -> f64 {
    let flat: Vec<f64> = points.iter().map(|point| point.1 - slope * point.0).collect();
    let ranks = ranks(&flat);
    let n = ranks.len() as f64;
    let mean = (n - 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if total == 0.0 {
        return 1.0;
    }
    let beyond_chance = normal_quantile(0.975) / n.sqrt();
    let mut sum = 0.0;
    // Longer lags have too few pairs to be distinguished from noise.
    for lag in 1..=ranks.len() / 4 {
        let together: f64 = ranks
            .iter()
            .zip(&ranks[lag..])
            .map(|(left, right)| (left - mean) * (right - mean))
            .sum();
        let correlation = together / total;
        if correlation.abs() > beyond_chance {
            let k = lag as f64;
            sum += (n - k) * (n - k - 1.0) * (n - k - 2.0) * correlation;
        }
    }
    1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    fn series(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        values.into_iter().enumerate().map(|(place, y)| (place as f64, y)).collect()
    }

    #[test]
    fn score_and_variance_match_a_worked_example() {
        // Ten values by hand: 45 pairs, 2 of which fall, none tied.
        let values = [1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 8.0, 7.0, 9.0, 10.0];
        let points = series(values);
        assert_eq!(ordered_pairs(&values), 41.0);
        assert_eq!(variance(&points), 125.0);
        let found = trend(&points, 0.0);
        assert!((found.tau_ratio - 41.0 / 45.0).abs() < 1e-12);
        assert_eq!(found.direction, Direction::Growing);
        assert_eq!(found.slope, 1.0);
    }

    #[test]
    fn ties_make_the_variance_smaller() {
        let points = series([1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((variance(&points) - (2250.0 - 66.0) / 18.0).abs() < 1e-9);
        let equal = trend(&series([5.0; 20]), 0.0);
        assert_eq!(equal.direction, Direction::Flat);
        assert_eq!(equal.p_ratio, 1.0);
    }

    #[test]
    fn outliers_do_not_move_the_slope() {
        let mut values: Vec<f64> = (0..40).map(|place| 100.0 + 3.0 * f64::from(place)).collect();
        values[5] = 1e9;
        values[30] = 0.0;
        let found = trend(&series(values), 0.0);
        assert!((found.slope - 3.0).abs() < 0.1, "{found:?}");
        assert_eq!(found.direction, Direction::Growing);
    }

    #[test]
    fn small_change_is_flat_however_certain_it_is() {
        let found = trend(&series((0..60).map(|k| 1000.0 + f64::from(k))), 0.0);
        assert!(found.p_ratio < 1e-6);
        assert_eq!(found.direction, Direction::Flat);
        let asked = trend(&series((0..60).map(f64::from)), 100.0);
        assert_eq!(asked.direction, Direction::Flat);
    }

    #[test]
    fn falling_is_reported_and_few_points_are_not_judged() {
        let down = trend(&series((0..20).map(|k| 100.0 - 4.0 * f64::from(k))), 0.0);
        assert_eq!(down.direction, Direction::Falling);
        let few = trend(&series((0..9).map(f64::from)), 0.0);
        assert_eq!(few.direction, Direction::TooFew);
        assert_eq!(trend(&[], 0.0).median, 0.0);
    }

    /// Each value is mostly the previous one: the effect of a queue on neighbouring medians.
    #[test]
    fn wandering_series_are_rarely_called_growing() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut called = 0;
        for _ in 0..400 {
            let mut drift = 0.0;
            let values = (0..50).map(|_| {
                drift = 0.6 * drift + rng.random::<f64>() - 0.5;
                1.0 + drift
            });
            let found = trend(&series(values), 0.0);
            called += usize::from(found.direction != Direction::Flat);
        }
        assert!(called <= 8, "{called} of 400");
    }
}
