//! A series of runs over time with its level shifts.

use crate::costs;
use crate::error::ReportError;
use crate::options::{PageFormat, RenderOptions};
use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Fact, Figure, Finding, Page, Section, charts_of};
use crate::render::show;
use crate::terms::terms;
use dyno_analyze::change_point::ChangePoint;
use dyno_analyze::experiment::history::{History, HistoryRun, HistoryStatistic};
use dyno_analyze::mean;
use dyno_record::experiment::CostKind;
use dyno_record::quantity::Quantity;

/// Renders a history. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of a history causes them.
pub fn render(
    history: &History,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    show(format, options, || page(history), || history)
}

/// The kinds of costs in the main table, if a run has them. A separate section lists all kinds.
fn kinds(history: &History) -> Vec<CostKind> {
    let is_known = |kind: &CostKind| history.runs.iter().any(|run| run.cost(*kind).is_some());
    [CostKind::ServerCpu, CostKind::Price].into_iter().filter(is_known).collect()
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
            "caveat: other processes used the machine (the check `other_load` fails) before {} of {}: {}",
            names.len(),
            Quantity::counted(history.runs.len() as u64, "run"),
            names.join(", ")
        )
    })
}

fn left_out(history: &History) -> Vec<String> {
    history.left_out.iter().map(|what| format!("left out: {what}")).collect()
}

/// Prefix of a change that leads to exit status 1.
const REGRESSION: &str = "regression: ";

fn is_regression(finding: &Finding) -> bool {
    finding.text.to_lowercase().starts_with(REGRESSION)
}

/// One sentence per change, at least one; a warning if it leads to exit status 1.
fn changes(history: &History) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in &history.statistics {
        for change in &one.changes {
            let (kind, mark) = match is_whole_loss(one, change) {
                true => ("warning", REGRESSION),
                false => ("finding", ""),
            };
            let run = &history.runs[change.position];
            let text = format!(
                "{mark}{} changed by {} at {} (`{}`): {} before, {} after (p = {:.3})",
                one.name,
                relative_change(change.change_ratio),
                run.started_at,
                run.directory,
                quantity(one)(change.before_mean),
                quantity(one)(change.after_mean),
                change.p_value_ratio
            );
            found.push(Finding::new(kind, &text));
        }
        found.extend(loss_in_parts(history, one).map(|text| Finding::new("warning", &text)));
    }
    if history.is_too_short() {
        let text = format!(
            "too few runs to distinguish a change from chance: {} of the {} that are needed",
            history.runs.len(),
            history.fewest_runs
        );
        found.push(Finding::new("warning", &text));
    } else if found.is_empty() {
        let text = format!(
            "no change of level, at {} % of false alarms per figure",
            history.significance_ratio * 100.0
        );
        found.push(Finding::new("finding", &text));
    }
    found
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

