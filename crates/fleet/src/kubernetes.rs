//! Manifests for Kubernetes from a plan: a Kustomize base, and an overlay for the parts that change from cluster to cluster.
//! Nothing here is applied, and no secret is in it: passwords and keys are in a `Secret` each that a person or `dyno` makes before.

mod agent;
mod clients;
mod input;
mod redis;
mod secrets;
mod servers;
mod unknown;
mod yaml;

pub use input::{JOB, REDIS, REDIS_PORT, SECRET, SERVER_PORT, SERVERS, watches_servers};
pub use secrets::{AGENT_KEY, AGENT_SECRET, SERVER_KEYS, SERVER_SECRET};

use crate::permits::Permits;
use crate::secrets::needs_secrets;
use dyno_engine::files::{make_folder, write_file};
use dyno_engine::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::file::to_toml;
use dyno_plan::fleet::KubernetesPlan;
use input::RenderInput;
pub(crate) use input::servers_of_pod;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Why there are no manifests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The plan has no fleet for Kubernetes.
    #[error("the plan has no table `[fleet.kubernetes]`")]
    NoKubernetes,
    /// Manifests would not do what the plan says.
    #[error("manifests for Kubernetes do not know {}", keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// Keys of the plan that are set, and have no place in them.
        keys: Vec<String>,
    },
}

impl From<RenderError> for Error {
    fn from(error: RenderError) -> Self {
        let hint = match &error {
            RenderError::NoKubernetes => "an empty one is enough; `--set fleet.kubernetes.client_pods=3` adds it to a built-in plan".to_owned(),
            RenderError::Unknown { keys } => unknown::hint(keys),
        };
        Error::from_cause(Kind::BadInput, error).with_hint(hint)
    }
}

/// A file of the manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its path, relative to the folder of all.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl Manifest {
    /// Writes it below the folder of all, and says where it is.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(&self.path);
        make_folder(path.parent().unwrap_or(folder))?;
        write_file(&path, &self.text)?;
        Ok(path)
    }
}

/// Name of the run of the agents beside servers that are started for the `start`th time: those of servers before are no part of
/// it.
pub fn watch_run(run: &str, start: u32) -> String {
    format!("{run}.{start}")
}

/// What manifests need to know besides the plan.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions<'a> {
    /// What clients may load besides the servers of the pods.
    pub permits: &'a Permits,
    /// Agents that load are given users or certificates.
    pub with_secrets: bool,
    /// Name of the run.
    pub run: &'a str,
    /// How often the run has started servers, from 1.
    pub start: u32,
}

impl<'a> RenderOptions<'a> {
    /// Those of the first start of a plan alone.
    pub fn of(plan: &Plan, permits: &'a Permits, run: &'a str) -> Self {
        RenderOptions {
            permits,
            with_secrets: needs_secrets(&plan.server),
            run,
            start: 1,
        }
    }
}

/// The manifests of a run: `base/` with all objects and `overlays/cluster/`, in which names of images, the number of
/// clients and the storage class are changed for one cluster.
///
/// # Errors
/// [`RenderError`] if the plan has no such fleet, or servers that manifests do not know.
pub fn render(plan: &Plan, options: &RenderOptions<'_>) -> Result<Vec<Manifest>, RenderError> {
    let fleet = plan.fleet.as_ref().ok_or(RenderError::NoKubernetes)?;
    let kubernetes = fleet.kubernetes.as_ref().ok_or(RenderError::NoKubernetes)?;
    let keys = unknown::keys(plan);
    if !keys.is_empty() {
        return Err(RenderError::Unknown { keys });
    }
    let input = RenderInput {
        plan,
        fleet,
        kubernetes,
        permits: options.permits,
        with_secrets: options.with_secrets,
        run: options.run,
        watch_run: &watch_run(options.run, options.start),
    };
    let mut files = vec![
        ("namespace.yaml", vec![namespace(&input)]),
        ("plan.yaml", vec![plan_map(&input)]),
        ("redis.yaml", redis::objects(&input)),
        ("clients.yaml", clients::objects(&input)),
    ];
    if input.starts_servers() {
        files.insert(3, ("servers.yaml", servers::objects(&input)));
    }
    if has_network_policy(kubernetes) {
        files.insert(2, ("network.yaml", vec![network(&input)]));
    }
    let resources: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let base = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": kubernetes.namespace,
        "resources": resources,
    });
    let mut manifests: Vec<Manifest> = files
        .iter()
        .map(|(name, objects)| manifest(&format!("base/{name}"), objects))
        .collect();
    manifests.push(manifest("base/kustomization.yaml", &[base]));
    manifests.push(manifest(
        "overlays/cluster/kustomization.yaml",
        &[overlay(&input)],
    ));
    Ok(manifests)
}

