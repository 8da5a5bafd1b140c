//! The findings of searches for better settings.

use super::*;
use crate::experiment::tune::{Baseline, Failure, TuneProgress, TuneRun};
use dyno_record::experiment::{
    AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, CostKind, CostRatio, DemandRatio,
    Explanation, Knob, LeftOutKnob, RunsSetAside, Statistic, TuneAnswer, TuneGoal, TuneOptions,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("tune-better", tuned(1.2, false))
            .not_if("nothing is better", |it| *it = tuned(1.0, false))
            .not_if("the ratio is not known", |it| answer(it).ratio = None),
        case("tune-nothing-to-gain", tuned(1.0, false))
            .not_if("something is better", |it| *it = tuned(1.2, false))
            .not_if("more may have been missed", |it| answer(it).visible_ratio = 0.2),
        case("tune-not-proven", with(tuned(1.0, false), |it| answer(it).visible_ratio = 0.2))
            .not_if("it would have been seen", |it| answer(it).visible_ratio = 0.02),
        case(
            "tune-none-compared",
            with(tuned(1.0, false), |it| {
                answer(it).candidate = Some([("threads".to_owned(), "4".to_owned())].into());
                answer(it).ratio = None;
            }),
        )
        .not_if("something was", |it| *it = tuned(1.0, false)),
        case(
            "tune-less-durable",
            with(tuned(1.2, false), |it| {
                let known = it.options.tune.as_mut().unwrap();
                known.knobs[0].less_durable = vec!["4".into()];
            }),
        )
        .not_if("no value is", |it| *it = tuned(1.2, false)),
        case("explanation", explained())
            .not_if("nothing is better", |it| answer(it).settings.clear())
            .not_if("nothing was compared", |it| answer(it).comparison = None),
        case("explanation", waiting_less())
            .not_if("nothing is better", |it| answer(it).settings.clear()),
        case(
            "tune-set-aside",
            with(tuned(1.2, false), |it| {
                answer(it).first_set_aside = vec![set_aside(1)];
                answer(it).trials[0].set_aside = vec![set_aside(5), set_aside(6)];
            }),
        )
        .not_if("no run was", |it| {
            answer(it).first_set_aside.clear();
            answer(it).trials[0].set_aside.clear();
        })
        .not_without("stolen-time", "not-watched", |it| {
            answer(it).first_set_aside.clear();
            answer(it).trials[0].set_aside.clear();
            runs(it).for_each(|run| run.stolen_ratio = None);
        })
        .not_if("it was for another reason", |it| {
            let answer = answer(it);
            let of_trial = answer.trials[0].set_aside.iter_mut();
            answer
                .first_set_aside
                .iter_mut()
                .chain(of_trial)
                .for_each(|one| one.stolen_ratio = None);
        }),
        case("tune-harmful-settings", tuned(1.2, true))
            .not_if("all went well", |it| *it = tuned(1.2, false)),
        case(
            "tune-refused-settings",
            with(tuned(1.2, true), |it| {
                let harmed = answer(it).trials.iter_mut().find(|trial| trial.problem.is_some());
                harmed.expect("a harmful setting").is_refused = true;
            }),
        )
        .not_if("it did harm", |it| *it = tuned(1.2, true)),
        case("tune-left-out", tuned(1.2, false)).not_if("the server has all", |it| {
            it.options.tune.as_mut().unwrap().left_out.clear();
        }),
    ]
}

fn answer(experiment: &mut Experiment) -> &mut TuneAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Tune(answer)) => answer,
        other => panic!("not a search for settings: {other:?}"),
    }
}

fn set_aside(run: usize) -> RunsSetAside {
    RunsSetAside { runs: vec![run], stolen_ratio: Some(0.03) }
}

pub(super) fn options() -> TuneOptions {
    let knob = |name: &str| Knob {
        default: Some(0),
        ..Knob::new(
            name,
            format!("server.runtime_parameters.{name}"),
            ["1", "2", "4"].map(Into::into).into(),
        )
    };
    let left_out =
        |name: &str, reason: &str| LeftOutKnob { name: name.into(), reason: reason.into() };
    TuneOptions {
        goal: TuneGoal::Rate,
        responses: Vec::new(),
        failed_ratio: 0.001,
        seed: 1,
        margin_ratio: 0.04,
        max_steal_ratio: Some(0.01),
        budget_s: 600.0,
        allows_less_durable: false,
        knobs: vec![knob("threads"), knob("delay")],
        left_out: vec![
            left_out("swap", "no swap"),
            left_out("a", "too old"),
            left_out("b", "too old"),
        ],
        run_s: Some(10.0),
        trials: Some(9),
        ended_after: None,
        start_s: None,
        may_stall: None,
        max_pairs: Some(6),
        confirmation_pairs: Vec::new(),
    }
}

