//! The program with a real `mongod`: whole runs on every topology, settings that are read back, observed metrics, and leftovers.
//! The table "Tried on what" of `docs/servers.md` summarises these tests by area.

use crate::common::scrape::{Endpoint, get};
use crate::common::{
    Bench, Finished, control, names, processes_with, run_schema, signal, wait_for,
    wait_for_windows, ycsb_plans,
};
use bson::{Bson, Document, doc};
use dyno_load::connect::Control;
use dyno_testkit::fault::{DiskThrottle, FileSystem, LoopDisk, is_root};
use dyno_testkit::{TestServer, go_before_others, mongod, mongod_program, or_skip};
use serde_json::Value;
use std::path::Path;

const CONCERNS: &str = "server.connection_options=w=majority&readConcernLevel=majority";

/// A bench with a real `mongod`. Its remaining servers are stopped at the end, even if the test fails.
struct Lab {
    bench: Bench,
    mongod: String,
}

impl Lab {
    /// `None` with a printed reason if there is no `mongod`.
    fn new() -> Option<Lab> {
        let mongod = or_skip(mongod_program())?;
        Some(Lab { bench: Bench::new(), mongod: mongod.to_str().unwrap().to_owned() })
    }

    /// Arguments of a short run of workload `a` on new servers.
    fn run<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let fixed = ["run", "a", "--mongod", &self.mongod, "--cache", "256MiB"];
        let small = ["--records", "300", "--clients", "4", "--warmup", "0s"];
        [&fixed[..], &small, &["--out", "r"], more].concat()
    }

    /// The document of a run of 300 operations.
    #[track_caller]
    fn document(&self, more: &[&str]) -> Value {
        let short = ["--operations", "300", "--format", "json"];
        let arguments = self.run(&[&short[..], more].concat());
        let document = self.bench.dyno(&arguments).expect(0).json();
        assert_sound(&document);
        self.assert_clean();
        document
    }

    /// Checks that only records are left: no process and no data.
    #[track_caller]
    fn assert_clean(&self) {
        let place = self.bench.folder.path().to_str().unwrap();
        wait_for("the end of all processes", || processes_with(place).is_empty());
        let run = self.bench.path("r");
        if run.exists() {
            let mut left = names(&run);
            left.retain(|name| name == "server-data" || name == "server-secrets");
            assert_eq!(left, Vec::<String>::new());
        }
    }

    fn start(&self, more: &[&str]) -> Finished {
        let fixed = ["server", "start", "--name", "lab", "--mongod", &self.mongod];
        let cache = ["--cache", "256MiB"];
        let started = self.bench.dyno(&[&fixed[..], &cache, more].concat()).expect(0);
        assert!(started.stderr.contains("dyno server stop lab"));
        started
    }

    fn uri(&self) -> String {
        let asked = self.bench.dyno(&["server", "status", "lab", "--uri"]);
        asked.expect(0).stdout.trim().to_owned()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.bench.path("state/servers/lab").exists() {
            let _ = self.bench.dyno(&["server", "stop", "lab"]);
        }
    }
}

/// Checks that the document matches the schema, nothing failed, and every setting reads back as requested.
#[track_caller]
fn assert_sound(document: &Value) {
    run_schema().validate(document).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(document["status"], "complete");
    for phase in document["phases"].as_array().unwrap() {
        assert_eq!(phase["errors"], serde_json::json!({}), "{phase}");
    }
    let wrong = document["caveats"].as_array().unwrap().iter().find(|caveat| {
        let kind = caveat["kind"].as_str().unwrap();
        ["server_setting", "document_count"].contains(&kind)
    });
    assert_eq!(wrong, None);
}

