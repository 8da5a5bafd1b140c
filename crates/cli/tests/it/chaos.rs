//! Faults at random moments of a run: its process is killed, its disk fills up, its file system turns read-only, or the wall
//! clock steps. Afterwards `dyno report` shows a prefix of the events or one clear error, and never a wrong number; after a clock
//! step it shows the whole run.
//!
//! `DYNO_CHAOS_MOMENTS` is the number of moments, and `DYNO_CHAOS_SEED` chooses them; `make chaos` tries 200. Full and read-only
//! file systems need root, and clock steps need libfaketime.

#![allow(clippy::print_stdout, reason = "the moments and what became of them are the result")]

use crate::common::{Bench, Finished, reads};
use dyno_load::responder::{Behaviour, Responder};
use dyno_testkit::fault::{faketime_library, is_root};
use dyno_testkit::or_skip;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Default number of moments, which keeps the whole test suite short.
const MOMENTS: u64 = 8;
/// Runs at a time. They wait most of the time.
const AT_ONCE: usize = 4;
/// A run lasts 3 s, and needs some time before and after.
const LONGEST_MS: u64 = 3_800;
/// No duration in a run is that long, and each clock step is longer.
const STEP_S: u64 = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Killed,
    DiskFull,
    ReadOnly,
    ClockStep,
}

/// A moment drawn at random.
struct Moment {
    fault: Fault,
    after: Duration,
    /// Size of the disk that fills up, in bytes.
    room: u64,
    step_s: i64,
}

/// The wall clock of one program, correct until it steps: libfaketime with a control file. Its monotonic clock is unaffected.
struct SteppedClock {
    library: PathBuf,
    offset: PathBuf,
}

impl SteppedClock {
    fn new(offset: PathBuf) -> SteppedClock {
        std::fs::write(&offset, "+0s").unwrap();
        SteppedClock { library: faketime_library().unwrap(), offset }
    }

    /// Makes the program use this clock.
    fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Sets the clock to this number of seconds from the correct time.
    fn step(&self, seconds: i64) -> std::io::Result<()> {
        let new = self.offset.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}s"))?;
        std::fs::rename(new, &self.offset)
    }
}

