//! Measures storage without a server, with `fio` on the new file system: reads like a cold cache,
//! writes like a journal, and as many concurrent operations as its devices can serve.

use super::capacity::{self, Counting, CpuTicks, JobDone, Kind, Look};
use super::program::{self, Interrupted};
use super::throttle::Throttle;
use super::{PreparedStorage, StorageError};
use dyno_plan::storage::FileSystem;
use dyno_record::disk::DiskCapacity;
use dyno_record::storage::StorageLimitsRecord;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

/// The program.
pub(super) const FIO: &str = "fio";
/// Duration of all measurements including their file, on a device of ordinary speed.
pub const MEASURING: Duration = Duration::from_secs(13);
/// Size of the file to read: larger than the buffers of most devices, and written in a second or
/// two.
const READ_BYTES: u64 = 256 << 20;
/// Fraction of a small file system to use: one part in this many.
const PART: u64 = 4;
/// Size of the file that is overwritten repeatedly.
const WRITTEN_BYTES: u64 = 64 << 20;
/// Requests in flight per device for a capacity: WiredTiger's default maximum, 128 of its readers
/// and 128 of its writers, which read as well.
const DEPTH: usize = 256;
/// Largest number of submitting threads, so that one CPU does not limit a fast device.
const MOST_THREADS: usize = 4;
/// Large requests in flight for a bandwidth.
const LARGE_DEPTH: &str = "--iodepth=16";
/// Number of threads that each wait for a flush. Whether more threads increase the rate was not
/// measured: the result is a lower bound.
const SYNCING: &str = "--numjobs=8";
/// Output file of the program.
const OUTPUT: &str = "fio.json";
/// File that is overwritten in place.
const IN_PLACE: &str = "fio.in-place";
/// Interval of reading the device counters.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Measured limits of storage.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageLimits {
    /// As a server uses the storage.
    pub performance: StorageLimitsRecord,
    /// Capacity of each device by its name in `/sys/block`, without the plan's limit.
    pub capacities: BTreeMap<String, DiskCapacity>,
    /// Why capacities are missing.
    pub no_capacity: Option<String>,
}

/// Whether the measuring program is available.
pub fn can_measure() -> bool {
    program::is_there(FIO)
}

/// Measures a file system without other users, and removes its files afterwards.
pub(super) fn measure(
    storage: &PreparedStorage,
    counting: Counting<'_>,
    interrupted: Interrupted<'_>,
) -> Result<StorageLimits, StorageError> {
    let folder = storage.folder.as_path();
    let bench = Bench {
        folder,
        file: "fio.data",
        bytes: READ_BYTES.min(storage.bytes() / PART),
        interrupted,
    };
    let throttle = match storage.limited_after() {
        None => storage.throttle(&[])?,
        Some(_) => None,
    };
    let limits = bench.limits(throttle.as_ref());
    drop(throttle);
    let copies_on_write = storage.setting.volume.file_system() == FileSystem::Btrfs;
    let result = limits.and_then(|limits| match copies_on_write {
        true => {
            let bench = bench.written_in_place()?;
            bench.with_capacities(limits, counting)
        }
        false => bench.with_capacities(limits, counting),
    });
    for name in [bench.file, OUTPUT, IN_PLACE] {
        let _ = fs::remove_file(folder.join(name));
    }
    result
}

/// A file on the measured file system.
struct Bench<'a> {
    folder: &'a Path,
    /// Name of the file. `fio` treats a `:` in a path as a separator of two paths.
    file: &'static str,
    bytes: u64,
    interrupted: Interrupted<'a>,
}

