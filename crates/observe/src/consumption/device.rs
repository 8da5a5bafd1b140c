//! Counters of the block devices below the data folders.
//! Source of the fields: `Documentation/block/stat.rst` of Linux.

use super::known::Known;
use crate::health::Reading;
use crate::storage::devices::{self, SECTOR_BYTES};
use dyno_record::consumption::DeviceUse;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Places of the counters in `stat`.
const READS: usize = 0;
const READ_SECTORS: usize = 2;
const WRITES: usize = 4;
const WRITE_SECTORS: usize = 6;
const FLUSHES: usize = 15;

/// The devices, each once.
#[derive(Debug)]
pub(super) struct Devices {
    /// Folders in `/sys`, ordered.
    devices: BTreeSet<PathBuf>,
    /// Those that count the flushes: the disk of a partition, the members of a volume.
    flushed: BTreeSet<PathBuf>,
}

/// Their counters, added up.
#[derive(Clone, Debug)]
pub(super) struct DeviceCounters {
    names: Vec<String>,
    /// Reads, bytes read, writes, bytes written.
    sums: [u64; 4],
    /// Absent in kernels that do not count them.
    flushes: Option<u64>,
}

impl Devices {
    /// The devices of folders, or of the nearest ones above that exist.
    pub(super) fn find(root: &Path, folders: &[PathBuf]) -> Known<Self> {
        let told = |found: Reading<Vec<PathBuf>>| {
            found.map_err(|health| health.reason().unwrap_or_default().to_owned())
        };
        let (mut devices, mut flushed) = (BTreeSet::new(), BTreeSet::new());
        for folder in folders {
            devices.extend(told(devices::of_file_system(root, folder))?);
            let ends = told(devices::ends(root, folder))?;
            // Those of a partition are counted on its disk.
            let disk = |device: &PathBuf| {
                let disk = devices::disk_of_partition(device);
                disk.unwrap_or(device).to_owned()
            };
            flushed.extend(ends.iter().map(disk));
        }
        if devices.is_empty() {
            return Err("the folder of the data is not known".to_owned());
        }
        Ok(Devices { devices, flushed })
    }

    pub(super) fn read(&self) -> Known<DeviceCounters> {
        let mut sums = [0; 4];
        for device in &self.devices {
            let counters = counters(device)?;
            let get = |place: usize| {
                let found = counters.get(place).copied();
                found.ok_or_else(|| {
                    format!("`{}` has too few counters", device.join("stat").display())
                })
            };
            sums[0] += get(READS)?;
            sums[1] += get(READ_SECTORS)? * SECTOR_BYTES;
            sums[2] += get(WRITES)?;
            sums[3] += get(WRITE_SECTORS)? * SECTOR_BYTES;
        }
        let mut flushes = Some(0);
        for device in &self.flushed {
            let of_one = counters(device)?.get(FLUSHES).copied();
            flushes = flushes.zip(of_one).map(|(sum, one)| sum + one);
        }
        Ok(DeviceCounters {
            names: self
                .devices
                .iter()
                .filter_map(|device| devices::name(device))
                .collect(),
            sums,
            flushes,
        })
    }
}

fn counters(device: &Path) -> Known<Vec<u64>> {
    let path = device.join("stat");
    let text =
        fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    let numbers = text.split_ascii_whitespace().map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .map_err(|_| format!("`{}` was not understood", path.display()))
}

impl DeviceCounters {
    pub(super) fn written_bytes(&self) -> u64 {
        self.sums[3]
    }

    /// Why flushes are not known, if they are not.
    pub(super) fn why_no_flushes(&self) -> Option<String> {
        let is_unknown = self.flushes.is_none();
        is_unknown.then(|| "this kernel does not count them".to_owned())
    }

    /// By how much they grew until `last`.
    pub(super) fn growth(&self, last: &DeviceCounters) -> Known<DeviceUse> {
        let by = |place: usize| {
            let found = last.sums[place].checked_sub(self.sums[place]);
            found.ok_or_else(|| "the device is another one under the old name".to_owned())
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
