//! Server parameters that are set for a run: read back in the record, and restored on servers that were already running, however
//! the run ends.

use crate::common::{Bench, Finished, control, signal, wait_for, wait_for_windows};
use bson::{Bson, doc};
use dyno_testkit::{TestServer, mongod, mongod_program, or_skip};

/// The server's current values: the time between checkpoints in seconds, and the last change of its engine's configuration.
fn parameters(server: &TestServer) -> (f64, String) {
    let command = doc! { "getParameter": 1, "syncdelay": 1, "wiredTigerEngineRuntimeConfig": 1 };
    let mut control = control(&server.uri());
    let reply = control.run("admin", command).unwrap();
    let syncdelay = match reply.get("syncdelay").unwrap() {
        Bson::Double(seconds) => *seconds,
        Bson::Int32(seconds) => f64::from(*seconds),
        other => panic!("{other}"),
    };
    let configuration = reply.get_str("wiredTigerEngineRuntimeConfig").unwrap();
    (syncdelay, configuration.to_owned())
}

/// Number of parameters that the server accepts at run time.
fn settable(server: &TestServer) -> usize {
    let all = doc! { "getParameter": { "showDetails": true, "allParameters": true } };
    let listed = control(&server.uri()).run("admin", all).unwrap();
    let taken = |details: &&Bson| {
        let details = details.as_document();
        details.is_some_and(|own| own.get_bool("settableAtRuntime").unwrap_or_default())
    };
    listed.values().filter(taken).count()
}

const SET: [&str; 4] = [
    "--set",
    "server.runtime_parameters.syncdelay=7",
    "--set",
    "server.runtime_parameters.wiredTigerEngineRuntimeConfig=eviction=(threads_max=8),eviction_dirty_target=3",
];

fn run<'a>(uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", "a", "--uri", uri, "--records", "300"];
    let small = ["--clients", "2", "--warmup", "0s", "--out", "r"];
    [&fixed[..], &small, &SET, more].concat()
}

#[test]
fn parameters_are_recorded_and_restored_after_the_run() {
    let bench = Bench::new();
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = server.uri();
    let short = ["--operations", "300", "--format", "json"];
    let document = bench.dyno(&run(&uri, &short)).expect(0).json();
    assert_eq!(document["server"]["settings"]["parameter.syncdelay"], "7.0");
    let reported = &document["server"]["settings"]["parameter.wiredTigerEngineRuntimeConfig"];
    assert_eq!(reported, "eviction=(threads_max=8),eviction_dirty_target=3");
    let defaults = "eviction=(threads_max=4),eviction_dirty_target=5";
    assert_eq!(parameters(&server), (60.0, defaults.to_owned()));
    assert!(!bench.path("state/doctor-undo.json").exists());
}

