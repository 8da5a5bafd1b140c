//! Reports of a search for an objective.

use super::figure::{TOO_SHORT, interval, interval_or_why, unwanted};
use super::parts::Parts;
use super::search_costs;
use super::slo_charts::{plot, share_plot};
use crate::caveat::{CaveatBook, Topic};
use crate::page::table::{Cell, Column, Columns, Table, Tone};
use crate::page::{Fact, Figure, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::search::objective::boundary::{has_curve, has_interval, kept_at};
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
        definitions: terms(&["slo", "interval"]),
    }
}

/// The rate that 95 % of the runs keep, the rate that half of them keep, and the closed loop's.
fn figures(answer: &SloAnswer, book: &CaveatBook) -> Vec<Figure> {
    let marks = book.marks(Topic::Latency, None);
    let closed = &answer.closed_rate_per_s;
    let mut figures = match &answer.search.boundary {
        Some(boundary) => {
            let kept = |label: &str, rate: &Estimate| {
                let is_below = boundary.not_measured(rate.value) == Some(NotMeasured::Below);
                let per_s = Quantity::per_second(if is_below { f64::NAN } else { rate.value });
                let figure = Figure::new(label, per_s).with_note(interval_of(boundary, rate));
                Figure { alarming: is_below, ..figure.marked(&marks) }
            };
            vec![
                kept("kept by 95 % of runs", &boundary.most_per_s),
                kept("kept by half of the runs", &boundary.half_per_s),
            ]
        }
        None => {
            let found = answer.search.rate_per_s;
            let note = found.map(|found| {
                let share = Quantity::ratio(found / closed.value);
                format!("{share} of a closed loop, no interval: no boundary was found")
            });
            let per_s = Quantity::per_second(found.unwrap_or(f64::NAN));
            let label = match answer.search.end {
                ObjectiveEnd::Interrupted => "highest rate kept so far",
                _ => "highest rate that keeps it",
            };
            let first = Figure {
                alarming: found.is_none(),
                ..Figure::new(label, per_s).with_note(note).marked(&marks)
            };
            std::iter::once(first).chain(of_runs(answer)).collect()
        }
    };
    let range = interval_or_why(closed, Quantity::per_second, TOO_SHORT);
    figures.push(
        Figure::new("closed loop", Quantity::per_second(closed.value))
            .with_note(format!("with the same clients, {range}"))
            .marked(&book.marks(Topic::Rate, None)),
    );
    figures
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

/// `95 % 9,800–10,900/s`, or the side on which nothing was measured.
fn interval_of(boundary: &Boundary, rate: &Estimate) -> String {
    let [low, value, high] = [rate.low, rate.value, rate.high].map(Quantity::per_second);
    let confidence = Quantity::ratio(rate.confidence_ratio).brief();
    let is_wide = has_interval(boundary, rate);
    let is_open = |end: f64, side| boundary.not_measured(end) == Some(side);
    match boundary.not_measured(rate.value) {
        Some(NotMeasured::Below) => {
            let none = format!("none at or above {value}; lower rates were not tried");
            if is_wide { format!("most likely {none}; {confidence} at most {high}") } else { none }
        }
        Some(NotMeasured::Above) if is_wide => format!("or more; {confidence} {low} or more"),
        Some(NotMeasured::Above) => "or more; nothing above it was reached".to_owned(),
        None => {
            let is_low = is_open(rate.low, NotMeasured::Below);
            let open = match (is_low, is_open(rate.high, NotMeasured::Above)) {
                (true, true) => " or beyond",
                (true, false) => " or less",
                (false, true) => " or more",
                (false, false) => "",
            };
            format!("{confidence} {}{open}", interval(low, high))
        }
    }
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
        ObjectiveEnd::OutOfMeasurements => "early: all runs, or all of the time, were used",
        ObjectiveEnd::Interrupted => "interrupted; `dyno resume` continues the search",
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
            Some(tried(answer, book)),
            Some(runs(answer, &answer.attempts, book).table("Runs of the search")),
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
    let order = "The rates are sorted, each with the range of its runs; the runs are in the order of the search.";
    let rule = match &answer.search.boundary {
        Some(boundary) if !has_curve(boundary) => {
            "No run decides alone. The rate that half of the runs keep is outside the rates that were reached, so the \
             table does not show the curve."
        }
        Some(_) => {
            "No run decides alone: the share of runs that keep the objective is a curve over the rate, fitted to all \
             runs together. Nothing above what a run or the closed loop reached is shown."
        }
        None => "Near a boundary runs are repeated.",
    };
    vec![format!("{order} {rule}")]
}

/// The rates in ascending order, each with its runs, and the share of runs that the curve predicts.
fn tried(answer: &SloAnswer, book: &CaveatBook) -> Table {
    let count = |count: u32| Quantity::count(u64::from(count));
    let tried = &answer.search.tried;
    let mut columns = Table::of(tried).number("offered", u8::MAX, |one| {
        Cell::new(Quantity::per_second(one.rate_per_s), Tone::Strong)
    });
    let marks = book.marks(Topic::Latency, None);
    for (place, limit) in answer.objectives.responses.iter().enumerate() {
        let column = Column::number(limit.name(), 200).marked(&marks);
        columns = columns.with(column, |one| {
            let runs = answer.attempts.iter().filter(|run| run.rate_per_s == one.rate_per_s);
            values(runs.filter_map(|run| run.values_us.get(place).copied()), limit.limit_us)
        });
    }
    let search = &answer.search;
    let wanted = search.boundary.as_ref().map(|boundary| boundary.most_per_s.value);
    let wanted = wanted.or(search.rate_per_s).unwrap_or(0.0);
    let focus = tried.iter().take_while(|one| one.rate_per_s <= wanted).count();
    columns
        .number("runs", u8::MAX, |one| count(one.kept_count + one.missed_count))
        .number("kept", u8::MAX, |one| count(one.kept_count))
        .number("kept by the curve", 100, |one| {
            let found = search.boundary.as_ref().filter(|found| has_curve(found));
            let share = found.map(|found| kept_at(found, one.rate_per_s));
            Cell::known(share.map(|share| Quantity::ratio(share).brief()))
        })
        .table("Rates of the search")
        .around(focus)
}

/// The value of the only run at a rate, or the range of its runs: percentiles are not averaged.
fn values(values_us: impl Iterator<Item = f64>, limit_us: f64) -> Cell {
    let ends =
        values_us.map(|us| [us, us]).reduce(|[low, high], [us, _]| [low.min(us), high.max(us)]);
    let Some([low_us, high_us]) = ends else {
        return Cell::default();
    };
    let tone = if high_us > limit_us { Tone::Alarm } else { Tone::Plain };
    let [low, high] = [low_us, high_us].map(Quantity::microseconds);
    if low_us == high_us { Cell::new(low, tone) } else { Cell::new(interval(low, high), tone) }
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
