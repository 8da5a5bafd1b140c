//! What follows from all cells of an experiment together: which latencies grow and why, whether the bound on inserts in
//! flight or the driver is the cause, whether the size of the pool matters, and what happened on the way.

use super::doubts;
use super::judge::{Cause, InFlight};
use super::record::{
    Cell, CellStatus, DeliverySplit, Latency, Measured, ProducerRecord, TailDocument,
};
use crate::experiment::words::{count, exact, list, rate, time, times};
use crate::experiment::{Finding, FindingKind};
use dyno_record::quantity::Quantity;
use std::collections::BTreeSet;

/// Medians and rates of cells that were measured once differ by less than this without any cause.
const SAME_RATIO: f64 = 1.5;

/// A producer of a cell, with what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its cell.
    pub cell: &'a Cell,
    /// What was measured in it.
    pub measured: &'a Measured,
    /// Number of the producer.
    pub number: usize,
    /// What it did.
    pub producer: &'a ProducerRecord,
}

impl<'a> Line<'a> {
    /// Intended → received by the first consumer, if a message of it was received.
    pub fn total(&self) -> Option<&'a Latency> {
        self.at_first_consumer(|delivery| &delivery.total)
    }

    /// Send → received by the first consumer.
    pub fn delivery(&self) -> Option<&'a Latency> {
        self.at_first_consumer(|delivery| &delivery.delivery)
    }

    fn at_first_consumer(&self, part: fn(&DeliverySplit) -> &Latency) -> Option<&'a Latency> {
        let consumer = self.measured.consumers.first()?;
        let latency = part(consumer.deliveries.get(self.number)?);
        (latency.count > 0).then_some(latency)
    }

    fn median_us(&self) -> Option<f64> {
        self.total().map(|total| total.p50_us)
    }

    /// Whether it did all that it was to do: what one did that failed is not to be compared.
    fn is_whole(&self) -> bool {
        self.cell.status == CellStatus::Complete
    }

    fn grows(&self) -> bool {
        !matches!(
            self.producer.verdict.cause,
            Cause::Stationary | Cause::TooFew
        )
    }
}

/// All producers that were measured, in the order of their cells.
pub fn lines(document: &TailDocument) -> Vec<Line<'_>> {
    let measured = document.cells.iter().filter_map(|cell| {
        let measured = cell.measured.as_ref()?;
        Some((cell, measured))
    });
    let lines = measured.flat_map(|(cell, measured)| {
        let producers = measured.producers.iter().enumerate();
        producers.map(move |(number, producer)| Line {
            cell,
            measured,
            number,
            producer,
        })
    });
    lines.collect()
}

/// What a cell is called: its producer, and of the rest what is not the same for all cells.
pub fn label(document: &TailDocument, cell: &Cell) -> String {
    let differs = |of: &dyn Fn(&Cell) -> String| {
        let values: BTreeSet<String> = document.cells.iter().map(of).collect();
        values.len() > 1
    };
    let mut label = cell.settings.producers.first().cloned().unwrap_or_default();
    let consumer = |cell: &Cell| cell.settings.consumers.first().cloned().unwrap_or_default();
    if differs(&consumer) {
        label.push_str(&format!(" → {}", consumer(cell)));
    }
    if differs(&|cell| bound(cell.settings.in_flight)) {
        label.push_str(&format!(", {}", bound(cell.settings.in_flight)));
    }
    if differs(&|cell| cell.settings.pool.to_string()) {
        label.push_str(&format!(", pool {}", exact(cell.settings.pool as f64)));
    }
    label
}

/// A bound on inserts in flight in words.
pub fn bound(in_flight: InFlight) -> String {
    match in_flight {
        InFlight::Bounded(bound) => format!("{} in flight", exact(bound as f64)),
        InFlight::Unbounded => "unbounded".to_owned(),
    }
}

/// What follows from an experiment, the most important first.
pub fn findings(document: &TailDocument) -> Vec<Finding> {
    let lines = lines(document);
    let mut found = failures(document);
    found.extend(riddle(document, &lines));
    found.extend(growing(document, &lines));
    found.extend(stationary(document, &lines));
    let whole: Vec<Line<'_>> = lines
        .iter()
        .filter(|line| line.is_whole())
        .copied()
        .collect();
    found.extend(pools(&whole));
    found.extend(fastest(document, &whole));
    found.extend(events(document));
    found.extend(doubts::of(document, &lines));
    found
}

