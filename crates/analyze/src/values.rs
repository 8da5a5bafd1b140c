//! Numbers with units for statements.

use dyno_record::experiment::Figure;
use dyno_record::quantity::Unit;
use dyno_record::statement::Number;

/// A rate.
pub(crate) fn rate(per_s: f64) -> Number {
    Number::new(per_s, Unit::PerSecond)
}

/// A rate with its interval.
pub(crate) fn rate_of(figure: &Figure) -> Number {
    figure.number(Unit::PerSecond)
}

/// A time from seconds.
pub(crate) fn time(seconds: f64) -> Number {
    us(seconds * 1e6)
}

/// A time from microseconds.
pub(crate) fn us(microseconds: f64) -> Number {
    Number::new(microseconds, Unit::Microseconds)
}

/// A time from microseconds, with its interval.
pub(crate) fn us_of(figure: &Figure) -> Number {
    figure.number(Unit::Microseconds)
}

/// A duration in seconds.
pub(crate) fn seconds(seconds: f64) -> Number {
    Number::new(seconds, Unit::Seconds)
}

/// An amount of data.
pub(crate) fn bytes(amount: f64) -> Number {
    Number::new(amount, Unit::Bytes)
}

/// Data per second.
pub(crate) fn bytes_per_s(amount: f64) -> Number {
    Number::new(amount, Unit::BytesPerSecond)
}

/// A share from 0 to 1.
pub(crate) fn percent(ratio: f64) -> Number {
    Number::new(ratio, Unit::Ratio)
}

/// A factor.
pub(crate) fn times(ratio: f64) -> Number {
    Number::new(ratio, Unit::Times)
}

/// A factor with its interval.
pub(crate) fn times_of(figure: &Figure) -> Number {
    figure.number(Unit::Times)
}

/// A bare number.
pub(crate) fn number(value: f64) -> Number {
    Number::new(value, Unit::Plain)
}

/// A configured number, with all its digits.
pub(crate) fn exact(value: f64) -> Number {
    Number::new(value, Unit::Exact)
}

/// Statements with their codes and values, for test assertions.
#[cfg(test)]
pub(crate) fn reported(statements: &[dyno_record::statement::Statement]) -> Vec<String> {
    statements.iter().map(ToString::to_string).collect()
}
