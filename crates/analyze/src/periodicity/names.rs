//! The probable cause of a periodic pattern: the recorded activity with the closest correlation to the affected
//! parts (Pearson's coefficient with the affected share of each window, at least [`LEAST_CORRELATION`]).

use super::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternSource {
    /// The server writes a checkpoint.
    Checkpoint,
    /// Another process on the machine is busy.
    OtherProcess { name: String },
}

impl fmt::Display for PatternSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternSource::Checkpoint => f.write_str("checkpoint"),
            PatternSource::OtherProcess { name } => write!(f, "other process {name}"),
        }
    }
}

/// Evidence for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceEvidence {
    /// A recorded series is higher in the affected parts.
    Correlation {
        /// Pearson's coefficient with the affected share of each window.
        correlation: f64,
        /// Mean of the recorded series in the affected parts, in its unit; for checkpoints, the share of time
        /// with a checkpoint.
        inside: f64,
        /// Mean of the recorded series in the rest.
        outside: f64,
    },
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedPattern {
    pub source: PatternSource,
    pub evidence: Vec<SourceEvidence>,
}

/// Names the probable cause of a pattern; `None` if no recorded activity matches it.
pub fn name_pattern(pattern: &Pattern, recorded: &[RecordedSeries]) -> Option<NamedPattern> {
    let matching = recorded.iter().filter_map(|recorded| {
        let evidence = goes_with(pattern, recorded)?;
        let SourceEvidence::Correlation { correlation, .. } = evidence;
        (correlation >= LEAST_CORRELATION).then_some((correlation, recorded, evidence))
    });
    let (_, closest, evidence) = matching.max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    Some(NamedPattern { source: closest.source.clone(), evidence: vec![evidence] })
}

/// `None` if the series is too coarse, too short or constant.
fn goes_with(pattern: &Pattern, recorded: &RecordedSeries) -> Option<SourceEvidence> {
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
    correlation.is_finite().then(|| SourceEvidence::Correlation {
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

    fn process(name: &str) -> PatternSource {
        PatternSource::OtherProcess { name: name.to_owned() }
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
        let mut recorded = vec![
            busy(PatternSource::Checkpoint, 6),
            busy(process("java"), 30),
            busy(process("backup"), 6),
        ];
        recorded[2].values[3] = 5.0;
        let named = name_pattern(&pattern(60.0), &recorded).unwrap();
        assert_eq!(named.source, PatternSource::Checkpoint);
        let SourceEvidence::Correlation { correlation, inside, outside } = named.evidence[0];
        assert!(correlation > 0.9, "{correlation}");
        assert!((inside - 0.9).abs() < 0.05 && (outside - 0.1).abs() < 0.05);
        // Checkpoints at another time are not the cause.
        recorded[0] = busy(PatternSource::Checkpoint, 40);
        let named = name_pattern(&pattern(60.0), &recorded).unwrap();
        assert_eq!(named.source, process("backup"));
        recorded.truncate(2);
        assert_eq!(name_pattern(&pattern(60.0), &recorded), None);
        assert_eq!(name_pattern(&pattern(60.0), &[]), None);
    }

    #[test]
    fn too_coarse_or_too_short_series_is_not_evidence() {
        let java = || busy(process("java"), 6);
        assert!(goes_with(&pattern(0.1), &java()).is_none());
        let mut short = java();
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
