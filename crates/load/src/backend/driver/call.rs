//! Operations as driver calls, and their results.

use super::target::describe;
use crate::backend::wire::own_outcome;
use crate::generator::Operation;
use crate::operation::{Action, OperationError};
use crate::own::{Command, Own, Stage, TransactionLabels};
use crate::workload::Workload;
use bson::raw::{CString, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, Document, RawBinaryRef, RawDocumentBuf, doc};
use dyno_plan::uri::redact;
use dyno_record::error_example::ErrorExample;
use dyno_wire::code::DUPLICATE_KEY;
use dyno_wire::command::Projection;
use futures_util::stream::{Stream, StreamExt};
use mongodb::error::{
    Error, ErrorKind, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT,
    WriteConcernError, WriteFailure,
};
use mongodb::options::{ReadPreference, SelectionCriteria, TransactionOptions};
use mongodb::raw_batch_cursor::RawBatch;
use mongodb::{ClientSession, Collection};
use rand::rngs::Xoshiro256PlusPlus;
use std::sync::Arc;

pub(super) type Documents = Collection<RawDocumentBuf>;

/// An operation as a driver call.
pub(super) enum Call {
    FindOne {
        filter: Document,
        projection: Option<Document>,
    },
    Find {
        filter: Document,
        sort: Document,
        limit: i64,
        projection: Option<Document>,
        /// Keys of a secondary index. Finding nothing after its last entry is not a failure.
        hint: Option<Document>,
    },
    Update {
        filter: Document,
        update: Document,
    },
    Replace {
        filter: Document,
        document: RawDocumentBuf,
    },
    Insert(RawDocumentBuf),
    InsertMany(Vec<RawDocumentBuf>),
    Delete(Document),
    /// Documents of an own collection.
    InsertInto {
        collection: String,
        documents: Vec<RawDocumentBuf>,
    },
    /// An own command.
    Own {
        command: RawDocumentBuf,
        read_preference: Option<ReadPreference>,
        transaction: InTransaction,
    },
    Commit,
    Abort,
    /// A batch of upserts, for which the driver has no call on servers before 8.0.
    UpsertMany(Vec<Document>),
}

/// Place of an own command in a transaction.
pub(super) enum InTransaction {
    No,
    /// The first command, with the concerns of the transaction.
    First(Box<TransactionOptions>),
    Later,
}

/// Makes the calls of one worker.
pub(super) struct Caller {
    workload: Arc<Workload>,
    /// Field names by index.
    names: Vec<CString>,
}

impl Caller {
    pub(super) fn new(workload: Arc<Workload>) -> Self {
        let name = |name: &String| {
            CString::try_from(name.as_str()).expect("a workload refuses names with a zero byte")
        };
        Caller { names: workload.field_names.iter().map(name).collect(), workload }
    }

    /// Compares a document that was read with the written values.
    pub(super) fn check(&self, number: u64, document: &[u8]) -> Result<(), OperationError> {
        self.workload.check(self.key(number).as_bytes(), document)
    }

    /// The call for `operation`; for a read-modify-write, its read.
    pub(super) fn call(&self, operation: &Operation) -> Call {
        if let (Some(own), Some(command)) = (&self.workload.own, &operation.command) {
            return self.own(own, operation.action, command);
        }
        let key = self.key(operation.document);
        match operation.action {
            Action::Read => Call::FindOne {
                filter: doc! { "_id": key },
                projection: self.projection(operation.projection),
            },
            Action::Scan => self.scan(&key, operation),
            Action::Update => Call::Update {
                update: self.set(&key, operation, &mut operation.values.clone()),
                filter: doc! { "_id": key },
            },
            Action::Delete => Call::Delete(doc! { "_id": key }),
            Action::Insert => {
                let document = self.document(&key, operation, &mut operation.values.clone());
                if self.workload.access.upsert {
                    let filter = doc! { "_id": key };
                    Call::Replace { filter, document }
                } else {
                    Call::Insert(document)
                }
            }
            Action::InsertBatch | Action::Command { .. } => self.batch(operation),
        }
    }

