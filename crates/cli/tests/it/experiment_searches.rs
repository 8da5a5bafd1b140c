//! Searches and comparisons against responders with a known capacity: a single queue that serves a command in a fixed time, much
//! longer than the delays of a busy machine.

use crate::common::{Bench, Finished, Responder, names, signal, wait_for};
use dyno_testkit::go_before_others;
use serde_json::Value;

/// Processes that the test starts later run before other programs: waiting for a CPU would add to the service time.
fn slow(service_us: &str) -> Responder {
    go_before_others();
    Responder::with_documents(&["--service-us", service_us])
}

/// Data that a responder can answer for, runs of a second, and an output to check.
const SHORT: [&str; 12] = [
    "--records",
    "1000",
    "-p",
    "insertorder=ordered",
    "--warmup",
    "0s",
    "--duration",
    "1s",
    "--out",
    "x",
    "--format",
    "json",
];

/// Reads that a responder can answer, for a second each.
fn against<'a>(verb: &'a str, uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[verb, "read"], &SHORT[..], &["--uri", uri], more].concat()
}

#[test]
fn the_highest_rate_is_the_capacity_of_the_server() {
    // Waiting commands keep the server busy while its process waits for a CPU.
    let server = slow("10000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--max-clients", "8", "--repeat", "2"];
    let found = bench.dyno(&against("xmax", &uri, &more)).expect(0).json();
    let answer = &found["answer"];
    let is_capacity = |rate: f64| (rate / 100.0 - 1.0).abs() < 0.1;
    assert!(is_capacity(answer["search"]["rate_per_s"].as_f64().unwrap()), "{answer}");
    // On a busy machine the client may rightly doubt itself.
    if answer["generator_bound"] == Value::Array(Vec::new()) {
        assert!(is_capacity(answer["x_max_per_s"]["value"].as_f64().unwrap()), "{answer}");
        let sustained = answer["sustained_rate_per_s"].as_f64().unwrap();
        assert!((65.0..100.0).contains(&sustained), "{sustained}");
    } else {
        assert_eq!(answer["x_max_per_s"], Value::Null);
    }
    // Known results are not measured again.
    let resume = ["resume", "x", "--format", "json"];
    let again = bench.dyno(&resume).expect(0).json();
    assert_eq!(&again["answer"], answer);
}

#[test]
fn a_maximum_is_kept_when_its_confirmation_is_interrupted() {
    let server = slow("10000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--max-clients", "2", "--repeat", "1"];
    let mut child = bench.spawn(&against("xmax", &uri, &more));
    let runs = bench.path("x/runs");
    let is_confirming = || {
        let is_open = |name: &String| name.contains("rate_per_s");
        runs.is_dir() && names(&runs).iter().any(is_open)
    };
    let mut has_ended = false;
    wait_for("the confirmation", || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || is_confirming()
    });
    if !has_ended {
        signal(&child, "INT");
    }
    let finished = Finished::from(child.wait_with_output().unwrap());
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let answer = &document["answer"];
    let rate = answer["search"]["rate_per_s"].as_f64().unwrap();
    assert!((rate / 100.0 - 1.0).abs() < 0.1, "{answer}");
    if has_ended {
        // On a busy machine the client may rightly doubt itself, and then skips the confirmation.
        finished.expect(0);
        assert_eq!(answer["x_max_per_s"], Value::Null);
    } else {
        finished.expect(130);
        assert_eq!(document["status"], "partial");
        assert!(answer["x_max_per_s"]["value"].as_f64().is_some());
    }
}

#[test]
fn the_objective_is_kept_up_to_the_capacity_and_missed_above() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--clients", "8", "--p99", "100ms", "--resolution", "20%"];
    let found = bench.dyno(&against("slo", &uri, &more)).expect(0).json();
    let search = &found["answer"]["search"];
    assert_eq!(search["end"], "resolved");
    let rate = search["rate_per_s"].as_f64().unwrap();
    // A second at 10 % above the capacity leaves 20 commands waiting, which equals the objective.
    assert!((140.0..245.0).contains(&rate), "{rate}");
    let missed = search["always_missed_from_per_s"].as_f64().unwrap();
    assert!(missed > rate && missed < 400.0, "{missed}");
    let question = found["question"].as_str().unwrap();
    assert!(question.contains("p99") && question.contains("100 ms"), "{question}");
}

