//! Reports of index builds: texts as snapshots, and pages that are written to `target/tmp/report/` for inspection.

use crate::samples::index_build::{dealt, failed, pairs, rewritten, without_remedy};
use crate::samples::trace::{Traced, empty, random_scan, sequential_scan, two_servers};
use dyno_analyze::access_pattern::Activity;
use dyno_record::experiment::{Finding, FindingKind};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::model::RunStatus;
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::index_build::{IndexBuildView, page, render};
use dyno_report::io_trace::TraceView;
use dyno_report::page::{Chart, Page};
use insta::assert_snapshot;
use std::path::Path;

const ALL: [PageFormat; 4] =
    [PageFormat::Human, PageFormat::Markdown, PageFormat::Html, PageFormat::Json];

/// The activity in the traces, which a report of an index build does not repeat.
fn other_activity() -> Activity {
    Activity { subject: "secantusd-rs".to_owned(), scans_records: false }
}

/// Calls `look` with the view of a document and its traces.
fn with_view<T>(
    document: &IndexBuildDocument,
    traces: &[(&str, &Traced)],
    look: impl FnOnce(&IndexBuildView<'_>) -> T,
) -> T {
    let activity = other_activity();
    let views = traces.iter().map(|(name, traced)| {
        let view = TraceView {
            document: &traced.document,
            slices: &[],
            patterns: &traced.patterns,
            activity: &activity,
        };
        ((*name).to_owned(), view)
    });
    look(&IndexBuildView { document, traces: views.collect() })
}

fn shown(document: &IndexBuildDocument, traces: &[(&str, &Traced)], format: PageFormat) -> String {
    with_view(document, traces, |view| render(view, format, &RenderOptions::default()).unwrap())
}

pub(crate) fn all() -> [(&'static str, IndexBuildDocument); 4] {
    [
        ("rewritten", rewritten()),
        ("without-remedy", without_remedy()),
        ("dealt", dealt()),
        ("failed", failed()),
    ]
}

pub(crate) fn markdown_and_json(document: &IndexBuildDocument) -> [String; 2] {
    [PageFormat::Markdown, PageFormat::Json].map(|format| shown(document, &[], format))
}

fn page_of(document: &IndexBuildDocument, traces: &[(&str, &Traced)]) -> Page {
    with_view(document, traces, page)
}

fn shown_rewritten(format: PageFormat) -> String {
    let (before, after) = (random_scan(), sequential_scan());
    shown(&rewritten(), &[("before", &before), ("after", &after)], format)
}

fn write_page(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), page).unwrap();
}

/// The findings about the whole experiment from the JSON report.
fn findings(document: &IndexBuildDocument, traces: &[(&str, &Traced)]) -> Vec<Finding> {
    let text = shown(document, traces, PageFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(json["findings"].clone()).unwrap()
}

/// The findings with this code.
fn found(document: &IndexBuildDocument, traces: &[(&str, &Traced)], code: &str) -> Vec<Finding> {
    let mut found = findings(document, traces);
    found.retain(|finding| finding.statement.code == code);
    found
}

/// A value of a finding, as text.
fn value(finding: &Finding, name: &str) -> String {
    finding.statement.values[name].to_string()
}

/// Whether the page suggests to rewrite the collection.
fn suggests_rewrite(model: &Page) -> bool {
    model.findings.iter().any(|finding| finding.text.contains("--remedy rewrite"))
}

/// A text with line breaks and runs of spaces replaced by single spaces.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn terminal_report_before_and_after_a_rewrite() {
    assert_snapshot!(shown_rewritten(PageFormat::Human));
}

#[test]
fn markdown_report_before_and_after_a_rewrite() {
    assert_snapshot!(shown_rewritten(PageFormat::Markdown));
}

#[test]
fn terminal_report_without_a_remedy() {
    let before = random_scan();
    let text = shown(&without_remedy(), &[("before", &before)], PageFormat::Human);
    assert_snapshot!(text);
}

