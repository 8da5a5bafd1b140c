//! The commands of the workloads, encoded once and patched for each operation.
//!
//! A [`CommandSet`] has all constant byte sequences. An operation copies them into the output buffer, writes the key,
//! lets the caller write values in place, and fills in the lengths. The commands are equivalent to an official
//! driver's. Only retryable writes have a session ID (`lsid`).

use crate::bson::{
    ElementWriter, begin_document, binary_header, end_document, kind, patch_length, write_document,
    write_string,
};
use crate::frame::{self, MAX_MESSAGE_BYTES};

mod index_scan;
mod options;
mod own;
mod transaction;

use index_scan::IndexScan;
pub use options::{Acknowledgement, CommandError, CommandOptions, WriteConcern};
use options::{write_read_options, write_read_preference, write_write_concern};
pub use own::{IN_TRANSACTION, START_TRANSACTION, write_command};
pub use transaction::Transaction;

/// Size limit of a batch: below the message limit, because the server adds some bytes.
const BATCH_MESSAGE_BYTES: usize = MAX_MESSAGE_BYTES - 16_384;
const FLAGS_AND_BODY_KIND: [u8; 5] = [0; 5];
const SEQUENCE_KIND: u8 = 1;
/// `_id` as the first element of a document, up to its text.
const ID_ELEMENT: &[u8] = b"\x02_id\0";

/// Fields that a find returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// The whole document, without a projection.
    All,
    /// All fields, each named in a projection.
    AllByName,
    /// One field, by its index in [`CommandOptions::field_names`].
    One(usize),
}

/// Pre-encoded commands for one collection. Built once and shared by all workers.
///
/// Every method appends one complete `OP_MSG` to `out`, which may contain earlier bytes, and allocates nothing once
/// `out` has the capacity. Keys must be UTF-8.
#[derive(Clone, Debug)]
pub struct CommandSet {
    find: Vec<u8>,
    read_end: ProjectedEnds,
    scan_end: ProjectedEnds,
    index_scans: Vec<IndexScan>,
    get_more_end: Vec<u8>,
    insert: WriteTemplate,
    insert_unordered: WriteTemplate,
    update: WriteTemplate,
    update_unordered: WriteTemplate,
    delete: WriteTemplate,
    fields: FieldHeaders,
    /// Offset of the session in a write message; `None` without sessions.
    transaction: Option<usize>,
}

/// Ends of a find command, one per projection.
#[derive(Clone, Debug)]
struct ProjectedEnds {
    all: Vec<u8>,
    all_by_name: Vec<u8>,
    one: Vec<Vec<u8>>,
}

impl ProjectedEnds {
    fn new(options: &CommandOptions, elements: impl Fn(&mut ElementWriter<'_>)) -> Self {
        let names: Vec<&str> = options.field_names.iter().map(String::as_str).collect();
        let encode = |projection: &[&str]| {
            end_of_document(|writer| {
                elements(writer);
                write_projection(writer, projection);
                write_read_options(writer, options);
                writer.string("$db", &options.database);
            })
        };
        ProjectedEnds {
            all: encode(&[]),
            all_by_name: encode(&names),
            one: names.iter().map(|&name| encode(&[name])).collect(),
        }
    }

    fn get(&self, projection: Projection) -> &[u8] {
        match projection {
            Projection::All => &self.all,
            Projection::AllByName => &self.all_by_name,
            Projection::One(index) => &self.one[index],
        }
    }
}

/// A write command up to the start of its document sequence.
#[derive(Clone, Debug)]
struct WriteTemplate {
    bytes: Vec<u8>,
    /// Offset of the sequence's length.
    sequence: usize,
}

impl WriteTemplate {
    fn new(options: &CommandOptions, name: &str, ordered: bool, argument: &str) -> Self {
        let mut bytes = Vec::new();
        frame::begin_message(&mut bytes, 0, 0);
        bytes.extend_from_slice(&FLAGS_AND_BODY_KIND);
        write_document(&mut bytes, |writer| {
            writer.string(name, &options.collection);
            if options.retryable_writes {
                transaction::write(writer);
            }
            writer.boolean("ordered", ordered);
            if let Some(concern) = &options.write_concern {
                write_write_concern(writer, concern);
            }
            writer.string("$db", &options.database);
        });
        bytes.push(SEQUENCE_KIND);
        let sequence = begin_document(&mut bytes);
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
        WriteTemplate { bytes, sequence }
    }

