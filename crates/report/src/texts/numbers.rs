//! Number formats of sentences: the filters of the catalogue.
//!
//! | Filter | Writes |
//! |---|---|
//! | `full` | the digits used in tables |
//! | `exact` | all digits, for settings; also for a list |
//! | `digits(n)`, `scientific` | a bare number with `n` decimals, or with an exponent |
//! | `signed`, `size` | with its sign, without it |
//! | `rising(a, b)` | `a` for numbers above zero, else `b` |
//! | `count(one, several)`, `plural(one, several)` | the number with its noun, or only the noun |
//! | `interval`, `known` | ` (95 % interval 9 to 11)` if there is one; else nothing, or a note that there is none |
//! | `low`, `high`, `between` | the ends of the interval; `between` adds the value |
//! | `change`, `changes` | a ratio, and its interval, as a change: `5.2 % higher`, `+1.0 % to +9.0 %` |
//! | `more` | a ratio before a noun: `8.0 % more`, `2.3 times the` |
//! | `many`, `short` | `3.1 million`; `32 KiB` without trailing zeros |
//! | `list` | `a, b and c` |

use super::Figure;
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement::Number;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};

/// Ratios from this value on are written as a factor instead of a percentage.
const MANY_TIMES: f64 = 2.0;

pub(super) fn add_filters(catalogue: &mut Environment<'_>) {
    catalogue.add_filter("full", |value: &Value| on(value, |it| full(it.quantity())));
    catalogue.add_filter("exact", exact);
    catalogue.add_filter("digits", |value: &Value, digits: usize| {
        on(value, |it| bare(it, |value| format!("{value:.digits$}")))
    });
    catalogue.add_filter("scientific", |value: &Value| {
        on(value, |it| bare(it, |value| format!("{value:.2e}")))
    });
    catalogue.add_filter("signed", |value: &Value| on(value, signed));
    catalogue.add_filter("size", |value: &Value| {
        on(value, |it| full(with(it, it.value.map(f64::abs)).quantity()))
    });
    catalogue.add_filter("rising", |value: &Value, rises: String, falls: String| {
        let is_above = |it: &Number| it.value.is_some_and(|value| value > 0.0);
        on(value, |it| if is_above(it) { rises } else { falls })
    });
    catalogue.add_filter("count", |value: &Value, one: String, several: String| {
        plural(value, one, several).map(|what| format!("{value} {what}"))
    });
    catalogue.add_filter("plural", plural);
    catalogue.add_filter("interval", |value: &Value| on(value, interval));
    catalogue.add_filter("known", |value: &Value| {
        on(value, |it| match it.low {
            Some(_) => interval(it),
            None => " (no interval: too little was measured)".to_owned(),
        })
    });
    catalogue.add_filter("low", |value: &Value| on(value, |it| end(it, it.low)));
    catalogue.add_filter("high", |value: &Value| on(value, |it| end(it, it.high)));
    catalogue.add_filter("between", |value: &Value| {
        on(value, |it| format!("{it} ({})", low_to_high(it)))
    });
    catalogue.add_filter("change", |value: &Value| on(value, |it| bare(it, change)));
    catalogue.add_filter("changes", |value: &Value| {
        on(value, |it| match (it.low, it.high) {
            (None, None) => "no interval".to_owned(),
            ends => {
                let [low, high] = [ends.0, ends.1].map(|end| signed(&as_change(end)));
                format!("{low} to {high}")
            }
        })
    });
    catalogue.add_filter("more", |value: &Value| on(value, |it| bare(it, more)));
    catalogue.add_filter("many", |value: &Value| on(value, many));
    catalogue.add_filter("short", |value: &Value| on(value, |it| short(&it.to_string())));
    catalogue.add_filter("list", list);
    catalogue.add_filter("join", |values: &Value, between: &str| {
        each(values).map(|words| words.join(between))
    });
}

/// The values of a list as texts. A missing list is an error, not an empty list.
fn each(values: &Value) -> Result<Vec<String>, Error> {
    present(values)?;
    Ok(values.try_iter()?.map(|word| word.to_string()).collect())
}

fn present(value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(())
}

