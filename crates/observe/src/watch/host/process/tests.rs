use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
use super::*;
use crate::host::tests::Fixture;

/// `stat` of process 7 with state, minor and major faults, CPU time, threads, start and pages.
fn stat(state: char, faults: [u64; 2], ticks: [u64; 2], threads: u64, start: u64) -> String {
    let [minor, major] = faults;
    let [user, system] = ticks;
    format!(
        "7 (mongod (x)) {state} 1 7 7 0 -1 4194304 {minor} 0 {major} 0 {user} {system} 0 0 20 0 {threads} 0 \
         {start} 3133440 380 18446744073709551615\n"
    )
}

fn io_of(read: u64, written: u64) -> String {
    format!(
        "rchar: 6976\nwchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 5\n"
    )
}

fn machine(stat: &str) -> Fixture {
    Fixture::new()
        .with("proc/7/stat", stat)
        .with("proc/7/io", &io_of(1000, 2000))
        .with("proc/7/fd/0", "")
        .with("proc/7/fd/1", "")
        .with("proc/7/task/7/schedstat", "1000000 2000000 5\n")
        .with(
            "proc/7/task/7/status",
            "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n",
        )
        .with("proc/7/cgroup", "0::/a\n")
        .with("proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n")
        .with("cg/a/cpu.max", "150000 100000\n")
        .with("cg/a/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n")
}

fn watched(fixture: &Fixture) -> Processes {
    Processes::new(fixture.root(), vec![("server".to_owned(), 7)], &[], None)
}

#[test]
fn process_is_reported_with_its_threads_and_groups() {
    let fixture = machine(&stat('S', [100, 3], [50, 20], 1, 987));
    let mut processes = watched(&fixture);
    let reported = read(&mut processes, 1.0);
    assert_values(
        &reported,
        &[
            ("process.server.resident_bytes", (380 * page_bytes()) as f64),
            ("process.server.threads_count", 1.0),
            ("process.server.open_files_count", 2.0),
            ("cgroup.server.cpu_limit_count", 1.5),
        ],
    );
    assert_eq!(names(&reported, "process.").len(), 3);
    let status = "voluntary_ctxt_switches:\t25\nnonvoluntary_ctxt_switches:\t5\n";
    let _fixture = fixture
        .with("proc/7/stat", &stat('R', [140, 5], [250, 70], 1, 987))
        .with("proc/7/io", &io_of(5000, 3000))
        .with("proc/7/task/7/schedstat", "501000000 1002000000 9\n")
        .with("proc/7/task/7/status", status);
    let reported = read(&mut processes, 3.0);
    let ticks_per_s = ticks_per_s();
    assert_values(
        &reported,
        &[
            ("process.server.cpu_ratio", 125.0 / ticks_per_s),
            ("process.server.cpu_user_ratio", 100.0 / ticks_per_s),
            ("process.server.cpu_system_ratio", 25.0 / ticks_per_s),
            ("process.server.cpu_wait_ratio", 0.5),
            ("process.server.busiest_thread_ratio", 0.25),
            ("process.server.minor_faults_per_s", 20.0),
            ("process.server.major_faults_per_s", 1.0),
            ("process.server.voluntary_switches_per_s", 10.0),
            ("process.server.involuntary_switches_per_s", 2.0),
            ("process.server.read_bytes_per_s", 2000.0),
            ("process.server.write_bytes_per_s", 500.0),
            ("cgroup.server.cpu_throttled_ratio", 0.0),
        ],
    );
    assert!(matches!(missing(&reported, "process_delay"), Some(Health::Unsupported { .. })));
}

#[test]
fn disk_delay_is_reported_if_the_kernel_counts_it() {
    let of_thread = |ticks: u64| format!("7 (x) S{} {ticks} 0 0\n", " 1".repeat(38));
    let fixture = machine(&stat('S', [0, 0], [0, 0], 1, 987))
        .with("proc/sys/kernel/task_delayacct", "1\n")
        .with("proc/7/task/7/stat", &of_thread(100));
    let mut processes = watched(&fixture);
    read(&mut processes, 1.0);
    let _fixture = fixture
        .with("proc/7/task/7/schedstat", "1000001 2000000 6\n")
        .with("proc/7/task/7/stat", &of_thread(150));
    let reported = read(&mut processes, 2.0);
    let expected = 50.0 / ticks_per_s();
    assert_values(&reported, &[("process.server.delay_io_ratio", expected)]);
    assert_eq!(missing(&reported, "process_delay"), None);
}

/// The third reading of a process after two good ones and a change.
fn after(change: impl FnOnce(Fixture) -> Fixture) -> (Reported, Processes) {
    let fixture = machine(&stat('S', [100, 3], [50, 20], 1, 987));
    let mut processes = watched(&fixture);
    read(&mut processes, 1.0);
    read(&mut processes, 2.0);
    let _fixture = change(fixture);
    (read(&mut processes, 3.0), processes)
}

fn assert_ended(reported: &Reported) {
    assert!(reported.values.is_empty(), "{:?}", reported.values);
    let reason = missing(reported, WHOLE).map(Health::reason);
    let reason = reason.expect("it is missing");
    assert!(reason.starts_with("process 7 of `server`"), "{reason}");
    assert!(reason.ends_with(" ended"), "{reason}");
}

#[test]
fn ended_process_is_reported_as_missing_permanently() {
    let (reported, mut processes) = after(|fixture| {
        fs::remove_file(fixture.root().join("proc/7/stat")).unwrap();
        fixture
    });
    assert_ended(&reported);
    assert_ended(&read(&mut processes, 4.0));
    // Its parent has not collected it yet.
    assert_ended(
        &after(|fixture| fixture.with("proc/7/stat", &stat('Z', [0, 0], [0, 0], 1, 987))).0,
    );
    // Another process has its number.
    assert_ended(
        &after(|fixture| fixture.with("proc/7/stat", &stat('S', [0, 0], [0, 0], 1, 988))).0,
    );
}

