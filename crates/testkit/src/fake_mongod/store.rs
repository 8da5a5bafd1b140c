//! In-memory documents of a fake `mongod` process: supports the queries and updates that load generators send, and
//! returns an error for others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bson::{Bson, Document, doc};
use regex::Regex;

use super::shapes::{Refusal, bad, whole};

mod write;

/// Supported commands; index commands are only for real shards.
pub(super) const COMMANDS: &str = "\
    aggregate collStats count create createIndexes delete drop dropIndexes find getMore insert \
    killCursors listCollections listDatabases listIndexes update";

/// Commands that change the store.
pub(super) const WRITES: [&str; 5] = ["create", "delete", "drop", "insert", "update"];

/// Size of a first batch without a requested size.
const FIRST_BATCH: usize = 101;

/// A value of `_id` in the server's order; only the types that tests use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i64),
    Text(String),
    Other(Vec<u8>),
}

type Collection = BTreeMap<Key, Document>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// By database and name.
    collections: BTreeMap<(String, String), Collection>,
    cursors: BTreeMap<i64, (String, Vec<Document>)>,
    last_cursor: i64,
}

/// Error for an unsupported feature.
fn unplayed(what: &str, value: &impl ToString) -> Refusal {
    (238, format!("the fake `mongod` has no {what} {}", value.to_string()))
}

impl Store {
    /// Answers a command with a valid structure.
    pub(super) fn run(&mut self, name: &str, command: &Document) -> Result<Document, Refusal> {
        let database = command.get_str("$db").unwrap_or_default().to_owned();
        let collection = command.get_str(name).unwrap_or_default().to_owned();
        let place = (database, collection);
        match name {
            "create" => self.create(place),
            "drop" => self.drop(&place),
            "insert" => self.insert(place, command),
            "update" => self.update(place, command),
            "delete" => self.delete(&place, command),
            "find" => self.find(&place, command),
            "getMore" => self.get_more(command),
            "killCursors" => Ok(self.kill_cursors(command)),
            "count" => {
                let query = command.get_document("query").cloned().unwrap_or_default();
                let found = self.matching(&place, &query)?.len();
                Ok(doc! { "n": number(found) })
            }
            "aggregate" => self.aggregate(&place, command),
            "collStats" => Ok(self.statistics(&place)),
            "listCollections" => self.list_collections(&place.0, command),
            "listDatabases" => Ok(self.list_databases()),
            _ => Err((59, format!("no such command: '{name}'"))),
        }
    }

    fn create(&mut self, place: (String, String)) -> Result<Document, Refusal> {
        match self.collections.entry(place) {
            Entry::Occupied(there) => {
                let (database, name) = there.key();
                Err((48, format!("Collection {database}.{name} already exists.")))
            }
            Entry::Vacant(free) => {
                free.insert(Collection::new());
                Ok(doc! {})
            }
        }
    }

    fn drop(&mut self, place: &(String, String)) -> Result<Document, Refusal> {
        match self.collections.remove(place) {
            Some(_) => Ok(doc! { "nIndexesWas": 1, "ns": format!("{}.{}", place.0, place.1) }),
            None => Err((26, "ns not found".to_owned())),
        }
    }

    /// Documents that match the filter, in the order of `_id`.
    fn matching(
        &self,
        place: &(String, String),
        filter: &Document,
    ) -> Result<Vec<&Document>, Refusal> {
        let (first, last) = bounds(filter)?;
        let Some(collection) = self.collections.get(place) else {
            return Ok(Vec::new());
        };
        if is_empty(&first, &last) {
            return Ok(Vec::new());
        }
        Ok(collection.range((first, last)).map(|pair| pair.1).collect())
    }

