//! Numbers in the format of Java's `Double.toString`, because scripts that read YCSB's output compare and parse it.

/// Writes `value` like `Double.toString` of Java 19 and later.
///
/// The digits are the shortest that give the same `double` again, at least two. From 10⁻³ up to 10⁷ (exclusive) they are
/// written as a decimal, otherwise as `d.dddE±n` without a plus sign.
pub(crate) fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0" } else { "0.0" }.into();
    }
    let (digits, exponent) = shortest_digits(value.abs());
    let sign = if value < 0.0 { "-" } else { "" };
    let magnitude = if (-3..7).contains(&exponent) {
        decimal(&digits, exponent)
    } else {
        let (first, rest) = digits.split_at(1);
        format!("{first}.{rest}E{exponent}")
    };
    format!("{sign}{magnitude}")
}

/// Decimal digits (at least two) and the power of ten of the first one.
fn shortest_digits(magnitude: f64) -> (String, i32) {
    let mut text = format!("{magnitude:e}");
    if !text.contains('.') {
        // Java chooses the closest two-digit decimal even if one digit is enough: the smallest double is 4.9E-324 instead
        // of 5.0E-324.
        text = format!("{magnitude:.1e}");
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// Places the decimal point, with at least one digit on each side.
fn decimal(digits: &str, exponent: i32) -> String {
    if exponent < 0 {
        let zeros = "0".repeat((-exponent - 1) as usize);
        return format!("0.{zeros}{}", digits.trim_end_matches('0'));
    }
    let whole_digits = exponent as usize + 1;
    let padded = format!("{digits:0<width$}", width = whole_digits + 1);
    let (whole, fraction) = padded.split_at(whole_digits);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values_are_written_as_java_writes_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (10.0, "10.0"),
            (100.0, "100.0"),
            (123.456, "123.456"),
            (0.001, "0.001"),
            (0.01, "0.01"),
            (0.5, "0.5"),
            (0.0123, "0.0123"),
            (0.000_999, "9.99E-4"),
            (1.0e-5, "1.0E-5"),
            (9_999_999.0, "9999999.0"),
            (1.0e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (19607.843137254902, "19607.843137254902"),
            (0.006276150627615063, "0.006276150627615063"),
            (1.0e23, "1.0E23"),
            (2.0e-323, "2.0E-323"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        ] {
            assert_eq!(java_double(value), expected);
        }
    }

    #[test]
    fn special_values_have_the_names_that_java_uses() {
        assert_eq!(java_double(f64::NAN), "NaN");
        assert_eq!(java_double(f64::INFINITY), "Infinity");
        assert_eq!(java_double(f64::NEG_INFINITY), "-Infinity");
    }

    proptest! {
        #[test]
        fn the_text_reads_back_as_the_same_number(value in proptest::num::f64::NORMAL) {
            prop_assert_eq!(java_double(value).parse::<f64>().unwrap(), value);
        }

        #[test]
        fn decimals_are_used_exactly_inside_javas_range(value in 1.0e-9f64..1.0e12) {
            let scientific = java_double(value).contains('E');
            prop_assert_eq!(scientific, !(1.0e-3..1.0e7).contains(&value));
        }
    }
}
