//! Formats numbers and times like Java in YCSB's status line.

/// Formats like `new DecimalFormat("#.##")`: at most two decimals, ties to even, no trailing zeros.
pub(super) fn two_decimals(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "∞".into() } else { "-∞".into() };
    }
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".into(),
        short => short.to_owned(),
    }
}

const DAY_S: u64 = 86_400;
const HOUR_S: u64 = 3_600;
const MINUTE_S: u64 = 60;

/// Formats YCSB's estimate: days and hours, hours and minutes, or seconds if less than a minute, each
/// followed by a space.
pub(super) fn remaining(mut seconds: u64) -> String {
    let mut text = String::new();
    let mut part = |count: u64, unit: &str| {
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            text.push_str(&format!("{count} {unit}{plural} "));
        }
    };
    let days = seconds / DAY_S;
    part(days, "day");
    seconds %= DAY_S;
    part(seconds / HOUR_S, "hour");
    seconds %= HOUR_S;
    if days == 0 {
        part(seconds / MINUTE_S, "minute");
        seconds %= MINUTE_S;
    }
    if text.is_empty() {
        let plural = if seconds == 1 { "" } else { "s" };
        return format!("{seconds} second{plural} ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and texts produced by Java's `DecimalFormat`.
    #[test]
    fn numbers_match_java() {
        for (value, text) in [
            (0.5, "0.5"),
            (0.0, "0"),
            (0.005, "0.01"),
            (0.015, "0.01"),
            (1.005, "1"),
            (12.345, "12.35"),
            (123_456.789, "123456.79"),
            (1e9, "1000000000"),
            (0.125, "0.12"),
            (0.135, "0.14"),
            (2.675, "2.67"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(two_decimals(value), text);
        }
    }

    #[test]
    fn estimate_has_at_most_two_units() {
        for (seconds, text) in [
            (0, "0 seconds "),
            (1, "1 second "),
            (59, "59 seconds "),
            (60, "1 minute "),
            (119, "1 minute "),
            (3_600, "1 hour "),
            (7_320, "2 hours 2 minutes "),
            (90_000, "1 day 1 hour "),
            (172_859, "2 days "),
            (i64::MAX as u64, "106751991167300 days 15 hours "),
        ] {
            assert_eq!(remaining(seconds), text);
        }
    }
}
