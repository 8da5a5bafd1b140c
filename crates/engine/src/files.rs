//! Writes files as a whole or not at all.

use crate::error::{Error, Kind, OrFault};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a text to a file like [`write_file_with`].
///
/// # Errors
/// See there.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    write_file_with(path, |file| file.write_all(text.as_bytes()).map_err(write_error))
}

/// Creates a folder with its parents.
///
/// # Errors
/// [`Kind::Environment`] if it cannot be created.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder)
        .or_fault(Kind::Environment, || format!("cannot make `{}`", folder.display()))
}

/// Writes a file as a whole or not at all. Devices and pipes are written directly, and a link stays
/// a link.
///
/// # Errors
/// The error of `write`; [`Kind::Environment`] if the file cannot be written, or is a link of
/// another user: any user with write access to the folder could make a root process overwrite any
/// file.
pub fn write_file_with(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Error>,
) -> Result<(), Error> {
    let fill = |file: &mut File| {
        let mut output = BufWriter::with_capacity(1 << 16, file);
        write(&mut output)?;
        output.flush().map_err(write_error)
    };
    let written = check_link(path).map_err(write_error).and_then(|()| {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&target) {
            Ok(metadata) if !metadata.is_file() => {
                let file = File::options().write(true).open(&target);
                fill(&mut file.map_err(write_error)?)
            }
            _ => {
                let mut beside = beside(&target, FOR_ALL).map_err(write_error)?;
                fill(beside.as_file_mut())?;
                beside.persist(&target).map_err(|error| write_error(error.error))?;
                Ok(())
            }
        }
    });
    written.map_err(|error| error.context(format!("cannot write `{}`", path.display())))
}

/// Error of a file that cannot be written.
pub fn write_error(error: io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .with_hint("check the path, its permissions and the free space")
}

/// Refuses links made by another user than root, which the kernel refuses only in world-writable
/// folders with the sticky bit. For root, refuses such links in the whole path; other users can
/// only damage their own files.
pub(crate) fn check_link(path: &Path) -> io::Result<()> {
    let user = nix::unistd::geteuid();
    let trusted = [0, user.as_raw()];
    let path = std::path::absolute(path)?;
    let depth = if user.is_root() { usize::MAX } else { 1 };
    for part in path.ancestors().take(depth) {
        let link = part.symlink_metadata();
        if link.is_ok_and(|link| link.is_symlink() && !trusted.contains(&link.uid())) {
            let text = if part == path {
                "it is a link of another user".to_owned()
            } else {
                format!("`{}` is a link of another user", part.display())
            };
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// Whether two looks found the same file or folder, not just the same name.
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Replaces a file atomically: readers find the old content or the new one.
///
/// # Errors
/// The folder or the file cannot be written.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = beside(path, mode)?;
    beside.write_all(content)?;
    beside.persist(path)?;
    Ok(())
}

/// Modes of new files, before the umask: for all, and for this user alone.
pub(crate) const FOR_ALL: u32 = 0o666;
pub(crate) const PRIVATE: u32 = 0o600;

/// Creates a temporary file in the same folder, removed unless it replaces `path`. It is always
/// new, so that no link is followed.
fn beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".dyno-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_written_as_a_whole_and_a_link_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").expect("there is room");
        std::os::unix::fs::symlink("file", &link).expect("it can be made");
        write_file(&link, "new").expect("it can be written");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "new");
        assert!(link.is_symlink());
        let failed = write_file_with(&link, |output| {
            let _ = output.write_all(b"half");
            Err(Error::new(Kind::Environment, "no more"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "new");
        let left = std::fs::read_dir(folder.path()).expect("it is there");
        assert_eq!(left.count(), 2);
    }

    #[test]
    fn a_link_of_another_user_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").expect("there is room");
        std::os::unix::fs::symlink("file", &link).expect("it can be made");
        // Only root can give a link away.
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            let refused = write_file(&link, "new").expect_err("it is the link of another user");
            assert_eq!(refused.kind, Kind::Environment);
            assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "old");
        }
    }

    #[test]
    fn root_follows_no_link_of_another_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, link) = (folder.path().join("inner"), folder.path().join("link"));
        std::fs::create_dir(&inner).expect("it can be made");
        std::os::unix::fs::symlink("inner", &link).expect("it can be made");
        write_file(&link.join("file"), "ours").expect("it is a link of ours");
        // Only root can give a link away.
        if std::os::unix::fs::lchown(&link, Some(65_534), None).is_ok() {
            let refused = write_file(&link.join("file"), "new");
            let refused = refused.expect_err("it leads through the link of another user");
            assert!(format!("{:#}", refused.cause).contains("/link`"));
            assert_eq!(std::fs::read_to_string(inner.join("file")).expect("it is there"), "ours");
        }
    }
}
