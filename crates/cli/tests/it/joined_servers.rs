//! `dyno index-build` on a replica set and on a sharded cluster of real `mongod`s, end to end. The router is the `mongos` that
//! `DYNO_TEST_MONGOS` names, or a fake one, which distributes documents over the shards and forwards commands, and proves nothing
//! about a real router.

use crate::common::lab::Lab;
use crate::common::{Bench, tracing};
use crate::index_build::{build_on_mongod, document};
use dyno_testkit::{mongod_program, mongos_program, or_skip};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A `mongod` on a machine that can trace, and fake servers of its version.
fn lab() -> Option<(Lab, PathBuf)> {
    tracing()?;
    let mongod = or_skip(mongod_program())?;
    Some((Lab::new("6.0.5"), mongod))
}

/// Path of the router, and whether it is the fake `mongod`.
fn router(lab: &Lab) -> (PathBuf, bool) {
    match mongos_program() {
        Ok(router) => (router, false),
        Err(_) => (lab.fake_mongod.mongos(), true),
    }
}

/// Documents of each server in the only configuration, by server name and in order.
fn held(document: &Value) -> Vec<(String, u64)> {
    let held = document["configurations"][0]["members"].as_array().unwrap().iter().map(|member| {
        let name = member["name"].as_str().unwrap().to_owned();
        (name, member["documents"].as_u64().unwrap())
    });
    held.collect()
}

/// Checks an index build on several servers with data: each server was restarted, and has its documents, its reads and its
/// picture.
#[track_caller]
fn assert_each_is_seen(bench: &Bench, folder: &str, report: &Value) {
    let document = document(&bench.path(folder));
    assert_eq!(document["status"], "complete");
    let configuration = &document["configurations"][0];
    let members = configuration["members"].as_array().unwrap();
    for (number, build) in document["builds"].as_array().unwrap().iter().enumerate() {
        assert_eq!(build["server_restarted"], true);
        let (cached, all) = (&build["cached_bytes"], &build["data_bytes"]);
        assert!(cached.as_f64().unwrap() < 0.05 * all.as_f64().unwrap(), "{build}");
        assert_eq!(build["configuration"], configuration["topology"]);
        let files = report["traces"][number]["trace"]["files"].as_array().unwrap();
        let patterns = &report["traces"][number]["access_patterns"]["files"];
        for (member, done) in members.iter().zip(build["members"].as_array().unwrap()) {
            assert_eq!(done["name"], member["name"]);
            // One command covers all members.
            assert_eq!(done["duration_s"], build["duration_s"]);
            assert!(done["process"]["read_bytes"].as_u64().unwrap() > 1 << 20, "{done}");
            let data = format!("{}/", member["data"].as_str().unwrap());
            let is_own = |file: &&Value| {
                let file = &files[file["file"].as_u64().unwrap() as usize];
                let is_documents = file["role"]["namespace"] == "sdu.units";
                is_documents && file["name"].as_str().unwrap().starts_with(&data)
            };
            let read = patterns.as_array().unwrap().iter().filter(is_own);
            let mut read = read.filter(|file| file["operation"] == "read");
            assert!(read.any(|file| file["score"].is_f64()), "{data}: {patterns:#}");
            assert!(!Path::new(&data).exists(), "{data}");
        }
    }
    let page = std::fs::read_to_string(bench.path(folder).join("report.html")).unwrap();
    let csv = bench.dyno(&["export", folder, "--to", "csv"]).expect(0).stdout;
    for (name, documents) in held(&document) {
        let picture = format!("aria-label=\"{name}: ");
        assert!(page.contains(&picture), "no picture of {name}");
        let count = format!("documents_count,{documents},count");
        for figure in [count.as_str(), "share_ratio,", "score,"] {
            let row = format!(",{name},{figure}");
            assert!(csv.contains(&row), "{row}\n{csv}");
        }
    }
}

