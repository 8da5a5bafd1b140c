//! The servers under test: a StatefulSet with each pod on a separate node. A pod has a server and a volume for each disk, or
//! several servers that share volumes.

use super::input::{
    RenderInput, SERVER_PORT, SERVERS, container_security, pod_security, quantity, servers_of_pod,
    watches_servers,
};
use super::{agent, secrets};
use dyno_plan::model::{Encryption, ServerPlan};
use dyno_plan::placement::{ClientPolicy, PlacementRequest, Policy, names_clients};
use dyno_plan::units::Bytes;
use dyno_servers::tls_arguments;
use serde_json::{Value, json};

/// User ID of the MongoDB images.
const USER: u32 = 999;
/// CPU of the agent next to the servers: not a whole one, so that the static policy takes none from them.
const WATCHER_CPU: &str = "200m";
const WATCHER_MEMORY: &str = "128Mi";

pub(super) fn objects(input: &RenderInput<'_>) -> Vec<Value> {
    let kubernetes = input.kubernetes;
    let selector = input.labels("server");
    let servers = 0..servers_of_pod(input.kubernetes, input.plan.server.pairs);
    let ports: Vec<Value> = servers
        .clone()
        .map(|number| json!({"name": port_name(number), "port": port(number), "targetPort": port_name(number)}))
        .collect();
    let claims: Vec<Value> = (0..kubernetes.disks).map(|disk| claim(input, disk)).collect();
    let mut containers: Vec<Value> = servers.map(|number| server(input, number)).collect();
    let mut volumes =
        vec![json!({"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}})];
    if kubernetes.disks == 0 {
        let size = quantity(kubernetes.disk_size);
        volumes.push(json!({"name": volume(0), "emptyDir": {"sizeLimit": size}}));
    }
    if has_certificates(&input.plan.server) {
        volumes.push(secrets::of_server().0);
    }
    if watches_servers(input.plan) {
        containers.push(watcher(input));
        volumes.push(agent::redis_volume());
    }
    let mut pod = json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 60,
        // The agent must see the servers' processes.
        "shareProcessNamespace": watches_servers(input.plan),
        "securityContext": pod_security(USER),
        "affinity": apart(&selector),
        "containers": containers,
        "volumes": volumes,
    });
    input.add_network(&mut pod);
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": input.metadata(SERVERS, "server"),
        "spec": {
            "serviceName": SERVERS,
            "replicas": kubernetes.server_pods,
            "podManagementPolicy": "Parallel",
            // Delete volumes with the servers: a fleet leaves nothing behind.
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": pod},
        },
    });
    if !claims.is_empty() {
        set["spec"]["volumeClaimTemplates"] = claims.into();
    }
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

/// Mount of a server's data: its own volume, or a folder on a shared one.
fn mount(input: &RenderInput<'_>, number: u32) -> Value {
    let (disk, folder) = place(input, number);
    let mut mount = json!({"name": volume(disk), "mountPath": mount_path(input, number)});
    if let Some(folder) = folder {
        mount["subPath"] = folder.into();
    }
    mount
}

fn mount_path(input: &RenderInput<'_>, number: u32) -> String {
    match place(input, number) {
        (disk, None) => format!("/data/disk-{disk}"),
        (disk, Some(folder)) => format!("/data/disk-{disk}/{folder}"),
    }
}

/// Number of a server's volume, and its folder there if the volume is shared.
fn place(input: &RenderInput<'_>, number: u32) -> (u32, Option<String>) {
    let disks = input.kubernetes.disks;
    let is_shared = servers_of_pod(input.kubernetes, input.plan.server.pairs) != disks;
    // Without disks there is one volume, on the node's disk.
    let disk = number % disks.max(1);
    (disk, is_shared.then(|| format!("server-{number}")))
}

fn port_name(number: u32) -> String {
    format!("mongodb-{number}")
}

/// Port of a server in a pod.
pub(super) fn port(number: u32) -> u16 {
    // There are at most 64 servers.
    SERVER_PORT + number as u16
}

