//! Disk limits: whether a disk limits a rate.
//!
//! The kernel counts the time during which a device had a request. If the device serves one request at a time,
//! this is its busy time: the busy time per operation is the service demand `D`, and `1 / D` bounds the rate. A
//! device that serves several requests at once is busy all the time long before it is saturated, so its busy
//! time bounds nothing. Its limit is known
//!
//! - if it was measured alone, or limited by a control group, or
//! - if levels of a sweep show it: the queue at the device grows from level to level, and its requests per second do not.
//!
//! Either gives requests per second `C`, and the bound `C / V` with `V` requests per operation. Reads and
//! writes are measured separately, and it is unknown whether they share the device's time: an operation needs
//! at least the larger of the two shares. Flushes bound no rate, because operations that wait at the same time
//! share them, and share more at a higher load. Their share of the device's flush capacity grows at most in
//! proportion to the rate, so they are known not to limit first where that share is small. Otherwise there is
//! no bound. Even then, such a device takes at least as much as one that serves one request at a time.

use super::figures::resource_name;
use crate::estimate::combined;
use dyno_record::disk::DiskCapacity;
use dyno_record::experiment::{
    Demand, DiskFigures, DiskLimit, DiskLimits, DiskWithoutLimit, Figure, Figures, Level,
    LimitBasis, NoLimit,
};
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse, RunDocument};
use std::collections::BTreeMap;

/// Minimum share of time in which a saturated device has a request.
const SATURATED_BUSY_RATIO: f64 = 0.9;
/// Number of levels that show saturation.
const SATURATED_LEVELS: usize = 3;
/// Minimum factor by which the queue grows over these levels.
const QUEUE_GROWTH: f64 = 2.0;
/// Maximum growth of the requests per second with the queue, as an exponent: 0 is none, 1 is proportional. The
/// upper end of the interval must be below it.
const MOST_ELASTICITY: f64 = 0.15;
/// Maximum difference of the read share between these levels: another mixture has another limit.
const MIXTURE_RATIO: f64 = 0.1;
/// Maximum factor between request sizes.
const SIZE_FACTOR: f64 = 1.5;

/// The devices of all machines in the measure phase of a run.
pub(super) fn of_run(document: &RunDocument) -> Vec<DiskFigures> {
    let is_asked = |one: &&ResourceUse| {
        one.phase == PhaseKind::Measure
            && one.resource == ResourceKind::Disk
            && one.duration_s > 0.0
    };
    document.resources.iter().filter(is_asked).flat_map(|used| of_use(document, used)).collect()
}

fn of_use<'a>(
    document: &'a RunDocument,
    used: &'a ResourceUse,
) -> impl Iterator<Item = DiskFigures> + 'a {
    let per_s = |count: Option<f64>| count.map(|count| count / used.duration_s);
    used.disks.iter().map(move |disk| DiskFigures {
        host: disk.host.clone(),
        device: disk.device.clone(),
        serves_several: disk.serves_several,
        // Its counters are read slightly outside the phase.
        busy_ratio: (disk.busy_s / used.duration_s).min(1.0),
        queue_mean: per_s(disk.queued_s),
        read_per_s: per_s(disk.reads),
        write_per_s: per_s(disk.writes),
        flush_per_s: per_s(disk.flushes),
        read_bytes_per_s: per_s(disk.read_bytes),
        write_bytes_per_s: per_s(disk.write_bytes),
        capacity: capacity(document, disk.host.as_deref(), &disk.device),
    })
}

fn capacity(document: &RunDocument, host: Option<&str>, device: &str) -> Option<DiskCapacity> {
    let environment = match host {
        None => Some(&document.environment),
        Some(host) => {
            let server =
                document.fleet.as_ref()?.servers.iter().find(|server| server.host == host)?;
            server.environment.as_ref()
        }
    };
    let storage = environment?.data_storage.as_ref()?;
    storage.capacities.get(device).copied()
}

/// The means over runs, for the devices that all runs have.
pub(super) fn of_runs(runs: &[&Figures]) -> Vec<DiskFigures> {
    let first = runs.first().map_or(&[][..], |run| &run.disks);
    first.iter().filter_map(|disk| mean(disk, runs)).collect()
}

