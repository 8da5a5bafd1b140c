//! Quantities with a unit: bytes, time spans and rates.
//!
//! A displayed quantity parses to the same value, so that a printed plan can be run again. The
//! validation of the plan checks ranges that depend on the use of a quantity.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;
use serde_with::SerializeDisplay;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes, written as `1GiB`, `512MiB`, `64KB` or a plain number.
///
/// `KB`, `MB`, `GB` and `TB` are powers of 1000; `KiB`, `MiB`, `GiB` and `TiB` are powers of 1024.
/// Upper and lower case are equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SerializeDisplay)]
pub struct Bytes(pub u64);

/// A time span with nanosecond resolution, written as `10s`, `1500ms`, `2m30s`, `1h`; a plain number means seconds.
///
/// A text or number of a plan holds at most 2^64 - 1 nanoseconds (584 years).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, SerializeDisplay)]
pub struct Span(pub Duration);

/// A positive, finite number of operations per second, written as `20000`, `20k`, `1.5M` or `20000/s`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, SerializeDisplay)]
pub struct Rate(pub f64);

/// A text is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text has another form.
    #[error("`{text}` is not {expected}")]
    Malformed {
        text: String,
        /// Description of the valid form, with an example.
        expected: &'static str,
    },
    /// The unit is unknown or ambiguous.
    #[error("`{unit}` in `{text}` is not a unit of {quantity}: use {units}")]
    Unit {
        text: String,
        unit: String,
        /// Name of the quantity.
        quantity: &'static str,
        /// The valid units.
        units: &'static str,
    },
    /// The value cannot be represented.
    #[error("`{text}` is out of range: {range}")]
    Range {
        text: String,
        /// The valid range.
        range: &'static str,
    },
}

const BYTES_EXPECTED: &str = "a number of bytes such as `512MiB`, `64KB` or `4096`";
const CACHE_EXPECTED: &str = "a number of bytes such as `512MiB`, or `smallest`";
const SPAN_EXPECTED: &str = "a time span such as `30s`, `1500ms` or `2m30s`";
const RATE_EXPECTED: &str = "a rate in operations per second such as `20000`, `20k` or `500/s`";

/// Binary units from large to small; each divides the one before.
const BINARY_UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const DECIMAL_UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
/// Units of time in nanoseconds from large to small.
const TIME_UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Bytes {
    /// A number of mebibytes.
    ///
    /// # Panics
    /// From 2^44 mebibytes on, in a constant at compile time.
    pub const fn from_mib(mebibytes: u64) -> Self {
        assert!(mebibytes < 1 << 44, "the number of bytes must fit into 64 bits");
        Bytes(mebibytes << 20)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let malformed = || UnitError::Malformed { text: text.into(), expected: BYTES_EXPECTED };
        let (number, unit) = split_number(text.trim());
        let number = Decimal::parse(number).ok_or_else(malformed)?;
        let factor = match unit.trim() {
            "" => 1,
            unit => *BINARY_UNITS
                .iter()
                .chain(&DECIMAL_UNITS)
                .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                .map(|(_, factor)| factor)
                .ok_or_else(|| UnitError::Unit {
                    text: text.into(),
                    unit: unit.into(),
                    quantity: "bytes",
                    units: "`B`, `KiB`, `MiB`, `GiB`, `TiB`, `KB`, `MB`, `GB` or `TB`",
                })?,
        };
        // A tenth of a gibibyte is not a whole number of bytes, so the rest is dropped.
        let bytes = match factor {
            1_000_000.. => number.times_down(factor),
            _ => number.times(factor),
        };
        bytes.map(Bytes).ok_or_else(|| UnitError::Range {
            text: text.into(),
            range: "use a whole number of bytes below 2^64",
        })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = BINARY_UNITS
            .into_iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(("B", 1));
        formatter.pad(&format!("{}{unit}", self.0 / factor))
    }
}

impl Span {
    /// A span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Span(Duration::from_secs(seconds))
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Span(Duration::from_millis(milliseconds))
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let malformed = || UnitError::Malformed { text: text.into(), expected: SPAN_EXPECTED };
        let out_of_range = || UnitError::Range {
            text: text.into(),
            range: "use whole nanoseconds up to 584 years",
        };
        let mut total_ns = 0u64;
        let mut larger_factor = u64::MAX;
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(malformed());
        }
        let is_plain = split_number(rest).1.is_empty();
        while !rest.is_empty() {
            let (number, after) = split_number(rest);
            let number = Decimal::parse(number).ok_or_else(malformed)?;
            let after = after.trim_start();
            let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_end);
            let factor = match unit {
                "" if is_plain => 1_000_000_000,
                "" => return Err(malformed()),
                unit => time_unit(unit).ok_or_else(|| UnitError::Unit {
                    text: text.into(),
                    unit: unit.into(),
                    quantity: "time",
                    units: "`d`, `h`, `m`, `s`, `ms`, `us` or `ns`",
                })?,
            };
            // `30s2m` is more likely a mistake than intended.
            if factor >= larger_factor {
                return Err(malformed());
            }
            larger_factor = factor;
            let part_ns = number.times(factor).ok_or_else(out_of_range)?;
            total_ns = total_ns.checked_add(part_ns).ok_or_else(out_of_range)?;
            rest = after.trim_start();
        }
        Ok(Span(Duration::from_nanos(total_ns)))
    }
}

