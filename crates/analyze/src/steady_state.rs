//! Whether the rate stayed the same over the phase. Two tests on the rates of equal windows: a linear trend,
//! which finds slow drifts, and the difference of the two halves, which finds steps.
//!
//! Neighbouring windows resemble each other, so instead of `n` both tests use the effective sample size `n (1 −
//! r) / (1 + r)` with the lag-1 autocorrelation `r` of the residuals: F. W. Zwiers and H. von Storch, "Taking
//! Serial Correlation into Account in Tests of the Mean", *Journal of Climate* 8 (1995), and for the trend B.
//! D. Santer et al., "Statistical significance of trends and trend differences in layer-average atmospheric
//! temperature time series", *Journal of Geophysical Research* 105 (2000). Assumptions: windows of equal
//! length, and residuals that a first-order autoregression describes.

use crate::robust::mean;
use crate::student::two_sided_1_percent;

/// A change below 5 % over the whole phase is not called unsteady, however significant it is: it moves a mean
/// rate by at most half of that, and in long series any tiny change is significant.
pub const RELEVANT_CHANGE_RATIO: f64 = 0.05;

/// Fewest windows for a verdict. With fewer, an autocorrelation cannot be estimated.
pub const MIN_WINDOWS: usize = 8;

/// Verdict on a series of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyState {
    /// No relevant and significant change was found.
    Steady,
    /// The rate follows a line; the value is the change from start to end divided by the mean.
    Trend {
        /// Positive when the rate rises.
        change_ratio: f64,
    },
    /// The second half has another mean; the value is the difference divided by the mean.
    Step {
        /// Positive when the second half is faster.
        change_ratio: f64,
    },
    /// The level changed at any position, see [`crate::stationary_part`].
    Shift {
        /// Number of windows before the change.
        position: usize,
        /// The change divided by the mean; positive when the later part is faster.
        change_ratio: f64,
    },
    /// Too few windows, or no operations at all.
    Undecided,
}

/// Residuals below this share of the mean are rounding errors with a meaningless order.
const ROUNDING_RATIO: f64 = 1e-9;

/// From this autocorrelation on, a series with too few effective values for a test moves as one: its memory
/// fills the phase, as in a warm-up. It cannot be called steady, so a relevant change counts without the test.
/// Independent noise reached it in 3 of 20,000 series of 10 windows.
const MEMORY_FILLS_PHASE: f64 = 0.7;

/// Judges the rates of consecutive windows of equal length; changes from `relevant_ratio` of the mean on are
/// relevant. The significance is 1 % per test. Of two findings the larger change is reported.
pub fn assess_beyond(rates: &[f64], relevant_ratio: f64) -> SteadyState {
    let overall = mean(rates);
    let usable = rates.len() >= MIN_WINDOWS && overall.is_finite() && overall > 0.0;
    if !usable {
        return SteadyState::Undecided;
    }
    let relative: Vec<f64> = rates.iter().map(|rate| rate / overall).collect();
    match (trend(&relative, relevant_ratio), step(&relative, relevant_ratio)) {
        (None, None) => SteadyState::Steady,
        (Some(trend), step) if step.is_none_or(|step| trend.abs() >= step.abs()) => {
            SteadyState::Trend { change_ratio: trend }
        }
        (trend, step) => SteadyState::Step { change_ratio: step.or(trend).unwrap_or_default() },
    }
}

/// A change with the inputs of its test.
struct Estimate {
    change_ratio: f64,
    standard_error: f64,
    degrees_of_freedom: f64,
    autocorrelation: f64,
}

impl Estimate {
    /// The change, if it is relevant and significant.
    fn finding(&self, relevant_ratio: f64) -> Option<f64> {
        let limit = two_sided_1_percent(self.degrees_of_freedom);
        let is_significant = if limit.is_finite() {
            self.change_ratio.abs() > limit * self.standard_error
        } else {
            self.autocorrelation >= MEMORY_FILLS_PHASE
        };
        let is_relevant = self.change_ratio.abs() >= relevant_ratio;
        (is_relevant && is_significant).then_some(self.change_ratio)
    }
}