#[test]
fn interrupted_slo_keeps_the_rates_so_far() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--clients", "8", "--p99", "100ms", "--max-steal", "100%"];
    let child = bench.spawn(&against("slo", &uri, &more));
    let runs = bench.path("x/runs");
    // The closed loop, one rate, and the next one.
    wait_for("the third run", || runs.is_dir() && names(&runs).len() > 2);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let search = &document["answer"]["search"];
    assert_eq!((&document["status"], &search["end"]), (&"partial".into(), &"interrupted".into()));
    let sides = ["always_kept_up_to_per_s", "always_missed_from_per_s"];
    assert!(sides.iter().any(|side| search[*side].is_number()), "{search}");
}

#[test]
fn slo_starts_no_run_after_its_time_limit() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--clients", "8", "--p99", "100ms", "--time-limit", "1s", "--max-steal", "100%"];
    let found = bench.dyno(&against("slo", &uri, &more)).expect(0).json();
    assert_eq!(found["answer"]["search"]["end"], "out_of_measurements");
    assert!(found["answer"]["search"]["rate_per_s"].is_number(), "{found}");
    // The closed loop takes the whole time.
    assert_eq!(names(&bench.path("x/runs")).len(), 2);
    bench.dyno(&["resume", "x"]).expect(0);
    assert_eq!(names(&bench.path("x/runs")).len(), 2);
}

#[test]
fn a_rate_at_which_nothing_succeeds_misses_the_objective() {
    let server = slow("2000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--p99", "5s", "--errors", "0.5", "--max-runs", "2", "--max-steal", "99%"];
    let timeout = ["--clients", "1", "--set", "client.timeout=100ms"];
    let arguments = against("slo", &uri, &[&more[..], &timeout].concat());
    let found = bench.dyno(&arguments).expect(0).json();
    let last = found["points"].as_array().unwrap().last().unwrap().clone();
    let run = bench.path("x").join(last["directory"].as_str().unwrap());
    std::fs::remove_dir_all(run).unwrap();
    // The last run is repeated against a server that answers nothing in time.
    let hanging = slow("400000");
    let resume = ["resume", "x", "--format", "json", "--uri", &hanging.uri()];
    let check = |found: &Value| {
        let attempts = found["answer"]["attempts"].as_array().unwrap();
        assert_eq!((&found["status"], attempts.len()), (&"complete".into(), 2));
        assert_eq!(attempts[1]["kept"], false);
        assert_eq!(attempts[1]["failed_ratio"], 1.0);
        let text = found["findings"].to_string();
        assert!(!text.contains("experiment-not-complete"), "{text}");
    };
    check(&bench.dyno(&resume).expect(0).json());
    // Known results are not tried again.
    let again = bench.dyno(&resume).expect(0);
    assert!(!again.stderr.contains("run 3"), "{}", again.stderr);
    check(&again.json());
}

