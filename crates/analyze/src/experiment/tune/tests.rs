//! Searches on simulated benches with artificial run figures.

use super::*;
use dyno_record::experiment::{Cost, CostBasis, Costs, Objective, Reach};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

mod agreement;
mod claims;
mod known;

/// Standard deviation of a run's logarithm.
pub(super) const NOISE: f64 = 0.02;

fn knob(name: &str, key: &str, text: Option<&str>) -> Knob {
    Knob {
        text: text.map(Into::into),
        default: Some(2),
        reach: Reach::RunTime,
        ..Knob::new(name, key.into(), ["1", "2", "4", "8", "16"].map(Into::into).into())
    }
}

pub(super) fn options(goal: TuneGoal) -> TuneOptions {
    const ENGINE: &str = "server.runtime_parameters.engine";
    TuneOptions {
        goal,
        responses: Vec::new(),
        failed_ratio: 0.001,
        seed: 1,
        margin_ratio: 0.04,
        max_steal_ratio: None,
        budget_s: 3600.0,
        allows_less_durable: false,
        knobs: vec![
            knob("threads", ENGINE, Some("eviction=(threads_max={})")),
            knob("target", ENGINE, Some("eviction_target={}")),
            knob("delay", "server.runtime_parameters.delay", None),
        ],
        left_out: Vec::new(),
        run_s: Some(10.0),
        start_s: None,
        may_stall: None,
        ended_after: None,
        trials: Some(30),
        max_pairs: Some(12),
        confirmation_pairs: Vec::new(),
    }
}

pub(super) fn figures(rate_per_s: f64) -> Figures {
    let text = serde_json::json!({
        "clients": 1, "threads": 1, "rate_per_s": {"value": rate_per_s},
        "response_mean_us": {"value": 10.0}, "response_us": {"p99": {"value": 1e8 / rate_per_s}},
        "service_mean_us": 10.0, "mean_in_flight": 1.0, "succeeded": 100_000, "failed_ratio": 0.0,
        "dropped_ratio": 0.0, "duration_s": 10.0, "resources": [], "demands": [], "laws": [], "caveats": [],
    });
    serde_json::from_value(text).expect("all fields")
}

/// Figures of a run whose goal is better by this logarithm, with usual values otherwise.
pub(super) fn figures_of(goal: TuneGoal, better: f64) -> Figures {
    let at_a_rate = Figures { offered_rate_per_s: Some(10_000.0), ..figures(10_000.0) };
    match goal {
        TuneGoal::Rate => figures(10_000.0 * better.exp()),
        TuneGoal::P99 => Figures {
            response_us: [("p99".to_owned(), Figure::bare(10_000.0 * (-better).exp()))].into(),
            ..at_a_rate
        },
        TuneGoal::Cpu => {
            let kind = CostKind::ServerCpu;
            let value = Figure::bare(200.0 * (-better).exp());
            Figures {
                costs: Some(Costs {
                    basis: CostBasis::Operation,
                    basis_count: 100_000,
                    values: vec![Cost { kind, value }],
                    currency: None,
                    changed: None,
                    unknown: Vec::new(),
                }),
                ..at_a_rate
            }
        }
    }
}

/// Figures of a run that lost much CPU time to the hypervisor.
pub(super) fn disturbed(goal: TuneGoal, better: f64) -> Figures {
    Figures { stolen_ratio: Some(0.3), ..figures_of(goal, better - 1.0) }
}

/// Numbers of the occasionally affected runs.
pub(super) fn now_and_then(run: usize) -> bool {
    run % 7 == 1
}

/// A run that did harm on a quiet machine.
pub(super) fn harmful(reason: &str) -> Failure {
    Failure { reason: reason.into(), ..Failure::default() }
}

/// Sets runs aside by the rule of `dyno ab`.
pub(super) fn setting_aside(options: TuneOptions) -> TuneOptions {
    TuneOptions { max_steal_ratio: Some(0.01), ..options }
}

