//! The occurrences of a pattern in each cycle, and their mean shape.

use super::contrast::Contrasts;
use super::folding::Candidate;
use crate::robust::median;

/// Largest distance of an occurrence from its expected position, as a share of the period.
const REACH_RATIO: f64 = 0.1;

/// Smallest contrast of an occurrence as a share of the usual one.
const LEAST_CONTRAST_RATIO: f64 = 0.4;

/// Height at which the affected part begins and ends, as a share of the highest mean.
const EDGE_RATIO: f64 = 0.5;

/// A pattern is a harmonic if another pattern meets this share of its occurrences.
const REPEATED_RATIO: f64 = 0.6;

/// A pattern that affects more than this share of its period is wide.
const WIDE_RATIO: f64 = 0.25;

/// Number of times that occurrences are located again.
const REFINEMENTS: usize = 3;

/// Largest relative difference between equal periods.
const SAME_PERIOD_RATIO: f64 = 0.05;

/// Standard errors of a 95 % interval.
const INTERVAL: f64 = 1.96;

/// A period with the half-width of its 95 % interval, in windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Period {
    pub(super) value: f64,
    pub(super) uncertainty: f64,
}

/// The occurrences of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Occurrences {
    /// First window of each box, in order of time.
    starts: Vec<usize>,
    /// Cycle number of each occurrence.
    cycles: Vec<f64>,
    period: Period,
    /// Start of the affected part relative to the start of the box.
    shift: isize,
    /// Windows of the affected part.
    width: usize,
    height: f64,
    outside: f64,
    /// Means around the occurrences, starting at this distance from the starts.
    first: isize,
    means: Vec<f64>,
}

impl Occurrences {
    /// Locates and measures a candidate, and repeats this with the measured width while that makes it clearer.
    /// `None` if fewer than three cycles show it.
    pub(super) fn of(series: &[f64], candidate: &Candidate) -> Option<Occurrences> {
        let mut best = Occurrences::at_width(series, candidate)?;
        for _ in 0..REFINEMENTS {
            let moved =
                |(first, end): &(usize, usize)| (first.saturating_add_signed(best.shift), *end);
            let refined = Candidate {
                width: best.width,
                segments: candidate.segments.iter().map(moved).collect(),
                ..candidate.clone()
            };
            match Occurrences::at_width(series, &refined) {
                Some(found) if found.height.abs() > best.height.abs() => best = found,
                _ => break,
            }
        }
        Some(best)
    }

