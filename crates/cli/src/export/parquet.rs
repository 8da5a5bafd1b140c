//! The long table as a Parquet file.

use crate::export::rows::{Row, each};
use dyno_engine::{Error, Kind};
use dyno_record::reader::Run;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

/// Columns and their types; absent phases and instances are nulls.
const SCHEMA: &str = "
message run {
  REQUIRED INT64 time (TIMESTAMP(MICROS,true));
  REQUIRED DOUBLE at_s;
  REQUIRED DOUBLE duration_s;
  OPTIONAL BYTE_ARRAY phase (STRING);
  REQUIRED BYTE_ARRAY source (STRING);
  REQUIRED BYTE_ARRAY metric (STRING);
  OPTIONAL BYTE_ARRAY instance (STRING);
  REQUIRED DOUBLE value;
  REQUIRED BYTE_ARRAY unit (STRING);
}";

/// Rows that are kept in memory until they are written together.
const GROUP_ROWS: usize = 1 << 17;

/// Writes the table.
pub(crate) fn write(run: &Run, output: &mut (dyn Write + Send)) -> Result<(), Error> {
    let schema = parse_message_type(SCHEMA).expect("the schema is a constant that is valid");
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mongodyno {}", env!("CARGO_PKG_VERSION")))
        .build();
    let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties));
    let mut writer = writer.map_err(failure)?;
    let mut group = Group::default();
    each(run, &mut |row| {
        group.add(row);
        if group.value.len() < GROUP_ROWS {
            Ok(())
        } else {
            std::mem::take(&mut group).write(&mut writer)
        }
    })?;
    if !group.value.is_empty() {
        group.write(&mut writer)?;
    }
    writer.close().map(|_| ()).map_err(failure)
}

fn failure(error: ParquetError) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot write the table")
        .with_hint("check the free space")
}

/// Columns of rows that are written together.
#[derive(Default)]
struct Group {
    time: Vec<i64>,
    at_s: Vec<f64>,
    duration_s: Vec<f64>,
    phase: Texts,
    source: Texts,
    metric: Texts,
    instance: Texts,
    value: Vec<f64>,
    unit: Texts,
}

/// A column of texts; those that are absent have the level 0 and no value.
#[derive(Default)]
struct Texts {
    values: Vec<ByteArray>,
    levels: Vec<i16>,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) {
        self.levels.push(i16::from(text.is_some()));
        self.values.extend(text.map(ByteArray::from));
    }
}

impl Group {
    fn add(&mut self, row: &Row<'_>) {
        self.time.push(row.time_us);
        self.at_s.push(row.at_s);
        self.duration_s.push(row.duration_s);
        self.phase.push(row.phase.map(|phase| phase.as_str()));
        self.source.push(Some(row.source));
        self.metric.push(Some(row.metric));
        self.instance.push(row.instance);
        self.value.push(row.value);
        self.unit.push(Some(row.unit()));
    }

    /// In the order of the schema.
    fn write<W: Write + Send>(self, writer: &mut SerializedFileWriter<W>) -> Result<(), Error> {
        let mut write = || -> Result<(), ParquetError> {
            let mut group = writer.next_row_group()?;
            column::<Int64Type, _>(&mut group, &self.time, None)?;
            column::<DoubleType, _>(&mut group, &self.at_s, None)?;
            column::<DoubleType, _>(&mut group, &self.duration_s, None)?;
            texts(&mut group, &self.phase, true)?;
            texts(&mut group, &self.source, false)?;
            texts(&mut group, &self.metric, false)?;
            texts(&mut group, &self.instance, true)?;
            column::<DoubleType, _>(&mut group, &self.value, None)?;
            texts(&mut group, &self.unit, false)?;
            group.close().map(|_| ())
        };
        write().map_err(failure)
    }
}

fn texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column_of: &Texts,
    is_optional: bool,
) -> Result<(), ParquetError> {
    let levels = is_optional.then_some(column_of.levels.as_slice());
    column::<ByteArrayType, _>(group, &column_of.values, levels)
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
