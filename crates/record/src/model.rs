//! `run.json`: results of a run, its environment, and its caveats.
//!
//! Serialized names carry their unit as a suffix. The JSON schema of [`RunDocument`] is committed
//! as `crates/record/schema/run.schema.json` and tested against real output.

use crate::consumption::Consumption;
use crate::cpus::AllowedCpus;
use crate::disk::{DiskCapacity, DiskUse};
use crate::document::document;
use crate::error_example::ErrorExample;
pub use crate::event::{Event, EventRecord};
pub use crate::fleet::{FleetAgentRecord, FleetRecord, FleetServerRecord};
use crate::plan::RecordedPlan;
use crate::server::ServerMachine;
use crate::statement::Statement;
use crate::storage::PreparedStorageRecord;
use crate::verdict::Verdict;
pub use dyno_plan::model::PhaseKind;
pub use dyno_plan::operation::{Effect, Operation, Operations};

use dyno_plan::model::ServerPlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format version of a run directory. Raised when a reader of the old format would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;

/// One run: the content of `run.json` and of `dyno run --format json`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDocument {
    /// Format version.
    pub schema_version: u32,
    /// Version of the `dyno` that wrote the document.
    pub dyno_version: String,
    /// Name of the workload.
    pub name: String,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    pub status: RunStatus,
    /// Why the run is partial or failed.
    pub status_reason: Option<String>,
    /// The resolved plan, without secrets.
    pub plan: serde_json::Value,
    /// Operations that the run counts, in the plan's order; those of a phase that did not run are also listed.
    pub operations: Operations,
    /// Machine and system of the client.
    pub environment: Environment,
    pub server: ServerRecord,
    /// Phases in the order in which they ran; with several instances, their totals.
    pub phases: Vec<PhaseRecord>,
    /// Each server with its own client; empty for a single server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceRecord>,
    /// Hosts of the fleet, if the load came from several hosts.
    pub fleet: Option<FleetRecord>,
    /// CPUs and memory of servers and clients: as planned, and as the kernel reported them.
    pub placement: Option<PlacementRecord>,
    /// Settings of the kernel and of devices that were changed for the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettingRecord>,
    /// Programs that ran during a window of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceRecord>,
    /// Busy time of resources in each phase, where it could be read: of the server on this machine, of the CPUs of all
    /// servers of a fleet, and, for each machine of remote servers, as reported by exporters and by the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// Growth of the counters of servers, devices and processors in each phase; empty for a fleet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumption: Vec<Consumption>,
    /// Sources that observed the machine and the servers during the run, and their health.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceRecord>,
    /// Collection under test at the start and end of phases, for each server that reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<CollectionRecord>,
    /// Secondary indexes of the collection; absent if the plan has none.
    pub secondary_indexes: Option<SecondaryIndexes>,
    /// Checks of own collections, in the order in which they were performed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRecord>,
    /// Non-empty collections that were dropped before the run loaded its own documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedCollection>,
    /// Events of servers and client during the phases, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventRecord>,
    /// Reasons to doubt the result.
    pub caveats: Vec<Caveat>,
    /// Results of the last `dyno selfcheck` on this machine, if any.
    pub selfcheck: Option<serde_json::Value>,
}

/// Secondary indexes of a plan.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondaryIndexes {
    /// Comma-separated fields of each index.
    pub keys: Vec<String>,
    /// Time to create the missing indexes after the documents were loaded; absent if all existed.
    pub build_s: Option<f64>,
    /// Time of each index of own collections that was missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<IndexTime>,
}

/// Build of a secondary index of an own collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexTime {
    /// Collection and keys.
    pub keys: String,
    /// Whether it was built before the documents were loaded.
    pub before_load: bool,
    pub build_s: f64,
}

/// Result of a check of own collections.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRecord {
    pub name: String,
    /// Phase after which it was performed.
    pub after: PhaseKind,
    /// Number of the server, from 0, if there are several independent ones.
    pub instance: Option<u64>,
    /// Number of documents, or the documents, as the plan states them.
    pub expected: String,
    /// Documents that the aggregation returned.
    pub documents: u64,
    /// The first documents as relaxed Extended JSON.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<String>,
    pub passed: bool,
    /// Why the check could not be performed.
    pub fault: Option<String>,
}

