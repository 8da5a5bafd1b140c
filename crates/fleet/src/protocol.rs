//! Messages between agents and the controller. Messages are JSON; a window's histograms are attached as bytes.

use crate::clock::Offset;
use crate::error::FleetError;
use crate::merge::Began;
use dyno_engine::load_source;
use dyno_plan::{Plan, uri};
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{
    Caveat, Environment, HostSettingRecord, PhaseRecord, PlacementRecord, ResourceUse,
    StorageRecord,
};
use dyno_record::verdict::{Level, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Message version. Raised when one side would misread the other.
pub const PROTOCOL: u32 = 7;

/// Versions of the program and of its messages. Both must be equal on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Version of `dyno`, with its source revision if known.
    pub program: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
}

impl Version {
    /// This message version with the given program version.
    pub fn of(program: impl Into<String>) -> Self {
        Version { program: program.into(), protocol: PROTOCOL }
    }

    /// This program's version.
    pub fn current() -> Self {
        Version::of(dyno_engine::VERSION)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (messages {})", self.program, self.protocol)
    }
}

/// The controller, as announced to agents. The key expires with the lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    pub version: Version,
    /// Longest silence, in milliseconds.
    pub lease_ms: u64,
    /// Bound on unread messages of all agents in Redis; older ones are dropped. A work has its own bound.
    pub unread: u64,
    /// Distinguishes this controller from a second one of the same run.
    pub token: u64,
}

/// An agent that registers. Version and protocol come first, and stay in all versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    pub version: Version,
    /// Number, from 0.
    pub index: u32,
    pub host: HostFacts,
    /// Wall clock of the host against the clock of Redis.
    pub realtime: Offset,
}

/// Facts that a host reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    pub name: String,
    /// CPUs that its agent may use.
    pub cpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Results of `dyno doctor`, one line for each finding that is not good.
    pub findings: Vec<String>,
    /// Settings that `--apply` could not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
}

impl HostFacts {
    /// Replaces the results of the host checks.
    pub(crate) fn checked(&mut self, verdicts: Vec<Verdict>) {
        let bad = verdicts.iter().filter(|verdict| verdict.level >= Level::Warn);
        let text = |one: &Verdict| format!("{}: {}, {}", one.check, one.found, one.advised);
        self.findings = bad.map(text).collect();
        if let Some(environment) = &mut self.environment {
            environment.doctor = verdicts;
        }
    }
}

/// A part of the work that all agents begin at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Each agent loads its part of the data set.
    Load,
    /// Warm-up and measure phases.
    Run,
    /// Server hosts start their servers.
    Serve,
    /// Servers of all hosts join one replica set.
    Join,
    /// Server hosts read back their settings.
    Look,
}

impl From<load_source::PhaseGroup> for Step {
    fn from(group: load_source::PhaseGroup) -> Self {
        match group {
            load_source::PhaseGroup::Load => Step::Load,
            load_source::PhaseGroup::Run => Step::Run,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Step::Load => "loading",
            Step::Run => "the run",
            Step::Serve => "serving",
            Step::Join => "joining the replica set",
            Step::Look => "looking at the settings",
        })
    }
}

/// Message from the controller to all agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Down {
    /// New work; each agent's share is in the hash of shares.
    Work(Work),
    /// Begins a stage at an instant of the clock of Redis.
    Start {
        work: u32,
        step: Step,
        /// The instant, in nanoseconds since 1970.
        at_ns: i64,
    },
    /// Ends the work now and drops its windows; other work may follow.
    Cancel { work: u32, reason: String },
    /// Ends everything now.
    Abort { reason: String },
    /// There is no more work.
    Finish,
}

/// One run of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Number, from 1.
    pub number: u32,
    /// The plan as TOML, without secrets.
    pub plan: String,
    /// Connection strings of the servers by number, without credentials and files. To start servers: their listen addresses. To
    /// join them: all members as `HOST:PORT`.
    pub servers: Vec<String>,
    /// Whether the servers of all hosts form one replica set; the server of agent i is member i.
    #[serde(default)]
    pub is_set: bool,
    /// Stages, in order.
    pub steps: Vec<Step>,
    /// Worker threads of an agent, if configured; otherwise one for each CPU of its part of the host. Several servers divide them,
    /// with at least one each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Bound on unread messages of all agents in Redis; older ones are dropped. 0: the bound of the announcement.
    #[serde(default)]
    pub unread: u64,
    /// Agents on each host, which share its CPUs; 0 counts as 1.
    #[serde(default)]
    pub agents_per_host: u32,
}

