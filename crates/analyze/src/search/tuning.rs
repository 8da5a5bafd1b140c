//! Chooses the next settings to try, the best settings, and the changes that count.
//!
//! The search compares two settings at a time, measured side by side. It starts with settings spread over the
//! space, and continues where the learned surface ([`surface`]) expects the largest improvement on the best
//! setting so far, away from settings that went wrong (`limits`). The best setting is the one with the highest
//! expected gain, not the one with the highest measurement: the highest of many noisy numbers is too high.
//!
//! The search finds only a candidate. Changes without an effect on the surface are reverted, and the rest is
//! compared with the defaults again, in as many pairs as it takes. If that does harm, or shows no gain where
//! other candidates may have one, the next candidate follows. Then each change of a better candidate is
//! reverted alone. Changes without a proven effect (Holm, *Scandinavian Journal of Statistics* 6, 1979, over
//! all of them) are reverted for good, and the rest is compared with the defaults once more.

mod cholesky;
mod confirm;
mod limits;
pub mod space;
pub mod surface;
#[cfg(test)]
mod tests;

use crate::estimate::CONFIDENCE_RATIO;
use crate::student::two_sided;
use confirm::done;
pub use confirm::proven;
use dyno_record::experiment::Knob;
use limits::Limits;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use space::{Setting, any, defaults, neighbours, spread};
use statrs::distribution::{ContinuousCDF, StudentsT};
use surface::{Difference, Normal, Surface};

/// Number of random candidates for the next setting.
const CANDIDATES: usize = 400;
/// Number of additional candidates near the best setting.
const NEAR: usize = 200;

/// Limits and costs of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuningSettings {
    /// Seed: the same seed and outcomes give the same search.
    pub seed: u64,
    /// Most comparisons of the search phase, without the confirmation.
    pub trials: usize,
    /// Smallest gain of interest, as a logarithm of the ratio.
    pub margin: f64,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum TuningStep {
    /// Measure `one` next to `other`, and [record](Tuning::record) the outcome.
    Compare {
        purpose: Purpose,
        /// The setting that is tried.
        one: Setting,
        /// The reference.
        other: Setting,
    },
    /// The search is over.
    Done(TuningResult),
}

/// Purpose of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Learns the surface. A certainly worse setting may be dropped early.
    Search,
    /// Compares the candidate with the defaults: fresh servers, as many pairs as an answer takes.
    Confirm,
    /// Compares the candidate without one change, as for [`Purpose::Confirm`].
    Ablate {
        /// Position of the knob.
        knob: usize,
    },
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Both settings were measured.
    Compared(Comparison),
    /// The tried setting did harm and was reverted.
    Violated,
    /// The reference did harm, which it had not done before: it is no longer the best.
    BesideViolated,
    /// The setting could not be applied, so nothing was measured and nothing harmed. It is not tried again.
    Refused {
        /// Position of the knob with the refused value, regardless of the others; absent if unknown, or if
        /// several together may be the cause.
        knob: Option<usize>,
    },
}

impl Outcome {
    /// The comparison, if both settings were measured.
    pub fn compared(&self) -> Option<&Comparison> {
        match self {
            Outcome::Compared(found) => Some(found),
            Outcome::Violated | Outcome::BesideViolated | Outcome::Refused { .. } => None,
        }
    }
}

/// Improvement of `one` over `other`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Logarithm of the ratio of the objectives; above 0 if it is better.
    pub log_ratio: f64,
    /// Standard error of the logarithm.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub degrees_of_freedom: f64,
}

impl Comparison {
    /// The probability of a ratio at least this far above 1 if there is no difference.
    fn p_value(&self) -> f64 {
        match StudentsT::new(0.0, 1.0, self.degrees_of_freedom) {
            Ok(student) if self.error > 0.0 => student.sf(self.log_ratio / self.error),
            _ => 1.0,
        }
    }

    /// The upper end of the interval at [`CONFIDENCE_RATIO`].
    fn high(&self) -> f64 {
        self.log_ratio + two_sided(CONFIDENCE_RATIO, self.degrees_of_freedom) * self.error
    }

