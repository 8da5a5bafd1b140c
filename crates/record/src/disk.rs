//! Activity of the data devices during a phase, and their capacity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity of a device during a phase. Arrays and volumes are recorded as their members: the devices at which requests
/// end.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Machine of the device; absent for the run's own machine.
    pub host: Option<String>,
    /// Name as in `/proc/diskstats`, such as `nvme0n1` or `sda1`.
    pub device: String,
    /// Whether the device serves several requests at once: false for a queue of one request or a hard disk. Absent if
    /// the machine does not show it: the disk of a virtual machine may be anything, and a loop device is a file.
    pub serves_several: Option<bool>,
    /// Time in which the device had a request.
    pub busy_s: f64,
    /// Time from start to end of its requests, summed: divided by the length of the phase, it is the mean number of
    /// requests in the device and its queue.
    pub queued_s: Option<f64>,
    /// Reads. Counts are read about once per second and interpolated at the ends of the phase.
    pub reads: Option<f64>,
    pub writes: Option<f64>,
    /// Cache flushes; a partition's flushes are counted on its disk only.
    pub flushes: Option<f64>,
    pub read_bytes: Option<f64>,
    pub write_bytes: Option<f64>,
}

/// Number of cumulative figures of a device, from the busy time on.
pub const DISK_FIGURES: usize = 7;

impl DiskUse {
    /// Activity of a device from the growth of each figure, in the order of the fields from `busy_s` on. `None` without
    /// the busy time.
    pub fn of(
        host: Option<&str>,
        device: &str,
        serves_several: Option<bool>,
        grown: [Option<f64>; DISK_FIGURES],
    ) -> Option<DiskUse> {
        let [busy_s, queued_s, reads, writes, flushes, read_bytes, write_bytes] = grown;
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

/// Counters of a device since boot or since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Completed reads.
    pub reads: u64,
    pub read_bytes: u64,
    /// Completed writes.
    pub writes: u64,
    pub written_bytes: u64,
    /// Milliseconds in which it had a request; counted in 32 bits.
    pub busy_ms: u64,
    /// Milliseconds that its requests took, summed; counted in 32 bits.
    pub queued_ms: u64,
    /// Flushes of its cache; absent in kernels that do not count them.
    pub flushes: Option<u64>,
}

/// Capacity of a device, measured separately (by `fio` with a deep queue), and limits on its use.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskCapacity {
    /// Reads per second, without other activity.
    pub read_per_s: Option<f64>,
    /// Writes per second, without other activity.
    pub write_per_s: Option<f64>,
    /// Bytes read per second, without other activity.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes written per second, without other activity.
    pub write_bytes_per_s: Option<f64>,
    /// Cache flushes per second, each after at least one write: the lower end of the 95 % interval. Operations that
    /// wait at the same time share flushes, so this does not bound their rate.
    pub flush_per_s: Option<f64>,
    /// Largest half-width of the 95 % intervals of the other figures, as a share of the value.
    pub uncertainty_ratio: Option<f64>,
    /// Limit of the servers' reads per second on this device during the whole run, and of their writes, set by their
    /// control group. Writes of the kernel, such as to a file system's journal, are not limited, but count as writes of
    /// the device.
    pub limit_per_s: Option<f64>,
}
