//! The probable cause of a periodic pattern: a recorded activity that correlates with it, or a server setting
//! with the same interval.
//!
//! Recorded series come first: the series with the closest correlation to the affected parts is named
//! (Pearson's coefficient with the affected share of each window, at least [`LEAST_CORRELATION`]). A setting
//! alone names a pattern only if it is known, no other setting has the same interval, and no record contradicts
//! it: a pattern without counted checkpoints is not caused by checkpoints. mongod waits for its interval after
//! the end of the previous turn, so the period may exceed the setting by the affected part.

use super::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Correlation from which a recorded series matches a pattern.
pub const LEAST_CORRELATION: f64 = 0.5;

/// Largest relative difference between a period and the interval of its setting.
const INTERVAL_TOLERANCE_RATIO: f64 = 0.05;

/// Smallest count per period of an activity that occurs once per period; the counts of a run begin and end
/// within one.
const LEAST_COUNTED: f64 = 0.5;

/// Fewest windows per period of a recorded series that can be evaluated.
const WINDOWS_PER_PERIOD: f64 = 4.0;

/// A recorded activity, in evenly spaced windows.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedSeries {
    /// Name of the activity, such as the name of a process.
    pub name: String,
    /// Start of its first window, in seconds from the start of the series with the pattern.
    pub start_s: f64,
    /// Length of a window in seconds.
    pub window_s: f64,
    pub values: Vec<f64>,
}

/// Data about possible causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PatternHints {
    /// Time between checkpoints by the server's settings, in seconds; `None` if unused or not reported.
    pub checkpoint_interval_s: Option<f64>,
    /// Time between flushes of the journal by the server's settings, in seconds; `None` if unused or not
    /// reported.
    pub journal_interval_s: Option<f64>,
    /// Time between collections of diagnostic data by the server's settings, in seconds; `None` if there are
    /// none or the server did not report it.
    pub diagnostic_data_interval_s: Option<f64>,
    /// Checkpoints that the server counted per second, over the time of the series.
    pub checkpoints_per_s: Option<f64>,
    /// Journal flushes that the server counted per second, over the time of the series.
    pub journal_flushes_per_s: Option<f64>,
    /// Share of each window in which a checkpoint ran, from 0 to 1, if recorded.
    pub checkpoints: Option<RecordedSeries>,
    /// CPU use of other processes, in any unit.
    pub processes: Vec<RecordedSeries>,
}

/// A probable cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternSource {
    /// The server writes a checkpoint.
    Checkpoint,
    /// The server writes its journal to the disk.
    JournalFlush,
    /// The server collects diagnostic data about itself (FTDC).
    DiagnosticData,
    /// Another process on the machine is busy.
    OtherProcess { name: String },
}

impl fmt::Display for PatternSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternSource::Checkpoint => f.write_str("checkpoint"),
            PatternSource::JournalFlush => f.write_str("journal flush"),
            PatternSource::DiagnosticData => f.write_str("diagnostic data collection"),
            PatternSource::OtherProcess { name } => write!(f, "other process {name}"),
        }
    }
}

/// Evidence for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceEvidence {
    /// The period equals the interval of a setting.
    Interval {
        /// The setting, in seconds.
        setting_s: f64,
        /// The period, in seconds.
        period_s: f64,
    },
    /// The server counted about one activity per period.
    Counted {
        /// Mean count per period.
        per_period: f64,
    },
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
    /// Evidence, the strongest first.
    pub evidence: Vec<SourceEvidence>,
}

/// Names the probable cause of a pattern; `None` if no known cause fits.
pub fn name_pattern(pattern: &Pattern, hints: &PatternHints) -> Option<NamedPattern> {
    let checkpoints = hints.checkpoints.as_ref().and_then(|recorded| goes_with(pattern, recorded));
    let processes = hints.processes.iter().filter_map(|recorded| {
        let source = PatternSource::OtherProcess { name: recorded.name.clone() };
        goes_with(pattern, recorded).map(|found| (source, found))
    });
    let recorded = checkpoints
        .map(|found| (PatternSource::Checkpoint, found))
        .into_iter()
        .chain(processes)
        .filter(|(_, found)| found.correlation >= LEAST_CORRELATION)
        .max_by(|(_, a), (_, b)| a.correlation.total_cmp(&b.correlation));
    let Some((source, found)) = recorded else {
        return by_setting(pattern, hints, checkpoints.is_some());
    };
    let more = match source {
        PatternSource::Checkpoint => Setting::checkpoint(hints).evidence(pattern),
        _ => None,
    };
    Some(NamedPattern {
        source,
        evidence: std::iter::once(found.evidence()).chain(more.into_iter().flatten()).collect(),
    })
}

