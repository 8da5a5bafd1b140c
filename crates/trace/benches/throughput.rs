//! Throughput that tracing costs a program that makes 20,000 calls per second on files of a disk: the same load without
//! a trace, with events and with totals, in turns. `PAIRS=300 cargo bench -p dyno-trace --features ebpf --bench
//! throughput` prints the lost throughput, the confidence interval of its median, and whether it is within the limits.
//!
//! The load is two threads in closed loops, as on a small server with two CPUs: reads from the page cache, reads from
//! the device, and writes, with work between them that fills the rest of the time. Together they make 20,000 calls per
//! second and keep both CPUs busy, so any additional time per call lowers the calls per second. (A single thread with
//! as many calls would lose twice as much, and threads on more CPUs would lose less: `--bench cost` prints the cost per
//! call.)
//!
//! Throughput is calls per CPU time of the threads and of the event reader. A thread's value is the median over pieces
//! of a few milliseconds. Other activity on the machine, and a hypervisor below it, takes clock time from one side of a
//! pair and disturbs single pieces, both by far more than the effect to measure.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_trace::{Settings, Sink, Tracer};
use nix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Calls per second of the load without a trace.
const CALLS_PER_S: f64 = 20_000.0;
/// Threads of the load.
const THREADS: u64 = 2;
/// Calls per CPU time measurement of a thread: 20 ms.
const PIECE: u64 = 200;
/// Measurements per thread and turn: 0.2 s, so that the machine's speed has little time to drift.
const PIECES: u64 = 10;
/// Calls per turn.
const CALLS: u64 = PIECE * PIECES * THREADS;
/// Consecutive turns in which the reader is measured: a few seconds.
const READER_TURNS: usize = 25;
/// Calls after which the sequence repeats: one of them is a read from the device, and some are writes.
const CYCLE: u64 = 20;
const WRITES: u64 = 3;
const BLOCK_BYTES: usize = 4096;
/// Blocks of the file.
const BLOCKS: u64 = 4000;
/// Default number of pairs of turns for each mode; the variable `PAIRS` overrides it.
const PAIRS: usize = 150;

/// Modes with their maximum loss of throughput.
const MODES: [(&str, TraceMode, f64); 2] =
    [("events", TraceMode::Events, 2.0), ("aggregated", TraceMode::Aggregated, 0.8)];

/// Counts events and drops them.
#[derive(Default)]
struct Count {
    calls: u64,
    requests: u64,
}

impl Sink for Count {
    fn calls(&mut self, calls: &[Call]) {
        self.calls += calls.len() as u64;
    }

    fn block(&mut self, requests: &[BlockRequest]) {
        self.requests += requests.len() as u64;
    }
}

/// A block aligned for reads that bypass the page cache.
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

/// A program that reads, writes and processes blocks in a loop.
struct Load {
    cached: File,
    direct: File,
    written: File,
    /// Rounds of work between two calls.
    work: u64,
}

impl Load {
    /// A load of [`CALLS_PER_S`] calls per second.
    fn calibrated(folder: &Path) -> Load {
        let path = folder.join("data");
        std::fs::write(&path, vec![1; BLOCK_BYTES * BLOCKS as usize]).unwrap();
        let cached = File::open(&path).unwrap();
        cached.sync_all().unwrap();
        let direct =
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
        let written = File::create(folder.join("written")).unwrap();
        let mut load = Load { cached, direct, written, work: 1000 };
        for _ in 0..8 {
            // The time of the calls themselves does not depend on the work.
            let with_work = load.call_ns();
            let work = std::mem::replace(&mut load.work, 0);
            let without = load.call_ns();
            let round = ((with_work - without) / work as f64).max(0.1);
            let wanted = THREADS as f64 * 1e9 / CALLS_PER_S;
            load.work = ((wanted - without) / round).max(1.0) as u64;
        }
        load
    }