/// A dropped collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedCollection {
    /// Database and collection.
    pub namespace: String,
    /// Number of documents, by the server's metadata.
    pub documents: u64,
    /// Key of a document that neither dyno nor YCSB wrote, if one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_key: Option<String>,
    /// Whether the keys of all documents were checked; otherwise, at most 102 documents were.
    #[serde(default)]
    pub all_keys_checked: bool,
}

document!(RunDocument, "run.json", SCHEMA_VERSION, "a run directory");

/// Parses a timestamp of a record as milliseconds since 1970; `None` if it is invalid.
pub fn milliseconds(time: &str) -> Option<i64> {
    let time: Option<jiff::Timestamp> = time.parse().ok();
    time.map(jiff::Timestamp::as_millisecond)
}

impl RunDocument {
    /// The plan's fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }

    /// Whether the plan draws operations with this effect.
    pub fn draws(&self, effect: Effect) -> bool {
        let weights = self.recorded_plan().operations;
        let is_drawn = |name: &str| weights.get(name).is_some_and(|weight| *weight > 0.0);
        self.operations.iter().any(|one| one.effect == effect && is_drawn(&one.name))
    }

    /// Results of a phase by database operation: a read-modify-write appears as its read and its update.
    pub fn commands<'a>(
        &self,
        phase: &'a PhaseRecord,
    ) -> impl Iterator<Item = (&'a str, &'a OperationRecord)> {
        let operations = phase.operations.iter().map(|(name, record)| (name.as_str(), record));
        operations.filter(|(name, _)| self.operations.is_summed(name))
    }

    /// Start in milliseconds since 1970; `None` if it was not recorded.
    pub fn started_ms(&self) -> Option<i64> {
        milliseconds(&self.started_at)
    }

    /// Worker threads of all clients; `None` if the plan does not set them.
    pub fn client_threads(&self) -> Option<u64> {
        if let Some(fleet) = &self.fleet {
            return Some(fleet.agents.iter().map(|agent| agent.threads).sum());
        }
        let plan = self.recorded_plan();
        Some(u64::from(plan.client?.threads.max(1)).saturating_mul(pairs(plan.server)))
    }

    /// Clients of all instances; `None` if the plan does not set them.
    pub fn clients(&self) -> Option<u64> {
        let of_fleet = self.fleet.as_ref().map(|fleet| fleet.clients);
        if let Some(clients) = of_fleet.filter(|clients| *clients > 0) {
            return Some(clients);
        }
        let plan = self.recorded_plan();
        Some(u64::from(plan.client?.clients).saturating_mul(pairs(plan.server)))
    }
}

/// Number of servers side by side, each with its own client.
fn pairs(server: Option<ServerPlan>) -> u64 {
    server.map_or(1, |server| server.pairs.max(1).into())
}

/// One of several servers with its own client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceRecord {
    /// Number, from 0.
    pub number: u64,
    /// Run directory of the instance, relative to the run's directory.
    pub directory: String,
    pub server: ServerRecord,
    /// Phases. The client's CPU time is the CPU time of the instance's worker threads.
    pub phases: Vec<PhaseRecord>,
}

/// Placement of servers and clients on the machine.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRecord {
    /// Requested placement.
    pub request: String,
    /// Placement of each server, as CPUs and memory policy.
    pub instances: Vec<String>,
    /// Placement of each client.
    pub clients: Vec<String>,
    /// Reasons why the placements are less separate than they look.
    pub notes: Vec<String>,
    /// For each server, the CPUs of its threads and the location of its memory, read while it ran. On a client host of
    /// a fleet, a single value for the worker threads of its agent.
    pub achieved: Vec<serde_json::Value>,
    /// Whether the client threads had the planned CPUs and memory policy, read while they ran; absent if nothing was
    /// planned or they did not run.
    pub clients_as_planned: Option<bool>,
    /// Machine for which placements and cache sizes were computed.
    pub machine: Option<PlannedMachine>,
}

/// The part of a machine that placement uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedMachine {
    /// Usable CPUs, such as `0-3,8`.
    pub cpus: String,
    /// Memory limit of the control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    pub nodes: Vec<PlannedNode>,
}

/// A NUMA node of a [`PlannedMachine`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedNode {
    pub number: u32,
    /// CPUs, such as `0-3`.
    pub cpus: String,
    pub memory_bytes: u64,
}

