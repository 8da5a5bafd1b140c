//! What a device can do by itself, measured with `fio` on the new file system: reads as those of a cold cache are, and
//! writes as those of a journal are.

use super::program::{self, Interrupted};
use super::throttle::Throttle;
use super::{PreparedStorage, StorageError};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The program.
pub(super) const FIO: &str = "fio";
/// How long each of both measurements takes.
const MEASURED: Duration = Duration::from_secs(3);
/// How long both take with their file, on a device of ordinary speed.
pub const MEASURING: Duration = Duration::from_secs(8);
/// File that is read: larger than the buffers of most devices, and written in a second or two.
const READ_BYTES: u64 = 256 << 20;
/// Of a small file system it takes this part.
const PART: u64 = 4;
/// File that is written over and over.
const WRITTEN_BYTES: u64 = 64 << 20;

/// What a device can do.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageLimits {
    /// Random reads of 4 KiB, 16 at once, past the page cache.
    pub random_reads_per_s: f64,
    /// Writes of 4 KiB, one after the other, each followed by `fdatasync`.
    pub synced_writes_per_s: f64,
    /// The program that measured it, with its version.
    pub measured_by: String,
}

/// Whether there is what measures.
pub fn can_measure() -> bool {
    program::is_there(FIO)
}

/// Measures a file system that nobody else uses, under the limit of its processes. Its files are gone afterwards.
pub(super) fn measure(
    storage: &PreparedStorage,
    interrupted: Interrupted<'_>,
) -> Result<StorageLimits, StorageError> {
    let folder = storage.folder();
    let (file, output) = (folder.join("fio.data"), folder.join("fio.json"));
    let throttle = match storage.limited_after() {
        None => storage.throttle(&[])?,
        Some(_) => None,
    };
    let result = jobs(
        &file,
        &output,
        throttle.as_ref(),
        storage.bytes(),
        interrupted,
    );
    for path in [&file, &output] {
        let _ = fs::remove_file(path);
    }
    result
}

fn jobs(
    file: &Path,
    output: &Path,
    throttle: Option<&Throttle>,
    bytes: u64,
    interrupted: Interrupted<'_>,
) -> Result<StorageLimits, StorageError> {
    let job = |throttle, options: &[&str], written: u64| {
        let size = format!("--size={written}");
        let job = Job {
            file,
            output,
            throttle,
        };
        job.run(&[&[&*size][..], options].concat(), interrupted)
    };
    let seconds = format!("--runtime={}", MEASURED.as_secs());
    let read_bytes = READ_BYTES.min(bytes / PART);
    // Blocks that were never written would be answered without the device.
    job(
        None,
        &["--rw=write", "--bs=1m", "--direct=1", "--end_fsync=1"],
        read_bytes,
    )?;
    let timed = [&*seconds, "--time_based"];
    let reads = [
        &timed[..],
        &[
            "--rw=randread",
            "--bs=4k",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=16",
            "--norandommap",
        ],
    ];
    let read = job(throttle, &reads.concat(), read_bytes)?;
    let writes = [&timed[..], &["--rw=write", "--bs=4k", "--fdatasync=1"]];
    let written = job(throttle, &writes.concat(), WRITTEN_BYTES.min(read_bytes))?;
    let per_s = |output: &Value, what: &str| {
        let found = output["jobs"][0][what]["iops"].as_f64();
        found.filter(|per_s| *per_s > 0.0).ok_or_else(|| {
            let source = std::io::Error::other(format!("`fio` did no {what}"));
            StorageError::step("measure the device")(source)
        })
    };
    Ok(StorageLimits {
        random_reads_per_s: per_s(&read, "read")?,
        synced_writes_per_s: per_s(&written, "write")?,
        measured_by: read["fio version"].as_str().unwrap_or(FIO).to_owned(),
    })
}

/// One run of the program.
struct Job<'a> {
    file: &'a Path,
    output: &'a Path,
    throttle: Option<&'a Throttle>,
}

impl Job<'_> {
    /// Runs it, and gives what it found.
    fn run(&self, options: &[&str], interrupted: Interrupted<'_>) -> Result<Value, StorageError> {
        let file = format!("--filename={}", self.file.display());
        let output = format!("--output={}", self.output.display());
        // With `--thread` all of it is one process.
        let all = ["--name=dyno", "--thread", "--output-format=json"];
        let options = [&all[..], &[&*file, &*output], options].concat();
        match self.throttle {
            None => program::run(FIO, &options, interrupted)?,
            Some(throttle) => {
                // The shell goes into the group before it becomes the program.
                let group = throttle.processes().display().to_string();
                let script = "echo $$ >\"$0\" && exec \"$@\"";
                let options = [&["-c", script, &group, FIO][..], &options].concat();
                program::run("sh", &options, interrupted)?
            }
        };
        let failed = || StorageError::step("read what `fio` found");
        let text = fs::read(self.output).map_err(failed())?;
        serde_json::from_slice(&text).map_err(|error| failed()(error.into()))
    }
}
