//! A search for better settings, run by run: chooses the next run, evaluates finished runs and computes the
//! answer. The same figures give the same sequence, so an interrupted search continues where it stopped.

use crate::estimate::CONFIDENCE_RATIO;
use crate::experiment::ab::{is_disturbed, most_set_aside};
use crate::search::tuning::space::{Setting, defaults};
use crate::search::tuning::surface::Normal;
use crate::search::tuning::{
    Comparison, Outcome, Purpose, Tuning, TuningResult, TuningSettings, TuningStep, proven,
};
use crate::student::two_sided;
use dyno_record::experiment::{
    Ablation, CostKind, Figure, Figures, Keys, Knob, KnobEffect, RunsSetAside, TuneAnswer,
    TuneGoal, TuneOptions, TunePurpose, TuneTrial, keys_of,
};
use std::collections::BTreeMap;
use under_way::UnderWay;

pub mod across;
mod baseline;
mod under_way;
mod visible;

pub use baseline::{BASELINE_RUNS, Baseline};
use visible::visible_beyond;
pub use visible::visible_ratio;

/// Pairs of a search comparison.
const SEARCH_PAIRS: usize = 2;
/// Fewest pairs of a comparison that supports an answer.
pub const LEAST_PAIRS: usize = 4;
/// Confidence at which a worse setting is dropped after its first pair.
const CERTAINLY_WORSE_RATIO: f64 = 0.99;
/// Failed runs that a comparison forgives, because one may be chance.
const FORGIVEN: usize = 1;

/// Error of a run without the goal figure.
const NOT_TOLD: &str = "a run did not report the goal";

/// The next run.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneRun {
    /// Keys to set.
    pub keys: Keys,
    /// Whether the run uses the candidate (otherwise the reference).
    pub is_tried: bool,
    /// Whether the run may end as soon as its outcome is certain; for candidates of the search.
    pub may_end_early: bool,
    /// Whether to restart servers that were started for the search before the run.
    pub on_new_servers: bool,
}

/// Why settings were not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failure {
    /// The harm that they did, or the server's message.
    pub reason: String,
    /// Plan key with a value that the server refused, which is not harm.
    pub refused: Option<String>,
    /// Share of CPU time that the hypervisor took before the run ended, if known.
    pub stolen_ratio: Option<f64>,
    /// Whether a server of this run ended or failed to start, which is never chance.
    pub server_ended: bool,
}

/// Estimate of the variation between pairs.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Sum of the squared deviations of the pairs' logarithms.
    squares: f64,
    degrees_of_freedom: f64,
}

impl Noise {
    fn pair_variance(&self) -> f64 {
        self.squares / self.degrees_of_freedom.max(1.0)
    }
}

/// Progress of a search; see the module.
#[derive(Clone, Debug)]
pub struct TuneProgress {
    options: TuneOptions,
    search: Tuning,
    noise: Noise,
    baseline: Figure,
    /// Baseline runs that do not count.
    first_set_aside: Vec<RunsSetAside>,
    max_pairs: usize,
    /// Most pairs for the candidate in confirmation, once its remaining time is known.
    confirmation_pairs: Option<usize>,
    /// Number of the next run in the experiment.
    place: usize,
    trials: Vec<TuneTrial>,
    /// Outcomes of the comparisons.
    outcomes: Vec<Outcome>,
    under_way: Option<UnderWay>,
}

/// The goal figure of a run: operations per second or microseconds. `None` if the run did not report it.
pub fn goal_of(goal: TuneGoal, figures: &Figures) -> Option<f64> {
    let value = match goal {
        TuneGoal::Rate => figures.rate_per_s.value,
        TuneGoal::P99 => figures.response_us.get("p99")?.value,
        TuneGoal::Cpu => figures.costs.as_ref()?.of(CostKind::ServerCpu)?.value,
    };
    Some(value).filter(|value| *value > 0.0)
}

