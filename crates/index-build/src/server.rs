//! The server of the experiment: started for it, stopped and started again, or one that is already running on this machine.

use crate::layout::LayoutError;
use dyno_engine::context::Context;
use dyno_engine::deployment::locality::{self, process_at};
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::{DeploymentUnderTest, describe};
use dyno_engine::recording::roles::Tables;
use dyno_engine::{Error, Kind};
use dyno_load::connect::{CancelCheck, Connector, Control};
use dyno_observe::doctor::Subject;
use dyno_observe::environment::examine;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::{Remote, Task};
use dyno_plan::units::{Bytes, CacheSize};
use dyno_record::model::Environment;
use dyno_record::server::ExperimentServer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for a question to the server.
const QUESTION_LIMIT: Duration = Duration::from_secs(60);

/// File in the folder of every database of WiredTiger.
const DATABASE: &str = "WiredTiger";

/// See the module.
pub(crate) struct Server<'a> {
    context: Context<'a>,
    /// As it is started; its folder for data is settled.
    plan: Plan,
    remote: Option<Remote>,
    embedded: Option<&'a Path>,
    folder: PathBuf,
    running: Option<Running>,
}

struct Running {
    /// Of a server that was started.
    deployment: Option<DeploymentUnderTest>,
    connector: Connector,
    processes: Vec<u32>,
}

