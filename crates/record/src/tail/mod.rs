//! `tail.json`: messages through a database, by one or more drivers, each measured alone. Tables in the same folder
//! have the times of each message.

mod timeline;

pub use timeline::{
    Cause, Direction, InFlight, Judgement, Part, PartTrend, Point, QueuePlace, Rates, Timeline,
    Trend,
};

use crate::consumption::Consumption;
use crate::document::document;
use crate::model::{Environment, RunStatus};
use crate::plan::RecordedPlan;
use crate::server::ExperimentServer;
use crate::statement::Statement;
pub use dyno_plan::tail::{TailArrivals, TailMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Format version that is written.
pub const SCHEMA_VERSION: u32 = 1;
/// Name of the file in the experiment's folder.
pub const FILE: &str = "tail.json";
/// Default size limit of the embedded server's collection: about 700 messages.
pub const MOST_OF_EMBEDDED: u64 = 128 << 10;
/// Prefix of the embedded server's product name.
pub const EMBEDDED_PRODUCT: &str = "secantus";

/// A messages experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailDocument {
    /// Format version.
    pub schema_version: u32,
    pub dyno_version: String,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// End, RFC 3339 in UTC; absent until then.
    pub ended_at: Option<String>,
    pub status: RunStatus,
    /// Reason for ending early, or problem with the result.
    pub status_reason: Option<String>,
    /// Name of the plan.
    pub name: String,
    /// Plan without secrets.
    pub plan: Value,
    /// The server that passed the messages.
    pub server: ExperimentServer,
    /// Whether monitoring drivers got `serverMonitoringMode=poll`, because some refuse this server's streamed
    /// heartbeats. Drivers that do not know the option ignore it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls_heartbeats: bool,
    /// Clock of all timestamps.
    pub clock: String,
    /// CPUs that this process may use.
    pub cpus: u64,
    /// Machine of the experiment.
    pub environment: Option<Environment>,
    /// Machines of the other hosts; empty without other hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostMachine>,
    /// Requested drivers that cannot run.
    pub skipped: Vec<SkippedDriver>,
    /// Measurements in order, one at a time. A repeated combination has one cell per repetition.
    pub cells: Vec<Cell>,
    /// Caveats about the whole experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Statement>,
}

impl TailDocument {
    /// The plan's fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }
}

document!(TailDocument, FILE, SCHEMA_VERSION, "a `dyno tail` experiment folder");

/// Machine of another host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostMachine {
    /// Host, as passed to `ssh`.
    pub host: String,
    /// Environment that a shell on the host can read.
    pub environment: Environment,
}

/// A driver that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedDriver {
    /// Name of its folder.
    pub name: String,
    /// Reason in one line.
    pub reason: String,
}

/// A driver's description of itself.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverVersion {
    /// Version of the driver contract.
    pub contract: u64,
    /// Programming language.
    pub language: String,
    /// Name of the driver's package.
    pub driver: String,
    pub driver_version: String,
    /// Runtime that executes the driver.
    pub runtime: String,
    pub runtime_version: String,
    /// `produce`, `consume`.
    pub roles: Vec<String>,
    /// `one`, `bounded`, `unbounded`.
    pub in_flight: Vec<String>,
    /// Where messages wait if the number in flight is unbounded: `driver` or `program`.
    pub unbounded: Option<String>,
    /// `tailable`, `change-stream`, `poll`.
    pub modes: Vec<String>,
    /// Whether the size of its connection pool can be set.
    pub pool: bool,
    /// Whether the driver monitors servers while it runs (heartbeats), and accepts `serverMonitoringMode`.
    #[serde(default = "monitors", skip_serializing_if = "bool::clone")]
    pub monitors: bool,
    /// `release`, or another kind of build, if reported.
    pub build: Option<String>,
}

/// Default of `monitors`: MongoDB's own drivers monitor.
fn monitors() -> bool {
    true
}

/// A driver that ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Name of its folder.
    pub name: String,
    /// The driver's description of itself.
    pub version: DriverVersion,
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    /// Measured, without lost or duplicated messages.
    Complete,
    /// Measured until it was interrupted.
    Partial,
    /// Measured with lost or duplicated messages, or not measured.
    Failed,
}

