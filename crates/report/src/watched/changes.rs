//! Changes over the measured time as sentences: level shifts, drifts and periodic patterns.

use crate::page::time::ChangeMark;
use crate::page::{Section, sentence};
use crate::rounding::{digits, rounded};
use crate::texts::list;
use dyno_analyze::periodicity::{NamedPattern, PatternSource};
use dyno_analyze::timeline::{
    Timeline, TimelineChange, TimelineDrift, TimelinePattern, TimelineSeries,
};
use dyno_analyze::verdict::TimeRange;
use dyno_record::quantity::{Quantity, Unit};

/// Changes of several series within this time are reported as one.
const TOGETHER_S: f64 = 5.0;
/// Shortest measured time for which a drift is also stated per hour; for less it would be an extrapolation.
const LONG_S: f64 = 900.0;

/// The changes, with lines that mark them in the charts; empty without changes.
pub(super) fn changes(
    timeline: &Timeline,
    measured: TimeRange,
) -> Option<(Section, Vec<ChangeMark>)> {
    let mut groups: Vec<Vec<&TimelineChange>> = Vec::new();
    for change in &timeline.changes {
        match groups.last_mut() {
            Some(group) if change.at_s - group[0].at_s <= TOGETHER_S => group.push(change),
            _ => groups.push(vec![change]),
        }
    }
    let steady = |drift: &&TimelineDrift| {
        let mut changes = timeline.changes.iter();
        !changes.any(|change| change.series == drift.series)
    };
    let drifts = timeline.drifts.iter().filter(steady);
    let drifts = drifts.map(|drift| drift_text(drift, measured.length_s()));
    let others = drifts.chain(timeline.patterns.iter().map(pattern_text)).collect();
    let (events, marks): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .enumerate()
        .map(|(index, group)| event(index + 1, group, measured))
        .unzip();
    let section = Section {
        title: "What changed over the measured time".into(),
        events,
        notes: others,
        ..Section::default()
    };
    (!section.events.is_empty() || !section.notes.is_empty()).then_some((section, marks))
}

/// Simultaneous changes of one or several series: a sentence, and the line in the charts.
fn event(
    number: usize,
    mut group: Vec<&TimelineChange>,
    measured: TimeRange,
) -> (String, ChangeMark) {
    let at_s = group[0].at_s;
    // Values seen by the client come before their causes.
    group.sort_by_key(|change| change.series as u8);
    let said: Vec<String> = group.iter().map(|change| change_text(change)).collect();
    let labels: Vec<String> = group
        .iter()
        .map(|change| {
            let arrow = if change.after < change.before { "↓" } else { "↑" };
            format!("{} {arrow}", words(change.series).1)
        })
        .collect();
    let after = Quantity::seconds((at_s - measured.start_s).max(0.0));
    let mark =
        ChangeMark { at_s: digits(at_s, 3), label: format!("{number}: {}", labels.join(", ")) };
    let text = sentence(&format!("after {after} {}", list(&said)));
    (text, mark)
}

fn change_text(change: &TimelineChange) -> String {
    let verb = if change.after < change.before { "fell" } else { "rose" };
    let (name, _, level) = words(change.series);
    let (before, after) = (level(change.before), level(change.after));
    format!("{name} {verb} from {before} to {after} ({})", chance(change.p_value_ratio))
}

/// Name in sentences, name in charts, and format with three digits.
fn words(series: TimelineSeries) -> (&'static str, &'static str, fn(f64) -> Quantity) {
    let per_s = |level: f64| Quantity::per_second(level).brief();
    let us = Quantity::microseconds;
    match series {
        TimelineSeries::RatePerS => ("the rate", "rate", per_s),
        TimelineSeries::ResponseMeanUs => ("the mean response time", "mean time", us),
        TimelineSeries::ResponseP99Us => ("the 99th percentile of the response time", "p99", us),
        TimelineSeries::DiskOperationsPerS => ("the disk's rate of operations", "disk", per_s),
    }
}

fn number(value: f64) -> String {
    Quantity::new(value, Unit::Parameter).to_string()
}

/// The probability that a series without a change looks like this.
fn chance(p_value: f64) -> String {
    match p_value {
        p if p < 1e-6 => "p < 10⁻⁶".to_owned(),
        p if p < 1e-3 => "p < 0.001".to_owned(),
        p => format!("p = {}", rounded(p, 2)),
    }
}

/// A round time without unneeded digits: `60 s`, `250 ms`.
fn span(seconds: f64) -> String {
    match seconds {
        long if long >= 1.0 => format!("{} s", rounded(long, 3)),
        short => Quantity::microseconds(short * 1e6).to_string(),
    }
}

