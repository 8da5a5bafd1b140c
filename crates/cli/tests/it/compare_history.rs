//! `dyno compare` and `dyno history` over run directories whose figures are known.

use crate::common::runs::MadeUp;
use crate::common::{Bench, names};
use dyno_analyze::experiment::ab::undecided;
use dyno_record::experiment::AbAnswer;
use dyno_record::model::{CpuSettings, IdleState, RunStatus};
use dyno_report::texts;
use dyno_testkit::without_term_links;
use serde_json::Value;
use std::path::Path;

/// A series of runs with these rates, one run a day.
fn series(folder: &Path, rates: &[(u64, u64)]) {
    let rates = rates.iter().flat_map(|(rate, count)| vec![*rate; *count as usize]);
    for (day, rate) in rates.enumerate() {
        let name = folder.join(format!("{day:03}"));
        MadeUp::new(rate).of_day(day as u64).write(&name);
    }
}

/// Five repetitions of a run, which vary by half a percent.
fn repetitions(folder: &Path, run: &MadeUp) {
    for (number, per_mille) in [1000, 990, 1010, 1005, 995].into_iter().enumerate() {
        let repetition = MadeUp {
            rate_per_s: run.rate_per_s * per_mille / 1000,
            seed: number as u64 + 1,
            ..run.clone()
        };
        repetition.write(&folder.join(format!("runs/{number:03}")));
    }
}

#[test]
fn limits_decide_by_certain_losses_of_repeated_runs() {
    let bench = Bench::new();
    repetitions(&bench.path("a"), &MadeUp::new(1000));
    repetitions(&bench.path("b"), &MadeUp::new(880));
    let compare =
        |a: &str, b: &str, more: &[&str]| bench.dyno(&[&["compare", a, b][..], more].concat());
    let reported = compare("a", "b", &[]).expect(0).stdout;
    assert!(reported.starts_with("B is 12 % slower ("), "{reported}");
    // The values of both sides are shown, each figure once.
    let rate = reported.lines().find(|line| line.starts_with("  rate ")).unwrap();
    assert_eq!(rate.matches("/s").count(), 2, "{reported}");
    assert_eq!(reported.matches("mean response  ").count(), 1, "{reported}");
    compare("a", "b", &["--fail-if-worse", "rate=5%"]).expect(1).says("`--fail-if-worse rate=5%`");
    compare("a", "b", &["--fail-if-worse", "rate=0.05"]).expect(1);
    compare("a", "b", &["--fail-if-worse", "rate=20%"]).expect(0);
    // The interval of the loss reaches across the margin.
    compare("a", "b", &["--fail-if-worse", "rate=12%"]).expect(5).says("cannot tell");
    compare("b", "a", &["--fail-if-worse", "rate=5%"]).expect(0);
    compare("a", "b", &["--fail-if-worse", "rate=20%", "--fail-if-worse", "p99=5%"]).expect(1);
    // A single run is assumed to vary like the other runs in its folder.
    let found = compare("a", "b/runs/000", &["--format", "json"]).expect(0).json();
    assert_eq!(found["runs"], serde_json::json!([5, 1]));
    assert_eq!(found["earlier_runs"], serde_json::json!([0, 4]));
    assert_eq!(found["answer"]["comparisons"][0]["verdict"], "slower");
    for limit in ["rate=0", "rate=-5%", "rate", "rate=100%", "p99=10", "=5%"] {
        compare("a", "b", &["--fail-if-worse", limit]).expect(2);
    }
    // The p99.9 is compared only for a limit.
    let values = |more: &[&str]| {
        let found = compare("a", "b", &[more, &["--format", "json"]].concat()).json();
        found["values"].as_array().unwrap().len()
    };
    assert_eq!(values(&["--fail-if-worse", "p99.9=150%"]), values(&[]) + 1);
    compare("a", "b", &["--fail-if-worse", "p98=5%"]).expect(2).says("p99");
    compare("a", "b", &["--fail-if-slower", "5%"]).expect(2).says("`--fail-if-worse rate=5%`");
}

