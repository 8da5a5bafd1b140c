use super::*;
use bson::Bson;

fn refusal(template: &Value, collections: &[Collection]) -> ProgramError {
    let variables = [
        ("self".to_owned(), variable("other")),
        ("other".to_owned(), variable("self")),
        ("price".to_owned(), decimal()),
    ];
    Program::compile(template, step(0, &variables), &templates(collections)).unwrap_err()
}

fn decimal() -> Value {
    generated(Generator::Decimal { min: 0, max: 1, digits: 2, law: Law::Uniform })
}

fn of(value: Value) -> Value {
    document([("v", value)])
}

#[test]
fn impossible_values_are_refused_at_their_path() {
    let at = || "a.v".to_owned();
    let decimal_constant = constant(Bson::Decimal128("1.5".parse().unwrap()));
    let cases = [
        (int(2, 1), ProgramError::EmptyRange { at: at() }),
        (
            generated(Generator::Double { min: 1.0, max: f64::NAN, law: Law::Uniform }),
            ProgramError::EmptyRange { at: at() },
        ),
        (
            generated(Generator::Double { min: 0.0, max: 1.0, law: Law::Poisson { mean: 1.0 } }),
            ProgramError::IntegersOnly { at: at() },
        ),
        (
            int_by(0, 9, Law::Zipf { exponent: 0.0 }),
            ProgramError::Law { at: at(), reason: "the exponent is not above 0" },
        ),
        (
            generated(Generator::Choose { values: vec![], choice: Choice::Law(Law::Uniform) }),
            ProgramError::EmptyRange { at: at() },
        ),
        (
            generated(Generator::Choose {
                values: vec![constant(1)],
                choice: Choice::Weights(vec![]),
            }),
            ProgramError::Law { at: at(), reason: "values and weights differ in number" },
        ),
        (variable("x"), ProgramError::UnknownVariable { at: at(), name: "x".to_owned() }),
        (variable("self"), ProgramError::Recursion { at: "let.self".to_owned() }),
        (
            new("nowhere"),
            ProgramError::UnknownCollection { at: at(), collection: "nowhere".to_owned() },
        ),
        (
            compute(Function::Add, [decimal(), constant(1)]),
            ProgramError::DecimalArgument { at: at() },
        ),
        (
            compute(Function::Max, [constant(1), variable("price")]),
            ProgramError::DecimalArgument { at: at() },
        ),
        (compute(Function::Concat, [decimal_constant]), ProgramError::DecimalArgument { at: at() }),
        (
            compute(Function::Pad, [constant(1)]),
            ProgramError::ArgumentCount { at: at(), expected: "two", found: 1 },
        ),
        (document([("x\0", constant(1))]), ProgramError::ZeroInName { at: "a.v.x\0".to_owned() }),
    ];
    for (value, expected) in cases {
        assert_eq!(refusal(&document([("a", of(value))]), &[]), expected);
    }
}

#[test]
fn template_must_be_a_document() {
    for template in [constant(1), Value::Array(vec![]), number(), int(1, 2)] {
        let expected = ProgramError::NotADocument { owner: "test".to_owned() };
        assert_eq!(refusal(&template, &[]), expected);
    }
}

#[test]
fn paths_that_no_document_has_are_refused() {
    let fields = document([
        ("a", document([("b", number())])),
        ("list", array(1, 1, document([("c", number())]))),
        ("fixed", Value::Array(vec![number()])),
        ("constant", Value::Constant(bson::bson!({ "d": [{ "e": 1 }] }))),
    ]);
    let collections = [collection("docs", 1, fields)];
    for path in ["x", "a.c", "a.b.c", "list.d", "fixed.1", "constant.e", "constant.d.f"] {
        let expected =
            ProgramError::UnknownPath { collection: "docs".to_owned(), path: path.to_owned() };
        assert_eq!(refusal(&of(from("docs", path)), &collections), expected);
    }
}

#[test]
fn documents_that_need_themselves_are_refused() {
    let loop_of_two = [
        collection("a", 1, document([("x", from("b", "y"))])),
        collection("b", 1, document([("y", from("a", "x"))])),
    ];
    assert_eq!(
        refusal(&of(from("a", "x")), &loop_of_two),
        ProgramError::Recursion { at: "y".to_owned() }
    );
    // A reference to another field of the same collection is not a loop.
    let tree = [collection("a", 9, document([("_id", number()), ("parent", from("a", "_id"))]))];
    assert!(Program::of_collection(0, &templates(&tree)).is_ok());
}

#[test]
fn documents_are_refused_if_they_differ_when_repeated() {
    let expected = |at: &str| ProgramError::NotRepeatable { at: at.to_owned() };
    let now = || generated(Generator::Now);
    let collections = [collection("a", 1, document([("t", now()), ("x", number())]))];
    // Documents may contain the time, but not the values computed again from them.
    assert!(Program::of_collection(0, &templates(&collections)).is_ok());
    assert_eq!(refusal(&of(from("a", "t")), &collections), expected("t"));
    let pinned = Templates { now_ms: Some(1), ..templates(&collections) };
    assert!(Program::compile(&of(from("a", "t")), step(0, &[]), &pinned).is_ok());
    for value in [new("a"), reply(0, "ok")] {
        let collections = [collection("a", 1, of(value))];
        let refused = Program::of_collection(0, &templates(&collections)).unwrap_err();
        assert_eq!(refused, expected("v"));
    }
}
