//! Users and certificates of pods: one `Secret` for agents and one for servers, mounted where they are read. The manifests do not
//! contain them; the controller creates them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Name of the `Secret` of the loading agents.
pub const AGENT_SECRET: &str = "dyno-agents";
/// Its only key, which `--secrets` reads.
pub const AGENT_KEY: &str = "secrets";
/// Name of the `Secret` of the servers.
pub const SERVER_SECRET: &str = "dyno-servers";
/// Its keys: a server's certificate with its key, and the authority's certificate.
pub const SERVER_KEYS: [&str; 2] = ["server.pem", "ca.pem"];

/// Readable only by the user. The files belong to root, so the node adds read permission for the pod's group.
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

/// A volume of one of the `Secret`s, and its mount.
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
