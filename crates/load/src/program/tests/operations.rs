use super::*;
use bson::{Bson, doc};

fn let_values<const N: usize>(values: [(&str, Value); N]) -> Vec<(String, Value)> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn append(program: &Program, context: &mut Context) -> bson::Document {
    let mut out = Vec::new();
    program.write(context, &mut out).unwrap();
    decode(&out)
}

#[test]
fn variables_are_the_same_in_all_steps_and_elements() {
    let variables = let_values([
        ("unused", int(0, 1 << 40)),
        ("x", int(0, 1 << 40)),
        ("y", compute(Function::Add, [variable("x"), constant(1)])),
        ("gone", maybe(0.0, constant(1))),
    ]);
    let first = document([("x", variable("x")), ("gone", variable("gone"))]);
    let second = document([("y", variable("y")), ("all", array(2, 2, variable("x")))]);
    let compile = |index, template: &Value| {
        Program::compile(template, step(index, &variables), &templates(&[])).unwrap()
    };
    let (first, second) = (compile(0, &first), compile(1, &second));
    let mut context = context(&[]);
    let mut values = std::collections::HashSet::new();
    for number in 0..50 {
        context.begin(number);
        let one = append(&first, &mut context);
        let x = one.get_i64("x").unwrap();
        let two = doc! { "y": x + 1, "all": [x, x] };
        assert_eq!((one.len(), append(&second, &mut context)), (1, two.clone()));
        // The order of the steps does not matter.
        context.begin(number);
        assert_eq!((append(&second, &mut context), append(&first, &mut context)), (two, one));
        values.insert(x);
    }
    assert_eq!(values.len(), 50);
}

#[test]
fn steps_with_equal_templates_draw_different_values() {
    let template = document([("v", int(0, 1 << 40))]);
    let of_step = |index| {
        let program = Program::compile(&template, step(index, &[]), &templates(&[])).unwrap();
        document_of(&program, &mut context(&[]), 0)
    };
    assert_ne!(of_step(0), of_step(1));
}

#[test]
fn new_documents_are_those_of_their_numbers() {
    let orders = document([("_id", number()), ("a", text(5)), ("b", variable("v"))]);
    let variables = let_values([("v", int(0, 1 << 40))]);
    let collections = [Collection { variables, ..collection("orders", 10, orders) }];
    let templates = templates(&collections);
    let stored = Program::of_collection(0, &templates).unwrap();
    let insert = document([
        ("insert", constant("orders")),
        ("documents", Value::Array(vec![new("orders"), new("orders")])),
    ]);
    let insert = Program::compile(&insert, step(0, &[]), &templates).unwrap();
    let root = Program::compile(&new("orders"), step(1, &[]), &templates).unwrap();
    let mut context = context(&collections);
    let inserted = document_of(&insert, &mut context, 77);
    let numbers = context.new_documents().to_vec();
    assert_eq!(numbers, [10, 11].map(|number| NewDocument { collection: 0, number }));
    let root_document = append(&root, &mut context);
    let expected = [10, 11].map(|number| document_of(&stored, &mut context, number));
    assert_eq!(inserted.get_array("documents").unwrap()[..], expected.map(Bson::from));
    assert_eq!(root_document, document_of(&stored, &mut context, 12));
}

#[test]
fn restarted_operation_inserts_the_same_documents() {
    let of = |name: &str| collection(name, 0, document([("_id", number())]));
    let collections = [of("a"), of("b")];
    let templates = templates(&collections);
    let command = document([("a", new("a")), ("b", new("a")), ("c", new("b"))]);
    let reversed = document([("c", new("b")), ("d", new("a"))]);
    let command = Program::compile(&command, step(0, &[]), &templates).unwrap();
    let reversed = Program::compile(&reversed, step(1, &[]), &templates).unwrap();
    let mut context = context(&collections);
    context.begin(0);
    let first = append(&command, &mut context);
    context.restart();
    assert_eq!(append(&command, &mut context), first);
    assert_eq!(context.new_documents().len(), 3);
    // Another order takes the documents of each collection in order.
    context.restart();
    let other = append(&reversed, &mut context);
    assert_eq!(other, doc! { "c": { "_id": 0_i64 }, "d": { "_id": 0_i64 } });
    context.begin(1);
    assert_eq!(append(&command, &mut context).get_document("a").unwrap(), &doc! { "_id": 2_i64 });
}

