//! A recorded number with its uncertainty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Based on few values, an interval is vague if its ends differ by more than this factor.
const VAGUE_FACTOR: f64 = 4.0;

/// From here on, a wide interval reflects varying values; with fewer, Student's quantile widens it.
const ENOUGH_DEGREES_OF_FREEDOM: f64 = 5.0;

/// An interval is vague if its ends differ by more than this factor: not even the order of magnitude is known.
const EMPTY_FACTOR: f64 = 100.0;

/// A value with its confidence interval, in the unit of the field name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Share of such intervals that contain the true value, between 0 and 1.
    pub confidence_ratio: f64,
}

impl Estimate {
    /// Whether the interval contains `value`.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half of the interval's width, as a share of the value.
    pub fn half_width_ratio(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.value.abs()
    }

    /// Whether the interval is useless: it spans orders of magnitude, or is wide because it is based on few values.
    /// `degrees_of_freedom` is fractional for autocorrelated values.
    pub fn is_vague(&self, degrees_of_freedom: f64) -> bool {
        let are_few = degrees_of_freedom < ENOUGH_DEGREES_OF_FREEDOM;
        self.high > self.low * if are_few { VAGUE_FACTOR } else { EMPTY_FACTOR }
    }

    /// The same estimate in another unit; `factor` is positive.
    pub fn scaled(&self, factor: f64) -> Estimate {
        Estimate {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
            ..*self
        }
    }
}

/// A value with its relative uncertainty: the half-width of its confidence interval divided by the value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Value, in the unit that the context gives.
    pub value: f64,
    /// Half-width of the confidence interval as a share of the value; 0 for exact values.
    pub uncertainty_ratio: f64,
}

impl Quantity {
    /// A value that was set, not measured.
    pub fn exact(value: f64) -> Quantity {
        Quantity { value, uncertainty_ratio: 0.0 }
    }

    /// Half-width of the confidence interval, in the unit of the value.
    pub fn uncertainty(&self) -> f64 {
        self.value.abs() * self.uncertainty_ratio
    }
}

impl From<Estimate> for Quantity {
    fn from(estimate: Estimate) -> Quantity {
        Quantity { value: estimate.value, uncertainty_ratio: estimate.half_width_ratio() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_converts_to_quantity_with_half_width() {
        let estimate = Estimate { value: 200.0, low: 190.0, high: 210.0, confidence_ratio: 0.95 };
        assert!(estimate.contains(190.0) && !estimate.contains(189.9));
        let quantity = Quantity::from(estimate);
        assert_eq!(quantity.uncertainty_ratio, 0.05);
        assert_eq!(quantity.uncertainty(), 10.0);
        assert_eq!(estimate.scaled(0.5).high, 105.0);
    }

    #[test]
    fn few_values_or_wide_ends_make_an_interval_vague() {
        let wide = |high| Estimate { value: 200.0, low: 100.0, high, confidence_ratio: 0.95 };
        assert!(wide(401.0).is_vague(4.9) && !wide(400.0).is_vague(4.9));
        assert!(!wide(401.0).is_vague(5.0));
        assert!(!wide(10_000.0).is_vague(50.0) && wide(10_001.0).is_vague(50.0));
    }
}
