//! Known access patterns with known figures.

use dyno_analyze::access_pattern::{
    AccessPatterns, Activity, BACKWARD_CREDIT, FilePattern, Settings, Window, analyze, findings,
};
use dyno_record::experiment::{Finding, FindingKind};
use dyno_record::io_trace::document::{FileEntry, FileKind, FileRole, TraceDocument, TraceMode};
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call, CallBatch, Operation};
use dyno_record::io_trace::totals::FileTotals;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use std::convert::Infallible;

const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;
pub(crate) const BLOCK: i64 = 32 * KIB;

pub(crate) fn read(number: usize, offset: i64, bytes: i64) -> Call {
    Call {
        start_ns: number as i64 * 10_000,
        latency_ns: 2_000,
        offset,
        requested: bytes as u64,
        returned: bytes,
        file: 0,
        process: 7,
        thread: 7,
        operation: Operation::Read,
        fetched: -1,
    }
}

pub(crate) fn document(file_bytes: i64) -> TraceDocument {
    let mut document = TraceDocument::new("0.1.0", "2026-08-22T10:15:00Z", TraceMode::Events);
    document.files = vec![FileEntry {
        device_major: 254,
        device_minor: 1,
        inode: 5,
        generation: None,
        name: "/data/collection-7.wt".to_owned(),
        names: Vec::new(),
        deleted: false,
        bytes: Some(file_bytes as u64),
        role: None,
    }];
    document
}

pub(crate) fn run(
    settings: Settings,
    document: &TraceDocument,
    calls: Vec<Call>,
    block: Vec<BlockRequest>,
) -> AccessPatterns {
    let batches: Vec<Result<CallBatch, Infallible>> =
        calls.chunks(1000).map(|chunk| Ok(chunk.iter().copied().collect())).collect();
    let block = block.chunks(100).map(|chunk| Ok(chunk.to_vec()));
    match analyze(settings, document, batches, block) {
        Ok(patterns) => patterns,
        Err(never) => match never {},
    }
}

/// The pattern of reads of `bytes` at these byte offsets.
pub(crate) fn pattern(offsets: &[i64], bytes: i64) -> FilePattern {
    let calls: Vec<Call> =
        offsets.iter().enumerate().map(|(number, &offset)| read(number, offset, bytes)).collect();
    let end = offsets.iter().max().unwrap() + bytes;
    run(Settings::default(), &document(end), calls, Vec::new()).files.remove(0)
}

fn score(offsets: &[i64], bytes: i64) -> f64 {
    pattern(offsets, bytes).score.unwrap()
}

pub(crate) fn forward(blocks: i64, bytes: i64) -> Vec<i64> {
    (0..blocks).map(|block| block * bytes).collect()
}

pub(crate) fn shuffled(blocks: i64, bytes: i64, seed: u64) -> Vec<i64> {
    let mut offsets = forward(blocks, bytes);
    offsets.shuffle(&mut SmallRng::seed_from_u64(seed));
    offsets
}

#[test]
fn reading_forward_scores_almost_1() {
    for blocks in [50, 1000, 20_000] {
        let found = pattern(&forward(blocks, BLOCK), BLOCK);
        assert!(found.score.unwrap() > 0.95, "{blocks}: {:?}", found.score);
        assert!(found.sequential_ratio.unwrap() > 0.95);
        assert!(found.adjacent_ratio.unwrap() > 0.95);
        assert_eq!(found.seeks.as_ref().unwrap().forward_ratio, 1.0);
        assert_eq!(found.median_seek_bytes(), Some(0.0));
        assert_eq!(found.streams.unwrap().streams, 1);
    }
}

#[test]
fn shuffled_block_reads_score_below_a_tenth_at_any_file_size() {
    for blocks in [64, 100, 300, 1000, 5000, 50_000] {
        for seed in 0..4 {
            let found = score(&shuffled(blocks, BLOCK, seed), BLOCK);
            assert!(found < 0.1, "{blocks} blocks, seed {seed}: {found}");
        }
    }
    let found = pattern(&shuffled(50_000, BLOCK, 1), BLOCK);
    assert!(found.score.unwrap() < 0.01);
    let seeks = found.seeks.as_ref().unwrap();
    assert!((seeks.forward_ratio - 0.5).abs() < 0.02);
    // The median distance between two random places is 29 % of the file.
    let median = seeks.median_bytes.unwrap() / (50_000 * BLOCK) as f64;
    assert!((median - 0.29).abs() < 0.03, "{median}");
    assert_eq!((found.reread_ratio, found.amplification), (Some(0.0), Some(1.0)));
}

