//! The folder of a run: its name, and taking it away again when nothing was recorded.

use crate::error::{Error, Kind};
use jiff::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of all runs, unless `--out` names one.
const RUNS: &str = "runs";

/// What a run puts into its folder.
const CONTENT: [&str; 15] = [
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
];

/// The folder of one run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// Folders that were not there before, outermost first.
    made: Vec<PathBuf>,
}

impl RunDirectory {
    /// Makes the folder that was asked for, or a new one below `runs`, and checks that it can be written.
    pub fn create(asked: Option<&Path>, name: &str, now: Timestamp) -> Result<Self, Error> {
        let (path, made) = match asked {
            Some(path) => (path.to_owned(), Vec::new()),
            None => claim_name(Path::new(RUNS), name, now)?,
        };
        let mut directory = RunDirectory { path, made };
        let result = directory
            .make()
            .and_then(|()| directory.check_holds_no_run());
        if let Err(failure) = result {
            directory.remove_made();
            return Err(failure);
        }
        Ok(directory)
    }

    /// Refuses a folder that holds a run, or is none.
    pub fn check(asked: &Path) -> Result<(), Error> {
        if asked.exists() && !asked.is_dir() {
            return Err(unusable(asked, std::io::ErrorKind::NotADirectory.into()));
        }
        let (path, made) = (asked.to_owned(), Vec::new());
        RunDirectory { path, made }.check_holds_no_run()
    }

    /// Its path, as it is shown.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn make(&mut self) -> Result<(), Error> {
        let missing: Vec<PathBuf> = self
            .path
            .ancestors()
            .filter(|folder| !folder.as_os_str().is_empty())
            .take_while(|folder| !folder.exists())
            .map(Path::to_owned)
            .collect();
        for folder in missing.into_iter().rev() {
            if create_folder(&folder)? {
                self.made.push(folder);
            }
        }
        // Permissions and free space show only when something is written: a block, as an empty file needs none.
        let probe = self.path.join(".dyno-probe");
        let written = fs::write(&probe, [0; 4096]);
        let _ = fs::remove_file(&probe);
        written.map_err(|error| unusable(&self.path, error))
    }

    fn check_holds_no_run(&self) -> Result<(), Error> {
        match CONTENT
            .iter()
            .find(|name| self.path.join(name).symlink_metadata().is_ok())
        {
            None => Ok(()),
            Some(found) => {
                let message = format!(
                    "`{}` already holds a run: found `{found}`",
                    self.path.display()
                );
                Err(Error::new(Kind::BadInput, message)
                    .with_hint("choose another folder with `--out`"))
            }
        }
    }

    /// Removes what the run put there, and the folders that were made for it.
    pub fn discard(self) {
        for name in CONTENT {
            let path = self.path.join(name);
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            if let Err(error) = removed
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("cannot remove `{}`: {error}", path.display());
            }
        }
        self.remove_made();
    }

    /// A folder into which others have put something meanwhile stays.
    fn remove_made(&self) {
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn unusable(path: &Path, error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!(
            "cannot write to the run directory `{}`",
            path.display()
        ))
        .with_hint("check permissions and free space, or choose another folder with `--out`")
}

/// Makes a folder; `false` if somebody else did meanwhile.
fn create_folder(folder: &Path) -> Result<bool, Error> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => {
            Ok(false)
        }
        Err(error) => Err(unusable(folder, error)),
    }
}

/// Makes `PARENT/2026-08-22T10-15-00-NAME`; those of the same second are numbered. Gives the folder, and
/// all that were made for it, outermost first. Making it is what claims the name: a look first would
/// give two runs the same.
pub fn claim_name(
    parent: &Path,
    name: &str,
    now: Timestamp,
) -> Result<(PathBuf, Vec<PathBuf>), Error> {
    let mut made = Vec::new();
    if !parent.is_dir() && create_folder(parent)? {
        made.push(parent.to_owned());
    }
    let first = parent.join(format!("{}-{name}", now.strftime("%Y-%m-%dT%H-%M-%S")));
    let mut number = 1;
    loop {
        let path = match number {
            1 => first.clone(),
            number => PathBuf::from(format!("{}-{number}", first.display())),
        };
        if create_folder(&path)? {
            made.push(path.clone());
            return Ok((path, made));
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-08-22T10:15:00Z".parse().expect("it is a time")
    }

    #[test]
    fn the_name_is_time_and_workload_and_free() {
        let parent = tempfile::tempdir().expect("a folder");
        let claim = || claim_name(parent.path(), "a", now()).map(|(path, _)| path);
        let expected = |name: &str| Some(parent.path().join(name));
        assert_eq!(claim().ok(), expected("2026-08-22T10-15-00-a"));
        assert_eq!(claim().ok(), expected("2026-08-22T10-15-00-a-2"));
    }

    #[test]
    fn what_was_made_is_removed_again_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::write(parent.path().join("mine"), "x").expect("it can be written");
        let directory =
            RunDirectory::create(Some(&parent.path().join("a/b")), "n", now()).expect("it is free");
        fs::create_dir(directory.path().join("series")).expect("it can be made");
        fs::write(directory.path().join("run.json"), "{}").expect("it can be written");
        directory.discard();
        assert!(!parent.path().join("a").exists());
        assert!(parent.path().join("mine").exists());
    }

    #[test]
    fn foreign_files_in_a_given_folder_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = RunDirectory::create(Some(folder.path()), "n", now()).expect("it is free");
        fs::write(folder.path().join("notes.txt"), "mine").expect("it can be written");
        directory.discard();
        assert!(folder.path().join("notes.txt").exists());
    }

    #[test]
    fn a_folder_with_a_run_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("run.json"), "{}").expect("it can be written");
        let failure =
            RunDirectory::create(Some(folder.path()), "n", now()).expect_err("it holds a run");
        assert_eq!(failure.kind, Kind::BadInput);
        assert!(folder.path().join("run.json").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_the_surroundings() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "").expect("it can be written");
        let below = folder.path().join("file/run");
        let failure =
            RunDirectory::create(Some(&below), "n", now()).expect_err("a file is in the way");
        assert_eq!(failure.kind, Kind::Environment);
        assert!(failure.hint.is_some());
    }
}
