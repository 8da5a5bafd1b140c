//! What a phase used of the servers' machine, as counters that were read at its start and its end. An index build and the
//! messages of a cell are such a phase, too.

use crate::model::PhaseKind;
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much counters grew during a phase. All servers that hold data are added up. What is not known is absent, with the
/// reason in `unknown`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consumption {
    /// The phase; `measure` of an index build and of messages.
    pub phase: PhaseKind,
    /// When the counters of the kernel were read first, from the start of the run, of the index build or of the messages: before it, if
    /// it is negative.
    pub start_s: f64,
    /// When they were read last.
    pub end_s: f64,
    /// When which counters were read; absent in records of earlier versions.
    pub read: Option<ReadTimes>,
    /// Time between two readings, where the agents of a fleet read at their own instants; the growth between the readings around an
    /// end of the phase is then in proportion. Absent where the counters were read at the ends.
    pub every_s: Option<f64>,
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
    /// Who counted them; absent in records of earlier versions.
    pub context_switches_by: Option<CountedBy>,
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
    /// Pages that the storage engines of the servers read into their caches.
    pub cache_misses: Option<u64>,
    /// Time in which the servers synced their journals, added up. A server makes one sync at a time, and all operations that
    /// need it wait for it together.
    pub journal_sync_s: Option<f64>,
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

/// When counters were read at both ends of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTimes {
    /// Those of the kernel, at the start: CPU time, memory and files of processes, devices, energy.
    pub kernel_at_start: ReadTime,
    /// The same at the end.
    pub kernel_at_end: ReadTime,
    /// Those of `serverStatus`, and context switches of threads, at the start.
    pub servers_at_start: ReadTime,
    /// The same at the end.
    pub servers_at_end: ReadTime,
}

/// When counters were read, from the same start: each at some instant between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadTime {
    /// When the first was asked for.
    pub from_s: f64,
    /// When the last was there.
    pub until_s: f64,
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

impl Consumption {
    /// The same with all times by a clock that reads 0 at `start_s`.
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

/// Something that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unknown {
    /// What.
    pub what: Counted,
    /// Why.
    pub reason: String,
}

named! {
    /// Who counted something.
    CountedBy {
        /// The kernel, for each thread: those that ended are missing.
        Threads = "threads",
        /// The kernel for the whole process, as the server tells it.
        Servers = "servers",
    }
}

named! {
    /// What is read at both ends of a phase.
    Counted {
        /// CPU time of the servers.
        ServerCpu = "server_cpu",
        /// CPU time of the drivers' processes.
        ClientCpu = "client_cpu",
        /// Context switches of the servers.
        ContextSwitches = "context_switches",
        /// Memory of the servers.
        Memory = "memory",
        /// What the devices did.
        Device = "device",
        /// Reads of the devices that the servers caused.
        DeviceReads = "device_reads",
        /// Writes of the devices that the servers caused.
        DeviceWrites = "device_writes",
        /// Flushes of the devices.
        Flushes = "flushes",
        /// Pages read into the caches of the servers.
        CacheMisses = "cache_misses",
        /// Time in which the servers synced their journals.
        JournalSyncs = "journal_syncs",
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
        /// Bytes written for each byte of a changed document.
        WriteAmplification = "write_amplification",
        /// Bytes of the files for each byte of a document.
        SpaceAmplification = "space_amplification",
        /// The price of the bench.
        Price = "price",
    }
}
