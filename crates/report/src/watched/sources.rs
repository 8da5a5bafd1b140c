//! A table of the sources with their health, and missing values.

use crate::page::table::{Cell, Table, Tone};
use crate::page::{FoldedList, Section};
use dyno_record::model::{OutageRecord, SourceHealth, SourceKind, SourceRecord};
use dyno_record::quantity::Quantity;

/// Largest number of missing parts named in a sentence.
const MOST_MISSING: usize = 3;

/// Largest number of outages listed per source.
const MOST_OUTAGES: usize = 3;

/// The section; `None` if nothing was watched.
pub(super) fn section(sources: &[SourceRecord]) -> Option<Section> {
    if sources.is_empty() {
        return None;
    }
    let table = Table::of(sources)
        .text("source", |source| Cell::new(&source.name, Tone::Strong))
        .text("about", |source| about(source, sources))
        .text("health", |source| Cell::new(health(source.health).0, health(source.health).1))
        .number("every", 60, |source| Quantity::seconds(source.interval_s))
        .number("readings", 150, |source| Quantity::count(source.readings))
        .number("missed", 180, |source| {
            let tone = if source.missed > 0 { Tone::Doubt } else { Tone::Plain };
            Cell::new(Quantity::count(source.missed), tone)
        })
        .number("cost", 120, |source| Quantity::ratio(source.cpu_ratio))
        .table("What was watched");
    Some(Section {
        title: "What was watched".into(),
        lead: "The cost is the CPU time used for watching, as a share of one CPU.".to_owned(),
        tables: vec![table],
        notes: sources.iter().flat_map(notes).collect(),
        lists: missing(sources),
        ..Section::default()
    })
}

/// The missing parts of each source, shown expanded for unhealthy sources.
fn missing(sources: &[SourceRecord]) -> Vec<FoldedList> {
    let incomplete = sources.iter().filter(|source| !source.missing.is_empty());
    incomplete
        .map(|source| {
            let is_open = matches!(source.health, SourceHealth::Degraded | SourceHealth::Failed);
            let title = format!("Missing from source {}", source.name);
            let named = source.missing.iter().take(MOST_MISSING).cloned();
            let more = source.missing.len().saturating_sub(MOST_MISSING);
            let more = (more > 0).then(|| format!("and {more} more"));
            let named: Vec<String> = named.chain(more).collect();
            FoldedList {
                title: if is_open { title } else { format!("{title}: {}", named.join("; ")) },
                entries: source.missing.clone(),
                is_open,
            }
        })
        .collect()
}

fn about(source: &SourceRecord, all: &[SourceRecord]) -> String {
    // The clients of a fleet are on the hosts of its agents.
    let is_fleet = all.iter().any(|other| other.kind == SourceKind::Agent);
    let kind = match (source.kind, source.of_server) {
        (SourceKind::Host, _) if is_fleet => "machine of the controller",
        (SourceKind::Host, true) => "machine of client and server",
        (SourceKind::Host, false) => "machine of the client",
        (SourceKind::Server, _) => "server",
        (SourceKind::Agent, true) => "machine of a server",
        (SourceKind::Agent, false) => "machine of clients",
        (SourceKind::Exporter, true) => "exporter at the server",
        (SourceKind::Exporter, false) => "exporter",
    };
    format!("{kind} {}", source.subject)
}

fn health(health: SourceHealth) -> (&'static str, Tone) {
    match health {
        SourceHealth::Healthy => ("healthy", Tone::Plain),
        SourceHealth::Unsupported => ("not there", Tone::Soft),
        SourceHealth::Degraded => ("degraded", Tone::Doubt),
        SourceHealth::Failed => ("failed", Tone::Alarm),
    }
}

/// Why a source is unhealthy, and when it could not be read.
fn notes(source: &SourceRecord) -> Vec<String> {
    let (word, _) = health(source.health);
    let reason = source.reason.iter();
    let mut notes: Vec<String> =
        reason.map(|reason| format!("Source {} is {word}: {reason}.", source.name)).collect();
    notes
        .extend(source.outages.iter().take(MOST_OUTAGES).map(|outage| outage_text(source, outage)));
    let more = source.outages.len().saturating_sub(MOST_OUTAGES);
    if more > 0 {
        let times = Quantity::counted(more as u64, "more time");
        notes.push(format!("Source {} could not be read {times}.", source.name));
    }
    notes
}

fn outage_text(source: &SourceRecord, outage: &OutageRecord) -> String {
    let start = Quantity::seconds(outage.start_s);
    let end = match outage.end_s {
        Some(end_s) => format!("to {} of the run", Quantity::seconds(end_s)),
        None => "of the run to its end".to_owned(),
    };
    format!("Source {} could not be read from {start} {end}: {}.", source.name, outage.reason)
}
