//! Server settings that manifests do not support, and their replacements.

use super::servers;
use dyno_plan::Plan;
use dyno_plan::model::{ServerKind, ServerPlan};
use serde_json::Value;

/// Alternatives for unsupported keys.
const INSTEAD: [(&[&str], &str); 6] = [
    (
        &["data_dir", "data_dirs", "disk_mapping", "storage"],
        "`fleet.kubernetes.disks` and `storage_class` configure a pod's volumes",
    ),
    (
        &["mongod", "mongos", "kind = \"embedded\""],
        "`fleet.kubernetes.server_image` sets the image with the pods' `mongod`",
    ),
    (
        &["topology"],
        "pods start independent servers, `server.pairs` in each; load a running set or cluster by `--uri`",
    ),
    (
        &["receive_packet_steering", "host_settings"],
        "pods cannot change their nodes: set it on the nodes before the run",
    ),
    (
        &["placement"],
        "pods support `interleave` and `node=K`; with `fleet.kubernetes.pin_cpus` the kubelet assigns CPUs",
    ),
    (&["listen", "advertise"], "servers listen on their pod's address"),
];

/// Server settings that manifests would silently ignore.
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
        placement: servers::memory_policy(server).ok().and_then(|_| server.placement.clone()),
        ..ServerPlan::default()
    };
    let as_table = |server: &ServerPlan| match serde_json::to_value(server) {
        Ok(Value::Object(table)) => table,
        _ => serde_json::Map::new(),
    };
    let (asked, known) = (as_table(server), as_table(&known));
    let differs = asked.iter().filter(|(key, value)| known.get(*key) != Some(value));
    let mut keys: Vec<String> = differs.map(|(key, _)| format!("server.{key}")).collect();
    if server.kind == ServerKind::Embedded {
        keys.push("server.kind = \"embedded\"".into());
    }
    keys
}

/// Advice for unsupported keys, in one line.
pub(super) fn hint(keys: &[String]) -> String {
    let instead = |key: &String| {
        let name = key.strip_prefix("server.").unwrap_or(key);
        let found = INSTEAD.iter().find(|(names, _)| names.contains(&name));
        let what = found.map_or("remove it", |(_, what)| what);
        format!("`{key}`: {what}")
    };
    let all: Vec<String> = keys.iter().map(instead).collect();
    format!("{}; hosts of an inventory support all of them", all.join("; "))
}
