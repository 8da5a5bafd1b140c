//! Caveats of a trace, determined at its end.

use super::layout::Counter;
use super::maps::Counters;
use crate::hooks::Missing;
use crate::settings::Settings;
use crate::traced::Traced;
use dyno_record::io_trace::document::{TraceCaveat, TraceCaveatKind};
use dyno_record::io_trace::event::Operation;
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::path::Path;

/// Information at the end of a trace.
pub(super) struct Known<'a> {
    pub(super) settings: &'a Settings,
    pub(super) missing: &'a [Missing],
    pub(super) traced: &'a Traced,
    pub(super) counters: &'a Counters,
    /// Number of skipped program runs.
    pub(super) misses: u64,
    /// Requests whose end the kernel did not report.
    pub(super) unseen_ends: u64,
    pub(super) unknown_offsets: u64,
}

/// Determines the caveats.
pub(super) fn from_known(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = lost(known);
    caveats.extend(not_observed(known));
    caveats.extend(unknown(known));
    if !known.settings.block {
        caveats.push(caveat(
            TraceCaveatKind::NoBlockRequests,
            statement!("block-requests-not-traced"),
        ));
    }
    caveats
}

fn caveat(kind: TraceCaveatKind, statement: Statement) -> TraceCaveat {
    TraceCaveat { kind, statement }
}

fn lost(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = Vec::new();
    let traced = known.traced;
    let names = known.counters.get(Counter::LostNames);
    let lost = traced.lost_calls + traced.lost_block_requests + names;
    if lost > 0 {
        let statement = statement!("events-lost", events = lost);
        caveats.push(caveat(TraceCaveatKind::LostEvents, statement));
    }
    if known.misses > 0 {
        let statement = statement!("probes-skipped", times = known.misses);
        caveats.push(caveat(TraceCaveatKind::LostEvents, statement));
    }
    if known.unseen_ends > 0 {
        let statement = statement!("ends-not-reported", requests = known.unseen_ends);
        caveats.push(caveat(TraceCaveatKind::LostEvents, statement));
    }
    caveats
}

fn not_observed(known: &Known) -> Vec<TraceCaveat> {
    let by_hook = known.missing.iter().map(|missing| {
        let what = missing.target.as_str();
        let reason = missing.reason.to_string();
        let statement = statement!("not-observed", target = what, reason = reason);
        caveat(TraceCaveatKind::NotObserved, statement)
    });
    let methods = [(Counter::UnseenAio, "aio"), (Counter::UnseenCopies, "copies")];
    let unseen = methods.into_iter().map(|(counter, how)| (known.counters.get(counter), how));
    let by_call = unseen.filter(|(count, _)| *count > 0).map(|(count, how)| {
        let statement = statement!("not-traced-per-file", calls = count, how = how);
        caveat(TraceCaveatKind::NotObserved, statement)
    });
    by_hook.chain(by_call).collect()
}

fn unknown(known: &Known) -> Vec<TraceCaveat> {
    let mut caveats = Vec::new();
    let endless = endless_faults(known.traced);
    if endless > 0 {
        let statement = statement!("faults-without-latency", faults = endless);
        caveats.push(caveat(TraceCaveatKind::Other, statement));
    }
    if known.unknown_offsets > 0 {
        let statement = statement!("offsets-unknown", calls = known.unknown_offsets);
        caveats.push(caveat(TraceCaveatKind::UnknownOffsets, statement));
    }
    let files = known.traced.files.iter();
    let nameless = files.filter(|file| !file.name.starts_with('/')).count();
    if nameless > 0 {
        let statement = statement!("paths-unknown", files = nameless);
        caveats.push(caveat(TraceCaveatKind::UnknownFiles, statement));
    }
    // This file exists exactly if the kernel accounts the device requests of threads.
    if known.settings.block && !Path::new("/proc/self/io").exists() {
        let statement = statement!("reads-not-accounted");
        caveats.push(caveat(TraceCaveatKind::NotObserved, statement));
    }
    if known.settings.measure_cost && known.traced.cost.is_none() {
        let statement = statement!("cost-not-reported");
        caveats.push(caveat(TraceCaveatKind::UnknownCost, statement));
    }
    caveats
}

/// Number of page faults with a latency of 0, which means unknown.
fn endless_faults(traced: &Traced) -> u64 {
    let faults = traced.totals.iter().filter(|total| total.operation == Operation::Fault);
    faults.map(|total| total.latency_ns.counts().first().copied().unwrap_or(0)).sum()
}
