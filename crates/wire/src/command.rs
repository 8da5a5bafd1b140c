//! The commands of the workloads, encoded once and patched for each operation.
//!
//! A [`CommandSet`] holds every constant stretch of bytes. An operation copies them into the
//! output buffer, writes the key, lets the caller write values in place, and fills in the lengths.
//! The commands mean what an official driver sends, without a session id (`lsid`).

use crate::bson::{
    ElementWriter, begin_document, binary_header, end_document, kind, patch_length, write_document,
    write_string,
};
use crate::frame::{self, MAX_MESSAGE_BYTES, Opcode};
use thiserror::Error;

/// Room for the last documents of a batch under the limit of a message: the server counts some bytes of its own.
const BATCH_MESSAGE_BYTES: usize = MAX_MESSAGE_BYTES - 16_384;
const FLAGS_AND_BODY_KIND: [u8; 5] = [0; 5];
const SEQUENCE_KIND: u8 = 1;
/// `_id` as the first element of a document, up to its text.
const ID_ELEMENT: &[u8] = b"\x02_id\0";

/// What all commands of a [`CommandSet`] have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOptions {
    /// Database, sent as `$db`.
    pub database: String,
    /// Collection.
    pub collection: String,
    /// Sent with every write when given.
    pub write_concern: Option<WriteConcern>,
    /// Sent with every find when given (`local`, `majority`, …).
    pub read_concern_level: Option<String>,
    /// Names of the fields that operations refer to by index.
    pub field_names: Vec<String>,
}

/// When a write counts as done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// Members that must have the write; the server's default when absent.
    pub w: Option<Acknowledgement>,
    /// Whether it must be in the journal; the server's default when absent.
    pub journal: Option<bool>,
    /// Longest wait for the other members in milliseconds; no limit when absent.
    pub wtimeout_ms: Option<u64>,
}

/// How many members must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// This number of members, at least 1.
    Number(u32),
    /// More than half of the voting members.
    Majority,
    /// The members of a named rule of the replica set.
    Tag(String),
}

/// Which fields a find returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// The whole document, by no projection.
    All,
    /// All fields, each named in a projection.
    AllByName,
    /// One field, by its index in [`CommandOptions::field_names`].
    One(usize),
}

/// Why no commands can be made from the options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A name holds a zero byte, or is empty where it must not be.
    #[error("{what} `{}` is empty or has a zero byte", name.escape_debug())]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// With `w: 0` the server does not answer, so nothing can be measured.
    #[error("write concern `w: 0` is not supported, its writes have no answer to measure")]
    Unacknowledged,
}

/// Pre-encoded commands on one collection. Built once and shared by all workers.
///
/// Every method appends one complete `OP_MSG` to `out`, which may hold earlier bytes, and
/// allocates nothing once `out` has the capacity. Keys must be UTF-8.
#[derive(Clone, Debug)]
pub struct CommandSet {
    find: Vec<u8>,
    read_end: ProjectedEnds,
    scan_end: ProjectedEnds,
    get_more_end: Vec<u8>,
    kill_cursors_start: Vec<u8>,
    database_end: Vec<u8>,
    insert: WriteTemplate,
    insert_unordered: WriteTemplate,
    update: WriteTemplate,
    update_unordered: WriteTemplate,
    delete: WriteTemplate,
    fields: FieldHeaders,
}

/// Ends of a find command, one for each projection.
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
                write_read_concern(writer, options);
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

/// A write command up to where the documents of its sequence begin.
#[derive(Clone, Debug)]
struct WriteTemplate {
    bytes: Vec<u8>,
    /// Where the length of the sequence is.
    sequence: usize,
}