/// Why a run does harm, by its figures with all limited percentiles; `None` if it is harmless.
pub fn harm(options: &TuneOptions, figures: &Figures) -> Option<String> {
    if figures.failed_ratio > options.failed_ratio {
        return Some(format!("{:.3} % of the operations failed", figures.failed_ratio * 100.0));
    }
    let broken = options.responses.iter().find_map(|one| match one.value_us(figures) {
        Some(value_us) if value_us <= one.limit_us => None,
        Some(value_us) => Some(format!("{} was {:.3} ms", one.name(), value_us / 1e3)),
        // As in `dyno slo`: an unknown value does not meet a limit.
        None => Some(format!("{} is unknown", one.name())),
    });
    if broken.is_some() {
        return broken;
    }
    let ended = figures.rate_per_s.value / (1.0 - figures.failed_ratio).max(f64::MIN_POSITIVE);
    let offered = figures.offered_rate_per_s?;
    let is_kept = super::queueing::is_sustained(ended, offered, figures.succeeded)
        && figures.dropped_ratio == 0.0;
    (!is_kept).then(|| format!("achieved {ended:.0} of {offered:.0} offered operations per second"))
}

/// Share of the time for the search.
pub const SEARCH_PART: f64 = 0.6;

/// Most pairs of a comparison that supports an answer.
const MOST_PAIRS: f64 = 24.0;

/// Search comparisons, and the most pairs per final comparison, that fit into a time. `None` if the time is too
/// short for a search and a confirmation.
pub fn budget(budget_s: f64, run_s: f64) -> Option<(u32, u32)> {
    /// Usual number of final comparisons: the candidate, four changes and the remainder.
    const CONFIRMATIONS: u32 = 6;
    let runs = (budget_s / run_s).floor() - BASELINE_RUNS as f64;
    let trials = (runs * SEARCH_PART / (2 * SEARCH_PAIRS) as f64).floor();
    let rest = runs * (1.0 - SEARCH_PART);
    let is_enough = trials >= 3.0 && rest >= (2 * LEAST_PAIRS) as f64;
    is_enough.then(|| (trials.min(400.0) as u32, pairs_in(rest, 2.0, CONFIRMATIONS)))
}

/// Most pairs per comparison for this time, pair duration and number of comparisons; an even number.
fn pairs_in(time_s: f64, pair_s: f64, comparisons: u32) -> u32 {
    let twos = (time_s / pair_s / f64::from(comparisons.max(1)) / 2.0).floor();
    (twos * 2.0).clamp(LEAST_PAIRS as f64, MOST_PAIRS) as u32
}

/// A candidate that the next run would begin to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToConfirm {
    /// Number of candidates that were dropped before.
    pub before: usize,
    /// Number of comparisons: the confirmation, each change and the remainder; or other candidates if the
    /// confirmation fails.
    pub comparisons: u32,
}

impl ToConfirm {
    /// Most pairs per comparison for this time and pair duration. 0 if this is not the first candidate and the
    /// time is too short to confirm it.
    pub fn pairs_in(self, time_s: f64, pair_s: f64) -> u32 {
        let is_too_late = time_s < LEAST_PAIRS as f64 * pair_s;
        if self.before > 0 && is_too_late { 0 } else { pairs_in(time_s, pair_s, self.comparisons) }
    }
}

