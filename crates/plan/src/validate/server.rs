//! Checks of the servers' start and addresses.

use super::problems::Problems;
use crate::host_setting::HostSetting;
use crate::model::{DiskMapping, Encryption, Plan, ServerKind, ServerPlan, StorageEngine};
use crate::placement::{PlacementRequest, is_list};
use crate::problem::Problem;
use crate::topology::{INSTEAD_OF_SPLIT, NOT_DEALT, Topology};
use crate::uri;
use std::net::IpAddr;

/// A larger number of servers on one host is probably a typing error.
const PAIRS: u32 = 64;

pub(super) fn check_server(problems: &mut Problems, server: &ServerPlan) {
    problems.within("server.pairs", server.pairs, 1..=PAIRS);
    problems.require_or(
        "server.pairs",
        server.pairs <= 1 || server.kind != ServerKind::Uri,
        "omit `--uri` to start them, or run once for each server",
        "starts servers, but the plan uses a running one",
    );
    problems.require_or(
        "server.placement",
        server.placement.is_none() || server.kind != ServerKind::Uri,
        "omit `--uri` to start the server, or omit `--placement`",
        "places servers that dyno starts, but the plan uses a running one",
    );
    let is_uri = server.kind == ServerKind::Uri;
    problems.require_or(
        ["server.uri", "server.kind"],
        server.uri.is_some() == is_uri,
        "set both `server.uri` and `server.kind = \"uri\"`",
        || match &server.uri {
            Some(_) => "`server.uri` is given, but `server.kind` is not `uri`".into(),
            None => "`server.kind` is `uri`, but `server.uri` is missing".into(),
        },
    );
    for (key, given) in [("mongod", server.mongod.is_some()), ("mongos", server.mongos.is_some())] {
        let fits = matches!(server.kind, ServerKind::Mongod | ServerKind::Auto);
        problems.require(
            &format!("server.{key}"),
            !given || fits,
            "is given, but `server.kind` is not `mongod`",
        );
    }
    check_topology(problems, server);
    check_deployment(problems, server);
    if is_uri {
        for (key, given) in [
            ("cache", server.cache.is_some()),
            ("block_compressor", server.block_compressor.is_some()),
            ("checkpoint_interval", server.checkpoint_interval.is_some()),
            ("data_dir", server.data_dir.is_some()),
            ("data_dirs", !server.data_dirs.is_empty()),
            ("storage", server.storage.is_some()),
            ("topology", server.topology.is_some()),
            ("encryption", server.encryption != Encryption::Off),
            ("auth", server.auth),
            ("listen", server.listen.is_some()),
            ("advertise", server.advertise.is_some()),
            ("journal", server.journal.is_some()),
            ("journal_commit_interval", server.journal_commit_interval.is_some()),
            ("journal_compressor", server.journal_compressor.is_some()),
            ("storage_engine", server.storage_engine.is_some()),
            ("parameters", !server.parameters.is_empty()),
            ("host_settings", !server.host_settings.is_empty()),
        ] {
            problems.require(
                &format!("server.{key}"),
                !given,
                "applies only to a server that dyno starts",
            );
        }
    }
    check_compressor(problems, server);
    check_connection_options(problems, server);
    check_steering(problems, server);
    check_host_settings(problems, server);
    check_listen(problems, server);
    if let Some(text) = &server.uri {
        check_uri(problems, text);
    }
}

/// Refuses settings that contradict durable writes, and work without such writes.
pub(super) fn check_durable(problems: &mut Problems, plan: &Plan) {
    let server = &plan.server;
    if !server.durable_writes {
        return;
    }
    let options = match (&server.uri, &server.connection_options) {
        (Some(uri), _) => Some(uri.clone()),
        (None, Some(options)) => Some(format!("mongodb://h/?{options}")),
        (None, None) => None,
    };
    let options = options.and_then(|text| uri::parse(&text).ok());
    let concern = options.map(|(target, _)| target.options.write_concern);
    let asks = |of: fn(&uri::WriteConcern) -> bool| concern.as_ref().is_some_and(of);
    for (against, holds) in [
        ("`journal=false`", asks(|c| c.journal == Some(false))),
        ("`w=0`", asks(|c| c.w == Some(uri::W::Number(0)))),
        ("`server.journal = false`", server.journal == Some(false)),
        (
            "`server.storage_engine = \"in-memory\"`",
            server.storage_engine == Some(StorageEngine::InMemory),
        ),
        (
            "`tail.write_concern = \"0\"`",
            plan.tail.as_ref().is_some_and(|tail| tail.write_concern == "0"),
        ),
    ] {
        problems.require_or("server.durable_writes", !holds, "remove one of them", || {
            format!("and {against} contradict each other")
        });
    }
    problems.require(
        "server.durable_writes",
        plan.index_build.is_none(),
        "has no effect on an index build, which does not measure writes",
    );
}