/// The process that holds socket 4711 listens on port 27017.
const LISTENER: &str = "sl local_address\n \
    0: 0100007F:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0\n";

#[cfg(target_endian = "little")]
#[test]
fn restarted_server_is_watched_again() {
    let fixture = machine(&stat('S', [0, 0], [50, 20], 1, 987));
    let ports = [("server".to_owned(), 27017)];
    let named = vec![("server".to_owned(), 7)];
    let mut processes = Processes::new(fixture.root(), named, &ports, None);
    read(&mut processes, 1.0);
    fs::remove_dir_all(fixture.root().join("proc/7")).unwrap();
    let fixture = fixture.with("proc/net/tcp", "sl local_address\n");
    for at_s in [2.0, 3.0, 4.0] {
        assert_ended(&read(&mut processes, at_s));
    }
    // Searches at 3 s, 4 s and 6 s.
    let fixture = fixture
        .with("proc/net/tcp", LISTENER)
        .with("proc/9/comm", "mongod\n")
        .with("proc/9/stat", &stat('S', [0, 0], [3, 1], 1, 5000));
    let files = fixture.root().join("proc/9/fd");
    fs::create_dir_all(&files).unwrap();
    std::os::unix::fs::symlink("socket:[4711]", files.join("3")).unwrap();
    assert_ended(&read(&mut processes, 5.0));
    let reported = read(&mut processes, 6.0);
    assert_eq!(missing(&reported, WHOLE), None);
    // It starts anew: the totals of the old process are not subtracted from the new one's.
    assert_eq!(value(&reported, "process.server.cpu_ratio"), None);
    let _fixture = fixture.with("proc/9/stat", &stat('S', [0, 0], [53, 1], 1, 5000));
    let reported = read(&mut processes, 7.0);
    assert_values(&reported, &[("process.server.cpu_ratio", 50.0 / ticks_per_s())]);
}

#[test]
fn missing_process_does_not_hide_the_others() {
    let fixture = machine(&stat('S', [100, 3], [50, 20], 1, 987));
    let named = |name: &str, number| (name.to_owned(), number);
    let both = vec![named("client", 8), named("server", 7)];
    let reported = read(&mut Processes::new(fixture.root(), both, &[], None), 1.0);
    assert_eq!(names(&reported, "process.server.").len(), 3);
    let reason = missing(&reported, WHOLE).map(Health::reason);
    assert!(reason.is_some_and(|reason| reason.starts_with("process 8 of `client`")));
}

#[test]
fn process_with_very_many_threads_is_sampled() {
    let fixture = machine(&stat('S', [100, 3], [50, 20], 600, 987))
        .with("proc/7/task/8/schedstat", "1000000 1000000 5\n")
        .with("proc/7/task/8/status", "voluntary_ctxt_switches:\t5\n");
    let mut processes = watched(&fixture);
    read(&mut processes, 1.0);
    let _fixture = fixture.with("proc/7/task/8/schedstat", "101000000 101000000 6\n");
    let reported = read(&mut processes, 2.0);
    // Thread 8 stands for itself and thread 7.
    assert_values(&reported, &[("process.server.cpu_wait_ratio", 0.2)]);
    assert_values(&reported, &[("process.server.busiest_thread_ratio", 0.1)]);
    assert_eq!(missing(&reported, "process_threads"), None);
}

#[test]
fn uncounted_or_unreadable_counters_are_missing() {
    let fixture = machine(&stat('S', [100, 3], [50, 20], 1, 987))
        .with("proc/7/task/7/schedstat", "0 0 0\n")
        .with("proc/7/io", "rchar: 5\n");
    let mut processes = watched(&fixture);
    read(&mut processes, 1.0);
    let reported = read(&mut processes, 2.0);
    assert_eq!(value(&reported, "process.server.cpu_wait_ratio"), None);
    assert_eq!(value(&reported, "process.server.read_bytes_per_s"), None);
    assert_values(&reported, &[("process.server.voluntary_switches_per_s", 0.0)]);
    assert!(matches!(missing(&reported, "process_wait"), Some(Health::Unsupported { .. })));
    assert!(matches!(missing(&reported, "process_io"), Some(Health::Degraded { .. })));
}

#[test]
fn garbled_stat_is_degraded_and_not_an_end() {
    let whole = stat('S', [100, 3], [50, 20], 1, 987);
    let fixture = machine(&whole);
    let mut processes = watched(&fixture);
    read(&mut processes, 1.0);
    let fixture = fixture.with("proc/7/stat", "7 (x) S\n");
    let reported = read(&mut processes, 2.0);
    assert!(reported.values.is_empty());
    let reason = missing(&reported, WHOLE).map(Health::reason);
    assert!(reason.is_some_and(|reason| reason.contains("no counters")));
    let _fixture = fixture.with("proc/7/stat", &whole);
    let reported = read(&mut processes, 3.0);
    assert_eq!(missing(&reported, WHOLE), None);
    assert_values(&reported, &[("process.server.cpu_ratio", 0.0)]);
}

#[test]
fn files_of_this_process_are_counted() {
    let folder = Path::new("/proc/self/fd");
    let before = open_files(folder).unwrap();
    let files: Vec<_> = (0..20).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
    let after = open_files(folder).unwrap();
    // Other tests of this process open and close files at the same time.
    assert!(before >= 3.0 && after >= 20.0, "{before} {after}");
    drop(files);
}
