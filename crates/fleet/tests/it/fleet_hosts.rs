//! Hosts made of namespaces, with an sshd each: real SSH and real Ansible, from setup to removal. Needs root.
use dyno_testkit::{Skip, embedded_program, or_skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn project() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().unwrap()
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Hosts that are removed on drop.
struct Hosts(PathBuf);

impl Hosts {
    fn run(&self, verb: &str, names: &[&str]) -> Output {
        let mut command = Command::new(project().join("scripts/namespaces.sh"));
        command.arg(verb).arg(&self.0).args(names).output().unwrap()
    }

    fn ssh(&self, host: &str, command: &str) -> Output {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.0.join("ssh_config")).args([host, command]);
        ssh.output().unwrap()
    }

    /// Runs a playbook, and returns the number of changed, failed or unreachable hosts.
    fn play(&self, book: &str, more: &[&str]) -> (usize, String) {
        let folder = project().join("deploy/ansible");
        let mut command = Command::new(project().join(".cache/python/bin/ansible-playbook"));
        command.arg("-i").arg(self.0.join("inventory.yml")).arg(book).args(more);
        command.arg("-e").arg(format!("@{}", self.0.join("vars.yml").display()));
        command.current_dir(&folder).env("ANSIBLE_CONFIG", folder.join("ansible.cfg"));
        command.env("ANSIBLE_NOCOLOR", "1").env("ANSIBLE_HOME", self.0.join("ansible"));
        let output = command.output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{said}");
        let changed = said
            .split("PLAY RECAP")
            .nth(1)
            .unwrap()
            .lines()
            .filter(|line| line.contains("changed=") && !line.contains("changed=0 "));
        (changed.count(), said.clone())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.run("down", &[]);
    }
}

fn hosts() -> Option<(Hosts, PathBuf)> {
    let is_root = nix::unistd::Uid::effective().is_root();
    or_skip(is_root.then_some(()).ok_or_else(|| Skip::new("no root", "run as root")))?;
    let ansible = project().join(".cache/python/bin/ansible-playbook").exists();
    let has = ["/usr/sbin/sshd", "/usr/bin/promtool"].map(|path| Path::new(path).exists());
    let has = ansible && has == [true; 2];
    let remedy = "run `scripts/setup.sh test`";
    or_skip(
        has.then_some(()).ok_or_else(|| Skip::new("no Ansible, no sshd or no promtool", remedy)),
    )?;
    let server = or_skip(embedded_program())?;
    let folder = std::env::temp_dir().join(format!("dyno-hosts-{}", std::process::id()));
    let hosts = Hosts(folder);
    let output = hosts.run("up", &["client1", "server1", "observer1"]);
    assert!(output.status.success(), "{}", text(&output));
    Some((hosts, server))
}

/// Checks that started agents may load one server of the inventory and no others.
fn assert_agents_may_load(hosts: &Hosts, server: &str) {
    let redis = hosts.0.join("redis-url");
    fs::write(&redis, "redis://127.0.0.1").unwrap();
    let variables = format!("{{dyno_run: r, dyno_redis_url_file: {}}}", redis.display());
    hosts.play("agents.yml", &["-e", &variables]);
    let log = "for _ in $(seq 100); do grep -s agent /var/lib/dyno/r/agent-0.log && break; sleep 0.1; done";
    let words = text(&hosts.ssh("client1", log));
    let address = fs::read_to_string(hosts.0.join(server).join("address")).unwrap();
    let target = format!("--target {}", address.trim());
    assert!(words.trim().ends_with(&target), "{words}");
    assert_eq!(words.matches("--target").count(), 1, "{words}");
}

/// Checks that the observer's Prometheus scrapes runs started there, and the machines of clients and servers.
fn assert_all_is_scraped(hosts: &Hosts) {
    let settings = "/etc/prometheus/prometheus.yml";
    let checked = hosts.ssh("observer1", &format!("promtool check config {settings}"));
    assert!(checked.status.success(), "{}", text(&checked));
    let written = text(&hosts.ssh("observer1", &format!("cat {settings}")));
    let machine = |name: &str| {
        let address = fs::read_to_string(hosts.0.join(name).join("address")).unwrap();
        format!("{}:9100", address.trim())
    };
    for target in ["127.0.0.1:9464".into(), machine("client1"), machine("server1")] {
        let target = format!("- targets: [\"{target}\"]");
        assert!(written.contains(&target), "{target}: {written}");
    }
}

