//! Exporter data: about a server in addition to its own data, or about its machine elsewhere.

use super::*;

/// `mongodb_exporter` metrics of the same server.
fn with_exporter(mut scene: Scene) -> Scene {
    let rename = |name: &str| -> &'static str { name.replace("server", "mongodb").leak() };
    let reported = scene.server.iter();
    let reported = reported.map(|(name, before, after)| (rename(name), *before, *after));
    scene.exporters.push(("mongodb", reported.collect()));
    scene
}

#[test]
fn server_that_is_reported_twice_counts_once() {
    // Each source reports 300 bytes an operation; the sum would exceed the bound.
    let mut small =
        well().with("cache.server.hit_ratio", 0.8).with("cache.server.read_bytes_per_s", 600e3);
    small.cache_bytes = 64 << 20;
    with_exporter(small.clone()).expect(&[]);
    let small = small.with("cache.server.read_bytes_per_s", 40e6);
    with_exporter(small.clone()).expect(&[Cause::CacheTooSmall]);
    // Without a direct connection the exporter's values decide.
    let mut by_exporter = with_exporter(small);
    by_exporter.server.clear();
    by_exporter.expect(&[Cause::CacheTooSmall]);
}

#[test]
fn server_exporter_does_not_count_as_a_machine() {
    let beside = well()
        .with("cpu.1.busy_ratio", 1.0)
        .with("cpu.all.busy_ratio", 0.85)
        .with("process.server.cpu_wait_ratio", 0.8);
    with_exporter(beside).expect(&[Cause::NoisyNeighbour]);
}

/// The server on another machine, where a `node_exporter` reports neither processes nor which disk holds the
/// data. The first file system by name is `/boot`.
fn elsewhere(mut scene: Scene) -> Scene {
    let of_client = ["process.client.", "cpu.", "network.", "memory."];
    let is_reported = |name: &str| {
        ["process.", "cgroup.", "storage."].iter().all(|group| !name.starts_with(group))
    };
    let mut node: Metrics = scene.host.clone();
    node.retain(|(name, _, _)| is_reported(name));
    for name in ["storage.sda1.free_bytes", "storage.sda15.free_bytes"] {
        node.push((name, 1e9, 1e9));
    }
    // A disk with occasional use that does not hold the data.
    node.push(("disk.nvme0n1.utilization_ratio", 0.01, 0.02));
    scene.host.retain(|(name, _, _)| of_client.iter().any(|group| name.starts_with(group)));
    scene.exporters.push(("node", node));
    scene.is_elsewhere = true;
    scene
}

#[test]
fn disk_of_a_remote_server_is_judged_without_a_marker() {
    let verdict = elsewhere(held_back()).judge();
    assert_eq!(verdict.causes[0].cause, Cause::DiskOperations, "{verdict:#?}");
    let series = &verdict.causes[0].evidence[0].series;
    assert!(series.contains(&"node/disk.sda.write_per_s".to_owned()), "{series:?}");
}

#[test]
fn data_on_an_uncounted_partition_are_attributed_to_its_disk() {
    let mut scene = held_back();
    let parts =
        [("storage.sda1.free_bytes", 1e11, 1e11), ("storage.sda1.holds_data_count", 1.0, 1.0)];
    scene.host.retain(|(name, _, _)| *name != "storage.sda.free_bytes");
    scene.host.extend(parts);
    scene.expect(&[Cause::DiskOperations]);
}

#[test]
fn all_parts_of_a_run_are_about_the_same_disk() {
    // The other disk is the busier one after the data disk's collapse.
    let mut scene = elsewhere(collapsed());
    let (_, node) = &mut scene.exporters[0];
    node.retain(|(name, _, _)| !name.starts_with("disk.nvme0n1"));
    node.push(("disk.nvme0n1.utilization_ratio", 0.05, 0.06));
    let verdict = scene.judge_with(&[20.0]);
    assert_eq!(verdict.causes[0].cause, Cause::BurstCredits, "{verdict:#?}");
}

#[test]
fn remote_server_is_full_or_idle_by_its_machines_figures() {
    let full = elsewhere(well()).with("cpu.all.busy_ratio", 0.99);
    full.expect(&[Cause::ServerCpu]);
    let starved = well()
        .closed()
        .with("process.client.workers_cpu_ratio", 0.6)
        .with("process.client.workers_wait_ratio", 0.38);
    elsewhere(starved).expect(&[Cause::Client]);
    elsewhere(well().closed()).expect(&[Cause::TooFewClients]);
    let mut far = elsewhere(well().closed());
    far.round_trip_us = Some(220.0);
    far.expect(&[Cause::RoundTrip]);
}

#[test]
fn busy_client_gives_no_cause_when_server_machine_is_unwatched() {
    let mut blind = elsewhere(well().closed().with("cpu.all.busy_ratio", 0.99));
    blind.exporters.clear();
    blind.expect(&[]);
}

#[test]
fn remote_server_is_full_or_idle_by_its_reported_process_cpu() {
    let alone = |user: f64| {
        let mut scene = elsewhere(well().closed());
        scene.exporters.clear();
        for (name, value) in [
            ("server_cpu.server.user_ratio", user),
            ("server_cpu.server.system_ratio", 0.2),
            ("server_cpu.server.cpus_count", 2.0),
        ] {
            scene.server.push((name, value, value));
        }
        scene
    };
    alone(1.7).expect(&[Cause::ServerCpu]);
    let verdict = alone(1.7).judge();
    let series = &verdict.causes[0].evidence[0].series;
    assert!(series.contains(&"server/server_cpu.server.user_ratio".to_owned()), "{series:?}");
    // Nothing is known about the disk, so nothing else follows.
    alone(0.3).expect(&[]);
    // A machine that is full of other work is not full of the server's work.
    let crowded = |user: f64| {
        let mut scene = elsewhere(well().closed()).with("cpu.all.busy_ratio", 0.99);
        scene.server.extend(alone(user).server.split_off(scene.server.len()));
        scene
    };
    crowded(0.9).expect(&[Cause::ServerCpu]);
    let verdict = crowded(0.3).judge();
    assert_ne!(verdict.causes.first().map(|one| one.cause), Some(Cause::ServerCpu));
    // Two CPUs that are nearly full, of eight.
    let mut wide = alone(1.7);
    wide.server.retain(|(name, _, _)| !name.ends_with("cpus_count"));
    wide.server.push(("server_cpu.server.cpus_count", 8.0, 8.0));
    wide.expect(&[]);
}
