//! Tables of findings: for each finding, an input that produces it, and changes of the input that suppress it.
//!
//! A finding names its measurement, and does not appear if the measurement is on the other side of its threshold. If
//! the record lacks the measurement, another finding reports that. [`Reported::finish`] fails for every statement that
//! a rule can make and no table contains:
//!
//! ```ignore
//! let mut reported = Reported::default();
//! reported.check(findings, vec![
//!     case("more-load-is-slower", clients())
//!         .not_if("the intervals overlap", |it| last(it).rate_per_s = figure(17_000.0, 0.2))
//!         .not_without("clients: [16]", "rate-poorly-known", |it| last(it).rate_per_s = bare(17_000.0)),
//! ]);
//! reported.finish("crates/analyze/src/experiment");
//! ```

use crate::sources::{codes_with_texts, sources};
use dyno_record::experiment::Finding;
use dyno_record::statement::{Statement, Value};
use std::collections::BTreeSet;

/// Source folders that make findings; each has a test that ends with [`Reported::finish`].
const MAKERS: [&str; 4] = [
    "crates/analyze/src/access_pattern",
    "crates/analyze/src/experiment",
    "crates/analyze/src/messages",
    "crates/report/src",
];
/// Value names of a statement for the place and time of a measurement.
const PLACES: [&str; 5] = ["at", "base", "best", "than", "when"];
/// Value names of a statement for text that was read.
const READINGS: [&str; 5] = ["build", "found", "reason", "text", "write_concern"];

/// A finding with its input.
pub struct Case<T> {
    code: &'static str,
    input: T,
    changes: Vec<Change<T>>,
}

struct Change<T> {
    why: &'static str,
    /// The finding that reports a missing figure, if that is the change.
    said_by: Option<&'static str>,
    make: fn(&mut T),
}

/// Expects the finding of this code for `input`.
pub fn case<T>(code: &'static str, input: T) -> Case<T> {
    Case { code, input, changes: Vec::new() }
}

impl<T> Case<T> {
    /// Expects that the finding disappears if its measurement is on the other side of the threshold.
    #[must_use]
    pub fn not_if(mut self, why: &'static str, make: fn(&mut T)) -> Self {
        self.changes.push(Change { why, said_by: None, make });
        self
    }

    /// Expects that the finding disappears without a figure that it needs, and that the finding `said_by` reports that
    /// this `figure` is missing.
    #[must_use]
    pub fn not_without(
        mut self,
        figure: &'static str,
        said_by: &'static str,
        make: fn(&mut T),
    ) -> Self {
        self.changes.push(Change { why: figure, said_by: Some(said_by), make });
        self
    }
}

/// Findings of the cases of all tables.
#[derive(Default)]
pub struct Reported {
    /// Codes of findings.
    findings: BTreeSet<String>,
    /// Codes of findings, their parts and their evidence.
    codes: BTreeSet<String>,
    /// Findings with a case.
    cases: BTreeSet<&'static str>,
    problems: BTreeSet<String>,
}

impl Reported {
    /// Applies `rules` to the input of each case and to its changed inputs.
    pub fn check<T: Clone>(&mut self, rules: impl Fn(&T) -> Vec<Finding>, cases: Vec<Case<T>>) {
        for case in cases {
            let code = case.code;
            self.cases.insert(code);
            let found = rules(&case.input);
            // A code that is a finding here may still be the evidence of another one after a change.
            let has: fn(&[Finding], &str) -> bool =
                if is_finding(&found, code) { is_finding } else { is_evidence };
            if !has(&found, code) {
                self.problem(format!("`{code}` is not reported: {}", codes(&found)));
            }
            self.hear_all(&found);
            if !case.changes.iter().any(|change| change.said_by.is_none()) {
                self.problem(format!("`{code}` has no case without the finding"));
            }
            for change in &case.changes {
                let mut input = case.input.clone();
                (change.make)(&mut input);
                let found = rules(&input);
                self.problems.extend(change.problem(code, &found, has(&found, code)));
                self.hear_all(&found);
            }
        }
    }

    fn problem(&mut self, text: String) {
        self.problems.insert(text);
    }

