//! Opens and analyses traces of file I/O.

use crate::ResultsError;
use dyno_analyze::access_pattern::{
    AccessPatterns, Activity, Settings, Window, analyze, analyze_windows,
};
use dyno_analyze::caveats::failed_checks;
use dyno_record::io_trace::document::{
    TraceCaveat, TraceCaveatKind, TraceDocument, TraceMode, TraceTarget,
};
use dyno_record::io_trace::reader::TraceReader;
use dyno_record::sums;
use std::path::Path;
use std::time::Duration;

/// A trace and its analysis.
pub struct AnalysedTrace {
    pub document: TraceDocument,
    /// Access patterns of the whole trace, or of the requested time range.
    pub patterns: AccessPatterns,
    /// Access patterns of each slice, if slices were requested.
    pub slices: Vec<AccessPatterns>,
    /// Activity of the traced processes, for findings.
    pub activity: Activity,
}

/// Time range of a trace, relative to its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Duration,
    /// `None` means the end of the trace.
    pub to: Option<Duration>,
}

/// Part of a trace to analyse. Default: the whole trace in one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// Only this time range.
    pub window: Option<TimeRange>,
    /// Length of the slices that are also analysed one by one.
    pub slices: Option<Duration>,
}

impl TracePart {
    /// Whether this is the whole trace in one piece.
    pub fn is_all(&self) -> bool {
        *self == TracePart::default()
    }
}

/// Options of a trace analysis.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// Largest gap that counts as sequential. Default: the record's value, or else the analysis's.
    pub gap_bytes: Option<u64>,
    pub part: TracePart,
    /// Number of files that get pictures; `None` for the analysis's default.
    pub pictures: Option<usize>,
}

/// Most slices: each has its own rows in the report.
const MOST_SLICES: i64 = 200;
/// Files followed in each slice.
const FOLLOWED_IN_SLICE: usize = 50;

impl AnalysedTrace {
    /// Reads and analyses the trace in a folder. Adds a caveat if it was changed after it finished.
    ///
    /// # Errors
    /// [`ResultsError::Record`] if the folder cannot be read, [`ResultsError::Aggregated`] if a
    /// part of a trace without single calls is requested, [`ResultsError::TooManySlices`].
    pub fn open(folder: &Path, asked: &TraceOptions) -> Result<AnalysedTrace, ResultsError> {
        let changed = sums::check(folder)?.statement();
        let mut trace = Self::of_checked(folder, asked)?;
        let changed = changed
            .map(|statement| TraceCaveat { kind: TraceCaveatKind::RecordChanged, statement });
        let checks = trace.document.environment.iter().flat_map(failed_checks);
        let checks = checks
            .map(|one| TraceCaveat { kind: TraceCaveatKind::Machine, statement: one.statement });
        let caveats: Vec<TraceCaveat> = changed.into_iter().chain(checks).collect();
        trace.document.caveats.extend(caveats);
        Ok(trace)
    }

    /// Like [`AnalysedTrace::open`], for a trace in a record with checked checksums.
    pub(crate) fn of_checked(
        folder: &Path,
        asked: &TraceOptions,
    ) -> Result<AnalysedTrace, ResultsError> {
        let reader = TraceReader::open(folder)?;
        let document = reader.document().clone();
        let mut settings = Settings::default();
        let gap_bytes = asked.gap_bytes.or(document.gap_bytes);
        settings.gap_bytes = gap_bytes.unwrap_or(settings.gap_bytes);
        settings.pictures = asked.pictures.unwrap_or(settings.pictures);
        let part = &asked.part;
        if document.mode == TraceMode::Aggregated && !part.is_all() {
            return Err(ResultsError::Aggregated);
        }
        settings.window = window_of(&document, part);
        let patterns = analyze(settings, &document, reader.calls()?, reader.block()?)?;
        let slices = match part.slices {
            None => Vec::new(),
            Some(length) => {
                let windows = slices_of(&document, &patterns, length)?;
                let settings = Settings { followed: FOLLOWED_IN_SLICE, pictures: 0, ..settings };
                analyze_windows(settings, &windows, &document, reader.calls()?, reader.block()?)?
            }
        };
        let activity = Activity { subject: subject(&document.target), scans_records: false };
        Ok(AnalysedTrace { document, patterns, slices, activity })
    }
}

