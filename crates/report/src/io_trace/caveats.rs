//! Caveats of a trace, in the form that reports show.

use crate::caveat::{self, NumberedCaveat, Severity};
use crate::page::Status;
use dyno_analyze::access_pattern::{AccessPatterns, BlockSummary};
use dyno_record::io_trace::document::{TraceCaveatKind, TraceDocument};
use dyno_record::quantity::Quantity;

/// All caveats, the most serious first.
pub(super) fn numbered(document: &TraceDocument, patterns: &AccessPatterns) -> Vec<NumberedCaveat> {
    let mut all = Vec::new();
    let said = document.caveats.iter();
    all.extend(said.map(|one| NumberedCaveat::said(&one.statement, describe(one.kind))));
    for (label, message) in patterns.block.iter().flat_map(of_block) {
        all.push(NumberedCaveat::of(label, Severity::Doubt, message, None));
    }
    if patterns.unfollowed_calls > 0 {
        let message = format!(
            "{} calls are on files that are not tracked individually; only totals are known for them",
            Quantity::count(patterns.unfollowed_calls)
        );
        all.push(NumberedCaveat::of("many files", Severity::Condition, message, None));
    }
    caveat::numbered(all)
}

/// Smallest share of the bytes requested from devices that causes a caveat.
const SMALL_RATIO: f64 = 0.05;

/// Caveats about the attribution of device requests.
fn of_block(block: &BlockSummary) -> Vec<(&'static str, String)> {
    let ratio = |bytes: u64| bytes as f64 / block.matched_bytes.max(1) as f64;
    let mut said = Vec::new();
    if ratio(block.unseen_bytes) > SMALL_RATIO {
        let message = format!(
            "no request is known for {} that calls requested from devices: more calls waited for a device than reported",
            Quantity::bytes(block.unseen_bytes)
        );
        said.push(("unseen requests", message));
    }
    if ratio(block.handed_on_bytes) > SMALL_RATIO {
        let message = format!(
            "{} were requested by kernel threads, as under a control group limit; they are attributed to calls by time and amount",
            Quantity::bytes(block.handed_on_bytes)
        );
        said.push(("requests handed on", message));
    }
    said
}

/// The status of the trace, with the caveats that apply to everything.
pub(super) fn status(document: &TraceDocument, caveats: &[NumberedCaveat]) -> Status {
    let serious = caveats.iter().filter(|c| c.severity == Severity::Serious);
    Status {
        label: if document.complete { "complete" } else { "partial" },
        reason: None,
        marks: serious.map(|caveat| caveat.number).collect(),
    }
}

fn describe(kind: TraceCaveatKind) -> (&'static str, Severity) {
    use Severity::{Condition, Doubt, Serious};
    match kind {
        TraceCaveatKind::LostEvents => ("lost events", Serious),
        TraceCaveatKind::Partial => ("partial trace", Serious),
        TraceCaveatKind::RecordChanged => ("record changed", Serious),
        TraceCaveatKind::NotObserved => ("not observed", Doubt),
        TraceCaveatKind::UnknownOffsets => ("unknown places", Doubt),
        TraceCaveatKind::Machine => ("machine", Condition),
        TraceCaveatKind::Other => ("doubt", Doubt),
        TraceCaveatKind::NoBlockRequests => ("no block requests", Condition),
        TraceCaveatKind::UnknownFiles => ("unknown files", Condition),
        TraceCaveatKind::UnknownCost => ("unknown cost", Condition),
    }
}
