//! An agent's part in a run of a fleet: it loads or starts servers for the controller.

mod room;
mod serve;
mod settings;
mod step;
mod watch;
mod watched;

use crate::agent::{Agent, AgentOptions};
use crate::error::leaves_agent_alone;
use crate::names::RunName;
use crate::options::{MADE, WorkerOptions};
use crate::protocol::{HostFacts, Step, Version, Work};
use crate::secrets::Secrets;
use crate::shares::{Link, Share};
use crate::source::checks::check_plan;
use dyno_engine::context::Context;
use dyno_engine::deployment::placement::ClientsAlone;
use dyno_engine::deployment::server::{ServerPaths, ServerUnderTest};
use dyno_engine::run::usage;
use dyno_engine::{Error, Kind, refuse};
use dyno_load::clock::Clock;
use dyno_load::job::{Job, Pair};
use dyno_load::standstill::StandstillWatch;
use dyno_load::workload::{LoadTask, Workload};
use dyno_observe::doctor::{self, Subject};
use dyno_observe::environment::capture;
use dyno_observe::usage::UsageSampler;
use dyno_observe::watch::HostSubject;
use dyno_plan::Plan;
use dyno_plan::task::Remote;
use dyno_plan::uri::redact;
use dyno_record::names;
use settings::AppliedSettings;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use step::{FOREVER, Outlet, Report, StepRun};
use watch::HostWatch;

/// Joins a run and works for its controller until there is no more work or the context is cancelled. Removes everything that it
/// started; a failed stop is a warning.
///
/// # Errors
/// Controller or Redis is missing or goes away, or the work fails. A remaining controller has been informed.
pub fn work(options: &WorkerOptions, context: Context<'_>) -> Result<(), Error> {
    if options.remove_folder {
        check_made(&options.folder)?;
    }
    let stop = context.cancel.phase_flag();
    let secrets = options.secrets.as_deref().map(Secrets::read).transpose();
    let result = secrets.and_then(|secrets| {
        let secrets = secrets.unwrap_or_default();
        let subjects = known_subjects(options);
        let mut settings = AppliedSettings::new(options, context);
        if !options.serve {
            // Before joining: the host facts in the record must include these changes.
            settings.apply(&subjects)?;
        }
        let agent = join(options, &settings.not_applied, &subjects, (context, stop))?;
        if options.is_of_server() {
            return serve::serve(agent, options, &secrets, settings);
        }
        let worker = Worker { agent, options, secrets: &secrets, context, watch: None };
        worker.work_until_the_end()
    });
    if let (Err(error), true) = (&result, options.remove_folder)
        && leaves_agent_alone(error)
        && !settings::are_changed(&options.folder)
    {
        // No controller will remove the folder. The error already covers a failed removal.
        let _ = std::fs::remove_dir_all(&options.folder);
    }
    result
}

/// Refuses to remove a folder that this user did not create for a run.
fn check_made(folder: &Path) -> Result<(), Error> {
    let own = |path: &Path| {
        let data = path.symlink_metadata().ok()?;
        (data.uid() == nix::unistd::geteuid().as_raw()).then_some(data)
    };
    let is_folder = own(folder).is_some_and(|data| data.is_dir());
    if is_folder && own(&folder.join(MADE)).is_some_and(|data| data.is_file()) {
        return Ok(());
    }
    let text = format!(
        "`{}` was not created for a run by this user: it does not contain `{MADE}`",
        folder.display()
    );
    refuse(text, "omit `--remove-folder`, or use a new folder with this file")
}

/// Subjects to check before there is work; servers that the agent starts are not known yet.
fn known_subjects(options: &WorkerOptions) -> Vec<Subject> {
    match options.watch.is_empty() {
        true => settings::subjects(None, &[]),
        false => watched::subjects(Path::new("/"), &options.watch),
    }
}

fn join(
    options: &WorkerOptions,
    not_applied: &[String],
    subjects: &[Subject],
    (context, stop): (Context<'_>, Arc<AtomicBool>),
) -> Result<Agent, Error> {
    let run = if options.is_of_server() {
        RunName::for_servers(&options.run)?
    } else {
        RunName::new(&options.run)?
    };
    Ok(Agent::join(AgentOptions {
        endpoint: options.redis.endpoint()?,
        run,
        index: options.index,
        version: Version::current(),
        host: host_facts(options, not_applied, subjects, context),
        join_within: options.join_within,
        stop,
    })?)
}

fn host_facts(
    options: &WorkerOptions,
    not_applied: &[String],
    subjects: &[Subject],
    context: Context<'_>,
) -> HostFacts {
    let environment = context.environment;
    let watched = watched::folders(Path::new("/"), &options.watch);
    let facts = doctor::observe(Path::new("/"), &Subject::default());
    // Next to servers, the agent may have few CPUs itself; the machine has all online CPUs.
    let online = facts.cpus.as_ref().ok().filter(|_| !options.watch.is_empty());
    let online = online.and_then(|cpus| u32::try_from(*cpus).ok());
    let cpus = online.unwrap_or(environment.cores);
    let mut host = HostFacts {
        name: options.host.clone().or(environment.hostname.clone()).unwrap_or_default(),
        cpus,
        findings: Vec::new(),
        not_applied: not_applied.to_vec(),
        environment: Some(capture(watched.first().map(|folder| &**folder))),
    };
    host.checked(settings::verdicts(subjects));
    host
}

/// An agent that loads servers.
struct Worker<'a> {
    agent: Agent,
    options: &'a WorkerOptions,
    secrets: &'a Secrets,
    context: Context<'a>,
    watch: Option<HostWatch>,
}

