//! The highest offered rate that keeps an objective, such as a p99 under 5 ms, when near the
//! boundary the same rate keeps it at one time and misses it at another.
//!
//! Rates lie on a logarithmic grid, whose steps are the resolution. From the start rate the search
//! goes up or down by factors of 2, 4, 16 and so on (a stride on the grid that doubles) until the
//! objective changes sides, then bisects, with one measurement for each rate. When two neighbours of the grid disagree, both are measured again until a majority of
//! [`ObjectiveSettings::votes`] is certain, and if one changes sides the search goes on from there,
//! in growing steps: an unlucky early measurement costs time, not truth. It stops when a majority
//! says "kept" at one rate and "missed" at the next.
//!
//! The boundary found is the rate that keeps the objective in half of all measurements, to within a
//! step of the grid, if that share falls with the rate: for each end to be wrong, most votes at it
//! must be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limits and costs of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectiveSettings {
    /// First rate that is tried, operations per second.
    pub start_rate_per_s: f64,
    /// No rate below is tried.
    pub min_rate_per_s: f64,
    /// No rate above is tried.
    pub max_rate_per_s: f64,
    /// Distance of neighbouring rates as a share of the lower one; above 0.
    pub resolution_ratio: f64,
    /// Measurements of a rate of which the majority decides; odd.
    pub votes: u32,
    /// The search ends after this many measurements, decided or not.
    pub max_measurements: u32,
}

impl ObjectiveSettings {
    /// Steps of 4 %, best of five, at most 60 measurements between 1 and 10 million per second.
    pub fn starting_at(start_rate_per_s: f64) -> ObjectiveSettings {
        ObjectiveSettings {
            start_rate_per_s,
            min_rate_per_s: 1.0,
            max_rate_per_s: 1e7,
            resolution_ratio: 0.04,
            votes: 5,
            max_measurements: 60,
        }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectiveStep {
    /// Offer this rate, and [record](ObjectiveSearch::record) whether the objective was kept.
    Measure {
        /// Operations per second.
        rate_per_s: f64,
    },
    /// The search is over.
    Done(ObjectiveResult),
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectiveEnd {
    /// Neighbouring rates were decided on either side of the boundary.
    Resolved,
    /// The objective is kept at the highest rate that may be tried.
    AlwaysKept,
    /// The objective is missed at the lowest rate that may be tried.
    NeverKept,
    /// The number of measurements was spent first; the rate is the best guess so far.
    OutOfMeasurements,
}

/// How often a rate was tried, and with what success.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRate {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Measurements that kept the objective.
    pub kept_count: u32,
    /// Measurements that missed it.
    pub missed_count: u32,
}

/// The boundary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveResult {
    /// Highest rate that keeps the objective, operations per second; absent if none was found.
    pub rate_per_s: Option<f64>,
    /// The highest rate that was tried below all rates at which a measurement missed the objective; absent if the
    /// lowest of all has a miss. This and `always_missed_from_per_s` say what the measurements made say, and have no
    /// stated confidence: one more could contradict them.
    pub always_kept_up_to_per_s: Option<f64>,
    /// The lowest rate that was tried above all rates at which a measurement kept it; absent if the highest of all was
    /// kept once.
    pub always_missed_from_per_s: Option<f64>,
    /// Why the search ended.
    pub end: ObjectiveEnd,
    /// All rates tried, from the lowest.
    pub tried: Vec<TriedRate>,
}

/// The search.
#[derive(Clone, Debug)]
pub struct ObjectiveSearch {
    settings: ObjectiveSettings,
    /// Positions on the grid of the lowest and the highest rate; that of the start rate is 0.
    ends: (i32, i32),
    /// Highest position that counts as kept.
    kept: Option<i32>,
    /// Lowest position that counts as missed, above `kept`.
    missed: Option<i32>,
    /// Steps to go while only one side is known.
    stride: i32,
    votes: BTreeMap<i32, Votes>,
    measurements: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    kept: u32,
    missed: u32,
}

impl Votes {
    /// What the majority says so far; `None` at a tie.
    fn side(self) -> Option<bool> {
        (self.kept != self.missed).then_some(self.kept > self.missed)
    }

    /// Whether no further vote of `of` could change the majority.
    fn is_certain(self, of: u32) -> bool {
        self.kept.max(self.missed) > of / 2
    }
}

impl ObjectiveSearch {
    /// A search that has measured nothing yet. A start rate outside of the limits is moved to them.
    pub fn new(settings: ObjectiveSettings) -> ObjectiveSearch {
        let step = settings.resolution_ratio.ln_1p();
        let limits = settings.min_rate_per_s..=settings.max_rate_per_s;
        let start = settings
            .start_rate_per_s
            .clamp(*limits.start(), *limits.end());
        let distance = |rate: f64| (rate / start).ln() / step;
        ObjectiveSearch {
            settings: ObjectiveSettings {
                start_rate_per_s: start,
                ..settings
            },
            ends: (
                distance(*limits.start()).floor() as i32,
                distance(*limits.end()).ceil() as i32,
            ),
            kept: None,
            missed: None,
            stride: ((2f64.ln() / step).round() as i32).max(1),
            votes: BTreeMap::new(),
            measurements: 0,
        }
    }

