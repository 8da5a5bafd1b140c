//! Why a test cannot run here, and the rule that turns that into a failure.

use std::fmt;
use std::io::Write;

/// A test needs something that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// What is missing.
    missing: String,
    /// How to get it.
    remedy: &'static str,
}

impl Skip {
    /// `missing` says what is not there, `remedy` how to get it.
    pub fn new(missing: impl Into<String>, remedy: &'static str) -> Skip {
        Skip {
            missing: missing.into(),
            remedy,
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SKIP: {}; {}", self.missing, self.remedy)
    }
}

impl std::error::Error for Skip {}

/// The value, or `None` after a line on standard error that says why the test is skipped.
///
/// # Panics
/// With `DYNO_REQUIRE_SERVERS=1` in the environment instead of a skip.
pub fn or_skip<T>(found: Result<T, Skip>) -> Option<T> {
    let required = std::env::var_os("DYNO_REQUIRE_SERVERS").is_some_and(|value| value == "1");
    // Not `eprintln!`: the test harness would swallow it, and skips must be seen.
    decide(found, required, &mut std::io::stderr())
}

fn decide<T>(found: Result<T, Skip>, required: bool, output: &mut dyn Write) -> Option<T> {
    match found {
        Ok(value) => Some(value),
        Err(skip) if required => panic!("{skip}; DYNO_REQUIRE_SERVERS=1 forbids to skip"),
        Err(skip) => {
            // An output that cannot be written to is no reason to fail.
            let _ = writeln!(output, "{skip}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> Result<u8, Skip> {
        Err(Skip::new("no `java`", "run `scripts/setup.sh test`"))
    }

    #[test]
    fn a_skip_says_what_is_missing_and_how_to_get_it() {
        let mut output = Vec::new();
        assert_eq!(decide(missing(), false, &mut output), None);
        assert_eq!(output, b"SKIP: no `java`; run `scripts/setup.sh test`\n");
        assert_eq!(decide(Ok(7), true, &mut output), Some(7));
    }

    #[test]
    #[should_panic(expected = "SKIP: no `java`")]
    fn a_skip_is_a_failure_where_servers_are_required() {
        decide(missing(), true, &mut Vec::new());
    }
}
