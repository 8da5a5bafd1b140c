//! One measured load, by the bare loop or by the engine.

use crate::bare;
use anyhow::{Context, Result};
use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec, ProcessUsage};
use dyno_load::workload::{Concerns, Workload};
use dyno_plan::Plan;
use dyno_plan::model::Schedule;
use dyno_plan::units::Span;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_wire::command::{CommandOptions, CommandSet, Projection};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Core of the loading process.
const CLIENT_CORE: usize = 0;
/// Core of the answering process.
pub const RESPONDER_CORE: usize = 1;
/// Largest start delay of an operation: longer than in any of these loads.
pub const MAX_START_DELAY: Span = Span::from_secs(60);

/// Load of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineLoad {
    pub schedule: Schedule,
    pub clients: usize,
    pub warmup: Duration,
    pub duration: Duration,
    /// Operations after which the load ends before its duration.
    pub operations: Option<u64>,
    pub timeout: Duration,
    pub seed: u64,
}

impl Default for EngineLoad {
    fn default() -> Self {
        EngineLoad {
            schedule: Schedule::Closed {},
            clients: 32,
            warmup: Duration::from_millis(500),
            duration: Duration::from_secs(5),
            operations: None,
            timeout: Duration::from_secs(10),
            seed: 42,
        }
    }
}

/// Results and resource use of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    pub operations: u64,
    pub duration_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    pub max_rss_bytes: u64,
    pub start_delay_p50_us: f64,
    pub start_delay_p99_us: f64,
    pub record: Option<PhaseRecord>,
}

impl Cost {
    pub fn rate_per_s(&self) -> f64 {
        self.operations as f64 / self.duration_s
    }

    pub fn cpu_us_per_operation(&self) -> f64 {
        (self.user_s + self.system_s) * 1e6 / self.operations as f64
    }

    pub fn user_us_per_operation(&self) -> f64 {
        self.user_s * 1e6 / self.operations as f64
    }

    pub fn print(&self, name: &str) {
        println!(
            "{name:<8}{:>14.0}{:>12.2}{:>12.2}{:>14.2}",
            self.rate_per_s(),
            self.cpu_us_per_operation(),
            self.user_us_per_operation(),
            self.cpu_us_per_operation() - self.user_us_per_operation()
        );
    }
}

/// Pins the whole process, including later threads.
pub fn pin(core: usize) -> Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(core)?;
    let pinned = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    if pinned.is_err() {
        eprintln!("cannot use core {core}; continuing without pinning");
    }
    Ok(())
}

fn usage() -> ProcessUsage {
    let usage = dyno_observe::process::usage_self();
    ProcessUsage {
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        max_rss_bytes: usage.max_rss_bytes,
    }
}

/// Runs the bare loop with the engine's command.
pub fn bare(address: SocketAddr, load: &EngineLoad) -> Result<Cost> {
    pin(CLIENT_CORE)?;
    let options = CommandOptions {
        database: "ycsb".into(),
        collection: "usertable".into(),
        ..CommandOptions::default()
    };
    let commands = CommandSet::new(&options)?;
    let mut command = Vec::new();
    commands.find_by_id(&mut command, 0, b"user6284781860667377211", Projection::All);
    bare::run(address, load.clients, load.warmup, &command)?;
    let (before, start) = (usage(), Instant::now());
    let operations = bare::run(address, load.clients, load.duration, &command)?;
    let (after, duration_s) = (usage(), start.elapsed().as_secs_f64());
    Ok(Cost {
        operations,
        duration_s,
        user_s: (after.user_ns - before.user_ns) as f64 / 1e9,
        system_s: (after.system_ns - before.system_ns) as f64 / 1e9,
        max_rss_bytes: after.max_rss_bytes,
        start_delay_p50_us: 0.0,
        start_delay_p99_us: 0.0,
        record: None,
    })
}

fn plan() -> Result<Plan> {
    let mut plan = dyno_plan::builtin::find("read").context("missing built-in plan `read`")?;
    plan.data.records = 100_000;
    Ok(plan)
}

/// Runs the load engine.
pub fn engine(address: SocketAddr, load: &EngineLoad) -> Result<Cost> {
    pin(CLIENT_CORE)?;
    let (target, credentials) = dyno_plan::uri::parse(&format!("mongodb://{address}"))?;
    let phase =
        |kind, duration, operations| PhaseSpec { kind, duration: Some(duration), operations };
    let mut phases = vec![phase(PhaseKind::Measure, load.duration, load.operations)];
    if !load.warmup.is_zero() {
        phases.insert(0, phase(PhaseKind::Warmup, load.warmup, None));
    }
    let plan = plan()?;
    let pair = Pair {
        clients: load.clients,
        threads: 1,
        pin: false,
        ..Pair::from_plan(
            &plan,
            Arc::new(Workload::mix(&plan, &Concerns::default())?),
            Backend::Wire(Connector::new(&target, credentials)?),
        )
    };
    let job = Job {
        phases,
        schedule: load.schedule.clone(),
        seed: load.seed,
        timeout: load.timeout,
        usage: Some(usage),
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut measured = PhaseAccumulator::new(PhaseKind::Measure, load.schedule.rate_per_s());
    dyno_load::run(job, &mut |window| {
        let interval = window.merged;
        if interval.phase == PhaseKind::Measure {
            measured.add(&interval)?;
        }
        Ok(())
    })?;
    let record = measured.to_record();
    let read = record.operations.get("read").context("no reads were measured")?;
    Ok(Cost {
        operations: read.count,
        duration_s: record.duration_s,
        user_s: record.client.cpu_user_s,
        system_s: record.client.cpu_system_s,
        max_rss_bytes: record.client.max_rss_bytes,
        start_delay_p50_us: read.start_delay_us.p50,
        start_delay_p99_us: read.start_delay_us.p99,
        record: Some(record),
    })
}
