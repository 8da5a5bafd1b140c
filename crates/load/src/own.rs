//! The own collections and operations of a plan: compiled when the plan is known, written by every worker.
//!
//! A document's number is its place in its collection, an operation's its place in the phase. New documents are numbered
//! behind the loaded ones, and exist for other operations when their insert has ended.

mod batches;
mod compile;
mod mongosh;
mod steps;
mod transaction;

pub(crate) use batches::{Batch, Batches};
pub(crate) use steps::{Command, Following};
pub(crate) use transaction::{Counted, Ending, Stage, TransactionLabels};

use crate::error::LoadError;
use crate::keys::InsertCounter;
use crate::operation::{Action, Planned};
use crate::program::{
    AwaitsDocument, Collection, Context, Documents, NewDocument, Program, ProgramError, Templates,
};
use crate::workload::Concerns;
use bson::{Document, doc};
use compile::{Compiler, collection_of, law_of};
use dyno_plan::Plan;
use dyno_plan::operation::Operations;
use dyno_plan::workload::ReadWorkload;
use dyno_wire::command::{CommandSet, IN_TRANSACTION, Transaction, write_command};
use dyno_wire::frame::HEADER_BYTES;
use std::sync::Arc;
use steps::{OwnOperation, OwnStep};

/// See the module.
pub(crate) struct Own {
    collections: Vec<OwnCollection>,
    operations: Vec<OwnOperation>,
    /// Elements of the commands that end transactions, which only the wire needs.
    of_admin: Vec<u8>,
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
            of_admin: compile::elements(&doc! { "$db": "admin" })?,
            documents: Arc::new(OwnDocuments(counters.collect())),
        })
    }

    /// The operations with their weights.
    pub(crate) fn planned(&self, operations: &Operations) -> Vec<(Planned, f64)> {
        let planned = self.operations.iter().enumerate().filter_map(|(index, operation)| {
            let index = u16::try_from(index).ok()?;
            let action =
                Action::Command { index, step: 0, access: operation.steps.first()?.access };
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
        Command::new(Context::new(documents))
    }

    /// Writes the next command of an operation that begins, or that waited for a new document.
    #[inline]
    pub(crate) fn write(&self, action: &mut Action, command: &mut Command) -> Following {
        self.follow(action, command, OwnOperation::write)
    }

    /// Continues an operation whose command has ended.
    #[inline]
    pub(crate) fn after(
        &self,
        action: &mut Action,
        command: &mut Command,
        ending: Ending,
    ) -> Following {
        self.follow(action, command, |operation, command| operation.after(command, ending))
    }

    #[inline]
    fn follow(
        &self,
        action: &mut Action,
        command: &mut Command,
        follow: impl FnOnce(&OwnOperation, &mut Command) -> Following,
    ) -> Following {
        let Action::Command { index, step, access } = action else {
            return Following::Send;
        };
        let operation = &self.operations[usize::from(*index)];
        let following = follow(operation, command);
        if let Some(next) = operation.steps.get(command.step()) {
            *step = command.step() as u16;
            *access = next.access;
        }
        following
    }

    /// Prepares an operation that failed to be performed again: from the failed command on, or from the beginning if it is a
    /// transaction, or if all of its commands have ended. Returns whether its command must be written again.
    pub(crate) fn repeat(&self, action: Action, command: &mut Command) -> bool {
        let operation = self.operation(action);
        let repeats_all = operation.is_some_and(|operation| operation.repeats_all(command));
        if repeats_all {
            command.restart();
        }
        repeats_all
    }

    /// Whether the operation is a transaction.
    #[inline]
    pub(crate) fn is_transaction(&self, action: Action) -> bool {
        self.operation(action).is_some_and(|operation| operation.transaction.is_some())
    }

    /// Whether a command is the first one of a transaction.
    #[inline]
    pub(crate) fn starts_transaction(&self, action: Action, command: &Command) -> bool {
        command.starts_transaction() && self.is_transaction(action)
    }

    /// Read and write concern of a transaction, for the driver.
    pub(crate) fn transaction_concerns(
        &self,
        action: Action,
    ) -> (Option<&Document>, Option<&Document>) {
        let operation = self.operation(action);
        let transaction = operation.and_then(|operation| operation.transaction.as_ref());
        let concerns =
            transaction.map(|one| (one.read_concern.as_ref(), one.write_concern.as_ref()));
        concerns.unwrap_or_default()
    }

    /// Keeps the reply to a command that others need.
    #[inline]
    pub(crate) fn keep_reply(&self, action: Action, command: &mut Command, reply: &[u8]) {
        if let Some(step) = self.step(action)
            && step.keeps_reply
            && command.stage() == Stage::Steps
        {
            command.context.set_reply(command.step(), reply);
        }
    }

    fn step(&self, action: Action) -> Option<&OwnStep> {
        let Action::Command { index, step, .. } = action else {
            return None;
        };
        self.operations[usize::from(index)].steps.get(usize::from(step))
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
        if let (Some(operation), Some(step)) = (self.operation(action), self.step(action)) {
            let more: &[&[u8]] = match (&operation.transaction, command.stage()) {
                (None, _) => &[&step.more],
                (Some(_), Stage::Commit | Stage::Abort(_)) => &[&self.of_admin, IN_TRANSACTION],
                (Some(transaction), Stage::Steps) if command.starts_transaction() => {
                    &[&step.more, IN_TRANSACTION, &transaction.first]
                }
                (Some(_), Stage::Steps) => &[&step.more, IN_TRANSACTION],
            };
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

    /// Appends the message for the next batch of a command's cursor; `false` for actions without a command of their own.
    pub(crate) fn encode_get_more(
        &self,
        action: Action,
        cursor_id: i64,
        request_id: i32,
        transaction: Option<&Transaction>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(step) = self.step(action) else {
            return false;
        };
        if transaction.is_none() || !self.is_transaction(action) {
            step.cursor.get_more(out, request_id, cursor_id);
            return true;
        }
        let start = out.len();
        let more: &[&[u8]] = &[&step.more, IN_TRANSACTION];
        write_command(out, request_id, &step.get_more, more, transaction);
        // Behind the headers of message, section and document, and the type and name of the first value.
        let place = start + HEADER_BYTES + 5 + 4 + "-getMore-".len();
        out[place..place + 8].copy_from_slice(&cursor_id.to_le_bytes());
        true
    }

    /// Name of the collection of a load phase's documents.
    pub(crate) fn collection_of(&self, command: &Command) -> &str {
        &self.collections[command.collection].name
    }

    /// Read preference of a command, for the driver.
    pub(crate) fn read_preference(&self, action: Action) -> Option<&Document> {
        self.step(action)?.read_preference.as_ref()
    }

    /// Whether the operation has a command that needs the reply to another one.
    pub(crate) fn needs_replies(&self, action: Action) -> bool {
        self.operation(action).is_some_and(|operation| operation.needs_replies)
    }

    /// Why the number of documents of an operation is not as expected.
    pub(crate) fn unexpected(&self, action: Action, command: &Command) -> String {
        let operation = self.operation(action);
        operation.map_or_else(String::new, |operation| operation.unexpected(command))
    }

    fn operation(&self, action: Action) -> Option<&OwnOperation> {
        match action {
            Action::Command { index, .. } => Some(&self.operations[usize::from(index)]),
            _ => None,
        }
    }
}

/// Examples of a plan's documents and commands.
pub struct Shown {
    /// Name of the collection or operation.
    pub name: String,
    /// Documents of a collection, or commands of an operation, as `mongosh` shows them, with their sizes in bytes.
    pub examples: Vec<(String, usize)>,
}

/// The first `count` documents of each own collection, and the first commands of each own operation, by steps if it has
/// several.
///
/// # Errors
/// As for the workload itself.
pub fn show(plan: &Plan, count: u32) -> Result<(Vec<Shown>, Vec<Shown>), LoadError> {
    let own = Own::new(plan, &Concerns::default())?;
    let mut command = own.new_command();
    let mut examples =
        |name: String, write: &dyn Fn(&mut Command) -> Result<(), AwaitsDocument>| {
            let mut examples = Vec::new();
            for number in 0..u64::from(count) {
                command.begin(number);
                command.bytes.clear();
                if write(&mut command).is_err() {
                    break;
                }
                let document = Document::from_reader(command.bytes.as_slice());
                let document = document.map_err(|error| workload_error(error.to_string()))?;
                examples.push((mongosh::shown(&document), command.bytes.len()));
            }
            Ok::<_, LoadError>(Shown { name, examples })
        };
    let collections = own.collections.iter();
    let collections: Result<_, _> = collections
        .map(|collection| {
            examples(collection.name.clone(), &|command| {
                collection.program.write(&mut command.context, &mut command.bytes)
            })
        })
        .collect();
    let steps = own.operations.iter().flat_map(|operation| {
        let steps = operation.steps.iter().enumerate();
        steps.map(move |(index, step)| match operation.steps.len() {
            1 => (operation.name.clone(), step),
            _ => (format!("{}:{}", operation.name, index + 1), step),
        })
    });
    let operations: Result<_, _> =
        steps.map(|(name, step)| examples(name, &|command| step.write_example(command))).collect();
    Ok((collections?, operations?))
}

fn workload_error(reason: String) -> LoadError {
    LoadError::Workload { reason }
}

fn program_error(of: &str) -> impl Fn(ProgramError) -> LoadError {
    move |error| workload_error(format!("`{of}`: {error}"))
}

#[cfg(test)]
mod tests;
