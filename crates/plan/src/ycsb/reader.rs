//! Reads values of properties, and collects problems and warnings.

use super::properties::{Entry, Properties};
use super::table::{self, PROPERTIES, Treatment};
use crate::nearest::nearest;
use crate::problem::Problem;
use std::fmt;
use std::str::FromStr;

/// Given properties, with the problems and warnings found so far.
pub(super) struct Reader<'a> {
    properties: &'a Properties,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    /// Checks the names first. An unknown name is a problem, or a warning if `lenient`.
    pub(super) fn new(properties: &'a Properties, lenient: bool) -> Self {
        let warnings = properties.warnings().to_vec();
        let mut reader = Reader { properties, problems: Vec::new(), warnings };
        for entry in properties.entries() {
            reader.check_name(entry, lenient);
        }
        reader
    }

    fn check_name(&mut self, entry: &Entry, lenient: bool) {
        let Some(property) = table::find(&entry.name) else {
            return self.report_unknown(entry, lenient);
        };
        let value = entry.value.trim();
        if property.default.is_some_and(|default| default.eq_ignore_ascii_case(value)) {
            return;
        }
        let name = &entry.name;
        match property.treatment {
            Treatment::NoEffect(reason) => {
                self.warnings.push(format!("`{name}` has no effect: {reason}"))
            }
            Treatment::Refused(reason) => {
                let problem =
                    entry.problem(format_args!("`{name}` is `{value}`, which is not supported"));
                self.problems.push(problem.with_hint(reason));
            }
            Treatment::Plan(_)
            | Treatment::Client(_)
            | Treatment::Checked(_)
            | Treatment::Target(_) => {}
        }
    }

    fn report_unknown(&mut self, entry: &Entry, lenient: bool) {
        let names = PROPERTIES.iter().map(|property| property.name.trim_end_matches(".*"));
        let near = nearest(&entry.name, names);
        let problem = entry.problem(format_args!("unknown property `{}`", entry.name));
        let problem = match near {
            Some(name) => problem.with_hint(format!("did you mean `{name}`?")),
            None => problem.with_hint("remove it, or ignore unknown names with `--lenient`"),
        };
        if lenient {
            let hint = near.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
            self.warnings.push(format!("{} is ignored{hint}", problem.message));
        } else {
            self.problems.push(problem);
        }
    }

    /// Whether the property was given.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Whether the property was given with a value other than YCSB's default.
    pub(super) fn is_changed(&self, name: &str) -> bool {
        let default = table::find(name).and_then(|property| property.default);
        self.text(name).is_some_and(|value| default != Some(value))
    }

    /// The value without white space around it, if it was given.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.entry(name).map(|entry| entry.value.trim())
    }

    /// The value exactly as given, for names and labels.
    pub(super) fn exact_text(&self, name: &str) -> Option<&'a str> {
        self.entry(name).map(|entry| entry.value.as_str())
    }

    /// A value parsed as its type.
    pub(super) fn parsed<T: FromStr>(&mut self, name: &str, expected: &str) -> Option<T> {
        let text = self.text(name)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.refuse(name, expected);
        }
        parsed
    }

    /// A whole number from 0.
    pub(super) fn count<T: FromStr>(&mut self, name: &str) -> Option<T> {
        self.parsed(name, "a whole number from 0 that is not too large")
    }

    /// A finite number from `smallest` to `largest`.
    pub(super) fn number(&mut self, name: &str, smallest: f64, largest: f64) -> Option<f64> {
        let text = self.text(name)?;
        // Numbers in Java may end with their type.
        let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
        let number =
            digits.parse::<f64>().ok().filter(|number| (smallest..=largest).contains(number));
        if number.is_none() {
            let expected = if largest == f64::MAX {
                format!("a number from {smallest}")
            } else {
                format!("a number from {smallest} to {largest}")
            };
            self.refuse(name, &expected);
        }
        number
    }

    /// `true` or `false` in any case. YCSB interprets every other text as `false`.
    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        let text = self.text(name)?;
        let value = text.to_ascii_lowercase().parse().ok();
        if value.is_none() {
            self.refuse(name, "`true` or `false`");
        }
        value
    }

    /// One of several words, in this exact spelling.
    pub(super) fn choice<T: Clone>(&mut self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        self.choose(name, choices, |word, text| word == text)
    }

    /// One of several words in upper or lower case.
    pub(super) fn choice_in_any_case<T: Clone>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        self.choose(name, choices, str::eq_ignore_ascii_case)
    }

    fn choose<T: Clone>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
        is_meant: impl Fn(&str, &str) -> bool,
    ) -> Option<T> {
        let text = self.text(name)?;
        let found =
            choices.iter().find(|(word, _)| is_meant(word, text)).map(|(_, value)| value.clone());
        if found.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            let mut expected = words.join(", ");
            if let Some(near) = nearest(text, choices.iter().map(|(word, _)| *word)) {
                expected.push_str(&format!("; did you mean `{near}`?"));
            }
            self.refuse(name, &expected);
        }
        found
    }

    /// Reports an unexpected value.
    pub(super) fn refuse(&mut self, name: &str, expected: &str) {
        let value = self.text(name).unwrap_or_default();
        self.problem(name, format_args!("`{name}` is `{value}`"), &format!("expected {expected}"));
    }

    /// Reports a problem with a property, at its place if it was given.
    pub(super) fn problem(&mut self, name: &str, message: impl fmt::Display, hint: &str) {
        self.problems.push(self.at(name, message).with_hint(hint));
    }

    /// A problem with a property, at its place if it was given.
    pub(super) fn at(&self, name: &str, message: impl fmt::Display) -> Problem {
        match self.entry(name) {
            Some(entry) => entry.problem(message),
            None => Problem::new(message.to_string()).about([name]),
        }
    }

    /// Warns if a property was changed but has no effect for this reason.
    pub(super) fn warn_unused(&mut self, name: &str, reason: &str) {
        if self.is_changed(name) {
            self.warnings.push(format!("`{name}` has no effect: {reason}"));
        }
    }

    /// A problem of a plan in terms of the properties, at the place of the first one that was
    /// given.
    pub(super) fn translate(&self, problem: &Problem) -> Problem {
        let mut message = problem.message.clone();
        let mut hint = problem.hint.clone();
        let mut place = None;
        for property in PROPERTIES {
            let Treatment::Plan(key) = property.treatment else {
                continue;
            };
            if problem.keys.iter().any(|named| named == key) {
                place = place.or_else(|| self.entry(property.name));
            }
            let (key, name) = (format!("`{key}`"), format!("`{}`", property.name));
            message = message.replace(&key, &name);
            hint = hint.map(|hint| hint.replace(&key, &name));
        }
        let mut translated = match place {
            Some(entry) => entry.problem(message),
            None => Problem::new(message),
        };
        translated.hint = hint;
        translated.about(&problem.keys)
    }

    fn entry(&self, name: &str) -> Option<&'a Entry> {
        self.properties.entry(name)
    }
}
