//! Parses client commands: the few properties that a canned reply depends on.

use dyno_wire::bson::{Document, Element, Value};
use dyno_wire::frame::{FLAG_MORE_TO_COME, Frame, Opcode};

/// First batch size of a find without a batch size, as on servers.
const DEFAULT_BATCH: u64 = 101;
/// Upper half of the cursor IDs; the lower half is the number of remaining documents, so that cursors need no state
/// between batches.
const CURSOR_MARK: i64 = 0x0044_594E_0000_0000;
/// Fixed part of an `OP_QUERY` before the collection's name: its flags.
const QUERY_FLAGS_BYTES: usize = 4;
/// Part of an `OP_QUERY` between the collection's name and the document: skip and limit.
const QUERY_NUMBERS_BYTES: usize = 8;

/// One command of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) request_id: i32,
    pub(super) command: Command,
    /// The requested `_id`, or the start of a scan.
    pub(super) key: Option<Key>,
    /// False when the client set `moreToCome`: unacknowledged writes.
    pub(super) wants_reply: bool,
    /// Whether it was sent as `OP_QUERY`, so that the reply is an `OP_REPLY`. Old drivers start with one.
    pub(super) legacy: bool,
}

/// A text `_id`, stored inline because requests wait in a queue and are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    length: u8,
    bytes: [u8; Key::LONGEST],
}

impl Key {
    /// Longest key that is answered as requested; YCSB's have 24 bytes. Longer ones get our own key.
    const LONGEST: usize = 63;

    pub(super) fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; Key::LONGEST];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let length = text.len() as u8;
        Some(Key { length, bytes })
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Kinds of commands, with the properties that determine their replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Command {
    Hello,
    BuildInfo,
    ServerStatus,
    CollectionStats,
    ListCollections,
    Count,
    /// An aggregation that counts.
    Aggregate,
    Drop,
    GetParameter,
    SetParameter,
    /// Anything that is answered by `{ok: 1}`.
    Acknowledge,
    Find(Batch),
    GetMore(Batch),
    Insert {
        documents: u32,
    },
    Update {
        statements: u32,
    },
    Delete {
        statements: u32,
    },
    /// A command of an own operation that changes one document, answered by `{n: 1, ok: 1}`.
    Other,
    Unknown,
}

/// Documents of a cursor that one reply returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Batch {
    /// Documents in this reply.
    pub(super) documents: u32,
    /// Documents in later replies.
    pub(super) remaining: u32,
}

impl Batch {
    /// The first `batch` of `total` documents; no limit when `batch` is 0.
    fn of(total: u64, batch: u64) -> Self {
        let total = total.min(u64::from(u32::MAX));
        let documents = if batch == 0 { total } else { total.min(batch) };
        Batch { documents: documents as u32, remaining: (total - documents) as u32 }
    }

    /// ID of the cursor for the rest; 0 if nothing is left.
    pub(super) fn cursor_id(self) -> i64 {
        match self.remaining {
            0 => 0,
            remaining => CURSOR_MARK | i64::from(remaining),
        }
    }
}

impl Command {
    /// Whether the command takes service time and can have faults.
    pub(super) fn is_data(self) -> bool {
        matches!(self, Command::Find(_) | Command::GetMore(_) | Command::Other) || self.is_write()
    }

    pub(super) fn is_write(self) -> bool {
        matches!(self, Command::Insert { .. } | Command::Update { .. } | Command::Delete { .. })
    }
}

/// Reads a command with its document; `None` if the frame has none that can be answered.
#[inline]
pub(super) fn read<'a>(frame: &Frame<'a>) -> Option<(Request, Document<'a>)> {
    let (body, in_sequences, wants_reply) = match frame.opcode {
        Opcode::Message => {
            let message = frame.message().ok()?;
            let statements = message.sequences().map(|s| count_documents(s.documents)).sum();
            let wants_reply = message.flags & FLAG_MORE_TO_COME == 0;
            (Document::new(message.document).ok()?, statements, wants_reply)
        }
        Opcode::Query => (query_document(frame.body)?, 0, true),
        // No compression was agreed on, and servers do not receive replies.
        Opcode::Compressed | Opcode::Reply => return None,
    };
    let command = command(body, in_sequences)?;
    let request = Request {
        request_id: frame.request_id,
        command,
        key: key_of(command, body),
        wants_reply,
        legacy: frame.opcode == Opcode::Query,
    };
    Some((request, body))
}

