//! What the operations are: from the number of an operation to the bytes of its command, and from
//! the server's reply to its outcome.
//!
//! Operation number `n` of a workload is a function of the seed and `n` alone, whichever worker
//! performs it and however many there are. Only two things depend on the course of the run: which
//! documents a run has inserted so far, and therefore which the `latest` and `exponential`
//! distributions can choose.

use crate::core::UNMEASURED_BIT;
use crate::data::integrity;
use crate::data::values::{FieldLengths, ValueFiller};
use crate::error::LoadError;
use crate::keys::{InsertCounter, KeyChooser, KeyNames, ShareObserver, ShareTable};
use crate::operation::{OperationError, OperationKind, Outcome, recorded_kinds};
use dyno_plan::model::{AccessPlan, DataPlan, KeyDistribution, OperationWeights, Plan, ScanLength};
use dyno_record::model::KeyShares;
use dyno_wire::bson::{Document, Value};
use dyno_wire::command::{CommandOptions, CommandSet, FieldWriter, Projection, WriteConcern};
use dyno_wire::reply::Reply;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// Server code of an insert whose key exists.
const DUPLICATE_KEY: i32 = 11000;

/// Start of the random sequence of the values, apart from that of the keys.
const VALUE_STREAM: u64 = 0x5851_f42d_4c95_7f2d;

/// Durability and visibility that the operations ask for.
#[derive(Clone, Debug, Default)]
pub struct Concerns {
    /// Write concern of every write; the server's default when absent.
    pub write: Option<WriteConcern>,
    /// Read concern level of every read; the server's default when absent.
    pub read_level: Option<String>,
}

/// What is performed, shared read-only by all workers.
pub struct Workload {
    task: Task,
    commands: CommandSet,
    data: DataPlan,
    access: AccessPlan,
    field_names: Vec<String>,
    key_names: KeyNames,
    inserts: InsertCounter,
    shares: Option<ShareTable>,
    chooser: KeyChooser,
    seed: u64,
}

enum Task {
    /// Insert documents `first..end` in commands of up to `batch` documents.
    Load {
        first: u64,
        end: u64,
        batch: u32,
        keep_existing: bool,
    },
    /// Operations by weight: each with the upper end of its part of `0..1`.
    Mix(Vec<(f64, OperationKind)>),
}

/// The load phase of a plan.
#[derive(Clone, Copy, Debug)]
pub struct LoadTask {
    /// First document.
    pub first: u64,
    /// Documents.
    pub count: u64,
    /// Documents per command, at least 1.
    pub batch: u32,
    /// A document that exists already is no failure: the load completes what an earlier one left.
    pub keep_existing: bool,
}

impl Workload {
    /// The load phase.
    ///
    /// # Errors
    /// [`LoadError::Workload`] if the numbers of the plan do not fit together.
    pub fn load(plan: &Plan, task: LoadTask, concerns: &Concerns) -> Result<Self, LoadError> {
        let task = Task::Load {
            first: task.first,
            end: task.first + task.count,
            batch: task.batch.max(1),
            keep_existing: task.keep_existing,
        };
        Self::new(plan, task, concerns)
    }

    /// The warm-up and measure phases: the operations of the plan by their weights.
    ///
    /// # Errors
    /// [`LoadError::Workload`] if no weight is positive or the numbers of the plan do not fit together.
    pub fn mix(plan: &Plan, concerns: &Concerns) -> Result<Self, LoadError> {
        let mix = cumulative(&plan.operations).ok_or_else(|| LoadError::Workload {
            reason: "no operation has a positive weight".into(),
        })?;
        Self::new(plan, Task::Mix(mix), concerns)
    }

