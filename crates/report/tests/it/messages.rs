//! Reports of messages through a database: of a document that a run wrote, and of one with very many messages, whose page is
//! written to `target/tmp/report/`, where it can be looked at.

use dyno_record::tail::BlindCursor;
use dyno_record::tail::CellStatus;
use dyno_record::tail::TailDocument;
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::tail::{CellMessages, TailView, render};
use std::path::Path;

fn document() -> TailDocument {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden/tail.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Latencies that climb with the number, or stay.
fn messages(document: &TailDocument, count: usize) -> Vec<CellMessages> {
    let cells = document.cells.iter().enumerate();
    let made = cells.map(|(place, cell)| {
        let latencies = (0..count).map(|n| {
            let climb = if place % 2 == 1 { n as i64 * 20_000 } else { 0 };
            let noise = (n as i64 * 7_919) % 100_000;
            (n % 1000 != 999).then_some(200_000 + noise + climb)
        });
        CellMessages {
            cell: cell.name.clone(),
            latencies_ns: vec![latencies.collect()],
        }
    });
    made.collect()
}

fn rendered(document: &TailDocument, count: usize, format: PageFormat) -> String {
    let messages = messages(document, count);
    let view = TailView {
        document,
        messages: &messages,
    };
    render(&view, format, &RenderOptions::default()).unwrap()
}

#[test]
fn every_format_has_the_cause_and_the_sums() {
    let document = document();
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = rendered(&document, 300, format);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "missing bound on inserts in flight",
            "What came of the messages",
            "2,400",
        ] {
            assert!(flat.contains(part), "{format:?}: {part}");
        }
    }
    let json: serde_json::Value =
        serde_json::from_str(&rendered(&document, 300, PageFormat::Json)).unwrap();
    assert!(json["findings"].as_array().unwrap().len() > 2);
    assert_eq!(json["tail"]["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn every_format_names_a_blind_cursor_and_for_how_long_it_was() {
    let mut document = document();
    let consumer = &mut document.cells[0].measured.as_mut().unwrap().consumers[0];
    consumer.blind = vec![BlindCursor {
        blind_s: 1.0,
        found: 201,
    }];
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = rendered(&document, 300, format);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "the cursor was blind: opened again after 1.00 s",
            "queries found 201 messages",
        ] {
            assert!(flat.contains(part), "{format:?}: {part}");
        }
    }
    let json = rendered(&document, 300, PageFormat::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let consumer = &json["tail"]["cells"][0]["measured"]["consumers"][0];
    assert_eq!(consumer["blind"][0]["blind_s"], 1.0);
    let table = rendered(&document, 300, PageFormat::Markdown);
    let row = table.lines().find(|line| line.contains("| 1.00 s |"));
    assert!(row.is_some_and(|row| row.contains("complete")), "{table}");
}

#[test]
fn a_page_with_a_hundred_thousand_messages_of_each_stays_below_four_megabytes() {
    let page = rendered(&document(), 100_000, PageFormat::Html);
    assert_eq!(page.matches("<canvas").count(), 4);
    assert!(page.len() < 4_000_000, "{}", page.len());
    // Twice as many are thinned, and that is said.
    let more = rendered(&document(), 200_000, PageFormat::Html);
    assert!(
        more.len() < page.len() * 11 / 10,
        "{} {}",
        more.len(),
        page.len()
    );
    assert!(more.contains("of each group of neighbours the first one and the slowest one"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("messages.html"), page).unwrap();
}

#[test]
fn what_failed_is_an_alarm_and_a_cell_without_measurement_has_a_row() {
    let mut document = document();
    let cell = &mut document.cells[0];
    cell.status = CellStatus::Failed;
    cell.reason = Some("consumer 0 (wire) lost 7 messages".into());
    cell.measured.as_mut().unwrap().consumers[0].sum.lost = 7;
    document.cells[1].status = CellStatus::Failed;
    document.cells[1].reason = Some("it ended with exit code 1".into());
    document.cells[1].measured = None;
    let text = rendered(&document, 10, PageFormat::Markdown);
    for part in [
        "lost 7 messages",
        "it ended with exit code 1",
        "none was measured",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    document.cells.clear();
    let empty = rendered(&document, 10, PageFormat::Html);
    assert!(empty.contains("There is no answer yet."));
}
