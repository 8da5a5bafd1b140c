//! Reports of a suite: one table over all workloads and settings, and the effect of the settings.

use super::figure::{TOO_FEW_BEYOND, cell, interval_or_why, no_interval_of};
use super::levels::key_column;
use super::parts::Parts;
use super::relative::{self, Levels};
use super::sweep_charts::figure_rows;
use crate::caveat::{CaveatBook, Topic};
use crate::costs;
use crate::facts;
use crate::page::rows::RowsChart;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{self, Fact, Figure, Section, charts_of};
use crate::run::answer::in_brackets;
use crate::terms::terms;
use crate::texts::short;
use dyno_analyze::experiment::sweep::version;
use dyno_analyze::uncertainty::series::MIN_BEYOND_PERCENTILE;
use dyno_record::experiment::{
    self, Experiment, Level, PROGRAM, SuiteAnswer, SuiteLoad, SuiteOperation, SuiteRow, WORKLOAD,
};
use dyno_record::plan::RecordedPlan;
use dyno_record::quantity::Quantity;

/// Percentiles of the table, with their column ranks.
const PERCENTILES: [(&str, u8); 3] = [("p50", 100), ("p95", 120), ("p99", 170)];

/// All parts of the page of a suite.
pub(super) fn parts(experiment: &Experiment, answer: &SuiteAnswer, book: &CaveatBook) -> Parts {
    let suite = Suite { experiment, answer, book };
    Parts {
        headline: suite.headline(),
        facts: workloads(experiment),
        sections: std::iter::once(suite.section())
            .chain(suite.relative_section())
            .chain(suite.costs_section())
            .collect(),
        definitions: match answer.relative {
            Some(_) => terms(&["suite", "interval", "share", "base"]),
            None => terms(&["suite", "interval", "share"]),
        },
    }
}

/// The sentence that answers the question of a suite.
pub(super) fn sentence(experiment: &Experiment, answer: &SuiteAnswer, book: &CaveatBook) -> String {
    Suite { experiment, answer, book }.sentence()
}

