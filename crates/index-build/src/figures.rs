//! Activity of processes, devices and servers during an index build, from counters before and after.

use bson::{Bson, Document, doc};
use dyno_load::connect::Control;
use dyno_observe::{Device, DeviceCounters, devices_of_file_system};
use dyno_record::index_build::IoFigures;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Largest number of server counters to keep: those that grew most.
const MOST_COUNTERS: usize = 400;

/// Counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    at: Instant,
    process: Option<IoFigures>,
    device: Option<DeviceCounters>,
    server: BTreeMap<String, f64>,
}

/// Growth of the counters.
pub(crate) struct Grown {
    pub(crate) process: Option<IoFigures>,
    pub(crate) device: Option<IoFigures>,
    pub(crate) server: BTreeMap<String, f64>,
}

impl Counters {
    /// Reads all counters that can be read.
    pub(crate) fn read(process: u32, device: Option<&Device>, control: &mut Control) -> Counters {
        Counters {
            process: process_io(process),
            device: device.and_then(|device| device.counters().ok()),
            server: server_counters(control),
            at: Instant::now(),
        }
    }

    /// Growth until `later`.
    pub(crate) fn until(&self, later: &Counters) -> Grown {
        let between = |from: IoFigures, to: IoFigures| IoFigures {
            reads: to.reads.saturating_sub(from.reads),
            read_bytes: to.read_bytes.saturating_sub(from.read_bytes),
            writes: to.writes.saturating_sub(from.writes),
            written_bytes: to.written_bytes.saturating_sub(from.written_bytes),
            busy_ratio: None,
        };
        let elapsed_ms = (later.at - self.at).as_secs_f64() * 1e3;
        let device = self.device.zip(later.device).map(|(from, to)| {
            let busy_ms = to.busy_ms.saturating_sub(from.busy_ms) as f64;
            IoFigures {
                busy_ratio: (elapsed_ms > 0.0).then(|| (busy_ms / elapsed_ms).min(1.0)),
                ..between(of_device(&from), of_device(&to))
            }
        });
        let counters = later.server.iter().filter(|(name, _)| !is_gauge(name));
        let grown = counters.filter_map(|(name, now)| {
            let grown = now - self.server.get(name)?;
            (grown > 0.0).then(|| (name.clone(), grown))
        });
        let mut grown: Vec<(String, f64)> = grown.collect();
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        grown.truncate(MOST_COUNTERS);
        Grown {
            process: self.process.zip(later.process).map(|(from, to)| between(from, to)),
            device,
            server: grown.into_iter().collect(),
        }
    }
}

/// Whether a WiredTiger number is a current level instead of a total.
fn is_gauge(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "currently",
        "tracked",
        "maximum",
        "configured",
        "percentage",
        "bytes allocated for updates",
        "not belonging to page images",
        "total in use",
        "connections.current",
    ];
    WORDS.iter().any(|word| name.contains(word))
}

/// Activity of a process; `None` if it cannot be read.
pub(crate) fn process_io(process: u32) -> Option<IoFigures> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    Some(parse_io(&text))
}

/// Sum over several; `None` if one is unknown. Only a single one has a share of time.
pub(crate) fn sum(all: impl Iterator<Item = Option<IoFigures>>) -> Option<IoFigures> {
    all.reduce(|sum, one| {
        let (sum, one) = (sum?, one?);
        Some(IoFigures {
            reads: sum.reads + one.reads,
            read_bytes: sum.read_bytes + one.read_bytes,
            writes: sum.writes + one.writes,
            written_bytes: sum.written_bytes + one.written_bytes,
            busy_ratio: None,
        })
    })?
}

/// Sums the counters of several servers by name.
pub(crate) fn sum_of_counters<'a>(
    all: impl Iterator<Item = &'a BTreeMap<String, f64>>,
) -> BTreeMap<String, f64> {
    let mut sum = BTreeMap::new();
    for (name, grown) in all.flatten() {
        *sum.entry(name.clone()).or_default() += grown;
    }
    sum
}

fn parse_io(text: &str) -> IoFigures {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or(0)
    };
    IoFigures {
        reads: of("syscr"),
        read_bytes: of("read_bytes"),
        writes: of("syscw"),
        written_bytes: of("write_bytes"),
        busy_ratio: None,
    }
}

fn of_device(counters: &DeviceCounters) -> IoFigures {
    IoFigures {
        reads: counters.reads,
        read_bytes: counters.read_bytes,
        writes: counters.writes,
        written_bytes: counters.written_bytes,
        busy_ratio: None,
    }
}

/// The device of a folder; `None` for file systems without one, or with several.
pub(crate) fn device_of(folder: &Path) -> Option<Device> {
    let [device] = <[Device; 1]>::try_from(devices_of_file_system(folder)).ok()?;
    Some(device)
}

/// Numbers in the answer to `serverStatus` by dotted name; empty if the server does not answer.
fn server_counters(control: &mut Control) -> BTreeMap<String, f64> {
    let command =
        doc! { "serverStatus": 1, "locks": 0, "repl": 0, "tcmalloc": 0, "mirroredReads": 0 };
    let mut found = BTreeMap::new();
    if let Ok(status) = control.run("admin", command) {
        flatten(&status, "", &mut found);
    }
    for clock in ["localTime", "uptime", "uptimeMillis", "uptimeEstimate", "ok", "pid"] {
        found.remove(clock);
    }
    found
}

fn flatten(document: &Document, prefix: &str, into: &mut BTreeMap<String, f64>) {
    for (name, value) in document {
        let path = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        let number = match value {
            Bson::Document(inner) => {
                flatten(inner, &path, into);
                continue;
            }
            Bson::Int32(number) => f64::from(*number),
            Bson::Int64(number) => *number as f64,
            Bson::Double(number) => *number,
            _ => continue,
        };
        into.insert(path, number);
    }
}

