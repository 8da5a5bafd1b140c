//! The folder of an experiment: its document, its reports, and the run directories of its points.

use crate::error::{Error, Kind, refuse};
use crate::files::write_file;
use crate::folder::ClaimedFolder;
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, FILE, Point};
use dyno_record::plain_file;
use dyno_record::sums;
use jiff::Timestamp;
use std::path::{Component, Path};
use std::sync::Arc;

/// Parent folder of experiments, unless `--out` names one.
const EXPERIMENTS: &str = "experiments";
/// Folder of the runs, inside the experiment's folder.
pub(crate) const RUNS: &str = "runs";
/// Folder of the plans of several workloads, inside the experiment's folder.
pub(crate) const PLANS: &str = "plans";
/// Temporary data of the servers, inside the experiment's folder.
pub(crate) const SERVER_DATA: &str = "server-data";
/// Content of an experiment's folder before the first measurement.
const CONTENT: [&str; 10] = [
    sums::FILE,
    RUNS,
    PLANS,
    "server-logs",
    SERVER_DATA,
    "server-storage",
    FILE,
    "plan.toml",
    "plan-a.toml",
    "plan-b.toml",
];

/// See the module.
#[derive(Clone, Debug)]
pub struct ExperimentFolder {
    folder: Arc<ClaimedFolder>,
    /// Whether this process created the experiment; older ones are never removed.
    pub(crate) is_new: bool,
}

impl ExperimentFolder {
    /// Creates the requested folder, which must be new or empty, or a new one below `experiments`.
    pub fn create(asked: Option<&Path>, name: &str, now: Timestamp) -> Result<Self, Error> {
        let folder = ClaimedFolder::create(asked, EXPERIMENTS, name, now, check_empty)?;
        Ok(ExperimentFolder { folder: Arc::new(folder), is_new: true })
    }

    /// Refuses an existing path that is not an empty folder.
    pub fn check(asked: &Path) -> Result<(), Error> {
        match asked.symlink_metadata() {
            Ok(_) => check_empty(asked),
            Err(_) => Ok(()),
        }
    }

    /// Opens an experiment to resume it.
    pub fn open(path: &Path) -> Result<(Self, Experiment), Error> {
        // Before the lock: a folder without an experiment then gives a clearer error.
        Experiment::read(path)?;
        let folder =
            ExperimentFolder { folder: Arc::new(ClaimedFolder::open(path)?), is_new: false };
        let document = Experiment::read(path)?;
        // A process that was killed may have left it. It only ever holds temporary data.
        let _ = std::fs::remove_dir_all(path.join(SERVER_DATA));
        match document.points.iter().find(|point| !is_inside(point)) {
            None => Ok((folder, document)),
            Some(point) => {
                let text = format!("`{}` is not a run folder inside it", point.directory);
                let failure = Error::new(Kind::BadInput, text);
                Err(failure.context(format!("`{}` is not valid", path.join(FILE).display())))
            }
        }
    }

    /// Whether the run directory of a point exists.
    pub fn holds(&self, point: &Point) -> bool {
        self.path().join(&point.directory).join("run.json").is_file()
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the document of an unfinished experiment.
    pub fn save(&self, document: &Experiment) -> Result<(), Error> {
        sums::remove(self.path())?;
        Ok(document.write(self.path())?)
    }

    /// Writes the checksums: the record is final.
    pub fn finish(&self) {
        sums::write(self.path());
    }

    /// Writes the plan of a task into the folder.
    pub fn save_plan(&self, name: &str, task: &Task) -> Result<(), Error> {
        let path = self.path().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unusable(folder, error))?;
        }
        write_file(&path, &task.plan_text())
    }

    /// Reads a saved plan.
    pub fn plan(&self, name: &str) -> Result<Plan, Error> {
        let path = self.path().join(name);
        let text = plain_file::read_text(&path).map_err(|error| {
            unusable(&path, error).with_hint("restore it, because it describes the runs")
        })?;
        dyno_plan::file::parse(&text, &path.to_string_lossy()).map_err(|error| {
            Error::from_cause(Kind::BadInput, error)
                .with_hint("undo the change, or use the `dyno` that began the experiment")
        })
    }

    /// Removes the new folder, because nothing was measured.
    pub fn discard(&self) {
        self.folder.discard(&CONTENT);
    }
}

/// Whether the run directory of a point is inside the runs folder, because it is removed before a
/// run is made again, and its plan inside the plans folder.
fn is_inside(point: &Point) -> bool {
    let mut parts = Path::new(&point.directory).components();
    let runs = Component::Normal(RUNS.as_ref());
    let is_name = |part| matches!(part, Some(Component::Normal(_)));
    let has_plan = point.workload.as_ref().is_none_or(|workload| {
        let mut parts = Path::new(workload).components();
        is_name(parts.next()) && parts.next().is_none()
    });
    parts.next() == Some(runs) && is_name(parts.next()) && parts.next().is_none() && has_plan
}

fn check_empty(path: &Path) -> Result<(), Error> {
    let mut content = std::fs::read_dir(path)
        .map_err(|error| unusable(path, error).with_hint("choose another folder with `--out`"))?;
    if content.next().is_none() {
        return Ok(());
    }
    let text = format!("`{}` is not empty", path.display());
    let hint = "choose another folder with `--out`, or continue an experiment with `dyno resume`";
    refuse(text, hint)
}

fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error).context(format!("cannot use `{}`", path.display()))
}