#[test]
fn an_objective_is_searched_with_the_whole_schedule_of_the_plan() {
    let server = slow("2000");
    let bench = Bench::new();
    let uri = server.uri();
    let schedule = [
        "--set",
        "schedule.kind=poisson",
        "--set",
        "schedule.rate_per_s=10",
        "--set",
        "schedule.max_start_delay=3s",
    ];
    let more = ["--clients", "1", "--p99", "5s", "--max-runs", "1"];
    let arguments = against("slo", &uri, &[&more[..], &schedule].concat());
    let found = bench.dyno(&arguments).expect(0).json();
    let run = found["points"][1]["directory"].as_str().unwrap();
    let text = std::fs::read_to_string(bench.path("x").join(run).join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    let schedule = &run["plan"]["schedule"];
    assert_eq!(schedule["kind"], "poisson");
    assert_eq!(schedule["max_start_delay"], "3s");
}

#[test]
fn objectives_can_be_percentiles_or_failures_alone() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--percentile", "75=1ms", "--percentile", "12.5=1s"];
    let fast = ["--resolution", "50%", "--max-runs", "2", "--max-steal", "99%"];
    let arguments = against("slo", &uri, &[&more[..], &fast].concat());
    let finished = bench.dyno(&arguments).expect(0).says("2 runs after the closed loop, ");
    let finished = finished.says("run 1 of 3").says("run 2 of 3: ");
    // Each run says its figures, its outcome, and where the answer lies.
    let outcomes = finished.stderr.lines().filter(|line| {
        let is_decided = line.contains(", kept; ") || line.contains(", missed; ");
        is_decided && line.contains("/s: p75 ") && line.contains("the answer is")
            || line.contains("the answer lies between")
    });
    assert_eq!(outcomes.count(), 2, "{}", finished.stderr);
    let found = finished.json();
    let answer = &found["answer"];
    let statistics = answer["objectives"]["responses"].as_array().unwrap().iter();
    let statistics: Vec<&Value> = statistics.map(|one| &one["statistic"]).collect();
    assert_eq!(statistics, ["p75", "p12_5"]);
    let attempts = answer["attempts"].as_array().unwrap();
    for (attempt, point) in attempts.iter().zip(&found["points"].as_array().unwrap()[1..]) {
        let value = |place: usize| attempt["values_us"][place].as_f64().unwrap();
        let known = |name: &str| {
            let percentiles = &point["figures"]["response_us"];
            percentiles[name]["value"].as_f64().unwrap()
        };
        assert!(value(1) <= known("p50") && known("p50") <= value(0) && value(0) <= known("p90"));
    }
    // Resuming finds the same percentiles in the kept runs.
    let again = bench.dyno(&["resume", "x", "--format", "json"]).expect(0);
    assert_eq!(&again.json()["answer"], answer);
    assert!(!again.stderr.contains("/s: p75"), "{}", again.stderr);
    let mut arguments = against("slo", &uri, &[&["--errors", "0.5"][..], &fast].concat());
    let out = arguments.iter().position(|one| *one == "x").unwrap();
    arguments[out] = "y";
    let found = bench.dyno(&arguments).expect(0).json();
    assert_eq!(found["answer"]["objectives"]["failed_ratio"], 0.5);
    let question = found["question"].as_str().unwrap();
    assert!(question.contains("failed") && question.contains("50 %"), "{question}");
}

#[test]
fn objective_that_no_rate_meets_has_no_answer() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    // The service time alone exceeds the objective.
    let more = ["--p50", "1ms", "--resolution", "50%", "--max-runs", "3"];
    let found = bench.dyno(&against("slo", &uri, &more)).expect(0).json();
    assert_eq!(found["answer"]["search"]["rate_per_s"], Value::Null);
    assert_eq!(found["answer"]["attempts"].as_array().unwrap().len(), 3);
}

