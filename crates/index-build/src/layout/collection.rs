//! One collection: its shape, its documents in batches, and the commands on it.

use crate::layout::LayoutError;
use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, cstr, doc, rawdoc};
use dyno_load::connect::{Control, ControlError};
use dyno_load::prepare::CollectionForm;

/// Documents of a read batch.
const READ_BATCH: i32 = 1_000;
/// Server code for an unknown command.
const COMMAND_NOT_FOUND: i32 = 59;
/// Server code for a command that this kind of server does not support.
const NOT_SUPPORTED: i32 = 115;
/// Server code for dropping a missing collection.
const NAMESPACE_NOT_FOUND: i32 = 26;
/// Server code for dropping a missing index.
const INDEX_NOT_FOUND: i32 = 27;

/// A collection by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub database: String,
    /// Name within the database.
    pub name: String,
}

/// A collection's properties without its documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Creation options.
    pub options: Document,
    /// Indexes except the one on `_id`, as creation arguments.
    pub indexes: Vec<Document>,
}

/// The amount of a collection's data on a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub documents: u64,
    /// Size as BSON, in bytes.
    pub bytes: u64,
}

fn refused(intent: impl Into<String>) -> impl FnOnce(ControlError) -> LayoutError {
    let intent = intent.into();
    move |source| LayoutError::Command { intent, source: Box::new(source) }
}

/// Whether an error says that a command is unknown.
fn is_unknown(error: &ControlError) -> bool {
    matches!(error.code(), Some(COMMAND_NOT_FOUND | NOT_SUPPORTED))
}

impl Shape {
    /// Whether both are the same except for the order of indexes.
    pub(crate) fn is_like(&self, other: &Shape) -> bool {
        let sorted = |shape: &Shape| {
            let mut indexes = shape.indexes.clone();
            indexes.sort_by_key(|index| index.get_str("name").unwrap_or_default().to_owned());
            indexes
        };
        self.options == other.options && sorted(self) == sorted(other)
    }
}

impl Collection {
    /// A collection of this name.
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Collection {
        Collection { database: database.into(), name: name.into() }
    }

    /// `database.collection`.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// Another collection of the same database.
    pub(crate) fn sibling(&self, name: String) -> Collection {
        Collection::new(self.database.clone(), name)
    }

    /// A collection of the same database with this name prefix, if any.
    pub(crate) fn sibling_with(
        &self,
        control: &mut Control,
        prefix: &str,
    ) -> Result<Option<Collection>, LayoutError> {
        let command = doc! {
            "listCollections": 1,
            "nameOnly": true,
            "cursor": { "batchSize": 100_000 },
        };
        let answer = self.run(control, command, "look for copies of")?;
        let found = first_batch(&answer, "listCollections")?
            .into_iter()
            .filter_map(|entry| entry.get_str("name").ok().map(str::to_owned))
            .find(|name| name.starts_with(prefix));
        Ok(found.map(|name| self.sibling(name)))
    }

    fn run(
        &self,
        control: &mut Control,
        command: Document,
        intent: &str,
    ) -> Result<Document, LayoutError> {
        control
            .run(&self.database, command)
            .map_err(refused(format!("{intent} `{}`", self.namespace())))
    }

    /// Options and indexes; `None` if the collection does not exist.
    ///
    /// # Errors
    /// [`LayoutError::NotOrdinary`] for views and similar, or a command failed.
    pub fn shape(&self, control: &mut Control) -> Result<Option<Shape>, LayoutError> {
        let command = doc! { "listCollections": 1, "filter": { "name": &self.name } };
        let answer = self.run(control, command, "look for")?;
        let batch = first_batch(&answer, "listCollections")?;
        // Not every server filters.
        let found = batch.into_iter().find(|entry| entry.get_str("name").ok() == Some(&self.name));
        let Some(entry) = found else {
            return Ok(None);
        };
        if let Some(kind) = CollectionForm::of(&entry).name() {
            return Err(LayoutError::NotOrdinary {
                namespace: self.namespace(),
                kind: kind.to_owned(),
            });
        }
        let mut options = entry.get_document("options").cloned().unwrap_or_default();
        options.remove("uuid");
        Ok(Some(Shape { options, indexes: self.indexes(control)? }))
    }

    fn indexes(&self, control: &mut Control) -> Result<Vec<Document>, LayoutError> {
        let command = doc! { "listIndexes": &self.name };
        let answer = match control.run(&self.database, command) {
            Err(error) if error.code() == Some(NAMESPACE_NOT_FOUND) => return Ok(Vec::new()),
            other => other.map_err(refused("list the indexes"))?,
        };
        let mut indexes = first_batch(&answer, "listIndexes")?;
        indexes.retain(|index| index.get_str("name").ok() != Some("_id_"));
        for index in &mut indexes {
            index.remove("ns");
        }
        Ok(indexes)
    }

