//! The findings of a single run.

use super::*;
use crate::values::number;
use dyno_record::disk::DiskCapacity;
use dyno_record::model::Arrivals;
use dyno_record::statement;
use dyno_testkit::findings::{Reported, case};

type Run = (RunDocument, PhaseResponses);

pub(in crate::experiment) fn check(reported: &mut Reported) {
    let cases = [alarms(), results(), disks(), reach(), opportunities()];
    // A run that measured nothing has no findings.
    let rules = |(document, responses): &Run| {
        analyze(document, responses, 1).map_or(Vec::new(), |found| found.findings)
    };
    reported.check(rules, cases.into_iter().flatten().collect());
}

type Case = dyno_testkit::findings::Case<Run>;

fn with(change: impl FnOnce(&mut Run)) -> Run {
    let mut run = usual();
    change(&mut run);
    run
}

fn phase(run: &mut Run) -> &mut PhaseRecord {
    &mut run.0.phases[0]
}

/// Replaces a resource, or adds it.
fn busy(run: &mut Run, kind: ResourceKind, units: u64, busy_s: f64) {
    unwatched(run, kind);
    run.0.resources.push(resource(kind, units, busy_s));
}

fn unwatched(run: &mut Run, kind: ResourceKind) {
    run.0.resources.retain(|one| one.resource != kind);
}

fn server_unwatched(run: &mut Run) {
    unwatched(run, ResourceKind::ServerCpu);
}

fn server_busy(run: &mut Run, busy_s: f64) {
    busy(run, ResourceKind::ServerCpu, 2, busy_s);
}

fn disk_busy(run: &mut Run, busy_s: f64) {
    busy(run, ResourceKind::Disk, 1, busy_s);
}

/// One device that serves one request at a time, several, or an unknown number.
fn disk_of(run: &mut Run, busy_s: f64, serves_several: Option<bool>) {
    disk_busy(run, busy_s);
    let disk = run.0.resources.last_mut().expect("a disk");
    disk.disks = vec![DiskUse {
        device: "sda".into(),
        serves_several,
        busy_s,
        queued_s: Some(busy_s * 3.0),
        reads: Some(1000.0),
        writes: Some(0.0),
        ..DiskUse::default()
    }];
}

/// A disk with 33 reads per second and this measured capacity.
fn measured_disk(run: &mut Run, most_per_s: f64) {
    disk_of(run, 29.0, None);
    let most = DiskCapacity { read_per_s: Some(most_per_s), ..DiskCapacity::default() };
    let storage = &mut run.0.environment.data_storage;
    let storage = storage.get_or_insert_default();
    storage.capacities.insert("sda".into(), most);
}

/// The disk with or without flushes.
fn flushing_disk(run: &mut Run, flushes: f64) {
    measured_disk(run, 2000.0);
    let disk = run.0.resources.last_mut().expect("a disk");
    disk.disks[0].flushes = Some(flushes);
}

/// A disk with 33 reads and 33 writes per second and these measured capacities.
fn mixed_disk(run: &mut Run, read_per_s: f64, write_per_s: Option<f64>) {
    measured_disk(run, read_per_s);
    let disk = run.0.resources.last_mut().expect("a disk");
    disk.disks[0].writes = Some(1000.0);
    let storage = run.0.environment.data_storage.as_mut();
    let storage = storage.expect("a capacity");
    let capacity = storage.capacities.get_mut("sda");
    capacity.expect("a capacity").write_per_s = write_per_s;
}

/// A disk with few reads and writes, 33 flushes per second and this measured flush capacity.
fn measured_flushes(run: &mut Run, flush_per_s: f64) {
    mixed_disk(run, 2000.0, Some(2000.0));
    let disk = run.0.resources.last_mut().expect("a disk");
    disk.disks[0].flushes = Some(1000.0);
    let storage = run.0.environment.data_storage.as_mut();
    let storage = storage.expect("a capacity");
    let capacity = storage.capacities.get_mut("sda");
    capacity.expect("a capacity").flush_per_s = Some(flush_per_s);
}

/// A disk with these reads and writes per second, each limited to 50 for the servers. It has time left.
fn limited_disk(run: &mut Run, read_per_s: f64, write_per_s: f64) {
    disk_of(run, 3.0, None);
    let disk = run.0.resources.last_mut().expect("a disk");
    let duration_s = disk.duration_s;
    disk.disks[0].reads = Some(read_per_s * duration_s);
    disk.disks[0].writes = Some(write_per_s * duration_s);
    let limit = DiskCapacity { limit_per_s: Some(50.0), ..DiskCapacity::default() };
    let storage = &mut run.0.environment.data_storage;
    let storage = storage.get_or_insert_default();
    storage.capacities.insert("sda".into(), limit);
}

