//! Annotations sent to Grafana: a small server replaces Grafana and keeps the requests.

use crate::common::{Bench, Responder, names, reads, wait_for_windows};
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TOKEN: &str = "glsa_0123456789abcdef";

/// Grafana's answer to an accepted annotation.
const KEPT: (&str, &str) = ("200 OK", r#"application/json|{"message":"Annotation added","id":1}"#);

/// A request: its head in lower case, and its body.
type Request = (String, String);

/// A fake Grafana with one answer for all requests: a status, and a content type with a body. Without an answer it is silent.
struct Grafana {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Grafana {
    fn start(answer: Option<(&'static str, &'static str)>) -> Grafana {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                kept.lock().unwrap().push(read(&stream));
                match answer {
                    Some(answer) => respond(&mut stream, answer),
                    // Until the client disconnects.
                    None => drop(stream.read(&mut [0])),
                }
            }
        });
        Grafana { url, requests }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn annotations(&self) -> Vec<Value> {
        let requests = self.requests();
        let bodies = requests.iter().map(|(_, body)| body);
        bodies.map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "{head}");
        head.push_str(&line.to_ascii_lowercase());
        if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn respond(stream: &mut TcpStream, (status, content): (&str, &str)) {
    let (kind, body) = content.split_once('|').unwrap();
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nLocation: /login\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
}

/// Whether a file below the folder contains the text.
fn holds(folder: &Path, text: &str) -> bool {
    names(folder).iter().any(|name| {
        let path = folder.join(name);
        if path.is_dir() {
            return holds(&path, text);
        }
        let content = fs::read(&path).unwrap();
        String::from_utf8_lossy(&content).contains(text)
    })
}

#[test]
fn annotations_are_posted_and_the_report_links_to_their_time() {
    let grafana = Grafana::start(Some(KEPT));
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let load = ["--rate", "200", "--clients", "4", "--duration", "30s"];
    let reported = ["--grafana", &grafana.url, "--out", "r"];
    let mut command = bench.command(&reads(&uri, &[&load[..], &reported].concat()));
    let before_ms = jiff::Timestamp::now().as_millisecond();
    let mut child = command.env("DYNO_GRAFANA_TOKEN", TOKEN).spawn().unwrap();
    wait_for_windows(&mut child, &bench.path("r"), 15);
    assert_eq!(grafana.requests(), [], "annotations are posted after the run");
    // From now on the server stalls most of the time.
    let change_ms = jiff::Timestamp::now().as_millisecond();
    while child.try_wait().unwrap().is_none() {
        responder.signal("STOP");
        std::thread::sleep(Duration::from_millis(900));
        responder.signal("CONT");
        std::thread::sleep(Duration::from_millis(100));
    }
    let after_ms = jiff::Timestamp::now().as_millisecond();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for (head, _) in grafana.requests() {
        assert!(head.starts_with("post /api/annotations http/1.1\r\n"));
        let token = format!("authorization: bearer {TOKEN}\r\n");
        assert!(head.contains(&token), "{head}");
    }
    assert!(!holds(bench.folder.path(), TOKEN));
    let annotations = grafana.annotations();
    let exported = bench.dyno(&["export", "r", "--to", "annotations"]).expect(0);
    assert_eq!(Value::from(annotations.clone()), exported.json());

    let of_kind = |kind: &str| {
        let tags = |one: &&Value| one["tags"][0] == "dyno" && one["tags"][1] == kind;
        annotations.iter().filter(tags).collect::<Vec<_>>()
    };
    let time = |one: &Value, key: &str| one[key].as_i64().unwrap();
    let measure = of_kind("phase").into_iter().find(|one| one["tags"][2] == "measure").unwrap();
    let (start, end) = (time(measure, "time"), time(measure, "timeEnd"));
    assert!((29_900..32_000).contains(&(end - start)), "{measure}");
    assert!(before_ms <= start && end <= after_ms, "{measure}");
    // Other work on the machine may scatter the times so much that no change is certain.
    let report = bench.dyno(&["report", "r", "--format", "json"]).expect(0);
    let found = &report.json()["analysis"]["timeline"]["changes"];
    let changes = of_kind("change");
    assert_eq!(changes.len(), found.as_array().unwrap().len(), "{found}");
    let is_then = |one: &&Value| (time(one, "time") - change_ms).abs() < 3_000;
    assert!(changes.is_empty() || changes.iter().any(is_then), "{change_ms}: {annotations:?}");

    let page = fs::read_to_string(bench.path("r/report.html")).unwrap();
    let link = format!("{}/d/mongodyno-run?from=", grafana.url).replace('/', "&#x2f;");
    let (_, times) = page.split_once(&link).unwrap();
    let times = times.split_once('"').unwrap().0;
    let (from, to) = times.split_once("&amp;to=").unwrap();
    let (from, to): (i64, i64) = (from.parse().unwrap(), to.parse().unwrap());
    assert!(before_ms <= from && from <= start && end <= to && to <= after_ms);
    let dashboard =
        fs::read_to_string(dyno_testkit::project_dir().join("deploy/grafana/dashboards/run.json"));
    assert!(dashboard.unwrap().contains("\"uid\": \"mongodyno-run\""));
}

#[test]
fn silent_grafana_costs_one_warning_and_little_time() {
    let grafana = Grafana::start(None);
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let fixed = ["sweep", "read", "--uri", &uri, "--records", "1000"];
    let data = ["-p", "insertorder=ordered", "--clients", "1,2"];
    let phases = ["--warmup", "0s", "--duration", "1s", "--out", "s"];
    let reported = ["--grafana", &grafana.url];
    let started = Instant::now();
    let finished = bench.dyno(&[&fixed[..], &data, &phases, &reported].concat());
    let finished = finished.expect(0).says("warning: ");
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(finished.stderr.matches("within 2 s").count(), 1);
    assert_eq!(grafana.requests().len(), 1);
    let page = fs::read_to_string(bench.path("s/report.html")).unwrap();
    let link = format!("{}/d/mongodyno-run?from=", grafana.url).replace('/', "&#x2f;");
    let (_, times) = page.split_once(&link).unwrap();
    let (from, to) = times.split_once('"').unwrap().0.split_once("&amp;to=").unwrap();
    let (from, to): (i64, i64) = (from.parse().unwrap(), to.parse().unwrap());
    let text = fs::read_to_string(bench.path("s/experiment.json")).unwrap();
    let experiment: Value = serde_json::from_str(&text).unwrap();
    let at = |key: &str| -> jiff::Timestamp { experiment[key].as_str().unwrap().parse().unwrap() };
    assert_eq!(from, at("started_at").as_millisecond());
    assert_eq!(to, at("ended_at").as_millisecond());
    assert!((2_000..60_000).contains(&(to - from)), "{from} to {to}");
}

#[test]
fn a_grafana_that_does_not_keep_annotations_is_a_warning() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let page = "text/html|<html>Log in</html>";
    for (number, (status, content, expected)) in [
        ("401 Unauthorized", "application/json|{}", "DYNO_GRAFANA_TOKEN"),
        ("200 OK", page, "Grafana does"),
        ("302 Found", page, "status 302"),
    ]
    .into_iter()
    .enumerate()
    {
        let grafana = Grafana::start(Some((status, content)));
        let out = number.to_string();
        let load = ["--rate", "20", "--duration", "1s"];
        let reported = ["--grafana", &grafana.url, "--out", &out];
        let finished = bench.dyno(&reads(&uri, &[&load[..], &reported].concat()));
        finished.expect(0).says(expected).says(&format!("`dyno export {out} --to annotations`"));
        assert_eq!(grafana.requests().len(), 1);
    }
}

