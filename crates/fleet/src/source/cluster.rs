//! Pods in place of hosts, by `kubectl`: the manifests are applied part by part, Redis and servers are reached over forwarded
//! ports, and everything is deleted again. The controller stays where it is, and so does the run directory.

use super::program::{self, Call};
use super::secrets::FleetSecrets;
use crate::endpoint::Endpoint;
use crate::kubernetes::{
    AGENT_KEY, AGENT_SECRET, JOB, PodServer, REDIS, REDIS_PORT, RenderError, RenderOptions, SECRET,
    SERVER_KEYS, SERVER_SECRET, SERVERS, has_network_policy, pod_servers, render, server_pod,
    servers_of_pod, watch_run, watches_servers,
};
use crate::permits::Permits;
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

/// How to get `kubectl`.
const HINT: &str = "see docs/fleet.md; `kubectl` must be there and set to the cluster";
/// Longest time of one question or change.
const WITHIN: Duration = Duration::from_secs(120);
/// Longest time until pods are there: images may have to be fetched, and volumes to be made.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// Longest time until a port is forwarded.
const FORWARD_WITHIN: Duration = Duration::from_secs(30);
/// Lines of the log of each pod that are kept.
const LOG_LINES: &str = "--tail=10000";

/// A cluster with the parts of a run.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Path of the programs.
    path: Option<OsString>,
    /// Where the manifests are.
    folder: PathBuf,
    kubernetes: KubernetesPlan,
    /// `server.pairs` of the plan whose servers run now.
    pairs: u32,
    permits: Permits,
    /// Agents that load are given users or certificates.
    with_secrets: bool,
    run: String,
    /// The namespace was not there before.
    made_namespace: bool,
    redis: Option<Forward>,
    servers: Vec<Forward>,
    /// How often servers have been started, or would be next.
    starts: u32,
    /// Servers of ours are there, or some part of them.
    has_servers: bool,
}

/// A server for the controller, and for the pods.
pub(super) type Seen = (Remote, String);

impl Cluster {
    /// Writes the manifests into a folder that only this person can read. Nothing is applied.
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

    /// Client pods.
    pub(super) fn clients(&self) -> u32 {
        self.kubernetes.client_pods
    }

    /// CPUs of a server on a node with so many, if that is known: without CPUs of its own it shares those of the node.
    pub(super) fn server_cpus(&self, server: &PodServer, of_node: Option<u32>) -> u32 {
        if self.kubernetes.pin_cpus {
            return self.kubernetes.server_cpus;
        }
        of_node.map_or(self.kubernetes.server_cpus, |cpus| {
            let servers = servers_of_pod(&self.kubernetes, self.pairs);
            even(cpus.into(), server.number.into(), servers.into()) as u32
        })
    }

    /// The servers that are started, in their order.
    pub(super) fn server_pods(&self) -> Vec<PodServer> {
        pod_servers(&self.kubernetes, self.pairs)
    }

    /// The agents beside the servers that run now: name of their run, and the pods. None where the plan wants no metrics of hosts.
    pub(super) fn watchers(&self, plan: &Plan) -> Option<(String, Vec<String>)> {
        let pods = 0..self.kubernetes.server_pods;
        let pods = pods.map(|pod| format!("pod {}", server_pod(pod)));
        watches_servers(plan).then(|| (watch_run(&self.run, self.starts), pods.collect()))
    }

