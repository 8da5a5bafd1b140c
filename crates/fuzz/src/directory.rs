//! A run directory with one arbitrary file.

use dyno_report::{Format, RenderOptions};
use dyno_results::AnalysedRun;
use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../record/tests/golden/v1/", $name)))
    };
}

/// Files of a valid directory, written by a released version.
const FILES: [(&str, &[u8]); 7] = [
    file!("run.json"),
    file!("latency.hlog"),
    file!("series/intervals.csv"),
    file!("series/operations.csv"),
    file!("series/errors.csv"),
    file!("series/sub-second.csv"),
    file!("plan.toml"),
];

thread_local! {
    static DIRECTORY: OnceCell<TempDir> = const { OnceCell::new() };
}

/// The first byte, a digit, selects the file; the rest is its content.
pub(crate) fn of_any_file(data: &[u8]) {
    let Some((which, content)) = data.split_first() else {
        return;
    };
    let place = usize::from(which.wrapping_sub(b'0')) % FILES.len();
    with(FILES[place].0, content);
}

/// Opens and reports a run directory with this content in the named file.
pub(crate) fn with(name: &str, content: &[u8]) {
    DIRECTORY.with(|directory| {
        let directory = directory.get_or_init(prepare).path();
        write(directory, name, content);
        if let Ok(run) = AnalysedRun::open(directory) {
            for (format, ..) in Format::NAMES {
                let options = RenderOptions::default();
                // Some runs have too little data for YCSB's text and the key figures.
                let _ = dyno_report::render(&run.run, run.analysis.as_ref(), *format, &options);
            }
        }
        if let Some((_, sound)) = FILES.iter().find(|(known, _)| *known == name) {
            write(directory, name, sound);
        }
    });
}

/// Uses a memory file system if there is one: a fuzzer writes thousands of times per second.
fn prepare() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => TempDir::new_in(memory),
        false => TempDir::new(),
    };
    let directory = made.expect("can create a temporary folder");
    fs::create_dir(directory.path().join("series")).expect("can create a folder");
    for (name, content) in FILES {
        write(directory.path(), name, content);
    }
    directory
}

fn write(directory: &Path, name: &str, content: &[u8]) {
    fs::write(directory.join(name), content).expect("can write a temporary file");
}
