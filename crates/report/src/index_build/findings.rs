//! Findings about an index build as a whole: the effect of a remedy, and reasons to try one.

use super::sides::{Side, compared};
use super::words::{Change, short_hash, took};
use super::{between, configurations};
use dyno_analyze::access_pattern::{FilePattern, order_statement};
use dyno_record::experiment::{Finding, FindingKind};
use dyno_record::index_build::{IndexBuildDocument, IoFigures, RemedyRecord};
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// A score below which the file order differs from the scan order.
pub(super) const RANDOM_SCORE: f64 = 0.3;
/// A score from which the order needs no fix.
const SEQUENTIAL_SCORE: f64 = 0.8;

/// The findings, the most important first, without findings about single traces.
pub(super) fn findings(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Vec<Finding> {
    let rows = configurations::rows(document, sides);
    let mut found = match rows.is_empty() {
        true => of_one(document, sides),
        false => between::findings(document, &rows),
    };
    found.extend(between::cost(document));
    found
}

/// Findings about a build on one server or deployment.
fn of_one(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Vec<Finding> {
    let remedy = document.remedy.as_ref();
    let mut found = Vec::new();
    found.extend(remedy.and_then(changed));
    found.extend(effect(remedy, sides));
    if let Some(remedy) = remedy {
        found.extend(needless(remedy, sides));
        found.extend(without_effect(remedy, sides));
    }
    found.extend(mismatch(document, sides));
    found
}

/// The finding that documents changed.
pub(super) fn changed(remedy: &RemedyRecord) -> Option<Finding> {
    if remedy.is_identical() {
        return None;
    }
    let evidence = vec![
        statement!(
            "documents-before-and-after",
            before = remedy.documents.0,
            after = remedy.documents.1
        ),
        statement!(
            "hashes-before-and-after",
            before = short_hash(&remedy.content_hash.0),
            after = short_hash(&remedy.content_hash.1)
        ),
        statement!("different-documents-not-comparable"),
    ];
    let said = statement!("remedy-changed-documents", remedy = &remedy.kind);
    Some(Finding::warning(said, evidence))
}

/// The duration of the build after the remedy, or of the second build, with the figures behind it.
fn effect(remedy: Option<&RemedyRecord>, sides: &[Side<'_>]) -> Option<Finding> {
    let Some((before, after)) = compared(sides) else {
        let remedy = remedy.filter(|remedy| remedy.is_identical())?;
        let said = statement!(
            "remedy-without-second-build",
            remedy = &remedy.kind,
            duration = number(took(remedy.duration_s))
        );
        return Some(Finding::found(said, vec![same(remedy)]));
    };
    let (before_s, after_s) = (before.duration_s()?, after.duration_s()?);
    let change = Change::between(before.build?, after.build?)?;
    let identical = remedy.filter(|remedy| remedy.is_identical());
    let said = statement!(
        "second-build-took",
        remedy = remedy.map(|remedy| &remedy.kind),
        before = number(took(before_s)),
        after = number(took(after_s)),
        is_same = change == Change::Same,
        is_unclear = change == Change::Unclear,
        change = change.statement(),
        is_identical = identical.is_some()
    );
    let kind = match change {
        Change::Slower(_) => FindingKind::Warning,
        _ => FindingKind::Finding,
    };
    let mut evidence = Vec::new();
    evidence.extend(scores(before, after));
    evidence.extend(process(before, after));
    evidence.extend(device(before, after));
    evidence.extend(identical.map(same));
    if let Some(remedy) = remedy {
        evidence.push(cost(remedy, before_s - after_s));
    }
    Some(Finding::new(kind, said, evidence))
}

/// Converts a quantity for statements.
pub(super) fn number(quantity: Quantity) -> Number {
    Number::new(quantity.value(), quantity.unit())
}

fn bytes(amount: u64) -> Number {
    number(Quantity::bytes(amount))
}

pub(super) fn score(value: f64) -> Number {
    Number::new(value, Unit::Plain)
}

fn same(remedy: &RemedyRecord) -> Statement {
    statement!(
        "same-documents",
        documents = remedy.documents.0,
        hash = short_hash(&remedy.content_hash.0)
    )
}

fn cost(remedy: &RemedyRecord, saved_s: f64) -> Statement {
    statement!(
        "cost-of-remedy",
        duration = number(took(remedy.duration_s)),
        saved = (saved_s > 0.0).then(|| number(took(saved_s)))
    )
}

fn scores(before: &Side<'_>, after: &Side<'_>) -> Option<Statement> {
    let (was, is) = (before.score()?, after.score()?);
    let (old, new) = (before.file?, after.file?);
    let moved = old.amplification.zip(new.amplification);
    let times = |ratio: f64| number(Quantity::times(ratio));
    Some(statement!(
        "scores-before-and-after",
        file_before = old.label(),
        before = score(was),
        file_after = new.label(),
        after = score(is),
        moved_before = moved.map(|(was, _)| times(was)),
        moved_after = moved.map(|(_, is)| times(is))
    ))
}

fn process(before: &Side<'_>, after: &Side<'_>) -> Option<Statement> {
    let (was, is) = (before.build?.process?, after.build?.process?);
    Some(statement!(
        "reads-of-server",
        reads_before = was.reads,
        bytes_before = bytes(was.read_bytes),
        reads_after = is.reads,
        bytes_after = bytes(is.read_bytes)
    ))
}

fn device(before: &Side<'_>, after: &Side<'_>) -> Option<Statement> {
    let (was, is) = (before.build?.device?, after.build?.device?);
    let reads = |figures: &IoFigures| {
        let busy = figures.busy_ratio.map(Quantity::ratio);
        statement!(
            "reads-of-device",
            reads = figures.reads,
            size = bytes(figures.read_bytes),
            busy = busy.map(number)
        )
    };
    Some(statement!("device-answered", before = reads(&was), after = reads(&is)))
}

/// The finding that the order was already good before.
fn needless(remedy: &RemedyRecord, sides: &[Side<'_>]) -> Option<Finding> {
    let before = sides.first()?;
    let (file, score) = (before.file?, before.score()?);
    if score < SEQUENTIAL_SCORE {
        return None;
    }
    let said = statement!(
        "nothing-to-mend",
        remedy = &remedy.kind,
        file = file.label(),
        order = order_statement(score),
        score = self::score(score)
    );
    Some(Finding::found(said, jumps(file, score)))
}

/// The finding that the order is still bad.
fn without_effect(remedy: &RemedyRecord, sides: &[Side<'_>]) -> Option<Finding> {
    let [before, after, ..] = sides else {
        return None;
    };
    let file = after.file?;
    let (was, is) = (before.score()?, after.score()?);
    if was >= RANDOM_SCORE || is >= RANDOM_SCORE {
        return None;
    }
    let said = statement!(
        "order-not-mended",
        remedy = &remedy.kind,
        file = file.label(),
        order = order_statement(is),
        score = score(is),
        before = score(was)
    );
    Some(Finding::warning(said, jumps(file, is)))
}

/// The finding that scan and file orders differ, with advice if no remedy was applied.
fn mismatch(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Option<Finding> {
    let first = sides.first()?;
    let (file, score) = (first.file?, first.score()?);
    if score >= RANDOM_SCORE {
        return None;
    }
    let asked = document.recorded_plan().index_build;
    let is_asked = asked.is_some_and(|asked| asked.remedy.is_some());
    let is_open = document.remedy.is_none() && !is_asked;
    let said = statement!(
        "scan-and-disk-order-disagree",
        has_remedy = document.remedy.is_some(),
        namespace = &document.collection.namespace,
        file = file.label(),
        can_be_mended = is_open
    );
    let kind = if is_open { FindingKind::Opportunity } else { FindingKind::Finding };
    Some(Finding::new(kind, said, jumps(file, score)))
}

pub(super) fn jumps(file: &FilePattern, score: f64) -> Vec<Statement> {
    let mut said = vec![statement!("score", score = self::score(score))];
    let seek = file.median_seek_bytes();
    said.extend(seek.map(|seek| statement!("median-jump", jump = bytes(seek as u64))));
    said.extend(file.amplification.map(|times| {
        let times = number(Quantity::times(times));
        statement!("reads-moved", reads = file.calls, times = times)
    }));
    said
}