fn mean(disk: &DiskFigures, runs: &[&Figures]) -> Option<DiskFigures> {
    let of_run = |run: &&Figures| run.disks.iter().find(|one| one.is_same(disk)).cloned();
    let all: Vec<DiskFigures> = runs.iter().map(of_run).collect::<Option<_>>()?;
    let mean = |of: fn(&DiskFigures) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = all.iter().map(of).collect::<Option<_>>()?;
        Some(crate::mean(&values))
    };
    Some(DiskFigures {
        busy_ratio: mean(|one| Some(one.busy_ratio))?,
        queue_mean: mean(|one| one.queue_mean),
        read_per_s: mean(|one| one.read_per_s),
        write_per_s: mean(|one| one.write_per_s),
        flush_per_s: mean(|one| one.flush_per_s),
        read_bytes_per_s: mean(|one| one.read_bytes_per_s),
        write_bytes_per_s: mean(|one| one.write_bytes_per_s),
        ..disk.clone()
    })
}

/// The device that had requests for the longest time.
pub(super) fn busiest(disks: &[DiskFigures]) -> Option<&DiskFigures> {
    disks.iter().max_by(|a, b| a.busy_ratio.total_cmp(&b.busy_ratio))
}

/// Whether the disk's busy time is a service demand: the busiest device serves one request at a time.
pub(super) fn is_one_server(disks: &[DiskFigures]) -> bool {
    busiest(disks).is_some_and(|disk| disk.serves_several == Some(false))
}

/// Figures that were measured together.
pub(super) struct At<'a> {
    pub(super) rate_per_s: f64,
    pub(super) disks: &'a [DiskFigures],
    /// Demand per operation by resource; for a disk, the time in which the busiest device had requests.
    pub(super) demands: &'a [Demand],
    /// The CPUs that operations wait for.
    pub(super) cpus: &'a [Demand],
}

/// Device figures at one load.
pub(super) struct Loaded {
    rate_per_s: Figure,
    disks: Vec<DiskFigures>,
}

impl Loaded {
    /// The device figures at the levels of a sweep.
    pub(super) fn of_levels(levels: &[Level]) -> Vec<Loaded> {
        let loaded =
            |level: &Level| Loaded { rate_per_s: level.rate_per_s, disks: level.disks.clone() };
        levels.iter().map(loaded).collect()
    }

    /// The device figures of the closed-loop runs of a search, by their number of clients.
    pub(super) fn of_runs(runs: &[&Figures]) -> Vec<Loaded> {
        let mut by_clients: BTreeMap<u32, Vec<&Figures>> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.offered_rate_per_s.is_none()) {
            by_clients.entry(run.clients).or_default().push(run);
        }
        let loaded = |runs: Vec<&Figures>| Loaded {
            rate_per_s: mean_rate_per_s(&runs),
            disks: of_runs(&runs),
        };
        by_clients.into_values().map(loaded).collect()
    }
}

/// The mean over runs; its uncertainty is the largest of the single uncertainties and the spread.
fn mean_rate_per_s(runs: &[&Figures]) -> Figure {
    let rates = runs.iter().map(|run| run.rate_per_s.value);
    let mean = rates.clone().sum::<f64>() / runs.len() as f64;
    let apart = rates.map(|rate| (rate / mean - 1.0).abs());
    let errors = runs.iter().map(|run| run.rate_per_s.quantity().uncertainty_ratio);
    let error = apart.chain(errors).fold(0.0, f64::max);
    Figure { value: mean, low: Some(mean * (1.0 - error)), high: Some(mean * (1.0 + error)) }
}

