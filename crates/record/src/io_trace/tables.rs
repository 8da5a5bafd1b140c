//! Columns of the tables of a trace, to and from Parquet.

use super::document::{FileEntry, FileKind};
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

/// Writes into a part of a table.
pub(super) type GroupWriter<'a, W> = SerializedRowGroupWriter<'a, W>;

/// Columns whose values hardly repeat: dictionaries of them cost time and save nothing.
const WITHOUT_DICTIONARY: [&str; 7] = [
    "start_ns",
    "latency_ns",
    "offset_bytes",
    "issue_ns",
    "queue_ns",
    "device_ns",
    "sector",
];
/// Of these, the ones that grow: differences of neighbours are short.
const BY_DIFFERENCES: [&str; 2] = ["start_ns", "issue_ns"];

/// How a table is written.
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

/// Rows of a table on their way to a file.
pub(super) trait Table: Default + Send {
    /// Columns and their types.
    const SCHEMA: &'static str;
    /// What is one row.
    type Row;

    /// Appends a row.
    fn push(&mut self, row: &Self::Row);

    /// Number of rows.
    fn len(&self) -> usize;

    /// Removes all rows.
    fn clear(&mut self);

    /// Writes all rows as one group, in the order of the schema.
    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError>;

    /// The schema in the form of the library.
    fn schema() -> TypePtr {
        Arc::new(parse_message_type(Self::SCHEMA).expect("the schema is a constant that is valid"))
    }
}

/// Calls.
#[derive(Default)]
pub(super) struct Calls {
    start_ns: Vec<i64>,
    latency_ns: Vec<i64>,
    offset: Vec<i64>,
    requested: Vec<i64>,
    returned: Vec<i64>,
    file: Vec<i32>,
    process: Vec<i32>,
    thread: Vec<i32>,
    operation: Vec<ByteArray>,
    fetched: Vec<i64>,
}

impl Table for Calls {
    const SCHEMA: &'static str = "
message calls {
  REQUIRED INT64 start_ns;
  REQUIRED INT64 latency_ns;
  REQUIRED INT64 offset_bytes;
  REQUIRED INT64 requested_bytes;
  REQUIRED INT64 returned_bytes;
  REQUIRED INT32 file;
  REQUIRED INT32 process;
  REQUIRED INT32 thread;
  REQUIRED BYTE_ARRAY operation (STRING);
  REQUIRED INT64 fetched_bytes;
}";
    type Row = Call;

    fn push(&mut self, call: &Call) {
        self.start_ns.push(call.start_ns);
        self.latency_ns.push(signed(call.latency_ns));
        self.offset.push(call.offset);
        self.requested.push(signed(call.requested));
        self.returned.push(call.returned);
        self.file.push(call.file as i32);
        self.process.push(call.process as i32);
        self.thread.push(call.thread as i32);
        self.operation.push(text(call.operation.as_str()));
        self.fetched.push(call.fetched);
    }

    fn len(&self) -> usize {
        self.start_ns.len()
    }

    fn clear(&mut self) {
        self.start_ns.clear();
        self.latency_ns.clear();
        self.offset.clear();
        self.requested.clear();
        self.returned.clear();
        self.file.clear();
        self.process.clear();
        self.thread.clear();
        self.operation.clear();
        self.fetched.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError> {
        put::<Int64Type, _>(group, &self.start_ns, None)?;
        put::<Int64Type, _>(group, &self.latency_ns, None)?;
        put::<Int64Type, _>(group, &self.offset, None)?;
        put::<Int64Type, _>(group, &self.requested, None)?;
        put::<Int64Type, _>(group, &self.returned, None)?;
        put::<Int32Type, _>(group, &self.file, None)?;
        put::<Int32Type, _>(group, &self.process, None)?;
        put::<Int32Type, _>(group, &self.thread, None)?;
        put::<ByteArrayType, _>(group, &self.operation, None)?;
        put::<Int64Type, _>(group, &self.fetched, None)
    }
}

/// Requests of the block layer.
#[derive(Default)]
pub(super) struct Blocks {
    issue_ns: Vec<i64>,
    queue_ns: Vec<i64>,
    device_ns: Vec<i64>,
    sector: Vec<i64>,
    bytes: Vec<i64>,
    device: Vec<i32>,
    process: Vec<i32>,
    operation: Vec<ByteArray>,
}

impl Table for Blocks {
    const SCHEMA: &'static str = "
message block {
  REQUIRED INT64 issue_ns;
  REQUIRED INT64 queue_ns;
  REQUIRED INT64 device_ns;
  REQUIRED INT64 sector;
  REQUIRED INT64 size_bytes;
  REQUIRED INT32 device;
  REQUIRED INT32 process;
  REQUIRED BYTE_ARRAY operation (STRING);
}";
    type Row = BlockRequest;

