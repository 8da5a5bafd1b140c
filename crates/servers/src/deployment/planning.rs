//! The options of every server of a deployment, checked before anything is created.

use std::fs;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use dyno_plan::model::ServerPlan;
use dyno_plan::units::Bytes;

use super::layout::{Instance, InstanceKind, data_folders, instances};
use super::{Deployment, DeploymentOptions, member_error};
use crate::cache::{MemoryShare, cache_shares};
use crate::version::{Program, program_version};
use crate::{DataDir, ServerError, ServerOptions, ServerProgram, command_line, server};
use dyno_plan::topology::Topology;

/// The options of every server, checked and complete except for the security and the address of the
/// config servers.
pub(super) fn planned(
    topology: &Topology,
    options: &DeploymentOptions,
) -> Result<Vec<(Instance, ServerOptions)>, ServerError> {
    check_formable(topology, options.server.kind)?;
    let caches = planned_caches(
        topology,
        options.server.kind,
        options.server.cache,
        options.memory.as_deref(),
    )?;
    planned_of(topology, options, caches)
}

/// Like [`planned`] for one member of a replica set whose other members are on other hosts.
pub(super) fn planned_member(
    topology: &Topology,
    options: &DeploymentOptions,
    number: usize,
) -> Result<(Instance, ServerOptions), ServerError> {
    let refused = |reason| options.server.kind.refuses("server.topology", topology, reason);
    check_formable(topology, options.server.kind)?;
    if !matches!(topology, Topology::ReplicaSet(_)) {
        return Err(refused("only a replica set can span several hosts"));
    }
    let instance = instances(topology).into_iter().nth(number);
    let instance = instance.ok_or_else(|| refused("it has fewer members than hosts"))?;
    let cache = match instance.kind {
        InstanceKind::Data => options.server.cache,
        _ => Some(Bytes(crate::smallest_share(options.server.kind))),
    };
    let mut planned = planned_of(topology, options, vec![(instance, cache)])?;
    Ok(planned.remove(0))
}

impl Deployment {
    /// Like [`check`](Deployment::check) for servers on other machines, about which nothing is
    /// known here: checks topology, settings, and the number of data folders. With `over_machines`
    /// each member has its own machine.
    ///
    /// # Errors
    /// [`ServerError`], like a start there.
    pub fn check_elsewhere(
        topology: &Topology,
        options: &DeploymentOptions,
        over_machines: bool,
    ) -> Result<(), ServerError> {
        topology.check()?;
        check_formable(topology, options.server.kind)?;
        check_collection(topology, options)?;
        let all = instances(topology);
        let machines: Vec<&[Instance]> = match over_machines {
            true => all.chunks(1).collect(),
            false => vec![&all[..]],
        };
        for on_machine in machines {
            for (instance, folder) in
                on_machine.iter().zip(folders_of(topology, options, on_machine)?)
            {
                let server = one(topology, options, instance, folder)?;
                command_line::check(&server)
                    .map_err(|error| of_member(topology, instance, error))?;
            }
        }
        Ok(())
    }

    /// The data folder of each server with data, in the order of their start, whether it exists or
    /// not. With `member` only this member's folder, whose machine has no other.
    ///
    /// # Errors
    /// [`ServerError::TooFewFolders`].
    pub fn planned_folders(
        topology: &Topology,
        options: &DeploymentOptions,
        member: Option<usize>,
    ) -> Result<Vec<PathBuf>, ServerError> {
        let all = instances(topology);
        let own = match member {
            Some(number) => all.get(number..=number).unwrap_or_default(),
            None => &all[..],
        };
        let with_data = own.iter().zip(folders_of(topology, options, own)?);
        let with_data = with_data.filter(|(one, _)| one.kind == InstanceKind::Data);
        Ok(with_data.map(|(_, folder)| folder).collect())
    }
}

fn folders_of(
    topology: &Topology,
    options: &DeploymentOptions,
    instances: &[Instance],
) -> Result<Vec<PathBuf>, ServerError> {
    let mapping = options.server.plan.disk_mapping;
    data_folders(topology, instances, &options.data_dirs, mapping)
}

