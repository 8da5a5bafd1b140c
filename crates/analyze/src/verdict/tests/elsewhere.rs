//! What exporters tell, of the server beside what it tells itself, or of its machine, which is another one.

use super::*;

/// What a `mongodb_exporter` tells of the same server.
fn with_exporter(mut scene: Scene) -> Scene {
    let rename = |name: &str| -> &'static str { name.replace("server", "mongodb").leak() };
    let told = scene.server.iter();
    let told = told.map(|(name, before, after)| (rename(name), *before, *after));
    scene.exporters.push(("mongodb", told.collect()));
    scene
}

#[test]
fn a_server_that_is_told_twice_counts_once() {
    // Each tells 300 bytes an operation; both together were above the bound.
    let mut small = well()
        .with("cache.server.hit_ratio", 0.8)
        .with("cache.server.read_bytes_per_s", 600e3);
    small.cache_bytes = 64 << 20;
    with_exporter(small.clone()).expect(&[]);
    let small = small.with("cache.server.read_bytes_per_s", 40e6);
    with_exporter(small.clone()).expect(&[Cause::CacheTooSmall]);
    // Without the connection of its own the exporter decides.
    let mut by_exporter = with_exporter(small);
    by_exporter.server.clear();
    by_exporter.expect(&[Cause::CacheTooSmall]);
}

#[test]
fn an_exporter_of_a_server_is_no_machine() {
    let beside = well()
        .with("cpu.1.busy_ratio", 1.0)
        .with("cpu.all.busy_ratio", 0.85)
        .with("process.server.cpu_wait_ratio", 0.8);
    with_exporter(beside).expect(&[Cause::NoisyNeighbour]);
}
