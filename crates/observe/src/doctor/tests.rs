//! Each check on both sides of its limits, with facts that start from an idle, well-configured
//! machine.

use super::processes::{BusyProcess, Limits, MemoryPolicy, OwnHugePages};
use super::*;
use crate::health::{Health, Reading};
use crate::host::tests::Fixture;
use dyno_record::model::{IdleState, StorageRecord};
use std::net::IpAddr;
use std::path::Path;

/// An idle machine with everything as advised for MongoDB 8.0, and a server on it.
fn sound() -> Facts {
    let server = ServerFacts {
        version: Some("8.0.3".to_owned()),
        pid: Some(7),
        address: Some("127.0.0.1:27017".parse().unwrap()),
        cache_bytes: Some(4 << 30),
        authentication: Some(false),
        round_trip: Some(RoundTrip { count: 200, median_us: 40.0, p99_us: 90.0 }),
        available_connections: Some(800),
        tracing: Some(Vec::new()),
        ..ServerFacts::default()
    };
    let subject =
        Subject { data_dir: Some("/data".into()), server: Some(server), ..Subject::default() };
    Facts {
        subject,
        huge_pages: Ok("always".to_owned()),
        huge_pages_defrag: Ok("defer+madvise".to_owned()),
        huge_pages_padding: Ok(0),
        own_huge_pages: Ok(OwnHugePages { allowed: true, used_bytes: Some(0) }),
        server_huge_pages_allowed: Ok(true),
        swappiness: Ok(1),
        swap_bytes: Ok(1 << 30),
        zone_reclaim_mode: Ok(0),
        numa_balancing: Ok(0),
        numa_nodes: Ok(2),
        server_policy: Ok(MemoryPolicy::Interleaved),
        max_map_count: Ok(128_000),
        memory_bytes: Ok(16 << 30),
        memory_limit_bytes: Ok(None),
        storage: Ok(StorageRecord {
            filesystem: Some("xfs".to_owned()),
            mount_options: Some("rw,noatime".to_owned()),
            device: Some("/dev/sdb".to_owned()),
            readahead_bytes: Some(16 * 1024),
            free_bytes: Some(100 << 30),
            ..StorageRecord::default()
        }),
        mount_point: Ok("/data".into()),
        queue: Ok("/sys/block/sdb/queue".into()),
        governors: Ok([(0, "performance".to_owned()), (1, "performance".to_owned())].into()),
        turbo: Ok((false, crate::host::NO_TURBO)),
        idle_states: Ok(vec![idle_state("POLL", 0, true), idle_state("C1E", 10, true)]),
        energy_bias: Ok("performance".to_owned()),
        smt: Ok("on".to_owned()),
        nodes_per_socket: Ok(1),
        prefetchers_off: Ok(Vec::new()),
        clock_source: Ok("tsc".to_owned()),
        clock_sources: Ok(vec!["tsc".to_owned(), "hpet".to_owned()]),
        clock_read_ns: 22.0,
        limits: Ok(Limits { open_files: Some(64_000), processes: None }),
        limits_of_server: true,
        load_average: Ok(0.0),
        cpus: Ok(4),
        cpu_pressure_percent: Ok(0.0),
        busy: Ok(Vec::new()),
        client_cpus: Ok(vec![0, 1]),
        server_cpus: Ok(vec![2, 3]),
        listening: Ok(vec!["127.0.0.1".parse().unwrap()]),
        listener: Ok("mongod".to_owned()),
        route: Ok(network::Route {
            interface: "lo".to_owned(),
            kind: network::RouteKind::Loopback,
        }),
        kernel: Ok("Linux 6.1.0-18-amd64".to_owned()),
    }
}

fn idle_state(name: &str, exit_latency_us: u64, enabled: bool) -> IdleState {
    IdleState { name: name.to_owned(), exit_latency_us, enabled }
}

fn verdict(check: CheckName, change: impl FnOnce(&mut Facts)) -> Verdict {
    let mut facts = sound();
    change(&mut facts);
    examine(&facts).into_iter().find(|verdict| verdict.check == check).unwrap()
}

fn level(check: CheckName, change: impl FnOnce(&mut Facts)) -> Level {
    verdict(check, change).level
}

fn server(facts: &mut Facts) -> &mut ServerFacts {
    facts.subject.server.as_mut().unwrap()
}

