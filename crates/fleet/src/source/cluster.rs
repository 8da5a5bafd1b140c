//! Pods instead of hosts, by `kubectl`: applies the manifests part by part, reaches Redis and servers over forwarded ports, and
//! deletes everything at the end. Controller and run directory stay on this machine.

use super::secrets::FleetSecrets;
use crate::endpoint::Endpoint;
use crate::kubernetes::{
    AGENT_KEY, AGENT_SECRET, JOB, PodServer, REDIS, REDIS_PORT, RenderError, RenderOptions, SECRET,
    SERVER_KEYS, SERVER_SECRET, SERVERS, has_network_policy, pod_servers, render, server_pod,
    servers_of_pod, watch_run, watches_servers,
};
use crate::permits::Permits;
use crate::program::{self, Call};
use crate::shares::even;
use dyno_engine::Cancel;
use dyno_engine::context::Context;
use dyno_engine::deployment::with_options;
use dyno_engine::files::{make_folder, write_file};
use dyno_engine::{Error, Kind, OrFault};
use dyno_load::connect::Connector;
use dyno_plan::Plan;
use dyno_plan::fleet::{FleetPlan, KubernetesPlan, Mapping};
use dyno_plan::model::{Encryption, ServerKind};
use dyno_plan::task::Remote;
use dyno_plan::uri::redact;
use dyno_servers::user_command;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Hint for a missing or failing `kubectl`.
const HINT: &str = "install `kubectl` and select the cluster; see docs/fleet.md";
/// Longest time of one query or change.
const WITHIN: Duration = Duration::from_secs(120);
/// Longest wait for pods, which may fetch images and create volumes.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// Longest wait for a forwarded port.
const FORWARD_WITHIN: Duration = Duration::from_secs(30);
/// Log lines kept of each pod.
const LOG_LINES: &str = "--tail=10000";

/// A cluster with the objects of a run.
#[derive(Debug)]
pub(super) struct Cluster {
    /// `PATH` to look up programs.
    path: Option<OsString>,
    /// Folder of the manifests.
    folder: PathBuf,
    kubernetes: KubernetesPlan,
    /// `server.pairs` of the plan of the current servers.
    pairs: u32,
    permits: Permits,
    /// Whether loading agents get users or certificates.
    with_secrets: bool,
    run: String,
    /// Whether this run created the namespace.
    made_namespace: bool,
    redis: Option<Forward>,
    servers: Vec<Forward>,
    /// Number of server starts so far.
    starts: u32,
    /// Whether this run's servers, or some of their objects, exist.
    has_servers: bool,
}

/// A server as the controller reaches it, and as the pods do.
pub(super) type Seen = (Remote, String);

impl Cluster {
    /// Writes the manifests into a folder that only this user can read; applies nothing.
    pub(super) fn new(
        plan: &Plan,
        (permits, with_secrets): (Permits, bool),
        run: &str,
        path: Option<OsString>,
        folder: &Path,
    ) -> Result<Self, Error> {
        let kubernetes = check(plan, &permits, run)?.clone();
        let cluster = Cluster {
            path,
            folder: folder.to_owned(),
            kubernetes,
            pairs: plan.server.pairs,
            permits,
            with_secrets,
            run: run.to_owned(),
            made_namespace: false,
            redis: None,
            servers: Vec::new(),
            starts: 1,
            has_servers: false,
        };
        cluster.write(plan)?;
        Ok(cluster)
    }

    fn write(&self, plan: &Plan) -> Result<(), Error> {
        let options = RenderOptions {
            permits: &self.permits,
            with_secrets: self.with_secrets,
            run: &self.run,
            start: self.starts,
        };
        for manifest in render(plan, &options)? {
            manifest.write(&self.folder)?;
        }
        Ok(())
    }

    /// Number of client pods.
    pub(super) fn clients(&self) -> u32 {
        self.kubernetes.client_pods
    }

    /// CPUs of a server on a node with `of_node` CPUs, if known. A server without exclusive CPUs shares the node's.
    pub(super) fn server_cpus(&self, server: &PodServer, of_node: Option<u32>) -> u32 {
        if self.kubernetes.pin_cpus {
            return self.kubernetes.server_cpus;
        }
        of_node.map_or(self.kubernetes.server_cpus, |cpus| {
            let servers = servers_of_pod(&self.kubernetes, self.pairs);
            even(cpus.into(), server.number.into(), servers.into()) as u32
        })
    }