#[test]
fn small_random_reads_of_a_small_file_score_below_a_tenth() {
    for blocks in [1000, 4000, 100_000] {
        let found = pattern(&shuffled(blocks, 4 * KIB, 9), 4 * KIB);
        assert!(found.score.unwrap() < 0.1, "{blocks}: {:?}", found.score);
    }
}

#[test]
fn reading_backward_scores_half() {
    let mut offsets = forward(5000, BLOCK);
    offsets.reverse();
    let found = pattern(&offsets, BLOCK);
    assert!((found.score.unwrap() - BACKWARD_CREDIT).abs() < 0.01, "{:?}", found.score);
    assert!(found.streams.unwrap().backward_ratio > 0.99);
    assert_eq!(found.sequential_ratio, Some(0.0));
}

#[test]
fn stride_scores_the_share_of_requested_bytes() {
    let every = |stride: i64, bytes: i64| -> Vec<i64> {
        (0..4000).map(|number| number * stride).filter(|&o| o >= 0 && bytes > 0).collect()
    };
    // Every second block of 32 KiB.
    assert!((score(&every(64 * KIB, BLOCK), BLOCK) - 0.5).abs() < 0.01);
    // 4 KiB of each 64 KiB.
    assert!((score(&every(64 * KIB, 4 * KIB), 4 * KIB) - 1.0 / 16.0).abs() < 0.01);
    // Beyond the gap each step is a seek.
    let far = pattern(&every(MIB, 4 * KIB), 4 * KIB);
    assert_eq!((far.score, far.sequential_ratio), (Some(0.0), Some(0.0)));
}

#[test]
fn interleaved_streams_are_found_for_one_or_two_threads() {
    for streams in [2i64, 3, 8, 16, 30] {
        // One thread that alternates, each stream in its own part of 64 MiB.
        let calls = 300;
        let offsets: Vec<i64> = (0..calls * streams)
            .map(|number| (number % streams) * 64 * MIB + (number / streams) * BLOCK)
            .collect();
        let found = pattern(&offsets, BLOCK);
        assert!(found.score.unwrap() > 0.95, "{streams}: {:?}", found.score);
        let summary = found.streams.unwrap();
        assert_eq!(summary.streams, streams as u64);
        assert!(summary.interleaved_ratio > 0.95);
    }
    // Two threads in random order.
    let mut random = SmallRng::seed_from_u64(5);
    let mut ends = [0, 500 * MIB];
    let calls: Vec<Call> = (0..10_000)
        .map(|number| {
            let thread = usize::from(random.random_bool(0.5));
            let call = Call { thread: thread as u32, ..read(number, ends[thread], BLOCK) };
            ends[thread] += BLOCK;
            call
        })
        .collect();
    let patterns = run(Settings::default(), &document(1000 * MIB), calls, Vec::new());
    assert!(patterns.files[0].score.unwrap() > 0.99);
}

#[test]
fn more_streams_than_can_be_followed_look_random() {
    let streams = 100i64;
    let offsets: Vec<i64> = (0..100 * streams)
        .map(|number| (number % streams) * 64 * MIB + (number / streams) * BLOCK)
        .collect();
    assert!(score(&offsets, BLOCK) < 0.01);
}

#[test]
fn stream_shared_by_threads_out_of_order_is_sequential() {
    let mut offsets = forward(8000, BLOCK);
    for group in offsets.chunks_mut(4) {
        group.swap(1, 2);
        group.swap(2, 3);
    }
    assert!(score(&offsets, BLOCK) > 0.9);
}

#[test]
fn zipfian_reads_score_below_a_tenth() {
    let zipf = Zipf::new(100_000.0, 0.99).unwrap();
    let mut random = SmallRng::seed_from_u64(11);
    let ranks: Vec<i64> = (0..200_000).map(|_| zipf.sample(&mut random) as i64 - 1).collect();
    let mut places = forward(100_000, 8 * KIB);
    let in_order: Vec<i64> = ranks.iter().map(|&rank| places[rank as usize]).collect();
    places.shuffle(&mut random);
    let scattered: Vec<i64> = ranks.iter().map(|&rank| places[rank as usize]).collect();
    let found = pattern(&scattered, 8 * KIB);
    assert!(found.score.unwrap() < 0.02, "{:?}", found.score);
    assert!(found.reread_ratio.unwrap() > 0.5);
    assert!(found.working_set_bytes.unwrap() < 100_000 * 8 * 1024);
    // Even if the popular records are adjacent.
    let side_by_side = score(&in_order, 8 * KIB);
    assert!(side_by_side < 0.1, "{side_by_side}");
}

