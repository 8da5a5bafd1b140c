//! State of one worker's current operation: its number, variables, replies and new documents, in buffers that are reused.

use super::stream::Place;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The documents of all collections during a run. Collections are identified by their index in
/// [`Templates::collections`](super::Templates::collections).
pub trait Documents: Send + Sync {
    /// Number of documents that exist now: those with the numbers below it, at least the `records` of the collection.
    fn existing(&self, collection: usize) -> u64;

    /// The number of the next new document; `None` if none may be inserted before others are acknowledged.
    fn take_new(&self, collection: usize) -> Option<u64>;
}

/// A document that the current operation inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDocument {
    pub collection: usize,
    pub number: u64,
}

/// Values that could not be computed and were replaced by null, since the context was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// `%from` without a document that has the value.
    pub from: u64,
    /// `%reply` without the value in the reply.
    pub reply: u64,
    /// Functions with arguments of the wrong type, beyond the end of an array, or with an integer divisor of 0.
    pub function: u64,
}

/// State of the current operation. Each worker has one, and nothing in it allocates once its buffers have grown.
pub struct Context {
    pub(super) documents: Arc<dyn Documents>,
    clock: fn() -> i64,
    now_ms: Option<i64>,
    number: u64,
    /// Index of the list's element that the current command is written for.
    element: Option<u32>,
    frames: Vec<Frame>,
    depth: usize,
    replies: Vec<Vec<u8>>,
    /// Numbers that the operation has taken, in order; those before `repeated` are in the current attempt.
    taken: Vec<NewDocument>,
    repeated: usize,
    /// Variables of the operation that the current command has computed.
    computed: Vec<usize>,
    /// Whether the current command needs a new document, and none is available.
    pub(super) awaits_document: bool,
    pub(super) misses: Misses,
    scratch: Vec<Vec<u8>>,
    pub(super) spans: Vec<Span>,
}

/// State before a command.
#[derive(Clone, Copy)]
pub(super) struct BeforeCommand {
    /// Number of new documents in the commands of the operation so far.
    new_documents: usize,
    misses: Misses,
}

/// A value inside a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) kind: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// Whether another value has the same type and bytes.
    pub(super) fn equals(self, kind: u8, bytes: &[u8], buffer: &[u8]) -> bool {
        self.kind == kind && buffer[self.start..self.end] == *bytes
    }
}

/// The variables of an operation or document.
#[derive(Debug, Default)]
struct Frame {
    variables: Vec<Variable>,
}

/// A value of `let`, kept as BSON type and bytes.
#[derive(Debug, Default)]
pub(super) struct Variable {
    pub(super) state: VariableState,
    pub(super) bytes: Vec<u8>,
}

/// Whether a variable is computed, which happens on first use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum VariableState {
    #[default]
    Open,
    Absent,
    OfKind(u8),
}

