//! Canned replies: built once, copied for each command, and patched.

use super::behaviour::{Behaviour, Fault};
use super::protocol::{Batch, Command, Key, Request};
use crate::keys::key_name::{MAX_DIGITS, decimal};
use crate::operation::RATE_LIMIT_EXCEEDED;
use bson::{Bson, Document, doc};
use dyno_wire::bson::{begin_document, end_document, patch_length};
use dyno_wire::code::name_or_location;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Fields of the canned document.
const FIELDS: u32 = 10;
/// Maximum size of the documents in one reply, as on servers.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// Offset of `n` in `{n: …}`: after the length, the type byte and the name.
const N_OFFSET: usize = 4 + 1 + 2;
/// Offset of `nModified` in `{n: …, nModified: …}`.
const N_MODIFIED_OFFSET: usize = N_OFFSET + 4 + 1 + 10;

const OP_REPLY: i32 = 1;
const OP_MSG: i32 = 2013;

/// Templates of all replies.
#[derive(Debug)]
pub(super) struct Replies {
    hello: Vec<u8>,
    build_info: Vec<u8>,
    server_status: Vec<u8>,
    list_collections: Vec<u8>,
    ok: Vec<u8>,
    written: Vec<u8>,
    updated: Vec<u8>,
    /// Encoded fields of the canned document without its `_id`.
    fields: Vec<u8>,
    document_bytes: u32,
    next_request_id: i32,
}

impl Replies {
    pub(super) fn new(behaviour: &Behaviour) -> bson::error::Result<Self> {
        let document_bytes = behaviour.document_bytes;
        let fields = canned_fields(document_bytes, behaviour.seed).to_vec()?;
        Ok(Replies {
            hello: hello(behaviour.wire_version()).to_vec()?,
            build_info: build_info(behaviour).to_vec()?,
            server_status: server_status(&behaviour.version).to_vec()?,
            list_collections: list_collections().to_vec()?,
            ok: doc! {"ok": 1.0}.to_vec()?,
            written: doc! {"n": 0, "ok": 1.0}.to_vec()?,
            updated: doc! {"n": 0, "nModified": 0, "ok": 1.0}.to_vec()?,
            fields: fields[4..fields.len() - 1].to_vec(),
            document_bytes,
            next_request_id: 1,
        })
    }

    /// Appends the reply to `request`; `documents` is the result of a count.
    #[inline]
    pub(super) fn append(
        &mut self,
        out: &mut Vec<u8>,
        request: &Request,
        fault: Option<Fault>,
        documents: u64,
    ) {
        let start = self.begin(out, request);
        match fault {
            Some(Fault::NotFound) => self.not_found(out, request.command),
            Some(Fault::WriteError(code)) if request.command.is_write() => {
                write_document(out, &write_error(code))
            }
            Some(Fault::WriteError(code) | Fault::ErrorCode(code)) => {
                write_document(out, &error(code))
            }
            _ => self.success(out, request, documents),
        }
        patch_length(out, start);
    }

    /// Appends a reply with this document.
    pub(super) fn append_document(
        &mut self,
        out: &mut Vec<u8>,
        request: &Request,
        document: &Document,
    ) {
        let start = self.begin(out, request);
        write_document(out, document);
        patch_length(out, start);
    }

