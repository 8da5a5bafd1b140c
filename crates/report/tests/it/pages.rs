//! Writes HTML reports to `target/tmp/report/`, where the browser test of `web/` opens them, and checks what
//! needs no browser.

use crate::samples::watched;
use dyno_record::model::PhaseKind;
use dyno_record::reader::Run;
use dyno_report::page::sentence;
use dyno_report::{Format, RenderOptions, render};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

fn page(run: &Run) -> String {
    render(run, None, Format::Html, &RenderOptions::default()).unwrap()
}

/// A run of three hours. Its windows are copies of a short run's windows, because writing so many histograms takes long.
fn long_run() -> Run {
    let mut run = crate::support::open_run();
    let measured = |phase: PhaseKind| phase == PhaseKind::Measure;
    let intervals: Vec<_> = run.intervals.iter().filter(|w| measured(w.phase)).cloned().collect();
    let series: Vec<_> = run.series.iter().filter(|p| measured(p.phase)).cloned().collect();
    let (count, span_s) = (intervals.len() as u64, intervals.len() as f64);
    for copy in 1..360u64 {
        run.intervals.extend(intervals.iter().cloned().map(|mut window| {
            window.index += copy * count;
            window.start_s += copy as f64 * span_s;
            window.succeeded += copy % 60;
            window
        }));
        run.series.extend(series.iter().cloned().map(|mut point| {
            point.index += copy * count;
            point.start_s += copy as f64 * span_s;
            point
        }));
    }
    run
}

#[test]
fn reports_are_written_for_the_browser_test() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, run) in [
        ("closed", crate::support::closed_run()),
        ("open", crate::support::open_run()),
        ("long", long_run()),
        ("empty", crate::support::run(crate::support::closed_document(), &[])),
    ] {
        let html = page(&run);
        assert!(html.ends_with("</html>\n"), "{name}");
        std::fs::write(folder.join(format!("{name}.html")), html).unwrap();
    }
    let options = RenderOptions::default();
    for (name, (run, analysis)) in [
        ("analysed", crate::support::watched_run()),
        ("watched", watched::throttled()),
        ("servers", watched::many_servers()),
        ("hour", watched::hour()),
    ] {
        let html = render(&run, Some(&analysis), Format::Html, &options).unwrap();
        std::fs::write(folder.join(format!("{name}.html")), html).unwrap();
    }
}

#[test]
fn a_page_shows_what_the_analysis_says() {
    let (run, analysis) = crate::support::watched_run();
    let options = RenderOptions::default();
    let html = render(&run, Some(&analysis), Format::Html, &options).unwrap();
    assert!(html.contains("<h2>Findings</h2>"));
    let bottleneck = analysis.findings.iter().find(|one| one.statement.code == "bottleneck");
    let bottleneck = sentence(&dyno_report::texts::text(&bottleneck.unwrap().statement));
    assert!(html.contains(bottleneck.split(':').next().unwrap()), "{bottleneck}");
    assert!(html.contains("aria-label=\"Law checks\""));
    assert!(html.contains("<span class=\"row-label\">CPUs of server and client</span>"));
    // A page without an analysis has neither these sections nor empty headings.
    let plain = page(&run);
    assert!(!plain.contains("Findings") && !plain.contains("Law checks"));
}

/// Headings of the parts of a page in order.
fn headings(html: &str) -> Vec<&str> {
    let parts = html.split("<h2>").skip(1);
    parts.map(|part| &part[..part.find("</h2>").unwrap()]).collect()
}

#[test]
fn page_puts_verdict_charts_findings_and_caveats_first() {
    let (mut run, analysis) = watched::throttled();
    run.document.caveats = crate::support::open_run().document.caveats;
    let html = render(&run, Some(&analysis), Format::Html, &RenderOptions::default()).unwrap();
    let headings = headings(&html);
    assert_eq!(headings[..2], ["Verdict", "Over time"]);
    let of = |title: &str| headings.iter().position(|one| *one == title).unwrap();
    assert!(of("Over time") < of("Findings") && of("Findings") < of("Caveats"));
    assert!(of("Caveats") < of("Distribution") && of("Distribution") < of("Tables"));
    assert_eq!(headings.last(), Some(&"Terms"));
    // The contents name each of them.
    let contents =
        &html[html.find("<nav class=\"contents\"").unwrap()..html.find("</nav>").unwrap()];
    for heading in &headings {
        assert!(contents.contains(&format!(">{heading}</a>")), "{heading}");
    }
}

#[test]
fn page_says_what_was_run_and_where_below_its_title() {
    let mut run = crate::support::closed_run();
    run.document.server.kind = "uri".into();
    run.document.server.product = None;
    run.document.server.version = Some("6.0.5".into());
    run.document.server.address = "127.0.0.1:27017".into();
    let html = page(&run);
    let line = html.split("<p class=\"setup\">").nth(1).unwrap();
    let line = &line[..line.find("</p>").unwrap()];
    let mix = dyno_record::plan::RecordedPlan::new(&run.document.plan);
    let operation = mix.operations.keys().next().unwrap();
    for part in ["mongod 6.0.5 at 127.0.0.1:27017", "documents of", operation.as_str()] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!html.contains("uri 6.0.5"));
}