fn storage(facts: &mut Facts) -> &mut StorageRecord {
    facts.storage.as_mut().unwrap()
}

fn missing<T>() -> Reading<T> {
    Err(Health::Unsupported { reason: "there is none".to_owned() })
}

use Level::{Fail, Pass, Unknown, Warn};

#[test]
fn sound_machine_passes_every_check_without_a_change() {
    let verdicts = examine(&sound());
    let names: Vec<CheckName> = verdicts.iter().map(|verdict| verdict.check).collect();
    assert_eq!(names, CheckName::ALL);
    for verdict in verdicts {
        assert_eq!((verdict.level, &verdict.change), (Pass, &None), "{verdict:?}");
        assert!(!verdict.why.is_empty() && !verdict.advised.is_empty());
    }
}

#[test]
fn firmware_settings_are_judged() {
    let idle = |enabled| {
        level(CheckName::IdleStates, |facts| {
            facts.idle_states = Ok(vec![idle_state("C1", 2, true), idle_state("C6", 133, enabled)]);
        })
    };
    assert_eq!([idle(true), idle(false)], [Warn, Pass]);
    let bias = |text: &str| {
        let bias = text.to_owned();
        level(CheckName::EnergyBias, |facts| facts.energy_bias = Ok(bias))
    };
    let found = ["performance", "0", "6", "balance_power"].map(bias);
    assert_eq!(found, [Pass, Pass, Warn, Warn]);
    let smt = |text: &str| {
        let control = text.to_owned();
        level(CheckName::Smt, |facts| facts.smt = Ok(control))
    };
    let found = ["on", "notsupported", "off", "forceoff"].map(smt);
    assert_eq!(found, [Pass, Pass, Warn, Warn]);
    let nodes = |count| level(CheckName::SocketNodes, |facts| facts.nodes_per_socket = Ok(count));
    assert_eq!([nodes(1), nodes(2)], [Pass, Warn]);
    let off = verdict(CheckName::Prefetchers, |facts| {
        facts.prefetchers_off = Ok(vec!["L1 IP".to_owned()]);
    });
    assert!(off.level == Warn && off.found.contains("L1 IP") && off.change.is_some());
}

#[test]
fn settings_that_a_machine_hides_have_a_reason() {
    let cpu = "sys/devices/system/cpu";
    let bare = Fixture::new().with("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu\n");
    let machine = |fixture: &Fixture| examine(&observe(fixture.root(), &Subject::default()));
    let found = |fixture: &Fixture, check: CheckName| {
        machine(fixture).into_iter().find(|verdict| verdict.check == check).unwrap()
    };
    for (check, part) in [
        (CheckName::IdleStates, "cpuidle"),
        (CheckName::EnergyBias, "energy_perf_bias"),
        (CheckName::Smt, "smt/control"),
        (CheckName::SocketNodes, "sys/devices/system"),
        (CheckName::Prefetchers, "/dev/cpu/0/msr"),
    ] {
        let verdict = found(&bare, check);
        assert_eq!(verdict.level, Unknown, "{verdict:?}");
        assert!(verdict.found.contains(part), "{verdict:?}");
    }
    let virtual_one = bare.with("proc/cpuinfo", "flags\t\t: hypervisor\n");
    assert!(found(&virtual_one, CheckName::Prefetchers).found.contains("virtual machine"));
    let biased = virtual_one.with(&format!("{cpu}/cpu0/power/energy_perf_bias"), "6\n");
    assert_eq!(found(&biased, CheckName::EnergyBias).level, Warn);
}

#[test]
fn checks_are_unknown_on_an_empty_machine_and_never_panic() {
    let fixture = Fixture::new();
    for subject in [
        Subject::default(),
        sound().subject,
        Subject { server: Some(ServerFacts::default()), ..Subject::default() },
    ] {
        for verdict in examine(&observe(fixture.root(), &subject)) {
            // The cost of reading the clock and the caller's facts are always there.
            assert!(verdict.level <= Warn, "{verdict:?}");
        }
    }
    for verdict in examine(&observe(fixture.root(), &Subject::default())) {
        assert_eq!(verdict.level, Unknown, "{verdict:?}");
    }
}

