//! Set-up and inspection of a collection, on the embedded server and a real `mongod`.

use crate::both::Start;
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use dyno_load::LoadError;
use dyno_load::connect::{Connector, Control};
use dyno_load::keys::KeyNames;
use dyno_load::prepare;
use dyno_plan::Plan;
use dyno_plan::model::KeyOrder;
use dyno_record::server::ServerMachine;
use dyno_testkit::{TestServer, or_skip, scripted};
use std::error::Error;

of_both!(
    a_collection_is_created_filled_seen_and_dropped,
    a_number_that_is_not_the_planned_one_is_exact,
    a_document_that_is_missing_in_a_full_collection_is_named,
    a_server_says_what_it_is,
    a_server_describes_its_machine_or_gives_a_reason,
    a_server_that_has_gone_is_an_error_with_the_intent,
);

fn control(server: &TestServer) -> Control {
    let (target, credentials) = dyno_plan::uri::parse(&server.uri()).unwrap();
    Connector::new(&target, credentials).unwrap().control().unwrap()
}

fn plan(records: u64) -> Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.data.records = records;
    plan
}

/// Documents of the plan, as the load phase writes them except for their values.
fn documents(plan: &Plan) -> Vec<Document> {
    let names = KeyNames::new("user", KeyOrder::Hashed, 1);
    let documents = (0..plan.data.records).map(|number| {
        let mut key = Vec::new();
        names.write(number, &mut key);
        let mut document = doc! { "_id": String::from_utf8(key).unwrap() };
        for field in 0..plan.data.field_count {
            let value = Binary { subtype: BinarySubtype::Generic, bytes: vec![b'x'; 100] };
            document.insert(format!("field{field}"), value);
        }
        document
    });
    documents.collect()
}

fn insert(control: &mut Control, plan: &Plan) {
    let command = doc! { "insert": &plan.data.collection, "documents": documents(plan) };
    control.run(&plan.data.database, command).unwrap();
}

fn a_collection_is_created_filled_seen_and_dropped(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let mut control = control(&server);
    let plan = plan(50);
    let absent = prepare::collection_state(&mut control, &plan).unwrap();
    assert_eq!((absent.exists, absent.documents, absent.sample.ends.len()), (false, 0, 0));
    prepare::create_collection(&mut control, &plan.data).unwrap();
    prepare::create_collection(&mut control, &plan.data).expect("creating it again is allowed");
    let empty = prepare::collection_state(&mut control, &plan).unwrap();
    assert_eq!((empty.exists, empty.documents), (true, 0));
    insert(&mut control, &plan);
    let full = prepare::collection_state(&mut control, &plan).unwrap();
    assert_eq!((full.documents, full.sample.ends.len()), (50, 2));
    assert_ne!(full.sample.ends[0], full.sample.ends[1]);
    assert!(full.sample.expected.iter().all(|(_, document)| document.is_some()));
    assert!(full.data_bytes.is_some_and(|bytes| bytes > 50_000), "{:?}", full.data_bytes);
    assert_eq!(prepare::check_shape(&plan, &full.sample, true), Vec::<String>::new());
    prepare::drop_collection(&mut control, &plan.data).unwrap();
    prepare::drop_collection(&mut control, &plan.data).expect("dropping it again is allowed");
    assert_eq!(prepare::collection_size(&mut control, &plan.data).unwrap().documents, 0);
}

fn a_number_that_is_not_the_planned_one_is_exact(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let mut control = control(&server);
    insert(&mut control, &plan(30));
    let other = plan(31);
    assert_eq!(prepare::collection_size(&mut control, &other.data).unwrap().documents, 30);
}

fn a_document_that_is_missing_in_a_full_collection_is_named(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let mut control = control(&server);
    let plan = plan(5);
    insert(&mut control, &plan);
    let first =
        prepare::collection_state(&mut control, &plan).unwrap().sample.expected[0].0.clone();
    let delete =
        doc! { "delete": "usertable", "deletes": [{ "q": { "_id": &first }, "limit": 1 }] };
    control.run("ycsb", delete).unwrap();
    let sample = prepare::collection_state(&mut control, &plan).unwrap().sample;
    let differences = prepare::check_shape(&plan, &sample, true);
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert!(differences[0].contains(&format!("`{first}`")), "{differences:?}");
}

fn a_server_says_what_it_is(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let facts = prepare::server_facts(&mut control(&server)).unwrap();
    assert!(facts.version.is_some_and(|version| version.split('.').count() >= 3));
    assert!(facts.storage_engine.is_some());
}

fn a_server_describes_its_machine_or_gives_a_reason(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let machine = prepare::server_machine(&mut control(&server)).unwrap();
    if machine.reason.is_some() {
        let unknown = ServerMachine { reason: machine.reason.clone(), ..ServerMachine::default() };
        assert_eq!(machine, unknown);
        return;
    }
    // The server runs on this machine.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let own = format!("Linux {}", release.trim());
    // The embedded server does not report it.
    assert!(machine.kernel.as_ref().is_none_or(|kernel| *kernel == own), "{machine:?}");
    assert!(machine.cpus.is_some_and(|cpus| cpus > 0), "{machine:?}");
    assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{machine:?}");
    assert!(machine.architecture.is_some() && machine.os.is_some(), "{machine:?}");
}

#[test]
fn a_server_that_refuses_host_info_has_no_machine_facts() {
    let port = scripted::serve(|command| match command.keys().next().unwrap().as_str() {
        "hostInfo" => doc! { "ok": 0, "code": 13, "errmsg": "not authorized on admin" },
        _ => doc! { "isWritablePrimary": true, "maxWireVersion": 21, "ok": 1 },
    });
    let (target, _) = dyno_plan::uri::parse(&format!("mongodb://127.0.0.1:{port}/")).unwrap();
    let mut control = Connector::new(&target, None).unwrap().control().unwrap();
    let machine = prepare::server_machine(&mut control).unwrap();
    let reason = machine.reason.clone().expect("the reason is set");
    for part in ["`hostInfo`", "not authorized on admin", "13", "Unauthorized"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(machine, ServerMachine { reason: Some(reason), ..ServerMachine::default() });
}

#[test]
fn server_that_stepped_down_needs_a_new_connection() {
    let needs = |code: i32| {
        let port = scripted::serve(move |command| match command.get("count") {
            Some(_) => doc! { "ok": 0, "code": code, "errmsg": "no" },
            None => doc! { "isWritablePrimary": true, "maxWireVersion": 21, "ok": 1 },
        });
        let (target, _) = dyno_plan::uri::parse(&format!("mongodb://127.0.0.1:{port}/")).unwrap();
        let mut control = Connector::new(&target, None).unwrap().control().unwrap();
        let error = prepare::collection_size(&mut control, &plan(5).data).unwrap_err();
        prepare::needs_new_connection(&error)
    };
    for code in [91, 189, 10_107, 11_600, 11_602, 13_435, 13_436] {
        assert!(needs(code), "{code}");
    }
    assert!(!needs(13), "not authorized");
}

fn a_server_that_has_gone_is_an_error_with_the_intent(start: Start) {
    let Some(server) = or_skip(start()) else {
        return;
    };
    let mut control = control(&server);
    drop(server);
    let error = prepare::collection_size(&mut control, &plan(5).data).unwrap_err();
    assert!(
        matches!(&error, LoadError::Setup { intent, .. }
            if intent.contains("count") && intent.contains("`ycsb.usertable`")),
        "{error:?}"
    );
    assert!(error.source().is_some());
}
