//! The clients: an Indexed Job, one agent for each pod, spread over the nodes and away from the servers.

use super::{Context, SECRET, SERVER_SECRET, container_security, pod_security, servers};
use serde_json::{Value, json};

/// User of the image.
const USER: u32 = 65_532;

pub(super) fn objects(context: &Context<'_>) -> Vec<Value> {
    let kubernetes = context.kubernetes;
    let labels = context.labels("client");
    let mut environment = vec![
        json!({"name": "DYNO_REDIS_FILE", "value": "/run/dyno/url"}),
        json!({
            "name": "DYNO_AGENT_INDEX",
            "valueFrom": {"fieldRef": {
                "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
            }},
        }),
        json!({"name": "DYNO_AGENT_HOST", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
        json!({
            "name": "DYNO_URI",
            "valueFrom": {"secretKeyRef": {"name": SERVER_SECRET, "key": "uri", "optional": true}},
        }),
    ];
    if context.starts_servers() {
        let addresses = servers::addresses(context).join(",");
        environment.push(json!({"name": "DYNO_SERVERS", "value": addresses}));
    }
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        // What an agent does when it is asked to end takes less than its lease.
        "terminationGracePeriodSeconds": context.fleet.lease.0.as_secs() + 10,
        "securityContext": pod_security(USER),
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": context.labels("server")},
            "topologyKey": "kubernetes.io/hostname",
        }]}},
        "containers": [{
            "name": "dyno",
            "image": kubernetes.image,
            "args": ["agent", "--run", context.run],
            "env": environment,
            "resources": context.resources(kubernetes.client_cpus, kubernetes.client_memory),
            "securityContext": container_security(),
            "volumeMounts": [
                {"name": "redis", "mountPath": "/run/dyno", "readOnly": true},
                {"name": "work", "mountPath": "/work"},
            ],
            "workingDir": "/work",
        }],
        "volumes": [
            {"name": "redis", "secret": {
                "secretName": SECRET,
                "defaultMode": 288,
                "items": [{"key": "url", "path": "url"}],
            }},
            {"name": "work", "emptyDir": {}},
        ],
    });
    context.add_network(&mut pod);
    let pods = kubernetes.client_pods;
    vec![json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": context.metadata("dyno-client", "client"),
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            // A second agent with the same number would not know what the first one did.
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })]
}
