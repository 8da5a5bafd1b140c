//! Parsers for options that accept one of a list of names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use dyno_plan::names::Names;

/// Accepts every name of the list.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(
    names: Names<T>,
) -> impl TypedValueParser<Value = T> {
    some_of(names, |_| true)
}

/// Accepts the names whose values fulfil `is_wanted`.
pub(super) fn some_of<T: Clone + Send + Sync + 'static>(
    names: Names<T>,
    is_wanted: impl Fn(&T) -> bool,
) -> impl TypedValueParser<Value = T> {
    let wanted = names.iter().filter(|(value, ..)| is_wanted(value));
    let possible = wanted.map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(possible).map(move |name| {
        let found = names.iter().find(|(_, known, _)| *known == name);
        found.expect("the parser knows the same names").0.clone()
    })
}
