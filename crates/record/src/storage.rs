//! Storage that was prepared for a run, and what it can do without a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Storage that was made for the servers of a run and taken away after them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparedStorageRecord {
    /// `server.storage` of the plan.
    pub setting: String,
    /// The devices below the file system, such as `/dev/loop0`.
    pub devices: Vec<String>,
    /// Size of all of them together.
    pub size_bytes: u64,
    /// What they can do, measured before the servers started; in an experiment before its first run on them.
    pub limits: Option<StorageLimitsRecord>,
    /// Why that is not known.
    pub not_measured: Option<String>,
    /// Why what each device can do at most (`capacities`) is not known, or not all of it.
    pub no_capacity: Option<String>,
}

/// What storage can do without a server, under the same limit of operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StorageLimitsRecord {
    /// Random reads of 4 KiB, 16 at once, past the page cache.
    pub random_reads_per_s: f64,
    /// Writes of 4 KiB, one after the other, each followed by `fdatasync`.
    pub synced_writes_per_s: f64,
    /// The program that measured it, with its version.
    pub measured_by: String,
}
