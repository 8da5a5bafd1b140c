//! The result of a run in a few numbers.

use super::result::{by_count, failed, failure_label, failures, shed};
use crate::caveat::{CaveatBook, Topic};
use crate::experiment::figure::{CORRELATED, TOO_FEW_BEYOND, TOO_SHORT, interval_or_why};
use crate::facts;
use crate::page::Figure;
use crate::texts::short;
use dyno_analyze::experiment::run::{NoInterval, RunAnalysis, longest_needed_s};
use dyno_record::model::{PhaseKind, PhaseRecord, RunDocument};
use dyno_record::quantity::Quantity;

/// Rate, response times of the most frequent operation, and errors of a phase.
pub(super) fn headline(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
    book: &CaveatBook,
) -> Vec<Figure> {
    let marks = |topic| book.marks(topic, Some(phase.name));
    // Only the measure phase is analysed.
    let analysis = analysis.filter(|_| phase.name == PhaseKind::Measure);
    // Value and interval come from the same windows.
    let part = analysis.filter(|analysis| analysis.figures.warm_up_s > 0.0);
    let rate_of_part = part.map(|analysis| analysis.figures.rate_per_s.value);
    let mut rate = rate_figure(document, phase, rate_of_part, marks(Topic::Rate));
    rate.note = analysis.map_or(rate.note.clone(), |analysis| {
        let range =
            range(analysis, None, "rate", &analysis.figures.rate_per_s, Quantity::per_second);
        Some(format!("{}, {range}", rate.note.as_ref()?))
    });
    let mut figures = vec![rate];
    if let Some((name, operation)) = by_count(document, phase).first() {
        let summary = &operation.response_time_us;
        let levels = [
            ("p50", "p50", summary.p50, Topic::Latency),
            ("p99", "p99", summary.p99, Topic::Latency),
            ("p99_9", "p99.9", summary.p99_9, Topic::Tail),
        ];
        let found = analysis.and_then(|analysis| Some((analysis, analysis.operations.get(*name)?)));
        figures.extend(levels.map(|(key, level, value, topic)| {
            let range = found.and_then(|(analysis, found)| {
                let figure = found.response_us.get(key)?;
                let us = Quantity::microseconds;
                Some(range(analysis, Some(name), key, figure, us))
            });
            let label = facts::operation_label(name);
            let note = range.map_or(label.clone(), |range| format!("{label}, {range}"));
            let of_part = part.and_then(|part| part.operations.get(*name)?.response_us.get(key));
            let value = of_part.map_or(value, |figure| figure.value);
            let value = quantity_if(operation.count > 0, value);
            Figure::new(format!("{level} response time"), value)
                .with_note(note)
                .marked(&marks(topic))
        }));
    }
    figures.push(errors_figure(phase, marks(Topic::Errors)));
    figures
}

/// The interval of a figure, or the reason why it has none; `key` is its name in the analysis, for an operation or for all.
fn range(
    analysis: &RunAnalysis,
    operation: Option<&str>,
    key: &str,
    figure: &dyno_record::experiment::Figure,
    quantity: fn(f64) -> Quantity,
) -> String {
    let why = why_no_interval(analysis, operation, key);
    let range = interval_or_why(figure, quantity, &why);
    let warm_up_s = analysis.figures.warm_up_s;
    if warm_up_s > 0.0 {
        let length = Quantity::seconds(warm_up_s);
        return format!("{range} without the first {length}");
    }
    range
}

/// Why a figure has no interval, and how long a run would need to be.
pub(super) fn why_no_interval(
    analysis: &RunAnalysis,
    operation: Option<&str>,
    key: &str,
) -> String {
    let mut missing = analysis.without_interval.iter();
    let missing = missing.find(|one| one.operation.as_deref() == operation && one.figure == key);
    let Some(missing) = missing else {
        return TOO_SHORT.to_owned();
    };
    let why = match missing.reason {
        NoInterval::TooFewBeyond => TOO_FEW_BEYOND,
        NoInterval::TooFewWindows => TOO_SHORT,
        NoInterval::Correlated => CORRELATED,
    };
    match longest_needed_s(std::iter::once(missing)) {
        Some(needed_s) => {
            format!("{why}, ±10 % needs about {}", short(&Quantity::seconds(needed_s).to_string()))
        }
        None => why.to_owned(),
    }
}

/// The rate of a load phase counts documents, because documents per command are a setting.
fn rate_figure(
    document: &RunDocument,
    phase: &PhaseRecord,
    rate_of_part: Option<f64>,
    marks: Vec<usize>,
) -> Figure {
    let rate_per_s = rate_of_part.unwrap_or(phase.achieved_rate_per_s);
    let documents: u64 = phase.operations.values().map(|o| o.documents).sum();
    let is_load = phase.name == PhaseKind::Load && phase.duration_s > 0.0;
    let (label, rate_per_s, note) = if is_load {
        let commands = Quantity::per_second(phase.achieved_rate_per_s);
        let note = rate_note(document, phase, rate_per_s);
        let note = format!("{note}, {commands} commands");
        ("documents inserted", documents as f64 / phase.duration_s, note)
    } else {
        let note = rate_note(document, phase, rate_per_s);
        ("achieved rate", rate_per_s, note)
    };
    Figure::new(label, Quantity::per_second(rate_per_s)).with_note(note).marked(&marks)
}

/// A time in microseconds, or no value without measurements, because 0 would be a claim.
fn quantity_if(measured: bool, value_us: f64) -> Quantity {
    Quantity::microseconds(if measured { value_us } else { f64::NAN })
}

fn rate_note(document: &RunDocument, phase: &PhaseRecord, rate_per_s: f64) -> String {
    match phase.offered_rate_per_s {
        Some(offered) if offered > 0.0 => format!(
            "{} of {} offered",
            Quantity::ratio(rate_per_s / offered),
            Quantity::per_second(offered)
        ),
        _ if phase.name == PhaseKind::Load => "as fast as possible".into(),
        _ => match facts::schedule(&document.recorded_plan()) {
            schedule if schedule.is_empty() => "closed loop".into(),
            schedule => schedule,
        },
    }
}

fn errors_figure(phase: &PhaseRecord, marks: Vec<usize>) -> Figure {
    let (failed, share) = failed(phase);
    let kinds = failures(phase);
    let share = Quantity::ratio(share);
    let note = match kinds.as_slice() {
        [] => "no operation failed".into(),
        [(kind, _)] => format!("{share}, all {}", failure_label(phase, kind)),
        [(kind, _), ..] => format!("{share}, mostly {}", failure_label(phase, kind)),
    };
    let note = match (shed(phase), kinds.len()) {
        (0, _) | (_, 1) => note,
        (shed, _) => format!("{note}, {} shed by the server", Quantity::count(shed)),
    };
    Figure {
        alarming: failed > 0,
        ..Figure::new("errors", Quantity::count(failed)).with_note(note).marked(&marks)
    }
}
