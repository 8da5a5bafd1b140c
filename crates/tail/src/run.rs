//! One experiment: makes the collection, starts all processes at one instant, waits for their end, and
//! gathers what they stamped.

mod bench;
mod gather;
mod member;
mod watch;

pub use bench::{Bench, Machines};

use crate::error::TailError;
use crate::messages::MOST_MESSAGES;
use crate::resources::Units;
use bson::doc;
use dyno_fleet::clock::{monotonic_ns, realtime_ns};
use dyno_load::connect::{Connector, Control};
use dyno_record::tail::{InFlight, Measured, Settings};
use gather::gather;
use member::{Hosts, Role, STOP_LIMIT, consumer_options, producer_options, start};
use std::path::Path;
use std::time::{Duration, Instant};
use watch::{Limit, Watch};

/// Longest time until a process is ready: a Java runtime beside others on few cores.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Longest time between two questions whether somebody interrupts.
const READY_STEP: Duration = Duration::from_millis(100);
/// From the word `start` to the start: every process has read it by then.
const START_DELAY: Duration = Duration::from_millis(200);
/// The same where other hosts are told.
const HOSTS_START_DELAY: Duration = Duration::from_secs(1);

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
    if let Some(machines) = bench.machines {
        hosts.look_at(machines);
    }
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
            "collection `{}.{}` already exists, and would be removed afterwards",
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
    let (now_ns, delay) = if settings.is_here() {
        (monotonic_ns(), START_DELAY)
    } else {
        (realtime_ns(), HOSTS_START_DELAY)
    };
    let at_ns = now_ns + delay.as_nanos() as i64;
    let began = Instant::now();
    for member in consumers.iter_mut().chain(&mut producers) {
        member
            .process
            .say_start(at_ns + ahead_ns[member.role as usize])?;
    }
    let metered = bench.meter.map(|meter| (meter, meter.start(began + delay)));
    let mut watch = Watch {
        bench,
        hosts,
        began,
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
    // Before anything is gathered, which is written to what may be the disk of the servers.
    let consumption = metered.and_then(|(meter, started)| meter.finish(started.end()));
    let mut measured = gather(bench, settings, hosts, producers, consumers, folder)?;
    for consumer in &mut measured.consumers {
        consumer.stopped = stopped && consumer.sum.lost > 0;
    }
    measured.server = server;
    measured.consumption = consumption;
    measured.interrupted = interrupted;
    Ok(measured)
}
