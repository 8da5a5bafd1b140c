//! The own collections and operations of a plan: compiled when the plan is known, written by every worker.
//!
//! A document's number is its place in its collection, an operation's its place in the phase. New documents are numbered
//! behind the loaded ones, and exist for other operations when their insert has ended.

mod mongosh;

use crate::error::LoadError;
use crate::keys::InsertCounter;
use crate::operation::{Access, Action, OperationError, Outcome, Planned};
use crate::program::{
    Collection, Context, Documents, NewDocument, Owner, Program, ProgramError, Templates,
};
use crate::workload::Concerns;
use bson::{Bson, Document, doc};
use dyno_plan::Plan;
use dyno_plan::model::KeyDistribution;
use dyno_plan::operation::Operations;
use dyno_plan::workload::template::{Law, Value};
use dyno_plan::workload::{Expected, ReadOperation, ReadWorkload};
use dyno_wire::command::{
    Acknowledgement, CommandOptions, CommandSet, Transaction, WriteConcern, write_command,
};
use std::fmt;
use std::sync::Arc;

/// Exponent of the law for `latest`, as in YCSB.
const LATEST_EXPONENT: f64 = 0.99;

/// Commands whose result is read, with an option for the read concern.
const READS: [&str; 4] = ["find", "aggregate", "count", "distinct"];
/// Commands that take a write concern.
const WRITES: [&str; 4] = ["insert", "update", "delete", "findAndModify"];

/// See the module.
pub(crate) struct Own {
    collections: Vec<OwnCollection>,
    operations: Vec<OwnOperation>,
    documents: Arc<OwnDocuments>,
}

struct OwnCollection {
    name: String,
    records: u64,
    program: Program,
    commands: CommandSet,
    /// The commands with a session in every write.
    retryable: CommandSet,
}

struct OwnOperation {
    name: String,
    weight: f64,
    access: Access,
    program: Program,
    expect: Option<Expected>,
    /// Elements that only the wire needs, such as `$db`.
    more: Vec<u8>,
    /// For further batches of a cursor.
    cursor: CommandSet,
    read_preference: Option<Document>,
}

/// The documents of all collections, which grow during a run.
struct OwnDocuments(Vec<InsertCounter>);

impl Documents for OwnDocuments {
    fn existing(&self, collection: usize) -> u64 {
        self.0[collection].answered_below()
    }

    fn take_new(&self, collection: usize) -> Option<u64> {
        self.0[collection].next()
    }
}

/// The command of an operation in flight, with the state that it is computed from. A command that is sent again has the same
/// bytes.
pub(crate) struct Command {
    context: Context,
    /// The command as BSON; in a load phase, documents one after the other.
    bytes: Vec<u8>,
    /// Collection of a load phase's documents.
    collection: usize,
}

impl Command {
    /// Starts operation `number`.
    pub(crate) fn begin(&mut self, number: u64) {
        self.context.begin(number);
        self.bytes.clear();
    }

    /// The command as BSON; in a load phase, documents one after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Command").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The insert commands of a load phase: each has documents of one collection.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    documents: u64,
    /// Records of each collection, and the number of its first batch.
    collections: Vec<(u64, u64)>,
    len: u64,
}

/// Documents of an insert command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) collection: usize,
    pub(crate) first: u64,
    pub(crate) count: u32,
}

impl Batches {
    fn new(records: impl Iterator<Item = u64>, documents: u32) -> Self {
        let documents = u64::from(documents.max(1));
        let (mut len, mut collections) = (0, Vec::new());
        for records in records {
            collections.push((records, len));
            len += records.div_ceil(documents);
        }
        Batches { documents, collections, len }
    }

