//! Findings of a search for better settings.

use super::difference::{self, explained};
use crate::values::{percent, times_of};
use dyno_record::experiment::{
    Experiment, Explanation, Finding, RunsSetAside, TuneAnswer, TuneOptions,
};
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::collections::{BTreeMap, BTreeSet};

/// Most harmful settings that are listed individually.
const MOST_HARMFUL: usize = 4;

/// All rules.
pub(super) fn all(experiment: &Experiment, answer: &TuneAnswer) -> Vec<Finding> {
    let Some(options) = &experiment.options.tune else {
        return Vec::new();
    };
    of_search(options, answer).into_iter().chain(left_out(options)).collect()
}

/// Findings of a search.
pub(super) fn of_search(options: &TuneOptions, answer: &TuneAnswer) -> Vec<Finding> {
    let rules = [
        result(options, answer),
        less_durable(options, answer),
        cause(answer),
        set_aside(answer),
        failed(answer, false),
        failed(answer, true),
    ];
    rules.into_iter().flatten().collect()
}

/// Whether there is a gain.
fn result(options: &TuneOptions, answer: &TuneAnswer) -> Option<Finding> {
    let goal = options.goal.as_str();
    let noise =
        statement!("tune-noise", noise = percent(answer.noise_ratio), trials = answer.trials.len());
    let compared = || {
        let confirmed = answer.confirmations();
        Some(statement!(
            "tune-compared-with-defaults",
            goal = goal,
            pairs = confirmed.map(|trial| trial.pairs().count()).sum::<usize>(),
            ratio = times_of(&answer.ratio?)
        ))
    };
    if answer.settings.is_empty() {
        let candidate = answer.candidate.as_ref().map(named);
        if !answer.was_compared() {
            let said = statement!("tune-none-compared", candidate = candidate);
            return Some(Finding::warning(said, vec![noise]));
        }
        let evidence = compared().into_iter().chain([noise]);
        // Whether irrelevant gains would have been seen, or more may have been missed.
        let is_sharp = answer.shows(options.margin_ratio);
        let code = match is_sharp {
            true => "tune-nothing-to-gain",
            false => "tune-not-proven",
        };
        let said = statement!(code, visible = percent(answer.visible_ratio), candidate = candidate);
        let evidence = evidence.collect();
        return Some(match is_sharp {
            true => Finding::found(said, evidence),
            false => Finding::warning(said, evidence),
        });
    }
    let said = statement!(
        "tune-better",
        goal = goal,
        settings = named(&answer.settings),
        ratio = times_of(&answer.ratio?)
    );
    Some(Finding::found(said, vec![compared()?, noise]))
}

/// Knobs with their values, one by one.
pub(super) fn named(settings: &BTreeMap<String, String>) -> Vec<Statement> {
    settings
        .iter()
        .map(|(knob, value)| statement!("knob-at-value", knob = knob, value = value))
        .collect()
}

/// Lost safety of the settings.
fn less_durable(options: &TuneOptions, answer: &TuneAnswer) -> Option<Finding> {
    let knobs = options.knobs.iter();
    let mut weaker = BTreeMap::new();
    let mut evidence = Vec::new();
    for knob in knobs {
        let value = answer.settings.get(&knob.name);
        let Some(value) = value.filter(|value| knob.less_durable.contains(value)) else {
            continue;
        };
        let own = BTreeMap::from([(knob.name.clone(), value.clone())]);
        let reason = knob.risk.as_deref();
        let reason = reason.unwrap_or("its key decides whether acknowledged writes are durable");
        evidence.push(statement!("tune-harm", settings = named(&own), reason = reason));
        weaker.extend(own);
    }
    let said = statement!("tune-less-durable", settings = named(&weaker));
    (!weaker.is_empty()).then(|| Finding::warning(said, evidence))
}

/// The demand that fell, or the reduced wait if no demand explains the gain.
fn cause(answer: &TuneAnswer) -> Option<Finding> {
    let compared = answer.comparison.as_ref().filter(|_| !answer.settings.is_empty())?;
    let waits = difference::shorter_waits(compared);
    let explanation = match compared.explanation.as_ref()? {
        Explanation::NoDemand if !waits.is_empty() => statement!("waits-shorter", waits = waits),
        found => explained("", found, &compared.demands)?,
    };
    let evidence = difference::evidence(&compared.demands);
    let said = statement!("explanation", explanation = explanation);
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}

/// The machine itself was disturbed.
fn set_aside(answer: &TuneAnswer) -> Option<Finding> {
    let disturbed = |one: &&RunsSetAside| one.stolen_ratio.is_some();
    let stolen = answer.set_aside().filter_map(|one| one.stolen_ratio);
    let stolen: Vec<f64> = stolen.collect();
    let largest = stolen.iter().copied().reduce(f64::max)?;
    let first = answer.first_set_aside.iter().filter(disturbed).count();
    let some = |count: usize| (count > 0).then_some(count);
    Some(Finding::warning(
        statement!(
            "tune-set-aside",
            first = some(first),
            pairs = some(stolen.len() - first),
            all = stolen.len()
        ),
        vec![statement!("stolen-in-a-run", most = percent(largest))],
    ))
}

/// Settings that did harm and were dropped, or that the server refused.
fn failed(answer: &TuneAnswer, is_refused: bool) -> Option<Finding> {
    let trials = answer.trials.iter().filter(|trial| trial.is_refused == is_refused);
    let failed: Vec<Statement> = trials
        .filter_map(|trial| {
            let reason = trial.problem.as_ref()?;
            let settings = named(trial.subject());
            Some(statement!("tune-harm", settings = settings, reason = reason))
        })
        .collect();
    let trials = failed.len();
    let evidence = || failed.into_iter().take(MOST_HARMFUL).collect();
    match (trials, is_refused) {
        (0, _) => None,
        (_, true) => {
            Some(Finding::found(statement!("tune-refused-settings", trials = trials), evidence()))
        }
        (_, false) => {
            Some(Finding::warning(statement!("tune-harmful-settings", trials = trials), evidence()))
        }
    }
}

/// Knobs that the server or its machine does not have, that have no effect there, or that are not allowed.
pub(super) fn left_out(options: &TuneOptions) -> Option<Finding> {
    let names: Vec<&str> = options.left_out.iter().map(|knob| knob.name.as_str()).collect();
    // Each reason once, with its knobs.
    let reasons: BTreeSet<&str> =
        options.left_out.iter().map(|knob| knob.reason.as_str()).collect();
    let evidence = reasons.into_iter().map(|reason| {
        let of_it = options.left_out.iter().filter(|knob| knob.reason == reason);
        let of_it: Vec<&str> = of_it.map(|knob| knob.name.as_str()).collect();
        statement!("knobs-left-out", knobs = of_it, reason = reason)
    });
    let evidence: Vec<Statement> = evidence.collect();
    (!evidence.is_empty())
        .then(|| Finding::found(statement!("tune-left-out", knobs = names), evidence))
}
