//! Actions on a server before and after the load, over one blocking connection: query its properties, inspect, create
//! or drop the collection, and compare its content with the plan.
//!
//! A server need not know every command. Values that it does not report are `None`; only a failed connection is an
//! error. The caller decides how to handle a collection.

mod foreign;
mod form;
mod machine;
mod own;
mod tracing;

pub use foreign::{Foreign, foreign};
pub use form::{CollectionForm, expiring_index};
pub use machine::server_machine;
pub use own::{
    CheckResult, create_own_collections, create_own_indexes, drop_own_collections, own_counts,
    own_index_keys, run_check,
};
pub use tracing::{active_tracing, available_connections};

use crate::connect::{Control, ControlError};
use crate::data::integrity;
use crate::error::LoadError;
use crate::keys::KeyNames;
use bson::spec::BinarySubtype;
use bson::{Bson, Document, doc};
use dyno_plan::Plan;
use dyno_plan::model::{DataPlan, FieldLength, KeyOrder};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Server code for creating an existing collection.
const NAMESPACE_EXISTS: i32 = 48;
/// Server code for dropping a missing collection.
const NAMESPACE_NOT_FOUND: i32 = 26;
/// Server codes of a member that is shutting down or no longer primary. It keeps its connections after a step-down
/// (since MongoDB 4.2).
const STEPPED_DOWN: [i32; 7] = [91, 189, 10_107, 11_600, 11_602, 13_435, 13_436];

/// Properties that a server reports. `None` if not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Such as `7.0.14`.
    pub version: Option<String>,
    /// Name of the software, if it is not MongoDB's own or names its edition.
    pub product: Option<String>,
    pub storage_engine: Option<String>,
    /// Configured size of the storage engine's cache.
    pub cache_bytes: Option<u64>,
    /// Settings that the server was started with, by dotted name, without possible secrets.
    pub settings: BTreeMap<String, String>,
}

/// State of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionState {
    pub exists: bool,
    /// `Ordinary` if the server does not list its collections.
    pub form: CollectionForm,
    /// Exact number of documents.
    pub documents: u64,
    /// Uncompressed size of the documents.
    pub data_bytes: Option<u64>,
    /// Size on disk.
    pub storage_bytes: Option<u64>,
    pub sample: Sample,
}

/// Documents that show the structure of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// First and last document in key order; empty without documents.
    pub ends: Vec<Document>,
    /// Keys of the plan's first and last document, with the documents found.
    pub expected: Vec<(String, Option<Document>)>,
}

/// Parameters for periodic work of a server; `getCmdLineOpts` has them only if they were given.
const PERIODIC: [&str; 4] = [
    "diagnosticDataCollectionEnabled",
    "diagnosticDataCollectionPeriodMillis",
    "journalCommitInterval",
    "syncdelay",
];

/// Version of Percona Server: in its build information, and in the recorded settings.
const PSMDB_VERSION: &str = "psmdbVersion";

/// Queries the properties of a server.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails.
pub fn server_facts(control: &mut Control) -> Result<ServerFacts, LoadError> {
    let intent = "ask the server for its version and settings";
    let build = optional(control, "admin", doc! { "buildInfo": 1 }, intent)?.unwrap_or_default();
    // Without these sections, the reply is a few hundred kilobytes smaller.
    let status = doc! { "serverStatus": 1, "metrics": 0, "locks": 0, "repl": 0, "tcmalloc": 0 };
    let status = optional(control, "admin", status, intent)?.unwrap_or_default();
    let options =
        optional(control, "admin", doc! { "getCmdLineOpts": 1 }, intent)?.unwrap_or_default();
    let mut settings = BTreeMap::new();
    if let Ok(parsed) = options.get_document("parsed") {
        flatten(parsed, "", &mut settings);
    }
    let mut parameters = doc! { "getParameter": 1 };
    parameters.extend(PERIODIC.map(|name| (name.to_owned(), Bson::Int32(1))));
    let parameters = optional(control, "admin", parameters, intent)?.unwrap_or_default();
    for name in PERIODIC {
        if let Some(value) = parameters.get(name) {
            settings.insert(format!("parameter.{name}"), value.to_string());
        }
    }
    if let Some(version) = text_at(&build, &[PSMDB_VERSION]) {
        settings.insert(PSMDB_VERSION.to_owned(), version);
    }
    Ok(ServerFacts {
        version: text_at(&build, &["version"]),
        product: product(&build),
        storage_engine: text_at(&status, &["storageEngine", "name"]),
        cache_bytes: number_at(&status, &["wiredTiger", "cache", "maximum bytes configured"]),
        settings,
    })
}

