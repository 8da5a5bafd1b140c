//! Maps operation numbers to operations that a backend can perform.
//!
//! An operation is a function of the seed and its number alone, whichever worker performs it and however many
//! there are. Only two things depend on the course of the run: which documents a run has inserted so far, and
//! therefore which the `latest` and `exponential` distributions can choose.

use crate::core::UNMEASURED_BIT;
use crate::data::values;
use crate::keys::KeyChooser;
use crate::operation::{Action, Outcome, Planned};
use crate::own::{Command, Counted, Ending, Following, Stage};
use crate::workload::{Task, Workload};
use dyno_plan::model::ScanLength;
use dyno_plan::operation::OperationId;
use dyno_wire::command::Projection;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::ops::Range;
use std::sync::Arc;

/// Selects the random sequence of values, independent of the keys.
const VALUE_STREAM: u64 = 0x5851_f42d_4c95_7f2d;

/// One operation: everything that a backend needs to perform it, independent of the backend.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) planned: Planned,
    /// Its command, or the one of the current part.
    pub(crate) action: Action,
    /// Index under which that command counts.
    pub(crate) counts_as: OperationId,
    /// Its document; the first document of a batch or scan.
    pub(crate) document: u64,
    /// Number of documents of a scan or batch; otherwise 1.
    pub(crate) count: u32,
    /// Fields that a read or scan returns.
    pub(crate) projection: Projection,
    /// Indexes of the fields that an update sets.
    pub(crate) fields: Range<usize>,
    /// Source of its values. A clone yields the same values again.
    pub(crate) values: Xoshiro256PlusPlus,
    /// The own command, or the own documents of a load; absent for YCSB's operations.
    pub(crate) command: Option<Box<Command>>,
    /// Whether an earlier attempt at this insert may have succeeded, so that an existing document is not a failure.
    pub(crate) may_exist: bool,
    /// Outcome of an own operation that has nothing more to send.
    pub(crate) over: Option<Outcome>,
    number: u64,
    new_document: NewDocument,
}

/// Source of an operation's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewDocument {
    /// An existing document, or one of the load phase.
    No,
    /// From the counter of new documents, which must be notified of the operation's end.
    Taken,
    /// Like `Taken`, but the counter had none available yet.
    Awaited,
}

impl Operation {
    #[inline]
    fn follow(&mut self, following: Following) {
        self.new_document = NewDocument::No;
        match following {
            Following::Send => {}
            Following::Wait => self.new_document = NewDocument::Awaited,
            Following::End(outcome) => self.over = Some(outcome),
        }
    }

    /// Whether the operation cannot be performed yet, because no new document was available.
    pub(crate) fn awaits_document(&self) -> bool {
        self.new_document == NewDocument::Awaited
    }

    /// Index under which the current step of an own operation counts, if it has several.
    #[inline]
    pub(crate) fn step(&self) -> Option<OperationId> {
        let command = self.command.as_ref().filter(|command| command.stage() == Stage::Steps)?;
        self.planned.step(command.step())
    }
}

/// One worker's generator of operations.
pub(crate) struct Generator {
    workload: Arc<Workload>,
    chooser: KeyChooser,
    /// Commands of ended operations, whose buffers are used again.
    #[expect(
        clippy::vec_box,
        reason = "an operation owns its box, which must not be allocated again"
    )]
    spare: Vec<Box<Command>>,
    jitter: Xoshiro256PlusPlus,
}

impl Generator {
    pub(crate) fn new(workload: Arc<Workload>) -> Self {
        Generator {
            chooser: workload.chooser.clone(),
            spare: Vec::new(),
            jitter: Xoshiro256PlusPlus::seed_from_u64(workload.seed),
            workload,
        }
    }

    /// The workload that the operations come from.
    pub(crate) fn workload(&self) -> &Arc<Workload> {
        &self.workload
    }

    /// Random numbers of operation `number`.
    #[inline]
    fn rng(&self, number: u64) -> Xoshiro256PlusPlus {
        // The generator's seeding scrambles, so adjacent numbers yield unrelated sequences.
        Xoshiro256PlusPlus::seed_from_u64(self.workload.seed.rotate_left(32) ^ number)
    }

    /// Operation `number`. If it inserts a new document, takes the document's number as well, if available.
    pub(crate) fn next(&mut self, number: u64) -> Operation {
        let mut rng = self.rng(number);
        match &self.workload.task {
            Task::Load { planned, first, end, batch, .. } => {
                let batch = u64::from(*batch);
                let document = first + number_in_phase(number) * batch;
                let count = end.saturating_sub(document).min(batch) as u32;
                self.operation(*planned, number, document, count)
            }
            Task::LoadOwn { planned, batches, .. } => {
                let (planned, batch) = (*planned, batches.get(number_in_phase(number)));
                let mut insert = self.operation(planned, number, batch.first, batch.count);
                let mut command = self.take_command();
                if let Some(own) = &self.workload.own {
                    own.write_documents(batch, &mut command);
                }
                insert.command = Some(command);
                insert
            }
            Task::Mix(mix) => {
                let planned = mix.planned(number_in_phase(number), &mut rng);
                if let Action::Command { .. } = planned.action {
                    return self.own(planned, number);
                }
                self.next_of_mix(planned, number, rng)
            }
        }
    }

