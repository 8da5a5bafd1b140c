//! What a phase used of the servers' machine, as counters that were read at its start and its end, and what follows
//! from them for one operation.

use crate::experiment::Figure;
use crate::model::PhaseKind;
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much counters grew during a phase. All servers that hold data are added up. What is not known is absent, with the
/// reason in `unknown`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consumption {
    /// The phase.
    pub phase: PhaseKind,
    /// When the counters were read first, from the start of the run.
    pub start_s: f64,
    /// When they were read last.
    pub end_s: f64,
    /// Servers whose processes were read in `/proc`; 0 if none was.
    pub processes: u64,
    /// Servers that answered `serverStatus` at both ends.
    pub servers: u64,
    /// CPU time of the servers, user and system.
    pub server_cpu_s: Option<f64>,
    /// How far `server_cpu_s` may be off: the resolution of the counters, at both ends of all processes.
    pub server_cpu_error_s: Option<f64>,
    /// Context switches of the servers, voluntary and involuntary.
    pub context_switches: Option<u64>,
    /// Memory of the servers in RAM at the end.
    pub resident_bytes: Option<u64>,
    /// The most that each of them had since it was started, added up.
    pub peak_resident_bytes: Option<u64>,
    /// Bytes that the servers caused to be read from storage, by `/proc/PID/io`.
    pub server_read_bytes: Option<u64>,
    /// Bytes that they caused to be written to storage.
    pub server_written_bytes: Option<u64>,
    /// What the devices did that hold the data.
    pub device: Option<DeviceUse>,
    /// Bytes on the servers' connections, by `serverStatus.network`.
    pub network: Option<NetworkUse>,
    /// Changed data in the cache of the storage engine at the start, not yet written.
    pub dirty_at_start_bytes: Option<u64>,
    /// The same at the end.
    pub dirty_at_end_bytes: Option<u64>,
    /// Energy of the machine's processors and memory.
    pub energy: Option<EnergyUse>,
    /// What is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// What the block devices below the data folders did, whoever asked them to.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Their names.
    pub names: Vec<String>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests that read.
    pub read_requests: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests that wrote.
    pub write_requests: u64,
    /// Flushes of the write cache. Those of a partition are counted on its disk, and those of a volume on its members.
    pub flushes: Option<u64>,
    /// Bytes written after the phase until all that the servers had changed was on the devices; absent where the servers
    /// were not asked to write it.
    pub deferred_bytes: Option<u64>,
}

/// Bytes of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkUse {
    /// What the servers received.
    pub received_bytes: u64,
    /// What they sent.
    pub sent_bytes: u64,
}

/// Energy by RAPL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyUse {
    /// Joules of all domains together.
    pub energy_joules: f64,
    /// The domains, such as `package-0`.
    pub domains: Vec<String>,
}

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// What.
    pub what: Counted,
    /// Why.
    pub reason: String,
}

named! {
    /// What is read at both ends of a phase.
    Counted {
        /// CPU time of the servers.
        ServerCpu = "server_cpu",
        /// Context switches of the servers.
        ContextSwitches = "context_switches",
        /// Memory of the servers.
        Memory = "memory",
        /// What the devices did.
        Device = "device",
        /// Flushes of the devices.
        Flushes = "flushes",
        /// What is written after the phase.
        Deferred = "deferred",
        /// Bytes of connections.
        Network = "network",
        /// Energy.
        Energy = "energy",
        /// Documents that were changed, and their size.
        Documents = "documents",
        /// Size of the files.
        Files = "files",
        /// The price of the bench.
        Price = "price",
    }

    /// What a result cost. Names end in the unit.
    CostKind {
        /// CPU time of the servers per operation.
        ServerCpu = "server_cpu_us",
        /// CPU time of the load generator per operation.
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
}

named! {
    /// What costs are divided by.
    CostBasis {
        /// Operations that finished, failed ones included.
        Operation = "operation",
        /// Documents that were inserted by the load phase.
        Document = "document",
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostRatio {
    /// What it is.
    pub kind: CostKind,
    /// Geometric mean over the baselines.
    pub baseline: f64,
    /// The same of the candidates.
    pub candidate: f64,
    /// Candidate divided by baseline: geometric mean over the pairs, with Student's interval of its logarithm.
    pub ratio: Figure,
}