/// A file system for one run, unmounted when this value is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// A file system in memory with room for this many bytes.
    fn small(folder: &Path, bytes: u64) -> Mounted {
        let size = format!("size={bytes}");
        std::fs::create_dir(folder).unwrap();
        call("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], Some(folder));
        Mounted(folder.to_owned())
    }

    /// A file system that turns read-only after an error.
    fn breakable(folder: &Path) -> Mounted {
        let image = folder.with_extension("img");
        let file = std::fs::File::create_new(&image).unwrap();
        file.set_len(8 << 20).unwrap();
        call("mkfs.ext4", &["-q"], Some(&image));
        std::fs::create_dir(folder).unwrap();
        let image = image.display().to_string();
        call("mount", &["-o", "loop,errors=remount-ro", &image], Some(folder));
        Mounted(folder.to_owned())
    }

    fn turn_read_only(&self) {
        let found = call("findmnt", &["-n", "-o", "SOURCE"], Some(&self.0));
        let device = found.trim().rsplit('/').next().unwrap().to_owned();
        let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
        std::fs::write(trigger, "1").unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn call(program: &str, arguments: &[&str], path: Option<&Path>) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).args(path).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The next number of SplitMix64.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The counts and the rows of a run with a fault.
struct Outcome {
    fault: Fault,
    /// Operations that the server counted.
    served: u64,
    /// Window rows shortly before the fault.
    before: String,
    report: Finished,
    /// Window rows at the end.
    after: String,
}

/// One run with a fault.
fn run(moment: &Moment) -> Outcome {
    let fault = moment.fault;
    let bench = Bench::new();
    let behaviour = Behaviour { documents: 1000, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let uri = format!("mongodb://{}/", responder.address());
    let place = bench.path("m");
    let mounted = match fault {
        Fault::Killed | Fault::ClockStep => {
            std::fs::create_dir(&place).unwrap();
            None
        }
        Fault::DiskFull => Some(Mounted::small(&place, moment.room)),
        Fault::ReadOnly => Some(Mounted::breakable(&place)),
    };
    let more = ["--duration", "3s", "--rate", "300", "--out", "m/r"];
    let arguments = reads(&uri, &more);
    let mut command = bench.command(&arguments);
    let clock = (fault == Fault::ClockStep).then(|| SteppedClock::new(bench.path("clock")));
    if let Some(clock) = &clock {
        clock.give_to(&mut command);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let rows =
        || std::fs::read_to_string(bench.path("m/r/series/intervals.csv")).unwrap_or_default();
    std::thread::sleep(moment.after);
    let before = rows();
    match (fault, &mounted, &clock) {
        (Fault::Killed, ..) => child.kill().unwrap(),
        (_, _, Some(clock)) => clock.step(moment.step_s).unwrap(),
        (Fault::ReadOnly, Some(mounted), _) => mounted.turn_read_only(),
        _ => {}
    }
    let ended = Finished::from(child.wait_with_output().unwrap());
    match fault {
        Fault::Killed => {}
        Fault::ClockStep => assert_eq!(ended.code, Some(0), "{ended:?}"),
        Fault::DiskFull | Fault::ReadOnly => {
            assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}")
        }
    }
    let report = bench.dyno(&["report", "m/r", "--format", "json"]);
    Outcome { fault, served: responder.counters().data_commands, before, after: rows(), report }
}

/// Operations in complete window rows.
fn operations(rows: &str) -> u64 {
    let (whole, _) = rows.rsplit_once('\n').unwrap_or_default();
    let mut lines = whole.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let place = |name| header.iter().position(|column| *column == name);
    let (Some(succeeded), Some(failed)) = (place("succeeded"), place("failed")) else {
        return 0;
    };
    let count = |cell: &str| cell.parse::<u64>().unwrap();
    lines.map(|line| count(line[succeeded]) + count(line[failed])).sum()
}

/// Whether there is a report. A report must match the rows and must not exceed the server's counts; otherwise there is one clear
/// error.
fn check(outcome: &Outcome) -> bool {
    let report = &outcome.report;
    let shown = format!("{:?}: {report:?}", outcome.fault);
    // A run that recorded nothing removes its folder, including the table headers.
    let is_gone = outcome.after.is_empty() && operations(&outcome.before) == 0;
    assert!(is_gone || outcome.after.starts_with(&outcome.before), "{shown}");
    if report.code != Some(0) {
        assert!(matches!(report.code, Some(2 | 3)), "{shown}");
        assert_eq!(report.stderr.matches("error: ").count(), 1, "{shown}");
        assert!(report.stdout.is_empty(), "{shown}");
        return false;
    }
    let document = report.json();
    let phases = document["phases"].as_array().unwrap();
    let of = |phase: &Value, key: &str| phase[key].as_u64().unwrap();
    let reported: u64 =
        phases.iter().map(|phase| of(phase, "succeeded") + of(phase, "failed")).sum();
    assert!(reported <= outcome.served, "{reported} of {}: {shown}", outcome.served);
    let recorded = operations(&outcome.after);
    assert_eq!(reported, recorded, "{shown}");
    let is_whole = document["status"] == "complete";
    assert!(!is_whole || reported == 900, "{reported}: {shown}");
    if outcome.fault == Fault::ClockStep {
        assert!(is_whole, "{shown}");
        let longest = phases.iter().map(longest_s).fold(0.0, f64::max);
        assert!(longest < STEP_S as f64, "{longest}: {shown}");
    }
    true
}

/// The longest duration in a phase, including the durations of its operations.
fn longest_s(phase: &Value) -> f64 {
    let seconds = |value: &Value| value.as_f64().unwrap();
    let slowest = phase["operations"]
        .as_object()
        .unwrap()
        .values()
        .map(|operation| seconds(&operation["response_time_us"]["max"]) / 1e6)
        .fold(0.0, f64::max);
    let end = seconds(&phase["start_s"]) + seconds(&phase["duration_s"]);
    end.max(slowest)
}

#[test]
fn report_after_a_fault_shows_a_prefix_of_the_truth() {
    let wish = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let moments: u64 = wish("DYNO_CHAOS_MOMENTS").unwrap_or(MOMENTS);
    let seed: u64 = wish("DYNO_CHAOS_SEED").unwrap_or(21);
    println!("{moments} moments, DYNO_CHAOS_SEED={seed}");
    let mut faults = vec![Fault::Killed];
    if is_root() {
        faults.extend([Fault::DiskFull, Fault::ReadOnly]);
    }
    if or_skip(faketime_library()).is_some() {
        faults.push(Fault::ClockStep);
    }
    let mut state = seed;
    let planned: Vec<Moment> = (0..moments)
        .map(|number| {
            let step_s = (STEP_S + draw(&mut state) % 86_400) as i64;
            Moment {
                fault: faults[number as usize % faults.len()],
                after: Duration::from_millis(draw(&mut state) % LONGEST_MS),
                room: 16_384 + draw(&mut state) % 400_000,
                step_s: if draw(&mut state).is_multiple_of(2) { step_s } else { -step_s },
            }
        })
        .collect();
    let next = AtomicU64::new(0);
    let seen: Mutex<BTreeMap<(Fault, bool), u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(moment) = planned.get(next.fetch_add(1, Ordering::SeqCst) as usize) {
                    let key = (moment.fault, check(&run(moment)));
                    *seen.lock().unwrap().entry(key).or_default() += 1;
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    let with_report = seen.iter().filter(|((_, has_report), _)| *has_report);
    let reports: u64 = with_report.map(|(_, count)| count).sum();
    // A run that was hit before it recorded anything has no report.
    assert!(2 * reports >= moments, "{seen:?}");
    for ((fault, has_report), count) in seen {
        let what = if has_report { "a true report" } else { "one error" };
        println!("{fault:?}: {count} times {what}");
    }
}
