//! Simulated counters of devices with known rates.

use super::*;
use std::fs;

/// Counters every 20 ms: 0.4 s of nothing while `fio` starts, 1.5 s with these rates, and 0.2 s of
/// nothing.
fn looks(devices: &[(&str, DeviceCounters)]) -> Vec<Look> {
    let at_s = |step: u32| f64::from(step) * 0.02;
    let active_s = |step| (at_s(step) - 0.4).clamp(0.0, 1.5);
    let done = |(name, per_s): &(&str, DeviceCounters), step| {
        // The device has worked before.
        let grown = |per_s: u64| 1_000_000 + (per_s as f64 * active_s(step)) as u64;
        let counters = DeviceCounters {
            reads: grown(per_s.reads),
            read_bytes: grown(per_s.read_bytes),
            writes: grown(per_s.writes),
            written_bytes: grown(per_s.written_bytes),
            flushes: per_s.flushes.map(grown),
            ..DeviceCounters::default()
        };
        ((*name).to_owned(), counters)
    };
    let look = |step| Look {
        at: Duration::from_secs_f64(at_s(step)),
        devices: devices.iter().map(|device| done(device, step)).collect(),
        // Two CPUs, half idle.
        cpus: CpuTicks { idle: 5_000 + u64::from(step) * 2, all: 90_000 + u64::from(step) * 4 },
    };
    (0..=105).map(look).collect()
}

fn reading(per_s: u64, bytes: u64) -> DeviceCounters {
    DeviceCounters { reads: per_s, read_bytes: per_s * bytes, ..DeviceCounters::default() }
}

/// A job with this many requests of this size.
fn job(per_s: f64, bytes: f64) -> JobDone {
    JobDone { requests_per_s: per_s, bytes_per_s: per_s * bytes, duration_s: 1.5, cpu_ratio: 0.3 }
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
}

#[test]
fn flushes_are_counted_however_many_writes_wait_for_them() {
    let device = |writes: u64, flushes| DeviceCounters {
        writes,
        written_bytes: writes * 4096,
        flushes,
        ..DeviceCounters::default()
    };
    // Eight writers share a flush, or each write needs two flushes.
    for (writes, flushes) in [(8_000, 1_000), (500, 1_000)] {
        let looks = looks(&[("sda", device(writes, Some(flushes)))]);
        let found = rates(Kind::Flushes, &looks, &job(writes as f64, 4096.0)).unwrap();
        assert_near(found[0].per_s, 1_000.0);
        let mut capacities = BTreeMap::new();
        enter(Kind::Flushes, &found, &mut capacities);
        let capacity = capacities.values().next().unwrap();
        let most = capacity.flush_per_s.unwrap();
        assert!(most <= found[0].per_s && most > 900.0, "{most}");
        assert_eq!(capacity.uncertainty_ratio, None);
    }
    // Flushes of a partition are counted on its disk.
    let partition = looks(&[("sda1", device(8_000, None))]);
    assert!(rates(Kind::Flushes, &partition, &job(8_000.0, 4096.0)).is_err());
}

#[test]
fn startup_time_of_fio_does_not_count() {
    let looks = looks(&[("sda", reading(8_000, 4096))]);
    let found = rates(Kind::Reads, &looks, &job(8_000.0, 4096.0)).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "sda");
    assert_near(found[0].per_s, 8_000.0);
    assert!(found[0].uncertainty_ratio < 0.01, "{found:?}");
}

#[test]
fn each_member_has_its_own_capacity() {
    // A stripe over two devices: each has half of the reads, and one serves other requests as well.
    let slow = DeviceCounters { writes: 50, written_bytes: 50 * 4096, ..reading(3_000, 4096) };
    let both = looks(&[("sdb", slow), ("sdc", reading(3_300, 4096))]);
    let found = rates(Kind::Reads, &both, &job(6_000.0, 4096.0)).unwrap();
    let mut capacities = BTreeMap::new();
    enter(Kind::Reads, &found, &mut capacities);
    let bytes = looks(&[("sdc", reading(200, 1 << 20)), ("sdb", reading(100, 1 << 20))]);
    let found = rates(Kind::ReadBytes, &bytes, &job(300.0, f64::from(1 << 20))).unwrap();
    enter(Kind::ReadBytes, &found, &mut capacities);
    let (names, capacities): (Vec<String>, Vec<DiskCapacity>) = capacities.into_iter().unzip();
    assert_eq!(names, ["sdb", "sdc"]);
    assert_near(capacities[0].read_per_s.unwrap(), 3_000.0);
    assert_near(capacities[1].read_per_s.unwrap(), 3_300.0);
    assert_near(capacities[0].read_bytes_per_s.unwrap(), 100.0 * 1_048_576.0);
    assert_near(capacities[1].read_bytes_per_s.unwrap(), 200.0 * 1_048_576.0);
    assert_eq!(capacities[0].write_per_s, None);
}

#[test]
fn writes_are_counted_as_writes() {
    let writing =
        DeviceCounters { writes: 2_000, written_bytes: 2_000 * 4096, ..reading(70, 4096) };
    let looks = looks(&[("vda", writing)]);
    let found = rates(Kind::Writes, &looks, &job(2_000.0, 4096.0)).unwrap();
    assert_near(found[0].per_s, 2_000.0);
    let found = rates(Kind::WriteBytes, &looks, &job(2_000.0, 4096.0)).unwrap();
    assert_near(found[0].per_s, 2_000.0 * 4096.0);
}

