//! The result of an index build in a few numbers.

use super::caveats::Book;
use super::sides::Side;
use super::words::{Change, took};
use crate::page::Figure;
use crate::texts::text;
use dyno_analyze::access_pattern::order_statement;
use dyno_analyze::tracing_cost::{Doubt, TracingCost, tracing_cost};
use dyno_record::index_build::{IndexBuildDocument, RemedyRecord};
use dyno_record::quantity::{Quantity, Unit};

/// Duration, read order, amount read, and whether the documents are unchanged.
pub(super) fn figures(
    document: &IndexBuildDocument,
    sides: &[Side<'_>],
    book: &Book<'_>,
) -> Vec<Figure> {
    let durations = sides.iter().enumerate().filter_map(|(place, side)| {
        let seconds = side.duration_s()?;
        let before = sides[0].build.filter(|_| place > 0);
        let change = before.and_then(|before| Change::between(before, side.build?));
        Some(Figure {
            alarming: matches!(change, Some(Change::Slower(_))),
            ..Figure::new(label("build time", side, sides), took(seconds))
                .with_note(change.map_or(how_cold(side), |change| change.words(None)))
                .marked(&book.of_duration(side.name))
        })
    });
    let scores = sides.iter().filter_map(|side| {
        let (file, score) = (side.file?, side.score()?);
        let order = text(&order_statement(score));
        let note = format!("0 random, 1 sequential; {} was read {order}", file.label());
        let figure = Figure::new(label("score", side, sides), Quantity::new(score, Unit::Plain));
        Some(figure.with_note(note).marked(&book.of_order(side.name)))
    });
    let reads = reads(sides, book);
    let documents = document.remedy.as_ref().map(documents);
    durations.chain(scores).chain(reads).chain(documents).chain(cost_of_tracing(document)).collect()
}

/// The cost of tracing over all builds of the experiment, if known.
pub(super) fn cost_of_tracing(document: &IndexBuildDocument) -> Option<Figure> {
    let pairs = document.builds.iter().flat_map(|build| &build.tracing);
    let cost = tracing_cost(pairs).filter(|cost| cost.caveat().is_none())?;
    let figure = Figure::new("cost of tracing", Quantity::ratio(cost.ratio).signed());
    Some(figure.with_note(format!("of the build time; {}", how_sure(&cost))))
}

/// The interval of a cost with its basis, or why the cost is unknown.
pub(super) fn how_sure(cost: &TracingCost) -> String {
    match cost.caveat() {
        None => interval(cost),
        Some(Doubt::OnePair) => "one pair, no interval".to_owned(),
        Some(Doubt::Noise) => format!("within the noise, {}", interval(cost)),
        Some(Doubt::Shorter) => format!("the traced builds were faster, {}", interval(cost)),
    }
}

fn interval(cost: &TracingCost) -> String {
    match narrow(cost) {
        Some((low, high)) => {
            let end = |ratio| Quantity::ratio(ratio).signed();
            format!("95 %: {} to {}, {} pairs", end(low), end(high), cost.pairs)
        }
        None => format!("too wide an interval, {} pairs", cost.pairs),
    }
}

/// The interval, unless it is too wide to be useful.
pub(super) fn narrow(cost: &TracingCost) -> Option<(f64, f64)> {
    /// Largest factor between the ends of a useful interval, as durations.
    const WIDE: f64 = 4.0;
    let is_narrow = |(low, high): &(f64, f64)| 1.0 + high <= (1.0 + low) * WIDE;
    cost.interval.filter(is_narrow)
}

/// The amount read, as a multiple of the file size, in the last build.
fn reads(sides: &[Side<'_>], book: &Book<'_>) -> Option<Figure> {
    let known: Vec<(&Side<'_>, Quantity, u64)> = sides
        .iter()
        .filter_map(|side| {
            let file = side.file?;
            let times = Quantity::new(file.amplification?, Unit::Parameter);
            Some((side, times, file.bytes))
        })
        .collect();
    let (last, earlier) = known.split_last()?;
    let (side, times, bytes) = last;
    let earlier = earlier.iter().map(|(side, times, _)| format!("; {} {times}", side.name));
    let earlier: String = earlier.collect();
    let mut marks: Vec<usize> =
        known.iter().flat_map(|(side, ..)| book.of_order(side.name)).collect();
    marks.sort_unstable();
    marks.dedup();
    let note = format!("{} in all{earlier}", Quantity::bytes(*bytes));
    let label = label("read, times the file", side, sides);
    Some(Figure::new(label, *times).with_note(note).marked(&marks))
}

/// `score`, or `score before` if there are several builds.
fn label(what: &str, side: &Side<'_>, sides: &[Side<'_>]) -> String {
    match sides.len() {
        1 => what.to_owned(),
        _ => format!("{what} {}", side.name),
    }
}

/// The state of the caches before the first build.
fn how_cold(side: &Side<'_>) -> String {
    let build = side.build.map(|b| (b.server_restarted, b.page_cache_dropped));
    match build {
        Some((true, true)) => "cold: server restarted, page cache dropped",
        Some((false, true)) => "page cache dropped, server not restarted",
        Some((true, false)) => "server restarted, page cache kept",
        _ => "warm: server and page cache unchanged",
    }
    .to_owned()
}

fn documents(remedy: &RemedyRecord) -> Figure {
    let (before, after) = remedy.documents;
    let is_identical = remedy.is_identical();
    let note = if is_identical {
        "number and content hash are the same".to_owned()
    } else if before == after {
        "no: the content hash differs".to_owned()
    } else {
        format!("no: there were {}", Quantity::count(before))
    };
    let label = if is_identical { "documents, all identical" } else { "documents, not identical" };
    Figure { alarming: !is_identical, ..Figure::new(label, Quantity::count(after)).with_note(note) }
}
