//! Finds knob values in the parameters that a server reports.

use crate::deployment::engine_configuration;
use dyno_plan::knobs::{ENGINE_CONFIGURATION, Knob};
use serde_json::Value;

/// Placeholder for the value in the text of a knob.
const PLACE: &str = "{}";

/// Value of a knob on a server.
#[derive(Debug, PartialEq)]
pub(super) enum Reported {
    Value(String),
    /// The places in its text have different values.
    Several,
    /// The server does not report it.
    Nothing,
}

/// Finds the value of a knob in the reported parameter.
pub(super) fn value_of(knob: &Knob, reported: &str) -> Reported {
    let Some(text) = &knob.text else {
        return Reported::Value(reported.to_owned());
    };
    let found = match document(text) {
        Some(text) => in_document(&text, serde_json::from_str(reported).ok().as_ref()),
        None if knob.runtime_parameter() == Some(ENGINE_CONFIGURATION) => {
            engine_configuration::placed(text, PLACE, reported)
        }
        None => vec![engine_configuration::within(text, PLACE, reported)],
    };
    let Some(found) = found.into_iter().collect::<Option<Vec<String>>>() else {
        return Reported::Nothing;
    };
    match found.split_first() {
        None => Reported::Nothing,
        Some((first, others)) if others.iter().all(|other| other == first) => {
            Reported::Value(first.clone())
        }
        Some(_) => Reported::Several,
    }
}

/// The text of a knob as a document, if it is one, with a string at the value's place.
fn document(text: &str) -> Option<Value> {
    let bare = text.replace(PLACE, &format!("\"{PLACE}\""));
    let parsed = serde_json::from_str(&bare).or_else(|_| serde_json::from_str(text));
    parsed.ok().filter(Value::is_object)
}

/// The values of another document at the places in this one; `None` for missing ones.
fn in_document(text: &Value, reported: Option<&Value>) -> Vec<Option<String>> {
    match text {
        Value::String(text) if text == PLACE => vec![reported.and_then(plain)],
        Value::Object(fields) => {
            let inner = fields.iter().flat_map(|(name, inner)| {
                in_document(inner, reported.and_then(|reported| reported.get(name)))
            });
            inner.collect()
        }
        _ => Vec::new(),
    }
}

/// A scalar as people write it; otherwise `None`.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}