fn measure(document: &Value) -> &Value {
    document["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap()
}

fn measured(document: &Value, operation: &str) -> u64 {
    measure(document)["operations"][operation]["count"].as_u64().unwrap()
}

fn member_names(document: &Value) -> Vec<&str> {
    let names = document["server"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["name"].as_str());
    names.map(Option::unwrap).collect()
}

/// The number at a path of `serverStatus`.
fn reported(control: &mut Control, path: &[&str]) -> f64 {
    let status = control.run("admin", doc! { "serverStatus": 1 }).unwrap();
    let (last, parents) = path.split_last().unwrap();
    let inner =
        parents.iter().fold(&status, |inner: &Document, name| inner.get_document(name).unwrap());
    match inner.get(last) {
        Some(Bson::Int32(number)) => f64::from(*number),
        Some(Bson::Int64(number)) => *number as f64,
        Some(Bson::Double(number)) => *number,
        other => panic!("{path:?} is {other:?}"),
    }
}

#[test]
fn every_built_in_workload_runs_on_a_mongod_by_both_backends() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    // This plan drops the page cache of its own server's files, and has a separate test.
    let plans = ycsb_plans().filter(|name| *name != "storage-compare");
    for (count, workload) in plans.enumerate() {
        // The backends alternate, so that each kind of operation is performed by both.
        let backend = ["wire", "driver"][count % 2];
        let small = ["--records", "300", "--operations", "200", "--warmup", "0s"];
        let aimed = ["--uri", &uri, "--backend", backend, "--fresh"];
        let reported = ["--format", "json", "--out", workload, "--no-observe"];
        let run = [&["run", workload][..], &small, &aimed, &reported].concat();
        let document = bench.dyno(&run).expect(0).json();
        assert_eq!(document["name"], workload);
        assert_sound(&document);
        assert!(measure(&document)["achieved_rate_per_s"].as_f64().unwrap() > 0.0, "{workload}");
    }
}

#[test]
fn storage_is_compared_on_a_mongod_with_durable_writes() {
    let Some(lab) = Lab::new() else { return };
    if !is_root() {
        dyno_testkit::skip("no root to drop the page cache");
        return;
    }
    let small = ["--records", "300", "--operations", "200", "--warmup", "0s"];
    let run = ["run", "storage-compare", "--mongod", &lab.mongod];
    let run = [&run[..], &small, &["--format", "json", "--out", "r"]].concat();
    let document = lab.bench.dyno(&run).expect(0).json();
    assert_sound(&document);
    assert_eq!(document["server"]["cache_bytes"], 256 << 20);
    let concern = document["server"]["write_concern"].as_str().unwrap();
    assert!(concern.contains("j=true") || concern.contains("journal=true"), "{concern}");
    lab.assert_clean();
}

#[test]
fn settings_of_the_engine_are_read_back_in_the_record() {
    let Some(lab) = Lab::new() else { return };
    let document = lab.document(&[
        "--set",
        "server.block_compressor=zstd",
        "--set",
        "server.journal_compressor=none",
        "--set",
        "server.journal_commit_interval=30ms",
        "--set",
        "server.checkpoint_interval=20s",
        "--set",
        "server.parameters.ttlMonitorSleepSecs=77",
    ]);
    let found = &document["server"]["members"][0]["found"];
    for (name, value) in [
        ("cache_bytes", "268435456"),
        ("block_compressor", "zstd"),
        ("journal_compressor", "none"),
        ("journal_commit_interval_ms", "30"),
        ("checkpoint_interval_s", "20"),
        ("parameter.ttlMonitorSleepSecs", "77"),
        ("diagnostic_data_interval_ms", "1000"),
        ("storage_engine", "wiredTiger"),
    ] {
        assert_eq!(found[name], value, "{name}: {found}");
    }
    let version = document["server"]["version"].as_str().unwrap();
    assert_eq!(found["reported_version"], version);
    assert_eq!(names(&lab.bench.path("r/server-logs")), ["server.raw.log"]);
}

#[test]
fn pairs_alternate_between_disks() {
    let Some(lab) = Lab::new() else { return };
    let folders = ["disk-a", "disk-b"].map(|name| lab.bench.path(name));
    let [first, second] = folders.each_ref().map(|path| path.to_str().unwrap());
    let folders = format!("server.data_dirs=[\"{first}\",\"{second}\"]");
    let document = lab.document(&["--pairs", "2", "--set", &folders]);
    assert_eq!(document["instances"].as_array().unwrap().len(), 2);
    for folder in [first, second] {
        let kept = names(Path::new(folder));
        assert_eq!(kept.len(), 1, "{kept:?}");
        let data = Path::new(folder).join(&kept[0]);
        assert!(data.join("_mdb_catalog.wt").is_file(), "{kept:?}");
    }
}

