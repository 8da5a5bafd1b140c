//! The folder of a run: its name, and its removal if nothing was recorded.

use crate::error::{Error, refuse};
use crate::folder::{ClaimedFolder, unusable};
use dyno_record::sums;
use jiff::Timestamp;
use std::path::Path;

/// Parent folder of all runs, unless `--out` names one.
const RUNS: &str = "runs";

/// Files and folders of a run.
pub(crate) const CONTENT: [&str; 17] = [
    sums::FILE,
    "run.json",
    "plan.toml",
    "latency.hlog",
    "report.html",
    "report.md",
    "series",
    "metrics",
    "live.json",
    "instances",
    "traces",
    "io-trace",
    "trace.json",
    "files.parquet",
    "server-logs",
    "server-data",
    "server-storage",
];

/// The folder of one run. No other process uses it while this exists.
#[derive(Debug)]
pub struct RunDirectory(ClaimedFolder);

impl RunDirectory {
    /// Creates the requested folder, or a new one below `runs`, and claims it.
    ///
    /// # Errors
    /// It holds a run, or cannot be created, written or locked.
    pub fn create(asked: Option<&Path>, name: &str, now: Timestamp) -> Result<Self, Error> {
        ClaimedFolder::create(asked, RUNS, name, now, check_holds_no_run).map(RunDirectory)
    }

    /// Refuses a path that is not a folder, or holds a run.
    ///
    /// # Errors
    /// See above.
    pub fn check(asked: &Path) -> Result<(), Error> {
        if asked.exists() && !asked.is_dir() {
            return Err(unusable(asked, std::io::ErrorKind::NotADirectory.into()));
        }
        check_holds_no_run(asked)
    }

    /// Path for display.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Removes the run's files, and the folders created for it.
    pub fn discard(self) {
        self.0.discard(&CONTENT);
    }
}

fn check_holds_no_run(path: &Path) -> Result<(), Error> {
    match CONTENT.iter().find(|name| path.join(name).symlink_metadata().is_ok()) {
        None => Ok(()),
        Some(found) => {
            let message = format!("`{}` already holds a run: found `{found}`", path.display());
            refuse(message, "choose another folder with `--out`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_run_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("run.json"), "{}").expect("it can be written");
        let failure = RunDirectory::create(Some(folder.path()), "n", Timestamp::now())
            .expect_err("it holds a run");
        assert_eq!(failure.kind, crate::Kind::BadInput);
        assert!(folder.path().join("run.json").exists());
    }
}
