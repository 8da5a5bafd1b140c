//! `server.storage` end to end: storage that is created for a run, recorded, and removed however the run ends.

use crate::common::{Bench, Finished, names, processes_with, signal, wait_for, wait_for_windows};
use dyno_testkit::fault::is_root;
use dyno_testkit::{embedded_program, mongod_program, or_skip, project_dir};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A bench on which storage can be created for the embedded server; `None` with a printed reason otherwise.
fn preparing() -> Option<Bench> {
    or_skip(embedded_program())?;
    preparing_for_any()
}

/// The same for any server.
fn preparing_for_any() -> Option<Bench> {
    if !is_root() {
        dyno_testkit::skip("no root to make file systems");
        return None;
    }
    let lacks = |program: &&str| !Path::new("/usr/sbin").join(program).exists();
    let programs = ["losetup", "wipefs", "mkfs.ext4", "mkfs.xfs"];
    if let Some(program) = programs.into_iter().find(lacks) {
        dyno_testkit::skip(&format!("no `{program}` to make file systems"));
        return None;
    }
    Some(Bench::new())
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An empty device on this machine: a file behind a loop device.
struct Device(String);

impl Device {
    fn new(bench: &Bench) -> Device {
        let image = bench.path("device");
        File::create(&image).unwrap().set_len(512 << 20).unwrap();
        Device(run("losetup", &["--find", "--show", image.to_str().unwrap()]))
    }

    fn setting(&self, file_system: &str) -> String {
        format!("server.storage={file_system} on {}", self.0)
    }

    #[track_caller]
    fn assert_empty(&self) {
        assert_eq!(run("wipefs", &["--parsable", &self.0]), "");
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// Checks that no storage is left: no loop device, mount, folder, control group or process.
#[track_caller]
fn assert_gone(bench: &Bench, run_directory: &str) {
    let place = bench.folder.path().to_str().unwrap();
    wait_for("the end of all processes", || processes_with(place).is_empty());
    let folder = bench.path(run_directory).display().to_string();
    let loops = || run("losetup", &["--list", "--output", "BACK-FILE"]);
    wait_for("the end of loop devices", || !loops().contains(&folder));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&folder), "{mounts}");
    // After a kill, a watchdog removes it.
    wait_for("the end of the folder", || {
        !bench.path(run_directory).join("server-storage").exists()
    });
    let images = |name: &String| name.contains("storage");
    let left = match bench.path(run_directory).exists() {
        true => names(&bench.path(run_directory)),
        false => Vec::new(),
    };
    assert!(!left.iter().any(images), "{left:?}");
}

/// Control groups of this project for a process.
fn groups(process: u32) -> Vec<String> {
    let folders = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let folders = folders.iter().map(Path::new).filter(|folder| folder.is_dir());
    let mut all: Vec<String> = folders.flat_map(names).collect();
    all.retain(|name| name.starts_with(&format!("dyno-storage-{process}-")));
    all
}

const SMALL: [&str; 7] = ["run", "a", "--records", "300", "--warmup", "0s", "--out"];

#[test]
fn a_record_names_the_storage_and_what_it_can_do() {
    let Some(bench) = preparing() else { return };
    let setting = "ext4 on loop:512MiB at 400 iops";
    let set = format!("server.storage={setting}");
    let more = ["r", "--operations", "500", "--format", "json", "--set", &set];
    let done = bench.dyno(&[&SMALL[..], &more].concat()).expect(0);
    let document = done.json();
    let storage = &document["environment"]["data_storage"];
    assert_eq!(storage["filesystem"], "ext4");
    assert!(storage["mount_options"].as_str().unwrap().contains("noatime"));
    assert!(storage["free_bytes"].as_u64().unwrap() < 512 << 20, "{storage}");
    let prepared = &storage["prepared"];
    assert_eq!(prepared["setting"], setting);
    assert_eq!(prepared["size_bytes"], 512 << 20);
    let device = prepared["devices"][0].as_str().unwrap();
    assert!(device.starts_with("/dev/loop"), "{device}");
    assert_eq!(storage["device"], device);
    let is_measured = prepared["limits"]["random_reads_per_s"].as_f64();
    let reason = prepared["not_measured"].as_str();
    match is_measured {
        Some(reads) => assert!(reads < 500.0, "{prepared}"),
        None => assert!(reason.unwrap().contains("fio"), "{prepared}"),
    }
    assert_eq!(document["plan"]["server"]["storage"], setting);
    // The limit belongs to the servers' device; its measured capacity without the limit is higher.
    let capacity = &storage["capacities"][device.trim_start_matches("/dev/")];
    assert_eq!(capacity["limit_per_s"], 400.0, "{storage}");
    let reads = capacity["read_per_s"].as_f64();
    assert!(reads.is_none_or(|reads| reads > 400.0), "{storage}");
    let is_known = reads.is_some() || prepared["no_capacity"].is_string();
    assert_eq!(is_known, is_measured.is_some(), "{storage}");
    // The observed device is the device of the data.
    let sources = std::fs::read_to_string(bench.path("r/metrics/host.csv")).unwrap();
    let name = device.trim_start_matches("/dev/");
    assert!(sources.contains(name), "no metrics of {name}");
    assert_gone(&bench, "r");
    let report = bench.dyno(&["report", "r", "--full"]).expect(0).stdout;
    assert!(report.contains(setting), "{report}");
}

#[test]
fn delayed_limit_is_not_recorded_for_the_whole_run() {
    let Some(bench) = preparing() else { return };
    let set = "server.storage=ext4 on loop:512MiB at 400 iops after 10m";
    let more = ["r", "--operations", "500", "--format", "json", "--set", set];
    let done = bench.dyno(&[&SMALL[..], &more].concat()).expect(0);
    let document = done.json();
    let storage = &document["environment"]["data_storage"];
    assert!(!storage.to_string().contains("limit_per_s"), "{storage}");
    assert_gone(&bench, "r");
}

#[test]
fn storage_is_a_setting_of_a_sweep_like_any_other() {
    let Some(bench) = preparing() else { return };
    let set = "server.storage=ext4 on loop:512MiB;xfs on loop:512MiB";
    let arguments = [
        "sweep",
        "a",
        "--records",
        "300",
        "--warmup",
        "0s",
        "--duration",
        "1s",
        "--set",
        set,
        "--repeat",
        "2",
        "--out",
        "x",
    ];
    let dry = bench.dyno(&[&arguments[..], &["--dry-run"]].concat()).expect(0);
    assert!(!bench.path("x").exists());
    for kind in ["ext4", "xfs"] {
        let mut lines = dry.stderr.lines();
        let is_made = |line: &str| line.contains(kind) && line.contains("512MiB");
        assert!(lines.any(is_made), "{}", dry.stderr);
    }
    knobs_of_storage_are_planned(&bench);
    let done = bench.dyno(&[&arguments[..], &["--full"]].concat()).expect(0);
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in points {
        assert_eq!(point["storage"]["setting"], point["settings"]["server.storage"]);
    }
    // Each setting is measured once: its points have identical figures.
    let limits = |setting: &str| {
        let of_setting = points.iter().filter(|point| point["storage"]["setting"] == setting);
        let mut limits = of_setting.map(|point| &point["storage"]["limits"]);
        let first = limits.next().unwrap();
        assert!(limits.all(|other| other == first), "{points:#?}");
        first
    };
    let [ext4, xfs] = ["ext4 on loop:512MiB", "xfs on loop:512MiB"].map(limits);
    assert_eq!(ext4.is_object(), xfs.is_object(), "{points:#?}");
    let preparing = done.stderr.matches("preparing storage").count();
    assert!((2..=4).contains(&preparing), "{}", done.stderr);
    assert!(done.stdout.contains("Storage"), "{}", done.stdout);
    assert_gone(&bench, "x");
}

/// A dry run of a search with the knob file from the documentation.
fn knobs_of_storage_are_planned(bench: &Bench) {
    let page = std::fs::read_to_string(project_dir().join("docs/tuning.md")).unwrap();
    let examples = page.split("```toml\n").skip(1);
    let mut examples = examples.map(|text| text.split_once("```").unwrap().0);
    let example = examples.find(|text| text.contains("server.storage")).unwrap();
    // The smallest size saves disk space in tests.
    let example = example.replace("4GiB", "512MiB");
    std::fs::write(bench.path("storage.toml"), example).unwrap();
    let set = "server.storage=ext4 on loop:512MiB";
    let search = ["tune", "a", "--server", "embedded", "--set", set];
    let knobs = ["--knobs", "./storage.toml", "--allow", "restart", "--dry-run"];
    let planned = bench.dyno(&[&search[..], &knobs].concat()).expect(0).stdout;
    for part in ["ext4 on loop:512MiB, xfs on loop:512MiB", "that changes file system"] {
        assert!(planned.contains(part), "{part}: {planned}");
    }
}

/// The run of each point, with the point.
fn runs_of_points(bench: &Bench, experiment: &str) -> Vec<(Value, Value)> {
    let read = |path: &Path| -> Value {
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let folder = bench.path(experiment);
    let document = read(&folder.join("experiment.json"));
    document["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| {
            let directory = point["directory"].as_str().unwrap();
            (point.clone(), read(&folder.join(directory).join("run.json")))
        })
        .collect()
}

#[test]
fn file_systems_are_compared_in_pairs_on_a_mongod() {
    let Some(bench) = preparing_for_any() else {
        return;
    };
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let sides = [("a", "xfs"), ("b", "ext4")];
    let [a, b] = sides.map(|(_, kind)| format!("server.storage={kind} on loop:1GiB"));
    let compared = ["ab", "storage-compare", "--set-a", &a, "--set-b", &b];
    let server = ["--mongod", mongod.to_str().unwrap(), "--clients", "4"];
    let short = ["--records", "300", "--warmup", "0s", "--duration", "2s"];
    let pairs = ["--min-pairs", "2", "--max-pairs", "2", "--max-steal"];
    let reported = ["100%", "--out", "x", "--full"];
    let done = bench.dyno(&[&compared[..], &server, &short, &pairs, &reported].concat()).expect(0);
    assert!(done.stdout.contains("loop:1GiB"), "{}", done.stdout);
    let runs = runs_of_points(&bench, "x");
    let of_side = |side: &str| runs.iter().filter(|(point, _)| point["side"] == side).count();
    assert_eq!((of_side("a"), of_side("b")), (2, 2));
    for (point, run) in &runs {
        let side = sides.iter().find(|(side, _)| point["side"] == *side);
        let (_, kind) = side.unwrap();
        let setting = format!("{kind} on loop:1GiB");
        assert_eq!(point["storage"]["setting"], *setting);
        let storage = &run["environment"]["data_storage"];
        assert_eq!(storage["filesystem"], *kind, "{storage}");
        let device = storage["device"].as_str().unwrap();
        assert!(device.starts_with("/dev/loop"), "{device}");
        // The journalled writes went to this device.
        assert_eq!(run["server"]["kind"], "mongod");
        let used = run["consumption"].as_array().unwrap().iter();
        let mut used = used.filter(|used| used["phase"] == "measure");
        let written = &used.next().unwrap()["device"];
        assert_eq!(written["names"], serde_json::json!([device["/dev/".len()..]]));
        assert!(written["written_bytes"].as_u64() > Some(0), "{written}");
    }
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["status"], "complete");
    let comparisons = document["answer"]["comparisons"].as_array().unwrap();
    assert!(comparisons.iter().all(|one| one["pairs"] == 2), "{comparisons:?}");
    assert_gone(&bench, "x");
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let Some(bench) = preparing() else { return };
    let device = Device::new(&bench);
    let set = device.setting("xfs");
    let arguments = [&SMALL[..], &["r", "--duration", "10m", "--set", &set]].concat();
    let mut child = bench.spawn(&arguments);
    wait_for_windows(&mut child, &bench.path("r"), 2);
    let process = child.id();
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_gone(&bench, "r");
    device.assert_empty();
    assert_eq!(groups(process), Vec::<String>::new());
}

