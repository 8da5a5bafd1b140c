//! The part of the run directory about the fleet.

use super::cluster::Cluster;
use super::on_servers::OnServers;
use super::open::{Open, Places, dealt};
use super::watched::RunningServer;
use crate::clock::Offset;
use crate::kubernetes::{PodServer, server_pod};
use crate::merge::Outcome;
use crate::protocol::{HostFacts, StepSummary};
use crate::shares::{Share, even};
use dyno_engine::load_source::{PhaseGroup, Phases};
use dyno_plan::model::ServerKind;
use dyno_record::document::variant_name;
use dyno_record::model::{Caveat, CaveatKind, FleetAgentRecord, FleetRecord, FleetServerRecord};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};
use std::collections::BTreeSet;

/// Nanoseconds as seconds.
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// An agent's end of a stage.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) summary: StepSummary,
    pub(super) realtime: Offset,
}

/// A server, with the facts about its machine if it is the first one there.
fn server(number: u64, host: Option<&HostFacts>, is_first: bool) -> FleetServerRecord {
    let facts = host.filter(|_| is_first).cloned().unwrap_or_default();
    FleetServerRecord {
        number,
        host: host.map(|host| host.name.clone()).unwrap_or_default(),
        environment: facts.environment,
        findings: facts.findings,
        not_applied: facts.not_applied,
        ..FleetServerRecord::default()
    }
}

pub(super) fn servers(open: &Open) -> Vec<FleetServerRecord> {
    match &open.places {
        // Running servers are not in pods of the run.
        Places::Cluster(_) if open.kind == ServerKind::Uri => Vec::new(),
        Places::Cluster(cluster) => servers_in_pods(open, cluster),
        Places::Hosts(..) => servers_on_hosts(open),
    }
}

fn servers_in_pods(open: &Open, cluster: &Cluster) -> Vec<FleetServerRecord> {
    let pods = cluster.server_pods();
    let of_pod = |pod: u32| pods.iter().filter(move |one| one.pod == pod).count();
    let record = |(number, (pod, uri)): (u64, (&PodServer, &String))| {
        let node = open.server_hosts.get(pod.pod as usize).map(|node| &node.host);
        let own = server(number, node, pod.number == 0);
        let storage = open.watched_storage.get(pod.pod as usize).cloned().unwrap_or_default();
        let mut storage = dealt(storage, of_pod(pod.pod)).into_iter();
        FleetServerRecord {
            host: node.map_or_else(|| server_pod(pod.pod), |_| own.host),
            cpus: cluster.server_cpus(pod, node.map(|node| node.cpus)).into(),
            address: uri.clone(),
            data_storage: storage.nth(pod.number as usize).unwrap_or_default(),
            ..own
        }
    };
    (0..).zip(pods.iter().zip(&open.uris)).map(record).collect()
}

fn servers_on_hosts(open: &Open) -> Vec<FleetServerRecord> {
    let placed: Vec<(usize, String)> = match &open.on_servers {
        OnServers::Start { .. } => {
            open.started.iter().map(|server| (server.host, server.place.clone())).collect()
        }
        OnServers::Watch { hosts, .. } => {
            hosts.iter().map(|servers| addresses(servers)).enumerate().collect()
        }
    };
    let record = |(number, (index, address)): (usize, &(usize, String))| {
        let host = &open.server_hosts.get(*index)?.host;
        let is_there = |(other, _): &&(usize, String)| other == index;
        let turn = placed[..number].iter().filter(is_there).count();
        let all = placed.iter().filter(is_there).count();
        let started = open.started.get(number);
        let cpus = started.and_then(|server| server.cpus).unwrap_or(host.cpus);
        Some(FleetServerRecord {
            cpus: even(cpus.into(), turn as u64, all as u64),
            address: address.clone(),
            placement: started.and_then(|server| server.placement.clone()),
            host_settings: started.map_or_else(Vec::new, |server| server.host_settings.clone()),
            data_storage: match started {
                Some(server) => server.data_storage.clone(),
                None => open.watched_storage.get(*index).cloned().unwrap_or_default(),
            },
            ..server(number as u64, Some(host), turn == 0)
        })
    };
    placed.iter().enumerate().filter_map(record).collect()
}

/// Addresses of the servers of a host.
fn addresses(servers: &[RunningServer]) -> String {
    let all: Vec<String> = servers.iter().map(RunningServer::address).collect();
    all.join(", ")
}

