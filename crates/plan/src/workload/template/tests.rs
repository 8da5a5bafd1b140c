use super::TemplateErrorKind as Kind;
use super::*;
use bson::{Bson, DateTime, Decimal128, Timestamp, bson, doc, oid::ObjectId};
use proptest::prelude::*;

fn value(text: &str) -> Value {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn constant(text: &str) -> Bson {
    match value(text) {
        Value::Constant(constant) => constant,
        other => panic!("{text}: {other:?}"),
    }
}

fn generator(text: &str) -> Generator {
    match value(text) {
        Value::Generated(generator) => *generator,
        other => panic!("{text}: {other:?}"),
    }
}

/// Kind, line, column and suggestion of the mistake.
fn mistake(text: &str) -> (Kind, usize, usize, Option<String>) {
    let error = parse(text).expect_err(text);
    assert!(!error.found.is_empty() && !error.expected.is_empty(), "{text}: {error}");
    (error.kind, error.place.line, error.place.column, error.suggestion)
}

#[test]
fn relaxed_json_is_read_as_mongosh_reads_it() {
    let text = r#"{ // a comment
        a: 1, 'b': "x", "c.d": [true, false, null,], /* another
        comment */ $set: {e: -2.5, f: 1e3, 7: 'it\'s \u00e9 \u{1F600} \ud83d\ude00'}, }"#;
    let expected = bson!({
        "a": 1, "b": "x", "c.d": [true, false, null],
        "$set": {"e": -2.5, "f": 1000.0, "7": "it's é 😀 😀"},
    });
    assert_eq!(constant(text), expected);
}

#[test]
fn numbers_have_the_smallest_integer_type_or_are_doubles() {
    for (text, expected) in [
        ("2147483647", Bson::Int32(i32::MAX)),
        ("2147483648", Bson::Int64(1 << 31)),
        ("-2147483648", Bson::Int32(i32::MIN)),
        ("-9223372036854775808", Bson::Int64(i64::MIN)),
        ("1.0", Bson::Double(1.0)),
        ("1e2", Bson::Double(100.0)),
        (".5", Bson::Double(0.5)),
        ("-Infinity", Bson::Double(f64::NEG_INFINITY)),
    ] {
        assert_eq!(constant(text), expected, "{text}");
    }
    let (kind, _, _, suggestion) = mistake("9223372036854775808");
    assert_eq!(
        (kind, suggestion.as_deref()),
        (Kind::Syntax, Some("NumberDecimal(\"9223372036854775808\")"))
    );
}

#[test]
fn wrappers_and_constructors_give_the_same_values() {
    let id = ObjectId::parse_str("507f1f77bcf86cd799439011").unwrap();
    let date = DateTime::from_millis(1_767_225_600_000);
    let decimal: Decimal128 = "0.10".parse().unwrap();
    let uuid = bson::Uuid::parse_str("00112233-4455-6677-8899-aabbccddeeff").unwrap();
    for (wrapper, constructor, expected) in [
        (
            "{$oid: '507f1f77bcf86cd799439011'}",
            "ObjectId('507f1f77bcf86cd799439011')",
            Bson::ObjectId(id),
        ),
        ("{$date: '2026-01-01T00:00:00Z'}", "ISODate('2026-01-01')", Bson::DateTime(date)),
        ("{$date: '2026-01-01'}", "new Date('2026-01-01T01:00:00+01:00')", Bson::DateTime(date)),
        ("{$numberLong: '5'}", "NumberLong(5)", Bson::Int64(5)),
        ("{$numberLong: 5}", "NumberLong(\"5\")", Bson::Int64(5)),
        ("{$numberDecimal: '0.10'}", "NumberDecimal('0.10')", Bson::Decimal128(decimal)),
        (
            "{$uuid: '00112233-4455-6677-8899-aabbccddeeff'}",
            "UUID('00112233-4455-6677-8899-aabbccddeeff')",
            uuid.into(),
        ),
        (
            "{$timestamp: {t: 1, i: 2}}",
            "Timestamp(1, 2)",
            Bson::Timestamp(Timestamp { time: 1, increment: 2 }),
        ),
        ("{$minKey: 1}", "MinKey()", Bson::MinKey),
        ("{$maxKey: 1}", "MaxKey()", Bson::MaxKey),
        (
            "{$binary: {base64: 'AQI=', subType: '80'}}",
            "BinData(128, 'AQI=')",
            constant("BinData(128, 'AQI=')"),
        ),
        (
            "{$regularExpression: {pattern: 'a[/]\\\\/', options: 'i'}}",
            "/a[/]\\//i",
            constant("/a[/]\\//i"),
        ),
    ] {
        assert_eq!(constant(wrapper), expected, "{wrapper}");
        assert_eq!(constant(constructor), expected, "{constructor}");
    }
}

