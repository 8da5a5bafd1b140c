//! `index-build.json`: the committed JSON schema is current, and the handwritten `tests/golden/index-build.json` can be
//! read and written back unchanged.

use dyno_record::Document;
use dyno_record::error::RecordError;
use dyno_record::index_build::{FILE, IndexBuildDocument, SCHEMA_VERSION};
use dyno_record::model::RunStatus;
use dyno_record::schema::index_build_schema;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn committed() -> PathBuf {
    in_crate("schema/index-build.schema.json")
}

fn golden() -> String {
    fs::read_to_string(in_crate("tests/golden/index-build.json")).unwrap()
}

fn validator() -> jsonschema::Validator {
    let text = fs::read_to_string(committed()).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Reads a text as the document in a folder.
fn read(text: &str) -> Result<IndexBuildDocument, RecordError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), text).unwrap();
    assert!(IndexBuildDocument::is_in(folder.path()));
    IndexBuildDocument::read(folder.path())
}

#[test]
fn the_committed_schema_is_current() {
    let schema = serde_json::to_string_pretty(&index_build_schema()).unwrap();
    let text = format!("{schema}\n");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(committed(), &text).unwrap();
    }
    let found = fs::read_to_string(committed()).unwrap();
    assert!(found == text, "run `UPDATE_SCHEMA=1 cargo test -p dyno-record --test index_build`");
}

#[test]
fn only_valid_documents_satisfy_the_schema() {
    let validator = validator();
    let golden: Value = serde_json::from_str(&golden()).unwrap();
    let result = validator.validate(&golden);
    assert_eq!(result.map_err(|error| error.to_string()), Ok(()));

    let refused = |pointer: &str, value: Value| {
        let mut document = golden.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        !validator.is_valid(&document)
    };
    assert!(refused("/status", json!("finished")));
    assert!(refused("/builds/0/duration_s", json!("223 s")));
    assert!(refused("/remedy/documents", json!([60000])));
    assert!(refused("/disk/iops", json!(-1)));
    let mut without = golden.clone();
    without.as_object_mut().unwrap().remove("builds");
    assert!(!validator.is_valid(&without));
}

#[test]
fn a_document_without_builds_satisfies_the_schema() {
    let mut document = read(&golden()).unwrap();
    document.status = RunStatus::Failed;
    document.builds.clear();
    document.disk = None;
    document.remedy = None;
    document.collection.load_s = None;
    document.server.version = None;
    let value = serde_json::to_value(&document).unwrap();
    let result = validator().validate(&value).map_err(|e| e.to_string());
    assert_eq!(result, Ok(()));
    assert_eq!(read(&value.to_string()).unwrap(), document);
}

#[test]
fn the_golden_document_is_written_back_unchanged() {
    let document = read(&golden()).unwrap();
    assert_eq!(document.status, RunStatus::Partial);
    let [before, after] = document.builds.as_slice() else {
        panic!("{} builds", document.builds.len());
    };
    assert_eq!(before.duration_s, 223.408_112);
    assert_eq!(before.device.unwrap().busy_ratio, Some(0.9973));
    assert_eq!(before.process.unwrap().busy_ratio, None);
    assert_eq!(after.read_at_start_bytes, None);
    assert_eq!(after.device, None);
    let pages = before.server["wiredTiger.cache.pages read into cache"];
    assert_eq!(pages, 44_391.0);
    let remedy = document.remedy.as_ref().unwrap();
    assert!(remedy.is_identical());
    assert_eq!(remedy.cache_bytes, Some(512 << 20));
    assert_eq!(document.disk.as_ref().unwrap().iops, Some(200));
    assert_eq!(document.caveats[0].build.as_deref(), Some("before"));

    let folder = tempfile::tempdir().unwrap();
    document.write(folder.path()).unwrap();
    let written = fs::read_to_string(folder.path().join(FILE)).unwrap();
    // The order of keys in the plan does not matter.
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&written), value(&golden()));
    let without_plan = |text: &str| {
        let (start, rest) = text.split_once("\"plan\"").unwrap();
        let (_, end) = rest.split_once("\"product\"").unwrap();
        let (end, _) = end.split_once("\"caveats\"").unwrap();
        format!("{start}{end}")
    };
    assert_eq!(without_plan(&written), without_plan(&golden()));
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [FILE], "a temporary file remains");
}

#[test]
fn a_document_of_a_later_version_is_refused() {
    let mut later: Value = serde_json::from_str(&golden()).unwrap();
    later["schema_version"] = json!(SCHEMA_VERSION + 1);
    // A later version may have another structure.
    later["builds"] = json!({});
    match read(&later.to_string()) {
        Err(RecordError::NewerSchema { found, supported, .. }) => {
            assert_eq!((found, supported), (2, SCHEMA_VERSION))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalid_document_is_refused_with_its_path() {
    for text in ["", "{", "[]", "{\"schema_version\": 1}"] {
        match read(text) {
            Err(RecordError::Document { path, .. }) => assert!(path.ends_with(FILE)),
            other => panic!("{text}: {other:?}"),
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let missing = IndexBuildDocument::read(folder.path());
    assert!(matches!(missing, Err(RecordError::NoDocument { .. })));
}
