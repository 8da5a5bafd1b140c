//! `dyno agent`: what one host does in a run of a fleet. It loads servers, or starts one, as the controller says.

use super::serve;
use super::stage::{self, Course, Outlet, Said, merger};
use super::watch::HostWatch;
use crate::args::AgentArguments;
use crate::exit::{Exit, Failure};
use crate::fleet::{endpoint, version};
use crate::session::execute::{Hands, usage};
use crate::session::server::{ServerPlaces, ServerUnderTest};
use crate::session::task::Remote;
use dyno_fleet::FleetError;
use dyno_fleet::agent::{Agent, AgentOptions};
use dyno_fleet::protocol::{HostFacts, Stage, Work};
use dyno_fleet::shares::{Link, Share};
use dyno_load::clock::Clock;
use dyno_load::job::{Job, Pair, ProcessUsage};
use dyno_load::workload::{LoadTask, Workload};
use dyno_observe::doctor::{self, Subject};
use dyno_observe::usage::UsageSampler;
use dyno_observe::watch::HostSubject;
use dyno_plan::Plan;
use dyno_plan::uri::redact;
use dyno_record::model::{PhaseRecord, ResourceUse};
use dyno_record::verdict::Level;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::time::Duration;

/// Longest wait for a word. The lease says much earlier whether the controller is there.
pub(super) const FOREVER: Duration = Duration::from_secs(366 * 86_400);

/// What an agent tells at the end of a stage.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Summary {
    /// Its phases.
    pub(super) phases: Vec<PhaseRecord>,
    /// Worker threads that it had.
    pub(super) threads: u64,
    /// How busy its host was in them.
    pub(super) resources: Vec<ResourceUse>,
}

/// See the module.
pub(crate) fn agent(arguments: &AgentArguments, hands: Hands<'_>) -> Result<Exit, Failure> {
    let stop = hands.interrupt.stop_flag()?;
    let is_of_server = arguments.serve || !arguments.watch.is_empty();
    let result =
        join(arguments, is_of_server, hands, stop.flag()).and_then(|agent| match is_of_server {
            true => serve::serve(agent, arguments, hands),
            false => Worker {
                agent,
                index: arguments.index,
                folder: &arguments.folder,
                hands,
                watch: None,
            }
            .work_until_the_end(),
        });
    if let (Err(failure), true) = (&result, arguments.remove_folder)
        && is_alone(failure)
    {
        // Nobody comes to take it away. What cannot be removed is told by the error itself.
        let _ = std::fs::remove_dir_all(&arguments.folder);
    }
    result.map(|()| Exit::Done)
}

/// Whether nobody is there any more to clean up behind this agent.
pub(super) fn is_alone(failure: &Failure) -> bool {
    matches!(
        failure.error.downcast_ref::<FleetError>(),
        Some(
            FleetError::ControllerGone { .. }
                | FleetError::RedisGone { .. }
                | FleetError::NoWord { .. }
                | FleetError::Redis { .. }
        )
    )
}

fn join(
    arguments: &AgentArguments,
    is_of_server: bool,
    hands: Hands<'_>,
    stop: Arc<AtomicBool>,
) -> Result<Agent, Failure> {
    let run = match is_of_server {
        true => super::servers_run(&arguments.run)?,
        false => super::run_name(&arguments.run)?,
    };
    let options = AgentOptions {
        endpoint: endpoint(&arguments.redis, hands.surroundings)?,
        run,
        index: arguments.index,
        version: version(),
        host: host_facts(arguments, hands),
        join_within: arguments.join_within.0,
        stop,
    };
    Ok(Agent::join(options)?)
}

