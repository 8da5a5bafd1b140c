//! The operations, shared by all workers: the documents with their keys and values, and the mix of operations.

use crate::data::integrity;
use crate::data::values::{self, FieldLengths};
use crate::error::LoadError;
use crate::keys::{InsertCounter, KeyChooser, KeyNames, ShareTable};
use crate::mix::Mix;
use crate::operation::{OperationError, Planned};
use crate::own::{Batches, Own};
use dyno_plan::model::{AccessPlan, DataPlan, KeyDistribution, Plan, ScanPath};
use dyno_plan::operation::{self, OperationId, Operations};
use dyno_record::model::KeyShares;
use dyno_wire::bson::{Document, Value};
use dyno_wire::command::{CommandOptions, CommandSet, WriteConcern};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Read and write concerns of the operations.
#[derive(Clone, Debug, Default)]
pub struct Concerns {
    /// Write concern of every write; absent for the server's default.
    pub write: Option<WriteConcern>,
    /// Read concern level of every read; absent for the server's default.
    pub read_level: Option<String>,
    /// Mode of the read preference of every read on the wire; absent to read from the primary.
    pub read_preference: Option<String>,
}

/// The operations of a run, shared read-only by all workers.
pub struct Workload {
    /// The operations of the plan.
    pub(crate) operations: Operations,
    pub(crate) task: Task,
    /// The commands of the operations on the wire.
    commands: CommandSet,
    /// The commands with a session in every write.
    pub(crate) retryable: CommandSet,
    pub(crate) data: DataPlan,
    pub(crate) access: AccessPlan,
    pub(crate) field_names: Vec<String>,
    /// Fields of each secondary index that scans use; empty if they use `_id`.
    pub(crate) indexes: Vec<Vec<String>>,
    /// Index of each one's first field among the names.
    first_fields: Vec<usize>,
    pub(crate) inserts: InsertCounter,
    pub(crate) chooser: KeyChooser,
    /// Lengths of the values.
    pub(crate) lengths: FieldLengths,
    /// Seed of keys and values.
    pub(crate) seed: u64,
    key_names: KeyNames,
    shares: Option<ShareTable>,
    /// Own collections and operations; absent for YCSB's.
    pub(crate) own: Option<Own>,
}

pub(crate) enum Task {
    /// Insert documents `first..end` in commands of up to `batch` documents.
    Load { planned: Planned, first: u64, end: u64, batch: u32, keep_existing: bool },
    /// Insert the documents of all own collections.
    LoadOwn { planned: Planned, batches: Batches, keep_existing: bool },
    /// Operations by weight.
    Mix(Mix),
}

/// The load phase of a plan.
#[derive(Clone, Copy, Debug)]
pub struct LoadTask {
    /// First document.
    pub first: u64,
    pub count: u64,
    /// Documents per command, at least 1.
    pub batch: u32,
    /// Whether an existing document is not a failure, because the load completes an earlier one.
    pub keep_existing: bool,
}

impl Workload {
    /// The load phase.
    ///
    /// # Errors
    /// [`LoadError::Workload`] if the numbers of the plan are inconsistent.
    pub fn load(plan: &Plan, task: LoadTask, concerns: &Concerns) -> Result<Self, LoadError> {
        let batch = task.batch.max(1);
        if plan.is_own() {
            return Self::load_own(plan, task, concerns);
        }
        let operations = Operations::of_weights(&plan.operations, batch);
        let name = if batch == 1 { operation::INSERT } else { operation::INSERT_BATCH };
        let task = Task::Load {
            planned: Planned::new(&operations, name).expect("it depends on the same number"),
            first: task.first,
            end: task.first + task.count,
            batch,
            keep_existing: task.keep_existing,
        };
        Self::new(plan, operations, task, concerns)
    }

    fn load_own(plan: &Plan, task: LoadTask, concerns: &Concerns) -> Result<Self, LoadError> {
        let operations = plan.counted_operations();
        let name = if plan.client.batch > 1 { operation::INSERT_BATCH } else { operation::INSERT };
        let own = Own::new(plan, concerns)?;
        let task = Task::LoadOwn {
            planned: Planned::of_load(&operations, name).expect("a plan counts its load"),
            batches: own.batches(task.batch.max(1)),
            keep_existing: task.keep_existing,
        };
        Ok(Workload { own: Some(own), ..Self::new(plan, operations, task, concerns)? })
    }

