//! Searches on simulated benches: figures of runs that never took place.

use super::*;
use dyno_record::experiment::KnobReach;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

/// Standard deviation of the logarithm of a run.
pub(super) const NOISE: f64 = 0.02;

fn knob(name: &str, key: &str, text: Option<&str>) -> Knob {
    Knob {
        name: name.into(),
        group: "own".into(),
        key: key.into(),
        text: text.map(Into::into),
        values: ["1", "2", "4", "8", "16"].map(Into::into).into(),
        default: 2,
        ordered: true,
        reach: KnobReach::RunTime,
        needs_start: false,
        files: Vec::new(),
        versions: None,
        risk: None,
        documentation: None,
    }
}

pub(super) fn options(goal: TuneGoal) -> TuneOptions {
    const ENGINE: &str = "server.runtime_parameters.engine";
    TuneOptions {
        goal,
        p99_limit_us: None,
        failed_ratio: 0.001,
        seed: 1,
        margin_ratio: 0.04,
        budget_s: 3600.0,
        allows_less_durable: false,
        knobs: Some(vec![
            knob("threads", ENGINE, Some("eviction=(threads_max={})")),
            knob("target", ENGINE, Some("eviction_target={}")),
            knob("delay", "server.runtime_parameters.delay", None),
        ]),
        left_out: Vec::new(),
        run_s: Some(10.0),
        start_s: None,
        ended_after: None,
        trials: Some(30),
        max_pairs: Some(12),
        confirmation_pairs: None,
    }
}

pub(super) fn figures(rate_per_s: f64) -> Figures {
    let text = serde_json::json!({
        "clients": 1, "threads": 1, "rate_per_s": {"value": rate_per_s},
        "response_mean_us": {"value": 10.0}, "response_us": {"p99": {"value": 1e8 / rate_per_s}},
        "service_mean_us": 10.0, "mean_in_flight": 1.0, "succeeded": 100_000, "failed_ratio": 0.0,
        "dropped_ratio": 0.0, "duration_s": 10.0, "resources": [], "demands": [], "laws": [], "caveats": [],
    });
    serde_json::from_value(text).expect("it has all fields")
}

