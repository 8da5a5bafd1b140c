//! Compares a plan file with the JSON schema of plans.

use crate::nearest::nearest;
use crate::problem::{Problem, ProblemKind};
use crate::storage::Storage;
use crate::units::{Bytes, CacheSize, Rate, Span};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Tags that select the variant of a table.
const TAGS: [&str; 2] = ["distribution", "kind"];

/// Checks all keys and values of a file's table against a schema.
///
/// # Errors
/// All problems, each with its place.
pub(super) fn check(schema: &Value, text: &str, table: &DeTable<'_>) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    Checker { text, root: schema, problems: &mut problems }.check_table(schema, table, "", 0);
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Line and column of a byte offset, from 1.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    (line, column)
}

/// Walks the file and the schema in parallel.
struct Checker<'a> {
    text: &'a str,
    root: &'a Value,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn report(&mut self, offset: usize, key: &str, message: String, hint: Option<String>) {
        self.report_as(ProblemKind::Wrong, offset, key, message, hint);
    }

    fn report_as(
        &mut self,
        kind: ProblemKind,
        offset: usize,
        key: &str,
        message: String,
        hint: Option<String>,
    ) {
        let (line, column) = position(self.text, offset);
        let problem = Problem::new(message).about([key]).at(line, column);
        self.problems.push(Problem { hint, kind, ..problem });
    }

    fn report_missing(&mut self, offset: usize, key: &str, hint: Option<String>) {
        let message = format!("`{key}` is missing");
        self.report_as(ProblemKind::Missing, offset, key, message, hint);
    }

    fn check_table(&mut self, schema: &Value, table: &DeTable<'_>, path: &str, offset: usize) {
        let properties = schema["properties"].as_object();
        for (name, value) in table.iter() {
            let key = join(path, name.get_ref());
            match properties.and_then(|properties| properties.get(name.get_ref().as_ref())) {
                Some(schema) => self.check(schema, value, &key),
                None if schema["additionalProperties"].is_object() => {
                    self.check(&schema["additionalProperties"], value, &key);
                }
                None => {
                    let known = properties.into_iter().flat_map(|properties| properties.keys());
                    let known: Vec<&str> = known.map(String::as_str).collect();
                    let hint = self.advice(path, name.get_ref(), &known, value.get_ref());
                    let message = format!("unknown key `{key}`");
                    self.report_as(ProblemKind::Unknown, name.span().start, &key, message, hint);
                }
            }
        }
        for required in
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
        {
            if !table.contains_key(required) {
                let key = join(path, required);
                let hint = (key == "price.per_h")
                    .then(|| "a price has both: `--price '0.504 USD/h'`".to_owned());
                self.report_missing(offset, &key, hint);
            }
        }
    }

    /// Advice for an unknown key: a known key of its table with a similar name, else keys of any
    /// table with such a last part.
    fn advice(
        &self,
        path: &str,
        name: &str,
        known: &[&str],
        value: &DeValue<'_>,
    ) -> Option<String> {
        let near = nearest(name, known.iter().copied()).map(|near| join(path, near));
        if path == "operations" {
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let known = known.join(", ");
            return Some(format!(
                "{near}the operations are {known}; own operations are a list, `[[operations]]`, see docs/workloads.md"
            ));
        }
        let meant = match near {
            Some(near) => vec![near],
            None => alike(self.root, path, last_name(name, value)),
        };
        let quoted: Vec<String> = meant.iter().map(|key| format!("`{key}`")).collect();
        (!meant.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
    }

    fn check(&mut self, schema: &Value, value: &Spanned<DeValue<'_>>, path: &str) {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            return match name {
                "Span" => self.check_parsed::<Span>(value, path),
                "Rate" => self.check_parsed::<Rate>(value, path),
                "Bytes" => self.check_parsed::<Bytes>(value, path),
                "CacheSize" => self.check_parsed::<CacheSize>(value, path),
                "Storage" => self.check_parsed::<Storage>(value, path),
                _ => self.check(&self.root["$defs"][name], value, path),
            };
        }
        if let Some(variants) = schema["anyOf"].as_array() {
            return self.check_any(variants, value, path);
        }
        if let Some(variants) = schema["oneOf"].as_array() {
            return self.check_variants(variants, value, path);
        }
        if let Some(allowed) = schema["enum"].as_array() {
            return self.check_choice(
                &allowed.iter().filter_map(Value::as_str).collect::<Vec<_>>(),
                value,
                path,
            );
        }
        self.check_plain(schema, value, path);
    }

    /// Checks an optional value, a switch that may be a table, or a text that may be a list. TOML
    /// has no null, so another variant is meant.
    fn check_any(&mut self, variants: &[Value], value: &Spanned<DeValue<'_>>, path: &str) {
        let present: Vec<&Value> =
            variants.iter().filter(|variant| variant["type"] != "null").collect();
        if let [only] = present[..] {
            return self.check(only, value, path);
        }
        let fits = |variant: &&&Value| match value.get_ref() {
            DeValue::Table(_) => variant["$ref"].is_string(),
            DeValue::Boolean(_) => variant["type"] == "boolean",
            DeValue::Integer(_) => variant["type"] == "integer",
            DeValue::String(_) => variant["type"] == "string",
            DeValue::Array(_) => variant["type"] == "array",
            _ => false,
        };
        match present.iter().find(fits) {
            Some(variant) => self.check(variant, value, path),
            None if present.iter().any(|variant| variant["type"] == "array") => {
                self.wrong_type(value, path, "a text or a list of texts");
            }
            None => self.wrong_type(value, path, "true, false or a table"),
        }
    }

    fn check_parsed<T>(&mut self, value: &Spanned<DeValue<'_>>, path: &str)
    where
        T: FromStr<Err: Display>,
    {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_string(),
            DeValue::Float(number) => number.as_str().to_string(),
            _ => return self.wrong_type(value, path, "a text such as \"10s\" or a number"),
        };
        if let Err(error) = text.parse::<T>() {
            self.report(value.span().start, path, format!("`{path}`: {error}"), None);
        }
    }

    fn check_variants(&mut self, variants: &[Value], value: &Spanned<DeValue<'_>>, path: &str) {
        let names: Vec<&str> =
            variants.iter().filter_map(|variant| variant["const"].as_str()).collect();
        if names.len() == variants.len() {
            return self.check_choice(&names, value, path);
        }
        let DeValue::Table(table) = value.get_ref() else {
            return self.wrong_type(value, path, "a table");
        };
        let tag = TAGS.iter().find(|tag| variants[0]["properties"][**tag]["const"].is_string());
        let Some(tag) = tag else { return };
        let allowed: Vec<&str> = variants
            .iter()
            .filter_map(|variant| variant["properties"][*tag]["const"].as_str())
            .collect();
        let key = join(path, tag);
        let Some(chosen) = table.get(*tag) else {
            let hint = format!("one of {}", allowed.join(", "));
            return self.report_missing(value.span().start, &key, Some(hint));
        };
        let before = self.problems.len();
        self.check_choice(&allowed, chosen, &key);
        if self.problems.len() > before {
            return;
        }
        let variant = variants.iter().find(|variant| {
            Some(variant["properties"][*tag]["const"].as_str()) == Some(chosen.get_ref().as_str())
        });
        if let Some(variant) = variant {
            let mut open = variant.clone();
            open["properties"][*tag] = Value::Object(Map::new());
            self.check_table(&open, table, path, value.span().start);
        }
    }

    fn check_choice(&mut self, allowed: &[&str], value: &Spanned<DeValue<'_>>, path: &str) {
        let DeValue::String(text) = value.get_ref() else {
            let expected = format!("one of {}", allowed.join(", "));
            return self.wrong_type(value, path, &expected);
        };
        if !allowed.contains(&text.as_ref()) {
            let near = nearest(text, allowed.iter().copied());
            let hint = match near {
                Some(near) => format!("did you mean `{near}`? allowed: {}", allowed.join(", ")),
                None => format!("allowed: {}", allowed.join(", ")),
            };
            let message = format!("`{path}` is `{text}`");
            self.report(value.span().start, path, message, Some(hint));
        }
    }

    fn check_plain(&mut self, schema: &Value, value: &Spanned<DeValue<'_>>, path: &str) {
        // A variant's tag has an empty schema here because it has already been checked.
        let Some(kind) = plain_type(schema) else {
            return;
        };
        let found = value.get_ref();
        match (kind, found) {
            ("number", DeValue::Float(number))
                if !number.as_str().contains(|c: char| c.is_ascii_digit()) =>
            {
                let message =
                    format!("`{path}` is `{}`, but must be a finite number", number.as_str());
                self.report(value.span().start, path, message, None);
            }
            ("string", DeValue::String(_))
            | ("boolean", DeValue::Boolean(_))
            | ("number", DeValue::Integer(_) | DeValue::Float(_)) => {}
            ("integer", DeValue::Integer(number)) => {
                let parsed =
                    i128::from_str_radix(&number.as_str().replace('_', ""), number.radix());
                let (low, high) = integer_range(schema);
                if !parsed.is_ok_and(|number| (low..=high).contains(&number)) {
                    let message =
                        format!("`{path}` is `{}`, but must be {low} to {high}", number.as_str());
                    self.report(value.span().start, path, message, None);
                }
            }
            ("object", DeValue::Table(table)) => {
                self.check_table(schema, table, path, value.span().start);
            }
            ("array", DeValue::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.check(&schema["items"], item, &format!("{path}[{index}]"));
                }
            }
            _ => {
                let expected = match kind {
                    "string" => "a text",
                    "boolean" => "true or false",
                    "number" => "a number",
                    "integer" => "a whole number",
                    "array" => "a list",
                    _ => "a table",
                };
                self.wrong_type(value, path, expected);
            }
        }
    }

    fn wrong_type(&mut self, value: &Spanned<DeValue<'_>>, path: &str, expected: &str) {
        let found = value.get_ref().type_str();
        let message = format!("`{path}` must be {expected}, found {found}");
        self.report(value.span().start, path, message, None);
    }
}

