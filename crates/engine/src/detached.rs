//! Deployments that outlive the command that started them. Each has a folder in the state folder
//! and a process that holds its servers, the supervisor. The supervisor locks a file in that
//! folder; the kernel drops the lock with the process, so a dead supervisor never counts as
//! running. The file names the process and its start time, so that no other process is ever
//! signalled.

pub mod lock;
pub mod state;

use crate::error::{Error, Kind};
use state::State;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Parent folder of all deployments, in the state folder.
const SERVERS: &str = "servers";

/// Longest name of a deployment: it is also a folder name.
const NAME_CHARACTERS: usize = 64;

/// Interval between checks of a supervisor that is ending.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Time to stop one server, which may have to write its last checkpoint, and for the rest.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Assumed number of servers if the state file is unreadable.
const UNKNOWN_SERVERS: usize = 16;

/// Hint for a deployment that is not ready yet.
const STARTING_HINT: &str = "interrupt the command that starts it, or wait for it";

/// The folder of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachedDeployment {
    /// Also the name of the folder.
    pub name: String,
    pub folder: PathBuf,
}

/// Status of a deployment.
#[derive(Debug)]
pub enum Status {
    /// The supervisor and its servers run.
    Up(Box<State>),
    /// The supervisor runs, but the named server has ended by itself.
    Degraded(Box<State>, String),
    /// The supervisor runs, but its servers are not ready yet.
    Starting,
    /// The supervisor runs, but its state file cannot be read, for this reason.
    Unreadable(String),
    /// The supervisor and its servers have ended; the folder remains.
    Gone,
}

/// File in the folder of a deployment with one sentence per line for servers that ended by
/// themselves or had to be killed.
pub const PROBLEM: &str = "problem.txt";
/// File in the folder of a deployment with the reason why its servers could not be stopped.
pub const FAILURE: &str = "failure.txt";

/// Status of the deployment when it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was running.
    Now,
    /// It had already ended; its folder was removed.
    Before,
}

