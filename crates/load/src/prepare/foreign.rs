//! Documents that neither this program nor YCSB has written: they are looked for before a collection is dropped.

use super::{end, first_batch, first_document, setup};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, Document, doc};
use dyno_plan::model::DataPlan;

/// Documents that are drawn at random, besides the first and the last one.
const DRAWN: i32 = 100;

/// Codes of servers that do not know the command or the stage: `CommandNotFound`, `CommandNotSupported`, `NotImplemented`, and
/// that of an unknown stage.
const UNKNOWN: [i32; 4] = [59, 115, 238, 40_324];

/// The key of a document of somebody else, as text, if the first, the last or one of a hundred at random is one.
///
/// # Errors
/// [`LoadError::Setup`] if the documents may not be read or the connection fails.
pub fn foreign_key(control: &mut Control, data: &DataPlan) -> Result<Option<String>, LoadError> {
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
    let batch = first_batch(&reply).into_iter().flatten();
    let drawn = batch.filter_map(Bson::as_document);
    let mut all = documents.iter().chain(drawn);
    Ok(all.find(|document| !is_ours(document, data)).map(key_text))
}

/// The key as it is: messages put it into quotes of their own.
fn key_text(document: &Document) -> String {
    match document.get("_id") {
        Some(Bson::String(key)) => key.clone(),
        Some(key) => key.to_string(),
        None => "a document without a key".into(),
    }
}

/// Whether key and fields have the names that YCSB gives them by default, or the plan.
fn is_ours(document: &Document, data: &DataPlan) -> bool {
    let is_numbered = |text: &str, prefixes: [&str; 2]| {
        prefixes.iter().any(|prefix| {
            text.strip_prefix(prefix).is_some_and(|number| {
                let digits = number.strip_prefix('-').unwrap_or(number);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
    };
    document
        .iter()
        .all(|(name, value)| match (name.as_str(), value) {
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
    fn a_key_is_told_without_quotes() {
        assert_eq!(key_text(&doc! { "_id": "customer1" }), "customer1");
        assert_eq!(key_text(&doc! { "_id": 7 }), "7");
    }

    #[test]
    fn documents_of_benchmarks_are_told_from_others() {
        let mut data = dyno_plan::builtin::find("a").expect("it is built in").data;
        let bytes = Binary {
            subtype: BinarySubtype::Generic,
            bytes: vec![1],
        };
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
        assert!(is_ours(
            &doc! { "_id": "customer1", "field0": &bytes },
            &data
        ));
    }
}
