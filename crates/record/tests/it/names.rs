//! The names of metrics: their form, their list in `docs/metrics.md`, and that nobody writes them otherwise.

use dyno_record::metrics::MetricId;
use dyno_record::names::{self, Metric};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Ends of names, by which readers know the unit.
const UNITS: [&str; 10] = [
    "_per_s", "_bytes", "_ratio", "_us", "_ms", "_s", "_count", "_hz", "_percent", ".celsius",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn each_name_is_there_once_has_a_unit_and_stands_for_what_is_recorded() {
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
fn a_metric_is_only_what_has_its_whole_name() {
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
fn all_metrics_are_documented_and_all_documented_ones_exist() {
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

/// The names in the first cells of the tables in `docs/metrics.md`, without those of exporters, which are the same.
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
                found.extend(
                    expanded(&whole)
                        .iter()
                        .map(|name| pattern(name, is_of_server)),
                );
            }
        }
    }
    found
}

/// `a.{b,c}_d` as `a.b_d` and `a.c_d`.
fn expanded(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else {
        return vec![text.to_owned()];
    };
    let (choices, after) = rest.split_once('}').unwrap();
    let choices = choices.split(',');
    choices
        .flat_map(|choice| expanded(&format!("{before}{choice}{after}")))
        .collect()
}

/// `disk.DEV.read_per_s` as `disk.{}.read_per_s`. The documents leave out the instance of a server's metrics.
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
fn no_code_names_a_metric_by_a_text() {
    let mut found = Vec::new();
    for crate_folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = crate_folder.unwrap().path();
        if !folder.ends_with("record") {
            look_into(&folder.join("src"), &mut found);
        }
    }
    assert!(found.is_empty(), "use `dyno_record::names`: {found:#?}");
}

/// Texts in code outside of tests that are names of metrics, with or without an instance.
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
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        for line in code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            let texts = line.split('"').skip(1).step_by(2);
            let named = texts.filter(|text| names::all().any(|metric| is_named(metric, text)));
            found.extend(named.map(|text| format!("{}: {text}", path.display())));
        }
    }
}

fn is_named(metric: Metric, text: &str) -> bool {
    let parsed = || MetricId::parse(text).is_some_and(|id| metric.is(&id));
    text.contains('.') && (text == metric.to_string() || parsed())
}
