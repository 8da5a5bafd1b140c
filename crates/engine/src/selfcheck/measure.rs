//! The measurements of a selfcheck.

use super::child::ResponderProcess;
use super::{ClosedLoop, ConstantRate, Machine, SCHEMA_VERSION, Selfcheck, StartDelay};
use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::observer::{Observer, Shared};
use crate::run::usage;
use crate::version::VERSION;
use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::workload::{Concerns, Workload};
use dyno_observe::doctor::{Subject, level_of_other_load};
use dyno_observe::environment::examine;
use dyno_observe::process::ProcessTime;
use dyno_plan::model::Schedule;
use dyno_plan::operation::READ;
use dyno_plan::units::Span;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{OperationRecord, PhaseKind, PhaseRecord};
use dyno_record::verdict::{CheckName, Verdict};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Offered rates of the open-loop measurements.
const RATES_PER_S: [f64; 3] = [1_000.0, 10_000.0, 20_000.0];

/// Long enough for caches, branch predictors and the frequency of the core to settle.
const WARMUP: Duration = Duration::from_millis(500);

/// Performs all measurements, each of the given length.
///
/// # Errors
/// The responder cannot be started or reads fail, and [`Kind::Interrupted`].
pub fn measure(
    duration: Duration,
    clients: u32,
    environment: &Environment,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Selfcheck, Error> {
    let observer = Shared::new(observer);
    let context = Context { environment, cancel, observer: &observer, source: None };
    let executable = context.environment.executable.as_deref();
    let executable = executable.ok_or_else(|| {
        Error::new(Kind::Environment, "cannot determine the path of this program")
    })?;
    let measured_at = Timestamp::now();
    let before = other_load();
    let start = ProcessTime::read();
    let responder = ResponderProcess::start(executable)?;
    context.note(format!("closed loop, {clients} connections on one core"));
    let phase = drive(&responder, Schedule::Closed {}, duration, clients, context)?;
    let closed_loop = closed_loop(&phase, clients)?;
    let mut constant_rates = Vec::new();
    for rate_per_s in RATES_PER_S {
        context.note(format!("constant rate of {rate_per_s} operations/s"));
        let schedule = Schedule::Constant { rate_per_s, max_start_delay: Span::from_secs(60) };
        constant_rates.push(constant_rate(
            &drive(&responder, schedule, duration, clients, context)?,
            rate_per_s,
        )?);
    }
    drop(responder);
    let during = start.zip(ProcessTime::read()).map(|(start, end)| load_during(&start, &end));
    let other_load = [before, during, other_load()].into_iter().flatten();
    Ok(Selfcheck {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.into(),
        measured_at: measured_at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        machine: Machine::this(),
        max_rate_per_core_per_s: max_rate_per_core(&closed_loop),
        closed_loop,
        constant_rates,
        other_load: other_load.max_by_key(|verdict| verdict.level),
    })
}

/// The check for other load over the time of the measurement.
fn load_during(start: &ProcessTime, end: &ProcessTime) -> Verdict {
    let used = end.of_others_since(start);
    Verdict {
        check: CheckName::OtherLoad,
        level: level_of_other_load(used / end.cpus.max(1) as f64),
        found: format!("others used {used:.2} of {} CPUs during the measurement", end.cpus),
        advised: "an idle machine (below 10 % of the CPUs)".to_owned(),
        why: "the client lacks the CPU time that others use, at unpredictable times".to_owned(),
        change: None,
    }
}

/// The `dyno doctor` check for other load.
fn other_load() -> Option<Verdict> {
    let mut of_others = examine(Subject::default())
        .doctor
        .into_iter()
        .filter(|verdict| verdict.check == CheckName::OtherLoad);
    of_others.next()
}

fn drive(
    responder: &ResponderProcess,
    schedule: Schedule,
    duration: Duration,
    clients: u32,
    context: Context<'_>,
) -> Result<PhaseRecord, Error> {
    let plan = dyno_plan::builtin::find("read")
        .ok_or_else(|| Error::new(Kind::Internal, "the plan `read` does not exist"))?;
    let offered = match schedule {
        Schedule::Constant { rate_per_s, .. } => Some(rate_per_s),
        _ => None,
    };
    let stop = context.cancel.phase_flag();
    let phase = |kind, duration| PhaseSpec { kind, duration: Some(duration), operations: None };
    let pair = Pair {
        clients: clients as usize,
        threads: 1,
        pin: true,
        ..Pair::from_plan(
            &plan,
            Arc::new(Workload::mix(&plan, &Concerns::default())?),
            Backend::Wire(Connector::new(&responder.target, None)?),
        )
    };
    let job = Job {
        phases: vec![phase(PhaseKind::Warmup, WARMUP), phase(PhaseKind::Measure, duration)],
        schedule,
        stop,
        usage: Some(usage),
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut measured = PhaseAccumulator::new(PhaseKind::Measure, offered);
    dyno_load::run(job, &mut |window| {
        let interval = window.merged;
        if interval.phase == PhaseKind::Measure {
            measured.add(&interval)?;
        }
        Ok(())
    })?;
    context.cancel.check()?;
    Ok(measured.to_record())
}

fn reads(phase: &PhaseRecord) -> Result<&OperationRecord, Error> {
    match phase.operations.get(READ) {
        Some(read) if read.count > 0 && read.errors == 0 => Ok(read),
        _ => {
            let errors = phase.errors.iter();
            let errors: Vec<String> = errors.map(|(kind, n)| format!("{n} `{kind}`")).collect();
            let text = format!("reads failed against the responder: {}", errors.join(", "));
            Err(Error::new(Kind::Internal, text))
        }
    }
}

fn closed_loop(phase: &PhaseRecord, connections: u32) -> Result<ClosedLoop, Error> {
    let operations = reads(phase)?.count as f64;
    let client = phase.client;
    Ok(ClosedLoop {
        connections,
        duration_s: phase.duration_s,
        rate_per_s: phase.achieved_rate_per_s,
        cpu_us_per_operation: client.cpu_us_per_operation,
        cpu_user_us_per_operation: client.cpu_user_s * 1e6 / operations,
        cpu_system_us_per_operation: client.cpu_system_s * 1e6 / operations,
        core_busy_ratio: (client.cpu_user_s + client.cpu_system_s) / phase.duration_s,
        max_rss_bytes: client.max_rss_bytes,
    })
}

fn constant_rate(phase: &PhaseRecord, offered_rate_per_s: f64) -> Result<ConstantRate, Error> {
    let delay = reads(phase)?.start_delay_us;
    Ok(ConstantRate {
        offered_rate_per_s,
        achieved_rate_per_s: phase.achieved_rate_per_s,
        achieved_ratio: phase.achieved_rate_per_s / offered_rate_per_s,
        dropped_arrivals: phase.arrivals.map_or(0, |arrivals| arrivals.dropped),
        start_delay_us: StartDelay { p50: delay.p50, p99: delay.p99, max: delay.max },
    })
}

/// A core that was not always busy could have done more: the rate is then what its CPU time per
/// operation allows.
fn max_rate_per_core(closed_loop: &ClosedLoop) -> f64 {
    if closed_loop.cpu_us_per_operation > 0.0 {
        closed_loop.rate_per_s.max(1e6 / closed_loop.cpu_us_per_operation)
    } else {
        closed_loop.rate_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(rate_per_s: f64, cpu_us_per_operation: f64) -> ClosedLoop {
        ClosedLoop {
            connections: 32,
            duration_s: 1.0,
            rate_per_s,
            cpu_us_per_operation,
            cpu_user_us_per_operation: 0.0,
            cpu_system_us_per_operation: 0.0,
            core_busy_ratio: 1.0,
            max_rss_bytes: 0,
        }
    }

    #[test]
    fn an_idle_core_could_have_done_more() {
        assert_eq!(max_rate_per_core(&closed(50_000.0, 10.0)), 100_000.0);
        assert_eq!(max_rate_per_core(&closed(100_000.0, 10.0)), 100_000.0);
        assert_eq!(max_rate_per_core(&closed(100_000.0, 0.0)), 100_000.0);
    }

    #[test]
    fn phase_without_reads_is_not_a_measurement() {
        let empty = PhaseAccumulator::new(PhaseKind::Measure, None).to_record();
        assert!(closed_loop(&empty, 32).is_err());
    }
}
