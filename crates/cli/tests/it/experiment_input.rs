//! Invalid experiments: one clear error with a hint, the right exit code, and nothing left.

use crate::common::{Bench, Finished, Responder, names};
use serde_json::Value;

/// Checks that the arguments are refused as bad input and leave nothing.
#[track_caller]
fn refused(arguments: &[&str]) -> Finished {
    let bench = Bench::new();
    let finished = bench.dyno(arguments).expect(2);
    assert_eq!(finished.stdout, "", "an error must not print data");
    assert_eq!(bench.entries(), Vec::<String>::new());
    assert_eq!(finished.stderr.matches("error: ").count(), 1);
    finished
}

#[test]
fn sweep_refuses_invalid_values_with_an_example() {
    for (option, values, cause) in [
        ("--clients", "0", "`0`"),
        ("--clients", "1.5", "whole number"),
        ("--clients", "5..1 by 2", "`5..1 by 2` ends"),
        ("--clients", "1..8", "`FIRST..LAST by STEP`"),
        ("--rates", "abc", "`abc`"),
        ("--rates", "1..9 by 1x", "0 values"),
        ("--rates", "-5", ""),
    ] {
        let finished = refused(&["sweep", "c", option, values]).says(cause);
        let has_hint = finished.stderr.contains("`1,2,4,8`");
        assert!(has_hint || values.starts_with('-'), "{}", finished.stderr);
    }
    refused(&["sweep", "c"]).says("`--clients`").says("`--rates`");
    refused(&["sweep", "c", "--clients", "1", "--repeat", "0"]).says("1..=1000");
    let many = ["sweep", "c", "--clients", "1..400 by 1", "--repeat", "100"];
    refused(&many).says("10000 runs");
}

#[test]
fn experiment_refuses_formats_of_other_records() {
    for (format, advised) in
        [("ycsb", "`dyno report`"), ("kpi", "`dyno report`"), ("csv", "`dyno export")]
    {
        refused(&["xmax", "c", "--format", format]).says(advised);
        refused(&["sweep", "c", "--clients", "1,2", "--format", format, "--dry-run"]).says(advised);
    }
}

#[test]
fn key_given_by_two_options_is_refused() {
    let clients = ["sweep", "c", "--clients", "1,2", "--set"];
    for value in ["client.clients=3", "client.clients=3,4"] {
        refused(&[&clients[..], &[value]].concat()).says("`--clients`").says("`--set`");
    }
    let rates = ["sweep", "c", "--rates", "100", "--set", "schedule.rate_per_s=5,6"];
    refused(&rates).says("`--rates`").says("`--set`");
    refused(&["xmax", "c", "--set", "client.clients=8"]).says("--max-clients");
}

#[test]
fn offered_rates_complete_the_schedule_that_a_setting_names() {
    let bench = Bench::new();
    let kind = ["--set", "schedule.kind=throttled", "--dry-run"];
    for verb in [
        &["sweep", "c", "--rates", "100,200"][..],
        &["slo", "c", "--p99", "5ms"],
        &["run", "c", "--rate", "100"],
    ] {
        bench.dyno(&[verb, &kind].concat()).expect(0);
    }
}

#[test]
fn unknown_keys_and_values_are_refused_before_the_first_run() {
    refused(&["sweep", "c", "--set", "server.cash=1GiB,2GiB"]).says("`server.cash`");
    // Dry runs refuse them as well.
    for more in [&[][..], &["--dry-run"]] {
        let cache = ["sweep", "c", "--set", "server.cache=1GiB,foo"];
        refused(&[&cache[..], more].concat()).says("`foo`");
        let clients = ["sweep", "c", "--clients", "1,1000000"];
        refused(&[&clients[..], more].concat()).says("1 to 100000");
    }
    refused(&["ab", "c", "--set-b", "server.cache=1GiB,2GiB"]).says("`server.cache`");
    refused(&["ab", "c", "no-such-plan"]).says("no-such-plan");
    refused(&["xmax", "c", "--set", "nothing=3"]).says("nothing");
    refused(&["slo", "c", "--p99", "5ms", "--set", "client.batch=x"]).says("client.batch");
}

