//! Results of a suite: each workload with each setting as a row, with all kinds of operations, the load phases
//! before them, and the effects of the settings.

use super::figures::{OperationFigures, is_open, measured, of_windows, samples};
use super::relative;
use super::sweep::{Merged, levels, merged};
use crate::grouping::distinct;
use crate::resampling::Resampling;
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::runs::{Runs, estimate_levels};
use crate::uncertainty::series::{IntervalSample, MIN_BEYOND_PERCENTILE};
use dyno_record::experiment::{
    Experiment, Figure, Level, PERCENTILES, Statistic, SuiteAnswer, SuiteLoad, SuiteOperation,
    SuiteRow,
};
use dyno_record::model::{OperationRecord, PhaseKind, RunDocument};
use dyno_record::responses::{PhaseResponses, WindowResponses};
use std::collections::{BTreeMap, BTreeSet};

/// Recorded data of one suite run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuiteRun {
    /// The windows of the stationary part of the measure phase.
    windows: Vec<IntervalSample>,
    /// The windows by kind of operation.
    operations: BTreeMap<String, OperationRun>,
    /// `None` if nothing was loaded.
    load: Option<LoadRun>,
}

/// The load phase of a run.
#[derive(Clone, Debug, PartialEq)]
struct LoadRun {
    commands: OperationRun,
    documents: u64,
}

/// One kind of operation in one phase of a run.
#[derive(Clone, Debug, PartialEq)]
struct OperationRun {
    windows: Vec<IntervalSample>,
    count: u64,
    errors: u64,
    max_us: f64,
}

impl OperationRun {
    fn new(windows: Vec<IntervalSample>, record: &OperationRecord) -> Self {
        OperationRun {
            windows,
            count: record.count,
            errors: record.errors,
            max_us: record.response_time_us.max,
        }
    }
}

impl SuiteRun {
    /// Collects the responses of the measure phase and of the load phase of a run.
    pub fn new(document: &RunDocument, measure: &PhaseResponses, load: &PhaseResponses) -> Self {
        let records = |kind: PhaseKind| {
            let phase = document.phases.iter().find(|phase| phase.name == kind);
            phase.map(|phase| &phase.operations)
        };
        let all = measured(&measure.all, is_open(document));
        let of_measure = |(name, windows): (&String, &Vec<WindowResponses>)| {
            // The same part of the phase as for all operations together.
            let windows = samples(windows).into_iter().skip(all.warm_up_windows);
            let record = records(PhaseKind::Measure)?.get(name)?;
            Some((name.clone(), OperationRun::new(windows.collect(), record)))
        };
        // A load has one kind of command, and is short: its last window counts.
        let of_load = |(name, windows): (&String, &Vec<WindowResponses>)| {
            let record = records(PhaseKind::Load)?.get(name)?;
            let is_known = record.count > 0 && record.documents > 0;
            is_known.then(|| LoadRun {
                commands: OperationRun::new(of_windows(windows), record),
                documents: record.documents,
            })
        };
        SuiteRun {
            operations: measure.operations.iter().filter_map(of_measure).collect(),
            load: load.operations.iter().find_map(of_load),
            windows: all.samples,
        }
    }
}

/// Analyses the measured points of a suite. `runs` are their recorded data by point number. `None` if no point
/// was run.
pub fn analyze(
    experiment: &Experiment,
    runs: &BTreeMap<usize, SuiteRun>,
    resampling: Resampling,
) -> Option<SuiteAnswer> {
    let windows: BTreeMap<usize, Vec<IntervalSample>> =
        runs.iter().map(|(place, run)| (*place, run.windows.clone())).collect();
    let mut levels = levels(experiment, None, &windows, resampling);
    levels.sort_by_key(|level| places(experiment, level));
    if levels.is_empty() {
        return None;
    }
    let below_us = experiment.options.below_us;
    let mut operations = vec![BTreeMap::new(); levels.len()];
    for name in names(runs) {
        let of_level = |level: &Level| {
            let places = level.runs.iter().map(|place| *place as usize);
            let runs = places.filter_map(|place| runs.get(&place)?.operations.get(&name));
            runs.collect()
        };
        let runs: Vec<Vec<&OperationRun>> = levels.iter().map(of_level).collect();
        let found = of_operation(&runs, below_us, resampling);
        for (row, found) in operations.iter_mut().zip(found) {
            row.extend(found.map(|(found, _)| (name.clone(), found)));
        }
    }
    Some(SuiteAnswer {
        loads: loads(experiment, runs, &levels, below_us, resampling),
        relative: relative::relative(experiment, &levels, &windows, resampling),
        below_us,
        rows: levels
            .into_iter()
            .zip(operations)
            .map(|(level, operations)| SuiteRow { level, operations })
            .collect(),
    })
}

/// Names of all kinds of operations.
fn names(runs: &BTreeMap<usize, SuiteRun>) -> BTreeSet<String> {
    let names = runs.values().flat_map(|run| run.operations.keys());
    names.cloned().collect()
}

/// Positions of a level's workload and settings on their axes: the order of the table.
fn places(experiment: &Experiment, level: &Level) -> Vec<usize> {
    let place = |(number, values): (usize, &Vec<String>)| {
        let value = match number {
            0 => level.workload.as_ref(),
            _ => level.settings.get(&experiment.axes[number].key),
        };
        let place = values.iter().position(|other| Some(other) == value);
        place.unwrap_or(usize::MAX)
    };
    let axes = experiment.axes.iter().map(|axis| &axis.values);
    axes.enumerate().map(place).collect()
}