/// Nanoseconds of a unit of time. There are no months, so `min` is always a minute.
fn time_unit(unit: &str) -> Option<u64> {
    let unit = match unit.to_lowercase().as_str() {
        "min" => "m".to_owned(),
        "sec" => "s".to_owned(),
        "\u{b5}s" | "\u{3bc}s" => "us".to_owned(),
        other => other.to_owned(),
    };
    TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest_ns = self.0.as_nanos();
        if rest_ns == 0 {
            return formatter.pad("0s");
        }
        let mut text = String::new();
        // Days are parsed, but `36h` is clearer than `1d12h`.
        for (unit, factor) in &TIME_UNITS[1..] {
            let count = rest_ns / u128::from(*factor);
            rest_ns %= u128::from(*factor);
            if count > 0 {
                text.push_str(&format!("{count}{unit}"));
            }
        }
        formatter.pad(&text)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let malformed = || UnitError::Malformed { text: text.into(), expected: RATE_EXPECTED };
        let trimmed = text.trim();
        let per_second = trimmed.strip_suffix("/s").unwrap_or(trimmed).trim_end();
        let (number, factor) = if let Some(number) = per_second.strip_suffix(['k', 'K']) {
            (number, 1e3)
        } else if let Some(number) = per_second.strip_suffix('M') {
            (number, 1e6)
        } else {
            (per_second, 1.0)
        };
        if !number.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) {
            return Err(malformed());
        }
        let rate = number.trim_end().parse::<f64>().map_err(|_| malformed())? * factor;
        if rate.is_finite() && rate > 0.0 {
            Ok(Rate(rate))
        } else {
            Err(UnitError::Range { text: text.into(), range: "a rate must be above 0 and finite" })
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{}/s", self.0))
    }
}

/// The leading digits, points and signs of a text, and the rest.
fn split_number(text: &str) -> (&str, &str) {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || ".-+_".contains(c))).unwrap_or(text.len());
    text.split_at(end)
}

/// A decimal number without rounding: `digits / 10^scale`.
struct Decimal {
    digits: u128,
    scale: u32,
}

impl Decimal {
    /// Digits with at most one point between them; `_` may group them. No sign, no exponent.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
            None => (text, ""),
        };
        let starts_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let fraction_fits = fraction.is_empty() || starts_with_digit(fraction);
        if !starts_with_digit(whole) || text.ends_with(['.', '_']) || !fraction_fits {
            return None;
        }
        let mut digits = 0u128;
        for c in whole.chars().chain(fraction.chars()).filter(|c| *c != '_') {
            digits = digits.checked_mul(10)?.checked_add(u128::from(c.to_digit(10)?))?;
        }
        let scale = fraction.chars().filter(|c| *c != '_').count();
        Some(Decimal { digits, scale: u32::try_from(scale).ok()? })
    }

    /// The number times `factor`, if that is a whole number of 64 bits.
    fn times(&self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let divisor = 10u128.checked_pow(self.scale)?;
        if !product.is_multiple_of(divisor) {
            return None;
        }
        u64::try_from(product / divisor).ok()
    }

    /// The number times `factor`, rounded down, if that fits into 64 bits.
    fn times_down(&self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        u64::try_from(product / 10u128.checked_pow(self.scale)?).ok()
    }
}

/// Deserializes a quantity from a string, or from a plain number.
fn text_or_number<'de, D, T>(deserializer: D, expected: &str) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = UnitError>,
{
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        // The text of a `Number` may have an exponent, and the text of a float does not.
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float.to_string(),
            None => number.to_string(),
        },
        other => return Err(D::Error::custom(format!("`{other}` is not {expected}"))),
    };
    text.parse().map_err(D::Error::custom)
}

/// Size of a cache: a number of bytes, or the smallest size of a kind of server, see
/// [`ServerKind::smallest_cache`](crate::model::ServerKind::smallest_cache).
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay)]
pub enum CacheSize {
    Smallest,
    Of(Bytes),
}

const SMALLEST: &str = "smallest";

