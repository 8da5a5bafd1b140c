//! Outages: times without a successful operation under load, and their causes.
//!
//! The windows show the times to a second; the first minute is recorded in hundredths of a second. The cause is
//! a recorded event or, without one, the errors of the phase.

use crate::robust::median;
use crate::values::{exact, seconds, time};
use crate::verdict::{Cause, Verdict};
use crate::windows::IntervalTotals;
use dyno_record::experiment::Finding;
use dyno_record::interval::FINE_NS;
use dyno_record::model::{Event, EventRecord, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::sub_second::SubSecondPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A shorter time without success is a stall.
const SHORTEST_S: f64 = 1.0;
/// Shortest outage in mean distances between successes: random arrivals leave such a gap once in 10⁸
/// operations.
const MEAN_DISTANCES: f64 = 20.0;
/// Shortest outage in usual service times: clients may all wait for answers at once. Response times do not count: after
/// an outage they are long in most windows of an open loop.
const SERVICE_TIMES: f64 = 4.0;
/// Longest time between an event and the start or end of the outage.
const NOTICED_WITHIN_S: f64 = 1.0;
/// Share of an outage from which a stopped client is its cause. Without sub-second windows an outage seems up to two
/// windows longer than it is.
const STOPPED_RATIO: f64 = 0.25;
/// Length of a point of the sub-second series.
const POINT_S: f64 = FINE_NS as f64 / 1e9;

/// A time of the measure phase without successful operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Start, from the start of the run.
    pub start_s: f64,
    /// End; the end of the phase if no further operation succeeded.
    pub end_s: f64,
    pub cause: Statement,
}

impl Outage {
    /// Length in seconds.
    pub fn length_s(&self) -> f64 {
        self.end_s - self.start_s
    }

    fn statement(&self, code: &str) -> Statement {
        Statement::new(code)
            .with("length", seconds(self.length_s()))
            .with("start", seconds(self.start_s))
            .with("end", seconds(self.end_s))
            .with("cause", self.cause.clone())
    }

    fn finding(&self, document: &RunDocument) -> Finding {
        let said = self.statement("outage");
        let events = events_within(document, self.start_s, self.end_s);
        let mut evidence: Vec<Statement> = events.map(noticed).collect();
        evidence.extend(failures(document));
        evidence.extend(measured(document).map(|phase| {
            statement!(
                "operations-succeeded",
                operations = exact(phase.succeeded as f64),
                duration = time(phase.duration_s)
            )
        }));
        Finding::warning(said, evidence)
    }
}

/// The outages of the measure phase of a run, in order of time.
pub fn outages(
    document: &RunDocument,
    windows: &[IntervalTotals],
    sub_second: &[SubSecondPoint],
) -> Vec<Outage> {
    let windows: Vec<&IntervalTotals> =
        windows.iter().filter(|window| window.phase == PhaseKind::Measure).collect();
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Vec::new();
    };
    let Some(shortest_s) = shortest_s(&windows) else {
        return Vec::new();
    };
    let end_s = last.start_s + last.duration_s;
    // After the planned end the run only waits for answers.
    let planned_end_s = planned_end_s(document, first.start_s).unwrap_or(end_s);
    let sub_second_end_s = sub_second.last().map_or(0.0, |point| point.start_s + POINT_S);
    let busy: Vec<(f64, f64)> =
        windows.iter().flat_map(|one| successes(one, sub_second, sub_second_end_s)).collect();
    let starts = std::iter::once(first.start_s).chain(busy.iter().map(|span| span.1));
    // With a number of operations the load ends with the last one.
    let is_timed = document.recorded_plan().most_operations().is_none();
    let ends = busy.iter().map(|span| span.0);
    let ends = ends.chain(is_timed.then_some(end_s));
    starts
        .zip(ends)
        .filter(|(start_s, end_s)| end_s.min(planned_end_s) - start_s >= shortest_s)
        .map(|(start_s, end_s)| Outage { start_s, end_s, cause: cause(document, start_s, end_s) })
        .collect()
}

/// Length from which a time without success is an outage; `None` without any success.
fn shortest_s(windows: &[&IntervalTotals]) -> Option<f64> {
    let busy = || windows.iter().filter(|window| window.succeeded > 0);
    let succeeded: u64 = busy().map(|window| window.succeeded).sum();
    let length_s: f64 = busy().map(|window| window.duration_s).sum();
    let usual_us = median(busy().filter_map(|window| window.service_mean_us));
    let distance_s = length_s / succeeded as f64;
    (succeeded > 0).then(|| {
        SHORTEST_S
            .max(MEAN_DISTANCES * distance_s)
            .max(SERVICE_TIMES * usual_us.unwrap_or(0.0) / 1e6)
    })
}

/// Planned end of the measure phase's load; `None` if its length was not planned.
fn planned_end_s(document: &RunDocument, start_s: f64) -> Option<f64> {
    let phases = document.recorded_plan().phases?;
    let duration = phases.duration.filter(|_| phases.operations.is_none())?;
    Some(start_s + duration.0.as_secs_f64())
}

