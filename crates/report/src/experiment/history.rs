//! A series of runs over time, with the changes of its level.

use dyno_analyze::experiment::history::{History, HistoryStatistic};
use plotters::prelude::*;
use std::fmt::Write as _;

/// Size of the picture of one figure.
const WIDTH: u32 = 960;
const HEIGHT: u32 = 260;

/// Tables for people.
pub fn human(history: &History) -> String {
    let mut text = format!("{}: {} runs\n\n", history.name, history.runs.len());
    text.push_str(&format!("{:<22}", "start"));
    for one in &history.statistics {
        let _ = write!(text, "{:>18}", one.name);
    }
    text.push_str("  run\n");
    for (place, run) in history.runs.iter().enumerate() {
        let _ = write!(text, "{:<22}", run.started_at);
        for (value, one) in run.values.iter().zip(&history.statistics) {
            let changed = one.changes.iter().any(|change| change.position == place);
            let mark = if changed { "*" } else { " " };
            let _ = write!(text, "{:>17}{mark}", number(*value));
        }
        let _ = writeln!(text, "  {}", run.directory);
    }
    text.push('\n');
    for line in findings(history) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The same in Markdown.
pub fn markdown(history: &History) -> String {
    let mut text = format!(
        "# History of `{}`\n\n{} runs.\n\n",
        history.name,
        history.runs.len()
    );
    for line in findings(history) {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n| Start | Run |");
    for one in &history.statistics {
        let _ = write!(text, " {} ({}) |", one.name, one.unit);
    }
    text.push_str("\n|---|---|---:|---:|---:|---:|\n");
    for (place, run) in history.runs.iter().enumerate() {
        let _ = write!(text, "| {} | `{}` |", run.started_at, run.directory);
        for (value, one) in run.values.iter().zip(&history.statistics) {
            let changed = one.changes.iter().any(|change| change.position == place);
            let _ = match changed {
                true => write!(text, " **{}** |", number(*value)),
                false => write!(text, " {} |", number(*value)),
            };
        }
        text.push('\n');
    }
    text
}

/// One sentence for each change, and for what was left out.
fn findings(history: &History) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &history.statistics {
        for (number_of, change) in one.changes.iter().enumerate() {
            let is_last = number_of + 1 == one.changes.len();
            let mark = match is_last && one.regression {
                true => "regression: ",
                false => "",
            };
            let run = &history.runs[change.position];
            lines.push(format!(
                "{mark}{} changed by {:+.1} % at {} (`{}`): {} before, {} after (p = {:.3})",
                one.name,
                change.change_ratio * 100.0,
                run.started_at,
                run.directory,
                number(change.before_mean),
                number(change.after_mean),
                change.p_value_ratio
            ));
        }
    }
    if lines.is_empty() {
        lines.push(format!(
            "no change of level, at {} % of false alarms for each figure",
            history.significance_ratio * 100.0
        ));
    }
    lines.extend(
        history
            .left_out
            .iter()
            .map(|what| format!("left out: {what}")),
    );
    lines
}

fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// One picture for each figure, one below the other.
pub fn svg(history: &History) -> String {
    let mut text = String::new();
    let count = u32::try_from(history.statistics.len()).unwrap_or(1).max(1);
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT * count)).into_drawing_area();
        // Drawing into a string does not fail, and a picture without a part of it is still one.
        let _ = root.fill(&WHITE);
        for (area, place) in root.split_evenly((count as usize, 1)).iter().zip(0..) {
            let _ = draw(area, history, place);
        }
        let _ = root.present();
    }
    text
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(
    area: &Area<'_>,
    history: &History,
    place: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let one: &HistoryStatistic = &history.statistics[place];
    let values: Vec<f64> = history.runs.iter().map(|run| run.values[place]).collect();
    let highest = values.iter().copied().fold(0.0, f64::max) * 1.1;
    let last = values.len().saturating_sub(1).max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}, {}", one.name, one.unit), ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(32)
        .y_label_area_size(72)
        .build_cartesian_2d(-0.5..last + 0.5, 0.0..highest.max(1e-9))?;
    let label = |position: &f64| {
        let run = history.runs.get(position.round().max(0.0) as usize);
        run.map_or_else(String::new, |run| run.started_at.chars().take(10).collect())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc("start of the run")
        .x_labels(8)
        .x_label_formatter(&label)
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    let points = values
        .iter()
        .enumerate()
        .map(|(at, value)| (at as f64, *value));
    chart.draw_series(
        points
            .clone()
            .map(|point| Circle::new(point, 3, BLUE.filled())),
    )?;
    for (from, to, level) in levels(one, &values) {
        let ends = vec![(from as f64 - 0.4, level), (to as f64 - 0.6, level)];
        chart.draw_series(LineSeries::new(ends, BLACK.stroke_width(2)))?;
    }
    for change in &one.changes {
        let at = change.position as f64 - 0.5;
        let is_worse = (change.change_ratio < 0.0) == one.larger_is_better;
        let colour = if is_worse { RED } else { GREEN };
        let line = vec![(at, 0.0), (at, highest)];
        chart.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
    }
    Ok(())
}

/// Mean level between the changes: from, to (not included), level.
fn levels(one: &HistoryStatistic, values: &[f64]) -> Vec<(usize, usize, f64)> {
    let mut edges: Vec<usize> = vec![0];
    edges.extend(one.changes.iter().map(|change| change.position));
    edges.push(values.len());
    edges
        .windows(2)
        .filter(|edge| edge[1] > edge[0])
        .map(|edge| {
            let part = &values[edge[0]..edge[1]];
            (
                edge[0],
                edge[1],
                part.iter().sum::<f64>() / part.len() as f64,
            )
        })
        .collect()
}