#[test]
fn figures_of_a_page_link_to_the_caveats_that_touch_them() {
    let mut document = crate::support::open_run().document;
    document.phases.clear();
    let windows: Vec<_> = (0..12)
        .map(|index| {
            let start = crate::support::window(PhaseKind::Measure, index, index);
            start.operation("read", &[(200, 900), (300, 100)])
        })
        .collect();
    let (run, analysis) = crate::support::analysed(document, &windows);
    let options = RenderOptions::default();
    let html = render(&run, Some(&analysis), Format::Html, &options).unwrap();
    let table = &html[html.find("aria-label=\"Rate and response time\"").unwrap()..];
    let head = &table[..table.find("</thead>").unwrap()];
    assert!(head.contains("href=\"#caveat-1\""), "{head}");
}

#[test]
fn a_page_of_a_long_run_stays_small() {
    let html = page(&long_run());
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("covers 6 of"));
}

/// Attribute values that a browser would follow or load.
fn references(html: &str) -> Vec<String> {
    let markup: String = strip_elements(html, &["script", "style"]);
    let names = ["src=", "href=", "srcset=", "data=", "action=", "poster=", "background="];
    let mut found = Vec::new();
    for name in names {
        for (position, _) in markup.match_indices(name) {
            let rest = &markup[position + name.len()..];
            let value = rest.trim_start_matches(['"', '\'']);
            let end = value.find(['"', '\'', '>', ' ']).unwrap_or(value.len());
            found.push(value[..end].to_owned());
        }
    }
    found
}

/// The markup without the content of these elements.
fn strip_elements(html: &str, names: &[&str]) -> String {
    let mut text = html.to_owned();
    for name in names {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        while let Some(start) = text.find(&open) {
            let end = text[start..].find(&close).expect("elements are closed");
            text.replace_range(start..start + end + close.len(), "");
        }
    }
    text
}

#[test]
fn a_page_refers_to_nothing_but_itself() {
    let html = page(&crate::support::open_run());
    let references = references(&html);
    assert!(references.len() > 5, "{references:?}");
    for reference in &references {
        let id = reference.strip_prefix('#');
        let id = id.unwrap_or_else(|| panic!("{reference} leaves the page"));
        assert!(html.contains(&format!(" id=\"{id}\"")), "{reference}");
    }
    for forbidden in ["<link", "<img", "<iframe", "@import", "import(", "fetch(", "XMLHttp"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn every_caveat_stands_in_the_page_and_marks_lead_to_it() {
    let run = crate::support::open_run();
    let html = page(&run);
    for number in 1..=run.document.caveats.len() {
        assert!(html.contains(&format!("id=\"caveat-{number}\"")));
        assert!(html.contains(&format!("href=\"#caveat-{number}\"")), "{number}");
    }
}

/// Texts that would do harm without escaping, mixed with others.
fn hostile() -> impl Strategy<Value = String> {
    let fragments = vec![
        "</script>",
        "<script>alert(1)</script>",
        "<!--",
        "-->",
        "]]>",
        "\"",
        "'",
        "&amp;",
        "<b>",
        "</style>",
        "\\u003c",
        "\u{2028}",
        "x",
        " ",
        "`",
        "{{ 7 * 7 }}",
        "onload=",
        "\\",
    ];
    prop::collection::vec(prop::sample::select(fragments), 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_text_of_a_run_can_break_out_of_the_page(text in hostile()) {
        static HARMLESS: LazyLock<String> =
            LazyLock::new(|| page(&crate::support::run(named("plain"), &windows())));
        let harmless = HARMLESS.as_str();
        let html = page(&crate::support::run(named(&text), &windows()));
        for tag in ["<script", "</script", "<style", "</style", "<!--", "<b>", "<title", "<li"] {
            let count = |html: &str| html.matches(tag).count();
            prop_assert_eq!(count(&html), count(harmless), "{}", tag);
        }
        prop_assert_eq!(html.matches("49").count(), harmless.matches("49").count());
    }
}

fn windows() -> [crate::support::Window; 1] {
    [crate::support::window(PhaseKind::Measure, 0, 0).operation("read", &[(100, 20)])]
}

/// A document with the text in every place that can hold external text.
fn named(text: &str) -> dyno_record::model::RunDocument {
    let mut document = crate::support::closed_document();
    document.name = text.into();
    document.plan["description"] = text.into();
    document.plan["name"] = text.into();
    document.status_reason = Some(text.into());
    document.environment.hostname = Some(text.into());
    document.server.address = text.into();
    document.server.settings.insert(text.into(), text.into());
    document.sources = vec![dyno_record::model::SourceRecord {
        name: text.into(),
        kind: dyno_record::model::SourceKind::Exporter,
        subject: text.into(),
        machine: Some(text.into()),
        of_server: true,
        interval_s: 1.0,
        readings_per_row: 1,
        health: dyno_record::model::SourceHealth::Degraded,
        reason: Some(text.into()),
        missing: vec![text.into()],
        readings: 1,
        missed: 0,
        outages: Vec::new(),
        cpu_s: 0.0,
        cpu_ratio: 0.0,
    }];
    document.caveats = vec![dyno_record::model::Caveat {
        kind: dyno_record::model::CaveatKind::Errors,
        statement: dyno_record::statement::Statement::recorded(text).with("hint", text),
        phase: None,
    }];
    document
}
