//! Servers that other hosts can reach: with a password and certificates, and the warnings without them. Each test has its own
//! network, and runs on the embedded server and on a real `mongod`.

use crate::common::{Bench, Finished, names, processes_with, run_schema, wait_for};
use dyno_testkit::network::{add_address, own_network};
use dyno_testkit::{embedded_program, mongod_program, or_skip};
use serde_json::Value;

const HOST: &str = "10.78.0.1";
const LISTEN: &str = "server.listen=10.78.0.1";
const SMALL: [&str; 10] = [
    "--records",
    "300",
    "--operations",
    "300",
    "--clients",
    "4",
    "--warmup",
    "0s",
    "--format",
    "json",
];

/// A bench in a network of its own, and the options that choose the server; `None` with a printed reason if it cannot be created.
fn bench(of_mongod: bool) -> Option<(Bench, Vec<String>)> {
    or_skip(own_network(&[HOST]))?;
    let words = if of_mongod {
        let program = or_skip(mongod_program())?;
        ["--mongod", program.to_str()?].map(str::to_owned).into()
    } else {
        or_skip(embedded_program())?;
        ["--server", "embedded"].map(str::to_owned).into()
    };
    Some((Bench::new(), words))
}

fn dyno(bench: &Bench, server: &[String], words: &[&str]) -> Finished {
    let server = server.iter().map(String::as_str);
    let all: Vec<&str> = words.iter().copied().chain(server).collect();
    bench.dyno(&all)
}

/// The doctor's verdict on the server's addresses.
fn verdict(document: &Value) -> &Value {
    document["environment"]["doctor"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["check"] == "bind_address")
        .unwrap()
}

#[track_caller]
fn assert_nothing_runs(bench: &Bench) {
    let place = bench.folder.path().to_str().unwrap();
    wait_for("the end of all processes", || processes_with(place).is_empty());
}

fn a_run_reaches_its_secured_servers_by_their_address(of_mongod: bool) {
    let Some((bench, server)) = bench(of_mongod) else {
        return;
    };
    for backend in ["wire", "driver"] {
        let secured = ["--auth", "--tls", "--set", LISTEN, "--backend", backend];
        let run = ["run", "a", "--out", backend];
        let ended = dyno(&bench, &server, &[&run[..], &SMALL, &secured].concat()).expect(0);
        assert!(!ended.stderr.contains("`--auth --tls`"), "{}", ended.stderr);
        let document = ended.json();
        assert!(run_schema().is_valid(&document));
        let address = document["server"]["members"][0]["address"].as_str().unwrap();
        assert!(address.starts_with(HOST), "{address}");
        let verdict = verdict(&document);
        assert_eq!(verdict["level"], "pass", "{verdict}");
        // The server also listens outside of loopback.
        assert!(verdict["found"].as_str().unwrap().contains(HOST), "{verdict}");
        let left = names(&bench.path(backend));
        assert!(
            !left.iter().any(|name| name == "server-secrets" || name == "server-data"),
            "{left:?}"
        );
    }
    assert_nothing_runs(&bench);
}

#[test]
fn a_run_reaches_its_secured_embedded_server_by_its_address() {
    a_run_reaches_its_secured_servers_by_their_address(false);
}

#[test]
fn a_run_reaches_its_secured_mongod_by_its_address() {
    a_run_reaches_its_secured_servers_by_their_address(true);
}

#[test]
fn open_server_is_a_warning_and_a_failing_check() {
    let Some((bench, server)) = bench(false) else {
        return;
    };
    let run = ["run", "a", "--out", "open", "--set", LISTEN];
    let ended = dyno(&bench, &server, &[&run[..], &SMALL].concat()).expect(0);
    assert_eq!(ended.stderr.matches("`--auth --tls`").count(), 1, "{}", ended.stderr);
    let document = ended.json();
    let verdict = verdict(&document);
    assert_eq!(verdict["level"], "fail", "{verdict}");
    assert!(verdict["found"].as_str().unwrap().contains(HOST), "{verdict}");
    let nowhere = ["run", "a", "--out", "nowhere", "--set", "server.listen=10.78.0.77"];
    dyno(&bench, &server, &[&nowhere[..], &SMALL].concat()).expect(3).says("10.78.0.77");
    assert!(!bench.path("nowhere/run.json").exists());
    assert_nothing_runs(&bench);
}

