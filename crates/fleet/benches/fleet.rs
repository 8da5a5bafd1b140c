//! Cost of a fleet for its controller: realistic messages of many agents at one-second intervals, replayed against a real
//! `redis-server`, read and merged as in `dyno fleet run`. Prints CPU, memory and traffic. `make bench-fleet`.
//!
//! The agents are not measured: one thread sends their messages over a few connections, with lease renewals.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured, and does nothing else")]

use dyno_engine::Cancel;
use dyno_fleet::clock::Offset;
use dyno_fleet::controller::{Controller, ControllerOptions, Event};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::merge::{Began, DEFAULT_LAG, MergeOptions, Merger};
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::{HostFacts, Registration, Step, Up, Version, Work};
use dyno_fleet::readings::encode_reading;
use dyno_fleet::window::WindowEncoder;
use dyno_record::interval::{
    IntervalRecord, OperationInterval, SubSecondPart, WindowCounts, latency_histogram,
};
use dyno_record::metrics::{MetricId, MetricsWriter, Reading};
use dyno_record::model::PhaseKind;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Distinct windows, sent in turn; several agents send the same one.
const PATTERNS: usize = 64;
/// Operations per second and agent: 10 million for a fleet with 1,000 agents.
const RATE: u64 = 10_000;
/// Metrics of each host, as on a machine with a few CPUs and disks.
const METRICS: usize = 200;
const VERSION: &str = "bench";

struct Redis(Child, u16);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis() -> Redis {
    let port = dyno_testkit::free_port();
    let mut child = Command::new("redis-server")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("install Debian's `redis-server`");
    let text =
        format!("port {port}\nbind 127.0.0.1\nrequirepass bench\nsave \"\"\nappendonly no\n");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("it reads");
    Redis(child, port)
}

/// A window of reads and updates with response times from 100 us to a few milliseconds, as on a busy server.
fn window(pattern: usize, index: u64) -> IntervalRecord {
    let mut state = 0x9E37_79B9_u64 + pattern as u64 * 77 + index;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let operation = |name: &str, random: &mut dyn FnMut() -> f64| {
        let mut all = [latency_histogram(), latency_histogram(), latency_histogram()];
        for _ in 0..RATE / 2 {
            let service = 100_000.0 - 300_000.0 * (1.0 - random()).ln();
            let delay = 5_000.0 - 10_000.0 * (1.0 - random()).ln();
            for (histogram, value) in all.iter_mut().zip([service + delay, service, delay]) {
                histogram.record(value as u64).expect("in bounds");
            }
        }
        let [response, service, start_delay] = all;
        OperationInterval {
            name: name.into(),
            response,
            service,
            start_delay,
            response_sum_ns: 2_000_000_000,
            service_sum_ns: 1_900_000_000,
            start_delay_sum_ns: 100_000_000,
            documents: RATE / 2,
            errors: 0,
            clamped: 0,
        }
    };
    let operations = vec![operation("read", &mut random), operation("update", &mut random)];
    IntervalRecord {
        duration_ns: 1_000_000_000,
        operations,
        counts: WindowCounts { succeeded: RATE, ..WindowCounts::default() },
        sub_second: vec![
            SubSecondPart { ended: RATE / 100, failed: 0, response_sum_ns: 20_000_000 };
            100
        ],
        ..IntervalRecord::empty(PhaseKind::Measure, index, index * 1_000_000_000)
    }
}