    fn own(&self, own: &Own, action: Action, command: &Command) -> Call {
        let Action::Command { .. } = action else {
            return Call::InsertInto {
                collection: own.collection_of(command).to_owned(),
                documents: documents_in(command.bytes()),
            };
        };
        match command.stage() {
            Stage::Steps => {}
            Stage::Commit => return Call::Commit,
            Stage::Abort(_) => return Call::Abort,
        }
        let transaction = if own.starts_transaction(action, command) {
            InTransaction::First(Box::new(transaction_options(own, action)))
        } else if own.is_transaction(action) {
            InTransaction::Later
        } else {
            InTransaction::No
        };
        let preference = own.read_preference(action).cloned();
        Call::Own {
            transaction,
            command: documents_in(command.bytes()).pop().unwrap_or_default(),
            read_preference: preference.and_then(|one| bson::deserialize_from_document(one).ok()),
        }
    }

    fn scan(&self, key: &str, operation: &Operation) -> Call {
        let limit = i64::from(operation.count);
        let mut values = operation.values.clone();
        let Some((index, field)) = self.workload.draw_index(&mut values) else {
            return Call::Find {
                filter: doc! { "_id": { "$gte": key } },
                sort: doc! { "_id": 1 },
                limit,
                projection: self.projection(operation.projection),
                hint: None,
            };
        };
        let from =
            Binary { subtype: BinarySubtype::Generic, bytes: self.value(key, field, &mut values) };
        let fields = &self.workload.indexes[index];
        let keys: Document = fields.iter().map(|name| (name.clone(), 1.into())).collect();
        let mut projection = keys.clone();
        if !keys.contains_key("_id") {
            projection.insert("_id", 0);
        }
        Call::Find {
            filter: doc! { &self.workload.field_names[field]: { "$gte": from } },
            sort: keys.clone(),
            limit,
            projection: Some(projection),
            hint: Some(keys),
        }
    }

    fn batch(&self, operation: &Operation) -> Call {
        let mut values = operation.values.clone();
        let keys = (0..u64::from(operation.count)).map(|n| self.key(operation.document + n));
        if self.workload.access.upsert {
            let update = |key: String| {
                let update = self.set(&key, operation, &mut values);
                doc! { "q": { "_id": key }, "u": update, "upsert": true }
            };
            Call::UpsertMany(keys.map(update).collect())
        } else {
            let document = |key: String| self.document(&key, operation, &mut values);
            Call::InsertMany(keys.map(document).collect())
        }
    }

    fn key(&self, document: u64) -> String {
        let mut key = Vec::with_capacity(self.workload.longest_key_bytes());
        self.workload.write_key(document, &mut key);
        String::from_utf8(key).expect("keys are made of text and digits")
    }

    fn projection(&self, projection: Projection) -> Option<Document> {
        let names = &self.workload.field_names;
        let names = match projection {
            Projection::All => return None,
            Projection::AllByName => names,
            Projection::One(field) => &names[field..=field],
        };
        Some(names.iter().map(|name| (name.clone(), 1.into())).collect())
    }

    fn value(&self, key: &str, field: usize, values: &mut Xoshiro256PlusPlus) -> Vec<u8> {
        let mut value = vec![0; self.workload.value_bytes(values)];
        self.workload.fill_value(key.as_bytes(), field, values, &mut value);
        value
    }

    /// `{$set: …}` with the fields that `operation` writes.
    fn set(&self, key: &str, operation: &Operation, values: &mut Xoshiro256PlusPlus) -> Document {
        let names = &self.workload.field_names;
        let fields: Document = operation
            .fields
            .clone()
            .map(|field| {
                let binary = Binary {
                    subtype: BinarySubtype::Generic,
                    bytes: self.value(key, field, values),
                };
                (names[field].clone(), binary.into())
            })
            .collect();
        doc! { "$set": fields }
    }

