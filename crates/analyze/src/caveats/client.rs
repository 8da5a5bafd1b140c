//! Caveats about the load generator: whether it offered the planned load, and whether it was the limit.

use super::facts::{Facts, of_measure, of_phases};
use crate::values::{exact, number, percent, rate, seconds, us};
use dyno_record::fleet::FleetHostUse;
use dyno_record::model::{
    Caveat, CaveatKind, Event, FleetRecord, LatencySummary, PhaseRecord, ResourceKind,
};
use dyno_record::plan::ScheduleKind;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::verdict::Level;
use serde_json::Value;

/// Share of its CPUs above which the client is the limit. Above 90 % work waits for the CPU: with random
/// arrivals the queue for a server that is 90 % busy is nine times the work in service.
const BUSY_RATIO: f64 = 0.9;
/// Share of time waiting for a CPU from which the wait is the reason, instead of the threads' own work.
const WAIT_RATIO: f64 = 0.2;
/// Utilization from which the machine's CPUs are full.
const FULL_RATIO: f64 = 0.95;
/// Share of the selfcheck rate above which the client is the limit. The null responder answers faster than any
/// database, so its rate cannot quite be reached with a real one.
const SELFCHECK_RATIO: f64 = 0.9;
/// Key of the selfcheck figure: the highest rate of one worker thread.
const SELFCHECK_RATE: &str = "/max_rate_per_core_per_s";
/// In a closed loop the start delay is time that the client loses between two operations. From a tenth of the
/// median service time plus think time, it changes the rate as much as a tenth more work.
const CLOSED_DELAY_RATIO: f64 = 0.1;
/// A healthy client needs up to 100 µs between two system calls.
const CLOSED_DELAY_FLOOR_US: f64 = 100.0;
/// Share of arrivals that may start more than 1 ms late. At 1 % they begin to decide the 99th percentile of the
/// response time.
const LATE_RATIO: f64 = 0.01;
/// Largest share by which the achieved rate may fall short of the offered one: above it the queue grows, and its
/// response time depends on the length of the run.
pub const RATE_SHORTFALL_RATIO: f64 = 0.01;
/// Standard deviations by which a random number of starts may fall short: once in 740 runs.
const DEVIATIONS: f64 = 3.0;

/// No client thread ran during a part of the measure phase, so the response times in flight are the client's
/// own.
pub(super) fn stood_still(facts: &Facts<'_>) -> Option<Caveat> {
    let stops: Vec<(f64, Statement)> = facts
        .document
        .events
        .iter()
        .filter_map(|event| {
            let Event::ClientStopped { length_s } = event.event else {
                return None;
            };
            let window = facts.window_at(event.at_s, event.at_s + length_s)?;
            let said = statement!(
                "client-stopped-at",
                at = seconds(event.at_s),
                length = seconds(length_s),
                in_flight = exact(window.mean_in_flight.round())
            );
            Some((length_s, said))
        })
        .collect();
    let total_s: f64 = stops.iter().map(|(length_s, _)| length_s).sum();
    let stops: Vec<Statement> = stops.into_iter().map(|(_, said)| said).collect();
    (!stops.is_empty()).then(|| {
        let said = statement!("client-stood-still", stops = stops, total = seconds(total_s));
        of_measure(CaveatKind::ClientStopped, said)
    })
}

/// The client was too busy for its numbers to describe the server.
pub(super) fn generator_bottleneck(facts: &Facts<'_>) -> Option<Caveat> {
    let phase = facts.measure?;
    let reasons: Vec<Statement> = [
        busy_cpus(facts, phase),
        waits_for_cpu(facts, phase),
        near_selfcheck(facts, phase),
        slow_turnaround(phase),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!reasons.is_empty()).then(|| {
        let said = statement!("client-was-the-limit", reasons = reasons);
        of_measure(CaveatKind::GeneratorBottleneck, said)
    })
}

/// CPU time per worker. A worker with a schedule or think times spins before each start, so a busy CPU counts
/// only if the starts were late.
fn busy_cpus(facts: &Facts<'_>, phase: &PhaseRecord) -> Option<Statement> {
    if phase.duration_s <= 0.0 {
        return None;
    }
    if let Some(fleet) = &facts.document.fleet {
        return busy_host(facts, fleet, phase);
    }
    let used = (phase.client.cpu_user_s + phase.client.cpu_system_s) / phase.duration_s;
    let cpus = facts.worker_cpus();
    let schedule_kept =
        is_paced(phase) && is_on_time(phase, phase) && shortfall(facts, phase).is_none();
    (used / cpus >= BUSY_RATIO && !schedule_kept)
        .then(|| statement!("client-cpus-busy", used = number(used), cpus = exact(cpus)))
}

