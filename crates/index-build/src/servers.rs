//! The servers of a configuration: started for it and restarted with their data, or a running one on this machine. Clients use one
//! connection string, or one for each server if the documents are divided among servers.

use crate::layout::{LayoutError, Share};
use dyno_engine::context::Context;
use dyno_engine::deployment::locality::{self, process_at};
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::storage::StorageUnderTest;
use dyno_engine::deployment::{DataMember, DeploymentUnderTest, describe};
use dyno_engine::recording::roles::Tables;
use dyno_engine::{Error, Kind, refuse};
use dyno_load::connect::{CancelCheck, Connector, Control};
use dyno_observe::doctor::Subject;
use dyno_observe::environment::examine;
use dyno_plan::model::{DiskMapping, ServerKind, ServerPlan};
use dyno_plan::storage::Storage;
use dyno_plan::task::{Remote, Task};
use dyno_plan::topology::Topology;
use dyno_record::model::Environment;
use dyno_record::server::ExperimentServer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Data folder of the servers, in the experiment's folder.
pub(crate) const SERVER_DATA: &str = "server-data";
/// Name of a running server.
const ALONE: &str = "server";
/// Prefix of the folders for prepared storage, if there are several.
const STORAGE: &str = "storage";

/// Longest time for a query to a server.
const QUESTION_LIMIT: Duration = Duration::from_secs(60);

/// File in the folder of every WiredTiger database.
const DATABASE: &str = "WiredTiger";

/// The servers of a configuration.
pub(crate) struct Servers<'a> {
    context: Context<'a>,
    /// Task to start them, without the data folders.
    task: Task,
    topology: Topology,
    embedded: Option<&'a Path>,
    /// Folder for logs, and for data that is not kept.
    folder: PathBuf,
    /// Storage to prepare for each server with data.
    setting: Option<Storage>,
    /// Whether the data is in the folder, and is removed with it.
    owns_data: bool,
    running: Option<Running>,
    /// Storage of each server with data, or empty. Dropped after the servers, which have open files there.
    storages: Vec<StorageUnderTest>,
}

struct Running {
    /// Servers that were started.
    deployment: Option<DeploymentUnderTest>,
    /// Connections for documents and commands: one for each connection string.
    clients: Vec<Connector>,
    members: Vec<DataMember>,
}

