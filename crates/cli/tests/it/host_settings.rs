//! Machine settings for the duration of a run: read back in the record, and restored however the run ends.

use crate::common::{Bench, Finished, processes_with, signal, wait_for, wait_for_windows};
use dyno_testkit::fault::is_root;
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::fs::File;
use std::process::{Child, Command};

/// A harmless setting for a few seconds.
const RATIO: &str = "/proc/sys/vm/dirty_background_ratio";

fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// A bench on which settings can be changed, and the value of the ratio; `None` with a printed reason otherwise.
fn preparing() -> Option<(Bench, String)> {
    or_skip(embedded_program())?;
    let before = read(RATIO);
    if before == "0" || std::fs::write(RATIO, &before).is_err() {
        dyno_testkit::skip(
            "cannot change this machine's settings, or it uses sizes instead of ratios",
        );
        return None;
    }
    Some((Bench::new(), before))
}

/// Restores the value if a test fails in the middle.
struct Before(String);

impl Drop for Before {
    fn drop(&mut self) {
        let _ = std::fs::write(RATIO, &self.0);
    }
}

fn other_than(before: &str) -> &'static str {
    if before == "7" { "8" } else { "7" }
}

/// Length of each run of a search, and time limit of the search.
const BRIEF: [&str; 2] = ["500ms", "28s"];

/// Kills the servers that the program has started for its files in this folder.
fn kill_servers(bench: &Bench, folder: &str, program: &Child) {
    let servers = processes_with(bench.path(folder).to_str().unwrap());
    let servers = servers.iter().filter(|pid| **pid != program.id());
    let servers: Vec<String> = servers.map(u32::to_string).collect();
    assert!(!servers.is_empty());
    let mut kill = Command::new("kill");
    assert!(kill.arg("-KILL").args(servers).status().unwrap().success());
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", "read", "--server", "embedded", "--records", "300"];
    [&fixed[..], &["--clients", "2", "--warmup", "0s"], more].concat()
}

/// One test covers all ends of a run because the machine has only one such setting.
#[test]
fn settings_are_restored_however_a_run_ends() {
    let Some((bench, before)) = preparing() else {
        return;
    };
    let _back = Before(before.clone());
    let journal = bench.path("state/doctor-undo.json");
    let other = other_than(&before);
    let set = format!("server.host_settings.dirty_background_ratio={other}");
    let short = ["--operations", "300", "--set", &set, "--format", "json"];
    let document = bench.dyno(&run(&short)).expect(0).json();
    let reported = &document["host_settings"][0];
    assert_eq!(reported["name"], "dirty_background_ratio");
    assert_eq!((&reported["file"], &reported["before"]), (&RATIO.into(), &before.as_str().into()));
    assert_eq!((&reported["set"], &reported["at_end"]), (&other.into(), &other.into()));
    assert_eq!(read(RATIO), before);
    assert!(!journal.exists());

    let begun = |name: &str| -> Child {
        let mut child = bench.spawn(&run(&["--duration", "60s", "--set", &set, "--out", name]));
        wait_for_windows(&mut child, &bench.path(name), 1);
        assert_eq!(read(RATIO), other);
        child
    };
    let child = begun("interrupted");
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!(read(RATIO), before);
    assert!(!journal.exists());

    let child = begun("orphaned");
    kill_servers(&bench, "orphaned", &child);
    Finished::from(child.wait_with_output().unwrap()).expect(3);
    assert_eq!(read(RATIO), before);
    assert!(!journal.exists());

    let child = begun("killed");
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    assert_eq!(read(RATIO), other);
    // Otherwise the next run would take the killed run's setting for the original one.
    bench.dyno(&run(&short)).expect(3).says(&format!("`{RATIO}`")).says("`dyno doctor --revert`");
    bench.dyno(&["doctor", "--revert"]).expect(0);
    assert_eq!(read(RATIO), before);
    assert!(!journal.exists());
}

/// An empty device on this machine.
struct Device(String);

