//! Arguments that only `mongod` and `mongos` have, and settings that a version or edition refuses.
//! Versions 4.4 to 8.x.

use super::{CommandLine, Launch};
use crate::address;
use crate::settings::ServerRole;
use crate::version::{Program, major_minor};
use crate::{ServerError, ServerOptions, ServerProgram};
use dyno_plan::model::{ServerPlan, StorageEngine};
use dyno_plan::units::Span;
use std::ffi::OsString;
use std::path::Path;

/// First version that always has a journal.
/// Source: MongoDB 6.1 release notes, "Journaling always enabled".
const JOURNAL_ALWAYS: (u32, u32) = (6, 1);

/// First version that waits for its clients before it ends, 15 s by default.
const QUIESCES: (u32, u32) = (5, 0);

/// Time for clients to leave, in milliseconds: the clients of a run are gone before its servers
/// end.
const QUIESCE_MS: &str = "100";

const JOURNAL_COMPRESSORS: [&str; 4] = ["none", "snappy", "zlib", "zstd"];

/// Checks the settings that are independent of the version.
pub(super) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    if options.kind == ServerProgram::Embedded {
        return check_embedded(options);
    }
    check_commit_interval(options)?;
    let plan = &options.plan;
    if let Some(name) = plan.journal_compressor.as_deref()
        && !JOURNAL_COMPRESSORS.contains(&name)
    {
        let known = JOURNAL_COMPRESSORS.join(", ");
        let reason = format!("supported values are {known}");
        return Err(options.kind.refuses("server.journal_compressor", name, reason));
    }
    if let Some(name) = plan.parameters.keys().find(|name| !is_word(name)) {
        let reason = "the name of a parameter consists of letters, digits, `_` and `.`";
        return Err(options.kind.refuses("server.parameters", name, reason));
    }
    check_memory_engine(options)
}

fn is_word(name: &str) -> bool {
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    !name.is_empty() && name.bytes().all(in_word)
}

fn check_commit_interval(options: &ServerOptions) -> Result<(), ServerError> {
    let Some(interval) = options.plan.journal_commit_interval else {
        return Ok(());
    };
    let milliseconds = interval.0.as_millis();
    if !(1..=500).contains(&milliseconds) || interval.0.subsec_nanos() % 1_000_000 != 0 {
        return Err(options.kind.refuses(
            "server.journal_commit_interval",
            format!("{} s", interval.0.as_secs_f64()),
            "it must be 1 ms to 500 ms in whole milliseconds",
        ));
    }
    Ok(())
}

/// Refuses file settings for an engine that writes no files.
fn check_memory_engine(options: &ServerOptions) -> Result<(), ServerError> {
    let plan = &options.plan;
    if !is_in_memory(plan) {
        return Ok(());
    }
    let on_disk = [
        ("server.block_compressor", plan.block_compressor.clone()),
        ("server.journal_compressor", plan.journal_compressor.clone()),
        ("server.journal", plan.journal.map(|on| on.to_string())),
        (
            "server.checkpoint_interval",
            plan.checkpoint_interval.map(|interval| format!("{} s", interval.0.as_secs_f64())),
        ),
    ];
    match on_disk.into_iter().find(|(_, value)| value.is_some()) {
        Some((setting, value)) => Err(options.kind.refuses(
            setting,
            value.unwrap_or_default(),
            "the in-memory engine writes no files",
        )),
        None => Ok(()),
    }
}

/// Refuses settings that the embedded server does not have; the error names a server that does.
fn check_embedded(options: &ServerOptions) -> Result<(), ServerError> {
    let plan = &options.plan;
    let seconds = |interval: Span| format!("{} s", interval.0.as_secs_f64());
    let parameter = plan.parameters.first_key_value();
    let lacking = [
        (
            "server.journal",
            (plan.journal == Some(false)).then(|| "false".to_owned()),
            "running without its log",
        ),
        (
            "server.journal_commit_interval",
            plan.journal_commit_interval.map(seconds),
            "commit interval",
        ),
        ("server.journal_compressor", plan.journal_compressor.clone(), "log compressor"),
        (
            "server.storage_engine",
            is_in_memory(plan).then(|| "in-memory".to_owned()),
            "in-memory engine",
        ),
        (
            "server.parameters",
            parameter.map(|(name, value)| format!("{name}={value}")),
            "parameters on the command line",
        ),
    ];
    let mut lacking = lacking.into_iter();
    let found = lacking.find_map(|(setting, value, what)| Some((setting, value?, what)));
    let Some((setting, value, what)) = found else {
        return Ok(());
    };
    let reason = format!(
        "it does not support {what}; install MongoDB 4.4 or later (`dyno server install`) and \
            choose `mongod`"
    );
    Err(options.kind.refuses(setting, value, reason))
}

fn is_in_memory(plan: &ServerPlan) -> bool {
    plan.storage_engine == Some(StorageEngine::InMemory)
}

