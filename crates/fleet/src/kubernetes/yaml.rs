//! Writes plain data as YAML: block form, keys in order, every text in JSON quotes, which YAML accepts.

use serde_json::Value;

/// One YAML document.
pub(super) fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// Writes `value` at the start of a line.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                pad(indent, text);
                entry(key, value, indent, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                pad(indent, text);
                text.push_str("- ");
                match item {
                    Value::Object(object) if !object.is_empty() => {
                        for (index, (key, value)) in object.iter().enumerate() {
                            if index > 0 {
                                pad(indent + 2, text);
                            }
                            entry(key, value, indent + 2, text);
                        }
                    }
                    item => line(item, text),
                }
            }
        }
        value => line(value, text),
    }
}

/// Writes a key and its value after the indentation.
fn entry(key: &str, value: &Value, indent: usize, text: &mut String) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if key.chars().all(is_plain) {
        text.push_str(key)
    } else {
        text.push_str(&Value::from(key).to_string())
    }
    text.push(':');
    let is_block = match value {
        Value::Object(object) => !object.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        text.push('\n');
        block(value, indent + 2, text);
    } else {
        text.push(' ');
        line(value, text);
    }
}

/// Writes a value that fits on a line, as JSON.
fn line(value: &Value, text: &mut String) {
    text.push_str(&value.to_string());
    text.push('\n');
}

fn pad(indent: usize, text: &mut String) {
    text.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_value_is_written_as_yaml() {
        let value = json!({
            "a": {"b c": "x: \"y\"\nz", "empty": {}, "none": []},
            "list": [1, "two", {"k": true, "l": [null]}],
        });
        let expected = "a:\n  \"b c\": \"x: \\\"y\\\"\\nz\"\n  empty: {}\n  none: []\nlist:\n  - 1\n  - \"two\"\n  - k: true\n    l:\n      - null\n";
        assert_eq!(to_yaml(&value), expected);
    }
}