    #[inline]
    fn begin(&self, out: &mut Vec<u8>, request_id: i32) -> usize {
        begin(out, &self.bytes, request_id)
    }

    /// Fills in the lengths of the sequence and of the message.
    #[inline]
    fn finish(&self, out: &mut [u8], start: usize) {
        patch_length(out, start + self.sequence);
        frame::finish_message(out, start);
    }
}

/// Type byte and name of each field as a binary element.
#[derive(Clone, Debug)]
struct FieldHeaders {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl FieldHeaders {
    fn new(names: &[String]) -> Self {
        let mut headers = FieldHeaders { bytes: Vec::new(), ends: vec![0] };
        for name in names {
            headers.bytes.push(kind::BINARY);
            headers.bytes.extend_from_slice(name.as_bytes());
            headers.bytes.push(0);
            headers.ends.push(headers.bytes.len());
        }
        headers
    }

    #[inline]
    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.ends[index]..self.ends[index + 1]]
    }
}

impl CommandSet {
    /// Encodes the commands.
    pub fn new(options: &CommandOptions) -> Result<Self, CommandError> {
        options.check()?;
        let collection = &options.collection;
        let write = |name, ordered, argument| WriteTemplate::new(options, name, ordered, argument);
        let insert = write("insert", true, "documents");
        // `insert`, `update` and `delete` have the same length, so the offset is the same in all of them.
        let transaction = (options.retryable_writes).then(|| transaction::place(&insert.bytes));
        Ok(CommandSet {
            transaction: transaction.flatten(),
            find: message_start(|writer| {
                writer.string("find", collection);
            }),
            read_end: ProjectedEnds::new(options, |writer| {
                writer.i32("limit", 1).boolean("singleBatch", true);
            }),
            scan_end: ProjectedEnds::new(options, |writer| {
                writer.document("sort", |sort| {
                    sort.i32("_id", 1);
                });
            }),
            index_scans: IndexScan::all(options)?,
            get_more_end: end_of_document(|writer| {
                writer.string("collection", collection);
                write_read_preference(writer, options);
                writer.string("$db", &options.database);
            }),
            insert,
            insert_unordered: write("insert", false, "documents"),
            update: write("update", true, "updates"),
            update_unordered: write("update", false, "updates"),
            delete: write("delete", true, "deletes"),
            fields: FieldHeaders::new(&options.field_names),
        })
    }

    /// Finds the document with this key: `limit: 1, singleBatch: true`, so no cursor stays open.
    ///
    /// # Panics
    /// If a [`Projection::One`] has an invalid index.
    #[inline]
    pub fn find_by_id(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        key: &[u8],
        projection: Projection,
    ) {
        let start = begin(out, &self.find, request_id);
        out.extend_from_slice(b"\x03filter\0");
        write_id_document(out, key);
        out.extend_from_slice(self.read_end.get(projection));
        finish_body(out, start);
    }

    /// Finds up to `limit` documents from `first_key` on, in key order.
    ///
    /// No batch size is sent: the server answers with its default first batch (101 documents), and
    /// [`get_more`](Self::get_more) fetches the rest. A `limit` of 0 means no limit; larger limits are reduced to
    /// `i32::MAX`.
    ///
    /// # Panics
    /// If a [`Projection::One`] has an invalid index.
    pub fn scan(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        first_key: &[u8],
        limit: u32,
        projection: Projection,
    ) {
        let start = begin(out, &self.find, request_id);
        out.extend_from_slice(b"\x03filter\0");
        let filter = begin_document(out);
        out.extend_from_slice(b"\x03_id\0");
        let range = begin_document(out);
        out.extend_from_slice(b"\x02$gte\0");
        write_string(out, first_key);
        end_document(out, range);
        end_document(out, filter);
        out.extend_from_slice(b"\x10limit\0");
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        out.extend_from_slice(&limit.to_le_bytes());
        out.extend_from_slice(self.scan_end.get(projection));
        finish_body(out, start);
    }

