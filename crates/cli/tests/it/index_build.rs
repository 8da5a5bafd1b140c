//! `dyno index-build`, end to end with the embedded server and with a real `mongod`. On machines that cannot trace, the tests
//! print a reason and are skipped, or fail with `DYNO_REQUIRE_TRACE`.

use crate::common::{Bench, Finished, assert_machine_is_reported, signal, wait_for};
use crate::record_changes::assert_every_change_is_reported;
use dyno_testkit::{embedded, embedded_program, mongod_program, or_skip};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A bench on a machine with the embedded server that can trace; `None` otherwise.
pub(crate) fn tracing() -> Option<Bench> {
    or_skip(embedded_program())?;
    crate::common::tracing()
}

/// Few documents, and a cache that is too small for them.
const SMALL: [&str; 5] = ["index-build", "--records", "4000", "--cache", "8MiB"];

pub(crate) fn build(bench: &Bench, more: &[&str]) -> Finished {
    bench.dyno(&[&SMALL[..], more].concat())
}

pub(crate) fn document(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("index-build.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Score of the document file in the JSON form of a report.
fn score(report: &Value, build: usize) -> f64 {
    let files = report["traces"][build]["access_patterns"]["files"].as_array().unwrap();
    let is_documents = |file: &&Value| {
        file["operation"] == "read" && file["name"].as_str().unwrap().contains("secantus_documents")
    };
    let most = files.iter().filter(is_documents).max_by_key(|file| file["bytes"].as_u64());
    most.unwrap()["score"].as_f64().unwrap()
}

/// Lines about loop devices with a file in the experiment's folder. Other programs on this machine may have loop devices.
fn loop_devices(bench: &Bench) -> Vec<String> {
    let output = std::process::Command::new("losetup").arg("--list").output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let folder = bench.path("x").display().to_string();
    let lines = text.lines().filter(|line| line.contains(&folder));
    lines.map(str::to_owned).collect()
}

#[test]
fn bad_options_are_refused_before_anything_is_done() {
    let bench = Bench::new();
    for (arguments, text) in [
        (&["index-build", "orderd"][..], "`ordered`"),
        (&["index-build", "--keys", "a:3"], "`a:3`"),
        (&["index-build", "--keys", "_id"], "always exists"),
        (&["index-build", "--pairs", "2"], "`--pairs`"),
        (&["index-build", "--storage", "ext4 on loop:4GiB at 0 iops"], "`0`"),
        (
            &["index-build", "--storage", "ext4 on loop:512MiB", "--records", "300000"],
            "`server.storage`",
        ),
        (&["index-build", "--collection", "shop"], "`shop.orders`"),
        (&["index-build", "--out", "x", "--data-dir", "x/data"], "`--out`"),
        (&["index-build", "ordered", "--collection", "a.b"], "cannot be used with"),
    ] {
        bench.dyno(arguments).expect(2).says(text);
    }
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn unsupported_remedies_on_joined_servers_are_refused() {
    let bench = Bench::new();
    for (topology, remedy, subject, hint) in [
        ("standalone;sharded=2x1", "rewrite", "`index_build.remedy` on `sharded=2x1`", "`split=N`"),
        ("replica-set=3", "compact", "`index_build.remedy` on `replica-set=3`", "`rewrite`"),
        ("sharded=2x1,key=date:ranged", "rewrite", "`sharded=2x1,key=date:ranged`", "`key`"),
    ] {
        let build = ["index-build", "--server", "mongod", "--topology", topology];
        for more in [&["--dry-run"][..], &[]] {
            let remedy = ["--remedy", remedy];
            let found = bench.dyno(&[&build[..], &remedy, more].concat());
            found.expect(2).says(subject).says(hint);
        }
    }
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn a_dry_run_prints_a_plan_that_only_index_builds_take() {
    let bench = Bench::new();
    let build = [
        "index-build",
        "--remedy",
        "dump",
        "--storage",
        "ext4 on loop:4GiB at 90 iops",
        "--warm",
        "--dry-run",
    ];
    let steps = bench.dyno(&build).expect(0).stdout;
    for part in ["`churned`", "`date`", "warm", "`dump`", "--full"] {
        assert!(steps.contains(part), "{steps}");
    }
    assert!(steps.lines().count() < 10, "{steps}");
    let text = bench.dyno(&[&build[..], &["--full"]].concat()).expect(0).stdout;
    for line in [
        "layout = \"churned\"",
        "remedy = \"dump\"",
        "storage = \"ext4 on loop:4GiB at 90 iops\"",
        "start = \"warm\"",
    ] {
        assert!(text.contains(line), "{text}");
    }
    std::fs::write(bench.path("p.toml"), &text).unwrap();
    let again = bench.dyno(&["index-build", "p.toml", "--dry-run", "--full"]);
    assert_eq!(again.expect(0).stdout, text);
    bench.dyno(&["run", "p.toml", "--dry-run"]).expect(2).says("`dyno index-build`");
}

#[test]
fn rewrite_makes_a_random_scan_sequential_and_keeps_documents() {
    let Some(bench) = tracing() else { return };
    let done = build(
        &bench,
        &["churned", "--remedy", "rewrite", "--out", "x", "--format", "json", "--price", "0.36/h"],
    );
    let report = done.expect(0).json();
    for (number, name) in ["before", "after"].into_iter().enumerate() {
        let costs = &report["costs"][number];
        assert_eq!((&costs["name"], &costs["basis_count"]), (&name.into(), &4000.into()));
        let of = |kind: &str| {
            let found =
                costs["values"].as_array().unwrap().iter().find(|cost| cost["kind"] == kind);
            let found = found.unwrap_or_else(|| panic!("{kind}: {costs}"));
            found["value"]["value"].as_f64().unwrap()
        };
        let build = &report["index_build"]["builds"][number];
        let price = 0.36 / 3600.0 * build["duration_s"].as_f64().unwrap() / 4000.0 * 1e6;
        assert!((of("price_per_million") / price - 1.0).abs() < 1e-6, "{costs}");
        let used = &build["consumption"];
        let cpu_us = used["server_cpu_s"].as_f64().unwrap() * 1e6 / 4000.0;
        assert!((of("server_cpu_us") / cpu_us - 1.0).abs() < 1e-6, "{costs}");
        // The connection carries only the command and its answer.
        assert!(used.get("network").is_none(), "{used}");
        // The documents do not fit into the cache, which is cold. The other counters are read slightly earlier and later.
        let read = |of: &Value| of.as_f64().unwrap();
        let (own, all) = (&used["server_read_bytes"], &build["process"]["read_bytes"]);
        assert!(read(own) <= read(all) && read(own) > 0.5 * read(all), "{own} of {all}");
        // If other programs read more from the device, as on a test machine, the costs do not include device reads.
        let by_device = used["device"]["read_bytes"].as_f64().unwrap_or_default();
        if by_device < 1.8 * read(own) {
            assert!(of("device_read_bytes") * 4000.0 > 0.9 * read(own), "{costs}");
        }
    }
    let (before, after) = (score(&report, 0), score(&report, 1));
    assert!(before < 0.3, "before: {before}");
    let files = &report["traces"][1]["access_patterns"]["files"];
    assert!(after > 0.8, "after: {after}, {files}");
    let document = document(&bench.path("x"));
    assert_eq!(document["status"], "complete");
    let remedy = &document["remedy"];
    assert_eq!(remedy["documents"], serde_json::json!([4000, 4000]));
    assert_eq!(remedy["content_hash"][0], remedy["content_hash"][1]);
    assert_eq!(remedy["content_hash"][0], document["collection"]["content_hash"]);
    for build in document["builds"].as_array().unwrap() {
        assert_eq!(build["server_restarted"], true);
        let (cached, all) = (&build["cached_bytes"], &build["data_bytes"]);
        let (cached, all) = (cached.as_f64().unwrap(), all.as_f64().unwrap());
        assert!(cached < 0.05 * all, "{cached} of {all} bytes were in the page cache");
    }
    assert!(!bench.path("x/server-data").exists());
    let page = std::fs::read_to_string(bench.path("x/report.html")).unwrap();
    assert!(page.contains("<html"), "{page}");
    assert!(page.contains("per document"), "{page}");
    let (_, machine) = page.split_once("<h3>Machine</h3>").unwrap();
    let (machine, _) = machine.split_once("</section>").unwrap();
    assert_machine_is_reported(&document["environment"], machine);
    let csv = bench.dyno(&["export", "x", "--to", "csv"]).expect(0).stdout;
    assert_eq!(csv.lines().next(), Some("build,configuration,remedy,source,metric,value,unit"));
    for (number, build) in document["builds"].as_array().unwrap().iter().enumerate() {
        let name = build["name"].as_str().unwrap();
        let remedy = ["", "rewrite"][number];
        let row = format!("{name},,{remedy},build,duration_s,{},s", build["duration_s"]);
        let has = |row: &str| csv.lines().any(|line| line.starts_with(row));
        assert!(has(&row), "{number}: {row}\n{csv}");
        for figure in ["documents_count,4000,count", "share_ratio,1,ratio", "score,0"] {
            let row = format!("{name},,{remedy},server,{figure}");
            assert!(has(&row), "{row}\n{csv}");
        }
    }
    let parts = ["index-build.json", "before/trace.json", "after/SHA256SUMS"];
    assert_every_change_is_reported(&bench, "x", &parts);
    bench.dyno(&["report", "x"]).expect(0);
    bench.dyno(&["report", "x/index-build.json", "--format", "html"]).expect(0);
    bench.dyno(&["report", "x", "--format", "ycsb"]).expect(2);
}

#[test]
fn documents_that_were_loaded_in_order_are_read_in_order() {
    let Some(bench) = tracing() else { return };
    // So many documents that only a part of the server's start-up reads is still in its cache.
    let done = bench.dyno(&["index-build", "ordered", "--format", "json"]);
    let score = score(&done.expect(0).json(), 0);
    assert!(score > 0.8, "{score}");
}

#[test]
fn own_collection_is_restored_after_the_build() {
    let Some(bench) = tracing() else { return };
    let data = bench.path("data");
    let data = data.to_str().unwrap();
    // Documents in a folder that is kept.
    let own = ["shuffled", "--data-dir", data, "--out", "first", "--format", "json"];
    build(&bench, &own).expect(0);
    build(&bench, &own[..3]).expect(2).says("`sdu.units`").says("4000");
    let take = [
        "index-build",
        "--collection",
        "sdu.units",
        "--data-dir",
        data,
        "--cache",
        "8MiB",
        "--keys",
        "number:-1",
        "--remedy",
        "natural-copy",
        "--out",
        "second",
    ];
    bench.dyno(&take).expect(0);
    let (first, second) = (document(&bench.path("first")), document(&bench.path("second")));
    assert_eq!(first["collection"]["content_hash"], second["collection"]["content_hash"]);
    assert_eq!(second["collection"]["load_s"], Value::Null);
    assert!(Path::new(data).join("WiredTiger").exists());
    // The first index must be dropped, or this would be refused.
    let same = ["index-build", "--collection", "sdu.units", "--data-dir", data, "--out", "third"];
    bench.dyno(&same).expect(0);
    let none =
        ["index-build", "--collection", "sdu.nothing", "--data-dir", data, "--out", "fourth"];
    bench.dyno(&none).expect(2).says("`sdu.nothing`");
    assert!(!bench.path("fourth").exists());
}

#[test]
fn a_slow_disk_is_slow_and_leaves_nothing() {
    let Some(bench) = tracing() else { return };
    let slow = [
        "churned",
        "--storage",
        "ext4 on loop:1GiB at 200 iops",
        "--records",
        "2500",
        "--out",
        "x",
        "--format",
        "json",
    ];
    let done = bench.dyno(&[&["index-build", "--cache", "4MiB"], &slow[..]].concat());
    done.expect(0);
    let document = document(&bench.path("x"));
    assert_eq!(document["disk"]["made"], true);
    assert_eq!(document["disk"]["iops"], 200);
    let built = &document["builds"][0];
    let reads = built["device"]["reads"].as_f64().unwrap();
    let per_s = reads / built["duration_s"].as_f64().unwrap();
    assert!(reads > 150.0, "{reads} reads say nothing of a limit");
    assert!(per_s < 240.0, "{per_s} reads per second");
    assert_eq!(loop_devices(&bench), Vec::<String>::new());
    let entries = std::fs::read_dir(bench.path("x")).unwrap();
    let names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("storage")), "{names:?}");
}

/// Starts an index build and interrupts it once its output contains `moment`.
pub(crate) fn interrupted(bench: &Bench, arguments: &[&str], moment: &str) -> Option<i32> {
    let mut child = bench
        .command(&[&SMALL[..], arguments].concat())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(bench.path("said")).unwrap())
        .spawn()
        .unwrap();
    let said = bench.path("said");
    wait_for(moment, || {
        let text = std::fs::read_to_string(&said).unwrap();
        text.contains(moment)
    });
    signal(&child, "INT");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(began.elapsed() < Duration::from_secs(90), "the index build did not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_interruption_before_the_first_build_leaves_nothing() {
    let Some(bench) = tracing() else { return };
    let exit = interrupted(&bench, &["--out", "x"], "starting");
    assert_eq!(exit, Some(130));
    assert!(!bench.path("x").exists());
}

#[test]
fn interrupted_remedy_keeps_the_first_build_and_all_documents() {
    let Some(bench) = tracing() else { return };
    let data = bench.path("data");
    let data = data.to_str().unwrap();
    let arguments = ["ordered", "--data-dir", data, "--remedy", "rewrite", "--out", "x"];
    let exit = interrupted(&bench, &arguments, "remedy: rewrite");
    assert_eq!(exit, Some(130));
    let document = document(&bench.path("x"));
    assert_eq!(document["status"], "partial");
    assert_eq!(document["builds"].as_array().unwrap().len(), 1);
    assert_eq!(document["remedy"], Value::Null);
    bench.dyno(&["report", "x"]).expect(0);
    // The index and the copy are gone, and all documents are there.
    let take = [
        "index-build",
        "--collection",
        "sdu.units",
        "--data-dir",
        data,
        "--remedy",
        "dump",
        "--out",
        "y",
    ];
    bench.dyno(&take).expect(0);
    let hash = |name: &str| self::document(&bench.path(name))["collection"]["content_hash"].clone();
    assert_eq!(hash("x"), hash("y"));
}

#[test]
fn running_server_is_used_without_changes() {
    let Some(bench) = tracing() else { return };
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    // A layout comes with settings for a new server; they do not apply to this one.
    let uri = server.uri();
    let load = ["index-build", "shuffled", "--records", "800", "--uri", &uri, "--out", "x"];
    bench.dyno(&load).expect(0).says("`sdu.units`");
    let take = |more: &[&'static str]| -> Vec<String> {
        let fixed = ["index-build", "--collection", "sdu.units", "--keys", "number:1,date:-1"];
        fixed.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let run = |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = bench.command(&words);
        // The address is passed in the variable, which would hide a password.
        Finished::from(command.env("DYNO_URI", &uri).output().unwrap())
    };
    run(take(&["--remedy", "natural-copy", "--out", "y"])).expect(0);
    let document = document(&bench.path("y"));
    assert_eq!(document["server"]["started"], false);
    assert_eq!(document["remedy"]["documents"], serde_json::json!([800, 800]));
    let caveats = document["caveats"].to_string();
    assert!(caveats.contains("only-page-cache-cold"), "{caveats}");
    run(take(&["--storage", "ext4 on loop:1GiB", "--out", "z"])).expect(2).says("`server.storage`");
    assert!(!bench.path("z").exists());
}

/// A build on a `mongod` into the folder of this name, as its document.
#[track_caller]
pub(crate) fn build_on_mongod(
    bench: &Bench,
    mongod: &Path,
    arguments: &[&str],
    out: &str,
) -> Value {
    let mongod = mongod.to_str().unwrap();
    let fixed = ["index-build", "--mongod", mongod, "--cache", "256MiB"];
    let more = ["--out", out, "--format", "json"];
    let done = bench.dyno(&[&fixed[..], arguments, &more].concat());
    done.expect(0).json()
}

/// The part of a report about the collection's documents in one build: the file is found by its namespace `sdu.units`.
#[track_caller]
fn documents_read(report: &Value, build: usize) -> &Value {
    let files = report["traces"][build]["access_patterns"]["files"].as_array().unwrap();
    let is_documents = |file: &&Value| {
        let name = file["name"].as_str().unwrap();
        file["operation"] == "read" && name.contains("collection-")
    };
    files
        .iter()
        .filter(is_documents)
        .max_by_key(|file| file["bytes"].as_u64())
        .unwrap_or_else(|| panic!("{files:#?}"))
}

/// A figure of the reads before and after a remedy, which keeps every document. A `mongod` scans a collection in the order in
/// which its documents were inserted, and stores them in this order until they grow.
#[track_caller]
fn remedied_on_mongod(
    layout: &str,
    remedy: &str,
    records: &str,
    figure: &str,
) -> Option<(f64, f64)> {
    let bench = crate::common::tracing()?;
    let mongod = or_skip(mongod_program())?;
    let arguments = [layout, "--records", records, "--remedy", remedy];
    let report = build_on_mongod(&bench, &mongod, &arguments, "x");
    let document = document(&bench.path("x"));
    assert_eq!(document["status"], "complete");
    let count: u64 = records.parse().unwrap();
    let remedy = &document["remedy"];
    assert_eq!(remedy["documents"], serde_json::json!([count, count]));
    assert_eq!(remedy["content_hash"][0], remedy["content_hash"][1]);
    for build in document["builds"].as_array().unwrap() {
        assert_eq!(build["server_restarted"], true);
    }
    assert!(!bench.path("x/server-data").exists());
    let figure = |build| documents_read(&report, build)[figure].as_f64().unwrap();
    Some((figure(0), figure(1)))
}

#[test]
fn on_a_mongod_a_rewrite_makes_churned_scans_sequential() {
    // The score is not compared: the number of blocks between two consecutive reads differs between runs (scores of 0.77 to
    // 0.94), as checkpoints come earlier or later. So does the share of reads of inner pages (up to 5 %).
    let figure = "sequential_ratio";
    let Some((before, after)) = remedied_on_mongod("churned", "rewrite", "30000", figure) else {
        return;
    };
    assert!(before < 0.05 && after > 0.9, "{before} {after}");
}

#[test]
fn on_a_mongod_a_rewrite_makes_migrated_scans_sequential() {
    let figure = "sequential_ratio";
    let Some((before, after)) = remedied_on_mongod("migrated", "rewrite", "30000", figure) else {
        return;
    };
    assert!(before < 0.4 && after > 0.9, "{before} {after}");
}

#[test]
fn on_a_mongod_loaded_documents_are_read_in_order() {
    for (layout, remedy) in
        [("ordered", "compact"), ("shuffled", "dump"), ("concurrent", "natural-copy")]
    {
        let figure = "sequential_ratio";
        let Some((before, after)) = remedied_on_mongod(layout, remedy, "4000", figure) else {
            return;
        };
        assert!(before > 0.8 && after > 0.8, "{layout}: {before} {after}");
    }
}

#[test]
fn own_collection_on_a_mongod_is_restored_after_the_build() {
    let Some(bench) = crate::common::tracing() else {
        return;
    };
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let data = bench.path("data");
    let data = data.to_str().unwrap();
    let own = ["ordered", "--records", "2000", "--data-dir", data];
    build_on_mongod(&bench, &mongod, &own, "first");
    let take = ["--collection", "sdu.units", "--data-dir", data];
    let more = ["--keys", "number:-1", "--remedy", "rewrite"];
    build_on_mongod(&bench, &mongod, &[&take[..], &more].concat(), "second");
    let hash = |name: &str| document(&bench.path(name))["collection"]["content_hash"].clone();
    assert_eq!(hash("first"), hash("second"));
    assert!(Path::new(data).join("_mdb_catalog.wt").exists());
}

#[test]
fn a_slow_disk_below_a_mongod_is_slow_and_leaves_nothing() {
    let Some(bench) = crate::common::tracing() else {
        return;
    };
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    // The kernel allows unused quota of up to a tenth of a second: with many reads this is little.
    let storage = "ext4 on loop:4GiB at 200 iops";
    let slow = ["churned", "--records", "30000", "--storage", storage];
    build_on_mongod(&bench, &mongod, &slow, "x");
    let document = document(&bench.path("x"));
    assert_eq!(document["disk"]["iops"], 200);
    let built = &document["builds"][0];
    let reads = built["device"]["reads"].as_f64().unwrap();
    assert!(reads > 150.0, "{reads} reads say nothing of a limit");
    let per_s = reads / built["duration_s"].as_f64().unwrap();
    assert!(per_s < 240.0, "{reads} reads, {per_s} per second");
    assert_eq!(loop_devices(&bench), Vec::<String>::new());
}
