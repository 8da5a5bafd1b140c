//! A separate Redis for each test, agents with an engine that measures nothing, and their controller.
#![allow(dead_code, reason = "each test file uses a part of it")]

use dyno_engine::Cancel;
use dyno_fleet::FleetError;
use dyno_fleet::agent::{Agent, AgentOptions};
use dyno_fleet::controller::{Controller, ControllerOptions};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::{HostFacts, Version};
use dyno_plan::operation::Operations;
use dyno_record::interval::{IntervalRecord, OperationInterval, WindowCounts, latency_histogram};
use dyno_record::model::PhaseKind;
use dyno_testkit::{Skip, free_port, or_skip};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for an event that should happen soon.
pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const LEASE: Duration = Duration::from_secs(2);
const PASSWORD: &str = "a-password-of-tests";

/// A `redis-server` that ends when dropped.
pub(crate) struct RedisServer {
    child: Child,
    pub(crate) port: u16,
    scheme: &'static str,
}

impl RedisServer {
    /// `None`, after a printed notice, without `redis-server`.
    pub(crate) fn start() -> Option<Self> {
        Self::with(|port| format!("port {port}\n"), "redis")
    }

    /// With TLS by the files `redis.crt`, `redis.key` and `ca.crt` in a folder.
    pub(crate) fn start_tls(folder: &Path) -> Option<Self> {
        let at = |name: &str| folder.join(name).display().to_string();
        let settings = |port| {
            format!(
                "port 0\ntls-port {port}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\ntls-auth-clients no\n",
                at("redis.crt"),
                at("redis.key"),
                at("ca.crt")
            )
        };
        Self::with(settings, "rediss")
    }

    fn with(settings: impl Fn(u16) -> String, scheme: &'static str) -> Option<Self> {
        let is_there = Command::new("redis-server").arg("--version").output().is_ok();
        let remedy = "install Debian's `redis-server`";
        or_skip(is_there.then_some(()).ok_or_else(|| Skip::new("no `redis-server`", remedy)))?;
        // Another program may take the port first; then try another one.
        for _ in 0..5 {
            let port = free_port();
            let mut child = Command::new("redis-server")
                .arg("-")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let text = format!(
                "{}bind 127.0.0.1\nrequirepass {PASSWORD}\nsave \"\"\nappendonly no\nloglevel notice\n",
                settings(port)
            );
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let mut server = RedisServer { child, port, scheme };
            if server.is_up() {
                return Some(server);
            }
        }
        panic!("`redis-server` does not start");
    }

    /// Waits for the server's own message, because a quicker process may answer at the port.
    fn is_up(&mut self) -> bool {
        let mut log = BufReader::new(self.child.stdout.take().unwrap());
        let mut line = String::new();
        while log.read_line(&mut line).is_ok_and(|length| length > 0) {
            if line.contains("Ready to accept connections") {
                // Read until it ends, so that it never blocks on its output.
                thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
                return true;
            }
            line.clear();
        }
        false
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://:{PASSWORD}@localhost:{}", self.scheme, self.port)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.url(), None).unwrap()
    }

    /// All keys of the server.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut connection = self.endpoint().connect(Duration::ZERO).unwrap();
        redis::cmd("KEYS").arg("*").query(&mut connection).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn controller_options(endpoint: Endpoint, agents: u32) -> ControllerOptions {
    ControllerOptions {
        endpoint,
        run: RunName::new("test").unwrap(),
        version: Version::of("1.0"),
        lease: LEASE,
        hosts: (0..agents).map(|index| format!("host-{index}")).collect(),
        cancel: Cancel::new(),
    }
}

pub(crate) fn controller(redis: &RedisServer, agents: u32) -> Controller {
    Controller::open(controller_options(redis.endpoint(), agents)).unwrap()
}

pub(crate) fn agent_options(endpoint: Endpoint, index: u32) -> AgentOptions {
    AgentOptions {
        endpoint,
        run: RunName::new("test").unwrap(),
        index,
        version: Version::of("1.0"),
        host: HostFacts { name: format!("host-{index}"), cpus: 2, ..HostFacts::default() },
        join_within: SOON,
        stop: Arc::default(),
    }
}

pub(crate) fn join(redis: &RedisServer, index: u32) -> Result<Agent, FleetError> {
    Agent::join(agent_options(redis.endpoint(), index))
}

/// Operations of workload A.
pub(crate) fn operations() -> Operations {
    dyno_plan::builtin::find("a").unwrap().counted_operations()
}

/// A window with `count` operations, different for each agent and interval.
pub(crate) fn window(agent: u32, index: u64, count: u64) -> IntervalRecord {
    let mut response = latency_histogram();
    let mut sum = 0;
    for number in 0..count {
        let value = 1_000 * (1 + u64::from(agent) * 1_000 + index * 10 + number);
        response.record(value).unwrap();
        sum += u128::from(value);
    }
    IntervalRecord {
        duration_ns: 1_000_000_000,
        operations: vec![OperationInterval {
            name: "read".into(),
            service: response.clone(),
            start_delay: latency_histogram(),
            response,
            response_sum_ns: sum,
            service_sum_ns: sum,
            start_delay_sum_ns: 0,
            documents: count,
            errors: 0,
            clamped: 0,
        }],
        counts: WindowCounts { succeeded: count, ..WindowCounts::default() },
        ..IntervalRecord::empty(PhaseKind::Measure, index, index * 1_000_000_000)
    }
}

/// Waits until a condition holds.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < until, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
