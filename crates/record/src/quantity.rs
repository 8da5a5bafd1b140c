//! The only number formatter of the workspace: formats a value with its unit and a suitable precision. It is part of
//! this crate because findings, reports, machine checks and progress all show recorded numbers.

use schemars::JsonSchema;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Text for a missing value.
pub const NO_VALUE: &str = "–";

/// Unit of a [`Quantity`], which also determines scaling and rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Events per second; never scaled, grouped by thousands.
    #[serde(rename = "per_s")]
    PerSecond,
    /// Duration in microseconds, shown in ns, µs, ms or s with three digits.
    #[serde(rename = "us")]
    Microseconds,
    /// Duration in seconds, shown in larger units (`2 min 30 s`).
    #[serde(rename = "s")]
    Seconds,
    /// Size in bytes, shown in powers of 1024.
    Bytes,
    /// Bytes per second, shown in powers of 1024.
    #[serde(rename = "bytes_per_s")]
    BytesPerSecond,
    /// Integer, grouped by thousands.
    Count,
    /// Share from 0 to 1, shown in percent.
    Ratio,
    /// Bare number with three decimals.
    #[serde(rename = "number")]
    Plain,
    /// Bare number of any size, with three significant digits.
    Parameter,
    /// Bare number with all its digits, such as a setting.
    Exact,
    /// Multiple; an integer from 10 on.
    Times,
}

/// Number of digits shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Precision {
    /// For tables.
    #[default]
    Full,
    /// For sentences.
    Brief,
}

/// A value with its unit, and its error if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    value: f64,
    unit: Unit,
    error: Option<f64>,
    precision: Precision,
    is_signed: bool,
}

impl Quantity {
    /// A quantity without a known error.
    pub fn new(value: f64, unit: Unit) -> Self {
        Quantity { value, unit, error: None, precision: Precision::Full, is_signed: false }
    }

    /// Events per second.
    pub fn per_second(value: f64) -> Self {
        Self::new(value, Unit::PerSecond)
    }

    /// A duration in microseconds.
    pub fn microseconds(value: f64) -> Self {
        Self::new(value, Unit::Microseconds)
    }

    /// A duration in seconds.
    pub fn seconds(value: f64) -> Self {
        Self::new(value, Unit::Seconds)
    }

    /// A size in bytes.
    pub fn bytes(value: u64) -> Self {
        Self::new(value as f64, Unit::Bytes)
    }

    /// An integer.
    pub fn count(value: u64) -> Self {
        Self::new(value as f64, Unit::Count)
    }

    /// A number of things with their noun: `1 run`, `1,500 runs`.
    pub fn counted(value: u64, noun: &str) -> String {
        format!("{} {noun}{}", Self::count(value), if value == 1 { "" } else { "s" })
    }

    /// A share from 0 to 1.
    pub fn ratio(value: f64) -> Self {
        Self::new(value, Unit::Ratio)
    }

    /// A bare number with three decimals.
    pub fn plain(value: f64) -> Self {
        Self::new(value, Unit::Plain)
    }

    /// A bare number with all its digits.
    pub fn exact(value: f64) -> Self {
        Self::new(value, Unit::Exact)
    }

    /// A multiple.
    pub fn times(ratio: f64) -> Self {
        Self::new(ratio, Unit::Times)
    }

    /// Reduces the digits for use in a sentence: three, also before the decimal point, whole percents from 10 % on, and
    /// whole seconds.
    pub fn brief(self) -> Self {
        Quantity { precision: Precision::Brief, ..self }
    }

    /// Shows the sign even for positive values, but not for zero.
    pub fn signed(self) -> Self {
        Quantity { is_signed: true, ..self }
    }

    /// Adds an error of ± `error`, in the unit of the value. Errors that are not finite positive numbers are ignored.
    pub fn with_error(self, error: f64) -> Self {
        let known = error.is_finite() && error > 0.0;
        Quantity { error: known.then_some(error), ..self }
    }

