//! The phases of a session: performed by the load engine or a fleet, and observed while they run.

use super::Session;
use super::consumption::fleet::of_resources;
use super::consumption::{ConsumptionMeter, EndedMeter, Starts, WRITING_BACK};
use super::observation;
use super::sink::WindowSink;
use crate::deployment::DeploymentUnderTest;
use crate::deployment::placement;
use crate::deployment::server::ServerUnderTest;
use crate::error::Error;
use crate::load_source::{PhaseGroup, Phases};
use crate::observer::Expectation;
use crate::recording::roles::Tables;
use crate::run::options::Extent;
use crate::run::trace::io::{Attached, Completed, RunTrace};
use crate::run::trace::{self, Watched, Watchers};
use dyno_load::job::RetryRule;
use dyno_load::job::{Job, OnPlanned, Pair, PhaseSpec, ProcessUsage};
use dyno_load::standstill::StandstillWatch;
use dyno_load::workload::Workload;
use dyno_load::{LoadError, Window};
use dyno_observe::usage::UsageSampler;
use dyno_plan::Plan;
use dyno_plan::model::Schedule;
use dyno_plan::units::Span;
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, ResourceUse};
use dyno_record::statement;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest time for a server to report the roles of its files: it may hang, and a trace is useful
/// without them.
const FILE_NAMES_LIMIT: Duration = Duration::from_secs(2);