/// The plan as sent to agents: fleet settings resolved, files of this machine removed.
pub(crate) fn plan_text(plan: &Plan) -> String {
    let mut plan = plan.clone();
    plan.fleet = None;
    if let Some(Ok((target, _))) = plan.server.uri.as_deref().map(uri::parse) {
        plan.server.uri = Some(target.with_files(None, None).to_string());
    }
    dyno_plan::file::to_toml(&plan)
}

/// An agent's report at the end of a stage.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepSummary {
    pub(crate) phases: Vec<PhaseRecord>,
    /// Worker threads.
    pub(crate) threads: u64,
    /// Utilization of the host during the phases.
    pub(crate) resources: Vec<ResourceUse>,
    /// Planned placement of the clients, and the placement after their start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<PlacementRecord>,
    /// Deviations between the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) placed_otherwise: Vec<String>,
    /// Seconds in which no thread of the agent ran after the common instant.
    #[serde(default)]
    pub(crate) stopped_s: f64,
}

/// Report of a server host after a stage.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StartedServers {
    /// Connection string of each server, without credentials and files. Empty for servers that run already, and for a member
    /// before it joins.
    pub(crate) uris: Vec<String>,
    /// Address of each server, as `HOST:PORT`.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// Planned placement on the host, and the placement after the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<PlacementRecord>,
    /// CPUs that the servers share, if they were placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<u32>,
    /// Settings of the host that were changed for the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) host_settings: Vec<HostSettingRecord>,
    /// Deviations from the plan, by the server's number on the host.
    #[serde(default)]
    pub(crate) caveats: Vec<Caveat>,
    /// Storage of each data folder, in the order of the servers; empty if one is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) data_storage: Vec<StorageRecord>,
    /// Why the data of servers that a cluster started does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lacks_room: Option<String>,
    /// Sources of watched servers that cannot be read, as texts.
    #[serde(default)]
    pub(crate) unread: Vec<String>,
    /// Host checks after the servers started; empty if unchanged since the agent joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) doctor: Vec<Verdict>,
    /// Settings that `--apply` could not change for these servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_applied: Vec<String>,
}

/// Message from an agent to the controller. `W` is a window, or a reference to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Up<W = IntervalRecord> {
    /// Current action, for messages if the agent falls silent.
    Doing { what: String },
    /// It waits for the start of a stage.
    Ready { work: u32, step: Step },
    /// It has begun a stage.
    Begun {
        work: u32,
        step: Step,
        /// Actual beginning, on the clock of Redis.
        #[serde(flatten)]
        began: Began,
    },
    /// A window on one server, with its histograms attached.
    Window { work: u32, server: u32, window: W },
    /// It sends no more windows of a server in this stage.
    ServerDone { work: u32, server: u32 },
    /// A stage has ended.
    Done {
        work: u32,
        step: Step,
        /// The agent's record, such as its `run.json`; empty if it has none.
        summary: serde_json::Value,
        /// Clock of the host at the end.
        realtime: Offset,
    },
    /// It ends because of an error.
    Failed { reason: String },
    /// It ends in order.
    Bye,
}

/// JSON of a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("serializable")
}

/// Decodes a message of `from`.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8], from: &str) -> Result<T, FleetError> {
    serde_json::from_slice(text)
        .map_err(|error| FleetError::Message { from: from.into(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_text_omits_files_of_the_controller() {
        let mut plan = dyno_plan::builtin::find("a").expect("built in");
        plan.server.kind = dyno_plan::model::ServerKind::Uri;
        plan.server.uri = Some("mongodb://db/?tlsCAFile=/home/anna/ca.pem&w=1".into());
        let text = plan_text(&plan);
        assert!(text.contains("mongodb://db:27017/?w=1&tls=true"), "{text}");
        assert!(!text.contains("anna"), "{text}");
    }

    #[test]
    fn messages_survive_their_form() {
        let start = Down::Start { work: 3, step: Step::Run, at_ns: 1_700_000_000_000_000_000 };
        assert_eq!(
            encode(&start),
            r#"{"start":{"work":3,"step":"run","at_ns":1700000000000000000}}"#
        );
        assert_eq!(decode::<Down>(encode(&start).as_bytes(), "x").expect("read"), start);
        let error = decode::<Down>(b"{\"dance\":{}}", "agent 3").expect_err("unknown");
        assert!(error.to_string().contains("agent 3"), "{error}");
    }
}
