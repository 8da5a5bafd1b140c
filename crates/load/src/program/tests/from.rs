use super::*;
use bson::{Bson, doc};
use std::collections::HashSet;

/// Customers with everything that a path can lead through.
fn customers() -> Collection {
    let item = || document([("sku", text(8)), ("tags", array(0, 2, int(0, 1_000_000_000)))]);
    let template = document([
        ("_id", number()),
        ("name", text(12)),
        ("nested", document([("deep", document([("x", int(0, 1 << 40))]))])),
        ("items", array(0, 3, item())),
        ("unlike", distinct(0, 4, int(0, 1 << 40))),
        ("sometimes", maybe(0.3, document([("x", int(0, 1 << 40))]))),
        ("holes", array(2, 4, maybe(0.4, document([("x", int(0, 1 << 40))])))),
        ("fixed", Value::Array(vec![int(0, 1 << 40), document([("x", int(0, 1 << 40))])])),
        ("either", choose([document([("x", int(0, 1 << 40))]), document([("y", constant(1))])])),
        ("shared", variable("v")),
        ("again", compute(Function::Concat, [variable("v"), constant("!")])),
        ("constant", Value::Constant(bson::bson!({ "list": [{ "x": 1 }, { "x": 2 }, {}] }))),
    ]);
    let variables = vec![("v".to_owned(), text(6))];
    Collection { variables, ..collection("customers", 500, template) }
}

const PATHS: [&str; 19] = [
    "_id",
    "name",
    "nested",
    "nested.deep.x",
    "items",
    "items.1",
    "items.sku",
    "items.2.sku",
    "items.tags",
    "items.0.tags.1",
    "unlike",
    "sometimes.x",
    "holes.x",
    "fixed.0",
    "fixed.1.x",
    "either.x",
    "shared",
    "again",
    "constant.list.x",
];

/// All values at a path, as `%from` finds them: each element of an array on the way and at its end.
fn all_at(value: &Bson, path: &[String], found: &mut Vec<Bson>) {
    if let Bson::Array(elements) = value {
        match path.first().and_then(|name| name.parse::<usize>().ok()) {
            Some(index) => elements.get(index).into_iter().for_each(|element| {
                in_element(element, &path[1..], found);
            }),
            None => elements.iter().for_each(|element| in_element(element, path, found)),
        }
        return;
    }
    match (path.split_first(), value) {
        (None, value) => found.push(value.clone()),
        (Some((name, rest)), Bson::Document(document)) => {
            document.get(name).into_iter().for_each(|value| all_at(value, rest, found));
        }
        _ => {}
    }
}

fn in_element(element: &Bson, path: &[String], found: &mut Vec<Bson>) {
    if path.is_empty() { found.push(element.clone()) } else { all_at(element, path, found) }
}

fn found_in(document: bson::Document, path: &str) -> Vec<Bson> {
    let mut found = Vec::new();
    all_at(&Bson::Document(document), &names(path), &mut found);
    found
}

#[test]
fn every_value_from_a_collection_is_in_a_document() {
    let collections = [customers()];
    let templates = templates(&collections);
    let documents = Program::of_collection(0, &templates).unwrap();
    let mut context = context(&collections);
    let documents: Vec<_> =
        (0..500).map(|number| document_of(&documents, &mut context, number)).collect();
    for path in PATHS {
        let command = document([("v", from("customers", path))]);
        let command = Program::compile(&command, step(0, &[]), &templates).unwrap();
        let present: HashSet<String> = documents
            .iter()
            .flat_map(|document| found_in(document.clone(), path))
            .map(|value| format!("{value:?}"))
            .collect();
        let mut hit = HashSet::new();
        for number in 0..3_000 {
            let value = document_of(&command, &mut context, number).remove("v").unwrap();
            let value = format!("{value:?}");
            assert!(present.contains(&value), "{path}: {value}");
            hit.insert(value);
        }
        // All documents and elements have their turn.
        assert!(hit.len() * 10 > present.len() * 7, "{path}: {} of {}", hit.len(), present.len());
    }
    assert_eq!(context.misses(), Misses::default());
}