/// The document of an `OP_QUERY`: flags, collection name, skip, limit, document.
fn query_document(body: &[u8]) -> Option<Document<'_>> {
    let named = body.get(QUERY_FLAGS_BYTES..)?;
    let name_end = named.iter().position(|&byte| byte == 0)? + 1;
    let (document, _) = Document::split(named.get(name_end + QUERY_NUMBERS_BYTES..)?).ok()?;
    Some(document)
}

/// The command named by the first element; `in_sequences` documents came outside the body.
#[inline]
fn command(body: Document<'_>, in_sequences: u32) -> Option<Command> {
    let first = body.elements().next()?.ok()?;
    Some(match first.name {
        b"find" => Command::Find(find_batch(body)),
        b"getMore" => {
            let id = first.number().ok().flatten().unwrap_or(0);
            let left = if id & !0xFFFF_FFFF == CURSOR_MARK { id & 0xFFFF_FFFF } else { 0 };
            Command::GetMore(Batch::of(left as u64, number(body, "batchSize").unwrap_or(0)))
        }
        b"insert" => Command::Insert { documents: in_sequences + array_length(body, "documents") },
        b"update" => Command::Update { statements: in_sequences + array_length(body, "updates") },
        b"delete" => Command::Delete { statements: in_sequences + array_length(body, "deletes") },
        b"hello" | b"isMaster" | b"ismaster" => Command::Hello,
        b"buildInfo" | b"buildinfo" => Command::BuildInfo,
        b"serverStatus" => Command::ServerStatus,
        b"collStats" | b"collstats" => Command::CollectionStats,
        b"listCollections" => Command::ListCollections,
        b"count" => Command::Count,
        b"aggregate" => aggregate(body),
        b"drop" | b"dropDatabase" => Command::Drop,
        b"getParameter" => Command::GetParameter,
        b"setParameter" => Command::SetParameter,
        b"ping" | b"endSessions" | b"killCursors" | b"create" | b"createIndexes"
        | b"killSessions" | b"refreshSessions" => Command::Acknowledge,
        b"listIndexes" | b"profile" => Command::Unknown,
        _ if is_administrative(body) => Command::Unknown,
        _ => Command::Other,
    })
}

/// Whether a command is for the database `admin`, to which own operations send none.
fn is_administrative(body: Document<'_>) -> bool {
    let database = body.find("$db").ok().flatten();
    database.is_some_and(|database| matches!(database.value(), Ok(Value::String("admin"))))
}

/// Batch of a find: `limit` documents of an endless collection, or one without a limit.
fn find_batch(body: Document<'_>) -> Batch {
    let (mut limit, mut batch) = (1, DEFAULT_BATCH);
    for element in body.elements().map_while(Result::ok) {
        let value = || element.number().ok().flatten().unwrap_or(0).unsigned_abs();
        match element.name {
            b"limit" => limit = value().max(1),
            b"batchSize" => batch = value(),
            _ => {}
        }
    }
    Batch::of(limit, batch)
}

/// An aggregation that groups or counts returns the number of documents; any other returns as many documents as its
/// limit.
fn aggregate(body: Document<'_>) -> Command {
    let mut limit = 1;
    let stages = body.find("pipeline").ok().flatten();
    let stages = stages.and_then(|stages| stages.document().ok().flatten());
    let elements = stages.into_iter().flat_map(|stages| stages.elements());
    for stage in elements.map_while(Result::ok) {
        let stage = stage.document().ok().flatten();
        match stage.and_then(|stage| stage.elements().next()?.ok()) {
            Some(stage) if matches!(stage.name, b"$group" | b"$count") => {
                return Command::Aggregate;
            }
            Some(stage) if stage.name == b"$limit" => {
                limit = stage.number().ok().flatten().unwrap_or(1).unsigned_abs();
            }
            Some(stage) if stage.name == b"$sample" => {
                let size = stage.document().ok().flatten();
                limit = size.and_then(|size| number(size, "size")).unwrap_or(1);
            }
            _ => {}
        }
    }
    Command::Find(Batch::of(limit.max(1), 0))
}

