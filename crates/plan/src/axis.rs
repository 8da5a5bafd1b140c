//! Values of one plan key in an experiment: a list, or a range with steps.

use crate::units::Rate;
use std::str::FromStr;

/// A longer series is probably a typing error: at half a minute per point it would take four hours.
pub const MOST_VALUES: usize = 500;

/// A text is not a series of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// A number cannot be parsed, or is not above 0.
    #[error("`{text}` is not a number above 0, such as `8`, `500` or `20k`")]
    Number { text: String },
    /// A whole number is required.
    #[error("`{text}` is not a whole number")]
    Fraction { text: String },
    /// A range does not have the form `FIRST..LAST by STEP`.
    #[error(
        "`{text}` is not a range: write `FIRST..LAST by STEP`, such as `100..8000 by 2x` or `by 500`"
    )]
    Range { text: String },
    /// A range ends below its start.
    #[error("`{text}` ends below its start")]
    Backwards { text: String },
    /// A range has no values or too many.
    #[error("`{text}` has {count} values, but must have 1 to {MOST_VALUES}")]
    Count {
        text: String,
        /// Number of values; 0 if the range never ends.
        count: usize,
    },
}

/// Parses numbers above 0: `100,200,500`, `100..8000 by 2x`, `1..32 by 1`, or several of these
/// separated by commas. Numbers may have a suffix, such as `20k`. The last value of a range is
/// always included. The result ascends without duplicates.
///
/// # Errors
/// [`AxisError`] for the first invalid part.
pub fn numbers(text: &str) -> Result<Vec<f64>, AxisError> {
    let mut values = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once("..") {
            Some((first, rest)) => values.append(&mut range(part, first, rest)?),
            None => values.push(number(part)?),
        }
    }
    values.sort_by(f64::total_cmp);
    values.dedup();
    match values.len() {
        1..=MOST_VALUES => Ok(values),
        count => Err(AxisError::Count { text: text.to_owned(), count }),
    }
}

/// Like [`numbers`] for whole numbers. Intermediate steps are rounded, so `1..8 by 1.5x` is
/// allowed.
///
/// # Errors
/// [`AxisError`] for the first invalid part.
pub fn whole_numbers(text: &str) -> Result<Vec<f64>, AxisError> {
    let ends =
        text.split(',').flat_map(|part| part.split(" by ").next().unwrap_or(part).split(".."));
    let values = numbers(text)?;
    for end in ends {
        if number(end)?.fract() != 0.0 {
            return Err(AxisError::Fraction { text: end.trim().to_owned() });
        }
    }
    let mut values: Vec<f64> = values.into_iter().map(f64::round).collect();
    values.dedup();
    Ok(values)
}

fn number(text: &str) -> Result<f64, AxisError> {
    let text = text.trim();
    match Rate::from_str(text) {
        Ok(rate) => Ok(rate.0),
        Err(_) => Err(AxisError::Number { text: text.to_owned() }),
    }
}

fn range(whole: &str, first: &str, rest: &str) -> Result<Vec<f64>, AxisError> {
    let wrong = || AxisError::Range { text: whole.to_owned() };
    let (last, step) = rest.split_once(" by ").ok_or_else(wrong)?;
    let (first, last, step) = (number(first)?, number(last)?, step.trim());
    let next: Box<dyn Fn(f64) -> f64> = match step.strip_suffix('x') {
        Some(factor) => {
            let factor = number(factor)?;
            Box::new(move |value| value * factor)
        }
        None => {
            let step = number(step)?;
            Box::new(move |value| value + step)
        }
    };
    if first > last {
        return Err(AxisError::Backwards { text: whole.to_owned() });
    }
    let mut values = Vec::new();
    let mut value = first;
    // A step that almost reaches the last value counts as the last value.
    while value < last * (1.0 - 1e-9) {
        values.push(value);
        let following = next(value);
        if following <= value || values.len() > MOST_VALUES {
            return Err(AxisError::Count {
                text: whole.to_owned(),
                count: if following <= value { 0 } else { values.len() },
            });
        }
        value = following;
    }
    values.push(last);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_can_be_mixed() {
        assert_eq!(numbers("100,200, 50").unwrap(), [50.0, 100.0, 200.0]);
        assert_eq!(numbers("100..1000 by 2x").unwrap(), [100.0, 200.0, 400.0, 800.0, 1000.0]);
        assert_eq!(numbers("1..4 by 1,2,8").unwrap(), [1.0, 2.0, 3.0, 4.0, 8.0]);
        assert_eq!(numbers("1k..2k by 500").unwrap(), [1000.0, 1500.0, 2000.0]);
        assert_eq!(numbers("8..8 by 2x").unwrap(), [8.0]);
    }

    #[test]
    fn wrong_or_endless_ranges_are_refused() {
        for text in
            ["", "a", "1..5", "5..1 by 1", "1..5 by 1x", "1..9 by 0.5x", "0,1", "1..1k by 1"]
        {
            assert!(numbers(text).is_err(), "{text}");
        }
        let endless = AxisError::Count { text: "1..9 by 1x".into(), count: 0 };
        assert_eq!(numbers("1..9 by 1x"), Err(endless));
        let backwards = AxisError::Backwards { text: "5..1 by 2".into() };
        assert_eq!(numbers("5..1 by 2"), Err(backwards));
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        assert_eq!(whole_numbers("4,1,2").unwrap(), [1.0, 2.0, 4.0]);
        // 1, 1.5, 2.25 and 3.375 in between.
        assert_eq!(whole_numbers("1..5 by 1.5x").unwrap(), [1.0, 2.0, 3.0, 5.0]);
        for text in ["1.5", "1,2.5", "1.5..4 by 1", "1..4.5 by 1", "0.4"] {
            let error = whole_numbers(text).unwrap_err();
            assert!(matches!(error, AxisError::Fraction { .. }), "{text}");
        }
        assert!(whole_numbers("x").is_err());
    }
}