/// Applies `write` to a number.
fn on(value: &Value, write: impl FnOnce(&Number) -> String) -> Result<String, Error> {
    let figure = value.downcast_object_ref::<Figure>();
    let text = || format!("`{value}` is not a number");
    let figure = figure.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, text()))?;
    Ok(write(&figure.0))
}

fn bare(number: &Number, write: impl FnOnce(f64) -> String) -> String {
    let unknown = || "unknown".to_owned();
    number.value.map_or_else(unknown, write)
}

fn full(quantity: Option<Quantity>) -> String {
    quantity.map_or_else(|| "unknown".to_owned(), |quantity| quantity.to_string())
}

fn with(number: &Number, value: Option<f64>) -> Number {
    Number { value, ..*number }
}

fn end(number: &Number, end: Option<f64>) -> String {
    with(number, end).to_string()
}

/// All digits; rates with their unit.
fn exact(value: &Value) -> Result<Value, Error> {
    present(value)?;
    if value.downcast_object_ref::<Figure>().is_none() {
        let values = value.try_iter()?.map(|one| exact(&one));
        return values.collect::<Result<Value, Error>>();
    }
    let unit = |it: &Number| if it.unit == Unit::PerSecond { "/s" } else { "" };
    let text = on(value, |it| bare(it, |value| format!("{}{}", Quantity::exact(value), unit(it))));
    text.map(Value::from)
}

/// The singular or plural noun; for a list with one element, by that element.
fn plural(value: &Value, one: String, several: String) -> Result<String, Error> {
    present(value)?;
    let mut only = value.clone();
    if value.downcast_object_ref::<Figure>().is_none() {
        let mut values = value.try_iter()?;
        match (values.next(), values.next()) {
            (Some(first), None) => only = first,
            _ => return Ok(several),
        }
    }
    on(&only, |it| if it.value == Some(1.0) { one } else { several })
}

/// With a sign, except for a ratio that rounds to zero.
fn signed(number: &Number) -> String {
    let is_nothing = |value: f64| number.unit == Unit::Ratio && value.abs() < 0.000_5;
    match number.quantity() {
        Some(quantity) if is_nothing(quantity.value()) => "0.0 %".to_owned(),
        quantity => full(quantity.map(|quantity| quantity.brief().signed())),
    }
}

fn interval(number: &Number) -> String {
    if number.low.or(number.high).is_none() {
        return String::new();
    }
    // Without digits from binary fractions.
    let percent = (number.confidence_ratio.unwrap_or(0.95) * 1e6).round() / 1e4;
    let percent = Quantity::exact(percent);
    format!(" ({percent} % interval {})", low_to_high(number))
}

fn low_to_high(number: &Number) -> String {
    let low = end(number, number.low);
    match number.high {
        Some(_) => format!("{low} to {}", end(number, number.high)),
        None => format!("{low} or more"),
    }
}

/// A ratio as a change.
fn as_change(ratio: Option<f64>) -> Number {
    Number::new(ratio.unwrap_or(f64::NAN) - 1.0, Unit::Ratio)
}

fn change(ratio: f64) -> String {
    let word = if ratio >= 1.0 { "higher" } else { "lower" };
    let size = Quantity::ratio((ratio - 1.0).abs()).brief();
    format!("{size} {word}")
}

fn more(ratio: f64) -> String {
    let size = Quantity::ratio((ratio - 1.0).abs()).brief();
    match ratio {
        ratio if ratio >= MANY_TIMES => format!("{} times the", Quantity::times(ratio)),
        ratio if ratio >= 1.0 => format!("{size} more"),
        _ => format!("{size} less"),
    }
}

fn many(number: &Number) -> String {
    bare(number, |value| match value {
        value if value >= 1e9 => format!("{:.1} billion", value / 1e9),
        value if value >= 1e6 => format!("{:.1} million", value / 1e6),
        value if value.fract() == 0.0 => Quantity::count(value as u64).to_string(),
        value => Quantity::plain(value).brief().to_string(),
    })
}

/// Without trailing zeros: `32 KiB`, `1.5 MiB`.
pub(crate) fn short(text: &str) -> String {
    let Some((number, unit)) = text.split_once(' ') else {
        return text.to_owned();
    };
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}

fn list(values: &Value) -> Result<String, Error> {
    Ok(super::list(&each(values)?))
}
