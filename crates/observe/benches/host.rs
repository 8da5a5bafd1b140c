//! Cost of one reading of the host source. One benchmark reads this machine with a process of 200
//! threads, all working or all idle. The other reads a file tree of a machine with 64 cores, 20
//! disks and 200 threads, which leaves out the kernel's work to produce the text.
//! The time is the reading thread's CPU time, so other load on the machine does not matter.

use criterion::{Criterion, criterion_group, criterion_main};
use dyno_observe::watch::{Host, HostSubject, Source};
use nix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const THREADS: u32 = 200;
const CORES: u32 = 64;
const DISKS: u32 = 20;

fn subject(process: u32) -> HostSubject {
    HostSubject {
        hostname: "bench".to_owned(),
        of_server: true,
        processes: vec![("server".to_owned(), process)],
        ports: Vec::new(),
        unknown_process: None,
        data_folders: vec!["/".into()],
        unknown_folder: None,
    }
}

fn measure(criterion: &mut Criterion, name: &str, root: &Path, process: u32, between: impl Fn()) {
    let mut host = Host::new(root, subject(process));
    let mut at_s = 0.0;
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|readings| {
            let mut cost = Duration::ZERO;
            for _ in 0..readings {
                between();
                at_s += 1.0;
                let start = cpu_time();
                let reported = host.read(at_s).expect("the machine can be read");
                cost += cpu_time() - start;
                std::hint::black_box(reported);
            }
            cost
        });
    });
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    Duration::from(time.expect("the clock is there on Linux"))
}

fn this_machine(criterion: &mut Criterion) {
    let turn = Arc::new(Barrier::new(THREADS as usize + 1));
    let has_ended = Arc::new(AtomicBool::new(false));
    let thread = |_| {
        let (turn, has_ended) = (Arc::clone(&turn), Arc::clone(&has_ended));
        std::thread::spawn(move || {
            while !has_ended.load(Ordering::Acquire) {
                turn.wait();
            }
        })
    };
    let threads: Vec<_> = (0..THREADS).map(thread).collect();
    let (root, own) = (Path::new("/"), std::process::id());
    measure(criterion, "200 idle threads", root, own, || {});
    measure(criterion, "200 threads that work", root, own, || {
        turn.wait();
    });
    has_ended.store(true, Ordering::Release);
    turn.wait();
    for thread in threads {
        let _ = thread.join();
    }
}

fn large_machine(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("there is room");
    let put = |path: &str, text: &str| {
        let path = root.path().join(path);
        let folder = path.parent().expect("it is below the root");
        fs::create_dir_all(folder).expect("there is room");
        fs::write(path, text).expect("there is room");
    };
    let mut stat = String::new();
    let mut disks = String::new();
    for core in 0..CORES {
        let _ = writeln!(stat, "cpu{core} 1673883 693176 317532 1020701 6973 0 38027 4939 0 0");
    }
    let _ = writeln!(stat, "intr 55522719{}", " 0".repeat(2000));
    for disk in 0..DISKS {
        let counters = "5251664 147921 230404826 15624103 1775101 846333 567283184 2633064 0 739852 18465527 0 0 0 0 7 7";
        let _ = writeln!(disks, " 8 {disk} sd{disk} {counters}");
    }
    put("proc/stat", &stat);
    put("proc/diskstats", &disks);
    for file in ["meminfo", "vmstat", "loadavg", "net/dev", "net/snmp", "net/netstat"] {
        let path = format!("proc/{file}");
        if let Ok(text) = fs::read_to_string(Path::new("/").join(&path)) {
            put(&path, &text);
        }
    }
    let counters = format!("7 (mongod) S{} {THREADS} 0 987 5 380\n", " 1".repeat(16));
    put("proc/7/stat", &counters);
    for thread in 0..THREADS {
        put(&format!("proc/7/task/{thread}/schedstat"), "990739 5702476 20\n");
        let switches = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t1\n";
        put(&format!("proc/7/task/{thread}/status"), switches);
    }
    measure(criterion, "files of 64 cores", root.path(), 7, || {});
}

criterion_group!(benches, this_machine, large_machine);
criterion_main!(benches);
