//! Checks of a plan that its types cannot express. All of them run, and all problems are returned.

use crate::fleet;
use crate::model::{
    DataPlan, DiskMapping, Encryption, ExporterPlan, FieldLength, FreshData, KeyDistribution, Plan,
    Schedule, ServerKind, ServerPlan, StorageEngine,
};
use crate::placement::PlacementRequest;
use crate::problem::Problem;
use crate::tail;
use crate::units::{Bytes, is_list};
use crate::uri;
use std::net::IpAddr;
use std::time::Duration;

/// Longest name of a plan, in characters.
const NAME_CHARACTERS: usize = 64;
/// Most documents per insert command: what a server takes.
const BATCH: u32 = 100_000;
/// Largest document that a server stores, in bytes.
const DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of the documents of an insert command, below the 48 000 000 that a server takes for a message.
const BATCH_BYTES: u64 = 47_000_000;
/// Key numbers have 63 bits, as in YCSB.
const RECORDS: u64 = 1 << 62;

/// Problems of a plan; empty when it can be run.
pub fn validate(plan: &Plan) -> Vec<Problem> {
    let mut problems = Problems::default();
    check_name(&mut problems, plan);
    check_fresh(&mut problems, plan);
    check_server(&mut problems, &plan.server);
    check_durable(&mut problems, plan);
    check_data(&mut problems, &plan.data, plan.client.batch);
    check_times_cache(&mut problems, plan);
    check_operations(&mut problems, plan);
    check_keys(&mut problems, plan);
    check_access(&mut problems, plan);
    check_client(&mut problems, plan);
    check_schedule(&mut problems, plan);
    check_phases(&mut problems, plan);
    check_traces(&mut problems, plan);
    check_io_trace(&mut problems, plan);
    check_index_build(&mut problems, plan);
    problems.0.append(&mut tail::problems(plan));
    check_observe(&mut problems, plan);
    problems.0.append(&mut fleet::problems(plan));
    problems.0
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Problem::new(message()));
        }
    }

    fn require_or(&mut self, holds: bool, hint: &str, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Problem::new(message()).with_hint(hint));
        }
    }

    fn ratio(&mut self, key: &str, value: f64) {
        self.require((0.0..=1.0).contains(&value), || {
            format!("`{key}` is `{value}`, but must be 0 to 1")
        });
    }
}

/// Whether a text can be the name of a file.
fn is_file_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty()
        && name.chars().count() <= NAME_CHARACTERS
        && name.chars().all(allowed)
        && !name.starts_with('.')
}

fn check_traces(problems: &mut Problems, plan: &Plan) {
    for (index, trace) in plan.traces.iter().enumerate() {
        let name = &trace.name;
        problems.require_or(is_file_name(name), "it names a folder", || {
            format!("`traces[{index}].name` is `{name}`, but must have 1 to {NAME_CHARACTERS} letters, digits, `.`, `_` or `-`")
        });
        let is_first = !plan.traces[..index].iter().any(|other| other.name == *name);
        problems.require(is_first, || format!("two `traces` have the name `{name}`"));
        let has_program = trace
            .command
            .first()
            .is_some_and(|program| !program.is_empty());
        problems.require(has_program, || {
            format!("`traces[{index}].command` names no program")
        });
        problems.require(
            trace.length.is_none_or(|length| !length.0.is_zero()),
            || format!("`traces[{index}].for` is 0, so that the program would never run"),
        );
    }
}

fn check_io_trace(problems: &mut Problems, plan: &Plan) {
    let Some(trace) = &plan.trace else { return };
    problems.require(
        trace.length.is_none_or(|length| !length.0.is_zero()),
        || "`trace.for` is 0, so that nothing would be traced".to_owned(),
    );
    let wants_some = !trace.operations.is_empty();
    problems.require_or(wants_some, "leave it out for all of them", || {
        "`trace.operations` is empty, so that nothing would be traced".to_owned()
    });
    let is_empty = |pattern: &String| pattern.trim().is_empty();
    problems.require(!trace.files.iter().any(is_empty), || {
        "`trace.files` has an empty pattern".to_owned()
    });
}

fn check_index_build(problems: &mut Problems, plan: &Plan) {
    let Some(build) = &plan.index_build else {
        return;
    };
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
        format!("`index_build.longest_string` is {longest}: documents would be larger than the 16 MiB that a server takes")
    });
    problems.require(build.disk_iops != Some(0), || {
        "`index_build.disk_iops` is 0, so that nothing could be read".to_owned()
    });
    problems.require(
        build.disk_size.is_none() || build.disk_iops.is_some(),
        || "`index_build.disk_size` has no effect without `disk_iops`".to_owned(),
    );
    let documents = plan
        .data
        .records
        .saturating_mul(build.mean_document_bytes());
    let least = Bytes(documents.saturating_add(BESIDE_DOCUMENTS));
    problems.require(build.disk_size.is_none_or(|size| size >= least), || {
        format!("`index_build.disk_size` is too small for the documents and a server beside them: at least {least}")
    });
}

/// What a server needs at least beside its documents: journal, catalogue, room of the file system. In bytes.
const BESIDE_DOCUMENTS: u64 = 128 << 20;