    fn find(&mut self, place: &(String, String), command: &Document) -> Result<Document, Refusal> {
        let filter = command.get_document("filter").cloned().unwrap_or_default();
        let mut found = match other_keys(&filter)? {
            Some(pattern) => {
                let mut all = self.matching(place, &doc! {})?;
                all.retain(|document| {
                    !document.get_str("_id").is_ok_and(|id| pattern.is_match(id))
                });
                all
            }
            None => self.matching(place, &filter)?,
        };
        if let Ok(sort) = command.get_document("sort")
            && !sort.is_empty()
        {
            match (sort.len(), sort.get("_id").map(whole)) {
                (1, Some(Some(1))) => {}
                (1, Some(Some(-1))) => found.reverse(),
                _ => return Err(unplayed("order", sort)),
            }
        }
        let limit = positive(command, "limit")?.filter(|limit| *limit > 0);
        found.truncate(limit.unwrap_or(usize::MAX));
        let projection = command.get_document("projection").ok();
        let mut documents = found
            .into_iter()
            .map(|document| projected(document, projection))
            .collect::<Result<Vec<_>, _>>()?;
        let size = positive(command, "batchSize")?.unwrap_or(FIRST_BATCH);
        let rest = documents.split_off(size.min(documents.len()));
        let single = command.get_bool("singleBatch").unwrap_or(false);
        let namespace = format!("{}.{}", place.0, place.1);
        let id = if rest.is_empty() || single {
            0
        } else {
            self.last_cursor += 1;
            let kept = (namespace.clone(), rest);
            self.cursors.insert(self.last_cursor, kept);
            self.last_cursor
        };
        Ok(doc! { "cursor": { "firstBatch": documents, "id": id, "ns": namespace } })
    }

    fn get_more(&mut self, command: &Document) -> Result<Document, Refusal> {
        let id = command.get("getMore").and_then(whole).unwrap_or_default();
        let missing = || (43, format!("cursor id {id} not found"));
        let (namespace, mut batch) = self.cursors.remove(&id).ok_or_else(missing)?;
        let (_, collection) = namespace.split_once('.').unwrap_or_default();
        if command.get_str("collection").unwrap_or_default() != collection {
            return Err(bad(format!("cursor {id} belongs to {namespace}")));
        }
        let size = positive(command, "batchSize")?.unwrap_or(usize::MAX);
        let rest = batch.split_off(size.min(batch.len()));
        let next = if rest.is_empty() {
            0
        } else {
            self.cursors.insert(id, (namespace.clone(), rest));
            id
        };
        Ok(doc! { "cursor": { "nextBatch": batch, "id": next, "ns": namespace } })
    }

