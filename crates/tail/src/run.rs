//! One experiment: makes the collection, starts all processes at one instant, waits for their end, and
//! gathers what they stamped.

use crate::course::{Asked, course};
use crate::driver::{Driver, Found};
use crate::error::TailError;
use crate::host::{Correction, Host};
use crate::messages::{Consumed, MOST_MESSAGES, Produced};
use crate::process::{Ending, Process};
use crate::resources::{self, Units, sample};
use crate::stamps::{Reader, Received, Sent};
use crate::tables::Receipts;
use crate::{schedule, split, sums, tables};
use bson::doc;
use dyno_fleet::clock::{monotonic_ns, realtime_ns};
use dyno_load::connect::{Connector, Control};
use dyno_plan::uri::with_option;
use dyno_record::tail::{
    ConsumerRecord, Course, DriverRecord, InFlight, Judgement, Measured, ProducerRecord,
    QueuePlace, Resources, Sample, Settings,
};
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time until a process is ready: a Java runtime beside others on few cores.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Longest time between two questions whether somebody interrupts.
const READY_STEP: Duration = Duration::from_millis(100);
/// From the word `start` to the start: every process has read it by then.
const START_DELAY_NS: i64 = 200_000_000;
/// The same where other hosts are told.
const HOSTS_START_DELAY_NS: i64 = 1_000_000_000;
/// Distance of the samples of resources.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// Time to end in order after `stop`.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Exit code of a consumer that nothing came to any more.
const IDLE: i32 = 5;

/// The other hosts.
#[derive(Debug, Default)]
struct Hosts {
    producers: Option<Host>,
    consumers: Option<Host>,
}

impl Hosts {
    fn open(bench: &Bench<'_>, settings: &Settings) -> Result<Hosts, TailError> {
        let open = |name: &Option<String>| {
            let host = name
                .as_ref()
                .map(|name| Host::open(name, bench.host_drivers));
            host.transpose()
        };
        Ok(Hosts {
            producers: open(&settings.producer_host)?,
            consumers: open(&settings.consumer_host)?,
        })
    }

    fn of(&mut self, role: Role) -> Option<&mut Host> {
        match role {
            Role::Produce => self.producers.as_mut(),
            Role::Consume => self.consumers.as_mut(),
        }
    }
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Produce,
    Consume,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Consume => "consume",
        }
    }
}

struct Member {
    driver: Driver,
    process: Process,
    role: Role,
    /// Name of its files.
    title: String,
    /// Whether it is on another host.
    is_there: bool,
    /// Its process id, on its host.
    id: u32,
    output: PathBuf,
    samples: Vec<Sample>,
}