/// The requested key of a find.
#[inline]
fn key_of(command: Command, body: Document<'_>) -> Option<Key> {
    if !matches!(command, Command::Find(_)) {
        return None;
    }
    let filter = body.find("filter").ok()??.document().ok()??;
    let asked = filter.find("_id").ok()??;
    // A condition, such as `{$gte: "user5"}`, starts at its value.
    let text = |element: Element<'_>| match element.value() {
        Ok(Value::String(text)) => Key::new(text.as_bytes()),
        _ => None,
    };
    match asked.document().ok().flatten() {
        Some(condition) => text(condition.elements().next()?.ok()?),
        None => text(asked),
    }
}

fn number(body: Document<'_>, name: &str) -> Option<u64> {
    let value = body.find(name).ok()??.number().ok()??;
    Some(value.unsigned_abs())
}

/// Number of elements of the array `name`, or 0.
fn array_length(body: Document<'_>, name: &str) -> u32 {
    let array =
        body.find(name).ok().flatten().and_then(|element| element.document().ok().flatten());
    array.map_or(0, |array| array.elements().map_while(Result::ok).count() as u32)
}

/// Number of consecutive documents in `bytes`.
fn count_documents(mut bytes: &[u8]) -> u32 {
    let mut count = 0;
    while let Ok((_, rest)) = Document::split(bytes) {
        count += 1;
        bytes = rest;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn body(command_document: &bson::Document) -> Vec<u8> {
        command_document.to_vec().unwrap()
    }

    fn parsed(command_document: &bson::Document) -> Command {
        let bytes = body(command_document);
        command(Document::new(&bytes).unwrap(), 0).unwrap()
    }

    #[test]
    fn a_find_returns_its_limit_in_batches_as_servers_make_them() {
        let batch = |documents, remaining| Command::Find(Batch { documents, remaining });
        assert_eq!(parsed(&doc! {"find": "c", "filter": {"_id": "x"}}), batch(1, 0));
        assert_eq!(parsed(&doc! {"find": "c", "limit": 7}), batch(7, 0));
        assert_eq!(parsed(&doc! {"find": "c", "limit": 250_i64}), batch(101, 149));
        assert_eq!(parsed(&doc! {"find": "c", "limit": 250, "batchSize": 200}), batch(200, 50));
        assert_eq!(parsed(&doc! {"find": "c", "limit": -1}), batch(1, 0));
    }

    #[test]
    fn a_cursor_id_carries_the_remaining_count() {
        let id = Batch::of(250, 101).cursor_id();
        let batch = |documents, remaining| Command::GetMore(Batch { documents, remaining });
        assert_eq!(parsed(&doc! {"getMore": id, "collection": "c"}), batch(149, 0));
        assert_eq!(parsed(&doc! {"getMore": id, "batchSize": 100}), batch(100, 49));
        assert_eq!(parsed(&doc! {"getMore": 12_345_i64}), batch(0, 0));
        assert_eq!(Batch::of(5, 0).cursor_id(), 0);
    }

    #[test]
    fn written_documents_are_counted_in_arrays_and_in_sequences() {
        let array = doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]};
        assert_eq!(parsed(&array), Command::Insert { documents: 2 });
        let one = body(&doc! {"q": {}});
        assert_eq!(count_documents(&[one.clone(), one.clone(), one].concat()), 3);
        let bytes = body(&doc! {"delete": "c"});
        let parsed = command(Document::new(&bytes).unwrap(), 4);
        assert_eq!(parsed, Some(Command::Delete { statements: 4 }));
    }

    #[test]
    fn command_of_an_own_operation_is_known() {
        assert_eq!(parsed(&doc! {"findAndModify": "c", "$db": "shop"}), Command::Other);
        assert!(Command::Other.is_data());
    }

    #[test]
    fn only_reads_and_writes_of_documents_are_data_commands() {
        assert!(parsed(&doc! {"find": "c"}).is_data());
        assert!(parsed(&doc! {"update": "c"}).is_data());
        for control in [
            doc! {"hello": 1},
            doc! {"ping": 1},
            doc! {"count": "c"},
            doc! {"getParameter": "*"},
            doc! {"setParameter": 1, "p": 1},
            doc! {"frobnicate": 1, "$db": "admin"},
        ] {
            assert!(!parsed(&control).is_data(), "{control}");
        }
    }
}
