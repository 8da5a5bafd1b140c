//! Gathers the stamps of an experiment's processes.

use super::member::{Hosts, Member, Role, STOP_LIMIT, schedule_path};
use crate::driver::Driver;
use crate::error::TailError;
use crate::host::{Correction, Host};
use crate::messages::{Consumed, Produced};
use crate::process::Ending;
use crate::stamps::{Received, Sent};
use crate::tables::Receipts;
use crate::timeline::{Asked, timeline};
use crate::{split, stamps, sums, tables};
use dyno_analyze::messages::judge;
use dyno_record::tail::{
    ConsumerRecord, ConsumerSum, DriverRecord, HostClock, Measured, ProducerRecord, ProducerSum,
    QueuePlace, Settings,
};
use std::path::Path;

/// Exit code of an idle consumer.
const IDLE: i32 = 5;

/// Corrections of both sides to this host's clock; `None` for stamps of this host.
struct Clocks {
    producers: Option<Correction>,
    consumers: Option<Correction>,
}

impl Clocks {
    fn read(hosts: &mut Hosts, settings: &Settings) -> Result<Clocks, TailError> {
        let producers = correction(hosts.producers.as_mut())?;
        let consumers = if settings.producer_host == settings.consumer_host {
            // Both are on the same host.
            producers.clone()
        } else {
            correction(hosts.consumers.as_mut())?
        };
        Ok(Clocks { producers, consumers })
    }

    fn records(&self, hosts: &Hosts) -> Vec<HostClock> {
        let both = [
            (&hosts.producers, &self.producers, Role::Produce),
            (&hosts.consumers, &self.consumers, Role::Consume),
        ];
        let records = both.into_iter().filter_map(|(host, clock, role)| {
            let (host, clock) = host.as_ref().zip(clock.as_ref())?;
            Some(clock.record(host.name(), role.as_str()))
        });
        records.collect()
    }
}

/// Converts an instant of a stamp to this host's clock.
fn to_here_ns(clock: &Option<Correction>, there_ns: i64) -> i64 {
    clock.as_ref().map_or(there_ns, |clock| clock.to_here_ns(there_ns))
}

/// Correction of a host's stamps.
fn correction(host: Option<&mut Host>) -> Result<Option<Correction>, TailError> {
    host.map(Host::correction).transpose()
}

/// Fetches a host's stamp files.
fn fetch(host: Option<&mut Host>, members: &[Member]) -> Result<(), TailError> {
    let Some(host) = host else { return Ok(()) };
    members
        .iter()
        .try_for_each(|member| host.fetch(&format!("{}.stamps", member.title), &member.output))
}

/// Ends a member; exit codes other than 0 and `allowed` are errors.
fn ending(member: &mut Member, allowed: Option<i32>) -> Result<Ending, TailError> {
    let ending = member.process.wait(STOP_LIMIT)?;
    if ending.code == Some(0) || (ending.code.is_some() && ending.code == allowed) {
        Ok(ending)
    } else {
        Err(member.process.ended_with(&ending))
    }
}

fn sum_error(who: String) -> impl Fn(String) -> TailError {
    move |reason| TailError::Sum(format!("{who}: {reason}"))
}

fn record(driver: &Driver) -> DriverRecord {
    DriverRecord { name: driver.name.clone(), version: driver.version.clone() }
}