    /// Number of commands.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Command `number`; without documents behind the last one.
    pub(crate) fn get(&self, number: u64) -> Batch {
        // The last collection that begins at or before the number; empty ones begin with their successors.
        let collection = self.collections.partition_point(|(_, begin)| *begin <= number) - 1;
        let (records, begin) = self.collections[collection];
        let first = (number - begin) * self.documents;
        let count = records.saturating_sub(first).min(self.documents) as u32;
        Batch { collection, first, count }
    }
}

impl Own {
    /// Compiles the collections and operations of a plan.
    ///
    /// # Errors
    /// [`LoadError::Workload`] with the template that cannot be compiled. The checks of the plan find most of them.
    pub(crate) fn new(plan: &Plan, concerns: &Concerns) -> Result<Self, LoadError> {
        let read = ReadWorkload::new(&plan.own_workload()).map_err(workload_error)?;
        let keys = law_of(&plan.keys);
        let collections: Vec<Collection> = read.collections.iter().map(collection_of).collect();
        let templates = Templates {
            seed: plan.client.seed,
            collections: &collections,
            keys: &keys,
            now_ms: None,
        };
        let compiler = Compiler { plan, concerns, templates: &templates };
        let compiled = collections.iter().enumerate();
        let compiled = compiled.map(|(index, collection)| compiler.collection(index, collection));
        let operations = read.operations.iter().map(|operation| compiler.operation(operation));
        let counters = collections.iter().map(|collection| InsertCounter::new(collection.records));
        Ok(Own {
            collections: compiled.collect::<Result<_, _>>()?,
            operations: operations.collect::<Result<_, _>>()?,
            documents: Arc::new(OwnDocuments(counters.collect())),
        })
    }

    /// The operations with their weights.
    pub(crate) fn planned(&self, operations: &Operations) -> Vec<(Planned, f64)> {
        let planned = self.operations.iter().enumerate().filter_map(|(index, operation)| {
            let action =
                Action::Command { index: u16::try_from(index).ok()?, access: operation.access };
            Some((Planned::of_own(operations, &operation.name, action)?, operation.weight))
        });
        planned.collect()
    }

    /// The insert commands that load all collections.
    pub(crate) fn batches(&self, documents: u32) -> Batches {
        Batches::new(self.collections.iter().map(|collection| collection.records), documents)
    }

    /// A command without content.
    pub(crate) fn new_command(&self) -> Command {
        let documents = Arc::clone(&self.documents) as Arc<dyn Documents>;
        Command { context: Context::new(documents), bytes: Vec::new(), collection: 0 }
    }

    /// Writes the command of an action; `false` if it must wait for a new document.
    #[inline]
    pub(crate) fn write(&self, action: Action, command: &mut Command) -> bool {
        let Action::Command { index, .. } = action else {
            return true;
        };
        let program = &self.operations[usize::from(index)].program;
        program.write(&mut command.context, &mut command.bytes).is_ok()
    }

    /// Writes the documents of a load phase's command.
    pub(crate) fn write_documents(&self, batch: Batch, command: &mut Command) {
        command.bytes.clear();
        command.collection = batch.collection;
        let program = &self.collections[batch.collection].program;
        for number in batch.first..batch.first + u64::from(batch.count) {
            command.context.begin(number);
            let written = program.write(&mut command.context, &mut command.bytes);
            debug_assert!(written.is_ok(), "documents do not contain new documents");
        }
    }

    /// Makes the new documents of an ended operation available to others.
    #[inline]
    pub(crate) fn acknowledge(&self, command: &Command) {
        for &NewDocument { collection, number } in command.context.new_documents() {
            self.documents.0[collection].acknowledge(number);
        }
    }

    /// Appends the message of a command.
    pub(crate) fn encode(
        &self,
        action: Action,
        command: &Command,
        request_id: i32,
        transaction: Option<&Transaction>,
        out: &mut Vec<u8>,
    ) {
        if let Action::Command { index, .. } = action {
            let more = &self.operations[usize::from(index)].more;
            return write_command(out, request_id, &command.bytes, more, transaction);
        }
        let collection = &self.collections[command.collection];
        let Some(transaction) = transaction else {
            return collection.commands.insert_documents(out, request_id, &command.bytes);
        };
        let start = out.len();
        collection.retryable.insert_documents(out, request_id, &command.bytes);
        collection.retryable.set_transaction(&mut out[start..], transaction);
    }