#[test]
fn searches_need_an_objective_and_valid_limits() {
    refused(&["slo", "c"]).says("no objective").says("hint: ");
    refused(&["slo", "c", "--p99", "-1ms"]);
    refused(&["slo", "c", "--p99", "soon"]).says("soon");
    refused(&["slo", "c", "--p99.9", "0ms"]).says("--p99.9");
    for limit in
        [&["slo", "c", "--p99", "5"], &["tune", "c", "--p99", "5"], &["run", "c", "--below", "5"]]
    {
        refused(limit).says("`5ms`");
    }
    refused(&["slo", "c", "--p99", "5ms", "--resolution", "0"]).says("--resolution");
    for percentile in ["0=5ms", "100=5ms", "x=5ms", "75", "75=soon", "nan=5ms"] {
        refused(&["slo", "c", "--percentile", percentile]).says("--percentile");
    }
    refused(&["slo", "c", "--p99", "5ms", "--percentile", "99.0=6ms"]).says("two limits");
    refused(&["slo", "c", "--percentile", "75=0ms"]).says("--percentile");
    refused(&["slo", "c", "--p99", "5ms", "--errors", "2"]).says("`--errors`").says("`2`");
    refused(&["slo", "c", "--p99", "5ms", "--schedule", "closed"]).says("offered rate");
    refused(&["slo", "c", "--p99", "5ms", "--max-runs", "0"]).says("1..=10000");
    refused(&["xmax", "c", "--max-clients", "0"]).says("1..=100000");
    refused(&["xmax", "c", "--repeat", "0"]).says("1..=100");
    refused(&["ab", "c", "--max-pairs", "0"]).says("1..=1000");
    refused(&["ab", "c", "--min-pairs", "3", "--max-pairs", "2"]).says("`--min-pairs 3`");
    for margin in ["0", "100%", "nan", "x"] {
        refused(&["ab", "c", "--margin", margin]).says("--margin");
    }
}

#[test]
fn plans_that_cannot_be_searched_or_compared_are_refused() {
    let bench = Bench::new();
    let open = "base = \"c\"\n[schedule]\nkind = \"constant\"\nrate_per_s = 100\n";
    std::fs::write(bench.path("open.toml"), open).unwrap();
    bench.dyno(&["xmax", "open.toml"]).expect(2).says("`[schedule]`").says("hint: ");
    bench.dyno(&["ab", "c", "open.toml"]).expect(2).says("offered rate").says("hint: ");
    assert_eq!(bench.entries(), ["open.toml"]);
}

#[test]
fn unusable_folder_is_named_and_left_unchanged() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("full")).unwrap();
    std::fs::write(bench.path("full/mine"), "x").unwrap();
    std::fs::write(bench.path("file"), "x").unwrap();
    let long = format!("deep/{}", "a".repeat(300));
    let sweep = |out: &str| bench.dyno(&["sweep", "c", "--clients", "1", "--out", out]);
    sweep("full").expect(2).says("`full`").says("hint: ");
    for out in ["file", "file/below", "/proc/no", &long] {
        sweep(out).expect(3).says("cannot use").says("hint: ");
    }
    assert_eq!(bench.entries(), ["file", "full"]);
    assert_eq!(crate::common::names(&bench.path("full")), ["mine"]);
}

#[test]
fn unavailable_server_leaves_no_folder() {
    let bench = Bench::new();
    let common = ["sweep", "c", "--clients", "1,2", "--out", "one"];
    let nobody = ["--uri", "mongodb://127.0.0.1:1/"];
    bench.dyno(&[&common[..], &nobody].concat()).expect(3).says("Connection refused");
    let missing = ["--embedded-server", "/no/such/program"];
    bench.dyno(&[&common[..], &missing].concat()).expect(3).says("/no/such/program");
    assert_eq!(bench.entries(), Vec::<String>::new());
}