    fn new(plan: &Plan, task: Task, concerns: &Concerns) -> Result<Self, LoadError> {
        let data = plan.data.clone();
        let field_names: Vec<String> = (0..data.field_count)
            .map(|field| format!("{}{field}", data.field_name_prefix))
            .collect();
        let count = data
            .insert_count
            .unwrap_or(data.records.saturating_sub(data.insert_start));
        let chooser = KeyChooser::new(&plan.keys, data.insert_start, count, expected_new(plan))
            .map_err(|error| LoadError::Workload {
                reason: error.to_string(),
            })?;
        let shares = match task {
            Task::Load { .. } => None,
            Task::Mix(_) => Some(ShareTable::new(data.insert_start, count)),
        };
        Ok(Workload {
            task,
            commands: CommandSet::new(&CommandOptions {
                database: data.database.clone(),
                collection: data.collection.clone(),
                write_concern: concerns.write.clone(),
                read_concern_level: concerns.read_level.clone(),
                field_names: field_names.clone(),
            })
            .map_err(|error| LoadError::Workload {
                reason: error.to_string(),
            })?,
            access: plan.access.clone(),
            field_names,
            key_names: KeyNames::new(&data.key_prefix, data.key_order, data.zero_padding)
                .with_new_documents(data.records, data.insert_step, data.insert_offset),
            // New documents follow the whole data set, also when this client works on a part of it.
            inserts: InsertCounter::new(data.records),
            shares,
            chooser,
            seed: plan.client.seed,
            data,
        })
    }

    /// Database and collection.
    pub(crate) fn namespace(&self) -> (&str, &str) {
        (&self.data.database, &self.data.collection)
    }

    /// Whether inserts of documents that exist already count as done.
    pub(crate) fn keeps_existing(&self) -> bool {
        matches!(
            self.task,
            Task::Load {
                keep_existing: true,
                ..
            }
        )
    }

    /// Kinds that get statistics.
    pub fn kinds(&self) -> Vec<OperationKind> {
        match &self.task {
            Task::Load { batch: 1, .. } => vec![OperationKind::Insert],
            Task::Load { .. } => vec![OperationKind::InsertBatch],
            Task::Mix(mix) => {
                recorded_kinds(&mix.iter().map(|(_, kind)| *kind).collect::<Vec<_>>())
            }
        }
    }

    /// Whether this is a load phase.
    pub(crate) fn is_load(&self) -> bool {
        matches!(self.task, Task::Load { .. })
    }

    /// Commands that the load phase needs; `None` for a mix.
    pub fn load_operations(&self) -> Option<u64> {
        match self.task {
            Task::Load {
                first, end, batch, ..
            } => Some((end - first).div_ceil(u64::from(batch))),
            Task::Mix(_) => None,
        }
    }

    /// Documents whose insert was attempted by this workload so far.
    pub fn inserts_attempted(&self) -> u64 {
        self.inserts.handed_out()
    }

    /// How unevenly the keys of the measured operations so far are spread; `None` if none were drawn.
    pub fn key_shares(&self) -> Option<KeyShares> {
        self.shares.as_ref().and_then(ShareTable::shares)
    }
}

/// Documents that YCSB expects a run to add, which widens its zipfian range.
fn expected_new(plan: &Plan) -> u64 {
    let weights = &plan.operations;
    let total = weights.read
        + weights.update
        + weights.insert
        + weights.scan
        + weights.read_modify_write
        + weights.delete;
    let operations = plan.phases.operations.unwrap_or(0) as f64;
    if plan.keys != (KeyDistribution::ScrambledZipfian {}) || total <= 0.0 {
        return 0;
    }
    (operations * weights.insert / total * 2.0) as u64
}

fn cumulative(weights: &OperationWeights) -> Option<Vec<(f64, OperationKind)>> {
    let entries = [
        (weights.read, OperationKind::Read),
        (weights.update, OperationKind::Update),
        (weights.insert, OperationKind::Insert),
        (weights.scan, OperationKind::Scan),
        (weights.read_modify_write, OperationKind::ReadModifyWrite),
        (weights.delete, OperationKind::Delete),
    ];
    let total: f64 = entries.iter().map(|(weight, _)| weight).sum();
    let mut upper = 0.0;
    let mut mix = Vec::new();
    for (weight, kind) in entries.into_iter().filter(|(weight, _)| *weight > 0.0) {
        upper += weight / total;
        mix.push((upper, kind));
    }
    // The last part ends at 1 whatever rounding made of the sum.
    mix.last_mut()?.0 = f64::INFINITY;
    Some(mix)
}