fn drift_text(drift: &TimelineDrift, measured_s: f64) -> String {
    let found = &drift.drift;
    let by_hour = if measured_s >= LONG_S {
        format!(", {} per hour", amount(found.per_hour_ratio))
    } else {
        String::new()
    };
    let direction = if found.over_series_ratio < 0.0 { "fell" } else { "rose" };
    sentence(&format!(
        "{} {direction} gradually, {} over the measured time{by_hour} ({})",
        words(drift.series).0,
        amount(found.over_series_ratio),
        chance(found.p_value_ratio)
    ))
}

/// A change as a share of the first value, or as a multiple if it at least doubled.
fn amount(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.0 => format!("to {} times its start", Quantity::times(1.0 + ratio)),
        ratio => format!("by {}", Quantity::ratio(ratio.abs())),
    }
}

fn pattern_text(found: &TimelinePattern) -> String {
    let pattern = &found.pattern;
    let likely = match &found.name {
        Some(named) => format!(": {}", cause(named)),
        None => String::new(),
    };
    sentence(&format!(
        "every {}, for {}, {} is {}{likely}",
        span(pattern.period_s),
        span(pattern.period_s * pattern.affected_ratio),
        words(found.series).0,
        height(found)
    ))
}

/// The difference between the affected part and the rest.
fn height(found: &TimelinePattern) -> String {
    let (more, less, word) = match found.series {
        TimelineSeries::ResponseMeanUs | TimelineSeries::ResponseP99Us => {
            ("longer", "shorter", "long")
        }
        _ => ("higher", "lower", "high"),
    };
    match found.pattern.height_ratio {
        Some(ratio) if ratio >= 1.0 => format!("{} times as {word}", Quantity::times(1.0 + ratio)),
        Some(ratio) if ratio >= 0.0 => format!("{more} by {}", Quantity::ratio(ratio)),
        Some(ratio) => format!("{less} by {}", Quantity::ratio(-ratio)),
        None if found.pattern.height >= 0.0 => more.to_owned(),
        None => less.to_owned(),
    }
}

/// The probable cause of a pattern, with its evidence.
fn cause(named: &NamedPattern) -> String {
    let NamedPattern { source, inside, outside, .. } = *named;
    match source {
        PatternSource::OtherProcesses => format!(
            "other processes (they used {} CPUs then and {} at other times)",
            number(inside),
            number(outside)
        ),
        // Of long checkpoints, only the end is always reported.
        PatternSource::Checkpoint => format!(
            "checkpoint (one ran for {} of that time and {} of the rest)",
            Quantity::ratio(inside.clamp(0.0, 1.0)),
            Quantity::ratio(outside.clamp(0.0, 1.0))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_analyze::level_shifts::Drift;
    use dyno_analyze::periodicity::Pattern;

    const SERIES: TimelineSeries = TimelineSeries::ResponseMeanUs;

    fn drift(per_hour_ratio: f64, over_series_ratio: f64) -> TimelineDrift {
        TimelineDrift {
            series: SERIES,
            drift: Drift { per_hour_ratio, over_series_ratio, p_value_ratio: 0.0093 },
        }
    }

    #[test]
    fn a_short_run_is_not_extrapolated_to_an_hour() {
        let short = drift_text(&drift(2.6e204, 4905.1), 67.7);
        assert!(!short.contains("hour"), "{short}");
        let long = drift_text(&drift(-0.02, -0.04), 7_200.0);
        assert!(long.contains("hour"), "{long}");
        insta::assert_snapshot!(format!("{short}\n{long}"), @r"
        The mean response time rose gradually, to 4,906 times its start over the measured time (p = 0.0093).
        The mean response time fell gradually, by 4.00 % over the measured time, by 2.00 % per hour (p = 0.0093).
        ");
    }

    #[test]
    fn pattern_without_a_known_cause_is_shown() {
        let found = |series, height_ratio, period_s| TimelinePattern {
            series,
            pattern: Pattern {
                period_s,
                uncertainty_s: 0.01,
                phase_s: 0.0,
                height: height_ratio,
                height_ratio: Some(height_ratio),
                affected_ratio: 0.25,
                occurrences: 9,
                p_value_ratio: 1e-9,
            },
            name: None,
        };
        let lower = pattern_text(&found(TimelineSeries::RatePerS, -0.3, 10.0));
        let longer = pattern_text(&found(SERIES, 1.5, 2.0));
        insta::assert_snapshot!(format!("{lower}\n{longer}"), @r"
        Every 10 s, for 2.5 s, the rate is lower by 30.0 %.
        Every 2 s, for 500 ms, the mean response time is 2.5 times as long.
        ");
    }

    #[test]
    fn chances_are_shown_with_significant_digits() {
        let reported = [1e-30, 0.0002, 0.0042, 0.03].map(chance);
        assert_eq!(reported, ["p < 10⁻⁶", "p < 0.001", "p = 0.0042", "p = 0.03"]);
    }
}
