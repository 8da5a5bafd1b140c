//! What tracing takes from the throughput of a program that makes 20,000 calls a second: the same load without a
//! trace, with events and with totals, in turns. `PAIRS=40 cargo bench -p dyno-trace --features ebpf --bench
//! throughput` prints the throughput that is lost, with the interval in which its median lies.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_trace::{Settings, Sink, Tracer};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Calls per second of CPU time that the load makes without a trace.
const CALLS_PER_S: f64 = 20_000.0;
/// Calls of one turn: a second.
const CALLS: u64 = 20_000;
/// Blocks of the file, all of them in the page cache.
const BLOCKS: u64 = 1000;
/// Pairs of turns for each mode; the variable `PAIRS` over it.
const PAIRS: usize = 20;

/// Counts and forgets.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn calls(&mut self, calls: &[Call]) {
        self.0 += calls.len() as u64;
    }

    fn block(&mut self, _requests: &[BlockRequest]) {}
}

/// A program that reads a block and works with it, again and again.
struct Load {
    file: File,
    /// Rounds of work between two calls.
    work: u64,
}

impl Load {
    /// One that makes [`CALLS_PER_S`] calls in a second of CPU time.
    fn calibrated(file: File) -> Load {
        let mut load = Load { file, work: 1000 };
        for _ in 0..5 {
            let found = load.rate();
            load.work = (load.work as f64 * found / CALLS_PER_S).max(1.0) as u64;
        }
        load
    }

    /// Calls per second of this thread's CPU time: what others do on the machine does not count.
    fn rate(&self) -> f64 {
        let mut block = [0; 4096];
        let start = cpu_s();
        for number in 0..CALLS {
            let place = number * 4099 % BLOCKS;
            self.file.read_exact_at(&mut block, place * 4096).unwrap();
            let mut value = u64::from(block[0]);
            for round in 0..self.work {
                value = black_box(value.wrapping_mul(31).wrapping_add(round));
            }
            black_box(value);
        }
        CALLS as f64 / (cpu_s() - start)
    }

    fn traced(&self, mode: TraceMode) -> f64 {
        let mut settings = Settings {
            mode,
            block: false,
            ..Settings::default()
        };
        settings.filter.processes = vec![std::process::id()];
        let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
        let done = AtomicBool::new(false);
        let mut count = Count::default();
        let mut rate = 0.0;
        std::thread::scope(|scope| {
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
        rate
    }
}

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
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

fn main() {
    let pairs = std::env::var("PAIRS")
        .ok()
        .and_then(|text| text.parse().ok());
    let pairs = pairs.unwrap_or(PAIRS).max(1);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![1; 4096 * BLOCKS as usize]).unwrap();
    let load = Load::calibrated(File::open(&path).unwrap());
    let modes = [
        ("events", TraceMode::Events),
        ("aggregated", TraceMode::Aggregated),
    ];
    let mut lost = [Vec::new(), Vec::new()];
    let mut plain_rates = Vec::new();
    for pair in 0..pairs {
        for ((_, mode), lost) in modes.iter().zip(&mut lost) {
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
    println!("load: {rate:.0} calls per second of CPU time, {pairs} pairs of a second each");
    for ((name, _), lost) in modes.iter().zip(&mut lost) {
        let (median, low, high) = median_with_interval(lost);
        println!(
            "{name}: {median:.2} % of the throughput lost (95 % interval {low:.2} to {high:.2} %)"
        );
    }
}
