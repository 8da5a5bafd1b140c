//! Reports of file I/O traces: texts as snapshots, and pages that are written to `target/tmp/report/` for the browser test
//! of `web/`.

use crate::samples::trace::{Traced, aggregated, empty, random_scan, sequential_scan};
use dyno_analyze::access_pattern::{Activity, order_statement};
use dyno_report::PageFormat;
use dyno_report::io_trace::{TraceView, page, render};
use dyno_report::page::Chart;
use dyno_report::{Format, RenderOptions, render_traced};
use insta::assert_snapshot;
use std::path::Path;

fn activity() -> Activity {
    Activity { subject: "index build".to_owned(), scans_records: true }
}

fn view<'a>(traced: &'a Traced, activity: &'a Activity) -> TraceView<'a> {
    TraceView { slices: &[], document: &traced.document, patterns: &traced.patterns, activity }
}

fn shown(traced: &Traced, format: PageFormat, width: usize) -> String {
    let activity = activity();
    let options = RenderOptions { width, ..RenderOptions::default() };
    render(&view(traced, &activity), format, &options).unwrap()
}

pub(crate) fn all() -> [(&'static str, Traced); 4] {
    [
        ("random", random_scan()),
        ("sequential", sequential_scan()),
        ("totals", aggregated()),
        ("empty", empty()),
    ]
}

pub(crate) fn markdown_and_json(traced: &Traced) -> [String; 2] {
    [PageFormat::Markdown, PageFormat::Json].map(|format| shown(traced, format, 120))
}

/// The sentence for a score of 0.
fn almost_random() -> String {
    dyno_report::texts::text(&order_statement(0.0))
}

fn write_page(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), page).unwrap();
}

#[test]
fn terminal_report_of_a_random_scan() {
    assert_snapshot!(shown(&random_scan(), PageFormat::Human, 120));
}

#[test]
fn markdown_report_of_a_random_scan() {
    assert_snapshot!(shown(&random_scan(), PageFormat::Markdown, 120));
}

#[test]
fn terminal_report_of_totals() {
    assert_snapshot!(shown(&aggregated(), PageFormat::Human, 120));
}

#[test]
fn a_trace_without_calls_has_a_report() {
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html, PageFormat::Json] {
        assert!(!shown(&empty(), format, 80).is_empty());
    }
}

#[test]
fn trace_page_shows_pictures_caveats_and_blind_spots() {
    let page = shown(&random_scan(), PageFormat::Html, 80);
    write_page("trace.html", &page);
    assert!(page.contains("<canvas role=\"img\" aria-label=\"2,000 reads"));
    assert!(page.contains("sdu.docs, score 0.0"));
    assert!(page.contains("lost events") && page.contains("fentry is refused"));
    assert!(page.contains(&almost_random()));
}

#[test]
fn the_json_form_holds_document_patterns_and_findings() {
    let text = shown(&random_scan(), PageFormat::Json, 80);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["trace"]["mode"], "events");
    assert!(value["access_patterns"]["files"][0]["score"].as_f64().unwrap() < 0.1);
    assert_eq!(value["access_patterns"]["files"][0]["size_bytes"]["buckets"][0]["from"], 32_768);
    let finding = &value["findings"][0];
    assert_eq!(finding["code"], "order-of-file");
    assert_eq!(finding["values"]["subject"], "index build");
}

#[test]
fn every_chart_of_a_page_has_a_name_of_its_own() {
    let (before, activity) = (random_scan(), activity());
    let shown = page(&view(&before, &activity));
    let names = shown.charts().filter_map(|chart| match chart {
        Chart::Density(density) => Some(density.id.as_str()),
        Chart::Plot(plot) => Some(plot.id.as_str()),
        _ => None,
    });
    let mut ids: Vec<&str> = names.collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_report_of_a_run_shows_its_trace_with_findings_and_caveats() {
    let (traced, activity) = (random_scan(), activity());
    let trace = view(&traced, &activity);
    let shown = |format| {
        let options = RenderOptions::default();
        render_traced(&crate::support::closed_run(), None, Some(&trace), format, &options).unwrap()
    };
    let page = shown(Format::Html);
    write_page("run-with-trace.html", &page);
    let order = almost_random();
    for format in [Format::Human, Format::Markdown, Format::Html] {
        let text = shown(format);
        for wanted in [order.as_str(), "3 calls were lost"] {
            assert!(text.contains(wanted), "{format:?} lacks `{wanted}`");
        }
    }
    assert!(page.contains("Where and when"));
    assert!(page.contains("id=\"offset-1-0-read\"") && page.contains("\"plots\":[{"));
    let json: serde_json::Value = serde_json::from_str(&shown(Format::Json)).unwrap();
    assert_eq!(json["io_trace"]["trace"]["lost_calls"], 3);
    assert!(json["phases"].is_array());
}