impl Context {
    /// With the clock of the system for `%now`.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self::with_clock(documents, system_time_ms)
    }

    /// With another clock, in milliseconds since 1970.
    #[must_use]
    pub fn with_clock(documents: Arc<dyn Documents>, clock: fn() -> i64) -> Self {
        Context {
            documents,
            clock,
            now_ms: None,
            number: 0,
            element: None,
            frames: vec![Frame::default()],
            depth: 0,
            replies: Vec::new(),
            taken: Vec::new(),
            repeated: 0,
            computed: Vec::new(),
            awaits_document: false,
            misses: Misses::default(),
            scratch: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// Starts operation `number`, or document `number` of a collection.
    pub fn begin(&mut self, number: u64) {
        self.number = number;
        self.taken.clear();
        self.restart();
    }

    /// Starts the same operation again: variables and time are computed anew, and `%new` yields the same documents.
    pub fn restart(&mut self) {
        self.now_ms = None;
        self.repeated = 0;
        self.replies.iter_mut().for_each(Vec::clear);
        self.frames[0].clear();
    }

    /// Writes the next command for the element of a list: sets its variable, and its index, by which generated values
    /// differ.
    pub fn set_element(&mut self, variable: usize, index: usize, (kind, bytes): (u8, &[u8])) {
        self.element = u32::try_from(index).ok();
        let variable = self.variable(variable);
        variable.state = VariableState::OfKind(kind);
        variable.bytes.clear();
        variable.bytes.extend_from_slice(bytes);
    }

    /// Writes the next command outside of all lists.
    #[inline]
    pub fn leave_list(&mut self) {
        self.element = None;
    }

    /// Keeps the reply to a step, a BSON document.
    pub fn set_reply(&mut self, step: usize, reply: &[u8]) {
        if self.replies.len() <= step {
            self.replies.resize_with(step + 1, Vec::new);
        }
        let kept = &mut self.replies[step];
        kept.clear();
        kept.extend_from_slice(reply);
    }

    /// The reply to a step; empty before the reply.
    pub(super) fn reply(&self, step: usize) -> &[u8] {
        self.replies.get(step).map_or(&[], Vec::as_slice)
    }

    /// New documents of the operation so far, in order.
    #[must_use]
    pub fn new_documents(&self) -> &[NewDocument] {
        &self.taken
    }

    /// Values that were replaced by null so far.
    #[must_use]
    pub fn misses(&self) -> Misses {
        self.misses
    }

    /// Starts a command of the operation. Returns the state before it, for [`undo_command`](Self::undo_command).
    pub(super) fn begin_command(&mut self) -> BeforeCommand {
        self.awaits_document = false;
        self.computed.clear();
        BeforeCommand { new_documents: self.repeated, misses: self.misses }
    }

    /// Takes back a command that awaits a new document, so that it can be written again. The documents that it has taken
    /// already are kept for it.
    pub(super) fn undo_command(&mut self, before: BeforeCommand) {
        self.repeated = before.new_documents;
        self.misses = before.misses;
        for &index in &self.computed {
            self.frames[0].variables[index].state = VariableState::Open;
        }
    }

    pub(super) fn place(&self) -> Place {
        let place = Place::new(self.number);
        self.element.map_or(place, |index| place.element(index, 0))
    }

    /// Time of the operation in milliseconds since 1970: read on first use, so that all its values have the same.
    pub(super) fn now_ms(&mut self) -> i64 {
        *self.now_ms.get_or_insert_with(self.clock)
    }

    /// The number of the next new document of a collection; `None` if none is available yet.
    pub(super) fn new_document(&mut self, collection: usize) -> Option<u64> {
        let place = self.repeated;
        let repeated = self.taken[place..].iter().position(|new| new.collection == collection);
        let found = match repeated {
            Some(offset) => place + offset,
            None => {
                let number = self.documents.take_new(collection)?;
                self.taken.push(NewDocument { collection, number });
                self.taken.len() - 1
            }
        };
        // The others keep their order.
        self.taken[place..=found].rotate_right(1);
        self.repeated += 1;
        Some(self.taken[place].number)
    }

    /// Computes with the variables of another document; the current ones are kept.
    #[inline]
    pub(super) fn in_frame<T>(&mut self, compute: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        if self.frames.len() == self.depth {
            self.frames.push(Frame::default());
        }
        self.frames[self.depth].clear();
        let result = compute(self);
        self.depth -= 1;
        result
    }

    /// Keeps a computed variable.
    pub(super) fn set_variable(&mut self, index: usize, state: VariableState, bytes: Vec<u8>) {
        if self.depth == 0 {
            self.computed.push(index);
        }
        *self.variable(index) = Variable { state, bytes };
    }

    /// A variable of the current frame, open if it was not used yet.
    pub(super) fn variable(&mut self, index: usize) -> &mut Variable {
        let variables = &mut self.frames[self.depth].variables;
        if variables.len() <= index {
            variables.resize_with(index + 1, Variable::default);
        }
        &mut variables[index]
    }

    /// An empty buffer, to be given back.
    #[inline]
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        self.scratch.pop().unwrap_or_default()
    }

    #[inline]
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.scratch.push(buffer);
    }
}

impl Frame {
    fn clear(&mut self) {
        for variable in &mut self.variables {
            variable.state = VariableState::Open;
        }
    }
}

fn system_time_ms() -> i64 {
    // A clock before 1970 is 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