#[test]
fn a_killed_run_leaves_nothing() {
    let Some(bench) = preparing() else { return };
    let device = Device::new(&bench);
    for set in
        [device.setting("ext4"), "server.storage=ext4 on loop:512MiB at 1000 iops".to_owned()]
    {
        let arguments = [&SMALL[..], &["r", "--duration", "10m", "--set", &set]].concat();
        let mut child = bench.spawn(&arguments);
        wait_for_windows(&mut child, &bench.path("r"), 2);
        let process = child.id();
        let has_limit = set.contains("iops");
        assert_eq!(!groups(process).is_empty(), has_limit, "{set}");
        signal(&child, "KILL");
        child.wait().unwrap();
        assert_gone(&bench, "r");
        device.assert_empty();
        assert_eq!(groups(process), Vec::<String>::new());
        std::fs::remove_dir_all(bench.path("r")).unwrap();
    }
}

#[test]
fn delayed_limit_starts_on_time() {
    let Some(bench) = preparing() else { return };
    let set = "server.storage=ext4 on loop:512MiB at 1000 iops after 4s";
    let arguments = [&SMALL[..], &["r", "--duration", "10m", "--set", set]].concat();
    let mut child = bench.spawn(&arguments);
    let process = child.id();
    wait_for_windows(&mut child, &bench.path("r"), 1);
    assert_eq!(groups(process), Vec::<String>::new());
    wait_for("the limit", || !groups(process).is_empty());
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_gone(&bench, "r");
    assert_eq!(groups(process), Vec::<String>::new());
}

