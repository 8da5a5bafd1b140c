//! What agents and the controller say to each other. Messages are JSON; a window has its histograms beside it.

use crate::clock::Offset;
use crate::error::FleetError;
use crate::merge::Began;
use dyno_engine::load_source;
use dyno_plan::{Plan, uri};
use dyno_record::model::{
    Caveat, Environment, PhaseRecord, PlacementRecord, ResourceUse, SteeringRecord, StorageRecord,
};
use dyno_record::verdict::{Level, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the messages. Raised when one side would misread the other.
pub const PROTOCOL: u32 = 6;

/// Who is in a version of the program and of its messages; both must be equal on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Version of `dyno`, with that of its source where it is known.
    pub program: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
}

impl Version {
    /// This program, whose version is `program`.
    pub fn of(program: impl Into<String>) -> Self {
        Version {
            program: program.into(),
            protocol: PROTOCOL,
        }
    }

    /// The version that this host has, and that all others must have.
    pub fn current() -> Self {
        Version::of(dyno_engine::VERSION)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (messages {})", self.program, self.protocol)
    }
}

/// The controller, as agents find it. The key lives as long as its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Its version.
    pub version: Version,
    /// How long somebody may be silent, in milliseconds.
    pub lease_ms: u64,
    /// Messages of all agents together that stay in Redis unread; older ones are dropped then. A work has a bound of its own.
    pub unread: u64,
    /// Number of this very controller: a second one of the same run has another.
    pub token: u64,
}

/// An agent, as it comes. Version and protocol are first, and stay in all versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// Its version.
    pub version: Version,
    /// Number, from 0.
    pub index: u32,
    /// Number of this very program: another one with the same index has another.
    pub token: u64,
    /// The host.
    pub host: HostFacts,
    /// Clock of the host against that of Redis: what it shows, which a person reads.
    pub realtime: Offset,
    /// The same of the monotonic clock, which instants are planned on.
    pub monotonic: Offset,
}

/// What a host tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub name: String,
    /// Address that it is reached at, as far as it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// CPUs that its agent may use.
    pub cpus: u32,
    /// Free space where it writes, in bytes.
    pub free_disk_bytes: u64,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// What `dyno doctor` says of it, one line for each finding that is not good.
    pub findings: Vec<String>,
    /// What `--apply` could not change there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<String>,
}

impl HostFacts {
    /// Takes what the checks say of the host now, in place of what they said before.
    pub(crate) fn checked(&mut self, verdicts: Vec<Verdict>) {
        let bad = verdicts
            .iter()
            .filter(|verdict| verdict.level >= Level::Warn);
        let text = |one: &Verdict| format!("{}: {}, {}", one.check, one.found, one.advised);
        self.findings = bad.map(text).collect();
        if let Some(environment) = &mut self.environment {
            environment.doctor = verdicts;
        }
    }
}

/// A part of the work that all do together, begun at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The data set is loaded, each agent its part.
    Load,
    /// Warm-up and measuring.
    Run,
    /// The host of a server has it running.
    Serve,
    /// The servers of all hosts have become one replica set.
    Join,
    /// The host of a server has looked what became of its settings.
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

/// From the controller to all agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Down {
    /// There is work: the share of each agent is in the hash of shares.
    Work(Work),
    /// A stage begins at an instant of the clock of Redis.
    Start {
        /// Number of the work.
        work: u32,
        /// The stage.
        step: Step,
        /// The instant, in nanoseconds from 1970.
        at_ns: i64,
    },
    /// The work ends now, and its windows are not wanted any more; there may be other work.
    Cancel {
        /// Number of the work.
        work: u32,
        /// Why.
        reason: String,
    },
    /// Everything ends now.
    Abort {
        /// Why.
        reason: String,
    },
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
    /// Connection strings of the servers by their numbers, without credentials and files; for those who start servers, the
    /// addresses that these are to listen on, and for those who join them where all members are, as `HOST:PORT`.
    pub servers: Vec<String>,
    /// The servers of all hosts are members of one replica set: that of agent i is member i.
    #[serde(default)]
    pub is_set: bool,
    /// What is to be done, in order.
    pub steps: Vec<Step>,
    /// Worker threads of an agent, if somebody asked for a number; else as many as its part of the CPUs of its host. Several
    /// servers divide them, with at least one for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Messages of all agents together that stay in Redis unread; older ones are dropped then. That of the announcement if it is 0.
    #[serde(default)]
    pub unread: u64,
    /// Agents on each host, which share its CPUs; 0 is taken for 1.
    #[serde(default)]
    pub agents_per_host: u32,
}

