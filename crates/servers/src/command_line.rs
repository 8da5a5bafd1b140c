//! Converts the options of a server to command-line arguments. A pure function, so that unsupported
//! settings are refused by name before anything is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use dyno_plan::model::StorageEngine;
use dyno_plan::units::{Bytes, Span};

use crate::version::EMBEDDED_VERSION;
use crate::{ServerError, ServerOptions, ServerProgram};

mod mongo;

pub(crate) use mongo::check_version;
pub use mongo::tls_arguments;

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// Value of a setting with an unknown default of the server.
const SERVER_DEFAULT: &str = "server default";

/// Environment variables that would silently override the recorded settings.
pub(crate) const HIDDEN_SETTINGS: &str = "\
    RUST_LOG SECANTUS_CHECKPOINT_SECONDS SECANTUS_DATA_NONLOGGED SECANTUS_DATA_TABLE_EXTRA \
    SECANTUS_DISABLE_OPLOG SECANTUS_FORCE_DURABLE SECANTUS_OPLOG_ASYNC \
    SECANTUS_OPLOG_ASYNC_CAP_BYTES SECANTUS_OPLOG_ASYNC_COALESCE SECANTUS_OPLOG_ASYNC_DRAINERS \
    SECANTUS_OPLOG_NONLOGGED SECANTUS_OPLOG_SHARDS SECANTUS_OPLOG_TABLE_EXTRA \
    SECANTUS_TEST_FAST_STORAGE SECANTUS_WT_CONFIG_EXTRA";

/// How to call the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// Arguments after the name of the program.
    pub(crate) arguments: Vec<OsString>,
    /// Effective settings from the arguments and the known defaults.
    pub(crate) settings: BTreeMap<String, String>,
}

/// The parts of a command line that are known only shortly before the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// Version of the program.
    pub(crate) version: &'a str,
    /// Absolute path of the data folder.
    pub(crate) data_dir: &'a Path,
    /// An empty configuration file, so that none of the user's files is used.
    pub(crate) empty_config: &'a Path,
    pub(crate) port: u16,
}

/// The command line for `options`.
pub(crate) fn command_line(
    options: &ServerOptions,
    launch: Launch<'_>,
) -> Result<CommandLine, ServerError> {
    check(options)?;
    let mut line = CommandLine::default();
    match options.kind {
        ServerProgram::Embedded => embedded(options, launch, &mut line),
        ServerProgram::Mongod => mongod(options, launch, &mut line),
        ServerProgram::Mongos => mongo::mongos(options, launch, &mut line),
    }
    for (name, value) in [
        ("auth", options.plan.auth.to_string()),
        ("program", options.program.display().to_string()),
        ("tls", options.security.tls.is_some().to_string()),
        ("version", launch.version.to_owned()),
    ] {
        line.know(name, value);
    }
    Ok(line)
}

/// Checks the settings alone, before creating folders or running programs.
pub(crate) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    check_cache(options)?;
    check_checkpoint(options)?;
    mongo::check(options)
}

/// Both programs refuse smaller caches.
fn check_cache(options: &ServerOptions) -> Result<(), ServerError> {
    let smallest = match options.kind {
        ServerProgram::Embedded => Bytes(MIB),
        ServerProgram::Mongod | ServerProgram::Mongos => Bytes(256 * MIB),
    };
    match options.cache {
        Some(cache) if cache < smallest => {
            let reason = format!("the smallest cache is {} MiB", smallest.0 / MIB);
            Err(options.kind.refuses("server.cache", cache, reason))
        }
        _ => Ok(()),
    }
}

fn check_checkpoint(options: &ServerOptions) -> Result<(), ServerError> {
    match options.plan.checkpoint_interval {
        Some(Span(interval)) if interval.as_secs() == 0 || interval.subsec_nanos() != 0 => {
            Err(options.kind.refuses(
                "server.checkpoint_interval",
                format!("{} s", interval.as_secs_f64()),
                "it must be a whole number of seconds, at least 1",
            ))
        }
        _ => Ok(()),
    }
}

