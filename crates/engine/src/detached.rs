//! Deployments that stay after the command that started them: each has a folder below the state
//! folder and a process that holds its servers, the supervisor. The supervisor keeps a lock on a file
//! in that folder; the kernel drops the lock with the process, so that nobody is taken for alive who
//! is not. The file says which process it is and when that began, so that nobody else's process is
//! ever signalled.

pub mod lock;
pub mod state;

use crate::error::{Error, Kind};
use lock::Taken;
use state::State;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Folder of all deployments in the state folder.
const SERVERS: &str = "servers";

/// Longest name of a deployment: it is the name of a folder.
const NAME_CHARACTERS: usize = 64;

/// How often a supervisor that ends is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Time to stop one server, which may have to write its last checkpoint, and for the rest.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// Servers that a deployment is taken to have when it does not tell.
const UNKNOWN_SERVERS: usize = 16;

/// How to get rid of one that is not ready.
const STARTING_HINT: &str = "interrupt the command that starts it, or wait for it";

/// The folder of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachedDeployment {
    /// Its name, which is that of the folder.
    pub name: String,
    /// The folder, below the state folder.
    pub folder: PathBuf,
}

/// What there is of a deployment.
#[derive(Debug)]
pub enum Status {
    /// Its supervisor runs, and its servers do.
    Up(Box<State>),
    /// Its supervisor runs, and a server has ended by itself: which.
    Degraded(Box<State>, String),
    /// Its supervisor runs and its servers are not ready yet.
    Starting,
    /// Its supervisor runs, and what it wrote about its servers cannot be read: why.
    Unreadable(String),
    /// Its supervisor is gone, and its servers with it; the folder is left.
    Gone,
}

/// File in the folder of a deployment: servers that ended by themselves or had to be killed, one sentence on each line.
pub const PROBLEM: &str = "problem.txt";
/// File in the folder of a deployment: why its servers could not be stopped.
pub const FAILURE: &str = "failure.txt";

/// What a stop found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It ran, and is gone.
    Now,
    /// It had ended before; its remains are removed.
    Before,
}

