//! The probable cause of a periodic pattern: the recorded activity with the closest correlation to the affected
//! parts (Pearson's coefficient with the affected share of each window, at least [`LEAST_CORRELATION`]).

use super::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Correlation from which a recorded series matches a pattern.
pub const LEAST_CORRELATION: f64 = 0.5;

/// Fewest windows per period of a recorded series that can be evaluated.
const WINDOWS_PER_PERIOD: f64 = 4.0;

/// A recorded activity, in evenly spaced windows.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSeries {
    pub source: PatternSource,
    /// Start of its first window, in seconds from the start of the series with the pattern.
    pub start_s: f64,
    /// Length of a window in seconds.
    pub window_s: f64,
    /// For checkpoints, the share of each window in which one ran; for processes, CPU use in any unit.
    pub values: Vec<f64>,
}

/// A probable cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternSource {
    /// The server writes a checkpoint.
    Checkpoint,
    /// Other processes on the machine are busy.
    OtherProcesses,
}

/// A cause with its evidence: a recorded series that is higher in the affected parts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedPattern {
    pub source: PatternSource,
    /// Pearson's coefficient with the affected share of each window.
    pub correlation: f64,
    /// Mean of the recorded series in the affected parts, in its unit; for checkpoints, the share of time with a
    /// checkpoint.
    pub inside: f64,
    /// Mean of the recorded series in the rest.
    pub outside: f64,
}

/// Names the probable cause of a pattern; `None` if no recorded activity matches it.
pub fn name_pattern(pattern: &Pattern, recorded: &[RecordedSeries]) -> Option<NamedPattern> {
    let matching = recorded.iter().filter_map(|recorded| goes_with(pattern, recorded));
    let matching = matching.filter(|named| named.correlation >= LEAST_CORRELATION);
    matching.max_by(|a, b| a.correlation.total_cmp(&b.correlation))
}

/// `None` if the series is too coarse, too short or constant.
fn goes_with(pattern: &Pattern, recorded: &RecordedSeries) -> Option<NamedPattern> {
    let count = recorded.values.len() as f64;
    let periods = count * recorded.window_s / pattern.period_s;
    let is_fine = recorded.window_s * WINDOWS_PER_PERIOD <= pattern.period_s;
    if !is_fine || periods < super::FEWEST_PERIODS as f64 {
        return None;
    }
    let affected: Vec<f64> = (0..recorded.values.len())
        .map(|number| {
            let start_s = recorded.start_s + number as f64 * recorded.window_s;
            affected_share(pattern, start_s, recorded.window_s)
        })
        .collect();
    let mean = |values: &[f64], weight: &dyn Fn(f64) -> f64| {
        let weights: f64 = affected.iter().map(|share| weight(*share)).sum();
        let weighted = values.iter().zip(&affected).map(|(v, share)| v * weight(*share));
        weighted.sum::<f64>() / weights
    };
    let values = &recorded.values;
    let (all, all_affected) = (mean(values, &|_| 1.0), mean(&affected, &|_| 1.0));
    let pairs = || values.iter().zip(&affected).map(|(v, a)| (v - all, a - all_affected));
    let product: f64 = pairs().map(|(v, a)| v * a).sum();
    let squares: f64 = pairs().map(|(v, _)| v * v).sum();
    let affected_squares: f64 = pairs().map(|(_, a)| a * a).sum();
    let correlation = product / (squares * affected_squares).sqrt();
    correlation.is_finite().then(|| NamedPattern {
        source: recorded.source,
        correlation,
        inside: mean(values, &|share| share),
        outside: mean(values, &|share| 1.0 - share),
    })
}

/// The affected share of a window.
fn affected_share(pattern: &Pattern, start_s: f64, window_s: f64) -> f64 {
    // Affected time from the first occurrence to `time_s`, negative before it.
    let affected_until = |time_s: f64| {
        let periods = (time_s - pattern.phase_s) / pattern.period_s;
        let within = (periods - periods.floor()).min(pattern.affected_ratio);
        (periods.floor() * pattern.affected_ratio + within) * pattern.period_s
    };
    (affected_until(start_s + window_s) - affected_until(start_s)) / window_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::normal;

    fn pattern(period_s: f64) -> Pattern {
        Pattern {
            period_s,
            uncertainty_s: 0.01 * period_s,
            phase_s: 0.1 * period_s,
            height: -300.0,
            height_ratio: Some(-0.3),
            affected_ratio: 0.1,
            occurrences: 10,
            p_value_ratio: 1e-9,
        }
    }

    /// A series of 10 minutes that is high from `from_s` on for 6 of 60 s.
    fn busy(source: PatternSource, from_s: usize) -> RecordedSeries {
        let noise = normal(from_s as u64, 600).into_iter().enumerate();
        let value = |(place, e): (usize, f64)| {
            let is_busy = (place + 60 - from_s) % 60 < 6;
            (if is_busy { 0.9 } else { 0.1 }) + 0.05 * e
        };
        RecordedSeries { source, start_s: 0.0, window_s: 1.0, values: noise.map(value).collect() }
    }

    #[test]
    fn recorded_activity_decides_and_brings_its_evidence() {
        let mut recorded =
            [busy(PatternSource::OtherProcesses, 6), busy(PatternSource::Checkpoint, 6)];
        recorded[0].values[3] = 5.0;
        let named = name_pattern(&pattern(60.0), &recorded).unwrap();
        assert_eq!(named.source, PatternSource::Checkpoint);
        assert!(named.correlation > 0.9, "{named:?}");
        assert!((named.inside - 0.9).abs() < 0.05 && (named.outside - 0.1).abs() < 0.05);
        // Checkpoints at another time are not the cause.
        recorded[1] = busy(PatternSource::Checkpoint, 40);
        let named = name_pattern(&pattern(60.0), &recorded).unwrap();
        assert_eq!(named.source, PatternSource::OtherProcesses);
        assert_eq!(name_pattern(&pattern(60.0), &recorded[1..]), None);
        assert_eq!(name_pattern(&pattern(60.0), &[]), None);
    }

    #[test]
    fn too_coarse_or_too_short_series_is_not_evidence() {
        let others = || busy(PatternSource::OtherProcesses, 6);
        assert!(goes_with(&pattern(0.1), &others()).is_none());
        let mut short = others();
        short.values.truncate(150);
        assert!(goes_with(&pattern(60.0), &short).is_none());
    }

    #[test]
    fn affected_share_of_a_window_is_a_share_of_its_time() {
        let pattern = pattern(10.0);
        // Affected from 1 to 2, 11 to 12, and so on.
        let shares =
            [0.0, 0.5, 1.0, 1.5, 11.0, -9.0].map(|start| affected_share(&pattern, start, 1.0));
        for (share, expected) in shares.iter().zip([0.0, 0.5, 1.0, 0.5, 1.0, 1.0]) {
            assert!((share - expected).abs() < 1e-9, "{shares:?}");
        }
        assert!((affected_share(&pattern, 3.0, 20.0) - 0.1).abs() < 1e-9);
        assert!(pattern.affects(11.5) && !pattern.affects(12.5));
    }
}
