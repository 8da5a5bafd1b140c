//! The folder of an experiment: its document, its reports, and the run directories of its points.

use crate::exit::{Exit, Failure};
use crate::session::directory::claim_name;
use crate::session::output::write_file;
use dyno_analyze::experiment::{Experiment, SCHEMA_VERSION};
use dyno_plan::Plan;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Folder of all experiments, unless `--out` names one.
const EXPERIMENTS: &str = "experiments";
/// Document of an experiment, inside its folder.
pub(crate) const DOCUMENT: &str = "experiment.json";

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ExperimentFolder {
    path: PathBuf,
    /// Folders that were not there before, outermost first.
    made: Vec<PathBuf>,
}

impl ExperimentFolder {
    /// Makes the folder that was asked for, which must be new or empty, or a new one below `experiments`.
    pub(crate) fn create(
        asked: Option<&Path>,
        name: &str,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let (path, made) = match asked {
            None => claim_name(Path::new(EXPERIMENTS), name, now)?,
            Some(path) => (path.to_owned(), make(path)?),
        };
        Ok(ExperimentFolder { path, made })
    }

    /// Reads the experiment that is to be taken up again.
    pub(crate) fn open(path: &Path) -> Result<(Self, Experiment), Failure> {
        let document = read(path)?;
        let folder = ExperimentFolder {
            path: path.to_owned(),
            made: Vec::new(),
        };
        Ok((folder, document))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the document.
    pub(crate) fn save(&self, document: &Experiment) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).expect("it is plain data");
        write_file(&self.path.join(DOCUMENT), &format!("{text}\n"))
    }

    /// Writes a plan beside it.
    pub(crate) fn save_plan(&self, name: &str, plan: &Plan) -> Result<(), Failure> {
        write_file(&self.path.join(name), &dyno_plan::file::to_toml(plan))
    }

    /// Reads a plan that was written.
    pub(crate) fn plan(&self, name: &str) -> Result<Plan, Failure> {
        let path = self.path.join(name);
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, error))?;
        dyno_plan::file::parse(&text, &path.to_string_lossy())
            .map_err(|error| Failure::of(Exit::BadInput, error))
    }

    /// Removes what was made, as nothing was measured.
    pub(crate) fn discard(&self) {
        for name in ["runs", "server-logs", "server-data"] {
            let _ = std::fs::remove_dir_all(self.path.join(name));
        }
        if let Ok(files) = std::fs::read_dir(&self.path) {
            let own = [DOCUMENT, "plan.toml", "plan-a.toml", "plan-b.toml"];
            for file in files.flatten() {
                if own.iter().any(|name| file.file_name() == *name) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
        for folder in self.made.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Reads the document of an experiment.
pub(crate) fn read(path: &Path) -> Result<Experiment, Failure> {
    let file = path.join(DOCUMENT);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let failure = unusable(&file, error);
        match path.is_dir() {
            true => failure.with_hint("it is no folder of an experiment"),
            false => failure.with_hint("there is no such folder"),
        }
    })?;
    let wrong = |error: anyhow::Error| unusable(&file, error);
    let document: Experiment = serde_json::from_str(&text).map_err(|error| wrong(error.into()))?;
    if document.schema_version != SCHEMA_VERSION {
        let version = document.schema_version;
        return Err(wrong(anyhow::anyhow!(
            "it has version {version}, this program reads {SCHEMA_VERSION}"
        )));
    }
    Ok(document)
}

/// Makes an asked-for folder; gives those that were missing, outermost first.
fn make(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect();
    std::fs::create_dir_all(path).map_err(|error| unusable(path, error))?;
    let mut content = std::fs::read_dir(path).map_err(|error| unusable(path, error))?;
    if content.next().is_some() {
        let text = format!("`{}` is not empty", path.display());
        let hint =
            "choose another folder with `--out`, or go on with an experiment by `dyno resume`";
        return Err(Failure::new(Exit::BadInput, text).with_hint(hint));
    }
    Ok(missing.into_iter().rev().collect())
}

fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Failure {
    Failure::of(Exit::Environment, error).context(format!("cannot use `{}`", path.display()))
}
