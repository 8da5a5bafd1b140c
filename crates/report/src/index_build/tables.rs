//! The table of an index build's builds.

use super::sides::Side;
use super::words::took;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_record::index_build::{BuildRecord, IndexBuildDocument, IoFigures};
use dyno_record::quantity::{Quantity, Unit};
use std::fmt::Display;

/// The tables that have something to show.
pub(super) fn sections(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Vec<Section> {
    let builds: Vec<&BuildRecord> = sides.iter().filter_map(|side| side.build).collect();
    if builds.is_empty() {
        return Vec::new();
    }
    vec![times(document, &builds)]
}

/// The builds side by side, with the change if one followed the other.
pub(super) fn times(document: &IndexBuildDocument, builds: &[&BuildRecord]) -> Section {
    let is_one_server = document.configurations.is_empty();
    let figure = |name, of: &dyn Fn(&BuildRecord) -> Option<Quantity>| {
        let figures: Vec<_> = builds.iter().map(|build| of(build)).collect();
        line(name, &figures, change(&figures).filter(|_| is_one_server))
    };
    let condition = |name, of: &dyn Fn(&BuildRecord) -> Option<Quantity>| {
        let figures: Vec<_> = builds.iter().map(|build| of(build)).collect();
        line(name, &figures, None)
    };
    let is_so = |name, of: fn(&BuildRecord) -> bool| {
        let words: Vec<_> = builds.iter().map(|build| Some(yes_or_no(of(build)))).collect();
        line(name, &words, None)
    };
    let process =
        |of: fn(&IoFigures) -> Quantity| move |build: &BuildRecord| build.process.as_ref().map(of);
    let device =
        |of: fn(&IoFigures) -> Quantity| move |build: &BuildRecord| build.device.as_ref().map(of);
    let rows = [
        figure("duration", &|build| Some(took(build.duration_s))),
        figure("duration without trace", &|build| untraced_mean_s(build).map(took)),
        is_so("server restarted", |build| build.server_restarted),
        is_so("page cache dropped", |build| build.page_cache_dropped),
        condition("page cache at start", &|build| build.cached_bytes.map(Quantity::bytes)),
        condition("read at server start", &|build| build.read_at_start_bytes.map(Quantity::bytes)),
        figure("data files", &|build| build.data_bytes.map(Quantity::bytes)),
        figure("server: reads", &process(|io| Quantity::count(io.reads))),
        figure("server: from devices", &process(|io| Quantity::bytes(io.read_bytes))),
        figure("server: written", &process(|io| Quantity::bytes(io.written_bytes))),
        figure("device: reads", &device(|io| Quantity::count(io.reads))),
        figure("device: read", &device(|io| Quantity::bytes(io.read_bytes))),
        figure("device: reads/s", &reads_per_second),
        figure("device: writes", &device(|io| Quantity::count(io.writes))),
        figure("device: written", &device(|io| Quantity::bytes(io.written_bytes))),
        condition("device: busy", &|build| build.device?.busy_ratio.map(Quantity::ratio)),
    ];

    let mut notes = vec![made_once(builds.len())];
    if document.disk.as_ref().is_some_and(|disk| disk.made) {
        notes.push(
            "The data is in a file on another disk, where distant requests cost no more than adjacent ones."
                .to_owned(),
        );
    }
    Section {
        title: "Builds".into(),
        lead: "Duration, cache state, and amounts read and written: by calls of the server, and by requests to the device from any process."
            .into(),
        tables: vec![table(builds, rows.to_vec(), is_one_server)],
        notes,
        ..Section::default()
    }
}

fn reads_per_second(build: &BuildRecord) -> Option<Quantity> {
    let reads = build.device?.reads as f64;
    (build.duration_s > 0.0).then(|| Quantity::new(reads / build.duration_s, Unit::PerSecond))
}

fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

/// The ratio of the second to the first figure.
fn change(figures: &[Option<Quantity>]) -> Option<Quantity> {
    let [Some(before), Some(after)] = figures else {
        return None;
    };
    let quotient = after.value() / before.value();
    (before.value() > 0.0).then(|| Quantity::new(quotient, Unit::Parameter))
}

fn line(name: &str, figures: &[Option<impl Display>], change: Option<Quantity>) -> Vec<Cell> {
    let mut line = vec![Cell::new(name, Tone::Strong)];
    line.extend(figures.iter().map(|figure| Cell::known(figure.as_ref())));
    line.push(Cell::known(change));
    line
}

/// A table with a column per build, without rows that are empty for all builds.
fn table(builds: &[&BuildRecord], mut rows: Vec<Vec<Cell>>, is_one_server: bool) -> Table {
    rows.retain(|row| row[1..].iter().any(|cell| !cell.text.is_empty()));
    let mut columns = vec![Column::text("")];
    columns.extend(builds.iter().map(|build| {
        let title = match builds.len() {
            1 => "build",
            _ => &build.name,
        };
        Column::number(title, u8::MAX)
    }));
    if is_one_server {
        columns.push(Column::number("after ÷ before", 100));
    } else {
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
    }
    Table::new("Builds", columns, rows)
}

/// Mean duration of the builds without a trace.
fn untraced_mean_s(build: &BuildRecord) -> Option<f64> {
    let n = build.tracing.len();
    let sum: f64 = build.tracing.iter().map(|pair| pair.untraced_s).sum();
    (n > 0).then(|| sum / n as f64)
}

/// Note about the uncertainty of single builds.
fn made_once(builds: usize) -> String {
    match builds {
        1 => "The index was built once, so the figures have no interval.".to_owned(),
        _ => "Each build was made once, so the figures have no interval: the variation of builds is unknown, and short builds vary most.".to_owned(),
    }
}