/// Checks the texts of topology and placement, and whether the servers support the topology.
fn check_deployment(problems: &mut Problems, server: &ServerPlan) {
    match server.topology() {
        Ok(topology) => {
            let lacking =
                topology.lacking_in_embedded().filter(|_| server.kind == ServerKind::Embedded);
            let hint = "install MongoDB 4.4 or later (`dyno server install`), and choose `mongod`";
            problems.require_or("server.topology", lacking.is_none(), hint, || {
                let lacking = lacking.unwrap_or_default();
                format!("= `{topology}`: the embedded server does not support {lacking}")
            });
        }
        Err(error) => problems.require_or(
            ["server.topology"],
            false,
            "see docs/servers.md, Topologies",
            || format!("`server.topology`: {error}"),
        ),
    }
    if let Some(text) = &server.placement
        && let Err(error) = PlacementRequest::parse(text, 1)
    {
        problems.require(["server.placement"], false, || format!("`server.placement`: {error}"));
    }
}

/// Only an index build can distribute documents over servers.
pub(super) fn check_split(problems: &mut Problems, plan: &Plan) {
    let Ok(topology @ Topology::Split { .. }) = plan.server.topology() else {
        return;
    };
    problems.require_or("server.topology", plan.index_build.is_some(), INSTEAD_OF_SPLIT, || {
        format!("= `{topology}`: {NOT_DEALT}")
    });
}

fn check_topology(problems: &mut Problems, server: &ServerPlan) {
    problems.require_or(
        ["server.topology", "server.pairs"],
        server.topology.is_none() || server.pairs == 1,
        "write `pairs=N` as the topology, or remove it",
        "`server.topology` and `server.pairs` both set the number of servers",
    );
    problems.require(
        "server.data_dir",
        server.data_dirs.is_empty() || server.data_dir.is_none(),
        "and `server.data_dirs` both name the data folders",
    );
    let names_folder = server.data_dir.is_some() || !server.data_dirs.is_empty();
    problems.require_or(
        "server.storage",
        server.storage.is_none() || !names_folder,
        "prepared storage has its own folder: remove `data_dir` and `data_dirs`, or `storage`",
        "and a data folder both set the location of the data",
    );
    problems.require(
        "server.data_dirs",
        server.data_dirs.iter().all(|folder| !folder.is_empty()),
        "has an empty path",
    );
    problems.require(
        "server.disk_mapping",
        server.disk_mapping == DiskMapping::RoundRobin || !server.data_dirs.is_empty(),
        "is `direct`, but `server.data_dirs` names no folders",
    );
    check_parameters(problems, server);
}

/// Checks the names of parameters, and whether a server accepts them at run time.
fn check_parameters(problems: &mut Problems, server: &ServerPlan) {
    for (key, parameters) in
        [("parameters", &server.parameters), ("runtime_parameters", &server.runtime_parameters)]
    {
        let wrong = parameters.keys().find(|name| name.is_empty() || name.contains('='));
        problems.require(&format!("server.{key}"), wrong.is_none(), || {
            format!(
                "has `{}`, which is not a valid name of a parameter",
                wrong.map_or("", String::as_str)
            )
        });
    }
    let takes_them = server.kind != ServerKind::Embedded || server.runtime_parameters.is_empty();
    problems.require(
        "server.runtime_parameters",
        takes_them,
        "is set, but the embedded server does not support them",
    );
}

fn check_listen(problems: &mut Problems, server: &ServerPlan) {
    let address = server.listen.as_ref().map(|text| text.parse::<IpAddr>().ok());
    let is_one = address.is_none_or(|one| one.is_some_and(|one| !one.is_multicast()));
    let hint =
        "one address of the machine, such as `10.0.0.21`, or `0.0.0.0` with `server.advertise`";
    let listen = server.listen.as_deref().unwrap_or_default();
    problems.require_or("server.listen", is_one, hint, || format!("is `{listen}`"));
    let is_any = address.flatten().is_some_and(|one| one.is_unspecified());
    let Some(name) = &server.advertise else {
        let hint =
            "set `server.advertise` to the name or address by which clients reach this machine";
        problems.require_or("server.listen", !is_any, hint, || {
            format!("is `{listen}`, which is not an address that clients can use")
        });
        return;
    };
    let hint = "a name or an address without a port, such as `db1.example.com` or `10.0.0.21`";
    problems
        .require_or("server.advertise", is_reachable_name(name), hint, || format!("is `{name}`"));
    problems.require_or(
        "server.advertise",
        server.listen.is_some(),
        "set it to an address of the machine, or to `0.0.0.0`",
        "is given, but `server.listen` is missing",
    );
}