    /// The servers that are started, in order.
    pub(super) fn server_pods(&self) -> Vec<PodServer> {
        pod_servers(&self.kubernetes, self.pairs)
    }

    /// Run name and pods of the agents next to the current servers. `None` if the plan wants no host metrics.
    pub(super) fn watchers(&self, plan: &Plan) -> Option<(String, Vec<String>)> {
        let pods = 0..self.kubernetes.server_pods;
        let pods = pods.map(|pod| format!("pod {}", server_pod(pod)));
        watches_servers(plan).then(|| (watch_run(&self.run, self.starts), pods.collect()))
    }

    /// Creates the meeting point, and returns its address for this program. The password is generated here, and stored only in a
    /// `Secret`, as are the agents' secrets.
    pub(super) fn meet(
        &mut self,
        secrets: &FleetSecrets,
        cancel: &Cancel,
    ) -> Result<Endpoint, Error> {
        let namespace = self.kubernetes.namespace.clone();
        let by = Some(cancel);
        let found = self.kubectl(
            &["get", "namespace", &namespace, "--ignore-not-found", "-o", "name"],
            "",
            by,
        )?;
        if found.trim().is_empty() {
            self.made_namespace = true;
            self.apply("00-namespace.yaml", by)?;
        } else {
            let job = format!("job/{JOB}");
            let other = self.kubectl(&["get", &job, "--ignore-not-found", "-o", "name"], "", by)?;
            if !other.trim().is_empty() {
                let text = format!(
                    "the namespace `{namespace}` already contains a `{JOB}`: another run uses it, or did not clean up"
                );
                let hint = format!(
                    "choose another `fleet.kubernetes.namespace`, or run `kubectl --namespace {namespace} delete {job}`"
                );
                return Err(Error::new(Kind::Environment, text).with_hint(hint));
            }
        }
        let password = dyno_servers::random_text()
            .or_fault(Kind::Environment, || "cannot create a password")?;
        let data = json!({
            "password": password,
            "url": format!("redis://:{password}@{REDIS}:{REDIS_PORT}"),
        });
        self.make_secret(SECRET, &data, cancel)?;
        if let Some(text) = secrets.of_client() {
            self.make_secret(AGENT_SECRET, &json!({(AGENT_KEY): text}), cancel)?;
        }
        if has_network_policy(&self.kubernetes) {
            self.apply("network.yaml", by)?;
        }
        self.apply("redis.yaml", by)?;
        let deployment = format!("deployment/{REDIS}");
        self.rollout(&deployment, by)?;
        let forward = self.forward(&deployment, REDIS_PORT)?;
        let text = format!("redis://:{password}@127.0.0.1:{}", forward.port);
        self.redis = Some(forward);
        Ok(Endpoint::new(&text, None)?)
    }