/// What the worker must remember of an operation that it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) kind: OperationKind,
    /// Document that it touches; the first one of a batch or a scan.
    pub(crate) document: u64,
    /// Documents asked for by a scan or written by a batch.
    pub(crate) limit: u32,
    /// The number in `document` was taken from the counter of new documents.
    counted: bool,
    /// An earlier attempt at this insert may have taken effect, so an existing document is no failure.
    pub(crate) may_exist: bool,
    /// The command could not be built yet: no number for a new document was free.
    pub(crate) waiting: bool,
}

/// One worker's way from operation numbers to commands.
pub(crate) struct Generator {
    workload: Arc<Workload>,
    chooser: KeyChooser,
    observer: Option<ShareObserver>,
    lengths: FieldLengths,
    filler: ValueFiller,
    key: Vec<u8>,
    jitter: Xoshiro256PlusPlus,
}

impl Generator {
    pub(crate) fn new(workload: Arc<Workload>) -> Self {
        Generator {
            chooser: workload.chooser.clone(),
            observer: workload.shares.as_ref().map(ShareTable::observer),
            lengths: FieldLengths::new(&workload.data.field_length),
            filler: ValueFiller::new(workload.data.compressible_ratio),
            key: Vec::with_capacity(workload.key_names.longest_bytes()),
            jitter: Xoshiro256PlusPlus::seed_from_u64(workload.seed),
            workload,
        }
    }

    /// Random numbers of operation `number`.
    #[inline]
    fn rng(&self, number: u64) -> Xoshiro256PlusPlus {
        // The generator's own seeding scrambles, so neighbouring numbers give unrelated sequences.
        Xoshiro256PlusPlus::seed_from_u64(self.workload.seed.rotate_left(32) ^ number)
    }

    /// Decides what operation `number` is and appends its first command to `out`.
    pub(crate) fn begin(&mut self, number: u64, request_id: i32, out: &mut Vec<u8>) -> Begun {
        let mut begun = self.decide(number);
        self.take_number(&mut begun);
        if !begun.waiting {
            self.write(&begun, number, request_id, out);
        }
        begun
    }

    /// Appends the first command of an operation that was begun before. Returns whether it could.
    pub(crate) fn repeat(
        &mut self,
        begun: &mut Begun,
        number: u64,
        request_id: i32,
        out: &mut Vec<u8>,
    ) -> bool {
        if begun.waiting {
            self.take_number(begun);
        }
        if !begun.waiting {
            self.write(begun, number, request_id, out);
        }
        !begun.waiting
    }

    fn take_number(&self, begun: &mut Begun) {
        if begun.counted {
            let number = self.workload.inserts.next();
            begun.waiting = number.is_none();
            begun.document = number.unwrap_or(0);
        }
    }

    fn decide(&mut self, number: u64) -> Begun {
        let mut rng = self.rng(number);
        let kind = match &self.workload.task {
            Task::Load {
                first, end, batch, ..
            } => {
                let document = first + number_in_phase(number) * u64::from(*batch);
                let limit = (end.saturating_sub(document)).min(u64::from(*batch)) as u32;
                let kind = if *batch == 1 {
                    OperationKind::Insert
                } else {
                    OperationKind::InsertBatch
                };
                return Begun {
                    kind,
                    document,
                    limit,
                    counted: false,
                    waiting: false,
                    may_exist: false,
                };
            }
            Task::Mix(mix) => {
                let draw: f64 = rng.random();
                mix.iter()
                    .find(|(upper, _)| draw < *upper)
                    .map_or(OperationKind::Read, |(_, kind)| *kind)
            }
        };
        self.decide_target(kind, number, &mut rng)
    }