/// The value of a knob in the keys, by default 4.
pub(super) fn value(keys: &Keys, key: &str, option: &str) -> f64 {
    let text = keys.get(key).map_or("4", String::as_str);
    let rest = text.split_once(option).map_or("4", |(_, rest)| rest);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// A bench on which more threads and a shorter delay help, with its requests.
struct Bench {
    random: Xoshiro256PlusPlus,
    goal: TuneGoal,
    noise: f64,
    fails_from_threads: f64,
    is_flat: bool,
    /// Whether the run with this number is disturbed.
    is_disturbed: fn(usize) -> bool,
    runs: Vec<Keys>,
    done: Vec<Figures>,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        Bench {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            goal: TuneGoal::Rate,
            noise: NOISE,
            fails_from_threads: f64::INFINITY,
            is_flat: false,
            is_disturbed: |_| false,
            runs: Vec::new(),
            done: Vec::new(),
        }
    }

    fn of(goal: TuneGoal, seed: u64) -> Bench {
        Bench { goal, ..Bench::new(seed) }
    }

    fn run(&mut self, keys: &Keys) -> Result<Figures, String> {
        let is_disturbed = (self.is_disturbed)(self.runs.len());
        self.runs.push(keys.clone());
        let threads = value(keys, "server.runtime_parameters.engine", "threads_max=");
        if threads >= self.fails_from_threads {
            return Err("the server is busy with itself".into());
        }
        let delay = value(keys, "server.runtime_parameters.delay", "");
        let slope = if self.is_flat { 0.0 } else { 1.0 };
        let log = slope * 0.15 * (threads / 4.0).log2()
            - slope * 0.1 * (delay / 4.0).log2().abs().min(1.0);
        let figures = if is_disturbed {
            disturbed(self.goal, log)
        } else {
            let noise: f64 = StandardNormal.sample(&mut self.random);
            figures_of(self.goal, log + self.noise * noise)
        };
        self.done.push(figures.clone());
        Ok(figures)
    }

    /// Runs the baseline.
    fn baseline(&mut self, options: &TuneOptions) -> Baseline {
        let mut baseline = Baseline::new(options, 0);
        while !baseline.is_complete() {
            baseline.take(self.run(&Keys::new()).unwrap());
        }
        baseline
    }

    /// A search after the baseline.
    fn begin(&mut self, options: &TuneOptions) -> TuneProgress {
        let baseline = self.baseline(options);
        TuneProgress::new(options, &baseline).unwrap()
    }

    fn search(&mut self, options: &TuneOptions) -> TuneProgress {
        self.search_until(options, u32::MAX)
    }

    /// A search that ends after this number of comparisons.
    fn search_until(&mut self, options: &TuneOptions, comparisons: u32) -> TuneProgress {
        let mut progress = self.begin(options);
        loop {
            if progress.searched() == Some(comparisons) {
                progress.end_search();
            }
            if progress.to_confirm().is_some() && comparisons < u32::MAX {
                progress.set_confirmation_pairs(6);
            }
            let Some(TuneRun { keys, .. }) = progress.next_run() else {
                break;
            };
            match self.run(&keys) {
                Ok(figures) => progress.take(Ok(&figures)).unwrap(),
                Err(reason) => progress.take(Err(&harmful(&reason))).unwrap(),
            };
        }
        progress
    }
}

fn expected() -> BTreeMap<String, String> {
    [("threads".to_owned(), "16".to_owned())].into()
}

/// Factor of the best settings on the goal.
fn truth(goal: TuneGoal) -> f64 {
    let log: f64 = if goal.larger_is_better() { 0.3 } else { -0.3 };
    log.exp()
}

fn holds(ratio: Option<Figure>, truth: f64) -> bool {
    let ends = ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    ends.is_some_and(|(low, high)| low < truth && truth < high)
}

