//! The lock of a deployment: a file in its folder that names the supervisor, which keeps it locked
//! while it lives. Observers take a shared lock, so that two observers do not take each other for
//! the supervisor.

use super::{LOOK_INTERVAL, unusable};
use crate::error::{Error, Kind};
use crate::owner::Owner;
use nix::sys::stat::fstat;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FILE: &str = "lock";

/// Observers hold the lock only for a moment.
const OBSERVER_LIMIT: Duration = Duration::from_secs(5);

/// Creates the file in a new folder and locks it.
pub fn create(folder: &Path) -> Result<File, Error> {
    let path = folder.join(FILE);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| unusable(&path, error))?;
    file.lock().map_err(|error| unusable(&path, error))?;
    Ok(file)
}

/// Writes this process into the file as the supervisor.
pub fn own(folder: &Path) -> Result<(), Error> {
    let path = folder.join(FILE);
    let owner = Owner::current().ok_or_else(|| {
        Error::new(
            Kind::Environment,
            "`/proc/self/stat` does not contain the start time of this process",
        )
    })?;
    std::fs::write(&path, format!("{owner}\n")).map_err(|error| unusable(&path, error))
}

/// The supervisor; `None` until the starting command has written it.
pub fn owner(folder: &Path) -> Option<Owner> {
    Owner::parse(&std::fs::read_to_string(folder.join(FILE)).ok()?)
}

/// Whether the lock is held: by the supervisor, or for a moment by a process that removes the
/// folder.
pub fn is_held(folder: &Path) -> Result<bool, Error> {
    let Some((path, file)) = open(folder)? else {
        return Ok(false);
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(unusable(&path, error)),
    }
}

/// Takes the lock of a folder before its removal; `None` if another process holds it, or if the
/// folder is gone or belongs to another deployment. Without a file there never was a supervisor.
pub fn take(folder: &Path) -> Result<Option<Option<File>>, Error> {
    let begin = Instant::now();
    let Some((path, file)) = open(folder)? else {
        return Ok(folder.is_dir().then_some(None));
    };
    loop {
        match file.try_lock() {
            Ok(()) => break,
            // If our shared lock succeeds, the other holder is only an observer.
            Err(TryLockError::WouldBlock) if is_held(folder)? => return Ok(None),
            Err(TryLockError::WouldBlock) if begin.elapsed() > OBSERVER_LIMIT => {
                return Ok(None);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_INTERVAL),
            Err(TryLockError::Error(error)) => return Err(unusable(&path, error)),
        }
    }
    Ok(is_file_of(&file, folder).then_some(Some(file)))
}

/// Whether the open `file` is still the lock of the folder.
pub fn is_file_of(file: impl AsFd, folder: &Path) -> bool {
    let there = std::fs::metadata(folder.join(FILE));
    match (fstat(file), there) {
        (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn open(folder: &Path) -> Result<Option<(PathBuf, File)>, Error> {
    let path = folder.join(FILE);
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => {
            let file = other.map_err(|error| unusable(&path, error))?;
            Ok(Some((path, file)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_checks_do_not_look_like_the_supervisor() {
        let folder = tempfile::tempdir().expect("there is room");
        let lock = create(folder.path()).expect("it is new");
        assert!(is_held(folder.path()).expect("it can be read"));
        drop(lock);
        let other = File::open(folder.path().join(FILE)).expect("it is there");
        other.lock_shared().expect("it is not locked");
        assert!(!is_held(folder.path()).expect("it can be read"));
    }

    #[test]
    fn lock_of_a_recreated_folder_is_not_taken_for_the_old_one() {
        let above = tempfile::tempdir().expect("there is room");
        let folder = above.path().join("x");
        std::fs::create_dir(&folder).expect("it is new");
        let old = create(&folder).expect("it is new");
        assert!(is_file_of(&old, &folder));
        own(&folder).expect("it can be written");
        assert_eq!(owner(&folder), Owner::current());
        assert!(is_file_of(&old, &folder));
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert!(!is_file_of(&old, &folder));
        std::fs::create_dir(&folder).expect("it is new");
        let _new = create(&folder).expect("it is new");
        assert!(!is_file_of(&old, &folder));
    }
}