#[test]
fn runs_with_users_and_certificates_work_by_both_backends() {
    let Some(lab) = Lab::new() else { return };
    for (encryption, backend) in [("server", "wire"), ("mutual", "driver"), ("mutual", "wire")] {
        let encryption = format!("server.encryption={encryption}");
        let secured = ["--auth", "--set", &encryption, "--backend", backend];
        let document = lab.document(&secured);
        let found = &document["server"]["members"][0]["found"];
        assert_eq!((&found["tls"], &found["auth"]), (&"true".into(), &"true".into()));
        std::fs::remove_dir_all(lab.bench.path("r")).unwrap();
    }
}

/// Number of times that the server received this concern, by its own counters.
fn majorities(control: &mut Control, of: &str) -> f64 {
    match of {
        "reads" => {
            let counters = ["readConcernCounters", "nonTransactionOps", "majority"];
            reported(control, &counters)
        }
        operation => reported(control, &["opWriteConcernCounters", operation, "wmajority"]),
    }
}

#[test]
fn running_replica_set_takes_the_concerns_of_every_operation() {
    let Some(lab) = Lab::new() else { return };
    let count = "server.parameters.reportOpWriteConcernCountersInServerStatus=true";
    let set = ["--topology", "replica-set=2+1,priorities=2/1"];
    lab.start(&[&set[..], &["--set", count]].concat());
    let state = lab.bench.dyno(&["server", "status", "lab", "--format", "json"]);
    let state = state.expect(0).json();
    let roles: Vec<_> =
        (0..3).map(|member| state["answers"][member]["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["primary", "secondary", "other"]);
    let listed = lab.bench.dyno(&["server", "list"]).expect(0).stdout;
    assert!(listed.contains("up"), "{listed}");

    let uri = lab.uri();
    let primary = state["members"][0]["address"].as_str().unwrap();
    let direct = format!("mongodb://{primary}/?directConnection=true");
    let mut control = control(&direct);
    let aimed = format!("{uri}&w=majority&readConcernLevel=majority");
    for backend in ["wire", "driver"] {
        let of = ["reads", "update"];
        let before = of.map(|of| majorities(&mut control, of));
        let small = ["--records", "300", "--operations", "300", "--warmup", "0s"];
        let reported = ["--backend", backend, "--format", "json"];
        let run = [&["run", "a", "--uri", &aimed][..], &small, &reported].concat();
        let document = lab.bench.dyno(&run).expect(0).json();
        assert_sound(&document);
        assert_eq!(document["server"]["write_concern"], "w=majority");
        let after = of.map(|of| majorities(&mut control, of));
        assert_eq!(after[1] - before[1], measured(&document, "update") as f64);
        // Checking the collection adds reads.
        let reads = measured(&document, "read") as f64;
        assert!(after[0] - before[0] >= reads, "{backend}: {before:?} {after:?}");
    }
    lab.bench.dyno(&["server", "stop", "lab"]).expect(0);
    lab.assert_clean();
    let none = lab.bench.dyno(&["server", "list"]).expect(0);
    assert!(none.stdout.starts_with("no deployments"));
}

#[test]
fn replica_set_run_ends_when_a_member_dies_and_names_it() {
    let Some(lab) = Lab::new() else { return };
    let set = ["--topology", "replica-set=3", "--set", CONCERNS];
    let run = lab.run(&[&set[..], &["--duration", "10m"]].concat());
    let mut child = lab.bench.spawn(&run);
    wait_for_windows(&mut child, &lab.bench.path("r"), 3);
    let data = lab.bench.path("r/server-data");
    let secondary = processes_with(&format!("{}/member-1", data.display()));
    let is_mongod = |process: &&u32| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
        name.is_ok_and(|name| name.starts_with("mongod"))
    };
    let secondary = *secondary.iter().find(is_mongod).unwrap();
    crate::common::lab::kill(secondary);
    Finished::from(child.wait_with_output().unwrap())
        .expect(3)
        .says("`member-1`")
        .says("(signal: 9")
        .says("last output");
    let document = lab.bench.dyno(&["report", "r", "--format", "json"]);
    let document = document.expect(0).json();
    assert_eq!(document["status"], "failed");
    assert_eq!(member_names(&document), ["member-0", "member-1", "member-2"]);
    lab.assert_clean();
}

#[test]
fn killed_primary_is_one_outage_with_its_successor() {
    let Some(lab) = Lab::new() else { return };
    lab.start(&["--topology", "replica-set=3"]);
    let state = lab.bench.dyno(&["server", "status", "lab", "--format", "json"]);
    let state = state.expect(0).json();
    let is_primary = |answer: &Value| answer["role"] == "primary";
    let place = state["answers"].as_array().unwrap().iter().position(is_primary);
    let primary = &state["members"][place.unwrap()];

    let uri = lab.uri();
    let small = ["--records", "300", "--warmup", "0s", "--clients", "2", "--threads", "1"];
    // The other members elect a primary after 10 s without one.
    let more = ["--duration", "18s", "--tolerate-errors", "100%", "--out", "r"];
    let run = [&["run", "a", "--uri", &uri][..], &small, &more].concat();
    let mut child = lab.bench.spawn(&run);
    wait_for_windows(&mut child, &lab.bench.path("r"), 2);
    crate::common::lab::kill(primary["process"].as_u64().unwrap() as u32);
    Finished::from(child.wait_with_output().unwrap()).expect(0);

    let report = lab.bench.dyno(&["report", "r", "--format", "json"]);
    let analysis = &report.expect(0).json()["analysis"];
    let [outage] = analysis["outages"].as_array().unwrap().as_slice() else {
        panic!("{}", analysis["outages"])
    };
    assert_eq!(outage["cause"]["code"], "outage-cause.primary-changed");
    assert_eq!(outage["cause"]["values"]["from"], primary["address"]);
    let length_s = outage["end_s"].as_f64().unwrap() - outage["start_s"].as_f64().unwrap();
    assert!((5.0..16.0).contains(&length_s), "{length_s}");
    assert_eq!(analysis["findings"][0]["code"], "outage");
    assert_eq!(analysis["verdict"]["headline"]["code"], "outage-verdict");
    lab.bench.dyno(&["server", "stop", "lab"]).expect(1);
}

#[test]
fn an_interrupt_and_a_kill_leave_no_mongod() {
    let Some(lab) = Lab::new() else { return };
    for (name, status) in [("INT", "partial"), ("KILL", "partial")] {
        let run = lab.run(&["--pairs", "2", "--duration", "10m"]);
        let mut child = lab.bench.spawn(&run);
        wait_for_windows(&mut child, &lab.bench.path("r"), 2);
        signal(&child, name);
        child.wait_with_output().unwrap();
        wait_for("the data to go", || !lab.bench.path("r/server-data").exists());
        lab.assert_clean();
        let report = lab.bench.dyno(&["report", "r", "--format", "json"]);
        assert_eq!(report.expect(0).json()["status"], status);
        std::fs::remove_dir_all(lab.bench.path("r")).unwrap();
    }
}

#[test]
fn standing_servers_end_with_their_supervisor() {
    let Some(lab) = Lab::new() else { return };
    lab.start(&["--topology", "pairs=2"]);
    let state = lab.bench.dyno(&["server", "status", "lab", "--format", "json"]);
    let state = state.expect(0).json();
    let supervisor = state["supervisor"].as_u64().unwrap();
    crate::common::lab::kill(u32::try_from(supervisor).unwrap());
    let place = lab.bench.path("state/servers/lab");
    wait_for("the end of the servers", || processes_with(place.to_str().unwrap()).is_empty());
    lab.bench.dyno(&["server", "stop", "lab"]).expect(0).says("ended before");
}

#[test]
fn a_soak_on_a_mongod_is_seen_and_ended_from_another_terminal() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let aimed = ["soak", "a", "--uri", &uri, "--records", "300"];
    let more = ["--rate", "200", "--least-free", "1MiB", "--out", "r"];
    let mut child = bench.spawn(&[&aimed[..], &more].concat());
    wait_for_windows(&mut child, &bench.path("r"), 3);
    let seen = bench.dyno(&["status", "--json"]).expect(0).json();
    assert_eq!(seen[0]["process"], child.id());
    bench.dyno(&["stop"]).expect(0);
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    bench.dyno(&["report", "r"]).expect(0);
}

