//! Figures and lists as they stand in sentences: three digits that count, with their unit. Tables have
//! more digits and another formatter.

use super::figures::Figure;

/// Digits of a figure in a sentence.
const DIGITS: i32 = 3;

/// A rate: `41,700/s`.
pub(crate) fn rate(per_s: f64) -> String {
    format!("{}/s", number(per_s))
}

/// A time that is given in seconds: `48.0 µs`.
pub(crate) fn time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let rounded = round(seconds);
    let fits = UNITS
        .iter()
        .find(|(size, _)| rounded >= size * (1.0 - 1e-9));
    let (size, unit) = fits.copied().unwrap_or(UNITS[2]);
    format!("{} {unit}", number(seconds / size))
}

/// An amount of data, in units of 1024: `4.00 MiB`.
pub(crate) fn bytes(amount: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (amount.abs().max(1.0).log2() / 10.0).floor() as usize;
    let power = power.min(UNITS.len() - 1);
    format!(
        "{} {}",
        number(amount / 1024f64.powi(power as i32)),
        UNITS[power]
    )
}

/// A share of 0 to 1: `93 %`.
pub(crate) fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    match value.abs() {
        size if size >= 9.95 || size == 0.0 => format!("{value:.0} %"),
        size if size >= 0.05 => format!("{value:.1} %"),
        // A share that rounds to nothing is not nothing.
        _ => "less than 0.1 %".to_owned(),
    }
}

/// How many times as large: `2.3`.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 10.0 => format!("{ratio:.0}"),
        ratio if ratio >= 1.095 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// A bare number with three digits that count and commas between thousands.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let rounded = round(value);
    let leading = rounded.abs().log10().floor() as i32;
    let decimals = (DIGITS - 1 - leading).clamp(0, 9) as usize;
    grouped(&format!("{rounded:.decimals$}"))
}

/// A number that was set, with all its digits: `12,500`.
pub(crate) fn exact(value: f64) -> String {
    grouped(&format!("{value}"))
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

fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let leading = value.abs().log10().floor() as i32;
    let power = 10f64.powi(DIGITS - 1 - leading);
    (value * power).round() / power
}

fn grouped(number: &str) -> String {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = match unsigned.find('.') {
        Some(point) => unsigned.split_at(point),
        None => (unsigned, ""),
    };
    let mut text = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits_that_count() {
        assert_eq!(rate(41_666.7), "41,700/s");
        assert_eq!(rate(0.512_3), "0.512/s");
        assert_eq!(number(999.6), "1,000");
        assert_eq!(number(2.475_9), "2.48");
        assert_eq!(number(-1_234_567.0), "-1,230,000");
        assert_eq!(exact(1_234_567.5), "1,234,567.5");
    }

    #[test]
    fn times_take_the_unit_that_fits_after_rounding() {
        assert_eq!(time(48e-6), "48.0 µs");
        assert_eq!(time(999.7e-6), "1.00 ms");
        assert_eq!(time(0.25), "250 ms");
        assert_eq!(time(3.0), "3.00 s");
        assert_eq!(time(0.22e-6), "0.220 µs");
    }

    #[test]
    fn a_small_share_is_never_called_nothing() {
        assert_eq!(percent(0.934), "93 %");
        assert_eq!(percent(0.051), "5.1 %");
        assert_eq!(percent(0.000_1), "less than 0.1 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn lists_end_with_and() {
        let words = ["4", "8", "16"].map(str::to_owned);
        assert_eq!(list(&words), "4, 8 and 16");
        assert_eq!(list(&words[..2]), "4 and 8");
        assert_eq!(list(&words[..1]), "4");
        assert_eq!(times(4.321), "4.3");
        assert_eq!(times(1.02), "1.02");
    }
}
