//! Command lines of both servers, and settings that are refused for any version.

use super::*;
use crate::DataDir;
use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::{Bytes, Span};
use std::time::Duration;

pub(super) fn options(kind: ServerProgram) -> ServerOptions {
    let mut options = ServerOptions::from_plan(
        &ServerPlan { kind: ServerKind::Embedded, ..ServerPlan::default() },
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

pub(super) fn text(line: &CommandLine) -> String {
    let words: Vec<_> = line.arguments.iter().map(|a| a.to_string_lossy()).collect();
    words.join(" ")
}

/// Setting, value and reason of a refused setting.
pub(super) fn parts(error: ServerError) -> (&'static str, String, String) {
    match error {
        ServerError::Setting { setting, value, reason, .. } => (setting, value, reason),
        error => panic!("{error:?}"),
    }
}

pub(super) fn refused(options: &ServerOptions) -> (&'static str, String, String) {
    parts(check(options).unwrap_err())
}

#[test]
fn embedded_server_gets_every_setting() {
    let mut options = options(ServerProgram::Embedded);
    options.cache = Some(Bytes(64 << 20));
    options.plan.block_compressor = Some("zlib".into());
    options.plan.checkpoint_interval = Some(Span::from_secs(7));
    options.plan.durable_writes = true;
    options.plan.auth = true;
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
fn embedded_defaults_are_known_for_one_version_only() {
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
fn mongod_listens_on_loopback_only_without_a_socket_file() {
    let mut options = options(ServerProgram::Mongod);
    assert_eq!(
        text(&line_of(&options, "4.4.0")),
        "--bind_ip 127.0.0.1 --port 4444 --dbpath /data --nounixsocket"
    );
    options.plan.block_compressor = Some("zstd".into());
    options.plan.checkpoint_interval = Some(Span::from_secs(120));
    options.plan.auth = true;
    assert_eq!(
        text(&line_of(&options, "8.0.4")),
        "--bind_ip 127.0.0.1 --port 4444 --dbpath /data --nounixsocket \
         --wiredTigerCollectionBlockCompressor zstd --syncdelay 120 --auth"
    );
}

#[test]
fn values_that_servers_refuse_or_truncate_are_refused() {
    let mut mongod = options(ServerProgram::Mongod);
    mongod.cache = Some(Bytes((256 << 20) - 1));
    let (setting, _, reason) = refused(&mongod);
    assert_eq!(setting, "server.cache");
    assert!(reason.contains("256 MiB"), "{reason}");
    let mut embedded = options(ServerProgram::Embedded);
    embedded.cache = Some(Bytes(512 << 10));
    let (setting, value, reason) = refused(&embedded);
    assert_eq!((setting, &*value), ("server.cache", "512KiB"));
    assert!(reason.contains("1 MiB"), "{reason}");
    embedded.cache = None;
    for (interval, expected) in [(Duration::ZERO, "0 s"), (Duration::from_millis(1500), "1.5 s")] {
        embedded.plan.checkpoint_interval = Some(Span(interval));
        let (setting, value, _) = refused(&embedded);
        assert_eq!((setting, &*value), ("server.checkpoint_interval", expected));
    }
}