impl Bench<'_> {
    /// Limits of the storage as a server uses it.
    fn limits(&self, throttle: Option<&Throttle>) -> Result<StorageLimits, StorageError> {
        self.fill()?;
        let reads = [
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=16",
            "--norandommap",
        ];
        let read = self.run(throttle, 2.0, self.bytes, &reads, self.interrupted)?;
        let writes = ["--rw=write", "--bs=4k", "--fdatasync=1"];
        let bytes = WRITTEN_BYTES.min(self.bytes);
        let written = self.run(throttle, 2.0, bytes, &writes, self.interrupted)?;
        let per_s = |output: &Value, what: &str| {
            let found = output["jobs"][0][what]["iops"].as_f64();
            found.filter(|per_s| *per_s > 0.0).ok_or_else(|| {
                let source = std::io::Error::other(format!("`fio` completed no {what}"));
                StorageError::step("measure the device")(source)
            })
        };
        Ok(StorageLimits {
            performance: StorageLimitsRecord {
                random_reads_per_s: per_s(&read, "read")?,
                synced_writes_per_s: per_s(&written, "write")?,
                measured_by: read["fio version"].as_str().unwrap_or(FIO).to_owned(),
            },
            capacities: BTreeMap::new(),
            no_capacity: None,
        })
    }

    /// Fills the file, because never written blocks would be read without the device.
    fn fill(&self) -> Result<(), StorageError> {
        let options = ["--rw=write", "--bs=1m", "--direct=1", "--end_fsync=1"];
        let size = format!("--size={}", self.bytes);
        let options = [&[&*size][..], &options].concat();
        self.start(None, &options, self.interrupted).map(drop)
    }

    /// Creates another file that is overwritten in place, even on a file system that writes each
    /// block to a new place. Otherwise the kernel would hold back writes, and write them in one
    /// piece.
    fn written_in_place(&self) -> Result<Self, StorageError> {
        File::create_new(self.folder.join(IN_PLACE))
            .map_err(StorageError::step("create a file for measuring"))?;
        let bench = Bench { file: IN_PLACE, ..*self };
        // If this fails, the counters show that requests were merged.
        let _ = program::run_in(self.folder, "chattr", &["+C", IN_PLACE], self.interrupted);
        bench.fill()?;
        Ok(bench)
    }

    /// Adds the capacity of each device.
    fn with_capacities(
        &self,
        mut limits: StorageLimits,
        counting: Counting<'_>,
    ) -> Result<StorageLimits, StorageError> {
        let mut reasons = Vec::new();
        let usable = counting().and_then(|devices| {
            capacity::past_page_cache(Path::new("/"), &devices)?;
            Ok(devices)
        });
        match usable {
            Err(reason) => reasons.push(reason),
            Ok(devices) => {
                for kind in Kind::ALL {
                    match self.capacity(kind, devices.len().max(1), counting) {
                        Ok(Ok(rates)) => {
                            reasons.extend(
                                capacity::idle(&rates, &devices)
                                    .into_iter()
                                    .map(|name| format!("{}: none on `{name}`", kind.name())),
                            );
                            capacity::enter(kind, &rates, &mut limits.capacities);
                        }
                        Ok(Err(reason)) => reasons.push(format!("{}: {reason}", kind.name())),
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        limits.no_capacity = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(limits)
    }

    /// Capacity of one kind for all devices at once, or why it is unknown.
    fn capacity(
        &self,
        kind: Kind,
        devices: usize,
        counting: Counting<'_>,
    ) -> Result<Result<Vec<capacity::DeviceRate>, String>, StorageError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MOST_THREADS);
        let [jobs, depth] = [threads, DEPTH * devices / threads];
        let (jobs, depth) = (format!("--numjobs={jobs}"), format!("--iodepth={depth}"));
        let (seconds, options) = match kind {
            Kind::Reads => (1.5, ["--rw=randread", "--bs=4k", &depth, &jobs]),
            Kind::Writes => (1.5, ["--rw=randwrite", "--bs=4k", &depth, &jobs]),
            Kind::ReadBytes => (1.0, ["--rw=read", "--bs=1m", LARGE_DEPTH, "--numjobs=1"]),
            Kind::WriteBytes => (1.0, ["--rw=write", "--bs=1m", LARGE_DEPTH, "--numjobs=1"]),
            Kind::Flushes => (1.0, ["--rw=randwrite", "--bs=4k", "--fdatasync=1", SYNCING]),
        };
        let all = ["--direct=1", "--ioengine=libaio", "--norandommap", "--group_reporting"];
        let looks = RefCell::new(Vec::<Look>::new());
        let fault = RefCell::new(None);
        let begin = Instant::now();
        let look = || match counting().and_then(|devices| Ok((devices, cpu_ticks()?))) {
            Ok((devices, cpus)) => {
                looks.borrow_mut().push(Look { at: begin.elapsed(), devices, cpus })
            }
            Err(reason) => *fault.borrow_mut() = Some(reason),
        };
        let interrupted = || {
            let last = looks.borrow().last().map_or(Duration::ZERO, |last| last.at);
            if begin.elapsed() >= last + LOOK_INTERVAL {
                look();
            }
            (self.interrupted)()
        };
        look();
        let options = [&options[..], &all].concat();
        let output = self.run(None, seconds, self.bytes, &options, &interrupted)?;
        look();
        if let Some(reason) = fault.take() {
            return Ok(Err(reason));
        }
        let rates = match job_done(&output, kind) {
            Some(job) => capacity::rates(kind, &looks.take(), &job),
            None => Err("cannot parse the output of `fio`".to_owned()),
        };
        Ok(rates)
    }

    /// Runs the program for some time, repeatedly over the file.
    fn run(
        &self,
        throttle: Option<&Throttle>,
        seconds: f64,
        bytes: u64,
        options: &[&str],
        interrupted: Interrupted<'_>,
    ) -> Result<Value, StorageError> {
        let milliseconds = format!("--runtime={}ms", (seconds * 1e3) as u64);
        let size = format!("--size={bytes}");
        let options = [&[&*size, &milliseconds, "--time_based"][..], options].concat();
        self.start(throttle, &options, interrupted)
    }

    /// Runs the program and returns its output.
    fn start(
        &self,
        throttle: Option<&Throttle>,
        options: &[&str],
        interrupted: Interrupted<'_>,
    ) -> Result<Value, StorageError> {
        let file = format!("--filename={}", self.file);
        let output = format!("--output={OUTPUT}");
        // With `--thread`, all of it is one process.
        let all = ["--name=dyno", "--thread", "--output-format=json"];
        let options = [&all[..], &[&*file, &*output], options].concat();
        match throttle {
            None => program::run_in(self.folder, FIO, &options, interrupted)?,
            Some(throttle) => {
                // The shell joins the control group before it becomes the program.
                let group = throttle.processes().display().to_string();
                let script = "echo $$ >\"$0\" && exec \"$@\"";
                let options = [&["-c", script, &group, FIO][..], &options].concat();
                program::run_in(self.folder, "sh", &options, interrupted)?
            }
        };
        let failed = || StorageError::step("read the output of `fio`");
        let text = fs::read(self.folder.join(OUTPUT)).map_err(failed())?;
        serde_json::from_slice(&text).map_err(|error| failed()(error.into()))
    }
}

/// Current time counters of the machine's CPUs.
fn cpu_ticks() -> Result<CpuTicks, String> {
    let text =
        fs::read_to_string("/proc/stat").map_err(|error| format!("`/proc/stat`: {error}"))?;
    CpuTicks::parse(&text).ok_or_else(|| "cannot parse `/proc/stat`".to_owned())
}

/// The program's report about one kind.
fn job_done(output: &Value, kind: Kind) -> Option<JobDone> {
    let job = &output["jobs"][0];
    let part = &job[match kind.is_of_reads() {
        true => "read",
        false => "write",
    }];
    Some(JobDone {
        requests_per_s: part["iops"].as_f64()?,
        bytes_per_s: part["bw_bytes"].as_f64()?,
        duration_s: part["runtime"].as_f64()? / 1e3,
        cpu_ratio: (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fio_writes_one_file_when_the_folder_has_a_colon() {
        if !can_measure() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("other");
        fs::write(&other, "kept").unwrap();
        let folder = root.path().join(format!("a:{}:b", other.display()));
        fs::create_dir_all(&folder).unwrap();
        let bench =
            Bench { folder: &folder, file: "fio.data", bytes: 1 << 20, interrupted: &|| false };
        let filled = bench.start(None, &["--rw=write", "--bs=4k", "--size=1m"], &|| false);
        assert!(filled.is_ok(), "{filled:?}");
        assert_eq!(fs::read(&other).unwrap(), b"kept");
        assert_eq!(fs::metadata(folder.join("fio.data")).unwrap().len(), 1 << 20);
    }

    #[test]
    fn fio_output_is_read() {
        let part = |iops: f64| json!({"iops": iops, "bw_bytes": iops * 4096.0, "runtime": 1501});
        let output = json!({"jobs": [{
            "read": part(9_000.5), "write": part(70.0), "usr_cpu": 2.5, "sys_cpu": 17.5,
        }]});
        let found = job_done(&output, Kind::Reads).unwrap();
        assert_eq!((found.requests_per_s, found.duration_s), (9_000.5, 1.501));
        assert_eq!(found.bytes_per_s, 9_000.5 * 4096.0);
        assert!((found.cpu_ratio - 0.2).abs() < 1e-9, "{found:?}");
        let written = job_done(&output, Kind::WriteBytes).unwrap();
        assert_eq!(written.requests_per_s, 70.0);
        assert_eq!(job_done(&json!({"jobs": []}), Kind::Reads), None);
    }
}