#[test]
fn a_mix_scores_its_share_of_sequential_calls() {
    // 70 % forward, 30 % at random places.
    let mut random = SmallRng::seed_from_u64(3);
    let mut next = 0;
    let offsets: Vec<i64> = (0..20_000)
        .map(|_| match random.random_bool(0.7) {
            true => {
                next += BLOCK;
                next - BLOCK
            }
            false => random.random_range(0..100_000) * BLOCK,
        })
        .collect();
    let found = score(&offsets, BLOCK);
    assert!((found - 0.7).abs() < 0.02, "{found}");
}

#[test]
fn reads_smaller_than_a_page_do_not_read_anything_twice() {
    let found = pattern(&forward(10_000, 512), 512);
    assert_eq!(found.reread_ratio, Some(0.0));
    assert_eq!(found.working_set_bytes, Some(10_000 * 512));
    assert!(found.score.unwrap() > 0.99);
    let unaligned = pattern(&forward(3000, 5000), 5000);
    assert_eq!(unaligned.reread_ratio, Some(0.0));
}

#[test]
fn reading_a_file_twice_is_reread_and_amplified() {
    let mut offsets = forward(1000, BLOCK);
    offsets.extend(forward(1000, BLOCK));
    let found = pattern(&offsets, BLOCK);
    assert_eq!(found.reread_ratio, Some(0.5));
    assert_eq!(found.amplification, Some(2.0));
    assert_eq!(found.working_set_bytes, Some(1000 * BLOCK as u64));
    assert!(found.score.unwrap() > 0.99);
}

#[test]
fn rereading_one_place_has_no_order() {
    let found = pattern(&[0; 500], 4 * KIB);
    assert_eq!(found.score, None);
    assert!(found.streams.is_none());
    assert!(found.reread_ratio.unwrap() > 0.99);
}

#[test]
fn failed_empty_and_unplaced_calls_are_counted_but_not_judged() {
    let mut calls: Vec<Call> = forward(100, BLOCK)
        .into_iter()
        .enumerate()
        .map(|(number, offset)| read(number, offset, BLOCK))
        .collect();
    calls.push(Call { returned: -5, ..read(100, 0, BLOCK) });
    calls.push(Call { returned: 0, ..read(101, 100 * BLOCK, BLOCK) });
    calls.push(read(102, -1, BLOCK));
    let found = run(Settings::default(), &document(100 * BLOCK), calls, Vec::new()).files.remove(0);
    assert_eq!((found.calls, found.errors, found.placed_calls), (103, 1, 100));
    assert!(found.score.unwrap() > 0.95);
}

#[test]
fn window_excludes_calls_that_began_outside() {
    let calls: Vec<Call> = forward(1000, BLOCK)
        .into_iter()
        .enumerate()
        .map(|(number, offset)| read(number, offset, BLOCK))
        .collect();
    let settings = Settings {
        window: Some(Window { from_ns: 1_000_000, to_ns: 3_000_000 }),
        ..Settings::default()
    };
    let patterns = run(settings, &document(1000 * BLOCK), calls, Vec::new());
    assert_eq!((patterns.calls, patterns.files[0].calls), (200, 200));
    assert_eq!((patterns.first_ns, patterns.last_ns), (Some(1_000_000), Some(2_992_000)));
}

