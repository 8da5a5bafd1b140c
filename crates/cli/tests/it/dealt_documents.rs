//! `dyno index-build` on several topologies, and on several servers without a router, end to end.

use crate::common::Bench;
use crate::index_build::{build, build_on_mongod, document, interrupted, tracing};
use dyno_testkit::{mongod_program, or_skip};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Command named by the error for `split=N` outside of index builds.
const INDEX_BUILD_ONLY: &str = "`dyno index-build`";

#[test]
fn split_topology_is_refused_outside_of_index_builds() {
    let bench = Bench::new();
    let fleet = "base = \"a\"\n[fleet]\nclients = [\"c\"]\nservers = [\"s\"]\n";
    std::fs::write(bench.path("many.toml"), fleet).unwrap();
    for (arguments, text) in [
        (&["index-build", "--topology", "standalone;split=1"][..], "2 to 64"),
        (&["index-build", "--topology", "standalone;pairs=2"], "`pairs=2`"),
        (&["index-build", "--remedy", "dump", "--remedy-on", "split-0"], "`index_build.remedy_on`"),
        (&["run", "a", "--topology", "split=2"], INDEX_BUILD_ONLY),
        (&["sweep", "a", "--set", "server.topology=standalone;split=2"], INDEX_BUILD_ONLY),
        (&["server", "start", "--topology", "split=2"], INDEX_BUILD_ONLY),
        (&["tail", "--producer", "wire", "--topology", "split=2"], INDEX_BUILD_ONLY),
    ] {
        bench.dyno(arguments).expect(2).says(text);
    }
    // Every other kind of run.
    for typed in [
        "run a b",
        "load a",
        "soak a",
        "ab a b",
        "xmax a",
        "slo a --p99 5ms",
        "tune read",
        "fleet run many.toml --inventory none.yml --redis redis://127.0.0.1:1",
    ] {
        let mut words: Vec<&str> = typed.split(' ').collect();
        words.extend(["--topology", "split=2"]);
        let refused = bench.dyno(&words).expect(2);
        for what in ["`server.topology`", "`split=2`", INDEX_BUILD_ONLY] {
            assert!(refused.stderr.contains(what), "{typed}: {}", refused.stderr);
        }
    }
    assert_eq!(bench.entries(), ["many.toml"]);
}

#[test]
fn several_topologies_are_one_plan_with_an_estimate() {
    let Some(bench) = tracing() else { return };
    let typed = ["index-build", "shuffled", "--records", "1m", "--dry-run", "--full"];
    let several = ["--set", "server.topology=standalone; split=2;split=4"];
    let plan = bench.dyno(&[&typed[..], &several].concat()).expect(0);
    let text = plan.stdout.clone();
    assert!(text.contains("records = 1000000"), "{text}");
    let list = "topologies = [\n    \"standalone\",\n    \"split=2\",\n    \"split=4\",\n]";
    assert!(text.contains(list), "{text}");
    plan.says("at least ").says(" GiB ").says("6 builds");
    std::fs::write(bench.path("p.toml"), &text).unwrap();
    let again = bench.dyno(&["index-build", "p.toml", "--dry-run", "--full"]);
    assert_eq!(again.expect(0).stdout, text);
    let more = ["--records", "900000M"];
    let none = bench.dyno(&[&["index-build", "shuffled", "--dry-run"][..], &more].concat());
    none.expect(2).says(" free").says("`--records`");
}

