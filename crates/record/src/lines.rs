//! Reads the numbered lines of a recorded file. A last line without a line end was truncated, and is reported
//! separately.

use crate::error::RecordError;
use crate::plain_file;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Maximum line length. The widest tables need a few hundred kilobytes.
const LONGEST_BYTES: u64 = 64 << 20;

/// Lines of one file.
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
    torn: bool,
    /// Appended to each line.
    completion: &'static str,
}

impl Lines {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Lines, RecordError> {
        let file = plain_file::open(path).map_err(RecordError::read(path))?;
        Ok(Lines {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 16, file),
            buffer: Vec::new(),
            number: 0,
            torn: false,
            completion: "",
        })
    }

    /// The next complete line without its end; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, RecordError> {
        self.buffer.clear();
        let mut limited = (&mut self.reader).take(LONGEST_BYTES);
        let read = limited.read_until(b'\n', &mut self.buffer);
        let length = read.map_err(RecordError::read(&self.path))?;
        if length as u64 == LONGEST_BYTES && self.buffer.last() != Some(&b'\n') {
            self.number += 1;
            return Err(self.corrupt("the line is too long"));
        }
        if self.buffer.pop_if(|byte| *byte == b'\n').is_none() {
            self.torn |= !self.buffer.is_empty();
            return Ok(None);
        }
        self.number += 1;
        self.buffer.extend_from_slice(self.completion.as_bytes());
        if std::str::from_utf8(&self.buffer).is_err() {
            return Err(self.corrupt("the line is not UTF-8"));
        }
        Ok(Some(self.current()))
    }

    /// The current line; empty before the first and after the last.
    pub(crate) fn current(&self) -> &str {
        std::str::from_utf8(&self.buffer).unwrap_or_default()
    }

    /// Appends a text to each of the following lines.
    pub(crate) fn complete_with(&mut self, text: &'static str) {
        self.completion = text;
    }

    /// Whether the last line is truncated.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }

    /// Number of the current line, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// An error in the current line.
    pub(crate) fn corrupt(&self, reason: impl Into<String>) -> RecordError {
        self.corrupt_at(self.number, reason)
    }

    /// An error in an earlier line.
    pub(crate) fn corrupt_at(&self, line: u64, reason: impl Into<String>) -> RecordError {
        RecordError::Corrupt { path: self.path.clone(), line, reason: reason.into() }
    }
}