#[test]
fn device_rate_includes_writes_of_the_file_system() {
    // A journal: 2,600 writes for 2,000 of `fio`.
    let writing =
        DeviceCounters { writes: 2_600, written_bytes: 2_600 * 4096, ..DeviceCounters::default() };
    let looks = looks(&[("vda", writing)]);
    let found = rates(Kind::Writes, &looks, &job(2_000.0, 4096.0)).unwrap();
    assert_near(found[0].per_s, 2_600.0);
}

#[test]
fn measurements_that_miss_the_device_limit_are_refused() {
    let looks = looks(&[("sda", reading(8_000, 4096))]);
    let reason = |job: &JobDone| rates(Kind::Reads, &looks, job).unwrap_err();
    // The page cache, possibly of the file behind a loop device, has answered one in nine.
    assert!(rates(Kind::Reads, &looks, &job(8_800.0, 4096.0)).is_ok());
    assert!(reason(&job(9_000.0, 4096.0)).contains("cache"));
    assert!(reason(&job(16_000.0, 2048.0)).contains("merged"));
    let busy = JobDone { cpu_ratio: 0.9, ..job(8_000.0, 4096.0) };
    assert!(reason(&busy).contains("CPU"));
    // Written later, in a burst.
    let later = JobDone { duration_s: 3.0, ..job(8_000.0, 4096.0) };
    assert!(reason(&later).contains("cache"));
    assert!(rates(Kind::Writes, &looks, &job(8_000.0, 4096.0)).unwrap_err().contains("no request"));
    assert!(rates(Kind::Reads, &[], &job(8_000.0, 4096.0)).is_err());
    let few: Vec<Look> = looks.iter().step_by(15).cloned().collect();
    assert!(rates(Kind::Reads, &few, &job(8_000.0, 4096.0)).unwrap_err().contains("too soon"));
}

#[test]
fn idle_members_are_omitted_and_changed_ones_are_errors() {
    // A linear volume: the file is on its first member.
    let mut both = looks(&[("sdb", reading(8_000, 4096)), ("sdc", DeviceCounters::default())]);
    let found = rates(Kind::Reads, &both, &job(8_000.0, 4096.0)).unwrap();
    assert_eq!(found.len(), 1);
    assert_near(found[0].per_s, 8_000.0);
    assert_eq!(idle(&found, &both[0].devices), ["sdc"]);
    for look in both.iter_mut().skip(60) {
        look.devices[1].0 = "sdd".to_owned();
    }
    let reason = rates(Kind::Reads, &both, &job(8_000.0, 4096.0)).unwrap_err();
    assert!(reason.contains("changed"), "{reason}");
}

#[test]
fn rates_measured_without_an_idle_cpu_are_refused() {
    let with_idle = |idle: u64| {
        let mut looks = looks(&[("sda", reading(8_000, 4096))]);
        // The 75 steps have 4 ticks each.
        for (step, look) in looks.iter_mut().enumerate() {
            look.cpus.idle = 5_000 + step as u64 * idle / 100;
        }
        rates(Kind::Reads, &looks, &job(8_000.0, 4096.0))
    };
    assert!(with_idle(44).is_ok());
    let reason = with_idle(36).unwrap_err();
    assert!(reason.contains("CPUs"), "{reason}");
}

#[test]
fn iowait_counts_as_idle() {
    let text = "cpu  100 5 50 800 40 2 3 7 90 0\ncpu0 1 1 1 1 1 1 1 1\n";
    let expected = CpuTicks { idle: 840, all: 1_007 };
    assert_eq!(CpuTicks::parse(text), Some(expected));
    assert_eq!(CpuTicks::parse("cpu  1 2 3\n"), None);
    assert_eq!(CpuTicks::parse("intr 5\n"), None);
}

#[test]
fn fluctuating_device_has_a_wide_interval() {
    let mut looks = looks(&[("sda", reading(8_000, 4096))]);
    // Half of the time it is three times as fast.
    let mut more = 0;
    for (step, look) in looks.iter_mut().enumerate() {
        let does_more = step % 20 < 10 && (20..95).contains(&step);
        more += if does_more { 320 } else { 0 };
        look.devices[0].1.reads += more;
        look.devices[0].1.read_bytes += more * 4096;
    }
    let found = rates(Kind::Reads, &looks, &job(16_000.0, 4096.0)).unwrap();
    assert!((0.2..0.6).contains(&found[0].uncertainty_ratio), "{found:?}");
    let mut capacities = BTreeMap::new();
    enter(Kind::Reads, &found, &mut capacities);
    let steady = DeviceRate { name: "sda".to_owned(), per_s: 1.0, uncertainty_ratio: 0.01 };
    enter(Kind::Writes, &[steady], &mut capacities);
    let worst = capacities["sda"].uncertainty_ratio;
    assert_eq!(worst, Some(found[0].uncertainty_ratio));
}

#[test]
fn loop_device_has_a_limit_only_without_the_page_cache() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("sys/block/loop7/loop");
    fs::create_dir_all(&folder).unwrap();
    let devices = ["sda", "loop7"].map(|name| (name.to_owned(), DeviceCounters::default()));
    fs::write(folder.join("dio"), "1\n").unwrap();
    assert_eq!(past_page_cache(root.path(), &devices), Ok(()));
    fs::write(folder.join("dio"), "0\n").unwrap();
    let reason = past_page_cache(root.path(), &devices).unwrap_err();
    assert!(reason.contains("`loop7`"), "{reason}");
    assert_eq!(past_page_cache(root.path(), &devices[..1]), Ok(()));
}