/// A periodic activity of a server, by its settings and counts.
struct Setting {
    source: PatternSource,
    interval_s: Option<f64>,
    counted_per_s: Option<f64>,
}

impl Setting {
    fn checkpoint(hints: &PatternHints) -> Setting {
        Setting {
            source: PatternSource::Checkpoint,
            interval_s: hints.checkpoint_interval_s,
            counted_per_s: hints.checkpoints_per_s,
        }
    }

    fn all(hints: &PatternHints) -> [Setting; 3] {
        [
            Setting::checkpoint(hints),
            Setting {
                source: PatternSource::JournalFlush,
                interval_s: hints.journal_interval_s,
                counted_per_s: hints.journal_flushes_per_s,
            },
            Setting {
                source: PatternSource::DiagnosticData,
                interval_s: hints.diagnostic_data_interval_s,
                counted_per_s: None,
            },
        ]
    }

    /// Evidence for it: its interval, and its count if available. `None` if one of them contradicts it.
    fn evidence(&self, pattern: &Pattern) -> Option<Vec<SourceEvidence>> {
        let interval = interval(pattern, self.interval_s)?;
        let Some(per_s) = self.counted_per_s else {
            return Some(vec![interval]);
        };
        let per_period = per_s * pattern.period_s;
        let counted = SourceEvidence::Counted { per_period };
        (per_period >= LEAST_COUNTED).then(|| vec![interval, counted])
    }
}

/// The only setting with the interval of the pattern. Recorded checkpoints that do not match the pattern are
/// excluded.
fn by_setting(
    pattern: &Pattern,
    hints: &PatternHints,
    checkpoints_contradict: bool,
) -> Option<NamedPattern> {
    let mut fitting = Setting::all(hints)
        .into_iter()
        .filter(|one| !(checkpoints_contradict && one.source == PatternSource::Checkpoint))
        .filter_map(|one| Some((one.evidence(pattern)?, one.source)));
    let (evidence, source) = fitting.next()?;
    fitting.next().is_none().then_some(NamedPattern { source, evidence })
}

fn interval(pattern: &Pattern, setting_s: Option<f64>) -> Option<SourceEvidence> {
    let setting_s = setting_s?;
    let tolerance_s = pattern.uncertainty_s.max(INTERVAL_TOLERANCE_RATIO * setting_s);
    let rest_s = pattern.period_s * (1.0 - pattern.affected_ratio);
    let is_met = setting_s >= rest_s - tolerance_s && setting_s <= pattern.period_s + tolerance_s;
    is_met.then_some(SourceEvidence::Interval { setting_s, period_s: pattern.period_s })
}

/// Match of a recorded series with a pattern.
#[derive(Clone, Copy)]
struct Company {
    correlation: f64,
    inside: f64,
    outside: f64,
}

impl Company {
    fn evidence(self) -> SourceEvidence {
        SourceEvidence::Correlation {
            correlation: self.correlation,
            inside: self.inside,
            outside: self.outside,
        }
    }
}

