//! Synthetic searches for settings for two workloads: the rates follow a known surface, the search is the real one.

use super::experiment::{Line, figures, found, other};
use dyno_analyze::experiment::tune::across::AcrossProgress;
use dyno_analyze::experiment::tune::{BASELINE_RUNS, Baseline, Failure, TuneProgress, TuneRun};
use dyno_record::experiment::{
    AbAnswer, AbEnd, Ablation, Answer, Cost, CostBasis, CostKind, Costs, Experiment, Figure,
    Figures, Knob, RunsSetAside, Statistic, TuneGoal, TuneOptions, Verb,
};
use serde_json::json;

/// Gain of four threads on each workload, and of a delay of 4, as factors; `None` if the server hangs.
type Factors = [[Option<f64>; 2]; 2];

/// Threads help `a`, the delay helps `c`; neither affects the other workload.
pub(crate) fn good_for_all() -> Experiment {
    good_for_all_by(TuneGoal::Rate)
}

/// The same searches for another goal.
pub(crate) fn good_for_all_by(goal: TuneGoal) -> Experiment {
    across(goal, [[Some(1.2), Some(1.0)], [Some(1.0), Some(1.3)]])
}

/// The hypervisor took CPU time from the second run, and from a pair of the first comparison of `a`.
pub(crate) fn disturbed() -> Experiment {
    let mut experiment = good_for_all();
    let Some(Answer::TuneAcross(answer)) = &mut experiment.answer else {
        panic!("it is a search for two workloads");
    };
    let set_aside = |run: usize| vec![RunsSetAside { runs: vec![run], stolen_ratio: Some(0.12) }];
    let first = &mut answer.searches[0].answer;
    first.first_set_aside = set_aside(1);
    first.trials[0].set_aside = set_aside(9);
    found(experiment)
}

/// Runs of `a` that ended early: one of the second comparison was certainly worse after 3 s, one of the third did harm
/// after 1 s, and one of the fourth before it measured. A run of the first comparison did harm after 2 s, and its pair was
/// repeated.
pub(crate) fn ended_early() -> Experiment {
    let mut experiment = good_for_all();
    let Some(Answer::TuneAcross(answer)) = &mut experiment.answer else {
        panic!("it is a search for two workloads");
    };
    let trials = &mut answer.searches[0].answer.trials;
    let runs = [1, 2, 3].map(|trial: usize| trials[trial].runs[0][0]);
    for harmful in &mut trials[2..4] {
        harmful.problem = Some("it hangs".into());
        harmful.ratio = None;
        harmful.is_dropped = false;
    }
    let forgiven = trials[0].runs.remove(0);
    let runs = [runs[0], runs[1], runs[2], forgiven[0]];
    trials[0].set_aside = vec![RunsSetAside { runs: forgiven, stolen_ratio: None }];
    let last = runs.into_iter().max().expect("there are four");
    let usual = experiment.points[0].clone();
    experiment.points.resize(last + 1, usual);
    for (run, after_s) in runs.into_iter().zip([3.0, 1.0, 0.0, 2.0]) {
        experiment.points[run].ended_after_s = Some(after_s);
    }
    for run in &runs[1..] {
        experiment.points[*run].figures = None;
    }
    found(experiment)
}

/// The pairs of `a` were compared as in `dyno ab`, and one of its changes proved no effect.
pub(crate) fn confirmed(goal: TuneGoal) -> Experiment {
    let mut experiment = good_for_all_by(goal);
    let Some(Answer::TuneAcross(answer)) = &mut experiment.answer else {
        panic!("it is a search for two workloads");
    };
    let first = &mut answer.searches[0].answer;
    first.comparison = Some(Box::new(AbAnswer {
        comparisons: Vec::new(),
        deciding: Statistic::Percentile { percent: 99.0 },
        pairs_needed: None,
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: Vec::new(),
        costs: Vec::new(),
        explanation: None,
    }));
    first.ablation = vec![Ablation {
        knob: "threads".into(),
        value: "4".into(),
        ratio: Some(Figure { value: 1.1, low: Some(0.9), high: Some(1.3) }),
        problem: None,
        stays: true,
        is_only_together: true,
    }];
    found(experiment)
}

/// The settings that are good for all equal the original settings of `a`.
pub(crate) fn as_before() -> Experiment {
    let mut experiment = good_for_all();
    let Some(Answer::TuneAcross(answer)) = &mut experiment.answer else {
        panic!("it is a search for two workloads");
    };
    let for_all = answer.for_all.as_mut().expect("there are some");
    (for_all.on[0].ratio, for_all.on[0].pairs) = (Some(Figure::bare(1.0)), 0);
    found(experiment)
}