    fn push(&mut self, request: &BlockRequest) {
        self.issue_ns.push(request.issue_ns);
        self.queue_ns.push(signed(request.queue_ns));
        self.device_ns.push(signed(request.device_ns));
        self.sector.push(signed(request.sector));
        self.bytes.push(i64::from(request.bytes));
        self.device.push(request.device as i32);
        self.process.push(request.process as i32);
        self.operation.push(text(request.operation.as_str()));
    }

    fn len(&self) -> usize {
        self.issue_ns.len()
    }

    fn clear(&mut self) {
        self.issue_ns.clear();
        self.queue_ns.clear();
        self.device_ns.clear();
        self.sector.clear();
        self.bytes.clear();
        self.device.clear();
        self.process.clear();
        self.operation.clear();
    }

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError> {
        put::<Int64Type, _>(group, &self.issue_ns, None)?;
        put::<Int64Type, _>(group, &self.queue_ns, None)?;
        put::<Int64Type, _>(group, &self.device_ns, None)?;
        put::<Int64Type, _>(group, &self.sector, None)?;
        put::<Int64Type, _>(group, &self.bytes, None)?;
        put::<Int32Type, _>(group, &self.device, None)?;
        put::<Int32Type, _>(group, &self.process, None)?;
        put::<ByteArrayType, _>(group, &self.operation, None)
    }
}

/// The files, with their numbers.
#[derive(Default)]
pub(super) struct Files {
    number: Vec<i32>,
    name: Vec<ByteArray>,
    device_major: Vec<i32>,
    device_minor: Vec<i32>,
    inode: Vec<i64>,
    bytes: Optional<i64>,
    deleted: Vec<bool>,
    kind: Optional<ByteArray>,
    namespace: Optional<ByteArray>,
    index: Optional<ByteArray>,
}

/// A column with gaps: a value is there where the level is 1.
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Optional {
            values: Vec::new(),
            levels: Vec::new(),
        }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

impl Table for Files {
    const SCHEMA: &'static str = "
message files {
  REQUIRED INT32 file;
  REQUIRED BYTE_ARRAY name (STRING);
  REQUIRED INT32 device_major;
  REQUIRED INT32 device_minor;
  REQUIRED INT64 inode;
  OPTIONAL INT64 size_bytes;
  REQUIRED BOOLEAN deleted;
  OPTIONAL BYTE_ARRAY kind (STRING);
  OPTIONAL BYTE_ARRAY namespace (STRING);
  OPTIONAL BYTE_ARRAY index (STRING);
}";
    type Row = FileEntry;

    fn push(&mut self, file: &FileEntry) {
        let role = file.role.as_ref();
        self.number.push(self.number.len() as i32);
        self.name.push(text(&file.name));
        self.device_major.push(file.device_major as i32);
        self.device_minor.push(file.device_minor as i32);
        self.inode.push(signed(file.inode));
        self.bytes.push(file.bytes.map(signed));
        self.deleted.push(file.deleted);
        self.kind.push(role.map(|role| text(kind(role.kind))));
        let namespace = role.and_then(|role| role.namespace.as_deref());
        self.namespace.push(namespace.map(text));
        let index = role.and_then(|role| role.index.as_deref());
        self.index.push(index.map(text));
    }

    fn len(&self) -> usize {
        self.number.len()
    }

    fn clear(&mut self) {
        *self = Files::default();
    }

    fn write<W: Write + Send>(&self, group: &mut GroupWriter<'_, W>) -> Result<(), ParquetError> {
        put::<Int32Type, _>(group, &self.number, None)?;
        put::<ByteArrayType, _>(group, &self.name, None)?;
        put::<Int32Type, _>(group, &self.device_major, None)?;
        put::<Int32Type, _>(group, &self.device_minor, None)?;
        put::<Int64Type, _>(group, &self.inode, None)?;
        put::<Int64Type, _>(group, &self.bytes.values, Some(&self.bytes.levels))?;
        put::<BoolType, _>(group, &self.deleted, None)?;
        for column in [&self.kind, &self.namespace, &self.index] {
            put::<ByteArrayType, _>(group, &column.values, Some(&column.levels))?;
        }
        Ok(())
    }
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Collection => "collection",
        FileKind::Index => "index",
        FileKind::Journal => "journal",
        FileKind::Other => "other",
    }
}

/// Tables have signed numbers only, which every reader understands; no file or time comes near the
/// end of their range.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

fn put<T: DataType, W: Write + Send>(
    group: &mut GroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// A column that is read piece by piece.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Column<T> {
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
                Err(ParquetError::General(format!(
                    "column `{name}` is of another type"
                )))
            }
            _ => Err(ParquetError::General(format!(
                "column {number} is not `{name}`"
            ))),
        }
    }

    /// The next `rows` values.
    fn read(&mut self, rows: usize) -> Result<&[T::T], ParquetError> {
        self.values.clear();
        while self.values.len() < rows {
            let missing = rows - self.values.len();
            let read = self
                .reader
                .read_records(missing, None, None, &mut self.values)?;
            if read.0 == 0 {
                return Err(ParquetError::EOF("a column ends early".to_owned()));
            }
        }
        Ok(&self.values)
    }
}