/// Arguments of `numactl` for the memory of the plan's servers; may be empty.
///
/// # Errors
/// The placement needs the node's CPUs before the pod exists.
pub(super) fn memory_policy(server: &ServerPlan) -> Result<Vec<String>, ()> {
    let Some(text) = &server.placement else {
        return Ok(Vec::new());
    };
    let request = PlacementRequest::parse(text, server.pairs.max(1)).map_err(drop)?;
    let is_free = !names_clients(text) || request.client == ClientPolicy::Unpinned;
    match request.policy {
        Policy::None if is_free => Ok(Vec::new()),
        Policy::Interleave if is_free => Ok(vec!["--interleave=all".to_owned()]),
        Policy::Node(node) if is_free => {
            Ok(vec![format!("--cpunodebind={node}"), format!("--membind={node}")])
        }
        _ => Err(()),
    }
}

/// Container of a server.
fn server(input: &RenderInput<'_>, number: u32) -> Value {
    let kubernetes = input.kubernetes;
    let mut command = vec!["mongod".to_owned()];
    let mut security = container_security();
    let policy = memory_policy(&input.plan.server).unwrap_or_default();
    if !policy.is_empty() {
        command.insert(0, "numactl".to_owned());
        command.splice(1..1, policy);
        // Container runtimes allow memory policies only with this capability.
        security["capabilities"]["add"] = json!(["SYS_NICE"]);
    }
    let mut mounts = vec![mount(input, number), json!({"name": "tmp", "mountPath": "/tmp"})];
    if has_certificates(&input.plan.server) {
        mounts.push(secrets::of_server().1);
    }
    json!({
        "name": format!("mongod-{number}"),
        "image": kubernetes.server_image,
        "command": command,
        "args": arguments(input, number),
        "ports": [{"name": port_name(number), "containerPort": port(number)}],
        "readinessProbe": {"tcpSocket": {"port": port_name(number)}, "periodSeconds": 2},
        "resources": input.resources(kubernetes.server_cpus, kubernetes.server_memory),
        "securityContext": security,
        "volumeMounts": mounts,
    })
}

/// Container of the agent that reads the node and the pod's servers. It runs as the servers' user, to read their processes, and
/// leaves them the exclusive CPUs.
fn watcher(input: &RenderInput<'_>) -> Value {
    let servers = 0..servers_of_pod(input.kubernetes, input.plan.server.pairs);
    let mounts = servers.clone().map(|number| {
        let mut mount = mount(input, number);
        mount["readOnly"] = true.into();
        mount
    });
    let watched = servers.flat_map(|number| {
        let server = format!("{}={}", port(number), mount_path(input, number));
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

fn arguments(input: &RenderInput<'_>, number: u32) -> Vec<String> {
    let server = &input.plan.server;
    let (port, path) = (port(number).to_string(), mount_path(input, number));
    let mut arguments: Vec<String> =
        ["--bind_ip_all", "--port", &port, "--dbpath", &path].map(str::to_owned).into();
    // The server's default would be a share of the node's memory, not of the pod's.
    let cache = server.cache_bytes().unwrap_or(default_cache(input.kubernetes.server_memory));
    arguments.push("--wiredTigerCacheSizeGB".into());
    arguments.push(format!("{:.2}", cache.0 as f64 / f64::from(1 << 30)));
    if let Some(compressor) = &server.block_compressor {
        arguments.push("--wiredTigerCollectionBlockCompressor".into());
        arguments.push(compressor.clone());
    }
    if let Some(compressor) = &server.journal_compressor {
        arguments.push("--wiredTigerJournalCompressor".into());
        arguments.push(compressor.clone());
    }
    if server.auth {
        arguments.push("--auth".into());
    }
    if has_certificates(server) {
        let [own, ca] = secrets::server_files();
        let is_mutual = server.encryption == Encryption::Mutual;
        arguments.extend(
            tls_arguments(&own, &ca, is_mutual)
                .into_iter()
                .map(|word| word.to_string_lossy().into_owned()),
        );
    }
    for (name, value) in &server.parameters {
        arguments.push("--setParameter".into());
        arguments.push(format!("{name}={value}"));
    }
    arguments
}

fn has_certificates(server: &ServerPlan) -> bool {
    server.encryption != Encryption::Off
}

/// Default cache of `mongod` for this memory, and at least its minimum.
fn default_cache(memory: Bytes) -> Bytes {
    Bytes((memory.0.saturating_sub(1 << 30) / 2).max(256 << 20))
}

/// Anti-affinity that keeps two pods off one node.
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
