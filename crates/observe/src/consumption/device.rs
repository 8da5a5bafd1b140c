//! Counters of the block devices below the data folders.

use super::known::Known;
use crate::health::Reading;
use crate::storage::devices::{self, DeviceCounters};
use dyno_record::consumption::DeviceUse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Devices below the data folders, each once.
#[derive(Debug)]
pub(super) struct Devices {
    /// Folders in `/sys`, ordered.
    devices: BTreeSet<PathBuf>,
    /// Devices that count flushes: a partition's disk, a volume's members.
    flushed: BTreeSet<PathBuf>,
}

/// Counters summed over all devices.
#[derive(Clone, Debug)]
pub(super) struct SummedCounters {
    names: Vec<String>,
    /// Reads, bytes read, writes, bytes written.
    sums: [u64; 4],
    /// Absent in kernels that do not count them.
    flushes: Option<u64>,
}

impl Devices {
    /// Finds the devices of the folders, or of their nearest existing parents.
    pub(super) fn find(root: &Path, folders: &[PathBuf]) -> Known<Self> {
        let reported =
            |found: Reading<Vec<PathBuf>>| found.map_err(|health| health.reason().to_owned());
        let (mut devices, mut flushed) = (BTreeSet::new(), BTreeSet::new());
        for folder in folders {
            devices.extend(reported(devices::of_file_system(root, folder))?);
            let ends = reported(devices::ends(root, folder))?;
            // Flushes of a partition are counted on its disk.
            let disk = |device: &PathBuf| {
                let disk = devices::disk_of_partition(device);
                disk.unwrap_or(device).to_owned()
            };
            flushed.extend(ends.iter().map(disk));
        }
        if devices.is_empty() {
            return Err("the data folder is unknown".to_owned());
        }
        Ok(Devices { devices, flushed })
    }

    pub(super) fn read(&self) -> Known<SummedCounters> {
        let mut sums = [0; 4];
        for device in &self.devices {
            let DeviceCounters { reads, read_bytes, writes, written_bytes, .. } =
                devices::counters(device)?;
            let of_one = [reads, read_bytes, writes, written_bytes];
            for (sum, one) in sums.iter_mut().zip(of_one) {
                *sum += one;
            }
        }
        let mut flushes = Some(0);
        for device in &self.flushed {
            let of_one = devices::counters(device)?.flushes;
            flushes = flushes.zip(of_one).map(|(sum, one)| sum + one);
        }
        Ok(SummedCounters {
            names: self.devices.iter().filter_map(|device| devices::name(device)).collect(),
            sums,
            flushes,
        })
    }
}

impl SummedCounters {
    pub(super) fn written_bytes(&self) -> u64 {
        self.sums[3]
    }

    /// Why the number of flushes is unknown, if it is.
    pub(super) fn why_no_flushes(&self) -> Option<String> {
        let is_unknown = self.flushes.is_none();
        is_unknown.then(|| "this kernel does not count them".to_owned())
    }

    /// Growth of the counters until `last`.
    pub(super) fn growth(&self, last: &SummedCounters) -> Known<DeviceUse> {
        let by = |place: usize| {
            let found = last.sums[place].checked_sub(self.sums[place]);
            found.ok_or_else(|| "another device has taken the name".to_owned())
        };
        let flushes = self.flushes.zip(last.flushes);
        Ok(DeviceUse {
            names: last.names.clone(),
            read_requests: by(0)?,
            read_bytes: by(1)?,
            write_requests: by(2)?,
            written_bytes: by(3)?,
            flushes: flushes.and_then(|(first, last)| last.checked_sub(first)),
            deferred_bytes: None,
        })
    }
}
