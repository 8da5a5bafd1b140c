//! Both backends perform the same operations against a real server, and the server agrees.

use crate::both::Start;
use crate::java_server::JavaServer;
use dyno_load::LoadError;
use dyno_load::backend::{Backend, driver::DriverTarget};
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::prepare;
use dyno_load::workload::{Concerns, LoadTask, Workload};
use dyno_plan::Plan;
use dyno_plan::model::{OperationWeights, Schedule};
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{PhaseKind, PhaseRecord};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const DOCUMENTS: u64 = 500;

#[derive(Clone, Copy, PartialEq)]
enum Via {
    Wire,
    Driver,
}

fn backend(via: Via, uri: &str) -> Result<Backend, LoadError> {
    let (target, credentials) = dyno_plan::uri::parse(uri).unwrap();
    Ok(match via {
        Via::Wire => Backend::Wire(Connector::new(&target, credentials).unwrap()),
        Via::Driver => Backend::Driver(Box::new(DriverTarget::new(&target, credentials.as_ref())?)),
    })
}

fn perform(
    via: Via,
    uri: &str,
    workload: Workload,
    kind: PhaseKind,
    operations: u64,
) -> PhaseRecord {
    let plan = plan("unused");
    let pair = Pair {
        clients: 4,
        threads: 2,
        ..Pair::from_plan(&plan, Arc::new(workload), backend(via, uri).unwrap())
    };
    let job = Job {
        phases: vec![PhaseSpec { kind, duration: None, operations: Some(operations) }],
        schedule: Schedule::Closed {},
        seed: 5,
        timeout: Duration::from_secs(20),
        abort_on_failure: false,
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut phase = PhaseAccumulator::new(kind, None);
    dyno_load::run(job, &mut |window| Ok(phase.add(&window.merged)?)).unwrap();
    phase.to_record()
}

fn plan(collection: &str) -> Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.data.collection = collection.into();
    plan.data.records = DOCUMENTS;
    plan.data.integrity = true;
    plan.access.max_scan_length = 250;
    plan.operations = OperationWeights {
        read: 0.3,
        update: 0.2,
        insert: 0.1,
        scan: 0.2,
        read_modify_write: 0.2,
        delete: 0.0,
        ..OperationWeights::default()
    };
    plan
}

/// Loads and runs a mix with every operation; returns how often each was performed.
fn run_mix(via: Via, uri: &str, collection: &str) -> BTreeMap<String, u64> {
    let plan = plan(collection);
    let (target, credentials) = dyno_plan::uri::parse(uri).unwrap();
    let mut control = Connector::new(&target, credentials).unwrap().control().unwrap();
    prepare::create_collection(&mut control, &plan.data).unwrap();
    // The last batch is smaller; a second load completes the first without failing.
    for keep_existing in [false, true] {
        let task = LoadTask { first: 0, count: DOCUMENTS, batch: 64, keep_existing };
        let load = Workload::load(&plan, task, &Concerns::default()).unwrap();
        let commands = load.load_operations().unwrap();
        let record = perform(via, uri, load, PhaseKind::Load, commands);
        assert_eq!(record.errors, BTreeMap::new());
        let inserted = if keep_existing { 0 } else { DOCUMENTS };
        assert_eq!(record.operations["insert_batch"].documents, inserted);
        assert_eq!(prepare::collection_state(&mut control, &plan).unwrap().documents, DOCUMENTS);
    }
    let mix = Workload::mix(&plan, &Concerns::default()).unwrap();
    let record = perform(via, uri, mix, PhaseKind::Measure, 1000);
    assert_eq!(record.errors, BTreeMap::new(), "every read value equals the written one");
    let counts: BTreeMap<String, u64> =
        record.operations.iter().map(|(name, operation)| (name.clone(), operation.count)).collect();
    let state = prepare::collection_state(&mut control, &plan).unwrap();
    assert_eq!(state.documents, DOCUMENTS + counts["insert"]);
    let scans = &record.operations["scan"];
    assert!(scans.documents > scans.count * 30, "scans return many documents: {scans:?}");
    counts
}

of_both!(wire_and_driver_perform_the_same_operations);

fn wire_and_driver_perform_the_same_operations(start: Start) {
    let Some(server) = dyno_testkit::or_skip(start()) else {
        return;
    };
    let by_wire = run_mix(Via::Wire, &server.uri(), "by_wire");
    let by_driver = run_mix(Via::Driver, &server.uri(), "by_driver");
    assert_eq!(by_wire, by_driver);
    assert_eq!(by_wire.values().sum::<u64>(), 1000 + 2 * by_wire["read_modify_write"]);
}

/// It speaks the protocol of MongoDB 4.2, which the driver no longer does.
#[test]
fn the_wire_backend_works_with_an_independent_server() {
    let Some(server) = dyno_testkit::or_skip(JavaServer::start()) else {
        return;
    };
    let counts = run_mix(Via::Wire, &server.uri(), "by_wire");
    assert_eq!(counts.values().sum::<u64>(), 1000 + 2 * counts["read_modify_write"]);
    assert!(matches!(backend(Via::Driver, &server.uri()), Err(LoadError::Driver(_))));
}

#[test]
fn a_driver_without_a_server_says_so() {
    let result = backend(Via::Driver, "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300");
    assert!(matches!(result, Err(LoadError::Driver(_))));
}