    /// Creates or replaces a `Secret`. Its content is passed by standard input and applied on the server: a client-side apply would
    /// copy it in clear text into the annotation `last-applied-configuration`, which `kubectl get` and many tools show.
    fn make_secret(&self, name: &str, data: &Value, cancel: &Cancel) -> Result<(), Error> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.kubernetes.namespace},
            "stringData": data,
        });
        let words = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.kubectl(&words, &secret.to_string(), Some(cancel)).map(drop)
    }

    /// Starts the clients; the controller must be ready.
    pub(super) fn start(&self, cancel: &Cancel) -> Result<(), Error> {
        self.apply("clients.yaml", Some(cancel))
    }

    /// Deletes running servers with their volumes, writes the plan's server manifests, and issues certificates for the pods' names
    /// in the cluster and for `127.0.0.1`, where this program connects.
    pub(super) fn prepare_servers(
        &mut self,
        plan: &Plan,
        secrets: &FleetSecrets,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        self.servers.clear();
        if self.has_servers {
            self.delete("servers.yaml", Some(cancel))?;
            self.has_servers = false;
            self.starts += 1;
        }
        self.pairs = plan.server.pairs;
        let hosts = self.server_pods().into_iter().map(|server| server.host);
        let mut names: Vec<String> = hosts.collect();
        names.dedup();
        if let Some((ca, server)) = secrets.of_pods(&plan.server, &names)? {
            let [server_key, ca_key] = SERVER_KEYS;
            let data = json!({(server_key): server, (ca_key): ca});
            self.make_secret(SERVER_SECRET, &data, cancel)?;
        }
        self.write(plan)
    }

    /// Starts the prepared servers, and creates their users.
    pub(super) fn serve(
        &mut self,
        plan: &Plan,
        secrets: &FleetSecrets,
        cancel: &Cancel,
    ) -> Result<Vec<Seen>, Error> {
        let by = Some(cancel);
        self.has_servers = true;
        self.apply("servers.yaml", by)?;
        self.rollout(&format!("statefulset/{SERVERS}"), by)?;
        let mut seen = Vec::new();
        for server in self.server_pods() {
            let pod = format!("pod/{}", server_pod(server.pod));
            let forward = self.forward(&pod, server.port)?;
            let own = uri("127.0.0.1", forward.port, plan);
            let own = secrets.remote(&own, &plan.server)?;
            make_user(&own).map_err(|error| {
                error.context(format!("cannot create the user of the server in `{pod}`"))
            })?;
            seen.push((own, uri(&server.host, server.port, plan)));
            self.servers.push(forward);
        }
        Ok(seen)
    }

    /// Last log lines of the pods of a part, `client` or `server`, for an error.
    pub(super) fn last_words(&self, part: &str) -> Vec<String> {
        let component = format!("app.kubernetes.io/component={part}");
        let pods = self.kubectl(&["get", "pods", "--selector", &component], "", None);
        let logs = ["logs", "--selector", &component, "--prefix", "--all-containers", "--tail=1"];
        let logs = self.kubectl(&logs, "", None);
        pods.into_iter()
            .chain(logs)
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .take(12)
            .collect()
    }

    /// Saves the logs if requested, then deletes everything. Failures are warnings.
    pub(super) fn end(&mut self, logs: Option<&Path>, context: Context<'_>) {
        let mut results = Vec::new();
        if let Some(folder) = logs {
            results.extend(["client", "server", "redis"].map(|part| self.keep_logs(part, folder)));
        }
        self.servers.clear();
        self.redis = None;
        for file in ["clients.yaml", "servers.yaml", "redis.yaml", "network.yaml"] {
            if self.folder.join(file).exists() {
                results.push(self.delete(file, None));
            }
        }
        let secrets = [SECRET, AGENT_SECRET, SERVER_SECRET];
        let words = [&["delete", "secret"], &secrets[..], &["--ignore-not-found"]].concat();
        results.push(self.kubectl(&words, "", None).map(drop));
        if self.made_namespace {
            results.push(self.delete("00-namespace.yaml", None));
        }
        for error in results.into_iter().filter_map(Result::err) {
            context.warning(format!("{error:#}"));
        }
    }

    fn keep_logs(&self, part: &str, folder: &Path) -> Result<(), Error> {
        let component = format!("app.kubernetes.io/component={part}");
        let text = self.kubectl(
            &["logs", "--selector", &component, "--prefix", "--all-containers", LOG_LINES],
            "",
            None,
        )?;
        make_folder(folder)?;
        write_file(&folder.join(format!("{part}.log")), &redact(&text))
    }

    fn apply(&self, file: &str, cancel: Option<&Cancel>) -> Result<(), Error> {
        let path = self.manifest(file);
        self.kubectl(&["apply", "-f", &path], "", cancel).map(drop)
    }

    fn delete(&self, file: &str, cancel: Option<&Cancel>) -> Result<(), Error> {
        let path = self.manifest(file);
        let words = [
            "delete",
            "-f",
            &path,
            "--ignore-not-found",
            // Also wait for the deletion of pods and volumes, not only of their owners.
            "--cascade=foreground",
            "--timeout=100s",
        ];
        self.kubectl(&words, "", cancel).map(drop)
    }

    fn manifest(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    fn rollout(&self, what: &str, cancel: Option<&Cancel>) -> Result<(), Error> {
        let timeout = format!("--timeout={}s", READY_WITHIN.as_secs());
        self.called(&["rollout", "status", what, &timeout], "", READY_WITHIN + WITHIN, cancel)
            .map(drop)
            .map_err(|error| error.context(format!("`{what}` is not ready")))
    }

    fn kubectl(
        &self,
        words: &[&str],
        input: &str,
        cancel: Option<&Cancel>,
    ) -> Result<String, Error> {
        self.called(words, input, WITHIN, cancel)
    }

    fn called(
        &self,
        words: &[&str],
        input: &str,
        within: Duration,
        cancel: Option<&Cancel>,
    ) -> Result<String, Error> {
        let (input, to) = (input.as_bytes(), Stdio::piped());
        let call = Call { name: "kubectl", within, input, to, cancel, hint: HINT };
        let found = program::output(self.command(words), call)?;
        if found.status.success() {
            return Ok(String::from_utf8_lossy(&found.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&found.stderr).trim().to_owned();
        let text = format!("`kubectl {}` failed: {said}", words.join(" "));
        Err(Error::new(Kind::Environment, text).with_hint(HINT))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(["--namespace", &self.kubernetes.namespace]);
        command.args(words);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    /// Forwards a pod's port to this machine until the value is dropped.
    fn forward(&self, what: &str, port: u16) -> Result<Forward, Error> {
        let mut command = self.command(&["port-forward", what, &format!(":{port}")]);
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        dyno_servers::set_death_signal(&mut command, nix::sys::signal::Signal::SIGTERM);
        let mut child = command
            .spawn()
            .or_fault(Kind::Environment, || "cannot start `kubectl`")
            .with_hint(HINT)?;
        let (sender, first) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let _ = sender.send(line);
                // Drain the messages about each connection.
                let _ = reader.read_to_end(&mut Vec::new());
            });
        }
        let line = first.recv_timeout(FORWARD_WITHIN).unwrap_or_default();
        let own = forwarded(&line);
        let mut forward = Forward { child, port: 0 };
        forward.port = own.ok_or_else(|| {
            let text = format!("`kubectl port-forward {what}` does not forward a port");
            Error::new(Kind::Environment, text).with_hint(HINT)
        })?;
        Ok(forward)
    }
}

