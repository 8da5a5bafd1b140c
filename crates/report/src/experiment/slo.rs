//! Reports of a search for an objective.

use super::figure::{TOO_SHORT, interval, interval_or_why, unwanted};
use super::parts::Parts;
use super::search_costs;
use super::slo_charts::{plot, share_plot};
use crate::caveat::{CaveatBook, Topic};
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Definition, Fact, Figure, Section, charts_of};
use dyno_analyze::search::objective::boundary::kept_at;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{
    Attempt, Boundary, Experiment, NotMeasured, ObjectiveEnd, SloAnswer,
};
use dyno_record::quantity::Quantity;

/// All parts of the page of such a search.
pub(super) fn parts(experiment: &Experiment, answer: &SloAnswer, book: &CaveatBook) -> Parts {
    let search = &answer.search;
    // Unknown values are reported from below.
    let around_per_s = search.rate_per_s.or(search.always_missed_from_per_s);
    let costs = search_costs::section(experiment, around_per_s.unwrap_or(1.0));
    Parts {
        headline: figures(answer, book),
        facts: facts(answer),
        sections: std::iter::once(section(answer, book)).chain(costs).collect(),
        definitions: DEFINITIONS.to_vec(),
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
    let marks = book.marks(Topic::Latency, None);
    let mut columns = vec![Column::number("offered", u8::MAX)];
    columns.extend(
        answer
            .objectives
            .responses
            .iter()
            .map(|one| Column::number(one.name(), 200).marked(&marks)),
    );
    columns.extend([Column::number("failed", 100), Column::text("verdict"), Column::text("notes")]);
    let rows = answer.attempts.iter().map(|one| row(answer, one)).collect();
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
        tables: [Table::new("Runs of the search", columns.clone(), rows), tried(answer)]
            .into_iter()
            .chain(set_aside(answer, columns))
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
    let columns = vec![
        Column::number("offered", u8::MAX),
        Column::number("runs", u8::MAX),
        Column::number("kept", u8::MAX),
        Column::number("kept by the curve", 100),
    ];
    let rows = answer.search.tried.iter().map(|one| {
        let count = |count: u32| Cell::from(Quantity::count(u64::from(count)));
        let curve = answer.search.boundary.as_ref().map(|boundary| {
            let share = kept_at(boundary, one.rate_per_s);
            Cell::from(Quantity::ratio(share).brief())
        });
        vec![
            Cell::new(Quantity::per_second(one.rate_per_s), Tone::Strong),
            count(one.kept_count + one.missed_count),
            count(one.kept_count),
            curve.unwrap_or_default(),
        ]
    });
    Table::new("Rates of the search", columns, rows.collect())
}

/// Runs that do not count.
fn set_aside(answer: &SloAnswer, columns: Vec<Column>) -> Option<Table> {
    let rows = answer.set_aside.iter().map(|one| row(answer, one));
    let rows: Vec<Vec<Cell>> = rows.collect();
    (!rows.is_empty()).then(|| Table::new("Runs that were set aside and repeated", columns, rows))
}

fn row(answer: &SloAnswer, attempt: &Attempt) -> Vec<Cell> {
    let mut cells = vec![Cell::new(Quantity::per_second(attempt.rate_per_s), Tone::Strong)];
    cells.extend(answer.objectives.responses.iter().enumerate().map(|(place, one)| {
        let Some(us) = attempt.values_us.get(place) else {
            return Cell::default();
        };
        let tone = if *us <= one.limit_us { Tone::Plain } else { Tone::Alarm };
        Cell::new(Quantity::microseconds(*us), tone)
    }));
    cells.push(unwanted(attempt.failed_ratio));
    cells.push(if attempt.kept { Cell::from("kept") } else { Cell::new("missed", Tone::Soft) });
    let dropped = (attempt.dropped_ratio > 0.0).then(|| {
        let share = Quantity::ratio(attempt.dropped_ratio);
        format!("{share} of the arrivals never sent")
    });
    let bound = attempt.generator_bound.then(|| "generator-bound".to_owned());
    let is_worth_telling = |ratio: &f64| *ratio >= LEAST_STOLEN_RATIO;
    let stolen = attempt.stolen_ratio.filter(is_worth_telling);
    let stolen = stolen.map(|ratio| format!("{} of the CPU time stolen", Quantity::ratio(ratio)));
    let notes: Vec<String> = bound.into_iter().chain(dropped).chain(stolen).collect();
    cells.push(if notes.is_empty() {
        Cell::default()
    } else {
        Cell::new(notes.join(", "), Tone::Alarm)
    });
    cells
}

/// Terms used on the page of such a search.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "objective",
        meaning: "Limits that a run must keep: of response times, from the intended start, and of failures. Arrivals that \
                  were never sent miss every objective.",
    },
    Definition {
        term: "highest rate that keeps it",
        meaning: "The rate that half of the runs keep. Near it, chance decides about a single run: the share of runs that keep \
                  the objective is modelled as a logistic curve over the logarithm of the rate, fitted to all runs of the \
                  search, and the interval holds the true rate with 95 %. Without an interval it is the highest \
                  rate that was kept.",
    },
    Definition {
        term: "kept by 95 %, by 5 % of runs",
        meaning: "Rates on the same curve. The larger their distance, the more chance affects a run on these machines. They \
                  are known less precisely than the rate that half of the runs keep.",
    },
    Definition {
        term: "always kept, always missed",
        meaning: "No run at or below the first rate missed the objective, and none at or above the second kept it. This is \
                  an observation without a stated confidence: another run may contradict it.",
    },
];