#[test]
fn failed_measurement_is_an_error_in_the_junit_file() {
    let bench = Bench::new();
    let ab = ["ab", "c", "--out", "x", "--fail-if-worse", "p99=10%", "--junit", "limits.xml"];
    let dry = ["--uri", "mongodb://127.0.0.1:1/", "--set-b", "server.cash=1GiB", "--dry-run"];
    bench.dyno(&[&ab[..], &dry].concat()).expect(2);
    assert_eq!(bench.entries(), Vec::<String>::new());
    for (more, code, reason) in
        [(&dry[..4], 2, "server.cash"), (&dry[..2], 3, "Connection refused")]
    {
        bench.dyno(&[&ab[..], more].concat()).expect(code).says(reason);
        let text = std::fs::read_to_string(bench.path("limits.xml")).unwrap();
        assert!(text.contains(r#"tests="1""#) && text.contains("<error"), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn resume_refuses_a_folder_without_an_experiment() {
    let bench = Bench::new();
    for name in ["empty", "broken", "newer"] {
        std::fs::create_dir(bench.path(name)).unwrap();
    }
    std::fs::write(bench.path("broken/experiment.json"), "{").unwrap();
    let newer = "{\"schema_version\": 99}";
    std::fs::write(bench.path("newer/experiment.json"), newer).unwrap();
    for (folder, text) in [
        ("nowhere", "`nowhere`"),
        ("empty", "`experiment.json`"),
        ("broken", "`broken/experiment.json`"),
        ("newer", "version 99"),
    ] {
        bench.dyno(&["resume", folder]).expect(2).says(text).says("hint: ");
    }
    assert_eq!(crate::common::names(&bench.path("empty")), Vec::<String>::new());
    let kept = std::fs::read_to_string(bench.path("newer/experiment.json")).unwrap();
    assert_eq!(kept, newer);
}

fn order(bench: &Bench, more: &[&str]) -> Vec<String> {
    let sweep = ["sweep", "c", "--clients", "1..20 by 1", "--dry-run"];
    let finished = bench.dyno(&[&sweep[..], more].concat()).expect(0);
    finished
        .stdout
        .lines()
        .filter(|line| line.starts_with("runs/"))
        .map(|line| line.split("client.clients=").nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn order_follows_the_seed_and_has_every_point_in_each_round() {
    let bench = Bench::new();
    let first = order(&bench, &["--seed", "1", "--repeat", "2"]);
    assert_eq!(first, order(&bench, &["--seed", "1", "--repeat", "2"]));
    assert_ne!(first, order(&bench, &["--seed", "2", "--repeat", "2"]));
    let given: Vec<String> = (1..=20).map(|clients| clients.to_string()).collect();
    for round in first.chunks(20) {
        assert_ne!(round, given);
        let mut sorted = round.to_vec();
        sorted.sort_by_key(|clients| clients.parse::<u32>().unwrap());
        assert_eq!(sorted, given);
    }
    assert_ne!(first[..20], first[20..]);
    assert_eq!(order(&bench, &["--order", "given"]), given);
    assert_eq!(bench.entries(), Vec::<String>::new());
}

/// Settings of the runs that a sweep would make.
fn dry(bench: &Bench, more: &[&str]) -> Vec<String> {
    let sweep = ["sweep", "c", "--dry-run"];
    let finished = bench.dyno(&[&sweep[..], more].concat()).expect(0);
    let runs = finished.stdout.lines().filter(|line| line.starts_with("runs/"));
    runs.map(|line| line.split_once("  ").unwrap().1.to_owned()).collect()
}

#[test]
fn clients_and_rates_are_two_blocks_unless_crossed() {
    let bench = Bench::new();
    let both = ["--clients", "1,2,40", "--rates", "100,200"];
    let given = [&both[..], &["--order", "given"]].concat();
    let closed = |clients: u32| format!("client.clients={clients} schedule.kind=closed");
    let open = |clients: u32, rate: u32, kind: &str| {
        format!("client.clients={clients} schedule.kind={kind} schedule.rate_per_s={rate}")
    };
    let blocks = |clients: u32, kind: &str| {
        let closed = [1, 2, 40].map(closed);
        let open = [100, 200].map(|rate| open(clients, rate, kind));
        [&closed[..], &open[..]].concat()
    };
    assert_eq!(dry(&bench, &given), blocks(40, "constant"));
    // The loop stays closed for every schedule, and the plan may have more clients than the list.
    std::fs::write(bench.path("plan.toml"), "base = \"c\"\n[client]\nclients = 64\n").unwrap();
    let random = ["sweep", "plan.toml", "--dry-run", "--schedule", "poisson"];
    let finished = bench.dyno(&[&random[..], &given].concat()).expect(0);
    for expected in blocks(64, "poisson") {
        assert!(
            finished.stdout.contains(&format!("{expected}\n")),
            "{expected}: {}",
            finished.stdout
        );
    }
    // Each round has all points of one block, then all points of the other, in its own order.
    let rounds = dry(&bench, &[&both[..], &["--repeat", "8"]].concat());
    let sorted = |some: &[String]| {
        let mut some = some.to_vec();
        some.sort();
        some
    };
    let expected = blocks(40, "constant");
    for round in rounds.chunks(5) {
        assert_eq!(sorted(&round[..3]), sorted(&expected[..3]));
        assert_eq!(sorted(&round[3..]), sorted(&expected[3..]));
    }
    assert!(rounds.chunks(5).any(|round| round[..3] != expected[..3]));
    assert!(rounds.chunks(5).any(|round| round[3..] != expected[3..]));
    let crossed = dry(&bench, &[&given[..], &["--cross"]].concat());
    let expected = [1, 2, 40].map(|clients| [100, 200].map(|rate| open(clients, rate, "constant")));
    assert_eq!(crossed, expected.concat());
    // A single value is not an axis: it combines with all values of the other list.
    let one = ["--clients", "1,2", "--rates", "100", "--order", "given"];
    assert_eq!(dry(&bench, &one), [1, 2].map(|clients| open(clients, 100, "constant")));
    for (option, values) in [("--clients", "1,2"), ("--rates", "100,200")] {
        refused(&["sweep", "c", option, values, "--cross"]).says("`--cross`").says("hint: ");
    }
}

#[test]
fn think_time_needs_a_closed_loop() {
    let think = ["--set", "client.think_time=5ms"];
    let searches: [&[&str]; 3] =
        [&["xmax", "c"], &["slo", "c", "--p99", "5ms"], &["sweep", "c", "--rates", "100,200"]];
    for search in searches {
        refused(&[search, &think].concat()).says("`client.think_time`");
    }
    let bench = Bench::new();
    let throttled = ["--rates", "100,200", "--schedule", "throttled", "--order", "given"];
    let expected =
        [100, 200].map(|rate| format!("schedule.kind=throttled schedule.rate_per_s={rate}"));
    assert_eq!(dry(&bench, &throttled), expected);
}

#[test]
fn offered_rates_keep_the_start_delay_limit_of_the_plan() {
    let bench = Bench::new();
    let open = "base = \"c\"\n[schedule]\nkind = \"constant\"\nrate_per_s = 10\nmax_start_delay = \"2s\"\n";
    std::fs::write(bench.path("plan.toml"), open).unwrap();
    let sweep = ["sweep", "plan.toml", "--dry-run", "--rates", "100,200"];
    let finished = bench.dyno(&sweep).expect(0);
    assert_eq!(finished.stdout.matches("schedule.max_start_delay=2s").count(), 2);
}

#[test]
fn every_option_of_the_experiments_is_documented() {
    let bench = Bench::new();
    let project = dyno_testkit::project_dir();
    let mut documents = String::new();
    for name in ["commands", "plans", "measuring", "record", "experiments", "servers", "wsf"] {
        let path = project.join("docs").join(format!("{name}.md"));
        documents += &std::fs::read_to_string(path).unwrap();
    }
    for verb in ["sweep", "xmax", "slo", "ab", "compare", "history", "resume"] {
        let help = bench.dyno(&[verb, "--help"]).expect(0).stdout;
        let options = help.split_whitespace().filter(|word| word.starts_with("--"));
        let missing: Vec<&str> = options
            .map(|word| word.split('[').next().unwrap_or_default())
            .map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
            .filter(|option| option.len() > 2 && !["--help", "--version"].contains(option))
            .filter(|option| !documents.contains(&format!("`{option}")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new(), "{verb}");
    }
}

#[test]
fn missing_secret_is_reported_once_before_the_first_run() {
    let bench = Bench::new();
    let exporter = "name = \"node\"\nurl = \"https://localhost:9100/metrics\"\ntoken_file = \"no-such-file\"\n";
    let plan = format!("base = \"c\"\n[[observe.exporters]]\n{exporter}");
    std::fs::write(bench.path("p.toml"), plan).unwrap();
    for verb in [&["sweep", "p.toml", "--clients", "1,2,3"][..], &["ab", "p.toml", "p.toml"]] {
        let finished = bench.dyno(verb).expect(2).says("exporter `node`");
        assert_eq!(finished.stderr.matches("no-such-file").count(), 1);
        assert_eq!(bench.entries(), ["p.toml"]);
    }
    bench.dyno(&["run", "p.toml"]).expect(2).says("`no-such-file`");
}

#[test]
fn schedule_kind_cannot_be_swept_together_with_rates() {
    let kinds = ["--set", "schedule.kind=constant,poisson"];
    refused(&[&["sweep", "c", "--rates", "100,200"][..], &kinds].concat())
        .says("`schedule.kind`")
        .says("`--schedule`");
}

#[test]
fn resume_refuses_to_mix_runs_from_two_hosts() {
    let bench = Bench::new();
    let responder = Responder::with_documents(&[]);
    let uri = responder.uri();
    let sweep = ["sweep", "read", "--uri", &uri, "--clients", "1,2", "--out", "x"];
    let short = ["--records", "1000", "--duration", "1s", "--warmup", "0s"];
    let resume = ["resume", "x", "--format", "json"];
    bench.dyno(&[&sweep[..], &short].concat()).expect(0);
    let mixed = |document: &Value| {
        let mut mixed = document["caveats"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|caveat| caveat["kind"] == "mixed_runs");
        mixed.next().map(|caveat| caveat["values"].to_string())
    };
    assert_eq!(mixed(&bench.dyno(&resume).expect(0).json()), None);
    let runs = names(&bench.path("x/runs"));
    let first = bench.path(&format!("x/runs/{}/run.json", runs[0]));
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    run["environment"]["hostname"] = "elsewhere".into();
    std::fs::write(&first, run.to_string()).unwrap();
    std::fs::remove_file(bench.path("x/SHA256SUMS")).unwrap();
    let reported =
        mixed(&bench.dyno(&resume).expect(0).json()).expect("the experiment has runs of two hosts");
    assert!(reported.contains("\"host\"") && reported.contains("elsewhere"), "{reported}");
    // The missing run would be made on another host than the first run.
    std::fs::remove_dir_all(bench.path(&format!("x/runs/{}", runs[1]))).unwrap();
    std::fs::remove_file(bench.path("x/SHA256SUMS")).unwrap();
    bench.dyno(&resume).expect(3).says("elsewhere");
    assert!(!bench.path(&format!("x/runs/{}", runs[1])).exists());
}

#[test]
fn dry_run_says_how_many_runs_and_how_long() {
    let bench = Bench::new();
    for (arguments, expected) in [
        (
            &["ab", "c", "--set-b", "data.compressible_ratio=0.5"][..],
            "up to 20 pairs, 4 to 24 minutes",
        ),
        (&["ab", "c", "--min-pairs", "2", "--max-pairs", "2"], "2 pairs, about 2 minutes"),
        // Each run starts its server.
        (
            &["ab", "c", "--set-b", "server.cache=300MiB", "--min-pairs", "2", "--max-pairs", "2"],
            "2 pairs, about 3 minutes",
        ),
        (&["ab", "c", "--time-limit", "5m"], "up to 20 pairs, 4 to 6 minutes"),
        (&["sweep", "c", "--clients", "1,2", "--duration", "20s"], "2 runs, about 51 seconds"),
        (&["sweep", "c", "--set", "phases.duration=30s,60s"], "2 runs, about 2 minutes"),
        (&["slo", "c", "--p99", "5ms"], "up to 60 runs after the closed loop, "),
        (&["slo", "c", "--p99", "5ms", "--time-limit", "2m"], "closed loop, about 3 minutes"),
        (&["xmax", "c"], "up to 69 runs, "),
        (&["run", "a", "b", "--repeat", "2"], "4 runs, about 2 minutes"),
    ] {
        let stdout = bench.dyno(&[arguments, &["--dry-run"]].concat()).expect(0).stdout;
        assert!(stdout.contains(expected), "{arguments:?} {stdout}");
    }
    assert_eq!(bench.entries(), Vec::<String>::new());
}
