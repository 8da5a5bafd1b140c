//! One experiment: makes the collection, starts all processes at one instant, waits for their end, and
//! gathers what they stamped.

use crate::course::{Asked, course};
use crate::driver::{Driver, Found};
use crate::error::TailError;
use crate::messages::{Consumed, MOST_MESSAGES, Produced};
use crate::process::{Ending, Process};
use crate::resources::{Units, sample};
use crate::stamps::{Reader, Received, Sent};
use crate::tables::Receipts;
use crate::{schedule, split, sums, tables};
use bson::doc;
use dyno_analyze::messages::record::{
    ConsumerRecord, DriverRecord, Measured, ProducerRecord, Resources, Sample, Settings,
};
use dyno_analyze::messages::{InFlight, QueuePlace, judge};
use dyno_load::connect::{Connector, Control};
use nix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time until a process is ready: a Java runtime beside others on few cores.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Longest time between two questions whether somebody interrupts.
const READY_STEP: Duration = Duration::from_millis(100);
/// From the word `start` to the start: every process has read it by then.
const START_DELAY_NS: i64 = 200_000_000;
/// Distance of the samples of resources.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// Time to end in order after `stop`.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Exit code of a consumer that nothing came to any more.
const IDLE: i32 = 5;

struct Member {
    driver: Driver,
    process: Process,
    output: PathBuf,
    samples: Vec<Sample>,
}

impl Member {
    /// What it used; CPU time from the first look on, which is just before the start.
    fn resources(&mut self) -> Resources {
        let samples = std::mem::take(&mut self.samples);
        let first = samples.first().map(|sample| sample.cpu_s);
        let last = self.process.cpu_s();
        Resources {
            cpu_s: first.zip(last).map(|(first, last)| (last - first).max(0.0)),
            samples,
        }
    }
}

/// What an experiment is made with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The server, with credentials if it asks for some.
    pub uri: &'a str,
    /// The drivers that there are.
    pub found: &'a Found,
    /// Processes of the server on this machine that are looked at, too.
    pub server: &'a [u32],
    /// Asked now and then: whether it shall end, and keep what was measured until then.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Runs an experiment. What each message did is left in `folder`, which is there; see [`dyno_record::messages`]. The
/// thread that calls it starts the processes, which end with it.
///
/// # Errors
/// [`TailError`]; nothing runs any more then, and the collection is removed if it was created. What the drivers
/// stamped is left in the folder.
pub fn run(bench: &Bench<'_>, settings: &Settings, folder: &Path) -> Result<Measured, TailError> {
    check(settings)?;
    let (target, credentials) = dyno_plan::uri::parse(bench.uri)?;
    let connector = Connector::new(&target, credentials)?;
    let mut control = connector.control()?;
    let capped = i64::try_from(settings.capped_bytes).unwrap_or(i64::MAX);
    // A collection that is there is somebody's. The server refuses to create it again only if its
    // options are others.
    let filter = doc! { "name": &settings.collection };
    let there = doc! { "listCollections": 1, "filter": filter, "nameOnly": true };
    let there = control.run(&settings.database, there)?;
    let first = there
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"));
    if first.is_ok_and(|first| !first.is_empty()) {
        return Err(TailError::Settings(format!(
            "collection `{}.{}` is there already, and would be removed afterwards",
            settings.database, settings.collection
        )));
    }
    let create = doc! { "create": &settings.collection, "capped": true, "size": capped };
    control.run(&settings.database, create)?;
    let result = with_collection(bench, settings, folder);
    if !remove(&mut control, settings) {
        // The server may have been restarted meanwhile. The result stands whether or not it answers.
        if let Ok(mut control) = connector.control() {
            remove(&mut control, settings);
        }
    }
    result
}

fn remove(control: &mut Control, settings: &Settings) -> bool {
    let dropped = control.run(&settings.database, doc! { "drop": &settings.collection });
    dropped.is_ok()
}

fn check(settings: &Settings) -> Result<(), TailError> {
    let refused = |reason: String| Err(TailError::Settings(reason));
    if settings.messages == 0
        || settings.pool == 0
        || settings.producers.is_empty()
        || settings.in_flight == InFlight::Bounded(0)
    {
        return refused(
            "messages, producers, connections and inserts in flight must be at least 1".to_owned(),
        );
    }
    if settings.messages > MOST_MESSAGES {
        return refused(format!(
            "{} messages are more than the {MOST_MESSAGES} that sequence numbers tell apart",
            settings.messages
        ));
    }
    Ok(())
}

