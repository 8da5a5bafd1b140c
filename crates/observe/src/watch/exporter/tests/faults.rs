//! Exporters that do not answer as they should.

use super::*;

/// The reason that is given for an answer.
fn reason(answer: Answer) -> String {
    let server = Server::start(vec![answer]);
    let mut source = source(&server.url, false);
    let health = source.read(1.0).expect_err("it is no good answer");
    let url = format!("`{}`: ", server.url);
    server.requests();
    assert!(matches!(health, Health::Failed { .. }), "{health:?}");
    let reason = health.reason().expect("a fault has a reason").to_owned();
    reason
        .strip_prefix(&url)
        .expect("it begins with the address")
        .to_owned()
}

#[test]
fn a_status_that_is_not_200_is_reported() {
    let answer = response("500 Internal Server Error", "text/plain", "a 1\n");
    assert_eq!(
        reason(answer),
        "it answered with status 500 Internal Server Error"
    );
    let answer = response("404 Not Found", "text/plain", "a 1\n");
    assert_eq!(reason(answer), "it answered with status 404 Not Found");
}

#[test]
fn a_page_is_not_metrics() {
    let expected =
        "it answered with a page instead of metrics; is `/metrics` missing at the end of the URL?";
    assert_eq!(reason(response("200 OK", "text/html", "welcome")), expected);
    assert_eq!(reason(metrics("\n<!DOCTYPE html>\n")), expected);
}

#[test]
fn garbage_and_nothing_are_not_metrics() {
    let garbage = metrics(
        "\u{1b}[31mhello there, this is a long line that goes on and on until it is cut off\n",
    );
    let expected =
        "its answer is not metrics: `?[31mhello there, this is a long line that goes on and on un`";
    assert_eq!(reason(garbage), expected);
    assert_eq!(reason(metrics("")), "its answer has no metrics");
    assert_eq!(reason(metrics("# EOF\n")), "its answer has no metrics");
}

#[test]
fn some_lines_that_cannot_be_read_do_not_hide_the_others() {
    let server = Server::start(vec![metrics("a 1\nb x\nc\n")]);
    let reported = source(&server.url, false)
        .read(1.0)
        .expect("a line is good");
    assert_values(&reported, &[("exporter.a", 1.0)]);
    let reason = "2 lines cannot be read, such as `b x`".to_owned();
    assert_eq!(reported.missing, [("text", Health::Degraded { reason })]);
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    let body = "a_metric_with_a_name 1\n".repeat(400_000);
    let answer = Answer::Bytes([head.as_bytes(), body.as_bytes()].concat());
    assert_eq!(reason(answer), "its answer is longer than 8 MiB");
}

#[test]
fn a_silent_exporter_is_given_up_and_a_half_answer_is_none() {
    assert_eq!(reason(Answer::Silence), "no answer within 2 s");
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na 1\n";
    let reported = reason(Answer::Bytes(half.into()));
    assert!(!reported.is_empty());
}

#[test]
fn an_exporter_that_is_not_there_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let url = format!("http://{address}/metrics");
    let health = source(&url, false).read(1.0).expect_err("nobody listens");
    let reason = health.reason().expect("a fault has a reason");
    assert!(
        reason.contains(&url) && reason.to_lowercase().contains("refused"),
        "{reason}"
    );
}

#[test]
fn an_encrypted_address_is_not_read_in_plain_text() {
    let health = source("https://127.0.0.1:1/metrics", false).read(1.0);
    let health = health.expect_err("there is no encryption");
    assert!(matches!(health, Health::Failed { .. }), "{health:?}");
}

#[test]
fn a_request_names_what_it_wants_and_the_answer_may_come_in_chunks() {
    let chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   3\r\na 1\r\n3\r\n2\nb\r\n3\r\n 3\n\r\n0\r\n\r\n";
    let server = Server::start(vec![Answer::Bytes(chunked.into())]);
    let reported = source(&server.url, false)
        .read(1.0)
        .expect("it is a good answer");
    assert_values(&reported, &[("exporter.a", 12.0), ("exporter.b", 3.0)]);
    let requests = server.requests();
    assert!(
        requests[0].starts_with("GET /metrics HTTP/1.1\r\n"),
        "{requests:?}"
    );
    let asks = requests[0]
        .to_lowercase()
        .contains("accept: text/plain;version=0.0.4\r\n");
    assert!(asks, "{requests:?}");
}
