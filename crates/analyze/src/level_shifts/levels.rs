//! The levels of a series: found by splitting, moved to their exact positions, and merged if they hardly
//! differ.

use super::drift::Slope;
use super::memory::Memory;
use super::scan::clearest_split;
use super::scores::{Scale, change_ratio, scores};
use super::significance::p_value;
use super::{FALSE_ALARM_RATIO, LEAST_RATIO, LEAST_WINDOWS};
use crate::resampling::Resampling;
use crate::robust::median;
use std::ops::Range;

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 11;

/// A position is likely if its log-likelihood is lower than the best one's by less than this, which holds for
/// nearly all true positions.
const LIKELY_LOSS: f64 = 4.0;

/// Effective windows from which the memory of a series is known well enough.
const WELL_KNOWN_WINDOWS: f64 = 40.0;

/// Number of times that the positions are moved; they are stable after two or three.
const MOST_MOVES: usize = 5;

/// A change between two levels, on the scale of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// Number of windows before the change.
    pub(super) index: usize,
    /// First likely position.
    pub(super) earliest: usize,
    /// Last likely position.
    pub(super) latest: usize,
    /// Probability of such a split in a stationary series.
    pub(super) p_value: f64,
}

/// The levels of a series.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    changes: Vec<Change>,
    windows: usize,
    /// Sum of the absolute deviations from the medians.
    deviations: f64,
    memory_time: f64,
}

/// A position of a split, with its p value.
type Place = (usize, f64);

impl Levels {
    /// Finds the levels of values without a slope.
    pub(super) fn found(values: &[f64], slope: Slope, scale: Scale, seed: u64) -> Levels {
        let values = &slope.removed_from(values);
        let mut places = Vec::new();
        split(values, 0..values.len(), seed, &mut places);
        places.sort_by_key(|(index, _)| *index);
        loop {
            move_to_best(values, &mut places);
            let medians = medians(values, &places);
            let size = |number: usize| {
                let drifted = slope.at(places[number].0 as f64);
                let before = scale.back(medians[number] + drifted);
                let after = scale.back(medians[number + 1] + drifted);
                change_ratio(before, after).map_or(f64::INFINITY, f64::abs)
            };
            let smallest = (0..places.len()).min_by(|a, b| size(*a).total_cmp(&size(*b)));
            match smallest {
                Some(number) if size(number) < LEAST_RATIO => places.remove(number),
                _ => break,
            };
        }
        Levels::described(values, &places)
    }

