//! Costs of operations in the runs of a search, by load.

use super::levels::clients;
use crate::costs;
use crate::page::Section;
use crate::page::table::{Cell, Column, Tone};
use dyno_analyze::costs::of_runs;
use dyno_record::experiment::{Cost, Experiment, Figures};
use dyno_record::quantity::Quantity;

/// Closed loops by clients, then offered rates; `None` if no cost is known.
pub(super) fn section(experiment: &Experiment) -> Option<Section> {
    let load = |run: &Figures| (run.offered_rate_per_s, run.clients);
    let mut runs: Vec<&Figures> =
        experiment.points.iter().filter_map(|one| one.figures.as_ref()).collect();
    runs.sort_by(|a, b| {
        let ((rate_a, clients_a), (rate_b, clients_b)) = (load(a), load(b));
        let rates = rate_a.unwrap_or(0.0).total_cmp(&rate_b.unwrap_or(0.0));
        rates.then(clients_a.cmp(&clients_b))
    });
    let loads: Vec<(Vec<Cell>, Vec<Cost>)> = runs
        .chunk_by(|a, b| load(a) == load(b))
        .map(|runs| {
            let name = match load(runs[0]) {
                (Some(offered), _) => format!("{} offered", Quantity::per_second(offered)),
                (None, number) => clients(number),
            };
            (vec![Cell::new(name, Tone::Strong)], of_runs(runs))
        })
        .collect();
    let rows: Vec<costs::Row<'_>> =
        loads.iter().map(|(key, costs)| (key.clone(), costs.as_slice())).collect();
    costs::of_rows(&[Column::text("load")], &rows, costs::currency(experiment))
}
