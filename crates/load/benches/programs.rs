//! Cost of writing commands and documents from compiled templates, and of YCSB's read for comparison.
//!
//! `cargo bench -p dyno-load --bench programs -- --quick`

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use criterion::{Criterion, criterion_group, criterion_main};
use dyno_load::keys::{KeyChooser, KeyNames};
use dyno_load::program::{Collection, Context, Documents, Owner, Program, Templates};
use dyno_plan::model::{KeyDistribution, KeyOrder};
use dyno_plan::workload::template::{Choice, Generator, Law, Size, Value};
use dyno_wire::bson::patch_length;
use dyno_wire::command::{CommandOptions, CommandSet, Projection};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::hint::black_box;
use std::sync::Arc;

const RECORDS: u64 = 1_000_000;
/// Header of a message, flags, and kind of the section.
const HEADER_BYTES: usize = 16 + 4 + 1;

struct Loaded;

impl Documents for Loaded {
    fn existing(&self, _: usize) -> u64 {
        RECORDS
    }

    fn take_new(&self, _: usize) -> Option<u64> {
        None
    }
}

fn generated(generator: Generator) -> Value {
    Value::Generated(Box::new(generator))
}

fn document<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Document(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

fn constant(value: impl Into<bson::Bson>) -> Value {
    Value::Constant(value.into())
}

fn int(min: i64, max: i64, law: Law) -> Value {
    generated(Generator::Int { min, max, law })
}

fn text(min: u32, max: u32) -> Value {
    let length = Size { min, max, law: Law::Uniform };
    generated(Generator::Text { length, alphabet: Vec::new(), compressible: 0.0 })
}

/// A nested document of 1 KiB with eight generated fields.
fn order(customer: Law) -> Value {
    let statuses = ["open", "paid", "shipped"].map(constant).into();
    let weights = Choice::Weights(vec![5.0, 15.0, 80.0]);
    let (from_ms, to_ms) = (1_767_225_600_000, 1_793_491_200_000);
    document([
        ("_id", generated(Generator::Number)),
        ("customer", int(1, 100_000, customer)),
        ("status", generated(Generator::Choose { values: statuses, choice: weights })),
        ("placed", generated(Generator::Date { from_ms, to_ms, law: Law::Uniform })),
        ("shop", document([("name", constant("north")), ("lane", constant(7))])),
        (
            "delivery",
            document([
                ("name", text(20, 30)),
                ("phone", generated(Generator::Mask("+49 ### #######".to_owned()))),
                (
                    "address",
                    document([
                        ("street", text(40, 60)),
                        ("note", text(680, 680)),
                        ("country", constant("DE")),
                    ]),
                ),
            ]),
        ),
        ("state", constant("x".repeat(30))),
        ("version", constant(1)),
    ])
}

/// `{find, filter: {customer: %from}, sort, limit}`.
fn find(path: &str) -> Value {
    let (collection, path) = ("orders".to_owned(), vec![path.to_owned()]);
    let from = generated(Generator::From { collection, path, law: None, at: None });
    document([
        ("find", constant("orders")),
        ("filter", document([("customer", from)])),
        ("sort", document([("placed", constant(-1))])),
        ("limit", constant(20)),
    ])
}

fn orders(customer: Law) -> [Collection; 1] {
    let (name, document) = ("orders".to_owned(), order(customer));
    [Collection { name, records: RECORDS, variables: Vec::new(), document }]
}

fn bench(criterion: &mut Criterion, name: &str, program: &Program) {
    let mut context = Context::new(Arc::new(Loaded));
    let mut out = Vec::with_capacity(4096);
    let mut number = 0;
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            number += 1;
            out.clear();
            // A message has a header, as YCSB's read below.
            out.extend_from_slice(&[0; HEADER_BYTES]);
            context.begin(number);
            program.write(&mut context, &mut out).unwrap();
            patch_length(&mut out, 0);
            black_box(&out);
        });
    });
}

fn programs(criterion: &mut Criterion) {
    let zipf = Law::Zipf { exponent: 0.99 };
    let step = Owner::Step { operation: "orders of a customer", step: 0, variables: &[] };
    for (customers, law) in [("uniform", Law::Uniform), ("zipf", zipf.clone())] {
        let collections = orders(law);
        let templates = Templates { seed: 1, collections: &collections, keys: &zipf, now_ms: None };
        let program = Program::compile(&find("customer"), step, &templates).unwrap();
        bench(criterion, &format!("find/customer_{customers}"), &program);
        let program = Program::compile(&find("_id"), step, &templates).unwrap();
        bench(criterion, &format!("find/id_{customers}"), &program);
        let program = Program::of_collection(0, &templates).unwrap();
        bench(criterion, &format!("document/customer_{customers}"), &program);
    }
}

/// As `Generator` and `Encoder` make a read of workload C, without the choice of the operation.
fn ycsb_read(criterion: &mut Criterion) {
    let options = CommandOptions {
        database: "ycsb".to_owned(),
        collection: "usertable".to_owned(),
        field_names: vec!["field0".to_owned()],
        ..CommandOptions::default()
    };
    let commands = CommandSet::new(&options).unwrap();
    let names = KeyNames::new("user", KeyOrder::Hashed, 0);
    for (name, distribution) in [
        ("scrambled_zipfian", KeyDistribution::ScrambledZipfian {}),
        ("zipfian", KeyDistribution::Zipfian { exponent: 0.99 }),
    ] {
        let mut chooser = KeyChooser::new(&distribution, 0, RECORDS, 0);
        let (mut out, mut key) = (Vec::with_capacity(4096), Vec::with_capacity(64));
        let mut number = 0;
        criterion.bench_function(&format!("ycsb_read/{name}"), |bencher| {
            bencher.iter(|| {
                number += 1;
                out.clear();
                key.clear();
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(number);
                let document = chooser.next(number, &mut rng, RECORDS - 1);
                names.write(document, &mut key);
                commands.find_by_id(&mut out, 1, &key, Projection::All);
                black_box(&out);
            });
        });
    }
}

criterion_group!(benches, programs, ycsb_read);
criterion_main!(benches);
