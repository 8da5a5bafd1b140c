//! Documents as `mongosh` shows them, in one line.

use bson::spec::BinarySubtype;
use bson::{Bson, Document};
use std::fmt::Write;

/// The document as `mongosh` shows it, which `mongosh` also reads.
pub(super) fn shown(document: &Document) -> String {
    let mut out = String::new();
    write_document(&mut out, document);
    out
}

fn write_document(out: &mut String, document: &Document) {
    list(out, ["{ ", " }", "{}"], document, |out, (name, value)| {
        if is_identifier(name) {
            out.push_str(name);
        } else {
            write_text(out, name);
        }
        out.push_str(": ");
        write_value(out, value);
    });
}

/// Writes items between an opening and a closing text; without items, the third text.
fn list<T>(
    out: &mut String,
    [open, close, empty]: [&str; 3],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    let mut items = items.into_iter().peekable();
    if items.peek().is_none() {
        return out.push_str(empty);
    }
    out.push_str(open);
    let mut separator = "";
    for item in items {
        out.push_str(separator);
        write(out, item);
        separator = ", ";
    }
    out.push_str(close);
}

fn write_value(out: &mut String, value: &Bson) {
    let call = |out: &mut String, name: &str, argument: &str| {
        out.push_str(name);
        out.push('(');
        write_text(out, argument);
        out.push(')');
    };
    match value {
        Bson::Document(document) => write_document(out, document),
        Bson::Array(values) => list(out, ["[ ", " ]", "[]"], values, write_value),
        Bson::String(text) => write_text(out, text),
        Bson::Int64(number) => call(out, "Long", &number.to_string()),
        Bson::Decimal128(number) => call(out, "Decimal128", &number.to_string()),
        Bson::ObjectId(id) => call(out, "ObjectId", &id.to_hex()),
        Bson::DateTime(time) => match time.try_to_rfc3339_string() {
            Ok(text) => call(out, "ISODate", &text),
            Err(_) => call(out, "Date", &time.timestamp_millis().to_string()),
        },
        Bson::Binary(binary) if binary.subtype == BinarySubtype::Uuid => match binary.to_uuid() {
            Ok(uuid) => call(out, "UUID", &uuid.to_string()),
            Err(_) => write_other(out, value),
        },
        Bson::Int32(_) | Bson::Double(_) | Bson::Boolean(_) | Bson::Null => {
            // Writing to a text cannot fail.
            let _ = write!(out, "{value}");
        }
        _ => write_other(out, value),
    }
}

/// Values for which `mongosh` has no short form here.
fn write_other(out: &mut String, value: &Bson) {
    let extended = value.clone().into_relaxed_extjson();
    let _ = write!(out, "EJSON.deserialize({extended})");
}

fn write_text(out: &mut String, text: &str) {
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' | '\\' => out.extend(['\\', character]),
            character if character.is_control() => out.extend(character.escape_default()),
            character => out.push(character),
        }
    }
    out.push('\'');
}

/// Whether a name needs no quotes.
fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn values_have_the_forms_of_mongosh() {
        let document = doc! {
            "find": "orders",
            "filter": { "a.b": { "$gt": 5_i64 }, "it's": "it's" },
            "sort": { "placed": -1 },
            "list": [1, 2.5, true, Bson::Null],
            "placed": bson::DateTime::from_millis(1_767_225_600_000),
            "empty": [{}, []],
        };
        let expected = "{ find: 'orders', filter: { 'a.b': { $gt: Long('5') }, 'it\\'s': 'it\\'s' }, \
            sort: { placed: -1 }, list: [ 1, 2.5, true, null ], placed: ISODate('2026-01-01T00:00:00Z'), \
            empty: [ {}, [] ] }";
        assert_eq!(shown(&document), expected);
    }
}