#[test]
fn this_machine_is_examined() {
    let subject = Subject {
        data_dir: Some("/".into()),
        watch: std::time::Duration::from_millis(20),
        ..Subject::default()
    };
    let facts = observe(Path::new("/"), &subject);
    assert!(facts.swappiness.is_ok() && facts.limits.is_ok() && facts.client_cpus.is_ok());
    let verdicts = examine(&facts);
    let known = |check: CheckName| {
        verdicts.iter().any(|verdict| verdict.check == check && verdict.level != Unknown)
    };
    for check in [
        CheckName::Swappiness,
        CheckName::MaxMapCount,
        CheckName::Filesystem,
        CheckName::FreeDisk,
        CheckName::OpenFiles,
        CheckName::OtherLoad,
    ] {
        assert!(known(check), "{check}");
    }
    for verdict in verdicts {
        assert_eq!(verdict.change.is_some(), verdict.level >= Warn, "{verdict:?}");
    }
}

#[test]
fn huge_pages_are_advised_by_version_and_product() {
    let with = |product: Product, version: &str, mode: &str| {
        level(CheckName::HugePages, |facts| {
            server(facts).product = product;
            server(facts).version = Some(version.to_owned());
            facts.huge_pages = Ok(mode.to_owned());
        })
    };
    let mongodb = |version, mode| with(Product::MongoDb, version, mode);
    assert_eq!(mongodb("8.0.3", "always"), Pass);
    assert_eq!(mongodb("8.2.0", "madvise"), Fail);
    assert_eq!(mongodb("10.0.0", "never"), Fail);
    assert_eq!(mongodb("7.0.14", "never"), Pass);
    assert_eq!(mongodb("7.0.14", "madvise"), Warn);
    assert_eq!(mongodb("4.4.0", "always"), Fail);
    assert_eq!(with(Product::Embedded, "0.1.0", "always"), Warn);
    assert_eq!(with(Product::Embedded, "0.1.0", "madvise"), Pass);
    assert_eq!(level(CheckName::HugePages, |facts| server(facts).version = None), Unknown);
    assert_eq!(level(CheckName::HugePages, |facts| facts.subject.server = None), Unknown);
}

#[test]
fn process_without_huge_pages_overrides_the_machine() {
    let with = |version: &str| {
        level(CheckName::HugePages, |facts| {
            server(facts).version = Some(version.to_owned());
            facts.server_huge_pages_allowed = Ok(false);
        })
    };
    assert_eq!(with("7.0.14"), Pass);
    assert_eq!(with("8.0.0"), Fail);
}

#[test]
fn defrag_and_padding_follow_the_version() {
    let defrag = |version: &str, pages: &str, mode: &str| {
        level(CheckName::HugePagesDefrag, |facts| {
            server(facts).version = Some(version.to_owned());
            facts.huge_pages = Ok(pages.to_owned());
            facts.huge_pages_defrag = Ok(mode.to_owned());
        })
    };
    assert_eq!(defrag("8.0.0", "always", "madvise"), Warn);
    assert_eq!(defrag("8.0.0", "always", "always"), Fail);
    assert_eq!(defrag("7.0.0", "madvise", "madvise"), Pass);
    assert_eq!(defrag("7.0.0", "madvise", "always"), Fail);
    assert_eq!(defrag("7.0.0", "never", "always"), Pass);
    let padding = |version: &str| {
        level(CheckName::HugePagesPadding, |facts| {
            server(facts).version = Some(version.to_owned());
            facts.huge_pages_padding = Ok(511);
        })
    };
    assert_eq!((padding("8.0.0"), padding("7.0.0")), (Warn, Pass));
}

#[test]
fn our_own_switch_counts_for_a_server_that_inherits_it() {
    let with = |version: &str, allowed, defrag: &str| {
        level(CheckName::OwnHugePages, |facts| {
            server(facts).version = Some(version.to_owned());
            facts.own_huge_pages = Ok(OwnHugePages { allowed, used_bytes: None });
            facts.huge_pages_defrag = Ok(defrag.to_owned());
        })
    };
    assert_eq!(with("8.0.0", false, "madvise"), Fail);
    assert_eq!(with("7.0.0", false, "madvise"), Pass);
    assert_eq!(with("8.0.0", true, "always"), Warn);
}

#[test]
fn swappiness_is_irrelevant_without_swap() {
    let with = |value: u64, swap: Reading<u64>| {
        level(CheckName::Swappiness, |facts| {
            facts.swappiness = Ok(value);
            facts.swap_bytes = swap;
        })
    };
    assert_eq!(with(60, Ok(1)), Fail);
    assert_eq!(with(2, Ok(1)), Fail);
    assert_eq!(with(0, Ok(1)), Pass);
    assert_eq!(with(60, Ok(0)), Pass);
    assert_eq!(with(60, missing()), Warn);
}