/// The known times of a window with successful operations: all of it, or its points with a success if they
/// cover it to its end. The points do not have answers that a delayed client recorded after the window's end.
fn successes(
    window: &IntervalTotals,
    sub_second: &[SubSecondPoint],
    sub_second_end_s: f64,
) -> Vec<(f64, f64)> {
    if window.succeeded == 0 {
        return Vec::new();
    }
    let (start_s, end_s) = (window.start_s, window.start_s + window.duration_s);
    if end_s > sub_second_end_s + POINT_S {
        let (gap_start_s, gap_end_s) = window.gap_s.unwrap_or((end_s, end_s));
        let spans = [(start_s, gap_start_s), (gap_end_s, end_s)];
        return spans.into_iter().filter(|(start_s, end_s)| end_s > start_s).collect();
    }
    let inside =
        |point: &&SubSecondPoint| point.start_s >= start_s - POINT_S / 2.0 && point.start_s < end_s;
    let points = sub_second.iter().filter(inside).filter(|point| point.ended > point.failed);
    let succeeded: u64 = points.clone().map(|point| point.ended - point.failed).sum();
    let is_late = succeeded < window.succeeded;
    let spans = points.map(|point| (point.start_s, point.start_s + POINT_S));
    spans.chain(is_late.then_some((end_s, end_s))).collect()
}

fn events_within(
    document: &RunDocument,
    start_s: f64,
    end_s: f64,
) -> impl Iterator<Item = &EventRecord> {
    document.events.iter().filter(move |event| {
        let length_s = match event.event {
            Event::ClientStopped { length_s } => length_s,
            _ => 0.0,
        };
        event.at_s + length_s >= start_s - NOTICED_WITHIN_S
            && event.at_s <= end_s + NOTICED_WITHIN_S
    })
}

/// The event that explains most comes first.
fn cause(document: &RunDocument, start_s: f64, end_s: f64) -> Statement {
    let events = || events_within(document, start_s, end_s).map(|one| &one.event);
    let stopped_s: f64 = events_within(document, start_s, end_s)
        .filter_map(|one| match one.event {
            Event::ClientStopped { length_s } => {
                let overlap_s = (one.at_s + length_s).min(end_s) - one.at_s.max(start_s);
                Some(overlap_s.max(0.0))
            }
            _ => None,
        })
        .sum();
    if stopped_s >= STOPPED_RATIO * (end_s - start_s) {
        return statement!("outage-cause.client-stopped", length = seconds(stopped_s));
    }
    let of_servers = |rank: u8| {
        events().find_map(move |event| match (event, rank) {
            (Event::ServerEnded { server, status }, 0) => {
                Some(statement!("outage-cause.server-ended", server = server, status = status))
            }
            (Event::PrimaryChanged { from, to }, 1) => {
                Some(statement!("outage-cause.primary-changed", from = from, to = to))
            }
            (Event::Unreachable { reason, refused }, 2) => Some(statement!(
                "outage-cause.unreachable",
                refused = refused.then_some(true),
                reason = reason
            )),
            _ => None,
        })
    };
    let found = (0..3).find_map(of_servers);
    found
        .or_else(|| {
            failures(document).map(|kinds| statement!("outage-cause.failures", failures = kinds))
        })
        .unwrap_or_else(|| statement!("outage-cause.unknown"))
}

fn measured(document: &RunDocument) -> Option<&PhaseRecord> {
    document.phases.iter().find(|phase| phase.name == PhaseKind::Measure)
}

/// The failures of the measure phase by kind, the most frequent first.
fn failures(document: &RunDocument) -> Option<Statement> {
    let phase = measured(document)?;
    let mut kinds: Vec<(&String, u64)> =
        phase.errors.iter().map(|(kind, count)| (kind, *count)).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kinds: Vec<Statement> = kinds
        .into_iter()
        .map(|(kind, count)| {
            let name = None::<&str>;
            statement!("errors-of-kind", kind = kind, name = name, count = exact(count as f64))
        })
        .collect();
    (!kinds.is_empty()).then(|| statement!("outage-failures", kinds = kinds))
}

fn noticed(event: &EventRecord) -> Statement {
    let at = seconds(event.at_s);
    match &event.event {
        Event::PrimaryChanged { from, to } => {
            statement!("event.primary-changed", at = at, from = from, to = to)
        }
        Event::Unreachable { reason, .. } => {
            statement!("event.unreachable", at = at, reason = reason)
        }
        Event::ServerEnded { server, status } => {
            statement!("event.server-ended", at = at, server = server, status = status)
        }
        Event::ClientStopped { length_s } => {
            statement!("event.client-stopped", at = at, length = seconds(*length_s))
        }
    }
}

/// Findings and verdict of a run with its outages, which come first: more load does not help against an outage.
pub(crate) fn with_outages(
    document: &RunDocument,
    outages: &[Outage],
    findings: Vec<Finding>,
    verdict: Option<Verdict>,
) -> (Vec<Finding>, Option<Verdict>) {
    let longest = outages.iter().max_by(|a, b| a.length_s().total_cmp(&b.length_s()));
    let Some(longest) = longest else {
        return (findings, verdict);
    };
    let mut all: Vec<Finding> = outages.iter().map(|one| one.finding(document)).collect();
    let wants_load = ["more-clients-could-raise"];
    all.extend(
        findings.into_iter().filter(|one| !wants_load.contains(&one.statement.code.as_str())),
    );
    let cause = longest.cause.code.as_str();
    let is_known = cause != "outage-cause.unknown";
    // A client that stood still starts late without any need of CPU time.
    let stood_still = cause == "outage-cause.client-stopped";
    let verdict = verdict.map(|mut verdict| {
        let is_excluded =
            |cause: Cause| cause == Cause::TooFewClients || (stood_still && cause == Cause::Client);
        verdict.causes.retain(|one| !is_excluded(one.cause));
        if is_known || verdict.causes.is_empty() {
            let number = outages.len();
            let others = (number > 1).then(|| exact((number - 1) as f64));
            verdict.headline = longest.statement("outage-verdict").with("others", others);
        } else {
            verdict.headline = verdict.causes[0].statement.clone();
        }
        verdict
    });
    (all, verdict)
}

#[cfg(test)]
pub(super) mod tests;