fn host_facts(arguments: &AgentArguments, hands: Hands<'_>) -> HostFacts {
    let surroundings = hands.surroundings;
    let free = |folder: &Path| {
        let free = nix::sys::statvfs::statvfs(folder);
        free.map_or(0, |disk| disk.blocks_available() * disk.fragment_size())
    };
    let watched = arguments.watch.iter().map(|server| free(&server.folder));
    // The fullest disk is the one that has to be told.
    let free_disk_bytes = watched.min().unwrap_or_else(|| free(&arguments.folder));
    let facts = doctor::observe(Path::new("/"), &Subject::default());
    let verdicts = doctor::examine(&facts);
    let bad = verdicts
        .iter()
        .filter(|verdict| verdict.level >= Level::Warn);
    // Beside servers it has next to no CPU itself; their machine has all that are online.
    let online = facts
        .cpus
        .as_ref()
        .ok()
        .filter(|_| !arguments.watch.is_empty());
    let online = online.and_then(|cpus| u32::try_from(*cpus).ok());
    let cpus = online.unwrap_or(surroundings.cores);
    HostFacts {
        name: arguments
            .host
            .clone()
            .or(surroundings.hostname.clone())
            .unwrap_or_default(),
        address: None,
        cpus,
        free_disk_bytes,
        findings: bad
            .map(|verdict| format!("{}: {}, {}", verdict.check, verdict.found, verdict.advised))
            .collect(),
    }
}

/// An agent that loads.
pub(super) struct Worker<'a> {
    pub(super) agent: Agent,
    index: u32,
    folder: &'a Path,
    hands: Hands<'a>,
    pub(super) watch: Option<HostWatch>,
}

impl Worker<'_> {
    fn work_until_the_end(mut self) -> Result<(), Failure> {
        let result = self.work();
        match (self.watch.take(), &result) {
            (Some(watch), Err(failure)) if is_alone(failure) => watch.abandon(),
            (watch, _) => drop(watch),
        }
        match &result {
            Ok(()) => self.agent.leave(),
            // Who ends because the others are gone has nobody to tell.
            Err(failure) if is_alone(failure) => drop(self.agent),
            Err(failure) => self.agent.fail(&super::reason(failure)),
        }
        result
    }

    fn work(&mut self) -> Result<(), Failure> {
        while let Some((work, share)) = self.agent.next_work(FOREVER)? {
            let plan = dyno_plan::file::parse(&work.plan, "the plan of the controller")
                .map_err(|error| Failure::of(Exit::Internal, error))?;
            self.watch_host(&work, &plan);
            for stage in &work.stages {
                if !self.stage(&work, &share, &plan, *stage)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The first agent of a host reads it for all.
    fn watch_host(&mut self, work: &Work, plan: &Plan) {
        let is_first = self.index.is_multiple_of(work.agents_per_host.max(1));
        if !is_first || self.watch.as_ref().is_some_and(|watch| watch.fits(plan)) {
            return;
        }
        let subject = HostSubject {
            processes: vec![("client".to_owned(), std::process::id())],
            ..HostSubject::default()
        };
        self.watch = HostWatch::start(plan, subject, self.agent.readings());
    }

    /// One stage; `false` if the work was cancelled.
    fn stage(
        &mut self,
        work: &Work,
        share: &Share,
        plan: &Plan,
        stage: Stage,
    ) -> Result<bool, Failure> {
        let clock = Clock::start();
        let (said, inbox) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (mut parts, mut threads) = (Vec::new(), 0);
        let mut servers = Vec::new();
        self.agent.doing(&format!("connecting for {stage}"))?;
        for link in &share.links {
            let outlet = Outlet {
                link: parts.len() as u32,
                said: said.clone(),
            };
            let links = share.links.len() as u32;
            let job = self.job(work, link, links, plan, stage, clock, &stop, &outlet)?;
            if let Some(job) = job {
                threads += job
                    .pairs
                    .iter()
                    .map(|pair| pair.threads as u64)
                    .sum::<u64>();
                parts.push(stage::start(job, outlet));
                let server = work.servers.get(link.server as usize);
                servers.push(redact(server.map_or("", String::as_str)));
            }
        }
        drop(said);
        let count = parts.len() as u32;
        let mut course = Course {
            worker: self,
            work,
            stage,
            clock,
            stop: &stop,
            threads,
            servers,
            phases: Vec::new(),
            merger: merger(count),
            sampler: UsageSampler::new(Path::new("/"), &[], None),
            start: None,
            begun: Vec::new(),
        };
        let result = course.follow(&inbox, count);
        stop.store(true, Ordering::Relaxed);
        // Answers that nobody waits for any more end the threads that wait for them.
        drop(inbox);
        for part in parts {
            let _ = part.join();
        }
        result
    }

    /// What the engine is to do on one server; `None` if nothing.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is another thing, used once"
    )]
    fn job(
        &self,
        work: &Work,
        link: &Link,
        links: u32,
        plan: &Plan,
        stage: Stage,
        clock: Clock,
        stop: &Arc<AtomicBool>,
        outlet: &Outlet,
    ) -> Result<Option<Job>, Failure> {
        let is_load = stage == Stage::Load;
        let part = match is_load {
            true => match link.load_plan(plan) {
                Some(part) => part,
                None => return Ok(None),
            },
            false => link.run_plan(plan),
        };
        let text = work.servers.get(link.server as usize);
        let text = text.ok_or_else(|| Failure::new(Exit::Internal, "a server has no address"))?;
        let places = ServerPlaces {
            surroundings: self.hands.surroundings,
            embedded: None,
            folder: self.folder,
        };
        let server = ServerUnderTest::running(&part, Remote::parse(text)?, &places)?;
        let workload = match is_load {
            true => {
                let task = LoadTask {
                    first: link.load_first,
                    count: link.load_count,
                    batch: part.client.batch,
                    keep_existing: link.keep_existing,
                };
                Workload::load(&part, task, &server.concerns())?
            }
            false => Workload::mix(&part, &server.concerns())?,
        };
        let clients = match plan.client.load_clients {
            Some(all) if is_load => scaled(all, link.clients, plan.client.clients),
            _ => link.clients,
        };
        let pair = Pair {
            clients: clients as usize,
            threads: threads_of_link(work, self.hands.surroundings.cores, links, clients),
            ..Pair::from_plan(&part, Arc::new(workload), server.backend()?)
        };
        let (begun, ready) = (outlet.clone(), outlet.clone());
        Ok(Some(Job {
            clock,
            stop: Arc::clone(stop),
            // The time of the process counts once.
            usage: match outlet.link {
                0 => usage,
                _ => ProcessUsage::default,
            },
            on_started: Some(Box::new(move |planned_ns, started_ns| {
                begun.say(Said::Begun {
                    planned_ns,
                    awake_ns: started_ns,
                });
            })),
            start_barrier: Some(Box::new(move || {
                let (answer, word) = sync_channel(1);
                ready.say(Said::Ready(answer));
                word.recv().ok().flatten()
            })),
            arrival_offset_ns: link.first_after_ns,
            ..Job::from_plan(&part, vec![pair])
        }))
    }
}