impl TuneProgress {
    /// Starts a search after the baseline runs.
    ///
    /// # Errors
    /// The reason why the search cannot start: a baseline run does not report the goal, or does harm.
    pub fn new(options: &TuneOptions, baseline: &Baseline) -> Result<TuneProgress, String> {
        let mut logs = Vec::new();
        for figures in baseline.counted() {
            if let Some(reason) = harm(options, figures) {
                return Err(format!("the current settings do not meet the limits: {reason}"));
            }
            let goal = goal_of(options.goal, figures).ok_or(NOT_TOLD)?;
            logs.push(goal.ln());
        }
        let count = logs.len().max(1) as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let freedom = (count - 1.0).max(1.0);
        // A count is accurate to one operation, however equal the counts of a few short runs are.
        let counted = baseline.counted().iter();
        let counted = counted.map(|figures| figures.succeeded.max(1));
        let resolution = 1.0 / counted.min().unwrap_or(1) as f64;
        let squares = squares.max(freedom * resolution.powi(2));
        let half = two_sided(CONFIDENCE_RATIO, freedom) * (squares / freedom / count).sqrt();
        let settings = TuningSettings {
            seed: options.seed,
            trials: options.trials.unwrap_or_default() as usize,
            margin: options.margin_ratio.ln_1p(),
        };
        Ok(TuneProgress {
            search: Tuning::new(options.knobs.clone(), settings),
            // A pair has the noise of both runs.
            noise: Noise { squares: 2.0 * squares, degrees_of_freedom: freedom },
            baseline: Figure {
                value: mean.exp(),
                low: Some((mean - half).exp()),
                high: Some((mean + half).exp()),
            },
            first_set_aside: baseline.set_aside().to_vec(),
            max_pairs: options.max_pairs.map_or(LEAST_PAIRS, |pairs| pairs as usize),
            confirmation_pairs: None,
            place: baseline.end(),
            options: options.clone(),
            trials: Vec::new(),
            outcomes: Vec::new(),
            under_way: None,
        })
    }

    /// Standard deviation of a run's logarithm, by all pairs so far.
    pub fn noise_ratio(&self) -> f64 {
        (self.noise.pair_variance() / 2.0).sqrt()
    }

    /// Number of search comparisons so far, if the next run would begin another one.
    pub fn searched(&self) -> Option<u32> {
        let is_search = |step| matches!(step, TuningStep::Compare { purpose: Purpose::Search, .. });
        let begins = self.under_way.is_none() && is_search(self.search.step());
        begins.then_some(self.trials.len() as u32)
    }

    /// Ends the search phase; the best setting so far is confirmed next.
    pub fn end_search(&mut self) {
        self.search.end_search();
    }

    /// The candidate that the next run would begin to confirm.
    pub fn to_confirm(&self) -> Option<ToConfirm> {
        let begins = self.under_way.is_none();
        let (before, candidate) = self.search.to_confirm().filter(|_| begins)?;
        let comparisons = match self.changed(candidate).count() as u32 {
            1 => 2,
            changes => changes + 2,
        };
        Some(ToConfirm { before, comparisons })
    }

    /// Sets the most pairs per comparison for the next candidate; 0 ends the search without confirming it.
    pub fn set_confirmation_pairs(&mut self, pairs: u32) {
        if pairs == 0 {
            self.search.end_confirmations();
        } else {
            self.confirmation_pairs = Some(pairs as usize);
        }
    }

    /// The next run; `None` at the end of the search.
    pub fn next_run(&mut self) -> Option<TuneRun> {
        if self.under_way.is_none() {
            let TuningStep::Compare { purpose, one, other } = self.search.step() else {
                return None;
            };
            let (purpose, knob) = match purpose {
                Purpose::Search => (TunePurpose::Search, None),
                Purpose::Confirm => (TunePurpose::Confirm, None),
                Purpose::Ablate { knob } => (TunePurpose::Ablate, Some(knob)),
            };
            self.under_way = Some(UnderWay { knob, ..UnderWay::new(purpose, one, other) });
        }
        let now = self.under_way.as_ref()?;
        let is_tried = now.is_tried_next();
        let begins_pair = now.half == [None; 2];
        let is_search = now.purpose == TunePurpose::Search;
        Some(TuneRun {
            keys: self.keys(if is_tried { &now.one } else { &now.other }),
            is_tried,
            may_end_early: is_tried && is_search,
            on_new_servers: begins_pair && !is_search,
        })
    }

