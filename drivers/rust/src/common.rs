//! Shared code of the Rust drivers: options, clock, barrier, pacing and stamps.

use crate::seen::Seen;
use nix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufWriter, Write};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) const NO_BATCH: u32 = u32::MAX;
pub(crate) const PRODUCER_SHIFT: u32 = 40;
pub(crate) const POSITION_LOST: i32 = 136;
/// Time for answers to inserts in flight after a stop request.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
pub(crate) const EMPTY_PAUSE: Duration = Duration::from_millis(5);
pub(crate) const BACK_OFF_FIRST: Duration = Duration::from_millis(10);
pub(crate) const BACK_OFF_LAST: Duration = Duration::from_secs(1);
/// A tailable cursor opened during inserts may skip some of them (seen with the embedded server). Missing messages
/// are requested this long after the opening.
pub(crate) const CATCH_UP_NS: i64 = 100_000_000;
/// Longest spinning before an intended start.
pub(crate) const SPIN_NS: i64 = 50_000;
/// Pings before `ready`, one after the other, so that all drivers start equally warm.
pub(crate) const PINGS: usize = 100;
/// Largest number of failed inserts with an event each.
const MAX_REPORTED: i64 = 20;
const MOST_MESSAGES: i64 = (1 << PRODUCER_SHIFT) - 1;

/// Options by name.
pub(crate) struct Options {
    values: BTreeMap<&'static str, String>,
    pub(crate) uri: String,
}

/// Definition of an option: (name, default, rule). Without a default, it is required.
type Known = (&'static str, Option<&'static str>, Rule);

#[derive(Clone, Copy)]
enum Rule {
    Text,
    Words(&'static [&'static str]),
    Whole(i64, i64),
    /// A whole number, or this word.
    Or(&'static str, i64, i64),
    Seconds,
}

const COMMON: &[Known] = &[
    ("database", None, Rule::Text),
    ("collection", None, Rule::Text),
    ("output", None, Rule::Text),
    ("messages", None, Rule::Whole(0, MOST_MESSAGES)),
    ("pool", Some("100"), Rule::Whole(1, 100_000)),
    ("clock", Some("monotonic"), Rule::Words(&["monotonic", "realtime"])),
];
const PRODUCE: &[Known] = &[
    ("producer", Some("0"), Rule::Whole(0, 65_535)),
    ("first", Some("0"), Rule::Whole(0, MOST_MESSAGES)),
    ("size", Some("0"), Rule::Whole(0, 16_000_000)),
    ("in-flight", Some("1"), Rule::Or("unbounded", 1, 1_000_000)),
    ("write-concern", Some("1"), Rule::Or("majority", 0, 50)),
    ("journal", Some(""), Rule::Words(&["true", "false"])),
    ("schedule", Some(""), Rule::Text),
];
const CONSUME: &[Known] = &[
    ("mode", Some("tailable"), Rule::Words(&["tailable", "change-stream", "poll"])),
    ("producers", Some("1"), Rule::Whole(1, 65_536)),
    ("await-ms", Some("1000"), Rule::Whole(1, 3_600_000)),
    ("batch-size", Some("0"), Rule::Whole(1, 1_000_000)),
    ("poll-ms", Some("1"), Rule::Whole(0, 3_600_000)),
    ("idle-s", Some("30"), Rule::Seconds),
    ("delay-us", Some("0"), Rule::Whole(0, 1_000_000_000)),
];