#[test]
fn answer_is_the_smallest_change_with_its_true_gain() {
    for goal in TuneGoal::ALL {
        let answer = Bench::of(goal, 7).search(&options(goal)).answer();
        assert_eq!(answer.settings, expected(), "{goal:?}");
        assert_eq!(answer.keys["server.runtime_parameters.engine"], "eviction=(threads_max=16)");
        let truth = truth(goal);
        assert!(holds(answer.ratio, truth), "{:?}", answer.ratio);
        assert!((answer.noise_ratio - NOISE).abs() < 0.01, "{}", answer.noise_ratio);
        // The model's values for a relevant and an irrelevant knob.
        let at = |knob: &str, value: usize| {
            answer.effects.iter().find(|effect| effect.knob == knob).unwrap().ratios[value].value
        };
        assert!((at("threads", 4) / truth).ln().abs() < 0.1);
        assert!((at("target", 0) / at("target", 4)).ln().abs() < 0.1);
    }
}

#[test]
fn every_run_is_named_once_and_pairs_alternate() {
    for is_disturbed in [(|_| false) as fn(usize) -> bool, now_and_then] {
        let mut bench = Bench::new(3);
        bench.is_disturbed = is_disturbed;
        let progress = bench.search(&setting_aside(options(TuneGoal::Rate)));
        every_run_is_named_once(&bench, &progress.answer());
    }
}

fn every_run_is_named_once(bench: &Bench, answer: &TuneAnswer) {
    let begin = BASELINE_RUNS + answer.first_set_aside.len();
    let named = answer.trials.iter().flat_map(|trial| &trial.runs);
    let set_aside = answer.set_aside().map(|one| &one.runs);
    let mut runs: Vec<usize> = named.chain(set_aside).flatten().copied().collect();
    runs.retain(|run| *run >= begin);
    runs.sort_unstable();
    let all: Vec<usize> = (begin..bench.runs.len()).collect();
    assert_eq!(runs, all);
    for trial in &answer.trials {
        for (number, pair) in trial.runs.iter().enumerate() {
            let [tried, beside] = pair[..] else { panic!("{trial:?}") };
            assert_eq!(tried < beside, number % 2 == 1, "{trial:?}");
        }
    }
    // Both sides of the confirmation used the right settings.
    for [tried, beside] in answer.confirmations().next().unwrap().pairs() {
        assert!(bench.runs[beside].is_empty());
        assert_eq!(bench.runs[tried], answer.keys);
    }
}

#[test]
fn identical_runs_also_prove_a_gain() {
    let mut bench = Bench::new(7);
    bench.noise = 0.0;
    let answer = bench.search(&options(TuneGoal::Rate)).answer();
    assert_eq!(answer.settings, expected());
    assert!(answer.noise_ratio > 0.0 && answer.noise_ratio < 1e-4);
}

#[test]
fn failing_region_is_left_and_reported() {
    let mut bench = Bench::new(5);
    bench.fails_from_threads = 16.0;
    let answer = bench.search(&options(TuneGoal::Rate)).answer();
    assert_eq!(answer.settings["threads"], "8");
    let failed = answer.trials.iter().filter(|trial| trial.problem.is_some());
    assert!((1..=3).contains(&failed.clone().count()), "{}", failed.count());
}

#[test]
fn certainly_worse_setting_is_given_up_after_a_pair() {
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
    // A comparison of fresh with warm servers uses both orders.
    options.trials = Some(30);
    for knob in options.knobs.iter_mut() {
        knob.reach = Reach::Restart;
    }
    let answer = Bench::new(9).search(&options).answer();
    assert!(answer.trials.iter().all(|trial| !trial.is_dropped));
    let searched = answer.trials.iter();
    let mut searched = searched.filter(|trial| trial.purpose == TunePurpose::Search);
    assert!(searched.all(|trial| trial.runs.len() == SEARCH_PAIRS));
}

