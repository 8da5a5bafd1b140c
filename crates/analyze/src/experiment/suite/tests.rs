use super::*;
use crate::experiment::findings::findings;
use crate::values::reported;
use dyno_record::experiment::{
    Answer, Axis, Base, FindingKind, Options, Point, SCHEMA_VERSION, Verb, WORKLOAD,
};
use dyno_record::model::RunStatus;
use serde_json::json;

const MS: u64 = 1_000_000;

/// Windows of one second, each with these times in nanoseconds.
fn windows(count: usize, times: &[(u64, u64)]) -> Vec<IntervalSample> {
    let window = |number: usize| {
        // A constant rate has no proper interval; a few operations more or less give it one.
        let more = [(times[0].0, number as u64 % 3)];
        let times = SparseHistogram::from_counts(times.iter().copied().chain(more));
        IntervalSample { duration_s: 1.0, operations: times.total(), times }
    };
    (0..count).map(window).collect()
}

fn operation(windows: Vec<IntervalSample>, errors: u64, max_us: f64) -> OperationRun {
    OperationRun {
        count: windows.iter().map(|window| window.operations).sum(),
        windows,
        errors,
        max_us,
    }
}

/// A run with only reads.
fn reads(of_windows: Vec<IntervalSample>) -> SuiteRun {
    let all = operation(of_windows.clone(), 0, 1.0);
    SuiteRun {
        windows: of_windows,
        operations: BTreeMap::from([("read".to_owned(), all)]),
        load: None,
    }
}

fn loading(run: SuiteRun, commands_per_window: u64, documents_per_command: u64) -> SuiteRun {
    let commands = operation(windows(4, &[(5 * MS, commands_per_window)]), 0, 9_000.0);
    let load = LoadRun { documents: commands.count * documents_per_command, commands };
    SuiteRun { load: Some(load), ..run }
}

fn point(workload: &str, setting: Option<&str>, repeat: u32) -> Point {
    let figures = json!({
        "clients": 1, "threads": 1, "rate_per_s": {"value": 100.0}, "response_mean_us": {"value": 10.0},
        "response_us": {}, "service_mean_us": 10.0, "mean_in_flight": 1.0, "succeeded": 100,
        "failed_ratio": 0.0, "dropped_ratio": 0.0, "duration_s": 1.0, "resources": [],
        "demands": [], "laws": [], "caveats": [],
    });
    let settings = setting.map(|value| ("server.topology".to_owned(), value.to_owned()));
    Point {
        settings: settings.into_iter().collect(),
        side: None,
        workload: Some(workload.to_owned()),
        block: None,
        repeat,
        directory: format!("runs/{workload}"),
        figures: Some(serde_json::from_value(figures).expect("all fields")),
        problem: None,
        refused: None,
        stolen_ratio: None,
        ended_after_s: None,
        server_ended: false,
        storage: None,
    }
}

fn suite(workloads: &[&str], settings: &[&str], points: Vec<Point>) -> Experiment {
    let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let axis = |key: &str, texts: &[&str]| Axis { key: key.to_owned(), values: values(texts) };
    let mut axes = vec![axis(WORKLOAD, workloads)];
    let mut options = Options { below_us: Some(1_000.0), ..Options::default() };
    if let Some(first) = settings.first() {
        axes.push(axis("server.topology", settings));
        let key = "server.topology".to_owned();
        options.base = Some(Base { key, value: (*first).to_owned() });
    }
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        verb: Verb::Suite,
        question: "how".into(),
        name: "suite".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        plan: serde_json::Value::Null,
        options,
        axes,
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points,
        answer: None,
        limits: Vec::new(),
        findings: Vec::new(),
        caveats: Vec::new(),
    }
}

/// The answer, with the rates of the runs in the points, as in an experiment.
fn found(experiment: &Experiment, runs: Vec<SuiteRun>) -> SuiteAnswer {
    let mut experiment = experiment.clone();
    for (point, run) in experiment.points.iter_mut().zip(&runs) {
        let measured = OperationFigures::of(&run.windows, Resampling::seeded(1));
        let figures = point.figures.as_mut().expect("a run");
        figures.rate_per_s = measured.expect("a rate").rate_per_s;
    }
    let runs = runs.into_iter().enumerate().collect();
    analyze(&experiment, &runs, Resampling::seeded(1)).expect("points")
}

fn texts(experiment: &Experiment) -> Vec<String> {
    let found = findings(experiment);
    found.iter().map(|one| one.statement.to_string()).collect()
}

