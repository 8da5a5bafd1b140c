//! Users and certificates as pods have them: in a `Secret` each for agents and servers, which is mounted where they read it. What is
//! in them stands in no manifest: the controller makes them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Name of the `Secret` of the agents that load.
pub const AGENT_SECRET: &str = "dyno-agents";
/// Its only key: what `--secrets` reads.
pub const AGENT_KEY: &str = "secrets";
/// Name of the `Secret` of the servers.
pub const SERVER_SECRET: &str = "dyno-servers";
/// Its keys: the certificate of a server with its key, and that of the authority.
pub const SERVER_KEYS: [&str; 2] = ["server.pem", "ca.pem"];

/// Nobody but the user reads it. Its files belong to root, so that the node adds the right to read for the group of the pod.
const MODE: u32 = 0o400;
const AGENT_FOLDER: &str = "/run/dyno-agents";
const SERVER_FOLDER: &str = "/run/dyno-servers";

/// The file that an agent reads.
pub(super) fn agent_file() -> String {
    format!("{AGENT_FOLDER}/{AGENT_KEY}")
}

/// The files of [`SERVER_KEYS`].
pub(super) fn server_files() -> [PathBuf; 2] {
    SERVER_KEYS.map(|key| Path::new(SERVER_FOLDER).join(key))
}

/// The volume of one of them, and its mount.
fn mounted(name: &str, folder: &str) -> (Value, Value) {
    let volume = json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE}});
    let mount = json!({"name": name, "mountPath": folder, "readOnly": true});
    (volume, mount)
}

pub(super) fn of_agent() -> (Value, Value) {
    mounted(AGENT_SECRET, AGENT_FOLDER)
}

pub(super) fn of_server() -> (Value, Value) {
    mounted(SERVER_SECRET, SERVER_FOLDER)
}
