//! Reads the parts of a reply that a load generator needs: success, number of documents, failures, and the documents of
//! a cursor as slices. Nothing is copied or built.

use crate::bson::{BsonError, Document, Element, Value};
use crate::frame::{self, FLAG_MORE_TO_COME, FrameError};
use thiserror::Error;

/// Why bytes are not a reply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The sections of the message are malformed.
    #[error("reply is not a valid message")]
    Frame(#[source] FrameError),
    /// The document is malformed.
    #[error("reply is not a valid document")]
    Bson(#[source] BsonError),
    /// A field has an unexpected type.
    #[error("field `{field}` of the reply has an unexpected type")]
    Type { field: &'static str },
    /// The required field `ok` is missing.
    #[error("reply has no field `ok`")]
    MissingOk,
    /// The server announces another reply, which was not requested.
    #[error("server announces another reply that was not requested")]
    MoreToCome,
}

impl From<BsonError> for ReplyError {
    fn from(error: BsonError) -> Self {
        ReplyError::Bson(error)
    }
}

impl From<FrameError> for ReplyError {
    fn from(error: FrameError) -> Self {
        ReplyError::Frame(error)
    }
}

/// Content of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reply<'a> {
    /// Whether the command as a whole was executed. Single writes may still have failed.
    pub ok: bool,
    /// Code of the command's failure; 0 if none.
    pub code: i32,
    /// Name of `code`, or empty.
    pub code_name: &'a str,
    /// Text of the command's failure, or empty.
    pub message: &'a str,
    /// Documents inserted, deleted, or matched and upserted by updates.
    pub n: i64,
    /// The first failed single write.
    pub first_write_error: Option<Refusal<'a>>,
    /// The writes were executed, but not with the requested durability.
    pub write_concern_error: Option<Refusal<'a>>,
    /// Cursor of a find or getMore.
    pub cursor: Option<Cursor<'a>>,
    pub labels: ErrorLabels,
    document: &'a [u8],
}

/// Error labels that decide whether another attempt is useful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorLabels {
    /// `RetryableWriteError`: the same write may be sent again.
    pub retryable_write: bool,
    /// `RetryableError`: the command was not started and may be sent again.
    pub retryable: bool,
    /// `SystemOverloadedError`: the server sheds load.
    pub overloaded: bool,
    /// `NoWritesPerformed`: this attempt wrote nothing.
    pub no_writes_performed: bool,
    /// `TransientTransactionError`: the whole transaction may be performed again.
    pub transient_transaction: bool,
    /// `UnknownTransactionCommitResult`: the commit may be sent again.
    pub unknown_commit: bool,
}

/// Refusal of a command or a single write by the server, or failure to reach a write concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Error code, or 0.
    pub code: i32,
    /// Name of `code`, or empty.
    pub code_name: &'a str,
    /// Error text, or empty.
    pub message: &'a str,
}

/// One batch of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor<'a> {
    /// Cursor ID for `getMore`; 0 at the end.
    pub id: i64,
    pub count: u32,
    batch: Option<Document<'a>>,
}

impl<'a> Cursor<'a> {
    /// The documents of this batch. Their lengths and ends have been checked, but not their elements.
    pub fn documents(&self) -> impl Iterator<Item = Document<'a>> + use<'a> {
        // `read` has walked through the batch, so no error is possible here.
        let elements = self.batch.into_iter().flat_map(|batch| batch.elements());
        elements.map_while(|element| element.ok()?.document().ok()?)
    }
}

impl<'a> Reply<'a> {
    /// The first failure in the reply: of the command, a single write, or the write concern.
    pub fn refusal(&self) -> Option<Refusal<'a>> {
        let mut refusal = match self.first_write_error {
            _ if !self.ok => {
                Refusal { code: self.code, code_name: self.code_name, message: self.message }
            }
            Some(error) => error,
            None => self.write_concern_error?,
        };
        // Failures of single writes have only a code and a text.
        if refusal.code_name.is_empty() {
            refusal.code_name = crate::code::name(refusal.code).unwrap_or_default();
        }
        Some(refusal)
    }

    /// The whole reply, for other fields.
    pub fn document(&self) -> Result<Document<'a>, ReplyError> {
        Ok(Document::new(self.document)?)
    }
}

