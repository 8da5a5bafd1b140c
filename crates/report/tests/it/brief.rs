//! The report on one screen, for every recorded example at every usual width.

use crate::samples::index_build::{failed, rewritten};
use crate::samples::trace::{aggregated, random_scan};
use crate::samples::watched::throttled;
use dyno_analyze::access_pattern::Activity;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::experiment::{Answer, Experiment};
use dyno_record::reader::Run;
use dyno_record::tail::TailDocument;
use dyno_report::index_build::IndexBuildView;
use dyno_report::io_trace::TraceView;
use dyno_report::tail::TailView;
use dyno_report::{
    Extent, Format, PageFormat, RenderOptions, experiment, index_build, io_trace, render, tail,
};
use std::collections::BTreeMap;
use std::path::Path;

const REST: &str = "The whole report: `dyno report runs/x --full`";
const MOST_LINES: usize = 45;

fn options(width: usize, colours: bool) -> RenderOptions {
    RenderOptions {
        width,
        colours,
        extent: Extent::Brief { rest: REST.into() },
        ..RenderOptions::default()
    }
}

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn run(run: &Run, analysis: Option<&RunAnalysis>, options: &RenderOptions) -> String {
    render(run, analysis, Format::Human, options).unwrap()
}

/// Every kind of record, rendered.
fn all(options: &RenderOptions) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut add = |name: &str, text: String| drop(texts.insert(name.to_owned(), text));
    add("closed run", run(&crate::support::closed_run(), None, options));
    add("open run", run(&crate::support::open_run(), None, options));
    let watched = crate::support::watched_run();
    add("watched run", run(&watched.0, Some(&watched.1), options));
    let slow = throttled();
    add("throttled disk", run(&slow.0, Some(&slow.1), options));
    for name in ["ab", "blocks", "slo", "suite", "sweep", "xmax"] {
        let document = golden(&format!("experiments/{name}.json"));
        let document: Experiment = serde_json::from_str(&document).unwrap();
        add(name, experiment::render(&document, PageFormat::Human, options).unwrap());
    }
    for (name, document) in [("rewritten", rewritten()), ("failed", failed())] {
        let view = IndexBuildView { document: &document, traces: Vec::new() };
        add(name, index_build::render(&view, PageFormat::Human, options).unwrap());
    }
    let activity = Activity { subject: "index build".to_owned(), scans_records: true };
    for (name, traced) in [("trace", random_scan()), ("totals", aggregated())] {
        let view = TraceView {
            slices: &[],
            document: &traced.document,
            patterns: &traced.patterns,
            activity: &activity,
        };
        add(name, io_trace::render(&view, PageFormat::Human, options).unwrap());
    }
    let document: TailDocument = serde_json::from_str(&golden("tail.json")).unwrap();
    let view = TailView { document: &document, messages: &[] };
    add("messages", tail::render(&view, PageFormat::Human, options).unwrap());
    texts
}

/// Number of screen lines at this width.
fn height(text: &str, width: usize) -> usize {
    let rows = text.lines().map(|line| line.chars().count().div_ceil(width).max(1));
    rows.sum()
}

#[test]
fn every_record_fits_on_a_screen_and_says_where_the_rest_is() {
    for width in [80, 90, 100, 160] {
        for (name, text) in all(&options(width, false)) {
            let lines = height(&text, width);
            assert!(lines <= MOST_LINES, "{name}, {width} columns: {lines}\n{text}");
            assert!(text.ends_with(&format!("\n\n{REST}\n")), "{name}\n{text}");
            assert!(!text.contains('…'), "texts are not cut: {name}\n{text}");
        }
    }
}

#[test]
fn colours_change_no_line_of_the_screen() {
    let plain = all(&options(100, false));
    for (name, text) in all(&options(100, true)) {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap().to_owned();
        let unpainted = parts.fold(first, |all, part| all + part.split_once('m').unwrap().1);
        assert_eq!(unpainted, plain[&name], "{name}");
    }
}

#[test]
fn screen_has_result_verdict_three_findings_and_a_count() {
    let (slow, analysis) = throttled();
    let text = run(&slow, Some(&analysis), &options(100, false));
    for part in [
        "Result of phase measure\n  achieved rate        84.00/s\n    56.0 % of 150.0/s offered",
        "Verdict\n  Disk IOPS ceiling reached at 37.0 IOPS",
        "     - The disk did 284/s before.",
        "\n  Not checked",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let answer = text.lines().next().unwrap();
    assert!(answer.starts_with("84.00/s") && answer.contains("read p99"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("Trust: ")), "{text}");
    let sweep = &all(&options(100, false))["sweep"];
    for part in [
        "Rate and response time\n\n  clients ",
        "\n  1. Warning: ",
        "more findings\n",
        "the same for every run on this machine: ",
    ] {
        assert!(sweep.contains(part), "{part}\n{sweep}");
    }
    assert!(!sweep.contains("\n  4. "), "{sweep}");
}

#[test]
fn table_omits_intervals_when_they_do_not_fit() {
    let mut document: Experiment = serde_json::from_str(&golden("experiments/suite.json")).unwrap();
    document.findings.clear();
    document.caveats.clear();
    let rows = |text: &str| {
        let rows = text.lines().skip_while(|line| !line.contains("operation"));
        rows.skip(1).take_while(|line| !line.starts_with("  (")).count()
    };
    let shown = |document: &Experiment| {
        experiment::render(document, PageFormat::Human, &options(100, false)).unwrap()
    };
    let whole = shown(&document);
    let left_out = "details below";
    assert!(rows(&whole) > 10 && !whole.contains(left_out), "{whole}");
    let Some(Answer::Suite(answer)) = &mut document.answer else {
        panic!("it is a suite");
    };
    let more = answer.rows.clone();
    answer.rows.extend(more.iter().cloned());
    answer.rows.extend(more.into_iter().take(2));
    let plain = shown(&document);
    assert_eq!(rows(&plain), 2 + 2 * 8 + 4, "{plain}");
    assert!(plain.contains(left_out) && !plain.contains("more row"), "{plain}");
}

#[test]
fn long_table_is_cut_and_omitted_rows_are_counted() {
    let mut document: Experiment = serde_json::from_str(&golden("experiments/xmax.json")).unwrap();
    let Some(Answer::Xmax(answer)) = &mut document.answer else {
        panic!("it is a search for X_max");
    };
    let tried = answer.search.tried.clone();
    while answer.search.tried.len() < 60 {
        answer.search.tried.extend(tried.clone());
    }
    let shown = |options: &RenderOptions| {
        experiment::render(&document, PageFormat::Human, options).unwrap()
    };
    let whole = shown(&RenderOptions::default());
    let brief = shown(&options(100, false));
    let rows = |text: &str| {
        let rows = text.lines().skip_while(|line| !line.contains("mean rate"));
        rows.skip(1).take_while(|line| line.contains("/s")).count()
    };
    let left_out = rows(&whole) - rows(&brief);
    assert!(left_out > 20, "{brief}");
    assert!(brief.contains(&format!("{left_out} more rows")), "{brief}");
}
