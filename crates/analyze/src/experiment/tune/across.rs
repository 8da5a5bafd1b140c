//! A search for settings for each of several workloads, one after the other; then what the settings of each do to the others,
//! and which are good for all of them. What comes next follows from the comparisons that are done, and from nothing else.
//!
//! What was found for one workload is compared with the defaults of another in pairs, as in a confirmation, so that two
//! settings on one workload are compared by the difference of two such comparisons (Welch's t test, *Biometrika* 34, 1947).
//! What is to be good for all is chosen by these figures, and so it is confirmed by pairs of its own.

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

/// Settings that are compared as good for all, at most.
const MOST_CANDIDATES: usize = 2;
/// Comparisons that tell what the settings of a search do to its own workload and to others.
const FOUND: &[TunePurpose] = &[TunePurpose::Confirm, TunePurpose::Across];
/// Comparisons for what is good for all.
const FOR_ALL: &[TunePurpose] = &[TunePurpose::ForAll];

/// Knobs and their values, without those at their defaults.
type Named = BTreeMap<String, String>;

/// Settings, and the comparisons that tell what they do.
type Row<'a> = (&'a Named, &'static [TunePurpose]);

/// See the module.
#[derive(Clone, Debug)]
pub struct AcrossProgress {
    searches: Vec<(String, TuneProgress)>,
    /// Place of the next run in the experiment.
    place: usize,
}

/// What settings do to a workload.
#[derive(Clone, Debug, PartialEq)]
enum Effect {
    /// Compared with the defaults.
    Compared(Comparison),
    /// They are its defaults.
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

/// A comparison that is still to be made.
struct Missing {
    workload: usize,
    settings: Named,
    purpose: TunePurpose,
}

/// How many comparisons and pairs a time allows for each of several workloads, as [`budget`] has it for one. `round_s` is the time
/// of a run of each. `None` if it is too short to search for all of them, and to compare what is found.
pub fn budget_across(budget_s: f64, round_s: f64, workloads: usize) -> Option<(u32, u32)> {
    let runs = (budget_s / round_s).floor();
    if workloads == 1 {
        return budget(runs, 1.0);
    }
    let by_share = runs * own_part(workloads);
    let by_least = runs - comparisons_of_others(workloads) * (2 * LEAST_PAIRS) as f64;
    budget(by_share.min(by_least).floor(), 1.0)
}

/// Part of the time of each workload that is for its own search and what confirms that; the rest compares what was found for all.
pub fn own_part(workloads: usize) -> f64 {
    /// Comparisons of the length of a confirmation that [`budget`] makes room for: 15 would take all of its time.
    const CONFIRMATIONS_IN_ALL: f64 = 15.0;
    CONFIRMATIONS_IN_ALL / (CONFIRMATIONS_IN_ALL + comparisons_of_others(workloads))
}

/// Comparisons on each workload after its own search: the settings of all others, and what may be good for all.
fn comparisons_of_others(workloads: usize) -> f64 {
    if workloads > 1 {
        (workloads - 1 + MOST_CANDIDATES) as f64
    } else {
        0.0
    }
}

/// The sum of independent comparisons, each times its weight. Degrees of freedom: Satterthwaite, *Biometrics Bulletin* 2, 1946.
fn weighted(parts: &[(f64, Comparison)]) -> Comparison {
    let variance = |(weight, part): &(f64, Comparison)| (weight * part.error).powi(2);
    let all: f64 = parts.iter().map(variance).sum();
    let own = parts
        .iter()
        .filter(|(_, part)| part.error > 0.0)
        .map(|part| variance(part).powi(2) / part.1.degrees_of_freedom);
    Comparison {
        log_ratio: parts
            .iter()
            .map(|(weight, part)| weight * part.log_ratio)
            .sum(),
        error: all.sqrt(),
        degrees_of_freedom: if all > 0.0 {
            all.powi(2) / own.sum::<f64>()
        } else {
            f64::INFINITY
        },
    }
}

/// Half of the width of the interval of a logarithm.
fn half(found: &Comparison, confidence_ratio: f64) -> f64 {
    if found.error > 0.0 {
        two_sided(confidence_ratio, found.degrees_of_freedom) * found.error
    } else {
        0.0
    }
}

/// The confidence of each of so many statements, of which none is to be wrong (Bonferroni).
fn each_of(statements: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE_RATIO) / statements.max(1) as f64
}

/// The settings of several searches together, without the knobs for which they have different values.
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