    /// Pools two comparisons of the same settings, weighted by degrees of freedom: weights by the errors of few
    /// pairs would make the pooled error too small.
    fn and(self, other: Comparison) -> Comparison {
        let degrees_of_freedom = self.degrees_of_freedom + other.degrees_of_freedom;
        let weighted = |own: Comparison| (own, own.degrees_of_freedom / degrees_of_freedom);
        let parts = [weighted(self), weighted(other)];
        let mean = parts.iter().map(|(own, weight)| weight * own.log_ratio);
        let variance = parts.iter().map(|(own, weight)| (weight * own.error).powi(2));
        Comparison {
            log_ratio: mean.sum(),
            error: variance.sum::<f64>().sqrt(),
            degrees_of_freedom,
        }
    }

    fn is_better(&self) -> bool {
        self.p_value() < (1.0 - CONFIDENCE_RATIO) / 2.0
    }
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum TuningResult {
    /// No setting is certainly better than the defaults.
    Nothing {
        /// The best candidate, and the outcome of its comparison with the defaults, if there was one.
        candidate: Option<(Setting, Outcome)>,
    },
    /// A setting is certainly better.
    Better {
        /// The setting, with the fewest changes.
        setting: Setting,
        /// Improvement over the defaults.
        gain: Comparison,
        /// The candidate's changes with the effect of reverting each: below 0 if that made it worse. Changes
        /// that are not [proven] were reverted, unless no gain was proven without them.
        ablation: Vec<(usize, Outcome)>,
    },
}

/// State of a search.
#[derive(Clone, Debug)]
enum State {
    Search,
    Confirm(Setting),
    Ablate {
        candidate: Setting,
        gain: Comparison,
        outcomes: Vec<(usize, Outcome)>,
    },
    Reduced {
        setting: Setting,
        candidate: Setting,
        gain: Comparison,
        outcomes: Vec<(usize, Outcome)>,
    },
    Done(TuningResult),
}

/// A search for settings.
#[derive(Clone, Debug)]
pub struct Tuning {
    settings: TuningSettings,
    knobs: Vec<Knob>,
    random: Xoshiro256PlusPlus,
    surface: Surface,
    limits: Limits,
    /// Limits from refused settings.
    refusals: Limits,
    /// Knobs with values that are always refused.
    refused: Vec<(usize, usize)>,
    /// Number of refused settings.
    refused_trials: usize,
    /// Settings of the initial design.
    start: Vec<Setting>,
    trials: usize,
    /// The best setting so far.
    best: Setting,
    /// The next setting of the search phase.
    next: Option<Setting>,
    /// Candidates that were not confirmed.
    given_up: Vec<(Setting, Outcome)>,
    state: State,
}

impl Tuning {
    /// A search over these knobs, each with at least two values.
    pub fn new(knobs: Vec<Knob>, settings: TuningSettings) -> Tuning {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
        let count = (knobs.len() + 4).min(settings.trials / 3).max(1);
        let start = spread(&knobs, count, &mut random);
        let mut limits = Limits::new(&knobs);
        let best = defaults(&knobs);
        limits.went(&best, true);
        let refusals = limits.clone();
        let mut tuning = Tuning {
            settings,
            surface: Surface::new(&knobs),
            limits,
            refusals,
            refused: Vec::new(),
            refused_trials: 0,
            start,
            knobs,
            random,
            trials: 0,
            best,
            next: None,
            given_up: Vec::new(),
            state: State::Search,
        };
        tuning.choose();
        tuning
    }

    /// The next action.
    pub fn step(&self) -> TuningStep {
        let defaults = || defaults(&self.knobs);
        let (purpose, one, other) = match &self.state {
            State::Search => {
                let one = self.next.clone().unwrap_or_else(defaults);
                (Purpose::Search, one, self.best.clone())
            }
            State::Confirm(setting) | State::Reduced { setting, .. } => {
                (Purpose::Confirm, setting.clone(), defaults())
            }
            State::Ablate { candidate, outcomes, .. } => {
                let knob = self.changes(candidate)[outcomes.len()];
                let one = self.without(candidate, knob);
                (Purpose::Ablate { knob }, one, candidate.clone())
            }
            State::Done(result) => return TuningStep::Done(result.clone()),
        };
        TuningStep::Compare { purpose, one, other }
    }

