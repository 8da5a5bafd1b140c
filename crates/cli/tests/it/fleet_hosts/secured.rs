//! Secured servers on hosts: servers that the fleet starts, a replica set over three hosts, and a server that is already running.
//! Their secrets are never readable by others, and failures leave nothing.

use super::several::{assert_all_clean, real_servers};
use super::*;
use crate::common::secrets::{
    assert_not_in_redis, files_that_show, processes_that_show, words_of_bundle,
};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

pub(super) const SECURED: [&str; 2] = ["--auth", "--tls"];

/// Wraps `ansible-playbook` in a program that copies the run's secrets from the controller's memory, which only a process of the
/// same user can read. Returns the path of the copy.
pub(super) fn listen_in(hosts: &Hosts) -> PathBuf {
    let folder = hosts.bench.path("listening");
    std::fs::create_dir(&folder).unwrap();
    let seen = folder.join("seen");
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in\n@*start.yml.json) variables=${{word#@}} ;;\nesac; done\n\
         if [ -n \"$variables\" ]; then\n\
         file=$(sed 's/.*\"dyno_secrets_file\":\"\\([^\"]*\\)\".*/\\1/' \"$variables\")\ncat \"$file\" >{}\nfi\n\
         exec {}/ansible-playbook \"$@\"\n",
        seen.display(),
        project().join(".cache/python/bin").display()
    );
    let program = folder.join("ansible-playbook");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    seen
}

/// Checks that no secret is readable by others: not in process arguments, not in Redis, not in files of this machine, and on
/// hosts only in the files that the servers read.
fn assert_unseen(hosts: &Hosts, words: &[String]) {
    assert_eq!(processes_that_show(words), Vec::<String>::new());
    assert_not_in_redis(|command| hosts.redis_says(command), words);
    let mut files = files_that_show(hosts.bench.folder.path(), words);
    files.retain(|file| !file.ends_with("listening/seen"));
    assert_eq!(files, Vec::<String>::new());
    let wanted: String = words.iter().map(|word| format!(" -e '{word}'")).collect();
    for host in CLIENTS.iter().chain(&SERVERS) {
        let found = text(&hosts.ssh(host, &format!("grep -rls{wanted} {PLACE} /etc /run")));
        assert!(found.lines().all(|line| line.contains("/server-secrets/")), "{host}: {found}");
    }
}

/// The secrets of all programs.
pub(super) fn words(seen: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(seen).unwrap();
    let files: std::collections::BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
    assert!(!files.is_empty());
    let words = files.values().flat_map(|text| words_of_bundle(text));
    let words: std::collections::BTreeSet<String> = words.collect();
    words.into_iter().collect()
}

/// Checks that, from the moment at which Ansible has the secrets until the load runs, no host has them in a file other than its
/// servers' files: a process that dies in that time leaves no secret.
fn assert_never_in_files(hosts: &Hosts, seen: &Path, run: &Path, child: &mut Child) {
    wait_for("secrets", || std::fs::read_to_string(seen).is_ok_and(|text| text.ends_with('}')));
    let wanted: String = words(seen).iter().map(|word| format!(" -e '{word}'")).collect();
    let look = format!(
        "find {PLACE} -type f -size -256k -not -path '*/server-secrets/*' -exec grep -lsF{wanted} {{}} + 2>&1"
    );
    let mut looks = 0;
    let loads = || {
        let rows = std::fs::read_to_string(run.join("series/intervals.csv"));
        rows.is_ok_and(|rows| rows.lines().count() > 1)
    };
    while !loads() && child.try_wait().unwrap().is_none() {
        for host in ["client1", "server1"] {
            let found = hosts.ssh(host, &look);
            // The search reports problems on standard output. Other messages come from the starting shell.
            let found = String::from_utf8_lossy(&found.stdout);
            assert_eq!(found, "", "{host}");
        }
        looks += 1;
    }
    assert!(looks > 5, "{looks}");
}

impl Hosts {
    /// Like `run`, with the eavesdropping wrapper.
    fn spawn_seen(&self, more: &[&str]) -> Child {
        let mut all = vec!["--host-logs", "logs"];
        all.extend(SECURED);
        all.extend(more);
        self.spawn("run", &all)
    }
}

#[test]
fn secured_servers_on_two_hosts_leak_no_secret() {
    let Some(hosts) = Hosts::up("secured") else {
        return;
    };
    let seen = listen_in(&hosts);
    let run = hosts.bench.path("secured");
    // The run has to last until the search has ended.
    let mut child = hosts.spawn_seen(&["--out", "secured", "--duration", "16s"]);
    assert_never_in_files(&hosts, &seen, &run, &mut child);
    hosts.wait_for_load(&run, &mut child);
    // Servers have files that only their user can read.
    let place = format!("{PLACE}/dyno-*");
    let modes = hosts.ssh(
        "server1",
        &format!("stat -c '%a %n' {place}/server-secrets {place}/server-secrets/*"),
    );
    // The shell that SSH starts may print messages of its own.
    let modes = text(&modes);
    let modes: Vec<&str> = modes.lines().filter(|line| line.contains("/server-secrets")).collect();
    let has = |mode: &str| modes.iter().filter(|line| line.starts_with(mode)).count();
    assert!(has("700 ") == 1 && has("600 ") > 1, "{modes:?}");
    assert_eq!(has("700 ") + has("600 "), modes.len(), "{modes:?}");
    let words = words(&seen);
    assert_unseen(&hosts, &words);
    // Clients without credentials are refused.
    let address = std::fs::read_to_string(hosts.folder.join("server1/address")).unwrap();
    let processes = hosts.ssh("server1", "ss -ltnp | grep secantusd | grep -c 127.0.0.1");
    assert_eq!(text(&processes).trim(), "0", "the server must listen on {address} only");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(0);
    assert!(!ended.stderr.contains("no password"), "{}", ended.stderr);
    let document = document(&run);
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["documents"], 2 * 3001);
    assert_eq!(phase(&document["phases"], "measure")["failed"], 0);
    let bound = document["environment"]["doctor"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["check"] == "bind_address")
        .unwrap();
    let found = bound["found"].as_str().unwrap();
    assert!(bound["level"] == "pass" && found.contains("password"), "{bound}");
    hosts.assert_clean();
    assert_unseen(&hosts, &words);
}

