//! `tail.json`: the committed JSON schema is current, and `tests/golden/tail.json` from a real run can be read and
//! written back unchanged.

use dyno_record::Document;
use dyno_record::RecordError;
use dyno_record::schema::tail_schema;
use dyno_record::tail::{FILE, SCHEMA_VERSION, TailDocument};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn committed() -> PathBuf {
    in_crate("schema/tail.schema.json")
}

fn golden() -> Value {
    let text = fs::read_to_string(in_crate("tests/golden/tail.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Reads a value as the document in a folder.
fn read(value: &Value) -> Result<TailDocument, RecordError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), value.to_string()).unwrap();
    assert!(TailDocument::is_in(folder.path()));
    TailDocument::read(folder.path())
}

#[test]
fn the_committed_schema_is_current() {
    let text = format!("{}\n", serde_json::to_string_pretty(&tail_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(committed(), &text).unwrap();
    }
    let found = fs::read_to_string(committed()).unwrap();
    assert!(found == text, "run `UPDATE_SCHEMA=1 cargo test -p dyno-record --test it tail`");
}

#[test]
fn only_valid_documents_satisfy_the_schema() {
    let text = fs::read_to_string(committed()).unwrap();
    let schema = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let golden = golden();
    let result = validator.validate(&golden);
    assert_eq!(result.map_err(|error| error.to_string()), Ok(()));
    let refused = |pointer: &str, value: Value| {
        let mut document = golden.clone();
        *document.pointer_mut(pointer).unwrap() = value;
        !validator.is_valid(&document)
    };
    assert!(refused("/status", json!("finished")));
    assert!(refused("/cells/0/settings/mode", json!("push")));
    assert!(refused("/cells/0/measured/consumers/0/sum/lost", json!(-1)));
    assert!(refused("/cells/1/settings/in_flight", json!("many")));
}

#[test]
fn the_golden_document_is_written_back_unchanged() {
    let golden = golden();
    let read = read(&golden).unwrap();
    assert_eq!(read.cells.len(), 4);
    let folder = tempfile::tempdir().unwrap();
    read.write(folder.path()).unwrap();
    let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(written, golden);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn unreadable_documents_are_errors() {
    let mut later = golden();
    later["schema_version"] = json!(SCHEMA_VERSION + 1);
    assert!(matches!(read(&later), Err(RecordError::NewerSchema { .. })));
    let mut without = golden();
    without.as_object_mut().unwrap().remove("cells");
    assert!(matches!(read(&without), Err(RecordError::Document { .. })));
    let nowhere = TailDocument::read(Path::new("/nowhere/at/all"));
    assert!(matches!(nowhere, Err(RecordError::NoSuchFolder { .. })));
}
