//! Reads a trace folder: the document, and the tables in batches, never a whole trace in memory.

use super::document::{TraceCaveat, TraceCaveatKind, TraceDocument};
use super::event::{BlockRequest, CallBatch};
use super::tables::{BlockRows, CallRows, GroupRows};
use super::{BLOCK, CALLS};
use crate::document::Document;
use crate::error::RecordError;
use crate::plain_file;
use crate::statement;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Maximum number of rows per batch.
const BATCH_ROWS: usize = 1 << 15;

/// A recorded trace.
#[derive(Clone, Debug)]
pub struct TraceReader {
    directory: PathBuf,
    document: TraceDocument,
}

impl TraceReader {
    /// Opens a trace folder. A trace that was killed has a caveat.
    pub fn open(directory: &Path) -> Result<TraceReader, RecordError> {
        let mut document = TraceDocument::read(directory)?;
        if !document.complete {
            document.caveats.push(TraceCaveat {
                kind: TraceCaveatKind::Partial,
                statement: statement!("trace-not-ended"),
            });
        }
        Ok(TraceReader { directory: directory.to_owned(), document })
    }

    /// The folder of the trace.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The document.
    pub fn document(&self) -> &TraceDocument {
        &self.document
    }

    /// Batches of calls in the order in which they were written, which is roughly the order of their ends.
    pub fn calls(&self) -> Result<CallBatches, RecordError> {
        Ok(CallBatches(Batches::open(&self.directory, CALLS)?))
    }

    /// Batches of block layer requests in the order in which they were written, which is roughly the order of their
    /// ends.
    pub fn block(&self) -> Result<BlockBatches, RecordError> {
        Ok(BlockBatches(Batches::open(&self.directory, BLOCK)?))
    }
}

/// Batches of a trace's calls. An error ends the iteration.
pub struct CallBatches(Batches<CallRows>);

impl Iterator for CallBatches {
    type Item = Result<CallBatch, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_batch()
    }
}

/// Batches of a trace's block layer requests. An error ends the iteration.
pub struct BlockBatches(Batches<BlockRows>);

impl Iterator for BlockBatches {
    type Item = Result<Vec<BlockRequest>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_batch()
    }
}

/// Rows of a table, by part and row group.
struct Batches<G> {
    /// Remaining parts in reverse order.
    parts: Vec<PathBuf>,
    part: Option<OpenPart<G>>,
}

struct OpenPart<G> {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    next_group: usize,
    rows: Option<G>,
    /// Remaining rows of the group.
    left: usize,
}

impl<G: GroupRows> Batches<G> {
    fn open(directory: &Path, name: &str) -> Result<Self, RecordError> {
        let mut parts = part_files(directory, name)?;
        parts.reverse();
        Ok(Batches { parts, part: None })
    }

    fn next_batch(&mut self) -> Option<Result<G::Batch, RecordError>> {
        loop {
            if self.part.is_none() {
                let path = self.parts.pop()?;
                match OpenPart::open(path) {
                    Ok(part) => self.part = Some(part),
                    Err(error) => return Some(self.stop(error)),
                }
            }
            let part = self.part.as_mut()?;
            match part.next_batch() {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => self.part = None,
                Err(source) => {
                    let error = read_error(&part.path, source);
                    return Some(self.stop(error));
                }
            }
        }
    }

    fn stop<T>(&mut self, error: RecordError) -> Result<T, RecordError> {
        self.parts.clear();
        self.part = None;
        Err(error)
    }
}

impl<G: GroupRows> OpenPart<G> {
    fn open(path: PathBuf) -> Result<Self, RecordError> {
        let file = plain_file::open(&path).map_err(RecordError::read(&path))?;
        let reader = SerializedFileReader::new(file).map_err(|source| read_error(&path, source))?;
        Ok(OpenPart { path, reader, next_group: 0, rows: None, left: 0 })
    }

    fn next_batch(&mut self) -> Result<Option<G::Batch>, ParquetError> {
        while self.left == 0 {
            if self.next_group == self.reader.num_row_groups() {
                return Ok(None);
            }
            let group = self.reader.get_row_group(self.next_group)?;
            self.next_group += 1;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.rows = Some(G::open(group.as_ref())?);
        }
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        let count = self.left.min(BATCH_ROWS);
        self.left -= count;
        rows.read(count).map(Some)
    }
}

/// Closed parts of a table by number, `NAME.parquet` before `NAME-000.parquet`.
fn part_files(directory: &Path, name: &str) -> Result<Vec<PathBuf>, RecordError> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(directory).map_err(RecordError::read(directory))? {
        let path = entry.map_err(RecordError::read(directory))?.path();
        let file_name = path.file_name().and_then(|name| name.to_str());
        let number = file_name.and_then(|file_name| part_number(file_name, name));
        parts.extend(number.map(|number| (number, path)));
    }
    parts.sort();
    Ok(parts.into_iter().map(|(_, path)| path).collect())
}

/// Number of a part from its file name; `None` for other files.
fn part_number(file_name: &str, name: &str) -> Option<Option<u32>> {
    let stem = file_name.strip_suffix(".parquet")?.strip_prefix(name)?;
    if stem.is_empty() {
        return Some(None);
    }
    stem.strip_prefix('-')?.parse().ok().map(Some)
}

fn read_error(path: &Path, source: ParquetError) -> RecordError {
    RecordError::ReadTable { path: path.to_owned(), source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_recognized_by_name() {
        assert_eq!(part_number("calls.parquet", "calls"), Some(None));
        assert_eq!(part_number("calls-012.parquet", "calls"), Some(Some(12)));
        assert_eq!(part_number("calls-1000.parquet", "calls"), Some(Some(1000)));
        for other in
            ["calls-000.parquet.open", "block-000.parquet", "calls-x.parquet", "trace.json"]
        {
            assert_eq!(part_number(other, "calls"), None, "{other}");
        }
    }
}