/// Longest host name in bytes.
/// Source: RFC 1035, section 2.3.4.
const HOST_NAME_BYTES: usize = 253;

/// Whether a text is a host name, or an address that a client can use.
fn is_reachable_name(text: &str) -> bool {
    if let Ok(address) = text.parse::<IpAddr>() {
        return !address.is_unspecified() && !address.is_multicast();
    }
    let is_label = |label: &str| {
        let in_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.bytes().all(in_label) && !label.starts_with('-')
    };
    text.len() <= HOST_NAME_BYTES && text.split('.').all(is_label)
}

/// Longest name of a network interface in bytes: `IFNAMSIZ` without the final zero.
const INTERFACE_BYTES: usize = 15;

fn check_steering(problems: &mut Problems, server: &ServerPlan) {
    let Some(text) = &server.receive_packet_steering else {
        return;
    };
    let (interface, cpus) = match text.split_once('=') {
        Some((interface, cpus)) => (interface, Some(cpus)),
        None => (text.as_str(), None),
    };
    let is_interface = (1..=INTERFACE_BYTES).contains(&interface.len())
        && ![".", ".."].contains(&interface)
        && !interface.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    problems.require_or(
        "server.receive_packet_steering",
        is_interface && cpus.is_none_or(is_list),
        "name a network card, such as `eth0` for all CPUs or `eth0=0-3` for some",
        || format!("is `{text}`"),
    );
}

fn check_host_settings(problems: &mut Problems, server: &ServerPlan) {
    for (name, value) in &server.host_settings {
        let Some(setting) = HostSetting::from_name(name) else {
            let all: Vec<&str> = HostSetting::NAMES.iter().map(|(_, name, _)| *name).collect();
            let hint = format!("the names are `{}`", all.join("`, `"));
            problems.require_or("server.host_settings", false, &hint, || {
                format!("has `{name}`, which is not a machine setting")
            });
            continue;
        };
        problems.require(
            &format!("server.host_settings.{name}"),
            setting.written(value).is_some(),
            || {
                let values = setting.values();
                format!("is `{value}`, but must be {values}")
            },
        );
    }
}

/// Options that dyno itself sets on connections to servers that it starts.
const OWN_OPTIONS: [&str; 9] = [
    "directconnection",
    "replicaset",
    "tls",
    "ssl",
    "tlscafile",
    "tlscertificatekeyfile",
    "authsource",
    "authmechanism",
    "loadbalanced",
];

fn check_connection_options(problems: &mut Problems, server: &ServerPlan) {
    let Some(options) = &server.connection_options else {
        return;
    };
    problems.require_or(
        "server.connection_options",
        server.kind != ServerKind::Uri,
        "write them into the connection string",
        "applies only to a server that dyno starts",
    );
    let own = options
        .split('&')
        .map(|option| option.split('=').next().unwrap_or_default())
        .find(|name| OWN_OPTIONS.contains(&name.to_ascii_lowercase().as_str()));
    problems.require("server.connection_options", own.is_none(), || {
        format!(
            "has `{}`, which dyno sets from the topology, `encryption` and `auth`",
            own.unwrap_or_default()
        )
    });
    if let Err(error) = uri::parse(&format!("mongodb://h/?{options}")) {
        problems.0.push(Problem {
            hint: error.hint(),
            ..Problem::new(format!("`server.connection_options`: {error}"))
                .about(["server.connection_options"])
        });
    }
}

fn check_uri(problems: &mut Problems, text: &str) {
    match uri::parse(text) {
        Ok((_, None)) => {}
        Ok((_, Some(_))) => problems.0.push(
            Problem::new("`server.uri` contains credentials, but plans are stored and shown")
                .about(["server.uri"])
                .with_hint("use `--uri`, whose password is not recorded"),
        ),
        Err(error) => problems.0.push(Problem {
            hint: error.hint(),
            ..Problem::new(format!("`server.uri`: {error}")).about(["server.uri"])
        }),
    }
}

fn check_compressor(problems: &mut Problems, server: &ServerPlan) {
    let Some(compressor) = &server.block_compressor else {
        return;
    };
    let known: &[&str] = match server.kind {
        ServerKind::Auto => &["none", "lz4", "snappy", "zlib", "zstd"],
        ServerKind::Embedded => &["none", "lz4", "zlib"],
        ServerKind::Mongod | ServerKind::Uri => &["none", "snappy", "zlib", "zstd"],
    };
    problems.require("server.block_compressor", known.contains(&compressor.as_str()), || {
        format!("is `{compressor}`, but this server supports {}", known.join(", "))
    });
}
