//! What the patterns mean, in words.

use super::pattern::{AccessPatterns, FilePattern};
use crate::experiment::words::{bytes, list, number, percent, time, times};
use crate::experiment::{Finding, FindingKind};
use dyno_record::io_trace::document::FileKind;
use dyno_record::io_trace::event::Operation;

/// Most files that findings are about.
const MOST_FILES: usize = 4;
/// Fewer calls are no pattern worth a sentence.
const FEWEST_CALLS: u64 = 64;
/// Below this share of all bytes of an operation a file is not worth a sentence.
const SMALL_RATIO: f64 = 0.02;
/// A score up to which order is called random.
const RANDOM_SCORE: f64 = 0.3;
/// Reads of more than this many times the size of a file are worth a word.
const AMPLIFIED: f64 = 1.5;
/// Share of requests with a choice from which the device's share is worth a doubt.
const AMBIGUOUS_RATIO: f64 = 0.2;

/// A smaller change of the score is none.
const NOTABLE_CHANGE: f64 = 0.1;

/// What the traced program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// In words, as the subject of a sentence: `index build`, `fio`.
    pub subject: String,
    /// Whether it goes through a collection record by record, so that random reads of the
    /// collection's file mean that the file has another order than the records.
    pub scans_records: bool,
}

/// Findings about the files with the most bytes, the largest ones first.
pub fn findings(patterns: &AccessPatterns, activity: &Activity) -> Vec<Finding> {
    let mut found = Vec::new();
    for operation in [Operation::Read, Operation::Fault, Operation::Write] {
        let of_operation = || patterns.files.iter().filter(|f| f.operation == operation);
        let all: u64 = of_operation().map(|file| file.bytes).sum();
        let mut files: Vec<&FilePattern> = of_operation()
            .filter(|file| file.calls >= FEWEST_CALLS)
            .filter(|file| file.bytes as f64 >= all as f64 * SMALL_RATIO)
            .collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        let files = files.into_iter().take(MOST_FILES);
        found.extend(files.filter_map(|file| order(file, activity)));
    }
    found.extend(ambiguous(patterns));
    found
}

/// `in almost random order` and the like, by the score.
pub fn order_words(score: f64) -> &'static str {
    match score {
        score if score < 0.1 => "in almost random order",
        score if score < RANDOM_SCORE => "in mostly random order",
        score if score < 0.7 => "in partly sequential order",
        score if score < 0.9 => "in mostly sequential order",
        _ => "sequentially",
    }
}

/// What became of the order of a file between two traces; `None` where one of them has no score.
pub fn compared(before: &FilePattern, after: &FilePattern) -> Option<Finding> {
    let scores = (before.score?, after.score?);
    let what = match scores.1 - scores.0 {
        change if change >= NOTABLE_CHANGE => "became more sequential",
        change if change <= -NOTABLE_CHANGE => "became more random",
        _ => "kept their order",
    };
    let (noun, name) = match before.operation {
        Operation::Read => ("reads", &after.name),
        Operation::Write => ("writes", &after.name),
        Operation::Fault => ("page faults", &after.name),
        Operation::Sync => return None,
    };
    let mut text = format!(
        "the {noun} of `{name}`{} {what}: the score was {:.2} and is {:.2}, there were {} {noun} and are {}",
        content(after),
        scores.0,
        scores.1,
        many(before.calls),
        many(after.calls)
    );
    if let Some((was, is)) = before.amplification.zip(after.amplification) {
        text += &format!(
            ", they moved {}× the size of the file and move {}×",
            times(was),
            times(is)
        );
    }
    Some(Finding {
        kind: FindingKind::Finding,
        text,
        evidence: changes(before, after),
    })
}

/// What else changed, a sentence each.
fn changes(before: &FilePattern, after: &FilePattern) -> Vec<String> {
    let mut said = Vec::new();
    let seeks = before.median_seek_bytes().zip(after.median_seek_bytes());
    said.extend(seeks.map(|(was, is)| {
        format!(
            "the median seek was {} and is {}",
            short_bytes(was),
            short_bytes(is)
        )
    }));
    said.extend(before.latency.zip(after.latency).map(|(was, is)| {
        format!(
            "the mean latency was {} and is {}",
            time(was.mean_ns * 1e-9),
            time(is.mean_ns * 1e-9)
        )
    }));
    said.extend(before.device.zip(after.device).map(|(was, is)| {
        format!(
            "{} of the calls waited for the device, and {} do",
            percent(was.waiting_ratio),
            percent(is.waiting_ratio)
        )
    }));
    said
}

