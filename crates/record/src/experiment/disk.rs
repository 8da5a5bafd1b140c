//! Activity of the data devices while a rate was measured, and the limits that follow from it.

use super::figures::{Demand, Figure};
use crate::disk::DiskCapacity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity of a device while a rate was measured; the mean over repeated runs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskFigures {
    /// Machine of the device; absent for the run's own machine.
    pub host: Option<String>,
    /// Name as in `/proc/diskstats`.
    pub device: String,
    /// See [`crate::disk::DiskUse::serves_several`].
    pub serves_several: Option<bool>,
    /// Share of the time in which the device had a request, 0 to 1.
    pub busy_ratio: f64,
    /// Mean number of requests in the device and its queue.
    pub queue_mean: Option<f64>,
    pub read_per_s: Option<f64>,
    pub write_per_s: Option<f64>,
    /// Cache flushes per second.
    pub flush_per_s: Option<f64>,
    pub read_bytes_per_s: Option<f64>,
    pub write_bytes_per_s: Option<f64>,
    /// Measured capacity.
    pub capacity: Option<DiskCapacity>,
}

impl DiskFigures {
    /// Whether both describe the same device.
    pub fn is_same(&self, other: &DiskFigures) -> bool {
        (&self.host, &self.device) == (&other.host, &other.device)
    }

    /// Reads, writes and flushes per second; `None` if reads or writes were not counted.
    pub fn requests_per_s(&self) -> Option<f64> {
        Some(self.read_per_s? + self.write_per_s? + self.flush_per_s.unwrap_or(0.0))
    }
}

/// Rate limits by the data devices.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskLimits {
    /// Number of data devices; 0 if they were not distinguished.
    pub devices: u32,
    /// Device with the lowest known limit. A partial limit counts only if no other observed resource has a lower limit.
    pub known: Option<DiskLimit>,
    /// Device whose unknown limit may be lower.
    pub unknown: Option<DiskWithoutLimit>,
}

/// A device with a known limit.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskLimit {
    /// Activity of the device.
    pub disk: DiskFigures,
    /// How the limit is known.
    pub basis: LimitBasis,
    /// Requests per second at which the device is saturated.
    pub requests_per_s: Option<Figure>,
    /// Device time per operation, with the device as a single server: its inverse bounds the rate. For a measured
    /// device this is the minimum: the larger of its read and write capacity shares.
    pub demand: Demand,
    /// Device time per operation in seconds if reads and writes share the time of a measured device.
    pub together_s: Option<f64>,
}

/// How a device limit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitBasis {
    /// The device serves one request at a time, so its busy time is its working time.
    OneAtATime,
    /// The device's capacity was measured.
    Measured,
    /// The servers' reads per second are limited on this device.
    Limited,
    /// Several sweep levels show it: the queue grew from level to level, but the number of served requests did not.
    Saturated,
}

/// A device with an unknown or partly unknown limit.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskWithoutLimit {
    /// Activity; without a name if the devices were not distinguished.
    pub disk: DiskFigures,
    pub reason: NoLimit,
    /// Whether the device may limit before any known limit. It cannot if it allows a higher rate even when it serves
    /// one request at a time, or when reads and writes share its time.
    pub may_be_first: bool,
}

/// Why a device limit is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoLimit {
    /// The device serves several requests at once; its limit was neither measured nor reached.
    ServesSeveral,
    /// The device's concurrency is unknown.
    KindUnknown,
    /// The servers' writes are limited, but their share of the device's writes is unknown. The read limit is known.
    WritesLimited,
    /// The device flushed its cache, but the time per flush was not measured. The read and write limits are known.
    FlushesUnknown,
    /// The device flushed its cache at a share of the measured flush rate that does not show whether flushes limit
    /// first: operations share flushes, and reads and writes may continue during a flush.
    FlushesBeside,
    /// The device did something whose limit was not measured. The other limits are known.
    PartUnknown,
    /// The read and write limits are known, but not whether reads and writes share the device's time.
    ReadsBesideWrites,
}
