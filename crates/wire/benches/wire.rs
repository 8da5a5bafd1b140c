//! Cost of the load generator's byte handling per operation: encoding a command, finding the reply in the buffer, and
//! reading it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dyno_wire::bson::write_document;
use dyno_wire::command::{CommandOptions, CommandSet, Projection};
use dyno_wire::compress::{Compressor, Scratch};
use dyno_wire::{frame, reply};
use std::hint::black_box;

const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const KEY: &[u8] = b"user6284781860667377211";

fn commands() -> CommandSet {
    let options = CommandOptions {
        database: "ycsb".into(),
        collection: "usertable".into(),
        field_names: (0..FIELDS).map(|index| format!("field{index}")).collect(),
        ..CommandOptions::default()
    };
    CommandSet::new(&options).expect("the names are valid")
}

/// The reply to a find with `documents` documents of about 1 KB.
fn find_reply(documents: usize) -> Vec<u8> {
    let mut document = Vec::new();
    write_document(&mut document, |reply| {
        reply.document("cursor", |cursor| {
            cursor.array("firstBatch", |batch| {
                for index in 0..documents {
                    batch.document(&index.to_string(), |document| {
                        document.string("_id", "user6284781860667377211");
                        for field in 0..FIELDS {
                            document.binary(&format!("field{field}"), &[7; FIELD_BYTES]);
                        }
                    });
                }
            });
            cursor.i64("id", 0).string("ns", "ycsb.usertable");
        });
        reply.f64("ok", 1.0);
    });
    let mut out = Vec::new();
    frame::write_message(&mut out, 1, 2, &document);
    out
}

fn encode(criterion: &mut Criterion) {
    let commands = commands();
    let mut out = Vec::with_capacity(1 << 20);
    let mut group = criterion.benchmark_group("encode");
    group.bench_function("find_by_id", |bencher| {
        bencher.iter(|| {
            out.clear();
            commands.find_by_id(&mut out, 1, black_box(KEY), Projection::All);
            out.len()
        });
    });
    group.bench_function("update_one_field", |bencher| {
        bencher.iter(|| {
            out.clear();
            commands.update(&mut out, 1, black_box(KEY), |fields| {
                fields.binary(3, FIELD_BYTES).fill(1);
            });
            out.len()
        });
    });
    group.bench_function("insert_ten_fields", |bencher| {
        bencher.iter(|| {
            out.clear();
            commands.insert(&mut out, 1, black_box(KEY), |fields| {
                for index in 0..FIELDS {
                    fields.binary(index, FIELD_BYTES).fill(1);
                }
            });
            out.len()
        });
    });
    group.finish();
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for documents in [1, 101] {
        let bytes = find_reply(documents);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("find_reply_{documents}"), |bencher| {
            bencher.iter(|| {
                let frame = frame::parse(black_box(&bytes)).expect("valid").expect("complete");
                reply::read(frame.body)
                    .expect("valid")
                    .cursor
                    .expect("the buffer has a message")
                    .count
            });
        });
    }
    group.finish();
}

fn compress(criterion: &mut Criterion) {
    let bytes = find_reply(1);
    let mut group = criterion.benchmark_group("compress");
    for compressor in Compressor::ALL {
        let mut scratch = Scratch::default();
        let mut body = Vec::new();
        group.bench_function(compressor.name(), |bencher| {
            bencher.iter(|| {
                let packed = scratch.compress(compressor, black_box(&bytes)).expect("a message");
                body.clear();
                body.extend_from_slice(&packed[frame::HEADER_BYTES..]);
                scratch.decompress(&body).expect("it was just packed").1.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, encode, parse, compress);
criterion_main!(benches);