/// A search on a bench where a thread count of 4 multiplies the rate, and a delay of 4 does harm or nothing.
fn tuned(factor: f64, harms: bool) -> Experiment {
    let options = options();
    let mut done = Vec::new();
    let mut run = |factor: f64| {
        // Some noise with repetitions.
        let noise = [1.0, 1.003, 0.998, 1.001, 0.997][done.len() % 5];
        let figures = figures(8, None, 10_000.0 * factor * noise, 425.0);
        done.push(figures.clone());
        figures
    };
    let mut baseline = Baseline::new(&options, 0);
    while !baseline.is_complete() {
        baseline.take(run(1.0));
    }
    let mut progress = TuneProgress::new(&options, &baseline).expect("a baseline");
    while let Some(TuneRun { keys, .. }) = progress.next_run() {
        let is = |name: &str| {
            let value = keys.get(&format!("server.runtime_parameters.{name}"));
            value.is_some_and(|value| value == "4")
        };
        let taken = if harms && is("delay") {
            progress.take(Err(&Failure {
                reason: "it hangs".into(),
                stolen_ratio: None,
                ..Failure::default()
            }))
        } else {
            let figures = run(if is("threads") { factor } else { 1.0 });
            progress.take(Ok(&figures))
        };
        taken.expect("the defaults succeed");
    }
    let mut experiment = experiment((CLIENTS, &["8", "8"]), vec![done[0].clone(), done[1].clone()]);
    runs(&mut experiment).for_each(|run| run.stolen_ratio = Some(0.0));
    experiment.options.tune = Some(options);
    experiment.answer = Some(Answer::Tune(Box::new(progress.answer())));
    experiment
}

fn explained() -> Experiment {
    let mut experiment = tuned(1.2, false);
    answer(&mut experiment).comparison = Some(Box::new(AbAnswer {
        comparisons: Vec::new(),
        deciding: Statistic::Rate,
        pairs_needed: None,
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: vec![DemandRatio {
            name: "server CPU".into(),
            servers: 2,
            baseline_s: 60e-6,
            candidate_s: 50e-6,
            ratio: figure(0.83, 0.01),
        }],
        costs: Vec::new(),
        explanation: Some(Explanation::Demand { name: "server CPU".into() }),
    }));
    experiment
}

fn compared(experiment: &mut Experiment) -> &mut AbAnswer {
    answer(experiment).comparison.as_mut().expect("a comparison")
}

/// A gain without a demand that explains it, with three lower costs including two waits.
fn waiting_less() -> Experiment {
    let cost = |kind, error_ratio| CostRatio {
        kind,
        currency: None,
        baseline: 2.0,
        candidate: 1.5,
        ratio: figure(0.75, error_ratio),
        degrees_of_freedom: Some(4.0),
    };
    with(explained(), |it| {
        let compared = compared(it);
        compared.explanation = Some(Explanation::NoDemand);
        compared.costs = vec![
            cost(CostKind::ServerCpu, 0.1),
            cost(CostKind::CacheMisses, 0.1),
            cost(CostKind::JournalSyncs, 0.1),
        ];
    })
}

/// The tuned rate divided by the rate before.
fn half_as_many_again() -> Comparison {
    Comparison {
        statistic: Statistic::Rate,
        ratio: dyno_record::estimate::Estimate {
            value: 1.5,
            low: 1.4,
            high: 1.6,
            confidence_ratio: 0.95,
        },
        verdict: ComparisonVerdict::Faster,
        margin_ratio: 0.05,
        basis: Basis::BetweenRuns,
        pairs: 8,
        pair_deviation_ratio: 0.05,
        degrees_of_freedom: Some(4.0),
        order_effect_ratio: None,
    }
}

#[test]
fn certain_shorter_waits_are_named_when_no_demand_explains_gain() {
    let said = |change: fn(&mut AbAnswer)| {
        let mut experiment = waiting_less();
        change(compared(&mut experiment));
        let found = findings(&experiment).into_iter();
        let mut found = found.filter(|one| one.statement.code == "explanation");
        let found = found.next().expect("an explanation");
        found.statement.to_string()
    };
    let both = said(|_| {});
    for part in ["fewer-cache-misses", "shorter-journal-syncs", "share: 25"] {
        assert!(both.contains(part), "{both}");
    }
    let one = said(|it| it.costs[2].ratio = figure(0.75, 0.5));
    assert!(one.contains("fewer-cache-misses") && !one.contains("shorter-journal-syncs"), "{one}");
    // A quarter less per operation at half as many operations again is more sync time per second.
    let more = said(|it| it.comparisons.push(half_as_many_again()));
    assert!(!more.contains("shorter-journal-syncs"), "{more}");
    // No page is read into the cache any more, so there is no interval.
    let gone = said(|it| {
        it.costs[1].candidate = 0.0;
        it.costs[1].ratio = Figure::bare(0.0);
    });
    assert!(gone.contains("no-cache-misses (baseline: 2"), "{gone}");
    let none = said(|it| it.costs.truncate(1));
    assert!(none.contains("no-demand-explains"), "{none}");
    let demand = said(|it| {
        let name = "server CPU".to_owned();
        it.explanation = Some(Explanation::Demand { name });
    });
    assert!(demand.contains("needs") && !demand.contains("waits-shorter"), "{demand}");
}
