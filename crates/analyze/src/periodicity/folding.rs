//! The period, width and phase that stand out most, and their probability by chance.

use super::contrast::{Contrasts, FEWEST_PERIODS};
use crate::robust::normal_tail;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

/// Cycles that are folded with one phase. Occurrences with distances that vary by 5 % drift by a tenth of the
/// period within them.
pub const MOST_CYCLES: usize = 16;

/// Grid steps of the period within which an occurrence at the end of a segment moves by the width of the box.
const STEPS_PER_WIDTH: f64 = 2.0;

/// Grid steps of the phase within the width of the box.
const PHASES_PER_WIDTH: usize = 3;

/// Share of independent trials: neighbouring periods and phases use the same scores. Found by simulation, as a
/// safe value.
const INDEPENDENT_RATIO: f64 = 0.4;

/// A series with at most this many times [`MOST_CYCLES`] cycles is folded as a whole.
const WHOLE_FACTOR: f64 = 1.5;

/// Fewest additions that justify a thread.
const FEWEST_FOR_THREAD: usize = 1_000_000;

/// A pattern that stands out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Period in windows.
    pub(super) period: f64,
    /// Width of the box in windows.
    pub(super) width: usize,
    /// 1 for peaks, −1 for dips.
    pub(super) direction: f64,
    /// First window of the first box of each segment, with the end of the segment.
    pub(super) segments: Vec<(usize, usize)>,
    /// Probability of such a pattern at any period, width and phase in a series without a pattern.
    pub(super) p_value: f64,
}

/// The best trial for an octave of periods and a width.
#[derive(Default)]
struct Cell {
    trials: f64,
    best: Option<Trial>,
}

/// A period with a width and a direction.
#[derive(Clone, Copy)]
struct Trial {
    period: f64,
    width: usize,
    direction: f64,
    log_p: f64,
}

/// The pattern that is least likely by chance. `None` if the series is too short. Tries periods on all CPUs.
pub(super) fn clearest(series: &[f64]) -> Option<Candidate> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut cells: BTreeMap<(i32, usize), Cell> = BTreeMap::new();
    for contrasts in widths(series.len()).filter_map(|width| Contrasts::of(series, width)) {
        let scores = rounded(&contrasts.scores());
        let all: Vec<f64> = periods(&contrasts).collect();
        let threads = threads.min(all.len() * scores.len() / FEWEST_FOR_THREAD).max(1);
        let best = |periods: &[f64]| best_of(periods, &scores, contrasts.width);
        let found: Vec<Vec<(i32, Cell)>> = thread::scope(|scope| {
            let mut parts = all.chunks(all.len().div_ceil(threads).max(1));
            let own = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(|| best(part))).collect();
            let own = own.map(best);
            let others = others
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            own.into_iter().chain(others).collect()
        });
        for (octave, cell) in found.into_iter().flatten() {
            cells.entry((octave, contrasts.width)).or_default().merge(cell);
        }
    }
    let count = cells.len() as f64;
    let all = cells.values().filter_map(|cell| {
        let log_p = |best: Trial| best.log_p + (cell.trials.max(1.0) * count).ln();
        cell.best.map(|best| (best, log_p(best)))
    });
    let (best, log_p) = all.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    candidate(series, best, log_p.exp().min(1.0))
}

/// The best trials of these periods, by octave.
fn best_of(periods: &[f64], scores: &[i16], width: usize) -> Vec<(i32, Cell)> {
    let mut sums = Vec::new();
    let mut cells: BTreeMap<i32, Cell> = BTreeMap::new();
    for period in periods {
        let cell = cells.entry(period.log2().floor() as i32).or_default();
        let segments = folded(scores, *period, width, &mut sums);
        for direction in [1.0, -1.0] {
            let best = Trial {
                period: *period,
                width,
                direction,
                log_p: log_p_value(&segments, direction),
            };
            cell.merge(Cell { trials: INDEPENDENT_RATIO, best: Some(best) });
        }
    }
    cells.into_iter().collect()
}

impl Cell {
    /// Merges later trials: of two equally unlikely ones the first counts.
    fn merge(&mut self, other: Cell) {
        self.trials += other.trials;
        if let Some(new) = other.best
            && self.best.is_none_or(|best| new.log_p < best.log_p)
        {
            self.best = Some(new);
        }
    }
}

