//! Costs of index builds and messages: of one with the source of each number, or of several in one table.

use super::{Row, not_known, noun, of_one, of_used, table};
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::costs::work::{self, NamedCosts};
use dyno_analyze::grouping::distinct;
use dyno_record::consumption::Consumption;
use dyno_record::experiment::{Cost, CostBasis};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::tail::TailDocument;

/// Texts that differ between index builds and messages.
struct Words {
    /// Title of the column with the total.
    whole: &'static str,
    /// Title of the column with the names.
    key: &'static str,
    /// Source of the CPU time of clients.
    client: &'static str,
    /// Dividend and divisor, for one and for several.
    lead: String,
    /// Explanation of the intervals.
    intervals: &'static str,
}

/// The costs of index builds; `None` if nothing is known.
pub(crate) fn of_builds(document: &IndexBuildDocument) -> Option<Section> {
    let all = work::of_builds(document);
    let used = document.builds.iter();
    let used = used.filter_map(|build| build.consumption.as_ref());
    let lead = match all.as_slice() {
        [only] => format!(
            "Resources used by the build, divided by the {} documents of the collection; counters were read at its start and end.",
            Quantity::count(only.costs.basis_count)
        ),
        _ => "Resources used by each build, divided by the documents of its collection; counters were read at its start and end."
            .to_owned(),
    };
    let words = Words {
        whole: "whole build",
        key: "build",
        client: "",
        lead,
        intervals: "Intervals include the resolution of CPU times, and the time between the ends of the build and the readings \
                    of the counters; intervals within ±0.5 % are not shown. Repeat the build to see the variation between \
                    builds.",
    };
    let rows: Vec<(String, Vec<Cost>)> =
        all.iter().map(|one| (one.name.clone(), one.costs.values.clone())).collect();
    section(&all, &rows, used.collect(), &words)
}

/// The costs of messages; `None` if nothing is known.
pub(crate) fn of_cells(document: &TailDocument) -> Option<Section> {
    let all = work::of_cells(document);
    let measured = document.cells.iter().filter_map(|one| one.measured.as_ref());
    let used = measured.filter_map(|measured| measured.consumption.as_ref());
    let counted =
        "counters were read just before the first message and after the last process had ended";
    let lead = match all.as_slice() {
        [only] => format!(
            "Resources used by the messages, divided by the {} messages that consumers received; {counted}.",
            Quantity::count(only.costs.basis_count)
        ),
        _ => format!(
            "Resources used by the messages of each cell, divided by the messages that consumers received; {counted}."
        ),
    };
    let words = Words {
        whole: "all messages",
        key: "producer",
        client: "/proc of the drivers",
        lead,
        intervals: "The 95 % interval over the repetitions is below each value; for a single one it is the uncertainty of its counters, \
                    if larger than ±0.5 %: the resolution of CPU times, and all use from the last message \
                    until the end of the processes.",
    };
    section(&all, &work::of_combinations(document), used.collect(), &words)
}

fn section(
    all: &[NamedCosts],
    rows: &[(String, Vec<Cost>)],
    used: Vec<&Consumption>,
    words: &Words,
) -> Option<Section> {
    let basis = all.first()?.costs.basis;
    let table = match (all, used.as_slice()) {
        ([only], used) => {
            Some(of_one(&only.costs, used.first().copied(), words.whole, words.client))
        }
        _ => beside(rows, all, words.key),
    }?;
    let mut notes = vec![words.intervals.to_owned()];
    match used.as_slice() {
        [only] => notes.extend(of_used(only)),
        several => notes.extend(of_several(several)),
    }
    notes.extend(deferred(&used));
    notes.extend(distinct(all.iter().flat_map(|one| &one.costs.unknown).map(not_known)));
    Some(Section {
        title: title(basis).into(),
        lead: words.lead.clone(),
        tables: vec![table],
        notes,
        ..Section::default()
    })
}

fn title(basis: CostBasis) -> String {
    format!("Cost per {}", noun(basis))
}

fn beside(rows: &[(String, Vec<Cost>)], all: &[NamedCosts], key: &str) -> Option<Table> {
    let currency = all.iter().find_map(|one| one.costs.currency.as_deref());
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(name, costs)| (vec![Cell::new(name, Tone::Strong)], costs.as_slice()))
        .collect();
    table(&[Column::text(key)], &rows, currency)
}

/// A note about the devices of several pieces of work.
fn of_several(all: &[&Consumption]) -> Option<String> {
    let devices = all.iter().filter_map(|used| used.device.as_ref());
    let names = distinct(devices.flat_map(|device| &device.names).map(String::as_str));
    (!names.is_empty()).then(|| {
        format!(
            "The counters of {} include all use of the device, including other programs and the file system.",
            names.join(", ")
        )
    })
}

/// The amount that servers wrote later, from the least to the most.
fn deferred(all: &[&Consumption]) -> Option<String> {
    let devices = all.iter().filter_map(|used| used.device.as_ref());
    let later: Vec<u64> = devices.filter_map(|device| device.deferred_bytes).collect();
    let (least, most) = (*later.iter().min()?, *later.iter().max()?);
    let bytes = |bytes: u64| Quantity::new(bytes as f64, Unit::Bytes).to_string();
    let amount = match least == most {
        true => bytes(most),
        false => format!("{} to {}", bytes(least), bytes(most)),
    };
    (most > 0).then(|| {
        format!(
            "Not in the table: {amount} that the servers wrote afterwards, when `fsync` flushed all remaining data \
             from memory."
        )
    })
}
