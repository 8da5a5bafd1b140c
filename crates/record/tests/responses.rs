//! Response times of single windows add up to what was written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use dyno_record::model::PhaseKind;
use dyno_record::responses::responses;

#[test]
fn windows_have_the_response_times_of_all_operations_or_of_one() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("run");
    common::killed_run(&directory, 3);
    let all = responses(&directory, PhaseKind::Measure, None).unwrap();
    assert_eq!(all.len(), 3);
    let second = &all[1];
    assert_eq!((second.start_s, second.duration_s), (1.0, 1.0));
    assert_eq!((second.succeeded, second.failed), (11, 1));
    let count: u64 = second.response_ns.iter().map(|(_, count)| count).sum();
    assert_eq!(count, 11);
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
