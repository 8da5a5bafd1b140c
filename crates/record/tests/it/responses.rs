//! Response times of single windows add up to the recorded ones.

use dyno_record::model::PhaseKind;
use dyno_record::responses::{WindowResponses, by_operation, responses};

#[test]
fn windows_have_response_times_of_all_operations_or_one() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("run");
    crate::common::killed_run(&directory, 3);
    let all = responses(&directory, PhaseKind::Measure, None).unwrap();
    assert_eq!(all.len(), 3);
    let second = &all[1];
    assert_eq!((second.start_s, second.duration_s), (1.0, 1.0));
    assert_eq!((second.succeeded, second.failed), (11, 1));
    let count: u64 = second.response_ns.iter().map(|(_, count)| count).sum();
    assert_eq!(count, 11);
    assert_eq!(second.response_sum_ns, 85_000_000);
    // Reads of 2 to 11 ms and one update of 20 ms, exact to three digits.
    for (found, expected_ms) in second.response_ns.iter().zip((2..=11).chain([20])) {
        let expected = f64::from(expected_ms) * 1e6;
        assert!((found.0 as f64 / expected - 1.0).abs() < 0.001, "{found:?}");
    }
    let updates = responses(&directory, PhaseKind::Measure, Some("update")).unwrap();
    assert_eq!(updates[1].response_ns.len(), 1);
    assert_eq!((updates[1].succeeded, updates[1].failed), (1, 1));
    let none = responses(&directory, PhaseKind::Warmup, None).unwrap();
    assert_eq!(none.len(), 0);
}

#[test]
fn windows_outside_the_fleet_s_common_window_are_marked() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("run");
    crate::common::killed_run(&directory, 5);
    let path = directory.join("run.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["fleet"] = serde_json::json!({
        "common_intervals": 3, "common_first_interval": 1, "common_last_interval": 3,
    });
    std::fs::write(&path, document.to_string()).unwrap();
    let outside = |windows: &[WindowResponses]| -> Vec<bool> {
        windows.iter().map(|window| window.is_outside).collect()
    };
    let all = responses(&directory, PhaseKind::Measure, None).unwrap();
    assert_eq!(outside(&all), [true, false, false, false, true]);
    let grouped = by_operation(&directory, PhaseKind::Measure, 2).unwrap();
    assert_eq!(outside(&grouped.all), [true, false, true], "groups of 2");
    assert_eq!(outside(&grouped.operations["read"]), [true, false, true]);
}

#[test]
fn reading_all_operations_at_once_equals_one_by_one() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("run");
    crate::common::killed_run(&directory, 3);
    let found = by_operation(&directory, PhaseKind::Measure, 100).unwrap();
    let single = |name| responses(&directory, PhaseKind::Measure, name).unwrap();
    assert_eq!(found.all, single(None));
    let names: Vec<&str> = found.operations.keys().map(String::as_str).collect();
    assert_eq!(names, ["read", "update"]);
    assert_eq!(found.operations["read"], single(Some("read")));
    assert_eq!(found.operations["update"], single(Some("update")));
}

#[test]
fn merging_windows_loses_no_operation() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("run");
    crate::common::killed_run(&directory, 11);
    let single = responses(&directory, PhaseKind::Measure, None).unwrap();
    let found = by_operation(&directory, PhaseKind::Measure, 2).unwrap();
    // At most 4 windows: 1 to 4, then groups of 2, then of 4.
    let lengths: Vec<f64> = found.all.iter().map(|w| w.duration_s).collect();
    assert_eq!(lengths, [4.0, 4.0, 3.0]);
    let sum = |windows: &[WindowResponses]| windows.iter().map(|w| w.succeeded).sum::<u64>();
    assert_eq!(sum(&found.all), sum(&single));
    let values = |windows: &[WindowResponses]| -> u64 {
        let all = windows.iter().flat_map(|w| &w.response_ns);
        all.map(|(_, count)| count).sum()
    };
    assert_eq!(values(&found.all), values(&single));
    assert_eq!(found.operations["read"].len(), 3);
}
