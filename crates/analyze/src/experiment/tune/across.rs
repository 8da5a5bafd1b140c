//! A search for settings for each of several workloads in turn; then the effect of each workload's settings on
//! the others, and settings that are good for all. The next action follows only from the finished comparisons.
//!
//! The settings found for one workload, and those of all workloads together, are compared with the defaults of
//! each workload in pairs, as in a confirmation, so two settings on one workload are compared by the difference
//! of two such comparisons (Welch's t test, *Biometrika* 34, 1947). Where one of several settings would do, each
//! must be more certain (Bonferroni).

use super::under_way::UnderWay;
use super::{
    CONFIDENCE_RATIO, Failure, Figures, LEAST_PAIRS, TuneProgress, TuneRun, budget, visible_beyond,
};
use crate::search::tuning::space::Setting;
use crate::search::tuning::{Comparison, Outcome, TuningResult, TuningStep};
use crate::student::two_sided;
use dyno_record::experiment::{
    AcrossSettings, Dependence, Figure, OnWorkload, TuneAcrossAnswer, TunePurpose, TuneTrial,
    WorkloadSearch, keys_of,
};
use std::collections::{BTreeMap, BTreeSet};

/// Knobs with their values, without knobs at their defaults.
type Named = BTreeMap<String, String>;

/// Progress of a search across workloads; see the module.
#[derive(Clone, Debug)]
pub struct AcrossProgress {
    searches: Vec<(String, TuneProgress)>,
    /// Number of the next run in the experiment.
    place: usize,
}

/// Effect of settings on a workload, compared with its defaults; or the problem if they did harm.
type Effect = Result<Comparison, Option<String>>;

/// Comparisons and pairs that fit into a time for each of several workloads, like [`budget`] for one. `round_s`
/// is the time for one run of each. `None` if the time is too short to search for all of them and to compare
/// the results.
pub fn budget_across(budget_s: f64, round_s: f64, workloads: usize) -> Option<(u32, u32)> {
    let runs = (budget_s / round_s).floor();
    if workloads == 1 {
        return budget(runs, 1.0);
    }
    let by_share = runs * own_part(workloads);
    let by_least = runs - comparisons_of_others(workloads) * (2 * LEAST_PAIRS) as f64;
    budget(by_share.min(by_least).floor(), 1.0)
}

/// Share of each workload's time for its own search and confirmation; the rest compares the results across
/// workloads.
pub fn own_part(workloads: usize) -> f64 {
    /// Comparisons with the length of a confirmation that [`budget`] reserves time for: 15 would take all of
    /// its time.
    const CONFIRMATIONS_IN_ALL: f64 = 15.0;
    CONFIRMATIONS_IN_ALL / (CONFIRMATIONS_IN_ALL + comparisons_of_others(workloads))
}

/// Comparisons per workload after its own search: the settings of each other workload, and of all together.
fn comparisons_of_others(workloads: usize) -> f64 {
    if workloads > 1 { workloads as f64 } else { 0.0 }
}

/// The weighted sum of independent comparisons. Degrees of freedom: Satterthwaite, *Biometrics Bulletin* 2,
/// 1946.
fn weighted(parts: &[(f64, Comparison)]) -> Comparison {
    let variance = |(weight, part): &(f64, Comparison)| (weight * part.error).powi(2);
    let all: f64 = parts.iter().map(variance).sum();
    let own = parts
        .iter()
        .filter(|(_, part)| part.error > 0.0)
        .map(|part| variance(part).powi(2) / part.1.degrees_of_freedom);
    Comparison {
        log_ratio: parts.iter().map(|(weight, part)| weight * part.log_ratio).sum(),
        error: all.sqrt(),
        degrees_of_freedom: if all > 0.0 { all.powi(2) / own.sum::<f64>() } else { f64::INFINITY },
    }
}

/// Half the width of a logarithm's interval.
fn half(found: &Comparison, confidence_ratio: f64) -> f64 {
    if found.error > 0.0 {
        two_sided(confidence_ratio, found.degrees_of_freedom) * found.error
    } else {
        0.0
    }
}

/// Confidence for each of several statements so that all hold together (Bonferroni).
fn each_of(statements: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE_RATIO) / statements.max(1) as f64
}