impl Session<'_> {
    pub(super) fn load(
        &mut self,
        targets: &[LoadTarget],
        documents: u64,
        deployment: &mut DeploymentUnderTest,
    ) -> Result<(), Error> {
        let client = &self.plan.client;
        let clients = client.load_clients.unwrap_or(client.clients);
        let expected =
            Expectation { kind: PhaseKind::Load, duration: None, operations: Some(documents) };
        // YCSB also throttles and limits its load phase.
        let blind = self.options.extent == Extent::BlindLoad;
        let duration = self.plan.phases.duration.map(|duration| duration.0);
        let spec = PhaseSpec {
            kind: PhaseKind::Load,
            duration: duration.filter(|_| blind),
            operations: targets.iter().filter_map(|(_, workload)| workload.load_operations()).max(),
        };
        let schedule = if blind { load_schedule(self.plan) } else { Schedule::Closed {} };
        self.begin(targets, &[expected], None);
        let part = JobPart {
            phases: vec![spec],
            schedule,
            clients,
            retry: self.options.retry,
            abort_on_failure: self.options.abort_load,
        };
        self.drive(part, targets, deployment)
            .map_err(|failure| failure.context("the load phase failed"))
    }

    pub(super) fn measure(
        &mut self,
        targets: &[LoadTarget],
        deployment: &mut DeploymentUnderTest,
    ) -> Result<(), Error> {
        let specs = PhaseSpec::run_from_plan(self.plan);
        let expected: Vec<Expectation> = specs
            .iter()
            .map(|spec| Expectation {
                kind: spec.kind,
                duration: spec.duration,
                operations: spec.operations.map(|count| match self.context.source {
                    Some(source) => source.operations(self.plan, count),
                    None => count.saturating_mul(targets.len() as u64),
                }),
            })
            .collect();
        let offered = self.plan.schedule.rate_per_s();
        self.begin(targets, &expected, offered);
        let part = JobPart {
            phases: specs,
            schedule: self.plan.schedule.clone(),
            clients: self.plan.client.clients,
            retry: RetryRule::default(),
            abort_on_failure: false,
        };
        self.drive(part, targets, deployment).map_err(|failure| failure.context("the run failed"))
    }

    /// Announces phases to the recorders. The offered rate is for one server.
    fn begin(
        &mut self,
        targets: &[LoadTarget],
        expected: &[Expectation],
        offered_rate_per_s: Option<f64>,
    ) {
        // Agents count their own keys.
        let alone = match (targets, self.context.source) {
            ([(_, workload)], None) => Some(Arc::clone(workload)),
            _ => None,
        };
        let offered = match self.context.source {
            Some(source) => offered_rate_per_s.and_then(|_| source.offered_rate_per_s(self.plan)),
            None => offered_rate_per_s.map(|rate| rate * targets.len() as f64),
        };
        self.recorder.begin(alone, expected.to_vec(), offered);
        for (number, workload) in targets {
            if let Some(instance) = self.instances.get_mut(*number) {
                let (workload, offered) = match self.context.source {
                    Some(_) => (None, offered_rate_per_s.and(instance.offered_rate_per_s)),
                    None => (Some(Arc::clone(workload)), offered_rate_per_s),
                };
                let recorder = &mut instance.recorder;
                recorder.begin(workload, expected.to_vec(), offered);
            }
        }
    }

    /// Runs phases and passes their windows to the recorders, even if they end with a fault.
    fn drive(
        &mut self,
        part: JobPart,
        targets: &[LoadTarget],
        deployment: &mut DeploymentUnderTest,
    ) -> Result<(), Error> {
        let stop = self.context.cancel.phase_flag();
        let phases: Vec<PhaseKind> = part.phases.iter().map(|phase| phase.kind).collect();
        let processes = deployment.processes();
        let (plan, clock) = (self.plan, self.clock);
        let attached = Attached::new(plan, &phases, processes.clone(), &self.directory, clock)?;
        let watchers = Arc::new(Mutex::new(Watchers::new(attached)));
        let data_folders = self.data_folders(deployment);
        // In a fleet, the agents know the servers and the starts of the phases.
        let meter =
            self.context.source.is_none().then(|| {
                ConsumptionMeter::new(deployment, &data_folders, plan.observe.server, clock)
            });
        let starts = meter.as_ref().map(ConsumptionMeter::starts);
        let threads = (plan.client.threads.min(part.clients).max(1)) as usize;
        let job = match self.context.source {
            Some(_) => None,
            None => {
                let servers = &deployment.servers;
                Some(Job {
                    on_planned: Some(self.on_planned(Arc::clone(&watchers), starts, deployment)),
                    on_ended: meter.as_ref().map(ConsumptionMeter::on_ended),
                    ..self.job(part, targets, servers, Arc::clone(&stop))?
                })
            }
        };
        let guard = self.options.guard.as_ref().map(|guard| {
            let own = std::iter::once(self.directory.clone());
            guard.watch(own.chain(data_folders.iter().cloned()).collect())
        });
        let servers = observation::server_processes(deployment).unwrap_or_default();
        let sampled = match servers.is_empty() {
            true => &[][..],
            false => &data_folders[..],
        };
        // With fewer targets than clients the workers have other numbers.
        let is_whole = targets.len() == deployment.servers.len();
        let is_local = deployment.servers.iter().all(ServerUnderTest::is_local);
        let limits = self.options.limits.clone();
        let mut sink = WindowSink {
            recorder: &mut self.recorder,
            instances: &mut self.instances,
            targets,
            placement: self.placement.as_ref().filter(|_| is_whole),
            threads,
            guard,
            limits: limits.map(|limits| limits.watch(self.plan.counted_operations(), &processes)),
            sampler: UsageSampler::new(Path::new("/"), &servers, sampled),
            deployment: &mut *deployment,
            clock,
            stop: Arc::clone(&stop),
            clients: None,
            fault: None,
            enough: None,
            ended: false,
        };
        sink.sample();
        // Without its thread a standstill is not noticed, but the load is still measured.
        let standstill = job.is_some().then(|| StandstillWatch::start(clock).ok());
        let standstill = standstill.flatten();
        let mut take = |window: Window| sink.take(&window);
        let result = match (job, self.context.source) {
            (Some(job), _) => {
                dyno_load::run(job, &mut take).map_err(|error| of_target(error, targets))
            }
            (None, Some(source)) => {
                let is_load = phases.contains(&PhaseKind::Load);
                let phases = Phases {
                    group: if is_load { PhaseGroup::Load } else { PhaseGroup::Run },
                    plan,
                    servers: self.keeps.clone(),
                    threads: self.task.threads,
                    clock,
                    stop: &stop,
                    record: &self.fleet,
                };
                source.perform(&phases, self.context, &mut take)
            }
            (None, None) => Ok(()),
        };
        let metered = meter.map(ConsumptionMeter::end);
        sink.end();
        let (sampler, clients) = (sink.sampler, sink.clients);
        let (fault, ended) = (sink.fault, sink.ended);
        self.ended_early = sink.enough;
        let stopped = standstill.map(StandstillWatch::end);
        self.keep_events(stopped.unwrap_or_default(), deployment);
        self.keep_watched(&watchers, deployment);
        self.keep_use(&sampler, is_local);
        self.keep_consumption(metered, &phases, deployment);
        self.keep_clients(clients);
        match result {
            Ok(()) if fault.is_some() => fault.map_or(Ok(()), Err),
            Ok(()) if ended => Err(LoadError::Unreachable(None).into()),
            result => result,
        }
    }

    /// Records the consumption. Started servers first write their pending changes.
    fn keep_consumption(
        &mut self,
        metered: Option<EndedMeter>,
        phases: &[PhaseKind],
        deployment: &DeploymentUnderTest,
    ) {
        let Some(metered) = metered else {
            return self.keep_consumption_of_fleet(deployment);
        };
        let cancel = self.context.cancel;
        let writes = phases.contains(&PhaseKind::Load) || self.plan.operations.has_writes();
        let writes_back = writes && deployment.is_started() && !cancel.requested();
        let consumption = self.context.noting(WRITING_BACK, || metered.finish(writes_back, cancel));
        self.document.consumption.extend(consumption);
    }

    /// Records the consumption that the agents of a fleet read.
    fn keep_consumption_of_fleet(&mut self, deployment: &DeploymentUnderTest) {
        let every_s = self.plan.observe.interval.0.as_secs_f64();
        let servers = deployment.servers.len();
        for phase in self.recorder.phases() {
            let ends_s = [phase.start_s, phase.start_s + phase.duration_s];
            let all = &mut self.document.consumption;
            if all.iter().all(|known| known.phase != phase.name) {
                let used = &self.document.resources;
                all.extend(of_resources(used, phase.name, ends_s, servers, every_s));
            }
        }
    }

    /// Records the results of all observers of the phases.
    fn keep_watched(&mut self, watchers: &Mutex<Watchers>, deployment: &DeploymentUnderTest) {
        if self.context.source.is_some() {
            self.document.fleet = Some(self.fleet.borrow().clone());
        }
        let watchers = std::mem::replace(
            &mut *watchers.lock().unwrap_or_else(PoisonError::into_inner),
            Watchers::new(None),
        );
        let (watched, traced) = watchers.end();
        self.keep_traces(watched);
        if let Some(traced) = traced {
            self.keep_io_trace(traced, deployment);
        }
    }

    /// Records whether the clients ran where planned, if known.
    fn keep_clients(&mut self, deviations: Option<Vec<Caveat>>) {
        // The load phase has the same places, but may be too short to check.
        if let Some(caveats) = deviations
            && self.clients_as_planned.is_none()
        {
            self.clients_as_planned = Some(caveats.is_empty());
            self.caveats.extend(caveats);
        }
    }

    /// Records the utilization, where it is known.
    fn keep_use(&mut self, sampler: &UsageSampler, is_local: bool) {
        // In a fleet, other hosts run the load and the servers, and their agents report the use.
        match self.context.source {
            None if is_local => {
                self.keep_usage(|phase, start_s, end_s| sampler.between(phase, start_s, end_s));
            }
            None => {}
            Some(source) => {
                let record = self.fleet.borrow().clone();
                self.keep_usage(|phase, start_s, end_s| {
                    source.server_use(&record, phase, start_s, end_s)
                });
            }
        }
    }

    /// Records the utilization of resources in the phases that have just ended.
    fn keep_usage(&mut self, between: impl Fn(PhaseKind, f64, f64) -> Vec<ResourceUse>) {
        for phase in self.recorder.phases() {
            let is_known = |known: &ResourceUse| known.phase == phase.name;
            if !self.document.resources.iter().any(is_known) {
                let end_s = phase.start_s + phase.duration_s;
                let found = between(phase.name, phase.start_s, end_s);
                self.document.resources.extend(found);
            }
        }
    }

    /// Starts the watching programs once the starts of the phases are known.
    fn on_planned(
        &self,
        watchers: Arc<Mutex<Watchers>>,
        starts: Option<Sender<Starts>>,
        deployment: &DeploymentUnderTest,
    ) -> OnPlanned {
        let traces = self.plan.traces.clone();
        let subject = trace::Subject {
            run: self.directory.clone(),
            servers: deployment.processes(),
            clock: self.clock,
        };
        Box::new(move |phases| {
            if let Some(starts) = starts {
                // Sending fails only if the thread has died; then nothing is counted.
                let _ = starts.send(phases.to_vec());
            }
            let mut watchers = watchers.lock().unwrap_or_else(PoisonError::into_inner);
            watchers.start(&traces, phases, &subject);
        })
    }

    /// Records the results of the watching programs, with a caveat for each failure.
    fn keep_traces(&mut self, watched: Vec<Watched>) {
        for Watched { record, fault } in watched {
            if let Some(fault) = fault {
                let (name, directory) = (&record.name, &record.directory);
                self.context.warning(format!(
                    "trace `{name}` failed: {fault}; see `{directory}` in the folder of the run"
                ));
                let statement = statement!(
                    "trace-failed",
                    trace = &record.name,
                    fault = fault.to_string(),
                    directory = &record.directory
                );
                let kind = CaveatKind::ProbeUnavailable;
                self.caveats.push(Caveat::of_run(kind, statement));
            }
            self.document.traces.push(record);
        }
    }

    /// Completes the trace of file I/O and records its result.
    fn keep_io_trace(&mut self, traced: RunTrace, deployment: &DeploymentUnderTest) {
        let tables = || {
            let mut all = Tables::default();
            for server in &deployment.servers {
                let asked = server.control().ok().and_then(|mut control| {
                    control.set_limit(Some(FILE_NAMES_LIMIT));
                    Tables::ask(&mut control).ok()
                });
                // A server that has ended reports nothing, but the trace is still useful.
                all.join(asked.unwrap_or_default());
            }
            all
        };
        let Completed { record, fault, trace } = traced.finish(tables);
        self.trace = trace;
        if let Some(fault) = fault {
            let statement = statement!(
                "io-trace-failed",
                fault = fault.to_string(),
                directory = &record.directory
            );
            let kind = CaveatKind::ProbeUnavailable;
            self.caveats.push(Caveat::of_run(kind, statement));
        }
        self.document.traces.push(record);
    }

    fn job(
        &self,
        part: JobPart,
        targets: &[LoadTarget],
        servers: &[ServerUnderTest],
        stop: Arc<AtomicBool>,
    ) -> Result<Job, Error> {
        let mut pairs = Vec::new();
        for (number, workload) in targets {
            let server = &servers[*number];
            let placement = self.placement.as_ref();
            let place = placement.map(|placement| placement.of_client(*number, servers.len()));
            let place = place.unwrap_or_default();
            pairs.push(Pair {
                cpus: placement::cpus_of(&place),
                memory: placement::memory_setter(&place)?,
                ..Pair::from_plan(self.plan, Arc::clone(workload), server.backend()?)
            });
        }
        Ok(Job {
            phases: part.phases,
            schedule: part.schedule,
            retry: part.retry,
            abort_on_failure: part.abort_on_failure,
            clock: self.clock,
            stop,
            usage: Some(usage),
            ..Job::from_plan(self.plan, pairs)
        })
    }
}