    fn kill_cursors(&mut self, command: &Document) -> Document {
        let all = command.get_array("cursors").cloned().unwrap_or_default();
        let (killed, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(|id| {
            let id = whole(id).unwrap_or_default();
            self.cursors.remove(&id).is_some()
        });
        let none = Vec::<Bson>::new();
        doc! {
            "cursorsKilled": killed,
            "cursorsNotFound": unknown,
            "cursorsAlive": none.clone(),
            "cursorsUnknown": none,
        }
    }

    /// Counts by `$count` or by `$group` into one group, with or without a `$match` before.
    fn aggregate(&self, place: &(String, String), command: &Document) -> Result<Document, Refusal> {
        let empty = Vec::new();
        let pipeline = command.get_array("pipeline").unwrap_or(&empty);
        let mut stages: Vec<_> = pipeline.iter().filter_map(Bson::as_document).collect();
        let mut filter = Document::new();
        if let Some(matched) = stages.first().and_then(|stage| stage.get_document("$match").ok()) {
            filter = matched.clone();
            stages.remove(0);
        }
        let counted = number(self.matching(place, &filter)?.len());
        let [stage] = stages[..] else {
            return Err(unplayed("pipeline", &Bson::Array(pipeline.clone())));
        };
        let result = match (stage.get_str("$count"), stage.get_document("$group")) {
            (Ok(name), _) => doc! { name: counted.clone() },
            (_, Ok(group)) if *group == doc! { "_id": group.get("_id"), "n": { "$sum": 1 } } => {
                doc! { "_id": group.get("_id"), "n": counted.clone() }
            }
            _ => return Err(unplayed("stage", stage)),
        };
        let batch = match counted {
            Bson::Int32(0) => Vec::new(),
            _ => vec![result],
        };
        let namespace = format!("{}.{}", place.0, place.1);
        Ok(doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": namespace } })
    }

    fn statistics(&self, place: &(String, String)) -> Document {
        let collection = self.collections.get(place);
        let count = collection.map_or(0, BTreeMap::len);
        let size: usize = collection
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|document| document.to_vec().map_or(0, |bytes| bytes.len()))
            .sum();
        let mut statistics = doc! {
            "ns": format!("{}.{}", place.0, place.1),
            "size": number(size),
            "count": number(count),
            "storageSize": number(size),
            "nindexes": i32::from(collection.is_some()),
        };
        if let Some(average) = size.checked_div(count) {
            statistics.insert("avgObjSize", number(average));
        }
        statistics
    }

    fn list_collections(&self, database: &str, command: &Document) -> Result<Document, Refusal> {
        let filter = command.get_document("filter").cloned().unwrap_or_default();
        let wanted = filter.get_str("name").ok();
        if filter.len() != usize::from(wanted.is_some()) {
            return Err(unplayed("filter", &filter));
        }
        let names = self
            .collections
            .keys()
            .filter(|place| place.0 == database && wanted.is_none_or(|name| place.1 == name));
        let batch: Vec<Document> =
            names.map(|place| doc! { "name": &place.1, "type": "collection" }).collect();
        let namespace = format!("{database}.$cmd.listCollections");
        Ok(doc! { "cursor": { "firstBatch": batch, "id": 0_i64, "ns": namespace } })
    }

    fn list_databases(&self) -> Document {
        let mut names: Vec<&str> = self.collections.keys().map(|place| &*place.0).collect();
        names.extend(["admin", "local"]);
        names.sort_unstable();
        names.dedup();
        let databases: Vec<Document> = names.iter().map(|name| doc! { "name": *name }).collect();
        doc! { "databases": databases }
    }
}

fn key(value: &Bson) -> Result<Key, Refusal> {
    Ok(match value {
        Bson::Int32(number) => Key::Number(i64::from(*number)),
        Bson::Int64(number) => Key::Number(*number),
        Bson::String(text) => Key::Text(text.clone()),
        Bson::Array(_) | Bson::RegularExpression(_) => return Err(unplayed("key", value)),
        other => {
            let bytes = doc! { "": other.clone() }.to_vec();
            Key::Other(bytes.map_err(|error| bad(error.to_string()))?)
        }
    })
}

/// The pattern of a filter for documents whose `_id` does not match it.
fn other_keys(filter: &Document) -> Result<Option<Regex>, Refusal> {
    let id = filter.get_document("_id").ok();
    let pattern = id.and_then(|id| id.get_document("$not").ok()?.get_str("$regex").ok());
    let pattern = pattern.map(Regex::new);
    pattern.transpose().map_err(|error| bad(error.to_string()))
}

fn bounds(filter: &Document) -> Result<(Bound<Key>, Bound<Key>), Refusal> {
    let id = match (filter.len(), filter.get("_id")) {
        (0, _) => return Ok((Bound::Unbounded, Bound::Unbounded)),
        (1, Some(id)) => id,
        _ => return Err(unplayed("filter", filter)),
    };
    let conditions = match id {
        Bson::Document(conditions) if conditions.keys().all(|name| name.starts_with('$')) => {
            conditions
        }
        value => return Ok((Bound::Included(key(value)?), Bound::Included(key(value)?))),
    };
    let mut range = (Bound::Unbounded, Bound::Unbounded);
    for (operator, value) in conditions {
        let key = key(value)?;
        match operator.as_str() {
            "$gte" => range.0 = Bound::Included(key),
            "$gt" => range.0 = Bound::Excluded(key),
            "$lte" => range.1 = Bound::Included(key),
            "$lt" => range.1 = Bound::Excluded(key),
            _ => return Err(unplayed("condition", operator)),
        }
    }
    Ok(range)
}

/// Whether a range is empty: maps do not accept all empty ranges.
fn is_empty(first: &Bound<Key>, last: &Bound<Key>) -> bool {
    match (first, last) {
        (Bound::Included(first), Bound::Included(last)) => first > last,
        (
            Bound::Included(first) | Bound::Excluded(first),
            Bound::Included(last) | Bound::Excluded(last),
        ) => first >= last,
        _ => false,
    }
}

/// The fields that a projection names, and `_id`.
fn projected(document: &Document, projection: Option<&Document>) -> Result<Document, Refusal> {
    let Some(projection) = projection.filter(|projection| !projection.is_empty()) else {
        return Ok(document.clone());
    };
    if projection.values().any(|value| whole(value) != Some(1)) {
        return Err(unplayed("projection", projection));
    }
    let wanted = |name: &String| name == "_id" || projection.contains_key(name);
    Ok(document
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect())
}

/// A count in a command.
fn positive(command: &Document, name: &str) -> Result<Option<usize>, Refusal> {
    let Some(number) = command.get(name).and_then(whole) else {
        return Ok(None);
    };
    let number = usize::try_from(number);
    number.map(Some).map_err(|_| (51024, format!("BSON field '{name}' must be >= 0")))
}

/// The smaller integer type that holds it, as on servers.
fn number(value: usize) -> Bson {
    match i32::try_from(value) {
        Ok(value) => Bson::Int32(value),
        Err(_) => Bson::Int64(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

#[cfg(test)]
mod tests;