    /// The warm-up and measure phases: the operations of the plan by their weights.
    ///
    /// # Errors
    /// [`LoadError::Workload`] if no weight is positive or the numbers of the plan are inconsistent.
    pub fn mix(plan: &Plan, concerns: &Concerns) -> Result<Self, LoadError> {
        let order = plan.access.operation_order.unwrap_or_default();
        let operations = plan.counted_operations();
        if plan.is_own() {
            let own = Own::new(plan, concerns)?;
            let mix = Mix::of(&own.planned(&operations), order).ok_or_else(no_weight)?;
            let workload = Self::new(plan, operations, Task::Mix(mix), concerns)?;
            return Ok(Workload { own: Some(own), ..workload });
        }
        let mix = Mix::new(&plan.operations, order, &operations).ok_or_else(no_weight)?;
        Self::new(plan, operations, Task::Mix(mix), concerns)
    }

    fn new(
        plan: &Plan,
        operations: Operations,
        task: Task,
        concerns: &Concerns,
    ) -> Result<Self, LoadError> {
        let data = plan.data.clone();
        let field_names: Vec<String> = (0..data.field_count)
            .map(|field| format!("{}{field}", data.field_name_prefix))
            .collect();
        let count = data.insert_count.unwrap_or(data.records.saturating_sub(data.insert_start));
        if count == 0 {
            let reason = "the client's part of the documents is empty".into();
            return Err(LoadError::Workload { reason });
        }
        let chooser = KeyChooser::new(&plan.keys, data.insert_start, count, expected_new(plan));
        let shares = match task {
            Task::Load { .. } | Task::LoadOwn { .. } => None,
            // Own operations choose documents of several collections.
            Task::Mix(_) if plan.is_own() => None,
            Task::Mix(_) => ShareTable::new(data.insert_start, count),
        };
        let indexes = scanned_indexes(plan);
        let first_field = |fields: &Vec<String>| {
            let place = field_names.iter().position(|name| fields.first() == Some(name));
            place.unwrap_or_default()
        };
        let command_set = |retryable_writes| {
            let options = CommandOptions {
                database: data.database.clone(),
                collection: data.collection.clone(),
                write_concern: concerns.write.clone(),
                read_concern_level: concerns.read_level.clone(),
                read_preference: concerns.read_preference.clone(),
                field_names: field_names.clone(),
                indexes: indexes.clone(),
                retryable_writes,
            };
            CommandSet::new(&options)
                .map_err(|error| LoadError::Workload { reason: error.to_string() })
        };
        Ok(Workload {
            operations,
            first_fields: indexes.iter().map(first_field).collect(),
            task,
            commands: command_set(false)?,
            retryable: command_set(true)?,
            access: plan.access.clone(),
            field_names,
            indexes,
            key_names: KeyNames::new(&data.key_prefix, data.key_order, data.zero_padding)
                .with_new_documents(data.records, data.insert_step, data.insert_offset),
            // New documents follow the whole data set, even if this client uses only a part of it.
            inserts: InsertCounter::new(data.records),
            shares,
            chooser,
            lengths: FieldLengths::new(&data.field_length),
            seed: plan.client.seed,
            own: None,
            data,
        })
    }

    /// The commands on the wire; for writes that may be sent twice, with a session.
    #[inline]
    pub(crate) fn commands(&self, is_retryable: bool) -> &CommandSet {
        if is_retryable { &self.retryable } else { &self.commands }
    }

    /// Database and collection.
    pub(crate) fn namespace(&self) -> (&str, &str) {
        (&self.data.database, &self.data.collection)
    }

    /// Whether inserts of existing documents count as done.
    pub(crate) fn keeps_existing(&self) -> bool {
        matches!(
            self.task,
            Task::Load { keep_existing: true, .. } | Task::LoadOwn { keep_existing: true, .. }
        )
    }

    /// Counts the draw of a document for [`key_shares`](Self::key_shares).
    #[inline]
    pub(crate) fn observe_key(&self, document: u64) {
        if let Some(shares) = &self.shares {
            shares.observe(document);
        }
    }