#[test]
fn shares_are_counted_over_all_runs_and_never_averaged() {
    // 50 of 100 below a millisecond in one run, 300 of 300 in the other: 350 of 400, not three quarters.
    let half = windows(1, &[(MS / 2, 50), (2 * MS, 50)]);
    let all = windows(1, &[(MS / 2, 300)]);
    let experiment = suite(&["c"], &[], vec![point("c", None, 0), point("c", None, 1)]);
    let answer = found(&experiment, vec![reads(half), reads(all)]);
    let share = answer.rows[0].operations["read"].below_ratio.unwrap();
    assert_eq!(share.value, 350.0 / 400.0);
}

#[test]
fn operation_taking_exactly_the_time_is_not_below_it() {
    let experiment = suite(&["c"], &[], vec![point("c", None, 0)]);
    let times = [(MS - 1, 94), (MS, 6)];
    let answer = found(&experiment, vec![reads(windows(1, &times))]);
    let share = answer.rows[0].operations["read"].below_ratio.unwrap();
    assert_eq!((share.value, share.low), (0.94, None));
    let mut without = experiment.clone();
    without.options.below_us = None;
    let answer = found(&without, vec![reads(windows(1, &times))]);
    assert_eq!(answer.rows[0].operations["read"].below_ratio, None);
}

#[test]
fn share_has_an_interval_unless_one_side_has_few_operations() {
    let share = |slow: u64| {
        let window = |number: u64| {
            // The share varies from window to window around its mean.
            let slow = slow + u64::from(slow > 0) * (number * 7 % 5);
            SparseHistogram::from_counts([(MS / 2, 900), (2 * MS, slow)])
        };
        let windows = (0..30).map(window).map(|times| IntervalSample {
            duration_s: 1.0,
            operations: times.total(),
            times,
        });
        let experiment = suite(&["c"], &[], vec![point("c", None, 0)]);
        let answer = found(&experiment, vec![reads(windows.collect())]);
        answer.rows[0].operations["read"].below_ratio.unwrap()
    };
    let some = share(98);
    let (low, high) = some.low.zip(some.high).unwrap();
    assert!(low < 0.9 && 0.9 < high && high - low < 0.01, "{some:?}");
    let all = share(0);
    assert_eq!((all.value, all.low, all.high), (1.0, None, None));
}

#[test]
fn rows_follow_axis_order_with_sums_and_maxima_over_runs() {
    let settings = ["standalone", "replica-set=3"];
    let order = [("c", 0), ("a", 0), ("c", 1), ("a", 1)];
    let points = [0, 1].into_iter().flat_map(|repeat| {
        order.map(|(workload, setting)| point(workload, Some(settings[setting]), repeat))
    });
    let experiment = suite(&["a", "c"], &settings, points.collect());
    let run = |number: u64| {
        let times = [(MS * (number + 1), 100)];
        let mut run = reads(windows(10, &times));
        let one = run.operations.get_mut("read").unwrap();
        (one.errors, one.max_us) = (number, 1_000.0 * number as f64);
        run
    };
    let answer = found(&experiment, (0..8).map(run).collect());
    let rows = answer.rows.iter().map(|row| {
        let level = &row.level;
        let setting = &level.settings["server.topology"];
        (level.workload.as_deref().unwrap(), setting.as_str(), level.runs.clone())
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("a", "standalone", vec![1, 5]),
            ("a", "replica-set=3", vec![3, 7]),
            ("c", "standalone", vec![0, 4]),
            ("c", "replica-set=3", vec![2, 6]),
        ]
    );
    let last = &answer.rows[3].operations["read"];
    assert_eq!((last.errors, last.max_us), (8, 6_000.0));
    // Ten windows of each run, with 0, 1 or 2 operations more than 100.
    assert_eq!(last.count, 2 * (1_000 + 9));
    assert_eq!(last.response_mean_us.value, 5_000.0);
    assert_eq!(last.response_us["p50"].value, 3_000.0);
}

/// The workloads `a` and `c` with two topologies, one run of each, at these rates of `a` and `c` with the first
/// topology, then with the second.
pub(in crate::experiment) fn on_two_topologies(rates: [u64; 4]) -> Experiment {
    let settings = ["standalone", "replica-set=3"];
    let order = [("a", 0), ("c", 0), ("a", 1), ("c", 1)];
    let points = order.map(|(workload, setting)| point(workload, Some(settings[setting]), 0));
    let mut experiment = suite(&["a", "c"], &settings, points.into());
    let runs = rates.map(|rate| reads(windows(30, &[(MS / 2, rate)])));
    let answer = found(&experiment, runs.into());
    experiment.answer = Some(Answer::Suite(Box::new(answer)));
    experiment
}

/// The answer of [`on_two_topologies`].
fn of(experiment: &mut Experiment) -> &mut SuiteAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Suite(answer)) => answer,
        other => panic!("not a suite: {other:?}"),
    }
}