/// Adds the server's name to an error if the topology has several servers.
fn of_member(topology: &Topology, instance: &Instance, error: ServerError) -> ServerError {
    match topology.instances() {
        1 => error,
        _ => member_error(&instance.name, error),
    }
}

/// The options of these servers of a topology, each with its cache.
fn planned_of(
    topology: &Topology,
    options: &DeploymentOptions,
    caches: Vec<(Instance, Option<Bytes>)>,
) -> Result<Vec<(Instance, ServerOptions)>, ServerError> {
    let all: Vec<Instance> = caches.iter().map(|(one, _)| one.clone()).collect();
    let folders = folders_of(topology, options, &all)?;
    check_collection(topology, options)?;
    check_kept(topology, options, &folders)?;
    check_advertised(options)?;
    let mut planned = Vec::with_capacity(all.len());
    for ((instance, folder), (_, cache)) in all.into_iter().zip(folders).zip(caches) {
        let mut server = one(topology, options, &instance, folder)?;
        server.cache = cache;
        server.placement = options.seats.get(&instance.name).cloned().or(server.placement);
        // Both kinds of server report a missing address in the same words.
        let checked = command_line::check(&server).and_then(|()| server::free_port(&server));
        checked.map_err(|error| of_member(topology, &instance, error))?;
        planned.push((instance, server));
    }
    Ok(planned)
}

/// Checks that servers of this kind can be joined in this way.
fn check_formable(topology: &Topology, program: ServerProgram) -> Result<(), ServerError> {
    match (program, topology.lacking_in_embedded()) {
        (ServerProgram::Embedded, Some(lacking)) => {
            let reason = format!(
                "it does not support {lacking}; install MongoDB 4.4 or later (`dyno server install`) and choose `mongod`"
            );
            Err(program.refuses("server.topology", topology, reason))
        }
        _ => Ok(()),
    }
}

/// Checks programs and folders of planned servers like their starts do. Runs each program once to
/// get its version.
pub(super) fn check_programs(
    topology: &Topology,
    planned: &[(Instance, ServerOptions)],
) -> Result<(), ServerError> {
    let mut asked: Vec<(&Path, Program)> = Vec::new();
    for (instance, server) in planned {
        let known = asked.iter().position(|(path, _)| *path == server.program);
        let checked = match known {
            Some(place) => Ok(place),
            None => program_version(server.kind, &server.program).map(|program| {
                asked.push((&server.program, program));
                asked.len() - 1
            }),
        };
        let checked = checked.and_then(|place| server::check(server, &asked[place].1));
        checked.map_err(|error| of_member(topology, instance, error))?;
    }
    Ok(())
}

fn one(
    topology: &Topology,
    options: &DeploymentOptions,
    instance: &Instance,
    folder: PathBuf,
) -> Result<ServerOptions, ServerError> {
    let mut server = options.server.clone();
    server.kind = instance.program(options.server.kind);
    server.role = instance.role(topology, "");
    server.port = match topology {
        Topology::Standalone => server.port,
        _ => 0,
    };
    server.log_path = options.log_dir.join(format!("{}.raw.log", instance.name));
    if instance.kind == InstanceKind::Router {
        server.program = options.router.clone().ok_or(ServerError::NotFound {
            program: ServerProgram::Mongos.executable(),
            tried: Vec::new(),
        })?;
        // A router stores no data, so it does not have these settings.
        server.plan = ServerPlan { auth: server.plan.auth, ..ServerPlan::default() };
    }
    // The parent folder is removed with the last member, unless it existed before.
    let above = folder.parent().filter(|above| !above.exists());
    server.empty_parent = match (topology, options.keeps_data()) {
        (Topology::Standalone, _) | (_, true) => None,
        _ => above.map(std::path::absolute).transpose().map_err(ServerError::prepare(&folder))?,
    };
    server.data_dir = if options.keeps_data() && instance.kind != InstanceKind::Router {
        DataDir::Kept(folder)
    } else {
        DataDir::Temporary(folder)
    };
    Ok(server)
}

