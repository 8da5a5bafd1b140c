use super::*;
use crate::problem::ProblemKind as Kind;

fn workload(text: &str) -> Workload {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The first key, line and column of each problem.
fn problems(text: &str) -> Vec<(String, Option<(usize, usize)>)> {
    let place = |problem: &Problem| problem.line.zip(problem.column);
    check(&workload(text)).iter().map(|problem| (problem.keys[0].clone(), place(problem))).collect()
}

#[track_caller]
fn refused(text: &str, key: &str, place: Option<(usize, usize)>) -> Problem {
    assert_eq!(problems(text), [(key.to_owned(), place)], "{:?}\n{text}", check(&workload(text)));
    check(&workload(text)).remove(0)
}

const SHOP: &str = r#"
[[data.collections]]
name = "orders"
records = 2_000_000
indexes = ['{customer: 1, placed: -1}']
let = { region = '{%int: [1, 10]}' }
document = '''{ _id: "%number",
  customer: {%int: [1, 100000], law: {zipf: 0.99}},
  region: "%region",
  notes: {%maybe: 0.2, of: {text: {%string: [0, 80]}}},
  items: {%array: [1, 8], of: {sku: {%from: "stock._id"}, qty: {%int: [1, 5]}}} }'''

[[data.collections]]
name = "stock"
records = 1000
options = '{collation: {locale: "en"}}'
document = '{_id: {%concat: ["sku", "%number"]}, left: 100, places: [{shelf: 1}]}'

[[operations]]
name = "orders of a customer"
weight = 80
command = '''{find: "orders", filter: {customer: {%from: "orders.customer"}, "items.sku": {%from: "orders.items.sku"},
  note: {%from: "orders.notes.text"}, second: {%from: "orders.items.1.qty"}, shelf: {%from: "stock.places.shelf"}}}'''
expect = "1..20"

[[operations]]
name = "checkout"
weight = 5
transaction = true
abort = 0.01
let = { sku = '{%from: "stock._id"}', left = '{%reply: "0.value.left"}' }
steps = [
  '{findAndModify: "stock", query: {_id: "%sku"}, update: {$inc: {left: -1}}}',
  { command = '{insert: "log", documents: [{left: "%left"}]}', when = { count = '{%reply: "0.n"}', is = "1.." } },
  { command = '{insert: "orders", documents: ["%new orders"]}', each = { name = "one", of = '[1, 2]' } },
  { command = '{delete: "stock", deletes: [{q: {_id: "%one"}}]}', each = { name = "one", of = '{%reply: "0.a"}', at_most = 5 } },
]

[[checks]]
name = "stock is not negative"
collection = "stock"
aggregate = '[{$match: {left: {$lt: 0}}}]'
expect = 0

[[checks]]
name = "orders have a total"
collection = "orders"
aggregate = '[{$count: "n"}]'
expect = '[{n: 5}]'
"#;

#[test]
fn example_of_a_shop_has_no_problems() {
    assert_eq!(problems(SHOP), []);
}

/// The shop with one text replaced.
fn shop(from: &str, to: &str) -> String {
    assert!(SHOP.contains(from), "{from}");
    SHOP.replacen(from, to, 1)
}

#[test]
fn mistakes_in_templates_have_key_line_and_column() {
    let problem = refused(
        &shop("law: {zipf: 0.99}", "law: {zip: 0.99}"),
        "data.collections[0].document",
        Some((2, 39)),
    );
    assert_eq!(problem.hint.as_deref(), Some("did you mean `zipf`?"));
    refused(&shop("{$count: \"n\"}]", "{$count: \"n\"]"), "checks[1].aggregate", Some((1, 14)));
}

#[test]
fn unknown_collections_and_paths_get_a_suggestion() {
    let text = shop("{%from: \"orders.customer\"}", "{%from: \"order.customer\"}");
    let problem = refused(&text, "operations[0].command", Some((1, 37)));
    assert_eq!(
        (problem.kind, problem.hint.as_deref()),
        (Kind::Unknown, Some("did you mean `orders`?"))
    );
    let text = shop("{%from: \"orders.items.sku\"}", "{%from: \"orders.items.sk\"}");
    let problem = refused(&text, "operations[0].command", Some((1, 78)));
    assert_eq!(
        (problem.kind, problem.hint.as_deref()),
        (Kind::Unknown, Some("did you mean `orders.items.sku`?"))
    );
    refused(
        &shop("collection = \"stock\"", "collection = \"stocks\""),
        "checks[0].collection",
        None,
    );
    refused(
        &shop("[\"%new orders\"]", "[\"%new order\"]"),
        "operations[1].steps[2].command",
        Some((1, 32)),
    );
    refused(
        &shop("{sku: {%from: \"stock._id\"}", "{sku: {%from: \"stock._id.x\"}"),
        "data.collections[0].document",
        Some((5, 37)),
    );
}

#[test]
fn paths_lead_through_the_elements_of_computed_values() {
    let text = shop("left: 100", "left: {%nth: [[{shelf: 1}, {shelf: 2}], 0]}");
    let path = |name: &str| text.replace("stock.places.shelf", &format!("stock.left.{name}"));
    assert_eq!(problems(&path("shelf")), []);
    refused(&path("box"), "operations[0].command", Some((2, 85)));
}

#[test]
fn variables_and_replies_are_known_before_they_are_used() {
    let problem = refused(
        &shop("_id: \"%sku\"", "_id: \"%skv\""),
        "operations[1].steps[0].command",
        Some((1, 39)),
    );
    assert_eq!(problem.hint.as_deref(), Some("did you mean `%sku`?"));
    let problem = refused(
        &shop("region: \"%region\"", "region: \"%nwo\""),
        "data.collections[0].document",
        Some((3, 11)),
    );
    assert_eq!(problem.hint.as_deref(), Some("did you mean `%now`?"));
    refused(
        &shop("{_id: \"%sku\"}", "{_id: \"%left\"}"),
        "operations[1].steps[0].command",
        Some((1, 39)),
    );
    refused(
        &shop("count = '{%reply: \"0.n\"}'", "count = '{%reply: \"1.n\"}'"),
        "operations[1].steps[1].when.count",
        Some((1, 1)),
    );
    refused(
        &shop("{%reply: \"0.value.left\"}", "{%reply: \"9.value\"}"),
        "operations[1].let.left",
        Some((1, 1)),
    );
    refused(
        &shop("left: 100", "left: {%reply: \"0.n\"}"),
        "data.collections[1].document",
        Some((1, 44)),
    );
    refused(
        &shop("left: 100", "left: \"%new orders\""),
        "data.collections[1].document",
        Some((1, 44)),
    );
    refused(
        &shop("sku = '{%from", "int = '{%from").replace("%sku", "%now"),
        "operations[1].let.int",
        None,
    );
}

#[test]
fn values_that_depend_on_themselves_are_refused() {
    let text = shop("{%from: \"stock._id\"}'", "[\"%other\"]', other = '{%add: [1, \"%sku\"]}'");
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.starts_with("operations[1].let."), "{found:?}");
    let text = shop("{%int: [1, 10]}", "[\"%region\"]");
    refused(&text, "data.collections[0].let.region", None);
    let text = shop("left: 100", "left: {%from: \"orders.items.sku\"}");
    assert_eq!(problems(&text), []);
    let text = shop("{%concat: [\"sku\", \"%number\"]}", "{%from: \"orders.items\"}");
    let found = problems(&text);
    assert_eq!(found[0].0, "data.collections[0].document", "{found:?}");
    let grows =
        "[[data.collections]]\nname = \"a\"\nrecords = 1\ndocument = '{x: {%from: \"a.x.y\"}}'";
    assert_eq!(problems(grows).len(), 2, "{:?}", problems(grows));
}

