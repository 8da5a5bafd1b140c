//! Finds documents that neither dyno nor YCSB wrote, before a collection is dropped.

use super::{end, first_batch, first_document, setup};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, Document, doc};
use dyno_plan::model::DataPlan;

/// Random documents, in addition to the first and last one.
const DRAWN: i32 = 100;

/// Codes of servers that do not know the command or the stage: `CommandNotFound`, `CommandNotSupported`,
/// `NotImplemented`, and the code for an unknown stage.
const UNKNOWN: [i32; 4] = [59, 115, 238, 40_324];

/// Time limit for checking all keys, at about two million keys per second.
const KEYS_LIMIT_MS: i32 = 10_000;

/// Foreign documents in a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Key of such a document, as text.
    pub key: Option<String>,
    /// Whether all keys were checked; otherwise, only the first, the last and a hundred random documents were.
    pub all_keys_checked: bool,
}

/// Looks for foreign documents: by key among all documents, and by fields in the first, the last and a hundred random
/// documents.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails or reading documents is not allowed.
pub fn foreign(control: &mut Control, data: &DataPlan) -> Result<Foreign, LoadError> {
    if let Some(key) = sampled(control, data)? {
        return Ok(Foreign { key: Some(key), all_keys_checked: false });
    }
    let found = match control.run(&data.database, other_keys(data)) {
        // The time limit was exceeded, or the server cannot compare keys.
        Err(error) if error.code().is_some() => None,
        reply => Some(reply.map_err(|error| setup("read the keys of the collection", error))?),
    };
    let batch = found.as_ref().and_then(first_batch);
    let first = batch.and_then(|batch| batch.first());
    let first = first.and_then(Bson::as_document);
    // A server that ignores the key filter finds our own keys.
    let is_known = batch.is_some() && first.is_none_or(|document| !is_ours(document, data));
    Ok(Foreign { key: first.filter(|_| is_known).map(key_text), all_keys_checked: is_known })
}

/// Find command for a foreign key, using the index.
fn other_keys(data: &DataPlan) -> Document {
    let prefixes = [&data.key_prefix, "user"].map(|prefix| {
        let escape = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_string(),
            false => format!("\\{c}"),
        };
        prefix.chars().map(escape).collect::<String>()
    });
    // `$` would also match before a line break at the end.
    let ours = format!(r"^(?:{})-?[0-9]+\z", prefixes.join("|"));
    doc! {
        "find": &data.collection,
        "filter": { "_id": { "$not": { "$regex": ours } } },
        "projection": { "_id": 1 },
        "hint": { "_id": 1 },
        "limit": 1,
        "singleBatch": true,
        "maxTimeMS": KEYS_LIMIT_MS,
    }
}

fn sampled(control: &mut Control, data: &DataPlan) -> Result<Option<String>, LoadError> {
    let mut documents = Vec::new();
    for direction in [1, -1] {
        documents.extend(first_document(control, data, end(data, direction))?);
    }
    let draw = doc! { "$sample": { "size": DRAWN } };
    let command = doc! {
        "aggregate": &data.collection, "pipeline": [draw], "cursor": { "batchSize": DRAWN },
    };
    let intent = "draw documents of the collection";
    let reply = match control.run(&data.database, command) {
        Err(error) if error.code().is_some_and(|code| UNKNOWN.contains(&code)) => Document::new(),
        reply => reply.map_err(|error| setup(intent, error))?,
    };
    let drawn = first_batch(&reply).into_iter().flatten().filter_map(Bson::as_document);
    Ok(documents.iter().chain(drawn).find(|document| !is_ours(document, data)).map(key_text))
}

/// The key without quotes, because messages add their own.
fn key_text(document: &Document) -> String {
    match document.get("_id") {
        Some(Bson::String(key)) => key.clone(),
        Some(key) => key.to_string(),
        None => "a document without a key".into(),
    }
}

/// Whether key and fields have the names of the plan, or YCSB's default names.
fn is_ours(document: &Document, data: &DataPlan) -> bool {
    let is_numbered = |text: &str, prefixes: [&str; 2]| {
        prefixes.iter().any(|prefix| {
            text.strip_prefix(prefix).is_some_and(|number| {
                let digits = number.strip_prefix('-').unwrap_or(number);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
    };
    document.iter().all(|(name, value)| match (name.as_str(), value) {
        ("_id", Bson::String(key)) => is_numbered(key, [&data.key_prefix, "user"]),
        ("_id", _) => false,
        (name, Bson::Binary(_) | Bson::String(_)) => {
            is_numbered(name, [&data.field_name_prefix, "field"])
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Binary;
    use bson::spec::BinarySubtype;

    #[test]
    fn prefix_is_taken_literally_when_keys_are_compared() {
        let mut data = dyno_plan::builtin::find("a").expect("it is built in").data;
        data.key_prefix = "a.b|".into();
        let command = other_keys(&data);
        let filter = command.get_document("filter").unwrap();
        let key = filter.get_document("_id").unwrap();
        let regex = key.get_document("$not").unwrap().get_str("$regex").unwrap();
        assert_eq!(regex, r"^(?:a\.b\||user)-?[0-9]+\z");
    }

    #[test]
    fn a_key_is_shown_without_quotes() {
        assert_eq!(key_text(&doc! { "_id": "customer1" }), "customer1");
        assert_eq!(key_text(&doc! { "_id": 7 }), "7");
    }

    #[test]
    fn documents_of_benchmarks_are_recognized() {
        let mut data = dyno_plan::builtin::find("a").expect("it is built in").data;
        let bytes = Binary { subtype: BinarySubtype::Generic, bytes: vec![1] };
        for own in [
            doc! { "_id": "user6284781860667377211", "field0": &bytes, "field9": &bytes },
            doc! { "_id": "user0", "field0": "text" },
            doc! { "_id": "user-17" },
        ] {
            assert!(is_ours(&own, &data), "{own}");
        }
        for foreign in [
            doc! { "_id": "customer1", "field0": &bytes },
            doc! { "_id": 1, "field0": &bytes },
            doc! { "_id": "user1", "name": "Ann" },
            doc! { "_id": "user1", "field0": 5 },
            doc! { "_id": "user1", "fieldname": &bytes },
            doc! { "_id": "username" },
        ] {
            assert!(!is_ours(&foreign, &data), "{foreign}");
        }
        data.key_prefix = "customer".into();
        assert!(is_ours(&doc! { "_id": "customer1", "field0": &bytes }, &data));
    }
}
