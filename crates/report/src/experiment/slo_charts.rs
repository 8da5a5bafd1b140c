//! Charts of a search for an objective: its values over the offered rates, and the share of runs that keep it.

use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use dyno_analyze::search::objective::boundary::{has_curve, kept_at};
use dyno_record::experiment::{Attempt, Boundary, NotMeasured, SloAnswer, TriedRate};
use dyno_record::quantity::Quantity;

/// All attempts at one rate.
struct Rate {
    per_s: f64,
    values_us: Vec<f64>,
    kept_count: usize,
    missed_count: usize,
}

fn rates(answer: &SloAnswer, place: usize) -> Vec<Rate> {
    let mut attempts: Vec<&Attempt> = answer.attempts.iter().collect();
    attempts.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    attempts
        .chunk_by(|a, b| a.rate_per_s == b.rate_per_s)
        .map(|same| Rate {
            per_s: same[0].rate_per_s,
            values_us: same.iter().filter_map(|one| one.values_us.get(place).copied()).collect(),
            kept_count: same.iter().filter(|one| one.kept).count(),
            missed_count: same.iter().filter(|one| !one.kept).count(),
        })
        .filter(|rate| !rate.values_us.is_empty())
        .collect()
}

/// The middle run at each rate, with the range of its runs: percentiles are not averaged.
fn points(label: &str, role: Role, rates: &[&Rate]) -> PlotSeries {
    let end = |rate: &Rate, pick: fn(f64, f64) -> f64| match rate.values_us.len() {
        1 => None,
        _ => rate.values_us.iter().copied().reduce(pick),
    };
    let values = rates.iter().map(|rate| {
        let mut sorted = rate.values_us.clone();
        sorted.sort_by(f64::total_cmp);
        (rate.per_s, sorted[sorted.len() / 2])
    });
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
    let with = |label: &str, role: Role, is_kept: bool, is_missed: bool| {
        let of =
            |rate: &&Rate| (rate.kept_count > 0) == is_kept && (rate.missed_count > 0) == is_missed;
        points(label, role, &rates.iter().filter(of).collect::<Vec<&Rate>>())
    };
    let all = [
        with("kept", Role::P50, true, false),
        with("kept in some runs", Role::Measured, true, true),
        with("missed", Role::P99, false, true),
    ];
    let limit_us = objective.limit_us;
    let limit =
        PlotMark::horizontal(format!("limit {}", Quantity::microseconds(limit_us)), limit_us);
    let boundary = answer.search.boundary.as_ref();
    let found = match boundary {
        Some(boundary) => mark(boundary, "95 % keep", boundary.most_per_s.value),
        None => answer.search.rate_per_s.map(|found| {
            PlotMark::vertical(format!("kept up to {}", Quantity::per_second(found)), found)
        }),
    };
    Plot {
        id: format!("plot-objective-{place}"),
        title: format!("{} of the response time", objective.name()),
        caption: "Each offered rate with the middle one of its runs; bars show their range."
            .to_owned(),
        x: PlotAxis::logarithmic("offered operations per second", Measure::Rate),
        y: PlotAxis::logarithmic("response time", Measure::Time),
        series: all.into_iter().filter(|series| !series.x.is_empty()).collect(),
        marks: std::iter::once(limit).chain(found).collect(),
    }
}

/// The mark of a rate of the boundary, such as `95 % keep 9,800/s`; `None` if only lower rates than the tried ones are kept
/// by so many runs.
fn mark(boundary: &Boundary, word: &str, per_s: f64) -> Option<PlotMark> {
    let or_more = match boundary.not_measured(per_s) {
        Some(NotMeasured::Below) => return None,
        Some(NotMeasured::Above) => " or more",
        None => "",
    };
    Some(PlotMark::vertical(format!("{word} {}{or_more}", Quantity::per_second(per_s)), per_s))
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
    let curve =
        has_curve(boundary).then(|| PlotSeries::curve("curve", Role::Model, Stroke::Line, curve));
    let caption = match curve {
        Some(_) => {
            "Each offered rate, and the curve fitted to all runs; the answer is where it is 95 %, and the rate that \
             half of the runs keep stands beside it."
        }
        None => {
            "Each offered rate; without a curve, because the rate that half of the runs keep is outside the rates that \
             were reached."
        }
    };
    let runs = PlotSeries::curve("runs", Role::Measured, Stroke::Points, runs);
    let marks = [
        mark(boundary, "95 % keep", boundary.most_per_s.value),
        mark(boundary, "half keep", boundary.half_per_s.value),
    ];
    Plot {
        id: "plot-objective-share".to_owned(),
        title: "Share of runs that keep the objective".to_owned(),
        caption: caption.to_owned(),
        x: PlotAxis::logarithmic("offered operations per second", Measure::Rate),
        y: PlotAxis::linear("runs that keep it, percent", Measure::Count),
        series: curve.into_iter().chain(std::iter::once(runs)).collect(),
        marks: marks.into_iter().flatten().collect(),
    }
}