fn ns_of(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The requested time range on the trace's clock; `None` for the whole trace.
fn window_of(document: &TraceDocument, part: &TracePart) -> Option<Window> {
    let asked = part.window?;
    let start_ns = (document.start_s * 1e9) as i64;
    Some(Window {
        from_ns: start_ns.saturating_add(ns_of(asked.from)),
        to_ns: asked.to.map_or(i64::MAX, |to| start_ns.saturating_add(ns_of(to))),
    })
}

/// Slices of one length over the analysed part.
fn slices_of(
    document: &TraceDocument,
    patterns: &AccessPatterns,
    length: Duration,
) -> Result<Vec<Window>, ResultsError> {
    let start_ns = (document.start_s * 1e9) as i64;
    let whole_end_ns = start_ns.saturating_add((document.duration_s * 1e9) as i64);
    // The length of a trace that was killed is unknown.
    let last_ns = patterns.last_ns.unwrap_or(start_ns).saturating_add(1);
    let from_ns = patterns.window.map_or(start_ns, |window| window.from_ns);
    let end_ns = whole_end_ns.max(last_ns);
    let to_ns = patterns.window.map_or(end_ns, |window| window.to_ns.min(end_ns));
    let step_ns = ns_of(length).max(1);
    let count = (to_ns - from_ns).max(0) / step_ns + 1;
    if count > MOST_SLICES {
        return Err(ResultsError::TooManySlices { count, most: MOST_SLICES });
    }
    let starts = (0..count).map(|number| from_ns + number * step_ns);
    let windows = starts.map(|start_ns| Window {
        from_ns: start_ns,
        to_ns: start_ns.saturating_add(step_ns).min(to_ns),
    });
    Ok(windows.filter(|window| window.from_ns < window.to_ns).collect())
}

/// The traced target, as the subject of sentences.
fn subject(target: &TraceTarget) -> String {
    if let Some(name) = &target.name {
        return name.clone();
    }
    if let Some(program) = target.command.as_ref().and_then(|words| words.first()) {
        let name = program.rsplit('/').next().unwrap_or(program);
        return format!("`{name}`");
    }
    match target.processes.as_slice() {
        [] => "nobody".to_owned(),
        [only] => format!("process {only}"),
        several => format!("{} processes", several.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_part_is_relative_to_the_trace_start_and_sliced() {
        let mut document = TraceDocument::new("0", "", TraceMode::Events);
        (document.start_s, document.duration_s) = (2.0, 10.0);
        let part = |from, to: Option<u64>| TracePart {
            window: Some(TimeRange {
                from: Duration::from_secs(from),
                to: to.map(Duration::from_secs),
            }),
            slices: None,
        };
        let window = window_of(&document, &part(3, Some(8))).expect("one was asked for");
        assert_eq!((window.from_ns, window.to_ns), (5_000_000_000, 10_000_000_000));
        let nothing: [Result<_, ResultsError>; 0] = [];
        let no_requests: [Result<_, ResultsError>; 0] = [];
        let settings = Settings { window: Some(window), ..Settings::default() };
        let Ok(patterns) = analyze(settings, &document, nothing, no_requests) else {
            panic!("the options are valid");
        };
        let pieces = |length| slices_of(&document, &patterns, Duration::from_secs_f64(length));
        let Ok(two) = pieces(3.0) else {
            panic!("two slices are allowed");
        };
        let ends: Vec<_> = two.iter().map(|piece| (piece.from_ns, piece.to_ns)).collect();
        assert_eq!(ends, [(5_000_000_000, 8_000_000_000), (8_000_000_000, 10_000_000_000)]);
        assert!(pieces(0.001).is_err());
        let open = window_of(&document, &part(3, None)).expect("one was asked for");
        assert_eq!(open.to_ns, i64::MAX);
    }

    #[test]
    fn traced_target_has_a_readable_name() {
        let of = |processes: &[u32], command: Option<&str>, name: Option<&str>| {
            subject(&TraceTarget {
                processes: processes.to_vec(),
                command: command.map(|word| vec![word.to_owned(), "-x".to_owned()]),
                name: name.map(str::to_owned),
            })
        };
        assert_eq!(of(&[7], None, None), "process 7");
        assert_eq!(of(&[7, 8], None, None), "2 processes");
        assert_eq!(of(&[7], Some("/usr/bin/fio"), None), "`fio`");
        assert_eq!(of(&[7], None, Some("server `h:1`")), "server `h:1`");
    }
}
