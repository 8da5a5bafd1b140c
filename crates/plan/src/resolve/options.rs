//! Applies the request's dedicated options to the plan.

use crate::builtin;
use crate::error::PlanError;
use crate::model::{
    ClientPlan, ExporterPlan, PhaseKind, PhasePlan, Plan, Schedule, ScheduleKind, ServerKind,
    TracePlan, set,
};
use crate::problem::Problem;
use crate::request::{Observing, Overrides};
use crate::units::Span;
use crate::wsf::TraceWindow;

/// Applies single values to the plan, except those about the server.
pub(super) fn apply(plan: &mut Plan, overrides: &Overrides) -> Result<(), PlanError> {
    let client = &mut plan.client;
    set(&mut client.threads, overrides.threads);
    if overrides.threads.is_none() {
        client.threads = client.threads.min(client.clients.max(1));
    }
    if overrides.records.is_some() {
        plan.data.times_cache = None;
    }
    set(&mut plan.data.records, overrides.records);
    apply_stop(plan, overrides);
    apply_schedule(plan, overrides)
}

/// Applies the options about the server. `uri` is the given address, without credentials.
pub(super) fn apply_server(
    plan: &mut Plan,
    overrides: &Overrides,
    uri: Option<String>,
) -> Result<(), PlanError> {
    set(&mut plan.server.pairs, overrides.pairs);
    let kind = match (overrides.server, &uri, &overrides.mongod) {
        (Some(kind), Some(_), _) if kind != ServerKind::Uri => {
            let problem = Problem::new("`--uri` uses a running server, `--server` starts one")
                .with_hint("use only one of them");
            return Err(PlanError::Invalid(vec![problem]));
        }
        (Some(kind), _, _) => Some(kind),
        (None, Some(_), _) => Some(ServerKind::Uri),
        (None, None, Some(_)) => Some(ServerKind::Mongod),
        (None, None, None) => None,
    };
    let server = &mut plan.server;
    if let Some(kind) = kind {
        server.kind = kind;
        let known = server.uri.take().filter(|_| kind == ServerKind::Uri);
        server.uri = uri.or(known);
    }
    if overrides.mongod.is_some() {
        server.mongod.clone_from(&overrides.mongod);
    }
    if server.kind == ServerKind::Auto && server.mongod.is_some() {
        server.kind = ServerKind::Mongod;
    }
    Ok(())
}

/// A single count ends the phase by count, a single time by time, both by whichever comes first.
fn apply_stop(plan: &mut Plan, overrides: &Overrides) {
    match (overrides.operations, overrides.duration) {
        (None, None) => {}
        (operations, duration) => {
            plan.phases.operations = operations;
            plan.phases.duration = duration;
        }
    }
}

fn apply_schedule(plan: &mut Plan, overrides: &Overrides) -> Result<(), PlanError> {
    let kind = overrides.schedule.unwrap_or(match plan.schedule.kind() {
        ScheduleKind::Closed if overrides.rate_per_s.is_some() => ScheduleKind::Constant,
        kind => kind,
    });
    let rate_per_s = overrides.rate_per_s.or(plan.schedule.rate_per_s());
    let needed = || {
        let problem = Problem::new(format!("the schedule `{}` needs a rate", kind.as_str()));
        PlanError::Invalid(vec![problem.with_hint("set `--rate`")])
    };
    let max_start_delay = plan.schedule.max_start_delay();
    let max_start_delay = max_start_delay.unwrap_or(Schedule::DEFAULT_MAX_START_DELAY);
    plan.schedule = match kind {
        ScheduleKind::Closed if overrides.rate_per_s.is_some() => {
            let problem = Problem::new("a closed loop has no rate")
                .with_hint("omit the rate, or use `--schedule constant`, `poisson` or `throttled`");
            return Err(PlanError::Invalid(vec![problem]));
        }
        ScheduleKind::Closed => Schedule::Closed {},
        ScheduleKind::Constant => {
            Schedule::Constant { rate_per_s: rate_per_s.ok_or_else(needed)?, max_start_delay }
        }
        ScheduleKind::Poisson => {
            Schedule::Poisson { rate_per_s: rate_per_s.ok_or_else(needed)?, max_start_delay }
        }
        ScheduleKind::Throttled => {
            Schedule::Throttled { rate_per_s: rate_per_s.ok_or_else(needed)? }
        }
    };
    Ok(())
}

/// Default duration of a soak, and default time for which its server may be unavailable.
const SOAK_DURATION: Span = Span::from_secs(3_600);
const SOAK_GIVE_UP: Span = Span::from_secs(300);

/// Sets duration and patience of a soak. `source` is its original plan, and `is_said` whether the
/// end of the measured time was given explicitly, even if it is the default.
pub(super) fn apply_soak(plan: &mut Plan, give_up: Option<Span>, source: &str, is_said: bool) {
    let usual = builtin::find(source).map_or_else(PhasePlan::default, |plan| plan.phases);
    let phases = &mut plan.phases;
    let is_usual = phases.duration == usual.duration && phases.operations == usual.operations;
    if is_usual && !is_said {
        phases.duration = Some(SOAK_DURATION);
    }
    let client = &mut plan.client;
    match give_up {
        Some(give_up) => client.give_up = give_up,
        None if client.give_up == ClientPlan::default().give_up => client.give_up = SOAK_GIVE_UP,
        None => {}
    }
}

/// Applies changes to what is observed.
pub(super) fn apply_observing(plan: &mut Plan, observing: &Observing) {
    let observe = &mut plan.observe;
    set(&mut observe.interval, observing.interval);
    if observing.off {
        (observe.host, observe.server) = (false, false);
    }
    for exporter in &observing.exporters {
        let number = observe.exporters.len() + 1;
        let name = exporter.name.clone();
        let name = name.unwrap_or_else(|| format!("exporter-{number}"));
        observe.exporters.push(ExporterPlan::open(name, exporter.url.clone()));
    }
}

/// Moves the plan's trace windows, and sets their shell command; without a window, adds one in the
/// measure phase.
pub(super) fn apply_trace(plan: &mut Plan, command: Option<&str>, window: Option<&TraceWindow>) {
    if plan.traces.is_empty() && command.is_some() {
        plan.traces.push(TracePlan {
            name: "trace".into(),
            command: Vec::new(),
            phase: PhaseKind::Measure,
            from: Span::from_secs(0),
            length: None,
        });
    }
    for trace in &mut plan.traces {
        if let Some(window) = window {
            (trace.phase, trace.from, trace.length) = (window.phase, window.from, window.length);
        }
        if let Some(command) = command {
            // Without `exec`, because the command may consist of several programs or assignments.
            trace.command = vec!["sh".into(), "-c".into(), command.to_owned()];
        }
    }
}
