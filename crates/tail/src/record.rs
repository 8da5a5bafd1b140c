//! The document `tail.json`: one experiment with its sums, latencies, resources and verdicts.

use crate::driver::Version;
use crate::error::TailError;
use crate::resources::Sample;
use crate::schedule::Schedule;
use crate::split::{DeliverySplit, ProducerSplit};
use crate::sums::{ConsumerSum, ProducerSum};
use dyno_analyze::messages::{InFlight, Judgement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the form of [`TailDocument`]; raised when a reader of the old form would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;
/// Name of the document in its folder.
pub const FILE_NAME: &str = "tail.json";

/// How consumers get messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A tailable cursor that awaits data.
    Tailable,
    /// A change stream.
    ChangeStream,
    /// A query again and again.
    Poll,
}

impl Mode {
    /// As drivers are told.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Tailable => "tailable",
            Mode::ChangeStream => "change-stream",
            Mode::Poll => "poll",
        }
    }
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
}

/// A driver as it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Name of its folder.
    pub name: String,
    /// What it says of itself.
    pub version: Version,
}

/// One producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProducerRecord {
    /// What ran.
    pub driver: DriverRecord,
    /// What became of its messages.
    pub sum: ProducerSum,
    /// Where their time went.
    pub split: ProducerSplit,
    /// What the process used.
    pub resources: Vec<Sample>,
    /// Whether its latency grows and why; received messages are those of the first consumer.
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
    pub resources: Vec<Sample>,
    /// Whether it ended because nothing came any more.
    pub idle: bool,
    /// Cursors opened after the first.
    pub reopened: Option<u64>,
    /// Cursors that lost their place because the collection had wrapped.
    pub position_lost: Option<u64>,
    /// Messages that a query found which the cursor had skipped.
    pub caught_up: Option<u64>,
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailDocument {
    /// Form of the document: [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was asked for.
    pub settings: Settings,
    /// Producers, by their number.
    pub producers: Vec<ProducerRecord>,
    /// Consumers.
    pub consumers: Vec<ConsumerRecord>,
}

impl TailDocument {
    /// Writes the document into a folder that is there.
    ///
    /// # Errors
    /// [`TailError::File`].
    pub fn write(&self, folder: &Path) -> Result<(), TailError> {
        let path = folder.join(FILE_NAME);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| TailError::file(&path)(error.into()))?;
        std::fs::write(&path, text).map_err(TailError::file(path))
    }
}

/// The JSON schema of [`TailDocument`].
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(TailDocument).into()
}
