use super::*;
use crate::testdata;
use dyno_record::model::{Effect, Operation, PhaseKind, RunDocument};
use serde_json::json;

#[test]
fn headline_shows_the_measure_phase_and_its_main_operation() {
    let page = page(&testdata::closed_run(), None, None);
    assert!(page.headline_title.contains("phase measure"));
    let labels: Vec<_> = page.headline.iter().map(|f| f.label.as_str()).collect();
    let expected = [
        "achieved rate",
        "p50 response time",
        "p99 response time",
        "p99.9 response time",
        "errors",
    ];
    assert_eq!(labels, expected);
    assert_eq!(page.headline[1].note.as_deref(), Some("read"));
    assert_eq!(page.headline[0].note.as_deref(), Some("closed loop"));
}

#[test]
fn operations_of_any_name_have_their_rows_and_notes() {
    let parts = ["orders of a customer", "pay"].map(str::to_owned).to_vec();
    let document = RunDocument {
        operations: vec![
            Operation::new(&parts[0], Effect::Read),
            Operation::new(&parts[1], Effect::Update),
            Operation { parts, ..Operation::new("checkout", Effect::Update) },
        ]
        .into(),
        ..testdata::closed_document()
    };
    let window = testdata::window(PhaseKind::Measure, 0, 0)
        .operation("orders of a customer", &[(100, 30)])
        .operation("pay", &[(200, 20)])
        .operation("checkout", &[(300, 10)]);
    let page = page(&testdata::run(document, &[window]), None, None);
    let section = &page.sections.iter().find(|one| one.title.starts_with("Phase measure")).unwrap();
    let names = section.tables[0].rows.iter().map(|row| row[0].text.as_str());
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["orders of a customer", "pay", "checkout"]);
    let note = "A checkout is also counted as one orders of a customer and one pay; \
                it is one operation of the rate.";
    assert_eq!(section.notes, [note]);
}

#[test]
fn open_loop_shows_its_offered_rate_and_arrivals() {
    let page = page(&testdata::open_run(), None, None);
    let figures = &page.headline;
    let note = figures[0].note.clone().unwrap();
    assert!(note.ends_with("of 1,000/s offered"), "{note}");
    let measure = page.sections.iter().find(|section| section.title.starts_with("Phase measure"));
    let arrivals = measure.unwrap().facts.iter().find(|fact| fact.label == "Arrivals").unwrap();
    assert!(!arrivals.marks.is_empty());
    // The share of late starts has the basis of the caveat.
    assert!(
        arrivals.value.ends_with("of those started) more than 1 ms late"),
        "{}",
        arrivals.value
    );
    assert!(figures[4].alarming);
}

#[test]
fn a_run_leads_to_the_dashboard_at_its_time() {
    let mut run = testdata::open_run();
    let link = |run: &Run| page(run, None, None).dashboard;
    assert_eq!(link(&run), None);
    run.document.started_at = "1970-01-01T00:00:10Z".into();
    let phase = run.document.phases.last_mut().unwrap();
    (phase.start_s, phase.duration_s) = (1.5, 30.25);
    run.document.plan["observe"] = json!({"grafana": {"url": "https://monitor/grafana/"}});
    let expected = "https://monitor/grafana/d/mongodyno-run?from=10000&to=41750";
    assert_eq!(link(&run).as_deref(), Some(expected));
    let text = render(&run, None, Format::Markdown, &RenderOptions::default()).unwrap();
    assert!(text.contains(&format!("[in Grafana](<{expected}>)")), "{text}");
    run.document.plan["observe"] = json!({"grafana": {"url": "javascript:alert(1)"}});
    assert_eq!(link(&run), None);
}

#[test]
fn every_caveat_marks_something_that_the_page_shows() {
    let page = page(&testdata::open_run(), None, None);
    assert!(page.caveats.len() >= 4);
    let text = serde_json::to_string(&page).unwrap();
    let mut marks: Vec<usize> = Vec::new();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    collect_marks(&value, &mut marks);
    for caveat in &page.caveats {
        assert!(marks.contains(&caveat.number), "{caveat:?}");
    }
}

fn collect_marks(value: &serde_json::Value, marks: &mut Vec<usize>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if name.ends_with("marks") && value.is_array() {
                    let list: Vec<usize> = serde_json::from_value(value.clone()).unwrap();
                    marks.extend(list);
                }
                collect_marks(value, marks);
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| collect_marks(item, marks));
        }
        _ => {}
    }
}

#[test]
fn a_run_without_phases_has_no_headline() {
    let page = page(&testdata::run(testdata::closed_document(), &[]), None, None);
    assert!(page.headline.is_empty() && page.no_answer == NO_PHASE);
    assert!(!page.sections.iter().any(|section| section.title.starts_with("Phase ")));
}

#[test]
fn an_operation_that_never_succeeded_has_no_latencies() {
    let intervals = [testdata::window(PhaseKind::Measure, 0, 0).failures("read", "timeout", 3)];
    let run = testdata::run(testdata::closed_document(), &intervals);
    let page = page(&run, None, None);
    let measure = page.sections.iter().find(|section| section.title.starts_with("Phase measure"));
    let table = &measure.unwrap().tables[0];
    let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(titles, ["operation", "count", "rate", "errors", "time"]);
    assert!(table.rows[0][4].text.starts_with("no operation"));
    assert_eq!(table.rows[1][3].text, "100 %");
    assert_eq!(page.headline[1].value.to_string(), dyno_record::quantity::NO_VALUE);
    assert_eq!(page.headline[4].note.as_deref(), Some("100 %, all timeout"));
}
