//! Arguments that only `mongod` and `mongos` have, and settings that a version or edition refuses.
//! Versions 4.4 to 8.x.

use super::{Builder, CommandLine, Launch, refuse};
use crate::address;
use crate::settings::{ServerRole, StorageEngine};
use crate::version::{Program, major_minor};
use crate::{ServerError, ServerOptions, ServerProgram};
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
    let is_router = options.kind == ServerProgram::Mongos;
    if is_router != matches!(options.role, ServerRole::Router(_)) {
        return Err(refuse(
            options,
            "server.topology",
            options.role.name(),
            "a router must be a `mongos`, and every other server a `mongod`",
        ));
    }
    check_commit_interval(options)?;
    let settings = &options.mongod;
    if let Some(name) = settings.journal_compressor.as_deref()
        && !JOURNAL_COMPRESSORS.contains(&name)
    {
        let known = JOURNAL_COMPRESSORS.join(", ");
        let reason = format!("supported values are {known}");
        return Err(refuse(options, "server.journal_compressor", name, reason));
    }
    if let Some(name) = settings.parameters.keys().find(|name| !is_word(name)) {
        let reason = "the name of a parameter consists of letters, digits, `_` and `.`";
        return Err(refuse(options, "server.parameters", name, reason));
    }
    check_memory_engine(options)
}

fn is_word(name: &str) -> bool {
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    !name.is_empty() && name.bytes().all(in_word)
}

fn check_commit_interval(options: &ServerOptions) -> Result<(), ServerError> {
    let Some(interval) = options.mongod.journal_commit_interval else {
        return Ok(());
    };
    let milliseconds = interval.0.as_millis();
    if !(1..=500).contains(&milliseconds) || interval.0.subsec_nanos() % 1_000_000 != 0 {
        return Err(refuse(
            options,
            "server.journal_commit_interval",
            format!("{} s", interval.0.as_secs_f64()),
            "it must be 1 ms to 500 ms in whole milliseconds",
        ));
    }
    Ok(())
}

/// Refuses file settings for an engine that writes no files.
fn check_memory_engine(options: &ServerOptions) -> Result<(), ServerError> {
    let settings = &options.mongod;
    if settings.storage_engine != StorageEngine::InMemory {
        return Ok(());
    }
    let on_disk = [
        ("server.block_compressor", options.block_compressor.clone()),
        ("server.journal_compressor", settings.journal_compressor.clone()),
        ("server.journal", settings.journal.map(|on| on.to_string())),
        (
            "server.checkpoint_interval",
            options.checkpoint_interval.map(|interval| format!("{} s", interval.0.as_secs_f64())),
        ),
    ];
    match on_disk.into_iter().find(|(_, value)| value.is_some()) {
        Some((setting, value)) => Err(refuse(
            options,
            setting,
            value.unwrap_or_default(),
            "the in-memory engine writes no files",
        )),
        None => Ok(()),
    }
}

/// Refuses settings that the embedded server does not have; the error names a server that does.
fn check_embedded(options: &ServerOptions) -> Result<(), ServerError> {
    let lacks = |setting, value: String, what: &str| {
        Err(refuse(
            options,
            setting,
            value,
            format!(
                "it does not support {what}; install MongoDB 4.4 or later (`dyno server install`) \
                    and choose `mongod`"
            ),
        ))
    };
    let settings = &options.mongod;
    match &options.role {
        ServerRole::Standalone => {}
        ServerRole::ReplicaSetMember(name) => {
            return lacks("server.topology", name.clone(), "replica sets");
        }
        ServerRole::ShardMember(name)
        | ServerRole::ConfigServer(name)
        | ServerRole::Router(name) => {
            return lacks("server.topology", name.clone(), "sharding");
        }
    }
    if settings.journal == Some(false) {
        return lacks("server.journal", "false".into(), "running without its log");
    }
    if let Some(interval) = settings.journal_commit_interval {
        let value = format!("{} s", interval.0.as_secs_f64());
        return lacks("server.journal_commit_interval", value, "commit interval");
    }
    if let Some(name) = &settings.journal_compressor {
        return lacks("server.journal_compressor", name.clone(), "log compressor");
    }
    if settings.storage_engine == StorageEngine::InMemory {
        return lacks("server.storage_engine", "in-memory".into(), "in-memory engine");
    }
    if let Some((name, value)) = settings.parameters.first_key_value() {
        let value = format!("{name}={value}");
        return lacks("server.parameters", value, "parameters on the command line");
    }
    if options.security.key_file.is_some() {
        return lacks("server.key_file", "file".into(), "key files");
    }
    Ok(())
}