/// Names of sources that a run has without exporters.
const OWN_SOURCES: [&str; 2] = ["host", "server"];

/// How the names of sources begin that are hosts of a fleet.
const HOST_OF_FLEET: &str = "host-";

/// How the names of one of several servers begin.
const SERVER_KINDS: [&str; 5] = ["pair", "member", "router", "config", "shard"];

fn check_observe(problems: &mut Problems, plan: &Plan) {
    let observe = &plan.observe;
    let interval_s = observe.interval.0.as_secs_f64();
    problems.require((0.1..=60.0).contains(&interval_s), || {
        format!(
            "`observe.interval` is {}, but must be 100 ms to 1 minute",
            observe.interval
        )
    });
    for (index, exporter) in observe.exporters.iter().enumerate() {
        let name = &exporter.name;
        problems.require_or(is_file_name(name), "it names a file", || {
            format!("`observe.exporters[{index}].name` is `{name}`, but must have 1 to {NAME_CHARACTERS} letters, digits, `.`, `_` or `-`")
        });
        let is_taken = OWN_SOURCES.contains(&name.as_str())
            || is_numbered_server(name)
            || (plan.fleet.is_some() && name.starts_with(HOST_OF_FLEET))
            || observe.exporters[..index]
                .iter()
                .any(|other| other.name == *name);
        problems.require(!is_taken, || {
            format!("two sources would have the name `{name}`; `observe.exporters[{index}].name` needs another")
        });
        check_exporter_access(problems, exporter, &format!("observe.exporters[{index}]"));
    }
}

/// The problems of where an exporter is and of how it is asked.
fn check_exporter_access(problems: &mut Problems, exporter: &ExporterPlan, path: &str) {
    let encrypted = exporter.url.strip_prefix("https://");
    let place = encrypted.or_else(|| exporter.url.strip_prefix("http://"));
    let host = place.and_then(|rest| rest.split('/').next());
    problems.require_or(
        host.is_some_and(|host| !host.is_empty() && !host.contains('@')),
        "give it as `http://HOST:PORT/metrics` or `https://HOST:PORT/metrics`; user and password have keys of their own",
        || format!("`{path}.url` is not the address of an exporter"),
    );
    let has_user = exporter.user.is_some();
    problems.require_or(
        has_user == exporter.password_file.is_some(),
        "give both for HTTP Basic authentication, or none",
        || format!("`{path}` has one of `user` and `password_file`"),
    );
    problems.require_or(
        exporter.token_file.is_none() || !has_user,
        "leave one of them out",
        || format!("`{path}` has `token_file` and `user`, but a request can bring one of them"),
    );
    let user = exporter.user.as_deref().unwrap_or("user");
    let is_user = !user.is_empty() && !user.contains(|c: char| c == ':' || c.is_control());
    problems.require(is_user, || {
        format!("`{path}.user` is empty, or has `:` or a control character")
    });
    problems.require_or(
        exporter.ca_file.is_none() || encrypted.is_some(),
        "begin the address with `https://`, or leave `ca_file` out",
        || format!("`{path}.ca_file` is for `https` only"),
    );
}

/// Whether it is the name of one of several servers, such as `member-0`.
fn is_numbered_server(name: &str) -> bool {
    name.split_once('-').is_some_and(|(kind, number)| {
        SERVER_KINDS.contains(&kind) && number.starts_with(|first: char| first.is_ascii_digit())
    })
}

fn check_name(problems: &mut Problems, plan: &Plan) {
    let name = &plan.name;
    let fits = is_file_name(name);
    problems.require_or(fits, "it names the run directory", || {
        format!("`name` is `{name}`, but must have 1 to {NAME_CHARACTERS} letters, digits, `.`, `_` or `-`")
    });
}

/// Most servers of one run: a host is no data centre, and more than this are a typing error.
const PAIRS: u32 = 64;

fn check_fresh(problems: &mut Problems, plan: &Plan) {
    problems.require_or(
        plan.data.fresh != FreshData::Server || plan.server.kind != ServerKind::Uri,
        "`collection` drops and loads the collection of a server that runs",
        || "`data.fresh` is `server`, but the plan aims at a server that runs already".into(),
    );
}

