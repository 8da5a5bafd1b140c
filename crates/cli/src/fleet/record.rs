//! What a run directory holds of a fleet.

use super::agent::Summary;
use super::{Open, Phases};
use dyno_fleet::clock::Offset;
use dyno_fleet::merge::Outcome;
use dyno_fleet::protocol::Stage;
use dyno_plan::Plan;
use dyno_plan::fleet::Mapping;
use dyno_plan::model::PageCache;
use dyno_record::model::{Caveat, CaveatKind, FleetAgentRecord, FleetRecord, FleetServerRecord};

/// Seconds of nanoseconds.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// How an agent has ended a stage.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) summary: Summary,
    pub(super) realtime: Offset,
}

/// A key of the plan that is about the machine of this program.
pub(super) fn unsupported(plan: &Plan) -> Option<&'static str> {
    let server = &plan.server;
    [
        ("traces", !plan.traces.is_empty()),
        ("trace", plan.trace.is_some()),
        ("data.page_cache", plan.data.page_cache != PageCache::Keep),
        (
            "server.receive_packet_steering",
            server.receive_packet_steering.is_some(),
        ),
        ("server.listen", server.listen.is_some()),
        ("server.auth", server.auth),
        (
            "server.encryption",
            server.encryption != dyno_plan::model::Encryption::Off,
        ),
    ]
    .into_iter()
    .find_map(|(key, is_given)| is_given.then_some(key))
}

pub(super) fn servers(open: &Open) -> Vec<FleetServerRecord> {
    let hosts = open.server_hosts.iter().zip(&open.uris);
    hosts
        .map(|(host, uri)| FleetServerRecord {
            number: host.index.into(),
            host: host.host.name.clone(),
            cpus: host.host.cpus.into(),
            address: uri.clone(),
            findings: host.host.findings.clone(),
        })
        .collect()
}

/// Adds what a stage has brought. Loading comes first, and is a part of what an agent did.
pub(super) fn extend(
    record: &mut FleetRecord,
    open: &Open,
    phases: &Phases<'_>,
    outcome: Outcome,
    ended: Vec<Option<Ended>>,
) {
    record.run.clone_from(&open.run);
    record.mapping = match phases.plan.fleet.as_ref().map(|fleet| fleet.mapping) {
        Some(Mapping::Pairs) => "pairs",
        Some(Mapping::AllToAll) => "all-to-all",
        Some(Mapping::Deployment) | None => "deployment",
    }
    .into();
    record.servers = servers(open);
    record.late_windows += outcome.late_windows;
    record.missing_windows += outcome.missing_windows;
    if record.agents.is_empty() {
        record.agents = open.agents.iter().map(|_| Default::default()).collect();
    }
    let is_run = phases.stage == Stage::Run;
    if is_run {
        let common = &outcome.common;
        record.common_intervals = common.intervals;
        record.common_first_interval = common.first_interval;
        record.common_rate_per_s = (common.intervals > 0).then_some(common.rate_per_s);
        record.start_skew_s = seconds(outcome.start_skew_ns as i64);
        record.start_skew_uncertainty_s = seconds(outcome.start_skew_uncertainty_ns as i64);
    }
    let all = open.agents.iter().zip(outcome.agents).zip(ended);
    for (agent, ((registration, outcome), ended)) in record.agents.iter_mut().zip(all) {
        agent.number = registration.index.into();
        agent.host.clone_from(&registration.host.name);
        agent.cpus = registration.host.cpus.into();
        agent.findings.clone_from(&registration.host.findings);
        agent.share = outcome.share;
        agent.lost = agent.lost.take().or(outcome.lost);
        let mut clock = registration.realtime;
        if let Some(Ended { summary, realtime }) = ended {
            clock = realtime;
            agent.threads = agent.threads.max(summary.threads);
            agent.phases.extend(summary.phases);
            agent.resources.extend(summary.resources);
        }
        agent.clock_offset_s = seconds(clock.offset_ns);
        agent.clock_uncertainty_s = seconds(clock.uncertainty_ns as i64);
        if is_run {
            agent.start_late_s = outcome.start_late_ns.map(seconds);
            agent.ended_early_intervals = outcome.ended_early;
            agent.succeeded = outcome.succeeded;
            agent.failed = outcome.failed;
        }
    }
}

/// Reasons to doubt the figures of a fleet.
pub(crate) fn caveats(record: &FleetRecord) -> Vec<Caveat> {
    let mut doubts: Vec<String> = record.agents.iter().filter_map(of_agent).collect();
    if record.missing_windows > 0 {
        doubts.push(format!(
            "{} messages of agents are missing",
            record.missing_windows
        ));
    }
    if record.late_windows > 0 {
        doubts.push(format!(
            "{} windows came too late for their interval; they are in no figure but those of their agents",
            record.late_windows
        ));
    }
    let has_measured = record.agents.iter().any(|agent| agent.succeeded > 0);
    if has_measured && record.common_intervals == 0 {
        doubts.push("there is no interval in which all agents measured".into());
    }
    let caveat = |message| Caveat {
        kind: CaveatKind::Fleet,
        message,
        hint: None,
        phase: None,
    };
    doubts.into_iter().map(caveat).collect()
}

fn of_agent(agent: &FleetAgentRecord) -> Option<String> {
    let who = format!("agent {} on `{}`", agent.number, agent.host);
    if let Some(reason) = &agent.lost {
        return Some(format!(
            "{who} was lost with its share of {}: {reason}",
            agent.share
        ));
    }
    let early = agent.ended_early_intervals;
    (early > 1).then(|| format!("{who} ended {early} intervals before the last one"))
}