#[test]
fn replica_set_over_three_hosts_is_one_deployment() {
    let Some((hosts, program)) = Hosts::with_mongod("set") else {
        return;
    };
    let seen = listen_in(&hosts);
    let aimed = [
        "--mongod",
        &program,
        "--cache",
        "256MiB",
        "--topology",
        "replica-set=2+1",
        "--set",
        "server.encryption=mutual",
        "--set",
        "server.connection_options=w=majority",
        "--set",
        "fleet.mapping=deployment",
        "--set",
        "fleet.clients=[\"client1\",\"client2\"]",
    ];
    let two = [&aimed[..], &["--out", "two"]].concat();
    hosts.run("run", &two).expect(2).says("3 members").says("2 hosts");
    let three = ["--set", "fleet.servers=[\"server1\",\"server2\",\"client3\"]"];
    let run = hosts.bench.path("set");
    let mut child = hosts
        .spawn("run", &[&aimed[..], &three, &["--auth", "--rate", "300", "--out", "set"]].concat());
    hosts.wait_for_load(&run, &mut child);
    let words = words(&seen);
    assert_unseen(&hosts, &words);
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let document = document(&run);
    assert!(crate::common::run_schema().is_valid(&document));
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["topology"], "replica_set", "{}", document["server"]);
    assert_eq!(document["server"]["write_concern"], "w=majority");
    assert_eq!(document["server"]["documents"], 3001);
    let servers = document["fleet"]["servers"].as_array().unwrap();
    let hosts_of = |key: &str| -> Vec<String> {
        let all = servers.iter().map(|server| server[key].as_str().unwrap().to_owned());
        all.collect()
    };
    assert_eq!(hosts_of("host"), ["server1", "server2", "client3"]);
    for (host, address) in hosts_of("host").iter().zip(hosts_of("address")) {
        let own = std::fs::read_to_string(hosts.folder.join(host).join("address")).unwrap();
        assert!(address.starts_with(&format!("{}:", own.trim())), "{host}: {address}");
    }
    hosts.assert_clean();
    assert_unseen(&hosts, &words);
}

/// A secured server that others started on a host (a `mongod` if available), and its connection string.
fn standing(hosts: &Hosts) -> String {
    let address = std::fs::read_to_string(hosts.folder.join("server1/address")).unwrap();
    let state = hosts.bench.path("lab-state").display().to_string();
    let dyno = hosts.bench.path("dyno").display().to_string();
    let embedded = or_skip(embedded_program()).unwrap();
    let real = real_servers().join(" ");
    let server = if real.is_empty() { "--server embedded" } else { &real };
    let start = format!(
        "cd {} && DYNO_EMBEDDED_SERVER={} {dyno} server start --state-dir {state} {server} --auth --tls \
         --set server.listen={} </dev/null",
        hosts.bench.folder.path().display(),
        embedded.display(),
        address.trim()
    );
    let started = hosts.ssh("server1", &start);
    assert!(started.status.success(), "{}", text(&started));
    let status = format!("{dyno} server status --state-dir {state} --uri");
    let uri = hosts.ssh("server1", &status);
    assert!(uri.status.success(), "{}", text(&uri));
    String::from_utf8(uri.stdout).unwrap().trim().to_owned()
}

