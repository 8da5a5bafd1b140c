//! Charts of a search for an objective: its values over the offered rates, and the share of runs that keep it.

use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use dyno_analyze::search::objective::boundary::kept_at;
use dyno_record::experiment::{Attempt, Boundary, SloAnswer, TriedRate};
use dyno_record::quantity::Quantity;

/// All attempts at one rate.
struct Rate {
    per_s: f64,
    values_us: Vec<f64>,
    is_kept: bool,
}

fn rates(answer: &SloAnswer, place: usize) -> Vec<Rate> {
    let mut attempts: Vec<&Attempt> = answer.attempts.iter().collect();
    attempts.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    attempts
        .chunk_by(|a, b| a.rate_per_s == b.rate_per_s)
        .map(|same| Rate {
            per_s: same[0].rate_per_s,
            values_us: same.iter().filter_map(|one| one.values_us.get(place).copied()).collect(),
            is_kept: same.iter().filter(|one| one.kept).count() * 2 > same.len(),
        })
        .filter(|rate| !rate.values_us.is_empty())
        .collect()
}

/// The mean of the runs at each rate, with their range.
fn points(label: &str, role: Role, rates: &[&Rate]) -> PlotSeries {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let end = |rate: &Rate, pick: fn(f64, f64) -> f64| match rate.values_us.len() {
        1 => None,
        _ => rate.values_us.iter().copied().reduce(pick),
    };
    let values = rates.iter().map(|rate| (rate.per_s, mean(&rate.values_us)));
    PlotSeries {
        low: rates.iter().map(|rate| end(rate, f64::min)).collect(),
        high: rates.iter().map(|rate| end(rate, f64::max)).collect(),
        ..PlotSeries::curve(label, role, Stroke::Points, values)
    }
}

/// The values of an objective over the offered rates.
pub(super) fn plot(answer: &SloAnswer, place: usize) -> Plot {
    let objective = &answer.objectives.responses[place];
    let rates = rates(answer, place);
    let (kept, missed): (Vec<&Rate>, Vec<&Rate>) = rates.iter().partition(|rate| rate.is_kept);
    let all = [points("kept", Role::P50, &kept), points("missed", Role::P99, &missed)];
    let limit_us = objective.limit_us;
    let limit =
        PlotMark::horizontal(format!("limit {}", Quantity::microseconds(limit_us)), limit_us);
    let found = answer
        .search
        .rate_per_s
        .map(|at| PlotMark::vertical(format!("kept up to {}", Quantity::per_second(at)), at));
    Plot {
        id: format!("plot-objective-{place}"),
        title: format!("{} of the response time", objective.name()),
        caption: "Each offered rate with the mean of its runs; bars show their range.".to_owned(),
        x: PlotAxis::linear("offered operations per second", Measure::Rate),
        y: PlotAxis::logarithmic("response time", Measure::Time),
        series: all.into_iter().filter(|series| !series.x.is_empty()).collect(),
        marks: std::iter::once(limit).chain(found).collect(),
    }
}

/// Number of points on the curve.
const CURVE_POINTS: u32 = 60;

/// The share of runs at each rate that keep the objective, in percent, with the curve.
pub(super) fn share_plot(answer: &SloAnswer, boundary: &Boundary) -> Plot {
    let tried = &answer.search.tried;
    let share = |one: &TriedRate| {
        let made = one.kept_count + one.missed_count;
        let share = f64::from(one.kept_count) / f64::from(made);
        (one.rate_per_s, share * 100.0)
    };
    let runs = tried.iter().map(share);
    let (low, high) = (tried.first(), tried.last());
    let ends = low.zip(high).map(|(low, high)| (low.rate_per_s, high.rate_per_s));
    let (low, high) = ends.unwrap_or((boundary.most_per_s.low, boundary.few_per_s.high));
    let curve = (0..=CURVE_POINTS).map(|number| {
        let rate = low * (high / low).powf(f64::from(number) / f64::from(CURVE_POINTS));
        (rate, kept_at(boundary, rate) * 100.0)
    });
    let half = &boundary.half_per_s;
    Plot {
        id: "plot-objective-share".to_owned(),
        title: "Share of runs that keep the objective".to_owned(),
        caption: "Each offered rate, and the curve fitted to all runs; the answer is where it is one half, \
                  with the ends of its interval."
            .to_owned(),
        x: PlotAxis::linear("offered operations per second", Measure::Rate),
        y: PlotAxis::linear("runs that keep it, percent", Measure::Count),
        series: vec![
            PlotSeries::curve("curve", Role::Model, Stroke::Line, curve),
            PlotSeries::curve("runs", Role::Measured, Stroke::Points, runs),
        ],
        marks: vec![
            PlotMark::vertical("low end".to_owned(), half.low),
            PlotMark::vertical("high end".to_owned(), half.high),
        ],
    }
}
