//! Performs phases on a whole fleet, from shares to merged windows.

use super::open::Open;
use super::readings::HostSources;
use super::record::{self, Ended};
use crate::FleetError;
use crate::agent::Start;
use crate::clock::monotonic_ns;
use crate::controller::{Controller, Event};
use crate::error::out_of_bounds;
use crate::merge::{DEFAULT_LAG, MergeOptions, Merged, Merger, Outcome};
use crate::protocol::{Step, StepSummary, Work, plan_text};
use crate::shares::{Link, Share, shares};
use dyno_engine::context::Context;
use dyno_engine::load_source::{self, Phases};
use dyno_engine::{Error, Kind};
use dyno_load::{Sink, WINDOW_NS, Window};
use dyno_plan::fleet::FleetPlan;
use dyno_plan::task::Threads;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseKind;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest single wait for a message.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval of the checks of servers and lagging agents.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// An agent without a window for this time is named in a warning.
const LAGGING: Duration = Duration::from_secs(5);
/// The run ends if an agent sends no window for this time plus `client.give_up`.
const HANGING: Duration = Duration::from_secs(60);
/// Longest time to make all connections.
const CONNECT_WITHIN: Duration = Duration::from_secs(120);

/// Performs phases on all hosts, and records each agent's outcome even after a fault.
pub(super) fn perform(
    open: &mut Open,
    phases: &Phases<'_>,
    readings: &RefCell<Option<HostSources>>,
    context: Context<'_>,
    sink: Sink<'_>,
) -> Result<(), Error> {
    let fleet = phases.plan.fleet.as_ref();
    let fleet =
        fleet.ok_or_else(|| Error::new(Kind::BadInput, "the plan has no `[fleet]` table"))?;
    let step = Step::from(phases.group);
    open.forget_looks();
    let shares = stage_shares(open, phases)?;
    let works = |link: &&Link| step != Step::Load || link.load_count > 0;
    let servers = shares
        .iter()
        .map(|share| share.links.iter().filter(works).map(|link| link.server).collect());
    let merger = Merger::new(MergeOptions {
        interval_ns: WINDOW_NS,
        lag: DEFAULT_LAG,
        servers: servers.collect(),
    });
    // A single server has no record of its own.
    let targets: Vec<u32> = match (open.uris.len(), phases.group) {
        (0 | 1, _) => Vec::new(),
        (_, load_source::PhaseGroup::Load) => {
            phases.servers.iter().map(|(number, _)| *number as u32).collect()
        }
        (count, load_source::PhaseGroup::Run) => (0..count as u32).collect(),
    };
    let agents_per_host = if open.is_on_hosts() { fleet.agents_per_host } else { 1 };
    if let Some(sources) = readings.borrow_mut().as_mut() {
        expect_hosts(open, agents_per_host, sources);
    }
    phases.record.borrow_mut().clients = shares.iter().map(Share::clients).sum();
    let threads = match phases.threads {
        Threads::Given(threads) => Some(threads),
        Threads::Shared(_) => None,
    };
    let work = Work {
        plan: plan_text(phases.plan),
        servers: open.uris.clone(),
        steps: vec![step],
        threads,
        agents_per_host,
        ..Work::default()
    };
    clients(open)?.give(work, phases.plan.counted_operations(), &shares)?;
    let mut run = FleetRun {
        ended: open.agents.iter().map(|_| None).collect(),
        gone: vec![false; open.agents.len()],
        open,
        phases,
        shares,
        step,
        readings,
        fleet,
        context,
        merger,
        targets,
        base_ns: 0,
        named: BTreeSet::new(),
        losses: Vec::new(),
    };
    let result = run.run(sink);
    if result.is_ok() {
        run.collect();
    }
    // Read back the settings of the run before its end reverts them.
    let looked = match step {
        Step::Run => run.open.look(phases.plan, context),
        _ => Ok(()),
    };
    let result = result.and(looked);
    let finished = run.finish(sink);
    result.and(finished)
}

fn clients(open: &mut Open) -> Result<&mut Controller, Error> {
    let clients = open.clients.as_mut();
    clients.ok_or_else(|| Error::new(Kind::Internal, "the fleet was closed"))
}

/// Expects readings of the first agent of each host, and of each server's agent.
fn expect_hosts(open: &Open, agents_per_host: u32, sources: &mut HostSources) {
    for agent in open.agents.iter().step_by(agents_per_host.max(1) as usize) {
        sources.expect((false, agent.index), &agent.host.name);
    }
    for server in &open.server_hosts {
        sources.expect((true, server.index), &server.host.name);
    }
}

/// Shares of all agents. Only servers that lack documents are loaded.
fn stage_shares(open: &Open, phases: &Phases<'_>) -> Result<Vec<Share>, Error> {
    let (agents, servers) = (open.agents.len() as u32, open.uris.len() as u32);
    let mut all = shares(phases.plan, agents, servers)
        .map_err(|error| Error::from_cause(Kind::BadInput, error))?;
    for link in all.iter_mut().flat_map(|share| &mut share.links) {
        let mut loaded = phases.servers.iter();
        match loaded.find(|(number, _)| *number == link.server as usize) {
            Some((_, keep_existing)) => link.keep_existing = *keep_existing,
            None => link.load_count = 0,
        }
    }
    Ok(all)
}

