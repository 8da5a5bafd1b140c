//! What a report says about a search for an objective.

use super::figure::unwanted;
use super::model::{Parts, Section, headline};
use super::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use super::table::{Cell, Column, Table, Tone};
use crate::caveat::{CaveatBook, Topic};
use crate::facts::Fact;
use crate::model::{Definition, Figure};
use crate::quantity::Quantity;
use dyno_analyze::experiment::slo::{Attempt, SloAnswer};
use dyno_analyze::search::objective::ObjectiveEnd;

/// All that such a search contributes to the report.
pub(super) fn parts(answer: &SloAnswer, book: &CaveatBook) -> Parts {
    Parts {
        headline: figures(answer, book),
        facts: facts(answer),
        sections: vec![section(answer, book)],
        definitions: DEFINITIONS.to_vec(),
    }
}

/// `p99.9` of `p99_9`.
fn name(statistic: &str) -> String {
    statistic.replace('_', ".")
}

fn figures(answer: &SloAnswer, book: &CaveatBook) -> Vec<Figure> {
    let search = &answer.search;
    let marks = book.marks(Topic::Latency, None);
    let rate = |value: Option<f64>| Quantity::per_second(value.unwrap_or(f64::NAN));
    let share = search.rate_per_s.map(|found| {
        let share = Quantity::ratio(found / answer.closed_rate_per_s);
        format!("{share} of a closed loop")
    });
    let found = headline(
        "highest rate that keeps it",
        rate(search.rate_per_s),
        share,
        marks,
    );
    vec![
        Figure {
            alarming: search.rate_per_s.is_none(),
            ..found
        },
        headline(
            "always kept up to",
            rate(search.always_kept_up_to_per_s),
            Some("no run missed it".to_owned()),
            Vec::new(),
        ),
        headline(
            "always missed from",
            rate(search.always_missed_from_per_s),
            Some("no run kept it".to_owned()),
            Vec::new(),
        ),
        headline(
            "closed loop",
            Quantity::per_second(answer.closed_rate_per_s),
            Some("with the same clients".to_owned()),
            book.marks(Topic::Rate, None),
        ),
    ]
}

fn facts(answer: &SloAnswer) -> Vec<Fact> {
    let mut limits: Vec<String> = answer
        .objectives
        .responses
        .iter()
        .map(|one| {
            format!(
                "{} ≤ {}",
                name(&one.statistic),
                Quantity::microseconds(one.limit_us)
            )
        })
        .collect();
    let failed = Quantity::ratio(answer.objectives.failed_ratio);
    limits.push(format!("failed operations ≤ {failed}"));
    limits.push("no dropped arrivals".to_owned());
    let end = match answer.search.end {
        ObjectiveEnd::Resolved => "both sides of the boundary are decided",
        ObjectiveEnd::AlwaysKept => "kept at the highest rate that may be tried",
        ObjectiveEnd::NeverKept => "missed at the lowest rate that may be tried",
        ObjectiveEnd::OutOfMeasurements => "the runs were spent",
    };
    vec![
        Fact::new("Objective", limits.join(", ")),
        Fact::new("End of the search", end),
    ]
}

fn section(answer: &SloAnswer, book: &CaveatBook) -> Section {
    let objectives = answer.objectives.responses.len();
    let marks = book.marks(Topic::Latency, None);
    let mut columns = vec![Column::number("offered", u8::MAX)];
    columns.extend(
        answer
            .objectives
            .responses
            .iter()
            .map(|one| Column::number(name(&one.statistic), 200).marked(&marks)),
    );
    columns.extend([
        Column::number("failed", 100),
        Column::text("verdict"),
        Column::text("notes"),
    ]);
    let rows = answer.attempts.iter().map(|one| row(answer, one)).collect();
    Section {
        title: match objectives {
            0 => "Failures over offered rate",
            _ => "Response time over offered rate",
        },
        plots: (0..objectives).map(|place| plot(answer, place)).collect(),
        tables: vec![Table::new("Runs of the search", columns, rows)],
        notes: vec![
            "The runs are in the order in which the search made them. Near the boundary the majority of repeated runs decides."
                .to_owned(),
        ],
        ..Section::default()
    }
}

