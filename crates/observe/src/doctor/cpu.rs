//! Checks of the CPU: frequency, clock and other load.

use super::facts::Facts;
use super::finding::{Finding, by_hand, judged, unread, write_action, write_file};
use crate::host::{BOOST, NO_TURBO};
use dyno_record::verdict::{Change, Level};
use std::collections::BTreeSet;

pub(super) fn governor(facts: &Facts) -> Finding {
    let why =
        "a CPU that slows down when idle increases latencies at low load and makes runs differ";
    judged(&facts.governors, "`performance` on all CPUs", why, |governors| {
        let others: Vec<u64> = governors
            .iter()
            .filter(|(_, governor)| *governor != "performance")
            .map(|(cpu, _)| *cpu)
            .collect();
        let level = if others.is_empty() { Level::Pass } else { Level::Fail };
        let names: BTreeSet<String> = governors.values().map(|name| format!("`{name}`")).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let found = format!("{names} on {} CPUs", governors.len());
        (level, found, Some(performance_on(&others)))
    })
}

fn performance_on(cpus: &[u64]) -> Change {
    let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    Change {
        command: "sudo cpupower frequency-set -g performance".to_owned(),
        actions: cpus.iter().map(|cpu| write_action(&path(cpu), "performance")).collect(),
    }
}

/// The advice is our own: turbo is good for throughput and bad for comparisons, because its extent
/// depends on the temperature and on the other cores.
pub(super) fn turbo(facts: &Facts) -> Finding {
    let why = "how far the CPU exceeds its nominal frequency depends on heat and on the other cores, so equal runs differ";
    judged(&facts.turbo, "off for comparisons", why, |(allowed, file)| {
        let change = match *file {
            NO_TURBO => write_file(&format!("/{NO_TURBO}"), "1"),
            _ => write_file(&format!("/{BOOST}"), "0"),
        };
        let (level, found) = if *allowed { (Level::Warn, "on") } else { (Level::Pass, "off") };
        (level, found.to_owned(), Some(change))
    })
}

/// Devices that are read over a bus, taking a microsecond or more.
const BAD_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "pit"];
/// A slower reading goes through the kernel.
const SLOW_READ_NS: f64 = 100.0;

/// Clocks of hypervisors (`kvm-clock`, `xen`, `hyperv…`) are scaled readings of the CPU's counter
/// if the host allows it, and system calls otherwise. The cost of a reading shows which.
pub(super) fn clock_source(facts: &Facts) -> Finding {
    let why = "client and server read the clock several times per operation; a clock behind a bus costs a microsecond per reading";
    judged(
        &facts.clock_source,
        "`tsc`, or another clock that is read in less than 100 ns",
        why,
        |source| {
            let cost_ns = facts.clock_read_ns;
            let level = if BAD_CLOCKS.contains(&source.as_str()) {
                Level::Fail
            } else if cost_ns > SLOW_READ_NS {
                Level::Warn
            } else {
                Level::Pass
            };
            (level, format!("`{source}`, read in {cost_ns:.0} ns"), clock_change(facts, source))
        },
    )
}

fn clock_change(facts: &Facts, source: &str) -> Option<Change> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let offered = facts.clock_sources.as_ref().ok()?;
    if source != "tsc" && offered.iter().any(|offer| offer == "tsc") {
        return Some(write_file(path, "tsc"));
    }
    (source != "tsc")
        .then(|| by_hand("boot with `tsc=reliable clocksource=tsc` if the CPU's counter is stable"))
}

/// Share of the machine that other processes may use. A tenth is within the spread of usual runs.
const LOAD_WARN_RATIO: f64 = 0.1;
const LOAD_FAIL_RATIO: f64 = 0.3;
/// Number of processes to name.
const NAMED: usize = 3;

/// The current use of other processes decides. The load average and the pressure look back,
/// possibly at a run that has just ended, so they only warn.
pub(super) fn other_load(facts: &Facts) -> Finding {
    let why = "client and server lack the CPU time that others use, at unpredictable times";
    let advised = "an idle machine (below 10 % of the CPUs)";
    let cpus = match &facts.cpus {
        Ok(cpus) => (*cpus).max(1) as f64,
        Err(health) => return unread(health, advised, why),
    };
    let mut parts = Vec::new();
    let mut level = Level::Unknown;
    if let Ok(busy) = &facts.busy {
        let used = busy.iter().map(|process| process.cpu_ratio).sum::<f64>();
        level = level_of(used / cpus);
        let names: Vec<String> = busy
            .iter()
            .take(NAMED)
            .map(|process| format!("{} ({}) {:.2}", process.name, process.pid, process.cpu_ratio))
            .collect();
        let names =
            if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        parts.push(format!("others use {used:.2} of {cpus} CPUs{names}"));
    }
    let mut past = |ratio: f64, text: String| {
        parts.push(text);
        let only_word = level == Level::Unknown;
        let past = level_of(ratio).min(Level::Warn);
        level = if only_word { past } else { level.max(past) };
    };
    if let Ok(load) = facts.load_average {
        past(load / cpus, format!("load average {load}"));
    }
    if let Ok(percent) = facts.cpu_pressure_percent {
        past(percent / 100.0, format!("a task waits for a CPU {percent} % of the time"));
    }
    if parts.is_empty() {
        parts.push("unknown: no reading succeeded".to_owned());
    }
    Finding::new(level, parts.join("; "), advised, why)
        .with_change(Some(by_hand("stop the other processes, or wait until they end")))
}

/// How much others may use of the machine, as a share of its CPUs.
pub fn level_of(ratio: f64) -> Level {
    match ratio {
        _ if ratio > LOAD_FAIL_RATIO => Level::Fail,
        _ if ratio > LOAD_WARN_RATIO => Level::Warn,
        _ => Level::Pass,
    }
}

/// Compares the affinity of both processes. Does not look at threads that are pinned individually.
pub(super) fn shared_cores(facts: &Facts) -> Finding {
    let why = "a client that takes CPU time from the server measures itself";
    let advised = "no shared CPUs";
    if facts.server_is_elsewhere() {
        return Finding::new(Level::Pass, "the server is on another machine", advised, why);
    }
    let (client, server) = match (&facts.client_cpus, &facts.server_cpus) {
        (Ok(client), Ok(server)) => (client, server),
        (Err(health), _) | (_, Err(health)) => return unread(health, advised, why),
    };
    let shared = client.iter().filter(|cpu| server.contains(cpu)).count();
    let level = match shared {
        0 => Level::Pass,
        // Only one of them can run at a time.
        _ if client.len() == 1 && server.len() == 1 => Level::Fail,
        _ => Level::Warn,
    };
    let found = format!(
        "{shared} shared, of {} of the client and {} of the server",
        client.len(),
        server.len()
    );
    Finding::new(level, found, advised, why)
        .with_change(Some(by_hand("give each its own CPUs with `taskset -c`, or use two machines")))
}
