//! Activity of each disk: requests, bytes, request times, requests in flight, and busy time.
//! Source of the fields: `Documentation/admin-guide/iostats.rst` of Linux.

use super::data::DataFolders;
use super::file::{KeptFile, first_numbers};
use super::part::Part;
use super::present::Present;
use crate::health::Reading;
use crate::storage::devices::SECTOR_BYTES;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, disk};
use std::fs;
use std::path::{Path, PathBuf};

/// Number of counters of a device: 11 in all kernels, plus 4 of discards since 4.18 and 2 of
/// flushes since 5.5.
const FIELDS: usize = 17;
type Fields = [Option<u64>; FIELDS];
const READS: usize = 0;
const READ_SECTORS: usize = 2;
const READ_MS: usize = 3;
const WRITES: usize = 4;
const WRITE_SECTORS: usize = 6;
const WRITE_MS: usize = 7;
const IN_FLIGHT: usize = 8;
const BUSY_MS: usize = 9;
const QUEUE_MS: usize = 10;
const DISCARDS: usize = 11;
const FLUSHES: usize = 15;
const FLUSH_MS: usize = 16;

/// Milliseconds are counted in 32 bits and wrap after 49 days.
const MILLISECONDS: [usize; 5] = [READ_MS, WRITE_MS, BUSY_MS, QUEUE_MS, FLUSH_MS];

/// A metric, and how to compute it from the growth of the counters.
type Value = (Metric, fn(&Growth) -> Option<f64>);

const METRICS: [Value; 13] = [
    (disk::READ_PER_S, |disk| disk.per_s(READS)),
    (disk::WRITE_PER_S, |disk| disk.per_s(WRITES)),
    (disk::DISCARD_PER_S, |disk| disk.per_s(DISCARDS)),
    (disk::FLUSH_PER_S, |disk| disk.per_s(FLUSHES)),
    (disk::READ_BYTES_PER_S, |disk| Some(disk.per_s(READ_SECTORS)? * SECTOR_BYTES as f64)),
    (disk::WRITE_BYTES_PER_S, |disk| Some(disk.per_s(WRITE_SECTORS)? * SECTOR_BYTES as f64)),
    (disk::READ_AWAIT_MS, |disk| disk.mean(READ_MS, READS)),
    (disk::WRITE_AWAIT_MS, |disk| disk.mean(WRITE_MS, WRITES)),
    (disk::FLUSH_AWAIT_MS, |disk| disk.mean(FLUSH_MS, FLUSHES)),
    (disk::QUEUE_COUNT, |disk| Some(disk.per_s(QUEUE_MS)? / 1e3)),
    // The kernel adds whole ticks, which may reach beyond the reading.
    (disk::UTILIZATION_RATIO, |disk| Some((disk.per_s(BUSY_MS)? / 1e3).min(1.0))),
    (disk::READ_SIZE_BYTES, |disk| Some(disk.mean(READ_SECTORS, READS)? * SECTOR_BYTES as f64)),
    (disk::WRITE_SIZE_BYTES, |disk| Some(disk.mean(WRITE_SECTORS, WRITES)? * SECTOR_BYTES as f64)),
];

/// The disks.
pub(super) struct Disks {
    root: PathBuf,
    file: KeptFile,
    disks: Present<String, Disk>,
    data: DataFolders,
}

/// Kind of a device, which decides whether it is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A whole device: always reported.
    Disk,
    /// A device that the kernel makes of others, such as a loop device, a volume or an array:
    /// reported if it holds data or has activity. Machines have dozens of idle loop devices.
    Made,
    /// A part of a disk: reported if it holds data.
    Partition,
    /// A disk in memory: never reported.
    Memory,
}

struct Disk {
    kind: Kind,
    counts_flushes: bool,
    is_shown: bool,
    last: Option<(f64, Fields)>,
}

/// Growth of the counters of a device over a time.
struct Growth {
    duration_s: f64,
    by: Fields,
}

impl Disks {
    pub(super) fn new(root: &Path, data_folders: Vec<PathBuf>) -> Disks {
        Disks {
            root: root.to_owned(),
            file: KeptFile::new(root, "proc/diskstats"),
            disks: Present::default(),
            data: DataFolders::new(root, data_folders),
        }
    }
}

