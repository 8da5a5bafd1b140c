//! The versioned content of `run.json`: what was measured, where, and how far to trust it.
//!
//! Serialized names carry their unit as a suffix. The JSON schema of [`RunDocument`] is committed
//! as `crates/record/schema/run.schema.json` and tested against real output.

use crate::consumption::Consumption;
use crate::cpus::AllowedCpus;
use crate::disk::{DiskCapacity, DiskUse};
use crate::document::Document;
use crate::error_example::ErrorExample;
pub use crate::event::{Event, EventRecord};
pub use crate::fleet::{FleetAgentRecord, FleetRecord, FleetServerRecord};
use crate::named::named;
use crate::plan::RecordedPlan;
use crate::server::ServerMachine;
use crate::statement::Statement;
use crate::storage::PreparedStorageRecord;
use crate::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the run directory's format. Raised when a reader of the old one would misread the new one.
pub const SCHEMA_VERSION: u32 = 2;

/// One run: the content of `run.json` and of `dyno run --format json`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Version of this format.
    pub schema_version: u32,
    /// Version of the `dyno` that wrote it.
    pub dyno_version: String,
    /// Name of the workload.
    pub name: String,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// How the run ended.
    pub status: RunStatus,
    /// Why the run is partial or failed.
    pub status_reason: Option<String>,
    /// The resolved plan, without secrets.
    pub plan: serde_json::Value,
    /// Machine and system of the client.
    pub environment: Environment,
    /// The server under test.
    pub server: ServerRecord,
    /// Phases in the order they ran; with several instances, all of them together.
    pub phases: Vec<PhaseRecord>,
    /// The servers one by one, each with its own client; empty unless there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceRecord>,
    /// The hosts that took part, if the load came from several.
    pub fleet: Option<FleetRecord>,
    /// CPUs and memory of the servers and clients: planned, and as the kernel says.
    pub placement: Option<PlacementRecord>,
    /// How the packets of a network card were spread over CPUs for the time of the run, if that was asked for.
    pub packet_steering: Option<SteeringRecord>,
    /// Settings of the kernel and of devices that were made for the time of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettingRecord>,
    /// Programs that watched during a window of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceRecord>,
    /// How long resources were busy in each phase, where it could be read: those of the server on this machine, the CPUs of all
    /// servers of a fleet, and of servers elsewhere what exporters and the servers themselves reported, machine by machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// How much counters of servers, devices and processors grew in each phase; none of a fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumption: Vec<Consumption>,
    /// What watched the machine and the servers while the load ran, and how well it could.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceRecord>,
    /// The collection under test at the start and the end of phases, of each server that told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<CollectionRecord>,
    /// The secondary indexes of the collection; absent where the plan has none.
    pub secondary_indexes: Option<SecondaryIndexes>,
    /// Collections with documents that were dropped before the run loaded its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedCollection>,
    /// Changes of the servers and of the client while the phases ran, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Reasons to doubt the result.
    pub caveats: Vec<Caveat>,
    /// Figures of the last `dyno selfcheck` on this machine, if there was one.
    pub selfcheck: Option<serde_json::Value>,
}

/// Secondary indexes that a plan asks for.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondaryIndexes {
    /// The fields of each, separated by commas.
    pub keys: Vec<String>,
    /// Time in which those were created that were not there, after the documents were loaded; absent if all were there.
    pub build_s: Option<f64>,
}

/// A collection that was dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedCollection {
    /// Database and collection.
    pub namespace: String,
    /// Number of documents that it held, by the server's metadata.
    pub documents: u64,
    /// Key of a document that neither this program nor YCSB had written, if one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_key: Option<String>,
    /// Whether the keys of all documents were checked; otherwise at most 102 documents were.
    #[serde(default)]
    pub all_keys_checked: bool,
}

impl Document for RunDocument {
    const FILE: &'static str = "run.json";
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FOLDER: &'static str = "a run directory";

    fn schema_version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }
}

/// A time of a record in milliseconds since 1970; `None` for a text that is none.
pub fn milliseconds(time: &str) -> Option<i64> {
    let time: Option<jiff::Timestamp> = time.parse().ok();
    time.map(jiff::Timestamp::as_millisecond)
}

impl RunDocument {
    /// The plan by its fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }

    /// Its start in milliseconds since 1970; absent if the record holds no time of it.
    pub fn started_ms(&self) -> Option<i64> {
        milliseconds(&self.started_at)
    }

