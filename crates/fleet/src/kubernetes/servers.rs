//! The servers under test: a StatefulSet, one volume for each disk, each pod on a node of its own.

use super::{Context, container_security, pod_security, quantity};
use dyno_plan::units::Bytes;
use serde_json::{Value, json};

/// Port of `mongod`.
const PORT: u32 = 27_017;
/// User of the images of MongoDB.
const USER: u32 = 999;

/// Names of the server pods, as they are found in the namespace.
pub(super) fn addresses(context: &Context<'_>) -> Vec<String> {
    let namespace = &context.kubernetes.namespace;
    (0..context.kubernetes.server_pods)
        .map(|pod| format!("dyno-server-{pod}.dyno-server.{namespace}.svc:{PORT}"))
        .collect()
}

pub(super) fn objects(context: &Context<'_>) -> Vec<Value> {
    let kubernetes = context.kubernetes;
    let selector = context.labels("server");
    let disks = 0..kubernetes.disks;
    let mounts: Vec<Value> = disks
        .clone()
        .map(|disk| json!({"name": format!("disk-{disk}"), "mountPath": mount_path(disk)}))
        .chain([json!({"name": "tmp", "mountPath": "/tmp"})])
        .collect();
    let claims: Vec<Value> = disks.map(|disk| claim(context, disk)).collect();
    let mut pod = json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 60,
        "securityContext": pod_security(USER),
        "affinity": apart(&selector),
        "containers": [{
            "name": "mongod",
            "image": kubernetes.server_image,
            "command": ["mongod"],
            "args": arguments(context),
            "ports": [{"name": "mongodb", "containerPort": PORT}],
            "readinessProbe": {"tcpSocket": {"port": "mongodb"}, "periodSeconds": 2},
            "resources": context.resources(kubernetes.server_cpus, kubernetes.server_memory),
            "securityContext": container_security(),
            "volumeMounts": mounts,
        }],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
    });
    context.add_network(&mut pod);
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": context.metadata("dyno-server", "server"),
        "spec": {
            "serviceName": "dyno-server",
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
        "metadata": context.metadata("dyno-server", "server"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": selector,
            "ports": [{"name": "mongodb", "port": PORT, "targetPort": "mongodb"}],
        },
    });
    vec![set, service]
}

fn mount_path(disk: u32) -> String {
    match disk {
        0 => "/data/db".into(),
        disk => format!("/data/disk-{disk}"),
    }
}

fn arguments(context: &Context<'_>) -> Vec<String> {
    let server = &context.plan.server;
    let mut arguments: Vec<String> = ["--bind_ip_all", "--port", "27017", "--dbpath", "/data/db"]
        .map(str::to_owned)
        .into();
    // Without it the server would take its share of the memory of the node, not of the pod.
    let cache = server
        .cache
        .unwrap_or(default_cache(context.kubernetes.server_memory));
    arguments.push("--wiredTigerCacheSizeGB".into());
    arguments.push(format!("{:.2}", cache.0 as f64 / f64::from(1 << 30)));
    if context.kubernetes.disks > 1 {
        arguments.push("--directoryperdb".into());
    }
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

fn claim(context: &Context<'_>, disk: u32) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": format!("disk-{disk}"), "labels": context.labels("server")},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": quantity(context.kubernetes.disk_size)}},
        },
    });
    if let Some(class) = &context.kubernetes.storage_class {
        claim["spec"]["storageClassName"] = class.as_str().into();
    }
    claim
}
