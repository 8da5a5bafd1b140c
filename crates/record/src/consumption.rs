//! Resource use of the servers' machine in a phase, from counters that are read at its start and end. An index build
//! and the messages of a cell count as a phase.

use crate::model::PhaseKind;
use dyno_plan::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Growth of counters during a phase, summed over all servers that hold data. Unknown values are absent, with the
/// reason in `unknown`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consumption {
    /// Phase; `measure` for an index build and for messages.
    pub phase: PhaseKind,
    /// First reading of the kernel's counters, relative to the start of the run, index build or messages; may be
    /// negative.
    pub start_s: f64,
    /// Last reading of the kernel's counters.
    pub end_s: f64,
    /// Times of the readings.
    pub read: Option<ReadTimes>,
    /// Time between two readings, if the agents of a fleet read at their own times; growth around the ends of the phase
    /// is then interpolated. Absent if the counters were read at the ends.
    pub every_s: Option<f64>,
    /// Servers whose processes were read in `/proc`; 0 if none.
    pub processes: u64,
    /// Servers that answered `serverStatus` at both ends.
    pub servers: u64,
    /// CPU time of the servers, user and system.
    pub server_cpu_s: Option<f64>,
    /// Maximum error of `server_cpu_s`: the resolution of the counters, at both ends for all processes.
    pub server_cpu_error_s: Option<f64>,
    /// Context switches of the servers, voluntary and involuntary.
    pub context_switches: Option<u64>,
    /// Source of the context switches.
    pub context_switches_by: Option<CountedBy>,
    /// Resident memory of the servers at the end.
    pub resident_bytes: Option<u64>,
    /// Peak resident memory of each server since its start, summed.
    pub peak_resident_bytes: Option<u64>,
    /// Bytes that the servers caused to be read from storage, by `/proc/PID/io`.
    pub server_read_bytes: Option<u64>,
    /// Bytes that the servers caused to be written to storage, by `/proc/PID/io`.
    pub server_written_bytes: Option<u64>,
    /// Activity of the data devices.
    pub device: Option<DeviceUse>,
    /// Bytes on the servers' connections, by `serverStatus.network`.
    pub network: Option<NetworkUse>,
    /// Pages that the servers' storage engines read into their caches.
    pub cache_misses: Option<u64>,
    /// Time of the servers' journal syncs, summed. A server runs one sync at a time, and all operations that need it
    /// wait together.
    pub journal_sync_s: Option<f64>,
    /// Dirty data in the storage engines' caches at the start.
    pub dirty_at_start_bytes: Option<u64>,
    /// Dirty data in the storage engines' caches at the end.
    pub dirty_at_end_bytes: Option<u64>,
    /// Energy of the machine's processors and memory.
    pub energy: Option<EnergyUse>,
    /// Unknown values with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
}

/// Times of the readings at both ends of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTimes {
    /// Kernel counters at the start: CPU time, memory and files of processes, devices, energy.
    pub kernel_at_start: ReadTime,
    /// Kernel counters at the end.
    pub kernel_at_end: ReadTime,
    /// `serverStatus`, and context switches of threads, at the start.
    pub servers_at_start: ReadTime,
    /// `serverStatus`, and context switches of threads, at the end.
    pub servers_at_end: ReadTime,
}

/// Time range in which the counters were read, relative to the same start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTime {
    /// Before the first counter was requested.
    pub from_s: f64,
    /// After the last counter arrived.
    pub until_s: f64,
}

/// Activity of the block devices below the data folders, by any process.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    pub names: Vec<String>,
    pub read_bytes: u64,
    pub read_requests: u64,
    pub written_bytes: u64,
    pub write_requests: u64,
    /// Flushes of the write cache. A partition's flushes are counted on its disk, a volume's on its members.
    pub flushes: Option<u64>,
    /// Bytes written after the phase until all changes of the servers were on the devices; absent if the servers were
    /// not asked to write them.
    pub deferred_bytes: Option<u64>,
}

/// Bytes on the servers' connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkUse {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// Energy measured by RAPL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyUse {
    /// Sum over all domains, in joules.
    pub energy_joules: f64,
    /// RAPL domains, such as `package-0`.
    pub domains: Vec<String>,
}

impl Consumption {
    /// The same with times relative to `start_s`.
    #[must_use]
    pub fn since(mut self, start_s: f64) -> Self {
        self.start_s -= start_s;
        self.end_s -= start_s;
        if let Some(read) = &mut self.read {
            for time in [
                &mut read.kernel_at_start,
                &mut read.kernel_at_end,
                &mut read.servers_at_start,
                &mut read.servers_at_end,
            ] {
                time.from_s -= start_s;
                time.until_s -= start_s;
            }
        }
        self
    }
}

/// An unknown value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    pub what: Counted,
    pub reason: String,
}

named! {
    /// Source of a counter.
    CountedBy {
        /// The kernel's counters of each thread: threads that ended are missing.
        Threads = "threads",
        /// The kernel's counters of the whole process, as the server reports them.
        Servers = "servers",
    }
}

named! {
    /// Value that is counted in a phase.
    Counted {
        ServerCpu = "server_cpu",
        /// CPU time of the drivers' processes.
        ClientCpu = "client_cpu",
        ContextSwitches = "context_switches",
        Memory = "memory",
        Device = "device",
        /// Device reads caused by the servers.
        DeviceReads = "device_reads",
        /// Device writes caused by the servers.
        DeviceWrites = "device_writes",
        Flushes = "flushes",
        /// Pages read into the caches of the servers.
        CacheMisses = "cache_misses",
        /// Time of the servers' journal syncs.
        JournalSyncs = "journal_syncs",
        /// Bytes written after the phase.
        Deferred = "deferred",
        Network = "network",
        Energy = "energy",
        /// Changed documents, and their size.
        Documents = "documents",
        /// Size of the files.
        Files = "files",
        /// Bytes written per byte of a changed document.
        WriteAmplification = "write_amplification",
        /// Bytes of the files per byte of a document.
        SpaceAmplification = "space_amplification",
        /// Price of the test bench.
        Price = "price",
    }
}
