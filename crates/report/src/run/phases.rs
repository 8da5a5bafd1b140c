//! The phases of a run: results of each operation, and resource use of the client.

use super::result::{by_count, failure_label, failures, shed};
use crate::caveat::{CaveatBook, Topic};
use crate::facts;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Fact, Section};
use dyno_record::model::{
    Arrivals, KeyShares, LatencySummary, OperationRecord, PhaseKind, PhaseRecord, RunDocument,
};
use dyno_record::quantity::Quantity;

/// Number of columns before the times.
const OF_OPERATION: usize = 5;

/// One section per phase, the last phase first: it is the result.
pub(super) fn sections(document: &RunDocument, book: &CaveatBook) -> Vec<Section> {
    document
        .phases
        .iter()
        .rev()
        .enumerate()
        .map(|(place, phase)| Section { is_folded: place > 0, ..section(document, phase, book) })
        .collect()
}

fn section(document: &RunDocument, phase: &PhaseRecord, book: &CaveatBook) -> Section {
    let purpose = match phase.name {
        PhaseKind::Load => "inserts the data set",
        PhaseKind::Warmup => "same load before measuring, not part of the result",
        PhaseKind::Measure => "the result",
    };
    let name = phase.name.as_str();
    let operations = by_count(document, phase);
    let rows = operations.iter().flat_map(|(name, record)| rows(name, record));
    let label = format!("Operations of phase {name}");
    let table = Table::new(label, columns(phase, book), rows.collect());
    Section {
        title: format!("Phase {name}: {purpose}").into(),
        tables: if operations.is_empty() { Vec::new() } else { vec![table] },
        facts: phase_facts(phase, document.server.documents, book),
        notes: phase_notes(document, phase),
        ..Section::default()
    }
}