#[test]
fn unreadable_token_is_refused_before_the_run() {
    let bench = Bench::new();
    let more = ["--set", "observe.grafana.token_file=no-such-file"];
    let reported = ["--grafana", "http://127.0.0.1:1"];
    let refused = bench.dyno(&reads("mongodb://127.0.0.1:1/", &[&more[..], &reported].concat()));
    refused.expect(2).says("no-such-file");
    assert_eq!(bench.entries(), [""; 0]);
}

#[test]
fn messages_are_one_annotation_and_link_to_the_machines() {
    let Some(bench) = crate::tail::bench() else {
        return;
    };
    let grafana = Grafana::start(Some(KEPT));
    let send = ["tail", "--producer", "wire", "--messages", "300"];
    let reported = ["--in-flight", "1", "--grafana", &grafana.url, "--out", "t"];
    let mut command = bench.command(&[&send[..], &reported].concat());
    let output = command.env("DYNO_GRAFANA_TOKEN", TOKEN).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let annotations = grafana.annotations();
    let [reported] = annotations.as_slice() else {
        panic!("one annotation: {annotations:?}");
    };
    assert_eq!(reported["tags"], serde_json::json!(["dyno", "messages", "tail"]));
    assert!(reported["text"].as_str().unwrap().starts_with("300 messages"), "{reported}");
    let page = fs::read_to_string(bench.path("t/report.md")).unwrap();
    let link = format!(
        "{}/d/mongodyno-node?from={}&to={}",
        grafana.url, reported["time"], reported["timeEnd"]
    );
    assert!(page.contains(&link), "{link}: {page}");
    assert!(!holds(bench.folder.path(), TOKEN));
}

#[test]
fn run_on_several_servers_is_annotated_once() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let (bench, grafana) = (Bench::new(), Grafana::start(Some(KEPT)));
    fs::write(bench.path("token"), format!("{TOKEN}\n")).unwrap();
    let fixed = ["run", "c", "--pairs", "2", "--records", "500"];
    let phases = ["--clients", "2", "--warmup", "0s", "--duration", "1s"];
    let file = ["--set", "observe.grafana.token_file=token"];
    let reported = ["--grafana", &grafana.url, "--out", "r"];
    let finished = bench.dyno(&[&fixed[..], &phases, &file, &reported].concat());
    finished.expect(0);
    let is_measure = |one: &&Value| one["tags"][2] == "measure" && one["tags"][1] == "phase";
    assert_eq!(grafana.annotations().iter().filter(is_measure).count(), 1);
    let (head, _) = &grafana.requests()[0];
    assert!(head.contains(&format!("bearer {TOKEN}")), "{head}");
    assert!(!holds(&bench.path("r"), TOKEN));
}