impl<'a> Server<'a> {
    /// A server that has yet to be started or reached. `folder` is for logs.
    pub(crate) fn new(
        task: &Task,
        context: Context<'a>,
        embedded: Option<&'a Path>,
        folder: PathBuf,
    ) -> Server<'a> {
        let mut plan = task.plan.clone();
        // The experiment prepares it, and keeps it when the server is restarted.
        plan.server.storage = None;
        Server {
            context,
            remote: task.remote.clone(),
            plan,
            embedded,
            folder,
            running: None,
        }
    }

    /// Whether it is started for the experiment, and so can be stopped and started again with the same data.
    pub(crate) fn is_own(&self) -> bool {
        self.remote.is_none()
    }

    /// Keeps the data there between two starts.
    pub(crate) fn set_data(&mut self, folder: &Path) {
        self.plan.server.data_dir = Some(folder.display().to_string());
    }

    /// The folder of the data, of a single server that was started.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        let folder = self.plan.server.data_dir.as_ref();
        folder.filter(|_| self.is_own()).map(PathBuf::from)
    }

    /// Folders with its data on this machine, as far as they are known.
    pub(crate) fn data_folders(&self) -> Vec<PathBuf> {
        if !self.is_own() {
            let settings = self.describe().map(|server| server.settings);
            return locality::named_folders(settings.iter());
        }
        locality::planned_folders(&self.plan, &self.paths())
    }

    fn paths(&self) -> ServerPaths<'_> {
        ServerPaths {
            environment: self.context.environment,
            embedded: self.embedded,
            folder: &self.folder,
        }
    }

    /// Whether a server that is started finds data in its folder.
    pub(crate) fn has_data(&self) -> bool {
        let server = &self.plan.server;
        let mut folders = server.data_dir.iter().chain(&server.data_dirs);
        folders.any(|folder| Path::new(folder).join(DATABASE).exists())
    }

    /// Refuses a server that runs on another machine, and so has its files there.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.remote {
            Some(remote)
                if !locality::is_local(remote, self.context.environment.hostname.as_deref()) =>
            {
                let address = remote.target.to_string();
                let text = format!(
                    "the server `{address}` is not on this machine, and neither are its files"
                );
                Err(Error::new(Kind::BadInput, text).with_hint("run `dyno index-build` there"))
            }
            _ => Ok(()),
        }
    }

    /// The cache that a single server is started with, if the plan says it.
    pub(crate) fn cache(&self) -> Option<u64> {
        self.plan.server.cache_bytes().map(|cache| cache.0)
    }

    /// Whether a collection gets a new name by copying its documents in one transaction, which has to fit into the cache.
    pub(crate) fn copies_for_a_name(&self) -> bool {
        self.is_own() && self.plan.server.kind == ServerKind::Embedded
    }

    /// Starts it, or reaches it. Nothing to do if it runs.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.open_with(None)
    }

    /// With another cache than that of the plan, if one is given.
    fn open_with(&mut self, cache: Option<u64>) -> Result<(), Error> {
        if self.running.is_some() {
            return Ok(());
        }
        let running = match self.remote.clone() {
            Some(remote) => self.reach(&remote)?,
            None => self.start(cache)?,
        };
        self.running = Some(running);
        Ok(())
    }

    fn start(&self, cache: Option<u64>) -> Result<Running, Error> {
        let mut plan = self.plan.clone();
        if let Some(bytes) = cache {
            plan.server.cache = Some(CacheSize::Of(Bytes(bytes)));
        }
        let deployment = DeploymentUnderTest::open(&plan, None, &self.paths(), None, self.context)?;
        let server = deployment.servers.first().ok_or_else(|| {
            Error::new(Kind::Internal, "a deployment without servers was started")
        })?;
        Ok(Running {
            connector: server.connector(),
            processes: deployment.processes(),
            deployment: Some(deployment),
        })
    }

    fn reach(&self, remote: &Remote) -> Result<Running, Error> {
        let mut connector = Connector::new(&remote.target, remote.credentials.clone())
            .map_err(|error| Error::from(error).context("cannot use the connection string"))?;
        connector.set_cancel_check(self.context.cancel.patience());
        let control = connector
            .control()
            .map_err(|error| Error::from(error).context("cannot connect to the server"))?;
        let address = control.endpoint().to_string();
        let process = process_at(control.endpoint().host()).map_err(|reason| {
            Error::new(Kind::Environment, reason)
                .context(format!("cannot find the process of the server `{address}`"))
        })?;
        Ok(Running {
            deployment: None,
            connector,
            processes: vec![process],
        })
    }

    /// Stops and starts it again, with another cache if that is wanted.
    pub(crate) fn restart(&mut self, cache: Option<u64>) -> Result<(), Error> {
        self.stop()?;
        self.open_with(cache)
    }

    /// Stops what was started. What was reached stays as it is.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        let deployment = self.running.take().and_then(|running| running.deployment);
        deployment.map_or(Ok(()), |deployment| deployment.stop_and_tell(self.context))
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it was opened")
    }

    /// Whether it runs.
    pub(crate) fn is_open(&self) -> bool {
        self.running.is_some()
    }

    /// Its processes with data.
    pub(crate) fn processes(&self) -> &[u32] {
        &self.running().processes
    }

    /// Reaches its servers with data: each member of a deployment.
    pub(crate) fn connectors(&self) -> Vec<Connector> {
        let running = self.running();
        match &running.deployment {
            Some(deployment) => {
                let servers = deployment.data_servers().into_iter();
                servers.map(|server| server.connector).collect()
            }
            None => vec![running.connector.clone()],
        }
    }

    /// Makes connections. A command on one of them ends when the person interrupts.
    pub(crate) fn connector(&self) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let patience = self.context.cancel.patience();
        let connect = self.patient();
        move || {
            let mut control = connect()?;
            control.set_cancel_check(patience.clone());
            Ok(control)
        }
    }

    /// Makes connections on which a command comes to its end, whatever the person wants meanwhile.
    pub(crate) fn patient(&self) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let mut connector = self.running().connector.clone();
        connector.set_cancel_check(CancelCheck::new(|| false));
        move || {
            let mut control = connector.control().map_err(LayoutError::from)?;
            // Copies and verifications take their time.
            control.set_limit(None);
            Ok(control)
        }
    }

    /// A connection for short questions.
    pub(crate) fn control(&self) -> Result<Control, Error> {
        let mut control = self
            .running()
            .connector
            .control()
            .map_err(|error| Error::from(error).context("cannot connect to the server"))?;
        control.set_limit(Some(QUESTION_LIMIT));
        Ok(control)
    }

    /// What its files hold, as far as it tells: of each member, as a router does not know.
    pub(crate) fn tables(&self) -> Tables {
        let running = self.running();
        let mut tables = Tables::default();
        let members = running
            .deployment
            .iter()
            .flat_map(DeploymentUnderTest::watched_servers);
        let connectors = members.map(|server| server.connector);
        for connector in connectors.chain([running.connector.clone()]) {
            let Ok(mut control) = connector.control() else {
                continue;
            };
            control.set_limit(Some(QUESTION_LIMIT));
            if let Ok(found) = Tables::ask(&mut control) {
                tables.join(found);
            }
        }
        tables
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        let running = self.running.as_mut();
        let deployment = running.and_then(|running| running.deployment.as_mut());
        deployment.is_some_and(|deployment| deployment.ended().is_some())
    }

    /// Says why it ended, if it did.
    pub(crate) fn explain(&mut self, failure: Error) -> Error {
        let deployment = self
            .running
            .as_mut()
            .and_then(|running| running.deployment.as_mut());
        match deployment {
            Some(deployment) => deployment.explain(failure),
            None => failure,
        }
    }

    /// What it says of itself.
    pub(crate) fn describe(&self) -> Result<ExperimentServer, Error> {
        let deployment = self.running().deployment.as_ref();
        describe(&mut self.control()?, &self.plan, deployment, self.is_own())
    }

    /// This machine, as `dyno doctor` sees it.
    pub(crate) fn environment(&self) -> Result<Environment, Error> {
        let deployment = self.running().deployment.as_ref();
        match deployment.and_then(|deployment| deployment.servers.first()) {
            Some(server) => server.environment(&mut self.control()?, &self.plan, self.data(), 1),
            None => Ok(examine(&Subject::default())),
        }
    }
}
