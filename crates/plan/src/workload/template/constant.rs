//! Values of types that JSON does not have: wrappers of Extended JSON, and constructors of mongosh, which become wrappers.
//! The crate `bson` converts wrappers.

use super::error::{Mistake, TemplateErrorKind as Kind, shortened};
use super::tree::{Entry, Node, NodeKind};
use crate::nearest::nearest;
use bson::{Bson, DateTime};
use serde_json::{Map, Value as Json, json};

/// Keys that make a document a wrapper. None of them is an operator of MongoDB.
const WRAPPERS: [&str; 16] = [
    "$oid",
    "$symbol",
    "$regularExpression",
    "$numberInt",
    "$numberLong",
    "$numberDouble",
    "$numberDecimal",
    "$binary",
    "$uuid",
    "$code",
    "$timestamp",
    "$date",
    "$minKey",
    "$maxKey",
    "$dbPointer",
    "$undefined",
];

/// Words and constructors that may begin a value.
pub(super) const NAMES: [&str; 22] = [
    "true",
    "false",
    "null",
    "undefined",
    "NaN",
    "Infinity",
    "ObjectId",
    "ISODate",
    "Date",
    "UUID",
    "NumberInt",
    "NumberLong",
    "NumberDecimal",
    "Int32",
    "Long",
    "Double",
    "Decimal128",
    "Timestamp",
    "BinData",
    "RegExp",
    "MinKey",
    "MaxKey",
];

/// A value that has a name.
pub(super) fn named(word: &str) -> Option<Bson> {
    Some(match word {
        "true" => Bson::Boolean(true),
        "false" => Bson::Boolean(false),
        "null" => Bson::Null,
        "undefined" => Bson::Undefined,
        "NaN" => Bson::Double(f64::NAN),
        "Infinity" => Bson::Double(f64::INFINITY),
        _ => return None,
    })
}

/// The value of a constructor such as `ObjectId("…")`. `arguments` is an array.
pub(super) fn constructed(offset: usize, name: &str, arguments: NodeKind) -> Result<Bson, Mistake> {
    let NodeKind::Array(nodes) = arguments else { unreachable!("arguments are read as an array") };
    let mut arguments = Vec::new();
    for node in &nodes {
        arguments.push(json_of(node)?);
    }
    let misfit = |expected: &str| {
        Mistake::new(
            offset,
            Kind::Form,
            format!("other arguments of `{name}`"),
            format!("`{expected}`"),
        )
    };
    let wrapper = match (name, arguments.as_slice()) {
        ("ObjectId", [Json::String(text)]) => json!({ "$oid": text }),
        ("ObjectId", []) => {
            return Err(misfit("ObjectId(\"24 digits\")").suggest(Some("\"%objectid\"")));
        }
        ("ISODate" | "Date", [Json::String(text)]) => json!({ "$date": complete_date(text) }),
        ("ISODate" | "Date", []) => {
            return Err(misfit("ISODate(\"2026-01-31\")").suggest(Some("\"%now\"")));
        }
        ("UUID", [Json::String(text)]) => json!({ "$uuid": text }),
        ("UUID", []) => return Err(misfit("UUID(\"…\")").suggest(Some("\"%uuid\""))),
        ("NumberInt" | "Int32", [number]) => json!({ "$numberInt": digits(number) }),
        ("NumberLong" | "Long", [number]) => json!({ "$numberLong": digits(number) }),
        ("Double", [number]) => json!({ "$numberDouble": digits(number) }),
        ("NumberDecimal" | "Decimal128", [number]) => json!({ "$numberDecimal": digits(number) }),
        ("Timestamp", [Json::Object(parts)]) => json!({ "$timestamp": parts }),
        ("Timestamp", [time, increment]) => json!({ "$timestamp": { "t": time, "i": increment } }),
        ("BinData", [Json::Number(subtype), Json::String(text)]) => {
            let subtype = subtype.as_u64().and_then(|number| u8::try_from(number).ok());
            let subtype = subtype.ok_or_else(|| misfit("BinData(0, \"base64\")"))?;
            json!({ "$binary": { "base64": text, "subType": format!("{subtype:02x}") } })
        }
        ("RegExp", [Json::String(pattern)]) => return regular_expression(offset, pattern, ""),
        ("RegExp", [Json::String(pattern), Json::String(options)]) => {
            return regular_expression(offset, pattern, options);
        }
        ("MinKey", []) => json!({ "$minKey": 1 }),
        ("MaxKey", []) => json!({ "$maxKey": 1 }),
        (known, _) if NAMES.contains(&known) => return Err(misfit(usage(known))),
        _ => {
            let found = format!("`{}(`", shortened(name));
            let mistake = Mistake::new(
                offset,
                Kind::UnknownName,
                found,
                "a value or a constructor of mongosh",
            );
            return Err(mistake.suggest(nearest(name, NAMES)));
        }
    };
    converted(offset, wrapper)
}