    /// Worker threads of all clients; absent if the plan does not tell.
    pub fn client_threads(&self) -> Option<u64> {
        if let Some(fleet) = &self.fleet {
            return Some(fleet.agents.iter().map(|agent| agent.threads).sum());
        }
        let plan = self.recorded_plan();
        let pairs = plan.server.pairs.unwrap_or(1).max(1);
        Some(plan.client.threads?.max(1).saturating_mul(pairs))
    }

    /// Clients of all together; absent if the plan does not tell.
    pub fn clients(&self) -> Option<u64> {
        let of_fleet = self.fleet.as_ref().map(|fleet| fleet.clients);
        if let Some(clients) = of_fleet.filter(|clients| *clients > 0) {
            return Some(clients);
        }
        let plan = self.recorded_plan();
        let pairs = plan.server.pairs.unwrap_or(1).max(1);
        Some(plan.client.clients?.saturating_mul(pairs))
    }
}

/// One of several servers, each loaded by a client of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceRecord {
    /// Number, from 0.
    pub number: u64,
    /// Run directory of this instance alone, inside that of the run.
    pub directory: String,
    /// The server.
    pub server: ServerRecord,
    /// Its phases. CPU time of the client is that of the instance's worker threads.
    pub phases: Vec<PhaseRecord>,
}

/// Where servers and clients were put on the machine.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRecord {
    /// What was asked for.
    pub request: String,
    /// Place of each server, as CPUs and memory policy.
    pub instances: Vec<String>,
    /// Place of each client.
    pub clients: Vec<String>,
    /// Reasons why the places are less separate than they look.
    pub notes: Vec<String>,
    /// Of each server: CPUs of its threads and where its memory lies, read while it ran. On a client host of a fleet it is one
    /// value, of the worker threads of its agent.
    pub achieved: Vec<serde_json::Value>,
    /// Whether the threads of the clients had the CPUs and the memory policy that were planned for them, read while they ran;
    /// absent if nothing was planned or they did not run.
    pub clients_as_planned: Option<bool>,
    /// What places and caches were computed from; absent in records of earlier versions.
    pub machine: Option<PlannedMachine>,
}

/// A machine as servers were placed on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedMachine {
    /// CPUs that may be used, such as `0-3,8`.
    pub cpus: String,
    /// Memory that the control group allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Its NUMA nodes.
    pub nodes: Vec<PlannedNode>,
}

/// A NUMA node of a [`PlannedMachine`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedNode {
    /// Its number.
    pub number: u32,
    /// Its CPUs, such as `0-3`.
    pub cpus: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// Receive packet steering of a network card: set before the run, and put back after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringRecord {
    /// The network interface.
    pub interface: String,
    /// CPUs that work on the packets it receives, ascending.
    pub cpus: Vec<u64>,
    /// Its receive queues.
    pub queues: Vec<SteeredQueue>,
}

/// A receive queue and its CPUs, as masks in the form of the kernel.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeredQueue {
    /// File of the kernel.
    pub file: String,
    /// What it held before the run, and was put back.
    pub before: String,
    /// What was set, and read back.
    pub set: String,
    /// What it held at the end of the run; absent if it could not be read, the run did not get there, or it is on a host of a fleet,
    /// where it is read back only when it is set.
    pub at_end: Option<String>,
}

/// A setting of the kernel or of a device, in one file: set for the run, and put back after it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSettingRecord {
    /// Its name in the plan.
    pub name: String,
    /// File of the kernel.
    pub file: String,
    /// What it held before the run, and was put back.
    pub before: String,
    /// What was set, and read back.
    pub set: String,
    /// What it held at the end of the run; absent if it could not be read, or the run did not get there.
    pub at_end: Option<String>,
}

/// A program that watched during a window of the run, or the trace of file I/O of the run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// Name in the plan.
    pub name: String,
    /// Program and arguments; none of the trace of file I/O, which is in the folder `io-trace`.
    pub command: Vec<String>,
    /// Folder of its output in the run directory; `output.raw.log` in it has what it printed, secrets included.
    pub directory: String,
    /// Start, from the start of the run; absent if it was never started.
    pub start_s: Option<f64>,
    /// End, from the start of the run.
    pub end_s: Option<f64>,
    /// How it ended, in words.
    pub outcome: String,
}

