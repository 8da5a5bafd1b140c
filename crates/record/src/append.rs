//! A file of whole records: after an error, the current record is removed, so that a later one can be tried, for
//! example when the disk has free space again.

use crate::error::RecordError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file that grows by whole records only.
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    /// Length of the committed records.
    committed_bytes: u64,
    pending_bytes: u64,
    torn: bool,
}

impl AppendFile {
    /// Creates a file; an existing file is an error.
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

    /// Removes everything that was written since the last commit.
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
            return Err(RecordError::Torn { path: self.path.clone() });
        }
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> Result<(), RecordError> {
        let synced = self.file.sync_all();
        synced.map_err(RecordError::write(&self.path))
    }

    /// Substitutes another file, such as one that is always full, and returns the previous one.
    #[cfg(test)]
    pub(crate) fn replace(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}
