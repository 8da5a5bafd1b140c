//! `tail.json`: messages through a database, by one or more drivers, each measured alone. What each message did is in
//! tables beside it.

mod timeline;

pub use timeline::{
    Cause, Direction, InFlight, Judgement, Part, PartTrend, Point, QueuePlace, Rates, Timeline,
    Trend,
};

use crate::consumption::Consumption;
use crate::document::Document;
use crate::model::{Environment, RunStatus};
use crate::named::named;
use crate::plan::RecordedPlan;
use crate::server::ExperimentServer;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the form that is written now.
pub const SCHEMA_VERSION: u32 = 2;
/// Name of the file in the folder of the experiment.
pub const FILE: &str = "tail.json";
/// Largest collection of the embedded server unless somebody says another size: some 700 messages.
pub const MOST_OF_EMBEDDED: u64 = 128 << 10;
/// How the product of the embedded server begins.
pub const EMBEDDED_PRODUCT: &str = "secantus";

/// The experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailDocument {
    /// Version of the form.
    pub schema_version: u32,
    /// Version of the program.
    pub dyno_version: String,
    /// Its start, RFC 3339 in UTC.
    pub started_at: String,
    /// Its end, RFC 3339 in UTC; absent before, and in records of earlier versions.
    pub ended_at: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// Why it ended early, or what is wrong with it.
    pub status_reason: Option<String>,
    /// Name of the plan.
    pub name: String,
    /// The plan, without secrets.
    pub plan: Value,
    /// The server that the messages went through.
    pub server: ExperimentServer,
    /// Whether drivers that monitor were told `serverMonitoringMode=poll`, because some refuse the heartbeats that this
    /// server streams. Those that do not know the option go on as they do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls_heartbeats: bool,
    /// Clock of all stamps.
    pub clock: String,
    /// CPUs that this process may use.
    pub cpus: u64,
    /// The machine that it ran on; absent in records of earlier versions.
    pub environment: Option<Environment>,
    /// Machines of the other hosts; empty where there are none, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostMachine>,
    /// Drivers that were wanted and cannot run.
    pub skipped: Vec<SkippedDriver>,
    /// What was measured, in this order, one at a time. A combination that was measured several times has a cell for each.
    pub cells: Vec<Cell>,
    /// Reasons to doubt all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Statement>,
}

impl TailDocument {
    /// The plan by its fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }
}

impl Document for TailDocument {
    const FILE: &'static str = FILE;
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FOLDER: &'static str = "the folder of an experiment with messages";

    fn schema_version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }
}

/// The machine of another host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostMachine {
    /// The host, as `ssh` takes it.
    pub host: String,
    /// What its files say, as a shell there may read them.
    pub environment: Environment,
}

/// A driver that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedDriver {
    /// Name of its folder.
    pub name: String,
    /// Why, in one line.
    pub reason: String,
}

/// What a driver says of itself.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverVersion {
    /// Version of the contract that it keeps.
    pub contract: u64,
    /// Programming language.
    pub language: String,
    /// Name of the driver's package.
    pub driver: String,
    /// Its version.
    pub driver_version: String,
    /// What runs it.
    pub runtime: String,
    /// Version of that.
    pub runtime_version: String,
    /// `produce`, `consume`.
    pub roles: Vec<String>,
    /// `one`, `bounded`, `unbounded`.
    pub in_flight: Vec<String>,
    /// Where messages wait without a bound: `driver` or `program`.
    pub unbounded: Option<String>,
    /// `tailable`, `change-stream`, `poll`.
    pub modes: Vec<String>,
    /// Whether it has a pool of connections whose size can be set.
    pub pool: bool,
    /// Whether it asks servers for their state while it runs (heartbeats), and does not refuse `serverMonitoringMode`.
    #[serde(default = "monitors", skip_serializing_if = "bool::clone")]
    pub monitors: bool,
    /// `release`, or how else it was built, where it says so.
    pub build: Option<String>,
}

/// Default of `monitors`: the drivers of MongoDB do.
fn monitors() -> bool {
    true
}

/// A driver as it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Name of its folder.
    pub name: String,
    /// What it says of itself.
    pub version: DriverVersion,
}

/// How one of the cells ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    /// Measured, and its sum is right.
    Complete,
    /// Measured until it was interrupted.
    Partial,
    /// Measured, and messages are lost or came twice; or not measured.
    Failed,
}

