use super::*;
use crate::verdict::CauseFinding;
use dyno_record::model::{Environment, ServerRecord};
use dyno_testkit::findings::{Reported, case};
use serde_json::json;
use std::collections::BTreeMap;

/// Ten seconds with these successes in each, at 1 ms of response time.
fn windows(succeeded: [u64; 10]) -> Vec<IntervalTotals> {
    let window = |(place, succeeded): (usize, u64)| IntervalTotals {
        phase: PhaseKind::Measure,
        start_s: 20.0 + place as f64,
        duration_s: 1.0,
        succeeded,
        failed: 0,
        gap_s: None,
        response_mean_us: (succeeded > 0).then_some(1_000.0),
        service_mean_us: (succeeded > 0).then_some(1_000.0),
        mean_in_flight: 1.0,
    };
    succeeded.into_iter().enumerate().map(window).collect()
}

fn document(events: &[(f64, Event)]) -> RunDocument {
    let events: Vec<EventRecord> = events
        .iter()
        .map(|(at_s, event)| EventRecord { at_s: *at_s, event: event.clone() })
        .collect();
    serde_json::from_value(json!({
        "schema_version": 1, "dyno_version": "0", "name": "a", "started_at": "2026-08-22T10:15:00Z",
        "status": "complete", "plan": {}, "operations": [], "environment": Environment::default(),
        "server": ServerRecord::default(), "phases": [], "caveats": [], "events": events,
    }))
    .expect("a document")
}

/// Checks the outage finding, which needs times without success.
pub(in crate::experiment) fn check(reported: &mut Reported) {
    let rule = |(document, windows): &(RunDocument, Vec<IntervalTotals>)| {
        let all = outages(document, windows, &[]);
        with_outages(document, &all, Vec::new(), None).0
    };
    let mut run = crate::experiment::run::tests::usual().0;
    run.phases[0].errors = BTreeMap::from([("server_462".to_owned(), 7)]);
    let failed = case("outage", (run, windows(GAP))).not_if(
        "operations succeeded all the time",
        |(_, windows)| {
            windows.iter_mut().for_each(|window| window.succeeded = 500);
        },
    );
    reported.check(rule, vec![failed]);
    let found = outages(&document(&[]), &windows(GAP), &[]);
    found.iter().for_each(|one| reported.hear(&one.statement("outage-verdict")));
}

const GAP: [u64; 10] = [500, 500, 500, 0, 0, 0, 900, 500, 500, 500];

fn codes(events: &[(f64, Event)]) -> Vec<String> {
    let found = outages(&document(events), &windows(GAP), &[]);
    found.into_iter().map(|one| one.cause.code).collect()
}

#[test]
fn a_gap_without_success_is_an_outage_with_its_times() {
    let found = outages(&document(&[]), &windows(GAP), &[]);
    let times: Vec<_> = found.iter().map(|one| (one.start_s, one.end_s)).collect();
    assert_eq!(times, [(23.0, 26.0)]);
    let to_the_end = [500, 500, 500, 500, 500, 500, 500, 0, 0, 0];
    let found = outages(&document(&[]), &windows(to_the_end), &[]);
    assert_eq!((found[0].start_s, found[0].end_s), (27.0, 30.0));
}

#[test]
fn hundredths_of_a_second_show_where_an_outage_begins_and_ends() {
    let point = |place: u32| SubSecondPoint {
        start_s: 20.0 + f64::from(place) / 100.0,
        ended: 5,
        failed: u64::from(place > 240 && place < 655) * 5,
        response_sum_us: 5_000.0,
    };
    let sub_second: Vec<SubSecondPoint> = (0..1_000).map(point).collect();
    let gap = [500, 500, 205, 0, 0, 0, 225, 500, 500, 500];
    let found = outages(&document(&[]), &windows(gap), &sub_second);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert!((one.start_s - 22.41).abs() < 1e-6, "{one:?}");
    assert!((one.end_s - 26.55).abs() < 1e-6, "{one:?}");
    // A delayed client recorded answers in the middle of it, after the end of their window.
    let late = [500, 500, 205, 0, 3, 0, 225, 500, 500, 500];
    let found = outages(&document(&[]), &windows(late), &sub_second);
    let times: Vec<i64> = found.iter().map(|one| (one.length_s() * 100.0).round() as i64).collect();
    assert_eq!(times, [259, 155]);
}

#[test]
fn long_response_times_after_an_outage_do_not_hide_it() {
    let mut windows = windows(GAP);
    windows.iter_mut().for_each(|window| window.response_mean_us = Some(2e6));
    assert_eq!(outages(&document(&[]), &windows, &[]).len(), 1);
}