#[test]
fn terminal_report_of_one_that_failed() {
    assert_snapshot!(shown(&failed(), &[], PageFormat::Human));
}

#[test]
fn the_page_shows_pictures_before_and_after() {
    let page = shown_rewritten(PageFormat::Html);
    write_page("index-build.html", &page);
    for wanted in [
        "aria-label=\"before: 2,000 reads of sdu.docs, score 0.0",
        "aria-label=\"after: 2,000 reads of sdu.docs, score 1.00",
        "14 × faster",
        "200 reads and 200 writes",
    ] {
        assert!(page.contains(wanted), "`{wanted}` is not in the page");
    }
    let before = random_scan();
    let traces = [("before", &before)];
    let page = shown(&without_remedy(), &traces, PageFormat::Html);
    write_page("index-build-once.html", &page);
    assert!(page.contains("<code>--remedy rewrite</code>"));
    let page = shown(&failed(), &[], PageFormat::Html);
    write_page("index-build-failed.html", &page);
    assert!(page.contains("<code>sdu.docs</code> was loaded"));
}

#[test]
fn before_and_after_have_the_same_axes() {
    write_page("trace-pair.html", &shown_rewritten(PageFormat::Html));
    let (before, after) = (random_scan(), sequential_scan());
    let shown = page_of(&rewritten(), &[("before", &before), ("after", &after)]);
    let charts: Vec<_> = shown
        .charts()
        .filter_map(|chart| match chart {
            Chart::Density(density) => Some(density),
            _ => None,
        })
        .collect();
    let mut ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), charts.len());
    let chart = charts.iter().find(|chart| chart.panels.len() == 2).unwrap();
    let labels: Vec<&str> = chart.panels.iter().map(|panel| panel.label.as_str()).collect();
    assert_eq!(labels, ["before", "after"]);
    for panel in &chart.panels {
        assert!(panel.x_edges.end() <= chart.x.end && panel.y_edges.end() <= chart.y.end);
    }
    // Each trace begins at its own start.
    assert_eq!(chart.x.start, 0.0);
}

#[test]
fn every_combination_of_builds_and_traces_has_a_report() {
    let (before, after, none) = (random_scan(), sequential_scan(), empty());
    let traces: [&[(&str, &Traced)]; 6] = [
        &[],
        &[("before", &before)],
        &[("after", &after)],
        &[("before", &before), ("after", &after)],
        &[("before", &none), ("after", &none)],
        &[("other", &after)],
    ];
    for document in [rewritten(), without_remedy(), failed(), dealt()] {
        for traces in traces {
            for format in ALL {
                assert!(shown(&document, traces, format).ends_with('\n'));
            }
        }
    }
}

#[test]
fn findings_name_the_index_build_and_not_the_traced_program() {
    let json: serde_json::Value = serde_json::from_str(&shown_rewritten(PageFormat::Json)).unwrap();
    let said = json["traces"][0]["findings"][0].clone();
    let said: Finding = serde_json::from_value(said).unwrap();
    assert_eq!(said.statement.code, "order-of-file");
    assert_eq!(value(&said, "subject"), "index build");
    assert_eq!(value(&said, "follows_records"), "true");
    let text = flat(&shown_rewritten(PageFormat::Human));
    let said = flat(&dyno_report::texts::text(&said.statement));
    assert!(text.contains(&format!("Before: {said}")), "{said}: {text}");
}

#[test]
fn documents_that_changed_are_an_alarm() {
    let (before, after) = (random_scan(), sequential_scan());
    let traces = [("before", &before), ("after", &after)];
    for is_lost in [true, false] {
        let mut document = rewritten();
        let remedy = document.remedy.as_mut().unwrap();
        match is_lost {
            true => remedy.documents.1 -= 1,
            false => remedy.content_hash.1 = "00ff".into(),
        }
        let first = &findings(&document, &traces)[0];
        assert_eq!(first.kind, FindingKind::Warning);
        assert_eq!(first.statement.code, "remedy-changed-documents");
        let took = found(&document, &traces, "second-build-took");
        assert_eq!(value(&took[0], "is_identical"), "false");
        let model = page_of(&document, &traces);
        assert_eq!(model.findings[0].kind, "warning");
        let alarming = model.headline.iter().filter(|figure| figure.alarming);
        let labels: Vec<&str> = alarming.map(|figure| figure.label.as_str()).collect();
        assert_eq!(labels.len(), 1, "{labels:?}");
        assert!(labels[0].starts_with("documents"), "{labels:?}");
    }
}