impl Options {
    /// Parses pairs of a name and a value; the error is one line that names the option.
    pub(crate) fn parse(role: &str, arguments: &[String]) -> Result<Self, String> {
        let own = if role == "produce" { PRODUCE } else { CONSUME };
        let known: Vec<Known> = COMMON.iter().chain(own).copied().collect();
        let mut values = BTreeMap::new();
        for pair in arguments.chunks(2) {
            let name = pair[0].strip_prefix("--").unwrap_or_default();
            let Some((name, _, rule)) = known.iter().find(|entry| entry.0 == name) else {
                return Err(format!("unknown option `{}`", pair[0]));
            };
            let Some(value) = pair.get(1) else {
                return Err(format!("option `--{name}` needs a value"));
            };
            rule.check(value)
                .map_err(|expected| format!("option `--{name}`: `{value}` must be {expected}"))?;
            values.insert(*name, value.clone());
        }
        for (name, default, _) in known {
            match default {
                Some(default) => values.entry(name).or_insert_with(|| default.to_owned()),
                None if values.contains_key(name) => continue,
                None => return Err(format!("option `--{name}` is missing")),
            };
        }
        let uri = std::env::var("DYNO_URI").unwrap_or_default();
        if uri.is_empty() {
            return Err("the environment variable DYNO_URI is missing".to_owned());
        }
        Ok(Options { values, uri })
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// The option as a number; `None` for a word.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    /// The option as a number; 0 for a word.
    pub(crate) fn whole(&self, name: &str) -> i64 {
        self.number(name).unwrap_or(0)
    }

    pub(crate) fn idle_ns(&self) -> i64 {
        (self.text("idle-s").parse::<f64>().unwrap_or(30.0) * 1e9) as i64
    }

    pub(crate) fn clock(&self) -> Clock {
        match self.text("clock") {
            "realtime" => Clock(ClockId::CLOCK_REALTIME),
            _ => Clock(ClockId::CLOCK_MONOTONIC),
        }
    }

    /// Intended starts in ns after the start instant, `None` for a closed loop.
    pub(crate) fn schedule(&self) -> Result<Option<Vec<i64>>, String> {
        let path = self.text("schedule");
        if path.is_empty() {
            return Ok(None);
        }
        let data = std::fs::read(path).map_err(|error| format!("option `--schedule`: {error}"))?;
        let (entries, _) = data.as_chunks::<8>();
        let schedule: Vec<i64> = entries.iter().map(|entry| i64::from_le_bytes(*entry)).collect();
        let messages = self.whole("messages");
        if (schedule.len() as i64) < messages {
            let entries = schedule.len();
            return Err(format!("option `--schedule`: {entries} entries for {messages} messages"));
        }
        Ok(Some(schedule))
    }

    /// Padding; the same bytes in every driver.
    pub(crate) fn padding(&self) -> Vec<u8> {
        let mut state = 42_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..self.whole("size")).map(next).collect()
    }
}

impl Rule {
    fn check(self, value: &str) -> Result<(), String> {
        let is_whole = |low, high| {
            value.bytes().all(|byte| byte.is_ascii_digit())
                && value.parse::<i64>().is_ok_and(|number| (low..=high).contains(&number))
        };
        match self {
            Rule::Text => Ok(()),
            Rule::Words(words) if words.contains(&value) => Ok(()),
            Rule::Words(words) => Err(format!("one of {}", words.join(", "))),
            Rule::Whole(low, high) if is_whole(low, high) => Ok(()),
            Rule::Whole(low, high) => Err(format!("a whole number from {low} to {high}")),
            Rule::Or(word, low, high) if value == word || is_whole(low, high) => Ok(()),
            Rule::Or(word, low, high) => Err(format!("`{word}` or a number from {low} to {high}")),
            Rule::Seconds if value.parse::<f64>().is_ok_and(|s| s > 0.0 && s < 1e9) => Ok(()),
            Rule::Seconds => Err("above 0".to_owned()),
        }
    }
}

/// The clock shared by all programs of a run.
#[derive(Clone, Copy)]
pub(crate) struct Clock(ClockId);

impl Clock {
    pub(crate) fn now(self) -> i64 {
        let now = clock_gettime(self.0).expect("these clocks exist on every Linux");
        now.tv_sec() * 1_000_000_000 + now.tv_nsec()
    }
}

/// One line of JSON on standard output.
pub(crate) fn emit(event: &Value) {
    let mut output = std::io::stdout().lock();
    // The reader may be gone: the run is over.
    let _ = writeln!(output, "{event}").and_then(|()| output.flush());
}

/// Ends the program with one line on standard error.
#[allow(clippy::exit, reason = "exit codes are part of the contract")]
pub(crate) fn fail(code: i32, message: &str) -> ! {
    let line: Vec<&str> = message.split_whitespace().collect();
    let _ = writeln!(std::io::stderr(), "{}", line.join(" "));
    process::exit(code)
}

#[allow(clippy::exit, reason = "exit codes are part of the contract")]
pub(crate) fn end(code: i32) -> ! {
    process::exit(code)
}

/// The barrier on standard input, and all stop requests.
#[derive(Default)]
pub(crate) struct Control {
    start_ns: AtomicI64,
    stopping: AtomicBool,
    exit_code: AtomicI32,
}

impl Control {
    pub(crate) fn new() -> Arc<Self> {
        let control = Arc::new(Control::default());
        let signalled = Arc::clone(&control);
        let signals = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
        match signal_hook::iterator::Signals::new(signals) {
            Ok(mut signals) => {
                thread::spawn(move || signals.forever().for_each(|_| signalled.stop(130)));
            }
            Err(error) => fail(1, &format!("cannot catch signals: {error}")),
        }
        control
    }