    /// Fetches the next batch of an open cursor.
    pub fn get_more(&self, out: &mut Vec<u8>, request_id: i32, cursor_id: i64) {
        let start = frame::begin_message(out, request_id, 0);
        out.extend_from_slice(&FLAGS_AND_BODY_KIND);
        begin_document(out);
        out.extend_from_slice(b"\x12getMore\0");
        out.extend_from_slice(&cursor_id.to_le_bytes());
        out.extend_from_slice(&self.get_more_end);
        finish_body(out, start);
    }

    /// Deletes the document with this key.
    #[inline]
    pub fn delete(&self, out: &mut Vec<u8>, request_id: i32, key: &[u8]) {
        let start = self.delete.begin(out, request_id);
        let statement = begin_document(out);
        out.extend_from_slice(b"\x03q\0");
        write_id_document(out, key);
        out.extend_from_slice(b"\x10limit\0\x01\0\0\0");
        end_document(out, statement);
        self.delete.finish(out, start);
    }

    /// Sets fields of the document with this key.
    #[inline]
    pub fn update<F>(&self, out: &mut Vec<u8>, request_id: i32, key: &[u8], mut fields: F)
    where
        F: FnMut(&mut FieldWriter<'_>),
    {
        let start = self.update.begin(out, request_id);
        let statement = begin_document(out);
        let set = begin_set_statement(out, key);
        fields(&mut self.field_writer(out));
        end_set_statement(out, statement, set, false);
        self.update.finish(out, start);
    }

    /// Replaces the document with this key, or inserts it if it does not exist.
    #[inline]
    pub fn replace_upsert<F>(&self, out: &mut Vec<u8>, request_id: i32, key: &[u8], mut fields: F)
    where
        F: FnMut(&mut FieldWriter<'_>),
    {
        let start = self.update.begin(out, request_id);
        let statement = begin_document(out);
        out.extend_from_slice(b"\x03q\0");
        write_id_document(out, key);
        out.extend_from_slice(b"\x03u\0");
        let document = begin_document(out);
        write_id(out, key);
        fields(&mut self.field_writer(out));
        end_document(out, document);
        out.extend_from_slice(b"\x08upsert\0\x01");
        end_document(out, statement);
        self.update.finish(out, start);
    }

    /// Inserts one document.
    #[inline]
    pub fn insert<F>(&self, out: &mut Vec<u8>, request_id: i32, key: &[u8], mut fields: F)
    where
        F: FnMut(&mut FieldWriter<'_>),
    {
        let start = self.insert.begin(out, request_id);
        let document = begin_document(out);
        write_id(out, key);
        fields(&mut self.field_writer(out));
        end_document(out, document);
        self.insert.finish(out, start);
    }

    /// Writes up to `count` documents (at least 1) by one unordered command; returns the number of documents in it.
    ///
    /// `document` is called with 0, 1, … and writes one document each. If a document would exceed the message limit, it
    /// is removed again (after `document` has been called for it), and the command has the documents before it.
    #[must_use = "the command may have fewer documents than requested"]
    pub fn write_many<F>(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        form: Form,
        count: usize,
        mut document: F,
    ) -> usize
    where
        F: FnMut(usize, &mut DocumentWriter<'_>),
    {
        let template = match form {
            Form::Insert => &self.insert_unordered,
            Form::Upsert => &self.update_unordered,
        };
        let start = template.begin(out, request_id);
        let mut written = 0;
        while written < count {
            let document_start = out.len();
            let mut writer =
                DocumentWriter { commands: self, start: begin_document(out), out, form, set: None };
            document(written, &mut writer);
            writer.finish();
            if out.len() - start > BATCH_MESSAGE_BYTES && written > 0 {
                out.truncate(document_start);
                break;
            }
            written += 1;
        }
        template.finish(out, start);
        written
    }

    fn field_writer<'a>(&'a self, out: &'a mut Vec<u8>) -> FieldWriter<'a> {
        FieldWriter { out, headers: &self.fields }
    }
}

/// Appends fields to an open document.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    headers: &'a FieldHeaders,
}

impl FieldWriter<'_> {
    /// Appends a field with a binary value (subtype 0) and returns its zeroed bytes, to be filled.
    ///
    /// # Panics
    /// If `field_index` is invalid.
    #[inline]
    pub fn binary(&mut self, field_index: usize, length: usize) -> &mut [u8] {
        self.out.extend_from_slice(self.headers.get(field_index));
        binary_header(self.out, length);
        let start = self.out.len();
        self.out.resize(start + length, 0);
        &mut self.out[start..]
    }
}

/// How a batch writes its documents.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Insert,
    /// Sets the fields of existing documents (`update` with `$set` and `upsert: true`).
    Upsert,
}

/// Writes one document of a batch: its key, then its fields.
#[derive(Debug)]
pub struct DocumentWriter<'a> {
    commands: &'a CommandSet,
    out: &'a mut Vec<u8>,
    start: usize,
    form: Form,
    set: Option<SetStatement>,
}