    fn decide_target(
        &mut self,
        kind: OperationKind,
        number: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Begun {
        if kind == OperationKind::Insert {
            return Begun {
                kind,
                document: 0,
                limit: 1,
                counted: true,
                waiting: false,
                may_exist: false,
            };
        }
        let newest = self.workload.inserts.newest_acknowledged();
        let document = self.chooser.next(number_in_phase(number), rng, newest);
        // What the warm-up drew is no part of the result.
        if number & UNMEASURED_BIT == 0
            && let Some(observer) = &mut self.observer
        {
            observer.observe(document);
        }
        let limit = if kind == OperationKind::Scan {
            self.scan_length(rng)
        } else {
            1
        };
        Begun {
            kind,
            document,
            limit,
            counted: false,
            waiting: false,
            may_exist: false,
        }
    }

    fn scan_length(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let access = &self.workload.access;
        match access.scan_length_distribution {
            ScanLength::Uniform => {
                rng.random_range(access.min_scan_length..=access.max_scan_length)
            }
            ScanLength::Zipfian => {
                self.lengths
                    .zipfian_between(access.min_scan_length, access.max_scan_length, rng)
            }
        }
    }

    fn write(&mut self, begun: &Begun, number: u64, request_id: i32, out: &mut Vec<u8>) {
        let mut rng = self.rng(number ^ VALUE_STREAM);
        self.write_key(begun.document);
        let commands = &self.workload.commands;
        match begun.kind {
            OperationKind::Read | OperationKind::ReadModifyWrite => {
                commands.find_by_id(out, request_id, &self.key, self.projection(&mut rng));
            }
            OperationKind::Scan => {
                let projection = self.projection(&mut rng);
                commands.scan(out, request_id, &self.key, begun.limit, projection);
            }
            OperationKind::Update => self.write_update(&mut rng, request_id, out),
            OperationKind::Delete => commands.delete(out, request_id, &self.key),
            OperationKind::Insert => self.write_insert(&mut rng, request_id, out),
            OperationKind::InsertBatch => self.write_batch(begun, &mut rng, request_id, out),
        }
    }

    fn write_key(&mut self, document: u64) {
        self.key.clear();
        self.workload.key_names.write(document, &mut self.key);
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

    fn write_update(&self, rng: &mut Xoshiro256PlusPlus, request_id: i32, out: &mut Vec<u8>) {
        let workload = &self.workload;
        let fields = workload.field_names.len();
        let fields = if workload.access.write_all_fields {
            0..fields
        } else {
            let field = rng.random_range(0..fields);
            field..field + 1
        };
        workload
            .commands
            .update(out, request_id, &self.key, false, |writer| {
                for field in fields.clone() {
                    self.write_field(&self.key, field, writer, rng);
                }
            });
    }

    fn write_insert(&self, rng: &mut Xoshiro256PlusPlus, request_id: i32, out: &mut Vec<u8>) {
        let workload = &self.workload;
        let mut fields = |writer: &mut FieldWriter<'_>| {
            for field in 0..workload.field_names.len() {
                self.write_field(&self.key, field, writer, rng);
            }
        };
        if workload.access.upsert {
            workload
                .commands
                .replace_upsert(out, request_id, &self.key, &mut fields);
        } else {
            workload
                .commands
                .insert(out, request_id, &self.key, &mut fields);
        }
    }

    fn write_batch(
        &mut self,
        begun: &Begun,
        rng: &mut Xoshiro256PlusPlus,
        request_id: i32,
        out: &mut Vec<u8>,
    ) {
        let workload = Arc::clone(&self.workload);
        let mut key = std::mem::take(&mut self.key);
        let this = &*self;
        let document = |index: usize, writer: &mut dyno_wire::command::DocumentWriter<'_>| {
            key.clear();
            workload
                .key_names
                .write(begun.document + index as u64, &mut key);
            let mut fields = writer.key(&key);
            for field in 0..workload.field_names.len() {
                this.write_field(&key, field, &mut fields, rng);
            }
        };
        let count = begun.limit as usize;
        let held = if workload.access.upsert {
            workload
                .commands
                .upsert_many(out, request_id, count, document)
        } else {
            workload
                .commands
                .insert_many(out, request_id, false, count, document)
        };
        debug_assert_eq!(
            held, count,
            "a valid plan has batches that fit into a message"
        );
        self.key = key;
    }

