//! Collects problems, with helpers for common checks.

use crate::problem::Problem;
use std::fmt::Display;
use std::ops::RangeInclusive;

#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    pub(super) fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Problem::new(message()));
        }
    }

    pub(super) fn require_or(&mut self, holds: bool, hint: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Problem::new(message()).with_hint(hint));
        }
    }

    /// Checks that a value is between two inclusive bounds.
    pub(super) fn within<T>(&mut self, key: &str, value: T, bounds: RangeInclusive<T>)
    where
        T: Display + PartialOrd,
    {
        let (low, high) = (bounds.start(), bounds.end());
        self.require(bounds.contains(&value), || {
            format!("`{key}` is `{value}`, but must be {low} to {high}")
        });
    }

    pub(super) fn ratio(&mut self, key: &str, value: f64) {
        self.within(key, value, 0.0..=1.0);
    }
}
