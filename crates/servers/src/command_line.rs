//! Options of a server as the arguments of its command line: a pure function, so that every
//! setting that a server does not have is refused by name before anything is started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::version::EMBEDDED_VERSION;
use crate::{ServerError, ServerOptions, ServerProgram};

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// Value of a setting that is left to the server and that we do not know.
const SERVER_DEFAULT: &str = "server default";

/// Environment variables that would change a server behind the back of the recorded settings.
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
    /// What the arguments and the known defaults amount to.
    pub(crate) settings: BTreeMap<String, String>,
}

/// The parts of a command line that are known only shortly before the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// Version of the program.
    pub(crate) version: &'a str,
    /// Absolute path of the data folder.
    pub(crate) data_dir: &'a Path,
    /// An empty configuration file, so that no file of the user is picked up.
    pub(crate) empty_config: &'a Path,
    /// TCP port.
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
    };
    for (name, value) in [
        ("auth", options.auth.to_string()),
        ("program", options.program.display().to_string()),
        ("version", launch.version.to_owned()),
    ] {
        line.settings.insert(name.to_owned(), value);
    }
    Ok(line)
}

/// Checks the settings alone, before a folder is made or a program is run.
pub(crate) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    Checked::new(options).map(|_| ())
}

/// The settings in the form that the server takes them.
struct Checked {
    cache_bytes: Option<u64>,
    checkpoint_s: Option<u64>,
}

impl Checked {
    fn new(options: &ServerOptions) -> Result<Checked, ServerError> {
        check_compressor(options)?;
        if options.sync_on_commit && options.kind == ServerProgram::Mongod {
            return Err(refuse(
                options,
                "server.sync_on_commit",
                "true",
                "it is a setting of the embedded server; ask for journaled writes instead",
            ));
        }
        Ok(Checked {
            cache_bytes: checked_cache(options)?,
            checkpoint_s: checked_checkpoint(options)?,
        })
    }
}

fn check_compressor(options: &ServerOptions) -> Result<(), ServerError> {
    let known: &[&str] = match options.kind {
        ServerProgram::Embedded => &["lz4", "zlib", "none"],
        ServerProgram::Mongod => &["snappy", "zlib", "zstd", "none"],
    };
    match options.block_compressor.as_deref() {
        Some(name) if !known.contains(&name) => Err(refuse(
            options,
            "server.block_compressor",
            name,
            format!("it has {}", known.join(", ")),
        )),
        _ => Ok(()),
    }
}