#[test]
fn flat_surface_yields_no_gain_in_19_of_20_searches() {
    let says_so = |seed: &u64| {
        let mut bench = Bench::new(*seed);
        bench.is_flat = true;
        bench.noise = 0.05;
        let options = TuneOptions {
            seed: *seed,
            margin_ratio: 0.05,
            trials: Some(40),
            max_pairs: Some(24),
            ..options(TuneGoal::Rate)
        };
        let progress = bench.search(&options);
        let answer = progress.answer();
        // The reported limit holds for all compared settings, not only for the confirmed one.
        let possible = progress.search.possible_gain().unwrap().exp_m1();
        assert!(!answer.settings.is_empty() || answer.visible_ratio >= possible);
        // It also covers the last confirmation, whose interval the page shows.
        let high = answer.ratio.and_then(|ratio| ratio.high).unwrap() - 1.0;
        assert!(!answer.settings.is_empty() || answer.visible_ratio >= high - 1e-9);
        answer.settings.is_empty() && answer.visible_ratio <= options.margin_ratio
    };
    let said = (0..20).filter(says_so).count();
    assert!(said >= 19, "{said}");
}

#[test]
fn confirmation_forgives_one_bad_run_but_not_a_crash() {
    for server_ended in [false, true] {
        let mut bench = Bench::new(7);
        let mut progress = bench.begin(&options(TuneGoal::Rate));
        let mut harmed = Vec::new();
        while let Some(TuneRun { keys, is_tried, .. }) = progress.next_run() {
            let now = progress.under_way.as_ref().unwrap();
            let is_first = is_tried && !harmed.contains(&progress.trials.len());
            let outcome = match is_first && now.purpose != TunePurpose::Search {
                true => {
                    harmed.push(progress.trials.len());
                    progress.take(Err(&Failure {
                        reason: "the rate fell".into(),
                        server_ended,
                        ..Failure::default()
                    }))
                }
                false => progress.take(Ok(&bench.run(&keys).unwrap())),
            };
            outcome.unwrap();
        }
        let answer = progress.answer();
        let given_up = answer.trials.iter().filter(|trial| trial.problem.is_some());
        assert_eq!(
            (given_up.count() > 0, answer.settings.is_empty()),
            (server_ended, server_ended)
        );
        for place in harmed {
            assert_eq!(answer.trials[place].set_aside.len(), usize::from(!server_ended));
        }
    }
}

#[test]
fn harmful_candidate_does_not_prove_the_absence_of_a_gain() {
    // All candidates, and one, after which no time is left.
    for most in [usize::MAX, 1] {
        let mut bench = Bench::new(7);
        let options = options(TuneGoal::Rate);
        let mut progress = bench.begin(&options);
        let mut begun = Vec::new();
        loop {
            if let Some(next) = progress.to_confirm() {
                begun.push(next.before);
                progress.set_confirmation_pairs(if begun.len() > most { 0 } else { 6 });
            }
            let Some(TuneRun { keys, is_tried, .. }) = progress.next_run() else {
                break;
            };
            let now = progress.under_way.as_ref().unwrap();
            let outcome = match is_tried && now.purpose == TunePurpose::Confirm {
                true => progress.take(Err(&harmful("the server ended"))),
                false => progress.take(Ok(&bench.run(&keys).unwrap())),
            };
            outcome.unwrap();
        }
        let answer = progress.answer();
        assert!(answer.settings.is_empty() && answer.candidate.is_some());
        assert!(!answer.shows(1.0), "{answer:?}");
        // Each one is announced before it begins, and none without time begins.
        assert_eq!(begun, (0..begun.len()).collect::<Vec<_>>());
        assert!(begun.len() > 1, "another candidate may gain as well");
        let confirmed = answer.trials.iter().filter(|trial| trial.purpose == TunePurpose::Confirm);
        assert_eq!(confirmed.count(), begun.len().min(most));
    }
}

