//! Checks that manifests are valid for the last four versions of Kubernetes, and that Ansible understands its files. Uses programs
//! that `scripts/python-tools.sh` installs.
use dyno_fleet::kubernetes::{RenderOptions, render};
use dyno_fleet::permits::Permits;
use dyno_plan::Plan;
use dyno_testkit::{Skip, or_skip};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The newest four versions with schemas in the validator.
const VERSIONS: [&str; 4] = ["1.34", "1.35", "1.36", "1.37"];

fn in_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A program of the virtual environment.
fn tool(name: &str) -> Option<PathBuf> {
    let path = in_project(".cache/python/bin").join(name);
    let found = path.exists().then_some(path);
    or_skip(found.ok_or_else(|| Skip::new(format!("no `{name}`"), "run `scripts/python-tools.sh`")))
}

fn plan(text: &str) -> Plan {
    dyno_plan::file::parse(text, "t").unwrap()
}

/// Plans whose options change the manifests.
fn plans() -> Vec<(&'static str, Plan)> {
    let mongod = "base = \"a\"\n[server]\nkind = \"mongod\"\n";
    vec![
        ("plain", plan(&format!("{mongod}[fleet.kubernetes]\n"))),
        (
            "everything",
            plan(&format!(
                "{mongod}cache = \"2GiB\"\nblock_compressor = \"zstd\"\nparameters = {{ ttlMonitorEnabled = \"false\" }}\n\
                 [fleet.kubernetes]\nnamespace = \"bench\"\nclient_pods = 100\nserver_pods = 3\ndisks = 2\n\
                 storage_class = \"fast\"\nhost_network = true\npin_cpus = false\ndisk_size = \"1.5GiB\"\n\
                 image = \"registry.example:5000/team/dyno@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n"
            )),
        ),
        (
            "several servers without a volume",
            plan(&format!(
                "{mongod}pairs = 4\nplacement = \"interleave\"\n[fleet]\nmapping = \"pairs\"\n\
                 [fleet.kubernetes]\ndisks = 0\n"
            )),
        ),
        (
            "secured servers",
            plan(&format!(
                "{mongod}auth = true\nencryption = \"mutual\"\n[fleet.kubernetes]\nserver_pods = 2\n"
            )),
        ),
        (
            "several secured servers on one NUMA node, which share volumes",
            plan(&format!(
                "{mongod}pairs = 4\nplacement = \"node=1\"\nauth = true\nencryption = \"server\"\n\
                 [fleet]\nmapping = \"pairs\"\n[fleet.kubernetes]\ndisks = 2\n"
            )),
        ),
        (
            "servers that run with a certificate",
            plan(
                "base = \"a\"\n[server]\nkind = \"uri\"\nuri = \"mongodb://db.example/?tls=true&tlsCAFile=ca.pem\"\n[fleet.kubernetes]\n",
            ),
        ),
        (
            "servers that run",
            plan(
                "base = \"a\"\n[server]\nkind = \"uri\"\nuri = \"mongodb://db.example/\"\n[fleet.kubernetes]\n",
            ),
        ),
    ]
}

fn written(folder: &Path, plan: &Plan) -> Vec<PathBuf> {
    let permits = Permits::of(&plan.server);
    let manifests = render(plan, &RenderOptions::of(plan, &permits, "run-1")).unwrap();
    let write = |manifest: &dyno_fleet::kubernetes::Manifest| {
        let path = folder.join(manifest.name);
        fs::write(&path, &manifest.text).unwrap();
        path
    };
    manifests.iter().map(write).collect()
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

#[test]
fn manifests_are_valid_in_the_last_four_versions() {
    let Some(validate) = tool("kubernetes-validate") else {
        return;
    };
    for (name, plan) in plans() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(folder.path(), &plan);
        assert!(files.len() >= 4);
        for version in VERSIONS {
            let mut command = Command::new(&validate);
            let output = command
                .args(["--strict", "--kubernetes-version", version])
                .args(&files)
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}, {version}: {}", text(&output));
        }
    }
}

#[test]
fn validation_finds_wrong_manifests() {
    let Some(validate) = tool("kubernetes-validate") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), &plans()[0].1);
    let clients = files.iter().find(|path| path.ends_with("clients.yaml")).unwrap();
    let good = fs::read_to_string(clients).unwrap();
    for (from, to) in [("completions: 3", "completions: \"3\""), ("maxSkew", "maxSkewness")] {
        assert!(good.contains(from), "{good}");
        fs::write(clients, good.replace(from, to)).unwrap();
        let output = Command::new(&validate)
            .args(["--strict", "--kubernetes-version", VERSIONS[3]])
            .arg(clients)
            .output();
        assert!(!output.unwrap().status.success(), "{to}");
    }
}

