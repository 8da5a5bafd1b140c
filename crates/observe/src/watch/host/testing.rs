//! Helpers for the tests of all parts.

use super::part::Part;
use crate::health::Health;
use crate::watch::source::Reported;

/// Name in tests of a part that fails as a whole.
pub(super) const WHOLE: &str = "whole";

/// One reading of a part; a part that fails as a whole is among the missing ones.
pub(super) fn read(part: &mut impl Part, at_s: f64) -> Reported {
    let mut reported = Reported::default();
    if let Err(health) = part.read(at_s, &mut reported) {
        reported.miss(WHOLE, health);
    }
    reported
}

/// A value by its full name.
pub(super) fn value(reported: &Reported, name: &str) -> Option<f64> {
    let mut found = reported.values.iter().filter(|(id, _)| id.to_string() == name);
    let value = found.next().map(|(_, value)| *value);
    assert!(found.next().is_none(), "`{name}` is reported twice");
    value
}

/// Names of all values with this prefix, sorted.
pub(super) fn names(reported: &Reported, begin: &str) -> Vec<String> {
    let names = reported.values.iter().map(|(id, _)| id.to_string());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
    names.sort_unstable();
    names
}

/// Why a part is missing.
pub(super) fn missing<'a>(reported: &'a Reported, part: &str) -> Option<&'a Health> {
    let found = reported.missing.iter().find(|(name, _)| *name == part);
    found.map(|(_, health)| health)
}

/// Asserts values by their full names, up to rounding.
pub(super) fn assert_values(reported: &Reported, expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        let found = value(reported, name);
        let is_equal = found.is_some_and(|found| (found - expected).abs() < 1e-9);
        assert!(is_equal, "`{name}` is {found:?}, not {expected}");
    }
}
