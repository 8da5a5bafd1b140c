//! Output of a trace: events while it runs, everything else at its end.

use dyno_record::io_trace::document::{BlockDevice, FileEntry, ProbeUse, TraceCaveat, TraceCost};
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_record::io_trace::totals::FileTotals;

/// Receives events. Calls are ordered by their ends.
pub trait Sink {
    /// Receives calls; never an empty slice.
    fn calls(&mut self, calls: &[Call]);
    /// Receives block layer requests; never an empty slice.
    fn block(&mut self, requests: &[BlockRequest]);
}

/// Result of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// Time zero on the machine's monotonic clock.
    pub zero_monotonic_ns: u64,
    /// Start of the trace, relative to time zero.
    pub start_ns: i64,
    /// End of the trace, relative to time zero.
    pub end_ns: i64,
    /// Hooks that were used.
    pub probes: Vec<ProbeUse>,
    /// Files; events refer to them by index.
    pub files: Vec<FileEntry>,
    /// Totals by file and operation, in every mode.
    pub totals: Vec<FileTotals>,
    /// Block devices; events refer to them by index.
    pub devices: Vec<BlockDevice>,
    /// Calls that were delivered, or counted in the totals.
    pub calls: u64,
    /// Block layer requests that were delivered.
    pub block_requests: u64,
    /// Calls that are in no total because a buffer or table was full.
    pub lost_calls: u64,
    /// Block layer requests that could not be delivered.
    pub lost_block_requests: u64,
    /// Block layer requests without an observed end: they were in flight when the trace ended, or the kernel did not
    /// report their end.
    pub unended_requests: u64,
    /// Cost of the probes, if it was measured.
    pub cost: Option<TraceCost>,
    /// Reasons to doubt the trace.
    pub caveats: Vec<TraceCaveat>,
}
