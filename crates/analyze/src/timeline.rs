//! Timeline of a run's measured time: level changes, drifts and periodic patterns of its rate, response times
//! and data disk.

mod sub_second;

use crate::level_shifts::{Drift, LevelShift, level_shifts};
use crate::periodicity::{
    NamedPattern, Pattern, PatternSource, RecordedSeries, name_pattern, periodic_patterns,
};
use crate::robust::median;
use crate::verdict::{Bench, TimeRange, cpus, mean_us, of_others};
use dyno_record::metrics::MetricTable;
use dyno_record::model::PhaseKind;
use dyno_record::names::{Metric, checkpoint, cpu, disk, process};
use dyno_record::sub_second::SubSecondPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sufficient number of windows; longer series are downsampled.
const MOST_WINDOWS: usize = 7_200;
/// Largest distance between changes of several series that count as one.
const TOGETHER_S: f64 = 5.0;
/// Largest deviation of a full window from the usual length, as a share.
const FULL_RATIO: f64 = 0.5;

/// Changes over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Level changes in order of time, in seconds from the start of the run.
    pub changes: Vec<TimelineChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifts: Vec<TimelineDrift>,
    /// Periodic patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<TimelinePattern>,
}

/// A series of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimelineSeries {
    /// Successful operations per second.
    RatePerS,
    /// Mean response time of all operations in microseconds.
    ResponseMeanUs,
    /// The largest 99th percentile of the operations in microseconds.
    ResponseP99Us,
    /// Reads and writes per second of the data disk.
    DiskOperationsPerS,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineChange {
    pub series: TimelineSeries,
    /// When the new level began, from the start of the run.
    pub at_s: f64,
    /// The earliest likely time.
    pub earliest_s: f64,
    /// The latest likely time.
    pub latest_s: f64,
    /// Level before, in the unit of the series.
    pub before: f64,
    /// Level after, in the unit of the series.
    pub after: f64,
    /// Probability that a stationary series shows a change this large.
    pub p_value_ratio: f64,
}

/// A drift.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineDrift {
    pub series: TimelineSeries,
    pub drift: Drift,
}

/// A periodic pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelinePattern {
    pub series: TimelineSeries,
    /// The pattern; times are from the start of the measured time.
    pub pattern: Pattern,
    /// Its probable cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NamedPattern>,
}

/// Windows of the measured time with equal lengths. Some may be missing: the server was down, or a reading
/// failed.
struct Windows {
    window_s: f64,
    starts_s: Vec<f64>,
    values: Vec<f64>,
}

impl Windows {
    fn start_s(&self) -> f64 {
        self.starts_s[0]
    }

    /// End of the last window.
    fn end_s(&self) -> f64 {
        self.starts_s[self.starts_s.len() - 1] + self.window_s
    }

    /// Start of this window, or of the next one after the last.
    fn at_s(&self, index: usize) -> f64 {
        self.starts_s.get(index).copied().unwrap_or_else(|| self.end_s())
    }

    /// The longest part without a hole; patterns are periodic in time, not in window numbers.
    fn longest_unbroken(&self) -> Windows {
        let breaks = (1..self.starts_s.len()).filter(|index| {
            self.starts_s[*index] - self.starts_s[index - 1] > (1.0 + FULL_RATIO) * self.window_s
        });
        let bounds: Vec<usize> =
            std::iter::once(0).chain(breaks).chain([self.starts_s.len()]).collect();
        let parts = bounds.windows(2).map(|bound| bound[0]..bound[1]);
        let part = parts.max_by_key(ExactSizeIterator::len).unwrap_or_default();
        Windows {
            window_s: self.window_s,
            starts_s: self.starts_s[part.clone()].to_vec(),
            values: self.values[part].to_vec(),
        }
    }
}

/// Analyses a run, and its first minute in more detail. `seed` is the seed of the simulated series for the
/// significance.
pub fn timeline(bench: &Bench<'_>, minute: &[SubSecondPoint], seed: u64) -> Timeline {
    let mut found = Timeline::default();
    for series in [
        TimelineSeries::RatePerS,
        TimelineSeries::ResponseMeanUs,
        TimelineSeries::ResponseP99Us,
        TimelineSeries::DiskOperationsPerS,
    ] {
        let Some(windows) = windows_of(bench, series) else {
            continue;
        };
        let changes = level_shifts(&windows.values, windows.window_s, seed);
        let place = |shift: &LevelShift| change_of(series, &windows, shift);
        found.changes.extend(changes.shifts.iter().map(place));
        found.drifts.extend(changes.drift.map(|drift| TimelineDrift { series, drift }));
        if matches!(series, TimelineSeries::RatePerS | TimelineSeries::ResponseMeanUs) {
            found.patterns.extend(patterns(bench, series, &windows));
        }
    }
    found.patterns.extend(sub_second::patterns(minute));
    found.changes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    found
}

