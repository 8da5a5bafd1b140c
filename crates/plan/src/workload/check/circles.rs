//! Values that depend on themselves: variables of `let` that use each other, and documents whose `%from` leads back.

use super::lookup::{CollectionPath, MAX_PATH, Part, Sources, parts};
use super::{Checker, Variables};
use crate::workload::template::{Generator, Value};
use std::collections::{HashMap, HashSet};

impl Checker<'_> {
    /// Reports circles in the documents of all collections, and returns whether there are any.
    pub(super) fn circles(&mut self, sources: &Sources) -> bool {
        let workload = self.workload;
        let mut has_circle = false;
        for (index, collection) in workload.data.collections.iter().enumerate() {
            let Some(source) = sources.get(&collection.name) else { continue };
            let key = format!("data.collections[{index}]");
            has_circle |= self.circle_of_variables(&key, &source.variables);
        }
        if has_circle {
            return true;
        }
        let mut search = Search { sources, states: HashMap::new() };
        for (index, collection) in workload.data.collections.iter().enumerate() {
            let Some(source) = sources.get(&collection.name) else { continue };
            let templates =
                source.variables.iter().map(|(name, template)| (format!("let.{name}"), template));
            let templates = source
                .document
                .iter()
                .map(|template| ("document".to_owned(), template))
                .chain(templates);
            for (part, template) in templates {
                for mention in &template.mentions {
                    let Generator::From { collection, path, .. } = &mention.generator else {
                        continue;
                    };
                    if search.has_circle((collection.clone(), path.clone())) {
                        let key = format!("data.collections[{index}].{part}");
                        let name = format!("{collection}.{}", path.join("."));
                        let message = format!("`{key}`: the value of `{name}` depends on itself");
                        self.wrong_at(&key, mention.place, message);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Reports the first circle among the variables under a key, and returns whether there is one.
    pub(super) fn circle_of_variables(&mut self, key: &str, variables: &Variables) -> bool {
        let mut done = HashSet::new();
        for name in variables.keys() {
            if let Some(name) = variable_on_a_circle(name, variables, &mut Vec::new(), &mut done) {
                let key = format!("{key}.let.{name}");
                self.wrong(&key, format!("`{key}`: the variable `%{name}` depends on itself"));
                return true;
            }
        }
        false
    }
}

/// A variable that depends on itself, among those that a variable uses.
fn variable_on_a_circle<'a>(
    name: &'a str,
    variables: &'a Variables,
    open: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> Option<&'a str> {
    if open.contains(&name) {
        return Some(name);
    }
    if !done.insert(name) {
        return None;
    }
    open.push(name);
    let mentions = variables.get(name).into_iter().flat_map(|template| &template.mentions);
    let used = mentions.filter_map(|mention| match &mention.generator {
        Generator::Variable(name) => Some(name.as_str()),
        _ => None,
    });
    let mut found = None;
    for used in used {
        found = found.or_else(|| variable_on_a_circle(used, variables, open, done));
    }
    open.pop();
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Done,
}

/// A search through the paths on which values of documents depend.
struct Search<'a> {
    sources: &'a Sources,
    states: HashMap<CollectionPath, State>,
}

impl Search<'_> {
    fn has_circle(&mut self, path: CollectionPath) -> bool {
        match self.states.get(&path) {
            Some(state) => return *state == State::Open,
            // A path that grows on its way leads back into itself.
            None if path.1.len() > MAX_PATH => return true,
            None => {}
        }
        self.states.insert(path.clone(), State::Open);
        let has_circle = self.used(&path).into_iter().any(|next| self.has_circle(next));
        self.states.insert(path, State::Done);
        has_circle
    }

    /// Paths whose values are needed for the value at a path.
    fn used(&self, (collection, path): &CollectionPath) -> Vec<CollectionPath> {
        let mut used = Vec::new();
        let Some(source) = self.sources.get(collection) else { return used };
        let Some(document) = &source.document else { return used };
        for part in parts(&document.value, path, &source.variables) {
            match part {
                Part::Elsewhere(next) => used.push(next),
                Part::Value(value) => {
                    used_in(value, &source.variables, &mut HashSet::new(), &mut used)
                }
                Part::Constant(_) => {}
            }
        }
        used
    }
}

/// Paths that a value uses, itself or through variables.
fn used_in<'a>(
    value: &'a Value,
    variables: &'a Variables,
    seen: &mut HashSet<&'a str>,
    used: &mut Vec<CollectionPath>,
) {
    value.for_each_generator(&mut |generator| match generator {
        Generator::From { collection, path, .. } => used.push((collection.clone(), path.clone())),
        Generator::Variable(name) => {
            if let Some((name, template)) = variables.get_key_value(name)
                && seen.insert(name)
            {
                used_in(&template.value, variables, seen, used);
            }
        }
        _ => {}
    });
}
