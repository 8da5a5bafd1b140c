//! What a trace hands over: events while it goes on, the rest at its end.

use dyno_record::io_trace::document::{BlockDevice, FileEntry, ProbeUse, TraceCaveat, TraceCost};
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_record::io_trace::totals::FileTotals;

/// Takes events. Calls come in the order of their ends.
pub trait Sink {
    /// Takes calls; never none.
    fn calls(&mut self, calls: &[Call]);
    /// Takes requests of the block layer; never none.
    fn block(&mut self, requests: &[BlockRequest]);
}

/// What is known when a trace has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traced {
    /// Zero of all times on the monotonic clock of the machine.
    pub zero_monotonic_ns: u64,
    /// When tracing began, from the zero.
    pub start_ns: i64,
    /// When it ended, from the zero.
    pub end_ns: i64,
    /// The hooks that were used.
    pub probes: Vec<ProbeUse>,
    /// The files, by number.
    pub files: Vec<FileEntry>,
    /// Totals by file and operation, in every mode.
    pub totals: Vec<FileTotals>,
    /// Block devices, by number.
    pub devices: Vec<BlockDevice>,
    /// Calls that were handed over, or counted in the totals.
    pub calls: u64,
    /// Requests of the block layer that were handed over.
    pub block_requests: u64,
    /// Calls that were seen and are in no total, because a buffer or table was full.
    pub lost_calls: u64,
    /// Requests of the block layer that were seen and could not be handed over.
    pub lost_block_requests: u64,
    /// Requests of the block layer whose end was not seen: they were under way when the trace ended, or the kernel did not
    /// tell it.
    pub unended_requests: u64,
    /// What the probes cost, if that was measured.
    pub cost: Option<TraceCost>,
    /// Reasons to doubt the trace.
    pub caveats: Vec<TraceCaveat>,
}
