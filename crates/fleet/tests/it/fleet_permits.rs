//! Work that comes over Redis and asks for more than an agent was started for: a real agent refuses it before it does anything.
use crate::common::{RedisServer, SOON, controller_options};
use dyno_engine::context::Context;
use dyno_engine::environment::Environment;
use dyno_engine::observer::Unobserved;
use dyno_engine::{Cancel, Error};
use dyno_fleet::controller::{Controller, ControllerOptions};
use dyno_fleet::names::RunName;
use dyno_fleet::options::{Hidden, RedisOptions, WorkerOptions};
use dyno_fleet::permits::Permits;
use dyno_fleet::protocol::{Stage, Version, Work};
use dyno_fleet::shares::shares;
use dyno_fleet::worker;
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use std::thread;

fn plan() -> Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.server.kind = ServerKind::Mongod;
    plan
}

/// How an agent ends that gets a plan with the address of a server: for its clients, or for itself to listen on.
fn answer(redis: &RedisServer, serve: bool, plan: &Plan, server: &str) -> Error {
    let run = if serve {
        RunName::for_servers("test").unwrap()
    } else {
        RunName::new("test").unwrap()
    };
    let mut controller = Controller::open(ControllerOptions {
        run,
        version: Version::current(),
        needed_disk_bytes: 0,
        ..controller_options(redis.endpoint(), 1)
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = WorkerOptions {
        redis: RedisOptions {
            secret_address: Some(Hidden::new(redis.url())),
            ..RedisOptions::default()
        },
        run: "test".into(),
        index: 0,
        host: Some("host-0".into()),
        serve,
        watch: Vec::new(),
        folder: folder.path().to_owned(),
        permits: Permits::default(),
        remove_folder: false,
        join_within: SOON,
        embedded_server: None,
    };
    let agent = thread::spawn(move || {
        let context = Context {
            environment: &Environment::default(),
            cancel: &Cancel::new(),
            observer: &Unobserved,
            source: None,
        };
        worker::work(&options, context)
    });
    controller.gather(SOON).unwrap();
    let fleet = FleetPlan {
        clients: vec!["c".into()],
        ..FleetPlan::default()
    };
    let with_fleet = Plan {
        fleet: Some(fleet),
        ..plan.clone()
    };
    let work = Work {
        plan: dyno_plan::file::to_toml(plan),
        servers: vec![server.into()],
        stages: vec![Stage::Run],
        ..Work::default()
    };
    let shares = shares(&with_fleet, 1, 1).unwrap();
    controller.give(work, &shares).unwrap();
    let answer = agent.join().unwrap().unwrap_err();
    controller.abort("the test is over", SOON).unwrap();
    answer
}

#[test]
fn an_agent_loads_and_starts_nothing_that_it_was_not_started_for() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let answer = |serve, change: fn(&mut Plan), server: &str| {
        let mut plan = plan();
        change(&mut plan);
        answer(&redis, serve, &plan, server)
    };
    let elsewhere = answer(false, |_| (), "mongodb://db.invalid/");
    assert_eq!(
        elsewhere.to_string(),
        "the work names the server `db.invalid`, which this agent was not started for"
    );
    let hint = elsewhere.hint.unwrap_or_default();
    assert!(hint.contains("`--target db.invalid`"), "{hint}");
    let set = |plan: &mut Plan| {
        let parameters = &mut plan.server.parameters;
        parameters.insert("enableTestCommands".into(), "1".into());
    };
    let parameter = answer(true, set, "127.0.0.1");
    assert_eq!(
        parameter.to_string(),
        "the work names the parameter `enableTestCommands=1`, which this agent was not started for"
    );
    let steer = |plan: &mut Plan| plan.server.receive_packet_steering = Some("lo".into());
    let kernel = answer(true, steer, "127.0.0.1").to_string();
    assert!(kernel.contains("applies to one machine"), "{kernel}");
}
