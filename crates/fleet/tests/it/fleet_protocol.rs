//! Agents and a controller meet at a real Redis, perform a whole run, and leave nothing behind.
use crate::common::{
    LEASE, RedisServer, SOON, agent_options, controller, controller_options, join, operations,
    window,
};
use dyno_fleet::FleetError;
use dyno_fleet::agent::Agent;
use dyno_fleet::clock::monotonic_ns;
use dyno_fleet::controller::{Controller, Event};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::merge::{MergeOptions, Merger};
use dyno_fleet::protocol::{Step, Version, Work};
use dyno_fleet::shares::shares;
use dyno_plan::fleet::FleetPlan;
use dyno_record::interval::latency_histogram;
use dyno_record::metrics::MetricId;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

const WINDOWS: u64 = 5;

fn plan() -> dyno_plan::Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.fleet = Some(FleetPlan {
        clients: vec!["c".into()],
        servers: vec!["s".into()],
        ..FleetPlan::default()
    });
    plan
}

/// Acts as `dyno agent` with an engine that measures nothing. Returns the number of operations.
fn work(mut agent: Agent, index: u32) -> Result<u64, FleetError> {
    let mut did = 0;
    while let Some((work, share)) = agent.next_work(SOON)? {
        assert_eq!(
            (share.index, work.servers.as_slice()),
            (index, &["mongodb://db".to_owned()][..])
        );
        for step in [Step::Load, Step::Run] {
            let Some(start) = agent.wait_start(work.number, step, SOON)? else {
                break;
            };
            // A real engine reports when its threads started; this one is always in time. Later round trips may show that the
            // instant was early by its uncertainty, so add it to avoid an early beginning.
            let begins_ns = start.local_ns + start.uncertainty_ns as i64;
            agent.check()?;
            let left_ns = begins_ns - monotonic_ns();
            thread::sleep(Duration::from_nanos(left_ns.max(0) as u64));
            agent.begun(&start, begins_ns, 0)?;
            if step == Step::Run {
                for number in 0..WINDOWS {
                    let count = 10 + number + u64::from(index);
                    agent.window(work.number, 0, &window(index, number, count))?;
                    did += count;
                }
                agent.server_done(work.number, 0)?;
            }
            let summary = serde_json::json!({ "succeeded": did });
            agent.done(work.number, step, summary)?;
        }
    }
    agent.leave();
    Ok(did)
}

