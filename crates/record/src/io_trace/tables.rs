//! Columns of the trace tables, to and from Parquet.

use super::document::FileEntry;
use super::event::{BlockOperation, BlockRequest, Call, CallBatch, Operation};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Writes a row group of a table.
pub(super) type GroupWriter<'a, W> = SerializedRowGroupWriter<'a, W>;

/// Columns with values that rarely repeat: dictionaries cost time and save nothing.
const WITHOUT_DICTIONARY: [&str; 7] =
    ["start_ns", "latency_ns", "offset_bytes", "issue_ns", "queue_ns", "device_ns", "sector"];
/// Columns of these with ascending values: differences between neighbours are short.
const BY_DIFFERENCES: [&str; 2] = ["start_ns", "issue_ns"];

/// Properties of the Parquet writer.
pub(super) fn properties() -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("mongodyno {}", env!("CARGO_PKG_VERSION")));
    for column in WITHOUT_DICTIONARY {
        builder = builder.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    for column in BY_DIFFERENCES {
        let path = ColumnPath::from(column);
        builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(builder.build())
}

/// Rows of a table that are to be written.
pub(super) trait Table: Default + Send {
    /// Type of a row.
    type Row;

    /// Parquet schema.
    fn schema() -> TypePtr;

    /// Appends a row.
    fn push(&mut self, row: &Self::Row);

    /// Number of rows.
    fn len(&self) -> usize;

    /// Removes all rows.
    fn clear(&mut self);

    /// Writes all rows as one row group, in the order of the schema.
    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError>;
}

/// Values of a column that are to be written.
trait Values: Default + Send {
    /// Type of a row's value.
    type Value;

    /// Line of the schema.
    fn declaration(name: &str) -> String;

    fn push(&mut self, value: Self::Value);

    fn clear(&mut self);

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError>;
}

/// Representation of a value in a file.
trait Stored: Send + Sized {
    type Type: DataType<T = Self>;
    const TYPE: &'static str;
    const ANNOTATION: &'static str = "";
}

impl Stored for i32 {
    type Type = Int32Type;
    const TYPE: &'static str = "INT32";
}

impl Stored for i64 {
    type Type = Int64Type;
    const TYPE: &'static str = "INT64";
}

impl Stored for bool {
    type Type = BoolType;
    const TYPE: &'static str = "BOOLEAN";
}

impl Stored for ByteArray {
    type Type = ByteArrayType;
    const TYPE: &'static str = "BYTE_ARRAY";
    const ANNOTATION: &'static str = " (STRING)";
}

impl<T: Stored> Values for Vec<T> {
    type Value = T;

    fn declaration(name: &str) -> String {
        format!("REQUIRED {} {name}{};", T::TYPE, T::ANNOTATION)
    }

    fn push(&mut self, value: T) {
        self.push(value);
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError> {
        put::<T::Type, W>(group, self, None)
    }
}

/// A column with gaps: a value is present where the level is 1.
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Optional { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T: Stored> Values for Optional<T> {
    type Value = Option<T>;

    fn declaration(name: &str) -> String {
        format!("OPTIONAL {} {name}{};", T::TYPE, T::ANNOTATION)
    }

    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError> {
        put::<T::Type, W>(group, &self.values, Some(&self.levels))
    }
}

/// Defines a table by its columns: name, values, and the value of row `$row` with the number `$number`.
macro_rules! table {
    ($name:ident, $message:literal, |$row:ident: $Row:ty, $number:ident| {
        $($column:ident: $values:ty = $value:expr,)*
    }) => {
        #[derive(Default)]
        pub(super) struct $name {
            rows: usize,
            $($column: $values,)*
        }

        impl Table for $name {
            type Row = $Row;

            fn schema() -> TypePtr {
                let columns = [$(<$values as Values>::declaration(stringify!($column)),)*];
                let text = format!("message {} {{ {} }}", $message, columns.concat());
                Arc::new(parse_message_type(&text).expect("the schema is valid"))
            }

            fn push(&mut self, $row: &$Row) {
                let $number = self.rows;
                $(Values::push(&mut self.$column, $value);)*
                self.rows = $number + 1;
            }

            fn len(&self) -> usize {
                self.rows
            }

            fn clear(&mut self) {
                self.rows = 0;
                $(Values::clear(&mut self.$column);)*
            }

            fn write<W: Write + Send>(
                &self,
                group: &mut GroupWriter<'_, W>,
            ) -> Result<(), ParquetError> {
                $(Values::write(&self.$column, group)?;)*
                Ok(())
            }
        }
    };
}

table!(Calls, "calls", |call: Call, _number| {
    start_ns: Vec<i64> = call.start_ns,
    latency_ns: Vec<i64> = signed(call.latency_ns),
    offset_bytes: Vec<i64> = call.offset,
    requested_bytes: Vec<i64> = signed(call.requested),
    returned_bytes: Vec<i64> = call.returned,
    file: Vec<i32> = call.file as i32,
    process: Vec<i32> = call.process as i32,
    thread: Vec<i32> = call.thread as i32,
    operation: Vec<ByteArray> = text(call.operation.as_str()),
    fetched_bytes: Vec<i64> = call.fetched,
});

table!(Blocks, "block", |request: BlockRequest, _number| {
    issue_ns: Vec<i64> = request.issue_ns,
    queue_ns: Vec<i64> = signed(request.queue_ns),
    device_ns: Vec<i64> = signed(request.device_ns),
    sector: Vec<i64> = signed(request.sector),
    size_bytes: Vec<i64> = i64::from(request.bytes),
    device: Vec<i32> = request.device as i32,
    process: Vec<i32> = request.process as i32,
    operation: Vec<ByteArray> = text(request.operation.as_str()),
});

table!(Files, "files", |entry: FileEntry, number| {
    file: Vec<i32> = number as i32,
    name: Vec<ByteArray> = text(&entry.name),
    device_major: Vec<i32> = entry.device_major as i32,
    device_minor: Vec<i32> = entry.device_minor as i32,
    inode: Vec<i64> = signed(entry.inode),
    size_bytes: Optional<i64> = entry.bytes.map(signed),
    deleted: Vec<bool> = entry.deleted,
    kind: Optional<ByteArray> = entry.role.as_ref().map(|role| text(role.kind.as_str())),
    namespace: Optional<ByteArray> = entry.role.as_ref().and_then(|role| role.namespace.as_deref()).map(text),
    index: Optional<ByteArray> = entry.role.as_ref().and_then(|role| role.index.as_deref()).map(text),
});

/// Tables have only signed numbers, because every reader supports them; no file or time comes near the end of their
/// range.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

/// Writes the next column of a row group; an absent value has level 0.
///
/// # Errors
/// [`ParquetError`] if the values cannot be written, or have another type than the column.
pub fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// A column that is read in pieces.
pub(crate) struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

/// How a column of a row group is opened.
pub(crate) trait OpenColumn: Sized {
    fn open(group: &dyn RowGroupReader, number: usize, name: &str) -> Result<Self, ParquetError>;
}

impl<T: DataType> OpenColumn for Column<T> {
    fn open(group: &dyn RowGroupReader, number: usize, name: &str) -> Result<Self, ParquetError> {
        let columns = group.metadata().columns();
        let found = columns.get(number).map(|column| column.column_descr());
        match found {
            Some(found) if found.name() == name => {
                let typed = found.physical_type() == T::get_physical_type();
                if typed && found.max_def_level() == 0 {
                    let reader = get_typed_column_reader(group.get_column_reader(number)?);
                    let values = Vec::new();
                    return Ok(Column { reader, values });
                }
                Err(ParquetError::General(format!("column `{name}` has an unexpected type")))
            }
            _ => Err(ParquetError::General(format!("column {number} is not `{name}`"))),
        }
    }
}

/// Absent in tables that were written before the column existed.
impl<T: DataType> OpenColumn for Option<Column<T>> {
    fn open(group: &dyn RowGroupReader, number: usize, name: &str) -> Result<Self, ParquetError> {
        if number >= group.metadata().num_columns() {
            return Ok(None);
        }
        Column::open(group, number, name).map(Some)
    }
}

impl<T: DataType> Column<T> {
    /// The next `rows` values.
    pub(crate) fn read(&mut self, rows: usize) -> Result<&[T::T], ParquetError> {
        self.values.clear();
        while self.values.len() < rows {
            let missing = rows - self.values.len();
            let read = self.reader.read_records(missing, None, None, &mut self.values)?;
            if read.0 == 0 {
                return Err(ParquetError::EOF("a column is too short".to_owned()));
            }
        }
        Ok(&self.values)
    }
}

/// Rows of a row group that are read.
pub(super) trait GroupRows: Sized {
    /// Type of a batch of rows.
    type Batch;

    /// Opens the columns of a row group.
    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError>;

    /// The next `rows` rows.
    fn read(&mut self, rows: usize) -> Result<Self::Batch, ParquetError>;
}

/// Defines the rows of a row group by its columns.
macro_rules! rows {
    ($name:ident { $($column:ident: $values:ty,)* }) => {
        pub(super) struct $name {
            $($column: $values,)*
        }

        impl $name {
            fn columns(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
                let mut number = 0..;
                let mut next = || number.next().unwrap_or_default();
                Ok($name {
                    $($column: OpenColumn::open(group, next(), stringify!($column))?,)*
                })
            }
        }
    };
}

rows!(CallRows {
    start_ns: Column<Int64Type>,
    latency_ns: Column<Int64Type>,
    offset_bytes: Column<Int64Type>,
    requested_bytes: Column<Int64Type>,
    returned_bytes: Column<Int64Type>,
    file: Column<Int32Type>,
    process: Column<Int32Type>,
    thread: Column<Int32Type>,
    operation: Column<ByteArrayType>,
    fetched_bytes: Option<Column<Int64Type>>,
});

rows!(BlockRows {
    issue_ns: Column<Int64Type>,
    queue_ns: Column<Int64Type>,
    device_ns: Column<Int64Type>,
    sector: Column<Int64Type>,
    size_bytes: Column<Int64Type>,
    device: Column<Int32Type>,
    process: Column<Int32Type>,
    operation: Column<ByteArrayType>,
});

impl GroupRows for CallRows {
    type Batch = CallBatch;

    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
        CallRows::columns(group)
    }

    fn read(&mut self, rows: usize) -> Result<CallBatch, ParquetError> {
        let operations = self.operation.read(rows)?.iter();
        Ok(CallBatch {
            start_ns: self.start_ns.read(rows)?.to_vec(),
            latency_ns: all(self.latency_ns.read(rows)?, unsigned),
            offset: self.offset_bytes.read(rows)?.to_vec(),
            requested: all(self.requested_bytes.read(rows)?, unsigned),
            returned: self.returned_bytes.read(rows)?.to_vec(),
            file: all(self.file.read(rows)?, |number| number as u32),
            process: all(self.process.read(rows)?, |number| number as u32),
            thread: all(self.thread.read(rows)?, |number| number as u32),
            operation: operations
                .map(|name| named(name, Operation::from_name))
                .collect::<Result<_, _>>()?,
            fetched: match &mut self.fetched_bytes {
                Some(column) => column.read(rows)?.to_vec(),
                None => vec![-1; rows],
            },
        })
    }
}

impl GroupRows for BlockRows {
    type Batch = Vec<BlockRequest>;

    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
        BlockRows::columns(group)
    }

    fn read(&mut self, rows: usize) -> Result<Vec<BlockRequest>, ParquetError> {
        let issue_ns = self.issue_ns.read(rows)?;
        let queue_ns = self.queue_ns.read(rows)?;
        let device_ns = self.device_ns.read(rows)?;
        let sector = self.sector.read(rows)?;
        let bytes = self.size_bytes.read(rows)?;
        let device = self.device.read(rows)?;
        let process = self.process.read(rows)?;
        let operation = self.operation.read(rows)?;
        (0..rows)
            .map(|row| {
                Ok(BlockRequest {
                    issue_ns: issue_ns[row],
                    queue_ns: unsigned(queue_ns[row]),
                    device_ns: unsigned(device_ns[row]),
                    sector: unsigned(sector[row]),
                    bytes: u32::try_from(bytes[row]).unwrap_or(u32::MAX),
                    device: device[row] as u32,
                    process: process[row] as u32,
                    operation: named(&operation[row], BlockOperation::from_name)?,
                })
            })
            .collect()
    }
}

fn all<A: Copy, B>(values: &[A], convert: impl Fn(A) -> B) -> Vec<B> {
    values.iter().map(|&value| convert(value)).collect()
}

/// The variant with this name.
fn named<T>(name: &ByteArray, from_name: fn(&str) -> Option<T>) -> Result<T, ParquetError> {
    let name = String::from_utf8_lossy(name.data());
    from_name(&name).ok_or_else(|| ParquetError::General(format!("unknown operation `{name}`")))
}
