//! Findings of the searches for several workloads: whether the best settings depend on the workload, which
//! settings are good for all, and the findings of each search.

use super::tune::{left_out, named, of_search};
use crate::values::{percent, times_of};
use dyno_record::experiment::{
    AcrossSettings, Dependence, Figure, Finding, OnWorkload, TuneAcrossAnswer, TuneOptions,
};
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::collections::BTreeMap;

/// All rules.
pub(super) fn all(answer: &TuneAcrossAnswer) -> Vec<Finding> {
    let Some(first) = answer.searches.first() else {
        return Vec::new();
    };
    let options = &first.options;
    let together = [dependence(options, answer), for_all(options, answer)];
    let mut found: Vec<Finding> = together.into_iter().flatten().collect();
    for search in &answer.searches {
        found.extend(of_search(&search.options, &search.answer).into_iter().map(|one| Finding {
            statement: of_workload(&search.workload, &one.statement),
            ..one
        }));
    }
    // All workloads have the same knobs.
    found.extend(left_out(options));
    found
}

fn of_workload(workload: &str, said: &Statement) -> Statement {
    statement!("tune-of-workload", workload = workload, said = said)
}

/// Whether the best settings depend on the workload.
fn dependence(options: &TuneOptions, answer: &TuneAcrossAnswer) -> Option<Finding> {
    let visible = percent(answer.visible_ratio);
    if answer.is_empty() {
        let noise = answer.searches.iter().map(|search| {
            let found = &search.answer;
            let noise = percent(found.noise_ratio);
            let said = statement!("tune-noise", noise = noise, trials = found.trials.len());
            of_workload(&search.workload, &said)
        });
        return Some(match answer.dependence {
            Dependence::Same | Dependence::Depends => Finding::found(
                statement!("tune-across-nothing", visible = visible),
                noise.collect(),
            ),
            Dependence::Undecided => {
                let said = statement!("tune-across-nothing-proven", visible = visible);
                Finding::warning(said, noise.collect())
            }
        });
    }
    // For each of the settings found, the workload with the worst result.
    let worst = answer.winners.iter().filter_map(|found| {
        let worst = worst(options, &found.on, |on| on.beside_own.as_ref())?;
        Some(beside_own(options, found, worst))
    });
    match answer.dependence {
        Dependence::Same => {
            let same = answer.same.as_ref()?;
            let rows = answer.for_all.iter().chain(&answer.not_for_all);
            let mut rows = rows.chain(&answer.winners);
            let row = rows.find(|row| row.settings == *same)?;
            let beside = row.on.iter().map(|on| match &on.beside_own {
                Some(_) => beside_own(options, row, on),
                None => on_workload(options, on),
            });
            let said = statement!(
                "tune-across-same",
                settings = named(same),
                margin = percent(options.margin_ratio),
                visible = visible
            );
            Some(Finding::found(said, beside.collect()))
        }
        Dependence::Depends => {
            let harm = harm(&answer.winners);
            let said = statement!("tune-across-depends");
            Some(Finding::found(said, worst.chain(harm).collect()))
        }
        Dependence::Undecided => {
            let said = statement!("tune-across-undecided", visible = visible);
            let evidence: Vec<Statement> = worst.collect();
            (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
        }
    }
}

/// Settings that are good for all workloads.
fn for_all(options: &TuneOptions, answer: &TuneAcrossAnswer) -> Option<Finding> {
    let margin = percent(options.margin_ratio);
    if answer.is_empty() {
        return None;
    }
    if let Some(found) = &answer.for_all {
        let said = statement!(
            "tune-good-for-all",
            goal = options.goal.as_str(),
            settings = named(&found.settings),
            ratio = times_of(&found.mean_ratio?),
            margin = margin
        );
        return Some(Finding::found(said, on_each(options, &found.on)));
    }
    if let Some(tried) = answer.not_for_all.first() {
        let said = statement!(
            "tune-not-proven-for-all",
            settings = named(&tried.settings),
            margin = margin
        );
        return Some(Finding::warning(said, on_each(options, &tried.on)));
    }
    let worst = answer.winners.iter().filter_map(|found| {
        let worst = worst(options, &found.on, |on| on.ratio.as_ref())?;
        (!found.settings.is_empty()).then(|| found_on(options, found, worst))
    });
    let evidence: Vec<Statement> = worst.chain(harm(&answer.winners)).collect();
    let said = statement!("tune-good-for-none", margin = margin);
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}

/// The workload with the worst ratio.
fn worst<'a>(
    options: &TuneOptions,
    on: &'a [OnWorkload],
    ratio: impl Fn(&'a OnWorkload) -> Option<&'a Figure>,
) -> Option<&'a OnWorkload> {
    let better = |ratio: &Figure| match options.goal.larger_is_better() {
        true => ratio.value,
        false => 1.0 / ratio.value,
    };
    let known = on.iter().filter_map(|on| Some((better(ratio(on)?), on)));
    let worst = known.min_by(|(one, _), (other, _)| one.total_cmp(other));
    worst.map(|(_, on)| on)
}

/// One workload's settings compared with another workload's own settings.
fn beside_own(options: &TuneOptions, found: &AcrossSettings, on: &OnWorkload) -> Statement {
    statement!(
        "tune-beside-own",
        workload = &on.workload,
        goal = options.goal.as_str(),
        settings = settings(&found.settings),
        ratio = on.beside_own.as_ref().map(times_of)
    )
}

/// One workload's settings on another workload.
fn found_on(options: &TuneOptions, found: &AcrossSettings, on: &OnWorkload) -> Statement {
    statement!(
        "tune-found-on",
        workload = &on.workload,
        goal = options.goal.as_str(),
        settings = settings(&found.settings),
        ratio = on.ratio.as_ref().map(times_of)
    )
}

/// Settings one by one; `None` without changes.
fn settings(settings: &BTreeMap<String, String>) -> Option<Vec<Statement>> {
    (!settings.is_empty()).then(|| named(settings))
}

/// Effects of settings on all workloads.
fn on_each(options: &TuneOptions, on: &[OnWorkload]) -> Vec<Statement> {
    on.iter().map(|on| on_workload(options, on)).collect()
}

/// Effect of settings on one workload.
fn on_workload(options: &TuneOptions, on: &OnWorkload) -> Statement {
    match (&on.ratio, &on.problem) {
        (Some(ratio), _) => statement!(
            "tune-on-workload",
            workload = &on.workload,
            goal = options.goal.as_str(),
            ratio = times_of(ratio),
            // Without pairs they change nothing there.
            pairs = (on.pairs > 0).then_some(on.pairs)
        ),
        (None, problem) => {
            statement!("tune-harm-on-workload", workload = &on.workload, reason = problem.as_ref())
        }
    }
}

/// Settings of one workload that harmed another.
fn harm(found: &[AcrossSettings]) -> impl Iterator<Item = Statement> {
    found.iter().flat_map(|found| {
        let harmful = found.on.iter().filter(|on| on.problem.is_some());
        harmful.map(move |on| {
            statement!(
                "tune-found-harmful-on",
                workload = &on.workload,
                settings = named(&found.settings),
                reason = on.problem.as_ref()
            )
        })
    })
}