#[test]
fn slow_and_rare_operations_are_not_an_outage() {
    let none = |windows: &[IntervalTotals]| {
        assert_eq!(outages(&document(&[]), windows, &[]), []);
    };
    // One client with operations of two seconds.
    let mut slow = windows([0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    slow.iter_mut()
        .filter(|window| window.succeeded > 0)
        .for_each(|window| window.service_mean_us = Some(2e6));
    none(&slow);
    // The same with many clients at once.
    slow.iter_mut().for_each(|window| window.succeeded *= 100);
    none(&slow);
    // Three operations in ten seconds.
    none(&windows([1, 0, 0, 0, 1, 0, 0, 0, 0, 1]));
    none(&windows([0; 10]));
}

#[test]
fn outage_cause_is_the_event_that_explains_most() {
    let unreachable = |refused| Event::Unreachable { reason: "refused".to_owned(), refused };
    let primary = Event::PrimaryChanged { from: "a:1".to_owned(), to: "b:2".to_owned() };
    let stopped = |length_s| Event::ClientStopped { length_s };
    let ended = Event::ServerEnded { server: "server".to_owned(), status: "signal: 9".to_owned() };
    assert_eq!(codes(&[]), ["outage-cause.unknown"]);
    let within = [(23.0, unreachable(true)), (25.9, primary.clone())];
    assert_eq!(codes(&within), ["outage-cause.primary-changed"]);
    let refused = [(23.0, unreachable(true))];
    assert_eq!(codes(&refused), ["outage-cause.unreachable"]);
    assert_eq!(codes(&[(23.0, ended)]), ["outage-cause.server-ended"]);
    assert_eq!(codes(&[(23.1, stopped(2.8))]), ["outage-cause.client-stopped"]);
    // Seen through windows of 1 s.
    assert_eq!(codes(&[(24.1, stopped(0.9))]), ["outage-cause.client-stopped"]);
    // Too short, or at another time.
    assert_eq!(codes(&[(23.1, stopped(0.3))]), ["outage-cause.unknown"]);
    assert_eq!(codes(&[(28.0, primary)]), ["outage-cause.unknown"]);
}

#[test]
fn verdict_names_the_outage_and_no_more_clients() {
    let ended = Event::ServerEnded { server: "server".to_owned(), status: "signal: 9".to_owned() };
    let document = document(&[(23.0, ended)]);
    let all = outages(&document, &windows(GAP), &[]);
    let few = CauseFinding {
        cause: Cause::TooFewClients,
        statement: statement!("cause.too-few-clients"),
        start_s: 20.0,
        end_s: 30.0,
        spans: Vec::new(),
        confidence: 0.7,
        evidence: Vec::new(),
        advice: Vec::new(),
    };
    let verdict =
        Verdict { headline: few.statement.clone(), causes: vec![few], not_watched: Vec::new() };
    let evidence = vec![statement!("busy")];
    let more = Finding::opportunity(statement!("more-clients-could-raise"), evidence);
    let (findings, with) = with_outages(&document, &all, vec![more.clone()], Some(verdict.clone()));
    let codes: Vec<&str> = findings.iter().map(|one| one.statement.code.as_str()).collect();
    assert_eq!(codes, ["outage"]);
    assert_eq!(findings[0].statement.number("length"), Some(3.0));
    let with = with.expect("an outage");
    assert_eq!((with.headline.code.as_str(), with.causes.len()), ("outage-verdict", 0));
    let (findings, without) = with_outages(&document, &[], vec![more], Some(verdict.clone()));
    assert_eq!((findings.len(), without), (1, Some(verdict)));
}

#[test]
fn wait_after_the_planned_end_is_not_an_outage() {
    // Eight seconds were planned; one operation ended two seconds after all others.
    let mut document = document(&[]);
    document.plan = json!({"phases": {"duration": "8s"}});
    let late = windows([500, 500, 500, 500, 500, 500, 500, 500, 0, 0]);
    assert_eq!(outages(&document, &late, &[]), []);
    // An outage that began before has its whole length.
    let broken = windows([500, 500, 500, 500, 500, 0, 0, 0, 0, 1]);
    let found = outages(&document, &broken, &[]);
    assert_eq!((found[0].start_s, found[0].end_s), (25.0, 29.0));
}

#[test]
fn gap_in_a_point_of_several_windows_is_found() {
    let mut windows = windows([500; 10]);
    for window in &mut windows {
        window.start_s = 20.0 + (window.start_s - 20.0) * 7.0;
        window.duration_s = 7.0;
    }
    // It continues in the next point.
    windows[3].gap_s = Some((46.0, 48.0));
    windows[4].gap_s = Some((48.0, 49.0));
    let found = outages(&document(&[]), &windows, &[]);
    let times: Vec<_> = found.iter().map(|one| (one.start_s, one.end_s)).collect();
    assert_eq!(times, [(46.0, 49.0)]);
}

#[test]
fn sub_second_points_that_end_in_a_window_are_not_an_outage() {
    let mut windows = windows([500; 10]);
    windows[9].duration_s = 7.0;
    let point = |place: u32| SubSecondPoint {
        start_s: 20.0 + f64::from(place) / 100.0,
        ended: 5,
        ..SubSecondPoint::default()
    };
    let sub_second: Vec<SubSecondPoint> = (0..1_200).map(point).collect();
    assert_eq!(outages(&document(&[]), &windows, &sub_second), []);
}

#[test]
fn client_stop_before_an_outage_is_not_its_cause() {
    let stopped = Event::ClientStopped { length_s: 1.9 };
    assert_eq!(codes(&[(20.5, stopped.clone())]), ["outage-cause.unknown"]);
    assert_eq!(codes(&[(23.5, stopped)]), ["outage-cause.client-stopped"]);
}