#[test]
fn unusable_storage_is_refused_before_anything_is_done() {
    let Some(bench) = preparing() else { return };
    let device = Device::new(&bench);
    run("mkfs.ext4", &["-q", "-L", "thesis", &device.0]);
    for (setting, code, text) in [
        (device.setting("xfs"), 2, "`thesis`"),
        ("server.storage=xfs on /dev/null".to_owned(), 2, "block device"),
        ("server.storage=xfs on /dev/no-such".to_owned(), 2, "No such file"),
        ("server.storage=ext4 on loop:900TiB".to_owned(), 2, "900TiB"),
        ("server.storage=ext4 on loop:1MiB".to_owned(), 2, "`loop:1MiB`"),
        ("server.storage=ext4 at loop:1GiB".to_owned(), 2, "`ext4 on loop:4GiB`"),
    ] {
        for dry in [&["--dry-run"][..], &[]] {
            let arguments = [&SMALL[..], &["r", "--set", &setting], dry].concat();
            bench.dyno(&arguments).expect(code).says(text);
            assert!(!bench.path("r").exists());
        }
    }
    let label = run("wipefs", &["--parsable", &device.0]);
    assert!(label.contains("thesis"), "{label}");
}

#[test]
fn storage_without_room_is_refused_before_it_is_measured() {
    let Some(bench) = preparing() else {
        return;
    };
    let on = |verb: &str, size: &str, more: &[&str]| {
        let setting = format!("server.storage=ext4 on loop:{size}");
        let words = [verb, "a", "--server", "embedded", "--dry-run", "--set", &setting];
        bench.dyno(&[&words[..], more].concat())
    };
    // A document has about 1 kB.
    on("run", "512MiB", &["--records", "1000k"])
        .expect(2)
        .says("`server.storage`")
        .says("`--records`");
    let narrow = on("run", "1GiB", &["--records", "500k"]).expect(0);
    let warning = "warning: `server.storage` ";
    assert!(narrow.stderr.contains(warning), "{}", narrow.stderr);
    let wide = on("run", "2GiB", &["--records", "500k"]).expect(0);
    assert!(!wide.stderr.contains(warning), "{}", wide.stderr);
    on("soak", "1GiB", &["--rate", "100"]).expect(2).says("`--least-free`");
    on("soak", "1GiB", &["--rate", "100", "--least-free", "100MiB"]).expect(0);
}

#[test]
fn standing_servers_keep_their_storage_until_they_stop() {
    let Some(bench) = preparing() else { return };
    let device = Device::new(&bench);
    let set = device.setting("ext4");
    bench.dyno(&["server", "start", "--set", &set]).expect(0);
    let label = run("wipefs", &["--parsable", &device.0]);
    assert!(label.contains("dyno-storage"), "{label}");
    bench.dyno(&["server", "stop"]).expect(0);
    device.assert_empty();
}
