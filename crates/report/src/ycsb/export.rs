//! Writes entries in the formats of YCSB's exporters.

use super::java_double::java_double;
use crate::error::ReportError;
use dyno_plan::ycsb::Exporter;

/// One value of the output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// For example `OVERALL` or `READ`.
    pub(crate) metric: String,
    /// Name within the block, such as `Operations`.
    pub(crate) measurement: String,
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

    /// A JSON number; values without a JSON number become strings, as in YCSB's library.
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
        // YCSB joins its objects without a separator, which is not valid JSON; here each object has its own line (JSON
        // Lines), which the same stream readers accept.
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
