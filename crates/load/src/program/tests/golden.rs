//! Same seed, same bytes: documents of a template with every generator and law have a fixed hash.

use super::*;
use bson::doc;

/// Hash of the bytes below. If it changes, results of earlier runs with the same seed are not comparable any more.
const HASH: u64 = 1_125_220_687_657_974_035;

fn laws() -> Value {
    let int = |law| int_by(0, 999, law);
    let double = |law| generated(Generator::Double { min: 0.0, max: 50.0, law });
    document([
        ("uniform", int(Law::Uniform)),
        ("zipf", int(Law::Zipf { exponent: 0.99 })),
        ("latest", int(Law::Latest { exponent: 1.5 })),
        ("hotspot", int(Law::Hotspot { data: 0.2, draws: 0.8 })),
        ("sequential", int(Law::Sequential)),
        ("nurand", int(Law::NuRand { a: 255, c: 7 })),
        ("normal", int(Law::Normal { mean: 500.0, sd: 90.0 })),
        ("lognormal", int(Law::LogNormal { mu: 3.0, sigma: 1.0 })),
        ("exponential", int(Law::Exponential { mean: 20.0 })),
        ("geometric", int(Law::Geometric { probability: 0.382 })),
        ("poisson", int(Law::Poisson { mean: 40.0 })),
        ("histogram", int(Law::Histogram { values: vec![1, 10], weights: vec![5.0, 95.0] })),
        ("doubles", double(Law::Uniform)),
        ("normal_doubles", double(Law::Normal { mean: 25.0, sd: 10.0 })),
    ])
}

fn generators() -> Value {
    let compressible = 0.5;
    let words = vec!["red".to_owned(), "green".to_owned()];
    let syllables = vec!["BAR".to_owned(), "OUGHT".to_owned()];
    let law = || Law::Uniform;
    document([
        ("_id", number()),
        ("decimal", generated(Generator::Decimal { min: 1, max: 9999, digits: 2, law: law() })),
        ("boolean", generated(Generator::Boolean { probability: 0.3 })),
        ("date", generated(Generator::Date { from_ms: 0, to_ms: 1 << 40, law: law() })),
        ("now", generated(Generator::Now)),
        (
            "series",
            generated(Generator::Series { start_ms: 0, step_ms: 10, jitter_ms: 5, at: None }),
        ),
        ("objectid", generated(Generator::ObjectId)),
        ("uuid", generated(Generator::Uuid)),
        ("binary", generated(Generator::Binary { bytes: size(1, 40), compressible })),
        (
            "text",
            generated(Generator::Text {
                length: size(1, 20),
                alphabet: "abç".chars().collect(),
                compressible,
            }),
        ),
        ("mask", generated(Generator::Mask("##-@@".to_owned()))),
        ("words", generated(Generator::Words { count: size(1, 3), words, law: law() })),
        ("syllables", generated(Generator::Syllables { number: variable("v"), syllables })),
        ("choose", choose([constant("a"), document([("n", int(1, 5))])])),
        ("array", array(0, 5, document([("x", int(0, 100)), ("y", text(3))]))),
        ("distinct", distinct(1, 5, int(0, 9))),
        ("maybe", maybe(0.5, laws())),
        ("variable", variable("v")),
        ("reference", from("others", "list.x")),
        ("computed", compute(Function::Concat, [variable("v"), constant("-"), number()])),
    ])
}

#[test]
fn equal_seeds_yield_equal_bytes() {
    let variables = vec![("v".to_owned(), int(0, 999))];
    let collections = [
        Collection { variables, ..collection("all", 100, generators()) },
        collection("others", 100, document([("list", array(0, 2, laws_in("x")))])),
    ];
    let templates = Templates { now_ms: Some(5), ..templates(&collections) };
    let documents = Program::of_collection(0, &templates).unwrap();
    let command = document([
        ("from", from("all", "maybe")),
        ("hot", from_by("all", "_id", Some(Law::Zipf { exponent: 0.99 }))),
        ("new", new("all")),
        ("reply", reply(0, "x")),
        ("laws", laws()),
    ]);
    let command = Program::compile(&command, step(0, &[]), &templates).unwrap();
    let mut context = context(&collections);
    let mut out = Vec::new();
    for number in 0..1_000 {
        context.begin(number);
        context.set_reply(0, &doc! { "x": number as i64 }.to_vec().unwrap());
        documents.write(&mut context, &mut out).unwrap();
        command.write(&mut context, &mut out).unwrap();
    }
    assert_eq!(context.misses(), Misses::default());
    assert_eq!(fnv(&out), HASH, "{} bytes", out.len());
}

fn laws_in(name: &'static str) -> Value {
    document([(name, int_by(0, 99, Law::Zipf { exponent: 1.2 }))])
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    })
}