/// Sends the agents' messages for `seconds`; returns the bytes of an average window.
fn replay(endpoint: &Endpoint, run: &RunName, agents: u32, seconds: u64) -> u64 {
    let mut encoder = WindowEncoder::default();
    let mut patterns: Vec<_> = (0..PATTERNS)
        .map(|pattern| {
            let window = window(pattern, 0);
            let blob = encoder.encode(&window);
            (window, blob)
        })
        .collect();
    let ids: Vec<MetricId> = (0..METRICS)
        .map(|number| MetricId::of_instance("cpu", &number.to_string(), "busy_ratio"))
        .collect();
    let mut connection = endpoint.connect(Duration::ZERO).expect("redis answers");
    begin(&mut connection, run, agents);
    let began = Instant::now();
    for second in 0..seconds {
        // Ten batches per second: agents start together, but do not send at the same instant.
        for batch in 0..10 {
            let due = Duration::from_secs(second + 1) + Duration::from_millis(batch * 50);
            thread::sleep(due.saturating_sub(began.elapsed()));
            let (at, _): (i64, i64) =
                redis::cmd("TIME").query(&mut connection).expect("it answers");
            let mut pipe = redis::pipe();
            for agent in (0..agents).filter(|agent| u64::from(agent % 10) == batch) {
                let pattern = (agent as usize + second as usize) % PATTERNS;
                let (window, blob) = &mut patterns[pattern];
                (window.index, window.start_ns) = (second, second * 1_000_000_000);
                let text =
                    serde_json::to_string(&Up::Window { work: 1, server: 0, window: &*window })
                        .expect("serializable");
                let add = pipe.cmd("XADD").arg(run.up()).arg("MAXLEN").arg("~").arg(agents * 20);
                add.arg("*").arg("i").arg(agent).arg("n").arg(second + 2);
                add.arg("j").arg(text).arg("h").arg(blob).ignore();
                let values: Vec<_> = (0_u32..)
                    .zip(&ids)
                    .map(|(number, id)| (id.clone(), f64::from(number * agent) / 7.0))
                    .collect();
                let at_ns = at * 1_000_000_000;
                let account = serde_json::json!({ "cpu_s": 0.1, "missing": [] });
                let reading = encode_reading(at_ns, &values, account);
                let add = pipe.cmd("XADD").arg(run.readings());
                add.arg("MAXLEN").arg("~").arg(agents * 20).arg("*");
                add.arg("i").arg(agent).arg("r").arg(reading).ignore();
                pipe.zadd(run.beats(), agent, at * 1_000_000).ignore();
                // Each agent also asks for the time and looks for the controller.
                pipe.cmd("TIME").ignore();
                pipe.get(run.controller()).ignore();
            }
            pipe.query::<()>(&mut connection).expect("redis accepts");
        }
    }
    patterns.iter().map(|(_, blob)| blob.len() as u64).sum::<u64>() / PATTERNS as u64
}

/// Lets all agents begin in time.
fn begin(connection: &mut redis::Connection, run: &RunName, agents: u32) {
    let begun: Up = Up::Begun {
        work: 1,
        step: Step::Run,
        began: Began { uncertainty_ns: 1, ..Began::default() },
    };
    let text = serde_json::to_string(&begun).expect("serializable");
    let mut pipe = redis::pipe();
    for agent in 0..agents {
        let add = pipe.cmd("XADD").arg(run.up()).arg("*");
        add.arg("i").arg(agent).arg("n").arg(1).arg("j").arg(&text);
        add.ignore();
    }
    pipe.query::<()>(connection).expect("redis accepts");
}

fn register(endpoint: &Endpoint, run: &RunName, agents: u32) {
    let offset =
        Offset { offset_ns: 0, uncertainty_ns: 1, round_trip_ns: 1, samples: 1, consistent: true };
    let mut pipe = redis::pipe();
    for index in 0..agents {
        let host = HostFacts { name: format!("host-{index}"), ..HostFacts::default() };
        let registration =
            Registration { version: Version::of(VERSION), index, host, realtime: offset };
        let text = serde_json::to_string(&registration).expect("serializable");
        pipe.hset(run.agents(), index, text).ignore();
    }
    let mut connection = endpoint.connect(Duration::ZERO).expect("redis answers");
    pipe.query::<()>(&mut connection).expect("redis accepts");
}

/// CPU time of this thread, in seconds.
fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for a write, and the clock exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A field of `/proc/self/status`, in MiB.
fn status_mib(field: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0.0) / 1024.0
}

/// A figure of `INFO`.
fn info(endpoint: &Endpoint, field: &str) -> f64 {
    let mut connection = endpoint.connect(Duration::ZERO).expect("redis answers");
    let text: String =
        redis::cmd("INFO").arg("everything").query(&mut connection).expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0.0)
}

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).unwrap_or_default();
    text.parse().unwrap_or(default)
}

/// Writes the new readings, as `dyno fleet run` does each second; returns their number.
fn write_readings(
    controller: &mut Controller,
    writers: &mut [MetricsWriter],
    began: &Instant,
) -> u64 {
    let mut count = 0;
    for reading in controller.readings().expect("redis answers") {
        let row = Reading {
            at_s: began.elapsed().as_secs_f64(),
            duration_s: 1.0,
            values: reading.values,
        };
        let writer = &mut writers[reading.agent as usize];
        writer.record(&row).expect("can write");
        count += 1;
    }
    count
}