#[test]
fn weights_and_rates_are_checked() {
    let text = shop("weight = 80", "weight = 0").replace("weight = 5", "weight = 0");
    refused(&text, "operations[0].weight", None);
    refused(&shop("weight = 80", "weight = -1"), "operations[0].weight", None);
    refused(&shop("weight = 80", "weight = 80\nrate = 5"), "operations[0].weight", None);
    assert_eq!(refused(&shop("weight = 80", ""), "operations[0].weight", None).kind, Kind::Missing);
    assert_eq!(problems(&shop("weight = 80", "rate = \"5/s\"")), []);
}

#[test]
fn names_are_unique_and_present() {
    refused(
        &shop("name = \"checkout\"", "name = \"orders of a customer\""),
        "operations[1].name",
        None,
    );
    refused(&shop("name = \"orders have a total\"", "name = \"\""), "checks[1].name", None);
    let found = problems(&shop("name = \"stock\"", "name = \"sto.ck\""));
    assert!(found.contains(&("data.collections[1].name".into(), None)), "{found:?}");
}

#[test]
fn operations_have_commands_and_limits() {
    refused(&shop("expect = \"1..20\"", "expect = \"1-20\""), "operations[0].expect", None);
    refused(&shop("is = \"1..\"", "is = \"more\""), "operations[1].steps[1].when.is", None);
    refused(&shop("transaction = true", ""), "operations[1].abort", None);
    refused(&shop("abort = 0.01", "abort = 2.0"), "operations[1].abort", None);
    refused(&shop(", at_most = 5", ""), "operations[1].steps[3].each.at_most", None);
    refused(&shop("at_most = 5", "at_most = 0"), "operations[1].steps[3].each.at_most", None);
    refused(
        &shop("of = '[1, 2]'", "of = '{%array: 200000, of: 1}'"),
        "operations[1].steps[2].each.of",
        None,
    );
    refused(
        &shop("name = \"one\", of = '[1", "name = \"sku\", of = '[1"),
        "operations[1].steps[2].each.name",
        None,
    );
    refused(
        &shop("expect = \"1..20\"", "when = { count = '1', is = '1' }\nsteps = ['{ping: 1}']"),
        "operations[0].steps",
        None,
    );
    refused(
        &shop("abort = 0.01", "write_concern = '[1]'"),
        "operations[1].write_concern",
        Some((1, 1)),
    );
    let text = "[[operations]]\nname = \"a\"\nweight = 1\ncommand = '[1]'";
    refused(text, "operations[0].command", Some((1, 1)));
    refused(
        "[[operations]]\nname = \"a\"\nweight = 1\ncommand = '{}'",
        "operations[0].command",
        None,
    );
    refused("[[operations]]\nname = \"a\"\nweight = 1", "operations[0].command", None);
}

