//! Names in templates: collections and paths, variables, and replies to earlier steps.

use super::lookup::{self, Sources};
use super::{Checker, Variables};
use crate::nearest::nearest;
use crate::workload::template::{Form, GENERATORS, Generator, Mention, Template};
use std::collections::HashSet;

/// Names that a template may use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) sources: &'a Sources,
    /// Variables of `let`.
    pub(super) variables: &'a Variables,
    /// Name of the element of a list.
    pub(super) element: Option<&'a str>,
    /// Whether `%new` is allowed.
    pub(super) allows_new: bool,
    /// Number of steps whose replies are known; `None` outside of operations.
    pub(super) replies: Option<usize>,
    /// Number of steps of the operation; 0 outside of operations.
    pub(super) steps: usize,
}

impl Checker<'_> {
    pub(super) fn references_of_documents(&mut self, sources: &Sources) {
        let workload = self.workload;
        for (index, collection) in workload.data.collections.iter().enumerate() {
            let Some(source) = sources.get(&collection.name) else { continue };
            let variables = &source.variables;
            let scope = Scope {
                sources,
                variables,
                element: None,
                allows_new: false,
                replies: None,
                steps: 0,
            };
            let key = format!("data.collections[{index}]");
            if let Some(document) = &source.document {
                self.references(&format!("{key}.document"), document, scope);
            }
            for (name, template) in variables {
                self.references(&format!("{key}.let.{name}"), template, scope);
            }
        }
    }

    /// Refuses names that do not exist, or do not exist yet.
    pub(super) fn references(&mut self, key: &str, template: &Template, scope: Scope<'_>) {
        for mention in &template.mentions {
            match &mention.generator {
                Generator::From { collection, path, .. } => {
                    self.from(key, mention, collection, path, scope)
                }
                Generator::New { collection } => self.new_document(key, mention, collection, scope),
                Generator::Variable(name) => self.variable(key, mention, name, scope),
                Generator::Reply { step, .. } => self.reply(key, mention, *step, scope),
                _ => {}
            }
        }
    }

    fn from(
        &mut self,
        key: &str,
        mention: &Mention,
        collection: &str,
        path: &[String],
        scope: Scope<'_>,
    ) {
        if !self.known_collection(key, Some(mention.place), collection) {
            return;
        }
        if lookup::exists(scope.sources, collection, path) {
            return;
        }
        let path = path.join(".");
        let known = scope.sources.get(collection).map(lookup::paths).unwrap_or_default();
        let suggestion = nearest(&path, known.iter().map(String::as_str));
        let suggestion = suggestion.map(|known| format!("{collection}.{known}"));
        let message = format!("`{key}`: documents of `{collection}` do not have the path `{path}`");
        self.unknown(key, Some(mention.place), message, suggestion);
    }

    fn new_document(&mut self, key: &str, mention: &Mention, collection: &str, scope: Scope<'_>) {
        if !scope.allows_new {
            self.wrong_at(
                key,
                mention.place,
                format!("`{key}`: `%new` is only possible in operations"),
            );
        } else if self.known_collection(key, Some(mention.place), collection)
            && self.has_no_template(collection)
        {
            let message =
                format!("`{key}`: `{collection}` does not have a template for new documents");
            self.wrong_at(key, mention.place, message);
        }
    }

    fn has_no_template(&self, name: &str) -> bool {
        let mut collections = self.workload.data.collections.iter();
        collections.any(|collection| collection.name == name && collection.document.is_none())
    }

    fn variable(&mut self, key: &str, mention: &Mention, name: &str, scope: Scope<'_>) {
        if scope.element == Some(name) {
            return;
        }
        if !scope.variables.contains_key(name) {
            let generators =
                GENERATORS.iter().filter(|one| one.form == Form::Word).map(|one| one.name);
            let names =
                scope.variables.keys().map(String::as_str).chain(scope.element).chain(generators);
            let suggestion = nearest(name, names).map(|name| format!("%{name}"));
            let message = format!("`{key}`: unknown generator or variable `%{name}`");
            return self.unknown(key, Some(mention.place), message, suggestion);
        }
        if let (Some(known), Some(step)) =
            (scope.replies, last_reply(name, scope.variables, &mut HashSet::new()))
            // A step that does not exist is a problem of the variable.
            && (known..scope.steps).contains(&step)
        {
            let message = format!(
                "`{key}`: `%{name}` needs the reply to step {step}, which is not an earlier step"
            );
            self.wrong_at(key, mention.place, message);
        }
    }

    fn reply(&mut self, key: &str, mention: &Mention, step: usize, scope: Scope<'_>) {
        match scope.replies {
            None => {
                self.wrong_at(
                    key,
                    mention.place,
                    format!("`{key}`: `%reply` is only possible in operations"),
                );
            }
            Some(known) if step >= known => {
                let message =
                    format!("`{key}`: step {step} is not an earlier step; steps count from 0");
                self.wrong_at(key, mention.place, message);
            }
            Some(_) => {}
        }
    }
}

/// The last step that a variable needs the reply to.
pub(super) fn last_reply<'a>(
    name: &'a str,
    variables: &'a Variables,
    seen: &mut HashSet<&'a str>,
) -> Option<usize> {
    if !seen.insert(name) {
        return None;
    }
    let mentions = &variables.get(name)?.mentions;
    let steps = mentions.iter().filter_map(|mention| match &mention.generator {
        Generator::Reply { step, .. } => Some(*step),
        Generator::Variable(name) => last_reply(name, variables, seen),
        _ => None,
    });
    steps.max()
}
