//! The folder of a run or an experiment: it belongs to one process until that process releases it.

use crate::error::{Error, Kind};
use crate::files::{check_link, is_same};
use jiff::Timestamp;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time that the lock of a killed process may outlive it: a child that was about to start
/// holds a copy until its program runs.
const LOCKED_AT_MOST: Duration = Duration::from_secs(1);

/// A folder that is locked while this exists: two processes in it would overwrite and remove each
/// other's files. The kernel releases the lock of a killed process.
#[derive(Debug)]
pub(crate) struct ClaimedFolder {
    path: PathBuf,
    /// Folders created for it, outermost first.
    made: Vec<PathBuf>,
    _lock: File,
}

impl ClaimedFolder {
    /// Claims the requested folder, or a new one below `parent` named after the time and `name`.
    /// `check` refuses unsuitable content.
    ///
    /// # Errors
    /// The error of `check`; [`Kind::Environment`] if the folder cannot be created, written or
    /// locked.
    pub(crate) fn create(
        asked: Option<&Path>,
        parent: &str,
        name: &str,
        now: Timestamp,
        check: impl Fn(&Path) -> Result<(), Error>,
    ) -> Result<ClaimedFolder, Error> {
        check_way(asked.unwrap_or(Path::new(parent)))?;
        let (path, made) = match asked {
            Some(path) => (path.to_owned(), make_missing(path)?),
            None => claim_name(Path::new(parent), name, now)?,
        };
        let lock = check(&path).and_then(|()| lock(&path));
        // If it is locked, the lock's owner removes it on failure.
        let folder = ClaimedFolder { path, made, _lock: lock? };
        // Another process may have written into it before it was locked.
        match check(&folder.path).and_then(|()| probe(&folder.path)) {
            Ok(()) => Ok(folder),
            Err(error) => {
                remove(&folder.made);
                Err(error)
            }
        }
    }

    /// Claims an existing folder.
    ///
    /// # Errors
    /// [`Kind::Environment`] if it cannot be locked, or its files cannot be written.
    pub(crate) fn open(path: &Path) -> Result<ClaimedFolder, Error> {
        check_way(path)?;
        Ok(ClaimedFolder { path: path.to_owned(), made: Vec::new(), _lock: lock(path)? })
    }

    /// Path for display.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes these files and folders in it, and the folders created for it, except content of
    /// other programs.
    pub(crate) fn discard(&self, content: &[&str]) {
        for name in content {
            let path = self.path.join(name);
            let is_folder = path.symlink_metadata().is_ok_and(|data| data.is_dir());
            let removed =
                if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if let Err(error) = removed
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!("cannot remove `{}`: {error}", path.display());
            }
        }
        remove(&self.made);
    }
}

/// Refuses a path with untrusted links, before the run measures anything, and a path that is not
/// UTF-8, which documents and server replies would change.
fn check_way(folder: &Path) -> Result<(), Error> {
    let absolute = std::path::absolute(folder).map_err(|error| unusable(folder, error))?;
    if absolute.to_str().is_none() {
        let text = format!("the path `{}` is not valid UTF-8", absolute.display());
        return Err(Error::new(Kind::BadInput, text)
            .context(format!("cannot use the folder `{}`", folder.display()))
            .with_hint(
                "choose another folder with `--out`, or change to another working directory",
            ));
    }
    check_link(&folder.join("file")).map_err(|error| unusable(folder, error))
}

/// Creates a folder with its parents. Returns the new ones, outermost first.
fn make_missing(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .filter(|folder| !folder.as_os_str().is_empty())
        .take_while(|folder| !folder.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    let mut made = Vec::new();
    for folder in missing {
        match make_folder(&folder) {
            Ok(true) => made.push(folder),
            Ok(false) => {}
            Err(error) => {
                remove(&made);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// Creates `PARENT/2026-08-22T10-15-00-NAME`, with a number for duplicates in the same second.
/// Returns the folder, and all new folders, outermost first. Creating it claims the name: checking
/// first would give two runs the same one.
fn claim_name(parent: &Path, name: &str, now: Timestamp) -> Result<(PathBuf, Vec<PathBuf>), Error> {
    let mut made = make_missing(parent)?;
    let first = parent.join(format!("{}-{name}", now.strftime("%Y-%m-%dT%H-%M-%S")));
    let mut number = 1;
    loop {
        let path = match number {
            1 => first.clone(),
            number => PathBuf::from(format!("{}-{number}", first.display())),
        };
        if make_folder(&path)? {
            made.push(path.clone());
            return Ok((path, made));
        }
        number += 1;
    }
}

/// Creates a folder; `false` if it exists.
fn make_folder(folder: &Path) -> Result<bool, Error> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => {
            Ok(false)
        }
        Err(error) => Err(unusable(folder, error)),
    }
}

/// Locks a folder for this process.
fn lock(path: &Path) -> Result<File, Error> {
    let folder = File::open(path).map_err(|error| unusable(path, error))?;
    let deadline = Instant::now() + LOCKED_AT_MOST;
    loop {
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let text = format!("another `dyno` is at work in `{}`", path.display());
                return Err(
                    Error::new(Kind::Environment, text).with_hint("wait until it has ended")
                );
            }
            Ok(()) if !is_at(&folder, path) => {
                let text = format!("another `dyno` has just removed `{}`", path.display());
                return Err(Error::new(Kind::Environment, text).with_hint("try again"));
            }
            // Some network file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(folder),
        }
    }
}

/// Whether an open folder is still the one at the path.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => is_same(&open, &there),
        _ => false,
    }
}