pub(super) fn gather(
    settings: &Settings,
    hosts: &mut Hosts,
    mut producers: Vec<Member>,
    mut consumers: Vec<Member>,
    folder: &Path,
) -> Result<Measured, TailError> {
    let endings = producers.iter_mut().map(|member| ending(member, None));
    let endings = endings.collect::<Result<Vec<_>, _>>()?;
    let clocks = Clocks::read(hosts, settings)?;
    fetch(hosts.producers.as_mut(), &producers)?;
    let mut sent = Vec::new();
    for (number, (member, ending)) in producers.iter().zip(&endings).enumerate() {
        sent.push(read_producer(settings, &clocks, number, member, ending)?);
    }
    let (produced, producer_sums): (Vec<_>, Vec<_>) = sent.into_iter().unzip();
    let ended = consumers.iter_mut();
    let ended = ended.map(|member| ending(member, Some(IDLE)));
    let ended = ended.collect::<Result<Vec<_>, _>>()?;
    fetch(hosts.consumers.as_mut(), &consumers)?;
    let mut receipts = Receipts::default();
    let (mut had, mut consumer_records) = (Vec::new(), Vec::new());
    for (number, (member, ending)) in consumers.iter_mut().zip(&ended).enumerate() {
        let wrong = sum_error(format!("consumer {number} ({})", member.driver.name));
        let mut consumed = Consumed::new(&produced, ending.done("workers").unwrap_or(1));
        stamps::read(&member.output, |mut received: Received| {
            received.send_ns = to_here_ns(&clocks.producers, received.send_ns);
            received.received_ns = to_here_ns(&clocks.consumers, received.received_ns);
            receipts.add(number, &received);
            consumed.add(&produced, received).map_err(&wrong)
        })?;
        let sum = sums::of_consumer(&produced, &consumed);
        sums::consumer_agrees(&sum, &producer_sums, ending.done("messages")).map_err(&wrong)?;
        consumer_records.push(consumer_record(settings, &produced, &consumed, sum, member, ending));
        had.push(consumed);
    }
    let records = producers.iter_mut().zip(producer_sums).zip(&endings).enumerate();
    let records = records.map(|(number, ((member, sum), ending))| {
        let timeline = timeline(&produced, number, had.first(), asked(settings, &member.driver));
        ProducerRecord {
            driver: record(&member.driver),
            sum,
            failure: ending.failure(),
            split: split::of_producer(&produced[number], settings.points),
            verdict: judge(&timeline),
            timeline,
            resources: member.resources(),
        }
    });
    let records = records.collect();
    tables::write(folder, &produced, receipts)?;
    // The tables contain everything.
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
        consumption: None,
        interrupted: false,
        clocks: clocks.records(hosts),
    })
}

/// Reads a producer's stamps, and compares them with its own counts.
fn read_producer(
    settings: &Settings,
    clocks: &Clocks,
    number: usize,
    member: &Member,
    ending: &Ending,
) -> Result<(Produced, ProducerSum), TailError> {
    let wrong = sum_error(format!("producer {number} ({})", member.driver.name));
    let mut messages = Produced::new(settings.messages);
    stamps::read(&member.output, |sent: Sent| {
        let sent = sent.mapped(|there_ns| to_here_ns(&clocks.producers, there_ns));
        messages.add(sent).map_err(&wrong)
    })?;
    let sum = sums::of_producer(&messages);
    let said = ending.done("messages").zip(ending.done("failed"));
    let (acknowledged, failed) =
        said.ok_or_else(|| wrong("the last line is not `done` with a sum".to_owned()))?;
    sums::producer_agrees(&sum, acknowledged, failed).map_err(&wrong)?;
    Ok((messages, sum))
}

/// A producer's settings.
fn asked(settings: &Settings, driver: &Driver) -> Asked {
    let schedule = settings.schedule;
    Asked {
        in_flight: settings.in_flight,
        place: match driver.version.unbounded.as_deref() {
            Some("program") => QueuePlace::Program,
            _ => QueuePlace::Driver,
        },
        pool: driver.version.pool.then_some(settings.pool),
        offered_per_s: schedule.map(|all| all.rate_per_s / settings.producers.len() as f64),
    }
}

fn consumer_record(
    settings: &Settings,
    produced: &[Produced],
    consumed: &Consumed,
    sum: ConsumerSum,
    member: &mut Member,
    ending: &Ending,
) -> ConsumerRecord {
    let blind = ending.blind();
    // Messages found by queries while a cursor was blind are reported with the cursor.
    let by_blind: u64 = blind.iter().map(|cursor| cursor.found).sum();
    let caught_up = ending.done("caught_up");
    let deliveries = (0..produced.len())
        .map(|producer| split::of_delivery(produced, producer, consumed, settings.points));
    ConsumerRecord {
        driver: record(&member.driver),
        sum,
        deliveries: deliveries.collect(),
        resources: member.resources(),
        received_per_s: consumed.received_per_s(produced),
        idle: ending.code == Some(IDLE),
        stopped: false,
        reopened: ending.done("reopened"),
        reopened_empty: ending.done("reopened_empty"),
        position_lost: ending.done("position_lost"),
        caught_up: caught_up.map(|count| count.saturating_sub(by_blind)),
        blind,
        duplicates_skipped: ending.done("duplicates_skipped"),
    }
}
