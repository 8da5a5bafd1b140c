//! The committed JSON schema matches the code, plan files conform to it, and `docs/plans.md`
//! describes every key in it and every YCSB property. `UPDATE_SCHEMA=1` rewrites the schema and the
//! table of properties.

use dyno_plan::fleet::{FleetPlan, KubernetesPlan};
use dyno_plan::index_build::IndexBuildPlan;
use dyno_plan::tail::TailPlan;
use dyno_plan::ycsb::{PROPERTIES, Property, Treatment};
use dyno_plan::{builtin, file, knobs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn documentation() -> String {
    read(&in_crate("../../docs/plans.md"))
}

/// All objections of the schema to a plan file in one text.
fn objections(toml_text: &str) -> String {
    let document: toml::Table = toml::from_str(toml_text).expect("the text is TOML");
    let document = serde_json::to_value(document).expect("no number is infinite");
    let validator = jsonschema::validator_for(&file::schema()).expect("the schema is valid");
    validator
        .iter_errors(&document)
        .map(|error| format!("{}: {error}\n", error.instance_path()))
        .collect()
}

#[test]
fn committed_schemas_match_the_code() {
    for (name, schema) in [("plan", file::schema()), ("knobs", knobs::schema())] {
        let path = in_crate(&format!("schema/{name}.schema.json"));
        let current = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &current).unwrap();
        }
        assert!(
            read(&path) == current,
            "{} is out of date, run `UPDATE_SCHEMA=1 cargo test -p dyno-plan --test schema`",
            path.display()
        );
    }
}

#[test]
fn built_in_knobs_conform_to_their_schema() {
    let validator = jsonschema::validator_for(&knobs::schema()).unwrap();
    for file in ["mongod.toml", "host.toml"] {
        let text = read(&in_crate("../../workloads/knobs").join(file));
        let document: toml::Table = toml::from_str(&text).unwrap();
        let document = serde_json::to_value(document).unwrap();
        let objections: Vec<String> =
            validator.iter_errors(&document).map(|one| one.to_string()).collect();
        assert_eq!(objections, Vec::<String>::new(), "{file}");
    }
}

#[test]
fn every_workload_file_conforms_and_is_built_in() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(in_crate("../../workloads")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            assert_eq!(objections(&read(&path)), "", "{}", path.display());
            found.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    let mut names: Vec<&str> = builtin::names().collect();
    names.sort_unstable();
    assert_eq!(found, names);
}

#[test]
fn printed_plans_conform() {
    for name in builtin::names() {
        let plan = builtin::find(name).unwrap();
        assert_eq!(objections(&file::to_toml(&plan)), "", "{name}");
    }
}

#[test]
fn schema_and_reader_refuse_the_same_mistakes() {
    for wrong in [
        "nam = \"x\"",
        "name = 5",
        "base = \"z\"",
        "[data]\nrecords = -1",
        "[data]\nrecords = 1.5",
        "[data]\nkey_order = \"random\"",
        "[data.field_length]\ndistribution = \"constant\"",
        "[data.field_length]\ndistribution = \"constant\"\nbytes = 1\nmax_bytes = 2",
        "[operations]\nreads = 1",
        "[keys]\nexponent = 0.5",
        "[schedule]\nkind = \"constant\"",
        "[client]\ntimeout = \"-1s\"",
        "[client]\ntimeout = true",
        "[server]\ncache = \"1.5x\"",
    ] {
        assert_ne!(objections(wrong), "", "the schema accepts {wrong:?}");
        let text = format!("{wrong}\n");
        assert!(file::parse(&text, "wrong").is_err(), "the reader accepts {wrong:?}");
    }
}

#[test]
fn every_documented_example_is_a_valid_plan() {
    let text = documentation();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3, "{} examples", examples.len());
    for example in examples {
        if let Err(error) = file::parse(example, "docs/plans.md") {
            panic!("{error}\nin\n{example}");
        }
        assert_eq!(objections(example), "", "{example}");
    }
}

#[test]
fn every_example_of_an_own_workload_is_a_valid_plan() {
    let text = read(&in_crate("../../docs/workloads.md"));
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4, "{} examples", examples.len());
    for example in examples {
        let plan = file::parse(example, "docs/workloads.md");
        let plan = plan.unwrap_or_else(|error| panic!("{error}\nin\n{example}"));
        assert_eq!(objections(example), "", "{example}");
        assert_eq!(objections(&file::to_toml(&plan)), "", "{example}");
    }
}

/// Properties of a key in the schema.
struct Key {
    /// Allowed values of a choice.
    choices: Vec<String>,
    /// Whether it belongs to a variant of a table that a tag selects.
    in_variant: bool,
    /// Default in the schema.
    default: Value,
}

/// Resolves references and options to a schema; for a switch that may be a table, the table.
fn resolve_reference<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(variants) = schema["anyOf"].as_array() {
        let of_table = variants.iter().find(|variant| variant["$ref"].is_string());
        return resolve_reference(root, of_table.unwrap_or(&variants[0]));
    }
    match schema["$ref"].as_str() {
        Some(reference) => {
            resolve_reference(root, &root["$defs"][reference.trim_start_matches("#/$defs/")])
        }
        None => schema,
    }
}

fn texts(values: &Value, of: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    values
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|value| of(value).map(str::to_owned))
        .collect()
}