#[test]
fn node_settings_count_only_with_several_nodes() {
    for (check, bad) in [
        (CheckName::ZoneReclaim, Fail),
        (CheckName::NumaBalancing, Warn),
        (CheckName::NumaInterleave, Warn),
    ] {
        let with = |nodes: Reading<u64>| {
            level(check, |facts| {
                facts.zone_reclaim_mode = Ok(1);
                facts.numa_balancing = Ok(1);
                facts.server_policy = Ok(MemoryPolicy::Local);
                facts.numa_nodes = nodes;
            })
        };
        assert_eq!((with(Ok(2)), with(Ok(1))), (bad, Pass), "{check}");
    }
    let bound =
        |facts: &mut Facts| facts.server_policy = Ok(MemoryPolicy::Chosen("bind:0".to_owned()));
    assert_eq!(level(CheckName::NumaInterleave, bound), Pass);
}

#[test]
fn mappings_are_counted_by_connections() {
    let with = |count, connections, product: Product| {
        level(CheckName::MaxMapCount, |facts| {
            facts.max_map_count = Ok(count);
            facts.subject.connections = connections;
            server(facts).product = product;
        })
    };
    assert_eq!(with(65_530, None, Product::MongoDb), Warn);
    assert_eq!(with(65_530, None, Product::Embedded), Pass);
    assert_eq!(with(128_000, Some(100_000), Product::MongoDb), Fail);
    let advised = verdict(CheckName::MaxMapCount, |facts| {
        facts.max_map_count = Ok(10);
        facts.subject.connections = Some(100_000);
    });
    assert_eq!(advised.change.unwrap().command, "sudo sysctl -w vm.max_map_count=204000");
}

#[test]
fn all_caches_together_must_fit_in_memory() {
    let with = |cache: Option<u64>, instances, limit| {
        level(CheckName::CacheMemory, |facts| {
            server(facts).cache_bytes = cache;
            server(facts).instances = instances;
            facts.memory_limit_bytes = Ok(limit);
        })
    };
    assert_eq!(with(Some(4 << 30), 2, None), Pass);
    assert_eq!(with(Some(4 << 30), 3, None), Warn);
    assert_eq!(with(Some(4 << 30), 4, None), Fail);
    // One default cache fits, two do not.
    assert_eq!((with(None, 1, None), with(None, 2, None)), (Pass, Fail));
    assert_eq!(with(Some(4 << 30), 1, Some(4 << 30)), Fail);
}

#[test]
fn storage_is_judged_by_each_of_its_settings() {
    let readahead =
        |size| level(CheckName::Readahead, |facts| storage(facts).readahead_bytes = Some(size));
    assert_eq!((readahead(4096), readahead(16 * 1024)), (Pass, Pass));
    assert_eq!((readahead(2048), readahead(128 * 1024)), (Warn, Fail));
    let change =
        verdict(CheckName::Readahead, |facts| storage(facts).readahead_bytes = Some(1 << 20));
    assert_eq!(change.change.unwrap().command, "sudo blockdev --setra 32 /dev/sdb");
    let kind = |name: &str| {
        level(CheckName::Filesystem, |facts| storage(facts).filesystem = Some(name.to_owned()))
    };
    assert_eq!((kind("ext4"), kind("overlay"), kind("tmpfs")), (Warn, Fail, Fail));
    let in_memory = |facts: &mut Facts| {
        storage(facts).filesystem = Some("tmpfs".to_owned());
        server(facts).storage_engine = Some("inMemory".to_owned());
    };
    assert_eq!(level(CheckName::Filesystem, in_memory), Pass);
    let options = |text: &str| {
        level(CheckName::AccessTimes, |facts| storage(facts).mount_options = Some(text.to_owned()))
    };
    assert_eq!((options("rw,relatime"), options("rw"), options("ro,noatime")), (Warn, Warn, Fail));
}