#[test]
fn remedy_on_sequential_documents_had_nothing_to_mend() {
    let (before, after) = (sequential_scan(), sequential_scan());
    let traces = [("before", &before), ("after", &after)];
    let mut document = rewritten();
    document.builds[1].duration_s = document.builds[0].duration_s * 1.01;
    let found = |code| found(&document, &traces, code);
    assert_eq!(found("nothing-to-mend").len(), 1);
    assert_eq!(value(&found("second-build-took")[0], "is_same"), "true");
    assert!(found("scan-and-disk-order-disagree").is_empty());
}

#[test]
fn remedy_without_effect_is_a_warning() {
    let (before, after) = (random_scan(), random_scan());
    let traces = [("before", &before), ("after", &after)];
    let mut document = rewritten();
    document.builds[1].duration_s = 30.0;
    let said = found(&document, &traces, "order-not-mended");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, FindingKind::Warning);
    let said = found(&document, &traces, "second-build-took");
    assert_eq!(value(&said[0], "change"), "build-slower (times: 2.2)");
    assert_eq!(said[0].kind, FindingKind::Warning);
}

#[test]
fn remedy_is_suggested_only_when_none_was_requested() {
    let before = random_scan();
    let traces = [("before", &before)];
    let mut document = without_remedy();
    let said = found(&document, &traces, "scan-and-disk-order-disagree");
    assert_eq!(said[0].kind, FindingKind::Opportunity);
    assert!(suggests_rewrite(&page_of(&document, &traces)));
    document.plan["index_build"]["remedy"] = "rewrite".into();
    document.status = RunStatus::Partial;
    document.status_reason = Some("interrupted".into());
    let said = found(&document, &traces, "scan-and-disk-order-disagree");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, FindingKind::Finding);
    let model = page_of(&document, &traces);
    assert!(!suggests_rewrite(&model));
    assert_eq!(model.status.label, "partial");
    assert_eq!(model.status.reason.as_deref(), Some("interrupted"));
}

#[test]
fn caveats_of_experiment_and_traces_share_their_numbers() {
    let (before, after) = (random_scan(), sequential_scan());
    let both = [("before", &before), ("after", &after)];
    let model = page_of(&rewritten(), &both);
    let said: Vec<(usize, &str)> =
        model.caveats.iter().map(|caveat| (caveat.number, caveat.message.as_str())).collect();
    let expected = [
        (1, "before: 3 calls were lost because the buffer was full"),
        (2, "before: 1.2 MiB of the data files could not be dropped from the page cache"),
        (3, "before: page faults of mapped files were not observed"),
    ];
    assert_eq!(said, expected);
    let marks = |label: &str| {
        let figure = model.headline.iter().find(|figure| figure.label == label);
        figure.map(|figure| figure.marks.clone())
    };
    for (label, numbers) in [
        ("build time before", vec![2]),
        ("build time after", vec![]),
        ("score before", vec![1]),
        ("score after", vec![]),
    ] {
        assert_eq!(marks(label), Some(numbers), "{label}");
    }
    assert_eq!(model.status.marks, [1]);

    let model = page_of(&rewritten(), &both[..1]);
    let missing = model.caveats.iter().find(|c| c.label == "no trace");
    assert!(missing.unwrap().message.contains("`after`"));
}

