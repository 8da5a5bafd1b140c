//! Figures and lists as they stand in sentences: three digits that count, with their unit. Tables have more digits.

use super::figures::Figure;
use dyno_record::quantity::{Quantity, Unit};

/// A rate: `41,700/s`.
pub(crate) fn rate(per_s: f64) -> String {
    Quantity::per_second(per_s).brief().to_string()
}

/// A time that is given in seconds: `48.0 µs`.
pub(crate) fn time(seconds: f64) -> String {
    Quantity::microseconds(seconds * 1e6).brief().to_string()
}

/// An amount of data, in units of 1024: `4.00 MiB`.
pub(crate) fn bytes(amount: f64) -> String {
    Quantity::new(amount, Unit::Bytes).brief().to_string()
}

/// A share of 0 to 1: `93 %`.
pub(crate) fn percent(ratio: f64) -> String {
    Quantity::ratio(ratio).brief().to_string()
}

/// How many times as large: `2.3`.
pub(crate) fn times(ratio: f64) -> String {
    Quantity::times(ratio).to_string()
}

/// A bare number with three digits that count and commas between thousands.
pub(crate) fn number(value: f64) -> String {
    Quantity::plain(value).brief().to_string()
}

/// A number that was set, with all its digits: `12,500`.
pub(crate) fn exact(value: f64) -> String {
    Quantity::exact(value).to_string()
}

/// A whole number with what it counts: `5 runs`, `1 run`.
pub(crate) fn count(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The interval of a figure, written by `write`: ` (95 % interval 9 to 11)`, or nothing.
pub(crate) fn interval(figure: &Figure, write: impl Fn(f64) -> String) -> String {
    match figure.low.zip(figure.high) {
        Some((low, high)) => format!(" (95 % interval {} to {})", write(low), write(high)),
        None => String::new(),
    }
}

/// The same of a figure that a sentence is about, which says so where there is none.
pub(crate) fn interval_or_none(figure: &Figure, write: impl Fn(f64) -> String) -> String {
    match figure.low {
        Some(_) => interval(figure, write),
        None => " (no interval: too little was measured)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_and() {
        let words = ["4", "8", "16"].map(str::to_owned);
        assert_eq!(list(&words), "4, 8 and 16");
        assert_eq!(list(&words[..2]), "4 and 8");
        assert_eq!(list(&words[..1]), "4");
    }
}
