//! Cells that were measured several times: values and intervals over their repetitions, as a chart, a table, and rows for a
//! spreadsheet.

use crate::experiment::figure::cell;
use crate::experiment::sweep_charts::figure_rows;
use crate::page::rows::RowsChart;
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Section, charts_of};
use crate::spreadsheet::{figure, line, with_interval};
use dyno_analyze::messages::lines::bound;
use dyno_analyze::messages::repeated::Repeated;
use dyno_record::experiment::Figure;
use dyno_record::quantity::Quantity;
use dyno_record::tail::InFlight;

/// The section, if anything was repeated.
pub(super) fn section(repeated: &[Repeated]) -> Option<Section> {
    (!repeated.is_empty()).then(|| Section {
        title: "Over the repetitions".into(),
        lead: "Values are geometric means over the complete repetitions of a cell. The 95 % interval below each value \
               rests on the variation between repetitions."
            .into(),
        charts: charts_of(chart(repeated)),
        tables: vec![table(repeated)],
        notes: vec![
            "Two cells differ if the interval of their ratio does not contain 1. Only cells with the same bound on inserts in \
             flight are compared; the findings name them."
                .into(),
            "With few repetitions, an interval also rests on the variation of the other cells, relative to their means.".into(),
        ],
        ..Section::default()
    })
}

fn chart(repeated: &[Repeated]) -> Option<RowsChart> {
    let rows = repeated.iter().filter_map(|one| Some((one.label.clone(), one.median_us?, false)));
    let chart = figure_rows(
        ("Median latency over the repetitions", "latency"),
        Quantity::microseconds,
        rows,
    );
    (!chart.rows.is_empty()).then(|| RowsChart {
        caption: "The point is the geometric mean of the medians, the bar its 95 % interval."
            .into(),
        ..chart
    })
}

fn table(repeated: &[Repeated]) -> Table {
    let microseconds =
        |one: &Repeated, of: Option<&Figure>| cell_with_reason(one, of, Quantity::microseconds);
    Table::of(repeated)
        .text("producer", |one| Cell::new(&one.label, Tone::Strong))
        .number("repetitions", 90, |one| Quantity::count(one.repetitions as u64))
        .number("median", u8::MAX, |one| microseconds(one, one.median_us.as_ref()))
        .number("times the smallest", 210, |one| {
            let times = one.times_fastest.as_ref();
            match times.is_some_and(|times| times.value <= 1.0) {
                // A ratio to itself has no error.
                true => cell(times, Quantity::times),
                false => cell_with_reason(one, times, Quantity::times),
            }
        })
        .number("mean", 150, |one| microseconds(one, one.mean_us.as_ref()))
        .number("p99", 200, |one| microseconds(one, one.p99_us.as_ref()))
        .number("messages/s", 220, |one| {
            cell_with_reason(one, one.rate_per_s.as_ref(), Quantity::per_second)
        })
        .number("CPU per message", 160, |one| microseconds(one, one.cpu_us.as_ref()))
        .number("median differs from", 140, |one| part(&one.differs_from, &one.like))
        .number("messages/s differ from", 130, |one| part(&one.rate_differs_from, &one.rate_like))
        .table("Over the repetitions")
}

/// A cell with the value, and below it the interval or the reason for a missing one.
fn cell_with_reason(
    one: &Repeated,
    figure: Option<&Figure>,
    quantity: fn(f64) -> Quantity,
) -> Cell {
    let cell = cell(figure, quantity);
    if figure.is_none() || cell.detail.is_some() {
        return cell;
    }
    let reason = match one.repetitions {
        1 => "one repetition",
        _ => "too wide",
    };
    cell.with_detail(Some(format!("no interval: {reason}")))
}

/// The number of other cells that it differs from; empty without others.
fn part(differs_from: &[String], like: &[String]) -> Cell {
    let others = differs_from.len() + like.len();
    let text = format!("{} of {others}", differs_from.len());
    Cell::known((others > 0).then_some(text))
}

/// The rows for a spreadsheet, with a header. Empty cells are unknown.
pub(super) fn csv(repeated: &[Repeated]) -> String {
    let mut head = ["producer", "number", "consumer", "in_flight", "pool", "repetitions"]
        .map(str::to_owned)
        .to_vec();
    let figures =
        ["median_us", "mean_us", "p99_us", "rate_per_s", "cpu_us", "times_smallest_median"];
    head.extend(figures.iter().flat_map(|name| with_interval((*name).to_owned())));
    head.push("median_like".to_owned());
    head.push("rate_like".to_owned());
    let rows = repeated.iter().map(|one| {
        let mut cells = vec![
            one.producer.clone(),
            one.number.to_string(),
            one.consumer.clone(),
            in_flight(one),
            one.pool.to_string(),
            one.repetitions.to_string(),
        ];
        let figures = [one.median_us, one.mean_us, one.p99_us, one.rate_per_s, one.cpu_us];
        cells.extend(figures.iter().flat_map(|it| figure(it.as_ref(), 3)));
        cells.extend(figure(one.times_fastest.as_ref(), 6));
        cells.extend([&one.like, &one.rate_like].map(|names| names.join("; ")));
        line(&cells)
    });
    line(&head) + &rows.collect::<String>()
}

/// The bound as a number, or `unbounded`.
fn in_flight(one: &Repeated) -> String {
    match one.in_flight {
        InFlight::Bounded(bound) => bound.to_string(),
        unbounded => bound(unbounded),
    }
}
