//! Every kind of document reports other processes that used its machine.

use dyno_record::Document as _;
use dyno_record::experiment::Experiment;
use dyno_record::model::Environment;
use dyno_record::statement::Statement;
use dyno_results::run::find_caveats;
use dyno_results::{AnalysedIndexBuild, AnalysedMessages, AnalysedTrace, TraceOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Documents with their own conditions. Their crates test history, comparison and selfcheck.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Run,
    Experiment,
    IndexBuild,
    Messages,
    Trace,
}

const ALL: [Kind; 5] = [Kind::Run, Kind::Experiment, Kind::IndexBuild, Kind::Messages, Kind::Trace];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden")
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(golden().join(path)).expect("it is there");
    serde_json::from_str(&text).expect("it is JSON")
}

fn write(path: &Path, document: &Value) {
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("there is room");
    fs::write(path, document.to_string()).expect("there is room");
}

/// A machine with this level in its check for other processes.
fn machine(level: &str) -> Value {
    let environment = serde_json::to_value(Environment::default()).expect("it is plain data");
    let mut environment = environment;
    environment["doctor"] = json!([{
        "check": "other_load",
        "level": level,
        "found": "others use 60 % of 2 CPUs",
        "advised": "an idle machine",
        "why": "they take CPU time",
    }]);
    environment
}

/// Caveats of a golden document of this kind on such a machine.
fn caveats(kind: Kind, level: &str) -> Vec<Statement> {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    let with_machine = |path: &str| {
        let mut document = read(path);
        document["environment"] = machine(level);
        document
    };
    let run_in = |folder: &Path| {
        for file in ["latency.hlog", "plan.toml"] {
            fs::create_dir_all(folder.join("series")).expect("there is room");
            fs::copy(golden().join("v1").join(file), folder.join(file)).expect("it is there");
        }
        for file in ["intervals.csv", "operations.csv", "errors.csv", "sub-second.csv"] {
            let file = Path::new("series").join(file);
            fs::copy(golden().join("v1").join(&file), folder.join(file)).expect("it is there");
        }
        write(&folder.join("run.json"), &with_machine("v1/run.json"));
        let mut run = dyno_results::run::open(folder).expect("it is a run");
        find_caveats(&mut run, Vec::new());
        run.document.write(folder).expect("there is room");
        run.document.caveats
    };
    match kind {
        Kind::Run => run_in(folder).into_iter().map(|one| one.statement).collect(),
        Kind::Experiment => {
            write(&folder.join("experiment.json"), &read("experiments/suite.json"));
            let mut experiment = Experiment::read(folder).expect("it is an experiment");
            for point in &experiment.points {
                run_in(&folder.join(&point.directory));
            }
            dyno_results::experiment::conclude(&mut experiment, folder);
            experiment.caveats.into_iter().map(|one| one.statement).collect()
        }
        Kind::IndexBuild => {
            write(&folder.join("index-build.json"), &with_machine("index-build.json"));
            let found = AnalysedIndexBuild::open(folder).expect("it is an index build");
            found.document.caveats.into_iter().map(|one| one.statement).collect()
        }
        Kind::Messages => {
            write(&folder.join("tail.json"), &with_machine("tail.json"));
            AnalysedMessages::open(folder).expect("it is one").document.caveats
        }
        Kind::Trace => {
            for file in fs::read_dir(golden().join("io-trace-v1")).expect("it is there") {
                let file = file.expect("it is there").path();
                let name = file.file_name().expect("it is a file");
                fs::copy(&file, folder.join(name)).expect("there is room");
            }
            write(&folder.join("trace.json"), &with_machine("io-trace-v1/trace.json"));
            let found = AnalysedTrace::open(folder, &TraceOptions::default());
            found
                .expect("it is a trace")
                .document
                .caveats
                .into_iter()
                .map(|one| one.statement)
                .collect()
        }
    }
}

#[test]
fn runs_that_cannot_be_read_are_named_with_a_reason() {
    let folder = tempfile::tempdir().expect("there is room");
    let folder = folder.path();
    write(&folder.join("experiment.json"), &read("experiments/suite.json"));
    let experiment = Experiment::read(folder).expect("it is an experiment");
    let found = dyno_results::experiment::conditions(&experiment, folder);
    assert!(found.known.is_empty(), "{:?}", found.known);
    let done = experiment.points.iter();
    let done = done.filter(|point| point.figures.is_some());
    let expected: Vec<&String> = done.map(|point| &point.directory).collect();
    let unread: Vec<&String> = found.unread.iter().map(|(name, _)| name).collect();
    assert_eq!(unread, expected);
    assert!(!unread.is_empty());
    assert!(found.unread.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn other_load_is_a_caveat_of_every_document() {
    let is_of_others = |said: &Statement| {
        let text = serde_json::to_string(said).expect("it is plain data");
        text.contains("check-fails") && text.contains("other_load")
    };
    for kind in ALL {
        let found = caveats(kind, "fail");
        assert!(found.iter().any(is_of_others), "{kind:?}: {found:?}");
        let found = caveats(kind, "warn");
        assert!(!found.iter().any(is_of_others), "{kind:?}: {found:?}");
    }
}
