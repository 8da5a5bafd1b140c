//! Benchmark of analysing and drawing a large file I/O trace: by default ten million calls and two million block layer
//! requests. It runs in a process of its own, so that time and memory cover only reading, analysing and drawing.
//!
//! `cargo bench -p dyno-report --bench trace_report [-- CALLS [FOLDER]]`; trace and page are kept in FOLDER.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use dyno_analyze::access_pattern::Activity;
use dyno_analyze::access_pattern::Settings;
use dyno_analyze::access_pattern::analyze;
use dyno_record::io_trace::document::{FileEntry, TraceDocument, TraceMode};
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call, Operation};
use dyno_record::io_trace::reader::TraceReader;
use dyno_record::io_trace::totals::FileTotals;
use dyno_record::io_trace::writer::{PartLimits, TraceWriter};
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::io_trace::{TraceView, render};
use nix::sys::resource::{UsageWho, getrusage};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// Default number of calls.
const CALLS: u64 = 10_000_000;
const BLOCK: i64 = 32 << 10;
/// Calls per write, about as many as a tracer writes at once.
const PIECE: usize = 4096;
/// One in this many calls waits for the device.
const CALLS_PER_REQUEST: u64 = 5;
/// Targets.
const MOST_SECONDS: f64 = 20.0;
const MOST_BYTES: u64 = 1 << 30;

/// Measurements of the drawing process.
#[derive(Serialize, Deserialize)]
struct Drawn {
    calls: u64,
    analyzed_s: f64,
    drawn_s: f64,
    page_bytes: u64,
    max_rss_bytes: u64,
}

fn main() -> Result<(), Error> {
    // Cargo passes `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["draw", trace, page] => draw(Path::new(trace), Path::new(page)),
        [] => bench(CALLS, None),
        [calls] => bench(calls.parse()?, None),
        [calls, folder, ..] => bench(calls.parse()?, Some(Path::new(folder))),
    }
}

/// Writes a trace of `events` calls, has it analysed and drawn, and prints the figures. Trace and page are kept in
/// `folder`, if given.
fn bench(events: u64, folder: Option<&Path>) -> Result<(), Error> {
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or(temporary.path());
    let trace = folder.join("io-trace");
    println!(
        "Trace report: {events} calls in four patterns, one in {CALLS_PER_REQUEST} waits for the device"
    );
    let start = Instant::now();
    write(&trace, events)?;
    println!("  written           {:>8.1} s", start.elapsed().as_secs_f64());
    println!("  size              {:>8.1} MiB", folder_bytes(&trace)? as f64 / 1_048_576.0);
    let start = Instant::now();
    let output = Command::new(std::env::current_exe()?)
        .arg("draw")
        .arg(&trace)
        .arg(folder.join("report.html"))
        .stderr(Stdio::inherit())
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err("the drawing process failed".into());
    }
    let drawn: Drawn = serde_json::from_slice(&output.stdout)?;
    if drawn.calls != events {
        return Err(format!("{} calls were analysed instead of {events}", drawn.calls).into());
    }
    println!("  read and analysed {:>8.1} s", drawn.analyzed_s);
    println!("  drawn             {:>8.1} s", drawn.drawn_s);
    println!(
        "  together          {seconds:>8.1} s   (target: at most {MOST_SECONDS} s for ten million)"
    );
    println!(
        "  peak memory       {:>8.1} MiB (target: at most {} MiB)",
        drawn.max_rss_bytes as f64 / 1_048_576.0,
        MOST_BYTES >> 20
    );
    println!("  page              {:>8.1} MiB", drawn.page_bytes as f64 / 1_048_576.0);
    println!();
    Ok(())
}

/// Analyses and draws, in its own process.
fn draw(trace: &Path, page: &Path) -> Result<(), Error> {
    let start = Instant::now();
    let reader = TraceReader::open(trace)?;
    let document = reader.document();
    let patterns = analyze(Settings::default(), document, reader.calls()?, reader.block()?)?;
    let analyzed_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let activity = Activity { subject: "synthetic load".to_owned(), scans_records: false };
    let view = TraceView { slices: &[], document, patterns: &patterns, activity: &activity };
    let text = render(&view, PageFormat::Html, &RenderOptions::default())?;
    std::fs::write(page, &text)?;
    let drawn = Drawn {
        calls: patterns.calls,
        analyzed_s,
        drawn_s: start.elapsed().as_secs_f64(),
        page_bytes: text.len() as u64,
        max_rss_bytes: getrusage(UsageWho::RUSAGE_SELF)?.max_rss() as u64 * 1024,
    };
    println!("{}", serde_json::to_string(&drawn)?);
    Ok(())
}

