//! A file outside of any folder, so that nothing of it can be left behind.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// A file in memory, which other processes of this user can open through `/proc` while this value
/// lives.
#[derive(Debug)]
pub struct MemoryFile {
    _file: File,
    path: PathBuf,
}

impl MemoryFile {
    /// A file with this text. The name is visible only in `/proc`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(name: &CStr, text: &str) -> io::Result<MemoryFile> {
        let mut file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?);
        file.write_all(text.as_bytes())?;
        let (process, number) = (std::process::id(), file.as_raw_fd());
        Ok(MemoryFile { _file: file, path: PathBuf::from(format!("/proc/{process}/fd/{number}")) })
    }

    /// Path by which other processes open it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn another_process_reads_it_while_it_lives() {
        let file = MemoryFile::new(c"words", "of one").unwrap();
        assert!(fs::metadata(file.path()).unwrap().is_file());
        for _ in 0..2 {
            let seen = std::process::Command::new("cat").arg(file.path()).output();
            assert_eq!(seen.unwrap().stdout, b"of one");
        }
        let path = file.path().to_owned();
        drop(file);
        assert!(fs::read_link(path).is_err());
    }
}
