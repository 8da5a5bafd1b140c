//! Findings for a disk that serves `k` requests at once, on simulated disks with a known limit: `k / S`.

mod capacities;

use super::*;
use crate::student;
use dyno_record::disk::DiskCapacity;
use dyno_record::experiment::{DiskFigures, DiskLimits, LimitBasis, NoLimit};
use dyno_testkit::simulate::{Observation, Service, Source, Station, System, simulate};

/// Mean time of a request.
const REQUEST_S: f64 = 1e-3;
const WINDOW_S: f64 = 8.0;
const WINDOWS: usize = 20;

/// The idle device of these tests.
pub(super) fn idle_disk() -> DiskFigures {
    DiskFigures {
        device: "nvme0n1".into(),
        serves_several: Some(true),
        queue_mean: Some(0.0),
        read_per_s: Some(0.0),
        write_per_s: Some(0.0),
        read_bytes_per_s: Some(0.0),
        write_bytes_per_s: Some(0.0),
        ..DiskFigures::default()
    }
}

/// Clients that wait for two CPUs and for a disk with `k` servers, one read per operation.
fn seen(clients: u32, cpu_s: f64, k: u32, seed: u64) -> Observation {
    let station = |servers, mean_s| Station { servers, service: Service::Exponential(mean_s) };
    let system = System {
        source: Source::Closed { clients, think: Service::Constant(0.0) },
        stations: vec![station(2, cpu_s), station(k, REQUEST_S)],
        warm_up_s: 1.0,
        window_s: WINDOW_S,
    };
    simulate(&system, seed)
}

/// The rate with the interval from its windows.
fn rate_of(seen: &Observation) -> Figure {
    let windows = seen.response_by_interval(WINDOWS);
    let rates: Vec<f64> =
        windows.iter().map(|window| window.len() as f64 * WINDOWS as f64 / WINDOW_S).collect();
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let width = student::two_sided(0.95, n - 1.0) * (variance / n).sqrt();
    figure(mean, width / mean)
}

fn run(clients: u32, cpu_s: f64, k: u32, seed: u64, kind: Option<bool>) -> Figures {
    let seen = seen(clients, cpu_s, k, seed);
    let rate = rate_of(&seen);
    let requests_per_s = seen.served[1] as f64 / WINDOW_S;
    let mut run = figures(clients, None, rate.value, seen.mean_response_s() * 1e6);
    let disk = DiskFigures {
        serves_several: kind,
        busy_ratio: seen.occupied_s[1] / WINDOW_S,
        queue_mean: Some(seen.mean_present[1]),
        read_per_s: Some(requests_per_s),
        read_bytes_per_s: Some(requests_per_s * 4096.0),
        ..idle_disk()
    };
    run.resources = vec![
        resource(ResourceKind::ServerCpu, 2, seen.busy_s[0] / WINDOW_S),
        resource(ResourceKind::Disk, 1, disk.busy_ratio),
    ];
    run.demands = run
        .resources
        .iter()
        .filter_map(|resource| demand(resource, Quantity::exact(rate.value)))
        .collect();
    run.rate_per_s = rate;
    run.shares_cpus = false;
    run.disks = vec![disk];
    run
}

