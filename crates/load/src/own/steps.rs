//! The commands of an own operation, which are sent one after the other, and their state in an operation in flight.

use super::transaction::{Counted, Ending, OwnTransaction, Stage};
use crate::operation::{Access, OperationError, Outcome};
use crate::program::{AwaitsDocument, Context, Program};
use bson::Document;
use dyno_plan::workload::Expected;
use dyno_wire::bson::kind;
use dyno_wire::command::CommandSet;
use std::fmt;

pub(super) struct OwnOperation {
    pub(super) name: String,
    pub(super) weight: f64,
    pub(super) steps: Vec<OwnStep>,
    pub(super) expect: Option<Expected>,
    pub(super) transaction: Option<OwnTransaction>,
    /// Whether a command needs the reply to another one.
    pub(super) needs_replies: bool,
}

pub(super) struct OwnStep {
    pub(super) access: Access,
    pub(super) program: Program,
    pub(super) when: Option<When>,
    pub(super) each: Option<Each>,
    /// Whether another command needs its reply.
    pub(super) keeps_reply: bool,
    /// Elements that only the wire needs, such as `$db`.
    pub(super) more: Vec<u8>,
    /// For further batches of a cursor.
    pub(super) cursor: CommandSet,
    /// The same in a transaction: a `getMore` as BSON, with the cursor as its first value.
    pub(super) get_more: Vec<u8>,
    pub(super) read_preference: Option<Document>,
}

/// A condition of a step.
pub(super) struct When {
    /// A document with the count as its first value.
    pub(super) count: Program,
    pub(super) is: Expected,
}

/// Repeats a step for the elements of a list.
pub(super) struct Each {
    /// A document with the list as its first value.
    pub(super) list: Program,
    /// Place of the element among the variables.
    pub(super) variable: usize,
    pub(super) at_most: usize,
}

/// The command of an operation in flight, with the state that it is computed from. A command that is sent again has the same
/// bytes.
pub(crate) struct Command {
    pub(super) context: Context,
    /// The command as BSON; in a load phase, documents one after the other.
    pub(super) bytes: Vec<u8>,
    /// Collection of a load phase's documents.
    pub(super) collection: usize,
    place: Place,
    stage: Stage,
    /// Whether the command is the first one of a transaction.
    starts_transaction: bool,
    counted: Option<Counted>,
    /// Documents that the operation's commands returned or changed so far.
    documents: u32,
    /// Values of the step's condition and list.
    values: Vec<u8>,
    /// The elements of the step's list.
    elements: Vec<Element>,
}

/// Place of a command in its operation.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    step: usize,
    /// Whether the step's condition holds and its list is computed.
    is_entered: bool,
    /// Commands of the step before it.
    repetition: usize,
}

/// An element of a list: its type, and its bytes in the list's buffer.
#[derive(Clone, Copy, Debug)]
struct Element {
    kind: u8,
    start: usize,
    end: usize,
}

/// How an operation continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Following {
    /// Its next command is written.
    Send,
    /// Its next command needs a new document, which is not available yet.
    Wait,
    End(Outcome),
}