#[test]
fn playbooks_are_understood() {
    let Some(playbook) = tool("ansible-playbook") else {
        return;
    };
    let folder = in_project("deploy/ansible");
    for name in ["site.yml", "agents.yml", "stop.yml"] {
        let mut command = Command::new(&playbook);
        command.args(["--syntax-check", name]).current_dir(&folder);
        command
            .env("ANSIBLE_CONFIG", folder.join("ansible.cfg"))
            .env("ANSIBLE_LOCAL_TEMP", std::env::temp_dir());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert!(!text(&output).contains("WARNING"), "{name}: {}", text(&output));
    }
}

#[test]
fn example_inventory_has_the_groups_of_a_plan() {
    let Some(inventory) = tool("ansible-inventory") else {
        return;
    };
    let folder = in_project("deploy/ansible");
    let mut command = Command::new(&inventory);
    let output = command
        .args(["-i", "inventory.example.yml", "--list"])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let listed = String::from_utf8(output.stdout).unwrap();
    let inventory = dyno_fleet::inventory::Inventory::parse(&listed).unwrap();
    let clients = inventory.hosts(&["clients".to_owned()]).unwrap();
    assert_eq!(clients, ["client1", "client2"]);
    assert_eq!(inventory.address("client1"), "10.0.0.11");
    assert_eq!(inventory.hosts(&["servers".to_owned()]).unwrap(), ["server1"]);
}

/// Whether `kubectl` is installed. No script installs it.
fn has_kubectl() -> bool {
    let version = Command::new("kubectl").args(["version", "--client"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// A cluster's answer about its kinds, by path. It contains no objects.
fn answer(path: &str) -> Option<Value> {
    let group = |name: &str| {
        let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
        json!({"name": name, "versions": [version], "preferredVersion": version})
    };
    let kinds = |version: &str, kinds: &[(&str, &str)]| {
        let resource = |(name, kind): &(&str, &str)| {
            let is_namespaced = *kind != "Namespace";
            json!({"name": name, "singularName": "", "namespaced": is_namespaced, "kind": kind,
                   "verbs": ["create", "get", "patch"]})
        };
        let resources: Vec<Value> = kinds.iter().map(resource).collect();
        json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
    };
    Some(match path {
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => {
            json!({"kind": "APIGroupList", "groups": [group("apps"), group("batch"), group("networking.k8s.io")]})
        }
        "/api/v1" => kinds(
            "v1",
            &[("namespaces", "Namespace"), ("services", "Service"), ("configmaps", "ConfigMap")],
        ),
        "/apis/apps/v1" => {
            kinds("apps/v1", &[("deployments", "Deployment"), ("statefulsets", "StatefulSet")])
        }
        "/apis/batch/v1" => kinds("batch/v1", &[("jobs", "Job")]),
        "/apis/networking.k8s.io/v1" => {
            kinds("networking.k8s.io/v1", &[("networkpolicies", "NetworkPolicy")])
        }
        _ => return None,
    })
}

/// Serves the API of an empty cluster while this process lives; returns its address.
fn cluster() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.unwrap();
            std::thread::spawn(move || answer_all(&connection));
        }
    });
    address
}

fn answer_all(connection: &TcpStream) {
    let mut lines = BufReader::new(connection).lines();
    while let Some(Ok(request)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let path = request.split([' ', '?']).nth(1).unwrap_or_default();
        let missing = || json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
        let (status, body) = match answer(path) {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", missing()),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut writer = connection;
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn kubectl_dry_run_accepts_every_object() {
    if !has_kubectl() {
        return;
    }
    let address = cluster();
    let home = tempfile::tempdir().unwrap();
    let dry_run = |files: &[PathBuf]| {
        let mut kubectl = Command::new("kubectl");
        kubectl.env("HOME", home.path()).env("KUBECONFIG", "/dev/null");
        // Schemas are checked above; this API has none.
        let fixed = ["apply", "--dry-run=client", "--validate=false"];
        kubectl.args(["--server", &address]).args(fixed);
        for file in files {
            kubectl.arg("-f").arg(file);
        }
        kubectl.output().unwrap()
    };
    for (name, plan) in plans() {
        let folder = tempfile::tempdir().unwrap();
        let files = written(folder.path(), &plan);
        let output = dry_run(&files);
        let said = text(&output);
        assert!(output.status.success(), "{name}: {said}");
        let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
        let objects: usize = texts.map(|text| text.split("---\n").count()).sum();
        assert_eq!(said.matches("created (dry run)").count(), objects, "{name}: {said}");
        // Unknown kinds must be refused.
        let clients = files.iter().find(|path| path.ends_with("clients.yaml")).unwrap();
        let wrong = fs::read_to_string(clients).unwrap().replace("\"Job\"", "\"Jobs\"");
        fs::write(clients, wrong).unwrap();
        let output = dry_run(&files);
        assert!(
            !output.status.success() && text(&output).contains("no matches for kind"),
            "{}",
            text(&output)
        );
    }
}