/// Something that told metrics during the run; they are in `metrics/NAME.csv`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRecord {
    /// Name, and that of its file.
    pub name: String,
    /// Kind of source.
    pub kind: SourceKind,
    /// What it is about: a host name, or an address.
    pub subject: String,
    /// Machine of a server or an exporter, by the same name for all addresses of the machine.
    #[serde(default)]
    pub machine: Option<String>,
    /// Whether it is about a machine that a server under test runs on.
    pub of_server: bool,
    /// Time from one reading to the next, as planned.
    pub interval_s: f64,
    /// Readings that became one row of the file.
    pub readings_per_row: u64,
    /// How well it could be read over the whole run: the worst that lasted to its end, or `degraded` if it failed
    /// for a time.
    pub health: SourceHealth,
    /// Why it is not healthy.
    pub reason: Option<String>,
    /// Parts of it that are missing, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Readings that were taken.
    pub readings: u64,
    /// Readings that failed, or came too late for their turn.
    pub missed: u64,
    /// Times in which it could not be read, the first ones of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageRecord>,
    /// CPU time that reading it took in this program.
    pub cpu_s: f64,
    /// The same as a share of one CPU.
    pub cpu_ratio: f64,
}

/// What kind of thing told metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The kernel of this machine.
    Host,
    /// A server under test, over a connection.
    Server,
    /// A Prometheus exporter.
    Exporter,
    /// The kernel of a host of a fleet, by the agent there.
    Agent,
}

/// How well a source could be read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceHealth {
    /// Everything was read.
    Healthy,
    /// It does not exist here, which is no fault.
    Unsupported,
    /// Parts of it were read, or it was read for a part of the time.
    Degraded,
    /// It should be there and could not be read.
    Failed,
}

/// A time in which a source could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageRecord {
    /// Its first failed reading, from the start of the run.
    pub start_s: f64,
    /// Its next good reading; absent if there was none.
    pub end_s: Option<f64>,
    /// Why.
    pub reason: String,
}

/// A collection at the start or the end of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionRecord {
    /// The phase.
    pub phase: PhaseKind,
    /// Which end of it.
    pub at: PhaseEdge,
    /// Name of the server that was asked, such as `server`, `pair-0`, `router-0`.
    pub instance: String,
    /// Database of the collection.
    pub database: String,
    /// Its name.
    pub collection: String,
    /// What the server told.
    pub statistics: CollectionStatistics,
}

/// Start or end of a phase.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PhaseEdge {
    /// Before its first operation.
    Start,
    /// After its last one.
    End,
}

/// How large a collection is. What the server does not tell is absent; of a sharded collection these are sums.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionStatistics {
    /// Documents.
    pub documents: u64,
    /// Their size, uncompressed.
    pub data_bytes: Option<u64>,
    /// Size of the collection on disk, without indexes.
    pub storage_bytes: Option<u64>,
    /// The part of it that is free to be used again.
    pub free_storage_bytes: Option<u64>,
    /// Size of all indexes on disk.
    pub indexes_bytes: Option<u64>,
    /// Size of each index on disk, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub index_bytes: BTreeMap<String, u64>,
    /// `data_bytes` by `documents`; absent of an empty collection.
    pub mean_document_bytes: Option<f64>,
    /// The part of the collection, without indexes, that is in the cache of the storage engine.
    pub cached_bytes: Option<u64>,
    /// Pages of it that were read into the cache since the server started.
    pub pages_read: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Still running, or killed: what was recorded up to the last interval is valid.
    Running,
    /// All phases ended as planned.
    Complete,
    /// Stopped early (Ctrl-C, or a search that has seen enough); the phases that ran are valid.
    Partial,
    /// Stopped by a fault.
    Failed,
}

named! {
    /// Purpose of a phase.
    // In the order in which they run.
    PhaseKind {
        /// Inserts the data set.
        Load = "load",
        /// Load like `Measure`, before the server is settled; not part of the result.
        Warmup = "warmup",
        /// The result.
        Measure = "measure",
    }
}