/// One kind of operation at each level, with its rate; `None` without such operations.
fn of_operation(
    levels: &[Vec<&OperationRun>],
    below_us: Option<f64>,
    resampling: Resampling,
) -> Vec<Option<(SuiteOperation, Figure)>> {
    let windows: Vec<Vec<Vec<IntervalSample>>> =
        levels.iter().map(|runs| runs.iter().map(|run| run.windows.clone()).collect()).collect();
    let figures = figures(&windows, resampling);
    let shares = match below_us {
        Some(limit_us) => shares(&windows, limit_us, resampling),
        None => vec![None; levels.len()],
    };
    let of_level = |((runs, figures), below_ratio): ((&Vec<&OperationRun>, _), _)| {
        let figures: Option<OperationFigures> = figures;
        let figures = figures?;
        let operation = SuiteOperation {
            count: runs.iter().map(|run| run.count).sum(),
            errors: runs.iter().map(|run| run.errors).sum(),
            response_mean_us: figures.response_mean_us,
            response_us: figures.response_us,
            max_us: runs.iter().map(|run| run.max_us).fold(0.0, f64::max),
            below_ratio,
        };
        Some((operation, figures.rate_per_s))
    };
    levels.iter().zip(figures).zip(shares).map(of_level).collect()
}

/// Rate, mean and percentiles at each level.
fn figures(
    levels: &[Vec<Vec<IntervalSample>>],
    resampling: Resampling,
) -> Vec<Option<OperationFigures>> {
    let merged = merged(levels, resampling);
    let of_level = |(runs, merged): (&Vec<Vec<IntervalSample>>, &Merged)| match runs.as_slice() {
        [] => None,
        [one] => OperationFigures::of(one, resampling),
        _ => {
            let percentiles = PERCENTILES.iter().zip(merged.get(2..)?);
            let percentiles = percentiles
                .filter_map(|((name, _), figure)| Some(((*name).to_owned(), (*figure)?)));
            Some(OperationFigures {
                rate_per_s: (*merged.first()?)?,
                response_mean_us: (*merged.get(1)?)?,
                response_us: percentiles.collect(),
            })
        }
    };
    levels.iter().zip(&merged).map(of_level).collect()
}

/// Shares of operations below a time limit at each level, counted in the histograms, with the interval of a
/// mean of ones and zeros.
fn shares(
    levels: &[Vec<Vec<IntervalSample>>],
    limit_us: f64,
    resampling: Resampling,
) -> Vec<Option<Figure>> {
    let limit_ns = (limit_us * 1e3).round() as u64;
    let ones = |window: &IntervalSample| {
        let below = window.times.below(limit_ns);
        let times = [(1, below), (0, window.times.total() - below)];
        IntervalSample { times: SparseHistogram::from_counts(times), ..window.clone() }
    };
    let runs: Vec<Runs> = levels
        .iter()
        .map(|runs| {
            let runs = runs.iter().map(|run| run.iter().map(ones).collect());
            Runs::new(&runs.collect::<Vec<_>>())
        })
        .collect();
    let estimates =
        estimate_levels(&runs.iter().collect::<Vec<_>>(), Statistic::MeanTime, resampling);
    let figure = |(runs, estimate): (&Vec<Vec<IntervalSample>>, _)| {
        let times = || runs.iter().flatten().map(|window| &window.times);
        let total: u64 = times().map(SparseHistogram::total).sum();
        let below: u64 = times().map(|times| times.below(limit_ns)).sum();
        let value = below as f64 / total as f64;
        // As with percentiles: resampling cannot show very rare events.
        let fewest = below.min(total - below) as f64;
        let estimate: Option<Figure> = estimate;
        let estimate = estimate.filter(|_| fewest >= MIN_BEYOND_PERCENTILE);
        (total > 0).then(|| Figure {
            value,
            low: estimate.and_then(|figure| figure.low),
            high: estimate.and_then(|figure| figure.high).map(|high| high.min(1.0)),
        })
    };
    let estimates =
        estimates.into_iter().map(|found| found.map(|found| Figure::from(found.estimate)));
    levels.iter().zip(estimates).map(figure).collect()
}

/// The first load phase of each round with each setting.
fn loads(
    experiment: &Experiment,
    runs: &BTreeMap<usize, SuiteRun>,
    levels: &[Level],
    below_us: Option<f64>,
    resampling: Resampling,
) -> Vec<SuiteLoad> {
    let settings = distinct(levels.iter().map(|level| &level.settings));
    let of_setting = |settings: &&BTreeMap<String, String>| -> Vec<(usize, &LoadRun)> {
        let mut rounds = BTreeSet::new();
        let loads = runs.iter();
        let loads = loads.filter_map(|(place, run)| Some((*place, run.load.as_ref()?)));
        loads
            .filter(|(place, _)| {
                let point = &experiment.points[*place];
                point.settings == **settings && rounds.insert(point.repeat)
            })
            .collect()
    };
    let found: Vec<_> = settings.iter().map(of_setting).collect();
    let commands: Vec<Vec<&OperationRun>> =
        found.iter().map(|loads| loads.iter().map(|(_, load)| &load.commands).collect()).collect();
    let figures = of_operation(&commands, below_us, resampling);
    settings
        .into_iter()
        .zip(found)
        .zip(figures)
        .filter_map(|((settings, loads), figures)| {
            let (commands, rate_per_s) = figures?;
            let documents: u64 = loads.iter().map(|(_, load)| load.documents).sum();
            let documents_per_command = documents as f64 / commands.count as f64;
            let scaled = |value: f64| value * documents_per_command;
            Some(SuiteLoad {
                settings: settings.clone(),
                runs: loads.iter().filter_map(|(place, _)| u32::try_from(*place).ok()).collect(),
                documents_per_command,
                documents_per_s: Figure {
                    value: scaled(rate_per_s.value),
                    low: rate_per_s.low.map(scaled),
                    high: rate_per_s.high.map(scaled),
                },
                commands,
            })
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
