//! Facts about the method of a trace.

use super::view::TraceView;
use crate::page::Fact;
use dyno_record::io_trace::document::{
    HookKind, ProbeUse, TraceCost, TraceDocument, TraceFilter, TraceMode,
};
use dyno_record::io_trace::event::Operation;
use dyno_record::quantity::{Quantity, Unit};

/// The facts of a trace.
pub(super) fn facts(view: &TraceView<'_>) -> Vec<Fact> {
    let document = view.document;
    let mut list = vec![
        Fact::new("Target", target(document)),
        Fact::new("Length", Quantity::seconds(document.duration_s)),
        Fact::new("Recorded", recorded(document)),
        Fact::new("Let through", filter(&document.filter)),
        Fact::new("Lost calls", lost(document.lost_calls, document.calls)),
    ];
    if document.block_traced {
        let lost = lost(document.lost_block_requests, document.block_requests);
        list.push(Fact::new("Lost requests of the block layer", lost));
    }
    let gap = Quantity::bytes(view.patterns.gap_bytes);
    list.push(Fact::new("Gap within a stream", format!("at most {gap}")));
    if let Some(window) = view.patterns.window {
        let at = |ns: i64| Quantity::seconds(ns as f64 * 1e-9);
        let (from, to) = (at(window.from_ns), at(window.to_ns));
        list.push(Fact::new("Window", format!("from {from} to {to}")));
    }
    list.extend(
        document
            .cost
            .as_ref()
            .map(|cost| Fact::new("Cost in the kernel", reported(cost, document))),
    );
    list.extend(document.probes.iter().map(hook));
    list
}

fn target(document: &TraceDocument) -> String {
    let target = &document.target;
    let processes: Vec<String> = target.processes.iter().map(u32::to_string).collect();
    let named = target.command.as_ref().map(|command| command.join(" "));
    match (named.or(target.name.clone()), processes.is_empty()) {
        (Some(name), false) => format!("{name} (process {})", processes.join(", ")),
        (Some(name), true) => name,
        (None, _) => format!("process {}", processes.join(", ")),
    }
}

fn recorded(document: &TraceDocument) -> String {
    let calls = Quantity::count(document.calls);
    let block = if document.block_traced {
        format!(" and {} requests of the block layer", Quantity::count(document.block_requests))
    } else {
        String::new()
    };
    match document.mode {
        TraceMode::Events => format!("{calls} individual calls{block}"),
        TraceMode::Aggregated => format!("{calls} calls as totals, counted in the kernel{block}"),
    }
}

fn filter(filter: &TraceFilter) -> String {
    let mut said = Vec::new();
    let names: Vec<&str> = filter.operations.iter().copied().map(Operation::as_str).collect();
    if !names.is_empty() {
        said.push(names.join(", "));
    }
    if !filter.files.is_empty() {
        said.push(format!("files {}", filter.files.join(", ")));
    }
    if filter.smallest_bytes > 0 {
        let least = Quantity::bytes(filter.smallest_bytes);
        said.push(format!("calls of {least} and more"));
    }
    if said.is_empty() { "everything".to_owned() } else { said.join("; ") }
}

fn lost(lost: u64, recorded: u64) -> String {
    if lost == 0 {
        return "none".to_owned();
    }
    let ratio = lost as f64 / (lost + recorded) as f64;
    format!("{} ({})", Quantity::count(lost), Quantity::ratio(ratio))
}

fn reported(cost: &TraceCost, document: &TraceDocument) -> String {
    let ns: u64 = cost.programs.iter().map(|program| program.run_time_ns).sum();
    let runs: u64 = cost.programs.iter().map(|program| program.runs).sum();
    let time = Quantity::microseconds(ns as f64 / 1e3);
    let each = Quantity::microseconds(ns as f64 / 1e3 / document.calls.max(1) as f64);
    let share = Quantity::new(ns as f64 * 1e-9 / document.duration_s.max(1e-9), Unit::Ratio);
    format!(
        "{time} in {} runs of the probes: {each} per recorded call, {share} of one CPU",
        Quantity::count(runs)
    )
}

fn hook(probe: &ProbeUse) -> Fact {
    let kind = match probe.kind {
        HookKind::Fentry => "fentry",
        HookKind::Kprobe => "kprobe",
        HookKind::Tracepoint => "tracepoint",
    };
    let why = match &probe.why_not_better {
        Some(why) => format!("; {why}"),
        None => String::new(),
    };
    Fact::new(format!("Hook of {}", probe.what), format!("{kind} {}{why}", probe.hook))
}
