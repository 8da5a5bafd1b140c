//! Formats of figures with intervals.

use crate::page;
use crate::page::table::{Cell, Tone};
use dyno_analyze::uncertainty::series::MIN_BEYOND_PERCENTILE;
use dyno_record::experiment::{Demand, Figure, Level};
use dyno_record::quantity::Quantity;

/// The ends of an interval: `247–781 µs`, or `0.50 ms – 2.1 s` with different units.
pub(crate) fn interval(low: Quantity, high: Quantity) -> String {
    let ((low, low_unit), (high, high_unit)) = (low.parts(), high.parts());
    if low_unit == high_unit {
        format!("{low}–{high}{high_unit}")
    } else {
        format!("{low}{low_unit} – {high}{high_unit}")
    }
}

/// The interval of a figure, if it has one.
pub(crate) fn interval_of(figure: &Figure, quantity: fn(f64) -> Quantity) -> Option<String> {
    let (low, high) = figure.low.zip(figure.high)?;
    Some(interval(quantity(low), quantity(high)))
}

/// The interval of a headline, or the reason why it has none: `95 % 247–781 µs`, `no interval: too few windows`.
pub(crate) fn interval_or_why(figure: &Figure, quantity: fn(f64) -> Quantity, why: &str) -> String {
    match interval_of(figure, quantity) {
        Some(range) => format!("95 % {range}"),
        None => format!("no interval: {why}"),
    }
}

/// Reason for a rate, mean or percentile of a run without an interval.
pub(crate) const TOO_SHORT: &str = "too few windows";

/// Reason for a rate, mean or percentile without an interval although the run has many windows.
pub(crate) const CORRELATED: &str = "correlated windows";

/// Reason for a high percentile without an interval.
pub(crate) const TOO_FEW_BEYOND: &str = "too few operations beyond it";

/// Reason for a value derived from a demand without an interval.
pub(crate) const ERROR_NOT_KNOWN: &str = "its error is unknown";

/// A cell with the value, and the interval below it.
pub(crate) fn cell(figure: Option<&Figure>, quantity: fn(f64) -> Quantity) -> Cell {
    let Some(figure) = figure else {
        return Cell::default();
    };
    Cell::from(quantity(figure.value)).with_detail(interval_of(figure, quantity))
}

/// The bound from a demand with its interval, and the share of the bound that the highest rate reached.
pub(crate) fn bound_of_rate(
    demand: &Demand,
    bound: Option<Figure>,
    rate_per_s: f64,
) -> page::Figure {
    // Documents of versions that did not estimate the bound have only the demand.
    let bound = bound.unwrap_or_else(|| Figure::bare(demand.saturation_rate_per_s().value));
    let range = interval_or_why(&bound, Quantity::per_second, ERROR_NOT_KNOWN);
    let reached = Quantity::ratio(rate_per_s / bound.value);
    let above = match bound.high {
        Some(high) if rate_per_s > high => ", more than its error",
        Some(_) if rate_per_s > bound.value => ", within its error",
        _ => "",
    };
    page::Figure::new("bound of the rate", Quantity::per_second(bound.value))
        .with_note(format!("{}, {range}, {reached} reached{above}", demand.name))
}

/// Why a rate, mean or percentile of a level has no interval, if it has none.
pub(crate) fn no_interval_of(level: &Level) -> &'static str {
    if level.runs.len() > 1 { "too few repetitions" } else { TOO_SHORT }
}

/// Why the 99th percentile of a level has no interval, if it has none.
pub(crate) fn no_interval_of_p99(level: &Level) -> &'static str {
    if level.succeeded as f64 * 0.01 < MIN_BEYOND_PERCENTILE {
        TOO_FEW_BEYOND
    } else {
        no_interval_of(level)
    }
}

/// A time in seconds.
pub(crate) fn seconds(value: f64) -> Quantity {
    Quantity::microseconds(value * 1e6)
}

/// A share that should be 0; empty if it is.
pub(super) fn unwanted(ratio: f64) -> Cell {
    if ratio > 0.0 { Cell::new(Quantity::ratio(ratio), Tone::Alarm) } else { Cell::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_an_interval_share_their_unit_where_they_can() {
        let us = Quantity::microseconds;
        assert_eq!(interval(us(247.0), us(781.0)), "247–781 µs");
        assert_eq!(interval(us(500.0), us(2_100.0)), "500 µs – 2.10 ms");
        let rate = Quantity::per_second;
        assert_eq!(interval(rate(5_100.0), rate(16_229.0)), "5,100–16,229/s");
    }

    #[test]
    fn a_figure_without_an_interval_is_its_value_alone() {
        let cell = cell(Some(&Figure::bare(12.0)), Quantity::per_second);
        assert_eq!((cell.text.as_str(), cell.detail), ("12.00/s", None));
        assert_eq!(super::cell(None, Quantity::per_second), Cell::default());
        assert_eq!(unwanted(0.0), Cell::default());
    }
}