fn us(value: f64) -> String {
    time(value / 1e6)
}

pub(super) fn named(document: &TailDocument, line: &Line<'_>) -> String {
    let label = label(document, line.cell);
    match line.measured.producers.len() {
        1 => format!("`{label}`"),
        _ => format!("`{label}` (producer {})", line.number),
    }
}

fn failures(document: &TailDocument) -> Vec<Finding> {
    let failed = document
        .cells
        .iter()
        .filter(|cell| cell.status == CellStatus::Failed);
    let told = failed.map(|cell| {
        let reason = cell.reason.clone().unwrap_or_default();
        Finding::new(
            FindingKind::Warning,
            format!("`{}` failed: {reason}", label(document, cell)),
            vec![sums(cell)],
        )
    });
    told.collect()
}

fn sums(cell: &Cell) -> String {
    let Some(measured) = &cell.measured else {
        return "nothing was measured".to_owned();
    };
    let acknowledged: u64 = measured
        .producers
        .iter()
        .map(|one| one.sum.acknowledged)
        .sum();
    let consumers = measured.consumers.iter().map(|consumer| {
        let sum = consumer.sum;
        format!(
            "{} received, {} lost, {} twice",
            exact(sum.received as f64),
            exact(sum.lost as f64),
            exact(sum.duplicated as f64)
        )
    });
    let consumers: Vec<String> = consumers.collect();
    format!(
        "{} acknowledged; {}",
        exact(acknowledged as f64),
        consumers.join("; ")
    )
}

/// Whether growth goes with the bound on inserts in flight or with the driver.
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
    // Those that grow for another reason are told one by one, and prove nothing about the bound.
    let queues = |line: &&&Line<'_>| line.producer.verdict.cause == Cause::UnboundedInFlight;
    let grow = unbounded.iter().filter(queues).count();
    let others: Vec<String> = bounded
        .iter()
        .filter(|line| line.grows())
        .map(|line| named(document, line))
        .collect();
    if 2 * grow <= unbounded.len() {
        return None;
    }
    let drivers: BTreeSet<&str> = unbounded
        .iter()
        .map(|line| line.producer.driver.name.as_str())
        .collect();
    let not_the_driver = match drivers.len() {
        1 => "",
        _ => ", and not the driver",
    };
    let who = match grow == unbounded.len() {
        true => count(grow, "producer", "producers"),
        false => format!("{grow} of {} producers", unbounded.len()),
    };
    let but = match others.is_empty() {
        true => format!(
            "with none of {} that do or that bound how many are in flight",
            count(bounded.len(), "producer", "producers")
        ),
        false => format!(
            "with {} of {} that do, for reasons of their own ({})",
            others.len(),
            count(bounded.len(), "producer", "producers"),
            list(&others)
        ),
    };
    let text = format!(
        "the cause is the missing bound on inserts in flight{not_the_driver}: messages queue with {who} that do not wait for their \
         inserts, and latency grows {but}"
    );
    let evidence = unbounded.iter().chain(&bounded).map(|line| {
        let place = match line.cell.settings.in_flight {
            InFlight::Unbounded => match line.producer.course.place {
                super::judge::QueuePlace::Driver => ": the messages wait in the driver",
                super::judge::QueuePlace::Program => ": the messages wait in the program",
            },
            InFlight::Bounded(_) => "",
        };
        let half = |part: &[super::judge::Point]| {
            let mut values: Vec<f64> = part
                .iter()
                .map(|point| {
                    point
                        .total_ns
                        .unwrap_or(point.wait_ns + point.acknowledged_ns)
                })
                .collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let points = &line.producer.course.points;
        let (first, last) = points.split_at(points.len() / 2);
        format!(
            "{}: median {} in the first half, {} in the second{place}",
            named(document, line),
            time(half(first) / 1e9),
            time(half(last) / 1e9),
        )
    });
    Some(Finding::new(FindingKind::Finding, text, evidence.collect()))
}

