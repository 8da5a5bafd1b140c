//! Reads the given values in the form of each parameter.

use super::table::{Form, Treatment, VARIABLES, Variable};
use crate::nearest::nearest;
use crate::placement::is_list;
use crate::problem::Problem;
use std::collections::BTreeMap;

/// The given values, with the problems and warnings found so far.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Valid values in the spelling of the rest of the program.
    values: BTreeMap<&'static str, String>,
    /// Names with an invalid value.
    wrong: Vec<&'static str>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl Given {
    /// Reads all parameters. An empty value counts as absent, as in the original.
    pub(super) fn read(variables: &BTreeMap<String, String>) -> Self {
        let mut given = Given::default();
        for variable in VARIABLES {
            let text = variables.get(variable.name).map(|text| text.trim());
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                given.take(variable, text);
            }
        }
        given
    }

    fn take(&mut self, variable: &'static Variable, text: &str) {
        let name = variable.name;
        let value = match in_form(variable.form, text) {
            Ok(value) => value,
            Err(problem) => {
                let message = format!("`{name}` is `{text}`, but must be {}", problem.message);
                self.problems.push(Problem { message, ..problem });
                self.wrong.push(name);
                return;
            }
        };
        let is_default = variable.default == Some(value.as_str());
        match variable.treatment {
            Treatment::NoEffect(reason) if !is_default => {
                self.warnings.push(format!("`{name}` has no effect: {reason}"))
            }
            Treatment::Refused(reason, instead) if !is_default => {
                let problem = Problem::new(format!(
                    "`{name}` is `{value}`, which is not supported: {reason}"
                ));
                self.problems.push(problem.with_hint(instead));
            }
            _ => {}
        }
        self.values.insert(name, value);
    }

    /// The value, if it is given and valid.
    pub(super) fn get(&self, name: &'static str) -> Option<&str> {
        debug_assert!(super::table::find(name).is_some(), "{name} is not listed");
        self.values.get(name).map(String::as_str)
    }

    /// Whether a value is given, valid or not.
    pub(super) fn is_given(&self, name: &'static str) -> bool {
        self.get(name).is_some() || self.wrong.contains(&name)
    }

    /// Whether the value is `true`.
    pub(super) fn is_true(&self, name: &'static str) -> bool {
        self.get(name) == Some("true")
    }

    /// The value as a number; `None` if it is not a whole number.
    pub(super) fn number(&self, name: &'static str) -> Option<u32> {
        self.get(name)?.parse().ok()
    }

    /// Reports a value as unsupported.
    pub(super) fn refuse(&mut self, name: &'static str, reason: &str, hint: &str) {
        let problem = self.problem(name, reason, hint);
        self.problems.push(problem);
    }

    /// The problem for an unsupported value.
    pub(super) fn problem(&self, name: &'static str, reason: &str, hint: &str) -> Problem {
        let value = self.get(name).unwrap_or_default();
        Problem::new(format!("`{name}` is `{value}`: {reason}")).with_hint(hint)
    }

    /// Warns that a value other than the default has no effect.
    pub(super) fn unused(&mut self, name: &'static str, reason: &str) {
        let default = super::table::find(name).and_then(|variable| variable.default);
        if self.get(name).is_some_and(|value| default != Some(value)) {
            self.warnings.push(format!("`{name}` has no effect: {reason}"));
        }
    }
}

/// The value in its usual spelling. The error describes the expected form.
fn in_form(form: Form, text: &str) -> Result<String, Problem> {
    let expect = |fits: bool, value: String, expected: String| {
        if fits { Ok(value) } else { Err(Problem::new(expected)) }
    };
    let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    match form {
        Form::Whole(least, most) => {
            let value = text.parse::<u64>().ok();
            let value = value.filter(|value| (least..=most).contains(value));
            let expected = match most {
                u64::MAX => format!("a whole number from {least}"),
                most => format!("a whole number from {least} to {most}"),
            };
            expect(value.is_some(), value.unwrap_or_default().to_string(), expected)
        }
        Form::Number => expect(
            number().is_some_and(|number| number >= 0.0),
            text.into(),
            "a number from 0".into(),
        ),
        Form::Positive => expect(
            number().is_some_and(|number| number > 0.0),
            text.into(),
            "a number above 0".into(),
        ),
        Form::Boolean => {
            let value = text.to_ascii_lowercase();
            let fits = ["true", "false"].contains(&value.as_str());
            expect(fits, value, "`true` or `false`".into())
        }
        Form::Word(words) => word(words, text),
        Form::Text => {
            expect(!text.contains(char::is_control), text.into(), "one line of text".into())
        }
        Form::Cpus => expect(is_list(text), text.into(), "a list of CPUs such as `0-7,16`".into()),
    }
}

fn word(words: &[&str], text: &str) -> Result<String, Problem> {
    let value = text.to_ascii_lowercase();
    if words.contains(&value.as_str()) {
        return Ok(value);
    }
    let (last, others) = words.split_last().expect("a choice has words");
    let problem = Problem::new(format!("`{}` or `{last}`", others.join("`, `")));
    Err(match nearest(text, words.iter().copied()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None => problem,
    })
}
