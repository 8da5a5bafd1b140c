//! Findings over all cells of an experiment: growing latencies and their causes, whether the bound on inserts
//! in flight or the driver is the cause, whether the pool size matters, and events during the run.

use super::caveats;
use super::describe::duration;
use super::lines::{Line, bound, combination, label, lines, named};
use super::repeated;
use crate::grouping::{distinct, grouped};
use crate::values::{exact, number, rate, time, times, us};
use dyno_record::document::variant_name;
use dyno_record::experiment::Finding;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{Cause, Cell, CellStatus, InFlight, Point, QueuePlace, TailDocument};
use std::collections::BTreeSet;

/// Ratio up to which medians and rates of single measurements differ without a cause.
const SAME_RATIO: f64 = 1.5;

/// Findings of an experiment, the most important first.
pub fn findings(document: &TailDocument) -> Vec<Finding> {
    let lines = lines(document);
    let mut found = failures(document);
    found.extend(riddle(document, &lines));
    found.extend(growing(document, &lines));
    found.extend(stationary(document, &lines));
    let whole: Vec<Line<'_>> = lines.iter().filter(|line| line.is_whole()).copied().collect();
    if repeated::is_repeated(document) {
        found.extend(repeated::findings(document));
    } else {
        found.extend(pools(&whole));
    }
    found.extend(events(document));
    found.extend(caveats::caveats(document, &lines));
    found
}

fn failures(document: &TailDocument) -> Vec<Finding> {
    let failed = document.cells.iter().filter(|cell| cell.status == CellStatus::Failed);
    let reported = failed.map(|cell| {
        Finding::warning(
            statement!("cell-failed", cell = label(document, cell), reason = cell.reason.as_ref()),
            vec![sums(cell)],
        )
    });
    reported.collect()
}

fn sums(cell: &Cell) -> Statement {
    let Some(measured) = &cell.measured else {
        return statement!("nothing-measured", messages = cell.settings.messages);
    };
    let acknowledged: u64 = measured.producers.iter().map(|one| one.sum.acknowledged).sum();
    let consumers = measured.consumers.iter().map(|consumer| {
        let sum = consumer.sum;
        statement!("consumer-sum", received = sum.received, lost = sum.lost, twice = sum.duplicated)
    });
    statement!(
        "sums",
        acknowledged = acknowledged,
        consumers = consumers.collect::<Vec<Statement>>()
    )
}