/// The plan as it goes to agents: what is about the fleet is settled, and files of this machine are none of theirs.
pub(crate) fn plan_text(plan: &Plan) -> String {
    let mut plan = plan.clone();
    plan.fleet = None;
    if let Some(Ok((target, _))) = plan.server.uri.as_deref().map(uri::parse) {
        plan.server.uri = Some(target.with_files(None, None).to_string());
    }
    dyno_plan::file::to_toml(&plan)
}

/// What an agent reports at the end of a stage.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepSummary {
    /// Its phases.
    pub(crate) phases: Vec<PhaseRecord>,
    /// Worker threads that it had.
    pub(crate) threads: u64,
    /// How busy its host was in them.
    pub(crate) resources: Vec<ResourceUse>,
    /// Where its clients were: planned, and as the kernel said when they had begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<PlacementRecord>,
    /// Each difference between the two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) placed_otherwise: Vec<String>,
    /// Time in which no thread of the agent ran after the common instant.
    #[serde(default)]
    pub(crate) stopped_s: f64,
}

/// What the host of a server has started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StartedServers {
    /// Connection string of each, without credentials and files; none where somebody else has started them, and of a member that
    /// has not joined the others yet.
    pub(crate) uris: Vec<String>,
    /// Where each server is reached, as `HOST:PORT`.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    /// Where they are on the host: planned, and as the kernel said when they had started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) placement: Option<PlacementRecord>,
    /// CPUs that they may use together, if they were placed on some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<u32>,
    /// How the packets of a network card are spread over CPUs as long as they run, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) packet_steering: Option<SteeringRecord>,
    /// Where a server is not as planned, with its number on the host.
    #[serde(default)]
    pub(crate) caveats: Vec<Caveat>,
    /// The storage of each data folder, in the order of their servers; none where one of them is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) data_storage: Vec<StorageRecord>,
    /// Why the data of servers that a cluster has started does not fit there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lacks_room: Option<String>,
    /// What cannot be read of servers that somebody else has started, in words.
    #[serde(default)]
    pub(crate) unread: Vec<String>,
    /// What the checks say of the host, now that its servers run; none if nothing else is known than when the agent came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) doctor: Vec<Verdict>,
    /// What `--apply` could not change for these servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_applied: Vec<String>,
}

/// From an agent to the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Up {
    /// What it does now, for the case that nothing more is heard.
    Doing {
        /// In words.
        what: String,
    },
    /// It waits for the start of a stage.
    Ready {
        /// Number of the work.
        work: u32,
        /// The stage.
        step: Step,
    },
    /// It has begun a stage.
    Begun {
        /// Number of the work.
        work: u32,
        /// The stage.
        step: Step,
        /// When it really had, on the clock of Redis.
        #[serde(flatten)]
        began: Began,
    },
    /// A window on one server, with its histograms beside it.
    Window {
        /// Number of the work.
        work: u32,
        /// Number of the server.
        server: u32,
        /// The counters.
        window: crate::window::WindowHeader,
    },
    /// There are no more windows of a server in a stage: what it was to do there is done.
    ServerDone {
        /// Number of the work.
        work: u32,
        /// Number of the server.
        server: u32,
    },
    /// A stage has ended.
    Done {
        /// Number of the work.
        work: u32,
        /// The stage.
        step: Step,
        /// The record of the agent, such as its `run.json`; empty if it has none.
        summary: serde_json::Value,
        /// Clock of the host at the end.
        realtime: Offset,
    },
    /// It ends because of an error.
    Failed {
        /// Why.
        reason: String,
    },
    /// It ends in order.
    Bye,
}

/// JSON of a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> String {
    serde_json::to_string(message).expect("messages have texts as keys and finite numbers")
}

/// A message of `from`.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8], from: &str) -> Result<T, FleetError> {
    serde_json::from_slice(text).map_err(|error| FleetError::Message {
        from: from.into(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_goes_to_agents_without_files_of_the_controller() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.server.kind = dyno_plan::model::ServerKind::Uri;
        plan.server.uri = Some("mongodb://db/?tlsCAFile=/home/anna/ca.pem&w=1".into());
        let text = plan_text(&plan);
        assert!(text.contains("mongodb://db:27017/?w=1&tls=true"), "{text}");
        assert!(!text.contains("anna"), "{text}");
    }

    #[test]
    fn messages_survive_their_form() {
        let start = Down::Start {
            work: 3,
            step: Step::Run,
            at_ns: 1_700_000_000_000_000_000,
        };
        assert_eq!(
            encode(&start),
            r#"{"start":{"work":3,"step":"run","at_ns":1700000000000000000}}"#
        );
        assert_eq!(
            decode::<Down>(encode(&start).as_bytes(), "x").expect("read"),
            start
        );
        let error = decode::<Down>(b"{\"dance\":{}}", "agent 3").expect_err("unknown");
        assert!(error.to_string().contains("agent 3"), "{error}");
    }
}