#[test]
fn operators_of_mongodb_stay_documents() {
    let expected = bson!({ "$regex": "^a", "$options": "i", "$inc": { "$numberOf": 1 } });
    assert_eq!(constant("{$regex: '^a', $options: 'i', $inc: {$numberOf: 1}}"), expected);
}

#[test]
fn every_example_of_the_reference_is_a_generator() {
    for entry in GENERATORS {
        assert!(matches!(value(entry.example), Value::Generated(_)), "{}", entry.example);
        assert!(entry.example.contains(&format!("%{}", entry.name)), "{}", entry.example);
    }
    for law in LAWS {
        let example = format!("{{%int: [1, 100], law: {}}}", law.example);
        assert!(matches!(generator(&example), Generator::Int { .. }), "{example}");
        assert!(law.example.contains(law.name), "{}", law.example);
    }
}

#[test]
fn arguments_have_the_documented_meaning() {
    let zipf = Law::Zipf { exponent: 0.99 };
    let fixed = |length| Size { min: length, max: length, law: Law::Uniform };
    for (text, expected) in [
        (
            "{%int: [1, 100], law: {zipf: 0.99}}",
            Generator::Int { min: 1, max: 100, law: zipf.clone() },
        ),
        (
            "{%decimal: ['0.5', '99.99']}",
            Generator::Decimal { min: 50, max: 9999, digits: 2, law: Law::Uniform },
        ),
        (
            "{%decimal: [-1, 0.25]}",
            Generator::Decimal { min: -100, max: 25, digits: 2, law: Law::Uniform },
        ),
        (
            "{%date: ['1970-01-01', ISODate('1970-01-02')]}",
            Generator::Date { from_ms: 0, to_ms: 86_400_000, law: Law::Uniform },
        ),
        (
            "{%series: {start: '1970-01-01T00:00', step: '10s', jitter: '1s500ms'}}",
            Generator::Series { start_ms: 0, step_ms: 10_000, jitter_ms: 1500, at: None },
        ),
        (
            "{%binary: 100, compressible: 0.5}",
            Generator::Binary { bytes: fixed(100), compressible: 0.5 },
        ),
        (
            "{%string: [1, 8], alphabet: 'ab', law: {zipf: 0.99}}",
            Generator::Text {
                length: Size { min: 1, max: 8, law: zipf.clone() },
                alphabet: vec!['a', 'b'],
                compressible: 0.0,
            },
        ),
        (
            "{%words: {%int: [1, 8], law: {zipf: 0.99}}, of: ['%now'], law: 'sequential'}",
            Generator::Words {
                count: Size { min: 1, max: 8, law: zipf },
                words: vec!["%now".into()],
                law: Law::Sequential,
            },
        ),
        (
            "{%choose: {'%%a': 5, b: 15}}",
            Generator::Choose {
                values: vec![Value::Constant("%a".into()), Value::Constant("b".into())],
                choice: Choice::Weights(vec![5.0, 15.0]),
            },
        ),
        (
            "{%choose: [1, null], weights: [0, 1]}",
            Generator::Choose {
                values: vec![Value::Constant(Bson::Int32(1)), Value::Constant(Bson::Null)],
                choice: Choice::Weights(vec![0.0, 1.0]),
            },
        ),
        (
            "{%from: 'orders.customer.id', at: '%sku'}",
            Generator::From {
                collection: "orders".into(),
                path: vec!["customer".into(), "id".into()],
                law: None,
                at: Some(Value::Generated(Box::new(Generator::Variable("sku".into())))),
            },
        ),
        ("{%new: 'orders'}", Generator::New { collection: "orders".into() }),
        ("'%new orders'", Generator::New { collection: "orders".into() }),
        (
            "{%reply: '1.cursor.0'}",
            Generator::Reply { step: 1, path: vec!["cursor".into(), "0".into()] },
        ),
        (
            "{%pad: ['%number', 8]}",
            Generator::Compute {
                function: Function::Pad,
                arguments: vec![
                    Value::Generated(Box::new(Generator::Number)),
                    Value::Constant(Bson::Int32(8)),
                ],
            },
        ),
    ] {
        assert_eq!(generator(text), expected, "{text}");
    }
}

