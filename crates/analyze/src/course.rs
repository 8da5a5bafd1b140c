//! How a run went over its measured time: changes of level, drifts and periodic patterns of its rate, its response
//! times and the disk that holds the data.

use crate::level_shifts::{Drift, LevelShift, LevelShiftSettings, level_shifts};
use crate::periodicity::{
    NamedPattern, Pattern, PatternHints, PeriodicitySettings, RecordedSeries, name_pattern,
    periodic_patterns,
};
use crate::robust::median;
use crate::verdict::{Bench, Stretch, cpus, mean_us};
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::PhaseKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Windows that say more than enough; of longer series neighbours are put together.
const MOST_WINDOWS: usize = 7_200;
/// Changes of several series that are no further apart than this are one.
const TOGETHER_S: f64 = 5.0;
/// Share of the length of a window by which one may differ and still count as a full one.
const FULL_RATIO: f64 = 0.5;

/// What changed over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// Changes of level in the order of time. Times are from the start of the run.
    pub changes: Vec<CourseChange>,
    /// Series that drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifts: Vec<CourseDrift>,
    /// What comes again and again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<CoursePattern>,
}

/// Which series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CourseSeries {
    /// Successful operations per second.
    RatePerS,
    /// Mean response time of all operations in microseconds.
    ResponseMeanUs,
    /// The largest 99th percentile of the operations in microseconds.
    ResponseP99Us,
    /// Reads and writes per second of the disk that holds the data.
    DiskOperationsPerS,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CourseChange {
    /// The series.
    pub series: CourseSeries,
    /// When the new level began, from the start of the run.
    pub at_s: f64,
    /// The earliest time that the series leaves likely.
    pub earliest_s: f64,
    /// The latest time that the series leaves likely.
    pub latest_s: f64,
    /// Level before, in the unit of the series.
    pub before: f64,
    /// Level after.
    pub after: f64,
    /// Probability that a stationary series shows as large a change.
    pub p_value_ratio: f64,
}

/// A drift.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CourseDrift {
    /// The series.
    pub series: CourseSeries,
    /// How it drifts.
    pub drift: Drift,
}

/// A periodic pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoursePattern {
    /// The series.
    pub series: CourseSeries,
    /// The pattern; times are from the start of the measured time.
    pub pattern: Pattern,
    /// What it probably is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NamedPattern>,
}

/// Evenly spaced windows of the measured time.
struct Windows {
    start_s: f64,
    window_s: f64,
    values: Vec<f64>,
}

/// Looks at a run. `seed` is that of the simulated series which significance is measured against.
pub fn course(bench: &Bench<'_>, seed: u64) -> Course {
    let mut found = Course::default();
    for series in [
        CourseSeries::RatePerS,
        CourseSeries::ResponseMeanUs,
        CourseSeries::ResponseP99Us,
        CourseSeries::DiskOperationsPerS,
    ] {
        let Some(windows) = windows_of(bench, series) else {
            continue;
        };
        let settings = LevelShiftSettings::seeded(windows.window_s, seed);
        if let Ok(changes) = level_shifts(&windows.values, settings) {
            let place = |shift: &LevelShift| change_of(series, &windows, shift);
            found.changes.extend(changes.shifts.iter().map(place));
            found
                .drifts
                .extend(changes.drift.map(|drift| CourseDrift { series, drift }));
        }
        if matches!(
            series,
            CourseSeries::RatePerS | CourseSeries::ResponseMeanUs
        ) {
            found.patterns.extend(patterns(bench, series, &windows));
        }
    }
    found.changes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    found
}

impl Course {
    /// Times at which the level of some series changed, each once though several may have changed there.
    pub fn moments_s(&self) -> Vec<f64> {
        let mut moments: Vec<f64> = Vec::new();
        for change in &self.changes {
            if moments
                .last()
                .is_none_or(|last| change.at_s - last > TOGETHER_S)
            {
                moments.push(change.at_s);
            }
        }
        moments
    }
}

fn change_of(series: CourseSeries, windows: &Windows, shift: &LevelShift) -> CourseChange {
    let at = |index: usize| windows.start_s + index as f64 * windows.window_s;
    CourseChange {
        series,
        at_s: windows.start_s + shift.at_s,
        earliest_s: at(shift.earliest_index),
        latest_s: at(shift.latest_index),
        before: shift.before,
        after: shift.after,
        p_value_ratio: shift.p_value_ratio,
    }
}

fn windows_of(bench: &Bench<'_>, series: CourseSeries) -> Option<Windows> {
    let measured = bench.measured()?;
    let points = match series {
        CourseSeries::DiskOperationsPerS => disk_points(bench, measured)?,
        _ => client_points(bench, series),
    };
    evenly(points)
}

/// Start, length and value of each window.
fn client_points(bench: &Bench<'_>, series: CourseSeries) -> Vec<(f64, f64, f64)> {
    let commands = bench.commands_by_window();
    let windows = bench.windows.iter();
    windows
        .filter(|one| one.phase == PhaseKind::Measure)
        .filter_map(|window| {
            let inside = commands.get(&window.index).map_or(&[][..], Vec::as_slice);
            let inside = inside.iter().copied();
            let value = match series {
                CourseSeries::RatePerS => window.succeeded as f64 / window.duration_s,
                CourseSeries::ResponseMeanUs => mean_us(inside, |one| one.response)?,
                _ => inside.map(|one| one.response.p99_us).reduce(f64::max)?,
            };
            Some((window.start_s, window.duration_s, value))
        })
        .collect()
}

