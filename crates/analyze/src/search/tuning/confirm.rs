//! From the search result to the answer: confirms candidates and selects the changes that count.

use super::space::Setting;
use super::{CONFIDENCE_RATIO, Comparison, Outcome, State, Tuning, TuningResult};

/// Standard normal deviate of the end of a 95 % interval: a larger gain is ruled out.
const POSSIBLE: f64 = 1.96;
/// Most candidates that are confirmed.
const MOST_CANDIDATES: usize = 5;
/// Most of these candidates that may do harm.
const MOST_HARMFUL: usize = 3;

impl Tuning {
    /// Confirms the next worthwhile candidate, or ends without a result. Candidates other than the first use
    /// the time of the first one's ablation.
    pub(super) fn next_candidate(&self) -> State {
        let first = self.given_up.first();
        let most = first.map_or(1, |(first, _)| self.changes(first).len() + 1);
        let outcomes = self.given_up.iter().map(|(_, outcome)| outcome);
        let harmful = outcomes.filter(|outcome| **outcome == Outcome::Violated);
        if self.given_up.len() < most.min(MOST_CANDIDATES)
            && harmful.count() < MOST_HARMFUL
            && let Some(candidate) = self.candidate()
        {
            return State::Confirm(candidate);
        }
        self.nothing()
    }

    fn nothing(&self) -> State {
        // A measured candidate says more than a harmful one.
        let measured = self.measured().last();
        State::Done(TuningResult::Nothing { candidate: measured.or(self.given_up.last()).cloned() })
    }

    /// The next candidate to confirm, and the number of candidates dropped before it.
    pub fn to_confirm(&self) -> Option<(usize, &Setting)> {
        match &self.state {
            State::Confirm(candidate) => Some((self.given_up.len(), candidate)),
            _ => None,
        }
    }

    /// Ends the search because no time is left for the next candidate.
    pub fn end_confirmations(&mut self) {
        if self.to_confirm().is_some() {
            self.state = self.nothing();
        }
    }

    /// Candidates that were measured without a proven gain.
    fn measured(&self) -> impl Iterator<Item = &(Setting, Outcome)> {
        self.given_up.iter().filter(|(_, outcome)| outcome.compared().is_some())
    }

    /// Whether a candidate is certainly better. One of several would be enough, so each gets half of the
    /// previous error probability.
    fn proves_a_gain(&self, found: &Comparison) -> bool {
        found.p_value() < self.caveat() / 2.0
    }

    /// The two-sided error probability of a candidate.
    pub(super) fn caveat(&self) -> f64 {
        (1.0 - CONFIDENCE_RATIO) / 2_f64.powi(self.measured().count() as i32)
    }

    /// The next worthwhile candidate: the best setting without unnecessary changes; or, if the search was too
    /// noisy to rule out a gain, the complete best setting, or else the setting whose gain is least ruled out.
    fn candidate(&self) -> Option<Setting> {
        let is_open = |setting: &Setting| {
            let mut given_up = self.given_up.iter();
            self.risk(setting).is_some() && given_up.all(|(one, _)| one != setting)
        };
        let simple = self.simplified(self.best.clone());
        if is_open(&simple) && self.gain(&simple).mean >= self.settings.margin {
            return Some(simple);
        }
        let is_possible = |setting: &Setting| self.possible(setting) >= self.settings.margin;
        let is_changed = !self.changes(&self.best).is_empty();
        if is_changed && is_open(&self.best) && is_possible(&self.best) {
            return Some(self.best.clone());
        }
        // Never conclude that there is no gain from the model alone, which expects most knobs to do
        // nothing.
        let is_first = self.measured().next().is_none();
        let other =
            self.least_ruled_out(is_open).filter(|setting| is_first || is_possible(setting));
        other.or_else(|| self.least_certain()).cloned()
    }

    /// The setting whose own pairs leave the largest gain possible, if it exceeds the margin: more pairs
    /// decide.
    fn least_certain(&self) -> Option<&Setting> {
        let open = self.confirmations().filter(|(setting, found)| {
            found.high() >= self.settings.margin && self.risk(setting).is_some()
        });
        let most = open.max_by(|one, other| one.1.high().total_cmp(&other.1.high()));
        most.map(|(setting, _)| setting)
    }

    /// The measured candidates, with the pooled result of their own pairs.
    fn confirmations(&self) -> impl Iterator<Item = (&Setting, Comparison)> {
        let measured = self.measured();
        measured.filter_map(|(setting, _)| Some((setting, self.pairs_of(setting)?)))
    }

    /// The pooled result of a candidate's pairs.
    fn pairs_of(&self, candidate: &Setting) -> Option<Comparison> {
        let own = self.measured().filter(|(setting, _)| setting == candidate);
        own.last()?.1.compared().copied()
    }

    /// The largest gain of a setting that is not practically ruled out, as a logarithm.
    fn possible(&self, setting: &Setting) -> f64 {
        let gain = self.gain(setting);
        gain.mean + POSSIBLE * gain.deviation
    }

