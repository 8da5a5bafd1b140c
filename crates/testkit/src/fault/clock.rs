//! A wall clock that steps: libfaketime in a program that a test starts, told by a file.

use crate::Skip;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that gives a program another wall clock.
///
/// # Errors
/// It is not installed.
pub fn faketime_library() -> Result<PathBuf, Skip> {
    let places = std::fs::read_dir("/usr/lib").into_iter().flatten();
    places
        .flatten()
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.is_file())
        .ok_or_else(|| {
            Skip::new(
                "libfaketime is not installed",
                "run `scripts/setup.sh test`",
            )
        })
}

/// The wall clock of one program, right until it steps. Its monotonic clock stays what it is.
pub struct SteppedClock {
    library: PathBuf,
    offset: PathBuf,
}

impl SteppedClock {
    /// `offset` is the file that tells the program.
    ///
    /// # Errors
    /// libfaketime is not installed.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn new(offset: &Path) -> Result<SteppedClock, Skip> {
        let library = faketime_library()?;
        std::fs::write(offset, "+0s").expect("the file can be written");
        let offset = offset.to_owned();
        Ok(SteppedClock { library, offset })
    }

    /// Gives the program this clock.
    pub fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Sets the clock so many seconds from the right time.
    ///
    /// # Errors
    /// The file cannot be replaced.
    pub fn step(&self, seconds: i64) -> io::Result<()> {
        let new = self.offset.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}s"))?;
        std::fs::rename(new, &self.offset)
    }
}
