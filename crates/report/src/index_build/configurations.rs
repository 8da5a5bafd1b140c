//! Index builds on several topologies, or on several servers: nothing about a single server is stated for all of them.

use super::caveats::Book;
use super::sides::{Side, files_of_collection, has_pattern};
use super::words::{Change, took};
use crate::io_trace;
use crate::page::density::DensityChart;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Figure, Section};
use crate::texts::text;
use dyno_analyze::access_pattern::{FilePattern, order_statement};
use dyno_record::index_build::{
    BuildRecord, ConfigurationRecord, IndexBuildDocument, IoFigures, MemberBuild, MemberFacts,
};
use dyno_record::quantity::{Quantity, Unit};

/// A build on one of the configurations.
pub(super) struct Row<'a> {
    pub(super) configuration: &'a ConfigurationRecord,
    pub(super) build: &'a BuildRecord,
    pub(super) side: &'a Side<'a>,
    pub(super) servers: Vec<Server<'a>>,
    /// Whether it followed the remedy.
    pub(super) is_after: bool,
}

/// One server in a build.
pub(super) struct Server<'a> {
    pub(super) facts: &'a MemberFacts,
    /// Absent for a single server: its figures are with the build.
    build: Option<&'a MemberBuild>,
    /// How the file with its documents was read.
    pub(super) file: Option<&'a FilePattern>,
}

impl Server<'_> {
    /// Absent with too few reads for a pattern.
    pub(super) fn score(&self) -> Option<f64> {
        self.file.filter(|file| has_pattern(file))?.score
    }
}

impl Row<'_> {
    /// The configuration, with the time relative to the remedy if there are two builds: `split=2 after rewrite`.
    pub(super) fn name(&self) -> String {
        let topology = &self.configuration.topology;
        match (&self.configuration.remedy, self.is_after) {
            (None, _) => topology.clone(),
            (Some(remedy), true) => format!("{topology} after {}", remedy.kind),
            (Some(remedy), false) => format!("{topology} before {}", remedy.kind),
        }
    }

    /// Whether each server had a command of its own. Members of a set or a cluster share one command, and only its total
    /// duration is known.
    pub(super) fn has_own_commands(&self) -> bool {
        self.servers.len() == 1 || is_dealt(&self.configuration.topology)
    }

    /// `2 servers`.
    pub(super) fn number_of_servers(&self) -> String {
        match self.servers.len() {
            1 => "1 server".to_owned(),
            n => format!("{n} servers"),
        }
    }

    /// Lowest and highest score of the servers; `None` unless each of them has one.
    pub(super) fn scores(&self) -> Option<(f64, f64)> {
        let scores: Option<Vec<f64>> = self.servers.iter().map(Server::score).collect();
        let scores = scores.filter(|scores| !scores.is_empty())?;
        let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low, high))
    }
}

/// Whether the documents are split over independent servers.
fn is_dealt(topology: &str) -> bool {
    topology.starts_with("split=")
}

/// The builds that ended, in order.
pub(super) fn rows<'a>(document: &'a IndexBuildDocument, sides: &'a [Side<'a>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for side in sides {
        let Some(build) = side.build else { continue };
        let found = document
            .configurations
            .iter()
            .find(|one| build.configuration.as_ref() == Some(&one.topology));
        let Some(configuration) = found else { continue };
        let is_after = rows.iter().any(|row| row.configuration.topology == configuration.topology);
        rows.push(Row {
            servers: servers(configuration, build, side),
            configuration,
            build,
            side,
            is_after,
        });
    }
    rows
}

fn servers<'a>(
    configuration: &'a ConfigurationRecord,
    build: &'a BuildRecord,
    side: &Side<'a>,
) -> Vec<Server<'a>> {
    let is_alone = configuration.members.len() == 1;
    let servers = configuration.members.iter().map(|facts| Server {
        facts,
        build: build.members.iter().find(|one| one.name == facts.name),
        file: match is_alone {
            true => side.file,
            false => file_of(facts, side),
        },
    });
    servers.collect()
}

/// The file of a collection in a server's folder with the most bytes read.
fn file_of<'a>(facts: &MemberFacts, side: &Side<'a>) -> Option<&'a FilePattern> {
    let (trace, folder) = (side.trace?, facts.data.as_deref()?);
    let is_inside = |file: &&FilePattern| {
        let entry = trace.document.files.get(file.file as usize);
        let rest = entry.and_then(|entry| entry.name.strip_prefix(folder));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let files = files_of_collection(trace).filter(is_inside);
    files.max_by_key(|file| file.bytes)
}

