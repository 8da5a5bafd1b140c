//! Charts of a sweep: over clients with bounds, over offered rates, or one row per value of another key.

use super::figure::interval_of;
use super::levels::Sweep;
use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use crate::page::rows::{RowValue, RowsChart, Scale};
use dyno_record::experiment::{
    Bounds, CLIENTS, ClosedPoint, Figure, Knee, Law, LawCheck, Level, RATE,
};
use dyno_record::quantity::Quantity;

const US_PER_S: f64 = 1e6;

/// The chart of response times over offered rates.
pub(super) const RESPONSE_OVER_RATE: &str = "plot-response-over-rate";

/// Charts over a numeric axis.
pub(super) fn plots(sweep: &Sweep<'_>) -> Vec<Plot> {
    match sweep.answer.axis.as_deref() {
        Some(CLIENTS) => vec![rate_over_clients(sweep), response_over_clients(sweep)],
        Some(RATE) => vec![response_over_rates(sweep), achieved_over_rates(sweep)],
        _ => Vec::new(),
    }
}

/// Charts with one row per level, for keys without a numeric axis.
pub(super) fn rows(sweep: &Sweep<'_>) -> Vec<RowsChart> {
    if sweep.answer.axis.is_some() {
        return Vec::new();
    }
    // Title, axis, unit, and the figure of a level.
    type Chart = (&'static str, &'static str, fn(f64) -> Quantity, fn(&Level) -> Option<Figure>);
    let charts: [Chart; 3] = [
        ("Rate", "operations per second", Quantity::per_second, |level| Some(level.rate_per_s)),
        ("Mean response time", "response time", Quantity::microseconds, |level| {
            Some(level.response_mean_us)
        }),
        (
            "99th percentile of the response time",
            "response time",
            Quantity::microseconds,
            |level| level.response_us.get("p99").copied(),
        ),
    ];
    let chart = |(title, axis, quantity, of): Chart| {
        let rows = sweep.levels().into_iter().filter_map(|level| {
            let is_strong = std::ptr::eq(level, sweep.best());
            Some((sweep.name(level), of(level)?, is_strong))
        });
        figure_rows((title, axis), quantity, rows)
    };
    charts.map(chart).into()
}

/// One row per name with its figure; the most important one is emphasized.
pub(crate) fn figure_rows(
    (title, axis): (&str, &str),
    quantity: fn(f64) -> Quantity,
    rows: impl Iterator<Item = (String, Figure, bool)>,
) -> RowsChart {
    let values = rows.map(|(label, figure, is_strong)| RowValue {
        label,
        value_text: quantity(figure.value).to_string(),
        detail: interval_of(&figure, quantity).unwrap_or_default(),
        is_strong,
        value: figure.value,
        interval: figure.low.zip(figure.high),
    });
    let values = values.collect();
    RowsChart {
        title: title.to_owned(),
        caption: "Each point with its 95 % interval; where intervals overlap, the difference may be chance.".to_owned(),
        axis: axis.to_owned(),
        ..RowsChart::from_zero(values, Scale::point, |value| quantity(value).to_string())
    }
}

fn places(sweep: &Sweep<'_>, of: fn(&Level) -> f64) -> Vec<f64> {
    sweep.answer.levels.iter().map(of).collect()
}

fn clients_axis(sweep: &Sweep<'_>) -> PlotAxis {
    let places = places(sweep, |level| f64::from(level.clients));
    PlotAxis::fitting("clients", Measure::Count, &places)
}

fn rates_axis(sweep: &Sweep<'_>) -> PlotAxis {
    let offered = |level: &Level| level.offered_rate_per_s.unwrap_or(0.0);
    let places = places(sweep, offered);
    PlotAxis::fitting("offered operations per second", Measure::Rate, &places)
}

fn rate_axis() -> PlotAxis {
    PlotAxis::linear("operations per second", Measure::Rate)
}

fn time_axis(is_logarithmic: bool) -> PlotAxis {
    PlotAxis { label: "response time", measure: Measure::Time, is_logarithmic }
}

/// Points with intervals, in ascending order of the levels.
fn points(
    sweep: &Sweep<'_>,
    label: &str,
    (role, stroke): (Role, Stroke),
    place: impl Fn(&Level) -> f64,
    figure: impl Fn(&Level) -> Option<Figure>,
) -> PlotSeries {
    let known: Vec<(f64, Figure)> = sweep
        .answer
        .levels
        .iter()
        .filter_map(|level| Some((place(level), figure(level)?)))
        .collect();
    let values = known.iter().map(|(x, figure)| (*x, figure.value));
    PlotSeries {
        low: known.iter().map(|(_, figure)| figure.low).collect(),
        high: known.iter().map(|(_, figure)| figure.high).collect(),
        ..PlotSeries::curve(label, role, stroke, values)
    }
}

