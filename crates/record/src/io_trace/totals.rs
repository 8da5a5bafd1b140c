//! Totals of a file by operation, which are known even without single events.

use super::event::{Call, Operation};
use super::log_histogram::LogHistogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All calls of one operation on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileTotals {
    /// Index in [`super::document::TraceDocument::files`].
    pub file: u32,
    pub operation: Operation,
    /// Calls, including failed ones.
    pub calls: u64,
    /// Transferred bytes.
    pub bytes: u64,
    /// Failed calls.
    pub errors: u64,
    /// Sum of the times from entry to exit.
    pub latency_sum_ns: u64,
    /// Times from entry to exit.
    pub latency_ns: LogHistogram,
    /// Transferred bytes per successful call.
    pub size_bytes: LogHistogram,
    /// Calls that began exactly where the previous call on the file ended, whichever thread made it. The first call of
    /// a file counts as neither sequential nor a seek.
    pub sequential_calls: u64,
    /// Distance from the end of the previous call forward to the start of the next one.
    pub seek_forward_bytes: LogHistogram,
    /// Distance from the end of the previous call back to the start of the next one.
    pub seek_backward_bytes: LogHistogram,
    /// Counts over time; empty if they were not collected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<TimeSlice>,
}

/// Activity of a file in a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSlice {
    pub start_ns: i64,
    pub duration_ns: u64,
    /// Calls that began in the slice.
    pub calls: u64,
    /// Bytes that these calls transferred.
    pub bytes: u64,
    /// Sum of these calls' times from entry to exit.
    pub latency_sum_ns: u64,
}

impl FileTotals {
    /// Empty totals with histograms of `2^part_bits` parts per power of two.
    pub fn new(file: u32, operation: Operation, part_bits: u8) -> FileTotals {
        FileTotals {
            file,
            operation,
            calls: 0,
            bytes: 0,
            errors: 0,
            latency_sum_ns: 0,
            latency_ns: LogHistogram::new(part_bits),
            size_bytes: LogHistogram::new(part_bits),
            sequential_calls: 0,
            seek_forward_bytes: LogHistogram::new(0),
            seek_backward_bytes: LogHistogram::new(0),
            slices: Vec::new(),
        }
    }

    /// Counts a call. `previous_end` is the end offset of the previous call on the file.
    pub fn add(&mut self, call: &Call, previous_end: Option<i64>) {
        self.calls += 1;
        self.bytes += call.bytes();
        self.errors += u64::from(call.returned < 0);
        self.latency_sum_ns += call.latency_ns;
        self.latency_ns.add(call.latency_ns);
        if call.returned >= 0 {
            self.size_bytes.add(call.bytes());
        }
        let Some(previous_end) = previous_end.filter(|_| call.offset >= 0) else {
            return;
        };
        let distance = call.offset.abs_diff(previous_end);
        match call.offset.cmp(&previous_end) {
            std::cmp::Ordering::Equal => self.sequential_calls += 1,
            std::cmp::Ordering::Greater => self.seek_forward_bytes.add(distance),
            std::cmp::Ordering::Less => self.seek_backward_bytes.add(distance),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: i64, returned: i64) -> Call {
        Call {
            start_ns: 0,
            latency_ns: 1000,
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
    fn calls_are_sequential_only_at_the_previous_end() {
        let mut totals = FileTotals::new(0, Operation::Read, 0);
        totals.add(&read(0, 4096), None);
        totals.add(&read(4096, 4096), Some(4096));
        totals.add(&read(16_384, 4096), Some(8192));
        totals.add(&read(0, -5), Some(20_480));
        assert_eq!((totals.calls, totals.bytes, totals.errors), (4, 12_288, 1));
        assert_eq!(totals.sequential_calls, 1);
        let forward: Vec<_> = totals.seek_forward_bytes.buckets().collect();
        assert_eq!(forward, [(8192, 16_384, 1)]);
        let backward: Vec<_> = totals.seek_backward_bytes.buckets().collect();
        assert_eq!(backward, [(16_384, 32_768, 1)]);
    }
}
