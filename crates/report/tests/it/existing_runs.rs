//! Pages about existing runs: comparisons of two runs, and histories of many. The pages are also written for inspection in
//! a browser.

use dyno_analyze::change_point::ChangePointSettings;
use dyno_analyze::experiment::ab::RunComparison;
use dyno_analyze::experiment::comparable::Difference;
use dyno_analyze::experiment::history::History;
use dyno_analyze::experiment::history::HistoryRun;
use dyno_analyze::experiment::history::analyze;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, Statistic};
use dyno_report::experiment::{comparison, history};
use std::path::Path;

fn keep(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

/// Rates around levels, each lasting for a number of nights.
fn nights(levels: &[(f64, usize)]) -> History {
    let rates = levels.iter().flat_map(|(rate, count)| vec![*rate; *count]);
    let runs = rates.enumerate().map(|(night, rate)| {
        // Noise without repetition.
        let noise = 1.0 + 0.02 * ((night * 7919) % 13) as f64 / 13.0;
        let us = 4e6 / rate * noise;
        HistoryRun {
            directory: format!("nightly/{night:03}"),
            started_at: format!("2026-{:02}-{:02}T02:00:00Z", night / 28 + 1, night % 28 + 1),
            values: vec![rate / noise, us, 2.1 * us, 3.3 * us],
            costs: Vec::new(),
            other_load: night == 3,
            currency: None,
        }
    });
    let left_out = vec!["`nightly/broken`: it is not complete".to_owned()];
    let settings = ChangePointSettings::seeded(42);
    analyze("a", runs.collect(), left_out, 0.05, settings)
}

fn compared(ratio: f64, verdict: ComparisonVerdict) -> RunComparison {
    let row = |statistic, ratio: f64, width: f64, verdict| Comparison {
        statistic,
        ratio: Estimate {
            value: ratio,
            low: ratio / width,
            high: ratio * width,
            confidence_ratio: 0.95,
        },
        verdict,
        margin_ratio: 0.05,
        basis: Basis::WithinRun,
        pairs: 1,
        pair_deviation_ratio: 0.01,
        order_effect_ratio: None,
    };
    let p99 = Statistic::Percentile { percent: 99.0 };
    RunComparison {
        a: "runs/2026-01-01-a".into(),
        b: "runs/<b>".into(),
        runs: [1, 1],
        differences: Vec::new(),
        comparable: true,
        answer: Some(AbAnswer {
            deciding: Statistic::Rate,
            comparisons: vec![
                row(Statistic::Rate, ratio, 1.02, verdict),
                row(p99, 1.02, 1.2, ComparisonVerdict::NotEnoughData),
            ],
            pairs_needed: None,
            end: AbEnd::Spent,
            set_aside: Vec::new(),
            demands: Vec::new(),
            costs: Vec::new(),
            explanation: None,
        }),
    }
}

#[test]
fn the_page_of_a_history_shows_every_run_and_every_change() {
    let found = nights(&[(10_000.0, 30), (8_500.0, 20)]);
    assert!(found.has_regression());
    let html = history::html(&found).unwrap();
    keep("history.html", &html);
    assert_eq!(html.matches("<svg class=\"series\"").count(), 4);
    assert_eq!(html.matches("<circle class=\"run\"").count(), 4 * 50);
    assert_eq!(html.matches("<line class=\"worse\"").count(), 4);
    assert_eq!(html.matches("<line class=\"better\"").count(), 0);
    assert!(html.contains(">regression<"));
    assert!(html.contains("it is not complete"));
    let better = history::html(&nights(&[(8_500.0, 30), (10_000.0, 20)])).unwrap();
    keep("history-better.html", &better);
    assert_eq!(better.matches("<line class=\"better\"").count(), 4);
    assert!(better.contains(">no regression<"));
}

#[test]
fn regression_is_relative_to_the_best_level() {
    let found = nights(&[(10_000.0, 14), (8_000.0, 14), (8_300.0, 14)]);
    assert!(found.has_regression());
    let text = history::human(&found);
    for (start, parts) in
        [("regression: rate ", ["−17.0 %", "2026-01-15"]), ("rate ", ["rate changed", "+3.73 %"])]
    {
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        let mut lines = text.lines().filter(|line| line.starts_with(start));
        assert!(lines.any(is_it), "{start}: {text}");
    }
    let html = history::html(&found).unwrap();
    assert!(html.contains("−17.0 % since 2026-01-15"), "{html}");
}

#[test]
fn the_file_of_a_history_has_a_picture_for_each_figure() {
    let found = nights(&[(10_000.0, 12), (8_500.0, 10), (10_500.0, 40)]);
    let svg = history::svg(&found);
    keep("history.svg", &svg);
    assert_eq!(svg.matches("class=\"title\"").count(), 4);
    assert_eq!(svg.matches("<circle").count(), 4 * 62);
    assert!(svg.contains("<line class=\"worse\"") && svg.contains("<line class=\"better\""));
}

#[test]
fn a_history_of_one_run_is_a_page_too() {
    let html = history::html(&nights(&[(10_000.0, 1)])).unwrap();
    keep("history-one.html", &html);
    assert_eq!(html.matches("<circle class=\"run\"").count(), 4);
    let markup = &html[..html.find("<script").unwrap()];
    assert!(!markup.contains("NaN") && !markup.contains("inf\""));
}

#[test]
fn comparison_page_shows_ratios_with_their_intervals() {
    let html = comparison::html(&compared(0.8, ComparisonVerdict::Slower)).unwrap();
    keep("comparison.html", &html);
    assert!(html.contains("is slower"));
    assert_eq!(html.matches("class=\"interval\"").count(), 2);
    assert!(html.contains("class=\"band\"") && html.contains("class=\"reference\""));
    assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"));
}

#[test]
fn the_page_of_runs_that_cannot_be_compared_says_why() {
    let mut found = compared(0.8, ComparisonVerdict::Slower);
    found.comparable = false;
    found.differences = vec![Difference {
        what: "data.records".into(),
        a: "1000".into(),
        b: "2000".into(),
        forbids: true,
    }];
    let html = comparison::html(&found).unwrap();
    keep("comparison-different.html", &html);
    assert!(html.contains(">not comparable<") && html.contains("data.records"));
    found.answer = None;
    let html = comparison::html(&found).unwrap();
    assert!(html.contains(">not comparable<") && !html.contains("class=\"interval\""));
}
