//! Compares the tracer with fio's logs: which blocks were read, and how long each call took.

use crate::support::{Everything, can_trace, file_of, files, folder, has, trace};
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::{Call, Operation};
use std::path::Path;
use std::process::Command;

const FILE_BYTES: usize = 64 << 20;

/// A row of fio's latency log with offsets.
struct Logged {
    latency_ns: u64,
    operation: Operation,
    bytes: u64,
    offset: i64,
}

/// Runs fio on its own file and reads its logs.
fn fio(folder: &Path, options: &[&str], mode: TraceMode) -> (Everything, Vec<Logged>) {
    let path = file_of(folder, "fio.data", FILE_BYTES);
    let mut settings = files("fio.data");
    settings.mode = mode;
    let mut command = Command::new("fio");
    command
        .current_dir(folder)
        .args(["--name=job", "--ioengine=psync", "--randrepeat=1", "--log_offset=1"])
        .args(["--write_lat_log=job", "--minimal", "--thread", "--direct=1", "--bs=128k"])
        .arg(format!("--filename={}", path.display()))
        .args(options);
    let everything = trace(settings, &mut command);
    let ring = options.contains(&"--ioengine=io_uring");
    (everything, logged(folder, if ring { "_lat." } else { "_clat." }))
}

/// Latencies of a kind: `_clat.`, from the call to its end, as in the tracer, or `_lat.`, which includes the time
/// before.
fn logged(folder: &Path, kind: &str) -> Vec<Logged> {
    let mut rows = Vec::new();
    let logs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for log in logs.filter(|path| path.to_string_lossy().contains(kind)) {
        for line in std::fs::read_to_string(log).unwrap().lines() {
            let fields: Vec<u64> =
                line.split(", ").map(|field| field.trim().parse().unwrap_or(0)).collect();
            rows.push(Logged {
                latency_ns: fields[1],
                operation: Operation::from_number(fields[2] as u8).unwrap(),
                bytes: fields[3],
                offset: fields[4] as i64,
            });
        }
    }
    assert!(!rows.is_empty());
    rows
}

fn of(rows: &[Logged], operation: Operation) -> Vec<(i64, u64)> {
    let rows = rows.iter().filter(|row| row.operation == operation);
    rows.map(|row| (row.offset, row.bytes)).collect()
}

fn blocks(calls: &[Call]) -> Vec<(i64, u64)> {
    calls.iter().map(|call| (call.offset, call.bytes())).collect()
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let middle = values.len() / 2;
    (values[(values.len() - 1) / 2] + values[middle]) as f64 / 2.0
}

/// Compares counts and offsets exactly, and the median latency within 5 %. Each call is compared with itself, because
/// fio may be interrupted between its clock and the call.
fn compare(everything: &Everything, rows: &[Logged], path: &Path, in_order: bool) {
    for operation in [Operation::Read, Operation::Write] {
        let mut calls = everything.calls_on(path, operation);
        let mut truth: Vec<&Logged> =
            rows.iter().filter(|row| row.operation == operation).collect();
        if !in_order {
            calls.sort_by_key(|call| call.offset);
            truth.sort_by_key(|row| row.offset);
        }
        let theirs: Vec<(i64, u64)> = truth.iter().map(|row| (row.offset, row.bytes)).collect();
        assert_eq!(calls.len(), theirs.len(), "{operation:?}");
        assert!(blocks(&calls) == theirs, "{operation:?}: offsets or sizes are not fio's");
        if calls.is_empty() {
            continue;
        }
        let mut ratios: Vec<f64> = calls
            .iter()
            .zip(&truth)
            .map(|(call, row)| call.latency_ns as f64 / row.latency_ns as f64)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ratios.len() / 2];
        let ours = median(calls.iter().map(|call| call.latency_ns).collect());
        let theirs = median(truth.iter().map(|row| row.latency_ns).collect());
        println!(
            "{operation:?}: {} calls, median {ours} ns, fio {theirs} ns, of each {ratio:.3}",
            calls.len()
        );
        assert!((ratio - 1.0).abs() < 0.05, "{operation:?}: {ratio} of what fio measured");
        assert!((ours / theirs - 1.0).abs() < 0.2, "{operation:?}: {ours} ns, fio {theirs} ns");
    }
}

fn check(test: &str, options: &[&str], in_order: bool) {
    let options: Vec<&str> = ["--ioengine=psync"].iter().chain(options).copied().collect();
    check_engine(test, &options, in_order);
}

