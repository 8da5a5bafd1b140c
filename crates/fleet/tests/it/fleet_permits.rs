//! Work over Redis that exceeds an agent's options: a real agent refuses it before doing anything.
use crate::common::{RedisServer, SOON, controller_options, operations};
use dyno_engine::context::Context;
use dyno_engine::environment::Environment;
use dyno_engine::observer::Unobserved;
use dyno_engine::{Cancel, Error, Kind};
use dyno_fleet::controller::{Controller, ControllerOptions, Event};
use dyno_fleet::names::RunName;
use dyno_fleet::options::{Hidden, RedisOptions, WatchedServer, WorkerOptions};
use dyno_fleet::permits::Permits;
use dyno_fleet::protocol::{Step, Version, Work};
use dyno_fleet::shares::{Share, shares};
use dyno_fleet::worker;
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use std::net::TcpListener;
use std::path::Path;
use std::thread::{self, JoinHandle};

fn plan() -> Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.server.kind = ServerKind::Mongod;
    plan
}

fn controller(redis: &RedisServer, run: RunName) -> Controller {
    Controller::open(ControllerOptions {
        run,
        version: Version::current(),
        ..controller_options(redis.endpoint(), 1)
    })
    .unwrap()
}

fn options(redis: &RedisServer, folder: &Path) -> WorkerOptions {
    WorkerOptions {
        redis: RedisOptions {
            secret_address: Some(Hidden::new(redis.url())),
            ..RedisOptions::default()
        },
        run: "test".into(),
        index: 0,
        host: Some("host-0".into()),
        serve: false,
        watch: Vec::new(),
        folder: folder.to_owned(),
        permits: Permits::default(),
        apply: Vec::new(),
        secrets: None,
        remove_folder: false,
        join_within: SOON,
        embedded_server: None,
    }
}

/// The share of the only agent.
fn one_share(plan: &Plan) -> Vec<Share> {
    let fleet = FleetPlan { clients: vec!["c".into()], ..FleetPlan::default() };
    let with_fleet = Plan { fleet: Some(fleet), ..plan.clone() };
    shares(&with_fleet, 1, 1).unwrap()
}

/// Runs an agent in a thread.
fn agent(options: WorkerOptions) -> JoinHandle<Result<(), Error>> {
    thread::spawn(move || {
        let context = Context {
            environment: &Environment::default(),
            cancel: &Cancel::new(),
            observer: &Unobserved,
            source: None,
        };
        worker::work(&options, context)
    })
}

/// Error of an agent that gets a plan with a server address to load, or to listen on.
fn answer(redis: &RedisServer, serve: bool, plan: &Plan, server: &str) -> Error {
    let run =
        if serve { RunName::for_servers("test").unwrap() } else { RunName::new("test").unwrap() };
    let mut controller = controller(redis, run);
    let folder = tempfile::tempdir().unwrap();
    let agent = agent(WorkerOptions { serve, ..options(redis, folder.path()) });
    controller.gather(SOON).unwrap();
    let work = Work {
        plan: dyno_plan::file::to_toml(plan),
        servers: vec![server.into()],
        steps: vec![Step::Run],
        ..Work::default()
    };
    controller.give(work, operations(), &one_share(plan)).unwrap();
    let answer = agent.join().unwrap().unwrap_err();
    controller.abort("the test is over", SOON).unwrap();
    answer
}

#[test]
fn agent_refuses_loads_and_servers_beyond_its_permits() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let answer = |serve, change: fn(&mut Plan), server: &str| {
        let mut plan = plan();
        change(&mut plan);
        answer(&redis, serve, &plan, server)
    };
    let elsewhere = answer(false, |_| (), "mongodb://db.invalid/");
    let has_hint = |error: Error, option: &str| {
        assert_eq!(error.kind, Kind::BadInput, "{error}");
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains(option), "{hint}");
    };
    has_hint(elsewhere, "`--target db.invalid`");
    let set = |plan: &mut Plan| {
        let parameters = &mut plan.server.parameters;
        parameters.insert("enableTestCommands".into(), "1".into());
    };
    let parameter = answer(true, set, "127.0.0.1");
    has_hint(parameter, "`--parameter enableTestCommands=1`");
    let steer = |plan: &mut Plan| plan.server.receive_packet_steering = Some("lo".into());
    has_hint(answer(true, steer, "127.0.0.1"), "`--receive-packet-steering lo`");
}

#[test]
fn unreadable_sources_are_checked_and_reported_before_every_run() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, RunName::for_servers("test").unwrap());
    // This test process is not a `mongod` with a data folder on its command line.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = tempfile::tempdir().unwrap();
    let watched = WatchedServer { port: server.local_addr().unwrap().port(), folder: None };
    let agent = agent(WorkerOptions { watch: vec![watched], ..options(&redis, own.path()) });
    controller.gather(SOON).unwrap();
    let plan = plan();
    for _ in 0..2 {
        let work = Work {
            plan: dyno_plan::file::to_toml(&plan),
            steps: vec![Step::Serve],
            ..Work::default()
        };
        controller.give(work, operations(), &one_share(&plan)).unwrap();
        let summary = loop {
            if let Some(Event::Done { summary, .. }) = controller.next(SOON).unwrap() {
                break summary;
            }
        };
        let unread = summary["unread"].as_array().unwrap();
        assert_eq!(unread.len(), 1, "{summary}");
        assert!(unread[0].as_str().unwrap().contains("disk"), "{summary}");
    }
    controller.finish(SOON).unwrap();
    agent.join().unwrap().unwrap();
}

#[test]
fn watch_only_agent_starts_nothing_whatever_the_work_asks() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, RunName::for_servers("test").unwrap());
    // This test process is the watched server.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let watched = WatchedServer {
        port: server.local_addr().unwrap().port(),
        folder: Some(data.path().to_owned()),
    };
    let agent = agent(WorkerOptions { watch: vec![watched], ..options(&redis, own.path()) });
    controller.gather(SOON).unwrap();
    let mut plan = plan();
    let trap = own.path().join("started");
    let program = own.path().join("mongod");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", trap.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    plan.server.mongod = Some(program.display().to_string());
    for steps in [vec![Step::Serve], vec![Step::Load, Step::Run]] {
        let work = Work {
            plan: dyno_plan::file::to_toml(&plan),
            servers: vec!["mongodb://127.0.0.1:1/".into()],
            steps,
            ..Work::default()
        };
        controller.give(work, operations(), &one_share(&plan)).unwrap();
        let summary = loop {
            if let Some(Event::Done { summary, .. }) = controller.next(SOON).unwrap() {
                break summary;
            }
        };
        // It reports the source that it was started for.
        assert_eq!(summary["uris"], serde_json::json!([]), "{summary}");
        assert_eq!(summary["unread"], serde_json::json!([]), "{summary}");
    }
    controller.finish(SOON).unwrap();
    agent.join().unwrap().unwrap();
    assert!(!trap.exists());
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}