/// Rows of one group on their way from a file.
pub(super) trait GroupRows: Sized {
    /// What a piece of rows becomes.
    type Batch;

    /// Opens the columns of a group.
    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError>;

    /// The next `rows` rows.
    fn read(&mut self, rows: usize) -> Result<Self::Batch, ParquetError>;
}

/// Calls of a group.
pub(super) struct CallRows {
    start_ns: Column<Int64Type>,
    latency_ns: Column<Int64Type>,
    offset: Column<Int64Type>,
    requested: Column<Int64Type>,
    returned: Column<Int64Type>,
    file: Column<Int32Type>,
    process: Column<Int32Type>,
    thread: Column<Int32Type>,
    operation: Column<ByteArrayType>,
    /// Absent of tables that were written before there was this column.
    fetched: Option<Column<Int64Type>>,
}

impl GroupRows for CallRows {
    type Batch = CallBatch;

    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
        Ok(CallRows {
            start_ns: Column::open(group, 0, "start_ns")?,
            latency_ns: Column::open(group, 1, "latency_ns")?,
            offset: Column::open(group, 2, "offset_bytes")?,
            requested: Column::open(group, 3, "requested_bytes")?,
            returned: Column::open(group, 4, "returned_bytes")?,
            file: Column::open(group, 5, "file")?,
            process: Column::open(group, 6, "process")?,
            thread: Column::open(group, 7, "thread")?,
            operation: Column::open(group, 8, "operation")?,
            fetched: match group.metadata().num_columns() {
                ..=9 => None,
                _ => Some(Column::open(group, 9, "fetched_bytes")?),
            },
        })
    }

    fn read(&mut self, rows: usize) -> Result<CallBatch, ParquetError> {
        let operations = self.operation.read(rows)?.iter();
        Ok(CallBatch {
            start_ns: self.start_ns.read(rows)?.to_vec(),
            latency_ns: all(self.latency_ns.read(rows)?, unsigned),
            offset: self.offset.read(rows)?.to_vec(),
            requested: all(self.requested.read(rows)?, unsigned),
            returned: self.returned.read(rows)?.to_vec(),
            file: all(self.file.read(rows)?, |number| number as u32),
            process: all(self.process.read(rows)?, |number| number as u32),
            thread: all(self.thread.read(rows)?, |number| number as u32),
            operation: operations
                .map(|name| named(name, &Operation::ALL, Operation::as_str))
                .collect::<Result<_, _>>()?,
            fetched: match &mut self.fetched {
                Some(column) => column.read(rows)?.to_vec(),
                None => vec![-1; rows],
            },
        })
    }
}

/// Requests of a group.
pub(super) struct BlockRows {
    issue_ns: Column<Int64Type>,
    queue_ns: Column<Int64Type>,
    device_ns: Column<Int64Type>,
    sector: Column<Int64Type>,
    bytes: Column<Int64Type>,
    device: Column<Int32Type>,
    process: Column<Int32Type>,
    operation: Column<ByteArrayType>,
}

impl GroupRows for BlockRows {
    type Batch = Vec<BlockRequest>;

    fn open(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
        Ok(BlockRows {
            issue_ns: Column::open(group, 0, "issue_ns")?,
            queue_ns: Column::open(group, 1, "queue_ns")?,
            device_ns: Column::open(group, 2, "device_ns")?,
            sector: Column::open(group, 3, "sector")?,
            bytes: Column::open(group, 4, "size_bytes")?,
            device: Column::open(group, 5, "device")?,
            process: Column::open(group, 6, "process")?,
            operation: Column::open(group, 7, "operation")?,
        })
    }

    fn read(&mut self, rows: usize) -> Result<Vec<BlockRequest>, ParquetError> {
        let issue_ns = self.issue_ns.read(rows)?;
        let queue_ns = self.queue_ns.read(rows)?;
        let device_ns = self.device_ns.read(rows)?;
        let sector = self.sector.read(rows)?;
        let bytes = self.bytes.read(rows)?;
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
                    operation: named(
                        &operation[row],
                        &BlockOperation::ALL,
                        BlockOperation::as_str,
                    )?,
                })
            })
            .collect()
    }
}

fn all<A: Copy, B>(values: &[A], convert: impl Fn(A) -> B) -> Vec<B> {
    values.iter().map(|&value| convert(value)).collect()
}

/// The one of a name.
fn named<T: Copy>(
    name: &ByteArray,
    all: &[T],
    as_str: impl Fn(T) -> &'static str,
) -> Result<T, ParquetError> {
    let found = all
        .iter()
        .find(|&&one| as_str(one).as_bytes() == name.data());
    found.copied().ok_or_else(|| {
        let name = String::from_utf8_lossy(name.data());
        ParquetError::General(format!("`{name}` is no operation"))
    })
}
