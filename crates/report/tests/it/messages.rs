//! Reports of messages through a database: of a recorded document, and of one with very many messages, whose page is
//! written to `target/tmp/report/` for inspection.

use dyno_analyze::messages::CellLatencies;
use dyno_record::tail::BlindCursor;
use dyno_record::tail::CellStatus;
use dyno_record::tail::TailDocument;
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::tail::{TailView, render};
use dyno_testkit::without_term_links;
use std::path::Path;

fn document() -> TailDocument {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden/tail.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Latencies that climb with the message number, or stay flat.
fn messages(document: &TailDocument, count: usize) -> Vec<CellLatencies> {
    let made = document.cells.iter().enumerate().map(|(place, cell)| {
        let latencies = (0..count).map(|n| {
            let climb = if place % 2 == 1 { n as i64 * 20_000 } else { 0 };
            let noise = (n as i64 * 7_919) % 100_000;
            (n % 1000 != 999).then_some(200_000 + noise + climb)
        });
        CellLatencies { cell: cell.name.clone(), latencies_ns: vec![latencies.collect()] }
    });
    made.collect()
}

pub(crate) fn markdown_and_json(count: usize) -> [String; 2] {
    [PageFormat::Markdown, PageFormat::Json].map(|format| rendered(&document(), count, format))
}

/// The findings with this code from the JSON report.
fn found<'a>(json: &'a serde_json::Value, code: &str) -> Vec<&'a serde_json::Value> {
    json["findings"].as_array().unwrap().iter().filter(|one| one["code"] == code).collect()
}

fn rendered(document: &TailDocument, count: usize, format: PageFormat) -> String {
    let messages = messages(document, count);
    let view = TailView { document, messages: &messages };
    render(&view, format, &RenderOptions::default()).unwrap()
}

#[test]
fn every_format_has_the_cause_and_the_sums() {
    let document = document();
    let json: serde_json::Value =
        serde_json::from_str(&rendered(&document, 300, PageFormat::Json)).unwrap();
    assert!(json["findings"].as_array().unwrap().len() > 2);
    assert_eq!(json["tail"]["cells"].as_array().unwrap().len(), 4);
    let cause = found(&json, "missing-bound-is-the-cause")[0]["text"].as_str().unwrap();
    // Without the first letter, which may be a capital, and up to the names, which formats mark differently.
    let cause = &cause.split(':').next().unwrap()[1..];
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = without_term_links(&rendered(&document, 300, format));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [cause, "Outcome of", "2,400"] {
            assert!(flat.contains(part), "{format:?}: {part}");
        }
    }
}

#[test]
fn every_format_names_a_blind_cursor_and_its_duration() {
    let mut document = document();
    let consumer = &mut document.cells[0].measured.as_mut().unwrap().consumers[0];
    consumer.blind = vec![BlindCursor { blind_s: 1.0, found: 201 }];
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = rendered(&document, 300, format);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["after 1.00 s", "201 messages"] {
            assert!(flat.contains(part), "{format:?}: {part}");
        }
    }
    let json = rendered(&document, 300, PageFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let blind = found(&json, "cursor-blind");
    assert_eq!(blind.len(), 1);
    assert_eq!(blind[0]["evidence"][0]["code"], "cursor-alive-without-messages");
    assert_eq!(blind[0]["evidence"][0]["values"]["messages"]["value"], 201.0);
    let consumer = &json["tail"]["cells"][0]["measured"]["consumers"][0];
    assert_eq!(consumer["blind"][0]["blind_s"], 1.0);
    let table = rendered(&document, 300, PageFormat::Markdown);
    let row = table.lines().find(|line| line.contains("| 1.00 s |"));
    assert!(row.is_some_and(|row| row.contains("complete")), "{table}");
}

