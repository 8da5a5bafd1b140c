//! Types shared by all steps of removing secrets.

use regex::Captures;
use std::ops::Range;

/// Replaces a secret.
pub(crate) const MASK: &str = "***";

/// Origin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Any text.
    Text,
    /// One or more words of a command line.
    Command,
    /// One or more words after a program whose one-letter options take a password.
    ClientCommand,
}

/// Ranges of secrets.
pub(super) type Edits = Vec<Range<usize>>;

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($text).expect("the pattern is valid"));
    };
}
pub(super) use pattern;

pub(super) fn group(captures: &Captures<'_>, number: usize) -> Range<usize> {
    captures.get(number).map_or(0..0, |found| found.range())
}