impl Worker<'_> {
    fn work_until_the_end(mut self) -> Result<(), Error> {
        let result = self.work();
        match (self.watch.take(), &result) {
            (Some(watch), Err(error)) if leaves_agent_alone(error) => watch.abandon(),
            (watch, _) => drop(watch),
        }
        self.agent.end(&result);
        result
    }

    fn work(&mut self) -> Result<(), Error> {
        while let Some((work, share)) = self.agent.next_work(FOREVER)? {
            let plan = plan_of(&work)?;
            let placed = ClientsAlone::from_plan(&plan)?;
            self.watch_host(&work, &plan);
            for step in &work.steps {
                let task = StepTask {
                    work: &work,
                    share: &share,
                    plan: &plan,
                    placed: placed.as_ref(),
                    step: *step,
                    clock: Clock::start(),
                    stop: Arc::default(),
                };
                if !self.step(&task)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lets the first agent of a host read it for all.
    fn watch_host(&mut self, work: &Work, plan: &Plan) {
        let is_first = self.options.index.is_multiple_of(work.agents_per_host.max(1));
        if !is_first || self.watch.as_ref().is_some_and(|watch| watch.fits(plan)) {
            return;
        }
        let subject = HostSubject {
            processes: vec![(names::CLIENT.to_owned(), std::process::id())],
            ..HostSubject::default()
        };
        self.watch = HostWatch::start(plan, subject, self.agent.readings());
    }

    /// Performs one stage; `false` if the work was cancelled.
    fn step(&mut self, task: &StepTask<'_>) -> Result<bool, Error> {
        let (work, step) = (task.work, task.step);
        let (reports, inbox) = channel();
        let (mut parts, mut threads) = (Vec::new(), 0);
        let mut servers = Vec::new();
        self.agent.doing(&format!("connecting for {step}"))?;
        for link in &task.share.links {
            let outlet = Outlet { link: parts.len() as u32, reports: reports.clone() };
            if let Some(job) = self.job(task, link, &outlet)? {
                let of_pairs = job.pairs.iter().map(|pair| pair.threads as u64);
                threads += of_pairs.sum::<u64>();
                parts.push(step::start(job, outlet));
                let server = work.servers.get(link.server as usize);
                servers.push((link.server, redact(server.map_or("", String::as_str))));
            }
        }
        drop(reports);
        let count = parts.len() as u32;
        let mut run = StepRun {
            agent: &mut self.agent,
            watch: self.watch.as_ref(),
            work,
            step,
            clock: task.clock,
            stop: &task.stop,
            threads,
            servers,
            placed: task.placed,
            achieved: None,
            phases: Vec::new(),
            newest: None,
            sampler: UsageSampler::new(Path::new("/"), &[], &[]),
            standstill: StandstillWatch::start(task.clock).ok(),
            start: None,
            begun: Vec::new(),
            usage: usage(),
            of_threads: Default::default(),
        };
        let result = run.follow(&inbox, count);
        // An abandoned stage has not ended it.
        run.standstill.take().map(StandstillWatch::end);
        task.stop.store(true, Ordering::Relaxed);
        // Dropping the channel ends the threads that still wait for answers.
        drop(inbox);
        for part in parts {
            let _ = part.join();
        }
        result
    }

    /// The job for one server; `None` without a task.
    fn job(&self, task: &StepTask<'_>, link: &Link, outlet: &Outlet) -> Result<Option<Job>, Error> {
        let part = match task.step {
            Step::Load => link.load_plan(task.plan),
            _ => Some(link.run_plan(task.plan)),
        };
        let Some(part) = part else {
            return Ok(None);
        };
        let pair = self.pair(task, link, &part)?;
        let (begun, ready) = (outlet.clone(), outlet.clone());
        Ok(Some(Job {
            clock: task.clock,
            stop: Arc::clone(&task.stop),
            on_started: Some(Box::new(move |planned_ns, started_ns| {
                begun.send(Report::Begun { planned_ns, awake_ns: started_ns });
            })),
            start_barrier: Some(Box::new(move || {
                let (answer, word) = sync_channel(1);
                ready.send(Report::Ready(answer));
                word.recv().ok().flatten()
            })),
            arrival_offset_ns: link.first_after_ns,
            ..Job::from_plan(&part, vec![pair])
        }))
    }

    /// A link's server with the clients that load it; `part` is the plan of the link.
    fn pair(&self, task: &StepTask<'_>, link: &Link, part: &Plan) -> Result<Pair, Error> {
        let is_load = task.step == Step::Load;
        let text = task.work.servers.get(link.server as usize);
        let text = text.ok_or_else(|| Error::new(Kind::Internal, "a server has no address"))?;
        let paths = ServerPaths {
            environment: self.context.environment,
            embedded: None,
            folder: &self.options.folder,
        };
        let remote = Remote::parse(text)?;
        self.options.permits.check_target(&remote.target)?;
        let remote = self.secrets.apply(remote, &part.server)?;
        let mut server = ServerUnderTest::running(part, remote, &paths)?;
        server.set_cancel_check(self.context.cancel.patience());
        let workload = if is_load {
            let load = LoadTask {
                first: link.load_first,
                count: link.load_count,
                batch: part.client.batch,
                keep_existing: link.keep_existing,
            };
            Workload::load(part, load, &server.concerns())?
        } else {
            Workload::mix(part, &server.concerns())?
        };
        let planned = &task.plan.client;
        let clients = match planned.load_clients {
            Some(all) if is_load => scaled(all, link.clients, planned.clients),
            _ => link.clients,
        };
        let cpus = task.placed.and_then(ClientsAlone::cpus);
        let named = cpus.as_ref().map_or(u32::MAX, |cpus| cpus.len() as u32);
        let cores = self.context.environment.cores.min(named);
        let links = task.share.links.len() as u32;
        Ok(Pair {
            cpus,
            memory: task.placed.and_then(ClientsAlone::memory),
            clients: clients as usize,
            threads: threads_of_link(task.work, cores, links, clients),
            ..Pair::from_plan(part, Arc::new(workload), server.backend()?)
        })
    }
}

/// The plan of a work; refuses plans that no controller sends.
fn plan_of(work: &Work) -> Result<Plan, Error> {
    let plan = dyno_plan::file::parse(&work.plan, "the plan of the controller")
        .map_err(|error| Error::from_cause(Kind::Internal, error))?;
    check_plan(&plan)?;
    Ok(plan)
}

/// An agent's task in one stage.
struct StepTask<'a> {
    work: &'a Work,
    share: &'a Share,
    plan: &'a Plan,
    /// Planned placement of its clients, if any.
    placed: Option<&'a ClientsAlone>,
    step: Step,
    clock: Clock,
    /// Ends the jobs early.
    stop: Arc<AtomicBool>,
}

/// Worker threads for one of several servers. Workers spin before each start, so more workers than CPUs delay each other.
fn threads_of_link(work: &Work, cores: u32, links: u32, clients: u32) -> usize {
    let own = cores / work.agents_per_host.max(1);
    let threads = work.threads.unwrap_or(own) / links.max(1);
    threads.clamp(1, clients.max(1)) as usize
}

/// Scales `all` clients of the fleet to a link with `own` of `planned` clients.
fn scaled(all: u32, own: u32, planned: u32) -> u32 {
    let part = u64::from(all) * u64::from(own) / u64::from(planned.max(1));
    u32::try_from(part).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::plan_text;
    use dyno_plan::model::{PageCache, ServerKind};

    #[test]
    fn work_that_no_controller_gives_is_refused() {
        let ask = |change: fn(&mut Plan)| {
            let mut plan = dyno_plan::builtin::find("a").expect("built in");
            plan.server.kind = ServerKind::Mongod;
            change(&mut plan);
            let plan = plan_text(&plan);
            plan_of(&Work { plan, ..Work::default() })
        };
        assert!(ask(|_| ()).is_ok());
        for refused in [
            (|plan| plan.server.listen = Some("10.0.0.1".into())) as fn(&mut Plan),
            |plan| plan.data.page_cache = PageCache::Drop,
            |plan| plan.server.block_compressor = Some("none,extensions=[/tmp/x.so]".into()),
            |plan| plan.server.connection_options = Some("tlsCAFile=/etc/shadow".into()),
        ] {
            assert!(ask(refused).is_err());
        }
    }

    #[test]
    fn servers_and_agents_of_a_host_share_its_threads() {
        let with = |threads, agents_per_host| Work { threads, agents_per_host, ..Work::default() };
        assert_eq!(threads_of_link(&with(None, 1), 16, 8, 100), 2);
        assert_eq!(threads_of_link(&with(None, 4), 16, 2, 100), 2);
        assert_eq!(threads_of_link(&with(Some(8), 1), 16, 8, 100), 1);
        assert_eq!(threads_of_link(&with(Some(1), 1), 16, 8, 100), 1, "at least one each");
        assert_eq!(threads_of_link(&with(None, 0), 16, 1, 3), 3, "one for each client");
    }

    #[test]
    fn clients_of_the_load_phase_are_divided_like_the_others() {
        assert_eq!(scaled(64, 2, 8), 16);
        assert_eq!(scaled(1, 2, 8), 1, "at least one");
    }
}