impl Member {
    /// What it used.
    fn resources(&mut self) -> Resources {
        let samples = std::mem::take(&mut self.samples);
        let at_end_s = match self.is_there {
            // Here is only the connection. What it used after the last look is not known.
            true => Some(0.0),
            false => self.process.cpu_s(),
        };
        Resources {
            cpu_s: resources::used_s(&samples, at_end_s),
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
    /// Folder of the drivers on other hosts.
    pub host_drivers: &'a Path,
    /// Whether drivers ask for each heartbeat, in place of having the server stream them.
    pub polls_heartbeats: bool,
    /// Says whether the latency of a producer grows, and why: measuring leaves that to the analysis.
    pub judge: fn(&Course) -> Judgement,
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
    let mut hosts = Hosts::open(bench, settings)?;
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
    let result = with_collection(bench, &mut hosts, settings, folder);
    // A producer that still ran would create the collection anew, and not a capped one.
    drop(hosts);
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
    hosts: &mut Hosts,
    settings: &Settings,
    folder: &Path,
) -> Result<Measured, TailError> {
    let mut consumers = Vec::new();
    for (number, name) in settings.consumers.iter().enumerate() {
        let options = consumer_options(settings);
        let name = (name.as_str(), Role::Consume, number);
        consumers.push(start(bench, hosts, folder, name, options)?);
    }
    let mut producers = Vec::new();
    for (number, name) in settings.producers.iter().enumerate() {
        let options = producer_options(settings, hosts, folder, number)?;
        let name = (name.as_str(), Role::Produce, number);
        producers.push(start(bench, hosts, folder, name, options)?);
    }
    // Those on other hosts start one after the other.
    let asked = Instant::now();
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
        if let Some(host) = hosts.of(member.role) {
            member.id = host.process_id(&member.title)?;
        }
    }
    // An offset is known for each host before the start is said.
    let mut ahead_ns = [0; 2];
    for (ahead_ns, role) in ahead_ns.iter_mut().zip([Role::Produce, Role::Consume]) {
        if let Some(host) = hosts.of(role) {
            *ahead_ns = host.compare_clocks()?.offset_ns;
        }
    }
    let at_ns = match settings.is_here() {
        true => monotonic_ns() + START_DELAY_NS,
        false => realtime_ns() + HOSTS_START_DELAY_NS,
    };
    for member in consumers.iter_mut().chain(&mut producers) {
        member
            .process
            .say_start(at_ns + ahead_ns[member.role as usize])?;
    }
    let mut watch = Watch {
        bench,
        hosts,
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
    let (server, interrupted) = (watch.server(), watch.interrupted);
    let mut measured = gather(bench, settings, hosts, producers, consumers, folder)?;
    for consumer in &mut measured.consumers {
        consumer.stopped = stopped && consumer.sum.lost > 0;
    }
    measured.server = server;
    measured.interrupted = interrupted;
    Ok(measured)
}

fn total_messages(settings: &Settings) -> u64 {
    settings.messages * settings.producers.len() as u64
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
    hosts: &mut Hosts,
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
    if settings.journal {
        options.extend(pairs(&[("journal", "true".to_owned())]));
    }
    if let Some(schedule) = settings.schedule {
        let path = schedule_path(folder, number);
        let producers = settings.producers.len() as u64;
        schedule::write(schedule, &path, number as u64, producers, settings.messages)?;
        let place = match hosts.of(Role::Produce) {
            Some(host) => {
                let name = format!("schedule-{number}");
                host.put(&path, &name)?;
                host.path(&name)
            }
            None => path.into(),
        };
        options.extend(["--schedule".into(), place]);
    }
    Ok(options)
}

fn schedule_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("schedule-{number}"))
}

fn common_options(settings: &Settings, messages: u64) -> Vec<OsString> {
    let clock = if settings.is_here() {
        "monotonic"
    } else {
        "realtime"
    };
    pairs(&[
        ("database", settings.database.clone()),
        ("collection", settings.collection.clone()),
        ("messages", messages.to_string()),
        ("pool", settings.pool.to_string()),
        ("clock", clock.to_owned()),
    ])
}

fn start(
    bench: &Bench<'_>,
    hosts: &mut Hosts,
    folder: &Path,
    (name, role, number): (&str, Role, usize),
    mut options: Vec<OsString>,
) -> Result<Member, TailError> {
    if (bench.interrupted)() {
        return Err(TailError::Interrupted);
    }
    let title = format!("{}-{number}", role.as_str());
    let file = format!("{title}.stamps");
    let output = folder.join(&file);
    let noun = match role {
        Role::Produce => "producer",
        Role::Consume => "consumer",
    };
    let long = format!("{noun} {number} ({name})");
    let host = hosts.of(role);
    let is_there = host.is_some();
    let (driver, process) = match host {
        Some(host) => {
            let driver = host.driver(name, role.as_str())?;
            options.extend(["--output".into(), host.path(&file)]);
            let command = host.process(&title, &driver.run, role.as_str(), &options)?;
            let long = format!("{long} on `{}`", host.name());
            let process = Process::start_there(&long, command, &uri_for(bench, &driver))?;
            (driver, process)
        }
        None => {
            let driver = bench.found.named(name, role.as_str())?.clone();
            options.extend(["--output".into(), output.clone().into()]);
            let uri = uri_for(bench, &driver);
            let process = Process::start(&long, &driver.run, role.as_str(), &options, &uri)?;
            (driver, process)
        }
    };
    Ok(Member {
        driver,
        role,
        title,
        is_there,
        id: process.id(),
        process,
        output,
        samples: Vec::new(),
    })
}

