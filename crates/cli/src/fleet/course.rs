//! Phases on a whole fleet, from shares to merged windows.

use super::record::{self, Ended};
use super::relays::Relays;
use super::{Open, agent::Summary, plan_text, unbounded};
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use dyno_fleet::FleetError;
use dyno_fleet::agent::Start;
use dyno_fleet::clock::monotonic_ns;
use dyno_fleet::controller::{Controller, Event};
use dyno_fleet::merge::{Began, DEFAULT_LAG, MergeOptions, Merged, Merger, Outcome};
use dyno_fleet::protocol::{Stage, Work};
use dyno_fleet::shares::{Share, shares};
use dyno_load::clock::Clock;
use dyno_load::{Sink, WINDOW_NS, Window};
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::task::Threads;
use dyno_record::model::FleetRecord;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// What all agents are to do together.
pub(crate) struct Phases<'a> {
    /// Loading, or warm-up and measuring.
    pub(crate) stage: Stage,
    pub(crate) plan: &'a Plan,
    /// Number of each server that takes part, and whether documents that it has stay.
    pub(crate) parties: Vec<(usize, bool)>,
    pub(crate) threads: Threads,
    /// Clock of the windows.
    pub(crate) clock: Clock,
    /// Set to end early.
    pub(crate) stop: &'a AtomicBool,
    /// Filled with what becomes of it, also with a fault.
    pub(crate) record: &'a std::cell::RefCell<FleetRecord>,
    /// Where readings of hosts go, if the plan wants them.
    pub(crate) relays: &'a std::cell::RefCell<Option<Relays>>,
}

impl Phases<'_> {
    fn fleet(&self) -> Result<&FleetPlan, Failure> {
        let fleet = self.plan.fleet.as_ref();
        fleet.ok_or_else(|| Failure::new(Exit::BadInput, "the plan has no table `[fleet]`"))
    }
}

pub(super) fn perform(
    open: &mut Open,
    phases: &Phases<'_>,
    offered_rate_per_s: Option<f64>,
    hands: Hands<'_>,
    sink: Sink<'_>,
) -> Result<(), Failure> {
    let fleet = phases.fleet()?;
    let shares = of_stage(open, phases)?;
    let agents = shares.iter().zip(&open.agents);
    let merger = Merger::new(MergeOptions {
        interval_ns: WINDOW_NS,
        lag: DEFAULT_LAG,
        offered_rate_per_s,
        agents: agents
            .map(|(share, agent)| (agent.host.name.clone(), share.describe()))
            .collect(),
    });
    let agents_per_host = match open.is_on_hosts() {
        true => fleet.agents_per_host,
        false => 1,
    };
    if let Some(relays) = phases.relays.borrow_mut().as_mut() {
        expect_hosts(open, agents_per_host, relays);
    }
    phases.record.borrow_mut().clients = shares.iter().map(Share::clients).sum();
    let threads = match phases.threads {
        Threads::Given(threads) => Some(threads),
        Threads::Shared(_) => None,
    };
    let work = Work {
        plan: plan_text(phases.plan),
        servers: open.uris.clone(),
        stages: vec![phases.stage],
        threads,
        agents_per_host,
        ..Work::default()
    };
    clients(open)?.give(work, &shares)?;
    let mut course = Course {
        ended: open.agents.iter().map(|_| None).collect(),
        gone: vec![false; open.agents.len()],
        begun: vec![false; open.agents.len()],
        limits: Limits::default(),
        open,
        phases,
        fleet,
        hands,
        merger,
        base_ns: 0,
        named: BTreeSet::new(),
        losses: Vec::new(),
    };
    let result = course.run(sink);
    if result.is_ok() {
        course.collect();
    }
    let finished = course.finish(sink);
    result.and(finished)
}

fn clients(open: &mut Open) -> Result<&mut Controller, Failure> {
    let clients = open.clients.as_mut();
    clients.ok_or_else(|| Failure::new(Exit::Internal, "the fleet has been closed"))
}

/// The first agent of each host reads it, and that of a server reads its own.
fn expect_hosts(open: &Open, agents_per_host: u32, relays: &mut Relays) {
    for agent in open.agents.iter().step_by(agents_per_host.max(1) as usize) {
        relays.expect((false, agent.index), &agent.host.name);
    }
    for server in &open.server_hosts {
        relays.expect((true, server.index), &server.host.name);
    }
}

