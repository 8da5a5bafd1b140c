//! Searches for several workloads on simulated benches with known best settings.

use super::super::tests::{
    NOISE, disturbed, figures_of, harmful, now_and_then, options, setting_aside, value,
};
use super::super::{BASELINE_RUNS, Baseline, Keys, TuneGoal, TuneOptions};
use super::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

/// Improvement of a workload, as a logarithm, by the doublings of threads and of the delay from 4.
type Surface = fn(f64, f64) -> f64;

const MORE_THREADS: Surface = |threads, _| 0.15 * threads;
const FEWER_THREADS: Surface = |threads, _| -0.15 * threads;
const SHORTER_DELAY: Surface = |_, delay| -0.12 * delay;
const NOTHING: Surface = |_, _| 0.0;

/// Workloads `w0`, `w1` and so on, and their runs: workload number and keys.
struct Bench {
    random: Xoshiro256PlusPlus,
    surfaces: Vec<Surface>,
    /// Thread count from which the last workload fails.
    fails_from_threads: f64,
    /// Whether the run with this number is disturbed.
    is_disturbed: fn(usize) -> bool,
    runs: Vec<(usize, Keys)>,
}

impl Bench {
    fn new(seed: u64, surfaces: &[Surface]) -> Bench {
        Bench {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            surfaces: surfaces.to_vec(),
            fails_from_threads: f64::INFINITY,
            is_disturbed: |_| false,
            runs: Vec::new(),
        }
    }

    fn run(
        &mut self,
        workload: usize,
        keys: &Keys,
        options: &TuneOptions,
    ) -> Result<Figures, String> {
        let is_disturbed = (self.is_disturbed)(self.runs.len());
        self.runs.push((workload, keys.clone()));
        let knobs = &options.knobs;
        let default = knobs[0].default_value().parse::<f64>().unwrap();
        let threads = match keys.get("server.runtime_parameters.engine") {
            Some(text) if text.contains("threads_max=") => {
                value(keys, "server.runtime_parameters.engine", "threads_max=")
            }
            _ => default,
        };
        if workload + 1 == self.surfaces.len() && threads >= self.fails_from_threads {
            return Err("the server is busy with itself".into());
        }
        let delay = value(keys, "server.runtime_parameters.delay", "");
        let log = self.surfaces[workload]((threads / 4.0).log2(), (delay / 4.0).log2());
        if is_disturbed {
            return Ok(disturbed(options.goal, log));
        }
        let noise: f64 = StandardNormal.sample(&mut self.random);
        Ok(figures_of(options.goal, log + NOISE * noise))
    }

    fn search(&mut self, of_each: &[TuneOptions]) -> AcrossProgress {
        let mut searches = Vec::new();
        for (workload, options) in of_each.iter().enumerate() {
            let mut baseline = Baseline::new(options, self.runs.len());
            while !baseline.is_complete() {
                baseline.take(self.run(workload, &Keys::new(), options).unwrap());
            }
            let progress = TuneProgress::new(options, &baseline).unwrap();
            searches.push((format!("w{workload}"), progress));
        }
        let mut progress = AcrossProgress::new(searches);
        while let Some((workload, TuneRun { keys, .. })) = progress.next_run() {
            match self.run(workload, &keys, &of_each[workload]) {
                Ok(figures) => progress.take(Ok(&figures)).unwrap(),
                Err(reason) => progress.take(Err(&harmful(&reason))).unwrap(),
            };
        }
        progress
    }
}

fn searched(seed: u64, surfaces: &[Surface]) -> TuneAcrossAnswer {
    searched_for(TuneGoal::Rate, seed, surfaces)
}

fn searched_for(goal: TuneGoal, seed: u64, surfaces: &[Surface]) -> TuneAcrossAnswer {
    let options: Vec<TuneOptions> = surfaces.iter().map(|_| options(goal)).collect();
    Bench::new(seed, surfaces).search(&options).answer()
}

fn named(settings: &[(&str, &str)]) -> Named {
    settings.iter().map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned())).collect()
}

/// Asserts that the interval of a ratio includes this logarithm.
fn assert_is(ratio: Option<Figure>, log: f64) {
    let ratio = ratio.unwrap();
    assert!((ratio.value.ln() - log).abs() < 0.04, "{ratio:?}, not {log}");
}

fn comparisons(answer: &TuneAcrossAnswer, purpose: TunePurpose) -> usize {
    let trials = answer.searches.iter().flat_map(|search| &search.answer.trials);
    trials.filter(|trial| trial.purpose == purpose).count()
}

