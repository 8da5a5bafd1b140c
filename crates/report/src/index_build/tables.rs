//! Tables of an index build: the builds, and the server's counters.

use super::configurations::untraced_mean_s;
use super::sides::Side;
use super::words::took;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_record::index_build::{BuildRecord, IndexBuildDocument, IoFigures};
use dyno_record::quantity::{Quantity, Unit};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Largest number of rows in the table of counters.
const MOST_COUNTERS: usize = 12;

/// The tables that have something to show.
pub(super) fn sections(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Vec<Section> {
    let builds: Vec<&BuildRecord> = sides.iter().filter_map(|side| side.build).collect();
    if builds.is_empty() {
        return Vec::new();
    }
    let mut sections = vec![times(document, &builds)];
    sections.extend(counters(&builds));
    sections
}

fn times(document: &IndexBuildDocument, builds: &[&BuildRecord]) -> Section {
    let figure = |name, of: &dyn Fn(&BuildRecord) -> Option<Quantity>| {
        let figures: Vec<_> = builds.iter().map(|build| of(build)).collect();
        line(name, &figures, change(&figures))
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
        tables: vec![table("Builds", "", builds, rows.to_vec())],
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
fn table(label: &str, first: &str, builds: &[&BuildRecord], mut rows: Vec<Vec<Cell>>) -> Table {
    rows.retain(|row| row[1..].iter().any(|cell| !cell.text.is_empty()));
    let mut columns = vec![Column::text(first)];
    columns.extend(builds.iter().map(|build| {
        let title = match builds.len() {
            1 => "build",
            _ => &build.name,
        };
        Column::number(title, u8::MAX)
    }));
    columns.push(Column::number("after ÷ before", 100));
    Table::new(label, columns, rows)
}

/// Counters of the server, the cache first, then by growth.
fn counters(builds: &[&BuildRecord]) -> Option<Section> {
    let names: BTreeSet<&String> = builds.iter().flat_map(|b| b.server.keys()).collect();
    let growth = |build: &BuildRecord, name: &str| build.server.get(name).copied();
    let most = |name: &str| {
        let grown = builds.iter().filter_map(|build| growth(build, name));
        grown.fold(0.0, f64::max)
    };
    let mut grown: Vec<(&String, f64)> =
        names.into_iter().map(|name| (name, most(name))).filter(|(_, most)| *most > 0.0).collect();
    let is_of_cache = |name: &str| name.to_lowercase().starts_with("wiredtiger.cache.");
    grown.sort_by(|(left, left_most), (right, right_most)| {
        let of_cache = is_of_cache(right).cmp(&is_of_cache(left));
        of_cache.then(right_most.total_cmp(left_most))
    });
    let hidden = grown.len().saturating_sub(MOST_COUNTERS);
    grown.truncate(MOST_COUNTERS);
    if grown.is_empty() {
        return None;
    }
    let rows = grown.iter().map(|(name, _)| {
        let figures: Vec<Option<Quantity>> = builds
            .iter()
            .map(|build| growth(build, name).map(|value| counted(name, value)))
            .collect();
        line(name, &figures, change(&figures))
    });
    let note = match hidden {
        1 => "1 more counter that grew is in the JSON form of this report.".to_owned(),
        _ => format!("{hidden} more counters that grew are in the JSON form of this report."),
    };
    Some(Section {
        title: "Counters of the server".into(),
        lead: "Growth of the server's counters during the index build: cache counters first, then by growth."
            .into(),
        tables: vec![table("Counters of the server", "counter", builds, rows.collect())],
        notes: if hidden > 0 { vec![note] } else { Vec::new() },
        ..Section::default()
    })
}

/// The growth of a counter, with a unit derived from its name.
fn counted(name: &str, value: f64) -> Quantity {
    let last = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let unit = match last.as_str() {
        last if last.starts_with("bytes") || last.ends_with("bytes") => Unit::Bytes,
        last if last.contains("usecs") || last.contains("microseconds") => Unit::Microseconds,
        _ if value.fract() == 0.0 => Unit::Count,
        _ => Unit::Parameter,
    };
    Quantity::new(value, unit)
}

/// Note about the uncertainty of single builds.
pub(super) fn made_once(builds: usize) -> String {
    match builds {
        1 => "The index was built once, so the figures have no interval.".to_owned(),
        _ => "Each build was made once, so the figures have no interval: the variation of builds is unknown, and short builds vary most.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_the_unit_of_its_name() {
        let text = |name, value| counted(name, value).to_string();
        let cache = "wiredTiger.cache.bytes read into cache";
        assert_eq!(text(cache, 1024.0 * 1024.0), "1.00 MiB");
        assert_eq!(text("network.numRequests", 12_000.0), "12,000");
        assert_eq!(text("a.time waiting (usecs)", 1500.0), "1.50 ms");
        assert_eq!(text("network.physicalBytes", 2048.0), "2.00 KiB");
        assert_eq!(text("a.load", 0.5), "0.500");
    }
}