/// Totals of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// Purpose.
    pub name: PhaseKind,
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Time from the start of the phase to the end of its last operation or its planned end, whichever is later.
    pub duration_s: f64,
    /// Rate that the schedule asked for; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Operations that succeeded per second. A read-modify-write counts once.
    pub achieved_rate_per_s: f64,
    /// Operations that succeeded. A read-modify-write counts once.
    #[serde(default)]
    pub succeeded: u64,
    /// Operations that failed. A read-modify-write counts once, whichever of its parts failed.
    #[serde(default)]
    pub failed: u64,
    /// Statistics by operation name. `read_modify_write` also counts its two parts under `read` and `update`.
    pub operations: BTreeMap<String, OperationRecord>,
    /// Failed operations by kind. Of a read-modify-write each failed part counts by its own kind.
    pub errors: BTreeMap<String, u64>,
    /// Text of the server or the driver about the first failure of a kind. Kinds without a text are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_examples: BTreeMap<String, ErrorExample>,
    /// What became of the arrivals of an open-loop schedule.
    pub arrivals: Option<Arrivals>,
    /// Mean time that clients waited between an answer and the send of their next operation: all that they waited in the
    /// phase, by the operations that ended. Absent unless the schedule makes them wait, by a think time or by slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_think_time_us: Option<f64>,
    /// What the load generator itself used.
    pub client: ClientUsage,
    /// Time average of the number of operations sent and not yet answered.
    pub mean_in_flight: f64,
    /// `mean_in_flight` divided by (finished operations per second × their mean service time), failures included.
    /// 1 when Little's law holds. Absent without finished operations.
    pub little_ratio: Option<f64>,
    /// Realised skew of the keys; absent where no keys were drawn.
    pub keys: Option<KeyShares>,
    /// Connections replaced after an error.
    pub reconnects: u64,
    /// Commands that were sent once more, as `retryWrites` and `retryReads` ask for. The driver backend does not count them.
    #[serde(default)]
    pub retries: u64,
}

/// Statistics of one operation in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// Successful operations.
    pub count: u64,
    /// Failed operations; their latencies are in none of the summaries.
    pub errors: u64,
    /// Successful operations per second.
    pub rate_per_s: f64,
    /// Documents returned (reads and scans) or written (load batches).
    pub documents: u64,
    /// Values above the histogram's range of 60 s, recorded as 60 s.
    pub clamped: u64,
    /// From intended start to end.
    pub response_time_us: LatencySummary,
    /// From send to end.
    pub service_time_us: LatencySummary,
    /// From intended start to send.
    pub start_delay_us: LatencySummary,
}

/// Summary of a histogram in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Arithmetic mean, from exact sums.
    pub mean: f64,
    /// Smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// Largest value.
    pub max: f64,
}

/// What became of the arrivals of an open-loop schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Arrivals whose intended start lay in the phase.
    pub due: u64,
    /// Arrivals that were started.
    pub started: u64,
    /// Arrivals that waited longer than `max_start_delay`, or until the phase had ended, and were never sent.
    pub dropped: u64,
    /// Started arrivals that had waited more than 1 ms for a free connection or for the generator.
    pub late: u64,
}

/// How long a resource was busy during a phase.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// The phase.
    pub phase: PhaseKind,
    /// The resource.
    pub resource: ResourceKind,
    /// Servers of the resource in the sense of queueing: CPUs that may be used, or devices that hold data.
    pub units: u64,
    /// Which CPUs the processes may use, and their quotas: of servers for their CPU time, of worker threads for their waits.
    /// Absent in older records and for other resources.
    pub allowed: Option<AllowedCpus>,
    /// Time in which they were busy, added over all of them.
    pub busy_s: f64,
    /// Length of the phase.
    pub duration_s: f64,
    /// Who reported it of another machine. Absent for what the kernel said to this program, or to the agents of a fleet of servers that
    /// they started.
    pub reported: Option<ReportedBy>,
    /// The devices of a disk one by one; empty where they were not told apart, and for other resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
}

/// Who reported how long a resource was busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedBy {
    /// Name of the source: an exporter, or the agent of a host; `serverStatus` where servers reported the CPU time of their own
    /// processes.
    pub source: String,
    /// The machine, by the host in the address of its servers or of its exporter, or by the name of the agent's host.
    pub machine: String,
}

/// Resources of a bench.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// CPU time of the processes of the servers.
    ServerCpu,
    /// CPU time of the client.
    ClientCpu,
    /// All CPU time of the machine of client and server that was not idle.
    HostCpu,
    /// All CPU time of another machine, that of servers, that was not idle, as an exporter there reported it.
    ServerHostCpu,
    /// Time in which the devices of the data folders had requests. A device that serves several at once can do more than that
    /// says.
    Disk,
    /// Time in which worker threads of the client were ready to run and waited for a CPU; `units` are the threads.
    ClientCpuWait,
}

/// What the load generator itself used during a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientUsage {
    /// User-mode CPU time of the process.
    pub cpu_user_s: f64,
    /// Kernel-mode CPU time of the process.
    pub cpu_system_s: f64,
    /// CPU time per finished operation.
    pub cpu_us_per_operation: f64,
    /// Largest resident set of the process so far.
    pub max_rss_bytes: u64,
}

