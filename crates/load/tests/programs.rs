//! Compiled templates do not allocate once their buffers have grown.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dyno_load::program::{Collection, Context, Documents, Misses, Owner, Program, Templates};
use dyno_plan::workload::template::{Choice, Function, Generator, Law, Size, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts every allocation of the process.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: see `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: see `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Growing(AtomicU64);

impl Documents for Growing {
    fn existing(&self, _: usize) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn take_new(&self, _: usize) -> Option<u64> {
        Some(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn generated(generator: Generator) -> Value {
    Value::Generated(Box::new(generator))
}

fn document<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Document(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

fn int(law: Law) -> Value {
    generated(Generator::Int { min: 0, max: 999, law })
}

fn size(min: u32, max: u32) -> Size {
    Size { min, max, law: Law::Uniform }
}

fn variable(name: &str) -> Value {
    generated(Generator::Variable(name.to_owned()))
}

fn from(path: &str) -> Value {
    let (collection, path) = ("orders".to_owned(), path.split('.').map(str::to_owned).collect());
    generated(Generator::From { collection, path, law: None, at: None })
}

fn order() -> Value {
    let (alphabet, compressible) = (vec!['a', 'ä'], 0.3);
    let item = document([
        ("zipf", int(Law::Zipf { exponent: 0.99 })),
        ("poisson", int(Law::Poisson { mean: 20.0 })),
        ("histogram", int(Law::Histogram { values: vec![1, 2], weights: vec![1.0, 2.0] })),
    ]);
    let tag = generated(Generator::Text { length: size(1, 2), alphabet, compressible });
    document([
        ("_id", generated(Generator::Number)),
        ("items", generated(Generator::Array { length: size(1, 8), of: item, distinct: false })),
        ("tags", generated(Generator::Array { length: size(0, 4), of: tag, distinct: true })),
        ("mask", generated(Generator::Mask("##-@@".to_owned()))),
        ("shared", variable("v")),
        ("maybe", generated(Generator::Maybe { probability: 0.5, of: variable("v") })),
    ])
}

fn command() -> Value {
    let compute = |function, arguments| generated(Generator::Compute { function, arguments });
    let status = Generator::Choose {
        values: vec![from("shared"), generated(Generator::Now)],
        choice: Choice::Weights(vec![1.0, 1.0]),
    };
    let reply = || generated(Generator::Reply { step: 0, path: vec!["list".to_owned()] });
    document([
        ("zipf", from("items.zipf")),
        ("tag", from("tags")),
        ("new", generated(Generator::New { collection: "orders".to_owned() })),
        ("status", generated(status)),
        ("concat", compute(Function::Concat, vec![variable("v"), variable("v")])),
        ("middle", compute(Function::Middle, vec![reply()])),
        ("again", variable("v")),
    ])
}

#[test]
fn compiled_templates_do_not_allocate() {
    let text = |bytes| Generator::Text {
        length: size(bytes, bytes),
        alphabet: Vec::new(),
        compressible: 0.0,
    };
    let variables = vec![("v".to_owned(), generated(text(20)))];
    let orders = Collection {
        name: "orders".to_owned(),
        records: 1_000,
        variables: variables.clone(),
        document: order(),
    };
    let templates = Templates {
        seed: 1,
        collections: &[orders],
        keys: &Law::Zipf { exponent: 0.99 },
        now_ms: None,
    };
    let owner = Owner::Step { operation: "mixed", step: 0, variables: &variables };
    let command = Program::compile(&command(), owner, &templates).unwrap();
    let stored = Program::of_collection(0, &templates).unwrap();
    let reply = bson::doc! { "list": [1, 2.5, "x"] }.to_vec().unwrap();
    let mut context = Context::new(Arc::new(Growing(AtomicU64::new(1_000))));
    let mut out = Vec::with_capacity(1 << 16);
    let mut write = |numbers: std::ops::Range<u64>| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for number in numbers {
            out.clear();
            context.begin(number);
            context.set_reply(0, &reply);
            command.write(&mut context, &mut out).unwrap();
            stored.write(&mut context, &mut out).unwrap();
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    let warm_up = write(0..5_000);
    assert!(warm_up > 0, "the allocator does not count");
    assert_eq!(write(5_000..55_000), 0);
    assert_eq!(context.misses(), Misses::default());
}