/// One driver with one limit of inserts in flight and one pool size.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of its folder in `cells`.
    pub name: String,
    /// Repetition of this combination, from 1; absent without repetitions.
    pub repetition: Option<u32>,
    pub status: CellStatus,
    /// Why the cell is not complete.
    pub reason: Option<String>,
    /// Requested settings.
    pub settings: Settings,
    /// Results; absent if nothing was measured.
    pub measured: Option<Measured>,
}

/// An open loop: the intended times of messages do not depend on the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Messages per second of all producers together; above 0.
    pub rate_per_s: f64,
    /// Distribution of the times between messages.
    pub arrive: TailArrivals,
    /// Seed of random arrivals.
    pub seed: u64,
}

/// Requested settings, without the connection string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    pub database: String,
    /// Collection; created before and removed afterwards.
    pub collection: String,
    /// Drivers of the producers.
    pub producers: Vec<String>,
    /// Drivers of the consumers.
    pub consumers: Vec<String>,
    /// Messages of each producer, at least 1.
    pub messages: u64,
    /// Maximum number of unanswered inserts per producer.
    pub in_flight: InFlight,
    /// Connections in each driver's pool, at least 1.
    pub pool: u64,
    /// Bytes added to each message.
    pub size_bytes: u64,
    /// Size of the capped collection.
    pub capped_bytes: u64,
    /// `0`, `1`, another number, or `majority`.
    pub write_concern: String,
    /// Whether inserts are acknowledged only after they are in the journal on disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub journal: bool,
    /// How consumers get messages. Drivers get its name.
    pub mode: TailMode,
    /// Schedule of the messages; `None` for a closed loop.
    pub schedule: Option<Schedule>,
    /// Consumers end after this time without a message.
    pub idle_s: u64,
    /// A consumer's processing time for each message, in microseconds.
    pub delay_us: u64,
    /// Time limit for the producers.
    pub limit_s: u64,
    /// Maximum number of points in each series.
    pub points: usize,
    /// Host of the producers, as passed to `ssh`; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer_host: Option<String>,
    /// Host of the consumers, as passed to `ssh`; absent for this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_host: Option<String>,
}

impl Settings {
    /// Whether all processes run on this host, and share its monotonic clock.
    pub fn is_here(&self) -> bool {
        self.producer_host.is_none() && self.consumer_host.is_none()
    }
}

/// Clock of another host relative to this host's clock. Timestamps of that host are converted to this clock by an
/// offset that changes linearly from the start to the end; a latency between hosts is uncertain by `uncertainty_ns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// Host, as passed to `ssh`.
    pub host: String,
    /// `produce` or `consume`.
    pub role: String,
    /// Its CLOCK_REALTIME minus this host's before the start, in nanoseconds.
    pub offset_start_ns: i64,
    /// The same offset after the end.
    pub offset_end_ns: i64,
    /// Maximum error of the offsets, in nanoseconds, unless a clock was set in between.
    pub uncertainty_ns: u64,
    /// Shortest round trip, in nanoseconds.
    pub round_trip_ns: u64,
    /// Whether all round trips are consistent with one offset; if not, a clock was set.
    pub consistent: bool,
}

/// Resource use of a process and all its descendants at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Since the start of the experiment, in seconds.
    pub at_s: f64,
    /// CPU time of the running processes, and of ended processes that were waited for, in seconds.
    pub cpu_s: f64,
    /// Resident memory; shared pages count for each process.
    pub rss_bytes: u64,
    pub threads: u64,
    pub processes: u64,
}

/// Resource use of a process and its descendants.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// CPU time from the start of the messages to the end of the process, in seconds; absent if unknown.
    pub cpu_s: Option<f64>,
    /// Samples, five per second.
    pub samples: Vec<Sample>,
}

impl Resources {
    /// Largest resident memory of a sample, in bytes.
    pub fn most_rss_bytes(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.rss_bytes).max()
    }

    /// Largest number of threads of a sample.
    pub fn most_threads(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.threads).max()
    }
}

/// Adjacent values summarized as one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinPoint {
    /// Number of the first message.
    pub message: u64,
    /// Number of values, at least 1.
    pub count: u64,
    /// Smallest, in nanoseconds.
    pub min_ns: i64,
    /// Median (of an even number the lower of the middle two), in nanoseconds.
    pub median_ns: i64,
    /// Largest, in nanoseconds.
    pub max_ns: i64,
}