/// A kernel or device setting in one file: set for the run, and restored after it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSettingRecord {
    /// Name in the plan.
    pub name: String,
    /// Kernel file.
    pub file: String,
    /// Value before the run, which was restored.
    pub before: String,
    /// Value that was set, as read back.
    pub set: String,
    /// Value at the end of the run; absent if it could not be read, if the run ended before, or on a host of a fleet,
    /// where it is read back only when it is set.
    pub at_end: Option<String>,
}

/// A program that ran during a window of the run, or the run's trace of file I/O.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// Name in the plan.
    pub name: String,
    /// Program and arguments; empty for the trace of file I/O, which is in the folder `io-trace`.
    pub command: Vec<String>,
    /// Output folder in the run directory; its `output.raw.log` has the program's output, including secrets.
    pub directory: String,
    /// Start, from the start of the run; absent if the program was never started.
    pub start_s: Option<f64>,
    /// End, from the start of the run.
    pub end_s: Option<f64>,
    /// How the program ended.
    pub outcome: String,
}

/// A source of metrics during the run; its values are in `metrics/NAME.csv`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRecord {
    /// Name of the source and of its file.
    pub name: String,
    pub kind: SourceKind,
    /// Host name or address.
    pub subject: String,
    /// Machine of a server or an exporter, with the same name for all its addresses.
    #[serde(default)]
    pub machine: Option<String>,
    /// Whether the source observes a machine of a server under test.
    pub of_server: bool,
    /// Planned time between readings.
    pub interval_s: f64,
    /// Number of readings that are averaged into one row of the file.
    pub readings_per_row: u64,
    /// Health over the whole run: the worst state that lasted to the end, or `degraded` if the source failed
    /// temporarily.
    pub health: SourceHealth,
    /// Why the source is not healthy.
    pub reason: Option<String>,
    /// Missing parts with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Successful readings.
    pub readings: u64,
    /// Readings that failed or were too late.
    pub missed: u64,
    /// Outages; at most the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageRecord>,
    /// CPU time that dyno used to read the source.
    pub cpu_s: f64,
    /// `cpu_s` as a share of one CPU.
    pub cpu_ratio: f64,
}

/// Kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The kernel of this machine.
    Host,
    /// A server under test, over a connection.
    Server,
    /// A Prometheus exporter.
    Exporter,
    /// The kernel of a fleet host, by its agent.
    Agent,
}

/// Health of a source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceHealth {
    /// Everything was read.
    Healthy,
    /// The source does not exist here, which is not an error.
    Unsupported,
    /// Parts of the source were missing, or it failed part of the time.
    Degraded,
    /// The source should exist, but could not be read.
    Failed,
}

/// A time range in which a source could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageRecord {
    /// First failed reading, from the start of the run.
    pub start_s: f64,
    /// Next successful reading; absent if there was none.
    pub end_s: Option<f64>,
    pub reason: String,
}

/// A collection at the start or end of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionRecord {
    pub phase: PhaseKind,
    /// Start or end of the phase.
    pub at: PhaseEdge,
    /// Name of the server that reported it, such as `server`, `pair-0`, `router-0`.
    pub instance: String,
    pub database: String,
    pub collection: String,
    /// Statistics from the server.
    pub statistics: CollectionStatistics,
}

/// Start or end of a phase.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PhaseEdge {
    /// Before the first operation.
    Start,
    /// After the last operation.
    End,
}

/// Size of a collection. Values that the server does not report are absent; for a sharded collection, they are sums.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionStatistics {
    pub documents: u64,
    /// Uncompressed size of the documents.
    pub data_bytes: Option<u64>,
    /// Size of the collection on disk, without indexes.
    pub storage_bytes: Option<u64>,
    /// Reusable free space in the collection's file.
    pub free_storage_bytes: Option<u64>,
    /// Size of all indexes on disk.
    pub indexes_bytes: Option<u64>,
    /// Size of each index on disk, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub index_bytes: BTreeMap<String, u64>,
    /// `data_bytes` divided by `documents`; absent for an empty collection.
    pub mean_document_bytes: Option<f64>,
    /// Part of the collection, without indexes, that is in the storage engine's cache.
    pub cached_bytes: Option<u64>,
    /// Pages of the collection read into the cache since the server started.
    pub pages_read: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Still running, or killed: results up to the last interval are valid.
    #[default]
    Running,
    /// All phases ended as planned.
    Complete,
    /// Stopped early (by Ctrl-C or by a search); the phases that ran are valid.
    Partial,
    /// Stopped by an error.
    Failed,
}