fn sweep(clients: &[u32], cpu_s: f64, k: u32, seed: u64, kind: Option<bool>) -> Experiment {
    let runs =
        clients.iter().map(|clients| run(*clients, cpu_s, k, seed + u64::from(*clients), kind));
    let names: Vec<String> = clients.iter().map(u32::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    answered(experiment((CLIENTS, &names), runs.collect()))
}

fn limits(experiment: &mut Experiment) -> DiskLimits {
    let limits = answer(experiment).disk.clone();
    limits.expect("a disk was watched")
}

/// A sweep that saturates a disk with four servers.
pub(super) fn saturated() -> Experiment {
    sweep(&up_to(32), 10e-6, 4, 1, Some(true))
}

/// Levels up to this many clients, each with twice as many as the one before.
fn up_to(most: u32) -> Vec<u32> {
    (0..).map(|power| 1 << power).take_while(|clients| *clients <= most).collect()
}

#[test]
fn limit_shown_by_levels_is_within_its_interval() {
    for k in [1, 4, 32] {
        for seed in 0..3 {
            let mut sweep = sweep(&up_to(k * 8), 10e-6, k, seed * 10_000, Some(true));
            let limit = limits(&mut sweep).known.expect("a limit shown by the levels");
            assert_eq!(limit.basis, LimitBasis::Saturated);
            let truth = f64::from(k) / REQUEST_S;
            let bound = answer(&mut sweep).bound_per_s.expect("a bound");
            let (low, high) = bound.low.zip(bound.high).expect("an interval");
            assert!(low <= truth && truth <= high, "{k} servers: {bound:?}");
            assert!((high - low) / truth < 0.4, "{k} servers: {bound:?}");
            assert_eq!(limits(&mut sweep).unknown, None);
            let said = the(&sweep, "bottleneck (");
            let reported = reported(&said.evidence).join("; ");
            assert!(reported.contains("disk-saturated"), "{reported}");
        }
    }
}

#[test]
fn always_busy_disk_far_from_its_limit_bounds_nothing() {
    let mut sweep = sweep(&up_to(8), 10e-6, 32, 1, Some(true));
    let truth = 32.0 / REQUEST_S;
    let found = limits(&mut sweep);
    assert_eq!(found.known, None);
    let unknown = found.unknown.expect("a used disk");
    assert_eq!(unknown.reason, NoLimit::ServesSeveral);
    assert!(unknown.may_be_first && unknown.disk.busy_ratio > 0.99, "{unknown:?}");
    // Its busy time per operation would be a bound far below the true one.
    let demands = answer(&mut sweep).levels[3].demands.clone();
    let name = resource_name(ResourceKind::Disk);
    let of_disk = demands.iter().find(|demand| demand.name == name);
    let wrong = of_disk.expect("a watched disk").saturation_rate_per_s().value;
    assert!(wrong < truth / 3.0, "{wrong}");
    let bound = answer(&mut sweep).bound_per_s.expect("the CPUs' bound");
    assert!(bound.value > truth, "{bound:?}");
    the(&sweep, "disk-without-bound");
    let bottleneck = the(&sweep, "bottleneck (").statement.to_string();
    assert!(bottleneck.contains("is_of_known: true"), "{bottleneck}");
    assert!(!bottleneck.contains("name: disk"), "{bottleneck}");
}

#[test]
fn levels_limited_by_other_resources_do_not_show_a_disk_limit() {
    // Two CPUs with 400 µs end at 5,000/s; a disk with 8 servers at 8,000/s has a request nearly all the time.
    for seed in 0..3 {
        let mut sweep = sweep(&up_to(64), 400e-6, 8, seed * 1000, Some(true));
        assert_eq!(limits(&mut sweep).known, None);
        let bound = answer(&mut sweep).bound_per_s.expect("the CPUs' bound");
        assert!((bound.value / 5_000.0 - 1.0).abs() < 0.03, "{bound:?}");
    }
}

#[test]
fn one_at_a_time_device_is_bounded_by_its_busy_time() {
    for clients in [2, 4, 16] {
        let mut sweep = sweep(&[1, clients], 100e-6, 1, 7, Some(false));
        let limit = limits(&mut sweep).known.expect("a disk with one server");
        assert_eq!(limit.basis, LimitBasis::OneAtATime);
        let bound = answer(&mut sweep).bound_per_s.expect("a bound");
        assert!((bound.value * REQUEST_S - 1.0).abs() < 0.03, "{bound:?}");
    }
    // This is not known.
    let mut unreported = sweep(&[1, 2], 100e-6, 1, 7, None);
    let unknown = limits(&mut unreported).unknown.expect("a used disk");
    assert_eq!(unknown.reason, NoLimit::KindUnknown);
}

#[test]
fn measured_device_capacity_bounds_the_rate() {
    let at = |capacity: DiskCapacity| {
        let mut run = run(4, 10e-6, 8, 3, Some(true));
        run.disks[0].write_per_s = Some(0.0);
        run.disks[0].capacity = Some(capacity);
        let mut sweep = answered(experiment((CLIENTS, &["4"]), vec![run]));
        let limit = limits(&mut sweep).known?;
        assert_eq!(limit.basis, LimitBasis::Measured);
        Some(1.0 / limit.demand.demand_s)
    };
    let reads = DiskCapacity { read_per_s: Some(8_000.0), ..DiskCapacity::default() };
    let bound = at(reads).expect("a bound");
    assert!((bound / 8_000.0 - 1.0).abs() < 1e-9, "{bound}");
    // The bytes are exhausted before the requests.
    let bytes = DiskCapacity { read_bytes_per_s: Some(4096.0 * 5_000.0), ..reads };
    let bound = at(bytes).expect("measured capacities");
    assert!((bound / 5_000.0 - 1.0).abs() < 1e-9, "{bound}");
    let writes = DiskCapacity { write_per_s: Some(8_000.0), ..DiskCapacity::default() };
    assert_eq!(at(writes), None, "it did reads, which were not measured");
}

#[test]
fn capacity_error_is_part_of_the_bounds_error() {
    let bound = |uncertainty_ratio| {
        let mut run = run(4, 10e-6, 8, 3, Some(true));
        run.disks[0].capacity = Some(DiskCapacity {
            read_per_s: Some(8_000.0),
            uncertainty_ratio,
            ..DiskCapacity::default()
        });
        let mut sweep = answered(experiment((CLIENTS, &["4"]), vec![run]));
        let demand = limits(&mut sweep).known.expect("a measured capacity").demand;
        demand.uncertainty_ratio
    };
    let without = bound(None);
    let expected = (without.powi(2) + 0.25_f64.powi(2)).sqrt();
    assert!((bound(Some(0.25)) - expected).abs() < 1e-9, "{without}");
}

/// Disk findings with a limit of 5,000 reads and 5,000 writes per second, for these rates.
fn limited(read_per_s: f64, write_per_s: f64, most: DiskCapacity) -> (Experiment, DiskLimits) {
    let mut run = run(4, 10e-6, 8, 3, Some(true));
    let rate_per_s = run.rate_per_s.value;
    let counted_per_s = run.disks[0].read_per_s.expect("reads");
    let disk = &mut run.disks[0];
    disk.read_per_s = Some(read_per_s * counted_per_s / rate_per_s);
    disk.write_per_s = Some(write_per_s * counted_per_s / rate_per_s);
    // Throttled requests do not keep the device busy.
    disk.busy_ratio /= 1e3;
    for demand in run.demands.iter_mut().skip(1) {
        demand.demand_s /= 1e3;
    }
    disk.capacity = Some(DiskCapacity { limit_per_s: Some(5_000.0), ..most });
    let mut sweep = answered(experiment((CLIENTS, &["4"]), vec![run]));
    let found = limits(&mut sweep);
    (sweep, found)
}

#[test]
fn control_group_limit_bounds_the_rate_by_the_reads() {
    let unmeasured = DiskCapacity::default();
    let (mut sweep, found) = limited(4_000.0, 3_000.0, unmeasured);
    let limit = found.known.expect("a limit");
    assert_eq!(limit.basis, LimitBasis::Limited);
    // Reads and writes have separate limits.
    let rate = answer(&mut sweep).levels[0].rate_per_s.value;
    let bound = answer(&mut sweep).bound_per_s.expect("a bound");
    assert!((bound.value / (rate * 5.0 / 4.0) - 1.0).abs() < 0.03, "{bound:?}");
    // The device itself was not measured, and cannot limit first, as it is idle.
    let unknown = found.unknown.expect("the device was not measured");
    assert!(!unknown.may_be_first, "{unknown:?}");
    let said = the(&sweep, "bottleneck (");
    let reported = reported(&said.evidence).join("; ");
    assert!(reported.contains("disk-was-limited"), "{reported}");
    // The device itself has a lower capacity.
    let slow =
        DiskCapacity { read_per_s: Some(4_500.0), write_per_s: Some(100_000.0), ..unmeasured };
    let limit = limited(4_000.0, 0.0, slow).1.known;
    assert_eq!(limit.expect("a measured capacity").basis, LimitBasis::Measured);
    let fast =
        DiskCapacity { read_per_s: Some(50_000.0), write_per_s: Some(100_000.0), ..unmeasured };
    let limit = limited(4_000.0, 0.0, fast).1.known;
    assert_eq!(limit.expect("a limit").basis, LimitBasis::Limited);
}

#[test]
fn possible_kernel_writes_bound_nothing_and_are_reported() {
    let (mut sweep, found) = limited(2_000.0, 6_000.0, DiskCapacity::default());
    let unknown = found.unknown.expect("the writes are more than the reads");
    assert_eq!(unknown.reason, NoLimit::WritesLimited);
    assert!(unknown.may_be_first);
    // The bound by the reads remains valid.
    let rate = answer(&mut sweep).levels[0].rate_per_s.value;
    let demand = found.known.expect("reads are limited").demand;
    let bound = 1.0 / demand.demand_s;
    assert!((bound / (rate * 5.0 / 2.0) - 1.0).abs() < 0.03, "{bound}");
    the(&sweep, "disk-writes-limited");
    let bottleneck = the(&sweep, "bottleneck (").statement.to_string();
    assert!(bottleneck.contains("is_of_known: true"), "{bottleneck}");
}

#[test]
fn search_runs_saturate_a_disk_like_sweep_levels() {
    use crate::experiment::xmax;
    use dyno_record::experiment::{ClientsEnd, ClientsResult};
    let answer = |clients: &[u32], k: u32| {
        let runs = clients
            .iter()
            .map(|clients| run(*clients, 10e-6, k, 10_000 + u64::from(*clients), None));
        let mut runs: Vec<Figures> = runs.collect();
        // A run with an offered rate does not belong to a number of clients.
        let mut offered = run(64, 10e-6, k, 5, None);
        offered.offered_rate_per_s = Some(1_000.0);
        offered.disks[0].read_per_s = Some(100_000.0);
        let best = runs.last().cloned().expect("runs");
        let search = ClientsResult {
            clients: best.clients,
            rate_per_s: best.rate_per_s.value,
            counted_runs: 1,
            estimate_per_s: None,
            enough_clients: best.clients,
            end: ClientsEnd::Plateau,
            tried: Vec::new(),
        };
        runs.push(offered);
        let all: Vec<&Figures> = runs.iter().collect();
        xmax::answer(search, &[&best], &all, Vec::new(), Vec::new())
    };
    for k in [1, 4, 32] {
        let found = answer(&up_to(k * 8), k);
        let limit = found.disk.and_then(|disk| disk.known);
        assert_eq!(limit.expect("a limit shown by the runs").basis, LimitBasis::Saturated);
        let truth = f64::from(k) / REQUEST_S;
        let bound = found.bound_per_s.expect("a bound");
        let (low, high) = bound.low.zip(bound.high).expect("an interval");
        assert!(low <= truth && truth <= high, "{k} servers: {bound:?}");
        let first = found.bottleneck.expect("a known bottleneck");
        assert_eq!(first.name, resource_name(ResourceKind::Disk));
    }
    // A single load, or loads far below the limit, show nothing.
    for (clients, k) in [(&[32][..], 4), (&up_to(8), 32)] {
        let found = answer(clients, k).disk.expect("a watched disk");
        assert_eq!(found.known, None);
        let unknown = found.unknown.expect("a used disk");
        assert_eq!(unknown.reason, NoLimit::KindUnknown);
    }
}

#[test]
fn other_request_mix_or_same_queue_is_not_a_plateau() {
    let is_known = |change: fn(&mut [&mut DiskFigures])| {
        let mut sweep = sweep(&up_to(32), 10e-6, 4, 1, Some(true));
        let runs = sweep.points.iter_mut();
        let runs = runs.filter_map(|point| point.figures.as_mut());
        let mut disks: Vec<&mut DiskFigures> = runs.map(|run| &mut run.disks[0]).collect();
        change(&mut disks);
        let mut sweep = answered(sweep);
        limits(&mut sweep).known.is_some()
    };
    assert!(is_known(|_| ()));
    assert!(!is_known(|disks| {
        let last = disks.last_mut().expect("levels");
        last.write_per_s = last.read_per_s.map(|reads| reads / 2.0);
        last.read_per_s = last.write_per_s;
    }));
    assert!(!is_known(|disks| {
        let last = disks.last_mut().expect("levels");
        last.read_bytes_per_s = last.read_bytes_per_s.map(|bytes| bytes * 2.0);
    }));
    // The queue does not grow.
    assert!(!is_known(|disks| {
        for disk in disks.iter_mut() {
            disk.queue_mean = Some(12.0);
        }
    }));
}

/// Levels at a plateau, with these queues and requests per second.
fn plateau(levels: [(f64, f64); 3]) -> Vec<Figures> {
    let runs = [8, 16, 32].into_iter().zip(levels);
    let runs = runs.map(|(clients, (queue, requests_per_s))| {
        let mut run = run(clients, 10e-6, 4, 1, Some(true));
        run.rate_per_s = figure(4_000.0, 0.001);
        run.disks[0].queue_mean = Some(queue);
        run.disks[0].read_per_s = Some(requests_per_s);
        run.disks[0].read_bytes_per_s = Some(requests_per_s * 4096.0);
        run
    });
    runs.collect()
}

#[test]
fn plateau_needs_twice_the_queue_and_limits_at_highest_level() {
    let most = |levels| {
        let clients = (CLIENTS, &["8", "16", "32"][..]);
        let mut sweep = answered(experiment(clients, plateau(levels)));
        let limit = limits(&mut sweep).known?;
        limit.requests_per_s.map(|most| most.value)
    };
    let levels = [(10.0, 4_000.0), (15.0, 4_020.0), (21.0, 4_010.0)];
    assert_eq!(most(levels), Some(4_020.0));
    let levels = [(10.0, 4_000.0), (15.0, 4_000.0), (19.0, 4_000.0)];
    assert_eq!(most(levels), None);
}

#[test]
fn levels_of_another_storage_show_no_saturation_of_this_one() {
    let levels = [(10.0, 4_000.0), (15.0, 4_020.0), (21.0, 4_010.0)];
    let values = ["ext4 on /dev/sdb", "xfs on /dev/sdb", "btrfs on /dev/sdb"];
    let sweep = experiment(("server.storage", &values), plateau(levels));
    assert_eq!(limits(&mut answered(sweep)).known, None);
}

#[test]
fn device_figures_cover_all_runs_of_a_level() {
    let mut runs = plateau([(10.0, 4_000.0), (20.0, 2_000.0), (30.0, 3_000.0)]);
    runs.iter_mut().for_each(|run| run.clients = 8);
    let mut sweep = answered(experiment((CLIENTS, &["8", "8", "8"]), runs));
    let disk = answer(&mut sweep).levels[0].disks[0].clone();
    assert_eq!((disk.queue_mean, disk.read_per_s), (Some(20.0), Some(3_000.0)));
}

#[test]
fn most_used_of_several_devices_limits() {
    let mut run = run(8, 10e-6, 1, 5, Some(false));
    let other = DiskFigures {
        device: "nvme1n1".into(),
        busy_ratio: run.disks[0].busy_ratio / 4.0,
        ..run.disks[0].clone()
    };
    run.disks.push(other);
    let mut sweep = answered(experiment((CLIENTS, &["8"]), vec![run]));
    let found = limits(&mut sweep);
    let limit = found.known.expect("a limit");
    assert_eq!((found.devices, limit.disk.device.as_str()), (2, "nvme0n1"));
    let uneven = the(&sweep, "disks-used-unevenly").statement.to_string();
    assert!(uneven.contains("device: nvme0n1"), "{uneven}");
}

#[test]
fn busy_time_of_a_parallel_disk_explains_no_difference() {
    use crate::experiment::demands::ratios;
    let pair = |kind| {
        let runs = [run(8, 10e-6, 1, 5, kind), run(8, 10e-6, 1, 6, kind)];
        let found = ratios(&[[&runs[0], &runs[1]]]);
        let names: Vec<String> = found.into_iter().map(|one| one.name).collect();
        names
    };
    assert_eq!(pair(Some(false)), ["server CPU", "disk"]);
    assert_eq!(pair(Some(true)), ["server CPU"]);
    assert_eq!(pair(None), ["server CPU"]);
}
