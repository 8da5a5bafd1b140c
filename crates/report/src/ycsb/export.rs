//! Writes entries in the forms of YCSB's exporters.

use super::java_double::java_double;
use crate::error::ReportError;
use dyno_plan::ycsb::Exporter;

/// One value of the output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The block: `OVERALL`, `READ`.
    pub(crate) metric: String,
    /// The name in the block: `Operations`.
    pub(crate) measurement: String,
    /// The value.
    pub(crate) value: Number,
}

/// A Java number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// `int` or `long`.
    Integer(u64),
    /// `double`.
    Double(f64),
}

impl Number {
    fn text(self) -> String {
        match self {
            Number::Integer(value) => value.to_string(),
            Number::Double(value) => java_double(value),
        }
    }

    /// A JSON number; what JSON has no number for becomes a string, as YCSB's library does it.
    fn json(self) -> String {
        match self {
            Number::Double(value) if !value.is_finite() => format!("\"{}\"", java_double(value)),
            _ => self.text(),
        }
    }
}

/// All entries as text.
pub(crate) fn write(entries: &[Entry], exporter: Exporter) -> Result<String, ReportError> {
    match exporter {
        Exporter::Text => Ok(entries.iter().map(text_line).collect()),
        // YCSB joins its objects without a separator, which is no JSON document; here each object
        // has its line (JSON Lines), which the same stream readers accept.
        Exporter::Json => {
            let objects: Vec<String> = json_objects(entries)?;
            Ok(objects.iter().map(|object| format!("{object}\n")).collect())
        }
        Exporter::JsonArray => {
            let objects = json_objects(entries)?;
            Ok(format!("[\n  {}\n]\n", objects.join(",\n  ")))
        }
    }
}

fn text_line(entry: &Entry) -> String {
    let value = entry.value.text();
    format!("[{}], {}, {value}\n", entry.metric, entry.measurement)
}

fn json_objects(entries: &[Entry]) -> Result<Vec<String>, ReportError> {
    let object = |entry: &Entry| {
        Ok(format!(
            "{{\"metric\":{},\"measurement\":{},\"value\":{}}}",
            serde_json::to_string(&entry.metric)?,
            serde_json::to_string(&entry.measurement)?,
            entry.value.json()
        ))
    };
    entries.iter().map(object).collect()
}
