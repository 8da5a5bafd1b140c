//! `dyno doctor` from outside: the table, the document, exit codes, and changes that are taken back.
//! Changes are made in a tree of files that stands for a machine.

use crate::common::{Bench, Finished, Responder};
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::path::Path;

const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const HUGE_PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";

/// A machine with swap that it is inclined to use, and huge pages on demand.
fn machine(bench: &Bench) -> String {
    let root = bench.path("machine");
    for (path, text) in [
        (SWAPPINESS, "60\n"),
        (HUGE_PAGES, "always [madvise] never\n"),
        (
            "proc/meminfo",
            "MemTotal: 16000000 kB\nSwapTotal: 1000000 kB\n",
        ),
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
    let verdicts = document["verdicts"].as_array().unwrap();
    verdicts
        .iter()
        .find(|verdict| verdict["check"] == name)
        .unwrap()
}

fn doctor(bench: &Bench, root: &str, more: &[&str]) -> Finished {
    let mut arguments = vec!["doctor", "--root", root];
    arguments.extend(more);
    bench.dyno(&arguments)
}

#[test]
fn the_table_names_each_check_and_the_command_for_what_fails() {
    let bench = Bench::new();
    let root = machine(&bench);
    let finished = doctor(&bench, &root, &[]).expect(1);
    assert!(
        finished.stdout.contains("FAIL  swappiness"),
        "{}",
        finished.stdout
    );
    assert!(
        finished
            .stdout
            .contains("do:  sudo sysctl -w vm.swappiness=1")
    );
    assert!(
        finished.stdout.contains("\n1 fail, "),
        "{}",
        finished.stdout
    );
    assert_eq!(bench.entries(), ["machine"], "looking changes nothing");
    assert_eq!(read(&bench, SWAPPINESS), "60");
}

#[test]
fn without_a_failing_check_the_exit_status_is_0() {
    let bench = Bench::new();
    let root = machine(&bench);
    write(Path::new(&root), SWAPPINESS, "1\n");
    let document = doctor(&bench, &root, &["--format", "json"])
        .expect(0)
        .json();
    assert_eq!(document["level"], "unknown");
    assert_eq!(check(&document, "swappiness")["level"], "pass");
    assert_eq!(document["changed"], Value::Array(Vec::new()));
}

#[test]
fn the_version_turns_the_advice_round() {
    let bench = Bench::new();
    let root = machine(&bench);
    let level = |version: &str| {
        let more = ["--format", "json", "--server-version", version];
        let document = doctor(&bench, &root, &more).expect(1).json();
        check(&document, "huge_pages")["level"].clone()
    };
    assert_eq!(
        (level("8.0"), level("7.0.14")),
        ("fail".into(), "warn".into())
    );
}

#[test]
fn only_what_is_named_is_changed_and_it_is_taken_back() {
    let bench = Bench::new();
    let root = machine(&bench);
    let applied = doctor(
        &bench,
        &root,
        &["--server-version", "8.0", "--apply", "swappiness"],
    );
    // The huge pages still fail.
    let applied = applied.expect(1);
    let said = "changed /proc/sys/vm/swappiness from `60` to `1`; to take it back: echo 60 | sudo tee /proc/sys/vm/swappiness";
    assert!(applied.stdout.contains(said), "{}", applied.stdout);
    assert_eq!(
        (read(&bench, SWAPPINESS), read(&bench, HUGE_PAGES)),
        ("1".into(), "always [madvise] never".into())
    );
    doctor(
        &bench,
        &root,
        &["--server-version", "8.0", "--apply", "huge-pages"],
    )
    .expect(0);
    assert_eq!(read(&bench, HUGE_PAGES), "always");
    let reverted = doctor(&bench, &root, &["--revert", "--format", "json"])
        .expect(0)
        .json();
    // The last change first.
    assert_eq!(reverted["reverted"][0]["check"], "huge_pages");
    assert_eq!(reverted["reverted"][1]["check"], "swappiness");
    assert_eq!(
        (read(&bench, SWAPPINESS), read(&bench, HUGE_PAGES)),
        ("60".into(), "madvise".into())
    );
    let nothing = doctor(&bench, &root, &["--revert"]).expect(0);
    assert_eq!(nothing.stdout, "there is nothing to take back\n");
}

#[test]
fn all_changes_what_is_wrong_and_can_be_changed() {
    let bench = Bench::new();
    let root = machine(&bench);
    let more = [
        "--server-version",
        "8.0",
        "--apply",
        "all",
        "--format",
        "json",
    ];
    let document = doctor(&bench, &root, &more).expect(0).json();
    assert_eq!(document["changed"].as_array().unwrap().len(), 2);
    assert_eq!(
        check(&document, "swappiness")["found"],
        "1, 977 MiB of swap"
    );
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    let bench = Bench::new();
    let root = machine(&bench);
    doctor(&bench, &root, &["--apply", "swappiness"]).expect(0);
    write(Path::new(&root), SWAPPINESS, "30\n");
    doctor(&bench, &root, &["--revert"]).expect(1).says(
        "`/proc/sys/vm/swappiness` is `30`, not `1`: it was changed after this program set it",
    );
    assert_eq!(read(&bench, SWAPPINESS), "30");
    // The entry is kept: once the value is that of the change again, it can be taken back.
    write(Path::new(&root), SWAPPINESS, "1\n");
    doctor(&bench, &root, &["--revert"]).expect(0);
    assert_eq!(read(&bench, SWAPPINESS), "60");
}

#[test]
fn after_a_restart_there_is_nothing_to_take_back() {
    let bench = Bench::new();
    let root = machine(&bench);
    doctor(&bench, &root, &["--apply", "swappiness"]).expect(0);
    write(Path::new(&root), "proc/sys/kernel/random/boot_id", "two\n");
    let reverted = doctor(&bench, &root, &["--revert"]).expect(0);
    assert_eq!(reverted.stdout, "there is nothing to take back\n");
    assert_eq!(read(&bench, SWAPPINESS), "1");
}

#[test]
fn bad_arguments_are_2_and_a_missing_server_is_3() {
    let bench = Bench::new();
    bench
        .dyno(&["doctor", "--apply", "swap"])
        .expect(2)
        .says("there is no check `swap`")
        .says("swappiness");
    bench
        .dyno(&["doctor", "--apply", "all", "--revert"])
        .expect(2);
    bench.dyno(&["doctor", "--server-version", "new"]).expect(2);
    bench
        .dyno(&["doctor", "--uri", "mongodb://h", "--server-pid", "1"])
        .expect(2);
    bench
        .dyno(&["doctor", "--uri", "mongodb://127.0.0.1:1"])
        .expect(3)
        .says("refuses the connection");
    bench
        .dyno(&["doctor", "--server-pid", "4294967295"])
        .expect(3)
        .says("there is no process");
}

/// The responder answers few commands: what it does not know is not known, and no error.
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
    assert!(
        found("shared_cores").contains(" shared, of "),
        "{}",
        found("shared_cores")
    );
    assert!(
        found("open_files").contains("of the server"),
        "{}",
        found("open_files")
    );
    assert!(
        found("round_trip").starts_with("median "),
        "{}",
        found("round_trip")
    );
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
    let finished = finished.says(&format!("there is no folder `{}`", missing.display()));
    let finished = finished.says(&format!(
        "the storage of `{}` is checked",
        checked.display()
    ));
    assert!(finished.stdout.contains(", mounted at `/"), "{finished:?}");
    let there = bench.dyno(&["doctor", "--data-dir", "."]);
    assert!(!there.stderr.contains("there is no folder"), "{there:?}");
    assert!(there.stdout.contains(", mounted at `/"), "{there:?}");
}

