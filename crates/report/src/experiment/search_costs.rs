//! Costs of operations in the runs of a search, by load.

use crate::costs;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::costs::of_runs;
use dyno_record::experiment::{Cost, Experiment, Figures};
use dyno_record::quantity::Quantity;

/// Largest number of offered rates shown, nearest to the answer.
const MOST_RATES: usize = 5;

/// Runs with the same load.
struct Load<'a> {
    clients: u32,
    /// Absent in a closed loop.
    offered_per_s: Option<f64>,
    runs: Vec<&'a Figures>,
}

/// Closed loops by clients, then the offered rates nearest to `around_per_s`; `None` if no cost is known.
pub(super) fn section(experiment: &Experiment, around_per_s: f64) -> Option<Section> {
    let mut loads: Vec<Load<'_>> = Vec::new();
    for run in experiment.points.iter().filter_map(|one| one.figures.as_ref()) {
        let (clients, offered_per_s) = (run.clients, run.offered_rate_per_s);
        let is_same =
            |load: &&mut Load<'_>| load.clients == clients && load.offered_per_s == offered_per_s;
        match loads.iter_mut().find(is_same) {
            Some(load) => load.runs.push(run),
            None => loads.push(Load { clients, offered_per_s, runs: vec![run] }),
        }
    }
    let (mut offered, mut closed): (Vec<_>, Vec<_>) =
        loads.into_iter().partition(|load| load.offered_per_s.is_some());
    closed.sort_by_key(|load| load.clients);
    let tried = offered.len();
    let per_s = |load: &Load<'_>| load.offered_per_s.unwrap_or(f64::NAN);
    let distance = |load: &Load<'_>| (per_s(load) / around_per_s).ln().abs();
    offered.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    offered.truncate(MOST_RATES);
    offered.sort_by(|a, b| per_s(a).total_cmp(&per_s(b)));
    let of_clients = |load: &Load<'_>| Quantity::count(load.clients.into());
    let of_rate = |load: &Load<'_>| Quantity::per_second(per_s(load));
    let tables = [
        table(experiment, "clients, closed loop", &closed, &of_clients),
        table(experiment, "offered", &offered, &of_rate),
    ];
    let tables: Vec<Table> = tables.into_iter().flatten().collect();
    if tables.is_empty() {
        return None;
    }
    let mut section = costs::of_tables(tables);
    if tried > MOST_RATES {
        section.notes.push(format!(
            "The {MOST_RATES} offered rates nearest to the answer are shown, of {tried}."
        ));
    }
    Some(section)
}

fn table(
    experiment: &Experiment,
    title: &str,
    loads: &[Load<'_>],
    name: &dyn Fn(&Load<'_>) -> Quantity,
) -> Option<Table> {
    let costs: Vec<Vec<Cost>> = loads.iter().map(|load| of_runs(&load.runs)).collect();
    let key = |load| vec![Cell::new(name(load), Tone::Strong)];
    let rows: Vec<costs::Row<'_>> =
        loads.iter().zip(&costs).map(|(load, costs)| (key(load), costs.as_slice())).collect();
    let key = Column::number(title, u8::MAX);
    costs::table(&[key], &rows, costs::currency(experiment))
}