#[test]
fn value_at_a_number_has_the_bytes_of_its_document() {
    let collections = [customers()];
    let templates = templates(&collections);
    let documents = Program::of_collection(0, &templates).unwrap();
    let mut context = context(&collections);
    for path in PATHS {
        let command = document([("v", from_at("customers", path, number()))]);
        let command = Program::compile(&command, step(0, &[]), &templates).unwrap();
        for number in 0..200 {
            let found = found_in(document_of(&documents, &mut context, number), path);
            let bytes = bytes_of(&command, &mut context, number);
            let mut possible: Vec<_> = found.iter().map(|value| doc! { "v": value }).collect();
            // Without a law, no other document replaces one with an element that lacks the value.
            if found.is_empty() || ["items.tags", "constant.list.x"].contains(&path) {
                possible.push(doc! { "v": null });
            }
            let mut possible = possible.into_iter().map(|document| document.to_vec().unwrap());
            assert!(possible.any(|possible| possible == bytes), "{path} {number}");
        }
    }
}

#[test]
fn absent_values_are_counted_when_no_document_has_them() {
    let fields = document([
        ("never", maybe(0.0, constant(1))),
        ("empty", array(0, 0, constant(1))),
        ("x", array(1, 1, constant(1))),
    ]);
    let collections =
        [collection("a", 5, fields), collection("none", 0, document([("x", number())]))];
    let templates = templates(&collections);
    let command = document([
        ("never", from("a", "never")),
        ("empty", from("a", "empty")),
        ("beyond", from("a", "x.1")),
        ("none", from("none", "x")),
        ("no", from_at("a", "x", constant(5))),
        ("negative", from_at("a", "x", constant(-1))),
        ("text", from_at("a", "x", constant("1"))),
    ]);
    let program = Program::compile(&command, step(0, &[]), &templates).unwrap();
    let mut context = context(&collections);
    let document = document_of(&program, &mut context, 0);
    assert!(document.values().all(|value| *value == Bson::Null), "{document}");
    assert_eq!(context.misses(), Misses { from: 7, ..Misses::default() });
}

#[test]
fn operations_see_new_documents_and_documents_do_not() {
    let parents = collection("parents", 2, document([("_id", number())]));
    let children = collection("children", 1, document([("parent", from("parents", "_id"))]));
    let collections = [parents, children];
    let templates = templates(&collections);
    let command = document([("parent", from("parents", "_id"))]);
    let command = Program::compile(&command, step(0, &[]), &templates).unwrap();
    let child = Program::of_collection(1, &templates).unwrap();
    let mut context = context(&collections);
    context.documents.take_new(0);
    let mut parents = |program: &Program| -> HashSet<i64> {
        let parent = |number| document_of(program, &mut context, number).get_i64("parent").unwrap();
        (0..100).map(parent).collect()
    };
    assert_eq!(parents(&command), HashSet::from([0, 1, 2]));
    assert_eq!(parents(&child), HashSet::from([0, 1]));
}

#[test]
fn own_law_replaces_the_default_law() {
    let collections = [collection("a", 3, document([("_id", number())]))];
    let templates = Templates { keys: &Law::Sequential, ..templates(&collections) };
    let ids = |law| -> Vec<i64> {
        let command = document([("v", from_by("a", "_id", law))]);
        let program = Program::compile(&command, step(0, &[]), &templates).unwrap();
        let mut context = context(&collections);
        (0..6).map(|n| document_of(&program, &mut context, n).get_i64("v").unwrap()).collect()
    };
    assert_eq!(ids(None), [0, 1, 2, 0, 1, 2]);
    assert_ne!(ids(Some(Law::Uniform)), [0, 1, 2, 0, 1, 2]);
}

/// Numbers of the documents that `%from` chooses by a law in a step, from the most frequent one on. Each collection has `new`
/// documents more than were loaded.
fn hottest(collections: &[Collection], name: &str, law: &Law, index: usize, new: u64) -> Vec<i64> {
    let command = document([("v", from_by(name, "_id", Some(law.clone())))]);
    let program = Program::compile(&command, step(index, &[]), &templates(collections)).unwrap();
    let mut context = context(collections);
    for collection in 0..collections.len() {
        (0..new).for_each(|_| assert!(context.documents.take_new(collection).is_some()));
    }
    let mut counts = vec![0; (collections[0].records + new) as usize];
    for number in 0..20_000 {
        let id = document_of(&program, &mut context, number).get_i64("v").unwrap();
        counts[id as usize] += 1;
    }
    assert_eq!(context.misses(), Misses::default());
    let mut ids: Vec<i64> =
        (0..counts.len() as i64).filter(|&id| counts[id as usize] > 0).collect();
    ids.sort_by_key(|&id| std::cmp::Reverse(counts[id as usize]));
    ids
}

fn collections_of(records: u64) -> [Collection; 2] {
    ["a", "b"].map(|name| collection(name, records, document([("_id", number())])))
}