#[test]
fn parameter_changed_by_others_is_reported_and_kept() {
    let bench = Bench::new();
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = server.uri();
    let mut child = bench.spawn(&run(&uri, &["--duration", "4s", "--format", "json"]));
    wait_for_windows(&mut child, &bench.path("r"), 1);
    // The run continues, and restores them itself.
    let reverted = bench.dyno(&["doctor", "--revert", "--format", "json"]).expect(1).json();
    assert_eq!(reverted["refused"], 2, "{reverted}");
    assert_eq!(parameters(&server).0, 7.0);
    let set = doc! { "setParameter": 1, "syncdelay": 33 };
    control(&uri).run("admin", set).unwrap();
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(0);
    let settings = &ended.json()["server"]["settings"];
    assert_eq!(settings["parameter.syncdelay"], "7.0 at first, 33.0 at the end");
    let text = std::fs::read_to_string(bench.path("r/run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let reported = record["caveats"]
        .as_array()
        .unwrap()
        .iter()
        .find(|caveat| caveat["code"] == "parameter-changed");
    assert!(reported.is_some(), "{}", record["caveats"]);
    let defaults = "eviction=(threads_max=4),eviction_dirty_target=5";
    assert_eq!(parameters(&server), (33.0, defaults.to_owned()));
    // The entry is kept for the user to decide.
    assert!(bench.path("state/doctor-undo.json").exists());
}

#[test]
fn previous_value_is_read_under_the_lock() {
    let bench = Bench::new();
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = server.uri();
    std::fs::create_dir_all(bench.path("state")).unwrap();
    let lock = std::fs::File::create(bench.path("state/doctor-undo.lock")).unwrap();
    lock.lock().unwrap();
    let child = bench.spawn(&run(&uri, &["--operations", "300"]));
    let waiting = format!(" {} ", child.id());
    wait_for("a run that waits for the list", || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let mut blocked = locks.lines().filter(|line| line.contains("->"));
        blocked.any(|line| line.contains(&waiting))
    });
    // Like another run that holds the list's lock and ends now.
    let set = doc! { "setParameter": 1, "syncdelay": 41 };
    control(&uri).run("admin", set).unwrap();
    drop(lock);
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(parameters(&server).0, 41.0);
}

#[test]
fn killed_run_leaves_a_list_to_restore_parameters() {
    let bench = Bench::new();
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = server.uri();
    let mut child = bench.spawn(&run(&uri, &["--duration", "10m"]));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(parameters(&server).0, 7.0);
    // Otherwise the next run would take the killed run's values for the original ones.
    std::fs::remove_dir_all(bench.path("r")).unwrap();
    let refused = bench.dyno(&run(&uri, &["--operations", "300"])).expect(3);
    refused.says("`syncdelay`").says("dyno doctor --revert");
    let reverted = bench.dyno(&["doctor", "--revert"]).expect(0);
    assert!(
        reverted.stdout.contains("`syncdelay`") && reverted.stdout.contains("`60.0`"),
        "{}",
        reverted.stdout
    );
    assert_eq!(parameters(&server).0, 60.0);
    let again = bench.dyno(&["doctor", "--revert", "--format", "json"]);
    let nothing = serde_json::json!({ "reverted": [], "parameters": [], "refused": 0 });
    assert_eq!(again.expect(0).json(), nothing);
    a_search_gives_back_what_it_has_set(&bench, &server);
}

/// An interrupted search restores its parameters by itself, a killed one by `dyno doctor --revert`.
fn a_search_gives_back_what_it_has_set(bench: &Bench, server: &TestServer) {
    let uri = server.uri();
    let list = bench.path("state/doctor-undo.json");
    let fixed = ["tune", "a", "--uri", &uri, "--records", "300", "--out", "t"];
    let short = ["--clients", "2", "--warmup", "0s", "--duration", "1s"];
    let knobs = ["--knobs", "syncdelay=20,40", "--budget", "60s"];
    let child = bench.spawn(&[&fixed[..], &short, &knobs].concat());
    let is_set = || parameters(server).0 != 60.0;
    wait_for("a run that has set it", is_set);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130).says("dyno resume t");
    assert_eq!((parameters(server).0, list.exists()), (60.0, false));
    let mut child = bench.spawn(&["resume", "t", "--uri", &uri]);
    wait_for("a run that has set it again", is_set);
    signal(&child, "KILL");
    child.wait().unwrap();
    assert!(is_set() && list.exists());
    let refused = bench.dyno(&["resume", "t", "--uri", &uri]).expect(3);
    refused.says("dyno doctor --revert");
    let reverted = bench.dyno(&["doctor", "--revert"]).expect(0).stdout;
    assert!(reverted.contains("`60.0`"), "{reverted}");
    assert_eq!((parameters(server).0, list.exists()), (60.0, false));
}

#[test]
fn unsupported_parameters_are_refused_and_change_nothing() {
    let bench = Bench::new();
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = server.uri();
    // The documentation of `dyno tune` counts about 260 for MongoDB 6.0.
    assert!(settable(&server) > 200, "{}", settable(&server));
    for (key, value, says) in [
        ("syncDelay", "7", &["`syncDelay`", "`syncdelay`"][..]),
        (
            "ttlMonitorSleepSecs",
            "often",
            &["`server.runtime_parameters.ttlMonitorSleepSecs`", "`often`"],
        ),
        ("ttlMonitorSleepSecs", "-5", &["`ttlMonitorSleepSecs`", "`-5`"]),
        (
            "wiredTigerEngineRuntimeConfig",
            "log=(enabled=false)",
            &["`server.runtime_parameters.wiredTigerEngineRuntimeConfig`"],
        ),
    ] {
        let set = format!("server.runtime_parameters.{key}={value}");
        let short = ["--operations", "300", "--set", &set];
        // Parameters that precede it in name order are set first, and restored.
        let refused = bench.dyno(&run(&uri, &short)).expect(2);
        says.iter().fold(refused, |refused, text| refused.says(text));
        assert_eq!(parameters(&server).0, 60.0, "{key}");
        assert!(!bench.path("state/doctor-undo.json").exists(), "{key}");
    }
}

#[test]
fn swept_parameters_do_not_restart_our_server() {
    let bench = Bench::new();
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let fixed = ["sweep", "a", "--mongod", mongod.to_str().unwrap()];
    let small = ["--cache", "256MiB", "--records", "300", "--duration", "1s"];
    let set = ["--set", "server.runtime_parameters.syncdelay=20,40", "--out", "s"];
    let how = ["--warmup", "0s", "--clients", "2"];
    bench.dyno(&[&fixed[..], &small, &set, &how].concat()).expect(0);
    let logs = crate::common::names(&bench.path("s/server-logs"));
    assert_eq!(logs, ["server.raw.log"]);
    let found = crate::common::names(&bench.path("s/runs")).into_iter().map(|run| {
        let text = std::fs::read_to_string(bench.path(&format!("s/runs/{run}/run.json"))).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let member = &document["server"]["members"][0];
        member["found"]["parameter.syncdelay"].as_str().unwrap().to_owned()
    });
    assert_eq!(found.collect::<Vec<_>>(), ["20.0", "40.0"]);
}