impl FromStr for CacheSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim() {
            SMALLEST => Ok(CacheSize::Smallest),
            _ => text.parse().map(CacheSize::Of).map_err(|error| match error {
                UnitError::Malformed { text, .. } => {
                    UnitError::Malformed { text, expected: CACHE_EXPECTED }
                }
                other => other,
            }),
        }
    }
}

impl fmt::Display for CacheSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheSize::Smallest => formatter.pad(SMALLEST),
            CacheSize::Of(bytes) => bytes.fmt(formatter),
        }
    }
}

const BYTES_PATTERN: &str = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*(([KkMmGgTt][Ii]?)?[Bb])?\s*$";
const RATE_PATTERN: &str = r"^\s*[0-9][0-9.]*\s*[kKM]?\s*(/s)?\s*$";
const SPAN_PATTERN: &str = r"^\s*([0-9][0-9_]*(\.[0-9][0-9_]*)?\s*[A-Za-zµμ]*\s*)+$";

/// Implements the form of a quantity in a plan, as a text or a plain number, and its schema.
macro_rules! in_plans {
    ($($quantity:ident: $expected:expr, $number:literal, $pattern:expr, $description:literal;)*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text_or_number(deserializer, $expected)
            }
        }

        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $description,
                    "type": ["string", $number],
                    "minimum": 0,
                    "pattern": $pattern,
                })
            }
        }
    )*};
}