impl<'a> Servers<'a> {
    /// Creates servers that are not started or reached yet.
    pub(crate) fn new(
        task: &Task,
        topology: &Topology,
        context: Context<'a>,
        embedded: Option<&'a Path>,
        folder: PathBuf,
    ) -> Servers<'a> {
        let mut task = task.clone();
        let server = &mut task.plan.server;
        server.topology = Some(topology.to_string());
        server.resolve_topology();
        Servers {
            context,
            // The experiment prepares the storage, and keeps it across restarts.
            setting: server.storage.take(),
            task,
            topology: topology.clone(),
            embedded,
            folder,
            storages: Vec::new(),
            owns_data: false,
            running: None,
        }
    }

    /// The task to start, without storage.
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    fn plan(&self) -> &ServerPlan {
        &self.task.plan.server
    }

    /// Whether the experiment starts them, and can therefore restart them with the same data.
    pub(crate) fn is_own(&self) -> bool {
        self.task.remote.is_none()
    }

    /// Whether the data outlives the experiment.
    pub(crate) fn is_kept(&self) -> bool {
        !self.owns_data && self.storages.is_empty()
    }

    /// The prepared storage, if any.
    pub(crate) fn storage(&self) -> Option<&StorageUnderTest> {
        self.storages.first()
    }

    /// Whether the data folders of started servers already contain data.
    pub(crate) fn have_data(&self) -> bool {
        let server = self.plan();
        let roots: Vec<&String> = server.data_dir.iter().chain(&server.data_dirs).collect();
        let has = |folder: &str| {
            let is_there = |root: &&String| Path::new(root).join(folder).join(DATABASE).exists();
            roots.iter().any(is_there)
        };
        match self.topology {
            Topology::Split { n } => (0..n).all(|number| has(&format!("split-{number}"))),
            _ => has(""),
        }
    }

    /// Refuses a server on another machine, because its files are not accessible.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.task.remote {
            Some(remote)
                if !locality::is_local(remote, self.context.environment.hostname.as_deref()) =>
            {
                let address = remote.target.to_string();
                let text =
                    format!("the server `{address}` is on another machine, and so are its files");
                refuse(text, "run `dyno index-build` on the server's machine")
            }
            _ => Ok(()),
        }
    }

    /// Configured cache of each server with data.
    pub(crate) fn cache(&self) -> Option<u64> {
        self.plan().cache_bytes().map(|cache| cache.0)
    }

    /// Whether renaming a collection copies its documents in one transaction, which must fit into the cache.
    pub(crate) fn copies_for_a_name(&self) -> bool {
        self.is_own() && self.plan().kind == ServerKind::Embedded
    }

    /// Prepares storage for each server with data if planned, and sets the data folders.
    pub(crate) fn prepare(&mut self) -> Result<(), Error> {
        if !self.is_own() {
            return Ok(());
        }
        let several = self.topology.data_servers() > 1;
        let asked = ServerPlan { storage: self.setting.clone(), ..self.plan().clone() };
        for number in 0..self.topology.data_servers() {
            let folder = match several {
                true => self.folder.join(format!("{STORAGE}-{number}")),
                false => self.folder.clone(),
            };
            let paths = ServerPaths { folder: &folder, ..self.paths() };
            let note = |text: &str| self.context.note(text);
            let interrupted = || self.context.cancel.requested();
            let prepared = StorageUnderTest::prepare(&asked, &paths, &note, &interrupted)?;
            let Some(prepared) = prepared else { break };
            self.storages.push(prepared);
        }
        let prepared = self.storages.iter().map(StorageUnderTest::data);
        let prepared = prepared.map(|folder| folder.display().to_string());
        let own = self.folder.join(SERVER_DATA);
        let server = &mut self.task.plan.server;
        self.owns_data = wait_for_data(server, prepared.collect(), &own);
        Ok(())
    }

    fn paths(&self) -> ServerPaths<'_> {
        ServerPaths {
            environment: self.context.environment,
            embedded: self.embedded,
            folder: &self.folder,
        }
    }

    /// Starts or reaches the servers.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        let running = match self.task.remote.clone() {
            Some(remote) => self.reach(&remote)?,
            None => self.start()?,
        };
        self.running = Some(running);
        Ok(())
    }

    fn start(&self) -> Result<Running, Error> {
        let plan = &self.task.plan;
        let deployment = DeploymentUnderTest::open(plan, None, &self.paths(), None, self.context)?;
        let clients = deployment.servers.iter();
        let clients: Vec<Connector> = clients.map(|server| server.connector()).collect();
        Ok(Running {
            members: self.members_of(&deployment, &clients)?,
            clients,
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
            clients: vec![connector.clone()],
            members: vec![DataMember { name: ALONE.to_owned(), data: None, process, connector }],
        })
    }

    /// Stops the servers with data, runs `between`, and starts them again on the same data with empty caches; optionally with
    /// another cache size. After an error, none of them runs.
    pub(crate) fn restart(
        &mut self,
        cache: Option<u64>,
        between: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let context = self.context;
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        if let Some(deployment) = &mut running.deployment {
            // A member without the newest writes could become primary and roll them back.
            deployment.wait_until_ready(context)?;
            deployment.pause(context)?;
            between()?;
            deployment.resume(cache, context)?;
            running.members = self.members_of(deployment, &running.clients)?;
        }
        self.running = Some(running);
        Ok(())
    }

    /// Servers with data of a deployment. Independent servers have one client each, and are reached as by the client.
    fn members_of(
        &self,
        deployment: &DeploymentUnderTest,
        clients: &[Connector],
    ) -> Result<Vec<DataMember>, Error> {
        let mut members = deployment.data_members()?;
        if !self.topology.is_joined() {
            for (member, client) in members.iter_mut().zip(clients) {
                member.connector = client.clone();
            }
        }
        Ok(members)
    }

    /// Waits until all replica set members have all writes.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), Error> {
        let context = self.context;
        match self.deployment_mut() {
            Some(deployment) => deployment.wait_until_ready(context),
            None => Ok(()),
        }
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("already open")
    }

    fn deployment_mut(&mut self) -> Option<&mut DeploymentUnderTest> {
        self.running.as_mut()?.deployment.as_mut()
    }

    /// Whether the servers run.
    pub(crate) fn is_open(&self) -> bool {
        self.running.is_some()
    }

    /// Servers with data.
    pub(crate) fn members(&self) -> &[DataMember] {
        &self.running().members
    }

    /// Process IDs of the servers with data.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.members().iter().map(|one| one.process).collect()
    }

    /// Connectors of the servers with data.
    pub(crate) fn connectors(&self) -> Vec<Connector> {
        self.members().iter().map(|member| member.connector.clone()).collect()
    }

    /// Known data folders on this machine.
    pub(crate) fn data_folders(&self) -> Vec<PathBuf> {
        if !self.is_own() {
            let settings = self.describe().map(|server| server.settings);
            return locality::named_folders(settings.iter());
        }
        self.members().iter().filter_map(|member| member.data.clone()).collect()
    }

    /// The documents of each client: its part if they are divided among servers, otherwise all.
    pub(crate) fn shares(&self) -> Vec<Share> {
        let clients = self.running().clients.len() as u32;
        (0..clients).map(|n| Share::new(n, clients)).collect()
    }

    /// Name of the server that holds this client's documents; `None` if one client serves all servers.
    pub(crate) fn dealt(&self, client: usize) -> Option<&str> {
        let running = self.running();
        let is_dealt = running.clients.len() > 1;
        let member = running.members.get(client).filter(|_| is_dealt);
        member.map(|member| member.name.as_str())
    }

    /// Connection factory for a client. A command on such a connection ends when the user interrupts.
    pub(crate) fn connector(
        &self,
        client: usize,
    ) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let patience = self.context.cancel.patience();
        let connect = self.patient(client);
        move || {
            let mut control = connect()?;
            control.set_cancel_check(patience.clone());
            Ok(control)
        }
    }

    /// Connection factory for commands that must finish despite an interruption.
    pub(crate) fn patient(
        &self,
        client: usize,
    ) -> impl Fn() -> Result<Control, LayoutError> + Sync + use<> {
        let mut connector = self.running().clients[client].clone();
        connector.set_cancel_check(CancelCheck::new(|| false));
        move || {
            let mut control = connector.control().map_err(LayoutError::from)?;
            // Copies and verifications take long.
            control.set_limit(None);
            Ok(control)
        }
    }

    /// A client's connection for short queries.
    pub(crate) fn control(&self, client: usize) -> Result<Control, Error> {
        control(&self.running().clients[client])
    }

    /// A connection of each client.
    pub(crate) fn controls(&self) -> Result<Vec<Control>, Error> {
        self.running().clients.iter().map(control).collect()
    }

    /// Tables in the files of each server with data that reports them.
    pub(crate) fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for mut control in self.members().iter().flat_map(|member| control(&member.connector)) {
            tables.join(Tables::ask(&mut control).unwrap_or_default());
        }
        tables
    }

    /// Names the server that ended, if one did.
    pub(crate) fn explain(&mut self, failure: Error) -> Error {
        match self.deployment_mut() {
            Some(deployment) => deployment.explain(failure),
            None => failure,
        }
    }

    /// Server facts, as reported to the first client.
    pub(crate) fn describe(&self) -> Result<ExperimentServer, Error> {
        let running = self.running();
        let deployment = running.deployment.as_ref();
        describe(&mut self.control(0)?, &self.task.plan, deployment, self.is_own())
    }

    /// This machine, as seen by `dyno doctor`.
    pub(crate) fn environment(&self) -> Result<Environment, Error> {
        let running = self.running();
        let deployment = running.deployment.as_ref();
        match deployment.and_then(|deployment| deployment.servers.first()) {
            Some(server) => {
                let data = running.members.first().and_then(|one| one.data.clone());
                let servers = running.members.len() as u64;
                server.environment(&mut self.control(0)?, &self.task.plan, data, servers)
            }
            None => Ok(examine(Subject::default())),
        }
    }

    /// Applies the planned storage limit.
    pub(crate) fn limit(&mut self) -> Result<(), Error> {
        let processes = self.processes();
        for (storage, process) in self.storages.iter_mut().zip(processes) {
            storage.limit(&[process])?;
        }
        Ok(())
    }

    /// Removes the storage limit.
    pub(crate) fn lift_limit(&mut self) {
        self.storages.iter_mut().for_each(StorageUnderTest::lift_limit);
    }

    /// Stops started servers, and removes their files except logs.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        let deployment = self.running.take().and_then(|running| running.deployment);
        let mut result = deployment.map_or(Ok(()), |one| one.stop_and_tell(self.context));
        if self.owns_data {
            let _ = std::fs::remove_dir_all(self.folder.join(SERVER_DATA));
        }
        for (number, storage) in self.storages.into_iter().enumerate() {
            result = result.and(storage.remove());
            let _ = std::fs::remove_dir(self.folder.join(format!("{STORAGE}-{number}")));
        }
        result
    }
}

