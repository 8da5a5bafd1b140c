//! Own collections of a plan before and after the load: their documents, indexes and checks.

use super::{first_batch, number, number_at, optional, required, setup};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, Document, doc};
use dyno_plan::Plan;
use dyno_plan::workload::template::{self, Value};
use dyno_plan::workload::{BuildTime, Check, Collection, Expected, Index, constant_document};
use std::time::{Duration, Instant};

/// Documents of a check that are compared with a list. Further ones are only counted.
const COMPARED_DOCUMENTS: usize = 10_000;

/// The exact number of documents in each own collection, in the order of the plan.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails or counting documents is not allowed.
pub fn own_counts(control: &mut Control, plan: &Plan) -> Result<Vec<u64>, LoadError> {
    let collections = plan.data.collections.iter();
    collections.map(|collection| count(control, plan, collection)).collect()
}

fn count(control: &mut Control, plan: &Plan, collection: &Collection) -> Result<u64, LoadError> {
    let (database, name) = (&plan.data.database, &collection.name);
    let intent = format!("count the documents of `{database}.{name}`");
    let group = doc! { "$group": { "_id": null, "n": { "$sum": 1 } } };
    let command = doc! { "aggregate": name, "pipeline": [group], "cursor": {} };
    if let Some(reply) = optional(control, database, command, &intent)?
        && let Some(batch) = first_batch(&reply)
    {
        let group = batch.first().and_then(Bson::as_document);
        return Ok(group.and_then(|group| group.get("n").and_then(number)).unwrap_or(0));
    }
    let reply = required(control, database, doc! { "count": name }, intent)?;
    Ok(number_at(&reply, &["n"]).unwrap_or(0))
}

