//! Windows and the latency log of a recorded run, for export.

use crate::common::{PLAN, document, killed_run, window};
use dyno_record::model::PhaseKind;
use dyno_record::recorded::{CopyError, RecordedWindows, copy_latency_log};
use dyno_record::writer::RunWriter;
use std::fs;
use tempfile::tempdir;

#[test]
fn windows_come_back_with_their_histograms_and_failures() {
    let folder = tempdir().unwrap();
    killed_run(folder.path(), 2);
    let mut windows = RecordedWindows::open(folder.path()).unwrap();
    let first = windows.next_window().unwrap().unwrap();
    let second = windows.next_window().unwrap().unwrap();
    assert!(windows.next_window().unwrap().is_none());
    assert_eq!(windows.into_notes(), [""; 0]);
    assert_eq!((first.index, second.index), (0, 1));
    let counts = second.counts;
    assert_eq!((counts.succeeded, counts.failed), (11, 1));
    assert_eq!((counts.arrivals.due, counts.arrivals.late), (12, 1));
    let expected = window(PhaseKind::Measure, 1);
    for (read, written) in second.operations.iter().zip(&expected.operations) {
        assert_eq!(read.name, written.name);
        assert_eq!(read.response.values.as_ref(), Some(&written.response));
        assert_eq!(read.service.values.as_ref(), Some(&written.service));
        assert_eq!(read.start_delay.values.as_ref(), Some(&written.start_delay));
        assert_eq!(read.start_delay.sum_ns, written.start_delay_sum_ns);
    }
    assert_eq!(second.errors.len(), 1);
    assert_eq!((second.errors[0].kind.as_str(), second.errors[0].count), ("timeout", 1));
}

#[test]
fn the_log_is_copied_whole_or_by_phase() {
    let folder = tempdir().unwrap();
    let mut writer = RunWriter::create(folder.path(), PLAN, &document()).unwrap();
    for (phase, index) in [(PhaseKind::Warmup, 0), (PhaseKind::Measure, 1), (PhaseKind::Measure, 2)]
    {
        writer.record(&window(phase, index)).unwrap();
    }
    writer.finish(&document()).unwrap();
    let copy = |phase| {
        let mut text = Vec::new();
        let notes = copy_latency_log(folder.path(), phase, &mut text).unwrap();
        assert_eq!(notes, [""; 0]);
        String::from_utf8(text).unwrap()
    };
    let original = fs::read_to_string(folder.path().join("latency.hlog")).unwrap();
    assert_eq!(copy(None), original);
    let measured = copy(Some(PhaseKind::Measure));
    let tags = |text: &str| text.matches("Tag=").count();
    assert_eq!((tags(&measured), tags(&original)), (12, 18));
    assert!(measured.starts_with("#[") && !measured.contains("Tag=warmup"));
    assert_eq!(tags(&copy(Some(PhaseKind::Load))), 0);
}

#[test]
fn copy_skips_truncated_windows_and_refuses_damage() {
    let folder = tempdir().unwrap();
    killed_run(folder.path(), 2);
    let log = folder.path().join("latency.hlog");
    let whole = fs::read_to_string(&log).unwrap();
    let rows = folder.path().join("series/intervals.csv");
    let table = fs::read_to_string(&rows).unwrap();
    let without_last = table.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    fs::write(&rows, without_last).unwrap();
    let mut text = Vec::new();
    let notes = copy_latency_log(folder.path(), None, &mut text).unwrap();
    assert!(notes[0].contains("latency.hlog"), "{notes:?}");
    assert_eq!(String::from_utf8(text).unwrap().matches("Tag=").count(), 6);
    fs::write(&log, whole.replace("HISTFAAA", "HISTF!!!")).unwrap();
    let mut text = Vec::new();
    let error = copy_latency_log(folder.path(), None, &mut text).unwrap_err();
    assert!(matches!(error, CopyError::Record(_)), "{error}");
    assert_eq!(text, b"");
}