/// The plans of all workloads, one below the other; `None` for an experiment with one workload.
pub(super) fn plans(experiment: &Experiment) -> Option<String> {
    let texts: Vec<String> = experiment.options.plans.values().map(facts::plan_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The plans of all workloads as recorded.
pub(super) fn recorded_plans(experiment: &Experiment) -> Option<Vec<RecordedPlan>> {
    let plans = &experiment.options.plans;
    (!plans.is_empty()).then(|| plans.values().map(RecordedPlan::new).collect())
}

/// Names of the workloads in the order of the plans; empty for an experiment with one workload.
pub(super) fn workload_names(experiment: &Experiment) -> Vec<&String> {
    experiment.options.plans.keys().collect()
}

/// The mix of each workload.
pub(super) fn workloads(experiment: &Experiment) -> Vec<Fact> {
    let plans = experiment.options.plans.iter();
    plans
        .map(|(name, plan)| {
            let plan = RecordedPlan::new(plan);
            let keys = facts::keys(&plan);
            let joint = if keys.is_empty() { "" } else { ", keys " };
            Fact::new(name.clone(), format!("{}{joint}{keys}", facts::mix(&plan)))
        })
        .collect()
}

/// The 99th percentile of the most frequent operation, and why it has no interval if it has none.
fn main_p99(row: &SuiteRow) -> Option<(&String, &experiment::Figure, &'static str)> {
    let (name, operation) = row.operations.iter().max_by_key(|(_, one)| one.count)?;
    let figure = operation.response_us.get("p99")?;
    let beyond = operation.count as f64 * 0.01;
    let why = match beyond < MIN_BEYOND_PERCENTILE {
        true => TOO_FEW_BEYOND,
        false => no_interval_of(&row.level),
    };
    Some((name, figure, why))
}

/// A suite with the labels of its rows.
struct Suite<'a> {
    experiment: &'a Experiment,
    answer: &'a SuiteAnswer,
    book: &'a CaveatBook,
}

/// Keys, other than the workload, that distinguish rows.
pub(super) fn keys(experiment: &Experiment) -> Vec<&str> {
    let axes = experiment.axes.iter();
    let axes = axes.filter(|axis| axis.key != WORKLOAD && axis.values.len() > 1);
    axes.map(|axis| axis.key.as_str()).collect()
}

impl Suite<'_> {
    fn rows(&self) -> impl Iterator<Item = &SuiteRow> + Clone {
        self.answer.rows.iter()
    }

    /// The value of a key; for a program its own name and version if they distinguish the programs.
    fn value(&self, key: &str, level: &Level) -> String {
        match (key, version(self.rows().map(|row| &row.level), level)) {
            (PROGRAM, Some(version)) => version.to_owned(),
            (key, _) => level.settings.get(key).cloned().unwrap_or_default(),
        }
    }

    fn values(&self, level: &Level) -> Vec<String> {
        let keys = keys(self.experiment);
        keys.iter().map(|key| self.value(key, level)).collect()
    }

    /// `a`, or `a, replica-set=3` if settings are compared.
    fn name(&self, level: &Level) -> String {
        let workload = level.workload.clone().unwrap_or_default();
        std::iter::once(workload).chain(self.values(level)).collect::<Vec<_>>().join(", ")
    }

    fn cells(&self, level: &Level) -> Vec<Cell> {
        let workload = level.workload.clone().unwrap_or_default();
        let values = self.values(level).into_iter().map(Cell::from);
        std::iter::once(Cell::new(workload, Tone::Strong)).chain(values).collect()
    }

    fn columns(&self) -> Vec<Column> {
        let keys = keys(self.experiment);
        let keys = keys.iter().map(|key| key_column(key));
        std::iter::once(Column::text("workload")).chain(keys).collect()
    }

    /// Rate and p99 of the only row, or the highest and the lowest rate.
    fn sentence(&self) -> String {
        let rate = |row: &SuiteRow| {
            let figure = &row.level.rate_per_s;
            let range = in_brackets(figure, Quantity::per_second).unwrap_or_default();
            format!("{}{range}", Quantity::per_second(figure.value))
        };
        match (self.answer.rows.as_slice(), self.highest(), self.lowest()) {
            ([row], ..) => {
                let runs = match row.level.runs.len() {
                    0 | 1 => String::new(),
                    runs => format!(" over {runs} runs"),
                };
                let p99 = main_p99(row).map(|(name, figure, why)| {
                    let range = in_brackets(figure, Quantity::microseconds);
                    let range = range.unwrap_or_else(|| format!(" (no interval: {why})"));
                    let value = Quantity::microseconds(figure.value);
                    format!("; {} p99 {value}{range}", facts::operation_label(name))
                });
                page::sentence(&format!("{}{runs}{}", rate(row), p99.unwrap_or_default()))
            }
            (_, Some(highest), Some(lowest)) => page::sentence(&format!(
                "`{}` has the highest rate, {}; `{}` the lowest, {}",
                self.name(&highest.level),
                rate(highest),
                self.name(&lowest.level),
                rate(lowest)
            )),
            _ => String::new(),
        }
    }

    fn highest(&self) -> Option<&SuiteRow> {
        self.rows().max_by(|a, b| a.level.rate_per_s.value.total_cmp(&b.level.rate_per_s.value))
    }

    fn lowest(&self) -> Option<&SuiteRow> {
        self.rows().min_by(|a, b| a.level.rate_per_s.value.total_cmp(&b.level.rate_per_s.value))
    }

    /// The 99th percentile of the only row.
    fn p99(&self) -> Option<Figure> {
        let [row] = self.answer.rows.as_slice() else { return None };
        let (name, figure, why) = main_p99(row)?;
        let range = interval_or_why(figure, Quantity::microseconds, why);
        let note = format!("{}, {range}", facts::operation_label(name));
        let value = Quantity::microseconds(figure.value);
        let marks = self.book.marks(Topic::Latency, None);
        Some(Figure::new("p99 response time", value).with_note(note).marked(&marks))
    }

    /// The highest and the lowest rate, and the smallest share below the requested time.
    fn headline(&self) -> Vec<Figure> {
        let of_rate = |(label, row): (&str, Option<&SuiteRow>)| {
            let level = &row?.level;
            let range =
                interval_or_why(&level.rate_per_s, Quantity::per_second, no_interval_of(level));
            let figure = Figure::new(label, Quantity::per_second(level.rate_per_s.value));
            let note = format!("{}, {range}", self.name(level));
            Some(figure.with_note(note).marked(&self.book.marks(Topic::Rate, None)))
        };
        let has_several = self.answer.rows.len() > 1;
        let rates = [
            (if has_several { "highest rate" } else { "rate" }, self.highest()),
            ("lowest rate", self.lowest().filter(|_| has_several)),
        ];
        let rates = rates.into_iter().filter_map(of_rate);
        rates.chain(self.p99()).chain(self.smallest_share()).collect()
    }

    fn smallest_share(&self) -> Option<Figure> {
        let of_row = |row| {
            let SuiteRow { level, operations }: &SuiteRow = row;
            operations
                .iter()
                .filter_map(move |(name, one)| Some((level, name, one, one.below_ratio?)))
        };
        let shares = self.rows().flat_map(of_row);
        let (level, name, one, share) =
            shares.min_by(|one, other| one.3.value.total_cmp(&other.3.value))?;
        let rarer = share.value.min(1.0 - share.value) * one.count as f64;
        let why = if rarer < MIN_BEYOND_PERCENTILE {
            "too few values on one side of it"
        } else {
            no_interval_of(level)
        };
        let range = interval_or_why(&share, Quantity::ratio, why);
        let label = format!("smallest share {}", self.below()?);
        let note = format!("{} of {}, {range}", facts::operation_label(name), self.name(level));
        let figure = Figure::new(label, Quantity::ratio(share.value)).with_note(note);
        Some(figure.marked(&self.book.marks(Topic::Latency, None)))
    }

    /// `below 1 ms`.
    fn below(&self) -> Option<String> {
        let limit = Quantity::microseconds(self.answer.below_us?).to_string();
        Some(format!("below {}", short(&limit)))
    }

    fn section(&self) -> Section {
        let mut notes = vec![
            "The 95 % interval is below each value. It rests on the variation between the runs of a row, or within the \
             run if there is only one; values without an interval have too little data."
                .to_owned(),
            "Rates cover all operations of a workload, response times each kind of operation. A \
             read-modify-write also counts as a read and an update. Maxima and errors cover the whole \
             phase."
                .to_owned(),
        ];
        if !self.answer.loads.is_empty() {
            let text = "The load phase is the first of each round: its rate counts documents, its times are for insert \
                        commands.";
            notes.push(text.to_owned());
        }
        Section {
            title: "Workloads".into(),
            charts: charts_of(self.charts()),
            tables: vec![self.table()],
            notes,
            ..Section::default()
        }
    }

    fn charts(&self) -> Vec<RowsChart> {
        let rates = self.rows().map(|row| (self.name(&row.level), row.level.rate_per_s, false));
        let times = |title, of: fn(&SuiteOperation) -> Option<experiment::Figure>| {
            let rows = self.rows().flat_map(|row| {
                row.operations.iter().filter_map(move |(name, one)| {
                    let operation = facts::operation_label(name);
                    Some((format!("{operation} of {}", self.name(&row.level)), of(one)?, false))
                })
            });
            figure_rows((title, "response time"), Quantity::microseconds, rows)
        };
        vec![
            figure_rows(("Rate", "operations per second"), Quantity::per_second, rates),
            times("Mean response time", |one| Some(one.response_mean_us)),
            times("99th percentile of the response time", |one| {
                one.response_us.get("p99").copied()
            }),
        ]
    }

    fn table(&self) -> Table {
        let rate_marks = self.book.marks(Topic::Rate, None);
        let latency_marks = self.book.marks(Topic::Latency, None);
        let mut columns = self.columns();
        columns.extend([
            Column::number("runs", 20),
            Column::number("rate", 200).marked(&rate_marks),
            Column::text("operation"),
            Column::number("mean", 180).marked(&latency_marks),
        ]);
        columns.extend(
            PERCENTILES.map(|(name, rank)| Column::number(name, rank).marked(&latency_marks)),
        );
        columns.extend([
            Column::number("max", 110).marked(&latency_marks),
            Column::number(self.below().unwrap_or_default(), 150),
            Column::number("errors", 140).marked(&self.book.marks(Topic::Errors, None)),
            Column::text("notes"),
        ]);
        let loads = self.answer.loads.iter().map(|load| self.load_row(load));
        let rows = self.rows().flat_map(|row| self.level_rows(row));
        Table::new("Workloads", columns, loads.chain(rows).collect())
    }

    /// The number of runs, if any row has more than one.
    fn runs(&self, runs: usize) -> Cell {
        let is_repeated = self.rows().any(|row| row.level.runs.len() > 1);
        Cell::known(is_repeated.then_some(runs))
    }

    fn load_row(&self, load: &SuiteLoad) -> Vec<Cell> {
        let mut cells = vec![Cell::new("load", Tone::Soft)];
        let same = self.rows().find(|row| row.level.settings == load.settings);
        cells.extend(keys(self.experiment).into_iter().map(|key| match same {
            Some(row) => self.value(key, &row.level).into(),
            None => Cell::default(),
        }));
        let documents = load.documents_per_command;
        let operation = if documents > 1.0 {
            format!("insert of {}", Quantity::plain(documents).brief())
        } else {
            "insert".to_owned()
        };
        cells.extend([
            self.runs(load.runs.len()),
            cell(Some(&load.documents_per_s), Quantity::per_second),
            operation.into(),
        ]);
        cells.extend(operation_cells(&load.commands));
        cells.push(Cell::default());
        cells
    }

    /// One row per kind of operation; values that are the same for all appear only in the first row.
    fn level_rows(&self, row: &SuiteRow) -> Vec<Vec<Cell>> {
        let level = &row.level;
        let of_operation = |(number, (name, one)): (usize, (&String, &SuiteOperation))| {
            let is_first = number == 0;
            let mut cells = self.cells(level);
            cells.extend([
                self.runs(level.runs.len()),
                cell(Some(&level.rate_per_s), Quantity::per_second),
            ]);
            if !is_first {
                cells.fill(Cell::default());
            }
            cells.push(facts::operation_label(name).into());
            cells.extend(operation_cells(one));
            cells.push(if is_first { notes(level) } else { Cell::default() });
            cells
        };
        row.operations.iter().enumerate().map(of_operation).collect()
    }

    fn costs_section(&self) -> Option<Section> {
        let rows: Vec<costs::Row<'_>> =
            self.rows().map(|row| (self.cells(&row.level), row.level.costs.as_slice())).collect();
        costs::of_rows(&self.columns(), &rows, costs::currency(self.experiment))
    }

    fn relative_section(&self) -> Option<Section> {
        let levels: Vec<&Level> = self.rows().map(|row| &row.level).collect();
        let levels = Levels {
            relative: self.answer.relative.as_ref()?,
            order: levels.clone(),
            levels,
            columns: self.columns(),
            cells: &|level| self.cells(level),
            name: &|level| self.name(level),
        };
        let title = "Relative to the base".to_owned();
        Some(relative::of_levels(title, "the same workload", &levels))
    }
}

fn operation_cells(one: &SuiteOperation) -> Vec<Cell> {
    let time = |figure: Option<&experiment::Figure>| cell(figure, Quantity::microseconds);
    let mut cells = vec![time(Some(&one.response_mean_us))];
    cells.extend(PERCENTILES.map(|(name, _)| time(one.response_us.get(name))));
    let tone = if one.errors > 0 { Tone::Alarm } else { Tone::Soft };
    cells.extend([
        Quantity::microseconds(one.max_us).into(),
        cell(one.below_ratio.as_ref(), Quantity::ratio),
        Cell::new(Quantity::count(one.errors), tone),
    ]);
    cells
}

fn notes(level: &Level) -> Cell {
    match (level.generator_bound, level.unsteady) {
        (true, _) => Cell::new("generator-bound", Tone::Alarm),
        (false, true) => Cell::new("not steady", Tone::Doubt),
        (false, false) => Cell::default(),
    }
}
