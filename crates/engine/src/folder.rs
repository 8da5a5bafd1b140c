//! The folder of a run or an experiment: it belongs to one process until that process lets go of it.

use crate::error::{Error, Kind};
use crate::files::{check_link, is_same};
use jiff::Timestamp;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the lock of a process that was killed may outlive it: a child that it was about to start holds a copy until its
/// program runs.
const LOCKED_AT_MOST: Duration = Duration::from_secs(1);

/// A folder that is locked as long as this lives: two processes in it would overwrite and remove each other's files. The
/// lock of a process that was killed is gone with it.
#[derive(Debug)]
pub(crate) struct ClaimedFolder {
    path: PathBuf,
    /// Folders that were not there before, outermost first.
    made: Vec<PathBuf>,
    _lock: File,
}

impl ClaimedFolder {
    /// Claims the folder that was asked for, or a new one below `parent` with the time and a name. `check` refuses a folder
    /// whose content is in the way.
    ///
    /// # Errors
    /// What `check` says; [`Kind::Environment`] if the folder cannot be made, written or locked.
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
        // Whoever has it locked removes it, if nothing comes of it.
        let folder = ClaimedFolder {
            path,
            made,
            _lock: lock?,
        };
        // Another process may have put something there before it was locked.
        match check(&folder.path).and_then(|()| probe(&folder.path)) {
            Ok(()) => Ok(folder),
            Err(error) => {
                remove(&folder.made);
                Err(error)
            }
        }
    }

    /// Claims a folder that is there.
    ///
    /// # Errors
    /// [`Kind::Environment`] if it cannot be locked, or its files cannot be written.
    pub(crate) fn open(path: &Path) -> Result<ClaimedFolder, Error> {
        check_way(path)?;
        Ok(ClaimedFolder {
            path: path.to_owned(),
            made: Vec::new(),
            _lock: lock(path)?,
        })
    }

    /// Its path, as it is shown.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes these files and folders in it, and the folders that were made for it. What others put there stays.
    pub(crate) fn discard(&self, content: &[&str]) {
        for name in content {
            let path = self.path.join(name);
            let is_folder = path.symlink_metadata().is_ok_and(|data| data.is_dir());
            let removed = if is_folder {
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
        remove(&self.made);
    }
}

/// Refuses a folder through whose links no file would be written later on, when all is measured, and one whose path would
/// become another in a document or in the reply of a server.
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

/// Makes a folder; returns those that were missing, outermost first.
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

/// Makes `PARENT/2026-08-22T10-15-00-NAME`; those of the same second are numbered. Returns the folder, and all that were
/// made for it, outermost first. Making it is what claims the name: a look first would give two runs the same.
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

/// Makes a folder; `false` if it is there.
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

/// Whether a folder that is open here still is what the path names.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => is_same(&open, &there),
        _ => false,
    }
}

/// Permissions and free space show only when something is written: a block, as an empty file needs none. The file is new,
/// so that a link which somebody has put there is not followed.
fn probe(path: &Path) -> Result<(), Error> {
    tempfile::NamedTempFile::new_in(path)
        .and_then(|mut file| file.write_all(&[0; 4096]))
        .map_err(|error| unusable(path, error))
}

/// Takes folders away again, unless somebody has put something into them.
fn remove(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// The error for a folder that cannot be used.
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
    fn the_name_is_time_and_workload_and_free() {
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
    fn of_many_that_want_a_folder_at_once_one_gets_it() {
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
