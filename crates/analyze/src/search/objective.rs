//! Searches the highest offered rate that meets an objective, such as a p99 under 5 ms, although near the
//! boundary the same rate meets it at one time and misses it at another.
//!
//! Rates lie on a logarithmic grid, whose steps are the resolution. From the start rate the search
//! goes up or down by factors of 2, 4, 16 and so on (a stride on the grid that doubles) until the
//! objective changes sides, then bisects, with one measurement for each rate, until the two sides
//! are `BRACKET` apart.
//!
//! From then on no single measurement decides: the success probability is modelled as a curve over the rate
//! ([`boundary`]), and all measurements together give the distribution of the rate at which half of them
//! succeed. Each measurement is made where it is expected to be most informative. The search stops when the
//! interval of this rate is narrow: soon if no two measurements contradict each other, later if chance decides
//! over a wide range. An unlucky early measurement costs time, not accuracy.

pub mod boundary;
mod posterior;

use dyno_record::experiment::{Boundary, ObjectiveEnd, ObjectiveResult, TriedRate};
use posterior::{Expected, Posterior};
use std::collections::BTreeMap;

/// Bisection ends when the rates on both sides of the boundary differ by less than this, as a logarithm, or are
/// neighbours.
const BRACKET: f64 = 0.18;

/// The search ends when the interval of the boundary reaches at most this many grid steps to either side.
const INTERVAL_STEPS: f64 = 1.25;

/// Measurements of the lowest or highest rate whose majority decides that the boundary is beyond it; odd.
const VOTES_AT_LIMIT: u32 = 3;

/// Probability at which the boundary counts as beyond the limits.
const CERTAIN_RATIO: f64 = 0.975;

/// Most candidates for the next rate.
const MOST_CANDIDATES: i32 = 24;

/// Largest width of a column of the posterior, as a logarithm.
const WIDEST_COLUMN: f64 = 0.01;

/// Fewest columns per grid step.
const COLUMNS_PER_STEP: f64 = 4.0;

/// Usual distance of the boundary from the bracket, as a logarithm.
const BRACKET_ERROR: f64 = 0.25;

/// Limits and costs of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectiveSettings {
    /// First rate to try, in operations per second.
    pub start_rate_per_s: f64,
    /// Lowest rate to try.
    pub min_rate_per_s: f64,
    /// Highest rate to try.
    pub max_rate_per_s: f64,
    /// Distance between neighbouring rates as a share of the lower one; above 0. The target is an interval of
    /// the boundary of 1.25 times this share on either side, with a confidence of 95 %.
    pub resolution_ratio: f64,
    /// The search ends after this many measurements, even without a decision.
    pub max_measurements: u32,
}

impl ObjectiveSettings {
    /// Steps of 4 %, at most 60 measurements between 1 and 10 million per second.
    pub fn starting_at(start_rate_per_s: f64) -> ObjectiveSettings {
        ObjectiveSettings {
            start_rate_per_s,
            min_rate_per_s: 1.0,
            max_rate_per_s: 1e7,
            resolution_ratio: 0.04,
            max_measurements: 60,
        }
    }
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectiveStep {
    /// Offer this rate, and [record](ObjectiveSearch::record) whether it met the objective.
    Measure {
        /// Operations per second.
        rate_per_s: f64,
    },
    /// The search is over.
    Done(Box<ObjectiveResult>),
}

/// Search for the boundary.
#[derive(Clone, Debug)]
pub struct ObjectiveSearch {
    settings: ObjectiveSettings,
    /// Distance between neighbouring rates on the grid, as a logarithm.
    step: f64,
    /// Grid positions of the lowest and highest rate; the start rate is at 0.
    ends: (i32, i32),
    votes: BTreeMap<i32, Votes>,
    measurements: u32,
    /// Distribution of the boundary; absent before it is bracketed.
    posterior: Option<Posterior>,
    /// Next position to measure, or why the search ended.
    next: Result<i32, ObjectiveEnd>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    kept: u32,
    missed: u32,
}

impl Votes {
    /// The majority's decision so far; `None` at a tie.
    fn side(self) -> Option<bool> {
        (self.kept != self.missed).then_some(self.kept > self.missed)
    }