/// Totals of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    pub name: PhaseKind,
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Time from the start of the phase to the end of its last operation or its planned end, whichever is later.
    pub duration_s: f64,
    /// Offered rate; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Successful operations per second. A read-modify-write counts once.
    pub achieved_rate_per_s: f64,
    /// Successful operations. A read-modify-write counts once.
    #[serde(default)]
    pub succeeded: u64,
    /// Failed operations. A read-modify-write counts once, whichever of its parts failed.
    #[serde(default)]
    pub failed: u64,
    /// Statistics by operation name. `read_modify_write` also counts its two parts under `read` and `update`.
    pub operations: BTreeMap<String, OperationRecord>,
    /// Failed operations by kind. Each failed part of a read-modify-write counts under its own kind.
    pub errors: BTreeMap<String, u64>,
    /// Message of the server or driver about the first failure of each kind. Kinds without a message are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_examples: BTreeMap<String, ErrorExample>,
    /// Outcome of the arrivals of an open-loop schedule.
    pub arrivals: Option<Arrivals>,
    /// Mean time between an answer and the same client's next send: the total waiting time in the phase divided by its
    /// finished operations. Absent unless the schedule makes clients wait, by a think time or by slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_think_time_us: Option<f64>,
    /// Resource use of the load generator.
    pub client: ClientUsage,
    /// Time average of the number of operations in flight.
    pub mean_in_flight: f64,
    /// `mean_in_flight` divided by (finished operations per second × their mean service time), including failures. 1
    /// when Little's law holds. Absent without finished operations.
    pub little_ratio: Option<f64>,
    /// Actual skew of the keys; absent if no keys were drawn.
    pub keys: Option<KeyShares>,
    /// Connections replaced after an error.
    pub reconnects: u64,
    /// Commands that were sent again because of `retryWrites` or `retryReads`. The driver backend does not count them.
    #[serde(default)]
    pub retries: u64,
    /// Transactions and replies of own operations.
    #[serde(default, skip_serializing_if = "OwnCounts::is_empty")]
    pub own: OwnCounts,
}

/// Totals of own operations with transactions, or with values from replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnCounts {
    /// Transactions that were performed again because of `TransientTransactionError`.
    pub transaction_restarts: u64,
    /// Commits that were sent again because of `UnknownTransactionCommitResult`.
    pub commit_retries: u64,
    /// Transactions that were aborted on purpose.
    pub transaction_aborts: u64,
    /// Operations that have values from replies.
    pub reply_operations: u64,
}

impl OwnCounts {
    /// Whether all are 0.
    pub fn is_empty(&self) -> bool {
        *self == OwnCounts::default()
    }

    pub(crate) fn add(&mut self, more: &OwnCounts) {
        for (total, more) in [
            (&mut self.transaction_restarts, more.transaction_restarts),
            (&mut self.commit_retries, more.commit_retries),
            (&mut self.transaction_aborts, more.transaction_aborts),
            (&mut self.reply_operations, more.reply_operations),
        ] {
            *total = total.saturating_add(more);
        }
    }
}

/// Statistics of one operation in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRecord {
    /// Successful operations.
    pub count: u64,
    /// Failed operations; no summary includes their latencies.
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
    pub min: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

/// Outcome of the arrivals of an open-loop schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Arrivals with an intended start in the phase.
    pub due: u64,
    pub started: u64,
    /// Arrivals that waited longer than `max_start_delay` or until the phase had ended, and were never sent.
    pub dropped: u64,
    /// Started arrivals that had waited more than 1 ms for a free connection or for the generator.
    pub late: u64,
}

/// Busy time of a resource during a phase.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    pub phase: PhaseKind,
    pub resource: ResourceKind,
    /// Number of servers in the queueing sense: usable CPUs, or data devices.
    pub units: u64,
    /// CPUs and quotas of the processes: of the servers for their CPU time, of the worker threads for their waits.
    /// Absent for other resources.
    pub allowed: Option<AllowedCpus>,
    /// Busy time, summed over all units.
    pub busy_s: f64,
    /// Length of the phase.
    pub duration_s: f64,
    /// Source of values from another machine. Absent for values from the kernel that dyno read itself, or that a
    /// fleet's agents read for servers that they started.
    pub reported: Option<ReportedBy>,
    /// Each device of a disk resource; empty if the devices were not distinguished, and for other resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
}

