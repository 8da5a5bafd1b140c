//! What follows from an index build as a whole, in words: what a remedy did, and what one would do.

use super::sides::{Side, compared};
use super::words::{Change, short_hash, took};
use dyno_analyze::access_pattern::{FilePattern, order_words};
use dyno_analyze::experiment::{Finding, FindingKind};
use dyno_record::index_build::{IndexBuildDocument, IoFigures, RemedyRecord};
use dyno_record::quantity::Quantity;

/// A score below which the order of the file is not that of the scan.
const RANDOM_SCORE: f64 = 0.3;
/// A score from which there is nothing to mend.
const SEQUENTIAL_SCORE: f64 = 0.8;

/// The findings, the most important first. Those of the traces by themselves are left out.
pub(super) fn findings(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Vec<Finding> {
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

/// That documents are not what they were.
fn changed(remedy: &RemedyRecord) -> Option<Finding> {
    if remedy.is_identical() {
        return None;
    }
    let text = format!(
        "the remedy `{}` changed documents: what is in the collection now is not what was in it before",
        remedy.kind
    );
    let evidence = vec![
        format!(
            "there were {} documents and there are {}",
            Quantity::count(remedy.documents.0),
            Quantity::count(remedy.documents.1)
        ),
        format!(
            "the content hash was `{}` and is `{}`",
            short_hash(&remedy.content_hash.0),
            short_hash(&remedy.content_hash.1)
        ),
        "builds on different documents cannot be compared".to_owned(),
    ];
    Some(Finding::new(FindingKind::Warning, text, evidence))
}

/// How long the build took after the remedy, or the second time, with the figures behind it.
fn effect(remedy: Option<&RemedyRecord>, sides: &[Side<'_>]) -> Option<Finding> {
    let Some((before, after)) = compared(sides) else {
        let remedy = remedy.filter(|remedy| remedy.is_identical())?;
        let text = format!(
            "the remedy `{}` took {} and changed not one document; the index was not built again after it",
            remedy.kind,
            took(remedy.duration_s)
        );
        return Some(Finding::new(FindingKind::Finding, text, vec![same(remedy)]));
    };
    let (before_s, after_s) = (before.duration_s()?, after.duration_s()?);
    let change = Change::of(before_s, after_s)?;
    let subject = match remedy {
        Some(remedy) => format!("after `{}` the index build took", remedy.kind),
        None => "the second index build took".to_owned(),
    };
    let mut text = match change {
        Change::Same => format!(
            "{subject} as long as before: {} and {}",
            took(before_s),
            took(after_s)
        ),
        _ => format!(
            "{subject} {} instead of {}: it is {}",
            took(after_s),
            took(before_s),
            change.words()
        ),
    };
    let identical = remedy.filter(|remedy| remedy.is_identical());
    if identical.is_some() {
        text += ", and not one document changed";
    }
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
    Some(Finding::new(kind, text, evidence))
}

fn same(remedy: &RemedyRecord) -> String {
    format!(
        "there were and are {} documents with the content hash `{}`",
        Quantity::count(remedy.documents.0),
        short_hash(&remedy.content_hash.0)
    )
}

fn cost(remedy: &RemedyRecord, saved_s: f64) -> String {
    let cost = format!(
        "the remedy took {} with all verification",
        took(remedy.duration_s)
    );
    match saved_s > 0.0 {
        true => format!("{cost}; the build took {} less", took(saved_s)),
        false => cost,
    }
}

fn scores(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let (was, is) = (before.score()?, after.score()?);
    let (old, new) = (before.file?, after.file?);
    let mut text = match old.name == new.name {
        true => format!("the score of `{}` was {was:.2} and is {is:.2}", old.name),
        false => format!(
            "the score of `{}` was {was:.2}, that of `{}` is {is:.2}",
            old.name, new.name
        ),
    };
    if let Some((was, is)) = old.amplification.zip(new.amplification) {
        text += &format!(
            "; {} times the size of the file was read before, and {} times after",
            Quantity::times(was),
            Quantity::times(is)
        );
    }
    Some(text)
}

fn process(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let (was, is) = (before.build?.process?, after.build?.process?);
    Some(format!(
        "the server made {} reads, of which {} came from devices, and then {} reads with {}",
        Quantity::count(was.reads),
        Quantity::bytes(was.read_bytes),
        Quantity::count(is.reads),
        Quantity::bytes(is.read_bytes)
    ))
}

fn device(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let (was, is) = (before.build?.device?, after.build?.device?);
    let said = |figures: &IoFigures| {
        let busy = figures.busy_ratio.map_or(String::new(), |ratio| {
            format!(", busy for {} of the time", Quantity::ratio(ratio))
        });
        format!(
            "{} reads of {}{busy}",
            Quantity::count(figures.reads),
            Quantity::bytes(figures.read_bytes)
        )
    };
    Some(format!(
        "the device answered {}, and then {}",
        said(&was),
        said(&is)
    ))
}

/// That the order was good before.
fn needless(remedy: &RemedyRecord, sides: &[Side<'_>]) -> Option<Finding> {
    let before = sides.first()?;
    let (file, score) = (before.file?, before.score()?);
    if score < SEQUENTIAL_SCORE {
        return None;
    }
    let text = format!(
        "the remedy `{}` had nothing to mend: `{}` was read {} before it (score {score:.2})",
        remedy.kind,
        file.name,
        order_words(score)
    );
    Some(Finding::new(FindingKind::Finding, text, jumps(file, score)))
}

/// That the order is bad still.
fn without_effect(remedy: &RemedyRecord, sides: &[Side<'_>]) -> Option<Finding> {
    let [before, after, ..] = sides else {
        return None;
    };
    let file = after.file?;
    let (was, is) = (before.score()?, after.score()?);
    if was >= RANDOM_SCORE || is >= RANDOM_SCORE {
        return None;
    }
    let text = format!(
        "the remedy `{}` did not mend the order: `{}` is still read {} (score {is:.2}, before {was:.2})",
        remedy.kind,
        file.name,
        order_words(is)
    );
    Some(Finding::new(FindingKind::Warning, text, jumps(file, is)))
}

/// That scan and file disagree about the order, and what to do about it where nothing was.
fn mismatch(document: &IndexBuildDocument, sides: &[Side<'_>]) -> Option<Finding> {
    let first = sides.first()?;
    let (file, score) = (first.file?, first.score()?);
    if score >= RANDOM_SCORE {
        return None;
    }
    let (namespace, name) = (&document.collection.namespace, &file.name);
    let mut text = match document.remedy {
        Some(_) => format!(
            "before the remedy, scan order and disk order disagreed: the index build went through `{namespace}` record by record, and \
             neighbours in this order lay far apart in `{name}`"
        ),
        None => format!(
            "scan order and disk order disagree: the index build goes through `{namespace}` record by record, and neighbours in this \
             order lie far apart in `{name}`"
        ),
    };
    let is_asked = document
        .plan
        .pointer("/index_build/remedy")
        .is_some_and(|remedy| !remedy.is_null());
    let is_open = document.remedy.is_none() && !is_asked;
    if is_open {
        text += "; `--remedy rewrite` writes the documents in the order of the scan, builds the index again and shows both";
    }
    let kind = match is_open {
        true => FindingKind::Opportunity,
        false => FindingKind::Finding,
    };
    Some(Finding::new(kind, text, jumps(file, score)))
}

fn jumps(file: &FilePattern, score: f64) -> Vec<String> {
    let mut said = vec![format!(
        "the score is {score:.2}, where 1 is a file that is read from its start to its end"
    )];
    said.extend(file.median_seek_bytes().map(|bytes| {
        format!(
            "from one read to the next it is {} in the median",
            Quantity::bytes(bytes as u64)
        )
    }));
    said.extend(file.amplification.map(|times| {
        format!(
            "{} reads moved {} times the size of the file",
            Quantity::count(file.calls),
            Quantity::times(times)
        )
    }));
    said
}
