//! Numbers of an answer by their path, regardless of their BSON type.

use bson::{Bson, Document};

/// A source of numbers with the paths of `serverStatus`.
pub(crate) trait Fields {
    /// The number at a path, such as `wiredTiger.cache.bytes read into cache`.
    fn number(&self, path: &str) -> Option<f64>;
}

impl Fields for Document {
    fn number(&self, path: &str) -> Option<f64> {
        number_of(at(self, path)?)
    }
}

/// The number that a value is; `true` is 1.
pub(super) fn number_of(value: &Bson) -> Option<f64> {
    let number = match value {
        Bson::Int32(number) => f64::from(*number),
        Bson::Int64(number) => *number as f64,
        Bson::Double(number) => *number,
        Bson::Boolean(is_set) => f64::from(u8::from(*is_set)),
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// The value at a path of names separated by dots.
pub(crate) fn at<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let mut parts = path.split('.');
    let mut value = document.get(parts.next()?)?;
    for part in parts {
        value = value.as_document()?.get(part)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn every_numeric_type_is_a_number_and_nothing_else_is() {
        let answer = doc! {
            "a": { "b c": 1_i32, "d": 5_000_000_000_i64 }, "e": 2.5, "f": true, "g": "7",
            "h": f64::NAN,
        };
        assert_eq!(answer.number("a.b c"), Some(1.0));
        assert_eq!(answer.number("a.d"), Some(5e9));
        assert_eq!(answer.number("e"), Some(2.5));
        assert_eq!(answer.number("f"), Some(1.0));
        for path in ["g", "h", "a", "a.x", "e.x", "x.y", ""] {
            assert_eq!(answer.number(path), None, "{path}");
        }
    }
}