fn disk_points(bench: &Bench<'_>, measured: Stretch) -> Option<Vec<(f64, f64, f64)>> {
    let (table, device) = bench.data_device(measured)?;
    let column = |name: &str| -> Option<&[f64]> {
        table.column(&MetricId::parse(&format!("disk.{device}.{name}"))?)
    };
    let (reads, writes) = (column("read_per_s")?, column("write_per_s")?);
    let rows = rows_within(table, measured);
    let points = rows.map(|row| {
        let start_s = table.at_s[row] - table.duration_s[row];
        (start_s, table.duration_s[row], reads[row] + writes[row])
    });
    Some(points.filter(|point| point.2.is_finite()).collect())
}

fn rows_within(table: &MetricTable, stretch: Stretch) -> impl Iterator<Item = usize> + '_ {
    (0..table.at_s.len()).filter(move |row| {
        let start_s = table.at_s[*row] - table.duration_s[*row];
        start_s >= stretch.start_s && table.at_s[*row] <= stretch.end_s
    })
}

/// Leaves out windows that are far from a full one, such as the last, and thins what is very long.
fn evenly(points: Vec<(f64, f64, f64)>) -> Option<Windows> {
    let usual_s = median(points.iter().map(|point| point.1))?;
    let is_full = |point: &&(f64, f64, f64)| (point.1 / usual_s - 1.0).abs() <= FULL_RATIO;
    let full: Vec<&(f64, f64, f64)> = points.iter().filter(is_full).collect();
    let start_s = full.first()?.0;
    let group = full.len().div_ceil(MOST_WINDOWS).max(1);
    let values = full
        .chunks_exact(group)
        .map(|chunk| chunk.iter().map(|point| point.2).sum::<f64>() / group as f64)
        .collect();
    (usual_s > 0.0).then_some(Windows {
        start_s,
        window_s: usual_s * group as f64,
        values,
    })
}

fn patterns(bench: &Bench<'_>, series: CourseSeries, windows: &Windows) -> Vec<CoursePattern> {
    let settings = PeriodicitySettings::for_windows(windows.window_s);
    let Ok(found) = periodic_patterns(&windows.values, settings) else {
        return Vec::new();
    };
    let hints = hints(bench, windows);
    found
        .into_iter()
        .map(|pattern| CoursePattern {
            series,
            name: name_pattern(&pattern, &hints),
            pattern,
        })
        .collect()
}

/// What was recorded that may cause a pattern.
fn hints(bench: &Bench<'_>, windows: &Windows) -> PatternHints {
    let is_checkpoint = |id: &MetricId| id.group() == "checkpoint" && id.name() == "busy_ratio";
    let checkpoints = bench.tables.iter().find_map(|table| {
        let (_, values) = table.columns.iter().find(|(id, _)| is_checkpoint(id))?;
        recorded(table, windows, "checkpoint".to_owned(), |row| values[row])
    });
    PatternHints {
        checkpoints,
        processes: others(bench, windows).into_iter().collect(),
        ..PatternHints::mongod_defaults()
    }
}

/// CPU time of everything but servers and client on the servers' machine.
fn others(bench: &Bench<'_>, windows: &Windows) -> Option<RecordedSeries> {
    let table = bench.server_hosts().next()?;
    let busy = table.column(&MetricId::of_instance("cpu", "all", "busy_ratio"))?;
    let cores = cpus(table).len() as f64;
    let known: Vec<&Vec<f64>> = table
        .columns
        .iter()
        .filter(|(id, _)| id.group() == "process" && id.name() == "cpu_ratio")
        .map(|(_, values)| values)
        .collect();
    recorded(table, windows, "other processes".to_owned(), |row| {
        let own: f64 = known
            .iter()
            .map(|values| values[row])
            .filter(|value| value.is_finite())
            .sum();
        (busy[row] * cores - own).max(0.0)
    })
}

/// Rows of a table within the windows, as far as they are all there.
fn recorded(
    table: &MetricTable,
    windows: &Windows,
    name: String,
    value: impl Fn(usize) -> f64,
) -> Option<RecordedSeries> {
    let stretch = Stretch {
        start_s: windows.start_s,
        end_s: windows.start_s + windows.window_s * windows.values.len() as f64,
    };
    let rows: Vec<usize> = rows_within(table, stretch).collect();
    let first = *rows.first()?;
    let values: Vec<f64> = rows.iter().map(|row| value(*row)).collect();
    let window_s = median(rows.iter().map(|row| table.duration_s[*row]))?;
    (window_s > 0.0 && values.iter().all(|value| value.is_finite())).then(|| RecordedSeries {
        name,
        start_s: table.at_s[first] - table.duration_s[first] - windows.start_s,
        window_s,
        values,
    })
}
