//! Totals by file and operation: counted here from events, or read from the kernel's tables.

use super::layout::{ENDS, Fields, KernelTotal};
use super::names::FileTable;
use dyno_record::io_trace::event::{Call, Operation};
use dyno_record::io_trace::log_histogram::LogHistogram;
use dyno_record::io_trace::totals::{FileTotals, TimeSlice};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

/// Parts per power of two in latency histograms, as bits; the same as in the kernel.
const LATENCY_PARTS: u8 = 2;
/// Length of a time slice.
pub(super) const SLICE_NS: i64 = 1_000_000_000;

type Key = (u32, Operation);

/// Totals from events.
#[derive(Debug, Default)]
pub(super) struct EventTotals {
    totals: BTreeMap<Key, (FileTotals, Option<i64>)>,
}

impl EventTotals {
    /// Counts a call. Calls must be ordered by their ends.
    pub(super) fn add(&mut self, call: &Call) {
        let entry = self.totals.entry((call.file, call.operation));
        let (totals, end) = entry
            .or_insert_with(|| (FileTotals::new(call.file, call.operation, LATENCY_PARTS), None));
        totals.add(call, *end);
        if call.offset >= 0 {
            *end = Some(call.offset + call.returned.max(0));
        }
        add_to_slice(&mut totals.slices, call);
    }

    pub(super) fn into_totals(self) -> Vec<FileTotals> {
        let mut totals: Vec<FileTotals> = self.totals.into_values().map(|(each, _)| each).collect();
        for each in &mut totals {
            each.slices.sort_by_key(|slice| slice.start_ns);
        }
        totals
    }
}

/// Calls count in the slice of their start, which may be an earlier slice.
fn add_to_slice(slices: &mut Vec<TimeSlice>, call: &Call) {
    let start_ns = call.start_ns.div_euclid(SLICE_NS) * SLICE_NS;
    let found = slices.iter().rposition(|slice| slice.start_ns == start_ns);
    let place = found.unwrap_or_else(|| {
        slices.push(TimeSlice {
            start_ns,
            duration_ns: SLICE_NS as u64,
            calls: 0,
            bytes: 0,
            latency_sum_ns: 0,
        });
        slices.len() - 1
    });
    let slice = &mut slices[place];
    slice.calls += 1;
    slice.bytes += call.bytes();
    slice.latency_sum_ns += call.latency_ns;
}

/// Totals from the kernel.
#[derive(Debug)]
pub(super) struct KernelTotals {
    map: MapHandle,
    /// End of the last call for each file and operation.
    ends: MapHandle,
    /// Values of the last reading and the time slices so far, by the kernel's file number.
    read: BTreeMap<Key, (KernelTotal, Vec<TimeSlice>)>,
    /// Totals that are no longer in the kernel's table.
    kept: BTreeMap<Key, KernelTotal>,
    /// Keys of `kept` that were removed from the table since the last reading.
    fresh: Vec<Key>,
    /// Files that were removed since the last reading: a call in flight may have added them again.
    freed: Vec<u32>,
    last_ns: i64,
}

impl KernelTotals {
    pub(super) fn new(map: MapHandle, ends: MapHandle, start_ns: i64) -> KernelTotals {
        KernelTotals {
            map,
            ends,
            read: BTreeMap::new(),
            kept: BTreeMap::new(),
            fresh: Vec::new(),
            freed: Vec::new(),
            last_ns: start_ns,
        }
    }

    /// Whether a time slice is over.
    pub(super) fn is_due(&self, now_ns: i64) -> bool {
        now_ns - self.last_ns >= SLICE_NS
    }

    /// Reads the tables, and adds a time slice with the growth since the last reading.
    pub(super) fn read(&mut self, now_ns: i64) -> Result<(), libbpf_rs::Error> {
        for id in std::mem::take(&mut self.freed) {
            self.delete(id);
        }
        let keys: Vec<Vec<u8>> = self.map.keys().collect();
        for key in keys {
            let Some(per_cpu) = self.map.lookup_percpu(&key, MapFlags::empty())? else {
                continue;
            };
            let mut fields = Fields::new(&key);
            let (file, operation) = (fields.u32(), fields.u32());
            let Some(operation) = u8::try_from(operation).ok().and_then(Operation::from_number)
            else {
                continue;
            };
            if let Some(sum) = sum_of(per_cpu.iter().map(Vec::as_slice)) {
                self.put((file, operation), sum, now_ns);
                self.fresh.retain(|key| *key != (file, operation));
            }
        }
        for key in std::mem::take(&mut self.fresh) {
            self.put(key, KernelTotal::nothing(), now_ns);
        }
        self.last_ns = now_ns;
        Ok(())
    }

    /// Drops the totals of a file that is not traced.
    pub(super) fn free(&mut self, id: u32) {
        self.delete(id);
        self.freed.push(id);
        for operation in Operation::ALL {
            self.read.remove(&(id, operation));
            self.kept.remove(&(id, operation));
        }
    }

    fn delete(&self, id: u32) {
        for operation in Operation::ALL {
            // Most files do not have every operation.
            let _absent = self.map.delete(&key_bytes(id, operation));
            self.forget_end(id, operation);
        }
    }

