//! Reasons to doubt a trace, out of what is known at its end.

use super::layout::Counter;
use super::maps::Counters;
use crate::hooks::Missing;
use crate::settings::Settings;
use crate::traced::Traced;
use dyno_record::io_trace::document::{TraceCaveat, TraceCaveatKind};
use dyno_record::io_trace::event::Operation;
use std::path::Path;

/// What is known at the end of a trace.
pub(super) struct Known<'a> {
    pub(super) settings: &'a Settings,
    pub(super) missing: &'a [Missing],
    pub(super) traced: &'a Traced,
    pub(super) counters: &'a Counters,
    /// How often the kernel left a program out.
    pub(super) misses: u64,
    /// Requests whose end the kernel did not report.
    pub(super) unseen_ends: u64,
    pub(super) unknown_offsets: u64,
}

/// The reasons to doubt it.
pub(super) fn from_known(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = lost(known);
    caveats.extend(not_observed(known));
    caveats.extend(unknown(known));
    if !known.settings.block {
        let message =
            "block requests were not traced; the page cache and the device cannot be told apart";
        caveats.push(caveat(TraceCaveatKind::NoBlockRequests, message.to_owned()));
    }
    caveats
}

fn caveat(kind: TraceCaveatKind, message: String) -> TraceCaveat {
    TraceCaveat {
        kind,
        message,
        hint: None,
    }
}

fn lost(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = Vec::new();
    let traced = known.traced;
    let names = known.counters.get(Counter::LostNames);
    let lost = traced.lost_calls + traced.lost_block_requests + names;
    if lost > 0 {
        let message = format!("{lost} events were lost because a buffer or table was full");
        caveats.push(TraceCaveat {
            hint: Some("a larger buffer, a narrower filter, or the aggregated mode".to_owned()),
            ..caveat(TraceCaveatKind::LostEvents, message)
        });
    }
    if known.misses > 0 {
        let message = format!(
            "the kernel skipped a probe {} times because it was already running",
            known.misses
        );
        caveats.push(caveat(TraceCaveatKind::LostEvents, message));
    }
    if known.unseen_ends > 0 {
        let message = format!(
            "the kernel did not report the end of {} device requests; they are omitted",
            known.unseen_ends
        );
        caveats.push(caveat(TraceCaveatKind::LostEvents, message));
    }
    caveats
}

fn not_observed(known: &Known) -> Vec<TraceCaveat> {
    let by_hook = known.missing.iter().map(|missing| {
        let what = missing.target.as_str();
        let message = format!("{what} could not be observed: {}", missing.reason);
        caveat(TraceCaveatKind::NotObserved, message)
    });
    let methods = [
        (Counter::UnseenAio, "by Linux AIO (`io_submit`)"),
        (
            Counter::UnseenCopies,
            "within the kernel (`sendfile`, `splice`, `copy_file_range`)",
        ),
    ];
    let unseen = methods
        .into_iter()
        .map(|(counter, how)| (known.counters.get(counter), how));
    let by_call = unseen.filter(|(count, _)| *count > 0).map(|(count, how)| {
        let message = format!("{count} calls moved data {how}, which is not traced per file");
        TraceCaveat {
            hint: Some("the block requests include it".to_owned()),
            ..caveat(TraceCaveatKind::NotObserved, message)
        }
    });
    by_hook.chain(by_call).collect()
}

fn unknown(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = Vec::new();
    let endless = endless_faults(known.traced);
    if endless > 0 {
        let message = format!(
            "{endless} page faults found their page in memory; their latency is unknown and recorded as 0"
        );
        caveats.push(caveat(TraceCaveatKind::Other, message));
    }
    if known.unknown_offsets > 0 {
        let message = format!("the offset of {} calls is unknown", known.unknown_offsets);
        caveats.push(caveat(TraceCaveatKind::UnknownOffsets, message));
    }
    let files = known.traced.files.iter();
    let nameless = files.filter(|file| !file.name.starts_with('/')).count();
    if nameless > 0 {
        let message = format!("the path of {nameless} files is unknown");
        caveats.push(caveat(TraceCaveatKind::UnknownFiles, message));
    }
    // There exactly where the kernel accounts what threads ask devices for.
    if known.settings.block && !Path::new("/proc/self/io").exists() {
        let message = "the kernel does not account what threads read from devices; reads that are held back before they \
                       become requests count as answered by the page cache";
        caveats.push(TraceCaveat {
            hint: Some("use a kernel with CONFIG_TASK_IO_ACCOUNTING".to_owned()),
            ..caveat(TraceCaveatKind::NotObserved, message.to_owned())
        });
    }
    if known.settings.measure_cost && known.traced.cost.is_none() {
        let message = "the kernel does not report what its programs cost".to_owned();
        caveats.push(caveat(TraceCaveatKind::UnknownCost, message));
    }
    caveats
}

/// Page faults with a latency of 0, which stands for one that is not known.
fn endless_faults(traced: &Traced) -> u64 {
    let faults = traced
        .totals
        .iter()
        .filter(|total| total.operation == Operation::Fault);
    faults
        .map(|total| total.latency_ns.counts().first().copied().unwrap_or(0))
        .sum()
}