#[test]
fn unconfirmed_search_does_not_rule_out_a_gain() {
    let delay = Knob {
        values: ["4", "8"].map(Into::into).into(),
        default: Some(0),
        ..knob("delay", "server.runtime_parameters.delay", None)
    };
    let options = TuneOptions { knobs: vec![delay], trials: Some(15), ..options(TuneGoal::Rate) };
    let mut bench = Bench::new(7);
    let mut progress = bench.begin(&options);
    while let Some(TuneRun { keys, .. }) = progress.next_run() {
        // The only other setting is compared once, and breaks a limit when it is compared again.
        let is_harmful = !keys.is_empty() && !progress.trials.is_empty();
        let outcome = match is_harmful {
            true => progress.take(Err(&harmful("p99 was 6.000 ms"))),
            false => progress.take(Ok(&bench.run(&keys).unwrap())),
        };
        outcome.unwrap();
    }
    let answer = progress.answer();
    assert!(answer.trials.iter().all(|trial| trial.purpose == TunePurpose::Search));
    assert!(answer.trials[0].ratio.is_some() && answer.trials[1].problem.is_some());
    assert!(answer.was_compared() && answer.candidate.is_none(), "{answer:?}");
    assert!(!answer.shows(1.0), "{answer:?}");
    // The visible gain follows from the pairs of the search; no confirmation was run.
    let confirmed = visible_ratio(answer.noise_ratio, options.max_pairs.unwrap());
    assert!(answer.visible_ratio > confirmed, "{}", answer.visible_ratio);
}

#[test]
fn best_settings_stop_being_the_best_once_they_fail() {
    let mut bench = Bench::new(5);
    let options = options(TuneGoal::Rate);
    let mut progress = bench.begin(&options);
    let (mut best, mut failures) = (None, 0);
    while let Some(TuneRun { keys, is_tried, .. }) = progress.next_run() {
        // The first reference settings, from some time on.
        let is_late = bench.runs.len() > 30;
        if is_late && !is_tried && !keys.is_empty() && best.is_none() {
            best = Some(keys.clone());
        }
        let outcome = if best.as_ref() == Some(&keys) {
            failures += 1;
            progress.take(Err(&harmful("p99 was 25.000 ms")))
        } else {
            progress.take(Ok(&bench.run(&keys).unwrap()))
        };
        outcome.unwrap();
    }
    let best = best.expect("something better was found");
    let answer = progress.answer();
    assert_eq!(failures, 2, "once may be chance");
    assert_ne!(answer.keys, best);
    assert!(!answer.settings.is_empty());
    let failed = answer.trials.iter().position(|trial| trial.is_beside);
    let (before, after) = answer.trials.split_at(failed.expect("reported"));
    assert_eq!(after[0].problem.as_deref(), Some("p99 was 25.000 ms"));
    assert!(before.iter().all(|trial| trial.problem.is_none()));
    // The search continues.
    assert_eq!(after[1].purpose, TunePurpose::Search);
}

#[test]
fn candidates_are_confirmed_in_the_time_left_after_search() {
    let options = options(TuneGoal::Rate);
    let mut bench = Bench::new(7);
    let progress = bench.search_until(&options, 6);
    let answer = progress.answer();
    let count = |purpose| answer.trials.iter().filter(|trial| trial.purpose == purpose).count();
    assert_eq!(count(TunePurpose::Search), 6);
    assert!(count(TunePurpose::Confirm) >= 1);
    let rests = answer.trials.iter().filter(|trial| trial.purpose != TunePurpose::Search);
    for trial in rests {
        assert!(trial.runs.len() <= 6, "{trial:?}");
    }
    // The same figures and the same end give the same sequence.
    let again = Bench::new(7).search_until(&options, 6).answer();
    assert_eq!(again, answer);
}

