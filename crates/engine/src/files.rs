//! Files that are written whole or not at all.

use crate::error::{Error, Kind, OrFault};
use std::path::{Path, PathBuf};

/// Makes a folder, with those that it is in.
///
/// # Errors
/// [`Kind::Environment`] if it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).or_fault(Kind::Environment, || {
        format!("cannot make `{}`", folder.display())
    })
}

/// Writes a file, whole or not at all. A device or a pipe is written to, and a link stays a link.
///
/// # Errors
/// [`Kind::Environment`] if the file cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_special = std::fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special {
        std::fs::write(&target, text)
    } else {
        replace_file(&target, text)
    };
    written
        .or_fault(Kind::Environment, || {
            format!("cannot write `{}`", path.display())
        })
        .with_hint("check the path, its permissions and the free space")
}

fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })
}
