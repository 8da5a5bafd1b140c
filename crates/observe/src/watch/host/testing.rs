//! What the tests of all parts use.

use super::Part;
use crate::health::Health;
use crate::watch::source::Told;

/// One reading of a part; a part that is missing as a whole is among the missing ones.
pub(super) fn read(part: &mut impl Part, at_s: f64) -> Told {
    let mut told = Told::default();
    if let Err(health) = part.read(at_s, &mut told) {
        told.miss(part.name(), health);
    }
    told
}

/// A value by its whole name.
pub(super) fn value(told: &Told, name: &str) -> Option<f64> {
    let mut found = told.values.iter().filter(|(id, _)| id.to_string() == name);
    let value = found.next().map(|(_, value)| *value);
    assert!(found.next().is_none(), "`{name}` is told twice");
    value
}

/// Names of all values that begin so, sorted.
pub(super) fn names(told: &Told, begin: &str) -> Vec<String> {
    let names = told.values.iter().map(|(id, _)| id.to_string());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
    names.sort_unstable();
    names
}

/// Why a part is missing.
pub(super) fn missing<'a>(told: &'a Told, part: &str) -> Option<&'a Health> {
    let found = told.missing.iter().find(|(name, _)| *name == part);
    found.map(|(_, health)| health)
}

/// Asserts values by their whole names, to within rounding.
pub(super) fn assert_values(told: &Told, expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        let found = value(told, name);
        let is_equal = found.is_some_and(|found| (found - expected).abs() < 1e-9);
        assert!(is_equal, "`{name}` is {found:?}, not {expected}");
    }
}
