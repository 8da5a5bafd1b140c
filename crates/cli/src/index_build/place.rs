//! The server of the experiment: started for it, stopped and started again, or one that runs already on this machine.

use crate::exit::{Exit, Failure};
use crate::io_trace::roles::Tables;
use crate::session::execute::Hands;
use crate::session::lab::{Lab, describe};
use crate::session::locality;
use crate::session::server::ServerPlaces;
use dyno_layout::LayoutError;
use dyno_load::connect::{Connector, Control};
use dyno_observe::doctor::network;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::{Remote, Task};
use dyno_plan::units::{Bytes, CacheSize};
use dyno_plan::uri::Host;
use dyno_record::server::ExperimentServer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for a question to the server.
const QUESTION_LIMIT: Duration = Duration::from_secs(60);

/// File in the folder of every database of WiredTiger.
const DATABASE: &str = "WiredTiger";

/// See the module.
pub(super) struct Place<'a> {
    hands: Hands<'a>,
    /// As it is started; its folder for data is settled.
    plan: Plan,
    remote: Option<Remote>,
    embedded: Option<&'a Path>,
    folder: &'a Path,
    running: Option<Running>,
    /// Whether it can be stopped and started with the same data.
    pub(super) can_restart: bool,
}

struct Running {
    /// Of a server that was started.
    lab: Option<Lab>,
    connector: Connector,
    processes: Vec<u32>,
}