fn check_server(problems: &mut Problems, server: &ServerPlan) {
    problems.require((1..=PAIRS).contains(&server.pairs), || {
        format!(
            "`server.pairs` is `{}`, but must be 1 to {PAIRS}",
            server.pairs
        )
    });
    problems.require_or(
        server.pairs <= 1 || server.kind != ServerKind::Uri,
        "leave out `--uri` to start them, or run once for each server",
        || "`server.pairs` starts servers, but the plan aims at one that runs".into(),
    );
    problems.require_or(
        server.placement.is_none() || server.kind != ServerKind::Uri,
        "leave out `--uri` to start the server, or `--placement`",
        || {
            "`server.placement` places servers that are started, but the plan aims at one that runs"
                .into()
        },
    );
    let is_uri = server.kind == ServerKind::Uri;
    problems.require_or(
        server.uri.is_some() == is_uri,
        "`server.uri` and `server.kind = \"uri\"` belong together",
        || match &server.uri {
            Some(_) => "`server.uri` is given, but `server.kind` is not `uri`".into(),
            None => "`server.kind` is `uri`, but `server.uri` is missing".into(),
        },
    );
    for (key, given) in [
        ("mongod", server.mongod.is_some()),
        ("mongos", server.mongos.is_some()),
    ] {
        let fits = matches!(server.kind, ServerKind::Mongod | ServerKind::Auto);
        problems.require(!given || fits, || {
            format!("`server.{key}` is given, but `server.kind` is not `mongod`")
        });
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
            ("topology", server.topology.is_some()),
            ("encryption", server.encryption != Encryption::Off),
            ("auth", server.auth),
            ("listen", server.listen.is_some()),
            ("journal", server.journal.is_some()),
            (
                "journal_commit_interval",
                server.journal_commit_interval.is_some(),
            ),
            ("journal_compressor", server.journal_compressor.is_some()),
            ("storage_engine", server.storage_engine.is_some()),
            ("parameters", !server.parameters.is_empty()),
        ] {
            problems.require(!given, || {
                format!("`server.{key}` applies only to a server that dyno starts")
            });
        }
    }
    check_compressor(problems, server);
    check_connection_options(problems, server);
    check_steering(problems, server);
    check_listen(problems, server);
    if let Some(text) = &server.uri {
        check_uri(problems, text);
    }
}

/// Settings that take back what durable writes promise, and work that has no such writes.
fn check_durable(problems: &mut Problems, plan: &Plan) {
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
            plan.tail
                .as_ref()
                .is_some_and(|tail| tail.write_concern == "0"),
        ),
    ] {
        problems.require_or(!holds, "leave one of them out", || {
            format!("`server.durable_writes` and {against} contradict each other")
        });
    }
    problems.require(plan.index_build.is_none(), || {
        "`server.durable_writes` has no effect on an index build, which measures no writes".into()
    });
}

/// The texts of the topology and of the placement, and whether the servers can form the topology.
fn check_deployment(problems: &mut Problems, server: &ServerPlan) {
    match server.topology() {
        Ok(topology) => {
            let lacking = topology
                .lacking_in_embedded()
                .filter(|_| server.kind == ServerKind::Embedded);
            let hint =
                "run `dyno server install`, or install MongoDB 4.4 or later, and choose `mongod`";
            problems.require_or(lacking.is_none(), hint, || {
                let lacking = lacking.unwrap_or_default();
                format!("`server.topology` = `{topology}`: the embedded server has no {lacking}")
            });
        }
        Err(error) => problems.require_or(false, "see docs/servers.md, Topologies", || {
            format!("`server.topology`: {error}")
        }),
    }
    if let Some(text) = &server.placement
        && let Err(error) = PlacementRequest::parse(text, 1)
    {
        problems.require(false, || format!("`server.placement`: {error}"));
    }
}

fn check_topology(problems: &mut Problems, server: &ServerPlan) {
    problems.require_or(
        server.topology.is_none() || server.pairs == 1,
        "write `pairs=N` as the topology, or leave it out",
        || "`server.topology` and `server.pairs` both say how many servers there are".into(),
    );
    problems.require(
        server.data_dirs.is_empty() || server.data_dir.is_none(),
        || "`server.data_dir` and `server.data_dirs` both name the data folders".into(),
    );
    problems.require(
        server.data_dirs.iter().all(|folder| !folder.is_empty()),
        || "`server.data_dirs` has an empty path".into(),
    );
    problems.require(
        server.disk_mapping == DiskMapping::RoundRobin || !server.data_dirs.is_empty(),
        || "`server.disk_mapping` is `direct`, but `server.data_dirs` names no folders".into(),
    );
    let empty = server
        .parameters
        .keys()
        .find(|name| name.is_empty() || name.contains('='));
    problems.require(empty.is_none(), || {
        format!(
            "`server.parameters` has the name `{}`, which no parameter has",
            empty.map_or("", String::as_str)
        )
    });
}

fn check_listen(problems: &mut Problems, server: &ServerPlan) {
    let Some(text) = &server.listen else { return };
    let address: Option<IpAddr> = text.parse().ok();
    let is_one = address.is_some_and(|one| !one.is_unspecified() && !one.is_multicast());
    problems.require_or(
        is_one,
        "one address of the machine, such as `10.0.0.21`: it is the one that clients are told",
        || format!("`server.listen` is `{text}`"),
    );
    let is_own = address.is_none_or(|one| one.is_loopback());
    problems.require(
        is_own || (!server.auth && server.encryption == Encryption::Off),
        || {
            "`server.listen` cannot be with `server.auth` or `server.encryption`: users and certificates are made for this machine alone"
                .into()
        },
    );
}

/// Longest name of a network interface, in bytes: `IFNAMSIZ` without the zero at the end.
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
        is_interface && cpus.is_none_or(is_list),
        "write a network card for all CPUs, such as `eth0`, or with a list of them, such as `eth0=0-3`",
        || format!("`server.receive_packet_steering` is `{text}`"),
    );
}

