//! `dyno doctor` from outside: the table, the document, exit codes, and reverted changes. Changes are made in a file tree that
//! represents a machine.

use crate::common::{Bench, Finished, Responder};
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::path::Path;

const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// A machine with swap and a high swappiness, and huge pages on demand.
fn machine(bench: &Bench) -> String {
    let root = bench.path("machine");
    for (path, text) in [
        (SWAPPINESS, "60\n"),
        (HUGE_PAGES, "always [madvise] never\n"),
        ("proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 1000000 kB\n"),
        ("proc/sys/kernel/random/boot_id", "one\n"),
        ("sys/devices/system/node/online", "0\n"),
    ] {
        write(&root, path, text);
    }
    root.to_str().unwrap().to_owned()
}

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn read(bench: &Bench, path: &str) -> String {
    let text = std::fs::read_to_string(bench.path("machine").join(path)).unwrap();
    text.trim().to_owned()
}

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|verdict| verdict["check"] == name)
        .unwrap()
}

fn doctor(bench: &Bench, root: &str, more: &[&str]) -> Finished {
    let mut arguments = vec!["doctor", "--root", root];
    arguments.extend(more);
    bench.dyno(&arguments)
}

/// Checks that `--revert` finds nothing to undo: an empty list in JSON, and one line of text.
#[track_caller]
fn assert_nothing_to_revert(bench: &Bench, root: &str) {
    let shown = doctor(bench, root, &["--revert"]).expect(0).stdout;
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let document = doctor(bench, root, &["--revert", "--format", "json"]);
    assert_eq!(document.expect(0).json()["reverted"], Value::Array(Vec::new()));
}

#[test]
fn the_table_names_each_check_and_the_command_for_what_fails() {
    let bench = Bench::new();
    let root = machine(&bench);
    let finished = doctor(&bench, &root, &[]).expect(1);
    assert!(finished.stdout.contains("FAIL  swappiness"), "{}", finished.stdout);
    assert!(finished.stdout.contains("sudo sysctl -w vm.swappiness=1"));
    assert!(finished.stdout.contains("\n1 fail, "), "{}", finished.stdout);
    assert_eq!(bench.entries(), ["machine"], "checks must not change the machine");
    assert_eq!(read(&bench, SWAPPINESS), "60");
}

#[test]
fn without_a_failing_check_the_exit_status_is_0() {
    let bench = Bench::new();
    let root = machine(&bench);
    write(Path::new(&root), SWAPPINESS, "1\n");
    let document = doctor(&bench, &root, &["--format", "json"]).expect(0).json();
    assert_eq!(document["level"], "unknown");
    assert_eq!(check(&document, "swappiness")["level"], "pass");
    assert_eq!(document["changed"], Value::Array(Vec::new()));
}

#[test]
fn huge_page_advice_depends_on_the_server_version() {
    let bench = Bench::new();
    let root = machine(&bench);
    let level = |version: &str| {
        let more = ["--format", "json", "--server-version", version];
        let document = doctor(&bench, &root, &more).expect(1).json();
        check(&document, "huge_pages")["level"].clone()
    };
    assert_eq!((level("8.0"), level("7.0.14")), ("fail".into(), "warn".into()));
}

#[test]
fn apply_changes_the_named_check_and_revert_undoes_it() {
    let bench = Bench::new();
    let root = machine(&bench);
    let applied = doctor(&bench, &root, &["--server-version", "8.0", "--apply", "swappiness"]);
    // The huge pages check still fails.
    let applied = applied.expect(1);
    for shown in
        ["`60`", "`1`", "echo 60 | sudo tee /proc/sys/vm/swappiness", "`dyno doctor --revert`"]
    {
        assert!(applied.stdout.contains(shown), "{}", applied.stdout);
    }
    assert_eq!(
        (read(&bench, SWAPPINESS), read(&bench, HUGE_PAGES)),
        ("1".into(), "always [madvise] never".into())
    );
    doctor(&bench, &root, &["--server-version", "8.0", "--apply", "huge-pages"]).expect(0);
    assert_eq!(read(&bench, HUGE_PAGES), "always");
    let reverted = doctor(&bench, &root, &["--revert", "--format", "json"]).expect(0).json();
    // The last change is reverted first.
    assert_eq!(reverted["reverted"][0]["check"], "huge_pages");
    assert_eq!(reverted["reverted"][1]["check"], "swappiness");
    assert_eq!(
        (read(&bench, SWAPPINESS), read(&bench, HUGE_PAGES)),
        ("60".into(), "madvise".into())
    );
    assert_nothing_to_revert(&bench, &root);
}

#[test]
fn apply_all_changes_every_failing_check() {
    let bench = Bench::new();
    let root = machine(&bench);
    let more = ["--server-version", "8.0", "--apply", "all", "--format", "json"];
    let document = doctor(&bench, &root, &more).expect(0).json();
    assert_eq!(document["changed"].as_array().unwrap().len(), 2);
    assert_eq!(check(&document, "swappiness")["found"], "1, 977 MiB of swap");
}

#[test]
fn revert_keeps_a_value_that_somebody_else_changed() {
    let bench = Bench::new();
    let root = machine(&bench);
    doctor(&bench, &root, &["--apply", "swappiness"]).expect(0);
    write(Path::new(&root), SWAPPINESS, "30\n");
    doctor(&bench, &root, &["--revert"])
        .expect(1)
        .says("`/proc/sys/vm/swappiness`")
        .says("`30`")
        .says("`1`");
    assert_eq!(read(&bench, SWAPPINESS), "30");
    // The entry is kept: it can be reverted once the value equals the changed value again.
    write(Path::new(&root), SWAPPINESS, "1\n");
    doctor(&bench, &root, &["--revert"]).expect(0);
    assert_eq!(read(&bench, SWAPPINESS), "60");
}

