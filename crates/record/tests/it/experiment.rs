//! `experiment.json`: the committed JSON schema is current, and the golden documents of all kinds in
//! `tests/golden/experiments` can be read and written back unchanged.

use dyno_record::Document;
use dyno_record::RecordError;
use dyno_record::experiment::{Answer, Experiment, FILE, SCHEMA_VERSION, Verb};
use dyno_record::schema::experiment_schema;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The golden documents with their kinds.
const GOLDEN: [(&str, Verb); 6] = [
    ("sweep", Verb::Sweep),
    ("blocks", Verb::Sweep),
    ("xmax", Verb::Xmax),
    ("slo", Verb::Slo),
    ("ab", Verb::Ab),
    ("suite", Verb::Suite),
];

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn committed() -> PathBuf {
    in_crate("schema/experiment.schema.json")
}

fn golden(name: &str) -> Value {
    let path = in_crate("tests/golden/experiments").join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Reads a value as the document in a folder.
fn read(value: &Value) -> Result<Experiment, RecordError> {
    let folder = tempfile::tempdir().unwrap();
    assert!(!Experiment::is_in(folder.path()));
    fs::write(folder.path().join(FILE), value.to_string()).unwrap();
    assert!(Experiment::is_in(folder.path()));
    Experiment::read(folder.path())
}

#[test]
fn the_committed_schema_is_current() {
    let text = format!("{}\n", serde_json::to_string_pretty(&experiment_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(committed(), &text).unwrap();
    }
    let found = fs::read_to_string(committed()).unwrap();
    assert!(found == text, "run `UPDATE_SCHEMA=1 cargo test -p dyno-record --test it experiment`");
}

#[test]
fn only_valid_documents_satisfy_the_schema() {
    let schema = serde_json::from_str(&fs::read_to_string(committed()).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, _) in GOLDEN {
        let result = validator.validate(&golden(name)).map_err(|error| error.to_string());
        assert_eq!(result, Ok(()), "{name}");
    }
    let refused = |name: &str, pointer: &str, value: Value| {
        let mut document = golden(name);
        *document.pointer_mut(pointer).unwrap() = value;
        !validator.is_valid(&document)
    };
    assert!(refused("sweep", "/verb", json!("guess")));
    assert!(refused("sweep", "/status", json!("finished")));
    assert!(refused("sweep", "/answer/levels/0/clients", json!(-1)));
    assert!(refused("blocks", "/points/0/block", json!("half-open")));
    assert!(refused("xmax", "/answer/search/end", json!("tired")));
    assert!(refused("slo", "/answer/attempts/0/kept", json!("yes")));
    assert!(refused("ab", "/points/0/side", json!("c")));
    let errors = "/answer/rows/0/operations/read/errors";
    assert!(refused("suite", errors, json!(-1)));
}

#[test]
fn golden_documents_are_written_back_unchanged() {
    for (name, verb) in GOLDEN {
        let golden = golden(name);
        let read = read(&golden).unwrap();
        assert_eq!(read.verb, verb, "{name}");
        let is_answered = matches!(
            (name, read.answer.as_ref()),
            ("sweep", Some(Answer::Sweep(_)))
                | ("blocks", Some(Answer::Blocks(_)))
                | ("xmax", Some(Answer::Xmax(_)))
                | ("slo", Some(Answer::Slo(_)))
                | ("ab", Some(Answer::Ab(_)))
                | ("suite", Some(Answer::Suite(_)))
        );
        assert!(is_answered, "{name}");
        let folder = tempfile::tempdir().unwrap();
        read.write(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(written, golden, "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn unreadable_documents_are_errors() {
    let mut later = golden("sweep");
    later["schema_version"] = json!(SCHEMA_VERSION + 1);
    assert!(matches!(read(&later), Err(RecordError::NewerSchema { .. })));
    let mut without = golden("sweep");
    without.as_object_mut().unwrap().remove("points");
    assert!(matches!(read(&without), Err(RecordError::Document { .. })));
    let nowhere = Experiment::read(Path::new("/nowhere/at/all"));
    assert!(matches!(nowhere, Err(RecordError::NoSuchFolder { .. })));
}