/// Inspects the collection of a plan: its size and some of its documents.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails or reading documents is not allowed.
pub fn collection_state(control: &mut Control, plan: &Plan) -> Result<CollectionState, LoadError> {
    let sample = sample(control, plan)?;
    Ok(CollectionState { sample, ..collection_size(control, &plan.data)? })
}

/// Whether a command failed because its connection was lost (not because of a timeout), or because the server is
/// shutting down or no longer primary: then a new connection may help.
pub fn needs_new_connection(error: &LoadError) -> bool {
    let LoadError::Setup { source, .. } = error else {
        return false;
    };
    match source.downcast_ref::<ControlError>() {
        Some(ControlError::Io { source, .. }) => !matches!(
            source.kind(),
            ErrorKind::TimedOut | ErrorKind::WouldBlock | ErrorKind::Interrupted
        ),
        Some(ControlError::Server { code, .. }) => STEPPED_DOWN.contains(code),
        _ => false,
    }
}

/// Inspects the size of a plan's collection; the sample stays empty.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails or counting documents is not allowed.
pub fn collection_size(
    control: &mut Control,
    data: &DataPlan,
) -> Result<CollectionState, LoadError> {
    let documents = count(control, data)?;
    let form = form::form(control, data)?;
    let stats = doc! { "collStats": &data.collection };
    let intent = "ask for the size of the collection";
    let stats = optional(control, &data.database, stats, intent)?.unwrap_or_default();
    Ok(CollectionState {
        exists: form.as_ref().map_or(documents > 0, |found| found.is_some()),
        form: form.flatten().unwrap_or_default(),
        documents,
        data_bytes: number_at(&stats, &["size"]),
        storage_bytes: number_at(&stats, &["storageSize"]),
        sample: Sample::default(),
    })
}

/// Creates the collection of a plan, unless it exists.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn create_collection(control: &mut Control, data: &DataPlan) -> Result<(), LoadError> {
    change(control, data, "create", NAMESPACE_EXISTS)
}

/// Creates the secondary indexes of a plan, and returns how many were missing.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn create_indexes(control: &mut Control, data: &DataPlan) -> Result<u64, LoadError> {
    let index = |fields: Vec<&str>| {
        let key: Document =
            fields.iter().map(|name| ((*name).to_owned(), Bson::Int32(1))).collect();
        doc! { "key": key, "name": fields.join("_") }
    };
    let indexes: Vec<Document> = data.index_keys().map(index).collect();
    let command = doc! { "createIndexes": &data.collection, "indexes": indexes };
    let intent = "create the secondary indexes";
    let answer = control.run(&data.database, command).map_err(|error| setup(intent, error))?;
    let count = |name: &str| number_at(&answer, &[name]);
    let grown = count("numIndexesAfter").zip(count("numIndexesBefore"));
    Ok(grown.map_or(0, |(after, before)| after.saturating_sub(before)))
}

/// Drops the collection of a plan with all its documents, if it exists.
///
/// # Errors
/// [`LoadError::Setup`] if the server refuses or the connection fails.
pub fn drop_collection(control: &mut Control, data: &DataPlan) -> Result<(), LoadError> {
    change(control, data, "drop", NAMESPACE_NOT_FOUND)
}

