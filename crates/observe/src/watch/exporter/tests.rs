use super::*;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

mod access;
mod data;
mod faults;
mod machine;

/// A server's answer to one request, byte by byte.
enum Answer {
    Bytes(Vec<u8>),
    /// Takes the request and stays silent until the client disconnects.
    Silence,
}

fn response(status: &str, kind: &str, body: &str) -> Answer {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    Answer::Bytes([head.as_bytes(), body.as_bytes()].concat())
}

fn metrics(body: &str) -> Answer {
    response("200 OK", "text/plain; version=0.0.4; charset=utf-8", body)
}

/// A server on a free port that gives these answers, one for each connection.
struct Server {
    url: String,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    fn start(answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let thread = std::thread::spawn(move || {
            let serve = |answer| serve(&listener, answer);
            answers.into_iter().map(serve).collect()
        });
        Server { url: format!("http://{address}/metrics"), thread }
    }

    /// The requests that it received.
    fn requests(self) -> Vec<String> {
        self.thread.join().expect("the server does not panic")
    }
}

fn serve(listener: &TcpListener, answer: Answer) -> String {
    let (mut stream, _) = listener.accept().expect("a client comes");
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => request.extend_from_slice(&buffer[..count]),
        }
    }
    match answer {
        // The client may disconnect before all is sent.
        Answer::Bytes(bytes) => drop(stream.write_all(&bytes)),
        Answer::Silence => drop(stream.read(&mut buffer)),
    }
    String::from_utf8_lossy(&request).into_owned()
}

fn source(url: &str, of_server: bool) -> impl Source + use<> {
    let address = Address::open(url.to_owned());
    exporter("x".to_owned(), address, of_server, DataPlace::default()).expect("it needs no file")
}

/// Reads texts one second apart.
fn read_all(texts: &[&str]) -> Vec<Reported> {
    let server = Server::start(texts.iter().map(|text| metrics(text)).collect());
    let mut source = source(&server.url, true);
    let read = |at_s| source.read(at_s as f64).expect("it answers");
    (0..texts.len()).map(read).collect()
}

fn values(reported: &Reported) -> BTreeMap<String, f64> {
    let named = |(id, value): &(dyno_record::metrics::MetricId, f64)| (id.to_string(), *value);
    reported.values.iter().map(named).collect()
}

#[track_caller]
fn assert_values(reported: &Reported, expected: &[(&str, f64)]) {
    let values = values(reported);
    for (name, value) in expected {
        let found = values.get(*name).copied();
        let is_it = found.is_some_and(|found| (found - value).abs() < 1e-9 * value.abs().max(1.0));
        assert!(is_it, "{name} is {found:?} and not {value}");
    }
}

#[test]
fn other_metrics_are_kept_and_totals_become_rates() {
    let text = |n: u64| {
        format!(
            "# TYPE requests_total counter\nrequests_total{{code=\"200\",path=\"/a\"}} {}\n\
             # TYPE temperature gauge\ntemperature 20.5\n\
             # TYPE wait_seconds histogram\nwait_seconds_bucket{{le=\"1\"}} 3\n\
             wait_seconds_sum {}\nwait_seconds_count {}\n\
             # TYPE share gauge\nshare NaN\n\
             go_goroutines 7\nprocess_open_fds 9\npromhttp_metric_handler_requests_total 8\n",
            10 * n,
            4 * n,
            2 * n
        )
    };
    let reported = read_all(&[&text(1), &text(3)]);
    assert_eq!(values(&reported[0]).keys().collect::<Vec<_>>(), ["exporter.temperature"]);
    let expected = [
        ("exporter.200//a.requests_per_s", 20.0),
        ("exporter.temperature", 20.5),
        ("exporter.wait_seconds_count_per_s", 4.0),
        ("exporter.wait_seconds_sum_per_s", 8.0),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(values(&reported[1]), BTreeMap::from(expected));
    assert_eq!(reported[1].missing, []);
}

#[test]
fn too_many_metrics_are_cut_and_the_first_ones_stay() {
    let lines = |range: std::ops::Range<u32>| -> String {
        range.map(|n| format!("m{{n=\"{n}\"}} {n}\n")).collect()
    };
    let reported = read_all(&[&lines(0..2000), &lines(5..2100)]);
    assert_eq!(reported[0].values.len(), 2000);
    assert_eq!(reported[0].missing, []);
    assert_eq!(reported[1].values.len(), 1995);
    assert_values(&reported[1], &[("exporter.1999.m", 1999.0)]);
    let [("others", Health::Unsupported { reason })] = &reported[1].missing[..] else {
        panic!("{:?}", reported[1].missing);
    };
    assert!(reason.contains("100 metrics") && reason.contains("2000"));
}

#[test]
fn metrics_without_a_unique_name_are_omitted_and_counted() {
    let long = "x".repeat(301);
    let text = format!("m{{a=\"1\"}} 1\nm{{b=\"1\"}} 2\nm{{a=\"{long}\"}} 3\n");
    let reported = read_all(&[&text]);
    assert_eq!(values(&reported[0]), BTreeMap::from([("exporter.1.m".to_owned(), 1.0)]));
    let (part, health) = &reported[0].missing[0];
    assert_eq!(*part, "labels");
    assert!(health.reason().starts_with("2 metrics"));
}

#[test]
fn mongodb_exporter_metrics_have_server_source_names() {
    let text = |n: u64| {
        format!(
            "# TYPE mongodb_ss_opcounters untyped\n\
             mongodb_ss_opcounters{{cl_id=\"\",legacy_op_type=\"query\",rs_nm=\"rs\"}} {}\n\
             mongodb_ss_wt_cache_bytes_currently_in_the_cache 300\n\
             mongodb_ss_wt_cache_maximum_bytes_configured 400\n\
             mongodb_ss_uptimeMillis {}\nmongodb_ss_mem_bits 64\n\
             mongodb_rs_members_state{{member_idx=\"a:1\"}} 1\n",
            70 * n,
            1000 * n
        )
    };
    let reported = read_all(&[&text(1), &text(2), &text(1)]);
    assert_values(
        &reported[1],
        &[
            ("operations.x.query_per_s", 70.0),
            ("cache.x.used_ratio", 0.75),
            ("replication.a:1.state_count", 1.0),
            // A metric without a name of our own.
            ("exporter.mongodb_ss_mem_bits", 64.0),
        ],
    );
    assert!(
        !values(&reported[1]).contains_key("exporter.mongodb_ss_wt_cache_maximum_bytes_configured")
    );
    let log = reported[0].missing.iter().find(|(part, _)| *part == "log");
    let Some((_, Health::Unsupported { reason })) = log else {
        panic!("{log:?}");
    };
    assert!(reason.contains("`wiredTiger.log`"), "{reason}");
    // The server was restarted.
    assert!(!values(&reported[2]).contains_key("operations.x.query_per_s"));
}