/// Two disks.
fn two_disks(run: &mut Run, other_s: f64) {
    disk_of(run, 12.0, Some(false));
    let disk = run.0.resources.last_mut().expect("a disk");
    let mut other = disk.disks[0].clone();
    other.device = "sdb".into();
    other.busy_s = other_s;
    disk.disks.push(other);
}

/// Windows with these numbers of operations.
fn windows_of(counts: impl Fn(u64) -> u64) -> PhaseResponses {
    let mut windows = windows(WINDOWS, RATE);
    for (place, window) in windows.iter_mut().enumerate() {
        window.succeeded = counts(place as u64);
        window.response_ns = vec![(200_000, window.succeeded)];
        window.response_sum_ns = u128::from(200_000 * window.succeeded);
    }
    PhaseResponses { operations: BTreeMap::new(), all: windows }
}

fn two_windows(run: &mut Run) {
    run.1.all.truncate(2);
}

fn alarms() -> Vec<Case> {
    let full = with(|run| {
        let said = statement!("client-cpus-busy", used = number(0.99), cpus = number(1.0));
        let kind = CaveatKind::GeneratorBottleneck;
        run.0.caveats.push(Caveat::of_run(kind, said));
    });
    vec![
        case("generator-bound", full).not_if("the client had time left", |run| {
            run.0.caveats.clear();
        }),
        case("operations-failed-in-run", with(|run| phase(run).failed = 1_000))
            .not_if("none failed", |run| phase(run).failed = 0),
        // Busy for longer than there was time.
        case("law-broken", with(|run| server_busy(run, 64.0)))
            .not_if("it was busy for less than that", |run| server_busy(run, 56.0)),
        case("law-broken", with(|run| phase(run).little_ratio = Some(1.2)))
            .not_if("the law holds", |run| phase(run).little_ratio = Some(1.0))
            .not_if("it was not counted", |run| phase(run).little_ratio = None),
    ]
}

