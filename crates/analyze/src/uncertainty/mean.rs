//! Confidence interval of a mean: of a series with memory, and of independent repetitions.
//!
//! Both are Student's interval. For a series, the effective size replaces the number of values (A. D. Sokal,
//! "Monte Carlo Methods in Statistical Mechanics" (1989), section 3). Assumptions: the series is stationary,
//! and its mean is close to normally distributed.

use super::autocorrelation::{degrees_of_freedom, effective_size};
use crate::student::two_sided;
use dyno_record::estimate::Estimate;

/// Mean of the values of consecutive intervals of equal length. `None` if they are worth less than
/// three independent values, or are not all finite.
pub fn of_series(values: &[f64], confidence_ratio: f64) -> Option<Estimate> {
    let size = effective_size(values);
    with_size(values, size, degrees_of_freedom(size), confidence_ratio)
}

/// Mean of the results of independent repetitions; `None` for fewer than two.
pub fn of_repetitions(values: &[f64], confidence_ratio: f64) -> Option<Estimate> {
    let size = values.len() as f64;
    with_size(values, size, size - 1.0, confidence_ratio)
}

fn with_size(
    values: &[f64],
    size: f64,
    degrees_of_freedom: f64,
    confidence_ratio: f64,
) -> Option<Estimate> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    // Around its own mean a series varies too little, by the variation of the mean.
    let error = (variance / (size - 1.0)).sqrt();
    let half_width = two_sided(confidence_ratio, degrees_of_freedom) * error;
    half_width.is_finite().then_some(Estimate {
        value: mean,
        low: mean - half_width,
        high: mean + half_width,
        confidence_ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::autoregressive;

    #[test]
    fn repetitions_give_the_interval_of_the_textbook() {
        // s = 1, n = 3: 2 ± 4.303 / √3.
        let found = of_repetitions(&[1.0, 2.0, 3.0], 0.95).unwrap();
        assert_eq!(found.value, 2.0);
        assert!((found.high - 4.484).abs() < 0.001, "{found:?}");
        assert_eq!(of_repetitions(&[1.0], 0.95), None);
        assert_eq!(of_repetitions(&[1.0, f64::NAN], 0.95), None);
    }

    /// Number of 1000 series with an interval that contains the mean, and number with any interval.
    fn coverage(count: usize, correlation: f64) -> (usize, usize) {
        let estimates =
            (0..1000).filter_map(|seed| of_series(&autoregressive(seed, count, correlation), 0.95));
        estimates.fold((0, 0), |(hits, all), estimate| {
            (hits + usize::from(estimate.contains(0.0)), all + 1)
        })
    }

    #[test]
    fn intervals_of_series_hold_the_mean_at_their_stated_level() {
        for (count, correlation, least) in [
            (30, 0.0, 930),
            (60, 0.0, 930),
            (30, 0.5, 930),
            (60, 0.5, 920),
            (60, 0.7, 910),
            (300, 0.9, 920),
            // Six effective values: too few for reliable intervals, which are too narrow.
            (60, 0.9, 880),
        ] {
            let (hits, all) = coverage(count, correlation);
            assert!(hits * 1000 >= least * all, "{count} {correlation}: {hits} of {all}");
        }
    }

    #[test]
    fn memory_widens_the_interval() {
        let width = |correlation| {
            let estimate = of_series(&autoregressive(1, 1000, correlation), 0.95).unwrap();
            estimate.high - estimate.low
        };
        // √((1 + φ) / (1 − φ)) = 3
        let ratio = width(0.8) / width(0.0);
        assert!((2.0..4.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn series_with_too_few_effective_values_has_no_interval() {
        assert_eq!(of_series(&[1.0, 2.0], 0.95), None);
        let line: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(of_series(&line, 0.95), None);
        assert_eq!(of_series(&[7.0; 20], 0.95).unwrap().high, 7.0);
    }
}
