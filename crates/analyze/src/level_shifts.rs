//! Changes of level within one run, such as a rate that falls when a volume's burst credits are spent, and
//! drifts.
//!
//! Benchmark windows resemble their neighbours, have outliers and dip with every checkpoint. So a change counts
//! if it lasts for a while ([`LEAST_WINDOWS`]), moves the *median* by a relevant amount ([`LEAST_RATIO`]), and
//! exceeds all changes that a stationary series with the same memory shows by chance:
//!
//! 1. Values become logarithms where none is negative, so that changes are ratios, then scores: distances from the
//!    median in units of the noise between neighbours, cut off at ±2, so that no outlier weighs more than another
//!    (`scores`).
//! 2. The score sums of two sides are compared at all places of intervals of all lengths, so that a short loss in a
//!    long run is found too: seeded binary segmentation, S. Kovács, P. Bühlmann, H. Li and A. Munk, *Biometrika* 110
//!    (2023) (`scan`).
//! 3. The memory is estimated from differences over several distances, which a few steps do not touch (`memory`), and
//!    the largest difference of sides is compared with simulated series of the same memory and length, which pass
//!    through the same steps. Their maxima follow a Gumbel distribution, whose tail gives the p value (`significance`).
//! 4. A change splits the series. Both sides are searched again, each with its share of the false alarms.
//!    Finally each place moves to where the absolute deviations from the two medians are smallest.
//!
//! A slow drift is a slope, not a flight of steps: the series is searched again without the slope of the whole
//! (a constant amount or a constant ratio) and without the slope inside its levels. The best description with
//! the fewest parameters counts (`drift`).
//!
//! Assumptions: windows have equal length, and a first-order autoregression plus independent noise describes
//! the memory. Slower changes, such as a cycle of ten minutes, count as changes of level.
//!
//! False alarms: at most [`FALSE_ALARM_RATIO`] per series. Simulations of 400 series of each kind with at least
//! 60 windows had 1 % or fewer on white noise, autoregressions of 0.5 and 0.8, dips every minute, heavy tails
//! and outliers; series of 20 windows, which are too short to estimate their memory, had 1.5 % with an
//! autoregression of 0.8. Power: a step of 20 % in noise of 5 % was found within two windows in nearly all
//! series of two minutes and in nine of ten of one minute; a collapse to a fifth at its window.
//!
//! Complexity: O(n log n) for each change and simulated series, at most [`SIMULATED_SERIES`] of them.

mod drift;
mod levels;
mod memory;
mod scan;
mod scores;
mod significance;

use crate::robust::median;
use drift::Slope;
use levels::Levels;
use schemars::JsonSchema;
use scores::Scale;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Share of stationary series with a false change of level.
pub const FALSE_ALARM_RATIO: f64 = 0.01;

/// Smallest reported change, as a share of the level before.
pub const LEAST_RATIO: f64 = 0.05;

/// Fewest windows of a level; shorter levels are dips or peaks. A cycle with a slow part longer than this, such
/// as a checkpoint of 20 s, is reported as changes of level.
pub const LEAST_WINDOWS: usize = 10;

/// Most series that are simulated for one p value.
pub const SIMULATED_SERIES: usize = 240;

/// Limit of a drift's p value as a share of the limit for a change: with a memory as of an autoregression of
/// 0.8, 1 % came out as up to 4 % in series of 120 windows.
const DRIFT_SHARE: f64 = 0.2;

/// Repetitions of removing the slope within the levels and searching again.
const REFINEMENTS: usize = 2;
/// Windows on each side of a change that give the levels before and after it in a drifting series.
const NEAREST: usize = 20;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelShift {
    /// Number of windows before the change.
    pub index: usize,
    /// Earliest likely number of windows before the change.
    pub earliest_index: usize,
    /// Latest likely number of windows before the change.
    pub latest_index: usize,
    /// Median of the level before, in the unit of the series; in a drifting series, the median of its last
    /// windows.
    pub before: f64,
    /// Median of the level after, in the unit of the series; in a drifting series, the median of its first
    /// windows.
    pub after: f64,
    /// Probability that a stationary series with the same memory shows a change this large anywhere.
    pub p_value_ratio: f64,
}

/// A slow change in one direction within the levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// Change per hour as a share of the level at the start, extrapolated if the series is shorter.
    pub per_hour_ratio: f64,
    /// Change over the series as a share of the level at the start, without steps.
    pub over_series_ratio: f64,
    /// Probability that a series without a drift has as many pairs in one order.
    pub p_value_ratio: f64,
}

