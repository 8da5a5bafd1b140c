//! A series of runs over time with its level shifts.

use super::picture::{self, PictureChange, PictureRun, SeriesPicture};
use crate::costs;
use crate::error::ReportError;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Definition, Fact, Figure, Finding, Page, Picture, Section, charts_of};
use crate::render;
use dyno_analyze::change_point::ChangePoint;
use dyno_analyze::experiment::history::{History, HistoryRun, HistoryStatistic};
use dyno_record::experiment::CostKind;
use dyno_record::quantity::{Quantity, Unit};
use std::fmt::Write as _;

/// Tables for a terminal.
pub fn human(history: &History) -> String {
    let mut text = format!("{}: {} runs\n\n", history.name, history.runs.len());
    text.push_str(&format!("{:<22}", "start"));
    for one in &history.statistics {
        let _ = write!(text, "{:>18}", one.name);
    }
    let kinds = kinds(history);
    for kind in &kinds {
        let _ = write!(text, "{:>24}", costs::label_of_one(*kind));
    }
    text.push_str("  run\n");
    for (place, run) in history.runs.iter().enumerate() {
        let _ = write!(text, "{:<22}", run.started_at);
        for (value, one) in run.values.iter().zip(&history.statistics) {
            let changed = one.changes.iter().any(|change| change.position == place);
            let mark = if changed { "*" } else { " " };
            let _ = write!(text, "{:>17}{mark}", level(*value).to_string());
        }
        for kind in &kinds {
            let _ = write!(text, "{:>24}", cost(run, *kind));
        }
        let _ = writeln!(text, "  {}", run.directory);
    }
    text.push('\n');
    for line in findings(history) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Tables as Markdown.
pub fn markdown(history: &History) -> String {
    let mut text = format!("# History of `{}`\n\n{} runs.\n\n", history.name, history.runs.len());
    for line in findings(history) {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n| Start | Run |");
    for one in &history.statistics {
        let _ = write!(text, " {} ({}) |", one.name, one.unit);
    }
    let kinds = kinds(history);
    for kind in &kinds {
        let _ = write!(text, " {} |", costs::label_of_one(*kind));
    }
    text.push_str("\n|---|---|---:|---:|---:|---:|");
    text.push_str(&"---:|".repeat(kinds.len()));
    text.push('\n');
    for (place, run) in history.runs.iter().enumerate() {
        let _ = write!(text, "| {} | `{}` |", run.started_at, run.directory);
        for (value, one) in run.values.iter().zip(&history.statistics) {
            let changed = one.changes.iter().any(|change| change.position == place);
            let _ = if changed {
                write!(text, " **{}** |", level(*value))
            } else {
                write!(text, " {} |", level(*value))
            };
        }
        for kind in &kinds {
            let _ = write!(text, " {} |", cost(run, *kind));
        }
        text.push('\n');
    }
    if let Some(section) = all_costs(history) {
        text.push_str(&render::markdown_section(&section));
    }
    text
}

/// The kinds of costs in the main table, if a run has them. A separate section lists all kinds.
fn kinds(history: &History) -> Vec<CostKind> {
    let is_known = |kind: &CostKind| history.runs.iter().any(|run| run.cost(*kind).is_some());
    [CostKind::ServerCpu, CostKind::Price].into_iter().filter(is_known).collect()
}

fn cost(run: &HistoryRun, kind: CostKind) -> String {
    costs::in_short(run.cost(kind), kind, run.currency.as_deref())
}

/// One sentence per change, and for runs that were left out.
fn findings(history: &History) -> Vec<String> {
    let mut lines = changes(history);
    lines.extend(baseline(history));
    lines.extend(other_load(history));
    lines.extend(left_out(history));
    lines
}

/// The date from which levels are judged, unless all are.
fn baseline(history: &History) -> Option<String> {
    let run = history.runs.get(history.since?)?;
    Some(format!("levels before {} (`{}`) are shown and not judged", run.started_at, run.directory))
}

/// Runs during other load on their machine.
fn other_load(history: &History) -> Option<String> {
    let runs = history.runs.iter().filter(|run| run.other_load);
    let names: Vec<String> = runs.map(|run| format!("`{}`", run.directory)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "caveat: other processes used the machine (the check `other_load` fails) before {} of {} runs: {}",
            names.len(),
            history.runs.len(),
            names.join(", ")
        )
    })
}

fn left_out(history: &History) -> Vec<String> {
    history.left_out.iter().map(|what| format!("left out: {what}")).collect()
}

/// Prefix of a change that leads to exit status 1.
const REGRESSION: &str = "regression: ";