    /// Writes the header and everything before the document.
    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>, request: &Request) -> usize {
        /// Flags, section kind.
        const MESSAGE_HEAD: [u8; 5] = [0; 5];
        /// Flags (await capable), cursor id 0, starting from 0, one document.
        const REPLY_HEAD: [u8; 20] = [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        let start = out.len();
        let opcode = if request.legacy { OP_REPLY } else { OP_MSG };
        for number in [0, self.next_request_id, request.request_id, opcode] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        self.next_request_id = self.next_request_id.wrapping_add(1);
        out.extend_from_slice(if request.legacy { &REPLY_HEAD } else { &MESSAGE_HEAD });
        start
    }

    #[inline]
    fn success(&self, out: &mut Vec<u8>, request: &Request, documents: u64) {
        match request.command {
            // A find without a key should return only existing documents.
            Command::Find(_) if documents == 0 && request.key.is_none() => {
                self.not_found(out, request.command);
            }
            Command::Find(batch) => self.batch(out, "firstBatch", batch, request.key),
            Command::GetMore(batch) => self.batch(out, "nextBatch", batch, None),
            Command::Insert { documents: n } | Command::Delete { statements: n } => {
                numbered(out, &self.written, n)
            }
            Command::Update { statements: n } => {
                let start = out.len();
                numbered(out, &self.updated, n);
                patch(out, start + N_MODIFIED_OFFSET, n as i32);
            }
            Command::Hello => out.extend_from_slice(&self.hello),
            Command::BuildInfo => out.extend_from_slice(&self.build_info),
            Command::ServerStatus => out.extend_from_slice(&self.server_status),
            Command::ListCollections => out.extend_from_slice(&self.list_collections),
            Command::Acknowledge | Command::Drop => out.extend_from_slice(&self.ok),
            Command::CollectionStats => write_document(out, &self.collection_stats(documents)),
            Command::Count => write_document(out, &doc! {"n": number(documents), "ok": 1.0}),
            Command::Aggregate => {
                let counted = doc! {"_id": 1, "n": number(documents)};
                write_document(out, &cursor("firstBatch", vec![counted.into()]));
            }
            Command::GetParameter | Command::SetParameter => {
                unreachable!("their replies are made when they arrive")
            }
            Command::Other => numbered(out, &self.written, 1),
            Command::Unknown => write_document(out, &error(59)),
        }
    }

    fn not_found(&self, out: &mut Vec<u8>, command: Command) {
        match command {
            Command::Find(_) => write_document(out, &cursor("firstBatch", Vec::new())),
            Command::GetMore(_) => write_document(out, &cursor("nextBatch", Vec::new())),
            Command::Update { .. } => numbered(out, &self.updated, 0),
            _ => numbered(out, &self.written, 0),
        }
    }

    /// A cursor reply with any number of canned documents, encoded manually to avoid allocations. Their keys ascend
    /// from `key`.
    fn batch(&self, out: &mut Vec<u8>, name: &str, batch: Batch, key: Option<Key>) {
        let key = key.as_ref().map_or(OWN_KEY, Key::text);
        let fitting = (MAX_BATCH_BYTES / self.whole_bytes(key)).max(1) as u32;
        let documents = batch.documents.min(fitting);
        let remaining = batch.remaining.saturating_add(batch.documents - documents);
        let cursor_id = Batch { documents, remaining }.cursor_id();
        let whole = begin_document(out);
        element(out, 0x03, "cursor");
        let cursor = begin_document(out);
        element(out, 0x04, name);
        let array = begin_document(out);
        for index in 0..documents {
            out.push(0x03);
            write_decimal(out, index);
            out.push(0);
            self.document(out, key, index);
        }
        end_document(out, array);
        element(out, 0x12, "id");
        out.extend_from_slice(&cursor_id.to_le_bytes());
        element(out, 0x02, "ns");
        out.extend_from_slice(&(NAMESPACE.len() as i32 + 1).to_le_bytes());
        out.extend_from_slice(NAMESPACE.as_bytes());
        out.push(0);
        end_document(out, cursor);
        element(out, 0x01, "ok");
        out.extend_from_slice(&1.0_f64.to_le_bytes());
        end_document(out, whole);
    }

    /// The canned document with the key, or with one that sorts after it.
    fn document(&self, out: &mut Vec<u8>, key: &[u8], index: u32) {
        let document = begin_document(out);
        element(out, 0x02, "_id");
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(key);
        if index > 0 {
            // Suffixes have the same number of digits, so that they sort like numbers.
            write_decimal(out, FIRST_SUFFIX + index);
        }
        out.push(0);
        let bytes = (out.len() - length - 4) as i32;
        patch(out, length, bytes);
        out.extend_from_slice(&self.fields);
        end_document(out, document);
    }

    /// Maximum size of a document with this key.
    fn whole_bytes(&self, key: &[u8]) -> usize {
        /// Length and end of the document, kind, name, length and end of the key, and a suffix.
        const REST: usize = 4 + 1 + 1 + 4 + 4 + 1 + 10;
        self.fields.len() + key.len() + REST
    }

    fn collection_stats(&self, documents: u64) -> Document {
        let size = number(documents.saturating_mul(self.whole_bytes(OWN_KEY) as u64));
        doc! {
            "ns": NAMESPACE,
            "count": number(documents),
            "size": size.clone(),
            "storageSize": size,
            "avgObjSize": i64::from(self.document_bytes),
            "nindexes": 1,
            "ok": 1.0,
        }
    }
}