/// The combined settings of several searches, without knobs that have different values.
fn union(all: &[Named]) -> Named {
    let mut values: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (knob, value) in all.iter().flatten() {
        values.entry(knob).or_default().insert(value);
    }
    let agreed = values.into_iter().filter(|(_, values)| values.len() == 1);
    agreed
        .filter_map(|(knob, values)| Some((knob.clone(), values.into_iter().next()?.clone())))
        .collect()
}

/// The gain of settings that are good for all workloads, given their effects; `None` unless they are certainly
/// not worse by more than the margin on any, and certainly better in the mean. One of `of` candidates is enough.
fn good_for_all(effects: &[Effect], margin: f64, of: usize) -> Option<f64> {
    let low = |found: &Comparison| found.log_ratio - half(found, each_of(of));
    let is_harmless =
        effects.iter().all(|effect| effect.as_ref().is_ok_and(|found| low(found) >= -margin));
    let mean = mean(effects).filter(|mean| is_harmless && low(mean) > 0.0)?;
    Some(mean.log_ratio)
}

impl AcrossProgress {
    /// Starts after the baseline runs of all workloads, in the order of the searches.
    pub fn new(searches: Vec<(String, TuneProgress)>) -> AcrossProgress {
        let ends = searches.iter().map(|(_, progress)| progress.place);
        AcrossProgress { place: ends.max().unwrap_or_default(), searches }
    }

    /// The current search with the position of its workload; `None` once all are over.
    pub fn search(&mut self) -> Option<(usize, &mut TuneProgress)> {
        let (workload, (_, progress)) =
            self.searches.iter_mut().enumerate().find(|(_, (_, progress))| !progress.is_over())?;
        Some((workload, progress))
    }

    /// The next run with the position of its workload; `None` at the end.
    pub fn next_run(&mut self) -> Option<(usize, TuneRun)> {
        let is_searching = |(_, progress): &(String, TuneProgress)| {
            progress.under_way.is_some() || !progress.is_over()
        };
        let workload = match self.searches.iter().position(is_searching) {
            Some(workload) => workload,
            None => {
                let (workload, settings) = self.missing()?;
                self.searches[workload].1.compare(&settings);
                workload
            }
        };
        Some((workload, self.searches[workload].1.next_run()?))
    }

    /// Records the end of the requested run, like [`TuneProgress::take`].
    ///
    /// # Errors
    /// See [`TuneProgress::take`].
    pub fn take(&mut self, outcome: Result<&Figures, &Failure>) -> Result<Option<f64>, String> {
        let is_one_of_several = self.searches.len() > 1;
        let Some((workload, progress)) =
            self.searches.iter_mut().find(|(_, progress)| progress.under_way.is_some())
        else {
            return Ok(None);
        };
        progress.place = self.place;
        self.place += 1;
        progress.take(outcome).map_err(|text| {
            if is_one_of_several { format!("workload `{workload}`: {text}") } else { text }
        })
    }

    /// The answer, final once the search is over and provisional before.
    pub fn answer(&self) -> TuneAcrossAnswer {
        let searches = self.searches.iter().map(|(workload, progress)| WorkloadSearch {
            workload: workload.clone(),
            options: progress.options.clone(),
            answer: progress.answer(),
        });
        let searches: Vec<WorkloadSearch> = searches.collect();
        let winners = self.winners();
        let names = || searches.iter().map(|search| &search.workload);
        let found = names().zip(&winners);
        let found = found.map(|(name, settings)| self.across(vec![name.clone()], settings));
        let together = self.together().map(|settings| {
            let is_part =
                |found: &Named| found.iter().any(|(knob, value)| settings.get(knob) == Some(value));
            let parts = names().zip(&winners).filter(|(_, found)| is_part(found));
            let found_for = parts.map(|(name, _)| name.clone()).collect();
            self.across(found_for, &settings)
        });
        let winners: Vec<AcrossSettings> = found.collect();
        let (dependence, same) = self.dependence(&searches);
        TuneAcrossAnswer {
            for_all: self.for_all().and_then(|settings| {
                let mut all = winners.iter().chain(&together);
                all.find(|found| found.settings == settings).cloned()
            }),
            winners,
            together,
            dependence,
            same,
            visible_ratio: self.visible_ratio(&searches),
            searches,
        }
    }

    /// The next comparison, once all searches are over: a workload and settings.
    fn missing(&self) -> Option<(usize, Named)> {
        // One workload after the other, so that servers and documents change as rarely as possible.
        (0..self.searches.len()).find_map(|workload| {
            let mut all = self.candidates().into_iter();
            let unknown = all.find(|settings| self.effect(workload, settings).is_none())?;
            Some((workload, unknown))
        })
    }