/// `a` is slower with the delay, and `c` hangs with more threads.
pub(crate) fn good_for_none() -> Experiment {
    across(TuneGoal::Rate, [[Some(1.2), Some(0.8)], [None, Some(1.3)]])
}

fn options(goal: TuneGoal) -> TuneOptions {
    let knob = |name: &str, risk: Option<&str>| Knob {
        default: Some(0),
        risk: risk.map(Into::into),
        ..Knob::new(
            name,
            format!("server.runtime_parameters.{name}"),
            ["1", "2", "4"].map(Into::into).into(),
        )
    };
    TuneOptions {
        goal,
        responses: Vec::new(),
        failed_ratio: 0.001,
        seed: 1,
        margin_ratio: 0.05,
        max_steal_ratio: None,
        budget_s: 1_200.0,
        allows_less_durable: false,
        knobs: vec![
            knob("threads", Some("they take CPU from clients")),
            knob("delay", None),
            knob("idle", None),
        ],
        left_out: Vec::new(),
        run_s: Some(10.0),
        start_s: None,
        may_stall: None,
        trials: Some(9),
        ended_after: None,
        max_pairs: Some(6),
        confirmation_pairs: Vec::new(),
    }
}

/// Results of a run, at a rate of 16,000/s or more for a goal that needs a rate.
fn measured(goal: TuneGoal, line: Line, better: f64) -> Figures {
    let figures = figures(line);
    match goal {
        TuneGoal::Rate => figures,
        TuneGoal::P99 => {
            let p99 = Figure::bare(2_000.0 / better);
            let response_us = [("p99".to_owned(), p99)].into();
            Figures { response_us, ..figures }
        }
        TuneGoal::Cpu => {
            let value = Figure::bare(60.0 / better);
            let kind = CostKind::ServerCpu;
            let costs = Costs {
                basis: CostBasis::Operation,
                basis_count: 160_000,
                values: vec![Cost { kind, value }],
                currency: None,
                changed: None,
                unknown: Vec::new(),
            };
            Figures { costs: Some(costs), ..figures }
        }
    }
}

fn across(goal: TuneGoal, factors: Factors) -> Experiment {
    let options = options(goal);
    let mut lines = Vec::new();
    let mut run = |factor: f64| {
        // A little repeatable noise.
        let noise = [1.0, 1.003, 0.998, 1.001, 0.997][lines.len() % 5];
        let better = factor * noise;
        let rate = match goal {
            TuneGoal::Rate => 16_000.0 * better,
            TuneGoal::P99 | TuneGoal::Cpu => 16_000.0,
        };
        let line = (8, None, rate, 8e6 / rate, 0.01);
        lines.push(line);
        measured(goal, line, better)
    };
    let mut searches = Vec::new();
    for workload in ["a", "c"] {
        let mut baseline = Baseline::new(&options, BASELINE_RUNS * searches.len());
        while !baseline.is_complete() {
            baseline.take(run(1.0));
        }
        let progress = TuneProgress::new(&options, &baseline).unwrap();
        searches.push((workload.to_owned(), progress));
    }
    let mut progress = AcrossProgress::new(searches);
    while let Some((workload, TuneRun { keys, .. })) = progress.next_run() {
        let of = |name: &str, place: usize| {
            let value = keys.get(&format!("server.runtime_parameters.{name}"));
            let is_set = value.is_some_and(|value| value == "4");
            if is_set { factors[workload][place] } else { Some(1.0) }
        };
        let taken = match of("threads", 0).zip(of("delay", 1)) {
            Some((threads, delay)) => progress.take(Ok(&run(threads * delay))),
            None => {
                run(1.0);
                progress.take(Err(&Failure {
                    reason: "it hangs".into(),
                    stolen_ratio: None,
                    ..Failure::default()
                }))
            }
        };
        taken.unwrap();
    }
    let answer = Answer::TuneAcross(Box::new(progress.answer()));
    let question = "Which settings make `a` and `c` better, each by its rate, and does it depend on the workload?";
    // The list of all runs does not describe the search.
    let mut experiment = other(Verb::Tune, question, &lines[..BASELINE_RUNS], answer);
    let total = TuneOptions { budget_s: 2_400.0, knobs: Vec::new(), ..options };
    let plan = |read: f64| json!({"name": "x", "operations": {"read": read, "update": 1.0 - read}, "data": {"records": 1000}});
    experiment.options.tune = Some(total);
    experiment.options.plans = [("a".to_owned(), plan(0.5)), ("c".to_owned(), plan(1.0))].into();
    found(experiment)
}