/// The connection string that a driver is told.
fn uri_for<'a>(bench: &Bench<'a>, driver: &Driver) -> Cow<'a, str> {
    match bench.polls_heartbeats && driver.version.monitors {
        true => with_option(bench.uri, "serverMonitoringMode", "poll").into(),
        false => bench.uri.into(),
    }
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
    hosts: &'a mut Hosts,
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
                self.sample(now, until, others)?;
                let bytes = self.stamped_bytes(until);
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

    fn sample(
        &mut self,
        now: Duration,
        until: &mut [Member],
        others: &mut [Member],
    ) -> Result<(), TailError> {
        let at_s = now.as_secs_f64();
        let mut members: Vec<&mut Member> = until.iter_mut().chain(others).collect();
        let ids = |members: &[&mut Member], of: &dyn Fn(&Member) -> bool| -> Vec<u32> {
            let chosen = members.iter().filter(|member| of(member));
            chosen.map(|member| member.id).collect()
        };
        for role in [Role::Produce, Role::Consume] {
            let Some(host) = self.hosts.of(role) else {
                continue;
            };
            let there = |member: &Member| member.is_there && member.role == role;
            let found = host.sample(&ids(&members, &there), at_s)?;
            keep(members.iter_mut().filter(|member| there(member)), found);
        }
        let here = |member: &Member| !member.is_there;
        let own = ids(&members, &here);
        let all: Vec<u32> = own.iter().chain(self.bench.server).copied().collect();
        let mut found = sample(Path::new("/proc"), &all, at_s, self.units);
        let server = found.split_off(own.len());
        keep(members.iter_mut().filter(|member| here(member)), found);
        let server = server.into_iter().reduce(|sum, sample| Sample {
            at_s: sum.at_s,
            cpu_s: sum.cpu_s + sample.cpu_s,
            rss_bytes: sum.rss_bytes + sample.rss_bytes,
            threads: sum.threads + sample.threads,
            processes: sum.processes + sample.processes,
        });
        self.server.extend(server.filter(|sum| sum.processes > 0));
        Ok(())
    }

    /// What processes have stamped so far.
    fn stamped_bytes(&mut self, members: &[Member]) -> u64 {
        let here = members.iter().filter(|member| !member.is_there);
        let here = here.flat_map(|member| std::fs::metadata(&member.output));
        let here: u64 = here.map(|file| file.len()).sum();
        let role = members.first().map(|member| member.role);
        let there = role.and_then(|role| self.hosts.of(role).map(|host| host.stamped()));
        here + there.unwrap_or(0)
    }

    fn server(&self) -> Option<Resources> {
        let (first, last) = (self.server.first()?, self.server.last()?);
        Some(Resources {
            cpu_s: Some((last.cpu_s - first.cpu_s).max(0.0)),
            samples: self.server.clone(),
        })
    }
}

/// Gives each member its look, if it was there.
fn keep<'a, 'b: 'a>(members: impl Iterator<Item = &'a mut &'b mut Member>, found: Vec<Sample>) {
    for (member, sample) in members.zip(found) {
        if sample.processes > 0 {
            member.samples.push(sample);
        }
    }
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

/// Brings the stamps of a host to this one.
fn fetch(host: Option<&mut Host>, members: &[Member]) -> Result<(), TailError> {
    let Some(host) = host else { return Ok(()) };
    members
        .iter()
        .try_for_each(|member| host.fetch(&format!("{}.stamps", member.title), &member.output))
}

/// What brings stamps of a host to the clock of this one.
fn correction(host: Option<&mut Host>) -> Result<Option<Correction>, TailError> {
    host.map(Host::correction).transpose()
}