    /// The whole document with this key.
    fn document(
        &self,
        key: &str,
        operation: &Operation,
        values: &mut Xoshiro256PlusPlus,
    ) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), key);
        for field in operation.fields.clone() {
            let bytes = self.value(key, field, values);
            let binary = RawBinaryRef { subtype: BinarySubtype::Generic, bytes: &bytes };
            document.append(&self.names[field], binary);
        }
        document
    }
}

fn transaction_options(own: &Own, action: Action) -> TransactionOptions {
    let (read, write) = own.transaction_concerns(action);
    let mut options = TransactionOptions::default();
    options.read_concern = read.and_then(|one| bson::deserialize_from_document(one.clone()).ok());
    options.write_concern = write.and_then(|one| bson::deserialize_from_document(one.clone()).ok());
    options
}

/// A failed call: its kind, and the message of server or driver.
pub(super) struct Failure {
    pub(super) error: OperationError,
    pub(super) example: Option<ErrorExample>,
    pub(super) labels: TransactionLabels,
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        Failure { error, example: None, labels: TransactionLabels::default() }
    }
}

impl Failure {
    /// A command or a write that the server refused.
    fn refused(error: OperationError, code: i32, code_name: &str, message: &str) -> Self {
        let code_name = match code_name {
            "" => dyno_wire::code::name(code).unwrap_or_default(),
            name => name,
        };
        let example = ErrorExample::new(Some(code), code_name, &redact(message));
        Failure { error, example: Some(example), labels: TransactionLabels::default() }
    }
}

/// Documents returned or written, and the document of a read or the reply to an own command.
pub(super) type Performed = Result<(u32, Option<RawDocumentBuf>), Failure>;

impl Call {
    /// Performs the call.
    pub(super) async fn perform(
        self,
        documents: &Documents,
        keep_existing: bool,
        session: &mut Option<ClientSession>,
    ) -> Performed {
        match self {
            Call::FindOne { filter, projection } => {
                let mut find = documents.find_one(filter);
                if let Some(projection) = projection {
                    find = find.projection(projection);
                }
                match find.await.map_err(classify)? {
                    Some(document) => Ok((1, Some(document))),
                    None => Err(OperationError::NotFound.into()),
                }
            }
            Call::Find { filter, sort, limit, projection, hint } => {
                let may_be_empty = hint.is_some();
                let mut find = documents.find(filter).sort(sort).limit(limit);
                if let Some(projection) = projection {
                    find = find.projection(projection);
                }
                if let Some(keys) = hint {
                    find = find.hint(mongodb::options::Hint::Keys(keys));
                }
                let mut cursor = find.await.map_err(classify)?;
                let mut count = 0;
                while cursor.advance().await.map_err(classify)? {
                    count += 1;
                }
                match may_be_empty {
                    true => Ok((count, None)),
                    false => found(count),
                }
            }
            Call::Update { filter, update } => {
                let result = documents.update_one(filter, update).await.map_err(classify)?;
                found(u32::from(result.matched_count > 0))
            }
            Call::Replace { filter, document } => {
                documents.replace_one(filter, document).upsert(true).await.map_err(classify)?;
                Ok((1, None))
            }
            Call::Insert(document) => {
                let result = documents.insert_one(document).await;
                match result {
                    Ok(_) => Ok((1, None)),
                    Err(error) if keep_existing && only_duplicates(&error) => Ok((0, None)),
                    Err(error) => Err(classify(error)),
                }
            }
            Call::InsertMany(batch) => insert_many(documents, batch, keep_existing).await,
            Call::Delete(filter) => {
                let result = documents.delete_one(filter).await.map_err(classify)?;
                found(u32::from(result.deleted_count > 0))
            }
            Call::InsertInto { collection, documents: batch } => {
                let database = documents.client().database(&documents.namespace().db);
                let inserted: Documents = database.collection(&collection);
                insert_many(&inserted, batch, keep_existing).await
            }
            Call::Own { command, read_preference, transaction } => {
                let session = match transaction {
                    InTransaction::No => None,
                    InTransaction::Later => session.as_mut(),
                    InTransaction::First(options) => {
                        Some(start_transaction(documents, session, *options).await?)
                    }
                };
                perform_own(documents, command, read_preference, session).await
            }
            Call::Commit => {
                if let Some(session) = session {
                    session.commit_transaction().await.map_err(classify)?;
                }
                Ok((0, None))
            }
            Call::Abort => {
                if let Some(session) = session {
                    session.abort_transaction().await.map_err(classify)?;
                }
                Ok((0, None))
            }
            Call::UpsertMany(updates) => upsert_many(documents, updates).await,
        }
    }
}

