//! Reports of a run with its analysis, as snapshots.

use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::model::PhaseKind;
use dyno_record::reader::Run;
use dyno_report::page::sentence;
use dyno_report::{Format, RenderOptions, render};
use insta::assert_snapshot;
use serde_json::Value;

fn rendered(run: &(Run, RunAnalysis), format: Format, width: usize) -> String {
    let options = RenderOptions { width, ..RenderOptions::default() };
    render(&run.0, Some(&run.1), format, &options).unwrap()
}

/// The text from the first line that begins with `start`.
fn from<'a>(text: &'a str, start: &str) -> &'a str {
    let place = text.find(&format!("\n{start}")).unwrap();
    &text[place..]
}

#[test]
fn terminal_report_of_a_watched_run() {
    let text = rendered(&crate::support::watched_run(), Format::Human, 100);
    let tables = from(&text, "Rate and response time with their uncertainty");
    assert_snapshot!(tables);
}

#[test]
fn markdown_report_of_a_watched_run() {
    let text = rendered(&crate::support::watched_run(), Format::Markdown, 100);
    let result = from(&text, "## Result");
    assert_snapshot!(&result[..result.find("## Workload").unwrap()]);
}

#[test]
fn terminal_report_of_a_run_that_is_too_short_for_intervals() {
    let text = rendered(&crate::support::watched(2), Format::Human, 100);
    let tables = from(&text, "Rate and response time with their uncertainty");
    let words: Vec<&str> = text.split_whitespace().collect();
    let flat = words.join(" ");
    assert!(flat.contains("ome figures have no interval"), "{text}");
    assert!(flat.contains("2 windows are too few"), "{text}");
    assert!(!tables.contains(" ± 100"), "{tables}");
    assert_snapshot!(tables);
}

#[test]
fn a_record_without_resources_names_no_bottleneck() {
    let windows =
        [crate::support::window(PhaseKind::Measure, 0, 0).operation("read", &[(200, 1000)])];
    let old = crate::support::analysed(crate::support::closed_document(), &windows);
    let with_code = |code: &str| old.1.findings.iter().find(|one| one.statement.code == code);
    assert_eq!(with_code("bottleneck"), None);
    let unknown = with_code("server-not-watched").unwrap();
    let unknown = sentence(&dyno_report::texts::text(&unknown.statement));
    let text = rendered(&old, Format::Markdown, 100);
    assert!(text.contains(&unknown), "{unknown}: {text}");
    let json: Value = serde_json::from_str(&rendered(&old, Format::Json, 100)).unwrap();
    assert!(json["analysis"]["bottleneck"].is_null());
    assert!(!text.contains("NaN"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 160] {
        for line in rendered(&crate::support::watched_run(), Format::Human, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn the_document_has_the_analysis_besides_what_was_recorded() {
    let run = crate::support::watched_run();
    let mut document: Value = serde_json::from_str(&rendered(&run, Format::Json, 100)).unwrap();
    let added = document.as_object_mut().unwrap();
    let [analysis, answer, trust] =
        ["analysis", "answer", "trust"].map(|key| added.remove(key).unwrap());
    assert!(answer.as_str().unwrap().contains("p99"), "{answer}");
    assert!(trust["level"].is_string() && trust["because"].is_string(), "{trust}");
    assert_eq!(document, serde_json::to_value(&run.0.document).unwrap());
    assert_eq!(analysis["windows"], 24);
    for figure in ["rate_per_s", "response_mean_us"] {
        assert!(analysis["figures"][figure]["low"].is_f64(), "{figure}");
        assert!(analysis["operations"]["read"][figure]["low"].is_f64());
    }
    for name in ["p50", "p95", "p99"] {
        assert!(analysis["figures"]["response_us"][name]["high"].is_f64(), "{name}");
    }
    assert_eq!(analysis["bottleneck"]["demand"]["name"], "CPUs of server and client");
    assert!(analysis["bottleneck"]["reached_ratio"].is_f64());
    assert_eq!(analysis["figures"]["laws"][0]["law"], "little");
    assert!(analysis["findings"][0]["evidence"][0]["text"].is_string());
}

#[test]
fn script_formats_do_not_change_with_an_analysis() {
    let (run, analysis) = crate::support::watched_run();
    let options = RenderOptions::default();
    for format in [Format::Ycsb, Format::Kpi] {
        let with = render(&run, Some(&analysis), format, &options).unwrap();
        assert_eq!(with, render(&run, None, format, &options).unwrap());
    }
}
