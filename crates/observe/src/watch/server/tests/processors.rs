//! CPU time of a server's process, and the number of its CPUs.

use super::*;

fn status(n: i64) -> Document {
    doc! {
        "uptimeMillis": n * 2000, "mem": { "resident": 1 },
        "extra_info": { "user_time_us": n * 3_000_000, "system_time_us": n * 500_000 },
    }
}

/// Two readings, 2 s apart, of a server that answers `hostInfo` with `info`.
fn two_readings(info: fn() -> Result<Document, AskError>) -> (Reported, Asked) {
    let mut n = 0;
    let (mut source, asked) = source(move |name, _| match name {
        "serverStatus" => {
            n += 1;
            Ok(status(n))
        }
        "hostInfo" => info(),
        _ => refused(59, "no such command"),
    });
    let first = source.read(10.0).expect("it answers");
    let mut second = source.read(12.0).expect("it answers");
    second.missing.extend(first.missing);
    (second, asked)
}

#[test]
fn cpu_time_becomes_busy_cpus_and_their_count_is_asked_once() {
    let (reported, asked) =
        two_readings(|| Ok(doc! { "system": { "numCores": 8, "hostname": "db1" } }));
    let expected = [
        ("server_cpu.s.user_ratio", 1.5),
        ("server_cpu.s.system_ratio", 0.25),
        ("server_cpu.s.cpus_count", 8.0),
    ];
    assert_values(&reported, &expected);
    let asked = asked.lock().expect("no test panics in it");
    let questions = asked.iter().filter(|(_, command)| command.contains_key("hostInfo"));
    assert_eq!(questions.count(), 1);
    // A smaller number, if it may not use all of them.
    let (reported, _) = two_readings(|| {
        Ok(doc! { "system": { "numCores": 8, "numCoresAvailableToProcess": 2_i64 } })
    });
    assert_values(&reported, &[("server_cpu.s.cpus_count", 2.0)]);
}

#[test]
fn cpu_count_is_missing_when_the_server_does_not_report_it() {
    let (reported, _) = two_readings(|| refused(13, "not authorized on admin"));
    assert!(!values(&reported).contains_key("server_cpu.s.cpus_count"));
    let health = missing(&reported, "server_cpu").expect("it is told");
    assert!(health.reason().contains("hostInfo"), "{health:?}");
    let (reported, _) = two_readings(|| Ok(doc! { "system": {} }));
    assert!(!values(&reported).contains_key("server_cpu.s.cpus_count"));
}

#[test]
fn server_without_cpu_time_is_not_asked_for_its_cpus() {
    let (mut source, asked) = source(|name, _| match name {
        "serverStatus" => Ok(doc! { "uptimeMillis": 5, "mem": { "resident": 1 } }),
        _ => refused(59, "no such command"),
    });
    let reported = source.read(1.0).expect("it answers");
    let health = missing(&reported, "server_cpu").expect("it is told");
    let reason = health.reason();
    assert!(reason.contains("`extra_info.user_time_us`"), "{reason}");
    let asked = asked.lock().expect("no test panics in it");
    assert!(!asked.iter().any(|(_, command)| command.contains_key("hostInfo")));
}
