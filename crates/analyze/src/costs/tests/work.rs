//! Costs of index builds and of messages with known numbers.

use super::super::work::{
    delivering_s, of_build, of_builds, of_cells, of_combinations, of_messages,
};
use super::*;
use crate::messages::across::tests as messages_of;
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::tail::{CellStatus, TailDocument};

/// Builds on 1,000 documents that took 10 s, and on 4,000 documents of two servers that took 20 s, at 0.36 an
/// hour.
fn builds(used: &Consumption) -> IndexBuildDocument {
    let build = |name: &str, configuration: &str, duration_s: f64| {
        json!({
            "name": name, "configuration": configuration, "started_at": "", "duration_s": duration_s,
            "server_restarted": true, "page_cache_dropped": true, "server": {}, "consumption": used,
        })
    };
    let configuration = |topology: &str, documents: u64| {
        json!({
            "topology": topology, "members": [],
            "collection": {"namespace": "d.c", "documents": documents, "bytes": 1, "content_hash": ""},
        })
    };
    let document = json!({
        "schema_version": 1, "dyno_version": "0", "started_at": "", "status": "complete", "name": "b",
        "plan": {"price": {"per_h": 0.36, "currency": "USD"}},
        "server": {"product": "p", "address": "a", "started": true, "settings": {}},
        "collection": {"namespace": "d.c", "documents": 1_000, "bytes": 1, "content_hash": ""},
        "builds": [build("one", "standalone", 10.0), build("two", "split=2", 20.0)],
        "configurations": [configuration("standalone", 1_000), configuration("split=2", 4_000)],
        "caveats": [],
    });
    serde_json::from_value(document).unwrap()
}

/// Readings at the start of the work, and this long after its end.
fn around(duration_s: f64, late_s: f64) -> Consumption {
    let end = duration_s + late_s;
    Consumption {
        read: Some(ReadTimes {
            kernel_at_start: read(0.0, 0.0),
            kernel_at_end: read(end, end),
            servers_at_start: read(0.0, 0.0),
            servers_at_end: read(end, end),
        }),
        ..used()
    }
}

fn assert_near(figure: Option<Figure>, expected: f64) {
    let value = figure.map(|figure| figure.value);
    let is_near = |value: f64| (value / expected - 1.0).abs() < 1e-9;
    assert!(value.is_some_and(is_near), "{value:?} is not {expected}");
}

#[test]
fn index_build_costs_are_per_document_of_its_configuration() {
    let document = builds(&around(10.0, 0.0));
    let costs = of_build(&document, &document.builds[0]).unwrap();
    assert_eq!((costs.basis, costs.basis_count), (CostBasis::Document, 1_000));
    assert_near(costs.of(CostKind::ServerCpu), 5_000.0);
    assert_near(costs.of(CostKind::WrittenBytes), 117_000.0);
    assert_near(costs.of(CostKind::Flushes), 0.4);
    assert_near(costs.of(CostKind::Energy), 450.0 / 1_000.0 * 1e6);
    // 10 s of 0.36 an hour are 0.001 for 1,000 documents.
    assert_near(costs.of(CostKind::Price), 1.0);
    assert_eq!(costs.currency.as_deref(), Some("USD"));
    assert_eq!(costs.of(CostKind::ClientCpu), None);
    let all = of_builds(&document);
    assert_eq!((all[1].name.as_str(), all[1].costs.basis_count), ("two", 4_000));
    assert_near(all[1].costs.of(CostKind::Price), 0.5);
}

#[test]
fn build_without_counters_has_only_a_price_or_no_costs() {
    let mut document = builds(&used());
    document.builds[0].consumption = None;
    let costs = of_build(&document, &document.builds[0]).unwrap();
    let kinds: Vec<CostKind> = costs.values.iter().map(|cost| cost.kind).collect();
    assert_eq!(kinds, [CostKind::Price]);
    assert_eq!(costs.unknown.len(), 1);
    document.plan = json!({});
    assert_eq!(of_build(&document, &document.builds[0]), None);
    document.configurations[1].collection.documents = 0;
    assert_eq!(of_build(&document, &document.builds[1]), None);
}

