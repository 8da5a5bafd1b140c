//! What `run.json` holds of other hosts: those of a fleet, and the machines that servers elsewhere tell of.

use crate::model::{
    Environment, PhaseKind, PhaseRecord, PlacementRecord, ResourceUse, RunDocument, ServerRecord,
    SteeringRecord, StorageRecord,
};
use crate::server::ServerMachine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Many hosts that were measured as one. Their clocks are compared with that of Redis, which they met at.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRecord {
    /// Name of the run in Redis.
    pub run: String,
    /// Which client host loaded which servers.
    pub mapping: String,
    /// Clients of all agents together.
    #[serde(default)]
    pub clients: u64,
    /// Intervals of the measure phase.
    #[serde(default)]
    pub measured_intervals: u64,
    /// Those of them in which every agent measured for the whole interval.
    pub common_intervals: u64,
    /// Number of the first of them.
    pub common_first_interval: u64,
    /// Number of the last of them; absent without one.
    pub common_last_interval: Option<u64>,
    /// Successes per second in them: the rate of the fleet. Absent without such an interval.
    pub common_rate_per_s: Option<f64>,
    /// From the first start of an agent to the last, in seconds; absent if nobody told a start.
    pub start_skew_s: Option<f64>,
    /// How far that may be off, in seconds.
    pub start_skew_uncertainty_s: Option<f64>,
    /// Windows that came too late for their interval; they are in no figure but those of their agent.
    pub late_windows: u64,
    /// Windows that are known to be missing.
    pub missing_windows: u64,
    /// Those that loaded the servers, in the order of their numbers.
    pub agents: Vec<FleetAgentRecord>,
    /// The servers that were started, several of which can be on one host, or the hosts of those that ran already and were
    /// watched, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<FleetServerRecord>,
}

/// One agent of a fleet.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetAgentRecord {
    /// Number, from 0.
    pub number: u64,
    /// Its host.
    pub host: String,
    /// CPUs that it may use.
    pub cpus: u64,
    /// Worker threads that it had; 0 if it was lost.
    pub threads: u64,
    /// What its share was, in words.
    pub share: String,
    /// Clock of the host against that of Redis, in seconds: what has to be added to it.
    pub clock_offset_s: f64,
    /// How far that may be off, in seconds.
    pub clock_uncertainty_s: f64,
    /// From the common instant to its real start, in seconds; absent if it never began to measure.
    pub start_late_s: Option<f64>,
    /// Intervals of the measure phase that it was not there for from their start on, as it began later.
    #[serde(default)]
    pub late_intervals: u64,
    /// Intervals of the measure phase by which it ended before the last agent.
    pub ended_early_intervals: u64,
    /// Its phases, as it recorded them itself; empty if it was lost.
    pub phases: Vec<PhaseRecord>,
    /// How busy its host was in each phase, where it could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// Operations of the measure phase that the controller heard of and that succeeded.
    pub succeeded: u64,
    /// Operations of the measure phase that the controller heard of and that failed.
    pub failed: u64,
    /// The place of its clients, if the plan names one: planned, and as the kernel said when all of them had begun to run.
    pub placement: Option<PlacementRecord>,
    /// Each difference between the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed_otherwise: Vec<String>,
    /// Time of the warm-up and measure phase in which none of its threads ran.
    #[serde(default)]
    pub stopped_s: f64,
    /// Its host; absent in records of earlier versions.
    pub environment: Option<Environment>,
    /// What its host says of itself that is not good for a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Why it did not go on to the end; absent if it did.
    pub lost: Option<String>,
}

/// A server of a fleet with its host, or a host whose servers were watched.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetServerRecord {
    /// Number, from 0.
    pub number: u64,
    /// The host.
    pub host: String,
    /// Its CPUs, or the part of them that this server has if several were started there.
    pub cpus: u64,
    /// Connection string of what was started there, or `HOST:PORT` of the servers that ran there, separated by commas.
    pub address: String,
    /// Places of all servers that were started on the host, at its first server: planned, and as the kernel said when they had
    /// started.
    pub placement: Option<PlacementRecord>,
    /// How the packets of a network card of the host were spread over CPUs while its servers ran, at its first server; absent
    /// unless that was asked for.
    pub packet_steering: Option<SteeringRecord>,
    /// The storage of each of its data folders; empty where they are not known, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_storage: Vec<StorageRecord>,
    /// Its machine, at its first server; absent in records of earlier versions.
    pub environment: Option<Environment>,
    /// What the host says of itself that is not good for a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Checks of `dyno doctor` that were to be followed there and could not be, with the reason, at its first server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
}

/// What the agents of one host used of it in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetHostUse<'a> {
    /// The host.
    pub host: &'a str,
    /// CPUs that its agents can fill with their threads, at least 1.
    pub cpus: u64,
    /// CPUs that they used, on average over the phase.
    pub used: f64,
}