/// How a constructor is used.
fn usage(name: &str) -> &'static str {
    match name {
        "ObjectId" => "ObjectId(\"24 digits\")",
        "ISODate" | "Date" => "ISODate(\"2026-01-31\")",
        "UUID" => "UUID(\"…\")",
        "Timestamp" => "Timestamp(seconds, increment)",
        "BinData" => "BinData(0, \"base64\")",
        "RegExp" => "RegExp(\"pattern\", \"options\")",
        "MinKey" => "MinKey()",
        "MaxKey" => "MaxKey()",
        _ => "NumberLong(5), or the like with one number",
    }
}

/// The value of a wrapper of Extended JSON; `None` if the document is not a wrapper.
pub(super) fn extended_json(offset: usize, entries: &[Entry]) -> Result<Option<Bson>, Mistake> {
    let Some(first) = entries.first().filter(|first| WRAPPERS.contains(&first.key.as_str())) else {
        return Ok(None);
    };
    let mut wrapper = Map::new();
    for entry in entries {
        wrapper.insert(entry.key.clone(), json_of(&entry.value)?);
    }
    let value = &mut wrapper[&first.key];
    if first.key.starts_with("$number") {
        *value = Json::String(digits(value));
    } else if first.key == "$date"
        && let Json::String(text) = value
    {
        *text = complete_date(text);
    }
    converted(offset, Json::Object(wrapper)).map(Some)
}

/// A regular expression as a value.
pub(super) fn regular_expression(
    offset: usize,
    pattern: &str,
    options: &str,
) -> Result<Bson, Mistake> {
    converted(offset, json!({ "$regularExpression": { "pattern": pattern, "options": options } }))
}

/// Milliseconds since 1970 of a date such as `2026-01-31`, `2026-01-31T12:00` or `2026-01-31T12:00:00.5+02:00`; UTC if it
/// does not name an offset.
pub(super) fn date_ms(text: &str) -> Option<i64> {
    DateTime::parse_rfc3339_str(complete_date(text)).ok().map(DateTime::timestamp_millis)
}

/// Adds the parts that RFC 3339 requires and a date in mongosh may lack.
fn complete_date(text: &str) -> String {
    let has_offset = text.get(10..).is_some_and(|time| time.contains(['Z', 'z', '+', '-']));
    match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 if !has_offset => format!("{text}:00Z"),
        19.. if !has_offset => format!("{text}Z"),
        _ => text.to_owned(),
    }
}

/// The digits of a number, with or without quotes.
fn digits(number: &Json) -> String {
    match number {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn converted(offset: usize, wrapper: Json) -> Result<Bson, Mistake> {
    let found = shortened(&wrapper.to_string());
    Bson::try_from(wrapper).map_err(|error| {
        let reason = error.message.unwrap_or_else(|| error.kind.to_string());
        Mistake::new(
            offset,
            Kind::Form,
            format!("`{found}`"),
            format!("valid Extended JSON: {reason}"),
        )
    })
}

/// A constant as JSON, with wrappers for values that JSON does not have.
fn json_of(node: &Node) -> Result<Json, Mistake> {
    Ok(match &node.kind {
        NodeKind::Text(text) => Json::String(text.clone()),
        NodeKind::Constant(constant) => constant.clone().into_relaxed_extjson(),
        NodeKind::Array(nodes) => Json::Array(nodes.iter().map(json_of).collect::<Result<_, _>>()?),
        NodeKind::Document(entries) => {
            let mut map = Map::new();
            for entry in entries {
                if entry.key.starts_with('%') {
                    let found = format!("the generator `{}`", shortened(&entry.key));
                    return Err(Mistake::new(entry.offset, Kind::Form, found, "a constant"));
                }
                map.insert(entry.key.clone(), json_of(&entry.value)?);
            }
            Json::Object(map)
        }
    })
}