    fn next_of_mix(
        &mut self,
        planned: Planned,
        number: u64,
        mut rng: Xoshiro256PlusPlus,
    ) -> Operation {
        if planned.action == Action::Insert {
            let mut insert = self.operation(planned, number, 0, 1);
            insert.new_document = NewDocument::Awaited;
            self.take_document(&mut insert);
            return insert;
        }
        let newest = self.workload.inserts.newest_acknowledged();
        let document = self.chooser.next(number_in_phase(number), &mut rng, newest);
        // Keys drawn in the warm-up are not part of the result.
        if number & UNMEASURED_BIT == 0 {
            self.workload.observe_key(document);
        }
        let is_scan = planned.action == Action::Scan;
        let count = if is_scan { self.scan_length(&mut rng) } else { 1 };
        self.operation(planned, number, document, count)
    }

    /// An own operation with its command, which may have to wait for a new document.
    fn own(&mut self, planned: Planned, number: u64) -> Operation {
        let mut operation = self.operation(planned, number, 0, 1);
        let mut command = self.take_command();
        command.begin(number);
        operation.command = Some(command);
        operation.new_document = NewDocument::Awaited;
        self.take_document(&mut operation);
        operation
    }

    fn take_command(&mut self) -> Box<Command> {
        let own = self.workload.own.as_ref();
        let new = || own.expect("only own workloads have commands").new_command();
        self.spare.pop().unwrap_or_else(|| Box::new(new()))
    }

    fn operation(&self, planned: Planned, number: u64, document: u64, count: u32) -> Operation {
        let mut values = self.rng(number ^ VALUE_STREAM);
        let all = 0..self.workload.field_names.len();
        let (projection, fields) = match planned.action {
            Action::Read | Action::Scan => (self.projection(&mut values), all),
            Action::Update => (Projection::All, self.updated_fields(&mut values)),
            Action::Insert | Action::InsertBatch | Action::Delete | Action::Command { .. } => {
                (Projection::All, all)
            }
        };
        Operation {
            planned,
            action: planned.action,
            counts_as: planned.parts.map_or(planned.id, |[read, _]| read),
            document,
            count,
            projection,
            fields,
            values,
            command: None,
            may_exist: false,
            over: None,
            number,
            new_document: NewDocument::No,
        }
    }

    /// The update that follows the read of a read-modify-write.
    pub(crate) fn update_after(&self, read: &Operation) -> Operation {
        let mut values = self.rng(read.number ^ !VALUE_STREAM);
        Operation {
            action: Action::Update,
            counts_as: read.planned.parts.map_or(read.planned.id, |[_, update]| update),
            fields: self.updated_fields(&mut values),
            values,
            command: None,
            ..*read
        }
    }

    /// Takes the document of a waiting insert. Returns whether the operation can be performed now.
    pub(crate) fn take_document(&self, operation: &mut Operation) -> bool {
        if operation.awaits_document()
            && let Some(command) = &mut operation.command
        {
            if let Some(own) = &self.workload.own {
                let following = own.write(&mut operation.action, command);
                operation.follow(following);
            }
        } else if operation.awaits_document()
            && let Some(document) = self.workload.inserts.next()
        {
            operation.document = document;
            operation.new_document = NewDocument::Taken;
        }
        !operation.awaits_document()
    }

    /// Continues an own operation whose command has ended. Returns an event to be counted.
    #[inline]
    pub(crate) fn after(&self, operation: &mut Operation, ending: Ending) -> Option<Counted> {
        let (own, command) = self.workload.own.as_ref().zip(operation.command.as_mut())?;
        let following = own.after(&mut operation.action, command, ending);
        let counted = command.take_counted();
        operation.follow(following);
        counted
    }

    /// Whether an own operation has values from replies.
    #[inline]
    pub(crate) fn needs_replies(&self, operation: &Operation) -> bool {
        self.workload.own.as_ref().is_some_and(|own| own.needs_replies(operation.action))
    }

    /// Prepares a failed operation to be performed again.
    pub(crate) fn repeat(&self, operation: &mut Operation) {
        operation.over = None;
        if let (Some(own), Some(command)) = (&self.workload.own, &mut operation.command)
            && own.repeat(operation.action, command)
        {
            operation.new_document = NewDocument::Awaited;
        }
    }

