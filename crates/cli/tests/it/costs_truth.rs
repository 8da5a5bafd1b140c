//! Costs of a process with a known CPU time per operation, computed from counters that are read late.

use dyno_analyze::costs::of_measure;
use dyno_observe::consumption::{ConsumptionCounters, ConsumptionSubject, consumption};
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::experiment::{CostKind, Figure};
use dyno_record::model::{PhaseKind, PhaseRecord, RunDocument};
use dyno_testkit::go_before_others;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Burns the same CPU time for each line that it reads.
const BURNER: &str =
    "while read -r line; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; echo; done";

/// Start of the measure phase, after a warm-up, and its end.
const PHASE_S: [f64; 2] = [0.5, 2.5];

struct Burner {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Burner {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", BURNER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Burner { child, answers }
    }

    fn operate(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.answers.read_line(&mut String::new()).unwrap();
    }

    /// CPU time from the kernel's scheduler, to the nanosecond; costs use hundredths of a second.
    fn cpu_us(&self) -> f64 {
        let path = format!("/proc/{}/schedstat", self.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let ns: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        ns / 1e3
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sleep_until(began: Instant, at_s: f64) {
    std::thread::sleep(Duration::from_secs_f64(at_s).saturating_sub(began.elapsed()));
}

fn phase(kind: PhaseKind, [start_s, end_s]: [f64; 2], succeeded: u64) -> PhaseRecord {
    PhaseRecord {
        start_s,
        duration_s: end_s - start_s,
        succeeded,
        mean_in_flight: 1.0,
        ..PhaseAccumulator::new(kind, None).to_record()
    }
}

#[derive(Debug)]
struct Truth {
    /// Delay of both readings together: the requested delay, and the delay that a busy machine added.
    late_s: f64,
    true_us: f64,
    /// The cost without a correction for late readings.
    unscaled_us: f64,
    /// True cost that the first reading missed.
    missed_us: f64,
    /// One tick of the kernel's accounting, per operation.
    tick_us: f64,
}

/// The cost found with readings delayed this much, and the true cost.
fn costs(start_late_s: f64, end_late_s: f64) -> (Figure, Truth) {
    let mut burner = Burner::start();
    burner.operate();
    let subject = ConsumptionSubject {
        processes: Ok(vec![burner.child.id()]),
        data_folders: Err("there are none".to_owned()),
        is_local: true,
    };
    let mut counters = ConsumptionCounters::new(Path::new("/"), subject);
    let began = Instant::now();
    let now_s = move || began.elapsed().as_secs_f64();
    let reader = std::thread::spawn(move || {
        let mut ask = || vec![Err("nobody to ask".to_owned())];
        sleep_until(began, PHASE_S[0] + start_late_s);
        let first = counters.read(&now_s, &mut ask);
        let start_read_s = now_s();
        sleep_until(began, PHASE_S[1] + end_late_s);
        let last = counters.read(&now_s, &mut ask);
        let late_s = start_read_s - PHASE_S[0] + now_s() - PHASE_S[1];
        (consumption(PhaseKind::Measure, &first, &last), late_s)
    });
    let (mut before_us, mut read_us, mut count) = (None, None, 0);
    while now_s() < PHASE_S[1] {
        if now_s() >= PHASE_S[0] {
            before_us.get_or_insert_with(|| burner.cpu_us());
            count += 1;
        }
        if now_s() >= PHASE_S[0] + start_late_s {
            read_us.get_or_insert_with(|| burner.cpu_us());
        }
        burner.operate();
    }
    let true_us = (burner.cpu_us() - before_us.unwrap()) / count as f64;
    let missed_us = (read_us.unwrap() - before_us.unwrap()) / count as f64;
    let ended_s = now_s();
    let (used, late_s) = reader.join().unwrap();
    let unscaled_us = used.server_cpu_s.unwrap() * 1e6 / count as f64;
    let server = json!({
        "kind": "mongod", "address": "x", "local": true, "write_concern": "1", "read_concern": "local", "settings": {},
    });
    let operations =
        json!([{"name": "read", "effect": "read"}, {"name": "update", "effect": "update"}]);
    let bare = json!({
        "schema_version": 1, "dyno_version": "0", "name": "a", "started_at": "2026-08-22T10:15:00Z",
        "status": "complete", "plan": {}, "operations": operations, "environment": {}, "server": server, "phases": [], "caveats": [],
    });
    let document = RunDocument {
        phases: vec![
            phase(PhaseKind::Warmup, [0.0, PHASE_S[0]], 1),
            phase(PhaseKind::Measure, [PHASE_S[0], ended_s], count),
        ],
        consumption: vec![used],
        ..serde_json::from_value(bare).unwrap()
    };
    let found = of_measure(&document).unwrap();
    (
        found.of(CostKind::ServerCpu).unwrap(),
        Truth { late_s, true_us, unscaled_us, missed_us, tick_us: 1e4 / count as f64 },
    )
}

#[test]
fn cpu_time_per_operation_is_true_when_it_is_read_late() {
    go_before_others();
    for (start_late_s, end_late_s) in [(0.0, 0.0), (0.3, 0.0), (0.3, 0.4)] {
        let (found, truth) = costs(start_late_s, end_late_s);
        let said = format!("{start_late_s} {end_late_s}: {found:?}, {truth:?}");
        let true_us = truth.true_us;
        let (low, high) = found.low.zip(found.high).unwrap();
        assert!(low <= true_us && true_us <= high, "{said}");
        // As wide as the uncertain time and four ticks, over two seconds.
        let caveat = truth.late_s / 2.0 + 0.05;
        assert!(low > true_us * (1.0 - 1.3 * caveat), "{said}");
        assert!(high < true_us * (1.0 + 1.3 * caveat), "{said}");
        if start_late_s > 0.0 {
            // Half of the missed cost, because the late reading may itself be late. Each reading may be a tick off.
            let most_us = true_us - truth.missed_us / 2.0 + 2.0 * truth.tick_us;
            assert!(truth.unscaled_us < most_us, "{said}");
        }
    }
}
