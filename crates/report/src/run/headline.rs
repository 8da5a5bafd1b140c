//! The result of a run in a few numbers.

use super::result::{by_count, failures};
use crate::caveat::{CaveatBook, Topic};
use crate::experiment::figure::interval_of;
use crate::facts;
use crate::page::Figure;
use dyno_analyze::experiment::run::RunAnalysis;
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
    let mut rate = rate_figure(document, phase, marks(Topic::Rate));
    let rate_per_s = analysis.map(|analysis| &analysis.figures.rate_per_s);
    let warm_up = analysis
        .map(|analysis| analysis.figures.warm_up_s)
        .filter(|length_s| *length_s > 0.0)
        .map(Quantity::seconds);
    rate.note = with_interval(rate.note, rate_per_s, warm_up, Quantity::per_second);
    let mut figures = vec![rate];
    if let Some((name, operation)) = by_count(phase).first() {
        let summary = &operation.response_time_us;
        let levels = [
            ("p50", "p50", summary.p50, Topic::Latency),
            ("p99", "p99", summary.p99, Topic::Latency),
            ("p99_9", "p99.9", summary.p99_9, Topic::Tail),
        ];
        let found = analysis.and_then(|analysis| analysis.operations.get(*name));
        figures.extend(levels.map(|(key, level, value, topic)| {
            let figure = found.and_then(|found| found.response_us.get(key));
            let note = Some(facts::operation_label(name));
            let value = quantity_if(operation.count > 0, value);
            Figure::new(format!("{level} response time"), value)
                .with_note(with_interval(note, figure, warm_up, Quantity::microseconds))
                .marked(&marks(topic))
        }));
    }
    figures.push(errors_figure(phase, marks(Topic::Errors)));
    figures
}

/// A note with the interval of its figure, if there is one.
fn with_interval(
    note: Option<String>,
    figure: Option<&dyno_record::experiment::Figure>,
    warm_up: Option<Quantity>,
    quantity: fn(f64) -> Quantity,
) -> Option<String> {
    let Some(range) = figure.and_then(|figure| interval_of(figure, quantity)) else {
        return note;
    };
    // The value is that of the whole phase, the interval that of its stationary part.
    let part = warm_up.map_or(String::new(), |length| {
        format!(" without the first {length}")
    });
    Some(format!("{}, 95 % {range}{part}", note?))
}

/// The rate of a load phase is that of its documents: what one command inserts is a setting.
fn rate_figure(document: &RunDocument, phase: &PhaseRecord, marks: Vec<usize>) -> Figure {
    let documents: u64 = phase.operations.values().map(|o| o.documents).sum();
    let is_load = phase.name == PhaseKind::Load && phase.duration_s > 0.0;
    let (label, rate_per_s, note) = if is_load {
        let commands = Quantity::per_second(phase.achieved_rate_per_s);
        let note = format!("{}, {commands} commands", rate_note(document, phase));
        (
            "documents inserted",
            documents as f64 / phase.duration_s,
            note,
        )
    } else {
        let note = rate_note(document, phase);
        ("achieved rate", phase.achieved_rate_per_s, note)
    };
    Figure::new(label, Quantity::per_second(rate_per_s))
        .with_note(note)
        .marked(&marks)
}

/// A time in microseconds, or no value where nothing was measured: 0 would be a claim.
fn quantity_if(measured: bool, value_us: f64) -> Quantity {
    Quantity::microseconds(if measured { value_us } else { f64::NAN })
}

fn rate_note(document: &RunDocument, phase: &PhaseRecord) -> String {
    match phase.offered_rate_per_s {
        Some(offered) if offered > 0.0 => format!(
            "{} of {} offered",
            Quantity::ratio(phase.achieved_rate_per_s / offered),
            Quantity::per_second(offered)
        ),
        _ if phase.name == PhaseKind::Load => "as fast as it goes".into(),
        _ => match facts::schedule(&document.recorded_plan()) {
            schedule if schedule.is_empty() => "closed loop".into(),
            schedule => schedule,
        },
    }
}

fn errors_figure(phase: &PhaseRecord, marks: Vec<usize>) -> Figure {
    // A run of an earlier version knows the failures by kind alone.
    let failed = match phase.failed {
        0 => phase.errors.values().sum(),
        failed => failed,
    };
    let succeeded = (phase.achieved_rate_per_s * phase.duration_s).round();
    let share = failed as f64 / (succeeded + failed as f64);
    let kinds = failures(phase);
    let share = Quantity::ratio(share);
    let note = match kinds.as_slice() {
        [] => "no operation failed".into(),
        [(kind, _)] => format!("{share}, all {kind}"),
        [(kind, _), ..] => format!("{share}, mostly {kind}"),
    };
    Figure {
        alarming: failed > 0,
        ..Figure::new("errors", Quantity::count(failed))
            .with_note(note)
            .marked(&marks)
    }
}