/// The last name of an unknown key: below it, tables with a single key belong to its path.
fn last_name<'a>(name: &'a str, value: &'a DeValue<'_>) -> &'a str {
    let mut last = (name, value);
    while let DeValue::Table(table) = last.1
        && table.len() == 1
        && let Some((name, value)) = table.iter().next()
    {
        last = (name.get_ref().as_ref(), value.get_ref());
    }
    last.0
}

/// Least characters of a name that other names may contain.
const PART_CHARACTERS: usize = 4;

/// Most suggested keys.
const SUGGESTIONS: usize = 3;

/// Keys of all tables whose last part is `name`, contains `name`, or resembles `name`. Keys of the
/// table `path` come first.
fn alike(root: &Value, path: &str, name: &str) -> Vec<String> {
    let mut keys = Vec::new();
    collect_keys(root, root, "", &mut keys);
    keys.sort_by_key(|key| !key.starts_with(&format!("{path}.")));
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let name = name.to_lowercase();
    let near = nearest(&name, keys.iter().map(|key| key.rsplit('.').next().unwrap_or_default()));
    let near = near.map(str::to_owned);
    let is_same = |key: &&String| last(key) == name;
    let has_part = |key: &&String| name.len() >= PART_CHARACTERS && last(key).contains(&name);
    let is_near = |key: &&String| near.as_deref() == Some(last(key).as_str());
    let rules: [&dyn Fn(&&String) -> bool; 3] = [&is_same, &has_part, &is_near];
    let found: [Vec<String>; 3] =
        rules.map(|rule| keys.iter().filter(rule).take(SUGGESTIONS).cloned().collect());
    found.into_iter().find(|keys| !keys.is_empty()).unwrap_or_default()
}

/// Collects the keys of a schema and of its tables.
fn collect_keys(root: &Value, schema: &Value, path: &str, keys: &mut Vec<String>) {
    const DEEPEST: usize = 3;
    let named = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
    if let Some(name) = named {
        collect_keys(root, &root["$defs"][name], path, keys);
    }
    for list in ["anyOf", "oneOf"] {
        let variants = schema[list].as_array().into_iter().flatten();
        variants.for_each(|variant| collect_keys(root, variant, path, keys));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let key = join(path, name);
        if !keys.contains(&key) {
            keys.push(key.clone());
        }
        if key.split('.').count() < DEEPEST {
            collect_keys(root, schema, &key, keys);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

/// The type of a schema; for an optional schema, the type other than null.
fn plain_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// TOML's integers have 63 bits, so no range is wider.
fn integer_range(schema: &Value) -> (i128, i128) {
    let high = match schema["format"].as_str() {
        Some("uint32") => i128::from(u32::MAX),
        _ => i128::from(i64::MAX),
    };
    (schema["minimum"].as_i64().map_or(i128::from(i64::MIN), i128::from), high)
}
