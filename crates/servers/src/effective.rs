//! Effective settings of a running server, read by commands, and their differences from the
//! requested settings.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, Document, doc};

use crate::CommandFailure;
use crate::admin_client::{AdminClient, Target};
use crate::deployment::replica_set::number;

/// Value of a setting that was left to the server.
const SERVER_DEFAULT: &str = "server default";

/// Settings that `getCmdLineOpts` reports under `parsed`, and their names here.
const PARSED: [(&str, &str); 8] = [
    ("storage.wiredTiger.collectionConfig.blockCompressor", "block_compressor"),
    ("storage.wiredTiger.engineConfig.journalCompressor", "journal_compressor"),
    ("storage.journal.enabled", "journal"),
    ("storage.journal.commitIntervalMs", "journal_commit_interval_ms"),
    ("storage.syncPeriodSecs", "checkpoint_interval_s"),
    ("replication.replSet", "replica_set"),
    ("replication.replSetName", "replica_set"),
    ("sharding.configDB", "config_servers"),
];

/// Parameters that are more accurate than the command line, and their names here.
const PARAMETERS: [(&str, &str); 4] = [
    ("diagnosticDataCollectionEnabled", "diagnostic_data"),
    ("diagnosticDataCollectionPeriodMillis", "diagnostic_data_interval_ms"),
    ("journalCommitInterval", "journal_commit_interval_ms"),
    ("syncdelay", "checkpoint_interval_s"),
];

/// A setting that differs from the requested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    pub setting: String,
    /// The requested value.
    pub asked: String,
    /// The value that the server reports.
    pub found: String,
}

/// Reads the settings of a server, under the names in
/// [`RunningServer::settings`](crate::RunningServer::settings). `parameters` are additional server
/// parameters, returned as `parameter.NAME`. Settings that the server does not report are absent;
/// `reported_version` is the version that it claims.
///
/// # Errors
/// [`CommandFailure::Unreachable`] if it does not answer, or the refusal if rights are missing.
/// Without a user, a refused replica set configuration is not an error.
pub fn read_back(
    admin: &mut dyn AdminClient,
    target: Target<'_>,
    parameters: &[&str],
    limit: Duration,
) -> Result<BTreeMap<String, String>, CommandFailure> {
    /// `Unauthorized` and `AuthenticationFailed`.
    const NO_RIGHTS: [i32; 2] = [13, 18];
    let mut found = BTreeMap::new();
    let mut ask = |command: Document| match admin.run(target, "admin", command, limit) {
        Ok(reply) => Ok(reply),
        // A router has no engine, and a standalone server no set.
        Err(CommandFailure::Refused { code, .. }) if !NO_RIGHTS.contains(&code) => {
            Ok(Document::new())
        }
        Err(failure) => Err(failure),
    };
    from_command_line(&ask(doc! { "getCmdLineOpts": 1 })?, &mut found);
    from_parameters(&ask(doc! { "getParameter": "*" })?, parameters, &mut found);
    from_status(&ask(doc! { "serverStatus": 1 })?, &mut found);
    match ask(doc! { "replSetGetConfig": 1 }) {
        Ok(reply) => from_configuration(&reply, &mut found),
        // An arbiter has no users and permits only the other commands.
        Err(CommandFailure::Refused { .. }) if target.credentials.is_none() => {}
        Err(failure) => return Err(failure),
    }
    Ok(found)
}

/// Settings of both sides that differ. Settings left to the server or not reported by it are not
/// deviations; numbers are compared as numbers.
pub fn deviations(
    asked: &BTreeMap<String, String>,
    effective: &BTreeMap<String, String>,
) -> Vec<Deviation> {
    asked
        .iter()
        .filter(|(_, value)| *value != SERVER_DEFAULT)
        .filter_map(|(setting, value)| {
            let found = effective.get(setting)?;
            (!same(value, found)).then(|| Deviation {
                setting: setting.clone(),
                asked: value.clone(),
                found: found.clone(),
            })
        })
        .collect()
}

fn same(asked: &str, found: &str) -> bool {
    match (asked.parse::<f64>(), found.parse::<f64>()) {
        (Ok(asked), Ok(found)) => asked == found,
        _ => asked == found,
    }
}

fn from_command_line(reply: &Document, found: &mut BTreeMap<String, String>) {
    let Ok(parsed) = reply.get_document("parsed") else {
        return;
    };
    for (path, name) in PARSED {
        if let Some(value) = at(parsed, path).and_then(text) {
            found.insert(name.to_owned(), value);
        }
    }
    if let Some(mode) = at(parsed, "net.tls.mode").and_then(Bson::as_str) {
        found.insert("tls".to_owned(), (mode == "requireTLS").to_string());
    }
    let enabled = at(parsed, "security.authorization").and_then(Bson::as_str) == Some("enabled");
    if enabled || at(parsed, "security.keyFile").is_some() {
        found.insert("auth".to_owned(), true.to_string());
    }
}

fn from_parameters(reply: &Document, wanted: &[&str], found: &mut BTreeMap<String, String>) {
    for (parameter, name) in PARAMETERS {
        if let Some(value) = reply.get(parameter).and_then(text) {
            found.insert(name.to_owned(), value);
        }
    }
    for parameter in wanted {
        if let Some(value) = reply.get(parameter).and_then(text) {
            found.insert(format!("parameter.{parameter}"), value);
        }
    }
}

