use super::*;
use dyno_record::model::SourceHealth;

const TIME: PhaseTime = PhaseTime { phase: PhaseKind::Measure, start_s: 2.0, end_s: 8.0 };

fn source(name: &str, kind: SourceKind, subject: &str) -> SourceRecord {
    SourceRecord {
        name: name.to_owned(),
        kind,
        subject: subject.to_owned(),
        machine: None,
        of_server: true,
        interval_s: 1.0,
        readings_per_row: 1,
        health: SourceHealth::Healthy,
        reason: None,
        missing: Vec::new(),
        readings: 10,
        missed: 0,
        outages: Vec::new(),
        cpu_s: 0.0,
        cpu_ratio: 0.0,
    }
}

/// A table of readings at seconds 0 to 10; a share has no value at the first reading.
fn table(source: &str, columns: &[(&str, &dyn Fn(f64) -> f64)]) -> MetricTable {
    let at_s: Vec<f64> = (0..=10).map(f64::from).collect();
    let column = |(name, value): &(&str, &dyn Fn(f64) -> f64)| {
        let values = at_s.iter().map(|at_s| match *at_s {
            0.0 if name.ends_with("_ratio") => f64::NAN,
            at_s => value(at_s),
        });
        let id = MetricId::parse(name).expect("it is a name");
        (id, values.collect())
    };
    MetricTable {
        source: source.to_owned(),
        duration_s: at_s.iter().map(|at_s| at_s.min(1.0)).collect(),
        columns: columns.iter().map(column).collect(),
        at_s: at_s.clone(),
    }
}

/// A machine of four CPUs.
fn machine(name: &str, busy: f64, disks: &[(&str, f64)], of_data: &[&str]) -> MetricTable {
    let cpus = ["all", "0", "1", "2", "3"];
    let cpus = cpus.map(|cpu| (format!("cpu.{cpu}.busy_ratio"), busy));
    let disks =
        disks.iter().map(|(disk, share)| (format!("disk.{disk}.utilization_ratio"), *share));
    let marks = of_data.iter().map(|disk| (format!("storage.{disk}.holds_data_count"), 1.0));
    let mut found = table(name, &[]);
    for (id, value) in cpus.into_iter().chain(disks).chain(marks) {
        let id = MetricId::parse(&id).expect("it is a name");
        let mut column = vec![value; found.at_s.len()];
        column[0] = f64::NAN;
        found.columns.insert(id, column);
    }
    found
}

/// The resource uses in whole milliseconds.
fn short(uses: &[ResourceUse]) -> Vec<(ResourceKind, u64, u64, String)> {
    assert!(uses.iter().all(|one| one.duration_s == 6.0 && one.phase == TIME.phase));
    let short = |one: &ResourceUse| {
        let by = one.reported.as_ref().expect("it was reported");
        let devices = one.disks.iter().map(|disk| format!(" {}", disk.device));
        let by = format!("{} {}{}", by.source, by.machine, devices.collect::<String>());
        (one.resource, one.units, (one.busy_s * 1e3).round() as u64, by)
    };
    uses.iter().map(short).collect()
}

#[test]
fn cpus_are_busy_for_their_share_of_the_phase() {
    let sources = [source("node", SourceKind::Exporter, "http://db1:9100/metrics")];
    let tables = [machine("node", 0.25, &[("vda", 0.5), ("vdb", 0.75)], &["vda"])];
    let watched = Watched { sources: &sources, tables: &tables };
    let found = watched.machines(TIME);
    // A quarter of four CPUs for six seconds; half the time for the disk with the data, although
    // another is busier.
    let expected = [
        (ResourceKind::ServerHostCpu, 4, 6000, "node db1".to_owned()),
        (ResourceKind::Disk, 1, 3000, "node db1 vda".to_owned()),
    ];
    assert_eq!(short(&found.uses), expected);
    assert_eq!(found.unknown_disks, []);
}

