//! What the devices with the data did while a rate was measured, and whether that limits the rate.

use super::figures::{Demand, Figure};
use crate::disk::DiskCapacity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one device did while a rate was measured; of repeated runs it is the mean.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskFigures {
    /// Its machine; absent if that is the one of the run.
    pub host: Option<String>,
    /// Name as in `/proc/diskstats`.
    pub device: String,
    /// See [`crate::disk::DiskUse::serves_several`].
    pub serves_several: Option<bool>,
    /// Share of the time in which it had a request, 0 to 1.
    pub busy_ratio: f64,
    /// Mean number of requests in the device and its queue.
    pub queue_mean: Option<f64>,
    /// Reads per second.
    pub read_per_s: Option<f64>,
    /// Writes per second.
    pub write_per_s: Option<f64>,
    /// Flushes of its cache per second.
    pub flush_per_s: Option<f64>,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<f64>,
    /// What it can do, if that was measured.
    pub capacity: Option<DiskCapacity>,
}

impl DiskFigures {
    /// Whether both are about the same device.
    pub fn is_same(&self, other: &DiskFigures) -> bool {
        (&self.host, &self.device) == (&other.host, &other.device)
    }

    /// Reads, writes and flushes per second; `None` where reads or writes were not counted.
    pub fn requests_per_s(&self) -> Option<f64> {
        Some(self.read_per_s? + self.write_per_s? + self.flush_per_s.unwrap_or(0.0))
    }
}

/// What the devices with the data allow.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskLimits {
    /// How many devices hold data; 0 if they were not told apart.
    pub devices: u32,
    /// The device that limits first, of those whose limit is known. One of which only a part is known is among them if nothing
    /// that was watched allows less than this part.
    pub known: Option<DiskLimit>,
    /// The device whose unknown limit may be nearest.
    pub unknown: Option<DiskWithoutLimit>,
}

/// A device whose limit is known.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskLimit {
    /// What it did.
    pub disk: DiskFigures,
    /// How its limit is known.
    pub basis: LimitBasis,
    /// Requests per second at which it stopped to do more.
    pub requests_per_s: Option<Figure>,
    /// Time of the device that an operation takes, with the device as one server: the inverse is the bound of the rate. Of a
    /// device that was measured it is the least: the share of its capacity of reads or of writes, whichever is more.
    pub demand: Demand,
    /// The same in seconds if reads and writes share the time of a device that was measured.
    pub together_s: Option<f64>,
}

/// How the limit of a device is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitBasis {
    /// It serves one request at a time, so that the time in which it had requests is the time in which it worked.
    OneAtATime,
    /// It was measured alone.
    Measured,
    /// The servers may do only so many reads per second there.
    Limited,
    /// Several levels of the sweep: more requests waited from level to level, and no more were served.
    Saturated,
}

/// A device whose limit is not known, or not all of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskWithoutLimit {
    /// What it did; without a device where the devices were not told apart.
    pub disk: DiskFigures,
    /// Why.
    pub reason: NoLimit,
    /// Whether it may limit before anything whose limit is known. It cannot if it would allow a higher rate than the rest even as
    /// a server of one request at a time, or with reads and writes that share its time.
    pub may_be_first: bool,
}

/// Why the limit of a device is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoLimit {
    /// It serves several requests at once, and neither was its limit measured nor did it come to light.
    ServesSeveral,
    /// Nobody knows how many requests it serves at once.
    KindUnknown,
    /// The writes of the servers are limited, and nobody knows how many of those that the device did were theirs. The bound of
    /// its reads is known nevertheless.
    WritesLimited,
    /// It flushed its cache, and how much of its time a flush takes was not measured. That of its reads and writes is known.
    FlushesUnknown,
    /// It flushed its cache, at a share of what was measured that does not tell whether flushes limit first: operations share them, and
    /// whether reads and writes go on meanwhile is not known.
    FlushesBeside,
    /// It did something whose limit was not measured. That of the rest is known.
    PartUnknown,
    /// Its limits of reads and of writes are known, and not whether they share its time.
    ReadsBesideWrites,
}