impl<'a> Place<'a> {
    /// A server that has yet to be started or reached. `folder` is for logs.
    pub(super) fn new(
        task: &Task,
        hands: Hands<'a>,
        embedded: Option<&'a Path>,
        folder: &'a Path,
    ) -> Place<'a> {
        let plan = task.plan.clone();
        let is_one = plan.server.topology.is_none();
        Place {
            hands,
            can_restart: task.remote.is_none() && is_one,
            remote: task.remote.clone(),
            plan,
            embedded,
            folder,
            running: None,
        }
    }

    /// Whether it is started for the experiment.
    pub(super) fn is_own(&self) -> bool {
        self.remote.is_none()
    }

    /// Keeps the data there between two starts.
    pub(super) fn set_data(&mut self, folder: &Path) {
        self.plan.server.data_dir = Some(folder.display().to_string());
    }

    /// The folder of the data, of a single server that was started.
    pub(super) fn data(&self) -> Option<PathBuf> {
        let folder = self.plan.server.data_dir.as_ref();
        folder.filter(|_| self.is_own()).map(PathBuf::from)
    }

    /// Whether a server that is started finds data in its folder.
    pub(super) fn has_data(&self) -> bool {
        let server = &self.plan.server;
        let mut folders = server.data_dir.iter().chain(&server.data_dirs);
        folders.any(|folder| Path::new(folder).join(DATABASE).exists())
    }

    /// Refuses a server that runs on another machine, and so has its files there.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &self.remote {
            Some(remote)
                if !locality::is_local(remote, self.hands.surroundings.hostname.as_deref()) =>
            {
                let address = remote.target.to_string();
                let text =
                    format!("the server `{address}` is not on this machine, and its files neither");
                Err(Failure::new(Exit::BadInput, text).with_hint("run `dyno index-build` there"))
            }
            _ => Ok(()),
        }
    }

    /// The cache that a single server is started with, if the plan says it.
    pub(super) fn cache(&self) -> Option<u64> {
        self.plan.server.cache_bytes().map(|cache| cache.0)
    }

    /// Whether a collection gets a new name by copying its documents in one transaction, which has to fit into the cache.
    pub(super) fn copies_for_a_name(&self) -> bool {
        self.is_own() && self.plan.server.kind == ServerKind::Embedded
    }

    /// Starts it, or reaches it. Nothing to do if it runs.
    pub(super) fn open(&mut self) -> Result<(), Failure> {
        self.open_with(None)
    }

    /// With another cache than that of the plan, if one is given.
    fn open_with(&mut self, cache: Option<u64>) -> Result<(), Failure> {
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

    fn start(&self, cache: Option<u64>) -> Result<Running, Failure> {
        let mut plan = self.plan.clone();
        if let Some(bytes) = cache {
            plan.server.cache = Some(CacheSize::Of(Bytes(bytes)));
        }
        let places = ServerPlaces {
            surroundings: self.hands.surroundings,
            embedded: self.embedded,
            folder: self.folder,
        };
        let lab = Lab::open(&plan, None, &places, None, self.hands)?;
        let server = lab.servers.first().ok_or_else(|| {
            Failure::new(Exit::Internal, "a deployment without servers was started")
        })?;
        Ok(Running {
            connector: server.connector(),
            processes: lab.processes(),
            lab: Some(lab),
        })
    }

    fn reach(&self, remote: &Remote) -> Result<Running, Failure> {
        let connector = Connector::new(&remote.target, remote.credentials.clone())
            .map_err(|error| Failure::from(error).context("cannot use the connection string"))?;
        let control = connector
            .control()
            .map_err(|error| Failure::from(error).context("cannot connect to the server"))?;
        let address = control.endpoint().to_string();
        let process = process_at(control.endpoint().host()).map_err(|reason| {
            Failure::new(Exit::Environment, reason)
                .context(format!("cannot find the process of the server `{address}`"))
        })?;
        Ok(Running {
            lab: None,
            connector,
            processes: vec![process],
        })
    }

    /// Stops and starts it again, with another cache if that is wanted.
    pub(super) fn restart(&mut self, cache: Option<u64>) -> Result<(), Failure> {
        self.stop()?;
        self.open_with(cache)
    }

    /// Stops what was started. What was reached stays as it is.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        let Some(lab) = self.running.take().and_then(|running| running.lab) else {
            return Ok(());
        };
        let (stopped, caveats) = lab.stop();
        for caveat in caveats {
            self.hands.messages.warning(&caveat.message);
        }
        stopped
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it was opened")
    }

    /// Whether it runs.
    pub(super) fn is_open(&self) -> bool {
        self.running.is_some()
    }

    /// Its processes with data.
    pub(super) fn processes(&self) -> &[u32] {
        &self.running().processes
    }

    /// Makes connections. A command on one of them ends when the person interrupts.
    pub(super) fn connector(&self) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let patience = self.hands.interrupt.patience();
        let connect = self.patient();
        move || {
            let mut control = connect()?;
            control.set_patience(patience.clone());
            Ok(control)
        }
    }

    /// Makes connections on which a command comes to its end, whatever the person wants meanwhile.
    pub(super) fn patient(&self) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let connector = self.running().connector.clone();
        move || {
            let mut control = connector.control().map_err(LayoutError::from)?;
            // Copies and verifications take their time.
            control.set_limit(None);
            Ok(control)
        }
    }

    /// A connection for short questions.
    pub(super) fn control(&self) -> Result<Control, Failure> {
        let mut control = self
            .running()
            .connector
            .control()
            .map_err(|error| Failure::from(error).context("cannot connect to the server"))?;
        control.set_limit(Some(QUESTION_LIMIT));
        Ok(control)
    }

    /// What its files hold, as far as it tells: of each member, as a router does not know.
    pub(super) fn tables(&self) -> Tables {
        let running = self.running();
        let mut tables = Tables::default();
        let members = running.lab.iter().flat_map(Lab::witnesses);
        let connectors = members.map(|witness| witness.connector);
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

    /// Says why it ended, if it did.
    pub(super) fn explain(&mut self, failure: Failure) -> Failure {
        let lab = self
            .running
            .as_mut()
            .and_then(|running| running.lab.as_mut());
        match lab {
            Some(lab) => lab.explain(failure),
            None => failure,
        }
    }

    /// What it says of itself.
    pub(super) fn describe(&self) -> Result<ExperimentServer, Failure> {
        let lab = self.running().lab.as_ref();
        describe(&mut self.control()?, &self.plan, lab, self.is_own())
    }
}

/// The process that listens at an address of this machine, or why it is not found.
pub(crate) fn process_at(host: &Host) -> Result<u32, String> {
    let Host::Tcp { port, .. } = host else {
        return Err("who listens at a Unix-domain socket is not told".to_owned());
    };
    network::listener_pid(Path::new("/"), *port).map_err(|health| {
        health
            .reason()
            .unwrap_or("it cannot be looked at")
            .to_owned()
    })
}