/// Source of a busy time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedBy {
    /// Name of the source: an exporter, or the agent of a host; `serverStatus` for the CPU time of server processes as
    /// the servers report it.
    pub source: String,
    /// Machine, by the host in the address of its servers or exporter, or by the name of the agent's host.
    pub machine: String,
}

/// Resources of a test bench.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// CPU time of the server processes.
    ServerCpu,
    /// CPU time of the client.
    ClientCpu,
    /// All busy CPU time of the machine that runs client and server.
    HostCpu,
    /// All busy CPU time of a remote server machine, as an exporter reported it.
    ServerHostCpu,
    /// Time in which the data devices had requests. Devices that serve several requests at once can do more than this
    /// suggests.
    Disk,
    /// Time in which worker threads of the client were ready to run and waited for a CPU; `units` is the number of
    /// threads.
    ClientCpuWait,
}

/// Resource use of the load generator during a phase.
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
    /// Share of the draws that hit the most frequent 1 % of the documents.
    pub hottest_1_percent_ratio: f64,
    /// Share of the draws that hit the most frequent 10 % of the documents.
    pub hottest_10_percent_ratio: f64,
}

/// A reason to doubt a result, which every renderer shows next to the affected numbers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    pub kind: CaveatKind,
    #[serde(flatten)]
    pub statement: Statement,
    /// Affected phase; absent for the whole run.
    pub phase: Option<PhaseKind>,
}

impl Caveat {
    /// A caveat about the whole run.
    pub fn of_run(kind: CaveatKind, statement: Statement) -> Caveat {
        Caveat { kind, statement, phase: None }
    }

    /// A caveat about one phase.
    pub fn of_phase(kind: CaveatKind, phase: PhaseKind, statement: Statement) -> Caveat {
        Caveat { phase: Some(phase), ..Caveat::of_run(kind, statement) }
    }
}

/// Kinds of caveats.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// All threads of the client were stopped for some time.
    ClientStopped,
    /// The client was too busy for its numbers to describe the server.
    GeneratorBottleneck,
    /// Arrivals of the schedule were never sent.
    DroppedArrivals,
    /// Many operations started late: response time includes waiting in the client.
    LateStarts,
    /// The achieved rate is below the offered rate.
    RateNotAchieved,
    /// A fixed number of operations was spread very unevenly over several servers.
    UnevenShares,
    /// The measure phase did not reach a steady state.
    NotSteady,
    /// The start of the measure phase was still a warm-up.
    WarmUpMeasured,
    /// The measure phase is too short for its percentiles.
    TooFewIntervals,
    /// Too few operations for the highest percentiles shown.
    TooFewOperations,
    /// Values above the histogram's range.
    ClampedValues,
    Errors,
    Partial,
    /// Agents of a fleet were lost, late or not synchronized.
    Fleet,
    /// The number of documents differs from the plan.
    DocumentCount,
    /// The measurement disagrees with Little's law.
    LittleLaw,
    /// The data set fits into the server's cache.
    FitsInCache,
    /// The data cannot show the effect of the block compressor.
    Compression,
    /// Writes are acknowledged before they are durable.
    Durability,
    /// TLS did not verify the server's identity, so another host may have been between client and server.
    UnverifiedTls,
    /// CPU frequency is not fixed.
    CpuFrequency,
    /// A setting of the machine is known to disturb measurements.
    MachineSetting,
    SharedMachine,
    /// Other processes used CPUs of the machine.
    OtherLoad,
    /// The clock is coarse or slow to read.
    ClockCoarse,
    /// Something that should have been recorded could not be read.
    ProbeUnavailable,
    /// A server setting differs from the requested one.
    ServerSetting,
    /// Connections were replaced during the phase.
    Reconnects,
    /// Checks of read values found wrong ones.
    Integrity,
    /// A check of own collections did not have its expected result, or could not be performed.
    CheckViolated,
    /// An own operation never returned or changed a document.
    NothingFound,
    /// Files of the record were modified after it was finished.
    RecordChanged,
    /// Runs of an experiment differ in properties that should be equal.
    MixedRuns,
}

