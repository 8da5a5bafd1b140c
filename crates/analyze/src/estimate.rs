//! Uncertainties of numbers, and their combination.

use crate::student::two_sided;
use crate::uncertainty::series::standard_deviation;
use dyno_record::estimate::Estimate;

/// Confidence level of all intervals.
pub const CONFIDENCE_RATIO: f64 = 0.95;

/// Combines the uncertainties of independent errors.
pub(crate) fn combined(uncertainties: &[f64]) -> f64 {
    uncertainties.iter().map(|u| u * u).sum::<f64>().sqrt()
}

/// A value with the ends of its interval.
pub(crate) fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, low, high, confidence_ratio: CONFIDENCE_RATIO }
}

/// Relative variation of a positive number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// Standard deviation of its logarithm, or relative standard deviation of the number.
    pub(crate) deviation: f64,
    /// Degrees of freedom of the deviation; fractional for autocorrelated values.
    pub(crate) degrees_of_freedom: f64,
}

impl Spread {
    /// Variation of numbers around their mean; `None` for fewer than two.
    pub(crate) fn of(values: &[f64]) -> Option<Spread> {
        (values.len() > 1).then(|| Spread {
            deviation: standard_deviation(values),
            degrees_of_freedom: values.len() as f64 - 1.0,
        })
    }

    /// Pools numbers with different means and the same relative deviation: averages the variances, weighted by
    /// degrees of freedom. `None` without any.
    pub(crate) fn pooled(all: &[Spread]) -> Option<Spread> {
        let degrees_of_freedom: f64 = all.iter().map(|one| one.degrees_of_freedom).sum();
        let sum = all.iter().map(|one| one.degrees_of_freedom * one.deviation.powi(2));
        let variance = sum.sum::<f64>() / degrees_of_freedom;
        variance.is_finite().then_some(Spread { deviation: variance.sqrt(), degrees_of_freedom })
    }

    /// Spread of the mean of `count` numbers that all these independent ones add up to; `None` without any.
    pub(crate) fn of_sum(all: &[Spread], count: usize) -> Option<Spread> {
        let deviations: Vec<f64> = all.iter().map(|one| one.deviation).collect();
        (!all.is_empty()).then(|| Spread {
            deviation: combined(&deviations) / count as f64,
            degrees_of_freedom: all.iter().map(|one| one.degrees_of_freedom).sum(),
        })
    }

    /// Spread of the ratio of two independent numbers with separate variances of the logarithm: B. L. Welch,
    /// "The Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
    /// *Biometrika* 34 (1947).
    pub(crate) fn of_ratio(one: Spread, other: Spread) -> Spread {
        let all = [one, other];
        let variance: f64 = all.iter().map(|it| it.deviation.powi(2)).sum();
        let shares = all.map(|it| it.deviation.powi(4) / it.degrees_of_freedom);
        let degrees_of_freedom = if variance > 0.0 {
            variance.powi(2) / shares.iter().sum::<f64>()
        } else {
            one.degrees_of_freedom.min(other.degrees_of_freedom)
        };
        Spread { deviation: variance.sqrt(), degrees_of_freedom }
    }

    /// Spread of the ratio of two sides' means without pairs; `of_mean` gives the spread of a side's mean. A
    /// side with one number is assumed to vary like the other. `None` with one number on each.
    pub(crate) fn of_sides(
        own: [Option<Spread>; 2],
        of_mean: impl Fn(usize, Spread) -> Spread,
    ) -> Option<Spread> {
        let a = of_mean(0, own[0].or(own[1])?);
        let b = of_mean(1, own[1].or(own[0])?);
        let mut spread = Spread::of_ratio(a, b);
        if own.iter().any(Option::is_none) {
            // Both are based on the numbers of one side.
            spread.degrees_of_freedom = a.degrees_of_freedom.min(b.degrees_of_freedom);
        }
        Some(spread)
    }

    /// Spread of the mean of `count` such independent numbers.
    pub(crate) fn of_mean(self, count: usize) -> Spread {
        Spread { deviation: self.deviation / (count as f64).sqrt(), ..self }
    }

    /// Half the width of Student's interval around the number; infinite below one degree of freedom.
    pub(crate) fn half_width(&self) -> f64 {
        two_sided(CONFIDENCE_RATIO, self.degrees_of_freedom) * self.deviation
    }

    /// The one of two spreads whose interval is wider; this one if the other is unknown.
    pub(crate) fn or_wider(self, other: Option<Spread>) -> Spread {
        other.filter(|other| other.half_width() > self.half_width()).unwrap_or(self)
    }

    /// The interval around a value on the scale of logarithms; `None` if it is infinite.
    pub(crate) fn interval(&self, value: f64) -> Option<Estimate> {
        let factor = self.half_width().exp();
        factor.is_finite().then(|| estimate(value, value / factor, value * factor))
    }

    /// The interval around a value; `None` also if it is meaninglessly wide.
    pub(crate) fn around(&self, value: f64) -> Option<Estimate> {
        let interval = self.interval(value)?;
        (!interval.is_vague(self.degrees_of_freedom)).then_some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(deviation: f64, degrees_of_freedom: f64) -> Spread {
        Spread { deviation, degrees_of_freedom }
    }

    #[test]
    fn wide_interval_from_few_values_is_none() {
        let interval = |deviation, degrees| spread(deviation, degrees).around(100.0);
        // 12.7 · 0.05: 53 to 189.
        let narrow = interval(0.05, 1.0).unwrap();
        assert!((narrow.high - 188.8).abs() < 0.5, "{narrow:?}");
        assert_eq!(interval(0.06, 1.0), None);
        assert_eq!(interval(0.5, 3.0), None);
        // A large variation that was observed often is reported.
        assert!(interval(0.5, 20.0).is_some());
        assert_eq!(interval(0.5, 0.5), None);
    }

    #[test]
    fn variances_are_pooled_by_their_degrees_of_freedom() {
        let all = [spread(3.0, 1.0), spread(1.0, 3.0)];
        let expected = spread(3f64.sqrt(), 4.0);
        assert_eq!(Spread::pooled(&all), Some(expected));
        assert_eq!(Spread::pooled(&[]), None);
        assert_eq!(spread(3.0, 8.0).of_mean(9), spread(1.0, 8.0));
    }

    #[test]
    fn ratio_uses_degrees_of_freedom_of_the_larger_variation() {
        let alike = Spread::of_ratio(spread(3.0, 4.0), spread(3.0, 4.0));
        assert!((alike.deviation - 18f64.sqrt()).abs() < 1e-12);
        assert!((alike.degrees_of_freedom - 8.0).abs() < 1e-9);
        // The second one is exact, whatever its degrees of freedom.
        assert_eq!(Spread::of_ratio(spread(3.0, 4.0), spread(0.0, 1.0)), spread(3.0, 4.0));
        assert_eq!(Spread::of_ratio(spread(0.0, 4.0), spread(0.0, 2.0)), spread(0.0, 2.0));
    }

    #[test]
    fn independent_errors_add_up_by_their_squares() {
        assert_eq!(combined(&[3.0, 4.0]), 5.0);
    }
}
