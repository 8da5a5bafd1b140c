use super::*;
use crate::host::tests::Fixture;
use crate::watch::{Ask, AskError};
use bson::{Document, doc};
use std::fs;
use std::os::unix::fs::symlink;

/// Time between two readings.
const SECOND: f64 = 1.0;

fn set(fixture: &Fixture, path: &str, text: &str) {
    let path = fixture.root().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn set_process(fixture: &Fixture, number: u32, ticks: u64, written: u64, switches: &[(u32, u64)]) {
    let folder = format!("proc/{number}");
    // A tenth of it in the kernel.
    let system = ticks / 10;
    let stat = format!(
        "{number} (my (server) x) S 1 1 1 0 -1 0 0 0 0 0 {ticks} {system} 0 0 20 0 3 0 {number} 1 1"
    );
    set(fixture, &format!("{folder}/stat"), &stat);
    let status = "Name:\tx\nVmHWM:\t    3072 kB\nVmRSS:\t    2048 kB\n";
    set(fixture, &format!("{folder}/status"), status);
    let io =
        format!("rchar: 9\nread_bytes: 4096\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n");
    set(fixture, &format!("{folder}/io"), &io);
    let tasks = fixture.root().join(&folder).join("task");
    let _ = fs::remove_dir_all(&tasks);
    for (thread, count) in switches {
        let status = format!("voluntary_ctxt_switches:\t{count}\nnonvoluntary_ctxt_switches:\t1\n");
        set(fixture, &format!("{folder}/task/{thread}/status"), &status);
    }
}

/// The data is on the partition `vda1`; the folder `volume` on `dm-0`, which has two members.
fn machine() -> Fixture {
    let fixture = Fixture::new()
        .with("data/x", "")
        .with("volume/x", "")
        .with("sys/devices/pci0/block/vda/vda1/partition", "1\n")
        .with("sys/devices/pci0/block/vdb/size", "1\n")
        .with("sys/devices/virtual/block/dm-0/slaves/x", "");
    let root = fixture.root().canonicalize().unwrap();
    let link = |from: &str, to: &str| {
        fs::create_dir_all(root.join(from).parent().unwrap()).unwrap();
        symlink(root.join(to), root.join(from)).unwrap();
    };
    link("sys/dev/block/254:1", "sys/devices/pci0/block/vda/vda1");
    link("sys/dev/block/253:0", "sys/devices/virtual/block/dm-0");
    fs::remove_file(root.join("sys/devices/virtual/block/dm-0/slaves/x")).unwrap();
    for member in ["vda", "vdb"] {
        let slave = format!("sys/devices/virtual/block/dm-0/slaves/{member}");
        link(&slave, &format!("sys/devices/pci0/block/{member}"));
    }
    let mounts = format!(
        "1 0 254:1 / {0}/data rw - ext4 /dev/vda1 rw\n2 0 253:0 / {0}/volume rw - xfs /dev/dm-0 rw\n",
        root.display()
    );
    fixture.with("proc/self/mountinfo", &mounts)
}

fn subject(fixture: &Fixture, folders: &[&str]) -> ConsumptionSubject {
    ConsumptionSubject {
        processes: Ok(vec![7, 8]),
        data_folders: Ok(folders.iter().map(|name| fixture.root().join(name)).collect()),
        is_local: true,
    }
}

fn set_devices(fixture: &Fixture, factor: u64) {
    let all = |flushes: u64| {
        let counters =
            [10, 0, 8, 1, 20, 0, 100, 2, 0, 3, 3, 0, 0, 0, 0].map(|n| (n * factor).to_string());
        format!("   {}   {flushes}    9\n", counters.join("  "))
    };
    set(fixture, "sys/devices/pci0/block/vda/stat", &all(5 * factor));
    set(fixture, "sys/devices/pci0/block/vdb/stat", &all(7 * factor));
    // The kernel does not count flushes here.
    set(fixture, "sys/devices/pci0/block/vda/vda1/stat", &all(0));
    set(fixture, "sys/devices/virtual/block/dm-0/stat", &all(0));
}

/// Reads everything in zero time.
fn read_at(
    counters: &mut ConsumptionCounters,
    at_s: f64,
    servers: Vec<Known<ServerCounters>>,
) -> CountersAt {
    counters.read(&|| at_s, &mut || servers.clone())
}

fn why(used: &Consumption, what: Counted) -> &str {
    let found = used.unknown.iter().find(|one| one.what == what);
    found.map_or("", |one| one.reason.as_str())
}

#[test]
fn counters_are_differences_between_two_readings() {
    let fixture = machine();
    let mut counters =
        ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data", "data/x"]));
    set_devices(&fixture, 1);
    set_process(&fixture, 7, 100, 1000, &[(7, 10), (71, 20)]);
    set_process(&fixture, 8, 0, 0, &[(8, 5)]);
    let first = read_at(&mut counters, 2.0, Vec::new());
    set_devices(&fixture, 3);
    // Thread 71 has ended, and 72 is new.
    set_process(&fixture, 7, 350, 5096, &[(7, 15), (72, 4)]);
    set_process(&fixture, 8, 50, 4096, &[(8, 6)]);
    let last = read_at(&mut counters, 2.0 + SECOND, Vec::new());
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!((used.start_s, used.end_s, used.processes), (2.0, 3.0, 2));
    assert_eq!(used.server_cpu_s, Some(2.75 + 0.55));
    // A tick at each end, of user and of system time together, for each process.
    assert_eq!(used.server_cpu_error_s, Some(0.04));
    assert_eq!(used.context_switches, Some(5 + 5 + 1));
    assert_eq!(used.resident_bytes, Some(4 << 20));
    assert_eq!(used.peak_resident_bytes, Some(6 << 20));
    assert_eq!(used.server_written_bytes, Some(8192));
    let device = used.device.clone().unwrap();
    assert_eq!(device.names, ["vda1"]);
    assert_eq!((device.read_requests, device.read_bytes), (20, 16 * 512));
    assert_eq!((device.write_requests, device.written_bytes), (40, 200 * 512));
    // The whole disk's flushes.
    assert_eq!(device.flushes, Some(10));
    assert_eq!(used.network, None);
    assert!(why(&used, Counted::Network).starts_with("no server"));
    assert!(why(&used, Counted::Energy).contains("RAPL"));
}

#[test]
fn kernel_is_read_before_servers_and_both_times_are_kept() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data"]));
    set_devices(&fixture, 1);
    set_process(&fixture, 7, 100, 0, &[(7, 10)]);
    set_process(&fixture, 8, 100, 0, &[]);
    let now = std::cell::Cell::new(2.0);
    let first = counters.read(&|| now.get(), &mut Vec::new);
    now.set(3.0);
    // The load continues while the servers are asked.
    let mut slow = || {
        set_devices(&fixture, 9);
        set_process(&fixture, 7, 900, 0, &[(7, 30)]);
        now.set(3.5);
        Vec::new()
    };
    let last = counters.read(&|| now.get(), &mut slow);
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!(used.server_cpu_s, Some(0.0));
    assert_eq!(used.device.as_ref().map(|device| device.read_bytes), Some(0));
    assert_eq!(used.context_switches, Some(20));
    assert_eq!(used.context_switches_by, Some(CountedBy::Threads));
    let at = |from_s, until_s| ReadTime { from_s, until_s };
    let expected = ReadTimes {
        kernel_at_start: at(2.0, 2.0),
        servers_at_start: at(2.0, 2.0),
        kernel_at_end: at(3.0, 3.0),
        servers_at_end: at(3.0, 3.5),
    };
    assert_eq!(used.read, Some(expected));
}