#[test]
fn busiest_disk_stands_for_an_unknown_one_and_all_are_listed() {
    let sources = [source("node", SourceKind::Exporter, "http://db1:9100/metrics")];
    let disks = [("vda", 0.25), ("vdb", 0.75), ("loop0", 0.9)];
    let watched = |tables: &[MetricTable]| {
        let watched = Watched { sources: &sources, tables };
        watched.machines(TIME)
    };
    let found = watched(&[machine("node", 0.25, &disks, &[])]);
    let busiest = (ResourceKind::Disk, 1, 4500, "node db1 vdb".to_owned());
    assert_eq!(short(&found.uses)[1..], [busiest]);
    let [unknown] = &found.unknown_disks[..] else { panic!("{:?}", found.unknown_disks) };
    assert_eq!(unknown.disks, [("vdb".to_owned(), 0.75), ("vda".to_owned(), 0.25)]);
    // If there is only one disk, it must hold the data.
    let found = watched(&[machine("node", 0.25, &disks[..1], &[])]);
    assert_eq!(found.unknown_disks, []);
    assert_eq!(found.uses.len(), 2);
}

#[test]
fn foreign_and_duplicate_exporters_are_ignored() {
    let mut sources = [
        source("node", SourceKind::Exporter, "http://db1:9100/metrics"),
        source("again", SourceKind::Exporter, "http://db1:9200/metrics"),
        source("client", SourceKind::Exporter, "http://client:9100/metrics"),
    ];
    sources[2].of_server = false;
    let tables = ["node", "again", "client"].map(|name| machine(name, 0.5, &[], &[]));
    let watched = Watched { sources: &sources, tables: &tables };
    let expected = [(ResourceKind::ServerHostCpu, 4, 12_000, "node db1".to_owned())];
    assert_eq!(short(&watched.machines(TIME).uses), expected);
}

#[test]
fn exporters_may_report_cpus_and_disks_separately() {
    let sources = [
        source("disks", SourceKind::Exporter, "http://db1:9100/metrics"),
        source("all", SourceKind::Exporter, "http://db1:9200/metrics"),
    ];
    let mut disks = machine("disks", 0.5, &[("vda", 0.5)], &["vda"]);
    disks.columns.retain(|id, _| !id.as_str().starts_with("cpu."));
    let tables = [disks, machine("all", 0.25, &[("vda", 0.5)], &["vda"])];
    let watched = Watched { sources: &sources, tables: &tables };
    // The machine's disks are listed once.
    let expected = [
        (ResourceKind::Disk, 1, 3000, "disks db1 vda".to_owned()),
        (ResourceKind::ServerHostCpu, 4, 6000, "all db1".to_owned()),
    ];
    assert_eq!(short(&watched.machines(TIME).uses), expected);
}

/// A server with two CPUs that uses a share of a CPU from second 4 on.
fn process(name: &str, share: f64) -> MetricTable {
    let user = move |at_s: f64| if at_s > 4.0 { share } else { 0.0 };
    table(
        name,
        &[
            (&format!("server_cpu.{name}.user_ratio"), &user),
            (&format!("server_cpu.{name}.system_ratio"), &|_| 0.25),
            (&format!("server_cpu.{name}.cpus_count"), &|_| 2.0),
        ],
    )
}

#[test]
fn servers_share_the_cpus_of_their_machine() {
    let sources = [
        source("member-0", SourceKind::Server, "db1:27017"),
        source("member-1", SourceKind::Server, "db1:27018"),
        source("member-2", SourceKind::Server, "db2:27017"),
    ];
    let tables = [process("member-0", 1.0), process("member-1", 0.5), process("member-2", 0.0)];
    let watched = Watched { sources: &sources, tables: &tables };
    // A quarter of a CPU for six seconds each, and their work from second 4 to 8.
    let expected = [
        (ResourceKind::ServerCpu, 2, 9000, "serverStatus db1".to_owned()),
        (ResourceKind::ServerCpu, 2, 1500, "serverStatus db2".to_owned()),
    ];
    assert_eq!(short(&watched.server_cpu(TIME)), expected);
    // If one server does not report, there is no sum.
    let silent = [tables[0].clone(), tables[1].clone(), table("member-2", &[])];
    let watched = Watched { sources: &sources, tables: &silent };
    assert_eq!(watched.server_cpu(TIME), []);
    let partial = watched.partial_server_cpu(TIME).expect("two report it");
    assert_eq!((partial.missing, partial.observed), (vec!["member-2".to_owned()], 2));
    assert!((partial.cpus - 9.0 / 6.0).abs() < 1e-9, "{}", partial.cpus);
}

