//! Compares commands with literal bytes, and with the `bson` crate's decoding.

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
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() })
}

/// The command as one document: sequences become arrays, as on the server.
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

fn encode_with(commands: &CommandSet, write: impl FnOnce(&CommandSet, &mut Vec<u8>)) -> Document {
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
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn an_update_has_these_bytes() {
    let mut out = Vec::new();
    commands().update(&mut out, 77, b"k", |fields| {
        fields.binary(0, 1).fill(0xff);
    });
    let expected = b"\x84\0\0\0\x4d\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
        \x29\0\0\0\x02update\0\x02\0\0\0c\0\x08ordered\0\x01\x02$db\0\x03\0\0\0db\0\0\
        \x01\x45\0\0\0updates\0\
        \x39\0\0\0\x03q\0\x10\0\0\0\x02_id\0\x02\0\0\0k\0\0\
        \x03u\0\x1e\0\0\0\x03$set\0\x13\0\0\0\x05field0\0\x01\0\0\0\0\xff\0\0\0";
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

const SESSION: [u8; 16] = *b"0123456789abcdef";

fn retryable() -> CommandSet {
    let retryable_writes = true;
    CommandSet::new(&CommandOptions { retryable_writes, ..options() }).unwrap()
}

#[test]
fn a_retryable_delete_has_these_bytes() {
    let mut out = Vec::new();
    let commands = retryable();
    commands.delete(&mut out, 77, b"k");
    let (session, number) = (SESSION, 0x0102_0304_0506);
    commands.set_transaction(&mut out, &Transaction { session, number });
    let expected = b"\xa5\0\0\0\x4d\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
        \x60\0\0\0\x02delete\0\x02\0\0\0c\0\
        \x03lsid\0\x1e\0\0\0\x05id\0\x10\0\0\0\x040123456789abcdef\0\
        \x12txnNumber\0\x06\x05\x04\x03\x02\x01\0\0\
        \x08ordered\0\x01\x02$db\0\x03\0\0\0db\0\0\
        \x01\x2f\0\0\0deletes\0\
        \x23\0\0\0\x03q\0\x10\0\0\0\x02_id\0\x02\0\0\0k\0\0\x10limit\0\x01\0\0\0\0";
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn every_write_takes_its_session_and_reads_have_none() {
    let commands = retryable();
    let key = |_: usize, writer: &mut DocumentWriter<'_>| {
        writer.key(b"k");
    };
    type Write = Box<dyn Fn(&CommandSet, &mut Vec<u8>)>;
    let writes: [Write; 6] = [
        Box::new(|c, out| c.insert(out, 77, b"k", |_| {})),
        Box::new(|c, out| c.update(out, 77, b"k", |_| {})),
        Box::new(|c, out| c.replace_upsert(out, 77, b"k", |_| {})),
        Box::new(|c, out| c.delete(out, 77, b"k")),
        Box::new(move |c, out| assert_eq!(c.write_many(out, 77, Form::Insert, 1, key), 1)),
        Box::new(move |c, out| assert_eq!(c.write_many(out, 77, Form::Upsert, 1, key), 1)),
    ];
    let (session, number) = (SESSION, i64::MAX - 1);
    let id = Binary { subtype: BinarySubtype::Uuid, bytes: SESSION.to_vec() };
    for write in writes {
        let command = encode_with(&commands, |commands, out| {
            let start = out.len();
            write(commands, out);
            commands.set_transaction(&mut out[start..], &Transaction { session, number });
        });
        assert_eq!(command.get_document("lsid").unwrap(), &doc! { "id": &id });
        assert_eq!(command.get_i64("txnNumber").unwrap(), number);
        let plain = encode(|commands, out| {
            let start = out.len();
            write(commands, out);
            commands.set_transaction(&mut out[start..], &Transaction { session, number });
        });
        assert!(!plain.contains_key("lsid") && !plain.contains_key("txnNumber"));
    }
    let find = encode_with(&commands, |c, out| c.find_by_id(out, 77, b"k", Projection::All));
    assert!(!find.contains_key("lsid"));
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
fn reads_carry_the_read_preference() {
    let options = CommandOptions { read_preference: Some("primaryPreferred".into()), ..options() };
    let commands = CommandSet::new(&options).unwrap();
    let find = |c: &CommandSet, out: &mut Vec<u8>| c.find_by_id(out, 77, b"user5", Projection::All);
    let found = encode_with(&commands, find);
    let expected = doc! { "mode": "primaryPreferred" };
    assert_eq!(found.get_document("$readPreference").unwrap(), &expected);
    let plain = encode_with(
        &CommandSet::new(&CommandOptions { read_preference: None, ..options }).unwrap(),
        find,
    );
    assert!(!plain.contains_key("$readPreference"));
}

#[test]
fn an_index_scan_is_by_value_in_the_order_of_the_index() {
    let options = CommandOptions {
        read_concern_level: Some("majority".into()),
        indexes: vec![vec!["field0".into()], vec!["field1".into(), "field0".into(), "_id".into()]],
        ..options()
    };
    let commands = CommandSet::new(&options).unwrap();
    let fill = |value: &mut [u8]| value.copy_from_slice(b"abc");
    let of = |index| encode_with(&commands, |c, out| c.scan_index(out, 77, index, 42, 3, fill));
    let first = doc! {
        "find": "c", "filter": {"field0": {"$gte": binary(b"abc")}}, "limit": 42,
        "sort": {"field0": 1}, "hint": {"field0": 1}, "projection": {"field0": 1, "_id": 0},
        "readConcern": {"level": "majority"}, "$db": "db",
    };
    assert_eq!(of(0), first);
    let keys = doc! {"field1": 1, "field0": 1, "_id": 1};
    let second = doc! {
        "find": "c", "filter": {"field1": {"$gte": binary(b"abc")}}, "limit": 42,
        "sort": keys.clone(), "hint": keys.clone(), "projection": keys,
        "readConcern": {"level": "majority"}, "$db": "db",
    };
    assert_eq!(of(1), second);
    for fields in [vec!["_id".to_owned()], Vec::new()] {
        let indexes = vec![fields];
        let refused = CommandSet::new(&CommandOptions { indexes, ..self::options() });
        assert!(matches!(refused, Err(CommandError::Index(_))));
    }
}

#[test]
fn cursors_are_continued() {
    let more = encode(|c, out| c.get_more(out, 77, -9));
    let expected = doc! { "getMore": -9i64, "collection": "c", "$db": "db" };
    assert_eq!(more, expected);
}

#[test]
fn writes_of_one_document_are_one_statement() {
    let set = doc! { "field1": binary(b"xy"), "field0": binary(b"") };
    let update = |statement: Document| doc! { "update": "c", "ordered": true, "$db": "db", "updates": [statement] };

    let found = encode(|c, out| c.update(out, 77, b"k", two_fields));
    let statement = doc! { "q": {"_id": "k"}, "u": {"$set": set.clone()} };
    assert_eq!(found, update(statement));

    let mut document = doc! { "_id": "k" };
    document.extend(set);
    let found = encode(|c, out| c.replace_upsert(out, 77, b"k", two_fields));
    let statement = doc! { "q": {"_id": "k"}, "u": document.clone(), "upsert": true };
    assert_eq!(found, update(statement));

    let found = encode(|c, out| c.insert(out, 77, b"k", two_fields));
    let expected = doc! { "insert": "c", "ordered": true, "$db": "db", "documents": [document] };
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
        assert_eq!(c.write_many(out, 77, Form::Insert, 3, write), 3);
    });
    let documents: Vec<_> = (0..3)
        .map(|index| {
            let mut document = doc! { "_id": key(index) };
            document.extend(value(index));
            document
        })
        .collect();
    let expected = doc! { "insert": "c", "ordered": false, "$db": "db", "documents": documents };
    assert_eq!(inserted, expected);

    let upserted = encode(|c, out| {
        assert_eq!(c.write_many(out, 77, Form::Upsert, 2, write), 2);
    });
    let statements: Vec<_> = (0..2)
        .map(|index| doc! { "q": {"_id": key(index)}, "u": {"$set": value(index)}, "upsert": true })
        .collect();
    let expected = doc! { "update": "c", "ordered": false, "$db": "db", "updates": statements };
    assert_eq!(upserted, expected);
}

#[test]
fn a_batch_stays_below_the_message_limit() {
    let commands = commands();
    let mut out = Vec::new();
    let mut calls = 0;
    let written = commands.write_many(&mut out, 77, Form::Insert, 10, |_, document| {
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
    let find = encode_with(&commands, |c, out| c.find_by_id(out, 77, b"k", Projection::All));
    assert_eq!(find.get("readConcern"), Some(&doc! {"level": "local"}.into()));
    assert_eq!(find.get("writeConcern"), None);
    let insert = encode_with(&commands, |c, out| c.insert(out, 77, b"k", |_| {}));
    assert_eq!(insert.get("writeConcern"), Some(&concern));
    assert_eq!(insert.get("readConcern"), None);
    let more = encode_with(&commands, |c, out| c.get_more(out, 77, 1));
    assert_eq!(more, doc! { "getMore": 1i64, "collection": "c", "$db": "db" });

    for (w, expected) in [
        (Acknowledgement::Number(2), doc! {"w": 2i64}),
        (Acknowledgement::Tag("east".into()), doc! {"w": "east"}),
    ] {
        let concern = WriteConcern { w: Some(w), ..WriteConcern::default() };
        let options = CommandOptions { write_concern: Some(concern), ..options() };
        let commands = CommandSet::new(&options).unwrap();
        let delete = encode_with(&commands, |c, out| c.delete(out, 77, b"k"));
        assert_eq!(delete.get("writeConcern"), Some(&Bson::Document(expected)));
    }
    let concern = Some(WriteConcern::default());
    let options = CommandOptions { write_concern: concern, ..options() };
    let commands = CommandSet::new(&options).unwrap();
    let delete = encode_with(&commands, |c, out| c.delete(out, 77, b"k"));
    assert_eq!(delete.get("writeConcern"), None);
}

#[test]
fn options_that_cannot_be_encoded_are_refused() {
    let zero = CommandOptions { field_names: vec!["a\0b".into()], ..options() };
    let error = CommandSet::new(&zero).unwrap_err();
    assert_eq!(error, CommandError::Name { what: "field", name: "a\0b".into() });
    assert!(error.to_string().contains(r"`a\0b`"), "{error}");
    let empty = CommandOptions { collection: String::new(), ..options() };
    assert!(matches!(CommandSet::new(&empty), Err(CommandError::Name { what: "collection", .. })));
    let w = Some(Acknowledgement::Number(0));
    let concern = Some(WriteConcern { w, ..WriteConcern::default() });
    let fire_and_forget = CommandOptions { write_concern: concern, ..options() };
    assert_eq!(CommandSet::new(&fire_and_forget).unwrap_err(), CommandError::Unacknowledged);
}

#[test]
fn encoding_does_not_grow_a_buffer_that_is_large_enough() {
    let commands = commands();
    let mut out = Vec::with_capacity(4096);
    let before = (out.as_ptr(), out.capacity());
    commands.find_by_id(&mut out, 1, b"k", Projection::AllByName);
    commands.scan(&mut out, 2, b"k", 5, Projection::All);
    commands.update(&mut out, 3, b"k", two_fields);
    commands.insert(&mut out, 4, b"k", two_fields);
    commands.delete(&mut out, 5, b"k");
    assert_eq!((out.as_ptr(), out.capacity()), before);
}
