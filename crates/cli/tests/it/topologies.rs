//! Runs on replica sets and clusters of fake `mongod` and `mongos` processes.

use crate::common::lab::Lab;
use crate::common::{Finished, run_schema, wait_for, wait_for_windows};
use serde_json::Value;
use std::collections::BTreeSet;

const CONCERNS: &str = "server.connection_options=w=majority&readConcernLevel=majority";

#[test]
#[ignore = "a helper process, started by other tests"]
fn helper_that_is_a_server() {
    dyno_testkit::fake_mongod::serve();
}

/// Arguments of a short run of workload `a` on fake `mongod` servers.
fn run<'a>(lab: &'a Lab, topology: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "run",
        "a",
        "--topology",
        topology,
        "--mongod",
        &lab.mongod,
        "--cache",
        "256MiB",
        "--records",
        "300",
        "--clients",
        "2",
        "--warmup",
        "0s",
        "--out",
        "r",
    ];
    [&fixed[..], more].concat()
}

/// The document of a run of 400 operations, validated against the schema.
#[track_caller]
fn document(lab: &Lab, topology: &str, more: &[&str]) -> Value {
    let short = ["--operations", "400", "--format", "json"];
    let arguments = run(lab, topology, &[&short[..], more].concat());
    let document = lab.bench.dyno(&arguments).expect(0).json();
    run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(document["status"], "complete");
    document
}

fn member_names(document: &Value) -> Vec<&str> {
    let names = document["server"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["name"].as_str());
    names.map(Option::unwrap).collect()
}

/// The caveats of one kind.
fn caveats<'a>(document: &'a Value, kind: &str) -> Vec<&'a Value> {
    document["caveats"].as_array().unwrap().iter().filter(|caveat| caveat["kind"] == kind).collect()
}

/// Operations of the measure phase by name.
fn measured(document: &Value, operation: &str) -> u64 {
    let measure =
        document["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure");
    let operations = &measure.unwrap()["operations"];
    operations[operation]["count"].as_u64().unwrap()
}

