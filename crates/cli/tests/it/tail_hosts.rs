//! `dyno tail` with producers and consumers on other hosts. The hosts are this machine under other names, reached through a
//! replacement for `ssh`; libfaketime shifts their clocks by known offsets.

use crate::common::{Bench, Finished, wait_for};
use dyno_testkit::fault::faketime_library;
use dyno_testkit::{Skip, embedded_program, or_skip, project_dir};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Replaces `ssh` and records its arguments: `ahead` and `behind` are hosts with other clocks, `gone` is unreachable, and
/// `hidden` does not show its machine.
const SSH: &str = r#"#!/bin/bash
echo "$@" >> "$CALLS"
for word; do [ "$word" = -- ] && break; host=$word; done
case $host in
    ahead) export LD_PRELOAD=$FAKE FAKETIME=+5.25s FAKETIME_DONT_FAKE_MONOTONIC=1 ;;
    behind) export LD_PRELOAD=$FAKE FAKETIME=-3.5s FAKETIME_DONT_FAKE_MONOTONIC=1 ;;
    gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;;
    hidden) case $* in *proc/cpuinfo*) echo "no such command" >&2; exit 1 ;; esac ;;
    unwilling) echo "this account is not available"; exit 1 ;;
esac
exec sh -c "${@: -1}"
"#;

struct Hosts {
    bench: Bench,
    fake: PathBuf,
}