/// Machine and system of the client. `None` means that the value could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    pub hostname: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Distribution.
    pub os: Option<String>,
    pub cpu_model: Option<String>,
    /// Logical CPUs that this process may use.
    pub cpus: Option<u64>,
    /// CPUs and CPU quota of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<AllowedCpus>,
    /// Logical CPUs that are online, usable or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cpus: Option<u64>,
    pub numa_nodes: Option<u64>,
    /// Frequency governor of CPU 0.
    pub cpu_governor: Option<String>,
    /// Other settings that affect the speed of the CPUs.
    #[serde(default, skip_serializing_if = "CpuSettings::are_unknown")]
    pub cpu_settings: CpuSettings,
    pub memory_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    /// Selected mode of transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// Kernel clock source.
    pub clock_source: Option<String>,
    /// Median time to read the clock once.
    pub clock_read_ns: Option<f64>,
    /// One-minute load average before the run.
    pub load_average: Option<f64>,
    /// Hypervisor or container, if the machine shows it.
    pub virtualization: Option<String>,
    /// Device and file system of the server's data, if they are on this machine.
    pub data_storage: Option<StorageRecord>,
    /// Results of `dyno doctor` for the machine and the server; empty if the checks were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doctor: Vec<Verdict>,
}

/// Settings of CPUs and firmware. Each is absent if the machine does not show it, as on most virtual machines, or shows
/// it only to root.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuSettings {
    /// Frequency driver, with its mode in parentheses if it has several: `intel_pstate (active)`.
    pub frequency_driver: Option<String>,
    /// Energy preference of CPU 0, such as `performance` or `balance_power`.
    pub energy_preference: Option<String>,
    /// Whether frequencies above the nominal one are allowed.
    pub turbo: Option<bool>,
    /// Whether the hardware chooses the frequencies itself (Intel's HWP).
    pub hardware_pstates: Option<bool>,
    pub idle_driver: Option<String>,
    /// Idle states of CPU 0, the lightest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// Simultaneous multithreading, as the kernel shows it: `on`, `off`, `forceoff`, `notsupported`.
    pub smt: Option<String>,
    /// NUMA nodes with CPUs per socket; more than 1 with sub-NUMA clustering.
    pub nodes_per_socket: Option<u64>,
    /// Disabled hardware prefetchers of an Intel CPU, if its registers can be read.
    pub prefetchers_off: Option<Vec<String>>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// Vendor, version and date of the firmware.
    pub bios: Option<String>,
    /// Whether `irqbalance`, which moves interrupts between CPUs, runs; absent in a container, which does not show it.
    pub irqbalance: Option<bool>,
}

impl CpuSettings {
    /// Whether the machine shows none of the settings.
    pub fn are_unknown(&self) -> bool {
        *self == CpuSettings::default()
    }
}

/// An idle state of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Name, such as `C6`.
    pub name: String,
    /// Time to leave the state.
    pub exit_latency_us: u64,
    pub enabled: bool,
}

/// Storage of a data folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageRecord {
    pub path: String,
    /// File system type.
    pub filesystem: Option<String>,
    pub mount_options: Option<String>,
    /// Block device.
    pub device: Option<String>,
    /// Readahead of the device.
    pub readahead_bytes: Option<u64>,
    /// I/O scheduler of the device.
    pub scheduler: Option<String>,
    /// Whether the device is rotational, as it reports.
    pub rotational: Option<bool>,
    /// Free space before the run.
    pub free_bytes: Option<u64>,
    /// Capacity of the devices, by their names as in `/proc/diskstats`; empty unless it was measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, DiskCapacity>,
    /// Storage that was created for the run; absent for existing storage.
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
    pub version: Option<String>,
    /// Name of the server's software, if reported.
    pub product: Option<String>,
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
    /// Settings that the server was started with or reports, by name.
    pub settings: BTreeMap<String, String>,
    /// Documents in the collection when the measure phase began.
    pub documents: Option<u64>,
    /// Uncompressed size of the data in the collection.
    pub data_bytes: Option<u64>,
    /// Size of the collection on disk.
    pub storage_bytes: Option<u64>,
    /// Median round-trip time of an empty command before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<f64>,
    /// Machine as the server reports it; absent for a server on the client's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<ServerMachine>,
    /// Processes that were started for the run, with their settings; empty for a server that was already running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberRecord>,
}

/// One server process that was started for the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberRecord {
    /// Name within the deployment, such as `server`, `pair-0`, `member-2`, `shard-0-1`, `config-0`, `router-0`.
    pub name: String,
    pub address: String,
    pub version: String,
    /// Whether the process was the primary of its replica set when the deployment was ready.
    pub was_primary: bool,
    /// Settings that the process was started with, by name; names end in their unit.
    pub asked: BTreeMap<String, String>,
    /// Settings that the process reported, under the same names.
    pub found: BTreeMap<String, String>,
}