/// A server in a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodServer {
    /// Number of the pod.
    pub pod: u32,
    /// Its number there.
    pub number: u32,
    /// Its port there.
    pub port: u16,
    /// Its host, as all pods of the cluster find it.
    pub host: String,
}

/// Name of a server pod.
pub fn server_pod(pod: u32) -> String {
    format!("{SERVERS}-{pod}")
}

/// The servers of all pods of a plan that has `pairs` of them on a host, those of a pod one after the other.
pub fn pod_servers(kubernetes: &KubernetesPlan, pairs: u32) -> Vec<PodServer> {
    let namespace = &kubernetes.namespace;
    let servers = servers_of_pod(kubernetes, pairs);
    let of_pod = |pod: u32| {
        (0..servers).map(move |number| PodServer {
            pod,
            number,
            port: servers::port(number),
            host: format!("{}.{SERVERS}.{namespace}.svc", server_pod(pod)),
        })
    };
    (0..kubernetes.server_pods).flat_map(of_pod).collect()
}

fn manifest(path: &str, objects: &[Value]) -> Manifest {
    let texts: Vec<String> = objects.iter().map(yaml::to_yaml).collect();
    Manifest {
        path: path.into(),
        text: texts.join("---\n"),
    }
}

/// What differs between clusters, over the base.
fn overlay(input: &RenderInput<'_>) -> Value {
    let kubernetes = input.kubernetes;
    let image = |name: &str| {
        // A tag and a digest end a name, and the digest counts; a port of a registry comes before a `/`.
        let (before, last) = name
            .rsplit_once('/')
            .map_or(("", name), |(before, last)| (before, last));
        let (short, tag) = match last.split_once('@') {
            Some((named, digest)) => {
                let short = named.split_once(':').map_or(named, |(short, _)| short);
                (short, ("digest", digest))
            }
            None => {
                let (short, tag) = last.split_once(':').unwrap_or((last, "latest"));
                (short, ("newTag", tag))
            }
        };
        let name = match before {
            "" => short.to_owned(),
            before => format!("{before}/{short}"),
        };
        json!({"name": name, "newName": name, (tag.0): tag.1})
    };
    let mut images = vec![image(&kubernetes.image), image(&kubernetes.redis_image)];
    if input.starts_servers() {
        images.insert(1, image(&kubernetes.server_image));
    }
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../../base"],
        "images": images,
    })
}

fn namespace(input: &RenderInput<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": input.kubernetes.namespace, "labels": input.labels("namespace")},
    })
}

/// Whether only pods of the run reach its pods. On the network of the node nobody could tell them from others.
pub fn has_network_policy(kubernetes: &KubernetesPlan) -> bool {
    !kubernetes.host_network
}

/// Lets the pods of the run talk to each other, and nobody else to them.
fn network(input: &RenderInput<'_>) -> Value {
    let pods = json!({"matchLabels": input.labels_of_run()});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": input.metadata("dyno-fleet", "network"),
        "spec": {
            "podSelector": pods,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": pods}]}],
        },
    })
}