in_plans! {
    Bytes: BYTES_EXPECTED, "integer", BYTES_PATTERN,
        "A number of bytes such as `1GiB`, `512MiB` or `64KB`; a plain number is bytes.";
    CacheSize: CACHE_EXPECTED, "integer", format!(r"^\s*smallest\s*$|{BYTES_PATTERN}"),
        "A number of bytes such as `1GiB`, or `smallest`.";
    Span: SPAN_EXPECTED, "number", SPAN_PATTERN,
        "A time span such as `30s`, `1500ms` or `2m30s`; a plain number is seconds.";
    Rate: RATE_EXPECTED, "number", RATE_PATTERN,
        "Operations per second such as `500`, `20k` or `500/s`.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Result<u64, UnitError> {
        text.parse().map(|Bytes(bytes)| bytes)
    }

    fn span_ns(text: &str) -> Result<u128, UnitError> {
        text.parse().map(|Span(span)| span.as_nanos())
    }

    fn rate(text: &str) -> Result<f64, UnitError> {
        text.parse().map(|Rate(rate)| rate)
    }

    /// The unknown unit of a text.
    fn unknown_unit<T: std::fmt::Debug>(parsed: Result<T, UnitError>) -> String {
        match parsed {
            Err(UnitError::Unit { unit, .. }) => unit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn cache_has_a_size_or_is_the_smallest() {
        assert_eq!(" smallest ".parse(), Ok(CacheSize::Smallest));
        assert_eq!("1GiB".parse(), Ok(CacheSize::Of(Bytes(1 << 30))));
        for text in ["smallest", "300 MiB"] {
            let size: CacheSize = text.parse().unwrap();
            assert_eq!(size.to_string().parse(), Ok(size), "{text}");
        }
        let error = "small".parse::<CacheSize>().unwrap_err().to_string();
        assert!(error.contains("`smallest`"), "{error}");
    }

    #[test]
    fn bytes_are_read_in_binary_and_decimal_units() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("7B", 7),
            ("64KB", 64_000),
            ("64kb", 64_000),
            ("64KiB", 65_536),
            ("512MiB", 512 << 20),
            (" 1.5 GiB ", 3 << 29),
            ("2_000", 2000),
            ("1TB", 1_000_000_000_000),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_ambiguous_broken_or_too_large_are_refused() {
        assert_eq!(unknown_unit(bytes("64k")), "k");
        assert!(matches!(bytes("0.3KiB"), Err(UnitError::Range { .. })));
        assert_eq!(bytes("1.7GiB"), Ok(1_825_361_100));
        assert_eq!(bytes("0.1MB"), Ok(100_000));
        assert!(matches!(bytes("16777216TiB"), Err(UnitError::Range { .. })));
        for text in ["", "KiB", "-1", "+1", "1.2.3", "1.", ".5KB", "1e3", "1_", "\u{663}"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_read_with_one_or_several_units() {
        for (text, expected) in [
            ("0", 0),
            ("10", 10_000_000_000),
            ("0.25", 250_000_000),
            ("10s", 10_000_000_000),
            ("1500ms", 1_500_000_000),
            ("2m30s", 150_000_000_000),
            ("2 min 30 sec", 150_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1d", 86_400_000_000_000),
            ("7us", 7_000),
            ("7\u{b5}s", 7_000),
            ("3ns", 3),
        ] {
            assert_eq!(span_ns(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn spans_that_are_broken_or_out_of_range_are_refused() {
        for text in
            ["", "s", "-1s", "1s1", "1 1s", "30s2m", "1s1s", "5 parsecs", "1e3s", "inf", "1..2s"]
        {
            assert!(span_ns(text).is_err(), "{text}");
        }
        for text in ["0.5ns", "300000d"] {
            assert!(matches!(span_ns(text), Err(UnitError::Range { .. })));
        }
        assert_eq!(unknown_unit(span_ns("5y")), "y");
        assert!(matches!(span_ns("soon"), Err(UnitError::Malformed { .. })));
    }

    #[test]
    fn quantities_are_displayed_in_the_largest_units_that_fit() {
        let shown = [Bytes(0), Bytes(1000), Bytes(1536), Bytes(3 << 29), Bytes(1 << 30)]
            .map(|b| b.to_string());
        assert_eq!(shown, ["0B", "1000B", "1536B", "1536MiB", "1GiB"]);
        let shown = ["0", "90", "1.5", "36h", "61m1us"]
            .map(|text| text.parse::<Span>().unwrap().to_string());
        assert_eq!(shown, ["0s", "1m30s", "1s500ms", "36h", "1h1m1us"]);
        assert_eq!(Rate(1250.5).to_string(), "1250.5/s");
        assert_eq!(format!("{:>6}|{:<6}|", Bytes(5), Span::from_secs(5)), "    5B|5s    |");
    }

    #[test]
    fn rates_are_read_with_and_without_their_unit() {
        for (text, expected) in [
            ("20000", 2e4),
            ("20k", 2e4),
            ("20000/s", 2e4),
            ("1.5M/s", 1.5e6),
            ("0.5 /s", 0.5),
            ("1e3", 1e3),
        ] {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for text in ["", "/s", "k", "0", "-5", "inf", "nan", "20m", "20/min", "1e999"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(matches!(rate("0"), Err(UnitError::Range { .. })));
    }

    #[derive(Debug, PartialEq, serde::Serialize, Deserialize)]
    struct Holder {
        bytes: Bytes,
        span: Span,
    }

    #[test]
    fn quantities_in_files_are_strings_or_plain_numbers() {
        let expected = Holder { bytes: Bytes(1024), span: Span::from_millis(500) };
        for text in ["bytes = '1KiB'\nspan = '500ms'", "bytes = 1024\nspan = 0.5"] {
            assert_eq!(toml::from_str::<Holder>(text).unwrap(), expected);
        }
        let small = toml::from_str::<Holder>("bytes = 1e16\nspan = 0.000005").unwrap();
        let expected_small =
            Holder { bytes: Bytes(10_000_000_000_000_000), span: Span(Duration::from_micros(5)) };
        assert_eq!(small, expected_small);
        assert_eq!(toml::to_string(&expected).unwrap(), "bytes = \"1KiB\"\nspan = \"500ms\"\n");
        let error = toml::from_str::<Holder>("bytes = -5\nspan = 1").unwrap_err().to_string();
        assert!(error.contains("`-5`"), "{error}");
        let error = toml::from_str::<Holder>("bytes = true\nspan = 1").unwrap_err().to_string();
        assert!(error.contains("`true`"), "{error}");
    }

    fn accepts<T: JsonSchema>(value: &serde_json::Value) -> bool {
        jsonschema::is_valid(schemars::schema_for!(T).as_value(), value)
    }

    #[test]
    fn schema_accepts_displayed_quantities_and_no_other_types() {
        for value in [serde_json::json!("1536MiB"), serde_json::json!("7B"), serde_json::json!(7)] {
            assert!(accepts::<Bytes>(&value), "{value}");
        }
        for value in [serde_json::json!("64k"), serde_json::json!(-1), serde_json::json!(true)] {
            assert!(!accepts::<Bytes>(&value), "{value}");
        }
        for value in [
            serde_json::json!("1h1m1us"),
            serde_json::json!("2 min 30 sec"),
            serde_json::json!(0.5),
        ] {
            assert!(accepts::<Span>(&value), "{value}");
        }
        for value in [serde_json::json!("soon"), serde_json::json!(-1), serde_json::json!([])] {
            assert!(!accepts::<Span>(&value), "{value}");
        }
    }

    proptest! {
        #[test]
        fn displayed_bytes_parse_to_the_same_value(value: u64) {
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }

        #[test]
        fn displayed_spans_parse_to_the_same_value(value: u64) {
            let span = Span(Duration::from_nanos(value));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn displayed_rates_parse_to_the_same_value(value in 1e-9..1e12f64) {
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
        }

        #[test]
        fn any_text_is_a_quantity_or_an_error(text in "[0-9.,_ +\\-a-zA-Zµ/]{0,12}") {
            // The range checks must not panic.
            let _ = (bytes(&text), span_ns(&text), rate(&text));
        }
    }
}