#[test]
fn limits_hold_for_every_run() {
    let mut limited = options(TuneGoal::Rate);
    let mean = Objective { statistic: "mean".into(), limit_us: 12.0 };
    limited.responses = vec![mean, Objective::of_percentile(99.0, 20_000.0)];
    let slow = figures(4_000.0);
    let has = |reason: &str, parts: [&str; 2]| {
        let has_all = parts.iter().all(|part| reason.contains(part));
        assert!(has_all, "{reason}");
    };
    let too_slow = harm(&limited, &slow).unwrap();
    has(&too_slow, ["p99", "25.000 ms"]);
    let slow_on_average = Figures { response_mean_us: Figure::bare(13.0), ..figures(10_000.0) };
    let reason = harm(&limited, &slow_on_average);
    has(&reason.unwrap(), ["mean", "0.013 ms"]);
    let unreported = Figures { response_us: BTreeMap::new(), ..figures(10_000.0) };
    let reason = harm(&limited, &unreported).unwrap();
    assert!(reason.contains("p99") && !reason.contains(" ms"), "{reason}");
    let begin = |options: &TuneOptions| {
        let mut baseline = Baseline::new(options, 0);
        while !baseline.is_complete() {
            baseline.take(slow.clone());
        }
        TuneProgress::new(options, &baseline).unwrap_err()
    };
    let error = begin(&limited);
    assert!(error.contains(&too_slow), "{error}");
    let failing = Figures { failed_ratio: 0.01, ..figures(10_000.0) };
    has(&harm(&limited, &failing).unwrap(), ["1.000 %", "failed"]);
    let behind = Figures { offered_rate_per_s: Some(12_000.0), ..figures(10_000.0) };
    has(&harm(&limited, &behind).unwrap(), ["10000", "12000"]);
    assert_eq!(harm(&limited, &figures(10_000.0)), None);
    // Without the server's CPU time there is no goal to search for.
    assert_eq!(begin(&options(TuneGoal::Cpu)), NOT_TOLD);
}

#[test]
fn time_budget_covers_search_and_confirmation() {
    assert_eq!(budget(3600.0, 10.0), Some((53, 10)));
    assert_eq!(budget(3600.0, 300.0), None);
    let (trials, pairs) = budget(600.0, 10.0).unwrap();
    assert_eq!((trials, pairs), (8, 4));
    assert_eq!(pairs_in(300.0, 20.0, 3), 4);
    assert_eq!(pairs_in(1300.0, 20.0, 3), 20);
    assert_eq!((pairs_in(-5.0, 20.0, 3), pairs_in(1e6, 20.0, 1)), (4, 24));
    // The remaining time after the first candidate goes to the next one, if it is enough.
    let next = |before, comparisons| ToConfirm { before, comparisons };
    assert_eq!(next(0, 8).pairs_in(10.0, 20.0), 4);
    assert_eq!(next(1, 8).pairs_in(1300.0, 20.0), 8);
    assert_eq!(next(1, 8).pairs_in(80.0, 20.0), 4);
    assert_eq!(next(1, 2).pairs_in(79.0, 20.0), 0);
    // With 2 % of noise in a run, 12 pairs show about 2.5 %.
    let visible = visible_ratio(0.02, 12);
    assert!((0.02..0.03).contains(&visible), "{visible}");
}

#[test]
fn refused_value_is_not_harm_and_is_known_by_its_key() {
    let mut bench = Bench::new(11);
    let options = options(TuneGoal::Rate);
    let mut progress = bench.begin(&options);
    let key = "server.runtime_parameters.delay";
    let mut refused = Vec::new();
    while let Some(TuneRun { keys, .. }) = progress.next_run() {
        let taken = match keys.get(key) {
            Some(delay) => {
                refused.push(delay.clone());
                let refused = Some(key.to_owned());
                progress.take(Err(&Failure { refused, ..harmful("too slow") }))
            }
            None => progress.take(Ok(&bench.run(&keys).unwrap())),
        };
        taken.unwrap();
    }
    let answer = progress.answer();
    // Each of its four other values once.
    refused.sort();
    let count = refused.len();
    refused.dedup();
    assert!((1..=4).contains(&count) && refused.len() == count, "{refused:?}");
    let trials = answer.trials.iter().filter(|trial| trial.problem.is_some());
    assert!(trials.clone().count() == count && trials.clone().all(|trial| trial.is_refused));
    assert_eq!(answer.settings["threads"], "16");
}

