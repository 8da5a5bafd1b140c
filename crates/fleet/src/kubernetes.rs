//! Kubernetes manifests from a plan. Nothing is applied here, and manifests contain no secrets: passwords and keys are in `Secret`s
//! that a person or `dyno` creates before.

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
use dyno_plan::fleet::KubernetesPlan;
use input::RenderInput;
pub(crate) use input::servers_of_pod;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Reason why manifests cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The plan has no fleet for Kubernetes.
    #[error("the plan has no `[fleet.kubernetes]` table")]
    NoKubernetes,
    /// The plan has settings that manifests would ignore.
    #[error("Kubernetes manifests do not support {}", keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The unsupported keys.
        keys: Vec<String>,
    },
}

impl From<RenderError> for Error {
    fn from(error: RenderError) -> Self {
        let hint = match &error {
            RenderError::NoKubernetes => "add an empty table, or use `--set fleet.kubernetes.client_pods=3` with a built-in plan".to_owned(),
            RenderError::Unknown { keys } => unknown::hint(keys),
        };
        Error::from_cause(Kind::BadInput, error).with_hint(hint)
    }
}

/// A manifest file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub name: &'static str,
    pub text: String,
}

impl Manifest {
    /// Writes the file into `folder`, and returns its path.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(self.name);
        make_folder(folder)?;
        write_file(&path, &self.text)?;
        Ok(path)
    }
}

/// Run name of the agents next to the servers of the `start`th start. Agents of earlier servers belong to another run.
pub fn watch_run(run: &str, start: u32) -> String {
    format!("{run}.{start}")
}

/// Options of [`render`], in addition to the plan.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions<'a> {
    /// What clients may load in addition to the servers of the pods.
    pub permits: &'a Permits,
    /// Whether loading agents get users or certificates.
    pub with_secrets: bool,
    /// Run name.
    pub run: &'a str,
    /// Number of the server start, from 1.
    pub start: u32,
}

impl<'a> RenderOptions<'a> {
    /// Options for a single plan's first start.
    pub fn of(plan: &Plan, permits: &'a Permits, run: &'a str) -> Self {
        RenderOptions { permits, with_secrets: needs_secrets(&plan.server), run, start: 1 }
    }
}

/// Renders the manifests of a run.
///
/// # Errors
/// [`RenderError`] if the plan has no such fleet, or unsupported server settings.
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
        // `kubectl apply -f DIR` applies files in the order of their names.
        ("00-namespace.yaml", vec![namespace(&input)]),
        ("redis.yaml", redis::objects(&input)),
        ("clients.yaml", clients::objects(&input)),
    ];
    if input.starts_servers() {
        files.insert(2, ("servers.yaml", servers::objects(&input)));
    }
    if has_network_policy(kubernetes) {
        files.insert(1, ("network.yaml", vec![network(&input)]));
    }
    let manifests = files.into_iter().map(|(name, objects)| {
        let texts: Vec<String> = objects.iter().map(yaml::to_yaml).collect();
        Manifest { name, text: texts.join("---\n") }
    });
    Ok(manifests.collect())
}

/// A server in a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodServer {
    pub pod: u32,
    /// Number within the pod.
    pub number: u32,
    pub port: u16,
    /// Host name within the cluster.
    pub host: String,
}

/// Name of a server pod.
pub fn server_pod(pod: u32) -> String {
    format!("{SERVERS}-{pod}")
}

/// The servers of all pods of a plan with `pairs`; servers of a pod are adjacent.
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

fn namespace(input: &RenderInput<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": input.kubernetes.namespace, "labels": input.labels("namespace")},
    })
}

/// Whether a policy limits access to the run's pods. On the node's network, pods cannot be told apart.
pub fn has_network_policy(kubernetes: &KubernetesPlan) -> bool {
    !kubernetes.host_network
}