#[test]
fn json_holds_the_document_and_the_findings_of_each_trace() {
    let text = shown_rewritten(PageFormat::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let document: IndexBuildDocument =
        serde_json::from_value(value["index_build"].clone()).unwrap();
    assert_eq!(document, rewritten());
    assert_eq!((&value["trust"]["level"], &value["trust"]["runs"]), (&"low".into(), &2.into()));
    assert_eq!(value["traces"][0]["build"], "before");
    assert_eq!(value["traces"][1]["build"], "after");
    assert_eq!(value["traces"][1]["access_patterns"]["calls"], 2200);
    assert_eq!(value["traces"][0]["trace"]["lost_calls"], 3);
    let said: Finding = serde_json::from_value(value["findings"][0].clone()).unwrap();
    assert_eq!(self::value(&said, "change"), "build-faster (times: 14)");
    let said = value["findings"][0]["text"].as_str().unwrap();
    assert!(said.contains("14 ×"), "{said}");
}

fn shown_dealt(format: PageFormat) -> String {
    let (one, two) = (random_scan(), two_servers());
    let options = RenderOptions::default();
    with_view(&dealt(), &[("standalone", &one), ("split-2", &two)], |view| {
        render(view, format, &options).unwrap()
    })
}

#[test]
fn terminal_report_of_two_configurations() {
    assert_snapshot!(shown_dealt(PageFormat::Human));
}

#[test]
fn every_server_has_its_own_picture_and_share() {
    let page = shown_dealt(PageFormat::Html);
    write_page("index-build-dealt.html", &page);
    for wanted in [
        "aria-label=\"split-0: 2,000 reads of sdu.docs, score 0.0",
        "aria-label=\"split-1: 2,000 reads of sdu.docs, score 1.00",
        "aria-label=\"server: 2,000 reads of sdu.docs, score 0.0",
        "2.0 × faster",
        "50.9",
        "49.1",
    ] {
        assert!(page.contains(wanted), "`{wanted}` is not in the page");
    }
    let (one, two) = (random_scan(), two_servers());
    let model = page_of(&dealt(), &[("standalone", &one), ("split-2", &two)]);
    for (place, label, parts) in [
        (1, "build time, split=2", ["2 servers", "2.0 ×"]),
        (3, "lowest score, split=2", ["2 servers", "1.00"]),
    ] {
        let figure = &model.headline[place];
        assert_eq!(figure.label, label);
        let note = figure.note.as_deref().unwrap();
        assert!(parts.iter().all(|part| note.contains(part)), "{note}");
    }
    let traces = [("standalone", &one), ("split-2", &two)];
    let mut said = found(&dealt(), &traces, "servers-read-at-random");
    said.retain(|finding| value(finding, "name") == "split=2");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, FindingKind::Opportunity);
    let counts = ["random", "servers"].map(|name| value(&said[0], name));
    assert_eq!(counts, ["1", "2"]);
    // The server that was read in order is not part of the evidence.
    let evidence = &said[0].evidence;
    assert_eq!(evidence.len(), 1);
    assert_eq!(evidence[0].code, "order-of-server");
    assert_eq!(evidence[0].text("server"), Some("split-0"));
    assert!(evidence[0].number("score").unwrap() < 0.005, "{evidence:?}");
}

#[test]
fn score_is_open_when_the_trace_of_a_server_is_missing() {
    let one = random_scan();
    let model = page_of(&dealt(), &[("standalone", &one)]);
    let labels: Vec<&str> = model.headline.iter().map(|f| f.label.as_str()).collect();
    assert!(!labels.iter().any(|label| label.starts_with("lowest score")), "{labels:?}");
    assert!(model.caveats.iter().any(|caveat| caveat.label == "no trace"));
}

