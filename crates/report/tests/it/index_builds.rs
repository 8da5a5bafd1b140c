//! Reports of index builds: texts word for word, and pages that are written to `target/tmp/report/`, where they can be
//! looked at.

use crate::samples::index_build::{dealt, failed, pairs, rewritten, without_remedy};
use crate::samples::trace::{Traced, empty, random_scan, sequential_scan, two_servers};
use dyno_analyze::access_pattern::Activity;
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::model::RunStatus;
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::index_build::{IndexBuildView, page, render};
use dyno_report::io_trace::TraceView;
use dyno_report::page::Page;
use insta::assert_snapshot;
use std::path::Path;

const ALL: [PageFormat; 4] = [
    PageFormat::Human,
    PageFormat::Markdown,
    PageFormat::Html,
    PageFormat::Json,
];

/// What the traces say that they are of, which a report of an index build does not repeat.
fn other_activity() -> Activity {
    Activity {
        subject: "secantusd-rs".to_owned(),
        scans_records: false,
    }
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
    look(&IndexBuildView {
        document,
        traces: views.collect(),
    })
}

fn shown(document: &IndexBuildDocument, traces: &[(&str, &Traced)], format: PageFormat) -> String {
    with_view(document, traces, |view| {
        render(view, format, &RenderOptions::default()).unwrap()
    })
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
    shown(
        &rewritten(),
        &[("before", &before), ("after", &after)],
        format,
    )
}

fn write_page(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), page).unwrap();
}

/// The findings whose text has `part`.
fn found<'a>(model: &'a Page, part: &str) -> Vec<(&'static str, &'a str)> {
    let findings = model.findings.iter();
    let findings = findings.filter(|finding| finding.text.contains(part));
    findings
        .map(|finding| (finding.kind, finding.text.as_str()))
        .collect()
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
        "not one document changed",
        "limited to 200 reads and 200 writes per second: no real seeks",
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
fn findings_are_about_an_index_build_whatever_the_traces_say() {
    let text = shown_rewritten(PageFormat::Human);
    assert!(text.contains("Before: index build read `sdu.docs`"));
    assert!(text.contains("the scan follows record order, the file does not"));
    let json: serde_json::Value = serde_json::from_str(&shown_rewritten(PageFormat::Json)).unwrap();
    let said = json["traces"][0]["findings"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("index build read `sdu.docs`"));
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
        let model = page_of(&document, &traces);
        assert_eq!(model.findings[0].kind, "warning");
        assert!(model.findings[0].text.contains("changed documents"));
        assert!(found(&model, "not one document changed").is_empty());
        let alarming = model.headline.iter().filter(|figure| figure.alarming);
        let labels: Vec<&str> = alarming.map(|figure| figure.label.as_str()).collect();
        assert_eq!(labels, ["documents, not identical"]);
    }
}

#[test]
fn a_remedy_of_what_was_sequential_had_nothing_to_mend() {
    let (before, after) = (sequential_scan(), sequential_scan());
    let traces = [("before", &before), ("after", &after)];
    let mut document = rewritten();
    document.builds[1].duration_s = document.builds[0].duration_s * 1.01;
    let model = page_of(&document, &traces);
    assert_eq!(found(&model, "had nothing to mend").len(), 1);
    assert_eq!(found(&model, "took as long as before").len(), 1);
    assert!(found(&model, "can order and disk order").is_empty());
}

#[test]
fn a_remedy_that_mended_nothing_is_a_warning() {
    let (before, after) = (random_scan(), random_scan());
    let traces = [("before", &before), ("after", &after)];
    let mut document = rewritten();
    document.builds[1].duration_s = 30.0;
    let model = page_of(&document, &traces);
    let said = found(&model, "did not mend the order");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].0, "warning");
    let said = found(&model, "2.2 × slower");
    assert_eq!(said[0].0, "warning");
}

#[test]
fn a_remedy_is_suggested_only_where_none_was_asked_for() {
    let before = random_scan();
    let traces = [("before", &before)];
    let mut document = without_remedy();
    let model = page_of(&document, &traces);
    assert_eq!(found(&model, "--remedy rewrite")[0].0, "opportunity");
    document.plan["index_build"]["remedy"] = "rewrite".into();
    document.status = RunStatus::Partial;
    document.status_reason = Some("interrupted".into());
    let model = page_of(&document, &traces);
    assert!(found(&model, "--remedy rewrite").is_empty());
    assert_eq!(found(&model, "Scan order and disk order").len(), 1);
    assert_eq!(model.status.label, "partial");
    assert_eq!(model.status.reason.as_deref(), Some("interrupted"));
}

