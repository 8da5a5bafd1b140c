//! The runs of an experiment as one long table, with a row per figure of a run.

use crate::export::table::{Cell, Column, Kind, Table, unit};
use dyno_engine::Error;
use dyno_record::experiment::{Block, Experiment, Figure, Figures, Point, Side};
use std::collections::BTreeSet;

/// Columns before the settings.
const BEFORE: [(&str, Kind, bool); 6] = [
    ("run", Kind::Integer, false),
    ("directory", Kind::Text, false),
    ("workload", Kind::Text, true),
    ("side", Kind::Text, true),
    ("block", Kind::Text, true),
    ("repeat", Kind::Integer, false),
];

/// Columns after the settings.
const AFTER: [(&str, Kind, bool); 6] = [
    ("metric", Kind::Text, false),
    ("instance", Kind::Text, true),
    ("value", Kind::Number, false),
    ("low", Kind::Number, true),
    ("high", Kind::Number, true),
    ("unit", Kind::Text, false),
];

/// All columns, with one column per key that runs set.
pub(crate) fn columns(experiment: &Experiment) -> Vec<Column> {
    let fixed = |&(name, kind, is_optional): &(&str, Kind, bool)| match is_optional {
        true => Column::optional(name, kind),
        false => Column::new(name, kind),
    };
    let settings = keys(experiment);
    let settings = settings.iter().map(|key| Column::optional(key, Kind::Text));
    BEFORE.iter().map(fixed).chain(settings).chain(AFTER.iter().map(fixed)).collect()
}

fn keys(experiment: &Experiment) -> BTreeSet<&str> {
    experiment.points.iter().flat_map(|point| point.settings.keys().map(String::as_str)).collect()
}

/// Writes the figures of all runs in order. A run without measurements has no rows.
pub(crate) fn fill(experiment: &Experiment, table: &mut dyn Table) -> Result<(), Error> {
    let keys = keys(experiment);
    for (number, point) in (1..).zip(&experiment.points) {
        let Some(figures) = &point.figures else {
            continue;
        };
        let before = before(number, point, &keys);
        each(figures, &mut |metric, instance, figure| {
            let after = [
                Cell::Text(metric),
                instance.into(),
                Cell::Number(figure.value),
                figure.low.into(),
                figure.high.into(),
                Cell::Text(unit(metric)),
            ];
            let cells: Vec<Cell<'_>> = before.iter().copied().chain(after).collect();
            table.row(&cells)
        })?;
    }
    Ok(())
}

fn before<'a>(number: i64, point: &'a Point, keys: &BTreeSet<&str>) -> Vec<Cell<'a>> {
    let fixed = [
        Cell::Integer(number),
        Cell::Text(&point.directory),
        point.workload.as_deref().into(),
        point.side.map(Side::label).into(),
        point.block.map(block).into(),
        Cell::Integer(i64::from(point.repeat)),
    ];
    let settings = keys.iter().map(|key| {
        let value = point.settings.get(*key);
        Cell::from(value.map(String::as_str))
    });
    fixed.into_iter().chain(settings).collect()
}

fn block(block: Block) -> &'static str {
    match block {
        Block::Closed => "closed",
        Block::Open => "open",
    }
}

type Put<'p> = dyn FnMut(&str, Option<&str>, Figure) -> Result<(), Error> + 'p;

/// Passes each figure to `put` with its name and its resource, or with the divisor of a cost.
fn each(figures: &Figures, put: &mut Put<'_>) -> Result<(), Error> {
    let bare = Figure::bare;
    for (metric, figure) in [
        ("clients_count", Some(bare(f64::from(figures.clients)))),
        ("threads_count", Some(bare(f64::from(figures.threads)))),
        ("offered_rate_per_s", figures.offered_rate_per_s.map(bare)),
        ("rate_per_s", Some(figures.rate_per_s)),
        ("response_mean_us", Some(figures.response_mean_us)),
        ("service_mean_us", Some(bare(figures.service_mean_us))),
        ("think_mean_us", figures.think_mean_us.map(bare)),
        ("in_flight_count", Some(bare(figures.mean_in_flight))),
        ("succeeded_count", Some(bare(figures.succeeded as f64))),
        ("failed_ratio", Some(bare(figures.failed_ratio))),
        ("dropped_ratio", Some(bare(figures.dropped_ratio))),
        ("duration_s", Some(bare(figures.duration_s))),
        ("warm_up_s", Some(bare(figures.warm_up_s))),
        ("stolen_ratio", figures.stolen_ratio.map(bare)),
    ] {
        if let Some(figure) = figure {
            put(metric, None, figure)?;
        }
    }
    for (name, figure) in &figures.response_us {
        put(&format!("response_{name}_us"), None, *figure)?;
    }
    for resource in &figures.resources {
        let name = Some(resource.name.as_str());
        put("busy_ratio", name, bare(resource.busy_ratio))?;
    }
    for demand in &figures.demands {
        let name = Some(demand.name.as_str());
        put("demand_s", name, bare(demand.demand_s))?;
    }
    let costs = figures.costs.iter();
    for (costs, cost) in costs.flat_map(|costs| costs.values.iter().map(move |cost| (costs, cost)))
    {
        let basis = costs.basis.as_str();
        let basis = cost.kind.is_per_operation().then_some(basis);
        put(cost.kind.as_str(), basis, cost.value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::csv;
    use dyno_record::Document;
    use std::path::Path;

    #[test]
    fn row_has_the_settings_of_its_run() {
        let golden =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden/experiments");
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(golden.join("sweep.json"), folder.path().join(Experiment::FILE)).unwrap();
        let experiment = Experiment::read(folder.path()).unwrap();
        let mut output = Vec::new();
        let fill = |table: &mut dyn Table| fill(&experiment, table);
        csv::write(&columns(&experiment), &fill, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let head = text.lines().next().unwrap();
        assert!(
            head.starts_with("run,directory,workload,side,block,repeat,client.clients"),
            "{head}"
        );
        let measured = experiment.points.iter().filter_map(|point| point.figures.as_ref());
        let rates: Vec<f64> = measured.map(|figures| figures.rate_per_s.value).collect();
        let place = |name: &str| head.split(',').position(|column| column == name).unwrap();
        let (metric, value, unit) = (place("metric"), place("value"), place("unit"));
        let found = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let found = found.filter(|cells| cells[metric] == "rate_per_s");
        let found: Vec<f64> = found
            .map(|cells| {
                assert_eq!(cells[unit], "1/s");
                cells[value].parse().unwrap()
            })
            .collect();
        assert_eq!(found, rates);
        assert!(rates.len() > 1);
    }
}
