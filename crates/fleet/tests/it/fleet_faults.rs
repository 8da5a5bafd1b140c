//! Failures of agents, controller and Redis: the others name the lost one and its last action, and end within their limits.
use crate::common::{
    LEASE, RedisServer, SOON, agent_options, controller, controller_options, join, operations,
    wait_for, window,
};
use dyno_fleet::FleetError;
use dyno_fleet::agent::Agent;
use dyno_fleet::controller::{Controller, ControllerOptions, Event};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::protocol::{Step, Work};
use dyno_fleet::shares::shares;
use dyno_plan::fleet::FleetPlan;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn shares_of(agents: u32) -> Vec<dyno_fleet::shares::Share> {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.fleet = Some(FleetPlan::default());
    shares(&plan, agents, 1).unwrap()
}

/// Runs one of the ignored tests below in a process that can be killed.
fn child(redis: &RedisServer, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", role])
        .env("DYNO_TEST_REDIS", redis.url())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn endpoint_of_child() -> Endpoint {
    Endpoint::new(&std::env::var("DYNO_TEST_REDIS").unwrap(), None).unwrap()
}

#[test]
#[ignore = "started by other tests, and killed by them"]
fn child_controller() {
    let mut controller = Controller::open(controller_options(endpoint_of_child(), 2)).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares_of(2)).unwrap();
    thread::sleep(SOON * 2);
}

#[test]
#[ignore = "started by other tests, and killed by them"]
fn child_agent() {
    let mut agent = Agent::join(agent_options(endpoint_of_child(), 1)).unwrap();
    let (work, _) = agent.next_work(SOON).unwrap().unwrap();
    let start = agent.wait_start(work.number, Step::Run, SOON).unwrap().unwrap();
    agent.begun(&start, start.local_ns, 0).unwrap();
    for index in 0..3 {
        agent.window(work.number, 0, &window(1, index, 3)).unwrap();
    }
    thread::sleep(SOON * 2);
}

#[test]
fn killed_agent_is_reported_lost_by_name() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut other = child(&redis, "fleet_faults::child_agent");
    let mut controller = controller(&redis, 2);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares_of(2)).unwrap();
    let (work, _) = agent.next_work(SOON).unwrap().unwrap();
    let waiting = thread::spawn(move || {
        let start = agent.wait_start(work.number, Step::Run, SOON).unwrap();
        (agent, start)
    });
    controller.barrier(Step::Run, SOON).unwrap();
    controller.start(Step::Run, Duration::from_millis(200)).unwrap();
    let (mut agent, start) = waiting.join().unwrap();
    let start = start.expect("the stage begins");
    agent.begun(&start, start.local_ns, 0).unwrap();
    let mut windows = 0;
    while windows < 3 {
        let event = controller.next(SOON).unwrap().expect("windows come");
        windows += u32::from(matches!(event, Event::Window { agent: 1, .. }));
    }
    other.kill().unwrap();
    other.wait().unwrap();
    let killed = Instant::now();
    let mut index = 0;
    let error = loop {
        // The other agent continues.
        agent.window(1, 0, &window(0, index, 1)).unwrap();
        index += 1;
        match controller.next(Duration::from_millis(100)).unwrap() {
            Some(Event::Gone { agent: 1, error }) => break error,
            Some(Event::Gone { .. }) => panic!("the other agent is alive"),
            _ => assert!(killed.elapsed() < SOON),
        }
    };
    let FleetError::Lost { index, host, last, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((*index, host.as_str()), (1, "host-1"));
    for part in ["window 2", "measure"] {
        assert!(last.contains(part), "{last}");
    }
    agent.check().unwrap();
    assert_eq!(controller.lagging(Duration::ZERO).len(), 1, "a lost agent is not lagging");
}

#[test]
fn agents_end_when_the_controller_is_killed() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut other = child(&redis, "fleet_faults::child_controller");
    let agents: Vec<Agent> = (0..2).map(|index| join(&redis, index).unwrap()).collect();
    for agent in &agents {
        agent.next_work(SOON).unwrap().expect("some work");
    }
    other.kill().unwrap();
    other.wait().unwrap();
    let killed = Instant::now();
    for agent in &agents {
        wait_for("the stop", || agent.check().is_err());
        assert!(
            killed.elapsed() <= agent.gone_within() + Duration::from_secs(1),
            "{:?}",
            killed.elapsed()
        );
        let error = agent.check().unwrap_err();
        assert!(
            matches!(&error, FleetError::ControllerGone { last, .. } if last == "joined"),
            "{error}"
        );
    }
}

