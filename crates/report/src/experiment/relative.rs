//! A sweep relative to one of its values: rates, times and service demands of each level divided by the base.

use super::figure::seconds;
use super::levels::{Sweep, key_column};
use super::ratios::{self, basis, demand_ratio, statistic};
use crate::page::rows::RowsChart;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Section, charts_of};
use dyno_analyze::experiment::figures::resource_name;
use dyno_analyze::experiment::relative::decision;
use dyno_record::experiment::{
    AgainstBase, Comparison, ComparisonVerdict, Explanation, Figure, Level, Relative, Statistic,
};
use dyno_record::model::ResourceKind;
use dyno_record::quantity::Quantity;

/// Figures of the table, with their column ranks.
const RATIOS: [(Statistic, &str, u8); 5] = [
    (Statistic::Rate, "rate / base", 210),
    (Statistic::MeanTime, "mean / base", 140),
    (Statistic::Percentile { percent: 50.0 }, "p50 / base", 100),
    (Statistic::Percentile { percent: 95.0 }, "p95 / base", 110),
    (Statistic::Percentile { percent: 99.0 }, "p99 / base", 180),
];

/// Resources of the table, with the titles of their demand and its ratio, and their column ranks.
const DEMANDS: [(&str, [&str; 2], u8); 4] = [
    (resource_name(ResourceKind::ServerCpu), ["server CPU time", "server CPU / base"], 190),
    (
        resource_name(ResourceKind::ServerHostCpu),
        ["CPU time of the server's machine", "its CPUs / base"],
        185,
    ),
    (resource_name(ResourceKind::Disk), ["disk time", "disk / base"], 150),
    (resource_name(ResourceKind::ClientCpu), ["client CPU time", "client CPU / base"], 90),
];

/// Levels relative to others, with their labels.
pub(super) struct Levels<'a> {
    pub(super) relative: &'a Relative,
    /// Indexed by the numbers in `relative`.
    pub(super) levels: Vec<&'a Level>,
    /// In table order.
    pub(super) order: Vec<&'a Level>,
    /// Columns that identify levels.
    pub(super) columns: Vec<Column>,
    /// The cells of these columns.
    pub(super) cells: &'a dyn Fn(&Level) -> Vec<Cell>,
    /// The label of a level.
    pub(super) name: &'a dyn Fn(&Level) -> String,
}

/// The section of a sweep; `None` without a base.
pub(super) fn section(sweep: &Sweep<'_>) -> Option<Section> {
    let keys = sweep.keys();
    let levels = Levels {
        relative: sweep.answer.relative.as_ref()?,
        levels: sweep.answer.levels.iter().collect(),
        order: sweep.levels(),
        columns: keys.iter().map(|key| key_column(key)).collect(),
        cells: &|level| keys.iter().map(|key| sweep.key_cell(key, level)).collect(),
        name: &|level| sweep.name(level),
    };
    let same = "the same other settings";
    Some(of_levels(sweep.title("Relative to the base"), same, &levels))
}

/// The section of any levels. `same` is the common property of a level and its base.
pub(super) fn of_levels(title: String, same: &str, levels: &Levels<'_>) -> Section {
    let relative = levels.relative;
    let comparisons = || relative.levels.iter().flat_map(|row| &row.comparisons);
    let first: Vec<Comparison> = comparisons().take(1).copied().collect();
    let base = format!("{} = {}", relative.base.key, relative.base.value);
    let mut notes = vec![
        "The 95 % interval is below each ratio; an interval that contains 1 shows no certain difference. Runs of the same round \
         are compared as a pair. Times are service demands per operation."
            .to_owned(),
    ];
    notes.extend(Some(basis(&first)).filter(|basis| !basis.is_empty()));
    Section {
        title: title.into(),
        lead: format!("Everything is divided by the value with {base} and {same}."),
        charts: charts_of(chart(levels)),
        tables: vec![table(levels)],
        notes,
        ..Section::default()
    }
}

fn table(levels: &Levels<'_>) -> Table {
    let relative = levels.relative;
    let mut columns = levels.columns.clone();
    columns.push(Column::number("rate", 200));
    columns.extend(RATIOS.map(|(_, title, rank)| Column::number(title, rank)));
    columns.extend(DEMANDS.into_iter().flat_map(|(_, [own, ratio], rank)| {
        [Column::number(own, rank - 1), Column::number(ratio, rank)]
    }));
    columns.push(Column::text("explained by"));
    let rows = levels.order.iter().filter_map(|level| {
        let is_own = |place: u32| std::ptr::eq(levels.levels[place as usize], *level);
        let row = relative.levels.iter().find(|row| is_own(row.level));
        let is_base = relative.levels.iter().any(|row| is_own(row.base));
        (row.is_some() || is_base).then(|| cells(levels, level, row))
    });
    Table::new("Levels relative to the base", columns, rows.collect())
}

/// The cells of a level with its ratios to the base; a base has only its values.
fn cells(levels: &Levels<'_>, level: &Level, row: Option<&AgainstBase>) -> Vec<Cell> {
    let mut cells = (levels.cells)(level);
    cells.push(Quantity::per_second(level.rate_per_s.value).into());
    cells.extend(RATIOS.map(|(statistic, ..)| ratio_of(row, statistic)));
    cells.extend(DEMANDS.into_iter().flat_map(|(name, ..)| {
        let own = level.demands.iter().find(|demand| demand.name == name);
        let own = own.map(|demand| seconds(demand.demand_s));
        let demand = row.and_then(|row| row.demands.iter().find(|demand| demand.name == name));
        [Cell::known(own), demand.map_or(Cell::default(), demand_ratio)]
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
        ComparisonVerdict::NoDifferenceLargerThan { .. }
        | ComparisonVerdict::NotEnoughData
        | ComparisonVerdict::NotComparable => Tone::Plain,
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
        None if row.comparisons.is_empty() => "too short to decide".to_owned(),
        None => "no certain difference".to_owned(),
    };
    Cell::new(text, Tone::Soft)
}

/// `+8.0 %`.
fn percent(ratio: &Figure) -> String {
    let sign = if ratio.value >= 1.0 { "+" } else { "−" };
    format!("{sign}{}", Quantity::ratio((ratio.value - 1.0).abs()))
}

/// The deciding figure of each level, on an axis around 1.
fn chart(levels: &Levels<'_>) -> Option<RowsChart> {
    let decisions = levels.relative.levels.iter().filter_map(|row| {
        let level = levels.levels[row.level as usize];
        Some((level, decision(row, level.offered_rate_per_s.is_some())?))
    });
    let decisions: Vec<_> = decisions.collect();
    let (_, first) = decisions.first()?;
    let title = format!("Relative to the base: {}", statistic(first.statistic));
    let values =
        decisions.iter().map(|(level, found)| ratios::row_value((levels.name)(level), found));
    Some(ratios::chart(
        &title,
        "Each level divided by the base, with its 95 % interval. For rates more is better, for times less.",
        ("level divided by base", ratios::short),
        0.0,
        values.collect(),
    ))
}
