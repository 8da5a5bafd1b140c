//! Settings as commands for a running server and for the kernel of its machine, as lines of `mongod.conf`, and as options
//! of `dyno run`.

use crate::page::FoldedList;
use dyno_plan::host_setting::HostSetting;
use dyno_plan::knobs::{ENGINE_CONFIGURATION, HOST_SETTINGS, PARAMETERS, RUNTIME_PARAMETERS};
use dyno_plan::units::{Bytes, Span};
use dyno_record::experiment::{Knob, keys_of};
use std::collections::BTreeMap;

/// Converts a value of the plan to its form in `mongod.conf`.
type Form = fn(&str) -> String;

/// Keys of the plan, their places in `mongod.conf`, and the form of their values. Other keys belong to a run, not to the
/// server that keeps the settings.
const PLACES: [(&str, &str, Form); 7] = [
    (
        "server.block_compressor",
        "storage.wiredTiger.collectionConfig.blockCompressor",
        str::to_owned,
    ),
    ("server.cache", "storage.wiredTiger.engineConfig.cacheSizeGB", gibibytes),
    ("server.checkpoint_interval", "storage.syncPeriodSecs", seconds),
    ("server.journal", "storage.journal.enabled", str::to_owned),
    ("server.journal_commit_interval", "storage.journal.commitIntervalMs", milliseconds),
    (
        "server.journal_compressor",
        "storage.wiredTiger.engineConfig.journalCompressor",
        str::to_owned,
    ),
    ("server.storage_engine", "storage.engine", engine),
];

/// Place of the value that a running server takes as [`ENGINE_CONFIGURATION`].
const ENGINE: &str = "storage.wiredTiger.engineConfig.configString";

/// How to apply settings, keep them, run workloads with them, and undo them: knobs with their values, and the plan keys
/// that the knobs set.
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
    let sets: Vec<String> =
        keys.iter().map(|(key, value)| format!("--set '{key}={value}'")).collect();
    [
        list("Set them on a running server, in `mongosh`", commands(keys)),
        list("Undo them there", commands(&before)),
        list("Apply the machine settings until the next boot", of_machine(knobs, keys)),
        list("Undo them there", of_machine(knobs, &before)),
        list("Keep them, in `mongod.conf`", configuration(keys, &before)),
        list("Documentation", described(knobs, settings)),
        list(
            "Run the workload with them",
            vec![format!("dyno run {workloads} {}", sets.join(" "))],
        ),
    ]
    .into_iter()
    .filter(|list| !list.entries.is_empty())
    .collect()
}

/// The original values of the same keys.
fn before(knobs: &[Knob], settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let changed = knobs.iter().filter(|knob| settings.contains_key(&knob.name));
    keys_of(changed.map(|knob| (knob, knob.default_value())))
}

/// Documentation pages of the settings.
fn described(knobs: &[Knob], settings: &BTreeMap<String, String>) -> Vec<String> {
    let changed = knobs.iter().filter(|knob| settings.contains_key(&knob.name));
    let pages = changed.filter_map(|knob| {
        let versions = knob.versions.as_ref();
        let versions = versions.map_or(String::new(), |own| format!(", MongoDB {own}"));
        Some(format!("{}{versions}: {}", knob.name, knob.documentation.as_ref()?))
    });
    pages.collect()
}

fn commands(keys: &BTreeMap<String, String>) -> Vec<String> {
    let own =
        keys.iter().filter_map(|(key, value)| Some((key.strip_prefix(RUNTIME_PARAMETERS)?, value)));
    own.map(|(name, value)| {
        format!("db.adminCommand({{setParameter: 1, {name}: {}}})", literal(value))
    })
    .collect()
}

/// Shell commands: `sysctl` for kernel variables, files for everything else.
fn of_machine(knobs: &[Knob], keys: &BTreeMap<String, String>) -> Vec<String> {
    let own = keys.iter().filter_map(|(key, value)| {
        let setting = HostSetting::from_name(key.strip_prefix(HOST_SETTINGS)?)?;
        let knob = knobs.iter().find(|knob| knob.key == *key)?;
        Some((knob, setting.written(value)?))
    });
    let command = |file: &String, value: &str| match file.strip_prefix("/proc/sys/") {
        Some(name) => format!("sudo sysctl -w {}={value}", name.replace('/', ".")),
        None => format!("echo {value} | sudo tee {file}"),
    };
    own.flat_map(|(knob, value)| {
        let start = match knob.needs_start() {
            true => "  # then start the server again",
            false => "",
        };
        knob.files.iter().map(move |file| command(file, &value) + start)
    })
    .collect()
}

/// A value as a JavaScript literal.
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

/// A value as a YAML scalar; a document becomes a string.
fn yaml(value: &str) -> String {
    if value.starts_with('{') { format!("'{value}'") } else { literal(value) }
}