/// Reads a reply from the body of an `OP_MSG` frame.
#[inline]
pub fn read(body: &[u8]) -> Result<Reply<'_>, ReplyError> {
    let message = frame::message(body)?;
    if message.flags & FLAG_MORE_TO_COME != 0 {
        return Err(ReplyError::MoreToCome);
    }
    read_document(message.document)
}

/// Reads a reply that is a bare document.
pub fn read_document(bytes: &[u8]) -> Result<Reply<'_>, ReplyError> {
    let mut reply = Reply { document: bytes, ..Reply::default() };
    let mut ok = None;
    for element in Document::new(bytes)?.elements() {
        let element = element?;
        match element.name {
            b"ok" => ok = Some(number(&element, "ok")? == 1),
            b"n" => reply.n = number(&element, "n")?,
            b"cursor" => reply.cursor = Some(cursor(&element)?),
            b"writeErrors" => read_write_errors(&mut reply, &element)?,
            b"writeConcernError" => {
                reply.write_concern_error = Some(refusal(&element, "writeConcernError")?);
            }
            b"code" => reply.code = code(&element)?,
            b"codeName" => reply.code_name = text(&element, "codeName")?,
            b"errmsg" => reply.message = text(&element, "errmsg")?,
            b"errorLabels" => read_labels(&mut reply.labels, &element)?,
            _ => {}
        }
    }
    reply.ok = ok.ok_or(ReplyError::MissingOk)?;
    Ok(reply)
}

fn cursor<'a>(element: &Element<'a>) -> Result<Cursor<'a>, ReplyError> {
    let mut cursor = Cursor::default();
    for part in document(element, "cursor")?.elements() {
        let part = part?;
        match part.name {
            b"id" => cursor.id = number(&part, "cursor.id")?,
            b"firstBatch" | b"nextBatch" => {
                let batch = document(&part, "cursor batch")?;
                cursor.count = count_documents(batch)?;
                cursor.batch = Some(batch);
            }
            _ => {}
        }
    }
    if cursor.batch.is_none() {
        return Err(ReplyError::Type { field: "cursor batch" });
    }
    Ok(cursor)
}

fn count_documents(batch: Document<'_>) -> Result<u32, ReplyError> {
    let mut count = 0;
    for element in batch.elements() {
        document(&element?, "cursor batch")?;
        count += 1;
    }
    Ok(count)
}

fn read_write_errors<'a>(reply: &mut Reply<'a>, element: &Element<'a>) -> Result<(), ReplyError> {
    for element in document(element, "writeErrors")?.elements() {
        reply.first_write_error.get_or_insert(refusal(&element?, "writeErrors")?);
    }
    Ok(())
}

fn read_labels(labels: &mut ErrorLabels, element: &Element<'_>) -> Result<(), ReplyError> {
    for element in document(element, "errorLabels")?.elements() {
        match text(&element?, "errorLabels")? {
            "RetryableWriteError" => labels.retryable_write = true,
            "RetryableError" => labels.retryable = true,
            "SystemOverloadedError" => labels.overloaded = true,
            "NoWritesPerformed" => labels.no_writes_performed = true,
            "TransientTransactionError" => labels.transient_transaction = true,
            "UnknownTransactionCommitResult" => labels.unknown_commit = true,
            _ => {}
        }
    }
    Ok(())
}

/// An embedded failure description.
fn refusal<'a>(element: &Element<'a>, field: &'static str) -> Result<Refusal<'a>, ReplyError> {
    let mut refusal = Refusal::default();
    for part in document(element, field)?.elements() {
        let part = part?;
        match part.name {
            b"code" => refusal.code = code(&part)?,
            b"codeName" => refusal.code_name = text(&part, "codeName")?,
            b"errmsg" => refusal.message = text(&part, "errmsg")?,
            _ => {}
        }
    }
    Ok(refusal)
}