/// Running phases on all hosts.
struct FleetRun<'a, 'b> {
    open: &'a mut Open,
    phases: &'a Phases<'b>,
    shares: Vec<Share>,
    step: Step,
    readings: &'a RefCell<Option<HostSources>>,
    fleet: &'a FleetPlan,
    context: Context<'a>,
    merger: Merger,
    /// Servers with their own record in this stage.
    targets: Vec<u32>,
    /// The common instant on the run's clock.
    base_ns: u64,
    ended: Vec<Option<Ended>>,
    gone: Vec<bool>,
    /// Agents that were named as lagging.
    named: BTreeSet<String>,
    losses: Vec<FleetError>,
}

impl FleetRun<'_, '_> {
    fn run(&mut self, sink: Sink<'_>) -> Result<(), Error> {
        if !self.barrier()? {
            return Ok(());
        }
        let start = clients(self.open)?.start(self.step, self.fleet.start_lead.0)?;
        self.set_base(&start);
        let within = self.most_time();
        let until = within.and_then(|within| Instant::now().checked_add(within));
        let mut checked = Instant::now();
        while !self.is_over() {
            if self.is_stopped() {
                return self.cancel("the controller was interrupted");
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let waiting = self.waiting();
                self.cancel("the time limit has passed")?;
                let (step, within) =
                    (format!("done with {}", self.step), within.unwrap_or_default());
                return Err(FleetError::Late { step, within, waiting }.into());
            }
            let event = clients(self.open)?.next(LOOK_EVERY)?;
            if let Some(event) = event {
                self.take(event, sink)?;
            }
            if checked.elapsed() >= CHECK_EVERY {
                self.check()?;
                checked = Instant::now();
            }
        }
        self.judge()
    }

    /// Longest time until all agents are done; `None` for a run that ends by its operations.
    fn most_time(&self) -> Option<Duration> {
        if self.step == Step::Load {
            return Some(self.fleet.load_within.0);
        }
        let plan = self.phases.plan;
        let phases = plan.phases.warmup.0.saturating_add(plan.phases.duration?.0);
        let late = self.fleet.start_lead.0 + plan.client.give_up.0 + HANGING;
        Some(phases.saturating_add(late))
    }

    /// Waits until all agents are ready; `false` if the run was stopped.
    fn barrier(&mut self) -> Result<bool, Error> {
        let within = CONNECT_WITHIN + self.fleet.lease.0;
        match clients(self.open)?.barrier(self.step, within) {
            Ok(()) => Ok(true),
            Err(FleetError::Interrupted) => {
                self.cancel("the controller was interrupted")?;
                Ok(false)
            }
            Err(error) => {
                let error = self.cause(Error::from(error))?;
                self.cancel("not all agents are ready")?;
                Err(error)
            }
        }
    }

    fn set_base(&mut self, start: &Start) {
        let ahead_ns = start.local_ns - monotonic_ns();
        let now_ns = self.phases.clock.now_ns() as i64;
        self.base_ns = (now_ns + ahead_ns).max(0) as u64;
    }

    fn is_stopped(&self) -> bool {
        self.context.cancel.requested() || self.phases.stop.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.ended.iter().zip(&self.gone).all(|(ended, gone)| ended.is_some() || *gone)
    }

    /// Agents that have not ended, for messages.
    fn waiting(&self) -> Vec<String> {
        let Some(clients) = &self.open.clients else {
            return Vec::new();
        };
        let open = (0_u32..).zip(self.ended.iter().zip(&self.gone));
        let open = open.filter(|(_, (ended, gone))| ended.is_none() && !**gone);
        open.map(|(index, _)| clients.name(index)).collect()
    }

    fn cancel(&mut self, reason: &str) -> Result<(), Error> {
        clients(self.open)?.cancel(reason)?;
        Ok(())
    }

    fn take(&mut self, event: Event, sink: Sink<'_>) -> Result<(), Error> {
        match event {
            Event::Begun { agent, began } => self.merger.begun(agent, began),
            Event::Window { agent, server, window } => {
                self.merger.add(agent, server, window).map_err(out_of_bounds)?;
            }
            Event::ServerDone { agent, server } => self.merger.server_done(agent, server),
            Event::Done { agent, summary, realtime } => {
                let summary: StepSummary = serde_json::from_value(summary)
                    .map_err(|error| Error::from_cause(Kind::Internal, error))?;
                self.merger.ended(agent);
                if let Some(ended) = self.ended.get_mut(agent as usize) {
                    *ended = Some(Ended { summary, realtime });
                }
            }
            Event::Missing { error, .. } => {
                if let FleetError::MessagesLost { count, .. } = &error {
                    self.merger.missing(*count);
                }
                self.context.warning(error.to_string());
            }
            Event::Gone { agent, error } => self.lose(agent, error)?,
        }
        for merged in self.merger.closed().map_err(out_of_bounds)? {
            pass(merged, &self.targets, self.base_ns, sink)?;
        }
        Ok(())
    }

