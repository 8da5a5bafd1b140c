//! Actions that the program must not take on data and processes of others: overwrite, remove, end, disclose.

use crate::common::{
    Bench, Finished, Responder, control, names, reads, wait_for, wait_for_windows,
};
use bson::{Document, doc};
use dyno_load::prepare::estimated_count;
use dyno_plan::model::DataPlan;
use dyno_testkit::{TestServer, embedded, mongod, or_skip};
use std::path::Path;
use std::process::{Command, Stdio};

/// Names of the files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let found = Command::new("grep")
        .args(["--recursive", "--files-with-matches", "--fixed-strings"])
        .arg(text)
        .arg(folder)
        .output()
        .unwrap();
    let lines = String::from_utf8(found.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn one_of_two_runs_with_the_same_folder_is_recorded() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    for number in 0..5 {
        let out = format!("r{number}");
        let more = ["--rate", "20", "--clients", "1", "--duration", "300ms", "--out", &out];
        let both = [(); 2].map(|()| bench.spawn(&reads(&uri, &more)));
        let ended = both.map(|child| Finished::from(child.wait_with_output().unwrap()));
        let codes = ended.each_ref().map(|one| one.code);
        assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{ended:?}");
        bench.dyno(&["report", &out]).expect(0);
    }
}

#[test]
fn secrets_of_commands_and_exporters_are_in_no_file() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = [
        "--trace",
        "true --uri mongodb://u:s3cr3t@h/ password=s3cr3t --token s3cr3t",
        "--exporter",
        "http://127.0.0.1:1/metrics?token=s3cr3t",
        "--rate",
        "20",
        "--duration",
        "1s",
        "--format",
        "json",
        "--out",
        "r",
    ];
    let arguments = reads(&uri, &more);
    let run = bench.dyno(&arguments);
    assert!(bench.path("r/run.json").exists(), "{run:?}");
    let dry = bench.dyno(&[&arguments[..], &["--dry-run"]].concat());
    for shown in [&run.stdout, &run.stderr, &dry.stdout, &dry.stderr] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
    assert!(dry.stdout.contains("mongodb://***@h/"), "{}", dry.stdout);
    assert_eq!(files_with(&bench.path("r"), "s3cr3t"), Vec::<String>::new());
}

#[test]
fn a_sweep_over_commands_records_no_secret() {
    let bench = Bench::new();
    let set = r#"traces=[];[{name="t",command=["true","password=s3cr3t"]}]"#;
    let refused = bench.dyno(&[
        "sweep",
        "read",
        "--uri",
        "mongodb://127.0.0.1:1",
        "--set",
        set,
        "--out",
        "s",
    ]);
    let refused = refused.expect(2).says("`traces`").says("secret");
    assert!(!refused.stderr.contains("s3cr3t"), "{}", refused.stderr);
    assert!(!bench.path("s").exists());
}

#[test]
fn traces_do_not_inherit_secret_variables() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let more = ["--trace", "env", "--duration", "1s", "--rate", "20"];
    let mut arguments = reads("", &more);
    let place = arguments.iter().position(|word| *word == "--uri").unwrap();
    arguments.drain(place..place + 2);
    arguments.extend(["--out", "r"]);
    let run = bench
        .command(&arguments)
        .env("DYNO_URI", responder.uri())
        .env("DYNO_METRICS_TOKEN", "0123456789abcdef")
        .env("DYNO_REDIS", "redis://:s3cr3t@h")
        .output()
        .unwrap();
    Finished::from(run).expect(0);
    let folder = bench.path("r/traces");
    assert!(!files_with(&folder, "DYNO_CLIENT_PID").is_empty());
    for secret in ["DYNO_URI", "DYNO_METRICS_TOKEN", "DYNO_REDIS"] {
        assert_eq!(files_with(&folder, secret), Vec::<String>::new());
    }
}