fn growing(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let growing = lines.iter().filter(|line| line.grows());
    let told = growing.map(|line| {
        let verdict = &line.producer.verdict;
        let trends = verdict.trends.iter().map(|part| {
            format!(
                "{}: median {}, {} over the run, Kendall's tau {:.2}, p {:.2e}",
                match part.part {
                    super::judge::Part::Wait => "intended→send",
                    super::judge::Part::Acknowledged => "send→acknowledged",
                    super::judge::Part::After => "acknowledged→received",
                    super::judge::Part::Total => "intended→received",
                },
                signed(part.trend.median),
                change(part.trend.change),
                part.trend.tau_ratio,
                part.trend.p_ratio
            )
        });
        Finding::new(
            FindingKind::Finding,
            format!("{}: {}", named(document, line), verdict.words),
            trends.collect(),
        )
    });
    told.collect()
}

fn signed(ns: f64) -> String {
    time(ns / 1e9)
}

fn change(ns: f64) -> String {
    Quantity::microseconds(ns / 1e3)
        .brief()
        .signed()
        .to_string()
}

fn stationary(document: &TailDocument, lines: &[Line<'_>]) -> Option<Finding> {
    let flat: Vec<&Line<'_>> = lines
        .iter()
        .filter(|line| line.producer.verdict.cause == Cause::Stationary)
        .collect();
    if flat.is_empty() {
        return None;
    }
    let names: Vec<String> = flat.iter().map(|line| named(document, line)).collect();
    let text = match flat.len() == lines.len() {
        true => "latency does not grow over the run with any producer".to_owned(),
        false => format!("latency does not grow over the run with {}", list(&names)),
    };
    let evidence = flat
        .iter()
        .map(|line| format!("{}: {}", named(document, line), line.producer.verdict.words));
    Some(Finding::new(FindingKind::Finding, text, evidence.collect()))
}

/// Whether the size of the pool changes anything, where several were measured.
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
    let mut keys: Vec<_> = Vec::new();
    for line in lines {
        if !keys.contains(&key(line)) {
            keys.push(key(line));
        }
    }
    let (mut matters, mut evidence) = (Vec::new(), Vec::new());
    for wanted in keys {
        let mut same: Vec<&Line<'_>> = lines.iter().filter(|line| key(line) == wanted).collect();
        same.sort_by_key(|line| line.cell.settings.pool);
        if same.len() < 2 {
            continue;
        }
        let medians: Vec<f64> = same.iter().filter_map(|line| line.median_us()).collect();
        let rates: Vec<f64> = same
            .iter()
            .map(|line| line.producer.course.rates.acknowledged_per_s)
            .collect();
        let (median, sent) = (spread(&medians), spread(&rates));
        let who = format!(
            "`{}, {}`",
            wanted.0.first().cloned().unwrap_or_default(),
            wanted.2
        );
        let each: Vec<String> = same
            .iter()
            .map(|line| {
                format!(
                    "pool {}: median {}, {}",
                    exact(line.cell.settings.pool as f64),
                    line.median_us().map_or_else(|| "–".to_owned(), us),
                    rate(line.producer.course.rates.acknowledged_per_s)
                )
            })
            .collect();
        evidence.push(format!("{who}: {}", each.join("; ")));
        if median >= SAME_RATIO || sent >= SAME_RATIO {
            matters.push(format!(
                "{who} (medians by {} times, rates by {} times)",
                times(median),
                times(sent)
            ));
        }
    }
    let sizes: Vec<String> = pools.iter().map(|pool| exact(*pool as f64)).collect();
    let text = match matters.is_empty() {
        true => format!(
            "the size of the connection pool ({}) makes no difference: neither medians nor rates differ by {} times or more",
            sizes.join(", "),
            times(SAME_RATIO)
        ),
        false => format!(
            "the size of the connection pool ({}) makes a difference with {}",
            sizes.join(", "),
            list(&matters)
        ),
    };
    evidence.push("each cell was measured once: small differences mean nothing".to_owned());
    Some(Finding::new(FindingKind::Finding, text, evidence))
}

/// The largest value over the smallest.
fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    match least > 0.0 && most > 0.0 && least.is_finite() {
        true => most / least,
        false => 1.0,
    }
}