fn results() -> Vec<Case> {
    let nobody = with(|run| run.0.plan["client"] = json!({"threads": 1, "clients": 0}));
    let too_much = with(|run| phase(run).offered_rate_per_s = Some(60_000.0));
    let late = with(|run| {
        let operation = phase(run).operations.get_mut("read").unwrap();
        operation.service_time_us.mean = 100.0;
    });
    vec![
        case("bench-did-not-keep-up", too_much)
            .not_if("it did", |run| {
                phase(run).offered_rate_per_s = Some(RATE as f64);
            })
            .not_if("nothing was offered", |run| {
                phase(run).offered_rate_per_s = None;
            }),
        case("bottleneck", nobody).not_if("no operation succeeded", |run| phase(run).succeeded = 0),
        case("bottleneck", usual())
            .not_if("nothing was busy", |run| {
                server_busy(run, 0.0);
                disk_busy(run, 0.0);
                phase(run).client = ClientUsage::default();
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("wait-before-send", late)
            .not_if("they were sent at once", |run| {
                let operation = phase(run).operations.get_mut("read").unwrap();
                operation.service_time_us = operation.response_time_us;
            })
            .not_if("they only became slower than in the whole phase", |run| {
                let operation = phase(run).operations.get_mut("read").unwrap();
                operation.response_time_us.mean = 100.0;
            }),
    ]
}

fn disks() -> Vec<Case> {
    let slow = with(|run| disk_of(run, 29.0, Some(false)));
    let fast = with(|run| disk_of(run, 29.0, Some(true)));
    vec![
        case("faster-disk", slow)
            .not_if("it had time left", |run| disk_of(run, 12.0, Some(false)))
            .not_if("it serves several at once", |run| {
                disk_of(run, 29.0, Some(true));
            })
            .not_without("name: disk", "not-watched", |run| {
                unwatched(run, ResourceKind::Disk);
            }),
        case("faster-disk", with(|run| measured_disk(run, 35.0)))
            .not_if("it could do much more", |run| measured_disk(run, 350.0)),
        case("faster-disk", with(|run| limited_disk(run, 49.0, 0.0)))
            .not_if("it may do more", |run| limited_disk(run, 20.0, 0.0)),
        case("disk-writes-limited", with(|run| limited_disk(run, 48.0, 49.0)))
            .not_if("the limit of reads is nearer", |run| {
                limited_disk(run, 49.0, 48.0);
            })
            .not_if("both are far from it", |run| limited_disk(run, 10.0, 20.0))
            .not_without("name: server CPU", "server-not-watched", server_unwatched)
            .not_without("name: disk", "not-watched", |run| {
                unwatched(run, ResourceKind::Disk);
            }),
        case("disk-without-bound", fast)
            .not_if("it serves one at a time", |run| {
                disk_of(run, 29.0, Some(false));
            })
            .not_if("it could not limit before the CPUs", |run| {
                disk_of(run, 15.0, Some(true));
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched)
            .not_without("name: disk", "not-watched", |run| {
                unwatched(run, ResourceKind::Disk);
            }),
        case("disk-without-bound", with(|run| disk_of(run, 29.0, None)))
            .not_if("it was measured", |run| measured_disk(run, 2000.0)),
        case("disk-known-in-part", with(|run| flushing_disk(run, 1000.0)))
            .not_if("it did none", |run| flushing_disk(run, 0.0))
            .not_without("name: server CPU", "server-not-watched", server_unwatched)
            .not_without("name: disk", "not-watched", |run| {
                unwatched(run, ResourceKind::Disk);
            }),
        case("disk-known-in-part", with(|run| measured_flushes(run, 35.0))).not_if(
            "its flush capacity is far higher",
            |run| {
                measured_flushes(run, 10_000.0);
            },
        ),
        case("disk-known-in-part", with(|run| mixed_disk(run, 60.0, Some(60.0)))).not_if(
            "both capacities are far higher",
            |run| {
                mixed_disk(run, 2000.0, Some(2000.0));
            },
        ),
        case("disk-known-in-part", with(|run| mixed_disk(run, 2000.0, None))).not_if(
            "writes were also measured",
            |run| {
                mixed_disk(run, 2000.0, Some(2000.0));
            },
        ),
        case("disks-used-unevenly", with(|run| two_disks(run, 1.0)))
            .not_if("all are used", |run| two_disks(run, 10.0))
            .not_without("name: disk", "not-watched", |run| {
                unwatched(run, ResourceKind::Disk);
            }),
    ]
}

fn reach() -> Vec<Case> {
    let arrivals = |dropped| Arrivals { due: 1_000, dropped, ..Arrivals::default() };
    let dropped = with(|run| phase(run).arrivals = Some(arrivals(20)));
    let drifting = with(|run| run.1 = windows_of(|place| 20_000 + 1_000 * place));
    let scattered = with(|run| run.1 = windows_of(|place| 10_000 + place * 7_919 % 31 * 2_000));
    vec![
        case("server-not-watched", with(server_unwatched))
            .not_if("it was watched", |run| server_busy(run, 56.0)),
        case("not-watched", usual()).not_if("everything was watched", |run| {
            busy(run, ResourceKind::HostCpu, 4, 66.0);
        }),
        case("arrivals-dropped-in-run", dropped).not_if("all were sent", |run| {
            phase(run).arrivals = None;
        }),
        case("unsteady", drifting).not_if("it was steady", |run| run.1 = usual().1).not_without(
            "steady-state",
            "not-watched",
            two_windows,
        ),
        case("rate-poorly-known", scattered)
            .not_if("it is well known", |run| run.1 = usual().1)
            .not_without("figures: [rate", "intervals-missing", two_windows),
        case("intervals-missing", run_of(windows(WINDOWS, 200)))
            .not_if("there are enough operations", |run| *run = usual()),
    ]
}

fn opportunities() -> Vec<Case> {
    // Two CPUs for both.
    let shared = with(|run| {
        run.0.environment.cpus = Some(2);
        server_busy(run, 46.0);
        busy(run, ResourceKind::HostCpu, 2, 55.0);
    });
    vec![
        case("more-cpus", usual())
            .not_if("they had time left", |run| server_busy(run, 30.0))
            .not_if("the schedule is the limit", |run| {
                phase(run).offered_rate_per_s = Some(RATE as f64);
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
        case("two-machines", shared)
            .not_if("the client needs next to nothing", |run| {
                phase(run).client.cpu_user_s = 0.1;
                phase(run).client.cpu_system_s = 0.1;
            })
            .not_without("name: all CPUs", "not-watched", |run| {
                unwatched(run, ResourceKind::HostCpu);
            }),
        case("more-clients-could-raise", with(|run| server_busy(run, 20.0)))
            .not_if("its CPUs are nearly used up", |run| server_busy(run, 56.0))
            .not_if("the schedule is the limit", |run| {
                phase(run).offered_rate_per_s = Some(RATE as f64);
            })
            .not_without("name: server CPU", "server-not-watched", server_unwatched),
    ]
}
