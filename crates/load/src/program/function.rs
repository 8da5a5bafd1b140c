//! Functions on values that the client computes.
//!
//! Arithmetic follows MongoDB's aggregation: two 32-bit integers yield a 32-bit one if it fits, otherwise a 64-bit one, and
//! integers beyond 64 bits become doubles.

use super::raw::{self, Number, RawValue};
use dyno_plan::workload::template::{Function, MAX_PAD_WIDTH};
use dyno_wire::bson::kind;
use std::io::Write;

/// Arguments that a function takes, and the words for it.
pub(super) fn arity(function: Function) -> (std::ops::RangeInclusive<usize>, &'static str) {
    use Function::{
        Add, Concat, Divide, Length, Max, Middle, Min, Modulo, Multiply, Nth, Pad, Subtract,
    };
    match function {
        Add | Multiply | Min | Max | Concat => (1..=usize::MAX, "one or more"),
        Subtract | Divide | Modulo | Pad | Nth => (2..=2, "two"),
        Middle | Length => (1..=1, "one"),
    }
}

/// Whether a function takes numbers and yields one.
pub(super) fn is_arithmetic(function: Function) -> bool {
    use Function::{Add, Divide, Max, Min, Modulo, Multiply, Subtract};
    matches!(function, Add | Subtract | Multiply | Divide | Modulo | Min | Max)
}

/// Applies an arithmetic function to numbers from left to right. `None` if one of them is, or if the result is not defined.
pub(super) fn reduce(
    function: Function,
    mut numbers: impl Iterator<Item = Option<Number>>,
) -> Option<Number> {
    let first = numbers.next()??;
    numbers.try_fold(first, |result, number| arithmetic(function, result, number?))
}

/// The result of an arithmetic function on two numbers. `None` if it is not defined: an integer divisor of 0, or a date other
/// than in sums, differences and comparisons.
fn arithmetic(function: Function, left: Number, right: Number) -> Option<Number> {
    use Number::{Date, Double, Int32, Int64};
    if matches!(function, Function::Min | Function::Max) {
        return extreme(function, left, right);
    }
    match (left, right) {
        (Date(_), _) | (_, Date(_)) => with_dates(function, left, right),
        (Double(_), _) | (_, Double(_)) => {
            Some(Double(of_doubles(function, left.double(), right.double())))
        }
        (Int32(_) | Int64(_), Int32(_) | Int64(_)) => {
            let result = of_integers(function, left.integer().into(), right.integer().into())?;
            let is_short = matches!((left, right), (Int32(_), Int32(_)));
            Some(match (i32::try_from(result), i64::try_from(result)) {
                (Ok(short), _) if is_short => Int32(short),
                (_, Ok(long)) => Int64(long),
                _ => Double(result as f64),
            })
        }
    }
}

/// The products of 64-bit integers fit into 128 bits.
fn of_integers(function: Function, left: i128, right: i128) -> Option<i128> {
    match function {
        Function::Add => Some(left + right),
        Function::Subtract => Some(left - right),
        Function::Multiply => Some(left * right),
        Function::Divide => left.checked_div(right),
        Function::Modulo => left.checked_rem(right),
        _ => None,
    }
}

fn of_doubles(function: Function, left: f64, right: f64) -> f64 {
    match function {
        Function::Add => left + right,
        Function::Subtract => left - right,
        Function::Multiply => left * right,
        Function::Divide => left / right,
        Function::Modulo => left % right,
        _ => f64::NAN,
    }
}

/// A date plus or minus a number is a date, and the difference of two dates is their distance in milliseconds. Saturates.
fn with_dates(function: Function, left: Number, right: Number) -> Option<Number> {
    use Number::{Date, Int64};
    let (first, second) = (left.integer(), right.integer());
    match (function, left, right) {
        (Function::Add, Date(_), Date(_)) => None,
        (Function::Add, ..) => Some(Date(first.saturating_add(second))),
        (Function::Subtract, Date(_), Date(_)) => Some(Int64(first.saturating_sub(second))),
        (Function::Subtract, Date(_), _) => Some(Date(first.saturating_sub(second))),
        _ => None,
    }
}

/// The lesser or greater one, unchanged. A date compares with dates only.
fn extreme(function: Function, left: Number, right: Number) -> Option<Number> {
    use Number::{Date, Double};
    let order = match (left, right) {
        (Date(left), Date(right)) => left.cmp(&right),
        (Date(_), _) | (_, Date(_)) => return None,
        (Double(_), _) | (_, Double(_)) => left.double().total_cmp(&right.double()),
        _ => left.integer().cmp(&right.integer()),
    };
    let takes_left = if function == Function::Min { order.is_le() } else { order.is_ge() };
    Some(if takes_left { left } else { right })
}

