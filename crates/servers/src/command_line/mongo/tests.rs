//! Command lines and refusals by version and edition.

use super::super::tests::{options, parts, refused, text};
use super::super::{check_version, command_line};
use super::*;
use crate::Edition;
use crate::tls::TlsFiles;
use dyno_plan::units::{Bytes, Span};
use std::path::Path;
use std::time::Duration;

fn line(options: &ServerOptions, version: &str) -> String {
    let launch = Launch {
        version,
        data_dir: Path::new("/data"),
        empty_config: Path::new("/empty"),
        port: 4444,
    };
    text(&command_line(options, launch).unwrap())
}

fn program(version: &str, edition: Edition) -> Program {
    Program { version: version.to_owned(), edition, git_version: None }
}

fn tls() -> TlsFiles {
    TlsFiles {
        ca: "/ca".into(),
        server: "/server".into(),
        server_certificate: "/cert".into(),
        server_key: "/key".into(),
        client: "/client".into(),
    }
}

#[test]
fn member_gets_its_set_kind_and_key() {
    let mut options = options(ServerProgram::Mongod);
    options.role = ServerRole::ShardMember("shard-0".into());
    options.plan.auth = true;
    options.security.key_file = Some("/secrets/key".into());
    let line = |version| line(&options, version);
    assert_eq!(
        line("4.4.29"),
        "--bind_ip 127.0.0.1 --port 4444 --dbpath /data --nounixsocket --auth \
         --shardsvr --replSet shard-0 --keyFile /secrets/key"
    );
    assert!(
        line("8.0.4").contains(
            "--replSet shard-0 --setParameter shutdownTimeoutMillisForSignaledShutdown=100"
        )
    );
    options.role = ServerRole::ConfigServer("config".into());
    assert!(self::line(&options, "8.0.4").contains("--configsvr --replSet config"));
    options.role = ServerRole::ReplicaSetMember("set".into());
    assert!(self::line(&options, "8.0.4").contains("--auth --replSet set"));
}

#[test]
fn a_router_has_no_data_folder_and_no_auth_flag() {
    let mut options = options(ServerProgram::Mongos);
    options.role = ServerRole::Router("config/127.0.0.1:1".into());
    options.plan.auth = true;
    options.security.key_file = Some("/key".into());
    options
        .plan
        .parameters
        .insert("mongosShutdownTimeoutMillisForSignaledShutdown".into(), "7".into());
    assert_eq!(
        line(&options, "7.0.14"),
        "--configdb config/127.0.0.1:1 --bind_ip 127.0.0.1 --port 4444 --nounixsocket --keyFile /key \
         --setParameter mongosShutdownTimeoutMillisForSignaledShutdown=7"
    );
}

#[test]
fn journal_engine_and_parameters_have_their_arguments() {
    let mut options = options(ServerProgram::Mongod);
    options.plan.journal = Some(false);
    options.plan.journal_commit_interval = Some(Span(Duration::from_millis(30)));
    options.plan.journal_compressor = Some("zstd".into());
    options.plan.parameters.insert("ttlMonitorEnabled".into(), "false".into());
    assert!(line(&options, "6.0.19").ends_with(
        "--nounixsocket --nojournal --journalCommitInterval 30 --wiredTigerJournalCompressor zstd \
         --setParameter ttlMonitorEnabled=false"
    ));
    options.plan = Default::default();
    options.plan.storage_engine = Some(StorageEngine::InMemory);
    options.cache = Some(Bytes(1 << 30));
    let memory = line(&options, "7.0.14");
    assert!(memory.contains("--inMemorySizeGB 1 "), "{memory}");
    assert!(memory.ends_with("--storageEngine inMemory"), "{memory}");
    assert!(!memory.contains("wiredTiger"), "{memory}");
}

#[test]
fn tls_is_always_required_and_certificates_on_request() {
    let mut options = options(ServerProgram::Mongod);
    options.security.tls = Some(tls());
    let without = line(&options, "4.4.0");
    assert!(without.ends_with(
        "--tlsMode requireTLS --tlsCertificateKeyFile /server --tlsCAFile /ca \
         --tlsAllowConnectionsWithoutCertificates"
    ));
    options.security.require_client_certificate = true;
    assert!(!line(&options, "4.4.0").contains("Without"));

    let mut embedded = self::options(ServerProgram::Embedded);
    embedded.security.tls = Some(tls());
    assert!(line(&embedded, "1.0").ends_with("--tls-cert-file /cert --tls-key-file /key"));
    embedded.security.require_client_certificate = true;
    assert!(
        line(&embedded, "1.0")
            .ends_with("--tls-key-file /key --tls-ca-file /ca --tls-require-client-cert")
    );
}

