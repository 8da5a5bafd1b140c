//! Searches for better settings, against responders with known parameter effects, and on a real `mongod`.

use crate::common::{Bench, Finished, Responder, control, names, signal, wait_for};
use bson::doc;
use dyno_testkit::{go_before_others, mongod_program, or_skip};
use serde_json::Value;

/// A command takes 2 ms with the best values, `threads` at 16 and `delay` at 8, and 3.6 ms with the initial values: half as many
/// threads cost more with a longer delay. Two parameters have no effect.
const SURFACE: [&str; 10] = [
    "--service-us",
    "2000",
    "--parameter",
    "threads=4,best=16,weight=0.08,with=delay,product=-0.02",
    "--parameter",
    "delay=64,best=8,weight=0.04",
    "--parameter",
    "idle=4",
    "--parameter",
    "other=4",
];

const KNOBS: [&str; 8] = [
    "--knobs",
    "threads=2,4,8,16,32",
    "--knobs",
    "delay=4,8,16,32,64",
    "--knobs",
    "idle=1,2,4,8",
    "--knobs",
    "other=1,2,4,8",
];

fn against<'a>(uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["tune", "read", "--uri", uri, "--out", "t", "--format", "json"];
    let data = ["--records", "1000", "-p", "insertorder=ordered"];
    let short = ["--warmup", "0s", "--duration", "500ms", "--clients", "2"];
    [&fixed[..], &data, &short, more].concat()
}

