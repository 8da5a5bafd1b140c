//! Parsers for option values.

use dyno_fleet::options::Hidden;
use dyno_plan::units::{Rate, Span, UnitError};
use dyno_record::experiment::{ComparedFigure, Limit};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

/// Parses a number with a unit.
pub(super) fn quantity<T: FromStr<Err = UnitError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

/// Parses a time above 0.
pub(super) fn span_above_0(text: &str) -> Result<Span, String> {
    match quantity::<Span>(text)? {
        Span(Duration::ZERO) => Err("it must be above 0".into()),
        span => Ok(span),
    }
}

/// Parses a limit of a response time. It needs a unit: seconds, as elsewhere, are rarely meant.
pub(super) fn latency(text: &str) -> Result<Span, String> {
    let number = text.trim();
    if number.parse::<f64>().is_ok_and(|number| number > 0.0) {
        return Err(format!("it needs a unit: `{number}ms` or `{number}s`?"));
    }
    span_above_0(text)
}

/// Parses a whole number: `10000`, `10k`, `2M` or `2m`.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let text = &text.strip_suffix('m').map_or(text.to_owned(), |number| format!("{number}M"));
    let short = text.strip_suffix(['k', 'K', 'M']).and(text.parse::<Rate>().ok());
    match (text.parse::<u64>(), short) {
        (Ok(number), _) => Ok(number),
        (Err(_), Some(Rate(number))) if number.fract() == 0.0 && number < 1e15 => Ok(number as u64),
        _ => Err("it must be a whole number, such as `10000` or `10k`".into()),
    }
}

/// Parses a time: a day in UTC (its start), RFC 3339, or an age such as `7d`.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    day(text).map_or_else(|| time_or_age(text), Ok)
}

/// Parses a time like [`moment`]; a day means its end.
pub(super) fn until(text: &str) -> Result<Timestamp, String> {
    const DAY: Duration = Duration::from_secs(86_400);
    let end = |day: Timestamp| day.checked_add(DAY).map_err(|error| error.to_string());
    day(text).map_or_else(|| time_or_age(text), end)
}

/// Start of a day in UTC.
fn day(text: &str) -> Option<Timestamp> {
    let day: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == "2026-08-22".len())?;
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn time_or_age(text: &str) -> Result<Timestamp, String> {
    let age = || {
        // A bare number is rather a year than a number of seconds.
        let span: Span = text.parse().ok().filter(|_| text.ends_with(char::is_alphabetic))?;
        Timestamp::now().checked_sub(span.0).ok()
    };
    text.parse().ok().or_else(age).ok_or_else(|| {
        "it must be a day such as `2026-08-22`, a time such as `2026-08-22T10:15:00Z`, or an age such as `7d`".into()
    })
}

/// Parses the one number of an option that other commands take a list for.
pub(super) fn one_number(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| "it must be one whole number, such as `16`".into())
}

/// Removes blanks around a text.
pub(super) fn trimmed(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

/// Keeps a text out of messages.
pub(super) fn hidden(text: &str) -> Result<Hidden, Infallible> {
    Ok(Hidden::new(text))
}

/// Parses a percentile above 0 and below 100 with a time: `75=5ms`.
pub(super) fn percentile(text: &str) -> Result<(f64, Span), String> {
    let (percent, time) =
        text.split_once('=').ok_or("it must be `PERCENT=TIME`, such as `75=5ms`")?;
    match percent.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok((percent, latency(time)?)),
        _ => Err("the percentile must be above 0 and below 100, such as in `75=5ms`".into()),
    }
}

/// Parses `KEY=VALUE` and trims both.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("it must be `KEY=VALUE`, such as `server.cache=1GiB`".into()),
    }
}

/// Parses a share, `5%` or `0.05`, without a range check.
fn any_share(text: &str) -> Option<f64> {
    let (number, of) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    Some(number / of)
}

/// Parses a share above 0 and below 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    any_share(text)
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "it must be above 0 and below 1, such as `5%` or `0.05`".into())
}

/// Parses a figure of a comparison with a share above 0: `p99=10%`. A rate cannot fall by 100 % or more; a time can
/// rise by more, but only with the percent sign: `p99=10` rather means 10 %.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let (figure, margin) =
        text.split_once('=').ok_or("it must be `FIGURE=SHARE`, such as `p99=10%`")?;
    let figure: ComparedFigure = figure.trim().parse()?;
    let margin = margin.trim();
    match any_share(margin).filter(|share| *share > 0.0 && share.is_finite()) {
        None => Err(format!("the share must be above 0, such as `{figure}=10%`")),
        Some(share) if share < 1.0 => Ok(Limit { figure, margin_ratio: share }),
        Some(_) if figure.larger_is_better() => Err(format!(
            "a {figure} cannot fall by 100 % or more: give less, such as `{figure}=10%`"
        )),
        Some(share) if margin.ends_with('%') => Ok(Limit { figure, margin_ratio: share }),
        Some(share) => {
            let limit = Limit { figure, margin_ratio: share };
            Err(format!(
                "a share of 1 or more needs a percent sign: `{figure}={margin}%` or `{limit}`?"
            ))
        }
    }
}