/// Added and changed lines, marked as in a `diff`.
fn configuration(
    keys: &BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Vec<String> {
    let (mut lines, mut parameters) = (Vec::new(), Vec::new());
    for (key, value) in keys {
        let place = PLACES.iter().find(|(own, ..)| own == key);
        let parameter = key.strip_prefix(RUNTIME_PARAMETERS);
        let parameter = parameter.or(key.strip_prefix(PARAMETERS));
        let as_it_is: Form = str::to_owned;
        let (place, form, lines) = match (place, parameter) {
            (Some((_, place, form)), _) => (*place, *form, &mut lines),
            (None, Some(ENGINE_CONFIGURATION)) => (ENGINE, as_it_is, &mut lines),
            (None, Some(name)) => (name, as_it_is, &mut parameters),
            (None, None) => continue,
        };
        let line = |value: &str| format!("{place}: {}", yaml(&form(value)));
        lines.extend(before.get(key).map(|value| format!("-{}", line(value))));
        lines.push(format!("+{}", line(value)));
    }
    // These parameters are a map, so their names cannot contain dots.
    if !parameters.is_empty() {
        lines.push("setParameter:".to_owned());
        lines.extend(parameters.iter().map(|line| format!("{}  {}", &line[..1], &line[1..])));
    }
    lines
}

fn gibibytes(value: &str) -> String {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let size = value.parse::<Bytes>();
    size.map_or(value.to_owned(), |size| (size.0 as f64 / GIB).to_string())
}

fn seconds(value: &str) -> String {
    let span = value.parse::<Span>();
    span.map_or(value.to_owned(), |span| span.0.as_secs_f64().to_string())
}

fn milliseconds(value: &str) -> String {
    let span = value.parse::<Span>();
    span.map_or(value.to_owned(), |span| span.0.as_millis().to_string())
}

fn engine(value: &str) -> String {
    let name = match value {
        "wired-tiger" => "wiredTiger",
        "in-memory" => "inMemory",
        other => other,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_machine_are_commands_of_a_shell() {
        let knob = |name: &str, value: &str, file: &str| Knob {
            files: vec![file.to_owned()],
            ..Knob::new(name, format!("server.host_settings.{name}"), vec![value.to_owned()])
        };
        let knobs = [
            knob("swappiness", "60", "/proc/sys/vm/swappiness"),
            knob("readahead", "128KiB", "/sys/block/sda/queue/read_ahead_kb"),
        ];
        let keys = knobs.iter().map(|knob| (knob.key.clone(), knob.values[0].clone()));
        let keys: BTreeMap<String, String> = keys.collect();
        assert_eq!(
            of_machine(&knobs, &keys),
            [
                "echo 128 | sudo tee /sys/block/sda/queue/read_ahead_kb  # then start the server again",
                "sudo sysctl -w vm.swappiness=60",
            ]
        );
        assert!(commands(&keys).is_empty() && configuration(&keys, &keys).is_empty());
    }

    #[test]
    fn start_settings_have_a_place_in_mongod_conf() {
        let line = |key: &str, value: &str| {
            let keys = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            configuration(&keys, &BTreeMap::new()).concat()
        };
        for (key, value, written) in [
            (
                "block_compressor",
                "zstd",
                "storage.wiredTiger.collectionConfig.blockCompressor: \"zstd\"",
            ),
            ("cache", "1GiB", "storage.wiredTiger.engineConfig.cacheSizeGB: 1"),
            ("checkpoint_interval", "1m", "storage.syncPeriodSecs: 60"),
            ("journal", "false", "storage.journal.enabled: false"),
            ("journal_commit_interval", "30ms", "storage.journal.commitIntervalMs: 30"),
            (
                "journal_compressor",
                "none",
                "storage.wiredTiger.engineConfig.journalCompressor: \"none\"",
            ),
            ("storage_engine", "wired-tiger", "storage.engine: \"wiredTiger\""),
        ] {
            let own = line(&format!("server.{key}"), value);
            assert_eq!(own, format!("+{written}"));
        }
        let parameter = line("server.parameters.ttlMonitorSleepSecs", "77");
        assert_eq!(parameter, "setParameter:+  ttlMonitorSleepSecs: 77");
        for key in ["server.durable_writes", "client.clients"] {
            assert_eq!(line(key, "4"), "");
        }
    }

    #[test]
    fn settings_become_commands_and_configuration_lines() {
        let keys = |pairs: [(&str, &str); 3]| {
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        };
        let after: BTreeMap<String, String> = keys([
            ("server.cache", "512MiB"),
            ("server.runtime_parameters.syncdelay", "20"),
            ("server.runtime_parameters.wiredTigerEngineRuntimeConfig", "eviction_dirty_target=2"),
        ]);
        let before: BTreeMap<String, String> = keys([
            ("server.cache", "2048MiB"),
            ("server.runtime_parameters.syncdelay", "60.0"),
            ("server.runtime_parameters.wiredTigerEngineRuntimeConfig", "eviction_dirty_target=5"),
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