    /// Handles the loss of an agent: loading ends, a run continues without it.
    fn lose(&mut self, agent: u32, error: FleetError) -> Result<(), Error> {
        self.merger.lost(agent, &error.to_string());
        if let Some(gone) = self.gone.get_mut(agent as usize) {
            *gone = true;
        }
        let has_ended = self.ended.get(agent as usize).is_some_and(Option::is_some);
        if has_ended {
            return Ok(());
        }
        if self.step == Step::Load {
            let error = self.cause(Error::from(error))?;
            self.cancel("lost an agent")?;
            return Err(error);
        }
        self.context.warning(error.to_string());
        self.losses.push(error);
        Ok(())
    }

    /// Checks the servers, and warns about lagging agents.
    fn check(&mut self) -> Result<(), Error> {
        match self.open.server_fault(Duration::from_millis(1))? {
            Some(error) if self.open.starts_servers() => {
                self.cancel("lost a server host")?;
                return Err(error);
            }
            // Only the reader of the machine is lost; clients notice if the server is.
            Some(error) => self.context.warning(format!("{error:#}")),
            None => {}
        }
        self.collect();
        let controller = clients(self.open)?;
        let hanging = controller.lagging(HANGING + self.phases.plan.client.give_up.0);
        for agent in controller.lagging(LAGGING) {
            // The part in parentheses changes with the agent's last action.
            let who = agent.split(" (").next().unwrap_or_default().to_owned();
            if self.named.insert(who) {
                self.context.warning(format!("no window came from {agent}"));
            }
        }
        if !hanging.is_empty() {
            self.cancel("an agent hangs")?;
            let text = format!("no window from {} for a long time", hanging.join(", "));
            return Err(Error::new(Kind::Environment, text));
        }
        Ok(())
    }

    /// Fetches the agents' host readings. A failure does not end the run: if Redis has gone, the next message to the agents fails.
    fn collect(&mut self) {
        let mut sources = self.readings.borrow_mut();
        let Some(sources) = sources.as_mut() else {
            return;
        };
        for (is_server, controller) in
            [(false, &mut self.open.clients), (true, &mut self.open.servers)]
        {
            let Some(controller) = controller else {
                continue;
            };
            match controller.readings() {
                Ok(readings) => {
                    for reading in readings {
                        sources.take(is_server, controller.local_ns(reading.at_ns), reading);
                    }
                }
                // The other controller would wait for the same reading again.
                Err(error) => {
                    let text = format!("cannot fetch readings of hosts: {error}");
                    self.context.warning(text);
                    return;
                }
            }
        }
        sources.heard();
    }

    /// Replaces a client's error by the loss of a server host that caused it; this takes up to a lease to detect.
    fn cause(&mut self, error: Error) -> Result<Error, Error> {
        let patience = self.fleet.lease.0 * 3 / 2;
        let is_of_client = error
            .cause
            .downcast_ref::<FleetError>()
            .is_some_and(|error| matches!(error, FleetError::Failed { .. }));
        if is_of_client && self.open.starts_servers() {
            return Ok(self.open.server_fault(patience)?.unwrap_or(error));
        }
        Ok(error)
    }

    /// Judges the end of a run that has lost agents.
    fn judge(&mut self) -> Result<(), Error> {
        let Some(first) = self.losses.first().cloned() else {
            return Ok(());
        };
        let lost = self.losses.len();
        let error = self.cause(Error::from(first))?;
        let of = self.gone.len();
        Err(error.context(format!("{lost} of {of} agents were lost; the others continued")))
    }

    /// Closes what is open, and records each agent's outcome.
    fn finish(self, sink: Sink<'_>) -> Result<(), Error> {
        let FleetRun { open, phases, shares, merger, ended, base_ns, targets, .. } = self;
        let (last, outcome): (Vec<Merged>, Outcome) = merger.finish().map_err(out_of_bounds)?;
        for merged in last {
            pass(merged, &targets, base_ns, sink)?;
        }
        record::extend(&mut phases.record.borrow_mut(), open, phases, &shares, outcome, ended);
        Ok(())
    }
}

/// Passes on a window, shifted from the common instant to the run's clock, with the windows of single servers.
fn pass(merged: Merged, targets: &[u32], base_ns: u64, sink: Sink<'_>) -> Result<(), Error> {
    let (mut window, mut servers) = (merged.window, merged.servers);
    window.start_ns = window.start_ns.saturating_add(base_ns);
    let of_server = |server: &u32| {
        let own = servers.remove(server);
        // Only after the load phase do servers' rates have to add up to the total.
        let is_load = window.phase == PhaseKind::Load;
        let mut own = match own {
            None if is_load => return None,
            None => IntervalRecord::empty(window.phase, window.index, window.start_ns),
            Some(own) => own,
        };
        own.start_ns = window.start_ns;
        if !is_load {
            own.duration_ns = window.duration_ns;
        }
        Some(own)
    };
    let window = Window { pairs: targets.iter().map(of_server).collect(), merged: window };
    sink(window).map_err(|error| dyno_load::LoadError::Sink(error).into())
}
