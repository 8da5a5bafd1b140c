//! Traces are read back as they were written, in parts, and after the writer was killed.

use crate::trace_data::{block, call, document};
use dyno_record::error::RecordError;
use dyno_record::io_trace::document::{TraceCaveatKind, TraceMode};
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_record::io_trace::reader::TraceReader;
use dyno_record::io_trace::writer::{PartLimits, TraceWriter};
use dyno_record::schema::trace_schema;
use dyno_record::statement::Statement;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn limits(rows: usize) -> PartLimits {
    PartLimits { rows, age: Duration::from_secs(3600) }
}

fn calls_of(reader: &TraceReader) -> Vec<Call> {
    let batches = reader.calls().unwrap().map(Result::unwrap);
    batches.flat_map(|batch| batch.iter().collect::<Vec<_>>()).collect()
}

fn blocks_of(reader: &TraceReader) -> Vec<BlockRequest> {
    reader.block().unwrap().flat_map(Result::unwrap).collect()
}

fn tables(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn events_come_back_in_order_from_several_parts() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("io-trace");
    let mut writer = TraceWriter::create(&directory, &document(), limits(1000)).unwrap();
    let calls: Vec<Call> = (0..2500).map(call).collect();
    let blocks: Vec<BlockRequest> = (0..1000).map(block).collect();
    for piece in calls.chunks(300) {
        writer.calls(piece).unwrap();
    }
    writer.block(&blocks).unwrap();
    assert_eq!((writer.call_count(), writer.block_count()), (2500, 1000));
    let written = writer.finish(document()).unwrap();
    assert!(written.complete);
    assert_eq!((written.calls, written.block_requests), (2500, 1000));
    assert_eq!(
        tables(&directory),
        [
            "SHA256SUMS",
            "block-000.parquet",
            "calls-000.parquet",
            "calls-001.parquet",
            "calls-002.parquet",
            "files.parquet",
            "trace.json"
        ]
    );
    let reader = TraceReader::open(&directory).unwrap();
    assert_eq!(reader.document(), &written);
    assert_eq!(calls_of(&reader), calls);
    assert_eq!(blocks_of(&reader), blocks);
}

#[test]
fn a_killed_trace_is_read_up_to_its_last_closed_part() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(folder.path(), &document(), limits(1000)).unwrap();
    let calls: Vec<Call> = (0..2500).map(call).collect();
    writer.calls(&calls).unwrap();
    // A killed process does not close anything.
    std::mem::forget(writer);
    let reader = TraceReader::open(folder.path()).unwrap();
    assert_eq!(calls_of(&reader), calls[..2000]);
    assert!(!reader.document().complete);
    let kinds: Vec<TraceCaveatKind> = reader.document().caveats.iter().map(|c| c.kind).collect();
    assert!(kinds.contains(&TraceCaveatKind::Partial), "{kinds:?}");
}

#[test]
fn a_part_is_closed_at_its_maximum_age_without_new_rows() {
    let folder = tempfile::tempdir().unwrap();
    let limits = PartLimits { rows: 1000, age: Duration::ZERO };
    let mut writer = TraceWriter::create(folder.path(), &document(), limits).unwrap();
    writer.calls(&[call(0)]).unwrap();
    writer.calls(&[]).unwrap();
    writer.calls(&[call(1)]).unwrap();
    std::mem::forget(writer);
    let reader = TraceReader::open(folder.path()).unwrap();
    assert_eq!(calls_of(&reader), [call(0), call(1)]);
}

#[test]
fn a_trace_without_events_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let mut start = document();
    start.mode = TraceMode::Aggregated;
    start.calls = 77;
    let writer = TraceWriter::create(folder.path(), &start, limits(1000)).unwrap();
    let written = writer.finish(start).unwrap();
    assert_eq!(written.calls, 77);
    let reader = TraceReader::open(folder.path()).unwrap();
    assert!(calls_of(&reader).is_empty() && blocks_of(&reader).is_empty());
}

