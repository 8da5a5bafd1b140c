//! Settings of servers that manifests cannot have, and what pods have in their place.

use super::servers;
use dyno_plan::Plan;
use dyno_plan::model::{ServerKind, ServerPlan};
use serde_json::Value;

/// What to do in place of a key, or of several.
const INSTEAD: [(&[&str], &str); 6] = [
    (
        &["data_dir", "data_dirs", "disk_mapping", "storage"],
        "`fleet.kubernetes.disks` and `storage_class` give a pod its volumes",
    ),
    (
        &["mongod", "mongos", "kind = \"embedded\""],
        "`fleet.kubernetes.server_image` has the `mongod` of the pods",
    ),
    (
        &["topology"],
        "pods have independent servers, `server.pairs` in each; a set or a cluster that runs is loaded by `--uri`",
    ),
    (
        &["receive_packet_steering", "host_settings"],
        "pods may not change their nodes: set it there before the run",
    ),
    (
        &["placement"],
        "pods have `interleave` and `node=K`; with `fleet.kubernetes.pin_cpus` the kubelet gives them CPUs",
    ),
    (
        &["listen", "advertise"],
        "servers listen on the address of their pod",
    ),
];

/// Settings of servers that would be left out without a word.
pub(super) fn keys(plan: &Plan) -> Vec<String> {
    let server = &plan.server;
    let known = ServerPlan {
        kind: server.kind,
        uri: server.uri.clone(),
        cache: server.cache,
        durable_writes: server.durable_writes,
        block_compressor: server.block_compressor.clone(),
        journal_compressor: server.journal_compressor.clone(),
        parameters: server.parameters.clone(),
        connection_options: server.connection_options.clone(),
        pairs: server.pairs,
        auth: server.auth,
        encryption: server.encryption,
        placement: servers::memory_policy(server)
            .ok()
            .and_then(|_| server.placement.clone()),
        ..ServerPlan::default()
    };
    let as_table = |server: &ServerPlan| match serde_json::to_value(server) {
        Ok(Value::Object(table)) => table,
        _ => serde_json::Map::new(),
    };
    let (asked, known) = (as_table(server), as_table(&known));
    let differs = asked
        .iter()
        .filter(|(key, value)| known.get(*key) != Some(value));
    let mut keys: Vec<String> = differs.map(|(key, _)| format!("server.{key}")).collect();
    if server.kind == ServerKind::Embedded {
        keys.push("server.kind = \"embedded\"".into());
    }
    keys
}

/// What to do about keys that manifests do not know, in one line.
pub(super) fn hint(keys: &[String]) -> String {
    let instead = |key: &String| {
        let name = key.strip_prefix("server.").unwrap_or(key);
        let mut all = INSTEAD.iter();
        let found = all.find(|(names, _)| names.contains(&name));
        let what = found.map_or("leave it out", |(_, what)| what);
        format!("`{key}`: {what}")
    };
    let all: Vec<String> = keys.iter().map(instead).collect();
    format!("{}; hosts of an inventory have all of them", all.join("; "))
}
