//! The servers under test: a StatefulSet, each pod on a node of its own, with a server and a volume for each disk.

use super::agent;
use super::input::{RenderInput, SERVER_PORT, SERVERS, container_security, pod_security, quantity};
use dyno_plan::units::Bytes;
use serde_json::{Value, json};

/// User of the images of MongoDB.
const USER: u32 = 999;
/// What the agent beside the servers gets: no whole CPU, so that the static policy takes none from them.
const WATCHER_CPU: &str = "200m";
const WATCHER_MEMORY: &str = "128Mi";

pub(super) fn objects(input: &RenderInput<'_>) -> Vec<Value> {
    let kubernetes = input.kubernetes;
    let selector = input.labels("server");
    let disks = 0..kubernetes.disks;
    let ports: Vec<Value> = disks
        .clone()
        .map(|disk| json!({"name": port_name(disk), "port": port(disk), "targetPort": port_name(disk)}))
        .collect();
    let claims: Vec<Value> = disks.clone().map(|disk| claim(input, disk)).collect();
    let mut containers: Vec<Value> = disks.map(|disk| server(input, disk)).collect();
    let mut volumes =
        vec![json!({"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}})];
    if input.watches_servers() {
        containers.push(watcher(input));
        volumes.push(agent::redis_volume());
    }
    let mut pod = json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 60,
        // The agent sees the processes of the servers.
        "shareProcessNamespace": input.watches_servers(),
        "securityContext": pod_security(USER),
        "affinity": apart(&selector),
        "containers": containers,
        "volumes": volumes,
    });
    input.add_network(&mut pod);
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": input.metadata(SERVERS, "server"),
        "spec": {
            "serviceName": SERVERS,
            "replicas": kubernetes.server_pods,
            "podManagementPolicy": "Parallel",
            // Volumes go with the servers: a fleet leaves nothing.
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": pod},
            "volumeClaimTemplates": claims,
        },
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": input.metadata(SERVERS, "server"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": selector,
            "ports": ports,
        },
    });
    vec![set, service]
}

fn volume(disk: u32) -> String {
    format!("disk-{disk}")
}

fn mount_path(disk: u32) -> String {
    format!("/data/disk-{disk}")
}

fn port_name(disk: u32) -> String {
    format!("mongodb-{disk}")
}

/// Port of the server of a disk.
pub(super) fn port(disk: u32) -> u16 {
    // There are 16 disks at most.
    SERVER_PORT + disk as u16
}

/// The server of a disk.
fn server(input: &RenderInput<'_>, disk: u32) -> Value {
    let kubernetes = input.kubernetes;
    json!({
        "name": format!("mongod-{disk}"),
        "image": kubernetes.server_image,
        "command": ["mongod"],
        "args": arguments(input, disk),
        "ports": [{"name": port_name(disk), "containerPort": port(disk)}],
        "readinessProbe": {"tcpSocket": {"port": port_name(disk)}, "periodSeconds": 2},
        "resources": input.resources(kubernetes.server_cpus, kubernetes.server_memory),
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": volume(disk), "mountPath": mount_path(disk)},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    })
}

/// The agent that reads the node and the servers of the pod. It has the user of the servers, whose processes it may look into,
/// and leaves the exclusive CPUs to them.
fn watcher(input: &RenderInput<'_>) -> Value {
    let disks = 0..input.kubernetes.disks;
    let mounts = disks
        .clone()
        .map(|disk| json!({"name": volume(disk), "mountPath": mount_path(disk), "readOnly": true}));
    let watched = disks.flat_map(|disk| {
        let server = format!("{}={}", port(disk), mount_path(disk));
        ["--watch".to_owned(), server]
    });
    let pod =
        json!({"name": "DYNO_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let index = "metadata.labels['apps.kubernetes.io/pod-index']";
    let mut environment = vec![pod];
    environment.extend(agent::environment(index, "$(DYNO_NODE)/$(DYNO_POD)"));
    let arguments = agent::arguments(input, input.watch_run);
    json!({
        "name": "dyno",
        "image": input.kubernetes.image,
        "args": arguments.into_iter().chain(watched).collect::<Vec<_>>(),
        "env": environment,
        "resources": {
            "requests": {"cpu": WATCHER_CPU, "memory": WATCHER_MEMORY},
            "limits": {"cpu": WATCHER_CPU, "memory": WATCHER_MEMORY},
        },
        "securityContext": container_security(),
        "volumeMounts": mounts.chain([agent::redis_mount()]).collect::<Vec<_>>(),
    })
}

fn arguments(input: &RenderInput<'_>, disk: u32) -> Vec<String> {
    let server = &input.plan.server;
    let (port, path) = (port(disk).to_string(), mount_path(disk));
    let mut arguments: Vec<String> = ["--bind_ip_all", "--port", &port, "--dbpath", &path]
        .map(str::to_owned)
        .into();
    // Without it the server would take its share of the memory of the node, not of the pod.
    let cache = server
        .cache_bytes()
        .unwrap_or(default_cache(input.kubernetes.server_memory));
    arguments.push("--wiredTigerCacheSizeGB".into());
    arguments.push(format!("{:.2}", cache.0 as f64 / f64::from(1 << 30)));
    if let Some(compressor) = &server.block_compressor {
        arguments.push("--wiredTigerCollectionBlockCompressor".into());
        arguments.push(compressor.clone());
    }
    for (name, value) in &server.parameters {
        arguments.push("--setParameter".into());
        arguments.push(format!("{name}={value}"));
    }
    arguments
}

/// What `mongod` takes by itself of so much memory, and at least its minimum.
fn default_cache(memory: Bytes) -> Bytes {
    Bytes((memory.0.saturating_sub(1 << 30) / 2).max(256 << 20))
}

/// No two pods on one node.
fn apart(selector: &Value) -> Value {
    json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": {"matchLabels": selector},
        "topologyKey": "kubernetes.io/hostname",
    }]}})
}

fn claim(input: &RenderInput<'_>, disk: u32) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": volume(disk), "labels": input.labels("server")},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": quantity(input.kubernetes.disk_size)}},
        },
    });
    if let Some(class) = &input.kubernetes.storage_class {
        claim["spec"]["storageClassName"] = class.as_str().into();
    }
    claim
}
