//! The folder of an experiment: its document, its reports, and the run directories of its points.

use crate::error::{Error, Kind};
use crate::files::write_file;
use crate::run::directory::claim_name;
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, FILE, Point};
use jiff::Timestamp;
use std::fs::{File, TryLockError};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Folder of all experiments, unless `--out` names one.
const EXPERIMENTS: &str = "experiments";
/// Temporary data of the servers, inside that of an experiment.
const SERVER_DATA: &str = "server-data";

/// See the module.
#[derive(Clone, Debug)]
pub struct ExperimentFolder {
    path: PathBuf,
    /// Folders that were not there before, outermost first.
    made: Vec<PathBuf>,
    /// The folder itself, locked as long as this lives: two programs in it would remove each other's runs. The
    /// lock of a process that was killed is gone with it.
    _lock: Arc<File>,
    /// Whether the experiment begins with this process; what others began is not taken away.
    pub(crate) is_new: bool,
}

impl ExperimentFolder {
    /// Makes the folder that was asked for, which must be new or empty, or a new one below `experiments`.
    pub fn create(asked: Option<&Path>, name: &str, now: Timestamp) -> Result<Self, Error> {
        let (path, made) = match asked {
            None => claim_name(Path::new(EXPERIMENTS), name, now)?,
            Some(path) => (path.to_owned(), make(path)?),
        };
        let taken = lock(&path).and_then(|lock| check_empty(&path).map(|()| lock));
        let lock = taken.inspect_err(|_| remove(&made))?;
        Ok(ExperimentFolder {
            path,
            made,
            _lock: lock,
            is_new: true,
        })
    }

    /// Refuses a folder that is there and not empty, or is none.
    pub fn check(asked: &Path) -> Result<(), Error> {
        match asked.symlink_metadata() {
            Ok(_) => check_empty(asked),
            Err(_) => Ok(()),
        }
    }

    /// Takes up an experiment again.
    pub fn open(path: &Path) -> Result<(Self, Experiment), Error> {
        // Before the lock: what is no experiment has a clearer error.
        Experiment::read(path)?;
        let folder = ExperimentFolder {
            path: path.to_owned(),
            made: Vec::new(),
            _lock: lock(path)?,
            is_new: false,
        };
        let document = Experiment::read(path)?;
        // A process that was killed may not have got so far. Nothing else is ever put there.
        let _ = std::fs::remove_dir_all(path.join(SERVER_DATA));
        match document.points.iter().find(|point| !is_inside(point)) {
            None => Ok((folder, document)),
            Some(point) => {
                let text = format!("`{}` is no folder of a run in it", point.directory);
                let failure = Error::new(Kind::BadInput, text);
                Err(failure.context(format!("`{}` is not valid", path.join(FILE).display())))
            }
        }
    }

    /// Whether the run directory of a point is there.
    pub fn holds(&self, point: &Point) -> bool {
        self.path.join(&point.directory).join("run.json").is_file()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the plan of a task beside it.
    pub fn save_plan(&self, name: &str, task: &Task) -> Result<(), Error> {
        write_file(&self.path.join(name), &task.plan_text())
    }

    /// Reads a plan that was written.
    pub fn plan(&self, name: &str) -> Result<Plan, Error> {
        let path = self.path.join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            unusable(&path, error).with_hint("restore it: it describes the runs")
        })?;
        dyno_plan::file::parse(&text, &path.to_string_lossy()).map_err(|error| {
            Error::from_cause(Kind::BadInput, error)
                .with_hint("undo the change, or use the `dyno` that began the experiment")
        })
    }

    /// Removes what was made, as nothing was measured.
    pub fn discard(&self) {
        for name in [RUNS, "server-logs", SERVER_DATA] {
            let _ = std::fs::remove_dir_all(self.path.join(name));
        }
        if let Ok(files) = std::fs::read_dir(&self.path) {
            let own = [FILE, "plan.toml", "plan-a.toml", "plan-b.toml"];
            for file in files.flatten() {
                if own.iter().any(|name| file.file_name() == *name) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
        remove(&self.made);
    }
}

/// Whether the run directory of a point is where runs are: it is removed before a run is made again.
fn is_inside(point: &Point) -> bool {
    let mut parts = Path::new(&point.directory).components();
    let runs = Component::Normal(RUNS.as_ref());
    parts.next() == Some(runs)
        && matches!(parts.next(), Some(Component::Normal(_)))
        && parts.next().is_none()
}

/// Folder of the runs, inside that of the experiment.
const RUNS: &str = "runs";

/// How long the lock of a process that was killed may outlive it: a child that it was about to start holds a copy until its
/// program runs.
const LOCKED_AT_MOST: Duration = Duration::from_secs(1);

/// Locks a folder for this process.
fn lock(path: &Path) -> Result<Arc<File>, Error> {
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
            // Some file systems of networks have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(Arc::new(folder)),
        }
    }
}

/// Makes an asked-for folder; gives those that were missing, outermost first.
fn make(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect();
    let missing: Vec<PathBuf> = missing.into_iter().rev().collect();
    std::fs::create_dir_all(path).map_err(|error| {
        remove(&missing);
        unusable(path, error).with_hint("choose a folder that can be written with `--out`")
    })?;
    Ok(missing)
}

/// Takes folders away again, unless somebody has put something into them.
fn remove(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        let _ = std::fs::remove_dir(folder);
    }
}

fn check_empty(path: &Path) -> Result<(), Error> {
    let mut content = std::fs::read_dir(path).map_err(|error| unusable(path, error))?;
    if content.next().is_none() {
        return Ok(());
    }
    let text = format!("`{}` is not empty", path.display());
    let hint = "choose another folder with `--out`, or continue an experiment with `dyno resume`";
    Err(Error::new(Kind::BadInput, text).with_hint(hint))
}

fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error).context(format!("cannot use `{}`", path.display()))
}
