//! Exporters that do not answer properly.

use super::*;

/// The reason given for an answer.
fn reason(answer: Answer) -> String {
    let server = Server::start(vec![answer]);
    let mut source = source(&server.url, false);
    let health = source.read(1.0).expect_err("the answer is not valid");
    let url = format!("`{}`: ", server.url);
    server.requests();
    assert!(matches!(health, Health::Failed { .. }), "{health:?}");
    let reason = health.reason().to_owned();
    reason.strip_prefix(&url).expect("it begins with the address").to_owned()
}

#[test]
fn status_other_than_200_is_reported() {
    for status in ["500 Internal Server Error", "404 Not Found"] {
        let reason = reason(response(status, "text/plain", "a 1\n"));
        assert!(reason.ends_with(&format!("status {status}")), "{reason}");
    }
}

#[test]
fn html_page_is_not_metrics() {
    for page in [response("200 OK", "text/html", "welcome"), metrics("\n<!DOCTYPE html>\n")] {
        let reason = reason(page);
        assert!(reason.contains("a page"), "{reason}");
        assert!(reason.contains("`/metrics`"), "{reason}");
    }
}

#[test]
fn garbage_and_empty_text_are_not_metrics() {
    let garbage = metrics(
        "\u{1b}[31mhello there, this is a long line that goes on and on until it is cut off\n",
    );
    let quoted = "`?[31mhello there, this is a long line that goes on and on un`";
    let found = reason(garbage);
    assert!(found.ends_with(quoted), "{found}");
    for empty in ["", "# EOF\n"] {
        let found = reason(metrics(empty));
        assert!(found.ends_with("no metrics"), "{found}");
    }
}

#[test]
fn unreadable_lines_do_not_hide_the_others() {
    let server = Server::start(vec![metrics("a 1\nb x\nc\n")]);
    let reported = source(&server.url, false).read(1.0).expect("a line is good");
    assert_values(&reported, &[("exporter.a", 1.0)]);
    let [("text", Health::Degraded { reason })] = &reported.missing[..] else {
        panic!("{:?}", reported.missing);
    };
    assert!(reason.contains("2 lines") && reason.contains("`b x`"), "{reason}");
}

#[test]
fn endless_answer_is_cut_off() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    let body = "a_metric_with_a_name 1\n".repeat(400_000);
    let answer = Answer::Bytes([head.as_bytes(), body.as_bytes()].concat());
    let reason = reason(answer);
    assert!(reason.contains("8 MiB"), "{reason}");
}

#[test]
fn silent_exporter_and_half_an_answer_are_errors() {
    let silence = reason(Answer::Silence);
    assert!(silence.contains("within 2 s"), "{silence}");
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n";
    let reported = reason(Answer::Bytes(half.into()));
    assert!(!reported.is_empty());
}

#[test]
fn refused_connection_names_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let url = format!("http://{address}/metrics");
    let health = source(&url, false).read(1.0).expect_err("nobody listens");
    let reason = health.reason();
    assert!(reason.contains(&url) && reason.to_lowercase().contains("refused"), "{reason}");
}

#[test]
fn encrypted_address_is_not_read_in_plain_text() {
    let health = source("https://127.0.0.1:1/metrics", false).read(1.0);
    let health = health.expect_err("there is no encryption");
    assert!(matches!(health, Health::Failed { .. }), "{health:?}");
}

#[test]
fn request_names_its_formats_and_chunked_answers_are_read() {
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   3\r\na 1\r\n3\r\n2\nb\r\n3\r\n 3\n\r\n0\r\n\r\n";
    let server = Server::start(vec![Answer::Bytes(chunked.into())]);
    let reported = source(&server.url, false).read(1.0).expect("it is a good answer");
    assert_values(&reported, &[("exporter.a", 12.0), ("exporter.b", 3.0)]);
    let requests = server.requests();
    assert!(requests[0].starts_with("GET /metrics HTTP/1.1\r\n"), "{requests:?}");
    let asks = requests[0].to_lowercase().contains("accept: text/plain;version=0.0.4\r\n");
    assert!(asks, "{requests:?}");
}

/// Why a part is missing.
fn missing(reported: &Reported, part: &str) -> String {
    let found = reported.missing.iter().find(|(known, _)| *known == part);
    let (_, health) = found.unwrap_or_else(|| panic!("{:?}", reported.missing));
    assert!(!matches!(health, Health::Unsupported { .. }), "{health:?}");
    health.reason().to_owned()
}