#[test]
fn caveats_of_the_experiment_and_of_its_traces_are_numbered_together() {
    let (before, after) = (random_scan(), sequential_scan());
    let both = [("before", &before), ("after", &after)];
    let model = page_of(&rewritten(), &both);
    let said: Vec<(usize, &str)> = model
        .caveats
        .iter()
        .map(|caveat| (caveat.number, caveat.message.as_str()))
        .collect();
    let expected = [
        (1, "before: 3 calls were lost because the buffer was full"),
        (
            2,
            "before: 1.2 MiB of the data files could not be dropped from the page cache",
        ),
        (3, "before: page faults of mapped files were not observed"),
    ];
    assert_eq!(said, expected);
    let marks = |label: &str| {
        let mut figures = model.headline.iter();
        let figure = figures.find(|figure| figure.label == label);
        figure.map(|figure| figure.marks.clone())
    };
    assert_eq!(marks("build time before"), Some(vec![2]));
    assert_eq!(marks("build time after"), Some(Vec::new()));
    assert_eq!(marks("score before"), Some(vec![1]));
    assert_eq!(marks("score after"), Some(Vec::new()));
    assert_eq!(model.status.marks, [1]);

    let model = page_of(&rewritten(), &both[..1]);
    let missing = model.caveats.iter().find(|c| c.label == "no trace");
    assert!(missing.unwrap().message.contains("`after`"));
}

#[test]
fn counters_of_the_cache_come_first_and_the_rest_is_counted() {
    let (before, after) = (random_scan(), sequential_scan());
    let model = page_of(&rewritten(), &[("before", &before), ("after", &after)]);
    let mut sections = model.sections.iter();
    let section = sections.find(|section| section.title == "Counters of the server");
    let section = section.unwrap();
    let rows = &section.tables[0].rows;
    let names: Vec<&str> = rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(names.len(), 12);
    let expected = [
        "wiredTiger.cache.bytes read into cache",
        "wiredTiger.cache.pages read into cache",
        "metrics.counter 11",
    ];
    assert_eq!(names[..3], expected);
    assert!(!names.contains(&"wiredTiger.cache.eviction walks"));
    assert!(section.notes[0].starts_with("1 more counter that"));
}

#[test]
fn the_json_form_holds_the_document_and_what_follows_from_each_trace() {
    let text = shown_rewritten(PageFormat::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let document: IndexBuildDocument =
        serde_json::from_value(value["index_build"].clone()).unwrap();
    assert_eq!(document, rewritten());
    assert_eq!(value["traces"][0]["build"], "before");
    assert_eq!(value["traces"][1]["build"], "after");
    assert_eq!(value["traces"][1]["access_patterns"]["calls"], 2200);
    assert_eq!(value["traces"][0]["trace"]["lost_calls"], 3);
    let said = value["findings"][0]["text"].as_str().unwrap();
    assert!(said.contains("14 × faster"), "{said}");
}

fn shown_dealt(format: PageFormat) -> String {
    let (one, two) = (random_scan(), two_servers());
    let options = RenderOptions::default();
    with_view(
        &dealt(),
        &[("standalone", &one), ("split-2", &two)],
        |view| render(view, format, &options).unwrap(),
    )
}

#[test]
fn terminal_report_of_two_configurations() {
    assert_snapshot!(shown_dealt(PageFormat::Human));
}

#[test]
fn every_server_has_its_picture_and_its_share_and_none_speaks_for_all() {
    let page = shown_dealt(PageFormat::Html);
    write_page("index-build-dealt.html", &page);
    for wanted in [
        "aria-label=\"split-0: 2,000 reads of sdu.docs, score 0.0",
        "aria-label=\"split-1: 2,000 reads of sdu.docs, score 1.00",
        "aria-label=\"server: 2,000 reads of sdu.docs, score 0.0",
        "2.0 × faster than standalone",
        "50.9",
        "49.1",
    ] {
        assert!(page.contains(wanted), "`{wanted}` is not in the page");
    }
    let (one, two) = (random_scan(), two_servers());
    let model = page_of(&dealt(), &[("standalone", &one), ("split-2", &two)]);
    let headline: Vec<(&str, Option<&str>)> = model
        .headline
        .iter()
        .map(|figure| (figure.label.as_str(), figure.note.as_deref()))
        .collect();
    let until =
        "until the last of 2 servers had ended; 2.0 × faster than standalone, each built once";
    assert_eq!(headline[1], ("build time, split=2", Some(until)));
    let lowest = "of 2 servers; the highest is 1.00";
    assert_eq!(headline[3], ("lowest score, split=2", Some(lowest)));
    let said = found(&model, "on 1 of 2 servers");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].0, "opportunity");
    // The one that is read in order is no evidence.
    let findings = model.findings.iter();
    let random = findings.filter(|finding| finding.text.contains("on 1 of 2 servers"));
    let evidence: Vec<&str> = random
        .flat_map(|finding| &finding.evidence)
        .map(|evidence| evidence.text.as_str())
        .collect();
    assert_eq!(evidence.len(), 1);
    assert!(
        evidence[0].starts_with("On `split-0` the score is 0.00"),
        "{evidence:?}"
    );
}