/// The page of a history, with a chart for each figure.
pub fn page(history: &History) -> Page {
    let label = match (history.has_regression(), history.is_too_short()) {
        (true, _) => "regression",
        (false, true) => "too few runs",
        (false, false) => "no regression",
    };
    let title = format!("History of workload {}", history.name);
    let runs = Quantity::counted(history.runs.len() as u64, "run");
    let question = format!("Where did the level of {runs} of `{}` change?", history.name);
    let sections = [Some(series(history)), Some(table(history)), all_costs(history)];
    let mut findings = changes(history);
    // A regression answers, or else the first change, or that there is none.
    let place = findings.iter().position(is_regression).unwrap_or(0);
    let answer = findings.remove(place).text;
    Page {
        answer,
        headline: figures(history),
        findings,
        sections: sections.into_iter().flatten().collect(),
        method: Page::method_of(facts(history)),
        definitions: terms(&["history"]),
        ..Page::new("history", title, question, label)
    }
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
        let mean = mean(&values);
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

/// Title of the column with the start of a run.
const START: &str = "start (UTC)";

/// The first column to leave out, because most names of runs contain the time.
fn start() -> Column {
    Column { rank: 10, ..Column::text(START) }
}

/// Start of a run to the minute, in UTC: `2026-11-28 16:03`.
fn minute(run: &HistoryRun) -> String {
    run.started_at.chars().take(16).collect::<String>().replace('T', " ")
}

/// Each figure over the runs, with the mean levels between its changes.
fn series(history: &History) -> Section {
    let plots = history.statistics.iter().enumerate();
    Section {
        title: "Series".into(),
        lead: "Each point is a run, in order of time. The lines are the mean levels between the changes.".into(),
        charts: charts_of(plots.map(|(place, one)| plot(history, place, one))),
        ..Section::default()
    }
}

fn plot(history: &History, place: usize, one: &HistoryStatistic) -> Plot {
    let values: Vec<f64> = history.runs.iter().map(|run| run.values[place]).collect();
    let changes = one.changes.iter();
    let positions = changes.clone().map(|change| change.position);
    let edges: Vec<usize> = [0].into_iter().chain(positions).chain([values.len()]).collect();
    let levels = edges.windows(2).flat_map(|edges| {
        let part = &values[edges[0]..edges[1]];
        let mean = mean(part);
        // A change lies between two runs.
        let (from, to) = (edges[0] as f64 + 0.5, edges[1] as f64 + 0.5);
        [(from, mean), (to.next_down(), mean)]
    });
    let runs = (1..).map(f64::from).zip(values.iter().copied());
    let marks = changes.map(|change| {
        let is_worse = (change.change_ratio < 0.0) == one.larger_is_better;
        let word = if is_worse { "worse" } else { "better" };
        let label = format!("{}, {word}", relative_change(change.change_ratio));
        PlotMark::vertical(label, change.position as f64 + 0.5)
    });
    let measure = if one.unit == "µs" { Measure::Time } else { Measure::Rate };
    Plot {
        id: format!("plot-series-{place}"),
        title: one.name.clone(),
        caption: String::new(),
        x: PlotAxis::linear("number of the run", Measure::Count),
        y: PlotAxis::linear("", measure),
        marks: marks.collect(),
        series: vec![
            PlotSeries::curve("level", Role::Model, Stroke::Line, levels),
            PlotSeries::curve("runs", Role::Measured, Stroke::Points, runs),
        ],
    }
}

fn table(history: &History) -> Section {
    let runs: Vec<(usize, &HistoryRun)> = history.runs.iter().enumerate().collect();
    let mut columns = Table::of(&runs)
        .with(start(), |(_, run)| Cell::new(minute(run), Tone::Strong))
        .number("number", 80, |(place, _)| place + 1)
        .text("run", |(_, run)| &run.directory);
    for (index, one) in history.statistics.iter().enumerate() {
        // The rate stays longest on a narrow terminal.
        columns = columns.number(&one.name, 140 - 10 * index as u8, |(place, run)| {
            let change = one.changes.iter().find(|change| change.position == *place);
            let tone = if change.is_some() { Tone::Strong } else { Tone::Plain };
            let detail = change.map(|change| relative_change(change.change_ratio).to_string());
            Cell::new(quantity(one)(run.values[index]), tone).with_detail(detail)
        });
    }
    for kind in kinds(history) {
        columns = columns.number(costs::label_of_one(kind), 90, |(_, run)| {
            costs::in_short(run.cost(kind), kind, run.currency.as_deref())
        });
    }
    let has_changes = history.statistics.iter().any(|one| !one.changes.is_empty());
    let of_details =
        has_changes.then(|| "A signed share at a figure is its change from here on.".to_owned());
    Section {
        title: "Runs".into(),
        tables: vec![columns.table("Runs")],
        notes: of_details
            .into_iter()
            .chain(baseline(history))
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
        let key = Cell::new(minute(run), Tone::Strong);
        (vec![key], run.costs.as_slice())
    });
    let rows: Vec<costs::Row<'_>> = rows.collect();
    let currency = history.runs.iter().find_map(|run| run.currency.as_deref());
    costs::of_rows(&[Column::text(START)], &rows, currency)
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