fn bound(
    sweep: &Sweep<'_>,
    label: &str,
    (role, stroke): (Role, Stroke),
    of: impl Fn(&Bounds) -> f64,
) -> PlotSeries {
    let bounds = sweep.answer.bounds.iter();
    let values = bounds.map(|bounds| (f64::from(bounds.clients), of(bounds)));
    PlotSeries::curve(label, role, stroke, values)
}

fn network(sweep: &Sweep<'_>, of: impl Fn(&ClosedPoint) -> f64) -> PlotSeries {
    let values = sweep.answer.network.iter().map(|point| (f64::from(point.clients), of(point)));
    PlotSeries::curve("network of the demands", Role::Network, Stroke::Line, values)
}

/// The curve of the fitted queue, if one fits.
fn queue(sweep: &Sweep<'_>) -> PlotSeries {
    let model = sweep.answer.queue.iter().filter(|model| model.applies);
    let values = model
        .flat_map(|model| &model.curve)
        .map(|point| (point.rate_per_s, point.response_s * US_PER_S));
    let label = sweep
        .answer
        .queue
        .as_ref()
        .map_or(String::new(), |model| format!("M/M/{} queue", model.fit.queue.servers));
    PlotSeries::curve(&label, FITTED.0, FITTED.1, values)
}

/// The curves that have points; the measured one comes last, so that it is drawn on top.
fn drawn(curves: Vec<PlotSeries>) -> Vec<PlotSeries> {
    let shown = curves.into_iter().filter(|curve| !curve.x.is_empty());
    shown.collect()
}

const UPPER: (Role, Stroke) = (Role::Bound, Stroke::Dashed);
const LOWER: (Role, Stroke) = (Role::Bound, Stroke::Dotted);
const FITTED: (Role, Stroke) = (Role::Model, Stroke::Line);
const MEASURED: (Role, Stroke) = (Role::Measured, Stroke::Points);

fn rate_over_clients(sweep: &Sweep<'_>) -> Plot {
    let usl = sweep.answer.usl_curve.iter();
    let usl = usl.map(|point| (point.clients, point.rate_per_s));
    let clients = |level: &Level| f64::from(level.clients);
    Plot {
        id: "plot-rate-over-clients".to_owned(),
        title: "Rate over clients".to_owned(),
        caption:
            "The measured rates and the bounds from the service demands. No rate can be above the \
                  upper bound."
                .to_owned(),
        x: clients_axis(sweep),
        y: rate_axis(),
        series: drawn(vec![
            bound(sweep, "upper bound", UPPER, |b| b.rate_high_per_s),
            bound(sweep, "lower bound", LOWER, |b| b.rate_low_per_s),
            network(sweep, |point| point.rate_per_s),
            PlotSeries::curve("scalability law", FITTED.0, FITTED.1, usl),
            points(sweep, "measured", MEASURED, clients, |level| Some(level.rate_per_s)),
        ]),
        marks: clients_marks(sweep),
    }
}

fn response_over_clients(sweep: &Sweep<'_>) -> Plot {
    // The law misses whole cycles by a few percent. With think times, that is more than the duration of an operation.
    let thinks = sweep.best().think_mean_us.is_some_and(|think| think > 0.0);
    let usl = sweep.answer.usl_curve.iter().filter(|_| !thinks);
    let usl = usl.map(|point| {
        let cycle_us = point.clients / point.rate_per_s * US_PER_S;
        (point.clients, cycle_us)
    });
    let clients = |level: &Level| f64::from(level.clients);
    Plot {
        id: "plot-response-over-clients".to_owned(),
        title: "Response time over clients".to_owned(),
        caption: "Mean response times and their bounds. No response time can be below the lower bound: beyond N* it \
                  rises with every client."
            .to_owned(),
        // On a logarithmic axis, bounds are straight lines only if both axes are logarithmic.
        y: time_axis(clients_axis(sweep).is_logarithmic),
        x: clients_axis(sweep),
        series: drawn(vec![
            bound(sweep, "lower bound", LOWER, |b| b.response_low_s * US_PER_S),
            bound(sweep, "upper bound", UPPER, |b| b.response_high_s * US_PER_S),
            network(sweep, |point| point.response_s * US_PER_S),
            PlotSeries::curve("scalability law", FITTED.0, FITTED.1, usl),
            points(sweep, "measured mean", MEASURED, clients, |level| {
                Some(level.response_mean_us)
            }),
        ]),
        marks: clients_marks(sweep),
    }
}

/// The load of the knee, if there is one.
fn knee(sweep: &Sweep<'_>) -> Option<f64> {
    match sweep.answer.knee? {
        Knee::Found { load, .. } => Some(load),
        _ => None,
    }
}

