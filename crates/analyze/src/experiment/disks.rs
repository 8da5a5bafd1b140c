//! Whether a disk limits a rate.
//!
//! The kernel tells how long a device had a request. That is the time in which it worked if it serves one request at a time: then
//! the busy time of an operation is its service demand `D`, and `1 / D` bounds the rate. A device that serves several at once has
//! a request all the time long before it has no more to give, and its busy time bounds nothing. Its limit is known
//!
//! - if it was measured alone, or limited by a control group, or
//! - if levels of a sweep show it: the queue at the device grows from level to level, and its requests per second do not.
//!
//! Either gives requests per second `C`, and with `V` requests per operation the bound `C / V`. Reads and writes were measured
//! apart, and whether they share the time of a device is not known: the larger of their shares is what an operation needs at
//! least. Flushes bound no rate, because operations that wait at the same time share them, and at a higher load more of them do;
//! but at the rate that was measured they took a share of what the device can flush, and at no higher rate more than in proportion.
//! So they are known not to limit first where that share is small. Else there is no bound. What is
//! known even then is that such a device takes at least what one that serves one request at a time would take.

use super::figures::resource_name;
use crate::estimate::combined;
use dyno_record::disk::DiskCapacity;
use dyno_record::experiment::{
    Demand, DiskFigures, DiskLimit, DiskLimits, DiskWithoutLimit, Figure, Figures, Level,
    LimitBasis, NoLimit,
};
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse, RunDocument};
use std::collections::BTreeMap;

/// Share of the time in which a saturated device has a request at least.
const SATURATED_BUSY_RATIO: f64 = 0.9;
/// Levels that show saturation.
const SATURATED_LEVELS: usize = 3;
/// Factor by which the queue grows over them at least.
const QUEUE_GROWTH: f64 = 2.0;
/// How much the requests per second may grow with the queue at most, as an exponent: 0 is none, 1 in proportion. The upper end of
/// what the errors allow must be below it.
const MOST_ELASTICITY: f64 = 0.15;
/// Shares of reads may differ between these levels by so much: with another mixture a device has another limit.
const MIXTURE_RATIO: f64 = 0.1;
/// Sizes of requests may differ by this factor.
const SIZE_FACTOR: f64 = 1.5;

/// The devices of a run in its measure phase, of all machines.
pub(super) fn of_run(document: &RunDocument) -> Vec<DiskFigures> {
    let is_asked = |one: &&ResourceUse| {
        one.phase == PhaseKind::Measure
            && one.resource == ResourceKind::Disk
            && one.duration_s > 0.0
    };
    let uses = document.resources.iter().filter(is_asked);
    uses.flat_map(|used| of_use(document, used)).collect()
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
        // Its counters are not read at the very ends of the phase.
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
            let mut servers = document.fleet.as_ref()?.servers.iter();
            let server = servers.find(|server| server.host == host)?;
            server.environment.as_ref()
        }
    };
    let storage = environment?.data_storage.as_ref()?;
    storage.capacities.get(device).copied()
}

/// The means over runs, of the devices that all of them have.
pub(super) fn of_runs(runs: &[&Figures]) -> Vec<DiskFigures> {
    let first = runs.first().map_or(&[][..], |run| &run.disks);
    first.iter().filter_map(|disk| mean(disk, runs)).collect()
}

fn mean(disk: &DiskFigures, runs: &[&Figures]) -> Option<DiskFigures> {
    let of_run = |run: &&Figures| run.disks.iter().find(|one| one.is_same(disk)).cloned();
    let all: Vec<DiskFigures> = runs.iter().map(of_run).collect::<Option<_>>()?;
    let mean = |of: fn(&DiskFigures) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = all.iter().map(of).collect::<Option<_>>()?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
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
    let disks = disks.iter();
    disks.max_by(|a, b| a.busy_ratio.total_cmp(&b.busy_ratio))
}

/// Whether the busy time of the disk is a service demand: the busiest device serves one request at a time.
pub(super) fn is_one_server(disks: &[DiskFigures]) -> bool {
    busiest(disks).is_some_and(|disk| disk.serves_several == Some(false))
}

/// What was measured together.
pub(super) struct At<'a> {
    /// Operations per second.
    pub(super) rate_per_s: f64,
    pub(super) disks: &'a [DiskFigures],
    /// What an operation needed of each resource; of a disk the time in which the busiest device had requests.
    pub(super) demands: &'a [Demand],
    /// The CPUs that operations wait for.
    pub(super) cpus: &'a [Demand],
}