/// Differences between a collection's documents and the plan's documents, one sentence each. `complete` says that all
/// documents of the plan should exist.
pub fn check_shape(plan: &Plan, sample: &Sample, complete: bool) -> Vec<String> {
    let data = &plan.data;
    let mut differences = Vec::new();
    let expected = sample.expected.iter().filter_map(|(_, document)| document.as_ref());
    for document in sample.ends.iter().chain(expected) {
        check_document(data, document, &mut differences);
    }
    if complete {
        for (key, _) in sample.expected.iter().filter(|(_, document)| document.is_none()) {
            differences.push(format!("document `{key}` of the plan does not exist"));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    differences.retain(|difference| seen.insert(difference.clone()));
    differences
}

/// The reply, or `None` if the server does not know or not allow the command.
fn optional(
    control: &mut Control,
    database: &str,
    command: Document,
    intent: &str,
) -> Result<Option<Document>, LoadError> {
    match control.run(database, command) {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(setup(intent, error)),
    }
}

fn required(
    control: &mut Control,
    database: &str,
    command: Document,
    intent: impl Into<String>,
) -> Result<Document, LoadError> {
    control.run(database, command).map_err(|error| setup(intent, error))
}

/// Runs a command that names only the collection; a failure with `code` means that nothing has to be done.
fn change(
    control: &mut Control,
    data: &DataPlan,
    verb: &str,
    is_done: i32,
) -> Result<(), LoadError> {
    match control.run(&data.database, doc! { verb: &data.collection }) {
        Err(error) if error.code() != Some(is_done) => {
            let intent = format!("{verb} the collection `{}.{}`", data.database, data.collection);
            Err(setup(intent, error))
        }
        _ => Ok(()),
    }
}

fn setup(intent: impl Into<String>, error: ControlError) -> LoadError {
    LoadError::Setup { intent: intent.into(), source: Box::new(error) }
}

/// Other servers report their name in the build information in various ways.
fn product(build: &Document) -> Option<String> {
    for name in ["secantus", "secantusVersion", "ferretdb", "ferretdbVersion", PSMDB_VERSION] {
        if build.contains_key(name) {
            return Some(name.trim_end_matches("Version").to_owned());
        }
    }
    let modules = build.get_array("modules").ok()?;
    modules.iter().filter_map(Bson::as_str).next().map(|module| format!("MongoDB {module}"))
}

fn text_at(document: &Document, path: &[&str]) -> Option<String> {
    value_at(document, path)?.as_str().map(str::to_owned)
}

/// Servers use various number types; negative numbers are not sizes.
fn number_at(document: &Document, path: &[&str]) -> Option<u64> {
    number(value_at(document, path)?)
}

fn number(value: &Bson) -> Option<u64> {
    match *value {
        Bson::Int32(number) => u64::try_from(number).ok(),
        Bson::Int64(number) => u64::try_from(number).ok(),
        Bson::Double(number) if (0.0..1e19).contains(&number) => Some(number as u64),
        _ => None,
    }
}

fn value_at<'a>(document: &'a Document, path: &[&str]) -> Option<&'a Bson> {
    let (last, parents) = path.split_last()?;
    let mut inner = document;
    for name in parents {
        inner = inner.get_document(name).ok()?;
    }
    inner.get(last)
}

/// Settings with these name endings are left out, because they may be secrets.
const SECRET_ENDINGS: [&str; 4] = ["password", "secret", "keyfile", "parameters"];

fn flatten(document: &Document, prefix: &str, settings: &mut BTreeMap<String, String>) {
    for (name, value) in document {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let lower = name.to_ascii_lowercase();
        if SECRET_ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
            continue;
        }
        match value {
            Bson::Document(inner) => flatten(inner, &path, settings),
            Bson::String(text) => {
                settings.insert(path, text.clone());
            }
            other => {
                settings.insert(path, other.to_string());
            }
        }
    }
}

fn count_intent(data: &DataPlan) -> String {
    format!("count the documents of `{}.{}`", data.database, data.collection)
}