    /// For further batches of an operation's cursor.
    pub(crate) fn cursor_commands(&self, index: u16) -> &CommandSet {
        &self.operations[usize::from(index)].cursor
    }

    /// Name of the collection of a load phase's documents.
    pub(crate) fn collection_of(&self, command: &Command) -> &str {
        &self.collections[command.collection].name
    }

    /// Read preference of an operation, for the driver.
    pub(crate) fn read_preference(&self, index: u16) -> Option<&Document> {
        self.operations[usize::from(index)].read_preference.as_ref()
    }

    /// The documents of an operation, if they are as many as the plan expects.
    #[inline]
    pub(crate) fn as_expected(&self, index: u16, documents: u32) -> Outcome {
        match self.operations[usize::from(index)].expect {
            Some(expect) if !expect.contains(u64::from(documents)) => Err(OperationError::Expect),
            _ => Ok(documents),
        }
    }

    /// The expected number of documents, such as `1..20`.
    pub(crate) fn expected_text(&self, index: u16) -> String {
        let expect = self.operations[usize::from(index)].expect;
        expect.map_or_else(String::new, |expect| expect.to_string())
    }
}

/// Examples of a plan's documents and commands.
pub struct Shown {
    /// Name of the collection or operation.
    pub name: String,
    /// Documents of a collection, or commands of an operation, as `mongosh` shows them, with their sizes in bytes.
    pub examples: Vec<(String, usize)>,
}

/// The first `count` documents of each own collection, and the first commands of each own operation.
///
/// # Errors
/// As for the workload itself.
pub fn show(plan: &Plan, count: u32) -> Result<(Vec<Shown>, Vec<Shown>), LoadError> {
    let own = Own::new(plan, &Concerns::default())?;
    let mut command = own.new_command();
    let mut examples = |name: &str, program: &Program| -> Result<Shown, LoadError> {
        let mut examples = Vec::new();
        for number in 0..u64::from(count) {
            command.begin(number);
            if program.write(&mut command.context, &mut command.bytes).is_err() {
                break;
            }
            let document = Document::from_reader(command.bytes.as_slice());
            let document = document.map_err(|error| workload_error(error.to_string()))?;
            examples.push((mongosh::shown(&document), command.bytes.len()));
        }
        Ok(Shown { name: name.to_owned(), examples })
    };
    let collections = own.collections.iter();
    let collections: Result<_, _> =
        collections.map(|collection| examples(&collection.name, &collection.program)).collect();
    let operations = own.operations.iter();
    let operations: Result<_, _> =
        operations.map(|operation| examples(&operation.name, &operation.program)).collect();
    Ok((collections?, operations?))
}

fn workload_error(reason: String) -> LoadError {
    LoadError::Workload { reason }
}

fn program_error(of: &str) -> impl Fn(ProgramError) -> LoadError {
    move |error| workload_error(format!("`{of}`: {error}"))
}

fn collection_of(read: &dyno_plan::workload::ReadCollection) -> Collection {
    Collection {
        name: read.name.clone(),
        records: read.records,
        variables: read.variables.clone(),
        document: read.document.clone(),
    }
}

