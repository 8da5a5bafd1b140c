//! The committed JSON schema is current, and real documents satisfy it.

use dyno_record::model::{
    Arrivals, Caveat, CaveatKind, CollectionRecord, CollectionStatistics, KeyShares, PhaseEdge,
    PhaseKind, RunStatus, StorageRecord,
};
use dyno_record::schema::run_schema;
use dyno_record::statement;
use std::path::{Path, PathBuf};

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/run.schema.json")
}

#[test]
fn the_committed_schema_is_current() {
    let text = format!("{}\n", serde_json::to_string_pretty(&run_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(committed().parent().unwrap()).unwrap();
        std::fs::write(committed(), &text).unwrap();
    }
    let found = std::fs::read_to_string(committed()).unwrap();
    assert!(found == text, "run `UPDATE_SCHEMA=1 cargo test -p dyno-record --test schema`");
}

fn validator() -> jsonschema::Validator {
    let text = std::fs::read_to_string(committed()).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn a_running_and_a_full_document_satisfy_the_schema() {
    let validator = validator();
    let mut document = crate::common::document();
    let running = serde_json::to_value(&document).unwrap();
    assert_eq!(validator.validate(&running).map_err(|error| error.to_string()), Ok(()));

    let mut phase = crate::common::accumulated(2).to_record();
    phase.keys = Some(KeyShares::default());
    phase.arrivals = Some(Arrivals::default());
    document.phases = vec![phase];
    document.status = RunStatus::Partial;
    document.status_reason = Some("interrupted".to_owned());
    document.environment.data_storage = Some(StorageRecord::default());
    document.environment.clock_read_ns = Some(22.5);
    document.selfcheck = Some(serde_json::json!({"rate_per_s": 1.0}));
    let reported = CollectionStatistics {
        documents: 1000,
        cached_bytes: Some(1 << 20),
        index_bytes: [("_id_".to_owned(), 4096)].into(),
        ..CollectionStatistics::default()
    };
    document.collections = vec![CollectionRecord {
        phase: PhaseKind::Measure,
        at: PhaseEdge::End,
        instance: "server".to_owned(),
        database: "ycsb".to_owned(),
        collection: "usertable".to_owned(),
        statistics: reported,
    }];
    document.caveats = vec![Caveat {
        kind: CaveatKind::Partial,
        statement: statement!("run-ended-early", reason = "stopped early"),
        phase: Some(PhaseKind::Measure),
    }];
    let full = serde_json::to_value(&document).unwrap();
    assert_eq!(full["collections"][0]["at"], "end");
    assert_eq!(validator.validate(&full).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn the_schema_rejects_other_documents() {
    let validator = validator();
    let mut document = serde_json::to_value(crate::common::document()).unwrap();
    document["status"] = "finished".into();
    assert!(!validator.is_valid(&document));
    document["status"] = "complete".into();
    assert!(validator.is_valid(&document));
    document.as_object_mut().unwrap().remove("phases");
    assert!(!validator.is_valid(&document));
}

#[test]
fn documents_are_read_back_to_the_last_digit() {
    let mut document = crate::common::document();
    let mut phase = crate::common::accumulated(2).to_record();
    phase.achieved_rate_per_s = 1.0 / 3.0;
    phase.mean_in_flight = 2.2250738585072014e-308;
    phase.duration_s = 123_456_789.123_456_79;
    document.phases = vec![phase];
    let text = serde_json::to_string(&document).unwrap();
    let back: dyno_record::model::RunDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(back, document);
}