#[test]
fn stop_signals_only_a_process_that_measures() {
    let bench = Bench::new();
    let folder = bench.path("r");
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(bench.path("other")).unwrap();
    let mut victim = Command::new("flock")
        .args(["--no-fork", "other", "sleep", "60"])
        .current_dir(bench.folder.path())
        .spawn()
        .unwrap();
    // A folder that another program has locked.
    let state = format!(
        r#"{{"name": "a", "directory": "{}", "process": {}, "started_at": "", "phase": null, "elapsed_s": 0.0,
            "planned_s": null, "planned_operations": null, "done": 0, "failed": 0, "rate_per_s": 0.0,
            "response_p50_us": null, "response_p99_us": null, "timeline_per_s": [], "notices": ["a\u001b]0;b\u0007"]}}"#,
        bench.path("other").display(),
        victim.id()
    );
    std::fs::write(folder.join("live.json"), state).unwrap();
    let mut holder = Command::new("flock")
        .args(["--exclusive", "r", "sh", "-c", "echo locked; exec sleep 60"])
        .current_dir(bench.folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the lock", || bench.dyno(&["status", "r"]).code == Some(0));
    let shown = bench.dyno(&["status", "r"]).expect(0).stdout;
    assert!(!shown.contains(['\x1b', '\x07']), "{shown:?}");
    bench.dyno(&["stop", "r"]).expect(3).says(&format!("process {}", victim.id()));
    assert!(victim.try_wait().unwrap().is_none());
    for child in [&mut victim, &mut holder] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A collection with customer data is dropped only when it is named explicitly, and the record lists the dropped data.
fn customers_survive(server: &TestServer) {
    let (bench, uri) = (Bench::new(), server.uri());
    let mut control = control(&uri);
    let customer = |number| doc! { "_id": format!("customer{number}"), "name": "Ann" };
    let customers: Vec<Document> = (0..500).map(customer).collect();
    let insert = doc! { "insert": "usertable", "documents": customers };
    control.run("prod", insert).unwrap();
    let data = DataPlan { database: "prod".into(), ..DataPlan::default() };
    let mut documents = || estimated_count(&mut control, &data).unwrap();
    let fresh = "base = \"a\"\n[data]\nfresh = \"collection\"\n";
    std::fs::write(bench.path("fresh.toml"), fresh).unwrap();
    let run = |plan, more: &[&str]| {
        let small = ["--records", "300", "--operations", "200", "--warmup", "0s"];
        let place = ["--uri", &uri, "--set", "data.database=prod", "--out", "r"];
        bench.dyno(&[&["run", plan][..], &small, &place, more].concat())
    };
    for (plan, more) in [("a", &["--fresh"][..]), ("fresh.toml", &[])] {
        run(plan, more)
            .expect(3)
            .says("`prod.usertable`")
            .says("500 documents")
            .says("`-p table=NAME`")
            .says("`--drop-foreign`");
        assert_eq!(documents(), 500, "{plan}");
        assert!(!bench.path("r").exists(), "{plan}");
    }
    let own_word = ["--fresh", "--drop-foreign", "--format", "json"];
    let dropped =
        run("a", &own_word).expect(0).says("warning: ").says("`prod.usertable`").json()["dropped"]
            .take();
    assert_eq!(dropped.as_array().unwrap().len(), 1, "{dropped}");
    assert_eq!(dropped[0]["namespace"], "prod.usertable");
    assert_eq!(dropped[0]["documents"], 500);
    let key = dropped[0]["foreign_key"].as_str().unwrap();
    assert!(key.starts_with("customer"), "{key}");
    assert_eq!(documents(), 300);
    let report = bench.dyno(&["report", "r", "--format", "markdown"]).expect(0);
    assert!(report.stdout.contains("prod.usertable: 500 documents"));
    // The benchmark's own documents need no confirmation.
    std::fs::remove_dir_all(bench.path("r")).unwrap();
    let again = run("a", &["--fresh", "--format", "json"]).expect(0).json();
    let own = &again["dropped"][0];
    assert_eq!(own["namespace"], "prod.usertable");
    assert_eq!(own["documents"], 300);
    assert_eq!(own.get("foreign_key"), None);
}

/// A random sample of a hundred documents most likely misses a key that a scan of all keys shows.
#[test]
fn one_foreign_key_among_many_refuses_a_fresh_start() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let (bench, uri) = (Bench::new(), server.uri());
    let mut control = control(&uri);
    let own = (0..20_000).map(|number| doc! { "_id": format!("user{number}"), "field0": "x" });
    let foreign = std::iter::once(doc! { "_id": "user3000-I", "field0": "x" });
    let all: Vec<Document> = own.chain(foreign).collect();
    let insert = doc! { "insert": "usertable", "documents": all };
    control.run("prod", insert).unwrap();
    let place = ["--uri", &uri, "--set", "data.database=prod", "--out", "r"];
    let run = |more: &[&str]| {
        let run =
            ["run", "a", "--records", "300", "--operations", "200", "--warmup", "0s", "--fresh"];
        bench.dyno(&[&run[..], &place, more].concat())
    };
    run(&[]).expect(3).says("`user3000-I`");
    let delete =
        doc! { "delete": "usertable", "deletes": [{ "q": { "_id": "user3000-I" }, "limit": 1 }] };
    control.run("prod", delete).unwrap();
    let record = run(&["--format", "json"]).expect(0).json();
    assert_eq!(record["dropped"][0]["all_keys_checked"], true);
    assert_eq!(record["dropped"][0]["documents"], 20_000);
}

