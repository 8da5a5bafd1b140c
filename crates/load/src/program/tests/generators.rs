use super::*;
use bson::{Bson, doc};
use std::collections::{BTreeSet, HashSet};

#[test]
fn constants_and_generated_values_keep_their_order() {
    let template = document([
        ("a", constant(1)),
        ("b", number()),
        ("c", document([("d", constant("x")), ("e", number())])),
        ("f", Value::Array(vec![constant(true), number()])),
        ("g", document([("h", constant(Bson::Null))])),
        ("i", Value::Array(vec![])),
    ]);
    let program = compile(&template);
    let expected = doc! {
        "a": 1, "b": 7_i64, "c": { "d": "x", "e": 7_i64 }, "f": [true, 7_i64],
        "g": { "h": null }, "i": [],
    };
    assert_eq!(bytes_of(&program, &mut context(&[]), 7), expected.to_vec().unwrap());
}

#[test]
fn values_do_not_depend_on_the_order_of_numbers() {
    let template = document([("a", int(0, i64::MAX)), ("b", array(0, 9, text(5)))]);
    let (program, mut context) = (compile(&template), context(&[]));
    let forward: Vec<_> = (0..100).map(|n| bytes_of(&program, &mut context, n)).collect();
    let backward = (0..100).rev().map(|n| bytes_of(&program, &mut context, n));
    let mut backward: Vec<_> = backward.collect();
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(forward.iter().collect::<HashSet<_>>().len(), 100);
}

#[test]
fn values_depend_on_seed_and_owner() {
    let collections = [
        collection("a", 1, document([("v", int(0, i64::MAX))])),
        collection("b", 1, document([("v", int(0, i64::MAX))])),
    ];
    let mut seen = HashSet::new();
    for seed in [1, 2] {
        for index in [0, 1] {
            let templates = Templates { seed, ..templates(&collections) };
            let program = Program::of_collection(index, &templates).unwrap();
            assert!(seen.insert(bytes_of(&program, &mut context(&collections), 0)));
        }
    }
}

#[test]
fn integers_are_as_wide_as_their_ends() {
    assert!(values(int(-5, 5), 20).iter().all(|v| (-5..=5).contains(&v.as_i32().unwrap())));
    let long = 1_i64 << 40;
    assert!(values(int(long, long + 1), 20).iter().all(|v| v.as_i64().unwrap() >= long));
}

#[test]
fn decimals_have_their_digits() {
    let decimal =
        |min, max, digits| generated(Generator::Decimal { min, max, digits, law: Law::Uniform });
    for (value, digits, expected) in
        [(1234, 2, "12.34"), (-5, 3, "-0.005"), (7, 0, "7"), (i64::MIN, 2, "-92233720368547758.08")]
    {
        let values = values(decimal(value, value, digits), 1);
        assert_eq!(values, [Bson::Decimal128(expected.parse().unwrap())]);
    }
}

#[test]
fn dates_exclude_their_later_end() {
    let date = generated(Generator::Date { from_ms: 5, to_ms: 8, law: Law::Uniform });
    let dates = values(date, 100).into_iter().map(|v| v.as_datetime().unwrap().timestamp_millis());
    assert_eq!(dates.collect::<BTreeSet<_>>(), BTreeSet::from([5, 6, 7]));
}

#[test]
fn booleans_follow_their_probability() {
    let yes = values(generated(Generator::Boolean { probability: 0.3 }), 10_000);
    let yes = yes.iter().filter(|value| value.as_bool().unwrap()).count();
    // Three standard deviations.
    assert!(yes.abs_diff(3_000) < 140, "{yes}");
}

#[test]
fn now_is_the_clock_or_the_pinned_time() {
    let template = document([("v", generated(Generator::Now))]);
    let now_of = |now_ms| {
        let templates = Templates { now_ms, ..templates(&[]) };
        let program = Program::compile(&template, step(0, &[]), &templates).unwrap();
        let document = document_of(&program, &mut context(&[]), 0);
        document.get_datetime("v").unwrap().timestamp_millis()
    };
    assert_eq!(now_of(None), 1_780_000_000_000);
    assert_eq!(now_of(Some(5)), 5);
}

