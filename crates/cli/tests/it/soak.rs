//! Runs that last for hours: status, remote end, disk limits, and metrics.

use crate::common::{Bench, Finished, Responder, names, reads, wait_for, wait_for_windows};

/// A soak of reads. It writes little, because it must run on a nearly full disk.
fn soak<'a>(uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = reads(uri, &[&["--least-free", "1MiB"], more].concat());
    arguments[0] = "soak";
    arguments
}

#[test]
fn a_soak_is_seen_and_ended_from_another_terminal() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    bench.dyno(&["status"]).expect(1);
    bench.dyno(&["stop"]).expect(3).says("`dyno status`");
    let mut child = bench.spawn(&soak(&uri, &["--rate", "200", "--out", "r"]));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    let seen = bench.dyno(&["status"]).expect(0).stdout;
    assert!(seen.contains("measure: ") && seen.contains("of 1 h"), "{seen}");
    let seen = bench.dyno(&["status", "--json"]).expect(0).json();
    assert_eq!(seen[0]["process"], child.id());
    assert_eq!(seen[0]["planned_s"], 3_600.0);
    assert!(seen[0]["done"].as_u64().unwrap() > 100, "{seen}");
    let by_folder = bench.dyno(&["status", "r", "--json"]).expect(0).json();
    assert_eq!(by_folder[0]["directory"], seen[0]["directory"]);
    bench.dyno(&["stop"]).expect(0).says("ended");
    let finished = Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert!(finished.stderr.contains("interrupted"), "{}", finished.stderr);
    bench.dyno(&["status"]).expect(1);
    assert!(!names(&bench.path("r")).contains(&"live.json".to_owned()));
    bench.dyno(&["report", "r"]).expect(0);
}

#[test]
fn stop_needs_a_folder_when_several_runs_are_active() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let children = ["r1", "r2"].map(|out| {
        let mut child = bench.spawn(&soak(&uri, &["--rate", "100", "--out", out]));
        wait_for_windows(&mut child, &bench.path(out), 1);
        child
    });
    bench.dyno(&["stop"]).expect(2).says("/r1`").says("/r2`");
    for out in ["r1", "r2"] {
        bench.dyno(&["stop", out]).expect(0);
    }
    for child in children {
        Finished::from(child.wait_with_output().unwrap()).expect(130);
    }
}

#[test]
fn a_soak_ends_when_its_server_is_away_for_too_long() {
    let (bench, mut responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let limits = ["--give-up", "2s", "--timeout", "500ms"];
    let arguments = soak(&uri, &[&limits[..], &["--rate", "100", "--out", "r"]].concat());
    let mut child = bench.spawn(&arguments);
    wait_for_windows(&mut child, &bench.path("r"), 2);
    responder.kill();
    Finished::from(child.wait_with_output().unwrap()).expect(3).says("dyno report r");
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "failed");
    assert_eq!(document["plan"]["client"]["give_up"], "2s");
}

/// The time of the last recorded value of this metric; 0 if there is none yet.
fn last_reported_s(run: &std::path::Path, metric: &str) -> f64 {
    let folder = run.join("metrics");
    let texts = names(&folder)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(folder.join(file)).ok());
    let of_file = |text: String| -> Option<f64> {
        let mut lines = text.lines();
        let place = lines.next()?.split(',').position(|name| name == metric)?;
        let mut reported =
            lines.filter(|line| line.split(',').nth(place).is_some_and(|value| !value.is_empty()));
        reported.next_back()?.split(',').next()?.parse().ok()
    };
    texts.filter_map(of_file).fold(0.0, f64::max)
}

#[test]
fn soak_continues_when_its_server_comes_back() {
    let (bench, mut responder) = (Bench::new(), Responder::with_documents(&[]));
    let (uri, address) = (responder.uri(), responder.address.clone());
    let limits = ["--give-up", "60s", "--timeout", "500ms", "--tolerate-errors", "1"];
    let length = ["--rate", "100", "--out", "r", "--duration", "10m"];
    let mut child = bench.spawn(&soak(&uri, &[&limits[..], &length].concat()));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    responder.kill();
    let rate = || {
        let live = bench.dyno(&["status", "--json"]).json();
        live[0]["rate_per_s"].as_f64().unwrap_or(0.0)
    };
    wait_for("a rate near zero", || rate() < 20.0);
    let (_, port) = address.rsplit_once(':').unwrap();
    let _again = Responder::start(&["--port", port, "--documents", "1000"]);
    let back_s = last_reported_s(&bench.path("r"), "cpu.all.busy_ratio");
    wait_for("the earlier rate", || rate() > 90.0);
    // The server's current process is looked up only occasionally.
    wait_for("figures of the server's new process", || {
        last_reported_s(&bench.path("r"), "process.server.cpu_ratio") > back_s
    });
    bench.dyno(&["stop"]).expect(0);
    let document = {
        Finished::from(child.wait_with_output().unwrap()).expect(130);
        bench.dyno(&["report", "r", "--format", "json"]).expect(0).json()
    };
    let sources = document["sources"].as_array().unwrap();
    let server = sources.iter().find(|source| source["name"] == "server");
    // This server has no status to report, but its process is observed.
    assert!(server.is_some(), "{sources:?}");
    // The old server process has ended, and the machine was observed all the time.
    let host = sources.iter().find(|source| source["name"] == "host").unwrap();
    let reason = host["reason"].as_str().unwrap();
    assert!(reason.contains("has ended"), "{host}");
    assert!(host["readings"].as_u64().unwrap() > 5, "{host}");
}