fn with_collection(
    bench: &Bench<'_>,
    settings: &Settings,
    folder: &Path,
) -> Result<Measured, TailError> {
    let mut consumers = Vec::new();
    for (number, name) in settings.consumers.iter().enumerate() {
        let options = consumer_options(settings);
        let name = (name.as_str(), "consume", number);
        consumers.push(start(bench, folder, name, options)?);
    }
    let asked = Instant::now();
    let mut producers = Vec::new();
    for (number, name) in settings.producers.iter().enumerate() {
        let options = producer_options(settings, folder, number)?;
        let name = (name.as_str(), "produce", number);
        producers.push(start(bench, folder, name, options)?);
    }
    for member in consumers.iter_mut().chain(&mut producers) {
        // In small steps, so that nobody waits for a runtime that he does not want any more.
        while !member.process.is_ready(READY_STEP)? {
            if (bench.interrupted)() {
                return Err(TailError::Interrupted);
            }
            if asked.elapsed() > READY_LIMIT {
                return Err(member.process.late("is not ready", READY_LIMIT));
            }
        }
    }
    let at_ns = monotonic_ns() + START_DELAY_NS;
    for member in consumers.iter_mut().chain(&mut producers) {
        member.process.say_start(at_ns)?;
    }
    let mut watch = Watch {
        bench,
        began: Instant::now(),
        units: Units::read(),
        server: Vec::new(),
        interrupted: false,
    };
    let limit = Duration::from_secs(settings.limit_s);
    let most = Limit {
        at: limit,
        quiet: Duration::MAX,
    };
    watch.until(most, &mut producers, &mut consumers)?;
    // A consumer that misses messages ends by itself when it was idle; one that is slow has as much time again as the
    // producers may have.
    let quiet = Duration::from_secs(settings.idle_s)
        + 2 * Duration::from_micros(settings.delay_us)
        + STOP_LIMIT;
    let most = Limit {
        at: watch.began.elapsed() + limit,
        quiet,
    };
    let stopped = watch.until(most, &mut consumers, &mut [])?;
    let mut measured = gather(settings, producers, consumers, folder)?;
    for consumer in &mut measured.consumers {
        consumer.stopped = stopped && consumer.sum.lost > 0;
    }
    measured.server = watch.server();
    measured.interrupted = watch.interrupted;
    Ok(measured)
}

fn total_messages(settings: &Settings) -> u64 {
    settings.messages * settings.producers.len() as u64
}

fn monotonic_ns() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() * 1_000_000_000 + now.tv_nsec())
}

fn pairs(options: &[(&str, String)]) -> Vec<OsString> {
    let words = options
        .iter()
        .flat_map(|(name, value)| [format!("--{name}").into(), value.into()]);
    words.collect()
}

fn consumer_options(settings: &Settings) -> Vec<OsString> {
    let mut options = common_options(settings, total_messages(settings));
    options.extend(pairs(&[
        ("mode", settings.mode.as_str().to_owned()),
        ("producers", settings.producers.len().to_string()),
        ("idle-s", settings.idle_s.to_string()),
        ("delay-us", settings.delay_us.to_string()),
    ]));
    options
}

fn producer_options(
    settings: &Settings,
    folder: &Path,
    number: usize,
) -> Result<Vec<OsString>, TailError> {
    let in_flight = match settings.in_flight {
        InFlight::Bounded(bound) => bound.to_string(),
        InFlight::Unbounded => "unbounded".to_owned(),
    };
    let mut options = common_options(settings, settings.messages);
    options.extend(pairs(&[
        ("producer", number.to_string()),
        ("size", settings.size_bytes.to_string()),
        ("in-flight", in_flight),
        ("write-concern", settings.write_concern.clone()),
    ]));
    if let Some(schedule) = settings.schedule {
        let path = schedule_path(folder, number);
        let producers = settings.producers.len() as u64;
        schedule::write(schedule, &path, number as u64, producers, settings.messages)?;
        options.extend(["--schedule".into(), path.into()]);
    }
    Ok(options)
}

fn schedule_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("schedule-{number}"))
}

fn common_options(settings: &Settings, messages: u64) -> Vec<OsString> {
    pairs(&[
        ("database", settings.database.clone()),
        ("collection", settings.collection.clone()),
        ("messages", messages.to_string()),
        ("pool", settings.pool.to_string()),
        ("clock", "monotonic".to_owned()),
    ])
}

