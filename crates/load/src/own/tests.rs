mod documentation;

use super::compile::{access_of, fields_of};
use super::*;
use crate::generator::{Generator, Operation};
use crate::operation::{Access, OperationError, Outcome};
use crate::workload::{LoadTask, Workload};
use dyno_wire::command::{Acknowledgement, WriteConcern};
use dyno_wire::frame;

const SHOP: &str = r#"
name = "shop"
[data]
database = "shop"
[client]
batch = 4

[[data.collections]]
name = "orders"
records = 10
document = '''{ _id: "%number", customer: {%int: [1, 5]} }'''

[[data.collections]]
name = "stock"
records = 5
document = '''{ _id: {%concat: ["s", "%number"]}, left: 100 }'''

[[operations]]
name = "of a customer"
weight = 3
command = '''{find: "orders", filter: {customer: {%from: "orders.customer"}}}'''
expect = "1.."

[[operations]]
name = "order"
weight = 1
command = '''{insert: "orders", documents: ["%new orders"]}'''
"#;

fn plan() -> Plan {
    dyno_plan::file::parse(SHOP, "t").unwrap()
}

fn body(message: &[u8]) -> Document {
    let frame = frame::parse(message).unwrap().unwrap();
    Document::from_reader(frame.message().unwrap().document).unwrap()
}

fn encoded(workload: &Workload, operation: &Operation) -> Document {
    let (own, command) = (workload.own.as_ref().unwrap(), operation.command.as_ref().unwrap());
    let mut out = Vec::new();
    own.encode(operation.action, command, 1, None, &mut out);
    body(&out)
}

#[test]
fn batches_do_not_cross_collections() {
    let batches = Batches::new([10, 0, 5].into_iter(), 4);
    let found: Vec<_> = (0..batches.len())
        .map(|number| batches.get(number))
        .map(|Batch { collection, first, count }| (collection, first, count))
        .collect();
    assert_eq!(found, [(0, 0, 4), (0, 4, 4), (0, 8, 2), (2, 0, 4), (2, 4, 1)]);
    assert_eq!(batches.get(5).count, 0);
}

#[test]
fn load_inserts_every_document_once() {
    let task = LoadTask { first: 0, count: 15, batch: 4, keep_existing: false };
    let workload = Arc::new(Workload::load(&plan(), task, &Concerns::default()).unwrap());
    assert_eq!(workload.load_operations(), Some(5));
    let mut generator = Generator::new(Arc::clone(&workload));
    let mut ids = Vec::new();
    for number in 0..5 {
        let mut operation = generator.next(number);
        let command = operation.command.as_ref().unwrap();
        let mut rest = command.bytes();
        let collection = workload.own.as_ref().unwrap().collection_of(command).to_owned();
        while !rest.is_empty() {
            let document = Document::from_reader(&mut rest).unwrap();
            ids.push(format!("{collection} {}", document.get("_id").unwrap()));
        }
        assert_eq!(encoded(&workload, &operation).get_str("$db").unwrap(), "shop");
        generator.finished(&mut operation);
    }
    assert_eq!(ids.len(), 15);
    assert_eq!((ids[0].as_str(), ids[14].as_str()), ("orders 0", "stock \"s4\""));
}

#[test]
fn command_asks_for_a_value_that_exists() {
    let workload = Arc::new(Workload::mix(&plan(), &Concerns::default()).unwrap());
    let mut generator = Generator::new(Arc::clone(&workload));
    let (documents, _) = show(&plan(), 10).unwrap();
    let customers: Vec<&String> = documents[0].examples.iter().map(|(text, _)| text).collect();
    let mut found = [0; 2];
    for number in 0..200 {
        let mut operation = generator.next(number);
        let command = encoded(&workload, &operation);
        assert_eq!(command.get_str("$db").unwrap(), "shop");
        match command.get_document("filter") {
            Ok(filter) => {
                let asked = format!("customer: {} }}", filter.get("customer").unwrap());
                assert!(customers.iter().any(|text| text.ends_with(&asked)), "{command}");
                found[0] += 1;
            }
            Err(_) => {
                let inserted = command.get_array("documents").unwrap();
                let id = inserted[0].as_document().unwrap().get_i64("_id").unwrap();
                assert_eq!(id, 10 + found[1], "new documents follow each other");
                found[1] += 1;
            }
        }
        generator.finished(&mut operation);
    }
    assert!(found[0] > found[1] && found[1] > 20, "{found:?}");
    let own = workload.own.as_ref().unwrap();
    assert_eq!(own.documents.existing(0), 10 + found[1] as u64);
}

#[test]
fn unexpected_number_of_documents_is_a_failure() {
    let own = Own::new(&plan(), &Concerns::default()).unwrap();
    let operations = &own.operations;
    assert_eq!(operations[0].as_expected(0), Err(OperationError::Expect));
    assert_eq!(operations[0].as_expected(7), Ok(7));
    assert_eq!(operations[1].as_expected(0), Ok(0));
    let text = operations[0].unexpected(&own.new_command());
    assert!(text.starts_with('0') && text.ends_with("1.."), "{text}");
}