#[test]
fn agents_and_controller_end_when_redis_has_gone() {
    let Some(mut redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    redis.kill();
    let killed = Instant::now();
    wait_for("the stop", || agent.check().is_err());
    assert!(
        killed.elapsed() <= agent.gone_within() + Duration::from_secs(1),
        "{:?}",
        killed.elapsed()
    );
    assert!(matches!(agent.check(), Err(FleetError::RedisGone { .. })));
    let error = loop {
        match controller.next(SOON) {
            Ok(_) => assert!(killed.elapsed() < SOON),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, FleetError::RedisGone { .. }), "{error}");
    assert!(!error.to_string().contains("password"), "{error}");
    // Nothing receives the message, and leaving does not wait for long.
    let leaving = Instant::now();
    agent.leave();
    assert!(leaving.elapsed() < LEASE + Duration::from_secs(5));
}

/// Agents that did not join in time.
fn late(error: FleetError, expected: Duration) -> Vec<String> {
    match error {
        FleetError::Late { within, waiting, .. } => {
            assert_eq!(within, expected);
            waiting
        }
        other => panic!("{other}"),
    }
}

#[test]
fn agent_that_never_came_is_named() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 3);
    let _agent = join(&redis, 1).unwrap();
    let within = Duration::from_secs(1);
    let error = controller.gather(within).unwrap_err();
    let waiting = late(error, within);
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    for (one, host) in waiting.iter().zip(["`host-0`", "`host-2`"]) {
        assert!(one.contains(host) && !one.contains("joined"), "{one}");
    }
}

#[test]
fn agent_late_at_the_barrier_is_named_with_its_last_step() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares_of(1)).unwrap();
    let step = "connecting to db";
    agent.doing(step).unwrap();
    let within = Duration::from_secs(1);
    let error = controller.barrier(Step::Load, within).unwrap_err();
    let waiting = late(error, within);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    for part in ["agent 0", "`host-0`", step] {
        assert!(waiting[0].contains(part), "{waiting:?}");
    }
}

#[test]
fn failing_agent_ends_the_barrier_at_once() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 2);
    let agents: Vec<Agent> = (0..2).map(|index| join(&redis, index).unwrap()).collect();
    controller.gather(SOON).unwrap();
    let mut agents = agents.into_iter();
    let _stays = agents.next();
    agents.next().unwrap().fail("`/data` is full");
    let error = controller.barrier(Step::Load, SOON).unwrap_err();
    let FleetError::Failed { index, host, reason } = &error else {
        panic!("{error}");
    };
    let found = (*index, host.as_str(), reason.as_str());
    assert_eq!(found, (1, "host-1", "`/data` is full"));
}

#[test]
fn abort_reaches_all_agents_and_leaves_nothing() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 2);
    let agents: Vec<Agent> = (0..2).map(|index| join(&redis, index).unwrap()).collect();
    controller.gather(SOON).unwrap();
    let leaving: Vec<_> = agents
        .into_iter()
        .map(|agent| {
            thread::spawn(move || {
                wait_for("the stop", || agent.check().is_err());
                let error = agent.check().unwrap_err();
                agent.leave();
                error
            })
        })
        .collect();
    assert_eq!(controller.abort("interrupted", SOON).unwrap(), Vec::<String>::new());
    for agent in leaving {
        let error = agent.join().unwrap();
        assert!(
            matches!(&error, FleetError::Aborted { reason } if reason == "interrupted"),
            "{error}"
        );
    }
    assert_eq!(redis.keys(), Vec::<String>::new());
}

#[test]
fn dropped_controller_ends_its_agents() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    drop(controller);
    wait_for("the stop", || agent.check().is_err());
    assert!(matches!(agent.check(), Err(FleetError::Aborted { .. })));
}

#[test]
fn cancelled_work_can_be_followed_by_another() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares_of(1)).unwrap();
    let (work, _) = agent.next_work(SOON).unwrap().unwrap();
    let waiting = thread::spawn(move || {
        let start = agent.wait_start(work.number, Step::Load, SOON).unwrap();
        (agent, start)
    });
    controller.barrier(Step::Load, SOON).unwrap();
    controller.cancel("the plan is wrong").unwrap();
    let (agent, start) = waiting.join().unwrap();
    assert_eq!(start, None);
    assert!(agent.is_cancelled(1) && !agent.is_cancelled(2));
    controller.give(Work::default(), operations(), &shares_of(1)).unwrap();
    let (work, _) = agent.next_work(SOON).unwrap().unwrap();
    assert_eq!(work.number, 2);
}

#[test]
fn controller_renews_a_lease_that_redis_lost() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let options = ControllerOptions { lease: LEASE * 3, ..controller_options(redis.endpoint(), 1) };
    let mut controller = Controller::open(options).unwrap();
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    let key = controller_options(redis.endpoint(), 1).run.controller();
    let mut connection = redis.endpoint().connect(Duration::ZERO).unwrap();
    for _ in 0..2 {
        redis::cmd("DEL").arg(&key).exec(&mut connection).unwrap();
        wait_for("the key", || redis.keys().contains(&key));
        // Long enough for the agent to notice the lost key.
        let until = Instant::now() + LEASE;
        while Instant::now() < until {
            controller.next(Duration::from_millis(50)).unwrap();
        }
        agent.check().unwrap();
    }
    redis::cmd("SET").arg(&key).arg("another").exec(&mut connection).unwrap();
    let mut lost = Ok(None);
    wait_for("the loss", || {
        lost = controller.next(Duration::from_millis(50));
        lost.is_err()
    });
    assert!(matches!(lost, Err(FleetError::Aborted { .. })), "{lost:?}");
}