    /// Creates the collection.
    pub(crate) fn create(&self, control: &mut Control, shape: &Shape) -> Result<(), LayoutError> {
        let mut command = doc! { "create": &self.name };
        command.extend(shape.options.clone());
        self.run(control, command, "create").map(drop)
    }

    /// Builds indexes.
    ///
    /// # Errors
    /// The command failed.
    pub fn create_indexes(
        &self,
        control: &mut Control,
        indexes: &[Document],
    ) -> Result<(), LayoutError> {
        if indexes.is_empty() {
            return Ok(());
        }
        let command = doc! { "createIndexes": &self.name, "indexes": indexes };
        self.run(control, command, "build an index on").map(drop)
    }

    /// Drops an index, if it exists.
    ///
    /// # Errors
    /// The command failed.
    pub fn drop_index(&self, control: &mut Control, index: &str) -> Result<(), LayoutError> {
        let command = doc! { "dropIndexes": &self.name, "index": index };
        match control.run(&self.database, command) {
            Err(error) if matches!(error.code(), Some(INDEX_NOT_FOUND | NAMESPACE_NOT_FOUND)) => {
                Ok(())
            }
            other => other.map(drop).map_err(refused(format!("drop the index `{index}`"))),
        }
    }

    /// Drops the collection with all its documents, if it exists.
    pub(crate) fn drop_it(&self, control: &mut Control) -> Result<(), LayoutError> {
        match control.run(&self.database, doc! { "drop": &self.name }) {
            Err(error) if error.code() == Some(NAMESPACE_NOT_FOUND) => Ok(()),
            other => other.map(drop).map_err(refused(format!("drop `{}`", self.namespace()))),
        }
    }

    /// Renames this collection to another one, which is dropped, in one atomic step.
    pub(crate) fn replace(
        &self,
        control: &mut Control,
        other: &Collection,
    ) -> Result<(), LayoutError> {
        let command = doc! {
            "renameCollection": self.namespace(),
            "to": other.namespace(),
            "dropTarget": true,
        };
        control.run("admin", command).map(drop).map_err(refused(format!(
            "rename `{}` to `{}`",
            self.namespace(),
            other.namespace()
        )))
    }

    /// Lets the server compact the collection in place.
    pub(crate) fn compact(&self, control: &mut Control) -> Result<(), LayoutError> {
        match control.run(&self.database, doc! { "compact": &self.name }) {
            Err(error) if is_unknown(&error) => {
                Err(LayoutError::Unsupported { command: "compact" })
            }
            other => other.map(drop).map_err(refused(format!("compact `{}`", self.namespace()))),
        }
    }

    /// Exact number of documents.
    ///
    /// # Errors
    /// The command failed.
    pub fn count(&self, control: &mut Control) -> Result<u64, LayoutError> {
        let answer = self.run(control, doc! { "count": &self.name }, "count the documents of")?;
        let count = answer.get("n").and_then(whole);
        count.ok_or_else(|| LayoutError::Answer {
            command: "count",
            reason: "`n` is not a whole number".into(),
        })
    }

    /// Amount of data on the queried server by its own count: any member of a set or of a shard.
    ///
    /// # Errors
    /// The command failed.
    pub fn held(&self, control: &mut Control) -> Result<Held, LayoutError> {
        let command = doc! { "collStats": &self.name };
        let answer = self.run(control, command, "get the size of")?;
        let number = |name: &str| {
            let number = answer.get(name).and_then(whole);
            number.ok_or_else(|| LayoutError::Answer {
                command: "collStats",
                reason: format!("`{name}` is not a whole number"),
            })
        };
        Ok(Held { documents: number("count")?, bytes: number("size")? })
    }

    /// Passes all documents on batch by batch as stored bytes; sorted, or in the server's order.
    pub(crate) fn read(
        &self,
        control: &mut Control,
        order: Option<RawDocumentBuf>,
        take: &mut dyn FnMut(Vec<RawDocumentBuf>) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        let name = self.name.as_str();
        let mut command =
            rawdoc! { "find": name, "batchSize": READ_BATCH, "noCursorTimeout": true };
        if let Some(order) = order {
            let is_by_id = order.get("_id").is_ok_and(|found| found.is_some());
            command.append(cstr!("sort"), order);
            if is_by_id {
                // Without the hint, a server may sort in memory.
                command.append(cstr!("hint"), rawdoc! { "_id": 1 });
            }
        }
        let (mut id, batch) = self.batch(control, command, "firstBatch")?;
        let mut taken = take(batch);
        while id != 0 {
            if let Err(error) = taken {
                let command = doc! { "killCursors": &self.name, "cursors": [id] };
                let _ = control.run(&self.database, command);
                return Err(error);
            }
            let command = rawdoc! { "getMore": id, "collection": name, "batchSize": READ_BATCH };
            let (next, batch) = self.batch(control, command, "nextBatch")?;
            id = next;
            taken = take(batch);
        }
        taken
    }

