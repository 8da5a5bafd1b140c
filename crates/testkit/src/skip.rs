//! Why a test cannot run here, the rule that makes this a failure, and the list of skips.
//!
//! Every skip is printed to standard error, and recorded in the file named by `DYNO_SKIP_LOG`; `scripts/skips.sh`
//! counts them.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;

/// Skips that are allowed even if servers are required, with the reasons.
const ALLOWED: &str = include_str!("../../../scripts/skips-allowed.txt");

/// A test needs something that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// What is missing.
    missing: String,
    /// How to get it.
    remedy: &'static str,
}

impl Skip {
    /// `missing` names the missing program, `remedy` how to get it.
    pub fn new(missing: impl Into<String>, remedy: &'static str) -> Skip {
        Skip { missing: missing.into(), remedy }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.missing, self.remedy)
    }
}

impl std::error::Error for Skip {}

/// The value, or `None` after a message on standard error that explains the skip.
///
/// # Panics
/// With `DYNO_REQUIRE_SERVERS=1` in the environment, unless the skip is always allowed.
pub fn or_skip<T>(found: Result<T, Skip>) -> Option<T> {
    let required = std::env::var_os("DYNO_REQUIRE_SERVERS").is_some_and(|value| value == "1");
    match found {
        Ok(value) => Some(value),
        Err(missing) => {
            let reason = missing.to_string();
            let forbidden = required && !is_allowed(&reason);
            assert!(!forbidden, "SKIP: {reason}; DYNO_REQUIRE_SERVERS=1 forbids to skip");
            skip(&reason);
            None
        }
    }
}

/// Skips the test of this thread, because this machine cannot be traced, or lacks a program to compare a trace with.
///
/// # Panics
/// With `DYNO_REQUIRE_TRACE` in the environment, unless it is `0`.
pub fn skip_tracing(reason: &str) {
    let required = std::env::var_os("DYNO_REQUIRE_TRACE").is_some_and(|value| value != "0");
    assert!(!required, "SKIP: {reason}; DYNO_REQUIRE_TRACE forbids to skip");
    skip(reason);
}

/// Skips the test of this thread, whatever is required.
pub fn skip(reason: &str) {
    // Not `eprintln!`: the test harness would swallow it, but skips must be visible. An unwritable output is not a
    // reason to fail.
    let _ = writeln!(std::io::stderr(), "SKIP: {reason}");
    if let Some(path) = std::env::var_os("DYNO_SKIP_LOG") {
        note(&path, &line(&test(), reason));
    }
}

/// Name of the crate, which cargo passes to the test program, and of the test, which is the thread's name. If a program
/// runs only one test, its name follows `--exact`.
fn test() -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let alone = std::env::args().skip_while(|word| word != "--exact").nth(1);
    let name = match thread.name() {
        None | Some("main") => alone.unwrap_or_else(|| "unnamed".to_owned()),
        Some(name) => name.to_owned(),
    };
    format!("{package}: {name}")
}

fn line(test: &str, reason: &str) -> String {
    let allowed = if is_allowed(reason) { "allowed" } else { "not allowed" };
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("{allowed}\t{test}\t{}\n", reason.join(" "))
}

/// Appends a line in one call, so that parallel test programs do not mix their lines.
fn note(path: &OsStr, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("cannot write to {}: {error}", path.display()));
}

fn is_allowed(reason: &str) -> bool {
    let lines = ALLOWED.lines().filter(|line| !line.starts_with('#'));
    let mut beginnings = lines.filter_map(|line| line.split('\t').nth(1));
    beginnings.any(|beginning| reason.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Output of `scripts/skips.sh` for skips with these reasons, and whether it succeeds.
    fn counted(reasons: &[&str]) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("skips");
        for reason in reasons {
            note(log.as_os_str(), &line("it: a_test", reason));
        }
        let script = crate::project_dir().join("scripts/skips.sh");
        let output = Command::new(script).arg(&log).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (said, output.status.success())
    }

    #[test]
    fn a_skip_says_what_is_missing_and_how_to_get_it() {
        let skip = Skip::new("no `java`", "run `scripts/setup.sh test`");
        assert_eq!(skip.to_string(), "no `java`; run `scripts/setup.sh test`");
        assert_eq!(line("it: a", "no `java`,\n  none"), "not allowed\tit: a\tno `java`, none\n");
        assert_eq!(line("it: a", "no `mongos`; x"), "allowed\tit: a\tno `mongos`; x\n");
        assert!(test().starts_with("dyno-testkit: "), "{}", test());
        assert_eq!(or_skip::<u8>(Ok(7)), Some(7));
    }

    #[test]
    fn the_script_fails_for_skips_that_are_not_allowed() {
        let (output, succeeded) = counted(&[]);
        assert!(succeeded && output.lines().count() == 1, "{output}");
        let (output, succeeded) = counted(&["no `mongos`; a", "no Percona Server; b"]);
        assert!(succeeded, "{output}");
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines[0].starts_with("2 "), "{output}");
        let skips = ["no `mongos`; a", "no Percona Server; b"];
        let skips = skips.map(|skip| format!("  it: a_test: {skip}"));
        assert_eq!(lines[1..], skips);
        let (output, succeeded) = counted(&["no `mongos`; a", "no `java`; b"]);
        assert!(!succeeded, "{output}");
        let last = output.lines().last().unwrap_or_default();
        assert!(last.contains("no `java`; b") && last.contains("[NOT ALLOWED]"), "{output}");
    }

    #[test]
    fn the_script_fails_for_too_many_skips_of_a_kind() {
        let stolen = "the hypervisor took CPU time in most attempts";
        assert!(counted(&[stolen; 2]).1);
        let (output, succeeded) = counted(&[stolen; 3]);
        assert!(!succeeded, "{output}");
        assert!(output.contains("at most 2"), "{output}");
    }
}