impl Timeline {
    /// Time ranges of the level changes, from the first to the last series that changed, in order of time.
    pub fn transitions(&self) -> Vec<TimeRange> {
        let mut transitions: Vec<TimeRange> = Vec::new();
        for change in &self.changes {
            match transitions.last_mut() {
                Some(last) if change.at_s - last.start_s <= TOGETHER_S => last.end_s = change.at_s,
                _ => transitions.push(TimeRange { start_s: change.at_s, end_s: change.at_s }),
            }
        }
        transitions
    }
}

fn change_of(series: TimelineSeries, windows: &Windows, shift: &LevelShift) -> TimelineChange {
    TimelineChange {
        series,
        at_s: windows.at_s(shift.index),
        earliest_s: windows.at_s(shift.earliest_index),
        latest_s: windows.at_s(shift.latest_index),
        before: shift.before,
        after: shift.after,
        p_value_ratio: shift.p_value_ratio,
    }
}

fn windows_of(bench: &Bench<'_>, series: TimelineSeries) -> Option<Windows> {
    let measured = bench.measured()?;
    let points = match series {
        TimelineSeries::DiskOperationsPerS => disk_points(bench, measured)?,
        _ => client_points(bench, series),
    };
    evenly(points)
}

/// Start, length and value of each window.
fn client_points(bench: &Bench<'_>, series: TimelineSeries) -> Vec<(f64, f64, f64)> {
    let commands = bench.commands_by_window();
    bench
        .windows
        .iter()
        .filter(|one| one.phase == PhaseKind::Measure)
        .filter_map(|window| {
            let inside = commands.get(&window.index).map_or(&[][..], Vec::as_slice);
            let inside = inside.iter().copied();
            let value = match series {
                TimelineSeries::RatePerS => window.succeeded as f64 / window.duration_s,
                TimelineSeries::ResponseMeanUs => mean_us(inside, |one| one.response)?,
                _ => inside.map(|one| one.response.p99_us).reduce(f64::max)?,
            };
            Some((window.start_s, window.duration_s, value))
        })
        .collect()
}

fn disk_points(bench: &Bench<'_>, measured: TimeRange) -> Option<Vec<(f64, f64, f64)>> {
    let (table, device) = bench.data_device(measured)?;
    let column = |metric: Metric| table.column(&metric.of(&device));
    let (reads, writes) = (column(disk::READ_PER_S)?, column(disk::WRITE_PER_S)?);
    let rows = rows_within(table, measured);
    let points = rows.map(|row| {
        let start_s = table.at_s[row] - table.duration_s[row];
        (start_s, table.duration_s[row], reads[row] + writes[row])
    });
    Some(points.filter(|point| point.2.is_finite()).collect())
}

fn rows_within(table: &MetricTable, time_range: TimeRange) -> impl Iterator<Item = usize> + '_ {
    (0..table.at_s.len()).filter(move |row| {
        let start_s = table.at_s[*row] - table.duration_s[*row];
        start_s >= time_range.start_s && table.at_s[*row] <= time_range.end_s
    })
}

/// Removes windows of unusual length, such as the last one, and downsamples long series.
fn evenly(points: Vec<(f64, f64, f64)>) -> Option<Windows> {
    let usual_s = median(points.iter().map(|point| point.1))?;
    let is_full = |point: &&(f64, f64, f64)| (point.1 / usual_s - 1.0).abs() <= FULL_RATIO;
    let full: Vec<&(f64, f64, f64)> = points.iter().filter(is_full).collect();
    let group = full.len().div_ceil(MOST_WINDOWS).max(1);
    let (starts_s, values): (Vec<f64>, Vec<f64>) = full
        .chunks_exact(group)
        .map(|chunk| {
            let sum: f64 = chunk.iter().map(|point| point.2).sum();
            (chunk[0].0, sum / group as f64)
        })
        .unzip();
    (usual_s > 0.0 && !values.is_empty()).then_some(Windows {
        window_s: usual_s * group as f64,
        starts_s,
        values,
    })
}

