//! Words for times.

use dyno_analyze::verdict::TimeRange;
use dyno_record::quantity::Quantity;

/// Times within this distance count as equal: windows are seldom shorter.
const SAME_S: f64 = 1.0;

/// A part of the measured time in words, relative to its start: `from 30.9 s on`.
pub(super) fn when(start_s: f64, end_s: f64, measured: Option<TimeRange>) -> String {
    let Some(measured) = measured else {
        return String::new();
    };
    let time = |at_s: f64| Quantity::seconds((at_s - measured.start_s).max(0.0));
    let from_start = start_s <= measured.start_s + SAME_S;
    let to_end = end_s >= measured.end_s - SAME_S;
    match (from_start, to_end) {
        (true, true) => "all the measured time".to_owned(),
        (true, false) => format!("in the first {} of the measured time", time(end_s)),
        (false, true) => format!("from {} of the measured time to its end", time(start_s)),
        (false, false) => format!("from {} to {} of the measured time", time(start_s), time(end_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_start_of_the_measured_time() {
        let measured = Some(TimeRange { start_s: 6.0, end_s: 66.0 });
        let times = [(6.0, 66.0), (6.4, 36.0), (36.0, 65.2), (16.0, 26.0)];
        let words = times.map(|(start_s, end_s)| when(start_s, end_s, measured));
        insta::assert_snapshot!(words.join("\n"), @r"
        all the measured time
        in the first 30.0 s of the measured time
        from 30.0 s of the measured time to its end
        from 10.0 s to 20.0 s of the measured time
        ");
    }
}