    /// The original value in its original unit.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The unit.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Number and unit separately, for layouts that format them differently.
    pub fn parts(&self) -> (String, &'static str) {
        if !self.value.is_finite() {
            return (NO_VALUE.into(), "");
        }
        if self.is_signed && self.value != 0.0 {
            let unsigned = Quantity { value: self.value.abs(), is_signed: false, ..*self };
            let (number, unit) = unsigned.parts();
            let sign = match self.value {
                _ if is_zero(&number) => "",
                value if value < 0.0 => "−",
                _ => "+",
            };
            return (format!("{sign}{number}"), unit);
        }
        let (number, unit) = self.unsigned_parts();
        (without_sign_of_zero(number), unit)
    }

    /// Number and unit; a number that is rounded to zero may keep its minus sign.
    fn unsigned_parts(&self) -> (String, &'static str) {
        let is_brief = self.precision == Precision::Brief;
        match self.unit {
            Unit::PerSecond if is_brief => (three_digits(self.value), "/s"),
            Unit::PerSecond => (self.plain_digits(significant_decimals(self.value, 4)), "/s"),
            Unit::Microseconds => self.scaled(&TIME_SCALE),
            Unit::Bytes => self.scaled(&BYTES_SCALE),
            Unit::BytesPerSecond => self.scaled(&BYTES_PER_SECOND_SCALE),
            Unit::Count | Unit::Plain | Unit::Parameter if is_brief => {
                (three_digits(self.value), "")
            }
            Unit::Count => (self.plain_digits(0), ""),
            Unit::Plain => (self.plain_digits(3), ""),
            Unit::Parameter => (self.plain_digits(significant_decimals(self.value, 3)), ""),
            Unit::Exact => (group_thousands(&self.value.to_string()), ""),
            Unit::Times => (times(self.value), ""),
            Unit::Seconds if is_brief => (span(self.value.round(), 0), ""),
            Unit::Seconds => (span(self.value, 1), ""),
            Unit::Ratio if is_brief => (brief_percent(self.value * 100.0), " %"),
            Unit::Ratio => (percent(self.value * 100.0), " %"),
        }
    }

    /// Number and error in the same scale; the error, if any, determines the number of decimals.
    fn plain_digits(&self, decimals: usize) -> String {
        with_error_digits(self.value, self.error, decimals)
    }

    fn scaled(&self, scale: &[(f64, &'static str)]) -> (String, &'static str) {
        let (factor, unit) = choose_scale(self.value, scale);
        let value = self.value / factor;
        // An integer in the smallest unit is exact, but sentences do not distinguish exact from measured values.
        let is_whole = factor == 1.0 && value.fract() == 0.0;
        let number = match self.precision {
            Precision::Brief if !(is_whole && self.unit != Unit::Microseconds) => {
                three_digits(value)
            }
            _ => {
                let decimals = if is_whole { 0 } else { significant_decimals(value, 3) };
                with_error_digits(value, self.error.map(|error| error / factor), decimals)
            }
        };
        (number, unit)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.parts();
        write!(formatter, "{number}{unit}")
    }
}

/// Serializes the displayed number and unit separately, for templates.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (number, unit) = self.parts();
        let mut fields = serializer.serialize_struct("Quantity", 2)?;
        fields.serialize_field("number", &number)?;
        fields.serialize_field("unit", unit)?;
        fields.end()
    }
}

/// Scales of a duration in microseconds, smallest first.
const TIME_SCALE: [(f64, &str); 4] = [(0.001, " ns"), (1.0, " µs"), (1e3, " ms"), (1e6, " s")];

/// Scales of a size in bytes, smallest first.
const BYTES_SCALE: [(f64, &str); 5] = [
    (1.0, " B"),
    (1024.0, " KiB"),
    (1_048_576.0, " MiB"),
    (1_073_741_824.0, " GiB"),
    (1_099_511_627_776.0, " TiB"),
];

