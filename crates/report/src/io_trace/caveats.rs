//! Reasons to doubt a trace, in the form that reports show.

use crate::caveat::{NumberedCaveat, Severity};
use crate::model::Status;
use crate::quantity::Quantity;
use dyno_analyze::access_pattern::AccessPatterns;
use dyno_record::io_trace::document::{TraceCaveatKind, TraceDocument};

/// All caveats, the most serious first. Of several traces each is named.
pub(super) fn numbered(
    documents: &[(&str, &TraceDocument)],
    patterns: &[&AccessPatterns],
) -> Vec<NumberedCaveat> {
    let mut all = Vec::new();
    for (place, (name, document)) in documents.iter().enumerate() {
        let said = |message: &str| match name.is_empty() {
            true => message.to_owned(),
            false => format!("{name}: {message}"),
        };
        for caveat in &document.caveats {
            let (label, severity) = describe(caveat.kind);
            let hint = caveat.hint.clone();
            all.push(NumberedCaveat::of(
                label,
                severity,
                said(&caveat.message),
                hint,
            ));
        }
        let unfollowed = patterns
            .get(place)
            .map_or(0, |found| found.unfollowed_calls);
        if unfollowed > 0 {
            let message = format!(
                "{} calls are on files beyond those that are followed one by one; of them the totals are known",
                Quantity::count(unfollowed)
            );
            let label = "many files";
            all.push(NumberedCaveat::of(
                label,
                Severity::Condition,
                said(&message),
                None,
            ));
        }
    }
    // The sort is stable: inside a severity the order of the traces stays.
    all.sort_by_key(|caveat| caveat.severity);
    for (place, caveat) in all.iter_mut().enumerate() {
        caveat.number = place + 1;
    }
    all
}

/// How the traces ended, with the caveats that touch everything.
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
        TraceCaveatKind::NotObserved => ("not observed", Doubt),
        TraceCaveatKind::UnknownOffsets => ("unknown places", Doubt),
        TraceCaveatKind::SharedDevice => ("shared device", Doubt),
        TraceCaveatKind::Other => ("doubt", Doubt),
        TraceCaveatKind::NoBlockRequests => ("no block requests", Condition),
        TraceCaveatKind::UnknownFiles => ("unknown files", Condition),
        TraceCaveatKind::UnknownCost => ("unknown cost", Condition),
        TraceCaveatKind::SlowedDevice => ("slowed device", Condition),
    }
}
