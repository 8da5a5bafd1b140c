//! Reports of a search for an objective.

use super::figure::{TOO_SHORT, interval, interval_or_why, unwanted};
use super::parts::Parts;
use super::search_costs;
use super::slo_charts::{plot, share_plot};
use crate::caveat::{CaveatBook, Topic};
use crate::page::table::{Cell, Column, Columns, Table, Tone};
use crate::page::{Fact, Figure, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::search::objective::boundary::kept_at;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{
    Attempt, Boundary, Experiment, NotMeasured, ObjectiveEnd, SloAnswer,
};
use dyno_record::quantity::Quantity;

/// All parts of the page of such a search.
pub(super) fn parts(experiment: &Experiment, answer: &SloAnswer, book: &CaveatBook) -> Parts {
    let costs = search_costs::section(experiment);
    Parts {
        headline: figures(answer, book),
        facts: facts(answer),
        sections: std::iter::once(section(answer, book)).chain(costs).collect(),
        definitions: terms(&["slo"]),
    }
}

fn figures(answer: &SloAnswer, book: &CaveatBook) -> Vec<Figure> {
    let search = &answer.search;
    let per_s = search.rate_per_s.unwrap_or(f64::NAN);
    let note = match &search.boundary {
        Some(boundary) => Some(interval_of(boundary, &boundary.half_per_s)),
        None => search.rate_per_s.map(|found| {
            let share = Quantity::ratio(found / answer.closed_rate_per_s.value);
            format!("{share} of a closed loop, no interval: no boundary was found")
        }),
    };
    let found = Figure::new("highest rate that keeps it", Quantity::per_second(per_s));
    let first = Figure {
        alarming: search.rate_per_s.is_none(),
        ..found.with_note(note).marked(&book.marks(Topic::Latency, None))
    };
    let between = match &search.boundary {
        Some(boundary) => of_boundary(boundary),
        None => of_runs(answer),
    };
    let closed = &answer.closed_rate_per_s;
    let range = interval_or_why(closed, Quantity::per_second, TOO_SHORT);
    let closed = Figure::new("closed loop", Quantity::per_second(closed.value))
        .with_note(format!("with the same clients, {range}"))
        .marked(&book.marks(Topic::Rate, None));
    std::iter::once(first).chain(between).chain(std::iter::once(closed)).collect()
}

/// The rates between which chance decides.
fn of_boundary(boundary: &Boundary) -> [Figure; 2] {
    [("kept by 95 % of runs", &boundary.most_per_s), ("kept by 5 % of runs", &boundary.few_per_s)]
        .map(|(label, rate)| {
            Figure::new(label, Quantity::per_second(rate.value))
                .with_note(interval_of(boundary, rate))
        })
}

/// The bounds from the runs, used without an estimate.
fn of_runs(answer: &SloAnswer) -> [Figure; 2] {
    let search = &answer.search;
    [
        (
            "always kept up to",
            search.always_kept_up_to_per_s,
            "no run missed it; from the runs, no interval",
        ),
        (
            "always missed from",
            search.always_missed_from_per_s,
            "no run kept it; from the runs, no interval",
        ),
    ]
    .map(|(label, rate, note)| {
        let rate = Quantity::per_second(rate.unwrap_or(f64::NAN));
        Figure::new(label, rate).with_note(note.to_owned())
    })
}

/// `9,800–10,900/s with 95 %`, and the side that was not measured.
fn interval_of(boundary: &Boundary, rate: &Estimate) -> String {
    let ends = [rate.low, rate.high].map(Quantity::per_second);
    let confidence = Quantity::ratio(rate.confidence_ratio).brief();
    let range = format!("{} with {confidence}", interval(ends[0], ends[1]));
    let side = |rate_per_s: f64| match boundary.not_measured(rate_per_s)? {
        NotMeasured::Above => Some("above"),
        NotMeasured::Below => Some("below"),
    };
    let ends = [side(rate.low), side(rate.high)];
    match (side(rate.value), ends.into_iter().flatten().last()) {
        (Some(side), _) => format!("or {}, {range}; {side} that: not measured", more(side)),
        (None, Some(side)) => format!("{range}; {side} that: not measured"),
        (None, None) => range,
    }
}

fn more(side: &str) -> &'static str {
    if side == "above" { "more" } else { "less" }
}