impl DetachedDeployment {
    /// The folder of the deployment `name`, whether it is there or not.
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
        Ok(DetachedDeployment {
            name: name.to_owned(),
            folder: state_dir.join(SERVERS).join(name),
        })
    }

    /// All that are there, by name.
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

    /// Makes the folder, which only its owner can read, and takes the lock. Nobody sees the folder
    /// without its lock: it is made under another name.
    pub fn create(&self) -> Result<File, Error> {
        let above = self.above();
        let private = |recursive| {
            let mut builder = DirBuilder::new();
            builder.mode(0o700).recursive(recursive);
            builder
        };
        private(true)
            .create(above)
            .map_err(|error| unusable(above, error))?;
        if self.folder.exists() {
            return Err(self.taken()?);
        }
        let hidden = self.hidden("new");
        private(false)
            .create(&hidden)
            .map_err(|error| unusable(&hidden, error))?;
        let locked = lock::create(&hidden).and_then(|lock| {
            // It replaces nothing but an empty folder.
            match std::fs::rename(&hidden, &self.folder) {
                Ok(()) => Ok(lock),
                Err(_) if self.folder.exists() => Err(self.taken()?),
                Err(error) => Err(unusable(&self.folder, error)),
            }
        });
        if locked.is_err() {
            // The error says more than one of clearing up.
            let _ = std::fs::remove_dir_all(&hidden);
        }
        locked
    }

    fn above(&self) -> &Path {
        self.folder.parent().unwrap_or(Path::new("/"))
    }

    /// A folder beside that of the deployment which is no deployment, as its name begins with a dot.
    fn hidden(&self, what: &str) -> PathBuf {
        let process = std::process::id();
        self.above()
            .join(format!(".{}.{what}-{process}", self.name))
    }

    /// Why the name cannot be used.
    fn taken(&self) -> Result<Error, Error> {
        let name = &self.name;
        let removes = format!("`dyno server stop {name}` removes it; or choose another `--name`");
        let (message, hint) = match self.look()? {
            Some(Status::Up(_) | Status::Degraded(..) | Status::Unreadable(_)) => (
                format!("the deployment `{name}` is already running"),
                removes,
            ),
            Some(Status::Starting) => (
                format!("the deployment `{name}` is being started"),
                format!("{STARTING_HINT}; or choose another `--name`"),
            ),
            Some(Status::Gone) | None => (
                format!("the deployment `{name}` has ended, and its folder is left"),
                removes,
            ),
        };
        Ok(Error::new(Kind::BadInput, message).with_hint(hint))
    }

    /// What there is of it; `None` if there is nothing.
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

    /// Ends the deployment and removes its folder.
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
            Some(failure) => Err(failure.context(format!(
                "`{}` is stopped, and it did not end cleanly",
                self.name
            ))),
            None => Ok(stopped),
        }
    }

    /// Removes the folder of a deployment that has ended. Nothing is done if somebody else did it, even
    /// if there is a new one by now.
    pub fn remove(&self) -> Result<(), Error> {
        let lock = match lock::take(&self.folder)? {
            Taken::Free(lock) => lock,
            Taken::Held | Taken::Replaced => return Ok(()),
        };
        let hidden = self.hidden("old");
        std::fs::rename(&self.folder, &hidden).map_err(|error| unusable(&self.folder, error))?;
        drop(lock);
        std::fs::remove_dir_all(&hidden).map_err(|error| unusable(&hidden, error))
    }

    /// Asks the supervisor to end, and waits until it is gone.
    fn end(&self, servers: usize, interrupted: &dyn Fn() -> bool) -> Result<(), Error> {
        let owner = lock::owner(&self.folder);
        if let Some(owner) = owner {
            owner.terminate()?;
        }
        let limit = STOP_LIMIT * (1 + u32::try_from(servers).unwrap_or(u32::MAX - 1));
        let begin = Instant::now();
        while lock::is_held(&self.folder)? {
            let Some(owner) = owner else {
                let text = format!("the supervisor of `{}` is not known", self.name);
                let hint = format!("its process has `{}` open", self.folder.display());
                return Err(Error::new(Kind::Environment, text).with_hint(hint));
            };
            if interrupted() {
                return Err(Error::new(
                    Kind::Interrupted,
                    "interrupted; the servers go on stopping",
                ));
            }
            if begin.elapsed() > limit {
                let text = format!("`{}` has not ended within {limit:?}", self.name);
                return Err(Error::new(Kind::Environment, text)
                    .with_hint(format!("its supervisor is process {}", owner.process())));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// An error that names what there is instead.
    pub fn unknown(&self) -> Error {
        let others = self
            .folder
            .ancestors()
            .nth(2)
            .and_then(|state_dir| DetachedDeployment::all(state_dir).ok())
            .unwrap_or_default();
        let names: Vec<String> = others.into_iter().map(|place| place.name).collect();
        let hint = if names.is_empty() {
            "`dyno server start` starts one".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        Error::new(
            Kind::BadInput,
            format!("there is no deployment `{}`", self.name),
        )
        .with_hint(hint)
    }
}

/// A folder or a file of the state folder that cannot be used.
pub fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot use `{}`", path.display()))
        .with_hint("check its permissions, or choose another `--state-dir`")
}

/// What the supervisor of a folder has left in [`PROBLEM`] or [`FAILURE`].
fn read_problem(folder: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(name)).ok()?;
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["", "..", ".x", "a/b", "a b", &"x".repeat(65)] {
            assert!(
                DetachedDeployment::of(Path::new("/s"), name).is_err(),
                "{name}"
            );
        }
        let place = DetachedDeployment::of(Path::new("/s"), "one-2.x_y").expect("it is a name");
        assert_eq!(place.folder, Path::new("/s/servers/one-2.x_y"));
    }

    #[test]
    fn a_deployment_is_as_alive_as_its_lock() {
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
        assert_eq!(
            DetachedDeployment::all(folder.path()).expect("it can be read"),
            []
        );
        std::fs::remove_dir(place.hidden("new")).expect("it is empty");
        let lock = place.create().expect("it is new");
        place.remove().expect("there is nothing to do");
        assert!(place.folder.is_dir());
        drop(lock);
        place.remove().expect("nobody holds it");
        let left = std::fs::read_dir(place.above()).expect("it is there");
        assert_eq!(left.count(), 0);
    }
}