fn checked_cache(options: &ServerOptions) -> Result<Option<u64>, ServerError> {
    // Both programs refuse less; `mongod` counts in GB and truncates to whole MiB.
    let smallest = match options.kind {
        ServerProgram::Embedded => MIB,
        ServerProgram::Mongod => 256 * MIB,
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
        ServerProgram::Mongod => cache.0 / MIB * MIB,
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
    // The defaults are those that this one version prints with `--help`.
    let known = |default: &str| match launch.version {
        EMBEDDED_VERSION => default.to_owned(),
        _ => SERVER_DEFAULT.to_owned(),
    };
    let mut line = Builder::default();
    line.pair("--config", launch.empty_config);
    line.pair("--host", "127.0.0.1");
    line.pair("--port", launch.port.to_string());
    line.pair("--storage-path", launch.data_dir);
    line.flag("--standalone");
    line.setting(
        "--cache-size",
        "cache_bytes",
        checked.cache_bytes,
        known("4294967296"),
    );
    let compressor = options.block_compressor.as_ref();
    line.setting(
        "--block-compressor",
        "block_compressor",
        compressor,
        known("lz4"),
    );
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
    line.0
}

fn mongod(options: &ServerOptions, checked: &Checked, launch: Launch<'_>) -> CommandLine {
    let mut line = Builder::default();
    line.pair("--bind_ip", "127.0.0.1");
    line.pair("--port", launch.port.to_string());
    line.pair("--dbpath", launch.data_dir);
    // A socket file in /tmp would outlive a killed server.
    line.flag("--nounixsocket");
    match checked.cache_bytes {
        // Whole MiB are exact in a double, and `Display` writes the shortest text that reads back.
        Some(bytes) => {
            line.pair("--wiredTigerCacheSizeGB", (bytes as f64 / GIB).to_string());
            line.know("cache_bytes", bytes.to_string());
        }
        // Half of what the machine or its control group has above 1 GiB, found by the server.
        None => line.know("cache_bytes", SERVER_DEFAULT.to_owned()),
    }
    line.setting(
        "--wiredTigerCollectionBlockCompressor",
        "block_compressor",
        options.block_compressor.as_ref(),
        "snappy".to_owned(),
    );
    line.setting(
        "--syncdelay",
        "checkpoint_interval_s",
        checked.checkpoint_s,
        "60".to_owned(),
    );
    if options.auth {
        line.flag("--auth");
    }
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

/// Collects arguments, and beside them what they mean.
struct Builder(CommandLine);

impl Default for Builder {
    fn default() -> Self {
        Builder(CommandLine {
            arguments: Vec::new(),
            settings: BTreeMap::new(),
        })
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
mod tests {
    use super::*;
    use crate::DataDir;
    use dyno_plan::model::ServerPlan;
    use dyno_plan::units::{Bytes, Span};
    use std::time::Duration;

    fn options(kind: ServerProgram) -> ServerOptions {
        let mut options = ServerOptions::from_plan(
            &ServerPlan::default(),
            "/bin/server".into(),
            DataDir::Kept("/data".into()),
            "/log".into(),
        )
        .unwrap();
        options.kind = kind;
        options
    }

    fn line_of(options: &ServerOptions, version: &str) -> CommandLine {
        let launch = Launch {
            version,
            data_dir: Path::new("/data"),
            empty_config: Path::new("/empty"),
            port: 4444,
        };
        command_line(options, launch).unwrap()
    }

    fn text(line: &CommandLine) -> String {
        let words: Vec<_> = line.arguments.iter().map(|a| a.to_string_lossy()).collect();
        words.join(" ")
    }

    fn refused(options: &ServerOptions) -> String {
        check(options).unwrap_err().to_string()
    }

    #[test]
    fn the_embedded_server_gets_every_setting() {
        let mut options = options(ServerProgram::Embedded);
        options.cache = Some(Bytes(64 << 20));
        options.block_compressor = Some("zlib".into());
        options.checkpoint_interval = Some(Span::from_secs(7));
        options.sync_on_commit = true;
        options.auth = true;
        let line = line_of(&options, EMBEDDED_VERSION);
        assert_eq!(
            text(&line),
            "--config /empty --host 127.0.0.1 --port 4444 --storage-path /data --standalone \
             --cache-size 67108864 --block-compressor zlib --checkpoint-seconds 7 \
             --sync-on-commit --auth"
        );
        assert_eq!(line.settings["cache_bytes"], "67108864");
        assert_eq!(line.settings["sync_on_commit"], "true");
        assert_eq!(line.settings["checkpoint_interval_s"], "7");
        assert_eq!(line.settings["auth"], "true");
    }

    #[test]
    fn the_defaults_of_the_embedded_server_are_claimed_for_its_known_version_only() {
        let options = options(ServerProgram::Embedded);
        let line = line_of(&options, EMBEDDED_VERSION);
        assert_eq!(
            text(&line),
            "--config /empty --host 127.0.0.1 --port 4444 --storage-path /data --standalone"
        );
        assert_eq!(line.settings["cache_bytes"], "4294967296");
        assert_eq!(line.settings["block_compressor"], "lz4");
        let line = line_of(&options, "0.6.0");
        assert_eq!(line.settings["cache_bytes"], SERVER_DEFAULT);
        assert_eq!(line.settings["version"], "0.6.0");
    }

    #[test]
    fn mongod_gets_its_cache_as_a_fraction_of_a_gigabyte() {
        let mut options = options(ServerProgram::Mongod);
        for (bytes, argument, effective) in [
            (1 << 30, "1", 1 << 30),
            (256 << 20, "0.25", 256 << 20),
            (3 << 29, "1.5", 3 << 29),
            (300 << 20, "0.29296875", 300 << 20),
            ((300 << 20) + 5, "0.29296875", 300 << 20),
        ] {
            options.cache = Some(Bytes(bytes));
            let line = line_of(&options, "7.0.14");
            assert!(
                text(&line).contains(&format!("--wiredTigerCacheSizeGB {argument}")),
                "{}",
                text(&line)
            );
            assert_eq!(line.settings["cache_bytes"], u64::to_string(&effective));
        }
    }

    #[test]
    fn mongod_listens_on_the_loopback_address_alone_and_leaves_no_socket_file() {
        let mut options = options(ServerProgram::Mongod);
        assert_eq!(
            text(&line_of(&options, "4.4.0")),
            "--bind_ip 127.0.0.1 --port 4444 --dbpath /data --nounixsocket"
        );
        options.block_compressor = Some("zstd".into());
        options.checkpoint_interval = Some(Span::from_secs(120));
        options.auth = true;
        assert_eq!(
            text(&line_of(&options, "8.0.4")),
            "--bind_ip 127.0.0.1 --port 4444 --dbpath /data --nounixsocket \
             --wiredTigerCollectionBlockCompressor zstd --syncdelay 120 --auth"
        );
    }

    #[test]
    fn settings_that_a_server_does_not_have_are_refused_by_name() {
        let mut mongod = options(ServerProgram::Mongod);
        mongod.block_compressor = Some("lz4".into());
        assert_eq!(
            refused(&mongod),
            "`mongod` cannot be started with `server.block_compressor` = `lz4`: \
             it has snappy, zlib, zstd, none"
        );
        mongod.block_compressor = None;
        mongod.sync_on_commit = true;
        assert!(refused(&mongod).contains("`server.sync_on_commit` = `true`"));

        let mut embedded = options(ServerProgram::Embedded);
        embedded.block_compressor = Some("snappy".into());
        assert!(refused(&embedded).contains("it has lz4, zlib, none"));
    }

    #[test]
    fn values_that_a_server_would_refuse_or_truncate_are_refused_here() {
        let mut mongod = options(ServerProgram::Mongod);
        mongod.cache = Some(Bytes((256 << 20) - 1));
        assert!(refused(&mongod).contains("the smallest cache is 256 MiB"));
        let mut embedded = options(ServerProgram::Embedded);
        embedded.cache = Some(Bytes(1000));
        assert!(refused(&embedded).contains("the smallest cache is 1 MiB"));
        embedded.cache = None;
        for interval in [Duration::ZERO, Duration::from_millis(1500)] {
            embedded.checkpoint_interval = Some(Span(interval));
            assert!(refused(&embedded).contains("whole number of seconds"));
        }
    }
}