/// Level changes and drift of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelChanges {
    /// Changes of level in order of time.
    pub shifts: Vec<LevelShift>,
    /// The drift within the levels.
    pub drift: Option<Drift>,
}

/// Finds the level changes and the drift of a series of finite values in windows of this length. A series of less
/// than two levels has none. `seed` is the seed of the simulated series.
pub fn level_shifts(series: &[f64], window_s: f64, seed: u64) -> LevelChanges {
    let is_finite = series.iter().all(|value| value.is_finite());
    if series.len() < 2 * LEAST_WINDOWS || !is_finite {
        return LevelChanges::default();
    }
    let scale = Scale::of(series);
    let values = scale.forth(series);
    let found = best_description(&values, scale, window_s, seed);
    LevelChanges {
        shifts: reported_shifts(&found, series),
        drift: reported_drift(&found, &values, scale, window_s),
    }
}

/// Levels with the slope that was removed from the series before the search.
struct Description {
    levels: Levels,
    slope: Slope,
}

/// Steps alone, a drift alone, or steps on a drift, whichever leaves the least unexplained for its number of
/// parameters.
fn best_description(values: &[f64], scale: Scale, window_s: f64, seed: u64) -> Description {
    let described =
        |slope: Slope| Description { levels: Levels::found(values, slope, scale, seed), slope };
    let mut all = vec![described(Slope::default())];
    if all[0].levels.changes().is_empty() {
        all[0].slope = Slope::within(values, &all[0].levels.ranges());
        return all.remove(0);
    }
    for slope in Slope::of_whole(values, scale) {
        all.push(described(slope));
    }
    for _ in 0..REFINEMENTS {
        let last = &all[best_of(&all)];
        all.push(described(Slope::within(values, &last.levels.ranges())));
    }
    // A slope that is not reported must not move the levels.
    let mut number = 0;
    all.retain(|one| {
        number += 1;
        number == 1 || reported_drift(one, values, scale, window_s).is_some()
    });
    let best = best_of(&all);
    all.swap_remove(best)
}

/// The description with the smallest cost; the first one if equal.
fn best_of(all: &[Description]) -> usize {
    let times = all.iter().map(|one| one.levels.memory_time());
    let memory_time = times.fold(1.0, f64::max);
    let cost = |number: &usize| {
        let one = &all[*number];
        one.levels.cost(one.slope != Slope::default(), memory_time)
    };
    let best = (0..all.len()).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.unwrap_or_default()
}

fn reported_shifts(found: &Description, series: &[f64]) -> Vec<LevelShift> {
    let ranges = found.levels.ranges();
    let sides = ranges.windows(2);
    let reported = |(change, sides): (&levels::Change, &[Range<usize>])| {
        let (before, after) = if found.slope == Slope::default() {
            (sides[0].clone(), sides[1].clone())
        } else {
            // The slope holds for the whole series and may not fit each level, so use the windows next to the
            // change.
            beside(&sides[0], &sides[1])
        };
        let median_of = |range: Range<usize>| median(series[range].iter().copied());
        LevelShift {
            index: change.index,
            earliest_index: change.earliest,
            latest_index: change.latest,
            before: median_of(before).unwrap_or_default(),
            after: median_of(after).unwrap_or_default(),
            p_value_ratio: change.p_value,
        }
    };
    found.levels.changes().iter().zip(sides).map(reported).collect()
}

/// The nearest windows on both sides of a change.
fn beside(before: &Range<usize>, after: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let last = before.end.saturating_sub(NEAREST).max(before.start)..before.end;
    let first = after.start..(after.start + NEAREST).min(after.end);
    (last, first)
}

fn reported_drift(
    found: &Description,
    values: &[f64],
    scale: Scale,
    window_s: f64,
) -> Option<Drift> {
    let p_value_ratio = drift::p_value(values, &found.levels.ranges(), found.slope)?;
    let level = median(found.slope.removed_from(values))?;
    let over = |windows: f64| scale.ratio(found.slope.at(windows), level);
    let drift = Drift {
        per_hour_ratio: over(3600.0 / window_s),
        over_series_ratio: over((values.len() - 1) as f64),
        p_value_ratio,
    };
    let is_reported = drift.p_value_ratio <= FALSE_ALARM_RATIO * DRIFT_SHARE
        && drift.over_series_ratio.abs() >= LEAST_RATIO
        && drift.per_hour_ratio.is_finite();
    is_reported.then_some(drift)
}

#[cfg(test)]
mod tests;