    /// Records the outcome of the comparison that [`Tuning::step`] requested.
    pub fn record(&mut self, outcome: Outcome) {
        let TuningStep::Compare { purpose, one, other } = self.step() else {
            return;
        };
        if let (true, Outcome::Compared(found)) = (purpose != Purpose::Search, outcome) {
            self.learn_ratio(one.clone(), other.clone(), found);
        }
        self.state = match std::mem::replace(&mut self.state, State::Search) {
            State::Search => {
                self.learn(one, other, outcome);
                return;
            }
            State::Confirm(candidate) => self.confirmed(candidate, outcome),
            State::Ablate { candidate, gain, mut outcomes } => {
                if outcome == Outcome::BesideViolated {
                    self.state = self.give_up(candidate, Outcome::Violated);
                    return;
                }
                outcomes.push((self.changes(&candidate)[outcomes.len()], outcome));
                self.ablated(candidate, gain, outcomes)
            }
            State::Reduced { setting, candidate, gain, outcomes } => {
                match outcome {
                    Outcome::Compared(found) if found.is_better() => done(setting, found, outcomes),
                    _ if setting == candidate => self.give_up(candidate, outcome),
                    // The gain of all changes is proven, but the gain of the separately proven changes is not.
                    _ => done(candidate, gain, outcomes),
                }
            }
            done @ State::Done(_) => done,
        };
    }

    /// Ends the search phase; the best setting so far is confirmed next.
    pub fn end_search(&mut self) {
        if matches!(self.state, State::Search) {
            self.settings.trials = self.trials;
            self.choose();
        }
    }

    /// The best setting so far.
    pub fn best(&self) -> &Setting {
        &self.best
    }

    /// Estimated improvement of a setting over the defaults.
    pub fn gain(&self, setting: &Setting) -> Normal {
        self.surface.gain(setting, &defaults(&self.knobs))
    }

    fn learn(&mut self, one: Setting, other: Setting, outcome: Outcome) {
        self.trials += 1;
        match outcome {
            Outcome::Compared(found) => {
                self.limits.went(&one, true);
                self.refusals.went(&one, true);
                self.learn_ratio(one, other, found);
                self.best = self.best_tried();
            }
            Outcome::Violated => {
                self.limits.went(&one, false);
                self.refusals.went(&one, true);
            }
            Outcome::BesideViolated => {
                self.limits.went(&other, false);
                self.best = self.best_tried();
            }
            Outcome::Refused { knob } => {
                // A refusal costs no time and does not count as a comparison, unless there are too many.
                self.refused_trials += 1;
                if self.refused_trials <= self.settings.trials {
                    self.trials -= 1;
                }
                self.learn_refusal(&one, knob);
            }
        }
        self.choose();
    }

    fn learn_refusal(&mut self, setting: &Setting, knob: Option<usize>) {
        match knob {
            Some(place) => self.refused.push((place, setting[place])),
            None => self.refusals.went(setting, false),
        }
    }

    fn learn_ratio(&mut self, one: Setting, other: Setting, found: Comparison) {
        let difference = Difference { one, other, log_ratio: found.log_ratio, error: found.error };
        self.surface.learn(&difference, &mut self.random);
    }

    /// Probability that the setting goes wrong; `None` if it is too high to try the setting, or if it is
    /// refused.
    fn risk(&self, setting: &Setting) -> Option<f64> {
        let mut refused = self.refused.iter();
        if refused.any(|(place, value)| setting[*place] == *value) {
            return None;
        }
        let refusal = self.refusals.risk(setting)?;
        Some(self.limits.risk(setting)?.max(refusal))
    }

    /// The tried setting with the highest expected gain.
    fn best_tried(&self) -> Setting {
        let base = defaults(&self.knobs);
        let gain = |setting: &Setting| self.surface.gain(setting, &base).mean;
        let tried = self.surface.tried().iter();
        let tried = tried.filter(|setting| !self.limits.has_failed(setting));
        let tried = tried.map(|setting| (gain(setting), setting));
        let best = tried.max_by(|one, other| one.0.total_cmp(&other.0));
        best.map_or(base.clone(), |(_, setting)| setting.clone())
    }