#[test]
fn laws_about_ranks_scatter_the_hot_documents() {
    let collections = collections_of(1_000);
    let laws = [
        Law::Zipf { exponent: 1.2 },
        Law::Hotspot { data: 0.02, draws: 0.9 },
        Law::Exponential { mean: 10.0 },
        Law::Geometric { probability: 0.1 },
    ];
    for law in laws {
        let mut hot = hottest(&collections, "a", &law, 0, 0);
        hot.truncate(10);
        let other = hottest(&collections, "b", &law, 0, 0);
        assert_ne!(hot[..3], other[..3], "{law:?}");
        // Expected: one in the first tenth, and a distance of 100 between neighbours.
        hot.sort_unstable();
        assert!(hot[4] > 100, "{law:?}: {hot:?}");
        let neighbours = hot.windows(2).filter(|pair| pair[1] - pair[0] < 3).count();
        assert!(neighbours < 3, "{law:?}: {hot:?}");
    }
}

#[test]
fn hot_documents_are_the_same_for_all_operations() {
    let collections = collections_of(1_000);
    let law = Law::Zipf { exponent: 1.5 };
    let hot = |step, new| hottest(&collections, "a", &law, step, new)[..4].to_vec();
    let expected = hot(0, 0);
    assert_eq!(hot(1, 0), expected);
    // They remain hot while the collection grows.
    assert_eq!(hot(0, 10), expected);
}

#[test]
fn scattered_law_reaches_each_document() {
    // The hot half, without any other draws, is half of the documents: no two ranks share one.
    let (half, all) =
        (Law::Hotspot { data: 0.5, draws: 1.0 }, Law::Hotspot { data: 1.0, draws: 1.0 });
    for records in [1, 2, 3, 10, 64, 101, 257] {
        let collections = collections_of(records);
        for new in [0, 1, 40] {
            let count = (records + new) as usize;
            let hot = hottest(&collections, "a", &half, 0, new).len();
            assert_eq!(hot, (count / 2).max(1), "{records} and {new}");
            assert_eq!(hottest(&collections, "a", &all, 0, new).len(), count);
        }
    }
    assert_eq!(hottest(&collections_of(0), "a", &half, 0, 4).len(), 2);
}

#[test]
fn laws_about_values_do_not_scatter() {
    let collections = collections_of(1_000);
    let cases = [
        (Law::Normal { mean: 500.0, sd: 5.0 }, 460..540),
        (Law::Poisson { mean: 4.0 }, 0..30),
        (Law::Histogram { values: vec![3, 7], weights: vec![1.0, 1.0] }, 3..8),
    ];
    for (law, range) in cases {
        let found = hottest(&collections, "a", &law, 0, 0);
        assert!(found.iter().all(|id| range.contains(id)), "{law:?}: {found:?}");
    }
    assert_eq!(hottest(&collections, "a", &Law::Latest { exponent: 2.0 }, 0, 0)[..2], [999, 998]);
}

#[test]
fn sequential_law_goes_on_past_absent_values() {
    let collections = [collection("a", 100, document([("x", maybe(0.5, number()))]))];
    let templates = Templates { keys: &Law::Sequential, ..templates(&collections) };
    let command = document([("v", from("a", "x"))]);
    let program = Program::compile(&command, step(0, &[]), &templates).unwrap();
    let mut context = context(&collections);
    for number in 0..80 {
        let found = document_of(&program, &mut context, number).get_i64("v").unwrap();
        assert!((number as i64..number as i64 + 20).contains(&found), "{number}: {found}");
    }
}

#[test]
fn values_follow_references_between_collections() {
    let regions = collection("regions", 7, document([("name", text(9))]));
    let shops = collection("shops", 20, document([("region", from("regions", "name"))]));
    let orders = collection("orders", 50, document([("region", from("shops", "region"))]));
    let collections = [regions, shops, orders];
    let templates = templates(&collections);
    let mut context = context(&collections);
    let mut names_of = |index, field: &str, count| -> HashSet<String> {
        let program = Program::of_collection(index, &templates).unwrap();
        let name =
            |number| document_of(&program, &mut context, number).get_str(field).unwrap().to_owned();
        (0..count).map(name).collect()
    };
    let (regions, shops) = (names_of(0, "name", 7), names_of(1, "region", 20));
    let orders = names_of(2, "region", 50);
    assert!(shops.is_subset(&regions) && orders.is_subset(&shops));
    assert!(shops.len() > 3);
}
