//! Problem of a plan, a property or an option: one sentence, a place and a hint.

use std::fmt;

/// A single problem. All problems of an input are reported together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1; absent if the input is not a file.
    pub line: Option<usize>,
    /// Column in the line, in characters from 1.
    pub column: Option<usize>,
    pub kind: ProblemKind,
    /// Keys of the plan, or the name of the property, that the problem is about.
    pub keys: Vec<String>,
    /// Description with values in backticks.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

/// Kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A required key is missing; other keys of its table are not to blame.
    Missing,
    /// No plan has the key.
    Unknown,
    /// Anything else.
    Wrong,
}

impl Problem {
    /// A problem without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Problem {
            line: None,
            column: None,
            kind: ProblemKind::Wrong,
            keys: Vec::new(),
            message: message.into(),
            hint: None,
        }
    }

    /// Adds the keys that the problem is about.
    #[must_use]
    pub fn about<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.keys.extend(keys.into_iter().map(Into::into));
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(formatter, "line {line}, column {column}: ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Several problems, one per line, as an error text.
pub(crate) fn list(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {problem}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_shows_place_message_and_hint() {
        let problem =
            Problem::new("unknown key `clint`").with_hint("did you mean `client`?").at(3, 7);
        assert_eq!(
            problem.to_string(),
            "line 3, column 7: unknown key `clint` (did you mean `client`?)"
        );
    }
}
