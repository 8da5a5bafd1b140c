//! Writes a table as a Parquet file.

use crate::export::table::{Cell, Column, Fill, Kind, Table};
use dyno_engine::Error;
use dyno_record::io_trace::put;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// Rows per row group, which are buffered in memory.
const GROUP_ROWS: usize = 1 << 17;

/// Writes a table; absent cells become nulls.
pub(crate) fn write(
    columns: &[Column],
    fill: &Fill<'_>,
    output: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let schema = schema(columns).map_err(failure)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mongodyno {}", env!("CARGO_PKG_VERSION")))
        .build();
    let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties));
    let mut groups =
        Groups { columns, values: values(columns), rows: 0, writer: writer.map_err(failure)? };
    fill(&mut groups)?;
    if groups.rows > 0 {
        groups.write().map_err(failure)?;
    }
    groups.writer.close().map(|_| ()).map_err(failure)
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Kind::Seconds | Kind::Number => (Physical::DOUBLE, None),
            Kind::Integer => (Physical::INT64, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match column.is_optional {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_converted_type(ConvertedType::NONE)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    Type::group_type_builder("rows").with_fields(fields?).build()
}

fn failure(error: ParquetError) -> Error {
    Error::from_cause(dyno_engine::Kind::Environment, error)
        .context("cannot write the table")
        .with_hint("check the free space")
}

/// Values of a column in a row group, all of its kind. Absent values have level 0 and no value.
#[derive(Default)]
struct Values {
    integers: Vec<i64>,
    numbers: Vec<f64>,
    texts: Vec<ByteArray>,
    levels: Vec<i16>,
}

fn values(columns: &[Column]) -> Vec<Values> {
    columns.iter().map(|_| Values::default()).collect()
}

struct Groups<'a, W: Write + Send> {
    columns: &'a [Column],
    values: Vec<Values>,
    rows: usize,
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> Table for Groups<'_, W> {
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        debug_assert_eq!(cells.len(), self.columns.len());
        for (values, cell) in self.values.iter_mut().zip(cells) {
            values.levels.push(i16::from(*cell != Cell::Absent));
            match cell {
                Cell::Absent => {}
                Cell::Time(one) | Cell::Integer(one) => values.integers.push(*one),
                Cell::Seconds(one) | Cell::Number(one) => values.numbers.push(*one),
                Cell::Text(one) => values.texts.push(ByteArray::from(*one)),
            }
        }
        self.rows += 1;
        if self.rows < GROUP_ROWS {
            return Ok(());
        }
        self.write().map_err(failure)
    }
}

impl<W: Write + Send> Groups<'_, W> {
    fn write(&mut self) -> Result<(), ParquetError> {
        let all = std::mem::replace(&mut self.values, values(self.columns));
        let mut group = self.writer.next_row_group()?;
        for (column, values) in self.columns.iter().zip(&all) {
            let levels = column.is_optional.then_some(values.levels.as_slice());
            match column.kind {
                Kind::Time | Kind::Integer => {
                    put::<Int64Type, _>(&mut group, &values.integers, levels)?;
                }
                Kind::Seconds | Kind::Number => {
                    put::<DoubleType, _>(&mut group, &values.numbers, levels)?;
                }
                Kind::Text => put::<ByteArrayType, _>(&mut group, &values.texts, levels)?,
            }
        }
        self.rows = 0;
        group.close().map(|_| ())
    }
}
