//! Pages about existing runs: comparisons of two runs, and histories of many. The pages are also written for inspection in
//! a browser.

use dyno_analyze::change_point::ChangePointSettings;
use dyno_analyze::experiment::ab::{RunComparison, SideValues};
use dyno_analyze::experiment::comparable::Difference;
use dyno_analyze::experiment::history::History;
use dyno_analyze::experiment::history::HistoryRun;
use dyno_analyze::experiment::history::analyze;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, Statistic};
use dyno_report::caveat::TrustLevel;
use dyno_report::experiment::{comparison, history};
use dyno_report::page::Chart;
use dyno_report::page::plot::Plot;
use dyno_report::{PageFormat, RenderOptions};
use std::path::Path;

fn keep(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

fn history_page(found: &History) -> String {
    history::render(found, PageFormat::Html, &RenderOptions::default()).unwrap()
}

fn comparison_page(found: &RunComparison) -> String {
    comparison::render(found, PageFormat::Html, &RenderOptions::default()).unwrap()
}

fn plot(chart: &Chart) -> Option<&Plot> {
    match chart {
        Chart::Plot(plot) => Some(plot),
        _ => None,
    }
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
        basis: Basis::BetweenRuns,
        pairs: 5,
        pair_deviation_ratio: 0.01,
        degrees_of_freedom: Some(4.0),
        order_effect_ratio: None,
    };
    let p99 = Statistic::Percentile { percent: 99.0 };
    RunComparison {
        a: "runs/2026-01-01-a".into(),
        b: "runs/<b>".into(),
        runs: [5, 5],
        earlier_runs: [0, 0],
        differences: Vec::new(),
        comparable: true,
        values: vec![SideValues { statistic: Statistic::Rate, a: 1_000.0, b: 1_000.0 * ratio }],
        limits: Vec::new(),
        caveats: Vec::new(),
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
    let html = history_page(&found);
    keep("history.html", &html);
    let page = history::page(&found);
    let plots: Vec<&Plot> = page.charts().filter_map(plot).collect();
    assert_eq!(plots.len(), 4);
    for plot in plots {
        let [level, runs] = plot.series.as_slice() else { panic!("{plot:?}") };
        assert_eq!((level.x.len(), runs.x.len()), (4, 50));
        // The change lies between the runs, and where the levels meet.
        let [change] = plot.marks.as_slice() else { panic!("{plot:?}") };
        assert_eq!(change.at, level.x[2]);
        assert!(change.label.ends_with(", worse"), "{change:?}");
    }
    assert!(html.contains(">regression<"));
    assert!(html.contains("it is not complete"));
    let better = history_page(&nights(&[(8_500.0, 30), (10_000.0, 20)]));
    keep("history-better.html", &better);
    assert_eq!(better.matches(", better\"").count(), 4);
    assert!(better.contains(">no regression<"));
}

#[test]
fn regression_is_relative_to_the_best_level() {
    let found = nights(&[(10_000.0, 14), (8_000.0, 14), (8_300.0, 14)]);
    assert!(found.has_regression());
    let text = history::render(&found, PageFormat::Human, &RenderOptions::default()).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Regression: rate is −17.0 % compared with its best level, which it left at 2026-01-15",
        ". Rate changed by +3.73 %",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let html = history_page(&found);
    assert!(html.contains("−17.0 % since 2026-01-15"), "{html}");
}

#[test]
fn narrow_history_keeps_the_rate() {
    let found = nights(&[(10_000.0, 14), (8_000.0, 14)]);
    let options = RenderOptions { width: 80, ..RenderOptions::default() };
    let text = history::render(&found, PageFormat::Human, &options).unwrap();
    let mut lines = text.lines().map(str::trim_start);
    // The names of the runs are kept as well, and repeat the start.
    let titles = lines.find(|line| line.starts_with("number ") || line.starts_with("run "));
    assert!(titles.is_some_and(|titles| titles.contains(" rate")), "{text}");
}

#[test]
fn a_history_of_one_run_is_a_page_too() {
    let html = history_page(&nights(&[(10_000.0, 1)]));
    keep("history-one.html", &html);
    let markup = &html[..html.find("<script").unwrap()];
    assert!(!markup.contains("NaN") && !markup.contains("inf\""));
}

#[test]
fn comparison_page_shows_ratios_with_their_intervals() {
    let html = comparison_page(&compared(0.8, ComparisonVerdict::Slower));
    keep("comparison.html", &html);
    assert!(html.contains("B is 20 % slower (−22 to −18 %)"));
    assert_eq!(html.matches("class=\"interval\"").count(), 2);
    assert!(html.contains("class=\"band\"") && html.contains("class=\"reference\""));
    assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"));
}

#[test]
fn comparison_names_sides_and_trust_in_every_format() {
    let mut found = compared(0.8, ComparisonVerdict::Slower);
    let compressor = |a: &str, b: &str| Difference {
        what: "server.block_compressor".into(),
        a: a.into(),
        b: b.into(),
        forbids: false,
    };
    found.differences = vec![compressor("snappy", "zstd")];
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = comparison::render(&found, format, &RenderOptions::default()).unwrap();
        assert!(text.contains("B (zstd) is 20 % slower"), "{text}");
        assert!(text.contains("A (snappy)"), "{text}");
    }
    let level = |found: &RunComparison| comparison::page(found).trust.map(|trust| trust.level);
    assert_eq!(level(&found), Some(TrustLevel::High));
    found.answer.as_mut().unwrap().comparisons[1].basis = Basis::WithinRun;
    assert_eq!(level(&found), Some(TrustLevel::Fair));
    found.comparable = false;
    assert_eq!(level(&found), None);
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
    let html = comparison_page(&found);
    keep("comparison-different.html", &html);
    assert!(html.contains(">not comparable<") && html.contains("data.records"));
    assert!(!html.contains("class=\"interval\"") && !html.contains("1,000/s"));
    found.answer = None;
    let html = comparison_page(&found);
    assert!(html.contains(">not comparable<") && !html.contains("class=\"interval\""));
}