#[test]
fn context_switches_need_a_report_at_both_ends() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data"]));
    set_devices(&fixture, 1);
    set_process(&fixture, 7, 100, 0, &[(7, 10)]);
    set_process(&fixture, 8, 100, 0, &[]);
    let first = read_at(&mut counters, 0.0, vec![server_counters(&mut Server(status(1)))]);
    let last = read_at(&mut counters, SECOND, vec![Err("lost".to_owned())]);
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!((used.context_switches, used.context_switches_by), (None, None));
    assert!(why(&used, Counted::ContextSwitches).contains("one end"));
}

#[test]
fn flushes_of_a_volume_are_the_sum_of_its_members() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["volume"]));
    set_devices(&fixture, 1);
    let first = read_at(&mut counters, 0.0, Vec::new());
    set_devices(&fixture, 2);
    let last = read_at(&mut counters, SECOND, Vec::new());
    let used = consumption(PhaseKind::Load, &first, &last);
    let device = used.device.unwrap();
    assert_eq!((device.names, device.flushes), (vec!["dm-0".to_owned()], Some(12)));
}

#[test]
fn unknown_counters_are_absent_with_a_reason() {
    let fixture = machine();
    set_devices(&fixture, 1);
    let elsewhere = || "the servers run on another machine".to_owned();
    let subject = ConsumptionSubject {
        processes: Err(elsewhere()),
        data_folders: Err(elsewhere()),
        is_local: false,
    };
    let mut counters = ConsumptionCounters::new(fixture.root(), subject);
    let refused = || vec![Err("not authorized".to_owned())];
    let (first, last) =
        (read_at(&mut counters, 0.0, refused()), read_at(&mut counters, SECOND, refused()));
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!(used.server_cpu_s, None);
    assert_eq!(used.device, None);
    for what in [
        Counted::ServerCpu,
        Counted::Device,
        Counted::Energy,
        Counted::Memory,
        Counted::ContextSwitches,
    ] {
        assert_eq!(why(&used, what), elsewhere(), "{what:?}");
    }
    assert_eq!(why(&used, Counted::Network), "not authorized");
}

