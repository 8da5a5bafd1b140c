//! Settings in the words of those who make them: commands for a running server, lines of `mongod.conf`, and `dyno run`.

use crate::page::FoldedList;
use dyno_plan::knobs::{ENGINE_CONFIGURATION, RUNTIME_PARAMETERS};
use dyno_record::experiment::{Knob, keys_of};
use std::collections::BTreeMap;

/// Keys of the plan and their places in `mongod.conf`.
const PLACES: [(&str, &str); 3] = [
    (
        "server.block_compressor",
        "storage.wiredTiger.collectionConfig.blockCompressor",
    ),
    (
        "server.journal_compressor",
        "storage.wiredTiger.engineConfig.journalCompressor",
    ),
    ("server.cache", CACHE),
];

/// Place of what a running server takes as [`ENGINE_CONFIGURATION`].
const ENGINE: &str = "storage.wiredTiger.engineConfig.configString";

const CACHE: &str = "storage.wiredTiger.engineConfig.cacheSizeGB";

/// How settings are made, lasting, repeated with a workload or several, and taken back: the knobs that they turn, and the keys of
/// the plan that these set.
pub(super) fn lists(
    workloads: &str,
    knobs: &[Knob],
    settings: &BTreeMap<String, String>,
    keys: &BTreeMap<String, String>,
) -> Vec<FoldedList> {
    let before = before(knobs, settings);
    let list = |title: &str, entries: Vec<String>| FoldedList {
        title: title.to_owned(),
        entries,
        is_open: true,
    };
    let sets: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("--set '{key}={value}'"))
        .collect();
    [
        list("Set them on a running server, in `mongosh`", commands(keys)),
        list("Take them back there", commands(&before)),
        list("Keep them, in `mongod.conf`", configuration(keys, &before)),
        list(
            "Run the workload with them",
            vec![format!("dyno run {workloads} {}", sets.join(" "))],
        ),
    ]
    .into_iter()
    .filter(|list| !list.entries.is_empty())
    .collect()
}

/// The same keys as they were.
fn before(knobs: &[Knob], settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let knobs = knobs.iter();
    let changed = knobs.filter(|knob| settings.contains_key(&knob.name));
    keys_of(changed.map(|knob| (knob, knob.default_value())))
}

fn commands(keys: &BTreeMap<String, String>) -> Vec<String> {
    let own = keys
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix(RUNTIME_PARAMETERS)?, value)));
    own.map(|(name, value)| {
        format!(
            "db.adminCommand({{setParameter: 1, {name}: {}}})",
            literal(value)
        )
    })
    .collect()
}

/// A value as JavaScript and YAML have it.
fn literal(value: &str) -> String {
    let is_plain = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value);
    if is_plain {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// Lines that are added or changed, as `diff` marks them.
fn configuration(
    keys: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Vec<String> {
    let (mut lines, mut parameters) = (Vec::new(), Vec::new());
    for (key, value) in keys {
        let place = PLACES.iter().find(|(own, _)| own == key);
        let (place, lines) = match (place, key.strip_prefix(RUNTIME_PARAMETERS)) {
            (Some((_, place)), _) => (*place, &mut lines),
            (None, Some(ENGINE_CONFIGURATION)) => (ENGINE, &mut lines),
            (None, Some(name)) => (name, &mut parameters),
            (None, None) => continue,
        };
        let line = |value: &str| format!("{place}: {}", literal(&in_unit(place, value)));
        lines.extend(before.get(key).map(|value| format!("-{}", line(value))));
        lines.push(format!("+{}", line(value)));
    }
    // They are a map, which takes no names with dots.
    if !parameters.is_empty() {
        lines.push("setParameter:".to_owned());
        lines.extend(
            parameters
                .iter()
                .map(|line| format!("{}  {}", &line[..1], &line[1..])),
        );
    }
    lines
}

/// The size of a cache is in gibibytes there.
fn in_unit(place: &str, value: &str) -> String {
    let mebibytes = value
        .strip_suffix("MiB")
        .and_then(|number| number.parse::<f64>().ok());
    match mebibytes.filter(|_| place == CACHE) {
        Some(mebibytes) => format!("{}", mebibytes / 1024.0),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_for_those_who_make_them() {
        let keys = |pairs: [(&str, &str); 3]| {
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into()
        };
        let after: BTreeMap<String, String> = keys([
            ("server.cache", "512MiB"),
            ("server.runtime_parameters.syncdelay", "20"),
            (
                "server.runtime_parameters.wiredTigerEngineRuntimeConfig",
                "eviction_dirty_target=2",
            ),
        ]);
        let before: BTreeMap<String, String> = keys([
            ("server.cache", "2048MiB"),
            ("server.runtime_parameters.syncdelay", "60.0"),
            (
                "server.runtime_parameters.wiredTigerEngineRuntimeConfig",
                "eviction_dirty_target=5",
            ),
        ]);
        assert_eq!(
            commands(&after),
            [
                "db.adminCommand({setParameter: 1, syncdelay: 20})",
                "db.adminCommand({setParameter: 1, wiredTigerEngineRuntimeConfig: \"eviction_dirty_target=2\"})",
            ]
        );
        assert_eq!(
            configuration(&after, &before),
            [
                "-storage.wiredTiger.engineConfig.cacheSizeGB: 2",
                "+storage.wiredTiger.engineConfig.cacheSizeGB: 0.5",
                "-storage.wiredTiger.engineConfig.configString: \"eviction_dirty_target=5\"",
                "+storage.wiredTiger.engineConfig.configString: \"eviction_dirty_target=2\"",
                "setParameter:",
                "-  syncdelay: 60.0",
                "+  syncdelay: 20",
            ]
        );
    }
}
