//! Caveats of a messaging experiment: inaccurate clocks of hosts, busy CPUs, programs without optimisation, and
//! missing programs.

use super::lines::{Line, label, named};
use crate::values::{number, percent, time, us};
use dyno_record::experiment::Finding;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{Cause, HostClock, Measured, TailDocument};
use std::collections::BTreeSet;

/// Utilization of all CPUs from which messages wait for one, and of one CPU from which an event loop has no
/// spare time.
const BUSY_RATIO: f64 = 0.9;
/// Most CPUs that one event loop uses, including background work of its runtime.
const ONE_LOOP: f64 = 1.2;
/// Languages with one thread of execution per process, because of an event loop or an interpreter lock.
const ONE_AT_A_TIME: [&str; 3] = ["javascript", "python", "ruby"];
/// Largest clock error that is not reported, as a share of the median delivery.
const CLOCK_RATIO: f64 = 0.1;

pub(super) fn caveats(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut found = clocks(document, lines);
    found.extend(machine(document));
    found.extend(loops(document, lines));
    found.extend(drivers(document, lines));
    found.extend(not_watched(lines));
    found
}

/// Clocks of hosts that were set, or that are too inaccurate for these latencies.
fn clocks(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let (mut set, mut vague) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|line| line.number == 0) {
        let clocks = &line.measured.clocks;
        let name = named(document, line);
        let settings = &line.cell.settings;
        let is_one_clock = settings.producer_host == settings.consumer_host;
        let uncertainty_ns: u64 = clocks.iter().map(|clock| clock.uncertainty_ns).sum();
        let of = |clock: &HostClock| {
            statement!(
                "clock-of",
                who = &name,
                host = &clock.host,
                start = time(clock.offset_start_ns as f64 / 1e9),
                end = time(clock.offset_end_ns as f64 / 1e9)
            )
        };
        set.extend(clocks.iter().filter(|clock| !clock.consistent).map(of));
        let Some(delivery) = line.delivery().filter(|_| !is_one_clock) else {
            continue;
        };
        let uncertainty_us = uncertainty_ns as f64 / 1e3;
        if uncertainty_us > CLOCK_RATIO * delivery.p50_us {
            vague.push(statement!(
                "clocks-uncertain-by",
                who = name,
                uncertainty = us(uncertainty_us),
                median = us(delivery.p50_us)
            ));
        }
    }
    let (set, vague) = (warning("clock-set", set), warning("clocks-not-known-well", vague));
    set.into_iter().chain(vague).collect()
}

/// A warning, if anything supports it.
fn warning(code: &str, evidence: Vec<Statement>) -> Option<Finding> {
    (!evidence.is_empty()).then(|| Finding::warning(statement!(code), evidence))
}

/// Whether all CPUs of this machine were busy, if everything ran on it.
fn machine(document: &TailDocument) -> Option<Finding> {
    let busy = document.cells.iter().filter_map(|cell| {
        let measured = cell.measured.as_ref().filter(|_| cell.settings.is_here())?;
        let share = used_s(measured)? / (looked_s(measured)? * document.cpus as f64);
        let name = label(document, cell);
        let share_reported = percent(share.min(1.0));
        (share >= BUSY_RATIO)
            .then(|| statement!("cpus-busy-in-cell", cell = name, share = share_reported))
    });
    warning("machine-busy", busy.collect())
}

/// CPU time of all processes of a cell; `None` if any is unknown.
fn used_s(measured: &Measured) -> Option<f64> {
    let producers = measured.producers.iter().map(|producer| &producer.resources);
    let consumers = measured.consumers.iter().map(|consumer| &consumer.resources);
    let all = producers.chain(consumers).chain([measured.server.as_ref()?]);
    all.map(|resources| resources.cpu_s).sum()
}