/// Checks the settings that depend on the version or the edition, before anything is created.
pub(crate) fn check_version(options: &ServerOptions, program: &Program) -> Result<(), ServerError> {
    if options.kind != ServerProgram::Mongod {
        return Ok(());
    }
    let plan = &options.plan;
    if is_in_memory(plan) && !program.has_memory_engine() {
        return Err(options.kind.refuses(
            "server.storage_engine",
            "in-memory",
            "the Community edition lacks this engine; MongoDB Enterprise and Percona Server have it",
        ));
    }
    if plan.journal == Some(false) {
        if major_minor(&program.version) >= Some(JOURNAL_ALWAYS) {
            return Err(options.kind.refuses(
                "server.journal",
                "false",
                format!(
                    "version {} always has a journal; `storage.journal.enabled` and `--nojournal` \
                     were removed after 6.0",
                    program.version
                ),
            ));
        }
        if options.role.replica_set().is_some() {
            return Err(options.kind.refuses(
                "server.journal",
                "false",
                "members of a replica set need the journal",
            ));
        }
    }
    Ok(())
}

/// Adds the arguments of a `mongod` of this version.
pub(super) fn mongod(options: &ServerOptions, launch: Launch<'_>, line: &mut CommandLine) {
    let plan = &options.plan;
    let engine = if is_in_memory(plan) { "inMemory" } else { "wiredTiger" };
    line.know("storage_engine", engine.to_owned());
    if is_in_memory(plan) {
        line.pair("--storageEngine", engine);
    } else {
        journal(options, line);
    }
    match &options.role {
        ServerRole::ShardMember(_) => line.flag("--shardsvr"),
        ServerRole::ConfigServer(_) => line.flag("--configsvr"),
        ServerRole::Standalone | ServerRole::ReplicaSetMember(_) | ServerRole::Router(_) => {}
    }
    if let Some(name) = options.role.replica_set() {
        line.pair("--replSet", name);
        line.know("replica_set", name.to_owned());
        let patience = "shutdownTimeoutMillisForSignaledShutdown";
        quiesce(options, launch, patience, line);
    }
    common(options, line);
}

fn journal(options: &ServerOptions, line: &mut CommandLine) {
    let plan = &options.plan;
    if plan.journal == Some(false) {
        line.flag("--nojournal");
    }
    line.know("journal", plan.journal.unwrap_or(true).to_string());
    line.setting(
        "--journalCommitInterval",
        "journal_commit_interval_ms",
        plan.journal_commit_interval.map(|interval| interval.0.as_millis()),
        "100".to_owned(),
    );
    line.setting(
        "--wiredTigerJournalCompressor",
        "journal_compressor",
        plan.journal_compressor.as_ref(),
        "snappy".to_owned(),
    );
}

/// The whole command line of a `mongos`.
pub(super) fn mongos(options: &ServerOptions, launch: Launch<'_>, line: &mut CommandLine) {
    if let ServerRole::Router(config) = &options.role {
        line.pair("--configdb", config);
        line.know("config_servers", config.clone());
    }
    bind(options, line);
    line.pair("--port", launch.port.to_string());
    line.flag("--nounixsocket");
    let patience = "mongosShutdownTimeoutMillisForSignaledShutdown";
    quiesce(options, launch, patience, line);
    common(options, line);
}

/// Listening addresses of both programs.
pub(super) fn bind(options: &ServerOptions, line: &mut CommandLine) {
    let bound = address::bound(options.kind, options.listen);
    let texts: Vec<String> = bound.iter().map(ToString::to_string).collect();
    line.pair("--bind_ip", texts.join(","));
    if bound.iter().any(std::net::IpAddr::is_ipv6) {
        line.flag("--ipv6");
    }
}

/// Shortens the wait at shutdown, unless the user has set it.
fn quiesce(options: &ServerOptions, launch: Launch<'_>, parameter: &str, line: &mut CommandLine) {
    let waits = major_minor(launch.version) >= Some(QUIESCES);
    if waits && !options.plan.parameters.contains_key(parameter) {
        line.pair("--setParameter", format!("{parameter}={QUIESCE_MS}"));
    }
}

/// Arguments of a server that accepts only TLS connections: the file with its certificate and key,
/// its authority's file, and whether clients need a certificate as well.
pub fn tls_arguments(server: &Path, ca: &Path, is_mutual: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["--tlsMode".into(), "requireTLS".into()];
    arguments.extend(["--tlsCertificateKeyFile".into(), server.into()]);
    arguments.extend(["--tlsCAFile".into(), ca.into()]);
    if !is_mutual {
        arguments.push("--tlsAllowConnectionsWithoutCertificates".into());
    }
    arguments
}

/// Arguments of both programs.
fn common(options: &ServerOptions, line: &mut CommandLine) {
    if let Some(path) = &options.security.key_file {
        line.pair("--keyFile", path);
    }
    if let Some(tls) = &options.security.tls {
        let is_mutual = options.security.require_client_certificate;
        line.arguments.extend(tls_arguments(&tls.server, &tls.ca, is_mutual));
    }
    for (name, value) in &options.plan.parameters {
        line.pair("--setParameter", format!("{name}={value}"));
        line.know(&format!("parameter.{name}"), value.clone());
    }
}

#[cfg(test)]
mod tests;