#[test]
fn agents_verify_an_existing_secured_deployment() {
    let Some(hosts) = Hosts::up("others") else {
        return;
    };
    let uri = standing(&hosts);
    let (_, rest) = uri.split_once("//dyno:").unwrap();
    let (password, _) = rest.split_once('@').unwrap();
    let password = vec![password.to_owned()];
    let spawn = |uri: &str, out: &str| {
        let more = ["--set", "fleet.mapping=deployment", "--set", "fleet.servers=[]", "--out", out];
        let mut command = hosts.command(&[&["run", "many.toml"][..], &more].concat());
        command.env("DYNO_URI", uri).spawn().unwrap()
    };
    let run = hosts.bench.path("others");
    let mut child = spawn(&uri, "others");
    hosts.wait_for_load(&run, &mut child);
    // The controller's own environment belongs to the user.
    let shown = processes_that_show(&password);
    let own = format!("/proc/{}/environ", child.id());
    assert!(shown.iter().all(|path| *path == own), "{shown:?}");
    for key in hosts.redis_says(&["KEYS", "*"]).lines() {
        let all =
            hosts.redis_says(&["XRANGE", key, "-", "+"]) + &hosts.redis_says(&["HGETALL", key]);
        assert!(!all.contains(&password[0]) && !all.contains("lab-state"), "{key}: {all}");
    }
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let document = document(&run);
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["documents"], 3001);
    let files = files_that_show(hosts.bench.folder.path(), &password);
    assert!(files.iter().all(|file| file.contains("/lab-state/")), "{files:?}");
    hosts.assert_clean_of_runs();
    // Errors are reported before anything is placed on a host.
    let wrong = uri.replace(&password[0], "not-the-password");
    let ca = hosts.bench.path("foreign.pem");
    std::fs::copy(project().join("crates/cli/tests/it/fleet_hosts/foreign.pem"), &ca).unwrap();
    let (before, after) = uri.split_once("tlsCAFile=").unwrap();
    let after = after.split_once('&').map_or("", |(_, after)| after);
    let foreign = format!("{before}tlsCAFile={}&{after}", ca.display());
    let missing = format!("{before}tlsCAFile=/no/such/file&{after}");
    for (uri, code, words) in
        [(&wrong, 3, "user `dyno`"), (&foreign, 3, "`tlsCAFile`"), (&missing, 2, "`/no/such/file`")]
    {
        let ended = Finished::from(spawn(uri, "wrong").wait_with_output().unwrap()).expect(code);
        assert_eq!(ended.stderr.matches("error: ").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(!hosts.bench.path("wrong").exists());
        hosts.assert_clean_of_runs();
    }
    let state = hosts.bench.path("lab-state").display().to_string();
    let stop = format!("{} server stop --state-dir {state}", hosts.bench.path("dyno").display());
    assert!(hosts.ssh("server1", &stop).status.success());
    assert_all_clean(&hosts);
}

#[test]
fn killed_controller_and_agent_leave_no_secret() {
    let Some(hosts) = Hosts::up("wiped") else {
        return;
    };
    let seen = listen_in(&hosts);
    let run = hosts.bench.path("agent");
    let mut child = hosts.spawn_seen(&["--out", "agent", "--duration", "60s"]);
    hosts.wait_for_load(&run, &mut child);
    let first = words(&seen);
    let kill = format!("kill -KILL $(cat {PLACE}/dyno-*/server-1.pid)");
    assert!(hosts.ssh("server2", &kill).status.success());
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(3);
    ended.says("on `server2`").says("silent");
    hosts.assert_clean();
    assert_unseen(&hosts, &first);

    let mut child = hosts.spawn_seen(&["--out", "killed", "--duration", "60s"]);
    hosts.wait_for_load(&hosts.bench.path("killed"), &mut child);
    let second = words(&seen);
    assert!(first.iter().all(|word| !second.contains(word)), "each run has its own");
    crate::common::signal(&child, "KILL");
    child.wait().unwrap();
    for host in CLIENTS.iter().chain(&SERVERS) {
        wait_for("the end of all agents", || {
            let left = format!("ls -d {PLACE}/dyno-*; pgrep 'dyno|secantusd'");
            let left = hosts.ssh(host, &left);
            left.status.code() == Some(1) && left.stdout.is_empty()
        });
    }
    wait_for("the end of the folder of playbooks", || {
        let left = names(hosts.bench.folder.path());
        !left.iter().any(|name| name.starts_with("dyno-fleet"))
    });
    hosts.assert_keys_expire();
    std::thread::sleep(Duration::from_millis(200));
    assert_unseen(&hosts, &second);
}