#[test]
fn calls_that_waited_for_the_device_are_distinguished() {
    // Every fourth call reads ahead for itself and the next three, which the page cache answers.
    let (mut calls, mut block) = (Vec::new(), Vec::new());
    for number in 0..4000usize {
        let mut call = read(number, number as i64 * 4 * KIB, 4 * KIB);
        if number % 4 == 0 {
            call.latency_ns = 8_000;
            block.push(BlockRequest {
                issue_ns: call.start_ns + 2000,
                queue_ns: 500,
                device_ns: 5_000,
                sector: 8 * number as u64,
                bytes: 16 * KIB as u32,
                device: 0,
                operation: BlockOperation::Read,
                process: 7,
            });
        }
        calls.push(call);
    }
    // Another process also reads, and there is some writeback.
    block.push(BlockRequest { process: 99, ..block[3] });
    block.push(BlockRequest { operation: BlockOperation::Write, ..block[4] });
    let mut document = document(4000 * 4 * KIB);
    document.block_traced = true;
    let patterns = run(Settings::default(), &document, calls, block);
    let device = patterns.files[0].device.unwrap();
    assert_eq!(device.waiting_calls, 1000);
    assert_eq!((device.waiting_ratio, device.device_ratio), (0.25, 1.0));
    assert_eq!(device.ambiguous_ratio, 0.0);
    let summary = patterns.block.unwrap();
    assert_eq!((summary.reads, summary.writes), (1001, 1));
    assert_eq!(summary.matched_bytes, 4000 * 4 * 1024);
}

#[test]
fn device_is_absent_without_block_layer_requests() {
    assert_eq!(pattern(&forward(100, BLOCK), BLOCK).device, None);
}

#[test]
fn totals_alone_give_only_figures_of_totals() {
    let mut totals = FileTotals::new(0, Operation::Read, 0);
    let mut previous = None;
    for (number, offset) in shuffled(1000, BLOCK, 4).into_iter().enumerate() {
        totals.add(&read(number, offset, BLOCK), previous);
        previous = Some(offset + BLOCK);
    }
    let mut document = document(1000 * BLOCK);
    document.mode = TraceMode::Aggregated;
    document.totals = vec![totals];
    let patterns = run(Settings::default(), &document, Vec::new(), Vec::new());
    assert_eq!((patterns.calls, patterns.bytes), (1000, 1000 * BLOCK as u64));
    let found = &patterns.files[0];
    assert_eq!((found.score, found.working_set_bytes), (None, None));
    assert!(found.adjacent_ratio.unwrap() < 0.01);
    assert_eq!(found.amplification, Some(1.0));
    assert!(found.median_seek_bytes().unwrap() > (100 * BLOCK) as f64);
    assert!(found.latency.unwrap().p50_ns > 1000.0);
    assert_eq!(found.name, "collection-7.wt");
}

#[test]
fn only_files_with_the_most_calls_are_followed() {
    let mut document = document(MIB);
    let mut calls = Vec::new();
    for file in 0..10u32 {
        let mut totals = FileTotals::new(file, Operation::Read, 0);
        for number in 0..20 * (file as usize + 1) {
            let call = Call { file, ..read(number, number as i64 * 4096, 4096) };
            totals.add(&call, None);
            calls.push(call);
        }
        document.totals.push(totals);
    }
    let settings = Settings { followed: 3, pictures: 2, ..Settings::default() };
    let patterns = run(settings, &document, calls, Vec::new());
    assert_eq!(patterns.files.len(), 10);
    let scored: Vec<u32> =
        patterns.files.iter().filter(|f| f.score.is_some()).map(|f| f.file).collect();
    assert_eq!(scored, [9, 8, 7]);
    let drawn: Vec<u32> =
        patterns.files.iter().filter(|f| f.picture.is_some()).map(|f| f.file).collect();
    assert_eq!(drawn, [9, 8]);
    assert_eq!(patterns.unfollowed_calls, 20 * (1 + 2 + 3 + 4 + 5 + 6 + 7));
}

fn scanned(offsets: &[i64], kind: FileKind) -> Vec<Finding> {
    let calls = offsets.iter().enumerate().map(|(number, &offset)| read(number, offset, BLOCK));
    let mut document = document(shuffled(1000, BLOCK, 0).len() as i64 * BLOCK);
    document.files[0].role = Some(FileRole { kind, namespace: None, index: None, words: None });
    let patterns = run(Settings::default(), &document, calls.collect(), Vec::new());
    let activity = Activity { subject: "index build".to_owned(), scans_records: true };
    findings(&patterns, &activity)
}

