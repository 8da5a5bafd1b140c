//! Workloads of the user's own: documents of any shape, commands of any kind, checks.

use crate::common::{Bench, Responder};
use dyno_testkit::{mongod, mongod_program, or_skip};
use serde_json::Value;

/// Two collections, and an operation of each kind.
const SHOP: &str = r#"
name = "shop"
[data]
database = "shop"

[[data.collections]]
name = "stock"
records = 40
document = '''{ _id: "%number", left: 1000 }'''

[[data.collections]]
name = "orders"
records = 300
indexes = ['{customer: 1, placed: -1}', { keys = '{status: 1}', build = "after" }]
document = '''{ _id: "%number",
  customer: {%int: [1, 20]}, sku: {%from: "stock._id"},
  status: {%choose: {open: 5, paid: 15, shipped: 80}},
  placed: {%date: ["2026-01-01", "2026-11-01"]},
  items: {%array: [1, 8], of: {sku: {%string: 12}, qty: {%int: [1, 5]}}} }'''

[[operations]]
name = "orders of a customer"
weight = 40
command = '''{find: "orders", filter: {customer: {%from: "orders.customer"}}, sort: {placed: -1}, batchSize: 2}'''
expect = "1.."

[[operations]]
name = "new order"
weight = 20
command = '''{insert: "orders", documents: ["%new orders"]}'''
expect = 1

[[operations]]
name = "ship"
weight = 20
command = '''{findAndModify: "orders", query: {_id: {%from: "orders._id"}}, update: {$set: {status: "shipped"}}}'''
expect = 1

[[operations]]
name = "take"
weight = 20
command = '''{update: "stock", updates: [{q: {_id: {%from: "orders.sku"}}, u: {$inc: {left: -1}}}]}'''
expect = 1

[[operations]]
name = "status"
weight = 20
command = '''{aggregate: "orders", cursor: {}, pipeline: [{$group: {_id: "$status", n: {$sum: 1}}}]}'''
expect = "1..3"

[[checks]]
name = "orders of unknown goods"
collection = "orders"
aggregate = '''[{$lookup: {from: "stock", localField: "sku", foreignField: "_id", as: "found"}},
  {$match: {found: []}}, {$limit: 1}]'''
expect = 0
"#;

const OPERATIONS: [&str; 5] = ["orders of a customer", "new order", "ship", "take", "status"];

/// A bench with a plan file.
fn bench(plan: &str) -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.path("plan.toml"), plan).unwrap();
    bench
}

fn measure(document: &Value) -> &Value {
    let phases = document["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == "measure").unwrap()
}

const SHORT: [&str; 12] = [
    "run",
    "plan.toml",
    "--clients",
    "4",
    "--warmup",
    "0s",
    "--operations",
    "300",
    "--format",
    "json",
    "--out",
    "r",
];

#[test]
fn own_workload_runs_on_a_mongod_by_both_backends() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    for backend in ["wire", "driver"] {
        let bench = bench(SHOP);
        let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
        let arguments = [&SHORT[..], &server, &["--backend", backend]].concat();
        let document = bench.dyno(&arguments).expect(0).json();
        let measure = measure(&document);
        assert_eq!(measure["errors"], serde_json::json!({}), "{backend}");
        for name in OPERATIONS {
            let operation = &measure["operations"][name];
            let count = operation["count"].as_u64().unwrap();
            assert!(count > 0, "{backend} {name}");
            let documents = operation["documents"].as_u64().unwrap();
            assert!(documents >= count, "{backend} {name}: {documents} documents of {count}");
        }
        let indexes = document["secondary_indexes"]["each"].as_array().unwrap();
        let before: Vec<&Value> = indexes.iter().map(|index| &index["before_load"]).collect();
        assert_eq!(before, [&Value::Bool(true), &Value::Bool(false)]);
        let checks = document["checks"].as_array().unwrap();
        assert_eq!(checks.len(), 2, "after the load and after the measurement");
        assert!(checks.iter().all(|check| check["passed"] == true));
        assert_eq!(document["server"]["documents"], 340);
    }
}

/// SHOP with an operation that buys what a customer has ordered before.
fn with_checkout(transaction: bool) -> String {
    let checkout = format!(
        r#"
[[operations]]
name = "checkout"
weight = 40
transaction = {transaction}
let = {{ order = '{{%from: "orders._id"}}' }}
steps = [
  '{{find: "orders", filter: {{_id: "%order"}}, limit: 1}}',
  {{ command = '{{update: "stock", updates: [{{q: {{_id: {{%reply: "0.cursor.firstBatch.0.sku"}}}}, u: {{$inc: {{left: -1}}}}}}]}}', when = {{ count = '{{%length: {{%reply: "0.cursor.firstBatch"}}}}', is = "1" }} }},
  '{{insert: "orders", documents: ["%new orders"]}}',
]
expect = 3

[[checks]]"#
    );
    SHOP.replacen("[[checks]]", &checkout, 1)
}

#[test]
fn steps_run_on_a_mongod_by_both_backends() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    for (transaction, topology) in [(false, "standalone"), (true, "replica-set=3")] {
        for backend in ["wire", "driver"] {
            let bench = bench(&with_checkout(transaction));
            let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
            let more = ["--topology", topology, "--backend", backend];
            let document = bench.dyno(&[&SHORT[..], &server, &more].concat()).expect(0).json();
            let measure = measure(&document);
            let context = format!("{backend} {topology}");
            assert_eq!(measure["errors"], serde_json::json!({}), "{context}");
            let count = |name: &str| measure["operations"][name]["count"].as_u64().unwrap();
            let whole = count("checkout");
            assert!(whole > 0, "{context}");
            for step in 1..=3 {
                assert!(count(&format!("checkout:{step}")) >= whole, "{context} {step}");
            }
            assert_eq!(measure["own"]["reply_operations"], whole, "{context}");
        }
    }
}