/// The plan itself, for those who look; agents get it from the controller.
fn plan_map(input: &RenderInput<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": input.metadata("dyno-plan", "plan"),
        "data": {"plan.toml": to_toml(input.plan)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::{Encryption, ServerKind};

    fn plan(settings: &str) -> Plan {
        let text =
            format!("base = \"a\"\n[server]\nkind = \"mongod\"\n[fleet.kubernetes]\n{settings}\n");
        dyno_plan::file::parse(&text, "t").expect("it is valid")
    }

    fn rendered(plan: &Plan, run: &str, start: u32) -> Result<Vec<Manifest>, RenderError> {
        let permits = Permits::of(&plan.server);
        let options = RenderOptions {
            start,
            ..RenderOptions::of(plan, &permits, run)
        };
        render(plan, &options)
    }

    fn text(plan: &Plan, path: &str) -> String {
        let manifests = rendered(plan, "r1", 1).expect("it is a fleet");
        let found = manifests
            .iter()
            .find(|manifest| manifest.path.ends_with(path));
        found.unwrap_or_else(|| panic!("no {path}")).text.clone()
    }

    #[test]
    fn pinned_pods_have_limits_that_equal_their_requests() {
        let pinned = text(&plan("server_cpus = 6"), "base/servers.yaml");
        assert_eq!(pinned.matches("cpu: \"6\"").count(), 2, "{pinned}");
        let free = text(
            &plan("server_cpus = 6\npin_cpus = false"),
            "base/servers.yaml",
        );
        assert_eq!(free.matches("cpu: \"6\"").count(), 1, "{free}");
    }

    #[test]
    fn the_network_of_the_node_is_an_option() {
        assert!(!text(&plan(""), "clients.yaml").contains("hostNetwork"));
        let host = text(&plan("host_network = true"), "clients.yaml");
        assert!(host.contains("hostNetwork: true"), "{host}");
        assert!(host.contains("ClusterFirstWithHostNet"), "{host}");
    }

    #[test]
    fn servers_that_run_already_are_not_started() {
        let mut plan = plan("");
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some("mongodb://db".into());
        let manifests = rendered(&plan, "r", 1).expect("it is a fleet");
        assert!(
            !manifests
                .iter()
                .any(|manifest| manifest.text.contains("StatefulSet"))
        );
        plan.fleet = None;
        assert_eq!(rendered(&plan, "r", 1), Err(RenderError::NoKubernetes));
    }

    #[test]
    fn each_disk_has_a_server_and_an_agent_looks_after_them() {
        let mut plan = plan("disks = 2\nserver_pods = 2");
        let text = |plan: &Plan| {
            let manifests = rendered(plan, "r", 3).expect("it is a fleet");
            let mut all = manifests.into_iter();
            let found = all.find(|manifest| manifest.path.ends_with("servers.yaml"));
            found.expect("servers are started").text
        };
        let servers = text(&plan);
        let holds = |what: &str| assert!(servers.contains(what), "{what}: {servers}");
        holds("\"27018\"");
        holds("mountPath: \"/data/disk-1\"");
        holds("\"27017=/data/disk-0\"");
        holds("\"27018=/data/disk-1\"");
        holds("\"r.3\"");
        holds("shareProcessNamespace: true");
        let kubernetes = plan
            .fleet
            .as_ref()
            .and_then(|fleet| fleet.kubernetes.as_ref());
        let found = pod_servers(kubernetes.expect("it is there"), 1);
        let found: Vec<(u32, u16)> = found
            .iter()
            .map(|server| (server.pod, server.port))
            .collect();
        assert_eq!(found, [(0, 27_017), (0, 27_018), (1, 27_017), (1, 27_018)]);
        plan.observe.host = false;
        assert!(!text(&plan).contains("--watch"));
    }

    #[test]
    fn servers_of_a_pod_share_its_volumes_or_the_nodes_disk() {
        let with = |settings: &str, placement: &str| {
            let text = format!(
                "base = \"a\"\n[server]\nkind = \"mongod\"\npairs = 3\nplacement = \"{placement}\"\n\
                 [fleet]\nmapping = \"pairs\"\n[fleet.kubernetes]\n{settings}\n"
            );
            dyno_plan::file::parse(&text, "t").expect("it is valid")
        };
        let shared = text(&with("disks = 2", "none"), "servers.yaml");
        assert_eq!(shared.matches("name: \"mongod-").count(), 3, "{shared}");
        // For the server, and for the agent that reads its disk.
        for place in ["disk-0/server-0", "disk-1/server-1", "disk-0/server-2"] {
            let path = format!("mountPath: \"/data/{place}\"");
            assert_eq!(shared.matches(&path).count(), 2, "{place}: {shared}");
        }
        assert_eq!(
            shared.matches("subPath: \"server-2\"").count(),
            2,
            "{shared}"
        );
        assert_eq!(
            shared.matches("PersistentVolumeClaim").count(),
            2,
            "{shared}"
        );
        assert!(!shared.contains("numactl") && !shared.contains("SYS_NICE"));
        let without = text(
            &with("disks = 0\ndisk_size = \"8GiB\"", "interleave"),
            "servers.yaml",
        );
        assert!(!without.contains("volumeClaimTemplates"), "{without}");
        assert!(without.contains("sizeLimit: \"8Gi\""), "{without}");
        assert!(without.contains("\"--interleave=all\""), "{without}");
        assert_eq!(without.matches("SYS_NICE").count(), 3, "{without}");
        let bound = text(&with("", "node=1"), "servers.yaml");
        assert!(bound.contains("\"--membind=1\""), "{bound}");
        // What needs to know the CPUs of the node before the pod is there.
        let error = rendered(&with("", "spread"), "r", 1).expect_err("it is refused");
        assert!(error.to_string().contains("`server.placement`"), "{error}");
    }

    #[test]
    fn only_the_fleet_reaches_its_pods() {
        let policy = text(&plan(""), "network.yaml");
        assert!(policy.contains("kind: \"NetworkPolicy\""), "{policy}");
        let own = "app.kubernetes.io/instance: \"r1\"";
        // Of itself, of the pods, and of those who reach them.
        assert_eq!(policy.matches(own).count(), 3, "{policy}");
        assert_eq!(policy.matches("component").count(), 1, "{policy}");
        for file in ["clients.yaml", "servers.yaml", "redis.yaml"] {
            assert!(text(&plan(""), file).contains(own), "{file}");
        }
    }

    #[test]
    fn clients_may_load_the_servers_of_the_run_and_no_others() {
        let of_pods = text(&plan("server_pods = 2\ndisks = 2"), "clients.yaml");
        assert_eq!(of_pods.matches("\"--target\"").count(), 2, "{of_pods}");
        for pod in 0..2 {
            let host = format!("\"dyno-server-{pod}.dyno-server.dyno.svc\"");
            assert!(of_pods.contains(&host), "{of_pods}");
        }
        let mut running = plan("");
        running.server.kind = ServerKind::Uri;
        running.server.uri = Some("mongodb://db.example/".into());
        let running = text(&running, "clients.yaml");
        assert_eq!(running.matches("\"--target\"").count(), 1, "{running}");
        assert!(running.contains("\"db.example\""), "{running}");
    }

    #[test]
    fn plan_keys_unknown_to_manifests_are_refused() {
        let mut plan = plan("");
        plan.server.data_dir = Some("/data".into());
        let error = rendered(&plan, "r", 1)
            .expect_err("it has no place")
            .to_string();
        assert!(error.contains("`server.data_dir`"), "{error}");
        let embedded = dyno_plan::file::parse(
            "base = \"a\"\n[server]\nkind = \"embedded\"\n[fleet.kubernetes]\n",
            "t",
        );
        let embedded = embedded.expect("it is valid");
        let error = rendered(&embedded, "r", 1)
            .expect_err("there is no image")
            .to_string();
        assert!(error.contains("embedded"), "{error}");
    }

    #[test]
    fn users_and_certificates_are_mounted_where_they_are_read() {
        let mut secured = plan("disks = 2");
        secured.server.auth = true;
        let servers = text(&secured, "servers.yaml");
        assert_eq!(servers.matches("- \"--auth\"").count(), 2, "{servers}");
        assert!(!servers.contains("tls") && !servers.contains(SERVER_SECRET));
        secured.server.encryption = Encryption::Server;
        let servers = text(&secured, "servers.yaml");
        let lenient = "--tlsAllowConnectionsWithoutCertificates";
        assert_eq!(servers.matches(lenient).count(), 2, "{servers}");
        // In two containers, and not in that of the agent.
        let words = servers.split_whitespace().collect::<Vec<_>>().join(" ");
        let mount = "mountPath: \"/run/dyno-servers\" name: \"dyno-servers\" readOnly: true";
        assert_eq!(words.matches(mount).count(), 2, "{servers}");
        let volume = "defaultMode: 256 secretName: \"dyno-servers\"";
        assert_eq!(words.matches(volume).count(), 1, "{servers}");
        assert!(!servers.contains(AGENT_SECRET), "{servers}");
        let clients = text(&secured, "clients.yaml");
        for part in [
            "mountPath: \"/run/dyno-agents\"",
            "- \"/run/dyno-agents/secrets\"",
            "secretName: \"dyno-agents\"",
        ] {
            assert_eq!(clients.matches(part).count(), 1, "{part}: {clients}");
        }
        assert!(!clients.contains(SERVER_SECRET), "{clients}");
        secured.server.encryption = Encryption::Mutual;
        assert!(!text(&secured, "servers.yaml").contains(lenient));
        let mut running = plan("");
        running.server.kind = ServerKind::Uri;
        for (uri, is_secret) in [
            ("mongodb://db/", false),
            ("mongodb://u:p@db/", true),
            ("mongodb://db/?tls=true&tlsCAFile=ca.pem", true),
        ] {
            running.server.uri = Some(uri.into());
            let clients = text(&running, "clients.yaml");
            assert_eq!(clients.contains(AGENT_SECRET), is_secret, "{uri}");
        }
    }

    #[test]
    fn images_are_split_into_name_and_tag() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let settings = format!(
            "image = \"registry:5000/a/dyno:v1\"\nredis_image = \"redis@{digest}\"\nserver_image = \"r/mongo:8.0@{digest}\""
        );
        let overlay = text(&plan(&settings), "overlays/cluster/kustomization.yaml");
        assert!(
            overlay.contains("name: \"registry:5000/a/dyno\""),
            "{overlay}"
        );
        assert!(overlay.contains("newTag: \"v1\""), "{overlay}");
        let digests = overlay.matches(&format!("digest: \"{digest}\"")).count();
        assert_eq!(digests, 2, "{overlay}");
        for name in ["redis", "r/mongo"] {
            assert!(overlay.contains(&format!("name: \"{name}\"")), "{overlay}");
        }
    }

    #[test]
    fn no_manifest_holds_a_secret() {
        let mut plan = plan("");
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some("mongodb://user:a-secret@db/".into());
        let manifests = rendered(&plan, "r", 1).expect("it is a fleet");
        let holds = |text: &str| {
            manifests
                .iter()
                .any(|manifest| manifest.text.contains(text))
        };
        assert!(holds("plan.toml") && holds("@db"), "the plan is there");
        assert!(!holds("a-secret"));
        for manifest in manifests {
            assert!(
                !manifest.text.contains("kind: \"Secret\""),
                "{}",
                manifest.text
            );
            assert!(!manifest.text.contains("stringData"), "{}", manifest.text);
        }
    }
}