/// The limits that the disks set. Several loads may show saturation. `None` if no disk was watched or active.
pub(super) fn limits(at: &At<'_>, loads: &[Loaded]) -> Option<DiskLimits> {
    let name = resource_name(ResourceKind::Disk);
    let whole = at.demands.iter().find(|demand| demand.name == name && demand.demand_s > 0.0)?;
    // The rate of the exact time in which the devices were counted, which may include a warm-up.
    let counted = busiest(at.disks).map(|disk| disk.busy_ratio / whole.demand_s);
    let rate_per_s = counted.filter(|rate| rate.is_finite());
    let rate_per_s = rate_per_s.unwrap_or(at.rate_per_s);
    let all: Vec<Judged> = if at.disks.is_empty() {
        let unnamed = DiskFigures {
            busy_ratio: (whole.per_server_s() * rate_per_s).min(1.0),
            ..DiskFigures::default()
        };
        vec![Judged::unknown(unnamed)]
    } else {
        at.disks.iter().map(|disk| judge(disk, whole, rate_per_s, loads)).collect()
    };
    let cpus_s = at.cpus.iter().map(Demand::per_server_s);
    let cpus_s = cpus_s.fold(0.0, f64::max);
    // A minimum demand locates the limit only if no other resource needs more.
    let counts = |one: &&Judged| {
        let limit = one.limit.as_ref();
        limit.is_some_and(|limit| !one.is_part() || limit.demand.per_server_s() >= cpus_s)
    };
    let known = all.iter().filter(counts).filter_map(|one| one.limit.clone());
    let known = known.max_by(|a, b| a.demand.demand_s.total_cmp(&b.demand.demand_s));
    let known_s = known.as_ref().map_or(0.0, |limit| limit.demand.per_server_s());
    let is_first = |one: &Judged| {
        let limit = one.limit.as_ref();
        limit.is_some_and(|limit| limit.demand.per_server_s() >= cpus_s.max(known_s))
    };
    let without = all.iter().flat_map(|one| {
        let is_first = is_first(one);
        // Possible sharing between reads and writes does not matter if the device limits first even without it.
        one.open.iter().filter(move |(reason, _)| !is_of_sharing(*reason) || !is_first).map(
            move |(reason, most_ratio)| {
                let found = DiskWithoutLimit {
                    disk: one.disk.clone(),
                    reason: *reason,
                    may_be_first: most_ratio / rate_per_s >= cpus_s.max(known_s),
                };
                (*most_ratio, found)
            },
        )
    });
    let unknown = without.max_by(|a, b| a.0.total_cmp(&b.0));
    Some(DiskLimits {
        devices: u32::try_from(at.disks.len()).unwrap_or(u32::MAX),
        known,
        unknown: unknown.map(|(_, found)| found),
    })
}

/// The known and unknown parts of a device's limit.
struct Judged {
    disk: DiskFigures,
    limit: Option<DiskLimit>,
    /// Reasons for unknown parts of the limit, each with the maximum share of the capacity that was used.
    open: Vec<(NoLimit, f64)>,
}

impl Judged {
    /// A device with an unknown limit.
    fn unknown(disk: DiskFigures) -> Judged {
        Judged { open: of_unknown(&disk).into_iter().collect(), disk, limit: None }
    }

    /// Whether some requests are missing in the capacity, so that an operation may need much more than is
    /// known.
    fn is_part(&self) -> bool {
        self.open.iter().any(|(reason, _)| !is_of_sharing(*reason))
    }
}

/// Whether everything is known except whether reads and writes share the device's time.
fn is_of_sharing(reason: NoLimit) -> bool {
    matches!(reason, NoLimit::ReadsBesideWrites | NoLimit::FlushesBeside)
}

fn judge(disk: &DiskFigures, whole: &Demand, rate_per_s: f64, loads: &[Loaded]) -> Judged {
    let shares = disk.capacity.map_or(Shares::default(), |capacity| shares(disk, &capacity));
    let saturated = saturation(disk, loads);
    let limit = limit(disk, whole, rate_per_s, &shares, saturated);
    let known_ratio =
        limit.as_ref().map_or(0.0, |limit| limit.demand.demand_s * rate_per_s * (1.0 + 1e-9));
    let open = match (disk.serves_several, saturated) {
        (Some(false), _) | (_, Some(_)) => None,
        _ if shares.least.is_none() => of_unknown(disk),
        _ if disk.flush_per_s.is_some_and(|flushes| flushes > 0.0) => {
            match (flushed_ratio(disk), shares.sum) {
                (None, _) => Some((NoLimit::FlushesUnknown, disk.busy_ratio)),
                (Some(_), None) => Some((NoLimit::PartUnknown, disk.busy_ratio)),
                (Some(flushes), Some(sum)) => {
                    Some((NoLimit::FlushesBeside, (sum + flushes).min(disk.busy_ratio)))
                        .filter(|(_, beside)| *beside > known_ratio)
                }
            }
        }
        _ => match shares.sum {
            None => Some((NoLimit::PartUnknown, disk.busy_ratio)),
            // A device works at most as long as it has requests.
            Some(sum) => Some((NoLimit::ReadsBesideWrites, sum.min(disk.busy_ratio)))
                .filter(|(_, beside)| *beside > known_ratio),
        },
    };
    // The servers' writes may be anything up to the counted total, and throttled requests keep no device busy.
    let writes = limited_ratio(disk, disk.write_per_s).filter(|writes| *writes > known_ratio);
    let writes = writes.map(|writes| (NoLimit::WritesLimited, writes));
    Judged { disk: disk.clone(), limit, open: open.into_iter().chain(writes).collect() }
}