/// Time between the first and the last reading of the server, the latter after the end of all others; `None`
/// below a second.
fn looked_s(measured: &Measured) -> Option<f64> {
    let samples = &measured.server.as_ref()?.samples;
    let looked_s = samples.last()?.at_s - samples.first()?.at_s;
    (looked_s >= 1.0).then_some(looked_s)
}

/// Time from the start to the last acknowledged message.
fn wall_s(measured: &Measured) -> Option<f64> {
    let all = measured.producers.iter().map(|producer| producer.timeline.rates.all_s);
    all.max_by(f64::total_cmp).filter(|wall_s| *wall_s > 0.0)
}

/// Producers that used one CPU, which is their limit if they have one event loop.
fn loops(document: &TailDocument, lines: &[Line<'_>]) -> Option<Finding> {
    let full = lines.iter().filter_map(|line| {
        let language = line.producer.driver.version.language.as_str();
        // A program that waits for start times keeps its loop turning.
        if line.cell.settings.schedule.is_some() || !ONE_AT_A_TIME.contains(&language) {
            return None;
        }
        let cpus = line.producer.resources.cpu_s? / wall_s(line.measured)?;
        let is_full = document.cpus > 1 && (BUSY_RATIO..=ONE_LOOP).contains(&cpus);
        let who = named(document, line);
        is_full.then(|| statement!("cpus-of-producer", who = who, cpus = number(cpus)))
    });
    warning("one-cpu-producers", full.collect())
}

/// Caveats about the drivers.
fn drivers(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    let drivers = lines
        .iter()
        .map(|line| &line.producer.driver)
        .chain(lines.iter().flat_map(|line| line.measured.consumers.iter().map(|one| &one.driver)));
    let builds = drivers.filter_map(|driver| {
        let build = driver.version.build.as_deref()?;
        (build != "release").then_some((driver.name.as_str(), build))
    });
    let builds: BTreeSet<(&str, &str)> = builds.collect();
    if !builds.is_empty() {
        let names: Vec<&str> = builds.iter().map(|(name, _)| *name).collect();
        let of = |(name, build): &(&str, &str)| {
            statement!("build-of-driver", driver = *name, build = *build)
        };
        found.push(Finding::warning(
            statement!("drivers-not-optimised", drivers = names),
            builds.iter().map(of).collect(),
        ));
    }
    for skipped in &document.skipped {
        found.push(Finding::warning(
            statement!("driver-left-out", driver = &skipped.name),
            vec![statement!("because", reason = &skipped.reason)],
        ));
    }
    found
}

/// Whether a producer, or its cell, does not have a figure.
type Lacks = fn(&Line<'_>) -> bool;

/// Figures that the rules use, by their codes.
const ASKED: [(&str, Lacks); 4] = [
    ("clock-differences", |line| {
        let settings = &line.cell.settings;
        settings.producer_host != settings.consumer_host && line.measured.clocks.is_empty()
    }),
    ("cpu-time-of-processes", |line| {
        let of_all = used_s(line.measured).zip(looked_s(line.measured));
        let lacks_all = line.cell.settings.is_here() && of_all.is_none();
        lacks_all || line.producer.resources.cpu_s.is_none()
    }),
    ("cursor-events", |line| {
        line.measured
            .consumers
            .iter()
            .any(|one| [one.reopened, one.position_lost, one.caught_up].contains(&None))
    }),
    ("latency-trend", |line| line.producer.verdict.cause == Cause::TooFew),
];

/// The figures that were not watched.
fn not_watched(lines: &[Line<'_>]) -> Option<Finding> {
    let (mut figures, mut evidence) = (Vec::new(), Vec::new());
    for (figure, lacks) in ASKED {
        let producers = lines.iter().filter(|line| lacks(line)).count();
        if producers > 0 {
            figures.push(Statement::new(figure));
            evidence.push(statement!(
                "producers-without-figure",
                figure = Statement::new(figure),
                producers = producers,
                all = lines.len()
            ));
        }
    }
    let said = statement!("not-watched", figures = figures);
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}