#[test]
fn limits_are_written_as_junit() {
    let bench = Bench::new();
    repetitions(&bench.path("a"), &MadeUp::new(1000));
    repetitions(&bench.path("b"), &MadeUp::new(880));
    let limits = ["rate=5%", "rate=20%", "server-cpu=5%"];
    let limits = limits.iter().flat_map(|limit| ["--fail-if-worse", *limit]);
    let arguments: Vec<&str> =
        ["compare", "a", "b", "--junit", "limits.xml"].into_iter().chain(limits).collect();
    bench.dyno(&arguments).expect(1);
    bench.dyno(&arguments).expect(1);
    let text = std::fs::read_to_string(bench.path("limits.xml")).unwrap();
    assert!(text.starts_with("<?xml"), "{text}");
    for part in [
        r#"tests="3""#,
        r#"failures="1""#,
        r#"errors="1""#,
        r#"name="rate=5%""#,
        "<failure",
        "<error",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    bench.dyno(&["compare", "a", "b", "--junit", "x.xml"]).expect(2).says("--fail-if-worse");
    let nowhere = ["compare", "a", "b", "--fail-if-worse", "rate=5%", "--junit", "no/x.xml"];
    bench.dyno(&nowhere).expect(3);
    // A failed comparison replaces the file of an earlier one.
    bench
        .dyno(&["compare", "a", "gone", "--fail-if-worse", "rate=5%", "--junit", "limits.xml"])
        .expect(2);
    let text = std::fs::read_to_string(bench.path("limits.xml")).unwrap();
    assert!(text.contains(r#"tests="1""#) && text.contains("<error"), "{text}");
    assert!(text.contains("`gone`"), "{text}");
}

#[test]
fn one_run_of_each_decides_nothing() {
    let bench = Bench::new();
    MadeUp::new(1000).write(&bench.path("a"));
    MadeUp::new(500).write(&bench.path("b"));
    let found = bench.dyno(&["compare", "a", "b", "--format", "json"]).expect(0).json();
    for row in found["answer"]["comparisons"].as_array().unwrap() {
        assert_eq!(row["verdict"], "not_enough_data", "{row}");
        assert_eq!(row["basis"], "within_run", "{row}");
    }
    let reported = bench.dyno(&["compare", "a", "b"]).expect(0).stdout;
    assert!(reported.starts_with("Cannot tell, ") && reported.contains("--repeat"), "{reported}");
    bench.dyno(&["compare", "a", "b", "--fail-if-worse", "rate=5%"]).expect(5);
}

#[test]
fn other_runs_in_the_folder_show_how_much_one_varies() {
    let bench = Bench::new();
    let run = |name: &str, rate: u64, seed: u64| {
        MadeUp { seed, ..MadeUp::new(rate) }.write(&bench.path(name));
    };
    for (number, rate) in [990, 1010, 1000, 985, 1015].into_iter().enumerate() {
        run(&format!("runs/{number}"), rate, number as u64 + 10);
    }
    run("runs/a", 1000, 1);
    run("runs/b", 1005, 2);
    run("runs/slow", 700, 3);
    // Other data are another plan: this run does not count.
    MadeUp { records: 2000, ..MadeUp::new(100) }.write(&bench.path("runs/other"));
    let json = |b: &str| bench.dyno(&["compare", "runs/a", b, "--format", "json"]).expect(0).json();
    let same = json("runs/b");
    // The other runs in the folder, shared by both sides.
    assert_eq!(same["earlier_runs"], serde_json::json!([6, 0]));
    assert_eq!(same["answer"]["comparisons"][0]["basis"], "between_runs");
    let limit = ["compare", "runs/a", "runs/slow", "--fail-if-worse", "rate=50%"];
    bench.dyno(&limit).expect(0);
    std::fs::remove_dir_all(bench.path("runs/slow")).unwrap();
    run("slow", 700, 3);
    let slow = json("slow");
    assert_eq!(slow["earlier_runs"], serde_json::json!([6, 0]));
    assert_eq!(slow["answer"]["comparisons"][0]["verdict"], "slower");
    bench.dyno(&["compare", "runs/a", "slow", "--fail-if-worse", "rate=10%"]).expect(1);
    bench.dyno(&["compare", "runs/a", "runs/b", "--fail-if-worse", "rate=20%"]).expect(0);
}

#[test]
fn slower_answers_at_an_offered_rate_fail() {
    let bench = Bench::new();
    let offered = MadeUp { offered_per_s: Some(500), ..MadeUp::new(500) };
    repetitions(&bench.path("a"), &offered);
    let slower = MadeUp { response_us: offered.response_us * 3 / 2, ..offered.clone() };
    repetitions(&bench.path("b"), &slower);
    let json = ["compare", "a", "b", "--format", "json"];
    let found = bench.dyno(&json).expect(0).json();
    let first = &found["answer"]["comparisons"][0];
    assert_eq!(first["verdict"], "slower");
    let ratio = first["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 1.5).abs() < 0.02, "{ratio}");
    bench.dyno(&["compare", "a", "b", "--fail-if-worse", "p99=10%"]).expect(1);
}

#[test]
fn incomparable_runs_have_no_figures_and_their_own_exit_code() {
    let bench = Bench::new();
    let plain = MadeUp::new(1000);
    plain.write(&bench.path("a"));
    let other = MadeUp { records: 2000, ..plain.clone() };
    other.write(&bench.path("data"));
    let stopped = MadeUp { status: RunStatus::Partial, ..plain.clone() };
    stopped.write(&bench.path("stopped"));
    let open = MadeUp { offered_per_s: Some(1000), ..plain };
    open.write(&bench.path("open"));
    let synced = MadeUp { durable_writes: Some(true), ..MadeUp::new(1000) };
    synced.write(&bench.path("synced"));
    let foreign = MadeUp { product: Some("another"), ..MadeUp::new(1000) };
    foreign.write(&bench.path("foreign"));
    for (b, what) in [
        ("synced", "server.durable_writes"),
        ("foreign", "server product"),
        ("data", "data.records"),
        ("stopped", "not complete"),
        ("open", "schedule.kind"),
    ] {
        let reported = bench.dyno(&["compare", "a", b]).expect(6);
        // The message has the options that compare the runs anyway.
        let mut allowed: Vec<&str> = vec!["compare", "a", b];
        let options = reported.stderr.split("--allow \"").skip(1);
        for option in options {
            allowed.extend(["--allow", option.split('"').next().unwrap()]);
        }
        bench.dyno(&allowed).expect(0);
        assert!(reported.stdout.starts_with("A and B cannot be compared"), "{}", reported.stdout);
        assert!(reported.stdout.contains(what), "{}", reported.stdout);
        let figures = ["1,000/s", "p99", "rate ", "slower", "95 %"];
        let shown = figures.iter().find(|figure| reported.stdout.contains(**figure));
        assert_eq!(shown, None, "{}", reported.stdout);
        let judged = ["compare", "a", b, "--fail-if-worse", "rate=5%", "--junit", "limits.xml"];
        bench.dyno(&judged).expect(6);
        let junit = std::fs::read_to_string(bench.path("limits.xml")).unwrap();
        assert!(junit.contains("<error") && junit.contains(what), "{junit}");
    }
}

#[test]
fn different_cpu_settings_are_listed_and_forbid_nothing() {
    let bench = Bench::new();
    let with = |smt: &str, microcode: Option<&str>, c6: bool| MadeUp {
        cpu_settings: CpuSettings {
            smt: Some(smt.to_owned()),
            microcode: microcode.map(str::to_owned),
            idle_states: [("C1", true), ("C6", c6)]
                .map(|(name, enabled)| IdleState {
                    name: name.to_owned(),
                    exit_latency_us: 2,
                    enabled,
                })
                .to_vec(),
            ..CpuSettings::default()
        },
        ..MadeUp::new(1000)
    };
    with("on", Some("0x2b000461"), true).write(&bench.path("a"));
    with("off", Some("0x2b000571"), false).write(&bench.path("b"));
    with("on", None, true).write(&bench.path("unknown"));
    let table = |b| {
        let reported = bench.dyno(&["compare", "a", b, "--format", "markdown"]);
        reported.expect(0).stdout
    };
    let reported = table("b");
    for row in [
        "| **SMT** | on | off |",
        "| **microcode** | 0x2b000461 | 0x2b000571 |",
        "| **CPU idle states** | C1, C6 | C1 |",
    ] {
        assert!(reported.contains(row), "{reported}");
    }
    assert!(!reported.contains("not comparable"), "{reported}");
    assert!(!reported.contains("irqbalance"), "{reported}");
    // A setting that only one side records is not a difference.
    let reported = table("unknown");
    assert!(!reported.contains("microcode") && !reported.contains("SMT"), "{reported}");
}

#[test]
fn allow_permits_a_difference_and_warns_if_there_is_none() {
    let bench = Bench::new();
    MadeUp::new(1000).write(&bench.path("a"));
    let foreign = MadeUp { product: Some("another"), ..MadeUp::new(1000) };
    foreign.write(&bench.path("b"));
    let judged = ["compare", "a", "b", "--fail-if-worse", "rate=5%"];
    let allowing = |what| bench.dyno(&[&judged[..], &["--allow", what]].concat());
    allowing("server product").expect(5).says("cannot tell");
    allowing("data.records").expect(6).says("warning: ").says("data.records");
}

#[test]
fn runs_too_short_to_compare_are_undecided() {
    let bench = Bench::new();
    let short = MadeUp { windows: 1, ..MadeUp::new(1000) };
    short.write(&bench.path("a"));
    short.write(&bench.path("b"));
    let compare = ["compare", "a", "b"];
    let reported = bench.dyno(&compare).expect(0).stdout;
    assert!(reported.starts_with("Cannot tell: the runs are too short"), "{reported}");
    let json = bench.dyno(&[&compare[..], &["--format", "json"]].concat());
    assert_eq!(json.expect(0).json()["answer"], Value::Null);
    bench.dyno(&[&compare[..], &["--fail-if-worse", "rate=5%"]].concat()).expect(5);
}

#[test]
fn runs_too_short_for_the_deciding_figure_say_why() {
    let bench = Bench::new();
    let short = MadeUp { offered_per_s: Some(50), ..MadeUp::new(50) };
    short.write(&bench.path("a"));
    let slower = MadeUp { response_us: short.response_us * 3, ..short };
    slower.write(&bench.path("b"));
    let compare = ["compare", "a", "b"];
    let json = bench.dyno(&[&compare[..], &["--format", "json"]].concat());
    let answer = json.expect(0).json()["answer"].take();
    let answer: AbAnswer = serde_json::from_value(answer).unwrap();
    let why = undecided(&answer).unwrap();
    assert_eq!(why.code, "deciding-has-no-interval");
    let why = texts::text(&why);
    for format in ["human", "markdown", "html"] {
        let formatted = [&compare[..], &["--format", format]].concat();
        let reported = without_term_links(&bench.dyno(&formatted).expect(0).stdout);
        let words: Vec<&str> = reported.split_whitespace().collect();
        assert!(words.join(" ").contains(&why), "{reported}");
    }
    bench.dyno(&[&compare[..], &["--fail-if-worse", "p99=5%"]].concat()).expect(5);
}

#[test]
fn compare_refuses_unknown_runs_and_operations() {
    let bench = Bench::new();
    MadeUp::new(1000).write(&bench.path("a"));
    MadeUp::new(1000).write(&bench.path("b"));
    std::fs::create_dir(bench.path("empty")).unwrap();
    for other in ["nowhere", "empty"] {
        bench.dyno(&["compare", "a", other]).expect(2).says("hint: ");
        bench.dyno(&["compare", other, "a"]).expect(2).says(other);
    }
    bench
        .dyno(&["compare", "a", "b", "--operation", "raed"])
        .expect(2)
        .says("`raed`")
        .says("measured read");
    bench.dyno(&["compare", "a", "b", "--operation", "read"]).expect(0);
    bench.dyno(&["compare", "a", "./a"]).expect(2).says("same record").says("hint: ");
}

#[test]
fn a_comparison_has_a_page_with_its_changes() {
    let bench = Bench::new();
    repetitions(&bench.path("a"), &MadeUp::new(1000));
    repetitions(&bench.path("b"), &MadeUp::new(800));
    let page = bench.dyno(&["compare", "a", "b", "--format", "html"]).expect(0).stdout;
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert_eq!(page.matches("class=\"interval\"").count(), 5);
    let markdown = ["compare", "a", "b", "--format", "markdown"];
    let text = bench.dyno(&markdown).expect(0).stdout;
    assert!(text.contains("**B is 20 % slower ("), "{text}");
    let rate = text.lines().find(|line| line.starts_with("| **rate** |")).unwrap();
    assert!(rate.contains(" | −20 % | ") && rate.contains("B is worse"), "{rate}");
    assert_eq!(rate.matches("/s |").count(), 2, "{rate}");
}

#[test]
fn history_ends_with_1_after_a_lasting_loss() {
    let bench = Bench::new();
    series(&bench.path("nightly"), &[(1000, 10), (800, 6)]);
    let arguments = ["history", "nightly", "--picture", "h.svg"];
    let found = bench.dyno(&arguments).expect(1);
    for shown in ["regression; ", "Regression: rate changed by −20", "(`010`)"] {
        assert!(found.stdout.contains(shown), "{}", found.stdout);
    }
    let picture = std::fs::read_to_string(bench.path("h.svg")).unwrap();
    bench.dyno(&arguments).expect(2).says("`h.svg`").says("--force");
    bench.dyno(&[&arguments[..], &["--force"]].concat()).expect(1);
    assert_eq!(picture.matches("<svg y=").count(), 4);
    assert!(picture.contains(", worse"));
    // The same comparison as files, one for each series.
    let arguments = ["history", "nightly", "--pictures", "pictures"];
    let said = bench.dyno(&arguments).expect(1);
    said.says("4 charts").says("`pictures`");
    let files = names(&bench.path("pictures"));
    let titles = ["1-rate", "2-mean-response", "3-p95-response", "4-p99-response"];
    let expected = titles.map(|title| [format!("0{title}.png"), format!("0{title}.svg")]);
    assert_eq!(files, expected.concat());
    let rate = std::fs::read_to_string(bench.path("pictures/01-rate.svg")).unwrap();
    assert!(rate.contains(", worse"));
    let png = std::fs::read(bench.path("pictures/01-rate.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    bench.dyno(&arguments).expect(2).says("`pictures`");
    // A change below the threshold of interest is not a regression.
    bench.dyno(&["history", "nightly", "--margin", "50%"]).expect(0);
    let html = ["history", "nightly", "--format", "html"];
    let page = bench.dyno(&html).expect(1).stdout;
    assert_eq!(page.matches("id=\"plot-series-").count(), 4);
    assert!(page.contains(">regression<"));
}

#[test]
fn history_passes_when_the_loss_is_before_since() {
    let bench = Bench::new();
    series(&bench.path("nightly"), &[(1000, 10), (800, 8)]);
    let since = |since: &str| bench.dyno(&["history", "nightly", "--since", since]);
    for accepted in ["012", "2026-01-13", "2026-01-13T00:00:00Z"] {
        let found = since(accepted).expect(0);
        for shown in ["−20", "(`012`)"] {
            assert!(found.stdout.contains(shown), "{}", found.stdout);
        }
    }
    since("008").expect(1);
    since("yesterday").expect(2).says("`--since yesterday`");
    since("2027-01-01").expect(2).says("`2027-01-01`");
}

#[test]
fn history_reports_a_loss_even_after_a_small_gain() {
    let bench = Bench::new();
    series(&bench.path("nightly"), &[(1000, 10), (800, 10), (840, 10)]);
    let found = bench.dyno(&["history", "nightly"]).expect(1);
    for shown in ["Regression: rate is ", "−16.2 %"] {
        assert!(found.stdout.contains(shown), "{}", found.stdout);
    }
    let json = ["history", "nightly", "--format", "json"];
    let document = bench.dyno(&json).expect(1).json();
    let rate = &document["statistics"][0];
    assert_eq!(rate["name"], "rate");
    assert_eq!(rate["regression"], true);
    let last = rate["changes"].as_array().unwrap().last().unwrap();
    let gain = last["change_ratio"].as_f64().unwrap();
    assert!(gain > 0.0, "{rate}");
    // The gain is a separate finding, without the prefix.
    let is_gain = |line: &str| line.contains(". Rate changed by +");
    assert!(found.stdout.lines().any(is_gain), "{}", found.stdout);
}

#[test]
fn history_passes_without_a_change_or_with_a_gain() {
    let bench = Bench::new();
    series(&bench.path("steady"), &[(1000, 14)]);
    let found = bench.dyno(&["history", "steady"]).expect(0);
    assert!(found.stdout.contains("no change"), "{}", found.stdout);
    assert_eq!(found.stderr, "");
    series(&bench.path("better"), &[(1000, 8), (1300, 8)]);
    bench.dyno(&["history", "better"]).expect(0);
}

#[test]
fn history_warns_when_there_are_too_few_runs() {
    let bench = Bench::new();
    series(&bench.path("short"), &[(1000, 3), (500, 3)]);
    let found = bench.dyno(&["history", "short"]).expect(0);
    let first = found.stdout.lines().next().unwrap();
    assert!(first.starts_with("Too few runs") && first.contains("6 of the 10"), "{first}");
    // Once.
    let both = format!("{}{}", found.stdout, found.stderr).to_lowercase();
    assert_eq!(both.matches("too few runs to distinguish").count(), 1, "{both}");
    // Too few runs are reported as such, never as the absence of a change.
    for format in ["human", "markdown", "html"] {
        let text = bench.dyno(&["history", "short", "--format", format]).expect(0).stdout;
        assert!(text.to_lowercase().contains("too few"), "{text}");
        assert!(!text.contains("no change"), "{text}");
        assert!(!text.contains("no regression"), "{text}");
    }
    let json = ["history", "short", "--format", "json"];
    let found = bench.dyno(&json).expect(0);
    let found = found.says("warning: ").says("too few").says("6 found, 10 required");
    assert_eq!(found.json()["fewest_runs"], 10);
    bench.dyno(&["history", "short", "--significance", "0.001%"]).expect(2).says("--significance");
}

#[test]
fn history_takes_only_complete_runs_of_one_plan() {
    let bench = Bench::new();
    let runs = bench.path("mixed");
    series(&runs, &[(1000, 10)]);
    let stopped = MadeUp { status: RunStatus::Partial, ..MadeUp::new(10) };
    stopped.of_day(20).write(&runs.join("stopped"));
    std::fs::create_dir(runs.join("torn")).unwrap();
    std::fs::write(runs.join("torn/run.json"), "{").unwrap();
    let found = bench.dyno(&["history", "mixed"]).expect(0);
    for left_out in ["left out: `stopped`", "not complete", "left out: `torn`"] {
        assert!(found.stdout.contains(left_out), "{}", found.stdout);
    }
    let other = MadeUp { name: "b", ..MadeUp::new(2000) };
    other.of_day(30).write(&runs.join("deeper/other"));
    let of_a = ["history", "mixed", "--workload", "a", "--format", "json"];
    let found = bench.dyno(&of_a).expect(0).json();
    assert_eq!(found["runs"].as_array().unwrap().len(), 10);
    bench.dyno(&["history", "mixed", "--workload", "x"]).expect(2).says("a, b");
}

#[test]
fn history_takes_the_newest_of_several_series() {
    let bench = Bench::new();
    let runs = bench.path("runs");
    series(&runs, &[(1000, 10)]);
    for (day, records) in [(11, 20_000), (12, 20_000), (13, 1000)] {
        let run = MadeUp { name: "b", records, ..MadeUp::new(1000) };
        run.of_day(day).write(&runs.join(format!("{day}-b")));
    }
    let count = |arguments: &[&str]| {
        let arguments = [&["history", "--format", "json"], arguments].concat();
        bench.dyno(&arguments).expect(0).json()["runs"].as_array().unwrap().len()
    };
    let found = bench.dyno(&["history", "--format", "json"]).expect(0).json();
    let left_out = found["left_out"].to_string();
    for other in ["10 runs of `a`", "`--like 009`", "`data.records` 20,000", "`--like 12-b`"] {
        assert!(left_out.contains(other), "{other}\n{left_out}");
    }
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--like", "009"]), 10);
    assert_eq!(count(&["--like", "12"]), 2);
    assert_eq!(count(&["--like", "runs/12"]), 2);
    assert_eq!(count(&["--workload", "a"]), 10);
    bench.dyno(&["history", "--like", "x"]).expect(2).says("--like x").says("hint: ");
    bench.dyno(&["history", "--like", "b"]).expect(2).says("`11-b`").says("`13-b`");
}

#[test]
fn history_refuses_a_folder_without_runs() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.dyno(&["history", "empty"]).expect(2).says("complete runs").says("hint: ");
    bench.dyno(&["history", "nowhere"]).expect(2).says("`nowhere`").says("hint: ");
    series(&bench.path("one"), &[(1000, 1)]);
    let unwritable = ["history", "one", "--picture", "no/such/folder.svg"];
    bench.dyno(&unwritable).expect(3).says("no/such/folder.svg");
}
