//! Servers that outlive the command that started them: `dyno server start`, `status`, `list` and `stop`, with the embedded server
//! and with the fake `mongod`.

use crate::common::lab::{Lab, kill};
use crate::common::{Bench, Finished, names, processes_with, signal, wait_for};
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A bench with the embedded server; `None` if the server is not installed.
fn embedded() -> Option<Lab> {
    or_skip(embedded_program()).map(|_| Lab::new("7.0.14"))
}

/// Starts a deployment and returns what the command printed.
#[track_caller]
fn start(lab: &Lab, name: &str, more: &[&str]) -> Finished {
    let fixed = ["server", "start", "--name", name];
    lab.bench.dyno(&[&fixed[..], more].concat()).expect(0)
}

#[track_caller]
fn status(lab: &Lab, name: &str, code: i32) -> Finished {
    let arguments = ["server", "status", name, "--format", "json"];
    lab.bench.dyno(&arguments).expect(code)
}

#[track_caller]
fn stop(lab: &Lab, name: &str) -> Finished {
    lab.bench.dyno(&["server", "stop", name]).expect(0)
}

fn process(state: &Value, pointer: &str) -> u32 {
    let process = state.pointer(pointer).and_then(Value::as_u64);
    u32::try_from(process.unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let holds = |path: &Path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let found = files(folder).into_iter().filter(|path| holds(path));
    found.map(|path| path.strip_prefix(folder).unwrap().display().to_string()).collect()
}

#[test]
fn deployment_is_started_used_and_stopped_beside_another() {
    let Some(lab) = embedded() else { return };
    let shown = start(&lab, "one", &[]);
    assert!(shown.stdout.contains("standalone"), "{}", shown.stdout);
    assert!(shown.stderr.contains("dyno server stop one"));
    start(&lab, "two", &["--topology", "pairs=2"]);

    let listed = lab.bench.dyno(&["server", "list", "--format", "json"]);
    let listed = listed.expect(0).json();
    let states: Vec<_> = listed.as_array().unwrap().iter().collect();
    assert_eq!(states.len(), 2);
    assert_eq!((&states[0]["name"], &states[1]["name"]), (&"one".into(), &"two".into()));
    assert!(states.iter().all(|state| state["state"] == "up"));

    let one = status(&lab, "one", 0).json();
    assert_eq!(one["answers"][0]["role"], "standalone");
    let uri = lab.bench.dyno(&["server", "status", "one", "--uri"]);
    let uri = uri.expect(0).stdout;
    let arguments = ["--records", "100", "--warmup", "0s", "--operations", "200"];
    let arguments = [&["run", "a", "--uri", uri.trim()], &arguments[..]].concat();
    lab.bench.dyno(&arguments).expect(0);

    let both = lab.bench.dyno(&["server", "status", "two", "--uri"]);
    let both = both.expect(0).stdout;
    assert_eq!(both.lines().count(), 2);
    lab.bench.dyno(&["run", "a", "--uri", both.trim()]).expect(2).says("`dyno run --pairs N`");

    stop(&lab, "one").says("`one` is stopped");
    assert_eq!(lab.deployments(), ["two"]);
    let two = status(&lab, "two", 0).json();
    assert_eq!(two["members"].as_array().unwrap().len(), 2);
    stop(&lab, "two");
    lab.assert_clean();
    let none = lab.bench.dyno(&["server", "list"]).expect(0);
    assert!(none.stdout.starts_with("no deployments"));
}

#[test]
fn taken_and_unknown_names_are_refused() {
    let Some(lab) = embedded() else { return };
    start(&lab, "one", &[]);
    lab.bench
        .dyno(&["server", "start", "--name", "one"])
        .expect(2)
        .says("`one`")
        .says("dyno server stop one");
    for command in ["status", "stop"] {
        lab.bench.dyno(&["server", command, "other"]).expect(2).says("`other`").says(" one");
    }
    lab.bench.dyno(&["server", "start", "--name", "../one"]).expect(2);
    status(&lab, "one", 0);
    stop(&lab, "one");
    lab.bench.dyno(&["server", "stop", "one"]).expect(2);
    lab.assert_clean();
}

#[test]
fn a_server_that_ended_is_seen_and_stop_removes_the_rest() {
    let Some(lab) = embedded() else { return };
    start(&lab, "one", &["--topology", "pairs=2"]);
    let state = status(&lab, "one", 0).json();
    kill(process(&state, "/members/1/process"));
    let state = status(&lab, "one", 1).json();
    assert_eq!(state["answers"][0]["problem"], Value::Null);
    assert!(state["answers"][1]["problem"].is_string());
    wait_for("the supervisor to notice", || {
        let listed = lab.bench.dyno(&["server", "list"]).expect(0).stdout;
        listed.contains("degraded") && listed.contains("`pair-1`")
    });
    lab.bench
        .dyno(&["server", "stop", "one"])
        .expect(1)
        .says("`one` is stopped")
        .says("`pair-1`")
        .says("(signal: 9");
    lab.assert_clean();
}

#[test]
fn unreadable_deployment_can_be_stopped_and_hides_no_other() {
    let Some(lab) = embedded() else { return };
    start(&lab, "one", &[]);
    start(&lab, "two", &[]);
    let file = lab.bench.path("state/servers/one/server.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for spoiled in ["{", &text.replace("_version\": ", "_version\": 9")] {
        std::fs::write(&file, spoiled).unwrap();
        let listed = lab.bench.dyno(&["server", "list", "--format", "json"]);
        let listed = listed.expect(0).json();
        assert_eq!(listed[0]["state"], "unreadable");
        assert!(listed[0]["problem"].is_string());
        assert_eq!(listed[1]["state"], "up");
    }
    let listed = lab.bench.dyno(&["server", "list"]).expect(0).stdout;
    assert!(listed.contains("warning: `one`"), "{listed}");
    lab.bench.dyno(&["server", "status", "one"]).expect(3);
    stop(&lab, "one").says("`one` is stopped");
    assert_eq!(lab.deployments(), ["two"]);
    stop(&lab, "two");
    lab.assert_clean();
}

#[test]
fn the_servers_end_when_their_folder_is_removed() {
    let Some(lab) = embedded() else { return };
    start(&lab, "one", &["--topology", "pairs=2"]);
    let place = lab.bench.path("state/servers/one");
    std::fs::remove_dir_all(&place).unwrap();
    wait_for("the end of the servers", || processes_with(place.to_str().unwrap()).is_empty());
    lab.assert_clean();
}

#[test]
fn servers_end_with_their_supervisor_and_stop_cleans_up() {
    let Some(lab) = embedded() else { return };
    start(&lab, "one", &["--topology", "pairs=2"]);
    let state = status(&lab, "one", 0).json();
    kill(process(&state, "/supervisor"));
    let place = lab.bench.path("state/servers/one");
    wait_for("the end of the servers", || processes_with(place.to_str().unwrap()).is_empty());
    let ended = lab.bench.dyno(&["server", "status", "one"]).expect(1);
    ended.says("`dyno server stop one`");
    let listed = lab.bench.dyno(&["server", "list", "--format", "json"]);
    assert_eq!(listed.expect(0).json()[0]["state"], "ended");
    lab.bench.dyno(&["server", "start", "--name", "one"]).expect(2).says("`dyno server stop one`");
    stop(&lab, "one").says("ended before");
    lab.assert_clean();
}

#[test]
fn stop_right_after_the_supervisor_was_killed_leaves_nothing() {
    let lab = Lab::new("7.0.14");
    start(&lab, "set", &["--topology", "replica-set=3", "--mongod", &lab.mongod]);
    let state = status(&lab, "set", 0).json();
    kill(process(&state, "/supervisor"));
    wait_for("the end of the supervisor", || {
        lab.bench.dyno(&["server", "list"]).stdout.contains("ended")
    });
    stop(&lab, "set");
    wait_for("the end of the servers", || lab.processes("").is_empty());
    assert_eq!(lab.deployments(), Vec::<String>::new());
}

#[test]
fn a_replica_set_stays_and_a_run_finds_its_primary() {
    let lab = Lab::new("7.0.14");
    let set = ["--topology", "replica-set=2+1", "--mongod", &lab.mongod, "--cache", "256MiB"];
    start(&lab, "set", &set);
    start(&lab, "alone", &["--mongod", &lab.mongod]);
    let state = status(&lab, "set", 0).json();
    let roles: Vec<_> = (0..3).map(|n| state["answers"][n]["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["primary", "secondary", "other"]);
    assert_eq!(state["topology"], "replica-set=2+1");
    let uri = lab.bench.dyno(&["server", "status", "set", "--uri"]);
    let uri = uri.expect(0).stdout;
    assert!(uri.contains("replicaSet=dyno"), "{uri}");
    let arguments = ["--records", "100", "--warmup", "0s", "--operations", "200"];
    let arguments = [&["run", "a", "--uri", uri.trim()], &arguments[..]].concat();
    lab.bench.dyno(&arguments).expect(0);
    stop(&lab, "set");
    assert_eq!(lab.deployments(), ["alone"]);
    assert_eq!(lab.processes("").len(), 1);
    status(&lab, "alone", 0);
    stop(&lab, "alone");
    lab.assert_clean();
}

#[test]
fn an_interrupt_of_the_start_leaves_nothing() {
    let lab = Lab::new("7.0.14");
    lab.fake_mongod.misbehave("never-primary dyno");
    let arguments = ["server", "start", "--topology", "replica-set=2", "--mongod", &lab.mongod];
    let child = lab.bench.spawn(&arguments);
    wait_for("the initiation of the set", || {
        let events = lab.fake_mongod.events();
        events.iter().any(|event| event.ends_with("replSetInitiate"))
    });
    lab.bench.dyno(&["server", "status"]).expect(1);
    let listed = lab.bench.dyno(&["server", "list", "--format", "json"]);
    assert_eq!(listed.expect(0).json()[0]["state"], "starting");
    lab.bench.dyno(&["server", "stop"]).expect(3);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130).says("interrupted");
    lab.assert_clean();
}

#[test]
fn a_start_that_is_killed_leaves_nothing() {
    let lab = Lab::new("7.0.14");
    lab.fake_mongod.misbehave("never-primary dyno");
    let arguments = ["server", "start", "--topology", "replica-set=2", "--mongod", &lab.mongod];
    let mut child = lab.bench.spawn(&arguments);
    wait_for("the initiation of the set", || {
        let events = lab.fake_mongod.events();
        events.iter().any(|event| event.ends_with("replSetInitiate"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the supervisor", || {
        let place = lab.bench.folder.path().to_str().unwrap();
        lab.deployments().is_empty() && processes_with(place).is_empty()
    });
    lab.assert_clean();
}

#[test]
fn a_start_that_fails_says_why_and_leaves_nothing() {
    let lab = Lab::new("7.0.14");
    lab.fake_mongod.misbehave("refuse addShard");
    lab.bench
        .dyno(&["server", "start", "--topology", "sharded=1x1", "--mongod", &lab.mongod])
        .expect(3)
        .says("'addShard'");
    lab.assert_clean();
}

#[test]
fn secrets_stay_in_a_file_of_the_owner() {
    let Some(lab) = embedded() else { return };
    let printed = start(&lab, "safe", &["--auth", "--tls"]);
    let uri = lab.bench.dyno(&["server", "status", "safe", "--uri"]);
    let uri = uri.expect(0).stdout.trim().to_owned();
    let (user, _) = uri.strip_prefix("mongodb://").unwrap().split_once('@').unwrap();
    let (_, password) = user.split_once(':').unwrap();
    assert!(password.len() >= 16, "the password is too short");
    for text in [&printed.stdout, &printed.stderr, &status(&lab, "safe", 0).stdout] {
        assert!(!text.contains(password));
    }
    let folder = lab.bench.path("state/servers/safe");
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("uri")), 0o600);
    assert_eq!(holding(&folder, password), ["uri"]);

    let arguments = ["--records", "100", "--warmup", "0s", "--operations", "200", "--out", "r"];
    let arguments = [&["run", "a", "--uri", &uri], &arguments[..]].concat();
    let finished = lab.bench.dyno(&arguments).expect(0);
    assert!(!finished.stdout.contains(password) && !finished.stderr.contains(password));
    let run = lab.bench.path("r");
    for name in ["run.json", "plan.toml", "report.html"] {
        assert!(names(&run).iter().any(|found| found == name), "{name}");
    }
    assert_eq!(holding(&run, password), Vec::<String>::new());
    // Without the password, no member accepts a client.
    let without = uri.replace(&format!("{user}@"), "");
    let (without, _) = without.split_once("&authSource=").unwrap();
    let arguments = ["run", "a", "--records", "1", "--operations", "1", "--uri", without];
    lab.bench.dyno(&arguments).expect(3).says("authSource=admin");
    stop(&lab, "safe");
    lab.assert_clean();
}

#[test]
fn a_run_with_encryption_and_a_user_keeps_no_secret() {
    let Some(lab) = embedded() else { return };
    let arguments = ["run", "a", "--auth", "--tls", "--records", "100", "--warmup", "0s"];
    let more = ["--operations", "200", "--out", "r", "--format", "json"];
    let document = lab.bench.dyno(&[&arguments[..], &more].concat()).expect(0).json();
    let found = &document["server"]["members"][0]["asked"];
    assert_eq!((&found["auth"], &found["tls"]), (&"true".into(), &"true".into()));
    lab.assert_clean();
    let run = lab.bench.path("r");
    assert_eq!(holding(&run, "PRIVATE KEY"), Vec::<String>::new());
    // Checksums have the same number of digits, but are not passwords.
    let is_other = |path: &std::path::PathBuf| !path.ends_with("SHA256SUMS");
    for path in files(&run).into_iter().filter(is_other) {
        let bytes = std::fs::read(&path).unwrap();
        // A generated password has this many hexadecimal digits.
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let longest = bytes.split(|byte| !is_digit(byte)).map(<[u8]>::len).max();
        assert!(longest < Some(64), "{}", path.display());
    }
}

#[test]
fn nothing_is_kept_without_a_deployment() {
    let bench = Bench::new();
    let none = bench.dyno(&["server", "list", "--format", "json"]).expect(0);
    assert_eq!(none.json(), Value::Array(Vec::new()));
    bench.dyno(&["server", "status"]).expect(2);
    bench.dyno(&["server", "stop"]).expect(2);
    assert!(!bench.path("state").exists());
}
