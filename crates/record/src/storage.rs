//! Storage that was prepared for a run, and its performance without a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Storage that was created for the servers of a run and removed afterwards.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparedStorageRecord {
    /// `server.storage` of the plan.
    pub setting: String,
    /// Devices below the file system, such as `/dev/loop0`.
    pub devices: Vec<String>,
    /// Total size of the devices.
    pub size_bytes: u64,
    /// Performance, measured before the servers started; in an experiment, before the first run on the storage.
    pub limits: Option<StorageLimitsRecord>,
    /// Why the performance is unknown.
    pub not_measured: Option<String>,
    /// Why the capacity of some or all devices (`capacities`) is unknown.
    pub no_capacity: Option<String>,
}

/// Performance of storage without a server, under the same limit of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageLimitsRecord {
    /// Random reads of 4 KiB, 16 at a time, bypassing the page cache.
    pub random_reads_per_s: f64,
    /// Writes of 4 KiB, one after the other, each followed by `fdatasync`.
    pub synced_writes_per_s: f64,
    /// Benchmark program with its version.
    pub measured_by: String,
}