/// Whether what settings do to all workloads is good for all: certainly not worse by more than the margin on any, which needs no
/// correction, as it must hold for each, and certainly better in the mean.
fn are_good(effects: &[Effect], margin: f64) -> bool {
    let low = |found: &Comparison| found.log_ratio - half(found, CONFIDENCE_RATIO);
    let is_harmless = effects.iter().all(|effect| {
        let found = effect.comparison();
        found.is_some_and(|found| low(&found) >= -margin)
    });
    is_harmless && mean(effects).is_some_and(|mean| low(&mean) > 0.0)
}

impl AcrossProgress {
    /// Begins after the runs of all workloads with their defaults, in the order of the searches.
    pub fn new(searches: Vec<(String, TuneProgress)>) -> AcrossProgress {
        let ends = searches.iter().map(|(_, progress)| progress.place);
        AcrossProgress {
            place: ends.max().unwrap_or_default(),
            searches,
        }
    }

    /// The search that goes on, with the place of its workload; `None` once all are over.
    pub fn search(&mut self) -> Option<(usize, &mut TuneProgress)> {
        let mut searches = self.searches.iter_mut().enumerate();
        let (workload, (_, progress)) = searches.find(|(_, (_, progress))| !progress.is_over())?;
        Some((workload, progress))
    }

    /// What comes next, and the place of the workload that it is of.
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

    /// Takes the end of the run that was next, as [`TuneProgress::take`] does.
    ///
    /// # Errors
    /// As there.
    pub fn take(&mut self, outcome: RunOutcome<'_>) -> Result<Option<f64>, String> {
        let is_one_of_several = self.searches.len() > 1;
        let mut searches = self.searches.iter_mut();
        let Some((workload, progress)) =
            searches.find(|(_, progress)| progress.under_way.is_some())
        else {
            return Ok(None);
        };
        progress.place = self.place;
        self.place += 1;
        progress.take(outcome).map_err(|text| {
            if is_one_of_several {
                format!("workload `{workload}`: {text}")
            } else {
                text
            }
        })
    }

    /// The answer, once the search is over; what is known until then before.
    pub fn answer(&self) -> TuneAcrossAnswer {
        let searches = self
            .searches
            .iter()
            .map(|(workload, progress)| WorkloadSearch {
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

    /// The comparison that comes next, once all searches are over.
    fn missing(&self) -> Option<Missing> {
        let winners = self.winners();
        // Workload by workload, so that servers and documents change as seldom as can be.
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
                        return Some(Missing {
                            workload,
                            settings,
                            purpose: TunePurpose::ForAll,
                        });
                    }
                }
            }
            if self.is_good(&settings) {
                break;
            }
        }
        None
    }

    /// What was found for each workload.
    fn winners(&self) -> Vec<Named> {
        let searches = self.searches.iter();
        searches.map(|(_, progress)| progress.found()).collect()
    }

    /// What may be good for all workloads, the most promising first: what was found for one of them and does no other harm, and
    /// what was found for all of them together.
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
        let candidates = candidates.into_iter().take(MOST_CANDIDATES);
        candidates.map(|(_, settings)| settings).collect()
    }

    /// Which comparisons prove that settings are good for all. What every search has confirmed needs no others.
    fn proof(&self, settings: &Named) -> &'static [TunePurpose] {
        if self.winners().iter().all(|found| found == settings) {
            FOUND
        } else {
            FOR_ALL
        }
    }

    /// What settings do to a workload, if that was compared for one of these purposes.
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
            // What a server refuses is of no use to its workload either; the problem says which it was.
            Outcome::Violated | Outcome::BesideViolated | Outcome::Refused { .. } => {
                Effect::Harmful(trial.problem.clone())
            }
        })
    }

    /// The same for all workloads; `None` if it is not known of one.
    fn effects(&self, settings: &Named, purposes: &[TunePurpose]) -> Option<Vec<Effect>> {
        let workloads = 0..self.searches.len();
        workloads
            .map(|workload| self.effect(workload, settings, purposes))
            .collect()
    }

    fn margin(&self) -> f64 {
        let mut margins = self.searches.iter();
        margins
            .next()
            .map_or(0.0, |(_, progress)| progress.options.margin_ratio.ln_1p())
    }

    /// Whether settings did harm to a workload, or are certainly worse than its defaults by more than the margin.
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

    /// The workloads for which settings were found, or whose settings they hold.
    fn found_for(&self, settings: &Named) -> Vec<String> {
        let of = |is_it: &dyn Fn(&Named) -> bool| -> Vec<String> {
            let searches = self.searches.iter().zip(self.winners());
            let found = searches.filter(|(_, found)| is_it(found));
            found.map(|((workload, _), _)| workload.clone()).collect()
        };
        let own = of(&|found| found == settings);
        if own.is_empty() {
            of(&|found| {
                found
                    .iter()
                    .any(|(knob, value)| settings.get(knob) == Some(value))
            })
        } else {
            own
        }
    }

    /// What settings do to all workloads.
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

    /// How much better settings are for a workload than what was found for it; `None` of these themselves.
    fn beside_own(&self, workload: usize, settings: &Named, effect: &Effect) -> Option<Comparison> {
        let (_, progress) = &self.searches[workload];
        let own = progress.found();
        if progress.setting(settings) == progress.setting(&own) {
            return None;
        }
        let own = self.effect(workload, &own, FOUND)?.comparison()?;
        Some(weighted(&[(1.0, effect.comparison()?), (-1.0, own)]))
    }

    /// Whether there are settings that are for each workload as good as its own.
    fn dependence(&self, answer: &TuneAcrossAnswer) -> (Dependence, Option<Named>) {
        if answer.is_empty() {
            let mut searches = answer.searches.iter();
            let is_sharp = searches.all(|search| search.answer.shows(search.options.margin_ratio));
            return match is_sharp {
                true => (Dependence::Same, Some(Named::new())),
                false => (Dependence::Undecided, None),
            };
        }
        let for_all = answer.for_all.iter().chain(&answer.not_for_all);
        let confirmed = for_all.map(|tried| (&tried.settings, self.proof(&tried.settings)));
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

    /// Whether settings are for every workload certainly as good as its own, within the margin. One of so many would do.
    fn is_as_good(&self, (settings, purposes): &Row<'_>, of: usize) -> bool {
        let confidence = each_of(of);
        let is_close =
            |found: Comparison| found.log_ratio - half(&found, confidence) >= -self.margin();
        let effects = self.effects(settings, purposes).unwrap_or_default();
        let of_each = effects.iter().enumerate();
        let mut is_close = of_each.map(|(workload, effect)| {
            let beside = self.beside_own(workload, settings, effect);
            effect.comparison().is_some() && beside.is_none_or(is_close)
        });
        !effects.is_empty() && is_close.all(|is_close| is_close)
    }

    /// Whether settings are for some workload certainly worse than its own. Any of them would do.
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
        beside
            .reduce(largest)
            .or_else(|| own.reduce(largest))
            .unwrap_or_default()
    }
}