#[test]
fn free_space_is_compared_with_the_planned_data() {
    let with = |free: u64, planned: Option<u64>| {
        level(CheckName::FreeDisk, |facts| {
            storage(facts).free_bytes = Some(free);
            facts.subject.planned_data_bytes = planned;
        })
    };
    let gibibyte = 1 << 30;
    assert_eq!(with(gibibyte - 1, None), Fail);
    assert_eq!(with(2 * gibibyte, None), Warn);
    assert_eq!(with(2 * gibibyte, Some(gibibyte)), Pass);
    assert_eq!(with(2 * gibibyte - 1, Some(gibibyte)), Warn);
    assert_eq!(with(gibibyte, Some(gibibyte)), Fail);
}

#[test]
fn frequency_and_clock_are_judged() {
    let governor = verdict(CheckName::CpuGovernor, |facts| {
        facts.governors = Ok([(0, "performance".to_owned()), (5, "powersave".to_owned())].into());
    });
    assert_eq!((governor.level, governor.change.unwrap().actions.len()), (Fail, 1));
    assert_eq!(level(CheckName::CpuGovernor, |facts| facts.governors = missing()), Unknown);
    let turbo = verdict(CheckName::CpuTurbo, |facts| facts.turbo = Ok((true, crate::host::BOOST)));
    assert_eq!(turbo.level, Warn);
    assert_eq!(
        turbo.change.unwrap().command,
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    );
    let clock = |name: &str, cost_ns| {
        level(CheckName::ClockSource, |facts| {
            facts.clock_source = Ok(name.to_owned());
            facts.clock_read_ns = cost_ns;
        })
    };
    assert_eq!((clock("hpet", 30.0), clock("acpi_pm", 900.0)), (Fail, Fail));
    assert_eq!(
        (clock("kvm-clock", 30.0), clock("xen", 400.0), clock("tsc", 400.0)),
        (Pass, Warn, Warn)
    );
}

#[test]
fn limits_are_judged_with_the_planned_connections() {
    let with = |files, connections| {
        level(CheckName::OpenFiles, |facts| {
            facts.limits = Ok(Limits { open_files: files, processes: files });
            facts.subject.connections = connections;
        })
    };
    assert_eq!(
        (with(None, None), with(Some(63_999), None), with(Some(1024), None)),
        (Pass, Warn, Fail)
    );
    assert_eq!(with(Some(64_000), Some(40_000)), Fail);
    let processes = |count| {
        level(CheckName::Processes, |facts| {
            facts.limits = Ok(Limits { open_files: None, processes: Some(count) });
        })
    };
    assert_eq!((processes(64_000), processes(20_000), processes(1_000)), (Pass, Warn, Fail));
}

#[test]
fn check_warns_of_kernels_on_which_new_servers_crash() {
    let with = |kernel: &str, version: Option<&str>| {
        level(CheckName::ServerKernel, |facts| {
            facts.kernel = Ok(kernel.to_owned());
            server(facts).version = version.map(str::to_owned);
        })
    };
    assert_eq!(with("Linux 6.19.0", Some("8.0.3")), Warn);
    assert_eq!(with("Linux 7.0.1-arch1", Some("9.0.4")), Warn);
    assert_eq!(with("Linux 6.19.0", Some("7.0.14")), Pass);
    assert_eq!(with("Linux 6.19.0", None), Unknown);
    assert_eq!(with("Linux 6.18.9", Some("8.2.0")), Pass);
    let embedded = level(CheckName::ServerKernel, |facts| {
        facts.kernel = Ok("Linux 6.19.0".to_owned());
        server(facts).product = Product::Embedded;
    });
    assert_eq!(embedded, Pass);
}

#[test]
fn check_warns_of_profilers_and_audit_logs() {
    let with = |tracing: Option<Vec<String>>| {
        level(CheckName::ServerTracing, |facts| server(facts).tracing = tracing)
    };
    assert_eq!(with(Some(Vec::new())), Pass);
    assert_eq!(with(Some(vec!["audit log to file".to_owned()])), Warn);
    assert_eq!(with(None), Unknown);
}

#[test]
fn free_connections_are_compared_with_planned_ones() {
    let with = |free, planned| {
        level(CheckName::FreeConnections, |facts| {
            server(facts).available_connections = free;
            facts.subject.connections = planned;
        })
    };
    assert_eq!(with(Some(7), Some(16)), Fail);
    assert_eq!(with(Some(16), Some(16)), Pass);
    assert_eq!(with(Some(7), None), Pass);
    assert_eq!(with(None, Some(16)), Unknown);
}

