//! `dyno agent --serve`: starts the plan's servers on this host, keeps them for the run, and removes them, even if the controller
//! has gone. With `--watch`, the agent only reads the host of servers that are already running.

use super::settings::AppliedSettings;
use super::watch::HostWatch;
use super::{plan_of, room, settings, watched};
use crate::FleetError;
use crate::agent::Agent;
use crate::options::WorkerOptions;
use crate::protocol::{StartedServers, Step, Work};
use crate::secrets::Secrets;
use dyno_engine::context::Context;
use dyno_engine::deployment::locality::planned_folders;
use dyno_engine::deployment::placement::HostPlacement;
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::{DeploymentUnderTest, expected, with_options};
use dyno_engine::run::host_settings::HostSettings;
use dyno_engine::{Error, Kind};
use dyno_observe::watch::HostSubject;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::Remote;
use std::path::Path;
use std::time::Duration;

/// Interval of the checks that servers and controller are alive.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest wait until a watched server listens.
const LISTENING_WITHIN: Duration = Duration::from_secs(10);

/// Serves until the controller has no more work, then removes everything.
pub(super) fn serve(
    agent: Agent,
    options: &WorkerOptions,
    secrets: &Secrets,
    settings: AppliedSettings<'_>,
) -> Result<(), Error> {
    let mut host = ServerHost {
        agent,
        options,
        secrets,
        context: settings.context,
        settings,
        deployment: None,
        steering: None,
        watch: None,
        unread: Vec::new(),
    };
    let result = host.serve();
    let stopped = host.stop();
    let result = result.and(stopped);
    host.agent.end(&result);
    result
}

struct ServerHost<'a> {
    agent: Agent,
    options: &'a WorkerOptions,
    secrets: &'a Secrets,
    context: Context<'a>,
    /// Restores the host's settings when dropped.
    settings: AppliedSettings<'a>,
    deployment: Option<DeploymentUnderTest>,
    /// Steers packets of a network card to other CPUs while the servers run.
    steering: Option<HostSettings<'a>>,
    watch: Option<HostWatch>,
    /// Sources that the last attempt could not read.
    unread: Vec<String>,
}

/// The connection string without file paths: other hosts have their own files.
fn without_files(uri: &str) -> Result<String, Error> {
    let target = Remote::parse(uri)?.target;
    Ok(target.with_files(None, None).to_string())
}