/// The law of `%from` without a law of its own. A valid plan has no other distributions.
fn law_of(keys: &KeyDistribution) -> Law {
    match *keys {
        KeyDistribution::Zipfian { exponent } => Law::Zipf { exponent },
        KeyDistribution::Latest {} => Law::Latest { exponent: LATEST_EXPONENT },
        KeyDistribution::Hotspot { hot_data_ratio, hot_operation_ratio } => {
            Law::Hotspot { data: hot_data_ratio, draws: hot_operation_ratio }
        }
        KeyDistribution::Sequential {} => Law::Sequential,
        KeyDistribution::Uniform {}
        | KeyDistribution::ScrambledZipfian {}
        | KeyDistribution::Exponential { .. } => Law::Uniform,
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
    concerns: &'a Concerns,
    templates: &'a Templates<'a>,
}

impl Compiler<'_> {
    fn collection(
        &self,
        index: usize,
        collection: &Collection,
    ) -> Result<OwnCollection, LoadError> {
        let program = Program::of_collection(index, self.templates);
        Ok(OwnCollection {
            name: collection.name.clone(),
            records: collection.records,
            program: program.map_err(program_error(&collection.name))?,
            commands: self.command_set(&collection.name, false, None)?,
            retryable: self.command_set(&collection.name, true, None)?,
        })
    }

    fn operation(&self, read: &ReadOperation) -> Result<OwnOperation, LoadError> {
        let mut fields = fields_of(&read.command);
        let command = fields.first().map(|(name, _)| name.clone()).unwrap_or_default();
        let access = access_of(&command, &fields);
        let read_preference = self.read_preference(read, &command);
        self.add_concerns(read, &command, &mut fields)?;
        let target = match fields.first() {
            Some((_, Value::Constant(Bson::String(name)))) => name.clone(),
            // A command for the whole database.
            _ => "$cmd.aggregate".to_owned(),
        };
        let mut more = doc! { "$db": &self.plan.data.database };
        if let Some(preference) = &read_preference {
            more.insert("$readPreference", preference.clone());
        }
        let mode = read_preference.as_ref().and_then(|one| one.get_str("mode").ok());
        let owner = Owner::Step { operation: &read.name, step: 0, variables: &read.variables };
        let program = Program::compile(&Value::document(fields), owner, self.templates);
        Ok(OwnOperation {
            name: read.name.clone(),
            weight: read.weight,
            access,
            program: program.map_err(program_error(&read.name))?,
            expect: read.expect,
            more: elements(&more)?,
            cursor: self.command_set(&target, false, mode)?,
            read_preference,
        })
    }

    /// The operation's own read preference, otherwise the connection's for commands that read.
    fn read_preference(&self, read: &ReadOperation, command: &str) -> Option<Document> {
        let of_connection = self.concerns.read_preference.as_ref();
        let of_connection = of_connection.filter(|_| READS.contains(&command));
        let of_connection = of_connection.map(|mode| doc! { "mode": mode });
        read.read_preference.clone().or(of_connection)
    }

    /// Adds the operation's own concerns, otherwise the connection's, unless the command has its own.
    fn add_concerns(
        &self,
        read: &ReadOperation,
        command: &str,
        fields: &mut Vec<(String, Value)>,
    ) -> Result<(), LoadError> {
        let level = self.concerns.read_level.as_ref().filter(|_| READS.contains(&command));
        let level = level.map(|level| doc! { "level": level });
        let write = self.concerns.write.as_ref().filter(|_| WRITES.contains(&command));
        let write = write.map(write_concern).filter(|concern| !concern.is_empty());
        let concerns = [
            ("readConcern", &read.read_concern, level),
            ("writeConcern", &read.write_concern, write),
        ];
        for (name, own, of_connection) in concerns {
            let is_in_command = fields.iter().any(|(field, _)| field == name);
            let concern = match (own, is_in_command) {
                (Some(_), true) => {
                    let reason = format!("`{}` has `{name}` twice", read.name);
                    return Err(workload_error(reason));
                }
                (None, true) => None,
                (own, false) => own.clone().or(of_connection),
            };
            let concern = concern.map(|concern| Value::Constant(Bson::Document(concern)));
            fields.extend(concern.map(|concern| (name.to_owned(), concern)));
        }
        Ok(())
    }

    fn command_set(
        &self,
        collection: &str,
        retryable_writes: bool,
        read_preference: Option<&str>,
    ) -> Result<CommandSet, LoadError> {
        let options = CommandOptions {
            database: self.plan.data.database.clone(),
            collection: collection.to_owned(),
            write_concern: self.concerns.write.clone(),
            read_preference: read_preference.map(str::to_owned),
            retryable_writes,
            ..CommandOptions::default()
        };
        CommandSet::new(&options).map_err(|error| workload_error(error.to_string()))
    }
}

