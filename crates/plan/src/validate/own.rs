//! Checks of own collections and operations.

use super::problems::Problems;
use crate::model::{KeyDistribution, OWN_DATA, Plan};
use crate::operation;
use crate::workload::template::CommandNames;
use crate::workload::{self, Collection, Operation, Step};
use serde_json::Value;

/// Largest size of the documents in an insert command, below the 48 000 000 bytes of a server's
/// largest message.
const BATCH_BYTES: u64 = 47_000_000;

pub(super) fn check_own(problems: &mut Problems, plan: &Plan) {
    if !plan.is_own() {
        let has_checks = !plan.checks.is_empty();
        let hint = "describe them with `[[data.collections]]`";
        problems.require_or("checks", !has_checks, hint, "need own collections");
        return;
    }
    check_kind(problems, plan);
    check_names(problems, plan);
    check_other_keys(problems, plan);
    check_keys(problems, &plan.keys);
    let workload = plan.own_workload();
    let found = workload::check(&workload);
    let is_sound = found.is_empty();
    problems.0.extend(found);
    check_unsupported(problems, plan);
    if is_sound {
        check_batch(problems, plan, &workload::largest_document_bytes(&workload));
    }
}

/// A plan has YCSB's documents and operations, or its own.
fn check_kind(problems: &mut Problems, plan: &Plan) {
    let hint = "list them as `[[operations]]`, each with `name`, `weight` and `command`";
    let has_operations = !plan.operations.own.is_empty();
    problems.require_or("operations", has_operations, hint, "of own collections are missing");
    let hint =
        "describe them as `[[data.collections]]`, each with `name`, `records` and `document`";
    let has_collections = !plan.data.collections.is_empty();
    problems.require_or(
        "data.collections",
        has_collections,
        hint,
        "is missing: own operations need own collections",
    );
    let other = match (&plan.index_build, &plan.tail) {
        (Some(_), _) => Some("index_build"),
        (_, Some(_)) => Some("tail"),
        (None, None) => None,
    };
    if let Some(key) = other {
        problems.require(key, false, "does not use own collections");
    }
}

/// Names of operations are tags in the record, where `_` replaces a space.
fn check_names(problems: &mut Problems, plan: &Plan) {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_:- ".contains(c);
    let load = if plan.client.batch > 1 { operation::INSERT_BATCH } else { operation::INSERT };
    let mut tags = vec![(load.to_owned(), load)];
    let names = plan.operations.own.iter().enumerate().flat_map(|(index, operation)| {
        let steps = operation.counted_steps().into_iter().map(move |(name, _)| (index, name, true));
        std::iter::once((index, operation.name.clone(), false)).chain(steps)
    });
    let names: Vec<(usize, String, bool)> = names.collect();
    for (index, name, is_step) in &names {
        let key = format!("operations[{index}].name");
        problems.require(&key, name.chars().all(is_allowed), || {
            format!(
                "is `{name}`, but must have only letters of ASCII, digits, `_`, `:`, `-` and spaces"
            )
        });
        let tag = name.replace(' ', "_");
        let other =
            tags.iter().find(|(known, other)| *known == tag && (*is_step || *other != name));
        problems.require(&key, other.is_none(), || {
            let other = other.map_or("", |(_, name)| name);
            format!("is `{name}`, which files cannot distinguish from `{other}`")
        });
        tags.push((tag, name));
    }
}

/// Keys of YCSB's documents and operations must have their defaults.
fn check_other_keys(problems: &mut Problems, plan: &Plan) {
    let (data, access) = (changed(&plan.data), changed(&plan.access));
    let data = data.into_iter().filter(|key| !OWN_DATA.contains(&key.as_str()));
    let keys = data.map(|key| format!("data.{key}"));
    for key in keys.chain(access.into_iter().map(|key| format!("access.{key}"))) {
        let hint = "remove it; each of `[[data.collections]]` has its own `records` and `indexes`";
        problems.require_or(&key, false, hint, "does not apply to own collections and operations");
    }
}