    #[inline]
    fn write_field(
        &self,
        key: &[u8],
        field: usize,
        writer: &mut FieldWriter<'_>,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        let length = self.lengths.sample(rng);
        let value = writer.binary(field, length as usize);
        if self.workload.data.integrity {
            integrity::fill(key, self.workload.field_names[field].as_bytes(), value);
        } else {
            self.filler.fill(rng, value);
        }
    }

    /// Appends the update of a read-modify-write whose read has ended.
    pub(crate) fn update_after_read(
        &mut self,
        begun: &Begun,
        number: u64,
        request_id: i32,
        out: &mut Vec<u8>,
    ) {
        let mut rng = self.rng(number ^ !VALUE_STREAM);
        self.write_key(begun.document);
        self.write_update(&mut rng, request_id, out);
    }

    /// Appends the command for the next batch of a scan.
    pub(crate) fn get_more(&self, cursor_id: i64, request_id: i32, out: &mut Vec<u8>) {
        self.workload.commands.get_more(out, request_id, cursor_id);
    }

    /// The workload that the operations come from.
    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// What the reply to the current command of `begun` says, `part` being what that command does.
    pub(crate) fn outcome(
        &mut self,
        begun: &Begun,
        part: OperationKind,
        reply: &Reply<'_>,
    ) -> Outcome {
        if !reply.ok {
            return Err(OperationError::Server(reply.code));
        }
        match part {
            OperationKind::Read | OperationKind::ReadModifyWrite | OperationKind::Scan => {
                self.read_outcome(begun, part, reply)
            }
            OperationKind::Update | OperationKind::Delete => write_outcome(reply, true),
            OperationKind::Insert if self.workload.access.upsert => write_outcome(reply, false),
            OperationKind::Insert | OperationKind::InsertBatch => self.insert_outcome(begun, reply),
        }
    }

    fn read_outcome(&mut self, begun: &Begun, part: OperationKind, reply: &Reply<'_>) -> Outcome {
        let Some(cursor) = &reply.cursor else {
            return Err(OperationError::Protocol);
        };
        if self.workload.data.integrity && part != OperationKind::Scan {
            for document in cursor.documents() {
                self.check(begun, document.as_bytes())?;
            }
        }
        if cursor.count == 0 {
            Err(OperationError::NotFound)
        } else {
            Ok(cursor.count)
        }
    }

    /// Compares a document that was read with what was written, if the plan asks for it.
    pub(crate) fn check(&mut self, begun: &Begun, document: &[u8]) -> Result<(), OperationError> {
        if !self.workload.data.integrity {
            return Ok(());
        }
        self.write_key(begun.document);
        let document = Document::new(document).map_err(|_| OperationError::Protocol)?;
        if self.is_intact(document) {
            Ok(())
        } else {
            Err(OperationError::Integrity)
        }
    }

    fn is_intact(&self, document: Document<'_>) -> bool {
        self.workload.field_names.iter().all(|name| {
            let Ok(Some(element)) = document.find(name) else {
                return false;
            };
            match element.value() {
                Ok(Value::Binary { bytes, .. })
                    if bytes.len() == self.lengths.longest_bytes() as usize =>
                {
                    integrity::verify(&self.key, name.as_bytes(), bytes)
                }
                _ => false,
            }
        })
    }

