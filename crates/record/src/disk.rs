//! What the devices that hold data did during a phase, and what they can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one device did during a phase. Of an array or a volume it is a member: the device at which requests end.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Its machine; absent if that is the one of the run.
    pub host: Option<String>,
    /// Name as in `/proc/diskstats`, such as `nvme0n1` or `sda1`.
    pub device: String,
    /// Whether it serves several requests at once. It does not with a queue of one request, or if it is a hard disk. Absent where
    /// the machine does not show it: the disk of a virtual machine may be anything, a loop device is a file.
    pub serves_several: Option<bool>,
    /// Time in which it had a request.
    pub busy_s: f64,
    /// Time from begin to end of its requests, added over all of them: divided by the length of the phase it is the mean number
    /// of requests in the device and its queue.
    pub queued_s: Option<f64>,
    /// Reads. All counts are read about once a second, and the ends of a phase are in proportion.
    pub reads: Option<f64>,
    /// Writes.
    pub writes: Option<f64>,
    /// Flushes of its cache; of a partition they are counted on its disk alone.
    pub flushes: Option<f64>,
    /// Bytes read.
    pub read_bytes: Option<f64>,
    /// Bytes written.
    pub write_bytes: Option<f64>,
}

/// Figures of a device that grow, from its busy time on.
pub const DISK_FIGURES: usize = 7;

impl DiskUse {
    /// What a device did, by how much each figure grew, in the order of the fields from `busy_s` on. `None` without the busy time.
    pub fn of(
        host: Option<&str>,
        device: &str,
        serves_several: Option<bool>,
        grown: [Option<f64>; DISK_FIGURES],
    ) -> Option<DiskUse> {
        let [
            busy_s,
            queued_s,
            reads,
            writes,
            flushes,
            read_bytes,
            write_bytes,
        ] = grown;
        Some(DiskUse {
            host: host.map(str::to_owned),
            device: device.to_owned(),
            serves_several,
            busy_s: busy_s?,
            queued_s,
            reads,
            writes,
            flushes,
            read_bytes,
            write_bytes,
        })
    }
}

/// What a device can do, as a measurement of it alone has found (`fio` with a deep queue), and what it was allowed to do.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskCapacity {
    /// Reads per second, if it does nothing else.
    pub read_per_s: Option<f64>,
    /// Writes per second, likewise.
    pub write_per_s: Option<f64>,
    /// Bytes read per second, likewise.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes written per second, likewise.
    pub write_bytes_per_s: Option<f64>,
    /// Flushes of its cache per second, each behind at least one write: the lower end of the 95 % interval. Operations that wait at
    /// the same time share flushes, so that this bounds no rate of theirs.
    pub flush_per_s: Option<f64>,
    /// Half of the 95 % interval of the least certain of the others, as a part of it.
    pub uncertainty_ratio: Option<f64>,
    /// Reads per second that it took from the servers at most during the whole run, and as many writes, by a limit of their
    /// control group. Writes of the kernel, such as those of a file system's journal, are not limited, and are counted as
    /// writes of the device.
    pub limit_per_s: Option<f64>,
}
