//! The processes of a topology and the data folder of each. Pure functions.

use std::path::{Path, PathBuf};

use crate::{ServerError, ServerProgram, ServerRole};
use dyno_plan::model::DiskMapping;
use dyno_plan::topology::{ReplicaSet, Topology};

/// Name of the only replica set of a deployment.
const SET: &str = "dyno";

/// Name of the replica set of the config servers.
const CONFIG: &str = "config";

/// One process of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, unique within the deployment and valid as a file name: `server`, `pair-0`,
    /// `split-0`, `member-0`, `arbiter-0`, `shard-0-0`, `config-0`, `router-0`.
    pub name: String,
    /// Name of its replica set, if any.
    pub set: Option<String>,
    pub kind: InstanceKind,
}

/// Role of a process in a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// Holds data under test.
    Data,
    /// Votes but holds no data.
    Arbiter,
    /// Holds the catalog of a sharded cluster.
    ConfigServer,
    /// Forwards operations to the shards.
    Router,
}

/// Role of a member in elections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElectionSettings {
    /// Whether it votes but holds no data.
    pub(crate) arbiter: bool,
    /// Priority for becoming the primary; with 0 it never does.
    pub(crate) priority: u16,
    pub(crate) votes: bool,
}

/// The processes of `topology` in the order of their start: config servers, data, routers.
pub fn instances(topology: &Topology) -> Vec<Instance> {
    match topology {
        Topology::Standalone => vec![instance("server".to_owned(), None, InstanceKind::Data)],
        Topology::Pairs { n } => {
            (0..*n).map(|i| instance(format!("pair-{i}"), None, InstanceKind::Data)).collect()
        }
        Topology::Split { n } => {
            (0..*n).map(|i| instance(format!("split-{i}"), None, InstanceKind::Data)).collect()
        }
        Topology::ReplicaSet(set) => {
            let data = (0..set.data_members)
                .map(|i| instance(format!("member-{i}"), Some(SET.to_owned()), InstanceKind::Data));
            let arbiters = (0..set.arbiters).map(|i| {
                instance(format!("arbiter-{i}"), Some(SET.to_owned()), InstanceKind::Arbiter)
            });
            data.chain(arbiters).collect()
        }
        Topology::Sharded(cluster) => {
            let config = (0..cluster.config_members).map(|i| {
                let name = format!("config-{i}");
                instance(name, Some(CONFIG.to_owned()), InstanceKind::ConfigServer)
            });
            let shards = (0..cluster.shards).flat_map(|shard| {
                (0..cluster.members_per_shard).map(move |i| {
                    let set = format!("shard-{shard}");
                    instance(format!("{set}-{i}"), Some(set), InstanceKind::Data)
                })
            });
            let routers = (0..cluster.routers)
                .map(|i| instance(format!("router-{i}"), None, InstanceKind::Router));
            config.chain(shards).chain(routers).collect()
        }
    }
}

fn instance(name: String, set: Option<String>, kind: InstanceKind) -> Instance {
    Instance { name, set, kind }
}

impl Instance {
    /// Its role on the command line. `config_servers` is known only after they have started.
    pub(crate) fn role(&self, topology: &Topology, config_servers: &str) -> ServerRole {
        match (self.kind, &self.set) {
            (InstanceKind::Router, _) => ServerRole::Router(config_servers.to_owned()),
            (_, None) => ServerRole::Standalone,
            (InstanceKind::ConfigServer, Some(set)) => ServerRole::ConfigServer(set.clone()),
            (_, Some(set)) => match topology {
                Topology::Sharded(_) => ServerRole::ShardMember(set.clone()),
                _ => ServerRole::ReplicaSetMember(set.clone()),
            },
        }
    }

    /// The program of this instance if `data` holds the data.
    pub(crate) fn program(&self, data: ServerProgram) -> ServerProgram {
        match self.kind {
            InstanceKind::Router => ServerProgram::Mongos,
            _ => data,
        }
    }
}

/// The election settings of member `index` of a set: data members come before arbiters.
pub(crate) fn election_settings(topology: &Topology, index: u32) -> ElectionSettings {
    let equal = ReplicaSet::new(u32::MAX);
    let set = match topology {
        Topology::ReplicaSet(set) => set,
        _ => &equal,
    };
    if index >= set.data_members {
        return ElectionSettings { arbiter: true, priority: 0, votes: true };
    }
    ElectionSettings { arbiter: false, priority: set.priority(index), votes: set.votes(index) }
}