fn gather(
    bench: &Bench<'_>,
    settings: &Settings,
    hosts: &mut Hosts,
    mut producers: Vec<Member>,
    mut consumers: Vec<Member>,
    folder: &Path,
) -> Result<Measured, TailError> {
    let (mut produced, mut producer_sums) = (Vec::new(), Vec::new());
    let mut failures = Vec::new();
    let endings = producers.iter_mut().map(|member| ending(member, None));
    let endings = endings.collect::<Result<Vec<_>, _>>()?;
    let sent_by = correction(hosts.producers.as_mut())?;
    let received_by = match settings.producer_host == settings.consumer_host {
        // Both are of one clock.
        true => sent_by.clone(),
        false => correction(hosts.consumers.as_mut())?,
    };
    let here = |clock: &Option<Correction>, there_ns| match clock {
        Some(clock) => clock.to_here_ns(there_ns),
        None => there_ns,
    };
    let sent_here = |there_ns| here(&sent_by, there_ns);
    let received_here = |there_ns| here(&received_by, there_ns);
    fetch(hosts.producers.as_mut(), &producers)?;
    for (number, (member, ending)) in producers.iter().zip(endings).enumerate() {
        let wrong = sum_error(format!("producer {number} ({})", member.driver.name));
        let mut messages = Produced::new(settings.messages);
        for sent in Reader::<Sent>::open(&member.output)? {
            let sent = sent?.mapped(sent_here);
            messages.add(sent).map_err(&wrong)?;
        }
        let sum = sums::of_producer(&messages);
        let said = ending.done("messages").zip(ending.done("failed"));
        let (acknowledged, failed) =
            said.ok_or_else(|| wrong("its last line is not `done` with its sum".to_owned()))?;
        sums::producer_agrees(&sum, acknowledged, failed).map_err(&wrong)?;
        produced.push(messages);
        producer_sums.push(sum);
        failures.push(ending.failure());
    }
    let (mut had, mut consumer_records) = (Vec::new(), Vec::new());
    let mut receipts = Receipts::default();
    let endings = consumers
        .iter_mut()
        .map(|member| ending(member, Some(IDLE)));
    let endings = endings.collect::<Result<Vec<_>, _>>()?;
    fetch(hosts.consumers.as_mut(), &consumers)?;
    for (number, (member, ending)) in consumers.iter_mut().zip(endings).enumerate() {
        let wrong = sum_error(format!("consumer {number} ({})", member.driver.name));
        let mut consumed = Consumed::new(&produced, ending.done("workers").unwrap_or(1));
        for received in Reader::<Received>::open(&member.output)? {
            let mut received = received?;
            received.send_ns = sent_here(received.send_ns);
            received.received_ns = received_here(received.received_ns);
            consumed.add(&produced, received).map_err(&wrong)?;
            receipts.add(number, &received);
        }
        let sum = sums::of_consumer(&produced, &consumed);
        sums::consumer_agrees(&sum, &producer_sums, ending.done("messages")).map_err(&wrong)?;
        let blind = ending.blind();
        // What queries found while a cursor was blind is told with it.
        let by_blind: u64 = blind.iter().map(|cursor| cursor.found).sum();
        let caught_up = ending.done("caught_up");
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
            caught_up: caught_up.map(|count| count.saturating_sub(by_blind)),
            blind,
            duplicates_skipped: ending.done("duplicates_skipped"),
        });
        had.push(consumed);
    }
    let both = [
        (&hosts.producers, &sent_by, Role::Produce),
        (&hosts.consumers, &received_by, Role::Consume),
    ];
    let clocks = both.into_iter().filter_map(|(host, clock, role)| {
        let (host, clock) = host.as_ref().zip(clock.as_ref())?;
        Some(clock.record(host.name(), role.as_str()))
    });
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
            failure: failures[number].clone(),
            split: split::of_producer(&produced[number], settings.points),
            verdict: (bench.judge)(&course),
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
        clocks: clocks.collect(),
    })
}

fn record(driver: &Driver) -> DriverRecord {
    DriverRecord {
        name: driver.name.clone(),
        version: driver.version.clone(),
    }
}