fn check_engine(test: &str, options: &[&str], in_order: bool) {
    if !can_trace(test) || !has("fio", test) {
        return;
    }
    let folder = folder();
    let (everything, rows) = fio(folder.path(), options, TraceMode::Events);
    compare(&everything, &rows, &folder.path().join("fio.data"), in_order);
}

#[test]
fn sequential_reads_match_fio() {
    check("sequential_reads_match_fio", &["--rw=read"], true);
}

#[test]
fn random_reads_match_fio() {
    check("random_reads_match_fio", &["--rw=randread"], true);
}

#[test]
fn mix_of_reads_and_writes_matches_fio() {
    check("mix_of_reads_and_writes_matches_fio", &["--rw=randrw", "--rwmixread=70"], true);
}

#[test]
fn two_streams_match_fio() {
    let options = ["--rw=read", "--numjobs=2", "--size=32m", "--offset_increment=32m"];
    check("two_streams_match_fio", &options, false);
}

#[test]
fn io_uring_requests_match_fio() {
    // The kernel executes the requests while they are submitted, which fio counts as time before the call. Its total is
    // therefore used, which includes its own work; large blocks make that part small.
    let options = ["--ioengine=io_uring", "--rw=randread", "--iodepth=1", "--bs=1m"];
    check_engine("io_uring_requests_match_fio", &options, true);
}

#[test]
fn many_requests_of_io_uring_at_once_are_counted_exactly() {
    let test = "many_requests_of_io_uring_at_once_are_counted_exactly";
    if !can_trace(test) || !has("fio", test) {
        return;
    }
    let folder = folder();
    let options = ["--ioengine=io_uring", "--rw=randread", "--iodepth=16", "--registerfiles=1"];
    let (everything, rows) = fio(folder.path(), &options, TraceMode::Events);
    let calls = everything.calls_on(&folder.path().join("fio.data"), Operation::Read);
    let (mut seen, mut truth) = (blocks(&calls), of(&rows, Operation::Read));
    seen.sort_unstable();
    truth.sort_unstable();
    assert!(seen == truth, "{} calls, fio {}", seen.len(), truth.len());
    assert!(calls.iter().all(|call| call.requested == 128 << 10));
}

#[test]
fn linux_aio_is_not_traced_and_the_record_says_so() {
    let test = "linux_aio_is_not_traced_and_the_record_says_so";
    if !can_trace(test) || !has("fio", test) {
        return;
    }
    let folder = folder();
    let options = ["--ioengine=libaio", "--rw=randread", "--iodepth=4"];
    let (everything, rows) = fio(folder.path(), &options, TraceMode::Events);
    assert!(everything.calls.is_empty());
    let caveats = &everything.traced.caveats;
    let reported = caveats.iter().any(|caveat| caveat.statement.text("how") == Some("aio"));
    assert!(reported, "{caveats:#?}");
    // Device requests are still known, from the first one on.
    let seen: u64 = everything.block.iter().map(|request| u64::from(request.bytes)).sum();
    let asked: u64 = rows.iter().map(|row| row.bytes).sum();
    assert!(seen >= asked, "{seen} of {asked} bytes");
}

#[test]
fn kernel_totals_match_fio() {
    let test = "kernel_totals_match_fio";
    if !can_trace(test) || !has("fio", test) {
        return;
    }
    let folder = folder();
    let options = ["--ioengine=psync", "--rw=randrw", "--rwmixread=70"];
    let (everything, rows) = fio(folder.path(), &options, TraceMode::Aggregated);
    assert!(everything.calls.is_empty());
    for operation in [Operation::Read, Operation::Write] {
        let truth: Vec<&Logged> = rows.iter().filter(|row| row.operation == operation).collect();
        let (file, _) = everything.file(&folder.path().join("fio.data"));
        let mut totals = everything.traced.totals.iter();
        let totals = totals.find(|total| total.file == file && total.operation == operation);
        let totals = totals.unwrap();
        assert_eq!(totals.calls, truth.len() as u64);
        assert_eq!(totals.bytes, truth.iter().map(|row| row.bytes).sum::<u64>());
        assert_eq!(totals.latency_ns.count(), totals.calls);
        let sliced: u64 = totals.slices.iter().map(|slice| slice.calls).sum();
        assert_eq!(sliced, totals.calls);
        // The median is in the same bucket as fio's. Means are compared only in one direction, because fio may be
        // interrupted between its clock and the call.
        let theirs = median(truth.iter().map(|row| row.latency_ns).collect());
        let ours = totals.latency_ns.quantile(0.5).unwrap();
        assert!((ours / theirs - 1.0).abs() < 0.15, "{operation:?}: {ours} ns, fio {theirs} ns");
        let sum: u64 = truth.iter().map(|row| row.latency_ns).sum();
        assert!(totals.latency_sum_ns as f64 <= sum as f64 * 1.05);
        let steps =
            truth.windows(2).map(|pair| pair[1].offset - pair[0].offset - pair[0].bytes as i64);
        let sequential = steps.clone().filter(|step| *step == 0).count() as u64;
        assert_eq!(totals.sequential_calls, sequential);
        let forward = steps.filter(|step| *step > 0).count() as u64;
        assert_eq!(totals.seek_forward_bytes.count(), forward);
    }
}

