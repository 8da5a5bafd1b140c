//! What tracing takes from the throughput of a program that makes 20,000 calls a second on files of a disk: the same
//! load without a trace, with events and with totals, in turns. `PAIRS=60 cargo bench -p dyno-trace --features ebpf
//! --bench throughput` prints the throughput that is lost, with the interval in which its median lies, and whether
//! that keeps the limits.
//!
//! The load is two threads in closed loops, as on a small server with two CPUs: reads that the page cache answers, reads
//! that the device answers, and writes, with work between them that makes up the rest of the time. Together they make
//! 20,000 calls a second and keep both CPUs busy, so that what a call takes longer is missing from the calls per second.
//! (One thread that made as many would lose twice as much, and on more CPUs they would lose less: what a call costs is what
//! `--bench cost` prints.)
//!
//! The throughput is that of the CPU time which this process takes, the reader of the events included: what others do on
//! the machine, and a hypervisor below it, takes clock time from both sides of a pair, and far more than is looked for.
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Calls per second that the load makes without a trace.
const CALLS_PER_S: f64 = 20_000.0;
/// Threads that make them.
const THREADS: u64 = 2;
/// Calls of one turn: a second.
const CALLS: u64 = 20_000;
/// Calls after which the kinds begin anew: of these one is answered by the device, and some are writes.
const CYCLE: u64 = 20;
const WRITES: u64 = 3;
const BLOCK_BYTES: usize = 4096;
/// Blocks of the file.
const BLOCKS: u64 = 4000;
/// Pairs of turns for each mode; the variable `PAIRS` over it.
const PAIRS: usize = 30;

/// The modes, and how much of the throughput each may take.
const MODES: [(&str, TraceMode, f64); 2] = [
    ("events", TraceMode::Events, 2.0),
    ("aggregated", TraceMode::Aggregated, 0.8),
];

/// Counts and forgets.
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

/// A block at an address that a device can be read to without the page cache.
#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    Duration::new(time.tv_sec() as u64, time.tv_nsec() as u32)
}

/// A program that reads and writes blocks and works with them, again and again.
struct Load {
    cached: File,
    direct: File,
    written: File,
    /// Rounds of work between two calls.
    work: u64,
}

impl Load {
    /// One that makes [`CALLS_PER_S`] calls in a second on [`THREADS`] CPUs.
    fn calibrated(folder: &Path) -> Load {
        let path = folder.join("data");
        std::fs::write(&path, vec![1; BLOCK_BYTES * BLOCKS as usize]).unwrap();
        let cached = File::open(&path).unwrap();
        cached.sync_all().unwrap();
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path)
            .unwrap();
        let written = File::create(folder.join("written")).unwrap();
        let mut load = Load {
            cached,
            direct,
            written,
            work: 1000,
        };
        for _ in 0..8 {
            // What the calls themselves take does not shrink with the work.
            let with_work = 1.0 / load.rate();
            let work = std::mem::replace(&mut load.work, 0);
            let without = 1.0 / load.rate();
            let round = ((with_work - without) / work as f64).max(1e-10);
            load.work = ((1.0 / CALLS_PER_S - without) / round).max(1.0) as u64;
        }
        load
    }

    /// Calls per second of all threads, each with a CPU for itself.
    fn rate(&self) -> f64 {
        let start = cpu_time();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || self.make_calls(thread));
            }
        });
        (CALLS * THREADS) as f64 / (cpu_time() - start).as_secs_f64()
    }

    /// The calls of one thread.
    fn make_calls(&self, thread: u64) {
        let block = &mut Box::new(Block([0; BLOCK_BYTES])).0;
        for number in (thread..CALLS).step_by(THREADS as usize) {
            let place = number * 4099 % BLOCKS * BLOCK_BYTES as u64;
            match number / THREADS % CYCLE {
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
    }

    fn traced(&self, mode: TraceMode) -> f64 {
        let mut settings = Settings {
            mode,
            ..Settings::default()
        };
        settings.filter.processes = vec![std::process::id()];
        let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
        let done = AtomicBool::new(false);
        let mut count = Count::default();
        let mut rate = 0.0;
        std::thread::scope(|scope| {
            // What the reader takes is within it.
            scope.spawn(|| {
                rate = self.rate();
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                tracer.poll(&mut count, Duration::from_millis(50)).unwrap();
            }
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
        rate
    }
}

/// The median, and the order statistics that hold that of the population with 95 % (sign test).
fn median_with_interval(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let half_width = 0.98 * n.sqrt();
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    (
        at(n / 2.0),
        at((n / 2.0 - half_width).floor()),
        at((n / 2.0 + half_width).ceil()),
    )
}

/// Whether a limit is kept, as far as the interval tells.
fn verdict(low: f64, high: f64, limit: f64) -> &'static str {
    match () {
        () if high <= limit => "kept",
        () if low > limit => "NOT KEPT",
        () => "not decided: more pairs, or a quieter machine",
    }
}

fn main() {
    let pairs = std::env::var("PAIRS")
        .ok()
        .and_then(|text| text.parse().ok());
    let pairs = pairs.unwrap_or(PAIRS).max(1);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let load = Load::calibrated(folder.path());
    let mut lost = [Vec::new(), Vec::new()];
    let mut plain_rates = Vec::new();
    for pair in 0..pairs {
        for ((_, mode, _), lost) in MODES.iter().zip(&mut lost) {
            // The order within a pair changes, so that a drift of the machine favours nobody.
            let (plain, traced) = match pair % 2 {
                0 => (load.rate(), load.traced(*mode)),
                _ => {
                    let traced = load.traced(*mode);
                    (load.rate(), traced)
                }
            };
            plain_rates.push(plain);
            lost.push(100.0 * (1.0 - traced / plain));
        }
    }
    let (rate, _, _) = median_with_interval(&mut plain_rates);
    println!(
        "load: {rate:.0} calls per second of {THREADS} threads without a trace, of each {CYCLE} one read from the device, {WRITES} writes, the \
         rest reads from the page cache; {pairs} pairs of a second each"
    );
    for ((name, _, limit), lost) in MODES.iter().zip(&mut lost) {
        let (median, low, high) = median_with_interval(lost);
        println!(
            "{name}: {median:.2} % of the throughput lost (95 % interval {low:.2} to {high:.2} %); limit {limit} %: {}",
            verdict(low, high, *limit)
        );
    }
}
