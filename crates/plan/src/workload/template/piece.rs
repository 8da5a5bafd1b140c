//! Printed parts of a template, and constants as one would type them in mongosh.

use super::lexical::{is_word, literal, regular_expression_end};
use bson::spec::BinarySubtype;
use bson::{Bson, DateTime};
use serde_json::Value as Json;

/// Documents and arrays that fit into this many characters are printed in one line, as mongosh does it.
const LINE_WIDTH: usize = 72;

/// A printed value before it is broken into lines.
pub(super) enum Piece {
    Word(String),
    Document(Vec<(String, Piece)>),
    Array(Vec<Piece>),
}

impl Piece {
    pub(super) fn line(&self) -> String {
        match self {
            Piece::Word(word) => word.clone(),
            Piece::Document(fields) if fields.is_empty() => "{}".into(),
            Piece::Array(items) if items.is_empty() => "[]".into(),
            Piece::Document(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("{key}: {}", value.line())).collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Piece::Array(items) => {
                let items: Vec<String> = items.iter().map(Piece::line).collect();
                format!("[ {} ]", items.join(", "))
            }
        }
    }

    /// With line breaks, behind `indent` spaces.
    pub(super) fn broken(&self, indent: usize) -> String {
        let line = self.line();
        if indent + line.chars().count() <= LINE_WIDTH {
            return line;
        }
        let inner = indent + 2;
        let (open, close, items) = match self {
            Piece::Word(_) => return line,
            Piece::Document(fields) => {
                let items =
                    fields.iter().map(|(key, value)| format!("{key}: {}", value.broken(inner)));
                ('{', '}', items.collect::<Vec<_>>())
            }
            Piece::Array(items) => {
                ('[', ']', items.iter().map(|item| item.broken(inner)).collect())
            }
        };
        let separator = format!(",\n{:inner$}", "");
        format!("{open}\n{:inner$}{}\n{:indent$}{close}", "", items.join(&separator), "")
    }
}

/// A string that is not a value of the template, such as a path.
pub(super) fn word(text: &str) -> Piece {
    Piece::Word(quoted(text))
}

pub(super) fn of_constant(constant: &Bson) -> Piece {
    Piece::Word(match constant {
        Bson::Document(document) => {
            let fields = document.iter().map(|(key, value)| (literal_key(key), of_constant(value)));
            return Piece::Document(fields.collect());
        }
        Bson::Array(items) => return Piece::Array(items.iter().map(of_constant).collect()),
        Bson::String(text) => quoted(&literal(text)),
        Bson::Double(double) if double.is_nan() => "NaN".into(),
        Bson::Double(double) if double.is_infinite() => {
            if *double > 0.0 { "Infinity" } else { "-Infinity" }.into()
        }
        Bson::Double(double) => format!("{double:?}"),
        Bson::Boolean(boolean) => boolean.to_string(),
        Bson::Null => "null".into(),
        Bson::Undefined => "undefined".into(),
        Bson::Int32(integer) => integer.to_string(),
        Bson::Int64(integer) => match i32::try_from(*integer) {
            Ok(small) => format!("NumberLong({small})"),
            Err(_) => format!("NumberLong({})", quoted(&integer.to_string())),
        },
        Bson::Decimal128(decimal) => format!("NumberDecimal({})", quoted(&decimal.to_string())),
        Bson::ObjectId(id) => format!("ObjectId({})", quoted(&id.to_hex())),
        Bson::Timestamp(timestamp) => {
            format!("Timestamp({}, {})", timestamp.time, timestamp.increment)
        }
        Bson::MinKey => "MinKey()".into(),
        Bson::MaxKey => "MaxKey()".into(),
        Bson::DateTime(date) => match date_text(date.timestamp_millis()) {
            Some(text) => format!("ISODate({})", quoted(&text)),
            None => return of_wrapper(constant),
        },
        Bson::Binary(binary) => match (binary.subtype, binary.to_uuid()) {
            (BinarySubtype::Uuid, Ok(uuid)) => format!("UUID({})", quoted(&uuid.to_string())),
            _ => return of_wrapper(constant),
        },
        Bson::RegularExpression(regex) => {
            let (pattern, options) = (regex.pattern.as_str(), regex.options.as_str());
            if !is_typed_as_literal(pattern, options) {
                return of_wrapper(constant);
            }
            format!("/{pattern}/{options}")
        }
        _ => return of_wrapper(constant),
    })
}

/// Whether `/pattern/options` reads as this regular expression.
fn is_typed_as_literal(pattern: &str, options: &str) -> bool {
    let is_comment = pattern.is_empty() || pattern.starts_with(['*', '/']);
    let has_end = regular_expression_end(&format!("{pattern}/")) == Some(pattern.len());
    !is_comment && has_end && options.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The wrapper of Extended JSON. The relaxed form would lose dates behind the year 9999, and types of integers.
fn of_wrapper(constant: &Bson) -> Piece {
    of_json(&constant.clone().into_canonical_extjson())
}

fn of_json(json: &Json) -> Piece {
    match json {
        Json::Object(map) => Piece::Document(
            map.iter().map(|(key, value)| (key_text(key), of_json(value))).collect(),
        ),
        Json::Array(items) => Piece::Array(items.iter().map(of_json).collect()),
        Json::String(text) => Piece::Word(quoted(text)),
        other => Piece::Word(other.to_string()),
    }
}

/// The date in RFC 3339, if that has its year.
pub(super) fn date_text(time_ms: i64) -> Option<String> {
    let date = DateTime::from_millis(time_ms);
    let text = date.try_to_rfc3339_string().ok()?;
    // The conversion limits dates of other years.
    (DateTime::parse_rfc3339_str(&text).ok()? == date).then_some(text)
}

pub(super) fn literal_key(key: &str) -> String {
    key_text(&literal(key))
}

fn key_text(key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(is_word);
    if is_plain { key.to_owned() } else { quoted(key) }
}

/// In single quotes; in double quotes if that saves escapes.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', quote]),
            _ if u32::from(character) < 0x20 || character == '\u{7f}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    out.push(quote);
    out
}
