//! A summary of the checks of the operational laws, and details of broken laws.

use crate::experiment::law_words::{
    NO_CLOSED_LOOP, TOLERANCES, difference, meaning, name, table, uncertainty,
};
use crate::experiment::levels::Sweep;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
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
    let summary = Table::of(&groups)
        .text("law", |group| Cell::new(name(group.law), Tone::Strong))
        .text("of", |group| group.subject.unwrap_or(""))
        .number("checks", 60, |group| group.checks.len())
        .number("worst difference", 200, |group| difference(worst(group).1.difference_ratio))
        .number("uncertainty", 150, |group| uncertainty(worst(group).1))
        .text("at", |group| sweep.name(worst(group).0))
        .text("verdict", verdict)
        .table("Law checks");
    let checks = groups.iter().flat_map(|group| &group.checks);
    let broken = checks.filter(|(_, check)| is_broken(check));
    let broken: Vec<(String, &LawCheck)> =
        broken.map(|(level, check)| (sweep.name(level), *check)).collect();
    let mut notes = meanings(&groups);
    notes.push(TOLERANCES.to_owned());
    let is_offered = sweep.levels().iter().any(|level| level.offered_rate_per_s.is_some());
    if is_offered && !groups.iter().any(|group| group.law == Law::ResponseTime) {
        notes.push(NO_CLOSED_LOOP.to_owned());
    }
    Some(Section {
        title: sweep.title("Laws").into(),
        lead: "These laws hold for every queueing system, whatever its distributions. Do the measurements obey them?".to_owned(),
        tables: std::iter::once(summary).chain(table("Broken laws", &broken)).collect(),
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

fn verdict(group: &Group<'_>) -> Cell {
    let count = |verdict| group.checks.iter().filter(|(_, c)| c.verdict == verdict).count();
    match (count(LawVerdict::Broken), count(LawVerdict::TooUncertain)) {
        (0, 0) => Cell::from("holds"),
        (0, all) if all == group.checks.len() => Cell::new("inconclusive", Tone::Doubt),
        (0, some) => Cell::new(format!("holds; {some} inconclusive"), Tone::Doubt),
        (some, _) => Cell::new(format!("broken in {some}"), Tone::Alarm),
    }
}

/// The most informative check: the worst conclusive one, or the worst of all if none is conclusive.
fn worst<'a>(group: &Group<'a>) -> (&'a Level, &'a LawCheck) {
    let size = |check: &LawCheck| match group.law {
        Law::RateBound => check.difference_ratio,
        Law::ResponseBound => -check.difference_ratio,
        _ => check.difference_ratio.abs(),
    };
    let says = |check: &LawCheck| check.verdict != LawVerdict::TooUncertain;
    let rank = |check: &LawCheck| (says(check), size(check));
    let worst = group.checks.iter().copied().max_by(|(_, a), (_, b)| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    worst.expect("a group has at least one check")
}

fn is_broken(check: &LawCheck) -> bool {
    check.verdict == LawVerdict::Broken
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