    fn at_width(series: &[f64], candidate: &Candidate) -> Option<Occurrences> {
        let starts = located(series, candidate)?;
        if starts.len() < super::FEWEST_PERIODS {
            return None;
        }
        let cycles = numbered(&starts, candidate.period);
        let period = period(&starts, &cycles);
        let mut found = Occurrences {
            starts,
            cycles,
            period,
            shift: 0,
            width: candidate.width,
            height: 0.0,
            outside: 0.0,
            first: 0,
            means: Vec::new(),
        };
        found.measure(series, candidate);
        Some(found)
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn period(&self) -> Period {
        self.period
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> f64 {
        self.height
    }

    /// Mean outside the affected parts.
    pub(super) fn outside(&self) -> f64 {
        self.outside
    }

    /// Start of the first affected part of the series, in windows from its start, by the line through all.
    pub(super) fn first_start(&self) -> f64 {
        let count = self.starts.len() as f64;
        let start = self.starts.iter().sum::<usize>() as f64 / count;
        let cycle = self.cycles.iter().sum::<f64>() / count;
        let zero = start - self.period.value * cycle + self.shift as f64;
        zero.rem_euclid(self.period.value)
    }

    /// Means around the occurrences, from half a period before the box to half a period after.
    fn measure(&mut self, series: &[f64], candidate: &Candidate) {
        let half = (self.period.value / 2.0) as isize;
        let width = candidate.width as isize;
        let first = width / 2 - half;
        let means: Vec<f64> = (first..first + 2 * half.max(1))
            .filter_map(|offset| self.mean_at(series, offset))
            .collect();
        let outside = median(means.iter().copied()).unwrap_or_default();
        let excess = |place: isize| {
            let mean = usize::try_from(place).ok().and_then(|place| means.get(place));
            mean.map_or(f64::NEG_INFINITY, |mean| candidate.direction * (mean - outside))
        };
        // Occurrences wander around the box by its width.
        let near = -first - width..-first + 2 * width;
        let peak = near.max_by(|a, b| excess(*a).total_cmp(&excess(*b)));
        let Some(peak) = peak.filter(|peak| excess(*peak) > 0.0) else {
            return;
        };
        let is_affected = |place: &isize| excess(*place) >= EDGE_RATIO * excess(peak);
        let before = (0..peak).rev().take_while(is_affected).count() as isize;
        let after = (peak + 1..).take_while(is_affected).count() as isize;
        self.shift = first + peak - before;
        self.width = (before + 1 + after) as usize;
        let affected = (peak - before) as usize..=(peak + after) as usize;
        let mean = |is_inside: bool| {
            let part = means.iter().enumerate();
            let part: Vec<f64> = part
                .filter(|(place, _)| affected.contains(place) == is_inside)
                .map(|(_, mean)| *mean)
                .collect();
            part.iter().sum::<f64>() / part.len().max(1) as f64
        };
        self.outside = mean(false);
        self.height = mean(true) - self.outside;
        (self.first, self.means) = (first, means);
    }

    /// Mean of the values at this distance from the starts; `None` beyond the ends of the series.
    fn mean_at(&self, series: &[f64], offset: isize) -> Option<f64> {
        let place = |start: &usize| start.checked_add_signed(offset);
        let values: Vec<f64> =
            self.starts.iter().filter_map(|start| series.get(place(start)?).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Removes the occurrences from the series. A pattern that fills much of its period is subtracted, as it
    /// has no neighbourhood; otherwise each affected part with its edges is replaced by the median of its
    /// neighbours.
    pub(super) fn take_out(&self, series: &mut [f64]) {
        if self.width as f64 > WIDE_RATIO * self.period.value {
            self.subtract(series)
        } else {
            self.cut_out(series)
        }
    }

    fn subtract(&self, series: &mut [f64]) {
        let around = (self.first..).zip(&self.means);
        for (offset, mean) in around {
            for start in &self.starts {
                let place = start.checked_add_signed(offset);
                if let Some(value) = place.and_then(|place| series.get_mut(place)) {
                    *value -= mean - self.outside;
                }
            }
        }
    }

    fn cut_out(&self, series: &mut [f64]) {
        let margin = self.width.div_ceil(4).max(1);
        let beside = self.width.div_ceil(2).max(1);
        for start in &self.starts {
            let start = start.saturating_add_signed(self.shift);
            let inner =
                start.saturating_sub(margin)..(start + self.width + margin).min(series.len());
            let outer = inner.start.saturating_sub(beside)..(inner.end + beside).min(series.len());
            let sides: Vec<f64> =
                outer.filter(|place| !inner.contains(place)).map(|place| series[place]).collect();
            let Some(level) = median(sides) else {
                continue;
            };
            series[inner].iter_mut().for_each(|value| *value = level);
        }
    }

    /// Whether these occurrences only repeat `other`, or `other` repeats some of these. Two parts of the same
    /// period are one pattern: a series that is high for half of it is low for the rest.
    pub(super) fn repeat(&self, other: &Occurrences) -> bool {
        let apart = (self.period.value - other.period.value).abs();
        if apart <= SAME_PERIOD_RATIO * other.period.value {
            return true;
        }
        let reach = other.width + self.width;
        let met = |of: &Occurrences, by: &Occurrences| {
            let is_met = |start: &&usize| by.starts.iter().any(|s| s.abs_diff(**start) <= reach);
            of.starts.iter().filter(is_met).count() as f64 / of.starts.len() as f64
        };
        // If occurrences fill most of the period, chance meets as many.
        let by_chance = |by: &Occurrences| (2 * reach + 1) as f64 / by.period.value;
        let repeats = |of: &Occurrences, by: &Occurrences| {
            met(of, by) >= REPEATED_RATIO.max((1.0 + by_chance(by)) / 2.0)
        };
        repeats(self, other) || repeats(other, self)
    }
}

/// The position of the largest contrast near each expected one, if it is large enough.
fn located(series: &[f64], candidate: &Candidate) -> Option<Vec<usize>> {
    let contrasts = Contrasts::of(series, candidate.width)?;
    let reach = (candidate.width as f64 / 2.0).max(candidate.period * REACH_RATIO);
    let mut found: Vec<(usize, f64)> = Vec::new();
    for (first, end) in &candidate.segments {
        let expected = (0..)
            .map(|cycle| *first as f64 + f64::from(cycle) * candidate.period)
            .take_while(|place| *place < *end as f64);
        for place in expected {
            found.extend(largest_near(&contrasts, place, reach, candidate.direction));
        }
    }
    // At the seams of time ranges one occurrence may be found twice.
    found.dedup_by(|later, earlier| {
        let is_same = (later.0 as f64 - earlier.0 as f64) < candidate.period / 2.0;
        if is_same && later.1 > earlier.1 {
            *earlier = *later;
        }
        is_same
    });
    let usual = median(found.iter().map(|(_, contrast)| *contrast))?;
    let is_clear = |found: &&(usize, f64)| found.1 >= LEAST_CONTRAST_RATIO * usual;
    Some(found.iter().filter(is_clear).map(|(start, _)| *start).collect())
}

/// The start of the box with the largest contrast near a position, and that contrast; the middle one if equal.
fn largest_near(
    contrasts: &Contrasts,
    place: f64,
    reach: f64,
    direction: f64,
) -> Option<(usize, f64)> {
    let first = (place - reach).round().max(contrasts.side as f64) as usize;
    let last = ((place + reach).round() as usize).min(contrasts.side + contrasts.values.len() - 1);
    let contrast = |start: &usize| direction * contrasts.values[start - contrasts.side];
    let largest = (first..=last).map(|start| contrast(&start)).max_by(f64::total_cmp)?;
    let mut equal =
        (first..=last).filter(|start| contrast(start) >= largest - 1e-9 * largest.abs());
    let (start, count) = (equal.clone().next()?, equal.by_ref().count());
    Some((start + (count - 1) / 2, largest))
}

/// Cycle numbers from the distances between occurrences.
fn numbered(starts: &[usize], period: f64) -> Vec<f64> {
    let mut cycle = 0.0;
    let mut cycles: Vec<f64> = starts.iter().take(1).map(|_| 0.0).collect();
    for pair in starts.windows(2) {
        cycle += ((pair[1] - pair[0]) as f64 / period).round().max(1.0);
        cycles.push(cycle);
    }
    cycles
}

/// The slope of the starts over the cycles. Its error is the error of a mean of the distances, which holds if
/// each occurrence follows from the one before, and is too large if all follow a clock.
fn period(starts: &[usize], cycles: &[f64]) -> Period {
    let count = starts.len() as f64;
    let mean_start = starts.iter().sum::<usize>() as f64 / count;
    let mean_cycle = cycles.iter().sum::<f64>() / count;
    let products = starts.iter().zip(cycles);
    let products = products.map(|(s, c)| (*s as f64 - mean_start) * (c - mean_cycle));
    let squares: f64 = cycles.iter().map(|cycle| (cycle - mean_cycle).powi(2)).sum();
    let value = products.sum::<f64>() / squares;
    let deviations: f64 = starts
        .windows(2)
        .zip(cycles.windows(2))
        .map(|(s, c)| ((s[1] - s[0]) as f64 - value * (c[1] - c[0])).powi(2))
        .sum();
    let gap_count = count - 1.0;
    let error = (deviations / gap_count / gap_count).sqrt();
    // A start is accurate to half a window at best.
    let resolution = 1.0 / cycles.last().copied().unwrap_or(1.0);
    Period { value, uncertainty: (INTERVAL * error).max(resolution) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_is_the_slope_of_occurrences_even_if_one_is_missing() {
        let starts = [5, 15, 25, 45, 55];
        let cycles = numbered(&starts, 10.2);
        assert_eq!(cycles, [0.0, 1.0, 2.0, 4.0, 5.0]);
        let period = period(&starts, &cycles);
        assert!((period.value - 10.0).abs() < 1e-12);
        assert_eq!(period.uncertainty, 0.2);
    }

    #[test]
    fn pattern_is_measured_and_removed() {
        let mut series = vec![100.0; 200];
        for start in (12..200).step_by(20) {
            series[start..start + 3].iter_mut().for_each(|value| *value = 40.0);
        }
        let candidate = super::super::folding::clearest(&series).unwrap();
        let found = Occurrences::of(&series, &candidate).unwrap();
        assert_eq!((found.width(), found.count()), (3, 10));
        assert!((found.height() + 60.0).abs() < 1e-9 && (found.outside() - 100.0).abs() < 1e-9);
        assert!((found.first_start() - 12.0).abs() < 0.51, "{}", found.first_start());
        found.take_out(&mut series);
        assert!(series.iter().all(|value| *value == 100.0));
        assert!(found.repeat(&found));
    }
}