/// Who is fastest and who slowest, of those that do the same.
fn fastest(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Finding> {
    let mut bounds: Vec<InFlight> = Vec::new();
    for line in lines {
        if !bounds.contains(&line.cell.settings.in_flight) {
            bounds.push(line.cell.settings.in_flight);
        }
    }
    let told = bounds.into_iter().filter_map(|in_flight| {
        let mut same: Vec<(&Line<'_>, f64)> = lines
            .iter()
            .filter(|line| line.cell.settings.in_flight == in_flight)
            .filter_map(|line| Some((line, line.median_us()?)))
            .collect();
        same.sort_by(|left, right| left.1.total_cmp(&right.1));
        let ([first, .., last], true) = (same.as_slice(), in_flight != InFlight::Unbounded) else {
            return None;
        };
        let text = format!(
            "with {} messages take least time through {} (median {}) and most through {} (median {}, {} times as long)",
            bound(in_flight),
            named(document, first.0),
            us(first.1),
            named(document, last.0),
            us(last.1),
            times(last.1 / first.1)
        );
        let evidence = same.iter().map(|(line, median_us)| {
            format!(
                "{}: median {}, {}",
                named(document, line),
                us(*median_us),
                rate(line.producer.course.rates.acknowledged_per_s)
            )
        });
        Some(Finding::new(FindingKind::Finding, text, evidence.collect()))
    });
    told.collect()
}

/// What consumers had to cope with.
fn events(document: &TailDocument) -> Vec<Finding> {
    let mut found = Vec::new();
    for cell in &document.cells {
        for consumer in cell
            .measured
            .iter()
            .flat_map(|measured| &measured.consumers)
        {
            let name = format!("`{}`", label(document, cell));
            let lost = consumer.position_lost.unwrap_or(0);
            if lost > 0 {
                found.push(Finding::new(
                    FindingKind::Warning,
                    format!(
                        "{name}: the collection wrapped before the consumer had read it, and its cursor lost its place {} \
                         (CappedPositionLost)",
                        count(lost as usize, "time", "times")
                    ),
                    vec![sums(cell)],
                ));
            }
            let empty = consumer.reopened_empty.unwrap_or(0);
            let blind = consumer.blind.len() as u64;
            let others = consumer
                .reopened
                .unwrap_or(0)
                .saturating_sub(empty + lost + blind);
            if others > 0 {
                found.push(Finding::new(
                    FindingKind::Warning,
                    format!(
                        "{name}: the consumer had to open its cursor again {} after errors",
                        count(others as usize, "time", "times")
                    ),
                    vec![sums(cell)],
                ));
            }
        }
    }
    found.extend(blind(document));
    let caught: Vec<String> = document
        .cells
        .iter()
        .filter_map(|cell| {
            let consumers = cell
                .measured
                .iter()
                .flat_map(|measured| &measured.consumers);
            let caught: u64 = consumers.filter_map(|consumer| consumer.caught_up).sum();
            (caught > 0).then(|| format!("`{}`: {}", label(document, cell), exact(caught as f64)))
        })
        .collect();
    if !caught.is_empty() {
        found.push(Finding::new(
            FindingKind::Finding,
            "messages did not come by the tailable cursor, as it happens to those that are inserted while it opens; a query \
             found them, and their latency includes that"
                .to_owned(),
            caught,
        ));
    }
    found
}

/// Cursors that the server left alive without messages, consumer by consumer.
fn blind(document: &TailDocument) -> Vec<Finding> {
    let consumers = document.cells.iter().flat_map(|cell| {
        let measured = cell.measured.iter();
        let consumers = measured.flat_map(|measured| &measured.consumers);
        consumers.map(move |consumer| (cell, consumer))
    });
    let blinded = consumers.filter(|(_, consumer)| !consumer.blind.is_empty());
    let told = blinded.map(|(cell, consumer)| {
        let times: Vec<String> = consumer
            .blind
            .iter()
            .map(|cursor| time(cursor.blind_s))
            .collect();
        let found: u64 = consumer.blind.iter().map(|cursor| cursor.found).sum();
        Finding::new(
            FindingKind::Finding,
            format!(
                "`{}`: the cursor was blind: opened again after {}",
                label(document, cell),
                list(&times)
            ),
            vec![
                format!(
                    "the server kept the tailable cursor alive and sent it nothing, while queries found {}",
                    messages(found)
                ),
                "nothing is lost by that, but latency includes it: it is what this server does to consumers"
                    .to_owned(),
                sums(cell),
            ],
        )
    });
    told.collect()
}

fn messages(number: u64) -> String {
    match number {
        1 => "1 message".to_owned(),
        number => format!("{} messages", exact(number as f64)),
    }
}

#[cfg(test)]
#[path = "across_tests.rs"]
mod tests;