/// One driver with one bound on its inserts in flight and one size of its pool.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of its folder below `cells`.
    pub name: String,
    /// Which measurement of this combination it is, from 1; absent where each is measured once.
    pub repetition: Option<u32>,
    /// How it ended.
    pub status: CellStatus,
    /// Why it is not complete.
    pub reason: Option<String>,
    /// What was asked for.
    pub settings: Settings,
    /// What was measured; absent if nothing was.
    pub measured: Option<Measured>,
}

named! {
    /// How consumers get messages.
    // By the names that drivers are told.
    Mode {
        /// A tailable cursor that awaits data.
        Tailable = "tailable",
        /// A change stream.
        ChangeStream = "change-stream",
        /// A query that is repeated.
        Poll = "poll",
    }
}

/// How messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrive {
    /// At equal distances.
    Constant,
    /// At exponentially distributed distances.
    Poisson,
}

/// An open loop: messages are due at instants that do not depend on the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Messages of all producers together, in a second; above 0.
    pub rate_per_s: f64,
    /// How they arrive.
    pub arrive: Arrive,
    /// Seed of random arrivals.
    pub seed: u64,
}

/// What was asked for, without the connection string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Database of the collection.
    pub database: String,
    /// Collection; it is created, and removed afterwards.
    pub collection: String,
    /// Drivers of the producers, one for each.
    pub producers: Vec<String>,
    /// Drivers of the consumers, one for each.
    pub consumers: Vec<String>,
    /// Messages of each producer, from 1.
    pub messages: u64,
    /// Most inserts of a producer without an answer.
    pub in_flight: InFlight,
    /// Connections of each driver's pool, from 1.
    pub pool: u64,
    /// Bytes added to each message.
    pub size_bytes: u64,
    /// Size of the capped collection.
    pub capped_bytes: u64,
    /// `0`, `1`, another number, or `majority`.
    pub write_concern: String,
    /// Whether producers ask that a message is in the journal on the disk before its insert is acknowledged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub journal: bool,
    /// How consumers get messages.
    pub mode: Mode,
    /// When messages are due; `None` is a closed loop.
    pub schedule: Option<Schedule>,
    /// Consumers end when nothing came for so long.
    pub idle_s: u64,
    /// Work of a consumer for each message, in microseconds.
    pub delay_us: u64,
    /// Longest time from the start to the end of the producers.
    pub limit_s: u64,
    /// Most points of each series.
    pub points: usize,
    /// Host of the producers, as `ssh` takes it; this one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer_host: Option<String>,
    /// Host of the consumers; this one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_host: Option<String>,
}

impl Settings {
    /// Whether all processes run on this host, and share its monotonic clock.
    pub fn is_here(&self) -> bool {
        self.producer_host.is_none() && self.consumer_host.is_none()
    }
}

/// How far the clock of another host was from that of this one. Stamps of that host are brought to this clock, by an offset
/// that changes evenly from the start to the end; a latency between hosts is uncertain by `uncertainty_ns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// As `ssh` takes it.
    pub host: String,
    /// `produce` or `consume`.
    pub role: String,
    /// Its CLOCK_REALTIME less that of this host before the start, in nanoseconds.
    pub offset_start_ns: i64,
    /// The same after the end.
    pub offset_end_ns: i64,
    /// The offsets are off by at most this, in nanoseconds, unless a clock was set in between.
    pub uncertainty_ns: u64,
    /// The quickest round trip, in nanoseconds.
    pub round_trip_ns: u64,
    /// Whether all round trips allow one offset; if not, a clock was set.
    pub consistent: bool,
}

/// What a process and all its descendants use at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Since the start of the experiment, in seconds.
    pub at_s: f64,
    /// CPU time of the processes that are there, and of ended ones that were waited for, in seconds.
    pub cpu_s: f64,
    /// Resident memory; pages that processes share are counted for each.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Processes.
    pub processes: u64,
}

/// What a process and its descendants used.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// CPU time from the start of the messages to its end, in seconds; absent if it is not known.
    pub cpu_s: Option<f64>,
    /// Looks at it, five a second.
    pub samples: Vec<Sample>,
}

impl Resources {
    /// Most resident memory at one look, in bytes.
    pub fn most_rss_bytes(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.rss_bytes).max()
    }

    /// Most threads at one look.
    pub fn most_threads(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.threads).max()
    }
}