/// Replaces some arguments.
fn replaced<'a>(mut arguments: Vec<&'a str>, words: &[(&str, &'a str)]) -> Vec<&'a str> {
    for (word, other) in words {
        let place = arguments.iter().position(|one| one == word).unwrap();
        arguments[place] = other;
    }
    arguments
}

/// Length of a run's measure phase; 0 if the run has no record because its first command failed.
fn measured_s(bench: &Bench, search: &str, point: &Value) -> f64 {
    let run = point["directory"].as_str().unwrap();
    let path = bench.path(&format!("{search}/{run}/run.json"));
    let Ok(text) = std::fs::read_to_string(path) else {
        return 0.0;
    };
    let run: Value = serde_json::from_str(&text).unwrap();
    let measure =
        run["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap();
    measure["duration_s"].as_f64().unwrap()
}

fn surface() -> Responder {
    go_before_others();
    Responder::with_documents(&SURFACE)
}

/// The server's current value of the parameter `threads`, which is 4 initially.
fn threads(uri: &str) -> i32 {
    let command = doc! { "getParameter": 1, "threads": 1 };
    let reply = control(uri).run("admin", command).unwrap();
    reply.get_i32("threads").unwrap()
}

fn comparisons(document: &Value, purpose: &str) -> usize {
    document["answer"]["trials"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|trial| trial["purpose"] == purpose)
        .count()
}

#[test]
fn search_finds_and_confirms_the_settings_that_matter() {
    let (bench, server) = (Bench::new(), surface());
    let uri = server.uri();
    let more = ["--budget", "100s", "--margin", "10%"];
    let arguments = against(&uri, &[&KNOBS[..], &more].concat());
    let found = bench.dyno(&arguments).expect(0).json();
    let answer = &found["answer"];
    // Neighbours of the best value are equally good within the margin.
    let threads = answer["settings"]["threads"].as_str();
    let threads = threads.unwrap_or_else(|| panic!("{answer:#}"));
    assert!(["8", "16", "32"].contains(&threads), "{answer}");
    for idle in ["idle", "other"] {
        assert_eq!(answer["settings"][idle], Value::Null, "{answer}");
    }
    assert!(answer["ratio"]["low"].as_f64().unwrap() > 1.0, "{answer}");
    // `dyno ab` gives the same answer for the same pairs.
    let compared = &answer["comparison"]["comparisons"][0];
    let both = [&answer["ratio"], &compared["ratio"]];
    let [tuned, ab] = both.map(|ratio| ratio["value"].as_f64().unwrap());
    assert!((tuned / ab - 1.0).abs() < 1e-6, "{tuned} {ab}");
    assert_eq!(compared["verdict"], "faster", "{compared}");
    assert!(comparisons(&found, "search") >= 3 && comparisons(&found, "confirm") >= 1);
    // The search restores the parameters that it changed.
    assert_eq!(self::threads(&uri), 4);
    let state = names(&bench.path("state"));
    assert!(!state.contains(&"doctor-undo.json".to_owned()), "{state:?}");
    let key = answer["keys"]["server.runtime_parameters.threads"].as_str().unwrap();
    assert_eq!(key, threads);
    let text = bench.dyno(&["report", "t", "--full"]).expect(0).stdout;
    let command = format!("db.adminCommand({{setParameter: 1, threads: {threads}}})");
    let kept = format!("+ threads: {threads}");
    let undone = "db.adminCommand({setParameter: 1, threads: 4})";
    for part in [command.as_str(), undone, "- setParameter:", "- - threads: 4", kept.as_str()] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn search_shortens_p99_and_refuses_a_goal_without_cpu_time() {
    go_before_others();
    let bench = Bench::new();
    // A command takes 18 ms initially, and 2 ms with the best value; one begins every 25 ms.
    let slow = "threads=4,best=16,weight=2";
    let parameters = ["--parameter", slow, "--parameter", "idle=4"];
    let service = ["--service-us", "2000"];
    let server = Responder::with_documents(&[&service[..], &parameters].concat());
    let uri = server.uri();
    let knobs = ["--knobs", "threads=4,16", "--knobs", "idle=4,8"];
    let goal = ["--goal", "p99", "--rate", "40"];
    let more = ["--margin", "30%", "--budget", "20s"];
    let arguments = against(&uri, &[&knobs[..], &goal, &more].concat());
    let arguments = replaced(arguments, &[("500ms", "300ms")]);
    // The p99 of twelve commands is the longest time. If something else occupies the CPUs for that long, no gain is proven and
    // the test tries again; a false gain is never found.
    let settings = serde_json::json!({ "threads": "16" });
    let names = ["t", "t2", "t3"];
    let searches = names.into_iter().map(|name| {
        let arguments = replaced(arguments.clone(), &[("t", name)]);
        let found = bench.dyno(&arguments).expect(0).json();
        (name, found["answer"].clone())
    });
    let mut proven = searches.filter(|(_, answer)| answer["settings"] != serde_json::json!({}));
    let (name, answer) = proven.next().expect("a gain of 9 to 1 must be proven");
    assert_eq!(answer["settings"], settings, "{answer:#}");
    let before_us = answer["baseline"]["value"].as_f64().unwrap();
    assert!(before_us > 17_900.0, "{before_us}");
    let [ratio, high] = ["value", "high"].map(|part| answer["ratio"][part].as_f64().unwrap());
    assert!(ratio < 0.5 && high < 1.0, "{answer:#}");
    assert_eq!(threads(&uri), 4);
    let text = bench.dyno(&["report", name]).expect(0).stdout;
    assert!(text.contains("p99 response, change"), "{text}");
    // Twelve commands use far less CPU time than a tick of the kernel's clock.
    let arguments = replaced(arguments, &[("p99", "cpu"), ("t", "cpu")]);
    let refused = bench.dyno(&arguments).expect(3);
    refused.says("`read`").says("hint: ");
}

#[test]
fn failing_settings_are_given_up_and_restored() {
    go_before_others();
    let bench = Bench::new();
    // A command takes 3 ms initially, 9 ms with one thread, and all fail with more than 8.
    let cliff = ["--service-us", "1000", "--parameter", "threads=4,best=16,weight=0.5,limit=8"];
    let server = Responder::with_documents(&cliff);
    let uri = server.uri();
    let knobs = ["--knobs", "threads=2,4,8,16,32,64", "--budget", "26s"];
    let found = bench.dyno(&against(&uri, &knobs)).expect(0).json();
    let trials = found["answer"]["trials"].as_array().unwrap();
    let failed: Vec<&Value> = trials.iter().filter(|trial| trial["problem"].is_string()).collect();
    assert!((1..=3).contains(&failed.len()), "{trials:?}");
    for trial in failed {
        let pair = trial["runs"].as_array().unwrap().last().unwrap();
        let run = &pair[0];
        let point = &found["points"][run.as_u64().unwrap() as usize];
        assert_eq!(point["figures"], Value::Null);
    }
    assert_eq!(threads(&uri), 4);
    assert_ne!(found["answer"]["settings"]["threads"], "16");
    long_runs_end_early(&bench, &uri);
    assert_eq!(threads(&uri), 4);
}

/// A failing run ends after its first window, and a run at a third of the usual rate ends halfway, which does not count as harm.
fn long_runs_end_early(bench: &Bench, uri: &str) {
    let knobs = ["--knobs", "threads=1,16", "--budget", "140s"];
    let longer = [("500ms", "5s"), ("t", "long")];
    let arguments = replaced(against(uri, &knobs), &longer);
    let found = bench.dyno(&arguments).expect(0);
    assert!(found.stderr.contains("after 3.0 s"), "{}", found.stderr);
    let found = found.json();
    let mut caveats = found["caveats"].as_array().unwrap().iter();
    assert!(!caveats.any(|caveat| caveat["kind"] == "partial"));
    let trials = found["answer"]["trials"].as_array().unwrap().iter();
    let with = |value: &str| {
        let trial = trials.clone().find(|one| one["settings"]["threads"] == value);
        let trial = trial.unwrap_or_else(|| panic!("{value}: {}", found["answer"]));
        let point = &found["points"]
            [trial["runs"].as_array().unwrap().last().unwrap()[0].as_u64().unwrap() as usize];
        (trial, point, measured_s(bench, "long", point))
    };
    let (_, point, length_s) = with("16");
    assert_eq!(point["figures"], Value::Null);
    // The next window has begun when a window is checked.
    assert!(length_s < 2.0, "{length_s} of 5 s: {point}");
    let is_marked = |point: &Value, length_s: f64| {
        let after_s = point["ended_after_s"].as_f64().unwrap_or(0.0);
        (after_s - length_s).abs() < 1e-6
    };
    assert!(is_marked(point, length_s), "{length_s}: {point}");
    let (trial, point, length_s) = with("1");
    assert!(is_marked(point, length_s), "{length_s}: {point}");
    assert_eq!((&trial["problem"], &trial["is_dropped"]), (&Value::Null, &true.into()));
    assert!(point["figures"].is_object(), "{point}");
    assert!((3.0..4.0).contains(&length_s), "{length_s} of 5 s: {point}");
}

#[test]
fn slow_settings_end_after_one_window() {
    go_before_others();
    let bench = Bench::new();
    // A command takes 0.5 ms initially, or 16 ms with 32 clients, and 10 ms or more with the tried settings, or 320 ms with 32
    // clients.
    let slow = "threads=4,best=4,weight=2.1";
    let server = Responder::with_documents(&["--service-us", "500", "--parameter", slow]);
    let uri = server.uri();
    let knobs = ["--knobs", "threads=32,64", "--budget", "110s"];
    // Up to 35 % of a window's operations may take longer than twice the limit.
    let limits = ["--percentile", "93=100ms", "--errors", "1%"];
    let limited = [&knobs[..], &limits].concat();
    let longer = [("500ms", "3s"), ("2", "32")];
    let arguments = replaced(against(&uri, &limited), &longer);
    let found = bench.dyno(&arguments).expect(0).json();
    let question = found["question"].as_str().unwrap();
    for limit in ["p93", "100 ms", "1 %"] {
        assert!(question.contains(limit), "{question}");
    }
    assert_eq!(found["options"]["tune"]["failed_ratio"], 0.01);
    let ended: Vec<&Value> = found["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|point| point["problem"].is_string())
        .collect();
    assert!((1..=3).contains(&ended.len()), "{ended:?}");
    for point in ended {
        let length_s = measured_s(&bench, "t", point);
        // The second window has begun when the first one is checked.
        assert!(length_s < 2.0, "{length_s} of 3 s: {point}");
        let problem = point["problem"].as_str().unwrap();
        assert!(problem.ends_with("200 ms"), "{problem}");
    }
    assert_eq!(threads(&uri), 4);
    let text = bench.dyno(&["report", "t"]).expect(0).stdout;
    assert!(text.contains("no gain"), "{text}");
    let mut findings = found["findings"].as_array().unwrap().iter();
    assert!(!findings.any(|finding| finding["code"] == "tune-nothing-to-gain"));
    let answer = &found["answer"];
    assert_eq!(answer["settings"], serde_json::json!({}));
    assert_eq!(answer["ratio"], Value::Null);
    let full = bench.dyno(&["report", "t", "--full"]).expect(0).stdout;
    assert!(full.contains("  p93, at most"), "{full}");
    // A baseline that is too slow is reported at once.
    let limits = ["--percentile", "75=100us", "--budget", "26s"];
    let limited = [&knobs[..2], &limits].concat();
    let arguments = replaced(against(&uri, &limited), &[("t", "slow")]);
    let refused = bench.dyno(&arguments).expect(3);
    refused.says("`read`").says("p75");
}

#[test]
fn refused_settings_are_tried_once_and_do_no_harm() {
    let (bench, server) = (Bench::new(), surface());
    let uri = server.uri();
    // The responder accepts values above 0. Most values in the range are below 0, so that every search meets one.
    let knobs = ["--knobs", "threads=-8,-4,-2,-1,0,8", "--budget", "40s"];
    // The responder does not have a parameter with this name.
    let knobs = [&knobs[..], &["--knobs", "thread=1,2"]].concat();
    let found = bench.dyno(&against(&uri, &knobs)).expect(0).json();
    let trials = found["answer"]["trials"].as_array().unwrap().iter();
    let refused: Vec<&Value> = trials.clone().filter(|one| one["is_refused"] == true).collect();
    let values = refused.iter().map(|one| one["settings"]["threads"].as_str());
    let mut values: Vec<&str> = values.map(|value| value.unwrap()).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!((values.len(), values.is_empty()), (refused.len(), false));
    for one in &refused {
        let reason = one["problem"].as_str().unwrap();
        let value = one["settings"]["threads"].as_str().unwrap();
        for part in ["`threads`", &format!("`{value}`")] {
            assert!(reason.contains(part), "{reason}");
        }
    }
    let left_out = &found["options"]["tune"]["left_out"][0];
    assert_eq!(left_out["name"], "thread");
    assert!(left_out["reason"].as_str().unwrap().contains("`threads`"), "{left_out}");
    let harmed = trials.filter(|one| one["problem"].is_string() && one["is_refused"] != true);
    assert_eq!(harmed.count(), 0);
    let text = bench.dyno(&["report", "t", "--full"]).expect(0).stdout;
    assert!(text.contains("refused: `threads`"), "{text}");
    let codes: Vec<&Value> =
        found["findings"].as_array().unwrap().iter().map(|finding| &finding["code"]).collect();
    assert!(codes.iter().any(|code| *code == "tune-refused-settings"));
    assert!(!codes.iter().any(|code| *code == "tune-harmful-settings"));
}

#[test]
fn disturbed_pairs_are_repeated_when_a_search_resumes() {
    let (bench, server) = (Bench::new(), surface());
    let uri = server.uri();
    // No machine loses that much by itself.
    let more = ["--knobs", "threads=4,8", "--budget", "30s", "--max-steal", "99%"];
    let before = bench.dyno(&against(&uri, &more)).expect(0).json();
    // A resumed search does not need to read the first runs again.
    assert!(before["options"]["tune"]["may_stall"].is_boolean());
    let count = |document: &Value| document["points"].as_array().unwrap().len();
    let resume = ["resume", "t", "--uri", &uri, "--format", "json"];
    let same = bench.dyno(&resume).expect(0).json();
    assert_eq!(same["answer"], before["answer"]);
    let last = count(&before) - 1;
    let path = bench.path("t/experiment.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["points"][last]["figures"]["stolen_ratio"] = 1.0.into();
    std::fs::write(&path, document.to_string()).unwrap();
    std::fs::remove_file(bench.path("t/SHA256SUMS")).unwrap();
    let found = bench.dyno(&resume).expect(0).json();
    assert!(count(&found) >= count(&before) + 2, "{}", count(&found));
    // Existing runs are not repeated.
    for place in 0..=last {
        let [one, other] = [&before, &found].map(|document| &document["points"][place]);
        assert_eq!(one["figures"]["rate_per_s"], other["figures"]["rate_per_s"]);
    }
    let set_aside = found["answer"]["trials"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|trial| trial["set_aside"].get(0));
    let set_aside = set_aside.unwrap();
    assert_eq!(set_aside["stolen_ratio"], 1.0);
    assert!(set_aside["runs"].as_array().unwrap().contains(&last.into()), "{set_aside}");
    let text = bench.dyno(&["report", "t", "--full"]).expect(0).stdout;
    // In the table of its comparison, and below.
    assert!(text.matches("1 pair ").count() >= 2, "{text}");
    // The record alone leads to the same answer.
    let again = bench.dyno(&resume).expect(0).json();
    assert_eq!(again["answer"], found["answer"]);
}

#[test]
fn killed_search_resumes_where_it_stopped() {
    let (bench, server) = (Bench::new(), surface());
    let uri = server.uri();
    let arguments = against(&uri, &["--knobs", "threads=2,4,8,16", "--budget", "30s"]);
    let mut child = bench.spawn(&arguments);
    let runs = bench.path("t/runs");
    wait_for("six runs, and a changed setting in the last one", || {
        runs.exists() && names(&runs).len() >= 6 && threads(&uri) != 4
    });
    signal(&child, "KILL");
    child.wait().unwrap();
    let kept = names(&runs);
    // Settings of the killed search must be restored first.
    assert_ne!(threads(&uri), 4);
    let reverted = bench.dyno(&["doctor", "--revert"]).expect(0).stdout;
    assert!(reverted.contains("`4`"), "{reverted}");
    assert_eq!(threads(&uri), 4);
    let document: Value =
        bench.dyno(&["resume", "t", "--uri", &uri, "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "complete");
    let all: Vec<&str> = document["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["directory"].as_str().unwrap().trim_start_matches("runs/"))
        .collect();
    assert!(kept[..5].iter().all(|run| all.contains(&run.as_str())), "{kept:?} {all:?}");
}

/// Reads without a pause, and reads after which each client thinks for 40 ms: two clients keep the server busy with the first
/// workload, and eight do not with the second. So only the service time limits the first workload, and only the number of clients
/// limits the second.
fn busy_and_thinking(bench: &Bench) {
    let read = "[operations]\nread = 1.0\n[keys]\ndistribution = 'uniform'\n";
    let busy = format!("name = 'busy'\n{read}");
    let thinking = format!("name = 'thinking'\n{read}[client]\nthink_time = '40ms'\n");
    let clients = "[[knobs]]\nname = 'clients'\ngroup = 'own'\nkey = 'client.clients'\nvalues = ['2', '8']\ndefault = '2'\n";
    for (file, text) in
        [("busy.toml", busy.as_str()), ("thinking.toml", &thinking), ("knobs.toml", clients)]
    {
        std::fs::write(bench.path(file), text).unwrap();
    }
}

/// Resumes a search for two workloads, and ends it by Ctrl-C during the search for the second one. Returns the runs that exist
/// then.
fn interrupted_in_the_second_search(bench: &Bench, resume: &[&str]) -> Vec<String> {
    let runs = bench.path("t/runs");
    let child = bench.spawn(resume);
    // The first runs of both have no settings.
    let is_tried = |name: &String| name.contains("-thinking-clients-");
    wait_for("a trial of the second search", || names(&runs).iter().any(is_tried));
    signal(&child, "INT");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(130);
    ended.says("dyno resume t");
    assert!(!bench.path("state/doctor-undo.json").exists());
    let stopped = bench.dyno(&["report", "t", "--format", "json"]).expect(0).json();
    assert_eq!(stopped["status"], "partial");
    names(&runs)
}

#[test]
fn workloads_are_compared_with_the_settings_of_each_other() {
    go_before_others();
    let bench = Bench::new();
    busy_and_thinking(&bench);
    // A command takes 1.8 ms initially, and 1 ms with the best value.
    let best = "threads=4,best=16,weight=0.2";
    let server = Responder::with_documents(&["--service-us", "1000", "--parameter", best]);
    let uri = server.uri();
    let more = ["--across", "thinking.toml", "--knobs", "./knobs.toml"];
    let knobs = ["--knobs", "threads=4,16", "--budget", "110s", "--margin", "10%"];
    let mut arguments = against(&uri, &[&more[..], &knobs].concat());
    arguments[1] = "busy.toml";
    let planned = bench.dyno(&[&arguments[..], &["--dry-run"]].concat());
    let planned = planned.expect(0).stdout;
    for part in ["`busy`", "`thinking`", "8 runs"] {
        assert!(planned.contains(part), "{part}: {planned}");
    }
    // A killed search can be resumed; here it was searching for the first workload.
    let mut child = bench.spawn(&arguments);
    let runs = bench.path("t/runs");
    wait_for("twelve runs", || runs.exists() && names(&runs).len() >= 12);
    signal(&child, "KILL");
    child.wait().unwrap();
    bench.dyno(&["doctor", "--revert"]).expect(0);
    let resume = ["resume", "t", "--uri", &uri, "--format", "json"];
    let kept = interrupted_in_the_second_search(&bench, &resume);
    assert_eq!(threads(&uri), 4);
    let found = bench.dyno(&resume).expect(0).json();
    assert_eq!(found["status"], "complete");
    let done: Vec<&str> = found["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["directory"].as_str().unwrap())
        .collect();
    let (_, whole) = kept.split_last().unwrap();
    for run in whole {
        assert!(done.contains(&format!("runs/{run}").as_str()), "{run}");
    }
    let answer = &found["answer"];
    assert_eq!(answer["kind"], "tune_across");
    let [busy, thinking] = [0, 1].map(|place| &answer["winners"][place]);
    assert!(busy["settings"]["threads"].is_string(), "{busy}");
    assert_eq!(busy["settings"]["clients"], Value::Null, "{busy}");
    assert_eq!(thinking["settings"]["clients"], "8", "{thinking}");
    for (winner, other) in [(busy, 1), (thinking, 0)] {
        let on = &winner["on"][other];
        assert!(on["pairs"].as_u64().unwrap() >= 4, "{on}");
    }
    // Without the clients the workload reaches a quarter of the rate; a stall of the machine takes some of the gain from four
    // pairs.
    let without = &busy["on"][1]["beside_own"]["value"];
    assert!(without.as_f64().unwrap() < 0.8, "{busy}");
    // Together the settings serve both workloads, which a stall may keep from being proven.
    let together = &answer["together"];
    assert_eq!(together["settings"]["clients"], "8", "{answer}");
    assert_eq!(together["settings"]["threads"], "16", "{answer}");
    assert_eq!(together["on"].as_array().unwrap().len(), 2, "{together}");
    let text = bench.dyno(&["report", "t", "--full"]).expect(0).stdout;
    for part in [
        "dyno run thinking --set 'client.clients=8'",
        "db.adminCommand({setParameter: 1, threads: 4})",
        "thinking: Comparisons",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let table = bench.dyno(&["export", "t", "--to", "csv"]).expect(0).stdout;
    assert!(table.contains(",thinking,"), "{table}");
    let state = names(&bench.path("state"));
    assert!(!state.contains(&"doctor-undo.json".to_owned()), "{state:?}");
}

#[test]
fn settings_are_restored_after_an_interrupt_or_a_lost_server() {
    let (bench, server) = (Bench::new(), surface());
    let uri = server.uri();
    let threads = || self::threads(&uri);
    let arguments = against(&uri, &["--knobs", "threads=8,16", "--budget", "30s"]);
    let child = bench.spawn(&arguments);
    wait_for("a run that has set it", || threads() != 4);
    signal(&child, "INT");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(130);
    ended.says("dyno resume t");
    assert_eq!(threads(), 4);
    assert!(!bench.path("state/doctor-undo.json").exists());
    // The settings of a lost server cannot be restored: the list keeps the original values.
    let mut child = bench.spawn(&["resume", "t", "--uri", &uri]);
    wait_for("a run that has set it again", || threads() != 4);
    let address = server.address.clone();
    let port = address.rsplit(':').next().unwrap();
    drop(server);
    assert_ne!(child.wait().unwrap().code(), Some(0));
    let list = std::fs::read_to_string(bench.path("state/doctor-undo.json")).unwrap();
    assert!(list.contains("threads"), "{list}");
    let reverted = bench.dyno(&["doctor", "--revert"]).expect(1);
    reverted.says(&address);
    // Once the server is back, its values are restored.
    let arguments = [&SURFACE[..], &["--port", port]].concat();
    let _again = Responder::with_documents(&arguments);
    let set = doc! { "setParameter": 1, "threads": 16 };
    control(&uri).run("admin", set).unwrap();
    bench.dyno(&["doctor", "--revert"]).expect(0);
    assert_eq!(threads(), 4);
    assert!(!bench.path("state/doctor-undo.json").exists());
}

#[test]
fn invalid_searches_are_refused_before_the_first_run() {
    let bench = Bench::new();
    let refused = |more: &[&str], says: &str| {
        let fixed = ["tune", "read", "--uri", "mongodb://127.0.0.1:1/", "--out", "t"];
        bench.dyno(&[&fixed[..], more].concat()).expect(2).says(says);
        assert!(!bench.path("t").exists());
    };
    refused(&["--goal", "p99"], "`--rate 5k`");
    refused(&["--rate", "100"], "`--goal cpu`");
    refused(&["--goal", "p99", "--rate", "100", "--p99", "5ms"], "`--goal rate`");
    let p99 = ["--goal", "p99", "--rate", "100", "--percentile", "99=5ms"];
    refused(&p99, "`--goal rate`");
    refused(&["--p99.9", "0ms"], "--p99.9 <TIME>");
    refused(&["--p50", "1ms", "--percentile", "50=2ms"], "`p50`");
    refused(&["--errors", "150%"], "`1.5`");
    refused(&["--budget", "10s"], "`--budget`");
    refused(&["--across", "a,read"], "`read`");
    refused(&["--across", "a,nowhere"], "nowhere");
    refused(&["--across", "a", "--budget", "200s"], "2 workloads");
    // Each run would find the documents that earlier runs have inserted.
    refused(&["--across", "d"], "`--fresh`");
    refused(&["--knobs", "evictions"], "`evictions`");
    refused(&["--knobs", "cache"], "--allow restart");
    refused(&["--knobs", "cache", "--allow", "restart"], "`dyno`");
    let alone = ["tune", "d", "--uri", "mongodb://127.0.0.1:1/", "--out", "t"];
    bench.dyno(&alone).expect(2).says("`--fresh`");
    let embedded = ["tune", "read", "--server", "embedded", "--out", "t"];
    bench.dyno(&embedded).expect(2).says("`--server mongod`");
    // The current storage of the data is not a value of the key.
    let storage = "[[knobs]]\nname = 'storage'\ngroup = 'own'\nkey = 'server.storage'\nordered = false\n\
                   values = ['ext4 on loop:1GiB', 'xfs on loop:1GiB']\ndefault = 'ext4 on loop:1GiB'\n";
    std::fs::write(bench.path("storage.toml"), storage).unwrap();
    let knobs = ["--knobs", "./storage.toml", "--allow", "restart"];
    let stored = [&["tune", "read", "--server", "embedded", "--out", "t"][..], &knobs].concat();
    let refused = bench.dyno(&stored).expect(2);
    refused.says("`storage`").says("--set 'server.storage=");
    assert!(!bench.path("t").exists());
}

#[test]
fn server_restarts_for_knobs_that_need_it() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    let folder = bench.path("knobs.toml");
    std::fs::write(
        &folder,
        "[[knobs]]\nname = 'compressor'\ngroup = 'own'\nkey = 'server.journal_compressor'\nvalues = ['none', 'snappy']\n\
         ordered = false\ndefault = 'snappy'\n\
         [[knobs]]\nname = 'eviction'\ngroup = 'own'\nkey = 'server.runtime_parameters.wiredTigerEngineRuntimeConfig'\n\
         text = 'eviction_dirty_target={}'\nvalues = ['2', '5']\ndefault = '5'\n",
    )
    .unwrap();
    let fixed = ["tune", "a", "--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    let small = ["--records", "300", "--clients", "2", "--warmup", "0s", "--duration", "1s"];
    let knobs = ["--knobs", folder.to_str().unwrap(), "--allow", "restart"];
    let more = ["--budget", "100s", "--out", "t", "--format", "json"];
    let found = bench.dyno(&[&fixed[..], &small, &knobs, &more].concat()).expect(0).json();
    assert_eq!(found["status"], "complete");
    let options = &found["options"]["tune"];
    assert_eq!(options["knobs"].as_array().unwrap().len(), 2);
    let points = found["points"].as_array().unwrap();
    let key = "server.journal_compressor";
    let set = points.iter().find(|point| point["settings"][key] == "none");
    let run = set.expect("the setting must have been tried")["directory"].as_str().unwrap();
    let text = std::fs::read_to_string(bench.path(&format!("t/{run}/run.json"))).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["server"]["members"][0]["found"]["journal_compressor"], "none");
}
