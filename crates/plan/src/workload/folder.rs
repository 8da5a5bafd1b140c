//! Files that a workload names: only those in the plan's folder, so that the plan of a stranger cannot read others.

use std::path::{Component, Path, PathBuf};

/// Text of a file in the plan's folder.
///
/// # Errors
/// The reason, if the plan is not in a folder, the name leads out of it, or the file cannot be read.
pub(crate) fn read(folder: Option<&Path>, name: &str) -> Result<String, String> {
    check_name(name)?;
    let folder = folder.ok_or("the plan is not in a folder")?;
    std::fs::read_to_string(path_of(folder, name)?).map_err(|error| error.to_string())
}

/// The path of a file in the plan's folder.
///
/// # Errors
/// The reason, if the name leads out of the folder, directly or by a link, or if the file does not exist.
pub(crate) fn path_of(folder: &Path, name: &str) -> Result<PathBuf, String> {
    check_name(name)?;
    let path = folder.join(name);
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    let real_folder = folder.canonicalize().map_err(|error| error.to_string())?;
    if real.starts_with(real_folder) { Ok(path) } else { Err(OUTSIDE.into()) }
}

const OUTSIDE: &str = "it is outside of the plan's folder";

/// Refuses names that lead out of any folder.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(name).components().all(is_inside) { Ok(()) } else { Err(OUTSIDE.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_found_only_inside_of_the_folder() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("plan");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(parent.path().join("secret"), "").unwrap();
        std::fs::write(folder.join("words.txt"), "").unwrap();
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        assert_eq!(path_of(&folder, "words.txt"), Ok(folder.join("words.txt")));
        assert_eq!(path_of(&folder, "link"), Err(OUTSIDE.into()));
        assert_eq!(path_of(&folder, "../secret"), Err(OUTSIDE.into()));
        assert_eq!(path_of(&folder, "/etc/passwd"), Err(OUTSIDE.into()));
        assert!(path_of(&folder, "absent").is_err());
    }
}
