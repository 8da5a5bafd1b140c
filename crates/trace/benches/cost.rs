//! Cost of tracing per call: reads of cached blocks at full speed, alternately with and without a trace. `cargo bench
//! -p dyno-trace --features ebpf` prints nanoseconds per call and their share of one CPU at 20,000 calls per second.
#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_trace::targets::HookMethod;
use dyno_trace::{Settings, Sink, Tracer};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CALLS: u64 = 200_000;
const PIECE: u64 = 2000;
const ROUNDS: usize = 7;

/// Counts events and drops them.
#[derive(Default)]
struct Count {
    calls: u64,
}

impl Sink for Count {
    fn calls(&mut self, calls: &[Call]) {
        self.calls += calls.len() as u64;
    }

    fn block(&mut self, _requests: &[BlockRequest]) {}
}

#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    mode: Option<TraceMode>,
    method: HookMethod,
    /// Whether to trace this process, or only a command that does nothing.
    own: bool,
    patterns: bool,
    /// Whether the kernel measures the programs.
    cost: bool,
}

/// CPU time of this thread in nanoseconds, which excludes other activity on the machine.
fn cpu_ns() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// CPU time per call for many short pieces, some of which are undisturbed.
fn read_all(file: &File) -> Vec<f64> {
    let mut block = [0; 4096];
    let mut piece = |number: u64| {
        let start = cpu_ns();
        for i in 0..PIECE {
            let place = (number * PIECE + i) * 4099 % 1000;
            file.read_exact_at(&mut block, place * 4096).unwrap();
        }
        (cpu_ns() - start) as f64 / PIECE as f64
    };
    (0..CALLS / PIECE).map(&mut piece).collect()
}

fn measure(variant: Variant, file: &File) -> Vec<f64> {
    let Some(mode) = variant.mode else {
        return read_all(file);
    };
    let mut settings = Settings {
        mode,
        method: Some(variant.method),
        block: false,
        ring_bytes: 64 << 20,
        measure_cost: variant.cost,
        ..Settings::default()
    };
    if variant.own {
        settings.filter.processes = vec![std::process::id()];
    }
    if variant.patterns {
        settings.filter.files = vec!["no-such-file".to_owned()];
    }
    let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
    let done = AtomicBool::new(false);
    let mut result = Vec::new();
    let mut count = Count::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            result = read_all(file);
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            tracer.poll(&mut count, Duration::from_millis(5)).unwrap();
        }
    });
    let traced = tracer.stop(&mut count).unwrap();
    for program in
        traced.cost.iter().flat_map(|cost| &cost.programs).filter(|each| each.runs >= CALLS)
    {
        let ns = program.run_time_ns as f64 / program.runs as f64;
        println!("    {}: {}: {ns:.0} ns per run", variant.name, program.name);
    }
    assert_eq!(traced.lost_calls, 0, "{}", variant.name);
    if variant.own && !variant.patterns {
        assert!(traced.calls >= CALLS, "{}: {}", variant.name, traced.calls);
    }
    result
}

fn quantile(values: &mut [f64], ratio: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * ratio) as usize]
}

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![1; 4096 * 1000]).unwrap();
    let file = File::open(&path).unwrap();
    let variant = |name, mode, method| Variant {
        name,
        mode,
        method,
        own: true,
        patterns: false,
        cost: false,
    };
    let events = Some(TraceMode::Events);
    let all = [
        variant("no trace", None, HookMethod::SyscallPair),
        variant("events", events, HookMethod::SyscallPair),
        variant("aggregated", Some(TraceMode::Aggregated), HookMethod::SyscallPair),
        variant("events, tracepoints of each call", events, HookMethod::SyscallPoints),
        Variant {
            patterns: true,
            ..variant("a file outside the filter", events, HookMethod::SyscallPair)
        },
        Variant {
            own: false,
            ..variant("a process that is not traced", events, HookMethod::SyscallPair)
        },
    ];
    let mut results = vec![Vec::new(); all.len()];
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for (variant, results) in all.iter().zip(&mut results) {
            results.extend(measure(*variant, &file));
        }
    }
    for variant in &all[1..] {
        measure(Variant { cost: true, ..*variant }, &file);
    }
    let [low, middle] = [0.1, 0.5].map(|ratio| quantile(&mut results[0].clone(), ratio));
    println!(
        "{ROUNDS} rounds of {CALLS} reads of 4 KiB in {:.0} s; added CPU time per call, and its share of a \
         CPU at 20,000 calls per second, by the undisturbed tenth and by the median",
        start.elapsed().as_secs_f64()
    );
    println!("{:35} {low:5.0} ns, median {middle:5.0} ns", all[0].name);
    for (variant, results) in all.iter().zip(&mut results).skip(1) {
        let added =
            [(0.1, low), (0.5, middle)].map(|(ratio, base)| quantile(results, ratio) - base);
        let share = added.map(|ns| ns * 20_000.0 / 1e9 * 100.0);
        println!(
            "{:35} {:+5.0} ns {:.2} %, median {:+5.0} ns {:.2} %",
            variant.name, added[0], share[0], added[1], share[1]
        );
    }
}