    /// The compared setting with the largest possible gain, among those that satisfy a condition.
    fn least_ruled_out(&self, is_open: impl Fn(&Setting) -> bool) -> Option<&Setting> {
        let changed = self
            .surface
            .tried()
            .iter()
            .filter(|setting| is_open(setting) && !self.changes(setting).is_empty());
        changed.max_by(|one, other| self.possible(one).total_cmp(&self.possible(other)))
    }

    /// The largest gain that all comparisons, and a confirmation by its own pairs, leave possible for any
    /// setting, as a logarithm; `None` if no setting was compared.
    pub fn possible_gain(&self) -> Option<f64> {
        let open = self.least_ruled_out(|setting| self.risk(setting).is_some());
        let of_model = open.map(|setting| {
            let possible = self.possible(setting);
            // If all settings are clearly worse: the gain that an equally good one would have shown.
            let of_equal = POSSIBLE * self.gain(setting).deviation;
            if possible > 0.0 { possible } else { of_equal }
        });
        // Confirmed pairs count even if later harm excludes their setting.
        let of_pairs = self.confirmations().map(|(_, found)| found.high());
        of_model.into_iter().chain(of_pairs).reduce(f64::max)
    }

    /// Reverts changes that cost less than a part of the margin on the surface, the smallest effect first.
    fn simplified(&self, mut setting: Setting) -> Setting {
        let mut spent = 0.0;
        loop {
            let losses = self.changes(&setting).into_iter().map(|knob| {
                let other = self.without(&setting, knob);
                (self.surface.gain(&setting, &other).mean, other)
            });
            let losses = losses.filter(|(_, other)| self.risk(other).is_some());
            match losses.min_by(|one, other| one.0.total_cmp(&other.0)) {
                Some((loss, other)) if spent + loss.max(0.0) < self.settings.margin / 2.0 => {
                    spent += loss.max(0.0);
                    setting = other;
                }
                _ => return setting,
            }
        }
    }

    pub(super) fn confirmed(&mut self, candidate: Setting, outcome: Outcome) -> State {
        match outcome {
            Outcome::Compared(gain) if self.proves_a_gain(&gain) => {
                match self.changes(&candidate).len() {
                    1 => done(candidate, gain, Vec::new()),
                    _ => State::Ablate { candidate, gain, outcomes: Vec::new() },
                }
            }
            Outcome::Compared(found) => {
                let before = self.pairs_of(&candidate);
                let all = before.map_or(found, |before| before.and(found));
                self.give_up(candidate, Outcome::Compared(all))
            }
            _ => self.give_up(candidate, outcome),
        }
    }

    /// Drops a candidate that was not confirmed. Others may still have a gain, except those that would probably
    /// do the same harm, or be refused as well.
    pub(super) fn give_up(&mut self, candidate: Setting, outcome: Outcome) -> State {
        match outcome {
            Outcome::Violated => self.limits.went(&candidate, false),
            Outcome::Refused { knob } => self.learn_refusal(&candidate, knob),
            Outcome::Compared(_) | Outcome::BesideViolated => {}
        }
        self.best = self.best_tried();
        self.given_up.push((candidate, outcome));
        self.next_candidate()
    }

    pub(super) fn ablated(
        &self,
        candidate: Setting,
        gain: Comparison,
        outcomes: Vec<(usize, Outcome)>,
    ) -> State {
        if outcomes.len() < self.changes(&candidate).len() {
            return State::Ablate { candidate, gain, outcomes };
        }
        let proven = proven(&outcomes);
        let mut setting = candidate.clone();
        for (knob, _) in outcomes.iter().filter(|(knob, _)| !proven.contains(knob)) {
            setting[*knob] = self.knobs[*knob].default_place();
        }
        if setting == candidate {
            return done(candidate, gain, outcomes);
        }
        if proven.is_empty() {
            // Its changes are redundant, or work only together, or the gain was chance: another comparison
            // decides.
            setting.clone_from(&candidate);
        }
        State::Reduced { setting, candidate, gain, outcomes }
    }
}

pub(super) fn done(setting: Setting, gain: Comparison, ablation: Vec<(usize, Outcome)>) -> State {
    State::Done(TuningResult::Better { setting, gain, ablation })
}

/// The knobs without whose change the candidate is certainly worse, over all of them at once. A knob
/// counts if the candidate fails or is refused without its change.
pub fn proven(outcomes: &[(usize, Outcome)]) -> Vec<usize> {
    let mut p_values: Vec<(f64, usize)> = outcomes
        .iter()
        .map(|(knob, outcome)| match outcome {
            Outcome::Compared(found) => {
                let worse = Comparison { log_ratio: -found.log_ratio, ..*found };
                (worse.p_value(), *knob)
            }
            Outcome::Violated | Outcome::BesideViolated | Outcome::Refused { .. } => (0.0, *knob),
        })
        .collect();
    p_values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let alpha = (1.0 - CONFIDENCE_RATIO) / 2.0;
    let count = p_values.len();
    let certain = p_values
        .into_iter()
        .enumerate()
        .take_while(|(rank, (p, _))| *p < alpha / (count - rank) as f64);
    certain.map(|(_, (_, knob))| knob).collect()
}