    fn hear_all(&mut self, found: &[Finding]) {
        for one in found {
            self.findings.insert(one.statement.code.clone());
            self.hear(&one.statement);
            one.evidence.iter().for_each(|part| self.hear(part));
            if !one.evidence.iter().any(is_measured) {
                self.problem(format!("no measurement supports `{}`", one.statement));
            }
        }
    }

    /// Adds a statement and its parts.
    pub fn hear(&mut self, statement: &Statement) {
        fn parts(value: &Value, reported: &mut Reported) {
            match value {
                Value::Statement(part) => reported.hear(part),
                Value::List(values) => values.iter().for_each(|one| parts(one, reported)),
                _ => {}
            }
        }
        self.codes.insert(statement.code.clone());
        statement.values.values().for_each(|value| parts(value, self));
    }

    /// Checks that the cases cover all findings and evidence that the sources of a folder can make.
    ///
    /// # Panics
    /// With all missing statements and earlier problems.
    pub fn finish(mut self, folder: &str) {
        assert!(MAKERS.contains(&folder), "`{folder}`");
        let known = codes_with_texts();
        let makers = sources().into_iter();
        for (path, source) in makers.filter(|(_, source)| can_make_findings(source)) {
            if !MAKERS.iter().any(|maker| path.starts_with(maker)) {
                self.problem(format!(
                    "{} makes findings, but is not listed in `MAKERS`",
                    path.display()
                ));
            }
            if !path.starts_with(folder) {
                continue;
            }
            let quoted: BTreeSet<&str> = source.split('"').collect();
            let said = quoted.into_iter().filter(|code| known.contains(*code));
            for code in said.filter(|code| !self.codes.contains(*code)) {
                let file = path.display();
                self.problems.insert(format!("no case reports `{code}` of {file}"));
            }
        }
        let cases = |code: &&String| self.cases.contains(code.as_str());
        for code in self.findings.iter().filter(|code| !cases(code)) {
            self.problems.insert(format!("`{code}` has no case"));
        }
        let problems: Vec<String> = self.problems.into_iter().collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

impl<T> Change<T> {
    /// The problem with the findings after the change, if any.
    fn problem(&self, code: &str, found: &[Finding], is_reported: bool) -> Option<String> {
        let why = self.why;
        if is_reported {
            return Some(format!("`{code}` is reported although: {why}"));
        }
        let said_by = self.said_by?;
        let says = |one: &Finding| {
            let mut all = one.evidence.iter().chain([&one.statement]);
            one.statement.code == said_by && all.any(|part| part.to_string().contains(why))
        };
        (!found.iter().any(says)).then(|| {
            format!("`{said_by}` does not report that `{why}` is missing: {}", codes(found))
        })
    }
}

fn codes(found: &[Finding]) -> String {
    let codes = found.iter().map(|one| one.statement.code.as_str());
    codes.collect::<Vec<_>>().join(", ")
}

fn is_finding(found: &[Finding], code: &str) -> bool {
    found.iter().any(|one| one.statement.code == code)
}

fn is_evidence(found: &[Finding], code: &str) -> bool {
    found.iter().flat_map(|one| &one.evidence).any(|one| one.code == code)
}

/// Whether a statement has a value that was measured or read.
fn is_measured(statement: &Statement) -> bool {
    fn is_value(name: &str, value: &Value) -> bool {
        match value {
            Value::Number(number) => number.value.is_some(),
            Value::Text(_) => READINGS.contains(&name),
            Value::Statement(part) => is_measured(part),
            Value::List(values) => values.iter().any(|one| is_value(name, one)),
            Value::Flag(_) | Value::Other(_) => false,
        }
    }
    statement
        .values
        .iter()
        .any(|(name, value)| !PLACES.contains(&name.as_str()) && is_value(name, value))
}

/// Whether a source calls a constructor of findings, or names their fields.
fn can_make_findings(source: &str) -> bool {
    let constructors = ["found", "warning", "opportunity"];
    let calls = |name: &&str| source.contains(&format!("Finding::{name}("));
    let imports = source.split("use dyno_record::experiment::").skip(1);
    let mut imports = imports.filter_map(|rest| rest.split(';').next());
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_finding = |names: &str| names.split(|c| !is_word(c)).any(|name| name == "Finding");
    constructors.iter().any(calls) || source.contains("Finding {") && imports.any(is_finding)
}