#[test]
fn disturbed_runs_change_neither_the_noise_nor_the_answer() {
    for goal in TuneGoal::ALL {
        let search = |options: &TuneOptions| {
            let mut bench = Bench::of(goal, 7);
            bench.is_disturbed = now_and_then;
            let answer = bench.search(options).answer();
            (bench, answer)
        };
        let (bench, answer) = search(&setting_aside(options(goal)));
        assert_eq!(answer.settings, expected(), "{goal:?}");
        assert!(holds(answer.ratio, truth(goal)), "{:?}", answer.ratio);
        let noise = answer.noise_ratio;
        assert!((noise - NOISE).abs() < 0.01, "{noise}");
        let baseline = answer.baseline.value;
        let usual = goal_of(goal, &figures_of(goal, 0.0)).unwrap();
        assert!((baseline / usual).ln().abs() < 2.0 * NOISE, "{baseline}");
        // Disturbed runs are set aside, and every run set aside has one.
        assert_eq!(answer.first_set_aside.len(), 1);
        let mut last: Vec<usize> = Vec::new();
        for one in answer.set_aside() {
            assert_eq!(one.stolen_ratio, Some(0.3));
            last.extend(one.runs.iter().max());
        }
        last.sort_unstable();
        let disturbed = (0..bench.runs.len()).filter(|run| now_and_then(*run));
        assert_eq!(last, disturbed.collect::<Vec<_>>());
        // Without a limit all runs count, and one of four makes the bench permanently noisy.
        let (_, answer) = search(&options(goal));
        assert_eq!(answer.set_aside().count(), 0);
        assert!(answer.noise_ratio > 5.0 * NOISE, "{}", answer.noise_ratio);
    }
}

#[test]
fn constant_disturbance_sets_aside_half_as_many_runs_as_count() {
    let mut bench = Bench::new(7);
    bench.is_disturbed = |_| true;
    let options = setting_aside(options(TuneGoal::Rate));
    let answer = bench.search(&options).answer();
    assert_eq!(answer.first_set_aside.len(), BASELINE_RUNS / 2);
    for trial in &answer.trials {
        let most = match trial.purpose {
            TunePurpose::Search => SEARCH_PAIRS,
            _ => options.max_pairs.unwrap() as usize,
        };
        assert_eq!(trial.set_aside.len(), most / 2, "{trial:?}");
    }
    assert_eq!(answer.settings, expected());
}

#[test]
fn limit_broken_by_a_disturbed_run_does_not_blame_settings() {
    let limited = TuneOptions {
        responses: vec![Objective::of_percentile(99.0, 18_000.0)],
        ..options(TuneGoal::Rate)
    };
    let bench = || {
        let mut bench = Bench::new(7);
        bench.is_disturbed = now_and_then;
        bench
    };
    let baseline = bench().baseline(&limited);
    let error = TuneProgress::new(&limited, &baseline).unwrap_err();
    assert!(error.contains("p99") && error.contains(" ms"), "{error}");
    let answer = bench().search(&setting_aside(limited)).answer();
    assert!(answer.trials.iter().all(|trial| trial.problem.is_none()));
    assert!(answer.set_aside().count() > 1);
    assert_eq!(answer.settings, expected());
}

#[test]
fn run_ended_during_a_disturbance_is_tried_once_more() {
    let options = setting_aside(options(TuneGoal::Rate));
    for most in [1, 2] {
        let mut bench = Bench::new(7);
        let mut progress = bench.begin(&options);
        let mut ended = 0;
        while progress.trials.is_empty() {
            let Some(TuneRun { keys, is_tried, .. }) = progress.next_run() else {
                break;
            };
            let figures = bench.run(&keys).unwrap();
            let outcome = if is_tried && ended < most {
                ended += 1;
                Err(&Failure {
                    reason: "it stands still".into(),
                    stolen_ratio: Some(0.3),
                    ..Failure::default()
                })
            } else {
                Ok(&figures)
            };
            progress.take(outcome).unwrap();
        }
        let trial = &progress.trials[0];
        let problem = (most == 2).then_some("it stands still");
        assert_eq!(trial.problem.as_deref(), problem);
        assert_eq!(trial.set_aside.len(), 1, "{trial:?}");
    }
}

