//! Checks of the documents.

use super::problems::Problems;
use crate::model::{DataPlan, FieldLength, Plan, ServerKind};
use std::ops::RangeInclusive;

/// Key numbers have 63 bits, as in YCSB.
pub(super) const RECORDS: u64 = 1 << 62;

/// Largest document that a server stores, in bytes.
pub(super) const DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// Largest size of the documents in an insert command, below the 48 000 000 bytes of a server's
/// largest message.
const BATCH_BYTES: u64 = 47_000_000;

pub(super) fn check_data(problems: &mut Problems, data: &DataPlan, batch: u32) {
    check_namespace(problems, data);
    problems.within("data.records", data.records, 1..=RECORDS);
    let end = data.insert_start.saturating_add(data.insert_count.unwrap_or(0));
    problems.require_or(
        ["data.insert_start", "data.insert_count", "data.records"],
        end <= data.records && data.insert_start < data.records.max(1),
        "the client's part must lie within the data set",
        || {
            format!(
                "`data.insert_start` + `data.insert_count` is `{end}`, beyond `data.records` = `{}`",
                data.records
            )
        },
    );
    problems.require(
        "data.insert_count",
        data.insert_count != Some(0),
        "is `0`, but must be at least 1",
    );
    problems.require_or(
        ["data.insert_offset", "data.insert_step"],
        data.insert_offset < data.insert_step,
        "two clients must not use the same numbers",
        || {
            format!(
                "`data.insert_offset` is `{}`, but must be below `data.insert_step` = `{}`",
                data.insert_offset, data.insert_step
            )
        },
    );
    problems.within("data.field_count", data.field_count, 1..=10_000);
    problems.ratio("data.compressible_ratio", data.compressible_ratio);
    problems.within("data.zero_padding", data.zero_padding, 0..=64);
    check_field_length(problems, data, batch);
    check_indexes(problems, data);
}

/// A collection has at most 64 indexes, one of them on `_id`.
const INDEXES: usize = 63;

fn check_indexes(problems: &mut Problems, data: &DataPlan) {
    let is_field = |name: &str| {
        let number = name.strip_prefix(data.field_name_prefix.as_str());
        let number = number.and_then(|number| number.parse::<u32>().ok());
        name == "_id" || number.is_some_and(|number| number < data.field_count)
    };
    let all: Vec<Vec<&str>> = data.index_keys().collect();
    problems.require("data.indexes", all.len() <= INDEXES, || {
        format!("has {}, but a collection can have {INDEXES} secondary indexes", all.len())
    });
    for (place, fields) in all.iter().enumerate() {
        let unknown = fields.iter().find(|name| !is_field(name));
        problems.require_or(
            &format!("data.indexes[{place}]"),
            unknown.is_none(),
            "the fields of a document are `_id` and, by default, `field0` to `field9`; see docs/limits.md",
            || {
                format!(
                    "names `{}`, which is not a field of a document",
                    unknown.copied().unwrap_or_default()
                )
            },
        );
        let is_twice = fields.iter().enumerate().any(|(at, name)| fields[..at].contains(name));
        problems.require(&format!("data.indexes[{place}]"), !is_twice, "names a field twice");
        let is_known = fields.as_slice() == ["_id"] || all[..place].contains(fields);
        problems.require(
            &format!("data.indexes[{place}]"),
            !is_known,
            "is an index that already exists",
        );
    }
}

/// Valid range of `data.times_cache`.
pub(crate) const TIMES_CACHE: RangeInclusive<f64> = 0.01..=1000.0;

pub(super) fn check_times_cache(problems: &mut Problems, plan: &Plan) {
    let Some(times) = plan.data.times_cache else {
        return;
    };
    problems.within("data.times_cache", times, TIMES_CACHE);
    problems.require_or(
        "data.times_cache",
        plan.server.cache.is_some() && plan.server.kind != ServerKind::Uri,
        "set the number of documents with `data.records`, or set the cache of a server that dyno \
            starts with `server.cache`",
        "needs a known cache size",
    );
    problems.require(
        "data.times_cache",
        plan.data.mean_document_bytes().is_some_and(|bytes| bytes > 0),
        "needs documents with fields, and cannot use a histogram of lengths",
    );
}