impl DetachedDeployment {
    /// The folder of the deployment `name`, whether or not it exists.
    pub fn of(state_dir: &Path, name: &str) -> Result<Self, Error> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let fits = (1..=NAME_CHARACTERS).contains(&name.chars().count())
            && name.chars().all(allowed)
            && !name.starts_with('.');
        if !fits {
            return Err(Error::new(
                Kind::BadInput,
                format!(
                    "`{name}` is not a valid name of a deployment: use 1 to {NAME_CHARACTERS} letters, digits, `.`, `_` or `-`"
                ),
            ));
        }
        Ok(DetachedDeployment { name: name.to_owned(), folder: state_dir.join(SERVERS).join(name) })
    }

    /// All existing deployments, by name.
    pub fn all(state_dir: &Path) -> Result<Vec<Self>, Error> {
        let folder = state_dir.join(SERVERS);
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| unusable(&folder, error))?,
        };
        let mut places = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| unusable(&folder, error))?;
            if let Some(name) = entry.file_name().to_str() {
                places.extend(DetachedDeployment::of(state_dir, name));
            }
        }
        places.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(places)
    }

    /// Creates the folder, readable only by its owner, and takes the lock. Creates it under a
    /// hidden name first, so that it never appears without its lock.
    pub fn create(&self) -> Result<File, Error> {
        let above = self.above();
        let private = |recursive| {
            let mut builder = DirBuilder::new();
            builder.mode(0o700).recursive(recursive);
            builder
        };
        private(true).create(above).map_err(|error| unusable(above, error))?;
        if self.folder.exists() {
            return Err(self.taken()?);
        }
        let hidden = self.hidden("new");
        private(false).create(&hidden).map_err(|error| unusable(&hidden, error))?;
        let locked = lock::create(&hidden).and_then(|lock| {
            // The rename replaces only an empty folder.
            match std::fs::rename(&hidden, &self.folder) {
                Ok(()) => Ok(lock),
                Err(_) if self.folder.exists() => Err(self.taken()?),
                Err(error) => Err(unusable(&self.folder, error)),
            }
        });
        if locked.is_err() {
            // The first error matters more than an error of the cleanup.
            let _ = std::fs::remove_dir_all(&hidden);
        }
        locked
    }

    fn above(&self) -> &Path {
        self.folder.parent().unwrap_or(Path::new("/"))
    }

    /// A hidden folder next to the deployment's. Its leading dot makes it an invalid deployment
    /// name.
    fn hidden(&self, what: &str) -> PathBuf {
        let process = std::process::id();
        self.above().join(format!(".{}.{what}-{process}", self.name))
    }

    /// Error for a name in use.
    fn taken(&self) -> Result<Error, Error> {
        let name = &self.name;
        let removes = format!("`dyno server stop {name}` removes it; or choose another `--name`");
        let (message, hint) = match self.look()? {
            Some(Status::Up(_) | Status::Degraded(..) | Status::Unreadable(_)) => {
                (format!("the deployment `{name}` is already running"), removes)
            }
            Some(Status::Starting) => (
                format!("the deployment `{name}` is being started"),
                format!("{STARTING_HINT}; or choose another `--name`"),
            ),
            Some(Status::Gone) | None => {
                (format!("the deployment `{name}` has ended, but its folder remains"), removes)
            }
        };
        Ok(Error::new(Kind::BadInput, message).with_hint(hint))
    }

    /// Status of the deployment; `None` if it does not exist.
    pub fn look(&self) -> Result<Option<Status>, Error> {
        if !self.folder.is_dir() {
            return Ok(None);
        }
        if !lock::is_held(&self.folder)? {
            return Ok(self.folder.is_dir().then_some(Status::Gone));
        }
        Ok(Some(match State::read(&self.folder) {
            Ok(Some(state)) => match read_problem(&self.folder, PROBLEM) {
                Some(problem) => Status::Degraded(Box::new(state), problem),
                None => Status::Up(Box::new(state)),
            },
            Ok(None) => Status::Starting,
            Err(failure) => Status::Unreadable(format!("{:#}", failure.cause)),
        }))
    }

    /// Stops the deployment and removes its folder.
    pub fn stop(&self, interrupted: &dyn Fn() -> bool) -> Result<Stopped, Error> {
        let (stopped, servers) = match self.look()? {
            None => return Err(self.unknown()),
            Some(Status::Gone) => (Stopped::Before, 0),
            Some(Status::Starting) => {
                let text = format!("the deployment `{}` is being started", self.name);
                return Err(Error::new(Kind::Environment, text).with_hint(STARTING_HINT));
            }
            Some(Status::Up(state) | Status::Degraded(state, _)) => {
                (Stopped::Now, state.members.len())
            }
            Some(Status::Unreadable(_)) => (Stopped::Now, UNKNOWN_SERVERS),
        };
        if stopped == Stopped::Now {
            self.end(servers, interrupted)?;
        }
        let failure = read_problem(&self.folder, FAILURE)
            .map(|text| Error::new(Kind::Environment, text))
            .or_else(|| {
                let text = read_problem(&self.folder, PROBLEM)?.replace('\n', "; ");
                Some(Error::new(Kind::CheckFailed, text))
            });
        self.remove()?;
        match failure {
            Some(failure) => {
                Err(failure
                    .context(format!("`{}` is stopped, but it did not end cleanly", self.name)))
            }
            None => Ok(stopped),
        }
    }

    /// Removes the folder of a deployment that has ended. Does nothing if another process removed
    /// it, even if it has been created again.
    pub fn remove(&self) -> Result<(), Error> {
        let Some(lock) = lock::take(&self.folder)? else {
            return Ok(());
        };
        let hidden = self.hidden("old");
        std::fs::rename(&self.folder, &hidden).map_err(|error| unusable(&self.folder, error))?;
        drop(lock);
        std::fs::remove_dir_all(&hidden).map_err(|error| unusable(&hidden, error))
    }

    /// Asks the supervisor to end, and waits for its end.
    fn end(&self, servers: usize, interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        let owner = lock::owner(&self.folder);
        if let Some(owner) = owner {
            owner.terminate()?;
        }
        let limit = STOP_LIMIT * (1 + u32::try_from(servers).unwrap_or(u32::MAX - 1));
        let begin = Instant::now();
        while lock::is_held(&self.folder)? {
            let Some(owner) = owner else {
                let text = format!("the supervisor of `{}` is unknown", self.name);
                let hint = format!("find the process that has `{}` open", self.folder.display());
                return Err(Error::new(Kind::Environment, text).with_hint(hint));
            };
            if interrupted() {
                return Err(Error::new(
                    Kind::Interrupted,
                    "interrupted; the servers continue to stop",
                ));
            }
            if begin.elapsed() > limit {
                let text = format!("`{}` has not ended within {limit:?}", self.name);
                return Err(Error::new(Kind::Environment, text)
                    .with_hint(format!("check its supervisor, process {}", owner.process())));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Error for an unknown name. The hint lists the existing deployments.
    pub fn unknown(&self) -> Error {
        let others = self
            .folder
            .ancestors()
            .nth(2)
            .and_then(|state_dir| DetachedDeployment::all(state_dir).ok())
            .unwrap_or_default();
        let names: Vec<String> = others.into_iter().map(|place| place.name).collect();
        let hint = if names.is_empty() {
            "start one with `dyno server start`".to_owned()
        } else {
            format!("choose one of {}", names.join(", "))
        };
        Error::new(Kind::BadInput, format!("there is no deployment `{}`", self.name))
            .with_hint(hint)
    }
}

/// Error for an unusable file or folder of the state folder.
pub fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot use `{}`", path.display()))
        .with_hint("check its permissions, or choose another `--state-dir`")
}

/// Reads [`PROBLEM`] or [`FAILURE`] from the supervisor of a folder.
fn read_problem(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_leading_out_of_the_folder_are_refused() {
        for name in ["", "..", ".x", "a/b", "a b", &"x".repeat(65)] {
            assert!(DetachedDeployment::of(Path::new("/s"), name).is_err(), "{name}");
        }
        let place = DetachedDeployment::of(Path::new("/s"), "one-2.x_y").expect("it is a name");
        assert_eq!(place.folder, Path::new("/s/servers/one-2.x_y"));
    }

    #[test]
    fn deployment_is_running_while_its_lock_is_held() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = DetachedDeployment::of(folder.path(), "x").expect("it is a name");
        assert!(place.look().expect("it can be read").is_none());
        let lock = place.create().expect("it is new");
        assert!(matches!(place.look(), Ok(Some(Status::Starting))));
        let taken = place.create().expect_err("it is there").cause.to_string();
        assert!(taken.contains("`x`"), "{taken}");
        let hint = place.create().expect_err("it is there").hint;
        assert!(
            hint.as_ref()
                .is_some_and(|hint| hint.contains(STARTING_HINT) && !hint.contains("stop")),
            "{hint:?}"
        );
        drop(lock);
        assert!(matches!(place.look(), Ok(Some(Status::Gone))));
        assert_eq!(place.stop(&|| false).expect("it is gone"), Stopped::Before);
        let unknown = place.stop(&|| false).expect_err("nothing is left");
        assert_eq!(unknown.kind, Kind::BadInput);
    }

    #[test]
    fn unfinished_folder_is_hidden_and_held_folder_is_not_removed() {
        let folder = tempfile::tempdir().expect("there is room");
        let place = DetachedDeployment::of(folder.path(), "x").expect("it is a name");
        std::fs::create_dir_all(place.hidden("new")).expect("it is new");
        assert_eq!(DetachedDeployment::all(folder.path()).expect("it can be read"), []);
        std::fs::remove_dir(place.hidden("new")).expect("it is empty");
        let lock = place.create().expect("it is new");
        place.remove().expect("there is nothing to do");
        assert!(place.folder.is_dir());
        drop(lock);
        place.remove().expect("it is not locked");
        let left = std::fs::read_dir(place.above()).expect("it is there");
        assert_eq!(left.count(), 0);
    }
}