/// The value of a knob that keys set, 4 unless they do.
pub(super) fn value(keys: &Keys, key: &str, option: &str) -> f64 {
    let text = keys.get(key).map_or("4", String::as_str);
    let rest = text.split_once(option).map_or("4", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// A bench on which more threads and a shorter delay help, and what it was asked for.
struct Bench {
    random: Xoshiro256PlusPlus,
    noise: f64,
    fails_from_threads: f64,
    is_flat: bool,
    runs: Vec<Keys>,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        Bench {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            noise: NOISE,
            fails_from_threads: f64::INFINITY,
            is_flat: false,
            runs: Vec::new(),
        }
    }

    fn run(&mut self, keys: &Keys) -> Result<Figures, String> {
        self.runs.push(keys.clone());
        let threads = value(keys, "server.runtime_parameters.engine", "threads_max=");
        if threads >= self.fails_from_threads {
            return Err("the server is busy with itself".into());
        }
        let delay = value(keys, "server.runtime_parameters.delay", "");
        let slope = if self.is_flat { 0.0 } else { 1.0 };
        let log = slope * 0.15 * (threads / 4.0).log2()
            - slope * 0.1 * (delay / 4.0).log2().abs().min(1.0);
        let noise: f64 = StandardNormal.sample(&mut self.random);
        Ok(figures(10_000.0 * (log + self.noise * noise).exp()))
    }

    fn search(&mut self, options: &TuneOptions) -> TuneCourse {
        self.search_until(options, u32::MAX)
    }

    /// The search, whose time is over after so many comparisons.
    fn search_until(&mut self, options: &TuneOptions, comparisons: u32) -> TuneCourse {
        let none = Keys::new();
        let first: Vec<Figures> = (0..BASELINE_RUNS)
            .map(|_| self.run(&none).unwrap())
            .collect();
        let first: Vec<&Figures> = first.iter().collect();
        let mut course = TuneCourse::new(options, &first).unwrap();
        loop {
            if course.searched() == Some(comparisons) {
                course.end_search();
            }
            if course.to_confirm().is_some() && comparisons < u32::MAX {
                course.set_confirmation_pairs(6);
            }
            let TuneNext::Run { keys, .. } = course.next_run() else {
                break;
            };
            match self.run(&keys) {
                Ok(figures) => course.take(RunOutcome::Measured(&figures)).unwrap(),
                Err(reason) => course.take(RunOutcome::Harmful(&reason)).unwrap(),
            }
        }
        course
    }
}

#[test]
fn the_answer_is_the_smallest_change_and_its_gain_is_the_true_one() {
    for goal in [TuneGoal::Rate, TuneGoal::P99] {
        let mut bench = Bench::new(7);
        let answer = bench.search(&options(goal)).answer();
        let expected = BTreeMap::from([("threads".to_owned(), "16".to_owned())]);
        assert_eq!(answer.settings, expected, "{goal:?}");
        assert_eq!(
            answer.keys["server.runtime_parameters.engine"],
            "eviction=(threads_max=16)"
        );
        let truth = match goal {
            TuneGoal::Rate => 0.3_f64.exp(),
            _ => (-0.3_f64).exp(),
        };
        let ratio = answer.ratio.unwrap();
        assert!(
            ratio.low.unwrap() < truth && truth < ratio.high.unwrap(),
            "{ratio:?}"
        );
        assert!(
            (answer.noise_ratio - NOISE).abs() < 0.01,
            "{}",
            answer.noise_ratio
        );
        // What the model says of the knob that counts, and of one that does not.
        let at = |knob: &str, value: usize| {
            let mut effects = answer.effects.iter();
            effects.find(|effect| effect.knob == knob).unwrap().ratios[value].value
        };
        assert!((at("threads", 4) / truth).ln().abs() < 0.1);
        assert!((at("target", 0) / at("target", 4)).ln().abs() < 0.1);
    }
}

#[test]
fn every_run_is_named_once_and_pairs_alternate() {
    let mut bench = Bench::new(3);
    let course = bench.search(&options(TuneGoal::Rate));
    let answer = course.answer();
    let mut runs: Vec<usize> = answer
        .trials
        .iter()
        .flat_map(|trial| trial.runs.concat())
        .collect();
    runs.sort_unstable();
    let all: Vec<usize> = (BASELINE_RUNS..bench.runs.len()).collect();
    assert_eq!(runs, all);
    for trial in &answer.trials {
        for (number, pair) in trial.runs.iter().enumerate() {
            let [tried, beside] = pair[..] else {
                panic!("{trial:?}")
            };
            assert_eq!(tried < beside, number % 2 == 1, "{trial:?}");
        }
    }
    // Both sides of the confirmation ran what they should.
    for [tried, beside] in answer.confirmation().unwrap().pairs() {
        assert!(bench.runs[beside].is_empty());
        assert_eq!(bench.runs[tried], answer.keys);
    }
}

#[test]
fn runs_that_are_all_alike_prove_a_gain_too() {
    let mut bench = Bench::new(7);
    bench.noise = 0.0;
    let answer = bench.search(&options(TuneGoal::Rate)).answer();
    let expected = BTreeMap::from([("threads".to_owned(), "16".to_owned())]);
    assert_eq!(answer.settings, expected);
    assert!(answer.noise_ratio > 0.0 && answer.noise_ratio < 1e-4);
}

#[test]
fn a_region_that_fails_is_left_and_named() {
    let mut bench = Bench::new(5);
    bench.fails_from_threads = 16.0;
    let answer = bench.search(&options(TuneGoal::Rate)).answer();
    assert_eq!(answer.settings["threads"], "8");
    let failed = answer.trials.iter().filter(|trial| trial.problem.is_some());
    assert!(
        (1..=3).contains(&failed.clone().count()),
        "{}",
        failed.count()
    );
}

#[test]
fn what_is_certainly_worse_is_given_up_after_a_pair() {
    let mut options = options(TuneGoal::Rate);
    let mut noisy = Bench::new(9);
    let answer = noisy.search(&options).answer();
    let dropped: Vec<&TuneTrial> = answer.trials.iter().filter(|one| one.is_dropped).collect();
    assert!(!dropped.is_empty());
    for trial in dropped {
        assert_eq!((trial.runs.len(), trial.purpose), (1, TunePurpose::Search));
        assert!(trial.ratio.unwrap().value < 0.95, "{trial:?}");
    }
    options.trials = Some(3);
    assert!(Bench::new(9).search(&options).answer().trials.len() >= 3);
}

#[test]
fn a_flat_surface_yields_nothing_in_nineteen_of_twenty_searches() {
    let claims = |seed: &u64| {
        let mut bench = Bench::new(*seed);
        bench.is_flat = true;
        let options = TuneOptions {
            seed: *seed,
            ..options(TuneGoal::Rate)
        };
        !bench.search(&options).answer().settings.is_empty()
    };
    assert!((0..20).filter(claims).count() <= 1);
}

#[test]
fn what_was_found_when_the_time_is_over_is_confirmed_in_the_time_that_is_left() {
    let options = options(TuneGoal::Rate);
    let mut bench = Bench::new(7);
    let course = bench.search_until(&options, 6);
    let answer = course.answer();
    let count = |purpose| {
        let trials = answer.trials.iter();
        trials.filter(|trial| trial.purpose == purpose).count()
    };
    assert_eq!(count(TunePurpose::Search), 6);
    assert!(count(TunePurpose::Confirm) >= 1);
    let rests = answer
        .trials
        .iter()
        .filter(|trial| trial.purpose != TunePurpose::Search);
    for trial in rests {
        assert!(trial.runs.len() <= 6, "{trial:?}");
    }
    // The same figures and the same end give the same course.
    let again = Bench::new(7).search_until(&options, 6).answer();
    assert_eq!(again, answer);
}

#[test]
fn limits_hold_for_every_run() {
    let mut limited = options(TuneGoal::Rate);
    limited.p99_limit_us = Some(20_000.0);
    let slow = figures(4_000.0);
    assert_eq!(harm(&limited, &slow).unwrap(), "p99 was 25.000 ms");
    let error = TuneCourse::new(&limited, &[&slow; 4]).unwrap_err();
    assert!(error.contains("without any change"), "{error}");
    let failing = Figures {
        failed_ratio: 0.01,
        ..figures(10_000.0)
    };
    assert_eq!(
        harm(&limited, &failing).unwrap(),
        "1.000 % of the operations failed"
    );
    let behind = Figures {
        offered_rate_per_s: Some(12_000.0),
        ..figures(10_000.0)
    };
    assert!(harm(&limited, &behind).unwrap().contains("10000 of 12000"));
    assert_eq!(harm(&limited, &figures(10_000.0)), None);
    // Without the CPU time of the server there is nothing to search for.
    let error = TuneCourse::new(&options(TuneGoal::Cpu), &[&slow; 4]).unwrap_err();
    assert!(error.contains("does not tell"), "{error}");
}

#[test]
fn the_time_is_for_search_and_confirmation() {
    assert_eq!(budget(3600.0, 10.0), Some((53, 10)));
    assert_eq!(budget(3600.0, 300.0), None);
    let (trials, pairs) = budget(600.0, 10.0).unwrap();
    assert_eq!((trials, pairs), (8, 4));
    assert_eq!(pairs_in(300.0, 20.0, 3), 4);
    assert_eq!(pairs_in(1300.0, 20.0, 3), 20);
    assert_eq!((pairs_in(-5.0, 20.0, 3), pairs_in(1e6, 20.0, 1)), (4, 24));
    // With 2 % of noise in a run, 12 pairs show about 2.5 %.
    let visible = visible_ratio(0.02, 12);
    assert!((0.02..0.03).contains(&visible), "{visible}");
}

#[test]
fn a_refused_value_is_no_harm_and_known_by_its_key() {
    let mut bench = Bench::new(11);
    let none = Keys::new();
    let first: Vec<Figures> = (0..BASELINE_RUNS)
        .map(|_| bench.run(&none).unwrap())
        .collect();
    let first: Vec<&Figures> = first.iter().collect();
    let mut course = TuneCourse::new(&options(TuneGoal::Rate), &first).unwrap();
    let key = "server.runtime_parameters.delay";
    let mut refused = Vec::new();
    while let TuneNext::Run { keys, .. } = course.next_run() {
        let taken = match keys.get(key) {
            Some(delay) => {
                refused.push(delay.clone());
                let reason = "too slow";
                course.take(RunOutcome::Refused { reason, key })
            }
            None => course.take(RunOutcome::Measured(&bench.run(&keys).unwrap())),
        };
        taken.unwrap();
    }
    let answer = course.answer();
    // Each of its four other values once.
    refused.sort();
    let count = refused.len();
    refused.dedup();
    assert!(
        (1..=4).contains(&count) && refused.len() == count,
        "{refused:?}"
    );
    let trials = answer.trials.iter().filter(|trial| trial.problem.is_some());
    assert!(trials.clone().count() == count && trials.clone().all(|trial| trial.is_refused));
    assert_eq!(answer.settings["threads"], "16");
}