fn main() {
    let (agents, seconds) =
        (setting("DYNO_BENCH_AGENTS", 1_000) as u32, setting("DYNO_BENCH_SECONDS", 60));
    dyno_fleet::limits::raise_file_limit();
    let redis = redis();
    let text = format!("redis://:bench@127.0.0.1:{}", redis.1);
    let endpoint = Endpoint::new(&text, None).expect("valid address");
    let run = RunName::new("bench").expect("valid name");
    let until = Instant::now() + Duration::from_secs(10);
    while endpoint.connect(Duration::ZERO).is_err() {
        assert!(Instant::now() < until, "`redis-server` does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let mut controller = Controller::open(ControllerOptions {
        endpoint: endpoint.clone(),
        run: run.clone(),
        version: Version::of(VERSION),
        lease: Duration::from_secs(30),
        hosts: (0..agents).map(|index| format!("host-{index}")).collect(),
        cancel: Cancel::new(),
    })
    .expect("the run is free");
    register(&endpoint, &run, agents);
    controller.gather(Duration::from_secs(10)).expect("all agents joined");
    let operations = dyno_plan::builtin::find("a").expect("built in").counted_operations();
    controller.give(Work::default(), operations, &[]).expect("redis answers");
    let mut merger = Merger::new(MergeOptions {
        interval_ns: 1_000_000_000,
        lag: DEFAULT_LAG,
        servers: vec![vec![0]; agents as usize],
    });
    let (at, name) = (endpoint.clone(), run.clone());
    let before_mib = status_mib("VmRSS:");
    let replaying = thread::spawn(move || replay(&at, &name, agents, seconds));
    let (began, cpu_before) = (Instant::now(), thread_cpu_s());
    let expected = u64::from(agents) * seconds;
    let (mut windows, mut closed, mut redis_mib) = (0, 0, 0_f64);
    let folder = tempfile::tempdir().expect("can write");
    let mut writers: Vec<_> = (0..agents)
        .map(|agent| MetricsWriter::new(folder.path(), &format!("host-{agent}"), 1))
        .collect();
    let mut readings = 0_u64;
    let mut looked = Instant::now();
    while windows < expected && began.elapsed() < Duration::from_secs(seconds * 2 + 30) {
        match controller.next(Duration::from_millis(200)).expect("redis answers") {
            Some(Event::Window { agent, server, window }) => {
                merger.add(agent, server, window).expect("in bounds");
                windows += 1;
            }
            Some(Event::Begun { agent, began }) => merger.begun(agent, began),
            Some(other) => println!("unexpected: {other:?}"),
            None => {}
        }
        if looked.elapsed() > Duration::from_millis(250) {
            closed += merger.closed().expect("in bounds").len();
            readings += write_readings(&mut controller, &mut writers, &began);
            redis_mib = redis_mib.max(info(&endpoint, "used_memory") / f64::from(1 << 20));
            looked = Instant::now();
        }
    }
    readings += write_readings(&mut controller, &mut writers, &began);
    let (cpu_s, took) = (thread_cpu_s() - cpu_before, began.elapsed().as_secs_f64());
    let bytes = replaying.join().expect("sent everything");
    let in_bytes = info(&endpoint, "total_net_input_bytes");
    let out_bytes = info(&endpoint, "total_net_output_bytes");
    let redis_cpu = info(&endpoint, "used_cpu_user") + info(&endpoint, "used_cpu_sys");
    let (last, outcome) = merger.finish().expect("in bounds");
    closed += last.len();
    println!(
        "agents                {agents}, for {seconds} s, 2 operations with 3 histograms each, {METRICS} metrics of the host"
    );
    println!("windows               {windows} of {expected}, in {closed} merged intervals");
    println!("readings of hosts     {readings} of {expected}, written to files");
    println!(
        "operations            {}",
        outcome.agents.iter().map(|agent| agent.succeeded).sum::<u64>()
    );
    println!("bytes of histograms   {bytes} per window");
    println!(
        "controller CPU        {:.1} % of one core, {:.0} us per window",
        cpu_s / took * 100.0,
        cpu_s * 1e6 / windows as f64
    );
    println!(
        "memory of the process {:.0} MiB at most, {before_mib:.0} MiB before",
        status_mib("VmHWM:")
    );
    println!("redis CPU             {:.1} % of one core", redis_cpu / took * 100.0);
    println!("redis memory          {redis_mib:.0} MiB at most");
    println!(
        "redis traffic         {:.1} MB/s in, {:.1} MB/s out",
        in_bytes / took / 1e6,
        out_bytes / took / 1e6
    );
    let lost = outcome.agents.iter().filter(|agent| agent.lost.is_some());
    println!(
        "caveats               {} lost, {} windows missing, {} too late",
        lost.count(),
        outcome.missing_windows,
        outcome.late_windows
    );
    drop(controller);
}