    /// Whether none of the remaining votes of `of` can change the majority.
    fn is_certain(self, of: u32) -> bool {
        self.kept.max(self.missed) > of / 2
    }
}

impl ObjectiveSearch {
    /// A search without measurements. A start rate outside the limits is clamped.
    pub fn new(settings: ObjectiveSettings) -> ObjectiveSearch {
        let step = settings.resolution_ratio.ln_1p();
        let limits = settings.min_rate_per_s..=settings.max_rate_per_s;
        let start = settings.start_rate_per_s.clamp(*limits.start(), *limits.end());
        let distance = |rate: f64| (rate / start).ln() / step;
        let mut search = ObjectiveSearch {
            settings: ObjectiveSettings { start_rate_per_s: start, ..settings },
            step,
            ends: (distance(*limits.start()).floor() as i32, distance(*limits.end()).ceil() as i32),
            votes: BTreeMap::new(),
            measurements: 0,
            posterior: None,
            next: Ok(0),
        };
        search.next = search.next_position();
        search
    }

    /// The next action, the same until an outcome is recorded.
    pub fn step(&self) -> ObjectiveStep {
        match self.next {
            Ok(position) => ObjectiveStep::Measure { rate_per_s: self.rate(position) },
            Err(end) => ObjectiveStep::Done(Box::new(self.result(end))),
        }
    }

    /// Records the outcome of the measurement that [`Self::step`] requested; no effect after the end.
    pub fn record(&mut self, kept: bool) {
        let Ok(position) = self.next else {
            return;
        };
        self.measurements += 1;
        let votes = self.votes.entry(position).or_default();
        if kept {
            votes.kept += 1
        } else {
            votes.missed += 1
        }
        let place = self.place(position);
        match &mut self.posterior {
            Some(posterior) => posterior.observe(place, kept),
            None => self.posterior = self.narrow_bracket().map(|sides| self.known(sides)),
        }
        self.next = self.next_position();
    }

    /// Ends the search with what is known so far, such as at a time limit; no effect after the end.
    pub fn stop(&mut self, end: ObjectiveEnd) {
        if self.next.is_ok() {
            self.next = Err(end);
        }
    }

    /// The rates between which the boundary lies so far; absent on a side that no measurement has shown. Once
    /// it is bracketed, these are the ends of the interval of the rate that 95 % of the measurements keep.
    pub fn bracket(&self) -> (Option<f64>, Option<f64>) {
        match &self.posterior {
            Some(posterior) => {
                let most = posterior.boundary(self.settings.start_rate_per_s).most_per_s;
                (Some(most.low), Some(most.high))
            }
            None => {
                let (kept, missed) = self.sides();
                let rate = |position: i32| self.rate(position);
                (kept.map(rate), missed.map(rate))
            }
        }
    }

    /// Next position to measure, or why the search ends. A decision by the last allowed measurement still
    /// counts.
    fn next_position(&self) -> Result<i32, ObjectiveEnd> {
        let wanted = match &self.posterior {
            None => self.position_for_bracket(),
            Some(posterior) => self.position_for_boundary(posterior),
        }?;
        if self.measurements >= self.settings.max_measurements {
            Err(ObjectiveEnd::OutOfMeasurements)
        } else {
            Ok(wanted)
        }
    }

    /// The highest position that counts as met, and the lowest that counts as missed.
    fn sides(&self) -> (Option<i32>, Option<i32>) {
        let of = |side: bool| {
            self.votes
                .iter()
                .filter(move |(_, votes)| votes.side() == Some(side))
                .map(|(position, _)| *position)
        };
        (of(true).next_back(), of(false).next())
    }

    /// Both sides, once they are close together.
    fn narrow_bracket(&self) -> Option<(i32, i32)> {
        let (kept, missed) = self.sides();
        let (kept, missed) = kept.zip(missed)?;
        let most = ((BRACKET / self.step) as i32).max(1);
        (missed - kept <= most).then_some((kept, missed))
    }

    /// Next position to narrow the bracket, or why there is no bracket.
    fn position_for_bracket(&self) -> Result<i32, ObjectiveEnd> {
        let (lowest, highest) = self.ends;
        let tie = self.votes.iter().find(|(_, votes)| votes.side().is_none());
        if let Some((position, _)) = tie {
            return Ok(*position);
        }
        match self.sides() {
            (None, None) => Ok(0),
            (Some(kept), None) if kept >= highest => {
                self.confirm(kept).ok_or(ObjectiveEnd::AlwaysKept)
            }
            (Some(kept), None) => Ok(kept.saturating_add(self.stride()).min(highest)),
            (None, Some(missed)) if missed <= lowest => {
                self.confirm(missed).ok_or(ObjectiveEnd::NeverKept)
            }
            (None, Some(missed)) => Ok(missed.saturating_sub(self.stride()).max(lowest)),
            (Some(kept), Some(missed)) => Ok(kept + (missed - kept) / 2),
        }
    }

    /// Steps while only one side is known: initially a factor of 2, whose logarithm doubles with each rate.
    fn stride(&self) -> i32 {
        let first = ((2f64.ln() / self.step).round() as i32).max(1);
        let doublings = self.votes.len().saturating_sub(1).min(30);
        first.saturating_mul(1 << doublings)
    }

