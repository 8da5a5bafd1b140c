//! The templates of a checked workload, in the form that is compiled.

use super::expected::{Expected, ExpectedError};
use super::folder;
use super::model::{Collection, Operation, Workload};
use super::template::{self, Value};
use bson::Bson;
use std::collections::BTreeMap;
use std::path::Path;

/// Collections and operations with their templates.
#[derive(Clone, Debug)]
pub struct ReadWorkload {
    pub collections: Vec<ReadCollection>,
    pub operations: Vec<ReadOperation>,
}

/// A collection with the template of its documents.
#[derive(Clone, Debug)]
pub struct ReadCollection {
    pub name: String,
    pub records: u64,
    /// `let`: names and values.
    pub variables: Vec<(String, Value)>,
    pub document: Value,
}

/// An operation with the template of its command.
#[derive(Clone, Debug)]
pub struct ReadOperation {
    pub name: String,
    pub weight: f64,
    /// `let`: names and values.
    pub variables: Vec<(String, Value)>,
    /// A document.
    pub command: Value,
    pub expect: Option<Expected>,
    pub read_concern: Option<bson::Document>,
    pub write_concern: Option<bson::Document>,
    pub read_preference: Option<bson::Document>,
}

impl ReadWorkload {
    /// Reads the templates of a workload that [`check`](super::check()) accepts.
    ///
    /// # Errors
    /// The reason, which a checked workload gives only if a file has changed.
    pub fn new(workload: &Workload) -> Result<Self, String> {
        let reader = Reader { folder: workload.folder.as_deref() };
        let collections = workload.data.collections.iter().map(|one| reader.collection(one));
        let operations = workload.operations.iter().map(|one| reader.operation(one));
        Ok(ReadWorkload {
            collections: collections.collect::<Result<_, _>>()?,
            operations: operations.collect::<Result<_, _>>()?,
        })
    }
}

/// Reads a constant template that is a document.
///
/// # Errors
/// The reason if it is not one.
pub fn constant_document(text: &str) -> Result<bson::Document, String> {
    match template::parse(text).map_err(|error| error.to_string())? {
        Value::Constant(Bson::Document(document)) => Ok(document),
        _ => Err(format!("`{text}` is not a document without generators")),
    }
}

struct Reader<'a> {
    folder: Option<&'a Path>,
}

impl Reader<'_> {
    fn value(&self, text: &str) -> Result<Value, String> {
        let read_file = |name: &str| folder::read(self.folder, name);
        let template = template::read(text, &read_file).map_err(|error| error.to_string())?;
        Ok(template.value)
    }

    fn variables(&self, texts: &BTreeMap<String, String>) -> Result<Vec<(String, Value)>, String> {
        texts.iter().map(|(name, text)| Ok((name.clone(), self.value(text)?))).collect()
    }

    fn collection(&self, collection: &Collection) -> Result<ReadCollection, String> {
        let document = collection.document.as_deref().unwrap_or("{}");
        Ok(ReadCollection {
            name: collection.name.clone(),
            records: collection.records.unwrap_or(0),
            variables: self.variables(&collection.variables)?,
            document: self.value(document)?,
        })
    }

    fn operation(&self, operation: &Operation) -> Result<ReadOperation, String> {
        let command = operation.command.as_deref().unwrap_or("{}");
        let expect = operation.expect.as_deref().map(str::parse).transpose();
        let constant = |text: &Option<String>| text.as_deref().map(constant_document).transpose();
        Ok(ReadOperation {
            name: operation.name.clone(),
            weight: operation.weight.unwrap_or(0.0),
            variables: self.variables(&operation.variables)?,
            command: self.value(command)?,
            expect: expect.map_err(|error: ExpectedError| error.to_string())?,
            read_concern: constant(&operation.read_concern)?,
            write_concern: constant(&operation.write_concern)?,
            read_preference: constant(&operation.read_preference)?,
        })
    }
}