    /// Records the end of the requested run. Returns the stolen share of CPU time if the pair is set aside and
    /// repeated because of it.
    ///
    /// # Errors
    /// The reason why the search cannot continue: a reference run failed or did not report the goal.
    pub fn take(&mut self, outcome: Result<&Figures, &Failure>) -> Result<Option<f64>, String> {
        let Some(mut now) = self.under_way.take() else {
            return Ok(None);
        };
        let is_tried = now.is_tried_next();
        now.note_run(self.place);
        self.place += 1;
        let stolen_ratio = match outcome {
            Ok(figures) => figures.stolen_ratio,
            Err(failure) => failure.stolen_ratio,
        };
        if self.is_disturbed(&now, stolen_ratio) {
            // This run says nothing about the settings.
            now.begin_pair_again(stolen_ratio);
            self.under_way = Some(now);
            return Ok(stolen_ratio);
        }
        let failure = match outcome {
            Ok(figures) => return self.measured(now, figures).map(|()| None),
            Err(failure) => failure,
        };
        // One harmful run of settings that were harmless before may be chance; two count.
        let may_be_chance = failure.refused.is_none()
            && !failure.server_ended
            && now.may_be_chance(is_tried)
            && now.forgiven() < FORGIVEN;
        if may_be_chance {
            now.begin_pair_again(None);
            self.under_way = Some(now);
            return Ok(None);
        }
        let outcome = match &failure.refused {
            Some(key) if is_tried => Outcome::Refused { knob: self.refused_knob(&now.one, key) },
            None if is_tried => Outcome::Violated,
            None if self.is_changed(&now.other) => Outcome::BesideViolated,
            _ => return Err(format!("the reference settings failed: {}", failure.reason)),
        };
        self.finish(&now, outcome, Some(failure.reason.clone()), false);
        Ok(None)
    }

    fn is_changed(&self, setting: &Setting) -> bool {
        self.changed(setting).next().is_some()
    }

    /// Whether the current pair does not count, because the hypervisor took too much CPU time during its last
    /// run.
    fn is_disturbed(&self, now: &UnderWay, stolen_ratio: Option<f64>) -> bool {
        let limit = self.options.max_steal_ratio;
        stolen_ratio.is_some_and(|stolen_ratio| is_disturbed(stolen_ratio, limit))
            && now.disturbed() < most_set_aside(self.most_pairs(now))
    }

    /// Records a measured run, and ends the comparison if it is decided.
    fn measured(&mut self, mut now: UnderWay, figures: &Figures) -> Result<(), String> {
        let is_tried = now.is_tried_next();
        let harmful = harm(&self.options, figures).filter(|_| is_tried);
        let goal = goal_of(self.options.goal, figures);
        let is_search = now.purpose == TunePurpose::Search;
        if goal.is_none() && !(is_search && harmful.is_some()) && now.forgiven() < FORGIVEN {
            now.begin_pair_again(None);
            self.under_way = Some(now);
            return Ok(());
        }
        if harmful.is_some() && (is_search || goal.is_none()) {
            self.finish(&now, Outcome::Violated, harmful, false);
            return Ok(());
        }
        let goal = goal.ok_or(NOT_TOLD)?;
        if is_tried {
            now.harm = harmful;
        }
        let log = if self.options.goal.larger_is_better() { goal.ln() } else { -goal.ln() };
        now.half[usize::from(!is_tried)] = Some(log);
        if let [Some(one), Some(other)] = now.half {
            now.half = [None; 2];
            now.ratios.push(one - other);
            let harm = now.harm.take();
            now.harms.extend(harm);
            if let Some((found, is_dropped)) = self.judged(&now) {
                match now.violation() {
                    None => self.finish(&now, Outcome::Compared(found), None, is_dropped),
                    harm => self.finish(&now, Outcome::Violated, harm, false),
                }
                return Ok(());
            }
        }
        self.under_way = Some(now);
        Ok(())
    }

    /// Whether servers restart between the two runs of a pair.
    fn needs_start(&self, now: &UnderWay) -> bool {
        let values = now.one.iter().zip(&now.other);
        let mut knobs = self.options.knobs.iter().zip(values);
        knobs.any(|(knob, (one, other))| one != other && knob.needs_start())
    }

