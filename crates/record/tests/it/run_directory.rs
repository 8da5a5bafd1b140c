//! Run directories are read back as they were written, complete or truncated anywhere.

use dyno_record::RecordError;
use dyno_record::model::{CaveatKind, KeyShares, PhaseKind, RunStatus, SCHEMA_VERSION};
use dyno_record::reader::Run;
use dyno_record::writer::RunWriter;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILES: [&str; 4] =
    ["latency.hlog", "series/operations.csv", "series/errors.csv", "series/intervals.csv"];

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("runs").join("one");
    (parent, directory)
}

#[test]
fn a_long_run_has_points_that_cover_several_windows() {
    let (_parent, directory) = temporary();
    let mut document = crate::common::document();
    let mut writer = RunWriter::create(&directory, crate::common::PLAN, &document).unwrap();
    for index in 0..5 {
        writer.record(&crate::common::window(PhaseKind::Measure, index)).unwrap();
    }
    document.status = RunStatus::Complete;
    writer.finish(&document).unwrap();

    let run = Run::open_downsampled(&directory, 2).unwrap();
    assert_eq!(run.windows_per_point, 3);
    let lengths: Vec<(f64, f64, u64)> = run
        .intervals
        .iter()
        .map(|point| (point.start_s, point.duration_s, point.succeeded))
        .collect();
    assert_eq!(lengths, [(0.0, 3.0, 33), (3.0, 2.0, 22)]);
    assert_eq!(run.series.len(), 4);
    let reads = &run.series[0];
    assert_eq!((reads.operation.as_str(), reads.count), ("read", 30));
    assert_eq!((reads.start_s, reads.duration_s), (0.0, 3.0));
    // Reads of 1 to 10, 2 to 11 and 3 to 12 ms: the merged median and maximum, not those of one window.
    assert_eq!(reads.response.mean_us, 6_500.0);
    assert!((reads.response.p50_us / 6_000.0 - 1.0).abs() < 0.001);
    assert!((reads.response.max_us / 12_000.0 - 1.0).abs() < 0.001);
    // The phases are the same however few the points are.
    let whole = Run::open(&directory).unwrap();
    assert_eq!(whole.windows_per_point, 1);
    assert_eq!(whole.document.phases, run.document.phases);
}

#[test]
fn a_finished_run_is_read_back_as_it_was_written() {
    let (_parent, directory) = temporary();
    let mut document = crate::common::document();
    let mut writer = RunWriter::create(&directory, crate::common::PLAN, &document).unwrap();
    for index in 0..3 {
        writer.record(&crate::common::window(PhaseKind::Measure, index)).unwrap();
    }
    let mut phase = crate::common::accumulated(3).to_record();
    phase.keys = Some(KeyShares {
        draws: 33,
        hottest_1_percent_ratio: 0.1,
        hottest_10_percent_ratio: 1.0 / 3.0,
    });
    document.phases.push(phase);
    document.status = RunStatus::Complete;
    writer.finish(&document).unwrap();

    let run = Run::open(&directory).unwrap();
    assert_eq!(run.document, document);
    assert!(!run.rebuilt);
    assert_eq!(run.notes, Vec::<String>::new());
    assert_eq!(fs::read_to_string(directory.join("plan.toml")).unwrap(), crate::common::PLAN);
    assert_eq!(run.intervals.len(), 3);
    assert_eq!(run.intervals[2].start_s, 2.0);
    assert_eq!(run.intervals[2].succeeded, 11);
    assert_eq!(run.intervals[2].mean_in_flight, 0.121);
    assert_eq!(run.series.len(), 6);
    assert_eq!(run.series[2].operation, "read");
    assert_eq!(run.series[2].response.mean_us, 6_500.0);
    assert_eq!(run.series[2].service.mean_us, 6_000.0);
    let read = run.distribution(PhaseKind::Measure, "read").unwrap();
    let expected = crate::common::accumulated(3);
    let (_, expected) = expected.distributions().next().unwrap();
    assert_eq!((&read.response, &read.service), (&expected.response, &expected.service));
    assert!(run.distribution(PhaseKind::Load, "read").is_none());
}