/// Acts as `dyno fleet run`: performs one stage and merges its windows.
fn step(controller: &mut Controller, step: Step, merger: &mut Merger, agents: usize) -> u64 {
    controller.barrier(step, SOON).unwrap();
    controller.start(step, Duration::from_millis(300)).unwrap();
    let (mut done, mut reported, mut without_server) = (0, 0, 0);
    while done < agents {
        match controller.next(SOON).unwrap().expect("agents continue") {
            Event::Begun { agent, began } => {
                assert!(began.late_ns + began.uncertainty_ns as i64 >= 0, "{began:?}");
                merger.begun(agent, began);
            }
            Event::Window { agent, server, window } => merger.add(agent, server, window).unwrap(),
            Event::ServerDone { agent, server } => {
                merger.server_done(agent, server);
                without_server += 1;
            }
            Event::Done { summary, realtime, .. } => {
                // Redis is on this machine.
                assert!(realtime.offset_ns.abs() < 50_000_000, "{realtime:?}");
                reported += summary["succeeded"].as_u64().unwrap();
                done += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    let expected = if step == Step::Run { agents } else { 0 };
    assert_eq!(without_server, expected);
    reported
}

fn merger(agents: u32) -> Merger {
    Merger::new(MergeOptions {
        interval_ns: 1_000_000_000,
        lag: 10,
        servers: vec![vec![0]; agents as usize],
    })
}

#[test]
fn two_fleet_runs_join_measure_and_leave_nothing_behind() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let endpoint = redis.endpoint();
    // Agents that come first wait for the controller.
    let agents: Vec<_> = (0..3)
        .map(|index| {
            let options = agent_options(endpoint.clone(), index);
            thread::spawn(move || work(Agent::join(options)?, index))
        })
        .collect();
    let mut controller = controller(&redis, 3);
    let registrations = controller.gather(SOON).unwrap();
    assert_eq!(registrations.len(), 3);
    let offset = registrations[0].realtime;
    assert!(offset.offset_ns.abs() < 50_000_000, "one clock: {offset:?}");
    let plan = plan();
    let shares = shares(&plan, 3, 1).unwrap();
    let text = dyno_plan::file::to_toml(&plan);
    let mut all = 0;
    for number in 1..=2 {
        let servers = ["mongodb://db".to_owned()];
        let work = Work {
            plan: text.clone(),
            servers: servers.to_vec(),
            steps: vec![Step::Load, Step::Run],
            ..Work::default()
        };
        assert_eq!(controller.give(work, operations(), &shares).unwrap(), number);
        let mut merger = merger(3);
        step(&mut controller, Step::Load, &mut merger, 3);
        step(&mut controller, Step::Run, &mut merger, 3);
        let (merged, outcome) = merger.finish().unwrap();
        let mut expected = latency_histogram();
        for agent in 0..3 {
            for index in 0..WINDOWS {
                let own = window(agent, index, 10 + index + u64::from(agent));
                expected.add(&own.operations[0].response).unwrap();
            }
        }
        let mut found = latency_histogram();
        for one in &merged {
            found.add(&one.window.operations[0].response).unwrap();
        }
        assert!(found == expected, "{} of {}", found.len(), expected.len());
        assert_eq!(outcome.common.intervals, WINDOWS);
        assert_eq!((outcome.missing_windows, outcome.late_windows), (0, 0));
        for agent in &outcome.agents {
            let (late, early) = (agent.late_intervals, agent.ended_early);
            assert_eq!((agent.lost.as_deref(), late, early <= 1), (None, 0, true));
        }
        all += expected.len();
    }
    assert_eq!(controller.finish(SOON).unwrap(), Vec::<String>::new());
    let did: u64 = agents.into_iter().map(|agent| agent.join().unwrap().unwrap()).sum();
    assert_eq!(did, all);
    assert_eq!(redis.keys(), Vec::<String>::new());
}

#[test]
fn host_readings_arrive_complete_and_leave_nothing_behind() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 2);
    let agents = [0, 1].map(|index| join(&redis, index).unwrap());
    controller.gather(SOON).unwrap();
    let mut senders = [agents[0].readings(), agents[1].readings()];
    let value = |name: &str, value: f64| (MetricId::of("a", name), value);
    let account = |number: u64| serde_json::json!({ "number": number });
    let mut sent = Vec::new();
    // A metric that appears later, and one that is missing for a time.
    for number in 0..300_u64 {
        let (index, shown) = ((number % 2) as usize, number as f64);
        let values = match number {
            0..10 => vec![value("x", shown)],
            10..20 => vec![value("y", -shown), value("x", shown)],
            20..30 => vec![value("y", -shown)],
            _ => vec![value("x", shown), value("y", -shown), value("z", 0.5)],
        };
        let at_ns = monotonic_ns();
        senders[index].send(at_ns, &values, account(number)).unwrap();
        sent.push((index as u32, at_ns, values));
    }
    let found = controller.readings().unwrap();
    assert_eq!(found.len(), sent.len());
    for (number, (reading, (agent, at_ns, values))) in (0..).zip(found.iter().zip(&sent)) {
        assert_eq!(reading.agent, *agent);
        let mut values = values.clone();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let mut read = reading.values.clone();
        read.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(read, values, "reading {number}");
        assert_eq!(reading.account, account(number));
        // To the clock of Redis and back: the same machine, by other round trips.
        let off_ns = controller.local_ns(reading.at_ns) - at_ns;
        assert!(off_ns.abs() < 50_000_000, "reading {number}: {off_ns}");
    }
    assert_eq!(controller.readings().unwrap(), []);
    let mut connection = redis.endpoint().connect(Duration::ZERO).unwrap();
    let left: u64 = redis::cmd("XLEN").arg("dyno:test:readings").query(&mut connection).unwrap();
    assert!(left <= 1, "{left} readings are left");
    drop(senders);
    let leaving = thread::spawn(move || agents.into_iter().for_each(Agent::leave));
    assert_eq!(controller.finish(SOON).unwrap(), Vec::<String>::new());
    leaving.join().unwrap();
    assert_eq!(redis.keys(), Vec::<String>::new());
}

