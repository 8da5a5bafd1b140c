//! The table of all comparisons of a search for settings.

use super::figure::cell;
use super::tune::settings;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::texts::list;
use dyno_record::experiment::{Experiment, Point, TuneAnswer, TunePurpose, TuneTrial};
use dyno_record::quantity::Quantity;

/// The section with the table of comparisons.
pub(super) fn section(experiment: &Experiment, answer: &TuneAnswer) -> Section {
    let trials: Vec<(&TuneTrial, u32)> = answer.trials.iter().zip(1..).collect();
    let table = Table::of(&trials)
        .number("comparison", 90, |(_, number)| Cell::new(number, Tone::Soft))
        .text("what for", |(trial, _)| match (&trial.knob, trial.purpose) {
            (Some(knob), _) => format!("without {knob}"),
            (None, TunePurpose::Across) => "found for others".to_owned(),
            (None, purpose) => purpose.as_str().to_owned(),
        })
        // Settings are long, and a narrow terminal must keep the ratios.
        .with(Column { rank: 60, ..Column::text("settings") }, |(trial, _)| {
            settings(&trial.settings)
        })
        .with(Column { rank: 50, ..Column::text("beside") }, |(trial, _)| {
            Cell::new(settings(&trial.beside), Tone::Soft)
        })
        .number("pairs", 80, |(trial, _)| trial.pairs().count())
        .number("ratio", 200, |(trial, _)| cell(trial.ratio.as_ref(), Quantity::plain))
        .text("notes", |(trial, _)| note(trial, ended(experiment, trial)))
        .table("Comparisons");
    Section {
        title: "Comparisons".into(),
        tables: vec![table],
        is_folded: true,
        ..Section::default()
    }
}

/// The problem of a comparison, or why it was abandoned, with the runs that ended early and the number of pairs that do not
/// count.
fn note(trial: &TuneTrial, ended: Option<String>) -> Cell {
    let set_aside = match trial.set_aside.len() {
        0 => None,
        1 => Some("1 pair set aside".to_owned()),
        several => Some(format!("{several} pairs set aside")),
    };
    let mut others = ended.into_iter().chain(set_aside);
    let first = match &trial.problem {
        Some(reason) if trial.is_refused => Cell::new(format!("refused: {reason}"), Tone::Soft),
        Some(problem) => {
            let whose = if trial.is_beside { "beside: " } else { "" };
            Cell::new(format!("{whose}{problem}"), Tone::Alarm)
        }
        None if trial.is_dropped => Cell::from("certainly worse after the first pair"),
        None => Cell::known(others.next()),
    };
    let others: Vec<String> = others.collect();
    first.with_detail((!others.is_empty()).then(|| others.join("; ")))
}

/// The runs of a comparison that ended early: because of harm, which is the comparison's problem unless the pair was
/// repeated, or because they were certainly worse, which is not a problem.
fn ended(experiment: &Experiment, trial: &TuneTrial) -> Option<String> {
    let set_aside = trial.set_aside.iter().flat_map(|one| &one.runs);
    let points = trial
        .runs
        .iter()
        .flatten()
        .chain(set_aside)
        .filter_map(|place| experiment.points.get(*place));
    let ends: Vec<String> = points.filter_map(end).collect();
    let whose = match ends.len() {
        1 => "its run",
        _ => "its runs",
    };
    (!ends.is_empty()).then(|| format!("{whose} ended {}", list(&ends)))
}

/// Time and reason of a run's early end.
fn end(point: &Point) -> Option<String> {
    let after_s = point.ended_after_s?;
    let when = if after_s > 0.0 {
        format!("after {}", Quantity::seconds(after_s))
    } else {
        "before it was measured".to_owned()
    };
    Some(match point.figures {
        Some(_) => format!("{when} as certainly worse"),
        None => when,
    })
}
