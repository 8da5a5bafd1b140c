//! Collects problems, with helpers for common checks.

use crate::problem::Problem;
use std::fmt::Display;
use std::ops::RangeInclusive;

#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

/// The keys that a problem is about.
pub(super) trait Subject {
    fn problem(self, text: String) -> Problem;
}

/// A single key begins the message, and the text continues it.
impl<K: AsRef<str> + ?Sized> Subject for &K {
    fn problem(self, text: String) -> Problem {
        let key = self.as_ref();
        Problem::new(format!("`{key}` {text}")).about([key])
    }
}

/// The text is the whole message.
impl<const N: usize> Subject for [&str; N] {
    fn problem(self, text: String) -> Problem {
        Problem::new(text).about(self)
    }
}

/// A text, or how to make it.
pub(super) trait Text {
    fn text(self) -> String;
}

impl Text for &str {
    fn text(self) -> String {
        self.to_owned()
    }
}

impl<F: FnOnce() -> String> Text for F {
    fn text(self) -> String {
        self()
    }
}

impl Problems {
    pub(super) fn require(&mut self, subject: impl Subject, holds: bool, text: impl Text) {
        if !holds {
            self.0.push(subject.problem(text.text()));
        }
    }

    pub(super) fn require_or(
        &mut self,
        subject: impl Subject,
        holds: bool,
        hint: &str,
        text: impl Text,
    ) {
        if !holds {
            self.0.push(subject.problem(text.text()).with_hint(hint));
        }
    }

    /// Checks that a value is between two inclusive bounds.
    pub(super) fn within<T>(&mut self, key: &str, value: T, bounds: RangeInclusive<T>)
    where
        T: Display + PartialOrd,
    {
        let (low, high) = (bounds.start(), bounds.end());
        self.require(key, bounds.contains(&value), || {
            format!("is `{value}`, but must be {low} to {high}")
        });
    }

    pub(super) fn ratio(&mut self, key: &str, value: f64) {
        self.within(key, value, 0.0..=1.0);
    }
}