#[test]
fn remedy_on_dealt_documents_is_shown_per_configuration() {
    let mut document = dealt();
    document.plan["index_build"]["remedy"] = "rewrite".into();
    let mut remedy = rewritten().remedy.unwrap();
    remedy.on = Some("split-0".into());
    document.configurations[1].remedy = Some(remedy);
    let mut after = document.builds[1].clone();
    after.name = "split-2-after".into();
    after.duration_s = 0.9;
    document.builds.push(after);
    let (one, two) = (random_scan(), two_servers());
    let traces = [("standalone", &one), ("split-2", &two), ("split-2-after", &two)];
    let model = page_of(&document, &traces);
    let mut said = found(&document, &traces, "configuration-took");
    said.retain(|finding| value(finding, "name") == "split=2 after rewrite");
    assert_eq!(said.len(), 1, "{:?}", model.findings);
    let values = ["seconds", "base_seconds", "is_identical"].map(|name| value(&said[0], name));
    assert_eq!(values, ["900 ms", "6.81 s", "true"]);
    assert!(!suggests_rewrite(&model));
    let facts = model.method.iter().flat_map(|list| &list.facts);
    let split = facts.filter(|fact| fact.label == "split=2").collect::<Vec<_>>();
    assert!(split[0].value.ends_with("on split-0 only"), "{split:?}");
    document.configurations[1].remedy.as_mut().unwrap().documents.1 -= 1;
    let first = &findings(&document, &traces)[0];
    assert_eq!(first.kind, FindingKind::Warning);
    assert_eq!(first.statement.code, "remedy-changed-documents");
}

#[test]
fn tracing_cost_has_an_interval_when_builds_were_repeated() {
    let cost = |durations: &[(f64, f64)]| {
        let before = random_scan();
        let mut document = without_remedy();
        document.builds[0].tracing = pairs(durations);
        let model = page_of(&document, &[("before", &before)]);
        let figure = model.headline.iter().find(|one| one.label.ends_with("tracing"));
        figure.map(|figure| (figure.value.to_string(), figure.note.clone().unwrap()))
    };
    assert_eq!(cost(&[]), None);
    let known = [(11.0, 10.0), (11.1, 10.0), (11.2, 10.0)];
    let (value, note) = cost(&known).unwrap();
    assert_eq!(value, "+11.0 %");
    assert!(note.contains("95 %: +"), "{note}");
    assert!(note.ends_with(" %, 3 pairs"), "{note}");
    // One pair, noise larger than the effect, and an effect that tracing cannot have.
    let noise = [(10.1, 10.0), (10.0, 10.0), (10.2, 10.0)];
    let shorter = [(9.0, 10.0), (9.1, 10.0), (9.0, 10.0)];
    for unknown in [&known[..1], &noise, &shorter] {
        assert_eq!(cost(unknown), None);
    }
}

#[test]
fn cluster_members_share_one_command_and_are_not_rewritten() {
    let mut document = dealt();
    document.configurations[1].topology = "sharded=2x1".into();
    let build = &mut document.builds[1];
    build.configuration = Some("sharded=2x1".into());
    for member in &mut build.members {
        member.duration_s = build.duration_s;
    }
    let (one, two) = (random_scan(), two_servers());
    let traces = [("standalone", &one), ("split-2", &two)];
    let model = page_of(&document, &traces);
    let note = model.headline[1].note.as_deref().unwrap();
    for part in ["one command", "2 servers", "2.0 ×"] {
        assert!(note.contains(part), "{part}: {note}");
    }
    let mut said = found(&document, &traces, "servers-read-at-random");
    said.retain(|finding| value(finding, "name") == "sharded=2x1");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].kind, FindingKind::Finding);
    assert_eq!(value(&said[0], "can_be_mended"), "false");
    // Members share one command, so the first server that ended is unknown.
    let took = found(&document, &traces, "configuration-took");
    let evidence = took[0].evidence.iter();
    let mut evidence = evidence.filter(|one| one.text("name") == Some("sharded=2x1"));
    let evidence = evidence.next().unwrap();
    assert_eq!(evidence.code, "configuration-took-and-read");
    assert!(!evidence.values.contains_key("first"), "{evidence}");
    let page = shown(&document, &traces, PageFormat::Html);
    assert!(page.contains("sharded=SxR") && !page.contains("split=N"));
}
