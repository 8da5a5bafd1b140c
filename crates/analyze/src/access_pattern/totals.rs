//! The pattern of a file with only recorded totals.

use super::pattern::{FilePattern, LatencyFigures, SeekDistances};
use super::state::amplification;
use dyno_record::io_trace::document::TraceDocument;
use dyno_record::io_trace::totals::FileTotals;

/// Number of calls without a previous position: the first one.
const UNJUDGED: u64 = 1;

pub(super) fn pattern(totals: &FileTotals, document: &TraceDocument) -> FilePattern {
    let entry = document.files.get(totals.file as usize);
    let file_bytes = entry.and_then(|entry| entry.bytes);
    let seeks = totals.seek_forward_bytes.count() + totals.seek_backward_bytes.count();
    let placed = totals.sequential_calls + seeks;
    let adjacent = totals.sequential_calls as f64 / placed.max(1) as f64;
    FilePattern {
        file: totals.file,
        operation: totals.operation,
        name: entry
            .map_or_else(|| format!("file {}", totals.file), |entry| entry.short_name().to_owned()),
        role: entry.and_then(|entry| entry.role.clone()),
        file_bytes,
        calls: totals.calls,
        bytes: totals.bytes,
        errors: totals.errors,
        placed_calls: if placed > 0 { placed + UNJUDGED } else { 0 },
        score: None,
        sequential_ratio: None,
        adjacent_ratio: (placed > 0).then_some(adjacent),
        streams: None,
        seeks: (placed > 0).then(|| {
            SeekDistances::new(
                totals.sequential_calls,
                totals.seek_forward_bytes.clone(),
                totals.seek_backward_bytes.clone(),
            )
        }),
        reread_ratio: None,
        working_set_bytes: None,
        amplification: amplification(totals.bytes, file_bytes),
        size_bytes: totals.size_bytes.clone(),
        latency_ns: totals.latency_ns.clone(),
        latency: LatencyFigures::new(&totals.latency_ns, totals.latency_sum_ns, None),
        device: None,
        picture: None,
    }
}
