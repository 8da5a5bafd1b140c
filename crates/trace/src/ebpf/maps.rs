//! Tables shared with the kernel programs.

use super::layout::{ALWAYS, COUNTERS, Counter, Fields, FileKey, FileSlot, RequestState};
use super::object;
use crate::error::TraceError;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};

/// Handles of the tables.
#[derive(Debug)]
pub(super) struct Maps {
    processes: MapHandle,
    files: MapHandle,
    devices: MapHandle,
    requests: MapHandle,
    counters: MapHandle,
    losses: MapHandle,
    pub(super) events: MapHandle,
}

impl Maps {
    pub(super) fn from_object(object: &mut Object) -> Result<Maps, TraceError> {
        Ok(Maps {
            processes: object::map(object, "processes")?,
            files: object::map(object, "files")?,
            devices: object::map(object, "devices")?,
            requests: object::map(object, "requests")?,
            counters: object::map(object, "counters")?,
            losses: object::map(object, "losses")?,
            events: object::map(object, "events")?,
        })
    }

    /// Marks a process as traced, or only its children.
    pub(super) fn set_process(&self, process: u32, value: u32) -> Result<(), TraceError> {
        self.processes
            .update(&process.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| object::refused("to trace another process", &error))
    }

    pub(super) fn forget_process(&self, process: u32) {
        // The process may have been removed when it ended.
        let _gone = self.processes.delete(&process.to_ne_bytes());
    }

    /// Sets the verdict on a file.
    pub(super) fn judge(
        &self,
        key: FileKey,
        slot: FileSlot,
        verdict: u32,
    ) -> Result<(), TraceError> {
        self.files
            .update(&key.to_bytes(), &slot.judged(verdict), MapFlags::ANY)
            .map_err(|error| object::refused("the verdict on a file", &error))
    }

    /// Removes a deleted file that was not traced.
    pub(super) fn forget_file(&self, key: FileKey) {
        // The file has no entry if the table was full.
        let _gone = self.files.delete(&key.to_bytes());
    }

    /// Enables requests to a device, whether or not files on it are pending.
    pub(super) fn want_device(&self, number: u32) -> Result<(), TraceError> {
        self.devices
            .update(&number.to_ne_bytes(), &ALWAYS.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| object::refused("to trace another device", &error))
    }

    /// Counters summed over all CPUs.
    pub(super) fn counters(&self) -> Counters {
        let mut sums = [0; COUNTERS];
        for (number, sum) in (0u32..).zip(&mut sums) {
            let per_cpu = self.counters.lookup_percpu(&number.to_ne_bytes(), MapFlags::empty());
            let per_cpu = per_cpu.ok().flatten().unwrap_or_default();
            *sum = per_cpu.iter().map(|bytes| Fields::new(bytes).u64()).sum();
        }
        Counters { sums }
    }

    /// Losses of the files or devices that count, by their numbers in the kernel.
    pub(super) fn lost(&self, counter: Counter, counts: impl Fn(u32) -> bool) -> u64 {
        let lost_of = |key: Vec<u8>| {
            let mut fields = Fields::new(&key);
            if fields.u32() != counter as u32 || !counts(fields.u32()) {
                return None;
            }
            let value = self.losses.lookup(&key, MapFlags::empty()).ok().flatten()?;
            Some(Fields::new(&value).u64())
        };
        self.losses.keys().filter_map(lost_of).sum()
    }

    /// Issue times of requests without an end to devices that count.
    pub(super) fn unended(&self, counts: impl Fn(u32) -> bool) -> Vec<u64> {
        let issued = |key: Vec<u8>| {
            let value = self.requests.lookup(&key, MapFlags::empty()).ok().flatten()?;
            let state = RequestState::read(&mut Fields::new(&value));
            (state.issue_ns > 0 && counts(state.known_by)).then_some(state.issue_ns)
        };
        self.requests.keys().filter_map(issued).collect()
    }
}

/// Counters of the programs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    sums: [u64; COUNTERS],
}

impl Counters {
    pub(super) fn get(&self, counter: Counter) -> u64 {
        self.sums[counter as usize]
    }
}
