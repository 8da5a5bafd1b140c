//! Writes a trace folder during the trace. Tables are split into parts that are closed at a number of rows or an age. A
//! part gets its name when it is complete, so that closed parts can be read if the process is killed.

use super::document::{FileEntry, TraceDocument};
use super::event::{BlockRequest, Call};
use super::tables::{Blocks, Calls, Files, Table, properties};
use super::{BLOCK, CALLS, DOCUMENT, FILES};
use crate::document::Document;
use crate::error::RecordError;
use crate::sums;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rows that are buffered and written together: 4 MB of calls. A reader holds this many rows of a column in memory.
const GROUP_ROWS: usize = 1 << 16;
/// Maximum number of rows per part.
const PART_ROWS: usize = 1 << 20;
/// Maximum age of an open part, which is lost if the trace is killed.
const PART_AGE: Duration = Duration::from_secs(10);
/// File name suffix of open parts.
const OPEN: &str = ".open";

/// When parts are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartLimits {
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum age; checked when rows arrive.
    pub age: Duration,
}

impl Default for PartLimits {
    fn default() -> PartLimits {
        PartLimits { rows: PART_ROWS, age: PART_AGE }
    }
}

/// Writes one trace folder.
pub struct TraceWriter {
    directory: PathBuf,
    calls: PartedTable<Calls>,
    blocks: PartedTable<Blocks>,
}

impl TraceWriter {
    /// Creates the folder with the initial document. An existing folder is used unless it has a trace.
    pub fn create(
        directory: &Path,
        document: &TraceDocument,
        limits: PartLimits,
    ) -> Result<TraceWriter, RecordError> {
        if directory.join(DOCUMENT).symlink_metadata().is_ok() {
            return Err(RecordError::HoldsTrace { directory: directory.to_owned() });
        }
        fs::create_dir_all(directory).map_err(RecordError::create(directory))?;
        document.write(directory)?;
        Ok(TraceWriter {
            directory: directory.to_owned(),
            calls: PartedTable::new(directory, CALLS, limits),
            blocks: PartedTable::new(directory, BLOCK, limits),
        })
    }

    /// The folder of the trace.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Number of calls so far.
    pub fn call_count(&self) -> u64 {
        self.calls.rows
    }

    /// Number of block layer requests so far.
    pub fn block_count(&self) -> u64 {
        self.blocks.rows
    }

    /// Appends calls in reading order. Even an empty slice closes a part that has reached its maximum age.
    pub fn calls(&mut self, calls: &[Call]) -> Result<(), RecordError> {
        self.calls.append(calls)
    }

    /// Appends block layer requests in reading order.
    pub fn block(&mut self, requests: &[BlockRequest]) -> Result<(), RecordError> {
        self.blocks.append(requests)
    }

    /// Replaces the document atomically.
    pub fn set_document(&mut self, document: &TraceDocument) -> Result<(), RecordError> {
        document.write(&self.directory)
    }

    /// Closes the tables, and writes the table of the files, the document with the actual numbers of rows, and the
    /// checksums. The document is always written; the first error is returned.
    pub fn finish(mut self, mut document: TraceDocument) -> Result<TraceDocument, RecordError> {
        let closed = self.calls.close().and(self.blocks.close());
        let closed = closed.and(write_files(&self.directory, &document.files));
        if document.mode == super::document::TraceMode::Events {
            document.calls = self.calls.rows;
        }
        document.block_requests = self.blocks.rows;
        document.complete = closed.is_ok();
        closed.and(document.write(&self.directory))?;
        sums::write(&self.directory);
        Ok(document)
    }
}

/// A table in several files.
struct PartedTable<T: Table> {
    directory: PathBuf,
    name: &'static str,
    limits: PartLimits,
    pending: T,
    part: Option<Part>,
    next_number: u32,
    rows: u64,
}

/// The open part.
struct Part {
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
    rows: usize,
    opened: Instant,
}

impl<T: Table> PartedTable<T> {
    fn new(directory: &Path, name: &'static str, limits: PartLimits) -> PartedTable<T> {
        PartedTable {
            directory: directory.to_owned(),
            name,
            limits,
            pending: T::default(),
            part: None,
            next_number: 0,
            rows: 0,
        }
    }

    fn append(&mut self, rows: &[T::Row]) -> Result<(), RecordError> {
        for row in rows {
            if self.part.is_none() {
                self.part = Some(self.open()?);
            }
            self.pending.push(row);
            self.rows += 1;
            let in_part = self.part.as_ref().map_or(0, |part| part.rows) + self.pending.len();
            if in_part >= self.limits.rows {
                self.close()?;
            } else if self.pending.len() >= GROUP_ROWS {
                self.write_group()?;
            }
        }
        let age = self.part.as_ref().map(|part| part.opened.elapsed());
        match age {
            Some(age) if age >= self.limits.age => self.close(),
            _ => Ok(()),
        }
    }

    fn open(&mut self) -> Result<Part, RecordError> {
        let number = self.next_number;
        self.next_number += 1;
        let path = self.directory.join(format!("{}-{number:03}.parquet", self.name));
        let writer = open_table::<T>(&open_name(&path))?;
        Ok(Part { path, writer, rows: 0, opened: Instant::now() })
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        let Some(part) = self.part.as_mut().filter(|_| self.pending.len() > 0) else {
            return Ok(());
        };
        part.rows += self.pending.len();
        let written = group(&mut part.writer, &self.pending);
        self.pending.clear();
        written.map_err(|source| table_error(&part.path, source))
    }

    /// Closes the open part, if any, and renames it.
    fn close(&mut self) -> Result<(), RecordError> {
        let written = self.write_group();
        let Some(part) = self.part.take() else {
            return written;
        };
        close_table(part.writer, &part.path).and(written)?;
        fs::rename(open_name(&part.path), &part.path).map_err(RecordError::write(&part.path))
    }
}

/// Name of an open part.
fn open_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OPEN);
    PathBuf::from(name)
}

fn open_table<T: Table>(path: &Path) -> Result<SerializedFileWriter<BufWriter<File>>, RecordError> {
    let file = File::create_new(path).map_err(RecordError::create(path))?;
    SerializedFileWriter::new(BufWriter::new(file), T::schema(), properties())
        .map_err(|source| table_error(path, source))
}

fn group<T: Table>(
    writer: &mut SerializedFileWriter<BufWriter<File>>,
    rows: &T,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    rows.write(&mut group)?;
    group.close().map(|_| ())
}

/// Writes the end of a table and passes it to the kernel.
fn close_table(
    writer: SerializedFileWriter<BufWriter<File>>,
    path: &Path,
) -> Result<(), RecordError> {
    let mut output = writer.into_inner().map_err(|source| table_error(path, source))?;
    output.flush().map_err(RecordError::write(path))
}

fn write_files(directory: &Path, files: &[FileEntry]) -> Result<(), RecordError> {
    let path = directory.join(FILES);
    let mut table = Files::default();
    files.iter().for_each(|file| table.push(file));
    let mut writer = open_table::<Files>(&path)?;
    if !files.is_empty() {
        group(&mut writer, &table).map_err(|source| table_error(&path, source))?;
    }
    close_table(writer, &path)
}

fn table_error(path: &Path, source: ParquetError) -> RecordError {
    RecordError::WriteTable { path: path.to_owned(), source: Box::new(source) }
}