/// Parses a share that may be 0. The plan checks the range, together with its other errors.
pub(super) fn share_or_none(text: &str) -> Result<f64, String> {
    any_share(text).ok_or_else(|| "it must be from 0 to 1, such as `1%` or `0.01`".into())
}

/// Parses a share above 0 and at most 1.
pub(super) fn share_or_all(text: &str) -> Result<f64, String> {
    match text.trim() {
        "100%" | "1" => Ok(1.0),
        text => share(text)
            .map_err(|_| "it must be above 0 and at most 1, such as `5%` or `0.05`".into()),
    }
}

/// Accepts numbers separated by dots, with an optional suffix after `-`.
pub(super) fn server_version(text: &str) -> Result<String, String> {
    let numbers = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let release = text.split('-').next().unwrap_or_default();
    if release.split('.').all(numbers) {
        Ok(text.to_owned())
    } else {
        Err("a version consists of numbers separated by dots, such as `8.0.3`".into())
    }
}

/// Parses a SHA-256 in hexadecimal digits and returns it in lower case.
pub(super) fn sha256(text: &str) -> Result<String, String> {
    let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a SHA-256 has 64 hexadecimal digits, as `sha256sum FILE` prints them".into())
    }
}

/// Parses `NAME=VALUE`; the value is kept as it is.
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_reads_suffixes_and_refuses_fractions() {
        for (text, number) in [
            ("0", 0),
            ("7", 7),
            ("10k", 10_000),
            ("1.5k", 1_500),
            ("2M", 2_000_000),
            ("20m", 20_000_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "-1", "1.5", "k", "1.0005k", "10k/s", "1e3", "99999999999M"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn day_begins_or_ends_and_an_age_is_before_now() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(moment("2026-08-22"), Ok(at("2026-08-22T00:00:00Z")));
        assert_eq!(until("2026-08-22"), Ok(at("2026-08-23T00:00:00Z")));
        assert!(until("9999-12-30").is_err());
        for parse in [moment, until] {
            assert_eq!(parse("2026-08-22T10:15:00Z"), Ok(at("2026-08-22T10:15:00Z")));
            let age = Timestamp::now().duration_since(parse("7d").unwrap());
            assert!((age.as_secs() - 7 * 86_400).abs() < 60, "{age}");
            for text in ["", "yesterday", "2026-08-32", "2026"] {
                assert!(parse(text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn span_above_0_refuses_zero_and_below() {
        assert_eq!(span_above_0("1ns"), Ok(Span(Duration::from_nanos(1))));
        for text in ["0", "0ms", "-1s", ""] {
            assert!(span_above_0(text).is_err(), "{text}");
        }
    }

    #[test]
    fn latency_needs_a_unit() {
        for text in ["5ms", "5 ms", "1s500ms"] {
            assert_eq!(latency(text), quantity(text), "{text}");
        }
        for text in ["5", " 0.5 ", "1e3"] {
            let hint = format!("`{}ms`", text.trim());
            assert!(latency(text).is_err_and(|error| error.contains(&hint)), "{text}");
            assert!(percentile(&format!("75={text}")).is_err(), "{text}");
        }
        for text in ["0", "0ms", "-5", ""] {
            assert!(latency(text).is_err(), "{text}");
        }
    }

    #[test]
    fn share_or_none_reads_fractions_and_percent() {
        for (text, share) in [
            ("0", 0.0),
            ("0.01", 0.01),
            ("1%", 0.01),
            (" 7 % ", 0.07),
            ("0.1%", 0.001),
            ("100%", 1.0),
            // The plan refuses these.
            ("2", 2.0),
            ("-1%", -0.01),
        ] {
            assert_eq!(share_or_none(text), Ok(share), "{text}");
        }
        for text in ["", "%", "few", "1%%", "1 percent"] {
            assert!(share_or_none(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limit_above_100_percent_needs_a_time_and_a_percent_sign() {
        for (text, margin_ratio) in
            [("p99=10%", 0.1), ("p99.9=0.05", 0.05), ("p99=+150%", 1.5), ("mean = 100 %", 1.0)]
        {
            assert_eq!(limit(text).map(|limit| limit.margin_ratio), Ok(margin_ratio), "{text}");
        }
        for text in ["p99=0", "p99=-5%", "p99=inf%", "p99=nan", "rate=100%", "rate=150%", "p99"] {
            assert!(limit(text).is_err(), "{text}");
        }
        let unclear = limit("p99=10").unwrap_err();
        assert!(unclear.contains("`p99=10%` or `p99=1000%`"), "{unclear}");
    }

    #[test]
    fn share_or_all_takes_at_most_100_percent() {
        assert_eq!(share_or_all("100%"), Ok(1.0));
        assert_eq!(share_or_all(" 1 "), Ok(1.0));
        assert_eq!(share_or_all("5%"), Ok(0.05));
        for text in ["101%", "0", "-1", "1.1"] {
            assert!(share_or_all(text).is_err(), "{text}");
            assert!(share(text).is_err(), "{text}");
        }
        assert!(share("100%").is_err());
    }
}