/// What the devices did at a load.
pub(super) struct Loaded {
    rate_per_s: Figure,
    disks: Vec<DiskFigures>,
}

impl Loaded {
    /// The levels of a sweep.
    pub(super) fn of_levels(levels: &[Level]) -> Vec<Loaded> {
        let loaded = |level: &Level| Loaded {
            rate_per_s: level.rate_per_s,
            disks: level.disks.clone(),
        };
        levels.iter().map(loaded).collect()
    }

    /// Those runs of a search that offered no rate, by their number of clients.
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

/// The mean over runs: as uncertain as the least certain of them, and as far as they lie apart.
fn mean_rate_per_s(runs: &[&Figures]) -> Figure {
    let rates = runs.iter().map(|run| run.rate_per_s.value);
    let mean = rates.clone().sum::<f64>() / runs.len() as f64;
    let apart = rates.map(|rate| (rate / mean - 1.0).abs());
    let errors = runs
        .iter()
        .map(|run| run.rate_per_s.quantity().uncertainty_ratio);
    let error = apart.chain(errors).fold(0.0, f64::max);
    Figure {
        value: mean,
        low: Some(mean * (1.0 - error)),
        high: Some(mean * (1.0 + error)),
    }
}

/// What the disks allow. Several loads may show their saturation. `None` where no disk was watched, or it did nothing.
pub(super) fn limits(at: &At<'_>, loads: &[Loaded]) -> Option<DiskLimits> {
    let name = resource_name(ResourceKind::Disk);
    let mut demands = at.demands.iter();
    let whole = demands.find(|demand| demand.name == name && demand.demand_s > 0.0)?;
    // The rate of the very time in which the devices were counted, which may have a warm-up in it.
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
        let disks = at.disks.iter();
        disks
            .map(|disk| judge(disk, whole, rate_per_s, loads))
            .collect()
    };
    let cpus_s = at.cpus.iter().map(Demand::per_server_s);
    let cpus_s = cpus_s.fold(0.0, f64::max);
    // What an operation needs at least says where the limit is only if nothing else needs more.
    let counts = |one: &&Judged| {
        let limit = one.limit.as_ref();
        limit.is_some_and(|limit| !one.is_part() || limit.demand.per_server_s() >= cpus_s)
    };
    let known = all
        .iter()
        .filter(counts)
        .filter_map(|one| one.limit.clone());
    let known = known.max_by(|a, b| a.demand.demand_s.total_cmp(&b.demand.demand_s));
    let known_s = known
        .as_ref()
        .map_or(0.0, |limit| limit.demand.per_server_s());
    let is_first = |one: &Judged| {
        let limit = one.limit.as_ref();
        limit.is_some_and(|limit| limit.demand.per_server_s() >= cpus_s.max(known_s))
    };
    let without = all.iter().flat_map(|one| {
        let is_first = is_first(one);
        let open = one.open.iter();
        // That reads and writes may share its time does not matter where it limits first even if they do not.
        open.filter(move |(reason, _)| !is_of_sharing(*reason) || !is_first)
            .map(move |(reason, most_ratio)| {
                let found = DiskWithoutLimit {
                    disk: one.disk.clone(),
                    reason: *reason,
                    may_be_first: most_ratio / rate_per_s >= cpus_s.max(known_s),
                };
                (*most_ratio, found)
            })
    });
    let unknown = without.max_by(|a, b| a.0.total_cmp(&b.0));
    Some(DiskLimits {
        devices: u32::try_from(at.disks.len()).unwrap_or(u32::MAX),
        known,
        unknown: unknown.map(|(_, found)| found),
    })
}

/// What is known of the limit of one device, and what is not.
struct Judged {
    disk: DiskFigures,
    limit: Option<DiskLimit>,
    /// Why something of its limit is not known, each with the share of what it can do that it did at most.
    open: Vec<(NoLimit, f64)>,
}

impl Judged {
    /// One whose limit is not known.
    fn unknown(disk: DiskFigures) -> Judged {
        Judged {
            open: of_unknown(&disk).into_iter().collect(),
            disk,
            limit: None,
        }
    }

    /// Whether requests that take its time are in no capacity, so that an operation may need much more than is known.
    fn is_part(&self) -> bool {
        let mut open = self.open.iter();
        open.any(|(reason, _)| !is_of_sharing(*reason))
    }
}

/// Whether all is known that it did, and only not how far that goes on at the same time.
fn is_of_sharing(reason: NoLimit) -> bool {
    matches!(reason, NoLimit::ReadsBesideWrites | NoLimit::FlushesBeside)
}

