use super::*;
use crate::values::reported;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Boundary, Objective, ObjectiveResult, Objectives};

fn within(value: f64, ratio: f64) -> Estimate {
    Estimate {
        value,
        low: value * (1.0 - ratio),
        high: value * (1.0 + ratio),
        confidence_ratio: 0.95,
    }
}

fn sharp(rate_per_s: f64) -> Boundary {
    Boundary {
        half_per_s: within(rate_per_s, 0.05),
        most_per_s: within(rate_per_s * 0.95, 0.05),
        few_per_s: within(rate_per_s * 1.05, 0.05),
        measured_per_s: None,
        spread_ratio: within(0.02, 0.5),
    }
}

pub(in crate::experiment::findings) fn answer(
    rate_per_s: Option<f64>,
    end: ObjectiveEnd,
) -> SloAnswer {
    let rows = [
        (5_000.0, 1_000.0, true),
        (10_000.0, 4_800.0, true),
        (10_400.0, 5_300.0, false),
        (20_000.0, 90_000.0, false),
    ];
    SloAnswer {
        objectives: Objectives {
            responses: vec![Objective { statistic: "p99_9".into(), limit_us: 5_000.0 }],
            failed_ratio: 0.0,
        },
        closed_rate_per_s: within(20_000.0, 0.01).into(),
        search: ObjectiveResult {
            rate_per_s,
            boundary: rate_per_s.map(sharp),
            always_kept_up_to_per_s: rate_per_s,
            always_missed_from_per_s: Some(10_400.0),
            end,
            tried: rows
                .iter()
                .map(|(rate, _, kept)| TriedRate {
                    rate_per_s: *rate,
                    kept_count: u32::from(*kept),
                    missed_count: u32::from(!kept),
                })
                .collect(),
        },
        attempts: rows
            .iter()
            .map(|(rate, us, kept)| Attempt {
                rate_per_s: *rate,
                values_us: vec![*us],
                failed_ratio: 0.0,
                dropped_ratio: 0.0,
                ended_rate_per_s: None,
                kept: *kept,
                generator_bound: false,
                stolen_ratio: None,
            })
            .collect(),
        set_aside: Vec::new(),
    }
}

#[test]
fn boundary_is_reported_with_the_runs_on_both_sides() {
    let found = all(&answer(Some(10_000.0), ObjectiveEnd::Resolved));
    assert_eq!(
        found[0].statement.to_string(),
        "objective-kept-up-to (closed: 20,000/s in 19,800/s to 20,200/s, most: 9,500/s in 9,030/s to \
         9,980/s, objective: objective (responses: [at-most-time (limit: 5.00 ms, statistic: p99_9)]), rate: 10,000/s in 9,500/s to 10,500/s)"
    );
    assert_eq!(
        reported(&found[0].evidence),
        [
            "attempt (kept: true, rate: 10,000/s, responses: [statistic (statistic: p99_9, time: 4.80 ms)])",
            "attempt (kept: false, rate: 10,400/s, responses: [statistic (statistic: p99_9, time: 5.30 ms)])"
        ]
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn boundary_ends_at_the_highest_rate_that_was_reached() {
    let found = answer(Some(10_000.0), ObjectiveEnd::Resolved).search;
    let half = |closed_per_s| found.clone().within_reach(closed_per_s).boundary.unwrap().half_per_s;
    assert_eq!((half(20_000.0).value, half(20_000.0).high), (10_000.0, 10_500.0));
    assert_eq!(half(10_200.0).high, 10_200.0);
    // A run kept the objective at 10,000/s, whatever the closed loop reached.
    assert_eq!((half(8_000.0).value, half(8_000.0).high), (10_000.0, 10_000.0));
}

#[test]
fn clipped_boundary_never_has_an_interval_without_width() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::OutOfMeasurements);
    let mut said = |ends: [f64; 2]| {
        let boundary = sharp(10_000.0).within_measured(ends);
        answer.search.rate_per_s = Some(boundary.half_per_s.value);
        answer.search.boundary = Some(boundary);
        all(&answer)[0].statement.to_string()
    };
    let objective =
        "objective: objective (responses: [at-most-time (limit: 5.00 ms, statistic: p99_9)])";
    // The whole interval is below the lowest rate.
    let expected = format!("no-rate-keeps-objective (lowest: 10,400/s, {objective})");
    assert_eq!(said([10_400.0, 20_000.0]), expected);
    // A part of it is above.
    let expected = format!(
        "no-rate-keeps-objective (half: 10,000/s in 9,800/s to 10,500/s, lowest: 9,800/s, {objective}, up_to: 9,980/s)"
    );
    assert_eq!(said([9_800.0, 20_000.0]), expected);
    // Above the highest rate.
    let above = said([5_000.0, 9_000.0]);
    let expected = format!(
        "most: 9,000/s, most_is_above: true, {objective}, rate: 9,000/s, rate_is_above: true)"
    );
    assert!(above.starts_with("objective-kept-up-to (") && above.ends_with(&expected), "{above}");
}

#[test]
fn answer_from_an_older_version_has_no_interval() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    answer.search.boundary = None;
    assert_eq!(
        all(&answer)[0].statement.to_string(),
        "objective-kept-up-to (closed: 20,000/s in 19,800/s to 20,200/s, objective: objective (responses: [at-most-time \
         (limit: 5.00 ms, statistic: p99_9)]), rate: 10,000/s)"
    );
}