#[test]
fn create_and_open_refuse_unsuitable_folders() {
    let folder = tempfile::tempdir().unwrap();
    let none = TraceReader::open(folder.path()).unwrap_err();
    assert!(matches!(none, RecordError::NoDocument { .. }), "{none}");
    let missing = TraceReader::open(&folder.path().join("x")).unwrap_err();
    assert!(matches!(missing, RecordError::NoSuchFolder { .. }), "{missing}");
    TraceWriter::create(folder.path(), &document(), limits(10)).unwrap();
    let again = TraceWriter::create(folder.path(), &document(), limits(10)).err().unwrap();
    assert!(matches!(again, RecordError::HoldsTrace { .. }), "{again}");
}

#[test]
fn a_damaged_table_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(folder.path(), &document(), limits(100)).unwrap();
    writer.calls(&(0..100).map(call).collect::<Vec<_>>()).unwrap();
    writer.finish(document()).unwrap();
    std::fs::write(folder.path().join("calls-000.parquet"), b"PAR1").unwrap();
    let reader = TraceReader::open(folder.path()).unwrap();
    let mut batches = reader.calls().unwrap();
    let error = batches.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("calls-000.parquet"), "{error}");
    assert!(batches.next().is_none());
}

#[test]
fn a_table_with_other_columns_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(folder.path(), &document(), limits(100)).unwrap();
    writer.block(&[block(1)]).unwrap();
    writer.finish(document()).unwrap();
    let from = folder.path().join("block-000.parquet");
    std::fs::rename(from, folder.path().join("calls-000.parquet")).unwrap();
    let reader = TraceReader::open(folder.path()).unwrap();
    let error = reader.calls().unwrap().next().unwrap().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("column 0 is not `start_ns`"), "{cause}");
}

#[test]
fn a_document_of_a_later_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut later = serde_json::to_value(document()).unwrap();
    later["schema_version"] = 99.into();
    std::fs::write(folder.path().join("trace.json"), later.to_string()).unwrap();
    let error = TraceReader::open(folder.path()).unwrap_err();
    assert!(matches!(error, RecordError::NewerSchema { found: 99, .. }), "{error}");
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/trace.schema.json")
}

#[test]
fn the_committed_schema_is_current_and_satisfied() {
    let text = format!("{}\n", serde_json::to_string_pretty(&trace_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(committed(), &text).unwrap();
    }
    let found = std::fs::read_to_string(committed()).unwrap();
    assert!(found == text, "run `UPDATE_SCHEMA=1 cargo test -p dyno-record --test io_trace`");
    let validator = jsonschema::validator_for(&serde_json::from_str(&found).unwrap()).unwrap();
    let mut value = serde_json::to_value(document()).unwrap();
    let result = validator.validate(&value).map_err(|error| error.to_string());
    assert_eq!(result, Ok(()));
    value["mode"] = "pictures".into();
    assert!(!validator.is_valid(&value));
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/io-trace-v1")
}

#[test]
fn the_golden_trace_of_version_1_gives_known_events() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(golden());
        let mut writer = TraceWriter::create(&golden(), &document(), limits(50)).unwrap();
        writer.calls(&(0..80).map(call).collect::<Vec<_>>()).unwrap();
        writer.block(&(0..20).map(block).collect::<Vec<_>>()).unwrap();
        writer.finish(document()).unwrap();
    }
    let reader = TraceReader::open(&golden()).unwrap();
    let mut expected = document();
    (expected.calls, expected.block_requests, expected.complete) = (80, 20, true);
    expected.caveats[0].statement =
        Statement::recorded("2 of 82 calls were lost").with("hint", "give the buffer more room");
    assert_eq!(reader.document(), &expected);
    // Written before the column `fetched` existed.
    let without = (0..80).map(|number| Call { fetched: -1, ..call(number) });
    assert_eq!(calls_of(&reader), without.collect::<Vec<_>>());
    assert_eq!(blocks_of(&reader), (0..20).map(block).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_values_within_the_range_of_tables_come_back(
        start_ns in any::<i64>(),
        latency_ns in 0..=i64::MAX as u64,
        offset in any::<i64>(),
        returned in any::<i64>(),
        file in any::<u32>(),
        thread in any::<u32>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let one = Call { start_ns, latency_ns, offset, returned, file, thread, ..call(3) };
        let mut writer = TraceWriter::create(folder.path(), &document(), limits(10)).unwrap();
        writer.calls(&[one]).unwrap();
        writer.finish(document()).unwrap();
        let reader = TraceReader::open(folder.path()).unwrap();
        prop_assert_eq!(calls_of(&reader), vec![one]);
    }
}
