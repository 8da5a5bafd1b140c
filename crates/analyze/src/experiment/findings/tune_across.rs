//! Findings of the searches for several workloads: whether the best settings depend on the workload, which
//! settings are good for all, and the findings of each search.

use super::tune::{left_out, named, of_search};
use crate::values::{percent, times_of};
use dyno_record::experiment::{
    AcrossSettings, Dependence, Figure, Finding, OnWorkload, TuneAcrossAnswer, TuneOptions,
};
use dyno_record::statement;
use dyno_record::statement::Statement;

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

/// Whether the best settings depend on the workload. If nothing was found, each search says so.
fn dependence(options: &TuneOptions, answer: &TuneAcrossAnswer) -> Option<Finding> {
    if answer.is_empty() {
        return None;
    }
    let visible = percent(answer.visible_ratio);
    // For each of the settings found, the workload with the worst result.
    let worst_of_each = || -> Vec<Statement> {
        let all = rows(answer);
        all.filter_map(|found| worst(options, found, |on| on.beside_own.as_ref())).collect()
    };
    match answer.dependence {
        Dependence::Same => {
            let same = answer.same.as_ref()?;
            let row = rows(answer).find(|row| row.settings == *same)?;
            let said = statement!(
                "tune-across-same",
                settings = named(same),
                margin = percent(options.margin_ratio),
                visible = visible
            );
            Some(Finding::found(said, on_each(options, row)))
        }
        Dependence::Depends => {
            Some(Finding::found(statement!("tune-across-depends"), worst_of_each()))
        }
        Dependence::Undecided => {
            let said = statement!("tune-across-undecided", visible = visible);
            let evidence = worst_of_each();
            (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
        }
    }
}

/// Settings that are good for all workloads.
fn for_all(options: &TuneOptions, answer: &TuneAcrossAnswer) -> Option<Finding> {
    let margin = percent(options.margin_ratio);
    if let Some(found) = &answer.for_all {
        let said = statement!(
            "tune-good-for-all",
            goal = options.goal.as_str(),
            settings = named(&found.settings),
            ratio = times_of(&found.mean_ratio?),
            margin = margin
        );
        return Some(Finding::found(said, on_each(options, found)));
    }
    let changing = rows(answer).filter(|found| !found.settings.is_empty());
    let evidence = changing.filter_map(|found| worst(options, found, |on| on.ratio.as_ref()));
    let evidence: Vec<Statement> = evidence.collect();
    let said = statement!("tune-good-for-none", margin = margin);
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}

/// All settings that were measured on every workload.
fn rows(answer: &TuneAcrossAnswer) -> impl Iterator<Item = &AcrossSettings> {
    answer.winners.iter().chain(&answer.together)
}

/// Effect of settings on the workload that they harm, or with the worst ratio.
fn worst(
    options: &TuneOptions,
    found: &AcrossSettings,
    ratio: impl Fn(&OnWorkload) -> Option<&Figure>,
) -> Option<Statement> {
    let better = |on: &OnWorkload| {
        let value = ratio(on)?.value;
        Some(if options.goal.larger_is_better() { value } else { 1.0 / value })
    };
    let known = found.on.iter().filter_map(|on| {
        let is_harmed = on.ratio.is_none();
        Some((if is_harmed { 0.0 } else { better(on)? }, on))
    });
    let worst = known.min_by(|(one, _), (other, _)| one.total_cmp(other));
    worst.map(|(_, on)| on_workload(options, found, on))
}

/// Effects of settings on all workloads.
fn on_each(options: &TuneOptions, found: &AcrossSettings) -> Vec<Statement> {
    found.on.iter().map(|on| on_workload(options, found, on)).collect()
}

/// Effect of settings on one workload.
fn on_workload(options: &TuneOptions, found: &AcrossSettings, on: &OnWorkload) -> Statement {
    statement!(
        "tune-on-workload",
        workload = &on.workload,
        goal = options.goal.as_str(),
        settings = (!found.settings.is_empty()).then(|| named(&found.settings)),
        ratio = on.ratio.as_ref().map(times_of),
        own = on.beside_own.as_ref().map(times_of),
        // Without pairs they change nothing there.
        pairs = (on.pairs > 0).then_some(on.pairs),
        reason = on.problem.as_ref()
    )
}