fn check_collection(topology: &Topology, options: &DeploymentOptions) -> Result<(), ServerError> {
    if matches!(topology, Topology::Sharded(_)) && options.collection.is_none() {
        let reason = "no collection to shard was given";
        return Err(options.server.kind.refuses("server.topology", topology, reason));
    }
    Ok(())
}

/// Members and clients on this machine use the advertised name to find servers.
fn check_advertised(options: &DeploymentOptions) -> Result<(), ServerError> {
    let Some(name) = &options.server.advertise else {
        return Ok(());
    };
    (name.as_str(), 0).to_socket_addrs().map(drop).map_err(|error| {
        let reason = format!("this machine cannot resolve the name: {error}");
        options.server.kind.refuses("server.advertise", name, reason)
    })
}

/// Refuses kept folders that a deployment cannot reuse: a set remembers its members' ports, and a
/// database its user's password, but both are new in each run.
fn check_kept(
    topology: &Topology,
    options: &DeploymentOptions,
    folders: &[PathBuf],
) -> Result<(), ServerError> {
    let filled = |folder: &PathBuf| fs::read_dir(folder).is_ok_and(|mut all| all.next().is_some());
    let Some(used) = folders.iter().find(|folder| filled(folder)) else {
        return Ok(());
    };
    if !options.keeps_data() {
        // The start of that server refuses the folder by name.
        return Ok(());
    }
    let reason = match topology {
        Topology::ReplicaSet(_) | Topology::Sharded(_) => {
            "an existing replica set cannot be restarted because its members would have other ports"
        }
        _ if options.server.plan.auth => {
            "a user with a new password cannot be created in an existing database"
        }
        _ => return Ok(()),
    };
    Err(options.server.kind.refuses("server.data_dir", used.display(), reason))
}

/// Cache of each server of a deployment in the order of their start: `cache` if it is set, or a
/// share of `memory`, which has one entry per server with data, by [`cache_shares`]. Without
/// either, several servers share the memory of this machine, and a single one uses its own default:
/// `None`, as for routers.
///
/// # Errors
/// [`ServerError::NoMemory`], and [`ServerError::Memory`] if the machine cannot be read.
pub fn planned_caches(
    topology: &Topology,
    program: ServerProgram,
    cache: Option<Bytes>,
    memory: Option<&[MemoryShare]>,
) -> Result<Vec<(Instance, Option<Bytes>)>, ServerError> {
    let all = instances(topology);
    let count = |wanted: &[InstanceKind]| {
        let found = all.iter().filter(|one| wanted.contains(&one.kind)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let small = count(&[InstanceKind::Arbiter, InstanceKind::ConfigServer]);
    let shares = match (cache, memory, all.len()) {
        (Some(_), _, _) | (None, None, 1) => Vec::new(),
        (None, Some(memory), _) => cache_shares(memory, program, small)?,
        (None, None, _) => {
            let memory = MemoryShare::for_this_machine(count(&[InstanceKind::Data]))
                .map_err(|source| ServerError::Memory { source })?;
            cache_shares(&memory, program, small)?
        }
    };
    let mut shares = shares.into_iter();
    let with_cache = all.into_iter().map(|one| {
        let cache = match one.kind {
            InstanceKind::Router => None,
            InstanceKind::Arbiter | InstanceKind::ConfigServer => {
                Some(Bytes(crate::smallest_share(program)))
            }
            InstanceKind::Data => shares.next().map(Bytes).or(cache),
        };
        (one, cache)
    });
    Ok(with_cache.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_server_refuses_joined_topologies() {
        for text in ["replica-set=3", "sharded=2x2,chunks=4"] {
            let topology: Topology = text.parse().unwrap();
            assert!(check_formable(&topology, ServerProgram::Mongod).is_ok());
            let error = check_formable(&topology, ServerProgram::Embedded).unwrap_err();
            assert!(
                matches!(&error, ServerError::Setting { setting: "server.topology", value, .. }
                    if value == text),
                "{error:?}"
            );
        }
        for text in ["standalone", "pairs=2"] {
            let topology: Topology = text.parse().unwrap();
            assert!(check_formable(&topology, ServerProgram::Embedded).is_ok());
        }
    }
}