#[test]
fn command_that_awaits_a_document_is_taken_back() {
    let collections = [collection("a", 0, document([("_id", number())]))];
    let templates = templates(&collections);
    let variables = let_values([("x", new("a"))]);
    let command = document([
        ("missing", reply(0, "x")),
        ("x", variable("x")),
        ("y", new("a")),
        ("z", variable("x")),
    ]);
    let command = Program::compile(&command, step(0, &variables), &templates).unwrap();
    let mut context = context_with(&collections, 1);
    let mut out = vec![9];
    context.begin(0);
    assert_eq!(command.write(&mut context, &mut out), Err(AwaitsDocument));
    assert_eq!((out.as_slice(), context.new_documents().len()), (&[9][..], 1));
    assert_eq!(context.misses(), Misses::default());
    context.documents = context_with(&[collection("a", 1, constant(1))], 2).documents;
    let (first, second) = (doc! { "_id": 0_i64 }, doc! { "_id": 1_i64 });
    let expected = doc! { "missing": null, "x": first.clone(), "y": second, "z": first };
    assert_eq!(append(&command, &mut context), expected);
    assert_eq!(context.misses(), Misses { reply: 1, ..Misses::default() });
}

#[test]
fn replies_are_read_by_path() {
    let command = document([
        ("number", reply(0, "value.left")),
        ("element", reply(1, "cursor.firstBatch.1._id")),
        ("all", reply(1, "cursor.firstBatch._id")),
        ("sum", compute(Function::Add, [reply(0, "value.left"), constant(1)])),
        ("length", compute(Function::Length, [reply(1, "cursor.firstBatch")])),
        ("middle", compute(Function::Middle, [reply(1, "cursor.firstBatch._id")])),
        ("missing", reply(0, "value.right")),
        ("early", reply(2, "ok")),
    ]);
    let program = compile(&command);
    let mut context = context(&[]);
    context.begin(0);
    let batch = doc! { "cursor": { "firstBatch": [{ "_id": "a" }, { "_id": "b" }, {}] } };
    context.set_reply(0, &doc! { "value": { "left": 41 } }.to_vec().unwrap());
    context.set_reply(1, &batch.to_vec().unwrap());
    let expected = doc! {
        "number": 41, "element": "b", "all": ["a", "b"], "sum": 42, "length": 3, "middle": "a",
        "missing": null, "early": null,
    };
    assert_eq!(append(&program, &mut context), expected);
    assert_eq!(context.misses(), Misses { reply: 2, ..Misses::default() });
    // The next operation does not see them.
    context.begin(1);
    assert_eq!(append(&program, &mut context).get("number"), Some(&Bson::Null));
}

#[test]
fn functions_compute_texts_arrays_and_numbers() {
    use Function::{Add, Concat, Divide, Length, Max, Middle, Modulo, Multiply, Nth, Pad};
    let list = || Value::Array(vec![constant("x"), number(), constant(2.5)]);
    let command = document([
        ("concat", compute(Concat, [constant("n"), number(), constant("é"), constant(1.5)])),
        ("pad", compute(Pad, [number(), constant(5)])),
        ("pad_text", compute(Pad, [constant("ab"), constant(3)])),
        ("nth", compute(Nth, [list(), constant(1)])),
        ("middle", compute(Middle, [list()])),
        ("length", compute(Length, [list()])),
        ("characters", compute(Length, [constant("aé€")])),
        ("nested", compute(Add, [compute(Multiply, [number(), constant(2)]), constant(0.5)])),
        ("max", compute(Max, [constant(1), constant(3), constant(2)])),
        ("share", compute(Modulo, [number(), constant(4)])),
        ("by_zero", compute(Divide, [number(), constant(0)])),
        ("beyond", compute(Nth, [list(), constant(3)])),
        ("empty", compute(Middle, [Value::Array(vec![])])),
        ("text", compute(Add, [constant("1"), constant(1)])),
        ("mixed", compute(Concat, [constant("a"), constant(true)])),
    ]);
    let (program, mut context) = (compile(&command), context(&[]));
    let expected = doc! {
        "concat": "n7é1.5", "pad": "00007", "pad_text": "0ab", "nth": 7_i64, "middle": 7_i64,
        "length": 3, "characters": 3, "nested": 14.5, "max": 3, "share": 3_i64,
        "by_zero": null, "beyond": null, "empty": null, "text": null, "mixed": null,
    };
    assert_eq!(document_of(&program, &mut context, 7), expected);
    assert_eq!(context.misses(), Misses { function: 5, ..Misses::default() });
}