    /// Cursor number and documents of a batch.
    fn batch(
        &self,
        control: &mut Control,
        command: RawDocumentBuf,
        list: &str,
    ) -> Result<(i64, Vec<RawDocumentBuf>), LayoutError> {
        let answer = control
            .run_raw(&self.database, command)
            .map_err(refused(format!("read the documents of `{}`", self.namespace())))?;
        let wrong = |error: bson::error::Error| LayoutError::Answer {
            command: "find",
            reason: error.to_string(),
        };
        let cursor = answer.get_document("cursor").map_err(wrong)?;
        let id = match cursor.get("id").map_err(wrong)? {
            Some(RawBsonRef::Int64(id)) => id,
            Some(RawBsonRef::Int32(id)) => i64::from(id),
            _ => {
                return Err(LayoutError::Answer {
                    command: "find",
                    reason: "a cursor without an ID".into(),
                });
            }
        };
        let mut documents = Vec::new();
        for item in cursor.get_array(list).map_err(wrong)? {
            match item.map_err(wrong)? {
                RawBsonRef::Document(document) => documents.push(document.to_owned()),
                _ => {
                    return Err(LayoutError::Answer {
                        command: "find",
                        reason: "a value in the cursor's batch is not a document".into(),
                    });
                }
            }
        }
        Ok((id, documents))
    }

    /// Inserts documents in order.
    pub(crate) fn insert(
        &self,
        control: &mut Control,
        documents: Vec<Document>,
    ) -> Result<(), LayoutError> {
        if documents.is_empty() {
            return Ok(());
        }
        let command = doc! { "insert": &self.name, "documents": documents, "ordered": true };
        self.run(control, command, "insert into").map(drop)
    }

    /// Inserts documents in order as stored bytes, ignoring validators: the documents were in the original collection.
    pub(crate) fn insert_copies(
        &self,
        control: &mut Control,
        documents: &[RawDocumentBuf],
    ) -> Result<(), LayoutError> {
        if documents.is_empty() {
            return Ok(());
        }
        let command = rawdoc! {
            "insert": self.name.as_str(),
            "ordered": true,
            "bypassDocumentValidation": true,
        };
        let intent = format!("insert into `{}`", self.namespace());
        control
            .run_with_documents(&self.database, command, Some(("documents", documents)))
            .map(drop)
            .map_err(refused(intent))
    }

    /// Replaces the documents with the same `_id`.
    pub(crate) fn put(
        &self,
        control: &mut Control,
        documents: Vec<Document>,
    ) -> Result<(), LayoutError> {
        let updates: Vec<Document> = documents
            .into_iter()
            .map(|document| {
                let id = document.get("_id").cloned().unwrap_or(Bson::Null);
                doc! { "q": { "_id": id }, "u": document }
            })
            .collect();
        if updates.is_empty() {
            return Ok(());
        }
        let command = doc! { "update": &self.name, "updates": updates, "ordered": true };
        self.run(control, command, "update").map(drop)
    }

    /// Deletes the documents with these `_id` values.
    pub(crate) fn delete(&self, control: &mut Control, ids: &[i64]) -> Result<(), LayoutError> {
        let deletes: Vec<Document> =
            ids.iter().map(|id| doc! { "q": { "_id": *id }, "limit": 1 }).collect();
        if deletes.is_empty() {
            return Ok(());
        }
        let command = doc! { "delete": &self.name, "deletes": deletes, "ordered": true };
        self.run(control, command, "delete from").map(drop)
    }
}

/// Documents of a cursor's first batch.
fn first_batch(answer: &Document, command: &'static str) -> Result<Vec<Document>, LayoutError> {
    let batch = answer.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let documents = batch.ok().and_then(|batch| {
        let documents = batch.iter().map(|item| item.as_document().cloned());
        documents.collect::<Option<Vec<_>>>()
    });
    let reason = "it has no batch of documents".to_owned();
    documents.ok_or(LayoutError::Answer { command, reason })
}

/// A count of any numeric type.
fn whole(value: &Bson) -> Option<u64> {
    match value {
        Bson::Int32(number) => u64::try_from(*number).ok(),
        Bson::Int64(number) => u64::try_from(*number).ok(),
        Bson::Double(number) if *number >= 0.0 => Some(*number as u64),
        _ => None,
    }
}