    /// Chooses the next setting, or ends the search.
    fn choose(&mut self) {
        if self.trials < self.settings.trials {
            while let Some(setting) = self.start.pop() {
                let near = self.safe(setting);
                if near.is_some() {
                    self.next = near;
                    return;
                }
            }
            if self.surface.tried().is_empty() {
                // Without data, no setting promises more than another.
                self.next = self.next_at_random();
                if self.next.is_some() {
                    return;
                }
            } else if let Some((improvement, setting)) = self.most_promising()
                && improvement > self.settings.margin / 20.0
            {
                self.next = Some(setting);
                return;
            }
        }
        self.next = None;
        self.state = self.next_candidate();
    }

    /// A setting with one changed value that is unlikely to go wrong.
    fn next_at_random(&mut self) -> Option<Setting> {
        let near = neighbours(&self.knobs, &self.best);
        let mut near: Vec<Setting> = near.filter(|one| self.risk(one).is_some()).collect();
        if near.is_empty() {
            return None;
        }
        let place = self.random.random_range(0..near.len());
        Some(near.swap_remove(place))
    }

    /// This setting, or the nearest safe setting on the way to the best one.
    fn safe(&self, setting: Setting) -> Option<Setting> {
        let mut near = vec![setting];
        while !near.contains(&self.best) {
            let risks = near.iter().map(|one| (self.risk(one), one));
            let safe = risks.filter_map(|(risk, one)| Some((risk?, one)));
            if let Some((_, one)) = safe.min_by(|one, other| one.0.total_cmp(&other.0)) {
                return Some(one.clone());
            }
            near = near.iter().flat_map(|one| self.nearer(one)).collect();
        }
        None
    }

    /// The settings that share one more value with the best setting.
    fn nearer<'a>(&'a self, setting: &'a Setting) -> impl Iterator<Item = Setting> + 'a {
        let places = (0..setting.len()).filter(|place| setting[*place] != self.best[*place]);
        places.map(|place| {
            let mut near = setting.clone();
            near[place] = self.best[place];
            near
        })
    }

    /// The setting with the largest expected improvement on the best one, among random and near candidates and
    /// then uphill.
    fn most_promising(&mut self) -> Option<(f64, Setting)> {
        let mut candidates: Vec<Setting> =
            (0..CANDIDATES).map(|_| any(&self.knobs, &mut self.random)).collect();
        candidates.extend(neighbours(&self.knobs, &self.best));
        for _ in 0..NEAR {
            let others = any(&self.knobs, &mut self.random);
            let near = self.best.iter().zip(others).map(|(own, other)| {
                // Each value changes with a probability of one in four.
                if self.random.random_range(0..4_usize) == 0 { other } else { *own }
            });
            candidates.push(near.collect());
        }
        let mut found = self.best_of(candidates.into_iter())?;
        loop {
            let around: Vec<_> = neighbours(&self.knobs, &found.1).collect();
            match self.best_of(around.into_iter()) {
                Some(better) if better.0 > found.0 * 1.001 => found = better,
                _ => return Some(found),
            }
        }
    }

    fn best_of(&self, candidates: impl Iterator<Item = Setting>) -> Option<(f64, Setting)> {
        let judged = candidates.filter_map(|setting| {
            let risk = self.risk(&setting).filter(|_| setting != self.best)?;
            let improvement = self.surface.expected_improvement(&setting, &self.best);
            Some(((1.0 - risk) * improvement, setting))
        });
        judged.max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Positions of the knobs that a setting changes.
    fn changes(&self, setting: &Setting) -> Vec<usize> {
        let places = 0..self.knobs.len();
        places.filter(|place| setting[*place] != self.knobs[*place].default_place()).collect()
    }

    fn without(&self, setting: &Setting, knob: usize) -> Setting {
        let mut other = setting.clone();
        other[knob] = self.knobs[knob].default_place();
        other
    }
}