/// Checks permissions and free space by writing a block, because an empty file needs no space. The
/// file is new, so that an existing link is not followed.
fn probe(path: &Path) -> Result<(), Error> {
    tempfile::NamedTempFile::new_in(path)
        .and_then(|mut file| file.write_all(&[0; 4096]))
        .map_err(|error| unusable(path, error))
}

/// Removes folders unless they have content.
fn remove(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Error of an unusable folder.
pub(crate) fn unusable(path: &Path, error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot use the folder `{}`", path.display()))
        .with_hint("check permissions and free space, or choose another folder with `--out`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn now() -> Timestamp {
        "2026-08-22T10:15:00Z".parse().expect("it is a time")
    }

    fn claim(asked: &Path) -> Result<ClaimedFolder, Error> {
        ClaimedFolder::create(Some(asked), "runs", "a", now(), |folder| {
            match folder.join("run.json").exists() {
                false => Ok(()),
                true => Err(Error::new(Kind::BadInput, "it is taken")),
            }
        })
    }

    #[test]
    fn folder_name_is_unique_with_time_and_workload() {
        let parent = tempfile::tempdir().expect("a folder");
        let claim = || claim_name(parent.path(), "a", now()).map(|(path, _)| path);
        let expected = |name: &str| Some(parent.path().join(name));
        assert_eq!(claim().ok(), expected("2026-08-22T10-15-00-a"));
        assert_eq!(claim().ok(), expected("2026-08-22T10-15-00-a-2"));
    }

    #[test]
    fn folder_is_refused_when_its_path_is_not_utf_8() {
        let parent = tempfile::tempdir().expect("a folder");
        let name = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xffb");
        let asked = parent.path().join::<&std::ffi::OsStr>(name);
        let error = claim(&asked).expect_err("it is no text");
        assert_eq!(error.kind, Kind::BadInput);
        assert!(!asked.exists());
        let inside = claim(&asked.join("run")).expect_err("it is in such a folder");
        assert_eq!(inside.kind, Kind::BadInput);
    }

    #[test]
    fn only_created_folders_are_removed_again() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::write(parent.path().join("mine"), "x").expect("it can be written");
        let folder = claim(&parent.path().join("a/b")).expect("it is free");
        fs::create_dir(folder.path().join("series")).expect("it can be made");
        fs::write(folder.path().join("run.json"), "{}").expect("it can be written");
        folder.discard(&["run.json", "series"]);
        assert!(!parent.path().join("a").exists());
        assert!(parent.path().join("mine").exists());
    }

    #[test]
    fn foreign_files_in_a_given_folder_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = claim(parent.path()).expect("it is free");
        fs::write(parent.path().join("notes.txt"), "mine").expect("it can be written");
        folder.discard(&["run.json"]);
        assert!(parent.path().join("notes.txt").exists());
    }

    #[test]
    fn only_one_of_many_simultaneous_claims_succeeds() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("run");
        let start = Barrier::new(8);
        let won = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let claimed = claim(&path);
                        if let Ok(folder) = &claimed {
                            fs::write(folder.path().join("run.json"), "{}").expect("there is room");
                        }
                        claimed.is_ok()
                    })
                })
                .collect();
            let won = tries.into_iter().map(|one| one.join().expect("it ends"));
            won.filter(|won| *won).count()
        });
        assert_eq!(won, 1);
        assert!(path.join("run.json").exists());
    }

    #[test]
    fn the_check_for_space_follows_no_link() {
        let parent = tempfile::tempdir().expect("a folder");
        let victim = parent.path().join("victim");
        fs::write(&victim, "precious").expect("there is room");
        let folder = parent.path().join("run");
        fs::create_dir(&folder).expect("it can be made");
        std::os::unix::fs::symlink(&victim, folder.join(".dyno-probe")).expect("it can be made");
        claim(&folder).expect("it is free");
        let content = fs::read_to_string(&victim).expect("it is there");
        assert_eq!(content, "precious");
        assert!(folder.join(".dyno-probe").is_symlink());
    }

    #[test]
    fn root_claims_no_folder_behind_a_link_of_another_user() {
        let parent = tempfile::tempdir().expect("a folder");
        let (inner, link) = (parent.path().join("inner"), parent.path().join("link"));
        fs::create_dir(&inner).expect("it can be made");
        std::os::unix::fs::symlink("inner", &link).expect("it can be made");
        claim(&link.join("ours")).expect("it is a link of ours");
        // Only root can give a link away.
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            let refused = claim(&link.join("r")).expect_err("it is the link of another user");
            assert!(format!("{:#}", refused.cause).contains("/link`"));
            assert!(!inner.join("r").exists());
            assert!(ClaimedFolder::open(&link.join("ours")).is_err());
        }
    }

    #[test]
    fn folder_that_cannot_be_made_is_an_environment_error() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::write(parent.path().join("file"), "").expect("it can be written");
        let failure = claim(&parent.path().join("file/run")).expect_err("a file is in the way");
        assert_eq!(failure.kind, Kind::Environment);
        assert!(failure.hint.is_some());
    }
}