/// CPU, disk and memory of a machine after `n` seconds, with the given label.
fn of_machine(label: &str, n: u32) -> String {
    format!(
        "node_cpu_seconds_total{{cpu=\"0\",{label}mode=\"idle\"}} {n}\n\
         node_cpu_seconds_total{{cpu=\"0\",{label}mode=\"user\"}} {n}\n\
         node_disk_io_time_seconds_total{{{label}device=\"sda\"}} {n}\n\
         node_memory_MemAvailable_bytes{{{label}}} {n}\n"
    )
}

#[test]
fn machines_of_one_text_are_never_mixed() {
    for [one, other] in [
        ["instance=\"db1:9100\",", "instance=\"db2:9100\","],
        ["host=\"db1\",", "host=\"db2\","],
        ["", ""],
    ] {
        let text = |n| format!("{}{}a 1\n", of_machine(one, n), of_machine(other, 2 * n));
        for reported in read_all(&[&text(1), &text(2)]) {
            assert_eq!(values(&reported).keys().collect::<Vec<_>>(), ["exporter.a"]);
            let expected = match one {
                "" => "`node_cpu_seconds_total`",
                "host=\"db1\"," => "`host` is `db1` and `db2`",
                _ => "`instance` is `db1:9100` and `db2:9100`",
            };
            let reason = missing(&reported, "machine");
            assert!(reason.contains(expected), "{reason}");
        }
    }
}

#[test]
fn cpus_of_one_machine_and_disks_of_another_are_not_mixed() {
    let text = of_machine("instance=\"db1:9100\",", 1).replacen("sda", "sdb", 1)
        + "node_disk_io_time_seconds_total{device=\"sda\",instance=\"db2:9100\"} 1\n";
    missing(&read_all(&[&text])[0], "machine");
}

#[test]
fn labels_shared_by_all_samples_of_a_machine_are_allowed() {
    let text = |n| of_machine("instance=\"db1:9100\",job=\"node\",", n);
    let reported = read_all(&[&text(1), &text(2)]);
    assert_values(&reported[1], &[("cpu.all.busy_ratio", 0.5), ("memory.available_bytes", 2.0)]);
    assert!(!reported[1].missing.iter().any(|(part, _)| *part == "machine"));
}

#[test]
fn servers_of_one_text_are_never_mixed() {
    let line = |instance: &str, n: u32| {
        format!("mongodb_ss_opcounters{{instance=\"{instance}\",legacy_op_type=\"query\"}} {n}\n")
    };
    let member =
        |set: &str| format!("mongodb_rs_members_state{{member_idx=\"a:1\",rs_nm=\"{set}\"}} 1\n");
    let one = line("a", 1);
    for text in [
        line("a", 1) + &line("b", 2),
        line("a", 1) + &line("a", 2),
        one.clone() + &member("rs0") + &member("rs1"),
        one.clone() + &member("rs0") + &member("rs0"),
    ] {
        let reported = &read_all(&[&text])[0];
        missing(reported, "server");
        assert!(!values(reported).keys().any(|name| name.starts_with("replication")));
    }
    let reported = read_all(&[&one, &line("a", 3)]);
    assert_values(&reported[1], &[("operations.x.query_per_s", 2.0)]);
}

#[test]
fn samples_taken_long_ago_are_missing() {
    let read = |now_s: f64, text: &str| {
        let mut reader = ExporterReader::new("x".to_owned());
        reader.read(1.0, now_s, text)
    };
    let reason = read(1000.0, "a 1 100\n").expect_err("all of it is old");
    assert!(reason.contains("900 s ago"), "{reason}");
    let reported = read(1000.0, "a 1 100\nb 2 950\nc 3\n").expect("two are new");
    assert_values(&reported, &[("exporter.b", 2.0), ("exporter.c", 3.0)]);
    assert!(!values(&reported).contains_key("exporter.a"));
    assert!(missing(&reported, "time").contains("900 s ago"));
}

#[test]
fn totals_that_were_not_renewed_are_not_idle_time() {
    let mut reader = ExporterReader::new("x".to_owned());
    let mut read = |at_s: f64, n: u32, taken_s: u32| {
        let text = format!("requests_total {n} {taken_s}\n");
        reader.read(at_s, at_s, &text).expect("it is a good text")
    };
    read(0.0, 0, 1);
    for at_s in [1.0, 2.0] {
        let reported = read(at_s, 0, 1);
        assert_eq!(reported.values, []);
        missing(&reported, "time");
    }
    assert_values(&read(3.0, 30, 4), &[("exporter.requests_per_s", 10.0)]);
}
