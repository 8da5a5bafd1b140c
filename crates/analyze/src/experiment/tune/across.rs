//! A search for settings for each of several workloads in turn; then the effect of each workload's settings on
//! the others, and settings that are good for all. The next action follows only from the finished comparisons.
//!
//! The settings found for one workload are compared with the defaults of another in pairs, as in a
//! confirmation, so two settings on one workload are compared by the difference of two such comparisons
//! (Welch's t test, *Biometrika* 34, 1947). Settings that may be good for all are chosen by these figures, so
//! they are confirmed by separate pairs.

use super::under_way::UnderWay;
use super::{
    CONFIDENCE_RATIO, LEAST_PAIRS, RunOutcome, TuneNext, TuneProgress, budget, visible_beyond,
};
use crate::search::tuning::space::Setting;
use crate::search::tuning::{Comparison, Outcome, TuningResult, TuningStep};
use crate::student::two_sided;
use dyno_record::experiment::{
    AcrossSettings, Dependence, Figure, OnWorkload, TuneAcrossAnswer, TunePurpose, TuneTrial,
    WorkloadSearch, keys_of,
};
use std::collections::{BTreeMap, BTreeSet};

/// Most settings that are compared as good for all.
const MOST_CANDIDATES: usize = 2;
/// Purposes of comparisons that show the effect of a search's settings on its own workload and on others.
const FOUND: &[TunePurpose] = &[TunePurpose::Confirm, TunePurpose::Across];
/// Purposes of comparisons for settings that may be good for all.
const FOR_ALL: &[TunePurpose] = &[TunePurpose::ForAll];

/// Knobs with their values, without knobs at their defaults.
type Named = BTreeMap<String, String>;

/// Settings, and the purposes of the comparisons that show their effect.
type Row<'a> = (&'a Named, &'static [TunePurpose]);

/// Progress of a search across workloads; see the module.
#[derive(Clone, Debug)]
pub struct AcrossProgress {
    searches: Vec<(String, TuneProgress)>,
    /// Number of the next run in the experiment.
    place: usize,
}

/// Effect of settings on a workload.
#[derive(Clone, Debug, PartialEq)]
enum Effect {
    /// Compared with the defaults.
    Compared(Comparison),
    /// They equal the workload's defaults.
    AsBefore,
    /// They did harm.
    Harmful(Option<String>),
}

impl Effect {
    fn comparison(&self) -> Option<Comparison> {
        match self {
            Effect::Compared(found) => Some(*found),
            Effect::AsBefore => Some(weighted(&[])),
            Effect::Harmful(_) => None,
        }
    }
}

/// A comparison that is still missing.
struct Missing {
    workload: usize,
    settings: Named,
    purpose: TunePurpose,
}

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

