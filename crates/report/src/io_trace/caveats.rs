//! Caveats of a trace, in the form that reports show.

use crate::caveat::{self, NumberedCaveat, Severity};
use crate::page::Status;
use crate::texts::{hint, text};
use dyno_analyze::access_pattern::{AccessPatterns, BlockSummary};
use dyno_record::io_trace::document::{TraceCaveatKind, TraceDocument};
use dyno_record::quantity::Quantity;

/// All caveats, the most serious first, named if there are several traces.
pub(super) fn numbered(
    documents: &[(&str, &TraceDocument)],
    patterns: &[&AccessPatterns],
) -> Vec<NumberedCaveat> {
    let mut all = Vec::new();
    for ((name, document), patterns) in documents.iter().zip(patterns) {
        let mut add = |label, severity, message: &str, hint| {
            let message = match *name {
                "" => message.to_owned(),
                name => format!("{name}: {message}"),
            };
            all.push(NumberedCaveat::of(label, severity, message, hint));
        };
        for caveat in &document.caveats {
            let (label, severity) =
                caveat::of_check(&caveat.statement).unwrap_or_else(|| describe(caveat.kind));
            let said = &caveat.statement;
            add(label, severity, &text(said), hint(said));
        }
        for (label, message) in patterns.block.iter().flat_map(of_block) {
            add(label, Severity::Doubt, &message, None);
        }
        if patterns.unfollowed_calls > 0 {
            let message = format!(
                "{} calls are on files that are not tracked individually; only totals are known for them",
                Quantity::count(patterns.unfollowed_calls)
            );
            add("many files", Severity::Condition, &message, None);
        }
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

/// The status of the traces, with the caveats that apply to everything.
pub(super) fn status(documents: &[&TraceDocument], caveats: &[NumberedCaveat]) -> Status {
    let is_complete = documents.iter().all(|document| document.complete);
    let serious = caveats.iter().filter(|c| c.severity == Severity::Serious);
    Status {
        label: if is_complete { "complete" } else { "partial" },
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
