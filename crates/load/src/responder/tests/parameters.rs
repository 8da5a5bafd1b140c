//! Server parameters from a client's perspective.

use super::*;
use crate::connect::{Connector, Control};
use dyno_plan::uri;

fn limited(name: &str, value: f64, limit: f64) -> Parameter {
    Parameter { limit: Some(limit), ..Parameter::new(name, value) }
}

/// A parameter whose value adds 25 to the factor for the square of each doubling.
fn tickets() -> Parameter {
    Parameter { best: Some(1.0), weight: Some(25.0), ..Parameter::new("tickets", 4.0) }
}

/// 2 ms at the best value of [`tickets`], 202 ms at its first one.
fn tunable() -> Behaviour {
    let time = ServiceTime::Fixed(Duration::from_millis(2));
    Behaviour {
        service: Service::SingleQueue { time },
        parameters: vec![tickets()],
        ..Behaviour::default()
    }
}

fn control(responder: &Responder) -> Control {
    let (target, credentials) =
        uri::parse(&format!("mongodb://{}/?directConnection=true", responder.address())).unwrap();
    let connector = Connector::new(&target, credentials).unwrap();
    connector.control().unwrap()
}

#[test]
fn a_client_of_servers_reads_and_sets_parameters() {
    let responder = Responder::start(Behaviour {
        parameters: vec![Parameter::new("batch", 0.5), tickets()],
        ..Behaviour::default()
    })
    .unwrap();
    let mut control = control(&responder);
    let all = control.run("admin", doc! {"getParameter": "*"}).unwrap();
    assert_eq!(all, doc! {"batch": 0.5, "tickets": 4, "ok": 1.0});
    let set = control.run("admin", doc! {"setParameter": 1, "tickets": 5_000_000_000_i64});
    assert_eq!(set.unwrap(), doc! {"was": 4, "ok": 1.0});
    let one = control.run("admin", doc! {"getParameter": 1, "tickets": 1});
    assert_eq!(one.unwrap(), doc! {"tickets": 5_000_000_000_i64, "ok": 1.0});
    for (command, code) in [
        (doc! {"getParameter": 1, "ticket": 1}, 72),
        (doc! {"setParameter": 1, "ticket": 1}, 72),
        (doc! {"setParameter": 1, "tickets": "4"}, 14),
        (doc! {"setParameter": 1, "tickets": 0}, 2),
    ] {
        let refused = control.run("admin", command).unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused}");
    }
}

#[test]
fn a_better_value_shortens_the_service_of_what_arrives_later() {
    let responder = Responder::start(tunable()).unwrap();
    let mut client = connect(&responder);
    let begin = Instant::now();
    client.send(&find());
    client.send(&doc! {"setParameter": 1, "tickets": 1, "$db": "admin"});
    client.send(&find());
    let order: Vec<i32> = (0..3).map(|_| client.receive().unwrap().response_to).collect();
    assert_eq!(order, [2, 1, 3], "queued commands keep their service time");
    assert!(begin.elapsed() >= Duration::from_millis(204));
    let begin = Instant::now();
    client.call(&find());
    assert!(begin.elapsed() < Duration::from_millis(202));
}

#[test]
fn above_a_limit_data_commands_fail_and_others_do_not() {
    let responder = Responder::start(Behaviour {
        faults: vec![FaultRule { every: 2, kind: Fault::NotFound }],
        parameters: vec![limited("batch", 200.0, 100.0)],
        ..Behaviour::default()
    })
    .unwrap();
    let mut client = connect(&responder);
    for command in [find(), find(), insert(), insert()] {
        let reply = client.call(&command);
        assert_eq!(reply.get_i32("code").unwrap(), 1);
        assert_eq!(reply.get_str("codeName").unwrap(), "InternalError");
    }
    assert_eq!(client.documents(), 0);
    let set = |value: i32| doc! {"setParameter": 1, "batch": value, "$db": "admin"};
    assert_eq!(client.call(&set(100)), doc! {"was": 200, "ok": 1.0});
    // The configured rules still apply.
    let sizes: Vec<usize> = (0..4).map(|_| batch(&client.call(&find()), "firstBatch")).collect();
    assert_eq!(sizes, [1, 0, 1, 0]);
    client.call(&set(101));
    assert_eq!(client.call(&find()).get_i32("code").unwrap(), 1);
    assert_eq!(responder.counters().faults, 5 + 2);
}

#[test]
fn a_parameter_set_in_a_stall_takes_effect_at_once() {
    let length = Duration::from_millis(500);
    let responder = Responder::start(Behaviour {
        stall: Some(Stall { every: Duration::from_secs(1000), length, first: Duration::ZERO }),
        parameters: vec![limited("batch", 1.0, 100.0)],
        ..Behaviour::default()
    })
    .unwrap();
    let mut client = connect(&responder);
    client.send(&find());
    client.send(&doc! {"setParameter": 1, "batch": 101, "$db": "admin"});
    client.send(&find());
    let replies: Vec<Document> = (0..3).map(|_| client.receive().unwrap().document).collect();
    assert!(Instant::now() >= responder.started() + length);
    assert_eq!(batch(&replies[0], "firstBatch"), 1, "it arrived before");
    assert_eq!(replies[1], doc! {"was": 1, "ok": 1.0});
    assert_eq!(replies[2].get_i32("code").unwrap(), 1);
    assert_eq!(responder.counters().replies, 3);
}

#[test]
fn a_parameter_is_set_without_a_reply_when_none_is_wanted() {
    let responder = Responder::start(tunable()).unwrap();
    let mut client = connect(&responder);
    let set = doc! {"setParameter": 1, "tickets": 2, "$db": "admin"};
    client.stream.write_all(&message(50, 1 << 1, &set)).unwrap();
    let now = client.call(&doc! {"getParameter": 1, "tickets": 1, "$db": "admin"});
    assert_eq!(now, doc! {"tickets": 2, "ok": 1.0});
    let counters = responder.counters();
    assert_eq!((counters.unacknowledged, counters.replies), (1, 1));
    assert_eq!((counters.commands, counters.data_commands), (2, 0));
}
