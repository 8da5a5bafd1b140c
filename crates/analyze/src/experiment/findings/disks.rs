//! Known and unknown limits of disks.

use crate::experiment::disks::{busiest, flushed_ratio};
use crate::values::{bytes_per_s, number, percent, rate, rate_of, time};
use dyno_record::disk::DiskCapacity;
use dyno_record::experiment::{
    DiskFigures, DiskLimit, DiskLimits, DiskWithoutLimit, Finding, LimitBasis, NoLimit,
};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Busy share up to which a disk does not matter.
const IDLE_RATIO: f64 = 0.05;
/// Multiple of the mean over all devices from which the busiest one is used unevenly.
const UNEVEN_FACTOR: f64 = 1.5;

/// Whether a disk with an unknown limit may be the bottleneck.
pub(super) fn may_limit(limits: Option<&DiskLimits>) -> bool {
    let unknown = limits.and_then(|limits| limits.unknown.as_ref());
    // Throttled requests do not keep the device busy.
    let matters = |one: &DiskWithoutLimit| {
        one.reason == NoLimit::WritesLimited || one.disk.busy_ratio > IDLE_RATIO
    };
    unknown.is_some_and(|one| one.may_be_first && matters(one))
}

/// A disk that may be the bottleneck and whose capacity is unknown.
pub(super) fn without_bound(limits: Option<&DiskLimits>, at: &Statement) -> Option<Finding> {
    let unknown = limits?.unknown.as_ref().filter(|_| may_limit(limits))?;
    let disk = named(&unknown.disk);
    let without =
        |reason: Statement| statement!("disk-without-bound", disk = &disk, because = reason);
    let known_in_part =
        |reason: Statement| statement!("disk-known-in-part", disk = &disk, because = reason);
    let limit_per_s = unknown.disk.capacity.and_then(|one| one.limit_per_s);
    let whole = |reason: Statement| match limit_per_s {
        Some(_) => known_in_part(reason),
        None => without(reason),
    };
    let said = match unknown.reason {
        NoLimit::ServesSeveral => whole(statement!("disk-serves-several")),
        NoLimit::KindUnknown => whole(statement!("disk-kind-unknown")),
        NoLimit::FlushesUnknown => known_in_part(statement!(
            "disk-flushes-unknown",
            flushes = unknown.disk.flush_per_s.map(rate)
        )),
        NoLimit::FlushesBeside => known_in_part(statement!(
            "disk-flushes-beside",
            flushes = unknown.disk.flush_per_s.map(rate),
            share = flushed_ratio(&unknown.disk).map(percent)
        )),
        NoLimit::PartUnknown => known_in_part(statement!("disk-part-unmeasured")),
        NoLimit::ReadsBesideWrites => known_in_part(statement!("disk-reads-beside-writes")),
        NoLimit::WritesLimited => statement!(
            "disk-writes-limited",
            disk = &disk,
            limit = limit_per_s.map(rate),
            writes = unknown.disk.write_per_s.map(rate)
        ),
    };
    Some(Finding::found(said, vec![requests(&unknown.disk, at)]))
}

/// One of several devices does more than the others.
pub(super) fn uneven(disks: &[DiskFigures], at: &Statement) -> Option<Finding> {
    let most = busiest(disks).filter(|disk| disk.busy_ratio > IDLE_RATIO)?;
    let mean = disks.iter().map(|disk| disk.busy_ratio).sum::<f64>() / disks.len() as f64;
    (most.busy_ratio >= mean * UNEVEN_FACTOR).then(|| {
        let said = statement!(
            "disks-used-unevenly",
            disk = named(most),
            devices = disks.len(),
            share = percent(most.busy_ratio),
            mean = percent(mean)
        );
        let each = disks.iter().map(|disk| requests(disk, at));
        Finding::found(said, each.collect())
    })
}

/// Source of a disk's limit.
pub(super) fn basis(limit: &DiskLimit) -> Statement {
    let disk = named(&limit.disk);
    match limit.basis {
        LimitBasis::OneAtATime => statement!("disk-serves-one", disk = disk),
        LimitBasis::Measured => {
            let most = |of: fn(&DiskCapacity) -> Option<f64>| {
                limit.disk.capacity.as_ref().and_then(of).map(rate)
            };
            let bytes = |of: fn(&DiskCapacity) -> Option<f64>| {
                limit.disk.capacity.as_ref().and_then(of).map(bytes_per_s)
            };
            statement!(
                "disk-was-measured",
                disk = disk,
                reads = most(|one| one.read_per_s),
                writes = most(|one| one.write_per_s),
                read_bytes = bytes(|one| one.read_bytes_per_s),
                written_bytes = bytes(|one| one.write_bytes_per_s),
                together = limit.together_s.map(time),
                bound = limit.together_s.map(|demand_s| rate(1.0 / demand_s))
            )
        }
        LimitBasis::Limited => {
            let most = limit.disk.capacity.and_then(|one| one.limit_per_s);
            statement!("disk-was-limited", disk = disk, reads = most.map(rate))
        }
        LimitBasis::Saturated => statement!(
            "disk-saturated",
            disk = disk,
            requests = limit.requests_per_s.as_ref().map(rate_of)
        ),
    }
}

fn requests(disk: &DiskFigures, at: &Statement) -> Statement {
    statement!(
        "disk-requests",
        disk = named(disk),
        at = at,
        share = percent(disk.busy_ratio),
        queue = disk.queue_mean.map(number),
        requests = disk.requests_per_s().map(rate)
    )
}

/// A device by its name, and its host if there are several; `the disk` if devices were not distinguished.
fn named(disk: &DiskFigures) -> Statement {
    let device = Some(&disk.device).filter(|device| !device.is_empty());
    statement!("disk-device", device = device, host = disk.host.as_ref())
}
