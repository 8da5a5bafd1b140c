//! One experiment: creates the collection, starts all processes at one instant, waits for their end, and gathers their stamps.

mod bench;
mod gather;
mod member;
mod watch;

pub use bench::{Bench, Machines};

use crate::error::TailError;
use crate::resources::Units;
use bson::doc;
use dyno_fleet::clock::{monotonic_ns, realtime_ns};
use dyno_load::connect::{Connector, Control};
use dyno_record::tail::{Measured, Settings};
use gather::gather;
use member::{Hosts, Role, STOP_LIMIT, consumer_options, producer_options, start};
use std::path::Path;
use std::time::{Duration, Instant};
use watch::{Limit, Watch};

/// Longest time until a process is ready, such as a Java runtime among others on few cores.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// Interval of the checks for interruption.
const READY_STEP: Duration = Duration::from_millis(100);
/// Delay from the `start` message to the start, in which every process reads the message.
const START_DELAY: Duration = Duration::from_millis(200);
/// Start delay with other hosts.
const HOSTS_START_DELAY: Duration = Duration::from_secs(1);

/// Runs an experiment. `folder` must exist, and receives the tables of messages; see [`dyno_record::messages`]. The processes end
/// with the calling thread.
///
/// # Errors
/// [`TailError`]; then nothing is running, and a created collection is removed. Stamp files stay in the folder.
pub fn run(bench: &Bench<'_>, settings: &Settings, folder: &Path) -> Result<Measured, TailError> {
    let (target, credentials) = dyno_plan::uri::parse(bench.uri)?;
    let mut hosts = Hosts::open(bench, settings)?;
    if let Some(machines) = bench.machines {
        hosts.producers.iter().chain(&hosts.consumers).for_each(|host| machines.look_at(host));
    }
    let connector = Connector::new(&target, credentials)?;
    let mut control = connector.control()?;
    let capped = i64::try_from(settings.capped_bytes).unwrap_or(i64::MAX);
    // Refuse an existing collection. The server would refuse to create it only if its options differed.
    let filter = doc! { "name": &settings.collection };
    let there = doc! { "listCollections": 1, "filter": filter, "nameOnly": true };
    let there = control.run(&settings.database, there)?;
    let first = there.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    if first.is_ok_and(|first| !first.is_empty()) {
        return Err(TailError::Settings(format!(
            "collection `{}.{}` already exists, and would be removed at the end",
            settings.database, settings.collection
        )));
    }
    let create = doc! { "create": &settings.collection, "capped": true, "size": capped };
    control.run(&settings.database, create)?;
    let result = with_collection(bench, &mut hosts, settings, folder);
    // A producer that still ran would create the collection again, and not a capped one.
    drop(hosts);
    if !remove(&mut control, settings) {
        // The server may have restarted. The result is valid with or without its answer.
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
    // Processes on other hosts start one after the other.
    let asked = Instant::now();
    for member in consumers.iter_mut().chain(&mut producers) {
        // Wait in small steps, so that an interruption takes effect.
        while !member.process.is_ready(READY_STEP)? {
            if (bench.interrupted)() {
                return Err(TailError::Interrupted);
            }
            if asked.elapsed() > READY_LIMIT {
                return Err(member.process.late("was not ready", READY_LIMIT));
            }
        }
        if let Some(host) = hosts.of(member.role) {
            member.id = host.process_id(&member.title)?;
        }
    }
    // Know each host's offset before sending the start.
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
        member.process.say_start(at_ns + ahead_ns[member.role as usize])?;
    }
    let metered = bench.meter.map(|meter| (meter, meter.start(began + delay)));
    let mut watch =
        Watch { bench, hosts, began, units: Units::read(), server: Vec::new(), interrupted: false };
    let limit = Duration::from_secs(settings.limit_s);
    let most = Limit { at: limit, quiet: Duration::MAX };
    watch.until(most, &mut producers, &mut consumers)?;
    // A consumer that misses messages ends when idle; a slow one gets as much time again as the producers.
    let quiet = Duration::from_secs(settings.idle_s)
        + 2 * Duration::from_micros(settings.delay_us)
        + STOP_LIMIT;
    let most = Limit { at: watch.began.elapsed() + limit, quiet };
    let stopped = watch.until(most, &mut consumers, &mut [])?;
    let (server, interrupted) = (watch.server(), watch.interrupted);
    // Before gathering, which may write to the servers' disk.
    let consumption = metered.and_then(|(meter, started)| meter.finish(started.end()));
    let mut measured = gather(settings, hosts, producers, consumers, folder)?;
    for consumer in &mut measured.consumers {
        consumer.stopped = stopped && consumer.sum.lost > 0;
    }
    measured.server = server;
    measured.consumption = consumption;
    measured.interrupted = interrupted;
    Ok(measured)
}
