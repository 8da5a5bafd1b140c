//! What a run directory holds of a fleet.

use super::open::{Open, Places};
use crate::clock::Offset;
use crate::kubernetes::server_pod;
use crate::merge::Outcome;
use crate::protocol::StageSummary;
use dyno_engine::load_source::{Phases, Stage};
use dyno_plan::fleet::Mapping;
use dyno_plan::model::ServerKind;
use dyno_record::model::{Caveat, CaveatKind, FleetAgentRecord, FleetRecord, FleetServerRecord};
use std::collections::BTreeSet;

/// Seconds of nanoseconds.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// How an agent has ended a stage.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) summary: StageSummary,
    pub(super) realtime: Offset,
}

pub(super) fn servers(open: &Open) -> Vec<FleetServerRecord> {
    if let Places::Cluster(cluster) = &open.places {
        // Servers that run already are in no pod of the run.
        let pods = match open.kind {
            ServerKind::Uri => Vec::new(),
            _ => cluster.server_pods(),
        };
        return (0..)
            .zip(pods.into_iter().zip(&open.uris))
            .map(|(number, (server, uri))| {
                let node = open.server_hosts.get(server.pod as usize);
                let node = node.map(|node| &node.host);
                // The servers of a pod are on the same node.
                let finder = node.filter(|_| server.disk == 0);
                FleetServerRecord {
                    number,
                    host: node.map_or_else(|| server_pod(server.pod), |node| node.name.clone()),
                    cpus: cluster
                        .server_cpus(&server, node.map(|node| node.cpus))
                        .into(),
                    address: uri.clone(),
                    findings: finder.map_or_else(Vec::new, |node| node.findings.clone()),
                }
            })
            .collect();
    }
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
        record.measured_intervals = outcome.measured_intervals;
        record.common_first_interval = common.first_interval;
        record.common_last_interval = (common.intervals > 0).then_some(common.last_interval);
        record.common_rate_per_s = (common.intervals > 0).then_some(common.rate_per_s);
        let mut agents = outcome.agents.iter();
        let has_begun = agents.any(|agent| agent.start_late_ns.is_some());
        let known = |ns: u64| has_begun.then(|| seconds(ns as i64));
        record.start_skew_s = known(outcome.start_skew_ns);
        record.start_skew_uncertainty_s = known(outcome.start_skew_uncertainty_ns);
    }
    let mut hosts = BTreeSet::new();
    let all = open.agents.iter().zip(outcome.agents).zip(ended);
    for (agent, ((registration, outcome), ended)) in record.agents.iter_mut().zip(all) {
        agent.number = registration.index.into();
        agent.host.clone_from(&registration.host.name);
        agent.cpus = registration.host.cpus.into();
        // Several agents of a host found the same there.
        if hosts.insert(registration.host.name.as_str()) {
            agent.findings.clone_from(&registration.host.findings);
        }
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
            agent.late_intervals = outcome.late_intervals;
            agent.ended_early_intervals = outcome.ended_early;
            agent.succeeded = outcome.succeeded;
            agent.failed = outcome.failed;
        }
    }
}

/// Agents of a kind that are named one by one.
const MOST_NAMED: usize = 5;

/// Reasons to doubt the figures of a fleet.
pub(super) fn caveats(record: &FleetRecord) -> Vec<Caveat> {
    let mut messages = agent_caveats(&record.agents);
    if record.missing_windows > 0 {
        messages.push(format!(
            "{} messages of agents are missing",
            record.missing_windows
        ));
    }
    if record.late_windows > 0 {
        messages.push(format!(
            "{} windows came too late for their interval; they are in no figure but those of their agents",
            record.late_windows
        ));
    }
    let has_measured = record.agents.iter().any(|agent| agent.succeeded > 0);
    if has_measured && record.common_intervals == 0 {
        messages.push("there is no interval in which all agents measured".into());
    }
    // The last interval is usually not a whole one.
    if record.common_intervals > 0 && record.common_intervals + 1 < record.measured_intervals {
        messages.push(format!(
            "all agents measured in {} of {} intervals; what is estimated from intervals is of those",
            record.common_intervals, record.measured_intervals
        ));
    }
    let caveat = |message| Caveat {
        kind: CaveatKind::Fleet,
        message,
        hint: None,
        phase: None,
    };
    messages.into_iter().map(caveat).collect()
}