    /// What to do next. The same until an outcome is recorded.
    pub fn step(&self) -> ObjectiveStep {
        match self.next_position() {
            Ok(position) => ObjectiveStep::Measure {
                rate_per_s: self.rate(position),
            },
            Err(end) => ObjectiveStep::Done(self.result(end)),
        }
    }

    /// Takes the outcome of the step that [`Self::step`] asks for; without effect after the end.
    pub fn record(&mut self, kept: bool) {
        let Ok(position) = self.next_position() else {
            return;
        };
        self.measurements += 1;
        let votes = self.votes.entry(position).or_default();
        match kept {
            true => votes.kept += 1,
            false => votes.missed += 1,
        }
        self.update(position);
    }

    /// Moves the sides after a vote at `position`.
    fn update(&mut self, position: i32) {
        let votes = self.votes[&position];
        match votes.side() {
            // A tie is measured again where it lies.
            None => return,
            Some(true) => {
                self.kept = Some(position);
                if self.missed.is_some_and(|missed| missed <= position) {
                    self.missed = None;
                }
            }
            Some(false) => {
                self.missed = Some(position);
                if self.kept.is_some_and(|kept| kept >= position) {
                    self.kept = None;
                }
            }
        }
        match self.kept.is_some() && self.missed.is_some() {
            // Should a side be lost again, the boundary is near.
            true => self.stride = 1,
            false if self.measurements > 1 => self.stride = self.stride.saturating_mul(2),
            false => {}
        }
        self.remember();
    }

    /// A side that was lost may be known from earlier: the nearest certain rate beyond the other.
    fn remember(&mut self) {
        let of = self.settings.votes;
        let certain =
            |votes: &Votes, side: bool| votes.is_certain(of) && votes.side() == Some(side);
        match (self.kept, self.missed) {
            (Some(kept), None) => {
                let mut above = self.votes.range(kept + 1..);
                self.missed = above.find(|(_, v)| certain(v, false)).map(|(p, _)| *p);
            }
            (None, Some(missed)) => {
                let mut below = self.votes.range(..missed).rev();
                self.kept = below.find(|(_, v)| certain(v, true)).map(|(p, _)| *p);
            }
            _ => {}
        }
    }

    /// Where to measure, or why nothing more is measured. What the last measurement that was allowed has decided is
    /// decided.
    fn next_position(&self) -> Result<i32, ObjectiveEnd> {
        let wanted = self.wanted_position()?;
        match self.measurements >= self.settings.max_measurements {
            true => Err(ObjectiveEnd::OutOfMeasurements),
            false => Ok(wanted),
        }
    }

    /// Where to measure for a decision, or the decision.
    fn wanted_position(&self) -> Result<i32, ObjectiveEnd> {
        let (lowest, highest) = self.ends;
        let tie = self.votes.iter().find(|(_, votes)| votes.side().is_none());
        if let Some((position, _)) = tie {
            return Ok(*position);
        }
        match (self.kept, self.missed) {
            (None, None) => Ok(0),
            (Some(kept), None) if kept >= highest => {
                self.confirm(kept).ok_or(ObjectiveEnd::AlwaysKept)
            }
            (Some(kept), None) => Ok(kept.saturating_add(self.stride).min(highest)),
            (None, Some(missed)) if missed <= lowest => {
                self.confirm(missed).ok_or(ObjectiveEnd::NeverKept)
            }
            (None, Some(missed)) => Ok(missed.saturating_sub(self.stride).max(lowest)),
            (Some(kept), Some(missed)) if missed - kept > 1 => Ok(kept + (missed - kept) / 2),
            (Some(kept), Some(missed)) => self
                .confirm(kept)
                .or_else(|| self.confirm(missed))
                .ok_or(ObjectiveEnd::Resolved),
        }
    }

    /// The position, if it needs another vote.
    fn confirm(&self, position: i32) -> Option<i32> {
        let certain = self.votes[&position].is_certain(self.settings.votes);
        (!certain).then_some(position)
    }

    fn rate(&self, position: i32) -> f64 {
        let rate = self.settings.start_rate_per_s
            * (f64::from(position) * self.settings.resolution_ratio.ln_1p()).exp();
        rate.clamp(self.settings.min_rate_per_s, self.settings.max_rate_per_s)
    }

    fn result(&self, end: ObjectiveEnd) -> ObjectiveResult {
        let tried = |(position, votes): (&i32, &Votes)| TriedRate {
            rate_per_s: self.rate(*position),
            kept_count: votes.kept,
            missed_count: votes.missed,
        };
        // A miss far below the boundary ends the first range, and a success far above begins the second.
        let never_missed = self.votes.iter().take_while(|(_, votes)| votes.missed == 0);
        let never_kept = self.votes.iter().rev();
        let never_kept = never_kept.take_while(|(_, votes)| votes.kept == 0);
        let rate = |(position, _): (&i32, &Votes)| self.rate(*position);
        ObjectiveResult {
            rate_per_s: self.kept.map(|kept| self.rate(kept)),
            always_kept_up_to_per_s: never_missed.last().map(rate),
            always_missed_from_per_s: never_kept.last().map(rate),
            end,
            tried: self.votes.iter().map(tried).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