/// Names of the keys that differ from their defaults.
fn changed<T: serde::Serialize + Default>(table: &T) -> Vec<String> {
    let written = |table: &T| serde_json::to_value(table).unwrap_or_default();
    let (table, default) = (written(table), written(&T::default()));
    let keys = table.as_object().into_iter().flatten();
    let differs = |(key, value): &(&String, &Value)| default.get(key.as_str()) != Some(*value);
    keys.filter(differs).map(|(key, _)| key.clone()).collect()
}

fn check_keys(problems: &mut Problems, keys: &KeyDistribution) {
    let has_law =
        !matches!(keys, KeyDistribution::ScrambledZipfian {} | KeyDistribution::Exponential { .. });
    let hint =
        "use `uniform`, `zipfian`, `latest`, `hotspot` or `sequential`, or a `law` in `%from`";
    problems.require_or(
        "keys.distribution",
        has_law,
        hint,
        "is a distribution of YCSB that does not apply to own collections",
    );
}

/// Refuses parts of the language that cannot be performed yet.
fn check_unsupported(problems: &mut Problems, plan: &Plan) {
    for (index, operation) in plan.operations.own.iter().enumerate() {
        for part in unsupported_in_operation(operation) {
            refuse(problems, &format!("operations[{index}].{part}"), NOT_YET);
        }
    }
    for (index, collection) in plan.data.collections.iter().enumerate() {
        for part in unsupported_in_collection(collection) {
            refuse(problems, &format!("data.collections[{index}].{part}"), NOT_YET);
        }
    }
    if plan.fleet.is_some() {
        refuse(problems, "data.collections", "cannot be performed by a fleet yet");
    }
    if plan.server.is_sharded() {
        let reason = "is a sharded cluster: own operations cannot be performed on it yet";
        refuse(problems, "server.topology", reason);
    }
}

const NOT_YET: &str = "cannot be performed yet";

fn refuse(problems: &mut Problems, key: &str, reason: &str) {
    problems.require_or(key, false, "see docs/limits.md", reason);
}

fn unsupported_in_operation(operation: &Operation) -> Vec<&'static str> {
    let steps = operation.all_steps();
    let is_bulk = |step: &Step| {
        CommandNames::read(&step.command).is_some_and(|names| names.command == "bulkWrite")
    };
    let all = [("rate", operation.rate.is_some()), ("command", steps.iter().any(is_bulk))];
    all.into_iter().filter(|(_, is_used)| *is_used).map(|(part, _)| part).collect()
}

fn unsupported_in_collection(collection: &Collection) -> Vec<&'static str> {
    let all = [
        ("instances", collection.instances > 1),
        ("documents_file", collection.documents_file.is_some()),
    ];
    all.into_iter().filter(|(_, is_used)| *is_used).map(|(part, _)| part).collect()
}

