//! State of a detached deployment, in a file that only its owner can read.

use super::unusable;
use crate::deployment::placement::HostPlacement;
use crate::deployment::{data_processes, with_options};
use crate::error::Error;
use crate::files::write_file;
use dyno_plan::Plan;
use dyno_record::model::{Caveat, PlacementRecord};
use dyno_servers::{Deployment, InstanceKind, MemberSettings};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FILE: &str = "server.json";
const SECRET_FILE: &str = "uri";
const SCHEMA_VERSION: u32 = 1;

/// See the module. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    schema_version: u32,
    /// As in a plan, such as `replica-set=3`.
    pub topology: String,
    /// Server program.
    pub program: String,
    /// When the servers were ready, RFC 3339 in UTC, whole seconds.
    pub started: String,
    /// Process that holds the servers.
    pub supervisor: u32,
    /// Connection strings without user and password, one per client.
    pub uris: Vec<String>,
    /// Database user, if one was created.
    pub user: Option<String>,
    /// All servers, in start order.
    pub members: Vec<MemberState>,
    /// Placement of the servers; absent if none was requested.
    #[serde(default)]
    pub placement: Option<PlacementState>,
}

/// Placement of the data servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementState {
    /// Planned and actual placement.
    #[serde(flatten)]
    pub record: PlacementRecord,
    /// Differences from the plan.
    pub deviations: Vec<String>,
}

impl PlacementState {
    /// Reads the placement of a running deployment's servers.
    fn of(deployment: &Deployment, place: &HostPlacement) -> Self {
        let (record, caveats) = place.verify(&data_processes(deployment.members()));
        PlacementState { record, deviations: caveats.iter().map(misplaced).collect() }
    }
}

/// State of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Name of the server, such as `member-0`.
    pub name: String,
    /// One of `data`, `arbiter`, `config server` and `router`.
    pub duty: String,
    pub address: String,
    pub process: u32,
    pub version: String,
    /// Connection string to this server only, without user.
    pub uri: String,
    /// Settings that differ from the request, one sentence each.
    pub deviations: Vec<String>,
}

impl State {
    /// State of a running deployment with the placement `place`.
    pub fn of(
        plan: &Plan,
        deployment: &Deployment,
        settings: &[MemberSettings],
        place: Option<&HostPlacement>,
    ) -> Self {
        let members = deployment.members().iter().zip(settings);
        State {
            schema_version: SCHEMA_VERSION,
            topology: deployment.topology().to_string(),
            program: match plan.server.kind {
                dyno_plan::model::ServerKind::Mongod => "mongod".into(),
                _ => "secantusd-rs".into(),
            },
            started: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            supervisor: std::process::id(),
            uris: uris(plan, deployment),
            user: deployment.credentials().map(|user| user.username.clone()),
            members: members
                .map(|(member, settings)| MemberState {
                    name: member.instance().name.clone(),
                    duty: duty(member.instance().kind).into(),
                    address: member.server().host().to_string(),
                    process: member.server().pid(),
                    version: member.server().version().to_owned(),
                    uri: deployment.target(member).uri(),
                    deviations: settings.deviations.iter().map(sentence).collect(),
                })
                .collect(),
            placement: place
                .filter(|_| plan.server.placement.is_some())
                .map(|place| PlacementState::of(deployment, place)),
        }
    }

    /// Reads the state; `None` if it is not written yet.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| unusable(&path, error))?,
        };
        let state: State = serde_json::from_str(&text).map_err(|error| unusable(&path, error))?;
        if state.schema_version != SCHEMA_VERSION {
            let version = state.schema_version;
            return Err(unusable(&path, anyhow::anyhow!("it has version {version}")));
        }
        Ok(Some(state))
    }

    /// Writes the state, and separately the connection strings with the password.
    pub fn write(&self, folder: &Path, plan: &Plan, deployment: &Deployment) -> Result<(), Error> {
        let secret = folder.join(SECRET_FILE);
        write_file(&secret, "")?;
        std::fs::set_permissions(&secret, Permissions::from_mode(0o600))
            .map_err(|error| unusable(&secret, error))?;
        let lines: String = uris(plan, deployment)
            .iter()
            .map(|uri| deployment.with_credentials(uri) + "\n")
            .collect();
        std::fs::write(&secret, lines).map_err(|error| unusable(&secret, error))?;
        let text = serde_json::to_string_pretty(self).expect("texts and numbers can be written");
        write_file(&folder.join(FILE), &format!("{text}\n"))
    }
}

/// Connection strings with user and password, one per line.
pub fn secret_uris(folder: &Path) -> Result<String, Error> {
    let path = folder.join(SECRET_FILE);
    std::fs::read_to_string(&path).map_err(|error| unusable(&path, error))
}

fn uris(plan: &Plan, deployment: &Deployment) -> Vec<String> {
    let uris = deployment.uris();
    uris.iter().map(|uri| with_options(uri, plan)).collect()
}

fn duty(kind: InstanceKind) -> &'static str {
    match kind {
        InstanceKind::Data => "data",
        InstanceKind::Arbiter => "arbiter",
        InstanceKind::ConfigServer => "config server",
        InstanceKind::Router => "router",
    }
}

/// Text for an instance in the wrong place.
fn misplaced(caveat: &Caveat) -> String {
    let said = &caveat.statement;
    let instance = said.number("instance").unwrap_or_default();
    let deviation = said.text("deviation").unwrap_or_default();
    format!("placement of instance {instance}: {deviation}")
}

fn sentence(deviation: &dyno_servers::Deviation) -> String {
    format!(
        "`{}` is `{}`, not `{}` as asked for",
        deviation.setting, deviation.found, deviation.asked
    )
}