#[test]
fn a_killed_run_is_rebuilt_as_the_engine_would() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 4);
    let run = Run::open(&directory).unwrap();
    assert!(run.rebuilt);
    assert_eq!(run.document.status, RunStatus::Partial);
    let reason = run.document.status_reason.as_deref().unwrap();
    assert!(reason.contains("4 recorded windows"), "{reason}");
    assert_eq!(run.document.phases, [crate::common::accumulated(4).to_record()]);
    assert_eq!(run.document.caveats[0].kind, CaveatKind::Partial);
}

#[test]
fn phases_that_ended_before_the_kill_stay_unchanged() {
    let (_parent, directory) = temporary();
    let mut document = crate::common::document();
    let mut writer = RunWriter::create(&directory, crate::common::PLAN, &document).unwrap();
    writer.record(&crate::common::window(PhaseKind::Load, 0)).unwrap();
    let mut load = dyno_record::accumulate::PhaseAccumulator::new(PhaseKind::Load, None);
    load.add(&crate::common::window(PhaseKind::Load, 0)).unwrap();
    let mut load = load.to_record();
    load.duration_s = 1.25;
    document.phases.push(load.clone());
    writer.set_document(&document).unwrap();
    writer.record(&crate::common::window(PhaseKind::Measure, 0)).unwrap();
    std::mem::forget(writer);

    let run = Run::open(&directory).unwrap();
    assert_eq!(run.document.phases, [load, crate::common::accumulated(1).to_record()]);
}

#[test]
fn a_rebuilt_load_phase_has_no_offered_rate() {
    let (_parent, directory) = temporary();
    let mut writer =
        RunWriter::create(&directory, crate::common::PLAN, &crate::common::document()).unwrap();
    writer.record(&crate::common::window(PhaseKind::Load, 0)).unwrap();
    drop(writer);
    let run = Run::open(&directory).unwrap();
    assert_eq!(run.document.phases[0].offered_rate_per_s, None);
    assert_eq!(run.document.phases[0].arrivals, None);
}

#[test]
fn a_run_killed_before_its_first_window_can_be_opened() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 0);
    let run = Run::open(&directory).unwrap();
    assert_eq!(run.document.status, RunStatus::Partial);
    assert!(run.document.phases.is_empty() && run.intervals.is_empty());
}

#[test]
fn truncating_a_file_loses_only_its_last_window() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 2);
    let before: Vec<u64> = FILES.map(|name| length(&directory.join(name))).to_vec();
    fs::remove_dir_all(&directory).unwrap();
    crate::common::killed_run(&directory, 3);
    let expected = crate::common::accumulated(2).to_record();
    for (name, start) in FILES.into_iter().zip(before) {
        let path = directory.join(name);
        let whole = fs::read(&path).unwrap();
        assert!((start as usize) < whole.len());
        for end in start as usize..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let run = Run::open(&directory)
                .unwrap_or_else(|error| panic!("{name} cut at {end}: {error}"));
            assert_eq!(run.document.phases[0], expected, "{name} cut at {end}");
            assert_eq!(run.intervals.len(), 2, "{name} cut at {end}");
            assert_eq!(run.notes.len(), 1, "{name} cut at {end}: {:?}", run.notes);
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(Run::open(&directory).unwrap().notes.len(), 0);
    }
}

/// A kill during the write of a window leaves some files complete, one truncated, and the others without it. The steps
/// are coarse because another test truncates single files at every byte.
#[test]
fn a_kill_during_a_write_loses_only_that_window() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 2);
    let before = FILES.map(|name| fs::read(directory.join(name)).unwrap());
    fs::remove_dir_all(&directory).unwrap();
    crate::common::killed_run(&directory, 3);
    let after = FILES.map(|name| fs::read(directory.join(name)).unwrap());
    for (name, content) in FILES.into_iter().zip(&before) {
        fs::write(directory.join(name), content).unwrap();
    }
    let expected = crate::common::accumulated(2).to_record();
    for ((name, old), new) in FILES.into_iter().zip(&before).zip(&after) {
        for end in (old.len() + 1..new.len()).step_by(11) {
            fs::write(directory.join(name), &new[..end]).unwrap();
            let run = Run::open(&directory).unwrap();
            assert_eq!(run.document.phases[0], expected, "{name} cut at {end}");
            assert_eq!(run.notes.len(), 1, "{name} cut at {end}");
            assert!(run.notes[0].contains(name), "{name} cut at {end}: {:?}", run.notes);
        }
        fs::write(directory.join(name), new).unwrap();
    }
    assert_eq!(Run::open(&directory).unwrap().intervals.len(), 3);
}