#[test]
fn page_with_100_000_messages_stays_below_4_megabytes() {
    let page = rendered(&document(), 100_000, PageFormat::Html);
    assert_eq!(page.matches("<canvas").count(), 4);
    assert!(page.len() < 4_000_000, "{}", page.len());
    // Twice as many are downsampled, and a note says so.
    let more = rendered(&document(), 200_000, PageFormat::Html);
    assert!(more.len() < page.len() * 11 / 10, "{} {}", more.len(), page.len());
    assert!(more.contains("of neighbours") && !page.contains("of neighbours"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("messages.html"), page).unwrap();
}

/// Three rounds of two drivers: each round is slightly slower than the previous one, and the second driver is twice as
/// slow.
fn repeated() -> TailDocument {
    let mut document = document();
    let cells = std::mem::take(&mut document.cells);
    for repetition in 1..=3 {
        for (place, producer) in ["c", "node"].into_iter().enumerate() {
            let mut cell = cells[0].clone();
            cell.name = format!("{producer}-{repetition}");
            cell.repetition = Some(repetition);
            cell.settings.producers = vec![producer.to_owned()];
            let total = &mut cell.measured.as_mut().unwrap().consumers[0].deliveries[0].total;
            total.p50_us = f64::from(repetition).mul_add(5.0, 500.0) * (place + 1) as f64;
            document.cells.push(cell);
        }
    }
    document
}

#[test]
fn repetitions_have_intervals_in_every_format() {
    let document = repeated();
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = rendered(&document, 10, format);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["1 of 1", "Over the", "510 µs", "node, repetition 3"] {
            assert!(flat.contains(part), "{format:?}: {part}: {flat}");
        }
        assert!(!flat.contains("measured once"), "{format:?}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&rendered(&document, 10, PageFormat::Json)).unwrap();
    let differ = &found(&json, "differences-beyond-intervals")[0]["values"];
    for (name, count) in [("beyond", 1.0), ("in_rate", 0.0), ("pairs", 1.0)] {
        assert_eq!(differ[name]["value"], count, "{name}");
    }
    let first = &json["repeated"][0];
    assert!(first["like"].as_array().is_none_or(Vec::is_empty), "{first}");
    assert_eq!((&first["label"], &first["repetitions"]), (&"c".into(), &3.into()));
    let median = |end: &str| first["median_us"][end].as_f64().unwrap();
    assert!(median("low") < median("value") && median("value") < median("high"));
    let table = dyno_report::tail::csv(&document);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][6..9], ["median_us", "median_us_low", "median_us_high"]);
    assert_eq!((lines[1][0], lines[1][5]), ("c", "3"));
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!((number(lines[1][6]) - median("value")).abs() < 0.001);
    assert!((number(lines[1][7]) - median("low")).abs() < 0.001);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    // Measured once, there is a table without intervals.
    let once = dyno_report::tail::csv(&self::document());
    assert!(once.lines().nth(1).unwrap().contains(",,"), "{once}");
}

#[test]
fn interval_is_omitted_with_a_reason_when_it_is_too_wide() {
    let too_wide = |document: &TailDocument| {
        let text = rendered(document, 10, PageFormat::Markdown);
        text.matches("no interval: too wide").count()
    };
    let mut document = repeated();
    assert_eq!(too_wide(&document), 0);
    for cell in &mut document.cells {
        let tens = cell.repetition.map_or(0.0, f64::from);
        let times = if cell.settings.producers == ["node"] { 2.0 } else { 1.0 };
        let total = &mut cell.measured.as_mut().unwrap().consumers[0].deliveries[0].total;
        total.p50_us = times * 10_f64.powf(tens);
    }
    // Both medians, and the ratio of the larger one.
    assert_eq!(too_wide(&document), 3);
    let json: serde_json::Value =
        serde_json::from_str(&rendered(&document, 10, PageFormat::Json)).unwrap();
    let second = &json["repeated"][1];
    assert_eq!(second["label"], "node");
    assert!(second["median_us"]["value"].is_number() && second["median_us"]["low"].is_null());
    assert_eq!(second["like"], serde_json::json!(["c"]), "indistinguishable");
}

#[test]
fn headline_warns_when_the_embedded_collection_is_too_small() {
    let says = |document: &TailDocument| {
        let text = rendered(document, 10, PageFormat::Markdown);
        text.contains("limits the measurement")
    };
    let mut document = document();
    document.server.product = "secantusd-rs".into();
    for cell in &mut document.cells {
        cell.settings.capped_bytes = 128 << 10;
        cell.settings.messages = 100_000;
        cell.settings.size_bytes = 100;
    }
    assert!(says(&document));
    let mut empty = document.clone();
    empty.cells[0].settings.size_bytes = 0;
    assert!(says(&empty), "fields and names also need room");
    empty.cells[0].settings.messages = 513;
    assert!(says(&empty), "513 of 256 bytes are more than 128 KiB");
    empty.cells[0].settings.messages = 512;
    assert!(!says(&empty), "they have room");
    let mut own = document.clone();
    own.plan = serde_json::json!({ "tail": { "capped_size": "128KiB" } });
    assert!(!says(&own), "the plan limits it");
    let mut few = document.clone();
    few.cells[0].settings.messages = 300;
    assert!(!says(&few), "they have room");
    document.server.product = "mongod".into();
    assert!(!says(&document));
}

#[test]
fn failures_are_alarms_and_cells_without_figures_have_a_row() {
    let mut document = document();
    let cell = &mut document.cells[0];
    cell.status = CellStatus::Failed;
    cell.reason = Some("consumer 0 (wire) lost 7 messages".into());
    cell.measured.as_mut().unwrap().consumers[0].sum.lost = 7;
    document.cells[1].status = CellStatus::Failed;
    document.cells[1].reason = Some("it ended with exit code 1".into());
    document.cells[1].measured = None;
    let text = rendered(&document, 10, PageFormat::Markdown);
    for part in ["lost 7 messages", "it ended with exit code 1", "was measured"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    document.cells.clear();
    let empty = rendered(&document, 10, PageFormat::Html);
    assert!(empty.contains(dyno_report::page::NO_ANSWER));
}