/// Checks an index build that compares one server with these numbers of servers, over which its documents are split.
#[track_caller]
fn assert_dealt(bench: &Bench, folder: &str, report: &Value, records: u64, splits: &[u64]) {
    let document = document(&bench.path(folder));
    assert_eq!(document["status"], "complete");
    let configurations = document["configurations"].as_array().unwrap();
    let builds = document["builds"].as_array().unwrap();
    let all = 1 + splits.len();
    assert_eq!((configurations.len(), builds.len()), (all, all));
    for build in builds {
        assert_eq!(build["server_restarted"], true);
        let (cached, all) = (&build["cached_bytes"], &build["data_bytes"]);
        assert!(cached.as_f64().unwrap() < 0.05 * all.as_f64().unwrap(), "{build}");
        assert!(build["tracing"][0]["untraced_s"].as_f64().unwrap() > 0.0);
    }
    let page = std::fs::read_to_string(bench.path(folder).join("report.html")).unwrap();
    let assert_pictured = |server: &str| {
        let label = format!("aria-label=\"{server}: ");
        assert!(page.contains(&label), "no picture of {server}");
    };
    assert_pictured("server");
    let csv = bench.dyno(&["export", folder, "--to", "csv"]).expect(0).stdout;
    let assert_row = |row: &str| {
        let has = csv.lines().any(|line| line.starts_with(row));
        assert!(has, "{row}\n{csv}");
    };
    assert_row("standalone,standalone,,server,share_ratio,1,ratio");
    assert_row("standalone,standalone,,server,score,0");
    for (number, servers) in (1_usize..).zip(splits.iter().copied()) {
        let configuration = &configurations[number];
        assert_eq!(configuration["topology"], format!("split={servers}"));
        let hash = |number: usize| &configurations[number]["collection"]["content_hash"];
        assert_eq!(hash(number), hash(0));
        let members = configuration["members"].as_array().unwrap();
        let documents: Vec<u64> =
            members.iter().map(|member| member["documents"].as_u64().unwrap()).collect();
        assert_eq!(documents.len() as u64, servers);
        assert_eq!(documents.iter().sum::<u64>(), records);
        let fair = records / servers;
        assert!(documents.iter().all(|one| one.abs_diff(fair) < fair / 5), "{documents:?}");
        let build = &builds[number];
        let last = build["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| member["duration_s"].as_f64().unwrap());
        assert_eq!(build["duration_s"].as_f64(), last.max_by(f64::total_cmp));
        // Each server has separate files in the trace.
        let files = report["traces"][number]["trace"]["files"].as_array();
        let files = files.unwrap();
        for member in members {
            let data = format!("{}/", member["data"].as_str().unwrap());
            let is_own = |file: &&Value| {
                let is_collection = file["role"]["kind"] == "collection";
                is_collection && file["name"].as_str().unwrap().starts_with(&data)
            };
            assert!(files.iter().any(|file| is_own(&file)), "{data}: {files:#?}");
            assert!(!Path::new(&data).exists(), "{data}");
        }
        let build = format!("split-{servers},split={servers},");
        for (server, documents) in documents.iter().enumerate() {
            assert_pictured(&format!("split-{server}"));
            for figure in [
                "duration_s,".to_owned(),
                format!("documents_count,{documents},count"),
                "share_ratio,0.".to_owned(),
                "score,0".to_owned(),
            ] {
                assert_row(&format!("{build},split-{server},{figure}"));
            }
        }
        assert_row(&format!("{build},collection,servers_count,{servers},count"));
    }
    let kept = crate::common::names(&bench.path(folder));
    let splits: Vec<String> = splits.iter().map(|n| format!("split-{n}")).collect();
    let fixed = [
        "SHA256SUMS",
        "index-build.json",
        "plan.toml",
        "report.html",
        "report.md",
        "servers",
        "standalone",
    ];
    let mut expected: Vec<&str> = fixed.into_iter().collect();
    expected.extend(splits.iter().map(String::as_str));
    expected.sort_unstable();
    assert_eq!(kept, expected);
}

/// Builds on one server and on two, as one experiment.
const DEALT: [&str; 6] = ["--topology", "standalone;split=2", "--out", "x", "--format", "json"];

#[test]
fn index_build_compares_one_embedded_server_with_two() {
    let Some(bench) = tracing() else { return };
    let report = build(&bench, &[&["churned"][..], &DEALT].concat());
    assert_dealt(&bench, "x", &report.expect(0).json(), 4_000, &[2]);
}

/// A bench on a machine that can trace, and a real `mongod`.
fn tracing_of_mongod() -> Option<(Bench, PathBuf)> {
    let bench = crate::common::tracing()?;
    Some((bench, or_skip(mongod_program())?))
}

#[test]
fn index_build_compares_one_mongod_with_two_and_four() {
    let Some((bench, mongod)) = tracing_of_mongod() else {
        return;
    };
    let several = ["--topology", "standalone;split=2;split=4"];
    let arguments = [&["churned", "--records", "8000"][..], &several].concat();
    let report = build_on_mongod(&bench, &mongod, &arguments, "x");
    assert_dealt(&bench, "x", &report, 8_000, &[2, 4]);
}

#[test]
fn a_remedy_makes_the_scans_of_two_mongods_sequential() {
    let Some((bench, mongod)) = tracing_of_mongod() else {
        return;
    };
    let build = ["churned", "--records", "30000", "--remedy", "rewrite"];
    let dealt = ["--topology", "split=2", "--untraced", "0"];
    let report = build_on_mongod(&bench, &mongod, &[&build[..], &dealt].concat(), "x");
    let document = document(&bench.path("x"));
    assert_eq!(document["status"], "complete");
    let configuration = &document["configurations"][0];
    let remedy = &configuration["remedy"];
    assert!(remedy["on"].is_null(), "{remedy}");
    assert_eq!(remedy["documents"], serde_json::json!([30_000, 30_000]));
    assert_eq!(remedy["content_hash"][0], remedy["content_hash"][1]);
    let names: Vec<&Value> =
        document["builds"].as_array().unwrap().iter().map(|build| &build["name"]).collect();
    assert_eq!(names, ["split-2-before", "split-2-after"]);
    for member in configuration["members"].as_array().unwrap() {
        let data = format!("{}/", member["data"].as_str().unwrap());
        // The score is not compared because it differs between rewrites.
        let sequential = |build: usize| {
            let trace = &report["traces"][build];
            let read = documents_read_below(trace, &data, "/collection-");
            read["sequential_ratio"].as_f64().unwrap()
        };
        let (before, after) = (sequential(0), sequential(1));
        assert!(before < 0.4 && after > 0.95, "{data}: {before} {after}");
    }
}

/// The most-read file in a trace, among files below a folder with this part in their paths.
#[track_caller]
fn documents_read_below<'a>(trace: &'a Value, folder: &str, part: &str) -> &'a Value {
    let names = trace["trace"]["files"].as_array().unwrap();
    let files = trace["access_patterns"]["files"].as_array().unwrap();
    let is_own = |file: &&Value| {
        let name = names[file["file"].as_u64().unwrap() as usize]["name"].as_str();
        let name = name.unwrap();
        name.starts_with(folder) && name.contains(part) && file["operation"] == "read"
    };
    files
        .iter()
        .filter(is_own)
        .max_by_key(|file| file["bytes"].as_u64())
        .unwrap_or_else(|| panic!("{folder}: {files:#?}"))
}