    /// CPU time of a call with the work after it: the median over pieces of all threads.
    fn call_ns(&self) -> f64 {
        let mut pieces: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || self.pieces(thread))).collect();
            let each = threads.into_iter().map(|thread| thread.join().unwrap());
            each.flatten().collect()
        });
        median_with_interval(&mut pieces).0
    }

    /// Makes the calls of one thread; returns the CPU time per call for each piece.
    fn pieces(&self, thread: u64) -> Vec<f64> {
        let block = &mut Box::new(Block([0; BLOCK_BYTES])).0;
        let mut one = |piece: u64| {
            let start = cpu_ns();
            for number in piece * PIECE..(piece + 1) * PIECE {
                self.make_call(block, thread, number);
            }
            (cpu_ns() - start) / PIECE as f64
        };
        (0..PIECES).map(&mut one).collect()
    }

    /// Makes one call of a thread, and the work after it.
    fn make_call(&self, block: &mut [u8; BLOCK_BYTES], thread: u64, number: u64) {
        let place = (number * THREADS + thread) * 4099 % BLOCKS * BLOCK_BYTES as u64;
        match number % CYCLE {
            0 => self.direct.read_exact_at(block, place).unwrap(),
            1..=WRITES => self.written.write_all_at(block, place).unwrap(),
            _ => self.cached.read_exact_at(block, place).unwrap(),
        }
        let mut value = u64::from(block[0]);
        for round in 0..self.work {
            value = black_box(value.wrapping_mul(31).wrapping_add(round));
        }
        black_box(value);
    }

    /// CPU time of a call with its work under a trace.
    fn traced_call_ns(&self, mode: TraceMode) -> f64 {
        let load = || self.call_ns();
        self.under_trace(mode, load, || ())
    }

    /// CPU time of the trace reader per call with known files, measured over a few seconds.
    fn reader_ns(&self, mode: TraceMode) -> f64 {
        let made = AtomicU64::new(0);
        let load = || {
            for _ in 0..READER_TURNS {
                self.call_ns();
                made.fetch_add(CALLS, Ordering::Relaxed);
            }
        };
        let (mut start, mut end) = (None, (0, 0.0));
        self.under_trace(mode, load, || {
            end = (made.load(Ordering::Relaxed), cpu_ns());
            if end.0 > 0 && start.is_none() {
                start = Some(end);
            }
        });
        let (from, start) = start.unwrap();
        (end.1 - start) / (end.0 - from) as f64
    }

    /// Runs `during` under a trace of this process; `polled` is called after events were read.
    fn under_trace<T: Send>(
        &self,
        mode: TraceMode,
        load: impl FnOnce() -> T + Send,
        mut polled: impl FnMut(),
    ) -> T {
        let mut settings = Settings { mode, ..Settings::default() };
        settings.filter.processes = vec![std::process::id()];
        let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
        let done = AtomicBool::new(false);
        let mut count = Count::default();
        let result = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let result = load();
                done.store(true, Ordering::Release);
                result
            });
            while !done.load(Ordering::Acquire) {
                tracer.poll(&mut count, Duration::from_millis(50)).unwrap();
                polled();
            }
            load.join().unwrap()
        });
        let traced = tracer.stop(&mut count).unwrap();
        assert_eq!(traced.lost_calls, 0);
        assert!(traced.calls >= CALLS, "{} calls were traced", traced.calls);
        let from_device = CALLS / CYCLE * 9 / 10;
        assert!(
            traced.block_requests >= from_device,
            "{} requests were traced",
            traced.block_requests
        );
        result
    }
}

/// Median with a 95 % confidence interval from order statistics (sign test).
fn median_with_interval(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let half_width = 0.98 * n.sqrt();
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    (at(n / 2.0), at((n / 2.0 - half_width).floor()), at((n / 2.0 + half_width).ceil()))
}

/// Whether the interval decides that a limit is kept.
fn verdict(low: f64, high: f64, limit: f64) -> &'static str {
    match () {
        () if high <= limit => "kept",
        () if low > limit => "NOT KEPT",
        () => "not decided: more pairs, or a quieter machine",
    }
}

fn main() {
    let pairs = std::env::var("PAIRS").ok().and_then(|text| text.parse().ok());
    let pairs = pairs.unwrap_or(PAIRS).max(1);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let load = Load::calibrated(folder.path());
    let reader_ns = MODES.map(|(_, mode, _)| load.reader_ns(mode));
    let mut lost = [Vec::new(), Vec::new()];
    let mut plain_ns = Vec::new();
    for pair in 0..pairs {
        for (((_, mode, _), reader_ns), lost) in MODES.iter().zip(reader_ns).zip(&mut lost) {
            // Alternate the order within pairs, so that drift affects both sides equally.
            let (plain, traced) = match pair % 2 {
                0 => (load.call_ns(), load.traced_call_ns(*mode)),
                _ => {
                    let traced = load.traced_call_ns(*mode);
                    (load.call_ns(), traced)
                }
            };
            plain_ns.push(plain);
            lost.push(100.0 * (1.0 - plain / (traced + reader_ns)));
        }
    }
    let (plain, _, _) = median_with_interval(&mut plain_ns);
    let rate = THREADS as f64 * 1e9 / plain;
    println!(
        "load: {rate:.0} calls per second of {THREADS} threads without a trace, of each {CYCLE} one read from the device, {WRITES} writes, the \
         rest reads from the page cache; {pairs} pairs of {:.1} s for each mode",
        2.0 * CALLS as f64 / rate
    );
    for (((name, _, limit), reader_ns), lost) in MODES.iter().zip(reader_ns).zip(&mut lost) {
        let (median, low, high) = median_with_interval(lost);
        println!(
            "{name}: {median:.2} % of the throughput lost (95 % interval {low:.2} to {high:.2} %), of it {:.2} % by \
             the reader; limit {limit} %: {}",
            100.0 * reader_ns / plain,
            verdict(low, high, *limit)
        );
    }
}
