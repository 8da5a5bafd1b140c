//! Counters of the devices of data folders, and their growth over a phase.

use super::{SAMPLING_S, busy_between};
use crate::storage::devices::{self, SECTOR_BYTES};
use dyno_record::disk::{DISK_FIGURES, DiskUse};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The columns of `stat` in the order of [`DiskUse::of`], and their units. Source:
/// Documentation/block/stat.rst of Linux.
const COLUMNS: [(usize, f64); DISK_FIGURES] = [
    (BUSY, 1e-3),
    (QUEUED, 1e-3),
    (0, 1.0),
    (4, 1.0),
    (15, 1.0),
    (2, SECTOR_BYTES as f64),
    (6, SECTOR_BYTES as f64),
];
const BUSY: usize = 9;
const QUEUED: usize = 10;

/// Milliseconds are counted in 32 bits: with 32 requests in the queue the counter wraps after 37
/// hours.
const MILLISECONDS: u64 = 1 << 32;

/// Reads the counters of the devices that finally serve the requests for some folders.
#[derive(Debug)]
pub(super) struct DiskSampler {
    devices: Vec<Device>,
}

#[derive(Debug)]
struct Device {
    name: String,
    serves: Option<u64>,
    /// Its counter file below `/sys`.
    stat: PathBuf,
    /// By column: instants and values; empty for a column that the kernel does not have.
    readings: [Vec<(f64, f64)>; COLUMNS.len()],
    /// The last raw value of each column, and how often it has wrapped.
    last: [(u64, u64); COLUMNS.len()],
}

impl DiskSampler {
    /// The devices of these folders, or of their nearest existing parents; empty if one of them is
    /// not on a device, such as in memory.
    pub(super) fn new(root: &Path, folders: &[PathBuf]) -> DiskSampler {
        let of_folder = |folder: &PathBuf| devices::ends(root, folder).ok();
        let ends: Option<Vec<_>> = folders.iter().map(of_folder).collect();
        let ends: BTreeSet<PathBuf> = ends.into_iter().flatten().flatten().collect();
        let device = |folder: PathBuf| {
            let stat = folder.join("stat");
            let name = devices::name(&folder).filter(|_| stat.exists())?;
            Some(Device {
                name,
                serves: devices::serves(root, &folder),
                stat,
                readings: Default::default(),
                last: Default::default(),
            })
        };
        DiskSampler {
            // Without one of them, the others would pass for all.
            devices: ends.into_iter().map(device).collect::<Option<_>>().unwrap_or_default(),
        }
    }

    pub(super) fn sample(&mut self, at_s: f64) {
        for device in &mut self.devices {
            device.sample(at_s);
        }
    }

    /// The use of each device from `start_s` to `end_s`; empty if the busy time of one of them is
    /// unknown.
    pub(super) fn between(&self, start_s: f64, end_s: f64) -> Vec<DiskUse> {
        let all = self.devices.iter().map(|device| device.between(start_s, end_s));
        all.collect::<Option<_>>().unwrap_or_default()
    }
}

impl Device {
    fn sample(&mut self, at_s: f64) {
        let Ok(text) = std::fs::read_to_string(&self.stat) else {
            return;
        };
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        for (place, (column, unit)) in COLUMNS.into_iter().enumerate() {
            let Some(value) = fields.get(column).and_then(|field| field.parse::<u64>().ok()) else {
                continue;
            };
            let (last, wraps) = &mut self.last[place];
            let is_time = column == BUSY || column == QUEUED;
            *wraps += u64::from(is_time && value < *last);
            *last = value;
            let value = value + *wraps * MILLISECONDS;
            self.readings[place].push((at_s, value as f64 * unit));
        }
    }

    fn between(&self, start_s: f64, end_s: f64) -> Option<DiskUse> {
        let grown = self
            .readings
            .each_ref()
            .map(|readings| busy_between(readings, SAMPLING_S, start_s, end_s));
        let serves_several = self.serves.map(|serves| serves > 1);
        DiskUse::of(None, &self.name, serves_several, grown)
    }
}

#[cfg(test)]
mod tests;