/// N*, the knee, and the peak of the scalability law if it is within the measured range.
fn clients_marks(sweep: &Sweep<'_>) -> Vec<PlotMark> {
    let saturation = sweep.answer.saturation_clients;
    let peak = sweep.answer.usl.as_ref().and_then(|fit| fit.peak);
    let peak = peak.filter(|peak| !peak.extrapolated);
    let marks = [
        saturation.map(|at| ("N*", at.value)),
        knee(sweep).map(|at| ("knee", at)),
        peak.map(|peak| ("peak of the law", peak.clients.value)),
    ];
    marks
        .into_iter()
        .flatten()
        .map(|(name, at)| PlotMark::vertical(format!("{name} {at:.1}"), at))
        .collect()
}

fn response_over_rates(sweep: &Sweep<'_>) -> Plot {
    let offered = |level: &Level| level.offered_rate_per_s.unwrap_or(f64::NAN);
    let percentile = |name: &'static str| move |level: &Level| level.response_us.get(name).copied();
    let stroke = Stroke::LineAndPoints;
    Plot {
        id: RESPONSE_OVER_RATE.to_owned(),
        title: "Response time over offered rate".to_owned(),
        caption: "Response times at each offered rate, including waiting. Beyond the saturation rate, a response \
                  time has no limit: it grows with the length of the run."
            .to_owned(),
        x: rates_axis(sweep),
        y: time_axis(true),
        series: drawn(vec![
            points(sweep, "p50", (Role::P50, stroke), offered, percentile("p50")),
            points(sweep, "p99", (Role::P99, stroke), offered, percentile("p99")),
            points(sweep, "mean", (Role::Measured, stroke), offered, |level| {
                Some(level.response_mean_us)
            }),
            queue(sweep),
        ]),
        marks: knee(sweep)
            .map(|at| PlotMark::vertical(format!("knee {}", Quantity::per_second(at)), at))
            .into_iter()
            .chain(saturation_mark(sweep, true))
            .collect(),
    }
}

fn achieved_over_rates(sweep: &Sweep<'_>) -> Plot {
    let offered = |level: &Level| level.offered_rate_per_s.unwrap_or(f64::NAN);
    let asked = sweep.answer.levels.iter().map(|level| (offered(level), offered(level)));
    Plot {
        id: "plot-achieved-over-rate".to_owned(),
        title: "Achieved rate over offered rate".to_owned(),
        caption:
            "Where the measured rate leaves the dashed line, the offered rate was not sustained."
                .to_owned(),
        x: rates_axis(sweep),
        y: PlotAxis::linear("achieved per second", Measure::Rate),
        series: drawn(vec![
            PlotSeries::curve("offered", Role::Bound, Stroke::Dashed, asked),
            points(sweep, "achieved", (Role::Measured, Stroke::LineAndPoints), offered, |level| {
                Some(level.rate_per_s)
            }),
        ]),
        marks: saturation_mark(sweep, false),
    }
}

/// Both sides of the response time law over the achieved rate; absent if it was not checked.
pub(super) fn response_time_law(sweep: &Sweep<'_>) -> Option<Plot> {
    let mut checks: Vec<(f64, &LawCheck)> = sweep
        .answer
        .levels
        .iter()
        .flat_map(|level| {
            let checks = level.laws.iter().filter(|one| one.law == Law::ResponseTime);
            checks.map(|check| (level.rate_per_s.value, check))
        })
        .collect();
    let is_numeric = matches!(sweep.answer.axis.as_deref(), Some(CLIENTS | RATE));
    if checks.is_empty() || !is_numeric {
        return None;
    }
    checks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let side = |label, (role, stroke), of: fn(&LawCheck) -> f64| {
        let values = checks.iter().map(|(x, check)| (*x, of(check) * US_PER_S));
        PlotSeries::curve(label, role, stroke, values)
    };
    let rates: Vec<f64> = checks.iter().map(|(x, _)| *x).collect();
    Some(Plot {
        id: "plot-response-time-law".to_owned(),
        title: "Response time law".to_owned(),
        caption: "From send to answer: measured, and N / X − Z calculated from the clients, the rate and the time that clients \
                  waited between their operations."
            .to_owned(),
        x: PlotAxis::fitting("operations per second", Measure::Rate, &rates),
        y: time_axis(true),
        series: vec![
            side("N / X − Z", FITTED, |check| check.predicted),
            side("measured", MEASURED, |check| check.measured),
        ],
        marks: Vec::new(),
    })
}

fn saturation_mark(sweep: &Sweep<'_>, is_vertical: bool) -> Vec<PlotMark> {
    let demand = sweep.answer.bottleneck.iter();
    demand
        .map(|demand| {
            let at = demand.saturation_rate_per_s().value;
            PlotMark { label: format!("saturation {}", Quantity::per_second(at)), is_vertical, at }
        })
        .collect()
}