/// Number of documents by the server's metadata: fast, but possibly wrong after the server was killed.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails or counting documents is not allowed.
pub fn estimated_count(control: &mut Control, data: &DataPlan) -> Result<u64, LoadError> {
    let command = doc! { "count": &data.collection };
    let reply = required(control, &data.database, command, count_intent(data))?;
    Ok(number_at(&reply, &["n"]).unwrap_or(0))
}

/// Number of documents. If the metadata differ from the plan, the documents are counted exactly.
fn count(control: &mut Control, data: &DataPlan) -> Result<u64, LoadError> {
    let estimate = estimated_count(control, data)?;
    if estimate == data.records {
        return Ok(estimate);
    }
    let intent = count_intent(data);
    let group = doc! { "$group": { "_id": null, "n": { "$sum": 1 } } };
    let command = doc! { "aggregate": &data.collection, "pipeline": [group], "cursor": {} };
    let reply = optional(control, &data.database, command, &intent)?;
    let batch = reply.as_ref().and_then(first_batch);
    Ok(match batch.map(|batch| batch.first().and_then(Bson::as_document)) {
        None => estimate,
        Some(None) => 0,
        Some(Some(group)) => group.get("n").and_then(number).unwrap_or(estimate),
    })
}

/// The first batch of a cursor.
fn first_batch(reply: &Document) -> Option<&Vec<Bson>> {
    let cursor = reply.get_document("cursor").ok()?;
    cursor.get_array("firstBatch").ok()
}

fn sample(control: &mut Control, plan: &Plan) -> Result<Sample, LoadError> {
    let data = &plan.data;
    let mut sample = Sample::default();
    for direction in [1, -1] {
        let first = first_document(control, data, end(data, direction))?;
        sample.ends.extend(first);
    }
    let count = data.insert_count.unwrap_or(data.records.saturating_sub(data.insert_start));
    let names = KeyNames::new(&data.key_prefix, data.key_order, data.zero_padding);
    for number in [data.insert_start, data.insert_start + count.saturating_sub(1)] {
        let mut key = Vec::new();
        names.write(number, &mut key);
        let key = String::from_utf8_lossy(&key).into_owned();
        let command = doc! { "find": &data.collection, "filter": { "_id": &key }, "limit": 1, "singleBatch": true };
        let found = first_document(control, data, command)?;
        sample.expected.push((key, found));
    }
    Ok(sample)
}

/// Find command for the first document in key order, or the last one with direction -1.
fn end(data: &DataPlan, direction: i32) -> Document {
    doc! { "find": &data.collection, "sort": { "_id": direction }, "limit": 1, "singleBatch": true }
}

fn first_document(
    control: &mut Control,
    data: &DataPlan,
    command: Document,
) -> Result<Option<Document>, LoadError> {
    let intent = format!("read from `{}.{}`", data.database, data.collection);
    let reply = required(control, &data.database, command, intent)?;
    let first = first_batch(&reply).and_then(|batch| batch.first());
    Ok(first.and_then(Bson::as_document).cloned())
}

fn check_document(data: &DataPlan, document: &Document, differences: &mut Vec<String>) {
    let key = match document.get("_id") {
        Some(Bson::String(key)) => key,
        other => {
            let found = other.map_or("nothing".into(), |value| format!("`{value}`"));
            differences.push(format!(
                "the key of a document is {found}, but the plan has texts that begin with `{}`",
                data.key_prefix
            ));
            return;
        }
    };
    if let Some(difference) = key_difference(data, key) {
        differences.push(difference);
        return;
    }
    let found = document.len().saturating_sub(1);
    if found != data.field_count as usize {
        differences.push(format!(
            "documents have {found} fields, but the plan has {} (found in `{key}`)",
            data.field_count
        ));
        return;
    }
    for field in 0..data.field_count {
        let name = format!("{}{field}", data.field_name_prefix);
        if let Some(difference) = field_difference(data, key, &name, document.get(&name)) {
            differences.push(difference);
            return;
        }
    }
}

