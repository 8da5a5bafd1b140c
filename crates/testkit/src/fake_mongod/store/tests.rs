use super::*;

/// Runs a command on the collection `d.c`.
fn run(store: &mut Store, mut command: Document) -> Document {
    let name = command.keys().next().cloned().unwrap();
    command.insert("$db", "d");
    store.run(&name, &command).unwrap_or_else(|(code, _)| doc! { "code": code })
}

/// A store with the documents 0 to `count` - 1, named `k000` and so on.
fn filled(count: usize) -> Store {
    let mut store = Store::default();
    let documents: Vec<Document> =
        (0..count).map(|n| doc! { "_id": format!("k{n:03}"), "a": number(n), "b": "x" }).collect();
    let reply = run(&mut store, doc! { "insert": "c", "documents": documents });
    assert_eq!(reply, doc! { "n": number(count) });
    store
}

fn batch(reply: &Document, name: &str) -> Vec<String> {
    let batch = reply.get_document("cursor").unwrap().get_array(name);
    let key = |value: &Bson| value.as_document()?.get_str("_id").ok().map(str::to_owned);
    batch.unwrap().iter().filter_map(key).collect()
}

#[test]
fn documents_are_found_by_key_by_range_and_in_order() {
    let mut store = filled(5);
    let mut find = |command: Document| batch(&run(&mut store, command), "firstBatch");
    assert_eq!(
        find(doc! { "find": "c", "filter": { "_id": "k003" }, "limit": 1, "singleBatch": true }),
        ["k003"]
    );
    assert_eq!(
        find(
            doc! { "find": "c", "filter": { "_id": { "$gte": "k001" } }, "limit": 2, "sort": { "_id": 1 } }
        ),
        ["k001", "k002"]
    );
    assert_eq!(find(doc! { "find": "c", "sort": { "_id": -1 }, "limit": 1 }), ["k004"]);
    assert_eq!(
        find(doc! { "find": "c", "filter": { "_id": { "$gt": "k003", "$lt": "k003" } } }),
        Vec::<String>::new()
    );
    assert_eq!(find(doc! { "find": "other" }), Vec::<String>::new());
    let reply = run(
        &mut store,
        doc! { "find": "c", "filter": { "_id": "k001" }, "projection": { "b": 1 } },
    );
    let cursor = reply.get_document("cursor").unwrap();
    assert_eq!(cursor.get_array("firstBatch").unwrap(), &[doc! { "_id": "k001", "b": "x" }.into()]);
}

#[test]
fn a_cursor_gives_everything_once() {
    let mut store = filled(250);
    let first = run(&mut store, doc! { "find": "c" });
    assert_eq!(batch(&first, "firstBatch").len(), FIRST_BATCH);
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let more = doc! { "getMore": id, "collection": "c", "batchSize": 100 };
    assert_eq!(batch(&run(&mut store, more.clone()), "nextBatch").len(), 100);
    assert_eq!(batch(&run(&mut store, more.clone()), "nextBatch").len(), 49);
    assert_eq!(run(&mut store, more), doc! { "code": 43 });
    let killed = run(&mut store, doc! { "killCursors": "c", "cursors": [id] });
    assert_eq!(killed.get_array("cursorsNotFound").unwrap().len(), 1);
}

#[test]
fn updates_set_replace_and_make_documents() {
    let mut store = filled(2);
    let mut update = |q: &str, u: Document, upsert: bool| {
        run(
            &mut store,
            doc! { "update": "c", "updates": [{ "q": { "_id": q }, "u": u, "upsert": upsert }] },
        )
    };
    let set = doc! { "$set": { "a": 7 } };
    assert_eq!(update("k000", set.clone(), false), doc! { "n": 1, "nModified": 1 });
    assert_eq!(update("k000", set.clone(), false), doc! { "n": 1, "nModified": 0 });
    assert_eq!(update("none", set.clone(), false), doc! { "n": 0, "nModified": 0 });
    let made = update("new", set, true);
    assert_eq!(made.get_array("upserted").unwrap(), &[doc! { "index": 0, "_id": "new" }.into()]);
    assert_eq!(update("k001", doc! { "c": 1 }, false), doc! { "n": 1, "nModified": 1 });
    let wrong = update("k001", doc! { "$set": { "_id": "k002" } }, false);
    assert!(wrong.contains_key("writeErrors"), "{wrong}");
    let unknown = update("k001", doc! { "$inc": { "a": 1 } }, false);
    assert!(unknown.contains_key("writeErrors"), "{unknown}");
    let found = run(&mut store, doc! { "find": "c", "filter": { "_id": { "$gte": "k" } } });
    let all = found.get_document("cursor").unwrap();
    let expected = [
        doc! { "_id": "k000", "a": 7, "b": "x" },
        doc! { "_id": "k001", "c": 1 },
        doc! { "_id": "new", "a": 7 },
    ];
    assert_eq!(all.get_array("firstBatch").unwrap(), &expected.map(Bson::from));
}

#[test]
fn an_existing_document_ends_only_an_ordered_insert() {
    let mut store = filled(1);
    let documents = vec![doc! { "_id": "k000" }, doc! { "_id": "z" }];
    let mut insert = |ordered: bool| {
        run(&mut store, doc! { "insert": "c", "documents": documents.clone(), "ordered": ordered })
    };
    let reply = insert(true);
    assert_eq!(reply.get_i32("n").unwrap(), 0);
    let error = reply.get_array("writeErrors").unwrap()[0].as_document();
    assert_eq!(error.unwrap().get_i32("code").unwrap(), 11_000);
    assert_eq!(insert(false).get_i32("n").unwrap(), 1);
}

#[test]
fn counts_and_sizes_match_the_documents() {
    let mut store = filled(3);
    let deleted = run(
        &mut store,
        doc! { "delete": "c", "deletes": [{ "q": { "_id": "k001" }, "limit": 1 }] },
    );
    assert_eq!(deleted, doc! { "n": 1 });
    assert_eq!(run(&mut store, doc! { "count": "c" }), doc! { "n": 2 });
    for stage in [doc! { "$count": "n" }, doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }] {
        let reply = run(&mut store, doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} });
        let cursor = reply.get_document("cursor").unwrap();
        let first = cursor.get_array("firstBatch").unwrap()[0].as_document();
        assert_eq!(first.unwrap().get_i32("n").unwrap(), 2);
    }
    let statistics = run(&mut store, doc! { "collStats": "c" });
    assert_eq!(statistics.get_i32("count").unwrap(), 2);
    assert!(statistics.get_i32("size").unwrap() > 40);
}

#[test]
fn collections_are_made_listed_and_dropped() {
    let mut store = filled(1);
    assert_eq!(run(&mut store, doc! { "create": "c" }), doc! { "code": 48 });
    assert_eq!(run(&mut store, doc! { "create": "e" }), doc! {});
    let mut names = |filter: Document| {
        let reply =
            run(&mut store, doc! { "listCollections": 1, "filter": filter, "nameOnly": true });
        let cursor = reply.get_document("cursor").unwrap();
        cursor.get_array("firstBatch").unwrap().len()
    };
    assert_eq!(names(doc! {}), 2);
    assert_eq!(names(doc! { "name": "e" }), 1);
    assert_eq!(names(doc! { "name": "f" }), 0);
    assert!(run(&mut store, doc! { "drop": "e" }).contains_key("ns"));
    assert_eq!(run(&mut store, doc! { "drop": "e" }), doc! { "code": 26 });
}
