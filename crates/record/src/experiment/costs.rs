//! Costs of operations, from the consumption of a phase.

use super::figures::Figure;
use crate::consumption::Unknown;
use dyno_plan::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// Kind of cost. Names end in the unit.
    CostKind {
        /// CPU time of the servers per operation.
        ServerCpu = "server_cpu_us",
        /// CPU time of the load generator, or of the drivers, per operation.
        ClientCpu = "client_cpu_us",
        /// Context switches of the servers per operation.
        ContextSwitches = "context_switches_count",
        /// Bytes that the devices read per operation.
        ReadBytes = "device_read_bytes",
        /// Read requests to the devices per operation.
        ReadRequests = "device_reads_count",
        /// Bytes that the devices wrote per operation, during the phase.
        WrittenBytes = "device_written_bytes",
        /// Write requests to the devices per operation.
        WriteRequests = "device_writes_count",
        /// Flushes of the devices per operation.
        Flushes = "device_flushes_count",
        /// Pages that the servers read into their caches per operation.
        CacheMisses = "cache_misses_count",
        /// Time of the servers' journal syncs per operation.
        JournalSyncs = "journal_sync_us",
        /// Bytes that the servers received per operation.
        ReceivedBytes = "received_bytes",
        /// Bytes that the servers sent per operation.
        SentBytes = "sent_bytes",
        /// Bytes that the devices wrote, divided by the bytes of the changed documents.
        WriteAmplification = "write_amplification_ratio",
        /// Size of the files of the collection and its indexes, divided by the size of its documents.
        SpaceAmplification = "space_amplification_ratio",
        /// Memory of all servers at the end.
        ResidentBytes = "resident_bytes",
        /// Sum of the peak memory of each server.
        PeakBytes = "peak_resident_bytes",
        /// Energy of a million operations.
        Energy = "energy_per_million_joules",
        /// Price of a million operations, in the currency of the plan.
        Price = "price_per_million",
    }
}

impl CostKind {
    /// Whether the cost is per operation.
    pub fn is_per_operation(self) -> bool {
        self <= CostKind::SentBytes
    }

    /// Number of operations that the cost covers; `None` for costs that do not grow with operations.
    pub fn operations(self) -> Option<f64> {
        match self {
            CostKind::Energy | CostKind::Price => Some(1e6),
            one => one.is_per_operation().then_some(1.0),
        }
    }
}

named! {
    /// Divisor of costs.
    CostBasis {
        /// Operations that finished, including failed ones.
        Operation = "operation",
        /// Documents that the load phase inserted, or that an index was built on.
        Document = "document",
        /// Messages that consumers received, counted for each consumer.
        Message = "message",
    }
}

/// Costs of a phase, at most one of each kind.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// Divisor.
    pub basis: CostBasis,
    /// Value of the divisor.
    pub basis_count: u64,
    /// Known costs, in the order of [`CostKind`].
    pub values: Vec<Cost>,
    /// Currency of the price, if the plan names one.
    pub currency: Option<String>,
    /// Divisor of the write amplification; absent if nothing was changed, or if it is unknown.
    pub changed: Option<ChangedDocuments>,
    /// Unknown costs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// One kind of cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Kind with its unit.
    pub kind: CostKind,
    /// The interval of CPU times is the resolution of their counters; the interval of a price follows from the rate.
    /// Other counters are exact and do not have one.
    pub value: Figure,
}

/// Documents that a phase inserted or updated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedDocuments {
    /// Number of documents: one for each successful insert or update, whichever part was updated.
    pub documents: u64,
    /// Mean size of a document as BSON, by `collStats` of the collection.
    pub mean_document_bytes: f64,
    /// Bytes that the devices wrote for them: during the phase, and afterwards until everything was written, if that is
    /// known.
    pub written_bytes: u64,
}

impl ChangedDocuments {
    /// Total size in bytes.
    pub fn bytes(&self) -> f64 {
        self.documents as f64 * self.mean_document_bytes
    }
}

impl Costs {
    /// Value of a kind of cost.
    pub fn of(&self, kind: CostKind) -> Option<Figure> {
        let found = self.values.iter().find(|cost| cost.kind == kind);
        found.map(|cost| cost.value)
    }
}

/// Cost of a candidate relative to a baseline.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostRatio {
    pub kind: CostKind,
    /// Currency of a price; absent for other kinds, and if the plans name none.
    pub currency: Option<String>,
    /// Geometric mean over the baselines.
    pub baseline: f64,
    /// Geometric mean over the candidates; 0 if none of them has this cost.
    pub candidate: f64,
    /// Candidate divided by baseline: geometric mean over the pairs, with Student's interval of its logarithm; 0 does
    /// not have one.
    pub ratio: Figure,
    /// Degrees of freedom of the interval; absent without one, and in records of earlier versions.
    pub degrees_of_freedom: Option<f64>,
}
