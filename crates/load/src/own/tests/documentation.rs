//! `docs/workload-language.md` has values of each example of a generator or law. `UPDATE_SCHEMA=1` rewrites them.

use super::show;
use dyno_plan::workload::template::{GENERATORS, LAWS};
use std::path::Path;

/// Generators whose values depend on the time or on replies.
const WITHOUT_OUTPUT: [&str; 3] = ["now", "maybe", "reply"];
const GENERATOR_VALUES: u32 = 3;
const LAW_VALUES: u32 = 10;

/// The first values of a template.
fn values(template: &str, count: u32) -> Vec<String> {
    let plan = format!(
        r#"
        name = "examples"
        [[data.collections]]
        name = "orders"
        records = 1000
        document = '''{{ _id: "%number", customer: {{%int: [1, 100]}} }}'''
        [[operations]]
        name = "example"
        weight = 1
        command = '''{{value: {template}}}'''
        "#
    );
    let plan = dyno_plan::file::parse(&plan, "t").unwrap_or_else(|error| panic!("{error}"));
    let (_, operations) = show(&plan, count).unwrap();
    let value = |(text, _): &(String, usize)| {
        let value = text.strip_prefix("{ value: ").and_then(|text| text.strip_suffix(" }"));
        value.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    operations[0].examples.iter().map(value).collect()
}

#[test]
fn documentation_has_the_values_of_examples() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workload-language.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let generators =
        GENERATORS.iter().filter(|one| !WITHOUT_OUTPUT.contains(&one.name)).map(|one| {
            let values = values(one.example, GENERATOR_VALUES).join("\n");
            (format!("%{}", one.name), format!("The first values:\n\n```js\n{values}\n```\n"))
        });
    let laws = LAWS.iter().map(|law| {
        let template = format!("{{%int: [1, 100], law: {}}}", law.example);
        let values = values(&template, LAW_VALUES).join(", ");
        (law.name.to_owned(), format!("The first values of `{template}`: {values}.\n"))
    });
    let mut expected = found.clone();
    for (name, output) in generators.chain(laws) {
        let begin = format!("<!-- output of {name} -->\n");
        let (before, rest) = expected.split_once(&begin).unwrap_or_else(|| panic!("{name}"));
        let (_, after) = rest.split_once("<!-- end of output -->\n").expect("it has an end");
        expected = format!("{before}{begin}{output}<!-- end of output -->\n{after}");
    }
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    assert!(
        found == expected,
        "docs/workload-language.md is out of date: run with `UPDATE_SCHEMA=1`"
    );
}