/// All keys under a schema, with dotted names.
fn collect(
    root: &Value,
    schema: &Value,
    path: &str,
    in_variant: bool,
    keys: &mut BTreeMap<String, Key>,
) {
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        collect(root, variant, path, true, keys);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let target = resolve_reference(root, property);
        let mut choices = texts(&target["enum"], Value::as_str);
        choices.extend(texts(&target["oneOf"], |variant| variant["const"].as_str()));
        choices.extend(property["const"].as_str().map(str::to_owned));
        let key = keys.entry(path.clone()).or_insert(Key {
            choices: Vec::new(),
            in_variant,
            default: property["default"].clone(),
        });
        key.choices.extend(choices);
        collect(root, target, &path, in_variant, keys);
    }
}

fn schema_keys() -> BTreeMap<String, Key> {
    let schema = file::schema();
    let mut keys = BTreeMap::new();
    collect(&schema, &schema, "", false, &mut keys);
    keys
}

/// The rows of the tables with the first column `Key`: dotted key, type, default.
fn documented_keys() -> BTreeMap<String, (String, String)> {
    let text = documentation();
    let mut rows = BTreeMap::new();
    let mut section = "";
    let mut default_column = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            section = in_backticks(heading).unwrap_or("");
        }
        if !line.starts_with('|') {
            default_column = None;
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells[0] == "Key" {
            default_column = cells.iter().position(|cell| *cell == "Default");
        }
        if let (Some(column), Some(name)) = (default_column, in_backticks(cells[0])) {
            let key = if section.is_empty() { name.into() } else { format!("{section}.{name}") };
            rows.insert(key, (cells[1].to_owned(), cells[column].to_owned()));
        }
    }
    rows
}

fn in_backticks(text: &str) -> Option<&str> {
    text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))
}

#[test]
fn documentation_has_exactly_the_keys_of_the_schema() {
    let schema = schema_keys();
    assert!(schema.contains_key("data.field_length.block_bytes"));
    let documented = documented_keys();
    let missing: Vec<&String> =
        schema.keys().filter(|key| !documented.contains_key(*key)).collect();
    let unknown: Vec<&String> =
        documented.keys().filter(|key| !schema.contains_key(*key)).collect();
    assert_eq!((missing, unknown), (vec![], vec![]));
}

#[test]
fn documentation_names_every_allowed_value() {
    let documented = documented_keys();
    for (key, Key { choices, .. }) in schema_keys() {
        for choice in choices {
            let (kind, _) = &documented[&key];
            assert!(kind.contains(&format!("`{choice}`")), "{key} does not name `{choice}`");
        }
    }
}

#[test]
fn documented_defaults_match_the_code() {
    let mut plan = file::default_plan();
    // Defaults of these tables if a file contains them empty.
    plan.index_build = Some(IndexBuildPlan::default());
    plan.tail = Some(TailPlan::default());
    plan.fleet =
        Some(FleetPlan { kubernetes: Some(KubernetesPlan::default()), ..FleetPlan::default() });
    let defaults = serde_json::to_value(plan).unwrap();
    let documented = documented_keys();
    for (key, Key { in_variant, default, .. }) in schema_keys() {
        let (_, cell) = &documented[&key];
        let pointer = format!("/{}", key.replace('.', "/"));
        let is_tag = key.ends_with(".distribution") || key.ends_with(".kind");
        let expected = match (in_variant && !is_tag, defaults.pointer(&pointer)) {
            (true, _) if default.is_null() => {
                assert_eq!(cell, "required", "{key}");
                continue;
            }
            (true, _) => default,
            (false, value) => value.cloned().unwrap_or(Value::Null),
        };
        let shown = in_backticks(cell);
        match expected {
            Value::Null | Value::Object(_) => assert_eq!(shown, None, "{key} has no default"),
            Value::String(text) => assert_eq!(shown, Some(text.as_str()), "{key}"),
            Value::Number(number) => {
                let shown: f64 = shown.unwrap_or_default().parse().unwrap_or(f64::NAN);
                assert_eq!(Some(shown), number.as_f64(), "{key}");
            }
            other => assert_eq!(shown, Some(other.to_string().as_str()), "{key}"),
        }
    }
}

/// The table of YCSB properties between the two markers of the documentation.
fn property_table() -> String {
    let mut table = String::from("| Property | Default | Effect |\n|---|---|---|\n");
    for Property { name, default, treatment } in PROPERTIES {
        let default = match default {
            None => "none".into(),
            Some("") => "empty".into(),
            Some(text) => format!("`{text}`"),
        };
        let effect = match treatment {
            Treatment::Plan(key) => format!("sets `{key}`"),
            Treatment::Client(what) => format!("`dyno ycsb`: {what}"),
            Treatment::Checked(what) => format!("`dyno ycsb`: checked: {what}"),
            Treatment::Target(what) => format!("connection string: {what}"),
            Treatment::NoEffect(reason) => format!("accepted without effect: {reason}"),
            Treatment::Refused(reason) => format!("refused: {reason}"),
        };
        table.push_str(&format!("| `{name}` | {default} | {effect} |\n"));
    }
    table
}

#[test]
fn documentation_has_the_table_of_ycsb_properties() {
    const START: &str = "<!-- properties -->\n";
    const END: &str = "<!-- end of properties -->\n";
    let text = documentation();
    let (before, rest) = text.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = property_table();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let updated = format!("{before}{START}{expected}{END}{after}");
        std::fs::write(in_crate("../../docs/plans.md"), updated).unwrap();
    } else {
        assert!(
            found == expected,
            "docs/plans.md is out of date, run `UPDATE_SCHEMA=1 cargo test -p dyno-plan --test schema`"
        );
    }
}

#[test]
fn properties_that_set_the_plan_have_existing_keys() {
    let keys = schema_keys();
    for Property { name, treatment, .. } in PROPERTIES {
        if let Treatment::Plan(key) = treatment {
            assert!(keys.contains_key(*key), "`{name}` sets `{key}`");
        }
    }
}