impl Command {
    pub(super) fn new(context: Context) -> Self {
        Command {
            context,
            bytes: Vec::new(),
            collection: 0,
            place: Place::default(),
            stage: Stage::Steps,
            starts_transaction: true,
            counted: None,
            documents: 0,
            values: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// Starts operation `number`.
    pub(crate) fn begin(&mut self, number: u64) {
        self.context.begin(number);
        self.begin_steps();
    }

    /// Starts the same operation again, with the same new documents.
    pub(super) fn restart(&mut self) {
        self.context.restart();
        self.begin_steps();
    }

    fn begin_steps(&mut self) {
        self.stage = Stage::Steps;
        self.starts_transaction = true;
        self.counted = None;
        self.documents = 0;
        self.enter(0);
    }

    /// The command as BSON; in a load phase, documents one after the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Index of its step.
    #[inline]
    pub(crate) fn step(&self) -> usize {
        self.place.step
    }

    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it is the first command, if its operation is a transaction.
    #[inline]
    pub(super) fn starts_transaction(&self) -> bool {
        self.starts_transaction
    }

    /// The commands that follow belong to the same transaction.
    pub(super) fn continue_transaction(&mut self) {
        self.starts_transaction = false;
    }

    /// Sets the command that ends the transaction.
    pub(super) fn set_end(&mut self, stage: Stage, command: &[u8]) {
        self.stage = stage;
        self.starts_transaction = false;
        self.bytes.clear();
        self.bytes.extend_from_slice(command);
    }

    /// Documents that the operation's commands returned or changed so far.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    pub(super) fn count(&mut self, event: Counted) {
        self.counted = Some(event);
    }

    /// The event since the last call.
    #[inline]
    pub(crate) fn take_counted(&mut self) -> Option<Counted> {
        self.counted.take()
    }

    /// Whether the first value of a document is true.
    pub(super) fn draws(&mut self, document: &Program) -> bool {
        self.values.clear();
        let written = document.write(&mut self.context, &mut self.values);
        written.is_ok() && first_value(&self.values) == Some((kind::BOOLEAN, &[1]))
    }

    fn enter(&mut self, step: usize) {
        self.place = Place { step, is_entered: false, repetition: 0 };
        self.context.leave_list();
    }

    /// The elements of the list in its buffer, `at_most` of them.
    fn find_elements(&mut self, at_most: usize) {
        self.elements.clear();
        let Some((kind::ARRAY, list)) = first_value(&self.values) else {
            return;
        };
        // The list ends before the final zero of its document.
        let mut offset = self.values.len() - 1 - list.len() + size_of::<i32>();
        let list = dyno_wire::bson::Document::new(list).into_iter();
        for element in list.flat_map(|list| list.elements()).map_while(Result::ok).take(at_most) {
            // Type, name and its end.
            let start = offset + element.name.len() + 2;
            offset = start + element.bytes().len();
            self.elements.push(Element { kind: element.kind, start, end: offset });
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Command")
            .field("place", &self.place)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl OwnOperation {
    /// Writes the command at the current place, or the next one that is to be sent.
    #[inline]
    pub(super) fn write(&self, command: &mut Command) -> Following {
        while let Some(step) = self.steps.get(command.place.step) {
            match step.write(command) {
                Ok(true) => return Following::Send,
                Ok(false) => command.enter(command.place.step + 1),
                Err(AwaitsDocument) => return Following::Wait,
            }
        }
        match &self.transaction {
            // Without commands there is no transaction.
            Some(transaction) if !command.starts_transaction => {
                transaction.write_end(command);
                Following::Send
            }
            _ => Following::End(self.as_expected(command.documents)),
        }
    }

    /// Continues after a command has ended.
    #[inline]
    pub(super) fn after(&self, command: &mut Command, ending: Ending) -> Following {
        match (&self.transaction, ending.outcome) {
            (Some(transaction), _) => self.after_in_transaction(transaction, command, ending),
            (None, Ok(documents)) => self.proceed(command, documents),
            (None, Err(error)) => Following::End(Err(error)),
        }
    }

    /// Continues behind a successful command of a step.
    #[inline]
    pub(super) fn proceed(&self, command: &mut Command, documents: u32) -> Following {
        command.documents = command.documents.saturating_add(documents);
        if self.steps[command.place.step].each.is_some() {
            command.place.repetition += 1;
        } else {
            command.enter(command.place.step + 1);
        }
        self.write(command)
    }

    /// Whether a further attempt at the operation performs all of its commands.
    pub(super) fn repeats_all(&self, command: &Command) -> bool {
        self.transaction.is_some() || command.place.step >= self.steps.len()
    }

    /// The sum of the documents, if they are as many as the plan expects.
    #[inline]
    pub(super) fn as_expected(&self, documents: u32) -> Outcome {
        match self.expect {
            Some(expect) if !expect.contains(u64::from(documents)) => Err(OperationError::Expect),
            _ => Ok(documents),
        }
    }

    /// Why the number of documents is not as expected.
    pub(super) fn unexpected(&self, command: &Command) -> String {
        let expect = self.expect.map_or_else(String::new, |expect| expect.to_string());
        format!("{} documents returned or changed, expected {expect}", command.documents)
    }
}

impl OwnStep {
    /// Writes the command at the current place; `false` if the step does not have any more.
    #[inline]
    fn write(&self, command: &mut Command) -> Result<bool, AwaitsDocument> {
        command.bytes.clear();
        if (self.when.is_some() || self.each.is_some()) && !self.prepare(command)? {
            return Ok(false);
        }
        self.program.write(&mut command.context, &mut command.bytes)?;
        Ok(true)
    }

    /// Evaluates the condition and the list; `false` if no command is to be sent.
    fn prepare(&self, command: &mut Command) -> Result<bool, AwaitsDocument> {
        if !command.place.is_entered {
            if let Some(when) = &self.when {
                command.values.clear();
                when.count.write(&mut command.context, &mut command.values)?;
                if !when.is.contains(count_in(&command.values)) {
                    return Ok(false);
                }
            }
            if let Some(each) = &self.each {
                command.values.clear();
                each.list.write(&mut command.context, &mut command.values)?;
                command.find_elements(each.at_most);
            }
            command.place.is_entered = true;
        }
        let Some(each) = &self.each else {
            return Ok(true);
        };
        let index = command.place.repetition;
        let Some(&Element { kind, start, end }) = command.elements.get(index) else {
            return Ok(false);
        };
        command.context.set_element(each.variable, index, (kind, &command.values[start..end]));
        Ok(true)
    }

    /// Writes its first command for people, whatever its condition is. Without replies, its list may be unknown.
    pub(super) fn write_example(&self, command: &mut Command) -> Result<(), AwaitsDocument> {
        command.enter(0);
        let is_in_list = self.each.is_some() && self.prepare(command)?;
        if let Some(each) = self.each.as_ref().filter(|_| !is_in_list) {
            command.context.set_element(each.variable, 0, (kind::NULL, &[]));
        }
        command.bytes.clear();
        self.program.write(&mut command.context, &mut command.bytes)
    }
}

/// Type and bytes of the first value in a document.
fn first_value(document: &[u8]) -> Option<(u8, &[u8])> {
    let document = dyno_wire::bson::Document::new(document).ok()?;
    let element = document.elements().next()?.ok()?;
    Some((element.kind, element.bytes()))
}

/// The count in the first value of a document; 0 if it is not a number.
fn count_in(document: &[u8]) -> u64 {
    let first = || {
        let document = dyno_wire::bson::Document::new(document).ok()?;
        document.elements().next()?.ok()?.number().ok()?
    };
    u64::try_from(first().unwrap_or(0)).unwrap_or(0)
}