#[test]
fn fresh_start_keeps_foreign_documents_on_embedded() {
    if let Some(server) = or_skip(embedded()) {
        customers_survive(&server);
    }
}

#[test]
fn fresh_start_keeps_foreign_documents_on_mongod() {
    if let Some(server) = or_skip(mongod()) {
        customers_survive(&server);
    }
}

#[test]
fn report_overwrites_a_file_only_with_force() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    bench.dyno(&reads(&responder.uri(), &["--operations", "100", "--out", "r"])).expect(0);
    let before = std::fs::read(bench.path("r/run.json")).unwrap();
    bench.dyno(&["report", "r", "-o", "r/run.json"]).expect(2).says("`r/run.json`").says("--force");
    assert_eq!(std::fs::read(bench.path("r/run.json")).unwrap(), before);
    bench.dyno(&["report", "r", "-o", "text"]).expect(0);
    bench.dyno(&["report", "r", "-o", "text", "--force"]).expect(0);
}

#[test]
fn control_characters_of_a_name_are_made_visible() {
    let bench = Bench::new();
    let name = "a\x1b]0;b\x07";
    let ended = bench.dyno(&["report", name]).expect(2);
    assert!(!ended.stderr.contains(['\x1b', '\x07']), "{:?}", ended.stderr);
    assert!(ended.stderr.contains("a\\u{1b}]0;b\\u{7}"), "{}", ended.stderr);
}

#[test]
fn running_run_can_be_read_and_keeps_its_folder() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = ["--rate", "100", "--duration", "10m", "--out", "r"];
    let mut child = bench.spawn(&reads(&uri, &more));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    bench.dyno(&["report", "r"]).expect(0);
    bench.dyno(&reads(&uri, &more)).expect(2).says("`r`").says("`--out`");
    bench.dyno(&["stop", "r"]).expect(0);
    Finished::from(child.wait_with_output().unwrap()).expect(130);
}

#[test]
fn experiment_resumes_once_its_secret_is_restored() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let mut sweep = reads(&uri, &["--duration", "300ms", "--out", "x"]);
    let command = r#"["true", "--password", "s3cr3t"]"#;
    let text = format!("base = \"read\"\n[[traces]]\nname = \"a\"\ncommand = {command}\n");
    std::fs::write(bench.path("p.toml"), text).unwrap();
    (sweep[0], sweep[1]) = ("sweep", "p.toml");
    sweep.extend(["--clients", "1,2"]);
    bench.dyno(&sweep).expect(0);
    assert_eq!(files_with(&bench.path("x"), "s3cr3t"), Vec::<String>::new());
    let first = format!("runs/{}", names(&bench.path("x/runs"))[0]);
    let folder = bench.path("x").join(&first);
    std::fs::remove_dir_all(&folder).unwrap();
    let resume = ["resume", "x", "--uri", &uri];
    bench.dyno(&resume).expect(2).says("`***`");
    let plan = bench.path("x/plan.toml");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"***\"", "\"s3cr3t\"")).unwrap();
    bench.dyno(&resume).expect(0).says(&format!("`{first}`"));
    assert!(folder.is_dir());
}