    fn described(values: &[f64], places: &[Place]) -> Levels {
        let medians = medians(values, places);
        let ranges = ranges(places, values.len());
        let residuals: Vec<f64> = ranges
            .iter()
            .zip(&medians)
            .flat_map(|(range, level)| values[range.clone()].iter().map(move |v| v - level))
            .collect();
        let deviations: f64 = residuals.iter().map(|residual| residual.abs()).sum();
        let memory_time = Memory::of(&residuals, LEAST_WINDOWS).time();
        let likely = LIKELY_LOSS * memory_time * deviations / values.len() as f64;
        let changes = places.iter().enumerate().map(|(number, (index, p_value))| {
            let around = ranges[number].start..ranges[number + 1].end;
            let (before, after) = (medians[number], medians[number + 1]);
            let profile = Profile::of(values, around, before, after, LEAST_WINDOWS);
            let (earliest, latest) = profile.within(*index, likely);
            Change { index: *index, earliest, latest, p_value: *p_value }
        });
        Levels { changes: changes.collect(), windows: values.len(), deviations, memory_time }
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The parts between the changes.
    pub(super) fn ranges(&self) -> Vec<Range<usize>> {
        let places: Vec<Place> = self.changes.iter().map(|c| (c.index, c.p_value)).collect();
        ranges(&places, self.windows)
    }

    /// Number of windows that are worth one independent window, between the changes.
    pub(super) fn memory_time(&self) -> f64 {
        self.memory_time
    }

    /// Cost of the unexplained rest and of the parameters: the information criterion of G. Schwarz, *Annals of
    /// Statistics* 6 (1978), for Laplace's distribution and the effective number of windows.
    pub(super) fn cost(&self, has_slope: bool, memory_time: f64) -> f64 {
        let windows = self.windows as f64;
        let effective = (windows / memory_time).max(2.0);
        let parameters = 2 * self.changes.len() + usize::from(has_slope);
        let deviation = (self.deviations / windows).max(1e-12);
        2.0 * effective * deviation.ln() + parameters as f64 * effective.ln()
    }
}

fn ranges(places: &[Place], windows: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(places.iter().map(|(index, _)| *index));
    let ends = places.iter().map(|(index, _)| *index).chain([windows]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

fn medians(values: &[f64], places: &[Place]) -> Vec<f64> {
    ranges(places, values.len())
        .into_iter()
        .map(|range| median(values[range].iter().copied()).unwrap_or_default())
        .collect()
}

/// Splits a part of the series at its clearest position if that is significant, and then both sides. A part's
/// share of the false alarms is its share of the windows.
fn split(values: &[f64], part: Range<usize>, seed: u64, places: &mut Vec<Place>) {
    let inside = &values[part.clone()];
    let Some(found) = clearest_split(&scores(inside), LEAST_WINDOWS) else {
        return;
    };
    let memory = Memory::of(inside, LEAST_WINDOWS);
    let limit = limit(part.len(), memory) * part.len() as f64 / values.len() as f64;
    // The same part draws the same numbers, independent of earlier parts.
    let own_seed = seed ^ ((part.start as u64) << 32) ^ part.end as u64;
    let mut rng = Resampling::seeded(own_seed).rng(STREAM);
    let p_value = p_value(found.size, inside.len(), LEAST_WINDOWS, memory, limit, &mut rng);
    if p_value > limit {
        return;
    }
    let index = part.start + best_place(values, part.clone(), part.start + found.position);
    places.push((index, p_value));
    split(values, part.start..index, seed, places);
    split(values, index..part.end, seed, places);
}

/// The allowed probability of a false alarm: lower than requested if so few windows are independent that their
/// memory is poorly known.
fn limit(windows: usize, memory: Memory) -> f64 {
    let effective = windows as f64 / memory.time();
    FALSE_ALARM_RATIO * (effective / WELL_KNOWN_WINDOWS).min(1.0).powi(2)
}

/// The best position near a split from a coarse grid, relative to the start of the part.
fn best_place(values: &[f64], part: Range<usize>, near: usize) -> usize {
    // A level further away is not one of the two that this split separates.
    let reach = (part.len() / 32).max(2 * LEAST_WINDOWS);
    let around = near.saturating_sub(reach).max(part.start)..(near + reach).min(part.end);
    let before = median(values[around.start..near].iter().copied());
    let after = median(values[near..around.end].iter().copied());
    let levels = before.zip(after);
    let best = levels.and_then(|(before, after)| {
        Profile::of(values, around, before, after, LEAST_WINDOWS / 2).best()
    });
    // Both sides keep the minimum length.
    let place = best.unwrap_or(near);
    place.clamp(part.start + LEAST_WINDOWS, part.end - LEAST_WINDOWS) - part.start
}

/// Moves each change to the position with the smallest deviations from the medians of its two levels.
fn move_to_best(values: &[f64], places: &mut [Place]) {
    for _ in 0..MOST_MOVES {
        let mut has_moved = false;
        for number in 0..places.len() {
            let ranges = ranges(places, values.len());
            let medians = medians(values, places);
            let around = ranges[number].start..ranges[number + 1].end;
            let (before, after) = (medians[number], medians[number + 1]);
            let profile = Profile::of(values, around, before, after, LEAST_WINDOWS);
            if let Some(best) = profile.best().filter(|best| *best != places[number].0) {
                places[number].0 = best;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
}

/// Sums of absolute deviations from two levels, for each position of the change between them.
struct Profile {
    first_place: usize,
    sums: Vec<f64>,
}

impl Profile {
    fn of(values: &[f64], around: Range<usize>, before: f64, after: f64, least: usize) -> Profile {
        let first_place = around.start + least;
        let last_place = around.end.saturating_sub(least);
        let part = &values[around.clone()];
        let mut sum: f64 = part.iter().map(|v| (v - after).abs()).sum();
        let moved = part.iter().map(|v| (v - before).abs() - (v - after).abs());
        let mut sums = Vec::new();
        for (place, gain) in (around.start..=around.end).zip(moved.chain([0.0])) {
            if (first_place..=last_place).contains(&place) {
                sums.push(sum);
            }
            sum += gain;
        }
        Profile { first_place, sums }
    }

    /// The first of the best positions; `None` if there is none.
    fn best(&self) -> Option<usize> {
        let best = self.sums.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map(|(offset, _)| self.first_place + offset)
    }

    /// First and last position with a sum that exceeds the sum at `index` by less than this.
    fn within(&self, index: usize, allowance: f64) -> (usize, usize) {
        let Some(least) =
            index.checked_sub(self.first_place).and_then(|offset| self.sums.get(offset))
        else {
            return (index, index);
        };
        let is_likely = |sum: &f64| *sum <= least + allowance;
        let first = self.sums.iter().position(is_likely);
        let last = self.sums.iter().rposition(is_likely);
        (
            first.map_or(index, |offset| self.first_place + offset),
            last.map_or(index, |offset| self.first_place + offset),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_lowest_at_the_change_and_wide_where_unclear() {
        let values = [1.0, 1.0, 1.0, 3.0, 5.0, 5.0, 5.0];
        let profile = Profile::of(&values, 0..7, 1.0, 5.0, 2);
        assert_eq!(profile.best(), Some(3));
        // The value in the middle may belong to either level.
        assert_eq!(profile.within(3, 0.5), (3, 4));
        let direct = |place: usize| {
            let before: f64 = values[..place].iter().map(|v| (v - 1.0).abs()).sum();
            let after: f64 = values[place..].iter().map(|v| (v - 5.0).abs()).sum();
            before + after
        };
        for (offset, sum) in profile.sums.iter().enumerate() {
            assert!((sum - direct(2 + offset)).abs() < 1e-12);
        }
    }

    #[test]
    fn levels_that_hardly_differ_are_merged() {
        let mut values = vec![0.0; 60];
        values[20..40].iter_mut().for_each(|value| *value = 1.0);
        values[40..].iter_mut().for_each(|value| *value = 1.01);
        let scale = Scale::Logarithm { nothing: 1e-6 };
        let levels = Levels::found(&values, Slope::default(), scale, 1);
        assert_eq!(levels.ranges(), [0..20, 20..60]);
    }
}