/// How unevenly the operations of a phase were spread over the documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyShares {
    /// Keys drawn.
    pub draws: u64,
    /// Share of the draws that went to the most frequent 1 % of the documents.
    pub hottest_1_percent_ratio: f64,
    /// Share of the draws that went to the most frequent 10 % of the documents.
    pub hottest_10_percent_ratio: f64,
}

/// A reason to doubt a result, shown beside the numbers it touches by every renderer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// What is doubtful.
    pub kind: CaveatKind,
    /// The doubt with its figures.
    #[serde(flatten)]
    pub statement: Statement,
    /// The phase it touches; the whole run when absent.
    pub phase: Option<PhaseKind>,
}

impl Caveat {
    /// One that touches the whole run.
    pub fn of_run(kind: CaveatKind, statement: Statement) -> Caveat {
        Caveat {
            kind,
            statement,
            phase: None,
        }
    }

    /// One that touches one phase.
    pub fn of_phase(kind: CaveatKind, phase: PhaseKind, statement: Statement) -> Caveat {
        Caveat {
            phase: Some(phase),
            ..Caveat::of_run(kind, statement)
        }
    }
}

/// Kinds of doubt.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// No thread of the client ran for a time.
    ClientStopped,
    /// The client was too busy for its numbers to describe the server.
    GeneratorBottleneck,
    /// Arrivals of the schedule were never sent.
    DroppedArrivals,
    /// Many operations started late: response time includes waiting in the client.
    LateStarts,
    /// The achieved rate is below the offered one.
    RateNotAchieved,
    /// Of a number of operations for several servers some did far more than others.
    UnevenShares,
    /// The measure phase has no steady state.
    NotSteady,
    /// The start of the measure phase was still a warm-up.
    WarmUpMeasured,
    /// The measure phase is too short for its percentiles.
    TooFewIntervals,
    /// Too few operations for the highest percentiles shown.
    TooFewOperations,
    /// Values above the histogram's range.
    ClampedValues,
    /// Operations failed.
    Errors,
    /// The run ended early.
    Partial,
    /// Agents of a fleet were lost, late or not together.
    Fleet,
    /// The number of documents differs from what the plan assumes.
    DocumentCount,
    /// The measurement disagrees with Little's law.
    LittleLaw,
    /// The data set fits into the server's cache.
    FitsInCache,
    /// Writes are acknowledged before they are durable.
    Durability,
    /// Something may have stood between client and server: TLS did not prove who answered.
    UnverifiedTls,
    /// CPU frequency is not fixed.
    CpuFrequency,
    /// A setting of the machine is known to disturb measurements.
    MachineSetting,
    /// Client and server share the machine.
    SharedMachine,
    /// The clock is coarse or slow to read.
    ClockCoarse,
    /// Something that should have been recorded could not be read.
    ProbeUnavailable,
    /// A server setting differs from what was asked.
    ServerSetting,
    /// Connections were replaced during the phase.
    Reconnects,
    /// Checking values that were read found wrong ones.
    Integrity,
    /// Files of the record are not what they were when it was finished.
    RecordChanged,
    /// Runs of an experiment differ in what should be the same.
    MixedRuns,
}

/// Machine and system that ran the client. `None` means that it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Distribution.
    pub os: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Logical CPUs that this process may use.
    pub cpus: Option<u64>,
    /// Which these are, and its CPU quota; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<AllowedCpus>,
    /// Logical CPUs of the machine that are online, whoever may use them; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cpus: Option<u64>,
    /// NUMA nodes.
    pub numa_nodes: Option<u64>,
    /// Frequency governor of CPU 0.
    pub cpu_governor: Option<String>,
    /// What else decides how fast and how evenly the CPUs work.
    #[serde(default, skip_serializing_if = "CpuSettings::are_unknown")]
    pub cpu_settings: CpuSettings,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Swap of the machine.
    pub swap_bytes: Option<u64>,
    /// Transparent huge pages: the selected mode.
    pub transparent_hugepages: Option<String>,
    /// Kernel clock source.
    pub clock_source: Option<String>,
    /// Median cost of reading the clock once.
    pub clock_read_ns: Option<f64>,
    /// One-minute load average before the run.
    pub load_average: Option<f64>,
    /// Hypervisor or container, where the machine tells.
    pub virtualization: Option<String>,
    /// The device and file system that hold the server's data, where they are on this machine.
    pub data_storage: Option<StorageRecord>,
    /// What `dyno doctor` says of the machine and the server; empty in runs where it was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doctor: Vec<Verdict>,
}