#[test]
fn settings_that_each_help_one_workload_combine_for_both() {
    let answer = searched(3, &[MORE_THREADS, SHORTER_DELAY]);
    let [threads, delay] = [("threads", "16"), ("delay", "1")];
    assert_eq!(answer.winners[0].settings, named(&[threads]));
    assert_eq!(answer.winners[1].settings, named(&[delay]));
    // The matrix: each on its own workload, and on the other one.
    for (winner, logs) in answer.winners.iter().zip([[0.3, 0.0], [0.0, 0.24]]) {
        for (on, log) in winner.on.iter().zip(logs) {
            assert_is(on.ratio, log);
        }
    }
    assert_is(answer.winners[0].mean_ratio, 0.15);
    assert_is(answer.winners[0].on[1].beside_own, -0.24);
    assert_eq!(answer.winners[0].on[0].beside_own, None);
    let for_all = answer.for_all.as_ref().unwrap();
    assert_eq!(for_all.settings, named(&[delay, threads]));
    assert_eq!(for_all.found_for, ["w0", "w1"]);
    assert_eq!(for_all.keys["server.runtime_parameters.engine"], "eviction=(threads_max=16)");
    assert_is(for_all.mean_ratio, 0.27);
}

#[test]
fn best_settings_of_both_are_as_good_for_each_in_most_searches() {
    let best = named(&[("delay", "1"), ("threads", "16")]);
    let mut proven = 0;
    for seed in 0..20 {
        let answer = searched(seed, &[MORE_THREADS, SHORTER_DELAY]);
        assert_ne!(answer.dependence, Dependence::Depends, "{seed}");
        proven += usize::from(answer.same == Some(best.clone()));
    }
    assert!(proven >= 10, "{proven}");
}

#[test]
fn settings_slower_on_the_other_workload_are_not_for_all() {
    let answer = searched(5, &[MORE_THREADS, FEWER_THREADS]);
    assert_eq!(answer.winners[0].settings, named(&[("threads", "16")]));
    assert_eq!(answer.winners[1].settings, named(&[("threads", "1")]));
    assert_is(answer.winners[0].on[1].ratio, -0.3);
    assert_is(answer.winners[0].on[1].beside_own, -0.6);
    assert_eq!((answer.for_all, answer.together), (None, None));
    assert_eq!(answer.dependence, Dependence::Depends);
    assert!(answer.visible_ratio < 0.1, "{}", answer.visible_ratio);
}

#[test]
fn mean_gain_certainly_worse_on_one_workload_is_not_for_all() {
    let a_little_fewer: Surface = |threads, _| -0.05 * threads;
    let answer = searched(5, &[MORE_THREADS, a_little_fewer]);
    assert_eq!(answer.winners[0].settings, named(&[("threads", "16")]));
    assert_is(answer.winners[0].mean_ratio, 0.1);
    assert_eq!((answer.for_all, answer.together), (None, None));
}

#[test]
fn good_for_all_is_harmless_on_each_and_better_on_average() {
    let effect = |log_ratio| Ok(Comparison { log_ratio, error: 0.01, degrees_of_freedom: 11.0 });
    let of_one = |effects: &[Effect]| good_for_all(effects, 0.04, 1).is_some();
    assert!(of_one(&[effect(0.3), effect(0.0)]));
    assert!(of_one(&[effect(0.3), Ok(weighted(&[]))]));
    // Two standard errors around -3 % do not rule out the margin.
    assert!(!of_one(&[effect(0.3), effect(-0.03)]));
    assert!(!of_one(&[effect(0.3), effect(-0.1)]));
    assert!(!of_one(&[effect(0.3), Err(None)]));
    assert!(!of_one(&[effect(0.01), effect(0.0)]));
    // One of several must be more certain.
    let effects = [effect(0.3), effect(-0.015)];
    assert!(of_one(&effects) && good_for_all(&effects, 0.04, 5).is_none());
}

#[test]
fn shared_change_is_good_for_all_even_when_the_best_differs() {
    let second: Surface = |threads, delay| -0.15 * threads - 0.12 * delay;
    let answer = searched(7, &[MORE_THREADS, second]);
    let own = named(&[("threads", "1"), ("delay", "1")]);
    assert_eq!(answer.winners[1].settings, own);
    let for_all = answer.for_all.unwrap();
    assert_eq!(for_all.settings, named(&[("delay", "1")]));
    assert_eq!(for_all.found_for, ["w1"]);
    assert_is(for_all.on[0].ratio, 0.0);
    assert_is(for_all.on[1].ratio, 0.24);
    assert_is(for_all.on[1].beside_own, -0.3);
    assert_eq!(answer.dependence, Dependence::Depends);
}