/// Whether operations have separate start times, instead of starting directly after the last answer.
fn is_paced(phase: &PhaseRecord) -> bool {
    phase.offered_rate_per_s.is_some() || phase.mean_think_time_us.is_some()
}

/// Whether the operations of a phase, or of an agent's `part` of it, started on time.
fn is_on_time(phase: &PhaseRecord, part: &PhaseRecord) -> bool {
    match phase.offered_rate_per_s {
        Some(_) => late_ratio(part) <= LATE_RATIO,
        None => slow_turnaround(part).is_none(),
    }
}

/// One full host of a fleet is enough: its clients affect all figures. The fullest is named.
fn busy_host(facts: &Facts<'_>, fleet: &FleetRecord, phase: &PhaseRecord) -> Option<Statement> {
    let schedule_kept = |host: &str| {
        let agents = fleet.agents.iter().filter(|agent| agent.host == host);
        let mut phases =
            agents.flat_map(|agent| &agent.phases).filter(|one| one.name == phase.name);
        is_paced(phase)
            && phases.all(|one| is_on_time(phase, one))
            && shortfall(facts, phase).is_none()
    };
    let ratio = |host: &FleetHostUse<'_>| host.used / host.cpus as f64;
    let uses = fleet.host_uses(phase.name);
    let full = uses.iter().filter(|host| ratio(host) >= BUSY_RATIO && !schedule_kept(host.host));
    let worst = full.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    Some(statement!(
        "agent-cpus-busy",
        host = worst.host,
        used = number(worst.used),
        cpus = worst.cpus
    ))
}

/// Worker threads that always ran or waited for a CPU, while other CPUs of the machine were idle: another
/// process uses the CPU that they are bound to. If all CPUs are busy, it is the load of the shared machine,
/// which has its own caveat.
fn waits_for_cpu(facts: &Facts<'_>, phase: &PhaseRecord) -> Option<Statement> {
    let used = |kind| {
        facts.document.resources.iter().find(|one| one.resource == kind && one.phase == phase.name)
    };
    let wait = used(ResourceKind::ClientCpuWait)?;
    let host_is_full = used(ResourceKind::HostCpu)
        .is_some_and(|host| host.busy_s >= FULL_RATIO * host.duration_s * host.units as f64);
    let threads = wait.units as f64 * wait.duration_s;
    let own_s = phase.client.cpu_user_s + phase.client.cpu_system_s;
    let wait_ratio = wait.busy_s / threads;
    let is_bound = wait_ratio >= WAIT_RATIO && (own_s + wait.busy_s) / threads >= BUSY_RATIO;
    (threads > 0.0 && is_bound && !host_is_full && !is_paced(phase))
        .then(|| statement!("client-waits-for-cpu", share = percent(wait_ratio)))
}

fn near_selfcheck(facts: &Facts<'_>, phase: &PhaseRecord) -> Option<Statement> {
    // The controller's machine says nothing about the hosts of a fleet.
    if facts.document.fleet.is_some() {
        return None;
    }
    let selfcheck = facts.document.selfcheck.as_ref()?;
    // Other processes took CPU time from the selfcheck: its figures say little about this machine.
    let other_load = selfcheck.pointer("/other_load/level").and_then(Value::as_str);
    if other_load == Some(Level::Fail.as_str()) {
        return None;
    }
    let per_core = selfcheck.pointer(SELFCHECK_RATE).and_then(Value::as_f64)?;
    let limit = per_core * facts.worker_cpus();
    let ratio = phase.achieved_rate_per_s / limit;
    (limit > 0.0 && ratio >= SELFCHECK_RATIO)
        .then(|| statement!("near-selfcheck", share = percent(ratio), limit = rate(limit)))
}

