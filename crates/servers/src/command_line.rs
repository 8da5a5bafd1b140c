//! Converts the options of a server to command-line arguments. A pure function, so that unsupported
//! settings are refused by name before anything is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::settings::StorageEngine;
use crate::version::{EMBEDDED_VERSION, Program};
use crate::{ServerError, ServerOptions, ServerProgram};

mod mongo;

pub use mongo::tls_arguments;

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// Value of a setting with an unknown default of the server.
const SERVER_DEFAULT: &str = "server default";

/// Environment variables that would silently override the recorded settings.
pub(crate) const HIDDEN_SETTINGS: &[&str] = &[
    "RUST_LOG",
    "SECANTUS_CHECKPOINT_SECONDS",
    "SECANTUS_DATA_NONLOGGED",
    "SECANTUS_DATA_TABLE_EXTRA",
    "SECANTUS_DISABLE_OPLOG",
    "SECANTUS_FORCE_DURABLE",
    "SECANTUS_OPLOG_ASYNC",
    "SECANTUS_OPLOG_ASYNC_CAP_BYTES",
    "SECANTUS_OPLOG_ASYNC_COALESCE",
    "SECANTUS_OPLOG_ASYNC_DRAINERS",
    "SECANTUS_OPLOG_NONLOGGED",
    "SECANTUS_OPLOG_SHARDS",
    "SECANTUS_OPLOG_TABLE_EXTRA",
    "SECANTUS_TEST_FAST_STORAGE",
    "SECANTUS_WT_CONFIG_EXTRA",
];

/// How to call the server.
#[derive(Debug, PartialEq, Eq)]
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
    let checked = Checked::new(options)?;
    let mut line = match options.kind {
        ServerProgram::Embedded => embedded(options, &checked, launch),
        ServerProgram::Mongod => mongod(options, &checked, launch),
        ServerProgram::Mongos => mongo::mongos(options, launch),
    };
    for (name, value) in [
        ("auth", options.auth.to_string()),
        ("program", options.program.display().to_string()),
        ("tls", options.security.tls.is_some().to_string()),
        ("version", launch.version.to_owned()),
    ] {
        line.settings.insert(name.to_owned(), value);
    }
    Ok(line)
}

/// Checks the settings alone, before creating folders or running programs.
pub(crate) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    Checked::new(options).map(|_| ())
}

/// Checks the settings against the version and the edition of the program.
pub(crate) fn check_version(options: &ServerOptions, program: &Program) -> Result<(), ServerError> {
    mongo::check_version(options, program)
}

/// The settings in the form that the server accepts.
struct Checked {
    cache_bytes: Option<u64>,
    checkpoint_s: Option<u64>,
}

impl Checked {
    fn new(options: &ServerOptions) -> Result<Checked, ServerError> {
        check_compressor(options)?;
        mongo::check(options)?;
        Ok(Checked {
            cache_bytes: checked_cache(options)?,
            checkpoint_s: checked_checkpoint(options)?,
        })
    }
}

fn check_compressor(options: &ServerOptions) -> Result<(), ServerError> {
    let known: &[&str] = match options.kind {
        ServerProgram::Embedded => &["lz4", "zlib", "none"],
        ServerProgram::Mongod | ServerProgram::Mongos => &["snappy", "zlib", "zstd", "none"],
    };
    match options.block_compressor.as_deref() {
        Some(name) if !known.contains(&name) => Err(refuse(
            options,
            "server.block_compressor",
            name,
            format!("supported values are {}", known.join(", ")),
        )),
        _ => Ok(()),
    }
}

fn checked_cache(options: &ServerOptions) -> Result<Option<u64>, ServerError> {
    // Both programs refuse smaller caches; `mongod` counts in GB and truncates to whole MiB.
    let smallest = match options.kind {
        ServerProgram::Embedded => MIB,
        ServerProgram::Mongod | ServerProgram::Mongos => 256 * MIB,
    };
    let Some(cache) = options.cache else {
        return Ok(None);
    };
    if cache.0 < smallest {
        return Err(refuse(
            options,
            "server.cache",
            cache.0,
            format!("the smallest cache is {} MiB", smallest / MIB),
        ));
    }
    Ok(Some(match options.kind {
        ServerProgram::Embedded => cache.0,
        ServerProgram::Mongod | ServerProgram::Mongos => cache.0 / MIB * MIB,
    }))
}

