//! What was watched, and how well: a table of the sources, and what is missing of them.

use crate::experiment::model::Section;
use crate::experiment::table::{Cell, Column, Table, Tone};
use dyno_record::model::{OutageRecord, SourceHealth, SourceKind, SourceRecord};
use dyno_record::quantity::{Quantity, Unit};
use serde::Serialize;

/// Outages of a source that are told; more say no more.
const MOST_OUTAGES: usize = 3;

/// What is missing of a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingParts {
    /// The source.
    pub source: String,
    /// How many parts, in words.
    pub count: String,
    /// Whether they are to be read without asking for them, because the source is not well.
    pub is_fault: bool,
    /// Each part with the reason.
    pub parts: Vec<String>,
}

/// The table; nothing if nothing was watched.
pub(super) fn section(sources: &[SourceRecord]) -> Option<Section> {
    if sources.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("source"),
        Column::text("about"),
        Column::text("health"),
        Column::number("every", 60),
        Column::number("readings", 150),
        Column::number("missed", 180),
        Column::number("cost", 120),
    ];
    Some(Section {
        title: "What was watched",
        lead: "The cost is the CPU time that watching took, as a share of one CPU.".to_owned(),
        tables: vec![Table::new(
            "What was watched",
            columns,
            sources.iter().map(|source| row(source, sources)).collect(),
        )],
        notes: sources.iter().flat_map(notes).collect(),
        ..Section::default()
    })
}

/// Of each source what is missing, if anything is.
pub(super) fn missing(sources: &[SourceRecord]) -> Vec<MissingParts> {
    let incomplete = sources.iter().filter(|source| !source.missing.is_empty());
    incomplete
        .map(|source| MissingParts {
            source: source.name.clone(),
            count: match source.missing.len() {
                1 => "1 part is missing".to_owned(),
                count => format!("{} parts are missing", Quantity::count(count as u64)),
            },
            is_fault: matches!(source.health, SourceHealth::Degraded | SourceHealth::Failed),
            parts: source.missing.clone(),
        })
        .collect()
}

fn row(source: &SourceRecord, all: &[SourceRecord]) -> Vec<Cell> {
    let (health, tone) = health(source.health);
    let missed = match source.missed {
        0 => Tone::Plain,
        _ => Tone::Doubt,
    };
    vec![
        Cell::new(&source.name, Tone::Strong),
        about(source, all).into(),
        Cell::new(health, tone),
        Quantity::seconds(source.interval_s).to_string().into(),
        Quantity::count(source.readings).to_string().into(),
        Cell::new(Quantity::count(source.missed).to_string(), missed),
        Quantity::ratio(source.cpu_ratio).to_string().into(),
    ]
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

/// Why a source is not healthy, and when it could not be read.
fn notes(source: &SourceRecord) -> Vec<String> {
    let (word, _) = health(source.health);
    let reason = source.reason.iter();
    let mut notes: Vec<String> = reason
        .map(|reason| format!("Source {} is {word}: {reason}.", source.name))
        .collect();
    let told = source.outages.iter().take(MOST_OUTAGES);
    notes.extend(told.map(|outage| outage_text(source, outage)));
    let more = source.outages.len().saturating_sub(MOST_OUTAGES);
    if more > 0 {
        let times = Quantity::new(more as f64, Unit::Count);
        notes.push(format!(
            "Source {} could not be read {times} times more.",
            source.name
        ));
    }
    notes
}

fn outage_text(source: &SourceRecord, outage: &OutageRecord) -> String {
    let start = Quantity::seconds(outage.start_s);
    let end = match outage.end_s {
        Some(end_s) => format!("to {} of the run", Quantity::seconds(end_s)),
        None => "of the run to its end".to_owned(),
    };
    format!(
        "Source {} could not be read from {start} {end}: {}.",
        source.name, outage.reason
    )
}
