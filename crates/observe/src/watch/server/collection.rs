//! Size of a collection, and its part in the cache.

use super::ask::{Ask, AskError, failure, is_forbidden};
use super::fields::{Fields, at, number_of};
use crate::health::Health;
use bson::{Bson, Document, doc};
use dyno_record::model::CollectionStatistics;

/// Asks for the statistics of a collection by `collStats`, or by the stage `$collStats` if the
/// server no longer has that command. For a sharded collection they are sums over the shards. Most
/// versions report a missing collection as an empty one.
///
/// # Errors
/// Why the server does not report them.
pub fn collection_statistics(
    ask: &mut dyn Ask,
    database: &str,
    collection: &str,
) -> Result<CollectionStatistics, Health> {
    let refused = match ask.ask(database, doc! { "collStats": collection }) {
        Ok(answer) => {
            let shards = answer.get_document("shards").ok();
            let parts: Vec<&Document> = match shards {
                Some(shards) => shards.values().filter_map(Bson::as_document).collect(),
                None => vec![&answer],
            };
            return of_parts(&parts);
        }
        Err(error) => error,
    };
    if matches!(refused, AskError::Lost { .. }) || is_forbidden(&refused) {
        return Err(failure("collStats", &refused));
    }
    let command = doc! {
        "aggregate": collection,
        "pipeline": [{ "$collStats": { "storageStats": {} } }],
        "cursor": {},
    };
    // The refusal of the command that should work is more informative than the other one.
    let answer = ask.ask(database, command).map_err(|_| failure("collStats", &refused))?;
    let batch = at(&answer, "cursor.firstBatch").and_then(Bson::as_array);
    let parts: Vec<&Document> = batch
        .into_iter()
        .flatten()
        .filter_map(|part| at(part.as_document()?, "storageStats")?.as_document())
        .collect();
    of_parts(&parts)
}

/// Sums the reports of the shards; a single server is one part.
fn of_parts(parts: &[&Document]) -> Result<CollectionStatistics, Health> {
    let sum = |path: &str| -> Option<u64> {
        let numbers: Option<Vec<f64>> = parts.iter().map(|part| part.number(path)).collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
        Some(numbers.iter().sum::<f64>().max(0.0) as u64)
    };
    let documents = sum("count").ok_or_else(|| Health::Degraded {
        reason: "the answer to `collStats` has no `count`".to_owned(),
    })?;
    let data_bytes = sum("size");
    let mut statistics = CollectionStatistics {
        documents,
        data_bytes,
        storage_bytes: sum("storageSize"),
        free_storage_bytes: sum("freeStorageSize"),
        indexes_bytes: sum("totalIndexSize"),
        mean_document_bytes: data_bytes
            .filter(|_| documents > 0)
            .map(|bytes| bytes as f64 / documents as f64),
        cached_bytes: sum("wiredTiger.cache.bytes currently in the cache"),
        pages_read: sum("wiredTiger.cache.pages read into cache"),
        ..CollectionStatistics::default()
    };
    let indexes = parts.iter().filter_map(|part| part.get_document("indexSizes").ok());
    for (name, _) in indexes.clone().flatten() {
        // A name may contain dots.
        let sizes = indexes.clone().filter_map(|sizes| number_of(sizes.get(name)?));
        let sizes = sizes.map(|bytes| bytes.max(0.0) as u64);
        statistics.index_bytes.insert(name.clone(), sizes.sum());
    }
    Ok(statistics)
}