/// The change along the least-squares line through rates with a mean of 1.
fn trend(rates: &[f64], relevant_ratio: f64) -> Option<f64> {
    let n = rates.len() as f64;
    let center = (n - 1.0) / 2.0;
    let offsets = || (0..rates.len()).map(|i| i as f64 - center);
    let spread: f64 = offsets().map(|x| x * x).sum();
    let slope = offsets().zip(rates).map(|(x, y)| x * y).sum::<f64>() / spread;
    let residuals: Vec<f64> = offsets().zip(rates).map(|(x, y)| y - 1.0 - slope * x).collect();
    let autocorrelation = autocorrelation(&[&residuals]);
    let degrees_of_freedom = effective_size(n, autocorrelation) - 2.0;
    let variance = sum_of_squares(&residuals) / degrees_of_freedom;
    Estimate {
        change_ratio: slope * (n - 1.0),
        standard_error: (variance / spread).sqrt() * (n - 1.0),
        degrees_of_freedom,
        autocorrelation,
    }
    .finding(relevant_ratio)
}

/// The difference of the halves of rates with a mean of 1.
fn step(rates: &[f64], relevant_ratio: f64) -> Option<f64> {
    let (first, second) = rates.split_at(rates.len() / 2);
    let residuals = |half: &[f64]| -> Vec<f64> {
        let center = mean(half);
        half.iter().map(|y| y - center).collect()
    };
    let (first_residuals, second_residuals) = (residuals(first), residuals(second));
    let autocorrelation = autocorrelation(&[&first_residuals, &second_residuals]);
    let first_size = effective_size(first.len() as f64, autocorrelation);
    let second_size = effective_size(second.len() as f64, autocorrelation);
    let degrees_of_freedom = first_size + second_size - 2.0;
    let squares = sum_of_squares(&first_residuals) + sum_of_squares(&second_residuals);
    let variance = squares / degrees_of_freedom;
    Estimate {
        change_ratio: mean(second) - mean(first),
        standard_error: (variance * (1.0 / first_size + 1.0 / second_size)).sqrt(),
        degrees_of_freedom,
        autocorrelation,
    }
    .finding(relevant_ratio)
}

/// Lag-1 autocorrelation over pieces with a mean of 0 each; 0 if there is only rounding. Negative values count
/// as 0, so that a series never seems longer than it is.
fn autocorrelation(pieces: &[&[f64]]) -> f64 {
    let squares: f64 = pieces.iter().map(|piece| sum_of_squares(piece)).sum();
    let count: usize = pieces.iter().map(|piece| piece.len()).sum();
    if squares <= count as f64 * ROUNDING_RATIO * ROUNDING_RATIO {
        return 0.0;
    }
    let neighbours = |piece: &&[f64]| piece.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    let products: f64 = pieces.iter().map(neighbours).sum();
    (products / squares).clamp(0.0, 0.999)
}

fn effective_size(n: f64, autocorrelation: f64) -> f64 {
    n * (1.0 - autocorrelation) / (1.0 + autocorrelation)
}