#[test]
fn contradicting_runs_give_the_rates_where_chance_decides() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::OutOfMeasurements);
    with_outlier(&mut answer, 10_400.0, true);
    let found = all(&answer);
    assert_eq!(found[1].statement.to_string(), "chance-decides");
    assert_eq!(
        reported(&found[1].evidence),
        [
            "runs-between-that-kept (runs: [kept-at-rate (kept: 1, made: 1, rate: 10,000/s), kept-at-rate (kept: 1, made: 3, \
             rate: 10,400/s)])"
        ]
    );
    assert!(found[2].statement.to_string().starts_with("objective-search-ended-early"));
}

/// More runs at an existing rate: one with the same verdict, and alternately one with the other verdict before
/// and after them.
pub(in crate::experiment::findings) fn with_outlier(
    answer: &mut SloAnswer,
    rate_per_s: f64,
    is_first: bool,
) {
    let of_rate = |one: &&Attempt| one.rate_per_s == rate_per_s;
    let usual = answer.attempts.iter().find(of_rate).unwrap().clone();
    let outlier = Attempt {
        kept: !usual.kept,
        values_us: vec![if usual.kept { 77_000.0 } else { 900.0 }],
        ..usual.clone()
    };
    answer.attempts.push(usual.clone());
    if is_first {
        answer.attempts.insert(0, outlier)
    } else {
        answer.attempts.push(outlier)
    }
    let mut tried = answer.search.tried.iter_mut();
    let tried = tried.find(|one| one.rate_per_s == rate_per_s).unwrap();
    (tried.kept_count, tried.missed_count) = if usual.kept { (2, 1) } else { (1, 2) };
}

#[test]
fn shown_runs_have_the_majority_verdict() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    with_outlier(&mut answer, 10_000.0, false);
    with_outlier(&mut answer, 10_400.0, true);
    assert_eq!(
        reported(&all(&answer)[0].evidence),
        [
            "attempt (kept: true, rate: 10,000/s, responses: [statistic (statistic: p99_9, time: 4.80 ms)])",
            "attempt (kept: false, rate: 10,400/s, responses: [statistic (statistic: p99_9, time: 5.30 ms)])"
        ]
    );
}

#[test]
fn miss_by_failures_or_drops_is_named_and_blames_no_time() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    let missed = &mut answer.attempts[2];
    missed.values_us = vec![4_000.0];
    (missed.failed_ratio, missed.dropped_ratio) = (0.02, 0.001);
    let found = all(&answer);
    assert_eq!(
        found[0].evidence[1].to_string(),
        "attempt (dropped: 0.1 %, failed: 2.0 %, kept: false, rate: 10,400/s, responses: [statistic (statistic: p99_9, \
         time: 4.00 ms)])"
    );
}

#[test]
fn an_objective_of_failures_alone_is_named() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    answer.objectives.responses.clear();
    answer.objectives.failed_ratio = 0.01;
    for one in &mut answer.attempts {
        one.values_us.clear();
        one.failed_ratio = if one.kept { 0.0 } else { 0.03 };
    }
    let found = &all(&answer)[0];
    let expected = "objective-kept-up-to (closed: 20,000/s in 19,800/s to 20,200/s, most: 9,500/s in 9,030/s to 9,980/s, objective: objective (failed: 1.0 %, responses: [])";
    assert!(found.statement.to_string().starts_with(expected), "{}", found.statement);
    assert_eq!(
        reported(&found.evidence),
        [
            "attempt (kept: true, rate: 10,000/s, responses: [])",
            "attempt (failed: 3.0 %, kept: false, rate: 10,400/s, responses: [])"
        ]
    );
}

#[test]
fn missing_boundary_is_reported_with_the_reason() {
    let found = all(&answer(None, ObjectiveEnd::NeverKept));
    assert!(found[0].statement.to_string().starts_with("no-rate-keeps-objective"));
    assert_eq!(found[0].evidence.len(), 4);
    assert!(found[1].statement.to_string().contains("objective-never-kept"));
    assert!(
        found[1].evidence[0].to_string().ends_with("(highest: 20,000/s, lowest: 5,000/s, runs: 4)")
    );
}

#[test]
fn too_busy_client_comes_first() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    answer.attempts[3].generator_bound = true;
    let first = &all(&answer)[0];
    assert!(first.statement.to_string().starts_with("client-too-busy-in-runs (all: 4, runs: 1)"));
    assert_eq!(
        reported(&first.evidence),
        [
            "attempt (kept: false, rate: 20,000/s, responses: [statistic (statistic: p99_9, time: 90.0 ms)])"
        ]
    );
}

#[test]
fn runs_set_aside_are_reported_with_their_stolen_time() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    let mut lost = answer.attempts[3].clone();
    lost.stolen_ratio = Some(0.137);
    answer.set_aside = vec![lost];
    let found = all(&answer);
    let lost = found.iter().find(|one| one.statement.to_string().contains("set-aside"));
    let lost = lost.expect("reported");
    assert!(
        lost.statement.to_string().starts_with("runs-set-aside (all: 5, runs: 1)"),
        "{}",
        lost.statement
    );
    assert_eq!(
        reported(&lost.evidence),
        [
            "attempt-set-aside (attempt: attempt (kept: false, rate: 20,000/s, responses: [statistic (statistic: p99_9, time: 90.0 ms)]), stolen: 14 %)"
        ]
    );
}
