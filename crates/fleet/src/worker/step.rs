//! A stage on one client host: one job for each server, from ready to done.

use super::watch::HostWatch;
use crate::agent::{Agent, Start};
use crate::clock::monotonic_ns;
use crate::error::out_of_bounds;
use crate::protocol::{Step, StepSummary, Work};
use dyno_engine::Error;
use dyno_engine::deployment::placement::ClientsAlone;
use dyno_engine::run::usage;
use dyno_load::LoadError;
use dyno_load::clock::Clock;
use dyno_load::job::{Job, ProcessUsage};
use dyno_load::standstill::StandstillWatch;
use dyno_observe::usage::UsageSampler;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::{IntervalRecord, WindowCounts};
use dyno_record::model::{Event, PhaseKind, PhaseRecord, PlacementRecord};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for a message. The lease detects much earlier that the controller has gone.
pub(super) const FOREVER: Duration = Duration::from_secs(366 * 86_400);
/// Interval of the checks for cancellation and messages.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Shortest phase for which utilization is reported: usage is sampled once per second.
const SHORTEST_S: f64 = 1.0;
/// Message from a job's thread.
pub(super) enum Report {
    /// All connections are made, and the job waits for the start.
    Ready(SyncSender<Option<u64>>),
    /// All of its workers have started.
    Begun {
        /// Start that its windows count from, on the run's clock.
        planned_ns: u64,
        /// Start of the last worker.
        awake_ns: u64,
    },
    Window(Box<IntervalRecord>),
    Ended(Result<(), LoadError>),
}

#[derive(Clone)]
pub(super) struct Outlet {
    pub(super) link: u32,
    pub(super) reports: Sender<(u32, Report)>,
}

impl Outlet {
    pub(super) fn send(&self, report: Report) {
        // An abandoned stage has no receiver.
        let _ = self.reports.send((self.link, report));
    }
}

pub(super) fn start(job: Job, outlet: Outlet) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let result = dyno_load::run(job, &mut |window| {
            outlet.send(Report::Window(Box::new(window.merged)));
            Ok(())
        });
        outlet.send(Report::Ended(result));
    })
}

/// A running stage.
pub(super) struct StepRun<'a> {
    pub(super) agent: &'a mut Agent,
    /// Reader of this host, if this agent has one.
    pub(super) watch: Option<&'a HostWatch>,
    pub(super) work: &'a Work,
    pub(super) step: Step,
    pub(super) clock: Clock,
    pub(super) stop: &'a AtomicBool,
    pub(super) threads: u64,
    /// Server number and address of each job.
    pub(super) servers: Vec<(u32, String)>,
    /// Planned placement of the clients, if the plan has one.
    pub(super) placed: Option<&'a ClientsAlone>,
    /// Placement after the clients started, and its deviations from the plan.
    pub(super) achieved: Option<(PlacementRecord, Vec<String>)>,
    pub(super) phases: Vec<PhaseAccumulator>,
    /// Newest interval of any server.
    pub(super) newest: Option<(PhaseKind, u64)>,
    pub(super) sampler: UsageSampler,
    /// Absent if the system allows no more threads; the load is measured all the same.
    pub(super) standstill: Option<StandstillWatch>,
    /// The common instant, and the same instant on the run's clock.
    pub(super) start: Option<(Start, u64)>,
    /// Planned and actual start of each job that has begun.
    pub(super) begun: Vec<(u64, u64)>,
    /// Usage of this process at the last window of the first server.
    pub(super) usage: ProcessUsage,
    /// User and system time of the other servers' threads since then, in nanoseconds.
    pub(super) of_threads: (u64, u64),
}