#[test]
fn resumed_search_takes_the_same_course() {
    let options = setting_aside(options(TuneGoal::P99));
    let mut bench = Bench::of(TuneGoal::P99, 5);
    bench.is_disturbed = now_and_then;
    let answer = bench.search(&options).answer();
    let mut records = bench.done.iter();
    let mut baseline = Baseline::new(&options, 0);
    while !baseline.is_complete() {
        baseline.take(records.next().unwrap().clone());
    }
    let mut progress = TuneProgress::new(&options, &baseline).unwrap();
    let mut runs = bench.runs[baseline.end()..].iter();
    while let Some(TuneRun { keys, .. }) = progress.next_run() {
        assert_eq!(Some(&keys), runs.next());
        let figures = records.next().unwrap();
        progress.take(Ok(figures)).unwrap();
    }
    assert_eq!((runs.next(), records.next()), (None, None));
    assert_eq!(progress.answer(), answer);
}

/// A search with a limit that all settings keep, except some runs of the first candidate, by run number in its
/// confirmations and ablations.
fn with_late_runs(is_late: fn(usize) -> bool) -> (Keys, TuneAnswer) {
    let limited = TuneOptions {
        responses: vec![Objective::of_percentile(99.0, 18_000.0)],
        ..options(TuneGoal::Rate)
    };
    let mut bench = Bench::new(7);
    let mut progress = bench.begin(&limited);
    let (mut candidate, mut runs) = (None, 0);
    while let Some(TuneRun { keys, is_tried, .. }) = progress.next_run() {
        let mut figures = bench.run(&keys).unwrap();
        let now = progress.under_way.as_ref().unwrap();
        if is_tried && now.purpose != TunePurpose::Search {
            let first = candidate.get_or_insert_with(|| keys.clone());
            if *first == keys {
                if is_late(runs) {
                    let p99 = Figure::bare(25_000.0);
                    figures.response_us.insert("p99".to_owned(), p99);
                }
                runs += 1;
            }
        }
        progress.take(Ok(&figures)).unwrap();
    }
    (candidate.unwrap(), progress.answer())
}

#[test]
fn confirmation_fails_a_limit_only_when_most_runs_break_it() {
    let first = |answer: &TuneAnswer| {
        let confirmed = answer.trials.iter().find(|trial| trial.purpose == TunePurpose::Confirm);
        confirmed.unwrap().clone()
    };
    let (_, answer) = with_late_runs(|run| run % 3 == 0);
    assert_eq!(answer.settings, expected());
    // More than one run did, and all belong to its pairs.
    let confirmed = first(&answer);
    assert!(confirmed.runs.len() >= 6 && confirmed.set_aside.is_empty());
    assert_eq!(confirmed.problem, None);
    // A candidate that breaks the limit in most runs is dropped, and the next one is confirmed.
    let (given_up, answer) = with_late_runs(|run| run % 3 != 0);
    let confirmed = first(&answer);
    let all = confirmed.runs.len();
    let broken = (0..all).filter(|run| run % 3 != 0).count();
    let problem = confirmed.problem.unwrap();
    let votes = format!("{broken} of {all}");
    for part in ["p99", "25.000 ms", votes.as_str()] {
        assert!(problem.contains(part), "{problem}");
    }
    assert!(!answer.settings.is_empty() && answer.keys != given_up, "{answer:?}");
}

#[test]
fn run_that_does_not_report_the_goal_is_repeated_once() {
    let options = options(TuneGoal::Cpu);
    let unreported = || Figures { costs: None, ..figures_of(TuneGoal::Cpu, 0.0) };
    let mut bench = Bench::of(TuneGoal::Cpu, 7);
    let mut progress = bench.begin(&options);
    for number in 0.. {
        let Some(TuneRun { keys, .. }) = progress.next_run() else {
            break;
        };
        let figures = match number {
            1 => unreported(),
            _ => bench.run(&keys).unwrap(),
        };
        progress.take(Ok(&figures)).unwrap();
    }
    let answer = progress.answer();
    assert_eq!((answer.set_aside().count(), answer.settings), (1, expected()));
    let mut progress = bench.begin(&options);
    let mut take = || {
        progress.next_run();
        progress.take(Ok(&unreported()))
    };
    assert_eq!(take(), Ok(None));
    assert_eq!(take().unwrap_err(), NOT_TOLD);
}