/// A plan with a single operation of these steps.
fn steps(operation: &str) -> Arc<Workload> {
    let (data, _) = SHOP.split_once("[[operations]]").unwrap();
    let text = format!("{data}[[operations]]\nname = \"checkout\"\nweight = 1\n{operation}");
    let plan = dyno_plan::file::parse(&text, "t").unwrap_or_else(|error| panic!("{error}"));
    Arc::new(Workload::mix(&plan, &Concerns::default()).unwrap())
}

fn ending(outcome: Outcome) -> Ending {
    Ending { outcome, labels: TransactionLabels::default(), may_repeat: true, is_connected: true }
}

/// Performs operation 0: its commands, and its outcome. Each command gets the next one of the replies.
fn perform(workload: &Arc<Workload>, replies: &[(u32, Document)]) -> (Vec<Document>, Outcome) {
    let mut generator = Generator::new(Arc::clone(workload));
    let mut operation = generator.next(0);
    let (mut commands, mut replies) = (Vec::new(), replies.iter());
    while operation.over.is_none() {
        commands.push(encoded(workload, &operation));
        let (documents, reply) = replies.next().expect("every command has a reply");
        generator.keep_reply(&mut operation, &reply.to_vec().unwrap());
        generator.after(&mut operation, ending(Ok(*documents)));
    }
    let outcome = operation.over.unwrap();
    generator.finished(&mut operation);
    (commands, outcome)
}

fn names(commands: &[Document]) -> Vec<&str> {
    commands.iter().map(|command| command.keys().next().unwrap().as_str()).collect()
}

#[test]
fn steps_share_values_and_sum_their_documents() {
    let workload = steps(
        r#"let = { sku = '{%from: "stock._id"}' }
        expect = 3
        steps = [
          '{update: "stock", updates: [{q: {_id: "%sku"}, u: {$inc: {left: -1}}}]}',
          '{find: "stock", filter: {_id: "%sku"}}',
        ]"#,
    );
    let (commands, outcome) = perform(&workload, &[(1, Document::new()), (2, Document::new())]);
    assert_eq!(names(&commands), ["update", "find"]);
    assert_eq!(outcome, Ok(3));
    let update = commands[0].get_array("updates").unwrap()[0].as_document().unwrap();
    let sku = update.get_document("q").unwrap().get_str("_id").unwrap();
    assert_eq!(commands[1].get_document("filter").unwrap().get_str("_id").unwrap(), sku);
    let (_, outcome) = perform(&workload, &[(1, Document::new()), (1, Document::new())]);
    assert_eq!(outcome, Err(OperationError::Expect));
}

#[test]
fn step_counts_under_its_own_name() {
    let workload = steps("steps = ['{ping: 1}', '{find: \"stock\"}']");
    let names: Vec<_> = workload.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["checkout", "checkout:1", "checkout:2", "insert_batch"]);
    let operation = Generator::new(Arc::clone(&workload)).next(0);
    assert_eq!(operation.step(), workload.operations.id("checkout:1"));
    assert_eq!(workload.counted().len(), 3);
    let single = steps("steps = ['{ping: 1}']");
    assert_eq!(Generator::new(single).next(0).step(), None);
}

#[test]
fn failed_step_ends_its_operation() {
    let workload = steps("steps = ['{ping: 1}', '{find: \"stock\"}']");
    let generator = &mut Generator::new(Arc::clone(&workload));
    let mut operation = generator.next(0);
    generator.after(&mut operation, ending(Err(OperationError::Server(2))));
    assert_eq!(operation.over, Some(Err(OperationError::Server(2))));
    // A further attempt repeats the failed step.
    generator.repeat(&mut operation);
    assert_eq!(names(&[encoded(&workload, &operation)]), ["ping"]);
    generator.after(&mut operation, ending(Ok(1)));
    assert_eq!(names(&[encoded(&workload, &operation)]), ["find"]);
}

#[test]
fn reply_is_used_by_later_steps() {
    let workload = steps(
        r#"steps = [
          '{find: "stock", limit: 1}',
          '''{update: "stock", updates: [{q: {_id: {%reply: "0.cursor.firstBatch.0._id"}},
            u: {$set: {left: {%subtract: [{%reply: "0.cursor.firstBatch.0.left"}, 1]}}}}]}''',
        ]"#,
    );
    let reply = bson::doc! { "cursor": { "firstBatch": [{ "_id": "s3", "left": 70 }] } };
    let (commands, _) = perform(&workload, &[(1, reply), (1, Document::new())]);
    let update = commands[1].get_array("updates").unwrap()[0].as_document().unwrap();
    assert_eq!(update.get_document("q").unwrap().get_str("_id").unwrap(), "s3");
    let set = update.get_document("u").unwrap().get_document("$set").unwrap();
    assert_eq!(set.get_i32("left").unwrap(), 69);
    let own = workload.own.as_ref().unwrap();
    let action = Generator::new(Arc::clone(&workload)).next(0).action;
    assert!(own.needs_replies(action));
}