/// Checks a deployment of either kind of server: its user connects on all addresses, and the doctor checks it.
fn a_standing_server_is_seen_by_the_doctor(of_mongod: bool) {
    let Some((bench, server)) = bench(of_mongod) else {
        return;
    };
    let all = ["--set", "server.listen=0.0.0.0", "--set", "server.advertise=10.78.0.1"];
    let start = [&["server", "start"][..], &all].concat();
    let doctor = || {
        let said = bench.dyno(&["doctor", "--format", "json"]).json();
        said["verdicts"]
            .as_array()
            .unwrap()
            .clone()
            .into_iter()
            .find(|one| one["check"] == "bind_address")
            .unwrap()
    };
    assert_eq!(doctor()["level"], "unknown");
    dyno(&bench, &server, &start).expect(0).says("`--auth --tls`");
    let open = doctor();
    assert_eq!(open["level"], "fail", "{open}");
    assert!(open["found"].as_str().unwrap().contains("0.0.0.0"), "{open}");
    assert!(open["change"]["command"].as_str().unwrap().contains("--auth --tls"), "{open}");
    assert_eq!(bench.dyno(&["doctor"]).code, Some(1));
    bench.dyno(&["server", "stop"]).expect(0);

    let secured = [&start[..], &["--auth", "--tls"]].concat();
    let started = dyno(&bench, &server, &secured).expect(0);
    assert!(!started.stderr.contains("`--auth --tls`"), "{}", started.stderr);
    let closed = doctor();
    assert_eq!(closed["level"], "pass", "{closed}");
    let uri = bench.dyno(&["server", "status", "--uri"]).expect(0).stdout;
    let uri = uri.trim();
    assert!(uri.contains("@10.78.0.1:"), "the connection string must have the network address");
    let run = |uri: &str, out: &str, code: i32| {
        let words = [&["run", "a", "--out", out][..], &SMALL].concat();
        let mut command = bench.command(&words);
        Finished::from(command.env("DYNO_URI", uri).output().unwrap()).expect(code)
    };
    run(uri, "loaded", 0);
    // One clear error each.
    let (before, after) = uri.split_once('@').unwrap();
    let (name, password) = before.rsplit_once(':').unwrap();
    let wrong = run(&format!("{name}:not-{password}@{after}"), "wrong", 3);
    let wrong = wrong.says("`dyno`").says("`admin`");
    assert!(!wrong.stderr.contains(password), "{}", wrong.stderr);
    add_address("10.78.0.9");
    run(&uri.replace("@10.78.0.1:", "@10.78.0.9:"), "name", 3)
        .says("TLS with `10.78.0.9:")
        .says("`tlsAllowInvalidHostnames=true`");
    let system = uri.split('&').filter(|part| !part.starts_with("tlsCAFile="));
    run(&system.collect::<Vec<_>>().join("&"), "foreign", 3).says("`tlsCAFile`");
    let plain = uri.split('&').filter(|part| !part.starts_with("tls"));
    let plain = run(&plain.collect::<Vec<_>>().join("&"), "plain", 3);
    plain.says("`tls=true`");
    for out in ["wrong", "name", "foreign", "plain"] {
        assert!(!bench.path(out).join("run.json").exists(), "{out}");
    }
    bench.dyno(&["server", "stop"]).expect(0);
    assert_eq!(bench.entries(), ["loaded", "state"]);
    assert_nothing_runs(&bench);
}

#[test]
fn a_standing_embedded_server_is_seen_by_the_doctor() {
    a_standing_server_is_seen_by_the_doctor(false);
}

#[test]
fn a_standing_mongod_is_seen_by_the_doctor() {
    a_standing_server_is_seen_by_the_doctor(true);
}