    /// Most counted pairs of a comparison.
    fn most_pairs(&self, now: &UnderWay) -> usize {
        match now.purpose {
            TunePurpose::Search => SEARCH_PAIRS,
            TunePurpose::Confirm | TunePurpose::Ablate => {
                self.confirmation_pairs.unwrap_or(self.max_pairs)
            }
            TunePurpose::Across => self.max_pairs,
        }
    }

    /// The knob with the refused value, if only one knob changes this key.
    fn refused_knob(&self, setting: &Setting, key: &str) -> Option<usize> {
        let mut own = self.options.knobs.iter().enumerate().filter(|(_, knob)| knob.key == key);
        let (place, knob) = own.next()?;
        (own.next().is_none() && setting[place] != knob.default_place()).then_some(place)
    }

    /// The result of a comparison, once it has enough pairs, and whether it ended early.
    fn judged(&self, now: &UnderWay) -> Option<(Comparison, bool)> {
        let count = now.ratios.len() as f64;
        let mean = now.ratios.iter().sum::<f64>() / count;
        let pooled = self.noise.pair_variance();
        if now.purpose == TunePurpose::Search {
            let freedom = self.noise.degrees_of_freedom;
            let certain = two_sided(CERTAINLY_WORSE_RATIO, freedom);
            let is_worse = mean < -certain * (pooled / count).sqrt();
            // In the first pair the candidate starts on fresh servers, and the reference may have warm ones.
            let is_dropped = is_worse && !self.needs_start(now);
            let is_over = now.ratios.len() >= SEARCH_PAIRS;
            let found = Comparison {
                log_ratio: mean,
                error: (pooled / count).sqrt(),
                degrees_of_freedom: self.noise.degrees_of_freedom,
            };
            return (is_over || is_dropped).then_some((found, is_dropped && !is_over));
        }
        // Both orders must be equally frequent, so that a drift cancels out.
        if now.ratios.len() < LEAST_PAIRS || !now.ratios.len().is_multiple_of(2) {
            return None;
        }
        let own = now.mean()?;
        let freedom = own.spread.degrees_of_freedom;
        // A few pairs may agree by chance.
        let found = Comparison {
            log_ratio: own.value,
            error: own.spread.deviation.max((pooled / 2.0 / count).sqrt()),
            degrees_of_freedom: freedom,
        };
        // Only by the width, which does not favour a side.
        let half = two_sided(CONFIDENCE_RATIO, freedom) * found.error;
        let is_over = now.ratios.len() >= self.most_pairs(now);
        (is_over || half <= self.options.margin_ratio.ln_1p() / 2.0).then_some((found, false))
    }

    fn finish(
        &mut self,
        now: &UnderWay,
        outcome: Outcome,
        problem: Option<String>,
        is_dropped: bool,
    ) {
        if let Some(own) = now.mean().filter(|_| now.ratios.len() > 1) {
            self.noise.squares += own.squares;
            self.noise.degrees_of_freedom += own.spread.degrees_of_freedom;
        }
        // It ignores comparisons after the search phase.
        self.search.record(outcome);
        let best = self.search.gain(self.search.best());
        self.outcomes.push(outcome);
        self.trials.push(TuneTrial {
            purpose: now.purpose,
            knob: now.knob.map(|place| self.options.knobs[place].name.clone()),
            settings: self.named(&now.one),
            beside: self.named(&now.other),
            runs: now.runs.clone(),
            set_aside: now.set_aside.clone(),
            ratio: outcome.compared().map(|found| self.ratio(found)),
            problem,
            is_beside: outcome == Outcome::BesideViolated,
            is_refused: matches!(outcome, Outcome::Refused { .. }),
            is_dropped,
            best_ratio: (now.purpose == TunePurpose::Search).then(|| self.of_model(best)),
        });
    }

