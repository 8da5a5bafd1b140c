//! Checks of index builds.

use super::data::DOCUMENT_BYTES;
use super::problems::Problems;
use crate::index_build::{IndexBuildPlan, Layout, Remedy};
use crate::model::{DiskMapping, Plan, ServerKind};
use crate::topology::{Sharded, Topology};
use crate::units::Bytes;

/// Largest number of untraced builds for each traced one.
const MOST_UNTRACED: u32 = 100;

pub(super) fn check_index_build(problems: &mut Problems, plan: &Plan) {
    let Some(build) = &plan.index_build else {
        return;
    };
    problems.within("index_build.untraced", build.untraced, 0..=MOST_UNTRACED);
    check_topologies(problems, plan, build);
    if let Err(reason) = build.index_keys() {
        let hint = "such as `date`, or `date:-1,number:1`";
        problems.require_or("index_build.keys", false, hint, || {
            format!("is `{}`: {reason}", build.keys)
        });
    }
    let (shortest, longest) = (build.shortest_string, build.longest_string);
    let lengths = ["index_build.shortest_string", "index_build.longest_string"];
    problems.require(lengths, (1..=longest).contains(&shortest), || {
        format!(
            "`index_build.shortest_string` is {shortest}, but must be 1 to `longest_string`, {longest}"
        )
    });
    problems.require(
        "index_build.longest_string",
        build.largest_document_bytes() <= DOCUMENT_BYTES,
        || format!("is {longest}: documents would exceed the server's limit of 16 MiB"),
    );
    let documents = plan.data.records.saturating_mul(build.mean_document_bytes());
    let least = Bytes(documents.saturating_add(BESIDE_DOCUMENTS));
    let storage = plan.server.storage.as_ref();
    let on_loop = storage.filter(|storage| storage.is_on_loop());
    problems.require(
        "server.storage",
        on_loop.is_none_or(|storage| storage.loop_bytes() >= least.0),
        || format!("is too small for the documents and a server: at least {least} needed"),
    );
}

/// Checks the experiment's topologies, and whether the server named for its remedy exists.
fn check_topologies(problems: &mut Problems, plan: &Plan, build: &IndexBuildPlan) {
    let server = &plan.server;
    let topologies = match build.topologies(server) {
        Ok(topologies) => topologies,
        // The check of the server reports a problem of `server.topology`.
        Err(_) if build.topologies.is_empty() => return,
        Err(error) => {
            return problems.require_or(
                ["index_build.topologies"],
                false,
                "see docs/servers.md, Topologies",
                || format!("`index_build.topologies`: {error}"),
            );
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

/// Checks the needs of several servers with data.
fn check_shared(problems: &mut Problems, plan: &Plan, topology: &Topology) {
    let server = &plan.server;
    let folders = server.data_dirs.len() as u32;
    let are_enough =
        server.disk_mapping != DiskMapping::Direct || topology.data_servers() <= folders;
    problems.require("server.disk_mapping", are_enough, || {
        format!("is `direct`, but `server.data_dirs` has {folders} folders for more servers")
    });
    problems.require_or(
        ["server.cache"],
        server.cache.is_some(),
        "such as `--cache 2GiB`, which applies to each server",
        || {
            format!(
                "`{topology}` needs `server.cache` because a server's memory determines the \
            speed of its build"
            )
        },
    );
    let storage = server.storage.as_ref();
    problems.require_or(
        "server.storage",
        topology.data_servers() == 1 || storage.is_none_or(|storage| storage.is_on_loop()),
        "use files instead, such as `ext4 on loop:4GiB`",
        || format!("names a device, but each server of `{topology}` needs its own"),
    );
}

/// Refuses layouts and remedies that joined servers do not support.
fn check_joined(problems: &mut Problems, build: &IndexBuildPlan, topology: &Topology) {
    problems.require_or(
        "index_build.layout",
        build.layout != Layout::Existing || !topology.is_joined(),
        "choose a layout that loads documents",
        || {
            format!(
                "on `{topology}`: `existing` needs documents, but servers \
            that are joined for the experiment have none"
            )
        },
    );
    match topology {
        Topology::ReplicaSet(_) => problems.require_or(
            "index_build.remedy",
            build.remedy != Some(Remedy::Compact),
            "use `rewrite`, which all members repeat",
            || format!("on `{topology}`: `compact` affects only the member that runs it"),
        ),
        Topology::Sharded(cluster) => {
            let usual = Sharded::new(cluster.shards, cluster.members_per_shard);
            problems.require_or([], cluster.shard_key == usual.shard_key, "omit `key`", || {
                format!(
                    "an index build on `{topology}`: documents are loaded and updated by \
                    their `_id`, so they must be sharded by its hash"
                )
            });
            problems.require_or([], cluster.balancer == usual.balancer, "omit `balancer`", || {
                format!(
                    "an index build on `{topology}`: chunk moves during the build change \
                    the data that a shard reads"
                )
            });
            problems.require_or(
                "index_build.remedy",
                build.remedy.is_none(),
                "remove the remedy, or use `split=N`, which supports it",
                || {
                    format!(
                        "on `{topology}`: a sharded collection cannot be \
                    rewritten because its copy would not be sharded in the same way"
                    )
                },
            );
        }
        _ => {}
    }
}

/// Checks for contradictions between several topologies and the rest of the plan.
fn check_several(problems: &mut Problems, plan: &Plan, topologies: &[Topology]) {
    let server = &plan.server;
    problems.require_or(
        ["index_build.topologies", "server.topology"],
        server.topology.is_none() && server.pairs == 1,
        "remove `server.topology` and `server.pairs`",
        "`index_build.topologies` and `server.topology` both set the number of servers",
    );
    problems.require_or(
        "index_build.topologies",
        server.kind != ServerKind::Uri,
        "omit `--uri`",
        "starts servers, but the plan uses a running one",
    );
    let keeps = server.data_dir.is_some() || !server.data_dirs.is_empty();
    problems.require_or(
        ["index_build.topologies"],
        !keeps,
        "use one topology, or remove the data folder",
        "a data folder is kept, but each topology in `index_build.topologies` needs its own",
    );
    for (place, topology) in topologies.iter().enumerate() {
        problems.require_or(
            "index_build.topologies",
            !matches!(topology, Topology::Pairs { .. }),
            "use `split=N`, which distributes the documents over the servers",
            || format!("has `{topology}`, which has independent servers"),
        );
        problems.require("index_build.topologies", !topologies[..place].contains(topology), || {
            format!("has `{topology}` twice")
        });
    }
}

/// Checks whether the server named for the remedy exists.
fn check_remedy(problems: &mut Problems, build: &IndexBuildPlan, topologies: &[Topology]) {
    let Some(name) = &build.remedy_on else { return };
    problems.require(
        "index_build.remedy_on",
        build.remedy.is_some(),
        "is set, but `index_build.remedy` is not",
    );
    let is_known = match topologies {
        [Topology::Split { n }] => (0..*n).any(|i| *name == format!("split-{i}")),
        _ => false,
    };
    problems.require_or(
        "index_build.remedy_on",
        is_known,
        "name a server of a single topology `split=N`: `split-0`, `split-1` and so on",
        || format!("is `{name}`, which is not a server of this topology"),
    );
}

/// Minimum space in bytes for a server in addition to its documents: journal, catalog, reserve of
/// the file system.
const BESIDE_DOCUMENTS: u64 = 128 << 20;