impl ServerHost<'_> {
    fn serve(&mut self) -> Result<(), Error> {
        loop {
            match self.agent.next_work(LOOK_EVERY) {
                Ok(Some((work, _))) => self.start(&work)?,
                Ok(None) => return Ok(()),
                Err(FleetError::NoWord { .. }) => self.look()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn start(&mut self, work: &Work) -> Result<(), Error> {
        let plan = plan_of(work)?;
        let step = work.steps.first().copied().unwrap_or(Step::Serve);
        let started = if !self.options.watch.is_empty() {
            self.watch_servers(&plan)
        } else if step == Step::Join {
            self.join(work, &plan)?
        } else if step == Step::Look {
            self.look_at_settings()
        } else {
            self.stop()?;
            let (started, subject) = self.start_servers(work, plan.clone())?;
            self.watch = HostWatch::start(&plan, subject, self.agent.readings());
            started
        };
        let summary = serde_json::to_value(started).expect("serializable");
        self.agent.done(work.number, step, summary)?;
        Ok(())
    }

    /// Reads back the settings that were changed on this host.
    fn look_at_settings(&self) -> StartedServers {
        let looked = self.steering.as_ref().map(HostSettings::look);
        let (host_settings, caveats) = looked.unwrap_or_default();
        StartedServers { host_settings, caveats, ..StartedServers::default() }
    }

    /// Joins this host's member to the replica set of all hosts.
    fn join(&mut self, work: &Work, plan: &Plan) -> Result<StartedServers, Error> {
        self.agent.doing("joining the replica set")?;
        self.options.permits.check_members(&work.servers)?;
        let Some(deployment) = &mut self.deployment else {
            return Err(Error::new(
                Kind::Internal,
                "no replica set member was started on this host",
            ));
        };
        deployment.join(&work.servers, self.context)?;
        let uris = deployment.started_uris().into_iter();
        let uris = uris.map(|uri| without_files(&with_options(&uri, plan)));
        Ok(StartedServers {
            uris: uris.collect::<Result<_, _>>()?,
            hosts: deployment.started_hosts(),
            ..StartedServers::default()
        })
    }

    /// Reads running servers, which may be restarted at any time. An unchanged watch continues from run to run. Returns unreadable
    /// sources, which are retried before the next run, and the host checks, as servers may not have listened before.
    fn watch_servers(&mut self, plan: &Plan) -> StartedServers {
        let fits = self.watch.as_ref().is_some_and(|watch| watch.fits(plan));
        if fits && self.unread.is_empty() {
            return StartedServers::default();
        }
        self.watch = None;
        if !plan.observe.host {
            return StartedServers::default();
        }
        // Do not wait again for a server that did not listen within the limit.
        let within = match self.unread.is_empty() {
            true => LISTENING_WITHIN,
            false => Duration::ZERO,
        };
        let servers = &self.options.watch;
        let (subject, unread) = watched::subject(Path::new("/"), servers, within);
        let folders = subject.data_folders.clone();
        self.watch = HostWatch::start(plan, subject, self.agent.readings());
        self.unread.clone_from(&unread);
        // The data size of a deployment from outside is unknown.
        let room = match plan.server.kind {
            ServerKind::Uri => Ok(()),
            _ => room::check(plan, &folders, true),
        };
        StartedServers {
            unread,
            data_storage: watched::storage(&folders),
            lacks_room: room.err().map(|error| error.reason()),
            doctor: settings::verdicts(&watched::subjects(Path::new("/"), servers)),
            not_applied: self.settings.not_applied.clone(),
            ..StartedServers::default()
        }
    }

    /// Starts the servers, and returns what there is to read of them.
    fn start_servers(
        &mut self,
        work: &Work,
        mut plan: Plan,
    ) -> Result<(StartedServers, HostSubject), Error> {
        self.agent.doing("starting servers")?;
        plan.server.listen = work.servers.get(self.options.index as usize).cloned();
        let options = self.options;
        options.permits.check_server(&plan.server, &options.folder)?;
        let state = settings::state_folder(&options.folder);
        let observer = self.context.observer;
        self.steering = HostSettings::of_card(&plan, Some(&state), observer)?;
        let paths = ServerPaths {
            environment: self.context.environment,
            embedded: self.options.embedded_server.as_deref(),
            folder: &self.options.folder,
        };
        let secrets = self.secrets.of_server(&plan.server)?;
        let secrets = secrets.as_ref();
        let mut alone = plan.clone();
        if work.is_set {
            // This host's member does not share the machine with other members.
            alone.server.topology = None;
        }
        let placement = HostPlacement::of_servers_alone(&alone)?;
        let (place, index) = (placement.as_ref(), options.index as usize);
        let context = self.context;
        let folders = expected::folders(&plan, &paths, work.is_set.then_some(index))?;
        room::check(&plan, &folders, false)?;
        // Servers read some machine settings only at their start.
        let mut facts = expected::servers(&alone, &paths, place)?;
        let disks = planned_folders(&plan, &paths);
        self.settings.apply(&settings::subjects(Some(&facts), &disks))?;
        let deployment = match work.is_set {
            true => {
                DeploymentUnderTest::start_member(&plan, &paths, place, secrets, index, context)
            }
            false => DeploymentUnderTest::open_with(&plan, &paths, place, secrets, context),
        }?;
        let folders = deployment.data_folders();
        facts.pid = deployment.processes().first().copied();
        facts.address = deployment.first_address();
        let cpus = placement.as_ref().and_then(HostPlacement::cpus_of_servers);
        let verified = placement.map(|placement| placement.verify(&deployment.processes()));
        let (placement, caveats) = verified.unzip();
        let uris = deployment.uris().into_iter();
        let uris = uris.map(|uri| without_files(&uri));
        let started = StartedServers {
            uris: uris.collect::<Result<_, _>>()?,
            hosts: deployment.started_hosts(),
            placement,
            cpus,
            host_settings: self.steering.as_ref().map_or_else(Vec::new, HostSettings::record),
            caveats: caveats.unwrap_or_default(),
            data_storage: watched::storage(&folders),
            doctor: settings::verdicts(&settings::subjects(Some(&facts), &disks)),
            not_applied: self.settings.not_applied.clone(),
            ..StartedServers::default()
        };
        let subject = HostSubject {
            of_server: true,
            processes: deployment.named_processes(),
            data_folders: folders,
            ..HostSubject::default()
        };
        self.deployment = Some(deployment);
        Ok((started, subject))
    }

    /// Fails if a server has ended by itself.
    fn look(&mut self) -> Result<(), Error> {
        let deployment = self.deployment.as_mut();
        let Some((_, ended)) = deployment.and_then(DeploymentUnderTest::ended) else {
            return Ok(());
        };
        let mut error = Error::new(
            Kind::Environment,
            format!("the server `{}` ended by itself ({})", ended.name, ended.status),
        );
        error.log_tail = ended.log_tail;
        Err(error)
    }

    /// Stops the servers before the host reader, which may wait for Redis.
    fn stop(&mut self) -> Result<(), Error> {
        let deployment = self.deployment.take();
        let context = self.context;
        let stopped = deployment.map_or(Ok(()), |deployment| deployment.stop_and_tell(context));
        self.steering = None;
        self.watch = None;
        stopped
    }
}