/// A connection for short queries.
pub(crate) fn control(connector: &Connector) -> Result<Control, Error> {
    let control = connector.control();
    let mut control =
        control.map_err(|error| Error::from(error).context("cannot connect to the server"))?;
    control.set_limit(Some(QUESTION_LIMIT));
    Ok(control)
}

/// Sets the data folders: on each server's prepared storage, in the planned folder, or in the experiment's folder, which is removed
/// at the end.
fn wait_for_data(server: &mut ServerPlan, prepared: Vec<String>, own: &Path) -> bool {
    if !prepared.is_empty() {
        server.data_dirs = prepared;
        server.disk_mapping = DiskMapping::Direct;
        return false;
    }
    let is_named = server.data_dir.is_some() || !server.data_dirs.is_empty();
    if !is_named {
        server.data_dir = Some(own.display().to_string());
    }
    !is_named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folder_is_storage_or_planned_or_temporary() {
        let own = Path::new("/x/server-data");
        let mut server = ServerPlan::default();
        assert!(wait_for_data(&mut server, Vec::new(), own));
        assert_eq!(server.data_dir.as_deref(), Some("/x/server-data"));
        let mut kept =
            ServerPlan { data_dirs: vec!["/a".into(), "/b".into()], ..ServerPlan::default() };
        assert!(!wait_for_data(&mut kept, Vec::new(), own));
        assert_eq!((kept.data_dir, kept.data_dirs.len()), (None, 2));
        let mut made = ServerPlan::default();
        let each = vec!["/0/data".to_owned(), "/1/data".to_owned()];
        assert!(!wait_for_data(&mut made, each.clone(), own));
        assert_eq!((made.data_dir, made.data_dirs), (None, each));
        assert_eq!(made.disk_mapping, DiskMapping::Direct);
    }
}