fn collection(rest: &str) -> String {
    format!("[[data.collections]]\nname = \"a\"\n{rest}")
}

#[test]
fn documents_cannot_exceed_the_servers_limit() {
    let document = |length: u32| {
        collection(&format!("records = 1\ndocument = '{{_id: 1, a: {{%binary: {length}}}}}'"))
    };
    // 16 MiB less the document (5), `_id` (5 + 4), `a` (3), the length and subtype (5) and the `_id` of the bound (17).
    assert_eq!(problems(&document((16 << 20) - 39)), []);
    refused(&document((16 << 20) - 38), "data.collections[0].document", None);
    let nested = "{%array: 5000, of: {%array: 5000, of: '%number'}}";
    refused(
        &collection(&format!("records = 1\ndocument = '''{{a: {nested}}}'''")),
        "data.collections[0].document",
        None,
    );
    // As text, a double can have 327 characters.
    let doubles = "{%array: 60000, of: {%concat: [\"a\", {%double: [0, 1]}]}}";
    refused(
        &collection(&format!("records = 1\ndocument = '''{{a: {doubles}}}'''")),
        "data.collections[0].document",
        None,
    );
    // Each level doubles the size, and is computed once.
    let mut text = collection("records = 1\ndocument = '{a: {%string: 10}}'");
    for level in 1..40 {
        let before = if level == 1 { "a".to_owned() } else { format!("c{}", level - 1) };
        text.push_str(&format!(
            "\n[[data.collections]]\nname = \"c{level}\"\nrecords = 1\n\
             document = '{{a: [{{%from: \"{before}.a\"}}, {{%from: \"{before}.a\"}}]}}'"
        ));
    }
    assert_eq!(
        problems(&text).first().map(|(key, _)| key.as_str()),
        Some("data.collections[20].document")
    );
}

#[test]
fn messages_cannot_exceed_the_servers_limit() {
    let text = shop("[\"%new orders\"]", "{%array: 80000, of: \"%new orders\"}");
    refused(&text, "operations[1].steps[2].command", None);
}

#[test]
fn documents_come_from_a_template_or_a_file() {
    refused(&collection("records = 5"), "data.collections[0].document", None);
    refused(&collection("document = '{}'"), "data.collections[0].records", None);
    refused(
        &collection("document = '{}'\ndocuments_file = \"a.jsonl\""),
        "data.collections[0].documents_file",
        None,
    );
    refused(
        &collection("documents_file = \"../a.jsonl\""),
        "data.collections[0].documents_file",
        None,
    );
    refused(
        &collection("documents_file = \"/etc/passwd\""),
        "data.collections[0].documents_file",
        None,
    );
    refused(
        &collection("records = 1\ninstances = 0\ndocument = '{}'"),
        "data.collections[0].instances",
        None,
    );
    refused(
        &collection("records = 1\ndocument = '{}'\nindexes = ['{a: \"%now\"}']"),
        "data.collections[0].indexes[0].keys",
        Some((1, 1)),
    );
    assert_eq!(problems(&collection("documents_file = \"a.jsonl\"")), []);
    assert_eq!(problems(&collection("records = 0")), []);
}

#[test]
fn templates_read_only_files_of_the_plans_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("plan");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("words.txt"), "red\ngreen\n").unwrap();
    std::fs::write(parent.path().join("secret.txt"), "secret\n").unwrap();
    let with_file = |file: &str| {
        let text =
            collection(&format!("records = 1\ndocument = '{{a: {{%words: 1, of: \"{file}\"}}}}'"));
        check(&Workload { folder: Some(folder.clone()), ..workload(&text) })
    };
    assert_eq!(with_file("words.txt"), []);
    for file in ["../secret.txt", "/etc/passwd", "absent.txt"] {
        let problems = with_file(file);
        assert_eq!(
            (problems.len(), problems[0].line, problems[0].column),
            (1, Some(1), Some(21)),
            "{problems:?}"
        );
        assert!(!problems[0].message.contains("secret\n"));
    }
}