/// The mean of the logarithms over all workloads.
fn mean(effects: &[Effect]) -> Option<Comparison> {
    let weight = 1.0 / effects.len() as f64;
    let parts = effects.iter();
    let parts = parts.map(|effect| Some((weight, effect.comparison()?)));
    Some(weighted(&parts.collect::<Option<Vec<_>>>()?))
}

/// One setting divided by another; without an interval where both are the same.
fn figure(progress: &TuneProgress, found: &Comparison) -> Figure {
    if *found == weighted(&[]) {
        Figure::bare(1.0)
    } else {
        progress.ratio(found)
    }
}

impl TuneProgress {
    fn is_over(&self) -> bool {
        matches!(self.search.step(), TuningStep::Done(_))
    }

    /// Knobs of the answer and their values; empty if nothing is to be gained.
    fn found(&self) -> Named {
        match self.search.step() {
            TuningStep::Done(TuningResult::Better { setting, .. }) => self.named(&setting),
            _ => Named::new(),
        }
    }

    /// The last comparison of these knobs and values for one of these purposes, and how it went.
    fn last(&self, named: &Named, purposes: &[TunePurpose]) -> Option<(&TuneTrial, &Outcome)> {
        let mut done = self.trials.iter().zip(&self.outcomes).rev();
        done.find(|(trial, _)| purposes.contains(&trial.purpose) && trial.settings == *named)
    }

    /// These values, and the defaults of all other knobs.
    fn setting(&self, named: &Named) -> Setting {
        let of_knob = |knob: &super::Knob| {
            let value = named.get(&knob.name)?;
            knob.values.iter().position(|own| own == value)
        };
        let knobs = self.knobs.iter();
        knobs
            .map(|knob| of_knob(knob).unwrap_or(knob.default))
            .collect()
    }

    /// Begins a comparison with the defaults, after the search.
    fn compare(&mut self, named: &Named, purpose: TunePurpose) {
        let setting = self.setting(named);
        self.under_way = Some(UnderWay::new(purpose, setting, self.setting(&Named::new())));
    }
}

#[cfg(test)]
mod tests;
