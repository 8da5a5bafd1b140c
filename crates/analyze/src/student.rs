//! Quantiles of Student's t distribution, for intervals and tests on short series.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest degrees of freedom for a conclusion from a test of a series.
pub(crate) const MIN_DEGREES_OF_FREEDOM: f64 = 3.0;

/// The value that |t| stays below with this probability; infinite below one degree of freedom, where the
/// intervals would be useless.
///
/// Found by bisection on the distribution: `inverse_cdf` of `statrs` 0.19.1 does not return for some fractional
/// degrees of freedom.
pub(crate) fn two_sided(confidence_ratio: f64, degrees_of_freedom: f64) -> f64 {
    let outside = (1.0 - confidence_ratio) / 2.0;
    let usable = degrees_of_freedom >= 1.0 && outside > 0.0;
    let distribution = usable.then(|| StudentsT::new(0.0, 1.0, degrees_of_freedom));
    let Some(Ok(distribution)) = distribution else {
        return f64::INFINITY;
    };
    let (mut low, mut high) = (0.0, 2.0);
    while distribution.sf(high) > outside && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if distribution.sf(middle) > outside { low = middle } else { high = middle }
    }
    high
}

/// The value that |t| exceeds with a probability of 1 %; infinite below [`MIN_DEGREES_OF_FREEDOM`], where
/// nothing should be concluded.
pub(crate) fn two_sided_1_percent(degrees_of_freedom: f64) -> f64 {
    if degrees_of_freedom < MIN_DEGREES_OF_FREEDOM {
        f64::INFINITY
    } else {
        two_sided(0.99, degrees_of_freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_tables() {
        for (df, expected, tolerance) in [
            (3.0, 5.841, 0.0005),
            (5.0, 4.032, 0.0005),
            (10.0, 3.169, 0.0005),
            (30.0, 2.750, 0.0005),
            (120.0, 2.617, 0.0005),
            (1e9, 2.576, 0.0005),
        ] {
            let found = two_sided_1_percent(df);
            assert!((found / expected - 1.0).abs() < tolerance, "{df}: {found}");
        }
    }

    #[test]
    fn confidence_covers_both_sides() {
        for (confidence, df, expected) in
            [(0.95, 1.0, 12.706), (0.95, 4.0, 2.776), (0.9, 4.0, 2.132), (0.95, 7.5, 2.333)]
        {
            let found = two_sided(confidence, df);
            assert!((found - expected).abs() < 0.001, "{df}: {found}");
        }
        assert_eq!(two_sided(0.95, 0.9), f64::INFINITY);
        assert_eq!(two_sided(1.0, 5.0), f64::INFINITY);
        // All degrees of freedom terminate, and more of them give narrower intervals.
        let values: Vec<f64> = (10..4000).map(|i| two_sided(0.95, f64::from(i) / 10.0)).collect();
        assert!(values.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn too_few_degrees_of_freedom_are_never_exceeded() {
        assert_eq!(two_sided_1_percent(2.9), f64::INFINITY);
        assert_eq!(two_sided_1_percent(f64::NAN), f64::INFINITY);
    }
}
