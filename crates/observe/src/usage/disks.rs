//! Counters of the devices of data folders, and their growth over a phase.

use super::{SAMPLING_S, busy_between};
use crate::storage::devices;
use dyno_record::disk::{DISK_FIGURES, DiskUse};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    /// Its folder in `/sys`.
    folder: PathBuf,
    /// Instants and values in the order of [`DiskUse::of`]; empty for a counter that the kernel does not have.
    readings: [Vec<(f64, f64)>; DISK_FIGURES],
    /// The last busy and queued milliseconds, and how often each has wrapped.
    last_ms: [(u64, u64); 2],
}

impl DiskSampler {
    /// The devices of these folders, or of their nearest existing parents; empty if one of them is
    /// not on a device, such as in memory.
    pub(super) fn new(root: &Path, folders: &[PathBuf]) -> DiskSampler {
        let of_folder = |folder: &PathBuf| devices::ends(root, folder).ok();
        let ends: Option<Vec<_>> = folders.iter().map(of_folder).collect();
        let ends: BTreeSet<PathBuf> = ends.into_iter().flatten().flatten().collect();
        let device = |folder: PathBuf| {
            let name = devices::name(&folder).filter(|_| folder.join("stat").exists())?;
            Some(Device {
                name,
                serves: devices::serves(root, &folder),
                folder,
                readings: Default::default(),
                last_ms: Default::default(),
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
        let Ok(now) = devices::counters(&self.folder) else {
            return;
        };
        let mut times_s = [0.0; 2];
        for (place, now_ms) in [now.busy_ms, now.queued_ms].into_iter().enumerate() {
            let (last_ms, wraps) = &mut self.last_ms[place];
            *wraps += u64::from(now_ms < *last_ms);
            *last_ms = now_ms;
            times_s[place] = (now_ms + *wraps * MILLISECONDS) as f64 * 1e-3;
        }
        let [busy_s, queued_s] = times_s.map(Some);
        let counts = [
            Some(now.reads),
            Some(now.writes),
            now.flushes,
            Some(now.read_bytes),
            Some(now.written_bytes),
        ];
        let counts = counts.map(|count| count.map(|count| count as f64));
        let values = [busy_s, queued_s].into_iter().chain(counts);
        for (readings, value) in self.readings.iter_mut().zip(values) {
            readings.extend(value.map(|value| (at_s, value)));
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