/// Flushes per second as a share of the device's flush capacity.
pub(super) fn flushed_ratio(disk: &DiskFigures) -> Option<f64> {
    let most = disk.capacity?.flush_per_s.filter(|most| *most > 0.0)?;
    Some(disk.flush_per_s? / most)
}

/// Why the device itself does not show its limit. It works at most as long as it has requests.
fn of_unknown(disk: &DiskFigures) -> Option<(NoLimit, f64)> {
    let reason = match disk.serves_several {
        Some(_) => NoLimit::ServesSeveral,
        None => NoLimit::KindUnknown,
    };
    (disk.busy_ratio > 0.0).then_some((reason, disk.busy_ratio))
}

/// Reads or writes per second as a share of the control group's limit.
fn limited_ratio(disk: &DiskFigures, per_s: Option<f64>) -> Option<f64> {
    let most = disk.capacity?.limit_per_s.filter(|most| *most > 0.0)?;
    Some(per_s? / most)
}

fn limit(
    disk: &DiskFigures,
    whole: &Demand,
    rate_per_s: f64,
    shares: &Shares,
    saturated: Option<Figure>,
) -> Option<DiskLimit> {
    // The variation between runs is the busiest device's.
    let counted = whole.uncertainty_ratio;
    let of_capacity = disk.capacity.and_then(|capacity| capacity.uncertainty_ratio);
    let measured = shares.least.map(|least| {
        let error = combined(&[counted, of_capacity.unwrap_or(0.0)]);
        (LimitBasis::Measured, least, error)
    });
    // Limits apply to the servers alone, so the device's reads are theirs.
    let reads = limited_ratio(disk, disk.read_per_s);
    let limited = reads.map(|ratio| (LimitBasis::Limited, ratio, counted));
    let alone = (disk.serves_several == Some(false)).then_some((
        LimitBasis::OneAtATime,
        disk.busy_ratio,
        counted,
    ));
    let saturated_at = saturated.and_then(|most| {
        let error = most.high.map_or(1.0, |high| high / most.value - 1.0);
        let used_ratio = disk.requests_per_s()? / most.value;
        Some((LimitBasis::Saturated, used_ratio, error))
    });
    // The levels are less certain than a measured limit, and not needed for a device that serves one request at
    // a time.
    let sure = limited.into_iter().chain(measured).chain(alone);
    let sure = sure.reduce(|a, b| if b.1 > a.1 { b } else { a });
    let shown = saturated_at.filter(|_| alone.is_none());
    let all = sure.into_iter().chain(shown);
    let all = all.reduce(|a, b| if b.1 > a.1 { b } else { a });
    let (basis, used_ratio, uncertainty_ratio) = all?;
    let together = shares.sum.filter(|sum| *sum > used_ratio);
    (used_ratio > 0.0).then(|| DiskLimit {
        disk: disk.clone(),
        basis,
        requests_per_s: saturated.filter(|_| basis == LimitBasis::Saturated),
        demand: Demand {
            name: whole.name.clone(),
            servers: 1,
            quota: None,
            demand_s: used_ratio / rate_per_s,
            uncertainty_ratio,
        },
        together_s: together.filter(|_| basis == LimitBasis::Measured).map(|sum| sum / rate_per_s),
    })
}

/// Used shares of a device's capacity.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// The largest share among reads, writes, requests and bytes: a lower bound. `None` if no limit is measured
    /// for them.
    least: Option<f64>,
    /// The sum of the shares of reads and writes, if they share the device's time. `None` if a limit is not
    /// measured.
    sum: Option<f64>,
}