#[test]
fn a_server_with_half_the_capacity_is_slower() {
    let (fast, half) = (slow("5000"), slow("10000"));
    let bench = Bench::new();
    for (name, server) in [("a", &fast), ("b", &half)] {
        let plan = format!(
            "base = \"read\"\nname = \"{name}\"\n[server]\nkind = \"uri\"\nuri = \"{}\"\n",
            server.uri()
        );
        std::fs::write(bench.path(&format!("{name}.toml")), plan).unwrap();
    }
    let pair: [&[&str]; 3] = [&["ab", "a.toml", "b.toml"], &SHORT, &["--max-pairs", "2"]];
    let arguments = pair.concat();
    let found = bench.dyno(&arguments).expect(0).json();
    let first = &found["answer"]["comparisons"][0];
    assert_eq!((&first["verdict"], &first["pairs"]), (&"slower".into(), &2.into()));
    let ratio = first["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 0.5).abs() < 0.03, "{ratio}");
}

#[test]
fn sweep_reports_its_levels_relative_to_the_base() {
    let (fast, half) = (slow("5000"), slow("10000"));
    let bench = Bench::new();
    let (base, other) = (fast.uri(), half.uri());
    let values = format!("server.uri={other};{base}");
    let sweep = against("sweep", &base, &["--set", &values, "--repeat", "3"]);
    let found = bench.dyno(&[&sweep[..], &["--base", &base]].concat());
    let found = found.expect(0).json();
    let answer = &found["answer"];
    let relative = &answer["relative"];
    assert_eq!(relative["base"]["value"], base.as_str());
    let rows = relative["levels"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{relative}");
    let level = |key: &str| &answer["levels"][rows[0][key].as_u64().unwrap() as usize];
    assert_eq!(level("level")["settings"]["server.uri"], other.as_str());
    assert_eq!(level("base")["settings"]["server.uri"], base.as_str());
    let rate = &rows[0]["comparisons"][0];
    assert_eq!((&rate["verdict"], &rate["pairs"]), (&"slower".into(), &3.into()));
    let of_ratio = |end: &str| rate["ratio"][end].as_f64().unwrap();
    assert!((of_ratio("value") - 0.5).abs() < 0.03, "{rate}");
    assert!(of_ratio("low") < of_ratio("value") && of_ratio("high") < 1.0, "{rate}");
    // Servers on this machine are observed even if another program started them.
    assert_ne!(rows[0]["explanation"], "not_watched");
    let findings = found["findings"].as_array().unwrap();
    let differs = findings.iter().find(|one| one["code"] == "level-differs");
    let differs = differs.unwrap_or_else(|| panic!("{findings:#?}"));
    let text = differs["text"].as_str().unwrap();
    assert!(text.contains(&format!("`server.uri={other}`")), "{differs}");
    let ratio = differs["values"]["ratio"]["value"].as_f64().unwrap();
    assert!(ratio < 1.0, "{differs}");
    for report in ["report.md", "report.html"] {
        let text = std::fs::read_to_string(bench.path("x").join(report)).unwrap();
        assert!(text.contains("Relative to"), "{report}");
    }
    // The base is kept when the experiment is resumed.
    let again = bench.dyno(&["resume", "x", "--format", "json"]).expect(0).json();
    assert_eq!(again["answer"]["relative"], *relative);
}

#[test]
fn base_outside_of_the_sweep_is_refused_before_the_first_run() {
    let bench = Bench::new();
    let sweep = |more: &[&str]| {
        let start = ["sweep", "c", "--dry-run", "--set", "server.cache=64MiB,128MiB"];
        bench.dyno(&[&start, more].concat())
    };
    sweep(&["--base", "256MiB"])
        .expect(2)
        .says("`256MiB`")
        .says("`server.cache=64MiB`, `server.cache=128MiB`");
    let two = ["--set", "client.load_clients=1,2", "--clients", "1,2"];
    sweep(&[&two[..], &["--base", "1"]].concat())
        .expect(2)
        .says("`1`")
        .says("`client.load_clients=1` or `client.clients=1`");
    let relative = |more: &[&str]| {
        let text = sweep(more).expect(0).stdout;
        text.lines().find_map(|line| line.strip_prefix("relative to ").map(str::to_owned))
    };
    let of = |text: &str| Some(text.to_owned());
    // The base is the first value of the only setting, whatever the load is.
    assert_eq!(relative(&["--clients", "1,2"]), of("server.cache=64MiB"));
    assert_eq!(relative(&["--base", "128MiB"]), of("server.cache=128MiB"));
    let named = [&two[..], &["--base", "client.clients=2"]].concat();
    assert_eq!(relative(&named), of("client.clients=2"));
    // Several settings have no common first value.
    assert_eq!(relative(&two), None);
}

#[test]
fn resumed_comparison_keeps_the_time_already_spent() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let limits = ["--time-limit", "1s", "--min-pairs", "1"];
    let more = ["--max-pairs", "3", "--margin", "0.1%"];
    let arguments = against("ab", &uri, &[limits, more].concat());
    bench.dyno(&arguments).expect(0);
    let path = bench.path("x/experiment.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    let spent_s = document["options"]["time_spent_s"].as_f64().unwrap();
    assert!(spent_s >= 2.0, "{spent_s}");
    // One complete run, and one that was stopped when it was nearly complete.
    for status in ["complete", "partial"] {
        let mut stopped = document.clone();
        stopped["status"] = status.into();
        if status == "complete" {
            // Without the time, only the status can show it.
            let options = stopped["options"].as_object_mut().unwrap();
            options.remove("time_spent_s");
        }
        std::fs::write(&path, stopped.to_string()).unwrap();
        std::fs::remove_file(bench.path("x/SHA256SUMS")).unwrap();
        bench.dyno(&["resume", "x"]).expect(0);
        assert_eq!(names(&bench.path("x/runs")).len(), 2, "{status}");
    }
}

#[test]
fn experiment_ends_with_1_beyond_the_tolerated_failures() {
    // The set-up also reads a few documents, fewer than meet the first fault.
    let faulty = || Responder::with_documents(&["--fault", "error=11600:20"]);
    let bench = Bench::new();
    let server = faulty();
    let uri = server.uri();
    let arguments = against("sweep", &uri, &["--clients", "1"]);
    bench.dyno(&arguments).expect(1).says("1 of 1").says("`runs/001-clients-1`");
    // A complete experiment also ends with 1; tolerated failures end with 0.
    bench.dyno(&["resume", "x"]).expect(1);
    let server = faulty();
    let uri = server.uri();
    let tolerant = ["--clients", "1", "--set", "client.tolerated_error_ratio=0.06"];
    let mut arguments = against("sweep", &uri, &tolerant);
    let out = arguments.iter().position(|one| *one == "x").unwrap();
    arguments[out] = "y";
    bench.dyno(&arguments).expect(0);
}

#[test]
fn a_point_that_measures_nothing_does_not_block_the_others() {
    let server = slow("200000");
    let bench = Bench::new();
    let uri = server.uri();
    // Nothing is answered within the shorter time.
    let more = ["--set", "client.timeout=1ms,5s", "--clients", "2", "--order", "given"];
    let arguments = against("sweep", &uri, &more);
    let document = || -> Value {
        let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let check = |finished: Finished| {
        let document = document();
        let points = &document["points"];
        assert_eq!(document["status"], "failed");
        assert_eq!(points[0].get("figures"), None);
        finished
            .expect(3)
            .says("1 of 2")
            .says("`runs/001-clients-2-timeout-1ms`")
            .says(points[0]["problem"].as_str().unwrap())
            .says("`dyno resume x`");
        assert!(points[1]["figures"]["rate_per_s"]["value"].as_f64().unwrap() > 0.0);
    };
    check(bench.dyno(&arguments));
    // The point is tried once more, after all untried points.
    let second = document()["points"][1]["directory"].clone();
    std::fs::remove_dir_all(bench.path("x").join(second.as_str().unwrap())).unwrap();
    let resumed = bench.dyno(&["resume", "x"]);
    let place = |text: &str| resumed.stderr.find(text).unwrap();
    assert!(place("run 2 of 2") < place("run 1 of 2"), "{}", resumed.stderr);
    check(resumed);
}

#[test]
fn varying_documents_on_a_running_server_need_fresh() {
    let server = slow("100");
    let bench = Bench::new();
    let uri = server.uri();
    for verb in ["ab", "sweep"] {
        let setting = match verb {
            "ab" => ["--set-b", "data.compressible_ratio=0.9"],
            _ => ["--set", "data.compressible_ratio=0,0.9"],
        };
        let arguments = against(verb, &uri, &setting);
        bench.dyno(&arguments).expect(2).says("`data`").says("`--fresh`");
        assert!(!bench.path("x").exists());
    }
}

#[test]
fn server_compared_with_itself_shows_no_difference() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--max-pairs", "3", "--margin", "20%"];
    let arguments = against("ab", &uri, &more);
    let found = bench.dyno(&arguments).expect(0).json();
    let first = &found["answer"]["comparisons"][0];
    let verdict = &first["verdict"];
    assert!(verdict.get("no_difference_larger_than").is_some(), "{first}");
    // Neither plan may change between the runs.
    for file in ["plan-a.toml", "plan-b.toml"] {
        let plan = std::fs::read_to_string(bench.path("x").join(file)).unwrap();
        let other = plan.replace("duration = \"1s\"", "duration = \"2s\"");
        assert_ne!(other, plan);
        std::fs::write(bench.path("x").join(file), other).unwrap();
        bench.dyno(&["resume", "x"]).expect(2).says(&format!("`{file}`"));
        std::fs::write(bench.path("x").join(file), &plan).unwrap();
    }
    bench.dyno(&["resume", "x"]).expect(0);
}

#[test]
fn resume_at_another_address_continues_with_a_warning() {
    let server = slow("5000");
    let bench = Bench::new();
    let uri = server.uri();
    let more = ["--rates", "50,100", "--clients", "4"];
    let mut child = bench.spawn(&against("sweep", &uri, &more));
    wait_for("a run that is done", || {
        let text = std::fs::read_to_string(bench.path("x/experiment.json"));
        text.is_ok_and(|text| text.contains("\"figures\""))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let first = server.address.clone();
    drop(server);
    bench.dyno(&["resume", "x"]).expect(3).says("Connection refused").says("`dyno resume x`");
    let other = slow("5000");
    let resume = ["resume", "x", "--format", "json", "--uri", &other.uri()];
    let finished = bench.dyno(&resume).expect(0);
    let finished = finished.says(&first).says(&other.address);
    let document = finished.json();
    assert_eq!(document["status"], "complete");
    for point in document["points"].as_array().unwrap() {
        let asked: f64 =
            point["settings"]["schedule.rate_per_s"].as_str().unwrap().parse().unwrap();
        let achieved = point["figures"]["rate_per_s"]["value"].as_f64().unwrap();
        assert!((achieved / asked - 1.0).abs() < 0.05, "{achieved} of {asked}");
    }
}
