//! Documents of version 1, which has sentences as caveats and findings.

use serde_json::{Map, Value, json};

/// Converts a document to version 2: sentences become statements with the code `recorded`.
pub(crate) fn in_version_2(mut document: Value) -> Value {
    convert(&mut document);
    document["schema_version"] = json!(2);
    document
}

fn convert(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(convert),
        Value::Object(fields) => {
            fields.values_mut().for_each(convert);
            for name in ["message", "text"] {
                // A numeric `message` is a message number, not a sentence.
                if fields.get(name).is_some_and(Value::is_string) {
                    let text = fields.remove(name).unwrap_or_default();
                    let hint = fields.remove("hint");
                    fields.extend(recorded(text, hint));
                }
            }
            if let Some(problem) = fields.get_mut("usl_problem") {
                *problem = recorded(problem.take(), None).into();
            }
            for name in ["evidence", "generator_bound"] {
                let all = fields.get_mut(name).and_then(Value::as_array_mut);
                for one in all.into_iter().flatten() {
                    if one.is_string() {
                        *one = recorded(one.take(), None).into();
                    }
                }
            }
            if let Some(words) = fields.remove("words") {
                fields.insert("statement".to_owned(), recorded(words, None).into());
            }
        }
        _ => {}
    }
}

fn recorded(text: Value, hint: Option<Value>) -> Map<String, Value> {
    let mut values = Map::from_iter([("text".to_owned(), text)]);
    values.extend(hint.map(|hint| ("hint".to_owned(), hint)));
    let code = ("code".to_owned(), json!("recorded"));
    Map::from_iter([code, ("values".to_owned(), values.into())])
}
