//! Made-up searches for settings for two workloads: the rates follow a known surface, the course is the real one.

use super::experiment::{figures, found, other};
use dyno_analyze::experiment::tune::across::AcrossCourse;
use dyno_analyze::experiment::tune::{BASELINE_RUNS, RunOutcome, TuneCourse, TuneNext};
use dyno_record::experiment::{
    Answer, Experiment, Figures, Knob, KnobReach, PLANS, TUNE, TuneGoal, TuneOptions, Verb,
};
use serde_json::json;

/// By what threads at 4 multiply the rate of each workload, and by what a delay of 4; `None` if it hangs.
type Factors = [[Option<f64>; 2]; 2];

/// Threads help `a`, and the delay `c`; they cost the other nothing.
pub(crate) fn good_for_all() -> Experiment {
    across([[Some(1.2), Some(1.0)], [Some(1.0), Some(1.3)]])
}

/// `a` is slower with the delay, and `c` hangs with more threads.
pub(crate) fn good_for_none() -> Experiment {
    across([[Some(1.2), Some(0.8)], [None, Some(1.3)]])
}

fn options() -> TuneOptions {
    let knob = |name: &str, risk: Option<&str>| Knob {
        name: name.into(),
        group: "own".into(),
        key: format!("server.runtime_parameters.{name}"),
        text: None,
        values: ["1", "2", "4"].map(Into::into).into(),
        default: 0,
        ordered: true,
        reach: KnobReach::RunTime,
        needs_start: false,
        files: Vec::new(),
        versions: None,
        risk: risk.map(Into::into),
        documentation: None,
    };
    TuneOptions {
        goal: TuneGoal::Rate,
        p99_limit_us: None,
        failed_ratio: 0.001,
        seed: 1,
        margin_ratio: 0.05,
        budget_s: 1_200.0,
        allows_less_durable: false,
        knobs: Some(vec![
            knob("threads", Some("they take CPU from clients")),
            knob("delay", None),
            knob("idle", None),
        ]),
        left_out: Vec::new(),
        run_s: Some(10.0),
        start_s: None,
        trials: Some(9),
        ended_after: None,
        max_pairs: Some(6),
        confirmation_pairs: None,
    }
}

fn across(factors: Factors) -> Experiment {
    let options = options();
    let mut lines = Vec::new();
    let mut run = |factor: f64| {
        // A little noise that repeats.
        let noise = [1.0, 1.003, 0.998, 1.001, 0.997][lines.len() % 5];
        let rate = 16_000.0 * factor * noise;
        let line = (8, None, rate, 8e6 / rate, 0.01);
        lines.push(line);
        figures(line)
    };
    let mut searches = Vec::new();
    for workload in ["a", "c"] {
        let runs: Vec<Figures> = (0..BASELINE_RUNS).map(|_| run(1.0)).collect();
        let runs: Vec<&Figures> = runs.iter().collect();
        let course = TuneCourse::new(&options, &runs).unwrap();
        searches.push((workload.to_owned(), course));
    }
    let mut course = AcrossCourse::new(searches);
    while let (workload, TuneNext::Run { keys, .. }) = course.next_run() {
        let of = |name: &str, place: usize| {
            let value = keys.get(&format!("server.runtime_parameters.{name}"));
            let is_set = value.is_some_and(|value| value == "4");
            if is_set {
                factors[workload][place]
            } else {
                Some(1.0)
            }
        };
        let taken = match of("threads", 0).zip(of("delay", 1)) {
            Some((threads, delay)) => course.take(RunOutcome::Measured(&run(threads * delay))),
            None => {
                run(1.0);
                course.take(RunOutcome::Harmful("it hangs"))
            }
        };
        taken.unwrap();
    }
    let answer = Answer::TuneAcross(Box::new(course.answer()));
    let question = "Which settings make `a` and `c` better, each by its rate, and does it depend on the workload?";
    // The list of all runs says nothing of the search.
    let mut experiment = other(Verb::Tune, question, &lines[..BASELINE_RUNS], answer);
    let total = TuneOptions {
        budget_s: 2_400.0,
        knobs: None,
        ..options
    };
    let plan = |read: f64| json!({"name": "x", "operations": {"read": read, "update": 1.0 - read}, "data": {"records": 1000}});
    experiment.options = [
        (TUNE.to_owned(), serde_json::to_value(total).unwrap()),
        (PLANS.to_owned(), json!({"a": plan(0.5), "c": plan(1.0)})),
    ]
    .into();
    found(experiment)
}