/// Why the figures of agents may be off: a sentence about each, or one about many of a kind.
fn agent_caveats(agents: &[FleetAgentRecord]) -> Vec<String> {
    let is_lost = |agent: &&FleetAgentRecord| agent.lost.is_some();
    let is_late = |agent: &&FleetAgentRecord| agent.lost.is_none() && agent.late_intervals > 0;
    let is_early = |agent: &&FleetAgentRecord| {
        agent.lost.is_none() && agent.late_intervals == 0 && agent.ended_early_intervals > 1
    };
    let mut messages = Vec::new();
    let mut report = |found: Vec<&FleetAgentRecord>,
                      each: &dyn Fn(&FleetAgentRecord) -> String,
                      many: &dyn Fn(&[&FleetAgentRecord]) -> String| {
        if found.len() <= MOST_NAMED {
            let sentence = |agent: &&FleetAgentRecord| format!("{} {}", who(agent), each(agent));
            messages.extend(found.iter().map(sentence));
            return;
        }
        let named: Vec<String> = found.iter().take(MOST_NAMED).map(|one| who(one)).collect();
        messages.push(format!(
            "{} of {} agents {}: {}, and {} more",
            found.len(),
            agents.len(),
            many(&found),
            named.join(", "),
            found.len() - MOST_NAMED
        ));
    };
    report(
        agents.iter().filter(is_lost).collect(),
        &|agent| {
            let reason = agent.lost.as_deref().unwrap_or_default();
            format!("was lost with its share of {}: {reason}", agent.share)
        },
        &|_| "were lost with their shares".to_owned(),
    );
    let late_s = |agent: &FleetAgentRecord| agent.start_late_s.unwrap_or(0.0);
    report(
        agents.iter().filter(is_late).collect(),
        &|agent| {
            format!(
                "began {:.2} s late, and was not there for the whole of {} intervals of the measure phase",
                late_s(agent),
                agent.late_intervals
            )
        },
        &|found| {
            let longest_s = found.iter().map(|agent| late_s(agent)).fold(0.0, f64::max);
            let intervals = found.iter().map(|agent| agent.late_intervals).max();
            format!(
                "began up to {longest_s:.2} s late, and were not there for the whole of up to {} intervals of the measure phase",
                intervals.unwrap_or(0)
            )
        },
    );
    report(
        agents.iter().filter(is_early).collect(),
        &|agent| {
            let early = agent.ended_early_intervals;
            format!("ended {early} intervals before the last one")
        },
        &|found| {
            let intervals = found.iter().map(|agent| agent.ended_early_intervals).max();
            format!(
                "ended up to {} intervals before the last one",
                intervals.unwrap_or(0)
            )
        },
    );
    messages
}

fn who(agent: &FleetAgentRecord) -> String {
    format!("agent {} on `{}`", agent.number, agent.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(count: u64, change: impl Fn(&mut FleetAgentRecord)) -> Vec<FleetAgentRecord> {
        let one = |number| {
            let mut agent = FleetAgentRecord {
                number,
                host: format!("h{number}"),
                share: "8 clients".to_owned(),
                ..FleetAgentRecord::default()
            };
            change(&mut agent);
            agent
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn few_agents_are_named_one_by_one_and_many_in_one_sentence() {
        assert_eq!(agent_caveats(&agents(100, |_| {})), Vec::<String>::new());
        let lost = |agent: &mut FleetAgentRecord| {
            agent.lost = Some("silent".to_owned());
            agent.late_intervals = 3;
        };
        assert_eq!(
            agent_caveats(&agents(1, lost)),
            ["agent 0 on `h0` was lost with its share of 8 clients: silent"]
        );
        let late = |agent: &mut FleetAgentRecord| {
            agent.late_intervals = agent.number / 10 + 1;
            agent.start_late_s = Some(agent.number as f64 / 100.0);
        };
        assert_eq!(agent_caveats(&agents(5, late)).len(), 5);
        let many = agent_caveats(&agents(30, late));
        assert_eq!(
            many,
            [
                "30 of 30 agents began up to 0.29 s late, and were not there for the whole of up to 3 intervals of the \
                 measure phase: agent 0 on `h0`, agent 1 on `h1`, agent 2 on `h2`, agent 3 on `h3`, agent 4 on `h4`, and \
                 25 more"
            ]
        );
    }
}
