//! Common parts of pods with an agent: Redis address and identity.

use super::input::{RenderInput, SECRET};
use serde_json::{Value, json};

const FOLDER: &str = "/run/dyno";

/// First arguments of a run's agent.
pub(super) fn arguments(input: &RenderInput<'_>, run: &str) -> Vec<String> {
    let join_within = format!("{}ms", input.fleet.join_within.0.as_millis());
    // Redis has a password, and is reachable only within the cluster.
    let fixed = ["agent", "--run", run, "--join-within", &join_within, "--insecure-redis"];
    fixed.map(str::to_owned).into()
}

/// Environment with an agent's number and host. `index` is the pod field with its number; `host` may use `$(DYNO_NODE)`,
/// `$(DYNO_AGENT_INDEX)`, and earlier variables.
pub(super) fn environment(index: &str, host: &str) -> Vec<Value> {
    let of_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    vec![
        json!({"name": "DYNO_REDIS_FILE", "value": format!("{FOLDER}/url")}),
        of_field("DYNO_AGENT_INDEX", index),
        of_field("DYNO_NODE", "spec.nodeName"),
        json!({"name": "DYNO_AGENT_HOST", "value": host}),
    ]
}

/// The Redis address with its password, readable by the pod's user.
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