impl WriteTemplate {
    fn new(options: &CommandOptions, name: &str, ordered: bool, argument: &str) -> Self {
        let mut bytes = Vec::new();
        frame::begin_message(&mut bytes, 0, Opcode::Message);
        bytes.extend_from_slice(&FLAGS_AND_BODY_KIND);
        write_document(&mut bytes, |writer| {
            writer.string(name, &options.collection);
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
        let mut headers = FieldHeaders {
            bytes: Vec::new(),
            ends: vec![0],
        };
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
        check(options)?;
        let collection = &options.collection;
        let write = |name, ordered, argument| WriteTemplate::new(options, name, ordered, argument);
        Ok(CommandSet {
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
            get_more_end: end_of_document(|writer| {
                writer.string("collection", collection);
                writer.string("$db", &options.database);
            }),
            kill_cursors_start: message_start(|writer| {
                writer.string("killCursors", collection);
            }),
            database_end: end_of_document(|writer| {
                writer.string("$db", &options.database);
            }),
            insert: write("insert", true, "documents"),
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
    /// If the index of a [`Projection::One`] is not that of a field.
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
    /// No batch size is sent: the server answers with its usual first batch (101 documents), the
    /// rest is fetched by [`get_more`](Self::get_more). A `limit` of 0 means no limit, one above
    /// `i32::MAX` is sent as that.
    ///
    /// # Panics
    /// If the index of a [`Projection::One`] is not that of a field.
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
        let start = frame::begin_message(out, request_id, Opcode::Message);
        out.extend_from_slice(&FLAGS_AND_BODY_KIND);
        begin_document(out);
        out.extend_from_slice(b"\x12getMore\0");
        out.extend_from_slice(&cursor_id.to_le_bytes());
        out.extend_from_slice(&self.get_more_end);
        finish_body(out, start);
    }

    /// Closes a cursor that is not read to its end.
    pub fn kill_cursors(&self, out: &mut Vec<u8>, request_id: i32, cursor_id: i64) {
        let start = begin(out, &self.kill_cursors_start, request_id);
        out.extend_from_slice(b"\x04cursors\0");
        write_document(out, |cursors| {
            cursors.i64("0", cursor_id);
        });
        out.extend_from_slice(&self.database_end);
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

    /// Sets fields of the document with this key; with `upsert` it is made if there is none.
    #[inline]
    pub fn update<F>(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        key: &[u8],
        upsert: bool,
        mut fields: F,
    ) where
        F: FnMut(&mut FieldWriter<'_>),
    {
        let start = self.update.begin(out, request_id);
        let statement = begin_document(out);
        let set = begin_set_statement(out, key);
        fields(&mut self.field_writer(out));
        end_set_statement(out, statement, set, upsert);
        self.update.finish(out, start);
    }

    /// Replaces the document with this key, or inserts it if there is none.
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

    /// Inserts up to `count` documents (at least 1) by one command; returns how many it holds.
    ///
    /// `document` is called with 0, 1, … and writes one document each. When a document would take
    /// the message over the limit of a message, it is removed again (`document` has been called
    /// for it), and the command holds those before it. `ordered` stops at the first failure.
    #[must_use = "the command may hold fewer documents than asked for"]
    pub fn insert_many<F>(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        ordered: bool,
        count: usize,
        document: F,
    ) -> usize
    where
        F: FnMut(usize, &mut DocumentWriter<'_>),
    {
        let template = if ordered {
            &self.insert
        } else {
            &self.insert_unordered
        };
        self.write_many(out, template, request_id, Form::Insert, count, document)
    }

    /// Like an unordered [`insert_many`](Self::insert_many), but sets the fields of documents that
    /// exist already (`update` with `$set` and `upsert: true`).
    #[must_use = "the command may hold fewer documents than asked for"]
    pub fn upsert_many<F>(
        &self,
        out: &mut Vec<u8>,
        request_id: i32,
        count: usize,
        document: F,
    ) -> usize
    where
        F: FnMut(usize, &mut DocumentWriter<'_>),
    {
        let template = &self.update_unordered;
        self.write_many(out, template, request_id, Form::Upsert, count, document)
    }

    fn write_many<F>(
        &self,
        out: &mut Vec<u8>,
        template: &WriteTemplate,
        request_id: i32,
        form: Form,
        count: usize,
        mut document: F,
    ) -> usize
    where
        F: FnMut(usize, &mut DocumentWriter<'_>),
    {
        let start = template.begin(out, request_id);
        let mut written = 0;
        while written < count {
            let document_start = out.len();
            let mut writer = DocumentWriter {
                commands: self,
                start: begin_document(out),
                out,
                form,
                set: None,
            };
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
        FieldWriter {
            out,
            headers: &self.fields,
        }
    }
}

/// Appends fields to an open document.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    headers: &'a FieldHeaders,
}

impl FieldWriter<'_> {
    /// Appends a field with a binary value (subtype 0) and returns its bytes, all zero, to be filled.
    ///
    /// # Panics
    /// If `field_index` is not that of a field.
    #[inline]
    pub fn binary(&mut self, field_index: usize, length: usize) -> &mut [u8] {
        self.out.extend_from_slice(self.headers.get(field_index));
        binary_header(self.out, length);
        let start = self.out.len();
        self.out.resize(start + length, 0);
        &mut self.out[start..]
    }
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Insert,
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
    /// Writes the key and returns the writer of the fields. To be called exactly once.
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
        debug_assert!(
            self.out.len() > self.start + 4,
            "the document was given no key"
        );
        match self.set {
            Some(set) => end_set_statement(self.out, self.start, set, true),
            None => end_document(self.out, self.start),
        }
    }
}

/// Places of the open documents of a `u: {$set: {`.
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

/// Copies the start of a message and sets its number; returns the place of the message.
#[inline]
fn begin(out: &mut Vec<u8>, template: &[u8], request_id: i32) -> usize {
    let start = out.len();
    out.extend_from_slice(template);
    out[start + 4..start + 8].copy_from_slice(&request_id.to_le_bytes());
    start
}

/// Fills in the lengths of a message that is one body section.
#[inline]
fn finish_body(out: &mut [u8], start: usize) {
    patch_length(out, start + frame::HEADER_BYTES + FLAGS_AND_BODY_KIND.len());
    frame::finish_message(out, start);
}

/// Header, flags, and the open body document with its first elements.
fn message_start(elements: impl FnOnce(&mut ElementWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    frame::begin_message(&mut out, 0, Opcode::Message);
    out.extend_from_slice(&FLAGS_AND_BODY_KIND);
    write_document(&mut out, elements);
    // The document stays open.
    out.pop();
    out
}

/// Last elements of a document and its final zero.
fn end_of_document(elements: impl FnOnce(&mut ElementWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write_document(&mut out, elements);
    out.split_off(4)
}

fn write_write_concern(writer: &mut ElementWriter<'_>, concern: &WriteConcern) {
    if *concern == WriteConcern::default() {
        return;
    }
    writer.document("writeConcern", |writer| {
        match &concern.w {
            Some(Acknowledgement::Number(number)) => writer.i64("w", i64::from(*number)),
            Some(Acknowledgement::Majority) => writer.string("w", "majority"),
            Some(Acknowledgement::Tag(name)) => writer.string("w", name),
            None => writer,
        };
        if let Some(journal) = concern.journal {
            writer.boolean("j", journal);
        }
        if let Some(wtimeout_ms) = concern.wtimeout_ms {
            writer.i64("wtimeout", i64::try_from(wtimeout_ms).unwrap_or(i64::MAX));
        }
    });
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

fn write_read_concern(writer: &mut ElementWriter<'_>, options: &CommandOptions) {
    if let Some(level) = &options.read_concern_level {
        writer.document("readConcern", |writer| {
            writer.string("level", level);
        });
    }
}

fn check(options: &CommandOptions) -> Result<(), CommandError> {
    let names = [
        ("database", &options.database),
        ("collection", &options.collection),
    ];
    let fields = options.field_names.iter().map(|name| ("field", name));
    for (what, name) in names.into_iter().chain(fields) {
        if name.is_empty() || name.contains('\0') {
            let name = name.clone();
            return Err(CommandError::Name { what, name });
        }
    }
    let concern = options.write_concern.as_ref();
    if concern.and_then(|concern| concern.w.as_ref()) == Some(&Acknowledgement::Number(0)) {
        return Err(CommandError::Unacknowledged);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};

    fn options() -> CommandOptions {
        CommandOptions {
            database: "db".into(),
            collection: "c".into(),
            field_names: vec!["field0".into(), "field1".into()],
            ..CommandOptions::default()
        }
    }

    fn commands() -> CommandSet {
        CommandSet::new(&options()).unwrap()
    }

    fn binary(bytes: &[u8]) -> Bson {
        Bson::Binary(Binary {
            subtype: BinarySubtype::Generic,
            bytes: bytes.to_vec(),
        })
    }

    /// The command as one document: sequences become arrays, as the server does it.
    fn decode(bytes: &[u8]) -> Document {
        let frame = frame::parse(bytes).unwrap().unwrap();
        assert_eq!(frame.length, bytes.len());
        assert_eq!((frame.request_id, frame.response_to), (77, 0));
        let message = frame.message().unwrap();
        assert_eq!(message.flags, 0);
        let mut command = Document::from_reader(message.document).unwrap();
        for sequence in message.sequences() {
            let mut documents = Vec::new();
            let mut rest = sequence.documents;
            while !rest.is_empty() {
                let (document, after) = crate::bson::Document::split(rest).unwrap();
                let document: Document = Document::from_reader(document.as_bytes()).unwrap();
                documents.push(Bson::Document(document));
                rest = after;
            }
            let name = String::from_utf8(sequence.name.to_vec()).unwrap();
            command.insert(name, documents);
        }
        command
    }

    fn encode(write: impl FnOnce(&CommandSet, &mut Vec<u8>)) -> Document {
        encode_with(&commands(), write)
    }

    fn encode_with(
        commands: &CommandSet,
        write: impl FnOnce(&CommandSet, &mut Vec<u8>),
    ) -> Document {
        // Earlier bytes must not change, and offsets must count from the start of the message.
        let mut out = b"earlier".to_vec();
        write(commands, &mut out);
        assert_eq!(&out[..7], b"earlier");
        decode(&out[7..])
    }

    fn two_fields(fields: &mut FieldWriter<'_>) {
        fields.binary(1, 2).copy_from_slice(b"xy");
        fields.binary(0, 0);
    }

    #[test]
    fn a_find_has_these_bytes() {
        let mut out = Vec::new();
        commands().find_by_id(&mut out, 77, b"k1", Projection::All);
        let expected = b"\x64\0\0\0\x4d\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
            \x4f\0\0\0\x02find\0\x02\0\0\0c\0\
            \x03filter\0\x11\0\0\0\x02_id\0\x03\0\0\0k1\0\0\
            \x10limit\0\x01\0\0\0\x08singleBatch\0\x01\
            \x02$db\0\x03\0\0\0db\0\0";
        assert_eq!(
            out.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn an_update_has_these_bytes() {
        let mut out = Vec::new();
        commands().update(&mut out, 77, b"k", false, |fields| {
            fields.binary(0, 1).fill(0xff);
        });
        let expected = b"\x84\0\0\0\x4d\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
            \x29\0\0\0\x02update\0\x02\0\0\0c\0\x08ordered\0\x01\x02$db\0\x03\0\0\0db\0\0\
            \x01\x45\0\0\0updates\0\
            \x39\0\0\0\x03q\0\x10\0\0\0\x02_id\0\x02\0\0\0k\0\0\
            \x03u\0\x1e\0\0\0\x03$set\0\x13\0\0\0\x05field0\0\x01\0\0\0\0\xff\0\0\0";
        assert_eq!(
            out.escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }

    #[test]
    fn a_find_asks_for_one_document_without_a_cursor() {
        let expected = |projection: Document| {
            let mut find =
                doc! { "find": "c", "filter": {"_id": "user1"}, "limit": 1, "singleBatch": true };
            if !projection.is_empty() {
                find.insert("projection", projection);
            }
            find.insert("$db", "db");
            find
        };
        let find = |projection| encode(|c, out| c.find_by_id(out, 77, b"user1", projection));
        assert_eq!(find(Projection::All), expected(doc! {}));
        let all = doc! { "field0": 1, "field1": 1 };
        assert_eq!(find(Projection::AllByName), expected(all));
        assert_eq!(find(Projection::One(1)), expected(doc! { "field1": 1 }));
    }

    #[test]
    fn a_scan_is_sorted_and_limited() {
        let scan = encode(|c, out| c.scan(out, 77, b"user5", 42, Projection::One(0)));
        let expected = doc! {
            "find": "c", "filter": {"_id": {"$gte": "user5"}}, "limit": 42,
            "sort": {"_id": 1}, "projection": {"field0": 1}, "$db": "db",
        };
        assert_eq!(scan, expected);
    }

    #[test]
    fn cursors_are_continued_and_closed() {
        let more = encode(|c, out| c.get_more(out, 77, -9));
        let expected = doc! { "getMore": -9i64, "collection": "c", "$db": "db" };
        assert_eq!(more, expected);
        let kill = encode(|c, out| c.kill_cursors(out, 77, i64::MAX));
        let expected = doc! { "killCursors": "c", "cursors": [i64::MAX], "$db": "db" };
        assert_eq!(kill, expected);
    }

    #[test]
    fn writes_of_one_document_are_one_statement() {
        let set = doc! { "field1": binary(b"xy"), "field0": binary(b"") };
        let update = |statement: Document| doc! { "update": "c", "ordered": true, "$db": "db", "updates": [statement] };

        let found = encode(|c, out| c.update(out, 77, b"k", false, two_fields));
        let statement = doc! { "q": {"_id": "k"}, "u": {"$set": set.clone()} };
        assert_eq!(found, update(statement.clone()));

        let found = encode(|c, out| c.update(out, 77, b"k", true, two_fields));
        let mut upsert = statement;
        upsert.insert("upsert", true);
        assert_eq!(found, update(upsert));

        let mut document = doc! { "_id": "k" };
        document.extend(set);
        let found = encode(|c, out| c.replace_upsert(out, 77, b"k", two_fields));
        let statement = doc! { "q": {"_id": "k"}, "u": document.clone(), "upsert": true };
        assert_eq!(found, update(statement));

        let found = encode(|c, out| c.insert(out, 77, b"k", two_fields));
        let expected =
            doc! { "insert": "c", "ordered": true, "$db": "db", "documents": [document] };
        assert_eq!(found, expected);

        let found = encode(|c, out| c.delete(out, 77, b"k"));
        let statement = doc! { "q": {"_id": "k"}, "limit": 1 };
        let expected = doc! { "delete": "c", "ordered": true, "$db": "db", "deletes": [statement] };
        assert_eq!(found, expected);
    }

    #[test]
    fn batches_hold_one_statement_for_each_document() {
        let key = |index: usize| format!("k{index}");
        let write = |index: usize, document: &mut DocumentWriter<'_>| {
            let mut fields = document.key(key(index).as_bytes());
            fields.binary(0, 1)[0] = index as u8;
        };
        let value = |index: usize| doc! { "field0": binary(&[index as u8]) };
        let inserted = encode(|c, out| {
            assert_eq!(c.insert_many(out, 77, false, 3, write), 3);
        });
        let documents: Vec<_> = (0..3)
            .map(|index| {
                let mut document = doc! { "_id": key(index) };
                document.extend(value(index));
                document
            })
            .collect();
        let expected =
            doc! { "insert": "c", "ordered": false, "$db": "db", "documents": documents };
        assert_eq!(inserted, expected);

        let upserted = encode(|c, out| {
            assert_eq!(c.upsert_many(out, 77, 2, write), 2);
        });
        let statements: Vec<_> = (0..2)
            .map(|index| doc! { "q": {"_id": key(index)}, "u": {"$set": value(index)}, "upsert": true })
            .collect();
        let expected = doc! { "update": "c", "ordered": false, "$db": "db", "updates": statements };
        assert_eq!(upserted, expected);
    }

    #[test]
    fn a_batch_stops_before_it_is_too_long_for_a_message() {
        let commands = commands();
        let mut out = Vec::new();
        let mut calls = 0;
        let written = commands.insert_many(&mut out, 77, true, 10, |_, document| {
            calls += 1;
            document.key(b"k").binary(0, 15_000_000);
        });
        assert_eq!((written, calls), (3, 4));
        assert!(out.len() <= MAX_MESSAGE_BYTES);
        let frame = frame::parse(&out).unwrap().unwrap();
        let sequence = frame.message().unwrap().sequences().next().unwrap();
        let mut rest = sequence.documents;
        let mut documents = 0;
        while !rest.is_empty() {
            rest = crate::bson::Document::split(rest).unwrap().1;
            documents += 1;
        }
        assert_eq!(documents, 3);
    }

    #[test]
    fn concerns_are_sent_only_when_given_and_only_where_they_belong() {
        let commands = CommandSet::new(&CommandOptions {
            write_concern: Some(WriteConcern {
                w: Some(Acknowledgement::Majority),
                journal: Some(true),
                wtimeout_ms: Some(500),
            }),
            read_concern_level: Some("local".into()),
            ..options()
        })
        .unwrap();
        let concern = Bson::Document(doc! { "w": "majority", "j": true, "wtimeout": 500i64 });
        let find = encode_with(&commands, |c, out| {
            c.find_by_id(out, 77, b"k", Projection::All)
        });
        assert_eq!(
            find.get("readConcern"),
            Some(&doc! {"level": "local"}.into())
        );
        assert_eq!(find.get("writeConcern"), None);
        let insert = encode_with(&commands, |c, out| c.insert(out, 77, b"k", |_| {}));
        assert_eq!(insert.get("writeConcern"), Some(&concern));
        assert_eq!(insert.get("readConcern"), None);
        let more = encode_with(&commands, |c, out| c.get_more(out, 77, 1));
        assert_eq!(
            more,
            doc! { "getMore": 1i64, "collection": "c", "$db": "db" }
        );

        for (w, expected) in [
            (Acknowledgement::Number(2), doc! {"w": 2i64}),
            (Acknowledgement::Tag("east".into()), doc! {"w": "east"}),
        ] {
            let concern = WriteConcern {
                w: Some(w),
                ..WriteConcern::default()
            };
            let options = CommandOptions {
                write_concern: Some(concern),
                ..options()
            };
            let commands = CommandSet::new(&options).unwrap();
            let delete = encode_with(&commands, |c, out| c.delete(out, 77, b"k"));
            assert_eq!(delete.get("writeConcern"), Some(&Bson::Document(expected)));
        }
        let concern = Some(WriteConcern::default());
        let options = CommandOptions {
            write_concern: concern,
            ..options()
        };
        let commands = CommandSet::new(&options).unwrap();
        let delete = encode_with(&commands, |c, out| c.delete(out, 77, b"k"));
        assert_eq!(delete.get("writeConcern"), None);
    }

    #[test]
    fn options_that_cannot_be_encoded_are_refused() {
        let zero = CommandOptions {
            field_names: vec!["a\0b".into()],
            ..options()
        };
        let error = CommandSet::new(&zero).unwrap_err();
        assert_eq!(
            error.to_string(),
            r"field `a\0b` is empty or has a zero byte"
        );
        let empty = CommandOptions {
            collection: String::new(),
            ..options()
        };
        assert!(matches!(
            CommandSet::new(&empty),
            Err(CommandError::Name {
                what: "collection",
                ..
            })
        ));
        let w = Some(Acknowledgement::Number(0));
        let concern = Some(WriteConcern {
            w,
            ..WriteConcern::default()
        });
        let fire_and_forget = CommandOptions {
            write_concern: concern,
            ..options()
        };
        assert_eq!(
            CommandSet::new(&fire_and_forget).unwrap_err(),
            CommandError::Unacknowledged
        );
    }

    #[test]
    fn encoding_does_not_grow_a_buffer_that_is_large_enough() {
        let commands = commands();
        let mut out = Vec::with_capacity(4096);
        let before = (out.as_ptr(), out.capacity());
        commands.find_by_id(&mut out, 1, b"k", Projection::AllByName);
        commands.scan(&mut out, 2, b"k", 5, Projection::All);
        commands.update(&mut out, 3, b"k", false, two_fields);
        commands.insert(&mut out, 4, b"k", two_fields);
        commands.delete(&mut out, 5, b"k");
        assert_eq!((out.as_ptr(), out.capacity()), before);
    }
}
