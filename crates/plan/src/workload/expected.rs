//! Counts that an operation or a check expects.

use std::fmt;
use std::str::FromStr;

/// A range of counts, written as `3`, `1..20` (both ends included) or `1..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub min: u64,
    /// Unlimited when absent.
    pub max: Option<u64>,
}

impl Expected {
    /// Whether a count is in the range.
    pub fn contains(self, count: u64) -> bool {
        count >= self.min && self.max.is_none_or(|max| count <= max)
    }
}

/// A text is not a range of counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpectedError {
    /// The text has another form.
    #[error("`{0}` is not a count: use `3`, `1..20` or `1..`")]
    Malformed(String),
    /// The range contains no count.
    #[error("`{0}` has its greater end first")]
    Empty(String),
}

impl FromStr for Expected {
    type Err = ExpectedError;

    fn from_str(text: &str) -> Result<Self, ExpectedError> {
        let malformed = || ExpectedError::Malformed(text.to_owned());
        let count = |text: &str| text.trim().parse::<u64>().map_err(|_| malformed());
        let (min, max) = match text.split_once("..") {
            None => {
                let only = count(text)?;
                (only, Some(only))
            }
            Some((min, max)) if max.trim().is_empty() => (count(min)?, None),
            Some((min, max)) => (count(min)?, Some(count(max)?)),
        };
        if max.is_some_and(|max| max < min) {
            return Err(ExpectedError::Empty(text.to_owned()));
        }
        Ok(Expected { min, max })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(formatter, "{max}"),
            Some(max) => write!(formatter, "{}..{max}", self.min),
            None => write!(formatter, "{}..", self.min),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_parse_print_and_contain_their_ends() {
        for (text, inside, outside) in [("3", 3, 4), ("1..20", 20, 21), ("1..", 1, 0), ("0", 0, 1)]
        {
            let expected: Expected = text.parse().unwrap();
            assert_eq!(expected.to_string(), text);
            assert!(expected.contains(inside) && !expected.contains(outside), "{text}");
        }
        assert_eq!(" 2 .. 3 ".parse(), Ok(Expected { min: 2, max: Some(3) }));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "..", "..5", "-1", "1.5", "a", "1..b", "1...5", "99999999999999999999"] {
            assert_eq!(text.parse::<Expected>(), Err(ExpectedError::Malformed(text.into())));
        }
        assert_eq!("5..2".parse::<Expected>(), Err(ExpectedError::Empty("5..2".into())));
    }
}
