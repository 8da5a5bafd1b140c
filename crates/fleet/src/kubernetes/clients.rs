//! The clients: an Indexed Job with one agent for each pod, spread over the nodes and away from the servers.

use super::agent;
use super::input::{JOB, RenderInput, container_security, pod_security};
use super::{pod_servers, secrets};
use serde_json::{Value, json};

/// User ID of the image.
const USER: u32 = 65_532;

pub(super) fn objects(input: &RenderInput<'_>) -> Vec<Value> {
    let kubernetes = input.kubernetes;
    let labels = input.labels("client");
    // A pod with exclusive CPUs counts as a separate host.
    let host =
        if kubernetes.pin_cpus { "$(DYNO_NODE)/$(DYNO_AGENT_INDEX)" } else { "$(DYNO_NODE)" };
    let mut permits = input.permits.clone();
    if input.starts_servers() {
        permits.targets.extend(
            pod_servers(kubernetes, input.plan.server.pairs).into_iter().map(|server| server.host),
        );
    }
    let mut arguments = agent::arguments(input, input.run);
    arguments.extend(permits.words_of_client());
    let mut mounts = vec![agent::redis_mount(), json!({"name": "work", "mountPath": "/work"})];
    let mut volumes = vec![agent::redis_volume(), json!({"name": "work", "emptyDir": {}})];
    if input.with_secrets {
        arguments.extend(["--secrets".to_owned(), secrets::agent_file()]);
        let (volume, mount) = secrets::of_agent();
        volumes.push(volume);
        mounts.push(mount);
    }
    let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        // An agent needs less than its lease to end.
        "terminationGracePeriodSeconds": input.fleet.lease.0.as_secs() + 10,
        "securityContext": pod_security(USER),
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": input.labels("server")},
            "topologyKey": "kubernetes.io/hostname",
        }]}},
        "containers": [{
            "name": "dyno",
            "image": kubernetes.image,
            "args": arguments,
            "env": agent::environment(index, host),
            "resources": input.resources(kubernetes.client_cpus, kubernetes.client_memory),
            "securityContext": container_security(),
            "volumeMounts": mounts,
            "workingDir": "/work",
        }],
        "volumes": volumes,
    });
    input.add_network(&mut pod);
    let pods = kubernetes.client_pods;
    vec![json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": input.metadata(JOB, "client"),
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            // A second agent with the same number would not know the first one's progress.
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 3600,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })]
}