#[test]
fn index_is_built_on_a_rewritten_replica_set() {
    let Some((lab, mongod)) = lab() else { return };
    let bench = &lab.bench;
    let set = ["--topology", "replica-set=2+1", "--untraced", "0"];
    let build = ["churned", "--records", "20000", "--remedy", "rewrite"];
    let report = build_on_mongod(bench, &mongod, &[&build[..], &set].concat(), "x");
    assert_each_is_seen(bench, "x", &report);
    let document = document(&bench.path("x"));
    let each = [("member-0".to_owned(), 20_000), ("member-1".to_owned(), 20_000)];
    assert_eq!(held(&document), each);
    let configuration = &document["configurations"][0];
    assert_eq!(configuration["collection"]["documents"], 20_000);
    let hashes = &configuration["remedy"]["content_hash"];
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[0], configuration["collection"]["content_hash"]);
    let names: Vec<&Value> =
        document["builds"].as_array().unwrap().iter().map(|build| &build["name"]).collect();
    assert_eq!(names, ["replica-set-2-1-before", "replica-set-2-1-after"]);
    assert_eq!(lab.fake_mongod.violations(), Vec::<String>::new());
}

#[test]
fn index_is_built_through_a_router_and_seen_on_every_shard() {
    let Some((lab, mongod)) = lab() else { return };
    let bench = &lab.bench;
    let (router, is_fake_mongod) = router(&lab);
    let cluster = [
        "shuffled",
        "--records",
        "8000",
        "--topology",
        "sharded=2x1",
        "--mongos",
        router.to_str().unwrap(),
    ];
    let report = build_on_mongod(bench, &mongod, &cluster, "x");
    assert_each_is_seen(bench, "x", &report);
    let document = document(&bench.path("x"));
    let held = held(&document);
    let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["shard-0-0", "shard-1-0"]);
    assert_eq!(held[0].1 + held[1].1, 8_000);
    assert!(held[0].1.abs_diff(4_000) < 400, "{held:?}");
    let configuration = &document["configurations"][0];
    assert_eq!(configuration["collection"]["documents"], 8_000);
    assert_eq!(configuration["topology"], "sharded=2x1");
    // Tracing overhead is reported for clusters as well.
    let pair = &document["builds"][0]["tracing"][0];
    assert!(pair["untraced_s"].as_f64().unwrap() > 0.0);
    if is_fake_mongod {
        let sent = |command: &str| lab.asked("router", command, "none");
        assert_eq!((sent("createIndexes"), sent("dropIndexes")), (2, 2));
        assert!(sent("insert") >= 80, "{:?}", lab.fake_mongod.operations());
    }
    lab.assert_clean();
}

#[test]
fn the_only_shard_of_a_cluster_is_seen_and_not_its_router() {
    let Some((lab, mongod)) = lab() else { return };
    let (router, _) = router(&lab);
    let cluster = [
        "shuffled",
        "--records",
        "8000",
        "--topology",
        "sharded=1x1",
        "--untraced",
        "0",
        "--mongos",
        router.to_str().unwrap(),
    ];
    let report = build_on_mongod(&lab.bench, &mongod, &cluster, "x");
    let document = document(&lab.bench.path("x"));
    assert_eq!(held(&document), [("shard-0-0".to_owned(), 8_000)]);
    // The router has no files: only the shard reports its files and how they were read.
    let files = report["traces"][0]["trace"]["files"].as_array().unwrap();
    let is_documents = |file: &&Value| file["role"]["namespace"] == "sdu.units";
    assert!(files.iter().any(|file| is_documents(&file)), "{files:?}");
    let patterns = &report["traces"][0]["access_patterns"]["files"];
    let mut patterns = patterns.as_array().unwrap().iter();
    let is_scored = |file: &Value| {
        let of = &files[file["file"].as_u64().unwrap() as usize];
        is_documents(&of) && file["operation"] == "read" && file["score"].is_f64()
    };
    assert!(patterns.any(is_scored), "{report:#}");
}