#[test]
fn journal_can_be_off_up_to_6_0_without_a_replica_set() {
    let mut options = options(ServerProgram::Mongod);
    options.plan.journal = Some(false);
    for version in ["4.4.29", "5.0.31", "6.0.19"] {
        check_version(&options, &program(version, Edition::Community)).unwrap();
    }
    for version in ["6.1.0", "7.0.14", "8.0.4"] {
        let error = check_version(&options, &program(version, Edition::Percona)).unwrap_err();
        let (setting, value, reason) = parts(error);
        assert_eq!((setting, &*value), ("server.journal", "false"));
        assert!(reason.contains("`storage.journal.enabled`"), "{reason}");
        assert!(reason.contains(version), "{reason}");
    }
    options.role = ServerRole::ReplicaSetMember("set".into());
    let error = check_version(&options, &program("5.0.31", Edition::Community)).unwrap_err();
    let (setting, value, reason) = parts(error);
    assert_eq!((setting, &*value), ("server.journal", "false"));
    assert!(reason.contains("replica set"), "{reason}");
    options.plan.journal = Some(true);
    check_version(&options, &program("8.0.4", Edition::Community)).unwrap();
}

#[test]
fn in_memory_engine_needs_its_edition_and_no_file_settings() {
    let mut options = options(ServerProgram::Mongod);
    options.plan.storage_engine = Some(StorageEngine::InMemory);
    let error = check_version(&options, &program("7.0.14", Edition::Community)).unwrap_err();
    let (setting, value, reason) = parts(error);
    assert_eq!((setting, &*value), ("server.storage_engine", "in-memory"));
    assert!(reason.contains("Enterprise"), "{reason}");
    check_version(&options, &program("7.0.14", Edition::Enterprise)).unwrap();
    check_version(&options, &program("7.0.14-8", Edition::Percona)).unwrap();
    options.plan.block_compressor = Some("zstd".into());
    let (setting, value, reason) = refused(&options);
    assert_eq!((setting, &*value), ("server.block_compressor", "zstd"));
    assert!(reason.contains("in-memory"), "{reason}");
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let mut options = options(ServerProgram::Mongod);
    for interval in [Duration::ZERO, Duration::from_millis(501), Duration::from_micros(1500)] {
        options.plan.journal_commit_interval = Some(Span(interval));
        let (setting, _, reason) = refused(&options);
        assert_eq!(setting, "server.journal_commit_interval");
        assert!(reason.contains("1 ms to 500 ms"), "{interval:?}");
    }
    options.plan = Default::default();
    options.plan.journal_compressor = Some("lz4".into());
    let (setting, value, reason) = refused(&options);
    assert_eq!((setting, &*value), ("server.journal_compressor", "lz4"));
    assert!(reason.contains("none, snappy, zlib, zstd"), "{reason}");
    options.plan = Default::default();
    options.plan.parameters.insert("a=1 --x".into(), "1".into());
    let (setting, value, _) = refused(&options);
    assert_eq!((setting, &*value), ("server.parameters", "a=1 --x"));
}

#[test]
fn embedded_server_refuses_unsupported_settings_with_a_hint() {
    let usual = options(ServerProgram::Embedded);
    type Change = fn(&mut ServerOptions);
    let changes: [(Change, (&str, &str)); 5] = [
        (|o| o.plan.journal = Some(false), ("server.journal", "false")),
        (
            |o| o.plan.journal_commit_interval = Some(Span::from_secs(1)),
            ("server.journal_commit_interval", "1 s"),
        ),
        (
            |o| o.plan.journal_compressor = Some("none".into()),
            ("server.journal_compressor", "none"),
        ),
        (
            |o| o.plan.storage_engine = Some(StorageEngine::InMemory),
            ("server.storage_engine", "in-memory"),
        ),
        (|o| drop(o.plan.parameters.insert("a".into(), "1".into())), ("server.parameters", "a=1")),
    ];
    for (change, expected) in changes {
        let mut options = usual.clone();
        change(&mut options);
        let (setting, value, reason) = refused(&options);
        assert_eq!((setting, &*value), expected);
        assert!(reason.contains("`dyno server install`"), "{reason}");
    }
    let mut journal = usual;
    journal.plan.journal = Some(true);
    super::super::check(&journal).unwrap();
}