fn check_namespace(problems: &mut Problems, data: &DataPlan) {
    let database_ok = !data.database.is_empty()
        && data.database.len() < 64
        && !data.database.chars().any(|c| "/\\. \"$*<>:|?\0".contains(c));
    problems.require("data.database", database_ok, || {
        format!("is `{}`, which is not a valid database name", data.database)
    });
    let collection_ok = !data.collection.is_empty()
        && data.collection.len() < 200
        && !data.collection.contains(['$', '\0'])
        && !data.collection.starts_with("system.");
    problems.require("data.collection", collection_ok, || {
        format!("is `{}`, which is not a valid collection name", data.collection)
    });
    let prefix = &data.field_name_prefix;
    problems.require(
        "data.field_name_prefix",
        !prefix.is_empty() && !prefix.starts_with('$') && !prefix.contains(['.', '\0']),
        || format!("is `{prefix}`, but must not be empty, start with `$` or contain `.`"),
    );
    problems.require(
        "data.key_prefix",
        data.key_prefix.len() <= 128 && !data.key_prefix.contains('\0'),
        "must have at most 128 bytes and no zero byte",
    );
}

/// Size of the largest document in bytes, including names and overhead of the fields.
fn document_bytes(data: &DataPlan) -> u64 {
    let longest = match &data.field_length {
        FieldLength::Constant { bytes } => *bytes,
        FieldLength::Uniform { max_bytes, .. } | FieldLength::Zipfian { max_bytes, .. } => {
            *max_bytes
        }
        FieldLength::Histogram { block_bytes, weights } => {
            block_bytes.saturating_mul(u32::try_from(weights.len()).unwrap_or(u32::MAX))
        }
    };
    // Type, terminator, length and subtype of an element, and the digits of its number.
    let overhead = data.field_name_prefix.len() as u64 + 7 + 5;
    (u64::from(longest) + overhead) * u64::from(data.field_count) + 256
}

fn check_field_length(problems: &mut Problems, data: &DataPlan, batch: u32) {
    if let FieldLength::Uniform { min_bytes, max_bytes }
    | FieldLength::Zipfian { min_bytes, max_bytes } = &data.field_length
    {
        problems.require("data.field_length", min_bytes <= max_bytes, || {
            format!("has `min_bytes` = `{min_bytes}` above `max_bytes` = `{max_bytes}`")
        });
    }
    if let FieldLength::Histogram { block_bytes, weights } = &data.field_length {
        problems.require(
            "data.field_length",
            *block_bytes > 0 && weights.iter().any(|weight| *weight > 0),
            "needs `block_bytes` above 0 and a positive weight",
        );
    }
    let bytes = document_bytes(data);
    problems.require([], bytes < DOCUMENT_BYTES, || {
        format!("a document would have up to {bytes} bytes, but a server stores at most {DOCUMENT_BYTES}")
    });
    let batch_bytes = bytes.saturating_mul(u64::from(batch));
    let fits = bytes >= DOCUMENT_BYTES || batch_bytes <= BATCH_BYTES;
    problems.require_or("client.batch", fits, "reduce `client.batch`", || {
        format!("= `{batch}` documents have up to {batch_bytes} bytes, but a command takes at most {BATCH_BYTES}")
    });
    let constant = matches!(data.field_length, FieldLength::Constant { .. });
    problems.require(
        "data.integrity",
        !data.integrity || constant,
        "needs `data.field_length` with `distribution = \"constant\"`",
    );
    problems.require(
        "data.integrity",
        !data.integrity || data.compressible_ratio == 0.0,
        "computes the values, so `data.compressible_ratio` cannot be set",
    );
}