impl Part for Disks {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        self.data.report(reported);
        let text = self.file.read()?;
        self.disks.begin();
        let mut not_understood = 0;
        for line in text.lines() {
            let Some((number, name, fields)) = parse(line) else {
                not_understood += 1;
                continue;
            };
            let disk = self.disks.see(name, || Disk {
                kind: kind(&self.root, number, name),
                counts_flushes: counts_flushes(&self.root, number),
                is_shown: false,
                last: None,
            });
            disk.read(at_s, name, fields, self.data.is_on(name), reported);
        }
        self.disks.end();
        match not_understood {
            0 => Ok(()),
            _ => Err(self.file.not_understood("counters in some of its lines")),
        }
    }
}

/// Parses `major, minor`, name and counters of a line.
fn parse(line: &str) -> Option<((u64, u64), &str, Fields)> {
    let (major, rest) = line.trim_start().split_once(' ')?;
    let (minor, rest) = rest.trim_start().split_once(' ')?;
    let (name, counters) = rest.trim_start().split_once(' ')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let fields: Fields = first_numbers(counters);
    fields[QUEUE_MS].map(|_| (number, name, fields))
}

fn kind(root: &Path, (major, minor): (u64, u64), name: &str) -> Kind {
    if name.starts_with("ram") {
        return Kind::Memory;
    }
    let link = root.join(format!("sys/dev/block/{major}:{minor}"));
    match link.canonicalize() {
        Ok(device) if device.join("partition").exists() => Kind::Partition,
        // Not everything in `virtual`: NVMe disks with several paths are there as well.
        Ok(device) if device.to_string_lossy().contains("/devices/virtual/block/") => Kind::Made,
        _ => Kind::Disk,
    }
}

/// Whether the kernel counts the flushes of a device. It does so only for devices with a request
/// queue. Flushes of a partition are counted on its disk, and flushes of a volume or an array on
/// the devices below; their own counters stay at 0.
fn counts_flushes(root: &Path, (major, minor): (u64, u64)) -> bool {
    let device = root.join(format!("sys/dev/block/{major}:{minor}"));
    let lies_on_others = || {
        let below = fs::read_dir(device.join("slaves"));
        below.is_ok_and(|mut below| below.next().is_some())
    };
    !device.join("partition").exists() && !lies_on_others()
}

impl Disk {
    fn read(
        &mut self,
        at_s: f64,
        name: &str,
        fields: Fields,
        has_data: bool,
        reported: &mut Reported,
    ) {
        let before = self.last.replace((at_s, fields));
        let growth =
            before.and_then(|(before_s, before)| growth(at_s - before_s, &before, &fields));
        let has_moved = || {
            let requests = |growth: &Growth| {
                let of = |place| growth.delta(place).unwrap_or(0.0);
                of(READS) + of(WRITES) + of(DISCARDS) + of(FLUSHES)
            };
            growth.as_ref().is_some_and(|growth| requests(growth) > 0.0)
        };
        self.is_shown |= match self.kind {
            Kind::Disk => true,
            Kind::Made => has_data || has_moved(),
            Kind::Partition => has_data,
            Kind::Memory => false,
        };
        if !self.is_shown {
            return;
        }
        let in_flight = fields[IN_FLIGHT].map(|count| count as f64);
        reported.put_if_known(disk::IN_FLIGHT_COUNT.of(name), in_flight);
        for (metric, value) in METRICS {
            if metric != disk::FLUSH_PER_S || self.counts_flushes {
                reported.put_if_known(metric.of(name), growth.as_ref().and_then(value));
            }
        }
    }
}

/// `None` if another device has taken the name: then a count of requests decreased.
fn growth(duration_s: f64, before: &Fields, now: &Fields) -> Option<Growth> {
    let mut by = [None; FIELDS];
    for place in 0..FIELDS {
        let (Some(before), Some(now)) = (before[place], now[place]) else {
            continue;
        };
        by[place] = if MILLISECONDS.contains(&place) {
            // Compares the last 32 bits, because the counter has no more.
            Some(u64::from((now as u32).wrapping_sub(before as u32)))
        } else if place == IN_FLIGHT {
            None
        } else {
            Some(now.checked_sub(before)?)
        };
    }
    (duration_s > 0.0).then_some(Growth { duration_s, by })
}

impl Growth {
    /// Growth of a counter; `None` if it is absent.
    fn delta(&self, place: usize) -> Option<f64> {
        self.by[place].map(|growth| growth as f64)
    }

