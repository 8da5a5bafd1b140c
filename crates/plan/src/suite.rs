//! Suite files: several workloads, the settings with which each is run, and the number of runs. A
//! suite file represents arguments of `dyno run` and is not a plan: each workload has its own plan.

use crate::builtin;
use crate::error::PlanError;
use crate::file::FileError;
use crate::problem::Problem;
use crate::units::Span;
use crate::validate::names::is_file_name;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Key that distinguishes a suite from a plan.
const WORKLOADS: &str = "workloads";

/// Several workloads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuitePlan {
    /// Name of the suite and part of its folder's name: 1 to 64 letters, digits, `.`, `_` or `-`.
    pub name: String,
    /// Purpose of the suite.
    #[serde(default)]
    pub description: String,
    /// Built-in plans, or paths of plan and property files; at least one.
    pub workloads: Vec<String>,
    /// Runs of each workload with each setting, at least 1; 1 if absent.
    pub repeat: Option<u32>,
    /// Report the share of each operation that finished within this time.
    pub below: Option<Span>,
    /// Keys of the plans, each with its value or a list of values, in the form of typed settings.
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
}

impl SuitePlan {
    /// The suite of a name or a file; `None` if it is not a suite.
    ///
    /// # Errors
    /// [`PlanError::File`] for a suite that is not valid.
    pub fn find(source: &str) -> Result<Option<SuitePlan>, PlanError> {
        if let Some(text) = builtin::suite(source) {
            return Ok(Some(SuitePlan::parse(text, source)?));
        }
        // An unreadable file is reported by the code that reads plans.
        let text = std::fs::read_to_string(Path::new(source)).ok();
        let text = text.filter(|text| is_suite(text));
        let suite = text.map(|text| SuitePlan::parse(&text, source));
        Ok(suite.transpose()?)
    }

    /// Keys of the plans with their values, in the form of `--set`.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.set.iter().map(|(key, value)| (key.clone(), typed(value))).collect()
    }

    fn parse(text: &str, origin: &str) -> Result<SuitePlan, FileError> {
        let invalid = |problem| FileError {
            origin: origin.to_owned(),
            kind: "suite",
            problems: vec![problem],
        };
        let suite: SuitePlan =
            toml::from_str(text).map_err(|error| invalid(Problem::new(error.message())))?;
        let problem = if !is_file_name(&suite.name) {
            Some("`name` must have 1 to 64 letters, digits, `.`, `_` or `-`")
        } else if suite.workloads.is_empty() {
            Some("`workloads` is empty")
        } else if suite.repeat == Some(0) {
            Some("`repeat` must be at least 1")
        } else if suite.below.is_some_and(|below| below.0.is_zero()) {
            Some("`below` must be above 0")
        } else {
            None
        };
        match problem {
            None => Ok(suite),
            Some(problem) => Err(invalid(Problem::new(problem))),
        }
    }
}

/// Whether the text of a file is a suite.
pub(crate) fn is_suite(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| table.contains_key(WORKLOADS))
}

/// Formats a value or several values as typed settings. A list inside a list is one value.
fn typed(value: &toml::Value) -> String {
    let one = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        toml::Value::Array(values) => values.iter().map(one).collect::<Vec<_>>().join(";"),
        value => one(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suite_represents_typed_arguments() {
        let text = r#"
            name = "mine"
            workloads = ["a", "x.toml"]
            below = "1ms"
            [set]
            "server.topology" = ["standalone", "replica-set=3,priorities=2/1/0"]
            "client.clients" = 8
            "tail.in_flight" = [[1, 2], [4]]
        "#;
        assert!(is_suite(text));
        let suite = SuitePlan::parse(text, "mine.toml").unwrap();
        assert_eq!(suite.workloads, ["a", "x.toml"]);
        assert_eq!(
            (suite.repeat, suite.below.map(|below| below.to_string())),
            (None, Some("1ms".into()))
        );
        let settings = [
            ("client.clients", "8"),
            ("server.topology", "standalone;replica-set=3,priorities=2/1/0"),
            ("tail.in_flight", "[1, 2];[4]"),
        ];
        assert_eq!(
            suite.settings(),
            settings.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn invalid_suite_gives_the_reason() {
        for (text, why) in [
            ("name = \"x\"\nworkloads = []", "`workloads`"),
            ("name = \"../x\"\nworkloads = [\"a\"]", "`name`"),
            ("name = \"x\"\nworkloads = [\"a\"]\nrepeat = 0", "`repeat`"),
            ("name = \"x\"\nworkloads = [\"a\"]\nrounds = 2", "unknown field `rounds`"),
            ("name = \"x\"\nworkloads = [\"a\"]\nbelow = \"0s\"", "`below`"),
            ("workloads = [\"a\"]", "missing field `name`"),
        ] {
            let error = SuitePlan::parse(text, "s.toml").unwrap_err();
            assert_eq!((&*error.origin, error.kind), ("s.toml", "suite"));
            let [problem] = error.problems.as_slice() else { panic!("{error}") };
            assert!(problem.message.contains(why), "{error}");
        }
    }

    #[test]
    fn every_built_in_suite_is_valid_and_names_known_plans() {
        let mut count = 0;
        for name in builtin::suites() {
            let suite = SuitePlan::find(name).unwrap().expect("it is listed");
            assert_eq!(suite.name, name);
            assert!(suite.description.len() > 20, "{name}");
            for workload in &suite.workloads {
                assert!(builtin::find(workload).is_some(), "{workload}");
            }
            count += 1;
        }
        assert_eq!(count, 3);
        assert_eq!(SuitePlan::find("a").unwrap(), None);
        assert_eq!(SuitePlan::find("/no/such/file").unwrap(), None);
    }
}