#[test]
fn use_is_unknown_when_much_of_the_time_is_missing() {
    let sources = [source("server", SourceKind::Server, "db1:27017")];
    let tables = [process("server", 1.0)];
    let watched = Watched { sources: &sources, tables: &tables };
    let time = |start_s, end_s| PhaseTime { start_s, end_s, ..TIME };
    assert_eq!(watched.server_cpu(time(0.0, 11.0)).len(), 1, "a tenth is missing");
    assert_eq!(watched.server_cpu(time(0.0, 14.0)), [], "a quarter is missing");
    let without = |part: &str| {
        let mut table = tables[0].clone();
        table.columns.retain(|id, _| id.name() != part);
        let tables = [table];
        Watched { sources: &sources, tables: &tables }.server_cpu(TIME).len()
    };
    assert_eq!(without("cpus_count"), 0);
    assert_eq!(without("system_ratio"), 0);
}

#[test]
fn host_of_an_address_excludes_its_port() {
    for (address, host) in [
        ("db1:27017", "db1"),
        ("http://db1:9100/metrics", "db1"),
        ("https://db1/metrics?x=1:2", "db1"),
        ("[fd00::2]:27017", "fd00::2"),
        ("http://[fd00::2]:9100/metrics", "fd00::2"),
        ("fd00::2", "fd00::2"),
        ("/tmp/mongodb-27017.sock", "localhost"),
    ] {
        assert_eq!(host_of(address), host, "{address}");
    }
}

#[test]
fn late_reading_covers_the_time_since_the_previous_one() {
    let sources = [source("server", SourceKind::Server, "db1:27017")];
    let found = |table: MetricTable| {
        let tables = [table];
        let watched = Watched { sources: &sources, tables: &tables };
        short(&watched.server_cpu(TIME))
    };
    let mut late = process("server", 1.0);
    let is_kept = |row: &usize| !(3..7).contains(row);
    let kept: Vec<usize> = (0..late.at_s.len()).filter(is_kept).collect();
    let pick = |column: &[f64]| kept.iter().map(|row| column[*row]).collect::<Vec<f64>>();
    late.at_s = pick(&late.at_s);
    late.duration_s = pick(&late.duration_s);
    late.duration_s[3] = 5.0;
    for column in late.columns.values_mut() {
        *column = pick(column);
    }
    // The reading of second 7 covers the five seconds since second 2.
    let expected = (ResourceKind::ServerCpu, 2, 7500, "serverStatus db1".to_owned());
    assert_eq!(found(late), [expected]);
    // Rows without a value are not covered: the use in their time is unknown.
    let mut hole = process("server", 1.0);
    for column in hole.columns.values_mut() {
        column[3..7].fill(f64::NAN);
    }
    assert_eq!(found(hole), []);
}

#[test]
fn machine_with_two_addresses_counts_once() {
    let one = source("one", SourceKind::Exporter, "http://127.0.0.1:9100/metrics");
    let two = source("two", SourceKind::Exporter, "http://localhost:9101/metrics");
    let sources =
        [one, two].map(|source| SourceRecord { machine: Some("127.0.0.1".to_owned()), ..source });
    let of_one = |name: &str| machine(name, 0.25, &[("vda", 0.5)], &["vda"]);
    let tables = [of_one("one"), of_one("two")];
    let watched = Watched { sources: &sources, tables: &tables };
    let used = watched.machines(TIME).uses;
    let machines: Vec<_> = used.iter().flat_map(|one| &one.reported).collect();
    assert_eq!(machines.len(), 2, "{machines:?}");
    assert!(machines.iter().all(|one| one.source == "one"));
}