/// Creates the own collections that do not exist, with their options.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn create_own_collections(control: &mut Control, plan: &Plan) -> Result<(), LoadError> {
    for collection in &plan.data.collections {
        let mut command = doc! { "create": &collection.name };
        if let Some(options) = &collection.options {
            command.extend(constant(options)?);
        }
        let intent = format!("create the collection `{}.{}`", plan.data.database, collection.name);
        match control.run(&plan.data.database, command) {
            Err(error) if error.code() != Some(super::NAMESPACE_EXISTS) => {
                return Err(setup(intent, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Keys of all secondary indexes of own collections, such as `orders {customer: 1}`.
pub fn own_index_keys(plan: &Plan) -> Vec<String> {
    let collections = plan.data.collections.iter();
    let keys = collections.flat_map(|collection| {
        collection.indexes.iter().map(|index| shown_index(collection, &index.keys))
    });
    keys.collect()
}

fn shown_index(collection: &Collection, keys: &str) -> String {
    format!("{} {keys}", collection.name)
}

/// Creates the own indexes that are built at this time. Returns those that were missing, each with its time.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn create_own_indexes(
    control: &mut Control,
    plan: &Plan,
    build: BuildTime,
) -> Result<Vec<(String, Duration)>, LoadError> {
    let mut built = Vec::new();
    for collection in &plan.data.collections {
        for index in collection.indexes.iter().filter(|index| index.build == build) {
            let start = Instant::now();
            if create_index(control, plan, collection, index)? {
                built.push((shown_index(collection, &index.keys), start.elapsed()));
            }
        }
    }
    Ok(built)
}

/// Returns whether the index was missing.
fn create_index(
    control: &mut Control,
    plan: &Plan,
    collection: &Collection,
    index: &Index,
) -> Result<bool, LoadError> {
    let keys = constant(&index.keys)?;
    let mut specification = doc! { "name": index_name(&keys), "key": keys };
    if let Some(options) = &index.options {
        specification.extend(constant(options)?);
    }
    let command = doc! { "createIndexes": &collection.name, "indexes": [specification] };
    let intent = format!("create the index {} of `{}`", index.keys, collection.name);
    let reply = required(control, &plan.data.database, command, intent)?;
    let count = |name: &str| number_at(&reply, &[name]);
    let grown = count("numIndexesAfter").zip(count("numIndexesBefore"));
    Ok(grown.is_some_and(|(after, before)| after > before))
}

/// Name that the server would give: keys and directions, joined by `_`.
fn index_name(keys: &Document) -> String {
    let part = |(name, direction): (&String, &Bson)| match direction {
        Bson::String(kind) => format!("{name}_{kind}"),
        other => format!("{name}_{other}"),
    };
    keys.iter().map(part).collect::<Vec<_>>().join("_")
}

/// Drops the own collections with all their documents.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn drop_own_collections(control: &mut Control, plan: &Plan) -> Result<(), LoadError> {
    for collection in &plan.data.collections {
        let command = doc! { "drop": &collection.name };
        match control.run(&plan.data.database, command) {
            Err(error) if error.code() != Some(super::NAMESPACE_NOT_FOUND) => {
                let name = &collection.name;
                return Err(setup(format!("drop the collection `{name}`"), error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// Documents that the aggregation returned, at most 1000 of them.
    pub documents: u64,
    /// The first documents as relaxed Extended JSON, to show what was found.
    pub first: Vec<String>,
    pub is_as_expected: bool,
}

/// The cursor of a reply with further batches.
fn open_cursor(reply: &Document) -> Option<i64> {
    reply.get_document("cursor").ok()?.get_i64("id").ok().filter(|id| *id != 0)
}

/// Performs a check.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn run_check(
    control: &mut Control,
    plan: &Plan,
    check: &Check,
) -> Result<CheckResult, LoadError> {
    const SHOWN: usize = 3;
    let pipeline = constant_array(&check.aggregate)?;
    let command = doc! {
        "aggregate": &check.collection,
        "pipeline": pipeline,
        "cursor": {},
    };
    let intent = format!("perform the check `{}`", check.name);
    let database = &plan.data.database;
    let mut reply = required(control, database, command, intent.as_str())?;
    let mut found = first_batch(&reply).cloned().unwrap_or_default();
    let mut documents = found.len() as u64;
    while let Some(cursor) = open_cursor(&reply) {
        let command = doc! { "getMore": cursor, "collection": &check.collection };
        reply = required(control, database, command, intent.as_str())?;
        let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("nextBatch"));
        let batch = batch.map_or(&[][..], Vec::as_slice);
        documents += batch.len() as u64;
        let room = COMPARED_DOCUMENTS.saturating_sub(found.len());
        found.extend(batch.iter().take(room).cloned());
    }
    let shown = found.iter().take(SHOWN);
    Ok(CheckResult {
        documents,
        first: shown.map(|document| document.clone().into_relaxed_extjson().to_string()).collect(),
        is_as_expected: is_as_expected(&check.expect, &found, documents)?,
    })
}

/// Compares documents with a count, or with a list of documents. Numbers of all types are compared by value.
fn is_as_expected(expect: &str, found: &[Bson], documents: u64) -> Result<bool, LoadError> {
    if let Ok(count) = expect.parse::<Expected>() {
        return Ok(count.contains(documents));
    }
    let expected = constant_array(expect)?;
    let is_equal = |(found, expected): (&Bson, &Bson)| equals(found, expected);
    Ok(documents == expected.len() as u64 && found.iter().zip(&expected).all(is_equal))
}

fn equals(one: &Bson, other: &Bson) -> bool {
    let as_number = |value: &Bson| match *value {
        Bson::Int32(number) => Some(f64::from(number)),
        Bson::Int64(number) => Some(number as f64),
        Bson::Double(number) => Some(number),
        _ => None,
    };
    match (one, other) {
        (Bson::Document(one), Bson::Document(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((name, one), (other_name, other))| {
                    name == other_name && equals(one, other)
                })
        }
        (Bson::Array(one), Bson::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equals(one, other))
        }
        _ => match (as_number(one), as_number(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        },
    }
}

fn constant(text: &str) -> Result<Document, LoadError> {
    constant_document(text).map_err(|reason| LoadError::Workload { reason })
}

fn constant_array(text: &str) -> Result<Vec<Bson>, LoadError> {
    match template::parse(text) {
        Ok(Value::Constant(Bson::Array(values))) => Ok(values),
        _ => Err(LoadError::Workload { reason: format!("`{text}` is not an array") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_compares_counts_and_documents() {
        let found = [Bson::Document(doc! { "_id": null, "sum": 3.0, "all": [1, 2_i64] })];
        for (expect, holds) in [
            ("1", true),
            ("0", false),
            ("1..", true),
            ("[{_id: null, sum: 3, all: [1, 2]}]", true),
            ("[{_id: null, sum: 4, all: [1, 2]}]", false),
            ("[{_id: null, sum: 3}]", false),
            ("[]", false),
        ] {
            assert_eq!(
                is_as_expected(expect, &found, found.len() as u64).expect(expect),
                holds,
                "{expect}"
            );
        }
    }

    #[test]
    fn index_is_named_as_the_server_names_it() {
        assert_eq!(index_name(&doc! { "customer": 1, "placed": -1 }), "customer_1_placed_-1");
        assert_eq!(index_name(&doc! { "place": "2dsphere" }), "place_2dsphere");
    }
}