    /// The answer, final once the search is over and provisional before.
    pub fn answer(&self) -> TuneAnswer {
        let result = match self.search.step() {
            TuningStep::Done(result) => Some(result),
            TuningStep::Compare { .. } => None,
        };
        let none = Setting::new();
        let (setting, gain, ablation, candidate) = match &result {
            Some(TuningResult::Better { setting, gain, ablation }) => {
                (setting, Some(*gain), ablation.as_slice(), None)
            }
            Some(TuningResult::Nothing { candidate: Some((candidate, outcome)) }) => {
                let gain = outcome.compared().copied();
                (&none, gain, [].as_slice(), Some(self.named(candidate)))
            }
            Some(TuningResult::Nothing { candidate: None }) | None => {
                (&none, None, [].as_slice(), None)
            }
        };
        let proven = proven(ablation);
        let of_one_change = |(place, outcome): &(usize, Outcome)| {
            let knob = &self.options.knobs[*place];
            let stays = setting.get(*place).is_some_and(|value| *value != knob.default_place());
            let trial = self.trials.iter().rev();
            let mut trials = trial.filter(|trial| trial.knob.as_ref() == Some(&knob.name));
            let trial = trials.next();
            Ablation {
                knob: knob.name.clone(),
                value: trial
                    .and_then(|trial| trial.beside.get(&knob.name).cloned())
                    .unwrap_or_default(),
                ratio: outcome.compared().map(|found| self.ratio(found)),
                problem: trial.and_then(|trial| trial.problem.clone()),
                stays,
                is_only_together: stays && !proven.contains(place),
            }
        };
        TuneAnswer {
            baseline: self.baseline,
            noise_ratio: self.noise_ratio(),
            visible_ratio: self.visible_ratio(),
            first_set_aside: self.first_set_aside.clone(),
            trials: self.trials.clone(),
            settings: self.named(setting),
            keys: self.keys(setting),
            ratio: gain.map(|gain| self.ratio(&gain)),
            ablation: ablation.iter().map(of_one_change).collect(),
            candidate,
            effects: self.effects(setting),
            comparison: None,
        }
    }

    fn effects(&self, setting: &Setting) -> Vec<KnobEffect> {
        let defaults = defaults(&self.options.knobs);
        let base = if setting.is_empty() { &defaults } else { setting };
        let of_knob = |(place, knob): (usize, &Knob)| {
            let of_value = |value: usize| {
                let mut other = base.clone();
                other[place] = value;
                self.of_model(self.search.gain(&other))
            };
            KnobEffect {
                knob: knob.name.clone(),
                ratios: (0..knob.values.len()).map(of_value).collect(),
            }
        };
        self.options.knobs.iter().enumerate().map(of_knob).collect()
    }

    /// Plan keys that a setting changes.
    fn keys(&self, setting: &Setting) -> Keys {
        keys_of(self.changed(setting))
    }

    fn named(&self, setting: &Setting) -> BTreeMap<String, String> {
        let changed = self.changed(setting);
        changed.map(|(knob, value)| (knob.name.clone(), value.to_owned())).collect()
    }

    fn changed<'a>(&'a self, setting: &'a Setting) -> impl Iterator<Item = (&'a Knob, &'a str)> {
        let all = self.options.knobs.iter().zip(setting);
        let changed = all.filter(|(knob, value)| **value != knob.default_place());
        changed.map(|(knob, value)| (knob, knob.values[*value].as_str()))
    }

    /// Ratio of two settings' goals, from the logarithm of the improvement.
    fn ratio(&self, found: &Comparison) -> Figure {
        let half = two_sided(CONFIDENCE_RATIO, found.degrees_of_freedom) * found.error;
        self.of_logs(found.log_ratio, half)
    }

    fn of_model(&self, gain: Normal) -> Figure {
        self.of_logs(gain.mean, 1.96 * gain.deviation)
    }

    fn of_logs(&self, better: f64, half: f64) -> Figure {
        let log = if self.options.goal.larger_is_better() { better } else { -better };
        Figure { value: log.exp(), low: Some((log - half).exp()), high: Some((log + half).exp()) }
    }
}

#[cfg(test)]
mod tests;
