//! Checks the collections, and reads their templates.

use super::lookup::{Source, Sources};
use super::{Checker, Shape, Variables};
use crate::workload::folder;
use crate::workload::model::{Collection, Index};
use crate::workload::template::GENERATORS;
use std::collections::BTreeMap;

impl Checker<'_> {
    pub(super) fn collections(&mut self) -> Sources {
        let workload = self.workload;
        let collections = &workload.data.collections;
        self.unique_names(
            "data.collections",
            collections.iter().map(|collection| collection.name.as_str()),
        );
        let mut sources = Sources::new();
        for (index, collection) in collections.iter().enumerate() {
            let source = self.collection(&format!("data.collections[{index}]"), collection);
            sources.entry(collection.name.clone()).or_insert(source);
        }
        sources
    }

    fn collection(&mut self, key: &str, collection: &Collection) -> Source {
        if collection.name.contains(['.', '$', '\0', ' ']) {
            let message = format!(
                "`{key}.name` contains a space, `.`, `$` or NUL, which `%from` cannot name"
            );
            self.wrong(&format!("{key}.name"), message);
        }
        if collection.instances == 0 {
            self.wrong(&format!("{key}.instances"), format!("`{key}.instances` is less than 1"));
        }
        self.source_of_documents(key, collection);
        self.optional_constant(&format!("{key}.options"), collection.options.as_ref());
        for (index, Index { keys, options, .. }) in collection.indexes.iter().enumerate() {
            let key = format!("{key}.indexes[{index}]");
            self.constant(&format!("{key}.keys"), keys, Shape::Document);
            self.optional_constant(&format!("{key}.options"), options.as_ref());
        }
        let document = collection.document.as_ref();
        Source {
            document: document.and_then(|text| self.document(&format!("{key}.document"), text)),
            variables: self.variables(key, &collection.variables),
        }
    }

    /// Requires a template or a file, and the number of documents if there is only a template.
    fn source_of_documents(&mut self, key: &str, collection: &Collection) {
        match (&collection.document, &collection.documents_file) {
            (Some(_), Some(_)) => {
                let message = format!("`{key}` has both `document` and `documents_file`");
                self.wrong(&format!("{key}.documents_file"), message);
            }
            (None, None) if collection.records != Some(0) => {
                self.missing(
                    &format!("{key}.document"),
                    format!("`{key}` needs `document` or `documents_file`"),
                );
            }
            (Some(_), None) if collection.records.is_none() => {
                self.missing(&format!("{key}.records"), format!("`{key}` needs `records`"));
            }
            (None, Some(file)) => self.documents_file(&format!("{key}.documents_file"), file),
            _ => {}
        }
    }

    fn documents_file(&mut self, key: &str, file: &str) {
        let found = match &self.workload.folder {
            Some(folder) => folder::path_of(folder, file).map(|_| ()),
            None => folder::check_name(file),
        };
        if let Err(reason) = found {
            self.wrong(key, format!("cannot read `{file}` of `{key}`: {reason}"));
        }
    }

    /// Reads the variables under `let`, and refuses names that cannot be written behind `%`.
    pub(super) fn variables(&mut self, key: &str, texts: &BTreeMap<String, String>) -> Variables {
        let mut variables = Variables::new();
        for (name, text) in texts {
            let key = format!("{key}.let.{name}");
            self.variable_name(&key, name);
            if let Some(template) = self.template(&key, text) {
                variables.insert(name.clone(), template);
            }
        }
        variables
    }

    pub(super) fn variable_name(&mut self, key: &str, name: &str) {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            self.wrong(key, format!("`{key}`: `{name}` is not a word of letters, digits and `_`"));
        } else if GENERATORS.iter().any(|generator| generator.name == name) {
            self.wrong(
                key,
                format!("`{key}`: `%{name}` is a generator, so a variable cannot have this name"),
            );
        }
    }
}
