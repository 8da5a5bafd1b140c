//! Metric names: their form, their list in `docs/metrics.md`, and the use of constants.

use dyno_record::metrics::MetricId;
use dyno_record::names::{self, Metric};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Name suffixes that state the unit.
const UNITS: [&str; 10] =
    ["_per_s", "_bytes", "_ratio", "_us", "_ms", "_s", "_count", "_hz", "_percent", ".celsius"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn names_are_unique_and_have_a_unit() {
    let mut seen = BTreeSet::new();
    for metric in names::all() {
        let text = metric.to_string();
        assert!(seen.insert(text.clone()), "{text} twice");
        assert!(UNITS.iter().any(|unit| text.ends_with(unit)), "{text}");
        let id = metric.of("vda.1");
        let parsed = MetricId::parse(&text.replace("{}", "vda.1")).unwrap();
        assert_eq!(id, parsed, "{text}");
        assert!(metric.is(&id), "{text}");
        assert_eq!((id.group(), id.name()), (metric.group(), metric.name()));
    }
}

#[test]
fn a_metric_matches_its_whole_name() {
    let id = |text| MetricId::parse(text).unwrap();
    let read = names::disk::READ_PER_S;
    assert!(read.is(&id("disk.vda.read_per_s")));
    assert!(!read.is(&id("disk.vda.write_per_s")));
    assert!(!read.is(&id("process.vda.read_per_s")));
    let busy = names::cpu::ALL_BUSY_RATIO;
    assert!(busy.is(&id("cpu.all.busy_ratio")));
    assert!(!busy.is(&id("cpu.0.busy_ratio")));
}

#[test]
fn documented_metrics_equal_the_defined_ones() {
    let documented = documented();
    let known: BTreeSet<String> = names::all().map(|metric| metric.to_string()).collect();
    let difference = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
        a.difference(b).cloned().collect()
    };
    let undocumented = difference(&known, &documented);
    assert!(undocumented.is_empty(), "not documented: {undocumented:?}");
    let unknown = difference(&documented, &known);
    assert!(unknown.is_empty(), "no such metric: {unknown:?}");
}

/// Names in the first cells of the tables in `docs/metrics.md`, except the exporters' section, which repeats them.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let (before, _) = text.split_once("## `exporters`").unwrap();
    let (of_machine, of_server) = before.split_once("## `server`").unwrap();
    let mut found = BTreeSet::new();
    for (section, is_of_server) in [(of_machine, false), (of_server, true)] {
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let cell = row.split('|').nth(1).unwrap();
            let mut whole = String::new();
            for text in cell.split('`').skip(1).step_by(2) {
                // `.cpu_user_ratio` after `process.NAME.cpu_ratio` stands for `process.NAME.cpu_user_ratio`.
                whole = match text.strip_prefix('.') {
                    Some(name) => format!("{}.{name}", whole.rsplit_once('.').unwrap().0),
                    None => text.to_owned(),
                };
                found.extend(expanded(&whole).iter().map(|name| pattern(name, is_of_server)));
            }
        }
    }
    found
}

/// Expands `a.{b,c}_d` to `a.b_d` and `a.c_d`.
fn expanded(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else {
        return vec![text.to_owned()];
    };
    let (choices, after) = rest.split_once('}').unwrap();
    choices.split(',').flat_map(|choice| expanded(&format!("{before}{choice}{after}"))).collect()
}

/// Converts `disk.DEV.read_per_s` to `disk.{}.read_per_s`. The documentation omits the instance of server metrics.
fn pattern(name: &str, is_of_server: bool) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        [group, name] if is_of_server => format!("{group}.{{}}.{name}"),
        [group, instance, name] if instance.chars().all(|c| c.is_ascii_uppercase()) => {
            format!("{group}.{{}}.{name}")
        }
        _ => name.to_owned(),
    }
}

#[test]
fn code_names_metrics_by_constants() {
    let mut found = Vec::new();
    for crate_folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = crate_folder.unwrap().path();
        if !folder.ends_with("record") {
            look_into(&folder.join("src"), &mut found);
        }
    }
    assert!(found.is_empty(), "use `dyno_record::names`: {found:#?}");
}

/// String literals outside tests that are metric names, with or without an instance.
fn look_into(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            look_into(&path, found);
        }
        let is_code = path.extension().is_some_and(|end| end == "rs");
        if !is_code || path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let named = line
                .split('"')
                .skip(1)
                .step_by(2)
                .filter(|text| names::all().any(|metric| is_named(metric, text)));
            found.extend(named.map(|text| format!("{}: {text}", path.display())));
        }
    }
}

fn is_named(metric: Metric, text: &str) -> bool {
    let parsed = || MetricId::parse(text).is_some_and(|id| metric.is(&id));
    text.contains('.') && (text == metric.to_string() || parsed())
}
