//! Checks the workspace's dependencies, as cargo reports them, against the architecture's table.

use std::process::Command;

use serde_json::Value;

/// Crates that measure, with their input and output formats.
const MEASURING: &[&str] = &["load", "observe", "plan", "record", "servers", "trace", "wire"];

/// Crates that read measured results.
const ANALYSING: &[&str] = &["analyze", "results"];

/// All crates that the program may use: neither test crates nor programs.
const PRODUCT: &[&str] = &[
    "analyze",
    "engine",
    "fleet",
    "index-build",
    "load",
    "observe",
    "pictures",
    "plan",
    "record",
    "report",
    "results",
    "servers",
    "tail",
    "trace",
    "wire",
];

/// A crate and the crates that it may use. Test dependencies are not limited.
const MAY_USE: &[(&str, &[&[&str]])] = &[
    // Plans and the protocol depend on nothing, so that each half of a measurement can be used without the other.
    ("plan", &[]),
    // A record has its plan.
    ("record", &[&["plan"]]),
    ("wire", &[]),
    // Crates that measure.
    ("servers", &[&["plan", "record", "wire"]]),
    ("load", &[&["plan", "record", "wire"]]),
    ("observe", &[&["plan", "record"]]),
    ("trace", &[&["plan", "record"]]),
    // Crates that analyse: the record is their only link to the crates that measure.
    ("analyze", &[&["record"]]),
    ("results", &[&["analyze", "plan", "record"]]),
    ("report", &[&["analyze", "plan", "record", "results"]]),
    ("pictures", &[&["report"]]),
    // Crates that orchestrate, without messages and pages.
    ("engine", &[MEASURING, ANALYSING]),
    ("fleet", &[MEASURING, ANALYSING, &["engine"]]),
    ("index-build", &[MEASURING, ANALYSING, &["engine"]]),
    // The crate that interprets messages opens the results, because they use the record's format.
    ("tail", &[MEASURING, ANALYSING, &["engine", "fleet"]]),
    // Programs.
    ("cli", &[PRODUCT, &["driver-wire"]]),
    ("driver-rust", &[]),
    ("driver-wire", &[&["load", "plan", "wire"]]),
    // Tests and benchmarks; delivered crates must not use them.
    ("testkit", &[&["load", "plan", "record", "servers", "wire"]]),
    ("bench", &[PRODUCT, &["testkit"]]),
    ("fuzz", &[PRODUCT]),
];

/// Dependencies that violate the table.
fn violations(edges: &[(String, Option<String>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, used) in edges {
        let row = MAY_USE.iter().find(|(listed, _)| listed == name);
        match (row, used) {
            (None, _) => found.push(format!("`{name}` is missing in the table")),
            (Some((_, allowed)), Some(used)) => {
                if !allowed.concat().contains(&used.as_str()) {
                    found.push(format!("`{name}` may not use `{used}`"));
                }
            }
            (Some(_), None) => {}
        }
    }
    found.dedup();
    found
}

/// Workspace crates, each paired with one workspace crate that it uses outside of tests; a crate without such dependencies
/// appears once with `None`.
fn edges() -> Vec<(String, Option<String>)> {
    let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline"];
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();

    let mut edges = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = short_name(package);
        edges.push((name.clone(), None));
        for dependency in package["dependencies"].as_array().unwrap() {
            if !dependency["path"].is_null() && dependency["kind"] != "dev" {
                edges.push((name.clone(), Some(short_name(dependency))));
            }
        }
    }
    edges
}

fn short_name(package: &Value) -> String {
    match package["name"].as_str().unwrap() {
        "mongodyno" => "cli".to_owned(),
        name => name.trim_start_matches("dyno-").to_owned(),
    }
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let edges = edges();
    assert!(edges.contains(&("cli".to_owned(), Some("plan".to_owned()))));
    assert_eq!(violations(&edges), Vec::<String>::new());
}

#[test]
fn dependency_missing_from_the_table_is_found() {
    let edge = |name: &str, used: &str| (name.to_owned(), Some(used.to_owned()));
    let edges = [
        edge("cli", "report"),
        edge("engine", "report"),
        edge("analyze", "load"),
        edge("cli", "testkit"),
        edge("utils", "plan"),
    ];
    let expected = [
        "`engine` may not use `report`",
        "`analyze` may not use `load`",
        "`cli` may not use `testkit`",
        "`utils` is missing in the table",
    ];
    assert_eq!(violations(&edges), expected);
}