#[test]
fn workload_is_relative_to_its_base_and_largest_change_is_named() {
    // a has half its rate, c nearly the same.
    let mut experiment = on_two_topologies([1_000, 2_000, 500, 1_950]);
    let relative = of(&mut experiment).relative.as_ref().unwrap();
    let pairs: Vec<(u32, u32)> = relative.levels.iter().map(|row| (row.level, row.base)).collect();
    assert_eq!(pairs, [(1, 0), (3, 2)]);
    let ratio = relative.levels[0].comparisons[0].ratio.value;
    assert!((ratio - 0.5).abs() < 0.001, "{ratio}");
    let reported = texts(&experiment);
    assert!(reported[0].starts_with("suite-changed (all: 2"), "{reported:?}");
    let most =
        "most: row-changed-most (ratio: 0.500 in 0.500 to 0.501, row: workload-row (workload: a)";
    assert!(reported[0].contains(most), "{reported:?}");
    assert!(reported[0].contains("slower: 2, than: with-settings"), "{reported:?}");
    assert!(reported[0].contains("is_of_one_run: true"), "{reported:?}");
}

#[test]
fn incomparable_rows_are_named_and_the_others_are_reported() {
    let mut experiment = on_two_topologies([1_000, 2_000, 500, 1_950]);
    let relative = of(&mut experiment).relative.as_mut().unwrap();
    relative.levels[1].comparisons.clear();
    let reported = texts(&experiment);
    assert!(reported[0].starts_with("suite-changed (all: 1"), "{reported:?}");
    assert!(
        reported[1].starts_with(
            "level-not-compared (at: for-rows (rows: [workload-row (settings: \
             [`server.topology=replica-set=3`], workload: c)])"
        ),
        "{reported:?}"
    );
}

#[test]
fn indistinguishable_workloads_are_not_ordered() {
    let points = vec![point("a", None, 0), point("c", None, 0)];
    let mut experiment = suite(&["a", "c"], &[], points);
    let noisy = |seed: u64| {
        let window = |number: u64| {
            let count = 1_000 + (number * 37 + seed * 11) % 200;
            IntervalSample {
                duration_s: 1.0,
                operations: count,
                times: SparseHistogram::from_counts([(MS / 2, count)]),
            }
        };
        reads((0..30).map(window).collect())
    };
    let answer = found(&experiment, vec![noisy(1), noisy(2)]);
    experiment.answer = Some(Answer::Suite(Box::new(answer)));
    let reported = texts(&experiment);
    assert!(reported.iter().all(|one| !one.starts_with("fastest")), "{reported:?}");
}

#[test]
fn settings_without_a_certain_effect_are_a_warning() {
    let settings = ["standalone", "replica-set=3"];
    let points = settings.map(|setting| point("a", Some(setting), 0));
    let mut experiment = suite(&["a"], &settings, points.into());
    let run = || reads(windows(30, &[(MS / 2, 1_000)]));
    let answer = found(&experiment, vec![run(), run()]);
    experiment.answer = Some(Answer::Suite(Box::new(answer)));
    let first = findings(&experiment).remove(0);
    assert_eq!(
        (first.statement.code.as_str(), first.kind),
        ("suite-changed", FindingKind::Warning)
    );
    assert!(!first.statement.values.contains_key("most"));
    assert!(reported(&first.evidence)[0].starts_with("row-times-that-of-base"));
}

#[test]
fn first_load_of_each_round_counts_with_a_document_rate() {
    let points =
        vec![point("a", None, 0), point("e", None, 0), point("a", None, 1), point("e", None, 1)];
    let experiment = suite(&["a", "e"], &[], points);
    let run = || reads(windows(4, &[(MS / 2, 100)]));
    // The loads of e would make it slower.
    let runs =
        vec![loading(run(), 600, 100), loading(run(), 10, 100), run(), loading(run(), 400, 50)];
    let answer = found(&experiment, runs);
    assert_eq!(answer.loads.len(), 1);
    let load = &answer.loads[0];
    assert_eq!(load.runs, [0, 3]);
    let commands = [4 * 600 + 3, 4 * 400 + 3];
    assert_eq!(load.commands.count, commands[0] + commands[1]);
    // All documents in the time of both loads: the longer one has more of them.
    let documents = (commands[0] * 100 + commands[1] * 50) as f64;
    assert!((load.documents_per_s.value - documents / 8.0).abs() < 1e-6);
    let per_command = documents / load.commands.count as f64;
    assert!((load.documents_per_command - per_command).abs() < 1e-9);
    assert_eq!((load.commands.response_mean_us.value, load.commands.max_us), (5_000.0, 9_000.0));
}