    /// The position, if it needs another vote.
    fn confirm(&self, position: i32) -> Option<i32> {
        let certain = self.votes[&position].is_certain(VOTES_AT_LIMIT);
        (!certain).then_some(position)
    }

    /// Next position to locate the boundary, or the end if it is known.
    fn position_for_boundary(&self, posterior: &Posterior) -> Result<i32, ObjectiveEnd> {
        let (lowest, highest) = self.ends;
        if posterior.share_above(self.place(highest)) > CERTAIN_RATIO {
            return Err(ObjectiveEnd::AlwaysKept);
        }
        if posterior.share_above(self.place(lowest)) < 1.0 - CERTAIN_RATIO {
            return Err(ObjectiveEnd::NeverKept);
        }
        if posterior.half_width() <= INTERVAL_STEPS * self.step {
            return Err(ObjectiveEnd::Resolved);
        }
        let position = |share: f64| posterior.quantile(share) / self.step;
        let first = (position(0.01).floor() as i32 - 1).clamp(lowest, highest);
        let last = (position(0.99).ceil() as i32 + 1).clamp(lowest, highest);
        let stride = (last - first) / MOST_CANDIDATES + 1;
        let candidates = (first..=last).step_by(stride as usize);
        let places = candidates.clone().map(|position| self.place(position));
        let best = posterior.most_telling(places);
        let mut best = best.into_iter().flat_map(|index| candidates.clone().nth(index));
        Ok(best.next().unwrap_or(first))
    }

    /// Distribution of the boundary given all measurements and these sides.
    fn known(&self, (kept, missed): (i32, i32)) -> Posterior {
        let (lowest, highest) = self.ends;
        let columns = (self.step / WIDEST_COLUMN).ceil().max(COLUMNS_PER_STEP);
        let (low, high) = (self.place(kept), self.place(missed));
        let expected =
            Expected { middle: (low + high) / 2.0, distance: BRACKET_ERROR + (high - low) / 2.0 };
        let ends = (self.place(lowest), self.place(highest));
        let mut posterior = Posterior::new(ends, self.step / columns, expected);
        for (position, votes) in &self.votes {
            for number in 0..votes.kept + votes.missed {
                posterior.observe(self.place(*position), number < votes.kept);
            }
        }
        posterior
    }

    fn rate(&self, position: i32) -> f64 {
        let rate = self.settings.start_rate_per_s * (f64::from(position) * self.step).exp();
        rate.clamp(self.settings.min_rate_per_s, self.settings.max_rate_per_s)
    }

    /// Logarithm of the rate at a position, relative to the start rate.
    fn place(&self, position: i32) -> f64 {
        (self.rate(position) / self.settings.start_rate_per_s).ln()
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
        let (rate_per_s, boundary) = self.answer(end);
        ObjectiveResult {
            rate_per_s,
            boundary,
            always_kept_up_to_per_s: never_missed.last().map(rate),
            always_missed_from_per_s: never_kept.last().map(rate),
            end,
            tried: self.votes.iter().map(tried).collect(),
        }
    }

    /// The rate, and the boundary if there is one.
    fn answer(&self, end: ObjectiveEnd) -> (Option<f64>, Option<Boundary>) {
        let (kept, missed) = self.sides();
        match end {
            ObjectiveEnd::AlwaysKept => return (Some(self.rate(self.ends.1)), None),
            ObjectiveEnd::NeverKept => return (None, None),
            ObjectiveEnd::Resolved
            | ObjectiveEnd::OutOfMeasurements
            | ObjectiveEnd::Interrupted => {}
        }
        let known = match (&self.posterior, kept.zip(missed)) {
            (Some(known), _) => Some(known.clone()),
            // Both sides may still be far apart.
            (None, _) if end == ObjectiveEnd::Interrupted => None,
            (None, sides) => sides.map(|sides| self.known(sides)),
        };
        let boundary = known.map(|known| known.boundary(self.settings.start_rate_per_s));
        let tried = self.votes.keys().map(|position| self.rate(*position));
        let (lowest, highest) = tried.fold((f64::INFINITY, 0.0), |(low, high), rate| {
            (f64::min(low, rate), f64::max(high, rate))
        });
        let boundary = boundary
            .filter(|_| !self.votes.is_empty())
            .map(|found| found.within_measured([lowest, highest]));
        match boundary {
            Some(found) => (Some(found.half_per_s.value), boundary),
            None => (kept.map(|kept| self.rate(kept)), None),
        }
    }
}

#[cfg(test)]
mod tests;