#[test]
fn a_remedy_on_one_of_two_servers_leaves_the_other_as_it_was() {
    let Some(bench) = tracing() else { return };
    let remedy = ["--remedy", "rewrite", "--remedy-on", "split-1"];
    // Enough documents that one server's share does not fit into its cache.
    let other = ["index-build", "churned", "--records", "8000", "--cache", "8MiB"];
    let dealt = ["--topology", "split=2", "--untraced", "0"];
    let report = bench.dyno(&[&other[..], &dealt, &remedy, &DEALT[2..]].concat());
    let report = report.expect(0).json();
    let document = document(&bench.path("x"));
    let configuration = &document["configurations"][0];
    assert_eq!(configuration["remedy"]["on"], "split-1");
    assert_eq!(configuration["remedy"]["documents"], serde_json::json!([8000, 8000]));
    let hashes = &configuration["remedy"]["content_hash"];
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[0], configuration["collection"]["content_hash"]);
    assert_eq!(document["builds"][1]["name"], "split-2-after");
    assert_eq!(document["builds"][0].get("tracing"), None);
    let score = |server: usize| {
        let data = configuration["members"][server]["data"].as_str().unwrap();
        let read = documents_read_below(&report["traces"][1], data, "secantus_documents");
        read["score"].as_f64().unwrap()
    };
    assert!(score(0) < 0.4 && score(1) > 0.8, "{} {}", score(0), score(1));
}

#[test]
fn interrupted_split_build_leaves_no_server_and_no_folder() {
    let Some(bench) = tracing() else { return };
    let dealt = ["--topology", "split=2", "--out", "x"];
    let exit = interrupted(&bench, &dealt, "starting 2 servers");
    assert_eq!(exit, Some(130));
    assert!(!bench.path("x").exists());
}