/// The namespace in all cursors. Clients do not compare it with the requested one.
const NAMESPACE: &str = "ycsb.usertable";
/// Key of a document if none was requested. It fits ordered and hashed plans, with any padding.
const OWN_KEY: &[u8] = b"user00000000004294967295";
/// Added to the position of a document after the first one of a batch, to form its key.
const FIRST_SUFFIX: u32 = 1_000_000_000;

/// Appends `template`, which begins with `n`, with this `n`.
#[inline]
fn numbered(out: &mut Vec<u8>, template: &[u8], n: u32) {
    let start = out.len();
    out.extend_from_slice(template);
    patch(out, start + N_OFFSET, n as i32);
}

#[inline]
fn patch(out: &mut [u8], offset: usize, value: i32) {
    out[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

fn element(out: &mut Vec<u8>, kind: u8, name: &str) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

fn write_decimal(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(decimal(u64::from(value), &mut [0; MAX_DIGITS]));
}

/// For rare replies.
fn write_document(out: &mut Vec<u8>, document: &Document) {
    document
        .to_writer(out)
        .expect("our own documents have no name with a zero byte, and memory takes all bytes");
}

/// The smaller integer type that holds it, as on servers.
fn number(value: u64) -> Bson {
    match i32::try_from(value) {
        Ok(value) => Bson::Int32(value),
        Err(_) => Bson::Int64(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

fn cursor(batch_name: &str, documents: Vec<Bson>) -> Document {
    doc! {"cursor": {batch_name: documents, "id": 0_i64, "ns": NAMESPACE}, "ok": 1.0}
}

fn error(code: i32) -> Document {
    let mut reply = refusal(code, &message(code));
    if code == RATE_LIMIT_EXCEEDED {
        reply.insert("errorLabels", ["SystemOverloadedError", "RetryableError"].to_vec());
    }
    reply
}

/// Reply that refuses a command.
pub(super) fn refusal(code: i32, message: &str) -> Document {
    doc! {"ok": 0.0, "errmsg": message, "code": code, "codeName": name_or_location(code)}
}

fn write_error(code: i32) -> Document {
    doc! {"n": 0, "writeErrors": [{"index": 0, "code": code, "errmsg": message(code)}], "ok": 1.0}
}

fn message(code: i32) -> String {
    match code {
        59 => "no such command".into(),
        11_000 => "E11000 duplicate key error collection".into(),
        code => format!("configured fault {code}"),
    }
}

fn canned_fields(document_bytes: u32, seed: u64) -> Document {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut document = Document::new();
    for field in 0..FIELDS {
        // The first fields get the remainder.
        let length = document_bytes / FIELDS + u32::from(field < document_bytes % FIELDS);
        let bytes: Vec<u8> = (0..length).map(|_| rng.random_range(b' '..=b'~')).collect();
        let subtype = bson::spec::BinarySubtype::Generic;
        document.insert(format!("field{field}"), bson::Binary { subtype, bytes });
    }
    document
}

fn hello(wire_version: i32) -> Document {
    doc! {
        "helloOk": true,
        "ismaster": true,
        "isWritablePrimary": true,
        "maxBsonObjectSize": 16 * 1024 * 1024,
        "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000,
        "localTime": bson::DateTime::now(),
        "logicalSessionTimeoutMinutes": 30,
        "connectionId": 1,
        "minWireVersion": 0,
        "maxWireVersion": wire_version,
        "readOnly": false,
        "ok": 1.0,
    }
}

fn build_info(behaviour: &Behaviour) -> Document {
    let [major, minor, patch, candidate] = behaviour.version_numbers();
    doc! {
        "version": &behaviour.version,
        "versionArray": [major, minor, patch, candidate],
        "gitVersion": "dyno-responder",
        "modules": Bson::Array(Vec::new()),
        "bits": 64,
        "debug": false,
        "maxBsonObjectSize": 16 * 1024 * 1024,
        "storageEngines": ["null"],
        "ok": 1.0,
    }
}

fn server_status(version: &str) -> Document {
    doc! {
        "process": "dyno-responder",
        "version": version,
        "storageEngine": {"name": "null", "persistent": false},
        "ok": 1.0,
    }
}

fn list_collections() -> Document {
    let collection = doc! {"name": "usertable", "type": "collection", "options": {}, "info": {"readOnly": false}};
    cursor("firstBatch", vec![collection.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(request: Request, documents: u64) -> (Vec<u8>, Document) {
        let mut out = b"earlier".to_vec();
        let mut replies = Replies::new(&Behaviour::default()).unwrap();
        replies.append(&mut out, &request, None, documents);
        let message = out.split_off(7);
        assert_eq!(out, b"earlier");
        let length = i32::from_le_bytes(message[..4].try_into().unwrap());
        assert_eq!(length as usize, message.len());
        assert_eq!(message[8..12], request.request_id.to_le_bytes());
        let body = if request.legacy { 36 } else { 21 };
        let document = Document::from_reader(&message[body..]).unwrap();
        (message, document)
    }

    fn document(command: Command) -> Document {
        let request = Request {
            request_id: 77,
            command,
            key: Key::new(b"user5"),
            wants_reply: true,
            legacy: false,
        };
        reply(request, 12_345).1
    }

    #[test]
    fn a_batch_written_by_hand_equals_one_that_is_serialized() {
        let batch = Batch { documents: 12, remaining: 3 };
        let canned = |key: String| {
            let mut canned = doc! {"_id": key};
            canned.extend(canned_fields(1000, 1));
            Bson::from(canned)
        };
        let keys = (0..12).map(|index| match index {
            0 => "user5".to_owned(),
            index => format!("user5{}", 1_000_000_000 + index),
        });
        let mut expected = cursor("firstBatch", keys.map(canned).collect());
        expected.get_document_mut("cursor").unwrap().insert("id", batch.cursor_id());
        assert_eq!(document(Command::Find(batch)), expected);
        let single = Batch { documents: 1, remaining: 0 };
        let found = document(Command::Find(single));
        assert_eq!(found, cursor("firstBatch", vec![canned("user5".into())]));
        let more = document(Command::GetMore(single));
        let own = String::from_utf8(OWN_KEY.to_vec()).unwrap();
        assert_eq!(more, cursor("nextBatch", vec![canned(own)]));
    }

    #[test]
    fn the_values_of_the_canned_document_add_up_to_its_size() {
        for size in [0, 7, 1000, 1003] {
            let document = canned_fields(size, 1);
            let sum: usize = (0..10)
                .map(|i| document.get_binary_generic(format!("field{i}")).unwrap().len())
                .sum();
            assert_eq!(sum, size as usize);
        }
    }

    #[test]
    fn numbers_are_patched_into_the_replies_to_writes() {
        assert_eq!(document(Command::Insert { documents: 1000 }), doc! {"n": 1000, "ok": 1.0});
        assert_eq!(document(Command::Delete { statements: 2 }), doc! {"n": 2, "ok": 1.0});
        let updated = doc! {"n": 3, "nModified": 3, "ok": 1.0};
        assert_eq!(document(Command::Update { statements: 3 }), updated);
    }

    #[test]
    fn counts_report_the_documents() {
        assert_eq!(document(Command::Count).get_i32("n").unwrap(), 12_345);
        assert_eq!(document(Command::CollectionStats).get_i32("count").unwrap(), 12_345);
        let counted = document(Command::Aggregate);
        let batch = counted.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(batch[0].as_document().unwrap().get_i32("n").unwrap(), 12_345);
        assert_eq!(number(5_000_000_000), Bson::Int64(5_000_000_000));
    }

    #[test]
    fn an_old_style_request_gets_an_old_style_reply() {
        let request = Request {
            request_id: 5,
            command: Command::Hello,
            key: None,
            wants_reply: true,
            legacy: true,
        };
        let (message, document) = reply(request, 0);
        assert_eq!(message[12..16], OP_REPLY.to_le_bytes());
        assert!(document.get_bool("ismaster").unwrap());
    }

    #[test]
    fn a_batch_stays_below_the_size_of_a_message() {
        let behaviour = Behaviour { document_bytes: 1_000_000, ..Behaviour::default() };
        let mut replies = Replies::new(&behaviour).unwrap();
        let batch = Batch { documents: 100, remaining: 0 };
        let request = Request {
            request_id: 1,
            command: Command::Find(batch),
            key: Key::new(b"user5"),
            wants_reply: true,
            legacy: false,
        };
        let mut out = Vec::new();
        replies.append(&mut out, &request, None, 0);
        assert!(out.len() < 48_000_000);
        let document = Document::from_reader(&out[21..]).unwrap();
        let cursor = document.get_document("cursor").unwrap();
        let sent = cursor.get_array("firstBatch").unwrap().len() as u32;
        let left = Batch { documents: 0, remaining: 100 - sent };
        assert!(sent < 100);
        assert_eq!(cursor.get_i64("id").unwrap(), left.cursor_id());
    }
}