    fn stop(&self, code: i32) {
        if self.start_ns() == 0 {
            end(code);
        }
        self.exit_code.store(code, Ordering::SeqCst);
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Reports readiness, and waits for the start.
    pub(crate) fn ready(self: &Arc<Self>) {
        let _ = writeln!(std::io::stdout(), "ready");
        let control = Arc::clone(self);
        let (started, wait) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split_whitespace().collect();
                match words[..] {
                    ["start", at] if control.start_ns() == 0 => {
                        let Ok(at) = at.parse() else { continue };
                        control.start_ns.store(at, Ordering::SeqCst);
                        let _ = started.send(());
                    }
                    ["stop"] => control.stop(0),
                    _ => {}
                }
            }
            // Without a start, nothing is sent.
            if control.start_ns() == 0 {
                end(0);
            }
        });
        let _ = wait.recv();
    }

    pub(crate) fn start_ns(&self) -> i64 {
        self.start_ns.load(Ordering::SeqCst)
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn exit_code(&self) -> i32 {
        self.exit_code.load(Ordering::SeqCst)
    }

    pub(crate) fn set_exit_code(&self, code: i32) {
        self.exit_code.store(code, Ordering::SeqCst);
    }
}

/// Stamps: records of 32 bytes, on disk after at most a second.
pub(crate) struct Stamps(Mutex<Written>);

struct Written {
    file: BufWriter<File>,
    closed: bool,
    sent: i64,
    failed: i64,
}

impl Stamps {
    pub(crate) fn create(path: &str) -> Result<Arc<Self>, String> {
        let file = File::create(path).map_err(|error| format!("option `--output`: {error}"))?;
        let stamps = Arc::new(Stamps(Mutex::new(Written {
            file: BufWriter::with_capacity(1 << 16, file),
            closed: false,
            sent: 0,
            failed: 0,
        })));
        let flushed = Arc::clone(&stamps);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(500));
                flushed.flush();
            }
        });
        Ok(stamps)
    }

    fn locked(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn flush(&self) {
        if let Err(error) = self.locked().file.flush() {
            fail(1, &format!("cannot write stamps: {error}"));
        }
    }

    /// A producer's stamp: n, intended, send, and the end of the insert, negative if it failed. Returns whether to
    /// report the failure as an event.
    pub(crate) fn produced(&self, fields: [i64; 4]) -> bool {
        let mut written = self.locked();
        if written.closed {
            return false;
        }
        written.write(fields);
        if fields[3] > 0 {
            written.sent += 1;
            return false;
        }
        written.failed += 1;
        written.failed <= MAX_REPORTED
    }

    /// A consumer's stamp: n, send, received and the last two fields.
    pub(crate) fn consumed(&self, fields: [i64; 4]) {
        self.locked().write(fields);
    }

    /// The last event of a producer. Later answers have no stamp and are not counted.
    pub(crate) fn close(&self) -> Value {
        let mut written = self.locked();
        written.closed = true;
        serde_json::json!({ "event": "done", "messages": written.sent, "failed": written.failed })
    }
}

impl Written {
    fn write(&mut self, fields: [i64; 4]) {
        let mut record = [0; 32];
        for (bytes, field) in record.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *bytes = field.to_le_bytes();
        }
        // The buffer keeps an error, and its flush reports it.
        let _ = self.file.write_all(&record);
    }
}

/// The last two fields of a consumer's stamp.
pub(crate) fn producer_and_batch(producer: i32, batch: u32) -> i64 {
    i64::from(producer) | (i64::from(batch) << 32)
}

/// A consumer's counters other than messages.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) opened: i64,
    pub(crate) empty: i64,
    pub(crate) position_lost: i64,
}

impl Counters {
    /// The last event of a consumer.
    pub(crate) fn done(&self, seen: &Seen, polls: bool) -> Value {
        serde_json::json!({
            "event": "done", "messages": seen.count, "failed": 0,
            "reopened": if polls { 0 } else { self.opened - 1 }, "reopened_empty": self.empty,
            "position_lost": self.position_lost, "caught_up": seen.caught_up(),
            "duplicates_skipped": seen.duplicates,
        })
    }
}

/// Reason for opening a source again.
pub(crate) struct Lost {
    pub(crate) reason: &'static str,
    pub(crate) code: Option<i32>,
    pub(crate) message: String,
    pub(crate) reported: bool,
    /// For a blind cursor: how many ns it was blind, and how many messages queries found in that time.
    pub(crate) blind: Option<(i64, i64)>,
}

impl Lost {
    pub(crate) fn tell(&mut self, at_ns: i64) {
        if std::mem::replace(&mut self.reported, true) {
            return;
        }
        let mut event = serde_json::json!({
            "event": "reopened", "reason": self.reason, "at_ns": at_ns, "code": self.code,
            "message": self.message,
        });
        if let Some((blind_ns, found)) = self.blind {
            event["blind_ns"] = blind_ns.into();
            event["found"] = found.into();
        }
        emit(&event);
    }
}
