//! Opens only plain files of a record, which may come from anyone, so that no reader waits for a pipe, reads an endless
//! device, or follows a link out of the folder.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Maximum size of a document.
const LARGEST_BYTES: u64 = 1 << 30;

/// Opens a plain file.
///
/// # Errors
/// Errors of the system, and [`ErrorKind::InvalidInput`] for anything but a plain file.
pub fn open(path: &Path) -> io::Result<File> {
    check(path.symlink_metadata()?.file_type())?;
    // Neither follow nor wait for a link or pipe that replaced the file since the check.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a plain file as a whole.
///
/// # Errors
/// Errors of [`open`], and [`ErrorKind::FileTooLarge`] above 1 GiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, LARGEST_BYTES)
}

fn read_at_most(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > most_bytes {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a plain file of text as a whole.
///
/// # Errors
/// Errors of [`read`], and [`ErrorKind::InvalidData`] for bytes that are not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn check(kind: FileType) -> io::Result<()> {
    if kind.is_file() {
        return Ok(());
    }
    let name = match () {
        () if kind.is_symlink() => "a link",
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let text = format!("expected a plain file, found {name}");
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("plain"), "text").unwrap();
        symlink("plain", at("link")).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.unwrap().success());
        assert_eq!(read_text(&at("plain")).unwrap(), "text");
        let kind = |path: &Path| open(path).unwrap_err().kind();
        for name in ["link", "endless", "pipe", "."] {
            assert_eq!(kind(&at(name)), ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(kind(Path::new("/dev/zero")), ErrorKind::InvalidInput);
        assert_eq!(kind(&at("none")), ErrorKind::NotFound);
    }

    #[test]
    fn file_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(11).unwrap();
        let error = read_at_most(&path, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_at_most(&path, 11).unwrap().len(), 11);
    }
}
