//! The options of every server of a deployment, checked before anything is made.

use std::fs;
use std::path::PathBuf;

use dyno_plan::units::Bytes;

use super::layout::{Duty, Instance, data_folders, instances};
use super::{DeploymentOptions, of_member};
use crate::cache::{CacheDemand, cache_shares, memory_bytes};
use crate::topology::Topology;
use crate::{DataDir, ServerError, ServerOptions, ServerProgram, command_line};

/// The options of every server, complete but for the security and the address of the config
/// servers, and checked before anything is made.
pub(super) fn planned(
    topology: &Topology,
    options: &DeploymentOptions,
) -> Result<Vec<(Instance, ServerOptions)>, ServerError> {
    topology.check_program(options.server.kind)?;
    let all = instances(topology);
    let folders = data_folders(topology, &all, &options.data_dirs, options.mapping)?;
    check_collection(topology, options)?;
    check_kept(topology, options, &folders)?;
    let caches = caches(&all, options)?;
    let mut planned = Vec::with_capacity(all.len());
    for ((instance, folder), cache) in all.into_iter().zip(folders).zip(caches) {
        let mut server = one(topology, options, &instance, folder)?;
        server.cache = cache;
        if let Some(adjust) = &options.adjust {
            adjust(&instance, &mut server);
        }
        command_line::check(&server).map_err(|source| match topology.instances() {
            1 => source,
            _ => of_member(&instance.name, source),
        })?;
        planned.push((instance, server));
    }
    Ok(planned)
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
    server.log_path = options.log_dir.join(format!("{}.log", instance.name));
    if instance.duty == Duty::Router {
        server.program = options.router.clone().ok_or(ServerError::NotFound {
            program: ServerProgram::Mongos.executable(),
            tried: Vec::new(),
        })?;
        // A router stores nothing: it has no such settings.
        server.block_compressor = None;
        server.checkpoint_interval = None;
        server.mongod = Default::default();
    }
    // The folder above goes away with the last member, unless it was there before.
    let above = folder.parent().filter(|above| !above.exists());
    server.empty_parent = match (topology, options.keeps_data()) {
        (Topology::Standalone, _) | (_, true) => None,
        _ => above
            .map(std::path::absolute)
            .transpose()
            .map_err(|source| ServerError::Prepare {
                path: folder.clone(),
                source,
            })?,
    };
    server.data_dir = match options.keeps_data() && instance.duty != Duty::Router {
        true => DataDir::Kept(folder),
        false => DataDir::Temporary(folder),
    };
    Ok(server)
}

fn setting(
    options: &DeploymentOptions,
    setting: &'static str,
    value: impl ToString,
    reason: &str,
) -> ServerError {
    ServerError::Setting {
        program: options.server.kind.executable(),
        setting,
        value: value.to_string(),
        reason: reason.to_owned(),
    }
}

fn check_collection(topology: &Topology, options: &DeploymentOptions) -> Result<(), ServerError> {
    match (topology, &options.collection) {
        (Topology::Sharded(_), None) => Err(setting(
            options,
            "server.topology",
            topology,
            "the collection that shall be sharded is not named",
        )),
        _ => Ok(()),
    }
}

/// A set remembers the ports of its members, and a user his password: neither is there again.
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
            "a replica set is not taken up again: its members would have other ports"
        }
        _ if options.server.auth => "a user with a new password cannot be made in an old database",
        _ => return Ok(()),
    };
    Err(setting(options, "server.data_dir", used.display(), reason))
}

/// Cache of each instance: as asked for, or a share of the memory, or the server's own default for
/// a server that is alone.
fn caches(
    all: &[Instance],
    options: &DeploymentOptions,
) -> Result<Vec<Option<Bytes>>, ServerError> {
    let count = |wanted: fn(Duty) -> bool| {
        let found = all.iter().filter(|one| wanted(one.duty)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let shares = match (all.len(), options.server.cache) {
        (1, _) | (_, Some(_)) => None,
        _ => options.memory_bytes.or_else(memory_bytes),
    };
    let shares = shares.map(|memory| {
        let demand = CacheDemand {
            program: options.server.kind,
            data: count(|duty| duty == Duty::Data),
            small: count(|duty| matches!(duty, Duty::Arbiter | Duty::ConfigServer)),
        };
        cache_shares(memory, demand)
    });
    let shares = shares.transpose()?;
    let small = Bytes(crate::smallest_share(options.server.kind));
    Ok(all
        .iter()
        .map(|one| match (one.duty, shares) {
            (Duty::Router, _) => None,
            (Duty::Arbiter | Duty::ConfigServer, _) => Some(small),
            (Duty::Data, Some(shares)) => Some(Bytes(shares.data_bytes)),
            (Duty::Data, None) => options.server.cache,
        })
        .collect())
}