    /// Appends the key of a document to `key`.
    #[inline]
    pub(crate) fn write_key(&self, document: u64, key: &mut Vec<u8>) {
        self.key_names.write(document, key);
    }

    /// Length of the longest key in bytes.
    pub(crate) fn longest_key_bytes(&self) -> usize {
        self.key_names.longest_bytes()
    }

    /// Draws the length of the next value, for [`fill_value`](Self::fill_value).
    #[inline]
    pub(crate) fn value_bytes(&self, values: &mut Xoshiro256PlusPlus) -> usize {
        self.lengths.sample(values) as usize
    }

    /// Fills a value of a field of the document with this key.
    #[inline]
    pub(crate) fn fill_value(
        &self,
        key: &[u8],
        field: usize,
        values: &mut Xoshiro256PlusPlus,
        value: &mut [u8],
    ) {
        if self.data.integrity {
            integrity::fill(key, self.field_names[field].as_bytes(), value);
        } else {
            values::fill(self.data.compressible_ratio, values, value);
        }
    }

    /// Draws the index of a scan and returns its first field; `None` if scans use `_id`.
    #[inline]
    pub(crate) fn draw_index(&self, values: &mut Xoshiro256PlusPlus) -> Option<(usize, usize)> {
        if self.indexes.is_empty() {
            return None;
        }
        let index = values.random_range(0..self.indexes.len());
        Some((index, self.first_fields[index]))
    }

    /// Compares a document with the values written under `key`.
    pub(crate) fn check(&self, key: &[u8], document: &[u8]) -> Result<(), OperationError> {
        let document = Document::new(document).map_err(|_| OperationError::Protocol)?;
        let length = self.lengths.longest_bytes() as usize;
        let is_intact = |name: &String| {
            let Ok(Some(element)) = document.find(name) else {
                return false;
            };
            match element.value() {
                Ok(Value::Binary { bytes, .. }) if bytes.len() == length => {
                    integrity::verify(key, name.as_bytes(), bytes)
                }
                _ => false,
            }
        };
        if self.field_names.iter().all(is_intact) { Ok(()) } else { Err(OperationError::Integrity) }
    }

    /// Indexes of the operations that get statistics in its phases.
    pub(crate) fn counted(&self) -> Vec<OperationId> {
        match &self.task {
            Task::Load { planned, .. } | Task::LoadOwn { planned, .. } => vec![planned.id],
            Task::Mix(mix) => mix.counted(),
        }
    }

    /// Whether this is a load phase.
    pub(crate) fn is_load(&self) -> bool {
        matches!(self.task, Task::Load { .. } | Task::LoadOwn { .. })
    }

    /// Number of commands of the load phase; `None` for a mix.
    pub fn load_operations(&self) -> Option<u64> {
        match self.task {
            Task::Load { first, end, batch, .. } => Some((end - first).div_ceil(u64::from(batch))),
            Task::LoadOwn { ref batches, .. } => Some(batches.len()),
            Task::Mix(_) => None,
        }
    }

    /// Skew of the measured operations' keys so far; `None` if none were drawn, or too many documents could be.
    pub fn key_shares(&self) -> Option<KeyShares> {
        self.shares.as_ref().and_then(ShareTable::shares)
    }
}

fn no_weight() -> LoadError {
    LoadError::Workload { reason: "no operation has a positive weight".into() }
}

fn scanned_indexes(plan: &Plan) -> Vec<Vec<String>> {
    let texts = |fields: Vec<&str>| fields.into_iter().map(str::to_owned).collect();
    match plan.access.scan_along.unwrap_or_default() {
        ScanPath::Key => Vec::new(),
        ScanPath::Indexes => plan.data.index_keys().map(texts).collect(),
    }
}

/// Number of documents that YCSB expects a run to add, which widens its zipfian range.
fn expected_new(plan: &Plan) -> u64 {
    let total: f64 = plan.operations.by_name().iter().map(|(_, weight)| weight).sum();
    let operations = plan.phases.operations.unwrap_or(0) as f64;
    if plan.keys != (KeyDistribution::ScrambledZipfian {}) || total <= 0.0 {
        return 0;
    }
    // Limited so that all document numbers fit into 63 bits.
    ((operations * plan.operations.insert / total * 2.0) as u64).min(1 << 61)
}
