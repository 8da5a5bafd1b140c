//! Counters that a server reports about itself, wherever it runs: `getrusage(2)`, connections,
//! cache and journal. Source: `serverStatus` in the MongoDB manual; WiredTiger's names in its
//! `stat_data.py`.

use super::known::Known;
use crate::watch::{Ask, AskError, Fields};
use bson::{Document, doc};
use dyno_record::consumption::NetworkUse;

/// Counters of one server; absent if it does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerCounters {
    cpu_us: Option<u64>,
    switches: Option<u64>,
    received_bytes: Option<u64>,
    sent_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    dirty_bytes: Option<u64>,
    cache_misses: Option<u64>,
    journal_sync_us: Option<u64>,
}

/// Asks a server for its counters.
///
/// # Errors
/// Why it does not answer.
pub fn server_counters(ask: &mut dyn Ask) -> Known<ServerCounters> {
    // Exclude large sections that are not used.
    let command = doc! { "serverStatus": 1, "metrics": 0, "locks": 0, "repl": 0, "tcmalloc": 0, "opLatencies": 0 };
    let answer = ask.ask("admin", command).map_err(|error| why(&error))?;
    Ok(ServerCounters::of(&answer))
}

/// Asks a server to write all changed data to its files, and the files to the device.
///
/// # Errors
/// Why it did not.
pub fn write_back(ask: &mut dyn Ask) -> Known<()> {
    let answer = ask.ask("admin", doc! { "fsync": 1 });
    answer.map(drop).map_err(|error| why(&error))
}

fn why(error: &AskError) -> String {
    error.to_string()
}

impl ServerCounters {
    fn of(answer: &Document) -> Self {
        let number = |path: &str| {
            let number = answer.number(path).filter(|number| *number >= 0.0);
            number.map(|number| number as u64)
        };
        let usage = |name: &str| number(&format!("extra_info.{name}"));
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        ServerCounters {
            cpu_us: sum(usage("user_time_us"), usage("system_time_us")),
            switches: sum(
                usage("voluntary_context_switches"),
                usage("involuntary_context_switches"),
            ),
            received_bytes: number("network.bytesIn"),
            sent_bytes: number("network.bytesOut"),
            resident_bytes: number("mem.resident").map(|mib| mib << 20),
            peak_bytes: usage("maximum_resident_set_kb").map(|kib| kib << 10),
            dirty_bytes: number("wiredTiger.cache.tracked dirty bytes in the cache"),
            cache_misses: number("wiredTiger.cache.pages read into cache"),
            journal_sync_us: number("wiredTiger.log.log sync time duration (usecs)"),
        }
    }
}

/// Whether each server counts its context switches.
pub(super) fn tell_switches(servers: &[Known<ServerCounters>]) -> bool {
    let tells = |server: &Known<ServerCounters>| {
        server.as_ref().is_ok_and(|server| server.switches.is_some())
    };
    !servers.is_empty() && servers.iter().all(tells)
}

/// Growth of the counters, summed over all servers.
#[derive(Debug)]
pub(super) struct ServerGrowth {
    pub(super) cpu_s: Option<f64>,
    pub(super) switches: Option<u64>,
    pub(super) network: Option<NetworkUse>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) peak_bytes: Option<u64>,
    pub(super) cache_misses: Option<u64>,
    pub(super) journal_sync_s: Option<f64>,
}

/// Selects one of the counters.
type Counter = fn(&ServerCounters) -> Option<u64>;

pub(super) fn growth(
    first: &[Known<ServerCounters>],
    last: &[Known<ServerCounters>],
) -> Known<ServerGrowth> {
    let all = |servers: &[Known<ServerCounters>]| -> Known<Vec<ServerCounters>> {
        servers.iter().cloned().collect()
    };
    let (first, last) = (all(first)?, all(last)?);
    if first.is_empty() || first.len() != last.len() {
        return Err("no server was asked".to_owned());
    }
    let by = |counter: Counter| -> Option<u64> {
        // A counter that decreased belongs to another process.
        first
            .iter()
            .zip(&last)
            .map(|(first, last)| counter(last)?.checked_sub(counter(first)?))
            .sum()
    };
    let now = |counter: Counter| -> Option<u64> { last.iter().map(counter).sum() };
    let seconds = |counter: Counter| by(counter).map(|us| us as f64 / 1e6);
    let received_bytes = by(|server| server.received_bytes);
    let sent_bytes = by(|server| server.sent_bytes);
    Ok(ServerGrowth {
        cpu_s: seconds(|server| server.cpu_us),
        switches: by(|server| server.switches),
        network: received_bytes
            .zip(sent_bytes)
            .map(|(received_bytes, sent_bytes)| NetworkUse { received_bytes, sent_bytes }),
        resident_bytes: now(|server| server.resident_bytes),
        peak_bytes: now(|server| server.peak_bytes),
        cache_misses: by(|server| server.cache_misses),
        journal_sync_s: seconds(|server| server.journal_sync_us),
    })
}

/// Changed data in the caches of all servers; absent unless every server reports it.
pub(super) fn dirty_bytes(servers: &[Known<ServerCounters>]) -> Option<u64> {
    let known = |server: &Known<ServerCounters>| server.as_ref().ok()?.dirty_bytes;
    let sum: Option<u64> = servers.iter().map(known).sum();
    sum.filter(|_| !servers.is_empty())
}