impl StepRun<'_> {
    pub(super) fn follow(
        &mut self,
        inbox: &Receiver<(u32, Report)>,
        links: u32,
    ) -> Result<bool, Error> {
        let mut waiting = Vec::new();
        let mut going = links;
        let mut fault = None;
        if links == 0 && !self.begin(&mut waiting)? {
            return Ok(false);
        }
        while going > 0 {
            self.agent.check()?;
            if self.agent.is_cancelled(self.work.number) {
                return Ok(false);
            }
            match inbox.recv_timeout(LOOK_EVERY) {
                // A job that is ready after another has failed must not wait for a start that never comes.
                Ok((_, Report::Ready(answer))) if fault.is_some() => drop(answer),
                Ok((_, Report::Ready(answer))) => {
                    waiting.push(answer);
                    if waiting.len() as u32 == links && !self.begin(&mut waiting)? {
                        return Ok(false);
                    }
                }
                Ok((_, Report::Begun { planned_ns, awake_ns })) => {
                    self.begun.push((planned_ns, awake_ns));
                    if self.begun.len() as u32 == links {
                        self.report_begin()?;
                    }
                }
                Ok((link, Report::Window(window))) => self.window(link, *window)?,
                Ok((link, Report::Ended(result))) => {
                    going -= 1;
                    // The controller need not wait for more windows of this server.
                    if let (Some((server, _)), Ok(())) = (self.servers.get(link as usize), &result)
                    {
                        self.agent.server_done(self.work.number, *server)?;
                    }
                    if let Err(error) = result {
                        self.stop.store(true, Ordering::Relaxed);
                        fault.get_or_insert((link, error));
                        // Jobs that still wait for the start would wait forever.
                        waiting.clear();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LoadError::WorkerPanicked.into());
                }
            }
        }
        if let Some((link, error)) = fault {
            let server = self.servers.get(link as usize);
            let server = server.map_or("?", |(_, address)| address);
            return Err(Error::from(error).context(format!("on the server `{server}`")));
        }
        if let Some(watch) = &self.watch {
            watch.read_now();
        }
        let summary = serde_json::to_value(self.summary()).expect("serializable");
        self.agent.done(self.work.number, self.step, summary)?;
        Ok(true)
    }

    /// Waits for the common instant and passes it to all jobs; `false` if the work was cancelled.
    fn begin(&mut self, waiting: &mut Vec<SyncSender<Option<u64>>>) -> Result<bool, Error> {
        let agent = &self.agent;
        let Some(start) = agent.wait_start(self.work.number, self.step, FOREVER)? else {
            return Ok(false);
        };
        let ahead_ns = (start.local_ns - monotonic_ns()).max(0) as u64;
        let start_ns = self.clock.now_ns() + ahead_ns;
        self.start = Some((start, start_ns));
        // CPU time of connecting does not count as load.
        (self.usage, self.of_threads) = (usage(), (0, 0));
        self.sample();
        for answer in waiting.drain(..) {
            let _ = answer.send(Some(start_ns));
        }
        Ok(true)
    }

    /// Reports the beginning once all jobs have begun.
    fn report_begin(&mut self) -> Result<(), Error> {
        let Some((start, start_ns)) = &self.start else {
            return Ok(());
        };
        let after_ns = |at_ns: u64| at_ns as i64 - *start_ns as i64;
        let planned_ns = self.begun.iter().map(|begun| begun.0).max().unwrap_or(0);
        let awake_ns = self.begun.iter().map(|begun| begun.1).max().unwrap_or(0);
        let began_ns = start.local_ns + after_ns(awake_ns);
        let windows_from_ns = after_ns(planned_ns);
        self.agent.begun(start, began_ns, windows_from_ns)?;
        // All workers exist now. Workers of the load phase may end at once, and have the same placement.
        if self.step == Step::Run {
            self.achieved = self.placed.and_then(ClientsAlone::verify);
        }
        Ok(())
    }

    /// Sends a window, counted from the common instant. The agent's own record covers all servers together.
    fn window(&mut self, link: u32, mut window: IntervalRecord) -> Result<(), Error> {
        let start_ns = self.start.as_ref().map_or(0, |(_, start_ns)| *start_ns);
        window.start_ns = window.start_ns.saturating_sub(start_ns);
        self.share_usage(link, &mut window.counts);
        if let Some((server, _)) = self.servers.get(link as usize) {
            self.agent.window(self.work.number, *server, &window)?;
        }
        let interval = Some((window.phase, window.index));
        if self.newest < interval {
            self.newest = interval;
            self.sample();
        }
        let known = self.phases.iter().position(|known| known.phase() == window.phase);
        let place = known.unwrap_or_else(|| {
            self.phases.push(PhaseAccumulator::new(window.phase, None));
            self.phases.len() - 1
        });
        self.phases[place].add(&window).map_err(out_of_bounds)
    }

    /// Gives a window the CPU time of the threads that load its server. The first server's window also gets the rest of the
    /// process, as long as that server is loaded.
    fn share_usage(&mut self, link: u32, counts: &mut WindowCounts) {
        let (user_ns, system_ns) = &mut self.of_threads;
        if link > 0 {
            *user_ns += counts.cpu_user_ns;
            *system_ns += counts.cpu_system_ns;
            return;
        }
        let before = std::mem::replace(&mut self.usage, usage());
        let grown = |now: u64, before: u64, of_others: u64| {
            now.saturating_sub(before).saturating_sub(of_others)
        };
        counts.cpu_user_ns = grown(self.usage.user_ns, before.user_ns, *user_ns);
        counts.cpu_system_ns = grown(self.usage.system_ns, before.system_ns, *system_ns);
        counts.max_rss_bytes = self.usage.max_rss_bytes;
        self.of_threads = (0, 0);
    }

    /// Samples usage on the time axis of the windows.
    fn sample(&mut self) {
        let start_ns = self.start.as_ref().map_or(0, |(_, start_ns)| *start_ns);
        let at_ns = self.clock.now_ns().saturating_sub(start_ns);
        self.sampler.sample(at_ns as f64 / 1e9);
    }

    /// Seconds in which no thread of this process ran, from the common instant on.
    fn stopped_s(&mut self) -> f64 {
        let events = self.standstill.take().map(StandstillWatch::end);
        let start_s = self.start.as_ref().map_or(0.0, |(_, start_ns)| *start_ns as f64 / 1e9);
        let lengths = events.into_iter().flatten().filter_map(|event| match event.event {
            Event::ClientStopped { length_s } => {
                Some((event.at_s + length_s - event.at_s.max(start_s)).max(0.0))
            }
            _ => None,
        });
        lengths.sum()
    }

    fn summary(&mut self) -> StepSummary {
        self.sample();
        let stopped_s = self.stopped_s();
        let phases: Vec<PhaseRecord> =
            self.phases.iter().map(PhaseAccumulator::to_record).collect();
        let is_long = |phase: &&PhaseRecord| phase.duration_s >= SHORTEST_S;
        let used = |phase: &PhaseRecord| {
            let end_s = phase.start_s + phase.duration_s;
            self.sampler.between(phase.name, phase.start_s, end_s)
        };
        let (placement, placed_otherwise) = self.achieved.take().unzip();
        StepSummary {
            threads: self.threads,
            resources: phases.iter().filter(is_long).flat_map(used).collect(),
            phases,
            placement: placement.or_else(|| self.placed.map(ClientsAlone::record)),
            placed_otherwise: placed_otherwise.unwrap_or_default(),
            stopped_s,
        }
    }
}