#[test]
fn other_load_fails_now_and_only_warns_about_the_past() {
    let busy =
        |ratio: f64| Ok(vec![BusyProcess { pid: 9, name: "cc1".to_owned(), cpu_ratio: ratio }]);
    let now = |ratio| verdict(CheckName::OtherLoad, |facts| facts.busy = busy(ratio));
    assert_eq!((now(0.3).level, now(1.0).level, now(2.0).level), (Pass, Warn, Fail));
    for part in ["2.00 of 4 CPUs", "cc1 (9) 2.00"] {
        assert!(now(2.0).found.contains(part), "{part}");
    }
    assert_eq!(level(CheckName::OtherLoad, |facts| facts.load_average = Ok(40.0)), Warn);
    assert_eq!(level(CheckName::OtherLoad, |facts| facts.cpu_pressure_percent = Ok(50.0)), Warn);
    let only_past = |facts: &mut Facts| facts.busy = missing();
    assert_eq!(level(CheckName::OtherLoad, only_past), Pass);
}

#[test]
fn common_cpus_are_a_warning_and_one_for_both_a_failure() {
    let with = |client: &[u64], server: &[u64]| {
        level(CheckName::SharedCores, |facts| {
            facts.client_cpus = Ok(client.to_vec());
            facts.server_cpus = Ok(server.to_vec());
        })
    };
    assert_eq!((with(&[0, 1], &[1, 2]), with(&[0], &[0]), with(&[0], &[1])), (Warn, Fail, Pass));
    assert_eq!(level(CheckName::SharedCores, |facts| facts.server_cpus = missing()), Unknown);
}

#[test]
fn an_open_server_without_a_password_fails_loudly() {
    let with = |address: &str, authentication| {
        verdict(CheckName::BindAddress, |facts| {
            facts.listening = Ok(vec![address.parse::<IpAddr>().unwrap()]);
            server(facts).authentication = authentication;
        })
    };
    let open = with("0.0.0.0", Some(false));
    assert_eq!(open.level, Fail);
    assert!(open.found.contains("WITHOUT A PASSWORD"));
    assert_eq!((with("::", None).level, with("10.0.0.1", Some(true)).level), (Warn, Pass));
    assert_eq!(with("::1", Some(false)).level, Pass);
    let remote = |facts: &mut Facts| {
        server(facts).local = false;
        server(facts).address = Some("10.0.0.9:27017".parse().unwrap());
    };
    assert_eq!(level(CheckName::BindAddress, remote), Fail);
}

#[test]
fn a_round_trip_is_judged_by_its_way() {
    let with = |median_us, p99_us, kind, interface: &str| {
        verdict(CheckName::RoundTrip, |facts| {
            server(facts).round_trip = Some(RoundTrip { count: 100, median_us, p99_us });
            facts.route = Ok(network::Route { interface: interface.to_owned(), kind });
        })
    };
    use network::RouteKind::{Bridge, Card, Loopback};
    assert_eq!(with(400.0, 500.0, Loopback, "lo").level, Warn);
    assert_eq!(with(400.0, 500.0, Card, "eth0").level, Pass);
    assert_eq!(with(2_000.0, 2_500.0, Card, "eth0").level, Warn);
    assert_eq!(with(20_000.0, 25_000.0, Card, "eth0").level, Fail);
    assert_eq!(with(50.0, 5_000.0, Loopback, "lo").level, Warn);
    let bridge = with(100.0, 200.0, Bridge, "docker0");
    assert_eq!(bridge.level, Warn);
    assert!(bridge.change.unwrap().command.contains("--network host"));
    assert_eq!(
        level(CheckName::RoundTrip, |facts| facts.listener = Ok("docker-proxy".to_owned())),
        Warn
    );
    assert_eq!(level(CheckName::RoundTrip, |facts| server(facts).round_trip = None), Unknown);
}

#[test]
fn remote_server_is_judged_by_client_side_checks_only() {
    let mut facts = sound();
    server(&mut facts).local = false;
    facts.swappiness = Ok(60);
    facts.governors = Ok([(0, "powersave".to_owned())].into());
    let verdicts = examine(&facts);
    let level = |check| verdicts.iter().find(|verdict| verdict.check == check).unwrap().level;
    assert_eq!((level(CheckName::Swappiness), level(CheckName::CpuGovernor)), (Unknown, Fail));
    assert_eq!(level(CheckName::SharedCores), Pass);
}