    /// The settings found for each workload.
    fn winners(&self) -> Vec<Named> {
        self.searches.iter().map(|(_, progress)| progress.found()).collect()
    }

    /// The settings of all workloads together, unless they were found for one.
    fn together(&self) -> Option<Named> {
        let winners = self.winners();
        Some(union(&winners)).filter(|all| !all.is_empty() && !winners.contains(all))
    }

    /// Different settings: the winners of the workloads, and the winners of all combined.
    fn candidates(&self) -> BTreeSet<Named> {
        self.winners().into_iter().chain(self.together()).collect()
    }

    /// The settings with the largest gain of those that are proven to be good for all workloads.
    fn for_all(&self) -> Option<Named> {
        let mut all = self.candidates();
        all.remove(&Named::new());
        let count = all.len();
        let good = all.into_iter().filter_map(|settings| {
            let gain = good_for_all(&self.effects(&settings)?, self.margin(), count)?;
            Some((gain, settings))
        });
        let best = good.max_by(|one, other| one.0.total_cmp(&other.0));
        best.map(|(_, settings)| settings)
    }

    /// Effect of settings on a workload, if it was compared.
    fn effect(&self, workload: usize, settings: &Named) -> Option<Effect> {
        let (_, progress) = &self.searches[workload];
        let own = progress.named(&progress.setting(settings));
        if own.is_empty() {
            return Some(Ok(weighted(&[])));
        }
        let (trial, outcome) = progress.last(&own)?;
        Some(match outcome {
            Outcome::Compared(found) => Ok(*found),
            // A setting that a server refuses is useless for its workload as well; the problem says which
            // setting it was.
            Outcome::Violated | Outcome::BesideViolated | Outcome::Refused { .. } => {
                Err(trial.problem.clone())
            }
        })
    }

    /// The effects on all workloads; `None` if one is unknown.
    fn effects(&self, settings: &Named) -> Option<Vec<Effect>> {
        let workloads = 0..self.searches.len();
        workloads.map(|workload| self.effect(workload, settings)).collect()
    }

    fn margin(&self) -> f64 {
        self.searches.first().map_or(0.0, |(_, progress)| progress.options.margin_ratio.ln_1p())
    }

    /// Effects of settings on all workloads.
    fn across(&self, found_for: Vec<String>, settings: &Named) -> AcrossSettings {
        let on = |workload: usize| {
            let (name, progress) = &self.searches[workload];
            let effect = self.effect(workload, settings)?;
            let beside_own = self.beside_own(workload, settings, &effect);
            let own = progress.named(&progress.setting(settings));
            let trial = progress.last(&own).map(|(trial, _)| trial);
            let pairs = trial.filter(|_| effect.is_ok()).map_or(0, |trial| trial.pairs().count());
            Some(OnWorkload {
                workload: name.clone(),
                ratio: effect.as_ref().ok().map(|found| figure(progress, found)),
                beside_own: beside_own.map(|found| figure(progress, &found)),
                pairs: pairs as u32,
                problem: effect.err().flatten(),
            })
        };
        let mean = self.effects(settings).and_then(|effects| mean(&effects));
        let (_, progress) = &self.searches[0];
        let knobs = progress.options.knobs.iter();
        let set = knobs.filter_map(|knob| Some((knob, settings.get(&knob.name)?.as_str())));
        AcrossSettings {
            found_for,
            settings: settings.clone(),
            keys: keys_of(set),
            on: (0..self.searches.len()).filter_map(on).collect(),
            mean_ratio: mean.map(|mean| figure(progress, &mean)),
        }
    }

    /// Improvement over the settings found for the workload; `None` for these settings themselves.
    fn beside_own(&self, workload: usize, settings: &Named, effect: &Effect) -> Option<Comparison> {
        let (_, progress) = &self.searches[workload];
        let own = progress.found();
        if progress.setting(settings) == progress.setting(&own) {
            return None;
        }
        let own = self.effect(workload, &own)?.ok()?;
        Some(weighted(&[(1.0, *effect.as_ref().ok()?), (-1.0, own)]))
    }