/// Options that dyno sets itself on connections to servers that it starts.
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
        server.kind != ServerKind::Uri,
        "write them into the connection string",
        || "`server.connection_options` applies only to a server that dyno starts".into(),
    );
    let own = options
        .split('&')
        .map(|option| option.split('=').next().unwrap_or_default())
        .find(|name| OWN_OPTIONS.contains(&name.to_ascii_lowercase().as_str()));
    problems.require(own.is_none(), || {
        format!(
            "`server.connection_options` has `{}`, which follows from the topology, `encryption` and `auth`",
            own.unwrap_or_default()
        )
    });
    if let Err(error) = uri::parse(&format!("mongodb://h/?{options}")) {
        problems.0.push(Problem {
            hint: error.hint(),
            ..Problem::new(format!("`server.connection_options`: {error}"))
        });
    }
}

fn check_uri(problems: &mut Problems, text: &str) {
    match uri::parse(text) {
        Ok((_, None)) => {}
        Ok((_, Some(_))) => problems.0.push(
            Problem::new("`server.uri` holds credentials, but plans are kept and shown").with_hint(
                "give the connection string by `--uri`, which is not recorded with its password",
            ),
        ),
        Err(error) => problems.0.push(Problem {
            hint: error.hint(),
            ..Problem::new(format!("`server.uri`: {error}"))
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
    problems.require(known.contains(&compressor.as_str()), || {
        format!(
            "`server.block_compressor` is `{compressor}`, but this server has {}",
            known.join(", ")
        )
    });
}

fn check_data(problems: &mut Problems, data: &DataPlan, batch: u32) {
    check_namespace(problems, data);
    problems.require((1..=RECORDS).contains(&data.records), || {
        format!(
            "`data.records` is `{}`, but must be 1 to {RECORDS}",
            data.records
        )
    });
    let end = data
        .insert_start
        .saturating_add(data.insert_count.unwrap_or(0));
    problems.require_or(
        end <= data.records && data.insert_start < data.records.max(1),
        "the part of this client must lie inside the data set",
        || {
            format!(
                "`data.insert_start` + `data.insert_count` is `{end}`, beyond `data.records` = `{}`",
                data.records
            )
        },
    );
    problems.require(data.insert_count != Some(0), || {
        "`data.insert_count` is `0`, but must be at least 1".into()
    });
    problems.require_or(
        data.insert_offset < data.insert_step,
        "no two clients may take the same numbers",
        || {
            format!(
                "`data.insert_offset` is `{}`, but must be below `data.insert_step` = `{}`",
                data.insert_offset, data.insert_step
            )
        },
    );
    problems.require((1..=10_000).contains(&data.field_count), || {
        format!(
            "`data.field_count` is `{}`, but must be 1 to 10000",
            data.field_count
        )
    });
    problems.ratio("data.compressible_ratio", data.compressible_ratio);
    problems.require(data.zero_padding <= 64, || {
        format!(
            "`data.zero_padding` is `{}`, but must be at most 64",
            data.zero_padding
        )
    });
    check_field_length(problems, data, batch);
}

/// What `data.times_cache` may be.
pub(crate) const TIMES_CACHE: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

fn check_times_cache(problems: &mut Problems, plan: &Plan) {
    let Some(times) = plan.data.times_cache else {
        return;
    };
    problems.require(TIMES_CACHE.contains(&times), || {
        format!("`data.times_cache` is `{times}`, but must be 0.01 to 1000")
    });
    problems.require_or(
        plan.server.cache.is_some() && plan.server.kind != ServerKind::Uri,
        "give the number of documents by `data.records`, or the cache of a server that is started by `server.cache`",
        || "`data.times_cache` needs a cache that is known".into(),
    );
    problems.require(plan.data.mean_document_bytes().is_some_and(|bytes| bytes > 0), || {
        "`data.times_cache` needs documents with fields, whose lengths do not follow a histogram"
            .into()
    });
}

fn check_namespace(problems: &mut Problems, data: &DataPlan) {
    let database_ok = !data.database.is_empty()
        && data.database.len() < 64
        && !data
            .database
            .chars()
            .any(|c| "/\\. \"$*<>:|?\0".contains(c));
    problems.require(database_ok, || {
        format!(
            "`data.database` is `{}`, which is no database name",
            data.database
        )
    });
    let collection_ok = !data.collection.is_empty()
        && data.collection.len() < 200
        && !data.collection.contains(['$', '\0'])
        && !data.collection.starts_with("system.");
    problems.require(collection_ok, || {
        format!(
            "`data.collection` is `{}`, which is no collection name",
            data.collection
        )
    });
    let prefix = &data.field_name_prefix;
    problems.require(!prefix.is_empty() && !prefix.starts_with('$') && !prefix.contains(['.', '\0']), || {
        format!("`data.field_name_prefix` is `{prefix}`, but must not be empty, start with `$` or contain `.`")
    });
    problems.require(
        data.key_prefix.len() <= 128 && !data.key_prefix.contains('\0'),
        || "`data.key_prefix` must have at most 128 bytes and no zero byte".into(),
    );
}

/// Bytes of the largest document, names and overhead of the fields included.
fn document_bytes(data: &DataPlan) -> u64 {
    let longest = match &data.field_length {
        FieldLength::Constant { bytes } => *bytes,
        FieldLength::Uniform { max_bytes, .. } | FieldLength::Zipfian { max_bytes, .. } => {
            *max_bytes
        }
        FieldLength::Histogram {
            block_bytes,
            weights,
        } => block_bytes.saturating_mul(u32::try_from(weights.len()).unwrap_or(u32::MAX)),
    };
    // Type, terminator, length and subtype of an element, and the digits of its number.
    let overhead = data.field_name_prefix.len() as u64 + 7 + 5;
    (u64::from(longest) + overhead) * u64::from(data.field_count) + 256
}

fn check_field_length(problems: &mut Problems, data: &DataPlan, batch: u32) {
    if let FieldLength::Uniform {
        min_bytes,
        max_bytes,
    }
    | FieldLength::Zipfian {
        min_bytes,
        max_bytes,
    } = &data.field_length
    {
        problems.require(min_bytes <= max_bytes, || {
            format!("`data.field_length` has `min_bytes` = `{min_bytes}` above `max_bytes` = `{max_bytes}`")
        });
    }
    if let FieldLength::Histogram {
        block_bytes,
        weights,
    } = &data.field_length
    {
        problems.require(
            *block_bytes > 0 && weights.iter().any(|weight| *weight > 0),
            || "`data.field_length` needs `block_bytes` above 0 and a positive weight".into(),
        );
    }
    let bytes = document_bytes(data);
    problems.require(bytes < DOCUMENT_BYTES, || {
        format!("a document would have up to {bytes} bytes, but a server stores at most {DOCUMENT_BYTES}")
    });
    let batch_bytes = bytes.saturating_mul(u64::from(batch));
    problems.require_or(bytes >= DOCUMENT_BYTES || batch_bytes <= BATCH_BYTES, "make `client.batch` smaller", || {
        format!("`client.batch` = `{batch}` documents have up to {batch_bytes} bytes, but a command takes {BATCH_BYTES}")
    });
    let constant = matches!(data.field_length, FieldLength::Constant { .. });
    problems.require(!data.integrity || constant, || {
        "`data.integrity` needs `data.field_length` with `distribution = \"constant\"`".into()
    });
    problems.require(!data.integrity || data.compressible_ratio == 0.0, || {
        "`data.integrity` computes the values, so `data.compressible_ratio` cannot be set".into()
    });
}

fn check_operations(problems: &mut Problems, plan: &Plan) {
    let weights = &plan.operations;
    let named = [
        ("read", weights.read),
        ("update", weights.update),
        ("insert", weights.insert),
        ("scan", weights.scan),
        ("read_modify_write", weights.read_modify_write),
        ("delete", weights.delete),
    ];
    for (name, weight) in named {
        problems.require(weight.is_finite() && weight >= 0.0, || {
            format!("`operations.{name}` is `{weight}`, but must be 0 or more")
        });
    }
    // Index builds and messages have no operations.
    let has_none = plan.index_build.is_some() || plan.tail.is_some();
    let has_some = named.iter().any(|(_, weight)| *weight > 0.0) || has_none;
    problems.require(has_some, || "no operation has a weight above 0".into());
}

fn check_keys(problems: &mut Problems, plan: &Plan) {
    let count = plan
        .data
        .insert_count
        .unwrap_or(plan.data.records.saturating_sub(plan.data.insert_start));
    match plan.keys {
        KeyDistribution::Zipfian { exponent } => {
            problems.require(
                exponent.is_finite() && exponent > 0.0 && exponent <= 20.0,
                || format!("`keys.exponent` is `{exponent}`, but must be above 0 and at most 20"),
            );
        }
        KeyDistribution::Hotspot {
            hot_data_ratio,
            hot_operation_ratio,
        } => {
            problems.ratio("keys.hot_data_ratio", hot_data_ratio);
            problems.ratio("keys.hot_operation_ratio", hot_operation_ratio);
            problems.require(hot_data_ratio * count as f64 >= 1.0, || {
                format!("`keys.hot_data_ratio` = `{hot_data_ratio}` of {count} documents is not one document")
            });
        }
        KeyDistribution::Exponential {
            percentile,
            data_ratio,
        } => {
            problems.require(percentile > 0.0 && percentile < 100.0, || {
                format!("`keys.percentile` is `{percentile}`, but must be above 0 and below 100")
            });
            problems.require(data_ratio.is_finite() && data_ratio > 0.0, || {
                format!("`keys.data_ratio` is `{data_ratio}`, but must be above 0")
            });
        }
        KeyDistribution::Uniform {}
        | KeyDistribution::ScrambledZipfian {}
        | KeyDistribution::Latest {}
        | KeyDistribution::Sequential {} => {}
    }
}

fn check_access(problems: &mut Problems, plan: &Plan) {
    let access = &plan.access;
    problems.require((1..=access.max_scan_length).contains(&access.min_scan_length), || {
        format!(
            "`access.min_scan_length` is `{}`, but must be 1 to `access.max_scan_length` = `{}`",
            access.min_scan_length, access.max_scan_length
        )
    });
    problems.require(
        !access.read_all_fields_by_name || access.read_all_fields,
        || "`access.read_all_fields_by_name` needs `access.read_all_fields`".into(),
    );
}

fn check_client(problems: &mut Problems, plan: &Plan) {
    let client = &plan.client;
    problems.require((1..=100_000).contains(&client.clients), || {
        format!(
            "`client.clients` is `{}`, but must be 1 to 100000",
            client.clients
        )
    });
    problems.require(
        (1..=client.clients.max(1)).contains(&client.threads),
        || {
            format!(
                "`client.threads` is `{}`, but must be 1 to `client.clients` = `{}`",
                client.threads, client.clients
            )
        },
    );
    problems.require((1..=BATCH).contains(&client.batch), || {
        format!(
            "`client.batch` is `{}`, but must be 1 to {BATCH}",
            client.batch
        )
    });
    problems.require(client.load_clients != Some(0), || {
        "`client.load_clients` must be at least 1".into()
    });
    problems.require(client.timeout.0 >= Duration::from_millis(1), || {
        "`client.timeout` must be at least 1ms".into()
    });
    problems.require(i64::try_from(client.seed).is_ok(), || {
        format!(
            "`client.seed` is `{}`, but must be at most {}",
            client.seed,
            i64::MAX
        )
    });
    problems.ratio("client.tolerated_error_ratio", client.tolerated_error_ratio);
}

fn check_schedule(problems: &mut Problems, plan: &Plan) {
    let (Schedule::Constant { rate_per_s, .. } | Schedule::Poisson { rate_per_s, .. }) =
        plan.schedule
    else {
        return;
    };
    problems.require(
        rate_per_s.is_finite() && rate_per_s > 0.0 && rate_per_s <= 1e9,
        || format!("`schedule.rate_per_s` is `{rate_per_s}`, but must be above 0 and at most 1e9"),
    );
}

fn check_phases(problems: &mut Problems, plan: &Plan) {
    let phases = &plan.phases;
    problems.require_or(
        phases.duration.is_some() || phases.operations.is_some(),
        "give `phases.duration`, `phases.operations` or both",
        || "nothing ends the measure phase".into(),
    );
    problems.require(
        phases.duration.is_none_or(|duration| !duration.0.is_zero()),
        || "`phases.duration` must be above 0".into(),
    );
    problems.require(phases.operations != Some(0), || {
        "`phases.operations` must be at least 1".into()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::units::{CacheSize, Span};

    fn plan() -> Plan {
        builtin::find("a").expect("plan a is built in")
    }

    fn only_problem(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        let problems = validate(&plan);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].message.clone()
    }

    #[test]
    fn an_exporter_takes_the_name_of_no_other_source() {
        let named =
            |name: &str| ExporterPlan::open(name.to_owned(), "http://db:9100/metrics".to_owned());
        for name in ["host", "server", "member-0", "pair-12", "shard-0-member-1"] {
            let problem = only_problem(|plan| plan.observe.exporters = vec![named(name)]);
            assert!(problem.contains("two sources"), "{problem}");
        }
        let mut plan = plan();
        plan.observe.exporters = vec![named("member-of-staff"), named("db-1")];
        assert_eq!(validate(&plan), []);
        // That of a host, which its agent reads.
        plan.observe.exporters = vec![named("host-a")];
        assert_eq!(validate(&plan), []);
        plan.fleet = Some(crate::fleet::FleetPlan {
            clients: vec!["clients".to_owned()],
            servers: vec!["servers".to_owned()],
            ..crate::fleet::FleetPlan::default()
        });
        assert!(
            validate(&plan)
                .iter()
                .any(|problem| problem.message.contains("two sources"))
        );
    }

    #[test]
    fn an_exporter_is_asked_with_one_kind_of_credentials_and_certificates_need_https() {
        let plain = || ExporterPlan::open("node".to_owned(), "http://db:9100/metrics".to_owned());
        let file = || Some("secret".into());
        let user = || Some("scraper".to_owned());
        let with = |change: fn(&mut ExporterPlan)| {
            let mut exporter = plain();
            change(&mut exporter);
            exporter
        };
        for good in [
            with(|exporter| exporter.token_file = Some("secret".into())),
            ExporterPlan {
                user: user(),
                password_file: file(),
                ..plain()
            },
            ExporterPlan {
                url: "https://db:9100/metrics".to_owned(),
                ca_file: file(),
                ..plain()
            },
        ] {
            let mut plan = plan();
            plan.observe.exporters = vec![good];
            assert_eq!(validate(&plan), []);
        }
        let bad = [
            (
                ExporterPlan {
                    user: user(),
                    ..plain()
                },
                "one of `user` and `password_file`",
            ),
            (
                ExporterPlan {
                    password_file: file(),
                    ..plain()
                },
                "one of `user` and `password_file`",
            ),
            (
                ExporterPlan {
                    user: user(),
                    password_file: file(),
                    token_file: file(),
                    ..plain()
                },
                "has `token_file` and `user`",
            ),
            (
                ExporterPlan {
                    user: Some("a:b".to_owned()),
                    password_file: file(),
                    ..plain()
                },
                "has `:`",
            ),
            (
                ExporterPlan {
                    ca_file: file(),
                    ..plain()
                },
                "for `https` only",
            ),
            (
                ExporterPlan {
                    url: "https://a:b@db/".to_owned(),
                    ..plain()
                },
                "is not the address",
            ),
            (
                ExporterPlan {
                    url: "ftp://db/".to_owned(),
                    ..plain()
                },
                "is not the address",
            ),
        ];
        for (exporter, expected) in bad {
            let problem = only_problem(|plan| plan.observe.exporters = vec![exporter]);
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn the_embedded_server_forms_no_sets_and_the_problem_says_what_was_asked_for() {
        let mut plan = plan();
        plan.server.topology = Some("replica-set=2+1".into());
        plan.server.kind = ServerKind::Embedded;
        let problems = validate(&plan);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let text = problems[0].to_string();
        assert!(
            text.contains("`server.topology` = `replica-set=2+1`") && text.contains("install"),
            "{text}"
        );
    }

    #[test]
    fn every_topology_has_one_form() {
        let settled = |text: &str| {
            let mut server = ServerPlan {
                topology: Some(text.into()),
                ..ServerPlan::default()
            };
            server.settle_topology();
            (server.topology, server.pairs)
        };
        assert_eq!(settled("standalone"), (None, 1));
        assert_eq!(settled("pairs=3"), (None, 3));
        assert_eq!(
            settled("replica-set=2+1"),
            (Some("replica-set=2+1".into()), 1)
        );
        let problem = only_problem(|plan| plan.server.topology = Some("ring=3".into()));
        assert!(problem.contains("`ring=3` is not a topology"), "{problem}");
    }

    #[test]
    fn a_placement_that_cannot_be_understood_is_a_problem() {
        let problem = only_problem(|plan| plan.server.placement = Some("spread=1".into()));
        assert!(
            problem.starts_with("`server.placement`: `spread=1` is not a valid"),
            "{problem}"
        );
    }

    #[test]
    fn every_built_in_plan_is_valid() {
        for name in builtin::names() {
            let plan = builtin::find(name).expect("it is listed");
            assert_eq!(validate(&plan), [], "{name}");
        }
    }

    #[test]
    fn a_network_card_is_a_name_with_or_without_cpus() {
        let problems = |text: &str| {
            let mut plan = plan();
            plan.server.receive_packet_steering = Some(text.into());
            validate(&plan).len()
        };
        for text in ["lo", "eth0=0-3,8", "enp0s31f6.100=0", "a=0"] {
            assert_eq!(problems(text), 0, "{text}");
        }
        for text in [
            "",
            "=0",
            "eth0=",
            "..",
            "../x",
            "a b",
            "sixteen-letters!",
            "lo=3-1",
            "lo=x",
        ] {
            assert_eq!(problems(text), 1, "{text}");
        }
    }

    #[test]
    fn each_check_names_the_key_and_the_value() {
        type Change = fn(&mut Plan);
        let cases: [(&str, Change); 40] = [
            ("`server.listen` is `0.0.0.0`", |p| {
                p.server.listen = Some("0.0.0.0".into());
            }),
            ("`server.listen` cannot be with", |p| {
                p.server.listen = Some("10.0.0.1".into());
                p.server.auth = true;
            }),
            ("data.fresh", |p| {
                p.data.fresh = FreshData::Server;
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://h".into());
            }),
            ("name", |p| p.name = "a b".into()),
            ("server.uri", |p| p.server.uri = Some("mongodb://h".into())),
            ("server.receive_packet_steering", |p| {
                p.server.receive_packet_steering = Some("eth0=0-".into());
            }),
            ("server.uri`: ", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("nonsense".into());
            }),
            ("holds credentials", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://u:secret@h".into());
            }),
            ("client.seed", |p| p.client.seed = u64::MAX),
            ("server.topology", |p| {
                p.server.topology = Some("replica-set=3".into());
                p.server.pairs = 2;
            }),
            ("server.data_dirs", |p| {
                p.server.data_dir = Some("/a".into());
                p.server.data_dirs = vec!["/b".into()];
            }),
            ("server.disk_mapping", |p| {
                p.server.disk_mapping = DiskMapping::Direct;
            }),
            ("server.parameters", |p| {
                p.server.parameters.insert("a=b".into(), "1".into());
            }),
            ("has `tls`", |p| {
                p.server.connection_options = Some("w=1&tls=true".into());
            }),
            ("server.connection_options`: ", |p| {
                p.server.connection_options = Some("w=1&readConcernLevels=local".into());
            }),
            ("server.auth", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://h".into());
                p.server.auth = true;
            }),
            ("server.mongos", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.mongos = Some("/bin/mongos".into())
            }),
            ("server.mongod", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.mongod = Some("/bin/mongod".into())
            }),
            ("block_compressor", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.block_compressor = Some("snappy".into())
            }),
            ("block_compressor", |p| {
                p.server.block_compressor = Some("brotli".into())
            }),
            ("data.records", |p| p.data.records = RECORDS + 1),
            ("insert_start", |p| p.data.insert_start = p.data.records),
            ("insert_count", |p| {
                p.data.insert_count = Some(p.data.records + 1)
            }),
            ("insert_offset", |p| p.data.insert_offset = 1),
            ("field_count", |p| p.data.field_count = 0),
            ("compressible_ratio", |p| p.data.compressible_ratio = 1.5),
            ("database", |p| p.data.database = "a.b".into()),
            ("collection", |p| p.data.collection = "system.users".into()),
            ("bytes", |p| {
                p.data.field_length = FieldLength::Constant { bytes: 2_000_000 }
            }),
            ("min_bytes", |p| {
                p.data.field_length = FieldLength::Uniform {
                    min_bytes: 2,
                    max_bytes: 1,
                }
            }),
            ("weight above 0", |p| p.operations = Default::default()),
            ("operations.read", |p| p.operations.read = -1.0),
            ("keys.exponent", |p| {
                p.keys = KeyDistribution::Zipfian { exponent: 0.0 }
            }),
            ("hot_data_ratio", |p| {
                p.keys = KeyDistribution::Hotspot {
                    hot_data_ratio: 0.0,
                    hot_operation_ratio: 0.5,
                };
            }),
            ("min_scan_length", |p| p.access.min_scan_length = 0),
            ("client.threads", |p| {
                p.client.threads = p.client.clients + 1
            }),
            ("client.batch", |p| p.client.batch = 0),
            ("a command takes", |p| p.client.batch = 60_000),
            ("rate_per_s", |p| {
                p.schedule = Schedule::Constant {
                    rate_per_s: f64::NAN,
                    max_start_delay: Span::from_secs(1),
                };
            }),
            ("ends the measure phase", |p| {
                p.phases.duration = None;
                p.phases.operations = None;
            }),
        ];
        for (expected, change) in cases {
            let message = only_problem(change);
            assert!(
                message.contains(expected),
                "`{message}` does not name `{expected}`"
            );
        }
    }

    #[test]
    fn durable_writes_go_with_nothing_that_takes_them_back() {
        let durable = |change: &dyn Fn(&mut Plan)| {
            only_problem(|plan| {
                plan.server.kind = ServerKind::Mongod;
                plan.server.durable_writes = true;
                change(plan);
            })
        };
        let options = |text: &'static str| {
            durable(&|plan| plan.server.connection_options = Some(text.into()))
        };
        assert!(options("j=false").contains("`journal=false`"));
        assert!(options("w=0").contains("`w=0`"));
        let uri = durable(&|plan| {
            plan.server.kind = ServerKind::Uri;
            plan.server.uri = Some("mongodb://h/?journal=false".into());
        });
        assert!(uri.contains("`journal=false`"), "{uri}");
        let journal = durable(&|plan| plan.server.journal = Some(false));
        assert!(journal.contains("`server.journal = false`"), "{journal}");
        let engine = durable(&|plan| plan.server.storage_engine = Some(StorageEngine::InMemory));
        assert!(engine.contains("in-memory"), "{engine}");
        let messages = durable(&|plan| {
            plan.tail = Some(crate::tail::TailPlan {
                write_concern: "0".into(),
                ..Default::default()
            });
        });
        assert!(messages.contains("`tail.write_concern"), "{messages}");
        let index = durable(&|plan| plan.index_build = Some(Default::default()));
        assert!(index.contains("index build"), "{index}");
        for (kind, options) in [
            (ServerKind::Embedded, "w=1"),
            (ServerKind::Mongod, "w=majority&journal=true"),
        ] {
            let mut plan = plan();
            plan.server.kind = kind;
            plan.server.durable_writes = true;
            plan.server.connection_options = Some(options.into());
            assert_eq!(validate(&plan), []);
        }
    }

    #[test]
    fn documents_by_the_cache_need_a_cache_that_is_known() {
        let times = |change: &dyn Fn(&mut Plan)| {
            only_problem(|plan| {
                plan.server.cache = Some(CacheSize::Smallest);
                plan.data.times_cache = Some(2.0);
                change(plan);
            })
        };
        assert!(times(&|plan| plan.server.cache = None).contains("`data.times_cache` needs"));
        assert!(times(&|plan| plan.data.times_cache = Some(0.0)).contains("0.01 to 1000"));
        let histogram = times(&|plan| {
            plan.data.field_length = FieldLength::Histogram {
                block_bytes: 1,
                weights: vec![1],
            };
        });
        assert!(histogram.contains("histogram"), "{histogram}");
    }

    #[test]
    fn integrity_needs_values_of_one_length() {
        let message = only_problem(|plan| {
            plan.data.integrity = true;
            plan.data.field_length = FieldLength::Uniform {
                min_bytes: 1,
                max_bytes: 9,
            };
        });
        assert!(message.contains("integrity"));
    }

    #[test]
    fn all_problems_are_reported_together() {
        let mut plan = plan();
        plan.data.field_count = 0;
        plan.client.batch = 0;
        plan.client.tolerated_error_ratio = 2.0;
        assert_eq!(validate(&plan).len(), 3);
    }
}