/// One sentence per change.
fn changes(history: &History) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &history.statistics {
        for change in &one.changes {
            let mark = if is_whole_loss(one, change) { REGRESSION } else { "" };
            let run = &history.runs[change.position];
            lines.push(format!(
                "{mark}{} changed by {} at {} (`{}`): {} before, {} after (p = {:.3})",
                one.name,
                relative_change(change.change_ratio),
                run.started_at,
                run.directory,
                quantity(one)(change.before_mean),
                quantity(one)(change.after_mean),
                change.p_value_ratio
            ));
        }
        lines.extend(loss_in_parts(history, one));
    }
    if history.is_too_short() {
        lines.push(format!(
            "too few runs to distinguish a change from chance: {} of the {} that are needed",
            history.runs.len(),
            history.fewest_runs
        ));
    } else if lines.is_empty() {
        lines.push(format!(
            "no change of level, at {} % of false alarms per figure",
            history.significance_ratio * 100.0
        ));
    }
    lines
}

/// Whether a change led from the best level to the current one.
fn is_whole_loss(one: &HistoryStatistic, change: &ChangePoint) -> bool {
    let is_last = one.changes.last() == Some(change);
    is_last && one.loss.is_some_and(|loss| loss.position == change.position)
}

/// A sentence about a loss since which the level has changed again.
fn loss_in_parts(history: &History, one: &HistoryStatistic) -> Option<String> {
    let loss = one.loss?;
    let is_whole = one.changes.iter().any(|change| is_whole_loss(one, change));
    let run = &history.runs[loss.position];
    (!is_whole).then(|| {
        format!(
            "{REGRESSION}{} is {} compared with its best level, which it left at {} (`{}`): {} then, {} now",
            one.name,
            relative_change(loss.change_ratio),
            run.started_at,
            run.directory,
            quantity(one)(loss.best_mean),
            quantity(one)(loss.present_mean)
        )
    })
}

/// One picture per figure, one below the other, as an SVG file.
pub fn svg(history: &History) -> String {
    picture::file(&pictures(history))
}

/// A page with one picture per figure.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of a history causes them.
pub fn html(history: &History) -> Result<String, ReportError> {
    let label = match (history.has_regression(), history.is_too_short()) {
        (true, _) => "regression",
        (false, true) => "too few runs",
        (false, false) => "no regression",
    };
    let title = format!("History of workload {}", history.name);
    let question =
        format!("Where did the level of {} runs of `{}` change?", history.runs.len(), history.name);
    let pictures = pictures(history);
    render::html(&Page {
        headline: figures(history),
        findings: sentences(history),
        sections: [Some(series(&pictures)), Some(table(history)), all_costs(history)]
            .into_iter()
            .flatten()
            .collect(),
        method: Page::method_of(facts(history)),
        definitions: DEFINITIONS.to_vec(),
        ..Page::new("history", title, question, label)
    })
}

/// A level in a table with the unit in the header.
fn level(value: f64) -> Quantity {
    Quantity::new(value, Unit::Parameter)
}

fn relative_change(ratio: f64) -> Quantity {
    Quantity::ratio(ratio).signed()
}

fn quantity(one: &HistoryStatistic) -> fn(f64) -> Quantity {
    match one.unit.as_str() {
        "µs" => Quantity::microseconds,
        _ => Quantity::per_second,
    }
}

