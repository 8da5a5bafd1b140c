//! Commands in addition to `serverStatus`: the replica set and the log.

use super::*;

const START_MS: i64 = 1_700_000_000_000;

fn up() -> Document {
    doc! { "uptime": 1.0, "uptimeMillis": 1000_i64 }
}

fn member(name: &str, state: i32, behind_ms: i64) -> Document {
    doc! {
        "name": name, "health": 1.0, "state": state,
        "optimeDate": date((START_MS - behind_ms) / 1000 * 1000),
        "lastAppliedWallTime": date(START_MS - behind_ms),
    }
}

/// One reading from a member of a replica set with this state.
fn of_set(members: Vec<Document>) -> Reported {
    let (mut source, _) = source(move |name, _| match name {
        "serverStatus" => Ok(up()),
        "hello" => Ok(doc! { "setName": "rs0", "isWritablePrimary": true }),
        "replSetGetStatus" => Ok(doc! { "set": "rs0", "members": members.clone() }),
        _ => refused(59, "no such command"),
    });
    source.read(1.0).expect("it answers")
}

#[test]
fn lag_compares_last_applied_times_of_primary_and_member() {
    let mut down = member("c:1", 8, 0);
    down.insert("health", 0.0);
    let reported = of_set(vec![
        member("a:1", 1, 0),
        member("b:1", 2, 2250),
        down,
        doc! { "name": "arbiter:1", "health": 1.0, "state": 7 },
        // The primary's knowledge of this member is newer than its own time.
        member("e:1", 2, -40),
    ]);
    assert_values(
        &reported,
        &[
            ("replication.a:1.lag_s", 0.0),
            ("replication.b:1.lag_s", 2.25),
            ("replication.b:1.state_count", 2.0),
            ("replication.c:1.state_count", 8.0),
            ("replication.arbiter:1.state_count", 7.0),
            ("replication.e:1.lag_s", 0.0),
        ],
    );
    let values = values(&reported);
    assert!(!values.contains_key("replication.c:1.lag_s"));
    assert!(!values.contains_key("replication.arbiter:1.lag_s"));
    assert_eq!(missing(&reported, "replication"), None);
}

#[test]
fn lag_is_in_whole_seconds_before_4_4() {
    let old = |name, state, behind_ms| {
        let mut member = member(name, state, behind_ms);
        member.remove("lastAppliedWallTime");
        member
    };
    let reported = of_set(vec![old("a:1", 1, 0), old("b:1", 2, 2250)]);
    assert_values(&reported, &[("replication.b:1.lag_s", 3.0)]);
    let reported = of_set(vec![member("a:1", 2, 0), member("b:1", 2, 2250)]);
    assert!(!values(&reported).contains_key("replication.b:1.lag_s"));
    assert_values(&reported, &[("replication.a:1.state_count", 2.0)]);
}

#[test]
fn standalone_server_is_asked_for_its_set_once() {
    let (mut source, asked) = source(|name, _| match name {
        "serverStatus" => Ok(up()),
        "isMaster" => Ok(doc! { "ismaster": true }),
        _ => refused(59, "no such command"),
    });
    let reported = source.read(1.0).expect("it answers");
    let Some(Health::Unsupported { reason }) = missing(&reported, "replication") else {
        panic!("{:?}", reported.missing);
    };
    assert!(reason.contains("replica set"), "{reason}");
    source.read(2.0).expect("it answers");
    let asked = asked.lock().unwrap();
    let names: Vec<&str> =
        asked.iter().filter_map(|(_, command)| command.keys().next().map(String::as_str)).collect();
    assert_eq!(names, ["serverStatus", "hello", "isMaster", "getLog", "serverStatus"]);
}

#[test]
fn refused_set_status_is_a_fault_only_for_missing_rights() {
    for (code, is_fault) in [(13, true), (76, false), (94, false), (59, false)] {
        let (mut source, asked) = source(move |name, _| match name {
            "serverStatus" => Ok(up()),
            "hello" => Ok(doc! { "setName": "rs0" }),
            _ => refused(code, "no"),
        });
        let reported = source.read(1.0).expect("the status is there");
        let health = missing(&reported, "replication").expect("it is reported");
        assert_eq!(matches!(health, Health::Failed { .. }), is_fault, "{health:?}");
        source.read(2.0).expect("the status is there");
        let asked = asked.lock().unwrap();
        let of_set = |(_, command): &&(String, Document)| command.contains_key("replSetGetStatus");
        assert_eq!(asked.iter().filter(of_set).count(), 1);
    }
}