/// Adds a stage's results. The load phase comes first, and is only a part of an agent's work.
pub(super) fn extend(
    record: &mut FleetRecord,
    open: &Open,
    phases: &Phases<'_>,
    shares: &[Share],
    outcome: Outcome,
    ended: Vec<Option<Ended>>,
) {
    record.run.clone_from(&open.run);
    let mapping = phases.plan.fleet.as_ref().map(|fleet| fleet.mapping);
    record.mapping = variant_name(&mapping.unwrap_or_default());
    record.servers = servers(open);
    record.late_windows += outcome.late_windows;
    record.missing_windows += outcome.missing_windows;
    if record.agents.is_empty() {
        record.agents = open.agents.iter().map(|_| Default::default()).collect();
    }
    let is_run = phases.group == PhaseGroup::Run;
    if is_run {
        let common = &outcome.common;
        record.common_intervals = common.intervals;
        record.measured_intervals = outcome.measured_intervals;
        record.common_first_interval = common.first_interval;
        record.common_last_interval = (common.intervals > 0).then_some(common.last_interval);
        record.common_rate_per_s = (common.intervals > 0).then_some(common.rate_per_s);
        let has_begun = outcome.agents.iter().any(|agent| agent.start_late_ns.is_some());
        let known = |ns: u64| has_begun.then(|| seconds(ns as i64));
        record.start_skew_s = known(outcome.start_skew_ns);
        record.start_skew_uncertainty_s = known(outcome.start_skew_uncertainty_ns);
    }
    let mut hosts = BTreeSet::new();
    let all = open.agents.iter().zip(shares);
    let all = all.zip(outcome.agents.into_iter().zip(ended));
    for (agent, ((registration, share), (outcome, ended))) in record.agents.iter_mut().zip(all) {
        agent.number = registration.index.into();
        agent.host.clone_from(&registration.host.name);
        agent.cpus = registration.host.cpus.into();
        // Several agents of a host report the same findings.
        if hosts.insert(registration.host.name.as_str()) {
            agent.findings.clone_from(&registration.host.findings);
            let environment = &registration.host.environment;
            agent.environment.clone_from(environment);
        }
        agent.share = share.describe();
        agent.lost = agent.lost.take().or(outcome.lost);
        let mut clock = registration.realtime;
        if let Some(Ended { summary, realtime }) = ended {
            clock = realtime;
            agent.threads = agent.threads.max(summary.threads);
            agent.phases.extend(summary.phases);
            agent.resources.extend(summary.resources);
            // The load phase has the same placement, which is not checked there.
            agent.placement = summary.placement;
            agent.placed_otherwise = summary.placed_otherwise;
            agent.stopped_s = summary.stopped_s;
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

/// Largest number of agents with the same caveat that are named one by one.
const MOST_NAMED: usize = 5;

/// Caveats about the figures of a fleet.
pub(super) fn caveats(record: &FleetRecord) -> Vec<Caveat> {
    let mut said = agent_caveats(&record.agents);
    if record.missing_windows > 0 {
        said.push(statement!("agent-messages-missing", messages = record.missing_windows));
    }
    if record.late_windows > 0 {
        said.push(statement!("agent-windows-late", windows = record.late_windows));
    }
    let has_measured = record.agents.iter().any(|agent| agent.succeeded > 0);
    if has_measured && record.common_intervals == 0 {
        said.push(statement!("no-common-interval"));
    }
    // The last interval is usually incomplete.
    if record.common_intervals > 0 && record.common_intervals + 1 < record.measured_intervals {
        said.push(statement!(
            "few-common-intervals",
            common = record.common_intervals,
            measured = record.measured_intervals
        ));
    }
    let caveat = |statement| Caveat::of_run(CaveatKind::Fleet, statement);
    said.into_iter().map(caveat).collect()
}

/// Caveats about agents: one for each agent, or one for many agents of a kind.
fn agent_caveats(agents: &[FleetAgentRecord]) -> Vec<Statement> {
    let is_lost = |agent: &&FleetAgentRecord| agent.lost.is_some();
    let is_late = |agent: &&FleetAgentRecord| agent.lost.is_none() && agent.late_intervals > 0;
    let is_early = |agent: &&FleetAgentRecord| {
        agent.lost.is_none() && agent.late_intervals == 0 && agent.ended_early_intervals > 1
    };
    let mut said = Vec::new();
    let mut report = |found: Vec<&FleetAgentRecord>,
                      each: &dyn Fn(&FleetAgentRecord) -> Statement,
                      many: &dyn Fn(&[&FleetAgentRecord]) -> Statement| {
        if found.len() <= MOST_NAMED {
            said.extend(found.iter().map(|agent| of_agent(agent, each(agent))));
            return;
        }
        let named = found.iter().take(MOST_NAMED);
        let named = named.map(|agent| of_agent(agent, statement!("agent")));
        said.push(
            many(&found)
                .with("agents", found.len())
                .with("all", agents.len())
                .with("named", named.collect::<Vec<_>>())
                .with("more", found.len() - MOST_NAMED),
        );
    };
    report(
        agents.iter().filter(is_lost).collect(),
        &|agent| {
            let reason = agent.lost.as_deref().unwrap_or_default();
            statement!("agent-lost", share = &agent.share, reason = reason)
        },
        &|_| statement!("agents-lost"),
    );
    let late_s = |agent: &FleetAgentRecord| agent.start_late_s.unwrap_or(0.0);
    let late = |late_s: f64, intervals: u64, code: &str| {
        let late = Number::new(late_s, Unit::Seconds);
        statement!(code, late = late, intervals = intervals)
    };
    report(
        agents.iter().filter(is_late).collect(),
        &|agent| late(late_s(agent), agent.late_intervals, "agent-late"),
        &|found| {
            let longest_s = found.iter().map(|agent| late_s(agent)).fold(0.0, f64::max);
            let intervals = found.iter().map(|agent| agent.late_intervals).max();
            late(longest_s, intervals.unwrap_or(0), "agents-late")
        },
    );
    report(
        agents.iter().filter(is_early).collect(),
        &|agent| statement!("agent-ended-early", intervals = agent.ended_early_intervals),
        &|found| {
            let intervals = found.iter().map(|agent| agent.ended_early_intervals).max();
            statement!("agents-ended-early", intervals = intervals)
        },
    );
    let is_elsewhere = |agent: &&FleetAgentRecord| !agent.placed_otherwise.is_empty();
    report(
        agents.iter().filter(is_elsewhere).collect(),
        &|agent| {
            let deviations = agent.placed_otherwise.join("; ");
            statement!("agent-placed-otherwise", deviations = deviations)
        },
        &|_| statement!("agents-placed-otherwise"),
    );
    let stood_still = |stopped_s: f64, code: &str| {
        let stopped = Number::new(stopped_s, Unit::Seconds);
        statement!(code, stopped = stopped)
    };
    report(
        agents.iter().filter(|agent| agent.stopped_s > 0.0).collect(),
        &|agent| stood_still(agent.stopped_s, "agent-stood-still"),
        &|found| {
            let longest_s = found.iter().map(|agent| agent.stopped_s).fold(0.0, f64::max);
            stood_still(longest_s, "agents-stood-still")
        },
    );
    said
}

fn of_agent(agent: &FleetAgentRecord, statement: Statement) -> Statement {
    let number = Number::new(agent.number as f64, Unit::Exact);
    statement.with("agent", number).with("host", &agent.host)
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
    fn few_agents_get_a_caveat_each_and_many_share_one() {
        assert_eq!(agent_caveats(&agents(100, |_| {})), Vec::new());
        let lost = |agent: &mut FleetAgentRecord| {
            agent.lost = Some("silent".to_owned());
            agent.late_intervals = 3;
        };
        assert_eq!(
            agent_caveats(&agents(1, lost))[0].to_string(),
            "agent-lost (agent: 0, host: h0, reason: silent, share: 8 clients)"
        );
        let late = |agent: &mut FleetAgentRecord| {
            agent.late_intervals = agent.number / 10 + 1;
            agent.start_late_s = Some(agent.number as f64 / 100.0);
        };
        assert_eq!(agent_caveats(&agents(5, late)).len(), 5);
        let many = agent_caveats(&agents(30, late));
        assert_eq!(many.len(), 1);
        assert_eq!(many[0].code, "agents-late");
        assert_eq!(many[0].number("late"), Some(0.29));
        let elsewhere = |agent: &mut FleetAgentRecord| {
            let deviations = ["on CPU 1", "not on CPU 0"].map(str::to_owned);
            agent.placed_otherwise = deviations.into();
        };
        assert_eq!(
            agent_caveats(&agents(1, elsewhere))[0].to_string(),
            "agent-placed-otherwise (agent: 0, deviations: on CPU 1; not on CPU 0, host: h0)"
        );
        let stopped = agent_caveats(&agents(1, |agent| agent.stopped_s = 2.0));
        assert_eq!(stopped[0].code, "agent-stood-still");
        assert_eq!(stopped[0].number("stopped"), Some(2.0));
        let counts = ["agents", "all", "intervals", "more"].map(|name| many[0].number(name));
        assert_eq!(counts, [Some(30.0), Some(30.0), Some(3.0), Some(25.0)]);
        let named = many[0].values["named"].to_string();
        assert!(named.starts_with("[agent (agent: 0, host: h0), agent (agent: 1,"), "{named}");
    }
}
