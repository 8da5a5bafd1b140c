use super::testing::{names, value};
use super::*;
use crate::host::tests::Fixture;
use std::time::{Duration, Instant};

fn subject() -> HostSubject {
    HostSubject {
        hostname: "bench-1".to_owned(),
        of_server: true,
        processes: vec![("client".to_owned(), std::process::id())],
        ports: Vec::new(),
        unknown_process: None,
        data_folders: vec![PathBuf::from("/")],
        unknown_folder: None,
    }
}

#[test]
fn this_machine_reports_all_topics() {
    let mut host = Host::new(Path::new("/"), subject());
    let origin = Instant::now();
    let mut read = || host.read(origin.elapsed().as_secs_f64()).unwrap();
    read();
    // A share of CPU time is known once a tick has passed on that core.
    let deadline = origin + Duration::from_secs(20);
    let mut reported = read();
    while value(&reported, "cpu.0.busy_ratio").is_none() && Instant::now() < deadline {
        reported = read();
    }
    for name in [
        "cpu.0.busy_ratio",
        "cpu.all.busy_ratio",
        "memory.available_bytes",
        "load.runnable_count",
        "load.context_switches_per_s",
        "paging.in_bytes_per_s",
        "process.client.cpu_ratio",
        "process.client.resident_bytes",
        "process.client.open_files_count",
        "process.client.voluntary_switches_per_s",
        "tcp.established_count",
    ] {
        let found = value(&reported, name);
        assert!(found.is_some_and(|value| value >= 0.0), "{name} {found:?}");
    }
    // The root of a machine may not be on a disk; it reports that then.
    let has_disks = !names(&reported, "disk.").is_empty();
    assert!(has_disks || reported.missing.iter().any(|(part, _)| *part == "storage"));
    let mut all = names(&reported, "");
    all.dedup();
    assert_eq!(all.len(), reported.values.len(), "a name is reported twice");
    for (id, value) in &reported.values {
        let is_share = id.name().ends_with("_ratio") && id.group() != "process";
        assert!(value.is_finite() && *value >= 0.0, "{id} {value}");
        assert!(!is_share || id.group() == "cgroup" || *value <= 1.0, "{id} {value}");
    }
}

#[test]
fn every_name_ends_in_its_unit() {
    let units = ["_ratio", "_bytes", "_per_s", "_count", "_hz", "_ms", "celsius"];
    let mut host = Host::new(Path::new("/"), subject());
    host.read(0.0).unwrap();
    let reported = host.read(100.0).unwrap();
    for (id, _) in &reported.values {
        assert!(units.iter().any(|unit| id.name().ends_with(unit)), "{id}");
    }
}

#[test]
fn failing_part_does_not_affect_the_others() {
    let fixture =
        Fixture::new().with("proc/stat", "garbage\n").with("proc/meminfo", "MemTotal: 4 kB\n");
    let mut host = Host::new(fixture.root(), HostSubject::default());
    let reported = host.read(1.0).unwrap();
    assert_eq!(value(&reported, "memory.total_bytes"), Some(4096.0));
    let mut parts: Vec<&str> = reported.missing.iter().map(|(part, _)| *part).collect();
    parts.sort_unstable();
    assert_eq!(
        parts,
        [
            "cpu",
            "disk",
            "frequency",
            "interrupts",
            "load",
            "load_average",
            "network",
            "paging",
            "pressure",
            "softirq",
            "tcp",
            "temperature"
        ]
    );
}

#[test]
fn silent_machine_is_an_error_but_is_still_described() {
    let fixture = Fixture::new();
    let mut host = Host::new(fixture.root(), subject());
    let description = host.description();
    assert_eq!(description.name, "host");
    assert_eq!(description.kind, SourceKind::Host);
    assert_eq!(description.subject, "bench-1");
    assert!(description.of_server);
    assert!(host.read(1.0).is_err());
}