/// The time of each build until its last server ended, and the range of its servers' scores.
pub(super) fn figures(
    document: &IndexBuildDocument,
    rows: &[Row<'_>],
    book: &Book<'_>,
) -> Vec<Figure> {
    let durations = rows.iter().map(|row| {
        let seconds = row.build.duration_s;
        let until = match (row.servers.len(), row.has_own_commands()) {
            (1, _) => "1 server".to_owned(),
            (n, true) => format!("until the last of {n} servers had ended"),
            (n, false) => format!("one command for {n} servers with data"),
        };
        let change = base_of(row, rows)
            .and_then(|base| Some((base, Change::between(base.build, row.build)?)));
        let note = change.map_or(until.clone(), |(base, change)| {
            format!("{until}; {}", change.words(Some(&base.name())))
        });
        Figure::new(format!("build time, {}", row.name()), took(seconds))
            .with_note(note)
            .marked(&book.of_duration(row.side.name))
    });
    let scores = rows.iter().filter_map(|row| {
        let (low, high) = row.scores()?;
        let (label, note) = match row.servers.len() {
            1 => ("score", text(&order_statement(low))),
            n => ("lowest score", format!("of {n} servers; the highest is {high:.2}")),
        };
        let label = format!("{label}, {}", row.name());
        let figure = Figure::new(label, Quantity::new(low, Unit::Plain));
        Some(figure.with_note(note).marked(&book.of_order(row.side.name)))
    });
    let cost = super::figures::cost_of_tracing(document);
    durations.chain(scores).chain(cost).collect()
}

/// The base of a comparison: the build before the remedy on the same servers, else the first configuration.
pub(super) fn base_of<'r, 'a>(row: &Row<'a>, rows: &'r [Row<'a>]) -> Option<&'r Row<'a>> {
    let is_same = |other: &&Row<'_>| other.configuration.topology == row.configuration.topology;
    let base = match row.is_after {
        true => rows.iter().find(is_same),
        false => rows.first(),
    };
    base.filter(|base| base.side.name != row.side.name)
}

/// Tables of the builds and their servers, and charts of their reads.
pub(super) fn sections(document: &IndexBuildDocument, rows: &[Row<'_>]) -> Vec<Section> {
    let builds: Vec<&BuildRecord> = rows.iter().map(|row| row.build).collect();
    let mut builds = super::tables::times(document, &builds);
    builds.notes.extend(notes(rows));
    let mut sections = vec![builds, members(rows)];
    sections.extend(pictures(rows));
    sections
}

/// What the topologies mean for the figures.
fn notes(rows: &[Row<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |start: &str| {
        let mut topologies = rows.iter().map(|row| &row.configuration.topology);
        topologies.any(|topology| topology.starts_with(start))
    };
    if has("split=") {
        notes.push(
            "`split=N` is N servers, with documents distributed by the hash of `_id` as in hashed sharding, without a \
             router: all build at the same time, and the build time ends with the last server."
                .to_owned(),
        );
    }
    if has("replica-set=") {
        notes.push(
            "Members of a replica set have the same documents, and build at the same time: the build time is the time of the command at \
             the primary, which waits for all voting members with data."
                .to_owned(),
        );
    }
    if has("sharded=") {
        notes.push(
            "`sharded=SxR` is a cluster of S shards with R members each. Its documents are loaded and its index is built through the \
             router, and the build time is the time of the command there; members of one shard have the same documents."
                .to_owned(),
        );
    }
    if rows.iter().any(|row| row.servers.len() > 1) {
        notes.push(
            "Reads are totals over all servers; the servers of a configuration share this machine, and its disk unless each has \
             storage of its own."
                .to_owned(),
        );
    }
    notes
}

fn members(rows: &[Row<'_>]) -> Section {
    let columns = vec![
        Column::text("configuration"),
        Column::text("server"),
        Column::number("documents", 230),
        Column::number("share", 240),
        Column::number("build time", u8::MAX),
        Column::number("score", 250),
        Column::text("was read"),
        Column::number("sequential", 160),
        Column::number("reads", 170),
        Column::number("reads/s", 200),
        Column::number("read, times the file", 150),
        Column::number("from devices", 140),
        Column::number("device: reads/s", 180),
    ];
    let lines = rows.iter().flat_map(|row| row.servers.iter().map(|server| line(row, server)));
    Section {
        title: "Servers".into(),
        lead: "The documents of each server, and the order in which their file was read.".into(),
        tables: vec![Table::new("Servers", columns, lines.collect())],
        ..Section::default()
    }
}

fn line(row: &Row<'_>, server: &Server<'_>) -> Vec<Cell> {
    let all = row.configuration.collection.documents.max(1) as f64;
    let documents = server.facts.documents;
    let duration_s = server.build.map_or(row.build.duration_s, |one| one.duration_s);
    let process = server.build.map_or(row.build.process, |one| one.process);
    let device = server.build.map_or(row.build.device, |one| one.device);
    let per_s = |io: IoFigures| {
        (duration_s > 0.0).then(|| Quantity::per_second(io.reads as f64 / duration_s))
    };
    let file = server.file;
    let score = server.score();
    vec![
        row.name().into(),
        Cell::new(&server.facts.name, Tone::Strong),
        Quantity::count(documents).into(),
        Quantity::ratio(documents as f64 / all).into(),
        took(duration_s).into(),
        Cell::known(score.map(|score| Quantity::new(score, Unit::Plain))),
        Cell::known(score.map(|score| text(&order_statement(score)))),
        Cell::known(file.and_then(|file| file.sequential_ratio).map(Quantity::ratio)),
        Cell::known(file.map(|file| Quantity::count(file.calls))),
        Cell::known(process.and_then(per_s)),
        Cell::known(
            file.and_then(|file| file.amplification)
                .map(|times| Quantity::new(times, Unit::Parameter)),
        ),
        Cell::known(process.map(|io| Quantity::bytes(io.read_bytes))),
        Cell::known(device.and_then(per_s)),
    ]
}

/// A chart per build, with the pictures of all servers side by side.
fn pictures(rows: &[Row<'_>]) -> Option<Section> {
    let chart = |row: &Row<'_>| {
        let zero_ns = row.side.trace?.patterns.first_ns.unwrap_or(0);
        let files = row.servers.iter();
        let files: Vec<(&str, &FilePattern, i64)> = files
            .filter_map(|server| Some((server.facts.name.as_str(), server.file?, zero_ns)))
            .collect();
        let chart = io_trace::offsets_beside(row.side.name, &files)?;
        let title = format!("{}, {}: {}", row.name(), row.number_of_servers(), chart.title);
        Some(DensityChart { title, ..chart })
    };
    io_trace::where_and_when(rows.iter().filter_map(chart).collect())
}