/// Shares of all agents; of loading those of servers that lack documents.
fn of_stage(open: &Open, phases: &Phases<'_>) -> Result<Vec<Share>, Failure> {
    let (agents, servers) = (open.agents.len() as u32, open.uris.len() as u32);
    let mut all =
        shares(phases.plan, agents, servers).map_err(|error| Failure::of(Exit::BadInput, error))?;
    for link in all.iter_mut().flat_map(|share| &mut share.links) {
        let mut parties = phases.parties.iter();
        match parties.find(|(number, _)| *number == link.server as usize) {
            Some((_, keep_existing)) => link.keep_existing = *keep_existing,
            None => link.load_count = 0,
        }
    }
    Ok(all)
}

/// Instants by which something must have happened.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    begun: Option<Instant>,
    done: Option<Instant>,
}

struct Course<'a, 'b> {
    open: &'a mut Open,
    phases: &'a Phases<'b>,
    fleet: &'a FleetPlan,
    hands: Hands<'a>,
    merger: Merger,
    /// The common instant on the clock of the run.
    base_ns: u64,
    ended: Vec<Option<Ended>>,
    gone: Vec<bool>,
    begun: Vec<bool>,
    /// When everything is late: all must have begun, and a run of known length must be over.
    limits: Limits,
    /// Agents that were named because they lag.
    named: BTreeSet<String>,
    losses: Vec<FleetError>,
}

