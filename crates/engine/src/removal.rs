//! Removes records that are no longer needed, and nothing else.

use crate::error::{Error, Kind};
use crate::experiment::folder::{PLANS, RUNS, SERVER_DATA};
use crate::folder::ClaimedFolder;
use crate::run::directory;
use dyno_record::document::Document;
use dyno_record::experiment::Experiment;
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::sums;
use dyno_record::tail::TailDocument;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Storage made for servers. A killed run may leave a mounted device there, whose files must not be removed one by one.
const SERVER_STORAGE: &str = "server-storage";

/// Removes the record of a run or an experiment, and its folder if nothing else is in it. Returns the names of what is
/// left there.
///
/// # Errors
/// [`Kind::Environment`] if the folder is a link or in use, or a file cannot be removed.
pub fn remove_record(folder: &Path) -> Result<Vec<String>, Error> {
    let cannot = |error: anyhow::Error| {
        Error::from_cause(Kind::Environment, error)
            .context(format!("cannot remove `{}`", folder.display()))
    };
    if folder.is_symlink() {
        return Err(cannot(anyhow::anyhow!("it is a link")));
    }
    let whole = std::path::absolute(folder).map_err(|error| cannot(error.into()))?;
    let is_part = |above: &Path| Experiment::is_in(above) && whole.starts_with(above.join(RUNS));
    if let Some(above) = whole.ancestors().nth(2).filter(|above| is_part(above)) {
        let text = format!("it is a run of the experiment `{}`", above.display());
        return Err(cannot(anyhow::anyhow!(text)).with_hint("remove the whole experiment"));
    }
    let _claimed = ClaimedFolder::open(folder)?;
    let left = remove_content(folder).map_err(|error| cannot(error.into()))?;
    Ok(left)
}

fn remove_content(folder: &Path) -> std::io::Result<Vec<String>> {
    let began_empty = Experiment::is_in(folder)
        || IndexBuildDocument::is_in(folder)
        || TailDocument::is_in(folder);
    let (mut own, mut left) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if is_own(&name, began_empty) { own.push(name) } else { left.push(name) }
    }
    // The documents last: a record that was removed in part is still listed.
    own.sort_by_key(|name| Path::new(name).extension().is_some_and(|end| end == "json"));
    for name in own {
        let path = folder.join(name);
        let is_folder = path.symlink_metadata()?.is_dir();
        if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }?;
    }
    if left.is_empty() {
        fs::remove_dir(folder)?;
    }
    Ok(left.iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Whether a name in a folder belongs to its record. An experiment begins in an empty folder, so that `runs` in it is its
/// own. A run may begin in a folder with other files, but not with files of these names.
fn is_own(name: &OsStr, began_empty: bool) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|one| name == *one);
    let bytes = name.as_encoded_bytes();
    if bytes.starts_with(b".dyno-") || bytes.starts_with(b".") && bytes.ends_with(b".json.new") {
        // A killed process may leave a file that it was about to rename.
        return true;
    }
    if began_empty {
        return sums::is_of_record(name) || is_one_of(&[PLANS, SERVER_DATA]);
    }
    sums::is_table(name) || name != SERVER_STORAGE && is_one_of(&directory::CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
            fs::write(path, "{}").expect("it can be written");
        }
        folder
    }

    #[test]
    fn record_is_removed_with_its_folder() {
        for names in [
            &["run.json", "SHA256SUMS", "series/intervals.csv", "report.html"][..],
            &["experiment.json", "plan-a.toml", "plans/a.toml", "runs/001-a/run.json"],
            &["run.json", ".run.json.new", ".dyno-x7", "live.json"],
            &["trace.json", "calls-001.parquet", "files.parquet"],
        ] {
            let folder = folder_with(names);
            assert_eq!(remove_record(folder.path()).expect("it is a record"), Vec::<String>::new());
            assert!(!folder.path().exists(), "{names:?}");
        }
    }

    #[test]
    fn other_files_in_the_folder_of_a_run_are_left() {
        let folder = folder_with(&["run.json", "notes.txt", "runs/other/run.json"]);
        let mut left = remove_record(folder.path()).expect("it is a record");
        left.sort();
        assert_eq!(left, ["notes.txt", "runs"]);
        assert!(!folder.path().join("run.json").exists());
        assert!(folder.path().join("runs/other/run.json").exists());
    }

    #[test]
    fn run_of_an_experiment_is_refused() {
        let folder = folder_with(&["experiment.json", "runs/001-a/run.json"]);
        let refused = remove_record(&folder.path().join("runs/001-a"));
        assert!(refused.expect_err("a part").reason().contains("experiment"));
        assert!(folder.path().join("runs/001-a/run.json").exists());
    }

    #[test]
    fn folder_in_use_and_link_are_refused() {
        let folder = folder_with(&["run.json"]);
        let claimed = ClaimedFolder::open(folder.path()).expect("it is free");
        assert_eq!(remove_record(folder.path()).expect_err("in use").kind, Kind::Environment);
        drop(claimed);
        let link = folder.path().with_extension("link");
        std::os::unix::fs::symlink(folder.path(), &link).expect("it can be made");
        let refused = remove_record(&link);
        fs::remove_file(&link).expect("it was made");
        assert_eq!(refused.expect_err("a link").kind, Kind::Environment);
        assert!(folder.path().join("run.json").exists());
    }
}