/// A forwarded port of a pod.
#[derive(Debug)]
struct Forward {
    child: Child,
    port: u16,
}

impl Drop for Forward {
    fn drop(&mut self) {
        program::end(&mut self.child);
    }
}

/// Connection string of a pod's server, without user and files.
fn uri(host: &str, port: u16, plan: &Plan) -> String {
    let tls = match plan.server.encryption {
        Encryption::Off => "",
        Encryption::Server | Encryption::Mutual => "?tls=true",
    };
    with_options(&format!("mongodb://{host}:{port}/{tls}"), plan)
}

/// Creates the first user of a server without one, if the plan wants it. A forwarded port leads to loopback in the pod, from which
/// a server accepts its first user.
fn make_user(remote: &Remote) -> Result<(), Error> {
    let Some(credentials) = &remote.credentials else {
        return Ok(());
    };
    let mut control = Connector::new(&remote.target, None)?.control()?;
    let made = control.run("admin", user_command(credentials));
    made.map(drop).or_fault(Kind::Environment, || "the server refused the user")
}

/// Refuses plans that pods cannot perform, and returns the plan's fleet.
pub(super) fn check<'a>(
    plan: &'a Plan,
    permits: &Permits,
    run: &str,
) -> Result<&'a KubernetesPlan, Error> {
    let bad = |text: String| Error::new(Kind::BadInput, text);
    let fleet = plan.fleet.as_ref().ok_or_else(|| bad("the plan has no `[fleet]` table".into()))?;
    let kubernetes = table(fleet)?;
    let starts_servers = plan.server.kind != ServerKind::Uri;
    let servers = pod_servers(kubernetes, plan.server.pairs).len();
    if starts_servers && fleet.mapping == Mapping::Deployment && servers > 1 {
        let text = format!(
            "`fleet.mapping` is `deployment`, but `fleet.kubernetes` has {servers} servers"
        );
        return Err(
            bad(text).with_hint("map clients to independent servers by `pairs` or `all-to-all`")
        );
    }
    // Rendering finds unsupported keys; nothing is written.
    render(plan, &RenderOptions::of(plan, permits, run))?;
    Ok(kubernetes)
}

/// The plan's Kubernetes settings.
pub(super) fn table(fleet: &FleetPlan) -> Result<&KubernetesPlan, Error> {
    let found = fleet.kubernetes.as_ref();
    found.ok_or_else(|| RenderError::NoKubernetes.into())
}

/// The local port in `Forwarding from 127.0.0.1:40123 -> 6379`.
fn forwarded(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("Forwarding from 127.0.0.1:")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_port_is_the_local_port() {
        let line = "Forwarding from 127.0.0.1:40123 -> 6379\n";
        assert_eq!(forwarded(line), Some(40_123));
        assert_eq!(forwarded("error: unable to forward port\n"), None);
        assert_eq!(forwarded(""), None);
    }
}