fn candidate(series: &[f64], trial: Trial, p_value: f64) -> Option<Candidate> {
    let contrasts = Contrasts::of(series, trial.width)?;
    let segments =
        folded(&rounded(&contrasts.scores()), trial.period, trial.width, &mut Vec::new());
    let first_box = |segment: &Segment| {
        if trial.direction > 0.0 { segment.highest.place } else { segment.lowest.place }
    };
    let segments = segments
        .iter()
        .map(|segment| (first_box(segment) + contrasts.side, segment.end + contrasts.side));
    Some(Candidate {
        period: trial.period,
        width: trial.width,
        direction: trial.direction,
        segments: segments.collect(),
        p_value,
    })
}

/// 1, 2, 3, 4, 6, 8, 12, 16 and so on.
fn widths(windows: usize) -> impl Iterator<Item = usize> {
    let powers = (1..).map(|power| 1_usize << power);
    let widths = powers.flat_map(|power| [power, power + power / 2]);
    std::iter::once(1).chain(widths).take_while(move |width| *width <= windows / 6)
}

/// Periods from the shortest that the width allows to a third of the series, close enough that no pattern is
/// missed between them.
fn periods(contrasts: &Contrasts) -> impl Iterator<Item = f64> {
    let windows = contrasts.values.len() as f64;
    let longest = windows / FEWEST_PERIODS as f64;
    let width = contrasts.width as f64;
    let next = move |period: &f64| {
        let cycles = (windows / period).min(MOST_CYCLES as f64 * WHOLE_FACTOR);
        Some(period + width / (STEPS_PER_WIDTH * cycles))
    };
    std::iter::successors(Some(contrasts.shortest_period()), next)
        .take_while(move |period| *period <= longest)
}

/// The sum of scores that stands out most in one direction.
#[derive(Clone, Copy)]
struct Extreme {
    /// The sum in units of its standard error.
    size: f64,
    /// Position of its first score.
    place: usize,
}

/// A part of the series that is folded with one phase.
struct Segment {
    end: usize,
    phases: f64,
    highest: Extreme,
    lowest: Extreme,
}

/// Scores are rounded to 1/256: the sum over the cycles of a segment then fits into 16 bits without overflow
/// (at most 25 × 5 × 256), and a CPU adds several at once.
const UNITS: f64 = 256.0;
/// Larger than the scores of a billion windows.
const MOST_SCORE: f64 = 5.0;

fn rounded(scores: &[f64]) -> Vec<i16> {
    let in_units = |score: &f64| (score.clamp(-MOST_SCORE, MOST_SCORE) * UNITS).round() as i16;
    scores.iter().map(in_units).collect()
}

/// Folds the scores by a period, in segments of equal length. `sums` is a reused buffer.
fn folded(scores: &[i16], period: f64, width: usize, sums: &mut Vec<i16>) -> Vec<Segment> {
    let cycles = scores.len() as f64 / period;
    let count = if cycles <= MOST_CYCLES as f64 * WHOLE_FACTOR {
        1
    } else {
        (cycles / MOST_CYCLES as f64).ceil() as usize
    };
    let bound = |number: usize| scores.len() * number / count;
    let offsets: Vec<usize> = (0..)
        .map(|cycle| (f64::from(cycle) * period).round() as usize)
        .take_while(|offset| *offset <= bound(1) + 1)
        .collect();
    (0..count)
        .map(|number| {
            let bounds = bound(number)..bound(number + 1);
            folded_segment(scores, bounds, &offsets, width, sums)
        })
        .collect()
}

/// Steps of the phase up to which the sums of all phases are computed, cycle by cycle: the scores are then read
/// in order.
const DENSE_STEPS: usize = 4;