#[test]
fn one_answer_for_all_workloads_is_not_measured_again() {
    let answer = searched(1, &[MORE_THREADS; 3]);
    let best = named(&[("threads", "16")]);
    assert!(answer.winners.iter().all(|winner| winner.settings == best));
    let for_all = answer.for_all.as_ref().unwrap();
    assert_eq!((&for_all.settings, for_all.on.len()), (&best, 3));
    assert_eq!(answer.dependence, Dependence::Same);
    assert_eq!(comparisons(&answer, TunePurpose::Across), 0);
}

#[test]
fn gain_for_one_workload_at_no_cost_to_others_is_for_all() {
    let answer = searched(2, &[NOTHING, MORE_THREADS, NOTHING]);
    assert!(answer.winners[0].settings.is_empty());
    // Settings without an effect are not measured.
    let as_before = &answer.winners[0].on[1];
    assert_eq!((as_before.ratio, as_before.pairs), (Some(Figure::bare(1.0)), 0));
    assert_is(as_before.beside_own, -0.3);
    assert_eq!(comparisons(&answer, TunePurpose::Across), 2);
    assert_is(answer.for_all.unwrap().mean_ratio, 0.1);
    assert_eq!(answer.dependence, Dependence::Same);
}

#[test]
fn settings_failing_on_another_workload_are_named_not_for_all() {
    let of_each = [options(TuneGoal::Rate), options(TuneGoal::Rate)];
    let mut bench = Bench::new(4, &[MORE_THREADS, NOTHING]);
    bench.fails_from_threads = 16.0;
    let answer = bench.search(&of_each).answer();
    let harmful = &answer.winners[0].on[1];
    assert_eq!(harmful.ratio, None);
    let problem = harmful.problem.as_deref();
    assert_eq!(problem, Some("the server is busy with itself"));
    assert_eq!(answer.winners[0].mean_ratio, None);
    assert_eq!((answer.for_all, answer.together), (None, None));
    // The best settings for the second one are worse for the first.
    assert_eq!(answer.dependence, Dependence::Depends);
}

#[test]
fn each_workload_is_compared_with_its_own_defaults() {
    let mut second = options(TuneGoal::Rate);
    second.knobs[0].default = Some(4);
    let of_each = [options(TuneGoal::Rate), second];
    let mut bench = Bench::new(6, &[MORE_THREADS, MORE_THREADS]);
    let answer = bench.search(&of_each).answer();
    assert_eq!(answer.winners[0].settings, named(&[("threads", "16")]));
    // It already has them.
    assert!(answer.winners[1].settings.is_empty());
    let on = &answer.winners[0].on[1];
    assert_eq!((on.ratio, on.beside_own), (Some(Figure::bare(1.0)), None));
    assert_eq!(answer.dependence, Dependence::Same);
}

#[test]
fn every_run_is_named_once_by_its_own_workload() {
    for is_disturbed in [(|_| false) as fn(usize) -> bool, now_and_then] {
        let mut bench = Bench::new(8, &[MORE_THREADS, SHORTER_DELAY]);
        bench.is_disturbed = is_disturbed;
        let of_each = [TuneGoal::Rate, TuneGoal::P99].map(|goal| setting_aside(options(goal)));
        let answer = bench.search(&of_each).answer();
        every_run_is_named_once(&bench, &answer);
        // For times, less is better.
        let slower = answer.winners[0].on[1].beside_own.unwrap();
        assert!(slower.low.unwrap() > 1.0, "{slower:?}");
    }
}

fn every_run_is_named_once(bench: &Bench, answer: &TuneAcrossAnswer) {
    let aside = answer.searches.iter();
    let aside = aside.map(|search| search.answer.first_set_aside.len());
    let mut all: Vec<usize> = (0..BASELINE_RUNS * 2 + aside.sum::<usize>()).collect();
    for (workload, search) in answer.searches.iter().enumerate() {
        let keys = |settings: &Named| {
            keys_of(
                search
                    .options
                    .knobs
                    .iter()
                    .filter_map(|knob| Some((knob, settings.get(&knob.name)?.as_str()))),
            )
        };
        for trial in &search.answer.trials {
            for [tried, beside] in trial.pairs() {
                assert_eq!(bench.runs[tried], (workload, keys(&trial.settings)));
                assert_eq!(bench.runs[beside], (workload, keys(&trial.beside)));
            }
            all.extend(trial.runs.concat());
            for aside in &trial.set_aside {
                assert!(aside.runs.iter().all(|run| bench.runs[*run].0 == workload), "{aside:?}");
                all.extend(&aside.runs);
            }
        }
    }
    all.sort_unstable();
    assert_eq!(all, (0..bench.runs.len()).collect::<Vec<_>>());
}

