//! The golden run of the current format version can be read and gives the same figures.
//!
//! `UPDATE_GOLDEN=1 cargo test -p dyno-record --test it golden` writes `tests/golden/v1`. From the first release on, a
//! format that can no longer read it needs a new version and a new folder, not a new recording.

use dyno_record::model::{Caveat, CaveatKind, KeyShares, PhaseKind, RunStatus, SCHEMA_VERSION};
use dyno_record::reader::Run;
use dyno_record::statement::Statement;
use dyno_record::writer::RunWriter;
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn write_golden(directory: &Path) {
    let mut document = crate::common::document();
    let mut writer = RunWriter::create(directory, crate::common::PLAN, &document).unwrap();
    for index in 0..3 {
        writer.record(&crate::common::window(PhaseKind::Measure, index)).unwrap();
    }
    let mut phase = crate::common::accumulated(3).to_record();
    phase.keys =
        Some(KeyShares { draws: 33, hottest_1_percent_ratio: 0.25, hottest_10_percent_ratio: 0.5 });
    document.phases.push(phase);
    document.caveats.push(Caveat {
        kind: CaveatKind::Errors,
        statement: Statement::recorded("3 of 36 operations failed"),
        phase: Some(PhaseKind::Measure),
    });
    document.status = RunStatus::Complete;
    writer.finish(&document).unwrap();
}

#[test]
fn the_golden_run_of_version_1_gives_known_numbers() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(golden());
        write_golden(&golden());
    }
    let run = Run::open(&golden()).unwrap();
    assert!(!run.rebuilt);
    assert_eq!(run.document.schema_version, SCHEMA_VERSION);
    assert_eq!(run.document.status, RunStatus::Complete);
    let caveat = &run.document.caveats[0];
    assert_eq!(caveat.kind, CaveatKind::Errors);
    let said = Statement::recorded("3 of 36 operations failed");
    assert_eq!(caveat.statement, said);
    let phase = &run.document.phases[0];
    assert_eq!(phase.achieved_rate_per_s, 11.0);
    assert_eq!(phase.little_ratio, Some(1.0083333333333333));
    assert_eq!(phase.keys.unwrap().hottest_10_percent_ratio, 0.5);
    assert_eq!(phase.errors["timeout"], 3);
    let read = &phase.operations["read"];
    assert_eq!(read.response_time_us.mean, 6_500.0);
    assert_eq!(read.response_time_us.p50, 6_000.639);
    assert_eq!(read.response_time_us.p99_99, 12_001.279);
    assert_eq!(read.service_time_us.max, 11_501.567);
    let maxima: Vec<f64> = run.series.iter().map(|point| point.response.max_us).collect();
    assert_eq!(maxima, [10_002.431, 20_004.863, 11_001.855, 20_004.863, 12_001.279, 20_004.863]);
    let merged = run.distribution(PhaseKind::Measure, "read").unwrap();
    assert_eq!(merged.response.len(), 30);
    assert_eq!(merged.response.count_between(0, 6_000_000), 15);
}

#[test]
fn the_golden_run_equals_a_newly_written_one() {
    let folder = tempfile::tempdir().unwrap();
    write_golden(folder.path());
    for name in [
        "plan.toml",
        "series/intervals.csv",
        "series/operations.csv",
        "series/errors.csv",
        "series/sub-second.csv",
    ] {
        let written = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let committed = std::fs::read_to_string(golden().join(name)).unwrap();
        assert!(written == committed, "{name} differs from the committed one");
    }
    let document = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("run.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    assert_eq!(document(folder.path()), document(&golden()));
    // The bytes depend on the version of the compressor, but the histograms do not.
    let written = Run::open(folder.path()).unwrap().distributions;
    assert!(written == Run::open(&golden()).unwrap().distributions);
}
