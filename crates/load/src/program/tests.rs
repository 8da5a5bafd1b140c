mod from;
mod generators;
mod golden;
mod operations;
mod refusals;

use super::*;
use dyno_plan::workload::template::{Choice, Function, Generator, Size};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SEED: u64 = 42;

fn generated(generator: Generator) -> Value {
    Value::Generated(Box::new(generator))
}

fn constant(value: impl Into<bson::Bson>) -> Value {
    Value::Constant(value.into())
}

fn document<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Document(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

fn int(min: i64, max: i64) -> Value {
    int_by(min, max, Law::Uniform)
}

fn int_by(min: i64, max: i64, law: Law) -> Value {
    generated(Generator::Int { min, max, law })
}

fn number() -> Value {
    generated(Generator::Number)
}

fn size(min: u32, max: u32) -> Size {
    Size { min, max, law: Law::Uniform }
}

fn text(length: u32) -> Value {
    let length = size(length, length);
    generated(Generator::Text { length, alphabet: Vec::new(), compressible: 0.0 })
}

fn array(min: u32, max: u32, of: Value) -> Value {
    generated(Generator::Array { length: size(min, max), of, distinct: false })
}

fn distinct(min: u32, max: u32, of: Value) -> Value {
    generated(Generator::Array { length: size(min, max), of, distinct: true })
}

fn maybe(probability: f64, of: Value) -> Value {
    generated(Generator::Maybe { probability, of })
}

fn choose<const N: usize>(values: [Value; N]) -> Value {
    let choice = Choice::Weights(vec![1.0; N]);
    generated(Generator::Choose { values: values.into(), choice })
}

fn variable(name: &str) -> Value {
    generated(Generator::Variable(name.to_owned()))
}

fn new(collection: &str) -> Value {
    generated(Generator::New { collection: collection.to_owned() })
}

fn reply(step: usize, path: &str) -> Value {
    generated(Generator::Reply { step, path: names(path) })
}

fn compute<const N: usize>(function: Function, arguments: [Value; N]) -> Value {
    generated(Generator::Compute { function, arguments: arguments.into() })
}

fn names(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

/// `%from` by the default law.
fn from(collection: &str, path: &str) -> Value {
    from_by(collection, path, None)
}

fn from_by(collection: &str, path: &str, law: Option<Law>) -> Value {
    let collection = collection.to_owned();
    generated(Generator::From { collection, path: names(path), law, at: None })
}

fn from_at(collection: &str, path: &str, at: Value) -> Value {
    generated(Generator::From {
        collection: collection.to_owned(),
        path: names(path),
        law: None,
        at: Some(at),
    })
}

fn collection(name: &str, records: u64, document: Value) -> Collection {
    Collection { name: name.to_owned(), records, variables: Vec::new(), document }
}

fn templates(collections: &[Collection]) -> Templates<'_> {
    Templates { seed: SEED, collections, keys: &Law::Uniform, now_ms: None }
}

fn step<'a>(step: usize, variables: &'a [(String, Value)]) -> Owner<'a> {
    Owner::Step { operation: "test", step, variables }
}

fn compile(template: &Value) -> Program {
    Program::compile(template, step(0, &[]), &templates(&[])).unwrap()
}

/// Collections that grow, up to a limit for each.
#[derive(Debug)]
struct Growing {
    next: Vec<AtomicU64>,
    limit: u64,
}

impl Documents for Growing {
    fn existing(&self, collection: usize) -> u64 {
        self.next[collection].load(Ordering::Relaxed)
    }

    fn take_new(&self, collection: usize) -> Option<u64> {
        (self.existing(collection) < self.limit)
            .then(|| self.next[collection].fetch_add(1, Ordering::Relaxed))
    }
}

fn context_with(collections: &[Collection], limit: u64) -> Context {
    let next = collections.iter().map(|collection| collection.records.into()).collect();
    // A time in 2026.
    Context::with_clock(Arc::new(Growing { next, limit }), || 1_780_000_000_000)
}

fn context(collections: &[Collection]) -> Context {
    context_with(collections, u64::MAX)
}

fn decode(bytes: &[u8]) -> bson::Document {
    bson::Document::from_reader(bytes).unwrap()
}

/// The document or command of one number, as bytes.
fn bytes_of(program: &Program, context: &mut Context, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    context.begin(number);
    program.write(context, &mut out).unwrap();
    out
}

fn document_of(program: &Program, context: &mut Context, number: u64) -> bson::Document {
    decode(&bytes_of(program, context, number))
}

/// The values of `{v: template}` for the numbers from 0 on.
fn values(template: Value, count: u64) -> Vec<bson::Bson> {
    let (program, mut context) = (compile(&document([("v", template)])), context(&[]));
    let value = |number| document_of(&program, &mut context, number).remove("v").unwrap();
    (0..count).map(value).collect()
}