    /// Keeps the reply to an own command, if others need it.
    #[inline]
    pub(crate) fn keep_reply(&self, operation: &mut Operation, reply: &[u8]) {
        if let (Some(own), Some(command)) = (&self.workload.own, &mut operation.command) {
            own.keep_reply(operation.action, command, reply);
        }
    }

    /// Why the number of documents of an own operation is not as expected.
    pub(crate) fn unexpected(&self, operation: &Operation) -> String {
        let own = self.workload.own.as_ref().zip(operation.command.as_ref());
        own.map_or_else(String::new, |(own, command)| own.unexpected(operation.action, command))
    }

    /// Records the end of an operation.
    pub(crate) fn finished(&mut self, operation: &mut Operation) {
        if let Some(command) = operation.command.take() {
            if let Some(own) = &self.workload.own {
                own.acknowledge(&command);
            }
            self.spare.push(command);
        }
        if operation.new_document == NewDocument::Taken {
            self.workload.inserts.acknowledge(operation.document);
        }
    }

    fn scan_length(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let access = &self.workload.access;
        let (min, max) = (access.min_scan_length, access.max_scan_length);
        match access.scan_length_distribution {
            ScanLength::Uniform => rng.random_range(min..=max),
            ScanLength::Zipfian => values::zipfian_between(min, max, rng),
        }
    }

    fn projection(&self, rng: &mut Xoshiro256PlusPlus) -> Projection {
        let access = &self.workload.access;
        if self.workload.data.integrity {
            return Projection::AllByName;
        }
        match (access.read_all_fields, access.read_all_fields_by_name) {
            (true, false) => Projection::All,
            (true, true) => Projection::AllByName,
            (false, _) => Projection::One(rng.random_range(0..self.workload.field_names.len())),
        }
    }

    fn updated_fields(&self, rng: &mut Xoshiro256PlusPlus) -> Range<usize> {
        let fields = self.workload.field_names.len();
        if self.workload.access.write_all_fields {
            0..fields
        } else {
            let field = rng.random_range(0..fields);
            field..field + 1
        }
    }

    /// Delay before a failed operation is retried: the mean ± 20 %, so that clients that failed together do not retry
    /// together.
    pub(crate) fn retry_delay_ns(&mut self, mean_ns: u64) -> u64 {
        (mean_ns as f64 * self.jitter.random_range(0.8..1.2)) as u64
    }

    /// A random delay of at most `longest_ns`.
    pub(crate) fn random_delay_ns(&mut self, longest_ns: u64) -> u64 {
        self.jitter.random_range(0..=longest_ns)
    }
}

/// The number within its phase, without the phase bit.
fn number_in_phase(number: u64) -> u64 {
    number & !UNMEASURED_BIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::acknowledged::DEFAULT_WINDOW;
    use crate::workload::Concerns;

    fn generator(change: impl FnOnce(&mut dyno_plan::Plan)) -> Generator {
        let mut plan = dyno_plan::builtin::find("a").unwrap();
        plan.data.records = 100;
        change(&mut plan);
        let workload = Workload::mix(&plan, &Concerns::default()).unwrap();
        Generator::new(Arc::new(workload))
    }

    #[test]
    fn an_operation_depends_on_its_number_alone() {
        let (mut forward, mut backward) = (generator(|_| ()), generator(|_| ()));
        let text = |operation: Operation| format!("{operation:?}");
        let ahead: Vec<_> = (0..50).map(|n| text(forward.next(n))).collect();
        let mut back: Vec<_> = (0..50).rev().map(|n| text(backward.next(n))).collect();
        back.reverse();
        assert_eq!(ahead, back);
    }

    #[test]
    fn an_insert_waits_until_a_new_document_is_free() {
        let mut generator = generator(|plan| {
            plan.operations.read = 0.0;
            plan.operations.update = 0.0;
            plan.operations.insert = 1.0;
        });
        let mut first = generator.next(0);
        assert_eq!((first.document, first.awaits_document()), (100, false));
        // A run may be a whole window ahead of the oldest unanswered insert.
        let mut last = generator.next(1);
        while !last.awaits_document() {
            last = generator.next(1);
        }
        assert!(!generator.take_document(&mut last));
        generator.finished(&mut first);
        assert!(generator.take_document(&mut last));
        assert_eq!(last.document, 100 + DEFAULT_WINDOW);
    }

    #[test]
    fn read_modify_write_updates_the_document_it_read() {
        let mut generator = generator(|plan| {
            plan.operations.read = 0.0;
            plan.operations.update = 0.0;
            plan.operations.read_modify_write = 1.0;
            plan.access.write_all_fields = false;
        });
        let read = generator.next(7);
        let update = generator.update_after(&read);
        assert_eq!((read.action, update.action), (Action::Read, Action::Update));
        assert_eq!(read.planned, update.planned);
        assert_eq!(read.planned.parts, Some([read.counts_as, update.counts_as]));
        assert_eq!(update.document, read.document);
        assert_eq!(update.fields.len(), 1);
    }
}
