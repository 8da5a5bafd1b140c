//! Tables of the messages of `dyno tail`, as integers in Parquet: [`MESSAGES`] has a row for each message sent,
//! [`RECEIPTS`] a row for each message that a consumer received. Times are nanoseconds of the clock that `tail.json`
//! names. A table is written atomically.

use crate::error::RecordError;
use crate::io_trace::put;
use crate::io_trace::tables::{Column, OpenColumn};
use crate::plain_file;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Name of the messages table, in the folder of a cell.
pub const MESSAGES: &str = "messages.parquet";
/// Columns: number of the producer, sequence number, intended start, send start, and time of the answer to the insert:
/// 0 without an answer, negative if the insert failed.
pub const MESSAGE_COLUMNS: [&str; 5] = ["producer", "n", "intended_ns", "send_ns", "answered_ns"];
/// Name of the receipts table.
pub const RECEIPTS: &str = "receipts.parquet";
/// Columns: number of the consumer, number of the producer, sequence number, time of the receipt, and number of the
/// server reply that delivered the message, -1 if the driver does not report it.
pub const RECEIPT_COLUMNS: [&str; 5] = ["consumer", "producer", "n", "received_ns", "reply"];

/// A table in memory: one vector per column, all of the same length.
pub type Columns<const N: usize> = [Vec<i64>; N];

/// Writes a table.
///
/// # Errors
/// [`RecordError::Write`].
pub fn write<const N: usize>(
    path: &Path,
    names: [&str; N],
    columns: &Columns<N>,
) -> Result<(), RecordError> {
    let unfinished = path.with_extension("parquet.open");
    let written = write_file(&unfinished, names, columns)
        .map_err(io::Error::other)
        .and_then(|()| fs::rename(&unfinished, path));
    written.map_err(RecordError::write(path))
}

fn write_file<const N: usize>(
    path: &Path,
    names: [&str; N],
    columns: &Columns<N>,
) -> Result<(), ParquetError> {
    let fields: String = names.iter().map(|name| format!("  REQUIRED INT64 {name};\n")).collect();
    let schema = parse_message_type(&format!("message rows {{\n{fields}}}"))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mongodyno {}", env!("CARGO_PKG_VERSION")));
    for name in names {
        // Numbers and times mostly ascend: differences between neighbours are short.
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let file = BufWriter::new(File::create_new(path)?);
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    for values in columns {
        put::<Int64Type, _>(&mut group, values, None)?;
    }
    group.close()?;
    writer.into_inner()?.flush()?;
    Ok(())
}

/// Reads a table.
///
/// # Errors
/// [`RecordError::Read`] if the file is missing or is not such a table.
pub fn read<const N: usize>(path: &Path, names: [&str; N]) -> Result<Columns<N>, RecordError> {
    let read = read_file(path, names).map_err(io::Error::other);
    read.map_err(RecordError::read(path))
}

fn read_file<const N: usize>(path: &Path, names: [&str; N]) -> Result<Columns<N>, ParquetError> {
    let reader = SerializedFileReader::new(plain_file::open(path)?)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let found: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    if found != names {
        return Err(ParquetError::General(format!(
            "found the columns {}, expected {}",
            found.join(", "),
            names.join(", ")
        )));
    }
    let mut columns: Columns<N> = std::array::from_fn(|_| Vec::new());
    for place in 0..reader.num_row_groups() {
        let group = reader.get_row_group(place)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        for (number, (values, name)) in columns.iter_mut().zip(names).enumerate() {
            let mut column = Column::<Int64Type>::open(group.as_ref(), number, name)?;
            values.extend_from_slice(column.read(rows)?);
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RECEIPTS);
        let columns: Columns<5> =
            std::array::from_fn(|column| (0..10_000).map(|row| row * 7 - column as i64).collect());
        write(&path, RECEIPT_COLUMNS, &columns).unwrap();
        assert_eq!(read(&path, RECEIPT_COLUMNS).unwrap(), columns);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary file remains");
        write(&path, RECEIPT_COLUMNS, &std::array::from_fn(|_| Vec::new())).unwrap();
        assert!(read(&path, RECEIPT_COLUMNS).unwrap()[0].is_empty());
    }

    #[test]
    fn another_table_or_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MESSAGES);
        assert!(read(&path, MESSAGE_COLUMNS).is_err());
        write(&path, MESSAGE_COLUMNS, &std::array::from_fn(|_| vec![1])).unwrap();
        assert!(read(&path, RECEIPT_COLUMNS).is_err());
        fs::write(&path, "no table").unwrap();
        assert!(read(&path, MESSAGE_COLUMNS).is_err());
    }
}