/// Appends a text, or the decimal digits of a number, without header. `None` for other types.
pub(super) fn write_as_text(value: RawValue<'_>, out: &mut Vec<u8>) -> Option<()> {
    if let Some(text) = raw::text(value) {
        out.extend_from_slice(text);
        return Some(());
    }
    match Number::read(value)? {
        Number::Date(_) => None,
        Number::Double(number) => write!(out, "{number}").ok(),
        number => write!(out, "{}", number.integer()).ok(),
    }
}

/// Appends a text, or the decimal digits of a number, with zeros in front until it has `width` characters. They go behind a minus
/// sign. `None` for other types.
pub(super) fn pad(value: RawValue<'_>, width: i64, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    write_as_text(value, out)?;
    let width = usize::try_from(width).unwrap_or(0).min(MAX_PAD_WIDTH as usize);
    let zeros = width.saturating_sub(characters(&out[start..]));
    let first = start + usize::from(out.get(start) == Some(&b'-'));
    let end = out.len();
    out.resize(end + zeros, b'0');
    out.copy_within(first..end, first + zeros);
    out[first..first + zeros].fill(b'0');
    Some(())
}

fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

/// `%length`: elements of an array, or characters of a text.
pub(super) fn length(value: RawValue<'_>) -> Option<Number> {
    let length = match value.0 {
        kind::ARRAY => raw::count(value)?,
        _ => characters(raw::text(value)?),
    };
    i32::try_from(length).ok().map(Number::Int32)
}

/// `%middle`: the element at ⌈length / 2⌉, counted from 1.
pub(super) fn middle(array: RawValue<'_>) -> Option<RawValue<'_>> {
    let count = raw::count(array)?;
    raw::nth(array, count.div_ceil(2).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Number::{Date, Double, Int32, Int64};

    #[test]
    fn integers_widen_and_become_doubles_beyond_64_bits() {
        let cases = [
            (Function::Add, Int32(1), Int32(2), Some(Int32(3))),
            (Function::Add, Int32(i32::MAX), Int32(1), Some(Int64(1 << 31))),
            (Function::Add, Int32(1), Int64(2), Some(Int64(3))),
            (Function::Add, Int64(i64::MAX), Int32(1), Some(Double(2_f64.powi(63)))),
            (Function::Multiply, Int64(i64::MIN), Int64(i64::MIN), Some(Double(2_f64.powi(126)))),
            (Function::Subtract, Int32(1), Double(0.5), Some(Double(0.5))),
            (Function::Divide, Int32(-7), Int32(2), Some(Int32(-3))),
            (Function::Divide, Int64(i64::MIN), Int64(-1), Some(Double(2_f64.powi(63)))),
            (Function::Divide, Int32(1), Int32(0), None),
            (Function::Modulo, Int32(-7), Int32(2), Some(Int32(-1))),
            (Function::Modulo, Int32(7), Int32(0), None),
            (Function::Min, Int32(3), Double(2.5), Some(Double(2.5))),
            (Function::Max, Int64(3), Int32(3), Some(Int64(3))),
        ];
        for (function, left, right, expected) in cases {
            let result = arithmetic(function, left, right);
            assert_eq!(result, expected, "{function:?} {left:?} {right:?}");
        }
    }

    #[test]
    fn dates_move_by_milliseconds() {
        let cases = [
            (Function::Add, Date(10), Int32(5), Some(Date(15))),
            (Function::Subtract, Date(10), Date(4), Some(Int64(6))),
            (Function::Subtract, Date(10), Int64(4), Some(Date(6))),
            (Function::Subtract, Int64(4), Date(10), None),
            (Function::Add, Date(1), Date(1), None),
            (Function::Multiply, Date(1), Int32(2), None),
            (Function::Max, Date(1), Date(2), Some(Date(2))),
            (Function::Max, Date(1), Int32(2), None),
        ];
        for (function, left, right, expected) in cases {
            let result = arithmetic(function, left, right);
            assert_eq!(result, expected, "{function:?} {left:?} {right:?}");
        }
    }

    #[test]
    fn padding_goes_behind_the_sign() {
        for (text, width, padded) in [
            ("7", 3, "007"),
            ("-7", 4, "-007"),
            ("1234", 3, "1234"),
            ("é", 2, "0é"),
            ("7", -1, "7"),
        ] {
            let mut value = Vec::new();
            let kind = raw::write_text(&mut value, |out| out.extend_from_slice(text.as_bytes()));
            let mut out = vec![b'x'];
            pad((kind, &value), width, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("x{padded}"));
        }
    }
}