    /// Growth of a counter per second.
    fn per_s(&self, place: usize) -> Option<f64> {
        Some(self.delta(place)? / self.duration_s)
    }

    /// Growth of one counter per unit of another, such as bytes per read; `None` if the other did
    /// not grow.
    fn mean(&self, sum: usize, count: usize) -> Option<f64> {
        let count = self.delta(count).filter(|count| *count > 0.0)?;
        Some(self.delta(sum)? / count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;
    use std::os::unix::fs::symlink;

    fn link(fixture: &Fixture, number: &str, device: &str) {
        let links = fixture.root().join("sys/dev/block");
        let device = fixture.root().join("sys/devices").join(device);
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(&device).unwrap();
        symlink(device, links.join(number)).unwrap();
    }

    /// The root is on `vda1`; `loop0` is idle; `loop1` holds the folder `data`.
    fn machine() -> Fixture {
        let fixture = Fixture::new()
            .with("data/x", "")
            .with("sys/devices/pci0/block/vda/vda1/partition", "1\n");
        link(&fixture, "254:0", "pci0/block/vda");
        link(&fixture, "254:1", "pci0/block/vda/vda1");
        link(&fixture, "254:2", "pci0/block/vda/vda2");
        let second = "sys/devices/pci0/block/vda/vda2/partition";
        let fixture = fixture.with(second, "2\n");
        link(&fixture, "7:0", "virtual/block/loop0");
        link(&fixture, "7:1", "virtual/block/loop1");
        link(&fixture, "259:0", "virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
        let data = fixture.root().canonicalize().unwrap().join("data");
        let mounts = format!(
            "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n2 1 7:1 / {} rw - xfs /dev/loop1 rw\n",
            data.display()
        );
        fixture.with("proc/self/mountinfo", &mounts)
    }

    const IDLE: &str = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    fn stats(vda: &str, loop0: &str) -> String {
        format!(
            " 254 0 vda {vda}\n 254 1 vda1 {vda}\n 254 2 vda2 {vda}\n 7 0 loop0 {loop0}\n \
             7 1 loop1 {IDLE}\n 1 0 ram0 {vda}\n 259 0 nvme0n1 {IDLE}\n"
        )
    }

    #[test]
    fn disk_values_cover_the_time_since_the_last_reading() {
        let first = "100 5 1000 50 200 6 4000 400 0 300 450 10 0 80 5 7 70";
        let fixture = machine().with("proc/diskstats", &stats(first, IDLE));
        let mut disks = Disks::new(fixture.root(), Vec::new());
        let reported = read(&mut disks, 1.0);
        assert_eq!(
            names(&reported, "disk."),
            ["disk.nvme0n1.in_flight_count", "disk.vda.in_flight_count"]
        );
        let second = "120 5 1160 80 240 6 4800 500 3 1300 1450 14 0 90 6 9 100";
        let fixture = fixture.with("proc/diskstats", &stats(second, IDLE));
        let reported = read(&mut disks, 3.0);
        assert_values(
            &reported,
            &[
                ("disk.vda.read_per_s", 10.0),
                ("disk.vda.write_per_s", 20.0),
                ("disk.vda.discard_per_s", 2.0),
                ("disk.vda.flush_per_s", 1.0),
                ("disk.vda.read_bytes_per_s", 40_960.0),
                ("disk.vda.write_bytes_per_s", 204_800.0),
                ("disk.vda.read_await_ms", 1.5),
                ("disk.vda.write_await_ms", 2.5),
                ("disk.vda.flush_await_ms", 15.0),
                ("disk.vda.queue_count", 0.5),
                ("disk.vda.utilization_ratio", 0.5),
                ("disk.vda.read_size_bytes", 4096.0),
                ("disk.vda.write_size_bytes", 10_240.0),
                ("disk.vda.in_flight_count", 3.0),
                ("disk.nvme0n1.utilization_ratio", 0.0),
            ],
        );
        assert_eq!(names(&reported, "disk.vda.").len(), 14);
        // If no request ended, there is no mean time.
        assert_eq!(value(&reported, "disk.nvme0n1.read_await_ms"), None);
        drop(fixture);
    }

    #[test]
    fn devices_with_data_or_activity_are_reported() {
        let fixture = machine().with("proc/diskstats", &stats(IDLE, IDLE));
        let folder = fixture.root().join("data");
        let mut disks = Disks::new(fixture.root(), vec![folder, "/no-such-folder".into()]);
        let shown = |reported: &Reported| {
            names(reported, "disk.").join(" ").replace(".in_flight_count", "")
        };
        let reported = read(&mut disks, 1.0);
        assert_eq!(shown(&reported), "disk.loop1 disk.nvme0n1 disk.vda disk.vda1");
        assert_values(&reported, &[("storage.vda.holds_data_count", 1.0)]);
        let moved = "1 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0";
        let _fixture = fixture.with("proc/diskstats", &stats(IDLE, moved));
        let reported = read(&mut disks, 2.0);
        assert_values(&reported, &[("disk.loop0.read_per_s", 1.0)]);
        assert_eq!(names(&reported, "disk.vda2."), [""; 0]);
        assert_eq!(names(&reported, "disk.ram0."), [""; 0]);
    }

    #[test]
    fn flushes_are_reported_where_the_kernel_counts_them() {
        let fixture = machine().with("sys/devices/virtual/block/dm-0/slaves/vda2/size", "1\n");
        link(&fixture, "253:0", "virtual/block/dm-0");
        let lines = |fields: &str| {
            let names = ["254 0 vda", "254 1 vda1", "7 1 loop1", "253 0 dm-0"];
            names.map(|name| format!("{name} {fields}\n")).concat()
        };
        let fixture = fixture.with("proc/diskstats", &lines(IDLE));
        let folder = fixture.root().join("data");
        let mut disks = Disks::new(fixture.root(), vec![folder, "/no-such-folder".into()]);
        read(&mut disks, 1.0);
        let some = "8 0 64 8 0 0 0 0 0 8 8 0 0 0 0 4 4";
        let _fixture = fixture.with("proc/diskstats", &lines(some));
        let reported = read(&mut disks, 2.0);
        assert_values(&reported, &[("disk.vda.flush_per_s", 4.0), ("disk.loop1.flush_per_s", 4.0)]);
        for device in ["vda1", "dm-0"] {
            assert_eq!(value(&reported, &format!("disk.{device}.read_per_s")), Some(8.0));
            assert_eq!(value(&reported, &format!("disk.{device}.flush_per_s")), None);
        }
    }

    #[test]
    fn disk_milliseconds_wrap_and_a_replaced_disk_starts_anew() {
        let line = |fields: &str| format!("254 0 vda {fields}\n");
        let first = line("100 0 800 4294967290 0 0 0 0 0 4294967196 4294967290");
        let fixture = Fixture::new().with("proc/diskstats", &first);
        let mut disks = Disks::new(fixture.root(), Vec::new());
        read(&mut disks, 1.0);
        let second = line("102 0 816 4 0 0 0 0 0 400 994");
        let fixture = fixture.with("proc/diskstats", &second);
        let reported = read(&mut disks, 2.0);
        assert_values(
            &reported,
            &[
                ("disk.vda.read_await_ms", 5.0),
                ("disk.vda.utilization_ratio", 0.5),
                ("disk.vda.queue_count", 1.0),
            ],
        );
        // The kernel is too old to report discards and flushes.
        assert_eq!(value(&reported, "disk.vda.flush_per_s"), None);
        let _fixture = fixture.with("proc/diskstats", &line("3 0 24 9 0 0 0 0 0 9 9"));
        let reported = read(&mut disks, 3.0);
        assert_eq!(names(&reported, "disk."), ["disk.vda.in_flight_count"]);
    }

    #[test]
    fn returning_disk_starts_anew() {
        let with = "254 0 vda 10 0 80 1 0 0 0 0 0 1 1\n";
        let fixture = Fixture::new().with("proc/diskstats", with);
        let mut disks = Disks::new(fixture.root(), Vec::new());
        read(&mut disks, 1.0);
        let fixture = fixture.with("proc/diskstats", "");
        assert_eq!(read(&mut disks, 2.0), Reported::default());
        let _fixture = fixture.with("proc/diskstats", with);
        assert_eq!(read(&mut disks, 3.0).values.len(), 1);
    }

    #[test]
    fn garbage_in_diskstats_is_reported() {
        let fixture = Fixture::new().with("proc/diskstats", "254 0 vda 1 2\nx\n");
        let reported = read(&mut Disks::new(fixture.root(), Vec::new()), 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
        let reported = read(&mut Disks::new(Path::new("/no-such"), Vec::new()), 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
    }
}
