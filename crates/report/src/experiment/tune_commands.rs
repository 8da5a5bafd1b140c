//! Settings in the words of those who make them: commands for a running server and for the kernel of its machine, lines of
//! `mongod.conf`, and `dyno run`.

use crate::page::FoldedList;
use dyno_plan::host_setting::HostSetting;
use dyno_plan::knobs::{ENGINE_CONFIGURATION, HOST_SETTINGS, PARAMETERS, RUNTIME_PARAMETERS};
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
        list(
            "Make the settings of its machine, until it starts again",
            of_machine(knobs, keys),
        ),
        list("Take them back there", of_machine(knobs, &before)),
        list("Keep them, in `mongod.conf`", configuration(keys, &before)),
        list("Where they are described", described(knobs, settings)),
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

/// Pages about what is set.
fn described(knobs: &[Knob], settings: &BTreeMap<String, String>) -> Vec<String> {
    let changed = knobs
        .iter()
        .filter(|knob| settings.contains_key(&knob.name));
    let pages = changed.filter_map(|knob| {
        let versions = knob.versions.as_ref();
        let versions = versions.map_or(String::new(), |own| format!(", MongoDB {own}"));
        Some(format!(
            "{}{versions}: {}",
            knob.name,
            knob.documentation.as_ref()?
        ))
    });
    pages.collect()
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

/// Commands for a shell: variables of the kernel by `sysctl`, all else by its files.
fn of_machine(knobs: &[Knob], keys: &BTreeMap<String, String>) -> Vec<String> {
    let own = keys.iter().filter_map(|(key, value)| {
        let setting = HostSetting::named(key.strip_prefix(HOST_SETTINGS)?)?;
        let knob = knobs.iter().find(|knob| knob.key == *key)?;
        Some((knob, setting.written(value)?))
    });
    let command = |file: &String, value: &str| match file.strip_prefix("/proc/sys/") {
        Some(name) => format!("sudo sysctl -w {}={value}", name.replace('/', ".")),
        None => format!("echo {value} | sudo tee {file}"),
    };
    own.flat_map(|(knob, value)| knob.files.iter().map(move |file| command(file, &value)))
        .collect()
}

/// A value as JavaScript has it.
fn literal(value: &str) -> String {
    let is_plain = value.parse::<f64>().is_ok()
        || ["true", "false"].contains(&value)
        || value.starts_with('{');
    if is_plain {
        value.to_owned()
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// A value as YAML has it: a document is a text there.
fn yaml(value: &str) -> String {
    if value.starts_with('{') {
        format!("'{value}'")
    } else {
        literal(value)
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
        let parameter = key.strip_prefix(RUNTIME_PARAMETERS);
        let parameter = parameter.or(key.strip_prefix(PARAMETERS));
        let (place, lines) = match (place, parameter) {
            (Some((_, place)), _) => (*place, &mut lines),
            (None, Some(ENGINE_CONFIGURATION)) => (ENGINE, &mut lines),
            (None, Some(name)) => (name, &mut parameters),
            (None, None) => continue,
        };
        let line = |value: &str| format!("{place}: {}", yaml(&in_unit(place, value)));
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
    fn settings_of_the_machine_are_commands_of_a_shell() {
        let knob = |name: &str, value: &str, file: &str| Knob {
            name: name.to_owned(),
            group: "host".to_owned(),
            key: format!("server.host_settings.{name}"),
            text: None,
            values: vec![value.to_owned()],
            default: 0,
            ordered: true,
            reach: dyno_record::experiment::KnobReach::Host,
            needs_start: false,
            files: vec![file.to_owned()],
            versions: None,
            less_durable: Vec::new(),
            risk: None,
            documentation: None,
        };
        let knobs = [
            knob("swappiness", "60", "/proc/sys/vm/swappiness"),
            knob("readahead", "128KiB", "/sys/block/sda/queue/read_ahead_kb"),
        ];
        let keys = knobs
            .iter()
            .map(|knob| (knob.key.clone(), knob.values[0].clone()));
        let keys: BTreeMap<String, String> = keys.collect();
        assert_eq!(
            of_machine(&knobs, &keys),
            [
                "echo 128 | sudo tee /sys/block/sda/queue/read_ahead_kb",
                "sudo sysctl -w vm.swappiness=60",
            ]
        );
        assert!(commands(&keys).is_empty() && configuration(&keys, &keys).is_empty());
    }

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
