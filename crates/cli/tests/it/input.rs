//! Bad input, and commands that do not need a server: one clear error, the right exit code, nothing left.

use crate::common::{Bench, Finished};
use std::process::Stdio;

/// Checks that the arguments are refused as bad input and leave nothing.
#[track_caller]
fn refused(arguments: &[&str]) -> Finished {
    let bench = Bench::new();
    let finished = bench.dyno(arguments).expect(2);
    assert_eq!(finished.stdout, "", "an error must not print data");
    assert_eq!(bench.entries(), Vec::<String>::new(), "the refused command left files");
    finished
}

#[test]
fn an_unknown_workload_names_the_nearest_one() {
    refused(&["run", "90read10updates"]).says("error: ").says("hint: ").says("`90read10update`");
}

#[test]
fn status_refuses_a_path_that_does_not_exist() {
    refused(&["status", "nowhere"]).says("error: ").says("`nowhere`").says("hint: ");
}

#[test]
fn an_unreadable_plan_is_one_error() {
    refused(&["run", "."]).says("error: ").says("caused by: ");
}

#[test]
fn all_problems_of_a_plan_file_are_reported_with_their_places() {
    let bench = Bench::new();
    std::fs::write(bench.path("plan.toml"), "[client]\nclinets = 3\nbatch = \"x\"\n").unwrap();
    bench.dyno(&["run", "plan.toml"]).expect(2).says("clinets").says("line 2").says("line 3");
    assert_eq!(bench.entries(), ["plan.toml"]);
}

#[test]
fn an_unknown_property_names_the_nearest_one() {
    refused(&["run", "a", "-p", "recordcuont=5"]).says("recordcuont").says("recordcount");
    refused(&["ycsb", "run", "mongodb", "-p", "recordcuont=5"])
        .says("recordcuont")
        .says("recordcount");
}

#[test]
fn values_out_of_range_are_refused_together() {
    refused(&["run", "a", "--clients", "0", "--tolerate-errors", "2"])
        .says("clients")
        .says("tolerated");
    refused(&["run", "a", "--tolerate-errors", "150%"])
        .says("`client.tolerated_error_ratio`")
        .says("`1.5`");
    refused(&["run", "a", "--tolerate-errors", "few"]).says("`0.01`");
    refused(&["run", "a", "--schedule", "poisson"]).says("`--rate`");
}