#[test]
fn series_steps_by_number_within_its_jitter() {
    let series = |jitter_ms, at| {
        generated(Generator::Series { start_ms: 1000, step_ms: 100, jitter_ms, at })
    };
    let ms = |value: &Bson| value.as_datetime().unwrap().timestamp_millis();
    let times: Vec<i64> = values(series(0, None), 3).iter().map(ms).collect();
    assert_eq!(times, [1000, 1100, 1200]);
    let at = compute(Function::Divide, [number(), constant(2)]);
    let times: Vec<i64> = values(series(0, Some(at)), 4).iter().map(ms).collect();
    assert_eq!(times, [1000, 1000, 1100, 1100]);
    assert_eq!(values(series(0, Some(constant("x"))), 1), [Bson::Null]);
    let times = values(series(3, None), 1000);
    let jitter = times.iter().enumerate().map(|(n, v)| ms(v) - 1000 - 100 * n as i64);
    assert_eq!(jitter.collect::<BTreeSet<i64>>(), BTreeSet::from_iter(-3..=3));
}

#[test]
fn object_ids_ascend_and_differ_within_a_document() {
    let id = || generated(Generator::ObjectId);
    let ids = values(id(), 5_000);
    let ids: Vec<_> = ids.iter().map(|value| value.as_object_id().unwrap()).collect();
    assert!(ids.is_sorted());
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 5_000);
    assert_eq!(ids[0].timestamp().timestamp_millis(), 1_767_225_600_000);
    let arrays = values(array(3, 3, id()), 1);
    let ids: HashSet<_> =
        arrays[0].as_array().unwrap().iter().map(|id| id.as_object_id().unwrap()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn uuids_have_version_and_variant() {
    let uuids = values(generated(Generator::Uuid), 500);
    let mut seen = HashSet::new();
    for value in uuids {
        let Bson::Binary(binary) = value else { panic!("{value}") };
        assert_eq!(binary.subtype, bson::spec::BinarySubtype::Uuid);
        assert_eq!((binary.bytes[6] >> 4, binary.bytes[8] >> 6), (4, 2));
        assert!(seen.insert(binary.bytes));
    }
}

#[test]
fn binary_ends_in_its_compressible_share() {
    let binary = generated(Generator::Binary { bytes: size(100, 100), compressible: 0.25 });
    for value in values(binary, 20) {
        let Bson::Binary(binary) = value else { panic!("{value}") };
        assert_eq!(binary.bytes[75..], [0; 25]);
        assert!(binary.bytes[..75].iter().collect::<HashSet<_>>().len() > 40);
    }
}

#[test]
fn texts_use_their_alphabet_evenly() {
    let alphabet: Vec<char> = "aé€😀".chars().collect();
    let text = |compressible| {
        let (length, alphabet) = (size(0, 30), alphabet.clone());
        generated(Generator::Text { length, alphabet, compressible })
    };
    let texts = values(text(0.0), 2_000);
    let texts: Vec<&str> = texts.iter().map(|value| value.as_str().unwrap()).collect();
    let lengths: BTreeSet<usize> = texts.iter().map(|text| text.chars().count()).collect();
    assert_eq!(lengths, BTreeSet::from_iter(0..=30));
    let all: String = texts.concat();
    let total = all.chars().count();
    for &character in &alphabet {
        let count = all.chars().filter(|&c| c == character).count();
        assert!(count.abs_diff(total / 4) < 400, "{character}: {count} of {total}");
    }
    for value in values(text(1.0), 20) {
        assert!(value.as_str().unwrap().chars().all(|character| character == 'a'));
    }
}

#[test]
fn default_alphabet_is_letters_and_digits() {
    let all: String = values(text(20), 500).iter().map(|v| v.as_str().unwrap()).collect();
    let characters: HashSet<char> = all.chars().collect();
    assert_eq!(characters.len(), 62);
    assert!(characters.iter().all(char::is_ascii_alphanumeric));
}

#[test]
fn masks_fill_digits_and_letters() {
    let mask = generated(Generator::Mask("ü###-@@/#".to_owned()));
    let (mut digits, mut letters) = (HashSet::new(), HashSet::new());
    for value in values(mask, 300) {
        let characters: Vec<char> = value.as_str().unwrap().chars().collect();
        let fixed = [characters[0], characters[4], characters[7]];
        assert_eq!((fixed, characters.len()), (['ü', '-', '/'], 9));
        digits.extend([characters[1], characters[2], characters[3], characters[8]]);
        letters.extend([characters[5], characters[6]]);
    }
    assert_eq!(digits, HashSet::from_iter('0'..='9'));
    assert_eq!(letters, HashSet::from_iter('a'..='z'));
}

#[test]
fn words_are_separated_by_spaces() {
    let words = vec!["red".to_owned(), "light blue".to_owned()];
    let words = Generator::Words { count: size(0, 2), words, law: Law::Uniform };
    let texts: BTreeSet<String> =
        values(generated(words), 200).iter().map(|v| v.as_str().unwrap().to_owned()).collect();
    let expected = [
        "",
        "red",
        "light blue",
        "red red",
        "red light blue",
        "light blue red",
        "light blue light blue",
    ];
    assert_eq!(texts, BTreeSet::from(expected.map(str::to_owned)));
}

#[test]
fn syllables_spell_the_digits_of_tpcc_names() {
    let syllables =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let syllables: Vec<String> = syllables.map(str::to_owned).into();
    for (number, name) in
        [(371, "PRICALLYOUGHT"), (40, "BARPRESBAR"), (0, "BARBARBAR"), (1234, "OUGHTABLEPRIPRES")]
    {
        let generator =
            Generator::Syllables { number: constant(number), syllables: syllables.clone() };
        assert_eq!(values(generated(generator), 1), [Bson::from(name)]);
    }
}

#[test]
fn choices_follow_weights_and_laws() {
    let by_weight = Generator::Choose {
        values: vec![constant("a"), constant(1), document([("n", number())])],
        choice: Choice::Weights(vec![1.0, 0.0, 3.0]),
    };
    let chosen = values(generated(by_weight), 4_000);
    let documents = chosen.iter().filter(|value| value.as_document().is_some()).count();
    assert!(documents.abs_diff(3_000) < 100, "{documents}");
    assert!(!chosen.contains(&Bson::Int32(1)));
    let by_law = Generator::Choose {
        values: vec![constant(5), constant(6), constant(7)],
        choice: Choice::Law(Law::Sequential),
    };
    let chosen: Vec<i32> =
        values(generated(by_law), 4).iter().map(|v| v.as_i32().unwrap()).collect();
    assert_eq!(chosen, [5, 6, 7, 5]);
}

#[test]
fn arrays_have_numbered_elements_of_drawn_lengths() {
    let template = document([("v", array(0, 12, int(0, 1_000_000)))]);
    let (program, mut context) = (compile(&template), context(&[]));
    let mut lengths = BTreeSet::new();
    for number in 0..300 {
        let bytes = bytes_of(&program, &mut context, number);
        let raw = dyno_wire::bson::Document::new(&bytes).unwrap();
        let array = raw.find("v").unwrap().unwrap().document().unwrap().unwrap();
        let names: Vec<String> = array
            .elements()
            .map(|element| String::from_utf8(element.unwrap().name.to_vec()).unwrap())
            .collect();
        assert_eq!(names, (0..names.len()).map(|i| i.to_string()).collect::<Vec<_>>());
        lengths.insert(names.len());
        let values = decode(&bytes).get_array("v").unwrap().clone();
        let different: HashSet<_> = values.iter().map(|value| value.as_i32().unwrap()).collect();
        assert!(different.len() + 1 >= values.len());
    }
    assert_eq!(lengths, BTreeSet::from_iter(0..=12));
}

#[test]
fn distinct_arrays_draw_again_and_stop_when_exhausted() {
    for value in values(distinct(8, 8, int(1, 10)), 200) {
        let elements: HashSet<i32> =
            value.as_array().unwrap().iter().map(|v| v.as_i32().unwrap()).collect();
        assert_eq!(elements.len(), 8);
    }
    let nested = distinct(3, 3, distinct(2, 2, int(0, 2)));
    for value in values(nested, 50) {
        let arrays = value.as_array().unwrap();
        assert_eq!(arrays.len(), 3);
        assert!(arrays[0] != arrays[1] && arrays[1] != arrays[2] && arrays[0] != arrays[2]);
    }
    assert_eq!(values(distinct(5, 5, constant(1)), 1), [Bson::from(vec![1])]);
}

#[test]
fn absent_values_leave_no_field_and_no_element() {
    let template = document([
        ("a", constant(1)),
        ("b", maybe(0.5, number())),
        ("c", Value::Array(vec![maybe(0.5, constant(1)), constant(2)])),
        ("d", array(2, 2, maybe(0.5, constant(3)))),
    ]);
    let (program, mut context) = (compile(&template), context(&[]));
    let mut seen = HashSet::new();
    for number in 0..200 {
        let document = document_of(&program, &mut context, number);
        let elements = |name: &str| document.get_array(name).unwrap().len();
        assert_eq!(document.get("a"), Some(&Bson::Int32(1)));
        assert_eq!(document.get_array("c").unwrap().last(), Some(&Bson::Int32(2)));
        seen.insert((document.contains_key("b"), elements("c"), elements("d")));
    }
    assert_eq!(seen.len(), 2 * 2 * 3);
}