fn judge(disk: &DiskFigures, whole: &Demand, rate_per_s: f64, loads: &[Loaded]) -> Judged {
    let shares = disk
        .capacity
        .map_or(Shares::default(), |capacity| shares(disk, &capacity));
    let saturated = saturation(disk, loads);
    let limit = limit(disk, whole, rate_per_s, &shares, saturated);
    let known_ratio = limit.as_ref().map_or(0.0, |limit| {
        limit.demand.demand_s * rate_per_s * (1.0 + 1e-9)
    });
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
            // It worked at most as long as it had requests.
            Some(sum) => Some((NoLimit::ReadsBesideWrites, sum.min(disk.busy_ratio)))
                .filter(|(_, beside)| *beside > known_ratio),
        },
    };
    // Writes of the servers may be anything up to all that were counted, and what waits for a limit keeps no device busy.
    let writes = limited_ratio(disk, disk.write_per_s).filter(|writes| *writes > known_ratio);
    let writes = writes.map(|writes| (NoLimit::WritesLimited, writes));
    Judged {
        disk: disk.clone(),
        limit,
        open: open.into_iter().chain(writes).collect(),
    }
}

/// The part that its flushes are of those that it can do.
pub(super) fn flushed_ratio(disk: &DiskFigures) -> Option<f64> {
    let most = disk.capacity?.flush_per_s.filter(|most| *most > 0.0)?;
    Some(disk.flush_per_s? / most)
}

/// Why nothing of a limit is known by the device itself. It worked at most as long as it had requests.
fn of_unknown(disk: &DiskFigures) -> Option<(NoLimit, f64)> {
    let reason = match disk.serves_several {
        Some(_) => NoLimit::ServesSeveral,
        None => NoLimit::KindUnknown,
    };
    (disk.busy_ratio > 0.0).then_some((reason, disk.busy_ratio))
}

/// The part that so many reads or writes per second are of those that the servers may do.
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
    // What differs from run to run is that of the busiest device.
    let counted = whole.uncertainty_ratio;
    let of_capacity = disk
        .capacity
        .and_then(|capacity| capacity.uncertainty_ratio);
    let measured = shares.least.map(|least| {
        let error = combined(&[counted, of_capacity.unwrap_or(0.0)]);
        (LimitBasis::Measured, least, error)
    });
    // Reads of the servers are done for them alone, so that those of the device are theirs.
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
    // What the levels show is less certain than what was measured, and not needed where the device serves one at a time.
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
        together_s: together
            .filter(|_| basis == LimitBasis::Measured)
            .map(|sum| sum / rate_per_s),
    })
}

/// How much of what a device can do was done.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// That of reads or of writes, of requests or of bytes, whichever is the most: so much it was at least. `None` where nothing
    /// was done whose limit was measured.
    least: Option<f64>,
    /// That of reads and writes together, if they share its time. `None` where a part was done whose limit was not measured.
    sum: Option<f64>,
}

fn shares(disk: &DiskFigures, capacity: &DiskCapacity) -> Shares {
    let part = |done: Option<f64>, most: Option<f64>| match (done, most) {
        (Some(0.0), _) => Some(0.0),
        (Some(done), Some(most)) if most > 0.0 => Some(done / most),
        _ => None,
    };
    let [reads, writes] = [
        part(disk.read_per_s, capacity.read_per_s),
        part(disk.write_per_s, capacity.write_per_s),
    ];
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
            true => requests
                .zip(bytes)
                .map(|(requests, bytes)| requests.max(bytes)),
            false => requests,
        },
    }
}

/// A level as one device has seen it.
struct Seen {
    requests_per_s: f64,
    /// That of the rate of operations, which the requests go with.
    uncertainty_ratio: f64,
    queue: f64,
    is_busy: bool,
    read_ratio: f64,
    size_bytes: Option<f64>,
}

/// The requests per second at which a device stopped to do more, by the levels with its longest queues: they grew, and the
/// requests did not.
///
/// With requests `x` and a queue `q`, the elasticity is `e = Δ ln x / Δ ln q`: 1 where each further request in the queue is served
/// beside the others, 0 where it only waits. What is still missing to the limit is at most that of one server with random
/// arrivals, `x = C q / (1 + q)`, of which `e = 1 / (1 + q)`, so that `C = x (1 + e / (1 − e))`: with several servers the rate
/// comes nearer to its limit with the same queue. The upper end of the interval has this with the upper end of `e`.
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
    let most = last
        .iter()
        .max_by(|a, b| a.requests_per_s.total_cmp(&b.requests_per_s))?;
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