#[test]
fn doctor_checks_a_mongod() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let finished = bench.dyno(&["doctor", "--uri", &uri, "--format", "json"]);
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    let document = finished.json();
    let verdicts = document["verdicts"].as_array().unwrap();
    let found = |name: &str| {
        let verdict = verdicts.iter().find(|verdict| verdict["check"] == name);
        let verdict = verdict.unwrap_or_else(|| panic!("{name}: {verdicts:?}"));
        (verdict["level"].clone(), verdict["found"].as_str().unwrap())
    };
    assert_eq!(found("bind_address").0, "pass");
    // The limit of the server process, which is not the program's own limit.
    assert!(found("open_files").1.ends_with("the server"));
    assert!(found("round_trip").1.starts_with("median "));
    // The cache size is read from the server itself.
    let reported = document.to_string();
    assert!(reported.contains("256"), "{reported}");
    // The advice depends on the version that the server reported.
    let unknown: Vec<_> = verdicts
        .iter()
        .filter(|verdict| verdict["level"] == "unknown")
        .map(|verdict| verdict["check"].as_str().unwrap())
        .collect();
    assert!(!unknown.contains(&"huge_pages"), "{unknown:?}");
}

/// Names of all columns that the sources of a run recorded.
fn columns(run: &Path) -> Vec<String> {
    let folder = run.join("metrics");
    let headers = names(&folder).into_iter().map(|file| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    });
    let headers: Vec<String> = headers.collect();
    let columns = headers.iter().flat_map(|header| header.split(','));
    columns.map(str::to_owned).collect()
}

