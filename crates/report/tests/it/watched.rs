//! Reports of a watched run as snapshots, and the data of its charts.

use crate::samples::watched;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::verdict::Cause;
use dyno_analyze::verdict::Verdict;
use dyno_record::reader::Run;
use dyno_record::statement::Statement;
use dyno_report::{Format, RenderOptions, render};
use insta::assert_snapshot;
use serde_json::Value;

/// Start of the section title about changes.
const CHANGES: &str = "What changed";

fn rendered((run, analysis): &(Run, RunAnalysis), format: Format) -> String {
    render(run, Some(analysis), format, &RenderOptions::default()).unwrap()
}

/// The text from the first line that begins with `start` to the first line that begins with `end`.
fn part<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(&format!("\n{start}")).unwrap();
    let length = text[from..].find(&format!("\n{end}")).unwrap();
    &text[from..from + length]
}

/// The data of a page's charts over time.
fn data(html: &str) -> Value {
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    let data: Value = serde_json::from_str(&html[start..end]).unwrap();
    data["time"].clone()
}

#[test]
fn terminal_report_of_a_throttled_disk() {
    let text = rendered(&watched::throttled(), Format::Human);
    let verdict = part(&text, "Verdict", "Findings");
    let sources = part(&text, "Resources during", "Workload\n");
    assert_snapshot!(format!("{verdict}\n[…]\n{sources}"));
}

#[test]
fn markdown_report_of_a_throttled_disk() {
    let text = rendered(&watched::throttled(), Format::Markdown);
    let verdict = part(&text, "## Verdict", "## Findings");
    let sources = part(&text, "## Resources during", "## Workload");
    assert_snapshot!(format!("{verdict}\n[…]\n{sources}"));
}

#[test]
fn page_of_a_throttled_disk() {
    let html = rendered(&watched::throttled(), Format::Html);
    let verdict = part(&html, "<section class=\"findings verdict\"", "<section id=\"first-1\">");
    let changes = part(&html, "<section id=\"first-2\"", "<section class=\"findings\"");
    let sources = part(&html, "<h3>Resources during", "<section class=\"method\"");
    assert_snapshot!(format!("{verdict}\n[…]\n{changes}\n[…]\n{sources}"));
}

#[test]
fn every_piece_of_evidence_links_to_an_existing_chart() {
    let html = rendered(&watched::throttled(), Format::Html);
    let links: Vec<&str> = html.split("<a href=\"#panel-").skip(1).collect();
    let names = links.iter().map(|link| &link[..link.find('"').unwrap()]);
    let names: Vec<&str> = names.collect();
    let expected = ["disk-operations", "disk-operations", "disk-busy", "rate", "cache-traffic"];
    assert_eq!(names, expected);
    let (shown, folded) = html.split_once("<details class=\"pictures\">").unwrap();
    for name in names {
        assert!(shown.contains(&format!("<figure id=\"panel-{name}\">")), "{name}");
    }
    assert!(folded.contains("<figure id=\"panel-cpu\">"));
}

#[test]
fn resource_charts_share_the_points_of_load_charts() {
    let data = data(&rendered(&watched::throttled(), Format::Html));
    let points = data["time"]["start_s"].as_array().unwrap().len();
    let panels = data["panels"].as_array().unwrap();
    let shown: Vec<&str> = panels.iter().map(|panel| panel["id"].as_str().unwrap()).collect();
    let expected = [
        "cpu",
        "processes",
        "disk-operations",
        "disk-busy",
        "disk-await",
        "disk-bytes",
        "cache",
        "cache-traffic",
        "checkpoints",
        "log-sync",
        "network",
        "connections",
        "memory",
    ];
    assert_eq!(shown, expected);
    for panel in panels {
        for curve in panel["curves"].as_array().unwrap() {
            assert_eq!(curve["values"].as_array().unwrap().len(), points, "{curve}");
        }
    }
    let mark = &data["changes"][0];
    assert_eq!(
        (mark["at_s"].as_f64(), mark["label"].as_str()),
        (Some(36.2), Some("1: rate ↓, disk ↓"))
    );
    // The row of the missed reading, and the rows that separate phases, have no value.
    assert_eq!(
        panels[0]["curves"][0]["values"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|value| value.is_null())
            .count(),
        3
    );
    let network = panels.iter().find(|panel| panel["id"] == "network").unwrap();
    assert!(
        network["curves"][0]["values"][4].as_f64() > Some(10_000.0),
        "not the busiest interface"
    );
}

#[test]
fn many_servers_are_one_curve() {
    let found = watched::many_servers();
    let data = data(&rendered(&found, Format::Html));
    let panel = |name: &str| {
        data["panels"].as_array().unwrap().iter().find(|panel| panel["id"] == name).unwrap()
    };
    let connections = &panel("connections")["curves"];
    assert_eq!(connections.as_array().unwrap().len(), 1);
    assert_eq!(connections[0]["label"], "6 servers open");
    assert_eq!(connections[0]["values"][20], 6.0 * 35.0);
    let dirty = panel("cache")["curves"][1]["values"][20].as_f64().unwrap();
    assert!(dirty < 0.05, "shares are not added up: {dirty}");
}

#[test]
fn the_page_of_an_hour_stays_small() {
    let html = rendered(&watched::hour(), Format::Html);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("means over"));
}

#[test]
fn verdict_without_a_cause_lists_what_was_not_watched() {
    let (run, mut analysis) = watched::throttled();
    analysis.timeline = None;
    analysis.verdict = Some(Verdict {
        headline: Statement::new("nothing-exhausted"),
        causes: Vec::new(),
        not_watched: vec![Cause::Network],
    });
    let headline = dyno_report::texts::text(&Statement::new("nothing-exhausted"));
    let found = (run, analysis);
    for format in [Format::Human, Format::Markdown, Format::Html] {
        let text = rendered(&found, format);
        assert!(text.contains(&headline), "{format:?}");
        assert!(text.contains("the network."), "{format:?}");
        assert!(!text.contains(CHANGES), "{format:?}");
    }
}

#[test]
fn report_of_an_unwatched_run_has_no_verdict() {
    let (mut run, analysis) = watched::throttled();
    run.metrics.clear();
    run.document.sources.clear();
    let with = (run, RunAnalysis { timeline: None, ..analysis });
    let without = (with.0.clone(), RunAnalysis { verdict: None, ..with.1.clone() });
    for format in [Format::Human, Format::Markdown, Format::Html] {
        let text = rendered(&with, format);
        assert_eq!(text, rendered(&without, format), "{format:?}");
        for word in ["Verdict", "What was watched", "Resources during"] {
            assert!(!text.contains(word), "{format:?}: {word}");
        }
    }
    let data = data(&rendered(&with, Format::Html));
    assert!(data.get("panels").is_none() && data.get("changes").is_none());
}

#[test]
fn changes_are_shown_for_an_unwatched_run() {
    let (mut run, analysis) = watched::throttled();
    run.metrics.clear();
    run.document.sources.clear();
    let found = (run, analysis);
    for format in [Format::Human, Format::Markdown, Format::Html] {
        let text = rendered(&found, format);
        assert!(text.contains(CHANGES), "{format:?}");
        assert!(!text.contains("Verdict"), "{format:?}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (run, analysis) = watched::throttled();
    for width in [60, 80, 100, 160] {
        let options = RenderOptions { width, ..RenderOptions::default() };
        let text = render(&run, Some(&analysis), Format::Human, &options).unwrap();
        for line in part(&text, "Resources during", "Workload\n").lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
