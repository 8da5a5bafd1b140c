//! What each message of `dyno tail` did, as tables of whole numbers in Parquet: [`MESSAGES`] has a row for each message
//! that was sent, [`RECEIPTS`] one for each that a consumer had. Instants are nanoseconds of the clock that `tail.json`
//! names. A table is written whole or not at all.

use crate::error::RecordError;
use crate::io_trace::tables::{Column, OpenColumn, put};
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

/// Name of the table of messages, in the folder of a cell.
pub const MESSAGES: &str = "messages.parquet";
/// Its columns: number of the producer, sequence number, intended start, start of the send, and when the insert was
/// answered: 0 without an answer, negative where it failed.
pub const MESSAGE_COLUMNS: [&str; 5] = ["producer", "n", "intended_ns", "send_ns", "answered_ns"];
/// Name of the table of receipts.
pub const RECEIPTS: &str = "receipts.parquet";
/// Its columns: number of the consumer, number of the producer, sequence number, when it was received, and the number of
/// the server's reply that it came in, -1 where the driver does not tell.
pub const RECEIPT_COLUMNS: [&str; 5] = ["consumer", "producer", "n", "received_ns", "reply"];

/// A table as it is in memory: a vector for each column, all of one length.
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
    let fields: String = names
        .iter()
        .map(|name| format!("  REQUIRED INT64 {name};\n"))
        .collect();
    let schema = parse_message_type(&format!("message rows {{\n{fields}}}"))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mongodyno {}", env!("CARGO_PKG_VERSION")));
    for name in names {
        // Numbers and instants mostly grow: differences of neighbours are short.
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
/// [`RecordError::Read`] if it is not there or not such a table.
pub fn read<const N: usize>(path: &Path, names: [&str; N]) -> Result<Columns<N>, RecordError> {
    let read = read_file(path, names).map_err(io::Error::other);
    read.map_err(RecordError::read(path))
}

fn read_file<const N: usize>(path: &Path, names: [&str; N]) -> Result<Columns<N>, ParquetError> {
    let reader = SerializedFileReader::new(plain_file::open(path)?)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let found: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    if found != names {
        return Err(ParquetError::General(format!(
            "its columns are {}, not {}",
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
        assert_eq!(names.len(), 1, "no unfinished file is left");
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