/// Encoded documents, one after the other.
fn documents_in(mut bytes: &[u8]) -> Vec<RawDocumentBuf> {
    let mut documents = Vec::new();
    while let Some(length) = bytes.first_chunk::<4>() {
        let length = usize::try_from(i32::from_le_bytes(*length)).unwrap_or(bytes.len());
        let (document, rest) = bytes.split_at(length.min(bytes.len()));
        documents.extend(RawDocumentBuf::from_bytes(document.to_vec()));
        bytes = rest;
    }
    documents
}

async fn insert_many(
    documents: &Documents,
    batch: Vec<RawDocumentBuf>,
    keep_existing: bool,
) -> Performed {
    let count = batch.len() as u32;
    match documents.insert_many(batch).ordered(false).await {
        Ok(_) => Ok((count, None)),
        Err(error) if keep_existing && only_duplicates(&error) => {
            Ok((count.saturating_sub(failed_inserts(&error)), None))
        }
        Err(error) => Err(classify(error)),
    }
}

/// Starts a transaction in the client's session, which is created if it does not exist.
async fn start_transaction<'a>(
    documents: &Documents,
    session: &'a mut Option<ClientSession>,
    options: TransactionOptions,
) -> Result<&'a mut ClientSession, Failure> {
    let session = match session {
        Some(session) => session,
        None => session.insert(documents.client().start_session().await.map_err(classify)?),
    };
    session.start_transaction().with_options(options).await.map_err(classify)?;
    Ok(session)
}

/// Performs an own command: the documents that it returns or changes, and its reply; of a cursor, the first batch.
async fn perform_own(
    documents: &Documents,
    command: RawDocumentBuf,
    read_preference: Option<ReadPreference>,
    session: Option<&mut ClientSession>,
) -> Performed {
    let database = documents.client().database(&documents.namespace().db);
    let name = command.iter().next().and_then(Result::ok).map(|(name, _)| name.as_str().to_owned());
    if matches!(name.as_deref(), Some("find" | "aggregate")) {
        let mut run = database.run_raw_cursor_command(command);
        if let Some(preference) = read_preference {
            run = run.selection_criteria(SelectionCriteria::ReadPreference(preference));
        }
        let Some(session) = session else {
            return drain(run.batch().await.map_err(classify)?).await;
        };
        let mut batches = run.session(&mut *session).batch().await.map_err(classify)?;
        return drain(batches.stream(session)).await;
    }
    let mut run = database.run_raw_command(command);
    if let Some(preference) = read_preference {
        run = run.selection_criteria(SelectionCriteria::ReadPreference(preference));
    }
    if let Some(session) = session {
        run = run.session(session);
    }
    let reply = run.await.map_err(classify)?;
    let reply = RawDocumentBuf::try_from(&reply).map_err(|_| OperationError::Protocol)?;
    let read = dyno_wire::reply::read_document(reply.as_bytes());
    let read = read.map_err(|_| OperationError::Protocol)?;
    let documents = own_outcome(&read).map_err(|error| match read.refusal() {
        Some(refusal) => Failure::refused(error, refusal.code, refusal.code_name, refusal.message),
        None => error.into(),
    })?;
    Ok((documents, Some(reply)))
}

/// Reads all batches of a cursor.
async fn drain(
    mut batches: impl Stream<Item = mongodb::error::Result<RawBatch>> + Unpin,
) -> Performed {
    let (mut count, mut first) = (0, None);
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(classify)?;
        count += batch.doc_slices().map_err(classify)?.into_iter().count() as u32;
        first.get_or_insert_with(|| batch.as_raw_document().to_owned());
    }
    Ok((count, first))
}

