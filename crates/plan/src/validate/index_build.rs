//! Checks of index builds.

use super::data::DOCUMENT_BYTES;
use super::problems::Problems;
use crate::index_build::{IndexBuildPlan, Layout, Remedy};
use crate::model::{DiskMapping, Plan, ServerKind};
use crate::topology::{Sharded, Topology};
use crate::units::Bytes;

/// Most builds without a trace for each one with a trace.
const MOST_UNTRACED: u32 = 100;

pub(super) fn check_index_build(problems: &mut Problems, plan: &Plan) {
    let Some(build) = &plan.index_build else {
        return;
    };
    problems.within("index_build.untraced", build.untraced, 0..=MOST_UNTRACED);
    check_topologies(problems, plan, build);
    if let Err(reason) = build.index_keys() {
        let hint = "such as `date`, or `date:-1,number:1`";
        problems.require_or(false, hint, || {
            format!("`index_build.keys` is `{}`: {reason}", build.keys)
        });
    }
    let (shortest, longest) = (build.shortest_string, build.longest_string);
    problems.require((1..=longest).contains(&shortest), || {
        format!("`index_build.shortest_string` is {shortest}, but must be 1 to `longest_string`, {longest}")
    });
    problems.require(build.largest_document_bytes() <= DOCUMENT_BYTES, || {
        format!("`index_build.longest_string` is {longest}: documents would exceed the server's limit of 16 MiB")
    });
    let documents = plan
        .data
        .records
        .saturating_mul(build.mean_document_bytes());
    let least = Bytes(documents.saturating_add(BESIDE_DOCUMENTS));
    let storage = plan.server.storage.as_ref();
    let on_loop = storage.filter(|storage| storage.is_on_loop());
    problems.require(
        on_loop.is_none_or(|storage| storage.loop_bytes() >= least.0),
        || {
            format!("`server.storage` is too small for the documents and a server beside them: at least {least}")
        },
    );
}

/// The topologies of the experiment, and whether its remedy has the server that it names.
fn check_topologies(problems: &mut Problems, plan: &Plan, build: &IndexBuildPlan) {
    let server = &plan.server;
    let topologies = match build.topologies(server) {
        Ok(topologies) => topologies,
        // One of `server.topology` is a problem of the server.
        Err(_) if build.topologies.is_empty() => return,
        Err(error) => {
            return problems.require_or(false, "see docs/servers.md, Topologies", || {
                format!("`index_build.topologies`: {error}")
            });
        }
    };
    for topology in &topologies {
        check_joined(problems, build, topology);
    }
    if !build.topologies.is_empty() {
        check_several(problems, plan, &topologies);
    }
    let several = topologies
        .iter()
        .filter(|one| one.is_joined() || matches!(one, Topology::Split { .. }))
        .max_by_key(|topology| topology.data_servers());
    if let Some(several) = several {
        check_shared(problems, plan, several);
    }
    check_remedy(problems, build, &topologies);
}

/// What several servers with data need, each for itself.
fn check_shared(problems: &mut Problems, plan: &Plan, topology: &Topology) {
    let server = &plan.server;
    let folders = server.data_dirs.len() as u32;
    let are_enough =
        server.disk_mapping != DiskMapping::Direct || topology.data_servers() <= folders;
    problems.require(are_enough, || {
        format!("`server.disk_mapping` is `direct`, but `server.data_dirs` has {folders} folders for more servers")
    });
    problems.require_or(
        server.cache.is_some(),
        "such as `--cache 2GiB`, which each of them has",
        || format!("`{topology}` needs `server.cache`: the memory that a server may use decides how fast it builds"),
    );
    let storage = server.storage.as_ref();
    problems.require_or(
        topology.data_servers() == 1 || storage.is_none_or(|storage| storage.is_on_loop()),
        "name a file for each of them, such as `ext4 on loop:4GiB`",
        || format!("`server.storage` names a device, and each server of `{topology}` needs one of its own"),
    );
}

/// What cannot be done on servers that are joined.
fn check_joined(problems: &mut Problems, build: &IndexBuildPlan, topology: &Topology) {
    problems.require_or(
        build.layout != Layout::Existing || !topology.is_joined(),
        "take a layout that loads documents",
        || format!("`index_build.layout` on `{topology}`: `existing` needs documents, and servers that are joined for the experiment have none"),
    );
    match topology {
        Topology::ReplicaSet(_) => problems.require_or(
            build.remedy != Some(Remedy::Compact),
            "take `rewrite`, which all members repeat",
            || format!("`index_build.remedy` on `{topology}`: `compact` works on the one member that is asked"),
        ),
        Topology::Sharded(cluster) => {
            let usual = Sharded::new(cluster.shards, cluster.members_per_shard);
            problems.require_or(
                cluster.shard_key == usual.shard_key,
                "leave `key` out",
                || format!("an index build on `{topology}`: documents are loaded and updated by their `_id`, and so must be sharded by its hash"),
            );
            problems.require_or(
                cluster.balancer == usual.balancer,
                "leave `balancer` out",
                || format!("an index build on `{topology}`: chunks that move meanwhile change what a shard reads"),
            );
            problems.require_or(
                build.remedy.is_none(),
                "leave the remedy out, or take `split=N`, on whose servers it can be applied",
                || format!("`index_build.remedy` on `{topology}`: a collection that is part of a sharded cluster cannot be rewritten, because its copy would not be sharded as it is"),
            );
        }
        _ => {}
    }
}

/// What only several topologies contradict.
fn check_several(problems: &mut Problems, plan: &Plan, topologies: &[Topology]) {
    let server = &plan.server;
    problems.require_or(
        server.topology.is_none() && server.pairs == 1,
        "leave `server.topology` and `server.pairs` out",
        || {
            "`index_build.topologies` and `server.topology` both say how many servers there are"
                .into()
        },
    );
    problems.require_or(server.kind != ServerKind::Uri, "leave `--uri` out", || {
        "`index_build.topologies` starts servers, but the plan uses a running one".into()
    });
    let keeps = server.data_dir.is_some() || !server.data_dirs.is_empty();
    problems.require_or(
        !keeps,
        "give one topology, or leave the data folder out",
        || {
            "a data folder is kept, and each of `index_build.topologies` needs one of its own"
                .into()
        },
    );
    for (place, topology) in topologies.iter().enumerate() {
        problems.require_or(
            !matches!(topology, Topology::Pairs { .. }),
            "take `split=N`, which deals the documents over the servers",
            || format!("`index_build.topologies` has `{topology}`, whose servers know nothing of each other"),
        );
        problems.require(!topologies[..place].contains(topology), || {
            format!("`index_build.topologies` has `{topology}` twice")
        });
    }
}

/// Whether the server is there that the remedy names.
fn check_remedy(problems: &mut Problems, build: &IndexBuildPlan, topologies: &[Topology]) {
    let Some(name) = &build.remedy_on else { return };
    problems.require(build.remedy.is_some(), || {
        "`index_build.remedy_on` is given, but `index_build.remedy` is not".into()
    });
    let is_known = match topologies {
        [Topology::Split { n }] => (0..*n).any(|i| *name == format!("split-{i}")),
        _ => false,
    };
    problems.require_or(
        is_known,
        "it names a server of one topology `split=N`: `split-0`, `split-1` and so on",
        || {
            format!(
                "`index_build.remedy_on` is `{name}`, which no server of this topology is called"
            )
        },
    );
}

/// What a server needs at least beside its documents: journal, catalogue, room of the file system. In bytes.
const BESIDE_DOCUMENTS: u64 = 128 << 20;
