//! `--fail-if-worse` of `dyno ab` and `dyno compare`: the exit code and the JUnit file.

use crate::exit::Exit;
use crate::export::output;
use crate::messages::Messages;
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::experiment::{Judged, Outcome};
use dyno_report::experiment::difference::against_limit;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::Write;
use std::path::Path;

/// The exit code of the limits; warns of each that is not kept.
pub(crate) fn exit(limits: &[Judged], messages: Messages) -> Exit {
    for one in limits {
        let what = match one.outcome {
            Outcome::Kept => continue,
            Outcome::Exceeded => "B is worse than",
            Outcome::Undecided => "cannot tell whether B is worse than",
        };
        let limit = one.limit;
        messages.warning(&format!("{what} `--fail-if-worse {limit}`: {}", against_limit(one)));
    }
    let has = |outcome| limits.iter().any(|one| one.outcome == outcome);
    if has(Outcome::Exceeded) {
        Exit::CheckFailed
    } else if has(Outcome::Undecided) {
        Exit::Undecided
    } else {
        Exit::Done
    }
}

/// Writes the reason of a failed comparison as an error into its JUnit file, where a file of an earlier comparison
/// would look like a success.
pub(crate) fn or_junit(
    result: Result<Exit, Error>,
    path: Option<&Path>,
    suite: &str,
) -> Result<Exit, Error> {
    if let (Err(failure), Some(path)) = (&result, path) {
        // Only the failure itself is reported; it may be that the file cannot be written.
        let reason = case("comparison", NonSuccessKind::Error, failure.reason());
        let _ = write_junit(path, suite, vec![reason]);
    }
    result
}

/// The limits as test cases. An undecided one is an error, because it neither passed nor failed; `reason` is why
/// the runs were not compared.
pub(crate) fn cases(limits: &[Judged], reason: Option<&str>) -> Vec<TestCase> {
    let of = |one: &Judged| {
        let name = one.limit.to_string();
        match one.outcome {
            Outcome::Kept => TestCase::new(name, TestCaseStatus::success()),
            Outcome::Exceeded => case(&name, NonSuccessKind::Failure, against_limit(one)),
            Outcome::Undecided => {
                let why = reason.map_or_else(|| against_limit(one), str::to_owned);
                case(&name, NonSuccessKind::Error, format!("cannot tell: {why}"))
            }
        }
    };
    limits.iter().map(of).collect()
}

/// A test case of more failed operations than the plan tolerates.
pub(crate) fn failed_operations(message: &str) -> TestCase {
    case("failed operations", NonSuccessKind::Failure, message.to_owned())
}

/// A test case that did not pass.
fn case(name: &str, kind: NonSuccessKind, message: String) -> TestCase {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(message);
    TestCase::new(name, status)
}

/// Writes test cases to a JUnit file.
pub(crate) fn write_junit(path: &Path, suite: &str, cases: Vec<TestCase>) -> Result<(), Error> {
    let mut all = TestSuite::new(suite);
    for mut case in cases {
        case.set_classname(suite);
        all.add_test_case(case);
    }
    let mut report = Report::new("dyno");
    report.add_test_suite(all);
    let text = report.to_string().map_err(|error| Error::from_cause(Kind::Internal, error))?;
    let write =
        |file: &mut (dyn Write + Send)| file.write_all(text.as_bytes()).map_err(write_error);
    output::to_file(path, true, Box::new(write))
}
