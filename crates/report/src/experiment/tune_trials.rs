//! The table of all comparisons of a search for settings.

use super::figure::cell;
use super::tune::settings;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::texts::list;
use dyno_record::experiment::{Experiment, Point, TuneAnswer, TunePurpose, TuneTrial};
use dyno_record::quantity::Quantity;

/// The section with the table.
pub(super) fn section(experiment: &Experiment, answer: &TuneAnswer) -> Section {
    let columns = vec![
        Column::number("comparison", 90),
        Column::text("what for"),
        // Settings are long, and the ratios are what a narrow terminal must keep.
        Column {
            rank: 60,
            ..Column::text("settings")
        },
        Column {
            rank: 50,
            ..Column::text("beside")
        },
        Column::number("pairs", 80),
        Column::number("ratio", 200),
        Column::text("notes"),
    ];
    let row = |(trial, number): (&TuneTrial, u32)| {
        let purpose = match (&trial.knob, trial.purpose) {
            (Some(knob), _) => format!("without {knob}"),
            (None, TunePurpose::Across) => "found for another".to_owned(),
            (None, TunePurpose::ForAll) => "good for all".to_owned(),
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
    let trials = answer.trials.iter().zip(1_u32..);
    Section {
        title: "Comparisons".into(),
        tables: vec![Table::new(
            "Comparisons",
            columns,
            trials.map(row).collect(),
        )],
        is_folded: true,
        ..Section::default()
    }
}

/// What went wrong with a comparison, or why it was given up; below it which of its runs ended early, and how many of its pairs
/// do not count.
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

/// Which runs of a comparison ended early: by harm, which is its problem unless its pair was made again, or as certainly worse,
/// which is none.
fn ended(experiment: &Experiment, trial: &TuneTrial) -> Option<String> {
    let set_aside = trial.set_aside.iter().flat_map(|one| &one.runs);
    let runs = trial.runs.iter().flatten().chain(set_aside);
    let points = runs.filter_map(|place| experiment.points.get(*place));
    let ends: Vec<String> = points.filter_map(end).collect();
    let whose = match ends.len() {
        1 => "its run",
        _ => "its runs",
    };
    (!ends.is_empty()).then(|| format!("{whose} ended {}", list(&ends)))
}

/// When and why a run ended early.
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