#[test]
fn hosts_are_prepared_used_and_cleaned_up() {
    let Some((hosts, server)) = hosts() else {
        return;
    };
    fs::write(hosts.0.join("empty.toml"), "").unwrap();
    // Prints its arguments.
    fs::write(hosts.0.join("dyno"), "#!/bin/sh\necho \"$@\"\n").unwrap();
    let variables = format!(
        "dyno_program: {}/dyno\ndyno_server_source: {}\ndyno_server_program: /opt/dyno/secantusd-rs\n\
         dyno_server_arguments: [--config, {}/empty.toml, --host, '{{address}}', --port, '{{port}}', --storage-path, '{{data}}', --standalone]\n\
         dyno_server_placement: [taskset, -c, '0']\ndyno_node_packages: []\ndyno_observer_packages: []\n",
        hosts.0.display(),
        server.display(),
        hosts.0.display()
    );
    fs::write(hosts.0.join("vars.yml"), variables).unwrap();
    // Check mode changes nothing, and prints the programs to start, even before packages are installed.
    let packages = ["--check", "-e", "{dyno_node_packages: [no-such-package]}"];
    let (changed, said) = hosts.play("site.yml", &packages);
    assert_eq!(changed, 3, "{said}");
    let is_announced =
        |line: &str| line.contains("/opt/dyno/secantusd-rs") && line.contains("start");
    assert!(said.lines().any(is_announced), "{said}");
    assert!(!hosts.ssh("client1", "test -e /opt/dyno").status.success());
    assert_eq!(hosts.play("site.yml", &[]).0, 3);
    let (changed, said) = hosts.play("site.yml", &[]);
    assert_eq!(changed, 0, "{said}");
    let place = hosts.ssh("server1", "taskset -p $(cat /var/lib/dyno/server/server.pid)");
    assert!(text(&place).trim().ends_with("mask: 1"), "{}", text(&place));
    assert_agents_may_load(&hosts, "server1");
    assert_all_is_scraped(&hosts);
    // Each host has its own files and processes.
    assert!(!Path::new("/opt/dyno/secantusd-rs").exists());
    assert!(!hosts.ssh("client1", "pgrep secantusd-rs").status.success());
    assert!(hosts.run("cut", &["server1"]).status.success());
    let cut = hosts.ssh("server1", "true");
    assert_eq!(cut.status.code(), Some(255), "{}", text(&cut));
    assert!(hosts.run("mend", &["server1"]).status.success());
    // The server of one host, and the Redis address of the other.
    assert_eq!(hosts.play("stop.yml", &[]).0, 2);
    assert!(!hosts.ssh("server1", "pgrep secantusd-rs").status.success());
    // After a reboot, the recorded process ID may belong to another program.
    let other = "(sleep 617 >/dev/null 2>&1 & echo $! >/var/lib/dyno/server/server.pid)";
    assert!(hosts.ssh("server1", other).status.success());
    hosts.play("site.yml", &["--limit", "server1"]);
    assert!(hosts.ssh("server1", "pgrep secantusd-rs").status.success());
    assert!(hosts.ssh("server1", "pgrep sleep").status.success(), "not our process");
    assert_eq!(hosts.play("stop.yml", &[]).0, 1);
    assert!(!hosts.ssh("server1", "pgrep secantusd-rs").status.success());
    let left = hosts.ssh("server1", "find /var/lib/dyno -type f");
    assert_eq!(text(&left).trim(), "/var/lib/dyno/server/server.log", "the log stays");
    let folder = hosts.0.clone();
    drop(hosts);
    assert!(!folder.exists());
    let named = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(named);
    let ours = processes.filter(|line| String::from_utf8_lossy(line).contains(&folder));
    assert_eq!(ours.count(), 0, "processes are left");
}
