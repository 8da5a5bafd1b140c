//! A sweep relative to one of its values: rates, times and service demands of each level divided by those of its base.

use super::figure::seconds;
use super::levels::{Sweep, key_column};
use super::ratios::{self, basis, demand_ratio, statistic};
use crate::page::rows::RowsChart;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Definition, Section, charts_of};
use dyno_analyze::experiment::figures::resource_name;
use dyno_analyze::experiment::relative::decision;
use dyno_record::experiment::{
    AgainstBase, Comparison, ComparisonVerdict, Explanation, Figure, Level, Relative, Statistic,
};
use dyno_record::model::ResourceKind;
use dyno_record::quantity::Quantity;

/// Figures of the table, with their ranks.
const RATIOS: [(Statistic, &str, u8); 5] = [
    (Statistic::Rate, "rate / base", 210),
    (Statistic::MeanTime, "mean / base", 140),
    (Statistic::Percentile { percent: 50.0 }, "p50 / base", 100),
    (Statistic::Percentile { percent: 95.0 }, "p95 / base", 110),
    (Statistic::Percentile { percent: 99.0 }, "p99 / base", 180),
];

/// Resources of the table, with the titles of their demand and its ratio, and their rank.
const DEMANDS: [(&str, [&str; 2], u8); 3] = [
    (
        resource_name(ResourceKind::ServerCpu),
        ["server CPU time", "server CPU / base"],
        190,
    ),
    (
        resource_name(ResourceKind::Disk),
        ["disk time", "disk / base"],
        150,
    ),
    (
        resource_name(ResourceKind::ClientCpu),
        ["client CPU time", "client CPU / base"],
        90,
    ),
];

pub(super) const BASE: Definition = Definition {
    term: "base",
    meaning: "The value that the others are compared with. A level that is explained by a service demand needs more of that \
              resource for each operation where it is slower, or less where it is faster, and enough to matter.",
};

/// The section; `None` without a base.
pub(super) fn section(sweep: &Sweep<'_>) -> Option<Section> {
    let relative = sweep.answer.relative.as_ref()?;
    let comparisons = || relative.levels.iter().flat_map(|row| &row.comparisons);
    let first: Vec<Comparison> = comparisons().take(1).copied().collect();
    let base = format!("{} = {}", relative.base.key, relative.base.value);
    let mut notes = vec![
        "Below each ratio stands its 95 % interval; one that holds 1 is no difference for certain. Runs of the same round \
         are compared as a pair. The times are what an operation needs of the resource."
            .to_owned(),
    ];
    let basis = basis(&first);
    if !basis.is_empty() {
        notes.push(basis.trim_end().to_owned());
    }
    Some(Section {
        title: sweep.title("Relative to the base").into(),
        lead: format!(
            "Everything is divided by the value with {base} and the same other settings."
        ),
        charts: charts_of(chart(sweep, relative)),
        tables: vec![table(sweep, relative)],
        notes,
        ..Section::default()
    })
}

fn table(sweep: &Sweep<'_>, relative: &Relative) -> Table {
    let keys = sweep.keys();
    let mut columns: Vec<Column> = keys.iter().map(|key| key_column(key)).collect();
    columns.push(Column::number("rate", 200));
    columns.extend(RATIOS.map(|(_, title, rank)| Column::number(title, rank)));
    columns.extend(DEMANDS.into_iter().flat_map(|(_, [own, ratio], rank)| {
        [Column::number(own, rank - 1), Column::number(ratio, rank)]
    }));
    columns.push(Column::text("explained by"));
    let levels = &sweep.answer.levels;
    let rows = sweep.levels().into_iter().filter_map(|level| {
        let is_own = |place: u32| std::ptr::eq(&levels[place as usize], level);
        let row = relative.levels.iter().find(|row| is_own(row.level));
        let is_base = relative.levels.iter().any(|row| is_own(row.base));
        (row.is_some() || is_base).then(|| cells(sweep, level, row))
    });
    Table::new("Levels relative to the base", columns, rows.collect())
}

/// A level with what it is relative to its base; a base has its values alone.
fn cells(sweep: &Sweep<'_>, level: &Level, row: Option<&AgainstBase>) -> Vec<Cell> {
    let keys = sweep.keys();
    let mut cells: Vec<Cell> = keys.iter().map(|key| sweep.key_cell(key, level)).collect();
    cells.push(Quantity::per_second(level.rate_per_s.value).into());
    cells.extend(RATIOS.map(|(statistic, ..)| ratio_of(row, statistic)));
    cells.extend(DEMANDS.into_iter().flat_map(|(name, ..)| {
        let own = level.demands.iter().find(|demand| demand.name == name);
        let own = own.map(|demand| seconds(demand.demand_s));
        let demand = row.and_then(|row| row.demands.iter().find(|demand| demand.name == name));
        [
            Cell::known(own),
            demand.map_or(Cell::default(), demand_ratio),
        ]
    }));
    cells.push(match row {
        None => Cell::new("base", Tone::Soft),
        Some(row) => explained(row),
    });
    cells
}

fn ratio_of(row: Option<&AgainstBase>, statistic: Statistic) -> Cell {
    let mut comparisons = row.into_iter().flat_map(|row| &row.comparisons);
    let Some(found) = comparisons.find(|one| one.statistic == statistic) else {
        return Cell::default();
    };
    let tone = match found.verdict {
        ComparisonVerdict::Faster => Tone::Strong,
        ComparisonVerdict::Slower => Tone::Alarm,
        ComparisonVerdict::NoDifferenceLargerThan { .. } | ComparisonVerdict::NotEnoughData => {
            Tone::Plain
        }
    };
    Cell::new(format!("{:.3}", found.ratio.value), tone).with_detail(Some(ratios::range(found)))
}

fn explained(row: &AgainstBase) -> Cell {
    let text = match &row.explanation {
        Some(Explanation::Demand { name }) => {
            let demand = row.demands.iter().find(|demand| demand.name == *name);
            let change = demand.map(|demand| percent(&demand.ratio));
            format!("{name} {}", change.unwrap_or_default())
        }
        Some(Explanation::NoDemand) => "no demand".to_owned(),
        Some(Explanation::NotWatched) => "server not watched".to_owned(),
        None if row.comparisons.is_empty() => "too short to tell".to_owned(),
        None => "no difference for certain".to_owned(),
    };
    Cell::new(text, Tone::Soft)
}

/// `+8.0 %`.
fn percent(ratio: &Figure) -> String {
    let sign = if ratio.value >= 1.0 { "+" } else { "−" };
    format!("{sign}{}", Quantity::ratio((ratio.value - 1.0).abs()))
}

/// The figure that decides of each level, around 1.
fn chart(sweep: &Sweep<'_>, relative: &Relative) -> Option<RowsChart> {
    let levels = &sweep.answer.levels;
    let decisions = relative.levels.iter().filter_map(|row| {
        let level = &levels[row.level as usize];
        Some((level, decision(row, level.offered_rate_per_s.is_some())?))
    });
    let decisions: Vec<_> = decisions.collect();
    let (_, first) = decisions.first()?;
    let title = format!("Relative to the base: {}", statistic(first.statistic));
    let values = decisions
        .iter()
        .map(|(level, found)| ratios::row_value(sweep.name(level), found));
    Some(ratios::chart(
        &title,
        "Each level divided by the base, with its 95 % interval. Of rates more is better, of times less.",
        "level divided by base",
        0.0,
        values.collect(),
    ))
}
