//! Patterns of less than a few seconds, such as a journal flush every 100 ms. One-second windows hide them, so
//! the first minute of the measured time is also recorded in hundredths of a second.

use super::{TimelinePattern, TimelineSeries};
use crate::periodicity::periodic_patterns;
use crate::robust::median;
use dyno_record::interval::FINE_NS;
use dyno_record::sub_second::SubSecondPoint;

/// Length of a point.
const POINT_S: f64 = FINE_NS as f64 / 1e9;
/// Numbers of points that may be combined: the result still shows a pattern of 100 ms.
const WIDTHS: [usize; 4] = [1, 2, 3, 5];
/// Mean number of operations that a part needs; otherwise its values are noise.
const FEWEST_ENDED: f64 = 5.0;
/// Longest period. One-second windows show longer ones, and over the whole time.
const LONGEST_S: f64 = 4.0;
/// Smallest share of the mean that a reported pattern moves.
const LEAST_HEIGHT_RATIO: f64 = 0.2;

/// The patterns of the rate and of the mean response time; empty if too few operations ended. They have no name:
/// other activities are recorded less often.
pub(super) fn patterns(points: &[SubSecondPoint]) -> Vec<TimelinePattern> {
    let ended: u64 = points.iter().map(|point| point.ended).sum();
    let mean_ended = ended as f64 / points.len().max(1) as f64;
    let is_wide_enough = |width: &&usize| mean_ended * **width as f64 >= FEWEST_ENDED;
    let Some(&width) = WIDTHS.iter().find(is_wide_enough) else {
        return Vec::new();
    };
    let window_s = POINT_S * width as f64;
    let parts: Vec<(f64, f64)> = points
        .chunks_exact(width)
        .map(|chunk| {
            let ended: u64 = chunk.iter().map(|point| point.ended).sum();
            let sum_us: f64 = chunk.iter().map(|point| point.response_sum_us).sum();
            (ended as f64, sum_us)
        })
        .collect();
    let rates: Vec<f64> = parts.iter().map(|part| part.0 / window_s).collect();
    let means = || parts.iter().filter(|part| part.0 > 0.0).map(|part| part.1 / part.0);
    // A part without ended operations says nothing about response times; the rate shows it.
    let usual_us = median(means()).unwrap_or_default();
    let mean_or_usual = |part: &(f64, f64)| {
        if part.0 > 0.0 { part.1 / part.0 } else { usual_us }
    };
    let means: Vec<f64> = parts.iter().map(mean_or_usual).collect();
    [(TimelineSeries::RatePerS, rates), (TimelineSeries::ResponseMeanUs, means)]
        .into_iter()
        .flat_map(|(series, values)| {
            let found = periodic_patterns(&values, window_s);
            found.into_iter().map(move |pattern| (series, pattern))
        })
        .filter(|(_, pattern)| {
            let is_high = |ratio: f64| ratio.abs() >= LEAST_HEIGHT_RATIO;
            pattern.period_s <= LONGEST_S && pattern.height_ratio.is_none_or(is_high)
        })
        .map(|(series, pattern)| TimelinePattern { series, pattern, name: None })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// A minute at this rate, with operations that take 200 to 400 µs, and longer in the last part of each
    /// period.
    fn minute(rate_per_s: f64, period_s: f64, slow_us: f64) -> Vec<SubSecondPoint> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        (0..6_000)
            .map(|index| {
                let start_s = 7.0 + f64::from(index) * POINT_S;
                let is_slow = period_s > 0.0 && (start_s % period_s) / period_s > 0.7;
                let spread: f64 = random.random_range(0.5..1.5);
                let ended = (rate_per_s * POINT_S * spread).round() as u64;
                let each_us =
                    random.random_range(200.0..400.0) + if is_slow { slow_us } else { 0.0 };
                SubSecondPoint {
                    start_s,
                    ended,
                    failed: 0,
                    response_sum_us: ended as f64 * each_us,
                }
            })
            .collect()
    }

    #[test]
    fn journal_flush_every_100_ms_is_found() {
        let found = patterns(&minute(2_000.0, 0.1, 600.0));
        let [pattern] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(pattern.series, TimelineSeries::ResponseMeanUs);
        assert!((pattern.pattern.period_s - 0.1).abs() < 0.001, "{pattern:?}");
    }

    #[test]
    fn steady_or_slow_minute_has_no_pattern() {
        assert_eq!(patterns(&minute(2_000.0, 0.0, 0.0)), []);
        assert_eq!(patterns(&minute(50.0, 0.1, 600.0)), []);
        assert_eq!(patterns(&[]), []);
    }

    #[test]
    fn few_operations_use_wider_parts() {
        let found = patterns(&minute(200.0, 0.3, 900.0));
        assert!(found.iter().any(|one| (one.pattern.period_s - 0.3).abs() < 0.01), "{found:?}");
    }
}