impl FleetRecord {
    /// The machines of all hosts that told of theirs, by their names.
    pub fn machines(&self) -> BTreeMap<&str, &Environment> {
        let agents = self.agents.iter();
        let agents = agents.map(|agent| (&agent.host, &agent.environment));
        let servers = self.servers.iter();
        let servers = servers.map(|server| (&server.host, &server.environment));
        let all = agents.chain(servers);
        all.filter_map(|(host, environment)| Some((host.as_str(), environment.as_ref()?)))
            .collect()
    }

    /// CPUs that the agents of all hosts can fill with their threads, at least 1.
    pub fn usable_cpus(&self) -> u64 {
        let usable = self.hosts().into_values().map(|agents| cpus_of(&agents));
        usable.sum::<u64>().max(1)
    }

    /// What the agents of each host used of it in a phase that they recorded.
    pub fn host_uses(&self, phase: PhaseKind) -> Vec<FleetHostUse<'_>> {
        let used = |agents: &[&FleetAgentRecord]| {
            let phases = agents.iter().flat_map(|agent| &agent.phases);
            let measured = phases.filter(|found| found.name == phase && found.duration_s > 0.0);
            measured.fold(0.0, |sum, found| {
                sum + (found.client.cpu_user_s + found.client.cpu_system_s) / found.duration_s
            })
        };
        let uses = self.hosts().into_iter().map(|(host, agents)| FleetHostUse {
            host,
            cpus: cpus_of(&agents),
            used: used(&agents),
        });
        uses.collect()
    }

    /// The agents of each host: several may share one.
    fn hosts(&self) -> BTreeMap<&str, Vec<&FleetAgentRecord>> {
        let mut hosts: BTreeMap<&str, Vec<&FleetAgentRecord>> = BTreeMap::new();
        for agent in &self.agents {
            hosts.entry(&agent.host).or_default().push(agent);
        }
        hosts
    }
}

impl RunDocument {
    /// The machines of servers elsewhere, as these told of them, by the addresses of the servers, each machine once. Empty where
    /// agents have read them, who know more.
    pub fn server_machines(&self) -> BTreeMap<&str, &ServerMachine> {
        let mut of_fleet = self.fleet.iter().flat_map(|fleet| &fleet.servers);
        if of_fleet.any(|server| server.environment.is_some()) {
            return BTreeMap::new();
        }
        let servers: Vec<&ServerRecord> = match self.instances.as_slice() {
            [] => vec![&self.server],
            instances => instances.iter().map(|one| &one.server).collect(),
        };
        let mut found: BTreeMap<&str, &ServerMachine> = BTreeMap::new();
        for server in servers {
            if let Some(machine) = &server.machine
                && !found.values().any(|known| *known == machine)
            {
                found.insert(&server.address, machine);
            }
        }
        found
    }
}

/// CPUs that the agents of a host can fill with their threads, at least 1.
fn cpus_of(agents: &[&FleetAgentRecord]) -> u64 {
    let (cpus, threads) = agents.iter().fold((0, 0), |(cpus, threads), agent| {
        (agent.cpus.max(cpus), agent.threads + threads)
    });
    cpus.min(threads).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_counts_once_however_many_agents_it_has() {
        let agent = |host: &str, cpus, threads| FleetAgentRecord {
            host: host.into(),
            cpus,
            threads,
            ..FleetAgentRecord::default()
        };
        let fleet = |agents| FleetRecord {
            agents,
            ..FleetRecord::default()
        };
        let shared = fleet(vec![agent("a", 8, 4), agent("a", 8, 6), agent("b", 4, 1)]);
        assert_eq!(shared.usable_cpus(), 8 + 1);
        assert_eq!(shared.host_uses(PhaseKind::Measure).len(), 2);
        assert_eq!(fleet(vec![agent("a", 8, 0)]).usable_cpus(), 1, "lost");
    }

    #[test]
    fn the_machine_of_a_host_is_that_of_whoever_told_of_it() {
        let machine = |name: &str| {
            Some(Environment {
                hostname: Some(name.into()),
                ..Environment::default()
            })
        };
        let agent = |host: &str, environment| FleetAgentRecord {
            host: host.into(),
            environment,
            ..FleetAgentRecord::default()
        };
        let server = |host: &str, environment| FleetServerRecord {
            host: host.into(),
            environment,
            ..FleetServerRecord::default()
        };
        let fleet = FleetRecord {
            agents: vec![agent("a", machine("a")), agent("a", None), agent("b", None)],
            servers: vec![server("c", machine("c")), server("c", None)],
            ..FleetRecord::default()
        };
        let found = fleet.machines().into_iter();
        let found = found.map(|(host, machine)| (host, machine.hostname.as_deref()));
        let expected = [("a", Some("a")), ("c", Some("c"))];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