fn slow_turnaround(phase: &PhaseRecord) -> Option<Statement> {
    if phase.offered_rate_per_s.is_some() {
        return None;
    }
    let think_us = phase.mean_think_time_us.unwrap_or(0.0);
    let is_slow = |delay: &LatencySummary, service: &LatencySummary| {
        let cycle_us = think_us + service.p50;
        delay.p99 >= CLOSED_DELAY_FLOOR_US && delay.p99 >= CLOSED_DELAY_RATIO * cycle_us
    };
    let slow = phase.operations.iter().filter(|(_, operation)| {
        operation.count > 0 && is_slow(&operation.start_delay_us, &operation.service_time_us)
    });
    let (name, operation) =
        slow.max_by(|a, b| f64::total_cmp(&a.1.start_delay_us.p99, &b.1.start_delay_us.p99))?;
    Some(statement!(
        "slow-turnaround",
        operation = name,
        start_delay_p99 = us(operation.start_delay_us.p99),
        service_median = us(operation.service_time_us.p50)
    ))
}

/// Arrivals of the schedule were never sent.
pub(super) fn dropped_arrivals(facts: &Facts<'_>) -> Vec<Caveat> {
    of_phases(facts, CaveatKind::DroppedArrivals, |phase| {
        let arrivals = phase.arrivals.filter(|arrivals| arrivals.dropped > 0)?;
        let share = arrivals.dropped as f64 / arrivals.due.max(1) as f64;
        Some(statement!(
            "arrivals-never-sent",
            outage = facts.has_outage().then_some(true),
            dropped = arrivals.dropped,
            due = arrivals.due,
            share = percent(share)
        ))
    })
}

/// Many operations started late: response time includes waiting in the client.
pub(super) fn late_starts(facts: &Facts<'_>) -> Option<Caveat> {
    let share = Some(late_ratio(facts.measure?)).filter(|share| *share > LATE_RATIO)?;
    let said = statement!(
        "started-late",
        share = percent(share),
        outage = facts.has_outage().then_some(true)
    );
    Some(of_measure(CaveatKind::LateStarts, said))
}

/// Share of the started arrivals that were late; 0 with a closed loop.
fn late_ratio(phase: &PhaseRecord) -> f64 {
    match phase.arrivals {
        Some(arrivals) if arrivals.started > 0 => arrivals.late as f64 / arrivals.started as f64,
        _ => 0.0,
    }
}

/// The achieved rate is below the offered one.
pub(super) fn rate_not_achieved(facts: &Facts<'_>) -> Option<Caveat> {
    let phase = facts.measure?;
    let (offered, ratio) = shortfall(facts, phase)?;
    let said = statement!(
        "less-than-offered",
        outage = facts.has_outage().then_some(true),
        achieved = rate(phase.achieved_rate_per_s),
        offered = rate(offered),
        missing = percent(ratio)
    );
    Some(of_measure(CaveatKind::RateNotAchieved, said))
}

/// The offered rate and its missing share, if that is too large.
///
/// A phase lasts until its last operation has ended. The answer to the last arrivals takes one service time
/// with any server, so that much after the schedule's end is not a shortfall; a longer queue is one.
fn shortfall(facts: &Facts<'_>, phase: &PhaseRecord) -> Option<(f64, f64)> {
    let offered = phase.offered_rate_per_s.filter(|rate| *rate > 0.0)?;
    let expected = offered * phase.duration_s;
    let scheduled_s =
        phase.arrivals.map_or(phase.duration_s, |arrivals| arrivals.due as f64 / offered);
    let longest_service_s = phase
        .operations
        .values()
        .map(|operation| operation.service_time_us.max / 1e6)
        .fold(0.0, f64::max);
    let after_schedule_s = (phase.duration_s - scheduled_s).clamp(0.0, longest_service_s);
    let judged_s = phase.duration_s - after_schedule_s;
    if judged_s <= 0.0 {
        return None;
    }
    let deviation = match facts.plan.schedule_kind() {
        Some(ScheduleKind::Poisson) => expected.sqrt(),
        // Each client's slots begin at random, so the phase may contain one more or fewer of each.
        Some(ScheduleKind::Throttled) => {
            0.5 * (facts.document.clients().unwrap_or(0) as f64).sqrt()
        }
        _ => 0.0,
    };
    let chance = if expected > 0.0 { DEVIATIONS * deviation / expected } else { 0.0 };
    let missing = 1.0 - phase.achieved_rate_per_s * phase.duration_s / judged_s / offered;
    let shown = 1.0 - phase.achieved_rate_per_s / offered;
    (missing > RATE_SHORTFALL_RATIO.max(chance)).then_some((offered, shown))
}
