//! Messages around commands and documents that are encoded elsewhere.

use super::transaction::{NUMBER_START, SESSION_START};
use super::{CommandSet, FLAGS_AND_BODY_KIND, Transaction};
use crate::bson::patch_length;
use crate::frame;

impl CommandSet {
    /// Inserts documents by one unordered command. `documents` holds them encoded, one after the other, and no more bytes
    /// than a message can have.
    pub fn insert_documents(&self, out: &mut Vec<u8>, request_id: i32, documents: &[u8]) {
        let start = self.insert_unordered.begin(out, request_id);
        out.extend_from_slice(documents);
        self.insert_unordered.finish(out, start);
    }
}

/// `autocommit: false`: an element of all commands in a transaction.
pub const IN_TRANSACTION: &[u8] = b"\x08autocommit\0\0";
/// `startTransaction: true`: an element of the first command in a transaction.
pub const START_TRANSACTION: &[u8] = b"\x08startTransaction\0\x01";

/// Appends a message with an encoded command. `more` holds further elements of the command, such as `$db`; a transaction adds
/// a session and the number of the write or transaction.
pub fn write_command(
    out: &mut Vec<u8>,
    request_id: i32,
    command: &[u8],
    more: &[&[u8]],
    transaction: Option<&Transaction>,
) {
    let start = frame::begin_message(out, request_id, 0);
    out.extend_from_slice(&FLAGS_AND_BODY_KIND);
    let document = out.len();
    // Without the final zero.
    out.extend_from_slice(&command[..command.len() - 1]);
    more.iter().for_each(|elements| out.extend_from_slice(elements));
    if let Some(Transaction { session, number }) = transaction {
        out.extend_from_slice(SESSION_START);
        out.extend_from_slice(session);
        out.extend_from_slice(NUMBER_START);
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.push(0);
    patch_length(out, document);
    frame::finish_message(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandOptions;
    use ::bson::{Document, doc};

    /// Body and sequence of a message.
    fn parts(message: &[u8]) -> (Document, Vec<Document>) {
        let frame = frame::parse(message).unwrap().unwrap();
        assert_eq!(frame.length, message.len());
        let read = frame.message().unwrap();
        let mut documents = Vec::new();
        for sequence in read.sequences() {
            let mut rest = sequence.documents;
            while !rest.is_empty() {
                documents.push(Document::from_reader(&mut rest).unwrap());
            }
        }
        (Document::from_reader(read.document).unwrap(), documents)
    }

    #[test]
    fn command_gets_its_database_and_session() {
        let command = doc! { "ping": 1 }.to_vec().unwrap();
        let more = doc! { "$db": "shop" }.to_vec().unwrap();
        let more = &more[4..more.len() - 1];
        let mut out = vec![7];
        write_command(&mut out, 3, &command, &[more], None);
        assert_eq!(parts(&out[1..]).0, doc! { "ping": 1, "$db": "shop" });
        out.clear();
        let transaction = Transaction { session: [9; 16], number: 5 };
        write_command(
            &mut out,
            3,
            &command,
            &[more, IN_TRANSACTION, START_TRANSACTION],
            Some(&transaction),
        );
        let found = parts(&out).0;
        assert_eq!(found.get_i64("txnNumber").unwrap(), 5);
        assert_eq!(found.get_bool("autocommit").ok(), Some(false));
        assert_eq!(found.get_bool("startTransaction").ok(), Some(true));
        let session = found.get_document("lsid").unwrap().get_binary_generic("id");
        assert!(session.is_err(), "a session has its own subtype");
    }

    #[test]
    fn encoded_documents_are_inserted_together() {
        let options = CommandOptions {
            database: "shop".into(),
            collection: "orders".into(),
            ..CommandOptions::default()
        };
        let documents = [doc! { "_id": 1 }, doc! { "_id": 2, "a": [1] }];
        let bytes: Vec<u8> = documents.iter().flat_map(|one| one.to_vec().unwrap()).collect();
        let mut out = Vec::new();
        CommandSet::new(&options).unwrap().insert_documents(&mut out, 1, &bytes);
        let (body, found) = parts(&out);
        assert_eq!(body.get_str("insert").unwrap(), "orders");
        assert_eq!(found, documents);
    }
}