impl Course<'_, '_> {
    fn run(&mut self, sink: Sink<'_>) -> Result<(), Failure> {
        if !self.barrier()? {
            return Ok(());
        }
        let start = clients(self.open)?.start(self.phases.stage, self.fleet.start_lead.0)?;
        self.set_base(&start);
        let (now, lead) = (Instant::now(), self.fleet.start_lead.0);
        let until = match self.phases.stage {
            Stage::Load => Some(now + self.fleet.load_within.0),
            _ => None,
        };
        self.limits.begun = Some(now + lead + self.fleet.lease.0 + LAGGING);
        if let (Stage::Run, Some(duration)) = (self.phases.stage, self.phases.plan.phases.duration)
        {
            let phases = self.phases.plan.phases.warmup.0 + duration.0;
            let give_up = self.phases.plan.client.give_up.0;
            self.limits.done = Some(now + lead + phases + give_up + HANGING);
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
    fn barrier(&mut self) -> Result<bool, Failure> {
        let until = Instant::now() + CONNECT_WITHIN + self.fleet.lease.0;
        loop {
            if self.is_stopped() {
                self.cancel("the controller was asked to end")?;
                return Ok(false);
            }
            match clients(self.open)?.barrier(self.phases.stage, LOOK_EVERY) {
                Ok(()) => return Ok(true),
                Err(FleetError::Late { .. }) if Instant::now() < until => {}
                Err(mut error) => {
                    if let FleetError::Late { within, .. } = &mut error {
                        *within = CONNECT_WITHIN + self.fleet.lease.0;
                    }
                    let failure = self.cause(Failure::from(error))?;
                    self.cancel("not all agents are ready")?;
                    return Err(failure);
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
        self.hands.interrupt.requested() || self.phases.stop.load(Ordering::Relaxed)
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

    fn cancel(&mut self, reason: &str) -> Result<(), Failure> {
        clients(self.open)?.cancel(reason)?;
        Ok(())
    }

    fn take(&mut self, event: Event, sink: Sink<'_>) -> Result<(), Failure> {
        match event {
            Event::Begun {
                agent,
                late_ns,
                uncertainty_ns,
                windows_from_ns,
                ..
            } => {
                if let Some(begun) = self.begun.get_mut(agent as usize) {
                    *begun = true;
                }
                self.merger.begun(
                    agent,
                    Began {
                        late_ns,
                        uncertainty_ns,
                        windows_from_ns,
                    },
                );
            }
            Event::Window { agent, window } => {
                self.merger.add(agent, window).map_err(unbounded)?;
            }
            Event::Done {
                agent,
                summary,
                realtime,
                ..
            } => {
                let summary: Summary = serde_json::from_value(summary)
                    .map_err(|error| Failure::of(Exit::Internal, error))?;
                self.merger.ended(agent);
                if let Some(ended) = self.ended.get_mut(agent as usize) {
                    *ended = Some(Ended { summary, realtime });
                }
            }
            Event::Missing { error, .. } => {
                if let FleetError::MessagesLost { count, .. } = &error {
                    self.merger.missing(*count);
                }
                self.hands.messages.warning(&error.to_string());
            }
            Event::Gone { agent, error } => self.lose(agent, error)?,
        }
        for merged in self.merger.closed().map_err(unbounded)? {
            pass(merged, self.base_ns, sink)?;
        }
        Ok(())
    }

    /// An agent will not go on: loading is given up, a run goes on without it.
    fn lose(&mut self, agent: u32, error: FleetError) -> Result<(), Failure> {
        self.merger.lost(agent, &error.to_string());
        if let Some(gone) = self.gone.get_mut(agent as usize) {
            *gone = true;
        }
        let has_ended = self.ended.get(agent as usize).is_some_and(Option::is_some);
        if has_ended {
            return Ok(());
        }
        if self.phases.stage == Stage::Load {
            let failure = self.cause(Failure::from(error))?;
            self.cancel("an agent is lost")?;
            return Err(failure);
        }
        self.hands.messages.warning(&error.to_string());
        self.losses.push(error);
        Ok(())
    }

    /// Looks after servers, and names who lags.
    fn check(&mut self) -> Result<(), Failure> {
        match self.open.server_fault(Duration::from_millis(1))? {
            Some(failure) if self.open.is_on_hosts() => {
                self.cancel("a server host is lost")?;
                return Err(failure);
            }
            // Only what reads the node is known to be lost: clients say whether the server is.
            Some(failure) => {
                let text = format!("{:#}", failure.error);
                self.hands.messages.warning(&text);
            }
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
                self.hands
                    .messages
                    .warning(&format!("no window came from {agent}"));
            }
        }
        if !hanging.is_empty() {
            self.cancel("an agent hangs")?;
            let text = format!("no window came for very long from {}", hanging.join(", "));
            return Err(Failure::new(Exit::Environment, text));
        }
        Ok(())
    }

    /// Fetches what agents have read of their hosts. A run does not end for the sake of it: if Redis has gone, the next word to
    /// the agents says so.
    fn collect(&mut self) {
        let mut relays = self.phases.relays.borrow_mut();
        let Some(relays) = relays.as_mut() else {
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
                        relays.take(is_server, controller.local_ns(reading.at_ns), reading);
                    }
                }
                // The other controller would wait for it once more.
                Err(error) => {
                    let text = format!("readings of hosts are missing: {error}");
                    self.hands.messages.warning(&text);
                    return;
                }
            }
        }
        relays.heard();
    }

    /// Nobody is waited for without an end.
    fn check_limits(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        let is_over = |limit: Option<Instant>| limit.is_some_and(|limit| now >= limit);
        let late = match self.limits {
            Limits { begun, .. } if is_over(begun) => {
                self.limits.begun = None;
                let begun: Vec<bool> = self
                    .begun
                    .iter()
                    .zip(&self.ended)
                    .map(|(begun, ended)| *begun || ended.is_some())
                    .collect();
                ("begun", self.without(&begun), self.fleet.lease.0 + LAGGING)
            }
            Limits { done, .. } if is_over(done) => {
                self.limits.done = None;
                let give_up = self.phases.plan.client.give_up.0;
                (
                    "done after the end of the run",
                    self.waiting(),
                    give_up + HANGING,
                )
            }
            _ => return Ok(()),
        };
        let (step, waiting, within) = late;
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
    fn cause(&mut self, failure: Failure) -> Result<Failure, Failure> {
        let patience = self.fleet.lease.0 * 3 / 2;
        let is_of_client = failure
            .error
            .downcast_ref::<FleetError>()
            .is_some_and(|error| matches!(error, FleetError::Failed { .. }));
        Ok(match is_of_client && self.open.is_on_hosts() {
            true => self.open.server_fault(patience)?.unwrap_or(failure),
            false => failure,
        })
    }

    /// The end of a run that has lost agents.
    fn judge(&mut self) -> Result<(), Failure> {
        let Some(first) = self.losses.first().cloned() else {
            return Ok(());
        };
        let lost = self.losses.len();
        let failure = self.cause(Failure::from(first))?;
        let of = self.gone.len();
        Err(failure.context(format!(
            "{lost} of {of} agents were lost; the others went on"
        )))
    }

    /// Closes what is open, and writes down what became of everybody.
    fn finish(self, sink: Sink<'_>) -> Result<(), Failure> {
        let Course {
            open,
            phases,
            merger,
            ended,
            base_ns,
            ..
        } = self;
        let (last, outcome): (Vec<Merged>, Outcome) = merger.finish().map_err(unbounded)?;
        for merged in last {
            pass(merged, base_ns, sink)?;
        }
        record::extend(
            &mut phases.record.borrow_mut(),
            open,
            phases,
            outcome,
            ended,
        );
        Ok(())
    }
}

/// Hands on a window, which counts from the common instant.
fn pass(merged: Merged, base_ns: u64, sink: Sink<'_>) -> Result<(), Failure> {
    let mut window = merged.window;
    window.start_ns = window.start_ns.saturating_add(base_ns);
    let window = Window {
        merged: window,
        pairs: Vec::new(),
    };
    sink(window).map_err(|error| dyno_load::LoadError::Sink(error).into())
}
