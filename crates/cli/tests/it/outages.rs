//! Outages, during which nothing succeeds: the server is away or silent, or the client itself stood still.

use crate::common::{Bench, Finished, Responder, reads, signal, wait_for_windows};
use serde_json::Value;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

const AWAY: Duration = Duration::from_secs(2);

/// Starts a run of reads for eight seconds and waits until it is under way.
fn begun(bench: &Bench, uri: &str) -> Child {
    let more = [
        "--duration",
        "8s",
        "--clients",
        "2",
        "--threads",
        "1",
        "--tolerate-errors",
        "100%",
        "--out",
        "r",
    ];
    let mut child = bench.spawn(&reads(uri, &more));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    child
}

/// The report of a run that ended with status 0.
#[track_caller]
fn report(bench: &Bench, child: Child) -> Value {
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let report = ["report", "r", "--format", "json"];
    bench.dyno(&report).expect(0).json()
}

/// The only outage: its length in seconds, and the code of its cause.
#[track_caller]
fn outage(report: &Value) -> (f64, &str) {
    let outages = report["analysis"]["outages"].as_array().unwrap();
    let [one] = outages.as_slice() else { panic!("{outages:?}") };
    let time = |name: &str| one[name].as_f64().unwrap();
    let code = one["cause"]["code"].as_str().unwrap();
    let findings = report["analysis"]["findings"].as_array().unwrap();
    assert_eq!(findings[0]["code"], "outage", "{findings:?}");
    let asks_for_load = |finding: &Value| finding["code"] == "more-clients-could-raise";
    assert!(!findings.iter().any(asks_for_load), "{findings:?}");
    let headline = &report["analysis"]["verdict"]["headline"]["code"];
    // If the cause is unknown, other programs on this machine may be the cause.
    assert!(
        headline.is_null() || headline == "outage-verdict" || code == "outage-cause.unknown",
        "{headline}"
    );
    (time("end_s") - time("start_s"), code)
}

fn caveat<'a>(report: &'a Value, kind: &str) -> Option<&'a Value> {
    report["caveats"].as_array().unwrap().iter().find(|caveat| caveat["kind"] == kind)
}

#[test]
fn a_server_that_was_restarted_is_an_outage_and_is_counted() {
    let bench = Bench::new();
    let mut first = Responder::with_documents(&[]);
    let (address, uri) = (first.address.clone(), first.uri());
    let port = address.rsplit_once(':').unwrap().1;
    let child = begun(&bench, &uri);
    first.kill();
    sleep(AWAY);
    // A tenth of the documents is lost.
    let _second = Responder::start(&["--port", port, "--documents", "900"]);
    let found = report(&bench, child);
    let (length_s, cause) = outage(&found);
    assert_eq!(cause, "outage-cause.unreachable");
    assert!((1.5..5.0).contains(&length_s), "{length_s}");
    let events = found["events"].as_array().unwrap();
    let refused = |event: &Value| event["kind"] == "unreachable" && event["refused"] == true;
    assert!(events.iter().any(refused), "{events:?}");
    let counted = caveat(&found, "document_count").expect("documents are missing");
    assert_eq!(counted["code"], "documents-after-run");
    assert_eq!(counted["values"]["after"]["value"], 900.0);
}

#[test]
fn a_server_that_was_silent_is_an_outage_without_a_cause() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let child = begun(&bench, &responder.uri());
    responder.signal("STOP");
    sleep(AWAY);
    responder.signal("CONT");
    let found = report(&bench, child);
    let (length_s, cause) = outage(&found);
    assert_eq!(cause, "outage-cause.unknown");
    assert!((1.8..4.0).contains(&length_s), "{length_s}");
    assert_eq!(caveat(&found, "client_stopped"), None);
}

#[test]
fn stopped_client_is_a_caveat_and_the_cause_of_the_outage() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let child = begun(&bench, &responder.uri());
    signal(&child, "STOP");
    sleep(AWAY);
    signal(&child, "CONT");
    let found = report(&bench, child);
    let said = caveat(&found, "client_stopped").expect("the client stood still");
    let total_s = said["values"]["total"]["value"].as_f64().unwrap();
    assert!((1.5..4.0).contains(&total_s), "{total_s}");
    let stop = &said["values"]["stops"][0]["values"];
    let in_flight = stop["in_flight"]["value"].as_f64().unwrap();
    assert!((1.0..=2.0).contains(&in_flight), "{stop}");
    let (length_s, cause) = outage(&found);
    assert_eq!(cause, "outage-cause.client-stopped");
    assert!((1.5..4.0).contains(&length_s), "{length_s}");
}