/// Scales of bytes per second, smallest first.
const BYTES_PER_SECOND_SCALE: [(f64, &str); 5] = [
    (1.0, " B/s"),
    (1024.0, " KiB/s"),
    (1_048_576.0, " MiB/s"),
    (1_073_741_824.0, " GiB/s"),
    (1_099_511_627_776.0, " TiB/s"),
];

/// Largest scale in which the value is at least 1 after rounding to the displayed digits:
/// 999.96 µs is 1.00 ms, not 1000 µs. Zero uses the scale with the factor 1.
fn choose_scale(value: f64, scale: &[(f64, &'static str)]) -> (f64, &'static str) {
    let natural = scale.iter().find(|(factor, _)| *factor == 1.0);
    if value == 0.0 {
        return natural.copied().unwrap_or(scale[0]);
    }
    let fits = |(factor, _): &&(f64, &'static str)| round_significant(value.abs() / factor) >= 1.0;
    *scale.iter().rev().find(fits).unwrap_or(&scale[0])
}

/// Rounds to three significant digits.
fn round_significant(value: f64) -> f64 {
    let decimals = significant_decimals(value, 3) as i32;
    let power = 10f64.powi(decimals);
    (value * power).round() / power
}

/// Number of decimals, at most six, that show `value` with the wanted number of significant digits.
fn significant_decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let leading = value.abs().log10().floor() as i32;
    let decimals = (digits - 1 - leading).clamp(0, 6);
    // Rounding up to the next power of ten makes the last decimal superfluous: 9.996 is 10.0.
    let power = 10f64.powi(decimals);
    let rounded = (value.abs() * power).round() / power;
    if decimals > 0 && rounded >= 10f64.powi(leading + 1) {
        (decimals - 1) as usize
    } else {
        decimals as usize
    }
}

/// The number and its error, if any. The error has two digits and determines the decimals of the value, because digits
/// below the error are meaningless.
fn with_error_digits(value: f64, error: Option<f64>, decimals: usize) -> String {
    match error {
        None => group_thousands(&format!("{value:.decimals$}")),
        Some(error) => {
            let decimals = significant_decimals(error, 2);
            format!(
                "{} ± {}",
                group_thousands(&format!("{value:.decimals$}")),
                group_thousands(&format!("{error:.decimals$}"))
            )
        }
    }
}

/// Whether a number starts with zeros only; its error or a unit may follow.
fn is_zero(number: &str) -> bool {
    let end = number.find(|c: char| !matches!(c, '0' | '.'));
    let zeros = end.map_or(number, |end| &number[..end]);
    !zeros.is_empty() && number[zeros.len()..].chars().next().is_none_or(|c| !c.is_ascii_digit())
}

/// Removes the minus sign of a number that is rounded to zero, and of −0, which is the sum of an empty sequence.
fn without_sign_of_zero(number: String) -> String {
    match number.strip_prefix('-') {
        Some(unsigned) if is_zero(unsigned) => unsigned.to_owned(),
        _ => number,
    }
}

/// Groups the integer part by thousands, separated by commas.
fn group_thousands(number: &str) -> String {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let mut grouped = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// Rounds to three significant digits, wherever the decimal point is.
fn three_digits(value: f64) -> String {
    let leading = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let power = 10f64.powi(2 - leading as i32);
    let rounded = (value * power).round() / power;
    group_thousands(&format!("{rounded:.*}", significant_decimals(rounded, 3)))
}

/// A multiple: `1.02`, `2.3`, `14`.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 9.95 => group_thousands(&format!("{ratio:.0}")),
        ratio if ratio >= 1.095 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// A percentage in a sentence. Small nonzero values are not shown as 0.
fn brief_percent(value: f64) -> String {
    match value.abs() {
        size if size >= 9.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 0.05 => format!("{value:.1}"),
        _ => "less than 0.1".into(),
    }
}

/// A percentage. Small nonzero values are not shown as 0, and values just below 100 % not as 100.
fn percent(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if value > 0.0 && value < 0.001 => "< 0.001".into(),
        _ if value.abs() < 0.1 => format!("{value:.3}"),
        _ if value.abs() < 10.0 => format!("{value:.2}"),
        _ if value < 99.0 => format!("{value:.1}"),
        _ if value > 99.99 && value < 100.0 => "> 99.99".into(),
        _ if value < 100.0 => format!("{value:.2}"),
        100.0 => "100".into(),
        _ => format!("{value:.1}"),
    }
}

/// A duration in larger units, with `decimals` decimals below a minute.
fn span(seconds: f64, decimals: usize) -> String {
    if seconds.abs() < 59.95 {
        return format!("{seconds:.decimals$} s");
    }
    let whole = seconds.round() as i64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match (hours, minutes, rest) {
        (0, _, 0) => format!("{minutes} min"),
        (0, _, _) => format!("{minutes} min {rest} s"),
        (_, 0, _) => format!("{hours} h"),
        _ => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(unit: Unit, cases: &[(f64, &str)]) {
        for (value, expected) in cases {
            assert_eq!(&Quantity::new(*value, unit).to_string(), expected);
        }
    }

    #[test]
    fn rates_have_four_digits_and_thousands_separators() {
        all(
            Unit::PerSecond,
            &[
                (0.0, "0/s"),
                (0.5, "0.5000/s"),
                (12.345, "12.35/s"),
                (999.95, "1,000/s"),
                (1234.5, "1,234/s"),
                (103_412.4, "103,412/s"),
                (1_234_567.8, "1,234,568/s"),
            ],
        );
    }

    #[test]
    fn time_spans_are_scaled_with_three_digits() {
        all(
            Unit::Microseconds,
            &[
                (0.0, "0 µs"),
                (0.0224, "22.4 ns"),
                (0.9996, "1.00 µs"),
                (7.314, "7.31 µs"),
                (412.0, "412 µs"),
                (999.4, "999 µs"),
                (999.6, "1.00 ms"),
                (1_234.5, "1.23 ms"),
                (12_345.0, "12.3 ms"),
                (999_600.0, "1.00 s"),
                (60_000_000.0, "60.0 s"),
            ],
        );
    }

    #[test]
    fn sizes_use_powers_of_1024() {
        all(
            Unit::Bytes,
            &[
                (0.0, "0 B"),
                (512.0, "512 B"),
                (1536.0, "1.50 KiB"),
                (67_108_864.0, "64.0 MiB"),
                (1_073_741_824.0, "1.00 GiB"),
            ],
        );
    }

    #[test]
    fn percentages_never_round_something_to_nothing() {
        all(
            Unit::Ratio,
            &[
                (0.0, "0 %"),
                (0.000_000_1, "< 0.001 %"),
                (0.000_123, "0.012 %"),
                (0.0123, "1.23 %"),
                (0.123_4, "12.3 %"),
                (0.999_8, "99.98 %"),
                (0.999_999, "> 99.99 %"),
                (1.0, "100 %"),
                (1.002, "100.2 %"),
            ],
        );
    }

    #[test]
    fn durations_use_larger_units() {
        all(
            Unit::Seconds,
            &[
                (0.25, "0.2 s"),
                (30.0, "30.0 s"),
                (59.97, "1 min"),
                (150.0, "2 min 30 s"),
                (3600.0, "1 h"),
                (3900.0, "1 h 5 min"),
            ],
        );
    }

    #[test]
    fn counts_are_grouped_and_plain_numbers_have_three_decimals() {
        all(Unit::Count, &[(0.0, "0"), (3_102_360.0, "3,102,360")]);
        all(Unit::Plain, &[(0.998_7, "0.999"), (-0.5, "-0.500")]);
        all(Unit::Parameter, &[(0.006_478, "0.00648"), (0.0, "0"), (12.34, "12.3")]);
    }

    #[test]
    fn brief_quantities_have_three_significant_digits() {
        let cases = [
            (Quantity::per_second(41_666.7), "41,700/s"),
            (Quantity::per_second(0.512_3), "0.512/s"),
            (Quantity::new(999.6, Unit::Parameter), "1,000"),
            (Quantity::new(2.475_9, Unit::Parameter), "2.48"),
            (Quantity::plain(-1_234_567.0), "-1,230,000"),
            (Quantity::microseconds(48.0), "48.0 µs"),
            (Quantity::microseconds(999.7), "1.00 ms"),
            (Quantity::microseconds(250_000.0), "250 ms"),
            (Quantity::microseconds(0.22), "220 ns"),
            (Quantity::bytes(512), "512 B"),
            (Quantity::bytes(4 << 20), "4.00 MiB"),
            (Quantity::ratio(0.934), "93 %"),
            (Quantity::ratio(0.051), "5.1 %"),
            (Quantity::ratio(0.000_1), "less than 0.1 %"),
            (Quantity::ratio(0.0), "0 %"),
            (Quantity::seconds(12.4), "12 s"),
            (Quantity::seconds(65.2), "1 min 5 s"),
        ];
        for (quantity, expected) in cases {
            assert_eq!(quantity.brief().to_string(), expected);
        }
    }

    #[test]
    fn settings_keep_all_digits_and_multiples_three() {
        all(Unit::Exact, &[(12_500.0, "12,500"), (1_234_567.5, "1,234,567.5")]);
        all(Unit::Times, &[(1.02, "1.02"), (4.321, "4.3"), (14.2, "14"), (1_234.0, "1,234")]);
    }

    #[test]
    fn a_signed_quantity_has_its_sign_unless_it_is_zero() {
        let signed = |ratio: f64| Quantity::ratio(ratio).signed().to_string();
        assert_eq!(signed(0.037), "+3.70 %");
        assert_eq!(signed(-0.17), "−17.0 %");
        assert_eq!(signed(0.0), "0 %");
    }

    #[test]
    fn zero_after_rounding_has_no_sign() {
        let nothing: f64 = [0.0; 0].iter().sum();
        assert!(nothing.is_sign_negative(), "the sum of an empty sequence is -0");
        for value in [nothing, -0.0, 0.0] {
            for quantity in [
                Quantity::ratio(value),
                Quantity::per_second(value),
                Quantity::seconds(value),
                Quantity::microseconds(value),
                Quantity::plain(value),
                Quantity::new(value, Unit::Count),
            ] {
                for quantity in [quantity, quantity.brief(), quantity.signed()] {
                    let text = quantity.to_string();
                    assert!(!text.contains(['-', '−', '+']), "{text}");
                }
            }
        }
        for text in [
            Quantity::ratio(-0.000_001).to_string(),
            Quantity::seconds(-0.01).to_string(),
            Quantity::plain(-0.000_1).to_string(),
            Quantity::new(-0.4, Unit::Count).to_string(),
            Quantity::plain(0.000_1).signed().to_string(),
            Quantity::plain(-0.000_1).signed().to_string(),
            Quantity::new(-0.4, Unit::Count).with_error(12.0).to_string(),
        ] {
            assert!(!text.contains(['-', '−', '+']), "{text}");
        }
        assert_eq!(Quantity::seconds(-0.5).to_string(), "-0.5 s");
        assert_eq!(Quantity::ratio(-0.05).signed().to_string(), "−5.00 %");
    }

    #[test]
    fn error_determines_the_decimals_of_its_value() {
        let rate = Quantity::per_second(103_412.4);
        assert_eq!(rate.with_error(230.4).to_string(), "103,412 ± 230/s");
        assert_eq!(rate.with_error(0.25).to_string(), "103,412.40 ± 0.25/s");
        let time = Quantity::microseconds(1_234.5);
        assert_eq!(time.with_error(12.0).to_string(), "1.234 ± 0.012 ms");
        assert_eq!(rate.with_error(f64::NAN), rate);
        assert_eq!(rate.with_error(0.0), rate);
    }

    #[test]
    fn non_finite_values_are_shown_as_no_value() {
        assert_eq!(Quantity::per_second(f64::NAN).to_string(), NO_VALUE);
        assert_eq!(Quantity::microseconds(f64::INFINITY).to_string(), NO_VALUE);
    }
}