/// Whether growth depends on the bound on inserts in flight or on the driver.
fn riddle(document: &TailDocument, lines: &[Line<'_>]) -> Option<Finding> {
    let is_unbounded = |line: &&Line<'_>| line.cell.settings.in_flight == InFlight::Unbounded;
    let judged: Vec<&Line<'_>> = lines
        .iter()
        .filter(|line| line.is_whole() && line.producer.verdict.cause != Cause::TooFew)
        .collect();
    let (unbounded, bounded): (Vec<&Line<'_>>, Vec<&Line<'_>>) =
        judged.into_iter().partition(is_unbounded);
    if unbounded.is_empty() || bounded.is_empty() {
        return None;
    }
    // Producers that grow for another reason are listed individually, and prove nothing about the bound.
    let queues = |line: &&&Line<'_>| line.producer.verdict.cause == Cause::UnboundedInFlight;
    let grow = unbounded.iter().filter(queues).count();
    let others: Vec<Statement> =
        bounded.iter().filter(|line| line.grows()).map(|line| named(document, line)).collect();
    if 2 * grow <= unbounded.len() {
        return None;
    }
    let drivers: BTreeSet<&str> =
        unbounded.iter().map(|line| line.producer.driver.name.as_str()).collect();
    let said = statement!(
        "missing-bound-is-the-cause",
        drivers = drivers.len(),
        growing = grow,
        unbounded = unbounded.len(),
        all_grow = grow == unbounded.len(),
        bounded = bounded.len(),
        others_number = others.len(),
        others = others
    );
    let evidence = unbounded.iter().chain(&bounded).map(|line| {
        let place = match line.cell.settings.in_flight {
            InFlight::Unbounded => match line.producer.timeline.place {
                QueuePlace::Driver => Some("driver"),
                QueuePlace::Program => Some("program"),
            },
            InFlight::Bounded(_) => None,
        };
        let half = |part: &[Point]| {
            let mut values: Vec<f64> = part
                .iter()
                .map(|point| point.total_ns.unwrap_or(point.wait_ns + point.acknowledged_ns))
                .collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let points = &line.producer.timeline.points;
        let (first, last) = points.split_at(points.len() / 2);
        statement!(
            "medians-of-halves",
            who = named(document, line),
            first = duration(half(first)),
            second = duration(half(last)),
            place = place
        )
    });
    Some(Finding::found(said, evidence.collect()))
}

fn growing(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let growing = lines.iter().filter(|line| line.grows());
    let (repeated, alone): (Vec<&Line<'_>>, Vec<&Line<'_>>) =
        growing.partition(|line| line.cell.repetition.is_some());
    let reported = alone.into_iter().map(|line| {
        let verdict = &line.producer.verdict;
        let trends = verdict.trends.iter().map(|part| {
            statement!(
                "trend-of-part",
                part = variant_name(&part.part),
                median = duration(part.trend.median),
                change = duration(part.trend.change),
                tau = number(part.trend.tau_ratio),
                p = number(part.trend.p_ratio)
            )
        });
        Finding::found(judged(document, line), trends.collect())
    });
    reported.chain(growing_again(document, lines, &repeated)).collect()
}

/// The finding for repetitions, combined for each combination.
fn growing_again(
    document: &TailDocument,
    lines: &[Line<'_>],
    growing: &[&Line<'_>],
) -> Vec<Finding> {
    let is_first = |place: usize| !growing[..place].iter().any(|it| it.repeats(growing[place]));
    let firsts = (0..growing.len()).filter(|place| is_first(*place));
    let reported = firsts.map(|place| {
        let first = growing[place];
        let same = growing.iter().filter(|line| line.repeats(first));
        let all = lines.iter().filter(|line| line.repeats(first));
        Finding::found(
            statement!(
                "grows-in-repetitions",
                cell = combination(document, first.cell),
                growing = same.clone().count(),
                all = all.count()
            ),
            same.map(|line| judged(document, line)).collect(),
        )
    });
    reported.collect()
}

fn judged(document: &TailDocument, line: &Line<'_>) -> Statement {
    let verdict = &line.producer.verdict.statement;
    statement!("judgement-of-producer", who = named(document, line), judgement = verdict)
}

fn stationary(document: &TailDocument, lines: &[Line<'_>]) -> Option<Finding> {
    let flat: Vec<&Line<'_>> =
        lines.iter().filter(|line| line.producer.verdict.cause == Cause::Stationary).collect();
    if flat.is_empty() {
        return None;
    }
    let names = together(document, lines, &flat);
    let said = statement!(
        "latency-does-not-grow-with",
        is_all = flat.len() == lines.len(),
        producers = names
    );
    let evidence = flat.iter().map(|line| judged(document, line));
    Some(Finding::found(said, evidence.collect()))
}

/// Labels of some producers: a combination with all its repetitions gets one label.
fn together(document: &TailDocument, lines: &[Line<'_>], some: &[&Line<'_>]) -> Vec<Statement> {
    let are_all = |line: &Line<'_>| {
        let number = |repeats: &dyn Fn(&Line<'_>) -> bool| {
            let all = lines.iter().filter(|other| repeats(other)).count();
            all == some.iter().filter(|other| repeats(other)).count()
        };
        line.cell.repetition.is_some() && number(&|other| other.repeats(line))
    };
    let name = |line: &&Line<'_>| match are_all(line) {
        true => statement!("cell", cell = combination(document, line.cell)),
        false => named(document, line),
    };
    distinct(some.iter().map(name))
}

/// Whether the pool size has an effect, if several were measured.
fn pools(lines: &[Line<'_>]) -> Option<Finding> {
    let mut pools: Vec<u64> = lines.iter().map(|line| line.cell.settings.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    if pools.len() < 2 {
        return None;
    }
    let key = |line: &Line<'_>| {
        let settings = &line.cell.settings;
        (
            settings.producers.clone(),
            settings.consumers.clone(),
            bound(settings.in_flight),
            line.number,
        )
    };
    let known = lines.iter().filter_map(|line| Some((key(line), (line, line.median_us()?))));
    let (mut matters, mut evidence) = (Vec::new(), Vec::new());
    for (wanted, mut same) in grouped(known) {
        same.sort_by_key(|(line, _)| line.cell.settings.pool);
        if same.len() < 2 {
            continue;
        }
        let acknowledged = |line: &Line<'_>| line.producer.timeline.rates.acknowledged_per_s;
        let medians: Vec<f64> = same.iter().map(|(_, median_us)| *median_us).collect();
        let rates: Vec<f64> = same.iter().map(|(line, _)| acknowledged(line)).collect();
        let (median, sent) = (spread(&medians), spread(&rates));
        let producer = wanted.0.first().cloned().unwrap_or_default();
        let who = statement!("producer-with-bound", producer = producer, bound = wanted.2);
        let each = same.iter().map(|(line, median_us)| {
            statement!(
                "pool-size",
                pool = line.cell.settings.pool,
                median = us(*median_us),
                rate = rate(acknowledged(line))
            )
        });
        let each: Vec<Statement> = each.collect();
        evidence.push(statement!("pool-sizes", who = &who, sizes = each));
        if median >= SAME_RATIO || sent >= SAME_RATIO {
            matters.push(statement!(
                "pool-size-matters-with",
                who = who,
                medians = times(median),
                rates = times(sent)
            ));
        }
    }
    // Other sizes were measured with other producers.
    if evidence.is_empty() {
        return None;
    }
    evidence.push(statement!("cells-measured-once"));
    let sizes: Vec<_> = pools.iter().map(|pool| exact(*pool as f64)).collect();
    let said = if matters.is_empty() {
        let limit = times(SAME_RATIO);
        statement!("pool-size-makes-no-difference", sizes = sizes, limit = limit)
    } else {
        statement!("pool-size-makes-a-difference", sizes = sizes, matters = matters)
    };
    Some(Finding::found(said, evidence))
}

/// The largest value over the smallest.
fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    if least > 0.0 && most > 0.0 && least.is_finite() { most / least } else { 1.0 }
}

/// Events that consumers had to handle.
fn events(document: &TailDocument) -> Vec<Finding> {
    let mut found = Vec::new();
    for cell in &document.cells {
        for consumer in cell.measured.iter().flat_map(|measured| &measured.consumers) {
            let name = label(document, cell);
            let lost = consumer.position_lost.unwrap_or(0);
            if lost > 0 {
                found.push(Finding::warning(
                    statement!("position-lost", cell = &name, times = lost),
                    vec![sums(cell)],
                ));
            }
            let empty = consumer.reopened_empty.unwrap_or(0);
            let blind = consumer.blind.len() as u64;
            let others = consumer.reopened.unwrap_or(0).saturating_sub(empty + lost + blind);
            if others > 0 {
                found.push(Finding::warning(
                    statement!("cursor-opened-again", cell = name, times = others),
                    vec![sums(cell)],
                ));
            }
        }
    }
    found.extend(blind(document));
    let caught: Vec<Statement> = document
        .cells
        .iter()
        .filter_map(|cell| {
            let consumers = cell.measured.iter().flat_map(|measured| &measured.consumers);
            let caught: u64 = consumers.filter_map(|consumer| consumer.caught_up).sum();
            let cell = label(document, cell);
            (caught > 0).then(|| statement!("messages-of-cell", cell = cell, messages = caught))
        })
        .collect();
    if !caught.is_empty() {
        found.push(Finding::found(statement!("found-by-query"), caught));
    }
    found
}

/// Cursors that the server kept alive without messages, for each consumer.
fn blind(document: &TailDocument) -> Vec<Finding> {
    let consumers = document.cells.iter().flat_map(|cell| {
        let measured = cell.measured.iter();
        let consumers = measured.flat_map(|measured| &measured.consumers);
        consumers.map(move |consumer| (cell, consumer))
    });
    let blinded = consumers.filter(|(_, consumer)| !consumer.blind.is_empty());
    let reported = blinded.map(|(cell, consumer)| {
        let times = consumer.blind.iter().map(|cursor| time(cursor.blind_s));
        let found: u64 = consumer.blind.iter().map(|cursor| cursor.found).sum();
        Finding::found(
            statement!(
                "cursor-blind",
                cell = label(document, cell),
                times = times.collect::<Vec<_>>()
            ),
            vec![statement!("cursor-alive-without-messages", messages = found), sums(cell)],
        )
    });
    reported.collect()
}

#[cfg(test)]
pub(crate) mod tests;