#[test]
fn finding_describes_a_random_scan() {
    let mut offsets = Vec::new();
    for seed in 0..11 {
        offsets.extend(shuffled(1000, BLOCK, seed));
    }
    let found = scanned(&offsets, FileKind::Collection);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, FindingKind::Finding);
    let said = &found[0].statement;
    let text = said.to_string();
    let expected = "order-of-file (amplification: 11, calls: 11,000, file: collection-7.wt, follows_records: true, \
                    is_median_size: false, operation: read, order: almost_random, score: ";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with("size: 32.0 KiB, subject: index build)"), "{text}");
    assert!(said.number("score").is_some_and(|score| score < 0.1));
    assert!(!found[0].evidence.is_empty());
    // An index file says nothing about the order of records.
    let index = scanned(&offsets, FileKind::Index);
    assert!(
        index[0].statement.to_string().contains("amplification: 11,")
            && index[0].statement.to_string().contains("follows_records: false"),
        "{}",
        index[0].statement
    );
}

#[test]
fn sequential_scan_is_called_sequential() {
    let found = scanned(&forward(1000, BLOCK), FileKind::Collection);
    assert_eq!(
        found[0].statement.to_string(),
        "order-of-file (calls: 1,000, file: collection-7.wt, follows_records: false, is_median_size: false, operation: read, \
         order: sequential, score: 1.00, size: 32.0 KiB, subject: index build)"
    );
}

#[test]
fn event_error_ends_the_analysis() {
    let calls = vec![Ok(CallBatch::default()), Err("torn")];
    let found = analyze(Settings::default(), &document(1), calls, Vec::new());
    assert_eq!(found.err(), Some("torn"));
}

/// Alternating streams of 300 calls, each in its own part of 64 MiB.
fn turns(streams: i64) -> Vec<i64> {
    (0..300 * streams)
        .map(|number| (number % streams) * 64 * MIB + (number / streams) * BLOCK)
        .collect()
}

fn stride(every: i64) -> Vec<i64> {
    (0..4000).map(|number| number * every).collect()
}

/// The patterns of the table in `docs/trace.md`, by their names in the table.
fn documented() -> Vec<(&'static str, f64)> {
    let mut backward = forward(5000, BLOCK);
    backward.reverse();
    let mut shared = forward(8000, BLOCK);
    for group in shared.chunks_mut(4) {
        group.swap(1, 2);
        group.swap(2, 3);
    }
    let zipf = Zipf::new(100_000.0, 0.99).unwrap();
    let mut random = SmallRng::seed_from_u64(11);
    let ranks: Vec<usize> = (0..200_000).map(|_| zipf.sample(&mut random) as usize - 1).collect();
    let mut places = forward(100_000, 8 * KIB);
    let side_by_side: Vec<i64> = ranks.iter().map(|&rank| places[rank]).collect();
    places.shuffle(&mut random);
    let scattered: Vec<i64> = ranks.iter().map(|&rank| places[rank]).collect();
    let mut next = 0;
    let mixed: Vec<i64> = (0..20_000)
        .map(|_| match random.random_bool(0.7) {
            true => {
                next += BLOCK;
                next - BLOCK
            }
            false => random.random_range(0..100_000) * BLOCK,
        })
        .collect();
    vec![
        ("forward", score(&forward(20_000, BLOCK), BLOCK)),
        ("forward, 512 bytes each", score(&forward(20_000, 512), 512)),
        ("backward", score(&backward, BLOCK)),
        ("every second block", score(&stride(2 * BLOCK), BLOCK)),
        ("4 KiB of each 64 KiB", score(&stride(64 * KIB), 4 * KIB)),
        ("4 KiB of each MiB", score(&stride(MIB), 4 * KIB)),
        ("each block once, shuffled", score(&shuffled(50_000, BLOCK, 1), BLOCK)),
        ("the same in a file of 100 blocks", score(&shuffled(100, BLOCK, 1), BLOCK)),
        ("2 streams in turn", score(&turns(2), BLOCK)),
        ("16 streams in turn", score(&turns(16), BLOCK)),
        ("100 streams in turn", score(&turns(100), BLOCK)),
        ("one stream, in groups of four that are out of order", score(&shared, BLOCK)),
        ("70 % forward, 30 % anywhere", score(&mixed, BLOCK)),
        ("zipfian, scattered", score(&scattered, 8 * KIB)),
        ("zipfian, popular blocks side by side", score(&side_by_side, 8 * KIB)),
    ]
}

#[test]
fn documented_scores_match_the_patterns() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (name, score) in documented() {
        let row = format!("| {name} | {score:.2} |");
        assert!(text.lines().any(|line| line.starts_with(&row)), "no line `{row}`");
    }
}