/// Network policy that allows traffic only between pods of the run.
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

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::{Encryption, ServerKind};

    fn plan(settings: &str) -> Plan {
        let text =
            format!("base = \"a\"\n[server]\nkind = \"mongod\"\n[fleet.kubernetes]\n{settings}\n");
        dyno_plan::file::parse(&text, "t").expect("valid")
    }

    fn rendered(plan: &Plan, run: &str, start: u32) -> Result<Vec<Manifest>, RenderError> {
        let permits = Permits::of(&plan.server);
        let options = RenderOptions { start, ..RenderOptions::of(plan, &permits, run) };
        render(plan, &options)
    }

    fn text(plan: &Plan, name: &str) -> String {
        let manifests = rendered(plan, "r1", 1).expect("a fleet plan");
        let found = manifests.iter().find(|manifest| manifest.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).text.clone()
    }

    #[test]
    fn pinned_pods_have_limits_that_equal_their_requests() {
        let pinned = text(&plan("server_cpus = 6"), "servers.yaml");
        assert_eq!(pinned.matches("cpu: \"6\"").count(), 2, "{pinned}");
        let free = text(&plan("server_cpus = 6\npin_cpus = false"), "servers.yaml");
        assert_eq!(free.matches("cpu: \"6\"").count(), 1, "{free}");
    }

    #[test]
    fn node_network_is_an_option() {
        assert!(!text(&plan(""), "clients.yaml").contains("hostNetwork"));
        let host = text(&plan("host_network = true"), "clients.yaml");
        assert!(host.contains("hostNetwork: true"), "{host}");
        assert!(host.contains("ClusterFirstWithHostNet"), "{host}");
    }

    #[test]
    fn running_servers_are_not_started() {
        let mut plan = plan("");
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some("mongodb://db".into());
        let manifests = rendered(&plan, "r", 1).expect("a fleet plan");
        assert!(!manifests.iter().any(|manifest| manifest.text.contains("StatefulSet")));
        plan.fleet = None;
        assert_eq!(rendered(&plan, "r", 1), Err(RenderError::NoKubernetes));
    }

    #[test]
    fn each_disk_gets_a_server_and_a_pod_an_agent() {
        let mut plan = plan("disks = 2\nserver_pods = 2");
        let text = |plan: &Plan| {
            let manifests = rendered(plan, "r", 3).expect("a fleet plan");
            let found = manifests.into_iter().find(|manifest| manifest.name == "servers.yaml");
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
        let kubernetes = plan.fleet.as_ref().and_then(|fleet| fleet.kubernetes.as_ref());
        let found = pod_servers(kubernetes.expect("present"), 1);
        let found: Vec<(u32, u16)> = found.iter().map(|server| (server.pod, server.port)).collect();
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
            dyno_plan::file::parse(&text, "t").expect("valid")
        };
        let shared = text(&with("disks = 2", "none"), "servers.yaml");
        assert_eq!(shared.matches("name: \"mongod-").count(), 3, "{shared}");
        // Once for the server, and once for the agent that reads its disk.
        for place in ["disk-0/server-0", "disk-1/server-1", "disk-0/server-2"] {
            let path = format!("mountPath: \"/data/{place}\"");
            assert_eq!(shared.matches(&path).count(), 2, "{place}: {shared}");
        }
        assert_eq!(shared.matches("subPath: \"server-2\"").count(), 2, "{shared}");
        assert_eq!(shared.matches("PersistentVolumeClaim").count(), 2, "{shared}");
        assert!(!shared.contains("numactl") && !shared.contains("SYS_NICE"));
        let without = text(&with("disks = 0\ndisk_size = \"8GiB\"", "interleave"), "servers.yaml");
        assert!(!without.contains("volumeClaimTemplates"), "{without}");
        assert!(without.contains("sizeLimit: \"8Gi\""), "{without}");
        assert!(without.contains("\"--interleave=all\""), "{without}");
        assert_eq!(without.matches("SYS_NICE").count(), 3, "{without}");
        let bound = text(&with("", "node=1"), "servers.yaml");
        assert!(bound.contains("\"--membind=1\""), "{bound}");
        // These placements need the node's CPUs before the pod exists.
        let error = rendered(&with("", "spread"), "r", 1).expect_err("refused");
        assert!(error.to_string().contains("`server.placement`"), "{error}");
    }

    #[test]
    fn network_policy_admits_only_pods_of_the_fleet() {
        let policy = text(&plan(""), "network.yaml");
        assert!(policy.contains("kind: \"NetworkPolicy\""), "{policy}");
        let own = "app.kubernetes.io/instance: \"r1\"";
        // The label of the policy, of its pods, and of allowed peers.
        assert_eq!(policy.matches(own).count(), 3, "{policy}");
        assert_eq!(policy.matches("component").count(), 1, "{policy}");
        for file in ["clients.yaml", "servers.yaml", "redis.yaml"] {
            assert!(text(&plan(""), file).contains(own), "{file}");
        }
    }

    #[test]
    fn clients_may_load_only_servers_of_the_run() {
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
        let error = rendered(&plan, "r", 1).expect_err("unsupported").to_string();
        assert!(error.contains("`server.data_dir`"), "{error}");
        let embedded = dyno_plan::file::parse(
            "base = \"a\"\n[server]\nkind = \"embedded\"\n[fleet.kubernetes]\n",
            "t",
        );
        let embedded = embedded.expect("valid");
        let error = rendered(&embedded, "r", 1).expect_err("without an image").to_string();
        assert!(error.contains("embedded"), "{error}");
    }

    #[test]
    fn secrets_are_mounted_only_where_they_are_read() {
        let mut secured = plan("disks = 2");
        secured.server.auth = true;
        let servers = text(&secured, "servers.yaml");
        assert_eq!(servers.matches("- \"--auth\"").count(), 2, "{servers}");
        assert!(!servers.contains("tls") && !servers.contains(SERVER_SECRET));
        secured.server.encryption = Encryption::Server;
        let servers = text(&secured, "servers.yaml");
        let lenient = "--tlsAllowConnectionsWithoutCertificates";
        assert_eq!(servers.matches(lenient).count(), 2, "{servers}");
        // In both server containers, and not in the agent's.
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
    fn no_manifest_holds_a_secret() {
        let mut plan = plan("");
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some("mongodb://user:a-secret@db/".into());
        let manifests = rendered(&plan, "r", 1).expect("a fleet plan");
        let holds = |text: &str| manifests.iter().any(|manifest| manifest.text.contains(text));
        assert!(holds("\"db\""), "clients may load the server");
        assert!(!holds("a-secret"));
        for manifest in manifests {
            assert!(!manifest.text.contains("kind: \"Secret\""), "{}", manifest.text);
            assert!(!manifest.text.contains("stringData"), "{}", manifest.text);
        }
    }
}
