//! What operations cost, by what a phase used.

use super::figures::Figure;
use crate::consumption::Unknown;
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// What a result cost. Names end in the unit.
    CostKind {
        /// CPU time of the servers per operation.
        ServerCpu = "server_cpu_us",
        /// CPU time of the load generator, or of the drivers, per operation.
        ClientCpu = "client_cpu_us",
        /// Context switches of the servers per operation.
        ContextSwitches = "context_switches_count",
        /// Bytes that the devices read per operation.
        ReadBytes = "device_read_bytes",
        /// Requests by which they did.
        ReadRequests = "device_reads_count",
        /// Bytes that the devices wrote per operation, during the phase.
        WrittenBytes = "device_written_bytes",
        /// Requests by which they did.
        WriteRequests = "device_writes_count",
        /// Flushes of the devices per operation.
        Flushes = "device_flushes_count",
        /// Pages that the servers read into their caches per operation.
        CacheMisses = "cache_misses_count",
        /// Time in which the servers synced their journals per operation.
        JournalSyncs = "journal_sync_us",
        /// Bytes that the servers received per operation.
        ReceivedBytes = "received_bytes",
        /// Bytes that they sent.
        SentBytes = "sent_bytes",
        /// Bytes that the devices wrote, divided by the bytes of the documents that were changed.
        WriteAmplification = "write_amplification_ratio",
        /// Size of the files of the collection and its indexes, divided by that of its documents.
        SpaceAmplification = "space_amplification_ratio",
        /// Memory of the servers at the end, all together.
        ResidentBytes = "resident_bytes",
        /// The most that each had, added up.
        PeakBytes = "peak_resident_bytes",
        /// Energy of a million operations.
        Energy = "energy_per_million_joules",
        /// Price of a million operations, in the currency of the plan.
        Price = "price_per_million",
    }
}

impl CostKind {
    /// Whether it is so much for each operation.
    pub fn is_per_operation(self) -> bool {
        self <= CostKind::SentBytes
    }

    /// Of how many operations it is that much; `None` of what does not grow with them.
    pub fn operations(self) -> Option<f64> {
        match self {
            CostKind::Energy | CostKind::Price => Some(1e6),
            one => one.is_per_operation().then_some(1.0),
        }
    }
}

named! {
    /// What costs are divided by.
    CostBasis {
        /// Operations that finished, failed ones included.
        Operation = "operation",
        /// Documents that were inserted by the load phase, or that an index was built on.
        Document = "document",
        /// Messages that consumers received, each consumer for itself.
        Message = "message",
    }
}

/// What a phase cost, each kind once at most.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// What is divided by.
    pub basis: CostBasis,
    /// How many.
    pub basis_count: u64,
    /// What is known, in the order of [`CostKind`].
    pub values: Vec<Cost>,
    /// The currency of the price, where the plan names one.
    pub currency: Option<String>,
    /// What write amplification is divided by; absent where nothing was changed, or it is not known.
    pub changed: Option<ChangedDocuments>,
    /// What is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// One kind of cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// What it is, with its unit.
    pub kind: CostKind,
    /// How much. The interval of CPU times is the resolution of their counters, that of a price follows from that of the
    /// rate; other counters are exact and have none.
    pub value: Figure,
}

/// Documents that a phase inserted or updated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedDocuments {
    /// Their number: one for each insert and each update that succeeded, whatever part of it was updated.
    pub documents: u64,
    /// Mean size of a document as BSON, by `collStats` of the collection.
    pub mean_document_bytes: f64,
    /// Bytes that the devices wrote for them: during the phase, and after it until all was on them where that is known.
    pub written_bytes: u64,
}

impl ChangedDocuments {
    /// Size of all of them.
    pub fn bytes(&self) -> f64 {
        self.documents as f64 * self.mean_document_bytes
    }
}

impl Costs {
    /// One of them.
    pub fn of(&self, kind: CostKind) -> Option<Figure> {
        let found = self.values.iter().find(|cost| cost.kind == kind);
        found.map(|cost| cost.value)
    }
}

/// A cost of a candidate relative to that of a baseline.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostRatio {
    /// What it is.
    pub kind: CostKind,
    /// The currency of a price; absent of other kinds, and where the plans name none.
    pub currency: Option<String>,
    /// Geometric mean over the baselines.
    pub baseline: f64,
    /// The same of the candidates; 0 if none of them has any of it.
    pub candidate: f64,
    /// Candidate divided by baseline: geometric mean over the pairs, with Student's interval of its logarithm; 0 has none.
    pub ratio: Figure,
}