/// Writes the trace: half of the calls are at random places of a large file, a fifth forward, a fifth in eight streams, and
/// the rest in the popular part of a file.
fn write(directory: &Path, events: u64) -> Result<(), Error> {
    let mut document =
        TraceDocument::new(env!("CARGO_PKG_VERSION"), "2026-08-22T10:15:00Z", TraceMode::Events);
    document.block_traced = true;
    document.duration_s = events as f64 * 20e-6;
    document.target.name = Some("synthetic load".to_owned());
    let mut writer = TraceWriter::create(directory, &document, PartLimits::default())?;
    let mut source = Source::new();
    let (mut calls, mut requests) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    for number in 0..events {
        let (call, request) = source.next(number);
        calls.push(call);
        requests.extend(request);
        if calls.len() == PIECE || number + 1 == events {
            writer.block(&requests)?;
            writer.calls(&calls)?;
            calls.clear();
            requests.clear();
        }
    }
    document.files = source.files();
    document.totals = source.totals;
    writer.finish(document)?;
    Ok(())
}

struct Source {
    random: SmallRng,
    totals: Vec<FileTotals>,
    ends: [i64; 4],
    forward: i64,
    streams: [i64; 8],
}

const FILES: [(&str, Operation); 4] = [
    ("collection-7.wt", Operation::Read),
    ("index-8.wt", Operation::Write),
    ("collection-2.wt", Operation::Read),
    ("index-3.wt", Operation::Read),
];

impl Source {
    fn new() -> Source {
        Source {
            random: SmallRng::seed_from_u64(1),
            totals: FILES
                .iter()
                .enumerate()
                .map(|(file, (_, operation))| FileTotals::new(file as u32, *operation, 0))
                .collect(),
            ends: [0; 4],
            forward: 0,
            streams: std::array::from_fn(|stream| stream as i64 * (2 << 30)),
        }
    }

    fn next(&mut self, number: u64) -> (Call, Option<BlockRequest>) {
        let (file, offset, bytes) = match number % 10 {
            0..5 => (0, self.random.random_range(0..2_000_000) * BLOCK, BLOCK),
            5 | 6 => {
                self.forward += BLOCK;
                (1, self.forward - BLOCK, BLOCK)
            }
            7 | 8 => {
                let stream = self.random.random_range(0..self.streams.len());
                self.streams[stream] += 16 << 10;
                (2, self.streams[stream], 16 << 10)
            }
            _ => {
                let place: f64 = self.random.random();
                (3, (place.powi(4) * 1e6) as i64 * 4096, 4096)
            }
        };
        let waits = number.is_multiple_of(CALLS_PER_REQUEST);
        let spread: f64 = self.random.random();
        let latency_ns =
            if waits { 8_000.0 + 200_000.0 * spread * spread } else { 900.0 + 3_000.0 * spread };
        let call = Call {
            start_ns: number as i64 * 20_000 + 5_000,
            latency_ns: latency_ns as u64,
            offset,
            requested: bytes as u64,
            returned: bytes,
            file: file as u32,
            process: 100,
            thread: 100 + (number % 4) as u32,
            operation: FILES[file].1,
            fetched: if waits { bytes } else { 0 },
        };
        let previous = self.ends[file];
        self.totals[file].add(&call, (previous > 0).then_some(previous));
        self.ends[file] = offset + bytes;
        (call, waits.then(|| request(&call)))
    }

    fn files(&self) -> Vec<FileEntry> {
        let entry = |(file, (name, _)): (usize, &(&str, Operation))| FileEntry {
            device_major: 254,
            device_minor: 0,
            inode: 1000 + file as u64,
            generation: None,
            name: format!("/data/{name}"),
            names: Vec::new(),
            deleted: false,
            bytes: Some(64_000_000_000),
            role: None,
        };
        FILES.iter().enumerate().map(entry).collect()
    }
}

/// The device request of a call that waits.
fn request(call: &Call) -> BlockRequest {
    BlockRequest {
        issue_ns: call.start_ns + 2_000,
        queue_ns: 1_000,
        device_ns: call.latency_ns - 3_000,
        sector: call.offset as u64 / 512,
        bytes: call.requested as u32,
        device: 0,
        operation: BlockOperation::Read,
        process: call.process,
    }
}

fn folder_bytes(folder: &Path) -> Result<u64, Error> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