/// A column of times: title, rank, topic of its caveats and value.
type Level = (&'static str, u8, Option<Topic>, fn(&LatencySummary) -> f64);

const LEVELS: [Level; 9] = [
    ("mean", 30, None, |it| it.mean),
    ("min", 10, None, |it| it.min),
    ("p50", 80, Some(Topic::Latency), |it| it.p50),
    ("p90", 15, None, |it| it.p90),
    ("p95", 20, None, |it| it.p95),
    ("p99", 90, Some(Topic::Latency), |it| it.p99),
    ("p99.9", 70, Some(Topic::Tail), |it| it.p99_9),
    ("p99.99", 25, None, |it| it.p99_99),
    ("max", 50, None, |it| it.max),
];

/// Ranks decide which columns a narrow terminal leaves out first.
fn columns(phase: &PhaseRecord, book: &CaveatBook) -> Vec<Column> {
    let marks = |topic| book.marks(topic, Some(phase.name));
    let first = [
        Column::text("operation"),
        Column::number("count", 40),
        Column::number("rate", 45),
        Column::number("errors", 60).marked(&marks(Topic::Errors)),
        Column::number("documents", 12),
        Column::text("time"),
    ];
    let levels = LEVELS.into_iter().map(|(title, rank, topic, _)| {
        Column::number(title, rank).marked(&topic.map(marks).unwrap_or_default())
    });
    first.into_iter().chain(levels).collect()
}

/// A row for each of the three times; the counts are in the first row, with the failure ratio below their number.
fn rows(name: &str, record: &OperationRecord) -> Vec<Vec<Cell>> {
    let finished = record.count + record.errors;
    let one_each = record.documents == record.count || record.documents == 0;
    let documents =
        if one_each { String::new() } else { Quantity::count(record.documents).to_string() };
    let tone = if record.errors > 0 { Tone::Alarm } else { Tone::Plain };
    let mut first = vec![
        Cell::new(facts::operation_label(name), Tone::Strong),
        Quantity::count(record.count).into(),
        Quantity::per_second(record.rate_per_s).into(),
        Cell::new(Quantity::count(record.errors), tone),
        documents.into(),
    ];
    let mut second = vec![Cell::default(); OF_OPERATION];
    if record.errors > 0 {
        let share = Quantity::ratio(record.errors as f64 / finished.max(1) as f64);
        second[3] = Cell::new(share.to_string(), Tone::Soft);
    }
    if record.count == 0 {
        first.push(Cell::new("no operation succeeded", Tone::Soft));
        let mut rows = vec![first, second];
        rows.iter_mut()
            .for_each(|row| row.resize(OF_OPERATION + 1 + LEVELS.len(), Cell::default()));
        return rows;
    }
    first.extend(time("response", &record.response_time_us));
    second.extend(time("service", &record.service_time_us));
    let mut third = vec![Cell::default(); OF_OPERATION];
    third.extend(time("start delay", &record.start_delay_us));
    vec![first, second, third]
}

fn time(clock: &str, summary: &LatencySummary) -> Vec<Cell> {
    let values = LEVELS.map(|(.., value)| Quantity::microseconds(value(summary)).into());
    std::iter::once(Cell::new(clock, Tone::Soft)).chain(values).collect()
}

fn phase_facts(phase: &PhaseRecord, documents: Option<u64>, book: &CaveatBook) -> Vec<Fact> {
    let fact = |label: &str, value: String, topic: Option<Topic>| {
        let marks = topic.map(|topic| book.marks(topic, Some(phase.name)));
        Fact::new(label, value).marked(&marks.unwrap_or_default())
    };
    let offered = phase.offered_rate_per_s.map(Quantity::per_second);
    let offered = offered.map_or(String::new(), |rate| format!(" of {rate} offered"));
    let rate = format!("{}{offered}", Quantity::per_second(phase.achieved_rate_per_s));
    let length = Quantity::seconds(phase.duration_s).to_string();
    let mut facts = vec![fact("Length", length, None), fact("Rate", rate, Some(Topic::Rate))];
    let failed: Vec<String> = failures(phase)
        .into_iter()
        .map(|(kind, count)| {
            let label = failure_label(phase, kind);
            format!("{label} {}", Quantity::count(count))
        })
        .collect();
    if !failed.is_empty() {
        facts.push(fact("Errors", failed.join(", "), Some(Topic::Errors)));
    }
    for (kind, _) in failures(phase) {
        if let Some(example) = phase.error_examples.get(kind) {
            let label = format!("First `{kind}`");
            facts.push(fact(&label, example.to_string(), Some(Topic::Errors)));
        }
    }
    if shed(phase) > 0 {
        let shed = Quantity::count(shed(phase)).to_string();
        facts.push(fact("Shed by the server", shed, Some(Topic::Errors)));
    }
    if phase.retries > 0 {
        let retries = Quantity::count(phase.retries).to_string();
        facts.push(fact("Commands sent again", retries, Some(Topic::Errors)));
    }
    for (label, count) in [
        ("Transactions performed again", phase.own.transaction_restarts),
        ("Commits sent again", phase.own.commit_retries),
        ("Transactions aborted on purpose", phase.own.transaction_aborts),
        ("Operations with values from replies", phase.own.reply_operations),
    ] {
        if count > 0 {
            facts.push(fact(label, Quantity::count(count).to_string(), Some(Topic::Errors)));
        }
    }
    if let Some(arrivals) = &phase.arrivals {
        let text = arrivals_text(arrivals);
        facts.push(fact("Arrivals", text, Some(Topic::Arrivals)));
    }
    if let Some(mean_us) = phase.mean_think_time_us {
        let text = format!("{} on average", Quantity::microseconds(mean_us));
        facts.push(fact("Think time", text, None));
    }
    facts.push(fact("Client CPU", cpu_text(phase), Some(Topic::Client)));
    let memory = Quantity::bytes(phase.client.max_rss_bytes);
    facts.push(fact("Client memory", format!("{memory} at most"), None));
    facts.push(fact("In flight", in_flight_text(phase), Some(Topic::InFlight)));
    if let Some(keys) = &phase.keys {
        facts.push(fact("Keys drawn", keys_text(keys, documents), None));
    }
    let reconnects = Quantity::count(phase.reconnects).to_string();
    facts.push(fact("Connections replaced", reconnects, None));
    facts
}

fn arrivals_text(arrivals: &Arrivals) -> String {
    let share = |part: u64, all: u64, of: &str| match all {
        0 => String::new(),
        all => format!(" ({}{of})", Quantity::ratio(part as f64 / all as f64)),
    };
    format!(
        "{} due, {} started, {}{} dropped, {}{} more than 1 ms late",
        Quantity::count(arrivals.due),
        Quantity::count(arrivals.started),
        Quantity::count(arrivals.dropped),
        share(arrivals.dropped, arrivals.due, " of those due"),
        Quantity::count(arrivals.late),
        share(arrivals.late, arrivals.started, " of those started"),
    )
}

fn cpu_text(phase: &PhaseRecord) -> String {
    let client = &phase.client;
    let total_s = client.cpu_user_s + client.cpu_system_s;
    let mut text = format!(
        "{} per operation, {} user + {} system",
        Quantity::microseconds(client.cpu_us_per_operation),
        Quantity::seconds(client.cpu_user_s),
        Quantity::seconds(client.cpu_system_s),
    );
    if phase.duration_s > 0.0 {
        let busy = Quantity::ratio(total_s / phase.duration_s);
        text += &format!(", {busy} of one core");
    }
    text
}

fn in_flight_text(phase: &PhaseRecord) -> String {
    let mean = phase.mean_in_flight;
    match phase.little_ratio {
        Some(ratio) => format!("{mean:.2} on average, Little ratio {}", Quantity::plain(ratio)),
        None => format!("{mean:.2} on average"),
    }
}

/// With fewer draws per document, the share of the hottest keys reflects chance more than the distribution: with one draw
/// each, even uniform keys give a quarter of the draws to a tenth of them.
const FEW_DRAWS_PER_DOCUMENT: f64 = 10.0;

fn keys_text(keys: &KeyShares, documents: Option<u64>) -> String {
    let few = documents
        .is_some_and(|documents| (keys.draws as f64) < FEW_DRAWS_PER_DOCUMENT * documents as f64);
    let caveat =
        if few { " (few draws per document: chance makes these shares larger)" } else { "" };
    format!(
        "{}; the hottest 1 % of the documents got {}, the hottest 10 % got {}{caveat}",
        Quantity::count(keys.draws),
        Quantity::ratio(keys.hottest_1_percent_ratio),
        Quantity::ratio(keys.hottest_10_percent_ratio),
    )
}

fn phase_notes(document: &RunDocument, phase: &PhaseRecord) -> Vec<String> {
    let note = |(whole, parts): (String, String)| {
        format!("A {whole} is also counted as {parts}; it is one operation of the rate.")
    };
    let mut notes: Vec<String> =
        facts::wholes(document, phase.operations.keys()).map(note).collect();
    let clamped: u64 = phase.operations.values().map(|o| o.clamped).sum();
    if clamped > 0 {
        let clamped = Quantity::counted(clamped, "value");
        notes.push(format!(
            "Recorded as 60 s: {clamped} above 60 s. Maximum and high percentiles are lower bounds."
        ));
    }
    notes
}