/// Folds one segment; the second offset is the period.
fn folded_segment(
    scores: &[i16],
    bounds: Range<usize>,
    offsets: &[usize],
    width: usize,
    sums: &mut Vec<i16>,
) -> Segment {
    let Range { start, end } = bounds;
    let none = Extreme { size: 0.0, place: start };
    let (mut highest, mut lowest, mut phases) = (none, none, 0.0);
    let period = offsets.get(1).copied().unwrap_or(end - start);
    let inside = &scores[start..end];
    let step = (width / PHASES_PER_WIDTH).max(1);
    sums.clear();
    sums.resize(period, 0);
    for cycle in offsets.iter().map_while(|offset| inside.get(*offset..)) {
        if step <= DENSE_STEPS {
            sums.iter_mut().zip(cycle).for_each(|(sum, score)| *sum = sum.wrapping_add(*score));
        } else {
            sums.iter_mut()
                .zip(cycle)
                .step_by(step)
                .for_each(|(sum, score)| *sum = sum.wrapping_add(*score));
        }
    }
    let mut count = offsets.len();
    let mut phase = 0;
    // The last cycle is cut off: all phases up to there have the same number of scores, and so do the phases
    // after it.
    while phase < period {
        while count > 1 && offsets[count - 1] + phase >= inside.len() {
            count -= 1;
        }
        let cut = inside.len().saturating_sub(offsets[count - 1]);
        let range_end = if cut > phase { cut.min(period) } else { period };
        let phases_here = sums[phase..range_end].iter().step_by(step);
        let size = |sum: i16| f64::from(sum) / UNITS / (count as f64).sqrt();
        let extreme = |sum: i16| {
            let steps = phases_here.clone().position(|one| *one == sum);
            Extreme { size: size(sum), place: start + phase + step * steps.unwrap_or(0) }
        };
        let (most, least) = if step == 1 {
            // Without a step the compiler vectorizes the comparison.
            let sums = &sums[phase..range_end];
            (sums.iter().copied().fold(0, i16::max), sums.iter().copied().fold(0, i16::min))
        } else {
            let both = |(most, least): (i16, i16), sum: &i16| (most.max(*sum), least.min(*sum));
            phases_here.clone().fold((0, 0), both)
        };
        if size(most) > highest.size {
            highest = extreme(most);
        }
        if size(least) < lowest.size {
            lowest = extreme(least);
        }
        phases += phases_here.len() as f64;
        phase += phases_here.len() * step;
    }
    Segment { end, phases, highest, lowest }
}

/// Logarithm of the probability that more than half of the segments stand out equally, by the union bound.
fn log_p_value(segments: &[Segment], direction: f64) -> f64 {
    let log_p = |segment: &Segment| {
        let size = if direction > 0.0 { segment.highest.size } else { -segment.lowest.size };
        (log_tail(size) + segment.phases.ln()).min(0.0)
    };
    let mut all: Vec<f64> = segments.iter().map(log_p).collect();
    let majority = all.len() / 2 + 1;
    let (_, middle, _) = all.select_nth_unstable_by(majority - 1, f64::total_cmp);
    let choices: f64 =
        (0..majority).map(|k| ((segments.len() - k) as f64 / (k + 1) as f64).ln()).sum();
    (choices + majority as f64 * *middle).min(0.0)
}

/// Logarithm of the probability that a standard normal value is above `z`.
fn log_tail(z: f64) -> f64 {
    if z < 8.0 {
        normal_tail(z).ln()
    } else {
        // Mills' ratio, accurate to 1 % from here on.
        -z * z / 2.0 - (z * TAU.sqrt()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_adds_up_values_one_period_apart() {
        let mut scores = vec![0.0; 100];
        for place in [7, 27, 47, 67, 87] {
            scores[place] = 2.0;
        }
        let segments = folded(&rounded(&scores), 20.0, 1, &mut Vec::new());
        assert_eq!(segments.len(), 1);
        assert_eq!(segments[0].highest.place, 7);
        assert!((segments[0].highest.size - 10.0 / 5.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(segments[0].phases, 20.0);
    }

    #[test]
    fn one_busy_time_range_does_not_make_a_pattern() {
        let mut scores = vec![0.0; 640];
        for cycle in 0..16 {
            scores[cycle * 10 + 3] = 3.0;
        }
        let one = log_p_value(&folded(&rounded(&scores), 10.0, 1, &mut Vec::new()), 1.0);
        assert_eq!(one, 0.0);
        for cycle in 16..64 {
            // Each segment with its own phase.
            scores[cycle * 10 + cycle / 16] = 3.0;
        }
        let all = log_p_value(&folded(&rounded(&scores), 10.0, 1, &mut Vec::new()), 1.0);
        assert!(all < -100.0, "{all}");
    }

    #[test]
    fn the_logarithm_of_the_tail_is_smooth() {
        assert!((log_tail(7.999) - log_tail(8.001)).abs() < 0.03);
        assert!((log_tail(1.6449) - 0.05_f64.ln()).abs() < 1e-4);
        assert!(log_tail(60.0).is_finite());
    }

    #[test]
    fn widths_grow_by_a_third_or_a_half() {
        assert_eq!(widths(100).collect::<Vec<_>>(), [1, 2, 3, 4, 6, 8, 12, 16]);
        assert_eq!(widths(6).collect::<Vec<_>>(), [1]);
    }
}