/// Compared percentiles, by fio's names.
const PERCENTILES: [(&str, f64); 3] = [("50.000000", 0.5), ("90.000000", 0.9), ("99.000000", 0.99)];
/// Maximum number of times that fio may lose the CPU in an attempt: the 99th percentile is based on twenty calls.
const MOST_SWITCHES: i64 = 5;

/// Involuntary context switches of children that were waited for.
fn lost_cpu() -> i64 {
    use nix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().involuntary_context_switches()
}

/// Runs fio once and compares the percentiles of its histogram with the traced calls. The error is the difference, with
/// fio's number of involuntary context switches.
fn compare_percentiles() -> Result<(), (String, i64)> {
    let folder = folder();
    let path = file_of(folder.path(), "fio.data", FILE_BYTES);
    let mut command = Command::new("fio");
    command.current_dir(folder.path()).args([
        "--name=job",
        "--ioengine=psync",
        "--rw=randread",
        "--bs=256k",
        "--direct=1",
        "--thread",
        "--loops=8",
        "--randrepeat=1",
        "--percentile_list=50:90:99",
        "--output-format=json",
        "--output=fio.json",
    ]);
    command.arg(format!("--filename={}", path.display()));
    let before = lost_cpu();
    let everything = trace(files("fio.data"), &mut command);
    let lost = lost_cpu() - before;
    let text = std::fs::read_to_string(folder.path().join("fio.json")).unwrap();
    // Notes may precede the document.
    let document: serde_json::Value =
        serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let theirs = &document["jobs"][0]["read"]["clat_ns"];
    let calls = everything.calls_on(&path, Operation::Read);
    assert_eq!(Some(calls.len() as u64), theirs["N"].as_u64());
    let mut ours: Vec<u64> = calls.iter().map(|call| call.latency_ns).collect();
    ours.sort_unstable();
    let mut wrong = Vec::new();
    for (name, share) in PERCENTILES {
        let rank = (ours.len() as f64 * share).ceil() as usize - 1;
        let (ours, theirs) = (ours[rank] as f64, theirs["percentile"][name].as_f64().unwrap());
        // The system call overhead and fio's own clock take 1–2 µs.
        assert!(theirs > 50_000.0, "{theirs} ns: too short to be compared");
        let off = ours / theirs - 1.0;
        println!("{name}: {ours} ns, fio {theirs} ns, off by {:.2} %", 100.0 * off);
        if off.abs() > 0.05 {
            wrong.push(format!("{name}: {ours} ns, fio {theirs} ns"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err((wrong.join("; "), lost)) }
}

#[test]
fn percentiles_match_the_histogram_of_fio() {
    let test = "percentiles_match_the_histogram_of_fio";
    if !can_trace(test) || !has("fio", test) {
        return;
    }
    let (mut failures, mut disturbed) = (Vec::new(), Vec::new());
    for pause_s in [0, 0, 1, 3, 8] {
        std::thread::sleep(std::time::Duration::from_secs(pause_s));
        match compare_percentiles() {
            Ok(()) => return,
            Err((wrong, lost)) if lost > MOST_SWITCHES => {
                disturbed.push(format!("{wrong}; fio lost the CPU {lost} times"));
            }
            Err((wrong, _)) => failures.push(wrong),
        }
    }
    assert!(
        failures.is_empty(),
        "wrong though undisturbed: {failures:#?}; disturbed: {disturbed:#?}"
    );
    dyno_testkit::skip(&format!("fio lost the CPU in every attempt: {disturbed:?}"));
}