fn from_status(reply: &Document, found: &mut BTreeMap<String, String>) {
    for (path, name) in [
        ("wiredTiger.cache.maximum bytes configured", "cache_bytes"),
        ("inMemory.cache.maximum bytes configured", "cache_bytes"),
        ("storageEngine.name", "storage_engine"),
        ("version", "reported_version"),
    ] {
        if let Some(value) = at(reply, path).and_then(text) {
            found.insert(name.to_owned(), value);
        }
    }
}

fn from_configuration(reply: &Document, found: &mut BTreeMap<String, String>) {
    let Ok(config) = reply.get_document("config") else {
        return;
    };
    if let Ok(set) = config.get_str("_id") {
        found.insert("replica_set".to_owned(), set.to_owned());
    }
    let members = config.get_array("members").map(Vec::as_slice);
    let members: Vec<_> =
        members.unwrap_or_default().iter().filter_map(Bson::as_document).collect();
    let priorities: Vec<_> =
        members.iter().filter_map(|member| member.get("priority").and_then(text)).collect();
    found.insert("replica_set.members".to_owned(), members.len().to_string());
    found.insert("replica_set.priorities".to_owned(), priorities.join("/"));
}

/// The value at a path with parts separated by dots.
fn at<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    match path.split_once('.') {
        None => document.get(path),
        Some((first, rest)) => at(document.get_document(first).ok()?, rest),
    }
}

/// A value as text; whole numbers of all types without a fraction.
fn text(value: &Bson) -> Option<String> {
    if let Some(number) = number(Some(value)) {
        return Some(number.to_string());
    }
    match value {
        Bson::String(text) => Some(text.clone()),
        Bson::Boolean(value) => Some(value.to_string()),
        Bson::Double(value) => Some(value.to_string()),
        // Newer versions wrap some parameters.
        Bson::Document(inner) => inner.get("value").and_then(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        pairs.iter().map(own).collect()
    }

    /// Answers like `mongod` 7.0, and refuses unknown commands.
    struct Recorded;

    impl AdminClient for Recorded {
        fn run(
            &mut self,
            _: Target<'_>,
            _: &str,
            command: Document,
            _: Duration,
        ) -> Result<Document, CommandFailure> {
            Ok(match command.keys().next().unwrap().as_str() {
                "getCmdLineOpts" => doc! { "parsed": {
                    "net": { "tls": { "mode": "requireTLS" } },
                    "replication": { "replSet": "dyno" },
                    "security": { "keyFile": "/k" },
                    "storage": { "wiredTiger": {
                        "collectionConfig": { "blockCompressor": "zstd" },
                        "engineConfig": { "cacheSizeGB": 0.25, "journalCompressor": "none" },
                    } },
                } },
                "getParameter" => {
                    doc! { "syncdelay": 60.0, "journalCommitInterval": 100, "ttlMonitorEnabled": false }
                }
                "serverStatus" => doc! {
                    "version": "7.0.14",
                    "storageEngine": { "name": "wiredTiger" },
                    "wiredTiger": { "cache": { "maximum bytes configured": 268_435_456.0 } },
                },
                _ => {
                    return Err(CommandFailure::Refused {
                        code: 76,
                        message: "not running with --replSet".into(),
                    });
                }
            })
        }
    }

    fn target() -> Target<'static> {
        Target { address: ([127, 0, 0, 1], 1).into(), tls: None, credentials: None }
    }

    #[test]
    fn settings_are_read_under_their_own_names() {
        let found = read_back(
            &mut Recorded,
            target(),
            &["ttlMonitorEnabled", "nothing"],
            Duration::from_secs(1),
        );
        let expected = settings(&[
            ("auth", "true"),
            ("block_compressor", "zstd"),
            ("cache_bytes", "268435456"),
            ("checkpoint_interval_s", "60"),
            ("journal_commit_interval_ms", "100"),
            ("journal_compressor", "none"),
            ("parameter.ttlMonitorEnabled", "false"),
            ("replica_set", "dyno"),
            ("reported_version", "7.0.14"),
            ("storage_engine", "wiredTiger"),
            ("tls", "true"),
        ]);
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn configuration_gives_members_and_priorities() {
        let mut found = BTreeMap::new();
        let reply = doc! { "config": { "_id": "rs", "members": [
            { "priority": 2.0 }, { "priority": 0.5 },
        ] } };
        from_configuration(&reply, &mut found);
        assert_eq!(
            found,
            settings(&[
                ("replica_set", "rs"),
                ("replica_set.members", "2"),
                ("replica_set.priorities", "2/0.5"),
            ])
        );
    }

    #[test]
    fn deviations_are_settings_that_differ_on_both_sides() {
        let asked = settings(&[
            ("cache_bytes", "268435456"),
            ("block_compressor", "zstd"),
            ("journal", SERVER_DEFAULT),
            ("program", "/bin/mongod"),
            ("checkpoint_interval_s", "60"),
        ]);
        let found = settings(&[
            ("cache_bytes", "268435456.0"),
            ("block_compressor", "snappy"),
            ("journal", "false"),
            ("checkpoint_interval_s", "30"),
        ]);
        let expected =
            [("block_compressor", "zstd", "snappy"), ("checkpoint_interval_s", "60", "30")].map(
                |(setting, asked, found)| Deviation {
                    setting: setting.into(),
                    asked: asked.into(),
                    found: found.into(),
                },
            );
        assert_eq!(deviations(&asked, &found), expected);
    }
}