/// `None` if the series is too coarse, too short or constant.
fn goes_with(pattern: &Pattern, recorded: &RecordedSeries) -> Option<Company> {
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
    correlation.is_finite().then(|| Company {
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
    fn busy(name: &str, from_s: usize) -> RecordedSeries {
        let noise = normal(from_s as u64, 600).into_iter().enumerate();
        let value = |(place, e): (usize, f64)| {
            let is_busy = (place + 60 - from_s) % 60 < 6;
            (if is_busy { 0.9 } else { 0.1 }) + 0.05 * e
        };
        RecordedSeries {
            name: name.to_owned(),
            start_s: 0.0,
            window_s: 1.0,
            values: noise.map(value).collect(),
        }
    }

    /// The default settings of a `mongod`.
    fn mongod() -> PatternHints {
        PatternHints {
            checkpoint_interval_s: Some(60.0),
            journal_interval_s: Some(0.1),
            diagnostic_data_interval_s: Some(1.0),
            ..PatternHints::default()
        }
    }

    fn source(pattern: &Pattern, hints: &PatternHints) -> Option<PatternSource> {
        name_pattern(pattern, hints).map(|named| named.source)
    }

    #[test]
    fn server_settings_name_an_unrecorded_source() {
        let hints = mongod();
        let sources = [60.0, 64.0, 0.1, 0.105, 1.0, 10.0, 56.0, 75.0, 0.2]
            .map(|s| source(&pattern(s), &hints));
        let expected = [
            Some(PatternSource::Checkpoint),
            // The interval begins when the checkpoint before has ended.
            Some(PatternSource::Checkpoint),
            Some(PatternSource::JournalFlush),
            Some(PatternSource::JournalFlush),
            Some(PatternSource::DiagnosticData),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(sources, expected);
        let unknown = PatternHints::default();
        for period_s in [60.0, 0.1, 1.0] {
            assert_eq!(source(&pattern(period_s), &unknown), None);
        }
    }

    #[test]
    fn period_shared_by_two_settings_is_named_after_none() {
        let hints = PatternHints {
            journal_interval_s: Some(0.5),
            diagnostic_data_interval_s: Some(0.5),
            ..mongod()
        };
        assert_eq!(source(&pattern(0.5), &hints), None);
        // The counts may exclude all but one.
        let without_flushes = PatternHints { journal_flushes_per_s: Some(0.0), ..hints };
        assert_eq!(source(&pattern(0.5), &without_flushes), Some(PatternSource::DiagnosticData));
    }

    #[test]
    fn server_counters_confirm_or_exclude_a_setting() {
        let counted = |checkpoints_per_s: f64| PatternHints {
            checkpoints_per_s: Some(checkpoints_per_s),
            ..mongod()
        };
        let named = name_pattern(&pattern(60.0), &counted(1.0 / 60.0)).unwrap();
        assert_eq!(named.source, PatternSource::Checkpoint);
        let SourceEvidence::Counted { per_period } = named.evidence[1] else {
            panic!("{named:?}");
        };
        assert!((per_period - 1.0).abs() < 1e-9);
        assert_eq!(source(&pattern(60.0), &counted(0.0)), None);
    }

    #[test]
    fn recorded_activity_decides_and_brings_its_evidence() {
        let mut hints = PatternHints {
            checkpoints: Some(busy("checkpoints", 6)),
            processes: vec![busy("java", 30), busy("backup", 6)],
            ..mongod()
        };
        hints.processes[1].values[3] = 5.0;
        let named = name_pattern(&pattern(60.0), &hints).unwrap();
        assert_eq!(named.source, PatternSource::Checkpoint);
        let SourceEvidence::Correlation { correlation, inside, outside } = named.evidence[0] else {
            panic!("{named:?}");
        };
        assert!(correlation > 0.9, "{correlation}");
        assert!((inside - 0.9).abs() < 0.05 && (outside - 0.1).abs() < 0.05);
        assert!(matches!(named.evidence[1], SourceEvidence::Interval { .. }));
        // Checkpoints at another time are not the cause, although the interval fits.
        hints.checkpoints = Some(busy("checkpoints", 40));
        let backup = PatternSource::OtherProcess { name: "backup".into() };
        assert_eq!(source(&pattern(60.0), &hints), Some(backup));
        hints.processes.truncate(1);
        assert_eq!(source(&pattern(60.0), &hints), None);
    }

    #[test]
    fn too_coarse_or_too_short_series_is_not_evidence() {
        let hints = PatternHints { checkpoints: Some(busy("checkpoints", 40)), ..mongod() };
        assert!(goes_with(&pattern(0.1), &busy("java", 6)).is_none());
        let named = name_pattern(&pattern(0.1), &hints).unwrap();
        assert_eq!(named.source, PatternSource::JournalFlush);
        let mut short = busy("java", 6);
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
