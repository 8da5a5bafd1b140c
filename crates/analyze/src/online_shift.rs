//! A change of level while the load still runs, from one window after the other, with bounded memory.
//!
//! The first [`LEARNING_WINDOWS`] windows are learned: the distribution of the values, and how far their memory
//! reaches. From then on each value becomes a normal score, by its rank among the learned ones, so that heavy tails
//! and dips that belong to the load are nothing special, and two rules watch for a change:
//!
//! - *Sums.* Two cumulative sums (E. S. Page, "Continuous Inspection Schemes", *Biometrika* 41 (1954)) add up
//!   the scores beyond a reference, one up and one down, and alarm at a limit. A sum with the reference `k` of scores
//!   whose long-run variance is `ω²` exceeds `h` in a window with a probability near `(2 k² / ω²) e^(−2 k h / ω²)` (D.
//!   Siegmund, *Sequential Analysis* (1985), chapter 10, in the limit of small steps), from which `h` follows. `ω²`
//!   and the centre are known only as well as the learned windows tell: both are taken by a margin to the safe side,
//!   which shrinks as more windows are learned.
//! - *Breaks.* Four of the last five windows are far outside of all that was learned, on the same side. This finds a
//!   collapse within five windows whatever the memory, and no dip of three.
//!
//! An alarm counts if the median since the change differs by what matters. After it, the new level is learned from
//! the place of the change on. What is learned slides with the load, at a distance, up to [`MOST_LEARNED`] windows, so
//! that a drift that takes hours is followed and not told.
//!
//! False alarms: less than one in [`WINDOWS_PER_FALSE_ALARM`] windows of stationary load, a day of seconds. In simulations
//! there was one in 12 million windows of white noise, autoregressions of 0.5, 0.8 and 0.9, dips every minute, heavy tails
//! and outliers: the margins cost some windows of delay. A change by a factor of five is told after four windows. One of
//! 20 % in noise of 5 % is told after 7 windows in the middle and 14 in 95 % of cases when 120 windows were learned, after
//! 6 and 9 with 300, and after 4 and 5 with 1,500. Memory costs time: 13 and 21 with an autoregression of 0.5 and 600
//! windows, 38 and 76 with one of 0.8.
//!
//! Complexity: a binary search for each window, and a sort of what was learned when it has grown or slid by a tenth.
//! Memory: at most 48 KiB.

mod learned;

use crate::robust::median;
use learned::Learned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Windows that are learned before a change can be found, at the start and after each alarm.
pub const LEARNING_WINDOWS: usize = 120;

/// Most windows that are remembered as the level.
pub const MOST_LEARNED: usize = 1_200;

/// Windows of stationary load for each false alarm, at least.
pub const WINDOWS_PER_FALSE_ALARM: f64 = 86_400.0;

/// Windows that are not yet learned, as a change may hide in them.
const RECENT_WINDOWS: usize = 64;

/// Windows that the rule of breaks looks at, and how many of them must be far outside.
const BREAK_WINDOWS: usize = 5;
const BREAK_OUTSIDE: usize = 4;

/// A change of level that was found while the load ran.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    /// Number of windows before the change, counted from the first one that was pushed, those without a value included.
    pub index_of_change: u64,
    /// Number of windows when the alarm was raised, the last one included.
    pub raised_after: u64,
    /// Median of the learned level, in the unit of the series.
    pub before: f64,
    /// Median of the windows since the change.
    pub after: f64,
    /// 1 minus the probability that a stationary load raises such an alarm at a given window.
    pub certainty_ratio: f64,
}

/// Watches a series for changes of its level.
#[derive(Clone, Debug)]
pub struct OnlineShift {
    least_ratio: f64,
    pushed: u64,
    learned: Learned,
    /// The last windows that have a value, the newest at the end.
    recent: VecDeque<Window>,
    /// The sum of scores above the reference, and that of scores below.
    sums: [Sum; 2],
}

/// A value with the number of windows before it.
#[derive(Clone, Copy, Debug)]
struct Window {
    number: u64,
    value: f64,
}

/// A cumulative sum of one side.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    height: f64,
    /// Windows since it was 0.
    windows: usize,
}

impl Sum {
    fn add(&mut self, step: f64) {
        self.height = (self.height + step).max(0.0);
        self.windows = if self.height > 0.0 {
            self.windows + 1
        } else {
            0
        };
    }
}