#[test]
fn a_connection_string_that_is_wrong_does_not_show_its_password() {
    for uri in [
        "http://me:secret@host",
        "mongodb://me:secret@host/?readPref=primary",
        "mongodb://me:sec@ret@host",
    ] {
        let finished = refused(&["run", "a", "--uri", uri]);
        assert!(
            !finished.stderr.contains("secret") && !finished.stderr.contains("sec@ret"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn unsupported_connection_string_options_are_refused_by_name() {
    refused(&["run", "a", "--uri", "mongodb://localhost:1/?readPreference=secondary"])
        .says("readPreference");
}

#[test]
fn misplaced_connection_string_does_not_show_its_password() {
    for arguments in [
        &["run", "a", "-p", "mongodb://u:s3cret@h/x"][..],
        &["run", "a", "mongodb://u:s3cret@h/x"],
        &["ycsb", "run", "mongodb", "-p", "mongodb.url=u:s3cret@h/x"],
        &["ycsb", "run", "mongodb", "-p", "mongodb.passwrd=s3cret"],
    ] {
        let finished = refused(arguments);
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
}

#[test]
fn time_series_finer_than_the_windows_is_refused() {
    refused(&[
        "ycsb",
        "run",
        "mongodb",
        "-p",
        "recordcount=10",
        "-p",
        "operationcount=10",
        "-p",
        "measurementtype=timeseries",
        "-p",
        "timeseries.granularity=50",
    ])
    .says("`timeseries.granularity=50`");
}

#[test]
fn problems_of_form_and_of_range_are_reported_together() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("bad.toml"),
        "name = \"x\"\n[data]\nrecords = \"many\"\nfield_count = 0\n[client]\nclients = 0\nclint = 1\n",
    )
    .unwrap();
    let finished = bench.dyno(&["run", "bad.toml"]).expect(2);
    for line in ["line 3", "line 4", "line 6", "line 7"] {
        assert!(finished.stderr.contains(line), "{line} {}", finished.stderr);
    }
}

#[test]
fn clap_errors_are_bad_input() {
    refused(&["run"]);
    refused(&["run", "a", "--unknown"]).says("--unknown");
    refused(&["dance"]);
}

#[test]
fn the_shell_of_ycsb_is_refused_by_name() {
    refused(&["ycsb", "shell", "mongodb"]).says("`shell`").says("hint: ");
}

#[test]
fn loading_into_a_temporary_server_is_refused() {
    refused(&["load", "a"]).says("--data-dir");
}

#[test]
fn a_report_needs_a_run() {
    refused(&["report", "."]).says("`run.json`").says("hint: ");
    refused(&["report", "no-such-folder"]).says("`no-such-folder`");
}

#[test]
fn broken_documents_of_every_kind_are_bad_input() {
    for file in ["run.json", "experiment.json", "index-build.json", "tail.json", "trace.json"] {
        let bench = Bench::new();
        std::fs::write(bench.path(file), "{").unwrap();
        bench.dyno(&["report", "."]).expect(2).says(&format!("`./{file}`")).says("hint: ");
    }
}

#[test]
fn dry_run_prints_a_plan_that_reproduces_itself() {
    let bench = Bench::new();
    let arguments = [
        "run",
        "b",
        "--records",
        "7",
        "--rate",
        "500",
        "--seed",
        "3",
        "--threads",
        "2",
        "--dry-run",
    ];
    let first = bench.dyno(&arguments).expect(0);
    assert!(bench.entries().is_empty());
    std::fs::write(bench.path("again.toml"), &first.stdout).unwrap();
    let second = bench.dyno(&["run", "again.toml", "--dry-run"]).expect(0);
    assert_eq!(first.stdout, second.stdout);
    let first = first.says("loads 7 documents").says("takes about 36 seconds");
    let plan: toml::Table = first.stdout.parse().unwrap();
    assert_eq!(plan["data"]["records"].as_integer(), Some(7));
    assert_eq!(plan["schedule"]["kind"].as_str(), Some("constant"));
}

#[test]
fn a_dry_run_does_not_show_credentials() {
    let bench = Bench::new();
    let finished =
        bench.dyno(&["run", "a", "--uri", "mongodb://me:secret@host/db", "--dry-run"]).expect(0);
    assert!(
        !finished.stdout.contains("secret") && !finished.stdout.contains("me:"),
        "{}",
        finished.stdout
    );
    assert!(finished.stdout.contains("mongodb://host"), "{}", finished.stdout);
}

#[test]
fn the_address_can_come_from_the_environment() {
    let bench = Bench::new();
    let output = bench
        .command(&["run", "a", "--dry-run"])
        .env("DYNO_URI", "mongodb://me:secret@there/")
        .output();
    let finished = Finished::from(output.unwrap()).expect(0);
    assert!(finished.stdout.contains("mongodb://there"), "{}", finished.stdout);
    let output =
        bench.command(&["run", "--help"]).env("DYNO_URI", "mongodb://me:secret@there/").output();
    assert!(!Finished::from(output.unwrap()).expect(0).stdout.contains("secret"));
}

#[test]
fn usage_omits_the_state_folder_of_the_environment() {
    // Each test has `DYNO_STATE_DIR`.
    let refused = Bench::new().dyno(&["run"]).expect(2).says("Usage: ");
    assert!(!refused.stderr.contains("--state-dir"), "{}", refused.stderr);
}

#[test]
fn help_version_completions_and_manual_are_data() {
    let bench = Bench::new();
    assert!(bench.dyno(&["--help"]).expect(0).stdout.contains("Exit status"));
    assert!(bench.dyno(&["--version"]).expect(0).stdout.starts_with("dyno "));
    assert!(bench.dyno(&["ycsb", "--help"]).expect(0).stdout.contains("-threads N"));
    assert!(bench.dyno(&["completions", "bash"]).expect(0).stdout.contains("_dyno"));
    assert!(bench.dyno(&["man"]).expect(0).stdout.contains(".TH dyno 1"));
    bench.dyno(&["man", "--out", "man"]).expect(0);
    assert!(crate::common::names(&bench.path("man")).contains(&"dyno-run.1".to_owned()));
}

#[test]
fn closed_standard_output_is_not_an_error() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let finished = Finished::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(finished.stderr, "");
}

#[test]
fn every_option_of_a_run_is_documented() {
    let bench = Bench::new();
    let help = bench.dyno(&["run", "--help"]).expect(0).stdout;
    let project = dyno_testkit::project_dir();
    let documents: String = [
        "README.md",
        "docs/commands.md",
        "docs/plans.md",
        "docs/measuring.md",
        "docs/ycsb.md",
        "docs/record.md",
    ]
    .iter()
    .map(|name| std::fs::read_to_string(project.join(name)).unwrap())
    .collect();
    let options = help.split_whitespace().filter(|word| word.starts_with("--")).map(|word| {
        word.split('[')
            .next()
            .unwrap_or_default()
            .trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
            .to_owned()
    });
    let missing: Vec<String> = options
        .filter(|option| option.len() > 2 && !["--help", "--version"].contains(&option.as_str()))
        .filter(|option| !documents.contains(&format!("`{option}")))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}