/// Comparisons per workload after its own search: the settings of all others, and candidates for all.
fn comparisons_of_others(workloads: usize) -> f64 {
    if workloads > 1 { (workloads - 1 + MOST_CANDIDATES) as f64 } else { 0.0 }
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

/// Whether settings are good for all workloads, given their effects: certainly not worse by more than the
/// margin on any, which needs no correction, as it must hold for each, and certainly better in the mean.
fn are_good(effects: &[Effect], margin: f64) -> bool {
    let low = |found: &Comparison| found.log_ratio - half(found, CONFIDENCE_RATIO);
    let is_harmless = effects.iter().all(|effect| {
        let found = effect.comparison();
        found.is_some_and(|found| low(&found) >= -margin)
    });
    is_harmless && mean(effects).is_some_and(|mean| low(&mean) > 0.0)
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

    /// The next action with the position of its workload.
    pub fn next_run(&mut self) -> (usize, TuneNext) {
        let is_searching = |(_, progress): &(String, TuneProgress)| {
            progress.under_way.is_some() || !progress.is_over()
        };
        let workload = match self.searches.iter().position(is_searching) {
            Some(workload) => workload,
            None => {
                let Some(missing) = self.missing() else {
                    return (0, TuneNext::Done);
                };
                let (_, progress) = &mut self.searches[missing.workload];
                progress.compare(&missing.settings, missing.purpose);
                missing.workload
            }
        };
        (workload, self.searches[workload].1.next_run())
    }

    /// Records the end of the requested run, like [`TuneProgress::take`].
    ///
    /// # Errors
    /// See [`TuneProgress::take`].
    pub fn take(&mut self, outcome: RunOutcome<'_>) -> Result<Option<f64>, String> {
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
        let found = searches.iter().zip(&winners);
        let found = found.map(|(search, settings)| {
            let found_for = vec![search.workload.clone()];
            self.across(found_for, settings, FOUND)
        });
        let mut answer = TuneAcrossAnswer {
            winners: found.collect(),
            for_all: None,
            not_for_all: Vec::new(),
            dependence: Dependence::Undecided,
            same: None,
            visible_ratio: self.visible_ratio(&searches, &winners),
            searches,
        };
        for settings in self.candidates() {
            let purposes = self.proof(&settings);
            let compared = self.across(self.found_for(&settings), &settings, purposes);
            if self.is_good(&settings) {
                answer.for_all = Some(compared);
                break;
            }
            if !compared.on.is_empty() {
                answer.not_for_all.push(compared);
            }
        }
        (answer.dependence, answer.same) = self.dependence(&answer);
        answer
    }

    /// The next comparison, once all searches are over.
    fn missing(&self) -> Option<Missing> {
        let winners = self.winners();
        // One workload after the other, so that servers and documents change as rarely as possible.
        for workload in 0..self.searches.len() {
            let unknown = winners.iter().find(|settings| {
                let effect = self.effect(workload, settings, FOUND);
                effect.is_none()
            });
            if let Some(settings) = unknown {
                return Some(Missing {
                    workload,
                    settings: settings.clone(),
                    purpose: TunePurpose::Across,
                });
            }
        }
        for settings in self.candidates() {
            for workload in 0..self.searches.len() {
                match self.effect(workload, &settings, self.proof(&settings)) {
                    Some(effect) if self.is_bad(&effect) => break,
                    Some(_) => {}
                    None => {
                        return Some(Missing { workload, settings, purpose: TunePurpose::ForAll });
                    }
                }
            }
            if self.is_good(&settings) {
                break;
            }
        }
        None
    }

    /// The settings found for each workload.
    fn winners(&self) -> Vec<Named> {
        self.searches.iter().map(|(_, progress)| progress.found()).collect()
    }

    /// Candidates for all workloads, the most promising first: the settings found for one workload that harm no
    /// other, and the combined settings.
    fn candidates(&self) -> Vec<Named> {
        let winners = self.winners();
        let changing = winners.iter().filter(|settings| !settings.is_empty());
        let changing: BTreeSet<&Named> = changing.collect();
        let together = union(&winners);
        let workloads = self.searches.len();
        let of_one = changing.iter().filter_map(|settings| {
            let effects = self.effects(settings, FOUND)?;
            let is_fit = !effects.iter().any(|effect| self.is_bad(effect));
            let mean = mean(&effects).filter(|_| is_fit)?;
            Some((mean.log_ratio, (*settings).clone()))
        });
        let is_new = !together.is_empty() && !changing.contains(&together);
        let expected = || {
            let gains = self.searches.iter().map(|(_, progress)| {
                let setting = progress.setting(&together);
                progress.search.gain(&setting).mean
            });
            gains.sum::<f64>() / workloads as f64
        };
        let of_all = is_new.then(|| (expected(), together.clone()));
        let mut candidates: Vec<(f64, Named)> = of_one.chain(of_all).collect();
        candidates.retain(|(gain, _)| *gain > 0.0);
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
        candidates.into_iter().take(MOST_CANDIDATES).map(|(_, settings)| settings).collect()
    }

    /// Comparisons that prove that settings are good for all. Settings that every search has confirmed need no
    /// others.
    fn proof(&self, settings: &Named) -> &'static [TunePurpose] {
        if self.winners().iter().all(|found| found == settings) { FOUND } else { FOR_ALL }
    }

    /// Effect of settings on a workload, if it was compared for one of these purposes.
    fn effect(
        &self,
        workload: usize,
        settings: &Named,
        purposes: &[TunePurpose],
    ) -> Option<Effect> {
        let (_, progress) = &self.searches[workload];
        let own = progress.named(&progress.setting(settings));
        if own.is_empty() {
            return Some(Effect::AsBefore);
        }
        let (trial, outcome) = progress.last(&own, purposes)?;
        Some(match outcome {
            Outcome::Compared(found) => Effect::Compared(*found),
            // A setting that a server refuses is useless for its workload as well; the problem says which
            // setting it was.
            Outcome::Violated | Outcome::BesideViolated | Outcome::Refused { .. } => {
                Effect::Harmful(trial.problem.clone())
            }
        })
    }

    /// The effects on all workloads; `None` if one is unknown.
    fn effects(&self, settings: &Named, purposes: &[TunePurpose]) -> Option<Vec<Effect>> {
        let workloads = 0..self.searches.len();
        workloads.map(|workload| self.effect(workload, settings, purposes)).collect()
    }

    fn margin(&self) -> f64 {
        self.searches.first().map_or(0.0, |(_, progress)| progress.options.margin_ratio.ln_1p())
    }

    /// Whether settings did harm to a workload, or are certainly worse than its defaults by more than the
    /// margin.
    fn is_bad(&self, effect: &Effect) -> bool {
        effect
            .comparison()
            .is_none_or(|found| found.log_ratio + half(&found, CONFIDENCE_RATIO) < -self.margin())
    }

    /// Whether settings are proven to be good for all workloads.
    fn is_good(&self, settings: &Named) -> bool {
        let effects = self.effects(settings, self.proof(settings));
        effects.is_some_and(|effects| are_good(&effects, self.margin()))
    }

    /// The workloads for which these settings were found, or whose settings they include.
    fn found_for(&self, settings: &Named) -> Vec<String> {
        let of = |is_it: &dyn Fn(&Named) -> bool| -> Vec<String> {
            let found = self.searches.iter().zip(self.winners()).filter(|(_, found)| is_it(found));
            found.map(|((workload, _), _)| workload.clone()).collect()
        };
        let own = of(&|found| found == settings);
        if own.is_empty() {
            of(&|found| found.iter().any(|(knob, value)| settings.get(knob) == Some(value)))
        } else {
            own
        }
    }

    /// Effects of settings on all workloads.
    fn across(
        &self,
        found_for: Vec<String>,
        settings: &Named,
        purposes: &[TunePurpose],
    ) -> AcrossSettings {
        let on = |workload: usize| {
            let (name, progress) = &self.searches[workload];
            let effect = self.effect(workload, settings, purposes)?;
            let beside_own = self.beside_own(workload, settings, &effect);
            Some(OnWorkload {
                workload: name.clone(),
                ratio: effect.comparison().map(|found| figure(progress, &found)),
                beside_own: beside_own.map(|found| figure(progress, &found)),
                pairs: match &effect {
                    Effect::Compared(_) => {
                        let own = progress.named(&progress.setting(settings));
                        let (trial, _) = progress.last(&own, purposes)?;
                        trial.pairs().count() as u32
                    }
                    Effect::AsBefore | Effect::Harmful(_) => 0,
                },
                problem: match effect {
                    Effect::Harmful(problem) => problem,
                    Effect::Compared(_) | Effect::AsBefore => None,
                },
            })
        };
        let effects = self.effects(settings, purposes);
        let mean = effects.and_then(|effects| mean(&effects));
        let (_, progress) = &self.searches[0];
        let set = progress
            .knobs
            .iter()
            .filter_map(|knob| Some((knob, settings.get(&knob.name)?.as_str())));
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
        let own = self.effect(workload, &own, FOUND)?.comparison()?;
        Some(weighted(&[(1.0, effect.comparison()?), (-1.0, own)]))
    }

    /// Whether some settings are as good for each workload as its own.
    fn dependence(&self, answer: &TuneAcrossAnswer) -> (Dependence, Option<Named>) {
        if answer.is_empty() {
            let is_sharp = answer
                .searches
                .iter()
                .all(|search| search.answer.shows(search.options.margin_ratio));
            return match is_sharp {
                true => (Dependence::Same, Some(Named::new())),
                false => (Dependence::Undecided, None),
            };
        }
        let confirmed = answer
            .for_all
            .iter()
            .chain(&answer.not_for_all)
            .map(|tried| (&tried.settings, self.proof(&tried.settings)));
        let found = answer.winners.iter().map(|found| (&found.settings, FOUND));
        let mut rows: Vec<Row<'_>> = Vec::new();
        for row in confirmed.chain(found) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        if let Some((settings, _)) = rows.iter().find(|row| self.is_as_good(row, rows.len())) {
            return (Dependence::Same, Some((*settings).clone()));
        }
        match rows.iter().all(|row| self.is_worse_somewhere(row)) {
            true => (Dependence::Depends, None),
            false => (Dependence::Undecided, None),
        }
    }

    /// Whether settings are certainly as good for every workload as its own, within the margin. One of `of`
    /// candidates is enough.
    fn is_as_good(&self, (settings, purposes): &Row<'_>, of: usize) -> bool {
        let confidence = each_of(of);
        let is_close =
            |found: Comparison| found.log_ratio - half(&found, confidence) >= -self.margin();
        let effects = self.effects(settings, purposes).unwrap_or_default();
        let mut is_close = effects.iter().enumerate().map(|(workload, effect)| {
            let beside = self.beside_own(workload, settings, effect);
            effect.comparison().is_some() && beside.is_none_or(is_close)
        });
        !effects.is_empty() && is_close.all(|is_close| is_close)
    }

    /// Whether settings are certainly worse for some workload than its own. Any of them is enough.
    fn is_worse_somewhere(&self, (settings, purposes): &Row<'_>) -> bool {
        let confidence = each_of(self.searches.len());
        let mut workloads = 0..self.searches.len();
        workloads.any(|workload| {
            let Some(effect) = self.effect(workload, settings, purposes) else {
                return false;
            };
            let beside = self.beside_own(workload, settings, &effect);
            let is_worse = |found: Comparison| found.log_ratio + half(&found, confidence) < 0.0;
            effect.comparison().is_none() || beside.is_some_and(is_worse)
        })
    }

    fn visible_ratio(&self, searches: &[WorkloadSearch], winners: &[Named]) -> f64 {
        let beside = (0..searches.len()).flat_map(|workload| {
            winners.iter().filter_map(move |settings| {
                let effect = self.effect(workload, settings, FOUND)?;
                let found = self.beside_own(workload, settings, &effect)?;
                let freedom = found.degrees_of_freedom;
                Some(visible_beyond(found.error, freedom, CONFIDENCE_RATIO))
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
    let parts = effects.iter();
    let parts = parts.map(|effect| Some((weight, effect.comparison()?)));
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

    /// The last comparison of these values for one of these purposes, with its outcome.
    fn last(&self, named: &Named, purposes: &[TunePurpose]) -> Option<(&TuneTrial, &Outcome)> {
        self.trials
            .iter()
            .zip(&self.outcomes)
            .rev()
            .find(|(trial, _)| purposes.contains(&trial.purpose) && trial.settings == *named)
    }

    /// A setting with these values and the defaults of all other knobs.
    fn setting(&self, named: &Named) -> Setting {
        let of_knob = |knob: &super::Knob| {
            let value = named.get(&knob.name)?;
            knob.values.iter().position(|own| own == value)
        };
        self.knobs.iter().map(|knob| of_knob(knob).unwrap_or(knob.default)).collect()
    }

    /// Starts a comparison with the defaults after the search.
    fn compare(&mut self, named: &Named, purpose: TunePurpose) {
        let setting = self.setting(named);
        self.under_way = Some(UnderWay::new(purpose, setting, self.setting(&Named::new())));
    }
}

#[cfg(test)]
mod tests;