/// Settings of CPUs and firmware. Each is absent where the machine does not show it, as most virtual machines do not, or only
/// to root.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuSettings {
    /// Driver of the frequencies, with its mode in parentheses where it has several: `intel_pstate (active)`.
    pub frequency_driver: Option<String>,
    /// What CPU 0 prefers where speed costs energy, such as `performance` or `balance_power`.
    pub energy_preference: Option<String>,
    /// Whether frequencies above the nominal one are allowed.
    pub turbo: Option<bool>,
    /// Whether the hardware chooses the frequencies itself (Intel's HWP).
    pub hardware_pstates: Option<bool>,
    /// Driver of the idle states.
    pub idle_driver: Option<String>,
    /// Idle states of CPU 0, the lightest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Simultaneous multithreading, as the kernel says it: `on`, `off`, `forceoff`, `notsupported`.
    pub smt: Option<String>,
    /// NUMA nodes with CPUs for each socket; more than 1 with sub-NUMA clustering.
    pub nodes_per_socket: Option<u64>,
    /// Hardware prefetchers that are off, of an Intel CPU whose registers can be read.
    pub prefetchers_off: Option<Vec<String>>,
    /// Revision of the microcode.
    pub microcode: Option<String>,
    /// Maker, version and date of the firmware.
    pub bios: Option<String>,
    /// Whether `irqbalance` runs, which moves interrupts between CPUs; absent in a container, which does not show it.
    pub irqbalance: Option<bool>,
}

impl CpuSettings {
    /// Whether the machine shows none of them.
    pub fn are_unknown(&self) -> bool {
        *self == CpuSettings::default()
    }
}

/// A state that a CPU without work goes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// Time to come back from it.
    pub exit_latency_us: u64,
    /// Whether it may be used.
    pub enabled: bool,
}

/// The storage that holds a data folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageRecord {
    /// The folder.
    pub path: String,
    /// File system type.
    pub filesystem: Option<String>,
    /// Mount options.
    pub mount_options: Option<String>,
    /// Block device.
    pub device: Option<String>,
    /// Readahead of the device.
    pub readahead_bytes: Option<u64>,
    /// I/O scheduler of the device.
    pub scheduler: Option<String>,
    /// Whether the device says it is rotational.
    pub rotational: Option<bool>,
    /// Free space before the run.
    pub free_bytes: Option<u64>,
    /// What its devices can do, by their names as in `/proc/diskstats`; empty unless it was measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, DiskCapacity>,
    /// What was made there for the run; absent of storage that was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<PreparedStorageRecord>,
}

/// The server under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerRecord {
    /// `embedded`, `mongod` or `uri`.
    pub kind: String,
    /// Address without credentials.
    pub address: String,
    /// Version that the server reports.
    pub version: Option<String>,
    /// Name of the server's software, where it tells.
    pub product: Option<String>,
    /// Storage engine that the server reports.
    pub storage_engine: Option<String>,
    /// Topology: `standalone`, `replica_set`, `sharded`.
    pub topology: Option<String>,
    /// Whether the server runs on the client's machine.
    pub local: bool,
    /// Configured cache of the storage engine.
    pub cache_bytes: Option<u64>,
    /// Write concern of the operations, as sent (`server default` when none is sent).
    pub write_concern: String,
    /// Read concern of the operations, as sent.
    pub read_concern: String,
    /// Settings it was started with or reports, by name.
    pub settings: BTreeMap<String, String>,
    /// Documents in the collection when the measure phase began.
    pub documents: Option<u64>,
    /// Uncompressed size of the data in the collection.
    pub data_bytes: Option<u64>,
    /// Size of the collection on disk.
    pub storage_bytes: Option<u64>,
    /// Median time of an empty command and its answer before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<f64>,
    /// Its machine as it tells of it; absent of a server on the client's machine, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<ServerMachine>,
    /// The processes that were started for the run, with their settings; empty for a server that ran already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberRecord>,
}

/// One server process that was started for the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberRecord {
    /// Its name within the deployment, such as `server`, `pair-0`, `member-2`, `shard-0-1`, `config-0`, `router-0`.
    pub name: String,
    /// Where it listened.
    pub address: String,
    /// Version of the program.
    pub version: String,
    /// Whether it was the primary of its replica set when the deployment was ready.
    pub was_primary: bool,
    /// Settings that it was started with, by name; names end in their unit.
    pub asked: BTreeMap<String, String>,
    /// Settings that it told when it was asked, under the same names.
    pub found: BTreeMap<String, String>,
}