fn code(element: &Element<'_>) -> Result<i32, ReplyError> {
    let code = number(element, "code")?;
    i32::try_from(code).map_err(|_| ReplyError::Type { field: "code" })
}

#[inline]
fn number(element: &Element<'_>, field: &'static str) -> Result<i64, ReplyError> {
    element.number()?.ok_or(ReplyError::Type { field })
}

fn text<'a>(element: &Element<'a>, field: &'static str) -> Result<&'a str, ReplyError> {
    match element.value()? {
        Value::String(text) => Ok(text),
        _ => Err(ReplyError::Type { field }),
    }
}

#[inline]
fn document<'a>(element: &Element<'a>, field: &'static str) -> Result<Document<'a>, ReplyError> {
    element.document()?.ok_or(ReplyError::Type { field })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::bson::{self, doc};

    fn encode(document: &bson::Document) -> Vec<u8> {
        let mut body = vec![0; 5];
        body.extend(document.to_vec().unwrap());
        body
    }

    #[test]
    fn a_find_returns_its_documents_as_slices() {
        let documents = [doc! { "_id": "user1", "field0": 1 }, doc! { "_id": "user2" }];
        let body = encode(&doc! {
            "cursor": { "firstBatch": documents.to_vec(), "id": 99i64, "ns": "db.c" }, "ok": 1.0,
        });
        let reply = read(&body).unwrap();
        let cursor = reply.cursor.unwrap();
        assert!(reply.ok);
        assert_eq!((cursor.id, cursor.count), (99, 2));
        let found: Vec<_> = cursor.documents().collect();
        for (found, expected) in found.iter().zip(&documents) {
            let expected = expected.to_vec().unwrap();
            assert_eq!(found.as_bytes(), expected);
        }
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn an_empty_batch_is_a_document_not_found() {
        let body = encode(&doc! { "cursor": {"id": 0i64, "nextBatch": []}, "ok": 1 });
        let cursor = read(&body).unwrap().cursor.unwrap();
        assert_eq!((cursor.id, cursor.count), (0, 0));
        assert_eq!(cursor.documents().count(), 0);
    }

    #[test]
    fn literal_bytes_of_an_update_are_read() {
        let body = b"\0\0\0\0\0\x27\0\0\0\x10n\0\x01\0\0\0\x10nModified\0\x01\0\0\0\
                     \x01ok\0\0\0\0\0\0\0\xf0\x3f\0";
        let reply = read(body).unwrap();
        assert_eq!((reply.ok, reply.n), (true, 1));
        assert_eq!(reply.cursor, None);
    }

    #[test]
    fn a_failed_command_has_code_name_and_text() {
        let body = encode(&doc! {
            "ok": 0.0, "errmsg": "not authorized", "code": 13, "codeName": "Unauthorized",
            "$clusterTime": {"x": bson::Timestamp { time: 1, increment: 1 }},
        });
        let reply = read(&body).unwrap();
        assert!(!reply.ok);
        assert_eq!((reply.code, reply.code_name), (13, "Unauthorized"));
        assert_eq!(reply.message, "not authorized");
    }

    #[test]
    fn first_failed_write_is_shown() {
        let body = encode(&doc! {
            "n": 3, "upserted": [{"index": 1, "_id": "a"}],
            "writeErrors": [
                {"index": 2, "code": 11000, "errmsg": "duplicate key", "keyPattern": {"_id": 1}},
                {"index": 4, "code": 121, "errmsg": "validation"},
            ],
            "writeConcernError": {"code": 64, "codeName": "WriteConcernTimeout", "errmsg": "waiting"},
            "ok": 1.0,
        });
        let reply = read(&body).unwrap();
        let first = Refusal { code: 11000, code_name: "", message: "duplicate key" };
        assert_eq!(reply.first_write_error, Some(first));
        assert_eq!(reply.n, 3);
        let concern = Refusal { code: 64, code_name: "WriteConcernTimeout", message: "waiting" };
        assert_eq!(reply.write_concern_error, Some(concern));
        let refusal = Refusal { code: 11000, code_name: "DuplicateKey", message: "duplicate key" };
        assert_eq!(reply.refusal(), Some(refusal));
    }

    #[test]
    fn error_labels_of_literal_bytes_are_read() {
        let body = b"\0\0\0\0\0\x69\0\0\0\x01ok\0\0\0\0\0\0\0\0\0\x10code\0\xce\x01\0\0\
                     \x04errorLabels\0\x41\0\0\0\
                     \x020\0\x16\0\0\0SystemOverloadedError\0\
                     \x021\0\x0f\0\0\0RetryableError\0\
                     \x022\0\x02\0\0\0x\0\0\0";
        let reply = read(body).unwrap();
        let expected = ErrorLabels { retryable: true, overloaded: true, ..ErrorLabels::default() };
        assert_eq!((reply.ok, reply.code, reply.labels), (false, 462, expected));
        let name = reply.refusal().map(|refusal| refusal.code_name);
        assert_eq!(name, Some("IngressRequestRateLimitExceeded"));
    }

    #[test]
    fn labels_of_a_retryable_write_are_read() {
        let body = encode(&doc! {
            "ok": 1, "n": 0, "errorLabels": ["RetryableWriteError", "NoWritesPerformed"],
            "writeConcernError": {"code": 91, "errmsg": "shutting down"},
        });
        let reply = read(&body).unwrap();
        assert!(reply.labels.retryable_write && reply.labels.no_writes_performed);
        assert!(!reply.labels.retryable && !reply.labels.overloaded);
        let refusal = reply.refusal().unwrap();
        assert_eq!((refusal.code, refusal.code_name), (91, "ShutdownInProgress"));
    }

    #[test]
    fn a_reply_that_succeeded_has_no_refusal() {
        assert_eq!(read(&encode(&doc! { "ok": 1 })).unwrap().refusal(), None);
    }

    #[test]
    fn ok_is_understood_in_every_numeric_type() {
        for (ok, expected) in [
            (bson::Bson::Int32(1), true),
            (bson::Bson::Int64(1), true),
            (bson::Bson::Boolean(true), true),
            (bson::Bson::Double(1.0), true),
            (bson::Bson::Double(0.0), false),
            (bson::Bson::Double(f64::NAN), false),
        ] {
            assert_eq!(read(&encode(&doc! { "ok": ok })).unwrap().ok, expected);
        }
    }

    #[test]
    fn replies_that_no_server_sends_are_errors() {
        for (document, field) in [
            (doc! { "ok": "yes" }, "ok"),
            (doc! { "n": "1", "ok": 1 }, "n"),
            (doc! { "cursor": 1, "ok": 1 }, "cursor"),
            (doc! { "cursor": {"id": 0}, "ok": 1 }, "cursor batch"),
            (doc! { "cursor": {"firstBatch": [1]}, "ok": 1 }, "cursor batch"),
            (doc! { "writeErrors": [1], "ok": 1 }, "writeErrors"),
            (doc! { "code": i64::MAX, "ok": 0 }, "code"),
            (doc! { "errmsg": 1, "ok": 0 }, "errmsg"),
            (doc! { "errorLabels": [1], "ok": 0 }, "errorLabels"),
        ] {
            assert_eq!(read(&encode(&document)), Err(ReplyError::Type { field }), "{document}");
        }
        assert_eq!(read(&encode(&doc! { "n": 1 })), Err(ReplyError::MissingOk));
        let mut body = encode(&doc! { "ok": 1 });
        body[0] = 2;
        assert_eq!(read(&body), Err(ReplyError::MoreToCome));
    }
}