fn key_difference(data: &DataPlan, key: &str) -> Option<String> {
    let prefix = &data.key_prefix;
    let digits = key.strip_prefix(prefix.as_str()).filter(|digits| {
        let unsigned = digits.trim_start_matches('0').strip_prefix('-').unwrap_or(digits);
        !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
    });
    let Some(digits) = digits else {
        return Some(format!("found the key `{key}`, but the plan has `{prefix}` and a number"));
    };
    if digits.len() < data.zero_padding as usize {
        return Some(format!(
            "found the key `{key}`, but the plan pads numbers to {} digits",
            data.zero_padding
        ));
    }
    // A hash is almost never as small as a document number, so the value shows the order.
    let number: u64 = digits.parse().ok()?;
    let far = u64::from(u32::MAX).max(data.records.saturating_mul(16));
    match data.key_order {
        KeyOrder::Ordered if number > far => Some(format!(
            "found the key `{key}`, which looks hashed, but the plan has ordered keys"
        )),
        KeyOrder::Hashed if data.records < 1 << 24 && number < data.records => Some(format!(
            "found the key `{key}`, which looks ordered, but the plan has hashed keys"
        )),
        _ => None,
    }
}

fn field_difference(
    data: &DataPlan,
    key: &str,
    name: &str,
    value: Option<&Bson>,
) -> Option<String> {
    let bytes = match value {
        None => return Some(format!("document `{key}` has no field `{name}`")),
        Some(Bson::Binary(binary)) if binary.subtype == BinarySubtype::Generic => &binary.bytes,
        Some(other) => {
            return Some(format!(
                "field `{name}` of `{key}` is `{other}`, but the plan has binary values"
            ));
        }
    };
    let length = bytes.len() as u64;
    let (shortest, longest) = length_bounds(&data.field_length);
    if !(shortest..=longest).contains(&length) {
        let planned = if shortest == longest {
            format!("{longest}")
        } else {
            format!("{shortest} to {longest}")
        };
        return Some(format!(
            "field `{name}` of `{key}` has {length} bytes, but the plan has {planned}"
        ));
    }
    if data.integrity && !integrity::verify(key.as_bytes(), name.as_bytes(), bytes) {
        return Some(format!("field `{name}` of `{key}` was not written with `data.integrity`"));
    }
    None
}

