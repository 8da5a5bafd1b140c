use super::*;
use dyno_record::experiment::{Objective, ObjectiveResult, Objectives};

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
        spread_ratio: within(0.02, 0.5),
    }
}

fn answer(rate_per_s: Option<f64>, end: ObjectiveEnd) -> SloAnswer {
    let rows = [
        (5_000.0, 1_000.0, true),
        (10_000.0, 4_800.0, true),
        (10_400.0, 5_300.0, false),
        (20_000.0, 90_000.0, false),
    ];
    SloAnswer {
        objectives: Objectives {
            responses: vec![Objective {
                statistic: "p99_9".into(),
                limit_us: 5_000.0,
            }],
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
fn the_boundary_is_told_with_the_runs_on_both_sides() {
    let found = all(&answer(Some(10_000.0), ObjectiveEnd::Resolved));
    assert_eq!(
        found[0].text,
        "most runs keep p99.9 at most 5.00 ms up to 10,000/s (95 % interval 9,500/s to 10,500/s): 50 % of the \
         20,000/s (95 % interval 19,800/s to 20,200/s) that a closed loop reaches"
    );
    assert_eq!(
        found[0].evidence,
        [
            "10,000/s: p99.9 4.80 ms (kept)",
            "10,400/s: p99.9 5.30 ms (missed)"
        ]
    );
    assert_eq!(
        found[1].text,
        "up to 10,000/s every run kept it, and from 10,400/s on every run missed it"
    );
    assert!(found[2].text.contains("at 50 % of the maximum"));
    assert_eq!(found.len(), 3);
}

#[test]
fn an_answer_of_a_version_without_intervals_is_told_without_one() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    answer.search.boundary = None;
    assert_eq!(
        all(&answer)[0].text,
        "10,000/s keep p99.9 at most 5.00 ms (no interval: no boundary was found): 50 % of the 20,000/s \
         (95 % interval 19,800/s to 20,200/s) that a closed loop reaches"
    );
}

#[test]
fn where_runs_contradict_each_other_it_is_said_over_which_rates_chance_decides() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::OutOfMeasurements);
    with_outlier(&mut answer, 10_400.0, true);
    let found = all(&answer);
    assert_eq!(
        found[1].text,
        "near the boundary chance decides: 95 % of the runs keep it at 9,500/s (95 % interval 9,030/s to 9,980/s), \
         and 5 % at 10,500/s (95 % interval 9,980/s to 11,000/s)"
    );
    assert_eq!(
        found[1].evidence,
        ["runs between that kept it: 1 of 1 at 10,000/s and 1 of 3 at 10,400/s"]
    );
    assert!(found[2].text.starts_with("the search ended early"));
}

/// More runs at the rate of one that is there: one with the same verdict, and one with the other before and after
/// them in turn.
fn with_outlier(answer: &mut SloAnswer, rate_per_s: f64, is_first: bool) {
    let of_rate = |one: &&Attempt| one.rate_per_s == rate_per_s;
    let usual = answer.attempts.iter().find(of_rate).unwrap().clone();
    let outlier = Attempt {
        kept: !usual.kept,
        values_us: vec![if usual.kept { 77_000.0 } else { 900.0 }],
        ..usual.clone()
    };
    answer.attempts.push(usual.clone());
    match is_first {
        true => answer.attempts.insert(0, outlier),
        false => answer.attempts.push(outlier),
    }
    let mut tried = answer.search.tried.iter_mut();
    let tried = tried.find(|one| one.rate_per_s == rate_per_s).unwrap();
    (tried.kept_count, tried.missed_count) = if usual.kept { (2, 1) } else { (1, 2) };
}

#[test]
fn the_runs_that_are_shown_have_the_verdict_of_the_majority() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    with_outlier(&mut answer, 10_000.0, false);
    with_outlier(&mut answer, 10_400.0, true);
    assert_eq!(
        all(&answer)[0].evidence,
        [
            "10,000/s: p99.9 4.80 ms (kept)",
            "10,400/s: p99.9 5.30 ms (missed)"
        ]
    );
}

#[test]
fn a_run_that_missed_for_failures_or_dropped_arrivals_says_so_and_no_time_is_blamed() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    let missed = &mut answer.attempts[2];
    missed.values_us = vec![4_000.0];
    (missed.failed_ratio, missed.dropped_ratio) = (0.02, 0.001);
    let found = all(&answer);
    assert_eq!(
        found[0].evidence[1],
        "10,400/s: p99.9 4.00 ms, 2.0 % failed and 0.1 % of the arrivals never sent (missed)"
    );
    let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    assert!(
        !texts
            .iter()
            .any(|text| text.contains("response time breaks")),
        "{texts:?}"
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
    let expected = "most runs keep failed operations at most 1.0 % up to 10,000/s (95 %";
    assert!(found.text.starts_with(expected), "{}", found.text);
    assert_eq!(
        found.evidence,
        [
            "10,000/s: nothing failed (kept)",
            "10,400/s: 3.0 % failed (missed)"
        ]
    );
}

#[test]
fn without_a_boundary_it_is_said_why() {
    let found = all(&answer(None, ObjectiveEnd::NeverKept));
    assert!(
        found[0]
            .text
            .starts_with("no rate was found that keeps p99.9")
    );
    assert_eq!(found[0].evidence.len(), 4);
    assert!(found[1].text.contains("load is not what breaks it"));
    assert!(found[1].evidence[0].ends_with("4 runs at rates from 5,000/s to 20,000/s"));
}

#[test]
fn a_client_that_was_too_busy_comes_first() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    answer.attempts[3].generator_bound = true;
    let first = &all(&answer)[0];
    assert!(
        first
            .text
            .starts_with("the load generator was too busy in 1 of 4 runs")
    );
    assert_eq!(first.evidence, ["20,000/s: p99.9 90.0 ms (missed)"]);
}

#[test]
fn runs_that_were_set_aside_are_told_with_what_was_stolen() {
    let mut answer = answer(Some(10_000.0), ObjectiveEnd::Resolved);
    let mut lost = answer.attempts[3].clone();
    lost.stolen_ratio = Some(0.137);
    answer.set_aside = vec![lost];
    let told = all(&answer);
    let told = told.iter().find(|one| one.text.contains("set aside"));
    let told = told.expect("it is told");
    assert!(
        told.text.starts_with("1 of 5 runs was set aside"),
        "{}",
        told.text
    );
    assert_eq!(
        told.evidence,
        ["20,000/s: p99.9 90.0 ms (missed), 14 % stolen"]
    );
}