#[test]
fn restarted_server_has_no_counters() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data"]));
    set_devices(&fixture, 2);
    set_process(&fixture, 7, 100, 0, &[]);
    set_process(&fixture, 8, 100, 0, &[]);
    let first = read_at(&mut counters, 0.0, Vec::new());
    let stat = "8 (x) S 1 1 1 0 -1 0 0 0 0 0 900 5 0 0 20 0 3 0 12345 1 1";
    set(&fixture, "proc/8/stat", stat);
    set_devices(&fixture, 1);
    let last = read_at(&mut counters, SECOND, Vec::new());
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!(used.server_cpu_s, None);
    assert_eq!(why(&used, Counted::ServerCpu), "process 8 ended");
    assert!(why(&used, Counted::Device).contains("another device"));
}

#[test]
fn old_kernels_do_not_count_flushes() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data"]));
    set_devices(&fixture, 1);
    set(&fixture, "sys/devices/pci0/block/vda/stat", "1 0 8 1 1 0 8 1 0 1 1\n");
    let (first, last) =
        (read_at(&mut counters, 0.0, Vec::new()), read_at(&mut counters, SECOND, Vec::new()));
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!(used.device.as_ref().unwrap().flushes, None);
    assert!(why(&used, Counted::Flushes).contains("kernel"));
}

/// Answers with the given document.
struct Server(Document);

impl Ask for Server {
    fn ask(&mut self, database: &str, command: Document) -> Result<Document, AskError> {
        assert_eq!(database, "admin");
        assert!(command.contains_key("serverStatus"), "{command}");
        Ok(self.0.clone())
    }
}

fn status(factor: i64) -> Document {
    doc! {
        "mem": { "resident": 100 },
        "network": { "bytesIn": 1000 * factor, "bytesOut": 5000.0 * factor as f64 },
        "extra_info": {
            "user_time_us": 300_000 * factor, "system_time_us": 200_000 * factor,
            "maximum_resident_set_kb": 204_800_i64,
            "voluntary_context_switches": 40 * factor, "involuntary_context_switches": 2 * factor,
        },
        "wiredTiger": {
            "cache": { "tracked dirty bytes in the cache": 77 * factor, "pages read into cache": 30 * factor },
            // Small numbers may have the smaller type.
            "log": { "log sync operations": 4, "log sync time duration (usecs)": 250_000 * factor as i32 },
        },
    }
}

#[test]
fn remote_server_reports_its_own_counters() {
    let fixture = machine();
    let elsewhere = || "the servers run on another machine".to_owned();
    let subject = ConsumptionSubject {
        processes: Err(elsewhere()),
        data_folders: Err(elsewhere()),
        is_local: false,
    };
    let mut counters = ConsumptionCounters::new(fixture.root(), subject);
    let ask = |factor| vec![server_counters(&mut Server(status(factor))); 2];
    let (first, last) =
        (read_at(&mut counters, 0.0, ask(1)), read_at(&mut counters, SECOND, ask(3)));
    let used = consumption(PhaseKind::Measure, &first, &last);
    assert_eq!((used.processes, used.servers), (0, 2));
    assert_eq!(used.server_cpu_s, Some(2.0));
    assert_eq!(used.context_switches, Some(2 * 84));
    assert_eq!(used.context_switches_by, Some(CountedBy::Servers));
    assert_eq!(used.resident_bytes, Some(200 << 20));
    assert_eq!(used.peak_resident_bytes, Some(400 << 20));
    let network = NetworkUse { received_bytes: 4000, sent_bytes: 20_000 };
    assert_eq!(used.network, Some(network));
    assert_eq!(used.dirty_at_start_bytes, Some(154));
    assert_eq!(used.dirty_at_end_bytes, Some(462));
    assert_eq!(used.cache_misses, Some(2 * 60));
    assert_eq!(used.journal_sync_s, Some(2.0 * 0.5));
    // A restarted server counts from 0.
    let used = consumption(PhaseKind::Measure, &last, &first);
    assert_eq!((used.network, used.server_cpu_s), (None, None));
}

