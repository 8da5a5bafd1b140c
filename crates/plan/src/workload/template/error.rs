//! Mistakes in a template, with their place.

use std::fmt;

/// A place in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    /// The place of a byte offset in a text. An offset inside of a character counts as the character.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_first_byte = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
        Place {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: before[line_start..].iter().filter(is_first_byte).count() + 1,
        }
    }
}

/// The first mistake of a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TemplateError {
    pub place: Place,
    pub kind: TemplateErrorKind,
    /// The text at the place, in backticks where it is quoted.
    pub found: String,
    /// The valid form, in words or as an example.
    pub expected: String,
    /// What to write instead.
    pub suggestion: Option<String>,
}

/// Kind of a [`TemplateError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateErrorKind {
    /// The text is not relaxed Extended JSON.
    Syntax,
    /// A document has a key twice.
    DuplicateKey,
    /// Documents and arrays are nested more deeply than the server accepts.
    TooDeep,
    /// No generator, law, option or constructor has the name.
    UnknownName,
    /// A required argument or parameter is missing.
    Missing,
    /// An argument has another form or type.
    Form,
    /// A number is outside of its range, or two numbers contradict each other.
    Range,
    /// A file cannot be read, or is outside of the plan's folder.
    File,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(formatter, "line {line}, column {column}: {}", self.message())?;
        match self.hint() {
            Some(hint) => write!(formatter, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl TemplateError {
    /// The mistake without its place and the suggestion.
    pub fn message(&self) -> String {
        format!("found {}, expected {}", self.found, self.expected)
    }

    /// The suggestion as a question.
    pub fn hint(&self) -> Option<String> {
        self.suggestion.as_ref().map(|suggestion| format!("did you mean `{suggestion}`?"))
    }
}

/// A mistake before its line and column are known.
#[derive(Clone, Debug)]
pub(super) struct Mistake {
    /// Bytes from the start of the text.
    pub(super) offset: usize,
    pub(super) kind: TemplateErrorKind,
    pub(super) found: String,
    pub(super) expected: String,
    pub(super) suggestion: Option<String>,
}

impl Mistake {
    pub(super) fn new(
        offset: usize,
        kind: TemplateErrorKind,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Mistake { offset, kind, found: found.into(), expected: expected.into(), suggestion: None }
    }

    pub(super) fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }

    pub(super) fn in_text(self, text: &str) -> TemplateError {
        TemplateError {
            place: Place::of(text, self.offset),
            kind: self.kind,
            found: self.found,
            expected: self.expected,
            suggestion: self.suggestion,
        }
    }
}

/// At most 40 characters of a text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
