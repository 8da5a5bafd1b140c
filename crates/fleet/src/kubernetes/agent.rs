//! What pods with an agent have in common: where Redis is, and who they are.

use super::input::{RenderInput, SECRET};
use serde_json::{Value, json};

const FOLDER: &str = "/run/dyno";

/// How an agent of a run begins its arguments.
pub(super) fn arguments(input: &RenderInput<'_>, run: &str) -> Vec<String> {
    let join_within = format!("{}ms", input.fleet.join_within.0.as_millis());
    // Redis has a password, and is reached from within the cluster alone.
    let fixed = [
        "agent",
        "--run",
        run,
        "--join-within",
        &join_within,
        "--insecure-redis",
    ];
    fixed.map(str::to_owned).into()
}

/// Number and host of an agent. `index` is the field of the pod that has its number; `host` may name `$(DYNO_NODE)`,
/// `$(DYNO_AGENT_INDEX)`, and what comes before these in the environment.
pub(super) fn environment(index: &str, host: &str) -> Vec<Value> {
    let of_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    vec![
        json!({"name": "DYNO_REDIS_FILE", "value": format!("{FOLDER}/url")}),
        of_field("DYNO_AGENT_INDEX", index),
        of_field("DYNO_NODE", "spec.nodeName"),
        json!({"name": "DYNO_AGENT_HOST", "value": host}),
    ]
}

/// The address of Redis with its password, for the user of the pod.
pub(super) fn redis_volume() -> Value {
    json!({"name": "redis", "secret": {
        "secretName": SECRET,
        "defaultMode": 288,
        "items": [{"key": "url", "path": "url"}],
    }})
}

pub(super) fn redis_mount() -> Value {
    json!({"name": "redis", "mountPath": FOLDER, "readOnly": true})
}