fn shares(disk: &DiskFigures, capacity: &DiskCapacity) -> Shares {
    let part = |done: Option<f64>, most: Option<f64>| match (done, most) {
        (Some(0.0), _) => Some(0.0),
        (Some(done), Some(most)) if most > 0.0 => Some(done / most),
        _ => None,
    };
    let [reads, writes] =
        [part(disk.read_per_s, capacity.read_per_s), part(disk.write_per_s, capacity.write_per_s)];
    let [read_bytes, write_bytes] = [
        part(disk.read_bytes_per_s, capacity.read_bytes_per_s),
        part(disk.write_bytes_per_s, capacity.write_bytes_per_s),
    ];
    let known = [reads, writes, read_bytes, write_bytes];
    let least = known.into_iter().flatten().reduce(f64::max);
    let both = |reads: Option<f64>, writes: Option<f64>| Some(reads? + writes?);
    let requests = both(reads, writes);
    let bytes = both(read_bytes, write_bytes);
    let counts_bytes = disk.read_bytes_per_s.is_some() || disk.write_bytes_per_s.is_some();
    Shares {
        least: least.filter(|least| *least > 0.0),
        sum: match counts_bytes {
            true => requests.zip(bytes).map(|(requests, bytes)| requests.max(bytes)),
            false => requests,
        },
    }
}

/// A level as seen by one device.
struct Seen {
    requests_per_s: f64,
    /// Uncertainty of the operation rate, which the requests follow.
    uncertainty_ratio: f64,
    queue: f64,
    is_busy: bool,
    read_ratio: f64,
    size_bytes: Option<f64>,
}

/// Requests per second at which a device saturates, by the levels with its longest queues: the queues grew, and
/// the requests did not.
///
/// With requests `x` and a queue `q`, the elasticity is `e = Δ ln x / Δ ln q`: 1 if further requests are served
/// in parallel, 0 if they only wait. The distance to the limit is at most that of one server with random
/// arrivals, `x = C q / (1 + q)`, for which `e = 1 / (1 + q)`, so `C = x (1 + e / (1 − e))`: several servers
/// come closer to their limit with the same queue. The upper end of the interval uses the upper end of `e`.
fn saturation(disk: &DiskFigures, loads: &[Loaded]) -> Option<Figure> {
    let mut seen: Vec<Seen> = loads.iter().filter_map(|load| see(disk, load)).collect();
    seen.sort_by(|a, b| a.queue.total_cmp(&b.queue));
    let last = &seen[seen.len().checked_sub(SATURATED_LEVELS)?..];
    let [first, .., end] = last else {
        return None;
    };
    let is_alike = |one: &Seen| {
        let sizes = one.size_bytes.zip(end.size_bytes);
        let factor = sizes.map_or(1.0, |(one, other)| (one / other).max(other / one));
        (one.read_ratio - end.read_ratio).abs() <= MIXTURE_RATIO && factor <= SIZE_FACTOR
    };
    let growth = end.queue / first.queue;
    if growth < QUEUE_GROWTH || !last.iter().all(|one| one.is_busy && is_alike(one)) {
        return None;
    }
    let elasticity = |one: &Seen, other: &Seen| {
        let errors = combined(&[one.uncertainty_ratio, other.uncertainty_ratio]);
        let grown = (other.requests_per_s / one.requests_per_s).ln();
        (grown.max(0.0) + errors) / growth.ln()
    };
    let most = last.iter().max_by(|a, b| a.requests_per_s.total_cmp(&b.requests_per_s))?;
    let elasticity = elasticity(first, end).max(elasticity(first, most));
    let (value, error) = (most.requests_per_s, most.uncertainty_ratio);
    (elasticity <= MOST_ELASTICITY).then(|| Figure {
        value,
        low: Some(value * (1.0 - error)),
        high: Some(value * (1.0 + error) * (1.0 + elasticity / (1.0 - elasticity))),
    })
}

fn see(disk: &DiskFigures, load: &Loaded) -> Option<Seen> {
    let disk = load.disks.iter().find(|one| one.is_same(disk))?;
    let requests_per_s = disk.requests_per_s().filter(|requests| *requests > 0.0)?;
    let queue = disk.queue_mean.filter(|queue| *queue > 0.0)?;
    let bytes_per_s = disk.read_bytes_per_s.zip(disk.write_bytes_per_s);
    Some(Seen {
        requests_per_s,
        uncertainty_ratio: load.rate_per_s.quantity().uncertainty_ratio,
        queue,
        is_busy: disk.busy_ratio >= SATURATED_BUSY_RATIO,
        read_ratio: disk.read_per_s? / requests_per_s,
        size_bytes: bytes_per_s.map(|(read, written)| (read + written) / requests_per_s),
    })
}