fn row(answer: &SloAnswer, attempt: &Attempt) -> Vec<Cell> {
    let mut cells = vec![Cell::new(
        Quantity::per_second(attempt.rate_per_s).to_string(),
        Tone::Strong,
    )];
    let objectives = answer.objectives.responses.iter();
    cells.extend(objectives.enumerate().map(|(place, one)| {
        let Some(us) = attempt.values_us.get(place) else {
            return Cell::default();
        };
        let tone = match *us <= one.limit_us {
            true => Tone::Plain,
            false => Tone::Alarm,
        };
        Cell::new(Quantity::microseconds(*us).to_string(), tone)
    }));
    cells.push(unwanted(attempt.failed_ratio));
    cells.push(match attempt.kept {
        true => Cell::from("kept"),
        false => Cell::new("missed", Tone::Soft),
    });
    let dropped = (attempt.dropped_ratio > 0.0).then(|| {
        let share = Quantity::ratio(attempt.dropped_ratio);
        format!("{share} of the arrivals never sent")
    });
    let bound = attempt
        .generator_bound
        .then(|| "generator-bound".to_owned());
    let notes: Vec<String> = bound.into_iter().chain(dropped).collect();
    cells.push(match notes.is_empty() {
        true => Cell::default(),
        false => Cell::new(notes.join(", "), Tone::Alarm),
    });
    cells
}

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
            values_us: same
                .iter()
                .filter_map(|one| one.values_us.get(place).copied())
                .collect(),
            is_kept: same.iter().filter(|one| one.kept).count() * 2 > same.len(),
        })
        .filter(|rate| !rate.values_us.is_empty())
        .collect()
}

/// The mean of the runs at each rate, from the lowest to the highest of them.
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

fn plot(answer: &SloAnswer, place: usize) -> Plot {
    let objective = &answer.objectives.responses[place];
    let rates = rates(answer, place);
    let (kept, missed): (Vec<&Rate>, Vec<&Rate>) = rates.iter().partition(|rate| rate.is_kept);
    let all = [
        points("kept", Role::P50, &kept),
        points("missed", Role::P99, &missed),
    ];
    let limit = PlotMark {
        label: format!("limit {}", Quantity::microseconds(objective.limit_us)),
        is_vertical: false,
        at: objective.limit_us,
    };
    let found = answer.search.rate_per_s.map(|at| PlotMark {
        label: format!("kept up to {}", Quantity::per_second(at)),
        is_vertical: true,
        at,
    });
    Plot {
        id: format!("plot-objective-{place}"),
        title: format!("{} of the response time", name(&objective.statistic)),
        caption: "Each rate that was offered, with the mean of its runs; bars reach from the lowest to the highest of them."
            .to_owned(),
        x: PlotAxis {
            label: "offered operations per second",
            measure: Measure::Rate,
            is_logarithmic: false,
        },
        y: PlotAxis {
            label: "response time",
            measure: Measure::Time,
            is_logarithmic: true,
        },
        series: all.into_iter().filter(|series| !series.x.is_empty()).collect(),
        marks: std::iter::once(limit).chain(found).collect(),
    }
}

/// The terms that the report of such a search uses.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "objective",
        meaning: "What must hold in a run: limits of response times, from the intended start, and of failures. Arrivals that \
                  were never sent miss every objective.",
    },
    Definition {
        term: "highest rate that keeps it",
        meaning: "The boundary: the highest rate at which most runs keep the objective, while at the next one most miss it.",
    },
    Definition {
        term: "always kept, always missed",
        meaning: "No run at or below the first rate missed the objective, and none at or above the second kept it. This is \
                  what the runs that were made say, without a stated confidence: another run may contradict it.",
    },
];
