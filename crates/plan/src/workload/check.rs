//! Finds everything in a workload that can be refused before a server is started.

mod circles;
mod collections;
mod lookup;
mod operations;
mod references;
mod size;
#[cfg(test)]
mod tests;

use super::expected::Expected;
use super::folder;
use super::model::{Check, Workload};
use super::template::{self, Place, Template, Value};
use crate::nearest::nearest;
use crate::problem::{Problem, ProblemKind};
use bson::Bson;
use std::collections::{BTreeMap, HashSet};

/// All problems of a workload. Line and column of a problem are places in the template under its key.
pub fn check(workload: &Workload) -> Vec<Problem> {
    let mut checker = Checker { workload, problems: Vec::new() };
    let sources = checker.collections();
    checker.references_of_documents(&sources);
    // Sizes of values that depend on themselves have no limit.
    if !checker.circles(&sources) {
        checker.sizes_of_documents(&sources);
    }
    checker.operations(&sources);
    checker.checks();
    checker.problems
}

/// Bytes of the largest document that each collection can have, in the order of the collections.
pub fn largest_document_bytes(workload: &Workload) -> Vec<u64> {
    let mut checker = Checker { workload, problems: Vec::new() };
    let sources = checker.collections();
    size::of_documents(workload, &sources)
}

/// Templates by the names of their variables.
type Variables = BTreeMap<String, Template>;

/// Collects the problems of a workload.
struct Checker<'a> {
    workload: &'a Workload,
    problems: Vec<Problem>,
}

/// Required form of a constant template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Document,
    Array,
}

impl Checker<'_> {
    fn wrong(&mut self, key: &str, message: impl Into<String>) -> &mut Problem {
        self.problems.push(Problem::new(message).about([key]));
        self.problems.last_mut().expect("a problem was just added")
    }

    fn missing(&mut self, key: &str, message: impl Into<String>) {
        self.wrong(key, message).kind = ProblemKind::Missing;
    }

    fn wrong_at(&mut self, key: &str, place: Place, message: impl Into<String>) -> &mut Problem {
        let problem = self.wrong(key, message);
        (problem.line, problem.column) = (Some(place.line), Some(place.column));
        problem
    }

    /// Adds the problem that a name does not exist. `suggestion` is a name that does.
    fn unknown(
        &mut self,
        key: &str,
        place: Option<Place>,
        message: impl Into<String>,
        suggestion: Option<String>,
    ) {
        let problem = self.wrong(key, message);
        problem.kind = ProblemKind::Unknown;
        problem.hint = suggestion.map(|suggestion| format!("did you mean `{suggestion}`?"));
        (problem.line, problem.column) = place.map(|place| (place.line, place.column)).unzip();
    }

    /// Reads the template under a key.
    fn template(&mut self, key: &str, text: &str) -> Option<Template> {
        let folder = self.workload.folder.as_deref();
        let read_file = |name: &str| folder::read(folder, name);
        match template::read(text, &read_file) {
            Ok(template) => Some(template),
            Err(error) => {
                let hint = error.hint();
                self.wrong_at(key, error.place, format!("`{key}`: {}", error.message())).hint =
                    hint;
                None
            }
        }
    }

    /// Reads a template that has the form of a document.
    fn document(&mut self, key: &str, text: &str) -> Option<Template> {
        let template = self.template(key, text)?;
        let is_document =
            matches!(template.value, Value::Document(_) | Value::Constant(Bson::Document(_)));
        if !is_document {
            self.wrong_at(key, Place { line: 1, column: 1 }, format!("`{key}` is not a document"));
        }
        is_document.then_some(template)
    }

    /// Reads a template that has the form of a document or an array, without generators.
    fn constant(&mut self, key: &str, text: &str, shape: Shape) {
        let Some(template) = self.template(key, text) else { return };
        let (fits, name) = match (&template.value, shape) {
            (Value::Constant(Bson::Document(_)), Shape::Document) => (true, ""),
            (Value::Constant(Bson::Array(_)), Shape::Array) => (true, ""),
            (_, Shape::Document) => (false, "a document"),
            (_, Shape::Array) => (false, "an array"),
        };
        if !fits {
            let message = format!("`{key}` is not {name} without generators");
            self.wrong_at(key, Place { line: 1, column: 1 }, message);
        }
    }

    fn optional_constant(&mut self, key: &str, text: Option<&String>) {
        if let Some(text) = text {
            self.constant(key, text, Shape::Document);
        }
    }

    /// Reads a range of counts.
    fn expected(&mut self, key: &str, text: &str) {
        if let Err(error) = text.parse::<Expected>() {
            self.wrong(key, format!("`{key}`: {error}"));
        }
    }

    /// Refuses names that are empty or used twice. `key` is the key of the list.
    fn unique_names<'n>(&mut self, key: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = HashSet::new();
        for (index, name) in names.enumerate() {
            let key = format!("{key}[{index}].name");
            if name.is_empty() {
                self.missing(&key, format!("`{key}` is missing"));
            } else if !seen.insert(name) {
                self.wrong(&key, format!("`{key}`: the name `{name}` is already used"));
            }
        }
    }

    /// Refuses names that no collection has.
    fn known_collection(&mut self, key: &str, place: Option<Place>, name: &str) -> bool {
        let names =
            || self.workload.data.collections.iter().map(|collection| collection.name.as_str());
        if names().any(|known| known == name) {
            return true;
        }
        let suggestion = nearest(name, names()).map(str::to_owned);
        self.unknown(key, place, format!("`{key}`: unknown collection `{name}`"), suggestion);
        false
    }

    fn checks(&mut self) {
        let workload = self.workload;
        self.unique_names("checks", workload.checks.iter().map(|check| check.name.as_str()));
        for (index, Check { collection, aggregate, expect, .. }) in
            workload.checks.iter().enumerate()
        {
            self.known_collection(&format!("checks[{index}].collection"), None, collection);
            self.constant(&format!("checks[{index}].aggregate"), aggregate, Shape::Array);
            let key = format!("checks[{index}].expect");
            if expect.trim_start().starts_with('[') {
                self.constant(&key, expect, Shape::Array);
            } else {
                self.expected(&key, expect);
            }
        }
    }
}