/// Elements of a document, encoded.
fn elements(document: &Document) -> Result<Vec<u8>, LoadError> {
    let bytes = document.to_vec().map_err(|error| workload_error(error.to_string()))?;
    Ok(bytes[4..bytes.len() - 1].to_vec())
}

/// The fields of a command.
fn fields_of(command: &Value) -> Vec<(String, Value)> {
    match command {
        Value::Document(fields) => fields.clone(),
        Value::Constant(Bson::Document(document)) => {
            let fields = document.iter();
            fields.map(|(name, value)| (name.clone(), Value::Constant(value.clone()))).collect()
        }
        _ => Vec::new(),
    }
}

/// Servers recognize a second attempt at inserts, at changes of single documents, and at `findAndModify`.
fn access_of(command: &str, fields: &[(String, Value)]) -> Access {
    let changes_one = |statements: &str, name: &str, single: fn(Option<&Value>) -> bool| {
        let statements = fields.iter().find(|(field, _)| field == statements);
        let statements = statements.map(|(_, value)| elements_of(value)).unwrap_or_default();
        let is_single = |statement: &Value| {
            let fields = fields_of(statement);
            single(fields.iter().find(|(field, _)| field == name).map(|(_, value)| value))
        };
        !statements.is_empty() && statements.iter().all(is_single)
    };
    let is_once = match command {
        name if READS.contains(&name) => return read_access(fields),
        "insert" | "findAndModify" => true,
        "update" => changes_one("updates", "multi", |multi| {
            matches!(multi, None | Some(Value::Constant(Bson::Boolean(false))))
        }),
        "delete" => changes_one("deletes", "limit", |limit| {
            matches!(limit, Some(Value::Constant(Bson::Int32(1) | Bson::Int64(1))))
        }),
        _ => false,
    };
    if is_once { Access::WritesOnce } else { Access::Writes }
}

/// An aggregation that writes its result is a write.
fn read_access(fields: &[(String, Value)]) -> Access {
    let pipeline = fields.iter().find(|(name, _)| name == "pipeline");
    let stages = pipeline.map(|(_, value)| elements_of(value)).unwrap_or_default();
    let writes = stages.iter().any(|stage| {
        fields_of(stage).first().is_some_and(|(name, _)| name == "$out" || name == "$merge")
    });
    if writes { Access::Writes } else { Access::Reads }
}

fn elements_of(array: &Value) -> Vec<Value> {
    match array {
        Value::Array(values) => values.clone(),
        Value::Constant(Bson::Array(values)) => {
            values.iter().cloned().map(Value::Constant).collect()
        }
        _ => Vec::new(),
    }
}

fn write_concern(concern: &WriteConcern) -> Document {
    let mut document = Document::new();
    match &concern.w {
        Some(Acknowledgement::Number(number)) => {
            document.insert("w", i64::from(*number));
        }
        Some(Acknowledgement::Majority) => {
            document.insert("w", "majority");
        }
        Some(Acknowledgement::Tag(name)) => {
            document.insert("w", name);
        }
        None => {}
    }
    if let Some(journal) = concern.journal {
        document.insert("j", journal);
    }
    if let Some(wtimeout_ms) = concern.wtimeout_ms {
        document.insert("wtimeout", i64::try_from(wtimeout_ms).unwrap_or(i64::MAX));
    }
    document
}

#[cfg(test)]
mod tests;
