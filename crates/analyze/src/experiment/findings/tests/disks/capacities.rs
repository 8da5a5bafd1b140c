//! Limits of a measurement of a device alone.

use super::*;

/// Disk findings for a disk with eight servers that was measured alone, with this request capacity of each
/// kind.
fn measured(
    cpu_s: f64,
    read_per_s: Option<f64>,
    write_per_s: Option<f64>,
    change: impl Fn(&mut DiskFigures),
) -> (Experiment, DiskLimits) {
    let mut run = run(4, cpu_s, 8, 3, Some(true));
    let disk = &mut run.disks[0];
    disk.capacity = Some(DiskCapacity {
        read_per_s,
        write_per_s,
        read_bytes_per_s: read_per_s.map(|most| most * 1e6),
        write_bytes_per_s: write_per_s.map(|most| most * 1e6),
        ..DiskCapacity::default()
    });
    change(disk);
    let mut sweep = answered(experiment((CLIENTS, &["4"]), vec![run]));
    let found = limits(&mut sweep);
    (sweep, found)
}

/// Makes half of the requests writes.
fn half_writes(disk: &mut DiskFigures) {
    disk.read_per_s = disk.read_per_s.map(|reads| reads / 2.0);
    disk.write_per_s = disk.read_per_s;
    disk.read_bytes_per_s = disk.read_bytes_per_s.map(|bytes| bytes / 2.0);
    disk.write_bytes_per_s = disk.read_bytes_per_s;
}

#[test]
fn bound_of_mixed_reads_and_writes_is_not_below_device_ability() {
    // Each kind alone 8,000 per second: both at once, or 8,000 together.
    let (mut sweep, found) = measured(10e-6, Some(8e3), Some(8e3), half_writes);
    let limit = found.known.expect("a measured limit");
    let rate = answer(&mut sweep).bound_per_s.expect("a bound");
    assert!((rate.value / 16e3 - 1.0).abs() < 0.01, "{rate:?}");
    let together = limit.together_s.expect("reads and writes may share its time");
    assert!((together * 8e3 - 1.0).abs() < 0.01, "{together}");
    // It limits first in both cases.
    assert_eq!(found.unknown, None);
    let said = the(&sweep, "bottleneck (");
    let reported = reported(&said.evidence).join("; ");
    assert!(reported.contains("together:") && reported.contains("is_least: true"), "{reported}");
    // Two CPUs with 200 µs end at 10,000/s, between both values.
    let (sweep, found) = measured(200e-6, Some(8e3), Some(8e3), half_writes);
    let unknown = found.unknown.expect("an unknown limit");
    assert_eq!(unknown.reason, NoLimit::ReadsBesideWrites);
    assert!(unknown.may_be_first, "{unknown:?}");
    let part = the(&sweep, "disk-known-in-part").statement.to_string();
    assert!(part.contains("disk-reads-beside-writes"), "{part}");
    let bottleneck = the(&sweep, "bottleneck (").statement.to_string();
    assert!(bottleneck.contains("is_of_known: true"), "{bottleneck}");
    // Two CPUs with 800 µs end at 2,500/s, before either.
    let (_, found) = measured(800e-6, Some(8e3), Some(8e3), half_writes);
    assert!(found.unknown.is_none_or(|unknown| !unknown.may_be_first));
}

#[test]
fn flushes_were_not_measured_and_leave_the_limit_open() {
    let flushing = |disk: &mut DiskFigures| disk.flush_per_s = Some(500.0);
    // The requests' time on a fast device bounds nothing, and is not a station.
    let (mut sweep, found) = measured(10e-6, Some(8e6), None, flushing);
    assert_eq!(found.known, None);
    let unknown = found.unknown.expect("an unknown limit");
    assert_eq!(unknown.reason, NoLimit::FlushesUnknown);
    assert!(unknown.may_be_first, "{unknown:?}");
    the(&sweep, "disk-known-in-part");
    let bottleneck = the(&sweep, "bottleneck (");
    let said = format!("{:?}", bottleneck.statement);
    assert!(said.contains("is_of_known"), "{said}");
    let reported = reported(&bottleneck.evidence).join("; ");
    assert!(!reported.contains("next-resource"), "{reported}");
    let bound = answer(&mut sweep).bound_per_s.expect("the CPUs' bound");
    assert!((bound.value * 5e-6 - 1.0).abs() < 0.1, "{bound:?}");
    // If its requests alone allow less than the CPUs, they remain a bound.
    let (mut sweep, found) = measured(10e-6, Some(8e3), None, flushing);
    assert_eq!(found.known.map(|limit| limit.basis), Some(LimitBasis::Measured));
    assert_eq!(found.unknown.map(|unknown| unknown.reason), Some(NoLimit::FlushesUnknown));
    let bound = answer(&mut sweep).bound_per_s.expect("a bound");
    assert!((bound.value / 8e3 - 1.0).abs() < 0.01, "{bound:?}");
    // Without flushes a fast device is known not to limit.
    let (_, found) = measured(10e-6, Some(8e6), None, |_| ());
    assert_eq!(found.unknown, None);
    assert!(found.known.is_some());
    // A device that serves one request at a time works whenever it has one, including a flush.
    let (_, found) = measured(10e-6, Some(8e6), None, |disk| {
        disk.flush_per_s = Some(500.0);
        disk.serves_several = Some(false);
    });
    assert_eq!(found.unknown, None);
    assert_eq!(found.known.map(|limit| limit.basis), Some(LimitBasis::OneAtATime));
}