#[test]
fn unread_readings_are_bounded_and_delay_nothing() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    let mut readings = agent.readings();
    for number in 0..5_000 {
        let values = [(MetricId::of("a", "x"), f64::from(number))];
        let account = serde_json::Value::Null;
        readings.send(monotonic_ns(), &values, account).unwrap();
    }
    let found = controller.readings().unwrap();
    assert!((1_900..2_300).contains(&found.len()), "{}", found.len());
    assert_eq!(found.last().unwrap().values[0].1, 4_999.0);
}

#[test]
fn every_key_of_a_run_has_an_expiry() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares(&plan(), 1, 1).unwrap()).unwrap();
    agent.doing("something").unwrap();
    let values = [(MetricId::of("a", "x"), 1.0)];
    let account = serde_json::Value::Null;
    agent.readings().send(monotonic_ns(), &values, account).unwrap();
    crate::common::wait_for("all keys", || redis.keys().len() == 7);
    let mut connection = redis.endpoint().connect(Duration::ZERO).unwrap();
    for key in redis.keys() {
        assert!(key.starts_with("dyno:test:"), "{key}");
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left > 0, "{key}: {left}");
    }
}

#[test]
fn no_stage_begins_after_an_agent_has_gone() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 2);
    let (first, second) = (join(&redis, 0).unwrap(), join(&redis, 1).unwrap());
    controller.gather(SOON).unwrap();
    // It leaves in order while the controller does not wait for it.
    first.leave();
    controller.give(Work::default(), operations(), &shares(&plan(), 2, 1).unwrap()).unwrap();
    let (taken, has_taken) = channel();
    let waiting = thread::spawn(move || {
        let (work, _) = second.next_work(SOON).unwrap().unwrap();
        taken.send(()).unwrap();
        let _ = second.wait_start(work.number, Step::Run, SOON);
    });
    // Wait for the agent: the end of the controller below would withdraw the work.
    has_taken.recv_timeout(SOON).unwrap();
    let error = controller.barrier(Step::Run, SOON).unwrap_err();
    assert!(
        matches!(&error, FleetError::Failed { index: 0, reason, .. } if reason.contains("gone")),
        "{error}"
    );
    drop(controller);
    waiting.join().unwrap();
}

#[test]
fn connection_lost_while_idle_is_replaced() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let _agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    let mut other = redis.endpoint().connect(Duration::ZERO).unwrap();
    // Longer than a lease.
    thread::sleep(LEASE * 3 / 2);
    redis::cmd("CLIENT")
        .arg("KILL")
        .arg("TYPE")
        .arg("normal")
        .arg("SKIPME")
        .arg("yes")
        .query::<i64>(&mut other)
        .unwrap();
    assert!(controller.next(Duration::from_millis(300)).unwrap().is_none());
}

#[test]
fn different_versions_do_not_work_together() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let mut options = agent_options(redis.endpoint(), 0);
    options.version = Version::of("0.9");
    // Both sides report it.
    for error in [Agent::join(options).unwrap_err(), controller.gather(SOON).unwrap_err()] {
        let FleetError::Version { host, found, expected } = &error else {
            panic!("{error}");
        };
        assert_eq!(host, "host-0");
        let versions = (found.starts_with("0.9 "), expected.starts_with("1.0 "));
        assert_eq!(versions, (true, true), "{found}, {expected}");
    }
}

#[test]
fn run_has_one_controller_and_unique_agent_numbers() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let _first = controller(&redis, 1);
    let second = Controller::open(controller_options(redis.endpoint(), 1));
    assert!(matches!(second, Err(FleetError::RunTaken { .. })), "{second:?}");
    let _agent = join(&redis, 0).unwrap();
    let error = join(&redis, 0).unwrap_err();
    let FleetError::IndexTaken { run, index, host } = &error else {
        panic!("{error}");
    };
    let found = (run.as_str(), *index, host.as_str());
    assert_eq!(found, ("test", 0, "host-0"));
}