/// The embedded server lacks a third of these metrics, so only this test can check their names.
#[test]
fn a_mongod_reports_every_requested_metric() {
    let Some(lab) = Lab::new() else { return };
    let set = ["--topology", "replica-set=1"];
    let more = ["--duration", "4s", "--rate", "200", "--format", "json"];
    let run = lab.run(&[&set[..], &more].concat());
    let document = lab.bench.dyno(&run).expect(0).json();
    let sources = document["sources"].as_array().unwrap();
    let server =
        sources.iter().find(|source| source["name"] == "server" || source["name"] == "member-0");
    let server = server.unwrap_or_else(|| panic!("{sources:?}"));
    // Queue lengths of tickets came with 7.0; 6.0 has queue lengths of its locks.
    let reason = server["reason"].as_str().unwrap_or_default();
    assert!(reason.is_empty() || reason.contains("read_queued_count"), "{server}");
    let reported = columns(&lab.bench.path("r"));
    for metric in [
        "tickets.*.read_available_count",
        "queue.*.readers_count",
        "cache.*.evicted_by_application_per_s",
        "cache.*.application_reading_count",
        "checkpoint.*.running_count",
        "checkpoint.*.busy_ratio",
        "checkpoint.*.finished_per_s",
        "log.*.sync_mean_ms",
        "log.*.flushes_per_s",
        "blocks.*.checkpoint_written_bytes_per_s",
        "transactions.*.pinned_by_checkpoint_count",
        "operation_latency.*.writes_mean_us",
    ] {
        let (start, end) = metric.split_once('*').unwrap();
        let is_meant = |name: &&String| name.starts_with(start) && name.ends_with(end);
        assert!(reported.iter().any(|name| is_meant(&name)), "{metric}: {reported:?}");
    }
}

#[test]
fn prometheus_reads_mongod_metrics_during_a_run() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let aimed = ["run", "a", "--uri", &uri, "--records", "300"];
    let more = ["--rate", "200", "--duration", "10m", "--warmup", "0s"];
    let metrics = ["--metrics", "127.0.0.1:0", "--out", "r"];
    let endpoint = Endpoint::spawn(&mut bench.command(&[&aimed[..], &more, &metrics].concat()));
    for name in [
        "dyno_tickets_",
        "dyno_query_",
        "dyno_asserts_regular",
        "dyno_connections_active",
        "dyno_checkpoint_",
        "dyno_log_",
    ] {
        wait_for(name, || {
            let text = get(endpoint.port, "/metrics").body;
            text.lines().any(|line| line.starts_with(name))
        });
    }
}

