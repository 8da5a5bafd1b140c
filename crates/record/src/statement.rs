//! Statements about a measurement as data: a stable code, and named values with units. Sentences are made from them for
//! display only; no code depends on the wording.

use crate::estimate::Estimate;
use crate::quantity::{Quantity, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Code for plain sentences: the value `text` has the sentence, `hint` the advice, if any.
pub const RECORDED: &str = "recorded";

/// A statement without its wording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statement {
    /// Code, stable across versions.
    pub code: String,
    /// Values by name.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
}

/// A value of a [`Statement`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    Flag(bool),
    /// A name, or text from elsewhere.
    Text(String),
    List(Vec<Value>),
    Number(Number),
    /// A nested statement.
    Statement(Statement),
    /// A value from a later version, such as a number with an unknown unit; displayed as it is written.
    #[schemars(skip)]
    Other(serde_json::Value),
}

/// A number with its unit, and its interval if known.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Number {
    /// Absent if undefined, such as a quotient with divisor 0.
    #[serialize_always]
    pub value: Option<f64>,
    pub unit: Unit,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Share of such intervals that contain the true value; 0.95 when absent.
    pub confidence_ratio: Option<f64>,
}

/// A [`Statement`] with a code and values; values that are `None` are left out.
///
/// ```ignore
/// statement!("late-starts", share = Number::ratio(0.02))
/// ```
#[macro_export]
macro_rules! statement {
    ($code:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::statement::Statement::new($code)$(.with(stringify!($name), $value))*
    };
}

impl Statement {
    /// A statement without values.
    pub fn new(code: impl Into<String>) -> Statement {
        Statement { code: code.into(), values: BTreeMap::new() }
    }

    /// A plain sentence.
    pub fn recorded(text: &str) -> Statement {
        Statement::new(RECORDED).with("text", text)
    }

    /// Adds a value, if there is one.
    pub fn with(mut self, name: &str, value: impl IntoValue) -> Statement {
        if let Some(value) = value.into_value() {
            self.values.insert(name.to_owned(), value);
        }
        self
    }

    /// The number with this name.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Value::Number(number) => number.value,
            _ => None,
        }
    }

    /// The text with this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Number {
    /// A number without an interval. Non-finite values become `None`.
    pub fn new(value: f64, unit: Unit) -> Number {
        Number {
            value: Some(value).filter(|value| value.is_finite()),
            unit,
            low: None,
            high: None,
            confidence_ratio: None,
        }
    }

    /// Adds an interval.
    pub fn between(self, low: f64, high: f64) -> Number {
        Number {
            low: Some(low).filter(|low| low.is_finite()),
            high: Some(high).filter(|high| high.is_finite()),
            ..self
        }
    }

    /// An estimate with its interval, in the given unit.
    pub fn estimate(estimate: &Estimate, unit: Unit) -> Number {
        Number {
            confidence_ratio: Some(estimate.confidence_ratio),
            ..Number::new(estimate.value, unit).between(estimate.low, estimate.high)
        }
    }

    /// The number for display; `None` if it is unknown.
    pub fn quantity(&self) -> Option<Quantity> {
        self.value.map(|value| Quantity::new(value, self.unit))
    }
}

/// Conversion to an optional value of a [`Statement`].
pub trait IntoValue {
    /// The value, or `None` to leave it out.
    fn into_value(self) -> Option<Value>;
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Option<Value> {
        self.and_then(IntoValue::into_value)
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> Option<Value> {
        Some(Value::List(self.into_iter().filter_map(IntoValue::into_value).collect()))
    }
}

macro_rules! into_value {
    ($($type:ty, $given:ident => $value:expr;)*) => {
        $(impl IntoValue for $type {
            fn into_value(self) -> Option<Value> {
                let $given = self;
                Some($value)
            }
        })*
    };
}

into_value! {
    Value, value => value;
    bool, flag => Value::Flag(flag);
    Number, number => Value::Number(number);
    Statement, statement => Value::Statement(statement);
    &Statement, statement => Value::Statement(statement.clone());
    String, text => Value::Text(text);
    &String, text => Value::Text(text.clone());
    &str, text => Value::Text(text.to_owned());
    usize, count => Value::Number(Number::new(count as f64, Unit::Count));
    u64, count => Value::Number(Number::new(count as f64, Unit::Count));
    u32, count => Value::Number(Number::new(f64::from(count), Unit::Count));
}

/// Fallback for codes without a sentence: the code with the values in brackets.
impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.code)?;
        for (place, (name, value)) in self.values.iter().enumerate() {
            let before = if place == 0 { " (" } else { ", " };
            write!(formatter, "{before}{name}: {value}")?;
        }
        formatter.write_str(if self.values.is_empty() { "" } else { ")" })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => write!(formatter, "{flag}"),
            Value::Text(text) => formatter.write_str(text),
            Value::Number(number) => {
                write!(formatter, "{number}")?;
                let end = |end: Option<f64>| Number { value: end, ..*number };
                match (number.low, number.high) {
                    (None, None) => Ok(()),
                    (low, high) => write!(formatter, " in {} to {}", end(low), end(high)),
                }
            }
            Value::Statement(statement) => write!(formatter, "{statement}"),
            Value::Other(value) => write!(formatter, "{value}"),
            Value::List(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(formatter, "[{}]", values.join(", "))
            }
        }
    }
}

/// Formats the significant digits, or `unknown`.
impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity() {
            // Counts are exact, so all digits are shown.
            Some(count) if self.unit == Unit::Count => write!(formatter, "{count}"),
            Some(quantity) => write!(formatter, "{}", quantity.brief()),
            None => formatter.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        let part = statement!("at-clients", clients = vec![4u32, 8]);
        let rate = Number::new(41_666.7, Unit::PerSecond).between(40_000.0, 43_000.0);
        let said = statement!("highest", rate = rate, at = part, only = true, none = None::<u32>);
        let written = serde_json::to_value(&said).unwrap();
        assert_eq!(written["values"]["rate"]["unit"], "per_s");
        assert!(written["values"].get("none").is_none());
        assert_eq!(serde_json::from_value::<Statement>(written).unwrap(), said);
        let expected = "highest (at: at-clients (clients: [4, 8]), only: true, rate: 41,700/s in 40,000/s to 43,000/s)";
        assert_eq!(said.to_string(), expected);
        assert_eq!(said.number("rate"), Some(41_666.7));
    }

    #[test]
    fn non_finite_numbers_stay_unknown() {
        for value in [f64::NAN, f64::INFINITY] {
            let number = Number::new(value, Unit::Bytes).between(value, value);
            let written = serde_json::to_value(number).unwrap();
            assert_eq!(written, json!({"value": null, "unit": "bytes"}));
            assert_eq!(serde_json::from_value::<Number>(written).unwrap(), number);
            assert_eq!(number.to_string(), "unknown");
        }
    }

    #[test]
    fn values_of_later_versions_display_unchanged() {
        let written = json!({"code": "hot", "values": {"heat": {"value": 90, "unit": "kelvin"}, "none": null}});
        let read: Statement = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(read.to_string(), r#"hot (heat: {"unit":"kelvin","value":90}, none: null)"#);
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
        let error = serde_json::from_value::<Statement>(json!({"values": {}})).unwrap_err();
        assert!(error.to_string().contains("`code`"), "{error}");
    }
}
