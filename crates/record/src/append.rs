//! A file to which whole pieces are appended: after an error the piece under way is taken back, so
//! that a later one can be tried, for example when there is room on the disk again.

use crate::error::RecordError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file that grows by whole pieces only.
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    /// Length that belongs to pieces that were committed.
    committed_bytes: u64,
    pending_bytes: u64,
    torn: bool,
}

impl AppendFile {
    /// A new file; one that exists is an error.
    pub(crate) fn create(path: &Path) -> Result<AppendFile, RecordError> {
        let opened = OpenOptions::new().append(true).create_new(true).open(path);
        Ok(AppendFile {
            path: path.to_owned(),
            file: opened.map_err(RecordError::create(path))?,
            committed_bytes: 0,
            pending_bytes: 0,
            torn: false,
        })
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.pending_bytes += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(RecordError::write(&self.path))
    }

    pub(crate) fn commit(&mut self) {
        self.committed_bytes += self.pending_bytes;
        self.pending_bytes = 0;
    }

    /// Cuts off what was written since the last commit.
    pub(crate) fn roll_back(&mut self) {
        self.pending_bytes = 0;
        let whole = match self.file.metadata() {
            Ok(metadata) if metadata.len() <= self.committed_bytes => Ok(()),
            _ => self.file.set_len(self.committed_bytes),
        };
        self.torn = whole.is_err();
    }

    pub(crate) fn check_whole(&mut self) -> Result<(), RecordError> {
        if self.torn {
            self.roll_back();
        }
        if self.torn {
            return Err(RecordError::Torn {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> Result<(), RecordError> {
        let synced = self.file.sync_all();
        synced.map_err(RecordError::write(&self.path))
    }

    /// Puts another file in its place, such as one that is always full, and returns the one before.
    #[cfg(test)]
    pub(crate) fn replace(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}