/// A server on a separate disk that is throttled to few operations per second from the warm-up on.
#[test]
fn a_slow_disk_below_a_mongod_is_named_as_the_cause() {
    let Some(lab) = Lab::new() else { return };
    if !is_root() {
        dyno_testkit::skip("no root to slow a disk");
        return;
    }
    go_before_others();
    // The file is in memory, so that only the throttle below slows the disk, not other use of this machine's disks.
    let disk = LoopDisk::new(Path::new("/dev/shm"), 4096, FileSystem::Ext4).unwrap();
    let data = disk.path().join("data");
    let data = data.to_str().unwrap();
    let durable = "server.durable_writes=true";
    let more = ["--data-dir", data, "--set", durable, "--duration", "14s"];
    let warm = ["--warmup", "2s", "--clients", "16", "--format", "json"];
    let mut arguments = lab.run(&[&more[..], &warm].concat());
    // Options of the short run that are repeated above.
    for name in ["--clients", "--warmup"] {
        let first = arguments.iter().position(|one| *one == name).unwrap();
        arguments.drain(first..first + 2);
    }
    let child = lab.bench.spawn(&arguments);
    wait_for("the warm-up", || {
        let live = std::fs::read_to_string(lab.bench.path("r/live.json")).unwrap_or_default();
        let live: Value = serde_json::from_str(&live).unwrap_or_default();
        matches!(live["phase"].as_str(), Some("warmup" | "measure"))
    });
    let slow = DiskThrottle::new(disk.device(), 60).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap());
    drop(slow);
    let document = finished.expect(0).json();
    let causes = document["analysis"]["verdict"]["causes"].as_array().unwrap();
    let names: Vec<&str> = causes.iter().map(|cause| cause["cause"].as_str().unwrap()).collect();
    // Other programs on this machine can also be a cause, even the main one.
    let strangers = ["noisy_neighbour", "cpu_stolen"];
    let first = names.iter().find(|name| !strangers.contains(name));
    assert_eq!(first, Some(&"disk_operations"), "{causes:#?}");
    lab.assert_clean();
}

/// Runs must work with servers that the test kit did not start.
#[test]
fn run_uses_a_mongod_that_is_already_running() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let server: TestServer = server;
    let bench = Bench::new();
    let uri = server.uri();
    let small = ["--records", "300", "--operations", "200", "--warmup", "0s"];
    let run = [&["run", "a", "--uri", &uri, "--format", "json"][..], &small].concat();
    let document = bench.dyno(&run).expect(0).json();
    assert_sound(&document);
    let settings = &document["server"]["settings"];
    for (name, value) in [
        ("parameter.journalCommitInterval", "100"),
        ("parameter.diagnosticDataCollectionPeriodMillis", "1000"),
    ] {
        assert_eq!(settings[name], value, "{settings}");
    }
    assert!(settings["parameter.syncdelay"].is_string(), "{settings}");
}

/// A short run of workload `a` on running servers.
fn hosted_run(lab: &Lab, uri: &str, backend: &str) -> Finished {
    let fixed = ["run", "a", "--uri", uri, "--backend", backend, "--format", "json"];
    let small = ["--records", "300", "--operations", "200", "--clients", "2", "--warmup", "0s"];
    lab.bench.dyno(&[&fixed[..], &small].concat())
}