#[test]
fn a_soak_does_not_begin_on_a_disk_that_is_nearly_full() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    bench
        .dyno(
            &[&["soak"], &reads(&responder.uri(), &["--least-free", "8000TiB", "--out", "r"])[1..]]
                .concat(),
        )
        .expect(3)
        .says("`--least-free`");
    assert_eq!(bench.entries(), Vec::<String>::new());
}

#[test]
fn metrics_are_kept_unless_observation_is_off() {
    let Some(_) = dyno_testkit::or_skip(dyno_testkit::embedded_program()) else {
        return;
    };
    let bench = Bench::new();
    let short = ["--records", "500", "--duration", "4s", "--warmup", "0s"];
    let run = |more: &[&str]| {
        let arguments = [&["run", "a", "--format", "json"][..], &short, more].concat();
        bench.dyno(&arguments).expect(0).json()
    };
    let document = run(&["--out", "watched"]);
    for (name, metric) in [
        ("host", "cpu.all.busy_ratio"),
        ("host", "process.client.cpu_ratio"),
        ("host", "process.server.cpu_ratio"),
        ("server", "operations.server.update_per_s"),
        ("server", "cache.server.used_bytes"),
    ] {
        let files = names(&bench.path("watched/metrics"));
        let tells = files.iter().filter(|file| file.starts_with(name)).any(|file| {
            let path = bench.path("watched/metrics").join(file);
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().next().is_some_and(|header| header.contains(metric))
        });
        assert!(tells, "{metric} is in none of {files:?}");
    }
    for source in document["sources"].as_array().unwrap() {
        assert_eq!(source["health"], "healthy", "{source}");
        assert!(source["readings"].as_u64().unwrap() >= 4, "{source}");
    }
    let collections = document["collections"].as_array().unwrap();
    assert_eq!(collections.len(), 2, "{collections:?}");
    assert_eq!(collections[0]["statistics"]["documents"], 500);
    assert!(document["analysis"]["verdict"]["headline"]["text"].is_string());
    let document = run(&["--out", "blind", "--no-observe"]);
    assert!(!bench.path("blind/metrics").exists());
    assert!(document.get("sources").is_none() && document["analysis"].get("verdict").is_none());
}

#[test]
fn unreachable_exporter_is_a_caveat_and_the_run_continues() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let length = ["--operations", "2000", "--format", "json", "--no-observe"];
    let exporter = ["--exporter", "node=http://127.0.0.1:1/metrics"];
    let document = bench.dyno(&reads(&uri, &[&length[..], &exporter].concat())).expect(0).json();
    let sources = document["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 1);
    assert_eq!((&sources[0]["name"], &sources[0]["health"]), (&"node".into(), &"failed".into()));
    let unwatched = document["caveats"]
        .as_array()
        .unwrap()
        .iter()
        .find(|caveat| caveat["code"] == "source-not-watched");
    assert_eq!(unwatched.unwrap()["values"]["source"], "node");
    let twice = ["--exporter", "host=http://127.0.0.1:1/metrics"];
    bench.dyno(&reads(&uri, &twice)).expect(2).says("`observe.exporters[0].name`");
    let secret = ["--exporter", "http://me:secret@127.0.0.1:1/metrics"];
    let refused = bench.dyno(&reads(&uri, &secret)).expect(2);
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
}

#[test]
fn stalls_every_100_ms_are_a_pattern() {
    let (bench, responder) = (
        Bench::new(),
        Responder::with_documents(&["--stall-every", "100ms", "--stall-length", "30ms"]),
    );
    let uri = responder.uri();
    let options = ["--rate", "1500", "--duration", "12s", "--no-observe", "--format", "json"];
    let document = bench.dyno(&reads(&uri, &options)).expect(0).json();
    let patterns = document["analysis"]["timeline"]["patterns"].as_array().unwrap();
    let found = patterns.iter().find(|one| {
        let period_s = one["pattern"]["period_s"].as_f64().unwrap();
        (period_s - 0.1).abs() < 0.002
    });
    let found = found.unwrap_or_else(|| panic!("{patterns:?}"));
    assert_eq!(found["name"], serde_json::Value::Null);
}