    /// Whether some settings are as good for each workload as its own.
    fn dependence(&self, searches: &[WorkloadSearch]) -> (Dependence, Option<Named>) {
        let all = self.candidates();
        if all.iter().all(Named::is_empty) {
            let mut is_sharp =
                searches.iter().map(|search| search.answer.shows(search.options.margin_ratio));
            return match is_sharp.all(|is_sharp| is_sharp) {
                true => (Dependence::Same, Some(Named::new())),
                false => (Dependence::Undecided, None),
            };
        }
        // One of the candidates that is as good is enough, and so is one workload on which each is worse.
        let close = |found: Comparison| {
            found.log_ratio - half(&found, each_of(all.len())) >= -self.margin()
        };
        let worse =
            |found: Comparison| found.log_ratio + half(&found, each_of(self.searches.len())) < 0.0;
        // `None` if the effect is unknown or harmful; without a difference for the workload's own settings.
        let beside = |workload, settings: &Named| {
            let effect = self.effect(workload, settings).filter(Effect::is_ok)?;
            Some(self.beside_own(workload, settings, &effect))
        };
        let workloads = || 0..self.searches.len();
        let is_as_good = |settings: &&Named| {
            workloads().all(|workload| {
                let beside = beside(workload, settings);
                beside.is_some_and(|beside| beside.is_none_or(close))
            })
        };
        if let Some(settings) = self.for_all().iter().chain(&all).find(is_as_good) {
            return (Dependence::Same, Some(settings.clone()));
        }
        let is_worse_somewhere = |settings: &Named| {
            workloads().any(|workload| match beside(workload, settings) {
                Some(beside) => beside.is_some_and(worse),
                None => self.effect(workload, settings).is_some(),
            })
        };
        match all.iter().all(is_worse_somewhere) {
            true => (Dependence::Depends, None),
            false => (Dependence::Undecided, None),
        }
    }

    fn visible_ratio(&self, searches: &[WorkloadSearch]) -> f64 {
        let winners = self.winners();
        let beside = (0..searches.len()).flat_map(|workload| {
            winners.iter().filter_map(move |settings| {
                let effect = self.effect(workload, settings)?;
                let found = self.beside_own(workload, settings, &effect)?;
                Some(visible_beyond(found.error, found.degrees_of_freedom))
            })
        });
        let own = searches.iter().map(|search| search.answer.visible_ratio);
        let largest = |one: f64, other: f64| one.max(other);
        beside.reduce(largest).or_else(|| own.reduce(largest)).unwrap_or_default()
    }
}

/// The mean of the logarithms over all workloads.
fn mean(effects: &[Effect]) -> Option<Comparison> {
    let weight = 1.0 / effects.len() as f64;
    let parts = effects.iter().map(|effect| Some((weight, *effect.as_ref().ok()?)));
    Some(weighted(&parts.collect::<Option<Vec<_>>>()?))
}

/// The ratio of two settings; without an interval if they are equal.
fn figure(progress: &TuneProgress, found: &Comparison) -> Figure {
    if *found == weighted(&[]) { Figure::bare(1.0) } else { progress.ratio(found) }
}

impl TuneProgress {
    fn is_over(&self) -> bool {
        matches!(self.search.step(), TuningStep::Done(_))
    }

    /// Knobs of the answer with their values; empty without a gain.
    fn found(&self) -> Named {
        match self.search.step() {
            TuningStep::Done(TuningResult::Better { setting, .. }) => self.named(&setting),
            _ => Named::new(),
        }
    }

    /// The last comparison of these values with the defaults after a search, with its outcome.
    fn last(&self, named: &Named) -> Option<(&TuneTrial, &Outcome)> {
        let is_one = |purpose| matches!(purpose, TunePurpose::Confirm | TunePurpose::Across);
        let mut all = self.trials.iter().zip(&self.outcomes).rev();
        all.find(|(trial, _)| is_one(trial.purpose) && trial.settings == *named)
    }

    /// A setting with these values and the defaults of all other knobs.
    fn setting(&self, named: &Named) -> Setting {
        let of_knob = |knob: &super::Knob| {
            let value = named.get(&knob.name)?;
            knob.values.iter().position(|own| own == value)
        };
        let knobs = self.options.knobs.iter();
        knobs.map(|knob| of_knob(knob).unwrap_or(knob.default_place())).collect()
    }

    /// Starts a comparison with the defaults after the search.
    fn compare(&mut self, named: &Named) {
        let (setting, defaults) = (self.setting(named), self.setting(&Named::new()));
        self.under_way = Some(UnderWay::new(TunePurpose::Across, setting, defaults));
    }
}

#[cfg(test)]
mod tests;