#[test]
fn files_with_truncated_headers_give_a_run_without_windows() {
    for name in FILES {
        let (_parent, directory) = temporary();
        crate::common::killed_run(&directory, 1);
        fs::write(directory.join(name), "").unwrap();
        let run = Run::open(&directory).unwrap();
        assert_eq!(run.intervals.len(), 0, "{name}");
    }
}

#[test]
fn a_finished_run_with_truncated_series_keeps_its_figures() {
    let (_parent, directory) = temporary();
    let mut document = crate::common::document();
    let mut writer = RunWriter::create(&directory, crate::common::PLAN, &document).unwrap();
    for index in 0..3 {
        writer.record(&crate::common::window(PhaseKind::Measure, index)).unwrap();
    }
    document.status = RunStatus::Complete;
    document.phases.push(crate::common::accumulated(3).to_record());
    writer.finish(&document).unwrap();
    let path = directory.join("series/operations.csv");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let run = Run::open(&directory).unwrap();
    assert_eq!(run.document.status, RunStatus::Complete);
    assert_eq!(run.document.phases, document.phases);
    assert_eq!(run.document.caveats[0].kind, CaveatKind::ProbeUnavailable);
    assert!(run.notes[0].contains("series/operations.csv"), "{:?}", run.notes);
}

#[test]
fn a_wrong_line_in_the_middle_is_named() {
    for (name, line, from, to) in [
        ("series/intervals.csv", 2, "measure,0,", "measure,x,"),
        ("series/intervals.csv", 1, "phase,", "fase,"),
        ("series/operations.csv", 2, "measure,0,0,", "measure,5,0,"),
        ("series/errors.csv", 2, "measure,0,", "load,0,"),
        ("series/sub-second.csv", 2, ",0,", ",x,"),
        ("latency.hlog", 7, "Tag=measure.read.service", "Tag=measure.read.response"),
        ("latency.hlog", 6, "HISTFAAA", "HISTEAAA"),
    ] {
        let (_parent, directory) = temporary();
        crate::common::killed_run(&directory, 2);
        let path = directory.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}: {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        match Run::open(&directory) {
            Err(RecordError::Corrupt { path: found, line: found_line, .. }) => {
                assert_eq!((found, found_line), (path, line));
            }
            other => panic!("{name}: {:?}", other.err()),
        }
    }
}

#[test]
fn a_histogram_that_disagrees_with_its_row_is_named() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 1);
    let path = directory.join("series/operations.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen(",read,10,", ",read,11,", 1)).unwrap();
    let message = Run::open(&directory).unwrap_err().to_string();
    assert!(message.contains("latency.hlog"), "{message}");
    assert!(message.contains("has 10 values, but `series/operations.csv` has 11"), "{message}");
}

#[test]
fn folders_without_a_run_are_refused_by_name() {
    let parent = tempfile::tempdir().unwrap();
    let missing = parent.path().join("missing");
    assert!(
        matches!(Run::open(&missing), Err(RecordError::NoSuchFolder { path }) if path == missing)
    );
    assert!(
        matches!(Run::open(parent.path()), Err(RecordError::NoDocument { path, .. }) if path == parent.path())
    );
    fs::write(parent.path().join("run.json"), "{\"schema_version\": 1,\n oops").unwrap();
    assert!(
        matches!(Run::open(parent.path()), Err(RecordError::Document { source, .. }) if source.line() == 2)
    );
}

#[test]
fn a_newer_version_is_refused_before_its_content_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let newer = SCHEMA_VERSION + 1;
    fs::write(parent.path().join("run.json"), format!("{{\"schema_version\": {newer}}}")).unwrap();
    let message = Run::open(parent.path()).unwrap_err().to_string();
    assert!(message.contains("schema version 2") && message.contains("up to 1"), "{message}");
}

#[test]
fn a_folder_that_holds_a_run_is_not_touched() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 1);
    let before = fs::read(directory.join("latency.hlog")).unwrap();
    let error = RunWriter::create(&directory, crate::common::PLAN, &crate::common::document())
        .err()
        .unwrap();
    assert!(matches!(error, RecordError::HoldsRun { found: "run.json", .. }), "{error}");
    assert_eq!(fs::read(directory.join("latency.hlog")).unwrap(), before);
}