fn start(
    bench: &Bench<'_>,
    folder: &Path,
    (name, role, number): (&str, &str, usize),
    mut options: Vec<OsString>,
) -> Result<Member, TailError> {
    let driver = bench.found.named(name, role)?.clone();
    let output = folder.join(format!("{role}-{number}.stamps"));
    options.extend(["--output".into(), output.clone().into()]);
    let noun = if role == "produce" {
        "producer"
    } else {
        "consumer"
    };
    let title = format!("{noun} {number} ({name})");
    let process = Process::start(&title, &driver.run, role, &options, bench.uri)?;
    Ok(Member {
        driver,
        process,
        output,
        samples: Vec::new(),
    })
}

/// How long processes may go on.
#[derive(Clone, Copy)]
struct Limit {
    /// Until so long after the start of all.
    at: Duration,
    /// And no longer than this without a new stamp of any of them.
    quiet: Duration,
}

/// Looks at all processes until they have ended.
struct Watch<'a> {
    bench: &'a Bench<'a>,
    began: Instant,
    units: Units,
    /// Looks at the processes of the server, together.
    server: Vec<Sample>,
    interrupted: bool,
}

impl Watch<'_> {
    /// Samples all until the first ones have ended; at the limit, when one of the others fails, or when somebody interrupts,
    /// they are asked to end, and have some time. Gives whether they were asked.
    fn until(
        &mut self,
        limit: Limit,
        until: &mut [Member],
        others: &mut [Member],
    ) -> Result<bool, TailError> {
        let mut next = self.began.elapsed();
        let (mut stamped, mut stamped_at) = (0, next);
        let mut stopped = None;
        loop {
            let now = self.began.elapsed();
            let mut running = false;
            for member in until.iter_mut() {
                running |= !member.process.has_ended()?;
            }
            if now >= next || !running {
                next = now + SAMPLE_EVERY;
                self.sample(now, until, others);
                let bytes = stamped_bytes(until);
                if bytes > stamped {
                    (stamped, stamped_at) = (bytes, now);
                }
            }
            if !running {
                return Ok(stopped.is_some());
            }
            // Nobody gets what is sent from here on.
            let mut failed = false;
            for member in others.iter_mut() {
                failed |= member.process.has_failed()?;
            }
            let is_over =
                failed || now >= limit.at || now >= stamped_at.saturating_add(limit.quiet);
            self.interrupted |= (self.bench.interrupted)();
            match stopped {
                None if is_over || self.interrupted => {
                    stopped = Some(now);
                    for member in until.iter_mut() {
                        // One that has just ended does not listen any more.
                        let _ = member.process.say_stop();
                    }
                }
                Some(since) if now >= since + STOP_LIMIT => {
                    until
                        .iter_mut()
                        .try_for_each(|member| member.process.wait(Duration::ZERO).map(|_| ()))?;
                    return Ok(true);
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn sample(&mut self, now: Duration, until: &mut [Member], others: &mut [Member]) {
        let members = || until.iter().chain(others.iter());
        let ids = members().map(|member| member.process.id());
        let ids: Vec<u32> = ids.chain(self.bench.server.iter().copied()).collect();
        let mut found = sample(Path::new("/proc"), &ids, now.as_secs_f64(), self.units).into_iter();
        for (member, sample) in until.iter_mut().chain(others.iter_mut()).zip(&mut found) {
            if sample.processes > 0 {
                member.samples.push(sample);
            }
        }
        let server = found.reduce(|sum, sample| Sample {
            at_s: sum.at_s,
            cpu_s: sum.cpu_s + sample.cpu_s,
            rss_bytes: sum.rss_bytes + sample.rss_bytes,
            threads: sum.threads + sample.threads,
            processes: sum.processes + sample.processes,
        });
        self.server.extend(server.filter(|sum| sum.processes > 0));
    }

    fn server(&self) -> Option<Resources> {
        let (first, last) = (self.server.first()?, self.server.last()?);
        Some(Resources {
            cpu_s: Some((last.cpu_s - first.cpu_s).max(0.0)),
            samples: self.server.clone(),
        })
    }
}

/// What processes have stamped so far.
fn stamped_bytes(members: &[Member]) -> u64 {
    let files = members
        .iter()
        .map(|member| std::fs::metadata(&member.output));
    files.flatten().map(|file| file.len()).sum()
}

fn sum_error(who: String) -> impl Fn(String) -> TailError {
    move |reason| TailError::Sum(format!("{who}: {reason}"))
}

/// Ends a member; exit codes other than 0 and `allowed` are errors.
fn ending(member: &mut Member, allowed: Option<i32>) -> Result<Ending, TailError> {
    let ending = member.process.wait(STOP_LIMIT)?;
    match ending.code == Some(0) || (ending.code.is_some() && ending.code == allowed) {
        true => Ok(ending),
        false => Err(member.process.ended_with(&ending)),
    }
}

fn gather(
    settings: &Settings,
    mut producers: Vec<Member>,
    mut consumers: Vec<Member>,
    folder: &Path,
) -> Result<Measured, TailError> {
    let (mut produced, mut producer_sums) = (Vec::new(), Vec::new());
    for (number, member) in producers.iter_mut().enumerate() {
        let ending = ending(member, None)?;
        let wrong = sum_error(format!("producer {number} ({})", member.driver.name));
        let mut messages = Produced::new(settings.messages);
        for sent in Reader::<Sent>::open(&member.output)? {
            messages.add(sent?).map_err(&wrong)?;
        }
        let sum = sums::of_producer(&messages);
        let said = ending.done("messages").zip(ending.done("failed"));
        let (acknowledged, failed) =
            said.ok_or_else(|| wrong("its last line is not `done` with its sum".to_owned()))?;
        sums::producer_agrees(&sum, acknowledged, failed).map_err(&wrong)?;
        produced.push(messages);
        producer_sums.push(sum);
    }
    let (mut had, mut consumer_records) = (Vec::new(), Vec::new());
    let mut receipts = Receipts::default();
    for (number, member) in consumers.iter_mut().enumerate() {
        let ending = ending(member, Some(IDLE))?;
        let wrong = sum_error(format!("consumer {number} ({})", member.driver.name));
        let mut consumed = Consumed::new(&produced);
        for received in Reader::<Received>::open(&member.output)? {
            let received = received?;
            consumed.add(&produced, received).map_err(&wrong)?;
            receipts.add(number, &received);
        }
        let sum = sums::of_consumer(&produced, &consumed);
        sums::consumer_agrees(&sum, &producer_sums, ending.done("messages")).map_err(&wrong)?;
        let deliveries = (0..produced.len())
            .map(|producer| split::of_delivery(&produced, producer, &consumed, settings.points));
        consumer_records.push(ConsumerRecord {
            driver: record(&member.driver),
            sum,
            deliveries: deliveries.collect(),
            resources: member.resources(),
            received_per_s: consumed.received_per_s(&produced),
            idle: ending.code == Some(IDLE),
            stopped: false,
            reopened: ending.done("reopened"),
            reopened_empty: ending.done("reopened_empty"),
            position_lost: ending.done("position_lost"),
            caught_up: ending.done("caught_up"),
            duplicates_skipped: ending.done("duplicates_skipped"),
        });
        had.push(consumed);
    }
    let offered_per_s = settings
        .schedule
        .map(|schedule| schedule.rate_per_s / settings.producers.len() as f64);
    let records = producers.iter_mut().zip(producer_sums).enumerate();
    let records = records.map(|(number, (member, sum))| {
        let version = &member.driver.version;
        let asked = Asked {
            in_flight: settings.in_flight,
            place: match version.unbounded.as_deref() {
                Some("program") => QueuePlace::Program,
                _ => QueuePlace::Driver,
            },
            pool: version.pool.then_some(settings.pool),
            offered_per_s,
        };
        let course = course(&produced, number, had.first(), asked);
        ProducerRecord {
            driver: record(&member.driver),
            sum,
            split: split::of_producer(&produced[number], settings.points),
            verdict: judge(&course),
            course,
            resources: member.resources(),
        }
    });
    let records = records.collect();
    tables::write(folder, &produced, receipts)?;
    // All of it is in the tables.
    for member in producers.iter().chain(&consumers) {
        let _ = std::fs::remove_file(&member.output);
    }
    for number in 0..producers.len() {
        let _ = std::fs::remove_file(schedule_path(folder, number));
    }
    Ok(Measured {
        producers: records,
        consumers: consumer_records,
        server: None,
        interrupted: false,
    })
}

fn record(driver: &Driver) -> DriverRecord {
    DriverRecord {
        name: driver.name.clone(),
        version: driver.version.clone(),
    }
}