/// Worker threads for one of several servers. They spin before each start, so that more than CPUs hinder each other.
fn threads_of_link(work: &Work, cores: u32, links: u32, clients: u32) -> usize {
    let own = cores / work.agents_per_host.max(1);
    let threads = work.threads.unwrap_or(own) / links.max(1);
    threads.clamp(1, clients.max(1)) as usize
}

/// `all` clients of the fleet, as many of them as a link with `own` of `planned` clients has.
fn scaled(all: u32, own: u32, planned: u32) -> u32 {
    let part = u64::from(all) * u64::from(own) / u64::from(planned.max(1));
    u32::try_from(part).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_agents_of_a_host_share_its_threads() {
        let with = |threads, agents_per_host| Work {
            threads,
            agents_per_host,
            ..Work::default()
        };
        assert_eq!(threads_of_link(&with(None, 1), 16, 8, 100), 2);
        assert_eq!(threads_of_link(&with(None, 4), 16, 2, 100), 2);
        assert_eq!(threads_of_link(&with(Some(8), 1), 16, 8, 100), 1);
        assert_eq!(
            threads_of_link(&with(Some(1), 1), 16, 8, 100),
            1,
            "each has one"
        );
        assert_eq!(
            threads_of_link(&with(None, 0), 16, 1, 3),
            3,
            "one for each client"
        );
    }

    #[test]
    fn clients_of_the_load_phase_are_divided_like_the_others() {
        assert_eq!(scaled(64, 2, 8), 16);
        assert_eq!(scaled(1, 2, 8), 1, "at least one");
    }
}