    /// Makes the meeting point, and says where it is for this program. Its password is made here, and is in a `Secret` alone, as
    /// are the secrets of the agents.
    pub(super) fn meet(
        &mut self,
        secrets: &FleetSecrets,
        cancel: &Cancel,
    ) -> Result<Endpoint, Error> {
        let namespace = self.kubernetes.namespace.clone();
        let by = Some(cancel);
        let found = self.kubectl(
            &[
                "get",
                "namespace",
                &namespace,
                "--ignore-not-found",
                "-o",
                "name",
            ],
            "",
            by,
        )?;
        if found.trim().is_empty() {
            self.made_namespace = true;
            self.apply("namespace.yaml", by)?;
        } else {
            let job = format!("job/{JOB}");
            let other = self.kubectl(&["get", &job, "--ignore-not-found", "-o", "name"], "", by)?;
            if !other.trim().is_empty() {
                let text = format!(
                    "there is a `{JOB}` in the namespace `{namespace}`: another run uses it, or did not clean up"
                );
                let hint = format!(
                    "choose another `fleet.kubernetes.namespace`, or `kubectl --namespace {namespace} delete {job}`"
                );
                return Err(Error::new(Kind::Environment, text).with_hint(hint));
            }
        }
        let password =
            dyno_servers::random_text().or_fault(Kind::Environment, || "cannot make a password")?;
        let data = json!({
            "password": password,
            "url": format!("redis://:{password}@{REDIS}:{REDIS_PORT}"),
        });
        self.make_secret(SECRET, &data, cancel)?;
        if let Some(text) = secrets.of_client() {
            self.make_secret(AGENT_SECRET, &json!({(AGENT_KEY): text}), cancel)?;
        }
        self.apply("plan.yaml", by)?;
        if has_network_policy(&self.kubernetes) {
            self.apply("network.yaml", by)?;
        }
        self.apply("redis.yaml", by)?;
        let deployment = format!("deployment/{REDIS}");
        self.rollout(&deployment, by)?;
        let forward = self.forward(&deployment, REDIS_PORT)?;
        let text = format!("redis://:{password}@127.0.0.1:{}", forward.port);
        self.redis = Some(forward);
        Ok(Endpoint::find(Some(&text), None, None)?)
    }