    /// Moves the totals of a deleted file out of the kernel's table to make room. If the file is used again, it gets a
    /// new entry, and both are added.
    pub(super) fn keep(&mut self, id: u32) {
        for operation in Operation::ALL {
            let Some(sum) = take(&self.map, &key_bytes(id, operation)) else {
                continue;
            };
            let key = (id, operation);
            match self.kept.get_mut(&key) {
                Some(kept) => kept.add(&sum),
                None => {
                    self.kept.insert(key, sum);
                }
            }
            self.fresh.push(key);
        }
    }

    fn forget_end(&self, id: u32, operation: Operation) {
        let place = id % ENDS * Operation::ALL.len() as u32 + operation as u32;
        let nothing = 0u64.to_ne_bytes();
        let _kept = self.ends.update(&place.to_ne_bytes(), &nothing, MapFlags::ANY);
    }

    /// Stores current values of the kernel's table.
    fn put(&mut self, key: Key, mut total: KernelTotal, now_ns: i64) {
        if let Some(kept) = self.kept.get(&key) {
            total.add(kept);
        }
        let last =
            self.read.get(&key).map(|(last, _)| (last.calls, last.bytes, last.latency_sum_ns));
        let (calls, bytes, latency_sum_ns) = last.unwrap_or_default();
        let entry = self.read.entry(key).or_insert_with(|| (total.clone(), Vec::new()));
        if total.calls > calls {
            entry.1.push(TimeSlice {
                start_ns: self.last_ns,
                duration_ns: (now_ns - self.last_ns).max(0) as u64,
                calls: total.calls - calls,
                bytes: total.bytes.saturating_sub(bytes),
                latency_sum_ns: total.latency_sum_ns.saturating_sub(latency_sum_ns),
            });
        }
        entry.0 = total;
    }

    /// Totals of traced files.
    pub(super) fn into_totals(self, files: &FileTable) -> Vec<FileTotals> {
        let one = |((id, operation), (total, slices))| {
            let file = files.index_of(id)?;
            Some(to_record(file, operation, total, slices))
        };
        self.read.into_iter().filter_map(one).collect()
    }
}

fn key_bytes(id: u32, operation: Operation) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&id.to_ne_bytes());
    bytes[4..].copy_from_slice(&(operation as u32).to_ne_bytes());
    bytes
}

fn sum_of<'a>(per_cpu: impl Iterator<Item = &'a [u8]>) -> Option<KernelTotal> {
    let each = per_cpu.map(|bytes| KernelTotal::read(&mut Fields::new(bytes)));
    each.reduce(|mut sum, one| {
        sum.add(&one);
        sum
    })
}

/// Removes and returns a table entry atomically, so that no call between reading and deleting is lost.
fn take(map: &MapHandle, key: &[u8; 8]) -> Option<KernelTotal> {
    let cpus = libbpf_rs::num_possible_cpus().ok()?;
    let length = (map.value_size() as usize).next_multiple_of(8);
    let mut values = vec![0u8; length * cpus];
    // SAFETY: the key has the size of the table's keys. The kernel writes one value of this size, rounded up to eight
    // bytes, per possible CPU; both outlive the call.
    let status = unsafe {
        libbpf_sys::bpf_map_lookup_and_delete_elem(
            map.as_fd().as_raw_fd(),
            key.as_ptr().cast(),
            values.as_mut_ptr().cast(),
        )
    };
    (status == 0).then(|| sum_of(values.chunks_exact(length)))?
}

fn to_record(
    file: u32,
    operation: Operation,
    total: KernelTotal,
    slices: Vec<TimeSlice>,
) -> FileTotals {
    FileTotals {
        calls: total.calls,
        bytes: total.bytes,
        errors: total.errors,
        latency_sum_ns: total.latency_sum_ns,
        latency_ns: LogHistogram::from_counts(LATENCY_PARTS, &total.latency),
        size_bytes: LogHistogram::from_counts(0, &total.size),
        sequential_calls: total.sequential,
        seek_forward_bytes: LogHistogram::from_counts(0, &total.forward),
        seek_backward_bytes: LogHistogram::from_counts(0, &total.backward),
        slices,
        ..FileTotals::new(file, operation, LATENCY_PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start_ns: i64, offset: i64, returned: i64) -> Call {
        Call {
            start_ns,
            latency_ns: 10,
            offset,
            requested: 4096,
            returned,
            file: 0,
            process: 1,
            thread: 1,
            operation: Operation::Read,
            fetched: -1,
        }
    }

    #[test]
    fn the_next_call_is_expected_at_the_end_of_the_last() {
        let mut totals = EventTotals::default();
        for offset in [0, 4096, 8192, 0] {
            totals.add(&call(0, offset, 4096));
        }
        let totals = totals.into_totals();
        assert_eq!(totals[0].sequential_calls, 2);
        assert_eq!(totals[0].seek_backward_bytes.count(), 1);
    }

    #[test]
    fn calls_are_counted_in_the_second_in_which_they_began() {
        let mut totals = EventTotals::default();
        for start_ns in [-1, 0, 2_500_000_000, 999_999_999] {
            totals.add(&call(start_ns, 0, 100));
        }
        let slices = totals.into_totals().remove(0).slices;
        let found: Vec<_> = slices.iter().map(|slice| (slice.start_ns, slice.calls)).collect();
        assert_eq!(found, [(-SLICE_NS, 1), (0, 2), (2 * SLICE_NS, 1)]);
    }
}