fn embedded(options: &ServerOptions, launch: Launch<'_>, line: &mut CommandLine) {
    // This version prints these defaults with `--help`.
    let known = |default: &str| match launch.version {
        EMBEDDED_VERSION => default.to_owned(),
        _ => SERVER_DEFAULT.to_owned(),
    };
    let plan = &options.plan;
    line.pair("--config", launch.empty_config);
    line.pair("--host", options.listen.to_string());
    line.pair("--port", launch.port.to_string());
    line.pair("--storage-path", launch.data_dir);
    line.flag("--standalone");
    let cache = options.cache.map(|cache| cache.0);
    line.setting("--cache-size", "cache_bytes", cache, known("4294967296"));
    let compressor = plan.block_compressor.as_ref();
    line.setting("--block-compressor", "block_compressor", compressor, known("lz4"));
    let checkpoint = plan.checkpoint_interval.map(|interval| interval.0.as_secs());
    line.setting("--checkpoint-seconds", "checkpoint_interval_s", checkpoint, known("60"));
    if plan.durable_writes {
        line.flag("--sync-on-commit");
    }
    line.know("sync_on_commit", plan.durable_writes.to_string());
    if plan.auth {
        line.flag("--auth");
    }
    if let Some(tls) = &options.security.tls {
        line.pair("--tls-cert-file", &tls.server_certificate);
        line.pair("--tls-key-file", &tls.server_key);
        if options.security.require_client_certificate {
            line.pair("--tls-ca-file", &tls.ca);
            line.flag("--tls-require-client-cert");
        }
    }
}

fn mongod(options: &ServerOptions, launch: Launch<'_>, line: &mut CommandLine) {
    let plan = &options.plan;
    mongo::bind(options, line);
    line.pair("--port", launch.port.to_string());
    line.pair("--dbpath", launch.data_dir);
    // A socket file in /tmp would outlive a killed server.
    line.flag("--nounixsocket");
    let in_memory = plan.storage_engine == Some(StorageEngine::InMemory);
    let cache = if in_memory { "--inMemorySizeGB" } else { "--wiredTigerCacheSizeGB" };
    // `mongod` counts in GB and truncates to whole MiB, which are exact in a double; `Display` writes
    // the shortest text that parses to the same value.
    match options.cache.map(|cache| cache.0 / MIB * MIB) {
        Some(bytes) => {
            line.pair(cache, (bytes as f64 / GIB).to_string());
            line.know("cache_bytes", bytes.to_string());
        }
        // Half of the memory above 1 GiB of the machine or its control group, computed by the
        // server.
        None => line.know("cache_bytes", SERVER_DEFAULT.to_owned()),
    }
    if !in_memory {
        line.setting(
            "--wiredTigerCollectionBlockCompressor",
            "block_compressor",
            plan.block_compressor.as_ref(),
            "snappy".to_owned(),
        );
        let checkpoint = plan.checkpoint_interval.map(|interval| interval.0.as_secs());
        line.setting("--syncdelay", "checkpoint_interval_s", checkpoint, "60".to_owned());
    }
    if plan.auth {
        line.flag("--auth");
    }
    mongo::mongod(options, launch, line);
}

impl CommandLine {
    fn flag(&mut self, name: &str) {
        self.arguments.push(name.into());
    }

    fn pair(&mut self, name: &str, value: impl Into<OsString>) {
        self.flag(name);
        self.arguments.push(value.into());
    }

    fn know(&mut self, setting: &str, value: String) {
        self.settings.insert(setting.to_owned(), value);
    }

    fn setting(
        &mut self,
        name: &str,
        setting: &str,
        value: Option<impl ToString>,
        default: String,
    ) {
        match value {
            Some(value) => {
                self.pair(name, value.to_string());
                self.know(setting, value.to_string());
            }
            None => self.know(setting, default),
        }
    }
}

#[cfg(test)]
mod tests;