impl Device {
    fn new(bench: &Bench) -> Device {
        let image = bench.path("device");
        File::create(&image).unwrap().set_len(512 << 20).unwrap();
        let attach = Command::new("losetup")
            .args(["--find", "--show", image.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(attach.status.success(), "{attach:?}");
        Device(String::from_utf8(attach.stdout).unwrap().trim().to_owned())
    }

    fn readahead(&self) -> String {
        let name = self.0.trim_start_matches("/dev/");
        read(&format!("/sys/block/{name}/queue/read_ahead_kb"))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn readahead_is_set_on_the_disk_with_the_data() {
    let Some((bench, _)) = preparing() else {
        return;
    };
    let lacks = |program: &&str| !std::path::Path::new("/usr/sbin").join(program).exists();
    if !is_root() || ["losetup", "mkfs.ext4"].iter().any(lacks) {
        dyno_testkit::skip("no root, or no programs, to make file systems");
        return;
    }
    let device = Device::new(&bench);
    let before = device.readahead();
    assert_ne!(before, "16");
    let storage = format!("server.storage=ext4 on {}", device.0);
    let options = ["--operations", "300", "--format", "json", "--set", &storage];
    let set = ["--set", "server.host_settings.readahead=16KiB"];
    let document = bench.dyno(&run(&[&options[..], &set].concat())).expect(0).json();
    let reported = &document["host_settings"][0];
    assert_eq!((&reported["before"], &reported["at_end"]), (&before.as_str().into(), &"16".into()));
    let bytes = &document["environment"]["data_storage"]["readahead_bytes"];
    assert_eq!(bytes, &Value::from(16 << 10), "{document}");
    assert_eq!(device.readahead(), before);
    assert!(!bench.path("state/doctor-undo.json").exists());
}

#[test]
fn dry_run_refuses_host_settings_that_cannot_be_set() {
    let bench = Bench::new();
    for (more, code, says) in [
        ("server.host_settings.swapiness=1", 2, "`swapiness`"),
        ("server.host_settings.swappiness=300", 2, "0 to 200"),
    ] {
        let arguments = ["run", "read", "--dry-run", "--set", more];
        bench.dyno(&arguments).expect(code).says(says);
    }
    let uri = ["run", "read", "--uri", "mongodb://127.0.0.1:1", "--dry-run"];
    let set = ["--set", "server.host_settings.swappiness=1"];
    let refused = bench.dyno(&[&uri[..], &set].concat()).expect(2);
    refused.says("`server.host_settings`");
    let tune = ["tune", "read", "--uri", "mongodb://127.0.0.1:1", "--dry-run"];
    let refused = bench.dyno(&[&tune[..], &["--allow", "host"]].concat()).expect(2);
    refused.says("`--allow host`");
}

fn tune<'a>([length, budget]: [&'a str; 2], more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["tune", "read", "--server", "embedded", "--records", "300", "--clients", "2"];
    let short = ["--warmup", "0s", "--duration", length, "--budget", budget];
    let knobs = ["--knobs", "dirty_background_ratio=4,7,30", "--allow", "host"];
    // No search can rule out such a small gain, so that something is confirmed.
    let margin = ["--margin", "0.1%"];
    [&fixed[..], &short, &knobs, &margin, more].concat()
}

/// Reasons why runs of an experiment were not measured.
fn problems(bench: &Bench, experiment: &str) -> Vec<String> {
    let text = std::fs::read_to_string(bench.path(&format!("{experiment}/experiment.json")));
    let document: Value = serde_json::from_str(&text.unwrap()).unwrap();
    let problems =
        document["points"].as_array().unwrap().iter().filter_map(|point| point["problem"].as_str());
    problems.map(str::to_owned).collect()
}

/// Whether a run found a server without documents, which means that the server is new.
fn has_loaded(bench: &Bench, experiment: &str, point: &Value) -> bool {
    let run = point["directory"].as_str().unwrap();
    let text = std::fs::read_to_string(bench.path(&format!("{experiment}/{run}/run.json")));
    let run: Value = serde_json::from_str(&text.unwrap()).unwrap();
    run["phases"].as_array().unwrap().iter().any(|phase| phase["name"] == "load")
}

/// During the search the servers stay; each confirming pair has new servers, which stay for its second run.
fn each_confirming_pair_has_new_servers(bench: &Bench, found: &Value) {
    let (mut confirming, mut searching) = (0, 0);
    for trial in found["answer"]["trials"].as_array().unwrap() {
        let is_search = trial["purpose"] == "search";
        for pair in trial["runs"].as_array().unwrap() {
            let runs = pair.as_array().unwrap().iter();
            let mut runs: Vec<usize> = runs.map(|run| run.as_u64().unwrap() as usize).collect();
            runs.sort_unstable();
            let loaded = runs.iter().map(|run| has_loaded(bench, "t", &found["points"][*run]));
            let loaded: Vec<bool> = loaded.collect();
            if is_search {
                searching += usize::from(!loaded.contains(&true));
            } else {
                assert_eq!(loaded, [true, false], "{trial}");
                confirming += 1;
            }
        }
    }
    assert!(confirming >= 4 && searching >= 2, "{}", found["answer"]);
}

/// Interrupted and killed searches, searches that lost a server, recovery, and a regular end.
#[test]
fn search_restores_the_machine_however_it_ends() {
    let Some((bench, before)) = preparing() else {
        return;
    };
    let _back = Before(before.clone());
    let preview = bench.dyno(&tune(BRIEF, &["--dry-run"])).expect(0).stdout;
    let setting = format!("{before} now, {RATIO}");
    let restarted = "restarted: `embedded` (standalone)";
    // Gains that 4 pairs, the most that fit, can detect if runs vary by 1 % and by 3 %.
    for shown in [setting.as_str(), restarted, "2.89 %", "8.91 %", "first 4"] {
        assert!(preview.contains(shown), "{preview}");
    }
    let journal = bench.path("state/doctor-undo.json");
    let changed = || journal.exists() && read(RATIO) != before;
    let child = bench.spawn(&tune(["1s", "5m"], &["--out", "interrupted"]));
    wait_for("a run with another setting", changed);
    // A server that ends during a trial counts against the settings, and the search continues without them.
    kill_servers(&bench, "interrupted", &child);
    wait_for("the setting as before", || read(RATIO) == before);
    wait_for("a run with another setting", changed);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!((read(RATIO), journal.exists()), (before.clone(), false));
    let problems = problems(&bench, "interrupted");
    // The server may have ended before the clients connected, or while it was queried.
    let ends = ["signal: 9", "closed the", "`buildInfo`", "refuses the connection"];
    let has_ended = |problem: &String| ends.iter().any(|end| problem.contains(end));
    assert!(problems.iter().any(has_ended), "{problems:?}");
    let mut child = bench.spawn(&tune(BRIEF, &["--out", "t"]));
    wait_for("a run with another setting", changed);
    signal(&child, "KILL");
    child.wait().unwrap();
    // Except in the last moment of the run, the setting has the value that it tried.
    if journal.exists() {
        let refused = bench.dyno(&["resume", "t"]).expect(3);
        refused.says(&format!("`{RATIO}`")).says("`dyno doctor --revert`");
    }
    bench.dyno(&["doctor", "--revert"]).expect(0);
    assert_eq!(read(RATIO), before);
    let found = bench.dyno(&["resume", "t", "--format", "json"]).expect(0).json();
    assert_eq!(found["status"], "complete");
    assert_eq!(read(RATIO), before);
    assert!(!journal.exists());
    let knob = &found["options"]["tune"]["knobs"][0];
    assert_eq!((&knob["reach"], &knob["files"][0]), (&"host".into(), &RATIO.into()));
    let default = knob["default"].as_u64().unwrap() as usize;
    assert_eq!(knob["values"][default], before.as_str());
    let key = "server.host_settings.dirty_background_ratio";
    let set = found["points"]
        .as_array()
        .unwrap()
        .iter()
        .find(|point| point["settings"][key].is_string())
        .unwrap();
    let run = set["directory"].as_str().unwrap();
    let text = std::fs::read_to_string(bench.path(&format!("t/{run}/run.json"))).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(run["host_settings"][0]["at_end"], set["settings"][key]);
    assert_eq!(run["host_settings"][0]["before"], before.as_str());
    each_confirming_pair_has_new_servers(&bench, &found);
}
