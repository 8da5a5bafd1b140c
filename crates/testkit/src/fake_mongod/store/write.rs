//! Inserts, updates and deletes of the store.

use bson::{Bson, Document, doc};

use super::{Collection, Key, Store, bounds, key, number, unplayed, whole};
use crate::fake_mongod::shapes::Refusal;

type Place = (String, String);

/// Result of the writes of one command.
#[derive(Default)]
struct Outcome {
    n: usize,
    modified: usize,
    upserted: Vec<Document>,
    errors: Vec<Document>,
}

/// Result of one write: number of documents, and the key of a new one.
#[derive(Default)]
struct Written {
    n: usize,
    modified: usize,
    upserted: Option<Bson>,
}

impl Outcome {
    fn into_reply(self, is_update: bool) -> Document {
        let mut reply = doc! { "n": number(self.n) };
        if is_update {
            reply.insert("nModified", number(self.modified));
        }
        if !self.upserted.is_empty() {
            reply.insert("upserted", self.upserted);
        }
        if !self.errors.is_empty() {
            reply.insert("writeErrors", self.errors);
        }
        reply
    }
}

/// Executes the writes one by one; an ordered command ends with the first failure.
fn each(
    command: &Document,
    list: &str,
    write: &mut dyn FnMut(&Document) -> Result<Written, Refusal>,
) -> Outcome {
    let ordered = command.get_bool("ordered").unwrap_or(true);
    let writes = command.get_array(list).map(Vec::as_slice);
    let writes = writes.unwrap_or_default();
    let mut outcome = Outcome::default();
    for (index, one) in writes.iter().filter_map(Bson::as_document).enumerate() {
        match write(one) {
            Ok(written) => {
                outcome.n += written.n;
                outcome.modified += written.modified;
                if let Some(id) = written.upserted {
                    let made = doc! { "index": number(index), "_id": id };
                    outcome.upserted.push(made);
                }
            }
            Err((code, message)) => {
                let error = doc! { "index": number(index), "code": code, "errmsg": message };
                outcome.errors.push(error);
                if ordered {
                    break;
                }
            }
        }
    }
    outcome
}

impl Store {
    pub(super) fn insert(&mut self, place: Place, command: &Document) -> Result<Document, Refusal> {
        let namespace = format!("{}.{}", place.0, place.1);
        let collection = self.collections.entry(place).or_default();
        let outcome = each(command, "documents", &mut |document| {
            // Drivers add a missing `_id` before they send.
            let id = document.get("_id").ok_or_else(|| unplayed("key for", document))?;
            let key = key(id)?;
            if collection.contains_key(&key) {
                let message = format!(
                    "E11000 duplicate key error collection: {namespace} index: _id_ dup key: {{ _id: {id} }}"
                );
                return Err((11_000, message));
            }
            collection.insert(key, document.clone());
            Ok(Written { n: 1, ..Written::default() })
        });
        Ok(outcome.into_reply(false))
    }

    pub(super) fn update(&mut self, place: Place, command: &Document) -> Result<Document, Refusal> {
        let collection = self.collections.entry(place).or_default();
        let outcome = each(command, "updates", &mut |statement| update_one(collection, statement));
        Ok(outcome.into_reply(true))
    }

    pub(super) fn delete(
        &mut self,
        place: &Place,
        command: &Document,
    ) -> Result<Document, Refusal> {
        let mut empty = Collection::new();
        let collection = self.collections.get_mut(place).unwrap_or(&mut empty);
        let outcome = each(command, "deletes", &mut |statement| {
            let filter = statement.get_document("q").cloned().unwrap_or_default();
            let most = match statement.get("limit").and_then(whole) {
                Some(0) => usize::MAX,
                Some(1) => 1,
                _ => return Err((9, "The limit field in delete objects must be 0 or 1".into())),
            };
            let found = keys(collection, &filter)?;
            let n = found.len().min(most);
            for key in &found[..n] {
                collection.remove(key);
            }
            Ok(Written { n, ..Written::default() })
        });
        Ok(outcome.into_reply(false))
    }
}

fn keys(collection: &Collection, filter: &Document) -> Result<Vec<Key>, Refusal> {
    let (first, last) = bounds(filter)?;
    if super::is_empty(&first, &last) {
        return Ok(Vec::new());
    }
    let range = collection.range((first, last));
    Ok(range.map(|pair| pair.0.clone()).collect())
}

fn update_one(collection: &mut Collection, statement: &Document) -> Result<Written, Refusal> {
    if statement.get_bool("multi").unwrap_or(false) {
        return Err(unplayed("update of several", statement));
    }
    let filter = statement.get_document("q").cloned().unwrap_or_default();
    let change = statement.get_document("u").cloned().unwrap_or_default();
    if let Some(key) = keys(collection, &filter)?.into_iter().next() {
        let before = collection.get(&key).cloned().unwrap_or_default();
        let after = changed(before.clone(), &change)?;
        let modified = usize::from(after != before);
        collection.insert(key, after);
        return Ok(Written { n: 1, modified, upserted: None });
    }
    if !statement.get_bool("upsert").unwrap_or(false) {
        return Ok(Written::default());
    }
    let id = filter.get("_id").ok_or_else(|| unplayed("key for", &filter))?;
    let made = changed(doc! { "_id": id.clone() }, &change)?;
    collection.insert(key(id)?, made);
    Ok(Written { n: 1, modified: 0, upserted: Some(id.clone()) })
}

/// The document after `$set`, or its replacement with the same key.
fn changed(mut document: Document, change: &Document) -> Result<Document, Refusal> {
    let id = document.get("_id").cloned().unwrap_or(Bson::Null);
    let keeps_id = |fields: &Document| fields.get("_id").is_none_or(|new| *new == id);
    let immutable =
        || (66, "the (immutable) field '_id' was found to have been altered".to_owned());
    if !change.keys().any(|name| name.starts_with('$')) {
        if !keeps_id(change) {
            return Err(immutable());
        }
        let mut replaced = doc! { "_id": id };
        replaced.extend(change.clone());
        return Ok(replaced);
    }
    let set = change
        .get_document("$set")
        .ok()
        .filter(|_| change.len() == 1)
        .ok_or_else(|| unplayed("update", change))?;
    if !keeps_id(set) {
        return Err(immutable());
    }
    if let Some(path) = set.keys().find(|name| name.contains('.')) {
        return Err(unplayed("path", path));
    }
    document.extend(set.clone());
    Ok(document)
}