/// The level of each figure since its last change.
fn figures(history: &History) -> Vec<Figure> {
    let level = |(place, one): (usize, &HistoryStatistic)| {
        let last = one.changes.last();
        let since = last.map_or(0, |change| change.position);
        let values: Vec<f64> = history.runs[since..].iter().map(|run| run.values[place]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let since = |ratio, position: usize| {
            format!("{} since {}", relative_change(ratio), day(&history.runs[position]))
        };
        let note = match (one.loss, last) {
            (Some(loss), _) => since(loss.change_ratio, loss.position),
            (None, Some(change)) => since(change.change_ratio, change.position),
            (None, None) if history.is_too_short() => "too few runs to decide".to_owned(),
            (None, None) => "no change".to_owned(),
        };
        Figure {
            alarming: one.regression,
            ..Figure::new(one.name.clone(), quantity(one)(mean)).with_note(note)
        }
    };
    history.statistics.iter().enumerate().map(level).collect()
}

/// Date of a run.
fn day(run: &HistoryRun) -> String {
    run.started_at.chars().take(10).collect()
}

fn sentences(history: &History) -> Vec<Finding> {
    let finding = |line: String| {
        let (kind, text) = match line.strip_prefix(REGRESSION) {
            Some(rest) => ("warning", rest.to_owned()),
            None if history.is_too_short() => ("warning", line),
            None => ("finding", line),
        };
        Finding::new(kind, &text)
    };
    changes(history).into_iter().map(finding).collect()
}

fn series(pictures: &[SeriesPicture]) -> Section {
    let picture = |one: &SeriesPicture| Picture {
        title: one.title.clone(),
        caption: String::new(),
        svg: one.inline(),
    };
    Section {
        title: "Series".into(),
        lead: "Each point is a run, in order of time. The lines are the mean levels between the changes. An axis begins at 0 if the \
               values are near 0.".into(),
        charts: charts_of(pictures.iter().map(picture)),
        ..Section::default()
    }
}

/// Each series with its title, as a separate SVG document.
pub fn drawings(history: &History) -> Vec<(String, String)> {
    let drawing = |one: SeriesPicture| {
        let svg = picture::file(std::slice::from_ref(&one));
        (one.title, svg)
    };
    pictures(history).into_iter().map(drawing).collect()
}

fn pictures(history: &History) -> Vec<SeriesPicture> {
    let days: Vec<String> = history.runs.iter().map(day).collect();
    let is_one_day = days.iter().all(|day| Some(day) == days.first());
    let label = |run: &HistoryRun| {
        if is_one_day { run.started_at.chars().skip(11).take(5).collect() } else { day(run) }
    };
    let picture = |(place, one): (usize, &HistoryStatistic)| SeriesPicture {
        title: one.name.clone(),
        quantity: quantity(one),
        runs: history
            .runs
            .iter()
            .map(|run| PictureRun {
                value: run.values[place],
                label: label(run),
                what: format!("{}, {}", run.started_at, run.directory),
            })
            .collect(),
        changes: one
            .changes
            .iter()
            .map(|change| PictureChange {
                position: change.position,
                is_worse: (change.change_ratio < 0.0) == one.larger_is_better,
                label: relative_change(change.change_ratio).to_string(),
            })
            .collect(),
    };
    history.statistics.iter().enumerate().map(picture).collect()
}

fn table(history: &History) -> Section {
    let mut columns = vec![Column::text("start"), Column::text("run")];
    columns.extend(history.statistics.iter().map(|one| Column::number(one.name.clone(), 100)));
    let kinds = kinds(history);
    columns.extend(kinds.iter().map(|kind| Column::number(costs::label_of_one(*kind), 90)));
    let row = |(place, run): (usize, &HistoryRun)| {
        let mut cells: Vec<Cell> =
            vec![Cell::new(run.started_at.clone(), Tone::Strong), run.directory.clone().into()];
        cells.extend(run.values.iter().zip(&history.statistics).map(|(value, one)| {
            let change = one.changes.iter().find(|change| change.position == place);
            let tone = match change {
                Some(_) => Tone::Strong,
                None => Tone::Plain,
            };
            Cell::new(quantity(one)(*value), tone).with_detail(
                change
                    .map(|change| format!("{} from here on", relative_change(change.change_ratio))),
            )
        }));
        cells.extend(kinds.iter().map(|kind| Cell::from(cost(run, *kind))));
        cells
    };
    Section {
        title: "Runs".into(),
        tables: vec![Table::new(
            "Runs",
            columns,
            history.runs.iter().enumerate().map(row).collect(),
        )],
        notes: baseline(history)
            .into_iter()
            .chain(other_load(history))
            .chain(left_out(history))
            .collect(),
        ..Section::default()
    }
}

/// All costs per operation of each run; `None` if none are known, or only the costs in the first table.
fn all_costs(history: &History) -> Option<Section> {
    let shown = kinds(history);
    let mut known = history.runs.iter().flat_map(|run| &run.costs);
    known.find(|cost| !shown.contains(&cost.kind))?;
    let rows = history.runs.iter().map(|run| {
        let key = Cell::new(run.started_at.clone(), Tone::Strong);
        (vec![key], run.costs.as_slice())
    });
    let rows: Vec<costs::Row<'_>> = rows.collect();
    let currency = history.runs.iter().find_map(|run| run.currency.as_deref());
    costs::of_rows(&[Column::text("start")], &rows, currency)
}

fn facts(history: &History) -> Vec<Fact> {
    let significance = Quantity::ratio(history.significance_ratio);
    vec![
        Fact::new("Runs", history.runs.len()),
        Fact::new("Change of no interest", Quantity::ratio(history.margin_ratio)),
        Fact::new(
            "False alarms",
            format!("{significance} of the series without a change, per figure"),
        ),
    ]
}

/// Terms used on the page of a history.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "change",
        meaning: "A place that splits the runs into two levels more clearly than nearly all random orders of the same runs \
                  (E-divisive means with a permutation test).",
    },
    Definition {
        term: "regression",
        meaning: "The current level of a figure is worse than its best earlier level by more than the change of no interest.",
    },
];