impl DocumentWriter<'_> {
    /// Writes the key and returns the writer of the fields. Call it exactly once.
    pub fn key(&mut self, key: &[u8]) -> FieldWriter<'_> {
        debug_assert!(
            self.out.len() == self.start + 4,
            "a document has one key, before its fields"
        );
        match self.form {
            Form::Insert => write_id(self.out, key),
            Form::Upsert => self.set = Some(begin_set_statement(self.out, key)),
        }
        self.commands.field_writer(self.out)
    }

    fn finish(self) {
        debug_assert!(self.out.len() > self.start + 4, "the document has no key");
        match self.set {
            Some(set) => end_set_statement(self.out, self.start, set, true),
            None => end_document(self.out, self.start),
        }
    }
}

/// Offsets of the open documents of a `u: {$set: {`.
#[derive(Clone, Copy, Debug)]
struct SetStatement {
    update: usize,
    set: usize,
}

#[inline]
fn begin_set_statement(out: &mut Vec<u8>, key: &[u8]) -> SetStatement {
    out.extend_from_slice(b"\x03q\0");
    write_id_document(out, key);
    out.extend_from_slice(b"\x03u\0");
    let update = begin_document(out);
    out.extend_from_slice(b"\x03$set\0");
    let set = begin_document(out);
    SetStatement { update, set }
}

#[inline]
fn end_set_statement(out: &mut Vec<u8>, statement: usize, places: SetStatement, upsert: bool) {
    end_document(out, places.set);
    end_document(out, places.update);
    if upsert {
        out.extend_from_slice(b"\x08upsert\0\x01");
    }
    end_document(out, statement);
}

#[inline]
fn write_id(out: &mut Vec<u8>, key: &[u8]) {
    debug_assert!(std::str::from_utf8(key).is_ok(), "keys are UTF-8");
    out.extend_from_slice(ID_ELEMENT);
    write_string(out, key);
}

#[inline]
fn write_id_document(out: &mut Vec<u8>, key: &[u8]) {
    let start = begin_document(out);
    write_id(out, key);
    end_document(out, start);
}

/// Copies the start of a message and sets its request ID; returns its offset.
#[inline]
fn begin(out: &mut Vec<u8>, template: &[u8], request_id: i32) -> usize {
    let start = out.len();
    out.extend_from_slice(template);
    out[start + 4..start + 8].copy_from_slice(&request_id.to_le_bytes());
    start
}

/// Fills in the lengths of a message with a single body section.
#[inline]
fn finish_body(out: &mut [u8], start: usize) {
    patch_length(out, start + frame::HEADER_BYTES + FLAGS_AND_BODY_KIND.len());
    frame::finish_message(out, start);
}

/// Header, flags, and the open body document with its first elements.
fn message_start(elements: impl FnOnce(&mut ElementWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    frame::begin_message(&mut out, 0, 0);
    out.extend_from_slice(&FLAGS_AND_BODY_KIND);
    write_document(&mut out, elements);
    // Keep the document open.
    out.pop();
    out
}

/// Last elements of a document, and its final zero.
fn end_of_document(elements: impl FnOnce(&mut ElementWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write_document(&mut out, elements);
    out.split_off(4)
}

fn write_projection(writer: &mut ElementWriter<'_>, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    writer.document("projection", |writer| {
        for name in names {
            writer.i32(name, 1);
        }
    });
}

#[cfg(test)]
mod tests;
