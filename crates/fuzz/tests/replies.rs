//! Bytes from a broken or hostile peer: the result is always `Incomplete`, a value or an error, never a panic, and memory stays
//! bounded by the input.

use bson::{Bson, doc};
use dyno_fuzz::read_reply;
use dyno_wire::bson::Document;
use dyno_wire::compress::{Compressor, Scratch};
use dyno_wire::frame::{self, HEADER_BYTES};
use dyno_wire::scram::{Client, Mechanism, SaltedPasswords};
use proptest::prelude::*;

/// Complete replies of all shapes.
fn replies() -> Vec<Vec<u8>> {
    let documents = [
        doc! {
            "cursor": {
                "firstBatch": [{"_id": "user1", "f": "x".repeat(40)}, {"_id": "user2"}],
                "id": 5i64, "ns": "db.c",
            },
            "ok": 1.0,
        },
        doc! {
            "n": 2, "nModified": 1, "upserted": [{"index": 0, "_id": "a"}],
            "writeErrors": [{"index": 1, "code": 11000, "errmsg": "dup", "keyValue": {"_id": "a"}}],
            "writeConcernError": {"code": 64, "errmsg": "slow", "errInfo": {"wtimeout": true}},
            "ok": 1.0,
        },
        doc! {
            "ok": 0.0, "errmsg": "no", "code": 13, "codeName": "Unauthorized",
            "operationTime": Bson::Timestamp(bson::Timestamp { time: 1, increment: 2 }),
        },
        doc! {
            "isWritablePrimary": true, "hosts": ["a:1"], "setName": "r", "maxWireVersion": 21,
            "compression": ["snappy"], "saslSupportedMechs": ["SCRAM-SHA-1"], "ok": 1.0,
        },
        doc! { "conversationId": 1, "done": false, "payload": "r=x,s=AAAA,i=4096", "ok": 1.0 },
    ];
    let encode = |document: &bson::Document| {
        let mut out = Vec::new();
        frame::write_message(&mut out, 1, 2, &document.to_vec().expect("can encode"));
        out
    };
    documents.iter().map(encode).collect()
}

#[test]
fn every_truncation_of_a_reply_is_incomplete() {
    for message in replies() {
        assert!(read_reply(&message));
        for end in 0..message.len() {
            assert_eq!(frame::parse(&message[..end]), Ok(None), "{end} bytes");
        }
    }
}

#[test]
fn truncation_with_adjusted_length_is_an_error() {
    for message in replies() {
        for end in HEADER_BYTES..message.len() {
            let mut short = message[..end].to_vec();
            short[..4].copy_from_slice(&(end as u32).to_le_bytes());
            assert!(!read_reply(&short), "{end} of {} bytes", message.len());
        }
    }
}

#[test]
fn truncated_documents_with_adjusted_lengths_do_not_panic() {
    for message in replies() {
        let document = HEADER_BYTES + 5;
        for end in document + 4..message.len() {
            let mut short = message[..end].to_vec();
            *short.last_mut().unwrap() = 0;
            short[..4].copy_from_slice(&(end as u32).to_le_bytes());
            let length = (end - document) as u32;
            short[document..document + 4].copy_from_slice(&length.to_le_bytes());
            read_reply(&short);
        }
    }
}

#[test]
fn changing_any_single_byte_does_not_panic() {
    for message in replies() {
        for place in 0..message.len() {
            for value in [0, 1, 2, 3, 4, 5, 0x0b, 0x0f, 0x10, 0x7f, 0x80, 0xff] {
                let mut mutated = message.clone();
                mutated[place] = value;
                read_reply(&mutated);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>) {
        read_reply(&bytes);
        dyno_fuzz::bson(&bytes);
    }

    #[test]
    fn random_documents_of_a_valid_length_do_not_panic(mut elements in prop::collection::vec(0u8..0x15, 0..200)) {
        elements.push(0);
        let length = (elements.len() + 4) as u32;
        let bytes = [&length.to_le_bytes(), &elements[..]].concat();
        assert!(Document::new(&bytes).is_ok());
        dyno_fuzz::bson(&bytes);
    }

    #[test]
    fn mutated_replies_do_not_panic(
        which in 0usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut message = replies().swap_remove(which);
        for (place, value) in changes {
            let place = place.index(message.len());
            message[place] = value;
        }
        read_reply(&message);
    }

    #[test]
    fn mutated_compressed_replies_do_not_panic(
        which in 0usize..5,
        compressor in prop::sample::select(&Compressor::ALL[..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut message = Scratch::default().compress(compressor, &replies()[which]).unwrap().to_vec();
        prop_assert!(read_reply(&message));
        for (place, value) in changes {
            let place = HEADER_BYTES + place.index(message.len() - HEADER_BYTES);
            message[place] = value;
        }
        read_reply(&message);
    }

    #[test]
    fn random_authentication_messages_do_not_panic(first: Vec<u8>, text in "r=N[a-z]{0,3},s=[A-Za-z=]{0,8},i=[0-9]{0,4}", last: Vec<u8>) {
        let cache = SaltedPasswords::new();
        for payload in [&first[..], text.as_bytes()] {
            let mut client = Client::new(Mechanism::ScramSha256, "u", "p", "N").unwrap();
            let _ = client.server_first(payload, &cache);
            let _ = client.server_final(&last);
        }
    }
}