/// Latencies of one part of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Messages with this part.
    pub count: u64,
    pub mean_us: f64,
    /// Median, in microseconds.
    pub p50_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub max_us: f64,
    /// Messages that took more than 60 s: the histogram counts them as 60 s, all other figures use their actual times.
    pub clamped: u64,
    /// Messages below 0, because clocks disagree. The histogram and percentiles count them as 0.
    pub below_zero: u64,
    /// Pairs of a percentage from 0 to 100 and the latency that this share of the messages did not exceed, in
    /// microseconds.
    pub percentiles: Vec<(f64, f64)>,
    /// All latencies: an HdrHistogram in nanoseconds, V2 compressed, in base64.
    pub histogram: String,
    /// Points by message number, for charts.
    pub series: Vec<ThinPoint>,
}

/// Parts of a message's time that its producer measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerSplit {
    /// Intended → send.
    pub wait: Latency,
    /// Send → acknowledged; with write concern 0, until the driver returned.
    pub acknowledged: Latency,
}

/// Parts of a message's time that end at a consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeliverySplit {
    /// Send → received.
    pub delivery: Latency,
    /// Intended → received.
    pub total: Latency,
}

/// Outcome of a producer's messages. The three counts add up to the messages it was to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerSum {
    /// Messages acknowledged, or returned by the driver with write concern 0.
    pub acknowledged: u64,
    /// Messages whose insert failed.
    pub failed: u64,
    /// Messages without a timestamp: not sent, or not answered when the producer ended.
    pub unanswered: u64,
}

/// Messages of all producers at one consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsumerSum {
    /// Distinct messages received.
    pub received: u64,
    /// Messages acknowledged and not received.
    pub lost: u64,
    /// Messages received although their insert failed or was not answered.
    pub received_unacknowledged: u64,
    /// Repeated receipts of a message.
    pub duplicated: u64,
    /// Messages that arrived after a newer one of the same producer, which is normal with several inserts in flight.
    pub reordered: u64,
}

/// One producer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerRecord {
    pub driver: DriverRecord,
    /// Outcome of its messages.
    pub sum: ProducerSum,
    /// Error of the first failed insert, as the driver reports it.
    pub failure: Option<String>,
    /// Latencies.
    pub split: ProducerSplit,
    /// Resource use of the process.
    pub resources: Resources,
    /// Medians of consecutive messages; received messages are the first consumer's.
    pub timeline: Timeline,
    /// Whether the latency grows, and why.
    pub verdict: Judgement,
}

/// One consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConsumerRecord {
    pub driver: DriverRecord,
    /// Outcome of the messages.
    pub sum: ConsumerSum,
    /// Latencies, for each producer.
    pub deliveries: Vec<DeliverySplit>,
    /// Resource use of the process.
    pub resources: Resources,
    /// Messages received per second, from the first send to the last receipt; absent for fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Whether the consumer ended because no more messages came.
    pub idle: bool,
    /// Whether the consumer was stopped before it had received all messages; missing messages are then not lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Cursors opened after the first.
    pub reopened: Option<u64>,
    /// Reopened cursors after a tailable cursor that died on an empty collection.
    pub reopened_empty: Option<u64>,
    /// Cursors that lost their position because the collection had wrapped.
    pub position_lost: Option<u64>,
    /// Cursors that were reopened because they were blind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<BlindCursor>,
    /// Messages that the cursor skipped and a query found, except those of blind cursors.
    pub caught_up: Option<u64>,
    /// Messages that arrived again and were skipped.
    pub duplicates_skipped: Option<u64>,
}

/// A tailable cursor that the server kept alive, but that did not return messages that queries found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindCursor {
    /// Time until another cursor was opened.
    pub blind_s: f64,
    /// Messages that queries found during that time.
    pub found: u64,
}

/// Results of a cell.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Producers, by their number.
    pub producers: Vec<ProducerRecord>,
    pub consumers: Vec<ConsumerRecord>,
    /// Resource use of the server's processes on this machine, if the experiment started it.
    pub server: Option<Resources>,
    /// Consumption of servers, devices and processors from the start of the messages until the last process ended.
    pub consumption: Option<Consumption>,
    /// Whether the measurement was stopped before its end.
    pub interrupted: bool,
    /// Clocks of other hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<HostClock>,
}