/// Two consumers that received 600 and 400 messages in 2 s.
fn messages(used: Option<Consumption>) -> TailDocument {
    let cell = || messages_of::cell("wire", Some(1), 10, 100.0, false);
    let mut document = messages_of::document(vec![cell(), cell()]);
    document.plan = json!({"price": {"per_h": 0.36}});
    for cell in &mut document.cells {
        let measured = cell.measured.as_mut().unwrap();
        measured.consumption.clone_from(&used);
        let mut second = measured.consumers[0].clone();
        measured.consumers[0].sum.received = 600;
        measured.consumers[0].received_per_s = Some(300.0);
        second.sum.received = 400;
        second.received_per_s = Some(200.0);
        measured.consumers.push(second);
        measured.producers[0].resources.cpu_s = Some(0.25);
        for consumer in &mut measured.consumers {
            consumer.resources.cpu_s = Some(0.125);
        }
    }
    document
}

#[test]
fn message_costs_are_divided_by_received_messages() {
    let document = messages(Some(around(2.0, 0.0)));
    let measured = document.cells[0].measured.as_ref().unwrap();
    assert_eq!(delivering_s(measured), Some(2.0));
    let costs = of_messages(&document, measured).unwrap();
    assert_eq!((costs.basis, costs.basis_count), (CostBasis::Message, 1_000));
    assert_near(costs.of(CostKind::ServerCpu), 5_000.0);
    assert_near(costs.of(CostKind::ClientCpu), 500.0);
    assert_near(costs.of(CostKind::SentBytes), 80_000.0);
    // 2 s of 0.36 an hour for 1,000 messages.
    assert_near(costs.of(CostKind::Price), 0.2);
}

#[test]
fn use_after_the_last_message_makes_an_interval() {
    let document = messages(Some(around(2.0, 0.5)));
    let measured = document.cells[0].measured.as_ref().unwrap();
    let costs = of_messages(&document, measured).unwrap();
    let sent = costs.of(CostKind::SentBytes).unwrap();
    assert_eq!((sent.value, sent.high), (80_000.0, Some(80_000.0)));
    // In a quarter of the messages' time, none of the use need have been theirs.
    assert_eq!(sent.low, Some(60_000.0));
}

#[test]
fn client_costs_are_unknown_when_a_driver_was_not_measured() {
    let mut document = messages(Some(around(2.0, 0.0)));
    let measured = document.cells[0].measured.as_mut().unwrap();
    measured.consumers[1].resources.cpu_s = None;
    let costs = of_cells(&document)[0].costs.clone();
    assert_eq!(costs.of(CostKind::ClientCpu), None);
    let unknown: Vec<Counted> = costs.unknown.iter().map(|one| one.what).collect();
    assert_eq!(unknown, [Counted::ClientCpu]);
}

#[test]
fn repetitions_of_a_combination_are_one_with_an_interval() {
    let mut document = messages(Some(around(2.0, 0.0)));
    for (cell, repetition) in document.cells.iter_mut().zip(1..) {
        cell.repetition = Some(repetition);
    }
    let second = document.cells[1].measured.as_mut().unwrap();
    second.consumption.as_mut().unwrap().server_cpu_s = Some(7.0);
    let all = of_combinations(&document);
    let [(name, costs)] = all.as_slice() else {
        panic!("one combination: {all:?}");
    };
    assert_eq!(name, "wire");
    let cpu = costs.iter().find(|cost| cost.kind == CostKind::ServerCpu);
    let cpu = cpu.unwrap().value;
    assert_near(Some(cpu), 6_000.0);
    assert!(cpu.low.unwrap() < 5_000.0 && cpu.high.unwrap() > 7_000.0, "{cpu:?}");
    // A failed repetition is excluded.
    document.cells[1].status = CellStatus::Failed;
    assert_near(Some(of_combinations(&document)[0].1[0].value), 5_000.0);
}