#[test]
fn lost_connections_neither_lose_nor_repeat_messages() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let mut controller = controller(&redis, 1);
    let mut agent = join(&redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    controller.give(Work::default(), operations(), &shares(&plan(), 1, 1).unwrap()).unwrap();
    let (work, _) = agent.next_work(SOON).unwrap().expect("some work");
    let mut connection = redis.endpoint().connect(Duration::ZERO).unwrap();
    let mut seen = Vec::new();
    for index in 0..30 {
        agent.window(work.number, 0, &window(0, index, 3)).unwrap();
        if index % 5 == 0 {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
            let killed: u64 = kill.query(&mut connection).unwrap();
            assert!(killed > 0);
        }
        while let Some(event) = controller.next(Duration::from_millis(20)).unwrap() {
            let Event::Window { window, .. } = event else { panic!("{event:?}") };
            seen.push(window.index);
        }
    }
    while seen.len() < 30 {
        match controller.next(SOON).unwrap().expect("it comes") {
            Event::Window { window, .. } => seen.push(window.index),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, (0..30).collect::<Vec<u64>>());
    assert!(controller.next(LEASE).unwrap().is_none(), "nothing more");
    agent.check().unwrap();
}

/// Messages missed by a controller that reads none of an agent's 2,600 messages about `servers` servers until it has left.
fn missed(redis: &RedisServer, servers: u32) -> Option<u64> {
    let mut controller = controller(redis, 1);
    let agent = join(redis, 0).unwrap();
    controller.gather(SOON).unwrap();
    let mut share = shares(&plan(), 1, 1).unwrap();
    share[0].links = vec![share[0].links[0].clone(); servers as usize];
    controller.give(Work::default(), operations(), &share).unwrap();
    agent.next_work(SOON).unwrap().expect("some work");
    let mut connection = redis.endpoint().connect(Duration::ZERO).unwrap();
    // Number of the newest message that has arrived.
    let mut arrived = || -> u64 {
        let mut newest = redis::cmd("XREVRANGE");
        newest.arg("dyno:test:up").arg("+").arg("-").arg("COUNT").arg(1);
        let entries: Vec<(String, Vec<String>)> = newest.query(&mut connection).unwrap();
        let fields = entries.first().map(|(_, fields)| fields.as_slice());
        let mut pairs = fields.unwrap_or_default().chunks_exact(2);
        let number = pairs.find(|pair| pair[0] == "n").map(|pair| pair[1].parse());
        number.map_or(0, Result::unwrap)
    };
    // Far more than Redis keeps unread.
    for number in 0..2_600_u64 {
        agent.doing(&format!("step {number}")).unwrap();
        // No more than the agent queues: other processes may delay the sending thread.
        let deadline = Instant::now() + SOON;
        while number % 100 == 0 && arrived() + 50 < number {
            assert!(Instant::now() < deadline, "they do not arrive");
            thread::sleep(Duration::from_millis(5));
        }
    }
    agent.leave();
    let event = controller.next(Duration::from_secs(1)).unwrap();
    controller.finish(SOON).unwrap();
    match event {
        None => None,
        Some(Event::Missing { agent: 0, error: FleetError::MessagesLost { count, .. } }) => {
            Some(count)
        }
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn dropped_redis_messages_are_counted_and_room_grows_by_server() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let count = missed(&redis, 1).expect("2,000 stay");
    assert!((400..=601).contains(&count), "{count}");
    assert_eq!(missed(&redis, 150), None, "3,000 stay");
}

#[test]
fn tls_is_checked_against_the_given_authority() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["redis", "other"] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join(format!("{name}.crt")), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join(format!("{name}.key")), made.signing_key.serialize_pem())
            .unwrap();
    }
    std::fs::copy(folder.path().join("redis.crt"), folder.path().join("ca.crt")).unwrap();
    let Some(redis) = RedisServer::start_tls(folder.path()) else {
        return;
    };
    let by = |name: &str| {
        let authority = folder.path().join(name);
        Endpoint::new(&redis.url(), Some(&authority)).unwrap()
    };
    let mut connection = by("redis.crt").connect(Duration::ZERO).unwrap();
    let answer: String = redis::cmd("PING").query(&mut connection).unwrap();
    assert_eq!(answer, "PONG");
    let error = by("other.crt").connect(Duration::ZERO).map(|_| ()).unwrap_err();
    assert!(matches!(error, FleetError::Redis { .. }), "{error}");
    assert!(!error.to_string().contains("password"), "{error}");
    let open = redis.endpoint().connect(Duration::ZERO).map(|_| ());
    assert!(open.is_err(), "the system does not know the authority");
}