#[test]
fn lost_connection_after_the_status_costs_only_the_rest() {
    let (mut source, asked) = source(|name, _| match name {
        "serverStatus" => Ok(up()),
        "hello" => Ok(doc! { "setName": "rs0" }),
        _ => lost(),
    });
    let reported = source.read(1.0).expect("the status is there");
    assert_values(&reported, &[("server.s.uptime_s", 1.0)]);
    assert!(matches!(missing(&reported, "connection"), Some(Health::Failed { .. })));
    // The log was not requested over a lost connection.
    assert_eq!(asked.lock().unwrap().len(), 3);
}

fn line(message: &str, namespace: &str) -> String {
    format!(
        r#"{{"t":{{"$date":"2026-01-01T00:00:00.000+00:00"}},"s":"I","c":"COMMAND","id":51803,"ctx":"conn1","msg":"{message}","attr":{{"type":"command","ns":"{namespace}","comment":"\"msg\":\"Slow query\"","durationMillis":120}}}}"#
    )
}

/// Rates of slow operations, all and on the collection, at the eleventh reading. The first search
/// found `before` lines written; ten seconds later, the second finds `written` and `lines`.
fn slow(before: i64, written: i64, lines: Vec<String>) -> Option<(f64, f64)> {
    let mut looks = vec![
        doc! { "totalLinesWritten": before, "log": [line("Slow query", "ycsb.usertable")] },
        doc! { "totalLinesWritten": written, "log": lines },
    ]
    .into_iter();
    let (mut source, _) = source(move |name, _| match name {
        "serverStatus" => Ok(up()),
        "getLog" => Ok(looks.next().expect("two looks in eleven readings")),
        _ => refused(59, "no such command"),
    });
    for at_s in 0..10 {
        let reported = source.read(f64::from(at_s)).expect("it answers");
        assert!(!values(&reported).contains_key("slow.s.operations_per_s"));
    }
    let reported = source.read(10.0).expect("it answers");
    assert_eq!(missing(&reported, "slow"), None);
    let values = values(&reported);
    let all = values.get("slow.s.operations_per_s")?;
    Some((*all, values["slow.s.collection_operations_per_s"]))
}

#[test]
fn new_lines_about_slow_operations_are_counted() {
    let own = || line("Slow query", "ycsb.usertable");
    let (other, ended) = (line("Slow query", "a.b"), line("Connection ended", "-"));
    let lines = vec![own(), own(), other, own(), ended];
    // The first line was there before.
    assert_eq!(slow(1, 5, lines), Some((0.3, 0.2)));
    assert_eq!(slow(1, 1, vec![own()]), Some((0.0, 0.0)));
}

#[test]
fn lines_of_the_embedded_server_are_understood() {
    let own = "2026-01-01T00:00:00.39Z I COMMAND Slow query {\"type\":\"command\",\"ns\":\"ycsb.usertable\",\"durationMillis\":139}";
    let other = "2026-01-01T00:00:01.1Z I NETWORK connection accepted from 127.0.0.1:4 #1";
    let lines = vec![own.to_owned(), other.to_owned(), own.to_owned()];
    assert_eq!(slow(0, 3, lines), Some((0.2, 0.2)));
}

#[test]
fn share_of_remaining_lines_is_extrapolated() {
    let lines = vec![line("Slow query", "a.b"), line("Connection ended", "-")];
    assert_eq!(slow(0, 400, lines), Some((20.0, 0.0)));
}

#[test]
fn restarted_log_gives_no_count() {
    assert_eq!(slow(900, 5, vec![line("Slow query", "a.b")]), None);
}

#[test]
fn uncountable_log_is_unsupported_and_asked_for_once() {
    for (answer, part) in [
        (doc! { "log": ["{}"] }, "many lines"),
        (
            doc! { "totalLinesWritten": 3, "log": ["2020-01-01T10:00:00.000+0000 I  COMMAND  [conn1] command a.b 101ms"] },
            "MongoDB 4.4",
        ),
        (doc! { "totalLinesWritten": 3 }, "no `log`"),
    ] {
        let (mut source, asked) = source(move |name, _| match name {
            "serverStatus" => Ok(up()),
            "getLog" => Ok(answer.clone()),
            _ => refused(59, "no such command"),
        });
        let reported = source.read(0.0).expect("it answers");
        let health = missing(&reported, "slow").expect("it is reported");
        assert!(matches!(health, Health::Unsupported { .. }), "{health:?}");
        assert!(health.reason().contains(part), "{health:?}");
        for at_s in 1..12 {
            source.read(f64::from(at_s)).expect("it answers");
        }
        let asked = asked.lock().unwrap();
        let of_log = |(_, command): &&(String, Document)| command.contains_key("getLog");
        assert_eq!(asked.iter().filter(of_log).count(), 1);
    }
}
