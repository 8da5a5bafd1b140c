//! Statistics of a collection.

use super::*;
use dyno_record::model::CollectionStatistics;

fn statistics<F>(answer: F) -> (Result<CollectionStatistics, Health>, Asked)
where
    F: FnMut(&str, &Document) -> Result<Document, AskError> + Send,
{
    let asked = Asked::default();
    let mut scripted = Scripted { asked: Arc::clone(&asked), answer };
    let found = collection_statistics(&mut scripted, "ycsb", "usertable");
    (found, asked)
}

fn part(n: i64) -> Document {
    doc! {
        "ns": "ycsb.usertable", "count": 100 * n, "size": 120_000.0 * n as f64, "avgObjSize": 1200,
        "storageSize": 50_000 * n, "freeStorageSize": 4096 * n, "nindexes": 2,
        "totalIndexSize": 8192 * n, "indexSizes": { "_id_": 4096 * n, "a.b_1": 4096 * n },
        "wiredTiger": { "cache": { "bytes currently in the cache": 60_000 * n, "pages read into cache": 7 * n } },
    }
}

fn expected(n: u64) -> CollectionStatistics {
    let sizes = ["_id_", "a.b_1"].map(|name| (name.to_owned(), 4096 * n));
    CollectionStatistics {
        documents: 100 * n,
        data_bytes: Some(120_000 * n),
        storage_bytes: Some(50_000 * n),
        free_storage_bytes: Some(4096 * n),
        indexes_bytes: Some(8192 * n),
        index_bytes: BTreeMap::from(sizes),
        mean_document_bytes: Some(1200.0),
        cached_bytes: Some(60_000 * n),
        pages_read: Some(7 * n),
    }
}

#[test]
fn statistics_have_sizes_indexes_and_the_cache() {
    let (found, asked) = statistics(|_, _| Ok(part(1)));
    assert_eq!(found, Ok(expected(1)));
    let command = ("ycsb".to_owned(), doc! { "collStats": "usertable" });
    assert_eq!(*asked.lock().unwrap(), [command]);
}

#[test]
fn shards_are_summed() {
    let (found, _) = statistics(|_, _| {
        let mut whole = doc! { "sharded": true, "count": 300, "size": 1 };
        whole.insert("shards", doc! { "shard-0": part(1), "shard-1": part(2) });
        Ok(whole)
    });
    assert_eq!(found, Ok(expected(3)));
}

#[test]
fn stage_replaces_a_removed_command() {
    let (found, asked) = statistics(|name, _| match name {
        "collStats" => refused(59, "no such command"),
        _ => Ok(
            doc! { "cursor": { "id": 0_i64, "firstBatch": [{ "storageStats": part(1) }, { "storageStats": part(2) }] } },
        ),
    });
    assert_eq!(found, Ok(expected(3)));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[test]
fn unreported_sizes_are_absent_and_empty_ones_have_no_mean() {
    let (found, _) = statistics(|_, _| Ok(doc! { "count": 0, "size": 0, "ok": 1.0 }));
    let expected = CollectionStatistics { data_bytes: Some(0), ..CollectionStatistics::default() };
    assert_eq!(found, Ok(expected));
}

#[test]
fn refusal_is_reported_with_its_text() {
    let (found, asked) = statistics(|_, _| refused(13, "not authorized on ycsb"));
    let Err(Health::Failed { reason }) = &found else {
        panic!("{found:?}");
    };
    for part in ["`collStats`", "13: not authorized on ycsb"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
    let (found, _) = statistics(|_, _| refused(59, "no such command"));
    assert!(matches!(found, Err(Health::Unsupported { .. })));
    let (found, _) = statistics(|_, _| Ok(doc! { "ok": 1.0 }));
    assert!(matches!(found, Err(Health::Degraded { .. })));
    let (found, asked) = statistics(|_, _| lost());
    assert!(matches!(found, Err(Health::Failed { .. })));
    assert_eq!(asked.lock().unwrap().len(), 1);
}