/// Checks the settings that depend on the version or the edition, before anything is created.
pub(super) fn check_version(options: &ServerOptions, program: &Program) -> Result<(), ServerError> {
    if options.kind != ServerProgram::Mongod {
        return Ok(());
    }
    let settings = &options.mongod;
    if settings.storage_engine == StorageEngine::InMemory && !program.has_memory_engine() {
        return Err(refuse(
            options,
            "server.storage_engine",
            "in-memory",
            "the Community edition lacks this engine; MongoDB Enterprise and Percona Server have it",
        ));
    }
    if settings.journal == Some(false) {
        if major_minor(&program.version) >= Some(JOURNAL_ALWAYS) {
            return Err(refuse(
                options,
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
            return Err(refuse(
                options,
                "server.journal",
                "false",
                "members of a replica set need the journal",
            ));
        }
    }
    Ok(())
}

/// Adds the arguments of a `mongod` of this version.
pub(super) fn mongod(options: &ServerOptions, launch: Launch<'_>, line: &mut Builder) {
    let settings = &options.mongod;
    line.know("storage_engine", settings.storage_engine.name().to_owned());
    if settings.storage_engine == StorageEngine::InMemory {
        line.pair("--storageEngine", "inMemory");
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

fn journal(options: &ServerOptions, line: &mut Builder) {
    let settings = &options.mongod;
    if settings.journal == Some(false) {
        line.flag("--nojournal");
    }
    line.know("journal", settings.journal.unwrap_or(true).to_string());
    line.setting(
        "--journalCommitInterval",
        "journal_commit_interval_ms",
        settings.journal_commit_interval.map(|interval| interval.0.as_millis()),
        "100".to_owned(),
    );
    line.setting(
        "--wiredTigerJournalCompressor",
        "journal_compressor",
        settings.journal_compressor.as_ref(),
        "snappy".to_owned(),
    );
}

/// The whole command line of a `mongos`.
pub(super) fn mongos(options: &ServerOptions, launch: Launch<'_>) -> CommandLine {
    let mut line = Builder::default();
    if let ServerRole::Router(config) = &options.role {
        line.pair("--configdb", config);
        line.know("config_servers", config.clone());
    }
    bind(options, &mut line);
    line.pair("--port", launch.port.to_string());
    line.flag("--nounixsocket");
    let patience = "mongosShutdownTimeoutMillisForSignaledShutdown";
    quiesce(options, launch, patience, &mut line);
    common(options, &mut line);
    line.0
}

/// Listening addresses of both programs.
pub(super) fn bind(options: &ServerOptions, line: &mut Builder) {
    let bound = address::bound(options.kind, options.listen);
    let texts: Vec<String> = bound.iter().map(ToString::to_string).collect();
    line.pair("--bind_ip", texts.join(","));
    if bound.iter().any(std::net::IpAddr::is_ipv6) {
        line.flag("--ipv6");
    }
}

/// Shortens the wait at shutdown, unless the user has set it.
fn quiesce(options: &ServerOptions, launch: Launch<'_>, parameter: &str, line: &mut Builder) {
    let waits = major_minor(launch.version) >= Some(QUIESCES);
    if waits && !options.mongod.parameters.contains_key(parameter) {
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
fn common(options: &ServerOptions, line: &mut Builder) {
    if let Some(path) = &options.security.key_file {
        line.pair("--keyFile", path);
    }
    if let Some(tls) = &options.security.tls {
        let is_mutual = options.security.require_client_certificate;
        line.0.arguments.extend(tls_arguments(&tls.server, &tls.ca, is_mutual));
    }
    for (name, value) in &options.mongod.parameters {
        line.pair("--setParameter", format!("{name}={value}"));
        line.know(&format!("parameter.{name}"), value.clone());
    }
}

#[cfg(test)]
mod tests;
