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
    let columns = vec![
        Column::number("comparison", 90),
        Column::text("what for"),
        // Settings are long, and a narrow terminal must keep the ratios.
        Column { rank: 60, ..Column::text("settings") },
        Column { rank: 50, ..Column::text("beside") },
        Column::number("pairs", 80),
        Column::number("ratio", 200),
        Column::text("notes"),
    ];
    let row = |(trial, number): (&TuneTrial, u32)| {
        let purpose = match (&trial.knob, trial.purpose) {
            (Some(knob), _) => format!("without {knob}"),
            (None, TunePurpose::Across) => "found for others".to_owned(),
            (None, purpose) => purpose.as_str().to_owned(),
        };
        vec![
            Cell::new(number, Tone::Soft),
            purpose.into(),
            settings(&trial.settings).into(),
            Cell::new(settings(&trial.beside), Tone::Soft),
            trial.pairs().count().into(),
            cell(trial.ratio.as_ref(), Quantity::plain),
            note(trial, ended(experiment, trial)),
        ]
    };
    Section {
        title: "Comparisons".into(),
        tables: vec![Table::new(
            "Comparisons",
            columns,
            answer.trials.iter().zip(1_u32..).map(row).collect(),
        )],
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