#[test]
fn every_goal_is_judged_by_its_own_figure_and_direction() {
    for goal in TuneGoal::ALL {
        let sign = if goal.larger_is_better() { 1.0 } else { -1.0 };
        let answer = searched_for(goal, 3, &[MORE_THREADS, SHORTER_DELAY]);
        let [threads, delay] = [("threads", "16"), ("delay", "1")];
        assert_eq!(answer.winners[0].settings, named(&[threads]), "{goal:?}");
        assert_eq!(answer.winners[1].settings, named(&[delay]), "{goal:?}");
        assert_is(answer.winners[0].on[0].ratio, sign * 0.3);
        assert_is(answer.winners[0].on[1].beside_own, sign * -0.24);
        assert_is(answer.winners[0].mean_ratio, sign * 0.15);
        let for_all = answer.for_all.as_ref().unwrap();
        assert_eq!(for_all.settings, named(&[delay, threads]), "{goal:?}");
        assert_is(for_all.mean_ratio, sign * 0.27);
        assert_ne!(answer.dependence, Dependence::Depends, "{goal:?}");
        // Settings that are better for one and worse for the other are not good for all.
        let answer = searched_for(goal, 5, &[MORE_THREADS, FEWER_THREADS]);
        assert_eq!(answer.winners[1].settings, named(&[("threads", "1")]));
        assert_is(answer.winners[0].on[1].ratio, sign * -0.3);
        assert_is(answer.winners[0].on[1].beside_own, sign * -0.6);
        assert_eq!((answer.for_all, answer.together), (None, None));
        assert_eq!(answer.dependence, Dependence::Depends, "{goal:?}");
    }
}

#[test]
fn disturbed_runs_change_the_answer_for_no_workload() {
    let of_each = [(); 2].map(|()| setting_aside(options(TuneGoal::Cpu)));
    let mut bench = Bench::new(3, &[MORE_THREADS, SHORTER_DELAY]);
    bench.is_disturbed = now_and_then;
    let answer = bench.search(&of_each).answer();
    let [threads, delay] = [("threads", "16"), ("delay", "1")];
    for (search, settings) in answer.searches.iter().zip([[threads], [delay]]) {
        assert_eq!(search.answer.settings, named(&settings));
        let noise = search.answer.noise_ratio;
        assert!((noise - NOISE).abs() < 0.01, "{noise}");
        assert!(search.answer.set_aside().count() > 0);
    }
    let for_all = answer.for_all.unwrap();
    assert_eq!(for_all.settings, named(&[delay, threads]));
    assert_is(for_all.mean_ratio, -0.27);
}

#[test]
fn noise_is_neither_a_gain_for_all_nor_a_workload_difference() {
    let (mut gains, mut differences) = (0, 0);
    for seed in 0..20 {
        let flat = searched(seed, &[NOTHING, NOTHING]);
        gains += usize::from(flat.for_all.is_some());
        // From 8 on more threads have no further effect, so either may be found.
        let plateau: Surface = |threads, _| 0.15 * threads.min(1.0);
        let same = searched(seed, &[plateau, plateau]);
        assert!(same.for_all.is_some(), "{seed}");
        differences += usize::from(same.dependence == Dependence::Depends);
    }
    assert!(gains <= 1 && differences <= 1, "{gains} {differences}");
}

#[test]
fn time_budget_covers_searches_and_their_cross_comparison() {
    assert_eq!(budget_across(3600.0, 10.0, 1), budget(3600.0, 10.0));
    // Two hours for two workloads: 360 runs of each, of which 15 of 17 parts are for its own search.
    assert_eq!(budget_across(7200.0, 20.0, 2), budget(3170.0, 10.0));
    // 24 runs of each, and 16 for the comparisons after them.
    assert_eq!(budget_across(39.9, 1.0, 2), None);
    assert_eq!(budget_across(40.0, 1.0, 2), budget(24.0, 1.0));
    assert!(budget(24.0, 1.0).is_some());
}

#[test]
fn errors_of_independent_comparisons_add_up() {
    let one = |error: f64, degrees_of_freedom: f64| Comparison {
        log_ratio: 0.1,
        error,
        degrees_of_freedom,
    };
    // Two equal variances add up their degrees of freedom; one alone keeps its own.
    let both = weighted(&[(1.0, one(0.03, 5.0)), (-1.0, one(0.03, 5.0))]);
    assert!((both.error - 0.03 * 2.0_f64.sqrt()).abs() < 1e-12);
    assert!((both.degrees_of_freedom - 10.0).abs() < 1e-9 && both.log_ratio == 0.0);
    let alone = weighted(&[(0.5, one(0.03, 5.0)), (0.5, one(0.0, 1.0))]);
    assert!((alone.error - 0.015).abs() < 1e-12);
    assert!((alone.degrees_of_freedom - 5.0).abs() < 1e-9);
    assert_eq!(half(&weighted(&[]), CONFIDENCE_RATIO), 0.0);
}