fn check_batch(problems: &mut Problems, plan: &Plan, largest: &[u64]) {
    let batch = plan.client.batch;
    for (collection, bytes) in plan.data.collections.iter().zip(largest) {
        let batch_bytes = bytes.saturating_mul(u64::from(batch));
        let (name, fits) = (&collection.name, batch_bytes <= BATCH_BYTES);
        problems.require_or("client.batch", fits, "reduce `client.batch`", || {
            format!("= `{batch}` documents of `{name}` have up to {batch_bytes} bytes, but a command takes at most {BATCH_BYTES}")
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::file::{parse, to_toml};

    const SHOP: &str = r#"
name = "shop"

[[data.collections]]
name = "orders"
records = 1000
indexes = ['{customer: 1, placed: -1}']
document = '''{ _id: "%number",
  customer: {%int: [1, 100]}, placed: {%date: ["2026-01-01", "2026-11-01"]} }'''

[[operations]]
name = "orders of a customer"
weight = 80
command = '''{find: "orders", filter: {customer: {%from: "orders.customer"}}, limit: 20}'''
expect = "1..20"
"#;

    fn refused(old: &str, new: &str) -> String {
        assert!(SHOP.contains(old), "{old}");
        parse(&SHOP.replacen(old, new, 1), "t").expect_err(new).to_string()
    }

    #[test]
    fn own_workload_is_valid_and_survives_its_printed_form() {
        let plan = parse(SHOP, "t").expect("it is valid");
        assert!(plan.is_own());
        let printed = to_toml(&plan);
        assert!(!printed.contains("field_count") && !printed.contains("[access]"), "{printed}");
        assert_eq!(parse(&printed, "t").expect("it is its own plan"), plan);
    }

    #[test]
    fn keys_of_ycsb_are_refused() {
        let text = refused(
            "name = \"shop\"",
            "[access]\nupsert = true\n[data]\nrecords = 5\nfield_count = 3",
        );
        for key in ["`data.records`", "`data.field_count`", "`access.upsert`"] {
            assert!(text.contains(key), "{text}");
        }
        let text = refused("name = \"shop\"", "keys.distribution = \"scrambled-zipfian\"");
        assert!(text.contains("`keys.distribution`"), "{text}");
    }

    #[test]
    fn operation_has_a_name_that_files_can_hold() {
        let name = "name = \"orders of a customer\"";
        for wrong in ["name = \"größe\"", "name = \"a/b\"", "name = \"insert batch\""] {
            assert!(refused(name, wrong).contains("`operations[0].name`"), "{wrong}");
        }
        assert!(parse(&SHOP.replace(name, "name = \"insert_batch\""), "t").is_ok());
    }

    #[test]
    fn operation_has_another_name_than_a_step() {
        let steps = "steps = ['{ping: 1}', '{ping: 2}']\nlet.a = ";
        let text = SHOP.replacen("command = ", steps, 1);
        assert!(parse(&text, "t").is_ok());
        let other = "\n[[operations]]\nname = \"orders of_a customer:2\"\nweight = 1\ncommand = '{ping: 1}'";
        let refused = parse(&(text + other), "t").expect_err("it has the tag of a step");
        assert!(refused.to_string().contains("`operations[1].name`"), "{refused}");
    }

    #[test]
    fn each_kind_needs_the_other() {
        let weights = "[operations]\nread = 1\n[[data.collections]]\nname = 'a'\nrecords = 1\ndocument = '{a: 1}'";
        assert!(
            parse(weights, "t").expect_err("it mixes kinds").to_string().contains("`operations`")
        );
        let no_data = "[[operations]]\nname = 'a'\nweight = 1\ncommand = '{ping: 1}'";
        let text = parse(no_data, "t").expect_err("it has no collections").to_string();
        assert!(text.contains("`data.collections`"), "{text}");
    }

    #[test]
    fn parts_that_cannot_be_performed_are_refused() {
        let cases = [
            ("weight = 80", "rate = \"80/s\"", "operations[0].rate"),
            ("records = 1000", "records = 1000\ninstances = 2", "data.collections[0].instances"),
            ("expect = \"1..20\"", "[fleet]\nclients = ['a']", "data.collections"),
        ];
        for (old, new, key) in cases {
            let text = refused(old, new);
            assert!(
                text.contains(&format!("`{key}`")) && text.contains("cannot be performed"),
                "{text}"
            );
        }
    }

    #[test]
    fn mistake_in_a_template_has_its_place_in_the_file() {
        let text = refused("{%int: [1, 100]}", "{%nit: [1, 100]}");
        assert!(text.contains("line 9, column 14"), "{text}");
    }

    #[test]
    fn batch_must_fit_into_a_message() {
        let text = refused("{%int: [1, 100]}", "{%string: 1000000}");
        assert!(text.contains("`client.batch`"), "{text}");
    }
}