impl Hosts {
    /// `None` without the embedded server, the driver `wire` or libfaketime.
    fn new() -> Option<Hosts> {
        or_skip(embedded_program())?;
        let run = project_dir().join("drivers/wire/run");
        let version = Command::new(run).arg("version").output();
        or_skip(match version {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(Skip::new("the driver `wire` is not built", "run `make drivers`")),
        })?;
        let fake = or_skip(faketime_library())?;
        let bench = Bench::new();
        std::fs::write(bench.path("ssh"), SSH).unwrap();
        std::fs::set_permissions(bench.path("ssh"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        Some(Hosts { bench, fake })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let common = ["tail", "--producer", "wire", "--out", "x", "--format", "json"];
        let mut command = self.bench.command(&[&common, arguments].concat());
        command
            .env("DYNO_SSH", self.bench.path("ssh"))
            .env("DYNO_DRIVERS", project_dir().join("drivers"))
            .env("CALLS", self.bench.path("calls"))
            .env("FAKE", &self.fake);
        command
    }

    fn dyno(&self, arguments: &[&str]) -> Finished {
        let child = self.spawn(arguments);
        let id = child.id();
        let finished = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(left_by(id), Vec::<String>::new());
        finished
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// Folders of the program with this process id on the hosts, and processes that work in them.
fn left_by(id: u32) -> Vec<String> {
    let mark = format!("dyno-tail-{id}-");
    let folders = crate::common::names(Path::new("/tmp"));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    folders.into_iter().chain(lines).filter(|text| text.contains(&mark)).collect()
}

fn document(hosts: &Hosts) -> Value {
    let text = std::fs::read_to_string(hosts.bench.path("x/tail.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn latencies_are_true_between_hosts_with_skewed_clocks() {
    let Some(hosts) = Hosts::new() else { return };
    let finished = hosts.dyno(&[
        "--messages",
        "200",
        "--rate",
        "100",
        "--producer-host",
        "behind",
        "--consumer-host",
        "ahead",
    ]);
    finished.expect(0);
    let found = document(&hosts);
    assert!(found["clock"].as_str().unwrap().starts_with("CLOCK_REALTIME"));
    let measured = &found["cells"][0]["measured"];
    for (clock, (host, role, offset_ns)) in measured["clocks"]
        .as_array()
        .unwrap()
        .iter()
        .zip([("behind", "produce", -3.5e9), ("ahead", "consume", 5.25e9)])
    {
        assert_eq!((&clock["host"], &clock["role"]), (&host.into(), &role.into()));
        let uncertainty_ns = clock["uncertainty_ns"].as_f64().unwrap();
        for end in ["offset_start_ns", "offset_end_ns"] {
            let off_ns = (clock[end].as_f64().unwrap() - offset_ns).abs();
            // libfaketime takes its offset from a separate clock reading, which adds some microseconds.
            assert!(off_ns <= uncertainty_ns + 1e6, "{end} {clock}");
        }
        assert!(uncertainty_ns < 1e8, "{clock}");
    }
    let consumer = &measured["consumers"][0];
    assert_eq!((&consumer["sum"]["received"], &consumer["sum"]["lost"]), (&200.into(), &0.into()));
    let delivery = &consumer["deliveries"][0]["delivery"];
    let median_us = delivery["p50_us"].as_f64().unwrap();
    // Without clock correction this would be 8.75 s; a busy machine may be slow.
    assert!((10.0..3e6).contains(&median_us), "{delivery}");
    assert_eq!(delivery["below_zero"], 0, "{delivery}");
    // The first intended start uses the producer's own clock as well.
    let wait = &measured["producers"][0]["split"]["wait"]["p50_us"];
    assert!(wait.as_f64().unwrap() < 3e6, "{wait}");
    for process in [&measured["producers"][0], consumer] {
        assert!(process["resources"]["samples"][0]["rss_bytes"].as_f64().unwrap() > 0.0);
    }
    // Both hosts are this machine, under other names.
    let machine = |host: &Value| {
        let of = |key: &str| host["environment"][key].clone();
        ["cpu_model", "cpus", "kernel", "memory_bytes", "os"].map(of)
    };
    let there = found["hosts"].as_array().unwrap();
    let names: Vec<&Value> = there.iter().map(|host| &host["host"]).collect();
    assert_eq!(names, ["ahead", "behind"]);
    for host in there {
        assert_eq!(machine(host), machine(&found), "{host}");
        assert!(!host["environment"]["doctor"].as_array().unwrap().is_empty());
        // That clock is read by other processes.
        assert!(host["environment"]["clock_read_ns"].is_null(), "{host}");
    }
    // The connection string is not in any argument.
    let calls = std::fs::read_to_string(hosts.bench.path("calls")).unwrap();
    assert!(calls.contains("drivers/wire/run produce") && !calls.contains("mongodb://"), "{calls}");
    let report = hosts.bench.dyno(&["report", "x", "--format", "markdown"]).expect(0);
    assert!(
        report.stdout.contains("±")
            && report.stdout.contains("Machine ahead")
            && report.stdout.contains("Machine behind"),
        "{}",
        report.stdout
    );
}

#[test]
fn one_host_beside_this_one_shares_its_clock() {
    let Some(hosts) = Hosts::new() else { return };
    hosts.dyno(&["--messages", "200", "--consumer-host", "ahead"]).expect(0);
    let measured = document(&hosts)["cells"][0]["measured"].clone();
    assert_eq!(measured["clocks"].as_array().unwrap().len(), 1);
    let delivery = measured["consumers"][0]["deliveries"][0]["delivery"]["p50_us"].as_f64();
    assert!((10.0..3e6).contains(&delivery.unwrap()));
}

#[test]
fn host_with_an_unreadable_machine_still_measures() {
    let Some(hosts) = Hosts::new() else { return };
    let finished =
        hosts.dyno(&["--messages", "100", "--producer-host", "hidden", "--repeat", "2"]).expect(0);
    // Once, not for each repetition.
    let said = finished.stderr.matches("no such command");
    assert_eq!(said.count(), 1, "{}", finished.stderr);
    finished.says("`hidden`");
    let found = document(&hosts);
    assert_eq!(found["cells"].as_array().unwrap().len(), 2);
    assert!(found["hosts"].as_array().is_none_or(Vec::is_empty), "{found}");
}

#[test]
fn a_host_that_cannot_be_used_is_named_with_what_ssh_says() {
    let Some(hosts) = Hosts::new() else { return };
    for (host, text) in [
        ("gone", "`gone`: ssh: connect to host gone port 22: No route to host"),
        ("unwilling", "`this account is not available`"),
    ] {
        hosts.dyno(&["--messages", "100", "--producer-host", host]).expect(3).says(text);
    }
    let elsewhere = ["--messages", "100", "--producer-host", "a", "--host-drivers", "/nowhere"];
    hosts.dyno(&elsewhere).expect(2).says("`wire`").says("`a`");
    hosts.dyno(&["--producer-host", "a b"]).expect(2).says("`tail.producer_host`");
}

#[test]
fn a_host_whose_controller_is_killed_is_left_clean() {
    let Some(hosts) = Hosts::new() else { return };
    let mut child = hosts.endless();
    let id = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("nothing is left", || left_by(id).is_empty());
}

#[test]
fn terminal_interrupt_keeps_messages_from_other_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    let child = hosts.endless();
    let id = child.id();
    // To the whole process group, as a terminal does.
    crate::common::signal_group(&child, "INT");
    let finished = Finished::from(child.wait_with_output().unwrap());
    finished.expect(130);
    assert_eq!(left_by(id), Vec::<String>::new());
    let found = document(&hosts);
    assert_eq!(found["status"], "partial");
    let sum = &found["cells"][0]["measured"]["consumers"][0]["sum"];
    assert!(sum["received"].as_u64().unwrap() > 0, "{sum}");
}

impl Hosts {
    /// Starts a long run, and returns when both hosts have stamped messages.
    fn endless(&self) -> Child {
        let arguments = ["--messages", "100000", "--rate", "100"];
        let both = ["--producer-host", "a", "--consumer-host", "b"];
        let mut command = self.command(&[&arguments[..], &both].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().unwrap();
        wait_until_both_stamp(child.id());
        child
    }
}

fn wait_until_both_stamp(id: u32) {
    wait_for("producer and consumer stamp", || {
        let folders = std::fs::read_dir("/tmp").unwrap().flatten();
        let own = folders.filter(|entry| {
            entry.file_name().to_string_lossy().contains(&format!("dyno-tail-{id}-"))
        });
        let stamped = own.filter(|entry| {
            let files = std::fs::read_dir(entry.path()).into_iter().flatten().flatten();
            let mut stamps =
                files.filter(|file| file.path().extension().is_some_and(|end| end == "stamps"));
            stamps.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
        });
        stamped.count() == 2
    });
}
