//! The findings of searches for several workloads.

use super::tunings::options;
use super::*;
use crate::experiment::tune::across::AcrossProgress;
use crate::experiment::tune::{BASELINE_RUNS, Baseline, TuneProgress, TuneRun};
use dyno_record::experiment::{Dependence, OnWorkload, TuneAcrossAnswer};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("tune-across-same", together())
            .not_if("each loses what the other gains", |it| *it = opposed())
            .not_if("it cannot be told", |it| answer(it).dependence = Dependence::Undecided),
        case("tune-across-depends", opposed()).not_if("both have the same", |it| *it = together()),
        case("tune-across-depends", harmful())
            .not_if("it cannot be told", |it| answer(it).dependence = Dependence::Undecided),
        case(
            "tune-across-undecided",
            with(opposed(), |it| answer(it).dependence = Dependence::Undecided),
        )
        .not_if("nothing was compared", |it| {
            let answer = answer(it);
            answer.together = None;
            answer.winners.iter_mut().for_each(|found| found.on.clear());
        }),
        case("tune-good-for-all", together())
            .not_if("it is not proven", |it| answer(it).for_all = None)
            .not_if("the ratio is not known", |it| {
                answer(it).for_all.as_mut().unwrap().mean_ratio = None
            }),
        case("tune-good-for-none", opposed())
            .not_if("some are", |it| *it = together())
            .not_if("nothing is better", |it| *it = flat()),
        case("tune-good-for-none", with(together(), |it| answer(it).for_all = None))
            .not_if("it is proven", |it| *it = together()),
        case("tune-of-workload", together())
            .not_if("nothing was searched for", |it| answer(it).searches.clear()),
    ]
}

fn answer(experiment: &mut Experiment) -> &mut TuneAcrossAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::TuneAcross(answer)) => answer,
        other => panic!("not a search for several workloads: {other:?}"),
    }
}

/// A thread count of 4 helps the first workload, a delay of 4 the second.
fn together() -> Experiment {
    across([(1.2, 1.0), (1.0, 1.3)])
}

/// Both settings cost the other workload more than they gain.
fn opposed() -> Experiment {
    across([(1.2, 0.6), (0.6, 1.2)])
}

fn flat() -> Experiment {
    across([(1.0, 1.0); 2])
}

/// Like [`opposed`], and the first settings harm the second workload.
fn harmful() -> Experiment {
    with(opposed(), |it| do_harm(&mut answer(it).winners[0].on[1]))
}

fn do_harm(on: &mut OnWorkload) {
    (on.ratio, on.beside_own) = (None, None);
    on.problem = Some("it hangs".into());
}

/// Searches for two workloads whose rates are multiplied by these factors at a thread count of 4 and at a delay
/// of 4.
fn across(factors: [(f64, f64); 2]) -> Experiment {
    let options = options();
    let mut done = Vec::new();
    let mut run = |factor: f64| {
        // Some noise with repetitions.
        let noise = [1.0, 1.003, 0.998, 1.001, 0.997][done.len() % 5];
        let figures = figures(8, None, 10_000.0 * factor * noise, 425.0);
        done.push(figures.clone());
        figures
    };
    let mut searches = Vec::new();
    for workload in ["a", "c"] {
        let mut baseline = Baseline::new(&options, BASELINE_RUNS * searches.len());
        while !baseline.is_complete() {
            baseline.take(run(1.0));
        }
        let progress = TuneProgress::new(&options, &baseline).expect("a baseline");
        searches.push((workload.to_owned(), progress));
    }
    let mut progress = AcrossProgress::new(searches);
    while let Some((workload, TuneRun { keys, .. })) = progress.next_run() {
        let is = |name: &str| {
            let value = keys.get(&format!("server.runtime_parameters.{name}"));
            value.is_some_and(|value| value == "4")
        };
        let (threads, delay) = factors[workload];
        let threads = if is("threads") { threads } else { 1.0 };
        let delay = if is("delay") { delay } else { 1.0 };
        let figures = run(threads * delay);
        let taken = progress.take(Ok(&figures));
        taken.expect("the defaults succeed");
    }
    let mut experiment = experiment((CLIENTS, &["8", "8"]), vec![done[0].clone(), done[1].clone()]);
    experiment.answer = Some(Answer::TuneAcross(Box::new(progress.answer())));
    experiment
}