#[test]
fn create_keeps_other_files_of_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("notes.txt"), "mine").unwrap();
    RunWriter::create(parent.path(), crate::common::PLAN, &crate::common::document()).unwrap();
    assert_eq!(fs::read_to_string(parent.path().join("notes.txt")).unwrap(), "mine");
    Run::open(parent.path()).unwrap();
}

#[test]
fn a_failed_creation_leaves_nothing_behind() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("series"), "a file where the folder should be").unwrap();
    let error = RunWriter::create(parent.path(), crate::common::PLAN, &crate::common::document())
        .err()
        .unwrap();
    assert!(matches!(error, RecordError::Create { .. } | RecordError::Write { .. }), "{error}");
    let left: Vec<_> =
        fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["series"]);

    let mut document = crate::common::document();
    document.started_at = "yesterday".to_owned();
    let directory = parent.path().join("a/b");
    let error = RunWriter::create(&directory, crate::common::PLAN, &document).err().unwrap();
    assert!(matches!(error, RecordError::StartTime { .. }), "{error}");
    assert!(!parent.path().join("a").exists());
}

#[test]
fn the_latency_log_is_readable_by_the_hdrhistogram_library() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 2);
    let text = fs::read(directory.join("latency.hlog")).unwrap();
    let entries: Vec<LogEntry<'_>> =
        IntervalLogIterator::new(&text).collect::<Result<_, _>>().unwrap();
    let started = Duration::from_secs(1_787_393_700);
    assert_eq!(entries[0], LogEntry::StartTime(started));
    assert_eq!(entries[1], LogEntry::BaseTime(started));
    let mut tags = Vec::new();
    for entry in &entries[2..] {
        let LogEntry::Interval(interval) = entry else { panic!("{entry:?}") };
        tags.push(interval.tag().unwrap().as_str());
        assert_eq!(interval.duration(), Duration::from_secs(1));
        let bytes = base64_decode(interval.encoded_histogram());
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert!(matches!(histogram.len(), 1 | 10));
    }
    assert_eq!(
        tags[..6],
        [
            "measure.read.response",
            "measure.read.service",
            "measure.read.start_delay",
            "measure.update.response",
            "measure.update.service",
            "measure.update.start_delay",
        ]
    );
    assert_eq!(tags.len(), 12);
}

#[test]
fn operations_without_successes_have_rows_but_no_histograms() {
    let (_parent, directory) = temporary();
    let mut writer =
        RunWriter::create(&directory, crate::common::PLAN, &crate::common::document()).unwrap();
    let mut window = crate::common::window(PhaseKind::Measure, 0);
    window.operations[1] = crate::common::operation("update", &[]);
    window.operations[1].errors = 1;
    writer.record(&window).unwrap();
    drop(writer);
    let run = Run::open(&directory).unwrap();
    let update = &run.document.phases[0].operations["update"];
    assert_eq!((update.count, update.errors), (0, 1));
    assert_eq!(update.response_time_us.max, 0.0);
}

fn base64_decode(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

#[test]
fn complete_parts_of_windows_are_kept() {
    let (_parent, directory) = temporary();
    crate::common::killed_run(&directory, 2);
    let sub_second = Run::open(&directory).unwrap().sub_second;
    // Parts of the windows of the measure phase.
    assert_eq!(sub_second.len(), 2 * crate::common::FINE.len());
    assert_eq!((sub_second[1].ended, sub_second[1].failed), (3, 0));
    assert_eq!(sub_second[1].response_sum_us, crate::common::FINE[1].response_sum_ns as f64 / 1e3);
    assert!((sub_second[1].start_s - sub_second[0].start_s - 0.01).abs() < 1e-9);
    let path = directory.join("series/sub-second.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(",7000000,0", ",7000000,2")).unwrap();
    assert_eq!(Run::open(&directory).unwrap().sub_second[1].failed, 2);
    fs::write(&path, &text[..text.len() - 2]).unwrap();
    assert_eq!(Run::open(&directory).unwrap().sub_second.len(), sub_second.len() - 1);
    // A run of a version without this file.
    fs::remove_file(&path).unwrap();
    assert_eq!(Run::open(&directory).unwrap().sub_second, []);
}