#[test]
fn a_server_whose_trace_is_missing_leaves_the_score_open() {
    let one = random_scan();
    let model = page_of(&dealt(), &[("standalone", &one)]);
    let labels: Vec<&str> = model.headline.iter().map(|f| f.label.as_str()).collect();
    assert!(
        !labels.iter().any(|label| label.starts_with("lowest score")),
        "{labels:?}"
    );
    assert!(
        model
            .caveats
            .iter()
            .any(|caveat| caveat.label == "no trace")
    );
}

#[test]
fn a_remedy_on_dealt_documents_is_told_for_each_configuration() {
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
    let traces = [
        ("standalone", &one),
        ("split-2", &two),
        ("split-2-after", &two),
    ];
    let model = page_of(&document, &traces);
    let said = found(
        &model,
        "split=2 after rewrite the index build took 900 ms instead of 6.81 s",
    );
    assert_eq!(said.len(), 1, "{:?}", model.findings);
    assert!(said[0].1.contains("not one document changed"));
    assert!(found(&model, "--remedy rewrite").is_empty());
    let facts = model.method.iter().flat_map(|list| &list.facts);
    let split = facts
        .filter(|fact| fact.label == "split=2")
        .collect::<Vec<_>>();
    assert!(split[0].value.ends_with("on split-0 only"), "{split:?}");
    document.configurations[1]
        .remedy
        .as_mut()
        .unwrap()
        .documents
        .1 -= 1;
    let model = page_of(&document, &traces);
    assert_eq!(model.findings[0].kind, "warning");
    assert!(model.findings[0].text.contains("changed documents"));
}

#[test]
fn the_cost_of_tracing_has_an_interval_where_it_was_repeated() {
    let cost = |durations: &[(f64, f64)]| {
        let before = random_scan();
        let mut document = without_remedy();
        document.builds[0].tracing = pairs(durations);
        let model = page_of(&document, &[("before", &before)]);
        let figure = model
            .headline
            .iter()
            .find(|one| one.label == "cost of tracing");
        figure.map(|figure| (figure.value.to_string(), figure.note.clone().unwrap()))
    };
    assert_eq!(cost(&[]), None);
    let known = [(11.0, 10.0), (11.1, 10.0), (11.2, 10.0)];
    let (value, note) = cost(&known).unwrap();
    assert_eq!(value, "+11.0 %");
    assert!(note.starts_with("of the build time; 95 %: +"), "{note}");
    assert!(note.ends_with(" %, 3 pairs"), "{note}");
    // One pair, noise that is larger than the effect, and an effect that tracing cannot have.
    let noise = [(10.1, 10.0), (10.0, 10.0), (10.2, 10.0)];
    let shorter = [(9.0, 10.0), (9.1, 10.0), (9.0, 10.0)];
    for unknown in [&known[..1], &noise, &shorter] {
        assert_eq!(cost(unknown), None);
    }
}

#[test]
fn members_of_a_cluster_share_one_command_and_nothing_is_rewritten_there() {
    let mut document = dealt();
    document.configurations[1].topology = "sharded=2x1".into();
    let build = &mut document.builds[1];
    build.configuration = Some("sharded=2x1".into());
    for member in &mut build.members {
        member.duration_s = build.duration_s;
    }
    let (one, two) = (random_scan(), two_servers());
    let model = page_of(&document, &[("standalone", &one), ("split-2", &two)]);
    let note = model.headline[1].note.as_deref();
    let of_all =
        "of one command for 2 servers with data; 2.0 × faster than standalone, each built once";
    assert_eq!(note, Some(of_all));
    let said = found(&model, "on 1 of 2 servers");
    assert_eq!((said.len(), said[0].0), (1, "finding"));
    assert!(!said[0].1.contains("--remedy"), "{said:?}");
    let evidence = model.findings.iter().flat_map(|one| &one.evidence);
    let evidence: Vec<&str> = evidence.map(|one| one.text.as_str()).collect();
    assert!(
        !evidence
            .iter()
            .any(|text| text.contains("where the first of")),
        "{evidence:?}"
    );
    let page = with_view(
        &document,
        &[("standalone", &one), ("split-2", &two)],
        |view| render(view, PageFormat::Html, &RenderOptions::default()).unwrap(),
    );
    for wanted in ["is built through the router", "2 servers with data"] {
        assert!(page.contains(wanted), "`{wanted}` is not in the page");
    }
    assert!(!page.contains("without a router"));
}