fn length_bounds(length: &FieldLength) -> (u64, u64) {
    match length {
        FieldLength::Constant { bytes } => (u64::from(*bytes), u64::from(*bytes)),
        FieldLength::Uniform { min_bytes, max_bytes }
        | FieldLength::Zipfian { min_bytes, max_bytes } => {
            (u64::from(*min_bytes), u64::from(*max_bytes))
        }
        FieldLength::Histogram { block_bytes, weights } => {
            let block = u64::from(*block_bytes);
            let used = |weight: &u64| *weight > 0;
            let first = weights.iter().position(used).map_or(0, |index| index as u64 + 1);
            let last = weights.iter().rposition(used).map_or(0, |index| index as u64 + 1);
            (first * block, last * block)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::Binary;
    use dyno_plan::file::default_plan;

    fn plan() -> Plan {
        let mut plan = default_plan();
        plan.data.records = 1000;
        plan.data.field_count = 2;
        plan.data.field_length = FieldLength::Constant { bytes: 4 };
        plan
    }

    fn value(bytes: &[u8]) -> Bson {
        Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() })
    }

    fn document(key: &str) -> Document {
        doc! { "_id": key, "field0": value(b"abcd"), "field1": value(b"efgh") }
    }

    const KEY: &str = "user6284781860667377211";

    fn differences(plan: &Plan, found: Document) -> Vec<String> {
        check_shape(plan, &Sample { ends: vec![found], expected: Vec::new() }, true)
    }

    #[test]
    fn documents_of_the_plan_have_no_differences() {
        assert_eq!(differences(&plan(), document(KEY)), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_named_with_what_was_found() {
        type Change = fn(&mut Plan, &mut Document);
        let cases: [(&str, Change); 9] = [
            ("`7`", |_, found| {
                found.insert("_id", 7);
            }),
            ("`item1`", |_, found| {
                found.insert("_id", "item1");
            }),
            ("looks ordered", |_, found| {
                found.insert("_id", "user12");
            }),
            ("looks hashed", |plan, _| plan.data.key_order = KeyOrder::Ordered),
            ("30 digits", |plan, _| plan.data.zero_padding = 30),
            ("3 fields", |_, found| {
                found.insert("extra", 1);
            }),
            ("`column0`", |plan, _| plan.data.field_name_prefix = "column".into()),
            ("`\"text\"`", |_, found| {
                found.insert("field1", "text");
            }),
            ("5 bytes", |_, found| {
                found.insert("field0", value(b"abcde"));
            }),
        ];
        for (expected, change) in cases {
            let (mut plan, mut found) = (plan(), document(KEY));
            change(&mut plan, &mut found);
            let differences = differences(&plan, found);
            assert_eq!(differences.len(), 1, "{expected}: {differences:?}");
            assert!(differences[0].contains(expected), "{differences:?}");
        }
    }

    #[test]
    fn values_without_integrity_are_reported_before_the_run() {
        let mut plan = plan();
        plan.data.integrity = true;
        assert!(differences(&plan, document(KEY))[0].contains("integrity"));
        let mut found = document(KEY);
        for field in ["field0", "field1"] {
            let mut bytes = [0; 4];
            integrity::fill(KEY.as_bytes(), field.as_bytes(), &mut bytes);
            found.insert(field, value(&bytes));
        }
        assert_eq!(differences(&plan, found), Vec::<String>::new());
    }

    #[test]
    fn lengths_inside_the_distribution_are_accepted_and_others_not() {
        let mut plan = plan();
        plan.data.field_length = FieldLength::Uniform { min_bytes: 2, max_bytes: 4 };
        assert!(differences(&plan, document(KEY)).is_empty());
        plan.data.field_length = FieldLength::Uniform { min_bytes: 5, max_bytes: 9 };
        let wrong = &differences(&plan, document(KEY))[0];
        assert!(wrong.contains("4 bytes") && wrong.contains("5 to 9"), "{wrong}");
        plan.data.field_length = FieldLength::Histogram { block_bytes: 2, weights: vec![0, 3, 0] };
        assert!(differences(&plan, document(KEY)).is_empty());
        plan.data.field_length = FieldLength::Histogram { block_bytes: 2, weights: vec![3, 0, 0] };
        let wrong = &differences(&plan, document(KEY))[0];
        assert!(wrong.contains("4 bytes") && wrong.ends_with('2'), "{wrong}");
    }

    #[test]
    fn a_missing_document_matters_only_when_all_should_be_there() {
        let sample = Sample { ends: vec![document(KEY)], expected: vec![("user1".into(), None)] };
        assert!(check_shape(&plan(), &sample, false).is_empty());
        let differences = check_shape(&plan(), &sample, true);
        assert_eq!(differences.len(), 1, "{differences:?}");
        assert!(differences[0].contains("`user1`"), "{differences:?}");
    }

    #[test]
    fn settings_are_flat_and_without_secrets() {
        let parsed = doc! {
            "net": { "port": 27017, "tls": { "certificateKeyFilePassword": "secret" } },
            "security": { "keyFile": "/k" }, "storage": { "dbPath": "/d" },
        };
        let mut settings = BTreeMap::new();
        flatten(&parsed, "", &mut settings);
        let settings: Vec<_> = settings.into_iter().collect();
        assert_eq!(
            settings,
            [("net.port".into(), "27017".into()), ("storage.dbPath".into(), "/d".to_owned())]
        );
    }

    #[test]
    fn sizes_of_every_type_of_number_are_read() {
        let stats = doc! { "a": 5_i32, "b": 6_i64, "c": 7.0, "d": -1, "e": "8", "f": { "g": 9 } };
        let read = |path: &[&str]| number_at(&stats, path);
        assert_eq!([read(&["a"]), read(&["b"]), read(&["c"])], [Some(5), Some(6), Some(7)]);
        assert_eq!([read(&["d"]), read(&["e"]), read(&["f", "g"])], [None, None, Some(9)]);
    }
}
