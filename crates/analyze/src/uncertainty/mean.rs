//! Confidence interval of the mean of independent repetitions: Student's interval. Assumption: the mean is close to
//! normally distributed.

use crate::estimate::{Spread, estimate};
use crate::robust::mean;
use dyno_record::estimate::Estimate;

/// Mean of the results of independent repetitions; `None` for fewer than two.
pub fn of_repetitions(values: &[f64]) -> Option<Estimate> {
    let mean = mean(values);
    let half_width = Spread::of(values)?.of_mean(values.len()).half_width();
    half_width.is_finite().then(|| estimate(mean, mean - half_width, mean + half_width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_give_the_interval_of_the_textbook() {
        // s = 1, n = 3: 2 ± 4.303 / √3.
        let found = of_repetitions(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(found.value, 2.0);
        assert!((found.high - 4.484).abs() < 0.001, "{found:?}");
        assert_eq!(of_repetitions(&[1.0]), None);
        assert_eq!(of_repetitions(&[1.0, f64::NAN]), None);
    }
}