fn order(file: &FilePattern, activity: &Activity) -> Option<Finding> {
    let score = file.score?;
    let (verb, noun) = match file.operation {
        Operation::Read => ("read", "reads"),
        Operation::Write => ("wrote", "writes"),
        Operation::Fault => ("read the mapped", "page faults"),
        Operation::Sync => return None,
    };
    let mut text = format!(
        "{} {verb} `{}`{} {} (score {score:.2}): {} {noun}{}",
        activity.subject,
        file.name,
        content(file),
        order_words(score),
        many(file.calls),
        sizes(file)
    );
    let is_read = file.operation == Operation::Read;
    if let Some(amplification) = file
        .amplification
        .filter(|&times| is_read && times >= AMPLIFIED)
    {
        text += &format!(", {}× the size of the file", times(amplification));
    }
    let is_random = is_read && score < RANDOM_SCORE;
    let kind = file.role.as_ref().map(|role| role.kind);
    if is_random && activity.scans_records && kind == Some(FileKind::Collection) {
        text += "; the scan follows record order, the file does not";
    }
    Some(Finding {
        kind: FindingKind::Finding,
        text,
        evidence: evidence(file),
    })
}

/// ` (ycsb.usertable)` where it is known what a file holds.
fn content(file: &FilePattern) -> String {
    let Some(role) = &file.role else {
        return String::new();
    };
    match (&role.namespace, &role.index, &role.words) {
        (Some(namespace), Some(index), _) => format!(" (index `{index}` of `{namespace}`)"),
        (Some(namespace), None, _) => format!(" (`{namespace}`)"),
        (None, _, Some(words)) => format!(" ({words})"),
        _ => String::new(),
    }
}

/// ` of 32 KiB` where nearly all are of one size, else the median.
fn sizes(file: &FilePattern) -> String {
    let Some((from, below, count)) = file.size_bytes.buckets().max_by_key(|bucket| bucket.2) else {
        return String::new();
    };
    let all = file.size_bytes.count();
    // Sizes that are powers of two begin a bucket.
    if count as f64 >= 0.8 * all as f64 && from > 0 {
        let mean = file.bytes as f64 / file.calls as f64;
        let is_exact = count == all && mean >= from as f64 && mean < below as f64;
        return format!(
            " of {}",
            short_bytes(if is_exact { mean } else { from as f64 })
        );
    }
    match file.median_bytes() {
        Some(median) => format!(" of {} in the median", short_bytes(median)),
        None => String::new(),
    }
}

/// Bytes without digits that say nothing: `32 KiB`, `1.5 MiB`.
fn short_bytes(value: f64) -> String {
    let text = bytes(value);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}")
}

/// `3.1 million`, `89,000`.
fn many(count: u64) -> String {
    match count {
        1_000_000_000.. => format!("{:.1} billion", count as f64 / 1e9),
        1_000_000.. => format!("{:.1} million", count as f64 / 1e6),
        _ => number(count as f64),
    }
}

fn evidence(file: &FilePattern) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(ratio) = file.sequential_ratio {
        let mut text = format!("{} of the calls continue a stream", percent(ratio));
        if let Some(streams) = file.streams.filter(|streams| streams.streams > 0) {
            text += &format!(
                ", in streams of {} calls on average",
                number(streams.mean_calls)
            );
        }
        said.push(text);
    }
    if let Some(seek) = file.median_seek_bytes() {
        said.push(format!("the median seek is {}", short_bytes(seek)));
    }
    if let Some((working_set, again)) = file.working_set_bytes.zip(file.reread_ratio) {
        said.push(format!(
            "{} were touched, and {} of what was moved had been touched before",
            short_bytes(working_set as f64),
            percent(again)
        ));
    }
    said.extend(latency(file));
    if let Some(device) = &file.device {
        said.push(format!(
            "{} of the calls waited for the device, the page cache answered the others",
            percent(device.waiting_ratio)
        ));
    }
    said
}

fn latency(file: &FilePattern) -> Option<String> {
    let latency = file.latency?;
    let figures = [
        ("median", latency.p50_ns),
        ("99th percentile", latency.p99_ns),
    ];
    let figures = figures.map(|(name, ns)| format!("{name} {}", time(ns * 1e-9)));
    Some(format!("a call took: {}", list(&figures)))
}

fn ambiguous(patterns: &AccessPatterns) -> Option<Finding> {
    let shares = patterns.files.iter().filter_map(|file| {
        let device = file.device.as_ref()?;
        Some((device.waiting_calls, device.ambiguous_ratio))
    });
    let (_, ratio) = shares.max_by_key(|(waiting, _)| *waiting)?;
    (ratio > AMBIGUOUS_RATIO).then(|| Finding {
        kind: FindingKind::Warning,
        text:
            "which calls waited for the device is uncertain: several threads of a process read at \
               the same time"
                .to_owned(),
        evidence: vec![format!(
            "{} of the requests ended while more than one call of their process was under way",
            percent(ratio)
        )],
    })
}