#[test]
fn sum_is_unknown_when_one_server_does_not_report() {
    let fixture = machine();
    let mut counters = ConsumptionCounters::new(fixture.root(), subject(&fixture, &["data"]));
    let ask = |factor| {
        let other = doc! { "network": { "bytesIn": 5, "bytesOut": 5 } };
        vec![server_counters(&mut Server(status(factor))), server_counters(&mut Server(other))]
    };
    let (first, last) =
        (read_at(&mut counters, 0.0, ask(1)), read_at(&mut counters, SECOND, ask(2)));
    let used = consumption(PhaseKind::Measure, &first, &last);
    let network = NetworkUse { received_bytes: 1000, sent_bytes: 5000 };
    assert_eq!(used.network, Some(network));
    assert_eq!((used.peak_resident_bytes, used.dirty_at_end_bytes), (None, None));
    assert_eq!((used.cache_misses, used.journal_sync_s), (None, None));
    for what in [Counted::CacheMisses, Counted::JournalSyncs] {
        assert!(why(&used, what).starts_with("the server"), "{what:?}");
    }
}

mod rapl {
    use super::*;

    fn zone(fixture: &Fixture, zone: &str, name: &str, energy_uj: u64) {
        let folder = format!("sys/class/powercap/{zone}");
        set(fixture, &format!("{folder}/name"), &format!("{name}\n"));
        set(fixture, &format!("{folder}/max_energy_range_uj"), "262143328850\n");
        set(fixture, &format!("{folder}/energy_uj"), &format!("{energy_uj}\n"));
    }

    /// A server with two sockets and separately counted memory.
    fn machine(energy_uj: u64) -> Fixture {
        let fixture = Fixture::new();
        set(&fixture, "sys/class/powercap/intel-rapl/enabled", "1\n");
        zone(&fixture, "intel-rapl:0", "package-0", energy_uj);
        zone(&fixture, "intel-rapl:0:0", "core", 7);
        zone(&fixture, "intel-rapl:0:1", "dram", energy_uj / 10);
        zone(&fixture, "intel-rapl:1", "package-1", 1_000);
        zone(&fixture, "intel-rapl:2", "psys", 9);
        zone(&fixture, "intel-rapl-mmio:0", "package-0", energy_uj);
        fixture
    }

    fn read(counters: &mut ConsumptionCounters) -> Known<EnergyUse> {
        read_at(counters, 0.0, Vec::new()).energy
    }

    fn counters(fixture: &Fixture) -> ConsumptionCounters {
        ConsumptionCounters::new(fixture.root(), subject(fixture, &[]))
    }

    #[test]
    fn energy_adds_packages_and_memory_but_not_their_parts() {
        let fixture = machine(5_000_000);
        let mut counters = counters(&fixture);
        let first = read(&mut counters).unwrap();
        assert_eq!(first.domains, ["package-0", "dram", "package-1"]);
        assert_eq!(first.energy_joules, 0.0);
        zone(&fixture, "intel-rapl:0", "package-0", 8_000_000);
        zone(&fixture, "intel-rapl:0:0", "core", 99_000_000);
        zone(&fixture, "intel-rapl:1", "package-1", 2_001_000);
        let last = read(&mut counters).unwrap();
        assert_eq!(last.energy_joules, 5.0);
    }

    #[test]
    fn energy_of_a_phase_is_the_difference_of_its_readings() {
        let fixture = machine(5_000_000);
        let mut counters = counters(&fixture);
        zone(&fixture, "intel-rapl:0", "package-0", 6_000_000);
        let first = read_at(&mut counters, 0.0, Vec::new());
        zone(&fixture, "intel-rapl:0", "package-0", 10_000_000);
        let last = read_at(&mut counters, SECOND, Vec::new());
        let used = consumption(PhaseKind::Measure, &first, &last);
        assert_eq!(used.energy.map(|energy| energy.energy_joules), Some(4.0));
    }

    #[test]
    fn energy_counter_may_wrap_several_times() {
        let fixture = machine(262_143_000_000);
        let mut counters = counters(&fixture);
        for energy_uj in [1_000_000, 262_000_000_000, 671_150] {
            zone(&fixture, "intel-rapl:0", "package-0", energy_uj);
            counters.keep_up();
        }
        let found = read(&mut counters).unwrap();
        // To the end and 1 J, then to 262,000 J, then to the end and 0.67 J.
        let expected = 0.32885 + 1.0 + (262_000.0 - 1.0) + 143.32885 + 0.67115;
        assert!((found.energy_joules - expected).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn energy_has_a_reason_when_there_are_no_counters() {
        let fixture = Fixture::new();
        let mut counters = counters(&fixture);
        let found = read(&mut counters);
        assert!(found.is_err_and(|reason| reason.contains("RAPL")));
    }

    #[test]
    fn energy_has_a_reason_when_a_counter_disappears() {
        let fixture = machine(5_000_000);
        let mut counters = counters(&fixture);
        fs::remove_file(fixture.root().join("sys/class/powercap/intel-rapl:1/energy_uj")).unwrap();
        let found = read(&mut counters).unwrap_err();
        assert!(found.contains("intel-rapl:1/energy_uj"), "{found}");
    }
}