#[test]
fn revert_does_nothing_after_a_restart() {
    let bench = Bench::new();
    let root = machine(&bench);
    doctor(&bench, &root, &["--apply", "swappiness"]).expect(0);
    write(Path::new(&root), "proc/sys/kernel/random/boot_id", "two\n");
    assert_nothing_to_revert(&bench, &root);
    assert_eq!(read(&bench, SWAPPINESS), "1");
}

#[test]
fn bad_arguments_exit_with_2_and_a_missing_server_with_3() {
    let bench = Bench::new();
    bench.dyno(&["doctor", "--apply", "swap"]).expect(2).says("`swap`").says("swappiness");
    bench.dyno(&["doctor", "--apply", "all", "--revert"]).expect(2);
    bench.dyno(&["doctor", "--server-version", "new"]).expect(2);
    bench.dyno(&["doctor", "--uri", "mongodb://h", "--server-pid", "1"]).expect(2);
    bench.dyno(&["doctor", "--uri", "mongodb://127.0.0.1:1"]).expect(3).says("Connection refused");
    bench.dyno(&["doctor", "--server-pid", "4294967295"]).expect(3).says("4294967295");
}

/// The responder answers few commands: unsupported commands give unknown checks, not errors.
#[test]
fn a_server_on_this_machine_is_found_by_its_port() {
    let bench = Bench::new();
    let responder = Responder::start(&[]);
    let uri = format!("mongodb://{}/", responder.address);
    let finished = bench.dyno(&["doctor", "--uri", &uri, "--format", "json"]);
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    let document = finished.json();
    assert_eq!(check(&document, "bind_address")["found"], "loopback only");
    let found = |name: &str| check(&document, name)["found"].as_str().unwrap().to_owned();
    assert!(found("shared_cores").contains(" shared, of "), "{}", found("shared_cores"));
    assert!(found("open_files").contains("the server"), "{}", found("open_files"));
    assert!(found("round_trip").starts_with("median "), "{}", found("round_trip"));
}

#[test]
fn this_machine_is_checked_without_being_changed() {
    let bench = Bench::new();
    let finished = bench.dyno(&["doctor", "--data-dir", ".", "--format", "json"]);
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    let document = finished.json();
    assert_ne!(check(&document, "filesystem")["level"], "unknown");
    assert_eq!(bench.entries(), Vec::<String>::new());
}

#[test]
fn the_storage_that_is_checked_is_named() {
    let bench = Bench::new();
    let missing = bench.path("missing/data");
    let finished = bench.dyno(&["doctor", "--data-dir", missing.to_str().unwrap()]);
    let checked = bench.folder.path().canonicalize().unwrap();
    let storage = format!("`{}`", checked.display());
    let finished = finished.says("warning: ").says(&storage);
    let finished = finished.says(&format!("`{}`", missing.display()));
    assert!(finished.stdout.contains(", mounted at `/"), "{finished:?}");
    let there = bench.dyno(&["doctor", "--data-dir", "."]);
    assert!(!there.stderr.contains(&storage), "{there:?}");
    assert!(there.stdout.contains(", mounted at `/"), "{there:?}");
}

/// The longest part of a message without backticked names and numbers.
fn fixed_words(message: &str) -> &str {
    let message = message.trim_start().trim_start_matches("caused by: ");
    let parts = message
        .trim_start_matches("error: ")
        .split('`')
        .step_by(2)
        .flat_map(|part| part.split(|one: char| one.is_ascii_digit()));
    let parts = parts.map(|part| part.trim_matches(|one: char| !one.is_alphanumeric()));
    parts.max_by_key(|part| part.len()).unwrap()
}

#[test]
fn troubleshooting_page_quotes_the_messages() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).unwrap();
    let bench = Bench::new();
    std::fs::create_dir(bench.path("other")).unwrap();
    std::fs::write(bench.path("other/file"), "").unwrap();
    let unauthorized = Responder::start(&["--fault", "error=13:1"]);
    let uri = format!("mongodb://{}/", unauthorized.address);
    let without_rights = format!("run a --uri {uri} --no-load");
    // Arguments, and text from the message line that the page quotes.
    let mut cases = vec![
        ("run a --uri mongodb://host.docker.internal", "`host.docker.internal`"),
        ("run a --uri mongodb://127.0.0.1:1", "`127.0.0.1:1`"),
        (without_rights.as_str(), "Unauthorized"),
        ("run workloada", "`workloada`"),
        ("run a -p recordcuont=3", "`recordcuont`"),
        ("ycsb run cassandra -P a", "`cassandra`"),
        ("ycsb run mongodb -P nofile", "`nofile`"),
        ("report other", "`run.json`"),
        ("run a --mongod ./other", "/other`"),
        ("run a --uri mongodb://h/?foo=1", "`foo`"),
        ("server plan --pairs 2 --placement cores-per-instance=4096", "too few"),
    ];
    if or_skip(embedded_program()).is_some() {
        let embedded = [
            ("run a --server embedded --data-dir other/file", "/file`"),
            ("run a --server embedded --data-dir other --auth", "password"),
        ];
        cases.extend(embedded);
    }
    for (arguments, shown) in cases {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let stderr = bench.dyno(&arguments).stderr;
        let line = stderr.lines().find(|line| line.contains(shown));
        let line = line.unwrap_or_else(|| panic!("{shown}: {stderr}"));
        let words = fixed_words(line);
        assert!(words.len() > 8 && page.contains(words), "{words}: {line}");
    }
}