fn checked_checkpoint(options: &ServerOptions) -> Result<Option<u64>, ServerError> {
    let Some(interval) = options.checkpoint_interval else {
        return Ok(None);
    };
    let seconds = interval.0.as_secs();
    if seconds == 0 || interval.0.subsec_nanos() != 0 {
        return Err(refuse(
            options,
            "server.checkpoint_interval",
            format!("{} s", interval.0.as_secs_f64()),
            "it must be a whole number of seconds, at least 1",
        ));
    }
    Ok(Some(seconds))
}

fn embedded(options: &ServerOptions, checked: &Checked, launch: Launch<'_>) -> CommandLine {
    // This version prints these defaults with `--help`.
    let known = |default: &str| match launch.version {
        EMBEDDED_VERSION => default.to_owned(),
        _ => SERVER_DEFAULT.to_owned(),
    };
    let mut line = Builder::default();
    line.pair("--config", launch.empty_config);
    line.pair("--host", options.listen.to_string());
    line.pair("--port", launch.port.to_string());
    line.pair("--storage-path", launch.data_dir);
    line.flag("--standalone");
    line.setting("--cache-size", "cache_bytes", checked.cache_bytes, known("4294967296"));
    let compressor = options.block_compressor.as_ref();
    line.setting("--block-compressor", "block_compressor", compressor, known("lz4"));
    line.setting(
        "--checkpoint-seconds",
        "checkpoint_interval_s",
        checked.checkpoint_s,
        known("60"),
    );
    line.switch("--sync-on-commit", "sync_on_commit", options.sync_on_commit);
    if options.auth {
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
    line.0
}

fn mongod(options: &ServerOptions, checked: &Checked, launch: Launch<'_>) -> CommandLine {
    let mut line = Builder::default();
    mongo::bind(options, &mut line);
    line.pair("--port", launch.port.to_string());
    line.pair("--dbpath", launch.data_dir);
    // A socket file in /tmp would outlive a killed server.
    line.flag("--nounixsocket");
    let in_memory = options.mongod.storage_engine == StorageEngine::InMemory;
    let cache = if in_memory { "--inMemorySizeGB" } else { "--wiredTigerCacheSizeGB" };
    match checked.cache_bytes {
        // Whole MiB are exact in a double, and `Display` writes the shortest text that parses to
        // the same value.
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
            options.block_compressor.as_ref(),
            "snappy".to_owned(),
        );
        line.setting("--syncdelay", "checkpoint_interval_s", checked.checkpoint_s, "60".to_owned());
    }
    if options.auth {
        line.flag("--auth");
    }
    mongo::mongod(options, launch, &mut line);
    line.0
}

fn refuse(
    options: &ServerOptions,
    setting: &'static str,
    value: impl ToString,
    reason: impl Into<String>,
) -> ServerError {
    ServerError::Setting {
        program: options.kind.executable(),
        setting,
        value: value.to_string(),
        reason: reason.into(),
    }
}

/// Collects arguments together with the settings that they express.
struct Builder(CommandLine);

impl Default for Builder {
    fn default() -> Self {
        Builder(CommandLine { arguments: Vec::new(), settings: BTreeMap::new() })
    }
}

impl Builder {
    fn flag(&mut self, name: &str) {
        self.0.arguments.push(name.into());
    }

    fn pair(&mut self, name: &str, value: impl Into<OsString>) {
        self.flag(name);
        self.0.arguments.push(value.into());
    }

    fn know(&mut self, setting: &str, value: String) {
        self.0.settings.insert(setting.to_owned(), value);
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

    fn switch(&mut self, name: &str, setting: &str, on: bool) {
        if on {
            self.flag(name);
        }
        self.know(setting, on.to_string());
    }
}

#[cfg(test)]
mod tests;