#[test]
fn two_percent_signs_are_a_literal_one() {
    assert_eq!(
        constant("{a: '%%int', '%%b': '%%%', c: '5 %'}"),
        bson!({ "a": "%int", "%b": "%%", "c": "5 %" })
    );
}

#[test]
fn constants_are_folded_and_generators_are_not() {
    assert_eq!(
        value("{a: [1, {b: 2}]}"),
        Value::Constant(Bson::Document(doc! { "a": [1, { "b": 2 }] }))
    );
    let Value::Document(fields) = value("{a: {b: 1}, c: '%now'}") else {
        panic!("it has a generator")
    };
    assert_eq!(fields[0].1, Value::Constant(Bson::Document(doc! { "b": 1 })));
}

#[test]
fn mistakes_of_syntax_name_their_place() {
    for (text, kind, line, column, suggestion) in [
        ("{%int: 1..5}", Kind::Syntax, 1, 8, Some("[1, 5]")),
        ("{a: 1,\n b: {c: 2}", Kind::Syntax, 2, 11, None),
        ("{a: [1, 2}", Kind::Syntax, 1, 10, None),
        ("{a: 1 b: 2}", Kind::Syntax, 1, 7, None),
        ("{a.b: 1}", Kind::Syntax, 1, 3, Some("\"a.b\"")),
        ("{a: open}", Kind::Syntax, 1, 5, Some("\"open\"")),
        ("{a: True}", Kind::Syntax, 1, 5, Some("true")),
        ("{é: %now}", Kind::Syntax, 1, 5, Some("\"%now\"")),
        ("{a: %int: [1, 5]}", Kind::Syntax, 1, 5, Some("{%int: …}")),
        ("{a: new}", Kind::Syntax, 1, 5, Some("\"new\"")),
        ("{a: -}", Kind::Syntax, 1, 5, None),
        ("{a: 'x}", Kind::Syntax, 1, 5, None),
        ("{a: '\\d'}", Kind::Syntax, 1, 6, Some("\\\\d")),
        ("{a: 1, a: 2}", Kind::DuplicateKey, 1, 8, None),
        ("{a: 1} }", Kind::Syntax, 1, 8, None),
        ("", Kind::Syntax, 1, 1, None),
        ("/* {a: 1}", Kind::Syntax, 1, 1, None),
        ("ObjectID('507f1f77bcf86cd799439011')", Kind::UnknownName, 1, 1, Some("ObjectId")),
        ("{a: ObjectId()}", Kind::Form, 1, 5, Some("\"%objectid\"")),
        ("{a: {$oid: 'x'}}", Kind::Form, 1, 5, None),
        ("{a: {$date: '%now'}}", Kind::Form, 1, 5, None),
        ("{a: {$date: {%int: [1, 5]}}}", Kind::Form, 1, 14, None),
    ] {
        assert_eq!(mistake(text), (kind, line, column, suggestion.map(str::to_owned)), "{text}");
    }
}

#[test]
fn misspelt_names_get_a_suggestion() {
    for (text, column, suggestion) in [
        ("{%strng: 5}", 2, Some("%string")),
        ("{%int: [1, 5], lwa: 'uniform'}", 16, Some("law")),
        ("{%int: [1, 5], law: {zip: 1}}", 22, Some("zipf")),
        ("{%int: [1, 5], law: 'sequental'}", 21, Some("sequential")),
        ("{%int: [1, 5], law: {normal: {maen: 3, sd: 1}}}", 31, Some("mean")),
        ("{%series: {start: '2026-01-01', setp: '1s'}}", 33, Some("step")),
        ("'%nwe orders'", 1, Some("%new orders")),
        ("'%5 of'", 1, None),
        ("{%something: 5}", 2, None),
    ] {
        assert_eq!(
            mistake(text),
            (Kind::UnknownName, 1, column, suggestion.map(str::to_owned)),
            "{text}"
        );
    }
}

