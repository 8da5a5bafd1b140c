//! Other hosts in `run.json`: the hosts of a fleet, and the machines of remote servers.

use crate::model::{
    Environment, HostSettingRecord, PhaseKind, PhaseRecord, PlacementRecord, ResourceUse,
    RunDocument, ServerRecord, StorageRecord,
};
use crate::server::ServerMachine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Hosts of a fleet, measured as one. Their clocks are compared with the clock of Redis, where they met.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRecord {
    /// Name of the run in Redis.
    pub run: String,
    /// Mapping of client hosts to servers.
    pub mapping: String,
    /// Clients of all agents together.
    #[serde(default)]
    pub clients: u64,
    /// Intervals of the measure phase.
    #[serde(default)]
    pub measured_intervals: u64,
    /// Measured intervals during which every agent measured all the time.
    pub common_intervals: u64,
    /// Number of the first common interval.
    pub common_first_interval: u64,
    /// Number of the last common interval; absent without one.
    pub common_last_interval: Option<u64>,
    /// Successes per second in the common intervals: the rate of the fleet. Absent without common intervals.
    pub common_rate_per_s: Option<f64>,
    /// Time from the first agent's start to the last, in seconds; absent if no start was reported.
    pub start_skew_s: Option<f64>,
    /// Maximum error of `start_skew_s`, in seconds.
    pub start_skew_uncertainty_s: Option<f64>,
    /// Windows that arrived after their interval was closed; they count only in their agent's figures.
    pub late_windows: u64,
    /// Windows that are known to be missing.
    pub missing_windows: u64,
    /// Load agents, in the order of their numbers.
    pub agents: Vec<FleetAgentRecord>,
    /// Started servers, possibly several per host, or the observed hosts of servers that were already running, in the
    /// order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<FleetServerRecord>,
}

/// One agent of a fleet.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetAgentRecord {
    /// Number, from 0.
    pub number: u64,
    pub host: String,
    /// CPUs that the agent may use.
    pub cpus: u64,
    /// Worker threads; 0 if the agent was lost.
    pub threads: u64,
    /// Description of its share of the load.
    pub share: String,
    /// Offset in seconds that converts the host's clock to the clock of Redis.
    pub clock_offset_s: f64,
    /// Maximum error of `clock_offset_s`, in seconds.
    pub clock_uncertainty_s: f64,
    /// Time from the common start to the agent's actual start, in seconds; absent if it never began to measure.
    pub start_late_s: Option<f64>,
    /// Intervals of the measure phase that the agent missed in whole or in part because it began late.
    #[serde(default)]
    pub late_intervals: u64,
    /// Intervals of the measure phase by which the agent ended before the last agent.
    pub ended_early_intervals: u64,
    /// Phases as the agent recorded them; empty if it was lost.
    pub phases: Vec<PhaseRecord>,
    /// How busy the host was in each phase, if it could be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// Successful operations of the measure phase, as reported to the controller.
    pub succeeded: u64,
    /// Failed operations of the measure phase, as reported to the controller.
    pub failed: u64,
    /// Placement of its clients, if the plan has one: as planned, and as the kernel reported it after all clients had
    /// started.
    pub placement: Option<PlacementRecord>,
    /// Differences between the planned and the actual placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed_otherwise: Vec<String>,
    /// Time in the warm-up and measure phases during which none of its threads ran.
    #[serde(default)]
    pub stopped_s: f64,
    /// Host of the agent.
    pub environment: Option<Environment>,
    /// Problems that the host reported for a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Why the agent did not finish; absent if it did.
    pub lost: Option<String>,
}

/// A server of a fleet with its host, or a host with observed servers.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetServerRecord {
    /// Number, from 0.
    pub number: u64,
    pub host: String,
    /// CPUs of the host, or this server's part of them if several servers were started there.
    pub cpus: u64,
    /// Connection string of the started server, or comma-separated `HOST:PORT` of the servers that were already
    /// running.
    pub address: String,
    /// Placement of all started servers on the host, stored at its first server: as planned, and as the kernel reported
    /// it after they had started.
    pub placement: Option<PlacementRecord>,
    /// Settings of the host that were changed while its servers ran, stored at its first server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettingRecord>,
    /// Storage of each data folder; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_storage: Vec<StorageRecord>,
    /// Machine, stored at its first server.
    pub environment: Option<Environment>,
    /// Problems that the host reported for a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Checks of `dyno doctor` that were to be applied on the host but could not be, with the reason, stored at its
    /// first server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
}

/// CPU use of the agents on a host in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetHostUse<'a> {
    pub host: &'a str,
    /// CPUs that the agents can fill with their threads, at least 1.
    pub cpus: u64,
    /// CPUs that the agents used, averaged over the phase.
    pub used: f64,
}

impl FleetRecord {
    /// Known machines, by host name.
    pub fn machines(&self) -> BTreeMap<&str, &Environment> {
        let agents = self.agents.iter();
        let agents = agents.map(|agent| (&agent.host, &agent.environment));
        let servers = self.servers.iter();
        let servers = servers.map(|server| (&server.host, &server.environment));
        let all = agents.chain(servers);
        all.filter_map(|(host, environment)| Some((host.as_str(), environment.as_ref()?))).collect()
    }

    /// CPUs that the agents of all hosts can fill with their threads, at least 1.
    pub fn usable_cpus(&self) -> u64 {
        let usable = self.hosts().into_values().map(|agents| cpus_of(&agents));
        usable.sum::<u64>().max(1)
    }

    /// CPU use of the agents on each host in a phase that they recorded.
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

    /// Agents by host: several may share one.
    fn hosts(&self) -> BTreeMap<&str, Vec<&FleetAgentRecord>> {
        let mut hosts: BTreeMap<&str, Vec<&FleetAgentRecord>> = BTreeMap::new();
        for agent in &self.agents {
            hosts.entry(&agent.host).or_default().push(agent);
        }
        hosts
    }
}

impl RunDocument {
    /// Machines of remote servers, as the servers reported them, by server address, each machine once. Empty if agents
    /// have read the machines, because they know more.
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
    let (cpus, threads) = agents
        .iter()
        .fold((0, 0), |(cpus, threads), agent| (agent.cpus.max(cpus), agent.threads + threads));
    cpus.min(threads).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_several_agents_counts_once() {
        let agent = |host: &str, cpus, threads| FleetAgentRecord {
            host: host.into(),
            cpus,
            threads,
            ..FleetAgentRecord::default()
        };
        let fleet = |agents| FleetRecord { agents, ..FleetRecord::default() };
        let shared = fleet(vec![agent("a", 8, 4), agent("a", 8, 6), agent("b", 4, 1)]);
        assert_eq!(shared.usable_cpus(), 8 + 1);
        assert_eq!(shared.host_uses(PhaseKind::Measure).len(), 2);
        assert_eq!(fleet(vec![agent("a", 8, 0)]).usable_cpus(), 1, "lost");
    }

    #[test]
    fn machine_of_a_host_comes_from_any_agent_or_server() {
        let machine = |name: &str| {
            Some(Environment { hostname: Some(name.into()), ..Environment::default() })
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
