//! The servers of a configuration: one, or several over which the documents are dealt. Each is started, stopped and asked by itself,
//! with data and storage of its own.

use crate::layout::{Contents, Share};
use crate::server::Server;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::storage::StorageUnderTest;
use dyno_plan::model::DiskMapping;
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use std::path::{Path, PathBuf};

/// Data of a server, in the folder of the experiment.
pub(crate) const SERVER_DATA: &str = "server-data";
/// Name of a server that stands alone.
const ALONE: &str = "server";

/// See the module.
pub(crate) struct Member<'a> {
    pub(crate) name: String,
    /// Its documents.
    pub(crate) share: Share,
    /// What it held after loading, or found.
    pub(crate) contents: Contents,
    pub(crate) server: Server<'a>,
    /// Goes away after the server.
    pub(crate) storage: Option<StorageUnderTest>,
    task: Task,
    /// For its logs, and for data that is not kept.
    folder: PathBuf,
    /// Whether the data is in this folder, and goes away with it.
    owns_data: bool,
}

/// What each server of a topology is started with, by its name.
pub(crate) fn tasks(task: &Task, topology: &Topology) -> Vec<(String, Share, Task)> {
    let mut task = task.clone();
    let server = &mut task.plan.server;
    server.topology = None;
    let Topology::Split { n } = topology else {
        return vec![(ALONE.to_owned(), Share::ALL, task)];
    };
    let folders: Vec<String> = server.data_dir.take().into_iter().collect();
    let folders = [folders, std::mem::take(&mut server.data_dirs)].concat();
    server.disk_mapping = DiskMapping::RoundRobin;
    let one = |number: u32| {
        let (name, mut task) = (format!("split-{number}"), task.clone());
        let folder = folders.get(number as usize % folders.len().max(1));
        let data = folder.map(|folder| Path::new(folder).join(&name));
        task.plan.server.data_dir = data.map(|data| data.display().to_string());
        (name, Share::new(number, *n), task)
    };
    (0..*n).map(one).collect()
}

impl<'a> Member<'a> {
    /// All servers of a topology, none of which runs yet. Logs and data go into `folder`.
    pub(crate) fn all(
        task: &Task,
        topology: &Topology,
        context: Context<'a>,
        embedded: Option<&'a Path>,
        folder: &Path,
    ) -> Vec<Member<'a>> {
        let tasks = tasks(task, topology);
        let are_several = tasks.len() > 1;
        let members = tasks.into_iter().map(|(name, share, task)| {
            let folder = match are_several {
                true => folder.join(&name),
                false => folder.to_owned(),
            };
            Member {
                server: Server::new(&task, context, embedded, folder.clone()),
                contents: Contents::default(),
                storage: None,
                owns_data: false,
                name,
                share,
                task,
                folder,
            }
        });
        members.collect()
    }

    /// Prepares storage if the plan has it, and settles where the data is.
    pub(crate) fn prepare(&mut self, context: Context<'_>) -> Result<(), Error> {
        let paths = ServerPaths {
            environment: context.environment,
            embedded: None,
            folder: &self.folder,
        };
        let server = &self.task.plan.server;
        let note = |text: &str| context.note(text);
        let interrupted = || context.cancel.requested();
        self.storage = StorageUnderTest::prepare(server, &paths, &note, &interrupted)?;
        if let Some(storage) = &self.storage {
            self.server.set_data(&storage.data());
        } else if self.server.is_own() && self.server.data().is_none() {
            self.server.set_data(&self.folder.join(SERVER_DATA));
            self.owns_data = true;
        }
        Ok(())
    }

    /// Whether the data outlives the experiment.
    pub(crate) fn is_kept(&self) -> bool {
        !self.server.is_own() || self.task.plan.server.data_dir.is_some()
    }

    /// Limits the storage as the plan says.
    pub(crate) fn limit(&mut self) -> Result<(), Error> {
        match &mut self.storage {
            Some(storage) => storage.limit(self.server.processes()),
            None => Ok(()),
        }
    }

    /// Ends the limit.
    pub(crate) fn lift_limit(&mut self) {
        if let Some(storage) = &mut self.storage {
            storage.lift_limit();
        }
    }

    /// Stops the server, and takes away what was made for it but its logs.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        let stopped = self.server.stop();
        if self.owns_data {
            let _ = std::fs::remove_dir_all(self.folder.join(SERVER_DATA));
        }
        let removed = self.storage.map_or(Ok(()), StorageUnderTest::remove);
        stopped.and(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::task::Threads;

    fn task(change: impl FnOnce(&mut dyno_plan::Plan)) -> Task {
        let mut plan = dyno_plan::builtin::INDEX_BUILDS
            .find("churned")
            .expect("it is built in");
        change(&mut plan);
        Task {
            plan,
            remote: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            threads: Threads::Given(1),
            server: None,
        }
    }

    fn folders(task: &Task, topology: &str) -> Vec<(String, Option<String>)> {
        let tasks = tasks(task, &topology.parse().expect("it is a topology"));
        let folders = tasks
            .into_iter()
            .map(|(name, _, task)| (name, task.plan.server.data_dir));
        folders.collect()
    }

    #[test]
    fn each_server_has_a_folder_of_its_own() {
        let name = |name: &str, data: &str| (name.to_owned(), Some(data.to_owned()));
        let kept = task(|plan| plan.server.data_dir = Some("/d".into()));
        assert_eq!(folders(&kept, "standalone"), [name("server", "/d")]);
        let both = [name("split-0", "/d/split-0"), name("split-1", "/d/split-1")];
        assert_eq!(folders(&kept, "split=2"), both);
        let disks = task(|plan| plan.server.data_dirs = vec!["/a".into(), "/b".into()]);
        let three = [
            name("split-0", "/a/split-0"),
            name("split-1", "/b/split-1"),
            name("split-2", "/a/split-2"),
        ];
        assert_eq!(folders(&disks, "split=3"), three);
        assert_eq!(folders(&task(|_| ()), "split=2")[1].1, None);
    }

    #[test]
    fn each_server_stands_alone() {
        let dealt = task(|plan| plan.server.topology = Some("split=2".into()));
        for topology in [Topology::Standalone, Topology::Split { n: 2 }] {
            for (name, _, task) in tasks(&dealt, &topology) {
                assert_eq!(task.plan.server.topology, None, "{name}");
            }
        }
    }
}
