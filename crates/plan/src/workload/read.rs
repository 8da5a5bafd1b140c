//! The templates of a checked workload, in the form that is compiled.

use super::expected::{Expected, ExpectedError};
use super::folder;
use super::model::{Collection, Operation, Step, Workload};
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

/// An operation with the templates of its commands.
#[derive(Clone, Debug)]
pub struct ReadOperation {
    pub name: String,
    pub weight: f64,
    /// `let`: names and values.
    pub variables: Vec<(String, Value)>,
    /// Its commands in order; one without `steps`.
    pub steps: Vec<ReadStep>,
    pub expect: Option<Expected>,
    /// Share of deliberate aborts, if the steps are a transaction.
    pub transaction: Option<f64>,
    pub read_concern: Option<bson::Document>,
    pub write_concern: Option<bson::Document>,
    pub read_preference: Option<bson::Document>,
}

/// A step of an operation.
#[derive(Clone, Debug)]
pub struct ReadStep {
    /// A document.
    pub command: Value,
    pub each: Option<ReadEach>,
    pub when: Option<ReadWhen>,
}

/// A list for whose elements a step is repeated.
#[derive(Clone, Debug)]
pub struct ReadEach {
    /// Name of the element.
    pub name: String,
    pub of: Value,
    /// Number of elements at most.
    pub at_most: usize,
}

/// A condition of a step.
#[derive(Clone, Debug)]
pub struct ReadWhen {
    pub count: Value,
    pub is: Expected,
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

    fn step(&self, step: &Step) -> Result<ReadStep, String> {
        let each = step.each.as_ref().map(|each| {
            let at_most = each.at_most.map_or(usize::MAX, |limit| limit as usize);
            Ok::<_, String>(ReadEach {
                name: each.name.clone(),
                of: self.value(&each.of)?,
                at_most,
            })
        });
        let when = step.when.as_ref().map(|when| {
            let is = when.is.parse().map_err(|error: ExpectedError| error.to_string())?;
            Ok::<_, String>(ReadWhen { count: self.value(&when.count)?, is })
        });
        Ok(ReadStep {
            command: self.value(&step.command)?,
            each: each.transpose()?,
            when: when.transpose()?,
        })
    }

    fn operation(&self, operation: &Operation) -> Result<ReadOperation, String> {
        let steps = operation.all_steps();
        let steps = steps.iter().map(|step| self.step(step));
        let expect = operation.expect.as_deref().map(str::parse).transpose();
        let constant = |text: &Option<String>| text.as_deref().map(constant_document).transpose();
        Ok(ReadOperation {
            name: operation.name.clone(),
            weight: operation.weight.unwrap_or(0.0),
            variables: self.variables(&operation.variables)?,
            steps: steps.collect::<Result<_, _>>()?,
            transaction: operation.transaction.then(|| operation.abort.unwrap_or(0.0)),
            expect: expect.map_err(|error: ExpectedError| error.to_string())?,
            read_concern: constant(&operation.read_concern)?,
            write_concern: constant(&operation.write_concern)?,
            read_preference: constant(&operation.read_preference)?,
        })
    }
}