/// Differences between the load phase and the other phases.
struct JobPart {
    phases: Vec<PhaseSpec>,
    schedule: Schedule,
    clients: u32,
    retry: RetryRule,
    abort_on_failure: bool,
}

/// Number and workload of a server in a phase.
pub(super) type LoadTarget = (usize, Arc<Workload>);

/// Converts the target number of an error into the server's number.
fn of_target(error: LoadError, targets: &[LoadTarget]) -> Error {
    match error {
        LoadError::Pair { pair, source } if targets.len() > pair => {
            let number = targets[pair].0;
            Error::from(*source).context(format!("instance {number} failed"))
        }
        error => error.into(),
    }
}

/// Schedule of a throttled load. Its rate counts documents, the engine's counts commands. No
/// command may be dropped, because each is a part of the data set.
fn load_schedule(plan: &Plan) -> Schedule {
    let mut schedule = plan.schedule.clone();
    if let Some(rate_per_s) = schedule.rate_mut() {
        *rate_per_s /= f64::from(plan.client.batch.max(1));
    }
    if let Schedule::Constant { max_start_delay, .. } | Schedule::Poisson { max_start_delay, .. } =
        &mut schedule
    {
        *max_start_delay = Span::from_secs(u64::from(u32::MAX));
    }
    schedule
}

/// CPU time and memory of this process for the load engine.
pub fn usage() -> ProcessUsage {
    let usage = dyno_observe::process::usage_self();
    ProcessUsage {
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        max_rss_bytes: usage.max_rss_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = dyno_plan::builtin::find("d").expect("it is built in");
        plan.client.clients = 2;
        plan
    }

    #[test]
    fn a_throttled_load_counts_documents_and_drops_none() {
        let mut plan = plan();
        plan.client.batch = 10;
        plan.schedule =
            Schedule::Constant { rate_per_s: 500.0, max_start_delay: Span::from_secs(1) };
        let Schedule::Constant { rate_per_s, max_start_delay } = load_schedule(&plan) else {
            panic!("it stays constant")
        };
        assert_eq!(rate_per_s, 50.0);
        assert!(max_start_delay > Span::from_secs(1_000_000));
        plan.schedule = Schedule::Closed {};
        assert_eq!(load_schedule(&plan), Schedule::Closed {});
    }
}
