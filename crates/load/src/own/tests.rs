use super::*;
use crate::generator::Generator;
use crate::workload::{LoadTask, Workload};
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

fn encoded(workload: &Workload, operation: &crate::generator::Operation) -> Document {
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
    assert_eq!(own.as_expected(0, 0), Err(OperationError::Expect));
    assert_eq!(own.as_expected(0, 7), Ok(7));
    assert_eq!(own.as_expected(1, 0), Ok(0));
    assert_eq!(own.expected_text(0), "1..");
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
