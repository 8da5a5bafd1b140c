//! The catalogue of sentences: a text for every code of a [`Statement`], in the TOML files next to this one.
//!
//! A sentence is a template. `{{ name }}` inserts a value with the digits for sentences, `{% if name %}` text that depends
//! on a value, and filters select another format: see `numbers.rs`. A nested statement is written with its own sentence.
//! `hint` is the advice for a caveat.

mod numbers;

use dyno_record::statement::{Number, Statement, Value};
use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Shown};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

pub(crate) use numbers::short;

/// The files of the catalogue.
const FILES: [&str; 7] = [
    include_str!("caveats.toml"),
    include_str!("findings.toml"),
    include_str!("index-builds.toml"),
    include_str!("laws.toml"),
    include_str!("messages.toml"),
    include_str!("traces.toml"),
    include_str!("verdict.toml"),
];

/// Suffix of the template names of hints.
const HINT: &str = ".hint";

static CATALOGUE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut catalogue = Environment::new();
    catalogue.set_auto_escape_callback(|_| AutoEscape::None);
    // A missing value must be an error, but templates may test for it.
    catalogue.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    numbers::add_filters(&mut catalogue);
    for (name, text) in templates() {
        // A test finds templates that do not compile.
        let _ = catalogue.add_template_owned(name, text);
    }
    catalogue
});

/// Template names with their texts.
fn templates() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for file in FILES {
        let table = file.parse::<toml::Table>().unwrap_or_default();
        collect("", &table, &mut found);
    }
    found
}

fn collect(above: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = match (above, key.as_str()) {
            ("", key) => key.to_owned(),
            (above, "text") => above.to_owned(),
            (above, key) => format!("{above}.{key}"),
        };
        match value {
            toml::Value::Table(inner) => collect(&name, inner, found),
            toml::Value::String(text) => found.push((name, text.clone())),
            _ => {}
        }
    }
}

/// The sentence of a statement, without a capital at its start and a period at its end. Statements with an unknown code,
/// such as from a later version, are shown with their values.
pub fn text(statement: &Statement) -> String {
    render(&statement.code, statement).unwrap_or_else(|| statement.to_string())
}

/// The hint of a statement, if it has one.
pub fn hint(statement: &Statement) -> Option<String> {
    let hint = render(&format!("{}{HINT}", statement.code), statement);
    hint.filter(|hint| !hint.is_empty())
}

fn render(name: &str, statement: &Statement) -> Option<String> {
    let template = CATALOGUE.get_template(name).ok()?;
    let values = statement.values.iter();
    let values: BTreeMap<String, Shown> =
        values.map(|(name, value)| (name.clone(), shown(value))).collect();
    template.render(Shown::from(values)).ok()
}

/// Converts a value for templates.
fn shown(value: &Value) -> Shown {
    match value {
        Value::Flag(flag) => Shown::from(*flag),
        Value::Text(text) => Shown::from(text.as_str()),
        Value::List(values) => values.iter().map(shown).collect(),
        Value::Number(number) => Shown::from_object(Figure(*number)),
        Value::Statement(statement) => Shown::from_object(Part(statement.clone())),
        Value::Other(value) => Shown::from(value.to_string()),
    }
}

/// A number in a template.
#[derive(Debug)]
struct Figure(Number);

impl Object for Figure {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A nested statement in a template, with its values, its `code` and its `hint`.
#[derive(Debug)]
struct Part(Statement);

impl Object for Part {
    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Shown> {
        match key {
            "code" => Some(Shown::from(self.0.code.as_str())),
            "hint" => hint(&self.0).map(Shown::from),
            key => self.0.values.get(key).map(shown),
        }
    }

    fn get_value(self: &Arc<Self>, key: &Shown) -> Option<Shown> {
        self.get_value_by_str(key.as_str()?)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn render(self: &Arc<Self>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text(&self.0))
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Adds texts to a document for programs: `text` (`message` for caveats) and `hint` next to each code and its values.
///
/// # Errors
/// [`serde_json::Error`] if the document cannot be written as JSON.
pub fn with_texts(document: &impl Serialize) -> Result<Json, serde_json::Error> {
    let mut json = serde_json::to_value(document)?;
    add_texts(&mut json, "text");
    Ok(json)
}

fn add_texts(json: &mut Json, name: &str) {
    match json {
        Json::Array(values) => values.iter_mut().for_each(|one| add_texts(one, name)),
        Json::Object(fields) => {
            for (key, value) in fields.iter_mut().filter(|(key, _)| *key != "values") {
                let name = if key == "caveats" { "message" } else { "text" };
                add_texts(value, name);
            }
            let is_statement = fields.contains_key("code") && fields.contains_key("values");
            let statement = is_statement
                .then(|| serde_json::from_value::<Statement>(Json::Object(fields.clone())));
            if let Some(Ok(statement)) = statement {
                fields.insert(name.to_owned(), text(&statement).into());
                if let Some(hint) = hint(&statement) {
                    fields.insert("hint".to_owned(), hint.into());
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