/// The page of known faults quotes what the program prints.
#[test]
fn the_page_of_known_faults_has_the_words_of_the_program() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let page = std::fs::read_to_string(page).unwrap();
    let bench = Bench::new();
    std::fs::create_dir(bench.path("other")).unwrap();
    std::fs::write(bench.path("other/file"), "").unwrap();
    let other = bench.path("other").to_str().unwrap().to_owned();
    let unauthorized = Responder::start(&["--fault", "error=13:1"]);
    let uri = format!("mongodb://{}/", unauthorized.address);
    let file = format!("{other}/file");
    let embedded = ["run", "a", "--server", "embedded", "--data-dir"];
    let in_file = [&embedded[..], &[&file]].concat();
    let with_user = [&embedded[..], &[&other, "--auth"]].concat();
    let cases: [(&[&str], &str); 11] = [
        (
            &["run", "a", "--uri", "mongodb://host.docker.internal"],
            "cannot resolve `host.docker.internal`",
        ),
        (
            &["run", "a", "--uri", "mongodb://127.0.0.1:1"],
            "refuses the connection",
        ),
        (
            &["run", "a", "--uri", &uri, "--no-load"],
            "(code 13, Unauthorized)",
        ),
        (
            &["run", "workloada"],
            "there is no built-in plan and no file `workloada`",
        ),
        (
            &["run", "a", "-p", "recordcuont=3"],
            "unknown property `recordcuont` (did you mean `recordcount`?)",
        ),
        (
            &["ycsb", "run", "cassandra", "-P", "a"],
            "the binding `cassandra` is not supported",
        ),
        (&["ycsb", "run", "mongodb", "-P", "nofile"], "cannot read `"),
        (
            &["report", &other],
            "is not a run directory: it holds no `run.json`",
        ),
        (
            &["run", "a", "--mongod", &other],
            "is not an executable file",
        ),
        (
            &["run", "a", "--uri", "mongodb://h/?foo=1"],
            "unknown option `",
        ),
        (
            &[
                "server",
                "plan",
                "--pairs",
                "2",
                "--placement",
                "cores-per-instance=4096",
            ],
            "too few cores: ",
        ),
    ];
    let of_servers: [(&[&str], &str); 2] = [
        (&in_file, "cannot prepare `"),
        (
            &with_user,
            "a user with a new password cannot be created in an existing database",
        ),
    ];
    let is_there = or_skip(embedded_program()).is_some();
    let of_servers = of_servers.into_iter().filter(|_| is_there);
    for (arguments, words) in cases.into_iter().chain(of_servers) {
        let finished = bench.dyno(arguments);
        assert!(
            finished.stderr.contains(words),
            "{words}:\n{}",
            finished.stderr
        );
        assert!(page.contains(words), "{words}");
    }
}
