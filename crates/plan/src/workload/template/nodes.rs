//! Reads numbers, texts, dates and times from single nodes, and the lines of files that they name.

use super::constant;
use super::error::{Mistake, TemplateErrorKind as Kind, shortened};
use super::tree::{Node, NodeKind};
use crate::units::Span;
use bson::Bson;

/// Digits of the largest `%decimal`, so that its units fit into 64 bits.
pub(super) const MAX_DIGITS: usize = 18;

pub(super) fn list<'a>(node: &'a Node, expected: &str) -> Result<&'a [Node], Mistake> {
    match &node.kind {
        NodeKind::Array(nodes) => Ok(nodes),
        _ => Err(node.misfit(expected)),
    }
}

pub(super) fn integer(node: &Node, expected: &str) -> Result<i64, Mistake> {
    match &node.kind {
        NodeKind::Constant(Bson::Int32(integer)) => Ok(i64::from(*integer)),
        NodeKind::Constant(Bson::Int64(integer)) => Ok(*integer),
        _ => Err(node.misfit(expected)),
    }
}

/// A finite number.
pub(super) fn double(node: &Node, expected: &str) -> Result<f64, Mistake> {
    match &node.kind {
        NodeKind::Constant(Bson::Double(double)) if double.is_finite() => Ok(*double),
        _ => integer(node, expected).map(|integer| integer as f64),
    }
}

pub(super) fn probability(node: &Node) -> Result<f64, Mistake> {
    let value = double(node, "a number from 0 to 1")?;
    number_in(node, value, 0.0, 1.0, "share")?;
    Ok(value)
}

pub(super) fn number_in(
    node: &Node,
    value: f64,
    min: f64,
    max: f64,
    name: &str,
) -> Result<(), Mistake> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let expected = format!("a number from {min} to {max}");
    Err(Mistake::new(node.offset, Kind::Range, format!("{value} as {name}"), expected))
}

pub(super) fn ordered<T: std::fmt::Display>(
    second: &Node,
    min: T,
    max: T,
    is_ordered: bool,
) -> Result<(), Mistake> {
    if is_ordered {
        return Ok(());
    }
    let mistake = Mistake::new(
        second.offset,
        Kind::Range,
        format!("the end {max}"),
        format!("at least {min}"),
    );
    Err(mistake.suggest(Some(format!("[{max}, {min}]"))))
}

pub(super) fn text<'a>(node: &'a Node, expected: &str) -> Result<&'a str, Mistake> {
    match &node.kind {
        NodeKind::Text(text) => Ok(text),
        _ => Err(node.misfit(expected)),
    }
}

pub(super) fn non_empty_text<'a>(node: &'a Node, expected: &str) -> Result<&'a str, Mistake> {
    match text(node, expected)? {
        "" => Err(Mistake::new(node.offset, Kind::Range, "an empty string", expected)),
        text => Ok(text),
    }
}

pub(super) fn texts(node: &Node) -> Result<Vec<String>, Mistake> {
    list(node, "a list of strings")?
        .iter()
        .map(|node| text(node, "a string").map(str::to_owned))
        .collect()
}

/// Reads a file by its name in the template; an error says why it cannot.
pub(super) type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The lines of a file that are not empty. `node` names the file.
pub(super) fn lines(
    read_file: ReadFile<'_>,
    node: &Node,
    file: &str,
) -> Result<Vec<String>, Mistake> {
    let text = read_file(file).map_err(|reason| {
        let found = format!("the file `{}`", shortened(file));
        Mistake::new(node.offset, Kind::File, found, format!("a readable file: {reason}"))
    })?;
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Milliseconds since 1970 of a date, as a string, `ISODate(…)`, or an integer.
pub(super) fn date_ms(node: &Node) -> Result<i64, Mistake> {
    const EXPECTED: &str = "a date such as \"2026-01-31\" or \"2026-01-31T12:00:00Z\"";
    let misfit = || node.misfit(EXPECTED);
    match &node.kind {
        NodeKind::Text(text) => constant::date_ms(text).ok_or_else(misfit),
        NodeKind::Constant(Bson::DateTime(date)) => Ok(date.timestamp_millis()),
        NodeKind::Document(entries) => match constant::extended_json(node.offset, entries)? {
            Some(Bson::DateTime(date)) => Ok(date.timestamp_millis()),
            _ => Err(misfit()),
        },
        _ => integer(node, EXPECTED),
    }
}

/// Whole milliseconds of a time such as `10s`.
pub(super) fn span_ms(node: &Node) -> Result<i64, Mistake> {
    let text = text(node, "a time such as \"10s\"")?;
    let Span(span) =
        text.parse().map_err(|error| node.misfit(format!("a time such as \"10s\": {error}")))?;
    let has_rest = span.subsec_nanos() % 1_000_000 != 0;
    i64::try_from(span.as_millis())
        .ok()
        .filter(|_| !has_rest)
        .ok_or_else(|| node.misfit("whole milliseconds"))
}

/// The digits of a decimal number.
pub(super) fn decimal_text(node: &Node) -> Result<(&Node, String), Mistake> {
    let text = match &node.kind {
        NodeKind::Text(text) => text.clone(),
        NodeKind::Constant(Bson::Decimal128(decimal)) => decimal.to_string(),
        _ => double(node, "a decimal number such as \"0.01\"")?.to_string(),
    };
    Ok((node, text))
}

pub(super) fn fraction_digits(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// A decimal number in units of its last digit, with a number of digits behind the point.
pub(super) fn decimal_units(text: &str, digits: usize) -> Option<i64> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_number = !whole.is_empty()
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || digits > MAX_DIGITS {
        return None;
    }
    let units: i64 = format!("{whole}{fraction:0<digits$}").parse().ok()?;
    Some(sign * units)
}