/// Result of an operation on a document that should exist.
fn found(documents: u32) -> Performed {
    match documents {
        0 => Err(OperationError::NotFound.into()),
        documents => Ok((documents, None)),
    }
}

async fn upsert_many(documents: &Documents, updates: Vec<Document>) -> Performed {
    let mut command = doc! { "update": documents.name(), "updates": updates, "ordered": false };
    if let Some(concern) = documents.write_concern() {
        let concern = bson::serialize_to_bson(concern).map_err(|_| OperationError::Driver)?;
        command.insert("writeConcern", concern);
    }
    let database = documents.client().database(&documents.namespace().db);
    let reply = database.run_command(command).await.map_err(classify)?;
    if let Ok(errors) = reply.get_array("writeErrors")
        && let Some(first) = errors.first().and_then(|error| error.as_document())
    {
        let code = first.get_i32("code").unwrap_or(0);
        let message = first.get_str("errmsg").unwrap_or_default();
        return Err(Failure::refused(OperationError::Server(code), code, "", message));
    }
    let n = reply.get_i32("n").map_err(|_| OperationError::Protocol)?;
    Ok((u32::try_from(n).unwrap_or(0), None))
}

fn only_duplicates(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(failure)) => failure.code == DUPLICATE_KEY,
        ErrorKind::InsertMany(failure) => {
            failure.write_concern_error.is_none()
                && failure
                    .write_errors
                    .as_ref()
                    .is_some_and(|errors| errors.iter().all(|error| error.code == DUPLICATE_KEY))
        }
        _ => false,
    }
}

/// Documents of a batch that were refused.
fn failed_inserts(error: &Error) -> u32 {
    match error.kind.as_ref() {
        ErrorKind::InsertMany(failure) => {
            failure.write_errors.as_ref().map_or(0, |errors| errors.len() as u32)
        }
        _ => 0,
    }
}

fn classify(error: Error) -> Failure {
    let labels = TransactionLabels {
        is_transient: error.contains_label(TRANSIENT_TRANSACTION_ERROR),
        is_unknown: error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT),
    };
    Failure { labels, ..classify_kind(error) }
}

fn classify_kind(error: Error) -> Failure {
    let is_overloaded = error.contains_label("SystemOverloadedError");
    let server = |code: i32, name: Option<&str>, message: &str| {
        let failure = OperationError::Server(code);
        Failure::refused(failure, code, name.unwrap_or_default(), message)
    };
    let concern = |concern: &WriteConcernError| {
        let failure = OperationError::WriteConcern(concern.code);
        Failure::refused(failure, concern.code, &concern.code_name, &concern.message)
    };
    let other = match error.kind.as_ref() {
        ErrorKind::Command(failure) => {
            let error = OperationError::refused(failure.code, is_overloaded);
            return Failure::refused(error, failure.code, &failure.code_name, &failure.message);
        }
        ErrorKind::Write(WriteFailure::WriteError(failure)) => {
            return server(failure.code, failure.code_name.as_deref(), &failure.message);
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(failure)) => return concern(failure),
        ErrorKind::InsertMany(failure) => {
            match (&failure.write_errors, &failure.write_concern_error) {
                (Some(errors), _) if !errors.is_empty() => {
                    let first = &errors[0];
                    return server(first.code, first.code_name.as_deref(), &first.message);
                }
                (_, Some(failure)) => return concern(failure),
                _ => OperationError::Driver,
            }
        }
        ErrorKind::Io(cause) if cause.kind() == std::io::ErrorKind::TimedOut => {
            OperationError::Timeout
        }
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => OperationError::Disconnected,
        ErrorKind::ServerSelection { .. } => OperationError::Disconnected,
        ErrorKind::InvalidResponse { .. } => OperationError::Protocol,
        _ => OperationError::Driver,
    };
    let example = ErrorExample::new(None, "", &redact(&describe(&error)));
    Failure { example: Some(example), ..other.into() }
}