    /// Makes a `Secret`, or changes it, whoever made it. What is in it goes by standard input. The API of the cluster applies it:
    /// otherwise `kubectl` would put a copy in clear text into the annotation `last-applied-configuration`, which `kubectl get`
    /// and many tools show.
    fn make_secret(&self, name: &str, data: &Value, cancel: &Cancel) -> Result<(), Error> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.kubernetes.namespace},
            "stringData": data,
        });
        let words = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.kubectl(&words, &secret.to_string(), Some(cancel))
            .map(drop)
    }

    /// Starts the clients, whose controller is there.
    pub(super) fn start(&self, cancel: &Cancel) -> Result<(), Error> {
        self.apply("clients.yaml", Some(cancel))
    }

    /// Writes what the plan says of servers, after those that run have been deleted with their volumes, and makes their
    /// certificates for the names that the pods of the cluster know them by. This program comes to `127.0.0.1`.
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

    /// Starts the servers that were prepared, and makes their users.
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
                error.context(format!("cannot make the user of the server in `{pod}`"))
            })?;
            seen.push((own, uri(&server.host, server.port, plan)));
            self.servers.push(forward);
        }
        Ok(seen)
    }

    /// Last lines of the pods of a part, `client` or `server`, for an error.
    pub(super) fn last_words(&self, part: &str) -> Vec<String> {
        let component = format!("app.kubernetes.io/component={part}");
        let pods = self.kubectl(&["get", "pods", "--selector", &component], "", None);
        let logs = [
            "logs",
            "--selector",
            &component,
            "--prefix",
            "--all-containers",
            "--tail=1",
        ];
        let logs = self.kubectl(&logs, "", None);
        let both = pods.into_iter().chain(logs);
        both.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .take(12)
            .collect()
    }

    /// Deletes everything, after its logs were kept where they are wanted. What could not be done is a warning.
    pub(super) fn end(&mut self, logs: Option<&Path>, context: Context<'_>) {
        let mut results = Vec::new();
        if let Some(folder) = logs {
            results.extend(["client", "server", "redis"].map(|part| self.keep_logs(part, folder)));
        }
        self.servers.clear();
        self.redis = None;
        for file in [
            "clients.yaml",
            "servers.yaml",
            "redis.yaml",
            "network.yaml",
            "plan.yaml",
        ] {
            if self.folder.join("base").join(file).exists() {
                results.push(self.delete(file, None));
            }
        }
        let secrets = [SECRET, AGENT_SECRET, SERVER_SECRET];
        let words = [&["delete", "secret"], &secrets[..], &["--ignore-not-found"]].concat();
        results.push(self.kubectl(&words, "", None).map(drop));
        if self.made_namespace {
            results.push(self.delete("namespace.yaml", None));
        }
        for error in results.into_iter().filter_map(Result::err) {
            context.warning(format!("{error:#}"));
        }
    }

    fn keep_logs(&self, part: &str, folder: &Path) -> Result<(), Error> {
        let component = format!("app.kubernetes.io/component={part}");
        let text = self.kubectl(
            &[
                "logs",
                "--selector",
                &component,
                "--prefix",
                "--all-containers",
                LOG_LINES,
            ],
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
            // With the pods and their volumes, and not only what made them.
            "--cascade=foreground",
            "--timeout=100s",
        ];
        self.kubectl(&words, "", cancel).map(drop)
    }

    fn manifest(&self, file: &str) -> String {
        self.folder.join("base").join(file).display().to_string()
    }

    fn rollout(&self, what: &str, cancel: Option<&Cancel>) -> Result<(), Error> {
        let timeout = format!("--timeout={}s", READY_WITHIN.as_secs());
        self.called(
            &["rollout", "status", what, &timeout],
            "",
            READY_WITHIN + WITHIN,
            cancel,
        )
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
        let call = Call {
            name: "kubectl",
            within,
            input,
            cancel,
            hint: HINT,
        };
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

    /// Makes a port of a pod one of this machine, as long as the value lives.
    fn forward(&self, what: &str, port: u16) -> Result<Forward, Error> {
        let mut command = self.command(&["port-forward", what, &format!(":{port}")]);
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
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
                // It says something of each connection.
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

/// A port of a pod that is one of this machine.
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

/// A server of a pod without its user and its files.
fn uri(host: &str, port: u16, plan: &Plan) -> String {
    let tls = match plan.server.encryption {
        Encryption::Off => "",
        Encryption::Server | Encryption::Mutual => "?tls=true",
    };
    with_options(&format!("mongodb://{host}:{port}/{tls}"), plan)
}

/// Makes the user of a server that has none, if it is to have one. A forwarded port leads to loopback in the pod, from which a
/// server takes its first user.
fn make_user(remote: &Remote) -> Result<(), Error> {
    let Some(credentials) = &remote.credentials else {
        return Ok(());
    };
    let mut control = Connector::new(&remote.target, None)?.control()?;
    let made = control.run("admin", user_command(credentials));
    made.map(drop)
        .or_fault(Kind::Environment, || "the server does not take it")
}

/// Refuses a plan that pods cannot have, and returns what it says of them.
pub(super) fn check<'a>(
    plan: &'a Plan,
    permits: &Permits,
    run: &str,
) -> Result<&'a KubernetesPlan, Error> {
    let bad = |text: String| Error::new(Kind::BadInput, text);
    let fleet = plan
        .fleet
        .as_ref()
        .ok_or_else(|| bad("the plan has no table `[fleet]`".into()))?;
    let kubernetes = table(fleet)?;
    let starts_servers = plan.server.kind != ServerKind::Uri;
    let servers = pod_servers(kubernetes, plan.server.pairs).len();
    if starts_servers && fleet.mapping == Mapping::Deployment && servers > 1 {
        let text = format!(
            "`fleet.mapping` is `deployment`, and `fleet.kubernetes` has {servers} servers"
        );
        return Err(
            bad(text).with_hint("map clients to independent servers by `pairs` or `all-to-all`")
        );
    }
    // Nothing is written.
    render(plan, &RenderOptions::of(plan, permits, run))?;
    Ok(kubernetes)
}

/// What the plan says of pods.
pub(super) fn table(fleet: &FleetPlan) -> Result<&KubernetesPlan, Error> {
    let found = fleet.kubernetes.as_ref();
    found.ok_or_else(|| RenderError::NoKubernetes.into())
}

/// The port in `Forwarding from 127.0.0.1:40123 -> 6379`.
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