/// Files in a folder and its subfolders, with sizes.
pub(crate) fn files_of(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) if metadata.is_file() => found.push((entry.path(), metadata.len())),
                _ => {}
            }
        }
    }
    found
}

/// Total bytes of WiredTiger tables among files.
pub(crate) fn table_bytes(files: &[(PathBuf, u64)]) -> u64 {
    tables(files).map(|(_, bytes)| bytes).sum()
}

fn tables(files: &[(PathBuf, u64)]) -> impl Iterator<Item = &(PathBuf, u64)> {
    files.iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "wt"))
}

/// Bytes of these tables in the page cache; `None` if unknown for one of them.
pub(crate) fn cached_bytes(files: &[(PathBuf, u64)]) -> Option<u64> {
    tables(files).map(|(path, bytes)| cached(path, *bytes)).sum()
}

/// Bytes of a file in the page cache.
fn cached(path: &Path, bytes: u64) -> Option<u64> {
    let length = usize::try_from(bytes).ok()?;
    if length == 0 {
        return Some(0);
    }
    let file = File::open(path).ok()?;
    let page =
        usize::try_from(nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??).ok()?;
    let mut pages = vec![0u8; length.div_ceil(page)];
    // SAFETY: the file is mapped without access and unmapped again, nothing is read through the mapping, and `pages` has a byte for
    // each page of it.
    let is_reported = unsafe {
        use std::os::fd::AsRawFd;
        let map = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_NONE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if map == libc::MAP_FAILED {
            return None;
        }
        let reported = libc::mincore(map, length, pages.as_mut_ptr()) == 0;
        libc::munmap(map, length);
        reported
    };
    let resident = pages.iter().filter(|page| **page & 1 == 1).count();
    is_reported.then_some((resident * page) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn counters_of_a_process_are_read() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 30\nsyscw: 4\nread_bytes: 5000\nwrite_bytes: 600\ncancelled_write_bytes: 7\n";
        let figures = parse_io(text);
        assert_eq!((figures.reads, figures.read_bytes), (30, 5_000));
        assert_eq!((figures.writes, figures.written_bytes), (4, 600));
    }

    #[test]
    fn each_counter_of_a_device_has_its_figure() {
        let counters = DeviceCounters {
            reads: 10,
            read_bytes: 8_192,
            writes: 20,
            written_bytes: 16_384,
            busy_ms: 70,
            queued_ms: 80,
            flushes: None,
        };
        let figures = of_device(&counters);
        assert_eq!((figures.reads, figures.read_bytes), (10, 8_192));
        assert_eq!((figures.writes, figures.written_bytes), (20, 16_384));
    }

    #[test]
    fn sum_is_unknown_when_one_server_is_unknown() {
        let one = IoFigures {
            reads: 3,
            read_bytes: 500,
            writes: 2,
            written_bytes: 70,
            busy_ratio: Some(0.5),
        };
        assert_eq!(sum([Some(one)].into_iter()), Some(one));
        let both = sum([Some(one), Some(one)].into_iter()).expect("both are known");
        assert_eq!((both.reads, both.read_bytes), (6, 1_000));
        assert_eq!((both.writes, both.written_bytes), (4, 140));
        assert_eq!(both.busy_ratio, None);
        assert_eq!(sum([Some(one), None].into_iter()), None);
        let counters = |value| BTreeMap::from([("a".to_owned(), value)]);
        let all = [counters(1.0), counters(2.5), BTreeMap::new()];
        assert_eq!(sum_of_counters(all.iter()), counters(3.5));
    }

    #[test]
    fn only_counters_that_grew_are_listed() {
        let counters = |numbers: &[(&str, f64)], busy_ms| Counters {
            at: Instant::now(),
            process: None,
            device: Some(DeviceCounters { busy_ms, ..DeviceCounters::default() }),
            server: numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
        };
        let before = counters(&[("a", 1.0), ("b", 5.0), ("c", 3.0)], 0);
        let mut after = counters(&[("a", 4.0), ("b", 5.0), ("c", 2.0), ("new", 9.0)], 500);
        after.at = before.at + std::time::Duration::from_secs(1);
        let grown = before.until(&after);
        assert_eq!(grown.server, BTreeMap::from([("a".to_owned(), 3.0)]));
        let busy = grown.device.and_then(|device| device.busy_ratio);
        assert!(busy.is_some_and(|busy| (busy - 0.5).abs() < 1e-9), "{busy:?}");
    }

    #[test]
    fn gauges_are_not_counters() {
        assert!(is_gauge("wiredTiger.cache.bytes currently in the cache"));
        assert!(is_gauge("wiredTiger.cache.tracked dirty bytes in the cache"));
        assert!(!is_gauge("wiredTiger.cache.bytes read into cache"));
    }

    #[test]
    fn newly_written_file_is_in_the_page_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.wt");
        let mut file = File::create(&path).expect("can create");
        file.write_all(&[1; 100_000]).expect("can write");
        drop(file);
        fs::write(folder.path().join("other"), [1; 50_000]).expect("can write");
        let files = files_of(folder.path());
        assert_eq!(files.len(), 2);
        assert_eq!(table_bytes(&files), 100_000);
        assert!(cached_bytes(&files).is_some_and(|bytes| bytes >= 100_000));
    }

    #[test]
    fn nested_numbers_have_dotted_names() {
        let mut found = BTreeMap::new();
        flatten(&doc! { "a": { "b c": 1, "d": "text" }, "e": 2.5 }, "", &mut found);
        assert_eq!(found, BTreeMap::from([("a.b c".to_owned(), 1.0), ("e".to_owned(), 2.5)]));
    }
}