fn facts(answer: &SloAnswer) -> Vec<Fact> {
    let mut limits: Vec<String> = answer
        .objectives
        .responses
        .iter()
        .map(|one| {
            let limit = Quantity::microseconds(one.limit_us);
            format!("{} ≤ {limit}", one.name())
        })
        .collect();
    let failed = Quantity::ratio(answer.objectives.failed_ratio);
    limits.push(format!("failed operations ≤ {failed}"));
    limits.push("no dropped arrivals".to_owned());
    let end = match answer.search.end {
        ObjectiveEnd::Resolved if answer.search.boundary.is_some() => {
            "the interval is as narrow as requested"
        }
        ObjectiveEnd::Resolved => "both sides of the boundary are decided",
        ObjectiveEnd::AlwaysKept => "kept at the highest allowed rate",
        ObjectiveEnd::NeverKept => "missed at the lowest allowed rate",
        ObjectiveEnd::OutOfMeasurements => "early: all runs were used",
    };
    vec![Fact::new("Objective", limits.join(", ")), Fact::new("End of the search", end)]
}

/// Smallest share of stolen CPU time that is shown for a run.
const LEAST_STOLEN_RATIO: f64 = 0.005;

fn section(answer: &SloAnswer, book: &CaveatBook) -> Section {
    let objectives = answer.objectives.responses.len();
    Section {
        title: match objectives {
            0 => "Failures over offered rate",
            _ => "Response time over offered rate",
        }
        .into(),
        charts: charts_of(
            (0..objectives).map(|place| plot(answer, place)).chain(
                answer.search.boundary.as_ref().map(|boundary| share_plot(answer, boundary)),
            ),
        ),
        tables: [
            Some(runs(answer, &answer.attempts, book).table("Runs of the search")),
            Some(tried(answer)),
            runs(answer, &answer.set_aside, book).known("Runs that were set aside and repeated"),
        ]
        .into_iter()
        .flatten()
        .collect(),
        notes: notes(answer),
        ..Section::default()
    }
}

fn notes(answer: &SloAnswer) -> Vec<String> {
    let order = "The runs are in the order of the search.";
    let rule = match answer.search.boundary {
        Some(_) => {
            "No run decides alone: the share of runs that keep the objective is a curve over the rate, and all runs \
             together determine where it is one half."
        }
        None => "Near a boundary runs are repeated.",
    };
    vec![format!("{order} {rule}")]
}

/// The number of runs at each rate, with the share predicted by the curve.
fn tried(answer: &SloAnswer) -> Table {
    let count = |count: u32| Quantity::count(u64::from(count));
    Table::of(&answer.search.tried)
        .number("offered", u8::MAX, |one| {
            Cell::new(Quantity::per_second(one.rate_per_s), Tone::Strong)
        })
        .number("runs", u8::MAX, |one| count(one.kept_count + one.missed_count))
        .number("kept", u8::MAX, |one| count(one.kept_count))
        .number("kept by the curve", 100, |one| {
            let boundary = answer.search.boundary.as_ref();
            let share = boundary.map(|boundary| kept_at(boundary, one.rate_per_s));
            Cell::known(share.map(|share| Quantity::ratio(share).brief()))
        })
        .table("Rates of the search")
}

fn runs<'a>(
    answer: &SloAnswer,
    attempts: &'a [Attempt],
    book: &CaveatBook,
) -> Columns<'a, Attempt> {
    let marks = book.marks(Topic::Latency, None);
    let mut columns = Table::of(attempts).number("offered", u8::MAX, |attempt| {
        Cell::new(Quantity::per_second(attempt.rate_per_s), Tone::Strong)
    });
    for (place, one) in answer.objectives.responses.iter().enumerate() {
        let column = Column::number(one.name(), 200).marked(&marks);
        columns = columns.with(column, |attempt| match attempt.values_us.get(place) {
            Some(us) if *us > one.limit_us => Cell::new(Quantity::microseconds(*us), Tone::Alarm),
            us => Cell::known(us.copied().map(Quantity::microseconds)),
        });
    }
    columns
        .number("failed", 100, |attempt| unwanted(attempt.failed_ratio))
        .text("verdict", |attempt| match attempt.kept {
            true => Cell::from("kept"),
            false => Cell::new("missed", Tone::Soft),
        })
        .text("notes", |attempt| Cell::new(run_notes(attempt), Tone::Alarm))
}

fn run_notes(attempt: &Attempt) -> String {
    let share = |ratio: f64, least: f64, what: &str| {
        (ratio > least).then(|| format!("{} of the {what}", Quantity::ratio(ratio)))
    };
    let stolen = attempt.stolen_ratio.unwrap_or(0.0);
    let notes = [
        attempt.generator_bound.then(|| "generator-bound".to_owned()),
        share(attempt.dropped_ratio, 0.0, "arrivals never sent"),
        share(stolen, LEAST_STOLEN_RATIO, "CPU time stolen"),
    ];
    notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