    /// An insert is judged by its errors; of a load that completes an earlier one, and of an insert that
    /// is sent again because its answer was lost, existing documents are none.
    fn insert_outcome(&self, begun: &Begun, reply: &Reply<'_>) -> Outcome {
        if (self.workload.keeps_existing() || begun.may_exist)
            && let Some(existing) = duplicates(reply)
        {
            if let Some(error) = &reply.write_concern_error {
                return Err(OperationError::WriteConcern(error.code));
            }
            // By the failures and not by `n`, which not every server fills in truly.
            return Ok(begun.limit.saturating_sub(existing));
        }
        write_outcome(reply, false)
    }

    /// Takes note that an operation has ended.
    pub(crate) fn settle(&mut self, begun: &Begun, succeeded: bool) {
        if !begun.counted || begun.waiting {
            return;
        }
        if succeeded {
            self.workload.inserts.acknowledge(begun.document);
        } else {
            self.workload.inserts.skip(begun.document);
        }
    }

    /// The delay before a failed operation is sent again: the mean ± 20 %, so that clients that failed
    /// together do not come back together.
    pub(crate) fn retry_delay_ns(&mut self, mean_ns: u64) -> u64 {
        (mean_ns as f64 * self.jitter.random_range(0.8..1.2)) as u64
    }
}

/// How many inserts of the reply failed; `None` if any failed for another reason than that the document
/// exists.
fn duplicates(reply: &Reply<'_>) -> Option<u32> {
    let document = reply.document().ok()?;
    let Ok(Some(errors)) = document.find("writeErrors") else {
        return Some(0);
    };
    let mut count = 0;
    for error in errors.document().ok()??.elements() {
        let code = error.ok()?.document().ok()??.find("code").ok()??;
        if code.number().ok()? != Some(i64::from(DUPLICATE_KEY)) {
            return None;
        }
        count += 1;
    }
    Some(count)
}

fn write_outcome(reply: &Reply<'_>, must_match: bool) -> Outcome {
    if let Some(error) = &reply.first_write_error {
        return Err(OperationError::Server(error.code));
    }
    if let Some(error) = &reply.write_concern_error {
        return Err(OperationError::WriteConcern(error.code));
    }
    match reply.n {
        0 if must_match => Err(OperationError::NotFound),
        n => Ok(u32::try_from(n).unwrap_or(0)),
    }
}

/// The number within its phase, without the mark of the phase.
fn number_in_phase(number: u64) -> u64 {
    number & !UNMEASURED_BIT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body of a reply with the given document.
    fn body(document: &bson::Document) -> Vec<u8> {
        let mut body = vec![0; 5];
        body.extend(document.to_vec().expect("it is a plain document"));
        body
    }

    #[test]
    fn an_insert_sent_again_after_a_lost_answer_may_find_itself_there() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.data.records = 10;
        let task = LoadTask {
            first: 0,
            count: 10,
            batch: 1,
            keep_existing: false,
        };
        let workload =
            Workload::load(&plan, task, &Concerns::default()).expect("the plan is sound");
        let mut generator = Generator::new(Arc::new(workload));
        let mut begun = generator.begin(0, 1, &mut Vec::new());
        let failure = |code: i32| {
            body(
                &bson::doc! { "ok": 1, "n": 0, "writeErrors": [{ "index": 0, "code": code, "errmsg": "" }] },
            )
        };
        let (duplicate, other) = (failure(DUPLICATE_KEY), failure(8000));
        let duplicate = dyno_wire::reply::read(&duplicate).expect("it is a reply");
        let other = dyno_wire::reply::read(&other).expect("it is a reply");
        let mut outcome =
            |begun: &Begun, reply| generator.outcome(begun, OperationKind::Insert, reply);
        assert_eq!(
            outcome(&begun, &duplicate),
            Err(OperationError::Server(DUPLICATE_KEY))
        );
        begun.may_exist = true;
        assert_eq!(outcome(&begun, &duplicate), Ok(0));
        assert_eq!(outcome(&begun, &other), Err(OperationError::Server(8000)));
    }
}