#[test]
fn transaction_needs_a_replica_set() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let bench = bench(&with_checkout(true));
    let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    bench.dyno(&[&SHORT[..], &server].concat()).expect(3).says("`--topology replica-set=1`");
}

#[test]
fn built_in_own_workloads_run_on_a_mongod() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    for (name, records) in [("shop", "2_000_000"), ("crud-mix", "500_000")] {
        let plan = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        assert!(plan.contains(records), "{name}");
        let bench = bench(&plan.replace(records, "500"));
        let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
        let document = bench.dyno(&[&SHORT[..], &server].concat()).expect(0).json();
        assert_eq!(document["name"], name);
        assert_eq!(measure(&document)["errors"], serde_json::json!({}), "{name}");
    }
}

#[test]
fn violated_check_is_a_caveat_and_an_exit_status() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let bench = bench(&SHOP.replace("{found: []}", "{left: {$exists: false}}"));
    let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    let document = bench.dyno(&[&SHORT[..], &server].concat()).expect(1).json();
    let caveats = document["caveats"].as_array().unwrap();
    let codes: Vec<&Value> = caveats.iter().map(|caveat| &caveat["code"]).collect();
    assert!(codes.contains(&&Value::from("check-violated")), "{codes:?}");
}

#[test]
fn check_counts_all_batches_of_its_result() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let check =
        "\n[[checks]]\nname = \"all\"\ncollection = \"orders\"\naggregate = '[]'\nexpect = ";
    for (expect, status) in [(2500, 0), (2499, 1)] {
        let plan = READS.replace("records = 100", "records = 2500") + check + &expect.to_string();
        let bench = bench(&plan);
        let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
        let document = bench.dyno(&[&SHORT[..], &server].concat()).expect(status).json();
        assert_eq!(document["checks"][0]["documents"], 2500);
        let report = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
        assert!(report["answer"].is_string(), "{report}");
    }
}

#[test]
fn load_goes_on_only_if_every_document_has_a_key_of_the_plan() {
    for (document, status) in [("{ order_id: \"%number\" }", 3), ("{ _id: \"%number\" }", 0)] {
        let Some(server) = or_skip(mongod()) else { return };
        let uri = server.uri();
        let plan = |records: u32| {
            let plan = READS.replace("records = 100", &format!("records = {records}"));
            let plan = plan.replace("{ _id: \"%number\", customer: {%int: [1, 20]} }", document);
            plan.replace("filter: {customer: {%from: \"orders.customer\"}}, ", "")
        };
        let first = bench(&plan(100));
        let arguments = [&SHORT[..], &["--uri", &uri]].concat();
        first.dyno(&arguments).expect(0);
        let second = bench(&plan(200));
        second.dyno(&arguments).expect(status);
    }
}

/// The responder returns one document for each find.
const READS: &str = r#"
name = "reads"

[[data.collections]]
name = "orders"
records = 100
document = '''{ _id: "%number", customer: {%int: [1, 20]} }'''

[[operations]]
name = "one"
weight = 1
command = '''{find: "orders", filter: {customer: {%from: "orders.customer"}}, limit: 1}'''
expect = 1
"#;

#[test]
fn unexpected_documents_are_counted_exactly() {
    for (expect, violations) in [("expect = 1", 0), ("expect = \"2..3\"", 300)] {
        let responder = Responder::start(&[]);
        let bench = bench(&READS.replace("expect = 1", expect));
        let uri = responder.uri();
        let arguments = [&SHORT[..], &["--uri", &uri]].concat();
        let document = bench.dyno(&arguments).expect(i32::from(violations > 0)).json();
        let errors = &measure(&document)["errors"];
        assert_eq!(errors["expect"].as_u64().unwrap_or(0), violations);
    }
}

#[test]
fn operations_that_find_nothing_are_a_caveat_with_their_count() {
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let nowhere = READS.replace("{%from: \"orders.customer\"}", "-1").replace("expect = 1", "");
    let bench = bench(&nowhere);
    let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    let document = bench.dyno(&[&SHORT[..], &server].concat()).expect(0).json();
    let caveats = document["caveats"].as_array().unwrap();
    let empty = caveats.iter().find(|caveat| caveat["code"] == "nothing-found").unwrap();
    assert_eq!(empty["values"]["count"]["value"].as_f64(), Some(300.0), "{empty}");
}

#[test]
fn dry_run_shows_documents_and_commands() {
    let bench = bench(READS);
    let dry = ["run", "plan.toml", "--dry-run", "--show", "2", "--uri", "mongodb://127.0.0.1:1"];
    let shown = bench.dyno(&dry);
    assert!(shown.stdout.contains("# collection `orders`"), "{}", shown.stdout);
    assert!(shown.stdout.contains("{ _id: Long('1'), customer: "), "{}", shown.stdout);
    assert!(shown.stdout.contains("{ find: 'orders', filter: { customer: "), "{}", shown.stdout);
    let ycsb = ["run", "a", "--dry-run", "--show", "2", "--uri", "mongodb://127.0.0.1:1"];
    bench.dyno(&ycsb).expect(2).says("own collections");
}