#[test]
fn few_measured_flushes_are_known_not_to_limit() {
    // It did 1/16 of its read and write capacity, and this share of its flush capacity.
    let flushing = |share: f64| {
        move |disk: &mut DiskFigures| {
            half_writes(disk);
            disk.flush_per_s = Some(share * 1e3);
            let capacity = disk.capacity.as_mut().expect("a capacity");
            let reads = disk.read_per_s.expect("reads");
            capacity.read_per_s = Some(reads * 32.0);
            capacity.write_per_s = Some(reads * 32.0);
            capacity.read_bytes_per_s = None;
            capacity.write_bytes_per_s = None;
            (disk.read_bytes_per_s, disk.write_bytes_per_s) = (None, None);
            capacity.flush_per_s = Some(1e3);
        }
    };
    let (sweep, few) = measured(400e-6, Some(1.0), Some(1.0), flushing(0.01));
    assert!(few.unknown.is_none_or(|unknown| !unknown.may_be_first));
    let codes = |sweep: &Experiment| format!("{:?}", sweep.findings);
    assert!(!codes(&sweep).contains("disk-known-in-part"));
    // Nine tenths of the flush capacity may or may not be the limit.
    let (sweep, many) = measured(400e-6, Some(1.0), Some(1.0), flushing(0.9));
    let unknown = many.unknown.expect("an unknown limit");
    assert_eq!(unknown.reason, NoLimit::FlushesBeside);
    assert!(unknown.may_be_first, "{unknown:?}");
    let part = the(&sweep, "disk-known-in-part").statement.to_string();
    assert!(part.contains("disk-flushes-beside"), "{part}");
    // If writes were not measured, flushes are not the missing part.
    let (_, part) = measured(400e-6, Some(1.0), None, |disk| {
        flushing(0.01)(disk);
        let capacity = disk.capacity.as_mut().expect("a capacity");
        capacity.write_per_s = None;
    });
    let reason = part.unknown.map(|unknown| unknown.reason);
    assert_eq!(reason, Some(NoLimit::PartUnknown));
    // The minimum for its reads and writes is still a bound.
    assert!(many.known.is_some());
}

#[test]
fn partly_measured_capacity_is_a_lower_limit_of_the_demand() {
    let (mut sweep, found) = measured(10e-6, Some(4e3), None, half_writes);
    let bound = answer(&mut sweep).bound_per_s.expect("a bound");
    assert!((bound.value / 8e3 - 1.0).abs() < 0.01, "{bound:?}");
    assert_eq!(found.unknown.map(|unknown| unknown.reason), Some(NoLimit::PartUnknown));
    let part = the(&sweep, "disk-known-in-part").statement.to_string();
    assert!(part.contains("disk-part-unmeasured"), "{part}");
}

#[test]
fn levels_show_a_limit_that_no_capacity_states() {
    let mut sweep = sweep(&up_to(32), 10e-6, 4, 1, Some(true));
    let runs = sweep.points.iter_mut();
    for run in runs.filter_map(|point| point.figures.as_mut()) {
        run.disks[0].flush_per_s = Some(0.5);
        run.disks[0].capacity =
            Some(DiskCapacity { read_per_s: Some(8e6), ..DiskCapacity::default() });
    }
    let found = limits(&mut answered(sweep));
    assert_eq!(found.known.map(|limit| limit.basis), Some(LimitBasis::Saturated));
    assert_eq!(found.unknown, None);
}