#[test]
fn step_is_sent_if_a_count_of_a_reply_has_the_value() {
    let workload = steps(
        r#"steps = [
          '{find: "stock", limit: 1}',
          { command = '{ping: 1}', when = { count = '{%reply: "0.n"}', is = "1.." } },
          { command = '{ping: 2}', when = { count = '{%reply: "0.n"}', is = "0" } },
        ]"#,
    );
    let pings = |reply: Document| {
        let (commands, _) = perform(&workload, &[(0, reply), (0, Document::new())]);
        commands[1..].iter().map(|one| one.get_i32("ping").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(pings(bson::doc! { "n": 5 }), [1]);
    assert_eq!(pings(bson::doc! { "n": 0 }), [2]);
    assert_eq!(pings(bson::doc! { "other": 1 }), [2], "a count that is not there is 0");
}

#[test]
fn step_is_repeated_for_each_element_up_to_a_limit() {
    let workload = steps(
        r#"steps = [
          '{find: "stock", limit: 1}',
          { command = '{insert: "orders", documents: [{sku: "%sku", by: {%int: [1, 1000000]}}]}',
            each = { name = "sku", of = '{%reply: "0.all"}', at_most = 3 } },
          '{ping: 1}',
        ]"#,
    );
    let inserted = |reply: Document| {
        let replies: Vec<_> =
            std::iter::once((0, reply)).chain((0..4).map(|_| (1, Document::new()))).collect();
        let (commands, outcome) = perform(&workload, &replies);
        assert_eq!(*names(&commands).last().unwrap(), "ping");
        let inserts = commands.iter().filter_map(|one| one.get_array("documents").ok());
        let documents = inserts.map(|all| all[0].as_document().unwrap().clone());
        (documents.collect::<Vec<_>>(), outcome)
    };
    let (documents, outcome) = inserted(bson::doc! { "all": [7, "b", { "c": 1 }, 9] });
    let skus: Vec<_> = documents.iter().map(|one| one.get("sku").unwrap().clone()).collect();
    assert_eq!(skus, [bson::bson!(7), bson::bson!("b"), bson::bson!({ "c": 1 })]);
    let draws: Vec<_> = documents.iter().map(|one| one.get_i32("by").unwrap()).collect();
    assert!(draws[0] != draws[1] && draws[1] != draws[2], "{draws:?}");
    assert_eq!(outcome, Ok(4));
    for nothing in [bson::doc! { "all": [] }, bson::doc! { "all": 5 }, Document::new()] {
        assert_eq!(inserted(nothing).0, Vec::<Document>::new());
    }
}

#[test]
fn operation_without_commands_is_over() {
    let workload = steps(
        "command = '{ping: 1}'\nwhen = { count = '{%int: [0, 0]}', is = '1' }\nexpect = '0..'",
    );
    assert_eq!(perform(&workload, &[]), (Vec::new(), Ok(0)));
}

#[test]
fn connection_concerns_apply_to_commands_that_take_them() {
    let concerns = Concerns {
        write: Some(WriteConcern { w: Some(Acknowledgement::Majority), ..Default::default() }),
        read_level: Some("majority".into()),
        read_preference: Some("secondary".into()),
    };
    let workload = Arc::new(Workload::mix(&plan(), &concerns).unwrap());
    let mut generator = Generator::new(Arc::clone(&workload));
    for number in 0..20 {
        let command = encoded(&workload, &generator.next(number));
        let is_find = command.contains_key("find");
        assert_eq!(command.contains_key("readConcern"), is_find, "{command}");
        assert_eq!(command.contains_key("$readPreference"), is_find, "{command}");
        assert_eq!(command.contains_key("writeConcern"), !is_find, "{command}");
    }
}

#[test]
fn only_writes_of_single_documents_are_sent_twice() {
    let access = |command: &str| {
        let fields = fields_of(&dyno_plan::workload::template::parse(command).unwrap());
        access_of(&fields[0].0, &fields)
    };
    for (command, expected) in [
        ("{find: 'a'}", Access::Reads),
        ("{aggregate: 'a', pipeline: [{$match: {}}, {$out: 'b'}]}", Access::Writes),
        ("{insert: 'a', documents: [{}]}", Access::WritesOnce),
        ("{update: 'a', updates: [{q: {}, u: {}}]}", Access::WritesOnce),
        ("{update: 'a', updates: [{q: {}, u: {}, multi: true}]}", Access::Writes),
        ("{delete: 'a', deletes: [{q: {}, limit: 1}]}", Access::WritesOnce),
        ("{delete: 'a', deletes: [{q: {}, limit: 0}]}", Access::Writes),
        ("{findAndModify: 'a'}", Access::WritesOnce),
        ("{createIndexes: 'a'}", Access::Writes),
    ] {
        assert_eq!(access(command), expected, "{command}");
    }
}