/// Some neighbouring values as one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinPoint {
    /// Number of the first message of the point.
    pub message: u64,
    /// Values in the point, from 1.
    pub count: u64,
    /// Smallest, in nanoseconds.
    pub min_ns: i64,
    /// Median (of an even number the lower of the middle two), in nanoseconds.
    pub median_ns: i64,
    /// Largest, in nanoseconds.
    pub max_ns: i64,
}

/// Latencies of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Messages that have this part.
    pub count: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Half of the messages took at most this, in microseconds.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1,000.
    pub p99_9_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// Messages that took more than 60 s: the histogram has them as 60 s, all other figures as they are.
    pub clamped: u64,
    /// Messages below 0: clocks that disagree. Histogram and percentiles have them as 0.
    pub below_zero: u64,
    /// Percentages from 0 to 100 and, of each, the latency that so many messages did not exceed, in microseconds.
    pub percentiles: Vec<(f64, f64)>,
    /// All of them: an HdrHistogram in nanoseconds, V2 compressed, in base64.
    pub histogram: String,
    /// By message number, for pictures.
    pub series: Vec<ThinPoint>,
}

/// Parts of a message's time that its producer knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerSplit {
    /// Intended → send.
    pub wait: Latency,
    /// Send → acknowledged; with write concern 0 until the driver gave control back.
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

/// What one producer did with its messages. The three add up to what it was to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerSum {
    /// Messages acknowledged, or given back by the driver with write concern 0.
    pub acknowledged: u64,
    /// Messages whose insert failed.
    pub failed: u64,
    /// Messages without stamp: not sent, or not answered when the producer ended.
    pub unanswered: u64,
}

/// What one consumer had of the messages of all producers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsumerSum {
    /// Different messages received.
    pub received: u64,
    /// Messages acknowledged and not received.
    pub lost: u64,
    /// Messages received though their insert failed or had no answer.
    pub received_unacknowledged: u64,
    /// Receipts of messages that had come before.
    pub duplicated: u64,
    /// Messages that came after a newer one of the same producer. With several inserts in flight some do.
    pub reordered: u64,
}

/// One producer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerRecord {
    /// What ran.
    pub driver: DriverRecord,
    /// What became of its messages.
    pub sum: ProducerSum,
    /// Why the first insert that failed did so, as the driver tells it.
    pub failure: Option<String>,
    /// Where their time went.
    pub split: ProducerSplit,
    /// What the process used.
    pub resources: Resources,
    /// Medians of messages that follow each other; received messages are those of the first consumer.
    pub timeline: Timeline,
    /// Whether its latency grows and why.
    pub verdict: Judgement,
}

/// One consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConsumerRecord {
    /// What ran.
    pub driver: DriverRecord,
    /// What it had.
    pub sum: ConsumerSum,
    /// Where the time went, for each producer.
    pub deliveries: Vec<DeliverySplit>,
    /// What the process used.
    pub resources: Resources,
    /// Messages received per second, from the first send to the last receipt; absent of fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Whether it ended because nothing came any more.
    pub idle: bool,
    /// Whether it was asked to end before it had everything: what it has not had is not lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Cursors opened after the first.
    pub reopened: Option<u64>,
    /// Of these, after a tailable cursor that died on an empty collection.
    pub reopened_empty: Option<u64>,
    /// Cursors that lost their place because the collection had wrapped.
    pub position_lost: Option<u64>,
    /// Cursors that were opened again because the one before was blind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<BlindCursor>,
    /// Messages that a query found which the cursor had skipped; without those of blind cursors.
    pub caught_up: Option<u64>,
    /// Messages that came again and were not taken.
    pub duplicates_skipped: Option<u64>,
}

/// A tailable cursor that the server left alive, and that brought nothing of what queries found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindCursor {
    /// For how long, until another one was opened.
    pub blind_s: f64,
    /// Messages that queries found meanwhile.
    pub found: u64,
}

/// What one cell gave.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Producers, by their number.
    pub producers: Vec<ProducerRecord>,
    /// Consumers.
    pub consumers: Vec<ConsumerRecord>,
    /// What the server's processes on this machine used, if it was started for the experiment.
    pub server: Option<Resources>,
    /// What the servers, their devices and the processors used from the start of the messages until the last process had
    /// ended; absent in records of earlier versions.
    pub consumption: Option<Consumption>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Clocks of other hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<HostClock>,
}
