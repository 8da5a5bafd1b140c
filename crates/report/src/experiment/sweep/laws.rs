//! A summary of the checks of the operational laws, and details of broken laws.

use crate::experiment::law_words::{
    NO_CLOSED_LOOP, TOLERANCES, difference, name, table, uncertainty,
};
use crate::experiment::levels::Sweep;
use crate::experiment::sweep_charts::response_time_law;
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Section, charts_of};
use dyno_analyze::grouping::grouped;
use dyno_record::experiment::{Law, LawCheck, LawVerdict, Level};

/// A law on a subject, with its checks.
type Group<'a> = ((Law, Option<&'a str>), Vec<(&'a Level, &'a LawCheck)>);

/// The section; absent without checks.
pub(super) fn section(sweep: &Sweep<'_>) -> Option<Section> {
    let checks = sweep
        .levels()
        .into_iter()
        .flat_map(|level| level.laws.iter().map(move |check| (level, check)));
    let groups: Vec<Group<'_>> = grouped(
        checks.map(|(level, check)| ((check.law, check.subject.as_deref()), (level, check))),
    );
    if groups.is_empty() {
        return None;
    }
    let summary = Table::of(&groups)
        .text("law", |((law, _), _)| Cell::new(name(*law), Tone::Strong))
        .text("of", |((_, subject), _)| subject.unwrap_or(""))
        .number("checks", 60, |(_, checks)| checks.len())
        .number("worst difference", 200, |group| difference(worst(group).1.difference_ratio))
        .number("uncertainty", 150, |group| uncertainty(worst(group).1))
        .text("at", |group| sweep.name(worst(group).0))
        .text("verdicts", verdict)
        .table("Law checks");
    let checks = groups.iter().flat_map(|(_, checks)| checks);
    let broken = checks.filter(|(_, check)| check.verdict == LawVerdict::Broken);
    let broken: Vec<(String, &LawCheck)> =
        broken.map(|(level, check)| (sweep.name(level), *check)).collect();
    let mut notes = vec![TOLERANCES.to_owned()];
    let is_offered = sweep.levels().iter().any(|level| level.offered_rate_per_s.is_some());
    if is_offered && !groups.iter().any(|((law, _), _)| *law == Law::ResponseTime) {
        notes.push(NO_CLOSED_LOOP.to_owned());
    }
    Some(Section {
        title: sweep.title("Laws").into(),
        lead: "These laws hold for every queueing system, whatever its distributions. Do the measurements obey them?".to_owned(),
        charts: charts_of(response_time_law(sweep)),
        tables: std::iter::once(summary).chain(table("Broken laws", &broken)).collect(),
        notes,
        ..Section::default()
    })
}

fn verdict((_, checks): &Group<'_>) -> Cell {
    let count = |verdict| checks.iter().filter(|(_, c)| c.verdict == verdict).count();
    match (count(LawVerdict::Broken), count(LawVerdict::TooUncertain)) {
        (0, 0) => Cell::from("holds"),
        (0, all) if all == checks.len() => Cell::new("inconclusive", Tone::Doubt),
        (0, some) => Cell::new(format!("holds; {some} inconclusive"), Tone::Doubt),
        (some, _) => Cell::new(format!("broken in {some}"), Tone::Alarm),
    }
}

/// The most informative check: the worst conclusive one, or the worst of all if none is conclusive.
fn worst<'a>(((law, _), checks): &Group<'a>) -> (&'a Level, &'a LawCheck) {
    let size = |check: &LawCheck| match law {
        Law::RateBound => check.difference_ratio,
        Law::ResponseBound => -check.difference_ratio,
        _ => check.difference_ratio.abs(),
    };
    let says = |check: &LawCheck| check.verdict != LawVerdict::TooUncertain;
    let rank = |check: &LawCheck| (says(check), size(check));
    let worst = checks.iter().copied().max_by(|(_, a), (_, b)| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    worst.expect("a group has at least one check")
}
