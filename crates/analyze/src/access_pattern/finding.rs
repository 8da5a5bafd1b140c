//! Findings from access patterns.

use super::pattern::{AccessPatterns, FilePattern};
use crate::values::{bytes, number, percent, time, times};
use dyno_record::document::variant_name;
use dyno_record::experiment::Finding;
use dyno_record::io_trace::document::FileKind;
use dyno_record::io_trace::event::Operation;
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Most files with findings.
const MOST_FILES: usize = 4;
/// Fewest calls of a reported pattern.
const FEWEST_CALLS: u64 = 64;
/// Smallest share of an operation's bytes of a reported file.
const SMALL_RATIO: f64 = 0.02;
/// Highest score of a random order.
const RANDOM_SCORE: f64 = 0.3;
/// Multiple of a file's size from which reads are reported.
const AMPLIFIED: f64 = 1.5;
/// Share of ambiguous requests from which the device's share is doubtful.
const AMBIGUOUS_RATIO: f64 = 0.2;

/// Activity of the traced program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The subject of a sentence: `index build`, `fio`.
    pub subject: String,
    /// Whether it scans a collection record by record, so that random reads of the collection's file mean that
    /// the file has another order than the records.
    pub scans_records: bool,
}

/// Findings about the files with the most bytes, the largest first.
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
        found.extend(files.into_iter().take(MOST_FILES).filter_map(|file| order(file, activity)));
    }
    found.extend(ambiguous(patterns));
    found.extend(not_watched(patterns));
    found
}

/// Name of an order by its score.
fn order_name(score: f64) -> &'static str {
    match score {
        score if score < 0.1 => "almost_random",
        score if score < RANDOM_SCORE => "mostly_random",
        score if score < 0.7 => "partly_sequential",
        score if score < 0.9 => "mostly_sequential",
        _ => "sequential",
    }
}

/// The order by its score: `in almost random order` and the like.
pub fn order_statement(score: f64) -> Statement {
    statement!("order", order = order_name(score))
}

fn order(file: &FilePattern, activity: &Activity) -> Option<Finding> {
    let score = file.score?;
    if file.operation == Operation::Sync {
        return None;
    }
    let is_read = file.operation == Operation::Read;
    let amplification = file.amplification;
    let is_random = is_read && score < RANDOM_SCORE;
    let kind = file.role.as_ref().map(|role| role.kind);
    let is_collection = kind == Some(FileKind::Collection);
    let (size, is_median) = size(file);
    let said = statement!(
        "order-of-file",
        subject = &activity.subject,
        operation = variant_name(&file.operation),
        file = file.label(),
        content = content(file),
        order = order_name(score),
        score = number(score),
        calls = file.calls,
        size = size.map(bytes),
        is_median_size = is_median,
        amplification = amplification.filter(|&times| is_read && times >= AMPLIFIED).map(times),
        follows_records = is_random && activity.scans_records && is_collection
    );
    Some(Finding::found(said, evidence(file)))
}

/// Content of a file, if it differs from its label, such as `catalog`.
fn content(file: &FilePattern) -> Option<&str> {
    let role = file.role.as_ref().filter(|role| role.namespace.is_none());
    role.and_then(|role| role.words.as_deref())
}

/// The size of nearly all calls, or else the median; and whether it is the median.
fn size(file: &FilePattern) -> (Option<f64>, bool) {
    let Some((from, below, count)) = file.size_bytes.buckets().max_by_key(|bucket| bucket.2) else {
        return (None, false);
    };
    let all = file.size_bytes.count();
    // Sizes that are powers of two begin a bucket.
    if count as f64 >= 0.8 * all as f64 && from > 0 {
        let mean = file.bytes as f64 / file.calls as f64;
        let is_exact = count == all && mean >= from as f64 && mean < below as f64;
        return (Some(if is_exact { mean } else { from as f64 }), false);
    }
    (file.median_bytes(), true)
}

fn evidence(file: &FilePattern) -> Vec<Statement> {
    let mut said = Vec::new();
    if let Some(ratio) = file.sequential_ratio {
        let streams = file.streams.filter(|streams| streams.streams > 0);
        said.push(statement!(
            "calls-continue-stream",
            share = percent(ratio),
            calls = streams.map(|streams| number(streams.mean_calls))
        ));
    }
    if let Some(seek) = file.median_seek_bytes() {
        said.push(statement!("median-seek", seek = bytes(seek)));
    }
    if let Some((working_set, again)) = file.working_set_bytes.zip(file.reread_ratio) {
        said.push(statement!(
            "working-set",
            size = bytes(working_set as f64),
            again = percent(again)
        ));
    }
    said.extend(file.latency.map(|latency| {
        let median = time(latency.p50_ns * 1e-9);
        let p99 = time(latency.p99_ns * 1e-9);
        statement!("latency-of-calls", median = median, p99 = p99)
    }));
    if let Some(device) = &file.device {
        let share = percent(device.waiting_ratio);
        said.push(statement!("waiting-for-device", share = share));
    }
    said
}

fn ambiguous(patterns: &AccessPatterns) -> Option<Finding> {
    let shares = patterns.files.iter().filter_map(|file| {
        let device = file.device.as_ref()?;
        Some((device.waiting_calls, device.ambiguous_ratio))
    });
    let (_, ratio) = shares.max_by_key(|(waiting, _)| *waiting)?;
    (ratio > AMBIGUOUS_RATIO).then(|| {
        let evidence = statement!("requests-with-a-choice", share = percent(ratio));
        Finding::warning(statement!("device-share-uncertain"), vec![evidence])
    })
}

/// Files with enough calls and an unknown order, such as files with only totals.
fn not_watched(patterns: &AccessPatterns) -> Option<Finding> {
    let has_no_order = |file: &&FilePattern| {
        file.operation != Operation::Sync && file.calls >= FEWEST_CALLS && file.score.is_none()
    };
    let calls = patterns
        .files
        .iter()
        .filter(has_no_order)
        .map(|file| statement!("calls-without-order", file = file.label(), calls = file.calls));
    let calls: Vec<Statement> = calls.take(MOST_FILES).collect();
    let figures = vec![statement!("order-of-calls")];
    (!calls.is_empty()).then(|| Finding::found(statement!("not-watched", figures = figures), calls))
}