impl OnlineShift {
    /// Starts without any knowledge. Changes below `least_ratio` of the level are not told.
    pub fn new(least_ratio: f64) -> OnlineShift {
        OnlineShift {
            least_ratio,
            pushed: 0,
            learned: Learned::default(),
            recent: VecDeque::with_capacity(RECENT_WINDOWS + 1),
            sums: [Sum::default(); 2],
        }
    }

    /// Takes the value of the next window; values that are not finite are left out, but counted. Returns the alarm
    /// if this window makes a change certain.
    pub fn push(&mut self, value: f64) -> Option<Alarm> {
        let number = self.pushed;
        self.pushed += 1;
        if !value.is_finite() {
            return None;
        }
        self.recent.push_back(Window { number, value });
        if !self.learned.is_ready() {
            self.learn_all();
            return None;
        }
        let alarm = self.watch(value);
        if let Some(alarm) = alarm {
            self.learn_anew(alarm);
        } else if self.recent.len() > RECENT_WINDOWS {
            let oldest = self.recent.pop_front();
            self.learned.extend(oldest.map(|window| window.value));
        }
        alarm
    }

    /// While too little is known, each window is learned at once.
    fn learn_all(&mut self) {
        let newest = self.recent.drain(..);
        self.learned.extend(newest.map(|window| window.value));
        self.sums = [Sum::default(); 2];
    }

    /// After an alarm the windows since the change are what is known.
    fn learn_anew(&mut self, alarm: Alarm) {
        self.learned = Learned::default();
        let since = self.recent.drain(..);
        let since = since.filter(|window| window.number >= alarm.index_of_change);
        self.learned.extend(since.map(|window| window.value));
        self.sums = [Sum::default(); 2];
    }

    fn watch(&mut self, value: f64) -> Option<Alarm> {
        let score = self.learned.score(value);
        let reference = self.learned.reference();
        self.sums[0].add(score - reference);
        self.sums[1].add(-score - reference);
        self.break_alarm().or_else(|| self.sum_alarm())
    }

    fn sum_alarm(&mut self) -> Option<Alarm> {
        let limit = self.learned.limit();
        let side = (0..2).find(|side| self.sums[*side].height >= limit)?;
        let sum = self.sums[side];
        let alarm = self.alarm(sum.windows, self.learned.chance(sum.height));
        if alarm.is_none() {
            // Of no interest: the sum starts again, so that a later change gets its own place.
            self.sums[side] = Sum::default();
        }
        alarm
    }

    fn break_alarm(&self) -> Option<Alarm> {
        let last = || self.recent.iter().rev().take(BREAK_WINDOWS);
        [1.0, -1.0].iter().find_map(|side| {
            let outside = last().filter(|window| self.learned.is_far_outside(window.value, *side));
            if outside.count() >= BREAK_OUTSIDE {
                self.alarm(BREAK_WINDOWS, 1.0 / WINDOWS_PER_FALSE_ALARM)
            } else {
                None
            }
        })
    }

    /// The alarm for a change that began about `windows` ago, if it is of interest.
    fn alarm(&self, windows: usize, chance: f64) -> Option<Alarm> {
        let before = self.learned.median();
        let since = self.windows_since_change(windows, before);
        let mut since = self.recent.iter().skip(self.recent.len() - since);
        let first = since.next()?;
        let after = median(since.chain([first]).map(|window| window.value))?;
        let is_reported =
            (after - before).abs() >= self.least_ratio * before.abs() && after != before;
        is_reported.then(|| Alarm {
            index_of_change: first.number,
            raised_after: self.pushed,
            before,
            after,
            certainty_ratio: 1.0 - chance.min(1.0),
        })
    }

    /// The number of windows since the change: that for which the deviations from the level before and from the
    /// level after are smallest, among those near the first guess.
    fn windows_since_change(&self, guess: usize, before: f64) -> usize {
        let most = (guess + BREAK_WINDOWS).min(self.recent.len());
        let last = self.recent.iter().rev().take(most);
        let last: Vec<f64> = last.map(|window| window.value).collect();
        let after = median(last.iter().take(guess.div_ceil(2)).copied()).unwrap_or(before);
        let mut gain = 0.0;
        let mut best = (0.0, 1);
        for (place, value) in last.iter().enumerate() {
            gain += (value - before).abs() - (value - after).abs();
            if gain > best.0 {
                best = (gain, place + 1);
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests;