#[test]
fn certificate_is_the_only_credential_of_whole_runs() {
    let Some(lab) = Lab::new() else { return };
    let mutual = "server.encryption=mutual";
    lab.start(&["--topology", "replica-set=1", "--auth", "--set", mutual]);
    let (target, _) = dyno_plan::uri::parse(&lab.uri()).unwrap();
    let uri = dyno_plan::uri::with_option(&target.to_string(), "authMechanism", "MONGODB-X509");
    hosted_run(&lab, &uri, "wire").expect(3).says("does not accept the client certificate");
    let roles = doc! { "role": "root", "db": "admin" };
    let user = doc! { "createUser": "CN=dyno client,O=dyno clients", "roles": [roles] };
    control(&lab.uri()).run("$external", user).unwrap();
    for backend in ["wire", "driver"] {
        let document = hosted_run(&lab, &uri, backend).expect(0).json();
        assert_sound(&document);
        assert_eq!(measure(&document)["failed"], 0, "{backend}");
        // The members are watched by connections of their own.
        assert!(document["server"]["settings"]["parameter.syncdelay"].is_string(), "{document}");
    }
    let doctor = lab.bench.dyno(&["doctor", "--uri", &uri, "--format", "json"]).json();
    assert!(doctor.to_string().contains("free_connections"), "{doctor}");
}

#[test]
fn connection_string_of_a_host_works_unchanged() {
    let Some(lab) = Lab::new() else { return };
    lab.start(&["--topology", "replica-set=1", "--auth", "--tls"]);
    let (target, credentials) = dyno_plan::uri::parse(&lab.uri()).unwrap();
    let credentials = credentials.unwrap();
    // Atlas, without SRV, and options that other hosts add.
    let uri = format!(
        "mongodb://{}:{}@{}/?ssl=true&replicaSet=dyno&authSource=admin&retryWrites=true&w=majority&readPreference=primary&retryReads=true&compressors=zstd,snappy&maxIdleTimeMS=120000&appName=Cluster0&tlsInsecure=true",
        credentials.username,
        credentials.password(),
        target.hosts[0],
    );
    for backend in ["wire", "driver"] {
        let finished = hosted_run(&lab, &uri, backend).expect(0);
        let ignored = finished.stderr.contains("`maxIdleTimeMS=120000`");
        assert_eq!(ignored, backend == "wire", "{}", finished.stderr);
        let document = finished.json();
        assert_sound(&document);
        assert_eq!(measure(&document)["failed"], 0, "{backend}");
        let concern = document["server"]["write_concern"].to_string();
        assert!(concern.contains("majority"), "{concern}");
    }
}

/// Makes the next `times` updates fail by `failCommand`; 0 turns it off.
fn fail_updates(control: &mut Control, times: i32, data: Document) {
    let mode = match times {
        0 => Bson::from("off"),
        times => doc! { "times": times }.into(),
    };
    let mut fail = doc! { "failCommands": ["update"] };
    fail.extend(data);
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": fail };
    control.run("admin", command).unwrap();
}

#[test]
fn retryable_writes_of_a_set_are_applied_once_and_counted() {
    let Some(lab) = Lab::new() else { return };
    let parameter = "server.parameters.enableTestCommands=1";
    lab.start(&["--topology", "replica-set=1", "--set", parameter]);
    let uri = lab.uri();
    let mut admin = control(&uri);
    let run = |is_retried: bool| {
        let uri = match is_retried {
            true => dyno_plan::uri::with_option(&uri, "retryWrites", "true"),
            false => uri.clone(),
        };
        let fixed = ["run", "a", "--uri", &uri, "--records", "300", "--clients", "1"];
        let rest = ["--operations", "200", "--warmup", "0s", "--format", "json"];
        let finished = lab.bench.dyno(&[&fixed[..], &rest].concat());
        let document = finished.json();
        let phase = measure(&document);
        let count = |key: &str| phase[key].as_u64().unwrap();
        (count("failed"), count("retries"), count("reconnects"))
    };
    run(false);
    fail_updates(&mut admin, 3, doc! { "errorCode": 91 });
    // The first two failures hit both attempts of one update, the third one hits the next update.
    assert_eq!(run(true), (1, 2, 2));
    fail_updates(&mut admin, 1, doc! { "closeConnection": true });
    assert_eq!(run(true), (0, 1, 1));
    // The server performs the write, and reports that it could not be replicated.
    let concern = doc! { "code": 91, "errmsg": "shutting down" };
    fail_updates(&mut admin, 1, doc! { "writeConcernError": concern });
    assert_eq!(run(true), (0, 1, 1));
    fail_updates(&mut admin, 1, doc! { "errorCode": 91 });
    assert_eq!(run(false), (1, 0, 0));
}
