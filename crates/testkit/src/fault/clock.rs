//! A wall clock that steps: libfaketime in a child process, controlled by a file.

use crate::Skip;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that provides another wall clock to a program.
///
/// # Errors
/// libfaketime is not installed.
pub fn faketime_library() -> Result<PathBuf, Skip> {
    std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.is_file())
        .ok_or_else(|| Skip::new("libfaketime is not installed", "run `scripts/setup.sh test`"))
}

/// The wall clock of one program, correct until it steps. Its monotonic clock is unaffected.
pub struct SteppedClock {
    library: PathBuf,
    offset: PathBuf,
}

impl SteppedClock {
    /// `offset` is the control file.
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

    /// Makes the program use this clock.
    pub fn give_to(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Sets the clock to this number of seconds from the correct time.
    ///
    /// # Errors
    /// The file cannot be replaced.
    pub fn step(&self, seconds: i64) -> io::Result<()> {
        let new = self.offset.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}s"))?;
        std::fs::rename(new, &self.offset)
    }
}
