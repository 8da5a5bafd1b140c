//! Parsers for options that accept one of a list of names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};
use dyno_plan::names::Names;
use dyno_report::Format;
use std::ffi::OsStr;

/// Parser that accepts one of the listed names.
#[derive(Clone)]
pub(super) struct OneOf<T>(Vec<(T, &'static str, &'static str)>);

/// Accepts every name of the list.
pub(super) fn one_of<T: Clone>(names: Names<T>) -> OneOf<T> {
    OneOf(names.to_vec())
}

/// Accepts the names whose values fulfil `is_wanted`.
pub(super) fn some_of<T: Clone>(names: Names<T>, is_wanted: impl Fn(&T) -> bool) -> OneOf<T> {
    let wanted = names.iter().filter(|(value, ..)| is_wanted(value));
    OneOf(wanted.cloned().collect())
}

/// Accepts `human` and `json`, for commands without a report page.
pub(super) fn is_human_or_json(format: &Format) -> bool {
    matches!(format, Format::Human | Format::Json)
}

impl<T> OneOf<T> {
    fn possible(&self) -> Vec<PossibleValue> {
        self.0.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help)).collect()
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        let names = PossibleValuesParser::new(self.possible());
        let name = names.parse_ref(command, arg, text)?;
        let found = self.0.iter().find(|(_, known, _)| *known == name);
        Ok(found.expect("the parser knows the same names").0.clone())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.possible().into_iter()))
    }
}
