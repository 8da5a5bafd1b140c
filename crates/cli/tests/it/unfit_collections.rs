//! Collections that refuse or drop loaded documents, on a real `mongod`: the program names the collection and the reason.

use crate::common::{Bench, control, names};
use bson::{Document, doc};
use dyno_testkit::{TestServer, mongod, or_skip};
use serde_json::Value;
use std::path::{Path, PathBuf};

const RUN: [&str; 8] = ["run", "c", "--records", "500", "--operations", "100", "--warmup", "0s"];

/// Creates the plan's collection with these options in a separate database. Returns its connection string.
fn collection(server: &TestServer, database: &str, options: Document) -> String {
    let mut create = doc! { "create": "usertable" };
    create.extend(options);
    control(&server.uri()).run(database, create).unwrap();
    format!("mongodb://{}/{database}", server.address())
}

/// The folder of the only run.
fn only_run(bench: &Bench) -> PathBuf {
    let folder = bench.path("runs");
    folder.join(&names(&folder)[0])
}

/// The load phase in its record.
fn load_phase(run: &Path) -> Value {
    let text = std::fs::read(run.join("run.json")).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    document["phases"][0].clone()
}

#[test]
fn run_names_views_and_time_series_it_cannot_load() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let view = doc! { "viewOn": "other", "pipeline": [] };
    let series = doc! { "timeseries": { "timeField": "ts" } };
    for (database, options, kind) in
        [("v1", view, "view"), ("v2", series, "time series collection")]
    {
        let uri = collection(&server, database, options);
        let bench = Bench::new();
        bench
            .dyno(&[&RUN[..], &["--uri", &uri]].concat())
            .expect(3)
            .says(&format!("`{database}.usertable`"))
            .says(kind);
    }
}

#[test]
fn failed_load_keeps_the_text_of_the_server() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let validator = doc! { "validator": { "$jsonSchema": { "required": ["must"] } } };
    let uri = collection(&server, "v3", validator);
    for backend in ["wire", "driver"] {
        let bench = Bench::new();
        bench
            .dyno(&[&RUN[..], &["--uri", &uri, "--backend", backend]].concat())
            .expect(3)
            .says("DocumentValidationFailure (121): Document failed validation");
        let run = only_run(&bench);
        let example = &load_phase(&run)["error_examples"]["server_121"];
        assert_eq!(example["code"], 121);
        assert_eq!(example["code_name"], "DocumentValidationFailure");
        assert_eq!(example["message"], "Document failed validation");
        let shown = bench.dyno(&["report", run.to_str().unwrap()]).stdout;
        assert!(shown.contains("Document failed validation"), "{shown}");
    }
}

#[test]
fn capped_collections_that_drop_documents_are_named() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let uri = collection(&server, "v4", doc! { "capped": true, "size": 100_000 });
    let bench = Bench::new();
    let url = format!("mongodb.url={uri}");
    let fixed = ["ycsb", "load", "mongodb", "-p", "workload=site.ycsb.workloads.CoreWorkload"];
    bench
        .dyno(&[&fixed[..], &["-p", "recordcount=500", "-p", &url]].concat())
        .expect(1)
        .says("capped")
        .says("`v4.usertable`");
    for _ in 0..2 {
        bench
            .dyno(&[&RUN[..], &["--uri", &uri]].concat())
            .expect(3)
            .says("capped")
            .says("`v4.usertable`");
    }
}