/// Data folder of each instance. A standalone server gets the first folder itself, others a folder
/// of their name within one; servers without data under test use the first folder.
pub(crate) fn data_folders(
    topology: &Topology,
    instances: &[Instance],
    roots: &[PathBuf],
    mapping: DiskMapping,
) -> Result<Vec<PathBuf>, ServerError> {
    let data = instances.iter().filter(|instance| instance.kind == InstanceKind::Data).count();
    if roots.is_empty() || (mapping == DiskMapping::Direct && roots.len() < data) {
        return Err(ServerError::TooFewFolders { instances: data, folders: roots.len() });
    }
    if *topology == Topology::Standalone {
        return Ok(vec![roots[0].clone()]);
    }
    let mut next = 0..;
    Ok(instances
        .iter()
        .map(|instance| {
            let turn = match instance.kind {
                InstanceKind::Data => next.next().unwrap_or_default(),
                _ => 0,
            };
            roots[turn % roots.len()].join(Path::new(&instance.name))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let instances = instances(&text.parse().unwrap());
        instances.into_iter().map(|one| one.name).collect()
    }

    fn folders(
        text: &str,
        roots: &[&str],
        mapping: DiskMapping,
    ) -> Result<Vec<String>, ServerError> {
        let topology: Topology = text.parse().unwrap();
        let roots: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
        data_folders(&topology, &instances(&topology), &roots, mapping)
            .map(|paths| paths.iter().map(|p| p.display().to_string()).collect())
    }

    #[test]
    fn every_process_has_a_name_and_config_servers_come_first() {
        assert_eq!(names("standalone"), ["server"]);
        assert_eq!(names("pairs=2"), ["pair-0", "pair-1"]);
        assert_eq!(names("split=2"), ["split-0", "split-1"]);
        assert_eq!(names("replica-set=2+1"), ["member-0", "member-1", "arbiter-0"]);
        assert_eq!(
            names("sharded=2x2"),
            ["config-0", "shard-0-0", "shard-0-1", "shard-1-0", "shard-1-1", "router-0"]
        );
        for text in ["pairs=5", "replica-set=3+1", "sharded=2x3,config=3,routers=2"] {
            let topology: Topology = text.parse().unwrap();
            assert_eq!(names(text).len(), topology.instances() as usize);
        }
    }

    #[test]
    fn servers_with_data_use_disks_in_turn() {
        let mapped = folders("sharded=1x3", &["/a", "/b"], DiskMapping::RoundRobin);
        assert_eq!(
            mapped.unwrap(),
            ["/a/config-0", "/a/shard-0-0", "/b/shard-0-1", "/a/shard-0-2", "/a/router-0"]
        );
        let dealt = folders("split=3", &["/a", "/b"], DiskMapping::RoundRobin);
        assert_eq!(dealt.unwrap(), ["/a/split-0", "/b/split-1", "/a/split-2"]);
        let alone = folders("standalone", &["/a", "/b"], DiskMapping::RoundRobin);
        assert_eq!(alone.unwrap(), ["/a"]);
    }

    #[test]
    fn direct_mapping_needs_a_folder_for_each_server() {
        let mapped = folders("pairs=2", &["/a", "/b", "/c"], DiskMapping::Direct);
        assert_eq!(mapped.unwrap(), ["/a/pair-0", "/b/pair-1"]);
        let refused = folders("pairs=3", &["/a", "/b"], DiskMapping::Direct);
        assert!(matches!(refused, Err(ServerError::TooFewFolders { instances: 3, folders: 2 })));
    }

    #[test]
    fn members_have_the_election_settings_of_the_topology() {
        let topology = "replica-set=2+1,priorities=5/0".parse().unwrap();
        let priorities: Vec<_> = (0..3)
            .map(|index| election_settings(&topology, index))
            .map(|one| (one.priority, one.arbiter))
            .collect();
        assert_eq!(priorities, [(5, false), (0, false), (0, true)]);
        let shard = election_settings(&"sharded=1x3".parse().unwrap(), 2);
        assert_eq!((shard.priority, shard.arbiter, shard.votes), (1, false, true));
    }
}
