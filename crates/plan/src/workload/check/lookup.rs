//! Finds the parts of a document's template at a path.

use super::Variables;
use crate::workload::template::{Function, Generator, Template, Value};
use bson::Bson;
use std::collections::{HashMap, HashSet};

/// A path in the documents of a collection.
pub(super) type CollectionPath = (String, Vec<String>);

/// Keys in a path at most, which ends the search in templates that refer to themselves.
pub(super) const MAX_PATH: usize = 100;

/// Templates of a collection.
pub(super) struct Source {
    /// Absent if the documents are in a file, or the template cannot be read.
    pub(super) document: Option<Template>,
    pub(super) variables: Variables,
}

/// Templates of all collections by name.
pub(super) type Sources = HashMap<String, Source>;

/// A part of a template.
pub(super) enum Part<'a> {
    Value(&'a Value),
    Constant(&'a Bson),
    /// The value comes from documents of another collection.
    Elsewhere(CollectionPath),
}

/// All parts of a template that can be the value at a path.
pub(super) fn parts<'a>(
    value: &'a Value,
    path: &[String],
    variables: &'a Variables,
) -> Vec<Part<'a>> {
    let mut search = Search { variables, seen: HashSet::new(), parts: Vec::new() };
    search.value(value, path);
    search.parts
}

struct Search<'a> {
    variables: &'a Variables,
    /// Visited variables, with the number of keys behind them.
    seen: HashSet<(&'a str, usize)>,
    parts: Vec<Part<'a>>,
}

impl<'a> Search<'a> {
    fn value(&mut self, value: &'a Value, path: &[String]) {
        let Some((key, rest)) = path.split_first() else {
            self.parts.push(Part::Value(value));
            return;
        };
        match value {
            Value::Constant(constant) => self.constant(constant, path),
            Value::Document(fields) => {
                if let Some((_, field)) = fields.iter().find(|(name, _)| name == key) {
                    self.value(field, rest);
                }
            }
            Value::Array(values) => match key.parse::<usize>() {
                Ok(index) => {
                    values.get(index).into_iter().for_each(|value| self.value(value, rest))
                }
                Err(_) => values.iter().for_each(|value| self.value(value, path)),
            },
            Value::Generated(generator) => self.generated(generator, path),
        }
    }

    fn generated(&mut self, generator: &'a Generator, path: &[String]) {
        match generator {
            Generator::Array { of, .. } => {
                let is_index = path[0].parse::<u32>().is_ok();
                self.value(of, if is_index { &path[1..] } else { path });
            }
            Generator::Maybe { of, .. } => self.value(of, path),
            Generator::Choose { values, .. } => {
                values.iter().for_each(|value| self.value(value, path))
            }
            // The value is an element of the array, and a path leads through all elements.
            Generator::Compute { function: Function::Nth | Function::Middle, arguments } => {
                arguments.first().into_iter().for_each(|array| self.value(array, path))
            }
            Generator::From { collection, path: start, .. } => {
                self.parts.push(Part::Elsewhere((collection.clone(), [start, path].concat())));
            }
            Generator::New { collection } => {
                self.parts.push(Part::Elsewhere((collection.clone(), path.to_vec())));
            }
            Generator::Variable(name) => {
                if let Some((name, template)) = self.variables.get_key_value(name)
                    && self.seen.insert((name, path.len()))
                {
                    self.value(&template.value, path);
                }
            }
            _ => {}
        }
    }

    fn constant(&mut self, constant: &'a Bson, path: &[String]) {
        let Some((key, rest)) = path.split_first() else {
            self.parts.push(Part::Constant(constant));
            return;
        };
        match constant {
            Bson::Document(document) => {
                if let Some(field) = document.get(key) {
                    self.constant(field, rest);
                }
            }
            Bson::Array(items) => match key.parse::<usize>() {
                Ok(index) => {
                    items.get(index).into_iter().for_each(|item| self.constant(item, rest))
                }
                Err(_) => items.iter().for_each(|item| self.constant(item, path)),
            },
            _ => {}
        }
    }
}

/// Whether documents of a collection can have a value at a path; `true` if that is unknown.
pub(super) fn exists(sources: &Sources, collection: &str, path: &[String]) -> bool {
    let mut open = vec![(collection.to_owned(), path.to_vec())];
    let mut seen = HashSet::new();
    while let Some((collection, path)) = open.pop() {
        let Some(Source { document: Some(document), variables }) = sources.get(&collection) else {
            return true;
        };
        // The server adds `_id` to documents that do not have it, but its value is unknown.
        for part in parts(&document.value, &path, variables) {
            match part {
                Part::Elsewhere(next) if next.1.len() <= MAX_PATH && seen.insert(next.clone()) => {
                    open.push(next)
                }
                Part::Elsewhere(_) => {}
                Part::Value(_) | Part::Constant(_) => return true,
            }
        }
    }
    false
}

/// All paths of a collection's template, for suggestions. Elements of arrays have the path of the array.
pub(super) fn paths(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(document) = &source.document {
        collect(&document.value, "", &mut found);
    }
    found
}

/// Paths to collect at most: more would not make a better suggestion.
const MAX_PATHS: usize = 10_000;

fn collect(value: &Value, prefix: &str, found: &mut Vec<String>) {
    if found.len() >= MAX_PATHS {
        return;
    }
    let joined = |name: &str| {
        if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
    };
    match value {
        Value::Document(fields) => {
            for (name, value) in fields {
                let path = joined(name);
                found.push(path.clone());
                collect(value, &path, found);
            }
        }
        Value::Constant(Bson::Document(document)) => {
            found.extend(document.keys().map(|name| joined(name)));
        }
        Value::Generated(generator) => match generator.as_ref() {
            Generator::Array { of, .. } | Generator::Maybe { of, .. } => collect(of, prefix, found),
            _ => {}
        },
        _ => {}
    }
}