fn patterns(bench: &Bench<'_>, series: TimelineSeries, all: &Windows) -> Vec<TimelinePattern> {
    let windows = &all.longest_unbroken();
    let found = periodic_patterns(&windows.values, windows.window_s);
    let recorded = recorded_activities(bench, windows);
    found
        .into_iter()
        .map(|mut pattern| {
            let name = name_pattern(&pattern, &recorded);
            pattern.phase_s += windows.start_s() - all.start_s();
            TimelinePattern { series, pattern, name }
        })
        .collect()
}

/// Recorded activities that may cause a pattern.
fn recorded_activities(bench: &Bench<'_>, windows: &Windows) -> Vec<RecordedSeries> {
    let checkpoints = bench.tables.iter().find_map(|table| {
        let (_, values) = table.columns_of(checkpoint::BUSY_RATIO).next()?;
        recorded(table, windows, PatternSource::Checkpoint, |row| values[row])
    });
    checkpoints.into_iter().chain(others(bench, windows)).collect()
}

/// CPU time on the servers' machine without servers, client and interrupts.
fn others(bench: &Bench<'_>, windows: &Windows) -> Option<RecordedSeries> {
    let table = bench.server_machine()?;
    let cores = cpus(table).len() as f64;
    let machine = |metric: Metric| table.column(&metric.id());
    let (user, system) = (machine(cpu::ALL_USER_RATIO)?, machine(cpu::ALL_SYSTEM_RATIO)?);
    let nice = machine(cpu::ALL_NICE_RATIO);
    let columns = |metric: Metric| -> Vec<&[f64]> {
        let columns = table.columns_of(metric);
        columns.map(|(_, values)| values).collect()
    };
    let used = [process::CPU_USER_RATIO, process::CPU_SYSTEM_RATIO].map(columns);
    let known = |columns: &Vec<&[f64]>, row: usize| -> f64 {
        let values = columns.iter().map(|values| values[row]);
        values.filter(|value| value.is_finite()).sum()
    };
    recorded(table, windows, PatternSource::OtherProcesses, |row| {
        let nice = nice.map_or(0.0, |nice| nice[row]);
        let all = [user[row] + nice, system[row]].map(|share| share * cores);
        of_others(all, used.each_ref().map(|columns| known(columns, row)))
    })
}

/// Rows of a table within the windows, if they are complete.
fn recorded(
    table: &MetricTable,
    windows: &Windows,
    source: PatternSource,
    value: impl Fn(usize) -> f64,
) -> Option<RecordedSeries> {
    let time_range = TimeRange { start_s: windows.start_s(), end_s: windows.end_s() };
    let rows: Vec<usize> = rows_within(table, time_range).collect();
    let first = *rows.first()?;
    let values: Vec<f64> = rows.iter().map(|row| value(*row)).collect();
    let window_s = median(rows.iter().map(|row| table.duration_s[*row]))?;
    (window_s > 0.0 && values.iter().all(|value| value.is_finite())).then(|| RecordedSeries {
        source,
        start_s: table.at_s[first] - table.duration_s[first] - windows.start_s(),
        window_s,
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One-second windows from second 10 on, without the unknown ones.
    fn with_hole(hole: std::ops::Range<usize>) -> Windows {
        let points = (0..60).filter(|index| !hole.contains(index));
        let points = points.map(|index| (10.0 + f64::from(index as u32), 1.0, index as f64));
        evenly(points.collect()).expect("windows")
    }

    #[test]
    fn windows_after_an_outage_keep_their_times() {
        let windows = with_hole(20..30);
        assert_eq!(windows.values.len(), 50);
        assert_eq!(windows.at_s(19), 29.0);
        assert_eq!(windows.at_s(20), 40.0);
        assert_eq!(windows.at_s(50), 70.0);
        assert_eq!(windows.end_s(), 70.0);
    }

    #[test]
    fn patterns_are_looked_for_in_the_longest_part_without_a_hole() {
        let part = with_hole(20..30).longest_unbroken();
        assert_eq!((part.start_s(), part.values.len()), (40.0, 30));
        let whole = with_hole(0..0).longest_unbroken();
        assert_eq!((whole.start_s(), whole.values.len()), (10.0, 60));
    }

    #[test]
    fn windows_of_another_length_are_left_out() {
        let points = vec![(0.0, 1.0, 5.0), (1.0, 1.0, 5.0), (2.0, 0.1, 50.0)];
        let windows = evenly(points).expect("windows");
        assert_eq!(windows.values, [5.0, 5.0]);
    }
}