fn sum_of_squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assess(rates: &[f64]) -> SteadyState {
        assess_beyond(rates, RELEVANT_CHANGE_RATIO)
    }

    /// Roughly normal noise with standard deviation 1, the same for the same seed.
    fn noise(seed: u64, n: usize) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect()
    }

    fn rates(seed: u64, n: usize, deviation: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let position = |i: usize| i as f64 / (n - 1) as f64;
        let noisy = |(i, e): (usize, f64)| 1000.0 * (shape(position(i)) + deviation * e);
        noise(seed, n).into_iter().enumerate().map(noisy).collect()
    }

    #[test]
    fn a_straight_line_is_judged_by_its_size() {
        let line = |change: f64| -> Vec<f64> {
            (0..30).map(|i| 1000.0 * (1.0 + change * (f64::from(i) / 29.0 - 0.5))).collect()
        };
        assert_eq!(assess(&line(0.049)), SteadyState::Steady);
        assert_eq!(assess(&line(0.0)), SteadyState::Steady);
        for change in [0.051, -0.2] {
            match assess(&line(change)) {
                SteadyState::Trend { change_ratio } => {
                    assert!((change_ratio - change).abs() < 1e-9, "{change_ratio}");
                }
                other => panic!("{change}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_step_in_the_middle_is_found_with_its_size() {
        let series = rates(1, 40, 0.01, |x| if x < 0.5 { 1.0 } else { 0.8 });
        match assess(&series) {
            SteadyState::Step { change_ratio } | SteadyState::Trend { change_ratio } => {
                assert!((-0.36..-0.2).contains(&change_ratio), "{change_ratio}");
            }
            other => panic!("{other:?}"),
        }
        let relative: Vec<f64> = series.iter().map(|rate| rate / mean(&series)).collect();
        let found = step(&relative, RELEVANT_CHANGE_RATIO).unwrap();
        assert!((found + 0.2 / 0.9).abs() < 0.01, "{found}");
    }

    #[test]
    fn drift_hidden_by_noise_is_not_claimed() {
        let series = rates(2, 20, 0.3, |x| 1.0 + 0.06 * (x - 0.5));
        assert_eq!(assess(&series), SteadyState::Steady);
    }

    #[test]
    fn short_and_empty_series_get_no_verdict() {
        assert_eq!(assess(&[]), SteadyState::Undecided);
        assert_eq!(assess(&[100.0; MIN_WINDOWS - 1]), SteadyState::Undecided);
        assert_eq!(assess(&[100.0; MIN_WINDOWS]), SteadyState::Steady);
        assert_eq!(assess(&[0.0; 20]), SteadyState::Undecided);
    }

    #[test]
    fn white_noise_is_rarely_called_unsteady() {
        let alarms = (1..=1000)
            .filter(|seed| assess(&rates(*seed, 30, 0.2, |_| 1.0)) != SteadyState::Steady)
            .count();
        // Two dependent tests at 1 % each.
        assert!((3..=40).contains(&alarms), "{alarms} of 1000");
    }

    #[test]
    fn short_white_noise_is_rarely_called_unsteady() {
        let alarms = (1..=1000)
            .filter(|seed| assess(&rates(*seed, 10, 0.2, |_| 1.0)) != SteadyState::Steady)
            .count();
        assert!(alarms <= 40, "{alarms} of 1000");
    }

    #[test]
    fn smooth_warm_up_is_found_although_it_is_not_a_line() {
        for deviation in [0.0, 0.01, 0.03] {
            let series = rates(3, 30, deviation, |x| 1.0 - 0.4 * (-5.0 * x).exp());
            assert!(
                matches!(assess(&series), SteadyState::Trend { change_ratio } | SteadyState::Step { change_ratio } if change_ratio > 0.1),
                "{deviation}: {:?}",
                assess(&series)
            );
        }
    }

    #[test]
    fn noise_with_memory_is_rarely_called_unsteady() {
        let series = |seed: u64| -> Vec<f64> {
            let mut level = 0.0;
            let step = |e: f64| {
                level = 0.6 * level + e;
                1000.0 * (1.0 + 0.05 * level)
            };
            noise(seed, 60).into_iter().map(step).collect()
        };
        let alarms =
            (1..=1000).filter(|seed| assess(&series(*seed)) != SteadyState::Steady).count();
        // If the windows counted as independent, the split alone would raise 96.
        assert!(alarms <= 60, "{alarms} of 1000");
    }

    #[test]
    fn the_effective_size_shrinks_with_memory() {
        assert_eq!(effective_size(30.0, 0.0), 30.0);
        assert_eq!(effective_size(30.0, 0.5), 10.0);
        assert_eq!(autocorrelation(&[&[1.0, -1.0, 1.0, -1.0]]), 0.0);
        assert_eq!(autocorrelation(&[&[1.0, 1.0, -1.0, -1.0]]), 0.25);
        assert_eq!(autocorrelation(&[&[0.0, 0.0]]), 0.0);
    }

    proptest! {
        #[test]
        fn any_numbers_give_a_verdict(series in prop::collection::vec(0.0..1e9f64, 0..60)) {
            match assess(&series) {
                SteadyState::Trend { change_ratio } | SteadyState::Step { change_ratio } => {
                    prop_assert!(change_ratio.abs() >= RELEVANT_CHANGE_RATIO);
                }
                SteadyState::Shift { .. } => prop_assert!(false, "not searched here"),
                SteadyState::Steady | SteadyState::Undecided => {}
            }
        }

        #[test]
        fn the_unit_of_the_rates_does_not_matter(seed in 1u64..500, scale in 1e-3..1e6f64) {
            let series = rates(seed, 30, 0.05, |x| 1.0 + 0.1 * x);
            let scaled: Vec<f64> = series.iter().map(|rate| rate * scale).collect();
            let same_kind = std::mem::discriminant(&assess(&series)) == std::mem::discriminant(&assess(&scaled));
            prop_assert!(same_kind);
        }
    }
}
