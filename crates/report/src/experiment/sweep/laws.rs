//! A summary of the checks of the operational laws, and details of broken laws.

use crate::experiment::law_words::{
    NO_CLOSED_LOOP, TOLERANCES, difference, meaning, name, uncertainty, unit,
};
use crate::experiment::levels::Sweep;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_record::experiment::{Law, LawCheck, LawVerdict, Level};

/// Checks of the same law on the same subject.
struct Group<'a> {
    law: Law,
    subject: Option<&'a str>,
    checks: Vec<(&'a Level, &'a LawCheck)>,
}

/// The section; absent without checks.
pub(super) fn section(sweep: &Sweep<'_>) -> Option<Section> {
    let groups = groups(sweep);
    if groups.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("law"),
        Column::text("of"),
        Column::number("checks", 60),
        Column::number("worst difference", 200),
        Column::number("uncertainty", 150),
        Column::text("at"),
        Column::text("verdict"),
    ];
    let rows = groups.iter().map(|group| row(sweep, group)).collect();
    let broken = broken_table(sweep, &groups);
    let mut notes = meanings(&groups);
    notes.push(TOLERANCES.to_owned());
    let is_offered = sweep.levels().iter().any(|level| level.offered_rate_per_s.is_some());
    if is_offered && !groups.iter().any(|group| group.law == Law::ResponseTime) {
        notes.push(NO_CLOSED_LOOP.to_owned());
    }
    Some(Section {
        title: sweep.title("Laws").into(),
        lead: "These laws hold for every queueing system, whatever its distributions. Do the measurements obey them?".to_owned(),
        tables: std::iter::once(Table::new("Law checks", columns, rows))
            .chain(broken)
            .collect(),
        notes,
        ..Section::default()
    })
}

fn groups<'a>(sweep: &Sweep<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for level in sweep.levels() {
        for check in &level.laws {
            let subject = check.subject.as_deref();
            let known =
                groups.iter_mut().find(|group| group.law == check.law && group.subject == subject);
            match known {
                Some(group) => group.checks.push((level, check)),
                None => {
                    groups.push(Group { law: check.law, subject, checks: vec![(level, check)] })
                }
            }
        }
    }
    groups
}

fn row(sweep: &Sweep<'_>, group: &Group<'_>) -> Vec<Cell> {
    let count = |verdict| group.checks.iter().filter(|(_, c)| c.verdict == verdict).count();
    let (broken, uncertain) = (count(LawVerdict::Broken), count(LawVerdict::TooUncertain));
    let verdict = match (broken, uncertain) {
        (0, 0) => Cell::from("holds"),
        (0, all) if all == group.checks.len() => Cell::new("inconclusive", Tone::Doubt),
        (0, some) => Cell::new(format!("holds; {some} inconclusive"), Tone::Doubt),
        (some, _) => Cell::new(format!("broken in {some}"), Tone::Alarm),
    };
    let mut cells = vec![
        Cell::new(name(group.law), Tone::Strong),
        group.subject.unwrap_or("").into(),
        group.checks.len().into(),
    ];
    match worst(group) {
        Some((level, check)) => cells.extend([
            difference(check.difference_ratio).into(),
            uncertainty(check).into(),
            sweep.name(level).into(),
        ]),
        None => cells.extend([Cell::default(), Cell::default(), Cell::default()]),
    }
    cells.push(verdict);
    cells
}

/// The most informative check: the worst conclusive one, or the worst of all if none is conclusive.
fn worst<'a>(group: &Group<'a>) -> Option<(&'a Level, &'a LawCheck)> {
    let size = |check: &LawCheck| match group.law {
        Law::RateBound => check.difference_ratio,
        Law::ResponseBound => -check.difference_ratio,
        _ => check.difference_ratio.abs(),
    };
    let says = |check: &LawCheck| check.verdict != LawVerdict::TooUncertain;
    let rank = |check: &LawCheck| (says(check), size(check));
    group.checks.iter().copied().max_by(|(_, a), (_, b)| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

fn is_broken(check: &LawCheck) -> bool {
    check.verdict == LawVerdict::Broken
}

fn broken_table(sweep: &Sweep<'_>, groups: &[Group<'_>]) -> Option<Table> {
    let columns = vec![
        Column::text("broken law"),
        Column::text("of"),
        Column::text("at"),
        Column::number("measured", 200),
        Column::number("by the law", 190),
        Column::number("difference", 180),
        Column::number("uncertainty", 150),
    ];
    let mut rows = Vec::new();
    for group in groups {
        let broken = group.checks.iter().filter(|(_, check)| is_broken(check));
        rows.extend(broken.map(|(level, check)| {
            let quantity = unit(group.law);
            vec![
                Cell::new(name(group.law), Tone::Alarm),
                group.subject.unwrap_or("").into(),
                sweep.name(level).into(),
                quantity(check.measured).into(),
                quantity(check.predicted).into(),
                Cell::new(difference(check.difference_ratio), Tone::Alarm),
                uncertainty(check).into(),
            ]
        }));
    }
    (!rows.is_empty()).then(|| Table::new("Broken laws", columns, rows))
}

/// The meaning of each broken law.
fn meanings(groups: &[Group<'_>]) -> Vec<String> {
    let mut notes: Vec<String> = groups
        .iter()
        .filter(|group| group.checks.iter().any(|(_, check)| is_broken(check)))
        .map(|group| {
            let meaning = meaning(group.law);
            format!("{} is broken: {meaning}.", name(group.law))
        })
        .collect();
    notes.dedup();
    notes
}
