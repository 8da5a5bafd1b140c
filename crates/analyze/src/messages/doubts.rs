//! Reasons to doubt what follows from an experiment: clocks of hosts that are not known well enough, CPUs that were all busy,
//! programs that were not optimised or not there.

use super::across::{Line, label, named};
use super::record::{HostClock, Measured, TailDocument};
use crate::experiment::words::{list, number, percent, time};
use crate::experiment::{Finding, FindingKind};
use std::collections::BTreeSet;

/// A share of all CPUs from which messages wait for one, and of one CPU from which an event loop has no time left.
const BUSY_RATIO: f64 = 0.9;
/// Most CPUs that one event loop uses, with what its runtime does beside it.
const ONE_LOOP: f64 = 1.2;
/// Languages whose programs run one thing at a time in a process, by an event loop or a lock of the interpreter.
const ONE_AT_A_TIME: [&str; 3] = ["javascript", "python", "ruby"];
/// A part of the median delivery that the clocks may be off by without a word.
const CLOCK_RATIO: f64 = 0.1;

pub(super) fn of(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut found = clocks(document, lines);
    found.extend(machine(document));
    found.extend(loops(document, lines));
    found.extend(drivers(document, lines));
    found
}

/// Clocks of hosts that were set, or that are known too badly for these latencies.
fn clocks(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let (mut set, mut vague) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|line| line.number == 0) {
        let clocks = &line.measured.clocks;
        let name = named(document, line);
        let settings = &line.cell.settings;
        let is_one_clock = settings.producer_host == settings.consumer_host;
        let uncertainty_ns: u64 = clocks.iter().map(|clock| clock.uncertainty_ns).sum();
        let of = |clock: &HostClock| format!("{name}: `{}`", clock.host);
        set.extend(clocks.iter().filter(|clock| !clock.consistent).map(of));
        let median_ns = line
            .delivery()
            .map_or(0.0, |delivery| delivery.p50_us * 1e3);
        if !is_one_clock && uncertainty_ns as f64 > CLOCK_RATIO * median_ns {
            let uncertain = time(uncertainty_ns as f64 / 1e9);
            let median = time(median_ns / 1e9);
            vague.push(format!(
                "{name}: ± {uncertain}, and the median delivery is {median}"
            ));
        }
    }
    let warning = |text: &str, evidence: Vec<String>| {
        let is_there = !evidence.is_empty();
        is_there.then(|| Finding::new(FindingKind::Warning, text.to_owned(), evidence))
    };
    let was_set = "a clock was set during the run, or goes wrong by more than 50 millionths: deliveries between these hosts are \
                   not to be trusted";
    let is_vague = "the clocks of the hosts are not known well enough for these deliveries: `insert` is of one clock, and is";
    [warning(was_set, set), warning(is_vague, vague)]
        .into_iter()
        .flatten()
        .collect()
}

/// That all CPUs of this machine were busy, where everything ran on it.
fn machine(document: &TailDocument) -> Option<Finding> {
    let busy = document.cells.iter().filter_map(|cell| {
        let measured = cell.measured.as_ref().filter(|_| cell.settings.is_here())?;
        let share = used_s(measured)? / (looked_s(measured)? * document.cpus as f64);
        let name = label(document, cell);
        (share >= BUSY_RATIO).then(|| format!("`{name}`: {}", percent(share.min(1.0))))
    });
    let busy: Vec<String> = busy.collect();
    let text = "the CPUs of this machine were busy all the time: latency there includes waiting for a CPU, and what grows may be \
                that of any process on it";
    (!busy.is_empty()).then(|| Finding::new(FindingKind::Warning, text.to_owned(), busy))
}

/// CPU time of all processes of a cell; `None` if one is not known.
fn used_s(measured: &Measured) -> Option<f64> {
    let producers = measured
        .producers
        .iter()
        .map(|producer| &producer.resources);
    let consumers = measured
        .consumers
        .iter()
        .map(|consumer| &consumer.resources);
    let all = producers
        .chain(consumers)
        .chain([measured.server.as_ref()?]);
    all.map(|resources| resources.cpu_s).sum()
}

/// From the first look at the server to the last one, after the end of all others; `None` of less than a second.
fn looked_s(measured: &Measured) -> Option<f64> {
    let samples = &measured.server.as_ref()?.samples;
    let looked_s = samples.last()?.at_s - samples.first()?.at_s;
    (looked_s >= 1.0).then_some(looked_s)
}

/// From the start to the last acknowledged message.
fn wall_s(measured: &Measured) -> Option<f64> {
    let all = measured
        .producers
        .iter()
        .map(|producer| producer.course.rates.all_s);
    all.max_by(f64::total_cmp).filter(|wall_s| *wall_s > 0.0)
}

/// Producers that used one CPU, and can do no more if they have one event loop.
fn loops(document: &TailDocument, lines: &[Line<'_>]) -> Option<Finding> {
    let full = lines.iter().filter_map(|line| {
        let language = line.producer.driver.version.language.as_str();
        // Whoever waits for instants turns its loop meanwhile.
        if line.cell.settings.schedule.is_some() || !ONE_AT_A_TIME.contains(&language) {
            return None;
        }
        let cpus = line.producer.resources.cpu_s? / wall_s(line.measured)?;
        let is_full = document.cpus > 1 && (BUSY_RATIO..=ONE_LOOP).contains(&cpus);
        is_full.then(|| format!("{}: {} CPUs", named(document, line), number(cpus)))
    });
    let full: Vec<String> = full.collect();
    let text = "producers used about one CPU: one with a single event loop (Node.js, asyncio) or interpreter lock (Python, Ruby) \
                can do no more, whatever the server does";
    (!full.is_empty()).then(|| Finding::new(FindingKind::Warning, text.to_owned(), full))
}

/// Doubts about the drivers.
fn drivers(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    let drivers = lines.iter().map(|line| &line.producer.driver).chain(
        lines
            .iter()
            .flat_map(|line| line.measured.consumers.iter().map(|one| &one.driver)),
    );
    let unoptimised: BTreeSet<&str> = drivers
        .filter(|driver| {
            driver
                .version
                .build
                .as_deref()
                .is_some_and(|build| build != "release")
        })
        .map(|driver| driver.name.as_str())
        .collect();
    if !unoptimised.is_empty() {
        let names: Vec<String> = unoptimised.iter().map(|name| format!("`{name}`")).collect();
        found.push(Finding::new(
            FindingKind::Warning,
            format!(
                "{} is not an optimised build: run `make drivers`",
                list(&names)
            ),
            vec!["what it costs itself is larger than it has to be".to_owned()],
        ));
    }
    for skipped in &document.skipped {
        found.push(Finding::new(
            FindingKind::Warning,
            format!("`{}` is left out", skipped.name),
            vec![skipped.reason.clone()],
        ));
    }
    found
}
