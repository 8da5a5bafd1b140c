//! Phases on a whole fleet, from shares to merged windows.

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

/// Longest wait for a message at a time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time from one look at the servers, and at those who lag, to the next.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Without a window for this time an agent is named.
const LAGGING: Duration = Duration::from_secs(5);
/// Without a window for this time, besides `client.give_up`, the run is given up.
const HANGING: Duration = Duration::from_secs(60);
/// Longest time to make all connections.
const CONNECT_WITHIN: Duration = Duration::from_secs(120);

/// Performs phases on all hosts, and writes down what became of everybody, also after a fault.
pub(super) fn perform(
    open: &mut Open,
    phases: &Phases<'_>,
    readings: &RefCell<Option<HostSources>>,
    offered_rate_per_s: Option<f64>,
    context: Context<'_>,
    sink: Sink<'_>,
) -> Result<(), Error> {
    let fleet = phases.plan.fleet.as_ref();
    let fleet =
        fleet.ok_or_else(|| Error::new(Kind::BadInput, "the plan has no table `[fleet]`"))?;
    let step = Step::from(phases.group);
    open.forget_looks();
    let shares = stage_shares(open, phases)?;
    let works = |link: &&Link| step != Step::Load || link.load_count > 0;
    let servers = shares.iter().map(|share| {
        let links = share.links.iter().filter(works);
        links.map(|link| link.server).collect()
    });
    let merger = Merger::new(MergeOptions {
        interval_ns: WINDOW_NS,
        lag: DEFAULT_LAG,
        offered_rate_per_s,
        servers: servers.collect(),
    });
    // One server has no record of its own.
    let targets: Vec<u32> = match (open.uris.len(), phases.group) {
        (0 | 1, _) => Vec::new(),
        (_, load_source::PhaseGroup::Load) => phases
            .servers
            .iter()
            .map(|(number, _)| *number as u32)
            .collect(),
        (count, load_source::PhaseGroup::Run) => (0..count as u32).collect(),
    };
    let agents_per_host = if open.is_on_hosts() {
        fleet.agents_per_host
    } else {
        1
    };
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
    clients(open)?.give(work, &shares)?;
    let mut run = FleetRun {
        ended: open.agents.iter().map(|_| None).collect(),
        gone: vec![false; open.agents.len()],
        begun: vec![false; open.agents.len()],
        begun_by: None,
        done_by: None,
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
    // What was set for the run, before its end takes it back.
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
    clients.ok_or_else(|| Error::new(Kind::Internal, "the fleet is closed"))
}

/// The first agent of each host reads it, and that of a server reads its own.
fn expect_hosts(open: &Open, agents_per_host: u32, sources: &mut HostSources) {
    for agent in open.agents.iter().step_by(agents_per_host.max(1) as usize) {
        sources.expect((false, agent.index), &agent.host.name);
    }
    for server in &open.server_hosts {
        sources.expect((true, server.index), &server.host.name);
    }
}

/// Shares of all agents; of loading those of servers that lack documents.
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

/// Phases under way on all hosts.
struct FleetRun<'a, 'b> {
    open: &'a mut Open,
    phases: &'a Phases<'b>,
    shares: Vec<Share>,
    step: Step,
    readings: &'a RefCell<Option<HostSources>>,
    fleet: &'a FleetPlan,
    context: Context<'a>,
    merger: Merger,
    /// The servers that have a record of their own in this stage.
    targets: Vec<u32>,
    /// The common instant on the clock of the run.
    base_ns: u64,
    ended: Vec<Option<Ended>>,
    gone: Vec<bool>,
    begun: Vec<bool>,
    /// When all must have begun, and when a run of known length must be over.
    begun_by: Option<Instant>,
    done_by: Option<Instant>,
    /// Agents that were named because they lag.
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
        let (now, lead) = (Instant::now(), self.fleet.start_lead.0);
        let until = match self.step {
            Step::Load => Some(now + self.fleet.load_within.0),
            _ => None,
        };
        self.begun_by = Some(now + lead + self.fleet.lease.0 + LAGGING);
        if let (Step::Run, Some(duration)) = (self.step, self.phases.plan.phases.duration) {
            let phases = self.phases.plan.phases.warmup.0 + duration.0;
            let give_up = self.phases.plan.client.give_up.0;
            self.done_by = Some(now + lead + phases + give_up + HANGING);
        }
        let mut checked = Instant::now();
        while !self.is_over() {
            if self.is_stopped() {
                return self.cancel("the controller was asked to end");
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let waiting = self.waiting();
                self.cancel("the time is over")?;
                return Err(FleetError::Late {
                    step: "done with loading".into(),
                    within: self.fleet.load_within.0,
                    waiting,
                }
                .into());
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

    /// Waits until all are ready; `false` if the run was stopped meanwhile.
    fn barrier(&mut self) -> Result<bool, Error> {
        let until = Instant::now() + CONNECT_WITHIN + self.fleet.lease.0;
        loop {
            if self.is_stopped() {
                self.cancel("the controller was asked to end")?;
                return Ok(false);
            }
            match clients(self.open)?.barrier(self.step, LOOK_EVERY) {
                Ok(()) => return Ok(true),
                Err(FleetError::Late { .. }) if Instant::now() < until => {}
                Err(mut error) => {
                    if let FleetError::Late { within, .. } = &mut error {
                        *within = CONNECT_WITHIN + self.fleet.lease.0;
                    }
                    let error = self.cause(Error::from(error))?;
                    self.cancel("not all agents are ready")?;
                    return Err(error);
                }
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
        let mut all = self.ended.iter().zip(&self.gone);
        all.all(|(ended, gone)| ended.is_some() || *gone)
    }

    /// Who has not ended, for messages.
    fn waiting(&self) -> Vec<String> {
        let ended: Vec<bool> = self.ended.iter().map(Option::is_some).collect();
        self.without(&ended)
    }

    /// Who has not gone and has not done something, for messages.
    fn without(&self, done: &[bool]) -> Vec<String> {
        let open = (0_u32..).zip(done.iter().zip(&self.gone));
        let open = open.filter(|(_, (done, gone))| !**done && !**gone);
        let indices: Vec<u32> = open.map(|(index, _)| index).collect();
        let controller = self.open.clients.as_ref();
        let name = |index| controller.map(|clients| clients.name(index));
        indices.into_iter().filter_map(name).collect()
    }

    fn cancel(&mut self, reason: &str) -> Result<(), Error> {
        clients(self.open)?.cancel(reason)?;
        Ok(())
    }

    fn take(&mut self, event: Event, sink: Sink<'_>) -> Result<(), Error> {
        match event {
            Event::Begun { agent, began } => {
                if let Some(begun) = self.begun.get_mut(agent as usize) {
                    *begun = true;
                }
                self.merger.begun(agent, began);
            }
            Event::Window {
                agent,
                server,
                window,
            } => {
                self.merger
                    .add(agent, server, window)
                    .map_err(out_of_bounds)?;
            }
            Event::ServerDone { agent, server } => self.merger.server_done(agent, server),
            Event::Done {
                agent,
                summary,
                realtime,
            } => {
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

    /// An agent will not go on: loading is given up, a run goes on without it.
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
            self.cancel("an agent is lost")?;
            return Err(error);
        }
        self.context.warning(error.to_string());
        self.losses.push(error);
        Ok(())
    }

    /// Looks after servers, and names who lags.
    fn check(&mut self) -> Result<(), Error> {
        match self.open.server_fault(Duration::from_millis(1))? {
            Some(error) if self.open.starts_servers() => {
                self.cancel("a server host is lost")?;
                return Err(error);
            }
            // Only what reads the machine is known to be lost: clients say whether the server is.
            Some(error) => self.context.warning(format!("{error:#}")),
            None => {}
        }
        self.check_limits()?;
        self.collect();
        let controller = clients(self.open)?;
        let hanging = controller.lagging(HANGING + self.phases.plan.client.give_up.0);
        for agent in controller.lagging(LAGGING) {
            // What it did last changes; who it is does not.
            let who = agent.split(" (").next().unwrap_or_default().to_owned();
            if self.named.insert(who) {
                self.context.warning(format!("no window came from {agent}"));
            }
        }
        if !hanging.is_empty() {
            self.cancel("an agent hangs")?;
            let text = format!(
                "no window has come for a long time from {}",
                hanging.join(", ")
            );
            return Err(Error::new(Kind::Environment, text));
        }
        Ok(())
    }

    /// Fetches what agents have read of their hosts. A run does not end for the sake of it: if Redis has gone, the next word to
    /// the agents says so.
    fn collect(&mut self) {
        let mut sources = self.readings.borrow_mut();
        let Some(sources) = sources.as_mut() else {
            return;
        };
        for (is_server, controller) in [
            (false, &mut self.open.clients),
            (true, &mut self.open.servers),
        ] {
            let Some(controller) = controller else {
                continue;
            };
            match controller.readings() {
                Ok(readings) => {
                    for reading in readings {
                        sources.take(is_server, controller.local_ns(reading.at_ns), reading);
                    }
                }
                // The other controller would wait for it once more.
                Err(error) => {
                    let text = format!("readings of hosts are missing: {error}");
                    self.context.warning(text);
                    return;
                }
            }
        }
        sources.heard();
    }

    /// Nobody is waited for without an end.
    fn check_limits(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let is_over = |limit: Option<Instant>| limit.is_some_and(|limit| now >= limit);
        let (step, waiting, within) = if is_over(self.begun_by) {
            self.begun_by = None;
            let all = self.begun.iter().zip(&self.ended);
            let begun: Vec<bool> = all
                .map(|(begun, ended)| *begun || ended.is_some())
                .collect();
            ("begun", self.without(&begun), self.fleet.lease.0 + LAGGING)
        } else if is_over(self.done_by) {
            self.done_by = None;
            let within = self.phases.plan.client.give_up.0 + HANGING;
            ("done after the end of the run", self.waiting(), within)
        } else {
            return Ok(());
        };
        if waiting.is_empty() {
            return Ok(());
        }
        self.cancel("agents are late")?;
        Err(FleetError::Late {
            step: step.into(),
            within,
            waiting,
        }
        .into())
    }

    /// A server host that has gone is why its clients fail; it takes a lease until that is known.
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

    /// The end of a run that has lost agents.
    fn judge(&mut self) -> Result<(), Error> {
        let Some(first) = self.losses.first().cloned() else {
            return Ok(());
        };
        let lost = self.losses.len();
        let error = self.cause(Error::from(first))?;
        let of = self.gone.len();
        Err(error.context(format!(
            "{lost} of {of} agents were lost; the others went on"
        )))
    }

    /// Closes what is open, and writes down what became of everybody.
    fn finish(self, sink: Sink<'_>) -> Result<(), Error> {
        let FleetRun {
            open,
            phases,
            shares,
            merger,
            ended,
            base_ns,
            targets,
            ..
        } = self;
        let (last, outcome): (Vec<Merged>, Outcome) = merger.finish().map_err(out_of_bounds)?;
        for merged in last {
            pass(merged, &targets, base_ns, sink)?;
        }
        record::extend(
            &mut phases.record.borrow_mut(),
            open,
            phases,
            &shares,
            outcome,
            ended,
        );
        Ok(())
    }
}

/// Hands on a window, which counts from the common instant, with those of the single servers.
fn pass(merged: Merged, targets: &[u32], base_ns: u64, sink: Sink<'_>) -> Result<(), Error> {
    let (mut window, mut servers) = (merged.window, merged.servers);
    window.start_ns = window.start_ns.saturating_add(base_ns);
    let of_server = |server: &u32| {
        let own = servers.remove(server);
        // After the load phase rates of servers add up to that of all.
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
    let window = Window {
        pairs: targets.iter().map(of_server).collect(),
        merged: window,
    };
    sink(window).map_err(|error| dyno_load::LoadError::Sink(error).into())
}