#[test]
fn arguments_that_cannot_work_are_refused() {
    for (text, kind, column) in [
        ("'%int'", Kind::Missing, 1),
        ("{%now: 1}", Kind::Form, 2),
        ("{a: 1, %int: [1, 5]}", Kind::Form, 8),
        ("{%int: [5, 1]}", Kind::Range, 12),
        ("{%int: 5}", Kind::Form, 8),
        ("{%int: ['1', 5]}", Kind::Form, 9),
        ("{%double: [1, 0.5]}", Kind::Range, 15),
        ("{%double: [0, 1], law: {zipf: 1}}", Kind::Form, 25),
        ("{%date: ['2026-01-01', '2026-10-01'], law: {histogram: [[1, 1]]}}", Kind::Form, 45),
        ("{%boolean: -0.1}", Kind::Range, 12),
        ("{%maybe: 1.5, of: 1}", Kind::Range, 10),
        ("{%maybe: 0.5}", Kind::Missing, 1),
        ("{%date: ['2026-11-01', '2026-01-01']}", Kind::Range, 24),
        ("{%date: ['2026-13-01', '2026-01-01']}", Kind::Form, 10),
        ("{%series: {start: '2026-01-01'}}", Kind::Missing, 1),
        ("{%series: {start: '2026-01-01', step: '0s'}}", Kind::Range, 39),
        ("{%string: 16777217}", Kind::Range, 11),
        ("{%string: -1}", Kind::Range, 11),
        ("{%string: 5, alphabet: ''}", Kind::Range, 24),
        ("{%words: 2, of: []}", Kind::Range, 17),
        ("{%words: 2, of: 'words.txt'}", Kind::File, 17),
        ("{%syllables: 1, of: ['a']}", Kind::Range, 21),
        ("{%choose: {}}", Kind::Range, 11),
        ("{%choose: []}", Kind::Form, 11),
        ("{%choose: {a: 0, b: 0}}", Kind::Range, 11),
        ("{%choose: {a: 1, '%now': 1}}", Kind::Form, 18),
        ("{%choose: {a: -1, b: 2}}", Kind::Range, 11),
        ("{%choose: [1, 2], weights: [1]}", Kind::Range, 28),
        ("{%array: [1, 4], of: {%int: [1, 3]}, distinct: true}", Kind::Range, 22),
        ("{%from: 'orders'}", Kind::Form, 9),
        ("{%reply: 'orders.total'}", Kind::Form, 10),
        ("{%add: [1]}", Kind::Form, 8),
        ("{%divide: [1, 2, 3]}", Kind::Form, 11),
        ("{%pad: ['%number', 1025]}", Kind::Range, 20),
        ("{%int: [1, 5], law: 'zipf'}", Kind::Missing, 21),
        ("{%int: [1, 5], law: {zipf: 0}}", Kind::Range, 28),
        ("{%int: [1, 5], law: {normal: {sd: 1}}}", Kind::Missing, 30),
        ("{%int: [1, 5], law: {normal: {mean: 50, sd: 1}}}", Kind::Range, 22),
        ("{%double: [0, 0.001], law: {normal: {mean: 0.3, sd: 0.1}}}", Kind::Range, 29),
        ("{%int: [1, 5], law: {poisson: 100}}", Kind::Range, 22),
        ("{%int: [1, 5], law: {hotspot: {data: 0, draws: 1}}}", Kind::Range, 31),
        ("{%int: [1, 5], law: {nurand: {a: 7, c: 9}}}", Kind::Range, 30),
        ("{%int: [1, 5], law: {histogram: [[9, 1]]}}", Kind::Range, 22),
        ("{%int: [1, 5], law: {histogram: [[1, 0]]}}", Kind::Range, 33),
    ] {
        let (found, line, found_column, _) = mistake(text);
        assert_eq!((found, line, found_column), (kind, 1, column), "{text}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(&nested(100)).is_ok());
    assert_eq!(mistake(&nested(101)), (Kind::TooDeep, 1, 101, None));
    assert_eq!(mistake(&"{a:".repeat(100_000)).0, Kind::TooDeep);
    assert_eq!(mistake(&"ObjectId(".repeat(100_000)).0, Kind::TooDeep);
}

#[test]
fn files_give_words_and_histograms() {
    let read_file = |name: &str| match name {
        "words.txt" => Ok("red\n\ngreen\n".to_owned()),
        "degrees.txt" => Ok("0 5\n10\t95.5\n".to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let template = read("{%words: 1, of: 'words.txt'}", &read_file).unwrap();
    assert_eq!(template.value, value("{%words: 1, of: ['red', 'green']}"));
    let template = read("{%int: [0, 10], law: {histogram: 'degrees.txt'}}", &read_file).unwrap();
    assert_eq!(template.value, value("{%int: [0, 10], law: {histogram: [[0, 5], [10, 95.5]]}}"));
    let error = read("{%int: [0, 10], law: {histogram: 'words.txt'}}", &read_file).unwrap_err();
    assert_eq!((error.kind, error.place.column), (Kind::File, 34));
}

#[test]
fn mentions_have_the_place_of_their_generator() {
    let text = "{a: '%sku',\n b: {%from: 'orders.x', at: {%reply: '0.n'}}}";
    let template = read(text, &|_| Err(String::new())).unwrap();
    let places = template.mentions.iter().map(|mention| (mention.place.line, mention.place.column));
    assert_eq!(places.collect::<Vec<_>>(), [(1, 5), (2, 5), (2, 29)]);
    assert!(matches!(template.mentions[1].generator, Generator::From { at: None, .. }));
}

#[test]
fn values_print_as_in_mongosh() {
    for (text, printed) in [
        (r#"{ _id: "%number", "a.b": "it's" }"#, r#"{ _id: '%number', 'a.b': "it's" }"#),
        (
            "{$set:{n:{$numberLong:'5'},d:1.0,e:[]},x:{}}",
            "{ $set: { n: NumberLong(5), d: 1.0, e: [] }, x: {} }",
        ),
        ("{%int:[1,5],law:{zipf:1.0}}", "{ %int: [ 1, 5 ], law: { zipf: 1 } }"),
        ("{%string:[3,3],compressible:0}", "{ %string: 3 }"),
        (
            "{%date:[0,ISODate('2026-01-01T12:00:00Z')]}",
            "{ %date: [ '1970-01-01', '2026-01-01T12:00:00Z' ] }",
        ),
        ("{%decimal:[-1,'0.05']}", "{ %decimal: [ '-1.00', '0.05' ] }"),
        ("/^a\\/b/i", "/^a\\/b/i"),
    ] {
        assert_eq!(value(text).to_string(), printed, "{text}");
    }
    let long = value(
        "{customer: {%int: [1, 100000], law: {zipf: 0.99}}, placed: {%date: ['2026-01-01', '2026-11-01']}}",
    );
    let lines = [
        "{",
        "  customer: { %int: [ 1, 100000 ], law: { zipf: 0.99 } },",
        "  placed: { %date: [ '2026-01-01', '2026-11-01' ] }",
        "}",
    ];
    assert_eq!(format!("{long:#}"), lines.join("\n"));
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<i32>().prop_map(f64::from),
        any::<f64>().prop_filter("finite", |double| double.is_finite())
    ]
}

fn share() -> impl Strategy<Value = f64> {
    0.0..=1.0
}

fn word_strategy() -> impl Strategy<Value = String> {
    "[a-zA-Z_][a-zA-Z0-9_]{0,8}"
        .prop_filter("not a generator", |name| !GENERATORS.iter().any(|one| one.name == name))
}

fn text_strategy() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,12}", any::<String>(), "%{1,3}[a-z '\"]{0,8}"]
}

fn key_strategy() -> impl Strategy<Value = String> {
    // Keys of wrappers make other values of a document.
    prop_oneof!["[a-z_%.]{0,6}", any::<String>()]
        .prop_filter("a key", |key| !key.contains('\0') && !key.starts_with('$'))
}

fn constant_strategy() -> impl Strategy<Value = Bson> {
    let wide_date = any::<i64>().prop_map(|ms| Bson::DateTime(DateTime::from_millis(ms)));
    let date = (-1i64 << 46..1 << 46).prop_map(|ms| Bson::DateTime(DateTime::from_millis(ms)));
    let regex = ("[a-z/\\\\\\[\\]*\n]{0,8}", "[a-z]{0,3}").prop_map(|(pattern, options)| {
        let options: std::collections::BTreeSet<char> = options.chars().collect();
        Bson::RegularExpression(bson::Regex {
            pattern: pattern.try_into().unwrap(),
            options: options.into_iter().collect::<String>().try_into().unwrap(),
        })
    });
    let binary = (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(subtype, bytes)| Bson::Binary(bson::Binary { subtype: subtype.into(), bytes }));
    prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<i32>().prop_map(|small| Bson::Int64(small.into())),
        prop_oneof![finite(), Just(f64::INFINITY), Just(f64::NEG_INFINITY)].prop_map(Bson::Double),
        text_strategy().prop_map(Bson::String),
        any::<bool>().prop_map(Bson::Boolean),
        prop_oneof![
            Just(Bson::Null),
            Just(Bson::Undefined),
            Just(Bson::MinKey),
            Just(Bson::MaxKey)
        ],
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
        any::<[u8; 16]>().prop_map(|bytes| Bson::from(bson::Uuid::from_bytes(bytes))),
        (any::<i64>(), -300..300i32).prop_map(|(units, exponent)| {
            Bson::Decimal128(format!("{units}E{exponent}").parse().unwrap())
        }),
        (any::<u32>(), any::<u32>())
            .prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        text_strategy().prop_map(Bson::Symbol),
        text_strategy().prop_map(Bson::JavaScriptCode),
        wide_date,
        date,
        regex,
        binary,
    ]
}

fn integer_law() -> impl Strategy<Value = Law> {
    let positive = 0.001f64..1000.0;
    prop_oneof![
        Just(Law::Uniform),
        Just(Law::Sequential),
        positive.clone().prop_map(|exponent| Law::Zipf { exponent }),
        positive.prop_map(|exponent| Law::Latest { exponent }),
        (0.001f64..=1.0, share()).prop_map(|(data, draws)| Law::Hotspot { data, draws }),
        (1u64..1 << 50).prop_map(|a| Law::NuRand { a, c: a / 3 }),
        Just(Law::Geometric { probability: 0.382 }),
    ]
}

fn real_law() -> impl Strategy<Value = Law> {
    prop_oneof![
        Just(Law::Uniform),
        Just(Law::Normal { mean: 0.5, sd: 2.25 }),
        Just(Law::Exponential { mean: 3.0 })
    ]
}

fn size_strategy() -> impl Strategy<Value = Size> {
    (0u32..1 << 24, 0u32..1 << 24, integer_law()).prop_map(|(one, other, law)| Size {
        min: one.min(other),
        max: one.max(other),
        law,
    })
}

fn pair() -> impl Strategy<Value = (i64, i64)> {
    (any::<i64>(), any::<i64>()).prop_map(|(one, other)| (one.min(other), one.max(other)))
}

fn leaf_generator() -> impl Strategy<Value = Generator> {
    let millis = 0i64..1 << 43;
    prop_oneof![
        prop_oneof![
            Just(Generator::Number),
            Just(Generator::Now),
            Just(Generator::ObjectId),
            Just(Generator::Uuid)
        ],
        (pair(), integer_law()).prop_map(|((min, max), law)| Generator::Int { min, max, law }),
        (-100f64..0.0, 1f64..1e18, real_law()).prop_map(|(min, max, law)| Generator::Double {
            min,
            max,
            law
        }),
        (pair(), 0u8..18, integer_law()).prop_map(|((min, max), digits, law)| {
            Generator::Decimal { min: min / 2, max: max / 2, digits, law }
        }),
        share().prop_map(|probability| Generator::Boolean { probability }),
        (pair(), integer_law()).prop_map(|((from_ms, to_ms), law)| {
            Generator::Date { from_ms: from_ms / 2, to_ms: (to_ms / 2).max(from_ms / 2 + 1), law }
        }),
        (size_strategy(), share())
            .prop_map(|(bytes, compressible)| Generator::Binary { bytes, compressible }),
        (size_strategy(), "[ -~é]{1,9}", share()).prop_map(|(length, alphabet, compressible)| {
            Generator::Text { length, alphabet: alphabet.chars().collect(), compressible }
        }),
        text_strategy().prop_map(Generator::Mask),
        (size_strategy(), proptest::collection::vec(text_strategy(), 1..4), integer_law())
            .prop_map(|(count, words, law)| Generator::Words { count, words, law }),
        word_strategy().prop_map(Generator::Variable),
        "[a-z ]{1,8}".prop_map(|collection| Generator::New { collection }),
        (0usize..20, proptest::collection::vec("[a-z0-9%]{1,4}", 1..4))
            .prop_map(|(step, path)| Generator::Reply { step, path }),
        (millis.clone(), 1i64..1 << 40, millis).prop_map(|(start_ms, step_ms, jitter_ms)| {
            Generator::Series { start_ms, step_ms, jitter_ms, at: None }
        }),
    ]
}

fn value_strategy() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        constant_strategy().prop_map(Value::Constant),
        leaf_generator().prop_map(|generator| Value::Generated(Box::new(generator))),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let values = proptest::collection::vec(inner.clone(), 1..5);
        let generated = |generator| Value::Generated(Box::new(generator));
        prop_oneof![
            values.clone().prop_map(Value::array),
            proptest::collection::btree_map(key_strategy(), inner.clone(), 0..5)
                .prop_map(|fields| Value::document(fields.into_iter().collect())),
            (inner.clone(), share())
                .prop_map(move |(of, probability)| generated(Generator::Maybe { probability, of })),
            (inner.clone(), size_strategy()).prop_map(move |(of, length)| {
                generated(Generator::Array { length, of, distinct: false })
            }),
            (values.clone(), integer_law()).prop_map(move |(values, law)| {
                generated(Generator::Choose { values, choice: Choice::Law(law) })
            }),
            values.clone().prop_map(move |values| {
                let weights =
                    values.iter().enumerate().map(|(index, _)| index as f64 + 0.5).collect();
                generated(Generator::Choose { values, choice: Choice::Weights(weights) })
            }),
            (values.clone(), any::<bool>()).prop_map(move |(arguments, is_sum)| {
                match arguments.len() {
                    1 => generated(Generator::Compute { function: Function::Middle, arguments }),
                    _ if is_sum => {
                        generated(Generator::Compute { function: Function::Add, arguments })
                    }
                    _ => generated(Generator::Compute { function: Function::Concat, arguments }),
                }
            }),
            (inner.clone(), "[a-z]{1,5}", proptest::collection::vec("[a-z0-9]{1,4}", 1..4))
                .prop_map(move |(at, collection, path)| {
                    generated(Generator::From { collection, path, law: None, at: Some(at) })
                }),
            (inner, proptest::collection::vec(text_strategy(), 2..4)).prop_map(
                move |(number, syllables)| {
                    generated(Generator::Syllables { number, syllables })
                }
            ),
        ]
    })
}