#[test]
fn replica_set_run_records_members_and_sends_concerns() {
    let lab = Lab::new("7.0.14");
    let document = document(&lab, "replica-set=3", &["--set", CONCERNS]);
    assert_eq!(member_names(&document), ["member-0", "member-1", "member-2"]);
    let server = &document["server"];
    assert_eq!(server["topology"], "replica_set");
    assert_eq!(server["write_concern"], "w=majority");
    assert_eq!(server["read_concern"], "majority");
    assert_eq!(server["documents"], 300);
    let primaries: Vec<_> = server["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["was_primary"].as_bool().unwrap())
        .collect();
    assert_eq!(primaries, [true, false, false]);
    assert_eq!(server["members"][1]["found"]["cache_bytes"], (256 << 20).to_string());
    assert_eq!(caveats(&document, "server_setting"), Vec::<&Value>::new());

    let asked = |command: &str, concern: &str| lab.asked("member-0", command, concern);
    let majority = r#"{ "w": "majority" }"#;
    for command in ["insert", "update"] {
        assert_eq!(asked(command, "none"), 0, "{command}");
    }
    assert!(asked("insert", majority) > 0);
    assert_eq!(asked("update", majority), measured(&document, "update"));
    let level = r#"{ "level": "majority" }"#;
    assert_eq!(asked("find", level), measured(&document, "read"));
    for member in ["member-1", "member-2"] {
        let sent = lab.fake_mongod.operations();
        assert!(sent.iter().all(|sent| sent.member != member), "{sent:?}");
    }
    lab.assert_clean();
}

#[test]
fn an_arbiter_is_a_member_of_the_record() {
    let lab = Lab::new("4.4.29");
    let document = document(&lab, "replica-set=2+1", &[]);
    assert_eq!(member_names(&document), ["member-0", "member-1", "arbiter-0"]);
    assert_eq!(document["server"]["write_concern"], "server default");
    lab.assert_clean();
}

#[test]
fn a_run_on_a_cluster_goes_through_its_router() {
    let lab = Lab::new("8.0.4");
    let document = document(&lab, "sharded=2x2,chunks=4", &["--set", CONCERNS]);
    let names: BTreeSet<_> = member_names(&document).into_iter().collect();
    let expected = ["config-0", "router-0", "shard-0-0", "shard-0-1", "shard-1-0", "shard-1-1"];
    assert_eq!(names, BTreeSet::from(expected));
    assert_eq!(document["server"]["topology"], "sharded");
    assert_eq!(document["server"]["write_concern"], "w=majority");
    assert_eq!(document["server"]["documents"], 300);
    assert_eq!(
        lab.asked("router", "update", r#"{ "w": "majority" }"#),
        measured(&document, "update")
    );
    let sent = lab.fake_mongod.operations();
    assert!(sent.iter().all(|sent| sent.member == "router"), "{sent:?}");
    lab.assert_clean();
}

#[test]
fn operations_are_spread_over_all_routers() {
    let lab = Lab::new("7.0.14");
    document(&lab, "sharded=1x1,routers=2", &[]);
    let sent = lab.fake_mongod.operations();
    let updates = sent.iter().filter(|sent| sent.command == "update");
    // One line per router.
    assert_eq!(updates.count(), 2, "{sent:?}");
    lab.assert_clean();
}

#[test]
fn driver_backend_finds_the_primary() {
    let lab = Lab::new("7.0.14");
    let more = ["--backend", "driver", "--set", CONCERNS];
    let document = document(&lab, "replica-set=3", &more);
    assert_eq!(
        lab.asked("member-0", "update", r#"{ "w": "majority" }"#),
        measured(&document, "update")
    );
    lab.assert_clean();
}

#[test]
fn a_member_that_is_killed_in_mid_run_ends_it_and_is_named() {
    let lab = Lab::new("7.0.14");
    let mut child = lab.bench.spawn(&run(&lab, "replica-set=3", &["--duration", "10m"]));
    wait_for_windows(&mut child, &lab.bench.path("r"), 3);
    let [secondary] = lab.processes("/member-1")[..] else { panic!("not one process") };
    crate::common::lab::kill(secondary);
    Finished::from(child.wait_with_output().unwrap())
        .expect(3)
        .says("`member-1`")
        .says("(signal: 9")
        .says("last output")
        .says("Waiting for connections");
    wait_for("the end of all servers", || lab.processes("").is_empty());
    wait_for("the end of the folders", || lab.folders().is_empty());
    let document = lab.bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "failed");
    assert_eq!(member_names(&document), ["member-0", "member-1", "member-2"]);
    assert!(measured(&document, "read") > 0);
    lab.assert_clean();
}

#[test]
fn setting_reported_differently_is_a_caveat() {
    let lab = Lab::new("7.0.14");
    lab.fake_mongod.misbehave("cache member-2 1000000000");
    let document = document(&lab, "replica-set=3", &[]);
    let found = caveats(&document, "server_setting");
    let [only] = found[..] else { panic!("{found:?}") };
    assert_eq!(only["code"], "server-setting-differs");
    for (name, value) in [
        ("server", "member-2"),
        ("setting", "cache_bytes"),
        ("found", "1000000000"),
        ("asked", "268435456"),
    ] {
        assert_eq!(only["values"][name], value, "{only}");
    }
    lab.assert_clean();
}

#[test]
fn embedded_server_refuses_topologies_with_alternatives() {
    let lab = Lab::new("7.0.14");
    for topology in ["replica-set=3", "sharded=2x1"] {
        lab.bench
            .dyno(&["run", "a", "--topology", topology, "--out", "r"])
            .expect(2)
            .says(&format!("`server.topology` = `{topology}`"))
            .says("`dyno server install`")
            .says("`mongod`");
        lab.bench.dyno(&["server", "start", "--topology", topology]).expect(2);
    }
    assert!(!lab.bench.path("r").exists());
    assert!(!lab.bench.path("state").exists());
}

#[test]
fn run_fails_on_a_set_without_a_primary() {
    let lab = Lab::new("7.0.14");
    lab.fake_mongod.misbehave("refuse replSetInitiate");
    lab.bench
        .dyno(&run(&lab, "replica-set=2", &["--operations", "1"]))
        .expect(3)
        .says("`replica-set=2`")
        .says("`member-0`");
    assert!(!lab.bench.path("r").exists());
    lab.assert_clean();
}