/// Texts that are almost templates.
fn almost_template() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("'"),
        Just("\""),
        Just("\\"),
        Just("%"),
        Just("/"),
        Just("*"),
        Just("("),
        Just(")"),
        Just("\n"),
        Just("%int"),
        Just("%choose"),
        Just("%from"),
        Just("law"),
        Just("zipf"),
        Just("1"),
        Just("-"),
        Just("."),
        Just("e"),
        Just("a"),
        Just("é"),
        Just("$date"),
        Just("$binary"),
        Just("ISODate"),
        Just("Timestamp"),
        Just("\\u"),
        Just("2026-01-01"),
        Just("{%string: "),
        Just("[1, 5]"),
        Just("{a: "),
        Just("99999999999999999999"),
        Just("normal"),
        Just("%words"),
        Just("of: "),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn printed_values_parse_to_the_same_value(value in value_strategy()) {
        for text in [format!("{value}"), format!("{value:#}")] {
            let parsed = parse(&text);
            prop_assert_eq!(parsed.as_ref(), Ok(&value), "{}", text);
        }
    }

    #[test]
    fn arbitrary_texts_never_panic(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn accepted_texts_print_to_the_same_value(text in almost_template()) {
        match parse(&text) {
            // The value NaN is not equal to itself.
            Ok(value) => prop_assert_eq!(format!("{:?}", parse(&value.to_string())), format!("{:?}", Ok::<_, ()>(value))),
            Err(error) => {
                let lines = text.split('\n').count();
                prop_assert!((1..=lines).contains(&error.place.line), "{}", error);
            }
        }
    }
}
